/*-------------------------------------------------------------------------
 *
 * connection.c
 *		Commands over one connection: writes, sessions, cancelling.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"

#include <sys/socket.h>

#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* ----------------------- what a reply told, kept --------------------------- */

void
mongo_keep(MongoKeptDocument *kept, const MongoReply *reply, const char *field)
{
	bson_iter_t iter;
	const uint8_t *data;
	uint32_t	length;

	if (!mongo_reply_find(reply, field, &iter) || !BSON_ITER_HOLDS_DOCUMENT(&iter))
		return;
	bson_iter_document(&iter, &length, &data);
	if (length < SMALLEST_DOCUMENT || length > sizeof(kept->bytes))
		return;
	memcpy(kept->bytes, data, length);
	kept->length = length;
}

void
mongo_append_kept(bson_t *document, const char *field, const MongoKeptDocument *kept)
{
	bson_t		view;

	if (kept->length > 0 && bson_view(&view, kept->bytes, kept->length))
		BSON_APPEND_DOCUMENT(document, field, &view);
}

/* ---------------------- the session of a connection ------------------------ */

#define UUID_SIZE			16
#define MS_PER_MINUTE		60000

/* make_lsid: with a random UUID (version 4 of RFC 4122). */
static void
make_lsid(bson_t *lsid)
{
	uint8		uuid[UUID_SIZE];

	if (!pg_strong_random(uuid, sizeof(uuid)))
		elog(ERROR, "could not generate random values");
	uuid[6] = (uuid[6] & 0x0f) | 0x40;
	uuid[8] = (uuid[8] & 0x3f) | 0x80;
	bson_reinit(lsid);
	BSON_APPEND_BINARY(lsid, "id", BSON_SUBTYPE_UUID, uuid, sizeof(uuid));
}

/* is_stale: does the server forget it within a minute, as far as we know? */
static bool
is_stale(const MongoServerSession *session)
{
	return TimestampDifferenceExceeds(session->used_at, GetCurrentTimestamp(),
									  (session->minutes - 1) * MS_PER_MINUTE);
}

const bson_t *
mongo_server_session_use(MongoServerSession *session, MemoryContext context)
{
	if (session->minutes <= 0)
		return NULL;
	if (session->lsid == NULL || is_stale(session))
	{
		if (session->lsid == NULL)
			session->lsid = bson_create_in(context);
		make_lsid(session->lsid);
		session->number = 0;
	}
	session->used_at = GetCurrentTimestamp();
	return session->lsid;
}

/*-------------------------------------------------------------------------
 * Ending in MongoDB what a session had begun there and has given up.
 *
 * MongoDB interrupts a read when its connection closes; a write runs on to its
 * end.  Inside a MongoDB transaction the abort undoes it.  Outside of one, when the
 * wait for its reply is given up, a second, short-lived connection to the same server
 * says killSessions with the id of its session, which every user may do with
 * sessions of their own, and which mongos hands on to the shards:
 * https://www.mongodb.com/docs/manual/reference/command/killSessions/
 * The reply is then waited for a little longer: only it proves that nothing
 * runs on.
 *-------------------------------------------------------------------------
 */

/*
 * Half a second in all, and less with a server that is silent.  Connecting with
 * a password takes five exchanges; killing a write took 15 ms at most.
 */
#define ASK_WAIT_MS			150 /* for a single answer */
#define ASK_TOTAL_MS		300
#define ANSWER_WAIT_MS		200 /* for the reply of what was killed */

/* A process that exits is the last to know its cursors; for all of them together. */
#define EXIT_WAIT_MS		500
#define EXIT_TOTAL_MS		1000

void
mongo_append_kill_session(bson_t *command, const bson_t *lsid)
{
	bson_append_template(command, "{killSessions: [@1]}", bson_document(lsid));
}

MongoOutcome
mongo_end_write(MongoConnection *connection, const bson_t *lsid, MongoReply *reply)
{
	MongoTransport *transport = &connection->transport;
	bson_t		kill = BSON_INITIALIZER;	/* stays within the bson_t */
	MongoCommand command = {.database = "admin",.document = &kill};
	MongoOutcome outcome = MONGO_INTERRUPTED;

	mongo_append_kill_session(&kill, lsid);
	if (mongo_connection_run_beside(connection, &command, 1, ASK_WAIT_MS,
									ASK_TOTAL_MS) == 1 && transport->wait_error == NULL)
	{
		transport->interrupted = false;

		/* it may still be on its way when the next write needs a session */
		connection->session.used_at = 0;
		mongo_begin_ending(transport, ANSWER_WAIT_MS, 0);
		outcome = mongo_receive(connection, reply, MONGO_DUE_INTERRUPT);
		mongo_finish_ending(transport);
	}
	bson_destroy(&kill);
	return outcome;
}

/* ------------------------------- cursors ----------------------------------- */

/* Cursors to be closed over one connection, all on the server of the connection. */
#define MOST_AT_ONCE		16

/* exit_left: how much of the time is left that an exit may take for this. */
static int
exit_left(void)
{
	static TimestampTz deadline = 0;

	if (deadline == 0)
		deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), EXIT_TOTAL_MS);
	return (int) TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
}

/*
 * take_on_server
 *		Take cursors out of the list that are on the connection's server; how many.
 */
static int
take_on_server(const MongoConnection *connection, dlist_head *cursors, RemoteCursor *taken[])
{
	int			count = 0;
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, cursors)
	{
		RemoteCursor *cursor = dlist_container(RemoteCursor, node, iter.cur);

		if (count == MOST_AT_ONCE || !mongo_connection_is_on(connection, cursor->host_and_port))
			continue;
		dlist_delete(&cursor->node);
		taken[count++] = cursor;
	}
	return count;
}

/* What kill_taken() is called with. */
typedef struct CursorsEnd
{
	MongoConnection *connection;
	RemoteCursor *cursors[MOST_AT_ONCE];
	int			ncursors;
	int			wait_ms;
	int			total_ms;
	bson_t		commands[MOST_AT_ONCE];
	int			killed;
} CursorsEnd;

/*
 * kill_taken
 *		Over a connection of its own; and as the process exits, on the one that
 *		waits: MongoDB reads on when it has replied, though nobody takes the reply any more.
 */
static void
kill_taken(void *argument)
{
	CursorsEnd *end = argument;
	MongoConnection *connection = end->connection;
	MongoCommand messages[MOST_AT_ONCE];

	for (int i = 0; i < end->ncursors; i++)
	{
		bson_append_template(&end->commands[i], "{killCursors: @1, cursors: [@2]}",
							 bson_utf8(end->cursors[i]->collection),
							 bson_int64(end->cursors[i]->id));
		messages[i] = (MongoCommand) {
			.database = end->cursors[i]->database,.document = &end->commands[i]
		};
	}
	if (end->total_ms > 0)
		end->killed = mongo_connection_run_beside(end->connection, messages, end->ncursors,
												  end->wait_ms, end->total_ms);
	if (!proc_exit_inprogress)
		return;

	/*
	 * only the wait for an answer was given up; the connection is closed
	 * anyway
	 */
	connection->broken = connection->transport.interrupted = false;
	for (; end->killed < end->ncursors; end->killed++)
		mongo_send_and_forget(connection, messages[end->killed].database,
							  messages[end->killed].document);
	connection->broken = true;
}

int
mongo_kill_cursors_beside(MongoConnection *connection, dlist_head *cursors)
{
	CursorsEnd	end = {.connection = connection};
	bool		goes_on = true;
	int			count = 0;

	while (goes_on && connection->transport.data_stream != NULL &&
		   (end.ncursors = take_on_server(connection, cursors, end.cursors)) > 0)
	{
		end.wait_ms = ASK_WAIT_MS;
		end.total_ms = ASK_TOTAL_MS;
		end.killed = 0;
		if (proc_exit_inprogress)
		{
			end.total_ms = exit_left();
			end.wait_ms = Min(EXIT_WAIT_MS, end.total_ms);
		}
		for (int i = 0; i < end.ncursors; i++)
			bson_init(&end.commands[i]);
		(void) mongo_protect(kill_taken, &end);
		for (int i = 0; i < end.ncursors; i++)
		{
			bson_destroy(&end.commands[i]);
			if (i < end.killed)
				free(end.cursors[i]);
			else
				dlist_push_head(cursors, &end.cursors[i]->node);
		}
		goes_on = end.killed == MOST_AT_ONCE;
		count += end.killed;
	}
	return count;
}
