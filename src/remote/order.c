/*-------------------------------------------------------------------------
 *
 * order.c
 *		Send and read in the order that SQL demands of a session.
 *
 * In SQL a scan sees what earlier commands have written, and nothing of what is written
 * while it runs.  Statements keep their writes back, and MongoDB's cursors, unless they
 * are outside of the transaction that writes, meet what is written while they are read.
 * So two things happen before a command leaves:
 *
 * - Writes that were kept back are sent, if it may read them and its snapshot shows them,
 *	 or if it writes to the same collection.
 * - If it writes, the open cursors that may meet that are read to their end, into
 *	 work_mem and from there into temporary files.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"
#include "remote.h"

#include "miscadmin.h"
#include "utils/snapmgr.h"

/* Queues that hold unsent writes, the longest first. */
static dlist_head unsent_writes = DLIST_STATIC_INIT(unsent_writes);

/* The nesting level of the statement whose writes are sent; 0: the current one. */
static int	writing_level = 0;

bool
mongo_extents_meet(const MongoExtent *one, const MongoExtent *other)
{
	return one->serverid == other->serverid &&
		(one->database == NULL || other->database == NULL ||
		 strcmp(one->database, other->database) == 0) &&
		(one->collection == NULL || other->collection == NULL ||
		 strcmp(one->collection, other->collection) == 0);
}

/* ------------------------------ unsent writes ------------------------------- */

void
mongo_unsent_add(MongoUnsent *unsent)
{
	if (!unsent->listed)
		dlist_push_tail(&unsent_writes, &unsent->node);
	unsent->listed = true;
}

void
mongo_unsent_remove(MongoUnsent *unsent)
{
	if (unsent->listed)
		dlist_delete(&unsent->node);
	unsent->listed = false;
}

/* find_unsent: writes of a command before 'command' to what the extent is of, or NULL. */
static MongoUnsent *
find_unsent(const MongoExtent *extent, CommandId command)
{
	dlist_iter	iter;

	dlist_foreach(iter, &unsent_writes)
	{
		MongoUnsent *unsent = dlist_container(MongoUnsent, node, iter.cur);

		if (unsent->command < command && mongo_extents_meet(&unsent->extent, extent))
			return unsent;
	}
	return NULL;
}

int
mongo_writing_level(void)
{
	return writing_level > 0 ? writing_level : GetCurrentTransactionNestLevel();
}

/* send_one: as a part of its own statement. */
static void
send_one(MongoUnsent *unsent)
{
	int			level = writing_level;

	mongo_unsent_remove(unsent);
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

void
mongo_before_read(const MongoExtent *extent, CommandId command)
{
	MongoUnsent *unsent;

	/* sending one may have others sent first, so the list is searched anew */
	while ((unsent = find_unsent(extent, command)) != NULL)
		send_one(unsent);
}

/* --------------------------------- writes ----------------------------------- */

MongoSession *
mongo_begin_write(UserMapping *user, const MongoExtent *extent)
{
	MongoSession *session = mongo_session_for_write(user);

	mongo_before_read(extent, InvalidCommandId);
	mongo_cursors_read_to_end(extent, session->lease != NULL);
	return session;
}

void
mongo_begin_command(UserMapping *user, const char *database, bool writes)
{
	MongoExtent extent = {user->serverid, database, NULL};

	if (ActiveSnapshotSet())
		mongo_before_read(&extent, GetActiveSnapshot()->curcid);
	if (writes)
		mongo_cursors_read_to_end(&extent, false);
}
