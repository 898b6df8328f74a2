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

/*
 * malloc'd as libmongoc's own are.  The strings that connection.transport
 * points to belong to 'context', a child of TopMemoryContext that dies with
 * the client.
 */
typedef struct MongoClient
{
	dlist_node	node;			/* in the pool's idle or leased list */
	dlist_head *idle_list;		/* where it goes when it is given back */
	MemoryContext context;
	mongoc_client_t *client;
	MongoConnection connection;
	bool		retired;		/* its server or user mapping has changed */
	bool		keep;			/* option keep_connections */
	uint32		server_hashvalue;	/* as syscache callbacks identify them */
	uint32		mapping_hashvalue;

	/* the cursor that the server holds open for the lease, see wire.h */
	int64		cursor_id;		/* 0: none */
	char	   *cursor_database;	/* malloc'd */
	char	   *cursor_collection;	/* malloc'd */
} MongoClient;

/*
 * mongo_client_initialize_library
 *		Start libmongoc; once per process.
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
 * mongo_client_is_clean
 *		May the client be used for something else?
 */
extern bool mongo_client_is_clean(const MongoClient *client);

/*
 * mongo_client_note_cursor, mongo_client_kill_cursor
 *		Remember a cursor open on the server; tell the server to close it.
 *
 * Neither waits nor raises.  A cursor with a request in flight cannot be
 * killed on this connection: the client must be closed, and the server then
 * ends the operation by itself.
 */
extern void mongo_client_note_cursor(MongoClient *client, int64 cursor_id,
									 const char *database,
									 const char *collection);
extern void mongo_client_kill_cursor(MongoClient *client);

/*
 * mongo_client_close
 *		Close the connection and free the client.  Sends nothing, never raises.
 */
extern void mongo_client_close(MongoClient *client);

#endif							/* MONGO_FDW_CLIENT_H */
