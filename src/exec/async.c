/*-------------------------------------------------------------------------
 *
 * async.c
 *		Executes asynchronous scans below Append, whose servers work at the same time.
 *
 * A scan that would have to wait sets state->must_wait instead, and Append waits for the
 * sockets of all such scans together.  Scans of one server and user share async_connections
 * connections.  A scan that has sent nothing for lack of one adds no socket, and tries again
 * before Append waits.
 *
 * See PostgreSQL's "FDW Routines for Asynchronous Execution".
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "executor/execAsync.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "storage/latch.h"

/* Returns the next row or the end to Append, or makes Append wait. */
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

/* Returns a row to Append, which has neither requested it now nor been notified. */
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

/*
 * mongo_foreign_async_request
 *		Returns a row to Append, or makes it wait; a callback of PostgreSQL.
 *
 * A scan that pruning has left alone waits itself, for which Append would make an epoll instance.
 */
void
mongo_foreign_async_request(AsyncRequest *request)
{
	if (((AppendState *) request->requestor)->as_nplans == 1)
		request->requestee->async_capable = false;
	produce(request);
}

/* Returns a request if it is ours and Append waits for it, else NULL. */
static AsyncRequest *
pending_request(const AppendState *append, int index)
{
	AsyncRequest *request = append->as_asyncrequests[index];

	return request->callback_pending && IsA(request->requestee, ForeignScanState) &&
		castNode(ForeignScanState, request->requestee)->fdwroutine->ForeignAsyncConfigureWait ==
		mongo_foreign_async_configure_wait ? request : NULL;
}

static MongoScanState *
scan_of_request(const AsyncRequest *request)
{
	return ((ForeignScanState *) request->requestee)->fdw_state;
}

/* Tells whether Append waits for this scan, whose connection the other one may have then. */
static bool
comes_after_one(const AppendState *append, const MongoScanState *state, int index)
{
	const AsyncRequest *request = index < 0 ? NULL : pending_request(append, index);
	const MongoScanState *other = request != NULL ? scan_of_request(request) : NULL;

	return other != NULL && other->user->umid == state->user->umid &&
		other->plan->read_mode == state->plan->read_mode &&
		mongo_cursor_socket(other->run.cursor) != PGINVALID_SOCKET;
}

/*
 * Tells whether Append waits for another scan, whose connection this one may have then.  *last is
 * the one found the last time, so that hundreds of scans do not all look past those that are done.
 */
static bool
comes_after(const AppendState *append, const MongoScanState *state, int *last)
{
	if (comes_after_one(append, state, *last))
		return true;
	*last = -1;
	while ((*last = bms_next_member(append->as_asyncplans, *last)) >= 0)
	{
		if (comes_after_one(append, state, *last))
			return true;
	}
	return false;
}

/*
 * Returns a row that is ready to Append, or sends a request for whose reply Append can wait;
 * returns false if neither is possible.
 *
 * A request may not have been sent for lack of a connection, or its reply may have been saved
 * because another scan needed the connection.  Append must always have a socket to wait for.  So
 * if the connections are used only by scans that it does not wait for, one of their replies is
 * received and saved first.  *last is that of comes_after().
 */
static bool
advance(AppendState *append, AsyncRequest *request, int *last)
{
	MongoScanState *state = scan_of_request(request);
	MongoCursor *cursor = state->run.cursor;

	if (mongo_cursor_socket(cursor) != PGINVALID_SOCKET)
		return false;
	if (mongo_cursor_is_ready(cursor))
	{
		complete(request);
		return true;
	}
	if (mongo_cursor_socket(cursor) != PGINVALID_SOCKET ||
		!bms_is_empty(append->as_needrequest) || comes_after(append, state, last))
		return false;
	mongo_cursor_ask_now(cursor);
	return true;
}

/*
 * Calls advance() until each request has a socket, comes after one that has, or has a row to
 * return.
 */
static void
advance_all(AppendState *append)
{
	int			last = -1;
	bool		any;

	do
	{
		int			index = -1;

		any = false;
		while ((index = bms_next_member(append->as_asyncplans, index)) >= 0)
		{
			AsyncRequest *request = pending_request(append, index);

			if (request != NULL && advance(append, request, &last))
				any = true;
		}
	} while (any && append->as_nasyncresults == 0);
}

/*
 * mongo_foreign_async_configure_wait
 *		Adds the socket of a request whose reply is outstanding; a callback of PostgreSQL.
 *
 * Advancing one request may receive and save the reply to another one, and then use that
 * connection: a function in a filter, for example, may use the same server.  So all requests are
 * advanced before the first socket is added.
 */
void
mongo_foreign_async_configure_wait(AsyncRequest *request)
{
	AppendState *append = (AppendState *) request->requestor;
	MongoScanState *state;
	pgsocket	socket;
	int			earlier = request->request_index;

	while ((earlier = bms_prev_member(append->as_asyncplans, earlier)) >= 0 &&
		   pending_request(append, earlier) == NULL)
		;
	if (earlier < 0)
		advance_all(append);

	/* if there is a row to return, Append must not wait */
	if (!request->callback_pending || append->as_nasyncresults > 0)
		return;
	state = ((ForeignScanState *) request->requestee)->fdw_state;
	socket = mongo_cursor_socket(state->run.cursor);
	if (socket != PGINVALID_SOCKET)
		AddWaitEventToSet(append->as_eventset, WL_SOCKET_READABLE, socket, NULL, request);
}

/*
 * mongo_foreign_async_notify
 *		Returns a row to Append after its socket was ready, or makes it wait again; a callback of
 *		PostgreSQL.
 */
void
mongo_foreign_async_notify(AsyncRequest *request)
{
	produce(request);
}
