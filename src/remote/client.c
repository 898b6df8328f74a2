/*-------------------------------------------------------------------------
 *
 * client.c
 *		Making a connection, and what is known of the server.
 *
 * libmongoc parses the URI, selects a server, connects and authenticates.  Then its client
 * is destroyed, and the stream is ours: no connection to another member stays, and
 * nothing that libmongoc knows goes stale.
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
prepare_read_preference(MongoConnection *connection, const mongoc_uri_t *uri,
						const char *server_type)
{
	const mongoc_read_prefs_t *prefs = mongoc_uri_get_read_prefs_t(uri);
	mongoc_read_mode_t mode = mongoc_read_prefs_get_mode(prefs);
	const bson_t *tags = mongoc_read_prefs_get_tags(prefs);
	int64		staleness = mongoc_read_prefs_get_max_staleness_seconds(prefs);
	bson_t	   *elements;
	bson_t		inner;

	connection->read_preference = NULL;
	if (strcmp(server_type, "Standalone") == 0)
		return;
	if (mode == MONGOC_READ_PRIMARY)
	{
		if (!mongo_uri_is_single(uri) || strcmp(server_type, "Mongos") == 0)
			return;
		mode = MONGOC_READ_PRIMARY_PREFERRED;
	}

	elements = bson_create_in(connection->context);
	bson_append_document_begin(elements, "$readPreference", -1, &inner);
	BSON_APPEND_UTF8(&inner, "mode", mongo_read_mode_name(mode));
	if (tags != NULL && !bson_empty(tags))
		BSON_APPEND_ARRAY(&inner, "tags", tags);
	if (staleness > 0)
		BSON_APPEND_INT64(&inner, "maxStalenessSeconds", staleness);
	bson_append_document_end(elements, &inner);
	connection->read_preference = elements;
}

static void
prepare_read_concern(MongoConnection *connection, const mongoc_uri_t *uri)
{
	const mongoc_read_concern_t *concern = mongoc_uri_get_read_concern(uri);
	const char *level = concern ? mongoc_read_concern_get_level(concern) : NULL;

	connection->read_concern = NULL;
	if (level == NULL)
		return;
	connection->read_concern = bson_create_in(connection->context);
	bson_append_condition(connection->read_concern, "readConcern", "level",
						  bson_utf8(level));
}

/*
 * prepare_compression
 *		What the handshake has agreed on; servers give back what they can do of
 *		that which the URI asks for.
 */
static void
prepare_compression(MongoConnection *connection, const mongoc_uri_t *uri,
					mongoc_server_description_t *server)
{
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
 *		What writes and transactions have to know of the server.
 */
static void
prepare_writes(MongoConnection *connection, const mongoc_uri_t *uri,
			   mongoc_server_description_t *server)
{
	const mongoc_write_concern_t *concern = mongoc_uri_get_write_concern(uri);
	const bson_t *hello = mongoc_server_description_hello_response(server);

	connection->is_standalone = strcmp(connection->server_type, "Standalone") == 0;
	connection->takes_writes = connection->is_standalone || mongo_uri_is_single(uri) ||
		strncmp(connection->server_type, "RS", 2) != 0 ||
		strcmp(connection->server_type, "RSPrimary") == 0;
	connection->session = (MongoServerSession) {
		.minutes = Min(hello_number(hello, "logicalSessionTimeoutMinutes", 0), 1440)
	};
	connection->retries_writes = !connection->is_standalone && connection->session.minutes > 0 &&
		mongoc_uri_get_option_as_bool(uri, MONGOC_URI_RETRYWRITES, true);
	mongo_keep(&connection->cluster_time, &(MongoReply) {
		.document = bson_get_data(hello),.length = hello->len
	}, "$clusterTime");
	connection->most_writes = hello_number(hello, "maxWriteBatchSize", 1000);
	connection->longest_message = hello_number(hello, "maxMessageSizeBytes", 48000000);

	connection->write_concern = NULL;
	if (concern == NULL || mongoc_write_concern_is_default(concern))
		return;
	connection->write_concern = bson_create_in(connection->context);
	mongoc_write_concern_append(unconstify(mongoc_write_concern_t *, concern),
								connection->write_concern);
}

/* adopt_stream: take over our stream to the selected server; the newest, if several. */
static bool
adopt_stream(MongoTransport *transport, const mongoc_server_description_t *server,
			 bson_error_t *error)
{
	const mongoc_host_list_t *host =
		mongoc_server_description_host((mongoc_server_description_t *) server);
	dlist_iter	iter;

	dlist_foreach(iter, &transport->streams)
	{
		MongoStream *stream = dlist_container(MongoStream, node, iter.cur);

		if (stream->guard != NULL && strcmp(stream->host_and_port, host->host_and_port) == 0)
		{
			mongo_guard_release(stream);
			transport->data_stream = stream;
			return true;
		}
	}
	bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET,
				   "no connection to the selected server %s",
				   host->host_and_port);
	return false;
}

/* destroy_driver: and with it the connections that are not ours. */
static void
destroy_driver(MongoConnection *connection)
{
	MongoTransport *transport = &connection->transport;

	/* whatever libmongoc would like to send now fails at once */
	transport->closing = true;
	if (connection->driver != NULL)
		mongoc_client_destroy(connection->driver);
	connection->driver = NULL;
	if (connection->selected != NULL)
		mongoc_server_description_destroy(connection->selected);
	connection->selected = NULL;
	transport->closing = false;
}

/* learn_server: what its handshake has told. */
static void
learn_server(MongoConnection *connection, const mongoc_uri_t *uri, mongoc_server_description_t *server)
{
	connection->server_type = MemoryContextStrdup(connection->context,
												  mongoc_server_description_type(server));
	prepare_read_preference(connection, uri, connection->server_type);
	prepare_compression(connection, uri, server);
	prepare_writes(connection, uri, server);
	if (connection->identity != NULL)
		mongoc_uri_destroy(connection->identity);
	connection->identity = mongoc_uri_copy(mongoc_client_get_uri(connection->driver));
}

/* note_peer: where to reach the same server again. */
static void
note_peer(MongoConnection *connection)
{
	const MongoStream *stream = connection->transport.data_stream;

	connection->peer_length = sizeof(connection->peer);
	if (getpeername(stream->socket, (struct sockaddr *) &connection->peer, &connection->peer_length) < 0)
		connection->peer_length = 0;
	strlcpy(connection->host, stream->host_and_port, sizeof(connection->host));
}

/*
 * connect_once
 *		Have libmongoc select a server of 'uri', connect and authenticate, and take over
 *		the connection; false with *error set.
 *
 * With 'primary' the server is one that takes writes, else as the read preference has it.
 * With 'learn' the connection gets what the server has told of itself; only then it may raise,
 * 53200, and leave libmongoc's client to destroy_driver().
 */
static bool
connect_once(MongoConnection *connection, const mongoc_uri_t *uri, bool primary, bool learn,
			 bson_error_t *error)
{
	MongoTransport *transport = &connection->transport;
	int			wait_limit_ms = transport->wait_limit_ms;
	mongoc_server_description_t *found;
	bool		connected = false;

	transport->interrupted = transport->timed_out = transport->out_of_files = false;
	transport->memory_missing = 0;
	if (transport->wait_error != NULL)
		FreeErrorData(transport->wait_error);
	transport->wait_error = NULL;
	transport->failure[0] = '\0';
	transport->violation = NULL;
	/* libmongoc would authenticate within its socketTimeoutMS, which is ours */
	transport->wait_limit_ms = transport->connect_timeout_ms;

	if (mongo_resolve_service(transport, uri, transport->connect_timeout_ms, error))
		connection->driver = mongoc_client_new_from_uri_with_error(uri, error);
	if (connection->driver != NULL)
	{
		mongoc_client_set_error_api(connection->driver, MONGOC_ERROR_API_VERSION_2);

		/*
		 * x509 authentication wants them; the initiator, set last, does the
		 * TLS
		 */
		if (transport->use_tls)
			mongoc_client_set_ssl_opts(connection->driver, &transport->ssl_options);
		mongoc_client_set_stream_initiator(connection->driver, mongo_stream_initiate,
										   transport);
		found = mongoc_client_select_server(connection->driver, primary,
											primary ? NULL : mongoc_uri_get_read_prefs_t(uri),
											error);
		if (found != NULL)
		{
			/* this authenticates */
			connection->selected =
				mongoc_client_get_handshake_description(connection->driver,
														mongoc_server_description_id(found),
														NULL, error);
			mongoc_server_description_destroy(found);
		}
	}
	if (connection->selected != NULL)
		connected = adopt_stream(transport, connection->selected, error);
	if (connected && learn)
		learn_server(connection, uri, connection->selected);
	destroy_driver(connection);
	transport->wait_limit_ms = wait_limit_ms;
	if (connected)
		note_peer(connection);
	return connected;
}

/*
 * explain_failure
 *		Say what kept the initiator from connecting, which libmongoc cannot.
 */
static void
explain_failure(MongoConnection *connection, const mongoc_uri_t *uri,
				bson_error_t *error)
{
	const char *failure = connection->transport.failure;

	/* a connection lost while authenticating is none that was refused */
	if (connection->transport.last_failed && error->domain == MONGOC_ERROR_CLIENT &&
		error->code == MONGOC_ERROR_CLIENT_AUTHENTICATE)
	{
		error->domain = MONGOC_ERROR_STREAM;
		error->code = MONGOC_ERROR_STREAM_SOCKET;
	}
	if (*failure == '\0')
		return;
	/* of a reply to a password libmongoc says that the password is wrong */
	if (connection->transport.violation != NULL)
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
pg_noreturn static void report_open_files(MongoConnection *connection);

static void
report_open_files(MongoConnection *connection)
{
	ereport(ERROR,
			(errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
			 errmsg("could not connect to server \"%s\"",
					connection->server_name),
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
connect_client(MongoConnection *connection, mongoc_uri_t *uri)
{
	TimestampTz end;
	MongoTransport *transport = &connection->transport;
	bool		wait = !mongo_uri_is_single(uri) &&
		!(mongoc_uri_has_option(uri, MONGOC_URI_SERVERSELECTIONTRYONCE) &&
		  mongoc_uri_get_option_as_bool(uri, MONGOC_URI_SERVERSELECTIONTRYONCE, true));
	int			timeout_ms = selection_timeout(uri);

	mongoc_uri_set_option_as_bool(uri, MONGOC_URI_SERVERSELECTIONTRYONCE, true);

	end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);
	for (;;)
	{
		bson_error_t error = {0};

		if (connect_once(connection, uri, false, true, &error))
			return;

		mongo_transport_raise(transport);
		if (transport->out_of_files)
			report_open_files(connection);
		if (!wait || error.domain != MONGOC_ERROR_SERVER_SELECTION ||
			GetCurrentTimestamp() >= end)
		{
			explain_failure(connection, uri, &error);
			mongo_report_connection_error(connection->server_name,
										  &error);
		}

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
static MongoConnection *
allocate_client(UserMapping *user)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "mongo_fdw connection",
												  ALLOCSET_SMALL_SIZES);
	MongoConnection *connection = MemoryContextAllocZero(context, sizeof(MongoConnection));

	connection->context = context;
	connection->server_name = "";
	connection->serverid = user->serverid;
	connection->server_type = "";
	dlist_init(&connection->transport.streams);
	connection->server_hashvalue =
		GetSysCacheHashValue1(FOREIGNSERVEROID, ObjectIdGetDatum(user->serverid));
	connection->mapping_hashvalue =
		GetSysCacheHashValue1(USERMAPPINGOID, ObjectIdGetDatum(user->umid));
	MemoryContextSetParent(context, TopMemoryContext);
	return connection;
}

/* Everything from the catalogs to an authenticated connection. */
static void
configure_and_connect(MongoConnection *connection, UserMapping *user)
{
	MongoTransport *transport = &connection->transport;
	MemoryContext caller_context = MemoryContextSwitchTo(connection->context);
	ForeignServer *server = GetForeignServer(user->serverid);
	MongoConnectionOptions *options = mongo_connection_options(server, user);
	mongoc_uri_t *uri;

	connection->server_name = server->servername;
	connection->keep = options->keep_connections;
	connection->idle_timeout = options->idle_timeout;
	connection->async_connections = options->async_connections;
	connection->max_connections = options->max_connections;
	if (connection->read_mode != 0)
		options->read_mode = connection->read_mode;

	connection->uri = uri = mongo_uri_create(options);
	transport->use_tls = mongo_uri_ssl_options(options, uri, &transport->ssl_options);
	/* what is set in the URI later may move its strings */
	transport->ssl_options.pem_file = transport->ssl_options.pem_file ?
		pstrdup(transport->ssl_options.pem_file) : NULL;
	transport->ssl_options.pem_pwd = transport->ssl_options.pem_pwd ?
		pstrdup(transport->ssl_options.pem_pwd) : NULL;
	transport->ssl_options.ca_file = transport->ssl_options.ca_file ?
		pstrdup(transport->ssl_options.ca_file) : NULL;
	transport->connect_timeout_ms =
		mongoc_uri_get_option_as_int32(uri, MONGOC_URI_CONNECTTIMEOUTMS, 10000);
	transport->tcp = options->tcp;
	transport->socket_timeout_ms = mongo_uri_take_socket_timeout(uri, options);
	prepare_read_concern(connection, uri);
	connection->comment = options->comment != NULL ?
		mongo_trace_prepare(options->comment) : NULL;
	MemoryContextSwitchTo(caller_context);

	connection->counted = mongo_connection_limit_enter(user->serverid, server->servername,
													   options->max_connections,
													   selection_timeout(uri));
	connect_client(connection, uri);
	connection->connected_at = GetCurrentTimestamp();
	mongo_traffic_add(&transport->traffic, MONGO_COUNT_CONNECTIONS, 1);
}

MongoConnection *
mongo_connection_open(UserMapping *user, mongoc_read_mode_t read_mode)
{
	MongoConnection *connection;

	mongo_driver_check();
	connection = allocate_client(user);
	connection->read_mode = read_mode;
	PG_TRY();
	{
		configure_and_connect(connection, user);
	}
	PG_CATCH();
	{
		/* the error may quote what the connection's context holds */
		mongo_connection_close(connection);
		PG_RE_THROW();
	}
	PG_END_TRY();

	return connection;
}

/*
 * uri_of_server
 *		The one server that the connection is connected to, with its credentials; NULL when
 *		libmongoc will not have it.
 */
static mongoc_uri_t *
uri_of_server(const MongoConnection *connection, int wait_ms)
{
	const mongoc_uri_t *original = connection->identity;
	const char *mechanism = mongoc_uri_get_auth_mechanism(original);
	bool		balanced = mongoc_uri_get_option_as_bool(original, MONGOC_URI_LOADBALANCED,
														 false);
	char		text[sizeof(connection->host) + 20];
	mongoc_uri_t *uri;
	bson_t		properties;

	/*
	 * of a Unix-domain socket the path would have to be escaped; any name
	 * does
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

bool
mongo_connection_reconnect(MongoConnection *connection)
{
	MemoryContext caller_context = CurrentMemoryContext;
	int			wait_limit_ms = connection->transport.wait_limit_ms;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;
	bson_error_t error;
	volatile bool connected = false;

	mongo_transport_close(&connection->transport);
	connection->broken = false;
	connection->in_flight = 0;
	PG_TRY();
	{
		connected = connect_once(connection, connection->uri, true, true, &error);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller_context);
		FlushErrorState();
		/* an ERROR has set them to 0, and a commit may hold interrupts */
		InterruptHoldoffCount = holdoff;
		QueryCancelHoldoffCount = cancel_holdoff;
		strlcpy(error.message, "out of memory", sizeof(error.message));
	}
	PG_END_TRY();
	destroy_driver(connection);
	connection->transport.wait_limit_ms = wait_limit_ms;
	mongo_traffic_add(&connection->transport.traffic, MONGO_COUNT_CONNECTIONS, 1);
	mongo_traffic_add(&connection->transport.traffic, MONGO_COUNT_RECONNECTS, 1);
	if (!connected)
	{
		connection->broken = true;
		strlcpy(connection->transport.failure, error.message,
				sizeof(connection->transport.failure));
	}
	return connected;
}

/* What run_beside() is called with. */
typedef struct Beside
{
	const MongoConnection *connection;
	const MongoCommand *commands;
	int			ncommands;
	int			total_ms;
	int			wait_ms;
	MongoConnection other;
	MongoReply	reply;
	mongoc_uri_t *uri;
	int			sent;			/* commands */
} Beside;

static void
run_beside(void *argument)
{
	Beside	   *beside = argument;
	const MongoTransport *original = &beside->connection->transport;
	MongoConnection *connection = &beside->other;
	MongoTransport *transport = &connection->transport;
	bson_error_t error;

	transport->use_tls = original->use_tls;
	transport->ssl_options = original->ssl_options;
	transport->tcp = original->tcp;
	transport->connect_timeout_ms = transport->wait_limit_ms = beside->wait_ms;
	transport->peer = beside->connection->peer;
	transport->peer_length = beside->connection->peer_length;
	dlist_init(&transport->streams);
	beside->uri = uri_of_server(beside->connection, beside->wait_ms);
	if (beside->uri == NULL)
		return;
	mongo_begin_ending(transport, beside->total_ms, 0);
	if (!connect_once(&beside->other, beside->uri, false, false, &error))
		return;
	for (int i = 0; i < beside->ncommands; i++)
	{
		if (!mongo_send(connection, &beside->commands[i], &beside->reply))
			return;
		beside->sent++;
		if (mongo_receive(connection, &beside->reply, MONGO_DUE_INTERRUPT) != MONGO_REPLY)
			return;
	}
}

static void
finish_beside(void *argument)
{
	Beside	   *beside = argument;

	destroy_driver(&beside->other);
	mongo_transport_close(&beside->other.transport);
	mongo_reply_free(&beside->reply);
	if (beside->uri != NULL)
		mongoc_uri_destroy(beside->uri);
	bson_free(beside->other.request.data);
}

int
mongo_connection_run_beside(const MongoConnection *connection, const MongoCommand *commands,
							int ncommands, int wait_ms, int total_ms)
{
	Beside		beside = {
		.connection = connection,
		.commands = commands,
		.ncommands = ncommands,
		.total_ms = total_ms,
		.wait_ms = wait_ms,
		.reply.context = CurrentMemoryContext
	};

	if (connection->peer_length == 0 || connection->identity == NULL)
		return 0;
	HOLD_INTERRUPTS();
	(void) mongo_protect(run_beside, &beside);
	(void) mongo_protect(finish_beside, &beside);
	RESUME_INTERRUPTS();
	return beside.sent;
}

bool
mongo_connection_is_clean(const MongoConnection *connection)
{
	return !connection->broken && connection->in_flight == 0 &&
		connection->transport.data_stream != NULL &&
		!connection->transport.interrupted;
}

bool
mongo_connection_is_on(const MongoConnection *connection, const char *host_and_port)
{
	const MongoStream *stream = connection->transport.data_stream;

	return stream != NULL && strcmp(stream->host_and_port, host_and_port) == 0;
}

/* What send_kill() is called with. */
typedef struct CursorsKill
{
	MongoConnection *connection;
	dlist_head	taken;			/* of RemoteCursor, of one collection */
	bson_t		ids;
	bson_t		command;
} CursorsKill;

static void
send_kill(void *argument)
{
	CursorsKill *kill = argument;
	const RemoteCursor *first = dlist_head_element(RemoteCursor, node, &kill->taken);
	BsonArray	ids = {.bson = &kill->ids};
	dlist_iter	iter;

	dlist_foreach(iter, &kill->taken)
		bson_array_append(&ids,
						  bson_int64(dlist_container(RemoteCursor, node, iter.cur)->id));
	BSON_APPEND_UTF8(&kill->command, "killCursors", first->collection);
	BSON_APPEND_ARRAY(&kill->command, "cursors", &kill->ids);
	mongo_send_and_forget(kill->connection, first->database, &kill->command);
}

/* take_cursors: out of the list, those on the connection's server of one collection. */
static bool
take_cursors(const MongoConnection *connection, dlist_head *cursors, dlist_head *taken)
{
	const RemoteCursor *first = NULL;
	dlist_mutable_iter iter;

	dlist_init(taken);
	dlist_foreach_modify(iter, cursors)
	{
		RemoteCursor *cursor = dlist_container(RemoteCursor, node, iter.cur);

		if (!mongo_connection_is_on(connection, cursor->host_and_port) ||
			(first != NULL && (strcmp(cursor->database, first->database) != 0 ||
							   strcmp(cursor->collection, first->collection) != 0)))
			continue;
		first = first != NULL ? first : cursor;
		dlist_delete(&cursor->node);
		dlist_push_tail(taken, &cursor->node);
	}
	return first != NULL;
}

int
mongo_connection_kill_cursors(MongoConnection *connection, dlist_head *cursors)
{
	CursorsKill kill = {.connection = connection};
	int			count = 0;
	dlist_mutable_iter iter;

	while (mongo_connection_is_clean(connection) &&
		   take_cursors(connection, cursors, &kill.taken))
	{
		bson_init(&kill.ids);
		bson_init(&kill.command);
		if (!mongo_protect(send_kill, &kill))
			connection->broken = true;
		bson_destroy(&kill.ids);
		bson_destroy(&kill.command);
		dlist_foreach_modify(iter, &kill.taken)
		{
			RemoteCursor *cursor = dlist_container(RemoteCursor, node, iter.cur);

			if (connection->broken)
				dlist_push_tail(cursors, &cursor->node);
			else
			{
				free(cursor);
				count++;
			}
		}
	}
	return count;
}

static void
send_end_of_session(void *argument)
{
	MongoConnection *connection = argument;
	bson_t		command = BSON_INITIALIZER; /* stays within the bson_t */

	bson_append_template(&command, "{endSessions: [@1]}", bson_document(connection->session.lsid));
	mongo_send_and_forget(connection, "admin", &command);
	connection->session.lsid = NULL;
}

void
mongo_connection_end_session(MongoConnection *connection)
{
	if (connection->session.lsid != NULL && mongo_connection_is_clean(connection))
		(void) mongo_protect(send_end_of_session, connection);
}

static void
free_driver_memory(void *argument)
{
	MongoConnection *connection = argument;

	destroy_driver(connection);
	mongo_transport_close(&connection->transport);
	if (connection->uri != NULL)
		mongoc_uri_destroy(connection->uri);
	if (connection->identity != NULL)
		mongoc_uri_destroy(connection->identity);
}

void
mongo_connection_close(MongoConnection *connection)
{
	mongo_connection_end_session(connection);
	(void) mongo_protect(free_driver_memory, connection);

	/*
	 * The process is about to exit from within libmongoc (the postmaster has
	 * died, or memory has run out), which may hold its locks.
	 */
	if (mongo_driver_is_entered())
		return;

	mongo_connection_limit_leave(connection->counted);
	if (connection->transport.wait_error != NULL)
		FreeErrorData(connection->transport.wait_error);
	bson_free(connection->request.data);
	bson_free(connection->compressed.data);
	MemoryContextDelete(connection->context);	/* and the connection with it */
}
