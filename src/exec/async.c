/*-------------------------------------------------------------------------
 *
 * async.c
 *		Asynchronous Append: the servers of several scans work at the same time.
 *
 * A scan that would have to wait says so instead (state->must_wait), and Append
 * waits for all such scans' sockets together.  Scans of one server and user take
 * turns on async_connections connections.  One that waits for its turn adds no socket,
 * as its turn comes with an answer that another one waits for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec.h"
#include "scan.h"

#include "executor/execAsync.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "storage/latch.h"

/* produce gives Append the next row, the end, or word that it has to wait. */
static void
produce(AsyncRequest *request)
{
	ForeignScanState *node = (ForeignScanState *) request->requestee;
	MongoScanState *state = node->fdw_state;
	TupleTableSlot *slot;

	state->must_wait = false;
	slot = node->ss.ps.ExecProcNodeReal(&node->ss.ps);
	if (state->run.cursor != NULL)
		mongo_cursor_set_tag(state->run.cursor, request);
	if (TupIsNull(slot) && state->must_wait)
		ExecAsyncRequestPending(request);
	else
		ExecAsyncRequestDone(request, slot);
}

/*
 * complete
 *		Give Append at once what it has not been notified of.
 */
static void
complete(AsyncRequest *request)
{
	request->callback_pending = false;
	produce(request);
	ExecAsyncResponse(request);
	if (request->requestee->instrument)
		InstrUpdateTupleCount(request->requestee->instrument,
							  TupIsNull(request->result) ? 0.0 : 1.0);
}

/* Does this Append wait for that request? */
static bool
is_awaited(const void *tag, const void *arg)
{
	const AsyncRequest *request = tag;

	return request->requestor == arg && request->callback_pending;
}

void
mongo_foreign_async_request(AsyncRequest *request)
{
	produce(request);
}

/* The request if it is one of ours, and Append waits for it. */
static AsyncRequest *
pending_request(const AppendState *append, int index)
{
	AsyncRequest *request = append->as_asyncrequests[index];

	return request->callback_pending && IsA(request->requestee, ForeignScanState) &&
		castNode(ForeignScanState, request->requestee)->fdwroutine->ForeignAsyncConfigureWait ==
		mongo_foreign_async_configure_wait ? request : NULL;
}

/*
 * advance
 *		Give Append what has been answered, or have a request sent whose answer it
 *		can wait for; false when there is nothing to do.
 *
 * A request may not have been sent yet, since it was not its turn, or may have
 * been answered meanwhile, since somebody else needed the connection.  Append must
 * not be left with nothing to wait for: where the connections are in use by
 * scans that it does not wait for, one of their answers is taken off first.
 */
static bool
advance(AppendState *append, AsyncRequest *request)
{
	MongoCursor *cursor = ((MongoScanState *) ((ForeignScanState *) request->requestee)->fdw_state)->run.cursor;

	if (mongo_cursor_socket(cursor) != PGINVALID_SOCKET)
		return false;
	if (mongo_cursor_is_ready(cursor))
	{
		complete(request);
		return true;
	}
	if (mongo_cursor_socket(cursor) != PGINVALID_SOCKET ||
		!bms_is_empty(append->as_needrequest) ||
		mongo_cursor_waits_for(cursor, is_awaited, append))
		return false;
	mongo_cursor_ask_now(cursor);
	return true;
}

/*
 * advance_all
 *		Do so until each request has a socket to wait for or comes after one that
 *		has, or there is something to return.
 */
static void
advance_all(AppendState *append)
{
	bool		any;

	do
	{
		int			index = -1;

		any = false;
		while ((index = bms_next_member(append->as_asyncplans, index)) >= 0)
		{
			AsyncRequest *request = pending_request(append, index);

			if (request != NULL && advance(append, request))
				any = true;
		}
	} while (any && append->as_nasyncresults == 0);
}

/*
 * mongo_foreign_async_configure_wait
 *		Add the socket of a request that has not been answered.
 *
 * What is done for one request may take the answer to another one off its
 * connection, and send something else there: rows are filtered by functions, which
 * may ask the same server.  So all is done before the first socket is added.
 */
void
mongo_foreign_async_configure_wait(AsyncRequest *request)
{
	AppendState *append = (AppendState *) request->requestor;
	MongoScanState *state;
	pgsocket	socket;
	int			first = -1;

	while ((first = bms_next_member(append->as_asyncplans, first)) >= 0 &&
		   pending_request(append, first) == NULL)
		;
	if (first == request->request_index)
		advance_all(append);

	/* what there is to return is not to wait for anything */
	if (!request->callback_pending || append->as_nasyncresults > 0)
		return;
	state = ((ForeignScanState *) request->requestee)->fdw_state;
	socket = mongo_cursor_socket(state->run.cursor);
	if (socket != PGINVALID_SOCKET)
		AddWaitEventToSet(append->as_eventset, WL_SOCKET_READABLE, socket, NULL, request);
}

void
mongo_foreign_async_notify(AsyncRequest *request)
{
	produce(request);
}
