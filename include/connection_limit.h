/*-------------------------------------------------------------------------
 *
 * connection_limit.h
 *		How many connections all sessions together have to a server.
 *
 * With the library in shared_preload_libraries; otherwise nothing is counted and
 * there is no limit.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CONNECTION_LIMIT_H
#define MONGO_FDW_CONNECTION_LIMIT_H

#include "compat.h"

/* A server's count in shared memory; it stays where it is. */
typedef struct MongoConnectionCount MongoConnectionCount;

/*
 * mongo_connection_limit_initialize
 *		Ask for the shared memory; from _PG_init(), in
 *		shared_preload_libraries alone.
 */
extern void mongo_connection_limit_initialize(void);

/*
 * mongo_connection_limit_has_room
 *		May one more be made now?  limit 0: any number.
 */
extern bool mongo_connection_limit_has_room(Oid serverid, int limit);

/*
 * mongo_connection_limit_enter
 *		Count one more connection, to be given back by mongo_connection_limit_leave() or
 *		the end of the process.
 *
 * Waits for others to be closed, up to so many milliseconds, then raises 53300; 57014
 * when cancelled.  NULL without shared memory.
 */
extern MongoConnectionCount *mongo_connection_limit_enter(Oid serverid,
														  const char *server_name,
														  int limit, int timeout_ms);

/*
 * mongo_connection_limit_leave
 *		Never raises; NULL is none.
 */
extern void mongo_connection_limit_leave(MongoConnectionCount *count);

#endif							/* MONGO_FDW_CONNECTION_LIMIT_H */
