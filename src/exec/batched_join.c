/*-------------------------------------------------------------------------
 *
 * batched_join.c
 *		Executing nested loops that ask for many rows' keys at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"
#include "plan.h"

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "commands/explain.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"

/*-------------------------------------------------------------------------
 * The keys of a batch of outer rows: their hash values, and what is asked for.
 *-------------------------------------------------------------------------
 */

/* Bytes of a key that no document can have, as these have 16 MB at most. */
#define IMPOSSIBLE_KEY		(16 * 1024 * 1024)

#define FEWEST_KEY_BUCKETS	1024	/* a power of two */

/* A value that is asked for. */
typedef struct KeyValue
{
	Datum		value;
	uint32		hash;
	struct KeyValue *next;		/* in the same bucket */
} KeyValue;

typedef struct KeyColumn
{
	const MongoBatchedColumn *plan;
	ExprState  *outer;
	ExprState  *inner;
	FmgrInfo	outer_hash;
	FmgrInfo	inner_hash;
	int16		length;
	bool		by_value;
	char		align;

	Datum		value;			/* in hand, of an outer row */
	uint32		hash;
	KeyValue  **buckets;		/* of a batch */
	Datum	   *values;
	int			nvalues;
} KeyColumn;

typedef struct KeyBatch
{
	KeyColumn  *columns;		/* those that are asked for come first */
	int			ncolumns;
	int			nasked;
	TupleDesc	record;			/* of the arrays */
	MemoryContext context;		/* of the batch */
	uint32		mask;
	Size		size;			/* of the keys that have been added */
	Size		size_in_hand;	/* of those that were evaluated last */
} KeyBatch;

/* create_keys: for a join whose keys are these expressions over a pair of its rows. */
static KeyBatch *
create_keys(const MongoBatchedJoin *join, List *outer, List *inner,
			PlanState *parent)
{
	KeyBatch   *batch = palloc0(sizeof(KeyBatch));

	batch->ncolumns = list_length(join->columns);
	batch->columns = palloc0(sizeof(KeyColumn) * batch->ncolumns);
	for (int i = 0; i < batch->ncolumns; i++)
	{
		KeyColumn  *column = &batch->columns[i];

		column->plan = list_nth(join->columns, i);
		column->outer = ExecInitExpr(list_nth(outer, i), parent);
		column->inner = ExecInitExpr(list_nth(inner, i), parent);
		fmgr_info(column->plan->outer_hash, &column->outer_hash);
		fmgr_info(column->plan->inner_hash, &column->inner_hash);
		get_typlenbyvalalign(column->plan->type, &column->length, &column->by_value,
							 &column->align);
		batch->nasked += column->plan->asked;
	}
	batch->record = CreateTemplateTupleDesc(batch->nasked);
	for (int i = 0; i < batch->nasked; i++)
		TupleDescInitEntry(batch->record, i + 1, NULL,
						   get_array_type(batch->columns[i].plan->type), -1, 0);
	batch->record = BlessTupleDesc(batch->record);
	return batch;
}

/* begin_keys: forget all, for a batch of so many rows at most, in 'context'. */
static void
begin_keys(KeyBatch *batch, MemoryContext context, int rows)
{
	uint32		nbuckets = FEWEST_KEY_BUCKETS;

	while (nbuckets < (uint32) rows)
		nbuckets *= 2;
	batch->mask = nbuckets - 1;
	batch->context = context;
	batch->size = 0;
	for (int i = 0; i < batch->nasked; i++)
	{
		KeyColumn  *column = &batch->columns[i];

		column->buckets = MemoryContextAllocZero(context, sizeof(KeyValue *) * nbuckets);
		column->values = MemoryContextAlloc(context, sizeof(Datum) * rows);
		column->nvalues = 0;
	}
}

/* evaluate_outer: the key of an outer row, whole; false for one that meets nothing. */
static bool
evaluate_outer(KeyBatch *batch, KeyColumn *column, ExprContext *econtext)
{
	bool		isnull;
	Size		size;

	column->value = ExecEvalExpr(column->outer, econtext, &isnull);
	if (isnull)
		return false;
	if (column->length == -1)
		column->value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(column->value));
	size = datumGetSize(column->value, column->by_value, column->length);
	if (size >= IMPOSSIBLE_KEY)
		return false;
	if (column->plan->asked)
		batch->size_in_hand += size;
	column->hash = DatumGetUInt32(FunctionCall1Coll(&column->outer_hash,
													column->plan->collation, column->value));
	return true;
}

static bool
evaluate_inner(KeyColumn *column, ExprContext *econtext)
{
	bool		isnull;
	Datum		value = ExecEvalExpr(column->inner, econtext, &isnull);

	if (isnull)
		return false;
	column->hash = DatumGetUInt32(FunctionCall1Coll(&column->inner_hash,
													column->plan->collation, value));
	return true;
}

/*
 * evaluate_side: the keys of one side of the pair, in the per-tuple memory, and the hash value
 * of all; false when the row meets no other, since one is NULL or too large for a document.
 */
static bool
evaluate_side(KeyBatch *batch, ExprContext *econtext, bool is_outer,
			  uint32 *hash)
{
	/* hash functions may detoast, too */
	MemoryContext old_context = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	bool		meets = true;

	*hash = 0;
	if (is_outer)
		batch->size_in_hand = 0;
	for (int i = 0; i < batch->ncolumns && meets; i++)
	{
		KeyColumn  *column = &batch->columns[i];

		meets = is_outer ? evaluate_outer(batch, column, econtext) :
			evaluate_inner(column, econtext);
		if (meets)
			*hash = hash_combine(*hash, column->hash);
	}
	MemoryContextSwitchTo(old_context);
	return meets;
}

/* ask_for_value: into the list, unless it is there. */
static void
ask_for_value(KeyBatch *batch, KeyColumn *column)
{
	KeyValue  **bucket = &column->buckets[column->hash & batch->mask];
	KeyValue   *value;

	for (value = *bucket; value != NULL; value = value->next)
	{
		if (value->hash == column->hash &&
			datum_image_eq(value->value, column->value, column->by_value, column->length))
			return;
	}
	value = palloc(sizeof(KeyValue));
	value->value = datumCopy(column->value, column->by_value, column->length);
	value->hash = column->hash;
	value->next = *bucket;
	*bucket = value;
	column->values[column->nvalues++] = value->value;
	batch->size += datumGetSize(value->value, column->by_value, column->length);
}

/* add_outer_keys: ask also for the outer keys that were evaluated last. */
static void
add_outer_keys(KeyBatch *batch)
{
	MemoryContext old_context = MemoryContextSwitchTo(batch->context);

	for (int i = 0; i < batch->nasked; i++)
		ask_for_value(batch, &batch->columns[i]);
	MemoryContextSwitchTo(old_context);
}

/*
 * keys_record: of an array for each key that is asked for, of its distinct values, which
 * the CaseTestExpr of the inner plan stands for.
 */
static Datum
keys_record(KeyBatch *batch)
{
	MemoryContext old_context = MemoryContextSwitchTo(batch->context);
	Datum	   *arrays = palloc(sizeof(Datum) * batch->nasked);
	bool	   *nulls = palloc0(sizeof(bool) * batch->nasked);
	Datum		record;

	for (int i = 0; i < batch->nasked; i++)
	{
		const KeyColumn *column = &batch->columns[i];

		arrays[i] = PointerGetDatum(construct_array(column->values, column->nvalues,
													column->plan->type, column->length,
													column->by_value, column->align));
	}
	record = HeapTupleGetDatum(heap_form_tuple(batch->record, arrays, nulls));
	MemoryContextSwitchTo(old_context);
	return record;
}

/* ------ A batch of outer rows, and the documents that are joined with it ------ */

/* Outer rows in a batch; fewer in the first of a query that may stop early. */
#define LARGEST_BATCH		2000
#define CAUTIOUS_BATCH		100

/* Outer rows that wait for all documents, at most, as an allocation has its limit. */
#define LARGEST_WAIT		(4 * 1024 * 1024)

/* Bytes of keys after which a batch is full, whatever it has. */
#define LARGEST_KEYS		(1024 * 1024)

/* Bytes that a batch may take in any case, for work_mem may be less than its arrays. */
#define SMALLEST_MEMORY		(1024 * 1024)

#define FEWEST_BUCKETS		4096	/* a power of two */

/* A row of the outer side, waiting for its documents. */
typedef struct OuterRow
{
	MinimalTuple tuple;
	uint32		hash;			/* of its keys */
	bool		matched;
	struct OuterRow *next;		/* in the same bucket */
} OuterRow;

typedef enum BatchPhase
{
	PHASE_FILL,					/* read the next outer rows */
	PHASE_MATCH,				/* the documents come */
	PHASE_LONELY				/* what is left without one */
} BatchPhase;

typedef struct BatchedJoinState
{
	CustomScanState css;
	const MongoBatchedJoin *join;
	PlanState  *outer;
	PlanState  *inner;			/* in use: by keys, or of all documents */
	PlanState  *whole;			/* the latter; NULL: an index finds keys */
	bool		asked;			/* for keys without an index */
	int			nouter;			/* columns */
	int			ninner;
	ExprState  *clauses;
	KeyBatch   *keys;
	TupleTableSlot *outer_slot; /* of a waiting row */
	TupleTableSlot *carried;	/* a row read for this batch, to begin the
								 * next */

	MemoryContext batch_context;	/* of all that follows; reset for each
									 * batch */
	int			batch_size;
	uint32		bucket_mask;
	OuterRow   *rows;
	int			nrows;
	int			nwaiting;		/* of them, those with keys and no document
								 * yet */
	OuterRow  **buckets;

	BatchPhase	phase;
	bool		outer_done;
	TupleTableSlot *document;	/* in hand, of the inner side */
	OuterRow   *candidate;		/* to be tried with the document in hand */
	uint32		hash;			/* of its keys */
	int			turn;			/* in PHASE_LONELY */
} BatchedJoinState;

static const CustomExecMethods exec_methods;

/* keeps_lonely: does a row come out that has found no document? */
static bool
keeps_lonely(const BatchedJoinState *state)
{
	return state->join->type == JOIN_LEFT || state->join->type == JOIN_ANTI;
}

/* wants_one: is a row done when it has found a document? */
static bool
wants_one(const BatchedJoinState *state)
{
	return state->join->type == JOIN_SEMI || state->join->type == JOIN_ANTI;
}

/* create_batched_join_state: the callback of CustomScanMethods. */
static Node *
create_batched_join_state(CustomScan *scan pg_attribute_unused())
{
	BatchedJoinState *state = palloc0(sizeof(BatchedJoinState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	return (Node *) state;
}

/* empty_batch: forget all rows, for the next batch. */
static void
empty_batch(BatchedJoinState *state)
{
	MemoryContextReset(state->batch_context);
	state->rows = NULL;
	state->nrows = 0;
	state->nwaiting = 0;
	state->candidate = NULL;
	state->turn = 0;
	state->phase = PHASE_FILL;
}

/* first_batch_rows: fewer if the query may stop early, and an index finds them. */
static int
first_batch_rows(const BatchedJoinState *state)
{
	return state->join->all_rows || state->whole != NULL ? LARGEST_BATCH : CAUTIOUS_BATCH;
}

/*
 * choose_batch: how the next one is joined.  To look for keys in all documents pays
 * once; then all are fetched, and as many rows wait for them as work_mem has room for.
 */
static void
choose_batch(BatchedJoinState *state)
{
	uint32		nbuckets = FEWEST_BUCKETS;

	if (state->asked)
	{
		state->inner = state->whole;
		state->batch_size = Max(LARGEST_BATCH,
								Min(LARGEST_WAIT, (Size) work_mem * 1024 / 4 / sizeof(OuterRow)));
	}
	while (nbuckets < (uint32) state->batch_size)
		nbuckets *= 2;
	state->bucket_mask = nbuckets - 1;
}

/* begin_batched_join: the callback; both children are begun as well. */
static void
begin_batched_join(CustomScanState *node, EState *estate, int eflags)
{
	BatchedJoinState *state = (BatchedJoinState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	TupleDesc	outer_tuple;

	state->join = mongo_struct_from_list(&mongo_batched_join_type, scan->custom_private);
	state->outer = ExecInitNode(linitial(scan->custom_plans), estate, eflags);
	state->inner = ExecInitNode(lsecond(scan->custom_plans), estate, eflags);
	node->custom_ps = list_make2(state->outer, state->inner);
	if (list_length(scan->custom_plans) > 2)
	{
		state->whole = ExecInitNode(lthird(scan->custom_plans), estate, eflags);
		node->custom_ps = lappend(node->custom_ps, state->whole);
	}
	if (!IsA(state->inner, ForeignScanState))
		elog(ERROR, "inner plan of a batched join is not a foreign scan");

	state->nouter = list_length(state->outer->plan->targetlist);
	state->ninner = list_length(state->inner->plan->targetlist);
	state->clauses = ExecInitQual(list_nth(scan->custom_exprs, MONGO_BATCHED_CLAUSES),
								  (PlanState *) node);
	state->keys = create_keys(state->join,
							  list_nth(scan->custom_exprs, MONGO_BATCHED_OUTER_KEYS),
							  list_nth(scan->custom_exprs, MONGO_BATCHED_INNER_KEYS),
							  (PlanState *) node);
	outer_tuple = ExecGetResultType(state->outer);
	state->outer_slot = ExecInitExtraTupleSlot(estate, outer_tuple, &TTSOpsMinimalTuple);
	state->carried = ExecInitExtraTupleSlot(estate, outer_tuple, &TTSOpsMinimalTuple);
	state->batch_context = AllocSetContextCreate(estate->es_query_cxt,
												 "mongo_fdw batched join",
												 ALLOCSET_DEFAULT_SIZES);
	state->batch_size = first_batch_rows(state);
	empty_batch(state);
}

/* put_row: a row of one side into the pair, or NULLs in its place. */
static void
put_row(TupleTableSlot *pair, TupleTableSlot *row, int first, int count)
{
	if (row == NULL)
	{
		memset(pair->tts_isnull + first, true, count);
		return;
	}
	slot_getallattrs(row);
	memcpy(pair->tts_values + first, row->tts_values, count * sizeof(Datum));
	memcpy(pair->tts_isnull + first, row->tts_isnull, count * sizeof(bool));
}

/*
 * put_pair: both sides anew, for whoever got the last pair may have made its
 * slot the owner of the values.
 */
static void
put_pair(BatchedJoinState *state, TupleTableSlot *outer, TupleTableSlot *inner)
{
	TupleTableSlot *pair = state->css.ss.ss_ScanTupleSlot;

	ExecClearTuple(pair);
	put_row(pair, outer, 0, state->nouter);
	put_row(pair, inner, state->nouter, state->ninner);
	ExecStoreVirtualTuple(pair);
}

/* slot_of: a waiting row's. */
static TupleTableSlot *
slot_of(BatchedJoinState *state, const OuterRow *row)
{
	return ExecStoreMinimalTuple(row->tuple, state->outer_slot, false);
}

/* evaluate_keys: of one side of the pair in hand; false when it meets no row. */
static bool
evaluate_keys(BatchedJoinState *state, bool is_outer, uint32 *hash)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	ResetExprContext(econtext);
	econtext->ecxt_scantuple = state->css.ss.ss_ScanTupleSlot;
	return evaluate_side(state->keys, econtext, is_outer, hash);
}

/* finds_by_keys: is MongoDB asked for the keys of a batch, and not for all documents? */
static bool
finds_by_keys(const BatchedJoinState *state)
{
	return state->inner != state->whole;
}

/* note_keys: put the row where documents look for it, and ask for its keys. */
static void
note_keys(BatchedJoinState *state, OuterRow *row, uint32 hash)
{
	OuterRow  **bucket = &state->buckets[hash & state->bucket_mask];

	if (finds_by_keys(state))
		add_outer_keys(state->keys);
	row->hash = hash;
	row->next = *bucket;
	*bucket = row;
	state->nwaiting++;
}

/* next_outer_row: into the pair as well; NULL when there are no more. */
static TupleTableSlot *
next_outer_row(BatchedJoinState *state)
{
	TupleTableSlot *slot = state->carried;

	if (TupIsNull(slot))
		slot = ExecProcNode(state->outer);
	if (TupIsNull(slot))
	{
		state->outer_done = true;
		return NULL;
	}
	put_pair(state, slot, NULL);
	return slot;
}

/*
 * take_row: into the batch, unless it cannot find anything; false, and the row
 * is left for the next batch, when its keys would make the command too long.
 */
static bool
take_row(BatchedJoinState *state, TupleTableSlot *slot)
{
	OuterRow   *row = &state->rows[state->nrows];
	uint32		hash;
	bool		meets = evaluate_keys(state, true, &hash);

	if (meets && finds_by_keys(state) &&
		state->keys->size_in_hand >= LARGEST_KEYS &&
		state->keys->size > 0)
	{
		if (slot != state->carried)
			ExecCopySlot(state->carried, slot);
		return false;
	}

	if (meets || keeps_lonely(state))
	{
		MemoryContext old_context = MemoryContextSwitchTo(state->batch_context);

		row->matched = false;
		row->tuple = ExecCopySlotMinimalTuple(slot);
		MemoryContextSwitchTo(old_context);
		if (meets)
			note_keys(state, row, hash);
		state->nrows++;
	}
	if (slot == state->carried)
		ExecClearTuple(slot);
	return true;
}

/* is_full: is it time to ask for the documents of this batch? */
static bool
is_full(const BatchedJoinState *state)
{
	return state->nrows >= state->batch_size ||
		(finds_by_keys(state) && state->keys->size >= LARGEST_KEYS) ||
		MemoryContextMemAllocated(state->batch_context, false) >=
		Max((Size) work_mem * 1024, SMALLEST_MEMORY);
}

/* fill_batch reads outer rows; false when there are no more. */
static bool
fill_batch(BatchedJoinState *state)
{
	TupleTableSlot *slot;

	choose_batch(state);
	state->rows = MemoryContextAlloc(state->batch_context,
									 sizeof(OuterRow) * state->batch_size);
	state->buckets = MemoryContextAllocZero(state->batch_context,
											sizeof(OuterRow *) * (state->bucket_mask + 1));
	if (finds_by_keys(state))
		begin_keys(state->keys, state->batch_context, state->batch_size);
	do
	{
		CHECK_FOR_INTERRUPTS();
		slot = next_outer_row(state);
	} while (slot != NULL && take_row(state, slot) && !is_full(state));
	state->batch_size = LARGEST_BATCH;
	return state->nrows > 0;
}

/* ask_for_keys: those of the batch. */
static void
ask_for_keys(BatchedJoinState *state)
{
	ExprContext *econtext = state->inner->ps_ExprContext;

	ExecReScan(state->inner);
	econtext->caseValue_datum = keys_record(state->keys);
	econtext->caseValue_isNull = false;
	state->asked = state->whole != NULL;
}

/* start_inner_scan: for the keys of the batch, or of all documents. */
static void
start_inner_scan(BatchedJoinState *state)
{
	if (finds_by_keys(state))
	{
		ask_for_keys(state);
		return;
	}
	/* the next batch will want them as well */
	if (!state->outer_done)
		mongo_scan_keep_results((ForeignScanState *) state->whole);
	ExecReScan(state->whole);
}

/* next_inner_document: the next that has a key, in hand; false at the end. */
static bool
next_inner_document(BatchedJoinState *state)
{
	for (;;)
	{
		TupleTableSlot *slot = ExecProcNode(state->inner);

		if (TupIsNull(slot))
			return false;
		put_pair(state, NULL, slot);
		if (!evaluate_keys(state, false, &state->hash))
			continue;
		state->document = slot;
		state->candidate = state->buckets[state->hash & state->bucket_mask];
		return true;
	}
}

/* is_joined: do the pair's rows belong together? */
static bool
is_joined(BatchedJoinState *state, OuterRow *row)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	if (row->hash != state->hash)
		return false;
	if (row->matched && wants_one(state))
		return false;
	put_pair(state, slot_of(state, row), state->document);
	ResetExprContext(econtext);
	econtext->ecxt_scantuple = state->css.ss.ss_ScanTupleSlot;
	return ExecQual(state->clauses, econtext);
}

/* next_match puts the next joined pair together; false when there is none. */
static bool
next_match(BatchedJoinState *state)
{
	for (;;)
	{
		OuterRow   *row = state->candidate;

		CHECK_FOR_INTERRUPTS();
		if (row == NULL)
		{
			if ((wants_one(state) && state->nwaiting == 0) || !next_inner_document(state))
				return false;
			continue;
		}
		state->candidate = row->next;
		if (!is_joined(state, row))
			continue;
		if (!row->matched)
			state->nwaiting--;
		row->matched = true;
		if (state->join->type != JOIN_ANTI)
			return true;
	}
}

/* next_lonely: a row that has found no document, with NULLs beside it. */
static bool
next_lonely(BatchedJoinState *state)
{
	if (!keeps_lonely(state))
		return false;
	while (state->turn < state->nrows)
	{
		OuterRow   *row = &state->rows[state->turn++];

		if (row->matched)
			continue;
		put_pair(state, slot_of(state, row), NULL);
		return true;
	}
	return false;
}

/* next_pair: whatever clauses above the join say about it */
static bool
next_pair(BatchedJoinState *state)
{
	for (;;)
	{
		switch (state->phase)
		{
			case PHASE_FILL:
				if (state->outer_done || !fill_batch(state))
					return false;
				state->phase = PHASE_LONELY;
				if (state->nwaiting > 0)
				{
					start_inner_scan(state);
					state->phase = PHASE_MATCH;
				}
				break;
			case PHASE_MATCH:
				if (next_match(state))
					return true;
				state->phase = PHASE_LONELY;
				break;
			case PHASE_LONELY:
				if (next_lonely(state))
					return true;
				empty_batch(state);
				break;
		}
	}
}

/*
 * execute_batched_join: the callback: the next row that the clauses above the join let through.
 */
static TupleTableSlot *
execute_batched_join(CustomScanState *node)
{
	BatchedJoinState *state = (BatchedJoinState *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;

	while (next_pair(state))
	{
		ResetExprContext(econtext);
		econtext->ecxt_scantuple = node->ss.ss_ScanTupleSlot;
		if (!ExecQual(node->ss.ps.qual, econtext))
		{
			InstrCountFiltered1(node, 1);
			continue;
		}
		if (node->ss.ps.ps_ProjInfo != NULL)
			return ExecProject(node->ss.ps.ps_ProjInfo);
		return node->ss.ss_ScanTupleSlot;
	}
	return ExecClearTuple(node->ss.ps.ps_ResultTupleSlot);
}

static void
end_batched_join(CustomScanState *node)
{
	ListCell   *cell;

	foreach(cell, node->custom_ps)
		ExecEndNode(lfirst(cell));
}

/* rescan_batched_join: the callback; the inner side is begun anew for each batch anyway. */
static void
rescan_batched_join(CustomScanState *node)
{
	BatchedJoinState *state = (BatchedJoinState *) node;

	empty_batch(state);
	ExecClearTuple(state->carried);
	state->outer_done = false;
	state->batch_size = first_batch_rows(state);
	if (node->ss.ps.chgParam != NULL)
	{
		ListCell   *cell;

		foreach(cell, node->custom_ps)
			UpdateChangedParamSet(lfirst(cell), node->ss.ps.chgParam);
	}
	/* other documents, which pays once more; those that were fetched are kept */
	if (state->whole != NULL && state->whole->chgParam != NULL)
	{
		state->asked = false;
		state->inner = lsecond(node->custom_ps);
	}
	if (state->outer->chgParam == NULL)
		ExecReScan(state->outer);
}

static void
explain_batched_join(CustomScanState *node, List *ancestors, ExplainState *es)
{
	BatchedJoinState *state = (BatchedJoinState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	List	   *clauses = list_nth(scan->custom_exprs, MONGO_BATCHED_CLAUSES);
	List	   *context;
	static const char *const names[] = {
		[JOIN_INNER] = "Inner",
		[JOIN_LEFT] = "Left",
		[JOIN_SEMI] = "Semi",
		[JOIN_ANTI] = "Anti",
	};

	ExplainPropertyText("Join Type", names[state->join->type], es);
	context = set_deparse_context_plan(es->deparse_cxt, (Plan *) scan, ancestors);
	ExplainPropertyText("Join Cond",
						deparse_expression((Node *) make_ands_explicit(clauses),
										   context, true, false), es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "MongoDB Batched Join",
	.BeginCustomScan = begin_batched_join,
	.ExecCustomScan = execute_batched_join,
	.EndCustomScan = end_batched_join,
	.ReScanCustomScan = rescan_batched_join,
	.ExplainCustomScan = explain_batched_join,
};

const CustomScanMethods mongo_batched_join_methods = {
	.CustomName = "MongoDB Batched Join",
	.CreateCustomScanState = create_batched_join_state,
};
