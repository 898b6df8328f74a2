/*-------------------------------------------------------------------------
 *
 * connect.c
 *		Making connections.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "storage/fd.h"
#include "utils/timestamp.h"

static void mongo_set_socket_options(pgsocket sock, int family,
									 const MongoTcpOptions *options);

/*-------------------------------------------------------------------------
 * The stream initiator: from a host to a connected stream, TLS on top.
 *
 * Called by libmongoc whenever it wants a connection, with libmongoc's frames
 * below: nothing here may raise.
 *-------------------------------------------------------------------------
 */

/* A failed connection attempt: errno and the address. */
static void
set_connect_error(bson_error_t *error, const char *host_and_port, int code)
{
	bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_CONNECT,
				   "could not connect to %s: %s", host_and_port,
				   code == ECANCELED ? "interrupted" : strerror(code));
}

/*
 * failed_stream
 *		Note why there is no connection; a stream that can only fail.
 */
static mongoc_stream_t *
failed_stream(MongoTransport *transport, const mongoc_host_list_t *host,
			  const bson_error_t *error)
{
	mongo_transport_note_failure(transport, error->message);
	return &mongo_stream_new(transport, PGINVALID_SOCKET, false,
							 host->host_and_port)->vtable;
}

/* Have a descriptor for a socket accounted for; else false with errno EMFILE. */
static bool
acquire_descriptor(void)
{
	if (!mongo_may_open_connection())
	{
		errno = EMFILE;
		return false;
	}
	return AcquireExternalFD();
}

/*
 * connect_address
 *		Connect to one address, waiting at most timeout_ms.
 *
 * Returns NULL with errno set on failure.
 */
static MongoStream *
connect_address(MongoTransport *transport, const struct sockaddr *address,
				socklen_t address_length, const char *host_and_port,
				long timeout_ms)
{
	MongoStream *stream;
	pgsocket	sock;
	bool		external_fd = acquire_descriptor();
	int			failure = 0;

	if (!external_fd)
	{
		transport->out_of_files = true;
		return NULL;			/* errno is EMFILE */
	}

	sock = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock == PGINVALID_SOCKET)
	{
		failure = errno;
		transport->out_of_files = failure == EMFILE || failure == ENFILE;
		ReleaseExternalFD();
		errno = failure;
		return NULL;
	}
	mongo_set_socket_options(sock, address->sa_family, &transport->tcp);

	stream = mongo_stream_new(transport, sock, external_fd, host_and_port);
	if (connect(sock, address, address_length) < 0)
	{
		failure = errno;
		if (failure == EINPROGRESS || failure == EINTR || failure == EAGAIN)
		{
			socklen_t	size = sizeof(failure);

			if (!mongo_stream_wait(stream, POLLOUT, timeout_ms))
				failure = errno;
			else if (getsockopt(sock, SOL_SOCKET, SO_ERROR, &failure, &size) < 0)
				failure = errno;
		}
	}
	if (failure != 0)
	{
		mongoc_stream_destroy(&stream->vtable);
		errno = failure;
		return NULL;
	}
	return stream;
}

/* Where another stream is connected to: no name is looked up. */
static MongoStream *
connect_peer(MongoTransport *transport, const mongoc_host_list_t *host,
			 bson_error_t *error)
{
	MongoStream *stream = connect_address(transport, (struct sockaddr *) &transport->peer,
										  transport->peer_length, host->host_and_port,
										  transport->connect_timeout_ms);

	if (stream == NULL)
		set_connect_error(error, host->host_and_port, errno);
	return stream;
}

static MongoStream *
connect_unix(MongoTransport *transport, const mongoc_host_list_t *host,
			 bson_error_t *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	MongoStream *stream = NULL;

	if (strlen(host->host) >= sizeof(address.sun_path))
		errno = ENAMETOOLONG;
	else
	{
		strcpy(address.sun_path, host->host);
		stream = connect_address(transport, (struct sockaddr *) &address,
								 sizeof(address), host->host_and_port,
								 transport->connect_timeout_ms);
	}
	if (stream == NULL)
		set_connect_error(error, host->host, errno);
	return stream;
}

/* Try each address of the host in turn, within one timeout for all. */
static MongoStream *
connect_tcp(MongoTransport *transport, const mongoc_host_list_t *host,
			bson_error_t *error)
{
	struct addrinfo *addresses;
	MongoStream *stream = NULL;
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												  transport->connect_timeout_ms);

	addresses = mongo_resolve_host(transport, host->host, host->port,
								   transport->connect_timeout_ms, error);
	if (addresses == NULL)
		return NULL;

	errno = EADDRNOTAVAIL;
	for (struct addrinfo *each = addresses;
		 each != NULL && stream == NULL && !transport->interrupted;
		 each = each->ai_next)
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
														   end);

		stream = connect_address(transport, each->ai_addr, each->ai_addrlen,
								 host->host_and_port, left);
	}
	if (stream == NULL)
		set_connect_error(error, host->host_and_port, errno);
	freeaddrinfo(addresses);
	return stream;
}

/*
 * add_tls
 *		TLS on top of 'stream', which belongs to it from then on.
 *
 * On failure the stream is gone, NULL is returned and *error set.
 */
static mongoc_stream_t *
add_tls(MongoTransport *transport, MongoStream *stream,
		const mongoc_host_list_t *host, bson_error_t *error)
{
	mongoc_stream_t *top;

	mongo_forget_driver_message();
	top = mongoc_stream_tls_new_with_hostname(&stream->vtable, host->host,
											  &transport->ssl_options, 1);
	if (top == NULL)
	{
		/* the driver tells its log alone which file it could not use */
		bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET,
					   "could not set up TLS%s%s",
					   *mongo_last_driver_message() ? ": " : "",
					   mongo_last_driver_message());
		mongoc_stream_destroy(&stream->vtable);
		return NULL;
	}

	stream->top = top;
	if (!mongoc_stream_tls_handshake_block(top, host->host,
										   transport->connect_timeout_ms,
										   error))
	{
		mongoc_stream_destroy(top);
		return NULL;
	}
	return top;
}

mongoc_stream_t *
mongo_stream_initiate(const mongoc_uri_t *uri pg_attribute_unused(),
					  const mongoc_host_list_t *host,
					  void *user_data, bson_error_t *error pg_attribute_unused())
{
	MongoTransport *transport = user_data;
	MongoStream *stream = NULL;
	mongoc_stream_t *top;
	bson_error_t failure = {0};

	/* libmongoc's own retry must not run what was cancelled once more */
	if (transport->interrupted || transport->closing)
		set_connect_error(&failure, host->host_and_port, ECANCELED);
	else if (transport->peer_length > 0)
		stream = connect_peer(transport, host, &failure);
	else if (host->family == AF_UNIX)
		stream = connect_unix(transport, host, &failure);
	else
		stream = connect_tcp(transport, host, &failure);

	if (stream != NULL && transport->use_tls)
		top = add_tls(transport, stream, host, &failure);
	else
		top = (mongoc_stream_t *) stream;

	if (top != NULL)
	{
		mongoc_stream_t *guard = mongo_guard_new(stream);

		if (guard != NULL)
			return guard;
		mongoc_stream_destroy(top);
	}
	return failed_stream(transport, host, &failure);
}

/*-------------------------------------------------------------------------
 * What a socket to MongoDB is told: when its other end counts as dead.
 *
 * Keepalive probes notice a server that died while its answer is waited for;
 * they are not sent while something is unacknowledged, which is what the user
 * timeout is for (RFC 5482, and Linux's tcp(7)).
 *-------------------------------------------------------------------------
 */

/* set_unless_zero: 0 leaves it to the operating system. */
static void
set_unless_zero(pgsocket sock, int name, int value)
{
	if (value != 0)
		(void) setsockopt(sock, IPPROTO_TCP, name, &value, sizeof(value));
}

/*
 * mongo_set_socket_options
 *		Send at once, probe the other end when idle, give up one that is silent.
 *
 * 'family' is that of the address; a Unix-domain socket needs none of this.
 * An option that the operating system does not know or take is passed over:
 * none is worth failing for.
 */
static void
mongo_set_socket_options(pgsocket sock, int family, const MongoTcpOptions *options)
{
	int			on = 1;

	if (family == AF_UNIX)
		return;
	set_unless_zero(sock, TCP_NODELAY, on);
	(void) setsockopt(sock, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
#ifdef TCP_KEEPIDLE
	set_unless_zero(sock, TCP_KEEPIDLE, options->keepalives_idle);
#endif
#ifdef TCP_KEEPINTVL
	set_unless_zero(sock, TCP_KEEPINTVL, options->keepalives_interval);
#endif
#ifdef TCP_KEEPCNT
	set_unless_zero(sock, TCP_KEEPCNT, options->keepalives_count);
#endif
#ifdef TCP_USER_TIMEOUT
	set_unless_zero(sock, TCP_USER_TIMEOUT, options->user_timeout);
#endif
}

/* --------------------------- Starting libmongoc --------------------------- */

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
