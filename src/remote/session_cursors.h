/*-------------------------------------------------------------------------
 *
 * session_cursors.h
 *		The cursors that a MongoDB transaction has open on the server.
 *
 * MongoDB closes a cursor when its last document has been fetched, or when it
 * is told to; the end of the transaction that opened it closes nothing (seen in
 * 6.0: serverStatus.metrics.cursor.open).  Those that nobody reads to the end
 * are therefore killed, some at a time, and what is left when the transaction
 * ends.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SESSION_CURSORS_H
#define MONGO_FDW_SESSION_CURSORS_H

#include "compat.h"

#include "lib/ilist.h"

/* One cursor that somebody reads; opaque. */
typedef struct MongoSessionCursor MongoSessionCursor;

/* The cursors of one session. */
typedef struct MongoSessionCursors
{
	MemoryContext context;		/* lives as long as the transaction */
	dlist_head	read;			/* somebody may ask for the next batch */
	dlist_head	abandoned;		/* nobody will */
	int			nabandoned;
	int			due;			/* when these are to be killed */
} MongoSessionCursors;

/*
 * mongo_session_cursors_init
 *		None yet; their entries will live in 'context'.
 */
extern void mongo_session_cursors_init(MongoSessionCursors *cursors,
									   MemoryContext context);

/*
 * mongo_session_cursors_add
 *		The server has opened one.  Copies of both names are kept.
 *
 * The reader keeps *handle, which becomes NULL when the cursor is no longer its
 * own: it has come to its end, was abandoned, or was killed with the rest.
 */
extern void mongo_session_cursors_add(MongoSessionCursors *cursors,
									  const char *database,
									  const char *collection, int64 id,
									  MongoSessionCursor **handle);

/*
 * mongo_session_cursors_remove
 *		The server has closed it.
 */
extern void mongo_session_cursors_remove(MongoSessionCursor *cursor);

/*
 * mongo_session_cursors_abandon
 *		Nobody reads on.  Neither raises nor sends anything.
 */
extern void mongo_session_cursors_abandon(MongoSessionCursors *cursors,
										  MongoSessionCursor *cursor);

/*
 * mongo_session_cursors_are_due
 *		Are so many abandoned that it is time to kill them?
 */
extern bool mongo_session_cursors_are_due(const MongoSessionCursors *cursors);

/*
 * mongo_session_cursors_kill
 *		Kill those abandoned, or all: a command for each collection.
 *
 * Sends nothing when there are none.  Does not raise; the caller asks its lease
 * for interrupts.  After an error, of which nobody is told, they stay listed.
 */
extern void mongo_session_cursors_kill(MongoSessionCursors *cursors, bool all,
									   mongoc_client_t *client,
									   mongoc_client_session_t *session);

#endif							/* MONGO_FDW_SESSION_CURSORS_H */
