/*-------------------------------------------------------------------------
 *
 * sync_worker.c
 *		Background workers that run the steps of mongo_sync().
 *
 * One worker runs while PostgreSQL does.  At each interval it starts another one in each
 * database, which starts one for each table.  That connects as the table's owner, so that no
 * trigger of the table has the rights of anybody else.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#define CHANGES_IN_A_BATCH	10000

/* What a worker is for, in its bgw_extra. */
typedef struct SyncTask
{
	Oid			database;
	Oid			owner;
	Oid			table;
} SyncTask;

StaticAssertDecl(sizeof(SyncTask) <= BGW_EXTRALEN, "a worker gets its whole task");

pg_noreturn PGDLLEXPORT void mongo_sync_launch(Datum unused);
PGDLLEXPORT void mongo_sync_database(Datum unused);
PGDLLEXPORT void mongo_sync_table(Datum unused);

static void
describe_worker(BackgroundWorker *worker, const char *function)
{
	memset(worker, 0, sizeof(*worker));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker->bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker->bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker->bgw_library_name, "mongo_fdw", sizeof(worker->bgw_library_name));
	strlcpy(worker->bgw_function_name, function, sizeof(worker->bgw_function_name));
	strlcpy(worker->bgw_name, function, sizeof(worker->bgw_name));
	strlcpy(worker->bgw_type, "mongo_fdw sync", sizeof(worker->bgw_type));
}

void
mongo_sync_register_worker(void)
{
	BackgroundWorker worker;

	if (mongo_sync_interval <= 0)
		return;
	describe_worker(&worker, "mongo_sync_launch");
	worker.bgw_restart_time = 10;
	RegisterBackgroundWorker(&worker);
}

/* run_worker: starts a worker, and waits for its end. */
static void
run_worker(const char *function, const SyncTask *task)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;

	describe_worker(&worker, function);
	memcpy(worker.bgw_extra, task, sizeof(*task));
	worker.bgw_notify_pid = MyProcPid;
	if (RegisterDynamicBackgroundWorker(&worker, &handle))
	{
		(void) WaitForBackgroundWorkerShutdown(handle);
		pfree(handle);
	}
	else
		ereport(LOG,
				(errmsg("could not start a background worker for mongo_sync()"),
				 errhint("You may need to increase max_worker_processes.")));
}

/* begin_worker: lets the worker be ended; returns its task. */
static SyncTask
begin_worker(void)
{
	SyncTask	task;

	memcpy(&task, MyBgworkerEntry->bgw_extra, sizeof(task));
	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	return task;
}

/* databases: returns the OIDs of all databases that can be connected to, also after its end. */
static List *
databases(void)
{
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
		MemoryContext old_context = MemoryContextSwitchTo(TopMemoryContext);

		/* -2: it is being dropped (DATCONNLIMIT_INVALID_DB) */
		if (database->datallowconn && !database->datistemplate && database->datconnlimit != -2)
			result = lappend_oid(result, database->oid);
		MemoryContextSwitchTo(old_context);
	}
	table_endscan(scan);
	table_close(relation, AccessShareLock);
	CommitTransactionCommand();
	return result;
}

/* mongo_sync_launch: the main function of the worker that runs as long as PostgreSQL does. */
void
mongo_sync_launch(Datum unused pg_attribute_unused())
{
	(void) begin_worker();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	for (;;)
	{
		List	   *all = mongo_sync_interval > 0 ? databases() : NIL;
		ListCell   *cell;

		foreach(cell, all)
			run_worker("mongo_sync_database", &(SyncTask) {.database = lfirst_oid(cell)});
		list_free(all);
		/* a signal's latch was reset by the wait for a worker */
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 mongo_sync_interval > 0 ? mongo_sync_interval : 60000, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/* run: runs a statement in a transaction; returns the rows' values as text, in TopMemoryContext. */
static List *
run(const char *sql)
{
	List	   *values = NIL;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	SPI_connect();
	PushActiveSnapshot(GetTransactionSnapshot());
	pgstat_report_activity(STATE_RUNNING, sql);
	SPI_execute(sql, false, 0);
	for (uint64 row = 0; SPI_tuptable != NULL && row < SPI_processed; row++)
	{
		for (int column = 1; column <= SPI_tuptable->tupdesc->natts; column++)
		{
			const char *value = SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column);
			MemoryContext old_context = MemoryContextSwitchTo(TopMemoryContext);

			values = lappend(values, pstrdup(value == NULL ? "" : value));
			MemoryContextSwitchTo(old_context);
		}
	}
	SPI_finish();
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_stat(true);
	pgstat_report_activity(STATE_IDLE, NULL);
	return values;
}

/*
 * connect_to_database
 *		Connects as the task's owner, or as a superuser if it has none.  Returns the schema of the
 *		extension, quoted; NULL if it is not there.
 */
static const char *
connect_to_database(const SyncTask *task)
{
	List	   *names;

	BackgroundWorkerInitializeConnectionByOid(task->database, task->owner, 0);
	SetConfigOption("search_path", "pg_catalog, pg_temp", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("default_transaction_isolation", "read committed", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("default_transaction_read_only", "off", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("row_security", "on", PGC_SUSET, PGC_S_OVERRIDE);
	/* other tables wait for this one */
	SetConfigOption("lock_timeout", "10s", PGC_SUSET, PGC_S_OVERRIDE);
	/* whoever owns the database may create a table of this name */
	names = run("SELECT e.extnamespace::regnamespace FROM pg_extension e JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid"
				" JOIN pg_class c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid WHERE e.extname = 'mongo_fdw' AND c.relname = 'mongo_sync_data'");
	return names == NIL ? NULL : linitial(names);
}

/*
 * mongo_sync_database
 *		The main function of the worker in a database: has each table brought into step.
 *
 * After an error a table has to wait for as long as it had not been in step, at most ten seconds.
 */
void
mongo_sync_database(Datum unused pg_attribute_unused())
{
	SyncTask	task = begin_worker();
	const char *schema = connect_to_database(&task);
	List	   *tables;

	if (schema == NULL)
		return;
	tables = run(psprintf("SELECT c.oid, c.relowner FROM %s.mongo_sync_data d JOIN pg_class c ON c.oid = d.local_table"
						  " WHERE (d.stopped_by IS NULL OR d.follow) AND (d.failed_at IS NULL OR now() - d.failed_at >= least(d.failed_at - d.last_run, '10 s'))",
						  schema));
	for (int i = 0; i + 1 < list_length(tables); i += 2)
	{
		task.table = atooid(list_nth(tables, i));
		task.owner = atooid(list_nth(tables, i + 1));
		run_worker("mongo_sync_table", &task);
	}
}

/* mongo_sync_table: the main function of the worker that brings a table into step. */
void
mongo_sync_table(Datum unused pg_attribute_unused())
{
	SyncTask	task = begin_worker();
	MemoryContext context = CurrentMemoryContext;
	const char *schema = connect_to_database(&task);

	if (schema == NULL)
		return;
	PG_TRY();
	{
		(void) run(psprintf("SELECT %s.mongo_sync_prepare(foreign_table, local_table::text, %d) FROM %s.mongo_sync_data WHERE local_table = %u",
							schema, CHANGES_IN_A_BATCH, schema, task.table));
		while (strcmp(linitial(run(psprintf("SELECT %s.mongo_sync_step(%u::regclass, %d)", schema, task.table,
											CHANGES_IN_A_BATCH))), "t") == 0)
			CHECK_FOR_INTERRUPTS();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		EmitErrorReport();
		FlushErrorState();
		AbortCurrentTransaction();
		/* unless another session brings it into step */
		if (error->sqlerrcode != ERRCODE_OBJECT_IN_USE)
			(void) run(psprintf("SELECT %s.mongo_sync_fail(%u::regclass, %s::text)", schema, task.table,
								quote_literal_cstr(error->message)));
	}
	PG_END_TRY();
}
