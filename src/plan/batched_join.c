/*-------------------------------------------------------------------------
 *
 * batched_join.c
 *		Planning nested loops that ask for many rows' keys at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan.h"

#include "batched_keys.h"
#include "cost.h"
#include "join.h"
#include "plan_nodes.h"
#include "planning_state.h"
#include "relation.h"
#include "settings.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"

static set_join_pathlist_hook_type next_hook = NULL;
static const CustomScanMethods *scan_methods = NULL;

/* estimate_batched_join: of the outer side once, and of asking for its rows' keys. */
static void
estimate_batched_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *innerrel,
					  const MongoBatchedKeys *keys, List *join_clauses, CustomPath *path)
{
	const MongoTableOptions *options = ((MongoRelation *) innerrel->fdw_private)->options;
	const Path *outer = linitial(path->custom_paths);
	Path	   *inner_path = lsecond(path->custom_paths);
	QualCost	quals;
	Cost		cost;

	cost_qual_eval(&quals, join_clauses, root);

	/* what EXPLAIN shows: a find's part */
	inner_path->rows = clamp_row_est(keys->found / mongo_batches(outer->rows));
	inner_path->startup_cost = options->fdw_startup_cost;
	inner_path->total_cost = options->fdw_startup_cost +
		inner_path->rows * options->fdw_tuple_cost;

	cost = keys->cost + outer->rows * 2 * cpu_operator_cost +
		keys->found * (cpu_tuple_cost + quals.per_tuple + innerrel->baserestrictcost.per_tuple);

	path->path.rows = joinrel->rows;
	path->path.startup_cost = outer->startup_cost + quals.startup +
		joinrel->reltarget->cost.startup + options->fdw_startup_cost *
		(keys->indexed ? MONGO_COST_BATCHED_FIND : 1);
	path->path.total_cost = outer->total_cost + quals.startup +
		joinrel->reltarget->cost.startup + cost +
		joinrel->rows * (cpu_tuple_cost + joinrel->reltarget->cost.per_tuple);
}

/* output_var: the same Var among the outputs, or NULL; so a placeholder. */
static const Var *
output_var(const List *outputs, const Var *var)
{
	ListCell   *cell;

	foreach(cell, outputs)
	{
		const Var  *output = lfirst(cell);

		if (IsA(output, Var) && output->varno == var->varno &&
			output->varattno == var->varattno)
			return output;
	}
	return NULL;
}

static const PlaceHolderVar *
output_placeholder(const List *outputs, const PlaceHolderVar *placeholder)
{
	ListCell   *cell;

	foreach(cell, outputs)
	{
		const PlaceHolderVar *output = lfirst(cell);

		if (IsA(output, PlaceHolderVar) && output->phid == placeholder->phid)
			return output;
	}
	return NULL;
}

/*
 * unify_nulling
 *		Let each Var and PlaceHolderVar have the outer joins of the same one among
 *		the 'outputs', or none.
 *
 * The clauses see the inner side's Vars before this join, the target list after
 * it; both are to be found among the columns of the scan.
 */
static bool
unify_nulling(Node *node, void *outputs)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var))
	{
		mongo_copy_nulling((Var *) node, output_var(outputs, (Var *) node));
		return false;
	}
	if (IsA(node, PlaceHolderVar))
		mongo_copy_placeholder_nulling((PlaceHolderVar *) node,
									   output_placeholder(outputs, (PlaceHolderVar *) node));
	return expression_tree_walker(node, unify_nulling, outputs);
}

/* plan_batched_join: the callback of CustomPathMethods. */
static Plan *
plan_batched_join(PlannerInfo *root pg_attribute_unused(),
				  RelOptInfo *joinrel, CustomPath *path,
				  List *tlist, List *clauses pg_attribute_unused(), List *plans)
{
	CustomScan *scan = makeNode(CustomScan);
	ListCell   *cell;
	ListCell   *plan_cell;

	/*
	 * a pair of rows: all that the outer plan gives, then the foreign scan; a
	 * second scan gives the same
	 */
	foreach(plan_cell, plans)
	{
		if (foreach_current_index(plan_cell) > 1)
			break;
		foreach(cell, ((Plan *) lfirst(plan_cell))->targetlist)
		{
			TargetEntry *entry = lfirst_node(TargetEntry, cell);

			scan->custom_scan_tlist =
				lappend(scan->custom_scan_tlist,
						makeTargetEntry(copyObject(entry->expr),
										list_length(scan->custom_scan_tlist) + 1,
										NULL, false));
		}
	}
	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = copyObject(lthird(path->custom_private));
	scan->custom_exprs = copyObject(lsecond(path->custom_private));
	unify_nulling((Node *) list_make3(scan->custom_scan_tlist, scan->scan.plan.qual,
									  scan->custom_exprs),
				  list_concat(pull_var_clause((Node *) joinrel->reltarget->exprs,
											  PVC_RECURSE_PLACEHOLDERS),
							  pull_var_clause((Node *) joinrel->reltarget->exprs,
											  PVC_INCLUDE_PLACEHOLDERS)));
	scan->custom_private = linitial(path->custom_private);
	scan->custom_plans = plans;
	scan->flags = path->flags;
	scan->methods = scan_methods;
	return (Plan *) scan;
}

/* A clause, and what says when its turn is. */
typedef struct OrderedClause
{
	RestrictInfo *rinfo;
	Cost		cost;
	int			number;
} OrderedClause;

/* compare_clauses: for qsort(). */
static int
compare_clauses(const void *left, const void *right)
{
	const OrderedClause *one = left;
	const OrderedClause *other = right;

	if (one->rinfo->security_level != other->rinfo->security_level)
		return one->rinfo->security_level < other->rinfo->security_level ? -1 : 1;
	if (one->cost != other->cost)
		return one->cost < other->cost ? -1 : 1;
	return one->number - other->number;
}

/*
 * in_order: bare clauses as PostgreSQL would evaluate them, those of a security
 * barrier first and then by cost; see order_qual_clauses() in createplan.c.
 */
static List *
in_order(PlannerInfo *root, List *rinfos)
{
	int			count = list_length(rinfos);
	OrderedClause *clauses = palloc(sizeof(OrderedClause) * Max(count, 1));
	List	   *result = NIL;

	for (int i = 0; i < count; i++)
	{
		QualCost	cost;

		clauses[i].rinfo = list_nth_node(RestrictInfo, rinfos, i);
		clauses[i].number = i;
		cost_qual_eval_node(&cost, (Node *) clauses[i].rinfo, root);
		clauses[i].cost = cost.per_tuple;
	}
	qsort(clauses, count, sizeof(OrderedClause), compare_clauses);
	for (int i = 0; i < count; i++)
		result = lappend(result, clauses[i].rinfo->clause);
	return result;
}

static const CustomPathMethods path_methods = {
	.CustomName = "MongoDB Batched Join",
	.PlanCustomPath = plan_batched_join,
};

/* plain_path: of all documents, where no index finds those with a key. */
static Path *
plain_path(PlannerInfo *root, RelOptInfo *innerrel)
{
	const MongoRelation *inner = innerrel->fdw_private;
	Cost		startup_cost;
	Cost		total_cost;

	mongo_estimate_scan(innerrel, inner->remote_rows, inner->examined_rows,
						&startup_cost, &total_cost);
	return (Path *) mongo_foreignscan_path(root, innerrel, NULL, innerrel->rows,
										   startup_cost, total_cost, NIL, NULL, NULL, NIL);
}

/* add_path_for: all is known but the costs. */
static void
add_path_for(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *innerrel,
			 Path *outer_path, const MongoBatchedJoin *join, const MongoBatchedKeys *keys,
			 List *join_clauses, List *other_clauses)
{
	CustomPath *path = makeNode(CustomPath);
	Path	   *inner_path;

	inner_path = (Path *) mongo_foreignscan_path(root, innerrel, NULL, innerrel->rows,
												 0, 0, NIL, NULL, NULL,
												 keys->conditions);
	path->path.pathtype = T_CustomScan;
	path->path.parent = joinrel;
	path->path.pathtarget = joinrel->reltarget;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &path_methods;
	path->custom_paths = list_make2(outer_path, inner_path);
	if (!keys->indexed)
		path->custom_paths = lappend(path->custom_paths, plain_path(root, innerrel));
	path->custom_private = list_make3(mongo_struct_to_list(&mongo_batched_join_type, join),
									  list_make3(in_order(root, join_clauses),
												 keys->outer, keys->inner),
									  in_order(root, other_clauses));
	estimate_batched_join(root, joinrel, innerrel, keys, join_clauses, path);
	add_path(joinrel, (Path *) path);
}

/*
 * is_ours: a foreign table that can be asked for keys?  It may be one that is
 * known to give no rows, of which nothing else is known then.
 */
static bool
is_ours(RelOptInfo *rel)
{
	return rel->reloptkind == RELOPT_BASEREL && rel->fdwroutine != NULL &&
		rel->fdwroutine->GetForeignRelSize == mongo_get_foreign_rel_size &&
		rel->fdw_private != NULL && !IS_DUMMY_REL(rel) &&
		bms_is_empty(rel->lateral_relids);
}

/*
 * consider_batched_join
 *		The planner's set_join_pathlist_hook.
 */
static void
consider_batched_join(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel,
					  RelOptInfo *innerrel, JoinType type, JoinPathExtraData *extra)
{
	Path	   *outer_path = outerrel->cheapest_total_path;
	List	   *join_clauses;
	List	   *other_clauses;
	MongoBatchedKeys keys;
	MemoryContext old_context;

	if (next_hook != NULL)
		next_hook(root, joinrel, outerrel, innerrel, type, extra);

	/* a semijoin the other way round: of rows without their duplicates */
	if (type == JOIN_UNIQUE_OUTER && is_ours(innerrel))
	{
		outer_path = (Path *) create_unique_path(root, outerrel, outer_path, extra->sjinfo);
		type = JOIN_INNER;
	}
	if (!mongo_enable_pushdown || !mongo_enable_batched_joins || !is_ours(innerrel) ||
		!mongo_join_type_is_known(type) || !mongo_is_plain_query(root) ||
		!bms_is_empty(joinrel->lateral_relids) || root->hasPseudoConstantQuals ||
		outer_path == NULL || outer_path->param_info != NULL)
		return;

	old_context = mongo_enter_planning(joinrel);
	mongo_check_planning_state(innerrel);
	mongo_split_join_clauses(joinrel, type, extra->restrictlist, &join_clauses,
							 &other_clauses);
	if (mongo_find_batched_keys(root, outer_path, innerrel, join_clauses, &keys))
	{
		MongoBatchedJoin join = {
			.type = type, .all_rows = root->tuple_fraction <= 0, .columns = keys.columns
		};

		add_path_for(root, joinrel, innerrel, outer_path, &join, &keys, join_clauses,
					 other_clauses);
	}
	MemoryContextSwitchTo(old_context);
}

void
mongo_install_batched_joins(const CustomScanMethods *methods)
{
	scan_methods = methods;
	RegisterCustomScanMethods(methods);
	next_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = consider_batched_join;
}
