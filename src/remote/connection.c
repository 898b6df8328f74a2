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

/* -------- One message of our own through the guard, and its reply --------- */

bool
mongo_exchange_send(MongoConnection *connection, mongoc_iovec_t *iov, size_t iovcnt)
{
	MongoTransport *transport = &connection->transport;
	MongoStream *stream = transport->data_stream;
	ssize_t		size = 0;
	bool		sent;

	transport->violation = NULL;
	transport->failure[0] = '\0';
	mongo_client_of(connection)->waited_before =
		transport->traffic.counters[MONGO_COUNT_WAIT_US];
	if (connection->broken || stream == NULL)
		return false;
	for (size_t i = 0; i < iovcnt; i++)
		size += iov[i].iov_len;
	connection->in_flight++;
	sent = mongoc_stream_writev(stream->guard, iov, iovcnt, MONGO_NO_TIMEOUT) == size;
	mongo_wire_shrink(connection);
	return sent;
}

/*
 * collect_reply
 *		The document of the reply, in the current memory context.
 *
 * The guard has taken it in whole, and checked it.
 */
static bool
collect_reply(MongoConnection *connection, mongoc_stream_t *stream, bson_t *document)
{
	uint8		head[BODY_OFFSET];
	size_t		length;
	uint8	   *bytes;

	if (mongoc_stream_read(stream, head, BODY_OFFSET, BODY_OFFSET,
						   MONGO_NO_TIMEOUT) != BODY_OFFSET ||
		get_int32(head + 12) != OP_MSG)
		return false;
	length = get_int32(head) - BODY_OFFSET;
	bytes = MemoryContextAllocExtended(CurrentMemoryContext, length,
									   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (bytes == NULL)
	{
		mongo_transport_note_memory(&connection->transport, length);
		return false;
	}
	return mongoc_stream_read(stream, bytes, length, length,
							  MONGO_NO_TIMEOUT) == (ssize_t) length &&
		bson_view(document, bytes, length);
}

bool
mongo_exchange_receive(MongoConnection *connection, bool sent, bson_t *document)
{
	MongoStream *stream = connection->transport.data_stream;

	if (sent && stream != NULL && collect_reply(connection, stream->guard, document))
	{
		connection->in_flight--;
		return true;
	}
	connection->broken = true;
	return false;
}

/* note_refusal: the reply is {ok: 0}. */
static void
note_refusal(const bson_t *document, bson_error_t *error)
{
	bson_iter_t iter;
	const char *text = "no message was given";
	int			code = 0;

	if (bson_iter_init_find(&iter, document, "code") && BSON_ITER_HOLDS_NUMBER(&iter))
		code = (int) bson_iter_as_int64(&iter);
	if (bson_iter_init_find(&iter, document, "errmsg") && BSON_ITER_HOLDS_UTF8(&iter))
		text = bson_iter_utf8(&iter, NULL);
	bson_set_error(error, MONGOC_ERROR_SERVER, code, "%s", text);
}

bool
mongo_exchange_has_failed(const MongoConnection *connection, bool answered,
						  const bson_t *document, bson_error_t *error)
{
	const MongoTransport *transport = &connection->transport;

	if (!answered)
		bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET, "%s",
					   transport->violation != NULL ? transport->failure :
					   "The connection was lost before MongoDB had answered.");
	else if (!mongo_reply_is_ok(document))
		note_refusal(document, error);
	else
		return false;
	return true;
}

/* ----------- The session that a client's own messages write in ------------ */

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
 * Ending in MongoDB the write that a cancelled statement had begun there.
 *
 * Runs with libmongoc's frames below, of another client than the one used
 * inside.  Nothing here may raise.
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

static bool take_up_wait(MongoStream *stream);

/* ------------------------------- arming ------------------------------------ */

void
mongo_remote_cancel_arm(MongoConnection *connection)
{
	MongoClient *client = mongo_client_of(connection);
	MongoRemoteCancel *cancel = &client->remote_cancel;

	mongo_client_free_session(client);
	cancel->session = mongoc_client_start_session(client->client, NULL, NULL);
	if (cancel->session == NULL)
		connection->transport.cancel = NULL;
	else
		mongo_remote_cancel_arm_with(connection,
									 mongoc_client_session_get_lsid(cancel->session));
}

void
mongo_remote_cancel_arm_with(MongoConnection *connection, const bson_t *lsid)
{
	MongoRemoteCancel *cancel = &mongo_client_of(connection)->remote_cancel;

	connection->transport.cancel = cancel;
	cancel->lsid = lsid;
	cancel->asked = false;
	cancel->wait = take_up_wait;
}

void
mongo_remote_cancel_append(MongoConnection *connection, bson_t *options)
{
	if (connection->transport.cancel != NULL)
		(void) mongoc_client_session_append(connection->transport.cancel->session,
											options, NULL);
}

bool
mongo_remote_cancel_disarm(MongoConnection *connection)
{
	MongoTransport *transport = &connection->transport;
	bool		asked = transport->cancel != NULL && transport->cancel->asked;

	transport->cancel = NULL;
	transport->ending.active = false;
	mongo_client_free_session(mongo_client_of(connection));
	return asked;
}

/* ------------------------------- asking ------------------------------------ */

/*
 * uri_of_server
 *		The one server that a stream of the client's is connected to, with the
 *		client's credentials; NULL if libmongoc does not take them.
 *
 * The name serves to check the certificate; the address is the stream's.
 */
static mongoc_uri_t *
uri_of_server(const MongoClient *client, const MongoStream *stream, int wait_ms)
{
	const mongoc_uri_t *original = mongoc_client_get_uri(client->client);
	const char *mechanism = mongoc_uri_get_auth_mechanism(original);
	bool		balanced = mongoc_uri_get_option_as_bool(original, MONGOC_URI_LOADBALANCED,
														 false);
	char		text[sizeof(stream->host_and_port) + 20];
	mongoc_uri_t *uri;
	bson_t		properties;

	/*
	 * of a Unix-domain socket the path would have to be escaped; any name
	 * does
	 */
	snprintf(text, sizeof(text), "mongodb://%s/",
			 stream->host_and_port[0] == '/' ? "localhost" : stream->host_and_port);
	uri = mongoc_uri_new_with_error(text, NULL);
	if (uri == NULL)
		return NULL;

	mongoc_uri_set_option_as_bool(uri, balanced ? MONGOC_URI_LOADBALANCED :
								  MONGOC_URI_DIRECTCONNECTION, true);
	mongoc_uri_set_option_as_int32(uri, MONGOC_URI_CONNECTTIMEOUTMS, wait_ms);
	mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, wait_ms);
	if (mongoc_uri_get_appname(original) != NULL)
		mongoc_uri_set_appname(uri, mongoc_uri_get_appname(original));

	if (mongoc_uri_get_username(original) != NULL)
	{
		mongoc_uri_set_username(uri, mongoc_uri_get_username(original));
		mongoc_uri_set_auth_source(uri, mongoc_uri_get_auth_source(original));
	}
	if (mongoc_uri_get_password(original) != NULL)
		mongoc_uri_set_password(uri, mongoc_uri_get_password(original));
	if (mechanism != NULL && *mechanism != '\0')
	{
		mongoc_uri_set_auth_mechanism(uri, mechanism);
		if (mongoc_uri_get_mechanism_properties(original, &properties))
			mongoc_uri_set_mechanism_properties(uri, &properties);
	}
	return uri;
}

/* within: all waits together, whatever interrupts are pending. */
static MongoEnding
within(int milliseconds)
{
	return (MongoEnding) {
		.active = true,
		.deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), milliseconds)
	};
}

/* What run_over() does over its connection; false when that did not succeed. */
typedef bool (*BesideFunction) (mongoc_client_t *other, void *argument);

/*
 * run_over
 *		Have something done by another client of libmongoc's, whose streams 'transport'
 *		describes; the URI is freed.
 */
static bool
run_over(MongoTransport *transport, mongoc_uri_t *uri, BesideFunction function, void *argument)
{
	mongoc_client_t *other;
	bool		done = false;

	dlist_init(&transport->streams);
	HOLD_INTERRUPTS();
	other = mongo_resolve_service(transport, uri, transport->connect_timeout_ms, NULL) ?
		mongoc_client_new_from_uri_with_error(uri, NULL) : NULL;
	if (other != NULL)
	{
		if (transport->use_tls)
			mongoc_client_set_ssl_opts(other, &transport->ssl_options);
		mongoc_client_set_stream_initiator(other, mongo_stream_initiate, transport);
		done = function(other, argument);
		transport->closing = true;
		mongoc_client_destroy(other);
	}
	RESUME_INTERRUPTS();
	mongoc_uri_destroy(uri);
	return done;
}

/* transport_like: for another client, whose single waits take 'wait_ms' at most. */
static MongoTransport
transport_like(const MongoTransport *original, int wait_ms, int total_ms)
{
	return (MongoTransport) {
		.use_tls = original->use_tls,
		.ssl_options = original->ssl_options,
		.tcp = original->tcp,
		.connect_timeout_ms = wait_ms,
		.wait_limit_ms = wait_ms,
		.ending = within(total_ms)
	};
}

/*
 * run_beside
 *		Have something done over a connection of its own to the server that 'stream'
 *		leads to, within 'total_ms'; a single answer may take 'wait_ms'.
 */
static bool
run_beside(MongoClient *client, const MongoStream *stream, int wait_ms, int total_ms,
		   BesideFunction function, void *argument)
{
	MongoTransport transport = transport_like(stream->transport, wait_ms, total_ms);
	mongoc_uri_t *uri;

	transport.peer_length = sizeof(transport.peer);
	if (getpeername(stream->socket, (struct sockaddr *) &transport.peer,
					&transport.peer_length) < 0)
		return false;
	uri = uri_of_server(client, stream, wait_ms);
	return uri != NULL && run_over(&transport, uri, function, argument);
}

static void
append_kill_session(bson_t *command, const bson_t *lsid)
{
	bson_append_template(command, "{killSessions: [@1]}", bson_document(lsid));
}

/* run_admin_command: a bson_t, in database admin. */
static bool
run_admin_command(mongoc_client_t *other, void *argument)
{
	return mongoc_client_command_simple(other, "admin", (const bson_t *) argument,
										NULL, NULL, NULL);
}

bool
mongo_remote_cancel_session(MongoClient *client, const bson_t *lsid, int total_ms,
							int interrupt_ms, int reply_ms)
{
	MongoTransport transport = transport_like(&client->connection.transport, total_ms, total_ms);
	mongoc_uri_t *uri = mongoc_uri_copy(mongoc_client_get_uri(client->client));
	bson_t		command = BSON_INITIALIZER;

	transport.ending.interrupt_ms = interrupt_ms;
	transport.ending.reply_ms = reply_ms;
	mongoc_uri_set_option_as_int32(uri, MONGOC_URI_CONNECTTIMEOUTMS, total_ms);
	mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, total_ms);
	append_kill_session(&command, lsid);
	(void) run_over(&transport, uri, run_admin_command, &command);
	bson_destroy(&command);

	/* a server that has just answered to the greeting will get it */
	return transport.ending.sent > 0 && transport.ending.heard;
}

/* ask: the first time that a wait is given up. */
static void
ask(MongoStream *stream, MongoRemoteCancel *cancel)
{
	MongoTransport *transport = stream->transport;
	bson_t		command = BSON_INITIALIZER;

	cancel->asked = true;
	append_kill_session(&command, cancel->lsid);
	if (run_beside(mongo_client_of((MongoConnection *) transport), stream, ASK_WAIT_MS,
				   ASK_TOTAL_MS, run_admin_command, &command))
		transport->ending = within(ANSWER_WAIT_MS);
	bson_destroy(&command);
}

/*
 * take_up_wait
 *		For stream.c: a wait for a reply on 'stream' has been broken off, or has
 *		taken too long.  Shall it be taken up again, within transport->ending?
 *
 * The first call for an armed connection asks the server at its other end to
 * stop what runs, which takes 300 ms at most, and less where it is silent.  True
 * while its reply may still come; transport->interrupted is false then.
 */
static bool
take_up_wait(MongoStream *stream)
{
	MongoTransport *transport = stream->transport;
	MongoRemoteCancel *cancel = transport->cancel;
	int			save_errno = errno;

	if (!cancel->asked)
		ask(stream, cancel);

	/*
	 * From now on a deadline takes the place of interrupts.  When it has
	 * passed all I/O is refused, so that libmongoc does not send the write
	 * once more.
	 */
	transport->interrupted = transport->wait_error != NULL || !transport->ending.active ||
		transport->ending.deadline <= GetCurrentTimestamp();
	errno = save_errno;
	return !transport->interrupted;
}

/* ------------------------------- cursors ----------------------------------- */

/* Cursors to be closed, all on the server of the client. */
typedef struct CursorsEnd
{
	MongoClient *client;
	dlist_head *cursors;		/* of RemoteCursor; others may be among them */
	int			wait_ms;
	int			total_ms;
	bson_t		command;
} CursorsEnd;

/* find_on_server: the first that is there, or NULL. */
static RemoteCursor *
find_on_server(const CursorsEnd *end)
{
	dlist_iter	iter;

	dlist_foreach(iter, end->cursors)
	{
		RemoteCursor *cursor = dlist_container(RemoteCursor, node, iter.cur);

		if (mongo_client_is_on(end->client, cursor->host_and_port))
			return cursor;
	}
	return NULL;
}

/* kill_on_server: up to the first of which the server does not say that it is closed. */
static bool
kill_on_server(mongoc_client_t *other, void *argument)
{
	CursorsEnd *end = argument;
	RemoteCursor *cursor;

	while ((cursor = find_on_server(end)) != NULL)
	{
		bson_reinit(&end->command);
		mongo_client_kill_command(cursor, &end->command);
		if (!mongoc_client_command_simple(other, cursor->database, &end->command,
										  NULL, NULL, NULL))
			return false;
		dlist_delete(&cursor->node);
		bson_free(cursor);
	}
	return true;
}

static void
kill_beside(void *argument)
{
	CursorsEnd *end = argument;

	(void) run_beside(end->client, end->client->connection.transport.data_stream,
					  end->wait_ms, end->total_ms, kill_on_server, end);
}

/*
 * kill_behind
 *		On the connection itself: MongoDB reads on when it has answered, though nobody
 *		is there any more to take the answer.
 */
static void
kill_behind(void *argument)
{
	CursorsEnd *end = argument;
	MongoConnection *connection = &end->client->connection;
	RemoteCursor *cursor;

	/* to wait for an answer was given up, no more; it is closed anyway */
	connection->broken = false;
	while ((cursor = find_on_server(end)) != NULL)
	{
		bson_reinit(&end->command);
		mongo_client_kill_command(cursor, &end->command);
		mongo_wire_send_and_forget(connection, cursor->database, &end->command);
		dlist_delete(&cursor->node);
		bson_free(cursor);
	}
	connection->broken = true;
}

/* exit_left: how much of the time is left that an exit may take for this. */
static int
exit_left(void)
{
	static TimestampTz deadline = 0;

	if (deadline == 0)
		deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), EXIT_TOTAL_MS);
	return (int) TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
}

void
mongo_remote_cancel_cursors(MongoClient *client, dlist_head *cursors)
{
	MongoStream *stream = client->connection.transport.data_stream;
	CursorsEnd	end = {client, cursors, ASK_WAIT_MS, ASK_TOTAL_MS, BSON_INITIALIZER};

	if (stream == NULL || stream->socket == PGINVALID_SOCKET || find_on_server(&end) == NULL)
		return;
	if (proc_exit_inprogress)
	{
		end.total_ms = exit_left();
		end.wait_ms = Min(EXIT_WAIT_MS, end.total_ms);
	}
	if (end.total_ms > 0)
		(void) mongo_protect(kill_beside, &end);
	if (proc_exit_inprogress)
		(void) mongo_protect(kill_behind, &end);
	bson_destroy(&end.command);
}
