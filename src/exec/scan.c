/*-------------------------------------------------------------------------
 *
 * scan.c
 *		Executes foreign scans.
 *
 * Nothing is sent before the first row is requested, unless ahead.c starts the scan earlier.  Then
 * a run binds the plan's command with the values of its parameters, looks it up in the cache of
 * results (rescan.c), and otherwise opens a cursor on it.  Rows come from the cursor, the cache or
 * the second plan (next_row()).
 *
 * First come the conditions for the command count, and errors that are deferred; then the command,
 * a run's cursors, its rows, and the callbacks among these.  The parameters of plans are last.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"
#include "options.h"
#include "convert.h"
#include "remote.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

/* ------------- When the command count replaces the pipeline --------------- */

/*
 * Tells whether the filter is {}, or MongoDB simplifies it to that; only as deep as the
 * translator's.
 */
static bool
is_no_condition(const bson_iter_t *match)
{
	bson_iter_t field;
	bson_iter_t branch;

	if (!BSON_ITER_HOLDS_DOCUMENT(match) || !bson_iter_recurse(match, &field))
		return false;
	while (bson_iter_next(&field))
	{
		bool		is_and = strcmp(bson_iter_key(&field), "$and") == 0;
		bool		none = is_and;

		if (!is_and && strcmp(bson_iter_key(&field), "$or") != 0)
			return false;
		if (!BSON_ITER_HOLDS_ARRAY(&field) || !bson_iter_recurse(&field, &branch))
			return false;
		while (bson_iter_next(&branch))
		{
			if (is_and)
				none = none && is_no_condition(&branch);
			else
				none = none || is_no_condition(&branch);
		}
		if (!none)
			return false;
	}
	return true;
}

/*
 * Tells whether this command, {count: collection, query: filter}, may replace the pipeline that
 * counts the same.
 *
 * MongoDB refuses count in transactions and at a cluster time.  Without a condition it would count
 * by the collection's metadata, which may be inexact.
 */
static bool
takes_count(UserMapping *user, const bson_t *command)
{
	bson_iter_t query;

	return !(bson_iter_init_find(&query, command, "query") && is_no_condition(&query)) &&
		mongo_session_for_read(user) == NULL && !mongo_reads_at_time(NULL);
}

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

/* Returns the columns that the row-hiding quals read, as indexes from 0. */
static Bitmapset *
hiding_indexes(ForeignScanState *node)
{
	const MongoScanState *state = node->fdw_state;
	int			natts = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor->natts;
	Bitmapset  *columns = NULL;
	ListCell   *cell;

	foreach(cell, state->plan->hiding_columns)
	{
		AttrNumber	attnum = lfirst_int(cell);

		if (attnum == InvalidAttrNumber)
			columns = bms_add_range(columns, 0, natts - 1);
		else if (attnum > 0)
			columns = bms_add_member(columns, attnum - 1);
	}
	return columns;
}

/* Makes the decoder defer its errors, or raise them at once. */
static void
defer_errors(MongoScanState *state, bool defer)
{
	mongo_row_decoder_defer_errors(state->decoder,
								   defer ? MONGO_DEFER_ERRORS : MONGO_DEFER_NOTHING,
								   state->hiding_columns);
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

/*-------------------------------------------------------------------------
 * Executing a foreign scan: binding the plan's command, and reading its cursor.
 *
 * Nothing is sent before the first row is requested.
 *-------------------------------------------------------------------------
 */

/* The first batch of a scan that may stop early: MongoDB's own default. */
#define CAUTIOUS_BATCH_SIZE	101

/* The largest first batch that is requested because of a LIMIT. */
#define LARGEST_BATCH_SIZE	1000000

/* Milliseconds; MongoDB closes a cursor after ten minutes without a getMore. */
#define LONGEST_PAUSE		(5 * 60 * 1000)

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
		columns[i].bson_type = column->bson_type;
		columns[i].type_mismatch = column->type_mismatch;
		columns[i].of_token = plan->is_stream && (strcmp(column->name, MONGO_TOKEN_COLUMN) == 0 ||
												  strcmp(column->name, MONGO_CLUSTER_TIME_COLUMN) == 0);
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
									plan->canonical_json);
}

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
	mongo_prepare_parameters(&state->command_template, state->plan->predicates);
	state->expressions = ExecInitExprList(plan->fdw_exprs, (PlanState *) node);
	state->run.context = AllocSetContextCreate(estate->es_query_cxt,
											   "mongo_fdw scan",
											   ALLOCSET_DEFAULT_SIZES);
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;

	state->relids = scanned_relids(node);
	state->user = mongo_scan_user_mapping(node);
	state->keeps_results = may_repeat(node, eflags);
	state->decoder = create_scan_decoder(state->plan, slot->tts_tupleDescriptor);
	state->finalizer = mongo_finalizer_create(state->plan,
											  slot->tts_tupleDescriptor->natts);

	if (state->plan->hiding != NIL)
	{
		state->hiding_columns = hiding_indexes(node);
		defer_errors(state, true);
	}

	/* the decoder sets only the columns in use; the others stay NULL */
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
	mongo_ahead_add(node, plan->fs_server);
}

/*
 * Returns LIMIT or OFFSET, entry 'number' of fdw_exprs, by the rules of nodeLimit.c.  For EXPLAIN,
 * evaluates only constants.
 */
static int64
evaluate_bound(ForeignScanState *node, int number, bool is_limit, bool explains)
{
	const MongoScanState *state = node->fdw_state;
	bool		isnull = number < 0 ||
		(explains && !IsA(list_nth(((ForeignScan *) node->ss.ps.plan)->fdw_exprs, number), Const));
	Datum		value = (Datum) 0;
	int64		bound;

	if (!isnull)
		value = ExecEvalExpr((ExprState *) list_nth(state->expressions, number),
							 node->ss.ps.ps_ExprContext, &isnull);
	if (isnull)
		return is_limit ? -1 : 0;
	bound = DatumGetInt64(value);
	if (explains)
		return bound;
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

/*
 * Appends limit (-1: none), skip and batchSize to a find command.  With a limit, batchSize is one
 * more, so that the server closes the cursor with its first reply.
 */
static void
append_bounds(int64 limit, int64 offset, int64 batch_size, bson_t *command)
{
	if (offset > 0)
		mongo_append(command, "skip", mongo_int64(offset));
	if (limit > 0)
	{
		mongo_append(command, "limit", mongo_int64(limit));
		batch_size = Min(limit, LARGEST_BATCH_SIZE - 1) + 1;
	}
	mongo_append(command, "batchSize", mongo_int32((int32) batch_size));
}

/* Appends "let", whose variables the aggregation expressions use. */
static void
bind_variables(ForeignScanState *node, MongoScanState *state, bson_t *command)
{
	int			nvariables = state->plan->nvariables;
	int			first = state->command_template.nparameters;
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
 * mongo_bind_scan_command
 *		Evaluates the plan's expressions and appends its command 'number', from 0, to 'command'; or
 *		the count command, if there is one and 'counts'.
 *
 * 'rows' is the number of rows of the commands before it.  'names', if not NULL, replace the
 * values of parameters and variables, for EXPLAIN.  Returns MONGO_MATCH_NONE if no document can
 * match, so that nothing need be sent.  Raises 2201W and 2201X for a negative LIMIT or OFFSET.
 */
MongoMatch
mongo_bind_scan_command(ForeignScanState *node, int number, bool counts, int64 rows,
						const char **names, bson_t *command)
{
	MongoScanState *state = node->fdw_state;
	const MongoScanPlan *plan = state->plan;
	MongoCommandTemplate *template = &state->command_template;
	int64		limit = evaluate_bound(node, plan->limit, true, names != NULL);
	int64		offset = evaluate_bound(node, plan->offset, false, names != NULL);
	int64		batch_size = plan->all_rows ? plan->fetch_size :
		Min(plan->fetch_size, CAUTIOUS_BATCH_SIZE);
	MongoMatch	match = MONGO_MATCH_SOME;

	state->run.counts = counts && plan->count_command != NULL;
	template->command = mongo_command_from_const(CurrentMemoryContext, state->run.counts ?
												 plan->count_command :
												 list_nth(plan->commands, number));
	/* rows of earlier commands count as well */
	if (limit > 0)
		limit = Max(limit - rows, 0);
	if (plan->is_pipeline)
	{
		template->limit = limit >= 0 ? limit : plan->enough_rows;
		template->skip = offset;
		template->batch_size = batch_size;
	}
	state->run.widened = false;

	/*
	 * A find may be widened, since PostgreSQL has the exact conditions as
	 * recheck conditions.  But a LIMIT or a pipeline would count the excess
	 * documents before the recheck.
	 */
	if (names != NULL)
	{
		mongo_command_describe(template, names, command);
		mongo_describe_variables(names + template->nparameters, plan->nvariables, command);
	}
	else
	{
		match = mongo_bind_parameters(template, state->expressions, node->ss.ps.ps_ExprContext,
									  !plan->is_pipeline && plan->limit < 0 && plan->offset < 0 ?
									  &state->run.widened : NULL, command);
		if (plan->nvariables > 0)
			bind_variables(node, state, command);
	}
	if (!plan->is_pipeline)
		append_bounds(limit >= 0 || state->run.widened ? limit : plan->enough_rows, offset,
					  batch_size, command);
	return limit == 0 ? MONGO_MATCH_NONE : match;
}

static void
close_run(MongoScanRun *run)
{
	ListCell   *cell;

	mongo_cursor_close(run->cursor);
	foreach(cell, run->ahead)
		mongo_cursor_close(lfirst(cell));
	run->cursor = NULL;
	run->ahead = NIL;
}

/* Closes the run's cursors, and resets the run to that of a scan not yet begun. */
static void
empty_run(MongoScanRun *run)
{
	MemoryContext context = run->context;

	close_run(run);
	MemoryContextReset(context);
	memset(run, 0, sizeof(*run));
	run->context = context;
}

/* Binds the run's command, or the count command if that may replace it. */
static MongoMatch
bind_next_command(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	bool		counts = true;
	MongoMatch	match;

	for (;;)
	{
		state->run.command = mongo_bson_create();
		match = mongo_bind_scan_command(node, state->run.number, counts, state->run.rows, NULL,
										state->run.command);
		if (state->plan->is_stream && match != MONGO_MATCH_NONE)
			state->run.command = mongo_resume_through_matches(state->run.command);
		if (!state->run.counts || match == MONGO_MATCH_NONE ||
			takes_count(state->user, state->run.command))
			return match;
		counts = false;
	}
}

/* Returns a cursor on a command, in the run's context, and with the commands that follow it. */
static MongoCursor *
open_run_cursor(ForeignScanState *node, const bson_t *command, List *others)
{
	MongoScanState *state = node->fdw_state;
	const MongoScanPlan *plan = state->plan;
	uint64		at = state->run.at;

	if (!plan->is_stream)
		(void) mongo_reads_at_time(&at);
	mongo_log_command(plan->database, command, at);
	return mongo_cursor_open(state->run.context, &(MongoRead) {
		.user = state->user,
		.database = state->reader.scope.database,
		.collection = plan->collection,
		.command = command,
		.others = others,
		.batch_size = plan->fetch_size,
		.batches_grow = plan->batches_grow,
		.is_stream = plan->is_stream,
		.at_time = !plan->is_stream,
		.at = at,
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

/*
 * Returns the plan's commands after the run's, which do not know how many rows that finds.  They
 * may be needed when the values of their parameters are gone.
 */
static List *
bind_other_commands(ForeignScanState *node, MongoScanState *state)
{
	bool		widened = state->run.widened;
	List	   *commands = NIL;

	for (int i = state->run.number + 1; i < list_length(state->plan->commands); i++)
	{
		bson_t	   *command = mongo_bson_create();

		if (mongo_bind_scan_command(node, i, false, state->run.rows, NULL,
									command) != MONGO_MATCH_NONE)
			commands = lappend(commands, command);
		widened |= state->run.widened;
	}
	state->run.widened = widened;
	if (commands != NIL)
		state->run.most_rows = evaluate_bound(node, state->plan->limit, true, false);
	return commands;
}

/* Sends the run's command and the plan's next ones together. */
static void
send_together(ForeignScanState *node, MongoScanRun *run, MongoCursor *first, const List *others)
{
	ListCell   *cell;

	if (first != NULL)
		mongo_cursor_send_behind(run->cursor, first);
	else
		mongo_cursor_ask_now(first = run->cursor);
	foreach(cell, others)
	{
		MongoCursor *cursor = open_run_cursor(node, lfirst(cell), NIL);

		mongo_cursor_send_behind(cursor, first);
		run->ahead = lappend(run->ahead, cursor);
	}
}

/* Opens a cursor on the run's command, or on its next range. */
static void
open_scan_cursor(ForeignScanState *node, MongoScanState *state, MongoCursor *first)
{
	bool		sends_all = state->plan->sends_all && state->run.number == 0 &&
		!node->ss.ps.async_capable && mongo_session_for_read(state->user) == NULL &&
		!mongo_reads_at_time(NULL);
	List	   *others;

	if (state->shared != NULL)
	{
		bson_t	   *range = mongo_take_range(state->shared, state->plan, state->user,
											 state->run.command, &state->run.at);

		if (range == NULL)
			return;
		state->run.command = range;
	}
	others = bind_other_commands(node, state);
	state->run.cursor = open_run_cursor(node, state->run.command, sends_all ? NIL : others);
	if (sends_all)
		send_together(node, &state->run, first, others);
}

/*
 * Looks up the run's command in the result cache.  Ranges of a shared scan are not cached, and
 * neither are rows to be modified, each of which has its own ctid.
 */
static MongoResultState
find_result(ForeignScanState *node, MongoScanState *state)
{
	MongoResultState known;

	if (!state->keeps_results || state->shared != NULL || state->identities != NULL)
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
 * mongo_scan_start
 *		Binds the first command, and opens a cursor on it unless it matches nothing or its result
 *		is cached.
 *
 * 'first' is the cursor of the scan that is read now if this one begins ahead, else NULL.
 */
void
mongo_scan_start(ForeignScanState *node, MongoCursor *first)
{
	MongoScanState *state = node->fdw_state;

	MongoScanRun left;
	MongoResultState known = MONGO_RESULT_NEW;
	MemoryContext old_context = MemoryContextSwitchTo(state->run.context);

	mongo_before_read(&state->reader.scope, state->reader.command);

	/* ReScan keeps a run that may be continued */
	left = state->run;
	if (left.cursor != NULL)
		state->run = (MongoScanRun)
	{
		.context = AllocSetContextCreate(node->ss.ps.state->es_query_cxt, "mongo_fdw scan",
										 ALLOCSET_SMALL_SIZES)
	};
	MemoryContextSwitchTo(state->run.context);
	state->started = true;
	if (bind_next_command(node) == MONGO_MATCH_NONE)
		mongo_results_leave(state->results);
	else
	{
		known = find_result(node, state);
		if (known == MONGO_RESULT_NEW)
		{
			if (!state->switched)
				mongo_check_overtaken(node);
			state->run.is_local = mongo_switch_plan(node);
			if (!state->run.is_local)
				open_scan_cursor(node, state, first);
			if (first == NULL && state->run.cursor != NULL && state->plan->network != NULL)
				mongo_ahead_send(node);
		}
	}
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
		close_run(&left);
		MemoryContextDelete(left.context);
	}
}

/* Starts the plan's next command, or a shared scan's next range; returns false if there is none. */
static bool
go_to_next_command(ForeignScanState *node, MongoScanState *state)
{
	MemoryContext old_context;

	if (state->shared == NULL && state->run.ahead == NIL &&
		!mongo_cursor_has_others(state->run.cursor))
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
	if (state->shared == NULL)
		state->run.number++;
	old_context = MemoryContextSwitchTo(state->run.context);
	if (bind_next_command(node) != MONGO_MATCH_NONE)
		open_scan_cursor(node, state, NULL);
	MemoryContextSwitchTo(old_context);
	return state->run.cursor != NULL;
}

/*
 * Returns an empty slot.  But aggregates without GROUP BY have a row even over no documents, in
 * which counts are 0 and everything else is NULL.
 */
static TupleTableSlot *
end_of_documents(MongoScanState *state, TupleTableSlot *slot)
{
	/* so that others can use the connection before the query ends */
	close_run(&state->run);
	mongo_results_finish(state->results);
	if (!state->plan->one_row || state->run.any_document)
		return slot;

	state->run.any_document = true;
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
	foreach_ptr(MongoScanColumn, column, state->plan->columns)
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

	/* Append waits for all of its scans at once (shared.c) */
	if (node->ss.ps.async_capable && !mongo_cursor_is_ready(state->run.cursor))
	{
		state->must_wait = true;
		return slot;
	}

	*document = mongo_cursor_next(state->run.cursor, length);
	if (*document == NULL && go_to_next_command(node, state))
		return read_row(node, document, length);
	if (*document == NULL)
		return end_of_documents(state, slot);
	state->run.any_document = true;
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
		(state->run.number + 1 >= list_length(state->plan->commands) ||
		 (state->plan->enough_rows > 0 && !state->run.widened &&
		  state->run.rows >= state->plan->enough_rows)))
		mongo_results_finish(state->results);
}

/* Returns the next row from the second plan, the cached result or MongoDB. */
static TupleTableSlot *
next_row(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	TupleTableSlot *slot;
	MongoErrorSource source;

	mongo_push_error_source(&source, state->relids);
	state->unread = false;
	if (!state->started)
		mongo_scan_start(node, NULL);
	if (state->run.is_local)
		slot = mongo_second_plan_row(node);
	else if (state->results != NULL && mongo_results_next(state->results, state->cached_slot))
		slot = state->cached_slot;
	else if (state->results != NULL && mongo_results_is_whole(state->results))
		slot = ExecClearTuple(node->ss.ss_ScanTupleSlot);
	else
	{
		slot = fetch_row(node);
		if (state->results != NULL && !TupIsNull(slot))
			cache_row(state, slot);
	}
	mongo_pop_error_source(&source);
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
	TupleTableSlot *slot;

	if (state->hashed != NULL)
		return mongo_hashed_row(node);
	slot = next_row(node);
	while (state->run.widened && !TupIsNull(slot) && !passes_recheck(node, slot))
	{
		CHECK_FOR_INTERRUPTS();
		InstrCountFiltered2(node, 1);
		ResetExprContext(node->ss.ps.ps_ExprContext);
		slot = next_row(node);
	}
	return slot;
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

	/* if may_repeat() was false, the first run's rows are fetched again */
	if (!state->plan->is_batched)
		state->keeps_results = true;
	if (!state->started || (state->unread && node->ss.ps.chgParam == NULL))
		return;
	state->started = false;
	if (state->cached_slot != NULL)
		ExecClearTuple(state->cached_slot);
	if (may_continue(state))
		return;
	mongo_results_leave(state->results);
	empty_run(&state->run);
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
	close_run(&state->run);
	mongo_results_end(state->results);
	state->results = NULL;
	mongo_hashed_end(state->hashed);
	state->hashed = NULL;
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

/* ---------- The parameters of a plan's command, and their values ---------- */

/*
 * mongo_prepare_parameters
 *		Sets the template's parameters from a plan's 'predicates', in the current memory context.
 */
void
mongo_prepare_parameters(MongoCommandTemplate *template, const List *predicates)
{
	ListCell   *cell;

	template->nparameters = list_length(predicates);
	template->predicates = palloc(sizeof(MongoPredicate *) * Max(template->nparameters, 1));
	foreach(cell, predicates)
		template->predicates[foreach_current_index(cell)] =
			mongo_predicate_from_list(lfirst(cell));
}

/*
 * mongo_bind_parameters
 *		Calls mongo_command_bind() with the values of the first of 'expressions' (ExprStates).
 */
MongoMatch
mongo_bind_parameters(const MongoCommandTemplate *template, const List *expressions,
					  ExprContext *econtext, bool *widened, bson_t *command)
{
	int			count = template->nparameters;
	Datum	   *values = palloc(sizeof(Datum) * Max(count, 1));
	bool	   *isnull = palloc(sizeof(bool) * Max(count, 1));

	for (int i = 0; i < count; i++)
		values[i] = ExecEvalExpr((ExprState *) list_nth(expressions, i), econtext, &isnull[i]);
	return mongo_command_bind(template, values, isnull, widened, command);
}
