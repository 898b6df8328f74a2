/*-------------------------------------------------------------------------
 *
 * result_cache.c
 *		Caches the results of one scan's commands.
 *
 * Within a statement the same command has the same result, as with one snapshot.  So a restarted
 * scan reads its earlier rows again.  They are in a tuplestore, which uses work_mem and beyond
 * that a temporary file, but at most half of temp_file_limit for all of them.  Several results are
 * kept as long as they fit into work_mem; a result in a file is dropped when the next one begins.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/tuplestore.h"

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
	MongoFiledBytes filed;		/* of these */
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
	mongo_begin_filing(&cache->filed, cache->keys_context);
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
	mongo_begin_filing(&cache->filed, cache->keys_context);
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
	return mongo_may_file(&cache->filed, cache->length - cache->filed.length);
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
