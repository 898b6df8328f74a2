/*-------------------------------------------------------------------------
 *
 * hashed_scan.c
 *		The documents for all values of a correlated sub-select, in a hash table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "hashed_scan.h"

#include "scan.h"

#include "common/hashfn.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "foreign/fdwapi.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#define FEWEST_BUCKETS	1024	/* a power of two */

typedef struct HashedRow
{
	MinimalTuple tuple;
	uint32		hash;
	struct HashedRow *next;		/* in the same bucket, or of all */
} HashedRow;

typedef struct HashedKey
{
	ExprState  *column;
	ExprState  *value;
	FmgrInfo	column_hash;
	FmgrInfo	value_hash;
	Oid			collation;
} HashedKey;

struct MongoHashedScan
{
	MemoryContext context;
	HashedKey  *keys;
	int			nkeys;
	HashedRow  *rows;			/* while they are read */
	double		nrows;
	HashedRow **buckets;
	uint32		mask;
	uint32		hash;			/* that is looked for */
	HashedRow  *next;
};

/* prepare_keys: from the plan's expressions and functions. */
static void
prepare_keys(MongoHashedScan *hashed, const MongoScanState *state)
{
	const List *functions = state->plan->hash_functions;

	hashed->nkeys = list_length(functions) / 3;
	hashed->keys = palloc0(sizeof(HashedKey) * hashed->nkeys);
	for (int i = 0; i < hashed->nkeys; i++)
	{
		HashedKey  *key = &hashed->keys[i];
		int			first = state->plan->hash_first + 2 * i;

		key->column = list_nth(state->expressions, first);
		key->value = list_nth(state->expressions, first + 1);
		fmgr_info(list_nth_oid(functions, 3 * i), &key->column_hash);
		fmgr_info(list_nth_oid(functions, 3 * i + 1), &key->value_hash);
		key->collation = list_nth_oid(functions, 3 * i + 2);
	}
}

/*
 * hash_keys: of the row in the context, or of the parameters; false when one is NULL,
 * which is equal to nothing.  In the per-tuple context.
 */
static bool
hash_keys(MongoHashedScan *hashed, ExprContext *econtext, bool of_row, uint32 *hash)
{
	MemoryContext old_context = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	bool		isnull = false;

	*hash = 0;
	for (int i = 0; i < hashed->nkeys && !isnull; i++)
	{
		HashedKey  *key = &hashed->keys[i];
		Datum		value = ExecEvalExpr(of_row ? key->column : key->value, econtext, &isnull);

		if (!isnull)
			*hash = hash_combine(*hash, DatumGetUInt32(FunctionCall1Coll(of_row ? &key->column_hash :
																		 &key->value_hash,
																		 key->collation, value)));
	}
	MemoryContextSwitchTo(old_context);
	return !isnull;
}

/* next_document: of the scan below, in its own terms; NULL at the end. */
static TupleTableSlot *
next_document(ForeignScanState *scan)
{
	ExprContext *econtext = scan->ss.ps.ps_ExprContext;
	MemoryContext old_context;
	TupleTableSlot *slot;

	CHECK_FOR_INTERRUPTS();
	ResetExprContext(econtext);
	if (scan->ss.ps.instrument)
		InstrStartNode(scan->ss.ps.instrument);
	old_context = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	slot = scan->fdwroutine->IterateForeignScan(scan);
	MemoryContextSwitchTo(old_context);
	if (scan->ss.ps.instrument)
		InstrStopNode(scan->ss.ps.instrument, TupIsNull(slot) ? 0.0 : 1.0);
	return TupIsNull(slot) ? NULL : slot;
}

/* is_usable: can the document be read without an error? */
static bool
is_usable(const MongoRowDecoder *decoder)
{
	return mongo_row_decoder_mismatches(decoder) == NULL && !mongo_row_decoder_deferred(decoder);
}

/* add_row: unless a key is NULL. */
static void
add_row(MongoHashedScan *hashed, ForeignScanState *node, TupleTableSlot *slot)
{
	ExprContext *econtext = node->ss.ps.ps_ExprContext;
	MemoryContext old_context;
	HashedRow  *row;
	uint32		hash;

	ResetExprContext(econtext);
	econtext->ecxt_scantuple = slot;
	if (!hash_keys(hashed, econtext, true, &hash))
		return;
	old_context = MemoryContextSwitchTo(hashed->context);
	row = palloc(sizeof(HashedRow));
	row->tuple = ExecCopySlotMinimalTuple(slot);
	row->hash = hash;
	row->next = hashed->rows;
	hashed->rows = row;
	hashed->nrows++;
	MemoryContextSwitchTo(old_context);
}

/*
 * scan_of_all: the scan below.  Above it may be a Result that tests conditions on nothing
 * but outer rows; those are tested above 'node', too.
 */
static ForeignScanState *
scan_of_all(ForeignScanState *node)
{
	PlanState  *below = outerPlanState(node);

	while (below != NULL && IsA(below, ResultState))
		below = outerPlanState(below);
	if (below == NULL || !IsA(below, ForeignScanState))
		elog(ERROR, "plan below a scan is not a foreign scan");
	return (ForeignScanState *) below;
}

/* read_rows: all of them; false when that is given up. */
static bool
read_rows(MongoHashedScan *hashed, ForeignScanState *node)
{
	ForeignScanState *scan = scan_of_all(node);
	MongoScanState *state = scan->fdw_state;
	TupleTableSlot *slot;

	state->keeps_answers = false;
	mongo_row_decoder_note_mismatches(state->decoder,
									  state->plan->type_mismatch == MONGO_TYPE_MISMATCH_ERROR);
	mongo_row_decoder_defer(state->decoder, true, NULL);
	while ((slot = next_document(scan)) != NULL)
	{
		if (!is_usable(state->decoder))
			return false;
		add_row(hashed, node, slot);
		if (MemoryContextMemAllocated(hashed->context, true) > get_hash_memory_limit())
			return false;
	}
	return true;
}

/* fill_buckets: of the rows that have been read. */
static void
fill_buckets(MongoHashedScan *hashed)
{
	uint32		nbuckets = FEWEST_BUCKETS;
	HashedRow  *row = hashed->rows;

	while (nbuckets < hashed->nrows)
		nbuckets *= 2;
	hashed->mask = nbuckets - 1;
	hashed->buckets = MemoryContextAllocZero(hashed->context, sizeof(HashedRow *) * nbuckets);
	while (row != NULL)
	{
		HashedRow  *following = row->next;
		HashedRow **bucket = &hashed->buckets[row->hash & hashed->mask];

		row->next = *bucket;
		*bucket = row;
		row = following;
	}
}

MongoHashedScan *
mongo_hashed_scan_create(ForeignScanState *node)
{
	MemoryContext context = AllocSetContextCreate(node->ss.ps.state->es_query_cxt,
												  "mongo_fdw hashed scan",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	MongoHashedScan *hashed = palloc0(sizeof(MongoHashedScan));

	hashed->context = context;
	prepare_keys(hashed, node->fdw_state);
	MemoryContextSwitchTo(old_context);
	if (read_rows(hashed, node))
	{
		fill_buckets(hashed);
		return hashed;
	}
	ExecReScan(outerPlanState(node));
	MemoryContextDelete(context);
	return NULL;
}

void
mongo_hashed_scan_begin(MongoHashedScan *hashed, ForeignScanState *node)
{
	hashed->next = NULL;
	if (hash_keys(hashed, node->ss.ps.ps_ExprContext, false, &hashed->hash))
		hashed->next = hashed->buckets[hashed->hash & hashed->mask];
}

bool
mongo_hashed_scan_next(MongoHashedScan *hashed, TupleTableSlot *slot)
{
	HashedRow  *row = hashed->next;

	while (row != NULL && row->hash != hashed->hash)
		row = row->next;
	hashed->next = row == NULL ? NULL : row->next;
	if (row != NULL)
		ExecStoreMinimalTuple(row->tuple, slot, false);
	return row != NULL;
}
