/*-------------------------------------------------------------------------
 *
 * guards.c
 *		"What these conditions read fits its columns", as a part of a filter.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guards.h"

#include "comparison.h"
#include "fits.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

/*
 * is_column_equality
 *		Is this "column = value" or "column = ANY (values)"?
 *
 * Equality in MongoDB matches the column's own values and nothing else, except
 * for arrays that hold them; but the value must be one that the column can hold.
 */
static bool
is_column_equality(MongoColumns *columns, Node *qual)
{
	Oid			operator = InvalidOid;
	List	   *arguments = NIL;
	Node	   *column;
	Node	   *value;
	Oid			value_type;
	char	   *name;

	if (IsA(qual, OpExpr))
	{
		operator = ((OpExpr *) qual)->opno;
		arguments = ((OpExpr *) qual)->args;
	}
	else if (IsA(qual, ScalarArrayOpExpr) && ((ScalarArrayOpExpr *) qual)->useOr)
	{
		operator = ((ScalarArrayOpExpr *) qual)->opno;
		arguments = ((ScalarArrayOpExpr *) qual)->args;
	}
	if (list_length(arguments) != 2 ||
		contain_var_clause(linitial(arguments)) == contain_var_clause(lsecond(arguments)))
		return false;
	name = get_opname(operator);
	if (name == NULL || strcmp(name, "=") != 0)
		return false;

	column = linitial(arguments);
	value = lsecond(arguments);
	if (contain_var_clause(value))
	{
		column = lsecond(arguments);
		value = linitial(arguments);
	}
	column = mongo_strip_relabelling(column);
	value_type = exprType(value);
	if (IsA(qual, ScalarArrayOpExpr))
		value_type = get_base_element_type(value_type);
	return IsA(column, Var) && ((Var *) column)->varattno > 0 &&
		mongo_equality_fits(((Var *) column)->vartype, ((Var *) column)->vartypmod,
							mongo_column_bson_type(columns, ((Var *) column)->varattno),
							value_type);
}

/* not_null_columns: those of which a qual rejects NULL, as strict operators do. */
static Bitmapset *
not_null_columns(List *quals)
{
	Bitmapset  *columns = NULL;
	ListCell   *cell;

	foreach(cell, quals)
	{
		OpExpr	   *operation = lfirst(cell);
		ListCell   *argument;

		if (!IsA(operation, OpExpr) || !op_strict(operation->opno))
			continue;
		foreach(argument, operation->args)
		{
			Node	   *node = mongo_strip_relabelling(lfirst(argument));

			if (IsA(node, Var) && ((Var *) node)->varattno > 0)
				columns = bms_add_member(columns, ((Var *) node)->varattno);
		}
	}
	return columns;
}

/*
 * append_guards
 *		For each column that the qual reads and that *guarded does not have; -1
 *		when there is no guard for one.
 */
static int
append_guards(bson_t *conditions, int index, MongoColumns *columns, Node *qual,
			  bool only_arrays, bool use_expressions, const Bitmapset *not_null,
			  Bitmapset **guarded)
{
	ListCell   *cell;

	foreach(cell, pull_var_clause(qual, 0))
	{
		Var		   *var = lfirst_node(Var, cell);
		const char *path;

		if (var->varattno <= 0)
			return -1;
		if (bms_is_member(var->varattno, *guarded))
			continue;
		*guarded = bms_add_member(*guarded, var->varattno);
		path = mongo_column_path(columns, var->varattno);
		if (path == NULL)
			return -1;

		index = only_arrays ?
			mongo_append_array_guards(conditions, index, path) :
			mongo_append_fits_guards(conditions, index, path, var->vartype,
									 var->vartypmod,
									 mongo_column_bson_type(columns, var->varattno),
									 !bms_is_member(var->varattno, not_null),
									 use_expressions);
		if (index < 0)
			return -1;
	}
	return index;
}

int
mongo_append_guards(bson_t *conditions, int index, MongoColumns *columns, List *quals,
					bool use_expressions)
{
	Bitmapset  *not_null = not_null_columns(quals);
	Bitmapset  *guarded = NULL;

	for (int only_arrays = 0; only_arrays <= 1; only_arrays++)
	{
		ListCell   *cell;

		foreach(cell, quals)
		{
			if (is_column_equality(columns, lfirst(cell)) != (only_arrays == 1))
				continue;
			index = append_guards(conditions, index, columns, lfirst(cell),
								  only_arrays == 1, use_expressions, not_null,
								  &guarded);
			if (index < 0)
				return -1;
		}
	}
	return index;
}
