/*-------------------------------------------------------------------------
 *
 * shared.c
 *		Executes scans shared among parallel workers, and asynchronous scans.
 *
 * Two ways in which scans run at the same time, each by PostgreSQL's callbacks: several processes
 * read ranges of one collection, or one process waits for several servers at once.  See
 * PostgreSQL's "FDW Routines for Parallel Execution" and "FDW Routines for Asynchronous
 * Execution".
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"
#include "options.h"
#include "convert.h"
#include "translate.h"
#include "remote.h"

#include "access/parallel.h"
#include "executor/execAsync.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/spin.h"
#include "utils/memutils.h"
#include "utils/snapshot.h"
#include "utils/wait_event.h"

/*-------------------------------------------------------------------------
 * A foreign scan that several processes share.
 *
 * The first participant has MongoDB compute the points that split the collection, and puts them
 * into shared memory.  Each participant then takes one range after another, in the order of the
 * scan, and reads it over its own connection.  If the server supports snapshots, all ranges are
 * read from the snapshot in which the points were found.
 *
 * What cannot be split (a view, an empty collection, a server without the stages) is one range,
 * which one participant reads.
 *-------------------------------------------------------------------------
 */

/* Sampled values per range: more samples make the ranges more equal. */
#define SAMPLES_PER_RANGE	16

/* Points mostly have a few bytes.  If they are longer, fewer are used. */
#define POINTS_CAPACITY		32768

typedef enum SplitProgress
{
	NOT_SPLIT,
	BEING_SPLIT,				/* by one of the participants */
	SPLIT
} SplitProgress;

/* The members of a MongoUsage, which are all of one type. */
#define USAGE_COUNTERS		(sizeof(MongoUsage) / sizeof(uint64))

struct MongoSharedScan
{
	slock_t		mutex;			/* protects 'progress' */
	ConditionVariable split_done;
	SplitProgress progress;
	int			wanted_ranges;

	/* valid and constant once 'progress' is SPLIT */
	int			nranges;
	uint64		at;				/* the cluster time of the snapshot; 0: none */
	uint32		points_length;
	uint8		points[POINTS_CAPACITY];

	pg_atomic_uint32 next_range;

	/* the workers' MongoUsage, for EXPLAIN */
	pg_atomic_uint64 usage[USAGE_COUNTERS];
};

/*
 * mongo_estimate_dsm_foreign_scan
 *		Returns the size of the shared memory; a callback of PostgreSQL.
 */
Size
mongo_estimate_dsm_foreign_scan(ForeignScanState *node pg_attribute_unused(),
								ParallelContext *pcxt pg_attribute_unused())
{
	return sizeof(MongoSharedScan);
}

/* Shares the leader's scan before each execution; in a MongoDB transaction launches no workers. */
static void
share_scan(ForeignScanState *node, ParallelContext *pcxt, MongoSharedScan *shared)
{
	MongoScanState *state = node->fdw_state;

	state->shared = shared;
	mongo_before_read(&state->reader.scope, state->reader.command);
	if (mongo_session_for_read(state->user) != NULL)
	{
		state->shared = NULL;
		ReinitializeParallelWorkers(pcxt, 0);
	}
}

/*
 * mongo_initialize_dsm_foreign_scan
 *		Initializes the shared memory, in the leader; a callback of PostgreSQL.
 *
 * In a MongoDB transaction only the leader's connection can read the transaction's snapshot, so no
 * worker is launched, and the leader reads everything.
 */
void
mongo_initialize_dsm_foreign_scan(ForeignScanState *node, ParallelContext *pcxt, void *coordinate)
{
	MongoSharedScan *shared = coordinate;

	SpinLockInit(&shared->mutex);
	ConditionVariableInit(&shared->split_done);
	shared->progress = NOT_SPLIT;
	shared->wanted_ranges = MONGO_RANGES_PER_PARTICIPANT * (pcxt->nworkers + 1);
	pg_atomic_init_u32(&shared->next_range, 0);
	for (size_t i = 0; i < USAGE_COUNTERS; i++)
		pg_atomic_init_u64(&shared->usage[i], 0);
	share_scan(node, pcxt, shared);
}

/*
 * mongo_reinitialize_dsm_foreign_scan
 *		Shares the scan again for a restart; a callback of PostgreSQL.
 *
 * Keeps the points and the snapshot, which belong to the same query.
 */
void
mongo_reinitialize_dsm_foreign_scan(ForeignScanState *node, ParallelContext *pcxt,
									void *coordinate)
{
	MongoSharedScan *shared = coordinate;

	pg_atomic_write_u32(&shared->next_range, 0);
	share_scan(node, pcxt, shared);
}

/*
 * mongo_initialize_worker_foreign_scan
 *		Attaches a worker to the shared memory; a callback of PostgreSQL.
 */
void
mongo_initialize_worker_foreign_scan(ForeignScanState *node, shm_toc *toc pg_attribute_unused(),
									 void *coordinate)
{
	((MongoScanState *) node->fdw_state)->shared = coordinate;
}

/* Adds a worker's traffic to the shared counts, or the shared counts to the leader's. */
static void
share_usage(MongoScanState *state)
{
	uint64	   *own = (uint64 *) &state->usage;

	for (size_t i = 0; i < USAGE_COUNTERS; i++)
	{
		if (IsParallelWorker())
			pg_atomic_fetch_add_u64(&state->shared->usage[i], own[i]);
		else
			own[i] += pg_atomic_exchange_u64(&state->shared->usage[i], 0);
	}
}

/*
 * mongo_shutdown_foreign_scan
 *		Adds up the traffic, and detaches from the shared memory, which ends before the scan; a
 *		callback of PostgreSQL.
 */
void
mongo_shutdown_foreign_scan(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;

	/* PostgreSQL calls this for a direct modification, too */
	if (((ForeignScan *) node->ss.ps.plan)->operation != CMD_SELECT || state == NULL)
		return;
	if (state->shared != NULL)
		share_usage(state);
	/* the shared memory ends before the scan */
	state->shared = NULL;
}

/* ------------------------------- splitting --------------------------------- */

/* Appends the command that samples the collection, with the collation that orders the ranges. */
static void
append_split_command(const MongoScanPlan *plan, const bson_t *scan_command,
					 int sample_size, bson_t *command)
{
	const char *collection = mongo_to_utf8(plan->collection);
	bson_iter_t collation;

	mongo_append(command, "aggregate", mongo_utf8(collection));
	mongo_append_split_pipeline(command, collection, plan->split_field, sample_size);
	mongo_append_template(command, "{cursor: {batchSize: @1}}", mongo_int32(sample_size + 2));
	if (bson_iter_init_find(&collation, scan_command, "collation"))
		mongo_append_iter(command, NULL, &collation);
}

/*
 * Records the cluster time of the reply, as of which all ranges are to be read.
 *
 * A standalone server has no such time, and a capped collection has no snapshots.  If the user has
 * set a read concern other than majority or snapshot, the ranges use that instead.
 */
static void
note_snapshot(MongoSharedScan *shared, UserMapping *user, const bson_t *reply)
{
	const char *read_concern = mongo_read_concern(GetForeignServer(user->serverid));
	bson_iter_t iter;
	bson_iter_t capped;
	uint32_t	seconds;
	uint32_t	increment;

	if (read_concern != NULL && pg_strcasecmp(read_concern, "majority") != 0 &&
		pg_strcasecmp(read_concern, "snapshot") != 0)
		return;
	if (bson_iter_init(&iter, reply) &&
		bson_iter_find_descendant(&iter, "cursor.firstBatch.0.storageStats.capped", &capped) &&
		bson_iter_as_bool(&capped))
		return;
	if (bson_iter_init_find(&iter, reply, "operationTime") &&
		BSON_ITER_HOLDS_TIMESTAMP(&iter))
	{
		bson_iter_timestamp(&iter, &seconds, &increment);
		shared->at = (uint64) seconds << 32 | increment;
	}
}

/* Computes the split points, and puts them into shared memory. */
static void
split_collection(MongoSharedScan *shared, const MongoScanPlan *plan, UserMapping *user,
				 const bson_t *scan_command)
{
	bson_t	   *command = mongo_bson_create();
	const bson_t *reply;
	bson_t	   *points;
	bson_iter_t iter;
	bson_iter_t batch;

	shared->nranges = 1;
	shared->points_length = 0;
	shared->at = 0;
	append_split_command(plan, scan_command, SAMPLES_PER_RANGE * shared->wanted_ranges,
						 command);
	mongo_log_command(plan->database, command, 0);
	reply = mongo_run_command(CurrentMemoryContext, user, mongo_to_utf8(plan->database),
							  command, NULL);
	if (!bson_iter_init(&iter, reply) ||
		!bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch))
		return;

	shared->nranges = mongo_choose_split_points(&batch, plan->split_field,
												shared->wanted_ranges,
												POINTS_CAPACITY, &points);
	shared->points_length = points->len;
	memcpy(shared->points, bson_get_data(points), points->len);
	note_snapshot(shared, user, reply);
}

/*
 * Splits the collection, or waits for the participant that does.  If that participant fails, its
 * error ends the whole query, and so the others' waits.
 */
static void
ensure_split(MongoSharedScan *shared, const MongoScanPlan *plan, UserMapping *user,
			 const bson_t *scan_command)
{
	for (;;)
	{
		SplitProgress progress;

		SpinLockAcquire(&shared->mutex);
		progress = shared->progress;
		if (progress == NOT_SPLIT)
			shared->progress = BEING_SPLIT;
		SpinLockRelease(&shared->mutex);

		if (progress == SPLIT)
			break;
		if (progress == NOT_SPLIT)
		{
			split_collection(shared, plan, user, scan_command);
			SpinLockAcquire(&shared->mutex);
			shared->progress = SPLIT;
			SpinLockRelease(&shared->mutex);
			ConditionVariableBroadcast(&shared->split_done);
			break;
		}
		ConditionVariableSleep(&shared->split_done, mongo_wait_event(MONGO_WAIT_SPLIT));
	}
	ConditionVariableCancelSleep();
}

/* --------------------------------- ranges ---------------------------------- */

static bool
is_descending(const bson_t *command)
{
	bson_iter_t sort;
	bson_iter_t first;

	return bson_iter_init_find(&sort, command, "sort") &&
		bson_iter_recurse(&sort, &first) && bson_iter_next(&first) &&
		bson_iter_as_int64(&first) < 0;
}

/* Returns the conjunction of two query filters, the first of which may be NULL. */
static bson_value_t
conjunction(const bson_iter_t *filter, const bson_t *range)
{
	bson_t	   *result;

	if (filter == NULL)
		return mongo_document(range);
	result = mongo_from_template("{$and: [@1, @2]}",
								 *bson_iter_value(unconstify(bson_iter_t *, filter)),
								 mongo_document(range));
	mongo_mark_ors(result, false);
	return mongo_document(result);
}

/* Returns the next range's condition, {} for all; NULL if there are no more. */
static bson_t *
range_condition(MongoSharedScan *shared, const MongoScanPlan *plan, bool descending)
{
	uint32		range = pg_atomic_fetch_add_u32(&shared->next_range, 1);
	bson_t	   *condition;
	bson_t		points;

	if (range >= (uint32) shared->nranges)
		return NULL;
	if (descending)
		range = shared->nranges - 1 - range;
	condition = mongo_bson_create();
	if (shared->points_length > 0 &&
		mongo_bson_view(&points, shared->points, shared->points_length))
		mongo_append_split_range(&points, plan->split_field, range, shared->nranges,
								 condition);
	return condition;
}

/*
 * mongo_take_range
 *		Returns the plan's 'command' with the condition of the next range of the shared scan, in
 *		the current memory context; NULL if all ranges have been taken.
 *
 * Sets *at to the cluster time of the snapshot that all ranges are read in; 0: there is none.
 * First splits the collection, by a command, or waits until another participant has done that.
 * Raises what mongo_run_command() raises.
 */
bson_t *
mongo_take_range(MongoSharedScan *shared, const MongoScanPlan *plan, UserMapping *user,
				 const bson_t *command, uint64 *at)
{
	bson_t	   *result;
	bson_t	   *condition;
	bson_iter_t field;
	bool		done;

	ensure_split(shared, plan, user, command);
	condition = range_condition(shared, plan, is_descending(command));
	if (condition == NULL)
		return NULL;

	result = mongo_bson_create();
	done = bson_empty(condition);
	bson_iter_init(&field, command);
	while (bson_iter_next(&field))
	{
		if (done || strcmp(bson_iter_key(&field), "filter") != 0)
		{
			mongo_append_iter(result, NULL, &field);
			continue;
		}
		mongo_append_member(result, "filter", "@1", conjunction(&field, condition));
		done = true;
	}
	if (!done)
		mongo_append_member(result, "filter", "@1", conjunction(NULL, condition));
	*at = shared->at;
	return result;
}

/*-------------------------------------------------------------------------
 * Asynchronous Append: the servers of several scans work at the same time.
 *
 * A scan that would have to wait sets state->must_wait instead, and Append waits for the
 * sockets of all such scans together.  Scans of one server and user share async_connections
 * connections.  A scan that is queued for a connection adds no socket.  It is served when the
 * reply to another scan has arrived.
 *-------------------------------------------------------------------------
 */

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
 */
void
mongo_foreign_async_request(AsyncRequest *request)
{
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

/* Tells whether the scan is queued after another one that Append waits for. */
static bool
comes_after(const AppendState *append, const MongoScanState *state)
{
	int			index = -1;

	while ((index = bms_next_member(append->as_asyncplans, index)) >= 0)
	{
		const AsyncRequest *request = pending_request(append, index);
		const MongoScanState *other = request != NULL ? scan_of_request(request) : NULL;

		if (other != NULL && other->user->umid == state->user->umid &&
			other->plan->read_mode == state->plan->read_mode &&
			mongo_cursor_socket(other->run.cursor) != PGINVALID_SOCKET)
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
 * received and saved first.
 */
static bool
advance(AppendState *append, AsyncRequest *request)
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
		!bms_is_empty(append->as_needrequest) || comes_after(append, state))
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
	int			first = -1;

	while ((first = bms_next_member(append->as_asyncplans, first)) >= 0 &&
		   pending_request(append, first) == NULL)
		;
	if (first == request->request_index)
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
