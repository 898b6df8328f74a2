/*-------------------------------------------------------------------------
 *
 * launcher.c
 *		Which background workers run, and the launcher, which starts them.
 *
 * The launcher, without a database, starts a worker in each database that has something
 * synchronized.  It knows of them by shared memory, in which each worker has a place: a CALL enters
 * its database.  After a start the launcher visits each database once.
 *
 * Whoever drops, renames or copies a database locks it, and waits for its other sessions.  So the
 * launcher looks each second whether it could lock it.  If not, it wakes the workers, which leave,
 * and cancels what they do.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync_internal.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define MOST_WORKERS		256

/* All in milliseconds. */
#define LONGEST_WAIT		10000
#define START_LIMIT			10000	/* for a worker to appear */

pg_noreturn PGDLLEXPORT void mongo_sync_launch(Datum unused);

static bool is_enabled = true;

/* The setting mongo_sync.timeout: how long a unit of work may take, in milliseconds; 0: no limit. */
int			sync_time_limit = 60000;

/* ----------------------------- Shared memory ------------------------------ */

/* A worker of a database that has, or may have, something synchronized. */
typedef struct SyncPlace
{
	Oid			database;		/* InvalidOid: the place is free */
	bool		is_second;		/* of the second worker */
	bool		is_known;		/* something is synchronized; otherwise the
								 * database is to be visited */
	bool		has_no_slot;	/* no background worker could be started */
	bool		has_changed;	/* the worker is to look for groups */
	Latch	   *worker;			/* NULL: there is none */
	pid_t		pid;
	int			group;			/* that the worker works on, or died of; 0:
								 * none */
	int			looks;			/* in a row at which somebody had locked the
								 * database */
	TimestampTz start_at;		/* not before */
} SyncPlace;

typedef struct SyncShared
{
	slock_t		mutex;
	Latch	   *launcher;		/* NULL: there is none */
	bool		look_everywhere;
	SyncPlace	places[MOST_WORKERS];
} SyncShared;

static SyncShared *shared = NULL;	/* NULL: not in shared_preload_libraries */
static Oid	own_database = InvalidOid;	/* of this worker, also before it is
										 * connected */
static bool is_second = false;	/* it is the second worker of its database */
static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

static void
request_worker_memory(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(sizeof(SyncShared));
}

static void
find_worker_memory(void)
{
	bool		found;

	if (previous_startup_hook)
		previous_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("mongo_sync", sizeof(SyncShared), &found);
	if (!found)
	{
		memset(shared, 0, sizeof(SyncShared));
		SpinLockInit(&shared->mutex);
	}
	LWLockRelease(AddinShmemInitLock);
}

/* Returns a worker's place, with the lock held; NULL: it has none, or there is no other. */
static SyncPlace *
find_place(Oid database, bool second, bool create)
{
	SyncPlace  *unused = NULL;

	for (int i = 0; i < MOST_WORKERS; i++)
	{
		SyncPlace  *place = &shared->places[i];

		if (place->database == database && place->is_second == second)
			return place;
		if (place->database == InvalidOid && unused == NULL)
			unused = place;
	}
	if (!create || unused == NULL)
		return NULL;
	*unused = (SyncPlace) {.database = database,.is_second = second};
	return unused;
}

/* Returns the place of this process. */
static SyncPlace *
own_place(void)
{
	return find_place(own_database, is_second, false);
}

/*
 * sync_wake
 *		Has this database's worker, or the second one, look for groups.  Starts it if it does not
 *		run; false if it could not be started.  Only where there is shared memory.
 */
bool
sync_wake(bool second)
{
	SyncPlace  *place;
	Latch	   *latch;
	bool		result;

	SpinLockAcquire(&shared->mutex);
	place = find_place(MyDatabaseId, second, true);
	if (place != NULL)
		place->is_known = place->has_changed = true;
	else if (!second)
		shared->look_everywhere = true;
	latch = place != NULL && place->worker != NULL ? place->worker : shared->launcher;
	result = place != NULL && !place->has_no_slot;
	SpinLockRelease(&shared->mutex);
	if (latch != NULL)
		SetLatch(latch);
	return result;
}

/*
 * sync_wake_worker
 *		Has this database's worker look for groups, after the commit of a new one.
 */
void
sync_wake_worker(void)
{
	if (shared != NULL)
		(void) sync_wake(false);
}

/*
 * sync_may_run
 *		Tells whether workers are enabled.
 */
bool
sync_may_run(void)
{
	return is_enabled && mongo_sync_interval != 0;
}

/*
 * sync_worker_problem
 *		Returns why no worker runs in this database, and what to do; NULL: one runs.
 */
const char *
sync_worker_problem(void)
{
	const SyncPlace *place;
	bool		runs;
	bool		has_no_slot;
	bool		has_launcher;

	if (shared == NULL)
		return "mongo_fdw is not in shared_preload_libraries";
	SpinLockAcquire(&shared->mutex);
	place = find_place(MyDatabaseId, false, false);
	runs = place != NULL && place->worker != NULL;
	has_no_slot = place != NULL && place->has_no_slot;
	has_launcher = shared->launcher != NULL;
	SpinLockRelease(&shared->mutex);
	if (runs)
		return NULL;
	if (!sync_may_run())
		return "mongo_sync.enabled is off";
	if (has_no_slot)
		return "there is no free background worker: max_worker_processes is too small";
	return has_launcher ? "it is being started" : "its launcher does not run";
}

/* ------------------------------ The launcher ------------------------------ */

/* Sets what both kinds of workers have in common. */
static void
describe_worker(BackgroundWorker *worker, const char *function, const char *type)
{
	memset(worker, 0, sizeof(*worker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION | BGWORKER_INTERRUPTIBLE;
	worker->bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker->bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker->bgw_library_name, "mongo_fdw", sizeof(worker->bgw_library_name));
	strlcpy(worker->bgw_function_name, function, sizeof(worker->bgw_function_name));
	strlcpy(worker->bgw_name, type, sizeof(worker->bgw_name));
	strlcpy(worker->bgw_type, type, sizeof(worker->bgw_type));
}

/*
 * mongo_sync_initialize
 *		Defines the settings and, for shared_preload_libraries, registers the launcher.  Called once
 *		by _PG_init().
 */
void
mongo_sync_initialize(void)
{
	BackgroundWorker worker;

	DefineCustomBoolVariable("mongo_sync.enabled",
							 "Enables background workers that synchronize tables with MongoDB.",
							 "They need mongo_fdw in shared_preload_libraries.",
							 &is_enabled, is_enabled, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("mongo_sync.timeout",
							"Sets how long a background worker may apply a batch of changes, triggers included.",
							"A range of a first copy may take ten times as long. Zero: no limit.",
							&sync_time_limit, sync_time_limit, 0, INT_MAX / TIMES_FOR_RANGE - LAST_RESORT,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	MarkGUCPrefixReserved("mongo_sync");
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_worker_memory;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = find_worker_memory;
	if (IsBinaryUpgrade)
		return;
	describe_worker(&worker, "mongo_sync_launch", "mongo_sync launcher");
	worker.bgw_restart_time = RESTART_PAUSE / 1000;
	RegisterBackgroundWorker(&worker);
}

/* Returns the OIDs of all databases that can be connected to, in the current context. */
static List *
list_databases(void)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *result = NIL;
	Relation	relation;
	TableScanDesc scan;
	HeapTuple	tuple;

	StartTransactionCommand();
	relation = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(relation, 0, NULL);
	while (HeapTupleIsValid(tuple = heap_getnext(scan, ForwardScanDirection)))
	{
		Form_pg_database database = (Form_pg_database) GETSTRUCT(tuple);
		MemoryContext old_context = MemoryContextSwitchTo(context);

		/* -2: it is being dropped (DATCONNLIMIT_INVALID_DB) */
		if (database->datallowconn && database->datconnlimit != -2)
			result = lappend_oid(result, database->oid);
		MemoryContextSwitchTo(old_context);
	}
	table_endscan(scan);
	table_close(relation, AccessShareLock);
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	return result;
}

/* Returns a place whose worker is due, without a database: none; *wait is the time until one is. */
static SyncPlace
next_to_start(List **unvisited, long *wait)
{
	TimestampTz now = GetCurrentTimestamp();
	SyncPlace	result = {0};
	bool		is_visiting = false;

	SpinLockAcquire(&shared->mutex);

	/* one that fails waits for its next start, and holds up no other */
	for (int i = 0; i < MOST_WORKERS; i++)
		is_visiting |= OidIsValid(shared->places[i].database) && !shared->places[i].is_known &&
			(shared->places[i].worker != NULL || shared->places[i].start_at > now || shared->places[i].has_no_slot);
	/* one after another: other processes need background workers, too */
	if (!is_visiting && *unvisited != NIL && find_place(linitial_oid(*unvisited), false, true) != NULL)
		*unvisited = list_delete_first(*unvisited);
	for (int i = 0; i < MOST_WORKERS; i++)
	{
		SyncPlace  *place = &shared->places[i];

		if (!OidIsValid(place->database) || place->worker != NULL)
			continue;
		if (place->start_at <= now && !OidIsValid(result.database))
		{
			result = *place;
			place->start_at = TimestampTzPlusMilliseconds(now, START_LIMIT);
		}
		*wait = Min(*wait, TimestampDifferenceMilliseconds(now, place->start_at));
	}
	SpinLockRelease(&shared->mutex);
	return result;
}

/* Starts a worker, or forgets a place whose database is gone. */
static void
start_worker(Oid id, bool second)
{
	bool		exists = list_member_oid(list_databases(), id);
	bool		is_started = false;
	bool		is_news = false;
	BackgroundWorker worker;
	SyncPlace  *place;

	if (exists)
	{
		describe_worker(&worker, second ? "mongo_sync_work_second" : "mongo_sync_work",
						second ? "mongo_sync second worker" : "mongo_sync worker");
		worker.bgw_main_arg = ObjectIdGetDatum(id);
		is_started = RegisterDynamicBackgroundWorker(&worker, NULL);
	}
	SpinLockAcquire(&shared->mutex);
	place = find_place(id, second, false);
	if (place != NULL && !exists)
		place->database = InvalidOid;
	else if (place != NULL)
	{
		is_news = !is_started && !place->has_no_slot;
		place->has_no_slot = !is_started;
		if (!is_started)
			place->start_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), LOOK_PAUSE);
	}
	SpinLockRelease(&shared->mutex);
	if (is_news)
		ereport(LOG,
				(errmsg("could not start a background worker for mongo_sync in database %u", id),
				 errhint("You may need to increase max_worker_processes.")));
}

/*
 * sync_is_database_locked
 *		Tells whether somebody has locked a database to drop, rename or copy it.
 */
bool
sync_is_database_locked(Oid database)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, database, 0);
	if (LockAcquire(&tag, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, RowExclusiveLock, true);
	return false;
}

/*
 * Wakes the workers of databases that somebody has locked.  What they do is cancelled at
 * the second look, and at the third one they are ended.  Returns whether there are any workers.
 */
static bool
wake_unwanted(void)
{
	bool		has_workers = false;

	for (int i = 0; i < MOST_WORKERS; i++)
	{
		SyncPlace  *place = &shared->places[i];
		SyncPlace	seen;

		SpinLockAcquire(&shared->mutex);
		seen = *place;
		SpinLockRelease(&shared->mutex);
		if (seen.worker == NULL)
			continue;
		has_workers = true;
		if (!sync_is_database_locked(seen.database))
			seen.looks = 0;
		else
			kill(seen.pid, seen.looks++ == 0 ? SIGHUP : seen.looks == 2 ? SIGINT : SIGTERM);
		SpinLockAcquire(&shared->mutex);
		if (place->pid == seen.pid)
			place->looks = seen.looks;
		/* no group is to blame for its end */
		if (place->pid == seen.pid && seen.looks > 2)
			place->group = 0;
		SpinLockRelease(&shared->mutex);
	}
	return has_workers;
}

static void
forget_launcher(int code pg_attribute_unused(), Datum unused pg_attribute_unused())
{
	SpinLockAcquire(&shared->mutex);
	shared->launcher = NULL;
	SpinLockRelease(&shared->mutex);
}

/*
 * sync_read_settings
 *		Reads the configuration again after a signal.
 */
void
sync_read_settings(void)
{
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/*
 * mongo_sync_launch
 *		Is the main function of the launcher.
 */
void
mongo_sync_launch(Datum unused pg_attribute_unused())
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "mongo_sync launcher", ALLOCSET_SMALL_SIZES);
	List	   *unvisited = NIL;

	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	before_shmem_exit(forget_launcher, (Datum) 0);
	SpinLockAcquire(&shared->mutex);
	shared->launcher = MyLatch;
	shared->look_everywhere = true;
	SpinLockRelease(&shared->mutex);
	for (;;)
	{
		long		wait;
		SyncPlace	next = {0};
		bool		look_everywhere;

		CHECK_FOR_INTERRUPTS();
		sync_read_settings();
		SpinLockAcquire(&shared->mutex);
		look_everywhere = shared->look_everywhere;
		shared->look_everywhere = false;
		SpinLockRelease(&shared->mutex);
		if (look_everywhere)
		{
			MemoryContextSwitchTo(TopMemoryContext);
			list_free(unvisited);
			unvisited = list_databases();
		}
		MemoryContextSwitchTo(context);
		wait = wake_unwanted() ? LOOK_PAUSE : LONGEST_WAIT;
		if (sync_may_run())
			next = next_to_start(&unvisited, &wait);
		if (OidIsValid(next.database))
			start_worker(next.database, next.is_second);
		else
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, wait, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		MemoryContextReset(context);
	}
}

/* ---------------------- What a worker does with its place ----------------- */

/*
 * sync_place_enter
 *		Notes that this process is the worker of a database, or the second one; false: another one
 *		is.  Sets the group that its predecessor died of; 0: none.
 */
bool
sync_place_enter(Oid database, bool second, int *group)
{
	SyncPlace  *place;
	bool		result;

	own_database = database;
	is_second = second;
	SpinLockAcquire(&shared->mutex);
	place = find_place(database, second, true);
	result = place != NULL && place->worker == NULL;
	if (result)
	{
		place->worker = MyLatch;
		place->pid = MyProcPid;
		place->has_no_slot = false;
		place->looks = 0;
		*group = place->group;
		place->group = 0;
	}
	SpinLockRelease(&shared->mutex);
	return result;
}

/*
 * sync_place_note_group
 *		Notes on which group this worker works; 0: on none.
 */
void
sync_place_note_group(int group)
{
	SyncPlace  *place;

	SpinLockAcquire(&shared->mutex);
	place = own_place();
	if (place != NULL)
		place->group = group;
	SpinLockRelease(&shared->mutex);
}

/*
 * sync_place_take_changed
 *		Tells whether there may be new groups, once.
 */
bool
sync_place_take_changed(void)
{
	SyncPlace  *place;
	bool		result;

	SpinLockAcquire(&shared->mutex);
	place = own_place();
	result = place != NULL && place->has_changed;
	if (result)
		place->has_changed = false;
	SpinLockRelease(&shared->mutex);
	return result;
}

/*
 * sync_place_note_known
 *		Notes that something is synchronized, so that the launcher may visit the next database.
 */
void
sync_place_note_known(void)
{
	SyncPlace  *place;
	Latch	   *launcher;

	SpinLockAcquire(&shared->mutex);
	place = own_place();
	if (place != NULL)
		place->is_known = true;
	launcher = shared->launcher;
	SpinLockRelease(&shared->mutex);
	if (launcher != NULL)
		SetLatch(launcher);
}

/*
 * sync_place_leave
 *		Notes that this worker ends.  Another one starts after so many milliseconds, unless nothing
 *		is synchronized.
 */
void
sync_place_leave(bool nothing_left, int pause)
{
	TimestampTz start_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), pause);
	SyncPlace  *place;
	Latch	   *launcher;

	SpinLockAcquire(&shared->mutex);
	place = own_place();
	if (place != NULL && nothing_left && !place->has_changed)
		*place = (SyncPlace) {0};
	else if (place != NULL)
	{
		place->worker = NULL;
		place->start_at = start_at;
	}
	launcher = shared->launcher;
	SpinLockRelease(&shared->mutex);
	if (launcher != NULL)
		SetLatch(launcher);
}
