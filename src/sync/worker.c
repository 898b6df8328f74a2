/*-------------------------------------------------------------------------
 *
 * worker.c
 *		Background workers, which apply changes by themselves.
 *
 * A launcher, without a database, starts a worker in each database that has something
 * synchronized.  It knows of them by shared memory: a CALL enters its database.  After a start it
 * visits each database once.
 *
 * The worker applies the changes of all groups.  So nothing in it may take long: a second worker of
 * the database, which runs only while it is needed, copies ranges, and takes over groups whose
 * units of work take long, be it by a trigger, a lock or a server that does not reply.
 *
 * A worker waits for the change streams of all groups together, outside of any transaction.  It
 * runs each unit of work in a transaction of its own, within a time limit: a trigger may catch the
 * first signal, but not the second one, which ends the process.  It connects as the bootstrap
 * superuser; a unit gives itself the rights of the tables' owner.
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
#include "catalog/namespace.h"
#include "catalog/pg_authid_d.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension_d.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "pgstat.h"
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
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define MOST_WORKERS		256

/* All in milliseconds. */
#define LONGEST_WAIT		10000	/* for an event, of a getMore */
#define WAIT_WHILE_COPYING	100
#define LOOK_PAUSE			1000	/* between looks at what others do */
#define LONGEST_PAUSE		5000	/* without a look at the streams' servers */
#define LONG_UNIT			1000	/* others should not wait so long for a
									 * unit of work */
#define LONGEST_UNIT		3000	/* nor ever longer */
#define TIMES_OTHERS		10	/* a group is left to the second worker so
								 * many times as long */
#define LIST_PAUSE			10000
#define OPLOG_PAUSE			300000
#define SHORTEST_BACKOFF	200
#define LONGEST_BACKOFF		10000
#define START_LIMIT			10000	/* for a worker to appear */
#define RESTART_PAUSE		5000	/* after an error */
#define LAST_RESORT			3000	/* from the first signal to the second one */

/* A range of a copy has more to do than a step, which takes fewer changes after it was interrupted. */
#define TIMES_FOR_RANGE		10

pg_noreturn PGDLLEXPORT void mongo_sync_launch(Datum unused);
pg_noreturn PGDLLEXPORT void mongo_sync_work(Datum database);
pg_noreturn PGDLLEXPORT void mongo_sync_work_second(Datum database);

static bool is_enabled = true;
static int	time_limit = 60000;

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
static bool is_second = false;	/* this process is the second worker of its
								 * database */
static Oid	own_database = InvalidOid;	/* also before it is connected */
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
 * Has this database's worker, or the second one, look for groups.  Starts it if it
 * does not run; false if it could not be started.
 */
static bool
wake_worker(bool second)
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
		(void) wake_worker(false);
}

static bool
may_run(void)
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
	if (!may_run())
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
							&time_limit, time_limit, 0, INT_MAX / TIMES_FOR_RANGE - LAST_RESORT,
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
	for (int i = 0; i < MOST_WORKERS; i++)
		is_visiting |= OidIsValid(shared->places[i].database) && !shared->places[i].is_known;
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

/* Tells whether somebody has locked a database to drop, rename or copy it. */
static bool
is_database_locked(Oid database)
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
		if (!is_database_locked(seen.database))
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

/* Reads the configuration again after a signal. */
static void
read_settings(void)
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
		read_settings();
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
		if (may_run())
			next = next_to_start(&unvisited, &wait);
		if (OidIsValid(next.database))
			start_worker(next.database, next.is_second);
		else
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, wait, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		MemoryContextReset(context);
	}
}

/* ------------------------- The worker of a database ----------------------- */

/* What the worker knows of a group. */
typedef struct SyncTask
{
	SyncRun    *run;
	bool		may_step;		/* otherwise the other worker does */
	bool		may_copy;
	int			failures;		/* of steps, in a row */
	int			copy_failures;
	TimestampTz step_at;		/* not before */
	TimestampTz copy_at;
	TimestampTz oplog_at;
} SyncTask;

static List *tasks = NIL;		/* SyncTask * */
static bool nothing_left = false;
static bool does_all = false;	/* no second worker can be started */
static int	restart_pause = RESTART_PAUSE;
static TimeoutId last_resort;

/* Notes that the worker ends. */
static void
leave_database(int code pg_attribute_unused(), Datum unused pg_attribute_unused())
{
	TimestampTz start_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), restart_pause);
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

/* Notes that the worker runs; false: another one does.  Sets the group that its predecessor died of. */
static bool
enter_database(Oid id, int *group)
{
	SyncPlace  *place;
	bool		result;

	SpinLockAcquire(&shared->mutex);
	place = find_place(id, is_second, true);
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

/* Notes on which group the worker works; 0: on none. */
static void
note_group(int group)
{
	SyncPlace  *place;

	SpinLockAcquire(&shared->mutex);
	place = own_place();
	if (place != NULL)
		place->group = group;
	SpinLockRelease(&shared->mutex);
}

/* Tells whether there may be new groups. */
static bool
take_changed(void)
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

/* Notes that something is synchronized, so that the launcher may visit the next database. */
static void
note_known(void)
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

/* Ends the process; the launcher starts another one later, unless there is nothing to do. */
pg_noreturn static void
leave(int pause)
{
	ListCell   *cell;

	restart_pause = pause;
	foreach(cell, tasks)
		sync_run_close(((SyncTask *) lfirst(cell))->run);
	proc_exit(0);
}

/* Leaves if somebody has locked the database, or it was turned off. */
static void
leave_if_unwanted(void)
{
	CHECK_FOR_INTERRUPTS();
	read_settings();
	if (!may_run())
		leave(0);
	if (is_database_locked(MyDatabaseId))
		leave(LOOK_PAUSE);
}

/* Settings of the process, whatever ALTER DATABASE ... SET says. */
static const struct
{
	const char *name;
	const char *value;
}			worker_settings[] =
{
	{"role", "none"},
	{"search_path", "pg_catalog, pg_temp"},
	{"default_transaction_isolation", "read committed"},
	{"default_transaction_read_only", "off"},
	{"default_transaction_deferrable", "off"},
	{"session_replication_role", "origin"},
	{"row_security", "off"},
	{"mongo_fdw.cluster_time", ""},
	{"statement_timeout", "0"},
	{"transaction_timeout", "0"},
	{"idle_in_transaction_session_timeout", "0"},
	{"idle_session_timeout", "0"},
	/* other groups wait meanwhile */
	{"lock_timeout", "1s"},
};

static void
connect_to_database(Oid id)
{
	BackgroundWorkerInitializeConnectionByOid(id, InvalidOid, 0);
	SetSessionAuthorization(BOOTSTRAP_SUPERUSERID, true);
	for (size_t i = 0; i < lengthof(worker_settings); i++)
	{
		if (GetConfigOption(worker_settings[i].name, true, false) != NULL)
			SetConfigOption(worker_settings[i].name, worker_settings[i].value, PGC_SUSET, PGC_S_OVERRIDE);
	}
}

/* Ends the process, which a trigger cannot catch. */
static void
end_process(void)
{
	restart_pause = 0;
	kill(MyProcPid, SIGTERM);
}

/* Releases what a unit may have left behind for the next one, of another owner. */
static void
clean_session(void)
{
	Oid			namespace;
	Oid			toast;

	LockReleaseSession(USER_LOCKMETHOD);
	GetTempNamespaceState(&namespace, &toast);
	if (!OidIsValid(namespace))
		return;
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	ResetTempTableNamespace();
	PopActiveSnapshot();
	CommitTransactionCommand();
}

/* Begins one with SPI; false if the extension is not there any more. */
static bool
begin_unit(void)
{
	Oid			extension;
	LOCKTAG		tag;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	extension = get_extension_oid("mongo_sync", true);
	if (!OidIsValid(extension))
	{
		CommitTransactionCommand();
		return false;
	}
	/* it is being dropped */
	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, ExtensionRelationId, extension, 0);
	if (LockAcquire(&tag, AccessShareLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		leave(LOOK_PAUSE);
	SPI_connect();
	PushActiveSnapshot(GetTransactionSnapshot());
	return true;
}

static void
end_transaction(void)
{
	SPI_finish();
	PopActiveSnapshot();
	CommitTransactionCommand();
}

/* Runs a unit of work in a transaction, within the time limit. */
static SyncResult
run_unit(SyncTask *task, SyncUnit *unit, int max_wait)
{
	SyncRun    *run = task->run;
	int			limit = unit == sync_copy_unit ? time_limit * TIMES_FOR_RANGE : time_limit;
	MemoryContext context = CurrentMemoryContext;
	SyncResult	result;

	leave_if_unwanted();
	if (!begin_unit())
		return SYNC_PAUSED;
	note_group(run->group);
	pgstat_report_activity(STATE_RUNNING, unit == sync_copy_unit ? "copying a range" : "applying changes");
	run->is_hurried = !is_second && !does_all && list_length(tasks) > 1;
	if (run->is_hurried)
		limit = limit > 0 ? Min(limit, LONGEST_UNIT) : LONGEST_UNIT;
	if (limit > 0)
	{
		enable_timeout_after(STATEMENT_TIMEOUT, limit);
		enable_timeout_after(last_resort, limit + LAST_RESORT);
	}
	result = sync_run_unit(run, unit, max_wait);
	disable_timeout(STATEMENT_TIMEOUT, false);
	disable_timeout(last_resort, false);
	QueryCancelPending = false;
	end_transaction();
	clean_session();
	note_group(0);
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, NULL);
	MemoryContextSwitchTo(context);
	return result;
}

/* Returns the time in so many milliseconds. */
static TimestampTz
in_future(long milliseconds)
{
	return TimestampTzPlusMilliseconds(GetCurrentTimestamp(), milliseconds);
}

/* Returns when to try again; a unit that took long waits as long, for the sake of others. */
static TimestampTz
after_failure(int failures, TimestampTz begun)
{
	long		backoff = Min(LONGEST_BACKOFF, SHORTEST_BACKOFF << Min(failures - 1, 10));

	return in_future(Max(backoff, TimestampDifferenceMilliseconds(begun, GetCurrentTimestamp())));
}

/* Closes the stream of a group that is not synchronized any more. */
static void
forget_group(SyncTask *task)
{
	tasks = list_delete_ptr(tasks, task);
	sync_run_close(task->run);
	MemoryContextDelete(task->run->context);
	pfree(task);
}

/* Makes a task for a group. */
static SyncTask *
add_group(int id)
{
	MemoryContext old_context = MemoryContextSwitchTo(TopMemoryContext);
	SyncTask   *task = palloc0(sizeof(SyncTask));

	task->run = sync_run_create(id, TopMemoryContext);
	task->run->is_copying = true;	/* as far as is known */
	tasks = lappend(tasks, task);
	MemoryContextSwitchTo(old_context);
	return task;
}

/* Notes that a group has ended the last process. */
static void
note_end(int id)
{
	if (!sync_group_lock(id, false))
		return;
	sync_group_note_failure(id, "the background worker was ended while it applied a batch, or took too long for it", "the background worker was ended");
	sync_group_note_slow(id, LONGEST_BACKOFF * TIMES_OTHERS);
}

/*
 * Makes a task for each group of this worker, and of no other one.  'died_of' is the group
 * that has ended the last process.
 */
static void
list_groups(int died_of)
{
	List	   *groups = NIL;
	List	   *kept = NIL;
	bool		needs_second = false;

	leave_if_unwanted();
	if (begin_unit())
	{
		if (died_of != 0)
			note_end(died_of);
		groups = sync_groups();
		foreach_ptr(const SyncListed, group, groups)
			needs_second |= group->is_slow || group->is_copied;
		does_all = !is_second && needs_second && !wake_worker(true);
		foreach_ptr(const SyncListed, group, groups)
		{
			SyncTask   *task = NULL;

			if (does_all || group->is_slow == is_second || (is_second && group->is_copied))
			{
				foreach_ptr(SyncTask, other, tasks)
					task = other->run->group == group->id ? other : task;
				task = task != NULL ? task : add_group(group->id);
				task->may_step = does_all || group->is_slow == is_second;
				task->may_copy = does_all || is_second;
				if (group->id == died_of)
					task->step_at = task->copy_at = in_future(LONGEST_BACKOFF);
				kept = lappend(kept, task);
			}
		}
		end_transaction();
	}
	foreach_ptr(SyncTask, task, list_copy(tasks))
	{
		if (list_member_ptr(kept, task))
			continue;
		forget_group(task);
		if (is_second)
			(void) wake_worker(false);
	}
	nothing_left = is_second ? tasks == NIL : groups == NIL;
	if (!nothing_left)
		note_known();
}

/* ------------------------------ Groups in turn ---------------------------- */

/* Requests the next batch of changes, and does not wait for it. */
static SyncResult
request_unit(SyncRun *run, int max_wait)
{
	mongo_event_stream_request(run->stream, max_wait, run->batch_size);
	return SYNC_DONE;
}

/* Copies a range of a group, if one is left; returns whether it has done so. */
static bool
copy_one_range(SyncTask *task)
{
	TimestampTz begun = GetCurrentTimestamp();
	SyncResult	result;

	if (!task->may_copy || !task->run->is_copying || task->copy_at > begun)
		return false;
	result = run_unit(task, sync_copy_unit, 0);
	task->copy_failures = result == SYNC_FAILED ? task->copy_failures + 1 : 0;
	if (result == SYNC_FAILED)
		task->copy_at = after_failure(task->copy_failures, begun);
	else if (result != SYNC_DONE)
		task->copy_at = in_future(LOOK_PAUSE);
	return result == SYNC_DONE;
}

/* Applies the changes of a group that have arrived, and requests the next ones. */
static bool
step(SyncTask *task)
{
	SyncRun    *run = task->run;
	TimestampTz begun = GetCurrentTimestamp();
	SyncResult	result;

	if (!task->may_step || task->step_at > begun ||
		(run->stream != NULL && mongo_event_stream_is_requested(run->stream) && !mongo_event_stream_is_ready(run->stream)))
		return false;
	result = run_unit(task, sync_step, 1);
	if (result == SYNC_FAILED && sync_run_is_lost(run) && run_unit(task, sync_follow_unit, 0) == SYNC_DONE)
		return true;
	if (result == SYNC_PAUSED)
		sync_run_close(run);
	/* it stays open between units, without a transaction */
	if ((result == SYNC_DONE || result == SYNC_AT_PRESENT) && run->stream != NULL &&
		!mongo_event_stream_is_closed(run->stream) && !mongo_event_stream_is_requested(run->stream) &&
		run_unit(task, request_unit, !run->is_at_end ? 1 : run->is_copying ? WAIT_WHILE_COPYING : LONGEST_WAIT) == SYNC_FAILED)
		result = SYNC_FAILED;
	task->failures = result == SYNC_FAILED ? task->failures + 1 : 0;
	if (result == SYNC_FAILED)
		task->step_at = after_failure(task->failures, begun);
	else if (result == SYNC_BUSY || result == SYNC_PAUSED || run->stream == NULL)
		task->step_at = in_future(LOOK_PAUSE);
	else if (task->oplog_at <= begun)
	{
		(void) run_unit(task, sync_oplog_unit, 0);
		task->oplog_at = in_future(OPLOG_PAUSE);
	}
	return result == SYNC_DONE;
}

/* Waits for a reply to any of the streams, or until a group is due. */
static void
wait_for_changes(void)
{
	WaitEventSet *set = mongo_create_wait_event_set(CurrentMemoryContext, list_length(tasks) + 2);
	TimestampTz now = GetCurrentTimestamp();
	long		wait = LONGEST_PAUSE;
	WaitEvent	event;

	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	foreach_ptr(const SyncTask, task, tasks)
	{
		pgsocket	socket = task->run->stream == NULL ? PGINVALID_SOCKET : mongo_event_stream_socket(task->run->stream);

		if (!task->may_step)
			;
		else if (task->step_at > now)
			wait = Min(wait, TimestampDifferenceMilliseconds(now, task->step_at));
		else if (socket == PGINVALID_SOCKET || !mongo_event_stream_is_requested(task->run->stream))
			wait = 0;
		else
			AddWaitEventToSet(set, WL_SOCKET_READABLE, socket, NULL, NULL);
		if (task->may_copy && task->run->is_copying)
			wait = Min(wait, task->copy_at > now ? TimestampDifferenceMilliseconds(now, task->copy_at) : 0);
	}
	pgstat_report_stat(true);
	(void) WaitEventSetWait(set, wait, &event, 1, PG_WAIT_EXTENSION);
	FreeWaitEventSet(set);
	ResetLatch(MyLatch);
}

/* Leaves a group whose unit of work has taken long to the second worker. */
static SyncResult
note_slow(SyncRun *run, int elapsed)
{
	sync_group_note_slow(run->group, elapsed * TIMES_OTHERS);
	return SYNC_DONE;
}

/* Does what both workers of a database do. */
pg_noreturn static void
work_in_database(Oid database)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "mongo_sync worker", ALLOCSET_DEFAULT_SIZES);
	TimestampTz list_at = 0;
	int			died_of = 0;

	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	own_database = database;
	if (!enter_database(database, &died_of))
		proc_exit(0);
	before_shmem_exit(leave_database, (Datum) 0);
	connect_to_database(database);
	last_resort = RegisterTimeout(USER_TIMEOUT, end_process);
	for (;;)
	{
		bool		has_worked = false;

		MemoryContextSwitchTo(context);
		MemoryContextReset(context);
		leave_if_unwanted();
		if (take_changed() || GetCurrentTimestamp() >= list_at)
		{
			list_groups(died_of);
			died_of = 0;
			list_at = in_future(LIST_PAUSE);
		}
		if (nothing_left)
			leave(0);
		foreach_ptr(SyncTask, task, tasks)
		{
			TimestampTz begun;
			long		elapsed;

			has_worked |= copy_one_range(task);
			begun = GetCurrentTimestamp();
			has_worked |= step(task);
			elapsed = TimestampDifferenceMilliseconds(begun, GetCurrentTimestamp());
			if (elapsed < LONG_UNIT)
				continue;
			/* smaller batches take less time */
			task->run->batch_size = Max(1, task->run->batch_size / 4);
			if (list_length(tasks) > 1 || is_second)
				(void) run_unit(task, note_slow, (int) elapsed);
			list_at = is_second ? list_at : 0;
		}
		if (!has_worked)
			wait_for_changes();
	}
}

/*
 * mongo_sync_work
 *		Is the main function of the worker of a database.
 */
void
mongo_sync_work(Datum database)
{
	work_in_database(DatumGetObjectId(database));
}

/*
 * mongo_sync_work_second
 *		Is the main function of the second worker of a database.
 */
void
mongo_sync_work_second(Datum database)
{
	is_second = true;
	work_in_database(DatumGetObjectId(database));
}
