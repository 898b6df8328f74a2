/*-------------------------------------------------------------------------
 *
 * pool.c
 *		The clients of this backend, by user mapping.
 *
 * Invariants: a client is in its entry's list of idle ones, and then its
 * connection is authenticated with nothing in flight, or in that of leased ones
 * and held by exactly one lease.  One whose server or user mapping has changed
 * is "retired": it serves only the cursors that were opened on it, and is closed
 * when there are none.  Closing neither waits for MongoDB nor raises, so that it
 * can be done from memory context callbacks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pool.h"

#include "library.h"
#include "utils/inval.h"
#include "utils/syscache.h"

HTAB	   *mongo_pool = NULL;

bool		mongo_pool_needs_sweep = false;

/*
 * retire_if_meant: those of the server or user mapping with the hash value, all for 0,
 * are used no more.
 */
static void
retire_if_meant(const dlist_head *clients, int cacheid, uint32 hashvalue)
{
	dlist_iter	iter;

	dlist_foreach(iter, unconstify(dlist_head *, clients))
	{
		MongoClient *client = dlist_container(MongoClient, node, iter.cur);

		if (hashvalue != 0 &&
			!(cacheid == FOREIGNSERVEROID && client->server_hashvalue == hashvalue) &&
			!(cacheid == USERMAPPINGOID && client->mapping_hashvalue == hashvalue))
			continue;
		client->retired = true;
		mongo_pool_needs_sweep = true;
	}
}

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

	hash_seq_init(&scan, mongo_pool);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		retire_if_meant(&entry->idle, cacheid, hashvalue);
		retire_if_meant(&entry->leased, cacheid, hashvalue);
	}
}

void
mongo_pool_initialize(void)
{
	HASHCTL		control = {
		.keysize = sizeof(Oid),
		.entrysize = sizeof(PoolEntry),
	};

	mongo_initialize_library();
	mongo_pool = hash_create("mongo_fdw clients", 8, &control,
							 HASH_ELEM | HASH_BLOBS);
	CacheRegisterSyscacheCallback(FOREIGNSERVEROID, retire_clients, (Datum) 0);
	CacheRegisterSyscacheCallback(USERMAPPINGOID, retire_clients, (Datum) 0);
}

PoolEntry *
mongo_pool_entry(Oid umid)
{
	bool		found;
	PoolEntry  *entry = hash_search(mongo_pool, &umid, HASH_ENTER, &found);

	if (!found)
	{
		entry->limit = 1;
		entry->max_connections = 0;
		entry->serverid = InvalidOid;
		entry->userid = InvalidOid;
		entry->activity = NULL;
		dlist_init(&entry->idle);
		dlist_init(&entry->leased);
		dlist_init(&entry->in_flight);
		dlist_init(&entry->waiting);
		dlist_init(&entry->readers);
		dlist_init(&entry->orphans);
	}
	return entry;
}

void
mongo_pool_close(PoolEntry *entry, MongoClient *client)
{
	dlist_iter	iter;

	dlist_foreach(iter, &entry->readers)
	{
		MongoLease *lease = dlist_container(MongoLease, reader_node, iter.cur);

		if (lease->home == client)
			lease->home = NULL;
	}
	mongo_client_close(client);
}

void
mongo_pool_remove_idle(PoolEntry *entry, MongoClient *client)
{
	dlist_delete(&client->node);
	mongo_pool_close(entry, client);
}

void
mongo_pool_kill_orphans(PoolEntry *entry, MongoClient *client)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &entry->orphans)
	{
		RemoteCursor *cursor = dlist_container(RemoteCursor, node, iter.cur);

		if (!mongo_client_kill_cursor(client, cursor))
			continue;
		dlist_delete(&cursor->node);
		bson_free(cursor);
	}
}
