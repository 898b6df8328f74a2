/*-------------------------------------------------------------------------
 *
 * connection.c
 *		A connection's saved fields, session, cancelled writes, cursors, and end.
 *
 * Everything here may be called at the end of a transaction or of the process.  So nothing raises
 * but mongo_server_session_use(), and lack of memory where documents are appended.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include <sys/socket.h>

#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

/* ---------------------- the session of a connection ------------------------ */

#define MS_PER_MINUTE		60000

/* Makes a session id of a random UUID. */
static void
make_lsid(bson_t *lsid)
{
	pg_uuid_t  *uuid = DatumGetUUIDP(DirectFunctionCall1(gen_random_uuid, (Datum) 0));

	bson_reinit(lsid);
	mongo_append(lsid, "id", mongo_binary(BSON_SUBTYPE_UUID, uuid->data, UUID_LEN));
}

/*
 * mongo_server_session_use
 *		Returns the lsid, {id: UUID}, for the next command; NULL if the server has no sessions.
 *		It is the session's.
 *
 * Makes a new one, in 'context', if the server may soon forget the last.  Raises XX000 without
 * random numbers.
 */
const bson_t *
mongo_server_session_use(MongoServerSession *session, MemoryContext context)
{
	if (session->minutes <= 0)
		return NULL;
	/* the server might forget a session within the last minute */
	if (session->lsid == NULL ||
		TimestampDifferenceExceeds(session->used_at, GetCurrentTimestamp(),
								   (session->minutes - 1) * MS_PER_MINUTE))
	{
		if (session->lsid == NULL)
			session->lsid = mongo_bson_create_in(context);
		make_lsid(session->lsid);
		session->number = 0;
	}
	session->used_at = GetCurrentTimestamp();
	return session->lsid;
}

/* ------------------------- a separate connection --------------------------- */

/*
 * Returns a URI of the one server that the connection uses, with its credentials, or NULL if
 * libmongoc refuses it.
 */
static mongoc_uri_t *
uri_of_server(const MongoConnection *connection, int wait_ms)
{
	static const struct
	{
		const char *(*get) (const mongoc_uri_t *uri);
		bool		(*set) (mongoc_uri_t *uri, const char *value);
	}			copied[] =
	{
		{mongoc_uri_get_appname, mongoc_uri_set_appname},
		{mongoc_uri_get_username, mongoc_uri_set_username},
		{mongoc_uri_get_password, mongoc_uri_set_password},
		{mongoc_uri_get_auth_source, mongoc_uri_set_auth_source},
		{mongoc_uri_get_auth_mechanism, mongoc_uri_set_auth_mechanism},
	};
	const mongoc_uri_t *original = connection->identity;
	bool		balanced = mongoc_uri_get_option_as_bool(original, MONGOC_URI_LOADBALANCED,
														 false);
	char		text[sizeof(connection->host) + 20];
	mongoc_uri_t *uri;
	bson_t		properties;

	/*
	 * the name is not used, since the peer's address is known; the path of a
	 * Unix-domain socket would have to be escaped
	 */
	snprintf(text, sizeof(text), "mongodb://%s/",
			 connection->host[0] == '/' ? "localhost" : connection->host);
	uri = mongoc_uri_new_with_error(text, NULL);
	if (uri == NULL)
		return NULL;

	mongoc_uri_set_option_as_bool(uri, balanced ? MONGOC_URI_LOADBALANCED :
								  MONGOC_URI_DIRECTCONNECTION, true);
	mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SOCKETTIMEOUTMS, MONGO_NO_TIMEOUT);
	mongoc_uri_set_option_as_int32(uri, MONGOC_URI_CONNECTTIMEOUTMS, wait_ms);
	mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, wait_ms);
	for (size_t i = 0; i < lengthof(copied); i++)
	{
		const char *value = copied[i].get(original);

		if (value != NULL && *value != '\0')
			(void) MONGO_IN_DRIVER(copied[i].set, uri, value);
	}
	if (mongoc_uri_get_mechanism_properties(original, &properties))
		mongoc_uri_set_mechanism_properties(uri, &properties);
	return uri;
}

/* A login takes five round trips, and more with TLS. */
#define LONGEST_SEPARATE_MS		700

/* The argument of run_separately() and finish_separate_run(). */
typedef struct SeparateRun
{
	const MongoConnection *connection;
	const MongoCommand *command;
	int			total_ms;
	MongoConnection other;
	MongoReply	reply;
	mongoc_uri_t *uri;
	bool		sent;
} SeparateRun;

/* Connects to the same server once more, and runs the command there. */
static void
run_separately(void *argument)
{
	SeparateRun *run = argument;
	const MongoTransport *original = &run->connection->transport;
	MongoTransport *transport = &run->other.transport;
	bson_error_t error;

	transport->use_tls = original->use_tls;
	transport->ssl_options = original->ssl_options;
	transport->tcp = original->tcp;
	transport->connect_timeout_ms = transport->wait_limit_ms = run->total_ms;
	transport->peer = run->connection->peer;
	transport->peer_length = run->connection->peer_length;
	dlist_init(&transport->streams);
	run->uri = uri_of_server(run->connection, run->total_ms);
	if (run->uri == NULL)
		return;
	mongo_begin_ending(transport, run->total_ms, 0);
	run->sent = mongo_connect_once(&run->other, run->uri, false, false, &error) &&
		mongo_send(&run->other, run->command, &run->reply);
	if (run->sent)
		(void) mongo_receive(&run->other, &run->reply, MONGO_DUE_INTERRUPT);
}

/* Closes the separate connection, and frees what it used. */
static void
finish_separate_run(void *argument)
{
	SeparateRun *run = argument;

	mongo_transport_close(&run->other.transport);
	mongo_transport_reset(&run->other.transport);
	mongo_reply_free(&run->reply);
	if (run->uri != NULL)
		mongoc_uri_destroy(run->uri);
	bson_free(run->other.request.data);
}

/*
 * mongo_connection_run_separately
 *		Runs a command over a separate, short-lived connection to the same server.  Returns
 *		whether it was sent.
 *
 * Takes 'total_ms' at most, or over a slow network twice the time that connecting took, up to 700
 * ms.  Sets *reply, unless that is NULL, to the reply; its buffers are palloc'd.  Never raises.
 */
bool
mongo_connection_run_separately(const MongoConnection *connection, const MongoCommand *command,
								int total_ms, MongoReply *reply)
{
	SeparateRun run = {
		.connection = connection,
		.command = command,
		.total_ms = Max(total_ms, Min(2 * connection->opening_ms, LONGEST_SEPARATE_MS)),
		.reply.context = CurrentMemoryContext
	};

	if (connection->peer_length == 0 || connection->identity == NULL)
		return false;
	HOLD_INTERRUPTS();
	(void) mongo_protect(run_separately, &run);
	if (reply != NULL)
	{
		*reply = run.reply;
		run.reply = (MongoReply) {.context = CurrentMemoryContext};
	}
	(void) mongo_protect(finish_separate_run, &run);
	RESUME_INTERRUPTS();
	return run.sent;
}

/*-------------------------------------------------------------------------
 * Ending an abandoned write in MongoDB.
 *
 * MongoDB ends a read when its connection closes, but runs a write to its end.  In a MongoDB
 * transaction the abort undoes the write.  Outside of one, killSessions with the id of the
 * write's session is sent over a second, short-lived connection to the same server.  Every user
 * may kill their own sessions, and mongos passes the command on to the shards:
 * https://www.mongodb.com/docs/manual/reference/command/killSessions/
 * Then the write's reply is awaited a little longer, since only that proves that the write has
 * ended.
 *-------------------------------------------------------------------------
 */

/*
 * Half a second in total, and less if the server is silent.  Connecting with a password takes
 * five round trips.  Killing a write took 15 ms at most.
 */
#define ASK_MS				300
#define ANSWER_WAIT_MS		200 /* for the reply to the killed write */

/*
 * mongo_end_write
 *		Has MongoDB end an abandoned write, by its lsid and over another connection, and waits a
 *		little longer for its reply.  Returns how that wait has ended; MONGO_INTERRUPTED also if
 *		it was not begun.
 *
 * Takes half a second at most, and less if the server is silent.  Never raises.
 */
MongoOutcome
mongo_end_write(MongoConnection *connection, const bson_t *lsid, MongoReply *reply)
{
	MongoTransport *transport = &connection->transport;
	bson_t		kill = BSON_INITIALIZER;
	MongoCommand command = {.database = "admin",.document = &kill};
	MongoOutcome outcome = MONGO_INTERRUPTED;

	mongo_append_template(&kill, "{killSessions: [@1]}", mongo_document(lsid));
	if (mongo_connection_run_separately(connection, &command, ASK_MS, NULL) &&
		transport->wait_error == NULL)
	{
		transport->interrupted = false;

		/*
		 * it might still kill the session of the next write, so make a new
		 * one
		 */
		connection->session.used_at = 0;
		mongo_begin_ending(transport, ANSWER_WAIT_MS, 0);
		outcome = mongo_receive(connection, reply, MONGO_DUE_INTERRUPT);
		mongo_finish_ending(transport);
	}
	bson_destroy(&kill);
	return outcome;
}

/* ----------------------------- the connection ------------------------------ */

/*
 * mongo_connection_is_balanced
 *		Tells whether the connection is to a mongos behind a load balancer.
 */
bool
mongo_connection_is_balanced(const MongoConnection *connection)
{
	return connection->identity != NULL &&
		mongoc_uri_get_option_as_bool(connection->identity, MONGOC_URI_LOADBALANCED, false);
}

#define SHORTEST_DISCARD_WAIT	20
#define LONGEST_DISCARD_WAIT	500

/*
 * mongo_discard_wait
 *		Returns how many milliseconds to wait for an unwanted reply: as many as connecting took,
 *		within limits.
 */
int
mongo_discard_wait(const MongoConnection *connection)
{
	return Max(SHORTEST_DISCARD_WAIT, Min(connection->opening_ms, LONGEST_DISCARD_WAIT));
}

/*
 * mongo_connection_is_on
 *		Tells whether the connection is to that server.
 */
bool
mongo_connection_is_on(const MongoConnection *connection, const char *host_and_port)
{
	const MongoStream *stream = connection->transport.data_stream;

	return stream != NULL && strcmp(stream->host_and_port, host_and_port) == 0;
}

/* The argument of send_kill(). */
typedef struct CursorsKill
{
	MongoConnection *connection;
	bool		separately;
	dlist_head	taken;			/* of RemoteCursor, of one collection */
	bson_t		ids;
	bson_t		command;
	bool		sent;
} CursorsKill;

/* Sends killCursors for the taken cursors; called by mongo_protect(). */
static void
send_kill(void *argument)
{
	CursorsKill *kill = argument;
	MongoConnection *connection = kill->connection;
	const RemoteCursor *first = dlist_head_element(RemoteCursor, node, &kill->taken);
	MongoCommand message = {.database = first->database,.document = &kill->command};
	BsonArray	ids = {.bson = &kill->ids};

	foreach_dlist(RemoteCursor, node, cursor, &kill->taken)
		mongo_array_append(&ids, mongo_int64(cursor->id));
	mongo_append(&kill->command, "killCursors", mongo_utf8(first->collection));
	mongo_append(&kill->command, "cursors", mongo_array(&kill->ids));
	if (kill->separately)
	{
		kill->sent = mongo_connection_run_separately(connection, &message, ASK_MS, NULL);
		if (kill->sent || !proc_exit_inprogress)
			return;

		/*
		 * Otherwise use the connection with the getMore, which is closed
		 * anyway.  MongoDB reads the command when it has replied to the
		 * getMore, although nobody reads that reply.
		 */
		connection->broken = connection->transport.interrupted = kill->separately = false;
	}
	kill->sent = mongo_send(connection, &message, NULL);
}

/*
 * Moves cursors of one collection that the connection may close from the list to 'taken'; returns
 * false if there are none.
 */
static bool
take_cursors(const MongoConnection *connection, dlist_head *cursors, dlist_head *taken)
{
	const RemoteCursor *first = NULL;

	dlist_init(taken);
	foreach_dlist(RemoteCursor, node, cursor, cursors)
	{
		if (cursor->umid != connection->umid ||
			!mongo_connection_is_on(connection, cursor->host_and_port) ||
			(first != NULL && (strcmp(cursor->database, first->database) != 0 ||
							   strcmp(cursor->collection, first->collection) != 0)))
			continue;
		first = first != NULL ? first : cursor;
		dlist_delete(&cursor->node);
		dlist_push_tail(taken, &cursor->node);
	}
	return first != NULL;
}

/*
 * mongo_connection_kill_cursors
 *		Has the server close its cursors in the list (of RemoteCursor) that belong to the
 *		connection's user mapping, by one command per collection.  Frees those of the commands
 *		sent, and returns how many these were.  Never raises.
 *
 * Without 'separately', sends the commands over this connection if it is clean, and does not
 * wait.  With it, uses a separate connection, for 300 ms or a little longer.  That is for a
 * connection with a getMore in flight, which MongoDB does not end when its connection closes
 * (seen in 6.0).
 */
int
mongo_connection_kill_cursors(MongoConnection *connection, dlist_head *cursors, bool separately)
{
	CursorsKill kill = {.connection = connection,.separately = separately};
	bool		goes_on = separately || mongo_connection_is_clean(connection);
	int			count = 0;

	while (goes_on && take_cursors(connection, cursors, &kill.taken))
	{
		bson_init(&kill.ids);
		bson_init(&kill.command);
		kill.sent = false;
		(void) mongo_protect(send_kill, &kill);
		bson_destroy(&kill.ids);
		bson_destroy(&kill.command);
		foreach_dlist(RemoteCursor, node, cursor, &kill.taken)
		{
			if (kill.sent)
				free(cursor);
			else
				dlist_push_tail(cursors, &cursor->node);
			count += kill.sent;
		}
		goes_on = kill.sent;
	}
	return count;
}
