/*-------------------------------------------------------------------------
 *
 * resolve.h
 *		From a host's name to its addresses, with a limit of time.
 *
 * getaddrinfo() and its like block, and nothing interrupts them; a resolver
 * that does not answer holds them for ten seconds or more.  So a thread of our
 * own calls them, which knows nothing of PostgreSQL, and the backend waits for
 * it as it waits for a socket.  A look-up that is given up goes on, and the next one for
 * the same name waits for it.
 *
 * Numeric addresses take no thread.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_RESOLVE_H
#define MONGO_FDW_RESOLVE_H

#include "compat.h"

#include "stream.h"

#include <netdb.h>

/*
 * mongo_resolve_host
 *		The addresses of a host, for stream sockets; freeaddrinfo() is the
 *		caller's.
 *
 * NULL with *error set when there are none, after timeout_ms, and when
 * interrupted or out of memory (see mongo_transport_raise).  Never raises.
 */
extern struct addrinfo *mongo_resolve_host(MongoTransport *transport,
										   const char *host, uint16 port,
										   long timeout_ms, bson_error_t *error);

/*
 * mongo_resolve_service
 *		Does the resolver answer for the SRV and TXT records that a URI of
 *		"mongodb+srv" needs?  True for other URIs.
 *
 * libmongoc asks for them itself, blocking; this is to know that it will be
 * answered, and what the resolver has been asked a moment ago it mostly knows.
 * Fails as mongo_resolve_host() does.
 */
extern bool mongo_resolve_service(MongoTransport *transport,
								  const mongoc_uri_t *uri, long timeout_ms,
								  bson_error_t *error);

#endif							/* MONGO_FDW_RESOLVE_H */
