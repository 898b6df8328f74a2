/*-------------------------------------------------------------------------
 *
 * foreign_scan.c
 *		PostgreSQL's callbacks for foreign scans.
 *
 * Nothing is sent before the first row is requested, unless ahead.c starts the scan earlier.  Rows
 * come from MongoDB or the cache of results (scan_run.c), or in a correlated subquery from the
 * second plan (hashed_scan.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "executor/executor.h"
#include "miscadmin.h"

/* Milliseconds; MongoDB closes a cursor after ten minutes without a getMore. */
#define LONGEST_PAUSE		(5 * 60 * 1000)

/*
 * mongo_scan_user_mapping
 *		Returns the user mapping that the scan uses, palloc'd.
 *
 * It is that of the user whose permissions ExecCheckRTEPerms() checks: the current user, or
 * another one such as a view's owner.
 */
UserMapping *
mongo_scan_user_mapping(ForeignScanState *node)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	Oid			user = mongo_scan_check_as_user(plan,
												bms_next_member(plan->fs_relids, -1),
												node->ss.ps.state);

	return mongo_user_mapping(user ? user : GetUserId(), plan->fs_server);
}

/* Returns the OIDs of the foreign tables that the scan reads. */
static List *
scanned_relids(ForeignScanState *node)
{
	const Bitmapset *tables = ((ForeignScan *) node->ss.ps.plan)->fs_relids;
	List	   *relids = NIL;
	int			index = -1;

	while ((index = bms_next_member(tables, index)) >= 0)
	{
		const RangeTblEntry *entry = exec_rt_fetch(index, node->ss.ps.state);

		/* outer joins have entries, too */
		if (entry->rtekind == RTE_RELATION)
			relids = lappend_oid(relids, entry->relid);
	}
	return relids;
}

/* Tells whether the scan is in a subquery with parameters, or in a recursion. */
static bool
is_correlated(const EState *estate)
{
	const List *subplans = estate->es_plannedstmt->subplans;
	int			index = list_length(estate->es_subplanstates);
	const Plan *subplan;

	/* subplans are begun one after another, before the plan itself */
	if (index >= list_length(subplans))
		return false;
	subplan = list_nth(subplans, index);
	return !bms_is_empty(subplan->extParam) || IsA(subplan, RecursiveUnion);
}

/*
 * Tells whether the scan will probably be restarted with the same command, so that its rows should
 * be cached from the first run on.
 *
 * EXEC_FLAG_REWIND indicates that.  On the inner side of a nested loop, a scan without parameters
 * is mostly below a Material or Hash node, which runs it only once.
 */
static bool
may_repeat(const ForeignScanState *node, int eflags)
{
	const MongoScanPlan *plan = ((const MongoScanState *) node->fdw_state)->plan;

	if ((eflags & EXEC_FLAG_REWIND) || is_correlated(node->ss.ps.state))
		return true;
	return plan->is_inner && (plan->is_batched || !bms_is_empty(node->ss.ps.plan->extParam));
}

/*
 * mongo_begin_foreign_scan
 *		Begins a scan, without sending anything; a callback of PostgreSQL.
 */
void
mongo_begin_foreign_scan(ForeignScanState *node, int eflags)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	EState	   *estate = node->ss.ps.state;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	MongoScanState *state = palloc0(sizeof(MongoScanState));

	node->fdw_state = state;
	state->plan = mongo_struct_from_list(&mongo_scan_plan_type, plan->fdw_private);
	state->command_template.predicates = state->plan->predicates;
	state->expressions = ExecInitExprList(plan->fdw_exprs, (PlanState *) node);
	state->run.context = AllocSetContextCreate(estate->es_query_cxt,
											   "mongo_fdw scan",
											   ALLOCSET_DEFAULT_SIZES);
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;

	state->relids = scanned_relids(node);
	state->user = mongo_scan_user_mapping(node);
	state->keeps_results = may_repeat(node, eflags);
	state->decoder = mongo_row_decoder_create(CurrentMemoryContext, state->plan->database,
											  state->plan->collection, state->plan->columns,
											  state->plan->canonical_json);
	state->finalizer = mongo_finalizer_create(state->plan,
											  slot->tts_tupleDescriptor->natts);
	state->unwinder = mongo_unwinder_create(state->plan);
	mongo_scan_defer_errors(node);

	/* the decoder sets only the columns in use; the others stay NULL */
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
	mongo_ahead_add(node, plan->fs_server);
}

/*
 * mongo_iterate_foreign_scan
 *		Returns the next row of a scan, or an empty slot at the end; a callback of PostgreSQL.
 *
 * The slot is valid until the next call.  An asynchronous scan that would have to wait sets
 * must_wait and returns an empty slot.
 */
TupleTableSlot *
mongo_iterate_foreign_scan(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;

	/* the scan at the bottom of a second plan */
	if (state->hashed != NULL)
		return mongo_hashed_row(node);
	state->unread = false;
	if (!state->started)
		mongo_scan_start(node);
	return state->run.is_local ? mongo_second_plan_row(node) : mongo_run_next(node);
}

/*
 * Tells whether an unfinished run may be continued if the next run has the same command.  It may
 * not if MongoDB may have closed its cursor meanwhile.
 */
static bool
may_continue(MongoScanState *state)
{
	MongoScanRun *run = &state->run;
	TimestampTz now;

	if (run->cursor == NULL || state->results == NULL ||
		mongo_results_is_whole(state->results))
		return false;
	now = GetCurrentTimestamp();
	if (run->left_at == 0 || run->rows_when_left != run->rows)
		run->left_at = now;
	run->rows_when_left = run->rows;
	return !TimestampDifferenceExceeds(run->left_at, now, LONGEST_PAUSE);
}

/*
 * mongo_rescan_foreign_scan
 *		Restarts a scan at its next row request, perhaps with other values; a callback of
 *		PostgreSQL.
 */
void
mongo_rescan_foreign_scan(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;

	/* if may_repeat() was false, the first run's rows are fetched again */
	if (!state->plan->is_batched)
		state->keeps_results = true;
	if (!state->started || (state->unread && node->ss.ps.chgParam == NULL))
		return;
	state->started = false;
	if (state->cached_slot != NULL)
		ExecClearTuple(state->cached_slot);
	/* the second plan's rows have columns that the decoder does not set */
	if (state->run.is_local)
		memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
	if (may_continue(state))
		return;
	mongo_results_leave(state->results);
	mongo_run_reset(&state->run);
}

/*
 * mongo_end_foreign_scan
 *		Ends a scan, and frees its cursors and files; a callback of PostgreSQL.
 */
void
mongo_end_foreign_scan(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;

	if (state == NULL)
		return;
	mongo_list_remove(&state->reader.listed);
	mongo_run_close(&state->run);
	mongo_results_end(state->results);
	state->results = NULL;
	mongo_hashed_end(node);
}
