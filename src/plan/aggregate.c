/*-------------------------------------------------------------------------
 *
 * aggregate.c
 *		Aggregates as accumulators of $group, each function a row.
 *
 * Pushed are those whose answer is PostgreSQL's to the last digit.  Not among
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

#include "bson_memory.h"
#include "command_template.h"
#include "digits.h"
#include "plan_group.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type_d.h"
#include "utils/fmgroids.h"

/* Digits that the sum of any number of rows has beyond those of one. */
#define COUNT_DIGITS	15

/* The same of as many rows as there may well be; then there is a guard as well. */
#define LIKELY_COUNT_DIGITS	9

#define MAX_ACCUMULATORS	3

/* Arguments of templates: the value in the form wanted, and as it is. */
#define VALUE	"@1"
#define RAW		"@2"

/* 1 for a value, 0 for null and for what is missing or undefined */
#define IS_VALUE	"{$cond: [{$eq: [{$ifNull: [" RAW ", null]}, null]}, 0, 1]}"

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

/* In which form the argument is added up. */
typedef enum ArgumentForm
{
	FORM_NONE,
	FORM_RAW,
	FORM_NORMAL,
	FORM_ORDERED
} ArgumentForm;

typedef struct AccumulatorRow
{
	const char *operator;
	const char *operand;		/* a template over the argument */
} AccumulatorRow;

/* How a family of aggregate functions is computed. */
typedef struct Recipe
{
	ArgumentForm form;
	AccumulatorRow accumulators[MAX_ACCUMULATORS];
	AccumulatorRow guard;		/* only where digits may not suffice */
	const char *result;			/* a template over accumulators, guard last */
	const char *guarded;		/* the same with the guard, which is @3 */
	const char *not_null;		/* instead of 'result' if no value is NULL; then
								 * the first accumulator is enough */
	MongoFinish finish;
	Oid			result_type;	/* to be finished; else the aggregate's */
	bool		distinct_is_same;	/* repeated values make no difference */
	bool		has_state;		/* the result is PostgreSQL's own partial state */
	bool		zero_if_empty;
} Recipe;

#define SUMMED(operand)		{"$sum", operand}
#define ANY_VALUE			{"$max", RAW}
#define COUNTED				{"$sum", IS_VALUE}

static const Recipe count_all = {
	FORM_NONE, {SUMMED("1")}, .has_state = true, .zero_if_empty = true
};

static const Recipe count_values = {
	FORM_RAW, {COUNTED}, .has_state = true, .zero_if_empty = true
};

static const Recipe sum_of_integers = {
	FORM_RAW, {SUMMED(VALUE), ANY_VALUE},
	.result = UNLESS_NULL(EXACT_INTEGERS), .not_null = EXACT_INTEGERS,
	.has_state = true
};

static const Recipe sum_of_decimals = {
	FORM_NORMAL, {SUMMED("{$toDecimal: " VALUE "}"), ANY_VALUE},
	.guard = SUMMED("{$abs: {$toDecimal: " VALUE "}}"),
	.result = UNLESS_NULL("@1"),
	.guarded = UNLESS_NULL(EXACT_DECIMALS("@3", "@1"))
};

static const Recipe average_of_integers = {
	FORM_RAW, {SUMMED(VALUE), COUNTED},
	.result = EXACT_INTEGERS,
	.finish = MONGO_FINISH_AVERAGE_OF_INTEGERS, .result_type = INT8OID
};

static const Recipe average_of_decimals = {
	FORM_NORMAL, {SUMMED("{$toDecimal: " VALUE "}"), COUNTED},
	.guard = SUMMED("{$abs: {$toDecimal: " VALUE "}}"),
	.guarded = EXACT_DECIMALS("@3", "@1"),
	.finish = MONGO_FINISH_AVERAGE, .result_type = NUMERICOID
};

/* The sum of squares is the guard of both sums. */
#define VARIANCE(kind) \
	FORM_NORMAL, \
	{SUMMED("{$toDecimal: " VALUE "}"), COUNTED, \
	SUMMED("{$multiply: [{$toDecimal: " VALUE "}, {$toDecimal: " VALUE "}]}")}, \
	.result = EXACT_DECIMALS("@3", "@1"), \
	.finish = kind, .result_type = NUMERICOID

static const Recipe variance_of_sample = {VARIANCE(MONGO_FINISH_VAR_SAMP)};
static const Recipe variance_of_all = {VARIANCE(MONGO_FINISH_VAR_POP)};
static const Recipe deviation_of_sample = {VARIANCE(MONGO_FINISH_STDDEV_SAMP)};
static const Recipe deviation_of_all = {VARIANCE(MONGO_FINISH_STDDEV_POP)};

static const Recipe least = {
	FORM_ORDERED, {{"$min", VALUE}}, .distinct_is_same = true, .has_state = true
};

static const Recipe greatest = {
	FORM_ORDERED, {{"$max", VALUE}}, .distinct_is_same = true, .has_state = true
};

/* NaN is above every number, and below it for MongoDB */
#define IS_NAN		"{$cond: [{$eq: [" VALUE ", NaN]}, 1, null]}"
#define NOT_NAN		"{$cond: [{$eq: [" VALUE ", NaN]}, null, " VALUE "]}"

static const Recipe least_or_nan = {
	FORM_ORDERED, {{"$min", NOT_NAN}, {"$max", IS_NAN}},
	.result = "{$ifNull: [@1, {$cond: [{$eq: [@2, 1]}, NaN, null]}]}",
	.distinct_is_same = true, .has_state = true
};

static const Recipe greatest_or_nan = {
	FORM_ORDERED, {{"$max", NOT_NAN}, {"$max", IS_NAN}},
	.result = "{$cond: [{$eq: [@2, 1]}, NaN, @1]}",
	.distinct_is_same = true, .has_state = true
};

/* false is below true */
static const Recipe all_true = {
	FORM_RAW, {{"$min", VALUE}}, .distinct_is_same = true, .has_state = true
};

static const Recipe any_true = {
	FORM_RAW, {{"$max", VALUE}}, .distinct_is_same = true, .has_state = true
};

typedef struct AggregateRow
{
	Oid			function;
	const Recipe *recipe;
	const Recipe *with_nan;		/* where the argument may be NaN */
} AggregateRow;

static const AggregateRow aggregate_rows[] =
{
	{F_COUNT_, &count_all},
	{F_COUNT_ANY, &count_values},
	{F_SUM_INT2, &sum_of_integers},
	{F_SUM_INT4, &sum_of_integers},
	{F_SUM_INT8, &sum_of_decimals},
	{F_SUM_NUMERIC, &sum_of_decimals},
	{F_AVG_INT2, &average_of_integers},
	{F_AVG_INT4, &average_of_integers},
	{F_AVG_INT8, &average_of_decimals},
	{F_AVG_NUMERIC, &average_of_decimals},
	{F_MIN_INT2, &least},
	{F_MIN_INT4, &least},
	{F_MIN_INT8, &least},
	{F_MIN_FLOAT8, &least, &least_or_nan},
	{F_MIN_NUMERIC, &least, &least_or_nan},
	{F_MIN_DATE, &least},
	{F_MIN_TIMESTAMP, &least},
	{F_MIN_TIMESTAMPTZ, &least},
	{F_MIN_TEXT, &least},
	{F_MAX_INT2, &greatest},
	{F_MAX_INT4, &greatest},
	{F_MAX_INT8, &greatest},
	{F_MAX_FLOAT8, &greatest, &greatest_or_nan},
	{F_MAX_NUMERIC, &greatest, &greatest_or_nan},
	{F_MAX_DATE, &greatest},
	{F_MAX_TIMESTAMP, &greatest},
	{F_MAX_TIMESTAMPTZ, &greatest},
	{F_MAX_TEXT, &greatest},
	{F_BOOL_AND, &all_true},
	{F_EVERY, &all_true},
	{F_BOOL_OR, &any_true},
	{F_VAR_SAMP_INT2, &variance_of_sample},
	{F_VAR_SAMP_INT4, &variance_of_sample},
	{F_VAR_SAMP_INT8, &variance_of_sample},
	{F_VAR_SAMP_NUMERIC, &variance_of_sample},
	{F_VARIANCE_INT2, &variance_of_sample},
	{F_VARIANCE_INT4, &variance_of_sample},
	{F_VARIANCE_INT8, &variance_of_sample},
	{F_VARIANCE_NUMERIC, &variance_of_sample},
	{F_VAR_POP_INT2, &variance_of_all},
	{F_VAR_POP_INT4, &variance_of_all},
	{F_VAR_POP_INT8, &variance_of_all},
	{F_VAR_POP_NUMERIC, &variance_of_all},
	{F_STDDEV_SAMP_INT2, &deviation_of_sample},
	{F_STDDEV_SAMP_INT4, &deviation_of_sample},
	{F_STDDEV_SAMP_INT8, &deviation_of_sample},
	{F_STDDEV_SAMP_NUMERIC, &deviation_of_sample},
	{F_STDDEV_INT2, &deviation_of_sample},
	{F_STDDEV_INT4, &deviation_of_sample},
	{F_STDDEV_INT8, &deviation_of_sample},
	{F_STDDEV_NUMERIC, &deviation_of_sample},
	{F_STDDEV_POP_INT2, &deviation_of_all},
	{F_STDDEV_POP_INT4, &deviation_of_all},
	{F_STDDEV_POP_INT8, &deviation_of_all},
	{F_STDDEV_POP_NUMERIC, &deviation_of_all},
};

static const AggregateRow *
find_row(Oid function)
{
	for (int i = 0; i < lengthof(aggregate_rows); i++)
	{
		if (aggregate_rows[i].function == function)
			return &aggregate_rows[i];
	}
	return NULL;
}

/* An aggregate being translated. */
typedef struct Translation
{
	MongoGroup *group;
	const Aggref *aggregate;
	const Recipe *recipe;
	Node	   *argument;		/* NULL for count(*) */
	MongoValue	values[2];		/* VALUE and RAW */
	bool		distinct;
	bool		needs_guard;
	bson_t	   *filter;			/* NULL: none */
} Translation;

/* A field that a $group gives. */
static MongoValue
field_value(const char *path)
{
	MongoValue	value = {bson_create_in(CurrentMemoryContext), .atomic = true, .nullable = true};

	BSON_APPEND_UTF8(value.expression, "", psprintf("$%s", path));
	return value;
}

/*
 * set_distinct: what DISTINCT is over is a key of the first stage.  All DISTINCT
 * aggregates must be over the same.
 */
static bool
set_distinct(Translation *translation)
{
	MongoGroup *group = translation->group;
	MongoValue *value = &translation->values[1];

	if (group->distinct == NULL)
	{
		if (!mongo_group_value(&group->scope, translation->argument, false,
							   &group->distinct_value))
			return false;
		group->distinct = translation->argument;
	}
	if (!equal(group->distinct, translation->argument))
		return false;
	*value = field_value("_id.d");
	value->type = group->distinct_value.type;
	value->typmod = group->distinct_value.typmod;
	value->raw = group->distinct_value.raw;
	translation->values[0] = *value;
	return translation->recipe->form != FORM_NORMAL ||
		mongo_normalize(&group->scope, &translation->values[0]);
}

/* guards_digits: may adding up exceed the digits of a Decimal128? */
static bool
guards_digits(const Translation *translation)
{
	MongoDigits digits = mongo_expression_digits(translation->argument);

	digits.integral += COUNT_DIGITS;
	return translation->recipe->guarded != NULL &&
		!(digits.known && mongo_digits_fit(digits));
}

/* squares_are_likely_to_fit: is a variance worth trying? */
static bool
squares_are_likely_to_fit(Node *argument)
{
	MongoDigits digits = mongo_expression_digits(argument);

	digits.integral = 2 * digits.integral + LIKELY_COUNT_DIGITS;
	digits.scale *= 2;
	return digits.known && mongo_digits_fit(digits);
}

/* translate_argument fills in the values. */
static bool
translate_argument(Translation *translation)
{
	MongoScope	scope = translation->group->scope;
	MongoValue *values = translation->values;
	ArgumentForm form = translation->recipe->form;

	if (form == FORM_NONE)
		return true;
	if (translation->recipe->finish >= MONGO_FINISH_VAR_POP &&
		!squares_are_likely_to_fit(translation->argument))
		return false;
	translation->needs_guard = guards_digits(translation);
	if (translation->distinct)
		return set_distinct(translation);

	scope.guarded = translation->needs_guard;
	scope.lazy = translation->filter != NULL;
	if (!mongo_value_of_node(&scope, translation->argument, &values[1]))
		return false;
	values[0] = values[1];
	/* a later time is no earlier date */
	if (form == FORM_ORDERED && values[0].type != DATEOID)
		return mongo_group_value(&scope, translation->argument, true, &values[0]);
	return form != FORM_NORMAL || mongo_normalize(&scope, &values[0]);
}

/* filtered: {$cond: [filter, operand, null]}; null adds nothing to anything */
static bson_t *
filtered(const Translation *translation, bson_t *operand)
{
	MongoValue	arguments[2] = {{translation->filter}, {operand}};

	if (translation->filter == NULL)
		return operand;
	return mongo_expand_template("{$cond: [@1, @2, null]}", arguments, 2);
}

/* add_accumulator gives its number; one that is there already serves again. */
static int
add_accumulator(Translation *translation, const AccumulatorRow *row)
{
	MongoGroup *group = translation->group;
	MongoAccumulator *accumulator = palloc(sizeof(MongoAccumulator));
	const char *operand = row->operand;
	ListCell   *cell;

	if (strcmp(operand, IS_VALUE) == 0 && !translation->values[1].nullable)
		operand = "1";
	accumulator->operator = row->operator;
	accumulator->operand = filtered(translation,
									mongo_expand_template(operand, translation->values,
														  lengthof(translation->values)));
	accumulator->distinct = translation->distinct;

	foreach(cell, group->accumulators)
	{
		MongoAccumulator *other = lfirst(cell);

		if (strcmp(other->operator, accumulator->operator) == 0 &&
			other->distinct == accumulator->distinct &&
			bson_equal(other->operand, accumulator->operand))
			return foreach_current_index(cell);
	}
	group->accumulators = lappend(group->accumulators, accumulator);
	return list_length(group->accumulators) - 1;
}

/* add_result: a field of the $set, made of accumulators. */
static const char *
add_result(MongoGroup *group, const char *template, const MongoValue *accumulators)
{
	const char *path = psprintf("r%d", group->nresults++);

	mongo_append_expression(group->results, path,
							mongo_expand_template(template, accumulators,
												  MAX_ACCUMULATORS + 1));
	return path;
}

static MongoOutputField *
output_field(const char *path, Oid type)
{
	MongoOutputField *field = palloc(sizeof(MongoOutputField));

	field->path = path;
	field->type = type;
	field->typmod = -1;
	return field;
}

/*
 * add_output: the accumulators' paths are known; @4 of a template is 2^53.
 */
static void
add_output(Translation *translation, const char *const *paths)
{
	MongoGroup *group = translation->group;
	const Recipe *recipe = translation->recipe;
	MongoOutput *output = palloc0(sizeof(MongoOutput));
	const char *template = recipe->result;
	const char *path = paths[0];
	MongoValue	arguments[MAX_ACCUMULATORS + 1];

	for (int i = 0; i < MAX_ACCUMULATORS; i++)
		arguments[i] = field_value(paths[i] != NULL ? paths[i] : "_id");
	arguments[MAX_ACCUMULATORS] = mongo_decimal_value("9007199254740992");

	if (translation->needs_guard)
		template = recipe->guarded;
	else if (recipe->not_null != NULL && paths[1] == NULL)
		template = recipe->not_null;
	if (template != NULL)
		path = add_result(group, template, arguments);

	output->expression = (Expr *) translation->aggregate;
	output->finish = recipe->finish;
	output->zero_if_empty = recipe->zero_if_empty;
	output->fields = list_make1(output_field(path, recipe->finish == MONGO_FINISH_NONE ?
											 translation->aggregate->aggtype :
											 recipe->result_type));
	if (recipe->finish != MONGO_FINISH_NONE)
		output->fields = lappend(output->fields, output_field(paths[1], INT8OID));
	if (recipe->finish > MONGO_FINISH_AVERAGE_OF_INTEGERS)
		output->fields = lappend(output->fields, output_field(paths[2], NUMERICOID));
	group->outputs = lappend(group->outputs, output);

	if (recipe->finish == MONGO_FINISH_NONE)
	{
		MongoComputed *computed = palloc(sizeof(MongoComputed));

		computed->expression = output->expression;
		computed->path = path;
		group->computed = lappend(group->computed, computed);
	}
}

/* is_plain: nothing about the call that no row knows. */
static bool
is_plain(const Aggref *aggregate)
{
	return aggregate->aggorder == NIL && aggregate->aggdirectargs == NIL &&
		!aggregate->aggvariadic && aggregate->agglevelsup == 0 &&
		list_length(aggregate->args) <= 1 &&
		aggregate->aggkind == AGGKIND_NORMAL;
}

/* begin_translation: false when the aggregate has no row that suits. */
static bool
begin_translation(Translation *translation, MongoGroup *group, const Aggref *aggregate)
{
	const AggregateRow *row = find_row(aggregate->aggfnoid);

	memset(translation, 0, sizeof(*translation));
	if (row == NULL || !is_plain(aggregate))
		return false;
	translation->group = group;
	translation->aggregate = aggregate;
	translation->recipe = row->recipe;
	translation->distinct = aggregate->aggdistinct != NIL && !row->recipe->distinct_is_same;
	if (DO_AGGSPLIT_SKIPFINAL(aggregate->aggsplit) && !row->recipe->has_state)
		return false;
	if (aggregate->args != NIL)
		translation->argument = (Node *) linitial_node(TargetEntry, aggregate->args)->expr;

	if (aggregate->aggfilter != NULL)
	{
		MongoValue	filter;

		if (translation->distinct ||
			!mongo_test_of_node(&group->scope, (Node *) aggregate->aggfilter, true, &filter))
			return false;
		translation->filter = filter.expression;
	}
	if (!translate_argument(translation))
		return false;
	if (translation->values[0].nan && row->with_nan != NULL)
		translation->recipe = row->with_nan;
	return true;
}

bool
mongo_group_add_aggregate(MongoGroup *group, Aggref *aggregate)
{
	Translation translation;
	const Recipe *recipe;
	const char *paths[MAX_ACCUMULATORS] = {NULL};
	ListCell   *cell;

	foreach(cell, group->outputs)
	{
		if (equal(((MongoOutput *) lfirst(cell))->expression, aggregate))
			return true;
	}
	if (!begin_translation(&translation, group, aggregate))
		return false;

	recipe = translation.recipe;
	for (int i = 0; i < MAX_ACCUMULATORS && recipe->accumulators[i].operator != NULL; i++)
	{
		if (i == 1 && recipe->not_null != NULL && !translation.values[1].nullable &&
			translation.filter == NULL)
			break;
		paths[i] = psprintf("a%d", add_accumulator(&translation, &recipe->accumulators[i]));
	}
	if (translation.needs_guard)
		paths[2] = psprintf("a%d", add_accumulator(&translation, &recipe->guard));
	add_output(&translation, paths);
	return true;
}
