/*-------------------------------------------------------------------------
 *
 * rescan.c
 *		Repeats scans: cached results, and second plans of correlated subqueries.
 *
 * Within a statement the same command has the same result, as with one snapshot.  So a restarted
 * scan reads its earlier rows again.  They are in a tuplestore, which uses work_mem and beyond
 * that a temporary file, but at most half of temp_file_limit for all of them.  Several results are
 * kept as long as they fit into work_mem; a result in a file is dropped when the next one begins.
 *
 * Each run of a correlated subquery sends a command with the values of its outer row.  After some
 * runs the hashed scan at the bottom of the second plan fetches all documents, once, into a
 * temporary file with a hash table.  src/plan/second_plan.c plans that; scan.c decides for each run
 * where its rows come from.
 *
 * Hash tables and the accounting of files come first, then the cache, then hashed scans.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "common/hashfn.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "access/htup_details.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

/* ------------------------ Hash tables by documents ------------------------ */

static uint32
hash_document(const void *key, Size keysize pg_attribute_unused())
{
	const MongoDocumentKey *document = key;

	return hash_bytes(document->data, document->length);
}

static int
compare_documents(const void *left, const void *right, Size keysize pg_attribute_unused())
{
	const MongoDocumentKey *one = left;
	const MongoDocumentKey *other = right;

	return one->length == other->length &&
		memcmp(one->data, other->data, one->length) == 0 ? 0 : 1;
}

/*
 * mongo_document_table_create
 *		Returns a hash table by documents, in 'context'.
 *
 * Its entries have this size, and begin with a MongoDocumentKey.
 */
HTAB *
mongo_document_table_create(MemoryContext context, Size entrysize)
{
	HASHCTL		control = {
		.keysize = sizeof(MongoDocumentKey),
		.entrysize = entrysize,
		.hash = hash_document,
		.match = compare_documents,
		.hcxt = context,
	};

	return hash_create("mongo_fdw documents", 16, &control,
					   HASH_ELEM | HASH_FUNCTION | HASH_COMPARE | HASH_CONTEXT);
}

/*
 * mongo_document_table_enter
 *		Returns the entry of 'document'; adds it if it is not there, and sets *found to whether it
 *		was.
 *
 * A new entry's key is a copy of the document in 'context'.  Its other bytes are not initialized.
 */
void *
mongo_document_table_enter(HTAB *table, MemoryContext context, const bson_t *document, bool *found)
{
	MongoDocumentKey key = {bson_get_data(document), document->len};
	MongoDocumentKey *entry = hash_search(table, &key, HASH_FIND, NULL);
	uint8	   *bytes;

	*found = entry != NULL;
	if (*found)
		return entry;
	/* the bytes are copied first: if that raises, there is no entry */
	bytes = MemoryContextAlloc(context, key.length);
	memcpy(bytes, key.data, key.length);
	key.data = bytes;
	return hash_search(table, &key, HASH_ENTER, NULL);
}

/* --- The temporary files of caches and hashed scans, which can be given up --- */

/* Bytes in such files of the session, until a memory context is reset. */
typedef struct FiledBytes
{
	Size		length;
	MemoryContextCallback callback;
} FiledBytes;

static Size all_filed = 0;

static void
forget_filed(void *arg)
{
	FiledBytes *filed = arg;

	all_filed -= filed->length;
	filed->length = 0;
}

/* Begins to count bytes that are in files as long as what is in 'context'. */
static void
begin_filing(FiledBytes *filed, MemoryContext context)
{
	filed->callback.func = forget_filed;
	filed->callback.arg = filed;
	MemoryContextRegisterResetCallback(context, &filed->callback);
}

/*
 * Counts so many more bytes; returns false if half of temp_file_limit would be exceeded.  The
 * other half is for files that the session must have.
 */
static bool
may_file(FiledBytes *filed, Size length)
{
	if (temp_file_limit >= 0 && (all_filed + length) / 1024 > (Size) temp_file_limit / 2)
		return false;
	filed->length += length;
	all_filed += length;
	return true;
}

/* -------------- A cache of the results of one scan's commands --------------- */

typedef struct StoredResult
{
	MongoDocumentKey command;
	int64		first;			/* row, in the tuplestore */
	int64		nrows;
	bool		whole;
} StoredResult;

struct MongoResultCache
{
	MemoryContext context;
	MemoryContext keys_context; /* of 'known' and the commands */
	HTAB	   *known;
	Tuplestorestate *rows;
	Size		length;			/* of all rows, while there is temp_file_limit */
	FiledBytes	filed;			/* of these */
	StoredResult *current;		/* the selected result, or NULL */
	int64		position;		/* of the next row in it */
};

/*
 * mongo_results_create
 *		Returns an empty cache in 'context', with its file in CurrentResourceOwner.
 */
MongoResultCache *
mongo_results_create(MemoryContext context)
{
	MemoryContext old_context = MemoryContextSwitchTo(context);
	MongoResultCache *cache = palloc0(sizeof(MongoResultCache));

	cache->context = context;
	cache->keys_context = AllocSetContextCreate(context, "mongo_fdw results",
												ALLOCSET_SMALL_SIZES);
	cache->known = mongo_document_table_create(cache->keys_context, sizeof(StoredResult));
	begin_filing(&cache->filed, cache->keys_context);
	cache->rows = tuplestore_begin_heap(false, false, work_mem);
	tuplestore_set_eflags(cache->rows, EXEC_FLAG_REWIND);
	MemoryContextSwitchTo(old_context);
	return cache;
}

/*
 * mongo_results_forget
 *		Drops the selected result, because its rows depend on more than the command.
 *
 * Does nothing if 'cache' is NULL or no result is selected.
 */
void
mongo_results_forget(MongoResultCache *cache)
{
	if (cache == NULL || cache->current == NULL)
		return;
	hash_search(cache->known, &cache->current->command, HASH_REMOVE, NULL);
	cache->current = NULL;
}

/*
 * mongo_results_leave
 *		Deselects the selected result, and drops it unless it is whole.
 *
 * Does nothing if 'cache' is NULL or no result is selected.
 */
void
mongo_results_leave(MongoResultCache *cache)
{
	if (cache == NULL)
		return;
	if (cache->current != NULL && !cache->current->whole)
		mongo_results_forget(cache);
	cache->current = NULL;
}

static void
drop_results(MongoResultCache *cache)
{
	cache->current = NULL;
	cache->length = 0;
	tuplestore_clear(cache->rows);
	hash_destroy(cache->known);
	MemoryContextReset(cache->keys_context);
	cache->known = mongo_document_table_create(cache->keys_context, sizeof(StoredResult));
	begin_filing(&cache->filed, cache->keys_context);
}

/*
 * mongo_results_begin
 *		Selects the result of 'command', at its first row, and returns how much of it is cached.
 *
 * Only the last selected result can be MONGO_RESULT_BEGUN; further rows are then added to it.
 */
MongoResultState
mongo_results_begin(MongoResultCache *cache, const bson_t *command)
{
	MongoDocumentKey key = {bson_get_data(command), command->len};
	StoredResult *result = hash_search(cache->known, &key, HASH_FIND, NULL);

	/*
	 * reading a file past many other rows takes longer than sending the
	 * command again
	 */
	bool		found = result != NULL && (tuplestore_in_memory(cache->rows) ||
										   result->first <= result->nrows || !result->whole);

	if (result != cache->current)
		mongo_results_leave(cache);
	if (!found && (!tuplestore_in_memory(cache->rows) ||
				   MemoryContextMemAllocated(cache->keys_context, true) > (Size) work_mem * 1024))
		drop_results(cache);
	if (!found)
	{
		/* its rows will follow all others */
		result = mongo_document_table_enter(cache->known, cache->keys_context, command, &found);
		result->first = tuplestore_tuple_count(cache->rows);
		result->nrows = 0;
		result->whole = false;
	}
	cache->current = result;
	cache->position = 0;
	tuplestore_rescan(cache->rows);
	if (result->first > 0)
		(void) tuplestore_skiptuples(cache->rows, result->first, true);
	return !found ? MONGO_RESULT_NEW : result->whole ? MONGO_RESULT_WHOLE : MONGO_RESULT_BEGUN;
}

/*
 * mongo_results_next
 *		Stores the next cached row in 'slot', of minimal tuples; returns false after the last row.
 *
 * The row is valid until the next call of a function of the cache.
 */
bool
mongo_results_next(MongoResultCache *cache, TupleTableSlot *slot)
{
	MemoryContext old_context;

	if (cache->current == NULL || cache->position >= cache->current->nrows)
		return false;
	/* the slot owns a row that was read from a file */
	old_context = MemoryContextSwitchTo(cache->context);
	if (!tuplestore_gettupleslot(cache->rows, true, false, slot))
		elog(ERROR, "a stored result ends before its last row");
	MemoryContextSwitchTo(old_context);
	cache->position++;
	return true;
}

/* Tells whether a row stays in memory, or may be written to a file. */
static bool
may_add(MongoResultCache *cache, TupleTableSlot *slot)
{
	if (temp_file_limit < 0)
		return true;
	slot_getallattrs(slot);
	cache->length += SizeofMinimalTupleHeader + sizeof(int) +
		heap_compute_data_size(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull);
	/* with what the tuplestore adds, this fits into its memory */
	if (cache->length < (Size) work_mem * 1024 / 4)
		return true;
	return may_file(&cache->filed, cache->length - cache->filed.length);
}

/*
 * mongo_results_add
 *		Appends a row to the selected result, if there is one, after all cached rows have been
 *		read.
 *
 * Drops all results if they become too large.
 */
void
mongo_results_add(MongoResultCache *cache, TupleTableSlot *slot)
{
	if (cache->current == NULL)
		return;
	if (!may_add(cache, slot))
	{
		drop_results(cache);
		return;
	}
	Assert(cache->position == cache->current->nrows);
	tuplestore_puttupleslot(cache->rows, slot);
	cache->position++;
	cache->current->nrows++;
}

/*
 * mongo_results_finish
 *		Marks the selected result as whole; at most a row that PostgreSQL makes may follow.
 *
 * Does nothing if 'cache' is NULL or no result is selected.
 */
void
mongo_results_finish(MongoResultCache *cache)
{
	if (cache != NULL && cache->current != NULL)
		cache->current->whole = true;
}

/*
 * mongo_results_is_whole
 *		Tells whether a result is selected and whole.
 */
bool
mongo_results_is_whole(const MongoResultCache *cache)
{
	return cache->current != NULL && cache->current->whole;
}

/*
 * mongo_results_end
 *		Frees what the cache uses, except itself; 'cache' may be NULL.
 */
void
mongo_results_end(MongoResultCache *cache)
{
	if (cache == NULL)
		return;
	tuplestore_end(cache->rows);
	MemoryContextDelete(cache->keys_context);
}

/* --------------------------- Hash values of keys ---------------------------- */

/*
 * mongo_hash_keys_create
 *		Returns the state of a plan's keys (MongoHashKey), in the current memory context.
 *
 * From index 'first' on, 'expressions' are the ExprStates of the outer sides, then of the inner
 * sides.
 */
MongoHashKeys *
mongo_hash_keys_create(const List *plan_keys, const List *expressions, int first)
{
	MongoHashKeys *keys = palloc(sizeof(MongoHashKeys));

	keys->nkeys = list_length(plan_keys);
	keys->keys = palloc0(sizeof(MongoKeyState) * keys->nkeys);
	for (int i = 0; i < keys->nkeys; i++)
	{
		MongoKeyState *key = &keys->keys[i];
		const MongoHashKey *plan = list_nth(plan_keys, i);

		key->outer = list_nth(expressions, first + i);
		key->inner = list_nth(expressions, first + keys->nkeys + i);
		fmgr_info(plan->outer_hash, &key->outer_hash);
		fmgr_info(plan->inner_hash, &key->inner_hash);
		key->collation = plan->collation;
		key->type = plan->type;
		get_typlenbyvalalign(key->type, &key->length, &key->by_value, &key->align);
	}
	return keys;
}

/*
 * mongo_hash_keys
 *		Evaluates all keys of one side, in per-tuple memory, and sets *hash to their hash value.
 *
 * Returns false if a key is NULL, which is equal to nothing.
 */
bool
mongo_hash_keys(MongoHashKeys *keys, ExprContext *econtext, bool is_outer, uint32 *hash)
{
	/* hash functions may detoast, which allocates */
	MemoryContext old_context = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	bool		isnull = false;

	*hash = 0;
	for (int i = 0; i < keys->nkeys && !isnull; i++)
	{
		MongoKeyState *key = &keys->keys[i];

		key->value = ExecEvalExpr(is_outer ? key->outer : key->inner, econtext, &isnull);
		if (isnull)
			break;
		if (is_outer && key->length == -1)
			key->value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(key->value));
		key->hash = DatumGetUInt32(FunctionCall1Coll(is_outer ? &key->outer_hash : &key->inner_hash,
													 key->collation, key->value));
		*hash = hash_combine(*hash, key->hash);
	}
	MemoryContextSwitchTo(old_context);
	return !isnull;
}

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
	FiledBytes	filed;			/* in it */
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
	if (!may_file(&hashed->filed, tuple->t_len))
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
	for (;;)
	{
		MemoryContext old_context;
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		old_context = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
		slot = mongo_iterate_foreign_scan(scan);
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
	begin_filing(&hashed->filed, context);
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
	mongo_rescan_foreign_scan(scan);
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

		if (after == 0 || state->nruns > after || state->shared != NULL ||
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
	foreach(cell, state->plan->local_columns)
	{
		int			column = lfirst_int(cell);

		if (column < 0)
			continue;
		slot->tts_values[column] = row->tts_values[foreach_current_index(cell)];
		slot->tts_isnull[column] = row->tts_isnull[foreach_current_index(cell)];
	}
	return ExecStoreVirtualTuple(slot);
}
