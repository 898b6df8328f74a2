/*-------------------------------------------------------------------------
 *
 * remote_internal.h
 *		What the files of src/remote share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_REMOTE_INTERNAL_H
#define MONGO_FDW_REMOTE_INTERNAL_H

#include "compat.h"
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

/*-------------------------------------------------------------------------
 * The session of MongoDB that a connection writes in.
 *
 * MongoDB ends a write by the id of its session, and recognizes one that is
 * repeated by id and number; so does it a transaction.  The id is made here, as the
 * Driver Sessions specification has it.  The session dies with its connection.
 *
 * https://github.com/mongodb/specifications (Driver Sessions, Retryable Writes)
 *-------------------------------------------------------------------------
 */

typedef struct MongoServerSession
{
	int			minutes;		/* logicalSessionTimeoutMinutes; 0: the server
								 * has no sessions */
	bson_t	   *lsid;			/* NULL: none has been needed yet */
	int64		number;			/* txnNumber of the last write that had one */
	TimestampTz used_at;
} MongoServerSession;

/*
 * mongo_server_session_use
 *		The lsid for what is sent next, {id: UUID}; NULL where the server has none.
 *
 * A new one, in 'context', where the last is about to be forgotten by the server.
 * Raises XX000 where there are no random numbers to be had.
 */
extern const bson_t *mongo_server_session_use(MongoServerSession *session,
											  MemoryContext context);

/*-------------------------------------------------------------------------
 * What the streams of a connection share while libmongoc makes it: why they talk no
 * more, and how long they wait.
 *
 * Once 'interrupted' every operation on each of them fails.
 *-------------------------------------------------------------------------
 */

struct MongoStream;

/*
 * Which interrupts end the wait for a reply.
 *
 * For a read any that CHECK_FOR_INTERRUPTS() would serve, which the caller then does:
 * others may wait for that, as a parallel query's leader for its workers' messages.
 * For a write one that ends the statement or the session.
 */
typedef enum MongoInterrupts
{
	MONGO_ANY_INTERRUPT,
	MONGO_DUE_INTERRUPT
} MongoInterrupts;

/*
 * The end of a transaction or of a write that was given up: its waits are bounded
 * together, and an interrupt, held or not, is not served but shortens them.
 */
typedef struct MongoEnding
{
	bool		active;
	TimestampTz deadline;		/* of all its waits */
	int			interrupt_ms;	/* to go on for after an interrupt was
								 * noticed; 0: it changes nothing */
} MongoEnding;

typedef struct MongoTransport
{
	bool		interrupted;	/* a wait was broken by an interrupt, or given
								 * up */
	bool		closing;		/* no more I/O: libmongoc's client is being
								 * destroyed */
	ErrorData  *wait_error;		/* an ERROR that waiting itself raised, or
								 * NULL */
	size_t		memory_missing; /* this much was needed and not there; 0 */
	bool		use_tls;
	mongoc_ssl_opt_t ssl_options;	/* strings owned by whoever filled it in */
	int			connect_timeout_ms;
	MongoTcpOptions tcp;
	bool		out_of_files;	/* one of them for want of a file descriptor */
	char		failure[400];	/* why connections could not be made; "" */
	const char *violation;		/* what was wrong with a reply, or NULL */
	int			wait_limit_ms;	/* of any wait; 0: none */
	int			socket_timeout_ms;	/* of any wait for the server; 0: none */
	bool		timed_out;		/* the last wait took longer than that */
	bool		last_failed;	/* the last send or receive: connection lost,
								 * or nothing came in time */
	MongoEnding ending;
	struct sockaddr_storage peer;	/* connect there whatever a host's name */
	socklen_t	peer_length;	/* says; 0: do as the name says */
	MongoTraffic traffic;		/* of all since it is there */
	dlist_head	streams;		/* of MongoStream, the newest first */
	struct MongoStream *data_stream;	/* the connection, once made; NULL:
										 * none */
} MongoTransport;

/*
 * mongo_transport_note_failure
 *		Append to transport->failure, unless it is said there already.
 */
extern void mongo_transport_note_failure(MongoTransport *transport,
										 const char *text);

/*
 * mongo_transport_note_violation
 *		A reply on the stream is not what it has to be: a sentence for DETAIL.
 */
extern void mongo_transport_note_violation(struct MongoStream *stream,
										   const char *violation);

/*
 * mongo_transport_note_memory
 *		So much memory is needed, and not there: no more I/O, and 53200 later.
 */
extern void mongo_transport_note_memory(MongoTransport *transport, size_t size);

/*
 * mongo_transport_close
 *		Close the connection, if there is one.
 */
extern void mongo_transport_close(MongoTransport *transport);

/*
 * mongo_begin_ending, mongo_finish_ending
 *		Bound all waits in between together (MongoEnding).
 */
extern void mongo_begin_ending(MongoTransport *transport, int total_ms, int interrupt_ms);

static inline void
mongo_finish_ending(MongoTransport *transport)
{
	transport->ending.active = false;
}

/*
 * mongo_transport_raise
 *		Raise what broke a wait inside libmongoc; return when nothing did, or the
 *		server has let its time pass (timed_out).
 */
extern void mongo_transport_raise(MongoTransport *transport);

/*-------------------------------------------------------------------------
 * The socket under libmongoc: buffered reads, interruptible waits.
 *
 * libmongoc lets its user supply the stream at the bottom of a client
 * (mongoc_client_set_stream_initiator).  Ours waits with PostgreSQL's
 * WaitEventSet on socket, latch and postmaster, so that a cancel ends any
 * wait at once.  It never raises: a longjmp must not cross libmongoc's
 * frames.  It fails the read or write instead, notes in the MongoTransport
 * why, and refuses every further operation on that client; the guard makes
 * that a failed command for libmongoc (remote_internal.h), which unwinds, and our code
 * then calls mongo_transport_raise().
 *
 * Everything here is malloc'd, since libmongoc decides when a stream dies.
 *-------------------------------------------------------------------------
 */

/* A timeout for libmongoc's functions that is none; see limited_wait(). */
#define MONGO_NO_TIMEOUT	INT32_MAX

/* One socket.  vtable comes first: libmongoc sees only that. */
typedef struct MongoStream
{
	mongoc_stream_t vtable;
	dlist_node	node;			/* in transport->streams */
	MongoTransport *transport;
	mongoc_stream_t *top;		/* what carries messages: this one, or TLS on
								 * it */
	mongoc_stream_t *guard;		/* on top of that (remote_internal.h), or NULL */
	size_t		guarded;		/* bytes that it has ready */
	char		host_and_port[BSON_HOST_NAME_MAX + 32];
	pgsocket	socket;
	bool		external_fd;	/* AcquireExternalFD() was granted */
	int			last_errno;		/* of the last operation; 0 at end of file */
	bool		reply_due;		/* sent, and not waited since: no use to
								 * receive */
	WaitEventSet *wait_set;		/* made at the first wait */
	char	   *buffer;			/* received and not yet asked for: */
	size_t		buffer_start;
	size_t		buffer_end;
} MongoStream;

/*
 * mongo_stream_new
 *		A stream over 'socket' (non-blocking), which it owns from now on.
 *
 * PGINVALID_SOCKET gives a stream whose every operation fails.
 */
extern MongoStream *mongo_stream_new(MongoTransport *transport,
									 pgsocket socket, bool external_fd,
									 const char *host_and_port);

/*
 * mongo_may_open_connection
 *		Will PostgreSQL account for the descriptors of one more stream?
 *
 * Beside the socket and its wait set one is asked for that stays free: for what
 * waits for several sockets, as an asynchronous Append does.
 */
extern bool mongo_may_open_connection(void);

/*
 * mongo_stream_wait
 *		Wait until the socket has one of 'events' (WL_SOCKET_*), never raising.
 *
 * True when it has.  False on timeout (errno ETIMEDOUT), on an interrupt or an
 * error (errno ECANCELED; transport->interrupted is set).  timeout_ms -1 waits
 * for ever.
 */
extern bool mongo_stream_wait(MongoStream *stream, uint32 events,
							  long timeout_ms);

/*
 * mongo_stream_wait_for_reply
 *		Wait until something can be read, as long as socket_timeout_ms allows.
 *
 * True at once when received bytes are buffered.  False as mongo_stream_wait(), with
 * transport->timed_out set on timeout; with MONGO_ANY_INTERRUPT an interrupt only ends
 * this wait (errno EINTR).
 */
extern bool mongo_stream_wait_for_reply(MongoStream *stream, MongoInterrupts interrupts);

/*
 * mongo_stream_has_input
 *		Without waiting: is something to be read, or has the peer closed?
 */
extern bool mongo_stream_has_input(MongoStream *stream);

/*-------------------------------------------------------------------------
 * "Send this command, receive its reply".
 *
 * Every command but those of the handshake is built by one function, sent by one, and
 * its reply received by one, which gives up a wait without raising: whoever writes notes
 * what is known before the error is raised.
 *
 * https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/
 *-------------------------------------------------------------------------
 */

/* Space for a message. */
typedef struct MongoBuffer
{
	uint8	   *data;			/* NULL: none yet */
	size_t		capacity;
} MongoBuffer;

/*
 * One connection.
 *
 * Invariant: in_flight counts the requests sent whose reply has not been
 * received whole; a connection with in_flight > 0 or 'broken' is never used
 * for something else, it is closed.
 */
typedef struct MongoConnection
{
	MongoTransport transport;
	const char *server_name;	/* for messages */
	bool		broken;
	int			in_flight;
	uint32		last_request_id;

	/* elements to append to a command: $readPreference, readConcern */
	bson_t	   *read_preference;	/* NULL: none */
	bson_t	   *read_concern;	/* NULL: none */
	bson_t	   *write_concern;	/* to writes outside of transactions:
								 * writeConcern; NULL: none */

	uint64		waited_before;	/* MONGO_COUNT_WAIT_US when it was sent */
	const char *comment;		/* as remote_internal.h prepares it; NULL:
								 * none is sent */

	const MongoCompressor *compressor;	/* negotiated for both ways, or NULL */
	int			compression_level;

	MongoBuffer request;		/* the request being built; malloc'd */
	MongoBuffer compressed;		/* and what is sent in its place */
} MongoConnection;

/* A document sequence: a section of kind 1, documents one after the other. */
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
	const bson_t *document;		/* its name first */
	const bson_t *fields;		/* of its session, and a write concern; NULL:
								 * the connection's $readPreference and
								 * readConcern are added, if it takes them */
	const MongoSequence *sequence;	/* NULL: none */
} MongoCommand;

/* A reply; the space for its bytes is reused from one to the next. */
typedef struct MongoReply
{
	MemoryContext context;		/* where the buffers are palloc'd */
	uint32		request_id;		/* what it answers */
	MongoBuffer message;
	MongoBuffer compressed;		/* as it came, when it did so compressed */
	const uint8 *document;		/* in message: the command's reply */
	uint32		document_length;

	/* of one that has not come whole */
	size_t		received;
	size_t		expected;		/* 0: not known yet */
	bool		is_compressed;
} MongoReply;

/* What became of waiting for a reply. */
typedef enum MongoOutcome
{
	MONGO_REPLY,				/* it has come whole, and is one */
	MONGO_BROKEN,				/* it will not: the connection is lost, or not
								 * to be used any more */
	MONGO_INTERRUPTED			/* an interrupt, or a limit of time; receiving
								 * can go on */
} MongoOutcome;

/*
 * mongo_send
 *		Send a command, whose reply is to be received; true when it has left whole.
 *
 * What has not left whole MongoDB does not run.  Raises 53200 alone, before anything has
 * left.
 */
extern bool mongo_send(MongoConnection *connection, const MongoCommand *command,
					   MongoReply *reply);

/*
 * mongo_send_or_raise
 *		mongo_send() for a read: false if the connection is lost.
 *
 * Raises 57014 when cancelled, 54000 for a command that MongoDB would not take for its
 * size.
 */
extern bool mongo_send_or_raise(MongoConnection *connection, const MongoCommand *command,
								MongoReply *reply);

/*
 * mongo_receive_document
 *		Wait for the reply to a command without a cursor, and read it: *document is a view
 *		of it.  Never raises.
 *
 * After MONGO_INTERRUPTED a later call goes on with the same reply.  MONGO_BROKEN also if
 * the document is not one that a command replies with.
 */
extern MongoOutcome mongo_receive_document(MongoConnection *connection, MongoReply *reply,
										   MongoInterrupts interrupts, bson_t *document);

/*
 * mongo_receive_or_raise
 *		Wait for the reply to a read, and read it: false if the connection is lost.
 *
 * Raises 08P01 for what is not a valid OP_MSG reply to that request, 08006 after
 * socket_timeout_ms, 53200, and what interrupts bring; after these a later call goes on
 * with the same reply.
 */
extern bool mongo_receive_or_raise(MongoConnection *connection, MongoReply *reply);

/*
 * mongo_receive_within
 *		Receive a reply that nobody wants within so many milliseconds; never raises.
 *
 * False when it has not come whole, and the connection is not used any more.
 */
extern bool mongo_receive_within(MongoConnection *connection, MongoReply *reply,
								 int milliseconds);

/*
 * mongo_check_command_size
 *		Raise 54000 for a command that MongoDB would not take for its size.
 */
extern void mongo_check_command_size(const bson_t *command);

/*
 * mongo_reply_free
 *		Free a reply's buffers; it may be used again.
 */
extern void mongo_reply_free(MongoReply *reply);

/*
 * mongo_has_reply
 *		Would mongo_receive_or_raise() wait for no more than the rest of a reply that has begun to
 *		come, or find the connection lost?
 */
extern bool mongo_has_reply(MongoConnection *connection);

/*
 * mongo_send_and_forget
 *		Send a command that the server must not answer (moreToCome).
 *
 * Never raises, so it may be called while cleaning up.  Does not wait: a
 * connection that does not take the message at once is marked broken.
 */
extern void mongo_send_and_forget(MongoConnection *connection, const char *database,
								  const bson_t *command);

/*
 * mongo_report_violation
 *		Raise 08P01 for a reply that is not what it has to be, after which the
 *		connection is not used any more.
 */
pg_noreturn extern void mongo_report_violation(MongoConnection *connection,
											   const char *detail);

/*
 * mongo_raise_wait
 *		After a wait that failed: raise what broke it, or 08006 where it took
 *		longer than socket_timeout_ms; return when it was neither.
 */
extern void mongo_raise_wait(MongoConnection *connection);

/*
 * mongo_report_disconnect
 *		Raise 08006 for a connection lost.
 */
pg_noreturn extern void mongo_report_disconnect(const char *server_name);

/* --------- One libmongoc client with its authenticated connection --------- */

/* A small document that a reply told, to be sent along: a cluster time, a token. */
typedef struct MongoKeptDocument
{
	uint32		length;			/* 0: none */
	uint8		bytes[512];
} MongoKeptDocument;

/* A cursor that a server holds open; malloc'd, all in one piece. */
typedef struct RemoteCursor
{
	dlist_node	node;			/* in the pool's list of orphans, if there */
	int64		id;
	const char *host_and_port;
	const char *database;
	const char *collection;
} RemoteCursor;

/*
 * malloc'd as libmongoc's own are.  The strings that connection.transport
 * points to belong to 'context', a child of TopMemoryContext that dies with
 * the client.
 */
typedef struct MongoClient
{
	dlist_node	node;			/* in the pool's idle or leased list */
	MemoryContext context;
	MongoConnection connection;
	mongoc_uri_t *uri;			/* of the options */
	mongoc_uri_t *identity;		/* the same as libmongoc has completed it, for
								 * who connects to the same server */
	mongoc_client_t *driver;	/* while connecting, or NULL */
	mongoc_server_description_t *selected;	/* likewise */
	char		host[BSON_HOST_NAME_MAX + 32];	/* the server's, with its port */
	struct sockaddr_storage peer;	/* and where that was last */
	socklen_t	peer_length;	/* 0: never connected */
	bool		retired;		/* its server or user mapping has changed */
	bool		keep;			/* option keep_connections */
	int			idle_timeout;	/* option of that name, in milliseconds; 0:
								 * none */
	int			async_connections;	/* likewise */
	int			max_connections;	/* likewise; 0: any number */
	MongoActivity *counted;		/* among all sessions' connections, or NULL */
	mongoc_read_mode_t read_mode;	/* of mongo_client_connect() */
	Oid			serverid;
	const char *server_type;	/* as libmongoc calls it */
	TimestampTz connected_at;
	bool		in_transaction; /* of MongoDB's, that PostgreSQL's goes on
								 * with */
	MongoTraffic flushed;		/* of the transport's traffic, to shared
								 * memory */

	/* for writes and transactions */
	MongoServerSession session;
	MongoKeptDocument cluster_time; /* the last that was told */
	bool		is_standalone;	/* which has no transactions */
	bool		takes_writes;	/* false: another member does, the primary */
	bool		retries_writes; /* the server recognizes a repetition, and
								 * retryWrites is not false */
	int			most_writes;	/* in a message: maxWriteBatchSize */
	int			longest_message;	/* maxMessageSizeBytes */
	TimestampTz idle_since;		/* 0: never used yet */
	uint32		server_hashvalue;	/* as syscache callbacks identify them */
	uint32		mapping_hashvalue;
	int			cursors;		/* that were opened on it and are being read */
} MongoClient;

/* The client that a connection is part of. */
static inline MongoClient *
mongo_client_of(MongoConnection *connection)
{
	return (MongoClient *) ((char *) connection - offsetof(MongoClient, connection));
}

/*
 * mongo_client_connect
 *		A new client, connected and authenticated.
 *
 * Raises 08001, 08P01, 28P01, 57014.  With a replica set, waits up to
 * server_selection_timeout_ms for a member that suits the read preference:
 * 'read_mode', or what the server's options say (0).
 */
extern MongoClient *mongo_client_connect(UserMapping *user, mongoc_read_mode_t read_mode);

/*
 * mongo_client_reconnect
 *		Replace the connection by a new one, to the primary that there is now; false, with
 *		none, and *error set.  Tries once; never raises.
 */
extern bool mongo_client_reconnect(MongoClient *client, bson_error_t *error);

/*
 * mongo_client_run_beside
 *		Run commands over a connection of their own to the same server; how many were
 *		sent, to a server that had answered before.
 *
 * Takes 'total_ms' at most, and 'wait_ms' for a single answer.  Never raises.
 */
extern int	mongo_client_run_beside(const MongoClient *client, const MongoCommand *commands,
									int ncommands, int wait_ms, int total_ms);

/*
 * mongo_client_is_clean
 *		May the client be used for something else?
 */
extern bool mongo_client_is_clean(const MongoClient *client);

/*
 * mongo_client_is_on
 *		Is it connected to that server?
 */
extern bool mongo_client_is_on(const MongoClient *client,
							   const char *host_and_port);

/*
 * mongo_client_describe_cursor
 *		A description, to be freed by bson_free(), of the cursor that the client's
 *		server holds open.  The client must be connected.
 */
extern RemoteCursor *mongo_client_describe_cursor(const MongoClient *client,
												  int64 cursor_id,
												  const char *database,
												  const char *collection);

/*
 * mongo_client_kill_command
 *		The command that closes a cursor.
 */
extern void mongo_client_kill_command(const RemoteCursor *cursor, bson_t *command);

/*
 * mongo_client_kill_cursor
 *		Tell the server to close a cursor of its own; false unless the client is
 *		on that server and clean, and stays so.
 *
 * Neither waits nor raises, nor frees the cursor.
 */
extern bool mongo_client_kill_cursor(MongoClient *client,
									 const RemoteCursor *cursor);

/*
 * mongo_client_has_lost_connection
 *		Can be seen, without sending anything, that a server has closed one?
 */
extern bool mongo_client_has_lost_connection(MongoClient *client);

/*
 * mongo_client_end_session
 *		Tell the server that the client's session, if it has used one, is over.
 *
 * MongoDB would remember it for half an hour.  Neither waits nor raises.
 */
extern void mongo_client_end_session(MongoClient *client);

/*
 * mongo_client_close
 *		End its session, close the connections and free the client.  Neither
 *		waits nor raises.
 */
extern void mongo_client_close(MongoClient *client);

/*-------------------------------------------------------------------------
 * Leases: the exclusive use of a client, pooled per backend and user mapping.
 *
 * libmongoc does what a driver is for (URI, topology, server selection, TLS,
 * authentication); a client whose server has been selected and authenticated
 * is then leased to one user at a time.  A lease is exclusive: nobody else
 * writes to its socket.  Clients live across statements and transactions
 * until ALTER/DROP SERVER or USER MAPPING retires them, the connection
 * breaks, or keep_connections is off.
 *-------------------------------------------------------------------------
 */

/* See remote_internal.h. */
typedef struct MongoLease MongoLease;

/* What the pool asks of a scan, or of a batch under way (write_batch.c). */
typedef struct MongoTurns
{
	/*
	 * Receive the answer in flight into memory of the scan's own and call
	 * mongo_lease_put().  May raise.
	 */
	void		(*take_answer) (void *reader);

	/*
	 * It is the scan's turn: ask with MONGO_TURN_LATER.  May raise.  NULL for
	 * what never waits for its turn.
	 */
	void		(*serve) (void *reader);

	/*
	 * The lease ends, with an answer in flight that nobody wants: note the
	 * cursor that it tells of, if it comes soon.  Must not raise.
	 */
	void		(*discard_answer) (void *reader);
} MongoTurns;

/*
 * mongo_lease_create
 *		A lease that holds no client yet, to be ended by mongo_lease_release() or
 *		by its owner's reset.
 */
extern MongoLease *mongo_lease_create(MemoryContext owner, UserMapping *user,
									  const MongoTurns *turns, void *reader);

/*
 * mongo_lease_prefer
 *		Have clients of this read preference, and not of the server's options.
 *
 * For a lease that holds no client yet.
 */
extern void mongo_lease_prefer(MongoLease *lease, mongoc_read_mode_t read_mode);

/*
 * mongo_lease_acquire
 *		Lease an idle client for 'user', or connect a new one.
 *
 * The lease is tied to 'owner': when that context is reset or deleted (at the
 * latest by transaction abort) it is given back by itself.  An idle client is
 * handed out without any traffic.  Raises 08001, 08P01, 28P01, 57014 (cancelled).
 */
extern MongoLease *mongo_lease_acquire(MemoryContext owner, UserMapping *user);

/*
 * mongo_lease_replace_if_closed
 *		Replace the client if the server has closed its connection, before something is
 *		sent that must not be sent twice.
 *
 * That takes one system call, unless the client was in use a moment ago.
 */
extern void mongo_lease_replace_if_closed(MongoLease *lease, UserMapping *user);

/*
 * mongo_lease_acquire_for_write
 *		A client of the primary, whose connection has not been closed.
 *
 * With 'turns' others may have the answer taken while it is in flight.
 */
extern MongoLease *mongo_lease_acquire_for_write(MemoryContext owner, UserMapping *user,
												 const MongoTurns *turns, void *reader);

/*
 * mongo_lease_release
 *		Give a lease back to the pool; the pointer is dead afterwards.
 */
extern void mongo_lease_release(MongoLease *lease);

/*
 * mongo_lease_check_interrupts
 *		When what has become of a command has been noted: log it if it took long, and
 *		raise what its wait was broken by, or 08006 where that took longer than the
 *		option socket_timeout_ms.
 */
extern void mongo_lease_check_interrupts(MongoLease *lease);

/*
 * mongo_lease_count
 *		Count for server and user what no connection counts.
 */
extern void mongo_lease_count(MongoLease *lease, MongoCounter counter, uint64 count);

/*
 * mongo_lease_note_cursor
 *		Remember the cursor that the server of the lease's client holds open, to
 *		be killed when the lease ends; id 0: there is none any more.
 *
 * Never raises.  False where there is no memory for it: the cursor is closed.
 */
extern bool mongo_lease_note_cursor(MongoLease *lease, int64 cursor_id,
									const char *database,
									const char *collection);

/*
 * mongo_lease_connection
 *		The data plane's view of a lease.
 */
extern MongoConnection *mongo_lease_connection(MongoLease *lease);

/*
 * mongo_lease_renew
 *		Replace the connection under a lease, which has broken, by a new one.
 *
 * Raises as mongo_lease_acquire() does; the lease then holds nothing.
 */
extern void mongo_lease_renew(MongoLease *lease, UserMapping *user);

/*
 * mongo_lease_renew_for_write
 *		mongo_lease_renew(), and a client of the primary wherever the read preference leads.
 */
extern void mongo_lease_renew_for_write(MongoLease *lease, UserMapping *user);

/* ---------------- Connecting a socket in libmongoc's stead ---------------- */

/*
 * mongo_stream_initiate
 *		mongoc_stream_initiator_t: connect to 'host', with TLS if so configured.
 *
 * 'user_data' is the client's MongoTransport.  When that fails, takes longer
 * than connect_timeout_ms, or the transport has been interrupted, the reason
 * is appended to transport->failure and the result is a stream without a
 * socket, whose every operation fails.  Never NULL: libmongoc (seen in 1.23.1)
 * locks itself out for ever when the initiator fails for a replica set member
 * that it learns of while it processes another member's answer.
 */
extern mongoc_stream_t *mongo_stream_initiate(const mongoc_uri_t *uri,
											  const mongoc_host_list_t *host,
											  void *user_data,
											  bson_error_t *error);

/* --------- Who one is to MongoDB: from options to libmongoc's URI --------- */

/*-------------------------------------------------------------------------
 * The cursors that a MongoDB transaction has open on the server.
 *
 * MongoDB closes a cursor when its last document has been fetched, or when it
 * is told to; the end of the transaction that opened it closes nothing (seen in
 * 6.0: serverStatus.metrics.cursor.open).  Those that nobody reads to the end
 * are therefore killed, some at a time, and what is left when the transaction
 * ends.
 *-------------------------------------------------------------------------
 */

/* One cursor that somebody reads; opaque. */
typedef struct MongoSessionCursor MongoSessionCursor;

/* The cursors of one session. */
typedef struct MongoSessionCursors
{
	MemoryContext context;		/* lives as long as the transaction */
	dlist_head	read;			/* somebody may ask for the next batch */
	dlist_head	abandoned;		/* nobody will */
	int			nabandoned;
	int			due;			/* when these are to be killed */
} MongoSessionCursors;

/*
 * mongo_session_cursors_init
 *		None yet; their entries will live in 'context'.
 */
extern void mongo_session_cursors_init(MongoSessionCursors *cursors,
									   MemoryContext context);

/*
 * mongo_session_cursors_add
 *		The server has opened one.  Copies of both names are kept.
 *
 * The reader keeps *handle, which becomes NULL when the cursor is no longer its
 * own: it has come to its end, was abandoned, or was killed with the rest.
 */
extern void mongo_session_cursors_add(MongoSessionCursors *cursors,
									  const char *database,
									  const char *collection, int64 id,
									  MongoSessionCursor **handle);

/*
 * mongo_session_cursors_abandon
 *		Nobody reads on.  Neither raises nor sends anything.
 */
extern void mongo_session_cursors_abandon(MongoSessionCursors *cursors,
										  MongoSessionCursor *cursor);

/*
 * mongo_session_cursors_are_due
 *		Are so many abandoned that it is time to kill them?
 */
extern bool mongo_session_cursors_are_due(const MongoSessionCursors *cursors);

/*
 * mongo_session_cursors_kill
 *		Kill those abandoned, or all: a command for each collection, which 'run' is called
 *		with; false where the server cannot be told.
 *
 * Calls nothing when there are none.  Does not raise; the caller asks its lease
 * for interrupts.  After an error, of which nobody is told, they stay listed.
 */
typedef bool (*MongoKillFunction) (void *argument, const char *database,
								   const bson_t *command);
extern void mongo_session_cursors_kill(MongoSessionCursors *cursors, bool all,
									   MongoKillFunction run, void *argument);

/*-------------------------------------------------------------------------
 * What writes may have done that no MongoDB transaction holds together.
 *
 * They stay when PostgreSQL rolls back.  How many documents MongoDB has
 * confirmed is known; what a command did that was broken off is not, as the
 * reply of one that MongoDB has interrupted does not say how far it came.
 *-------------------------------------------------------------------------
 */

/* What to do about a command that may be running still. */
#define MONGO_RUNNING_HINT \
	"In MongoDB, currentOp shows what is running, and killOp ends it."

/* What is known of one command. */
typedef enum MongoWriteEnd
{
	MONGO_WRITE_ANSWERED,		/* the reply says what it did; or it was not
								 * sent */
	MONGO_WRITE_STOPPED,		/* it runs no more, and has done a part */
	MONGO_WRITE_UNKNOWN			/* no reply has come: it may be running */
} MongoWriteEnd;

/* What commands that were broken off may have done, together. */
typedef struct MongoWriteDoubt
{
	int			commands;
	int64		documents;		/* written by them at most; -1: any number */
	bool		running;		/* one of them may be running still */
} MongoWriteDoubt;

/*
 * mongo_write_doubt_add
 *		Another command, of at most so many documents (-1: any number).
 */
extern void mongo_write_doubt_add(MongoWriteDoubt *doubt, MongoWriteEnd end,
								  int64 documents);

/*
 * mongo_write_doubt_text
 *		The same as a sentence without its full stop, palloc'd; NULL: there is no
 *		doubt.
 */
extern char *mongo_write_doubt_text(const MongoWriteDoubt *doubt);

/*
 * mongo_warn_of_lasting_writes
 *		WARNING (01000) that so many documents written stay, and perhaps more.
 *
 * Nothing when neither is the case.
 */
extern void mongo_warn_of_lasting_writes(const char *server_name, int64 documents,
										 const MongoWriteDoubt *doubt);

/*-------------------------------------------------------------------------
 * A batch under way (remote.h), as its session sees it.
 *
 * Whoever else writes or reads in the session first has it settled, so that
 * commands reach MongoDB in the order in which SQL has them, and who writes does
 * not do so after a failure.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_write_flight_settle
 *		Wait for the reply, if that has not been done.
 *
 * Raises what breaks the wait, but not what the reply says: that is the statement's own,
 * which another one's exception block must not catch.
 */
extern void mongo_write_flight_settle(MongoWriteFlight *flight);

/*
 * mongo_write_flight_check
 *		Raise what the reply says, as often as this is called.
 */
extern void mongo_write_flight_check(MongoWriteFlight *flight);

/*
 * mongo_write_flight_abandon
 *		The statement has ended by an error: note in the session what becomes of the
 *		batch.
 *
 * Takes 0.8 s at most, and less where MongoDB is silent.  Never raises.
 */
extern void mongo_write_flight_abandon(MongoWriteFlight *flight);

/*-------------------------------------------------------------------------
 * What src/remote does in the sessions of remote.h.
 *
 * The functions are those of transaction.c.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_session_read_command
 *		Run a command that reads; the reply lives in 'context'.
 *
 * 'context_message' names what was attempted, for the error that a failed
 * command raises: 40001 for what MongoDB calls a transient transaction error.
 */
extern const bson_t *mongo_session_read_command(MongoSession *session,
												MemoryContext context,
												const char *database,
												const bson_t *command,
												const char *context_message);

/*
 * mongo_session_traffic
 *		That of the client whose transaction the session reads in.
 */
extern const MongoTraffic *mongo_session_traffic(const MongoSession *session);

/*
 * mongo_session_cursor_opened, mongo_session_cursor_abandoned
 *		A command that read in the session has left a cursor open on the server;
 *		nobody wants the rest of it.
 *
 * As in remote_internal.h: *handle becomes NULL when the cursor is not open any
 * more.  What is abandoned is killed later, with others; all that are left when
 * the transaction ends.  The first raises 57014, the second nothing.
 */
extern void mongo_session_cursor_opened(MongoSession *session,
										const char *database,
										const char *collection, int64 id,
										MongoSessionCursor **handle);
extern void mongo_session_cursor_abandoned(MongoSession *session,
										   MongoSessionCursor *cursor);

/*
 * mongo_session_lease, mongo_session_return_lease
 *		The connection to write with; outside a transaction each write leases one.
 */
extern MongoLease *mongo_session_lease(MongoSession *session);
extern void mongo_session_return_lease(MongoSession *session, MongoLease *lease);

/*
 * mongo_session_fields, mongo_session_note_reply
 *		What a command of the transaction has beside itself, in the current memory
 *		context, to be sent next; its reply has come, or none has (NULL).
 *
 * The first raises 53200 alone, the second nothing.
 */
extern bson_t *mongo_session_fields(MongoSession *session);
extern void mongo_session_note_reply(MongoSession *session, const bson_t *reply);

/*
 * mongo_session_is_fresh
 *		Is this a MongoDB transaction in which nothing has been read or written?
 *
 * Never where the isolation level asks for one snapshot.
 */
extern bool mongo_session_is_fresh(const MongoSession *session);

/*
 * mongo_session_restart
 *		Begin a MongoDB transaction again whose first command has failed.
 *
 * What was fresh before that command is fresh again.
 */
extern void mongo_session_restart(MongoSession *session);

/*
 * mongo_session_note_write
 *		Something has been, or may have been, written: so many documents.
 */
extern void mongo_session_note_write(MongoSession *session, int64 documents);

/*
 * mongo_session_lease_for
 *		A client to send with outside of transactions, whose answer others may have
 *		taken (remote_internal.h).
 */
extern MongoLease *mongo_session_lease_for(MongoSession *session, const MongoTurns *turns,
										   void *reader);

/*
 * mongo_session_settle
 *		What runs outside of sessions is about to be sent for 'user': have the reply to
 *		a batch under way received first (remote_internal.h).
 */
extern void mongo_session_settle(const UserMapping *user);

/*
 * mongo_session_note_flight, mongo_session_note_landed
 *		A batch is under way from now on; it is not any more.  One at a time.
 */
extern void mongo_session_note_flight(MongoSession *session, MongoWriteFlight *flight);
extern void mongo_session_note_landed(MongoSession *session);

/*
 * mongo_session_doubt
 *		What is not known of commands without a MongoDB transaction.
 */
extern MongoWriteDoubt *mongo_session_doubt(MongoSession *session);

/*
 * mongo_session_renew_lease
 *		mongo_lease_renew_for_write() for the session's user, outside of transactions.
 */
extern void mongo_session_renew_lease(MongoSession *session, MongoLease *lease);

/*
 * mongo_session_server_name
 *		The foreign server's name, for messages; it lives as long as the session.
 */
extern const char *mongo_session_server_name(const MongoSession *session);

/*
 * mongo_session_is_lost_by
 *		Has MongoDB ended the transaction by this error, so that it may be tried again?
 *		'reply' is NULL where none has come.
 */
extern bool mongo_session_is_lost_by(const MongoSession *session, const bson_error_t *error,
									 const bson_t *reply);

/*
 * mongo_session_report_error
 *		Raise what a write or command in the session came back with.
 *
 * 'reply' is NULL where none has come.  Must be called after the lease has been asked for
 * interrupts.
 */
pg_noreturn extern void mongo_session_report_error(const MongoSession *session,
												   const char *context_message,
												   const bson_error_t *error,
												   const bson_t *reply);

/*-------------------------------------------------------------------------
 * How the scans of a user mapping take turns on its few connections.
 *
 * A scan needs a connection for as long as it has asked for something and the
 * answer has not come: MongoDB's cursors belong to the server, not to the
 * connection.  So its lease holds a client only meanwhile.  There is one client
 * of each read preference that tables ask for, and up to async_connections when
 * several have asked for something; beyond
 * that a scan that cannot go on takes the answer that was asked for first off
 * its connection, for its owner, and has the connection then.  A scan that
 * need not go on at once waits until a client is free.
 *-------------------------------------------------------------------------
 */

/* How much a scan wants a connection. */
typedef enum MongoTurn
{
	MONGO_TURN_NOW,				/* whatever it takes */
	MONGO_TURN_LATER,			/* if there is one, or there may be one more;
								 * else it is called when there is */
	MONGO_TURN_IF_FREE			/* if there is one that nobody waits for */
} MongoTurn;

/*
 * mongo_lease_take
 *		Hold a client that is connected to the server of the lease's cursor, if it
 *		has one, and has nothing in flight.
 *
 * False, only where 'turn' allows it, when there is none.  Raises as
 * mongo_lease_acquire() does, and 08006 when that server cannot be reached any
 * more.
 */
extern bool mongo_lease_take(MongoLease *lease, UserMapping *user, MongoTurn turn);

/*
 * mongo_lease_note_sent
 *		A request is in flight: others may now have its answer taken.
 */
extern void mongo_lease_note_sent(MongoLease *lease);

/*
 * mongo_lease_note_answered
 *		Its answer has been received.
 */
extern void mongo_lease_note_answered(MongoLease *lease);

/*
 * mongo_lease_put
 *		Give the client back; it is closed unless it is clean.  Never raises.
 */
extern void mongo_lease_put(MongoLease *lease);

/*
 * mongo_lease_serve_others
 *		Let those who wait have the clients that are free.
 */
extern void mongo_lease_serve_others(MongoLease *lease);

/*
 * mongo_lease_holds_client
 *		Does it?  All but the functions above need one.
 */
extern bool mongo_lease_holds_client(const MongoLease *lease);

/*
 * mongo_lease_find_in_flight
 *		Is there a request in flight of the lease's user mapping, read preference
 *		and kind ('turns') whose reader meets the condition?
 */
extern bool mongo_lease_find_in_flight(MongoLease *lease,
									   bool (*condition) (const void *reader, const void *arg),
									   const void *arg);

/*-------------------------------------------------------------------------
 * What a cursor knows, and when it asks for more.
 *
 * Private to src/remote/cursor.c, which sends and reads, and cursor.c,
 * which says when, as others need connections as well.
 *-------------------------------------------------------------------------
 */

struct MongoCursor
{
	MemoryContext context;
	UserMapping *user;
	MongoLease *lease;			/* NULL when closed, and in a session */
	void	   *tag;			/* the caller's */
	MongoSession *session;		/* of a transaction; NULL outside */
	MongoSessionCursor *open_in_session;	/* NULL: not, or no more */
	MemoryContextCallback callback;
	MemoryContext batch_context;	/* of the reply that a session gave */
	const char *database;
	const char *collection;		/* as the caller calls it, for messages */
	uint8	   *command;		/* kept to be sent again; NULL: no more */
	bool		opened;			/* its reply has come */
	uint32		command_length;
	int			batch_size;
	bool		batches_grow;
	TimestampTz batch_at;		/* when the last batch came, if they grow */
	const char *reply_field;	/* of mongo_cursor_expect_document(), or NULL */
	const char *comment;		/* as remote_internal.h prepares it; NULL: the
								 * server's */

	bool		sent;			/* the command has been */
	bool		pending;		/* a request is in flight */
	bool		taken;			/* its answer is in memory, not looked at yet */
	bool		lost;			/* ... or its connection is lost */
	int64		id;				/* the server's; 0: all is fetched */
	char	   *ns_database;	/* where getMore goes */
	char	   *ns_collection;

	MongoUsage *usage;			/* what it causes: own_usage or the caller's */
	MongoUsage	own_usage;
	uint64		documents;		/* not added to server and user's counts yet */

	MongoReply	replies[2];		/* the current one, and the next one's room */
	int			current;
	const uint8 *position;		/* of the next array element */
	const uint8 *end;			/* of the batch's elements */
	bool		has_document;	/* the reply is to be handed out */
	const uint8 *reply_document;
	uint32		reply_length;

	/* of order.c: */
	dlist_node	node;			/* in the list of open cursors */
	bool		listed;
	MongoExtent extent;			/* what the command reads */
	Oid			userid;			/* who has opened it, for which tables */
	List	   *tables;
	ResourceOwner owner;
	Tuplestorestate *kept;		/* documents read before they were asked for,
								 * or NULL */
	TupleTableSlot *kept_slot;
	int64		nkept;			/* not handed out yet */
	MongoCursorRead read_others;	/* of mongo_cursor_precedes(), or NULL */
	void	   *read_others_arg;
	bool		keeping;		/* and still so afterwards: one is missing */
	MongoReply	held;			/* has the document that was handed out last */
	MemoryContext held_context; /* likewise, in a session */
};

/* What the pool asks of a cursor, the reader of its lease. */
extern const MongoTurns mongo_cursor_turns;

/*
 * mongo_cursor_fetch
 *		The next document from MongoDB, NULL at the end.
 *
 * mongo_cursor_has_all
 *		Have all documents that were not handed out come from MongoDB?
 */
extern const uint8_t *mongo_cursor_fetch(MongoCursor *cursor, uint32 *length);
extern bool mongo_cursor_has_all(const MongoCursor *cursor);

/*
 * mongo_order_note_open, mongo_order_note_closed
 *		A cursor that is open has to be read to its end before what it reads changes.
 *
 * mongo_cursor_forget_kept
 *		Forget the documents that were read for that reason.
 */
extern void mongo_order_note_open(MongoCursor *cursor);
extern void mongo_order_note_closed(MongoCursor *cursor);
extern void mongo_cursor_forget_kept(MongoCursor *cursor);

/* mongo_writing_level: the nesting level of the statement that writes. */
extern int	mongo_writing_level(void);

/*
 * mongo_cursor_begin_anew
 *		Send the command once more, over a new connection.
 *
 * mongo_cursor_forget_command
 *		The scan cannot begin anew any more.
 */
extern void mongo_cursor_begin_anew(MongoCursor *cursor);

/*
 * mongo_cursor_begin_wait, mongo_cursor_end_wait
 *		Around what receives on the lease's connection or the session's: its bytes and
 *		time are the cursor's.
 */
extern void mongo_cursor_begin_wait(MongoCursor *cursor, const MongoTraffic *traffic);

/*-------------------------------------------------------------------------
 * What a reply says, and ending what was begun.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_reply_has_failed
 *		Was a command not answered, or by {ok: 0}?  Then *error says why.
 */
extern bool mongo_reply_has_failed(const MongoConnection *connection, bool answered,
								   const bson_t *document, bson_error_t *error);

/*
 * mongo_keep, mongo_append_kept
 *		Keep a document that stands in a reply, if it is there and small; append it to
 *		another one, if there is one.
 */
extern void mongo_keep(MongoKeptDocument *kept, const bson_t *reply, const char *field);
extern void mongo_append_kept(bson_t *document, const char *field, const MongoKeptDocument *kept);

/*
 * mongo_append_kill_session
 *		killSessions, which ends what runs in the session, its transaction and its
 *		cursors.
 */
extern void mongo_append_kill_session(bson_t *command, const bson_t *lsid);

/*
 * mongo_end_write
 *		The wait for the reply to a write with this lsid was given up: have MongoDB end
 *		the write, over another connection, and wait a little longer.
 *
 * Takes half a second at most, and less where the server is silent.  Never raises.
 */
extern MongoOutcome mongo_end_write(MongoConnection *connection, const bson_t *lsid,
									MongoReply *reply, bson_t *document);

/*
 * mongo_kill_cursors_beside
 *		Close those listed cursors, of RemoteCursor, that are on the server of
 *		'client', over another connection.  They are taken out and freed.
 *
 * For a client with a getMore under way, which MongoDB does not end when its
 * connection closes (seen in 6.0), so it would go on until its batch is full.  Takes
 * 300 ms at most, and less where the server is silent; some milliseconds usually.
 * As the process exits, all calls together take a second at most; what is left then
 * is closed by MongoDB when that getMore has ended.  Never raises.
 */
extern void mongo_kill_cursors_beside(MongoClient *client, dlist_head *cursors);

/*-------------------------------------------------------------------------
 * Is this a message that a server may send us?
 *
 * The checks of what stands around a reply's document.  They neither raise nor
 * wait: they give NULL when all is well, and else what is wrong, a sentence for
 * DETAIL that is never freed.
 *
 * https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/
 *-------------------------------------------------------------------------
 */

#define OP_REPLY			1	/* answers libmongoc's first "hello" */
#define OP_COMPRESSED		2012
#define OP_MSG				2013

#define HEADER_SIZE			16	/* messageLength requestID responseTo opCode */
#define BODY_OFFSET			(HEADER_SIZE + 4 + 1)	/* flagBits, section kind */
#define SMALLEST_DOCUMENT	5

/* OP_COMPRESSED: originalOpcode, uncompressedSize, compressorId, then the rest */
#define COMPRESSED_OFFSET	(HEADER_SIZE + 4 + 4 + 1)

/* maxMessageSizeBytes, and 16 kB for what a command has of its own */
#define LARGEST_MESSAGE		(48000000 + 16384)

#if PG_BIGENDIAN
#define little_endian32(x)	pg_bswap32(x)
#else
#define little_endian32(x)	(x)
#endif

static inline void
put_int32(uint8 *destination, uint32 value)
{
	value = little_endian32(value);
	memcpy(destination, &value, 4);
}

static inline uint32
get_int32(const uint8 *source)
{
	uint32		value;

	memcpy(&value, source, 4);
	return little_endian32(value);
}

/*
 * mongo_frame_check_header
 *		The first HEADER_SIZE bytes of an answer to 'request_id'.
 *
 * The opcode is the caller's to check.
 */
extern const char *mongo_frame_check_header(const uint8 *header,
											uint32 request_id);

/*
 * mongo_frame_check_message
 *		A whole OP_MSG of 'length' bytes, as its header has it: exactly one
 *		document, beginning at BODY_OFFSET, and nothing else.
 */
extern const char *mongo_frame_check_message(const uint8 *message,
											 size_t length);

/*
 * mongo_frame_check_compressed
 *		A whole OP_COMPRESSED, whose header has been checked; *expanded_size is
 *		what it will be, with a header.
 *
 * 'compressor' is what it must be compressed with; NULL: any that there is.
 */
extern const char *mongo_frame_check_compressed(const uint8 *message,
												const MongoCompressor *compressor,
												size_t *expanded_size);

/*
 * mongo_frame_expand
 *		Uncompress what mongo_frame_check_compressed() has found good into
 *		'target', which has room for 'expanded_size' bytes.
 */
extern const char *mongo_frame_expand(const uint8 *message, size_t length,
									  uint8 *target, size_t expanded_size);

/*-------------------------------------------------------------------------
 * A stream that lets only well-formed replies through to libmongoc.
 *
 * libmongoc trusts the lengths that a server sends: 1.23.1 reads and writes out
 * of bounds, or aborts the process, for some that are wrong.  From 1.25 on it
 * checks those of messages itself (mcd-rpc.c), so that the checks of frames can go
 * from here with older versions; those of documents it trusts still.  While it connects and
 * authenticates, a guard between it and the connection (TLS and all) takes in each reply
 * whole, checks it, and then hands it on.  A reply that fails ends the connection with
 * a read error.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_guard_new
 *		A guard over stream->top, which belongs to it from then on; malloc'd.
 *
 * What is wrong with a reply goes to transport->violation, and with the name
 * of the host to transport->failure.
 */
extern mongoc_stream_t *mongo_guard_new(MongoStream *stream);

/*
 * mongo_guard_release
 *		From now on the stream is not libmongoc's: what it does with the guard, which it
 *		still has to destroy, does not reach the stream.
 */
extern void mongo_guard_release(MongoStream *stream);

/* ------------ How long clients are kept that nobody has leased ------------ */

/*-------------------------------------------------------------------------
 * What is pending for this backend, seen from inside libmongoc's frames.
 *
 * ProcessInterrupts() raises ERROR or FATAL, whose longjmp or exit must not
 * cross libmongoc's frames.  A wait there asks instead whether it would raise,
 * fails if so, and CHECK_FOR_INTERRUPTS() does the raising when libmongoc has
 * unwound.  The flags are those of ProcessInterrupts() in tcop/postgres.c of
 * PostgreSQL 15 to 18.
 *
 * Private to src/remote.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_interrupt_is_due
 *		Would ProcessInterrupts() raise something that ends the statement or the
 *		session?
 *
 * With 'although_held' also where interrupts are held and it would do nothing.
 * Never raises.
 */
extern bool mongo_interrupt_is_due(bool although_held);

/*-------------------------------------------------------------------------
 * Commands that no rollback undoes, whatever the server.
 *
 * What mongo_command() and mongo_aggregate() change takes no part in MongoDB's
 * transactions.  Where PostgreSQL rolls back the transaction, or the savepoint, in
 * which they did so, a WARNING (01000) says that it stays.
 *-------------------------------------------------------------------------
 */

/*-------------------------------------------------------------------------
 * The clients of this backend, by user mapping: who has which, who waits.
 *
 * For pool.c, pool.c and pool.c.
 *-------------------------------------------------------------------------
 */

/* The clients of one user mapping; lives as long as the process. */
typedef struct PoolEntry
{
	Oid			umid;			/* hash key */
	int			limit;			/* option async_connections */
	int			max_connections;	/* likewise max_connections */
	Oid			serverid;
	Oid			userid;			/* whose row 'activity' is */
	MongoActivity *activity;	/* that of server and user, or NULL */
	dlist_head	idle;			/* of MongoClient, the last used first */
	dlist_head	leased;			/* likewise, in no order */
	dlist_head	in_flight;		/* of MongoLease, the longest first */
	dlist_head	waiting;		/* of MongoLease, the first in turn first */
	dlist_head	readers;		/* of MongoLease with 'remote' set */
	dlist_head	orphans;		/* of RemoteCursor: to be killed, see
								 * kill_cursor() */
} PoolEntry;

/* Which of its entry's lists a lease is in by 'node'. */
typedef enum LeasePlace
{
	LEASE_IN_NO_LIST,
	LEASE_IN_FLIGHT,
	LEASE_WAITING
} LeasePlace;

/* Lives in its owner's context, whose reset ends it; ended: entry is NULL. */
struct MongoLease
{
	MemoryContextCallback callback;
	PoolEntry  *entry;
	MongoClient *client;		/* NULL: none at present */
	MongoActivity *activity;	/* whose traffic it is; or NULL */
	mongoc_read_mode_t read_mode;	/* of its clients; 0: the server's */
	const MongoTurns *turns;	/* NULL: an exclusive lease */
	void	   *reader;			/* what its functions are called with */
	dlist_node	node;
	LeasePlace	place;

	RemoteCursor *remote;		/* open on the server, or NULL */
	MongoClient *home;			/* where it was opened; NULL: closed since */
	dlist_node	reader_node;
};

/* All entries, of PoolEntry; NULL: not initialized yet. */
extern HTAB *mongo_pool;

/* There may be a client to close: the end of the transaction looks for it. */
extern bool mongo_pool_needs_sweep;

/*
 * mongo_pool_close
 *		Close a client that is in no list; cursors opened on it have no home then.
 *		Never raises.
 *
 * mongo_pool_remove_idle
 *		The same for one in the list of idle ones.
 */
extern void mongo_pool_close(PoolEntry *entry, MongoClient *client);

/*-------------------------------------------------------------------------
 * Is a reply's document what a server may send?
 *
 * libmongoc takes for granted that nested documents are whole and that some
 * fields have the type that MongoDB gives them: 1.23.1 aborts the process, or
 * reads through a null pointer or beyond a buffer, where a server sends others;
 * and it hashes a password as many times as a server asks for.  What our own commands write
 * is not taken from a document that fails here either.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_reply_check
 *		The document of a reply, 'length' bytes that its frame says are one.
 *
 * Gives NULL when all is well, and else what is wrong, a sentence for DETAIL
 * that is never freed.  Neither raises nor allocates.  How deep the server
 * nests does not matter: only the levels that libmongoc enters are looked at.
 */
extern const char *mongo_reply_check(const uint8 *document, size_t length);

/*-------------------------------------------------------------------------
 * From a host's name to its addresses, with a limit of time.
 *
 * getaddrinfo() and its like block, and nothing interrupts them; a resolver
 * that does not answer holds them for ten seconds or more.  So a thread of our
 * own calls them, which knows nothing of PostgreSQL, and the backend waits for
 * it as it waits for a socket.  A look-up that is given up goes on, and the next one for
 * the same name waits for it.
 *
 * Numeric addresses take no thread.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_resolve_host
 *		The addresses of a host, for stream sockets; freeaddrinfo() is the
 *		caller's.
 *
 * NULL with *error set when there are none, after timeout_ms, and when
 * interrupted or out of memory (see mongo_transport_raise).  Never raises.
 */
extern struct addrinfo *mongo_resolve_host(MongoTransport *transport,
										   const char *host, uint16 port,
										   long timeout_ms, bson_error_t *error);

/*
 * mongo_resolve_service
 *		Does the resolver answer for the SRV and TXT records that a URI of
 *		"mongodb+srv" needs?  True for other URIs.
 *
 * libmongoc asks for them itself, blocking; this is to know that it will be
 * answered, and what the resolver has been asked a moment ago it mostly knows.
 * Fails as mongo_resolve_host() does.
 */
extern bool mongo_resolve_service(MongoTransport *transport,
								  const mongoc_uri_t *uri, long timeout_ms,
								  bson_error_t *error);

/*-------------------------------------------------------------------------
 * The setting mongo_fdw.slow_command_ms.
 *
 * To be asked only where the setting is not -1.  The log is the superuser's: what is
 * sent may hold others' data.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_log_slow_request
 *		The reply to the connection's request has come: log it if it took long.
 */
extern void mongo_log_slow_request(MongoConnection *connection);

/*-------------------------------------------------------------------------
 * What a socket to MongoDB is told: when its other end counts as dead.
 *-------------------------------------------------------------------------
 */

/*-------------------------------------------------------------------------
 * Who is asking: escapes in the options comment and appname.
 *
 * Those of postgres_fdw's application_name, and the query id: %a application_name,
 * %c session ID, %C cluster_name, %d database, %p process ID, %u user who has logged in,
 * %Q query id, %% a percent sign.  What else begins with % is left out.
 *-------------------------------------------------------------------------
 */

/* The longest comment, and the longest name that MongoDB takes; with the NUL. */
#define MONGO_COMMENT_SIZE	1024
#define MONGO_APPNAME_SIZE	129

/*
 * mongo_trace_prepare
 *		Expand what stays as it is in a session; palloc'd, in UTF-8.
 */
extern char *mongo_trace_prepare(const char *text);

/*
 * mongo_trace_fill
 *		Expand the rest (%a, %Q, %%) of what was prepared into 'buffer', which may cut
 *		it between two characters.  The length, without the NUL.  Never raises.
 */
extern size_t mongo_trace_fill(const char *prepared, char *buffer, size_t size);

/*
 * mongo_trace_append
 *		Append the element "comment" where there is one to be sent; 'prepared' may be
 *		NULL.
 */
extern void mongo_trace_append(const char *prepared, bson_t *document);

/*-------------------------------------------------------------------------
 * What is to be done when a PostgreSQL transaction ends, in its order.
 *
 * PostgreSQL calls the callbacks of a transaction's end in the opposite of the
 * order in which they were registered, which depended on whether a session read
 * or wrote first.  So there is one callback for both.
 *-------------------------------------------------------------------------
 */

/* In their order. */
typedef enum MongoTransactionEndStep
{
	MONGO_END_SESSIONS,			/* the MongoDB transactions, which gives their
								 * clients back */
	MONGO_END_COMMANDS,			/* what of commands stays */
	MONGO_END_CLIENTS			/* those that are not to be kept */
} MongoTransactionEndStep;

#define MONGO_TRANSACTION_END_STEPS	(MONGO_END_CLIENTS + 1)

/*
 * mongo_at_transaction_end
 *		Have 'callback' called for the step at each XactEvent from now on.
 */
extern void mongo_at_transaction_end(MongoTransactionEndStep step,
									 void (*callback) (XactEvent event));

/*-------------------------------------------------------------------------
 * Waiting for another transaction that has changed the same document.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_wait_for_conflict
 *		Has the first command of a transaction failed with a write conflict, and
 *		should it be tried again?  Lets some time pass if so.
 *
 * 'since' is when the first of 'attempt' + 1 attempts began.  False for other
 * errors and after ten seconds; raises 55P03 after lock_timeout, and 57014.
 */
extern bool mongo_wait_for_conflict(MongoLease *lease, const bson_error_t *error,
									TimestampTz since, int attempt);

/*-------------------------------------------------------------------------
 * One write.
 *
 * Nothing raises while it is under way: a wait that is broken off fails, what MongoDB does
 * is ended, and the caller raises when all that is known has been noted.
 *
 * In a MongoDB transaction it belongs to that, is sent once and in nobody's doubt:
 * all of it ends with the transaction.
 *
 * https://github.com/mongodb/specifications (OP_MSG, Retryable Writes)
 *-------------------------------------------------------------------------
 */

/* One command: {insert: ...} and the like. */
typedef struct MongoWriteMessage
{
	const char *database;		/* in UTF-8 */
	const bson_t *command;		/* without lsid, txnNumber, writeConcern and
								 * the like, which are added */
	MongoSequence operations;	/* name NULL: none */
	int64		most;			/* documents that it can write; -1: any
								 * number, so that it is not repeated */
} MongoWriteMessage;

/* What became of it. */
typedef struct MongoWriteReply
{
	bool		answered;		/* 'document' is MongoDB's reply */
	bool		succeeded;		/* ... in which there is no error */
	bson_t		document;		/* a view of memory in the caller's context */
	bson_error_t error;			/* the first */
	MongoWriteEnd end;			/* noted in the session */
} MongoWriteReply;

/* One that has been sent, and whose reply has not been received. */
typedef struct MongoWriteUnderWay
{
	MongoSession *session;		/* NULL: a user's own command */
	MongoLease *lease;
	const MongoWriteMessage *message;
	bool		in_transaction;
	bson_t	   *fields;			/* what goes with it */
	bson_t	   *lsid;			/* of no transaction; NULL also where the
								 * server has no sessions */
	bool		may_repeat;
	bool		sent;			/* whole; false: only what failed is to be
								 * learnt */
	MongoReply	reply;
} MongoWriteUnderWay;

/*
 * mongo_note_error
 *		An error of the domain, as far as the document at 'field' tells.
 */
extern void mongo_note_error(bson_error_t *error, uint32 domain, const bson_iter_t *field);

/*
 * mongo_write_message_begin
 *		Send the message; to be followed by one of the two below.
 *
 * Message and operations must stay.  *way refers to memory in the current context.  What
 * is in no session (NULL) is no transaction's, and has no write concern but its own.
 * Raises 53200 before anything is sent.
 */
extern void mongo_write_message_begin(MongoSession *session, MongoLease *lease,
									  const MongoWriteMessage *message,
									  MongoWriteUnderWay *way);

/*
 * mongo_write_message_finish
 *		Wait for its reply, and note in the session what is not known.
 *
 * A write that MongoDB can recognize when it is repeated is sent once more, to
 * the primary that there is then, after a lost connection or an error that
 * MongoDB has labelled so.  The lease then holds another client, or none where
 * there is no primary to be had: mongo_lease_holds_client().  Raises what comes
 * between two attempts.
 */
extern void mongo_write_message_finish(MongoWriteUnderWay *way, MongoWriteReply *reply);

/*
 * mongo_write_message_abandon
 *		The same where the statement has ended by an error: wait for so many
 *		milliseconds, then have MongoDB end the write.  Never raises.
 */
extern void mongo_write_message_abandon(MongoWriteUnderWay *way, int milliseconds,
										MongoWriteReply *reply);

#endif							/* MONGO_FDW_REMOTE_INTERNAL_H */
