/*-------------------------------------------------------------------------
 *
 * nan_bound.c
 *		Which columns are not NaN where a list of conditions holds?
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "columns.h"
#include "nan_bound.h"
#include "strategy.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"

/* column_of: below binary-compatible relabelling; NULL when it is none. */
static const Var *
column_of(Node *node)
{
	const Var  *var = (const Var *) mongo_strip_relabelling(node);

	return IsA(var, Var) && var->varlevelsup == 0 ? var : NULL;
}

/* is_known_number: a constant, and not NaN. */
static bool
is_known_number(const Node *node)
{
	const Const *constant = (const Const *) node;

	if (!IsA(node, Const) || constant->constisnull)
		return false;
	switch (constant->consttype)
	{
		case FLOAT4OID:
			return !isnan(DatumGetFloat4(constant->constvalue));
		case FLOAT8OID:
			return !isnan(DatumGetFloat8(constant->constvalue));
		case NUMERICOID:
			return !numeric_is_nan(DatumGetNumeric(constant->constvalue));
		default:
			return false;
	}
}

/* bounded_column: of "column < value" and the like that NaN does not satisfy. */
static const Var *
bounded_column(const OpExpr *comparison)
{
	Oid			operator = comparison->opno;
	Node	   *value;
	const Var  *column;
	Oid			type;
	int			strategy;

	if (list_length(comparison->args) != 2)
		return NULL;
	column = column_of(linitial(comparison->args));
	value = lsecond(comparison->args);
	if (column == NULL)
	{
		column = column_of(value);
		value = linitial(comparison->args);
		operator = get_commutator(operator);
	}
	if (column == NULL || !OidIsValid(operator))
		return NULL;
	type = getBaseType(column->vartype);
	if (type != FLOAT8OID && type != NUMERICOID)
		return NULL;

	/* nothing is below NaN and not a number, but NaN itself is as high as NaN */
	strategy = mongo_default_strategy(operator, type);
	return strategy == BTLessStrategyNumber ||
		(strategy == BTLessEqualStrategyNumber && is_known_number(value)) ? column : NULL;
}

List *
mongo_columns_without_nan(List *conditions)
{
	List	   *columns = NIL;
	ListCell   *cell;

	foreach(cell, conditions)
	{
		Node	   *node = lfirst(cell);
		const Var  *column;

		if (IsA(node, RestrictInfo))
			node = (Node *) ((RestrictInfo *) node)->clause;
		column = IsA(node, OpExpr) ? bounded_column((OpExpr *) node) : NULL;
		if (column != NULL)
			columns = lappend(columns, unconstify(Var *, column));
	}
	return columns;
}

bool
mongo_is_without_nan(List *columns, Node *node)
{
	const Var  *column = column_of(node);
	ListCell   *cell;

	foreach(cell, columns)
	{
		const Var  *one = lfirst(cell);

		if (column != NULL && one->varno == column->varno && one->varattno == column->varattno)
			return true;
	}
	return false;
}
