/*-------------------------------------------------------------------------
 *
 * aggregate_rows.c
 *		The table of aggregate functions.
 *
 * It has those whose answer is PostgreSQL's to the last digit.  Not among them are
 * sums and averages of float4 and float8: PostgreSQL's depend on the order of
 * addition, and MongoDB compensates for that.
 *
 * avg, stddev and variance have the scale of PostgreSQL's own division and
 * square root, so MongoDB adds up and PostgreSQL finishes them (finish.h).
 *
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/group/
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aggregate_rows.h"
#include "remote_error.h"

#include "catalog/pg_type_d.h"
#include "utils/fmgroids.h"

#define VALUE	MONGO_VALUE

/*
 * An error (22003).  It depends on a value, as MongoDB would evaluate a constant
 * before any document.
 */
#define RAISE(value) \
	"{$toInt: {$concat: ['" MONGO_INEXACT_SUM " ', {$toString: " value "}]}}"

/*
 * A sum of integers is one, however long; but where some are Doubles, it is a
 * Double, too, and exact up to 2^53, which the argument @4 is.
 */
#define EXACT_INTEGERS \
	"{$cond: [{$and: [{$eq: [{$type: @1}, 'double']}, {$gte: [{$abs: @1}, @4]}]}, " \
	RAISE("@1") ", @1]}"

/*
 * A Decimal128 that has been rounded has 34 digits.  So if the sum of
 * magnitudes has fewer, no part of it has been rounded, nor has any part of
 * the sum of the values, which is nowhere larger.
 */
#define EXACT_DECIMALS(magnitude, sum) \
	"{$cond: [{$lt: [{$strLenCP: {$toString: " magnitude "}}, 34]}, " sum ", " \
	RAISE(magnitude) "]}"

/* of the accumulators: has there been any value at all? */
#define UNLESS_NULL(result) "{$cond: [{$gt: [@2, null]}, " result ", null]}"

#define SUMMED(operand)		{"$sum", operand}
#define ANY_VALUE			{"$max", MONGO_RAW_VALUE}
#define COUNTED				{"$sum", MONGO_IS_VALUE}

static const MongoRecipe count_all = {
	MONGO_ARGUMENT_NONE, {SUMMED("1")}, .has_state = true, .zero_if_empty = true
};

static const MongoRecipe count_values = {
	MONGO_ARGUMENT_RAW, {COUNTED}, .has_state = true, .zero_if_empty = true
};

static const MongoRecipe sum_of_integers = {
	MONGO_ARGUMENT_RAW, {SUMMED(VALUE), ANY_VALUE},
	.result = UNLESS_NULL(EXACT_INTEGERS), .not_null = EXACT_INTEGERS,
	.has_state = true
};

static const MongoRecipe sum_of_decimals = {
	MONGO_ARGUMENT_DECIMAL, {SUMMED(VALUE), ANY_VALUE},
	.guard = SUMMED("{$abs: " VALUE "}"),
	.result = UNLESS_NULL("@1"),
	.guarded = UNLESS_NULL(EXACT_DECIMALS("@3", "@1"))
};

static const MongoRecipe average_of_integers = {
	MONGO_ARGUMENT_RAW, {SUMMED(VALUE), COUNTED},
	.result = EXACT_INTEGERS,
	.finish = MONGO_FINISH_AVERAGE_OF_INTEGERS, .result_type = INT8OID
};

static const MongoRecipe average_of_decimals = {
	MONGO_ARGUMENT_DECIMAL, {SUMMED(VALUE), COUNTED},
	.guard = SUMMED("{$abs: " VALUE "}"),
	.guarded = EXACT_DECIMALS("@3", "@1"),
	.finish = MONGO_FINISH_AVERAGE, .result_type = NUMERICOID
};

/* The sum of squares is the guard of both sums. */
#define VARIANCE(kind) \
	MONGO_ARGUMENT_DECIMAL, \
	{SUMMED(VALUE), COUNTED, \
	SUMMED("{$multiply: [" VALUE ", " VALUE "]}")}, \
	.result = EXACT_DECIMALS("@3", "@1"), \
	.finish = kind, .result_type = NUMERICOID

static const MongoRecipe variance_of_sample = {VARIANCE(MONGO_FINISH_VAR_SAMP)};
static const MongoRecipe variance_of_all = {VARIANCE(MONGO_FINISH_VAR_POP)};
static const MongoRecipe deviation_of_sample = {VARIANCE(MONGO_FINISH_STDDEV_SAMP)};
static const MongoRecipe deviation_of_all = {VARIANCE(MONGO_FINISH_STDDEV_POP)};

static const MongoRecipe least = {
	MONGO_ARGUMENT_ORDERED, {{"$min", VALUE}}, .distinct_is_same = true, .has_state = true
};

static const MongoRecipe greatest = {
	MONGO_ARGUMENT_ORDERED, {{"$max", VALUE}}, .distinct_is_same = true, .has_state = true
};

/* NaN is above every number, and below it for MongoDB */
#define IS_NAN		"{$cond: [{$eq: [" VALUE ", NaN]}, 1, null]}"
#define NOT_NAN		"{$cond: [{$eq: [" VALUE ", NaN]}, null, " VALUE "]}"

static const MongoRecipe least_or_nan = {
	MONGO_ARGUMENT_ORDERED, {{"$min", NOT_NAN}, {"$max", IS_NAN}},
	.result = "{$ifNull: [@1, {$cond: [{$eq: [@2, 1]}, NaN, null]}]}",
	.distinct_is_same = true, .has_state = true
};

static const MongoRecipe greatest_or_nan = {
	MONGO_ARGUMENT_ORDERED, {{"$max", NOT_NAN}, {"$max", IS_NAN}},
	.result = "{$cond: [{$eq: [@2, 1]}, NaN, @1]}",
	.distinct_is_same = true, .has_state = true
};

/* false is below true */
static const MongoRecipe all_true = {
	MONGO_ARGUMENT_RAW, {{"$min", VALUE}}, .distinct_is_same = true, .has_state = true
};

static const MongoRecipe any_true = {
	MONGO_ARGUMENT_RAW, {{"$max", VALUE}}, .distinct_is_same = true, .has_state = true
};

static const MongoAggregateRow aggregate_rows[] =
{
	{&count_all, NULL, {F_COUNT_}},
	{&count_values, NULL, {F_COUNT_ANY}},
	{&sum_of_integers, NULL, {F_SUM_INT2, F_SUM_INT4}},
	{&sum_of_decimals, NULL, {F_SUM_INT8, F_SUM_NUMERIC}},
	{&average_of_integers, NULL, {F_AVG_INT2, F_AVG_INT4}},
	{&average_of_decimals, NULL, {F_AVG_INT8, F_AVG_NUMERIC}},
	{&least, NULL, {F_MIN_INT2, F_MIN_INT4, F_MIN_INT8, F_MIN_DATE, F_MIN_TIMESTAMP,
	F_MIN_TIMESTAMPTZ, F_MIN_TEXT}},
	{&least, &least_or_nan, {F_MIN_FLOAT8, F_MIN_NUMERIC}},
	{&greatest, NULL, {F_MAX_INT2, F_MAX_INT4, F_MAX_INT8, F_MAX_DATE, F_MAX_TIMESTAMP,
	F_MAX_TIMESTAMPTZ, F_MAX_TEXT}},
	{&greatest, &greatest_or_nan, {F_MAX_FLOAT8, F_MAX_NUMERIC}},
	{&all_true, NULL, {F_BOOL_AND, F_EVERY}},
	{&any_true, NULL, {F_BOOL_OR}},
	{&variance_of_sample, NULL, {F_VAR_SAMP_INT2, F_VAR_SAMP_INT4, F_VAR_SAMP_INT8,
	F_VAR_SAMP_NUMERIC, F_VARIANCE_INT2, F_VARIANCE_INT4, F_VARIANCE_INT8, F_VARIANCE_NUMERIC}},
	{&variance_of_all, NULL, {F_VAR_POP_INT2, F_VAR_POP_INT4, F_VAR_POP_INT8, F_VAR_POP_NUMERIC}},
	{&deviation_of_sample, NULL, {F_STDDEV_SAMP_INT2, F_STDDEV_SAMP_INT4, F_STDDEV_SAMP_INT8,
	F_STDDEV_SAMP_NUMERIC, F_STDDEV_INT2, F_STDDEV_INT4, F_STDDEV_INT8, F_STDDEV_NUMERIC}},
	{&deviation_of_all, NULL, {F_STDDEV_POP_INT2, F_STDDEV_POP_INT4, F_STDDEV_POP_INT8,
	F_STDDEV_POP_NUMERIC}},
};

const MongoAggregateRow *
mongo_aggregate_row(Oid function)
{
	for (size_t i = 0; i < lengthof(aggregate_rows); i++)
	{
		const Oid  *functions = aggregate_rows[i].functions;

		for (int j = 0; j < MONGO_MAX_FUNCTIONS && OidIsValid(functions[j]); j++)
		{
			if (functions[j] == function)
				return &aggregate_rows[i];
		}
	}
	return NULL;
}
