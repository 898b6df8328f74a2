/*-------------------------------------------------------------------------
 *
 * parallel.c
 *		Executes scans that parallel workers share: each process reads ranges of the collection.
 *
 * The first participant has MongoDB compute the points that split the collection, and puts them
 * into shared memory.  Each participant then takes one range after another, in the order of the
 * scan, and reads it over its own connection.  If the server supports snapshots, all ranges are
 * read from the snapshot in which the points were found.
 *
 * What cannot be split (a view, an empty collection, a server without the stages) is one range,
 * which one participant reads.
 *
 * See PostgreSQL's "FDW Routines for Parallel Execution".
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
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "utils/wait_event.h"

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

	if (read_concern != NULL && pg_strcasecmp(read_concern, "majority") != 0 &&
		pg_strcasecmp(read_concern, "snapshot") != 0)
		return;
	if (bson_iter_init(&iter, reply) &&
		bson_iter_find_descendant(&iter, "cursor.firstBatch.0.storageStats.capped", &capped) &&
		bson_iter_as_bool(&capped))
		return;
	if (bson_iter_init_find(&iter, reply, "operationTime"))
		shared->at = mongo_time_at(&iter);
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
	bson_t	   *condition;

	ensure_split(shared, plan, user, command);
	condition = range_condition(shared, plan, is_descending(command));
	if (condition == NULL)
		return NULL;

	*at = shared->at;
	return mongo_command_narrow(command, condition);
}
