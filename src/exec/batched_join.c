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
#include "executor/executor.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "port/pg_bitutils.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"

/* ------ A batch of outer rows, and the documents that are joined with it ------ */

/* Outer rows in a batch; fewer in the first of a query that may stop early. */
#define LARGEST_BATCH		2000
#define CAUTIOUS_BATCH		100

/* The same where no index finds the keys, so that each batch looks at all documents. */
#define LARGEST_UNINDEXED	50000

/* Bytes of keys after which a batch is full, whatever it has. */
#define LARGEST_KEYS		(1024 * 1024)

/* Bytes of a key that no document can have, as these have 16 MB at most. */
#define IMPOSSIBLE_KEY		(16 * 1024 * 1024)

/* Bytes that a batch may take in any case, for work_mem may be less than its arrays. */
#define SMALLEST_MEMORY		(1024 * 1024)

/* A value that is asked for. */
typedef struct KeyValue
{
	Datum		value;
	uint32		hash;
	struct KeyValue *next;		/* in the same bucket */
} KeyValue;

/* The distinct values of a key that is asked for. */
typedef struct KeyValues
{
	KeyValue  **buckets;
	Datum	   *values;
	int			nvalues;
} KeyValues;

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
	PHASE_UNMATCHED				/* what is left without one */
} BatchPhase;

typedef struct BatchedJoinState
{
	CustomScanState css;
	const MongoBatchedJoin *join;
	PlanState  *outer;
	PlanState  *inner;
	int			nouter;			/* columns */
	int			ninner;
	bool		keeps_unmatched;	/* outer rows without a document */
	bool		wants_one;		/* document for an outer row */
	ExprState  *clauses;
	MongoHashKeys *keys;
	int			nasked;			/* the first of them, that MongoDB is asked
								 * for */
	TupleDesc	record;			/* of an array for each of these */
	TupleTableSlot *outer_slot; /* of a waiting row */
	TupleTableSlot *pending;	/* the outer plan's row that begins the next
								 * batch, or NULL */
	int			largest_batch;
	uint32		nbuckets;		/* a power of two, of all hash tables */

	MemoryContext batch_context;	/* of all that follows; reset for each
									 * batch */
	int			batch_size;
	OuterRow   *rows;
	int			nrows;
	int			nwaiting;		/* of them, those with keys and no document
								 * yet */
	OuterRow  **buckets;
	KeyValues  *asked;			/* for each key that is asked for */
	Size		asked_size;

	BatchPhase	phase;
	bool		outer_done;
	TupleTableSlot *document;	/* in hand, of the inner side */
	OuterRow   *candidate;		/* to be tried with the document in hand */
	uint32		hash;			/* of its keys */
	int			turn;			/* in PHASE_UNMATCHED */
} BatchedJoinState;

static const CustomExecMethods exec_methods;

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
	state->nrows = 0;
	state->nwaiting = 0;
	state->candidate = NULL;
	state->next_unmatched = 0;
	state->phase = PHASE_FILL;
}

/* begin_join: no outer row has been read. */
static void
begin_join(BatchedJoinState *state)
{
	empty_batch(state);
	state->pending = NULL;
	state->outer_done = false;
	state->batch_size = state->join->all_rows ? state->largest_batch : CAUTIOUS_BATCH;
}

/* begin_batched_join: the callback; both children are begun as well. */
static void
begin_batched_join(CustomScanState *node, EState *estate, int eflags)
{
	BatchedJoinState *state = (BatchedJoinState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	const MongoBatchedJoin *join = mongo_struct_from_list(&mongo_batched_join_type,
														  scan->custom_private);
	Size		row_size = sizeof(OuterRow) + 2 * sizeof(OuterRow *);
	ListCell   *cell;

	state->join = join;
	state->outer = ExecInitNode(linitial(scan->custom_plans), estate, eflags);
	state->inner = ExecInitNode(lsecond(scan->custom_plans), estate, eflags);
	node->custom_ps = list_make2(state->outer, state->inner);
	if (!IsA(state->inner, ForeignScanState))
		elog(ERROR, "inner plan of a batched join is not a foreign scan");

	state->nouter = list_length(state->outer->plan->targetlist);
	state->ninner = list_length(state->inner->plan->targetlist);
	state->keeps_unmatched = join->type == JOIN_LEFT || join->type == JOIN_ANTI;
	state->wants_one = join->type == JOIN_SEMI || join->type == JOIN_ANTI;
	state->clauses = ExecInitQual(list_nth(scan->custom_exprs, MONGO_BATCHED_CLAUSES),
								  (PlanState *) node);
	state->keys = mongo_hash_keys_create(join->keys,
										 ExecInitExprList(list_nth(scan->custom_exprs,
																   MONGO_BATCHED_KEYS),
														  (PlanState *) node), 0);
	foreach(cell, join->keys)
		state->nasked += ((MongoHashKey *) lfirst(cell))->asked;
	row_size += state->nasked * (2 * sizeof(KeyValue *) + sizeof(Datum));
	state->record = CreateTemplateTupleDesc(state->nasked);
	for (int i = 0; i < state->nasked; i++)
		TupleDescInitEntry(state->record, i + 1, NULL,
						   get_array_type(((MongoHashKey *) list_nth(join->keys, i))->type), -1, 0);
	state->record = BlessTupleDesc(state->record);
	state->outer_slot = ExecInitExtraTupleSlot(estate, ExecGetResultType(state->outer),
											   &TTSOpsMinimalTuple);
	/* the arrays leave half of work_mem to the rows */
	state->largest_batch = join->indexed ? LARGEST_BATCH :
		Max(LARGEST_BATCH, Min(LARGEST_UNINDEXED, (Size) work_mem * 1024 / 2 / row_size));
	state->nbuckets = pg_nextpower2_32(state->largest_batch);
	state->batch_context = AllocSetContextCreate(estate->es_query_cxt,
												 "mongo_fdw batched join",
												 ALLOCSET_DEFAULT_SIZES);
	begin_join(state);
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
 * slot the owner of the values.  Gives the context in which clauses see the pair.
 */
static ExprContext *
put_pair(BatchedJoinState *state, TupleTableSlot *outer, TupleTableSlot *inner)
{
	TupleTableSlot *pair = state->css.ss.ss_ScanTupleSlot;
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	ExecClearTuple(pair);
	put_row(pair, outer, 0, state->nouter);
	put_row(pair, inner, state->nouter, state->ninner);
	ResetExprContext(econtext);
	econtext->ecxt_scantuple = ExecStoreVirtualTuple(pair);
	return econtext;
}

/* slot_of: a waiting row's. */
static TupleTableSlot *
slot_of(BatchedJoinState *state, const OuterRow *row)
{
	return ExecStoreMinimalTuple(row->tuple, state->outer_slot, false);
}

/* ------------------------- reading a batch of rows ------------------------- */

/* key_size: bytes of a key of the row in hand. */
static Size
key_size(const MongoKeyState *key)
{
	return datumGetSize(key->value, key->by_value, key->length);
}

/* ask_for_value: of the row in hand, unless it is there. */
static void
ask_for_value(BatchedJoinState *state, KeyValues *asked, const MongoKeyState *key)
{
	KeyValue  **bucket = &asked->buckets[key->hash & (state->nbuckets - 1)];
	KeyValue   *value;

	for (value = *bucket; value != NULL; value = value->next)
	{
		if (value->hash == key->hash &&
			datum_image_eq(value->value, key->value, key->by_value, key->length))
			return;
	}
	value = palloc(sizeof(KeyValue));
	value->value = datumCopy(key->value, key->by_value, key->length);
	value->hash = key->hash;
	value->next = *bucket;
	*bucket = value;
	asked->values[asked->nvalues++] = value->value;
	state->asked_size += key_size(key);
}

/*
 * take_row: into the batch, unless it cannot find anything; false, and the row
 * is left for the next batch, when its keys would make the command too long.
 */
static bool
take_row(BatchedJoinState *state, TupleTableSlot *slot)
{
	OuterRow   *row = &state->rows[state->nrows];
	bool		meets = mongo_hash_keys(state->keys, put_pair(state, slot, NULL), true, &row->hash);
	Size		size = 0;

	for (int i = 0; i < state->nasked && meets; i++)
	{
		size += key_size(&state->keys->keys[i]);
		meets = size < IMPOSSIBLE_KEY;
	}
	if (meets && size >= LARGEST_KEYS && state->asked_size > 0)
	{
		state->pending = slot;
		return false;
	}
	if (!meets && !state->keeps_unmatched)
		return true;

	row->matched = false;
	row->tuple = ExecCopySlotMinimalTuple(slot);
	state->nrows++;
	if (meets)
	{
		OuterRow  **bucket = &state->buckets[row->hash & (state->nbuckets - 1)];

		row->next = *bucket;
		*bucket = row;
		state->nwaiting++;
		for (int i = 0; i < state->nasked; i++)
			ask_for_value(state, &state->asked[i], &state->keys->keys[i]);
	}
	return true;
}

/* next_outer_row: NULL when there are no more. */
static TupleTableSlot *
next_outer_row(BatchedJoinState *state)
{
	TupleTableSlot *slot = state->pending;

	state->pending = NULL;
	if (slot == NULL)
		slot = ExecProcNode(state->outer);
	state->outer_done = TupIsNull(slot);
	return state->outer_done ? NULL : slot;
}

/* is_full: is it time to ask for the documents of this batch? */
static bool
is_full(const BatchedJoinState *state)
{
	return state->nrows >= state->batch_size || state->asked_size >= LARGEST_KEYS ||
		MemoryContextMemAllocated(state->batch_context, false) >=
		Max((Size) work_mem * 1024, SMALLEST_MEMORY);
}

/* fill_batch reads outer rows; false when there are no more. */
static bool
fill_batch(BatchedJoinState *state)
{
	MemoryContext old_context = MemoryContextSwitchTo(state->batch_context);
	TupleTableSlot *slot;
	bool		more;

	state->rows = palloc(sizeof(OuterRow) * state->batch_size);
	state->buckets = palloc0(sizeof(OuterRow *) * state->nbuckets);
	state->asked = palloc0(sizeof(KeyValues) * state->nasked);
	state->asked_size = 0;
	for (int i = 0; i < state->nasked; i++)
	{
		state->asked[i].buckets = palloc0(sizeof(KeyValue *) * state->nbuckets);
		state->asked[i].values = palloc(sizeof(Datum) * state->batch_size);
	}
	MemoryContextSwitchTo(old_context);
	do
	{
		CHECK_FOR_INTERRUPTS();
		slot = next_outer_row(state);
		if (slot == NULL)
			break;
		MemoryContextSwitchTo(state->batch_context);
		more = take_row(state, slot);
		MemoryContextSwitchTo(old_context);
	} while (more && !is_full(state));
	state->batch_size = state->largest_batch;
	return state->nrows > 0;
}

/*
 * ask_for_keys
 *		Begin the inner plan with a record of an array for each key that is asked for,
 *		of its distinct values, which the plan's CaseTestExpr stands for.
 */
static void
ask_for_keys(BatchedJoinState *state)
{
	ExprContext *econtext = state->inner->ps_ExprContext;
	MemoryContext old_context;
	Datum	   *arrays;
	bool	   *nulls;

	ExecReScan(state->inner);
	old_context = MemoryContextSwitchTo(state->batch_context);
	arrays = palloc(sizeof(Datum) * state->nasked);
	nulls = palloc0(sizeof(bool) * state->nasked);
	for (int i = 0; i < state->nasked; i++)
	{
		const MongoKeyState *key = &state->keys->keys[i];

		arrays[i] = PointerGetDatum(construct_array(state->asked[i].values,
													state->asked[i].nvalues, key->type,
													key->length, key->by_value, key->align));
	}
	econtext->caseValue_datum = HeapTupleGetDatum(heap_form_tuple(state->record, arrays, nulls));
	econtext->caseValue_isNull = false;
	MemoryContextSwitchTo(old_context);
}

/* --------------------------------- joining --------------------------------- */

/* next_inner_document: the next that has a key, in hand; false at the end. */
static bool
next_inner_document(BatchedJoinState *state)
{
	do
	{
		state->document = ExecProcNode(state->inner);
		if (TupIsNull(state->document))
			return false;
	} while (!mongo_hash_keys(state->keys, put_pair(state, NULL, state->document), false,
							  &state->hash));
	state->candidate = state->buckets[state->hash & (state->nbuckets - 1)];
	return true;
}

/* is_joined: do the row and the document in hand belong together? */
static bool
is_joined(BatchedJoinState *state, OuterRow *row)
{
	return row->hash == state->hash && !(row->matched && state->wants_one) &&
		ExecQual(state->clauses, put_pair(state, slot_of(state, row), state->document));
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
			if ((state->wants_one && state->nwaiting == 0) || !next_inner_document(state))
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

/* next_unmatched: a row that has found no document, with NULLs beside it. */
static bool
next_unmatched(BatchedJoinState *state)
{
	while (state->keeps_unmatched && state->next_unmatched < state->nrows)
	{
		OuterRow   *row = &state->rows[state->next_unmatched++];

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
				state->phase = PHASE_UNMATCHED;
				if (state->nwaiting > 0)
				{
					ask_for_keys(state);
					state->phase = PHASE_MATCH;
				}
				break;
			case PHASE_MATCH:
				if (next_match(state))
					return true;
				state->phase = PHASE_UNMATCHED;
				break;
			case PHASE_UNMATCHED:
				if (next_unmatched(state))
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
	BatchedJoinState *state = (BatchedJoinState *) node;

	ExecEndNode(state->outer);
	ExecEndNode(state->inner);
}

/* rescan_batched_join: the callback; the inner side is begun anew for each batch anyway. */
static void
rescan_batched_join(CustomScanState *node)
{
	BatchedJoinState *state = (BatchedJoinState *) node;

	begin_join(state);
	if (node->ss.ps.chgParam != NULL)
	{
		UpdateChangedParamSet(state->outer, node->ss.ps.chgParam);
		UpdateChangedParamSet(state->inner, node->ss.ps.chgParam);
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
