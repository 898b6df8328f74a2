/*-------------------------------------------------------------------------
 *
 * client.c
 *		One libmongoc client with its authenticated connection.
 *
 * libmongoc selects the server and authenticates; from then on the stream
 * that it did this on carries our own messages (wire.c).  libmongoc does
 * nothing on its own accord: a single-threaded client's heartbeats happen
 * inside calls of its API, which the data plane does not use.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"
#include "options.h"

#include "catalog/pg_foreign_server.h"
#include "catalog/pg_user_mapping.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#define SELECTION_PAUSE_MS	250 /* between two looks at a replica set */

/*
 * prepare_read_preference
 *		What $readPreference, if any, this server has to be sent.
 *
 * Server Selection specification, "Passing read preference to mongos and load
 * balancers" and "Topology type: Single": a standalone gets none; a member of
 * a replica set that was addressed directly must be told that a secondary
 * will do; otherwise primary is what servers assume.
 */
static void
prepare_read_preference(MongoClient *client, const mongoc_uri_t *uri,
						const char *server_type)
{
	const mongoc_read_prefs_t *prefs = mongoc_client_get_read_prefs(client->client);
	mongoc_read_mode_t mode = mongoc_read_prefs_get_mode(prefs);
	const bson_t *tags = mongoc_read_prefs_get_tags(prefs);
	int64		staleness = mongoc_read_prefs_get_max_staleness_seconds(prefs);
	bson_t	   *elements;
	bson_t		inner;

	client->connection.read_preference = NULL;
	if (strcmp(server_type, "Standalone") == 0)
		return;
	if (mode == MONGOC_READ_PRIMARY)
	{
		if (!mongo_uri_is_single(uri) || strcmp(server_type, "Mongos") == 0)
			return;
		mode = MONGOC_READ_PRIMARY_PREFERRED;
	}

	elements = bson_create_in(client->context);
	bson_append_document_begin(elements, "$readPreference", -1, &inner);
	BSON_APPEND_UTF8(&inner, "mode", mongo_read_mode_name(mode));
	if (tags != NULL && !bson_empty(tags))
		BSON_APPEND_ARRAY(&inner, "tags", tags);
	if (staleness > 0)
		BSON_APPEND_INT64(&inner, "maxStalenessSeconds", staleness);
	bson_append_document_end(elements, &inner);
	client->connection.read_preference = elements;
}

static void
prepare_read_concern(MongoClient *client, const mongoc_uri_t *uri)
{
	const mongoc_read_concern_t *concern = mongoc_uri_get_read_concern(uri);
	const char *level = concern ? mongoc_read_concern_get_level(concern) : NULL;

	client->connection.read_concern = NULL;
	if (level == NULL)
		return;
	client->connection.read_concern = bson_create_in(client->context);
	bson_append_condition(client->connection.read_concern, "readConcern", "level",
						  bson_utf8(level));
}

/*
 * prepare_compression
 *		What the handshake has agreed on; servers give back what they can do of
 *		that which the URI asks for.
 */
static void
prepare_compression(MongoClient *client, const mongoc_uri_t *uri,
					mongoc_server_description_t *server)
{
	MongoConnection *connection = &client->connection;

	connection->compressor =
		mongo_compressor_negotiated(mongoc_server_description_hello_response(server));
	connection->compression_level =
		mongoc_uri_get_option_as_int32(uri, MONGOC_URI_ZLIBCOMPRESSIONLEVEL, -1);
}

/* hello_number: of the server's answer to "hello"; 'otherwise' where there is none. */
static int
hello_number(const bson_t *hello, const char *name, int otherwise)
{
	bson_iter_t iter;
	int64		number;

	if (!bson_iter_init_find(&iter, hello, name) || !BSON_ITER_HOLDS_NUMBER(&iter))
		return otherwise;
	number = bson_iter_as_int64(&iter);
	return number > 0 && number <= PG_INT32_MAX ? (int) number : otherwise;
}

/*
 * prepare_writes
 *		What write.c has to know of the server.
 *
 * Behind a load balancer writes are left to libmongoc.
 */
static void
prepare_writes(MongoClient *client, const mongoc_uri_t *uri,
			   mongoc_server_description_t *server)
{
	const mongoc_write_concern_t *concern = mongoc_client_get_write_concern(client->client);
	const bson_t *hello = mongoc_server_description_hello_response(server);
	bool		is_alone = strcmp(client->server_type, "Standalone") == 0;

	client->takes_transactions = strcmp(client->server_type, "RSPrimary") == 0;
	client->takes_writes = is_alone || client->takes_transactions ||
		strcmp(client->server_type, "Mongos") == 0;
	client->session.minutes = hello_number(hello, "logicalSessionTimeoutMinutes", 0);
	client->retries_writes = !is_alone && client->session.minutes > 0 &&
		mongoc_uri_get_option_as_bool(uri, MONGOC_URI_RETRYWRITES, true);
	client->most_writes = hello_number(hello, "maxWriteBatchSize", 1000);
	client->longest_message = hello_number(hello, "maxMessageSizeBytes", 48000000);

	client->connection.write_concern = NULL;
	if (mongoc_write_concern_is_default(concern))
		return;
	client->connection.write_concern = bson_create_in(client->context);
	mongoc_write_concern_append(unconstify(mongoc_write_concern_t *, concern),
								client->connection.write_concern);
}

/* Find our stream to the selected server; the newest, if there were several. */
static bool
adopt_stream(MongoClient *client, const mongoc_server_description_t *server,
			 bson_error_t *error)
{
	MongoTransport *transport = &client->connection.transport;
	const mongoc_host_list_t *host =
		mongoc_server_description_host((mongoc_server_description_t *) server);
	dlist_iter	iter;

	dlist_foreach(iter, &transport->streams)
	{
		MongoStream *stream = dlist_container(MongoStream, node, iter.cur);

		if (strcmp(stream->host_and_port, host->host_and_port) == 0)
		{
			transport->data_stream = stream;
			return true;
		}
	}
	bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET,
				   "no connection to the selected server %s",
				   host->host_and_port);
	return false;
}

/* libmongoc's callback: a server has been found, or is no longer what it was. */
static void
note_server_changed(const mongoc_apm_server_changed_t *event)
{
	MongoClient *client = mongoc_apm_server_changed_get_context(event);

	client->servers_changed = true;
}

/* watch_servers: for mongo_client_deployment(). */
static void
watch_servers(MongoClient *client)
{
	mongoc_apm_callbacks_t *callbacks = mongoc_apm_callbacks_new();

	mongoc_apm_set_server_changed_cb(callbacks, note_server_changed);
	client->servers_changed = true;
	mongoc_client_set_apm_callbacks(client->client, callbacks, client);
	mongoc_apm_callbacks_destroy(callbacks);
}

/* find_deployment asks libmongoc, which sends nothing. */
static MongoDeployment
find_deployment(mongoc_client_t *client)
{
	size_t		count;
	mongoc_server_description_t **servers =
		mongoc_client_get_server_descriptions(client, &count);
	MongoDeployment deployment = MONGO_DEPLOYMENT_UNKNOWN;

	for (size_t i = 0; i < count; i++)
	{
		const char *type = mongoc_server_description_type(servers[i]);

		if (strncmp(type, "RS", 2) == 0 || strcmp(type, "Mongos") == 0 ||
			strcmp(type, "LoadBalancer") == 0)
			deployment = MONGO_DEPLOYMENT_WITH_TRANSACTIONS;
		else if (strcmp(type, "Standalone") == 0)
			deployment = MONGO_DEPLOYMENT_STANDALONE;
	}
	mongoc_server_descriptions_destroy_all(servers, count);
	return deployment;
}

MongoDeployment
mongo_client_deployment(MongoClient *client)
{
	if (client->servers_changed)
	{
		client->deployment = find_deployment(client->client);
		client->servers_changed = false;
	}
	return client->deployment;
}

/*
 * select_and_authenticate
 *		Connect with libmongoc; false with *error set.
 */
static bool
select_and_authenticate(MongoClient *client, const mongoc_uri_t *uri,
						bson_error_t *error)
{
	MongoTransport *transport = &client->connection.transport;
	mongoc_server_description_t *selected;
	mongoc_server_description_t *server = NULL;
	bool		connected = false;

	if (!mongo_resolve_service(transport, uri, transport->connect_timeout_ms, error))
		return false;
	client->client = mongoc_client_new_from_uri_with_error(uri, error);
	if (client->client == NULL)
		return false;
	mongoc_client_set_error_api(client->client, MONGOC_ERROR_API_VERSION_2);
	watch_servers(client);

	/* x509 authentication wants them; the initiator, set last, does the TLS */
	if (transport->use_tls)
		mongoc_client_set_ssl_opts(client->client, &transport->ssl_options);
	mongoc_client_set_stream_initiator(client->client, mongo_stream_initiate,
									   transport);

	selected = mongoc_client_select_server(client->client, false,
										   mongoc_client_get_read_prefs(client->client),
										   error);
	if (selected != NULL)
	{
		server = mongoc_client_get_handshake_description(client->client,
														 mongoc_server_description_id(selected),
														 NULL, error);
		mongoc_server_description_destroy(selected);
	}
	if (server != NULL)
	{
		connected = adopt_stream(client, server, error);
		if (connected)
		{
			client->server_type = MemoryContextStrdup(client->context,
													  mongoc_server_description_type(server));
			prepare_read_preference(client, uri, client->server_type);
			prepare_compression(client, uri, server);
			prepare_writes(client, uri, server);
		}
		mongoc_server_description_destroy(server);
	}
	return connected;
}

void
mongo_client_free_session(MongoClient *client)
{
	if (client->remote_cancel.session != NULL)
		mongoc_client_session_destroy(client->remote_cancel.session);
	client->remote_cancel.session = NULL;
}

static void
destroy_driver_client(void *argument)
{
	MongoClient *client = argument;
	MongoTransport *transport = &client->connection.transport;

	/* whatever libmongoc would like to send now (endSessions) fails at once */
	transport->closing = true;
	mongo_client_free_session(client);
	if (client->client != NULL)
		mongoc_client_destroy(client->client);
	client->client = NULL;
	transport->closing = false;
}

/*
 * explain_failure
 *		Say what kept the initiator from connecting, which libmongoc cannot.
 */
static void
explain_failure(MongoClient *client, const mongoc_uri_t *uri,
				bson_error_t *error)
{
	const char *failure = client->connection.transport.failure;

	/* a connection lost while authenticating is none that was refused */
	if (client->connection.transport.last_failed && error->domain == MONGOC_ERROR_CLIENT &&
		error->code == MONGOC_ERROR_CLIENT_AUTHENTICATE)
	{
		error->domain = MONGOC_ERROR_STREAM;
		error->code = MONGOC_ERROR_STREAM_SOCKET;
	}
	if (*failure == '\0')
		return;
	/* of a reply to a password libmongoc says that the password is wrong */
	if (client->connection.transport.violation != NULL)
	{
		error->domain = MONGOC_ERROR_PROTOCOL;
		error->code = MONGOC_ERROR_PROTOCOL_INVALID_REPLY;
	}
	if (mongo_uri_is_single(uri))
		strlcpy(error->message, failure, sizeof(error->message));
	else
	{
		size_t		used = strnlen(error->message, sizeof(error->message) - 1);

		snprintf(error->message + used, sizeof(error->message) - used,
				 " (%s)", failure);
	}
}

/* As postgres_fdw says it: waiting for another member would not help. */
pg_noreturn static void report_open_files(MongoClient *client);

static void
report_open_files(MongoClient *client)
{
	ereport(ERROR,
			(errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
			 errmsg("could not connect to server \"%s\"",
					client->connection.server_name),
			 errdetail("There are too many open files on the local server."),
			 errhint("Raise the server's max_files_per_process and/or \"ulimit -n\" limits.")));
}

/* How many milliseconds may pass until there is a server to talk to. */
static int
selection_timeout(const mongoc_uri_t *uri)
{
	return mongoc_uri_get_option_as_int32(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, 30000);
}

/*
 * connect_client
 *		Try until a server is found, the error is final, or time is up.
 *
 * Only for replica sets and sharded clusters is waiting of use: they may be
 * electing a primary.  Each attempt takes a new libmongoc client, since one
 * that has failed does not look again for five seconds.
 */
static void
connect_client(MongoClient *client, mongoc_uri_t *uri)
{
	TimestampTz end;
	bool		wait = !mongo_uri_is_single(uri) &&
		!(mongoc_uri_has_option(uri, MONGOC_URI_SERVERSELECTIONTRYONCE) &&
		  mongoc_uri_get_option_as_bool(uri, MONGOC_URI_SERVERSELECTIONTRYONCE, true));
	int			timeout_ms = selection_timeout(uri);

	mongoc_uri_set_option_as_bool(uri, MONGOC_URI_SERVERSELECTIONTRYONCE, true);

	/*
	 * libmongoc would authenticate within its socketTimeoutMS, which is ours
	 * now
	 */
	client->connection.transport.wait_limit_ms = client->connection.transport.connect_timeout_ms;
	end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);
	for (;;)
	{
		bson_error_t error = {0};

		client->connection.transport.interrupted = false;
		client->connection.transport.failure[0] = '\0';
		client->connection.transport.out_of_files = false;
		client->connection.transport.violation = NULL;
		if (select_and_authenticate(client, uri, &error))
		{
			client->connection.transport.wait_limit_ms = 0;
			return;
		}

		mongo_transport_raise(&client->connection.transport);
		if (client->connection.transport.out_of_files)
			report_open_files(client);
		if (!wait || error.domain != MONGOC_ERROR_SERVER_SELECTION ||
			GetCurrentTimestamp() >= end)
		{
			explain_failure(client, uri, &error);
			mongo_report_connection_error(client->connection.server_name,
										  &error);
		}

		destroy_driver_client(client);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 SELECTION_PAUSE_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * allocate_client
 *		The struct and its context; nothing of libmongoc yet.
 *
 * The context is the session's when nothing can fail any more.
 */
static MongoClient *
allocate_client(UserMapping *user)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "mongo_fdw client",
												  ALLOCSET_SMALL_SIZES);
	MongoClient *client = MemoryContextAllocZero(context, sizeof(MongoClient));

	client->context = context;
	client->connection.server_name = "";
	client->serverid = user->serverid;
	client->server_type = "";
	dlist_init(&client->connection.transport.streams);
	client->server_hashvalue =
		GetSysCacheHashValue1(FOREIGNSERVEROID, ObjectIdGetDatum(user->serverid));
	client->mapping_hashvalue =
		GetSysCacheHashValue1(USERMAPPINGOID, ObjectIdGetDatum(user->umid));
	MemoryContextSetParent(context, TopMemoryContext);
	return client;
}

/* Everything from the catalogs to an authenticated connection. */
static void
configure_and_connect(MongoClient *client, UserMapping *user,
					  mongoc_uri_t **uri)
{
	MongoTransport *transport = &client->connection.transport;
	MemoryContext caller_context = MemoryContextSwitchTo(client->context);
	ForeignServer *server = GetForeignServer(user->serverid);
	MongoConnectionOptions *options = mongo_connection_options(server, user);

	client->connection.server_name = server->servername;
	client->keep = options->keep_connections;
	client->idle_timeout = options->idle_timeout;
	client->async_connections = options->async_connections;
	client->max_connections = options->max_connections;
	if (client->read_mode != 0)
		options->read_mode = client->read_mode;

	*uri = mongo_uri_create(options);
	transport->use_tls = mongo_uri_ssl_options(options, *uri,
											   &transport->ssl_options);
	/* the URI goes, its strings stay */
	transport->ssl_options.pem_file = transport->ssl_options.pem_file ?
		pstrdup(transport->ssl_options.pem_file) : NULL;
	transport->ssl_options.pem_pwd = transport->ssl_options.pem_pwd ?
		pstrdup(transport->ssl_options.pem_pwd) : NULL;
	transport->ssl_options.ca_file = transport->ssl_options.ca_file ?
		pstrdup(transport->ssl_options.ca_file) : NULL;
	transport->connect_timeout_ms =
		mongoc_uri_get_option_as_int32(*uri, MONGOC_URI_CONNECTTIMEOUTMS, 10000);
	transport->tcp = options->tcp;
	transport->socket_timeout_ms = mongo_uri_take_socket_timeout(*uri, options);
	prepare_read_concern(client, *uri);
	client->connection.comment = options->comment != NULL ?
		mongo_trace_prepare(options->comment) : NULL;
	MemoryContextSwitchTo(caller_context);

	client->counted = mongo_connection_limit_enter(user->serverid, server->servername,
												   options->max_connections,
												   selection_timeout(*uri));
	connect_client(client, *uri);
	client->connected_at = GetCurrentTimestamp();
	mongo_traffic_add(&transport->traffic, MONGO_COUNT_CONNECTIONS, 1);
}

MongoClient *
mongo_client_connect(UserMapping *user, mongoc_read_mode_t read_mode)
{
	MongoClient *client;
	mongoc_uri_t *volatile uri = NULL;

	mongo_driver_check();
	client = allocate_client(user);
	client->read_mode = read_mode;
	PG_TRY();
	{
		configure_and_connect(client, user, (mongoc_uri_t **) &uri);
	}
	PG_CATCH();
	{
		if (uri != NULL)
			mongoc_uri_destroy(uri);
		/* the error may quote what the client's context holds */
		mongo_client_close(client);
		PG_RE_THROW();
	}
	PG_END_TRY();

	mongoc_uri_destroy(uri);
	return client;
}

bool
mongo_client_is_clean(const MongoClient *client)
{
	const MongoConnection *connection = &client->connection;

	return !connection->broken && connection->in_flight == 0 &&
		connection->transport.data_stream != NULL &&
		!connection->transport.interrupted;
}

bool
mongo_client_is_on(const MongoClient *client, const char *host_and_port)
{
	const MongoStream *stream = client->connection.transport.data_stream;

	return stream != NULL && strcmp(stream->host_and_port, host_and_port) == 0;
}

RemoteCursor *
mongo_client_describe_cursor(const MongoClient *client, int64 cursor_id,
							 const char *database, const char *collection)
{
	const char *host_and_port = client->connection.transport.data_stream->host_and_port;
	size_t		database_size = strlen(database) + 1;
	size_t		collection_size = strlen(collection) + 1;
	RemoteCursor *cursor = bson_malloc0(sizeof(RemoteCursor) + database_size +
										collection_size + strlen(host_and_port) + 1);
	char	   *names = (char *) (cursor + 1);

	cursor->id = cursor_id;
	cursor->database = strcpy(names, database);
	cursor->collection = strcpy(names + database_size, collection);
	cursor->host_and_port = strcpy(names + database_size + collection_size,
								   host_and_port);
	return cursor;
}

void
mongo_client_kill_command(const RemoteCursor *cursor, bson_t *command)
{
	bson_append_template(command, "{killCursors: @1, cursors: [@2]}",
						 bson_utf8(cursor->collection), bson_int64(cursor->id));
}

/* What send_kill() is called with. */
typedef struct CursorKill
{
	MongoClient *client;
	const RemoteCursor *cursor;
	bson_t		command;
	bool		sent;
} CursorKill;

static void
send_kill(void *argument)
{
	CursorKill *kill = argument;
	MongoClient *client = kill->client;

	mongo_client_kill_command(kill->cursor, &kill->command);
	mongo_wire_send_and_forget(&client->connection, kill->cursor->database,
							   &kill->command);
	kill->sent = !client->connection.broken;
}

bool
mongo_client_kill_cursor(MongoClient *client, const RemoteCursor *cursor)
{
	CursorKill	kill = {client, cursor, BSON_INITIALIZER, false};

	if (!mongo_client_is_clean(client) || !mongo_client_is_on(client, cursor->host_and_port))
		return false;
	(void) mongo_protect(send_kill, &kill);
	bson_destroy(&kill.command);
	return kill.sent;
}

bool
mongo_client_has_lost_connection(const MongoClient *client)
{
	dlist_iter	iter;

	dlist_foreach(iter, (dlist_head *) &client->connection.transport.streams)
	{
		MongoStream *stream = dlist_container(MongoStream, node, iter.cur);

		if (stream->socket != PGINVALID_SOCKET && mongo_stream_has_input(stream))
			return true;
	}
	return client->connection.transport.data_stream == NULL;
}

/*
 * send_to_all_servers
 *		To each that the client is connected to, without waiting for an answer.
 */
static void
send_to_all_servers(MongoClient *client, const char *database,
					const bson_t *command)
{
	MongoTransport *transport = &client->connection.transport;
	MongoStream *data_stream = transport->data_stream;
	dlist_iter	iter;

	dlist_foreach(iter, &transport->streams)
	{
		transport->data_stream = dlist_container(MongoStream, node, iter.cur);
		if (transport->data_stream->socket != PGINVALID_SOCKET)
			mongo_wire_send_and_forget(&client->connection, database, command);
	}
	transport->data_stream = data_stream;
}

/* What end_sessions() is called with, and what is to be freed after it. */
typedef struct SessionsEnd
{
	MongoClient *client;
	mongoc_client_session_t *session;
	bson_t		command;
} SessionsEnd;

/*
 * borrow_session
 *		libmongoc's session, if it has used one; NULL otherwise.
 *
 * A client does one thing at a time, so its libmongoc has one session, which it
 * hands out again; with nothing known of the servers it would look for them.
 */
static mongoc_client_session_t *
borrow_session(MongoClient *client)
{
	if (!client->has_session || mongo_client_deployment(client) == MONGO_DEPLOYMENT_UNKNOWN)
		return NULL;
	client->has_session = false;
	return mongoc_client_start_session(client->client, NULL, NULL);
}

static void
end_sessions(void *argument)
{
	SessionsEnd *end = argument;
	MongoClient *client = end->client;
	bson_value_t ids[2];
	int			count = 0;

	end->session = borrow_session(client);
	if (end->session != NULL)
		ids[count++] = bson_document(mongoc_client_session_get_lsid(end->session));
	if (client->session.lsid != NULL)
		ids[count++] = bson_document(client->session.lsid);
	if (count == 0)
		return;
	bson_append_template_values(&end->command, count == 1 ? "{endSessions: [@1]}" :
								"{endSessions: [@1, @2]}", ids, count);
	send_to_all_servers(client, "admin", &end->command);
	client->session.lsid = NULL;
}

static void
free_ended_session(void *argument)
{
	SessionsEnd *end = argument;

	if (end->session != NULL)
		mongoc_client_session_destroy(end->session);
}

void
mongo_client_end_sessions(MongoClient *client)
{
	SessionsEnd end = {client, NULL, BSON_INITIALIZER};

	if ((!client->has_session && client->session.lsid == NULL) ||
		!mongo_client_is_clean(client))
		return;
	(void) mongo_protect(end_sessions, &end);
	(void) mongo_protect(free_ended_session, &end);
	bson_destroy(&end.command);
}

void
mongo_client_close(MongoClient *client)
{
	mongo_client_end_sessions(client);
	(void) mongo_protect(destroy_driver_client, client);

	/*
	 * The process is about to exit from within libmongoc (the postmaster has
	 * died, or memory has run out), which may hold its locks.
	 */
	if (mongo_driver_is_entered())
		return;

	mongo_connection_limit_leave(client->counted);
	if (client->connection.transport.wait_error != NULL)
		FreeErrorData(client->connection.transport.wait_error);
	bson_free(client->connection.request.data);
	bson_free(client->connection.compressed.data);
	MemoryContextDelete(client->context);	/* and the client with it */
}
