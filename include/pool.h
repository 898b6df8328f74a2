/*-------------------------------------------------------------------------
 *
 * pool.h
 *		The insides of the pool of clients: who has which, and who waits.
 *
 * Private to src/remote/client_pool.c and idle_clients.c.  What others may do
 * with it is in client_pool.h and turns.h.
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
	dlist_head	idle;			/* of MongoClient, the last used first */
	dlist_head	leased;			/* likewise, in no order */
	dlist_head	in_flight;		/* of MongoLease, the longest first */
	dlist_head	waiting;		/* of MongoLease, the first in turn first */
	dlist_head	readers;		/* of MongoLease with 'remote' set */
	dlist_head	orphans;		/* of RemoteCursor: to be killed, see kill_cursor() */
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
	const MongoTurns *turns;	/* NULL: an exclusive lease */
	void	   *reader;			/* what its functions are called with */
	dlist_node	node;
	LeasePlace	place;

	RemoteCursor *remote;		/* open on the server, or NULL */
	MongoClient *home;			/* where it was opened; NULL: closed since */
	dlist_node	reader_node;
};

/* All entries, of PoolEntry; NULL: none yet. */
extern HTAB *mongo_pool;

/*
 * mongo_idle_client_remove
 *		Take an idle client out of the pool and close it.  Never raises.
 */
extern void mongo_idle_client_remove(PoolEntry *entry, MongoClient *client);

/*
 * mongo_pool_kill_orphans
 *		Tell the client's server which of its cursors others had to leave open.
 */
extern void mongo_pool_kill_orphans(PoolEntry *entry, MongoClient *client);

/* ---- idle_clients.c ---- */

/*
 * mongo_idle_clients_note
 *		There may be something to close at the end of the transaction.
 */
extern void mongo_idle_clients_note(void);

/*
 * mongo_idle_clients_make_room
 *		Close all that nobody reads from, as there are too many open files.
 */
extern void mongo_idle_clients_make_room(void);

/*
 * mongo_idle_clients_initialize
 *		Once a process, before any other.
 */
extern void mongo_idle_clients_initialize(void);

#endif							/* MONGO_FDW_POOL_H */
