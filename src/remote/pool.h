/*-------------------------------------------------------------------------
 *
 * pool.h
 *		The clients of this backend, by user mapping: who has which, who waits.
 *
 * For lease.c, turns.c and idle_clients.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_POOL_H
#define MONGO_FDW_POOL_H

#include "compat.h"

#include "client.h"
#include "turns.h"
#include "utils/hsearch.h"

/* The clients of one user mapping; lives as long as the process. */
typedef struct PoolEntry
{
	Oid			umid;			/* hash key */
	int			limit;			/* option async_connections */
	int			max_connections;	/* likewise max_connections */
	Oid			serverid;
	Oid			userid;			/* whose row 'activity' is */
	MongoActivity *activity;	/* that of server and user, or NULL */
	dlist_head	idle;			/* of MongoClient, the last used first */
	dlist_head	leased;			/* likewise, in no order */
	dlist_head	in_flight;		/* of MongoLease, the longest first */
	dlist_head	waiting;		/* of MongoLease, the first in turn first */
	dlist_head	readers;		/* of MongoLease with 'remote' set */
	dlist_head	orphans;		/* of RemoteCursor: to be killed, see
								 * kill_cursor() */
} PoolEntry;

/* Which of its entry's lists a lease is in by 'node'. */
typedef enum LeasePlace
{
	LEASE_IN_NO_LIST,
	LEASE_IN_FLIGHT,
	LEASE_WAITING
} LeasePlace;

/* Lives in its owner's context, whose reset ends it; ended: entry is NULL. */
struct MongoLease
{
	MemoryContextCallback callback;
	PoolEntry  *entry;
	MongoClient *client;		/* NULL: none at present */
	MongoActivity *activity;	/* whose traffic it is; or NULL */
	mongoc_read_mode_t read_mode;	/* of its clients; 0: the server's */
	const MongoTurns *turns;	/* NULL: an exclusive lease */
	void	   *reader;			/* what its functions are called with */
	dlist_node	node;
	LeasePlace	place;

	RemoteCursor *remote;		/* open on the server, or NULL */
	MongoClient *home;			/* where it was opened; NULL: closed since */
	dlist_node	reader_node;
};

/* All entries, of PoolEntry; NULL: not initialized yet. */
extern HTAB *mongo_pool;

/* There may be a client to close: the end of the transaction looks for it. */
extern bool mongo_pool_needs_sweep;

/*
 * mongo_pool_initialize
 *		Once a process, before any other.
 */
extern void mongo_pool_initialize(void);

/*
 * mongo_pool_entry
 *		That of a user mapping; a new one if need be.
 */
extern PoolEntry *mongo_pool_entry(Oid umid);

/*
 * mongo_pool_close
 *		Close a client that is in no list; cursors opened on it have no home then.
 *		Never raises.
 *
 * mongo_pool_remove_idle
 *		The same for one in the list of idle ones.
 */
extern void mongo_pool_close(PoolEntry *entry, MongoClient *client);
extern void mongo_pool_remove_idle(PoolEntry *entry, MongoClient *client);

/*
 * mongo_pool_kill_orphans
 *		Tell the client's server which of its cursors others had to leave open.
 */
extern void mongo_pool_kill_orphans(PoolEntry *entry, MongoClient *client);

#endif							/* MONGO_FDW_POOL_H */
