/*-------------------------------------------------------------------------
 *
 * equivalent.c
 *		Conditions that are the same as others which indexes serve.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"

#include "access/stratnum.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* is_known_value: is it a constant other than NULL? */
static bool
is_known_value(const Node *node)
{
	return node != NULL && IsA(node, Const) && !((const Const *) node)->constisnull;
}

/* make_comparison: makes "left OP right". */
static Expr *
make_comparison(Oid operator, Node *left, Node *right, Oid collation)
{
	Expr	   *result = make_opclause(operator, BOOLOID, false, (Expr *) left, (Expr *) right,
									   InvalidOid, collation);

	set_opfuncid((OpExpr *) result);
	return result;
}

/*
 * without_coalesce: coalesce(x, c) OP v, of constants c and v, is x OP v, or also true where
 * x is NULL.
 */
static Node *
without_coalesce(const OpExpr *node, bool wanted)
{
	CoalesceExpr *choice = linitial(node->args);
	Node	   *value = lsecond(node->args);
	Node	   *otherwise;
	NullTest   *is_null;
	Expr	   *compared;
	Oid			operator = node->opno;

	if (IsA(value, CoalesceExpr))
	{
		choice = lsecond(node->args);
		value = linitial(node->args);
		operator = get_commutator(operator);
	}
	/* a comparison does not fail, where a pattern may */
	if (!IsA(choice, CoalesceExpr) || list_length(choice->args) != 2 || !OidIsValid(operator) ||
		!is_known_value(lsecond(choice->args)) || !is_known_value(value) ||
		mongo_default_strategy(operator, exprType(lsecond(choice->args))) == 0)
		return NULL;
	otherwise = eval_const_expressions(NULL, (Node *) make_comparison(operator, lsecond(choice->args),
																	  value, node->inputcollid));
	if (!is_known_value(otherwise))
		return NULL;

	compared = make_comparison(operator, linitial(choice->args), value, node->inputcollid);
	if (!wanted)
		compared = make_notclause(compared);
	if (DatumGetBool(((Const *) otherwise)->constvalue) != wanted)
		return (Node *) compared;
	is_null = makeNode(NullTest);
	is_null->arg = linitial(choice->args);
	is_null->nulltesttype = IS_NULL;
	is_null->location = -1;
	return (Node *) make_orclause(list_make2(compared, is_null));
}

/* like_pattern: returns the pattern that matches only this text. */
static Const *
like_pattern(const Const *value)
{
	StringInfoData pattern;

	initStringInfo(&pattern);
	for (const char *next = TextDatumGetCString(value->constvalue); *next != '\0'; next++)
	{
		if (strchr("%_\\", *next) != NULL)
			appendStringInfoChar(&pattern, '\\');
		appendStringInfoChar(&pattern, *next);
	}
	return makeConst(TEXTOID, -1, value->constcollid, -1, CStringGetTextDatum(pattern.data), false, false);
}

/*
 * without_lower: lower(x) LIKE 'a%' is x ILIKE 'a%', and lower(x) = 'a' is x ILIKE 'a', if the
 * constant is in lower case.
 */
static Node *
without_lower(const OpExpr *node, bool wanted)
{
	const FuncExpr *lower = (FuncExpr *) mongo_strip_relabelling(linitial(node->args));
	Const	   *value = lsecond(node->args);
	Const	   *lowered;
	Expr	   *result;

	if ((node->opno != OID_TEXT_LIKE_OP && node->opno != TextEqualOperator) ||
		!IsA(lower, FuncExpr) || lower->funcid != F_LOWER_TEXT ||
		lower->inputcollid != node->inputcollid || !is_known_value((Node *) value))
		return NULL;
	lowered = (Const *) eval_const_expressions(NULL, (Node *) makeFuncExpr(F_LOWER_TEXT, TEXTOID,
																		   list_make1(value),
																		   lower->funccollid,
																		   lower->inputcollid,
																		   COERCE_EXPLICIT_CALL));
	if (!is_known_value((Node *) lowered) ||
		!datumIsEqual(value->constvalue, lowered->constvalue, false, -1))
		return NULL;
	result = make_comparison(OID_TEXT_ICLIKE_OP, linitial(lower->args),
							 (Node *) (node->opno == OID_TEXT_LIKE_OP ? value : like_pattern(value)),
							 node->inputcollid);
	return (Node *) (wanted ? result : make_notclause(result));
}

/*
 * columns_of_rows: (a, b) < (x, y) is a <= x AND (a < x OR (a = x AND b < y)).  The first
 * comparison only tells the index where to begin.
 */
static Node *
columns_of_rows(const RowCompareExpr *node)
{
	int			ncolumns = list_length(node->opnos);
	Expr	   *result = NULL;

	for (int i = ncolumns - 1; i >= 0; i--)
	{
		Oid			operator = list_nth_oid(node->opnos, i);
		Oid			family = list_nth_oid(node->opfamilies, i);
		Oid			collation = list_nth_oid(node->inputcollids, i);
		Node	   *left = list_nth(node->largs, i);
		Node	   *right = list_nth(node->rargs, i);
		int			strategy = get_op_opfamily_strategy(operator, family);
		bool		is_less = strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber;
		Oid			left_type;
		Oid			right_type;
		Oid			strict;
		Oid			equal;
		Oid			bound;

		op_input_types(operator, &left_type, &right_type);
		strict = get_opfamily_member(family, left_type, right_type,
									 is_less ? BTLessStrategyNumber : BTGreaterStrategyNumber);
		equal = get_opfamily_member(family, left_type, right_type, BTEqualStrategyNumber);
		bound = get_opfamily_member(family, left_type, right_type,
									is_less ? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber);
		if (!OidIsValid(strict) || !OidIsValid(equal) || !OidIsValid(bound))
			return NULL;
		if (result == NULL)
			result = make_comparison(operator, left, right, collation);
		else
			result = make_orclause(list_make2(make_comparison(strict, left, right, collation),
											  make_andclause(list_make2(make_comparison(equal, left, right, collation),
																		result))));
		if (i == 0 && ncolumns > 1)
			result = make_andclause(list_make2(make_comparison(bound, left, right, collation), result));
	}
	return (Node *) result;
}

Node *
mongo_equivalent_condition(Node *node, bool wanted)
{
	const DistinctExpr *distinct = (DistinctExpr *) node;

	if (IsA(node, OpExpr) && list_length(((OpExpr *) node)->args) == 2)
	{
		Node	   *result = without_coalesce((OpExpr *) node, wanted);

		return result != NULL ? result : without_lower((OpExpr *) node, wanted);
	}
	if (IsA(node, RowCompareExpr) && wanted)
		return columns_of_rows((RowCompareExpr *) node);

	/* x IS NOT DISTINCT FROM a value is x = value */
	if (IsA(node, DistinctExpr) && !wanted &&
		(is_known_value(linitial(distinct->args)) || is_known_value(lsecond(distinct->args))))
		return (Node *) make_comparison(distinct->opno, linitial(distinct->args),
										lsecond(distinct->args), distinct->inputcollid);
	return NULL;
}
