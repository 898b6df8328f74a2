/*-------------------------------------------------------------------------
 *
 * expression_compare.c
 *		Comparisons in aggregation expressions.
 *
 * MongoDB orders values of all types: missing and null below NaN, NaN below
 * numbers.  In SQL a comparison with NULL is NULL, and NaN is above numbers.
 *
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "comparison.h"
#include "expression_parts.h"
#include "nan_bound.h"
#include "strategy.h"
#include "types.h"

#include "catalog/pg_collation_d.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"

/* Both sides of a comparison. */
typedef struct Operands
{
	MongoValue	values[4];		/* those that are compared; of two dates as
								 * documents have them, their midnights as
								 * well */
	const char *test;			/* template: TRUE, FALSE, or whatever if one
								 * is null */
} Operands;

int
mongo_comparison_strategy(Oid operator)
{
	Oid			left;
	Oid			right;

	op_input_types(operator, &left, &right);
	if (!mongo_types_compare(left, right) ||
		mongo_kinds[mongo_kind_of_type(left)->class].normal_form == NULL)
		return 0;
	return mongo_default_strategy(operator, left);
}

bool
mongo_collation_suits(Oid collation, int flags)
{
	if (flags & MONGO_ROW_C_COLLATION)
		return OidIsValid(collation) && mongo_collate_is_c(collation) &&
			mongo_ctype_is_c(collation);
	if (flags & MONGO_ROW_BYTEWISE)
		return OidIsValid(collation) && get_collation_isdeterministic(collation);
	return true;
}

/*
 * operand: a side of a comparison in a form whose order is PostgreSQL's; NULLs
 * and NaNs apart.
 */
static bool
operand(const MongoScope *scope, Node *node, MongoValue *value)
{
	return mongo_value_of_node(scope, node, value) &&
		(mongo_kind_of_type(value->type)->compares_raw || mongo_normalize(scope, value));
}

/* raise_nan: NaN above all numbers. */
static void
raise_nan(MongoValue *value)
{
	if (!value->nan)
		return;
	value->expression = mongo_expand_template("{$cond: [{$eq: [@1, NaN]}, max, @1]}", value, 1);
	value->atomic = false;
}

/*
 * raise_nans: of both sides.  Where another condition keeps a column from being
 * NaN, the greater side need not ask; the lesser one may be that condition.
 */
static void
raise_nans(const MongoScope *scope, int strategy, Node *left, Node *right, MongoValue *values)
{
	List	   *without_nan = scope->translation->without_nan;
	bool		left_is_less = mongo_is_upper_bound(strategy);

	if (left_is_less || !mongo_is_without_nan(without_nan, left))
		raise_nan(&values[0]);
	if (!left_is_less || !mongo_is_without_nan(without_nan, right))
		raise_nan(&values[1]);
}

/*
 * local_operand: the right side, a value that PostgreSQL knows.  Of dates and
 * timestamps it may be one that BSON has not.
 */
static bool
local_operand(const MongoScope *scope, int strategy, Node *node, MongoValue *value)
{
	Oid			type = exprType(node);

	if (type == TIMESTAMPOID || type == TIMESTAMPTZOID || type == DATEOID)
		return mongo_date_bound(scope, strategy, node, value);
	return operand(scope, node, value);
}

static bool
is_local(const MongoScope *scope, Node *node)
{
	return mongo_is_local_value(scope->translation, node);
}

/*
 * Dates that documents have with any time of their days: what $dateTrunc gives
 * for both need not be asked where the plain difference tells, as it does where
 * it is a day or more.  @1 and @2 are the values, @3 and @4 their midnights, of
 * which one is enough for an order: a is before the day of b if and only if it
 * is before its midnight.
 */
#define DAY			"86400000"
#define DISTANCE	"{$abs: {$subtract: [@1, @2]}}"

static const char *const day_tests[] = {
	[BTLessStrategyNumber] = "{$and: [{$lt: [@1, @2]}, "
	"{$or: [{$gte: [{$subtract: [@2, @1]}, " DAY "]}, {$lt: [@1, @4]}]}]}",
	[BTLessEqualStrategyNumber] = "{$or: [{$lte: [@1, @2]}, "
	"{$and: [{$lt: [{$subtract: [@1, @2]}, " DAY "]}, {$lte: [@3, @2]}]}]}",
	[BTEqualStrategyNumber] = "{$and: [{$lt: [" DISTANCE ", " DAY "]}, {$eq: [@3, @4]}]}",
	[BTGreaterEqualStrategyNumber] = "{$or: [{$gte: [@1, @2]}, "
	"{$and: [{$lt: [{$subtract: [@2, @1]}, " DAY "]}, {$gte: [@1, @4]}]}]}",
	[BTGreaterStrategyNumber] = "{$and: [{$gt: [@1, @2]}, "
	"{$or: [{$gte: [{$subtract: [@1, @2]}, " DAY "]}, {$gt: [@3, @2]}]}]}",
	[MONGO_STRATEGY_NOT_EQUAL] = "{$or: [{$gte: [" DISTANCE ", " DAY "]}, {$ne: [@3, @4]}]}",
};

/* day_operands: of dates that are both a document's. */
static bool
day_operands(const MongoScope *scope, int strategy, Node *left, Node *right,
			 Operands *operands)
{
	MongoValue *values = operands->values;

	if (!mongo_value_of_node(scope, left, &values[0]) ||
		!mongo_value_of_node(scope, right, &values[1]))
		return false;
	values[2] = values[0];
	values[3] = values[1];
	if (!mongo_normalize(scope, &values[2]) || !mongo_normalize(scope, &values[3]))
		return false;
	if (values[0].raw && values[0].atomic && values[1].raw && values[1].atomic)
		operands->test = day_tests[strategy];
	else
	{
		values[0] = values[2];
		values[1] = values[3];
	}
	return true;
}

/* find_operands: both sides, and how to compare them. */
static bool
find_operands(const MongoScope *scope, int strategy, Node *left, Node *right,
			  Oid collation, Operands *operands)
{
	MongoValue *values = operands->values;
	MongoScope	inner = *scope;
	bool		is_text;

	memset(operands, 0, sizeof(*operands));
	operands->test = psprintf("{%s: [@1, @2]}", mongo_find_operators[strategy]);
	inner.scale = false;
	inner.guarded = false;
	if (getBaseType(exprType(left)) == DATEOID && getBaseType(exprType(right)) == DATEOID &&
		!is_local(scope, left) && !is_local(scope, right))
		return day_operands(&inner, strategy, left, right, operands);
	is_text = mongo_compares_text(exprType(left));
	if (is_text && !mongo_collation_suits(collation, mongo_asks_for_order(strategy) ?
										  MONGO_ROW_C_COLLATION : MONGO_ROW_BYTEWISE))
		return false;
	if (!(is_local(scope, left) ?
		  local_operand(&inner, mongo_commuted_strategy(strategy), left, &values[0]) :
		  operand(&inner, left, &values[0])) ||
		!(is_local(scope, right) ?
		  local_operand(&inner, strategy, right, &values[1]) :
		  operand(&inner, right, &values[1])))
		return false;
	if (is_text)
		scope->translation->compares_text = true;
	if (mongo_asks_for_order(strategy))
		raise_nans(scope, strategy, left, right, values);
	return true;
}

static void
set_comparison(MongoValue *value, const char *template, const Operands *operands, bool nullable)
{
	memset(value, 0, sizeof(*value));
	value->expression = mongo_expand_template(template, operands->values,
											  lengthof(operands->values));
	value->type = BOOLOID;
	value->typmod = -1;
	value->nullable = nullable;
}

bool
mongo_compare(const MongoScope *scope, int strategy, Node *left, Node *right,
			  Oid collation, MongoValue *value)
{
	Operands	operands;
	const MongoValue *values = operands.values;
	const char *test;

	if (!find_operands(scope, strategy, left, right, collation, &operands))
		return false;
	test = operands.test;
	if (values[0].nullable && values[1].nullable)
		test = psprintf("{$cond: [{$and: [{$gt: [@1, null]}, {$gt: [@2, null]}]}, %s, null]}",
						test);
	else if (values[0].nullable || values[1].nullable)
		test = psprintf("{$cond: [{$gt: [@%d, null]}, %s, null]}",
						values[0].nullable ? 1 : 2, test);
	set_comparison(value, test, &operands, values[0].nullable || values[1].nullable);
	return true;
}

bool
mongo_compare_test(const MongoScope *scope, int strategy, Node *left, Node *right,
				   Oid collation, MongoValue *value)
{
	Operands	operands;
	const MongoValue *values = operands.values;
	bool		guards[2];
	const char *test;

	if (!find_operands(scope, strategy, left, right, collation, &operands))
		return false;
	test = operands.test;

	/* null is below all else, so one side's is often enough */
	guards[0] = values[0].nullable;
	guards[1] = values[1].nullable;
	if (strategy == BTEqualStrategyNumber)
		guards[0] = guards[1] = guards[0] && guards[1];
	else if (strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber)
		guards[1] = false;
	else if (strategy != MONGO_STRATEGY_NOT_EQUAL)
		guards[0] = false;
	if (strategy == BTEqualStrategyNumber)
		guards[1] = false;

	if (guards[0] && guards[1])
		test = psprintf("{$and: [{$gt: [@1, null]}, {$gt: [@2, null]}, %s]}", test);
	else if (guards[0] || guards[1])
		test = psprintf("{$and: [{$gt: [@%d, null]}, %s]}", guards[0] ? 1 : 2, test);
	set_comparison(value, test, &operands, false);
	return true;
}

bool
mongo_same(const MongoScope *scope, Oid operator, List *args, Oid collation,
		   MongoValue *value)
{
	Operands	operands;
	bool		has_midnights;

	if (mongo_comparison_strategy(operator) != BTEqualStrategyNumber ||
		!find_operands(scope, BTEqualStrategyNumber, linitial(args), lsecond(args),
					   collation, &operands))
		return false;
	has_midnights = operands.values[2].expression != NULL;
	set_comparison(value, has_midnights ? "{$eq: [{$ifNull: [@3, null]}, {$ifNull: [@4, null]}]}" :
				   "{$eq: [{$ifNull: [@1, null]}, {$ifNull: [@2, null]}]}", &operands, false);
	return true;
}
