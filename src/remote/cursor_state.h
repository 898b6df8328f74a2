/*-------------------------------------------------------------------------
 *
 * cursor_state.h
 *		What a cursor knows, and when it asks for more.
 *
 * Private to src/remote/cursor.c, which sends and reads, and cursor_turns.c,
 * which says when, as others need connections as well.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CURSOR_STATE_H
#define MONGO_FDW_CURSOR_STATE_H

#include "compat.h"

#include "cursor.h"
#include "datatype/timestamp.h"
#include "session.h"
#include "turns.h"
#include "wire.h"

struct MongoCursor
{
	MemoryContext context;
	UserMapping *user;
	MongoLease *lease;			/* NULL when closed, and in a session */
	void	   *tag;			/* the caller's */
	MongoSession *session;		/* of a transaction; NULL outside */
	MongoSessionCursor *open_in_session;	/* NULL: not, or no more */
	MemoryContextCallback callback;
	MemoryContext batch_context;	/* of the reply that a session gave */
	const char *database;
	const char *collection;		/* as the caller calls it, for messages */
	uint8	   *command;		/* kept to be sent again; NULL: no more */
	bool		opened;			/* its reply has come */
	uint32		command_length;
	int			batch_size;
	bool		batches_grow;
	TimestampTz batch_at;		/* when the last batch came, if they grow */
	const char *reply_field;	/* of mongo_cursor_expect_document(), or NULL */
	const char *comment;		/* as trace.h prepares it; NULL: the server's */

	bool		sent;			/* the command has been */
	bool		pending;		/* a request is in flight: */
	uint32		request_id;
	bool		taken;			/* its answer is in memory, not looked at yet */
	bool		lost;			/* ... or its connection is lost */
	int64		id;				/* the server's; 0: all is fetched */
	char	   *ns_database;	/* where getMore goes */
	char	   *ns_collection;

	MongoUsage *usage;			/* what it causes: own_usage or the caller's */
	MongoUsage	own_usage;
	uint64		documents;		/* not added to server and user's counts yet */

	MongoReply	replies[2];		/* the current one, and the next one's room */
	int			current;
	const uint8 *position;		/* of the next array element */
	const uint8 *end;			/* of the batch's elements */
	bool		has_document;	/* the reply is to be handed out */
	const uint8 *reply_document;
	uint32		reply_length;
};

/* What the pool asks of a cursor, the reader of its lease. */
extern const MongoTurns mongo_cursor_turns;

/*
 * mongo_cursor_send_request
 *		Ask for what comes next: the command's answer, or the next batch.
 *
 * Nothing may be in flight.  False, only where 'turn' allows it, when there is no
 * connection to do so.
 */
extern bool mongo_cursor_send_request(MongoCursor *cursor, MongoTurn turn);

/*
 * mongo_cursor_send_get_more
 *		Likewise the next batch, on the connection that the lease holds.
 */
extern void mongo_cursor_send_get_more(MongoCursor *cursor);

/*
 * mongo_cursor_begin_anew
 *		Send the command once more, over a new connection.
 *
 * mongo_cursor_forget_command
 *		The scan cannot begin anew any more.
 */
extern void mongo_cursor_begin_anew(MongoCursor *cursor);
extern void mongo_cursor_forget_command(MongoCursor *cursor);

/*
 * mongo_cursor_report_disconnect
 *		Raise 08006.
 */
pg_noreturn extern void mongo_cursor_report_disconnect(MongoCursor *cursor);

/*
 * mongo_cursor_begin_wait, mongo_cursor_end_wait
 *		Around what receives on the lease's connection or the session's: its bytes and
 *		time are the cursor's.
 */
extern void mongo_cursor_begin_wait(MongoCursor *cursor, const MongoTraffic *traffic);
extern void mongo_cursor_end_wait(MongoCursor *cursor, const MongoTraffic *traffic);

/*
 * mongo_cursor_is_at_end
 *		With nothing in flight, is there nothing to ask for?
 */
extern bool mongo_cursor_is_at_end(const MongoCursor *cursor);

#endif							/* MONGO_FDW_CURSOR_STATE_H */
