/*-------------------------------------------------------------------------
 *
 * copy.c
 *		Copies a collection beside its group: the first time, or again.
 *
 * It is copied by ranges of _id, each read at a time of its own, by any number of sessions.  The
 * keys of documents that change meanwhile are kept (mongo_sync.changed), so that the oplog need not
 * span the copy.  They are read again when all ranges are copied.  When the group has reached the
 * latest time at which anything was read, the table equals MongoDB at the group's position.
 *
 * A table that has rows is copied to another one first, which then replaces the rows that differ,
 * in one commit.  So readers see the old rows until the new ones are whole.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync_internal.h"

#include "access/heapam.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "commands/tablecmds.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

/*
 * A range has about so many documents, or bytes, but there are at most so many ranges.  One scan is
 * the fastest, as it needs no index: of 500,000 documents it took 3.0 s, by a range of _id 4.8 s.
 */
#ifndef DOCUMENTS_IN_RANGE
#define DOCUMENTS_IN_RANGE	1000000
#endif
#define BYTES_IN_RANGE		1e9
#define MOST_RANGES			1000
#define SAMPLED_FOR_RANGE	20

/* -------------------------------- Ranges ---------------------------------- */

/*
 * sync_number_at
 *		Returns a number at a path of a reply; 0 if there is none.
 */
double
sync_number_at(const bson_t *reply, const char *path)
{
	bson_iter_t iter;
	bson_iter_t found;

	return bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, path, &found) &&
		(BSON_ITER_HOLDS_NUMBER(&found)) ? bson_iter_as_double(&found) : 0;
}

/* Returns the match document of the documents from one _id, and to before another, as JSON. */
static const char *
range_json(const bson_iter_t *from, const bson_iter_t *to)
{
	bson_t	   *match;
	BsonArray	bounds = mongo_array_create();

	/* what is between two values of one type is of this type */
	if (from != NULL && to != NULL && bson_iter_type(from) == bson_iter_type(to))
		match = mongo_from_template("{_id: {$gte: @1, $lt: @2}}",
									*bson_iter_value(unconstify(bson_iter_t *, from)),
									*bson_iter_value(unconstify(bson_iter_t *, to)));
	else
	{
		if (from != NULL)
			mongo_array_append_template(&bounds, "{$gte: ['$_id', {$literal: @1}]}",
										*bson_iter_value(unconstify(bson_iter_t *, from)));
		if (to != NULL)
			mongo_array_append_template(&bounds, "{$lt: ['$_id', {$literal: @1}]}",
										*bson_iter_value(unconstify(bson_iter_t *, to)));
		match = mongo_from_template("{$expr: {$and: @1}}", mongo_array(bounds.bson));
	}
	return sync_match_json(match);
}

static void
store_range(Oid target, int number, const char *match)
{
	(void) sync_run("INSERT INTO mongo_sync.ranges (target, number, match) VALUES ($1, $2, $3)",
					SYNC_OID(target), SYNC_INT4(number), SYNC_TEXT(match));
}

/*
 * Returns a reply with so many random _ids in order; NULL if the collection is not to be
 * divided, or MongoDB refuses the question.
 */
static const bson_t *
sampled_ids(const SyncGroup *group, const SyncMember *member, UserMapping *user, int *nranges)
{
	const bson_t *reply;
	double		wanted;
	bson_iter_t iter;
	bson_iter_t found;

	reply = mongo_run_command(CurrentMemoryContext, user, group->database,
							  mongo_from_template("{collStats: @1}", mongo_utf8(member->collection)), NULL);
	wanted = Max(sync_number_at(reply, "count") / DOCUMENTS_IN_RANGE, sync_number_at(reply, "size") / BYTES_IN_RANGE);
	*nranges = (int) Min(MOST_RANGES, wanted);
	if (*nranges < 2)
		return NULL;
	/* a collation of the collection's own could order them in another way */
	reply = mongo_run_command(CurrentMemoryContext, user, group->database,
							  mongo_from_template("{listCollections: 1, filter: {name: @1, @2: {$exists: true}}}",
												  mongo_utf8(member->collection), mongo_utf8("options.collation")), NULL);
	if (bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, "cursor.firstBatch.0", &found))
		return NULL;
	return mongo_run_command(CurrentMemoryContext, user, group->database,
							 mongo_from_template("{aggregate: @1, pipeline: [{$sample: {size: @2}},"
												 " {$match: {_id: {$type: ['number', 'objectId', 'string', 'date', 'binData'], $ne: NaN}}},"
												 " {$project: {_id: 1}}, {$sort: {_id: 1}}], cursor: {batchSize: @2}, allowDiskUse: true}",
												 mongo_utf8(member->collection), mongo_int32(*nranges * SAMPLED_FOR_RANGE)), NULL);
}

/*
 * sync_copy_begin
 *		Stores the ranges of a member that is to be copied, and what it is copied from.
 *
 * The member's row is there.  The group must be locked, so that no step runs that does not know
 * the member.  Raises 42P01 if there is no collection.
 */
void
sync_copy_begin(SyncGroup *group, SyncMember *member, UserMapping *user)
{
	const bson_t *sample;
	bson_iter_t iter;
	bson_iter_t batch;
	bson_iter_t document;
	bson_iter_t previous;
	bool		has_previous = false;
	int			nranges = 0;
	int			number = 0;
	int			stored = 0;

	member->identity = sync_require_collection(user, group->database, member->collection);
	sample = sampled_ids(group, member, user, &nranges);
	if (sample != NULL && bson_iter_init(&iter, sample) &&
		bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch) && bson_iter_recurse(&batch, &document))
	{
		while (bson_iter_next(&document))
		{
			bson_iter_t id;

			CHECK_FOR_INTERRUPTS();
			if (number++ % SAMPLED_FOR_RANGE != SAMPLED_FOR_RANGE / 2 || !BSON_ITER_HOLDS_DOCUMENT(&document) ||
				!bson_iter_recurse(&document, &id) || !bson_iter_find(&id, "_id"))
				continue;
			store_range(member->target, stored++, range_json(has_previous ? &previous : NULL, &id));
			previous = id;
			has_previous = true;
		}
	}
	store_range(member->target, stored, has_previous ? range_json(&previous, NULL) : NULL);
	member->state = SYNC_COPYING;
	member->reason = NULL;
	member->read_until = 0;
	sync_member_store(member);
}

/* ------------------------------ The new copy ------------------------------ */

/*
 * sync_copy_drop_table
 *		Drops a member's new copy, and forgets it.
 */
void
sync_copy_drop_table(Oid copy)
{
	ObjectAddress address;

	sync_member_forget(copy);
	ObjectAddressSet(address, RelationRelationId, copy);
	if (get_rel_name(copy) != NULL)
		performDeletion(&address, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
}

/*
 * sync_copy_give_up
 *		Forgets what was begun to copy a local table, or its new copy.
 *
 * The group must be locked.  Waits for sessions that copy a range of it, which lock nothing else
 * of the state.
 */
void
sync_copy_give_up(SyncGroup *group, Oid local)
{
	foreach_ptr(SyncMember, copy, list_copy(group->members))
	{
		if (copy->local != local || copy->target == local)
			continue;
		sync_copy_drop_table(copy->target);
		group->members = list_delete_ptr(group->members, copy);
	}
	(void) sync_run("DELETE FROM mongo_sync.ranges WHERE target = $1", SYNC_OID(local));
	(void) sync_run("DELETE FROM mongo_sync.changed WHERE target = $1", SYNC_OID(local));
}

/*
 * Creates the table that a member is copied to, which gets its owner, and returns its OID.
 *
 * It has the base types of the columns, so that no constraint of a domain is checked in it, and is
 * dropped with the local table or the extension.
 */
static Oid
create_copy(const SyncGroup *group, const SyncMember *member, const SyncTable *table)
{
	StringInfoData columns;
	char	   *name = psprintf("copy_of_%u", member->local);
	ObjectAddress address;
	ObjectAddress depended;
	SyncRights	rights;
	Oid			copy;

	initStringInfo(&columns);
	for (int i = 0; i < table->ncolumns; i++)
	{
		AttrNumber	number = get_attnum(member->local, table->names[i]);
		Oid			type;
		int32		typmod;
		Oid			collation;
		Oid			base;

		get_atttypetypmodcoll(member->local, number, &type, &typmod, &collation);
		base = getBaseTypeAndTypmod(type, &typmod);
		appendStringInfo(&columns, "%s %s%s%s, ", table->columns[i],
						 format_type_extended(base, typmod, FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY),
						 OidIsValid(collation) ? " COLLATE " : "",
						 OidIsValid(collation) ? sync_collation_name(collation) : "");
	}
	copy = get_relname_relid(name, get_namespace_oid("mongo_sync", false));
	if (OidIsValid(copy))
		sync_copy_drop_table(copy);
	(void) sync_run_values(psprintf("CREATE TABLE mongo_sync.%s (%sPRIMARY KEY (%s))", name, columns.data,
									sync_list(table, "%s", ", ", 0, table->nkeys)), NULL, 0);
	copy = get_relname_relid(name, get_namespace_oid("mongo_sync", false));
	CommandCounterIncrement();
	sync_rights_take(&rights, sync_extension_owner());
	ATExecChangeOwner(copy, group->owner, false, AccessExclusiveLock);
	sync_rights_return(&rights);
	ObjectAddressSet(address, RelationRelationId, copy);
	ObjectAddressSet(depended, RelationRelationId, member->local);
	recordDependencyOn(&address, &depended, DEPENDENCY_AUTO);
	ObjectAddressSet(depended, ExtensionRelationId, get_extension_oid("mongo_sync", false));
	recordDependencyOn(&address, &depended, DEPENDENCY_AUTO);
	CommandCounterIncrement();
	return copy;
}

/* -------------------------------- Copying --------------------------------- */

/*
 * Copies a range; returns the number of rows.  With the owner's rights.  Unbinds the time of reads
 * as soon as all is read: triggers read the present, and may write to MongoDB, as they do in steps.
 */
static uint64
insert_range(SyncMember *member, const char *match)
{
	const SyncTable *table = member->table;
	SyncRows   *rows;
	SyncCounts	counts;
	uint64		count;

	if (table->has_triggers || table->has_mismatch)
	{
		rows = sync_rows_create(table);
		sync_rows_fetch_range(rows, match);
		(void) mongo_bind_reads(NULL);
		sync_rows_note_unfit(rows, member);
		counts = sync_rows_apply(rows, member, 0);
		return counts.inserted + counts.updated;
	}
	count = sync_rows_insert_range(table, match);
	/* a document whose _id is null */
	rows = sync_rows_create(table);
	sync_rows_fetch_range(rows, "{\"_id\": null}");
	(void) mongo_bind_reads(NULL);
	sync_rows_note_unfit(rows, member);
	return count;
}

/*
 * sync_copy_range
 *		Copies a range of a member of the group; false if none is left that no other session copies.
 *
 * It is read at the group's position, or at a time that MongoDB chooses if it has no snapshot of
 * that any more.  Other sessions may apply the group's changes at the same time.  A member whose
 * range could not be copied has its turn after all others.
 */
bool
sync_copy_range(SyncRun *run, SyncGroup *group)
{
	UserMapping *user = sync_group_user(group);
	SyncMember *member;
	SyncRights	rights;
	char	   *match;
	char	   *identity;
	int			number;
	uint64		rows;

	if (sync_run("SELECT r.target, r.number, r.match FROM mongo_sync.ranges r JOIN mongo_sync.members m ON m.target = r.target"
				 " WHERE m.group_id = $1 AND r.read_at IS NULL AND m.state = 'copying'"
				 " ORDER BY r.target <= $2, r.target, r.number LIMIT 1 FOR UPDATE OF r SKIP LOCKED",
				 SYNC_INT4(group->id), SYNC_OID(run->copy_after)) == 0)
		return false;
	run->copied = DatumGetObjectId(sync_result(0, 1, NULL));
	number = DatumGetInt32(sync_result(0, 2, NULL));
	match = sync_result_text(0, 3);

	/*
	 * if the copy has begun again meanwhile, changes up to a later position
	 * are not kept
	 */
	group = sync_group_load(group->id);
	member = group == NULL ? NULL : sync_group_member(group, run->copied);
	if (member == NULL)
		return false;

	sync_lock_tables(list_make1(member));
	sync_rights_take(&rights, group->owner);
	sync_table_open(group, member);
	run->time = (MongoReadTime) {.at = run->choose_copy_time ? 0 : group->position,.after = group->position};
	(void) mongo_bind_reads(&run->time);
	AfterTriggerBeginQuery();
	rows = insert_range(member, match);
	sync_rows_call_triggers();
	sync_rights_return(&rights);

	/* a collection that has replaced it, or none, was read */
	identity = sync_collection_identity(user, group->database, member->collection);
	if (identity == NULL || strcmp(identity, member->identity) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("collection \"%s.%s\" was dropped, renamed or replaced while it was copied",
						mongo_printable(group->database), mongo_printable(member->collection)),
				 errhint("CALL mongo_sync.recopy('%s') copies what has its name now.", sync_qualified_name(member->local))));
	/* not the member's row, which steps write */
	(void) sync_run("UPDATE mongo_sync.ranges SET read_at = $3, rows = $4, definition = $5 WHERE target = $1 AND number = $2",
					SYNC_OID(member->target), SYNC_INT4(number), SYNC_INT8(Max(run->time.at, group->position)), SYNC_INT8(rows),
					SYNC_TEXT(member->table->definition));
	return true;
}

/*
 * sync_copy_add_key
 *		Adds the primary key to a table that mongo_sync has created, as its owner.
 */
void
sync_copy_add_key(SyncGroup *group, SyncMember *member)
{
	sync_table_lock_and_open(group, member);
	(void) sync_run_as(group->owner, psprintf("ALTER TABLE %s ADD PRIMARY KEY (%s)", member->table->target_name,
											  sync_list(member->table, "%s", ", ", 0, member->table->nkeys)), 0);
	member->key_at_end = false;
	member->table = NULL;
}

/*
 * sync_copy_end_ranges
 *		Lets the member catch up if all ranges are copied; stops it if they were copied by
 *		different definitions.
 */
void
sync_copy_end_ranges(SyncGroup *group, SyncMember *member)
{
	bool		isnull;
	Datum		latest;
	int64		rows;

	(void) sync_run("SELECT count(*) - count(read_at), max(read_at), sum(rows)::bigint, min(definition), min(definition) = max(definition)"
					" FROM mongo_sync.ranges WHERE target = $1", SYNC_OID(member->target));
	latest = sync_result(0, 2, &isnull);
	if (DatumGetInt64(sync_result(0, 1, NULL)) > 0 || isnull)
		return;
	rows = DatumGetInt64(sync_result(0, 3, NULL));
	member->read_until = (uint64) DatumGetInt64(latest);
	member->definition = sync_result_text(0, 4);
	member->state = DatumGetBool(sync_result(0, 5, NULL)) ? SYNC_CATCHING_UP : SYNC_STOPPED;
	member->reason = member->state == SYNC_STOPPED ? SYNC_CHANGED_DEFINITION : NULL;
	if (member->key_at_end)
		sync_copy_add_key(group, member);
	(void) sync_run("DELETE FROM mongo_sync.ranges WHERE target = $1", SYNC_OID(member->target));
	(void) sync_run("UPDATE mongo_sync.members SET rows_copied = $2 WHERE target = $1",
					SYNC_OID(member->target), SYNC_INT8(rows));
}

/*
 * sync_copy_keep_changed
 *		Keeps the keys of documents that have changed, bytea Datums.
 */
void
sync_copy_keep_changed(const SyncMember *member, Datum *keys, int count)
{
	(void) sync_run("INSERT INTO mongo_sync.changed (target, key) SELECT $1, k FROM unnest($2) k ON CONFLICT DO NOTHING",
					SYNC_OID(member->target),
					SYNC_DATUM(BYTEAARRAYOID, PointerGetDatum(construct_array(keys, count, BYTEAOID, -1, false, TYPALIGN_INT))));
}

/*
 * sync_copy_take_changed
 *		Adds up to so many of the keys to the member's rows, and forgets them; false if there may
 *		be more.  With the state's rights; the keys are added by the caller with the owner's.
 */
bool
sync_copy_take_changed(const SyncMember *member, int limit, List **keys)
{
	uint64		count = sync_run("DELETE FROM mongo_sync.changed WHERE ctid = ANY (ARRAY"
								 " (SELECT ctid FROM mongo_sync.changed WHERE target = $1 LIMIT $2)) RETURNING key",
								 SYNC_OID(member->target), SYNC_INT4(limit));

	for (uint64 row = 0; row < count; row++)
		*keys = lappend(*keys, DatumGetByteaPCopy(sync_result(row, 1, NULL)));
	return count < (uint64) limit;
}

/*
 * sync_copy_again
 *		Begins to copy a member to a new table, which replaces its rows in the end.  A copy that
 *		had begun is given up.
 *
 * The group must be locked.  With the extension owner's rights for the new table; needs nothing of
 * the caller.
 */
void
sync_copy_again(SyncGroup *group, SyncMember *member)
{
	UserMapping *user = sync_group_user(group);
	SyncMember *copy = palloc0(sizeof(SyncMember));

	sync_copy_give_up(group, member->local);
	sync_table_lock_and_open(group, member);
	if (member->state == SYNC_COPYING || member->state == SYNC_CATCHING_UP)
	{
		member->state = SYNC_STOPPED;
		member->reason = "it is copied again";
		sync_member_store(member);
	}
	*copy = *member;
	copy->stored = NULL;
	copy->target = create_copy(group, member, member->table);
	copy->definition = member->table->definition;
	copy->key_at_end = false;
	copy->collection = mongo_to_utf8(mongo_table_options(member->foreign)->collection);
	(void) sync_run("INSERT INTO mongo_sync.members (target, local_table, foreign_table, group_id, state, collection, read_until, deleted_at)"
					" VALUES ($1, $2, $3, $4, 'copying', $5, 0, NULL)",
					SYNC_OID(copy->target), SYNC_OID(copy->local), SYNC_OID(copy->foreign), SYNC_INT4(group->id),
					SYNC_TEXT(copy->collection));
	sync_copy_begin(group, copy, user);
	group->members = lappend(group->members, copy);
}

/*
 * sync_copy_stopped
 *		Begins to copy the stopped members that are wanted and are not copied yet to new tables,
 *		if there are collections of their names.  Returns whether there are any.
 *
 * The group must be locked.
 */
bool
sync_copy_stopped(SyncGroup *group, SyncWanted *wanted)
{
	UserMapping *user = sync_group_user(group);
	bool		found = false;

	foreach_ptr(SyncMember, member, list_copy(group->members))
	{
		bool		is_copied = false;

		if (member->state != SYNC_STOPPED || member->target != member->local || !wanted(member))
			continue;
		foreach_ptr(const SyncMember, copy, group->members)
			is_copied |= copy->local == member->local && copy->target != copy->local;
		if (!is_copied && sync_collection_identity(user, group->database, member->collection) != NULL)
		{
			sync_copy_again(group, member);
			found = true;
		}
	}
	return found;
}
