/*-------------------------------------------------------------------------
 *
 * pool.c
 *		The pool of this backend's connections, their leases, and the cursors and replies that
 *		nobody waits for.
 *
 * A lease is the use of a connection, pooled by user mapping: the exclusive one, but for requests
 * that wait behind each other (mongo_lease_share()).
 *
 * A scan's lease has a connection only from a request to its reply, since a server cursor does
 * not depend on the connection.  There is one connection for each read preference, and up to
 * async_connections if several requests are in flight.  If a scan needs one more, the oldest
 * outstanding reply is received and saved for its scan, whose connection is then taken over.  But
 * a scan below an asynchronous Append sends nothing as long as Append can wait for other scans.
 *
 * A request may also be sent ahead of its time, behind another one on the same connection, so
 * that both take one round trip.  MongoDB replies to the requests of a connection one after
 * another.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/sinval.h"
#include "utils/inval.h"
#include "utils/syscache.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

static void end_all_sessions(int code, Datum arg);
static bool suits(const MongoLease *lease, const MongoConnection *connection);
static void finish_parked(int code, Datum arg);
static void connect_lease(MongoLease *lease, UserMapping *user, bool once);
static MongoConnection *find_idle(MongoLease *lease);

/*-------------------------------------------------------------------------
 * The connections of this backend.
 *
 * Invariants: a connection is idle, or leased.  Several leases have one connection only while
 * requests wait there for their replies (mongo_lease_share()).  An idle connection is
 * authenticated; it is parked while it has replies in flight that nobody waits for.  A connection
 * whose server or user mapping has changed is "retired": it serves only the cursors that were
 * opened on it, and is closed when none are left.  Closing neither waits for MongoDB nor raises, so
 * memory context callbacks can close connections.
 *-------------------------------------------------------------------------
 */

/* All connections (MongoConnection); the idle ones in order of use, the last used first. */
static dlist_head connections = DLIST_STATIC_INIT(connections);

/* All leases (MongoLease); those in flight in order of time, the oldest first. */
static dlist_head leases = DLIST_STATIC_INIT(leases);

#define foreach_connection(variable) foreach_dlist(MongoConnection, node, variable, &connections)
#define foreach_lease(variable) foreach_dlist(MongoLease, node, variable, &leases)

/* Abandoned cursors that are still open on a server (RemoteCursor); see kill_cursor(). */
static dlist_head orphans = DLIST_STATIC_INIT(orphans);
static int	norphans = 0;

/* Makes an idle session end a transaction; MAX_TIMEOUTS: it does not wait for commands. */
static TimeoutId timer = MAX_TIMEOUTS;

/*
 * Syscache callback: marks the connections whose foreign server or user mapping has changed;
 * hashvalue 0 means all.
 *
 * May be called anywhere, so it closes none.
 */
static void
retire_connections(Datum arg pg_attribute_unused(), int cacheid, uint32 hashvalue)
{
	foreach_connection(connection)
	{
		if (hashvalue != 0 &&
			!(cacheid == FOREIGNSERVEROID && connection->server_hashvalue == hashvalue) &&
			!(cacheid == USERMAPPINGOID && connection->mapping_hashvalue == hashvalue))
			continue;
		connection->retired = true;
	}
}

/* At the process's end, stops counting its connections for max_connections. */
static void
leave_limits(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	foreach_connection(connection)
		mongo_connection_limit_leave(connection);
}

/* Registers callbacks and starts libmongoc, once in a process. */
static void
initialize_pool(void)
{
	static bool initialized = false;

	if (initialized)
		return;
	mongo_initialize_library();
	mongo_register_wait_events();
	CacheRegisterSyscacheCallback(FOREIGNSERVEROID, retire_connections, (Datum) 0);
	CacheRegisterSyscacheCallback(USERMAPPINGOID, retire_connections, (Datum) 0);
	before_shmem_exit(finish_parked, (Datum) 0);
	on_shmem_exit(leave_limits, (Datum) 0);
	on_proc_exit(end_all_sessions, (Datum) 0);
	/* no other process waits for commands */
	if (MyBackendType == B_BACKEND)
		timer = RegisterTimeout(USER_TIMEOUT, HandleCatchupInterrupt);
	initialized = true;
}

/* Closes the connection; cursors opened on it then have no home.  Never raises. */
static void
close_connection(MongoConnection *connection)
{
	foreach_lease(lease)
	{
		if (lease->home == connection)
			lease->home = NULL;
	}
	mongo_connection_close(connection);
}

/* Closes the abandoned cursors on the connection's server. */
static void
kill_orphans(MongoConnection *connection)
{
	if (norphans > 0)
		norphans -= mongo_connection_kill_cursors(connection, &orphans, false);
}

/*
 * Closes the unleased connections of a server or a user mapping, or all (InvalidOid), and returns
 * whether it closed one.
 *
 * A connection with open cursors stays, unless a user mapping is given; its cursors then use
 * another one.  Adds the servers of the connections that stay to *in_use, unless that is NULL.
 */
static bool
close_unused(Oid serverid, Oid umid, List **in_use)
{
	bool		closed = false;

	foreach_connection(connection)
	{
		if ((OidIsValid(serverid) && connection->serverid != serverid) ||
			(OidIsValid(umid) && connection->umid != umid))
			continue;
		if (connection->leases == 0 && (connection->cursors == 0 || OidIsValid(umid)))
		{
			kill_orphans(connection);
			close_connection(connection);
			closed = true;
		}
		else if (in_use != NULL)
			*in_use = list_append_unique_oid(*in_use, connection->serverid);
	}
	return closed;
}

/*
 * mongo_round_trip_time
 *		Returns the shortest time in ms in which this session has received the reply to a single
 *		command over a connection of the user mapping that is still open; -1 if there is none.
 *		The command's own time is included.
 */
double
mongo_round_trip_time(const UserMapping *user)
{
	uint64		shortest = 0;

	foreach_connection(connection)
	{
		if (connection->umid == user->umid && connection->round_trip_us > 0 &&
			(shortest == 0 || connection->round_trip_us < shortest))
			shortest = connection->round_trip_us;
	}
	return shortest == 0 ? -1 : shortest / 1000.0;
}

/*
 * Closes unused connections: all (InvalidOid) if too many files are open, or those to one server if
 * it has too many connections.
 *
 * Returns how many of the session's connections to the server still count for max_connections.
 */
static int
close_idle(Oid serverid)
{
	int			left = 0;

	(void) close_unused(serverid, InvalidOid, NULL);
	foreach_connection(connection)
	{
		left += connection->serverid == serverid && connection->counted != NULL;
	}
	return left;
}

/* Returns what the connection does. */
static MongoConnectionState
state_of(const MongoConnection *connection)
{
	return connection->leases > 0 ?
		(connection->in_transaction ? MONGO_IN_TRANSACTION : MONGO_ACTIVE) :
		connection->cursors > 0 ? MONGO_OPEN_CURSOR : MONGO_IDLE;
}

/*
 * mongo_connection_show_state
 *		Shows all sessions what the connection does.  Called when that changes.
 */
void
mongo_connection_show_state(const MongoConnection *connection)
{
	if (connection->shared == NULL)
		return;
	connection->shared->state = state_of(connection);
	connection->shared->state_change = connection->leases > 0 ?
		GetCurrentStatementStartTimestamp() : connection->idle_since;
}

/* ---------------------------- cursors of leases ----------------------------- */

/* Records that the lease has no cursor any more. */
static void
forget_cursor(MongoLease *lease)
{
	if (lease->cursor.id == 0)
		return;
	lease->cursor.id = 0;
	if (lease->home != NULL && --lease->home->cursors == 0)
		mongo_connection_show_state(lease->home);
	lease->home = NULL;
}

/*
 * mongo_lease_note_cursor
 *		Records the cursor that is open on the connection's server, to be killed when the lease
 *		ends.  Id 0 records that there is none.
 *
 * The connection is the lease's or that of the MongoDB transaction.  Never raises.
 */
void
mongo_lease_note_cursor(MongoLease *lease, MongoConnection *connection, int64 cursor_id,
						const char *database, const char *collection)
{
	RemoteCursor *cursor = &lease->cursor;

	if (cursor->id == cursor_id)
		return;
	forget_cursor(lease);
	if (cursor_id == 0 || connection == NULL || connection->transport.data_stream == NULL)
		return;
	cursor->id = cursor_id;
	cursor->umid = lease->umid;
	strlcpy(cursor->database, database, sizeof(cursor->database));
	strlcpy(cursor->collection, collection, sizeof(cursor->collection));
	strlcpy(cursor->host_and_port, connection->transport.data_stream->host_and_port,
			sizeof(cursor->host_and_port));
	lease->home = connection;
	lease->home->cursors++;
}

/* Orphans after which those of a server are closed, without waiting for the transaction's end. */
#define MOST_ORPHANS	100

/*
 * Adds a cursor to those to be closed later.  If memory runs out, MongoDB closes it by itself
 * after 10 minutes.
 */
static bool
add_orphan(const RemoteCursor *found)
{
	RemoteCursor *cursor = malloc(sizeof(RemoteCursor));

	if (cursor == NULL)
		return false;
	*cursor = *found;
	dlist_push_tail(&orphans, &cursor->node);
	norphans++;
	return true;
}

/*
 * mongo_lease_leave_cursor
 *		Makes the lease's cursor, if there is one, an orphan, which is killed later.  Never
 *		raises.
 */
void
mongo_lease_leave_cursor(MongoLease *lease)
{
	MongoConnection *home = lease->home;

	if (lease->cursor.id != 0 && add_orphan(&lease->cursor) && norphans % MOST_ORPHANS == 0 &&
		home != NULL)
		kill_orphans(home);
	forget_cursor(lease);
}

/*
 * Has an abandoned cursor closed: over a clean connection to its server, or else when the next
 * connection to its server is leased or swept.
 */
static void
kill_cursor(MongoLease *lease)
{
	MongoConnection *own = lease->connection;
	MongoConnection *other = own;

	if (own == NULL || !mongo_connection_is_clean(own))
		other = lease->cursor.id != 0 ? find_idle(lease) : NULL;
	mongo_lease_leave_cursor(lease);
	if (other != NULL)
		kill_orphans(other);
}

/*-------------------------------------------------------------------------
 * Parked connections: with replies in flight that nobody waits for.
 *
 * A command whose client is gone may still open a cursor, which MongoDB keeps for ten minutes, and
 * only the reply names it.  So a connection is not closed before it has this reply.  A scan that
 * ends early waits for it briefly, an abort does not.  If the reply comes soon, the connection is
 * used again.  If not, it is given up: MongoDB is told to end the command, and the connection is
 * closed with the reply.
 *-------------------------------------------------------------------------
 */

/* How long to wait for a reply before the connection is given up, and before it is closed. */
#define PARKED_MS				100
#define GIVEN_UP_MS				10000
#define LOOK_AGAIN_MS			1000
#define LAST_WAIT_MS			300 /* of all, as the process exits */

/* How many connections are parked at most. */
#define MOST_PARKED		16

/* Tells whether the connection has replies in flight that nobody waits for. */
static bool
is_parked(const MongoConnection *connection)
{
	return connection->leases == 0 && connection->in_flight > 0 &&
		!mongo_connection_is_lost(connection);
}

/* Makes the cursor that an abandoned command has opened an orphan. */
static void
note_opened(const MongoConnection *connection, const MongoReply *reply)
{
	RemoteCursor cursor = {.umid = connection->umid};

	if (!mongo_reply_cursor(reply, &cursor))
		return;
	strlcpy(cursor.host_and_port, connection->transport.data_stream->host_and_port,
			sizeof(cursor.host_and_port));
	(void) add_orphan(&cursor);
}

/*
 * mongo_connection_drain
 *		Receives replies that nobody waits for, up to the request 'next' (0: all).  Returns false
 *		if one does not come within so many milliseconds, or the connection is lost.  Never
 *		raises.
 */
bool
mongo_connection_drain(MongoConnection *connection, uint32 next, int milliseconds)
{
	MongoReply *reply;

	while ((reply = mongo_receive_abandoned(connection, next, milliseconds)) != NULL)
	{
		note_opened(connection, reply);
		mongo_reply_free(reply);
		reply->received = 0;
	}
	connection->broken |= connection->given_up && connection->in_flight == 0;
	return !connection->broken && (next != 0 ? mongo_next_request(connection) == next :
								   connection->in_flight == 0);
}

/* Kills the orphans on the connection's server, over an idle connection or a separate one. */
static void
kill_running(MongoConnection *connection)
{
	foreach_connection(other)
	{
		if (other->leases == 0)
			kill_orphans(other);
	}
	if (norphans > 0)
		norphans -= mongo_connection_kill_cursors(connection, &orphans, true);
}

/*
 * Has MongoDB end the commands of a parked connection.  A getMore ends only if its cursor is
 * killed, which may take some time.
 */
static void
give_up(MongoConnection *connection, bool may_wait)
{
	if (may_wait)
		kill_running(connection);
	if (!connection->given_up)
		mongo_transport_shut_down(&connection->transport);
	connection->given_up = true;
}

/*
 * Limits how many connections are parked, now that this one is.  Gives it up at once if no timer
 * will.
 */
static void
park(MongoConnection *connection)
{
	MongoConnection *oldest = NULL;
	int			count = 0;

	connection->transport.interrupted = false;
	if (!proc_exit_inprogress && (MyBackendType != B_BACKEND || IsTransactionBlock() ||
								  GetCurrentTransactionNestLevel() > 1))
		give_up(connection, IsTransactionState());
	foreach_connection(other)
	{
		if (is_parked(other) && ++count > MOST_PARKED)
			oldest = other;
	}
	if (oldest != NULL)
		close_connection(oldest);
}

/*
 * Receives what has come; gives the connection up, and closes it, in time.  Returns when to look
 * at it again; 0 if it is not parked any more.
 */
static TimestampTz
sweep_parked(MongoConnection *connection, TimestampTz now)
{
	TimestampTz due;

	if (mongo_connection_drain(connection, 0, 0) || !is_parked(connection))
		return 0;
	due = TimestampTzPlusMilliseconds(connection->idle_since, PARKED_MS);
	if (now < due && !connection->given_up)
		return due;
	give_up(connection, true);
	due = TimestampTzPlusMilliseconds(connection->idle_since, GIVEN_UP_MS);
	if (now < due)
		return Min(due, TimestampTzPlusMilliseconds(now, LOOK_AGAIN_MS));
	connection->broken = true;
	return 0;
}

/* Waits for a connection that suits the lease, as long as connecting takes. */
static bool
wait_for_parked(const MongoLease *lease)
{
	foreach_connection(connection)
	{
		if (!is_parked(connection) || connection->given_up || connection->umid != lease->umid ||
			!suits(lease, connection))
			continue;
		if (mongo_connection_drain(connection, 0, mongo_discard_wait(connection)))
			return true;
		if (is_parked(connection))
			give_up(connection, true);
	}
	return false;
}

/* Releases the leases of change streams, or all others. */
static void
release_leases(bool dedicated)
{
	foreach_lease(lease)
	{
		if ((lease->connection != NULL && lease->connection->is_dedicated) == dedicated)
			mongo_lease_release(lease);
	}
}

/* As the process exits, receives what comes soon, and has the cursors closed. */
static void
finish_parked(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), LAST_WAIT_MS);
	bool		is_known;

	release_leases(true);
	foreach_connection(connection)
	{
		if (mongo_driver_is_entered())
			return;
		if (!is_parked(connection))
			continue;
		is_known = norphans > 0;
		give_up(connection, true);
		if (is_known)
			continue;
		(void) mongo_connection_drain(connection, 0,
									  TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end));
		kill_running(connection);
	}
}

/* ---------------------- creating and releasing leases ----------------------- */

/*
 * mongo_lease_release
 *		Ends a lease: abandons its replies, has its cursor killed, and returns its connection.
 *		Idempotent; never raises.  A MemoryContextCallbackFunction.
 */
void
mongo_lease_release(void *arg)
{
	MongoLease *lease = arg;

	if (!OidIsValid(lease->umid))
		return;
	/* when a process exits within libmongoc, nothing is sent or returned */
	if (lease->state >= LEASE_IN_FLIGHT && !mongo_driver_is_entered())
		(void) mongo_protect(lease->callbacks->discard_reply, lease->reader);
	if (!mongo_driver_is_entered())
		kill_cursor(lease);
	if (!mongo_driver_is_entered())
		mongo_lease_put(lease);
	dlist_delete(&lease->node);
	lease->umid = InvalidOid;
}

/*
 * mongo_lease_create
 *		Returns a new lease, without a connection, in the context 'owner', whose reset ends it.
 *
 * With 'callbacks', which are called with 'reader', it has a connection only from a request to
 * its reply; without (NULL), it is exclusive.  Raises 53200.
 */
MongoLease *
mongo_lease_create(MemoryContext owner, UserMapping *user,
				   const MongoLeaseCallbacks *callbacks, void *reader)
{
	MongoLease *lease = MemoryContextAllocZero(owner, sizeof(MongoLease));

	initialize_pool();
	mongo_memory_check(0);

	lease->callbacks = callbacks;
	lease->reader = reader;
	lease->umid = user->umid;
	lease->owner = (MongoActivityOwner) {user->serverid, user->userid};
	dlist_push_tail(&leases, &lease->node);
	lease->callback.func = mongo_lease_release;
	lease->callback.arg = lease;
	MemoryContextRegisterResetCallback(owner, &lease->callback);
	return lease;
}

/*
 * mongo_lease_renew
 *		Replaces a broken connection, closes idle ones of its user mapping, and has the lease's
 *		cursor killed.
 *
 * Raises as mongo_connection_open() does; the lease then has no connection.
 */
void
mongo_lease_renew(MongoLease *lease, UserMapping *user)
{
	mongo_lease_leave_cursor(lease);
	if (lease->connection != NULL)
	{
		/* other leases may keep it until they find that out */
		lease->connection->broken = true;
		mongo_connection_limit_leave(lease->connection);
	}
	mongo_lease_put(lease);
	/* the cause has probably broken the idle ones, too */
	(void) close_unused(InvalidOid, lease->umid, NULL);
	connect_lease(lease, user, false);
	mongo_traffic_add(&lease->connection->transport.traffic, MONGO_COUNT_RECONNECTS, 1);
}

/* --------------------------- choosing a connection ------------------------------ */

/*
 * Tells whether the connection is to the server of the lease's cursor.  Behind a load balancer
 * only the cursor's own connection is known to be (Load Balancers specification).
 */
static bool
reaches_cursor(const MongoLease *lease, const MongoConnection *connection)
{
	return connection == lease->home ||
		(!connection->retired && !mongo_connection_is_balanced(connection) &&
		 mongo_connection_is_on(connection, lease->cursor.host_and_port));
}

/* Tells whether the lease may use this connection once it is idle. */
static bool
suits(const MongoLease *lease, const MongoConnection *connection)
{
	if (lease->cursor.id != 0)
		return reaches_cursor(lease, connection);
	/* an exclusive lease may last long: it takes none that a cursor needs */
	return !connection->retired && connection->read_mode == lease->read_mode &&
		(lease->callbacks != NULL || connection->cursors == 0);
}

/* Returns an idle connection that suits the lease, or NULL.  Closes broken ones. */
static MongoConnection *
find_idle(MongoLease *lease)
{
	MongoConnection *found = NULL;

	foreach_connection(connection)
	{
		if (connection->leases > 0 || connection->umid != lease->umid)
			continue;
		(void) mongo_connection_drain(connection, 0, 0);
		if (is_parked(connection))
			continue;
		if (!mongo_connection_is_clean(connection))
			close_connection(connection);
		else if (suits(lease, connection) && (found == NULL || connection == lease->home))
		{
			found = connection;
			if (lease->home == NULL || connection == lease->home)
				break;
		}
	}
	return found;
}

/*
 * Returns the lease with the oldest outstanding reply, or NULL; if 'ahead_only', to a request
 * sent ahead.  Otherwise only for scans: an exclusive lease would not suit, since a saved reply
 * often has an open cursor.
 */
static MongoLease *
find_in_flight(const MongoLease *lease, bool ahead_only)
{
	foreach_lease(other)
	{
		if ((other->state == LEASE_AHEAD ||
			 (other->state == LEASE_IN_FLIGHT && !ahead_only && lease->callbacks != NULL)) &&
			other->umid == lease->umid && suits(lease, other->connection))
			return other;
	}
	return NULL;
}

/*
 * Counts the connections of the lease's user mapping and read preference that are not retired,
 * nor a change stream's; sets *last to one of them.
 */
static int
count_connections(const MongoLease *lease, const MongoConnection **last)
{
	int			count = 0;

	foreach_connection(connection)
	{
		if (connection->retired || connection->is_dedicated || connection->umid != lease->umid ||
			connection->read_mode != lease->read_mode || is_parked(connection))
			continue;
		*last = connection;
		count++;
	}
	return count;
}

/* Gives the lease the connection, and closes orphaned cursors over it. */
static void
hold(MongoLease *lease, MongoConnection *connection)
{
	lease->connection = connection;
	connection->leases = 1;
	mongo_activity_use(lease->owner);
	mongo_connection_show_state(connection);
	kill_orphans(connection);
}

/*
 * Gives the lease a new connection.  Closes idle ones first if too many files are open.  'once'
 * is that of mongo_connection_open().
 */
static void
connect_lease(MongoLease *lease, UserMapping *user, bool once)
{
	MongoConnection *connection;

	if (!mongo_may_open_connection())
		(void) close_idle(InvalidOid);
	mongo_activity_use(lease->owner);
	/* the statement may have begun with another user mapping */
	user = mongo_user_mapping(user->userid, user->serverid);
	lease->umid = user->umid;
	connection = mongo_connection_open(user, lease->read_mode, once, &connections,
									   close_idle);
	hold(lease, connection);
}

/* --------------------------- sharing connections --------------------------- */

/*
 * How many requests wait on one connection.  All of them, with LARGEST_AHEAD each, fit into the
 * socket's buffers even while MongoDB sends a large reply and reads nothing.
 */
#define MOST_IN_FLIGHT	8

/*
 * Gives the lease a new connection, to the server of the lease's cursor if it has one.
 *
 * Returns false, without a connection, if another server was selected.
 */
static bool
connect_for_cursor(MongoLease *lease, UserMapping *user, bool once)
{
	connect_lease(lease, user, once);
	if (lease->cursor.id == 0 || reaches_cursor(lease, lease->connection))
		return true;
	mongo_lease_put(lease);
	return false;
}

/* Counts the connections to a server that are kept for cursors; sets *last to one of them. */
static int
count_kept(Oid serverid, const MongoConnection **last)
{
	int			count = 0;

	foreach_connection(connection)
	{
		if (connection->serverid != serverid || connection->in_transaction ||
			(connection->cursors == 0 && connection->leases == 0))
			continue;
		*last = connection;
		count++;
	}
	return count;
}

/*
 * If max_connections allows no further connection, reads the cursors to their end for which the
 * session keeps its connections; returns false if that frees none.
 */
static bool
finish_cursors(const UserMapping *user)
{
	const MongoConnection *last;
	int			before = count_kept(user->serverid, &last);

	if (before == 0 ||
		mongo_connection_limit_has_room(user->serverid, last->options->max_connections))
		return false;
	mongo_cursors_read_to_end(&(MongoAccessScope) {user->serverid, NULL, NULL}, false);
	return count_kept(user->serverid, &last) < before;
}

/*
 * How long to open no further connection after an attempt has failed, for example by MongoDB's
 * maxIncomingConnections; and the user mapping that this applies to.
 */
#define REFUSED_MS	10000

static TimestampTz refused_until = 0;
static Oid	refused_umid = InvalidOid;

/*
 * Opens the first connection, or one more for concurrency; returns false, without a connection,
 * if there may be no more, if it cannot be opened, or if it does not lead to the lease's cursor.
 */
static bool
connect_if_allowed(MongoLease *lease, UserMapping *user)
{
	MemoryContext caller_context = CurrentMemoryContext;
	const MongoConnection *last = NULL;
	int			count = count_connections(lease, &last);
	volatile bool connected = false;

	if (count == 0)
		return connect_for_cursor(lease, user, false);
	if (count >= last->options->async_connections || !mongo_may_open_connection() ||
		!mongo_connection_limit_has_room(last->serverid, last->options->max_connections) ||
		(lease->cursor.id != 0 && mongo_connection_is_balanced(last)) ||
		(refused_umid == lease->umid && GetCurrentTimestamp() < refused_until))
		return false;
	PG_TRY();
	{
		connected = connect_for_cursor(lease, user, true);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller_context);
		mongo_catch_connection_error();
		refused_umid = lease->umid;
		refused_until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), REFUSED_MS);
	}
	PG_END_TRY();
	return connected;
}

/*
 * mongo_lease_take
 *		Gives the lease a connection with nothing in flight, to the server of the lease's cursor
 *		if it has one.  Returns false if there is none and 'policy' allows that.
 *
 * Raises as mongo_connection_open() does, and 08006 if that server cannot be reached any more.
 */
bool
mongo_lease_take(MongoLease *lease, UserMapping *user, MongoWaitPolicy policy)
{
	/* sending its request has raised an error, perhaps to another scan */
	if (lease->connection != NULL)
	{
		lease->connection->broken = true;
		mongo_lease_put(lease);
	}
	lease->state = LEASE_QUIET;
	for (;;)
	{
		MongoConnection *connection = find_idle(lease);
		const MongoConnection *last;
		MongoLease *other;

		if (connection != NULL)
		{
			hold(lease, connection);
			return true;
		}
		if (policy == MONGO_WAIT_SKIP)
			return false;
		if (wait_for_parked(lease))
			continue;
		other = policy == MONGO_WAIT_TAKE_OVER ? find_in_flight(lease, true) : NULL;
		if (other != NULL)
		{
			/* it was sent long ago, so this takes less than connecting */
			other->callbacks->save_reply(other->reader);
			continue;
		}
		if (lease->callbacks == NULL && finish_cursors(user))
			continue;
		if (connect_if_allowed(lease, user))
			return true;
		if (policy == MONGO_WAIT_LATER && count_connections(lease, &last) > 0)
			return false;

		other = find_in_flight(lease, false);
		if (other != NULL)
			other->callbacks->save_reply(other->reader);
		else if (connect_for_cursor(lease, user, false))
			return true;
		else
			mongo_report_disconnect(GetForeignServer(user->serverid)->servername);
	}
}

/*
 * Replaces the lease's connection if the server has closed it, before a command is sent that must
 * not be sent twice.  Costs one system call, unless it was used just before.
 */
static void
replace_if_closed(MongoLease *lease, UserMapping *user)
{
	const MongoConnection *connection = lease->connection;

	if (connection->idle_since != 0 &&
		TimestampDifferenceExceeds(connection->idle_since, GetCurrentTimestamp(),
								   RECENTLY_USED_MS) &&
		mongo_has_reply(lease->connection))
		mongo_lease_renew(lease, user);
}

/*
 * mongo_lease_move_to_primary
 *		Gives the lease a connection to the primary, if the server's read preference has selected
 *		another member.  Raises what mongo_lease_take() does.
 */
void
mongo_lease_move_to_primary(MongoLease *lease, UserMapping *user)
{
	if (lease->connection->takes_writes)
		return;
	mongo_lease_put(lease);
	lease->read_mode = MONGOC_READ_PRIMARY;
	(void) mongo_lease_take(lease, user, MONGO_WAIT_TAKE_OVER);
	replace_if_closed(lease, user);
}

/*
 * mongo_lease_acquire_for_write
 *		Returns a new lease with a connection to the primary, which the server has not closed.
 *
 * With 'callbacks' the pool may have the outstanding reply saved.  Raises what
 * mongo_lease_create() and mongo_lease_take() raise.
 */
MongoLease *
mongo_lease_acquire_for_write(MemoryContext owner, UserMapping *user,
							  const MongoLeaseCallbacks *callbacks, void *reader)
{
	MongoLease *lease = mongo_lease_create(owner, user, callbacks, reader);

	(void) mongo_lease_take(lease, user, MONGO_WAIT_TAKE_OVER);
	replace_if_closed(lease, user);
	mongo_lease_move_to_primary(lease, user);
	return lease;
}

/*
 * mongo_lease_note_sent
 *		Marks a request as in flight, until the owner sets LEASE_QUIET.
 */
void
mongo_lease_note_sent(MongoLease *lease)
{
	dlist_move_tail(&leases, &lease->node);
	lease->state = LEASE_IN_FLIGHT;
}

/* Returns the lease with the oldest request in flight on the lease's connection. */
static MongoLease *
first_on(const MongoLease *lease)
{
	foreach_lease(other)
	{
		if (other->state >= LEASE_IN_FLIGHT && other->connection == lease->connection)
			return other;
	}
	return NULL;
}

/*
 * mongo_lease_receive_earlier
 *		Has the replies saved that come before the lease's own, which is that to 'request_id'.
 *
 * Raises as save_reply does; or, if it 'discards', does not raise.  May leave the connection
 * broken, if an earlier reply that nobody waits for does not come soon.
 */
void
mongo_lease_receive_earlier(const MongoLease *lease, uint32 request_id, bool discards)
{
	MongoConnection *connection = lease->connection;
	MongoLease *other;

	while (connection->leases > 1 && (other = first_on(lease)) != lease &&
		   !(discards && connection->broken))
		(discards ? other->callbacks->discard_reply : other->callbacks->save_reply) (other->reader);
	if (mongo_next_request(connection) != request_id &&
		!mongo_connection_drain(connection, request_id, mongo_discard_wait(connection)))
		connection->broken = true;
}

/*
 * mongo_lease_share
 *		Gives the lease an idle connection, or that of the lease 'first' to send a request behind
 *		its own.  Returns false if neither is possible.
 */
bool
mongo_lease_share(MongoLease *lease, const MongoLease *first)
{
	MongoConnection *connection = find_idle(lease);

	if (connection != NULL)
	{
		hold(lease, connection);
		return true;
	}
	connection = first->connection;
	if (first->state < LEASE_IN_FLIGHT || first->umid != lease->umid || connection->broken ||
		connection->in_flight >= MOST_IN_FLIGHT || !suits(lease, connection))
		return false;
	lease->connection = connection;
	connection->leases++;
	mongo_activity_use(lease->owner);
	return true;
}

/*
 * mongo_lease_put
 *		Returns the lease's connection to the pool, if it has one.  It is closed if it is broken.
 *		Never raises.
 */
void
mongo_lease_put(MongoLease *lease)
{
	MongoConnection *connection = lease->connection;
	bool		parked;

	lease->state = LEASE_QUIET;
	if (connection == NULL)
		return;
	lease->connection = NULL;
	connection->in_transaction = connection->is_dedicated = false;
	mongo_activity_flush(lease->owner, &connection->transport.traffic,
						 &connection->flushed);
	if (--connection->leases > 0)
		return;
	parked = is_parked(connection);
	if (!parked && (!mongo_connection_is_clean(connection) ||
					(connection->retired && connection->cursors == 0)))
	{
		close_connection(connection);
		return;
	}
	connection->idle_since = GetCurrentTimestamp();
	mongo_connection_show_state(connection);
	dlist_move_head(&connections, &connection->node);
	if (parked)
		park(connection);
}

/*-------------------------------------------------------------------------
 * How long unleased connections are kept.
 *
 * One connection per user mapping and read preference stays, unless keep_connections is off or
 * it has been idle for idle_timeout.  Further ones were opened for concurrent scans.  They stay
 * for a moment, so that a session that repeats such a query need not connect each time.
 *
 * Connections are closed when a transaction ends.  In an idle session a timer makes PostgreSQL
 * process its invalidation messages, which runs an empty transaction.  In a session that is
 * idle in a transaction, connections stay until the transaction ends.
 *-------------------------------------------------------------------------
 */

/* How long unused connections stay in addition to the first one. */
#define SURPLUS_TIMEOUT_MS	1000

/* Makes a transaction end at that time, unless the timer is set to an earlier one. */
static void
set_timer(TimestampTz due)
{
	if (timer == MAX_TIMEOUTS || proc_exit_inprogress)
		return;
	if (!get_timeout_active(timer) || get_timeout_finish_time(timer) > due)
		enable_timeout_at(timer, due);
}

/* Returns when to close the connection: 0 for now, DT_NOEND for never. */
static TimestampTz
due_time(const MongoConnection *connection, bool is_surplus)
{
	int			timeout = connection->options->idle_timeout;

	if (connection->retired || !connection->options->keep_connections)
		return 0;
	if (is_surplus && (timeout == 0 || timeout > SURPLUS_TIMEOUT_MS))
		timeout = SURPLUS_TIMEOUT_MS;
	return timeout == 0 ? DT_NOEND :
		TimestampTzPlusMilliseconds(connection->idle_since, timeout);
}

/* Tells whether another one of its kind is idle and was used later. */
static bool
is_surplus(const MongoConnection *connection)
{
	foreach_connection(other)
	{
		if (other == connection)
			break;
		if (mongo_connection_is_clean(other) && other->leases == 0 && other->umid == connection->umid &&
			other->read_mode == connection->read_mode)
			return true;
	}
	return false;
}

/*
 * mongo_pool_sweep
 *		Closes the connections that are due, at a transaction's end, and sets a timer that ends
 *		another transaction when the next one is due.
 *
 * After an abort, it first releases the leases of failed functions, whose contexts PostgreSQL
 * keeps until ROLLBACK.
 */
void
mongo_pool_sweep(bool aborted)
{
	TimestampTz now;
	TimestampTz next = DT_NOEND;

	if (aborted)
		release_leases(false);
	if (proc_exit_inprogress)
		finish_parked(0, (Datum) 0);
	now = GetCurrentTimestamp();
	foreach_connection(connection)
	{
		TimestampTz due;

		if (connection->leases > 0)
			continue;
		if (connection->in_flight > 0 && (due = sweep_parked(connection, now)) != 0)
		{
			next = Min(next, due);
			continue;
		}
		if (!mongo_connection_is_clean(connection))
		{
			/* it may have been the only one to its server */
			if (connection->given_up)
				kill_running(connection);
			close_connection(connection);
			continue;
		}
		kill_orphans(connection);
		due = due_time(connection, is_surplus(connection));
		if (due > now)
			next = Min(next, due);
		else if (connection->cursors == 0)
			close_connection(connection);
	}
	if (next != DT_NOEND)
		set_timer(next);
}

/*
 * Ends all server sessions and closes the remaining cursors, at the end of the process.
 *
 * Sends nothing if the process exits inside a call of libmongoc, because the postmaster has died
 * or memory has run out.
 */
static void
end_all_sessions(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	if (mongo_driver_is_entered())
		return;
	foreach_connection(connection)
	{
		if (connection->leases > 0)
			continue;
		kill_orphans(connection);
		mongo_connection_end_session(connection);
	}
}

/* ----------------------- connections for SQL functions ---------------------- */

/*
 * mongo_connections
 *		Returns a list of MongoConnectionInfo * in the current memory context, one for each
 *		connection.
 */
List *
mongo_connections(void)
{
	List	   *list = NIL;

	foreach_connection(connection)
	{
		const MongoStream *stream = connection->transport.data_stream;
		MongoConnectionInfo *info = palloc0(sizeof(MongoConnectionInfo));

		info->serverid = connection->serverid;
		info->mapping = connection->umid;
		info->host = stream != NULL ? pstrdup(stream->host_and_port) : NULL;
		info->role = pstrdup(connection->server_type);
		info->state = state_of(connection);
		info->is_valid = !connection->retired;
		info->in_transaction = connection->in_transaction;
		info->connected_at = connection->connected_at;
		info->idle_since = connection->leases > 0 ? 0 : connection->idle_since;
		info->traffic = connection->transport.traffic;
		info->compressor = connection->has_compressed && connection->compressor != NULL ?
			connection->compressor->name : NULL;
		info->has_tls = connection->transport.use_tls;
		list = lappend(list, info);
	}
	return list;
}

/* Warns that connections to the server stay, in postgres_fdw's words. */
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

/*
 * mongo_connections_close
 *		Closes the connections to a server, or all (InvalidOid), and returns whether it closed
 *		one.  Connections in use stay, with a WARNING for each server.
 */
bool
mongo_connections_close(Oid serverid)
{
	List	   *in_use = NIL;
	bool		closed = close_unused(serverid, InvalidOid, &in_use);

	foreach_oid(used, in_use)
		warn_of_use(used);
	return closed;
}
