/*-------------------------------------------------------------------------
 *
 * aggregate_rows.c
 *		The table of aggregate functions.
 *
 * Here are those whose answer is PostgreSQL's to the last digit.  Not among
 * them are sums and averages of float4 and float8: they depend on the order of
 * addition here, and MongoDB compensates for that.
 *
 * avg, stddev and variance have the scale of PostgreSQL's own division and
 * square root, so MongoDB adds up and they are finished here (finish.h).
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
 * An error (22003) that is raised only where it is evaluated, so it must not be
 * a constant.
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
	{F_COUNT_, .recipe = &count_all},
	{F_COUNT_ANY, .recipe = &count_values},
	{F_SUM_INT2, .recipe = &sum_of_integers},
	{F_SUM_INT4, .recipe = &sum_of_integers},
	{F_SUM_INT8, .recipe = &sum_of_decimals},
	{F_SUM_NUMERIC, .recipe = &sum_of_decimals},
	{F_AVG_INT2, .recipe = &average_of_integers},
	{F_AVG_INT4, .recipe = &average_of_integers},
	{F_AVG_INT8, .recipe = &average_of_decimals},
	{F_AVG_NUMERIC, .recipe = &average_of_decimals},
	{F_MIN_INT2, .recipe = &least},
	{F_MIN_INT4, .recipe = &least},
	{F_MIN_INT8, .recipe = &least},
	{F_MIN_FLOAT8, &least, &least_or_nan},
	{F_MIN_NUMERIC, &least, &least_or_nan},
	{F_MIN_DATE, .recipe = &least},
	{F_MIN_TIMESTAMP, .recipe = &least},
	{F_MIN_TIMESTAMPTZ, .recipe = &least},
	{F_MIN_TEXT, .recipe = &least},
	{F_MAX_INT2, .recipe = &greatest},
	{F_MAX_INT4, .recipe = &greatest},
	{F_MAX_INT8, .recipe = &greatest},
	{F_MAX_FLOAT8, &greatest, &greatest_or_nan},
	{F_MAX_NUMERIC, &greatest, &greatest_or_nan},
	{F_MAX_DATE, .recipe = &greatest},
	{F_MAX_TIMESTAMP, .recipe = &greatest},
	{F_MAX_TIMESTAMPTZ, .recipe = &greatest},
	{F_MAX_TEXT, .recipe = &greatest},
	{F_BOOL_AND, .recipe = &all_true},
	{F_EVERY, .recipe = &all_true},
	{F_BOOL_OR, .recipe = &any_true},
	{F_VAR_SAMP_INT2, .recipe = &variance_of_sample},
	{F_VAR_SAMP_INT4, .recipe = &variance_of_sample},
	{F_VAR_SAMP_INT8, .recipe = &variance_of_sample},
	{F_VAR_SAMP_NUMERIC, .recipe = &variance_of_sample},
	{F_VARIANCE_INT2, .recipe = &variance_of_sample},
	{F_VARIANCE_INT4, .recipe = &variance_of_sample},
	{F_VARIANCE_INT8, .recipe = &variance_of_sample},
	{F_VARIANCE_NUMERIC, .recipe = &variance_of_sample},
	{F_VAR_POP_INT2, .recipe = &variance_of_all},
	{F_VAR_POP_INT4, .recipe = &variance_of_all},
	{F_VAR_POP_INT8, .recipe = &variance_of_all},
	{F_VAR_POP_NUMERIC, .recipe = &variance_of_all},
	{F_STDDEV_SAMP_INT2, .recipe = &deviation_of_sample},
	{F_STDDEV_SAMP_INT4, .recipe = &deviation_of_sample},
	{F_STDDEV_SAMP_INT8, .recipe = &deviation_of_sample},
	{F_STDDEV_SAMP_NUMERIC, .recipe = &deviation_of_sample},
	{F_STDDEV_INT2, .recipe = &deviation_of_sample},
	{F_STDDEV_INT4, .recipe = &deviation_of_sample},
	{F_STDDEV_INT8, .recipe = &deviation_of_sample},
	{F_STDDEV_NUMERIC, .recipe = &deviation_of_sample},
	{F_STDDEV_POP_INT2, .recipe = &deviation_of_all},
	{F_STDDEV_POP_INT4, .recipe = &deviation_of_all},
	{F_STDDEV_POP_INT8, .recipe = &deviation_of_all},
	{F_STDDEV_POP_NUMERIC, .recipe = &deviation_of_all},
};

const MongoAggregateRow *
mongo_aggregate_row(Oid function)
{
	for (size_t i = 0; i < lengthof(aggregate_rows); i++)
	{
		if (aggregate_rows[i].function == function)
			return &aggregate_rows[i];
	}
	return NULL;
}
