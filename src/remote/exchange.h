/*-------------------------------------------------------------------------
 *
 * exchange.h
 *		One message of our own through the guard, and its reply.
 *
 * For what libmongoc is to know nothing of, but goes on from: the guard (guard.h)
 * counts and checks as it does for libmongoc, and answers in the server's place
 * where the wait is broken off.  So nothing raises here, and the caller asks
 * mongo_lease_check_interrupts() when all that is known has been noted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_EXCHANGE_H
#define MONGO_FDW_EXCHANGE_H

#include "compat.h"

#include "wire.h"

/*
 * mongo_exchange_send
 *		Send what mongo_wire_prepare() has made; true when it has left whole.
 *
 * To be followed by mongo_exchange_receive().
 */
extern bool mongo_exchange_send(MongoConnection *connection, mongoc_iovec_t *iov,
								size_t iovcnt);

/*
 * mongo_exchange_receive
 *		Wait for the reply to what has been sent: *document, a view of memory in the
 *		current context.
 *
 * False where none has come; the connection is broken then.
 */
extern bool mongo_exchange_receive(MongoConnection *connection, bool sent,
								   bson_t *document);

/*
 * mongo_exchange_has_failed
 *		Was it not answered, or by {ok: 0}?  Then *error says why, as libmongoc does.
 */
extern bool mongo_exchange_has_failed(const MongoConnection *connection, bool answered,
									  const bson_t *document, bson_error_t *error);

#endif							/* MONGO_FDW_EXCHANGE_H */
