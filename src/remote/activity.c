/*-------------------------------------------------------------------------
 *
 * activity.c
 *		What is counted of the traffic with MongoDB, in shared memory.
 *
 * Rows of servers stay for good; of statements the one that was used the longest
 * ago makes room for a new one.  A session that has its address notices by the
 * generation; the few counts that come in between are another statement's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "port/pg_bitutils.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/backend_status.h"
#include "utils/hsearch.h"

#define MOST_ROWS		1000	/* of servers and users */
#define MOST_STATEMENTS	5000	/* as pg_stat_statements has by default */

/* No padding: the keys are compared as bytes. */
typedef struct ActivityKey
{
	Oid			dbid;
	Oid			serverid;
	Oid			userid;
} ActivityKey;

struct MongoActivity
{
	ActivityKey key;
	pg_atomic_uint64 counters[MONGO_COUNTERS];
};

typedef struct StatementKey
{
	uint64		queryid;
	Oid			dbid;
	Oid			userid;
} StatementKey;

typedef struct Statement
{
	StatementKey key;
	pg_atomic_uint32 generation;	/* how often the place has changed hands */
	pg_atomic_uint64 last_used; /* TimestampTz of a statement's start */
	pg_atomic_uint64 calls;
	pg_atomic_uint64 commands;
	pg_atomic_uint64 documents;
	pg_atomic_uint64 bytes_sent;
	pg_atomic_uint64 bytes_received;
	pg_atomic_uint64 wait_us;
} Statement;

typedef struct Shared
{
	LWLock	   *lock;			/* of both tables, not of what rows count */
} Shared;

static Shared *shared = NULL;
static HTAB *rows;
static HTAB *statements;

/* ------------------------------ a connection -------------------------------- */

static const struct
{
	const char *name;
	MongoCounter kind;
}			command_kinds[] =
{
	{"find", MONGO_COUNT_FIND},
	{"getMore", MONGO_COUNT_GET_MORE},
	{"aggregate", MONGO_COUNT_AGGREGATE},
	{"count", MONGO_COUNT_COUNT},
	{"insert", MONGO_COUNT_INSERT},
	{"update", MONGO_COUNT_UPDATE},
	{"delete", MONGO_COUNT_DELETE},
	{"findAndModify", MONGO_COUNT_FIND_AND_MODIFY},
};

void
mongo_traffic_note_command(MongoTraffic *traffic, const char *name)
{
	MongoCounter kind = MONGO_COUNT_OTHER;

	for (size_t i = 0; i < lengthof(command_kinds); i++)
	{
		if (strcmp(name, command_kinds[i].name) == 0)
		{
			kind = command_kinds[i].kind;
			break;
		}
	}
	mongo_traffic_add(traffic, kind, 1);
}

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

static void
request_memory(void)
{
	if (previous_request_hook)
		previous_request_hook();
	RequestAddinShmemSpace(MAXALIGN(sizeof(Shared)) +
						   hash_estimate_size(MOST_ROWS, sizeof(MongoActivity)) +
						   hash_estimate_size(MOST_STATEMENTS, sizeof(Statement)));
	RequestNamedLWLockTranche("mongo_fdw", 1);
}

static HTAB *
shared_table(const char *name, int size, Size keysize, Size entrysize)
{
	HASHCTL		control = {.keysize = keysize, .entrysize = entrysize};

	return ShmemInitHash(name, size, size, &control, HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
}

static void
find_memory(void)
{
	bool		found;

	if (previous_startup_hook)
		previous_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("mongo_fdw activity", sizeof(Shared), &found);
	if (!found)
		shared->lock = &(GetNamedLWLockTranche("mongo_fdw"))->lock;
	rows = shared_table("mongo_fdw servers", MOST_ROWS, sizeof(ActivityKey),
						sizeof(MongoActivity));
	statements = shared_table("mongo_fdw statements", MOST_STATEMENTS,
							  sizeof(StatementKey), sizeof(Statement));
	LWLockRelease(AddinShmemInitLock);
}

void
mongo_activity_initialize(void)
{
	previous_request_hook = shmem_request_hook;
	shmem_request_hook = request_memory;
	previous_startup_hook = shmem_startup_hook;
	shmem_startup_hook = find_memory;
}

static void
require_memory(void)
{
	if (shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("mongo_fdw must be loaded via \"shared_preload_libraries\"")));
}

/* --------------------------- servers and users ------------------------------ */

static MongoActivity *current_row = NULL;

MongoActivity *
mongo_activity_row(Oid serverid, Oid userid)
{
	ActivityKey key = {.dbid = MyDatabaseId, .serverid = serverid, .userid = userid};
	MongoActivity *row;
	bool		found;

	if (shared == NULL)
		return NULL;
	LWLockAcquire(shared->lock, LW_SHARED);
	row = hash_search(rows, &key, HASH_FIND, NULL);
	LWLockRelease(shared->lock);
	if (row != NULL)
		return row;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	row = hash_search(rows, &key, HASH_ENTER_NULL, &found);
	if (row != NULL && !found)
	{
		for (int i = 0; i < MONGO_COUNTERS; i++)
			pg_atomic_init_u64(&row->counters[i], 0);
	}
	LWLockRelease(shared->lock);
	return row;
}

void
mongo_activity_use(MongoActivity *activity)
{
	current_row = activity;
}

/* -------------------------------- statements -------------------------------- */

/* Where the statements of this session are: a place by hash, for the last to come. */
#define REMEMBERED	256

static struct
{
	StatementKey key;			/* queryid 0: none */
	Statement  *statement;
	uint32		generation;
}			remembered[REMEMBERED];

static void
initialize_statement(Statement *statement)
{
	pg_atomic_init_u64(&statement->last_used, GetCurrentStatementStartTimestamp());
	pg_atomic_init_u64(&statement->calls, 0);
	pg_atomic_init_u64(&statement->commands, 0);
	pg_atomic_init_u64(&statement->documents, 0);
	pg_atomic_init_u64(&statement->bytes_sent, 0);
	pg_atomic_init_u64(&statement->bytes_received, 0);
	pg_atomic_init_u64(&statement->wait_us, 0);
}

/* evict_oldest: the caller has the lock. */
static void
evict_oldest(void)
{
	HASH_SEQ_STATUS scan;
	Statement  *each;
	Statement  *oldest = NULL;

	hash_seq_init(&scan, statements);
	while ((each = hash_seq_search(&scan)) != NULL)
	{
		if (oldest == NULL || pg_atomic_read_u64(&each->last_used) <
			pg_atomic_read_u64(&oldest->last_used))
			oldest = each;
	}
	if (oldest == NULL)
		return;
	pg_atomic_fetch_add_u32(&oldest->generation, 1);
	hash_search(statements, &oldest->key, HASH_REMOVE, NULL);
}

/* find_statement: in shared memory; NULL if there is no room. */
static Statement *
find_statement(const StatementKey *key, uint32 *generation)
{
	Statement  *statement;
	bool		found = true;

	LWLockAcquire(shared->lock, LW_SHARED);
	statement = hash_search(statements, key, HASH_FIND, NULL);
	if (statement != NULL)
		*generation = pg_atomic_read_u32(&statement->generation);
	LWLockRelease(shared->lock);
	if (statement != NULL)
		return statement;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	if (hash_get_num_entries(statements) >= MOST_STATEMENTS)
		evict_oldest();
	statement = hash_search(statements, key, HASH_ENTER_NULL, &found);
	if (statement != NULL && !found)
		initialize_statement(statement);
	if (statement != NULL)
		*generation = pg_atomic_read_u32(&statement->generation);
	LWLockRelease(shared->lock);
	return statement;
}

/*
 * note_call
 *		A statement may use many connections, or one many times.
 */
static void
note_call(Statement *statement)
{
	static Statement *last = NULL;
	static TimestampTz last_start = 0;
	TimestampTz start = GetCurrentStatementStartTimestamp();

	if (statement == last && start == last_start)
		return;
	last = statement;
	last_start = start;
	/* what workers do is part of their leader's call */
	if (!IsParallelWorker())
		pg_atomic_fetch_add_u64(&statement->calls, 1);
	pg_atomic_write_u64(&statement->last_used, start);
}

static Statement *
statement_of(uint64 queryid)
{
	int			place = queryid % REMEMBERED;
	StatementKey key;

	if (remembered[place].key.queryid == queryid &&
		remembered[place].key.userid == GetUserId() &&
		remembered[place].statement != NULL &&
		remembered[place].generation ==
		pg_atomic_read_u32(&remembered[place].statement->generation))
		return remembered[place].statement;

	key = (StatementKey) {
		.queryid = queryid,
		.dbid = MyDatabaseId,
		.userid = GetUserId()
	};
	remembered[place].key = key;
	remembered[place].statement = find_statement(&key, &remembered[place].generation);
	return remembered[place].statement;
}

/* current_statement: NULL where there is no query id. */
static inline Statement *
current_statement(void)
{
	uint64		queryid = (uint64) pgstat_get_my_query_id();

	return queryid != 0 ? statement_of(queryid) : NULL;
}

/* flush_statement: 'more' holds what has come, where its bit is in 'changed'. */
static void
flush_statement(Statement *statement, const uint64 *more, uint32 changed, uint64 commands)
{
	static const struct
	{
		MongoCounter counter;
		size_t		offset;
	}			columns[] =
	{
		{MONGO_COUNT_BYTES_SENT, offsetof(Statement, bytes_sent)},
		{MONGO_COUNT_BYTES_RECEIVED, offsetof(Statement, bytes_received)},
		{MONGO_COUNT_WAIT_US, offsetof(Statement, wait_us)},
	};

	note_call(statement);
	if (commands > 0)
		pg_atomic_fetch_add_u64(&statement->commands, commands);
	for (size_t i = 0; i < lengthof(columns); i++)
	{
		if (changed & (uint32) 1 << columns[i].counter)
			pg_atomic_fetch_add_u64((pg_atomic_uint64 *) ((char *) statement + columns[i].offset),
									more[columns[i].counter]);
	}
}

void
mongo_activity_flush(MongoActivity *activity, MongoTraffic *traffic, MongoTraffic *flushed)
{
	uint64		more[MONGO_COUNTERS];
	uint64		commands = 0;
	Statement  *statement;

	if (activity == NULL || traffic->changed == 0)
		return;
	for (uint32 left = traffic->changed; left != 0; left &= left - 1)
	{
		int			i = pg_rightmost_one_pos32(left);

		more[i] = traffic->counters[i] - flushed->counters[i];
		flushed->counters[i] = traffic->counters[i];
		pg_atomic_fetch_add_u64(&activity->counters[i], more[i]);
		if (i < MONGO_COMMAND_KINDS)
			commands += more[i];
	}
	statement = current_statement();
	if (statement != NULL)
		flush_statement(statement, more, traffic->changed, commands);
	traffic->changed = 0;
}

void
mongo_activity_count(MongoActivity *activity, MongoCounter counter, uint64 count)
{
	Statement  *statement;

	if (activity == NULL || count == 0)
		return;
	pg_atomic_fetch_add_u64(&activity->counters[counter], count);
	if (counter != MONGO_COUNT_DOCUMENTS_READ && counter != MONGO_COUNT_DOCUMENTS_WRITTEN)
		return;
	statement = current_statement();
	if (statement != NULL)
		pg_atomic_fetch_add_u64(&statement->documents, count);
}

void
mongo_activity_count_current(MongoCounter counter, uint64 count)
{
	mongo_activity_count(current_row, counter, count);
}

/* --------------------------------- the views -------------------------------- */

MongoActivityRow *
mongo_activity_rows(int *count)
{
	MongoActivityRow *result;
	HASH_SEQ_STATUS scan;
	MongoActivity *row;

	require_memory();
	result = palloc0(sizeof(MongoActivityRow) * MOST_ROWS);
	*count = 0;
	LWLockAcquire(shared->lock, LW_SHARED);
	hash_seq_init(&scan, rows);
	while ((row = hash_seq_search(&scan)) != NULL)
	{
		MongoActivityRow *copy = &result[(*count)++];

		copy->dbid = row->key.dbid;
		copy->serverid = row->key.serverid;
		copy->userid = row->key.userid;
		for (int i = 0; i < MONGO_COUNTERS; i++)
			copy->traffic.counters[i] = pg_atomic_read_u64(&row->counters[i]);
	}
	LWLockRelease(shared->lock);
	return result;
}

MongoStatementRow *
mongo_statement_rows(int *count)
{
	MongoStatementRow *result;
	HASH_SEQ_STATUS scan;
	Statement  *each;

	require_memory();
	result = palloc0(sizeof(MongoStatementRow) * MOST_STATEMENTS);
	*count = 0;
	LWLockAcquire(shared->lock, LW_SHARED);
	hash_seq_init(&scan, statements);
	while ((each = hash_seq_search(&scan)) != NULL)
	{
		MongoStatementRow *copy = &result[(*count)++];

		copy->dbid = each->key.dbid;
		copy->userid = each->key.userid;
		copy->queryid = each->key.queryid;
		copy->calls = pg_atomic_read_u64(&each->calls);
		copy->usage.commands = pg_atomic_read_u64(&each->commands);
		copy->usage.documents = pg_atomic_read_u64(&each->documents);
		copy->usage.bytes_sent = pg_atomic_read_u64(&each->bytes_sent);
		copy->usage.bytes_received = pg_atomic_read_u64(&each->bytes_received);
		copy->usage.wait_us = pg_atomic_read_u64(&each->wait_us);
	}
	LWLockRelease(shared->lock);
	return result;
}

void
mongo_activity_reset(void)
{
	HASH_SEQ_STATUS scan;
	MongoActivity *row;

	require_memory();
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	hash_seq_init(&scan, rows);
	while ((row = hash_seq_search(&scan)) != NULL)
	{
		for (int i = 0; i < MONGO_COUNTERS; i++)
			pg_atomic_write_u64(&row->counters[i], 0);
	}
	LWLockRelease(shared->lock);
}

void
mongo_statements_reset(void)
{
	HASH_SEQ_STATUS scan;
	Statement  *each;

	require_memory();
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	hash_seq_init(&scan, statements);
	while ((each = hash_seq_search(&scan)) != NULL)
	{
		pg_atomic_fetch_add_u32(&each->generation, 1);
		hash_search(statements, &each->key, HASH_REMOVE, NULL);
	}
	LWLockRelease(shared->lock);
}
