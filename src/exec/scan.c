/*-------------------------------------------------------------------------
 *
 * scan.c
 *		Executing a foreign scan: bind the plan's command, read its cursor.
 *
 * Nothing is sent before the first row is asked for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "scan.h"

#include "bind.h"
#include "bson_memory.h"
#include "count.h"
#include "encoding.h"
#include "exec.h"
#include "finish.h"
#include "hidden.h"
#include "parallel.h"
#include "privileges.h"
#include "query_log.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* The first batch of a scan that may well stop early: MongoDB's own default. */
#define CAUTIOUS_BATCH_SIZE	101

/* No first batch is asked to be larger than this for the sake of a LIMIT. */
#define LARGEST_BATCH_SIZE	1000000

/* create_scan_decoder: from the columns of the plan to the attributes of the tuple. */
static MongoRowDecoder *
create_scan_decoder(const MongoScanPlan *plan, TupleDesc tuple)
{
	int			ncolumns = list_length(plan->columns);
	MongoColumn *columns = palloc0(sizeof(MongoColumn) * Max(ncolumns, 1));

	for (int i = 0; i < ncolumns; i++)
	{
		MongoScanColumn *column = list_nth(plan->columns, i);
		Form_pg_attribute attribute;

		columns[i].index = column->index;
		columns[i].name = column->name;
		columns[i].path = column->path;
		columns[i].collection = column->collection;
		columns[i].prefix = column->prefix;
		columns[i].field = plan->is_grouped ? column->name : NULL;
		if (OidIsValid(column->type))
		{
			columns[i].typid = column->type;
			columns[i].typmod = column->typmod;
			continue;
		}
		attribute = TupleDescAttr(tuple, column->index);
		columns[i].typid = attribute->atttypid;
		columns[i].typmod = attribute->atttypmod;
	}
	return mongo_row_decoder_create(CurrentMemoryContext, plan->database,
									plan->collection, columns, ncolumns,
									plan->type_mismatch, plan->canonical_json);
}

/* prepare_commands unpacks the plan's commands and their predicates. */
static void
prepare_commands(MongoScanState *state)
{
	const MongoScanPlan *plan = state->plan;
	ListCell   *cell;

	mongo_prepare_parameters(&state->template, plan->predicates);
	state->ncommands = list_length(plan->commands);
	state->commands = palloc(sizeof(bson_t *) * state->ncommands);
	foreach(cell, plan->commands)
		state->commands[foreach_current_index(cell)] =
			mongo_command_from_const(CurrentMemoryContext, lfirst(cell));
	if (plan->count_command != NULL)
		state->count_command = mongo_command_from_const(CurrentMemoryContext,
														plan->count_command);
}

/* As whom the scan reads, as ExecCheckRTEPerms would have it. */
UserMapping *
mongo_scan_user_mapping(ForeignScanState *node)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	Oid			user = mongo_scan_check_as_user(plan,
												bms_next_member(plan->fs_relids, -1),
												node->ss.ps.state);

	return GetUserMapping(user ? user : GetUserId(), plan->fs_server);
}

/* scanned_relids: the OIDs of the foreign tables whose documents come. */
static List *
scanned_relids(ForeignScanState *node)
{
	const Bitmapset *tables = ((ForeignScan *) node->ss.ps.plan)->fs_relids;
	List	   *relids = NIL;
	int			index = -1;

	while ((index = bms_next_member(tables, index)) >= 0)
	{
		const RangeTblEntry *entry = exec_rt_fetch(index, node->ss.ps.state);

		/* there are outer joins' entries as well */
		if (entry->rtekind == RTE_RELATION)
			relids = lappend_oid(relids, entry->relid);
	}
	return relids;
}

void
mongo_begin_foreign_scan(ForeignScanState *node, int eflags)
{
	ForeignScan *plan = (ForeignScan *) node->ss.ps.plan;
	EState	   *estate = node->ss.ps.state;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	MongoScanState *state = palloc0(sizeof(MongoScanState));

	node->fdw_state = state;
	state->plan = mongo_struct_from_list(&mongo_scan_plan_type, plan->fdw_private);
	prepare_commands(state);
	state->expressions = ExecInitExprList(plan->fdw_exprs, (PlanState *) node);
	state->scan_context = AllocSetContextCreate(estate->es_query_cxt,
												"mongo_fdw scan",
												ALLOCSET_SMALL_SIZES);
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;

	state->relids = scanned_relids(node);
	state->user = mongo_scan_user_mapping(node);
	state->decoder = create_scan_decoder(state->plan, slot->tts_tupleDescriptor);
	state->finisher = mongo_finisher_create(state->plan,
											slot->tts_tupleDescriptor->natts);

	mongo_hidden_begin(node);

	/* the decoder sets only the columns in use; the others stay NULL */
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
}

/*
 * evaluate_bound: LIMIT or OFFSET, with the rules of nodeLimit.c.
 */
static int64
evaluate_bound(ExprState *expression, ExprContext *econtext, bool is_limit)
{
	bool		isnull;
	Datum		value = ExecEvalExpr(expression, econtext, &isnull);
	int64		bound = DatumGetInt64(value);

	if (isnull)
		return is_limit ? -1 : 0;
	if (bound < 0 && is_limit)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_ROW_COUNT_IN_LIMIT_CLAUSE),
				 errmsg("LIMIT must not be negative")));
	if (bound < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE),
				 errmsg("OFFSET must not be negative")));
	return bound;
}

/* The first batch where nothing is known of a LIMIT. */
static int
first_batch_size(const MongoScanPlan *plan)
{
	return plan->all_rows ? plan->fetch_size : Min(plan->fetch_size, CAUTIOUS_BATCH_SIZE);
}

void
mongo_set_pipeline_bounds(const MongoScanPlan *plan, int64 limit, int64 offset,
						  MongoCommandTemplate *template)
{
	template->limit = limit;
	template->skip = offset;
	template->batch_size = first_batch_size(plan);
}

void
mongo_append_bounds(const MongoScanPlan *plan, int64 limit, int64 offset,
					bson_t *command)
{
	int64		batch_size = first_batch_size(plan);

	if (offset > 0)
		BSON_APPEND_INT64(command, "skip", offset);
	if (limit > 0)
	{
		BSON_APPEND_INT64(command, "limit", limit);
		batch_size = Min(limit, LARGEST_BATCH_SIZE - 1) + 1;
	}
	BSON_APPEND_INT32(command, "batchSize", (int32) batch_size);
}

/* bind_variables: what the command's aggregation expressions refer to. */
static void
bind_variables(ForeignScanState *node, MongoScanState *state, bson_t *command)
{
	int			nvariables = state->plan->nvariables;
	int			first = state->template.nparameters;
	MongoVariable *variables = palloc(sizeof(MongoVariable) * nvariables);

	for (int i = 0; i < nvariables; i++)
	{
		ExprState  *expression = list_nth(state->expressions, first + i);
		Node	   *node_expression = list_nth(((ForeignScan *) node->ss.ps.plan)->fdw_exprs,
											   first + i);

		variables[i].type = exprType(node_expression);
		variables[i].typmod = exprTypmod(node_expression);
		variables[i].value = ExecEvalExpr(expression, node->ss.ps.ps_ExprContext,
										  &variables[i].isnull);
	}
	mongo_bind_variables(variables, nvariables, command);
}

/*
 * can_test_locally: is there room for documents that the exact conditions exclude?
 *
 * PostgreSQL has these conditions as recheck conditions.  But a LIMIT, and what a
 * pipeline computes, would count such documents before that.
 */
static bool
can_test_locally(const MongoScanPlan *plan)
{
	return !plan->is_pipeline && plan->limit < 0 && plan->offset < 0;
}

/* evaluate_bounds: LIMIT, -1 if there is none, and OFFSET. */
static void
evaluate_bounds(ForeignScanState *node, int64 *limit, int64 *offset)
{
	const MongoScanState *state = node->fdw_state;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;

	*limit = -1;
	*offset = 0;
	if (state->plan->limit >= 0)
		*limit = evaluate_bound(list_nth(state->expressions, state->plan->limit), econtext, true);
	if (state->plan->offset >= 0)
		*offset = evaluate_bound(list_nth(state->expressions, state->plan->offset), econtext, false);
}

void
mongo_choose_command(MongoScanState *state, int turn, bool counts)
{
	state->counts = counts && state->count_command != NULL;
	state->template.command = state->counts ? state->count_command : state->commands[turn];
}

MongoMatch
mongo_bind_scan_command(ForeignScanState *node, int64 rows, bson_t *command)
{
	MongoScanState *state = node->fdw_state;
	const MongoScanPlan *plan = state->plan;
	int64		limit;
	int64		offset;
	MongoMatch	match;

	evaluate_bounds(node, &limit, &offset);
	/* several commands in turn: the earlier ones' rows count as well */
	if (limit > 0)
		limit = Max(limit - rows, 0);
	if (plan->is_pipeline)
		mongo_set_pipeline_bounds(plan, limit, offset, &state->template);
	state->widened = false;
	match = mongo_bind_parameters(&state->template, state->expressions,
								  node->ss.ps.ps_ExprContext,
								  can_test_locally(plan) ? &state->widened : NULL, command);
	if (plan->nvariables > 0)
		bind_variables(node, state, command);
	if (!plan->is_pipeline)
		mongo_append_bounds(plan, limit >= 0 || state->widened ? limit : plan->enough_rows,
							offset, command);
	return limit == 0 ? MONGO_MATCH_NONE : match;
}

/* swap_contexts: only rescans need the spare one, so it is made late. */
static void
swap_contexts(MongoScanState *state)
{
	MemoryContext context = state->scan_context;

	if (state->spare_context == NULL)
		state->spare_context = AllocSetContextCreate(MemoryContextGetParent(context),
													 "mongo_fdw other scan",
													 ALLOCSET_SMALL_SIZES);
	state->scan_context = state->spare_context;
	state->spare_context = context;
}

/*
 * keep_answer: may the documents that have come be given once more?  The same
 * command within the same statement has the same answer, as one snapshot would
 * give, and correlated sub-selects often ask twice in a row.
 */
static bool
keep_answer(MongoScanState *state)
{
	return state->shared == NULL && state->identities == NULL &&
		state->ncommands == 1 && mongo_cursor_keep(state->cursor);
}

/*
 * forget_answer: what has been kept is of a command that is not the next one.
 */
static void
forget_answer(MongoScanState *state)
{
	mongo_cursor_close(state->cursor);
	state->cursor = NULL;
	MemoryContextReset(state->spare_context);
}

/*
 * bind_next_command: the command in turn, as state->command.  'earlier' is the one of
 * which an answer has been kept, or NULL; *repeated: it is the same.
 */
static MongoMatch
bind_next_command(ForeignScanState *node, const bson_t *earlier, bool *repeated)
{
	MongoScanState *state = node->fdw_state;
	MongoMatch	match;

	mongo_choose_command(state, state->turn, true);
	for (;;)
	{
		state->command = bson_create_in(CurrentMemoryContext);
		match = mongo_bind_scan_command(node, state->rows, state->command);
		*repeated = earlier != NULL && match != MONGO_MATCH_NONE &&
			bson_equal(state->command, earlier);
		if (!state->counts || match == MONGO_MATCH_NONE || *repeated ||
			mongo_takes_count(state->user, state->command))
			return match;
		mongo_choose_command(state, state->turn, false);
	}
}

/* start_scan: bind the command in turn, and have a cursor on it unless it finds nothing. */
static void
start_scan(ForeignScanState *node, MongoScanState *state)
{
	bson_t	   *earlier = state->cursor != NULL ? state->command : NULL;
	MemoryContext old_context;
	MongoMatch	match;
	bool		repeated;

	if (earlier != NULL)
		swap_contexts(state);
	old_context = MemoryContextSwitchTo(state->scan_context);
	match = bind_next_command(node, earlier, &repeated);
	state->started = true;
	if (repeated)
	{
		MemoryContextSwitchTo(old_context);
		MemoryContextReset(state->scan_context);
		swap_contexts(state);
		state->command = earlier;
		mongo_cursor_rewind(state->cursor);
		return;
	}
	if (earlier != NULL)
		forget_answer(state);
	if (match != MONGO_MATCH_NONE && state->shared != NULL)
	{
		bson_t	   *range = mongo_take_range(state->shared, state->plan, state->user,
											 state->command);

		if (range == NULL)
			match = MONGO_MATCH_NONE;
		else
			state->command = range;
	}
	if (match != MONGO_MATCH_NONE)
	{
		mongo_log_command(state->plan->database, state->command);
		state->cursor = mongo_cursor_open(state->scan_context, state->user,
										  mongo_to_utf8(state->plan->database),
										  state->plan->collection, state->command,
										  state->plan->fetch_size);
		if (state->counts)
			mongo_cursor_expect_document(state->cursor, MONGO_COUNT_FIELD);
	}
	MemoryContextSwitchTo(old_context);
}

/*
 * next_command: at the end of one, begin the next of the plan's commands, or
 * with the next range of a shared scan; false when there is none.
 */
static bool
next_command(ForeignScanState *node, MongoScanState *state)
{
	if (state->turn + 1 >= state->ncommands && state->shared == NULL)
		return false;

	mongo_cursor_close(state->cursor);
	state->cursor = NULL;
	MemoryContextReset(state->scan_context);
	if (state->shared == NULL)
		state->turn++;
	start_scan(node, state);
	return state->cursor != NULL;
}

/*
 * end_of_documents: an empty slot, but for aggregates without GROUP BY, which
 * have a row even over nothing: counts are 0 then, everything else is NULL.
 */
static TupleTableSlot *
end_of_documents(MongoScanState *state, TupleTableSlot *slot)
{
	ListCell   *cell;

	/* the connection is free for others before the query ends */
	if (!keep_answer(state))
	{
		mongo_cursor_close(state->cursor);
		state->cursor = NULL;
	}
	if (!state->plan->one_row || state->any_document)
		return slot;

	state->any_document = true;
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
	foreach(cell, state->plan->columns)
	{
		MongoScanColumn *column = lfirst(cell);

		if (!column->zero_if_empty)
			continue;
		slot->tts_isnull[column->index] = false;
		slot->tts_values[column->index] = Int64GetDatum(0);
	}
	return ExecStoreVirtualTuple(slot);
}

/*
 * is_meant: does the row meet the conditions that MongoDB has been asked to test?
 * As in ForeignRecheck().
 */
static bool
is_meant(ForeignScanState *node, TupleTableSlot *slot)
{
	ExprContext *econtext = node->ss.ps.ps_ExprContext;

	econtext->ecxt_scantuple = slot;
	return ExecQual(node->fdw_recheck_quals, econtext);
}

/*
 * read_row: empty at the end, and where an asynchronous scan would have to wait.
 * *document is what the row was read from, or NULL.
 */
static TupleTableSlot *
read_row(ForeignScanState *node, const uint8_t **document, uint32 *length)
{
	MongoScanState *state = node->fdw_state;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;

	if (!state->started)
		start_scan(node, state);

	*document = NULL;
	ExecClearTuple(slot);
	if (state->cursor == NULL)
		return end_of_documents(state, slot);

	/* see async.c: then Append waits, for all of its scans at once */
	if (node->ss.ps.async_capable && !mongo_cursor_is_ready(state->cursor))
	{
		state->must_wait = true;
		return slot;
	}

	*document = mongo_cursor_next(state->cursor, length);
	if (*document == NULL && next_command(node, state))
		return read_row(node, document, length);
	if (*document == NULL)
		return end_of_documents(state, slot);
	state->any_document = true;
	state->rows++;
	if (state->finisher != NULL)
		mongo_finish_row(state->finisher, state->decoder, *document, *length,
						 slot->tts_values, slot->tts_isnull);
	else
		mongo_row_decode(state->decoder, *document, *length, slot->tts_values,
						 slot->tts_isnull);
	return ExecStoreVirtualTuple(slot);
}

/* next_row: the next one that may be told of. */
static TupleTableSlot *
next_row(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	const uint8_t *document;
	uint32		length;
	TupleTableSlot *slot;
	MongoAtWork work;

	mongo_begin_work(&work, state->relids);
	slot = read_row(node, &document, &length);
	while (state->plan->hiding != NIL && document != NULL &&
		   mongo_is_hidden(node, slot, document, length))
	{
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(node->ss.ps.ps_ExprContext);
		slot = read_row(node, &document, &length);
	}
	mongo_end_work(&work);
	if (state->identities != NULL && document != NULL)
		mongo_identity_note(state->identities, document, length, &slot->tts_tid);
	return slot;
}

TupleTableSlot *
mongo_iterate_foreign_scan(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	TupleTableSlot *slot = next_row(node);

	while (state->widened && !TupIsNull(slot) && !is_meant(node, slot))
	{
		CHECK_FOR_INTERRUPTS();
		InstrCountFiltered2(node, 1);
		ResetExprContext(node->ss.ps.ps_ExprContext);
		slot = next_row(node);
	}
	return slot;
}

void
mongo_scan_keep_identities(ForeignScanState *scan, MongoIdentityLog *log)
{
	((MongoScanState *) scan->fdw_state)->identities = log;
}

void
mongo_rescan_foreign_scan(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;

	if (!state->started)
		return;
	state->started = false;
	state->turn = 0;
	state->rows = 0;
	state->any_document = false;
	if (keep_answer(state))
		return;
	mongo_cursor_close(state->cursor);
	state->cursor = NULL;
	state->command = NULL;
	MemoryContextReset(state->scan_context);
}

void
mongo_end_foreign_scan(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;

	if (state == NULL)
		return;
	mongo_cursor_close(state->cursor);
	state->cursor = NULL;
}
