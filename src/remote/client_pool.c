/*-------------------------------------------------------------------------
 *
 * client_pool.c
 *		Clients to MongoDB, pooled per backend and user mapping.
 *
 * Invariants: a client is either idle, and then its connection is authenticated
 * with nothing in flight, or leased by exactly one lease.  One whose server or
 * user mapping has changed is "retired": never leased again, closed as soon as
 * it is idle.  Closing sends nothing to MongoDB and never raises, so that it
 * can be done from memory context callbacks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "client_pool.h"

#include "access/xact.h"
#include "client.h"
#include "remote_error.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "wire.h"

/* The clients of one user mapping. */
struct PoolEntry
{
	Oid			umid;			/* hash key */
	dlist_head	idle;			/* of MongoClient, the last used first */
	dlist_head	orphans;		/* of RemoteCursor: to be killed, see give_back() */
};

/*
 * A lease lives in its owner's context, whose reset gives it back; a lease
 * given back earlier has client NULL.
 */
struct MongoLease
{
	MemoryContextCallback callback;
	MongoClient *client;
};

static HTAB *pool = NULL;
static dlist_head leased = DLIST_STATIC_INIT(leased);

/* Some idle client must be closed: the next transaction end looks for it. */
static bool sweep_needed = false;

/*
 * retire_clients
 *		Syscache callback: a foreign server or user mapping has changed.
 *
 * May be called anywhere, so it only marks; hashvalue 0 means all.
 */
static void
retire_clients(Datum arg pg_attribute_unused(), int cacheid, uint32 hashvalue)
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;
	dlist_iter	iter;

#define retire_if_meant(client) \
	if (hashvalue == 0 || \
		(cacheid == FOREIGNSERVEROID && (client)->server_hashvalue == hashvalue) || \
		(cacheid == USERMAPPINGOID && (client)->mapping_hashvalue == hashvalue)) \
		(client)->retired = sweep_needed = true

	hash_seq_init(&scan, pool);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		dlist_foreach(iter, &entry->idle)
		{
			MongoClient *client = dlist_container(MongoClient, node, iter.cur);

			retire_if_meant(client);
		}
	}
	dlist_foreach(iter, &leased)
	{
		MongoClient *client = dlist_container(MongoClient, node, iter.cur);

		retire_if_meant(client);
	}
#undef retire_if_meant
}

/* Close the idle clients that are not to be kept over a transaction's end. */
static void
close_unwanted_clients(XactEvent event, void *arg pg_attribute_unused())
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;
	dlist_mutable_iter iter;

	if (!sweep_needed ||
		(event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT &&
		 event != XACT_EVENT_PREPARE && event != XACT_EVENT_PARALLEL_COMMIT &&
		 event != XACT_EVENT_PARALLEL_ABORT))
		return;

	sweep_needed = false;
	hash_seq_init(&scan, pool);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		dlist_foreach_modify(iter, &entry->idle)
		{
			MongoClient *client = dlist_container(MongoClient, node, iter.cur);

			if (client->retired || !client->keep)
			{
				dlist_delete(&client->node);
				mongo_client_close(client);
			}
		}
	}
}

static void
initialize_pool(void)
{
	HASHCTL		control = {
		.keysize = sizeof(Oid),
		.entrysize = sizeof(PoolEntry),
	};

	mongo_client_initialize_library();
	pool = hash_create("mongo_fdw clients", 8, &control, HASH_ELEM | HASH_BLOBS);
	CacheRegisterSyscacheCallback(FOREIGNSERVEROID, retire_clients, (Datum) 0);
	CacheRegisterSyscacheCallback(USERMAPPINGOID, retire_clients, (Datum) 0);
	RegisterXactCallback(close_unwanted_clients, NULL);
}

static PoolEntry *
pool_entry(Oid umid)
{
	bool		found;
	PoolEntry  *entry = hash_search(pool, &umid, HASH_ENTER, &found);

	if (!found)
	{
		dlist_init(&entry->idle);
		dlist_init(&entry->orphans);
	}
	return entry;
}

/* An idle client that is still good, taken off the list; else NULL. */
static MongoClient *
take_idle(PoolEntry *entry)
{
	while (!dlist_is_empty(&entry->idle))
	{
		MongoClient *client = dlist_container(MongoClient, node,
											  dlist_pop_head_node(&entry->idle));

		if (!client->retired && client->connection.transport.data_stream != NULL)
			return client;
		mongo_client_close(client);
	}
	return NULL;
}

/*
 * start_lease
 *		Hand a client to a lease.
 *
 * It is told first to close what earlier ones had to leave open on its server.
 */
static void
start_lease(MongoLease *lease, PoolEntry *entry, MongoClient *client)
{
	dlist_mutable_iter iter;

	client->entry = entry;
	lease->client = client;
	dlist_push_head(&leased, &client->node);

	dlist_foreach_modify(iter, &entry->orphans)
	{
		RemoteCursor *cursor = dlist_container(RemoteCursor, node, iter.cur);

		dlist_delete(&cursor->node);
		mongo_client_kill_cursor(client, cursor);
		bson_free(cursor);
	}
}

/*
 * give_back
 *		End a lease: back to the pool when the connection is clean, else closed.
 *
 * A cursor still open on the server is killed; when that cannot be done on
 * this connection, because a getMore is in flight, then by the next lease.
 * Should there be none, MongoDB closes it by itself after 10 minutes.  Also the memory context callback; never raises.
 */
static void
give_back(void *arg)
{
	MongoLease *lease = arg;
	MongoClient *client = lease->client;

	if (client == NULL)
		return;
	lease->client = NULL;
	dlist_delete(&client->node);

	if (client->cursor != NULL && mongo_client_is_clean(client))
	{
		mongo_client_kill_cursor(client, client->cursor);
		mongo_client_note_cursor(client, 0, NULL, NULL);
	}
	if (client->retired || !mongo_client_is_clean(client))
	{
		if (client->cursor != NULL && !client->retired)
			dlist_push_tail(&client->entry->orphans, &client->cursor->node);
		client->cursor = NULL;
		mongo_client_close(client);
		return;
	}
	if (!client->keep)
		sweep_needed = true;
	dlist_push_head(&client->entry->idle, &client->node);
}

MongoLease *
mongo_lease_acquire(MemoryContext owner, UserMapping *user)
{
	MongoLease *lease = MemoryContextAllocZero(owner, sizeof(MongoLease));
	PoolEntry  *entry;
	MongoClient *client;

	if (pool == NULL)
		initialize_pool();

	lease->callback.func = give_back;
	lease->callback.arg = lease;
	MemoryContextRegisterResetCallback(owner, &lease->callback);

	entry = pool_entry(user->umid);
	client = take_idle(entry);
	if (client == NULL)
		client = mongo_client_connect(user);
	start_lease(lease, entry, client);
	return lease;
}

void
mongo_lease_release(MongoLease *lease)
{
	give_back(lease);
}

void
mongo_lease_renew(MongoLease *lease, UserMapping *user)
{
	PoolEntry  *entry = pool_entry(user->umid);
	MongoClient *client = lease->client;

	client->connection.broken = true;
	give_back(lease);

	/* what broke one connection has most likely broken the idle ones too */
	while (!dlist_is_empty(&entry->idle))
		mongo_client_close(dlist_container(MongoClient, node,
										   dlist_pop_head_node(&entry->idle)));

	start_lease(lease, entry, mongo_client_connect(user));
}

mongoc_client_t *
mongo_lease_client(MongoLease *lease)
{
	return lease->client->client;
}

MongoDeployment
mongo_lease_deployment(MongoLease *lease)
{
	return mongo_client_deployment(lease->client);
}

void
mongo_lease_check_interrupts(MongoLease *lease)
{
	mongo_transport_raise(&lease->client->connection.transport);
}

void
mongo_lease_resume(MongoLease *lease)
{
	lease->client->connection.transport.interrupted = false;
}

void
mongo_lease_limit_waits(MongoLease *lease, int milliseconds)
{
	lease->client->connection.transport.wait_limit_ms = milliseconds;
}

MongoConnection *
mongo_lease_connection(MongoLease *lease)
{
	return &lease->client->connection;
}

void
mongo_lease_note_cursor(MongoLease *lease, int64 cursor_id,
						const char *database, const char *collection)
{
	mongo_client_note_cursor(lease->client, cursor_id, database, collection);
}
