/*-------------------------------------------------------------------------
 *
 * change_over.c
 *		A scan in a correlated sub-select that goes over to its second plan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "change_over.h"

#include "hashed_scan.h"
#include "scan.h"

#include "executor/executor.h"
#include "miscadmin.h"

/* No scan goes over before so many values were asked for. */
#define FEWEST_VALUES	3

/*
 * If the whole statement is said to cost so many times what all documents do, they may
 * be fetched at once: at worst, little is lost.
 */
#define FAR_DEARER		4

/*
 * How many outer rows there are is not known to the plan of a sub-select.  So as much
 * is spent on single values as on all documents, before these are fetched: twice what
 * the better way would have taken at worst.  But if many are expected, the statement's
 * own cost, which is in the plan, tells.
 */
void
mongo_change_over_init(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	const Plan *plan = node->ss.ps.plan;
	const PlannedStmt *statement = node->ss.ps.state->es_plannedstmt;
	int			after = state->plan->change_after;

	if (after == 0)
		return;
	if (after * plan->total_cost * FAR_DEARER < statement->planTree->total_cost)
		after = FEWEST_VALUES;
	state->change_after = Max(after, FEWEST_VALUES);
}

/* hashing_scan: the scan with the hash table; the second plan has one at its bottom. */
static ForeignScanState *
hashing_scan(ForeignScanState *node)
{
	const MongoScanState *state = node->fdw_state;
	PlanState  *below = (PlanState *) node;

	if (state->plan->hash_functions != NIL)
		return node;
	do
		below = outerPlanState(below);
	while (!IsA(below, ForeignScanState));
	return (ForeignScanState *) below;
}

/* make_hash: of all documents; false when that is given up. */
static bool
make_hash(ForeignScanState *node)
{
	ForeignScanState *scan = hashing_scan(node);
	MongoScanState *state = scan->fdw_state;

	state->hashed = mongo_hashed_scan_create(scan);
	if (state->hashed == NULL)
		return false;
	mongo_scan_make_kept_slot(scan);
	return true;
}

bool
mongo_change_over(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;

	if (!state->changed_over && state->hashed == NULL)
	{
		if (state->change_after == 0 || state->nvalues > state->change_after ||
			state->shared != NULL || state->identities != NULL)
			return false;
		/* which is tried once */
		if (++state->nvalues <= state->change_after || !make_hash(node))
			return false;
		state->changed_over = true;
	}
	if (state->answers != NULL)
		mongo_answers_forget(state->answers);
	if (state->hashed != NULL)
		mongo_hashed_scan_begin(state->hashed, node);
	return true;
}

/* hashed_row: the next one for the values that are asked for. */
static TupleTableSlot *
hashed_row(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;

	while (mongo_hashed_scan_next(state->hashed, state->kept_slot))
	{
		if (mongo_scan_is_meant(node, state->kept_slot))
			return state->kept_slot;
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(node->ss.ps.ps_ExprContext);
	}
	return ExecClearTuple(node->ss.ss_ScanTupleSlot);
}

/* local_row: the next one of the second plan, as a row of the scan. */
static TupleTableSlot *
local_row(ForeignScanState *node)
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
	/* nothing of a row that was decoded before */
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

TupleTableSlot *
mongo_changed_row(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;

	return state->plan->hash_functions != NIL ? hashed_row(node) : local_row(node);
}
