/*-------------------------------------------------------------------------
 *
 * activity.c
 *		Counters of the traffic with MongoDB, and the connections of all sessions, in shared
 *		memory; wait events.
 *
 * A connection counts in its own memory, without locks (MongoTraffic).  If the library is in
 * shared_preload_libraries, a connection's new counts are added to two rows of a table in shared
 * memory when the connection returns to the pool: one row per server and user, and one per query.
 * A session mostly looks up a row under a lock only once.  Adding takes one atomic operation per
 * counter.
 *
 * One hash table contains the counts of servers and users, those of queries, and the number of
 * connections to each server.  If it is full, a new row replaces the least recently used one: of
 * a query, or of a server without connections if these have more than half of the table.  A
 * session that remembers the old row's address detects this by the row's generation.  Counts that
 * are added between this check and the replacement may go to the new row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/backend_status.h"
#include "utils/timestamp.h"

#define MOST_ROWS	6000		/* pg_stat_statements has 5000 by default */

/* Identifies a row.  Keys are compared as bytes, so there must be no padding. */
typedef struct ActivityKey
{
	uint64		queryid;		/* 0: row of a server */
	Oid			dbid;
	Oid			serverid;		/* InvalidOid: row of a query */
	Oid			userid;			/* InvalidOid: row for all users of a server */
	uint32		unused;
} ActivityKey;

typedef struct MongoActivity
{
	ActivityKey key;
	pg_atomic_uint32 generation;	/* changes when the row is removed */
	pg_atomic_uint64 last_used; /* start time of the last statement */
	pg_atomic_uint64 calls;
	pg_atomic_uint64 counters[MONGO_COUNTERS];

	/* only in the row for all users of a server, which stays if it is not 0 */
	pg_atomic_uint32 connections;
} MongoActivity;

static LWLock *lock = NULL;		/* protects the table, not the rows' counts */
static HTAB *rows;

/* Connections that a session has on average before some are not shown. */
#define SHOWN_PER_SESSION	4

/* Slots are taken under the lock. */
static MongoSharedConnection *shown;

/* Servers that fail at once; later ones replace those that were tried before all others. */
#define MOST_FAILURES	100

/* So many; changed under the lock. */
static MongoServerFailure *failures;

/* Broadcast when a connection to any server is closed. */
static ConditionVariable *closed;

/*
 * mongo_traffic_commands
 *		Returns the number of commands of all kinds.
 */
uint64
mongo_traffic_commands(const MongoTraffic *traffic)
{
	uint64		commands = 0;

	for (int i = 0; i < MONGO_COMMAND_KINDS; i++)
		commands += traffic->counters[i];
	return commands;
}

/* ------------------------------ shared memory ------------------------------- */

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

/* Returns the number of slots for connections. */
static int
most_shown(void)
{
	return MaxBackends * SHOWN_PER_SESSION;
}

static void
request_memory(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(hash_estimate_size(MOST_ROWS, sizeof(MongoActivity)));
	RequestAddinShmemSpace(mul_size(most_shown(), sizeof(MongoSharedConnection)));
	RequestAddinShmemSpace(MOST_FAILURES * sizeof(MongoServerFailure));
	RequestAddinShmemSpace(sizeof(ConditionVariable));
	RequestNamedLWLockTranche("mongo_fdw", 1);
}

static void
find_memory(void)
{
	HASHCTL		control = {
		.keysize = sizeof(ActivityKey),
		.entrysize = sizeof(MongoActivity)
	};
	Size		size = mul_size(most_shown(), sizeof(MongoSharedConnection));
	bool		found;

	if (previous_startup_hook)
		previous_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	rows = mongo_shmem_hash("mongo_fdw activity", MOST_ROWS, &control,
							HASH_ELEM | HASH_BLOBS);
	shown = ShmemInitStruct("mongo_fdw connections", size, &found);
	if (!found)
		memset(shown, 0, size);
	failures = ShmemInitStruct("mongo_fdw failures", MOST_FAILURES * sizeof(MongoServerFailure), &found);
	if (!found)
		memset(failures, 0, MOST_FAILURES * sizeof(MongoServerFailure));
	closed = ShmemInitStruct("mongo_fdw closed connections", sizeof(ConditionVariable), &found);
	if (!found)
		ConditionVariableInit(closed);
	LWLockRelease(AddinShmemInitLock);
	lock = &(GetNamedLWLockTranche("mongo_fdw"))->lock;
}

/*
 * mongo_activity_initialize
 *		Requests the shared memory.  Called by _PG_init(), only for shared_preload_libraries.
 */
void
mongo_activity_initialize(void)
{
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = find_memory;
}

/* Removes a row; the caller has the lock exclusively. */
static void
remove_row(MongoActivity *row)
{
	pg_atomic_fetch_add_u32(&row->generation, 1);
	hash_search(rows, &row->key, HASH_REMOVE, NULL);
}

/* Makes space for a row; returns false if there are connections to all servers. */
static bool
remove_oldest(void)
{
	HASH_SEQ_STATUS scan;
	MongoActivity *each;
	MongoActivity *oldest[2] = {NULL, NULL};	/* of servers, of queries */
	int			servers = 0;

	hash_seq_init(&scan, rows);
	while ((each = hash_seq_search(&scan)) != NULL)
	{
		MongoActivity **place = &oldest[each->key.queryid != 0];

		servers += each->key.queryid == 0;
		if (pg_atomic_read_u32(&each->connections) == 0 &&
			(*place == NULL || pg_atomic_read_u64(&each->last_used) <
			 pg_atomic_read_u64(&(*place)->last_used)))
			*place = each;
	}
	each = oldest[servers <= MOST_ROWS / 2 || oldest[0] == NULL];
	if (each != NULL)
		remove_row(each);
	return each != NULL;
}

/* Finds or creates a row, and sets *generation; NULL if there is no space. */
static MongoActivity *
find_row(const ActivityKey *key, uint32 *generation)
{
	MongoActivity *row;
	bool		found = true;

	LWLockAcquire(lock, LW_SHARED);
	row = hash_search(rows, key, HASH_FIND, NULL);
	if (row != NULL)
		*generation = pg_atomic_read_u32(&row->generation);
	LWLockRelease(lock);
	if (row != NULL)
		return row;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	if (hash_get_num_entries(rows) < MOST_ROWS || hash_search(rows, key, HASH_FIND, NULL) != NULL ||
		remove_oldest())
		row = hash_search(rows, key, HASH_ENTER_NULL, &found);
	if (row != NULL && !found)
	{
		pg_atomic_init_u64(&row->last_used, GetCurrentStatementStartTimestamp());
		pg_atomic_init_u64(&row->calls, 0);
		for (int i = 0; i < MONGO_COUNTERS; i++)
			pg_atomic_init_u64(&row->counters[i], 0);
		pg_atomic_init_u32(&row->connections, 0);
	}
	if (row != NULL)
		*generation = pg_atomic_read_u32(&row->generation);
	LWLockRelease(lock);
	return row;
}

/* A cache of this session's rows, with one entry for each hash value. */
#define REMEMBERED	256

static struct
{
	ActivityKey key;
	MongoActivity *row;
	uint32		generation;
}			remembered[REMEMBERED];

/* Returns what find_row() does, mostly without a lock; NULL without shared memory. */
static MongoActivity *
remembered_row(const ActivityKey *key)
{
	int			place = (key->queryid + key->serverid + key->userid) % REMEMBERED;

	if (lock == NULL)
		return NULL;
	if (remembered[place].row == NULL ||
		memcmp(&remembered[place].key, key, sizeof(*key)) != 0 ||
		remembered[place].generation != pg_atomic_read_u32(&remembered[place].row->generation))
	{
		remembered[place].key = *key;
		remembered[place].row = find_row(key, &remembered[place].generation);
	}
	return remembered[place].row;
}

/* --------------------------- servers and users ------------------------------ */

/* For whom mongo_activity_count_current() counts. */
static MongoActivityOwner current_owner;

/* Returns the row of a server and a role, or of all roles; NULL if there is no space. */
static MongoActivity *
row_of(MongoActivityOwner owner)
{
	ActivityKey key = {.dbid = MyDatabaseId, .serverid = owner.serverid, .userid = owner.userid};

	return OidIsValid(owner.serverid) ? remembered_row(&key) : NULL;
}

/*
 * mongo_activity_use
 *		Sets for whom mongo_activity_count_current() counts.
 */
void
mongo_activity_use(MongoActivityOwner owner)
{
	current_owner = owner;
}

/* ---------------------------------- queries ---------------------------------- */

/* Counts a call of the query, once for each statement. */
static void
note_call(MongoActivity *query)
{
	static MongoActivity *last = NULL;
	static TimestampTz last_start = 0;
	TimestampTz start = GetCurrentStatementStartTimestamp();

	if (query == last && start == last_start)
		return;
	last = query;
	last_start = start;
	pg_atomic_fetch_add_u64(&query->calls, 1);
	pg_atomic_write_u64(&query->last_used, start);
}

/* Returns the row of the current query; NULL without a query id or space. */
static MongoActivity *
current_query(void)
{
	ActivityKey key = {
		.queryid = (uint64) pgstat_get_my_query_id(),
		.dbid = MyDatabaseId,
		.userid = GetUserId()
	};

	return key.queryid != 0 ? remembered_row(&key) : NULL;
}

/* --------------------------------- counting ---------------------------------- */

/* Adds to a row, unless it is NULL.  Adding 0 costs no atomic operation. */
static void
add_count(MongoActivity *row, MongoCounter counter, uint64 count)
{
	if (row != NULL && count > 0)
		pg_atomic_fetch_add_u64(&row->counters[counter], count);
}

/*
 * mongo_activity_flush
 *		Adds the difference of 'traffic' and 'flushed' to the rows of the owner and of the current
 *		query, and copies 'traffic' to 'flushed'.  Does nothing without shared memory.  Never
 *		raises.
 */
void
mongo_activity_flush(MongoActivityOwner owner, const MongoTraffic *traffic, MongoTraffic *flushed)
{
	MongoActivity *server;
	MongoActivity *query;

	if (lock == NULL || memcmp(traffic, flushed, sizeof(*traffic)) == 0)
		return;
	server = row_of(owner);
	if (server != NULL)
		pg_atomic_write_u64(&server->last_used, GetCurrentStatementStartTimestamp());
	query = current_query();
	if (query != NULL)
		note_call(query);
	for (int i = 0; i < MONGO_COUNTERS; i++)
	{
		uint64		more = traffic->counters[i] - flushed->counters[i];

		add_count(server, i, more);
		add_count(query, i, more);
	}
	*flushed = *traffic;
}

/*
 * mongo_activity_count
 *		Adds a count that no connection keeps, at once: to the rows of the owner and of the current
 *		query.
 */
void
mongo_activity_count(MongoActivityOwner owner, MongoCounter counter, uint64 count)
{
	if (lock == NULL || !OidIsValid(owner.serverid) || count == 0)
		return;
	add_count(row_of(owner), counter, count);
	add_count(current_query(), counter, count);
}

/*
 * mongo_activity_count_current
 *		Adds a count that no connection keeps, at once, for the owner of the last
 *		mongo_activity_use(), and for the current query.
 */
void
mongo_activity_count_current(MongoCounter counter, uint64 count)
{
	mongo_activity_count(current_owner, counter, count);
}

/* ----------------------------- servers that fail ----------------------------- */

/* Returns the place of a server's failure, or else NULL; the caller has the lock. */
static MongoServerFailure *
find_failure(Oid serverid)
{
	for (int i = 0; i < MOST_FAILURES; i++)
	{
		MongoServerFailure *place = &failures[i];

		if (place->last != 0 && place->dbid == MyDatabaseId && place->serverid == serverid)
			return place;
	}
	return NULL;
}

/*
 * mongo_activity_note_failure
 *		Notes that an attempt to connect has failed, to the server of the last
 *		mongo_activity_use(); 'remedy' may be NULL.  Never raises.
 */
void
mongo_activity_note_failure(bool refused, const char *problem, const char *remedy)
{
	TimestampTz now = GetCurrentTimestamp();
	MongoServerFailure *place;

	if (lock == NULL || !OidIsValid(current_owner.serverid))
		return;
	LWLockAcquire(lock, LW_EXCLUSIVE);
	place = find_failure(current_owner.serverid);
	if (place == NULL)
	{
		place = failures;
		for (int i = 1; i < MOST_FAILURES; i++)
		{
			if (failures[i].last < place->last)
				place = &failures[i];
		}
		place->dbid = MyDatabaseId;
		place->serverid = current_owner.serverid;
		place->since = now;
	}
	place->last = now;
	place->refused = refused;
	strlcpy(place->problem, problem, sizeof(place->problem));
	strlcpy(place->remedy, remedy != NULL ? remedy : "", sizeof(place->remedy));
	LWLockRelease(lock);
}

/*
 * mongo_activity_note_success
 *		Notes that a connection to the server was opened.  Never raises.
 */
void
mongo_activity_note_success(Oid serverid)
{
	MongoServerFailure *place;

	if (lock == NULL)
		return;
	LWLockAcquire(lock, LW_EXCLUSIVE);
	place = find_failure(serverid);
	if (place != NULL)
		place->last = 0;
	LWLockRelease(lock);
}

/*
 * mongo_server_failures
 *		Returns copies of this database's failures, in the current memory context, and sets *count.
 *		NULL without shared memory.
 */
MongoServerFailure *
mongo_server_failures(int *count)
{
	MongoServerFailure *result;

	*count = 0;
	if (lock == NULL)
		return NULL;
	result = palloc(MOST_FAILURES * sizeof(MongoServerFailure));
	LWLockAcquire(lock, LW_SHARED);
	for (int i = 0; i < MOST_FAILURES; i++)
	{
		if (failures[i].last != 0 && failures[i].dbid == MyDatabaseId)
			result[(*count)++] = failures[i];
	}
	LWLockRelease(lock);
	return result;
}

/* -------------------------------- connections -------------------------------- */

/*
 * mongo_connection_limit_has_room
 *		Tells whether all sessions together have fewer than 'limit' connections to the server.
 *		True if the limit is 0, and without shared memory; false if they cannot be counted, as the
 *		table of servers is full.
 */
bool
mongo_connection_limit_has_room(Oid serverid, int limit)
{
	MongoActivity *server;

	if (limit <= 0 || lock == NULL)
		return true;
	server = row_of((MongoActivityOwner) {serverid, InvalidOid});
	return server != NULL && pg_atomic_read_u32(&server->connections) < (uint32) limit;
}

/*
 * Counts one more connection in the server's row, and sets *counted to it; returns false if the
 * limit is reached, or if there is no space for a row to count in.
 *
 * Under the lock, so that the row is not removed meanwhile.
 */
static bool
try_enter(Oid serverid, int limit, MongoActivity **counted)
{
	ActivityKey key = {.dbid = MyDatabaseId, .serverid = serverid};
	MongoActivity *server;
	uint32		generation;
	bool		has_room = false;

	do
	{
		LWLockAcquire(lock, LW_SHARED);
		server = hash_search(rows, &key, HASH_FIND, NULL);
		if (server != NULL)
		{
			uint32		connections = pg_atomic_read_u32(&server->connections);

			do
			{
				has_room = limit <= 0 || connections < (uint32) limit;
			} while (has_room && !pg_atomic_compare_exchange_u32(&server->connections, &connections,
																 connections + 1));
		}
		LWLockRelease(lock);
	} while (server == NULL && find_row(&key, &generation) != NULL);
	*counted = has_room ? server : NULL;
	return has_room || (server == NULL && limit <= 0);
}

/* Takes a slot for a connection; NULL if none is free. */
static MongoSharedConnection *
show(Oid serverid, Oid userid)
{
	MongoSharedConnection *slot = NULL;

	LWLockAcquire(lock, LW_EXCLUSIVE);
	for (int i = 0; i < most_shown() && slot == NULL; i++)
	{
		if (shown[i].pid == 0)
			slot = &shown[i];
	}
	if (slot != NULL)
		*slot = (MongoSharedConnection) {
			.pid = MyProcPid,
			.dbid = MyDatabaseId,
			.serverid = serverid,
			.userid = userid,
			.state = MONGO_CONNECTING,
			.state_change = GetCurrentTimestamp()
		};
	LWLockRelease(lock);
	return slot;
}

/*
 * mongo_connection_limit_leave
 *		Stops counting and showing a connection.  Idempotent; never raises.
 */
void
mongo_connection_limit_leave(MongoConnection *connection)
{
	if (connection->shared != NULL)
		connection->shared->pid = 0;
	connection->shared = NULL;
	if (connection->counted == NULL)
		return;
	pg_atomic_fetch_sub_u32(&connection->counted->connections, 1);
	ConditionVariableBroadcast(closed);
	connection->counted = NULL;
}

/*
 * mongo_connection_limit_enter
 *		Counts a new connection, and shows it to all sessions if a slot is free, unless there is
 *		no shared memory.
 *
 * At the limit, waits up to timeout_ms (0: the session itself has all) for another one to be
 * closed, then raises 53300.  Raises 57014 when cancelled.
 */
void
mongo_connection_limit_enter(MongoConnection *connection, Oid userid, int limit, int timeout_ms)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);

	if (lock == NULL)
		return;
	ConditionVariablePrepareToSleep(closed);
	while (!try_enter(connection->serverid, limit, &connection->counted))
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);

		if (left <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_TOO_MANY_CONNECTIONS),
					 errmsg("too many connections to server \"%s\"", connection->server_name),
					 timeout_ms == 0 ?
					 errdetail("This session itself uses %d, which is the option \"max_connections\" of the server.", limit) :
					 errdetail("The sessions of this database have %d, which is the option \"max_connections\" of the server, and none was closed within %d milliseconds.",
							   limit, timeout_ms),
					 timeout_ms == 0 ? errhint("Raise max_connections, or end the transaction or the query that uses them first.") :
					 errhint("Raise max_connections, close idle connections sooner by idle_timeout or keep_connections, or let a session have fewer by async_connections.")));
		(void) ConditionVariableTimedSleep(closed, left,
										   mongo_wait_event(MONGO_WAIT_CONNECTION_LIMIT));
	}
	ConditionVariableCancelSleep();
	connection->shared = show(connection->serverid, userid);
}

/* -------------------------------- wait events -------------------------------- */

static const char *const wait_event_names[] = {
	[MONGO_WAIT_CONNECT] = "MongoFdwConnect",
	[MONGO_WAIT_CONNECTION_LIMIT] = "MongoFdwConnectionLimit",
	[MONGO_WAIT_REPLY] = "MongoFdwReply",
	[MONGO_WAIT_CONFLICT] = "MongoFdwWriteConflict",
	[MONGO_WAIT_COMMIT] = "MongoFdwCommit",
};

static uint32 wait_events[lengthof(wait_event_names)];

/*
 * mongo_register_wait_events
 *		Names the wait events, once in a session.  May raise.
 */
void
mongo_register_wait_events(void)
{
	for (size_t i = 0; i < lengthof(wait_events); i++)
	{
		if (wait_events[i] == 0)
			wait_events[i] = mongo_new_wait_event(wait_event_names[i]);
	}
}

/*
 * mongo_wait_event
 *		Returns PostgreSQL's number of a wait event; a general one if it has not been named.
 *		Never raises.
 */
uint32
mongo_wait_event(MongoWaitEvent event)
{
	return wait_events[event] != 0 ? wait_events[event] : PG_WAIT_EXTENSION;
}

/* --------------------------------- the views -------------------------------- */

/* Raises 55000 without shared memory. */
static void
require_memory(void)
{
	if (lock == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("mongo_fdw must be loaded via \"shared_preload_libraries\"")));
}

/*
 * mongo_activity_rows
 *		Returns copies of the rows of queries, or of servers and users, in the current memory
 *		context, and sets *count.  Raises 55000 without shared memory.
 */
MongoActivityRow *
mongo_activity_rows(bool of_queries, int *count)
{
	MongoActivityRow *result;
	HASH_SEQ_STATUS scan;
	MongoActivity *row;

	require_memory();
	result = palloc0(sizeof(MongoActivityRow) * MOST_ROWS);
	*count = 0;
	LWLockAcquire(lock, LW_SHARED);
	hash_seq_init(&scan, rows);
	while ((row = hash_seq_search(&scan)) != NULL)
	{
		MongoActivityRow *copy = &result[*count];

		if ((row->key.queryid != 0) != of_queries || !OidIsValid(row->key.userid))
			continue;
		(*count)++;
		copy->queryid = row->key.queryid;
		copy->dbid = row->key.dbid;
		copy->serverid = row->key.serverid;
		copy->userid = row->key.userid;
		copy->calls = pg_atomic_read_u64(&row->calls);
		for (int i = 0; i < MONGO_COUNTERS; i++)
			copy->traffic.counters[i] = pg_atomic_read_u64(&row->counters[i]);
	}
	LWLockRelease(lock);
	return result;
}

/*
 * mongo_shared_connections
 *		Returns copies of the connections of all sessions of all databases, in the current memory
 *		context, and sets *count.  Raises 55000 without shared memory.
 */
MongoSharedConnection *
mongo_shared_connections(int *count)
{
	MongoSharedConnection *result;

	require_memory();
	result = palloc(sizeof(MongoSharedConnection) * most_shown());
	*count = 0;
	LWLockAcquire(lock, LW_SHARED);
	for (int i = 0; i < most_shown(); i++)
	{
		if (shown[i].pid != 0)
			result[(*count)++] = shown[i];
	}
	LWLockRelease(lock);
	return result;
}

/*
 * mongo_activity_reset
 *		Removes the rows of queries, or sets the counts of servers and users to 0, for all
 *		sessions.  Raises 55000 without shared memory.
 */
void
mongo_activity_reset(bool of_queries)
{
	HASH_SEQ_STATUS scan;
	MongoActivity *row;

	require_memory();
	LWLockAcquire(lock, LW_EXCLUSIVE);
	hash_seq_init(&scan, rows);
	while ((row = hash_seq_search(&scan)) != NULL)
	{
		if (of_queries && row->key.queryid != 0)
			remove_row(row);
		for (int i = 0; !of_queries && row->key.queryid == 0 && i < MONGO_COUNTERS; i++)
			pg_atomic_write_u64(&row->counters[i], 0);
	}
	LWLockRelease(lock);
}
