/*-------------------------------------------------------------------------
 *
 * expression_logic.c
 *		Boolean logic in aggregation expressions.
 *
 * MongoDB's $and, $or and $not take null for false.  So what is asked for is
 * where a condition is TRUE, or where it is FALSE, and only where a value is
 * wanted they are put together in three values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "expression_parts.h"
#include "strategy.h"
#include "types.h"

#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"

/* Translating both questions of a part counts as so many levels. */
#define DOUBLE_DEPTH	8

static void
set_boolean(MongoValue *value, bson_t *expression, bool nullable)
{
	memset(value, 0, sizeof(*value));
	value->expression = expression;
	value->type = BOOLOID;
	value->typmod = -1;
	value->nullable = nullable;
}

/* test_of_parts: AND or OR of them. */
static bool
test_of_parts(const MongoScope *scope, List *nodes, bool conjunction, bool wanted,
			  MongoValue *value)
{
	BsonArray	tests = bson_array_create();
	MongoScope	inner = *scope;
	ListCell   *cell;

	foreach(cell, nodes)
	{
		MongoValue	part;

		if (!mongo_test_of_node(&inner, lfirst(cell), wanted, &part))
			return false;
		bson_array_append(&tests, bson_first(part.expression));
		/* what follows may be decided by what came before */
		inner.lazy = true;
	}
	set_boolean(value, mongo_expression(conjunction ? "{$and: @1}" : "{$or: @1}",
										bson_array(tests.bson)), false);
	return true;
}

/*
 * test_of_boolean: where AND, OR or NOT is TRUE or FALSE, as is wanted, as an
 * expression.
 */
static bool
test_of_boolean(const MongoScope *scope, BoolExpr *node, bool wanted, MongoValue *value)
{
	if (node->boolop == NOT_EXPR)
		return mongo_test_of_node(scope, linitial(node->args), !wanted, value);
	return test_of_parts(scope, node->args, (node->boolop == AND_EXPR) == wanted,
						 wanted, value);
}

/*
 * null_template: is @1 of that type null, or is it not?  Nulls and what is missing
 * are below all values in BSON's order, but for MinKey, which some types read.
 */
static const char *
null_template(Oid type_oid, bool is_null)
{
	const MongoType *type = mongo_type_lookup(type_oid);

	if (type != NULL && (type->accepts & MONGO_BSON_BIT(BSON_TYPE_MINKEY)) != 0)
		return is_null ? "{$and: [{$lte: [@1, null]}, {$ne: [@1, min]}]}" :
			"{$or: [{$gt: [@1, null]}, {$eq: [@1, min]}]}";
	return is_null ? "{$lte: [@1, null]}" : "{$gt: [@1, null]}";
}

/* IS [NOT] NULL; never NULL itself */
static bool
test_of_null(const MongoScope *scope, NullTest *node, bool wanted, MongoValue *value)
{
	bool		is_null = (node->nulltesttype == IS_NULL) == wanted;
	MongoValue	argument;

	if (node->argisrow || !mongo_value_of_node(scope, (Node *) node->arg, &argument))
		return false;
	set_boolean(value, mongo_expand_template(null_template(argument.type, is_null),
											 &argument, 1), false);
	return true;
}

/* IS [NOT] TRUE, IS [NOT] FALSE, IS [NOT] UNKNOWN; never NULL themselves */
static bool
test_of_truth(const MongoScope *scope, BooleanTest *node, bool wanted, MongoValue *value)
{
	BoolTestType test = node->booltesttype;
	bool		negated = test == IS_NOT_TRUE || test == IS_NOT_FALSE || test == IS_NOT_UNKNOWN;
	MongoValue	argument;
	const char *template;

	if (test == IS_UNKNOWN || test == IS_NOT_UNKNOWN)
	{
		if (!mongo_value_of_node(scope, (Node *) node->arg, &argument))
			return false;
		template = negated != wanted ? "{$lte: [@1, null]}" : "{$gt: [@1, null]}";
	}
	else
	{
		if (!mongo_test_of_node(scope, (Node *) node->arg,
								test == IS_TRUE || test == IS_NOT_TRUE, &argument))
			return false;
		template = negated != wanted ? "@1" : "{$not: [@1]}";
	}
	set_boolean(value, mongo_expand_template(template, &argument, 1), false);
	return true;
}

/* IS [NOT] DISTINCT FROM; never NULL itself */
static bool
test_of_distinct(const MongoScope *scope, DistinctExpr *node, bool wanted,
				 MongoValue *value)
{
	MongoValue	same;

	/* the operator is that of equality; two NULLs are the same as well */
	if (!mongo_same(scope, node->opno, node->args, node->inputcollid, &same))
		return false;
	set_boolean(value, wanted ? mongo_expand_template("{$not: [@1]}", &same, 1) :
				same.expression, false);
	return true;
}

bool
mongo_logic_test(const MongoScope *scope, Node *node, bool wanted, MongoValue *value)
{
	MongoValue	truth;
	int			strategy;
	OpExpr	   *operator = (OpExpr *) node;

	switch (nodeTag(node))
	{
		case T_BoolExpr:
			return test_of_boolean(scope, (BoolExpr *) node, wanted, value);
		case T_NullTest:
			return test_of_null(scope, (NullTest *) node, wanted, value);
		case T_BooleanTest:
			return test_of_truth(scope, (BooleanTest *) node, wanted, value);
		case T_DistinctExpr:
			return test_of_distinct(scope, (DistinctExpr *) node, wanted, value);
		case T_OpExpr:
			strategy = mongo_comparison_strategy(operator->opno);
			if (strategy == 0)
				break;
			return mongo_compare_test(scope, wanted ? strategy : mongo_negated_strategy(strategy),
									  linitial(operator->args), lsecond(operator->args),
									  operator->inputcollid, value);
		default:
			break;
	}

	if (!mongo_value_of_node(scope, node, &truth))
		return false;
	set_boolean(value, mongo_expand_template(wanted ? "{$eq: [@1, true]}" :
											 "{$eq: [@1, false]}", &truth, 1), false);
	return true;
}

/* AND, OR and NOT in three values */
static bool
value_of_boolean(const MongoScope *scope, BoolExpr *node, MongoValue *value)
{
	MongoValue	tests[2];
	bool		done;

	scope->translation->depth += DOUBLE_DEPTH;
	done = test_of_boolean(scope, node, true, &tests[0]) &&
		test_of_boolean(scope, node, false, &tests[1]);
	scope->translation->depth -= DOUBLE_DEPTH;
	if (!done)
		return false;
	set_boolean(value, mongo_expand_template("{$cond: [@1, true, {$cond: [@2, false, null]}]}",
											 tests, 2), true);
	return true;
}

bool
mongo_logic_of_node(const MongoScope *scope, Node *node, MongoValue *value)
{
	if (IsA(node, BoolExpr))
		return value_of_boolean(scope, (BoolExpr *) node, value);
	return mongo_test_of_node(scope, node, true, value);
}
