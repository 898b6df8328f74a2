/*-------------------------------------------------------------------------
 *
 * order.c
 *		Keeps a session's reads and writes in the order that SQL requires.
 *
 * In SQL a scan sees what earlier commands have written, and nothing that is written while it
 * runs.  But statements defer their writes, and MongoDB's cursors return what is written while
 * they are read, unless the write is in a transaction and the cursor is not.  So two things
 * happen before a command is sent:
 *
 * - Deferred writes to the same collection are sent, if the command writes, or if it reads in a
 *	 snapshot that shows them.
 * - If the command writes, scans that have not been read yet are begun if they may return its
 *	 changes, and open cursors are read to their end.  Their documents are stored in work_mem, and
 *	 beyond that in temporary files.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include "miscadmin.h"
#include "utils/snapmgr.h"

/* Queues with unsent writes (MongoUnsent), the oldest first. */
static dlist_head unsent_writes;

/* The scans of all queries that are being executed. */
dlist_head	mongo_active_scans;

/* Every cursor from its opening to its end. */
dlist_head	mongo_open_cursors;

/* The nesting level of the statement whose deferred writes are being sent; 0: none are. */
static int	writing_level = 0;

/*
 * mongo_scopes_overlap
 *		Tells whether both include the same collection.
 */
bool
mongo_scopes_overlap(const MongoAccessScope *one, const MongoAccessScope *other)
{
	return one->serverid == other->serverid &&
		(one->database == NULL || other->database == NULL ||
		 strcmp(one->database, other->database) == 0) &&
		(one->collection == NULL || other->collection == NULL ||
		 strcmp(one->collection, other->collection) == 0);
}

/* --------------------- what a statement leaves in lists --------------------- */

/* Removes a list's members whose resource owner is being released. */
static void
remove_released(ResourceReleasePhase phase pg_attribute_unused(),
				bool is_commit pg_attribute_unused(), bool is_top pg_attribute_unused(), void *list)
{
	foreach_dlist(MongoListMember, node, member, (dlist_head *) list)
	{
		if (member->owner == CurrentResourceOwner)
			mongo_list_remove(member);
	}
}

/*
 * mongo_list_add
 *		Adds the member at the end of a list that is static and zero at first.  Does nothing if it
 *		is in one.  It belongs to the current resource owner.
 */
void
mongo_list_add(dlist_head *list, MongoListMember *member)
{
	if (member->owner != NULL)
		return;
	if (list->head.next == NULL)
		RegisterResourceReleaseCallback(remove_released, list);
	dlist_push_tail(list, &member->node);
	member->owner = CurrentResourceOwner;
}

/*
 * mongo_list_remove
 *		Removes a MongoListMember from its list, if it is in one.  Never raises.
 */
void
mongo_list_remove(void *listed)
{
	MongoListMember *member = listed;

	if (member->owner != NULL)
		dlist_delete(&member->node);
	member->owner = NULL;
}

/* ------------------------------ unsent writes ------------------------------- */

/*
 * mongo_unsent_add
 *		Adds to the list of unsent writes.
 */
void
mongo_unsent_add(MongoUnsent *unsent)
{
	mongo_list_add(&unsent_writes, &unsent->listed);
}

/* Returns unsent writes to the scope by a command before 'command', or NULL. */
static MongoUnsent *
find_unsent(const MongoAccessScope *scope, CommandId command)
{
	foreach_dlist(MongoUnsent, listed.node, unsent, &unsent_writes)
	{
		if (unsent->command < command && mongo_scopes_overlap(&unsent->scope, scope))
			return unsent;
	}
	return NULL;
}

/*
 * mongo_writing_level
 *		Returns the nesting level of the statement whose writes are sent.
 */
int
mongo_writing_level(void)
{
	return writing_level > 0 ? writing_level : GetCurrentTransactionNestLevel();
}

/* Sends unsent writes, at the nesting level of their own statement. */
static void
send_one(MongoUnsent *unsent)
{
	int			level = writing_level;

	mongo_list_remove(&unsent->listed);
	writing_level = unsent->level;
	PG_TRY();
	{
		unsent->send(unsent);
	}
	PG_FINALLY();
	{
		writing_level = level;
	}
	PG_END_TRY();
}

/*
 * mongo_before_read
 *		Sends the unsent writes to 'scope' of all commands before 'command'.  Called before
 *		'scope' is read in a snapshot that shows these writes.
 *
 * Raises what sending raises.  The statement that the writes belong to then fails, too.
 */
void
mongo_before_read(const MongoAccessScope *scope, CommandId command)
{
	MongoUnsent *unsent;

	/* sending one may send others first, so the list is searched again */
	while ((unsent = find_unsent(scope, command)) != NULL)
		send_one(unsent);
}

/* --------------------------------- writes ----------------------------------- */

/*
 * mongo_begin_readers
 *		Calls the scans of 'scope' whose snapshots do not show what 'command' writes, so that they
 *		begin.  They stay in the list, but others may come and go.
 */
void
mongo_begin_readers(const MongoAccessScope *scope, CommandId command, MemoryContext statement,
					bool deferred)
{
	dlist_iter	iter;

	dlist_foreach(iter, &mongo_active_scans)
	{
		MongoActiveScan *reader = dlist_container(MongoActiveScan, listed.node, iter.cur);

		if (reader->command <= command && mongo_scopes_overlap(&reader->scope, scope))
			reader->before_write(reader, scope, statement, deferred);
	}
}

/*
 * mongo_cursors_read_to_end
 *		Reads to their end, and stores, the open cursors that may see a write to 'scope', inside
 *		or outside of MongoDB's transaction.
 *
 * Raises what reading raises; the cursor then raises HV000 when it is read on, unless the error
 * was a cancel.
 */
void
mongo_cursors_read_to_end(const MongoAccessScope *scope, bool in_transaction)
{
	dlist_iter	iter;

	dlist_foreach(iter, &mongo_open_cursors)
	{
		MongoOpenCursor *cursor = dlist_container(MongoOpenCursor, listed.node, iter.cur);

		if (mongo_scopes_overlap(&cursor->scope, scope))
			cursor->read_to_end(cursor, in_transaction);
	}
}

/*
 * mongo_begin_command
 *		Does what mongo_begin_write() does before an SQL function runs a command in a database
 *		(NULL: any) whose collections are not known.
 *
 * Sends only writes that the caller's snapshot shows, and begins and reads scans only if the
 * command 'writes'.
 */
void
mongo_begin_command(UserMapping *user, const char *database, bool writes)
{
	MongoAccessScope scope = {user->serverid, database, NULL};

	if (ActiveSnapshotSet())
		mongo_before_read(&scope, GetActiveSnapshot()->curcid);
	if (!writes)
		return;
	mongo_begin_readers(&scope, GetCurrentCommandId(false), NULL, false);
	mongo_cursors_read_to_end(&scope, false);
}
