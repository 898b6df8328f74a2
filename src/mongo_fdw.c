/*-------------------------------------------------------------------------
 *
 * mongo_fdw.c
 *		The entry points: functions that PostgreSQL calls, and the files that have them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote.h"
#include "catalog.h"
#include "common.h"
#include "exec.h"
#include "plan.h"
#include "options.h"
#include "sync.h"

#include "foreign/fdwapi.h"
#include "fmgr.h"
#include "miscadmin.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(mongo_fdw_handler);

void		_PG_init(void);

/*
 * _PG_init
 *		Defines the settings, and asks for shared memory, when the library is loaded.
 */
void
_PG_init(void)
{
	mongo_install_allocator();
	mongo_define_settings();
	mongo_install_batched_joins(&mongo_batched_join_methods);
	mongo_install_planner(&mongo_batched_subqueries_methods);
	mongo_register_transaction_callbacks();

	/* in shared_preload_libraries: done once, and inherited by all backends */
	if (process_shared_preload_libraries_in_progress)
	{
		mongo_is_preloaded = true;
		mongo_initialize_library();
		mongo_activity_initialize();
	}
	mongo_sync_initialize();
}

/*
 * mongo_fdw_handler
 *		Returns the table of PostgreSQL's callbacks.
 */
Datum
mongo_fdw_handler(PG_FUNCTION_ARGS pg_attribute_unused())
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	/* src/plan: relation.c, paths.c, join.c, upper.c, scan_plan.c */
	routine->GetForeignRelSize = mongo_get_foreign_rel_size;
	routine->GetForeignPaths = mongo_get_foreign_paths;
	routine->GetForeignJoinPaths = mongo_get_foreign_join_paths;
	routine->GetForeignUpperPaths = mongo_get_foreign_upper_paths;
	routine->GetForeignPlan = mongo_get_foreign_plan;

	/* src/exec: foreign_scan.c, explain.c */
	routine->BeginForeignScan = mongo_begin_foreign_scan;
	routine->IterateForeignScan = mongo_iterate_foreign_scan;
	routine->ReScanForeignScan = mongo_rescan_foreign_scan;
	routine->EndForeignScan = mongo_end_foreign_scan;
	routine->ExplainForeignScan = mongo_explain_foreign_scan;

	/* src/plan/upper.c, src/exec/async.c */
	routine->IsForeignPathAsyncCapable = mongo_is_foreign_path_async_capable;
	routine->ForeignAsyncRequest = mongo_foreign_async_request;
	routine->ForeignAsyncConfigureWait = mongo_foreign_async_configure_wait;
	routine->ForeignAsyncNotify = mongo_foreign_async_notify;

	/* src/catalog: analyze.c, import.c */
	routine->AnalyzeForeignTable = mongo_analyze_foreign_table;
	mongo_add_statistics_import(routine);
	routine->ImportForeignSchema = mongo_import_foreign_schema;

	/* modify.c in src/plan and src/exec, src/exec/explain.c */
	routine->AddForeignUpdateTargets = mongo_add_foreign_update_targets;
	routine->IsForeignRelUpdatable = mongo_is_foreign_rel_updatable;
	routine->PlanForeignModify = mongo_plan_foreign_modify;
	routine->BeginForeignModify = mongo_begin_foreign_modify;
	routine->BeginForeignInsert = mongo_begin_foreign_insert;
	routine->GetForeignModifyBatchSize = mongo_get_foreign_modify_batch_size;
	routine->ExecForeignInsert = mongo_exec_foreign_insert;
	routine->ExecForeignBatchInsert = mongo_exec_foreign_batch_insert;
	routine->ExecForeignUpdate = mongo_exec_foreign_update;
	routine->ExecForeignDelete = mongo_exec_foreign_delete;
	routine->EndForeignModify = mongo_end_foreign_modify;
	routine->EndForeignInsert = mongo_end_foreign_modify;
	routine->ExplainForeignModify = mongo_explain_foreign_modify;

	/* src/plan/modify.c, src/exec/direct_modify.c */
	routine->PlanDirectModify = mongo_plan_direct_modify;
	routine->BeginDirectModify = mongo_begin_direct_modify;
	routine->IterateDirectModify = mongo_iterate_direct_modify;
	routine->EndDirectModify = mongo_end_direct_modify;
	routine->ExplainDirectModify = mongo_explain_direct_modify;

	/* src/exec/direct_modify.c */
	routine->ExecForeignTruncate = mongo_exec_foreign_truncate;

	PG_RETURN_POINTER(routine);
}
