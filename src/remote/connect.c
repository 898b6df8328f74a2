/*-------------------------------------------------------------------------
 *
 * connect.c
 *		Opens connections and records the properties of their servers.
 *
 * libmongoc parses the URI, selects a server, connects and authenticates.  Then we take over the
 * stream and destroy libmongoc's client.  So no connections to other members remain, and
 * libmongoc has no description of the servers that could become stale.
 *
 * The functions stand in the order in which libmongoc calls them: from a host to a stream, from
 * the replies to the properties of the server, and from a URI to a connection.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "catalog/pg_foreign_server.h"
#include "catalog/pg_user_mapping.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/fd.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#define SELECTION_PAUSE_MS	250 /* between attempts to find a server */

/*-------------------------------------------------------------------------
 * The stream initiator: from a host to a connected stream, TLS on top.
 *
 * libmongoc calls the initiator whenever it opens a connection.  Its frames
 * are on the stack, so nothing here may raise.
 *-------------------------------------------------------------------------
 */

/*
 * Sets TCP_NODELAY, keepalives and the user timeout of a TCP socket.
 *
 * Keepalive probes detect that a server died while we wait for its reply.  They are not sent
 * while data is unacknowledged; the user timeout covers that case (RFC 5482, and Linux's tcp(7)).
 * 0 means the operating system's default.  Failures are ignored, as none is fatal.
 */
static void
set_socket_options(pgsocket sock, int family, const MongoTcpOptions *options)
{
	const struct
	{
		int			level;
		int			name;
		int			value;
	}			settings[] =
	{
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, options->keepalives_idle},
		{IPPROTO_TCP, TCP_KEEPINTVL, options->keepalives_interval},
		{IPPROTO_TCP, TCP_KEEPCNT, options->keepalives_count},
#ifdef TCP_USER_TIMEOUT
		{IPPROTO_TCP, TCP_USER_TIMEOUT, options->user_timeout},
#endif
	};

	for (size_t i = 0; family != AF_UNIX && i < lengthof(settings); i++)
	{
		if (settings[i].value != 0)
			(void) setsockopt(sock, settings[i].level, settings[i].name, &settings[i].value,
							  sizeof(settings[i].value));
	}
}

/*
 * Connects, waiting at most timeout_ms; returns 0 or an errno.  With timeout_ms 0 only begins to
 * connect.
 */
static int
connect_socket(MongoStream *stream, const struct sockaddr *address, socklen_t address_length,
			   long timeout_ms)
{
	int			failure = 0;
	socklen_t	size = sizeof(failure);

	if (connect(stream->socket, address, address_length) == 0)
		return 0;
	if (errno != EINPROGRESS && errno != EINTR && errno != EAGAIN)
		return errno;
	stream->is_connecting = timeout_ms == 0;
	if (stream->is_connecting)
		return 0;
	if (!mongo_stream_wait(stream, POLLOUT, timeout_ms) ||
		getsockopt(stream->socket, SOL_SOCKET, SO_ERROR, &failure, &size) < 0)
		return errno;
	return failure;
}

/* Returns a stream connected to one address, or NULL with errno set. */
static MongoStream *
connect_address(MongoTransport *transport, const struct addrinfo *address,
				const char *host_and_port, long timeout_ms)
{
	MongoStream *stream = mongo_stream_new(transport, PGINVALID_SOCKET, host_and_port);
	int			family = address->ai_addr->sa_family;
	int			failure;

	errno = EMFILE;
	stream->external_fd = mongo_may_open_connection() && AcquireExternalFD();
	if (stream->external_fd)
		stream->socket = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (stream->socket == PGINVALID_SOCKET)
	{
		failure = errno;
		transport->out_of_files = failure == EMFILE || failure == ENFILE;
	}
	else
	{
		set_socket_options(stream->socket, family, &transport->tcp);
		failure = connect_socket(stream, address->ai_addr, address->ai_addrlen, timeout_ms);
	}
	if (failure == 0)
		return stream;
	mongoc_stream_destroy(&stream->vtable);
	errno = failure;
	return NULL;
}

/*
 * Tries the addresses of the host one after another, within one timeout for all.
 *
 * Does not wait for the last address of one of several hosts: libmongoc waits for all hosts
 * together.  If the transport has a peer address, connects to that and looks up no name.
 */
static MongoStream *
connect_host(MongoTransport *transport, const mongoc_host_list_t *host, bool is_single,
			 bson_error_t *error)
{
	struct sockaddr_un path = {.sun_family = AF_UNIX};
	struct addrinfo known = {.ai_addr = (struct sockaddr *) &path,.ai_addrlen = sizeof(path)};
	struct addrinfo *resolved = NULL;
	MongoStream *stream = NULL;
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												  transport->connect_timeout_ms);

	errno = EADDRNOTAVAIL;
	if (transport->peer_length > 0)
	{
		known.ai_addr = (struct sockaddr *) &transport->peer;
		known.ai_addrlen = transport->peer_length;
	}
	else if (host->family != AF_UNIX)
	{
		resolved = mongo_resolve_host(transport, host->host, host->port,
									  transport->connect_timeout_ms, error);
		if (resolved == NULL)
			return NULL;
	}
	else if (strlcpy(path.sun_path, host->host, sizeof(path.sun_path)) >= sizeof(path.sun_path))
	{
		mongo_set_connect_error(error, host->host, ENAMETOOLONG);
		return NULL;
	}

	for (const struct addrinfo *each = resolved != NULL ? resolved : &known;
		 each != NULL && stream == NULL && !transport->interrupted; each = each->ai_next)
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);

		stream = connect_address(transport, each, host->host_and_port,
								 is_single || each->ai_next != NULL ? Max(left, 1) : 0);
	}
	if (stream == NULL)
		mongo_set_connect_error(error, host->host_and_port, errno);
	if (resolved != NULL)
		freeaddrinfo(resolved);
	return stream;
}

/*
 * Adds TLS on top of 'stream', and returns the TLS stream, which then owns it.  libmongoc does
 * the handshake.
 *
 * On failure, destroys the stream, sets *error and returns NULL.
 */
static mongoc_stream_t *
add_tls(MongoTransport *transport, MongoStream *stream,
		const mongoc_host_list_t *host, bson_error_t *error)
{
	mongoc_stream_t *top;

	mongo_driver_message[0] = '\0';
	top = mongoc_stream_tls_new_with_hostname(&stream->vtable, host->host,
											  &transport->ssl_options, 1);
	if (top == NULL)
	{
		/* libmongoc names the file that it could not use only in its log */
		bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET,
					   "could not set up TLS%s%s",
					   *mongo_driver_message ? ": " : "",
					   mongo_driver_message);
		mongoc_stream_destroy(&stream->vtable);
		return NULL;
	}

	stream->top = top;
	return top;
}

/*
 * Connects to 'host', with TLS if configured.  A mongoc_stream_initiator_t.
 *
 * 'user_data' is the MongoTransport.  On failure, appends the reason to transport->failure and
 * returns a stream whose every operation fails.  It never returns NULL, because libmongoc (seen
 * in 1.23.1) would deadlock: it does so if the initiator fails for a replica set member that it
 * has just found in another member's reply.
 */
static mongoc_stream_t *
initiate_stream(const mongoc_uri_t *uri, const mongoc_host_list_t *host,
				void *user_data, bson_error_t *error pg_attribute_unused())
{
	MongoTransport *transport = user_data;
	MongoStream *stream = NULL;
	mongoc_stream_t *top = NULL;
	mongoc_stream_t *guard = NULL;
	bson_error_t failure = {0};

	/* libmongoc must not retry what was cancelled */
	if (transport->interrupted)
		mongo_set_connect_error(&failure, host->host_and_port, ECANCELED);
	else
		stream = connect_host(transport, host, mongo_uri_is_single(uri), &failure);
	if (stream != NULL)
		top = transport->use_tls ? add_tls(transport, stream, host, &failure) : &stream->vtable;
	if (top != NULL)
	{
		guard = mongo_guard_new(stream);
		if (guard == NULL)
			mongoc_stream_destroy(top);
	}
	if (guard != NULL)
		return guard;
	mongo_transport_note_failure(transport, failure.message);
	return &mongo_stream_new(transport, PGINVALID_SOCKET, host->host_and_port)->vtable;
}

/* ------------------------- properties of the server -------------------------- */

/*
 * Builds the $readPreference to send to this server, if it needs one.
 *
 * Server Selection specification, "Passing read preference to mongos and load balancers" and
 * "Topology type: Single": a standalone server gets none.  Over a direct connection to a replica
 * set member, primary becomes primaryPreferred, so that a secondary accepts reads.  Otherwise
 * primary is the servers' default and is not sent.
 */
static void
prepare_read_preference(MongoConnection *connection)
{
	const mongoc_uri_t *uri = connection->uri;
	const char *server_type = connection->server_type;
	const mongoc_read_prefs_t *prefs = mongoc_uri_get_read_prefs_t(uri);
	mongoc_read_mode_t mode = mongoc_read_prefs_get_mode(prefs);
	const bson_t *tags = mongoc_read_prefs_get_tags(prefs);
	int64		staleness = mongoc_read_prefs_get_max_staleness_seconds(prefs);
	bson_t	   *elements;
	bson_t		inner;

	if (strcmp(server_type, "Standalone") == 0)
		return;
	if (mode == MONGOC_READ_PRIMARY)
	{
		if (!mongo_uri_is_single(uri) || strcmp(server_type, "Mongos") == 0)
			return;
		mode = MONGOC_READ_PRIMARY_PREFERRED;
	}

	elements = mongo_bson_create_in(connection->context);
	mongo_append_document_begin(elements, "$readPreference", &inner);
	mongo_append(&inner, "mode", mongo_utf8(mongo_read_mode_name(mode)));
	if (tags != NULL && !bson_empty(tags))
		mongo_append(&inner, "tags", mongo_array(tags));
	if (staleness > 0)
		mongo_append(&inner, "maxStalenessSeconds", mongo_int64(staleness));
	mongo_append_document_end(elements, &inner);
	connection->read_preference = elements;
}

/* Builds the readConcern and writeConcern elements of commands. */
static void
prepare_concerns(MongoConnection *connection)
{
	const mongoc_read_concern_t *read = mongoc_uri_get_read_concern(connection->uri);
	const mongoc_write_concern_t *write = mongoc_uri_get_write_concern(connection->uri);
	const char *level = read != NULL ? mongoc_read_concern_get_level(read) : NULL;

	if (level != NULL)
	{
		connection->read_concern = mongo_bson_create_in(connection->context);
		mongo_append_condition(connection->read_concern, "readConcern", "level",
							   mongo_utf8(level));
		/* transactions refuse two levels */
		connection->transaction_level = strcmp(level, "linearizable") == 0 ? "majority" :
			strcmp(level, "available") == 0 ? "local" : level;
	}
	if (write != NULL && !mongoc_write_concern_is_default(write))
	{
		connection->write_concern = mongo_bson_create_in(connection->context);
		mongoc_write_concern_append(unconstify(mongoc_write_concern_t *, write),
									connection->write_concern);
	}
}

/* Returns a positive number from the reply to "hello", or 'otherwise'. */
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

/* Records the server's properties from its reply to "hello".  Does not raise. */
static void
record_server(MongoConnection *connection, const mongoc_client_t *client,
			  const mongoc_server_description_t *server)
{
	const mongoc_uri_t *uri = connection->uri;
	const bson_t *hello = mongoc_server_description_hello_response(server);

	connection->server_type = mongoc_server_description_type(server);
	connection->compressor = mongo_compressor_negotiated(hello);
	connection->is_standalone = strcmp(connection->server_type, "Standalone") == 0;
	connection->takes_writes = connection->is_standalone || mongo_uri_is_single(uri) ||
		strncmp(connection->server_type, "RS", 2) != 0 ||
		strcmp(connection->server_type, "RSPrimary") == 0;
	connection->session = (MongoServerSession) {
		.minutes = Min(hello_number(hello, "logicalSessionTimeoutMinutes", 0), 1440)
	};
	connection->retries_writes = !connection->is_standalone && connection->session.minutes > 0 &&
		mongoc_uri_get_option_as_bool(uri, MONGOC_URI_RETRYWRITES, true);
	mongo_save_field(&connection->cluster_time, &(MongoReply) {
		.document = bson_get_data(hello),.length = hello->len
	}, "$clusterTime");
	connection->most_writes = hello_number(hello, "maxWriteBatchSize", 1000);
	connection->longest_message = Min(hello_number(hello, "maxMessageSizeBytes", 48000000), 48000000);

	if (connection->identity != NULL)
		mongoc_uri_destroy(connection->identity);
	connection->identity = mongoc_uri_copy(mongoc_client_get_uri(client));
}

/*-------------------------------------------------------------------------
 * The end of libmongoc's scan of the members.
 *
 * libmongoc waits for the reply of each member, up to connectTimeoutMS.  It calls note_members()
 * whenever it learns something of one.  Once a member that suits has replied, the others have as
 * much time again, and localThresholdMS, within which libmongoc selects at random.
 *-------------------------------------------------------------------------
 */

/*
 * How long to wait for a member that is preferred to one that has replied: if the read preference
 * accepts the other one only in its place, or limits the staleness, which takes a comparison.
 */
#define PREFERRED_MS	1000

typedef struct MemberScan
{
	MongoTransport *transport;
	const mongoc_uri_t *uri;
	const mongoc_read_prefs_t *accepted;
	mongoc_read_prefs_t *preferred; /* without what is accepted in its place */
	TimestampTz began_at;
} MemberScan;

/* Returns a copy of a read preference, without what it accepts as a second choice. */
static mongoc_read_prefs_t *
preferred_of(const mongoc_read_prefs_t *accepted)
{
	mongoc_read_mode_t mode = mongoc_read_prefs_get_mode(accepted);
	mongoc_read_prefs_t *result;
	bson_iter_t sets;
	bson_t		first = BSON_INITIALIZER;

	if (mode == MONGOC_READ_PRIMARY || mode == MONGOC_READ_PRIMARY_PREFERRED)
		return mongoc_read_prefs_new(MONGOC_READ_PRIMARY);
	result = mongoc_read_prefs_copy(accepted);
	if (mode == MONGOC_READ_SECONDARY_PREFERRED)
		mongoc_read_prefs_set_mode(result, MONGOC_READ_SECONDARY);
	if (bson_iter_init(&sets, mongoc_read_prefs_get_tags(accepted)) && bson_iter_next(&sets))
	{
		(void) bson_append_iter(&first, "0", 1, &sets);
		mongoc_read_prefs_set_tags(result, &first);
	}
	bson_destroy(&first);
	return result;
}

/* libmongoc's callback; must not raise. */
static void
note_members(const mongoc_apm_topology_changed_t *event)
{
	MemberScan *scan = mongoc_apm_topology_changed_get_context(event);
	const mongoc_topology_description_t *members =
		mongoc_apm_topology_changed_get_new_description(event);
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz *enough_at = &scan->transport->enough_at;

	if (mongoc_read_prefs_get_max_staleness_seconds(scan->accepted) <= 0 &&
		mongoc_topology_description_has_readable_server(members, scan->preferred))
		*enough_at = Min(*enough_at, now + (now - scan->began_at) +
						 mongoc_uri_get_option_as_int32(scan->uri, MONGOC_URI_LOCALTHRESHOLDMS, 15) *
						 INT64CONST(1000));
	else if (mongoc_topology_description_has_readable_server(members, scan->accepted))
		*enough_at = Min(*enough_at, TimestampTzPlusMilliseconds(now, PREFERRED_MS));
}

/* Has libmongoc call note_members(). */
static void
watch_members(MemberScan *scan, mongoc_client_t *client, bool primary)
{
	mongoc_apm_callbacks_t *callbacks = mongoc_apm_callbacks_new();

	scan->preferred = primary ? mongoc_read_prefs_new(MONGOC_READ_PRIMARY) :
		preferred_of(mongoc_uri_get_read_prefs_t(scan->uri));
	scan->accepted = primary ? scan->preferred : mongoc_uri_get_read_prefs_t(scan->uri);
	scan->began_at = GetCurrentTimestamp();
	mongoc_apm_set_topology_changed_cb(callbacks, note_members);
	mongoc_client_set_apm_callbacks(client, callbacks, scan);
	mongoc_apm_callbacks_destroy(callbacks);
}

/* ------------------------------- connecting -------------------------------- */

/* Takes over the newest stream to the selected server from libmongoc. */
static bool
adopt_stream(MongoTransport *transport, const mongoc_server_description_t *server,
			 bson_error_t *error)
{
	const mongoc_host_list_t *host =
		mongoc_server_description_host(server);

	foreach_dlist(MongoStream, node, stream, &transport->streams)
	{
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

/* Records the address at which the same server can be reached again. */
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
 * mongo_connect_once
 *		Has libmongoc select a server of 'uri', connect and authenticate; takes over the
 *		connection.  Returns false with *error set on failure.  Never raises.
 *
 * With 'primary', selects a server that accepts writes, else one by the read preference.  With
 * 'records', records the server's properties in the connection.
 */
bool
mongo_connect_once(MongoConnection *connection, const mongoc_uri_t *uri, bool primary, bool records,
				   bson_error_t *error)
{
	MongoTransport *transport = &connection->transport;
	int			wait_limit_ms = transport->wait_limit_ms;
	mongoc_client_t *client;
	mongoc_server_description_t *found;
	mongoc_server_description_t *server = NULL;
	MemberScan	scan = {.transport = transport,.uri = uri};
	bool		connected;
	bool		interrupted;

	mongo_transport_reset(transport);
	if (!mongo_resolve_service(transport, uri, transport->connect_timeout_ms, error))
		return false;
	client = mongoc_client_new_from_uri_with_error(uri, error);
	if (client == NULL)
		return false;
	mongoc_client_set_error_api(client, MONGOC_ERROR_API_VERSION_2);
	mongoc_client_set_stream_initiator(client, initiate_stream, transport);
	/* set last, so that libmongoc does the handshake */
	if (transport->use_tls)
		mongoc_client_set_ssl_opts(client, &transport->ssl_options);
	watch_members(&scan, client, primary);

	/* take_timeouts() disables libmongoc's own limit for authentication */
	transport->wait_limit_ms = transport->connect_timeout_ms;
	found = mongoc_client_select_server(client, primary,
										primary ? NULL : mongoc_uri_get_read_prefs_t(uri), error);
	transport->enough_at = DT_NOEND;
	if (found != NULL)
	{
		/* this call authenticates */
		server = mongoc_client_get_handshake_description(client,
														 mongoc_server_description_id(found),
														 NULL, error);
		mongoc_server_description_destroy(found);
	}
	connected = server != NULL && adopt_stream(transport, server, error);
	if (connected)
		note_peer(connection);
	if (connected && records)
		record_server(connection, client, server);
	if (server != NULL)
		mongoc_server_description_destroy(server);

	/*
	 * destroying the client closes the connections that we did not take over;
	 * with the flag set, anything that libmongoc tries to send fails at once
	 */
	interrupted = transport->interrupted;
	transport->interrupted = true;
	mongoc_client_destroy(client);
	mongoc_read_prefs_destroy(scan.preferred);
	transport->interrupted = interrupted;
	transport->wait_limit_ms = wait_limit_ms;
	return connected;
}

/* Adds the initiator's reason for a failure, which libmongoc's error lacks. */
static void
explain_failure(MongoConnection *connection, const mongoc_uri_t *uri,
				bson_error_t *error)
{
	const MongoTransport *transport = &connection->transport;

	/*
	 * libmongoc reports a lost connection, and a server that shuts down, as
	 * failed authentication
	 */
	if (error->domain == MONGOC_ERROR_CLIENT && error->code == MONGOC_ERROR_CLIENT_AUTHENTICATE &&
		(transport->last_failed || mongo_error_is_retryable(transport->reply_code)))
	{
		error->domain = MONGOC_ERROR_STREAM;
		error->code = MONGOC_ERROR_STREAM_SOCKET;
	}
	if (transport->failure[0] == '\0')
		return;
	/* libmongoc reports an invalid reply as failed authentication, too */
	if (transport->violation != NULL)
	{
		error->domain = MONGOC_ERROR_PROTOCOL;
		error->code = MONGOC_ERROR_PROTOCOL_INVALID_REPLY;
	}
	if (mongo_uri_is_single(uri))
		strlcpy(error->message, transport->failure, sizeof(error->message));
	else
	{
		size_t		used = strnlen(error->message, sizeof(error->message) - 1);

		snprintf(error->message + used, sizeof(error->message) - used,
				 " (%s)", transport->failure);
	}
}

/* Returns how many milliseconds to wait for a suitable server. */
static int
selection_timeout(const mongoc_uri_t *uri)
{
	return mongoc_uri_get_option_as_int32(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, 30000);
}

/*
 * Connects, retrying until a server is found, the error is final, or time is up.
 *
 * Tries only 'once' if that is true.  Waiting helps only with replica sets and sharded clusters,
 * which may be electing a primary.  Each attempt uses a new libmongoc client, since a client that
 * has failed does not select again for five seconds.
 */
static void
select_and_connect(MongoConnection *connection, mongoc_uri_t *uri, bool once)
{
	TimestampTz end;
	MongoTransport *transport = &connection->transport;
	bool		wait = !once && !mongo_uri_is_single(uri) &&
		!(mongoc_uri_has_option(uri, MONGOC_URI_SERVERSELECTIONTRYONCE) &&
		  mongoc_uri_get_option_as_bool(uri, MONGOC_URI_SERVERSELECTIONTRYONCE, true));
	int			timeout_ms = selection_timeout(uri);

	mongoc_uri_set_option_as_bool(uri, MONGOC_URI_SERVERSELECTIONTRYONCE, true);

	end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);
	for (;;)
	{
		bson_error_t error = {0};

		if (mongo_connect_once(connection, uri, false, true, &error))
			return;

		/* on a standby an interrupt may end nothing; see hides_conflict() */
		CHECK_FOR_INTERRUPTS();
		if (transport->interrupted && !mongo_transport_has_failed(transport) &&
			GetCurrentTimestamp() < end)
			continue;
		mongo_transport_raise(transport);
		/* in postgres_fdw's words; waiting for another member would not help */
		if (transport->out_of_files)
			ereport(ERROR,
					(errcode(ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION),
					 errmsg("could not connect to server \"%s\"", connection->server_name),
					 errdetail("There are too many open files on the local server."),
					 errhint("Raise the server's max_files_per_process and/or \"ulimit -n\" limits.")));
		if (!wait || error.domain != MONGOC_ERROR_SERVER_SELECTION ||
			GetCurrentTimestamp() >= end)
		{
			explain_failure(connection, uri, &error);
			mongo_report_connection_error(connection->server_name,
										  &error);
		}

		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 SELECTION_PAUSE_MS, mongo_wait_event(MONGO_WAIT_CONNECT));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

static void
send_end_of_session(void *argument)
{
	MongoConnection *connection = argument;
	bson_t		command = BSON_INITIALIZER;
	MongoCommand message = {.database = "admin",.document = &command};

	mongo_append_template(&command, "{endSessions: [@1]}", mongo_document(connection->session.lsid));
	(void) mongo_send(connection, &message, NULL);
	bson_destroy(&command);
	connection->session.lsid = NULL;
}

/*
 * mongo_connection_end_session
 *		Ends the MongoDB session, if there is one, which MongoDB would keep for half an hour.
 *		Neither waits nor raises.
 */
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

	mongo_transport_close(&connection->transport);
	if (connection->uri != NULL)
		mongoc_uri_destroy(connection->uri);
	if (connection->identity != NULL)
		mongoc_uri_destroy(connection->identity);
}

/*
 * mongo_connection_close
 *		Ends the session, then closes and frees the connection.  Neither waits nor raises.
 */
void
mongo_connection_close(MongoConnection *connection)
{
	mongo_connection_end_session(connection);
	(void) mongo_protect(free_driver_memory, connection);

	/*
	 * If the process exits from within libmongoc (the postmaster has died, or
	 * memory has run out), libmongoc's locks may be held.
	 */
	if (mongo_driver_is_entered())
		return;

	dlist_delete(&connection->node);
	mongo_connection_limit_leave(connection);
	if (connection->transport.wait_error != NULL)
		FreeErrorData(connection->transport.wait_error);
	bson_free(connection->request.data);
	bson_free(connection->compressed.data);
	MemoryContextDelete(connection->context);	/* and the connection with it */
}

/* Reads the options from the catalogs, connects and authenticates. */
static void
configure_and_connect(MongoConnection *connection, UserMapping *user, bool once,
					  int (*close_idle) (Oid serverid))
{
	MongoTransport *transport = &connection->transport;
	MemoryContext caller_context = MemoryContextSwitchTo(connection->context);
	ForeignServer *server = GetForeignServer(user->serverid);
	MongoConnectionOptions *options = mongo_connection_options(server, user);
	mongoc_uri_t *uri;
	TimestampTz since;
	bool		waits = true;

	connection->server_name = server->servername;
	connection->options = options;
	if (connection->read_mode != 0)
		options->read_mode = connection->read_mode;

	mongo_uri_create(options, transport, &connection->uri);
	uri = connection->uri;
	transport->replica_set = mongoc_uri_get_replica_set(uri);
	connection->compresses = !bson_empty0(mongoc_uri_get_compressors(uri));
	if (!connection->compresses)
		mongo_uri_offer_compressors(uri);
	connection->compression_level =
		mongoc_uri_get_option_as_int32(uri, MONGOC_URI_ZLIBCOMPRESSIONLEVEL, -1);
	prepare_concerns(connection);
	connection->comment = options->comment != NULL ?
		mongo_trace_prepare(options->comment) : NULL;
	MemoryContextSwitchTo(caller_context);

	/* close our own idle connections before waiting for other sessions */
	if (!mongo_connection_limit_has_room(user->serverid, options->max_connections))
		waits = close_idle(user->serverid) < options->max_connections;
	mongo_connection_limit_enter(connection, user->userid, options->max_connections,
								 waits ? selection_timeout(uri) : 0);
	since = GetCurrentTimestamp();
	select_and_connect(connection, uri, once);
	mongo_activity_note_success(user->serverid);
	prepare_read_preference(connection);
	connection->connected_at = GetCurrentTimestamp();
	connection->opening_ms = TimestampDifferenceMilliseconds(since, connection->connected_at);
	if (connection->shared != NULL)
	{
		connection->shared->connected_at = connection->connected_at;
		strlcpy(connection->shared->host, transport->data_stream->host_and_port,
				sizeof(connection->shared->host));
	}
	mongo_traffic_add(&transport->traffic, MONGO_COUNT_CONNECTIONS, 1);
}

/*
 * mongo_connection_open
 *		Opens, authenticates and leases a connection, which stays in the list until it is closed.
 *
 * With a replica set, waits up to server_selection_timeout_ms for a member that suits the read
 * preference: 'read_mode', or that of the server's options if 0.  Tries only 'once' if that is
 * true.  If the server has too many connections, calls close_idle(), which returns how many of
 * the session's are left.  Raises 08001, 08P01, 28P01, 53300, 57014, and what mongo_uri_create()
 * raises.
 */
MongoConnection *
mongo_connection_open(UserMapping *user, mongoc_read_mode_t read_mode, bool once,
					  dlist_head *list, int (*close_idle) (Oid serverid))
{
	MemoryContext context;
	MongoConnection *connection;

	mongo_driver_check();
	context = AllocSetContextCreate(CurrentMemoryContext, "mongo_fdw connection",
									ALLOCSET_SMALL_SIZES);
	connection = MemoryContextAllocZero(context, sizeof(MongoConnection));
	connection->context = context;
	connection->server_name = "";
	connection->serverid = user->serverid;
	connection->umid = user->umid;
	connection->server_type = "";
	connection->read_mode = read_mode;
	dlist_init(&connection->transport.streams);
	connection->server_hashvalue =
		GetSysCacheHashValue1(FOREIGNSERVEROID, ObjectIdGetDatum(user->serverid));
	connection->mapping_hashvalue =
		GetSysCacheHashValue1(USERMAPPINGOID, ObjectIdGetDatum(user->umid));
	MemoryContextSetParent(context, TopMemoryContext);
	connection->leases = 1;
	dlist_push_head(list, &connection->node);
	PG_TRY();
	{
		configure_and_connect(connection, user, once, close_idle);
	}
	PG_CATCH();
	{
		/* not closed before: the error's message uses strings of its context */
		mongo_connection_close(connection);
		PG_RE_THROW();
	}
	PG_END_TRY();

	return connection;
}

/*
 * mongo_connection_reconnect
 *		Closes the connection and connects to the current primary.  On failure, returns false with
 *		the reason in transport.failure.  Tries once; never raises.
 */
bool
mongo_connection_reconnect(MongoConnection *connection)
{
	MongoTransport *transport = &connection->transport;
	bson_error_t error = {0};

	mongo_transport_close(transport);
	connection->in_flight = 0;
	connection->abandoned.received = 0;
	connection->unanswered = 0;
	connection->broken = !mongo_connect_once(connection, connection->uri, true, true, &error);
	if (connection->broken)
	{
		strlcpy(transport->failure, error.message, sizeof(transport->failure));
		return false;
	}
	mongo_traffic_add(&transport->traffic, MONGO_COUNT_CONNECTIONS, 1);
	mongo_traffic_add(&transport->traffic, MONGO_COUNT_RECONNECTS, 1);
	return true;
}

/* --------------------------- Starting libmongoc --------------------------- */

/*
 * mongo_initialize_library
 *		Starts libmongoc, once in a process.
 */
void
mongo_initialize_library(void)
{
	static bool initialized = false;

	if (initialized)
		return;
	mongo_install_allocator();
	mongo_install_log_handler();
	mongoc_init();
	(void) mongoc_handshake_data_append("mongo_fdw", NULL, NULL);
	initialized = true;
}
