/*-------------------------------------------------------------------------
 *
 * client.h
 *		One libmongoc client with its authenticated connection.
 *
 * Private to src/remote: others lease clients from client_pool.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CLIENT_H
#define MONGO_FDW_CLIENT_H

#include "compat.h"

#include "foreign/foreign.h"
#include "lib/ilist.h"
#include "wire.h"

/* The clients of one user mapping: client_pool.c's. */
typedef struct PoolEntry PoolEntry;

/* A cursor that a server holds open; malloc'd, all in one piece. */
typedef struct RemoteCursor
{
	dlist_node	node;			/* in the pool's list of orphans */
	int64		id;
	const char *host_and_port;
	const char *database;
	const char *collection;
} RemoteCursor;

/*
 * malloc'd as libmongoc's own are.  The strings that connection.transport
 * points to belong to 'context', a child of TopMemoryContext that dies with
 * the client.
 */
typedef struct MongoClient
{
	dlist_node	node;			/* in the pool's idle or leased list */
	PoolEntry  *entry;			/* where it goes when it is given back */
	MemoryContext context;
	mongoc_client_t *client;
	uint32		server_id;		/* libmongoc's, of the server selected */
	MongoConnection connection;
	MongoDeployment deployment;
	bool		servers_changed;	/* since 'deployment' was looked up */
	bool		retired;		/* its server or user mapping has changed */
	bool		keep;			/* option keep_connections */
	uint32		server_hashvalue;	/* as syscache callbacks identify them */
	uint32		mapping_hashvalue;
	RemoteCursor *cursor;		/* held open for the lease, or NULL: see wire.h */
} MongoClient;

/*
 * mongo_client_initialize_library
 *		Start libmongoc, unless this process or its postmaster has done so.
 */
extern void mongo_client_initialize_library(void);

/*
 * mongo_client_connect
 *		A new client, connected and authenticated.
 *
 * Raises 08001, 28P01, 57014.  With a replica set, waits up to
 * server_selection_timeout_ms for a member that suits the read preference.
 */
extern MongoClient *mongo_client_connect(UserMapping *user);

/*
 * mongo_client_deployment
 *		Do the servers have transactions?  Sends nothing.
 *
 * Looked up when libmongoc has said that a server is not what it was: it makes
 * and parses a copy of what each has said of itself, for each question.
 */
extern MongoDeployment mongo_client_deployment(MongoClient *client);

/*
 * mongo_client_is_clean
 *		May the client be used for something else?
 */
extern bool mongo_client_is_clean(const MongoClient *client);

/*
 * mongo_client_note_cursor
 *		Remember the cursor that the server holds open for the lease; id 0: none.
 */
extern void mongo_client_note_cursor(MongoClient *client, int64 cursor_id,
									 const char *database,
									 const char *collection);

/*
 * mongo_client_kill_cursor
 *		Tell the server to close a cursor of its own, if the client is clean.
 *
 * Neither waits nor raises, nor frees the cursor.
 */
extern void mongo_client_kill_cursor(MongoClient *client,
									 const RemoteCursor *cursor);

/*
 * mongo_client_close
 *		Close the connection and free the client.  Sends nothing, never raises.
 */
extern void mongo_client_close(MongoClient *client);

#endif							/* MONGO_FDW_CLIENT_H */
