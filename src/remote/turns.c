/*-------------------------------------------------------------------------
 *
 * turns.c
 *		Which client a lease gets, and when.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "turns.h"

#include "client.h"
#include "idle_clients.h"
#include "options.h"
#include "pool.h"
#include "settings.h"
#include "utils/timestamp.h"

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

MongoClient *
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

void
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
