/*-------------------------------------------------------------------------
 *
 * client_pool.c
 *		Clients to MongoDB, pooled per backend and user mapping.
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

#include "client_pool.h"

#include "catalog/pg_foreign_server.h"
#include "driver_memory.h"
#include "pool.h"
#include "remote_error.h"
#include "stream.h"
#include "transaction_end.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "wire.h"

/* A client used so recently is not asked whether its connection is open. */
#define RECENTLY_USED_MS	100

HTAB	   *mongo_pool = NULL;

/* ------------------------------- the pool ---------------------------------- */

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
		mongo_idle_clients_note();
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

static void
initialize_pool(void)
{
	HASHCTL		control = {
		.keysize = sizeof(Oid),
		.entrysize = sizeof(PoolEntry),
	};

	/* once the pool is there, nothing more fails for want of memory */
	mongo_client_initialize_library();
	mongo_watch_transactions();
	mongo_pool = hash_create("mongo_fdw clients", 8, &control,
							 HASH_ELEM | HASH_BLOBS);
	CacheRegisterSyscacheCallback(FOREIGNSERVEROID, retire_clients, (Datum) 0);
	CacheRegisterSyscacheCallback(USERMAPPINGOID, retire_clients, (Datum) 0);
	mongo_idle_clients_initialize();
}

static PoolEntry *
pool_entry(Oid umid)
{
	bool		found;
	PoolEntry  *entry = hash_search(mongo_pool, &umid, HASH_ENTER, &found);

	if (!found)
	{
		entry->limit = 1;
		dlist_init(&entry->idle);
		dlist_init(&entry->leased);
		dlist_init(&entry->in_flight);
		dlist_init(&entry->waiting);
		dlist_init(&entry->readers);
		dlist_init(&entry->orphans);
	}
	return entry;
}

/* Close a client that is in no list; cursors opened on it have no home then. */
static void
close_client(PoolEntry *entry, MongoClient *client)
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
mongo_idle_client_remove(PoolEntry *entry, MongoClient *client)
{
	dlist_delete(&client->node);
	close_client(entry, client);
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

/* ------------------------- which client a lease gets ------------------------ */

/*
 * suits
 *		May this client, which is idle or can be made so, send what the lease has?
 */
static bool
suits(const MongoLease *lease, const MongoClient *client)
{
	if (lease->remote != NULL)
		return client == lease->home ||
			(mongo_wire_cursors_move && !client->retired &&
			 mongo_client_is_on(client, lease->remote->host_and_port));

	/* what may be held for long must not be a cursor's only way */
	return !client->retired && (lease->turns != NULL || client->cursors == 0);
}

/* find_idle: NULL when there is none; those that have broken are closed. */
static MongoClient *
find_idle(MongoLease *lease)
{
	PoolEntry  *entry = lease->entry;
	MongoClient *found = NULL;
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &entry->idle)
	{
		MongoClient *client = dlist_container(MongoClient, node, iter.cur);

		if (!mongo_client_is_clean(client))
			mongo_idle_client_remove(entry, client);
		else if (suits(lease, client) && (found == NULL || client == lease->home))
		{
			found = client;
			if (lease->home == NULL || client == lease->home)
				break;
		}
	}
	return found;
}

/*
 * find_in_flight
 *		Whose answer has been due for the longest time; for scans alone, as with
 *		what has been answered there often is a cursor.
 */
static MongoLease *
find_in_flight(const MongoLease *lease)
{
	dlist_iter	iter;

	if (lease->turns == NULL)
		return NULL;
	dlist_foreach(iter, &lease->entry->in_flight)
	{
		MongoLease *other = dlist_container(MongoLease, node, iter.cur);

		if (suits(lease, other->client))
			return other;
	}
	return NULL;
}

static int
count_clients(const dlist_head *clients)
{
	int			count = 0;
	dlist_iter	iter;

	dlist_foreach(iter, unconstify(dlist_head *, clients))
	{
		if (!dlist_container(MongoClient, node, iter.cur)->retired)
			count++;
	}
	return count;
}

/*
 * may_connect
 *		Is one more connection wanted for the sake of doing things at once?
 */
static bool
may_connect(const MongoLease *lease)
{
	const PoolEntry *entry = lease->entry;

	return count_clients(&entry->idle) + count_clients(&entry->leased) < entry->limit &&
		(lease->remote == NULL || mongo_wire_cursors_move) && mongo_may_open_connection();
}

/* hold: the client, which is in no list, is told what others had to leave open. */
static void
hold(MongoLease *lease, MongoClient *client)
{
	lease->client = client;
	dlist_push_head(&lease->entry->leased, &client->node);
	mongo_pool_kill_orphans(lease->entry, client);
}

static void
connect_client(MongoLease *lease, UserMapping *user)
{
	MongoClient *client;

	if (!mongo_may_open_connection())
		mongo_idle_clients_make_room();
	client = mongo_client_connect(user);
	lease->entry->limit = client->async_connections;
	hold(lease, client);
}

/* ------------------------------ taking turns ------------------------------- */

static void
leave_list(MongoLease *lease)
{
	if (lease->place != LEASE_IN_NO_LIST)
		dlist_delete(&lease->node);
	lease->place = LEASE_IN_NO_LIST;
}

/* Those who have begun first: what they hold on the server is finished sooner. */
static void
wait_for_turn(MongoLease *lease)
{
	if (lease->place == LEASE_WAITING)
		return;
	if (lease->remote != NULL)
		dlist_push_head(&lease->entry->waiting, &lease->node);
	else
		dlist_push_tail(&lease->entry->waiting, &lease->node);
	lease->place = LEASE_WAITING;
}

/*
 * connect_for_cursor
 *		A new connection for a cursor: of use only to the server that has it.
 *
 * False, with nothing held, when another one has been selected.
 */
static bool
connect_for_cursor(MongoLease *lease, UserMapping *user)
{
	connect_client(lease, user);
	if (lease->remote == NULL ||
		mongo_client_is_on(lease->client, lease->remote->host_and_port))
		return true;
	mongo_lease_put(lease);
	return false;
}

bool
mongo_lease_take(MongoLease *lease, UserMapping *user, MongoTurn turn)
{
	/* a request that could not be sent in another scan's stead, whose error it was */
	if (lease->client != NULL)
	{
		lease->client->connection.broken = true;
		mongo_lease_put(lease);
	}
	if (turn == MONGO_TURN_IF_FREE && !dlist_is_empty(&lease->entry->waiting))
		return false;
	for (;;)
	{
		MongoClient *client = find_idle(lease);
		MongoLease *other;

		if (client != NULL)
		{
			leave_list(lease);
			dlist_delete(&client->node);
			hold(lease, client);
			return true;
		}
		if (turn == MONGO_TURN_IF_FREE)
			return false;
		if (may_connect(lease))
		{
			leave_list(lease);
			if (connect_for_cursor(lease, user))
				return true;
		}
		if (turn == MONGO_TURN_LATER)
		{
			wait_for_turn(lease);
			return false;
		}

		leave_list(lease);
		other = find_in_flight(lease);
		if (other != NULL)
			other->turns->take_answer(other->reader);
		else if (lease->remote != NULL && !mongo_wire_cursors_move)
			mongo_wire_report_disconnect(GetForeignServer(user->serverid)->servername);
		else if (connect_for_cursor(lease, user))
			return true;
		else
			mongo_wire_report_disconnect(GetForeignServer(user->serverid)->servername);
	}
}

void
mongo_lease_note_sent(MongoLease *lease)
{
	if (lease->turns == NULL)
		return;
	dlist_push_tail(&lease->entry->in_flight, &lease->node);
	lease->place = LEASE_IN_FLIGHT;
}

void
mongo_lease_note_answered(MongoLease *lease)
{
	leave_list(lease);
}

void
mongo_lease_put(MongoLease *lease)
{
	PoolEntry  *entry = lease->entry;
	MongoClient *client = lease->client;

	leave_list(lease);
	if (client == NULL)
		return;
	lease->client = NULL;
	dlist_delete(&client->node);
	if (!mongo_client_is_clean(client) || (client->retired && client->cursors == 0))
	{
		close_client(entry, client);
		return;
	}
	if (!client->keep || client->idle_timeout > 0 || client->retired ||
		!dlist_is_empty(&entry->idle))
		mongo_idle_clients_note();
	client->idle_since = GetCurrentTimestamp();
	dlist_push_head(&entry->idle, &client->node);
}

void
mongo_lease_serve_others(MongoLease *lease)
{
	PoolEntry  *entry = lease->entry;

	while (!dlist_is_empty(&entry->waiting))
	{
		MongoLease *first = dlist_head_element(MongoLease, node, &entry->waiting);

		if (find_idle(first) == NULL)
			return;
		leave_list(first);
		first->turns->serve(first->reader);
	}
}

bool
mongo_lease_holds_client(const MongoLease *lease)
{
	return lease->client != NULL;
}

bool
mongo_lease_find_in_flight(MongoLease *lease,
						   bool (*condition) (const void *reader, const void *arg),
						   const void *arg)
{
	dlist_iter	iter;

	dlist_foreach(iter, &lease->entry->in_flight)
	{
		if (condition(dlist_container(MongoLease, node, iter.cur)->reader, arg))
			return true;
	}
	return false;
}

/* ---------------------------- cursors of leases ----------------------------- */

/* The cursor, taken out of the lease, or NULL. */
static RemoteCursor *
forget_cursor(MongoLease *lease)
{
	RemoteCursor *cursor = lease->remote;

	if (cursor == NULL)
		return NULL;
	dlist_delete(&lease->reader_node);
	lease->remote = NULL;
	if (lease->home != NULL && --lease->home->cursors == 0 && lease->home->retired)
		mongo_idle_clients_note();
	lease->home = NULL;
	return cursor;
}

void
mongo_lease_note_cursor(MongoLease *lease, int64 cursor_id,
						const char *database, const char *collection)
{
	if (lease->remote != NULL && lease->remote->id == cursor_id)
		return;
	bson_free(forget_cursor(lease));
	if (cursor_id == 0 || lease->client == NULL ||
		lease->client->connection.transport.data_stream == NULL)
		return;
	lease->remote = mongo_client_describe_cursor(lease->client, cursor_id,
												 database, collection);
	lease->home = lease->client;
	lease->home->cursors++;
	dlist_push_tail(&lease->entry->readers, &lease->reader_node);
}

/*
 * kill_cursor
 *		Have a cursor closed that nobody reads on: by a client that is on its
 *		server, over a connection of its own while a getMore is under way, or
 *		else by the next client that is leased.
 *
 * Should there be none, MongoDB closes it by itself after 10 minutes.
 */
static void
kill_cursor(MongoLease *lease)
{
	MongoClient *client = lease->client;
	MongoClient *busy = NULL;
	RemoteCursor *cursor;

	if (lease->remote == NULL)
		return;
	if (client == NULL || !mongo_client_is_clean(client))
	{
		busy = client;
		client = find_idle(lease);
	}
	cursor = forget_cursor(lease);
	if (client != NULL && mongo_client_kill_cursor(client, cursor))
	{
		bson_free(cursor);
		return;
	}
	if (busy != NULL && busy->connection.in_flight > 0 &&
		mongo_remote_cancel_cursor(busy, cursor))
	{
		bson_free(cursor);
		return;
	}
	dlist_push_tail(&lease->entry->orphans, &cursor->node);
	mongo_idle_clients_note();
}

/* --------------------------- beginning and ending --------------------------- */

/* end_lease: also the memory context callback; never raises. */
static void
end_lease(void *arg)
{
	MongoLease *lease = arg;

	/* nor is anything given back from within libmongoc, on the way to exit */
	if (lease->entry == NULL || mongo_driver_is_entered())
		return;
	if (lease->place == LEASE_IN_FLIGHT)
		lease->turns->discard_answer(lease->reader);
	kill_cursor(lease);
	mongo_lease_put(lease);
	lease->entry = NULL;
}

MongoLease *
mongo_lease_create(MemoryContext owner, UserMapping *user,
				   const MongoTurns *turns, void *reader)
{
	MongoLease *lease = MemoryContextAllocZero(owner, sizeof(MongoLease));

	if (mongo_pool == NULL)
		initialize_pool();
	mongo_memory_check(0);

	lease->turns = turns;
	lease->reader = reader;
	lease->entry = pool_entry(user->umid);
	lease->callback.func = end_lease;
	lease->callback.arg = lease;
	MemoryContextRegisterResetCallback(owner, &lease->callback);
	return lease;
}

MongoLease *
mongo_lease_acquire(MemoryContext owner, UserMapping *user)
{
	MongoLease *lease = mongo_lease_create(owner, user, NULL, NULL);

	(void) mongo_lease_take(lease, user, MONGO_TURN_NOW);
	return lease;
}

/* was_left: has the client been idle for long enough that it is worth a look? */
static bool
was_left(const MongoClient *client)
{
	return client->idle_since != 0 &&
		TimestampDifferenceExceeds(client->idle_since, GetCurrentTimestamp(),
								   RECENTLY_USED_MS);
}

MongoLease *
mongo_lease_acquire_live(MemoryContext owner, UserMapping *user)
{
	MongoLease *lease = mongo_lease_acquire(owner, user);

	if (was_left(lease->client) && mongo_client_has_lost_connection(lease->client))
		mongo_lease_renew(lease, user);
	return lease;
}

void
mongo_lease_release(MongoLease *lease)
{
	end_lease(lease);
}

void
mongo_lease_renew(MongoLease *lease, UserMapping *user)
{
	PoolEntry  *entry = lease->entry;

	bson_free(forget_cursor(lease));
	if (lease->client != NULL)
		lease->client->connection.broken = true;
	mongo_lease_put(lease);

	/* what broke one connection has most likely broken the idle ones too */
	while (!dlist_is_empty(&entry->idle))
		mongo_idle_client_remove(entry, dlist_head_element(MongoClient, node, &entry->idle));

	connect_client(lease, user);
}

/* ---------------------------- what a lease holds ---------------------------- */

mongoc_client_t *
mongo_lease_client(MongoLease *lease)
{
	/* with nearly everything that it does for us, it uses a session */
	lease->client->has_session = true;
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
	mongo_wire_raise_wait(&lease->client->connection);
}

void
mongo_lease_resume(MongoLease *lease)
{
	mongo_transport_resume(&lease->client->connection.transport);
}

bool
mongo_lease_is_interrupted(MongoLease *lease)
{
	return lease->client->connection.transport.interrupted;
}

void
mongo_lease_limit_waits(MongoLease *lease, int milliseconds)
{
	lease->client->connection.transport.wait_limit_ms = milliseconds;
}

bool
mongo_lease_is_connected(MongoLease *lease)
{
	return lease->client->connection.transport.data_stream != NULL;
}

void
mongo_lease_begin_ending(MongoLease *lease, int total_ms, int interrupt_ms,
						 int reply_ms)
{
	lease->client->connection.transport.ending = (MongoEnding) {
		.active = true,
		.deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), total_ms),
		.interrupt_ms = interrupt_ms,
		.reply_ms = reply_ms,
	};
}

MongoEndingResult
mongo_lease_ending(MongoLease *lease)
{
	const MongoEnding *ending = &lease->client->connection.transport.ending;

	return (MongoEndingResult) {
		.sent = ending->sent,
		.heard = ending->heard,
		.answered = ending->answered,
		.time_left = GetCurrentTimestamp() < ending->deadline,
	};
}

void
mongo_lease_finish_ending(MongoLease *lease)
{
	lease->client->connection.transport.ending.active = false;
}

void
mongo_lease_drop_closed(MongoLease *lease)
{
	mongo_transport_drop_closed(&lease->client->connection.transport);
}

MongoConnection *
mongo_lease_connection(MongoLease *lease)
{
	return &lease->client->connection;
}
