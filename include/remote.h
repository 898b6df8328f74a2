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

/*-------------------------------------------------------------------------
 * Counters of the traffic with MongoDB.
 *
 * A connection counts in its own memory, without locks (MongoTraffic).  If the library is in
 * shared_preload_libraries, a connection's new counts are added to two rows of a table in
 * shared memory when the connection returns to the pool: one row per server and user, and
 * one per query.  A session mostly looks up a row under a lock only once.  Adding takes one
 * atomic operation per counter.
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

/*
 * mongo_round_trip_time: returns the shortest time in ms in which this session has received
 * the reply to a single command over a connection of the user mapping that is still open; -1 if
 * there is none.  The command's own time is included.
 */
extern double mongo_round_trip_time(const UserMapping *user);

/* mongo_traffic_commands: returns the number of commands of all kinds. */
extern uint64 mongo_traffic_commands(const MongoTraffic *traffic);

/* A row in shared memory.  The row of a server and user keeps its address. */
typedef struct MongoActivity MongoActivity;

/*
 * mongo_activity_initialize
 *		Requests the shared memory.  Called by _PG_init(), only for shared_preload_libraries.
 */
extern void mongo_activity_initialize(void);

/*
 * mongo_activity_row
 *		Returns the row of a role and a server of the current database; NULL without
 *		shared memory or if the table is full.  Never raises.
 *
 * mongo_activity_use
 *		Sets the row that mongo_activity_count_current() adds to; NULL for none.
 */
extern MongoActivity *mongo_activity_row(Oid serverid, Oid userid);
extern void mongo_activity_use(MongoActivity *activity);

/*
 * mongo_activity_flush
 *		Adds the difference of 'traffic' and 'flushed' to the row and to the row of the
 *		current query, and copies 'traffic' to 'flushed'.  Never raises.
 */
extern void mongo_activity_flush(MongoActivity *activity, const MongoTraffic *traffic,
								 MongoTraffic *flushed);

/*
 * mongo_activity_count, mongo_activity_count_current
 *		Add a count that no connection keeps, at once: to 'activity', which may be NULL, or
 *		to the row of the last mongo_activity_use(), and to that of the current query.
 */
extern void mongo_activity_count(MongoActivity *activity, MongoCounter counter, uint64 count);
extern void mongo_activity_count_current(MongoCounter counter, uint64 count);

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

/*
 * mongo_activity_rows
 *		Returns copies of the rows of queries, or of servers and users, in the current
 *		memory context, and sets *count.  Raises 55000 without shared memory.
 *
 * mongo_activity_reset
 *		Removes the rows of queries, or sets the counts of servers and users to 0, for all
 *		sessions.  Raises 55000 without shared memory.
 */
extern MongoActivityRow *mongo_activity_rows(bool of_queries, int *count);
extern void mongo_activity_reset(bool of_queries);

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

/*
 * mongo_shared_connections
 *		Returns copies of the connections of all sessions of all databases, in the current
 *		memory context, and sets *count.  Raises 55000 without shared memory.
 */
extern MongoSharedConnection *mongo_shared_connections(int *count);

/* What a session waits for; PostgreSQL 17 and newer show the name in pg_stat_activity. */
typedef enum MongoWaitEvent
{
	MONGO_WAIT_CONNECT,			/* for a server to connect to */
	MONGO_WAIT_CONNECTION_LIMIT,	/* for max_connections */
	MONGO_WAIT_REPLY,			/* for a reply, or until a command is sent */
	MONGO_WAIT_CONFLICT,		/* for another transaction that has changed
								 * the same document */
	MONGO_WAIT_COMMIT,			/* before a commit is repeated */
	MONGO_WAIT_SPLIT			/* until a parallel scan is split into ranges */
} MongoWaitEvent;

/*
 * mongo_register_wait_events
 *		Names the wait events, once in a session.  May raise.
 *
 * mongo_wait_event
 *		Returns PostgreSQL's number for it, a general one before that.  Never raises.
 */
extern void mongo_register_wait_events(void);
extern uint32 mongo_wait_event(MongoWaitEvent event);

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

/*
 * mongo_session_for_write
 *		Returns the session in which 'user' writes.  The first call creates it, and begins
 *		its MongoDB transaction.  It lives until the PostgreSQL transaction ends.
 *
 * An UPDATE or DELETE calls this before its scan, so that rows cannot change between being
 * read and being written.  First waits for a batch in flight, and raises its error.  Raises
 * 08001 and 28P01 if connecting fails, and 0A000 after a rolled-back savepoint or if the
 * option "transactions" requires transactions that the server lacks.
 *
 * mongo_session_for_read
 *		Returns the session in which 'user' must read, or NULL outside of a MongoDB
 *		transaction.  A transaction begins by a write, or here if the isolation level
 *		requires one snapshot.  Raises the same, but not the error of a batch in flight.
 *
 * mongo_session_in_transaction
 *		Tells whether the session has a MongoDB transaction.
 */
extern MongoSession *mongo_session_for_write(UserMapping *user);
extern MongoSession *mongo_session_for_read(UserMapping *user);
extern bool mongo_session_in_transaction(const MongoSession *session);

/* -------------- Many writes to one collection in one command -------------- */

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

/*
 * mongo_write_batch_add
 *		Appends a document to the batch, but does not change batch->count.
 *
 * batch->data is allocated in 'context'.  Raises 54000 above MongoDB's limit of 16 MB.
 */
extern void mongo_write_batch_add(MongoWriteBatch *batch, MemoryContext context,
								  const bson_t *document);

/* A batch that is being written. */
typedef struct MongoWriteFlight MongoWriteFlight;

/*
 * mongo_write_batch_begin
 *		Sends the batch, in one command if it fits into MongoDB's 48 MB.
 *
 * Waits for the reply if 'wait' is set, in a MongoDB transaction, and if the batch takes more
 * than one message.  A batch left in flight is settled before the session's next read or write.
 * *batch must exist until mongo_write_batch_finish().  The flight is allocated in a child of
 * 'owner'.  A reset of 'owner' abandons it, and a rollback then warns of its uncertain writes.
 *
 * Raises MongoDB's error, such as 23505 for a duplicate key, 53200, and what interrupts raise.
 * After a lost connection or a change of primary, sends a command once more if MongoDB can
 * recognize the repetition (Retryable Writes specification).
 *
 * mongo_write_batch_finish
 *		Waits for the reply if necessary, sets *result, whose bitmapset is in the current
 *		memory context, and frees the flight.  Raises the same.
 */
extern MongoWriteFlight *mongo_write_batch_begin(MemoryContext owner, MongoSession *session,
												 const MongoWriteBatch *batch, bool wait);
extern void mongo_write_batch_finish(MongoWriteFlight *flight, MongoWriteResult *result);

/*-------------------------------------------------------------------------
 * The order of a session's reads and writes (order.c).
 *-------------------------------------------------------------------------
 */

/* What a command reads or writes.  Names are in UTF-8; NULL stands for any. */
typedef struct MongoExtent
{
	Oid			serverid;
	const char *database;
	const char *collection;
} MongoExtent;

/* mongo_extents_meet: tells whether both include the same collection. */
extern bool mongo_extents_meet(const MongoExtent *one, const MongoExtent *other);

/*
 * A member of a list until it is removed, or its resource owner released: the portal of its
 * statement has failed, and is not used any more.
 */
typedef struct MongoListed
{
	dlist_node	node;
	ResourceOwner owner;		/* NULL: not listed */
} MongoListed;

/*
 * mongo_list_add: adds the member at the end of a list that is static and zero at first.
 * mongo_list_remove: removes a MongoListed; never raises.  Both are idempotent.
 */
extern void mongo_list_add(dlist_head *list, MongoListed *member);
extern void mongo_list_remove(void *listed);

/* A statement's writes to one collection that have not been sent. */
typedef struct MongoUnsent
{
	MongoExtent extent;
	CommandId	command;		/* of the statement */
	int			level;			/* nesting level of the statement */
	void		(*send) (struct MongoUnsent *unsent);	/* sends all of them */
	MongoListed listed;			/* in the list of unsent writes */
} MongoUnsent;

/* mongo_unsent_add: adds to the list of unsent writes. */
extern void mongo_unsent_add(MongoUnsent *unsent);

/* A scan, from its beginning to its end.  It may still send commands. */
typedef struct MongoActiveScan
{
	MongoExtent extent;
	CommandId	command;		/* its snapshot shows writes of earlier ones */
	/* called before a write that it may see and must not */
	void		(*before_write) (struct MongoActiveScan *reader, const MongoExtent *written,
								 MemoryContext statement);
	MongoListed listed;
} MongoActiveScan;

extern dlist_head mongo_readers;

/*
 * mongo_before_read
 *		Sends the unsent writes to 'extent' of all commands before 'command'.  Called before
 *		'extent' is read in a snapshot that shows these writes.
 *
 * Raises what sending raises.  The statement that the writes belong to then fails, too.
 */
extern void mongo_before_read(const MongoExtent *extent, CommandId command);

/*
 * mongo_begin_command
 *		Does what mongo_begin_write() does before an SQL function runs a command in a database
 *		(NULL: any) whose collections are not known.  Sends only writes that the caller's
 *		snapshot shows, and begins and reads scans only if the command 'writes'.
 */
extern MongoSession *mongo_begin_write(UserMapping *user, const MongoExtent *extent,
									   CommandId command, MemoryContext statement);
extern void mongo_begin_command(UserMapping *user, const char *database, bool writes);

/*
 * Logs a command before it is sent, if mongo_fdw.log_remote_query is on.  'at' is the cluster time
 * that it reads at; 0: none is known.
 */
extern void mongo_log_command(const char *database, const bson_t *command, uint64 at);

/* -------------- Running one command, outside of transactions -------------- */

/*
 * mongo_run_command
 *		Runs a command that reads, and returns its reply, in 'context'.  The command must not
 *		contain $db or lsid.  Sends it once more if the connection breaks.
 *
 * mongo_run_write_command
 *		Runs a command that may write, once.  If an interrupt or socket_timeout_ms ends the
 *		wait, MongoDB is told to end the command.  Its changes stay if PostgreSQL rolls back,
 *		which then raises a WARNING.
 *
 * A reply with {ok: 0} raises MongoDB's error with 'context_message'; if that is NULL,
 * mongo_run_command() returns the reply.  Raise 08006 for a lost connection, and what
 * interrupts raise.
 */
extern const bson_t *mongo_run_command(MemoryContext context, UserMapping *user,
									   const char *database, const bson_t *command,
									   const char *context_message);
extern const bson_t *mongo_run_write_command(MemoryContext context, UserMapping *user,
											 const char *database, const bson_t *command,
											 const char *context_message);

/* ------------- This session's connections, for SQL functions -------------- */

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

/*
 * mongo_connections: returns a list of MongoConnectionInfo *.
 *
 * mongo_connections_close
 *		Closes the connections to a server, or all (InvalidOid), and returns whether it
 *		closed one.  Connections in use stay, with a WARNING for each server.
 */
extern List *mongo_connections(void);
extern bool mongo_connections_close(Oid serverid);

/*-------------------------------------------------------------------------
 * Cursors: the documents of a find, aggregate or other command.
 *-------------------------------------------------------------------------
 */

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
	uint64		at;				/* the cluster time to read at, unless at_time
								 * is set and obeyed; 0: none */
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

/*
 * mongo_cursor_open
 *		Creates a cursor on the result of a command, which is sent when the first document is
 *		requested.
 *
 * The cursor and its lease live in 'context', whose reset closes them.  A connection is in use
 * only while a reply is outstanding, so any number of cursors may be open.  If a connection
 * breaks before the first document has been returned, the command is sent once more over a new
 * one (Retryable Reads specification).
 */
extern MongoCursor *mongo_cursor_open(MemoryContext context, const MongoRead *read);

/*
 * mongo_cursor_next
 *		Returns the next document's bytes, or NULL if there are no more.
 *
 * The bytes stay valid until the next call.  *length is the document's own length, which is
 * within the buffer.  Nothing else about the bytes has been validated.  Raises 08006, 08P01,
 * 57014, or the server's error.
 *
 * A change stream is read outside of MongoDB transactions.  It ends with all events up to the
 * time of MongoDB's first reply, or up to one that invalidates it.  Its last document is not
 * MongoDB's: {_id: token, operationType: "position", clusterTime: Date}, the position behind the
 * events.
 */
extern const uint8_t *mongo_cursor_next(MongoCursor *cursor, uint32 *length);

/*
 * mongo_cursor_is_exhausted: tells whether it is known that there are no more documents.
 * mongo_cursor_has_others: tells whether the other commands of its MongoRead are still to be run.
 */
extern bool mongo_cursor_is_exhausted(const MongoCursor *cursor);
extern bool mongo_cursor_has_others(const MongoCursor *cursor);

/*
 * mongo_cursor_is_ready
 *		Tells whether mongo_cursor_next() would return without waiting.  It may still wait for
 *		the rest of a reply that has begun to arrive.
 *
 * If the result is false, there are two cases.  Either the next request is in flight, and
 * mongo_cursor_socket() becomes readable when its reply arrives.  Or all connections are in
 * use, and the request is sent when one is free.  With the option socket_timeout_ms, the result
 * is always true once the request is sent, since only a wait in mongo_cursor_next() has a limit.
 *
 * mongo_cursor_socket
 *		Returns the socket on which the reply will arrive, valid until the next call; or
 *		PGINVALID_SOCKET if nothing is in flight or mongo_cursor_next() has to wait.
 *
 * mongo_cursor_ask_now
 *		Sends the next request at once, unless one is outstanding.  If necessary, first
 *		receives another scan's reply and takes over its connection.  Only for a cursor that
 *		has returned no document, or is not ready and has no socket.
 */
extern bool mongo_cursor_is_ready(MongoCursor *cursor);
extern pgsocket mongo_cursor_socket(MongoCursor *cursor);
extern void mongo_cursor_ask_now(MongoCursor *cursor);

/*
 * mongo_cursor_send_behind
 *		Sends the cursor's command ahead of its time: over an idle connection, or behind the
 *		command of 'first' if the reply to that is outstanding.  If neither is possible, and for
 *		large commands, does nothing.
 *
 * This and mongo_cursor_ask_now() do nothing in MongoDB transactions, and raise what sending
 * raises.
 */
extern void mongo_cursor_send_behind(MongoCursor *cursor, const MongoCursor *first);

/*
 * mongo_cursor_close
 *		Releases the lease, and has the server close the cursor if it is still open there.
 *		Idempotent; accepts NULL.
 */
extern void mongo_cursor_close(MongoCursor *cursor);

/* -------------------------- Reads at a time (read_time.c) ------------------ */

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

/*-------------------------------------------------------------------------
 * Change streams that stay open (event_stream.c).
 *-------------------------------------------------------------------------
 */

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

/* --------- Changing or deleting one document and returning it ------------- */

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

/*
 * mongo_find_and_modify
 *		Sets *document to the updated document, or to the deleted one.  Returns false if the
 *		filter matched none and none was inserted.
 *
 * *document is a view that lives as long as 'context'.  Raises and retries as
 * mongo_write_batch_begin() does.
 */
extern bool mongo_find_and_modify(MongoSession *session, MemoryContext context,
								  const MongoFindAndModify *command,
								  const char *context_message, bson_t *document);

/* ------------------------------ Starting up ------------------------------- */

extern void mongo_register_transaction_callbacks(void);

/* mongo_initialize_library: starts libmongoc, once in a process. */
extern void mongo_initialize_library(void);

/* ------- Errors that a pipeline raises, and error.c recognizes ------------ */

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

#endif							/* MONGO_FDW_REMOTE_H */
