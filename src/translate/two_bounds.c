/*-------------------------------------------------------------------------
 *
 * two_bounds.c
 *		Two conditions that are bounds of one range.
 *
 * The text of what is inside json, and what it is cast to, may be that of several BSON
 * types.  Where each of two bounds is an $or of these, MongoDB takes but one of them for
 * an index.  So each says both.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "expression.h"
#include "strategy.h"
#include "two_bounds.h"
#include "types.h"

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

/* takes_two: is it translated in that form, too? */
static bool
takes_two(const MongoPredicate *predicate)
{
	MongoTypeKind class;

	if (predicate->column_type != JSONOID || predicate->wrapper != MONGO_WRAPPER_NONE)
		return false;
	if (!OidIsValid(predicate->cast_type))
		return predicate->value_type == TEXTOID;
	class = mongo_kind_of_type(predicate->cast_type)->class;
	return class == MONGO_KIND_TIMESTAMP || class == MONGO_KIND_TIMESTAMPTZ;
}

/* is_order: <, <=, > or >= */
static bool
is_order(int strategy)
{
	return strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber ||
		strategy == BTGreaterEqualStrategyNumber || strategy == BTGreaterStrategyNumber;
}

/* other_bound: what the operand is compared with by this condition, if it bounds the other side. */
static Node *
other_bound(const MongoTranslation *translation, const OpExpr *condition, const Node *operand,
			const MongoPredicate *predicate)
{
	Oid			operator = condition->opno;
	Node	   *value;
	int			strategy;

	if (!IsA(condition, OpExpr) || list_length(condition->args) != 2 ||
		condition->inputcollid != predicate->collation)
		return NULL;
	value = lsecond(condition->args);
	if (!equal(linitial(condition->args), operand))
	{
		if (!equal(value, operand))
			return NULL;
		value = linitial(condition->args);
		operator = get_commutator(operator);
	}
	if (!OidIsValid(operator) || exprType(value) != predicate->value_type ||
		!mongo_is_local_value(translation, value))
		return NULL;
	strategy = mongo_default_strategy(operator, exprType(operand));
	return is_order(strategy) &&
		mongo_is_upper_bound(strategy) != mongo_is_upper_bound(predicate->strategy) ? value : NULL;
}

/* make_pair: an array of both. */
static Node *
make_pair(Node *value, Node *other)
{
	ArrayExpr  *pair = makeNode(ArrayExpr);

	pair->array_typeid = get_array_type(exprType(value));
	pair->array_collid = exprCollation(value);
	pair->element_typeid = exprType(value);
	pair->elements = list_make2(value, other);
	pair->location = -1;
	return eval_const_expressions(NULL, (Node *) pair);
}

Node *
mongo_join_bounds(const MongoTranslation *translation, const Node *operand, Node *value,
				  MongoPredicate *predicate)
{
	const ListCell *cell;

	if (!takes_two(predicate) || !is_order(predicate->strategy))
		return value;
	foreach(cell, translation->beside)
	{
		const Node *node = lfirst(cell);
		Node	   *other;

		if (IsA(node, RestrictInfo))
			node = (const Node *) ((const RestrictInfo *) node)->clause;
		other = other_bound(translation, (const OpExpr *) node, operand, predicate);
		if (other == NULL)
			continue;
		predicate->form = MONGO_PREDICATE_BETWEEN;
		return make_pair(value, other);
	}
	return value;
}
