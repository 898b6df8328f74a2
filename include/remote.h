/*-------------------------------------------------------------------------
 *
 * remote.h
 *		MongoDB: connections, commands, cursors, writes, transactions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_REMOTE_H
#define MONGO_FDW_REMOTE_H

#include "common.h"
#include "options.h"

#include "datatype/timestamp.h"
#include "foreign/foreign.h"
#include "lib/ilist.h"
#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"
#include "utils/resowner.h"

/* -------------------------------- activity.c -------------------------------- */

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
	MONGO_COUNT_OTHER,			/* also commands that libmongoc compressed */

	MONGO_COUNT_BYTES_SENT,		/* on the network, with TLS and compression */
	MONGO_COUNT_BYTES_RECEIVED,
	MONGO_COUNT_ROUND_TRIPS,	/* replies received completely */
	MONGO_COUNT_WAIT_US,		/* microseconds of waiting for the network */
	MONGO_COUNT_DOCUMENTS_READ,
	MONGO_COUNT_DOCUMENTS_WRITTEN,
	MONGO_COUNT_CONNECTIONS,
	MONGO_COUNT_RECONNECTS,		/* those that replaced a broken one */
	MONGO_COUNT_ERRORS
} MongoCounter;

#define MONGO_COMMAND_KINDS		(MONGO_COUNT_OTHER + 1)
#define MONGO_COUNTERS			(MONGO_COUNT_ERRORS + 1)

typedef struct MongoTraffic
{
	uint64		counters[MONGO_COUNTERS];
} MongoTraffic;

static inline void
mongo_traffic_add(MongoTraffic *traffic, MongoCounter counter, uint64 count)
{
	traffic->counters[counter] += count;
}

/* The traffic of one scan. */
typedef struct MongoUsage
{
	uint64		commands;
	uint64		documents;
	uint64		bytes_sent;
	uint64		bytes_received;
	uint64		wait_us;
	uint64		transfer_us;	/* of these, after a reply's first bytes */
} MongoUsage;

/* The server, of the current database, and the role for which traffic is counted. */
typedef struct MongoActivityOwner
{
	Oid			serverid;		/* InvalidOid: it is not counted */
	Oid			userid;
} MongoActivityOwner;

/* A copy of a row, for the views. */
typedef struct MongoActivityRow
{
	uint64		queryid;
	Oid			dbid;
	Oid			serverid;
	Oid			userid;
	uint64		calls;			/* of a query */
	MongoTraffic traffic;
} MongoActivityRow;

/* What a connection does. */
typedef enum MongoConnectionState
{
	MONGO_CONNECTING,
	MONGO_IDLE,
	MONGO_OPEN_CURSOR,			/* idle, but a cursor opened on it is still
								 * being read */
	MONGO_ACTIVE,				/* leased */
	MONGO_IN_TRANSACTION		/* leased by a MongoDB transaction */
} MongoConnectionState;

/* A connection of any session, in shared memory.  Its process writes it without a lock. */
typedef struct MongoSharedConnection
{
	int			pid;			/* of the session; 0: the slot is free */
	Oid			dbid;
	Oid			serverid;
	Oid			userid;			/* the role that uses it */
	MongoConnectionState state;
	TimestampTz state_change;	/* since when it is idle, or the start of the
								 * statement that uses it */
	TimestampTz connected_at;	/* 0: not yet */
	char		host[128];		/* with its port; cut if it is longer */
} MongoSharedConnection;

/* What a session waits for; PostgreSQL 17 and newer show the name in pg_stat_activity. */
typedef enum MongoWaitEvent
{
	MONGO_WAIT_CONNECT,			/* for a server to connect to */
	MONGO_WAIT_CONNECTION_LIMIT,	/* for max_connections */
	MONGO_WAIT_REPLY,			/* for a reply, or until a command is sent */
	MONGO_WAIT_CONFLICT,		/* for another transaction that has changed
								 * the same document */
	MONGO_WAIT_COMMIT			/* before a commit is repeated */
} MongoWaitEvent;

extern uint64 mongo_traffic_commands(const MongoTraffic *traffic);
extern void mongo_activity_initialize(void);
extern void mongo_activity_use(MongoActivityOwner owner);
extern void mongo_activity_flush(MongoActivityOwner owner, const MongoTraffic *traffic,
								 MongoTraffic *flushed);
extern void mongo_activity_count(MongoActivityOwner owner, MongoCounter counter, uint64 count);
extern void mongo_activity_count_current(MongoCounter counter, uint64 count);
extern void mongo_register_wait_events(void);
extern uint32 mongo_wait_event(MongoWaitEvent event);
extern MongoActivityRow *mongo_activity_rows(bool of_queries, int *count);
extern MongoSharedConnection *mongo_shared_connections(int *count);
extern void mongo_activity_reset(bool of_queries);

/* A server to which the last attempt to connect has failed, in shared memory. */
typedef struct MongoServerFailure
{
	Oid			dbid;
	Oid			serverid;
	TimestampTz since;			/* the first of the attempts that failed */
	TimestampTz last;			/* 0: the place is free */
	bool		refused;		/* MongoDB has refused the login */
	char		problem[300];
	char		remedy[300];	/* or "" */
} MongoServerFailure;

extern void mongo_activity_note_failure(bool refused, const char *problem, const char *remedy);
extern void mongo_activity_note_success(Oid serverid);
extern MongoServerFailure *mongo_server_failures(int *count);

/* -------------------------------- connect.c --------------------------------- */

extern void mongo_initialize_library(void);

/* ---------------------------------- pool.c ---------------------------------- */

/* A connection; strings are in the current memory context. */
typedef struct MongoConnectionInfo
{
	Oid			serverid;		/* of a server that may have been dropped */
	Oid			mapping;
	const char *host;			/* with port, or the path of a socket; NULL:
								 * lost */
	const char *role;			/* as libmongoc calls it, such as RSPrimary */
	MongoConnectionState state;
	bool		is_valid;		/* its server and user mapping have not
								 * changed */
	bool		in_transaction; /* used by a MongoDB transaction */
	TimestampTz connected_at;
	TimestampTz idle_since;		/* 0: it is leased */
	MongoTraffic traffic;
	const char *compressor;		/* NULL: none has been used */
	bool		has_tls;
} MongoConnectionInfo;

extern double mongo_round_trip_time(const UserMapping *user);
extern List *mongo_connections(void);
extern bool mongo_connections_close(Oid serverid);

/* ------------------------------ transaction.c ------------------------------- */

/*
 * The state of one user's writes to one server within a PostgreSQL transaction.
 *
 * On a replica set or mongos it has a MongoDB transaction, which commits just before
 * PostgreSQL does and is aborted when PostgreSQL rolls back.  A standalone server has no
 * transactions: each write leases a connection, and a rollback warns that writes stay.
 *
 * https://github.com/mongodb/specifications (Transactions, Driver Sessions)
 */
typedef struct MongoSession MongoSession;

extern void mongo_register_transaction_callbacks(void);
extern MongoSession *mongo_session_for_write(UserMapping *user);
extern MongoSession *mongo_session_for_read(UserMapping *user);
extern bool mongo_session_in_transaction(const MongoSession *session);

/* ------------------------------ write_batch.c ------------------------------- */

/* What each operation of a batch does, and the documents that it consists of. */
typedef enum MongoWriteKind
{
	MONGO_INSERT,				/* document */
	MONGO_INSERT_UNLESS_THERE,	/* filter, {$setOnInsert} */
	MONGO_UPSERT,				/* filter, update or pipeline {"0": stage} */
	MONGO_UPDATE_ONE,			/* filter, update or pipeline */
	MONGO_UPDATE_MANY,			/* filter, update or pipeline */
	MONGO_DELETE_ONE,			/* filter */
	MONGO_DELETE_MANY			/* filter */
} MongoWriteKind;

/* Operations of one kind on one collection, as the bytes of their documents in sequence. */
typedef struct MongoWriteBatch
{
	MongoWriteKind kind;
	const char *database;
	const char *collection;
	const char *context_message;	/* the message of an error */
	bool		ordered;		/* stop at the first operation that fails */
	bool		allow_duplicates;	/* duplicate keys are not errors */
	bool		simple_collation;	/* for filters that compare text */
	bool		by_key;			/* filters are by the option key_columns, not
								 * by _id for ON CONFLICT */
	const char *comment;		/* a table's own; NULL: the server's */
	int64		first_row;		/* the row number of its first operation
								 * within the statement; 0: operations are not
								 * rows */
	int64		rows_before;	/* rows that the statement wrote before */
	int			count;			/* operations */
	char	   *data;			/* palloc'd */
	Size		length;
	Size		capacity;
} MongoWriteBatch;

/* The result of a batch. */
typedef struct MongoWriteResult
{
	int64		written;		/* inserted, matched by updates, or deleted */
	Bitmapset  *refused;		/* indexes of allowed duplicates; for
								 * MONGO_INSERT_UNLESS_THERE also of rows that
								 * existed already */
} MongoWriteResult;

/* A batch that is being written. */
typedef struct MongoWriteFlight MongoWriteFlight;

extern void mongo_write_batch_add(MongoWriteBatch *batch, MemoryContext context,
								  const bson_t *document);
extern bson_t *mongo_write_document(MongoWriteKind kind, const char *collection,
									const bson_t *filter, const bson_t *update,
									bool simple_collation);
extern MongoWriteFlight *mongo_write_batch_begin(MemoryContext owner, MongoSession *session,
												 const MongoWriteBatch *batch, bool wait);
extern void mongo_write_batch_finish(MongoWriteFlight *flight, MongoWriteResult *result);

/* --------------------------------- order.c ---------------------------------- */

/* What a command reads or writes.  Names are in UTF-8; NULL stands for any. */
typedef struct MongoAccessScope
{
	Oid			serverid;
	const char *database;
	const char *collection;
} MongoAccessScope;

/*
 * A member of a list until it is removed, or its resource owner released: the portal of its
 * statement has failed, and is not used any more.
 */
typedef struct MongoListMember
{
	dlist_node	node;
	ResourceOwner owner;		/* NULL: not listed */
} MongoListMember;

/* A statement's writes to one collection that have not been sent. */
typedef struct MongoUnsent
{
	MongoAccessScope scope;
	CommandId	command;		/* of the statement */
	int			level;			/* nesting level of the statement */
	void		(*send) (struct MongoUnsent *unsent);	/* sends all of them */
	MongoListMember listed;		/* in the list of unsent writes */
} MongoUnsent;

/* A scan, from its beginning to its end.  It may still send commands. */
typedef struct MongoActiveScan
{
	MongoAccessScope scope;
	CommandId	command;		/* its snapshot shows writes of earlier ones */
	/* called before a write that it may see and must not */
	void		(*before_write) (struct MongoActiveScan *reader, const MongoAccessScope *written,
								 MemoryContext statement, bool deferred);
	MongoListMember listed;
} MongoActiveScan;

extern dlist_head mongo_active_scans;

extern bool mongo_scopes_overlap(const MongoAccessScope *one, const MongoAccessScope *other);
extern void mongo_list_add(dlist_head *list, MongoListMember *member);
extern void mongo_list_remove(void *listed);
extern void mongo_unsent_add(MongoUnsent *unsent);
extern void mongo_before_read(const MongoAccessScope *scope, CommandId command);
extern MongoSession *mongo_begin_write(UserMapping *user, const MongoAccessScope *scope,
									   CommandId command, MemoryContext statement, bool deferred);
extern void mongo_begin_command(UserMapping *user, const char *database, bool writes);

/* -------------------------------- command.c --------------------------------- */

/* The arguments of MongoDB's findAndModify. */
typedef struct MongoFindAndModify
{
	const char *database;
	const char *collection;		/* both in the database's encoding */
	const bson_t *filter;
	const bson_t *update;		/* operators, a pipeline {"0": stage}, or
								 * NULL: delete */
	const bson_t *fields;		/* projection; NULL: all */
	const char *comment;		/* a table's own; NULL: the server's */
	bool		simple_collation;
	bool		upsert;			/* insert a document if none is found */
} MongoFindAndModify;

extern const bson_t *mongo_run_command(MemoryContext context, UserMapping *user,
									   const char *database, const bson_t *command,
									   const char *context_message);
extern const bson_t *mongo_run_write_command(MemoryContext context, UserMapping *user,
											 const char *database, const bson_t *command,
											 const char *context_message);
extern bson_t *mongo_find_and_modify_document(const MongoFindAndModify *command);
extern bool mongo_find_and_modify(MongoSession *session, MemoryContext context,
								  const MongoFindAndModify *command,
								  const char *context_message, bson_t *document);
extern void mongo_log_command(const char *database, const bson_t *command, uint64 at);
extern void mongo_log_write(const MongoWriteBatch *batch);

/* --------------------------------- cursor.c --------------------------------- */

typedef struct MongoCursor MongoCursor;

/* What to read.  Everything except 'command' must live as long as the cursor. */
typedef struct MongoRead
{
	UserMapping *user;
	const char *database;		/* in UTF-8 */
	const char *collection;		/* as the caller calls it, for messages */
	const bson_t *command;		/* find, aggregate, ..., without $db */
	List	   *others;			/* commands, bson_t *, that are to follow; run
								 * by this cursor only if it is read to its
								 * end before a write, which they must not see */
	int			batch_size;		/* of getMore; 0: the server's default */
	bool		batches_grow;	/* each getMore may request twice as many
								 * documents, until a batch has 4 MB or takes
								 * a second */
	bool		is_far;			/* over a network, and probably to the end:
								 * more than one getMore is in flight */
	bool		is_stream;		/* the command is a change stream, which ends
								 * at the present: see mongo_cursor_next() */
	bool		of_catalog;		/* never part of a MongoDB transaction, which
								 * such a command would end */
	int			max_wait;		/* ms to wait at the present for a first event */
	bool		split_events;	/* events may come in fragments */
	bool		compress;		/* if MongoDB can; not in transactions */
	bool		at_time;		/* obeys mongo_fdw.cluster_time */
	mongoc_read_mode_t read_mode;	/* outside of MongoDB transactions; 0:
									 * that of the server's options */
	const char *comment;		/* a table's own, with the escapes of
								 * remote_internal.h; NULL: the server's */
	const char *read_collection;	/* the only collection read, in UTF-8;
									 * NULL: any of the database */
	const char *reply_field;	/* the reply has this field and no cursor, and
								 * is itself the only document; not in
								 * transactions */
	MongoUsage *usage;			/* the cursor's traffic is added to it, if not
								 * NULL */
} MongoRead;

extern MongoCursor *mongo_cursor_open(MemoryContext context, const MongoRead *read);
extern bool mongo_cursor_is_exhausted(const MongoCursor *cursor);
extern bool mongo_cursor_has_others(const MongoCursor *cursor);
extern void mongo_cursor_close(MongoCursor *cursor);
extern void mongo_cursor_send_behind(MongoCursor *cursor, const MongoCursor *first);
extern bool mongo_cursor_is_ready(MongoCursor *cursor);
extern pgsocket mongo_cursor_socket(MongoCursor *cursor);
extern void mongo_cursor_ask_now(MongoCursor *cursor);
extern const uint8_t *mongo_cursor_next(MongoCursor *cursor, uint32 *length);

/* ------------------------------- read_time.c -------------------------------- */

/* A cluster time is seconds << 32 | number within the second. */
typedef struct MongoReadTime
{
	uint64		at;				/* that all reads see; 0: MongoDB chooses it */
	uint64		after;			/* if it does: not before this one; 0: any */
	int			failure;		/* MongoDB's code of the last read that
								 * failed; 0: none did */
} MongoReadTime;

extern MongoReadTime *mongo_bind_reads(MongoReadTime *time);
extern bool mongo_reads_at_time(uint64 *time);
extern void mongo_refuse_write_at_time(void);
extern uint64 mongo_present_time(UserMapping *user);

/* ------------------------------ event_stream.c ------------------------------ */

typedef struct MongoEventStream MongoEventStream;

extern MongoEventStream *mongo_event_stream_open(MemoryContext context, UserMapping *user,
												 const char *database, const bson_t *command,
												 int *failure);
extern void mongo_event_stream_request(MongoEventStream *stream, int max_wait, int batch_size);
extern bool mongo_event_stream_is_requested(const MongoEventStream *stream);
extern bool mongo_event_stream_is_ready(MongoEventStream *stream);
extern pgsocket mongo_event_stream_socket(MongoEventStream *stream);
extern void mongo_event_stream_receive(MongoEventStream *stream, int *failure);
extern const uint8 *mongo_event_stream_next(MongoEventStream *stream, uint32 *length);
extern uint64 mongo_event_stream_mark(const MongoEventStream *stream);
extern bool mongo_event_stream_is_closed(const MongoEventStream *stream);
extern bool mongo_event_stream_is_merged(const MongoEventStream *stream);

/* ----------- Errors that a pipeline raises, and error.c recognizes ------------ */

/* The text of the error that a pipeline raises if a sum was rounded; becomes 22003. */
#define MONGO_INEXACT_SUM	"a sum has more digits than MongoDB can hold:"

/*
 * The beginning of the error that a pipeline raises if a field does not fit its column;
 * becomes HV004.  Then come the path, "database.collection", the column's type and the BSON
 * type, with MONGO_MISMATCH_SEPARATOR between them.
 */
#define MONGO_MISMATCH			"a field does not fit its column: "
#define MONGO_MISMATCH_SEPARATOR	"; "

/* Replaces the column's type if the option unwind requires an array. */
#define MONGO_MISMATCH_ARRAY	"array"

pg_noreturn extern void mongo_raise_mismatch(const char *field, const char *namespace,
											 const char *type, const char *found);

#endif							/* MONGO_FDW_REMOTE_H */
