/*-------------------------------------------------------------------------
 *
 * remote_internal.h
 *		Declarations that the files of src/remote share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_REMOTE_INTERNAL_H
#define MONGO_FDW_REMOTE_INTERNAL_H

#include "common.h"
#include "options.h"
#include "remote.h"

#include <netdb.h>
#include <sys/socket.h>

#include "access/xact.h"
#include "datatype/timestamp.h"
#include "foreign/foreign.h"
#include "lib/ilist.h"
#include "port/pg_bswap.h"
#include "storage/latch.h"
#include "utils/hsearch.h"
#include "utils/resowner.h"
#include "utils/tuplestore.h"

/* --------------------------------- stream.c --------------------------------- */

/*
 * Which interrupts end the wait for a reply.
 *
 * MONGO_ANY_INTERRUPT, for reads: any that CHECK_FOR_INTERRUPTS() would serve.  The caller then
 * serves it; the leader of a parallel query, for example, has to receive its workers' messages.
 * MONGO_DUE_INTERRUPT, for writes: only those that end the statement or the session.
 */
typedef enum MongoInterrupts
{
	MONGO_ANY_INTERRUPT,
	MONGO_DUE_INTERRUPT
} MongoInterrupts;

/*
 * A limit on the time for ending a transaction or an abandoned write.  One deadline limits all
 * waits together.  An interrupt, held off or not, is not served, but may shorten the time.
 */
typedef struct MongoEnding
{
	bool		active;
	TimestampTz deadline;		/* of all waits together */
	int			interrupt_ms;	/* time left after an interrupt is noticed; 0:
								 * unchanged */
} MongoEnding;

/*
 * What the streams of one connection share: their limits, and why they have stopped.  libmongoc
 * may open several streams while it connects.  Once 'interrupted' is set, every operation on
 * them fails.
 */
typedef struct MongoTransport
{
	bool		interrupted;	/* a wait was interrupted or abandoned, or
								 * libmongoc's client is being destroyed */
	ErrorData  *wait_error;		/* an ERROR raised while waiting, or NULL */
	size_t		memory_missing; /* bytes that could not be allocated, or 0 */
	bool		use_tls;
	mongoc_ssl_opt_t ssl_options;	/* strings are in the connection's context */
	int			connect_timeout_ms;
	MongoTcpOptions tcp;
	bool		out_of_files;	/* no file descriptor was left for a stream */
	char		failure[400];	/* why attempts to connect failed, or "" */
	const char *replica_set;	/* to which the servers must belong, or NULL */
	const char *violation;		/* what was wrong with a reply, or NULL */
	TimestampTz enough_at;		/* when libmongoc's scan of members ends,
								 * since one that suits has replied; DT_NOEND:
								 * not yet */
	int			wait_limit_ms;	/* limit of each wait; 0: none */
	int			socket_timeout_ms;	/* limit of each wait for the server; 0:
									 * none */
	bool		timed_out;		/* a wait exceeded socket_timeout_ms */
	bool		lock_timed_out; /* a write waited too long for a document */
	bool		last_failed;	/* the last send or receive lost the
								 * connection or timed out */
	int			reply_code;		/* MongoDB's error code in the last reply that
								 * libmongoc has read, or 0 */
	MongoEnding ending;
	struct sockaddr_storage peer;	/* address to connect to */
	socklen_t	peer_length;	/* 0: resolve the host's name instead */
	MongoTraffic traffic;		/* of all streams so far */
	dlist_head	streams;		/* MongoStream, newest first */
	struct MongoStream *data_stream;	/* the one taken over from libmongoc,
										 * or NULL */
} MongoTransport;

/* As a timeout for libmongoc's functions: no limit.  See limited_end(). */
#define MONGO_NO_TIMEOUT	INT32_MAX

/*
 * One socket with interruptible waits.  vtable comes first, since libmongoc uses the struct as a
 * mongoc_stream_t.
 *
 * Its functions never raise, as a longjmp must not cross libmongoc's frames.  Instead, the read
 * or write fails, the transport notes why, and every further operation fails.  libmongoc
 * unwinds, and our code then calls mongo_transport_raise().  A stream is malloc'd, since
 * libmongoc decides when to destroy it.
 */
typedef struct MongoStream
{
	mongoc_stream_t vtable;
	dlist_node	node;			/* in transport->streams */
	MongoTransport *transport;
	mongoc_stream_t *top;		/* carries messages: this stream, or TLS on
								 * top of it */
	mongoc_stream_t *guard;		/* MongoGuard on top of that, or NULL */
	size_t		guarded;		/* bytes that the guard has checked and not
								 * yet passed on */
	char		host_and_port[BSON_HOST_NAME_MAX + 32];
	pgsocket	socket;
	bool		external_fd;	/* AcquireExternalFD() was granted */
	bool		is_connecting;	/* nothing has been sent or received yet */
	int			last_errno;		/* of the last operation; 0 at end of file */
	WaitEventSet *wait_set;		/* made at the first wait */
} MongoStream;

/* Tells whether more than an interrupt has broken a wait. */
static inline bool
mongo_transport_has_failed(const MongoTransport *transport)
{
	return transport->timed_out || transport->wait_error != NULL || transport->memory_missing > 0;
}

static inline void
mongo_finish_ending(MongoTransport *transport)
{
	transport->ending.active = false;
}

extern bool mongo_stream_wait(MongoStream *stream, int events, long timeout_ms);
extern bool mongo_stream_wait_for_reply(MongoStream *stream, MongoInterrupts interrupts);
extern bool mongo_stream_has_input(MongoStream *stream);
extern MongoStream *mongo_stream_new(MongoTransport *transport, pgsocket socket,
									 const char *host_and_port);
extern bool mongo_may_open_connection(void);
extern void mongo_set_connect_error(bson_error_t *error, const char *host_and_port, int code);
extern void mongo_transport_note_failure(MongoTransport *transport, const char *text);
extern void mongo_transport_note_violation(struct MongoStream *stream, const char *violation);
extern void mongo_transport_reset(MongoTransport *transport);
extern void mongo_transport_close(MongoTransport *transport);
extern void mongo_transport_shut_down(MongoTransport *transport);
extern void mongo_begin_ending(MongoTransport *transport, int total_ms, int interrupt_ms);
extern void mongo_transport_note_memory(MongoTransport *transport, size_t size);
extern void mongo_transport_raise(MongoTransport *transport);
extern bool mongo_interrupt_is_due(bool although_held);

/* -------------------------------- resolve.c --------------------------------- */

extern struct addrinfo *mongo_resolve_host(MongoTransport *transport, const char *host, uint16 port,
										   long timeout_ms, bson_error_t *error);
extern bool mongo_resolve_service(MongoTransport *transport, const mongoc_uri_t *uri,
								  long timeout_ms, bson_error_t *error);

/* ------------------------------- handshake.c -------------------------------- */

extern mongoc_stream_t *mongo_guard_new(MongoStream *stream);
extern void mongo_guard_release(MongoStream *stream);

/* ---------------------------------- uri.c ----------------------------------- */

extern void mongo_uri_create(const MongoConnectionOptions *options, MongoTransport *transport,
							 mongoc_uri_t **created);
extern void mongo_uri_offer_compressors(mongoc_uri_t *uri);
extern bool mongo_uri_is_single(const mongoc_uri_t *uri);

/* ---------------------------------- wire.c ---------------------------------- */

#define OP_REPLY			1	/* answers libmongoc's first "hello" */
#define OP_COMPRESSED		2012
#define OP_MSG				2013

#define FLAG_MORE_TO_COME	0x2

#define HEADER_SIZE			16	/* messageLength requestID responseTo opCode */
#define BODY_OFFSET			(HEADER_SIZE + 4 + 1)	/* flagBits, section kind */
#define SMALLEST_DOCUMENT	5

/* OP_COMPRESSED: originalOpcode, uncompressedSize, compressorId, then the rest */
#define COMPRESSED_OFFSET	(HEADER_SIZE + 4 + 4 + 1)

/* maxMessageSizeBytes, and 16 kB for the command's other fields */
#define LARGEST_MESSAGE		(48000000 + 16384)

static inline void
put_int32(uint8 *destination, uint32 value)
{
	value = BSON_UINT32_TO_LE(value);
	memcpy(destination, &value, 4);
}

static inline uint32
get_int32(const uint8 *source)
{
	uint32		value;

	memcpy(&value, source, 4);
	return BSON_UINT32_FROM_LE(value);
}

/* Space for a message. */
typedef struct MongoBuffer
{
	uint8	   *data;			/* NULL: none yet */
	size_t		capacity;
} MongoBuffer;

/* A field of a reply, saved to be sent with later commands: a cluster time or a token. */
typedef struct MongoSavedField
{
	uint32		length;			/* 0: none */
	uint8		bytes[512];
} MongoSavedField;

/*
 * The MongoDB session that a connection writes in; it ends with the connection.
 *
 * MongoDB can end a write by the id of its session.  It recognizes a repeated write, and a
 * transaction, by the session's id and a number.
 * https://github.com/mongodb/specifications (Driver Sessions, Retryable Writes)
 */
typedef struct MongoServerSession
{
	int			minutes;		/* logicalSessionTimeoutMinutes; 0: the server
								 * has no sessions */
	bson_t	   *lsid;			/* NULL: not needed yet */
	int64		number;			/* txnNumber of the last write that had one */
	TimestampTz used_at;
} MongoServerSession;

/* A reply.  Its buffers are reused for the next reply. */
typedef struct MongoReply
{
	MemoryContext context;		/* where the buffers are palloc'd */
	uint32		request_id;		/* of the request that it replies to */
	MongoBuffer message;
	MongoBuffer compressed;		/* the received bytes, if compressed */
	const uint8 *document;		/* in 'message'; NULL: no reply yet */
	uint32		length;			/* of the document */
	MongoUsage *usage;			/* its traffic is added here, if not NULL */

	/* a reply that is not complete */
	size_t		received;
	size_t		expected;		/* 0: not known yet */
	bool		is_compressed;
	uint64		first_wait;		/* MONGO_COUNT_WAIT_US when it began */
} MongoReply;

/*
 * One connection, and what is known of its server.
 *
 * Invariant: in_flight counts the requests whose reply has not been received completely.  A
 * connection that nobody has leased, with in_flight > 0, is parked: it is used again when these
 * replies have been received.  One that is 'broken' is closed.  The pool owns the connection.
 * Its strings live in 'context', a child of TopMemoryContext that contains it.
 */
typedef struct MongoConnection
{
	dlist_node	node;			/* in the pool's list */
	Oid			umid;			/* of its user mapping */
	int			leases;			/* that have it; 0: idle */
	MemoryContext context;
	MongoTransport transport;
	bool		broken;
	int			in_flight;
	bool		has_queue;		/* a reply may come without being waited for */
	MongoReply	abandoned;		/* the next reply, if nobody waits for it */
	bool		given_up;		/* MongoDB has been told that nobody waits */
	uint32		last_request_id;
	uint32		unanswered;		/* requests that asked for no reply */
	MongoBuffer request;		/* the request being built; malloc'd */
	MongoBuffer compressed;		/* the same as OP_COMPRESSED; malloc'd */
	uint64		waited_before;	/* MONGO_COUNT_WAIT_US at the last send */
	uint64		round_trip_us;	/* the shortest time from sending a command to
								 * its reply; 0: none yet */

	/* options, and what the pool records */
	Oid			serverid;
	const char *server_name;	/* for messages */
	uint32		server_hashvalue;	/* as syscache callbacks identify them */
	uint32		mapping_hashvalue;
	bool		retired;		/* its server or user mapping has changed */
	MongoConnectionOptions *options;
	mongoc_read_mode_t read_mode;	/* given to mongo_connection_open() */
	const char *comment;		/* from mongo_trace_prepare(); NULL: none is
								 * sent */
	struct MongoActivity *counted;	/* shared memory that counts it, or NULL */
	MongoSharedConnection *shared;	/* shared memory that shows it, or NULL */
	MongoTraffic flushed;		/* the part of the transport's traffic that
								 * shared memory has */
	TimestampTz connected_at;
	long		opening_ms;		/* what connecting took */
	TimestampTz idle_since;		/* 0: never used yet */
	int			cursors;		/* opened on it and still being read */
	bool		in_transaction; /* is used by the MongoDB transaction of the
								 * current transaction */
	bool		is_dedicated;	/* to a change stream, which outlives
								 * transactions */

	/* elements to append to a command; NULL: none */
	bson_t	   *read_preference;	/* $readPreference */
	bson_t	   *read_concern;	/* readConcern */
	const char *transaction_level;	/* its level in transactions, or NULL */
	bson_t	   *write_concern;	/* writeConcern, to writes outside of
								 * transactions */

	/* the server */
	mongoc_uri_t *uri;			/* made from the options */
	mongoc_uri_t *identity;		/* the same, completed by libmongoc, for other
								 * connections to the server */
	char		host[BSON_HOST_NAME_MAX + 32];	/* with its port */
	struct sockaddr_storage peer;	/* its last address */
	socklen_t	peer_length;	/* 0: never connected */
	const char *server_type;	/* in libmongoc's terms */
	const MongoCompressor *compressor;	/* negotiated, or NULL */
	bool		compresses;		/* all commands, since the options say so */
	bool		has_compressed; /* a command */
	int			compression_level;
	MongoServerSession session;
	MongoSavedField cluster_time;	/* the last one received */
	uint64		reached;		/* a time that it has, for reads at a time */
	bool		is_standalone;	/* so it lacks transactions */
	bool		takes_writes;	/* writes may be sent to it; false: it is a
								 * secondary */
	bool		retries_writes; /* the server recognizes repeated writes, and
								 * retryWrites is not false */
	int			most_writes;	/* per message: maxWriteBatchSize */
	int			longest_message;	/* maxMessageSizeBytes */
} MongoConnection;

/* Tells whether no more replies can be received over it. */
static inline bool
mongo_connection_is_lost(const MongoConnection *connection)
{
	return connection->broken || connection->transport.data_stream == NULL ||
		mongo_transport_has_failed(&connection->transport);
}

/* Tells whether it may be reused: it works, and nothing is in flight. */
static inline bool
mongo_connection_is_clean(const MongoConnection *connection)
{
	return !connection->broken && connection->in_flight == 0 &&
		connection->transport.data_stream != NULL && !connection->transport.interrupted;
}

/* The use of a connection, exclusive or from a request to its reply; see pool.c. */
typedef struct MongoLease MongoLease;

/*
 * Returns the request whose reply comes next.  Requests that ask for no reply are sent only when
 * none is in flight.
 */
static inline uint32
mongo_next_request(const MongoConnection *connection)
{
	return connection->last_request_id - connection->in_flight + 1;
}

/* A document sequence (a section of kind 1 of OP_MSG): successive documents. */
typedef struct MongoSequence
{
	const char *name;			/* of the command's field */
	const char *data;
	size_t		size;
} MongoSequence;

/* A command to be sent. */
typedef struct MongoCommand
{
	const char *database;		/* in UTF-8 */
	const bson_t *document;		/* begins with the command's name */
	const bson_t *fields;		/* further fields: those of its session, and a
								 * write concern; NULL: add the connection's
								 * $readPreference and readConcern, if the
								 * command takes them */
	const MongoSequence *sequence;	/* NULL: none */
	uint64		at;				/* the cluster time to read at, in place of
								 * the connection's readConcern; 0: none */
	bool		compress;		/* if there is a compressor; and so is the
								 * reply */
} MongoCommand;

/* MongoDB's limit is 255 bytes for both names.  Compatible servers may limit each name. */
#define LONGEST_NAMESPACE	320

/* A cursor that is open on a server. */
typedef struct RemoteCursor
{
	dlist_node	node;			/* in the pool's list of orphans, which are
								 * malloc'd */
	Oid			umid;			/* of the user mapping that opened it */
	int64		id;				/* 0: none */
	char		host_and_port[BSON_HOST_NAME_MAX + 32];
	char		database[LONGEST_NAMESPACE];
	char		collection[LONGEST_NAMESPACE];
} RemoteCursor;

/* The result of waiting for a reply. */
typedef enum MongoOutcome
{
	MONGO_REPLY,				/* it is complete and valid */
	MONGO_BROKEN,				/* none will come: the connection is lost or
								 * unusable */
	MONGO_INTERRUPTED			/* ended by an interrupt or a time limit; a
								 * later call can continue */
} MongoOutcome;

/*
 * Escapes in the options comment and appname.
 *
 * They are those of postgres_fdw.application_name, and the query id: %a application_name,
 * %c session ID, %C cluster_name, %d database, %p process ID, %u user who has logged in,
 * %Q query id, %% a percent sign.  Any other % and the character after it are left out.
 */

/* The longest comment, and the longest appname that MongoDB accepts; with the NUL. */
#define MONGO_COMMENT_SIZE	1024
#define MONGO_APPNAME_SIZE	129

extern void mongo_check_command_size(const bson_t *command);
extern bool mongo_send(MongoConnection *connection, const MongoCommand *command, MongoReply *reply);
extern bool mongo_send_or_raise(MongoConnection *connection, const MongoCommand *command,
								MongoReply *reply);
extern void mongo_reply_free(MongoReply *reply);
extern MongoOutcome mongo_receive(MongoConnection *connection, MongoReply *reply,
								  MongoInterrupts interrupts);
extern void mongo_serve_interrupt(MongoConnection *connection, MongoReply *reply, bool is_cursor);
extern bool mongo_receive_or_raise(MongoConnection *connection, MongoReply *reply, bool is_cursor);
extern bool mongo_has_reply(MongoConnection *connection);
extern void mongo_reply_abandon(MongoConnection *connection, const MongoReply *reply);
extern bool mongo_receive_within(MongoConnection *connection, MongoReply *reply, int milliseconds);
extern MongoReply *mongo_receive_abandoned(MongoConnection *connection, uint32 next,
										   int milliseconds);
pg_noreturn extern void mongo_report_violation(const char *server_name, const char *detail);
extern void mongo_lease_check_interrupts(MongoLease *lease);
pg_noreturn extern void mongo_raise_lock_timeout(void);
pg_noreturn extern void mongo_report_disconnect(const char *server_name);

/* --------------------------------- reply.c ---------------------------------- */

extern const char *mongo_frame_check_header(const uint8 *header, uint32 request_id);
extern const char *mongo_frame_check_message(const uint8 *message, size_t length);
extern const char *mongo_frame_check_compressed(const uint8 *message,
												const MongoCompressor *compressor,
												size_t *expanded_size);
extern const char *mongo_frame_expand(const uint8 *message, size_t length,
									  const MongoCompressor *compressor,
									  uint8 *target, size_t expanded_size);
extern const char *mongo_reply_check(const uint8 *document, size_t length);
extern bool mongo_reply_find(const MongoReply *reply, const char *name, bson_iter_t *field);
extern bool mongo_reply_is_ok(const MongoReply *reply);
extern bool mongo_reply_cursor(const MongoReply *reply, RemoteCursor *cursor);
extern bool mongo_reply_has_label(const MongoReply *reply, const char *label);
extern void mongo_save_field(MongoSavedField *saved, const MongoReply *reply, const char *field);
extern void mongo_append_saved_field(bson_t *document, const char *field,
									 const MongoSavedField *saved);

/* The rest of a batch; pointers are into the reply. */
typedef struct MongoBatch
{
	const uint8 *position;		/* of the next element */
	const uint8 *end;			/* of the elements */
	int64		id;				/* of the cursor; 0: nothing is left there */
	const uint8 *token;			/* the position behind the batch in a change
								 * stream, a document; NULL: none */
	uint32		token_length;
	bool		is_next;		/* it is not the first one */
	bool		has_time;		/* it was read at a cluster time */
} MongoBatch;

extern const char *mongo_batch_read(MongoBatch *batch, const bson_iter_t *cursor);
extern const uint8 *mongo_batch_next(MongoBatch *batch, uint32 *length, const char **violation);
extern bool mongo_batch_time(const MongoBatch *batch, uint64 *time);

/* --------------------------------- trace.c ---------------------------------- */

extern char *mongo_trace_prepare(const char *text);
extern size_t mongo_trace_fill(const char *prepared, char *buffer, size_t size);
extern void mongo_trace_append(const char *prepared, bson_t *document);
extern void mongo_log_slow_command(MongoConnection *connection);

/* --------------------------------- error.c ---------------------------------- */

#define WRITE_CONFLICT	112		/* MongoDB's code of it */

#define MONGO_PRIMARY_HINT \
	"Writes, and transactions, need the primary of a replica set: with the option replica_set the foreign server follows it."

/* Why a command, or one operation of it, failed.  Texts point into the reply, or are static. */
typedef struct MongoFailure
{
	bool		lost;			/* no reply was received; 'text' is the reason */
	bool		transient;		/* it has ended the MongoDB transaction, which
								 * may be retried */
	int			index;			/* of the operation; -1: none */
	int			code;			/* MongoDB's error code */
	const char *code_name;		/* "": unknown */
	const char *text;
	const uint8 *document;		/* MongoDB's report of the error, or NULL */
	uint32		length;
} MongoFailure;

extern bool mongo_error_is_retryable(int code);
extern void mongo_catch_connection_error(void);
extern bool mongo_failure_is_of_connection(const MongoFailure *failure);
extern bool mongo_failure_is_retryable(const MongoFailure *failure);
extern bool mongo_error_is_interruption(int code);
extern bool mongo_error_is_lost_cursor(int code);
extern bool mongo_failure_is_refusal(const MongoFailure *failure);
pg_noreturn extern void mongo_report_connection_error(const char *server_name,
													  const bson_error_t *error);
extern void mongo_read_failure(const bson_iter_t *element, MongoFailure *failure);
extern void mongo_read_reply_failure(const MongoReply *reply, MongoFailure *failure);
extern bool mongo_reply_failure(const MongoConnection *connection, const MongoReply *reply,
								MongoFailure *failure);
pg_noreturn extern void mongo_raise_failure(const char *message, const MongoFailure *failure,
											const char *hint);

/* ------------------------------- connection.c ------------------------------- */

extern const bson_t *mongo_server_session_use(MongoServerSession *session, MemoryContext context);
extern bool mongo_connection_run_separately(const MongoConnection *connection,
											const MongoCommand *command, int total_ms,
											MongoReply *reply);
extern MongoOutcome mongo_end_write(MongoConnection *connection, const bson_t *lsid,
									MongoReply *reply);
extern bool mongo_connection_is_balanced(const MongoConnection *connection);
extern int	mongo_discard_wait(const MongoConnection *connection);
extern bool mongo_connection_is_on(const MongoConnection *connection, const char *host_and_port);
extern int	mongo_connection_kill_cursors(MongoConnection *connection, dlist_head *cursors,
										  bool separately);

/* -------------------------------- connect.c --------------------------------- */

extern bool mongo_connect_once(MongoConnection *connection, const mongoc_uri_t *uri, bool primary,
							   bool records, bson_error_t *error);
extern void mongo_connection_end_session(MongoConnection *connection);
extern void mongo_connection_close(MongoConnection *connection);
extern MongoConnection *mongo_connection_open(UserMapping *user, mongoc_read_mode_t read_mode,
											  bool once, dlist_head *list,
											  int (*close_idle) (Oid serverid));
extern bool mongo_connection_reconnect(MongoConnection *connection);

/* -------------------------------- activity.c -------------------------------- */

extern bool mongo_connection_limit_has_room(Oid serverid, int limit);
extern void mongo_connection_limit_leave(MongoConnection *connection);
extern void mongo_connection_limit_enter(MongoConnection *connection, Oid userid, int limit,
										 int timeout_ms);

/* ---------------------------------- pool.c ---------------------------------- */

/*
 * The pool's callbacks into a scan, or into a batch in flight (write_batch.c).  save_reply:
 * receives the outstanding replies into the scan's memory, and calls mongo_lease_put().
 * discard_reply: abandons the outstanding replies as the lease ends, or another one on its
 * connection; may wait for them briefly; must not raise.
 */
typedef struct MongoLeaseCallbacks
{
	void		(*save_reply) (void *reader);
	void		(*discard_reply) (void *reader);
} MongoLeaseCallbacks;

/* What a scan does if no connection is free. */
typedef enum MongoWaitPolicy
{
	MONGO_WAIT_TAKE_OVER,		/* open one, or take over another scan's */
	MONGO_WAIT_LATER,			/* open one if allowed; else nothing */
	MONGO_WAIT_SKIP				/* nothing */
} MongoWaitPolicy;

typedef enum LeaseState
{
	LEASE_QUIET,
	LEASE_IN_FLIGHT,			/* a request is in flight; the pool may have
								 * its reply saved */
	LEASE_AHEAD					/* the same, and nobody waits for it yet */
} LeaseState;

/* Lives in its owner's context, whose reset ends it. */
struct MongoLease
{
	MemoryContextCallback callback;
	dlist_node	node;			/* in the pool's list */
	Oid			umid;			/* of its user mapping; InvalidOid: ended */
	MongoConnection *connection;	/* NULL: none at present */
	MongoActivityOwner owner;	/* for whom its traffic is counted */
	mongoc_read_mode_t read_mode;	/* of its connections; 0: the server's */
	const MongoLeaseCallbacks *callbacks;	/* NULL: an exclusive lease */
	void	   *reader;			/* the callbacks' argument */
	LeaseState	state;
	RemoteCursor cursor;		/* open on the server */
	MongoConnection *home;		/* where the cursor was opened; NULL: closed
								 * since then */
};

/* How long to try again after write conflicts, unless lock_timeout is set, in milliseconds. */
#define MONGO_CONFLICT_MS	10000

/* A connection used within so many milliseconds is assumed to be open. */
#define RECENTLY_USED_MS	100

extern void mongo_connection_show_state(const MongoConnection *connection);
extern void mongo_lease_note_cursor(MongoLease *lease, MongoConnection *connection, int64 cursor_id,
									const char *database, const char *collection);
extern void mongo_lease_leave_cursor(MongoLease *lease);
extern bool mongo_connection_drain(MongoConnection *connection, uint32 next, int milliseconds);
extern void mongo_lease_release(void *arg);
extern MongoLease *mongo_lease_create(MemoryContext owner, UserMapping *user,
									  const MongoLeaseCallbacks *callbacks, void *reader);
extern void mongo_lease_renew(MongoLease *lease, UserMapping *user);
extern bool mongo_lease_take(MongoLease *lease, UserMapping *user, MongoWaitPolicy policy);
extern void mongo_lease_move_to_primary(MongoLease *lease, UserMapping *user);
extern MongoLease *mongo_lease_acquire_for_write(MemoryContext owner, UserMapping *user,
												 const MongoLeaseCallbacks *callbacks, void *reader);
extern void mongo_lease_note_sent(MongoLease *lease);
extern void mongo_lease_receive_earlier(const MongoLease *lease, uint32 request_id, bool discards);
extern bool mongo_lease_share(MongoLease *lease, const MongoLease *first);
extern void mongo_lease_put(MongoLease *lease);
extern void mongo_pool_sweep(bool aborted);

/* --------------------------------- write.c ---------------------------------- */

/* What is known of one command's outcome. */
typedef enum MongoWriteEnd
{
	MONGO_WRITE_ANSWERED,		/* known by its reply; or it was not sent */
	MONGO_WRITE_STOPPED,		/* it has ended, and may have done a part */
	MONGO_WRITE_UNKNOWN			/* no reply was received: it may be running */
} MongoWriteEnd;

/* What interrupted commands together may have done. */
typedef struct MongoUncertainty
{
	int			commands;
	int64		documents;		/* that they wrote at most; -1: any number */
	bool		running;		/* one of them may still be running */
} MongoUncertainty;

/* Writes to a server that no rollback undoes, of one nesting level of transactions. */
typedef struct MongoLasting
{
	char	   *server_name;
	int			level;
	int64		documents;
	int			commands;		/* of mongo_command() or mongo_aggregate(),
								 * that may have written */
	MongoUncertainty uncertainty;	/* further writes are possible */
} MongoLasting;

/* One write, from its sending to its outcome. */
typedef struct MongoWrite
{
	MongoSession *session;		/* NULL: a user's own command */
	UserMapping *user;
	MongoLease *lease;
	MongoCommand command;
	int64		most;			/* the most documents that it can write; -1:
								 * any number, so it is not repeated */
	bool		in_transaction;
	MongoLasting *lasting;		/* outside of a transaction; else NULL */
	bson_t	   *lsid;			/* outside of a transaction; NULL also if the
								 * server has no sessions */
	bool		may_repeat;
	bool		sent;			/* completely; if not, only the error is to be
								 * read */
	MongoReply	reply;
	bool		failed;
	MongoFailure failure;		/* the first */
	MongoWriteEnd end;
} MongoWrite;

extern void mongo_append_update(bson_t *document, const char *field, const bson_t *update);
extern void mongo_uncertainty_add(MongoUncertainty *uncertainty, MongoWriteEnd end, int64 documents);
extern char *mongo_uncertainty_text(const MongoUncertainty *uncertainty);
extern bool mongo_lasting_exist(void);
extern void mongo_lasting_at_end(XactEvent event);
extern void mongo_lasting_at_subtransaction_end(SubXactEvent event);
extern void mongo_write_begin(MongoSession *session, UserMapping *user, MongoLease *lease,
							  const MongoCommand *command, int64 most, MongoWrite *write);
extern bool mongo_write_finish(MongoWrite *write);
extern void mongo_write_abandon(MongoWrite *write, int milliseconds);
extern void mongo_write_count(MongoWrite *write, int64 documents);

/* ------------------------------ write_batch.c ------------------------------- */

extern void mongo_write_flight_settle(MongoWriteFlight *flight);
extern void mongo_write_flight_check(MongoWriteFlight *flight);
extern void mongo_write_flight_abandon(MongoWriteFlight *flight);

/* -------------------------------- session.c --------------------------------- */

struct MongoSession
{
	UserMapping *user;			/* a copy */
	char	   *server_name;
	MongoTransactions mode;
	bool		begun;			/* a MongoDB transaction is open, or was */
	MongoLease *lease;			/* kept to the end; NULL without a transaction */
	bson_t	   *lsid;			/* a copy, since it outlives the connection */
	int64		number;			/* of the transaction */
	MongoSavedField recovery_token; /* of mongos */
	bool		used;			/* a command has been sent in the transaction */
	bool		over;			/* it has ended */
	bool		reply_lost;		/* a command has got no reply */
	TimestampTz used_at;		/* the last command's time */
	bool		lost;			/* a command failed: MongoDB has ended the
								 * transaction, or will */
	MongoWriteFlight *flight;	/* a batch in flight, outside of a
								 * transaction; or NULL */
	int			flight_level;	/* nesting level that it was sent at */
	int			written_level;	/* deepest nesting level that wrote, or may
								 * have written; 0: none */
	bool		uncommittable;	/* a savepoint that wrote was rolled back */
	bool		maybe_open;		/* a commit failed; locks may be held for it */
	MongoCommand *insert;		/* the only command so far, if it is a small
								 * insert; or NULL */
};

extern void mongo_session_begin(MongoSession *session);
extern bool mongo_session_is_fresh(const MongoSession *session);
extern void mongo_session_restart(MongoSession *session);
extern bool mongo_session_try_again(MongoSession *session, const MongoFailure *failure,
									TimestampTz since, int attempt);
extern void mongo_append_session(const MongoSession *session, bson_t *fields);
extern bson_t *mongo_session_fields(MongoSession *session);
extern void mongo_session_note_reply(MongoSession *session, const MongoReply *reply);
extern bool mongo_session_run(MongoSession *session, const MongoCommand *command, MongoReply *reply,
							  MongoInterrupts interrupts, MongoFailure *failure);
extern void mongo_session_read(MongoSession *session, const char *database,
							   const bson_t *command, MongoReply *reply, const char *message);
extern void mongo_session_note_insert(MongoSession *session, const MongoCommand *command);
extern MongoLease *mongo_session_lease(MongoSession *session);
extern void mongo_session_return_lease(MongoSession *session, MongoLease *lease);
extern int	mongo_session_note_write(MongoSession *session);

/* ------------------------------ transaction.c ------------------------------- */

extern bool mongo_sessions_exist(void);
extern void mongo_sessions_at_end(XactEvent event);
extern void mongo_sessions_at_subtransaction_end(SubXactEvent event);
extern void mongo_session_settle(const UserMapping *user);

/* ------------------------------ cluster_time.c ------------------------------ */

/* What mongo_bind_reads() has bound; NULL: nothing. */
extern MongoReadTime *mongo_bound_time;

extern void mongo_note_failure_at_time(int code);
pg_noreturn extern void mongo_refuse_transaction_at_time(void);
extern void mongo_append_time(bson_t *command, const char *name, uint64 time);

/* ------------------------------- read_time.c -------------------------------- */

/* MongoDB's message on a time that it has not yet heard of. */
#define MONGO_TIME_TO_COME	"must not be greater than the current clusterTime"

#define MONGO_NAMESPACE_NOT_FOUND	26

pg_noreturn extern void mongo_report_missing_at_time(const char *database, const char *collection);
extern uint64 mongo_reach_time(MongoConnection *connection, const char *database,
							   const char *collection, uint64 at);
extern List *mongo_collections_read(UserMapping *user, const char *database, const bson_t *command);
extern bool mongo_check_collections(MongoConnection *connection, const char *database,
									const List *names, uint64 at);

/* --------------------------------- order.c ---------------------------------- */

/* A cursor from its opening to its end, and how to store its rest before a write. */
typedef struct MongoOpenCursor
{
	MongoAccessScope scope;		/* what its command reads */
	void		(*read_to_end) (struct MongoOpenCursor *cursor, bool in_transaction);
	MongoListMember listed;
} MongoOpenCursor;

extern dlist_head mongo_open_cursors;

extern int	mongo_writing_level(void);
extern void mongo_begin_readers(const MongoAccessScope *scope, CommandId command,
								MemoryContext statement, bool deferred);
extern void mongo_cursors_read_to_end(const MongoAccessScope *scope, bool in_transaction);

#endif							/* MONGO_FDW_REMOTE_INTERNAL_H */
