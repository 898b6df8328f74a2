/*-------------------------------------------------------------------------
 *
 * idle_clients.c
 *		How long clients are kept that nobody has leased.
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
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "idle_clients.h"

#include "access/xact.h"
#include "driver_memory.h"
#include "miscadmin.h"
#include "pool.h"
#include "storage/ipc.h"
#include "storage/sinval.h"
#include "utils/hsearch.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

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

void
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

void
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
			mongo_client_end_sessions(client);
		}
	}
}

void
mongo_idle_clients_initialize(void)
{
	on_proc_exit(end_all_sessions, (Datum) 0);
}
