/*-------------------------------------------------------------------------
 *
 * client.h
 *		One libmongoc client with its authenticated connection.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CLIENT_H
#define MONGO_FDW_CLIENT_H

#include "compat.h"

#include "datatype/timestamp.h"
#include "foreign/foreign.h"
#include "lib/ilist.h"
#include "connection_limit.h"
#include "server_session.h"
#include "wire.h"

/* What libmongoc knows of the servers that a client talks to. */
typedef enum MongoDeployment
{
	MONGO_DEPLOYMENT_UNKNOWN,	/* no longer: it forgets after an error */
	MONGO_DEPLOYMENT_STANDALONE,
	MONGO_DEPLOYMENT_WITH_TRANSACTIONS
} MongoDeployment;

/* A cursor that a server holds open; malloc'd, all in one piece. */
typedef struct RemoteCursor
{
	dlist_node	node;			/* in the pool's list of orphans, if there */
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
	MemoryContext context;
	mongoc_client_t *client;
	MongoConnection connection;
	MongoRemoteCancel remote_cancel;
	MongoDeployment deployment;
	bool		servers_changed;	/* since 'deployment' was looked up */
	bool		retired;		/* its server or user mapping has changed */
	bool		keep;			/* option keep_connections */
	int			idle_timeout;	/* option of that name, in milliseconds; 0:
								 * none */
	int			async_connections;	/* likewise */
	int			max_connections;	/* likewise; 0: any number */
	MongoConnectionCount *counted;	/* among all sessions' connections, or
									 * NULL */
	mongoc_read_mode_t read_mode;	/* of mongo_client_connect() */
	Oid			serverid;
	const char *server_type;	/* as libmongoc calls it */
	TimestampTz connected_at;
	uint64		waited_before;	/* MONGO_COUNT_WAIT_US when libmongoc was
								 * asked */
	bool		in_transaction; /* of MongoDB's, that PostgreSQL's goes on
								 * with */
	MongoTraffic flushed;		/* of the transport's traffic, to shared
								 * memory */
	bool		has_session;	/* libmongoc may have one of the server's */

	/* for writes of our own (write_message.h) */
	MongoServerSession session;
	bool		takes_writes;	/* the connection leads to a primary, or one
								 * that does as such */
	bool		takes_transactions; /* the connection leads to a primary of a
									 * replica set */
	bool		retries_writes; /* the server recognizes a repetition, and
								 * retryWrites is not false */
	int			most_writes;	/* in a message: maxWriteBatchSize */
	int			longest_message;	/* maxMessageSizeBytes */
	TimestampTz idle_since;		/* 0: never used yet */
	uint32		server_hashvalue;	/* as syscache callbacks identify them */
	uint32		mapping_hashvalue;
	int			cursors;		/* that were opened on it and are being read */
} MongoClient;

/* The client that a connection is part of. */
static inline MongoClient *
mongo_client_of(MongoConnection *connection)
{
	return (MongoClient *) ((char *) connection - offsetof(MongoClient, connection));
}

/*
 * mongo_client_connect
 *		A new client, connected and authenticated.
 *
 * Raises 08001, 08P01, 28P01, 57014.  With a replica set, waits up to
 * server_selection_timeout_ms for a member that suits the read preference:
 * 'read_mode', or what the server's options say (0).
 */
extern MongoClient *mongo_client_connect(UserMapping *user, mongoc_read_mode_t read_mode);

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
 * mongo_client_is_on
 *		Is it connected to that server?
 */
extern bool mongo_client_is_on(const MongoClient *client,
							   const char *host_and_port);

/*
 * mongo_client_describe_cursor
 *		A description, to be freed by bson_free(), of the cursor that the client's
 *		server holds open.  The client must be connected.
 */
extern RemoteCursor *mongo_client_describe_cursor(const MongoClient *client,
												  int64 cursor_id,
												  const char *database,
												  const char *collection);

/*
 * mongo_client_kill_command
 *		The command that closes a cursor.
 */
extern void mongo_client_kill_command(const RemoteCursor *cursor, bson_t *command);

/*
 * mongo_client_free_session
 *		Give libmongoc back the session that a write was armed with, if any.
 */
extern void mongo_client_free_session(MongoClient *client);

/*
 * mongo_client_kill_cursor
 *		Tell the server to close a cursor of its own; false unless the client is
 *		on that server and clean, and stays so.
 *
 * Neither waits nor raises, nor frees the cursor.
 */
extern bool mongo_client_kill_cursor(MongoClient *client,
									 const RemoteCursor *cursor);

/*
 * mongo_client_has_lost_connection
 *		Can be seen, without sending anything, that a server has closed one?
 */
extern bool mongo_client_has_lost_connection(const MongoClient *client);

/*
 * mongo_client_end_sessions
 *		Tell the servers that the client's session, if it has used one, is over.
 *
 * MongoDB would remember it for half an hour.  Neither waits nor raises.
 */
extern void mongo_client_end_sessions(MongoClient *client);

/*
 * mongo_client_close
 *		End its session, close the connections and free the client.  Neither
 *		waits nor raises.
 */
extern void mongo_client_close(MongoClient *client);

#endif							/* MONGO_FDW_CLIENT_H */
