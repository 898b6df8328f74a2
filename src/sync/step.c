/*-------------------------------------------------------------------------
 *
 * step.c
 *		A unit of work: a step of a group's position, or a range of a copy.
 *
 * A step is one transaction: all changes up to T of all tables, and the position T.  The documents
 * that have changed are read at S.  That is T, or later if rows were already read later, so that
 * no document goes back: MongoDB keeps snapshots for a few minutes only.  While T is before the
 * time of the latest read, S stands still and T runs to it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync_internal.h"

#include "access/xact.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

/* The time whose changes are being written, for triggers; 0: none. */
uint64		sync_applied_time;

/* -------------------------------- Events ---------------------------------- */

/* Tells whether the collection has another content, or none, after an operation. */
static bool
ends_collection(const char *operation)
{
	return strcmp(operation, "drop") == 0 || strcmp(operation, "rename") == 0 ||
		strcmp(operation, "dropDatabase") == 0;
}

/* Notes why a member is not synchronized any more. */
static void
stop_member(SyncMember *member, const char *reason)
{
	member->state = SYNC_STOPPED;
	member->reason = reason;
	member->keys = NIL;
}

/* Records the first event of the latest time, by which the history is recognized. */
static void
note_event(SyncGroup *group, const SyncEvent *event)
{
	bson_t	   *document = mongo_bson_create();

	mongo_append(document, "time", mongo_timestamp(event->time));
	if (event->collection != NULL)
		mongo_append(document, "collection", mongo_utf8(event->collection));
	if (event->key != NULL)
	{
		bson_t		view;
		bson_iter_t id;

		if (mongo_bson_view(&view, (uint8 *) VARDATA(event->key), VARSIZE(event->key) - VARHDRSZ) &&
			bson_iter_init_find(&id, &view, "_id"))
			mongo_append_iter(document, "key", &id);
	}
	group->last_event = document;
}

/* Gives the members the keys of all documents that changed up to T; returns how many. */
static uint64
dispatch_events(SyncRun *run, SyncGroup *group, uint64 until)
{
	SyncEvent	event;
	SyncEvent	last = {0};
	uint64		count = 0;

	while (sync_run_next(run, until, &event))
	{
		CHECK_FOR_INTERRUPTS();
		if (event.collection != NULL && event.time != last.time)
			last = event;
		foreach_ptr(SyncMember, member, group->members)
		{
			if (member->state == SYNC_STOPPED ||
				(event.collection != NULL && strcmp(event.collection, member->collection) != 0))
				continue;
			if (event.operation == NULL)
				member->keys = lappend(member->keys, event.key);
			else if (ends_collection(event.operation))
				stop_member(member, event.operation);
		}
		count += event.operation == NULL;
	}
	if (last.time != 0)
		note_event(group, &last);
	return count;
}

/* Keeps the keys of a member that is still copied. */
static void
keep_keys(SyncMember *member)
{
	Datum	   *keys = palloc(sizeof(Datum) * Max(list_length(member->keys), 1));
	int			count = 0;
	ListCell   *cell;

	foreach(cell, member->keys)
		keys[count++] = PointerGetDatum(lfirst(cell));
	if (count > 0)
		sync_copy_keep_changed(member, keys, count);
	member->keys = NIL;
}

/* Keeps the changes of members that are copied, and lets them catch up. */
static void
prepare_copies(SyncGroup *group)
{
	foreach_ptr(SyncMember, member, group->members)
	{
		if (member->state != SYNC_COPYING && member->state != SYNC_CATCHING_UP)
			continue;
		keep_keys(member);
		if (member->state == SYNC_COPYING)
			sync_copy_end_ranges(group, member);
		if (member->state == SYNC_CATCHING_UP)
			member->is_caught_up = sync_copy_take_changed(member, SYNC_BATCH, &member->keys);
	}
}

/* --------------------------- Reading and writing -------------------------- */

/* Returns the latest time at which rows of the synchronized members were read. */
static uint64
read_until(const SyncGroup *group)
{
	uint64		latest = 0;

	foreach_ptr(const SyncMember, member, group->members)
	{
		if (member->state == SYNC_SYNCHRONIZED)
			latest = Max(latest, member->read_until);
	}
	return latest;
}

/* Opens the tables of members, and stops those whose definition has changed. */
static List *
open_tables(SyncGroup *group, List *members)
{
	List	   *opened = NIL;

	foreach_ptr(SyncMember, member, members)
	{
		sync_table_open(group, member);
		if (member->table->has_changed)
			stop_member(member, SYNC_CHANGED_DEFINITION);
		else
			opened = lappend(opened, member);
	}
	return opened;
}

/*
 * Reads the documents whose keys the members have.  If MongoDB has no snapshot of
 * that time any more, it chooses one, which is the same for all members.
 */
static void
read_members(SyncRun *run, SyncGroup *group, List *members, uint64 until)
{
	uint64		latest = read_until(group);

	run->time = (MongoReadTime) {.after = Max(until, latest)};
	foreach_ptr(SyncMember, member, members)
	{
		uint64		read_until = member->state == SYNC_SYNCHRONIZED ? latest : member->read_until;
		ListCell   *key;

		if (!run->choose_time)
			run->time.at = Max(until, read_until);
		(void) mongo_bind_reads(&run->time);
		member->rows = sync_rows_create(member->table);
		foreach(key, member->keys)
			sync_rows_add(member->rows, lfirst(key));
		sync_rows_fetch(member->rows);
		member->read_until = Max(member->read_until, run->time.at);
		(void) mongo_bind_reads(NULL);
	}
}

/* Stops members whose name has another collection than they were copied from. */
static void
check_identities(SyncGroup *group, List **members)
{
	UserMapping *user = sync_group_user(group);
	List	   *same = NIL;

	foreach_ptr(SyncMember, member, *members)
	{
		char	   *identity = sync_collection_identity(user, group->database, member->collection);

		if (identity != NULL && strcmp(identity, member->identity) == 0)
			same = lappend(same, member);
		else
			stop_member(member, identity == NULL ? "drop" : "rename");
	}
	*members = same;
}

/*
 * Replaces the rows of a local table by those of its new copy.
 */
static void
replace_rows(SyncGroup *group, const SyncMember *copy, uint64 until)
{
	SyncMember *member = sync_group_member(group, copy->local);

	member->counts = sync_rows_swap(member, member->table, copy->table, until);
	member->state = SYNC_SYNCHRONIZED;
	member->reason = NULL;
	member->collection = copy->collection;
	member->identity = copy->identity;
	member->read_until = copy->read_until;
}

/* Notes for the local table what was noted for its new copy, and drops that. */
static void
forget_copy(SyncGroup *group, SyncMember *copy)
{
	(void) sync_run("DELETE FROM mongo_sync.unfit WHERE target = $1", SYNC_OID(copy->local));
	(void) sync_run("UPDATE mongo_sync.unfit SET target = $1 WHERE target = $2",
					SYNC_OID(copy->local), SYNC_OID(copy->target));
	(void) sync_run("UPDATE mongo_sync.members m SET rows_copied = c.rows_copied, collection = c.collection FROM mongo_sync.members c"
					" WHERE m.target = $1 AND c.target = $2",
					SYNC_OID(copy->local), SYNC_OID(copy->target));
	sync_copy_drop_table(copy->target);
	group->members = list_delete_ptr(group->members, copy);
}

/*
 * Returns the members that equal MongoDB at T when this step is written.  Tables with foreign
 * keys join together, as these hold only then.
 */
static List *
joining(const SyncGroup *group, uint64 until)
{
	List	   *plain = NIL;
	List	   *related = NIL;
	bool		related_wait = false;

	foreach_ptr(SyncMember, member, group->members)
	{
		bool		is_ready = member->state == SYNC_CATCHING_UP && member->is_caught_up && member->read_until <= until;

		if (member->state != SYNC_COPYING && member->state != SYNC_CATCHING_UP)
			continue;
		if (!sync_has_foreign_keys(member->local))
			plain = is_ready ? lappend(plain, member) : plain;
		else if (is_ready)
			related = lappend(related, member);
		else
			related_wait = true;
	}
	return related_wait ? plain : list_concat(plain, related);
}

/* Makes the members' tables equal to what was read, and calls their triggers. */
static void
write_all(SyncGroup *group, List *members, List *joined, uint64 until)
{
	sync_applied_time = until;
	AfterTriggerBeginQuery();
	foreach_ptr(SyncMember, member, members)
	{
		sync_rows_note_unfit(member->rows, member);
		member->counts = sync_rows_apply(member->rows, member, until);
	}
	foreach_ptr(SyncMember, member, joined)
	{
		member->state = SYNC_SYNCHRONIZED;
		if (member->target != member->local)
			replace_rows(group, member, until);
	}
	sync_rows_call_triggers();
	sync_applied_time = 0;
}

/*
 * Opens the tables of the members that join, and those that their copies replace.  False if none
 * can join in this step: a copy was made by another definition, and is stopped.
 */
static bool
open_joined(SyncGroup *group, List *joined)
{
	foreach_ptr(SyncMember, copy, joined)
	{
		if (copy->target == copy->local)
			continue;
		if (copy->table == NULL)
			sync_table_open(group, copy);
		if (copy->table->has_changed)
		{
			stop_member(copy, SYNC_CHANGED_DEFINITION);
			return false;
		}
		sync_group_member(group, copy->local)->definition = NULL;
		sync_table_open(group, sync_group_member(group, copy->local));
	}
	return true;
}

/* Stores members, position and what was done. */
static void
store(const SyncRun *run, SyncGroup *group, uint64 changes)
{
	foreach_ptr(SyncMember, member, group->members)
	{
		sync_member_store(member);
		sync_member_note_rows(member);
	}
	group->is_consistent = read_until(group) <= group->position;
	/* the change that could not be applied may be yet to come */
	sync_group_note_position(group, changes, !run->copy_fails && (changes > 0 || run->is_at_end));
}

/* ------------------------------ Whole units ------------------------------- */

/* Forgets members whose local table is gone, and a group that has none left. */
static void
forget_dropped(SyncGroup *group)
{
	foreach_ptr(SyncMember, member, list_copy(group->members))
	{
		if (get_rel_name(member->local) != NULL)
			continue;
		sync_member_forget(member->target);
		group->members = list_delete_ptr(group->members, member);
	}
	if (group->members == NIL)
		(void) sync_run("DELETE FROM mongo_sync.groups WHERE id = $1", SYNC_INT4(group->id));
}

/* Tells whether a member is stopped because its collection is gone. */
static bool
has_lost_collection(const SyncMember *member)
{
	return ends_collection(member->reason);
}

/* Copies a followed group's members again whose collections were gone; tells whether one was. */
static bool
copied_lost(SyncGroup *group)
{
	return group->follow && sync_copy_stopped(group, has_lost_collection);
}

/* Gives up copies that were stopped, so that their tables can be copied again. */
static void
forget_stopped_copies(SyncGroup *group)
{
	foreach_ptr(SyncMember, copy, list_copy(group->members))
	{
		SyncMember *member = sync_group_member(group, copy->local);

		if (copy->state != SYNC_STOPPED || copy->target == copy->local)
			continue;
		/* what was copied before was copied by other columns or options, too */
		if (member->state == SYNC_STOPPED || strcmp(copy->reason, SYNC_CHANGED_DEFINITION) == 0)
			stop_member(member, copy->reason);
		sync_copy_drop_table(copy->target);
		group->members = list_delete_ptr(group->members, copy);
	}
}

/* Returns the members that have documents to be read. */
static List *
working(const SyncGroup *group)
{
	List	   *members = NIL;

	foreach_ptr(SyncMember, member, group->members)
	{
		if (member->keys != NIL)
			members = lappend(members, member);
	}
	return members;
}

/* Returns the members that are copied, and those whose rows their copies will replace. */
static List *
copied(const SyncGroup *group)
{
	List	   *members = NIL;

	foreach_ptr(SyncMember, member, group->members)
	{
		if (member->state == SYNC_CATCHING_UP)
			members = list_append_unique_ptr(list_append_unique_ptr(members, member), sync_group_member(group, member->local));
	}
	return members;
}

/* Tells whether a synchronized table of the group has foreign keys. */
static bool
has_related(const SyncGroup *group)
{
	foreach_ptr(const SyncMember, member, group->members)
	{
		if (member->state == SYNC_SYNCHRONIZED && sync_has_foreign_keys(member->local))
			return true;
	}
	return false;
}

/* Tells whether a member is synchronized or copied. */
static bool
is_active(const SyncGroup *group)
{
	ListCell   *cell;

	foreach(cell, group->members)
	{
		if (((const SyncMember *) lfirst(cell))->state != SYNC_STOPPED)
			return true;
	}
	return false;
}

/*
 * sync_step
 *		Applies the changes of a batch, or of as many as belong to one cluster time, in the current
 *		transaction.  Opens the stream, if it is not open for the group as it is now.
 *
 * Waits up to so many milliseconds for a first event, unless a reply is outstanding.  Raises
 * whatever reading, writing or the tables' triggers raise.
 */
SyncResult
sync_step(SyncRun *run, int max_wait)
{
	SyncGroup  *group;
	SyncRights	rights;
	List	   *members;
	List	   *joined;
	SyncEvent	applied;
	uint64		until;
	uint64		changes;

	if (!sync_group_lock(run->group, false))
		return sync_group_load(run->group) == NULL ? SYNC_PAUSED : SYNC_BUSY;
	group = sync_group_load(run->group);
	if (group == NULL || group->paused)
		return SYNC_PAUSED;
	forget_dropped(group);
	if (group->members == NIL)
		return SYNC_PAUSED;
	run->is_copying = sync_is_copying(group);
	if (!is_active(group))
	{
		sync_run_close(run);
		run->mark = sync_present(sync_group_user(group));
		return copied_lost(group) ? SYNC_DONE : SYNC_AT_PRESENT;
	}
	if (!sync_run_is_current(run, group))
	{
		sync_run_open(run, group);
		return SYNC_DONE;
	}
	/* another session has applied some of them */
	while (run->position < group->position && sync_run_next(run, group->position, &applied))
		CHECK_FOR_INTERRUPTS();
	run->position = group->position;
	sync_run_receive(run, group, max_wait);

	/*
	 * if there is nothing behind the last event, all of its time is known:
	 * look once
	 */
	run->has_more = !run->is_at_end && !run->has_more && !mongo_event_stream_is_closed(run->stream);
	if (run->has_more)
		return SYNC_DONE;
	until = Max(run->known_until, group->position);

	/*
	 * the changes of one time are applied whole, so small batches of them are
	 * of no use
	 */
	if (until == group->position && !run->is_at_end)
		run->batch_size = Min(SYNC_BATCH, run->batch_size * 2);
	if (until == group->position && !run->is_copying)
		return copied_lost(group) || !run->is_at_end ? SYNC_DONE : SYNC_AT_PRESENT;

	/* foreign keys may not hold before T has reached the time of the reads */
	if (run->choose_time && has_related(group))
	{
		run->whole_until = sync_present(sync_group_user(group));
		run->choose_time = false;
	}
	if (until < run->whole_until || (until < read_until(group) && has_related(group)))
		return SYNC_DONE;

	changes = dispatch_events(run, group, until);
	prepare_copies(group);
	members = working(group);
	joined = NIL;
	if (members != NIL || sync_is_copying(group))
	{
		sync_lock_tables(list_union_ptr(members, copied(group)));
		sync_rights_take(&rights, group->owner);
		members = open_tables(group, members);

		/*
		 * a collection that is gone cannot be read; that it is may be told
		 * much later
		 */
		if (run->choose_time)
			check_identities(group, &members);
		read_members(run, group, members, until);
		if (run->choose_time)
			check_identities(group, &members);
		joined = joining(group, until);
		if (!open_joined(group, joined))
			joined = NIL;
		write_all(group, members, joined, until);
		sync_rights_return(&rights);
	}
	foreach_ptr(SyncMember, member, joined)
	{
		if (member->target == member->local)
			continue;
		if (sync_group_member(group, member->local)->key_at_end)
			sync_copy_add_key(group, sync_group_member(group, member->local));
		forget_copy(group, member);
	}
	forget_stopped_copies(group);
	group->position = until;
	group->seen_at = Max(group->seen_at, run->mark);
	store(run, group, changes);
	run->is_copying = sync_is_copying(group);
	run->batch_size = Min(SYNC_BATCH, run->batch_size * 2);

	/*
	 * a step without any document may come before the one that is to read at
	 * such a time
	 */
	if (run->time.at != 0)
		run->choose_time = false;
	run->whole_until = 0;
	run->position = until;
	return copied_lost(group) || !run->is_at_end || changes > 0 ? SYNC_DONE : SYNC_AT_PRESENT;
}

/*
 * sync_copy_unit
 *		Copies a range of a member of the group; SYNC_AT_PRESENT if there is none.
 */
SyncResult
sync_copy_unit(SyncRun *run, int max_wait pg_attribute_unused())
{
	SyncGroup  *group = sync_group_load(run->group);

	if (group == NULL || group->paused)
		return SYNC_PAUSED;
	return sync_copy_range(run, group) ? SYNC_DONE : SYNC_AT_PRESENT;
}

/* Opens the group's stream, to see whether that is possible. */
static SyncResult
open_unit(SyncRun *run, int max_wait pg_attribute_unused())
{
	SyncGroup  *group = sync_group_load(run->group);

	sync_run_open(run, group);
	sync_run_receive(run, group, 1);
	return SYNC_DONE;
}

/* Notes an error that has ended a unit of work, and tells the log once. */
static void
note_failure(SyncRun *run)
{
	SyncGroup  *group = sync_group_load(run->group);
	StringInfoData text;

	if (group == NULL)
		return;
	initStringInfo(&text);
	appendStringInfoString(&text, run->error->message);
	if (run->error->detail != NULL)
		appendStringInfo(&text, "\nDETAIL: %s", run->error->detail);
	if (run->error->hint != NULL)
		appendStringInfo(&text, "\nHINT: %s", run->error->hint);
	if (group->last_error == NULL || strcmp(group->last_error, text.data) != 0)
		ereport(LOG,
				(errmsg("mongo_sync could not go on with \"%s\": %s", group->name, run->error->message),
				 errhidestmt(true), errhidecontext(true)));
	if (sync_group_lock(run->group, false))
		sync_group_note_failure(run->group, text.data,
								psprintf("%s: %s", unpack_sql_state(run->error->sqlerrcode),
										 run->error->message_id == NULL ? "" : run->error->message_id));
}

/*
 * sync_run_unit
 *		Runs a unit of work within a subtransaction.
 *
 * After an error, which run->error then has, nothing of the unit is left but a note in the
 * group's row.  The caller ends the transaction after each unit.
 */
SyncResult
sync_run_unit(SyncRun *run, SyncUnit *unit, int max_wait)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext context = AllocSetContextCreate(outer, "mongo_sync unit", ALLOCSET_DEFAULT_SIZES);
	ResourceOwner owner = CurrentResourceOwner;
	ConstraintsSetStmt immediate = {.type = T_ConstraintsSetStmt,.constraints = NIL,.deferred = false};
	volatile SyncResult result = SYNC_FAILED;	/* also if the unit's end
												 * raises */
	bool	   *choose_time = unit == sync_copy_unit ? &run->choose_copy_time : &run->choose_time;

	run->time = (MongoReadTime) {0};
	run->failure = 0;

	/*
	 * no trigger may be left for the end of the transaction, where it had
	 * other rights
	 */
	AfterTriggerSetState(&immediate);
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		result = unit(run, max_wait);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(run->context);
		if (run->error != NULL)
			FreeErrorData(run->error);
		run->error = CopyErrorData();
		FlushErrorState();
		MemoryContextSwitchTo(outer);
		RollbackAndReleaseCurrentSubTransaction();
		(void) mongo_bind_reads(NULL);
		sync_applied_time = 0;
		/* a copy has nothing to do with the stream */
		if (unit != sync_copy_unit)
			sync_run_close(run);
	}
	PG_END_TRY();
	CurrentResourceOwner = owner;
	MemoryContextSwitchTo(context);
	if (result == SYNC_FAILED &&
		(run->time.failure == SYNC_SNAPSHOT_TOO_OLD || run->time.failure == SYNC_SNAPSHOT_UNAVAILABLE ||
		 run->time.failure == SYNC_NAMESPACE_NOT_FOUND) && !*choose_time)
	{
		*choose_time = true;
		result = SYNC_DONE;
	}
	else if (result == SYNC_FAILED)
	{
		*choose_time = false;
		/* a batch that took too long is tried again in smaller ones */
		if (unit != sync_copy_unit)
			run->batch_size = Max(1, run->batch_size / 4);
		if (!run->is_hurried || run->error->sqlerrcode != ERRCODE_QUERY_CANCELED)
			note_failure(run);
	}
	if (unit == sync_copy_unit)
	{
		run->copy_fails = result == SYNC_FAILED;
		if (run->copy_fails)
			run->copy_after = run->copied;
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(context);
	return result;
}

/*
 * sync_position_is_lost
 *		Tells whether MongoDB has no longer the changes behind the group's position.
 */
bool
sync_position_is_lost(SyncGroup *group)
{
	SyncRun    *run = sync_run_create(group->id, CurrentMemoryContext);
	bool		result = sync_run_unit(run, open_unit, 0) == SYNC_FAILED && sync_run_is_lost(run);

	MemoryContextDelete(run->context);
	return result;
}

/*
 * sync_begin_again
 *		Gives a group whose position is lost the present one.  All members are stopped until they
 *		are copied again.  Raises 42P01 if none of their collections is there any more.
 */
void
sync_begin_again(SyncGroup *group)
{
	UserMapping *user = sync_group_user(group);
	const char *collection = NULL;
	ListCell   *cell;

	foreach(cell, group->members)
	{
		collection = ((SyncMember *) lfirst(cell))->collection;
		if (sync_collection_identity(user, group->database, collection) != NULL)
			break;
	}
	group->position = sync_snapshot_time(user, group->database, collection);
	group->last_event = NULL;
	foreach_ptr(SyncMember, member, list_copy(group->members))
	{
		if (member->target != member->local)
			continue;
		sync_copy_give_up(group, member->local);
		stop_member(member, "the changes since its last step are lost");
		member->read_until = 0;
		sync_member_store(member);
	}
	group->is_consistent = false;
	sync_group_note_position(group, 0, true);
	(void) sync_run("UPDATE mongo_sync.groups SET replica_set = $2 WHERE id = $1",
					SYNC_INT4(group->id), SYNC_TEXT(sync_replica_set(user)));
}

/*
 * sync_follow_unit
 *		Begins again with all tables of a group whose changes are lost, if it was asked to follow.
 *		SYNC_PAUSED: it was not.
 */
SyncResult
sync_follow_unit(SyncRun *run, int max_wait pg_attribute_unused())
{
	SyncGroup  *group;

	if (!sync_group_lock(run->group, false))
		return SYNC_BUSY;
	group = sync_group_load(run->group);
	if (group == NULL || group->paused || !group->follow)
		return SYNC_PAUSED;
	forget_dropped(group);
	if (group->members == NIL)
		return SYNC_PAUSED;
	sync_begin_again(group);
	foreach_ptr(SyncMember, member, list_copy(group->members))
	{
		if (sync_collection_identity(sync_group_user(group), group->database,
									 member->collection) != NULL)
			sync_copy_again(group, member);
		else
		{
			stop_member(member, "drop");
			sync_member_store(member);
		}
	}
	run->is_copying = true;
	return SYNC_DONE;
}
