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

/* ------------------- stream.c: sockets, waits, interrupts ------------------ */

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

/*
 * mongo_stream_new: creates a stream, which then owns the non-blocking socket.  With
 * PGINVALID_SOCKET every operation fails.
 */
extern MongoStream *mongo_stream_new(MongoTransport *transport, pgsocket socket,
									 const char *host_and_port);

/*
 * mongo_may_open_connection: tells whether PostgreSQL can reserve file descriptors for one more
 * stream.  A stream needs two, for the socket and its wait set.  A third must be free for a wait
 * for several sockets, as in an asynchronous Append.
 */
extern bool mongo_may_open_connection(void);

/*
 * mongo_stream_wait: waits until the socket has one of 'events' (POLLIN, POLLOUT), without limit
 * if timeout_ms is -1.  Returns false on timeout (errno ETIMEDOUT), and on an interrupt or an
 * error (errno ECANCELED, with transport->interrupted set).
 * mongo_stream_wait_for_reply: does the same until something can be read.  After
 * socket_timeout_ms it sets transport->timed_out.  With MONGO_ANY_INTERRUPT an interrupt ends
 * only this wait (errno EINTR).
 * mongo_stream_has_input: tells whether there is input to read, or the peer has closed.
 * Never raise.
 */
extern bool mongo_stream_wait(MongoStream *stream, int events, long timeout_ms);
extern bool mongo_stream_wait_for_reply(MongoStream *stream, MongoInterrupts interrupts);
extern bool mongo_stream_has_input(MongoStream *stream);

/*
 * mongo_transport_note_failure: appends 'text' to transport->failure, unless it is there already.
 * mongo_transport_note_violation: notes why a reply is invalid, as a sentence for DETAIL.
 * mongo_transport_note_memory: notes that 'size' bytes could not be allocated.  From then on all
 * I/O fails, and mongo_transport_raise() raises 53200.
 */
extern void mongo_transport_note_failure(MongoTransport *transport,
										 const char *text);
extern void mongo_transport_note_violation(struct MongoStream *stream,
										   const char *violation);
extern void mongo_transport_note_memory(MongoTransport *transport, size_t size);
extern void mongo_stream_note_connected(struct MongoStream *stream);

/* mongo_transport_close: closes the connection, if there is one. */
extern void mongo_transport_close(MongoTransport *transport);
extern void mongo_transport_shut_down(MongoTransport *transport);

/* mongo_transport_has_failed: tells whether more than an interrupt has broken a wait. */
static inline bool
mongo_transport_has_failed(const MongoTransport *transport)
{
	return transport->timed_out || transport->wait_error != NULL || transport->memory_missing > 0;
}

/* mongo_begin_ending, mongo_finish_ending: set one limit for all waits in between. */
extern void mongo_begin_ending(MongoTransport *transport, int total_ms, int interrupt_ms);

static inline void
mongo_finish_ending(MongoTransport *transport)
{
	transport->ending.active = false;
}

/*
 * mongo_transport_raise: raises the error that broke a wait.  Returns if there is none, or if it
 * was a timeout (timed_out), which the caller reports.
 */
extern void mongo_transport_raise(MongoTransport *transport);

/*
 * mongo_interrupt_is_due: tells whether ProcessInterrupts() would end the statement or the
 * session.  With 'although_held' it also counts interrupts that are held.  Never raises.
 */
extern bool mongo_interrupt_is_due(bool although_held);

/* ------- resolve.c, handshake.c: name look-ups, checks of the handshake ------ */

/*
 * mongo_resolve_host
 *		Returns the addresses of a host, for stream sockets; the caller calls freeaddrinfo().
 *
 * mongo_resolve_service
 *		Looks up the SRV and TXT records that a "mongodb+srv" URI needs, and returns whether
 *		the resolver answers.  Returns true for other URIs.  libmongoc's own look-up, which
 *		cannot be interrupted, mostly finds them in the resolver's cache afterwards.
 *
 * Return NULL or false with *error set on failure, after timeout_ms, and when interrupted or out
 * of memory (mongo_transport_raise()).  Never raise.
 */
extern struct addrinfo *mongo_resolve_host(MongoTransport *transport,
										   const char *host, uint16 port,
										   long timeout_ms, bson_error_t *error);
extern bool mongo_resolve_service(MongoTransport *transport,
								  const mongoc_uri_t *uri, long timeout_ms,
								  bson_error_t *error);

/*
 * mongo_guard_new: creates a stream on top of stream->top that passes only well-formed replies on
 * to libmongoc.  It owns stream->top.  It notes what is wrong with a reply in
 * transport->violation and failure.  It is malloc'd; NULL if there is no memory.
 * mongo_guard_release: detaches the stream, which is then ours, from its guard.  libmongoc still
 * destroys the guard.
 */
extern mongoc_stream_t *mongo_guard_new(MongoStream *stream);
extern void mongo_guard_release(MongoStream *stream);

/*
 * mongo_reply_check: checks the document of a reply, which has 'length' bytes by its frame.
 * Returns NULL, or what is wrong: a sentence for DETAIL that is never freed.  Checks only the
 * levels of nesting that libmongoc reads.  Neither raises nor allocates.
 */
extern const char *mongo_reply_check(const uint8 *document, size_t length);

/* ----------------- uri.c: from options to libmongoc's URI --------------------- */

/*
 * mongo_uri_create
 *		Makes the URI of 'options'; the caller owns it (mongoc_uri_destroy()).  Stores TLS
 *		settings and timeouts in *transport, with strings in the current memory context.
 *
 * Options win over the option uri, except for timeouts.  The user is looked up in
 * authentication_database, else in the URI's authSource, else in "admin" (libmongoc's default),
 * or in $external if the mechanism requires it.  Without a user name and a mechanism there is no
 * authentication.  Raises 08001 for what libmongoc does not accept, 22023 for an option uri that
 * contains a secret, and errors of password_file.  Errors never show the password.
 *
 * mongo_uri_offer_compressors: has the handshake offer the compressors that suit slow networks, for
 * commands that ask to be compressed.
 *
 * mongo_uri_is_single: tells whether libmongoc treats this as one server (topology type Single).
 */
extern mongoc_uri_t *mongo_uri_create(const MongoConnectionOptions *options,
									  MongoTransport *transport);
extern void mongo_uri_offer_compressors(mongoc_uri_t *uri);
extern bool mongo_uri_is_single(const mongoc_uri_t *uri);

/* ------------------- wire.c: send a command, receive its reply --------------- */

#define OP_REPLY			1	/* answers libmongoc's first "hello" */
#define OP_COMPRESSED		2012
#define OP_MSG				2013

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

/*
 * mongo_frame_check_header: checks the first HEADER_SIZE bytes of a reply, except the opcode.
 * mongo_frame_check_message: checks a whole OP_MSG, which must contain exactly one document.
 * mongo_frame_check_compressed: checks a whole OP_COMPRESSED; sets its size as an OP_MSG.
 * mongo_frame_expand: uncompresses it into 'target', which has that size, and checks the OP_MSG.
 * Each returns NULL, or what is wrong, as mongo_reply_check() does.
 */
extern const char *mongo_frame_check_header(const uint8 *header, uint32 request_id);
extern const char *mongo_frame_check_message(const uint8 *message, size_t length);
extern const char *mongo_frame_check_compressed(const uint8 *message,
												const MongoCompressor *compressor,
												size_t *expanded_size);
extern const char *mongo_frame_expand(const uint8 *message, size_t length,
									  const MongoCompressor *compressor,
									  uint8 *target, size_t expanded_size);

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
	uint64		round_trip_us;	/* the shortest wait for the reply to a
								 * command; 0: none yet */

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
	MongoActivity *counted;		/* shared memory that counts it, or NULL */
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

/*
 * mongo_next_request: returns the request that the next reply answers.  Requests that ask for no
 * reply are sent only when none is in flight.
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

/* MongoDB's limit is 255 bytes for both names. */
#define LONGEST_NAMESPACE	256

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
 * mongo_send
 *		Sends a command whose reply is to be received.  Returns whether all of it was sent;
 *		otherwise MongoDB does not run it.  Raises only 53200, before sending anything.
 *
 *		If 'reply' is NULL, tells the server to send none (moreToCome), and does not wait: a
 *		connection that cannot take the command at once is marked broken.
 *
 * mongo_send_or_raise
 *		Sends a read.  Returns false if the connection is lost.  Raises 57014, and 54000 for a
 *		command too large for MongoDB, as mongo_check_command_size() does.
 */
extern bool mongo_send(MongoConnection *connection, const MongoCommand *command,
					   MongoReply *reply);
extern bool mongo_send_or_raise(MongoConnection *connection, const MongoCommand *command,
								MongoReply *reply);
extern void mongo_check_command_size(const bson_t *command);

/*
 * mongo_receive
 *		Waits for the reply to a command without a cursor, and checks it.  Returns
 *		MONGO_BROKEN also for an invalid reply.  Never raises.
 *
 * mongo_receive_or_raise
 *		Receives the reply to a read.  Returns false if the connection is lost.  Raises 08P01
 *		for an invalid reply, 08006 after socket_timeout_ms, 53200, and what interrupts
 *		raise.  A later call continues with the same reply.  If 'is_cursor', the caller checks
 *		the document.
 *
 * mongo_receive_within
 *		Receives an unwanted reply.  If it does not come in so many milliseconds, the connection
 *		receives it later.  Never raises.
 *
 * mongo_has_reply
 *		Tells whether a reply has begun to arrive, or the connection is lost.
 */
extern MongoOutcome mongo_receive(MongoConnection *connection, MongoReply *reply,
								  MongoInterrupts interrupts);
extern bool mongo_receive_or_raise(MongoConnection *connection, MongoReply *reply,
								   bool is_cursor);
extern void mongo_serve_interrupt(MongoConnection *connection, MongoReply *reply, bool is_cursor);
extern bool mongo_receive_within(MongoConnection *connection, MongoReply *reply,
								 int milliseconds);
extern void mongo_reply_abandon(MongoConnection *connection, const MongoReply *reply);
extern MongoReply *mongo_receive_abandoned(MongoConnection *connection, uint32 next,
										   int milliseconds);
extern bool mongo_has_reply(MongoConnection *connection);

/*
 * mongo_reply_find: sets *field to the field of that name; false without a field or a reply.
 * mongo_reply_is_ok: tells whether the reply reports success of the command.
 * mongo_reply_has_label: tells whether it has this error label of the driver specifications.
 */
extern bool mongo_reply_find(const MongoReply *reply, const char *name, bson_iter_t *field);
extern bool mongo_reply_is_ok(const MongoReply *reply);
extern bool mongo_reply_cursor(const MongoReply *reply, RemoteCursor *cursor);
extern bool mongo_reply_has_label(const MongoReply *reply, const char *label);

/* mongo_reply_free: frees a reply's buffers.  The reply may be used again. */
extern void mongo_reply_free(MongoReply *reply);

/*
 * mongo_report_violation: raises 08P01 for an invalid reply; its connection must not be reused.
 * mongo_report_disconnect: raises 08006 for a lost connection.
 */
pg_noreturn extern void mongo_report_violation(const char *server_name, const char *detail);
pg_noreturn extern void mongo_report_disconnect(const char *server_name);

/*
 * error.c: MongoDB's and libmongoc's errors as PostgreSQL errors.
 *
 * MongoDB's own code, name and message go to DETAIL.  A HINT proposes what the user can do.  A
 * message that may quote documents is left out if the user may not read them (common.h).
 */

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

/*
 * mongo_read_failure: reads the failure of one operation from an element of writeErrors.
 * mongo_read_reply_failure: reads the failure of a command from a reply with {ok: 0}.
 * mongo_reply_failure: returns whether a command has no reply or {ok: 0}, with *failure set.
 */
extern void mongo_read_failure(const bson_iter_t *element, MongoFailure *failure);
extern void mongo_read_reply_failure(const MongoReply *reply, MongoFailure *failure);
extern bool mongo_reply_failure(const MongoConnection *connection, const MongoReply *reply,
								MongoFailure *failure);

/*
 * mongo_raise_failure
 *		Raises a failure.  'message' names the attempt ("could not read collection \"db.coll\"").
 *		Without a 'hint' (NULL), the error's code and text decide on one.
 *
 * Raises 08006 for a lost connection, 40001 for a transient error, and 0A000 if the server does
 * not know a part of the language.  For a failed expression, raises what PostgreSQL would raise.
 * Otherwise a table of MongoDB's codes gives the SQLSTATE (11000 -> 23505, ...), or HV000.
 */
pg_noreturn extern void mongo_raise_failure(const char *message, const MongoFailure *failure,
											const char *hint);

/*
 * mongo_report_connection_error: raises the failure to connect: 28P01 for refused credentials,
 * 08P01 for invalid replies, 08001 otherwise.
 */
pg_noreturn extern void mongo_report_connection_error(const char *server_name,
													  const bson_error_t *error);

/*
 * Classes of MongoDB's error codes.
 *
 * mongo_error_is_retryable: a read may be sent once more (Retryable Reads specification).
 * mongo_error_is_interruption: the command may have done a part of its work.
 * mongo_error_is_lost_cursor: the server has closed the cursor of a getMore.
 * mongo_failure_is_refusal: the server does not do such a thing, so it has done no part of it.
 */
extern bool mongo_error_is_retryable(int code);
extern bool mongo_failure_is_retryable(const MongoFailure *failure);
extern bool mongo_failure_is_of_connection(const MongoFailure *failure);
extern void mongo_catch_connection_error(void);
extern bool mongo_error_is_interruption(int code);
extern bool mongo_error_is_lost_cursor(int code);
extern bool mongo_failure_is_refusal(const MongoFailure *failure);

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

/*
 * mongo_trace_prepare: expands the escapes that do not change within a session; palloc'd, UTF-8.
 * mongo_trace_fill: expands the others (%a, %Q, %%) into 'buffer', and cuts the text between two
 * characters if it is too long.  Returns its length, without the NUL.  Never raises.
 * mongo_trace_append: appends the element "comment", unless 'prepared' is NULL.
 */
extern char *mongo_trace_prepare(const char *text);
extern size_t mongo_trace_fill(const char *prepared, char *buffer, size_t size);
extern void mongo_trace_append(const char *prepared, bson_t *document);

/* ----------------- connect.c, connection.c: one connection ------------------- */

/*
 * mongo_connection_open: opens, authenticates and leases a connection, which stays in the list
 * until it is closed.  With a replica set, waits up to server_selection_timeout_ms for a member
 * that suits the read preference: 'read_mode', or that of the server's options if 0.  Tries only
 * 'once' if that is true.  Raises 08001, 08P01, 28P01, 57014.
 */
extern MongoConnection *mongo_connection_open(UserMapping *user, mongoc_read_mode_t read_mode,
											  bool once, dlist_head *list);

/*
 * mongo_connection_reconnect
 *		Closes the connection and connects to the current primary.  On failure, returns false
 *		with the reason in transport.failure.  Tries once; never raises.
 */
extern bool mongo_connection_reconnect(MongoConnection *connection);
extern bool mongo_connection_run_separately(const MongoConnection *connection,
											const MongoCommand *command, int total_ms,
											MongoReply *reply);

/*
 * mongo_connection_is_clean: tells whether a connection may be reused.
 * mongo_connection_is_on: tells whether it is connected to that server.
 */
extern bool mongo_connection_is_clean(const MongoConnection *connection);
extern bool mongo_connection_is_lost(const MongoConnection *connection);
extern bool mongo_connection_is_balanced(const MongoConnection *connection);
extern int	mongo_discard_wait(const MongoConnection *connection);
extern bool mongo_connection_is_on(const MongoConnection *connection,
								   const char *host_and_port);

/*
 * mongo_connection_kill_cursors
 *		Has the server close its cursors in the list (of RemoteCursor) that belong to the
 *		connection's user mapping, by one command per collection.  Frees what it sent, and
 *		returns how many cursors these were.  Never raises.
 *
 * Without 'separately', sends the commands over this connection if it is clean, and does not
 * wait.  With it, uses a separate connection, for 300 ms or a little longer.  That is for a
 * connection with a getMore in flight, which MongoDB does not end when its connection closes (seen
 * in 6.0).
 */
extern int	mongo_connection_kill_cursors(MongoConnection *connection, dlist_head *cursors,
										  bool separately);

/*
 * mongo_connection_end_session: ends the MongoDB session, if there is one; MongoDB would keep it
 * for half an hour.
 * mongo_connection_close: ends the session, then closes and frees the connection.
 * Never wait or raise.
 */
extern void mongo_connection_end_session(MongoConnection *connection);
extern void mongo_connection_close(MongoConnection *connection);

/*
 * mongo_server_session_use: returns the lsid, {id: UUID}, for the next command; NULL if the
 * server has no sessions.  Makes a new one, in 'context', if the server may soon forget the last.
 * Raises XX000 without random numbers.
 */
extern const bson_t *mongo_server_session_use(MongoServerSession *session,
											  MemoryContext context);

/*
 * mongo_save_field: copies the document in a field of a reply, if there is one that fits.
 * mongo_append_saved_field: appends it to a document, if there is one.
 */
extern void mongo_save_field(MongoSavedField *saved, const MongoReply *reply, const char *field);
extern void mongo_append_saved_field(bson_t *document, const char *field,
									 const MongoSavedField *saved);

/*
 * mongo_end_write: has MongoDB end an abandoned write, by its lsid and over another connection,
 * and waits a little longer for its reply.  Takes half a second at most, and less if the server
 * is silent.  Never raises.
 */
extern MongoOutcome mongo_end_write(MongoConnection *connection, const bson_t *lsid,
									MongoReply *reply);

/* --------------- activity.c: the connections of all sessions ------------------ */

/*
 * mongo_connection_limit_has_room: tells whether all sessions together have fewer than 'limit'
 * connections to the server.  True if the limit is 0, and without shared memory.
 * mongo_connection_limit_enter: counts a new connection, and shows it to all sessions if a slot
 * is free, unless there is no shared memory.  At the limit, waits up to timeout_ms (0: the session
 * itself has all) for another one to be closed, then raises 53300; raises 57014 when cancelled.
 * mongo_connection_limit_leave: stops counting and showing a connection.
 */
extern bool mongo_connection_limit_has_room(Oid serverid, int limit);
extern void mongo_connection_limit_enter(MongoConnection *connection, Oid userid, int limit,
										 int timeout_ms);
extern void mongo_connection_limit_leave(MongoConnection *connection);

/* ------------------ pool.c: leases of pooled connections --------------------- */

/*
 * A lease is the use of a connection, pooled by user mapping: the exclusive one, but for requests
 * that wait behind each other (mongo_lease_share()).
 *
 * A scan's lease has a connection only from a request to its reply, since a server cursor does
 * not depend on the connection.  There is one connection for each read preference, and up to
 * async_connections if several requests are in flight.  If a scan needs one more, the oldest
 * outstanding reply is received and saved for its scan, whose connection is then taken over.
 * But a scan below an asynchronous Append queues, as long as Append can wait for other scans.
 *
 * A request may also be sent ahead of its time, behind another one on the same connection, so
 * that both take one round trip.  MongoDB answers the requests of a connection in turn.
 */
typedef struct MongoLease MongoLease;

/*
 * The pool's callbacks into a scan, or into a batch in flight (write_batch.c).  save_reply:
 * receives the outstanding replies into the scan's memory, and calls mongo_lease_put().  serve:
 * sends the queued request with MONGO_WAIT_IN_QUEUE.  discard_reply: abandons the outstanding
 * replies as the lease ends, or another one on its connection; may wait for them briefly; must not
 * raise.
 */
typedef struct MongoLeaseCallbacks
{
	void		(*save_reply) (void *reader);
	void		(*serve) (void *reader);	/* NULL: never queued */
	void		(*discard_reply) (void *reader);
} MongoLeaseCallbacks;

/* What a scan does if no connection is free. */
typedef enum MongoWaitPolicy
{
	MONGO_WAIT_TAKE_OVER,		/* open one, or take over another scan's */
	MONGO_WAIT_IN_QUEUE,		/* open one if allowed; else queue until one
								 * is free */
	MONGO_WAIT_SKIP				/* nothing; also if another scan is queued */
} MongoWaitPolicy;

typedef enum LeaseState
{
	LEASE_QUIET,
	LEASE_WAITING,				/* queued for a connection */
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
	MongoActivity *activity;	/* the row that counts its traffic, or NULL */
	mongoc_read_mode_t read_mode;	/* of its connections; 0: the server's */
	const MongoLeaseCallbacks *callbacks;	/* NULL: an exclusive lease */
	void	   *reader;			/* the callbacks' argument */
	LeaseState	state;
	RemoteCursor cursor;		/* open on the server */
	MongoConnection *home;		/* where the cursor was opened; NULL: closed
								 * since then */
};

/*
 * mongo_lease_create: creates a lease, without a connection, in the context 'owner'.  It ends by
 * mongo_lease_release() or by the context's reset; neither raises.
 * mongo_lease_acquire_for_write: creates a lease with a connection to the primary, which the
 * server has not closed.  With 'callbacks' the pool may have the outstanding reply saved.
 */
extern MongoLease *mongo_lease_create(MemoryContext owner, UserMapping *user,
									  const MongoLeaseCallbacks *callbacks, void *reader);
extern MongoLease *mongo_lease_acquire_for_write(MemoryContext owner, UserMapping *user,
												 const MongoLeaseCallbacks *callbacks, void *reader);
extern void mongo_lease_release(void *arg);

/* A connection used within so many milliseconds is assumed to be open. */
#define RECENTLY_USED_MS	100

/*
 * mongo_lease_renew: replaces a broken connection, closes idle ones of its user mapping, and has
 * the lease's cursor killed.  Raises as mongo_connection_open() does; the lease then has no
 * connection.
 */
extern void mongo_lease_renew(MongoLease *lease, UserMapping *user);

/*
 * mongo_lease_check_interrupts: logs the last command if it was slow, and raises the error that
 * broke its wait, unless the lease has no connection any more.  Called after the command's outcome
 * has been recorded.
 */
extern void mongo_lease_check_interrupts(MongoLease *lease);

/*
 * mongo_lease_note_cursor: records the cursor that is open on the connection's server, to be
 * killed when the lease ends.  Id 0 records that there is none.  The connection is the lease's or
 * that of the MongoDB transaction.  Never raises.
 */
extern void mongo_lease_note_cursor(MongoLease *lease, MongoConnection *connection,
									int64 cursor_id, const char *database,
									const char *collection);

/* mongo_lease_leave_cursor: has the cursor, if there is one, killed later.  Never raises. */
extern void mongo_lease_leave_cursor(MongoLease *lease);

/*
 * mongo_lease_take: gives the lease a connection with nothing in flight, to the server of the
 * lease's cursor if it has one.  Returns false if there is none and 'policy' allows that.  Raises
 * as mongo_connection_open() does, and 08006 if that server cannot be reached any more.
 */
extern bool mongo_lease_take(MongoLease *lease, UserMapping *user, MongoWaitPolicy policy);

/*
 * mongo_lease_share: gives the lease an idle connection, or that of the lease 'first' to send a
 * request behind its own; false if neither is possible.
 * mongo_lease_receive_earlier: has the replies before the lease's own saved, which is that to
 * 'request_id'.  Raises as save_reply does; or, if it 'discards', does not raise.  May leave the
 * connection broken, if an earlier reply that nobody waits for does not come soon.
 */
extern bool mongo_lease_share(MongoLease *lease, const MongoLease *first);
extern void mongo_lease_receive_earlier(const MongoLease *lease, uint32 request_id,
										bool discards);

extern bool mongo_connection_drain(MongoConnection *connection, uint32 next,
								   int milliseconds);

/*
 * mongo_lease_note_sent: marks a request as in flight, until the owner sets LEASE_QUIET.
 * mongo_lease_put: returns the connection, which is closed if it is broken.  Never raises.
 * mongo_lease_serve_others: gives free connections to queued leases of the same user mapping.
 */
extern void mongo_lease_note_sent(MongoLease *lease);
extern void mongo_lease_put(MongoLease *lease);
extern void mongo_lease_serve_others(MongoLease *lease);

/*
 * mongo_pool_sweep: closes the connections that are due, at a transaction's end, and sets a timer
 * that ends another transaction when the next one is due.  After an abort, it first releases the
 * leases of failed functions, whose contexts PostgreSQL keeps until ROLLBACK.
 */
extern void mongo_pool_sweep(bool aborted);

/*
 * mongo_connection_show_state: shows all sessions what the connection does.  Called when that
 * changes.
 *
 * mongo_pool_close_idle: closes unused connections: all (InvalidOid) if too many files are open,
 * or those to one server if it has too many connections.  Returns how many of the session's
 * connections to the server still count for max_connections.
 */
extern void mongo_connection_show_state(const MongoConnection *connection);
extern int	mongo_pool_close_idle(Oid serverid);

/* ------------------ write.c: one write, and its outcome ---------------------- */

/* What is known of one command's outcome. */
typedef enum MongoWriteEnd
{
	MONGO_WRITE_ANSWERED,		/* known by its reply; or it was not sent */
	MONGO_WRITE_STOPPED,		/* it has ended, and may have done a part */
	MONGO_WRITE_UNKNOWN			/* no reply was received: it may be running */
} MongoWriteEnd;

/* What interrupted commands together may have done. */
typedef struct MongoWriteDoubt
{
	int			commands;
	int64		documents;		/* that they wrote at most; -1: any number */
	bool		running;		/* one of them may still be running */
} MongoWriteDoubt;

/*
 * mongo_write_doubt_add: adds a command that wrote at most so many documents (-1: any number).
 * mongo_write_doubt_text: describes the doubt as a sentence without its full stop, palloc'd;
 * NULL: no doubt.
 */
extern void mongo_write_doubt_add(MongoWriteDoubt *doubt, MongoWriteEnd end,
								  int64 documents);
extern char *mongo_write_doubt_text(const MongoWriteDoubt *doubt);

/* Writes to a server that no rollback undoes, of one nesting level of transactions. */
typedef struct MongoLasting
{
	char	   *server_name;
	int			level;
	int64		documents;
	int			commands;		/* of mongo_command() or mongo_aggregate(),
								 * that may have written */
	MongoWriteDoubt doubt;		/* further writes are possible */
} MongoLasting;

/*
 * mongo_lasting_at_end, mongo_lasting_at_subtransaction_end: raise WARNINGs (01000) about the
 * writes that a rollback leaves.  Called after transaction.c has ended its sessions.
 */
extern bool mongo_lasting_exist(void);
extern void mongo_lasting_at_end(XactEvent event);
extern void mongo_lasting_at_subtransaction_end(SubXactEvent event);

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

/*
 * Nothing raises while a write is in flight.  If its wait is interrupted, the wait fails, and
 * MongoDB is told to end the write.  The caller raises after it has recorded the outcome.  In a
 * MongoDB transaction a write is sent once and never in doubt, as it ends with the transaction.
 *
 * mongo_write_begin
 *		Sends the command, with lsid, txnNumber and writeConcern added.  Its parts must exist
 *		until mongo_write_finish() or mongo_write_abandon(), one of which must follow.
 *		*write refers to memory in the current context.  Raises only 53200, before sending.
 *
 * mongo_write_finish
 *		Waits for the reply, and records an uncertain outcome.  Returns whether the write
 *		succeeded.  After a lost connection or an error with the label RetryableWriteError,
 *		sends the write once more, to the current primary, if MongoDB can recognize that.  Does
 *		so as well if the write has not begun (mongo_failure_is_of_connection()).
 *		The lease then has another connection, or none.  Raises what connecting for a second
 *		attempt raises, except errors of class 08.
 *
 * mongo_write_abandon
 *		Waits for so many milliseconds, then has MongoDB end the write.  Called after the
 *		statement has failed.  Never raises.
 *
 * mongo_write_count
 *		Counts so many documents as written.
 */
extern void mongo_write_begin(MongoSession *session, UserMapping *user, MongoLease *lease,
							  const MongoCommand *command, int64 most, MongoWrite *write);
extern bool mongo_write_finish(MongoWrite *write);
extern void mongo_write_abandon(MongoWrite *write, int milliseconds);
extern void mongo_write_count(MongoWrite *write, int64 documents);

/* mongo_append_update: appends update operators, or a pipeline {"0": stage} as an array. */
extern void mongo_append_update(bson_t *document, const char *field, const bson_t *update);

pg_noreturn extern void mongo_raise_lock_timeout(void);
extern bool mongo_write_wait(MongoLease *lease, const MongoFailure *failure, TimestampTz since,
							 int attempt);

/*
 * A batch in flight (write_batch.c), as its session uses it.  Any other read or write in the
 * session settles it first, so that commands reach MongoDB in SQL's order.
 *
 * mongo_write_flight_settle: waits for the reply.  Raises what breaks the wait, but no error of
 * the reply: another statement's exception block must not catch that.
 * mongo_write_flight_check: raises the reply's error, each time it is called.
 * mongo_write_flight_abandon: after the statement has failed, ends the batch and notes what it
 * may have written.  Takes 0.8 s at most.  Never raises.
 */
extern void mongo_write_flight_settle(MongoWriteFlight *flight);
extern void mongo_write_flight_check(MongoWriteFlight *flight);
extern void mongo_write_flight_abandon(MongoWriteFlight *flight);

/* ------------------ transaction.c: the sessions of remote.h ------------------ */

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

/*
 * mongo_session_read: runs a command that reads, in the transaction.  'message' names what is
 * attempted.  Raises a failure; 40001 for what MongoDB calls a transient transaction error.
 */
extern void mongo_session_read(MongoSession *session, const char *database,
							   const bson_t *command, MongoReply *reply, const char *message);

/*
 * mongo_session_lease, mongo_session_return_lease: lease and return the connection for a write.
 * Within a transaction it is always the same one.
 * mongo_session_fields: returns the fields to add to the transaction's next command, in the
 * current memory context.  Raises 53200.
 * mongo_session_note_reply: records that the command's reply was received or lost.  Never raises.
 * mongo_session_is_fresh: tells whether there is a MongoDB transaction in which nothing has been
 * read or written.
 * mongo_session_settle: receives the replies to all users' batches in flight, before a command is
 * sent to the server of 'user'.
 */
extern MongoLease *mongo_session_lease(MongoSession *session);
extern void mongo_session_return_lease(MongoSession *session, MongoLease *lease);
extern bson_t *mongo_session_fields(MongoSession *session);
extern void mongo_session_note_reply(MongoSession *session, const MongoReply *reply);
extern void mongo_session_note_insert(MongoSession *session, const MongoCommand *command);
extern int	mongo_session_note_write(MongoSession *session);
extern bool mongo_session_is_fresh(const MongoSession *session);
extern void mongo_session_restart(MongoSession *session);
extern bool mongo_session_try_again(MongoSession *session, const MongoFailure *failure,
									TimestampTz since, int attempt);
extern void mongo_session_settle(const UserMapping *user);

/* --------------------- batch.c: documents in a reply -------------------------- */

/* The rest of a batch; pointers are into the reply. */
typedef struct MongoBatch
{
	const uint8 *position;		/* of the next element */
	const uint8 *end;			/* of the elements */
	int64		id;				/* of the cursor; 0: nothing is left there */
	const char *ns;				/* its namespace; NULL: none */
	const uint8 *token;			/* the position behind the batch in a change
								 * stream, a document; NULL: none */
	uint32		token_length;
	bool		is_next;		/* it is not the first one */
	bool		has_time;		/* it was read at a cluster time */
} MongoBatch;

extern const char *mongo_batch_read(MongoBatch *batch, const bson_iter_t *cursor);
extern const uint8 *mongo_batch_next(MongoBatch *batch, uint32 *length, const char **violation);
extern bool mongo_batch_time(const MongoBatch *batch, uint64 *time);

/* ----------------------- read_time.c: reads at a time ------------------------- */

/* MongoDB's message on a time that it has not yet heard of. */
#define MONGO_TIME_TO_COME	"must not be greater than the current clusterTime"

#define MONGO_NAMESPACE_NOT_FOUND	26

extern void mongo_note_failure_at_time(int code);
pg_noreturn extern void mongo_refuse_transaction_at_time(void);
pg_noreturn extern void mongo_report_missing_at_time(const char *database, const char *collection);
extern void mongo_append_time(bson_t *command, const char *name, uint64 time);
extern uint64 mongo_reach_time(MongoConnection *connection, const char *database,
							   const char *collection, uint64 at);
extern List *mongo_collections_read(UserMapping *user, const char *database, const bson_t *command);
extern bool mongo_check_collections(MongoConnection *connection, const char *database,
									const List *names, uint64 at);

/* ------------------------ cursor.c, order.c: cursors -------------------------- */

/*
 * mongo_cursors_read_to_end: reads to their end, and stores, the open cursors that may see a
 * write to 'extent', inside or outside of MongoDB's transaction.
 */
extern void mongo_cursors_read_to_end(const MongoExtent *extent, bool in_transaction);

/* mongo_writing_level: returns the nesting level of the statement whose writes are sent. */
extern int	mongo_writing_level(void);

#endif							/* MONGO_FDW_REMOTE_INTERNAL_H */
