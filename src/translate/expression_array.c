/*-------------------------------------------------------------------------
 *
 * expression_array.c
 *		Arrays in aggregation expressions: membership, size, elements.
 *
 * A document's array may have several dimensions, as arrays in arrays, which
 * most of SQL's operators take as one list of elements.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "expression_parts.h"
#include "types.h"

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* set_array_result: whatever takes an array may be NULL. */
static void
set_array_result(MongoValue *value, Oid type, const char *template, const MongoValue *values,
				 int nvalues)
{
	memset(value, 0, sizeof(*value));
	value->expression = mongo_expand_template(template, values, nvalues);
	value->type = type;
	value->typmod = -1;
	value->nullable = true;
}

/* flatten: as many dimensions as PostgreSQL has, into one. */
static void
flatten(MongoValue *value)
{
	for (int i = 1; i < MAXDIM; i++)
	{
		value->expression =
			mongo_expand_template("{$cond: [{$isArray: [{$first: @1}]}, "
								  "{$reduce: {input: @1, initialValue: [], "
								  "in: {$concatArrays: ['$$value', '$$this']}}}, @1]}", value, 1);
		value->atomic = false;
	}
}

/* normalize_elements: each element in the normal form of its type, NULLs as null. */
static bool
normalize_elements(const MongoScope *scope, Oid element, MongoValue *value)
{
	MongoValue	each = {
		.expression = mongo_expression("'$$this'"),
		.type = element, .typmod = value->typmod, .raw = true, .atomic = true
	};
	MongoValue	values[2];

	if (!mongo_normalize(scope, &each))
		return false;
	values[0] = *value;
	values[1] = each;
	value->expression = mongo_expand_template("{$map: {input: @1, in: {$ifNull: [@2, null]}}}",
											  values, 2);
	value->atomic = false;
	return true;
}

/* elements_of_node: the elements of an array, as an array of one dimension. */
static bool
elements_of_node(const MongoScope *scope, Node *node, MongoValue *value)
{
	MongoScope	inner = *scope;
	Oid			element = get_base_element_type(exprType(node));

	inner.scale = false;
	inner.guarded = false;
	if (!OidIsValid(element) || !mongo_has_normal_form(element))
		return false;
	if (IsA(node, Const))
		return mongo_literal((Const *) node, value);
	if (!mongo_value_of_node(&inner, node, value) || !value->raw)
		return false;
	flatten(value);
	return normalize_elements(&inner, element, value);
}

/* collation_suits: may the elements be compared byte by byte? */
static bool
collation_suits(const MongoScope *scope, Oid element, Oid collation)
{
	if (!mongo_compares_text(element))
		return true;
	if (!mongo_collation_suits(collation, MONGO_ROW_BYTEWISE))
		return false;
	scope->translation->compares_text = true;
	return true;
}

/* = ANY and <> ALL, by whether the value is among the elements */
#define AMONG \
	"{$switch: {branches: [" \
	"{case: {$lte: [@2, null]}, then: null}, " \
	"{case: {$eq: [{$size: @2}, 0]}, then: %s}, " \
	"{case: {$lte: [@1, null]}, then: null}, " \
	"{case: {$in: [@1, @2]}, then: %s}, " \
	"{case: {$in: [null, @2]}, then: null}], default: %s}}"

/* The same of a constant array without NULLs. */
static const char *
constant_template(const ScalarArrayOpExpr *node, const MongoValue *values)
{
	const char *in = node->useOr ? "{$in: [@1, @2]}" : "{$not: [{$in: [@1, @2]}]}";
	ArrayType  *array;

	if (values[1].constant == NULL || values[1].constant->constisnull)
		return NULL;
	array = DatumGetArrayTypeP(values[1].constant->constvalue);
	if (ARR_NDIM(array) == 0)
		return in;
	if (array_contains_nulls(array))
		return psprintf("{$cond: [{$and: [{$gt: [@1, null]}, {$in: [@1, @2]}]}, %s, null]}",
						node->useOr ? "true" : "false");
	return values[0].nullable ? psprintf("{$cond: [{$gt: [@1, null]}, %s, null]}", in) : in;
}

bool
mongo_array_comparison(const MongoScope *scope, ScalarArrayOpExpr *node,
					   MongoValue *value)
{
	int			strategy = mongo_comparison_strategy(node->opno);
	Node	   *array_node = lsecond(node->args);
	Oid			element = get_base_element_type(exprType(array_node));
	MongoScope	inner = *scope;
	MongoValue	values[2];
	const char *template;

	inner.scale = false;
	inner.guarded = false;
	if (strategy != (node->useOr ? BTEqualStrategyNumber : MONGO_STRATEGY_NOT_EQUAL) ||
		!mongo_normal_value_of_node(&inner, linitial(node->args), &values[0]) ||
		!mongo_types_compare(element, values[0].type) ||
		!elements_of_node(&inner, array_node, &values[1]) ||
		!collation_suits(scope, element, node->inputcollid))
		return false;

	template = constant_template(node, values);
	if (template == NULL)
		template = node->useOr ? psprintf(AMONG, "false", "true", "false") :
			psprintf(AMONG, "true", "false", "true");
	set_array_result(value, BOOLOID, template, values, 2);
	return true;
}

/* @> (the first has all of the second), <@ and && */
#define CONTAINS \
	"{$cond: [{$and: [{$gt: [@1, null]}, {$gt: [@2, null]}]}, " \
	"{$and: [{$not: [{$in: [null, @2]}]}, {$setIsSubset: [@2, @1]}]}, null]}"
#define CONTAINED \
	"{$cond: [{$and: [{$gt: [@1, null]}, {$gt: [@2, null]}]}, " \
	"{$and: [{$not: [{$in: [null, @1]}]}, {$setIsSubset: [@1, @2]}]}, null]}"
#define OVERLAPS \
	"{$cond: [{$and: [{$gt: [@1, null]}, {$gt: [@2, null]}]}, " \
	"{$gt: [{$size: {$setDifference: [{$setIntersection: [@1, @2]}, [null]]}}, 0]}, null]}"

/* translate_sets: @>, <@ and && of arrays, as their row says. */
static bool
translate_sets(const MongoCall *call, MongoValue *result)
{
	MongoValue	values[2];
	Oid			element = get_base_element_type(exprType(linitial(call->args)));

	if (!elements_of_node(call->scope, linitial(call->args), &values[0]) ||
		!elements_of_node(call->scope, lsecond(call->args), &values[1]) ||
		!collation_suits(call->scope, element, call->collation))
		return false;
	set_array_result(result, BOOLOID, call->row->template, values, 2);
	return true;
}

/* cardinality(array) */
static bool
translate_cardinality(const MongoCall *call, MongoValue *result)
{
	MongoValue	array;

	if (!mongo_value_of_node(call->scope, linitial(call->args), &array) || !array.raw)
		return false;
	flatten(&array);
	set_array_result(result, INT4OID, "{$cond: [{$gt: [@1, null]}, {$size: @1}, null]}", &array, 1);
	return true;
}

/* is_constant_one: the dimension that every array has that is not empty. */
static bool
is_constant_one(Node *node)
{
	const Const *constant = (Const *) node;

	return IsA(node, Const) && !constant->constisnull && constant->consttype == INT4OID &&
		DatumGetInt32(constant->constvalue) == 1;
}

/* array_length(array, 1) and array_upper(array, 1); a document's begin at 1 */
static bool
translate_length(const MongoCall *call, MongoValue *result)
{
	MongoValue	array;

	if (!is_constant_one(lsecond(call->args)) ||
		!mongo_value_of_node(call->scope, linitial(call->args), &array) || !array.raw)
		return false;
	set_array_result(result, INT4OID, "{$cond: [{$gt: [@1, []]}, {$size: @1}, null]}", &array, 1);
	return true;
}

/* array[i] of an array of one dimension; NULL of others, and outside of it */
bool
mongo_array_element(const MongoScope *scope, SubscriptingRef *node, MongoValue *value)
{
	MongoScope	inner = *scope;
	MongoValue	values[2];

	inner.scale = false;
	inner.guarded = false;
	if (node->reflowerindexpr != NIL || node->refassgnexpr != NULL ||
		list_length(node->refupperindexpr) != 1 ||
		!OidIsValid(get_element_type(node->refcontainertype)) ||
		!mongo_value_of_node(&inner, (Node *) node->refexpr, &values[0]) || !values[0].raw ||
		!mongo_normal_value_of_node(&inner, linitial(node->refupperindexpr), &values[1]))
		return false;
	set_array_result(value, node->refrestype,
					 "{$let: {vars: {e: {$cond: [{$gt: [@2, 0]}, "
					 "{$arrayElemAt: [@1, {$subtract: [@2, 1]}]}, null]}}, "
					 "in: {$cond: [{$isArray: '$$e'}, null, '$$e']}}}", values, 2);
	value->typmod = node->reftypmod;
	value->raw = true;
	value->nan = mongo_kind_of_type(value->type)->has_nan;
	return true;
}

const MongoExpressionRow mongo_array_rows[] =
{
	{F_ARRAYCONTAINS, CONTAINS, 0, translate_sets},
	{F_ARRAYCONTAINED, CONTAINED, 0, translate_sets},
	{F_ARRAYOVERLAP, OVERLAPS, 0, translate_sets},
	{F_CARDINALITY, .translate = translate_cardinality},
	{F_ARRAY_LENGTH, .translate = translate_length},
	{F_ARRAY_UPPER, .translate = translate_length},
	{.function = InvalidOid}
};
