/*-------------------------------------------------------------------------
 *
 * hashed_scan.c
 *		Second plans: a scan in a correlated subquery switches to a hash table of all documents.
 *
 * Each run of a correlated subquery sends a command with the values of its outer row.  After some
 * runs the hashed scan at the bottom of the second plan fetches all documents, once, into a
 * temporary file with a hash table.  src/plan/second_plan.c plans that.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "miscadmin.h"

/* --- A hashed scan: the documents for all runs of a correlated subquery --- */

/* The rows whose keys have this hash value: their places in an array. */
typedef struct HashedRows
{
	uint32		hash;
	int			first;
	int			last;
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
	MongoFiledBytes filed;		/* in it */
	int			next;			/* row of the current outer row, or -1 */
};

/* Adds a row to the hash table, unless a key is NULL; returns false if the file is too large. */
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

	rows = hash_search(hashed->hashes, &hash, HASH_ENTER, &found);
	if (found)
		hashed->rows[rows->last].next = hashed->nrows;
	else
		rows->first = hashed->nrows;
	rows->last = hashed->nrows++;
	return true;
}

/* Tells whether the table or the file needs more than it may. */
static bool
is_too_large(const MongoHashedScan *hashed)
{
	Size		limit = get_hash_memory_limit();

	return MemoryContextMemAllocated(hashed->context, true) > limit ||
		hashed->filed.length / MONGO_HASHED_FILE_FACTOR > limit ||
		hashed->nrows == PG_INT32_MAX / 2;
}

/* Reads all rows into the hash table; returns false if that is abandoned. */
static bool
read_rows(MongoHashedScan *hashed, ForeignScanState *scan)
{
	MongoScanState *state = scan->fdw_state;
	ExprContext *econtext = scan->ss.ps.ps_ExprContext;

	mongo_row_decoder_defer_errors(state->decoder, MONGO_DEFER_ERRORS, NULL);
	if (!state->started && mongo_run_begin(scan))
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
		if (is_too_large(hashed) || !add_row(hashed, econtext, slot))
			return false;
	}
}

/*
 * Reads a hashed scan to its end, into a temporary file and a hash table in the query's memory
 * context; returns false if that is abandoned, so that the scan cannot be used.
 *
 * It is abandoned if the table or the file would be too large, and for a document that does not
 * fit its columns or may raise an error, since perhaps no outer row matches that document.
 * Otherwise raises what a scan raises.
 */
static bool
fill_hashed_scan(ForeignScanState *scan)
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
	bool		filled;

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
	state->keeps_results = false;
	filled = read_rows(hashed, scan);
	state->started = false;
	mongo_run_reset(&state->run);
	if (filled)
	{
		mongo_scan_make_cached_slot(scan);
		state->hashed = hashed;
	}
	else
	{
		BufFileClose(hashed->file);
		MemoryContextDelete(context);
	}
	return filled;
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
 * mongo_hashed_row
 *		Returns the next row of a filled hashed scan; an empty slot at the end.
 */
TupleTableSlot *
mongo_hashed_row(ForeignScanState *scan)
{
	MongoScanState *state = scan->fdw_state;
	MongoHashedScan *hashed = state->hashed;
	const HashedRows *rows = NULL;
	uint32		hash;

	if (!state->started)
	{
		state->started = true;
		if (mongo_hash_keys(hashed->keys, scan->ss.ps.ps_ExprContext, true, &hash))
			rows = hash_search(hashed->hashes, &hash, HASH_FIND, NULL);
		hashed->next = rows == NULL ? -1 : rows->first;
	}
	if (hashed->next < 0)
		return ExecClearTuple(state->cached_slot);
	read_hashed_row(hashed, &hashed->rows[hashed->next], state->cached_slot);
	hashed->next = hashed->rows[hashed->next].next;
	return state->cached_slot;
}

/*
 * mongo_hashed_end
 *		Closes the file of a hashed scan; 'hashed' may be NULL.
 */
void
mongo_hashed_end(MongoHashedScan *hashed)
{
	if (hashed != NULL)
		BufFileClose(hashed->file);
}

/* ----- A scan in a correlated subquery that switches to its second plan ----- */

/* A scan switches after so many runs at the earliest. */
#define FEWEST_RUNS	3

/*
 * If the statement's cost is more than so many times the cost of fetching all documents, the
 * scan switches after FEWEST_RUNS: at worst, little is lost.
 */
#define COST_RATIO		4

/*
 * Returns the number of runs after which the scan switches; 0: never.
 *
 * The plan of a subquery lacks the number of outer rows.  So all documents are fetched when single
 * runs have cost as much as that.  At worst, this costs twice as much as the better way.  If the
 * planner expects many outer rows, the cost of the whole statement is high.
 */
static int
switch_after(const ForeignScanState *node)
{
	int			after = ((const MongoScanState *) node->fdw_state)->plan->switch_after;

	if (after == 0)
		return 0;
	if (after * node->ss.ps.plan->total_cost * COST_RATIO <
		node->ss.ps.state->es_plannedstmt->planTree->total_cost)
		after = FEWEST_RUNS;
	return Max(after, FEWEST_RUNS);
}

/*
 * mongo_switch_plan
 *		Tells, at the start of a run, whether its rows come from the second plan.
 *
 * Tries once to fill the hash table.  Raises what scans raise.
 */
bool
mongo_switch_plan(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	PlanState  *below = (PlanState *) node;

	if (!state->switched)
	{
		int			after = switch_after(node);

		if (after == 0 || state->nruns > after ||
			state->identities != NULL || ++state->nruns <= after)
			return false;
		do
			below = outerPlanState(below);
		while (!IsA(below, ForeignScanState));
		if (!fill_hashed_scan((ForeignScanState *) below))
			return false;
		state->switched = true;
	}
	mongo_results_forget(state->results);
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
