/*-------------------------------------------------------------------------
 *
 * scan_run.c
 *		One run of a scan, from Begin or ReScan to the next one: its cursors and its rows.
 *
 * A run binds the plan's command (scan_command.c) and looks it up in the cache of results
 * (mongo_run_begin()).  If it is not there, the run opens a cursor on it (mongo_run_open()), and at
 * the cursor's end one on the plan's next command.  Rows come from the cache as far as that goes,
 * then from the cursor (mongo_run_next()).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

/* The second batch of a scan that may stop early; the next ones grow.  One may then be in flight. */
#define CAUTIOUS_NEXT_BATCH_SIZE	200

/*-------------------------------------------------------------------------
 * Deferred errors: no error may reveal a document whose row a policy hides.
 *
 * If PostgreSQL tests a policy, or the conditions of a security-barrier view, hidden
 * documents are read as well.  If one does not fit its columns, the error is deferred until
 * the policy has been tested, and is raised only if the row is visible.  If a column that the
 * policy reads does not fit, the policy cannot be tested: the row is hidden.
 *
 * The same applies to errors from a domain's CHECK, and from the input function of a type
 * without a row in the table of types (convert.h): both run for visible rows only.
 * Exceptions are such types in columns that the policy reads, and, under type_mismatch
 * 'null', a CHECK on such a column, which decides between the value and NULL.
 *-------------------------------------------------------------------------
 */

/* Makes the decoder defer its errors, or raise them at once. */
static void
defer_errors(MongoScanState *state, bool defer)
{
	mongo_row_decoder_defer_errors(state->decoder,
								   defer ? MONGO_DEFER_ERRORS : MONGO_DEFER_NOTHING,
								   state->hiding_columns);
}

/*
 * mongo_scan_defer_errors
 *		Makes a scan that reads hidden documents defer the errors of its decoder.
 */
void
mongo_scan_defer_errors(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	int			natts = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor->natts;
	ListCell   *cell;

	if (state->plan->hiding == NIL)
		return;
	foreach(cell, state->plan->hiding_columns)
	{
		AttrNumber	attnum = lfirst_int(cell);

		if (attnum == InvalidAttrNumber)
			state->hiding_columns = bms_add_range(state->hiding_columns, 0, natts - 1);
		else if (attnum > 0)
			state->hiding_columns = bms_add_member(state->hiding_columns, attnum - 1);
	}
	defer_errors(state, true);
}

static bool
is_visible(ForeignScanState *node, TupleTableSlot *slot)
{
	MongoScanState *state = node->fdw_state;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;

	if (state->hiding == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(node->ss.ps.state->es_query_cxt);
		List	   *quals = NIL;
		ListCell   *cell;

		foreach(cell, state->plan->hiding)
			quals = lappend(quals, list_nth(node->ss.ps.plan->qual, lfirst_int(cell)));
		state->hiding = ExecInitQual(quals, &node->ss.ps);
		MemoryContextSwitchTo(old_context);
	}
	econtext->ecxt_scantuple = slot;
	return ExecQual(state->hiding, econtext);
}

/*
 * Tells whether the last document, read into 'slot', had errors and its row is hidden.  Raises the
 * error if the row is visible.  Columns that do not fit are NULL in 'slot'.
 */
static bool
is_hidden(ForeignScanState *node, TupleTableSlot *slot, const uint8_t *document, uint32 length)
{
	MongoScanState *state = node->fdw_state;
	const Bitmapset *mismatches = mongo_row_decoder_mismatches(state->decoder);
	bool		fits = mismatches == NULL;

	if (fits && !mongo_row_decoder_deferred(state->decoder))
		return false;
	if (bms_overlap(state->hiding_columns, mismatches) || !is_visible(node, slot))
	{
		/* count the row as removed by the plan's quals */
		InstrCountFiltered1(node, 1);
		return true;
	}
	defer_errors(state, false);
	mongo_row_decode(state->decoder, document, length, slot->tts_values, slot->tts_isnull);
	if (!fits)					/* freed by now */
		elog(ERROR, "a document of collection \"%s\" did not fit and does so now",
			 state->plan->collection);
	defer_errors(state, true);
	return false;
}

/* ------------------------------- Its cursors -------------------------------- */

/*
 * mongo_run_close
 *		Closes the run's cursors.
 */
void
mongo_run_close(MongoScanRun *run)
{
	mongo_cursor_close(run->cursor);
	foreach_ptr(MongoCursor, cursor, run->ahead)
		mongo_cursor_close(cursor);
	run->cursor = NULL;
	run->ahead = NIL;
}

/*
 * mongo_run_reset
 *		Closes the run's cursors, and resets the run to that of a scan not yet begun.
 */
void
mongo_run_reset(MongoScanRun *run)
{
	MemoryContext context = run->context;

	mongo_run_close(run);
	MemoryContextReset(context);
	memset(run, 0, sizeof(*run));
	run->context = context;
}

/* Returns a cursor on a command, in the run's context, and with the commands that follow it. */
static MongoCursor *
cursor_on_command(ForeignScanState *node, const bson_t *command, List *others)
{
	MongoScanState *state = node->fdw_state;
	const MongoScanPlan *plan = state->plan;
	uint64		at = 0;

	if (!plan->is_stream)
		(void) mongo_reads_at_time(&at);
	mongo_log_command(plan->database, command, at);
	return mongo_cursor_open(state->run.context, &(MongoRead) {
		.user = state->user,
		.database = state->reader.scope.database,
		.collection = plan->collection,
		.command = command,
		.others = others,
		.batch_size = plan->all_rows || !plan->batches_grow ? plan->fetch_size :
		Min(plan->fetch_size, CAUTIOUS_NEXT_BATCH_SIZE),
		.batches_grow = plan->batches_grow,
		.is_stream = plan->is_stream,
		.at_time = !plan->is_stream,
		.max_wait = plan->max_wait,
		.split_events = plan->split_events,
		.compress = plan->compresses,
		.is_far = plan->network != NULL && plan->all_rows && !plan->is_stream &&
		!node->ss.ps.async_capable,
		.read_mode = plan->read_mode,
		.comment = plan->comment,
		.read_collection = state->reader.scope.collection,
		.reply_field = state->run.counts ? MONGO_COUNT_FIELD : NULL,
		.usage = &state->usage
	});
}

/* Sends the run's command and the plan's next ones together. */
static void
send_together(ForeignScanState *node, MongoScanRun *run, MongoCursor *first, const List *others)
{
	if (first != NULL)
		mongo_cursor_send_behind(run->cursor, first);
	else
		mongo_cursor_ask_now(first = run->cursor);
	foreach_ptr(const bson_t, command, others)
	{
		MongoCursor *cursor = cursor_on_command(node, command, NIL);

		mongo_cursor_send_behind(cursor, first);
		run->ahead = lappend(run->ahead, cursor);
	}
}

/* Opens a cursor on the run's command. */
static void
open_run_command(ForeignScanState *node, MongoScanState *state, MongoCursor *first)
{
	bool		sends_all = state->plan->sends_all && state->run.number == 0 &&
		!node->ss.ps.async_capable && mongo_session_for_read(state->user) == NULL &&
		!mongo_reads_at_time(NULL);
	List	   *others = mongo_bind_other_commands(node);

	state->run.cursor = cursor_on_command(node, state->run.command, sends_all ? NIL : others);
	if (sends_all)
		send_together(node, &state->run, first, others);
}

/*
 * mongo_scan_make_cached_slot
 *		Makes state->cached_slot, for minimal tuples of the scan, in the query's memory context.
 */
void
mongo_scan_make_cached_slot(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	EState	   *estate = node->ss.ps.state;
	MemoryContext old_context = MemoryContextSwitchTo(estate->es_query_cxt);

	if (state->cached_slot == NULL)
		state->cached_slot = ExecInitExtraTupleSlot(estate,
													node->ss.ss_ScanTupleSlot->tts_tupleDescriptor,
													&TTSOpsMinimalTuple);
	MemoryContextSwitchTo(old_context);
}

/*
 * Looks up the run's command in the result cache.  Rows to be modified are not cached, as each has
 * its own ctid.
 */
static MongoResultState
find_result(ForeignScanState *node, MongoScanState *state)
{
	MongoResultState known;

	if (!state->keeps_results || state->identities != NULL)
		return MONGO_RESULT_NEW;
	if (state->results == NULL)
	{
		state->results = mongo_results_create(node->ss.ps.state->es_query_cxt);
		mongo_scan_make_cached_slot(node);
	}
	known = mongo_results_begin(state->results, state->run.command);
	state->reused += known != MONGO_RESULT_NEW;
	return known;
}

/*
 * mongo_run_begin
 *		Binds the run's first command.  Returns false if nothing is to be sent: it matches nothing,
 *		its result is cached, or it is that of the last run, which goes on.
 *
 * First sends the writes that the scan's snapshot shows.  Raises what that and binding raise.
 */
bool
mongo_run_begin(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	MongoScanRun left = state->run;
	MongoResultState known = MONGO_RESULT_NEW;
	MemoryContext old_context;
	bool		matches;

	/* ReScan keeps a run that may be continued */
	if (left.cursor != NULL)
		state->run = (MongoScanRun)
	{
		.context = AllocSetContextCreate(node->ss.ps.state->es_query_cxt, "mongo_fdw scan",
										 ALLOCSET_SMALL_SIZES)
	};
	state->started = true;
	old_context = MemoryContextSwitchTo(state->run.context);
	mongo_before_read(&state->reader.scope, state->reader.command);
	matches = mongo_bind_next_command(node) != MONGO_MATCH_NONE;
	if (matches)
		known = find_result(node, state);
	else
		mongo_results_leave(state->results);
	MemoryContextSwitchTo(old_context);
	if (left.cursor != NULL)
	{
		if (known == MONGO_RESULT_BEGUN)
		{
			MongoScanRun same = state->run;

			/*
			 * a list too long to send may give the same command as an empty
			 * one
			 */
			left.widened = same.widened;
			state->run = left;
			left = same;
		}
		mongo_run_close(&left);
		MemoryContextDelete(left.context);
	}
	return matches && known == MONGO_RESULT_NEW;
}

/*
 * Raises 0A000 if the scan, which is about to send a command, would see a later write of its own
 * session (ahead.c).  Asks MongoDB whether the scan's tables are of views, if that matters.
 */
static void
check_overtaken(MongoScanState *state)
{
	if (state->overtaken == MONGO_MAYBE_OVERTAKEN)
	{
		state->reads_collections = true;
		foreach_oid(relid, state->relids)
			state->reads_collections &= mongo_names_collection(state->user, relid);
		if (state->reads_collections)
			state->overtaken = MONGO_NOT_OVERTAKEN;
	}
	if (state->overtaken != MONGO_NOT_OVERTAKEN)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot scan foreign table \"%s\" without later writes",
						get_rel_name(linitial_oid(state->relids))),
				 errdetail("The session has written to what the table reads since the query began, and MongoDB has no snapshot of before.  The scan could not begin earlier, for example because it needs a value of another row."),
				 errhint("Read all rows of the query before writing, for example into an array or a temporary table, or set enable_nestloop and mongo_fdw.enable_batched_joins to off.")));
}

/*
 * mongo_run_open
 *		Opens a cursor on the run's command.
 *
 * 'first' is the cursor of the scan that is read now if this one begins ahead, else NULL.  Raises
 * 0A000 if it is too late to read.
 */
void
mongo_run_open(ForeignScanState *node, MongoCursor *first)
{
	MongoScanState *state = node->fdw_state;
	MemoryContext old_context = MemoryContextSwitchTo(state->run.context);

	check_overtaken(state);
	open_run_command(node, state, first);
	MemoryContextSwitchTo(old_context);
}

/* Starts the plan's next command; returns false if there is none. */
static bool
go_to_next_command(ForeignScanState *node, MongoScanState *state)
{
	MemoryContext old_context;

	if (state->run.ahead == NIL && !mongo_cursor_has_others(state->run.cursor))
		return false;

	mongo_cursor_close(state->run.cursor);
	if (state->run.ahead != NIL)
	{
		state->run.command = NULL;
		state->run.cursor = linitial(state->run.ahead);
		state->run.ahead = list_delete_first(state->run.ahead);
		state->run.number++;
		return true;
	}
	state->run.cursor = NULL;
	MemoryContextReset(state->run.context);
	state->run.number++;
	old_context = MemoryContextSwitchTo(state->run.context);
	if (mongo_bind_next_command(node) != MONGO_MATCH_NONE)
		open_run_command(node, state, NULL);
	MemoryContextSwitchTo(old_context);
	return state->run.cursor != NULL;
}

/* --------------------------------- Its rows --------------------------------- */

/*
 * Returns an empty slot.  But aggregates without GROUP BY have a row even over no documents, in
 * which counts are 0 and everything else is NULL.
 */
static TupleTableSlot *
end_of_documents(MongoScanState *state, TupleTableSlot *slot)
{
	bool		was_open = state->run.cursor != NULL;

	/* so that others can use the connection before the query ends */
	mongo_run_close(&state->run);
	mongo_results_finish(state->results);
	if (was_open && list_length(state->relids) == 1)
		mongo_note_scan(linitial_oid(state->relids), state->user, state->run.any_document);
	if (!state->plan->one_row || state->run.any_document)
		return slot;

	state->run.any_document = true;
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
	foreach_ptr(MongoColumn, column, state->plan->columns)
	{
		if (!column->zero_if_empty)
			continue;
		slot->tts_isnull[column->index] = false;
		slot->tts_values[column->index] = Int64GetDatum(0);
	}
	return ExecStoreVirtualTuple(slot);
}

/*
 * Returns the next row of the cursor; an empty slot at the end, and if an asynchronous scan would
 * have to wait.  *document is the document that the row was read from, or NULL.
 */
static TupleTableSlot *
read_row(ForeignScanState *node, const uint8_t **document, uint32 *length)
{
	MongoScanState *state = node->fdw_state;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;

	*document = NULL;
	ExecClearTuple(slot);
	if (state->run.cursor == NULL ||
		(state->run.most_rows > 0 && state->run.rows >= state->run.most_rows))
		return end_of_documents(state, slot);

	while (!state->run.is_unwinding ||
		   (*document = mongo_unwinder_next(state->unwinder, length)) == NULL)
	{
		/* Append waits for all of its scans at once (async.c) */
		if (node->ss.ps.async_capable && !mongo_cursor_is_ready(state->run.cursor))
		{
			state->must_wait = true;
			return slot;
		}

		state->run.is_unwinding = false;
		*document = mongo_cursor_next(state->run.cursor, length);
		if (*document == NULL && go_to_next_command(node, state))
			return read_row(node, document, length);
		if (*document == NULL)
			return end_of_documents(state, slot);
		state->run.any_document = true;
		if (state->unwinder == NULL)
			break;
		mongo_unwinder_begin(state->unwinder, *document, *length);
		state->run.is_unwinding = true;
	}
	state->run.rows++;
	if (state->finalizer != NULL)
		mongo_finalize_row(state->finalizer, state->decoder, *document, *length,
						   slot->tts_values, slot->tts_isnull);
	else
		mongo_row_decode(state->decoder, *document, *length, slot->tts_values,
						 slot->tts_isnull);
	return ExecStoreVirtualTuple(slot);
}

/* Returns the next row that is neither left out nor hidden. */
static TupleTableSlot *
fetch_row(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	const uint8_t *document;
	uint32		length;
	TupleTableSlot *slot;

	for (;;)
	{
		slot = read_row(node, &document, &length);
		if (document == NULL)
			break;
		if (!mongo_row_decoder_skipped(state->decoder) && state->plan->hiding != NIL &&
			is_hidden(node, slot, document, length))

			/*
			 * with other values of the policy's parameters it might be
			 * visible
			 */
			mongo_results_forget(state->results);
		/* is_hidden() may have read the document again, and found a misfit */
		else if (mongo_row_decoder_skipped(state->decoder))
			InstrCountFiltered1(node, 1);
		else
			break;
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(node->ss.ps.ps_ExprContext);
	}
	if (state->identities != NULL && document != NULL)
		mongo_identity_note(state->identities, document, length, &slot->tts_tid);
	return slot;
}

/* Adds a row to the cached result, which is whole with MongoDB's last document. */
static void
cache_row(MongoScanState *state, TupleTableSlot *slot)
{
	mongo_results_add(state->results, slot);
	if (state->run.cursor != NULL && mongo_cursor_is_exhausted(state->run.cursor) &&
		!state->run.is_unwinding &&
		(state->run.number + 1 >= list_length(state->plan->commands) ||
		 (state->plan->enough_rows > 0 && !state->run.widened &&
		  state->run.rows >= state->plan->enough_rows)))
		mongo_results_finish(state->results);
}

/* Returns the next row from the cached result or MongoDB. */
static TupleTableSlot *
next_row(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	TupleTableSlot *slot;
	MongoErrorSource source;

	if (state->results != NULL && mongo_results_next(state->results, state->cached_slot))
		return state->cached_slot;
	if (state->results != NULL && mongo_results_is_whole(state->results))
		return ExecClearTuple(node->ss.ss_ScanTupleSlot);
	mongo_push_error_source(&source, state->relids);
	slot = fetch_row(node);
	mongo_pop_error_source(&source);
	if (state->results != NULL && !TupIsNull(slot))
		cache_row(state, slot);
	return slot;
}

/* Tells whether the row meets the conditions that MongoDB was to test. */
static bool
passes_recheck(ForeignScanState *node, TupleTableSlot *slot)
{
	ExprContext *econtext = node->ss.ps.ps_ExprContext;

	/* as in ForeignRecheck() */
	econtext->ecxt_scantuple = slot;
	return ExecQual(node->fdw_recheck_quals, econtext);
}

/*
 * mongo_run_next
 *		Returns the run's next row, or an empty slot at the end.
 *
 * The slot is valid until the next call.  An asynchronous scan that would have to wait sets
 * must_wait and returns an empty slot.
 */
TupleTableSlot *
mongo_run_next(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	TupleTableSlot *slot = next_row(node);

	while (state->run.widened && !TupIsNull(slot) && !passes_recheck(node, slot))
	{
		CHECK_FOR_INTERRUPTS();
		InstrCountFiltered2(node, 1);
		ResetExprContext(node->ss.ps.ps_ExprContext);
		slot = next_row(node);
	}
	return slot;
}
