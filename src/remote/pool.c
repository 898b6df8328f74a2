/*-------------------------------------------------------------------------
 *
 * pool.c
 *		The pool: who has which connection.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"
#include "options.h"

#include "access/xact.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/sinval.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/syscache.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

static void mongo_idle_clients_initialize(void);
static void mongo_idle_clients_make_room(Oid serverid);
static void mongo_idle_clients_sweep(XactEvent event);
static void mongo_lease_connect(MongoLease *lease, UserMapping *user);
static MongoClient *mongo_lease_find_idle(MongoLease *lease);

/*-------------------------------------------------------------------------
 * The clients of this backend, by user mapping.
 *
 * Invariants: a client is in its entry's list of idle ones, and then its
 * connection is authenticated with nothing in flight, or in that of leased ones
 * and held by exactly one lease.  One whose server or user mapping has changed
 * is "retired": it serves only the cursors that were opened on it, and is closed
 * when there are none.  Closing neither waits for MongoDB nor raises, so that it
 * can be done from memory context callbacks.
 *-------------------------------------------------------------------------
 */

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

/*
 * mongo_pool_initialize
 *		Once a process, before any other.
 */
static void
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

/*
 * mongo_pool_entry
 *		That of a user mapping; a new one if need be.
 */
static PoolEntry *
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

static void
mongo_pool_remove_idle(PoolEntry *entry, MongoClient *client)
{
	dlist_delete(&client->node);
	mongo_pool_close(entry, client);
}

/*
 * mongo_pool_kill_orphans
 *		Tell the client's server which of its cursors others had to leave open.
 */
static void
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

/* ----------------- Leases: the exclusive use of a client ------------------ */

/* A client used so recently is not asked whether its connection is open. */
#define RECENTLY_USED_MS	100

/* ---------------------------- cursors of leases ----------------------------- */

/* What mongo_client_describe_cursor() is called with, and what it gives. */
typedef struct CursorNote
{
	MongoClient *client;
	int64		id;
	const char *database;
	const char *collection;
	RemoteCursor *remote;
} CursorNote;

static void
describe_noted(void *argument)
{
	CursorNote *note = argument;

	note->remote = mongo_client_describe_cursor(note->client, note->id, note->database,
												note->collection);
}

/* kill_unknown: a cursor that cannot be remembered is closed at once. */
static void
kill_unknown(const CursorNote *note)
{
	const RemoteCursor cursor = {
		.id = note->id,
		.host_and_port = note->client->connection.transport.data_stream->host_and_port,
		.database = note->database,
		.collection = note->collection
	};

	(void) mongo_client_kill_cursor(note->client, &cursor);
}

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
		mongo_pool_needs_sweep = true;
	lease->home = NULL;
	return cursor;
}

bool
mongo_lease_note_cursor(MongoLease *lease, int64 cursor_id,
						const char *database, const char *collection)
{
	CursorNote	note = {lease->client, cursor_id, database, collection, NULL};

	if (lease->remote != NULL && lease->remote->id == cursor_id)
		return true;
	bson_free(forget_cursor(lease));
	if (cursor_id == 0 || lease->client == NULL ||
		lease->client->connection.transport.data_stream == NULL)
		return true;
	if (!mongo_protect(describe_noted, &note))
	{
		kill_unknown(&note);
		return false;
	}
	lease->remote = note.remote;
	lease->home = lease->client;
	lease->home->cursors++;
	dlist_push_tail(&lease->entry->readers, &lease->reader_node);
	return true;
}

/*
 * leave_cursor
 *		To the next client that is leased, or else to MongoDB, which closes it by
 *		itself after 10 minutes.
 */
static void
leave_cursor(PoolEntry *entry, RemoteCursor *cursor)
{
	dlist_push_tail(&entry->orphans, &cursor->node);
	mongo_pool_needs_sweep = true;
}

/* leave_all_cursors: those of all leases, as the process exits. */
static void
leave_all_cursors(PoolEntry *entry)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &entry->readers)
		leave_cursor(entry, forget_cursor(dlist_container(MongoLease, reader_node, iter.cur)));
}

/*
 * kill_cursor
 *		Have a cursor closed that nobody reads on: by a client that is on its
 *		server, over a connection of its own while a getMore is under way, or
 *		else by the next client that is leased.
 *
 * As the process exits there is no next one: what is closed over that connection are
 * the cursors of all.
 */
static void
kill_cursor(MongoLease *lease)
{
	MongoClient *client = lease->client;
	MongoClient *busy = NULL;
	RemoteCursor *cursor = lease->remote;
	bool		left = false;

	if (client == NULL || !mongo_client_is_clean(client))
	{
		busy = client;
		client = cursor != NULL ? mongo_lease_find_idle(lease) : NULL;
	}
	if (cursor != NULL)
	{
		(void) forget_cursor(lease);
		left = client == NULL || !mongo_client_kill_cursor(client, cursor);
		if (left)
			leave_cursor(lease->entry, cursor);
		else
			bson_free(cursor);
	}
	if (busy == NULL || busy->connection.in_flight == 0)
		return;
	if (proc_exit_inprogress)
		leave_all_cursors(lease->entry);
	if (left || proc_exit_inprogress)
		mongo_kill_cursors_beside(busy, &lease->entry->orphans);
}

/* --------------------------- beginning and ending --------------------------- */

/* discard_in_flight: an answer that nobody wants any more. */
static void
discard_in_flight(void *argument)
{
	MongoLease *lease = argument;

	lease->turns->discard_answer(lease->reader);
}

/* end_lease: also the memory context callback; never raises. */
static void
end_lease(void *arg)
{
	MongoLease *lease = arg;

	/* nor is anything given back from within libmongoc, on the way to exit */
	if (lease->entry == NULL || mongo_driver_is_entered())
		return;
	if (lease->place == LEASE_IN_FLIGHT)
		(void) mongo_protect(discard_in_flight, lease);
	kill_cursor(lease);
	if (!mongo_driver_is_entered())
		mongo_lease_put(lease);
	lease->entry = NULL;
}

MongoLease *
mongo_lease_create(MemoryContext owner, UserMapping *user,
				   const MongoTurns *turns, void *reader)
{
	MongoLease *lease = MemoryContextAllocZero(owner, sizeof(MongoLease));

	if (mongo_pool == NULL)
	{
		/* once the pool is there, nothing more fails for want of memory */
		mongo_at_transaction_end(MONGO_END_CLIENTS, mongo_idle_clients_sweep);
		mongo_pool_initialize();
		mongo_idle_clients_initialize();
	}
	mongo_memory_check(0);

	lease->turns = turns;
	lease->reader = reader;
	lease->entry = mongo_pool_entry(user->umid);
	lease->entry->serverid = user->serverid;
	if (lease->entry->userid != user->userid)
	{
		/* several roles may have one mapping, that of PUBLIC */
		lease->entry->activity = mongo_activity_row(user->serverid, user->userid);
		lease->entry->userid = user->userid;
	}
	lease->activity = lease->entry->activity;
	lease->callback.func = end_lease;
	lease->callback.arg = lease;
	MemoryContextRegisterResetCallback(owner, &lease->callback);
	return lease;
}

void
mongo_lease_prefer(MongoLease *lease, mongoc_read_mode_t read_mode)
{
	lease->read_mode = read_mode;
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

void
mongo_lease_replace_if_closed(MongoLease *lease, UserMapping *user)
{
	if (was_left(lease->client) && mongo_client_has_lost_connection(lease->client))
		mongo_lease_renew(lease, user);
}

/*
 * move_to_primary
 *		Have a lease that is to write hold a client of the primary: the read preference of
 *		the one that it holds may lead elsewhere.
 */
static void
move_to_primary(MongoLease *lease, UserMapping *user)
{
	if (lease->client->takes_writes)
		return;
	mongo_lease_put(lease);
	mongo_lease_prefer(lease, MONGOC_READ_PRIMARY);
	(void) mongo_lease_take(lease, user, MONGO_TURN_NOW);
	mongo_lease_replace_if_closed(lease, user);
}

MongoLease *
mongo_lease_acquire_for_write(MemoryContext owner, UserMapping *user,
							  const MongoTurns *turns, void *reader)
{
	MongoLease *lease = mongo_lease_create(owner, user, turns, reader);

	(void) mongo_lease_take(lease, user, MONGO_TURN_NOW);
	mongo_lease_replace_if_closed(lease, user);
	move_to_primary(lease, user);
	return lease;
}

void
mongo_lease_renew_for_write(MongoLease *lease, UserMapping *user)
{
	mongo_lease_renew(lease, user);
	move_to_primary(lease, user);
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
		mongo_pool_remove_idle(entry, dlist_head_element(MongoClient, node, &entry->idle));

	mongo_lease_connect(lease, user);
	mongo_traffic_add(&lease->client->connection.transport.traffic, MONGO_COUNT_RECONNECTS, 1);
}

/* ---------------------------- what a lease holds ---------------------------- */

void
mongo_lease_check_interrupts(MongoLease *lease)
{
	MongoConnection *connection = &lease->client->connection;

	if (mongo_slow_command_ms >= 0)
		mongo_log_slow_request(connection);
	mongo_raise_wait(connection);
}

void
mongo_lease_count(MongoLease *lease, MongoCounter counter, uint64 count)
{
	mongo_activity_count(lease->activity, counter, count);
}

MongoConnection *
mongo_lease_connection(MongoLease *lease)
{
	return &lease->client->connection;
}

/* ------------------ Which client a lease gets, and when ------------------- */

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
			(!client->retired &&
			 mongo_client_is_on(client, lease->remote->host_and_port));

	/* what may be held for long must not be a cursor's only way */
	return !client->retired && client->read_mode == lease->read_mode &&
		(lease->turns != NULL || client->cursors == 0);
}

/*
 * mongo_lease_find_idle
 *		A client that is free and suits the lease, still in its list; NULL when
 *		there is none.  Those that have broken are closed.
 */
static MongoClient *
mongo_lease_find_idle(MongoLease *lease)
{
	PoolEntry  *entry = lease->entry;
	MongoClient *found = NULL;
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &entry->idle)
	{
		MongoClient *client = dlist_container(MongoClient, node, iter.cur);

		if (!mongo_client_is_clean(client))
			mongo_pool_remove_idle(entry, client);
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

/* count_listed: those that will still be used, of this read preference. */
static int
count_listed(const dlist_head *clients, mongoc_read_mode_t read_mode)
{
	int			count = 0;
	dlist_iter	iter;

	dlist_foreach(iter, unconstify(dlist_head *, clients))
	{
		const MongoClient *client = dlist_container(MongoClient, node, iter.cur);

		if (!client->retired && client->read_mode == read_mode)
			count++;
	}
	return count;
}

/* count_clients: those of the lease's read preference, in use or not. */
static int
count_clients(const MongoLease *lease)
{
	return count_listed(&lease->entry->idle, lease->read_mode) +
		count_listed(&lease->entry->leased, lease->read_mode);
}

/*
 * may_connect
 *		Is one more connection wanted for the sake of doing things at once?
 */
static bool
may_connect(const MongoLease *lease)
{
	const PoolEntry *entry = lease->entry;

	return count_clients(lease) < entry->limit &&
		mongo_may_open_connection() &&
		mongo_connection_limit_has_room(entry->serverid, entry->max_connections);
}

/* hold: the client, which is in no list, is told what others had to leave open. */
static void
hold(MongoLease *lease, MongoClient *client)
{
	lease->client = client;
	mongo_activity_use(lease->activity);
	dlist_push_head(&lease->entry->leased, &client->node);
	mongo_pool_kill_orphans(lease->entry, client);
}

/*
 * make_room_on_server
 *		Close idle connections of this session, of other users, rather than wait for
 *		those of others.
 */
static void
make_room_on_server(UserMapping *user)
{
	MongoConnectionOptions *options;

	if (!mongo_is_preloaded)
		return;
	options = mongo_connection_options(GetForeignServer(user->serverid), user);
	if (!mongo_connection_limit_has_room(user->serverid, options->max_connections))
		mongo_idle_clients_make_room(user->serverid);
	pfree(options);
}

/*
 * mongo_lease_connect
 *		Hold a new client; idle ones make room where files are short.
 */
static void
mongo_lease_connect(MongoLease *lease, UserMapping *user)
{
	MongoClient *client;

	if (!mongo_may_open_connection())
		mongo_idle_clients_make_room(InvalidOid);
	make_room_on_server(user);
	mongo_activity_use(lease->activity);
	client = mongo_client_connect(user, lease->read_mode);
	lease->entry->limit = client->async_connections;
	lease->entry->max_connections = client->max_connections;
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
	mongo_lease_connect(lease, user);
	if (lease->remote == NULL ||
		mongo_client_is_on(lease->client, lease->remote->host_and_port))
		return true;
	mongo_lease_put(lease);
	return false;
}

bool
mongo_lease_take(MongoLease *lease, UserMapping *user, MongoTurn turn)
{
	/*
	 * a request that could not be sent in another scan's stead, whose error
	 * it was
	 */
	if (lease->client != NULL)
	{
		lease->client->connection.broken = true;
		mongo_lease_put(lease);
	}
	if (turn == MONGO_TURN_IF_FREE && !dlist_is_empty(&lease->entry->waiting))
		return false;
	for (;;)
	{
		MongoClient *client = mongo_lease_find_idle(lease);
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
		if (turn == MONGO_TURN_LATER && count_clients(lease) > 0)
		{
			wait_for_turn(lease);
			return false;
		}

		leave_list(lease);
		other = find_in_flight(lease);
		if (other != NULL)
			other->turns->take_answer(other->reader);
		else if (connect_for_cursor(lease, user))
			return true;
		else
			mongo_report_disconnect(GetForeignServer(user->serverid)->servername);
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
	client->in_transaction = false;
	mongo_activity_flush(lease->activity, &client->connection.transport.traffic,
						 &client->flushed);
	dlist_delete(&client->node);
	if (!mongo_client_is_clean(client) || (client->retired && client->cursors == 0))
	{
		mongo_pool_close(entry, client);
		return;
	}
	if (!client->keep || client->idle_timeout > 0 || client->retired ||
		!dlist_is_empty(&entry->idle))
		mongo_pool_needs_sweep = true;
	client->idle_since = GetCurrentTimestamp();
	dlist_push_head(&entry->idle, &client->node);
}

/* first_to_serve: of those who wait, for whom there is a client; or NULL. */
static MongoLease *
first_to_serve(PoolEntry *entry)
{
	dlist_iter	iter;

	dlist_foreach(iter, &entry->waiting)
	{
		MongoLease *lease = dlist_container(MongoLease, node, iter.cur);

		if (mongo_lease_find_idle(lease) != NULL)
			return lease;
	}
	return NULL;
}

void
mongo_lease_serve_others(MongoLease *lease)
{
	PoolEntry  *entry = lease->entry;

	for (;;)
	{
		MongoLease *next = first_to_serve(entry);

		if (next == NULL)
			return;
		leave_list(next);
		next->turns->serve(next->reader);
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
		const MongoLease *other = dlist_container(MongoLease, node, iter.cur);

		/* another kind's reader is another struct */
		if (other->turns == lease->turns && other->read_mode == lease->read_mode &&
			condition(other->reader, arg))
			return true;
	}
	return false;
}

/*-------------------------------------------------------------------------
 * How long clients are kept that nobody has leased.
 *
 * One of a user mapping and read preference stays, unless keep_connections forbids it or
 * it has been idle for idle_timeout.  More than one are there when scans wanted to work at
 * once; they go when nobody has wanted them for a moment, so that a session that does so
 * again and again need not connect again and again.
 *
 * They are looked at when a transaction ends.  A timer takes care that one does:
 * in a session that has nothing to do it has PostgreSQL catch up with what other
 * sessions have changed, which is an empty transaction.  In a session that is
 * idle within a transaction the connections wait for its end.
 *-------------------------------------------------------------------------
 */

/* How long more clients than one stay when they are not used. */
#define SURPLUS_TIMEOUT_MS	1000

static TimeoutId timer = MAX_TIMEOUTS;	/* not registered yet */

/*
 * set_timer
 *		Have a transaction end at that time, unless one does before.
 *
 * Only in backends of clients: nobody else waits for something to do.
 */
static void
set_timer(TimestampTz due)
{
	if (MyBackendType != B_BACKEND || proc_exit_inprogress)
		return;
	if (timer == MAX_TIMEOUTS)
		timer = RegisterTimeout(USER_TIMEOUT, HandleCatchupInterrupt);
	if (!get_timeout_active(timer) || get_timeout_finish_time(timer) > due)
		enable_timeout_at(timer, due);
}

/* When the client is to be closed: 0 for now, DT_NOEND for never. */
static TimestampTz
due_time(const MongoClient *client, bool is_surplus)
{
	int			timeout = client->idle_timeout;

	if (client->retired || !client->keep)
		return 0;
	if (is_surplus && (timeout == 0 || timeout > SURPLUS_TIMEOUT_MS))
		timeout = SURPLUS_TIMEOUT_MS;
	return timeout == 0 ? DT_NOEND :
		TimestampTzPlusMilliseconds(client->idle_since, timeout);
}

/* sweep_entry: when the next is to be closed that still stays. */
static TimestampTz
sweep_entry(PoolEntry *entry, TimestampTz now)
{
	TimestampTz next = DT_NOEND;
	uint32		kept = 0;		/* by read preference, as bits */
	dlist_mutable_iter iter;

	if (!dlist_is_empty(&entry->idle))
		mongo_pool_kill_orphans(entry, dlist_head_element(MongoClient, node, &entry->idle));
	dlist_foreach_modify(iter, &entry->idle)
	{
		MongoClient *client = dlist_container(MongoClient, node, iter.cur);
		uint32		bit = (uint32) 1 << client->read_mode;
		TimestampTz due = due_time(client, (kept & bit) != 0);

		if (due <= now && client->cursors == 0)
		{
			mongo_pool_remove_idle(entry, client);
			continue;
		}
		/* what a cursor is left on goes at the end of its transaction */
		if (due <= now)
			mongo_pool_needs_sweep = true;
		else
			next = Min(next, due);
		kept |= bit;
	}
	return next;
}

/*
 * mongo_idle_clients_sweep
 *		At a transaction's end: close those whose time is over, and have the next
 *		one end in time.
 */
static void
mongo_idle_clients_sweep(XactEvent event)
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;
	TimestampTz now;
	TimestampTz next = DT_NOEND;

	if (!mongo_pool_needs_sweep ||
		(event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT &&
		 event != XACT_EVENT_PREPARE && event != XACT_EVENT_PARALLEL_COMMIT &&
		 event != XACT_EVENT_PARALLEL_ABORT))
		return;

	mongo_pool_needs_sweep = false;
	now = GetCurrentTimestamp();
	hash_seq_init(&scan, mongo_pool);
	while ((entry = hash_seq_search(&scan)) != NULL)
		next = Min(next, sweep_entry(entry, now));
	if (next != DT_NOEND)
	{
		mongo_pool_needs_sweep = true;
		set_timer(next);
	}
}

/*
 * mongo_idle_clients_make_room
 *		Close all that nobody reads from, as there are too many open files, or those to
 *		one server, as it is to have no more connections.
 */
static void
mongo_idle_clients_make_room(Oid serverid)
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;
	dlist_mutable_iter iter;

	hash_seq_init(&scan, mongo_pool);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		dlist_foreach_modify(iter, &entry->idle)
		{
			MongoClient *client = dlist_container(MongoClient, node, iter.cur);

			if (client->cursors == 0 &&
				(!OidIsValid(serverid) || client->serverid == serverid))
				mongo_pool_remove_idle(entry, client);
		}
	}
}

/*
 * end_all_sessions
 *		And close what cursors are left.
 *
 * At the end of the process, unless it ends within a call of libmongoc's: then the
 * postmaster has died or memory has run out, and nothing is to be begun any more.
 */
static void
end_all_sessions(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;
	dlist_iter	iter;

	if (mongo_driver_is_entered())
		return;
	hash_seq_init(&scan, mongo_pool);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		dlist_foreach(iter, &entry->idle)
		{
			MongoClient *client = dlist_container(MongoClient, node, iter.cur);

			mongo_pool_kill_orphans(entry, client);
			mongo_client_end_session(client);
		}
	}
}

/*
 * mongo_idle_clients_initialize
 *		Once a process, when the pool is there.
 */
static void
mongo_idle_clients_initialize(void)
{
	on_proc_exit(end_all_sessions, (Datum) 0);
}

/* ------- The connections that this session has, for who asks in SQL ------- */

/* -------------------------------- the list ---------------------------------- */

static List *
append_clients(List *list, Oid mapping, const dlist_head *clients, bool is_active)
{
	dlist_iter	iter;

	dlist_foreach(iter, unconstify(dlist_head *, clients))
	{
		MongoClient *client = dlist_container(MongoClient, node, iter.cur);
		const MongoConnection *connection = &client->connection;
		const MongoStream *stream = connection->transport.data_stream;
		MongoConnectionInfo *info = palloc0(sizeof(MongoConnectionInfo));

		info->serverid = client->serverid;
		info->mapping = mapping;
		info->host = stream != NULL ? pstrdup(stream->host_and_port) : NULL;
		info->role = pstrdup(client->server_type);
		info->is_active = is_active;
		info->has_cursor = client->cursors > 0;
		info->is_valid = !client->retired;
		info->in_transaction = client->in_transaction;
		info->connected_at = client->connected_at;
		info->idle_since = is_active ? 0 : client->idle_since;
		info->traffic = connection->transport.traffic;
		info->compressor = connection->compressor != NULL ? connection->compressor->name : NULL;
		info->has_tls = connection->transport.use_tls;
		list = lappend(list, info);
	}
	return list;
}

List *
mongo_connections(void)
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;
	List	   *list = NIL;

	if (mongo_pool == NULL)
		return NIL;
	hash_seq_init(&scan, mongo_pool);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		list = append_clients(list, entry->umid, &entry->idle, false);
		list = append_clients(list, entry->umid, &entry->leased, true);
	}
	return list;
}

/* --------------------------------- closing ---------------------------------- */

/* close_idle: were some closed?  What is in use is added to *in_use, by server. */
static bool
close_idle(PoolEntry *entry, Oid serverid, List **in_use)
{
	bool		closed = false;
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &entry->idle)
	{
		MongoClient *client = dlist_container(MongoClient, node, iter.cur);

		if (OidIsValid(serverid) && client->serverid != serverid)
			continue;
		if (client->cursors > 0)
		{
			*in_use = list_append_unique_oid(*in_use, client->serverid);
			continue;
		}
		mongo_pool_kill_orphans(entry, client);
		mongo_pool_remove_idle(entry, client);
		closed = true;
	}
	return closed;
}

static List *
note_leased(const PoolEntry *entry, Oid serverid, List *in_use)
{
	dlist_iter	iter;

	dlist_foreach(iter, unconstify(dlist_head *, &entry->leased))
	{
		const MongoClient *client = dlist_container(MongoClient, node, iter.cur);

		if (!OidIsValid(serverid) || client->serverid == serverid)
			in_use = list_append_unique_oid(in_use, client->serverid);
	}
	return in_use;
}

/* warn_of_use: in postgres_fdw's words. */
static void
warn_of_use(Oid serverid)
{
	ForeignServer *server = GetForeignServerExtended(serverid, FSV_MISSING_OK);

	if (server == NULL)
		ereport(WARNING,
				(errmsg("cannot close dropped server connection because it is still in use")));
	else
		ereport(WARNING,
				(errmsg("cannot close connection for server \"%s\" because it is still in use",
						server->servername)));
}

bool
mongo_connections_close(Oid serverid)
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;
	List	   *in_use = NIL;
	ListCell   *cell;
	bool		closed = false;

	if (mongo_pool == NULL)
		return false;
	hash_seq_init(&scan, mongo_pool);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		closed |= close_idle(entry, serverid, &in_use);
		in_use = note_leased(entry, serverid, in_use);
	}
	foreach(cell, in_use)
		warn_of_use(lfirst_oid(cell));
	return closed;
}

/*-------------------------------------------------------------------------
 * What is to be done when a PostgreSQL transaction ends, in its order.
 *-------------------------------------------------------------------------
 */

static void (*steps[MONGO_TRANSACTION_END_STEPS]) (XactEvent event);

static void
run_steps(XactEvent event, void *arg pg_attribute_unused())
{
	for (int i = 0; i < MONGO_TRANSACTION_END_STEPS; i++)
	{
		if (steps[i] != NULL)
			steps[i] (event);
	}
}

void
mongo_at_transaction_end(MongoTransactionEndStep step, void (*callback) (XactEvent event))
{
	static bool registered = false;

	if (!registered)
		RegisterXactCallback(run_steps, NULL);
	registered = true;
	steps[step] = callback;
}
