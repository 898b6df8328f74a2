/*-------------------------------------------------------------------------
 *
 * async.c
 *		Asynchronous Append: the servers of several scans work at the same time.
 *
 * Each scan has a leased client of its own, so one never waits for another's
 * answer.  A scan that would have to wait says so instead (state->must_wait),
 * and Append waits for all such scans' sockets together.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec.h"
#include "plan_upper.h"

#include "executor/execAsync.h"
#include "executor/executor.h"
#include "storage/latch.h"

/*
 * Of one table, or of what is above it in the same command: the groups that an
 * Append of partial or partitionwise aggregates is over.
 */
bool
mongo_is_foreign_path_async_capable(ForeignPath *path)
{
	RelOptInfo *rel = path->path.parent;

	if (IS_UPPER_REL(rel))
		return mongo_upper_options(rel->fdw_private)->async_capable;
	return IS_SIMPLE_REL(rel) &&
		((MongoRelation *) rel->fdw_private)->options->async_capable;
}

/* produce gives Append the next row, the end, or word that it has to wait. */
static void
produce(AsyncRequest *request)
{
	ForeignScanState *node = (ForeignScanState *) request->requestee;
	MongoScanState *state = node->fdw_state;
	TupleTableSlot *slot;

	state->must_wait = false;
	slot = node->ss.ps.ExecProcNodeReal(&node->ss.ps);
	if (TupIsNull(slot) && state->must_wait)
		ExecAsyncRequestPending(request);
	else
		ExecAsyncRequestDone(request, slot);
}

void
mongo_foreign_async_request(AsyncRequest *request)
{
	produce(request);
}

void
mongo_foreign_async_configure_wait(AsyncRequest *request)
{
	ForeignScanState *node = (ForeignScanState *) request->requestee;
	MongoScanState *state = node->fdw_state;
	AppendState *append = (AppendState *) request->requestor;

	AddWaitEventToSet(append->as_eventset, WL_SOCKET_READABLE,
					  mongo_cursor_socket(state->cursor), NULL, request);
}

void
mongo_foreign_async_notify(AsyncRequest *request)
{
	produce(request);
}
