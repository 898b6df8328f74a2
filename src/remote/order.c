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

#include "catalog/pg_type_d.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

/* Queues that hold unsent writes, the longest first. */
static dlist_head unsent_writes = DLIST_STATIC_INIT(unsent_writes);

/* The nesting level of the statement whose writes are sent; 0: the current one. */
static int	writing_level = 0;

/* Every cursor from its opening to its end. */
static dlist_head open_cursors = DLIST_STATIC_INIT(open_cursors);

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

/*
 * send_unsent
 *		Sending one may have others sent first, so the list is searched anew.
 */
static void
send_unsent(const MongoExtent *extent, CommandId command)
{
	MongoUnsent *unsent;

	while ((unsent = find_unsent(extent, command)) != NULL)
		send_one(unsent);
}

void
mongo_before_read(const MongoExtent *extent, CommandId command)
{
	send_unsent(extent, command);
}

/* ------------------------------- open cursors ------------------------------- */

void
mongo_order_note_open(MongoCursor *cursor)
{
	MemoryContext old_context = MemoryContextSwitchTo(cursor->context);

	cursor->owner = CurrentResourceOwner;
	cursor->userid = GetUserId();
	cursor->tables = list_copy(mongo_tables_at_work());
	MemoryContextSwitchTo(old_context);
	dlist_push_tail(&open_cursors, &cursor->node);
	cursor->listed = true;
}

void
mongo_order_note_closed(MongoCursor *cursor)
{
	if (cursor->listed)
		dlist_delete(&cursor->node);
	cursor->listed = false;
}

/* create_kept: the store, whose file belongs to whom the cursor belongs to. */
static void
create_kept(MongoCursor *cursor)
{
	MemoryContext old_context = MemoryContextSwitchTo(cursor->context);
	ResourceOwner old_owner = CurrentResourceOwner;
	TupleDesc	description = CreateTemplateTupleDesc(1);

	TupleDescInitEntry(description, 1, "document", BYTEAOID, -1, 0);
	cursor->kept_slot = MakeSingleTupleTableSlot(description, &TTSOpsMinimalTuple);
	CurrentResourceOwner = cursor->owner;
	cursor->kept = tuplestore_begin_heap(false, false, work_mem);
	CurrentResourceOwner = old_owner;
	MemoryContextSwitchTo(old_context);
}

/* Should it fail, the cursor cannot be read on. */
void
mongo_cursor_keep(MongoCursor *cursor, const uint8_t *document, uint32 length)
{
	bytea	   *bytes = palloc(VARHDRSZ + length);
	Datum		datum = PointerGetDatum(bytes);
	bool		isnull = false;
	bool		keeping = cursor->keeping;

	SET_VARSIZE(bytes, VARHDRSZ + length);
	memcpy(VARDATA(bytes), document, length);
	cursor->keeping = true;
	tuplestore_putvalues(cursor->kept, cursor->kept_slot->tts_tupleDescriptor, &datum, &isnull);
	cursor->keeping = keeping;
	cursor->nkept++;
	pfree(bytes);
}

/*
 * set_aside_batch
 *		The document that was handed out last stays valid until the next is asked for.
 */
static void
set_aside_batch(MongoCursor *cursor)
{
	MongoReply *reply = &cursor->replies[cursor->current];

	if (cursor->held.message.data != NULL)
		return;
	cursor->held = *reply;
	*reply = (MongoReply) {.context = cursor->context,.usage = cursor->read.usage};
}

/* read_to_end: what an error may quote is judged as when the cursor's owner reads. */
static void
read_to_end(MongoCursor *cursor)
{
	const uint8_t *document;
	uint32		length;
	MongoAtWork work;
	Oid			userid;
	int			security;

	if (mongo_cursor_has_all(cursor) && cursor->read.read_others == NULL)
		return;
	if (cursor->kept == NULL)
		create_kept(cursor);
	set_aside_batch(cursor);
	GetUserIdAndSecContext(&userid, &security);
	SetUserIdAndSecContext(cursor->userid, security);
	mongo_begin_work(&work, cursor->tables);
	while ((document = mongo_cursor_fetch(cursor, &length)) != NULL)
		mongo_cursor_keep(cursor, document, length);
	if (cursor->read.read_others != NULL)
	{
		/* some are missing until all of them are there */
		cursor->keeping = true;
		cursor->read.read_others(cursor, cursor->nkept, cursor->read.read_others_arg);
		cursor->read.read_others = NULL;
		cursor->keeping = false;
	}
	mongo_end_work(&work);
	SetUserIdAndSecContext(userid, security);
}

/* finish_cursors: those that may meet what is written, inside MongoDB's transaction or not. */
static void
finish_cursors(const MongoExtent *extent, bool in_transaction)
{
	dlist_iter	iter;

	dlist_foreach(iter, &open_cursors)
	{
		MongoCursor *cursor = dlist_container(MongoCursor, node, iter.cur);

		/* what is opened later is in the transaction, too */
		if (((cursor->session != NULL) == in_transaction || cursor->read.read_others != NULL) &&
			mongo_extents_meet(&cursor->extent, extent))
			read_to_end(cursor);
	}
}

MongoSession *
mongo_begin_write(UserMapping *user, const MongoExtent *extent)
{
	MongoSession *session = mongo_session_for_write(user);

	send_unsent(extent, InvalidCommandId);
	finish_cursors(extent, session->lease != NULL);
	return session;
}

void
mongo_begin_command(UserMapping *user, const char *database, bool writes)
{
	MongoExtent extent = {user->serverid, database, NULL};

	if (ActiveSnapshotSet())
		send_unsent(&extent, GetActiveSnapshot()->curcid);
	if (writes)
		finish_cursors(&extent, false);
}

/* next_kept: the next document that was kept, or NULL. */
static const uint8_t *
next_kept(MongoCursor *cursor, uint32 *length)
{
	MemoryContext old_context;
	bool		isnull;
	bytea	   *bytes;

	mongo_reply_free(&cursor->held);
	if (cursor->keeping)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("could not keep the documents of collection \"%s.%s\"",
						cursor->read.database, cursor->read.collection),
				 errdetail("A write in the same session needed them to be read, and that has failed.")));
	if (cursor->nkept == 0)
		return NULL;
	/* a tuple that was in the file is made in the current context */
	old_context = MemoryContextSwitchTo(cursor->context);
	if (!tuplestore_gettupleslot(cursor->kept, true, false, cursor->kept_slot))
		elog(ERROR, "too few documents were kept");
	MemoryContextSwitchTo(old_context);
	cursor->nkept--;
	bytes = (bytea *) DatumGetPointer(slot_getattr(cursor->kept_slot, 1, &isnull));
	*length = VARSIZE_ANY_EXHDR(bytes);
	return (const uint8_t *) VARDATA_ANY(bytes);
}

const uint8_t *
mongo_cursor_next(MongoCursor *cursor, uint32 *length)
{
	const uint8_t *document = NULL;

	if (cursor->kept != NULL)
		document = next_kept(cursor, length);
	return document != NULL ? document : mongo_cursor_fetch(cursor, length);
}

void
mongo_cursor_forget_kept(MongoCursor *cursor)
{
	mongo_reply_free(&cursor->held);
	if (cursor->kept != NULL)
	{
		ExecClearTuple(cursor->kept_slot);
		tuplestore_end(cursor->kept);
	}
	cursor->kept = NULL;
	cursor->nkept = 0;
	cursor->keeping = false;
}
