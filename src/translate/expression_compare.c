/*-------------------------------------------------------------------------
 *
 * expression_compare.c
 *		Comparisons, lists and choices as aggregation expressions.
 *
 * Both sides of a comparison are first brought to forms that MongoDB orders as PostgreSQL does
 * (find_operands()); guards around the comparison then handle NULLs.  Dates that BSON lacks come
 * first, then comparisons, arrays, and CASE and the like.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "convert.h"

#include "access/stratnum.h"
#include "catalog/pg_collation_d.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/date.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/*-------------------------------------------------------------------------
 * Values that are not from the document, compared with dates and timestamps of the document.
 *
 * BSON has milliseconds.  A value between two milliseconds is moved to the one that divides
 * all milliseconds in the same way.  Infinities become the first and the last Date of BSON,
 * which are outside the range that a column reads.
 *-------------------------------------------------------------------------
 */

/* Tells whether the next whole millisecond gives the same result, as for "<" and ">=". */
static bool
rounds_up(int strategy)
{
	return strategy == BTLessStrategyNumber || strategy == BTGreaterEqualStrategyNumber;
}

static bool
rounds_down(int strategy)
{
	return strategy == BTLessEqualStrategyNumber || strategy == BTGreaterStrategyNumber;
}

/* Converts a constant to a Date; returns false if no Date suits the operator. */
static bool
constant_bound(int strategy, const Const *constant, MongoValue *value)
{
	Timestamp	timestamp;
	int64		millis;

	if (mongo_literal(constant, value))
		return true;
	if (constant->consttype == DATEOID)
		timestamp = DATE_IS_NOEND(DatumGetDateADT(constant->constvalue)) ? DT_NOEND : DT_NOBEGIN;
	else
		timestamp = DatumGetTimestamp(constant->constvalue);

	if (TIMESTAMP_NOT_FINITE(timestamp))
		millis = TIMESTAMP_IS_NOEND(timestamp) ? PG_INT64_MAX : PG_INT64_MIN;
	else if (rounds_up(strategy) || rounds_down(strategy))
		millis = mongo_timestamp_to_millis(timestamp, NULL) + rounds_up(strategy);
	else
		return false;
	*value = mongo_argument(mongo_date(millis));
	value->type = constant->consttype;
	return true;
}

/* Translates x of "field OP x", a date or timestamp that PostgreSQL evaluates. */
static bool
date_bound(const MongoScope *scope, int strategy, Node *node, MongoValue *value)
{
	Oid			type = exprType(node);

	if (IsA(node, Const))
		return constant_bound(strategy, (Const *) node, value);

	/* not by adding an interval, which could be out of range */
	if (type != DATEOID && rounds_up(strategy))
		node = (Node *) makeRelabelType((Expr *) node, type, MONGO_TYPMOD_ROUND_UP, InvalidOid,
										COERCE_IMPLICIT_CAST);
	if ((type != DATEOID && !rounds_up(strategy) && !rounds_down(strategy)) ||
		!mongo_variable(scope, node, value))
		return false;
	value->typmod = -1;
	return true;
}

/*-------------------------------------------------------------------------
 * Comparisons in aggregation expressions.
 *
 * MongoDB orders values of all types: missing and null below NaN, NaN below
 * numbers.  In SQL a comparison with NULL is NULL, and NaN is above numbers.
 *
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 *-------------------------------------------------------------------------
 */

/* Both sides of a comparison. */
typedef struct Operands
{
	MongoValue	values[4];		/* the values compared; and if these are two
								 * dates as documents store them, their
								 * midnights */
	const char *test;			/* template: TRUE or FALSE; undefined if one
								 * is null */
} Operands;

/*
 * mongo_comparison_strategy
 *		Returns the strategy of an operator that compares values by the default order of types with
 *		a normal form; 0 for any other operator.
 */
int
mongo_comparison_strategy(Oid opno)
{
	Oid			left;
	Oid			right;

	op_input_types(opno, &left, &right);
	if (!mongo_types_compare(left, right) ||
		mongo_kinds[mongo_kind_of_type(left)->compared_as].normal_form == NULL)
		return 0;
	return mongo_default_strategy(opno, left);
}

/*
 * mongo_text_suits
 *		Tells whether MongoDB can compare texts as under the collation.  True of other types.
 */
bool
mongo_text_suits(const MongoScope *scope, Oid type, Oid collation, bool ordered)
{
	return !mongo_compares_text(type) ||
		(mongo_collation_suits(collation, ordered) && mongo_compare_text(scope->translation));
}

/*
 * mongo_make_comparable
 *		Brings a value to a form that MongoDB orders like PostgreSQL, except for NULLs and NaNs;
 *		returns false if it has none.
 */
bool
mongo_make_comparable(const MongoScope *scope, MongoValue *value)
{
	return mongo_kind_of_type(value->type)->compares_raw || mongo_normalize(scope, value);
}

/* Translates a side of a comparison. */
static bool
operand(const MongoScope *scope, Node *node, MongoValue *value)
{
	return mongo_value_of_node(scope, node, value) && mongo_make_comparable(scope, value);
}

/* Replaces NaN by a value above all numbers. */
static void
raise_nan(MongoValue *value)
{
	if (!value->nan)
		return;
	value->expression = mongo_expand_template("{$cond: [{$eq: [@1, NaN]}, max, @1]}", value, 1);
}

/*
 * Translates the right side, a value that PostgreSQL evaluates.  A date or timestamp may be one
 * that BSON lacks.
 */
static bool
local_operand(const MongoScope *scope, int strategy, Node *node, MongoValue *value)
{
	Oid			type = exprType(node);

	if (type == TIMESTAMPOID || type == TIMESTAMPTZOID || type == DATEOID)
		return date_bound(scope, strategy, node, value);
	return operand(scope, node, value);
}

static bool
is_local(const MongoScope *scope, Node *node)
{
	return mongo_is_local_value(scope->translation, node);
}

/*
 * Comparing dates of documents, which may have any time of day.
 *
 * The midnights are evaluated only if the values differ by less than a day.  One midnight is
 * enough for an order: a is before the day of b if and only if a is before the midnight of b.
 */
#define MIDNIGHT(a) "{$dateTrunc: {date: " a ", unit: 'day'}}"
#define DAY_BEFORE(a, b) \
	"{$and: [{$lt: [" a ", " b "]}, " \
	"{$or: [{$gte: [{$subtract: [" b ", " a "]}, 86400000]}, {$lt: [" a ", " MIDNIGHT(b) "]}]}]}"
#define SAME_DAY \
	"{$and: [{$lt: [{$abs: {$subtract: [@1, @2]}}, 86400000]}, " \
	"{$eq: [" MIDNIGHT("@1") ", " MIDNIGHT("@2") "]}]}"
#define NOT(test)	"{$not: [" test "]}"

static const char *const day_tests[] = {
	[BTLessStrategyNumber] = DAY_BEFORE("@1", "@2"),
	[BTLessEqualStrategyNumber] = NOT(DAY_BEFORE("@2", "@1")),
	[BTEqualStrategyNumber] = SAME_DAY,
	[BTGreaterEqualStrategyNumber] = NOT(DAY_BEFORE("@1", "@2")),
	[BTGreaterStrategyNumber] = DAY_BEFORE("@2", "@1"),
	[MONGO_STRATEGY_NOT_EQUAL] = NOT(SAME_DAY),
};

/* Finds the operands of a comparison of two dates of the document. */
static bool
day_operands(const MongoScope *scope, int strategy, Node *left, Node *right, Operands *operands)
{
	MongoValue *values = operands->values;

	if (!mongo_value_of_node(scope, left, &values[0]) ||
		!mongo_value_of_node(scope, right, &values[1]))
		return false;
	values[2] = values[0];
	values[3] = values[1];
	operands->test = day_tests[strategy];
	return mongo_normalize(scope, &values[2]) && mongo_normalize(scope, &values[3]);
}

/* Finds both sides, and how to compare them. */
static bool
find_operands(const MongoScope *scope, int strategy, Node *left, Node *right,
			  Oid collation, Operands *operands)
{
	MongoValue *values = operands->values;
	MongoScope	inner = mongo_inner_scope(scope);

	memset(operands, 0, sizeof(*operands));
	operands->test = psprintf("{%s: [@1, @2]}", mongo_find_operators[strategy]);
	if (mongo_base_type(exprType(left)) == DATEOID && mongo_base_type(exprType(right)) == DATEOID &&
		!is_local(scope, left) && !is_local(scope, right))
		return day_operands(&inner, strategy, left, right, operands);
	if (!mongo_text_suits(scope, exprType(left), collation, mongo_asks_for_order(strategy)) ||
		!(is_local(scope, left) ?
		  local_operand(&inner, mongo_commuted_strategy(strategy), left, &values[0]) :
		  operand(&inner, left, &values[0])) ||
		!(is_local(scope, right) ?
		  local_operand(&inner, strategy, right, &values[1]) :
		  operand(&inner, right, &values[1])))
		return false;
	if (mongo_asks_for_order(strategy))
	{
		raise_nan(&values[0]);
		raise_nan(&values[1]);
	}
	return true;
}

/*
 * mongo_compare
 *		Translates "left OP right" with three truth values; returns false if it is not shippable.
 *
 * OP is a strategy of mongo_find_operators; the types of the two nodes share an operator family.
 */
bool
mongo_compare(const MongoScope *scope, int strategy, Node *left, Node *right,
			  Oid collation, MongoValue *value)
{
	Operands	operands;
	const MongoValue *values = operands.values;

	if (!find_operands(scope, strategy, left, right, collation, &operands))
		return false;
	*value = mongo_result(mongo_guard_template(operands.test, values, 2), values,
						  lengthof(operands.values), BOOLOID,
						  values[0].nullable || values[1].nullable);
	return true;
}

/*
 * mongo_compare_test
 *		Translates "left OP right" as a test for TRUE, see mongo_test_of_node().
 */
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

	/* null is below all other values, so one check is often enough */
	guards[0] = values[0].nullable &&
		(mongo_is_upper_bound(strategy) || strategy == MONGO_STRATEGY_NOT_EQUAL ||
		 (strategy == BTEqualStrategyNumber && values[1].nullable));
	guards[1] = values[1].nullable && strategy != BTEqualStrategyNumber &&
		!mongo_is_upper_bound(strategy);
	if (guards[0] && guards[1])
		test = psprintf("{$and: [{$gt: [@1, null]}, {$gt: [@2, null]}, %s]}", test);
	else if (guards[0] || guards[1])
		test = psprintf("{$and: [{$gt: [@%d, null]}, %s]}", guards[0] ? 1 : 2, test);
	*value = mongo_result(test, values, lengthof(operands.values), BOOLOID, false);
	return true;
}

/*
 * mongo_distinct_test
 *		Translates IS DISTINCT FROM, as mongo_test_of_node() does.
 */
bool
mongo_distinct_test(const MongoScope *scope, DistinctExpr *node, bool wanted, MongoValue *value)
{
	Operands	operands;

	/* the operator must be "="; two NULLs are not distinct */
	if (mongo_comparison_strategy(node->opno) != BTEqualStrategyNumber ||
		!find_operands(scope, BTEqualStrategyNumber, linitial(node->args), lsecond(node->args),
					   node->inputcollid, &operands))
		return false;
	*value = mongo_result(wanted ? "{$ne: [{$ifNull: [@1, null]}, {$ifNull: [@2, null]}]}" :
						  "{$eq: [{$ifNull: [@1, null]}, {$ifNull: [@2, null]}]}",
						  &operands.values[operands.values[2].expression != NULL ? 2 : 0], 2,
						  BOOLOID, false);
	return true;
}

/*-------------------------------------------------------------------------
 * Arrays in aggregation expressions: membership, size, elements.
 *
 * An array in a document may have several dimensions, as arrays in arrays.  Most of SQL's
 * operators treat them as one list of elements.
 *-------------------------------------------------------------------------
 */

/*
 * Translates an array as documents store it, unless an Array in it may be one of its elements, such
 * as a jsonb or a point.
 */
static bool
stored_array(const MongoScope *scope, Node *node, MongoValue *value)
{
	const MongoType *element = mongo_type_lookup(mongo_base_type(get_base_element_type(exprType(node))));

	return element != NULL && (element->accepts & MONGO_BSON_BIT(BSON_TYPE_ARRAY)) == 0 &&
		mongo_value_of_node(scope, node, value) && value->raw;
}

/* Turns all dimensions, at most as many as PostgreSQL has, into one. */
static void
flatten(MongoValue *value)
{
	for (int i = 1; i < MAXDIM; i++)
	{
		value->expression =
			mongo_expand_template("{$cond: [{$isArray: [{$first: @1}]}, "
								  "{$reduce: {input: @1, initialValue: [], "
								  "in: {$concatArrays: ['$$value', '$$this']}}}, @1]}", value, 1);
	}
}

/* Converts each element to normal form, and NULL to null. */
static bool
normalize_elements(const MongoScope *scope, Oid element, MongoValue *value)
{
	MongoValue	each = {
		.expression = mongo_expression("'$$this'"),
		.type = element, .typmod = value->typmod, .raw = true
	};
	MongoValue	values[2];

	if (!mongo_normalize(scope, &each))
		return false;
	values[0] = *value;
	values[1] = each;
	value->expression = mongo_expand_template("{$map: {input: @1, in: {$ifNull: [@2, null]}}}",
											  values, 2);
	return true;
}

/* Translates an array to an array of its elements in one dimension. */
static bool
elements_of_node(const MongoScope *scope, Node *node, MongoValue *value)
{
	MongoScope	inner = mongo_inner_scope(scope);
	Oid			element = get_base_element_type(exprType(node));

	if (!OidIsValid(element) || !mongo_has_normal_form(element))
		return false;
	if (IsA(node, Const))
		return mongo_literal((Const *) node, value);
	if (!stored_array(&inner, node, value))
		return false;
	flatten(value);
	return normalize_elements(&inner, element, value);
}

/* = ANY and <> ALL: is the value among the elements? */
#define AMONG \
	"{$switch: {branches: [" \
	"{case: {$lte: [@2, null]}, then: null}, " \
	"{case: {$eq: [{$size: @2}, 0]}, then: %s}, " \
	"{case: {$lte: [@1, null]}, then: null}, " \
	"{case: {$in: [@1, @2]}, then: %s}, " \
	"{case: {$in: [null, @2]}, then: null}], default: %s}}"

/* Returns a shorter template than AMONG for a constant array; NULL for any other. */
static const char *
constant_template(const ScalarArrayOpExpr *node, bool nullable)
{
	const char *in = node->useOr ? "{$in: [@1, @2]}" : "{$not: [{$in: [@1, @2]}]}";
	const Const *constant = lsecond(node->args);
	ArrayType  *array;

	if (!IsA(constant, Const) || constant->constisnull)
		return NULL;
	array = DatumGetArrayTypeP(constant->constvalue);
	if (ARR_NDIM(array) == 0)
		return in;
	if (array_contains_nulls(array))
		return psprintf("{$cond: [{$and: [{$gt: [@1, null]}, {$in: [@1, @2]}]}, %s, null]}",
						node->useOr ? "true" : "false");
	return nullable ? psprintf("{$cond: [{$gt: [@1, null]}, %s, null]}", in) : in;
}

/*
 * mongo_array_comparison
 *		Translates = ANY and <> ALL with three truth values, a part of mongo_value_of_node().
 */
bool
mongo_array_comparison(const MongoScope *scope, ScalarArrayOpExpr *node, MongoValue *value)
{
	int			strategy = mongo_comparison_strategy(node->opno);
	Node	   *array_node = lsecond(node->args);
	Oid			element = get_base_element_type(exprType(array_node));
	MongoScope	inner = mongo_inner_scope(scope);
	MongoValue	values[2];
	const char *template;

	if (strategy != (node->useOr ? BTEqualStrategyNumber : MONGO_STRATEGY_NOT_EQUAL) ||
		!mongo_normal_value_of_node(&inner, linitial(node->args), &values[0]) ||
		!mongo_types_compare(element, values[0].type) ||
		!elements_of_node(&inner, array_node, &values[1]) ||
		!mongo_text_suits(scope, element, node->inputcollid, false))
		return false;

	template = constant_template(node, values[0].nullable);
	if (template == NULL)
		template = node->useOr ? psprintf(AMONG, "false", "true", "false") :
			psprintf(AMONG, "true", "false", "true");
	*value = mongo_result(template, values, 2, BOOLOID, true);
	return true;
}

/* @> (the first array contains the second), <@ and && */
#define CONTAINS	"{$and: [{$not: [{$in: [null, @2]}]}, {$setIsSubset: [@2, @1]}]}"
#define CONTAINED	"{$and: [{$not: [{$in: [null, @1]}]}, {$setIsSubset: [@1, @2]}]}"
#define OVERLAPS	"{$gt: [{$size: {$setDifference: [{$setIntersection: [@1, @2]}, [null]]}}, 0]}"

/* Translates @>, <@ and && of arrays by the template of their row. */
static bool
translate_sets(const MongoCall *call, MongoValue *result)
{
	MongoValue	values[2];
	Oid			element = get_base_element_type(exprType(linitial(call->args)));

	if (!elements_of_node(call->scope, linitial(call->args), &values[0]) ||
		!elements_of_node(call->scope, lsecond(call->args), &values[1]) ||
		!mongo_text_suits(call->scope, element, call->collation, false))
		return false;
	*result = mongo_result(mongo_guard_template(call->row->text, values, 2), values, 2, BOOLOID,
						   true);
	return true;
}

static bool
translate_cardinality(const MongoCall *call, MongoValue *result)
{
	MongoValue	array;

	if (!stored_array(call->scope, linitial(call->args), &array))
		return false;
	flatten(&array);
	*result = mongo_result(mongo_guard_template("{$size: @1}", &array, 1), &array, 1, INT4OID, true);
	return true;
}

/* Tells whether it is the constant 1, a dimension that every array has unless it is empty. */
static bool
is_constant_one(Node *node)
{
	const Const *constant = (Const *) node;

	return IsA(node, Const) && !constant->constisnull && constant->consttype == INT4OID &&
		DatumGetInt32(constant->constvalue) == 1;
}

/* Translates array_length(array, 1) and array_upper(array, 1); arrays of documents begin at 1. */
static bool
translate_length(const MongoCall *call, MongoValue *result)
{
	MongoValue	array;

	if (!is_constant_one(lsecond(call->args)) ||
		!mongo_value_of_node(call->scope, linitial(call->args), &array) || !array.raw)
		return false;
	*result = mongo_result("{$cond: [{$gt: [@1, []]}, {$size: @1}, null]}", &array, 1, INT4OID,
						   true);
	return true;
}

/*
 * mongo_array_element
 *		Translates array[i], a part of mongo_value_of_node(): NULL for an array of several
 *		dimensions, and for i out of bounds.
 */
bool
mongo_array_element(const MongoScope *scope, SubscriptingRef *node, MongoValue *value)
{
	MongoScope	inner = mongo_inner_scope(scope);
	MongoValue	values[2];

	if (node->reflowerindexpr != NIL || node->refassgnexpr != NULL ||
		list_length(node->refupperindexpr) != 1 ||
		!OidIsValid(get_element_type(node->refcontainertype)) ||
		!stored_array(&inner, (Node *) node->refexpr, &values[0]) ||
		!mongo_normal_value_of_node(&inner, linitial(node->refupperindexpr), &values[1]))
		return false;
	*value = mongo_result("{$let: {vars: {e: {$cond: [{$gt: [@2, 0]}, "
						  "{$arrayElemAt: [@1, {$subtract: [@2, 1]}]}, null]}}, "
						  "in: {$cond: [{$isArray: '$$e'}, null, '$$e']}}}", values, 2,
						  node->refrestype, true);
	value->typmod = node->reftypmod;
	value->raw = true;
	value->nan = mongo_kind_of_type(value->type)->has_nan;
	return true;
}

const MongoExpressionRow mongo_array_rows[] =
{
	{{F_ARRAYCONTAINS}, CONTAINS, .translate = translate_sets},
	{{F_ARRAYCONTAINED}, CONTAINED, .translate = translate_sets},
	{{F_ARRAYOVERLAP}, OVERLAPS, .translate = translate_sets},
	{{F_CARDINALITY}, .translate = translate_cardinality},
	{{F_ARRAY_LENGTH, F_ARRAY_UPPER}, .translate = translate_length},
	{.functions = {InvalidOid}}
};

/*-------------------------------------------------------------------------
 * CASE, COALESCE, NULLIF, GREATEST and LEAST in aggregation expressions.
 *
 * $cond, $switch and $ifNull evaluate only the value that they choose, as SQL does.
 *-------------------------------------------------------------------------
 */

/*
 * Translates a value that may become the result.  Its reader gets the result's type, but not the
 * typmod to which the column would have rounded.
 */
static bool
one_of_several(const MongoScope *scope, Node *node, MongoValue *value)
{
	if (!mongo_value_of_node(scope, node, value))
		return false;
	if (value->type == NUMERICOID || mongo_reading_changes(value->type, value->typmod))
		return mongo_normalize(scope, value);
	return true;
}

static MongoValue
begin_alternatives(const void *node)
{
	return (MongoValue)
	{
		.type = exprType(node), .typmod = -1, .digits = {.known = true}
	};
}

/* Widens the properties of the result by those of one more value. */
static void
add_alternative(MongoValue *result, const MongoValue *alternative)
{
	result->digits.known &= alternative->digits.known;
	result->digits.integral = Max(result->digits.integral, alternative->digits.integral);
	result->digits.scale = Max(result->digits.scale, alternative->digits.scale);
	result->raw |= alternative->raw;
	result->nullable |= alternative->nullable;
	result->nan |= alternative->nan;
}

/*
 * Wraps a value that is repeated.  MongoDB 6.0's $group fails on the same field or variable as
 * several results of one operator ("duplicate field", 4822806).
 */
static void
make_distinct(List **earlier, MongoValue *value)
{
	ListCell   *cell;
	bool		is_repeated = false;

	if (mongo_first_value(value->expression).value_type != BSON_TYPE_UTF8)
		return;
	foreach(cell, *earlier)
		is_repeated |= bson_equal(lfirst(cell), value->expression);
	*earlier = lappend(*earlier, value->expression);
	if (is_repeated)
		value->expression = mongo_expand_template("{$ifNull: [@1, null]}", value, 1);
}

/* Copies the tree, with the CASE's operand in place of its placeholder. */
static Node *
replace_case_test(Node *node, void *argument)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, CaseTestExpr))
		return argument;

	/* an inner CASE has placeholders of its own */
	if (IsA(node, CaseExpr) && ((CaseExpr *) node)->arg != NULL)
		return node;
	return expression_tree_mutator(node, replace_case_test, argument);
}

/* Appends one WHEN of CASE, whose operand is bound if it has one. */
static bool
append_branch(const MongoScope *scope, const CaseExpr *node, int index, BsonArray *branches,
			  List **earlier, MongoValue *result)
{
	CaseWhen   *when = list_nth_node(CaseWhen, node->args, index);
	Node	   *condition = (Node *) when->expr;
	MongoScope	lazy = *scope;
	MongoScope	asked = mongo_inner_scope(scope);
	MongoValue	test;
	MongoValue	chosen;

	if (node->arg != NULL)
		condition = replace_case_test(condition, node->arg);
	lazy.lazy = true;
	asked.lazy |= index > 0;
	if (!mongo_test_of_node(&asked, condition, true, &test) ||
		!one_of_several(&lazy, (Node *) when->result, &chosen))
		return false;
	add_alternative(result, &chosen);
	make_distinct(earlier, &chosen);
	mongo_array_append_template(branches, "{case: @1, then: @2}",
								mongo_first_value(test.expression), mongo_first_value(chosen.expression));
	return true;
}

/* Translates CASE to $switch; branches after the first may not be evaluated. */
static bool
choose_case(const MongoScope *scope, const CaseExpr *node, MongoValue *result)
{
	MongoScope	lazy = *scope;
	List	   *earlier = NIL;
	BsonArray	branches = mongo_array_create();
	bson_value_t by_default = mongo_null();

	*result = begin_alternatives(node);
	for (int i = 0; i < list_length(node->args); i++)
	{
		if (!append_branch(scope, node, i, &branches, &earlier, result))
			return false;
	}
	if (node->defresult == NULL)
		result->nullable = true;
	else
	{
		MongoValue	otherwise;

		lazy.lazy = true;
		if (!one_of_several(&lazy, (Node *) node->defresult, &otherwise))
			return false;
		add_alternative(result, &otherwise);
		make_distinct(&earlier, &otherwise);
		by_default = mongo_first_value(otherwise.expression);
	}
	result->expression = mongo_expression("{$switch: {branches: @1, default: @2}}",
										  mongo_array(branches.bson), by_default);
	return true;
}

static bool
translate_case(const MongoScope *scope, const CaseExpr *node, MongoValue *result)
{
	MongoLet	let = {.outer = scope->translation->computed};
	bool		done = (node->arg == NULL || mongo_bind(scope, (Node *) node->arg, &let)) &&
		choose_case(scope, node, result);

	result->expression = mongo_let(scope->translation, &let, done ? result->expression : NULL);
	return done;
}

/* Translates COALESCE to $ifNull. */
static bool
translate_coalesce(const MongoScope *scope, const CoalesceExpr *node, MongoValue *result)
{
	MongoScope	lazy = *scope;
	List	   *earlier = NIL;
	bool		nullable = true;
	BsonArray	operands = mongo_array_create();
	ListCell   *cell;

	*result = begin_alternatives(node);
	if (list_length(node->args) == 1)
		return one_of_several(scope, linitial(node->args), result);
	foreach(cell, node->args)
	{
		MongoValue	one;

		if (!one_of_several(&lazy, lfirst(cell), &one))
			return false;
		add_alternative(result, &one);
		nullable &= one.nullable;
		make_distinct(&earlier, &one);
		mongo_array_append(&operands, mongo_first_value(one.expression));
		lazy.lazy = true;
	}
	result->expression = mongo_expression("{$ifNull: @1}", mongo_array(operands.bson));
	result->nullable = nullable;
	return true;
}

static bool
translate_nullif(const MongoScope *scope, const NullIfExpr *node, MongoValue *result)
{
	MongoScope	compared = mongo_inner_scope(scope);
	MongoLet	let = {.outer = scope->translation->computed};
	MongoValue	values[2];
	bool		done = mongo_comparison_strategy(node->opno) == BTEqualStrategyNumber &&
		mongo_bind(scope, linitial(node->args), &let) &&
		mongo_compare_test(&compared, BTEqualStrategyNumber, linitial(node->args),
						   lsecond(node->args), node->inputcollid, &values[0]) &&
		one_of_several(scope, linitial(node->args), &values[1]);

	*result = begin_alternatives(node);
	if (done)
	{
		add_alternative(result, &values[1]);
		result->nullable = true;
		result->expression = mongo_expand_template("{$cond: [@1, null, @2]}", values, 2);
	}
	result->expression = mongo_let(scope->translation, &let, result->expression);
	return done;
}

/* Turns the MaxKey that raise_nan() used back into NaN. */
static void
lower_nan(MongoValue *result)
{
	MongoValue	values[2] = {*result};

	if (!result->nan)
		return;
	if (result->type == NUMERICOID)
		values[1] = mongo_decimal_value("NaN");
	else
		values[1] = mongo_argument(mongo_double(get_float8_nan()));
	result->expression = mongo_expand_template("{$cond: [{$eq: [@1, max]}, @2, @1]}", values, 2);
}

/* Translates GREATEST and LEAST to $max and $min, which ignore null too; NaN is raised. */
static bool
translate_min_max(const MongoScope *scope, const MinMaxExpr *node, MongoValue *result)
{
	BsonArray	operands = mongo_array_create();
	ListCell   *cell;

	if (!mongo_has_normal_form(node->minmaxtype) ||
		!mongo_text_suits(scope, node->minmaxtype, node->inputcollid, true))
		return false;
	*result = begin_alternatives(node);
	foreach(cell, node->args)
	{
		MongoValue	one;

		if (!mongo_normal_value_of_node(scope, lfirst(cell), &one))
			return false;
		add_alternative(result, &one);
		raise_nan(&one);
		mongo_array_append(&operands, mongo_first_value(one.expression));
	}
	result->expression = mongo_expression(node->op == IS_GREATEST ? "{$max: @1}" : "{$min: @1}",
										  mongo_array(operands.bson));
	lower_nan(result);
	return true;
}

/*
 * mongo_choice_of_node
 *		Translates CASE, COALESCE, NULLIF, GREATEST and LEAST, a part of mongo_value_of_node().
 */
bool
mongo_choice_of_node(const MongoScope *scope, Node *node, MongoValue *value)
{
	switch (nodeTag(node))
	{
		case T_CaseExpr:
			return translate_case(scope, (CaseExpr *) node, value);
		case T_CoalesceExpr:
			return translate_coalesce(scope, (CoalesceExpr *) node, value);
		case T_NullIfExpr:
			return translate_nullif(scope, (NullIfExpr *) node, value);
		case T_MinMaxExpr:
			return translate_min_max(scope, (MinMaxExpr *) node, value);
		default:
			return false;
	}
}
