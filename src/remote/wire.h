/*-------------------------------------------------------------------------
 *
 * wire.h
 *		"Send this command, receive its reply".
 *
 * OP_MSG on a stream that libmongoc connected and authenticated: one command is
 * one send, one wait, one receive, and the wait runs in a frame of our own, so
 * that an interrupt may raise there.
 *
 * https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_WIRE_H
#define MONGO_FDW_WIRE_H

#include "compat.h"

#include "compression.h"
#include "stream.h"

/* Room for a message. */
typedef struct MongoBuffer
{
	uint8	   *data;			/* NULL: none yet */
	size_t		capacity;
} MongoBuffer;

/*
 * One connection as the data plane sees it.
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
	bool		receiving;		/* a part of a reply has been taken off it */
	bool		resumable;		/* an interrupt broke nothing but the wait for
								 * more */
	uint32		last_request_id;

	/* elements to append to a command: $readPreference, readConcern */
	bson_t	   *read_preference;	/* NULL: none */
	bson_t	   *read_concern;	/* NULL: none */
	bson_t	   *write_concern;	/* to writes outside of transactions:
								 * writeConcern; NULL: none */

	uint64		waited_before;	/* MONGO_COUNT_WAIT_US when it was sent */
	const char *comment;		/* as trace.h prepares it; NULL: none is sent */

	const MongoCompressor *compressor;	/* negotiated for both ways, or NULL */
	int			compression_level;

	MongoBuffer request;		/* the request being built; malloc'd */
	MongoBuffer compressed;		/* and what is sent in its place */
} MongoConnection;

/* A reply's bytes; reused from one reply to the next. */
typedef struct MongoReply
{
	MemoryContext context;		/* where the buffers are palloc'd */
	MongoBuffer message;
	MongoBuffer compressed;		/* as it came, when it did so compressed */
	const uint8 *document;		/* in message: the command's reply */
	uint32		document_length;

	/* of one that has not come whole, see mongo_wire_receive() */
	size_t		received;
	size_t		expected;		/* 0: not known yet */
	bool		is_compressed;
} MongoReply;

/* What became of waiting for a reply. */
typedef enum MongoWireResult
{
	MONGO_WIRE_OK,
	MONGO_WIRE_DISCONNECTED		/* the peer closed, or the network failed */
} MongoWireResult;

/*
 * mongo_wire_send
 *		Send 'command' to 'database'; the reply is to be received.
 *
 * $db, and for the commands that take them $readPreference and readConcern,
 * are appended.  False when the connection is broken; raises 57014 when
 * cancelled, 54000 for a command that MongoDB would not take for its size.
 */
extern bool mongo_wire_send(MongoConnection *connection, const char *database,
							const bson_t *command, uint32 *request_id);

/* A document sequence: a section of kind 1, documents one after the other. */
typedef struct MongoSequence
{
	const char *name;			/* of the command's field */
	const char *data;
	size_t		size;
} MongoSequence;

/*
 * mongo_wire_prepare
 *		The message of a command for an exchange (exchange.h): *iov with *iovcnt parts,
 *		which point to the connection's buffers and to the sequence.
 *
 * $db and the comment are appended, and the elements of 'fields' (NULL: none), but no
 * $readPreference and readConcern.  'sequence' is NULL where the command has none.
 * Each call makes another message with a number of its own.  Raises 53200 alone.
 */
extern void mongo_wire_prepare(MongoConnection *connection, const char *database,
							   const bson_t *command, const bson_t *fields,
							   const MongoSequence *sequence,
							   mongoc_iovec_t iov[2], size_t *iovcnt);

/*
 * mongo_wire_shrink
 *		Free the buffers of a large message that has been sent.
 */
extern void mongo_wire_shrink(MongoConnection *connection);

/*
 * mongo_wire_receive
 *		Wait for the reply to 'request_id' and read it into 'reply'.
 *
 * Raises 08P01 for what is not a valid OP_MSG reply to that request, and what
 * interrupts bring.  Where the connection is 'resumable' after that, a later call
 * with the same reply goes on where this one was interrupted.
 */
extern MongoWireResult mongo_wire_receive(MongoConnection *connection,
										  uint32 request_id,
										  MongoReply *reply);

/*
 * mongo_wire_check_size
 *		Raise 54000 for a command that MongoDB would not take for its size.
 */
extern void mongo_wire_check_size(const bson_t *command);

/*
 * mongo_reply_free
 *		Free a reply's buffers; it may be used again.
 */
extern void mongo_reply_free(MongoReply *reply);

/*
 * mongo_wire_has_reply
 *		Would mongo_wire_receive() wait for no more than the rest of a reply that
 *		has begun to come, or find the connection lost?
 */
extern bool mongo_wire_has_reply(MongoConnection *connection);

/*
 * mongo_wire_receive_quietly
 *		Receive a reply that nobody wants within so many milliseconds.
 *
 * Never raises, so it may be called while cleaning up.  The message, to be freed
 * by free(), with the reply's document in it; NULL when it has not come whole or
 * is not valid, and the connection is not used any more.
 */
extern uint8 *mongo_wire_receive_quietly(MongoConnection *connection,
										 uint32 request_id, long timeout_ms,
										 const uint8 **document, uint32 *length);

/*
 * mongo_wire_send_and_forget
 *		Send a command that the server must not answer (moreToCome).
 *
 * Never raises, so it may be called while cleaning up.  Does not wait: a
 * connection that does not take the message at once is marked broken.
 */
extern void mongo_wire_send_and_forget(MongoConnection *connection,
									   const char *database,
									   const bson_t *command);

/*
 * mongo_wire_report_violation
 *		Raise 08P01 for a reply that is not what it has to be, after which the
 *		connection is not used any more.
 */
pg_noreturn extern void mongo_wire_report_violation(MongoConnection *connection,
													const char *detail);

/*
 * mongo_wire_raise_wait
 *		After a wait that failed: raise what broke it, or 08006 where it took
 *		longer than socket_timeout_ms; return when it was neither.
 */
extern void mongo_wire_raise_wait(MongoConnection *connection);

/*
 * mongo_wire_report_disconnect
 *		Raise 08006 for a connection lost.
 */
pg_noreturn extern void mongo_wire_report_disconnect(const char *server_name);

#endif							/* MONGO_FDW_WIRE_H */
