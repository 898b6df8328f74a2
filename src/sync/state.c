/*-------------------------------------------------------------------------
 *
 * state.c
 *		What the engine stores: the rows of groups, members, ranges and documents.
 *
 * The statements are constants over tables of the schema mongo_sync, in which only superusers can
 * create anything.  They run as the extension's owner.  A group's row is locked by who applies
 * its changes, up to the transaction's end.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync_internal.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_namespace.h"
#include "commands/async.h"
#include "commands/extension.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

/* As they are stored, in the order of SyncState. */
static const char *const state_names[] = {
	"copying", "catching up", "synchronized", "stopped"
};

/* ----------------------- Statements about the state ----------------------- */

/*
 * sync_text
 *		Returns a parameter of type text; NULL is NULL.
 */
SyncValue
sync_text(const char *string)
{
	return string == NULL ? SYNC_NULL(TEXTOID) : SYNC_DATUM(TEXTOID, CStringGetTextDatum(string));
}

/*
 * sync_extension_owner
 *		Returns the owner of the extension, who must be a superuser.  Raises 55000 without it, or if
 *		another schema has its name.
 */
Oid
sync_extension_owner(void)
{
	Oid			extension = get_extension_oid("mongo_sync", true);
	Relation	relation;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			owner = InvalidOid;

	/* DROP EXTENSION waits before it locks the first of its tables */
	if (OidIsValid(extension))
		LockDatabaseObject(ExtensionRelationId, extension, 0, AccessShareLock);
	relation = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(extension));
	scan = systable_beginscan(relation, ExtensionOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		owner = ((Form_pg_extension) GETSTRUCT(tuple))->extowner;
	systable_endscan(scan);
	table_close(relation, AccessShareLock);

	if (OidIsValid(owner) &&
		getExtensionOfObject(NamespaceRelationId, get_namespace_oid("mongo_sync", true)) != extension)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("schema mongo_sync does not belong to the extension mongo_sync"),
				 errhint("The extension's schema was renamed. A superuser gives it back its name.")));
	if (!OidIsValid(owner) || !superuser_arg(owner))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the extension mongo_sync does not exist, or its owner is no superuser"),
				 errhint("A superuser installs it by CREATE EXTENSION mongo_sync.")));
	return owner;
}

/*
 * sync_run_values
 *		Runs a statement about the state as the extension's owner, within SPI.  Returns how many
 *		rows it has returned or changed; sync_result() reads those returned.
 */
uint64
sync_run_values(const char *sql, const SyncValue *values, int nvalues)
{
	Oid			types[16];
	Datum		datums[16];
	char		nulls[16 + 1] = "";
	SyncRights	rights;
	int			result;

	Assert(nvalues <= (int) lengthof(types));
	for (int i = 0; i < nvalues; i++)
	{
		types[i] = values[i].type;
		datums[i] = values[i].value;
		nulls[i] = values[i].isnull ? 'n' : ' ';
	}

	/*
	 * a CALL may run for hours within one level of SPI, which keeps all
	 * results
	 */
	SPI_freetuptable(SPI_tuptable);
	sync_rights_take(&rights, sync_extension_owner());
	result = SPI_execute_with_args(sql, nvalues, types, datums, nulls, false, 0);
	if (result < 0)
		elog(ERROR, "mongo_sync could not read or write its state: %s", SPI_result_code_string(result));
	sync_rights_return(&rights);
	return SPI_processed;
}

/*
 * sync_run_as
 *		Runs a statement with the rights of a role, within SPI.  Returns how many rows it has
 *		returned, up to a limit (0: none), or changed.
 */
uint64
sync_run_as(Oid role, const char *sql, long limit)
{
	SyncRights	rights;
	int			result;

	sync_rights_take(&rights, role);
	result = SPI_execute(sql, false, limit);
	if (result < 0)
		elog(ERROR, "SPI_execute failed: %s", SPI_result_code_string(result));
	sync_rights_return(&rights);
	return SPI_processed;
}

/*
 * sync_result
 *		Returns a value of the last statement's result; columns are numbered from 1.  The next
 *		statement about the state frees it.
 */
Datum
sync_result(uint64 row, int column, bool *isnull)
{
	bool		ignored;

	return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column,
						 isnull != NULL ? isnull : &ignored);
}

/*
 * sync_result_text
 *		Returns a text of the last statement's result; NULL for NULL.
 */
char *
sync_result_text(uint64 row, int column)
{
	bool		isnull;
	Datum		value = sync_result(row, column, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

/* -------------------------------- Groups ---------------------------------- */

/* Keeps what is stored of a member, by which changes are told. */
static void
note_stored(SyncMember *member)
{
	member->stored = memcpy(palloc(sizeof(SyncMember)), member, sizeof(SyncMember));
}

/* Reads the members of a group, in the order of their targets. */
static void
load_members(SyncGroup *group)
{
	uint64		count = sync_run("SELECT target, local_table, foreign_table, state, reason, collection, identity, definition,"
								 " read_until, deleted_at::text, key_at_end,"
								 " EXISTS (SELECT FROM mongo_sync.unfit u WHERE u.target = m.target)"
								 " FROM mongo_sync.members m WHERE group_id = $1 ORDER BY target",
								 SYNC_INT4(group->id));

	for (uint64 row = 0; row < count; row++)
	{
		SyncMember *member = palloc0(sizeof(SyncMember));
		char	   *state = sync_result_text(row, 4);

		member->target = DatumGetObjectId(sync_result(row, 1, NULL));
		member->local = DatumGetObjectId(sync_result(row, 2, NULL));
		member->foreign = DatumGetObjectId(sync_result(row, 3, NULL));
		for (member->state = 0; member->state < SYNC_STOPPED; member->state++)
		{
			if (strcmp(state_names[member->state], state) == 0)
				break;
		}
		member->reason = sync_result_text(row, 5);
		member->collection = sync_result_text(row, 6);
		member->identity = sync_result_text(row, 7);
		member->definition = sync_result_text(row, 8);
		member->read_until = (uint64) DatumGetInt64(sync_result(row, 9, NULL));
		member->deleted_at = sync_result_text(row, 10);
		member->key_at_end = DatumGetBool(sync_result(row, 11, NULL));
		member->has_unfit = DatumGetBool(sync_result(row, 12, NULL));
		note_stored(member);
		group->members = lappend(group->members, member);
	}
}

/*
 * sync_group_load
 *		Returns a group that is active, with its members, in the current memory context; NULL if
 *		there is none with this id.
 */
SyncGroup *
sync_group_load(int id)
{
	SyncGroup  *group;
	bool		isnull;
	Datum		event;

	if (sync_run("SELECT name, owner, remote_database, follow, paused, position, seen_at, consistent_at IS NOT NULL,"
				 " last_event, last_error, replica_set FROM mongo_sync.active_groups WHERE id = $1", SYNC_INT4(id)) == 0)
		return NULL;
	group = palloc0(sizeof(SyncGroup));
	group->id = id;
	group->name = sync_result_text(0, 1);
	group->owner = DatumGetObjectId(sync_result(0, 2, NULL));
	group->database = sync_result_text(0, 3);
	group->follow = DatumGetBool(sync_result(0, 4, NULL));
	group->paused = DatumGetBool(sync_result(0, 5, NULL));
	group->position = (uint64) DatumGetInt64(sync_result(0, 6, NULL));
	group->seen_at = (uint64) DatumGetInt64(sync_result(0, 7, NULL));
	group->is_consistent = DatumGetBool(sync_result(0, 8, NULL));
	event = sync_result(0, 9, &isnull);
	if (!isnull)
	{
		bytea	   *bytes = DatumGetByteaPCopy(event);
		bson_t	   *view = mongo_bson_palloc(CurrentMemoryContext, sizeof(bson_t));

		if (mongo_bson_view(view, (uint8 *) VARDATA(bytes), VARSIZE(bytes) - VARHDRSZ))
			group->last_event = view;
	}
	group->last_error = sync_result_text(0, 10);
	group->replica_set = sync_result_text(0, 11);
	load_members(group);
	foreach_ptr(const SyncMember, member, group->members)
	{
		/*
		 * a server's OID is another one after pg_upgrade, that of a table is
		 * not
		 */
		if (!OidIsValid(group->server) && get_rel_relkind(member->foreign) == RELKIND_FOREIGN_TABLE)
			group->server = GetForeignTable(member->foreign)->serverid;
	}
	return group;
}

/*
 * sync_group_user
 *		Returns the user mapping by which a group is read.  Raises 42P01 without foreign tables.
 */
UserMapping *
sync_group_user(const SyncGroup *group)
{
	if (!OidIsValid(group->server))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the foreign tables of \"%s\" do not exist any more", group->name),
				 errhint("SELECT mongo_sync.stop() for each of its tables, then synchronize them with other foreign tables.")));
	return mongo_user_mapping(group->owner, group->server);
}

/*
 * sync_group_of
 *		Returns the active group of a local table; NULL if it has none.
 */
SyncGroup *
sync_group_of(Oid local)
{
	if (sync_run("SELECT g.id FROM mongo_sync.members m JOIN mongo_sync.active_groups g ON g.id = m.group_id WHERE m.target = $1",
				 SYNC_OID(local)) == 0)
		return NULL;
	return sync_group_load(DatumGetInt32(sync_result(0, 1, NULL)));
}

/*
 * sync_groups
 *		Returns all active groups, SyncListed *.
 */
List *
sync_groups(void)
{
	List	   *groups = NIL;
	uint64		count = sync_run_values("SELECT id, COALESCE(slow_until OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp(), false),"
										" NOT paused AND EXISTS (SELECT FROM mongo_sync.members m JOIN mongo_sync.ranges r ON r.target OPERATOR(pg_catalog.=) m.target"
										" WHERE m.group_id OPERATOR(pg_catalog.=) g.id AND m.state OPERATOR(pg_catalog.=) 'copying' AND r.read_at IS NULL)"
										" FROM mongo_sync.active_groups g ORDER BY id", NULL, 0);

	for (uint64 row = 0; row < count; row++)
	{
		SyncListed *group = palloc(sizeof(SyncListed));

		*group = (SyncListed) {
			.id = DatumGetInt32(sync_result(row, 1, NULL)),
			.is_slow = DatumGetBool(sync_result(row, 2, NULL)),
			.is_copied = DatumGetBool(sync_result(row, 3, NULL))
		};
		groups = lappend(groups, group);
	}
	return groups;
}

/*
 * sync_group_member
 *		Returns the member that writes this table; NULL if there is none.
 */
SyncMember *
sync_group_member(const SyncGroup *group, Oid target)
{
	foreach_ptr(SyncMember, member, group->members)
	{
		if (member->target == target)
			return member;
	}
	return NULL;
}

/*
 * sync_is_copying
 *		Tells whether a member of the group is still copied.
 */
bool
sync_is_copying(const SyncGroup *group)
{
	foreach_ptr(const SyncMember, member, group->members)
	{
		if (member->state == SYNC_COPYING || member->state == SYNC_CATCHING_UP)
			return true;
	}
	return false;
}

/*
 * sync_group_lock
 *		Locks a group up to the transaction's end; false if another session has locked it, or it
 *		is gone.
 */
bool
sync_group_lock(int id, bool wait)
{
	return sync_run(wait ? "SELECT FROM mongo_sync.groups WHERE id = $1 FOR UPDATE" :
					"SELECT FROM mongo_sync.groups WHERE id = $1 FOR UPDATE SKIP LOCKED",
					SYNC_INT4(id)) > 0;
}

/*
 * sync_group_note_position
 *		Stores position and consistency after a step of so many changes; and
 *		that nothing fails, if all is well.
 */
void
sync_group_note_position(const SyncGroup *group, uint64 changes, bool is_well)
{
	(void) sync_run("UPDATE mongo_sync.groups SET position = $2, consistent_at = $3, seen_at = $4, last_event = $5,"
					" steps = steps + 1, changes = changes + $6,"
					" last_run = clock_timestamp(), failing_since = CASE WHEN $7 THEN NULL ELSE failing_since END,"
					" last_error = CASE WHEN $7 THEN NULL ELSE last_error END"
					" WHERE id = $1",
					SYNC_INT4(group->id), SYNC_INT8(group->position),
					group->is_consistent ? SYNC_INT8(group->position) : SYNC_NULL(INT8OID),
					SYNC_INT8(group->seen_at),
					group->last_event == NULL ? SYNC_NULL(BYTEAOID) :
					SYNC_DATUM(BYTEAOID, PointerGetDatum(cstring_to_text_with_len((const char *) bson_get_data(group->last_event),
																				  group->last_event->len))),
					SYNC_INT8(changes), SYNC_BOOL(is_well));
}

/*
 * sync_group_note_failure
 *		Stores why a unit of work has failed.  'kind' says it without any value of a document.  The
 *		group must be locked.
 */
void
sync_group_note_failure(int id, const char *message, const char *kind)
{
	(void) sync_run("UPDATE mongo_sync.groups SET failing_since = COALESCE(failing_since, clock_timestamp()),"
					" last_error = $2, error_kind = $3 WHERE id = $1",
					SYNC_INT4(id), SYNC_TEXT(message), SYNC_TEXT(kind));
}

/*
 * sync_group_note_slow
 *		Notes that the group's units of work take long, for so many milliseconds.
 */
void
sync_group_note_slow(int id, int milliseconds)
{
	(void) sync_run("UPDATE mongo_sync.groups SET slow_until = pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+)"
					" pg_catalog.make_interval(secs => $2::double precision OPERATOR(pg_catalog./) 1000) WHERE id OPERATOR(pg_catalog.=) $1",
					SYNC_INT4(id), SYNC_INT4(milliseconds));
}

/* -------------------------------- Members --------------------------------- */

/* Tells whether two texts, which may be NULL, are equal. */
static bool
is_same_text(const char *one, const char *other)
{
	return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

/*
 * sync_member_store
 *		Stores what may change of a member, unless that is what it was loaded with.
 */
void
sync_member_store(SyncMember *member)
{
	const SyncMember *stored = member->stored;

	if (stored != NULL && stored->state == member->state && is_same_text(stored->reason, member->reason) &&
		is_same_text(stored->identity, member->identity) && is_same_text(stored->definition, member->definition) &&
		stored->read_until == member->read_until && stored->key_at_end == member->key_at_end)
		return;
	(void) sync_run("UPDATE mongo_sync.members SET state = $2, reason = $3, identity = $4, definition = $5, read_until = $6, key_at_end = $7"
					" WHERE target = $1",
					SYNC_OID(member->target), SYNC_TEXT(state_names[member->state]), SYNC_TEXT(member->reason),
					SYNC_TEXT(member->identity), SYNC_TEXT(member->definition), SYNC_INT8(member->read_until), SYNC_BOOL(member->key_at_end));
	note_stored(member);
}

/*
 * sync_member_note_rows
 *		Counts the rows that were written, and tells listeners of the table.
 */
void
sync_member_note_rows(const SyncMember *member)
{
	const SyncCounts *counts = &member->counts;

	if (counts->inserted + counts->updated + counts->deleted == 0)
		return;
	(void) sync_run("UPDATE mongo_sync.members SET rows_inserted = rows_inserted + $2,"
					" rows_updated = rows_updated + $3, rows_deleted = rows_deleted + $4"
					" WHERE target = $1",
					SYNC_OID(member->target), SYNC_INT8(counts->inserted), SYNC_INT8(counts->updated), SYNC_INT8(counts->deleted));
	if (member->target == member->local)
		Async_Notify("mongo_sync", sync_qualified_name(member->local));
}

/*
 * sync_member_forget
 *		Deletes all that is stored of a member.
 */
void
sync_member_forget(Oid target)
{
	(void) sync_run("DELETE FROM mongo_sync.ranges WHERE target = $1", SYNC_OID(target));
	(void) sync_run("DELETE FROM mongo_sync.changed WHERE target = $1", SYNC_OID(target));
	(void) sync_run("DELETE FROM mongo_sync.unfit WHERE target = $1", SYNC_OID(target));
	(void) sync_run("DELETE FROM mongo_sync.members WHERE target = $1", SYNC_OID(target));
}
