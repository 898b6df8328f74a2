/*-------------------------------------------------------------------------
 *
 * ahead.c
 *		Sends the commands of several scans of a query together, over a network.
 *
 * When the first scan of a query begins, the others that the query will read are begun, too, so
 * that their round trips happen at the same time.  The plan tells which these are.  It may be
 * wrong: if the first side of a join is empty, the other one is not read.  So only scans are begun
 * that cost little, and none within a machine, where a round trip takes less than such a command.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"
#include "remote.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* A scan that may be begun before it is read. */
typedef struct WaitingScan
{
	dlist_node	node;
	bool		listed;
	ForeignScanState *scan;
	MemoryContextCallback callback;
} WaitingScan;

/* Those of all queries in execution. */
static dlist_head waiting_scans = DLIST_STATIC_INIT(waiting_scans);

static void
unlist(void *arg)
{
	WaitingScan *waiting = arg;

	if (waiting->listed)
		dlist_delete(&waiting->node);
	waiting->listed = false;
}

/* has_own_values: are all values of the command known, so that binding it raises no error? */
static bool
has_own_values(const ForeignScan *plan, const MongoScanPlan *scan_plan)
{
	ListCell   *cell;

	/* a LIMIT may be negative */
	if (scan_plan->limit >= 0 && !IsA(list_nth(plan->fdw_exprs, scan_plan->limit), Const))
		return false;

	foreach(cell, plan->fdw_exprs)
	{
		const Node *expression = lfirst(cell);

		if (!IsA(expression, Const) &&
			!(IsA(expression, Param) && ((const Param *) expression)->paramkind == PARAM_EXTERN))
			return false;
	}
	return bms_is_empty(plan->scan.plan.extParam);
}

void
mongo_ahead_add(ForeignScanState *node)
{
	const MongoScanState *state = node->fdw_state;
	const ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	WaitingScan *waiting;

	if (!state->plan->may_precede || state->plan->is_batched || state->plan->hash_keys != NIL ||
		plan->scan.plan.parallel_aware || node->ss.ps.async_capable ||
		!has_own_values(plan, state->plan))
		return;
	waiting = MemoryContextAllocZero(node->ss.ps.state->es_query_cxt, sizeof(WaitingScan));
	waiting->scan = node;
	waiting->callback.func = unlist;
	waiting->callback.arg = waiting;
	MemoryContextRegisterResetCallback(node->ss.ps.state->es_query_cxt, &waiting->callback);
	dlist_push_tail(&waiting_scans, &waiting->node);
	waiting->listed = true;
}

/*
 * needed_scans
 *		Appends the foreign scans that the plan reads from before it returns its second row, in
 *		the order in which they stand.
 */
static List *
needed_scans(const PlannedStmt *statement, const Plan *plan, List *scans)
{
	ListCell   *cell;

	if (plan == NULL)
		return scans;
	check_stack_depth();
	foreach(cell, plan->initPlan)
	{
		const SubPlan *subplan = lfirst(cell);

		if (subplan->subLinkType != CTE_SUBLINK)
			scans = needed_scans(statement, list_nth(statement->subplans, subplan->plan_id - 1), scans);
	}
	switch (nodeTag(plan))
	{
		case T_ForeignScan:
			return lappend(scans, unconstify(Plan *, plan));
		case T_SubqueryScan:
			return needed_scans(statement, ((const SubqueryScan *) plan)->subplan, scans);
		case T_MergeAppend:
			foreach(cell, ((const MergeAppend *) plan)->mergeplans)
				scans = needed_scans(statement, lfirst(cell), scans);
			return scans;
		case T_Result:
			return ((const Result *) plan)->resconstantqual != NULL ? scans :
				needed_scans(statement, plan->lefttree, scans);
		case T_Agg:
		case T_Group:
		case T_Hash:
		case T_HashJoin:
		case T_IncrementalSort:
		case T_Limit:
		case T_LockRows:
		case T_Material:
		case T_MergeJoin:
		case T_NestLoop:
		case T_ProjectSet:
		case T_SetOp:
		case T_Sort:
		case T_Unique:
		case T_WindowAgg:
			/* the inner side of a nested loop may need an outer row */
			scans = needed_scans(statement, plan->lefttree, scans);
			return plan->righttree != NULL && bms_is_empty(plan->righttree->extParam) ?
				needed_scans(statement, plan->righttree, scans) : scans;
		default:
			return scans;
	}
}

void
mongo_ahead_send(ForeignScanState *first)
{
	const EState *estate = first->ss.ps.state;
	MongoCursor *cursor = ((MongoScanState *) first->fdw_state)->run.cursor;
	List	   *scans = NIL;
	List	   *needed;
	ListCell   *cell;
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &waiting_scans)
	{
		WaitingScan *waiting = dlist_container(WaitingScan, node, iter.cur);

		if (waiting->scan->ss.ps.state != estate)
			continue;
		unlist(waiting);
		if (waiting->scan != first)
			scans = lappend(scans, waiting->scan);
	}
	/* MongoDB transactions may begin by reading */
	if (scans == NIL || estate->es_epq_active != NULL || IsolationUsesXactSnapshot())
		return;
	mongo_cursor_ask_now(cursor);
	needed = needed_scans(estate->es_plannedstmt, estate->es_plannedstmt->planTree, NIL);
	foreach(cell, scans)
	{
		ForeignScanState *node = lfirst(cell);
		MongoScanState *state = node->fdw_state;
		MongoAtWork work;

		if (state->started || !list_member_ptr(needed, node->ss.ps.plan))
			continue;
		mongo_begin_work(&work, state->relids);
		mongo_scan_start(node, cursor);
		if (state->run.cursor != NULL)
			mongo_cursor_send_behind(state->run.cursor, cursor);
		mongo_end_work(&work);
	}
}
