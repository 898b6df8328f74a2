/*-------------------------------------------------------------------------
 *
 * remote.h
 *		MongoDB: connections, commands, cursors, writes, transactions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_REMOTE_H
#define MONGO_FDW_REMOTE_H

#include "compat.h"
#include "options.h"

#include "datatype/timestamp.h"
#include "foreign/foreign.h"
#include "lib/ilist.h"
#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"

/*-------------------------------------------------------------------------
 * What is counted of the traffic with MongoDB.
 *
 * A connection counts in memory of its own, without locks (MongoTraffic).  With the
 * library in shared_preload_libraries, what has come to it is added to rows of a table in
 * shared memory when the connection is given back to the pool: that of server and user,
 * and that of the query.  A row is looked up under a lock once in a session; adding takes
 * an atomic operation a counter.
 *-------------------------------------------------------------------------
 */

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
} MongoTraffic;

static inline void
mongo_traffic_add(MongoTraffic *traffic, MongoCounter counter, uint64 count)
{
	traffic->counters[counter] += count;
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

/* mongo_traffic_commands: the number of all kinds. */
extern uint64 mongo_traffic_commands(const MongoTraffic *traffic);

/* A row in shared memory; one of server and user stays where it is. */
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
 *
 * mongo_activity_use
 *		From now on mongo_activity_count_current() counts for this row, NULL: for none.
 */
extern MongoActivity *mongo_activity_row(Oid serverid, Oid userid);
extern void mongo_activity_use(MongoActivity *activity);

/*
 * mongo_activity_flush
 *		Add what 'traffic' has more than 'flushed' to the row and to that of the
 *		current query, and make them equal.  Never raises.
 */
extern void mongo_activity_flush(MongoActivity *activity, const MongoTraffic *traffic,
								 MongoTraffic *flushed);

/*
 * mongo_activity_count, mongo_activity_count_current
 *		Count at once what no connection counts, for a row, which may be NULL, or for
 *		that of the connection that was taken last.
 */
extern void mongo_activity_count(MongoActivity *activity, MongoCounter counter, uint64 count);
extern void mongo_activity_count_current(MongoCounter counter, uint64 count);

/* The copy of a row, for the views. */
typedef struct MongoActivityRow
{
	uint64		queryid;
	Oid			dbid;
	Oid			serverid;
	Oid			userid;
	uint64		calls;			/* of a query */
	MongoTraffic traffic;
} MongoActivityRow;

/*
 * mongo_activity_rows
 *		Copies of the rows of queries, or of servers and users, in the current memory
 *		context; *count of them.  Raises 55000 without shared memory.
 *
 * mongo_activity_reset
 *		Begin to count these anew, for all.  Likewise.
 */
extern MongoActivityRow *mongo_activity_rows(bool of_queries, int *count);
extern void mongo_activity_reset(bool of_queries);

/*
 * What this backend's writes to one user mapping run in, for the rest of a PostgreSQL
 * transaction.  On a replica set or mongos it holds a MongoDB transaction, which commits
 * before PostgreSQL does and is aborted when PostgreSQL rolls back.  A standalone server has
 * no transactions: a session there is only a way to reach it, and a rollback warns.
 *
 * https://github.com/mongodb/specifications (Transactions, Driver Sessions)
 */
typedef struct MongoSession MongoSession;

/*
 * mongo_session_for_write
 *		The session in which 'user' writes; opened by the first call.
 *
 * To be called before the scan whose rows an UPDATE or DELETE changes, so that
 * what it reads cannot change before it is written.  Raises what connecting does
 * (08001, 28P01), 25006 in a read-only transaction, 0A000 where the
 * option "transactions" requires what the server does not have or after a
 * rolled-back savepoint.
 *
 * mongo_session_for_read
 *		The session in which 'user' must read; NULL unless the MongoDB transaction has been
 *		opened, by a write or because the isolation level asks for one snapshot.  Raises the
 *		same.
 *
 * mongo_session_in_transaction
 *		Does it hold a MongoDB transaction?
 */
extern MongoSession *mongo_session_for_write(UserMapping *user);
extern MongoSession *mongo_session_for_read(UserMapping *user);
extern bool mongo_session_in_transaction(const MongoSession *session);

/* -------------- Many writes to one collection in one command -------------- */

/* What each operation of a batch does, and the documents it consists of. */
typedef enum MongoWriteKind
{
	MONGO_INSERT,				/* document */
	MONGO_INSERT_UNLESS_THERE,	/* filter, {$setOnInsert} */
	MONGO_UPSERT,				/* filter, update or pipeline {"0": stage} */
	MONGO_UPDATE_ONE,			/* likewise */
	MONGO_UPDATE_MANY,			/* likewise */
	MONGO_DELETE_ONE,			/* filter */
	MONGO_DELETE_MANY			/* filter */
} MongoWriteKind;

/*
 * Operations of one kind on one collection, one after the other: the bytes of their
 * documents.
 */
typedef struct MongoWriteBatch
{
	MongoWriteKind kind;
	const char *database;
	const char *collection;
	const char *context_message;	/* names what is attempted */
	bool		ordered;		/* nothing is tried after one that failed */
	bool		allow_duplicates;	/* duplicate keys are no error */
	bool		simple_collation;	/* for filters that compare text */
	bool		by_key;			/* filters are not by _id for ON CONFLICT, but
								 * by the option key_columns */
	const char *comment;		/* a table's own; NULL: the server's */
	int64		first_row;		/* number of the first of them in its
								 * statement; 0: they are no rows */
	int64		rows_before;	/* that the statement had written */
	int			count;			/* operations */
	char	   *data;			/* palloc'd */
	Size		length;
	Size		capacity;
} MongoWriteBatch;

/* What a batch did. */
typedef struct MongoWriteResult
{
	int64		written;		/* inserted, matched by updates, or deleted */
	Bitmapset  *refused;		/* indexes of duplicates, if allowed; of
								 * MONGO_INSERT_UNLESS_THERE also those that
								 * were there already */
} MongoWriteResult;

/*
 * mongo_write_batch_add
 *		Append a document to the batch; the caller counts operations.
 *
 * 'context' is where batch->data lives.  Raises 54000 above 16 MB, which is
 * MongoDB's limit.
 */
extern void mongo_write_batch_add(MongoWriteBatch *batch, MemoryContext context,
								  const bson_t *document);

/* A batch that is being written.  Opaque. */
typedef struct MongoWriteFlight MongoWriteFlight;

/*
 * mongo_write_batch_begin
 *		Send the batch, in one command up to MongoDB's 48 MB.
 *
 * Its reply is waited for if 'wait', and also in a MongoDB transaction and for what takes more
 * than one message.  Others of a session go before its other statements.
 * *batch must stay until mongo_write_batch_finish().  The flight lives in 'owner', whose reset
 * gives it up: what is then not known to be written stays doubtful.
 *
 * Raises MongoDB's error, 23505 for a duplicate key, 53200, and what interrupts bring.
 * Writes are sent once more after a lost connection, or to another primary, where MongoDB can
 * recognize a repetition (Retryable Writes specification).
 *
 * mongo_write_batch_finish
 *		Wait for what is not there yet.  Raises the same.
 */
extern MongoWriteFlight *mongo_write_batch_begin(MemoryContext owner, MongoSession *session,
												 const MongoWriteBatch *batch, bool wait);
extern void mongo_write_batch_finish(MongoWriteFlight *flight, MongoWriteResult *result);

/*-------------------------------------------------------------------------
 * The order of what a session reads and writes (order.c).
 *-------------------------------------------------------------------------
 */

/* What a command reads or writes, names in UTF-8; NULL: any database, any collection. */
typedef struct MongoExtent
{
	Oid			serverid;
	const char *database;
	const char *collection;
} MongoExtent;

/* Have they a collection in common? */
extern bool mongo_extents_meet(const MongoExtent *one, const MongoExtent *other);

/* Writes to one collection that have not been sent. */
typedef struct MongoUnsent
{
	MongoExtent extent;
	CommandId	command;		/* the statement's */
	int			level;			/* its nesting level */
	void		(*send) (struct MongoUnsent *unsent);	/* all of them */
	dlist_node	node;
	bool		listed;
} MongoUnsent;

/*
 * mongo_unsent_add, mongo_unsent_remove
 *		There are some, there are none any more.  Idempotent; do not raise.
 */
extern void mongo_unsent_add(MongoUnsent *unsent);
extern void mongo_unsent_remove(MongoUnsent *unsent);

/*
 * mongo_before_read
 *		To be called before 'extent' is read in a snapshot that shows what commands
 *		before 'command' have written: these writes are sent first.
 *
 * Raises what sending them does; their own statement then fails, too.
 */
extern void mongo_before_read(const MongoExtent *extent, CommandId command);

/*
 * mongo_begin_write
 *		mongo_session_for_write(), and what has to come before 'extent' is written to: what
 *		others have written to it is sent, and the open cursors that may meet the change are
 *		read to their end.
 *
 * mongo_begin_command
 *		Likewise before a function runs a command, of which nothing more is known: what
 *		commands before the one that calls it have written is sent.  'database' may be NULL.
 */
extern MongoSession *mongo_begin_write(UserMapping *user, const MongoExtent *extent);
extern void mongo_begin_command(UserMapping *user, const char *database, bool writes);

/* ---------------- Run one command, outside of transactions ---------------- */

/*
 * mongo_run_command
 *		Run a command that reads, which must not hold $db or lsid, and return its reply, in
 *		'context'.  It is sent once more where the connection breaks.
 *
 * mongo_run_write_command
 *		Run one that may write, once.  Given up by an interrupt or by socket_timeout_ms it is
 *		ended in MongoDB as well.  What it has changed stays, which a WARNING says when
 *		PostgreSQL rolls back.
 *
 * A reply with {ok: 0} raises what MongoDB says, under 'context_message' (without one, NULL,
 * it is returned like any other), as do a lost connection (08006) and interrupts.
 */
extern const bson_t *mongo_run_command(MemoryContext context, UserMapping *user,
									   const char *database, const bson_t *command,
									   const char *context_message);
extern const bson_t *mongo_run_write_command(MemoryContext context, UserMapping *user,
											 const char *database, const bson_t *command,
											 const char *context_message);

/* ------- The connections that this session has, for who asks in SQL ------- */

/* One of them; strings are in the current memory context. */
typedef struct MongoConnectionInfo
{
	Oid			serverid;		/* which may have been dropped since */
	Oid			mapping;
	const char *host;			/* with port, or the path of a socket; NULL:
								 * lost */
	const char *role;			/* as libmongoc calls it, such as RSPrimary */
	bool		is_active;		/* something holds it */
	bool		has_cursor;		/* nothing does, but a cursor is open there */
	bool		is_valid;		/* its server and user mapping are as they
								 * were */
	bool		in_transaction; /* of MongoDB's */
	TimestampTz connected_at;
	TimestampTz idle_since;		/* 0: is_active */
	MongoTraffic traffic;
	const char *compressor;		/* NULL: none */
	bool		has_tls;
} MongoConnectionInfo;

/*
 * mongo_connections: a list of MongoConnectionInfo *.
 *
 * mongo_connections_close
 *		Close those to a server, or all (InvalidOid); was there one to close?  What is in use
 *		stays, with a WARNING for each server.
 */
extern List *mongo_connections(void);
extern bool mongo_connections_close(Oid serverid);

/*-------------------------------------------------------------------------
 * "Open this cursor, next document": what execution knows of transport.
 *-------------------------------------------------------------------------
 */

typedef struct MongoCursor MongoCursor;

/*
 * Called before a write, if a scan will run more commands after this cursor's that must not
 * see the write: passes their documents to mongo_cursor_keep().  'kept' is the number of
 * this cursor's own documents that are kept.
 */
typedef void (*MongoCursorRead) (MongoCursor *cursor, int64 kept, void *arg);

/* What to read.  All of it but 'command' must live as long as the cursor. */
typedef struct MongoRead
{
	UserMapping *user;
	const char *database;		/* in UTF-8 */
	const char *collection;		/* as the caller calls it, for messages */
	const bson_t *command;		/* find, aggregate, ..., without $db */
	int			batch_size;		/* what getMore asks for; 0: the server's
								 * default */
	bool		batches_grow;	/* each getMore may ask for twice as many
								 * documents as the last, up to batches of 4
								 * MB or of a second */
	mongoc_read_mode_t read_mode;	/* where it is not the server's (0) and
									 * there is no transaction of MongoDB's */
	const char *comment;		/* a table's own, with the escapes of
								 * remote_internal.h; NULL: the server's */
	const char *read_collection;	/* in UTF-8: nothing else is read; NULL:
									 * any of the database may be */
	const char *reply_field;	/* the reply has no cursor, but this field: it
								 * is the only document.  Outside of
								 * transactions alone */
	MongoUsage *usage;			/* what the cursor causes is added to it; or
								 * NULL */
	MongoCursorRead read_others;	/* or NULL */
	void	   *read_others_arg;
} MongoRead;

/*
 * mongo_cursor_open
 *		A cursor on the result of a command, which is sent when the first document is asked
 *		for.
 *
 * The cursor and its lease live in 'context' and are given back when that goes, at the
 * latest.  A connection is in use only while a reply is outstanding, so any number of cursors
 * may be open.  A connection that breaks before the first document has been handed out is
 * replaced and the command sent once more (Retryable Reads specification).
 */
extern MongoCursor *mongo_cursor_open(MemoryContext context, const MongoRead *read);

/* mongo_cursor_keep: of MongoCursorRead. */
extern void mongo_cursor_keep(MongoCursor *cursor, const uint8_t *document, uint32 length);

/*
 * mongo_cursor_next
 *		The next document's bytes, or NULL when there are no more.
 *
 * The bytes are inside the reply buffer and stay valid until the next call.
 * *length is what the document says of itself and is inside the buffer;
 * nothing else about the bytes has been validated.  Raises 08006, 08P01,
 * 57014, or the server's error.
 */
extern const uint8_t *mongo_cursor_next(MongoCursor *cursor, uint32 *length);

/* mongo_cursor_is_exhausted: is it known that there are no more documents? */
extern bool mongo_cursor_is_exhausted(const MongoCursor *cursor);

/*
 * mongo_cursor_is_ready
 *		Would mongo_cursor_next() return without waiting, but for the rest of a reply
 *		that has begun to arrive?
 *
 * If not, the next request is in flight, and mongo_cursor_socket() becomes readable with
 * its reply; or all connections are in use, and the request is sent when one is free.
 * With the option socket_timeout_ms always true once the request is sent: only a wait of
 * our own has a limit.
 *
 * mongo_cursor_socket
 *		The socket that the reply comes on, valid until the next call; or
 *		PGINVALID_SOCKET if nothing is in flight or mongo_cursor_next() has to wait.
 *
 * mongo_cursor_ask_now
 *		Send the request at once, if necessary over another scan's connection after its
 *		reply has been received.  Only for a cursor that is not ready and has no socket.
 */
extern bool mongo_cursor_is_ready(MongoCursor *cursor);
extern pgsocket mongo_cursor_socket(MongoCursor *cursor);
extern void mongo_cursor_ask_now(MongoCursor *cursor);

/*
 * mongo_cursor_close
 *		Give the lease back; tells the server when the cursor is still open
 *		there.  Idempotent; NULL is accepted.
 */
extern void mongo_cursor_close(MongoCursor *cursor);

/* ------- Change or delete one document and have it, in one command -------- */

/* What to do; see MongoDB's findAndModify. */
typedef struct MongoFindAndModify
{
	const char *database;
	const char *collection;		/* in the database's encoding, as is the
								 * former */
	const bson_t *filter;
	const bson_t *update;		/* operators, a pipeline {"0": stage}, or
								 * NULL: delete */
	const bson_t *fields;		/* projection; NULL: all */
	const char *comment;		/* a table's own; NULL: the server's */
	bool		simple_collation;
	bool		upsert;			/* insert what 'update' makes, if none is
								 * found */
} MongoFindAndModify;

/*
 * mongo_find_and_modify
 *		The document after its update, or as it was before it was deleted; false
 *		when the filter matched none and none was inserted.
 *
 * *document is a view that lives as long as 'context'.  Raises and retries as
 * mongo_write_batch_begin() does.
 */
extern bool mongo_find_and_modify(MongoSession *session, MemoryContext context,
								  const MongoFindAndModify *command,
								  const char *context_message, bson_t *document);

/* --------------------------- Starting libmongoc --------------------------- */

/* mongo_initialize_library: start libmongoc, unless that has been done. */
extern void mongo_initialize_library(void);

/* ------------- Errors that a pipeline raises, for error.c ----------------- */

/*
 * What a pipeline makes MongoDB's error say where it finds that a sum has been
 * rounded; raised as 22003.
 */
#define MONGO_INEXACT_SUM	"a sum has more digits than MongoDB can hold:"

/*
 * What a pipeline makes MongoDB's error say where it finds that a document does
 * not fit its column; raised as HV004.  What follows, each but the last with
 * MONGO_MISMATCH_SEPARATOR behind it: path, "database.collection", the type of the
 * column, the BSON type.
 */
#define MONGO_MISMATCH			"a field does not fit its column: "
#define MONGO_MISMATCH_SEPARATOR	"; "

/* What stands for the type where the option unwind wants an array. */
#define MONGO_MISMATCH_ARRAY	"array"

#endif							/* MONGO_FDW_REMOTE_H */
