/*-------------------------------------------------------------------------
 *
 * batched_subqueries.c
 *		Executes the node that computes correlated subqueries of many outer rows at a time.
 *
 * Reads a batch of rows from the plan below, has the scans of the subqueries fetch the documents
 * for the values of all these rows (hashed_scan.c), and then computes its target list and quals row
 * by row as any node does.  src/plan/batched_subqueries.c puts it into the plan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"

/* By what the next batch is larger, if the query may stop early. */
#define BATCH_GROWTH		8

/* A subquery, or the inner side of a loop, whose scans take the values of a batch. */
typedef struct BatchedSubquery
{
	List	   *params;			/* integers, ids of parameters */
	List	   *args;			/* ExprState *, their values */
	List	   *scans;			/* ForeignScanState * */
	int			batch_rows;		/* the most that one of them takes */
} BatchedSubquery;

typedef struct BatchedSubqueriesState
{
	CustomScanState css;
	List	   *subqueries;		/* BatchedSubquery * */
	const MongoBatchedSubqueries *plan;
	int			nread;			/* rows of all batches */
	int			largest_batch;
	int			batch_size;
	MemoryContext batch_context;	/* of the rows; reset each time */
	MinimalTuple *rows;
	int			nrows;
	int			next;			/* index of the next row */
	bool		outer_done;
	TupleTableSlot *slot;		/* for a row of the batch */
} BatchedSubqueriesState;

static const CustomExecMethods exec_methods;

/* Makes an empty state; a callback of CustomScanMethods. */
static Node *
create_state(CustomScan *scan pg_attribute_unused())
{
	BatchedSubqueriesState *state = palloc0(sizeof(BatchedSubqueriesState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	return (Node *) state;
}

/* Appends the scans that take the values of a batch; a walker of plans. */
static bool
find_scans(PlanState *node, void *context)
{
	BatchedSubquery *subquery = context;
	int			batch_rows = 0;

	if (IsA(node, ForeignScanState) &&
		((ForeignScanState *) node)->fdwroutine->IterateForeignScan == mongo_iterate_foreign_scan)
		batch_rows = mongo_batched_rows((ForeignScan *) node->plan, subquery->params);
	if (batch_rows > 0)
		subquery->scans = lappend(subquery->scans, node);
	subquery->batch_rows = Max(subquery->batch_rows, batch_rows);
	return planstate_tree_walker(node, find_scans, context);
}

/* Resets the state to that before the first outer row. */
static void
begin(BatchedSubqueriesState *state)
{
	state->nrows = state->next = state->nread = 0;
	state->outer_done = false;
	state->batch_size = state->plan->first_batch == 0 ? state->largest_batch :
		Min(state->plan->first_batch, state->largest_batch);
}

/* Has the scans of a plan take the values of these expressions, as the parameters. */
static void
batch_plan_state(BatchedSubqueriesState *state, PlanState *plan, List *params, List *values)
{
	BatchedSubquery *subquery = palloc0(sizeof(BatchedSubquery));

	subquery->params = params;
	subquery->args = ExecInitExprList(values, &state->css.ss.ps);
	(void) find_scans(plan, subquery);
	state->subqueries = lappend(state->subqueries, subquery);
	state->largest_batch = Max(state->largest_batch,
							   Min(subquery->batch_rows, (int64) work_mem * 1024 / 2 / (int) sizeof(MinimalTuple)));
	begin(state);
}

/* Has the node batch those of these subqueries, SubPlanState *, that its plan names. */
static void
batch_subplans(BatchedSubqueriesState *state, List *subplans)
{
	foreach_ptr(const SubPlanState, subplan, subplans)
	{
		if (list_member_int(state->plan->subplans, subplan->subplan->plan_id))
			batch_plan_state(state, subplan->planstate, subplan->subplan->parParam, subplan->subplan->args);
	}
}

/*
 * If the outer side of a loop or an aggregate has a node that reads rows for it, has this batch the
 * values that the loop passes on, or that the aggregate's arguments need.
 */
static void
batch_outer_rows(PlanState *parent)
{
	BatchedSubqueriesState *rows = (BatchedSubqueriesState *) outerPlanState(parent);
	List	   *params = NIL;
	List	   *values = NIL;

	if ((!IsA(parent, NestLoopState) && !IsA(parent, AggState)) || !IsA(rows, CustomScanState) ||
		rows->css.methods != &exec_methods || !rows->plan->is_for_parent)
		return;
	if (IsA(parent, AggState))
	{
		batch_subplans(rows, parent->subPlan);
		return;
	}
	foreach_node(NestLoopParam, param, ((const NestLoop *) parent->plan)->nestParams)
	{
		params = lappend_int(params, param->paramno);
		values = lappend(values, param->paramval);
	}
	batch_plan_state(rows, innerPlanState(parent), params, values);
}

/* Begins the plan below, and finds the scans; a callback of CustomExecMethods. */
static void
begin_batched_subqueries(CustomScanState *node, EState *estate, int eflags)
{
	BatchedSubqueriesState *state = (BatchedSubqueriesState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;

	outerPlanState(node) = ExecInitNode(outerPlan(scan), estate, eflags);
	/* expressions read a row of the batch, not that of the plan below */
	node->ss.ps.outerops = &TTSOpsMinimalTuple;
	node->ss.ps.outeropsset = node->ss.ps.outeropsfixed = true;
	state->slot = ExecInitExtraTupleSlot(estate, ExecGetResultType(outerPlanState(node)),
										 &TTSOpsMinimalTuple);
	state->plan = mongo_struct_from_list(&mongo_batched_subqueries_type, scan->custom_private);
	state->largest_batch = 1;
	state->batch_context = AllocSetContextCreate(estate->es_query_cxt,
												 "mongo_fdw batched subqueries",
												 ALLOCSET_DEFAULT_SIZES);
	begin(state);
	batch_subplans(state, node->ss.ps.subPlan);
	batch_outer_rows(outerPlanState(node));
}

/* Puts a row of the batch where expressions find it; returns their context. */
static ExprContext *
go_to_row(BatchedSubqueriesState *state, int number)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	ResetExprContext(econtext);
	econtext->ecxt_outertuple = ExecStoreMinimalTuple(state->rows[number], state->slot, false);
	return econtext;
}

/* Has the scan fetch the documents for the values of all rows of the batch. */
static void
request_documents(BatchedSubqueriesState *state, const BatchedSubquery *subquery,
				  ForeignScanState *scan)
{
	ParamExecData *params = state->css.ss.ps.state->es_param_exec_vals;

	if (!mongo_batch_begin(scan))
		return;
	for (int i = 0; i < state->nrows; i++)
	{
		ExprContext *econtext = go_to_row(state, i);
		ListCell   *param;
		ListCell   *arg;

		/* each run of the subquery sets them again */
		forboth(param, subquery->params, arg, subquery->args)
		{
			ParamExecData *value = &params[lfirst_int(param)];

			value->value = ExecEvalExpr((ExprState *) lfirst(arg), econtext, &value->isnull);
		}
		if (!mongo_batch_add(scan))
			return;
	}
	(void) mongo_batch_request(scan);
}

/* Reads the next rows, and fetches documents for them; returns false if there are none. */
static bool
read_batch(BatchedSubqueriesState *state)
{
	MemoryContext old_context;
	int			size = state->batch_size;
	ListCell   *cell;

	if (state->plan->is_exact)
		size = Max(Min(size, state->plan->first_batch - state->nread), 1);
	state->nrows = state->next = 0;
	ExecClearTuple(state->slot);
	MemoryContextReset(state->batch_context);
	old_context = MemoryContextSwitchTo(state->batch_context);
	state->rows = palloc(sizeof(MinimalTuple) * size);
	while (!state->outer_done && state->nrows < size &&
		   (state->nrows == 0 ||
			MemoryContextMemAllocated(state->batch_context, false) < (Size) work_mem * 1024))
	{
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(old_context);
		slot = ExecProcNode(outerPlanState(state));
		MemoryContextSwitchTo(state->batch_context);
		state->outer_done = TupIsNull(slot);
		if (!state->outer_done)
			state->rows[state->nrows++] = ExecCopySlotMinimalTuple(slot);
	}
	MemoryContextSwitchTo(old_context);
	state->nread += state->nrows;
	state->batch_size = Min(state->batch_size * BATCH_GROWTH, state->largest_batch);
	foreach_ptr(const BatchedSubquery, subquery, state->subqueries)
	{
		foreach(cell, subquery->scans)
			request_documents(state, subquery, lfirst(cell));
	}
	return state->nrows > 0;
}

/* Returns the next row that passes the node's quals. */
static TupleTableSlot *
execute_batched_subqueries(CustomScanState *node)
{
	BatchedSubqueriesState *state = (BatchedSubqueriesState *) node;

	while (state->next < state->nrows || read_batch(state))
	{
		ExprContext *econtext = go_to_row(state, state->next++);

		CHECK_FOR_INTERRUPTS();
		if (!ExecQual(node->ss.ps.qual, econtext))
			InstrCountFiltered1(node, 1);
		else if (node->ss.ps.ps_ProjInfo != NULL)
			return ExecProject(node->ss.ps.ps_ProjInfo);
		else
			/* it has no columns */
			return ExecStoreVirtualTuple(ExecClearTuple(node->ss.ss_ScanTupleSlot));
	}
	return ExecClearTuple(node->ss.ps.ps_ResultTupleSlot);
}

static void
end_batched_subqueries(CustomScanState *node)
{
	ExecEndNode(outerPlanState(node));
}

/* Restarts the plan below; ExecReScan() has told it which parameters have changed. */
static void
rescan_batched_subqueries(CustomScanState *node)
{
	begin((BatchedSubqueriesState *) node);
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

static const CustomExecMethods exec_methods = {
	.CustomName = "MongoDB Batched Subqueries",
	.BeginCustomScan = begin_batched_subqueries,
	.ExecCustomScan = execute_batched_subqueries,
	.EndCustomScan = end_batched_subqueries,
	.ReScanCustomScan = rescan_batched_subqueries,
};

const CustomScanMethods mongo_batched_subqueries_methods = {
	.CustomName = "MongoDB Batched Subqueries",
	.CreateCustomScanState = create_state,
};
