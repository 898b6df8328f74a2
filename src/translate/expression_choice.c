/*-------------------------------------------------------------------------
 *
 * expression_choice.c
 *		CASE, COALESCE, NULLIF, GREATEST and LEAST in aggregation expressions.
 *
 * $cond, $switch and $ifNull evaluate what is chosen only, as SQL does.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "expression_parts.h"
#include "types.h"

#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "utils/float.h"

/*
 * one_of_several: a value that may become the result.  Its reader will know the
 * type of the result, but not by what typmod the column would have rounded.
 */
static bool
one_of_several(const MongoScope *scope, Node *node, MongoValue *value)
{
	if (!mongo_value_of_node(scope, node, value))
		return false;
	if (value->type == NUMERICOID || value->type == TIMESTAMPOID ||
		value->type == TIMESTAMPTZOID)
		return mongo_normalize(scope, value);
	return true;
}

/* add_alternative: what the result can be, this value considered. */
static void
add_alternative(MongoValue *result, const MongoValue *alternative)
{
	result->raw |= alternative->raw;
	result->nullable |= alternative->nullable;
	result->nan |= alternative->nan;
}

/*
 * tell_apart: MongoDB 6.0's $group fails on the same field or variable as several
 * results of one operator ("duplicate field", 4822806), so the second is wrapped.
 */
static void
tell_apart(List **earlier, MongoValue *value)
{
	ListCell   *cell;
	bool		is_repeated = false;
	bson_iter_t top;

	if (!bson_iter_init(&top, value->expression) || !bson_iter_next(&top) ||
		!BSON_ITER_HOLDS_UTF8(&top))
		return;
	foreach(cell, *earlier)
		is_repeated |= bson_equal(lfirst(cell), value->expression);
	*earlier = lappend(*earlier, value->expression);
	if (is_repeated)
	{
		value->expression = mongo_expand_template("{$ifNull: [@1, null]}", value, 1);
		value->atomic = false;
	}
}

static void
begin_result(MongoValue *result, Node *node)
{
	memset(result, 0, sizeof(*result));
	result->type = exprType(node);
	result->typmod = -1;
}

/* replace_case_test: a copy in which the CASE's operand stands for its placeholder. */
static Node *
replace_case_test(Node *node, void *argument)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, CaseTestExpr))
		return argument;

	/* the placeholders of an inner CASE are its own */
	if (IsA(node, CaseExpr) && ((CaseExpr *) node)->arg != NULL)
		return node;
	return expression_tree_mutator(node, replace_case_test, argument);
}

/* append_branch: one WHEN of CASE. */
static bool
append_branch(const MongoScope *scope, const CaseExpr *node, int index, BsonArray *branches,
			  List **earlier, MongoValue *result)
{
	CaseWhen   *when = list_nth_node(CaseWhen, node->args, index);
	Node	   *condition = (Node *) when->expr;
	MongoScope	lazy = *scope;
	MongoScope	asked = *scope;
	MongoValue	test;
	MongoValue	chosen;

	if (node->arg != NULL)
		condition = replace_case_test(condition, node->arg);
	lazy.lazy = true;
	asked.lazy |= index > 0;
	asked.guarded = false;
	asked.scale = false;
	if (!mongo_test_of_node(&asked, condition, true, &test) ||
		!one_of_several(&lazy, (Node *) when->result, &chosen))
		return false;
	add_alternative(result, &chosen);
	tell_apart(earlier, &chosen);
	bson_array_append_template(branches, "{case: @1, then: @2}",
							   bson_first(test.expression), bson_first(chosen.expression));
	return true;
}

/* CASE as $switch: branches behind the first are translated as what may not be evaluated. */
static bool
translate_case(const MongoScope *scope, const CaseExpr *node, MongoValue *result)
{
	MongoScope	lazy = *scope;
	List	   *earlier = NIL;
	BsonArray	branches = bson_array_create();
	bson_value_t by_default = bson_null();

	begin_result(result, (Node *) node);
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
		tell_apart(&earlier, &otherwise);
		by_default = bson_first(otherwise.expression);
	}
	result->expression = mongo_expression("{$switch: {branches: @1, default: @2}}",
										  bson_array(branches.bson), by_default);
	return true;
}

static bool
translate_coalesce(const MongoScope *scope, const CoalesceExpr *node, MongoValue *result)
{
	MongoScope	lazy = *scope;
	List	   *earlier = NIL;
	bool		nullable = true;
	BsonArray	operands = bson_array_create();
	ListCell   *cell;

	begin_result(result, (Node *) node);
	if (list_length(node->args) == 1)
		return one_of_several(scope, linitial(node->args), result);
	foreach(cell, node->args)
	{
		MongoValue	one;

		if (!one_of_several(&lazy, lfirst(cell), &one))
			return false;
		add_alternative(result, &one);
		nullable &= one.nullable;
		tell_apart(&earlier, &one);
		bson_array_append(&operands, bson_first(one.expression));
		lazy.lazy = true;
	}
	result->expression = mongo_expression("{$ifNull: @1}", bson_array(operands.bson));
	result->nullable = nullable;
	return true;
}

static bool
translate_nullif(const MongoScope *scope, const NullIfExpr *node, MongoValue *result)
{
	MongoScope	compared = *scope;
	MongoValue	values[2];

	compared.scale = false;
	compared.guarded = false;
	if (mongo_comparison_strategy(node->opno) != BTEqualStrategyNumber ||
		!mongo_compare_test(&compared, BTEqualStrategyNumber, linitial(node->args),
							lsecond(node->args), node->inputcollid, &values[0]) ||
		!one_of_several(scope, linitial(node->args), &values[1]))
		return false;
	begin_result(result, (Node *) node);
	add_alternative(result, &values[1]);
	result->nullable = true;
	result->expression = mongo_expand_template("{$cond: [@1, null, @2]}", values, 2);
	return true;
}

/*
 * GREATEST and LEAST leave NULLs out, as $max and $min do; NaN is the greatest,
 * which MaxKey stands for meanwhile.
 */
#define RAISED_NAN	"{$cond: [{$eq: [@1, NaN]}, max, @1]}"
#define LOWERED_NAN "{$cond: [{$eq: [@1, max]}, @2, @1]}"

/* lower_nan: the MaxKey that has stood for NaN, above all numbers, is NaN again. */
static void
lower_nan(MongoValue *result)
{
	MongoValue	values[2] = {*result};

	if (!result->nan)
		return;
	if (result->type == NUMERICOID)
		values[1] = mongo_decimal_value("NaN");
	else
		values[1] = mongo_atomic(bson_double(get_float8_nan()));
	result->expression = mongo_expand_template(LOWERED_NAN, values, 2);
}

/* GREATEST and LEAST: $max and $min pass over null, too; NaN is raised above numbers for them. */
static bool
translate_min_max(const MongoScope *scope, const MinMaxExpr *node, MongoValue *result)
{
	bool		is_text = mongo_compares_text(node->minmaxtype);
	BsonArray	operands = bson_array_create();
	ListCell   *cell;

	if (!mongo_has_normal_form(node->minmaxtype) ||
		(is_text && !mongo_collation_suits(node->inputcollid, MONGO_ROW_C_COLLATION)))
		return false;
	begin_result(result, (Node *) node);
	foreach(cell, node->args)
	{
		MongoValue	one;

		if (!mongo_normal_value_of_node(scope, lfirst(cell), &one))
			return false;
		add_alternative(result, &one);
		if (one.nan)
			one.expression = mongo_expand_template(RAISED_NAN, &one, 1);
		bson_array_append(&operands, bson_first(one.expression));
	}
	result->expression = mongo_expression(node->op == IS_GREATEST ? "{$max: @1}" : "{$min: @1}",
										  bson_array(operands.bson));
	lower_nan(result);
	if (is_text)
		scope->translation->compares_text = true;
	return true;
}

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
