/*-------------------------------------------------------------------------
 *
 * connections.h
 *		The connections that this session has, for who asks in SQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CONNECTIONS_H
#define MONGO_FDW_CONNECTIONS_H

#include "activity.h"

#include "nodes/pg_list.h"

/* One of them; strings are in the current memory context. */
typedef struct MongoConnectionInfo
{
	Oid			serverid;		/* which may have been dropped since */
	Oid			mapping;
	const char *host;			/* with port, or the path of a socket; NULL:
								 * lost */
	const char *role;			/* as libmongoc calls it, such as RSPrimary */
	bool		is_active;		/* something holds it */
	bool		has_cursor;		/* nothing does, but a cursor is open there */
	bool		is_valid;		/* its server and user mapping are as they
								 * were */
	bool		in_transaction; /* of MongoDB's */
	TimestampTz connected_at;
	TimestampTz idle_since;		/* 0: is_active */
	MongoTraffic traffic;
	const char *compressor;		/* NULL: none */
	bool		has_tls;
} MongoConnectionInfo;

/*
 * mongo_connections
 *		A list of MongoConnectionInfo *.
 */
extern List *mongo_connections(void);

/*
 * mongo_connections_close
 *		Close those to a server, or all (InvalidOid); was there one to close?
 *
 * What is in use stays, with a WARNING for each server.
 */
extern bool mongo_connections_close(Oid serverid);

#endif							/* MONGO_FDW_CONNECTIONS_H */
