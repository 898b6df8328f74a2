/*-------------------------------------------------------------------------
 *
 * batched_join.c
 *		Executes batched joins, which request the documents for many outer rows at a time.
 *
 * Reads a batch of outer rows with their keys, restarts the foreign scan with these keys as its
 * condition, and joins both in PostgreSQL by a hash table; then it returns the outer rows without
 * a document, if the join keeps them.  src/plan/batched_join.c has chosen the keys.
 *
 * Documents come in any order.  If the rows must have the order of the outer side, the documents of
 * a batch are sorted by the number of their outer row, and returned with it.
 *
 * It is read from top to bottom: the batch and its hash tables, its three phases (next_pair()),
 * and the callbacks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "port/pg_bitutils.h"
#include "utils/datum.h"
#include "utils/ruleutils.h"
#include "utils/tuplesort.h"

/* ------ A batch of outer rows, and the documents that are joined with it ------ */

/* Outer rows in a batch; those of a query that may stop early begin with fewer, and double. */
#define LARGEST_BATCH		2000

/* The same if no index finds the keys, so that each batch examines all documents. */
#define LARGEST_UNINDEXED	50000

/* Bytes of a key that no document can contain, since documents have 16 MB at most. */
#define IMPOSSIBLE_KEY		(16 * 1024 * 1024)

/* Bytes that a batch may always use, since its arrays may need more than work_mem. */
#define SMALLEST_MEMORY		(1024 * 1024)

/* A requested value of a key. */
typedef struct KeyValue
{
	Datum		value;
	uint32		hash;
	struct KeyValue *next;		/* in the same bucket */
} KeyValue;

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
	PHASE_MATCH,				/* read the documents, and join them */
	PHASE_ROWS					/* return outer rows without a document, and
								 * in an ordered join all others */
} BatchPhase;

typedef struct BatchedJoinState
{
	CustomScanState css;
	const MongoBatchedJoin *join;
	PlanState  *outer;
	PlanState  *inner;
	int			nouter;			/* columns */
	int			ninner;
	bool		keeps_unmatched;	/* returns outer rows without a document */
	bool		wants_one;		/* only one document for an outer row */
	TupleTableSlot *numbering;	/* an ordered join's document and the index of
								 * its row, before sorting ... */
	TupleTableSlot *numbered;	/* ... and after; else NULL */
	ExprState  *clauses;
	MongoHashKeys *keys;
	TupleTableSlot *outer_slot; /* for a row of the batch */
	TupleTableSlot *pending;	/* outer row of the next batch, or NULL */
	int			largest_batch;
	uint32		nbuckets;		/* of all hash tables; a power of two */

	MemoryContext batch_context;	/* of rows and arrays; reset each time */
	int			batch_size;
	OuterRow   *rows;
	int			nrows;
	int			nwaiting;		/* rows with keys that have no document yet */
	OuterRow  **buckets;
	/* for each key whose values are requested, these without duplicates */
	KeyValue ***asked_buckets;
	Datum	  **asked;
	int		   *nasked;
	Size		asked_size;		/* bytes of all of them */

	BatchPhase	phase;
	bool		outer_done;
	TupleTableSlot *document;	/* the current row of the inner side */
	OuterRow   *candidate;		/* to be tried with the current document */
	uint32		hash;			/* of the current document's keys */
	Tuplesortstate *sort;		/* an ordered join's documents; or NULL */
	bool		returned;		/* the one in 'numbered' has been */
	int			next_row;		/* index of a row, in PHASE_ROWS */
} BatchedJoinState;

static const CustomExecMethods exec_methods;

/* Makes an empty state; a callback of CustomScanMethods. */
static Node *
create_batched_join_state(CustomScan *scan pg_attribute_unused())
{
	BatchedJoinState *state = palloc0(sizeof(BatchedJoinState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	return (Node *) state;
}

/* Removes all rows, for the next batch. */
static void
empty_batch(BatchedJoinState *state)
{
	if (state->sort != NULL)
	{
		ExecClearTuple(state->numbered);
		tuplesort_end(state->sort);
		state->sort = NULL;
	}
	MemoryContextReset(state->batch_context);
	state->nrows = 0;
	state->nwaiting = 0;
	state->candidate = NULL;
	state->next_row = 0;
	state->phase = PHASE_FILL;
}

/* Resets the state to that before the first outer row. */
static void
begin_join(BatchedJoinState *state)
{
	empty_batch(state);
	state->pending = NULL;
	state->outer_done = false;
	state->batch_size = state->join->first_batch == 0 ? state->largest_batch : state->join->first_batch;
}

/* Makes the slots for a document and the index of its outer row. */
static void
create_numbered_slots(BatchedJoinState *state, EState *estate)
{
	TupleDesc	description = CreateTemplateTupleDesc(state->ninner + 1);

	for (int i = 1; i <= state->ninner; i++)
		TupleDescCopyEntry(description, i, ExecGetResultType(state->inner), i);
	TupleDescInitEntry(description, state->ninner + 1, "row", INT4OID, -1, 0);
	TupleDescFinalize(description);
	state->numbering = ExecInitExtraTupleSlot(estate, description, &TTSOpsVirtual);
	state->numbered = ExecInitExtraTupleSlot(estate, description, &TTSOpsMinimalTuple);
}

/* Begins the join and both children; a callback of CustomExecMethods. */
static void
begin_batched_join(CustomScanState *node, EState *estate, int eflags)
{
	BatchedJoinState *state = (BatchedJoinState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	const MongoBatchedJoin *join = mongo_struct_from_list(&mongo_batched_join_type,
														  scan->custom_private);
	Size		row_size = sizeof(OuterRow) + 2 * sizeof(OuterRow *);

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
	if (join->ordered)
		create_numbered_slots(state, estate);
	state->clauses = ExecInitQual(list_nth(scan->custom_exprs, MONGO_BATCHED_CLAUSES),
								  (PlanState *) node);
	state->keys = mongo_hash_keys_create(join->keys,
										 ExecInitExprList(list_nth(scan->custom_exprs,
																   MONGO_BATCHED_KEYS),
														  (PlanState *) node), 0);
	row_size += state->keys->nasked * (2 * sizeof(KeyValue *) + sizeof(Datum));
	state->outer_slot = ExecInitExtraTupleSlot(estate, ExecGetResultType(state->outer),
											   &TTSOpsMinimalTuple);
	/* the arrays use at most half of work_mem; the rest is for the rows */
	state->largest_batch = join->indexed ? LARGEST_BATCH :
		Max(LARGEST_BATCH, Min(LARGEST_UNINDEXED, (Size) work_mem * 1024 / 2 / row_size));
	state->nbuckets = pg_nextpower2_32(state->largest_batch);
	state->batch_context = AllocSetContextCreate(estate->es_query_cxt,
												 "mongo_fdw batched join",
												 ALLOCSET_DEFAULT_SIZES);
	begin_join(state);
}

/* Puts a row of one side into the pair, or NULLs if it is NULL. */
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
 * Puts both sides into the pair's slot, and returns the context for evaluating clauses on the
 * pair.  Always sets both sides, since the last pair's receiver may have materialized it.
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

static TupleTableSlot *
slot_of(BatchedJoinState *state, const OuterRow *row)
{
	return ExecStoreMinimalTuple(row->tuple, state->outer_slot, false);
}

/* ------------------------- reading a batch of rows ------------------------- */

/* Adds the last value of a key to the requested values, unless it is there. */
static void
ask_for_value(BatchedJoinState *state, int number)
{
	const MongoKeyState *key = &state->keys->keys[number];
	KeyValue  **bucket = &state->asked_buckets[number][key->hash & (state->nbuckets - 1)];
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
	state->asked[number][state->nasked[number]++] = value->value;
	state->asked_size += datumGetSize(key->value, key->by_value, key->length);
}

/*
 * Adds an outer row to the batch, unless the join does not need it.  If its keys would make the
 * command too long, leaves it for the next batch and returns false.
 */
static bool
take_row(BatchedJoinState *state, TupleTableSlot *slot)
{
	OuterRow   *row = &state->rows[state->nrows];
	bool		meets = mongo_hash_keys(state->keys, put_pair(state, slot, NULL), true, &row->hash);
	Size		size = meets ? mongo_asked_size(state->keys) : 0;

	meets &= size < IMPOSSIBLE_KEY;
	if (meets && size >= MONGO_LARGEST_KEYS && state->asked_size > 0)
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
		for (int i = 0; i < state->keys->nasked; i++)
			ask_for_value(state, i);
	}
	return true;
}

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

static bool
is_full(const BatchedJoinState *state)
{
	return state->nrows >= state->batch_size || state->asked_size >= MONGO_LARGEST_KEYS ||
		MemoryContextMemAllocated(state->batch_context, false) >=
		Max((Size) work_mem * 1024, SMALLEST_MEMORY);
}

/* Reads outer rows into the batch; returns false if it stays empty. */
static bool
fill_batch(BatchedJoinState *state)
{
	MemoryContext old_context = MemoryContextSwitchTo(state->batch_context);
	TupleTableSlot *slot;
	bool		more;

	state->rows = palloc(sizeof(OuterRow) * state->batch_size);
	state->buckets = palloc0(sizeof(OuterRow *) * state->nbuckets);
	state->asked_buckets = palloc(sizeof(KeyValue **) * state->keys->nasked);
	state->asked = palloc(sizeof(Datum *) * state->keys->nasked);
	state->nasked = palloc0(sizeof(int) * state->keys->nasked);
	state->asked_size = 0;
	for (int i = 0; i < state->keys->nasked; i++)
	{
		state->asked_buckets[i] = palloc0(sizeof(KeyValue *) * state->nbuckets);
		state->asked[i] = palloc(sizeof(Datum) * state->batch_size);
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
	/* without an index, each batch examines all documents */
	state->batch_size = state->join->indexed ? Min(2 * state->batch_size, state->largest_batch) :
		state->largest_batch;
	return state->nrows > 0;
}

/* Restarts the inner plan, with the requested values. */
static void
ask_for_keys(BatchedJoinState *state)
{
	MemoryContext old_context;

	ExecReScan(state->inner);
	old_context = MemoryContextSwitchTo(state->batch_context);
	mongo_ask_for_keys(state->keys, state->asked, state->nasked, state->inner->ps_ExprContext);
	MemoryContextSwitchTo(old_context);
}

/* --------------------------------- joining --------------------------------- */

/* Reads the next document whose keys are not NULL; returns false at the end. */
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

/* Puts the next joined pair into the slot, and returns its row; NULL if there is none. */
static const OuterRow *
next_match(BatchedJoinState *state)
{
	for (;;)
	{
		OuterRow   *row = state->candidate;

		CHECK_FOR_INTERRUPTS();
		if (row == NULL)
		{
			if ((state->wants_one && state->nwaiting == 0) || !next_inner_document(state))
				return NULL;
			continue;
		}
		state->candidate = row->next;
		if (row->hash != state->hash || (row->matched && state->wants_one) ||
			!ExecQual(state->clauses, put_pair(state, slot_of(state, row), state->document)))
			continue;
		if (!row->matched)
			state->nwaiting--;
		row->matched = true;
		if (state->join->type != JOIN_ANTI)
			return row;
	}
}

/* Joins all documents of an ordered join's batch, and sorts them by row. */
static void
sort_matches(BatchedJoinState *state)
{
	AttrNumber	index = state->ninner + 1;
	Oid			operator = Int4LessOperator;
	Oid			collation = InvalidOid;
	bool		nulls_first = false;
	MemoryContext old_context = MemoryContextSwitchTo(state->batch_context);
	const OuterRow *row;

	state->sort = tuplesort_begin_heap(state->numbered->tts_tupleDescriptor, 1, &index, &operator,
									   &collation, &nulls_first, work_mem, NULL, TUPLESORT_NONE);
	MemoryContextSwitchTo(old_context);
	while ((row = next_match(state)) != NULL)
	{
		TupleTableSlot *slot = state->numbering;

		ExecClearTuple(slot);
		put_row(slot, state->document, 0, state->ninner);
		slot->tts_values[state->ninner] = Int32GetDatum((int32) (row - state->rows));
		slot->tts_isnull[state->ninner] = false;
		tuplesort_puttupleslot(state->sort, ExecStoreVirtualTuple(slot));
	}
	tuplesort_performsort(state->sort);
	state->returned = true;
}

/* Returns whether a sorted document is joined with this row, and puts it into 'numbered'. */
static bool
next_sorted(BatchedJoinState *state, int index)
{
	bool		isnull;

	if (state->returned)
		(void) tuplesort_gettupleslot(state->sort, true, false, state->numbered, NULL);
	state->returned = !TupIsNull(state->numbered) &&
		DatumGetInt32(slot_getattr(state->numbered, state->ninner + 1, &isnull)) == index;
	return state->returned;
}

/*
 * Puts the next row without a document, or in an ordered join the next pair, into the slot; returns
 * false at the end of the batch.
 */
static bool
return_row(BatchedJoinState *state)
{
	for (; state->next_row < state->nrows; state->next_row++)
	{
		const OuterRow *row = &state->rows[state->next_row];

		if (row->matched && state->sort != NULL)
		{
			if (!next_sorted(state, state->next_row))
				continue;
			put_pair(state, slot_of(state, row), state->numbered);
			return true;
		}
		if (row->matched || !state->keeps_unmatched)
			continue;
		state->next_row++;
		put_pair(state, slot_of(state, row), NULL);
		return true;
	}
	return false;
}

/*
 * Puts the next pair into the slot, before the node's quals are tested; returns false at the end.
 */
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
				state->phase = PHASE_ROWS;
				if (state->nwaiting > 0)
				{
					ask_for_keys(state);
					state->phase = PHASE_MATCH;
				}
				break;
			case PHASE_MATCH:
				if (state->join->ordered)
					sort_matches(state);
				else if (next_match(state) != NULL)
					return true;
				state->phase = PHASE_ROWS;
				break;
			case PHASE_ROWS:
				if (return_row(state))
					return true;
				empty_batch(state);
				break;
		}
	}
}

/* Returns the next row that passes the node's quals. */
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

	empty_batch(state);
	ExecEndNode(state->outer);
	ExecEndNode(state->inner);
}

/* Restarts the outer side; each batch restarts the inner side. */
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
