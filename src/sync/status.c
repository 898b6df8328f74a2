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

/* mongo_sync.worker_problem(): why no background worker runs in this database; NULL: one runs. */
Datum
mongo_sync_worker_problem(PG_FUNCTION_ARGS)
{
	const char *problem = sync_worker_problem();

	if (problem == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(problem));
}

/* mongo_sync.time_text(bigint): a cluster time, as mongo_fdw.cluster_time has it. */
Datum
mongo_sync_time_text(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(mongo_format_cluster_time((uint64) PG_GETARG_INT64(0))));
}

/* mongo_sync.time(bigint): the seconds of a cluster time. */
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
	const bson_t *reply;
	bson_iter_t iter;
	bson_iter_t found;
	uint32		seconds;
	uint32		increment;
	bool		is_known;

	if (!sync_group_lock(run->group, false))
		return SYNC_BUSY;
	group = sync_group_load(run->group);
	if (group == NULL)
		return SYNC_PAUSED;
	reply = mongo_run_command(CurrentMemoryContext, sync_group_user(group), "local",
							  bson_from_template("{find: 'oplog.rs', sort: {$natural: 1}, limit: 1, singleBatch: true, projection: {ts: 1}}",
												 bson_null()), NULL);
	is_known = bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, "cursor.firstBatch.0.ts", &found) &&
		BSON_ITER_HOLDS_TIMESTAMP(&found);
	if (is_known)
		bson_iter_timestamp(&found, &seconds, &increment);
	(void) sync_run("UPDATE mongo_sync.groups SET oplog_from = $2 WHERE id OPERATOR(pg_catalog.=) $1",
					SYNC_INT4(group->id), is_known ? SYNC_INT8((uint64) seconds << 32 | increment) : SYNC_NULL(INT8OID));
	return SYNC_DONE;
}
