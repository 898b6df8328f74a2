/*-------------------------------------------------------------------------
 *
 * hashed_scan.c
 *		Second plans: a scan in a correlated subquery switches to a hash table of documents.
 *
 * Each run of a correlated subquery sends a command with the values of its outer row.  But the
 * hashed scan at the bottom of the second plan may have the documents for these values, in a
 * temporary file with a hash table.  It fetches those for the values of a batch of outer rows,
 * which batched_subqueries.c collects, or after some runs all documents, once.
 * src/plan/second_plan.c plans that.
 *
 * First comes the hash table, then filling it with all documents, then with those for some values,
 * and at the end the scan that switches.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/datum.h"

/* ----- A hashed scan: the documents for runs of a correlated subquery ----- */

/* The rows whose keys have this hash value: their places in an array, or -1. */
typedef struct HashedRows
{
	uint32		hash;
	int			first;
	int			last;
	int			batch;			/* in which these values were requested ... */
	Datum	   *values;			/* ... of the outer sides */
} HashedRows;

/* A row, which is in a file. */
typedef struct HashedRow
{
	off_t		offset;
	int			segment;		/* of the file */
	int			next;			/* row with the same hash value, or -1 */
} HashedRow;

struct MongoHashedScan
{
	MemoryContext context;
	MongoHashKeys *keys;
	HTAB	   *hashes;			/* HashedRows */
	HashedRow  *rows;
	int			nrows;
	int			max_rows;
	BufFile    *file;
	int			end_segment;	/* of the file, where the next rows go */
	off_t		end;
	MongoFiledBytes filed;		/* in it */
	int			next;			/* row of the current outer row, or -1 */

	HashedRows **requested;		/* those of the batch, which have no rows yet;
								 * NULL: the table has all documents */
	int			nrequested;
	Size		requested_size; /* bytes of their values */
	int			batch;			/* those before are filled */
};

/*
 * Adds a row to the hash table, unless a key is NULL or the batch did not request its values;
 * returns false if the file is too large.
 */
static bool
add_row(MongoHashedScan *hashed, ExprContext *econtext, TupleTableSlot *slot)
{
	HashedRows *rows;
	HashedRow  *row;
	MinimalTuple tuple;
	uint32		hash;
	bool		found;
	bool		copied;

	econtext->ecxt_scantuple = slot;
	if (!mongo_hash_keys(hashed->keys, econtext, false, &hash))
		return true;
	rows = hash_search(hashed->hashes, &hash, hashed->requested == NULL ? HASH_ENTER : HASH_FIND, &found);
	/* an earlier batch may have found the document, too */
	if (hashed->requested != NULL && (!found || rows->batch != hashed->batch))
		return true;
	if (!found)
		rows->first = -1;
	if (hashed->nrows == hashed->max_rows)
	{
		hashed->max_rows *= 2;
		hashed->rows = repalloc_huge(hashed->rows, hashed->max_rows * sizeof(HashedRow));
	}
	row = &hashed->rows[hashed->nrows];
	row->next = -1;
	BufFileTell(hashed->file, &row->segment, &row->offset);
	tuple = ExecFetchSlotMinimalTuple(slot, &copied);
	if (!mongo_may_file(&hashed->filed, tuple->t_len))
		return false;
	BufFileWrite(hashed->file, tuple, tuple->t_len);
	if (copied)
		heap_free_minimal_tuple(tuple);

	if (rows->first >= 0)
		hashed->rows[rows->last].next = hashed->nrows;
	else
		rows->first = hashed->nrows;
	rows->last = hashed->nrows++;
	return true;
}

/* Tells whether the table or the file needs more than this part of what it may. */
static bool
is_too_large(const MongoHashedScan *hashed, double part)
{
	Size		limit = get_hash_memory_limit() * part;

	return MemoryContextMemAllocated(hashed->context, true) > limit ||
		hashed->filed.length / MONGO_HASHED_FILE_FACTOR > limit ||
		hashed->nrows == PG_INT32_MAX / 2;
}

/*
 * Reads all rows of the run into the hash table; returns false if that is abandoned.
 *
 * It is abandoned if the table or the file would be too large, and for a document that does not
 * fit its columns or may raise an error, since perhaps no outer row matches that document.
 * Otherwise raises what a scan raises.
 */
static bool
read_rows(MongoHashedScan *hashed, ForeignScanState *scan)
{
	MongoScanState *state = scan->fdw_state;
	ExprContext *econtext = scan->ss.ps.ps_ExprContext;

	mongo_row_decoder_defer_errors(state->decoder, MONGO_DEFER_ERRORS, NULL);
	state->keeps_results = false;
	if (mongo_run_begin(scan))
		mongo_run_open(scan, NULL);
	for (;;)
	{
		MemoryContext old_context;
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		old_context = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		slot = mongo_run_next(scan);
		MemoryContextSwitchTo(old_context);
		if (TupIsNull(slot))
			return true;
		/* it may not fit, or raise an error */
		if (mongo_row_decoder_mismatches(state->decoder) != NULL ||
			mongo_row_decoder_deferred(state->decoder))
			return false;
		if (is_too_large(hashed, 1) || !add_row(hashed, econtext, slot))
			return false;
	}
}

/* Returns an empty hash table with a temporary file, in the query's memory context. */
static MongoHashedScan *
create_hashed(ForeignScanState *scan)
{
	MongoScanState *state = scan->fdw_state;
	MemoryContext context = AllocSetContextCreate(scan->ss.ps.state->es_query_cxt,
												  "mongo_fdw hashed scan",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	MongoHashedScan *hashed = palloc0(sizeof(MongoHashedScan));
	HASHCTL		control = {
		.keysize = sizeof(uint32), .entrysize = sizeof(HashedRows), .hcxt = context
	};

	hashed->context = context;
	mongo_begin_filing(&hashed->filed, context);
	hashed->hashes = hash_create("mongo_fdw hashed scan", 1024, &control,
								 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	hashed->max_rows = 1024;
	hashed->rows = palloc(hashed->max_rows * sizeof(HashedRow));
	hashed->file = BufFileCreateTemp(false);
	hashed->keys = mongo_hash_keys_create(state->plan->hash_keys, state->expressions,
										  state->plan->hash_first);
	MemoryContextSwitchTo(old_context);
	mongo_scan_make_cached_slot(scan);
	return hashed;
}

/*
 * mongo_hashed_end
 *		Frees the hash table of a hashed scan, and closes its file; it may have none.
 */
void
mongo_hashed_end(ForeignScanState *scan)
{
	MongoScanState *state = scan->fdw_state;
	MongoHashedScan *hashed = state->hashed;

	state->hashed = NULL;
	if (hashed == NULL)
		return;
	BufFileClose(hashed->file);
	MemoryContextDelete(hashed->context);
}

/* Has the scan's CaseTestExpr be the values of the batch. */
static void
ask_for_batch(const MongoHashedScan *hashed, ExprContext *econtext)
{
	int			nasked = hashed->keys->nasked;
	Datum	  **values = palloc(sizeof(Datum *) * nasked);
	int		   *nvalues = palloc(sizeof(int) * nasked);

	for (int i = 0; i < nasked; i++)
	{
		nvalues[i] = hashed->nrequested;
		values[i] = palloc(sizeof(Datum) * hashed->nrequested);
		for (int j = 0; j < hashed->nrequested; j++)
			values[i][j] = hashed->requested[j]->values[i];
	}
	mongo_ask_for_keys(hashed->keys, values, nvalues, econtext);
}

/*
 * Fetches all documents, or those for the batch's values, into the hash table; drops the table and
 * returns false if that is abandoned.
 */
static bool
fill(ForeignScanState *scan)
{
	MongoScanState *state = scan->fdw_state;
	MongoHashedScan *hashed = state->hashed;
	ExprContext *econtext = scan->ss.ps.ps_ExprContext;
	bool		filled;

	mongo_run_reset(&state->run);
	if (hashed->requested != NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(state->run.context);

		ask_for_batch(hashed, econtext);
		MemoryContextSwitchTo(old_context);
		state->run.number = list_length(state->plan->commands) - 1;
	}
	if (BufFileSeek(hashed->file, hashed->end_segment, hashed->end, SEEK_SET) != 0)
		elog(ERROR, "could not write a temporary file");
	filled = read_rows(hashed, scan);
	BufFileTell(hashed->file, &hashed->end_segment, &hashed->end);
	econtext->caseValue_isNull = true;
	state->started = false;
	mongo_run_reset(&state->run);
	if (!filled)
		mongo_hashed_end(scan);
	return filled;
}

/* Fetches all documents; returns false if that is abandoned, so that the scan cannot be used. */
static bool
fill_with_all(ForeignScanState *scan)
{
	MongoScanState *state = scan->fdw_state;

	mongo_hashed_end(scan);
	state->hashed = create_hashed(scan);
	return fill(scan);
}

static void
read_hashed_row(const MongoHashedScan *hashed, const HashedRow *row, TupleTableSlot *slot)
{
	MinimalTuple tuple;
	uint32		length;

	if (BufFileSeek(hashed->file, row->segment, row->offset, SEEK_SET) != 0)
		elog(ERROR, "could not read a temporary file");
	mongo_read_temporary_file(hashed->file, &length, sizeof(length));
	tuple = MemoryContextAlloc(slot->tts_mcxt, length);
	tuple->t_len = length;
	mongo_read_temporary_file(hashed->file, (char *) tuple + sizeof(length),
							  length - sizeof(length));
	ExecStoreMinimalTuple(tuple, slot, true);
}

/*
 * Evaluates the keys of the outer row, and sets *hash to their hash value and *rows to the rows
 * with it, or NULL.  Returns whether the table has all documents with these keys.
 */
static bool
find_rows(MongoHashedScan *hashed, ExprContext *econtext, uint32 *hash, HashedRows **rows)
{
	*rows = NULL;
	/* nothing is equal to NULL */
	if (!mongo_hash_keys(hashed->keys, econtext, true, hash))
		return true;
	*rows = hash_search(hashed->hashes, hash, HASH_FIND, NULL);
	if (hashed->requested == NULL)
		return true;
	if (*rows == NULL || (*rows)->batch == hashed->batch)
		return false;
	for (int i = 0; i < hashed->keys->nkeys; i++)
	{
		const MongoKeyState *key = &hashed->keys->keys[i];

		if (!datum_image_eq(key->value, (*rows)->values[i], key->by_value, key->length))
			return false;
	}
	return true;
}

/*
 * mongo_hashed_row
 *		Returns the next row of a filled hashed scan; an empty slot at the end.
 */
TupleTableSlot *
mongo_hashed_row(ForeignScanState *scan)
{
	MongoScanState *state = scan->fdw_state;
	MongoHashedScan *hashed = state->hashed;
	HashedRows *rows;
	uint32		hash;

	if (!state->started)
	{
		state->started = true;
		(void) find_rows(hashed, scan->ss.ps.ps_ExprContext, &hash, &rows);
		hashed->next = rows == NULL ? -1 : rows->first;
	}
	if (hashed->next < 0)
		return ExecClearTuple(state->cached_slot);
	read_hashed_row(hashed, &hashed->rows[hashed->next], state->cached_slot);
	hashed->next = hashed->rows[hashed->next].next;
	return state->cached_slot;
}

/* ----- A scan in a correlated subquery that switches to its second plan ----- */

/* A scan switches after so many runs at the earliest. */
#define FEWEST_RUNS	3

/*
 * If the statement's cost is more than so many times the cost of fetching all documents, the
 * scan switches after FEWEST_RUNS: at worst, little is lost.
 */
#define COST_RATIO		4

/* Returns the hashed scan at the bottom of the scan's second plan; NULL if it has none. */
static ForeignScanState *
hashed_scan_of(ForeignScanState *node)
{
	PlanState  *below = outerPlanState(node);

	while (below != NULL && !IsA(below, ForeignScanState))
		below = outerPlanState(below);
	return (ForeignScanState *) below;
}

/*
 * Counts what has cost as much as so many runs, and tells whether it is time to switch; once.
 *
 * The plan of a subquery lacks the number of outer rows.  So all documents are fetched when runs
 * have cost as much as that.  At worst, this costs twice as much as the better way.  If the planner
 * expects many outer rows, the cost of the whole statement is high, and they are fetched at once.
 */
static bool
is_time_to_switch(ForeignScanState *node, int runs)
{
	MongoScanState *state = node->fdw_state;
	int			after = state->plan->switch_after;

	if (after == 0)
		return false;
	if (hashed_scan_of(node)->ss.ps.plan->total_cost * COST_RATIO <
		node->ss.ps.state->es_plannedstmt->planTree->total_cost)
		after = FEWEST_RUNS;
	after = Max(after, FEWEST_RUNS);
	if (state->nruns > after)
		return false;
	state->nruns = Min(state->nruns + runs, after + 1);
	return state->nruns > after;
}

/*
 * mongo_switch_plan
 *		Tells, at the start of a run, whether its rows come from the second plan.
 *
 * Tries once to fill the hash table with all documents.  Raises what scans raise.
 */
bool
mongo_switch_plan(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;

	if (!state->switched)
	{
		if (state->identities != NULL || !is_time_to_switch(node, 1) ||
			!fill_with_all(hashed_scan_of(node)))
			return false;
		state->switched = true;
	}
	mongo_results_forget(state->results);
	return true;
}

/*
 * mongo_has_batched_rows
 *		Tells, at the start of a run, whether a batch of outer rows has fetched its documents.
 */
bool
mongo_has_batched_rows(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	ForeignScanState *scan = state->plan->batch_rows == 0 ? NULL : hashed_scan_of(node);
	MongoHashedScan *hashed = scan == NULL ? NULL : ((MongoScanState *) scan->fdw_state)->hashed;
	HashedRows *rows;
	uint32		hash;

	if (hashed == NULL || hashed->requested == NULL)
		return false;
	ResetExprContext(scan->ss.ps.ps_ExprContext);
	return find_rows(hashed, scan->ss.ps.ps_ExprContext, &hash, &rows);
}

/*
 * mongo_batch_begin
 *		Tells whether the scan's second plan takes values of a batch of outer rows.
 *
 * Not if it has all documents, or a batch was abandoned.  If the documents of the batches before
 * need much memory, forgets them.
 */
bool
mongo_batch_begin(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	ForeignScanState *scan = hashed_scan_of(node);
	MongoScanState *below = scan->fdw_state;

	if (state->switched || state->batch_abandoned)
		return false;
	if (below->hashed != NULL && !is_too_large(below->hashed, 0.5))
		return true;
	mongo_hashed_end(scan);
	below->hashed = create_hashed(scan);
	below->hashed->requested = MemoryContextAlloc(below->hashed->context,
												  sizeof(HashedRows *) * state->plan->batch_rows);
	return true;
}

/*
 * mongo_batch_request
 *		Has the scan's second plan fetch the documents for the values that it has been given.
 *
 * Returns false if it takes no more, because that is abandoned, or all documents are there.  For
 * fewer values than FEWEST_RUNS sends nothing, and keeps them.  Raises what scans raise.
 */
bool
mongo_batch_request(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	const MongoScanPlan *plan = state->plan;
	ForeignScanState *scan = hashed_scan_of(node);
	MongoHashedScan *hashed = ((MongoScanState *) scan->fdw_state)->hashed;
	int			runs = (int64) plan->batch_runs * hashed->nrequested / plan->batch_rows;
	MongoErrorSource source;

	if (hashed->nrequested < FEWEST_RUNS)
		return true;
	mongo_push_error_source(&source, state->relids);
	if (is_time_to_switch(node, Max(runs, 1)))
	{
		state->switched = fill_with_all(scan);
		state->batch_abandoned = !state->switched;
	}
	else if (fill(scan))
	{
		hashed->batch++;
		hashed->nrequested = 0;
		hashed->requested_size = 0;
	}
	else
		state->batch_abandoned = true;
	mongo_pop_error_source(&source);
	return !state->switched && !state->batch_abandoned;
}

/*
 * mongo_batch_add
 *		Gives the scan's second plan the values of an outer row, by the present parameters.
 *
 * They are ignored if the documents for them are there, if other values have their hash value, or
 * if they are large; such runs send single commands.  Returns and raises as mongo_batch_request()
 * does, which it calls when the command is long enough.
 */
bool
mongo_batch_add(ForeignScanState *node)
{
	ForeignScanState *scan = hashed_scan_of(node);
	ExprContext *econtext = scan->ss.ps.ps_ExprContext;
	MongoHashedScan *hashed = ((MongoScanState *) scan->fdw_state)->hashed;
	MemoryContext old_context;
	HashedRows *rows;
	Size		size;
	uint32		hash;

	ResetExprContext(econtext);
	if (find_rows(hashed, econtext, &hash, &rows) || rows != NULL)
		return true;
	size = mongo_asked_size(hashed->keys);
	if (size >= MONGO_LARGEST_KEYS)
		return true;
	if (hashed->nrequested == ((MongoScanState *) node->fdw_state)->plan->batch_rows ||
		hashed->requested_size + size > MONGO_LARGEST_KEYS)
	{
		if (!mongo_batch_request(node))
			return false;
		/* reading has overwritten the values */
		(void) mongo_hash_keys(hashed->keys, econtext, true, &hash);
	}
	old_context = MemoryContextSwitchTo(hashed->context);
	rows = hash_search(hashed->hashes, &hash, HASH_ENTER, NULL);
	rows->first = -1;
	rows->batch = hashed->batch;
	rows->values = palloc(sizeof(Datum) * hashed->keys->nkeys);
	for (int i = 0; i < hashed->keys->nkeys; i++)
	{
		const MongoKeyState *key = &hashed->keys->keys[i];

		rows->values[i] = datumCopy(key->value, key->by_value, key->length);
	}
	MemoryContextSwitchTo(old_context);
	hashed->requested[hashed->nrequested++] = rows;
	hashed->requested_size += size;
	return true;
}

/*
 * mongo_second_plan_row
 *		Returns the next row of the second plan, in the scan's slot; an empty slot at the end.
 */
TupleTableSlot *
mongo_second_plan_row(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	MemoryContext old_context = MemoryContextSwitchTo(node->ss.ps.state->es_query_cxt);
	TupleTableSlot *row = ExecProcNode(outerPlanState(node));
	ListCell   *cell;

	MemoryContextSwitchTo(old_context);
	ExecClearTuple(slot);
	if (TupIsNull(row))
		return slot;
	slot_getallattrs(row);
	/* clear the columns of an earlier row */
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts);
	foreach(cell, state->plan->second_columns)
	{
		int			column = lfirst_int(cell);

		if (column < 0)
			continue;
		slot->tts_values[column] = row->tts_values[foreach_current_index(cell)];
		slot->tts_isnull[column] = row->tts_isnull[foreach_current_index(cell)];
	}
	return ExecStoreVirtualTuple(slot);
}
