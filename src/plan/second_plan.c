/*-------------------------------------------------------------------------
 *
 * second_plan.c
 *		Plans scans of a correlated subquery that may switch to a hash table.
 *
 * Such a scan sends "column = value of the outer row" for each outer row, perhaps with an
 * aggregate, an ORDER BY or a LIMIT.  The plan does not know the number of outer rows.  So the
 * scan has a second plan below it, in which PostgreSQL does the same over a hashed scan.  That
 * reads documents into a hash table, and finds the rows of a value there: the documents for the
 * values of many outer rows, if batched_subqueries.c can have these collected, or after many values
 * the documents for all values.  src/exec/hashed_scan.c switches.
 *
 * First come the equalities by which rows are hashed, then the hashed scan, then what PostgreSQL
 * does above it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cost.h"
#include "plan_internal.h"
#include "options.h"
#include "translate.h"

#include <math.h>

#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/prep.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "utils/lsyscache.h"

/* --------------------- Keys, and the hashed scan ------------------------- */

/* The memory that a hashed scan needs for a row: its columns are in a file. */
#define HASHED_ROW_BYTES	64

/*
 * Tells whether the node contains a value of an outer query, of many rows perhaps; a tree walker.
 */
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

/*
 * mongo_has_exec_param
 *		Tells whether the node contains an executor parameter, except those of the List 'except' of
 *		paramids, which may be NULL; a tree walker.
 */
bool
mongo_has_exec_param(Node *node, void *except)
{
	if (node == NULL)
		return false;
	if (IsA(node, Param))
		return ((Param *) node)->paramkind == PARAM_EXEC &&
			!list_member_int(except, ((Param *) node)->paramid);
	return expression_tree_walker(node, mongo_has_exec_param, except);
}

/*
 * mongo_hashed_conditions
 *		Returns the RestrictInfos of 'clauses' that the path of a hashed scan sends to MongoDB.
 *
 * All clauses are tested for each row that is found in the hash table.
 */
List *
mongo_hashed_conditions(RelOptInfo *baserel, List *clauses, const List *keys)
{
	List	   *conditions = NIL;

	foreach_node(RestrictInfo, rinfo, clauses)
	{
		MongoTranslation translation = mongo_translation_of(baserel->fdw_private);
		bson_t	   *match = mongo_bson_create();

		/* other conditions may be true only of one value's rows */
		translation.known_conditions = NIL;
		if (list_member_ptr(keys, rinfo) || mongo_has_exec_param((Node *) rinfo->clause, NULL) ||
			mongo_translate_restriction(&translation, baserel, rinfo, match).exactness == MONGO_NOT_SHIPPABLE)
			continue;

		/*
		 * documents that no row needs must not cause an error, and a subquery
		 * may refer to an outer value as well
		 */
		if (mongo_cannot_fail(match) && !mongo_has_exec_param((Node *) translation.parameters, NULL))
			conditions = lappend(conditions, rinfo);
	}
	return conditions;
}

/* Returns the RestrictInfos that compare with values of an outer query. */
static List *
correlated_keys(PlannerInfo *root, RelOptInfo *baserel)
{
	List	   *keys = NIL;

	foreach_node(RestrictInfo, rinfo, baserel->baserestrictinfo)
	{
		MongoEquality key;

		if (has_outer_value((Node *) rinfo->clause, root) &&
			mongo_split_equality(root, baserel, rinfo, NULL, &key))
			keys = lappend(keys, rinfo);
	}
	return keys;
}

/* Tells whether so many of the table's rows can be hashed within a part of the memory for it. */
static bool
can_be_hashed(const RelOptInfo *baserel, double rows, double part)
{
	double		limit = get_hash_memory_limit() * part;

	return rows * HASHED_ROW_BYTES <= limit &&
		rows * baserel->reltarget->width / MONGO_HASHED_FILE_FACTOR <= limit;
}

/* A callback of check_functions_in_node(). */
static bool
is_leaky(Oid function, void *context pg_attribute_unused())
{
	return !get_func_leakproof(function);
}

/*
 * mongo_may_fail
 *		Tells whether computing this may raise an error for a later row than the first, or have an
 *		effect, which no leakproof function does; a tree walker.
 */
bool
mongo_may_fail(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
		case T_TargetEntry:
		case T_Var:
		case T_Param:
		case T_Const:
		case T_RelabelType:
		case T_BoolExpr:
		case T_NullTest:
			break;
		case T_Aggref:
			/* computed before the first row is */
			return false;
		default:
			if (!contain_var_clause(node) && !contain_agg_clause(node) &&
				!mongo_has_exec_param(node, NULL) && !contain_volatile_functions(node))
				return false;
			if ((!IsA(node, FuncExpr) && !IsA(node, OpExpr) && !IsA(node, ScalarArrayOpExpr)) ||
				check_functions_in_node(node, is_leaky, context))
				return true;
			break;
	}
	return expression_tree_walker(node, mongo_may_fail, context);
}

/*
 * Returns how the documents for many outer rows are found, palloc'd; NULL if they are not.
 *
 * The values are computed for rows for which the query perhaps does not compute the subquery, so
 * they must not raise errors.  Without an index, each such command examines all documents.
 */
static const MongoLookup *
find_lookup(PlannerInfo *root, RelOptInfo *baserel, const List *keys, List *conditions, double rows,
			bool only_looks_up)
{
	MongoLookup *lookup = palloc0(sizeof(MongoLookup));

	if (!mongo_enable_batched_joins)
		return NULL;
	foreach_node(RestrictInfo, rinfo, keys)
	{
		MongoEquality key;

		if (!mongo_split_equality(root, baserel, rinfo, NULL, &key) ||
			mongo_may_fail((Node *) key.value, NULL))
			return NULL;
	}
	if (!mongo_choose_lookup(root, baserel, keys, conditions, rows, lookup) ||
		(!lookup->indexed && !only_looks_up) || !can_be_hashed(baserel, lookup->found, 0.5))
		return NULL;
	lookup->cost += lookup->found * MONGO_COST_HASHED * MONGO_COST_UNIT;
	return lookup;
}

/*
 * Returns a path with this target, or the relation's if NULL, that fetches the documents for all
 * values of the outer rows, or for many at a time; NULL if no outer value is compared by equality,
 * or if the documents probably are too many or too large.
 */
static Path *
hashed_path(PlannerInfo *root, RelOptInfo *baserel, PathTarget *target)
{
	const MongoRelation *relation = baserel->fdw_private;
	List	   *keys;
	List	   *conditions;
	MongoPathDetails details = {0};
	MongoEstimate estimate;
	double		rows;

	/* PostgreSQL must be able to test all conditions */
	if (root->parent_root == NULL || relation->score != NULL || relation->calls_match ||
		relation->bindings != NIL ||
		relation->has_barrier || relation->below_barrier || !bms_is_empty(baserel->lateral_relids))
		return NULL;
	keys = correlated_keys(root, baserel);
	if (keys == NIL)
		return NULL;

	conditions = mongo_hashed_conditions(baserel, baserel->baserestrictinfo, keys);
	rows = clamp_row_est(baserel->tuples *
						 clauselist_selectivity(root, conditions, baserel->relid, JOIN_INNER, NULL));
	details.only_looks_up = !can_be_hashed(baserel, rows, 1);
	details.lookup = find_lookup(root, baserel, keys, conditions, rows, details.only_looks_up);
	if (details.only_looks_up && details.lookup == NULL)
		return NULL;
	/* the keys that are looked up come first */
	details.hash_clauses = details.lookup == NULL ? keys :
		list_concat_unique_ptr(list_copy(details.lookup->clauses), keys);
	estimate = mongo_estimate_scan(baserel, rows, mongo_examined_cost(baserel, baserel->tuples));
	estimate.total_cost += rows * MONGO_COST_HASHED * MONGO_COST_UNIT;
	if (details.only_looks_up)
		estimate.total_cost = estimate.startup_cost + details.lookup->cost;
	estimate.rows = baserel->rows;
	return mongo_foreign_path(root, baserel, target, estimate, NIL, NULL, NULL, &details);
}

/*
 * mongo_hashed_describe
 *		Sets how the rows are hashed in 'plan', and appends the expressions for that to 'scan'.
 *
 * 'details' are the path's.
 */
void
mongo_hashed_describe(PlannerInfo *root, RelOptInfo *baserel, const MongoPathDetails *details,
					  ForeignScan *scan, MongoScanPlan *plan)
{
	int			nasked = details->lookup == NULL ? 0 : list_length(details->lookup->keys);
	List	   *values = NIL;
	List	   *columns = NIL;
	ListCell   *cell;

	plan->hash_first = list_length(scan->fdw_exprs);
	foreach(cell, details->hash_clauses)
	{
		MongoEquality *equality = palloc0(sizeof(MongoEquality));

		if (!mongo_split_equality(root, baserel, lfirst_node(RestrictInfo, cell), NULL, equality))
			elog(ERROR, "hash key of a scan is no longer an equality");
		equality->key.asked = foreach_current_index(cell) < nasked;
		plan->hash_keys = lappend(plan->hash_keys, &equality->key);
		values = lappend(values, equality->value);
		columns = lappend(columns, equality->field);
	}
	scan->fdw_exprs = list_concat(scan->fdw_exprs, list_concat(values, columns));
}

/* -- Second plans, in which PostgreSQL computes what MongoDB computes for single values -- */

/*
 * mongo_second_aggregate
 *		Returns a path that computes the outputs of 'upper', a group over a table, in PostgreSQL;
 *		NULL if the table cannot be hashed for the query.
 */
Path *
mongo_second_aggregate(PlannerInfo *root, RelOptInfo *grouped_rel,
					   const MongoUpperRelation *upper, const GroupPathExtraData *extra)
{
	List	   *having = copyObject((List *) extra->havingQual);
	bool		has_keys = root->parse->groupClause != NIL;
	PathTarget *target;
	AggClauseCosts costs = {0};
	Path	   *path;
	ListCell   *cell;

	if (upper->input->reloptkind != RELOPT_BASEREL ||
		(has_keys && (extra->flags & GROUPING_CAN_USE_HASH) == 0))
		return NULL;
	path = hashed_path(root, upper->input, NULL);
	if (path == NULL)
		return NULL;
	target = create_empty_pathtarget();
	foreach(cell, upper->outputs)
		add_column_to_pathtarget(target, copyObject(((MongoOutput *) lfirst(cell))->expression), 0);
	set_pathtarget_cost_width(root, target);
	if (contain_subplans((Node *) target->exprs) || contain_subplans((Node *) having))
		return NULL;
	/* aggregates with an ORDER BY may require sorted input */
	if (!has_keys && root->group_pathkeys != NIL)
		path = (Path *) create_sort_path(root, grouped_rel, path, root->group_pathkeys, -1);
	get_agg_clause_costs(root, AGGSPLIT_SIMPLE, &costs);
	return (Path *) create_agg_path(root, grouped_rel, path, target,
									has_keys ? AGG_HASHED : AGG_PLAIN, AGGSPLIT_SIMPLE,
									mongo_group_clause(root), having, &costs, upper->estimate.rows);
}

/*
 * mongo_second_above
 *		Returns a path above 'path' of 'rel' that sorts, unless pathkeys is NIL, and limits if
 *		'limited'; NULL if 'path' is NULL.
 */
Path *
mongo_second_above(PlannerInfo *root, RelOptInfo *rel, Path *path, List *pathkeys, bool limited)
{
	const Query *parse = root->parse;

	if (path != NULL && pathkeys != NIL)
		path = (Path *) create_sort_path(root, rel, path, pathkeys, -1);
	if (path == NULL || !limited)
		return path;
	return (Path *) create_limit_path(root, rel, path, copyObject(parse->limitOffset),
									  copyObject(parse->limitCount), parse->limitOption, 0, 0);
}

/*
 * mongo_second_order
 *		Returns a path of the table's columns in these expressions, sorted unless pathkeys is NIL,
 *		and limited by LIMIT and OFFSET if 'limited'; NULL if the table cannot be hashed for the
 *		query.
 */
Path *
mongo_second_order(PlannerInfo *root, RelOptInfo *baserel, List *expressions, List *pathkeys,
				   bool limited)
{
	List	   *clauses;
	PathTarget *target;
	List	   *vars;

	if (root->parent_root == NULL ||
		(pathkeys != NIL && baserel->reloptkind != RELOPT_BASEREL))
		return NULL;

	/*
	 * the scan tests all clauses again, as its commands' rows need some of
	 * them
	 */
	clauses = extract_actual_clauses(baserel->baserestrictinfo, false);
	if (contain_volatile_functions((Node *) clauses))
		return NULL;
	target = create_empty_pathtarget();
	/* columns that are output, sort keys, and columns tested */
	vars = pull_var_clause((Node *) list_concat(list_concat_copy(expressions, baserel->reltarget->exprs),
												clauses),
						   PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
						   PVC_RECURSE_PLACEHOLDERS);
	foreach_node(Var, var, vars)
	{
		if (var->varno != (int) baserel->relid || var->varattno == InvalidAttrNumber)
			return NULL;
		/* every scan has the system columns */
		if (var->varattno > 0)
			add_new_column_to_pathtarget(target, copyObject((Expr *) var));
	}
	return mongo_second_above(root, baserel,
							  hashed_path(root, baserel, set_pathtarget_cost_width(root, target)),
							  pathkeys, limited);
}

/* Returns the index of the second plan's entry in the scan's tuple; -1 if it is not there. */
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

/*
 * mongo_second_describe
 *		Sets in 'plan' when its scan, of this path, switches to the second plan 'second', and which
 *		columns of that are those of 'scan'.  Returns false if it never switches.
 */
bool
mongo_second_describe(const ForeignPath *path, const Plan *second,
					  const ForeignScan *scan, MongoScanPlan *plan)
{
	const ForeignPath *all = mongo_hashed_scan_below(path->fdw_outerpath);
	const MongoLookup *lookup = mongo_path_details(all).lookup;
	MongoPathDetails single = mongo_path_details(path);
	int			found = 0;
	ListCell   *cell;

	if (!mongo_path_details(all).only_looks_up)
		plan->switch_after = Min(ceil(all->path.total_cost / Max(single.total_cost, 1)),
								 PG_INT32_MAX / 2);
	if (lookup != NULL && lookup->cost < lookup->rows * single.run_cost)
	{
		plan->batch_rows = lookup->indexed ? lookup->rows : MONGO_COST_UNINDEXED_ROWS;
		plan->batch_runs = ceil(lookup->cost / single.run_cost);
	}
	foreach(cell, second->targetlist)
	{
		int			column = place_in_scan(lfirst_node(TargetEntry, cell), scan->fdw_scan_tlist,
										   scan->scan.scanrelid);

		found += column >= 0;
		plan->second_columns = lappend_int(plan->second_columns, column);
	}
	if (found < list_length(scan->fdw_scan_tlist))
		elog(ERROR, "second plan of a scan lacks some of its columns");
	return plan->switch_after > 0 || plan->batch_rows > 0;
}
