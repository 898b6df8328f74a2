/*-------------------------------------------------------------------------
 *
 * socket_options.c
 *		What a socket to MongoDB is told: when its other end counts as dead.
 *
 * Keepalive probes notice a server that died while its answer is waited for;
 * they are not sent while something is unacknowledged, which is what the user
 * timeout is for (RFC 5482, and Linux's tcp(7)).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "socket_options.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* set_unless_zero: 0 leaves it to the operating system. */
static void
set_unless_zero(pgsocket sock, int name, int value)
{
	if (value != 0)
		(void) setsockopt(sock, IPPROTO_TCP, name, &value, sizeof(value));
}

void
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
