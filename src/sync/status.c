/*-------------------------------------------------------------------------
 *
 * status.c
 *		What the views of mongo_sync show beside the tables of the state.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync_internal.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(mongo_sync_worker_problem);
PG_FUNCTION_INFO_V1(mongo_sync_time_text);
PG_FUNCTION_INFO_V1(mongo_sync_time);

/*
 * mongo_sync_worker_problem
 *		mongo_sync.worker_problem(): why no background worker runs in this database; NULL: one
 *		runs.
 */
Datum
mongo_sync_worker_problem(PG_FUNCTION_ARGS)
{
	const char *problem = sync_worker_problem();

	if (problem == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(problem));
}

/*
 * mongo_sync_time_text
 *		mongo_sync.time_text(bigint): a cluster time, as mongo_fdw.cluster_time has it.
 */
Datum
mongo_sync_time_text(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(mongo_format_cluster_time((uint64) PG_GETARG_INT64(0))));
}

/*
 * mongo_sync_time
 *		mongo_sync.time(bigint): the seconds of a cluster time.
 */
Datum
mongo_sync_time(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(time_t_to_timestamptz((pg_time_t) ((uint64) PG_GETARG_INT64(0) >> 32)));
}

/*
 * sync_oplog_unit
 *		Stores when MongoDB's oplog begins; NULL if the role may not read it.
 */
SyncResult
sync_oplog_unit(SyncRun *run, int max_wait pg_attribute_unused())
{
	SyncGroup  *group;
	uint64		begin;

	if (!sync_group_lock(run->group, false))
		return SYNC_BUSY;
	group = sync_group_load(run->group);
	if (group == NULL)
		return SYNC_PAUSED;
	begin = sync_oplog_begin(sync_group_user(group));
	(void) sync_run("UPDATE mongo_sync.groups SET oplog_from = $2 WHERE id = $1",
					SYNC_INT4(group->id), begin == 0 ? SYNC_NULL(INT8OID) : SYNC_INT8(begin));
	return SYNC_DONE;
}
