/*-------------------------------------------------------------------------
 *
 * activity.h
 *		What is counted of the traffic with MongoDB.
 *
 * A connection counts in memory of its own, without locks (MongoTraffic).  With the
 * library in shared_preload_libraries, what has come to it is added to two tables in
 * shared memory when the connection is given back to the pool: by server and user,
 * and by query id.  A row is looked up under a lock once in a session; adding takes
 * an atomic operation a counter.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ACTIVITY_H
#define MONGO_FDW_ACTIVITY_H

#include "compat.h"

#include "datatype/timestamp.h"

typedef enum MongoCounter
{
	/* commands, by kind */
	MONGO_COUNT_FIND,
	MONGO_COUNT_GET_MORE,
	MONGO_COUNT_AGGREGATE,
	MONGO_COUNT_COUNT,
	MONGO_COUNT_INSERT,
	MONGO_COUNT_UPDATE,
	MONGO_COUNT_DELETE,
	MONGO_COUNT_FIND_AND_MODIFY,
	MONGO_COUNT_OTHER,			/* also what libmongoc has compressed */

	MONGO_COUNT_BYTES_SENT,		/* on the network, TLS and compression
								 * included */
	MONGO_COUNT_BYTES_RECEIVED,
	MONGO_COUNT_ROUND_TRIPS,	/* replies that have come whole */
	MONGO_COUNT_WAIT_US,		/* microseconds of waiting for the network */
	MONGO_COUNT_DOCUMENTS_READ,
	MONGO_COUNT_DOCUMENTS_WRITTEN,
	MONGO_COUNT_CONNECTIONS,
	MONGO_COUNT_RECONNECTS,		/* of them, in place of one that has broken */
	MONGO_COUNT_ERRORS
} MongoCounter;

#define MONGO_COMMAND_KINDS		(MONGO_COUNT_OTHER + 1)
#define MONGO_COUNTERS			(MONGO_COUNT_ERRORS + 1)

typedef struct MongoTraffic
{
	uint64		counters[MONGO_COUNTERS];
	uint32		changed;		/* those that have grown since the last flush,
								 * as bits */
} MongoTraffic;

static inline void
mongo_traffic_add(MongoTraffic *traffic, MongoCounter counter, uint64 count)
{
	traffic->counters[counter] += count;
	traffic->changed |= (uint32) 1 << counter;
}

/* What a scan has caused. */
typedef struct MongoUsage
{
	uint64		commands;
	uint64		documents;
	uint64		bytes_sent;
	uint64		bytes_received;
	uint64		wait_us;
} MongoUsage;

/*
 * mongo_traffic_note_command
 *		Count a command by its name.
 */
extern void mongo_traffic_note_command(MongoTraffic *traffic, const char *name);

/*
 * mongo_traffic_commands
 *		The number of all kinds.
 */
extern uint64 mongo_traffic_commands(const MongoTraffic *traffic);

/* A row of server and user in shared memory; it stays where it is. */
typedef struct MongoActivity MongoActivity;

/*
 * mongo_activity_initialize
 *		Ask for the shared memory; from _PG_init(), in shared_preload_libraries alone.
 */
extern void mongo_activity_initialize(void);

/*
 * mongo_activity_row
 *		The row of a server of the current database and a role; NULL without shared
 *		memory.  Never raises.
 */
extern MongoActivity *mongo_activity_row(Oid serverid, Oid userid);

/*
 * mongo_activity_use
 *		From now on mongo_activity_count_current() counts for this row, NULL: for none.
 */
extern void mongo_activity_use(MongoActivity *activity);

/*
 * mongo_activity_flush
 *		Add what 'traffic' has more than 'flushed' to the row and to that of the
 *		current query, and make them equal.  Never raises.
 */
extern void mongo_activity_flush(MongoActivity *activity, MongoTraffic *traffic,
								 MongoTraffic *flushed);

/*
 * mongo_activity_count, mongo_activity_count_current
 *		Count at once what no connection counts, for a row, which may be NULL, or for
 *		that of the connection that was taken last.
 */
extern void mongo_activity_count(MongoActivity *activity, MongoCounter counter, uint64 count);

extern void mongo_activity_count_current(MongoCounter counter, uint64 count);

/* Copies of rows, for the views. */
typedef struct MongoActivityRow
{
	Oid			dbid;
	Oid			serverid;
	Oid			userid;
	MongoTraffic traffic;
} MongoActivityRow;

typedef struct MongoStatementRow
{
	Oid			dbid;
	Oid			userid;
	uint64		queryid;
	uint64		calls;
	MongoUsage	usage;
} MongoStatementRow;

/*
 * mongo_activity_rows, mongo_statement_rows
 *		Copies in the current memory context; *count of them.  Without shared memory
 *		they raise 55000.
 */
extern MongoActivityRow *mongo_activity_rows(int *count);
extern MongoStatementRow *mongo_statement_rows(int *count);

/*
 * mongo_activity_reset, mongo_statements_reset
 *		Begin to count anew, for all.  Raise 55000 without shared memory.
 */
extern void mongo_activity_reset(void);
extern void mongo_statements_reset(void);

#endif							/* MONGO_FDW_ACTIVITY_H */
