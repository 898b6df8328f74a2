/*-------------------------------------------------------------------------
 *
 * batched_subqueries.c
 *		Puts nodes into finished plans that batch the values of correlated subqueries.
 *
 * PostgreSQL gives a subquery the values of one row after another, wherever an expression needs it.
 * A CustomScan above the node with such expressions reads many rows of that node, has the scans of
 * the subqueries fetch the documents for all of them (second_plan.c), and then computes the
 * expressions row by row.  The node below returns only what these take.  As paths know nothing of
 * this, it works above whatever the planner has chosen.  In the same way, such a node reads rows
 * for a nested loop whose inner side is a LATERAL subquery, or for an aggregation with subqueries
 * in arguments.
 *
 * First it is decided which subqueries are batched, then how the plan changes.
 * src/exec/batched_subqueries.c executes the node.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "catalog.h"
#include "options.h"

#include <math.h>

#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planmain.h"
#include "optimizer/tlist.h"

/* ----------------------- Which subqueries are batched --------------------- */

/* The statement whose plan is changed. */
typedef struct Placement
{
	const PlannedStmt *statement;
	const CustomScanMethods *methods;
	int			nnodes;			/* put into the plan */
	List	   *subplans;		/* plan_ids, in the expressions looked at */
	bool		may_stop;		/* perhaps not all of the node's rows are read */
	bool		limit_may_stop; /* the same if LIMIT is right above the node,
								 * of the rows that LIMIT returns */
	double		wanted;			/* rows of the node that a LIMIT wants; or 0 */
	bool		is_exact;		/* these are all read, and no more */
} Placement;

/* Rows in the first batch, if perhaps not all are read. */
#define UNKNOWN_FIRST_ROWS	32
#define LEAST_FIRST_ROWS	10

/*
 * mongo_batched_rows
 *		Returns how many outer rows the second plan of a foreign scan takes the values of at a
 *		time; 0 if it has none that does, or if not all of these values are among 'params'.
 */
int
mongo_batched_rows(const ForeignScan *scan, const List *params)
{
	const MongoScanPlan *plan = mongo_struct_from_list(&mongo_scan_plan_type, scan->fdw_private);
	const Plan *below = outerPlan(scan);
	const MongoScanPlan *hashed;

	if (plan->batch_rows == 0 || below == NULL)
		return 0;
	while (!IsA(below, ForeignScan))
		below = outerPlan(below);
	hashed = mongo_struct_from_list(&mongo_scan_plan_type, ((const ForeignScan *) below)->fdw_private);
	for (int i = 0; i < list_length(hashed->hash_keys); i++)
	{
		if (mongo_has_exec_param(list_nth(((const ForeignScan *) below)->fdw_exprs, hashed->hash_first + i),
								 unconstify(List *, params)))
			return 0;
	}
	return plan->batch_rows;
}

static bool
is_of_mongo_fdw(const ForeignScan *scan)
{
	return OidIsValid(scan->fs_server) && mongo_is_own_server(scan->fs_server);
}

/* Tells whether a scan of a subquery's plan or InitPlans takes the values of these parameters. */
static bool
has_batched_scan(const PlannedStmt *statement, const Plan *plan, const List *params)
{
	if (plan == NULL)
		return false;
	check_stack_depth();
	if (IsA(plan, ForeignScan))
		return is_of_mongo_fdw((const ForeignScan *) plan) &&
			mongo_batched_rows((const ForeignScan *) plan, params) > 0;
	if (IsA(plan, SubqueryScan))
		return has_batched_scan(statement, ((const SubqueryScan *) plan)->subplan, params);
	/* such as that of max(), which is one of ORDER BY and LIMIT */
	foreach_ptr(const SubPlan, subplan, plan->initPlan)
	{
		if (has_batched_scan(statement, list_nth(statement->subplans, subplan->plan_id - 1), params))
			return true;
	}
	foreach_ptr(const Plan, child, IsA(plan, Append) ? ((const Append *) plan)->appendplans :
				IsA(plan, MergeAppend) ? ((const MergeAppend *) plan)->mergeplans :
				IsA(plan, CustomScan) ? ((const CustomScan *) plan)->custom_plans : NIL)
	{
		if (has_batched_scan(statement, child, params))
			return true;
	}
	return has_batched_scan(statement, outerPlan(plan), params) ||
		has_batched_scan(statement, innerPlan(plan), params);
}

/* Tells whether this is what a node computes, or takes from the node below it. */
static bool
is_of_node(const Node *node)
{
	return IsA(node, Var) || IsA(node, Aggref) || IsA(node, WindowFunc) || IsA(node, GroupingFunc);
}

static bool
is_batched(const Placement *placement, const SubPlan *subplan)
{
	if (subplan->useHashTable || subplan->parParam == NIL || subplan->setParam != NIL)
		return false;
	foreach_ptr(const Node, arg, subplan->args)
	{
		if (!is_of_node(arg))
			return false;
	}
	return has_batched_scan(placement->statement,
							list_nth(placement->statement->subplans, subplan->plan_id - 1),
							subplan->parParam);
}

/*
 * Collects the subqueries that are batched, of an expression; a tree walker.
 *
 * Not those that may not be needed, because CASE, COALESCE, AND or OR decide that before.
 */
static bool
find_subplans(Node *node, void *context)
{
	Placement  *placement = context;

	if (node == NULL || is_of_node(node))
		return false;
	switch (nodeTag(node))
	{
		case T_SubPlan:
			if (is_batched(placement, (SubPlan *) node))
				placement->subplans = lappend_int(placement->subplans, ((SubPlan *) node)->plan_id);
			return false;
		case T_CaseExpr:
			return find_subplans((Node *) ((CaseExpr *) node)->arg, context) ||
				find_subplans((Node *) linitial_node(CaseWhen, ((CaseExpr *) node)->args)->expr, context);
		case T_CoalesceExpr:
			return find_subplans(linitial(((CoalesceExpr *) node)->args), context);
		case T_BoolExpr:
			return find_subplans(linitial(((BoolExpr *) node)->args), context);
		default:
			return expression_tree_walker(node, find_subplans, context);
	}
}

/* Tells whether an expression has subqueries that are batched, and collects these. */
static bool
has_batched(Placement *placement, Node *node)
{
	placement->subplans = NIL;
	(void) find_subplans(node, placement);
	return placement->subplans != NIL;
}

/* ---------------------------- How the plan changes ------------------------- */

/*
 * Returns the expression for the node above, which takes all Vars and the like from the node below;
 * 'context' is the latter's target list, to which these are added.
 */
static Node *
take_from_below(Node *node, void *context)
{
	List	  **below = context;
	TargetEntry *entry;

	if (node == NULL || !is_of_node(node))
		return expression_tree_mutator(node, take_from_below, context);
	entry = tlist_member((Expr *) node, *below);
	if (entry == NULL)
	{
		entry = makeTargetEntry((Expr *) copyObject(node), list_length(*below) + 1, NULL, false);
		*below = lappend(*below, entry);
	}
	return (Node *) makeVar(OUTER_VAR, entry->resno, exprType(node), exprTypmod(node),
							exprCollation(node), 0);
}

/*
 * Puts the node above 'below', with its rows and costs.  Takes over the InitPlans, whose values it
 * may need as well.
 */
static void
place_above(Plan *plan, Plan *below)
{
	plan->startup_cost = below->startup_cost;
	plan->total_cost = below->total_cost;
	plan->plan_rows = below->plan_rows;
	plan->plan_width = below->plan_width;
	mongo_copy_disabled_nodes(plan, below);
	plan->extParam = bms_union(plan->extParam, below->extParam);
	plan->allParam = bms_union(plan->allParam, below->allParam);
	plan->initPlan = list_concat(plan->initPlan, below->initPlan);
	foreach_ptr(const SubPlan, subplan, below->initPlan)
	{
		foreach_int(param, subplan->setParam)
			below->extParam = bms_add_member(below->extParam, param);
	}
	below->initPlan = NIL;
	plan->lefttree = below;
}

/* Returns the target list of a node above this one that returns its rows. */
static List *
outputs_of(const Plan *plan)
{
	List	   *tlist = NIL;

	foreach_node(TargetEntry, entry, plan->targetlist)
	{
		TargetEntry *output = flatCopyTargetEntry(entry);

		output->expr = (Expr *) makeVarFromTargetEntry(OUTER_VAR, entry);
		tlist = lappend(tlist, output);
	}
	return tlist;
}

/* Returns a node above the plan that returns its rows. */
static CustomScan *
pass_on(Placement *placement, Plan *plan, MongoBatchedSubqueries batched)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *above = &scan->scan.plan;

	above->targetlist = outputs_of(plan);
	place_above(above, plan);
	/* PostgreSQL counts up from 0 */
	above->plan_node_id = PG_INT32_MAX - placement->nnodes++;
	scan->custom_private = mongo_struct_to_list(&mongo_batched_subqueries_type, &batched);
	scan->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	scan->methods = placement->methods;
	return scan;
}

/* Tells whether the node may have a smaller target list, and one above it the rest. */
static bool
may_be_split(Plan *plan)
{
	if (plan->async_capable || !is_projection_capable_plan(plan) ||
		(IsA(plan, ForeignScan) && ((const ForeignScan *) plan)->operation != CMD_SELECT))
		return false;
	switch (nodeTag(plan))
	{
		case T_WindowAgg:
			/* run conditions refer to the target list */
			return plan->qual == NIL && ((const WindowAgg *) plan)->runCondition == NIL;
		case T_CustomScan:
			return strncmp(((const CustomScan *) plan)->methods->CustomName, "MongoDB ", 8) == 0;
		default:
			return true;
	}
}

/* Tells whether quals of a scan hide rows, which the scan itself has to test (scan_run.c). */
static bool
has_hiding_quals(const Plan *plan)
{
	return IsA(plan, ForeignScan) && is_of_mongo_fdw((const ForeignScan *) plan) &&
		((const MongoScanPlan *) mongo_struct_from_list(&mongo_scan_plan_type,
														((const ForeignScan *) plan)->fdw_private))->hiding != NIL;
}

/* Tells whether the node reads all rows below it before it returns one. */
static bool
reads_all(const Plan *plan)
{
	return IsA(plan, Sort) || IsA(plan, Hash) ||
		(IsA(plan, Agg) && ((const Agg *) plan)->aggstrategy != AGG_SORTED);
}

/* Tells whether the node may stop reading before the last row of a plan below it. */
static bool
stops_early(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Limit:
		case T_MergeJoin:
			return true;
		case T_NestLoop:
		case T_HashJoin:
			return ((const Join *) plan)->inner_unique || ((const Join *) plan)->jointype == JOIN_SEMI ||
				((const Join *) plan)->jointype == JOIN_ANTI;
		case T_WindowAgg:
			return ((const WindowAgg *) plan)->runCondition != NIL;
		default:
			return false;
	}
}

/* Tells whether these are the numbers of rows that a LIMIT skips and returns. */
static bool
has_known_rows(const Limit *limit)
{
	const Const *count = (const Const *) limit->limitCount;
	const Const *offset = (const Const *) limit->limitOffset;

	return limit->limitOption == LIMIT_OPTION_COUNT && count != NULL && IsA(count, Const) && !count->constisnull &&
		(offset == NULL || (IsA(offset, Const) && !offset->constisnull));
}

/* Returns how many rows of its outer side a node wants, if so many of its own are wanted. */
static double
rows_wanted_below(const Plan *plan, double wanted)
{
	const Limit *limit = (const Limit *) plan;

	if (reads_all(plan) || (IsA(plan, Limit) && !has_known_rows(limit)))
		return 0;
	if (IsA(plan, Limit))
		return (double) DatumGetInt64(((const Const *) limit->limitCount)->constvalue) +
			(limit->limitOffset == NULL ? 0 : (double) DatumGetInt64(((const Const *) limit->limitOffset)->constvalue));
	return outerPlan(plan) == NULL ? wanted :
		wanted * outerPlan(plan)->plan_rows / Max(plan->plan_rows, 1);
}

/* Returns so many rows as the size of a batch, at least 'least'. */
static int
rows_of_batch(double rows, int least)
{
	return (int) Min(Max(ceil(rows), least), PG_INT32_MAX);
}

/* Tells whether a plan returns exactly one row, such as an aggregate without GROUP BY. */
static bool
returns_one_row(const Plan *plan)
{
	while (plan->qual == NIL && (IsA(plan, SubqueryScan) || IsA(plan, CustomScan) || IsA(plan, Memoize)) &&
		   (IsA(plan, SubqueryScan) || outerPlan(plan) != NULL))
		plan = IsA(plan, SubqueryScan) ? ((const SubqueryScan *) plan)->subplan : outerPlan(plan);
	return IsA(plan, Agg) && plan->qual == NIL && ((const Agg *) plan)->aggstrategy == AGG_PLAIN &&
		((const Agg *) plan)->groupingSets == NIL;
}

/* Tells whether a loop returns one row for each of its outer side. */
static bool
keeps_rows(const Plan *plan)
{
	return IsA(plan, NestLoop) && plan->qual == NIL && returns_one_row(innerPlan(plan)) &&
		(((const Join *) plan)->jointype == JOIN_LEFT ||
		 (((const Join *) plan)->jointype == JOIN_INNER && ((const Join *) plan)->joinqual == NIL));
}

/*
 * Tells whether reading more rows of the plan, with these quals and this target list, may raise an
 * error or have an effect.  'is_rerun' tells whether it is run again for more rows of a loop.
 */
static bool
may_fail_to_read(const Plan *plan, List *quals, List *tlist, bool is_rerun)
{
	const Plan *below[2] = {outerPlan(plan), innerPlan(plan)};
	List	   *run_quals = NIL;	/* computed when it is run */

	if (mongo_may_fail((Node *) quals, NULL) || mongo_may_fail((Node *) tlist, NULL))
		return true;
	if (!is_rerun && reads_all(plan))
		return false;
	switch (nodeTag(plan))
	{
		case T_IndexScan:
			run_quals = ((const IndexScan *) plan)->indexqualorig;
			break;
		case T_IndexOnlyScan:
			run_quals = ((const IndexOnlyScan *) plan)->indexqual;
			break;
		case T_BitmapHeapScan:
			run_quals = ((const BitmapHeapScan *) plan)->bitmapqualorig;
			below[0] = NULL;
			break;
		case T_ForeignScan:
			/* the second plan is below */
			run_quals = ((const ForeignScan *) plan)->fdw_exprs;
			below[0] = NULL;
			break;
		case T_FunctionScan:
			return is_rerun;
		case T_SubqueryScan:
			below[0] = ((const SubqueryScan *) plan)->subplan;
			break;
		case T_NestLoop:
		case T_HashJoin:
		case T_MergeJoin:
			if (mongo_may_fail((Node *) ((const Join *) plan)->joinqual, NULL) ||
				(IsA(plan, HashJoin) &&
				 mongo_may_fail((Node *) ((const HashJoin *) plan)->hashclauses, NULL)))
				return true;
			break;
		case T_SeqScan:
		case T_CteScan:
		case T_CustomScan:
		case T_Result:
		case T_Limit:
		case T_Sort:
		case T_Hash:
		case T_Memoize:
		case T_Material:
		case T_Gather:
		case T_GatherMerge:
			break;
		default:
			return true;
	}
	if (is_rerun && mongo_may_fail((Node *) run_quals, NULL))
		return true;
	for (int i = 0; i < 2; i++)
	{
		/* the inner side of a loop that passes values on */
		if (i == 1 && IsA(plan, NestLoop) && ((const NestLoop *) plan)->nestParams != NIL)
			is_rerun = true;
		if (below[i] != NULL &&
			may_fail_to_read(below[i], below[i]->qual, below[i]->targetlist, is_rerun))
			return true;
	}
	return false;
}

/*
 * Returns the plan with a node above it that batches the subqueries found, and computes the target
 * list and the quals from index 'first' on; or as it is, if that would change how often something
 * volatile runs, or raise an error in rows that 'may_stop' says are perhaps not read.
 */
static Plan *
split(Placement *placement, Plan *plan, int first, bool may_stop)
{
	CustomScan *scan;
	List	   *quals = list_copy_tail(plan->qual, first);
	List	   *outputs;
	List	   *tlist = NIL;
	bool		may_fail;

	if (contain_volatile_functions((Node *) quals) ||
		contain_volatile_functions((Node *) plan->targetlist))
		return plan;
	quals = (List *) take_from_below((Node *) quals, &tlist);
	outputs = (List *) take_from_below((Node *) plan->targetlist, &tlist);
	may_fail = may_fail_to_read(plan, list_truncate(list_copy(plan->qual), first), tlist, false);
	if (may_stop && may_fail)
		return plan;
	scan = pass_on(placement, plan, (MongoBatchedSubqueries) {
		.subplans = placement->subplans,
		.first_batch = may_stop || may_fail ? rows_of_batch(1.25 * placement->wanted, UNKNOWN_FIRST_ROWS) : 0
	});
	scan->scan.plan.qual = quals;
	scan->scan.plan.targetlist = outputs;
	plan->qual = list_truncate(plan->qual, first);
	plan->targetlist = tlist;
	return &scan->scan.plan;
}

/*
 * Makes quals of an inner join those of its clauses that have subqueries to be batched, so that a
 * node above it can test them.  One clause that is hashed stays.
 */
static void
raise_join_clauses(Placement *placement, Join *join)
{
	HashJoin   *hash_join = IsA(join, HashJoin) ? (HashJoin *) join : NULL;
	Hash	   *hash = hash_join == NULL ? NULL : castNode(Hash, innerPlan(join));
	List	   *raised = NIL;
	int			first = 0;

	if (join->jointype != JOIN_INNER || placement->may_stop ||
		(join->inner_unique && IsA(join, MergeJoin)) ||
		contain_volatile_functions((Node *) join->plan.targetlist) ||
		contain_volatile_functions((Node *) join->joinqual))
		return;
	for (int i = hash == NULL ? 0 : list_length(hash_join->hashclauses); i-- > 0;)
	{
		if (list_length(hash_join->hashclauses) == 1 ||
			!has_batched(placement, list_nth(hash_join->hashclauses, i)))
			continue;
		raised = lcons(list_nth(hash_join->hashclauses, i), raised);
		hash_join->hashclauses = list_delete_nth_cell(hash_join->hashclauses, i);
		hash_join->hashoperators = list_delete_nth_cell(hash_join->hashoperators, i);
		hash_join->hashcollations = list_delete_nth_cell(hash_join->hashcollations, i);
		hash_join->hashkeys = list_delete_nth_cell(hash_join->hashkeys, i);
		hash->hashkeys = list_delete_nth_cell(hash->hashkeys, i);
	}
	while (first < list_length(join->joinqual) && !has_batched(placement, list_nth(join->joinqual, first)))
		first++;
	raised = list_concat(raised, list_copy_tail(join->joinqual, first));
	join->joinqual = list_truncate(join->joinqual, first);
	join->plan.qual = list_concat(raised, join->plan.qual);
	/* one that the other clauses find may not be the one */
	join->inner_unique &= raised == NIL;
}

/*
 * Returns the plan with a node above it for each of its quals with subqueries to be batched, and
 * another one if its target list has any.
 *
 * A node also tests the quals behind, which may rely on it, up to those of the next node.
 */
static Plan *
batch_node(Placement *placement, Plan *plan)
{
	Plan	   *top = plan;
	Plan	  **place = &top;

	if (IsA(plan, NestLoop) || IsA(plan, HashJoin) || IsA(plan, MergeJoin))
		raise_join_clauses(placement, (Join *) plan);
	if (!has_hiding_quals(plan))
	{
		for (int i = list_length(plan->qual) - 1; i >= 0; i--)
		{
			if (has_batched(placement, list_nth(plan->qual, i)))
				*place = split(placement, plan, i, placement->may_stop);
			if (*place != plan)
				place = &(*place)->lefttree;
		}
	}
	return !has_batched(placement, (Node *) top->targetlist) ? top :
		split(placement, top, list_length(top->qual), placement->limit_may_stop);
}

/* Returns the plan_ids of subqueries that are batched, in the arguments of an aggregation. */
static List *
subplans_of_arguments(Placement *placement, const Agg *agg)
{
	List	   *subplans = NIL;
	ListCell   *cell;

	foreach(cell, pull_var_clause((Node *) list_concat_copy(agg->plan.targetlist, agg->plan.qual),
								  PVC_INCLUDE_AGGREGATES))
	{
		if (IsA(lfirst(cell), Aggref) && has_batched(placement, (Node *) ((Aggref *) lfirst(cell))->args))
			subplans = list_concat_unique_int(subplans, placement->subplans);
	}
	return subplans;
}

static List *
params_of_loop(const NestLoop *loop)
{
	List	   *params = NIL;

	foreach_node(NestLoopParam, param, loop->nestParams)
		params = lappend_int(params, param->paramno);
	return params;
}

/*
 * Returns the plan 'top', which ends in 'plan'.  If that is a loop whose inner side has scans that
 * take values of outer rows in batches, such as a LATERAL subquery, or an aggregation with such
 * subqueries in arguments, puts a node above its outer side, which reads rows for it, and another
 * one above it, which makes the former known to the scans.
 *
 * Not if something volatile is computed for each row, which may be about the row just read.
 */
static Plan *
batch_outer_side(Placement *placement, Plan *plan, Plan *top)
{
	Plan	   *outer = outerPlan(plan);
	Plan	  **place = &top;
	MongoBatchedSubqueries batched = {
		.subplans = IsA(plan, Agg) ? subplans_of_arguments(placement, (const Agg *) plan) : NIL,
		.is_exact = placement->is_exact && keeps_rows(plan),
		.is_for_parent = true
	};
	bool		may_stop = placement->may_stop && !reads_all(plan) && !batched.is_exact;
	bool		may_fail;

	if (IsA(plan, NestLoop) ?
		!has_batched_scan(placement->statement, innerPlan(plan), params_of_loop((const NestLoop *) plan)) :
		batched.subplans == NIL)
		return top;
	may_fail = !reads_all(plan) && !batched.is_exact &&
		may_fail_to_read(outer, outer->qual, outer->targetlist, false);
	if (contain_volatile_functions((Node *) plan->targetlist) ||
		(IsA(plan, NestLoop) && contain_volatile_functions((Node *) innerPlan(plan)->targetlist)) ||
		(may_stop && may_fail))
		return top;
	if (batched.is_exact)
		batched.first_batch = rows_of_batch(placement->wanted, 1);
	else if (may_stop && placement->wanted > 0)
		batched.first_batch = rows_of_batch(1.25 * rows_wanted_below(plan, placement->wanted), LEAST_FIRST_ROWS);
	else if (may_stop || may_fail)
		batched.first_batch = UNKNOWN_FIRST_ROWS;
	outerPlan(plan) = &pass_on(placement, outer, batched)->scan.plan;
	while (*place != plan)
		place = &(*place)->lefttree;
	*place = &pass_on(placement, plan, (MongoBatchedSubqueries) {0})->scan.plan;
	return top;
}

static bool
is_count_limit(const Plan *plan)
{
	return IsA(plan, Limit) && ((const Limit *) plan)->limitOption == LIMIT_OPTION_COUNT;
}

/*
 * Returns the plan with the batching node below this LIMIT above it, if there is one; that then
 * reads no more rows than it returns.
 */
static Plan *
raise_above_limit(const Placement *placement, Limit *limit)
{
	Plan	   *batch = outerPlan(limit);
	CustomScan *scan = (CustomScan *) batch;
	MongoBatchedSubqueries *batched;

	if (!IsA(batch, CustomScan) || scan->methods != placement->methods || batch->qual != NIL ||
		!is_count_limit(&limit->plan))
		return &limit->plan;
	batched = mongo_struct_from_list(&mongo_batched_subqueries_type, scan->custom_private);
	if (batched->subplans == NIL)
		return &limit->plan;
	batched->first_batch = 0;
	scan->custom_private = mongo_struct_to_list(&mongo_batched_subqueries_type, batched);
	outerPlan(limit) = outerPlan(batch);
	limit->plan.targetlist = outputs_of(outerPlan(limit));
	place_above(batch, &limit->plan);
	return batch;
}

/* Returns the plan with nodes that batch subqueries, wherever it has any. */
static Plan *
batch_plan(Placement *placement, Plan *plan)
{
	const Placement here = *placement;
	Plan	   *top;
	List	   *plans = NIL;
	ListCell   *cell;

	if (plan == NULL)
		return NULL;
	check_stack_depth();
	placement->may_stop = !reads_all(plan) && (here.may_stop || stops_early(plan));
	placement->limit_may_stop = is_count_limit(plan) ? here.limit_may_stop : placement->may_stop;
	placement->wanted = rows_wanted_below(plan, here.wanted);
	placement->is_exact = IsA(plan, Limit) ? !here.may_stop && placement->wanted > 0 :
		here.is_exact && keeps_rows(plan);
	switch (nodeTag(plan))
	{
		case T_Gather:
		case T_GatherMerge:
		case T_ForeignScan:
			/* below it are workers' plans, or its second plan */
			break;
		case T_Append:
			plans = ((Append *) plan)->appendplans;
			break;
		case T_MergeAppend:
			plans = ((MergeAppend *) plan)->mergeplans;
			break;
		case T_CustomScan:
			/* the inner side of a batched join stays a foreign scan */
			if (may_be_split(plan))
				linitial(((CustomScan *) plan)->custom_plans) =
					batch_plan(placement, linitial(((CustomScan *) plan)->custom_plans));
			break;
		case T_SubqueryScan:
			((SubqueryScan *) plan)->subplan = batch_plan(placement, ((SubqueryScan *) plan)->subplan);
			break;
		case T_MergeJoin:
			/* the inner side has to go back, which Sort and Material can */
			outerPlan(plan) = batch_plan(placement, outerPlan(plan));
			if (IsA(innerPlan(plan), Sort) || IsA(innerPlan(plan), Material))
				innerPlan(plan) = batch_plan(placement, innerPlan(plan));
			break;
		default:
			outerPlan(plan) = batch_plan(placement, outerPlan(plan));
			innerPlan(plan) = batch_plan(placement, innerPlan(plan));
			break;
	}
	foreach(cell, plans)
		lfirst(cell) = batch_plan(placement, lfirst(cell));
	placement->may_stop = here.may_stop;
	placement->limit_may_stop = here.limit_may_stop;
	placement->wanted = here.wanted;
	placement->is_exact = here.is_exact;
	if (IsA(plan, Limit))
		return raise_above_limit(placement, (Limit *) plan);
	/* most statements have none, and their expressions need not be looked at */
	if (placement->statement->subplans == NIL)
		return IsA(plan, NestLoop) ? batch_outer_side(placement, plan, plan) : plan;
	top = may_be_split(plan) ? batch_node(placement, plan) : plan;
	return IsA(plan, NestLoop) || IsA(plan, Agg) ? batch_outer_side(placement, plan, top) : top;
}

/*
 * mongo_batch_subqueries
 *		Has the correlated subqueries of the statement batched where possible, by nodes with these
 *		methods.
 *
 * 'options' are those of the statement's cursor.  The nodes cannot go backwards, nor does WHERE
 * CURRENT OF find a row below them that is not locked.  Where a row that another transaction has
 * changed is tested again, they read that row alone.
 */
void
mongo_batch_subqueries(PlannedStmt *statement, int options, const CustomScanMethods *methods)
{
	/*
	 * a cursor, and PostgreSQL does not tell which subplan's rows are all
	 * read
	 */
	bool		is_cursor = (options & CURSOR_OPT_FAST_PLAN) != 0;
	Placement	placement = {
		.statement = statement, .methods = methods,
		.may_stop = is_cursor, .limit_may_stop = is_cursor
	};
	ListCell   *cell;

	if (statement->hasModifyingCTE ||
		(options & CURSOR_OPT_SCROLL) != 0 || !mongo_enable_batched_joins)
		return;
	statement->planTree = batch_plan(&placement, statement->planTree);
	placement.may_stop = placement.limit_may_stop = true;
	foreach(cell, statement->subplans)
	{
		const Plan *plan = lfirst(cell);

		/* a correlated subquery may run for few rows each time */
		if (plan != NULL && bms_is_empty(plan->extParam))
			lfirst(cell) = batch_plan(&placement, lfirst(cell));
	}
}
