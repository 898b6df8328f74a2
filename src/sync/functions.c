/*-------------------------------------------------------------------------
 *
 * functions.c
 *		The procedures and functions of the extension mongo_sync.
 *
 * Names are looked up with the caller's search_path and rights, once, and OIDs are used from then
 * on.  The caller must have the rights of the local tables' owner.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync_internal.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_foreign_table.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "foreign/fdwapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"
#include "utils/wait_event.h"

PG_FUNCTION_INFO_V1(mongo_sync_sync);
PG_FUNCTION_INFO_V1(mongo_sync_sync_schema);
PG_FUNCTION_INFO_V1(mongo_sync_recopy);
PG_FUNCTION_INFO_V1(mongo_sync_pause);
PG_FUNCTION_INFO_V1(mongo_sync_resume);
PG_FUNCTION_INFO_V1(mongo_sync_stop);
PG_FUNCTION_INFO_V1(mongo_sync_cluster_time);

/* How long a call waits for other sessions before it looks again. */
#define BUSY_MS		20

/* How often a call tries to copy what cannot be copied, if it is one table alone. */
#define MOST_FAILURES	3

/* ------------------------- Beginning and ending --------------------------- */

/* Refuses a transaction block, and connects to SPI. */
static void
begin_procedure(FunctionCallInfo fcinfo, const char *name)
{
	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		castNode(CallContext, fcinfo->context)->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("%s cannot run in a transaction block or function", name),
				 errhint("It commits each batch together with its position. Run CALL by itself.")));
	PreventCommandIfReadOnly(name);
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	SPI_commit();
	XactIsoLevel = XACT_READ_COMMITTED;
}

/* Commits, and begins the next transaction. */
static void
next_transaction(void)
{
	SPI_commit();
	XactIsoLevel = XACT_READ_COMMITTED;
}

/*
 * sync_owner_of
 *		Returns the owner of a table whose rights the caller must have.
 */
Oid
sync_owner_of(Oid relid)
{
	Oid			owner = sync_table_owner(relid);

	if (!OidIsValid(owner))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE), errmsg("the table does not exist any more")));
	if (!has_privs_of_role(GetUserId(), owner))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relid)), get_rel_name(relid));
	return owner;
}

/*
 * sync_own_group
 *		Returns the group of a synchronized table of the caller, and locks it.  Raises 55000 if the
 *		table has none.
 */
SyncGroup *
sync_own_group(Oid local)
{
	SyncGroup  *group;

	(void) sync_owner_of(local);
	group = sync_group_of(local);
	/* another session may have stopped, or given away, the table meanwhile */
	if (group != NULL)
	{
		(void) sync_group_lock(group->id, true);
		(void) sync_owner_of(local);
		group = sync_group_of(local);
	}
	if (group == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" is not synchronized", get_rel_name(local)),
				 errhint("CALL mongo_sync.sync() begins to synchronize it.")));
	return group;
}

/* Raises 55000 if the table has another owner than its group, which its owner may only stop. */
static void
require_group_owner(const SyncGroup *group, Oid local)
{
	if (sync_table_owner(local) != group->owner)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" belongs to another role", get_rel_name(local)),
				 errhint("All tables of a group, with their partitions, belong to one role.")));
}

/* --------------------------- The local tables ----------------------------- */

/*
 * Keeps other sessions from creating what has this name, until the transaction's end.  SQL's
 * functions cannot take such an advisory lock.  Whoever holds it may wait for somebody else, so it
 * is of this name alone.
 */
static void
lock_name(Oid one, Oid other)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, one, other, 3);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	/* an advisory lock does not show what its last holder has committed */
	AcceptInvalidationMessages();
}

/* Returns the group of a local table; NULL if it has none, and then no other session can make one. */
static SyncGroup *
group_to_join(Oid local)
{
	SyncGroup  *group = sync_group_of(local);

	if (group != NULL)
		return group;
	LockRelationOid(local, ShareUpdateExclusiveLock);
	return sync_group_of(local);
}

/*
 * Creates the local table with the foreign table's columns, for the caller.
 * Without a key it is filled faster.
 */
static Oid
create_local(Oid foreign, const char *schema, const char *name, bool with_key)
{
	Relation	relation = relation_open(foreign, AccessShareLock);
	StringInfoData sql;
	const char *separator = "";
	List	   *keys = sync_key_columns(foreign);
	ListCell   *cell;
	bool		is_key;

	initStringInfo(&sql);
	appendStringInfo(&sql, "CREATE TABLE %s (", quote_qualified_identifier(schema, name));
	for (int i = 0; i < RelationGetDescr(relation)->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation), i);
		Oid			collation = attribute->attcollation;

		if (attribute->attisdropped || mongo_is_pseudo_column(NameStr(attribute->attname)))
			continue;
		is_key = false;
		foreach(cell, keys)
			is_key |= strcmp(lfirst(cell), NameStr(attribute->attname)) == 0;
		appendStringInfo(&sql, "%s%s %s", separator, quote_identifier(NameStr(attribute->attname)),
						 format_type_extended(attribute->atttypid, attribute->atttypmod,
											  FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY));
		if (OidIsValid(collation) && collation != get_typcollation(attribute->atttypid))
			appendStringInfo(&sql, " COLLATE %s", sync_collation_name(collation));
		if (is_key)
			appendStringInfoString(&sql, " NOT NULL");
		separator = ", ";
	}
	relation_close(relation, NoLock);
	foreach(cell, with_key ? keys : NIL)
		appendStringInfo(&sql, "%s%s", cell == list_head(keys) ? ", PRIMARY KEY (" : ", ", quote_identifier(lfirst(cell)));
	appendStringInfoString(&sql, with_key ? "))" : ")");

	(void) sync_run_as(GetUserId(), sql.data, 0);
	return get_relname_relid(name, get_namespace_oid(schema, false));
}

/*
 * Returns the local table of this name, as the caller sees it.  Sets *key_at_end if it has
 * been created without its key.
 */
static Oid
find_or_create_local(Oid foreign, RangeVar *name, bool *key_at_end)
{
	Oid			local = RangeVarGetRelid(name, NoLock, true);
	const char *hint = NULL;
	const char *refusal;
	Oid			schema;

	*key_at_end = false;
	if (OidIsValid(local))
		return local;
	LockRelationOid(foreign, AccessShareLock);
	refusal = sync_refusal(foreign, InvalidOid, GetUserId(), true, &hint);
	if (refusal != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("%s", refusal), errhint("%s", hint)));
	/* several first calls: one creates the table, and the others see that */
	schema = RangeVarGetAndCheckCreationNamespace(name, NoLock, NULL);
	lock_name(schema, hash_bytes((const unsigned char *) name->relname, strlen(name->relname)));
	local = RangeVarGetRelid(name, NoLock, true);
	if (OidIsValid(local))
		return local;

	/*
	 * documents that do not fit are told by comparing rows, which needs the
	 * key
	 */
	*key_at_end = get_attnum(foreign, MONGO_MISMATCH_COLUMN) == InvalidAttrNumber;
	return create_local(foreign, get_namespace_name(schema), name->relname, !*key_at_end);
}

/* ------------------------------ New members ------------------------------- */

/* Stores a new group of an owner, at MongoDB's present time. */
static SyncGroup *
create_group(const char *name, Oid owner, Oid foreign, bool of_schema)
{
	const MongoTableOptions *options = mongo_table_options(foreign);
	Oid			server = GetForeignTable(foreign)->serverid;
	UserMapping *user = mongo_user_mapping(owner, server);
	const char *database = mongo_to_utf8(options->database);
	SyncGroup  *group;
	uint64		position = sync_snapshot_time(user, database, mongo_to_utf8(options->collection));

	/* rows of this name that came by a restore, a subscription or a template */
	(void) sync_run("WITH gone AS (DELETE FROM mongo_sync.groups WHERE name = $1"
					" AND id NOT IN (SELECT a.id FROM mongo_sync.active_groups a) RETURNING id)"
					" DELETE FROM mongo_sync.members WHERE group_id IN (SELECT g.id FROM gone g)", SYNC_TEXT(name));
	(void) sync_run("INSERT INTO mongo_sync.groups (id, name, of_schema, installation, database, owner, remote_database, position, seen_at, replica_set)"
					" SELECT floor(random() * 2147483647)::integer, $1, $2, i.last_value, $3, $4, $5, $6, $6, $7 FROM mongo_sync.installation i RETURNING id",
					SYNC_TEXT(name), SYNC_BOOL(of_schema), SYNC_OID(MyDatabaseId), SYNC_OID(owner), SYNC_TEXT(database),
					SYNC_INT8(position), SYNC_TEXT(sync_replica_set(user)));
	group = sync_group_load(DatumGetInt32(sync_result(0, 1, NULL)));
	group->server = server;
	return group;
}

/*
 * Begins to copy a member of a group that is locked: into the table itself if it is empty, and
 * beside it if it has rows, or foreign keys, which hold only when all tables are whole.
 */
static void
begin_copy(SyncGroup *group, SyncMember *member)
{
	/* first, as rows of another session's copy are not visible yet */
	sync_copy_give_up(group, member->local);
	if (sync_run_as(group->owner, psprintf("SELECT FROM %s LIMIT 1", sync_qualified_name(member->local)), 1) > 0 ||
		sync_has_foreign_keys(member->local))
	{
		sync_copy_again(group, member);
		return;
	}
	member->definition = NULL;
	sync_table_lock_and_open(group, member);
	sync_copy_begin(group, member, sync_group_user(group));
}

/*
 * Adds a table to a group that is locked, and stores what is to be copied.
 */
static void
add_member(SyncGroup *group, Oid foreign, Oid local, const char *deleted_at, bool key_at_end)
{
	const MongoTableOptions *options = mongo_table_options(foreign);
	SyncMember *member = palloc0(sizeof(SyncMember));

	*member = (SyncMember) {
		.target = local,.local = local,.foreign = foreign,.state = SYNC_STOPPED,.reason = "not copied yet",
		.collection = mongo_to_utf8(options->collection),.deleted_at = deleted_at,.key_at_end = key_at_end
	};
	if (GetForeignTable(foreign)->serverid != group->server ||
		strcmp(mongo_to_utf8(options->database), group->database) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("foreign table \"%s\" is of another server or database than the other tables of \"%s\"",
						get_rel_name(foreign), group->name),
				 errhint("A group is of collections of one database, as it has one change stream. Give tables => '{...}', or synchronize the table by itself.")));
	sync_member_forget(local);
	(void) sync_run("INSERT INTO mongo_sync.members (target, local_table, foreign_table, group_id, state, reason, collection, read_until, deleted_at, key_at_end)"
					" VALUES ($1, $1, $2, $3, 'stopped', $4, $5, 0, $6::text::name, $7)",
					SYNC_OID(local), SYNC_OID(foreign), SYNC_INT4(group->id), SYNC_TEXT(member->reason),
					SYNC_TEXT(member->collection), SYNC_TEXT(deleted_at), SYNC_BOOL(key_at_end));
	group->members = lappend(group->members, member);
	begin_copy(group, member);
}

/* Raises why the two tables cannot be synchronized for the owner. */
static void
check_pair(Oid foreign, Oid local, Oid owner, bool needs_key)
{
	const char *hint = NULL;
	const char *refusal;

	LockRelationOid(Min(foreign, local), AccessShareLock);
	LockRelationOid(Max(foreign, local), AccessShareLock);
	refusal = sync_refusal(foreign, local, owner, needs_key, &hint);
	if (refusal != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("%s", refusal), errhint("%s", hint)));
}

/* ------------------------------ Working on it ----------------------------- */

/* Tells what a call has done. */
static void
report(const SyncGroup *group, uint64 units)
{
	(void) sync_run("SELECT sum(rows_copied)::bigint, sum(rows_inserted + rows_updated + rows_deleted)::bigint,"
					" count(*) FROM mongo_sync.members WHERE group_id = $1", SYNC_INT4(group->id));
	ereport(NOTICE,
			(errmsg("\"%s\" equals MongoDB at cluster time %s", group->name, mongo_format_cluster_time(group->position)),
			 errdetail("Tables: %lld. Transactions of this call: " UINT64_FORMAT ". Since the beginning, rows copied: %lld, changed: %lld.",
					   (long long) DatumGetInt64(sync_result(0, 3, NULL)), units,
					   (long long) DatumGetInt64(sync_result(0, 1, NULL)), (long long) DatumGetInt64(sync_result(0, 2, NULL)))));
}

/* Raises 55000 if a member of the group is stopped. */
static void
report_stopped(const SyncGroup *group)
{
	foreach_ptr(const SyncMember, member, group->members)
	{
		if (member->state == SYNC_STOPPED)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("table %s is not synchronized any more: %s", sync_qualified_name(member->local), member->reason),
					 errhint("CALL mongo_sync.recopy('%s') copies it again; follow => true in mongo_sync.sync() does that by itself whenever another collection gets the name.",
							 sync_qualified_name(member->local))));
	}
}

static void
report_ended(void)
{
	ereport(NOTICE, (errmsg("the synchronization is paused or was stopped")));
}

static void
wait_a_little(void)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, BUSY_MS, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/*
 * Copies what is to be copied of a group, and applies its changes up to the present time of
 * MongoDB, a transaction after another.  Raises the error that ends it.
 */
static void
bring_to_present(int id)
{
	SyncRun    *run = sync_run_create(id, CurrentMemoryContext);
	SyncGroup  *group = sync_group_load(id);
	uint64		present;
	uint64		units = 0;
	int			empty = 0;		/* replies in a row */
	int			failures = 0;	/* of a copy, in a row */
	int			most_failures = MOST_FAILURES;
	SyncResult	copied = SYNC_DONE;
	ErrorData  *copy_error = NULL;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "mongo_sync call", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context;

	if (group == NULL)
	{
		report_ended();
		return;
	}
	present = sync_present(sync_group_user(group));
	next_transaction();
	sync_wake_worker();
	for (;;)
	{
		SyncResult	result;

		CHECK_FOR_INTERRUPTS();
		next_transaction();
		MemoryContextReset(context);
		old_context = MemoryContextSwitchTo(context);

		/*
		 * each copy that fails has had its turn; changes go on, and may say
		 * what is the matter
		 */
		if (failures <= most_failures)
		{
			copied = sync_run_unit(run, sync_copy_unit, 0);
			if (copied == SYNC_DONE || copied == SYNC_FAILED)
				next_transaction();
			copy_error = copied == SYNC_FAILED ? run->error : NULL;
			if (copy_error != NULL && copy_error->sqlerrcode == ERRCODE_QUERY_CANCELED)
				ThrowErrorData(copy_error);
			if (copy_error != NULL)
				run->error = NULL;
			failures = copied == SYNC_FAILED ? failures + 1 : 0;
		}
		result = sync_run_unit(run, sync_step, 1);
		next_transaction();
		MemoryContextSwitchTo(context);
		units++;
		if (result == SYNC_FAILED && sync_run_is_lost(run))
		{
			result = sync_run_unit(run, sync_follow_unit, 0) == SYNC_DONE ? SYNC_DONE : SYNC_FAILED;
			next_transaction();
			MemoryContextSwitchTo(context);
		}
		if (result == SYNC_FAILED)
			ThrowErrorData(run->error);
		group = sync_group_load(id);
		MemoryContextSwitchTo(old_context);
		if (group == NULL || result == SYNC_PAUSED)
		{
			report_ended();
			break;
		}
		empty = result == SYNC_AT_PRESENT && run->mark >= present ? empty + 1 : 0;
		if (!sync_is_copying(group) && (group->position >= present || empty > 1))
		{
			report_stopped(group);
			/* otherwise rows were read at a time that is yet to be reached */
			if (group->is_consistent)
			{
				report(group, units);
				break;
			}
		}
		most_failures = Max(MOST_FAILURES, list_length(group->members));
		if (failures > most_failures && (group->position >= present || result == SYNC_AT_PRESENT))
			ThrowErrorData(copy_error);
		if (copied != SYNC_DONE && result != SYNC_DONE)
			wait_a_little();
	}
	MemoryContextDelete(run->context);
}

/* ------------------------------- Procedures ------------------------------- */

/* Stores whether a group follows its collections' names, which is a parameter of the call; NULL: as before. */
static void
set_follow(const SyncGroup *group, FunctionCallInfo fcinfo, int parameter)
{
	if (!PG_ARGISNULL(parameter))
		(void) sync_run("UPDATE mongo_sync.groups SET follow = $2 WHERE id = $1",
						SYNC_INT4(group->id), SYNC_BOOL(PG_GETARG_BOOL(parameter)));
}

/*
 * mongo_sync_sync
 *		mongo_sync.sync(foreign_table regclass, local_table text, follow boolean, deleted_at name)
 *
 * Synchronizes a table: the first call copies it, each one applies what has changed.
 */
Datum
mongo_sync_sync(PG_FUNCTION_ARGS)
{
	Oid			foreign;
	Oid			local;
	Oid			owner;
	RangeVar   *name;
	bool		key_at_end;
	SyncGroup  *group;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("mongo_sync.sync() needs a foreign table, and the name of a local one")));
	foreign = PG_GETARG_OID(0);
	name = makeRangeVarFromNameList(textToQualifiedNameList(PG_GETARG_TEXT_PP(1)));
	begin_procedure(fcinfo, "mongo_sync.sync()");
	local = find_or_create_local(foreign, name, &key_at_end);
	owner = sync_owner_of(local);
	group = group_to_join(local);
	if (group == NULL)
	{
		check_pair(foreign, local, owner, !key_at_end);
		group = create_group(sync_qualified_name(local), owner, foreign, false);
		add_member(group, foreign, local, PG_ARGISNULL(3) ? NULL : NameStr(*PG_GETARG_NAME(3)), key_at_end);
	}
	else
	{
		/* NULL: another session stops it just now */
		const SyncMember *member = sync_group_member(group, local);

		require_group_owner(group, local);
		if (member != NULL && member->foreign != foreign)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("table \"%s\" is synchronized with another foreign table, \"%s\"", get_rel_name(local),
							get_rel_name(member->foreign)),
					 errhint("SELECT mongo_sync.stop('%s') gives up its position.", sync_qualified_name(local))));
	}
	set_follow(group, fcinfo, 2);
	bring_to_present(group->id);
	SPI_finish();
	PG_RETURN_VOID();
}

/* Tells whether a name is in an array of names; true without one. */
static bool
is_wanted(ArrayType *only, const char *name)
{
	Datum	   *names;
	int			count;

	if (only == NULL)
		return true;
	deconstruct_array(only, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR, &names, NULL, &count);
	for (int i = 0; i < count; i++)
	{
		if (strcmp(NameStr(*DatumGetName(names[i])), name) == 0)
			return true;
	}
	return false;
}

/* Returns the foreign tables of ours in a schema, without change streams, by name. */
static List *
foreign_tables(Oid schema, ArrayType *only)
{
	uint64		count = sync_run("SELECT oid FROM pg_class WHERE relnamespace = $1 AND relkind = 'f' ORDER BY relname",
								 SYNC_OID(schema));
	List	   *all = NIL;
	List	   *tables = NIL;

	for (uint64 row = 0; row < count; row++)
		all = lappend_oid(all, DatumGetObjectId(sync_result(row, 1, NULL)));
	foreach_oid(relid, all)
	{
		LockRelationOid(relid, AccessShareLock);
		if (get_rel_name(relid) != NULL && is_wanted(only, get_rel_name(relid)) && sync_is_ours(relid) &&
			mongo_table_options(relid)->change_stream == NULL)
			tables = lappend_oid(tables, relid);
	}
	return tables;
}

/*
 * Returns the caller's group of all foreign tables of a schema, which it locks; NULL: none.  Others
 * may have groups of the same schemas.
 */
static SyncGroup *
group_of_schemas(Oid source, Oid local)
{
	int			id;

	if (sync_run("SELECT g.id FROM mongo_sync.active_groups g JOIN mongo_sync.members m ON m.group_id = g.id"
				 " JOIN pg_class f ON f.oid = m.foreign_table JOIN pg_class l ON l.oid = m.local_table"
				 " WHERE g.of_schema AND f.relnamespace = $1 AND l.relnamespace = $2 AND pg_has_role($3, g.owner, 'USAGE')"
				 " ORDER BY g.owner <> $3, g.id LIMIT 1",
				 SYNC_OID(source), SYNC_OID(local), SYNC_OID(GetUserId())) == 0)
		return NULL;
	id = DatumGetInt32(sync_result(0, 1, NULL));
	(void) sync_group_lock(id, true);
	return sync_group_load(id);
}

/*
 * mongo_sync_sync_schema
 *		mongo_sync.sync_schema(foreign_schema, local_schema, tables, follow)
 *
 * Synchronizes all foreign tables of a schema as one group.
 */
Datum
mongo_sync_sync_schema(PG_FUNCTION_ARGS)
{
	Oid			source;
	Oid			schema;
	ArrayType  *only = PG_ARGISNULL(2) ? NULL : PG_GETARG_ARRAYTYPE_P_COPY(2);
	SyncGroup  *group;
	const char *schema_name;
	List	   *tables;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("mongo_sync.sync_schema() needs the schema of the foreign tables, and that of the local ones")));
	source = get_namespace_oid(text_to_cstring(PG_GETARG_TEXT_PP(0)), false);
	schema_name = text_to_cstring(PG_GETARG_TEXT_PP(1));
	begin_procedure(fcinfo, "mongo_sync.sync_schema()");
	tables = foreign_tables(source, only);
	if (tables == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("schema \"%s\" has no such foreign table of mongo_fdw", get_namespace_name(source)),
				 errhint("IMPORT FOREIGN SCHEMA creates them.")));
	if (!OidIsValid(get_namespace_oid(schema_name, true)))
		(void) sync_run_as(GetUserId(), psprintf("CREATE SCHEMA IF NOT EXISTS %s", quote_identifier(schema_name)), 0);
	schema = get_namespace_oid(schema_name, false);
	group = group_of_schemas(source, schema);
	if (group == NULL)
	{
		lock_name(source ^ GetUserId(), schema);
		group = group_of_schemas(source, schema);
	}
	foreach_oid(foreign, tables)
	{
		bool		key_at_end;
		Oid			local = find_or_create_local(foreign, makeRangeVar(pstrdup(schema_name), get_rel_name(foreign), -1), &key_at_end);
		Oid			owner = sync_owner_of(local);

		if (group != NULL && sync_group_member(group, local) != NULL)
			continue;
		if (group_to_join(local) != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("table \"%s\" is already synchronized by itself or in another group", get_rel_name(local)),
					 errhint("SELECT mongo_sync.stop('%s') first, or leave it out by tables => '{...}'.", sync_qualified_name(local))));
		check_pair(foreign, local, group == NULL ? owner : group->owner, !key_at_end);
		if (group == NULL)
			group = create_group(schema_name, owner, foreign, true);
		add_member(group, foreign, local, NULL, key_at_end);
	}
	set_follow(group, fcinfo, 3);
	bring_to_present(group->id);
	SPI_finish();
	PG_RETURN_VOID();
}

static bool
has_foreign_keys(const SyncMember *member)
{
	return get_rel_name(member->local) != NULL && sync_has_foreign_keys(member->local);
}

/*
 * mongo_sync_recopy
 *		mongo_sync.recopy(local_table regclass)
 *
 * Copies a table's collection again beside it, and replaces rows that differ in one commit.  So
 * that foreign keys hold then, other tables with foreign keys are copied, too, if they are stopped.
 */
Datum
mongo_sync_recopy(PG_FUNCTION_ARGS)
{
	Oid			local = PG_GETARG_OID(0);
	SyncGroup  *group;
	SyncMember *member;

	begin_procedure(fcinfo, "mongo_sync.recopy()");
	group = sync_own_group(local);
	member = sync_group_member(group, local);
	check_pair(member->foreign, local, group->owner, !member->key_at_end);
	if (sync_position_is_lost(group))
		sync_begin_again(group);
	begin_copy(group, member);
	if (has_foreign_keys(member))
		(void) sync_copy_stopped(group, has_foreign_keys);
	bring_to_present(group->id);
	SPI_finish();
	PG_RETURN_VOID();
}

/* Pauses or resumes the group of a table. */
static Datum
set_paused(FunctionCallInfo fcinfo, bool paused)
{
	SyncGroup  *group;

	PreventCommandIfReadOnly(paused ? "mongo_sync.pause()" : "mongo_sync.resume()");
	SPI_connect();
	group = sync_own_group(PG_GETARG_OID(0));
	require_group_owner(group, PG_GETARG_OID(0));
	(void) sync_run("UPDATE mongo_sync.groups SET paused = $2 WHERE id = $1",
					SYNC_INT4(group->id), SYNC_BOOL(paused));
	SPI_finish();
	PG_RETURN_VOID();
}

/*
 * mongo_sync_pause
 *		mongo_sync.pause(local_table regclass): keeps the position of a table's group, and stands
 *		still.
 */
Datum
mongo_sync_pause(PG_FUNCTION_ARGS)
{
	return set_paused(fcinfo, true);
}

/*
 * mongo_sync_resume
 *		mongo_sync.resume(local_table regclass): goes on where the group was paused.
 */
Datum
mongo_sync_resume(PG_FUNCTION_ARGS)
{
	return set_paused(fcinfo, false);
}

/*
 * mongo_sync_stop
 *		mongo_sync.stop(local_table regclass)
 *
 * Has a table leave its group, and gives up its position.  The table and its rows stay.
 */
Datum
mongo_sync_stop(PG_FUNCTION_ARGS)
{
	Oid			local = PG_GETARG_OID(0);
	SyncGroup  *group;
	int			left = 0;

	PreventCommandIfReadOnly("mongo_sync.stop()");
	SPI_connect();
	group = sync_own_group(local);
	foreach_ptr(SyncMember, member, group->members)
	{
		if (member->local != local)
			left++;
		else if (member->target != local)
			sync_copy_drop_table(member->target);
		else
			sync_member_forget(local);
	}
	if (left == 0)
		(void) sync_run("DELETE FROM mongo_sync.groups WHERE id = $1", SYNC_INT4(group->id));
	SPI_finish();
	PG_RETURN_VOID();
}

/*
 * mongo_sync_cluster_time
 *		mongo_sync.cluster_time(): the time whose changes are being written, in a trigger; NULL
 *		elsewhere.
 */
Datum
mongo_sync_cluster_time(PG_FUNCTION_ARGS)
{
	if (sync_applied_time == 0)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(mongo_format_cluster_time(sync_applied_time)));
}
