/*-------------------------------------------------------------------------
 *
 * remote_cancel.c
 *		Ending in MongoDB the write that a cancelled statement had begun there.
 *
 * Runs with libmongoc's frames below, of another client than the one used
 * inside.  Nothing here may raise.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_cancel.h"

#include <sys/socket.h>

#include "bson_write.h"
#include "connect.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

/*
 * Half a second in all, and less with a server that is silent.  Connecting with
 * a password takes five exchanges; killing a write took 15 ms at most.
 */
#define ASK_WAIT_MS			150 /* for a single answer */
#define ASK_TOTAL_MS		300
#define ANSWER_WAIT_MS		200 /* for the reply of what was killed */

static bool take_up_wait(MongoStream *stream);

/* ------------------------------- arming ------------------------------------ */

void
mongo_remote_cancel_arm(MongoConnection *connection)
{
	MongoClient *client = mongo_client_of(connection);
	MongoRemoteCancel *cancel = &client->remote_cancel;

	mongo_client_free_session(client);
	cancel->session = mongoc_client_start_session(client->client, NULL, NULL);
	cancel->asked = false;
	cancel->wait = take_up_wait;
	connection->transport.cancel = cancel->session != NULL ? cancel : NULL;
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
uri_of_server(const MongoClient *client, const MongoStream *stream)
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
	mongoc_uri_set_option_as_int32(uri, MONGOC_URI_CONNECTTIMEOUTMS, ASK_WAIT_MS);
	mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, ASK_WAIT_MS);
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

/*
 * run_beside
 *		A command on a connection of its own to the server that 'stream' leads to;
 *		true when the server has done so.
 */
static bool
run_beside(MongoClient *client, const MongoStream *stream, const char *database,
		   const bson_t *command)
{
	const MongoTransport *original = stream->transport;
	MongoTransport transport = {
		.use_tls = original->use_tls,
		.ssl_options = original->ssl_options,
		.connect_timeout_ms = ASK_WAIT_MS,
		.wait_limit_ms = ASK_WAIT_MS,
		.ending = within(ASK_TOTAL_MS)
	};
	mongoc_uri_t *uri;
	mongoc_client_t *other;
	bool		done = false;

	transport.peer_length = sizeof(transport.peer);
	if (getpeername(stream->socket, (struct sockaddr *) &transport.peer,
					&transport.peer_length) < 0)
		return false;
	uri = uri_of_server(client, stream);
	if (uri == NULL)
		return false;
	dlist_init(&transport.streams);

	HOLD_INTERRUPTS();
	other = mongoc_client_new_from_uri_with_error(uri, NULL);
	if (other != NULL)
	{
		if (transport.use_tls)
			mongoc_client_set_ssl_opts(other, &transport.ssl_options);
		mongoc_client_set_stream_initiator(other, mongo_stream_initiate, &transport);
		done = mongoc_client_command_simple(other, database, command, NULL, NULL, NULL);
		transport.closing = true;
		mongoc_client_destroy(other);
	}
	RESUME_INTERRUPTS();
	mongoc_uri_destroy(uri);
	return done;
}

void
mongo_append_kill_session(bson_t *command, const mongoc_client_session_t *session)
{
	bson_append_template(command, "{killSessions: [@1]}",
						 bson_document(mongoc_client_session_get_lsid(session)));
}

/* ask: the first time that a wait is given up. */
static void
ask(MongoStream *stream, MongoRemoteCancel *cancel)
{
	MongoTransport *transport = stream->transport;
	bson_t		command = BSON_INITIALIZER;

	cancel->asked = true;
	mongo_append_kill_session(&command, cancel->session);
	if (run_beside(mongo_client_of((MongoConnection *) transport), stream, "admin",
				   &command))
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

bool
mongo_remote_cancel_cursor(MongoClient *client, const RemoteCursor *cursor)
{
	MongoStream *stream = client->connection.transport.data_stream;
	bson_t		command = BSON_INITIALIZER;
	bool		done = false;

	if (stream != NULL && stream->socket != PGINVALID_SOCKET &&
		mongo_client_is_on(client, cursor->host_and_port))
	{
		mongo_client_kill_command(cursor, &command);
		done = run_beside(client, stream, cursor->database, &command);
	}
	bson_destroy(&command);
	return done;
}
