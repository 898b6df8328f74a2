/*-------------------------------------------------------------------------
 *
 * worker.c
 *		The background workers of a database, which apply changes by themselves.
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
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync_internal.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid_d.h"
#include "catalog/pg_extension_d.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* All in milliseconds. */
#define LONGEST_WAIT		10000	/* for an event, of a getMore */
#define WAIT_WHILE_COPYING	100
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

pg_noreturn PGDLLEXPORT void mongo_sync_work(Datum database);
pg_noreturn PGDLLEXPORT void mongo_sync_work_second(Datum database);

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

static bool is_second = false;	/* this process is the second worker of its
								 * database */
static List *tasks = NIL;		/* SyncTask * */
static bool nothing_left = false;
static bool does_all = false;	/* no second worker can be started */
static int	restart_pause = RESTART_PAUSE;
static TimeoutId last_resort;

/* Notes that the process ends. */
static void
leave_database(int code pg_attribute_unused(), Datum unused pg_attribute_unused())
{
	sync_place_leave(nothing_left, restart_pause);
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
	sync_read_settings();
	if (!sync_may_run())
		leave(0);
	if (sync_is_database_locked(MyDatabaseId))
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
	int			limit = unit == sync_copy_unit ? sync_time_limit * TIMES_FOR_RANGE : sync_time_limit;
	MemoryContext context = CurrentMemoryContext;
	SyncResult	result;

	leave_if_unwanted();
	if (!begin_unit())
		return SYNC_PAUSED;
	sync_place_note_group(run->group);
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
	sync_place_note_group(0);
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
		does_all = !is_second && needs_second && !sync_wake(true);
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
			(void) sync_wake(false);
	}
	nothing_left = is_second ? tasks == NIL : groups == NIL;
	if (!nothing_left)
		sync_place_note_known();
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
	if (!sync_place_enter(database, is_second, &died_of))
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
		if (sync_place_take_changed() || GetCurrentTimestamp() >= list_at)
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
