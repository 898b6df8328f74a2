/*-------------------------------------------------------------------------
 *
 * report.c
 *		mongo_sync.compare() and mongo_sync.check().
 *
 * compare() reads the whole collection at the group's position, while no step can move it, and
 * finds the rows that differ as a step does.
 *
 * check() probes what the server and the rights are good for, and changes nothing.  An item that
 * fails does not end the others: each runs in a subtransaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync_internal.h"

#include "access/relation.h"
#include "catalog/namespace.h"
#include "commands/trigger.h"
#include "fmgr.h"
#include "foreign/foreign.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "portability/instr_time.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/varlena.h"

PG_FUNCTION_INFO_V1(mongo_sync_compare);
PG_FUNCTION_INFO_V1(mongo_sync_check);

/* ------------------------------- Comparing -------------------------------- */

/* Raises 55000; the group cannot be compared at its position. */
pg_noreturn static void
report_not_comparable(const SyncGroup *group, const SyncMember *member, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table %s cannot be compared at the position of \"%s\"", sync_qualified_name(member->local), group->name),
			 errdetail_internal("%s", detail),
			 errhint("Bring it to the present first: CALL mongo_sync.sync('%s', '%s').",
					 sync_qualified_name(member->foreign), sync_qualified_name(member->local))));
}

/*
 * Compares, and makes equal, the table of a member; with the rights of its owner.  Reads at the
 * time that is bound, and then binds what was bound before.
 */
static void
compare(const SyncGroup *group, SyncMember *member, bool mend, MongoReadTime *bound_before, Tuplestorestate *result)
{
	SyncRows   *rows = sync_rows_create(member->table);

	sync_rows_fetch_range(rows, NULL);
	(void) mongo_bind_reads(bound_before);
	sync_applied_time = group->position;
	AfterTriggerBeginQuery();
	(void) sync_rows_compare(rows, member, mend, group->position, result);
	sync_rows_call_triggers();
}

/*
 * mongo_sync_compare
 *		mongo_sync.compare(local_table regclass, mend boolean)
 *
 * Returns the rows that differ from MongoDB's documents at the position of the table's group.
 *
 * The group stands still until the end of the transaction.  With 'mend', the rows are made equal;
 * then SET CONSTRAINTS ALL IMMEDIATE is in force up to that end, too: no trigger may be left for
 * it.  Raises 55000 if the group has no whole position, or MongoDB no snapshot of it.
 */
Datum
mongo_sync_compare(PG_FUNCTION_ARGS)
{
	Oid			local = PG_GETARG_OID(0);
	bool		mend = PG_GETARG_BOOL(1);
	ConstraintsSetStmt immediate = {.type = T_ConstraintsSetStmt,.constraints = NIL,.deferred = false};
	MongoReadTime time = {0};
	SyncGroup  *group;
	SyncMember *member;
	SyncRights	rights;
	char	   *identity;
	uint64		time_before = sync_applied_time;
	MongoReadTime *bound_before;

	PreventCommandIfReadOnly("mongo_sync.compare()");
	InitMaterializedSRF(fcinfo, 0);
	SPI_connect();
	group = sync_own_group(local);
	member = sync_group_member(group, local);
	if (member->state != SYNC_SYNCHRONIZED || !group->is_consistent)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table %s does not equal MongoDB at one time now", sync_qualified_name(local)),
				 errhint("Bring it to the present first: CALL mongo_sync.sync() or mongo_sync.sync_schema(). mongo_sync.status tells what it waits for.")));
	if (mend)
		AfterTriggerSetState(&immediate);
	sync_lock_tables(list_make1(member));
	sync_rights_take(&rights, group->owner);
	sync_table_open(group, member);
	if (member->table->has_changed)
		report_not_comparable(group, member, "Columns or options have changed since the last step.");
	time.at = group->position;
	/* a trigger that a step calls may call this */
	bound_before = mongo_bind_reads(&time);
	PG_TRY();
	{
		compare(group, member, mend, bound_before, ((ReturnSetInfo *) fcinfo->resultinfo)->setResult);
	}
	PG_CATCH();
	{
		(void) mongo_bind_reads(bound_before);
		sync_applied_time = time_before;
		if (time.failure == SYNC_SNAPSHOT_TOO_OLD || time.failure == SYNC_SNAPSHOT_UNAVAILABLE)
		{
			FlushErrorState();
			report_not_comparable(group, member, "MongoDB has no snapshot of that time any more.");
		}
		PG_RE_THROW();
	}
	PG_END_TRY();
	sync_applied_time = time_before;
	sync_rights_return(&rights);

	/* a name that is gone reads as no documents */
	identity = sync_collection_identity(sync_group_user(group), group->database, member->collection);
	if (identity == NULL || member->identity == NULL || strcmp(identity, member->identity) != 0)
		report_not_comparable(group, member, "The collection was dropped, renamed or replaced.");
	sync_member_note_rows(member);
	SPI_finish();
	return (Datum) 0;
}

/* -------------------------------- Checking -------------------------------- */

/* The documents that are read to estimate the time of a copy, and their bytes. */
#define TIMED_DOCUMENTS	5000
#define TIMED_BYTES		10000000.0

typedef struct Check
{
	Oid			foreign;
	Oid			server;
	Oid			owner;			/* of the local table */
	UserMapping *user;
	const char *database;		/* in UTF-8, as the next */
	const char *collection;
	double		documents;		/* of collStats; 0: unknown */
	double		bytes;
	double		copy_seconds;	/* an estimate; 0: unknown */
	const char *detail;			/* of the item */
} Check;

/* A probe of an item sets check->detail, and returns whether all is well, or raises why not. */
typedef bool Probe (Check *check);

/* Runs a command on the collection's database. */
static const bson_t *
run_command(Check *check, const bson_t *command)
{
	return mongo_run_command(CurrentMemoryContext, check->user, check->database, command, "MongoDB refuses it");
}

static bool
probe_present(Check *check)
{
	check->detail = psprintf("its cluster time is %s", mongo_format_cluster_time(sync_present(check->user)));
	return true;
}

static bool
probe_collection(Check *check)
{
	(void) sync_require_collection(check->user, check->database, check->collection);
	return true;
}

static bool
probe_find(Check *check)
{
	(void) run_command(check, mongo_from_template("{find: @1, limit: 1, singleBatch: true, projection: {_id: 1}}", mongo_utf8(check->collection)));
	return true;
}

static bool
probe_snapshot(Check *check)
{
	(void) sync_snapshot_time(check->user, check->database, check->collection);
	return true;
}

static bool
probe_stats(Check *check)
{
	const bson_t *reply = run_command(check, mongo_from_template("{collStats: @1}", mongo_utf8(check->collection)));

	check->documents = sync_number_at(reply, "count");
	check->bytes = sync_number_at(reply, "size");
	check->detail = psprintf("%.0f documents of %.0f bytes in all", check->documents, check->bytes);
	return true;
}

/* Opens a change stream of the collection, or of its whole database. */
static bool
probe_stream(Check *check, bool whole)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "mongo_sync check", ALLOCSET_DEFAULT_SIZES);
	BsonArray	collections = mongo_array_create();
	int			failure = 0;

	if (!whole)
		mongo_array_append(&collections, mongo_utf8(check->collection));
	(void) mongo_event_stream_open(context, check->user, check->database,
								   sync_stream_command(collections.bson, whole ? 0 : 1, sync_present(check->user), 1), &failure);
	MemoryContextDelete(context);
	return true;
}

static bool
probe_collection_stream(Check *check)
{
	return probe_stream(check, false);
}

static bool
probe_database_stream(Check *check)
{
	return probe_stream(check, true);
}

/* Compares the foreign table with a sample, by mongo_fdw_check(). */
static bool
probe_sample(Check *check)
{
	uint64		count = sync_run_as(check->owner, psprintf("SELECT string_agg(concat_ws(' ', finding, field, detail), '; ')"
														   " FROM %s(%u::oid::regclass, 1000)"
														   " WHERE finding = ANY ('{values that do not fit,collection does not exist}')",
														   sync_fdw_function(check->server, "mongo_fdw_check", REGCLASSOID, INT4OID), check->foreign), 0);

	check->detail = count > 0 ? sync_result_text(0, 1) : NULL;
	return check->detail == NULL;
}

/* Looks for keys in a sample that are longer than an index holds. */
static bool
probe_keys(Check *check)
{
	const bson_t *reply = run_command(check, mongo_from_template("{aggregate: @1, pipeline: [{$sample: {size: 1000}}, {$project: {_id: 1}},"
																 " {$match: {$expr: {$gt: [{$bsonSize: '$$ROOT'}, @2]}}}, {$count: 'n'}], cursor: {}}",
																 mongo_utf8(check->collection), mongo_int32(SYNC_LONGEST_KEY)));
	double		count = sync_number_at(reply, "cursor.firstBatch.0.n");

	if (count > 0)
		check->detail = psprintf("%.0f of a sample of 1000 are longer than %d bytes", count, SYNC_LONGEST_KEY);
	return count == 0;
}

/* Estimates how long the copy takes. */
static bool
probe_speed(Check *check)
{
	double		limit = Min(TIMED_DOCUMENTS, check->bytes > 0 ? TIMED_BYTES / (check->bytes / Max(check->documents, 1)) : 100);
	instr_time	begin;
	instr_time	end;
	uint64		rows;

	INSTR_TIME_SET_CURRENT(begin);
	rows = sync_run_as(check->owner, psprintf("SELECT * FROM %s", sync_qualified_name(check->foreign)), (long) Max(limit, 1));
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, begin);
	/* to write them takes about as long */
	if (rows > 0)
		check->copy_seconds = 2 * INSTR_TIME_GET_DOUBLE(end) / rows * Max(check->documents, rows);
	check->detail = psprintf("about %.1f s", check->copy_seconds);
	return true;
}

/* Compares the time that the oplog spans with that of the copy. */
static bool
probe_oplog(Check *check)
{
	uint64		begin = sync_oplog_begin(check->user);
	double		window;

	check->detail = "it may not be read";
	if (begin == 0)
		return false;
	window = (double) (sync_present(check->user) >> 32) - (double) (begin >> 32);
	check->detail = psprintf("the oplog spans %.1f hours", window / 3600);
	return window >= check->copy_seconds;
}

static const struct
{
	const char *name;
	Probe	   *probe;
	const char *remedy;
}			items[] =
{
	{"replica set", probe_present, NULL},
	{"collection (listCollections)", probe_collection, "Create the collection, or grant its user listCollections on the database, which the role read has."},
	{"find", probe_find, "Grant the user find on the collection, for example by the role read on its database."},
	{"reads at a cluster time", probe_snapshot, "MongoDB 5.0 or newer has them."},
	{"changeStream on the collection", probe_collection_stream, "A table by itself needs changeStream on its collection, for example by the role read on its database."},
	{"changeStream on the database, for groups of several tables", probe_database_stream, "A group needs find and changeStream on the whole database, for example by the role read on it."},
	{"collStats", probe_stats, "Without collStats, which the role read has, the collection is copied in one piece."},
	{"documents that fit", probe_sample, "Change the columns, or ALTER FOREIGN TABLE ... ADD COLUMN __mismatch jsonb: documents that do not fit are then listed in mongo_sync.errors, and the others synchronized."},
	{"keys", probe_keys, "Documents with such an _id get no row, and are listed in mongo_sync.errors."},
	{"time of a copy", probe_speed, "All documents must be readable, or the foreign table have a column __mismatch."},
	{"oplog", probe_oplog, "replSetResizeOplog makes it longer. It must span each range of a copy, and any time in which nothing is applied. To see it here, grant find on local.oplog.rs."},
};

/* Adds a row to the result. */
static void
add_item(FunctionCallInfo fcinfo, const char *item, bool is_well, const char *detail, const char *remedy)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		values[4] = {CStringGetTextDatum(item), BoolGetDatum(is_well)};
	bool		isnull[4] = {false, false, detail == NULL, is_well || remedy == NULL};

	if (!isnull[2])
		values[2] = CStringGetTextDatum(detail);
	if (!isnull[3])
		values[3] = CStringGetTextDatum(remedy);
	tuplestore_putvalues(result->setResult, result->setDesc, values, isnull);
}

/* A probe that is called within a subtransaction, and what it has returned. */
typedef struct Probing
{
	Check	   *check;
	Probe	   *probe;
	bool		is_well;
} Probing;

static void
call_probe(void *argument)
{
	Probing    *probing = argument;

	probing->is_well = probing->probe(probing->check);
}

/* Tells whether an error says something of the item. */
static bool
is_of_item(int sqlstate)
{
	return sqlstate != ERRCODE_QUERY_CANCELED;
}

/* Probes an item within a subtransaction, and adds its row. */
static void
check_item(FunctionCallInfo fcinfo, Check *check, const char *name, Probe *probe, const char *remedy)
{
	Probing		probing = {.check = check,.probe = probe};
	ErrorData  *error;

	check->detail = NULL;
	if (mongo_try(call_probe, &probing, is_of_item, &error))
		add_item(fcinfo, name, probing.is_well, check->detail, remedy);
	else
		add_item(fcinfo, name, false, error->detail == NULL ? error->message :
				 psprintf("%s: %s", error->message, error->detail), remedy != NULL &&
				 (error->hint == NULL || error->sqlerrcode == ERRCODE_INSUFFICIENT_PRIVILEGE) ? remedy : error->hint);
}

/* Adds each reason why the tables cannot be synchronized; false if it ends the check. */
static bool
check_tables(FunctionCallInfo fcinfo, Check *check, Oid local)
{
	List	   *refusals;

	LockRelationOid(OidIsValid(local) ? Min(check->foreign, local) : check->foreign, AccessShareLock);
	if (OidIsValid(local))
		LockRelationOid(Max(check->foreign, local), AccessShareLock);
	refusals = sync_refusals(check->foreign, local, check->owner, true);
	foreach_ptr(const SyncRefusal, refusal, refusals)
	{
		add_item(fcinfo, "tables", false, refusal->message, refusal->hint);
	}
	if (refusals == NIL)
		add_item(fcinfo, "tables", true, OidIsValid(local) ? NULL : "the local table is to be created", NULL);
	if (!sync_is_ours(check->foreign) || !sync_is_trusted(check->foreign, check->owner))
		return false;
	if (pg_class_aclcheck(check->foreign, check->owner, ACL_SELECT) == ACLCHECK_OK)
		return true;
	add_item(fcinfo, "SELECT on the foreign table", false, psprintf("role \"%s\" may not read it", GetUserNameFromId(check->owner, false)),
			 "GRANT SELECT on the foreign table.");
	return false;
}

/*
 * mongo_sync_check
 *		mongo_sync.check(foreign_table regclass, local_table text)
 *
 * Returns what speaks for and against synchronizing the tables: items that were probed.
 *
 * 'local_table' may be NULL, or the name of a table that is to be created.  The caller needs the
 * rights of its owner.  Those in MongoDB are of the owner's user mapping.
 */
Datum
mongo_sync_check(PG_FUNCTION_ARGS)
{
	Check		check = {.foreign = PG_GETARG_OID(0),.owner = GetUserId()};
	Oid			local = InvalidOid;
	const MongoTableOptions *options;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("mongo_sync.check() needs a foreign table")));
	InitMaterializedSRF(fcinfo, 0);
	SPI_connect();
	if (!PG_ARGISNULL(1))
		local = RangeVarGetRelid(makeRangeVarFromNameList(textToQualifiedNameList(PG_GETARG_TEXT_PP(1))), NoLock, true);
	if (OidIsValid(local))
		check.owner = sync_owner_of(local);
	if (check_tables(fcinfo, &check, local))
	{
		options = mongo_table_options(check.foreign);
		check.server = GetForeignTable(check.foreign)->serverid;
		check.user = mongo_user_mapping(check.owner, check.server);
		check.database = mongo_to_utf8(options->database);
		check.collection = mongo_to_utf8(options->collection);
		for (size_t i = 0; i < lengthof(items); i++)
			check_item(fcinfo, &check, items[i].name, items[i].probe, items[i].remedy);
	}
	SPI_finish();
	return (Datum) 0;
}
