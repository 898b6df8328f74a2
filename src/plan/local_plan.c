/*-------------------------------------------------------------------------
 *
 * local_plan.c
 *		What PostgreSQL does in MongoDB's place in a correlated sub-select that has
 *		been asked for many values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "local_plan.h"

#include "hashed_scan.h"

#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "optimizer/tlist.h"

/* output_target: what 'upper' gives. */
static PathTarget *
output_target(PlannerInfo *root, const MongoUpperRelation *upper)
{
	PathTarget *target = create_empty_pathtarget();
	ListCell   *cell;

	foreach(cell, upper->outputs)
		add_column_to_pathtarget(target,
								 copyObject(((MongoOutput *) lfirst(cell))->expression), 0);
	return set_pathtarget_cost_width(root, target);
}

Path *
mongo_local_aggregate(PlannerInfo *root, RelOptInfo *grouped_rel,
					  const MongoUpperRelation *upper, const GroupPathExtraData *extra)
{
	List	   *having = copyObject((List *) extra->havingQual);
	bool		has_keys = root->parse->groupClause != NIL;
	PathTarget *target;
	AggClauseCosts costs = {0};
	Path	   *path;

	if (upper->stage != UPPERREL_GROUP_AGG || upper->input->reloptkind != RELOPT_BASEREL ||
		(has_keys && (extra->flags & GROUPING_CAN_USE_HASH) == 0))
		return NULL;
	path = mongo_hashed_plain_path(root, upper->input, NULL);
	if (path == NULL)
		return NULL;
	target = output_target(root, upper);
	if (contain_subplans((Node *) target->exprs) || contain_subplans((Node *) having))
		return NULL;
	/* aggregates with an ORDER BY may have been planned for input in it */
	if (!has_keys && root->group_pathkeys != NIL)
		path = (Path *) create_sort_path(root, grouped_rel, path, root->group_pathkeys, -1);
	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	return (Path *) create_agg_path(root, grouped_rel, path, target,
									has_keys ? AGG_HASHED : AGG_PLAIN, AGGSPLIT_SIMPLE,
									mongo_group_clause(root), having, &costs, upper->rows);
}

/* add_plain_columns: the table's columns in a node; false for anything but plain columns. */
static bool
add_plain_columns(PathTarget *target, const RelOptInfo *baserel, Node *node)
{
	ListCell   *cell;

	foreach(cell, pull_var_clause(node, PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
								  PVC_RECURSE_PLACEHOLDERS))
	{
		Var		   *var = lfirst_node(Var, cell);

		if (var->varno != (int) baserel->relid || var->varattno <= 0)
			return false;
		if (!list_member(target->exprs, var))
			add_column_to_pathtarget(target, (Expr *) copyObject(var), 0);
	}
	return true;
}

/* add_sort_columns: those by which the rows are sorted. */
static bool
add_sort_columns(PathTarget *target, RelOptInfo *baserel, const List *pathkeys)
{
	ListCell   *cell;

	foreach(cell, pathkeys)
	{
		EquivalenceClass *class = lfirst_node(PathKey, cell)->pk_eclass;
		EquivalenceMember *member;
		MongoMembers members;

		mongo_members_begin(&members, class, baserel->relids);
		while ((member = mongo_members_next(&members)) != NULL)
		{
			if (bms_equal(member->em_relids, baserel->relids) &&
				!add_plain_columns(target, baserel, (Node *) member->em_expr))
				return false;
		}
	}
	return true;
}

/* add_tested_columns: those of the table's restrictions, which are tested once more. */
static bool
add_tested_columns(PathTarget *target, const RelOptInfo *baserel)
{
	ListCell   *cell;

	foreach(cell, baserel->baserestrictinfo)
	{
		if (!add_plain_columns(target, baserel, (Node *) lfirst_node(RestrictInfo, cell)->clause))
			return false;
	}
	return true;
}

/* limit_path: LIMIT and OFFSET of the query above a path. */
static Path *
limit_path(PlannerInfo *root, RelOptInfo *rel, Path *path)
{
	const Query *parse = root->parse;

	return (Path *) create_limit_path(root, rel, path, copyObject(parse->limitOffset),
									  copyObject(parse->limitCount), parse->limitOption, 0, 0);
}

Path *
mongo_local_order(PlannerInfo *root, RelOptInfo *baserel, List *expressions, List *pathkeys,
				  bool limited)
{
	PathTarget *target;
	Path	   *path;

	if (root->parent_root == NULL || baserel->reloptkind != RELOPT_BASEREL)
		return NULL;
	target = create_empty_pathtarget();
	if (!add_plain_columns(target, baserel, (Node *) expressions) ||
		!add_sort_columns(target, baserel, pathkeys) || !add_tested_columns(target, baserel))
		return NULL;
	path = mongo_hashed_plain_path(root, baserel, set_pathtarget_cost_width(root, target));
	if (path == NULL)
		return NULL;
	if (pathkeys != NIL)
		path = (Path *) create_sort_path(root, baserel, path, pathkeys, -1);
	return limited ? limit_path(root, baserel, path) : path;
}

Path *
mongo_local_sort(PlannerInfo *root, RelOptInfo *ordered_rel, const MongoUpperRelation *upper,
				 List *expressions)
{
	if (!upper->grouped)
		return mongo_local_order(root, upper->input, expressions, root->sort_pathkeys, false);
	if (upper->local == NULL)
		return NULL;
	return (Path *) create_sort_path(root, ordered_rel, upper->local, root->sort_pathkeys, -1);
}

Path *
mongo_local_limit(PlannerInfo *root, RelOptInfo *output_rel, const MongoUpperRelation *upper)
{
	return upper->local == NULL ? NULL : limit_path(root, output_rel, upper->local);
}

/* hashed_below: the scan of all documents, at the bottom of such a path. */
static const Path *
hashed_below(const Path *path)
{
	while (!IsA(path, ForeignPath))
	{
		if (IsA(path, LimitPath))
			path = ((const LimitPath *) path)->subpath;
		else if (IsA(path, SortPath))
			path = ((const SortPath *) path)->subpath;
		else
			path = castNode(AggPath, (Path *) path)->subpath;
	}
	return ((const ForeignPath *) path)->fdw_outerpath;
}

/* place_in_scan: where the entry of the second plan stands in the scan's tuple, or -1. */
static int
place_in_scan(const TargetEntry *entry, List *scan_tlist, Index scanrelid)
{
	const Var  *var = (const Var *) entry->expr;
	const TargetEntry *column;

	if (scanrelid != 0)
		return IsA(var, Var) && var->varno == (int) scanrelid ? var->varattno - 1 : -1;
	column = tlist_member(entry->expr, scan_tlist);
	return column == NULL ? -1 : column->resno - 1;
}

void
mongo_local_describe(const ForeignPath *path, const Plan *local, const MongoScanNode *node,
					 MongoScanPlan *plan)
{
	int			found = 0;
	ListCell   *cell;

	plan->change_after = mongo_change_after(hashed_below(path->fdw_outerpath), &path->path);
	foreach(cell, local->targetlist)
	{
		int			column = place_in_scan(lfirst_node(TargetEntry, cell), node->scan_tlist,
										   node->scanrelid);

		found += column >= 0;
		plan->local_columns = lappend_int(plan->local_columns, column);
	}
	if (found < list_length(node->scan_tlist))
		elog(ERROR, "second plan of a scan lacks some of its columns");
}
