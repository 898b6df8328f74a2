/*-------------------------------------------------------------------------
 *
 * connection_limit.c
 *		How many connections all sessions together have to a server.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define MOST_SERVERS	1000	/* what is beyond has no limit */

typedef struct ServerKey
{
	Oid			dbid;
	Oid			serverid;
} ServerKey;

struct MongoConnectionCount
{
	ServerKey	key;
	pg_atomic_uint32 connections;
	ConditionVariable closed;
};

static LWLock *lock = NULL;		/* of the table, not of what is in it */
static HTAB *counts;

/* What this process has of a server's count, to be given back when it ends. */
typedef struct OwnCount
{
	MongoConnectionCount *count;
	uint32		connections;
} OwnCount;

static List *own_counts = NIL;

/* ------------------------------ shared memory ------------------------------- */

static shmem_request_hook_type previous_request_hook = NULL;
static shmem_startup_hook_type previous_startup_hook = NULL;

static void
request_counts(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(hash_estimate_size(MOST_SERVERS, sizeof(MongoConnectionCount)));
	RequestNamedLWLockTranche("mongo_fdw connections", 1);
}

static void
find_counts(void)
{
	HASHCTL		control = {
		.keysize = sizeof(ServerKey),
		.entrysize = sizeof(MongoConnectionCount)
	};

	if (previous_startup_hook)
		previous_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	counts = ShmemInitHash("mongo_fdw connections", MOST_SERVERS, MOST_SERVERS, &control,
						   HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
	LWLockRelease(AddinShmemInitLock);
	lock = &(GetNamedLWLockTranche("mongo_fdw connections"))->lock;
}

void
mongo_connection_limit_initialize(void)
{
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_counts;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = find_counts;
}

/* server_count: NULL where nothing is counted. */
static MongoConnectionCount *
server_count(Oid serverid)
{
	ServerKey	key = {.dbid = MyDatabaseId, .serverid = serverid};
	MongoConnectionCount *count;
	bool		found;

	if (lock == NULL)
		return NULL;
	LWLockAcquire(lock, LW_EXCLUSIVE);
	count = hash_search(counts, &key, HASH_ENTER_NULL, &found);
	if (count != NULL && !found)
	{
		pg_atomic_init_u32(&count->connections, 0);
		ConditionVariableInit(&count->closed);
	}
	LWLockRelease(lock);
	return count;
}

/* ----------------------------- this process's own --------------------------- */

static void
give_back(MongoConnectionCount *count, uint32 connections)
{
	pg_atomic_fetch_sub_u32(&count->connections, connections);
	ConditionVariableBroadcast(&count->closed);
}

/* At the end of the process, after its last transaction. */
static void
give_all_back(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	ListCell   *cell;

	foreach(cell, own_counts)
	{
		OwnCount   *own = lfirst(cell);

		if (own->connections > 0)
			give_back(own->count, own->connections);
		own->connections = 0;
	}
}

/* own_count: that of a server; nothing fails for want of memory later. */
static OwnCount *
own_count(MongoConnectionCount *count)
{
	MemoryContext old_context;
	OwnCount   *own;
	ListCell   *cell;

	foreach(cell, own_counts)
	{
		own = lfirst(cell);
		if (own->count == count)
			return own;
	}
	if (own_counts == NIL)
		on_shmem_exit(give_all_back, (Datum) 0);
	old_context = MemoryContextSwitchTo(TopMemoryContext);
	own = palloc0(sizeof(OwnCount));
	own->count = count;
	own_counts = lappend(own_counts, own);
	MemoryContextSwitchTo(old_context);
	return own;
}

/* ------------------------------ in and out ---------------------------------- */

static bool
try_enter(MongoConnectionCount *count, OwnCount *own, int limit)
{
	uint32		connections = pg_atomic_read_u32(&count->connections);

	do
	{
		if (limit > 0 && connections >= (uint32) limit)
			return false;
	} while (!pg_atomic_compare_exchange_u32(&count->connections, &connections,
											 connections + 1));
	own->connections++;
	return true;
}

pg_noreturn static void report_limit(const char *server_name, int limit, int timeout_ms);

static void
report_limit(const char *server_name, int limit, int timeout_ms)
{
	ereport(ERROR,
			(errcode(ERRCODE_TOO_MANY_CONNECTIONS),
			 errmsg("too many connections to server \"%s\"", server_name),
			 errdetail("The sessions of this database have %d, which is the option \"max_connections\" of the server, and none was closed within %d milliseconds.",
					   limit, timeout_ms),
			 errhint("Raise max_connections, close idle connections sooner by idle_timeout or keep_connections, or let a session have fewer by async_connections.")));
}

bool
mongo_connection_limit_has_room(Oid serverid, int limit)
{
	MongoConnectionCount *count = limit > 0 ? server_count(serverid) : NULL;

	return count == NULL || pg_atomic_read_u32(&count->connections) < (uint32) limit;
}

MongoConnectionCount *
mongo_connection_limit_enter(Oid serverid, const char *server_name, int limit,
							 int timeout_ms)
{
	MongoConnectionCount *count = server_count(serverid);
	OwnCount   *own;
	TimestampTz end;

	if (count == NULL)
		return NULL;
	own = own_count(count);
	if (try_enter(count, own, limit))
		return count;

	end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);
	ConditionVariablePrepareToSleep(&count->closed);
	while (!try_enter(count, own, limit))
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);

		if (left <= 0)
		{
			ConditionVariableCancelSleep();
			report_limit(server_name, limit, timeout_ms);
		}
		(void) ConditionVariableTimedSleep(&count->closed, left, PG_WAIT_EXTENSION);
	}
	ConditionVariableCancelSleep();
	return count;
}

void
mongo_connection_limit_leave(MongoConnectionCount *count)
{
	ListCell   *cell;

	foreach(cell, own_counts)
	{
		OwnCount   *own = lfirst(cell);

		if (own->count != count || own->connections == 0)
			continue;
		own->connections--;
		give_back(count, 1);
		return;
	}
}
