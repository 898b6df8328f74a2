/*-------------------------------------------------------------------------
 *
 * cursor.h
 *		"Open this cursor, next document": what execution knows of transport.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CURSOR_H
#define MONGO_FDW_CURSOR_H

#include "compat.h"

#include "activity.h"
#include "foreign/foreign.h"

typedef struct MongoCursor MongoCursor;

/*
 * mongo_cursor_open
 *		A cursor on the result of 'command' (find, aggregate, ...), which is sent
 *		when the first document is asked for.
 *
 * 'command' must not hold $db.  getMore asks for 'batch_size' documents (0 =
 * the server's default).  The cursor and its lease live in 'context' and are
 * given back when that goes, at the latest.  Both 'context' and 'user' must live
 * as long as the cursor.  A connection is in use only while an answer is due, so
 * that any number of cursors may be open.
 *
 * A connection that breaks before the first document has been handed out is
 * replaced and the command sent once more (Retryable Reads specification).
 */
extern MongoCursor *mongo_cursor_open(MemoryContext context, UserMapping *user,
									  const char *database,
									  const char *collection,
									  const bson_t *command, int batch_size);

/*
 * mongo_cursor_send_as
 *		What the options of a table say of its commands: which member is asked,
 *		where its read preference is not the server's (0), and the comment that they
 *		carry, with the escapes of trace.h (NULL: the server's).
 *
 * To be said before the first document is asked for.  In a transaction of MongoDB's
 * the primary is asked.
 */
extern void mongo_cursor_send_as(MongoCursor *cursor, mongoc_read_mode_t read_mode,
								 const char *comment);

/*
 * mongo_cursor_grow_batches
 *		Each getMore may ask for twice as many documents as the last, up to batches of
 *		4 MB: a round trip then counts for less.  Not where a batch takes longer than a
 *		second, to come or to be read.
 */
extern void mongo_cursor_grow_batches(MongoCursor *cursor);

/*
 * mongo_cursor_expect_document
 *		The reply to the command, which is sent outside of transactions, has no cursor,
 *		but this field: it is the only document.
 *
 * To be said before the first document is asked for; 'field' must live as long as
 * the cursor.
 */
extern void mongo_cursor_expect_document(MongoCursor *cursor, const char *field);

/*
 * mongo_cursor_count_in
 *		Add what the cursor causes to 'usage', which must live as long.
 */
extern void mongo_cursor_count_in(MongoCursor *cursor, MongoUsage *usage);

/*
 * mongo_cursor_next
 *		The next document's bytes, or NULL when there are no more.
 *
 * The bytes are inside the reply buffer and stay valid until the next call.
 * *length is what the document says of itself and is inside the buffer;
 * nothing else about the bytes has been validated.  Raises 08006, 08P01,
 * 57014, or what the server answered.
 */
extern const uint8_t *mongo_cursor_next(MongoCursor *cursor, uint32 *length);

/*
 * mongo_cursor_is_exhausted
 *		Is it known, with nothing to be asked for, that there are no more documents?
 */
extern bool mongo_cursor_is_exhausted(const MongoCursor *cursor);

/*
 * mongo_cursor_is_ready
 *		Would mongo_cursor_next() give its answer without waiting for more than
 *		the rest of a reply that has begun to come?
 *
 * When not, the next request is on its way, and mongo_cursor_socket() becomes
 * readable with its reply; or all connections are in use, and the request is
 * sent when it is its turn.  Always true with the option socket_timeout_ms once it
 * is sent: only a wait of our own has a limit.
 */
extern bool mongo_cursor_is_ready(MongoCursor *cursor);

/*
 * mongo_cursor_socket
 *		The socket that the reply comes on, valid until the next call; or
 *		PGINVALID_SOCKET while nothing is on its way or it is to be waited for by
 *		mongo_cursor_next() alone.
 */
extern pgsocket mongo_cursor_socket(MongoCursor *cursor);

/*
 * mongo_cursor_ask_now
 *		Send the request out of turn, for which somebody else's answer is waited for
 *		if need be.  Only for a cursor that is not ready and has no socket.
 */
extern void mongo_cursor_ask_now(MongoCursor *cursor);

/*
 * mongo_cursor_set_tag, mongo_cursor_waits_for
 *		Mark a cursor; is a request in flight, of the same user mapping, whose
 *		cursor's mark meets the condition?  The turn of one that waits comes when it
 *		is answered.
 */
extern void mongo_cursor_set_tag(MongoCursor *cursor, void *tag);
extern bool mongo_cursor_waits_for(MongoCursor *cursor,
								   bool (*condition) (const void *tag, const void *arg),
								   const void *arg);

/*
 * mongo_cursor_close
 *		Give the lease back; tells the server when the cursor is still open
 *		there.  Idempotent; NULL is accepted.
 */
extern void mongo_cursor_close(MongoCursor *cursor);

#endif							/* MONGO_FDW_CURSOR_H */
