/*-------------------------------------------------------------------------
 *
 * hashed_scan.c
 *		Planning scans of a correlated sub-select that may go over to a hash table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "hashed_scan.h"

#include "bson_memory.h"
#include "cost.h"
#include "infallible.h"
#include "relation.h"

#include <math.h>

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "utils/lsyscache.h"

/* What a row in a hash table takes beside its columns. */
#define ROW_OVERHEAD	64

/* "column = value", in either order. */
typedef struct HashedKey
{
	Expr	   *column;
	Expr	   *value;
	Oid			column_hash;
	Oid			value_hash;
	Oid			collation;
} HashedKey;

/* has_outer_value: of a query around this one, which may have many rows? */
static bool
has_outer_value(Node *node, void *root)
{
	const Param *param = (Param *) node;

	if (node == NULL)
		return false;
	if (!IsA(node, Param))
		return expression_tree_walker(node, has_outer_value, root);
	if (param->paramkind != PARAM_EXEC)
		return false;
	for (PlannerInfo *outer = ((PlannerInfo *) root)->parent_root; outer != NULL; outer = outer->parent_root)
	{
		ListCell   *cell;

		foreach(cell, outer->plan_params)
		{
			if (lfirst_node(PlannerParamItem, cell)->paramId == param->paramid)
				return true;
		}
	}
	return false;
}

/* has_exec_param: does it depend on anything that only execution knows? */
static bool
has_exec_param(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind == PARAM_EXEC;
	return expression_tree_walker(node, has_exec_param, context);
}

/* is_hash_key: is the restriction such an equality? */
static bool
is_hash_key(PlannerInfo *root, RelOptInfo *baserel, const RestrictInfo *rinfo, HashedKey *key)
{
	const MongoRelation *relation = baserel->fdw_private;
	OpExpr	   *clause = (OpExpr *) rinfo->clause;
	Oid			left_hash;
	Oid			right_hash;
	bool		column_is_left;
	MongoField	field;

	if (!IsA(clause, OpExpr) || list_length(clause->args) != 2 ||
		contain_volatile_functions((Node *) clause) || contain_subplans((Node *) clause) ||
		!get_op_hash_functions(clause->opno, &left_hash, &right_hash))
		return false;
	column_is_left = mongo_field_of_node(relation->columns, linitial(clause->args), &field);
	key->column = column_is_left ? linitial(clause->args) : lsecond(clause->args);
	key->value = column_is_left ? lsecond(clause->args) : linitial(clause->args);
	key->column_hash = column_is_left ? left_hash : right_hash;
	key->value_hash = column_is_left ? right_hash : left_hash;
	key->collation = clause->inputcollid;
	return (column_is_left || mongo_field_of_node(relation->columns, (Node *) key->column, &field)) &&
		bms_is_empty(pull_varnos(root, (Node *) key->value));
}

List *
mongo_hashed_keys(const Path *path)
{
	const List *private = IsA(path, ForeignPath) ? ((const ForeignPath *) path)->fdw_private : NIL;

	if (private == NIL || !IsA(private, List) || !IsA(linitial(private), List))
		return NIL;
	return linitial(private);
}

List *
mongo_hashed_conditions(RelOptInfo *baserel, List *clauses, const List *keys)
{
	List	   *conditions = NIL;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		MongoTranslation translation = mongo_translation_of(baserel->fdw_private);
		bson_t	   *match = bson_create_in(CurrentMemoryContext);

		/* what else there is may hold for the rows of one value alone */
		translation.beside = NIL;
		if (list_member_ptr(keys, rinfo) || has_exec_param((Node *) rinfo->clause, NULL) ||
			mongo_translate_restriction(&translation, baserel, rinfo, match).grade == MONGO_NOT_SHIPPABLE)
			continue;
		/* of documents that nobody asks for, nothing may be an error */
		if (mongo_cannot_fail(match))
			conditions = lappend(conditions, rinfo);
	}
	return conditions;
}

/* correlated_keys: those of the table's restrictions, RestrictInfos. */
static List *
correlated_keys(PlannerInfo *root, RelOptInfo *baserel)
{
	List	   *keys = NIL;
	ListCell   *cell;

	foreach(cell, baserel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		HashedKey	key;

		if (has_outer_value((Node *) rinfo->clause, root) && is_hash_key(root, baserel, rinfo, &key))
			keys = lappend(keys, rinfo);
	}
	return keys;
}

Path *
mongo_hashed_path(PlannerInfo *root, RelOptInfo *baserel)
{
	const MongoRelation *relation = baserel->fdw_private;
	List	   *keys;
	List	   *conditions;
	double		rows;
	Cost		startup_cost;
	Cost		total_cost;

	/* PostgreSQL must be able to test all that the rows have to meet */
	if (root->parent_root == NULL || relation->score != NULL || relation->names_match ||
		relation->has_barrier || relation->below_barrier || !bms_is_empty(baserel->lateral_relids))
		return NULL;
	keys = correlated_keys(root, baserel);
	if (keys == NIL)
		return NULL;

	conditions = mongo_hashed_conditions(baserel, baserel->baserestrictinfo, keys);
	rows = clamp_row_est(baserel->tuples *
						 clauselist_selectivity(root, conditions, baserel->relid, JOIN_INNER, NULL));
	if (rows * (baserel->reltarget->width + ROW_OVERHEAD) > get_hash_memory_limit())
		return NULL;
	mongo_estimate_scan(baserel, rows, baserel->tuples, &startup_cost, &total_cost);
	return (Path *) mongo_foreignscan_path(root, baserel, NULL, rows, startup_cost, total_cost,
										   NIL, NULL, NULL, list_make1(keys));
}

Path *
mongo_hashed_plain_path(PlannerInfo *root, RelOptInfo *baserel, PathTarget *target)
{
	const MongoRelation *relation = baserel->fdw_private;
	Path	   *hashed = mongo_hashed_path(root, baserel);
	Cost		startup_cost;
	Cost		total_cost;

	if (hashed == NULL)
		return NULL;
	mongo_estimate_scan(baserel, relation->remote_rows, relation->examined_rows, &startup_cost,
						&total_cost);
	return (Path *) mongo_foreignscan_path(root, baserel, target, baserel->rows, startup_cost,
										   total_cost, NIL, NULL, hashed, NIL);
}

int
mongo_change_after(const Path *all, const Path *one)
{
	return (int) Min(ceil(all->total_cost / Max(one->total_cost, 1)), PG_INT32_MAX / 2);
}

List *
mongo_hashed_describe(PlannerInfo *root, RelOptInfo *baserel, const ForeignPath *path,
					  int nexpressions, MongoScanPlan *plan)
{
	const ForeignPath *all = (ForeignPath *) path->fdw_outerpath;
	List	   *expressions = NIL;
	ListCell   *cell;

	plan->hash_first = nexpressions;
	plan->change_after = mongo_change_after(&all->path, &path->path);
	foreach(cell, mongo_hashed_keys(&all->path))
	{
		HashedKey	key;

		if (!is_hash_key(root, baserel, lfirst_node(RestrictInfo, cell), &key))
			elog(ERROR, "a key is none any more");
		expressions = lappend(lappend(expressions, key.column), key.value);
		plan->hash_functions = lappend_oid(plan->hash_functions, key.column_hash);
		plan->hash_functions = lappend_oid(plan->hash_functions, key.value_hash);
		plan->hash_functions = lappend_oid(plan->hash_functions, key.collation);
	}
	return expressions;
}
