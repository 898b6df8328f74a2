/*-------------------------------------------------------------------------
 *
 * connect.h
 *		Connecting a socket in libmongoc's stead.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CONNECT_H
#define MONGO_FDW_CONNECT_H

#include "compat.h"

/*
 * mongo_stream_initiate
 *		mongoc_stream_initiator_t: connect to 'host', with TLS if so configured.
 *
 * 'user_data' is the client's MongoTransport.  When that fails, takes longer
 * than connect_timeout_ms, or the transport has been interrupted, the reason
 * is appended to transport->failure and the result is a stream without a
 * socket, whose every operation fails.  Never NULL: libmongoc (seen in 1.23.1)
 * locks itself out for ever when the initiator fails for a replica set member
 * that it learns of while it processes another member's answer.
 */
extern mongoc_stream_t *mongo_stream_initiate(const mongoc_uri_t *uri,
											  const mongoc_host_list_t *host,
											  void *user_data,
											  bson_error_t *error);

#endif							/* MONGO_FDW_CONNECT_H */
