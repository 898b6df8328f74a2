/*-------------------------------------------------------------------------
 *
 * lease.c
 *		Leases: the exclusive use of a client.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lease.h"

#include "driver_memory.h"
#include "idle_clients.h"
#include "pool.h"
#include "remote_cancel.h"
#include "settings.h"
#include "slow_command.h"
#include "storage/ipc.h"
#include "transaction_end.h"
#include "turns.h"
#include "utils/timestamp.h"

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
		mongo_remote_cancel_cursors(busy, &lease->entry->orphans);
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

MongoLease *
mongo_lease_acquire_shared(MemoryContext owner, UserMapping *user,
						   const MongoTurns *turns, void *reader)
{
	MongoLease *lease = mongo_lease_create(owner, user, turns, reader);

	(void) mongo_lease_take(lease, user, MONGO_TURN_NOW);
	if (was_left(lease->client) && mongo_client_has_lost_connection(lease->client))
		mongo_lease_renew(lease, user);
	return lease;
}

MongoLease *
mongo_lease_acquire_live(MemoryContext owner, UserMapping *user)
{
	return mongo_lease_acquire_shared(owner, user, NULL, NULL);
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

mongoc_client_t *
mongo_lease_client(MongoLease *lease)
{
	/* with nearly everything that it does for us, it uses a session */
	lease->client->has_session = true;
	lease->client->waited_before =
		lease->client->connection.transport.traffic.counters[MONGO_COUNT_WAIT_US];
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
	MongoClient *client = lease->client;

	if (mongo_slow_command_ms >= 0)
		mongo_log_slow_driver_command(&client->connection, client->waited_before);
	mongo_wire_raise_wait(&client->connection);
}

void
mongo_lease_count(MongoLease *lease, MongoCounter counter, uint64 count)
{
	mongo_activity_count(lease->activity, counter, count);
}

void
mongo_lease_note_transaction(MongoLease *lease)
{
	MongoTransport *transport = &lease->client->connection.transport;

	lease->client->in_transaction = true;
	transport->begins = true;
	transport->transaction_number = 0;
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
