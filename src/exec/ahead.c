/*-------------------------------------------------------------------------
 *
 * ahead.c
 *		Begins scans before they are read.
 *
 * Before a write that a scan may see and must not, the scan is begun, unless its command lacks a
 * value: that of an outer row, or of an InitPlan.  Such a scan raises an error if it begins later.
 *
 * Over a network the commands of several scans of a query are sent together.  When the first scan
 * of a query begins, the others that the query will read are begun, too, so that their round trips
 * happen at the same time.  The plan specifies which these are.  It may be wrong: if the first
 * side of a join is empty, the other one is not read.  So only scans are begun that cost little,
 * and none within a machine, where a round trip takes less than such a command.
 *
 * The list of scans (mongo_active_scans) is that of src/remote/order.c, which calls before_write().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "tcop/pquery.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"

/*
 * Starts a run of the scan; returns whether it has opened a cursor.  'first' is that of
 * mongo_run_open().
 */
static bool
start_run(ForeignScanState *node, MongoCursor *first)
{
	MongoScanState *state = node->fdw_state;
	MongoErrorSource source;
	bool		opens;

	if (mongo_has_batched_rows(node))
	{
		mongo_results_leave(state->results);
		mongo_run_reset(&state->run);
		state->started = state->run.is_local = true;
		return false;
	}
	mongo_push_error_source(&source, state->relids);
	opens = mongo_run_begin(node);
	if (opens)
	{
		state->run.is_local = mongo_switch_plan(node);
		if (!state->run.is_local)
			mongo_run_open(node, first);
	}
	mongo_pop_error_source(&source);
	return opens && state->run.cursor != NULL;
}

/* ------------------------- scans before a write --------------------------- */

/* Tells whether a value is that of an InitPlan that has not run; a tree walker. */
static bool
awaits_value(Node *node, void *context)
{
	const EState *estate = context;

	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
		return estate->es_param_exec_vals[((Param *) node)->paramid].execPlan != NULL;
	return expression_tree_walker(node, awaits_value, context);
}

/*
 * Begins a scan in its own query's snapshot, as the user of that query, with its restrictions and
 * its search_path: a function of another role's may be writing, with a search_path of its own, or
 * a superuser after a REFRESH MATERIALIZED VIEW, in which a role has left a cursor.
 *
 * Settings that a function in a value of its command changes do not reach the writing statement.
 * Nor may such a function fetch from the scan's own cursor, or close it.  If that fails, the scan
 * is not begun later.  The error ends the statement that writes.
 */
static void
begin_early(MongoScanState *state)
{
	EState	   *estate = state->node->ss.ps.state;
	ResourceOwner old_owner = CurrentResourceOwner;
	bool		waits = state->portal != NULL && state->portal->status == PORTAL_READY;
	Oid			userid;
	int			security;
	int			settings = NewGUCNestLevel();

	if (waits)
		state->portal->status = PORTAL_ACTIVE;
	GetUserIdAndSecContext(&userid, &security);
	SetUserIdAndSecContext(state->userid, security | state->security | SECURITY_LOCAL_USERID_CHANGE);
	(void) set_config_option("search_path", state->search_path, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	CurrentResourceOwner = state->reader.listed.owner;
	PushActiveSnapshot(estate->es_snapshot);
	PG_TRY();
	{
		mongo_scan_start(state->node);

		/*
		 * once the write's transaction has begun, this needs another
		 * connection
		 */
		if (state->run.cursor != NULL)
			mongo_cursor_ask_now(state->run.cursor);
	}
	PG_CATCH();
	{
		state->started = false;
		state->overtaken = MONGO_OVERTAKEN;
		if (waits)
			state->portal->status = PORTAL_READY;
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (waits)
		state->portal->status = PORTAL_READY;
	state->unread = true;
	PopActiveSnapshot();
	CurrentResourceOwner = old_owner;
	SetUserIdAndSecContext(userid, security);
	AtEOXact_GUC(false, settings);
}

/* Tells whether one of the scan's tables is of the collection that is written. */
static bool
names_written(const MongoScanState *state, const MongoAccessScope *written)
{
	foreach_oid(relid, state->relids)
	{
		if (strcmp(mongo_to_utf8(mongo_table_options(relid)->collection),
				   written->collection) == 0)
			return true;
	}
	return false;
}

/*
 * Begins a scan that has not been read (MongoActiveScan), and records if it is too late for the
 * scan to send further commands.
 *
 * It is not too late for scans of the query that writes: they see rows that it had to send at
 * once.  Of 'deferred' writes that is true only of the scan of rows to be changed, each of which
 * is changed once.  Nor is it too late if a command might write anywhere, which mostly is
 * elsewhere.
 */
static void
before_write(MongoActiveScan *reader, const MongoAccessScope *written, MemoryContext statement,
			 bool deferred)
{
	MongoScanState *state = (MongoScanState *) reader;
	EState	   *estate = state->node->ss.ps.state;

	StaticAssertStmt(offsetof(MongoScanState, reader) == 0, "must be its first member");
	/* the query has all its rows */
	if (estate->es_finished)
		return;
	if (!state->started && state->overtaken == MONGO_NOT_OVERTAKEN && state->plan->needs_no_row &&
		!awaits_value((Node *) ((ForeignScan *) state->node->ss.ps.plan)->fdw_exprs, estate))
		begin_early(state);
	if ((statement == estate->es_query_cxt && (!deferred || state->identities != NULL)) ||
		written->collection == NULL || state->overtaken == MONGO_OVERTAKEN)
		return;
	if (names_written(state, written))
		state->overtaken = MONGO_OVERTAKEN;
	else if (!state->reads_collections)
		state->overtaken = MONGO_MAYBE_OVERTAKEN;
}

/* Tells whether the scan may be begun when another one is, and binding it raises no error. */
static bool
may_precede(const ForeignScanState *node)
{
	const MongoScanPlan *scan_plan = ((const MongoScanState *) node->fdw_state)->plan;
	const ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;

	if (!scan_plan->may_precede || scan_plan->is_batched || scan_plan->hash_keys != NIL ||
		node->ss.ps.async_capable || !bms_is_empty(plan->scan.plan.extParam))
		return false;
	/* a LIMIT may be negative */
	if (scan_plan->limit >= 0 && !IsA(list_nth(plan->fdw_exprs, scan_plan->limit), Const))
		return false;
	foreach_ptr(const Node, expression, plan->fdw_exprs)
	{
		if (!IsA(expression, Const) &&
			!(IsA(expression, Param) && ((const Param *) expression)->paramkind == PARAM_EXTERN))
			return false;
	}
	return true;
}

/*
 * mongo_ahead_add
 *		Lists a scan that begins, until mongo_end_foreign_scan(), so that it can be begun before it
 *		is read.
 */
void
mongo_ahead_add(ForeignScanState *node, Oid serverid)
{
	MongoScanState *state = node->fdw_state;
	const MongoScanPlan *plan = state->plan;
	EState	   *estate = node->ss.ps.state;

	state->node = node;
	GetUserIdAndSecContext(&state->userid, &state->security);
	if (plan->needs_no_row)
		state->search_path = pstrdup(namespace_search_path);
	state->portal = ActivePortal;
	state->reader.scope = (MongoAccessScope) {
		serverid, mongo_to_utf8(plan->database),
		plan->reads_one ? mongo_to_utf8(plan->collection) : NULL
	};
	state->reader.command = estate->es_snapshot->curcid;
	state->reader.before_write = before_write;
	/* EvalPlanQual() reads nothing */
	if (estate->es_epq_active != NULL)
		return;
	state->may_precede = may_precede(node);
	state->callback.func = mongo_list_remove;
	state->callback.arg = &state->reader.listed;
	MemoryContextRegisterResetCallback(estate->es_query_cxt, &state->callback);
	mongo_list_add(&mongo_active_scans, &state->reader.listed);
}

/* -------------------- scans whose commands are sent together ---------------- */

/* Appends the foreign scans that the plan reads from before its second row, in their order. */
static List *
needed_scans(const PlannedStmt *statement, const Plan *plan, List *scans)
{
	if (plan == NULL)
		return scans;
	check_stack_depth();
	foreach_ptr(const SubPlan, subplan, plan->initPlan)
	{
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
			foreach_ptr(const Plan, merged, ((const MergeAppend *) plan)->mergeplans)
				scans = needed_scans(statement, merged, scans);
			return scans;
		case T_Result:
			return ((const Result *) plan)->resconstantqual != NULL ? scans :
				needed_scans(statement, plan->lefttree, scans);
		case T_Agg:
		case T_CustomScan:
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

/* Starts the other scans that the query needs, and sends all their commands behind the first one's. */
static void
send_others(ForeignScanState *first)
{
	const EState *estate = first->ss.ps.state;
	MongoCursor *cursor = ((MongoScanState *) first->fdw_state)->run.cursor;
	List	   *scans = NIL;
	List	   *needed;

	foreach_dlist(MongoActiveScan, listed.node, reader, &mongo_active_scans)
	{
		MongoScanState *state = (MongoScanState *) reader;

		if (!state->may_precede || state->node->ss.ps.state != estate)
			continue;
		state->may_precede = false;
		if (state->node != first)
			scans = lappend(scans, state->node);
	}
	/* MongoDB transactions may begin by reading */
	if (scans == NIL || IsolationUsesXactSnapshot())
		return;
	mongo_cursor_ask_now(cursor);
	needed = needed_scans(estate->es_plannedstmt, estate->es_plannedstmt->planTree, NIL);
	foreach_ptr(ForeignScanState, node, scans)
	{
		MongoScanState *state = node->fdw_state;

		if (!state->started && list_member_ptr(needed, node->ss.ps.plan) && start_run(node, cursor))
			mongo_cursor_send_behind(state->run.cursor, cursor);
	}
}

/*
 * mongo_scan_start
 *		Starts a run of the scan: binds its first command, and opens a cursor on it unless it
 *		matches nothing, its result is cached, or its rows come from the second plan.
 *
 * If it is the query's first scan over a network, starts the others, too.  Raises what starting
 * and sending raise.
 */
void
mongo_scan_start(ForeignScanState *node)
{
	if (start_run(node, NULL) && ((MongoScanState *) node->fdw_state)->plan->network != NULL)
		send_others(node);
}
