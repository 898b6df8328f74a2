/*-------------------------------------------------------------------------
 *
 * monitoring.c
 *		Functions that show, close and reset connections and counters.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_user_mapping.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(mongo_fdw_get_connections);
PG_FUNCTION_INFO_V1(mongo_fdw_stat_connections_get);
PG_FUNCTION_INFO_V1(mongo_fdw_disconnect);
PG_FUNCTION_INFO_V1(mongo_fdw_disconnect_all);
PG_FUNCTION_INFO_V1(mongo_fdw_health_get);
PG_FUNCTION_INFO_V1(mongo_fdw_stat_get);
PG_FUNCTION_INFO_V1(mongo_fdw_stat_reset);
PG_FUNCTION_INFO_V1(mongo_fdw_stat_statements_reset);

/* Converts a C string to a text; NULL becomes an SQL NULL. */
static Datum
text_or_null(const char *text, bool *is_null)
{
	*is_null = text == NULL;
	return text != NULL ? CStringGetTextDatum(text) : (Datum) 0;
}

static void
put_view_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* ------------------------------- connections -------------------------------- */

/* Returns a mapping's user, "public", or NULL if the mapping was dropped. */
static const char *
mapping_user(Oid mapping)
{
	HeapTuple	tuple = SearchSysCache1(USERMAPPINGOID, ObjectIdGetDatum(mapping));
	Oid			user;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	user = ((Form_pg_user_mapping) GETSTRUCT(tuple))->umuser;
	ReleaseSysCache(tuple);
	return OidIsValid(user) ? GetUserNameFromId(user, true) : "public";
}

static const char *const state_names[] = {
	[MONGO_CONNECTING] = "connecting",
	[MONGO_IDLE] = "idle",
	[MONGO_OPEN_CURSOR] = "open cursor",
	[MONGO_ACTIVE] = "active",
	[MONGO_IN_TRANSACTION] = "in transaction",
};

/* Adds a connection's row to the result. */
static void
put_connection(FunctionCallInfo fcinfo, const MongoConnectionInfo *info)
{
	ForeignServer *server = GetForeignServerExtended(info->serverid, FSV_MISSING_OK);
	Datum		values[14];
	bool		nulls[14] = {false};

	values[0] = text_or_null(server != NULL ? server->servername : NULL, &nulls[0]);
	values[1] = text_or_null(mapping_user(info->mapping), &nulls[1]);
	values[2] = text_or_null(info->host, &nulls[2]);
	values[3] = text_or_null(*info->role != '\0' ? info->role : NULL, &nulls[3]);
	values[4] = CStringGetTextDatum(state_names[info->state]);
	values[5] = BoolGetDatum(info->is_valid);
	values[6] = BoolGetDatum(info->in_transaction);
	values[7] = DirectFunctionCall2(timestamp_mi, TimestampTzGetDatum(GetCurrentTimestamp()),
									TimestampTzGetDatum(info->connected_at));
	values[8] = TimestampTzGetDatum(info->idle_since);
	nulls[8] = info->idle_since == 0;
	values[9] = Int64GetDatum(mongo_traffic_commands(&info->traffic));
	values[10] = Int64GetDatum(info->traffic.counters[MONGO_COUNT_BYTES_RECEIVED]);
	values[11] = Int64GetDatum(info->traffic.counters[MONGO_COUNT_BYTES_SENT]);
	values[12] = text_or_null(info->compressor, &nulls[12]);
	values[13] = BoolGetDatum(info->has_tls);
	put_view_row(fcinfo, values, nulls);
}

/*
 * mongo_fdw_get_connections
 *		Returns a row for each connection of this session.
 */
Datum
mongo_fdw_get_connections(PG_FUNCTION_ARGS)
{
	InitMaterializedSRF(fcinfo, 0);
	foreach_ptr(const MongoConnectionInfo, info, mongo_connections())
		put_connection(fcinfo, info);
	return (Datum) 0;
}

/* Tells whether the caller may see what the role does, as in PostgreSQL's own statistics. */
static bool
may_see(Oid userid)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		has_privs_of_role(GetUserId(), userid);
}

/*
 * mongo_fdw_stat_connections_get
 *		Returns a row for each connection of any session that the caller may see.
 *
 * Raises 55000 without shared memory, unless it has an argument.
 */
Datum
mongo_fdw_stat_connections_get(PG_FUNCTION_ARGS)
{
	int			count;
	MongoSharedConnection *shown;

	InitMaterializedSRF(fcinfo, 0);
	if (PG_NARGS() > 0 && !mongo_is_preloaded)
		return (Datum) 0;
	shown = mongo_shared_connections(&count);
	for (int i = 0; i < count; i++)
	{
		const MongoSharedConnection *row = &shown[i];
		bool		nulls[8] = {false};
		Datum		values[8] = {
			Int32GetDatum(row->pid),
			ObjectIdGetDatum(row->dbid),
			ObjectIdGetDatum(row->serverid),
			ObjectIdGetDatum(row->userid),
			text_or_null(*row->host != '\0' ? row->host : NULL, &nulls[4]),
			CStringGetTextDatum(state_names[row->state]),
			TimestampTzGetDatum(row->state_change),
			TimestampTzGetDatum(row->connected_at)
		};

		nulls[7] = row->connected_at == 0;
		if (may_see(row->userid))
			put_view_row(fcinfo, values, nulls);
	}
	return (Datum) 0;
}

/* Adds a row to mongo_fdw_health; 'serverid' may be InvalidOid, and 'since' 0. */
static void
put_problem(FunctionCallInfo fcinfo, Oid serverid, const char *state, TimestampTz since,
			const char *problem, const char *remedy)
{
	bool		nulls[] = {!OidIsValid(serverid), false, since == 0, false, false};
	Datum		values[] = {
		ObjectIdGetDatum(serverid), CStringGetTextDatum(state), TimestampTzGetDatum(since),
		CStringGetTextDatum(problem), CStringGetTextDatum(remedy)
	};

	put_view_row(fcinfo, values, nulls);
}

/*
 * mongo_fdw_health_get
 *		Returns a row for each server to which the last attempt to connect has failed, and which
 *		the caller may use or monitor; one without a server if there is no shared memory.
 */
Datum
mongo_fdw_health_get(PG_FUNCTION_ARGS)
{
	int			count;
	const MongoServerFailure *failures = mongo_server_failures(&count);

	InitMaterializedSRF(fcinfo, 0);
	if (failures == NULL)
		put_problem(fcinfo, InvalidOid, "not monitored", 0, "the library is not in shared_preload_libraries",
					"Add mongo_fdw to shared_preload_libraries, and restart PostgreSQL.");
	for (int i = 0; i < count; i++)
	{
		const MongoServerFailure *row = &failures[i];

		if (GetForeignServerExtended(row->serverid, FSV_MISSING_OK) != NULL &&
			(has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
			 object_aclcheck(ForeignServerRelationId, row->serverid, GetUserId(), ACL_USAGE) == ACLCHECK_OK))
			put_problem(fcinfo, row->serverid, row->refused ? "login refused" : "unreachable", row->since,
						psprintf("%s; last tried at %s", row->problem, timestamptz_to_str(row->last)),
						row->remedy[0] != '\0' ? row->remedy : "See docs/troubleshooting.md for the message.");
	}
	return (Datum) 0;
}

/*
 * mongo_fdw_disconnect
 *		Closes idle connections to a server; true if there were any.
 */
Datum
mongo_fdw_disconnect(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));

	PG_RETURN_BOOL(mongo_connections_close(GetForeignServerByName(name, false)->serverid));
}

/*
 * mongo_fdw_disconnect_all
 *		Closes idle connections to all servers; true if there were any.
 */
Datum
mongo_fdw_disconnect_all(PG_FUNCTION_ARGS pg_attribute_unused())
{
	PG_RETURN_BOOL(mongo_connections_close(InvalidOid));
}

/* -------------------------------- counters ---------------------------------- */

/*
 * mongo_fdw_stat_get
 *		mongo_fdw_stat_get(statements boolean): returns a row for each server and user, or for each
 *		query, that the caller may see.
 */
Datum
mongo_fdw_stat_get(PG_FUNCTION_ARGS)
{
	int			count;
	MongoActivityRow *rows = mongo_activity_rows(PG_GETARG_BOOL(0), &count);

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < count; i++)
	{
		const MongoActivityRow *row = &rows[i];
		const uint64 *counters = row->traffic.counters;
		bool		nulls[6 + MONGO_COUNTERS] = {false};
		Datum		values[6 + MONGO_COUNTERS] = {
			ObjectIdGetDatum(row->dbid),
			ObjectIdGetDatum(row->serverid),
			ObjectIdGetDatum(row->userid),
			Int64GetDatum(row->queryid),
			Int64GetDatum(row->calls),
			Int64GetDatum(mongo_traffic_commands(&row->traffic))
		};

		if (!may_see(row->userid))
			continue;
		/* times in milliseconds, as in PostgreSQL's own statistics */
		for (int j = 0; j < MONGO_COUNTERS; j++)
			values[6 + j] = j == MONGO_COUNT_WAIT_US ? Float8GetDatum(counters[j] / 1000.0) :
				Int64GetDatum(counters[j]);
		put_view_row(fcinfo, values, nulls);
	}
	return (Datum) 0;
}

/*
 * mongo_fdw_stat_reset
 *		Resets the counters of all sessions.
 */
Datum
mongo_fdw_stat_reset(PG_FUNCTION_ARGS pg_attribute_unused())
{
	mongo_activity_reset(false);
	PG_RETURN_VOID();
}

/*
 * mongo_fdw_stat_statements_reset
 *		Resets the counters of statements, of all sessions.
 */
Datum
mongo_fdw_stat_statements_reset(PG_FUNCTION_ARGS pg_attribute_unused())
{
	mongo_activity_reset(true);
	PG_RETURN_VOID();
}
