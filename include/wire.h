/*-------------------------------------------------------------------------
 *
 * wire.h
 *		OP_MSG on a stream that libmongoc connected and authenticated.
 *
 * One command is one send, one wait, one receive.  The wait runs in a frame of
 * our own, so that an interrupt may raise there.
 *
 * https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_WIRE_H
#define MONGO_FDW_WIRE_H

#include "compat.h"

#include "client_pool.h"
#include "stream.h"

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
	uint32		last_request_id;

	/* elements to append to a command: $readPreference, readConcern */
	bson_t	   *read_preference;	/* NULL: none */
	bson_t	   *read_concern;	/* NULL: none */

	char	   *message;		/* the request being built; malloc'd */
	size_t		message_capacity;
} MongoConnection;

/* A reply's bytes; reused from one reply to the next. */
typedef struct MongoReply
{
	MemoryContext context;		/* where 'data' is palloc'd */
	uint8	   *data;
	size_t		capacity;
	const uint8 *document;		/* inside data: the command's reply */
	uint32		document_length;
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

/*
 * mongo_wire_receive
 *		Wait for the reply to 'request_id' and read it into 'reply'.
 *
 * Raises 08P01 for what is not a valid OP_MSG reply to that request, and what
 * interrupts bring.
 */
extern MongoWireResult mongo_wire_receive(MongoConnection *connection,
										  uint32 request_id,
										  MongoReply *reply);

/*
 * mongo_wire_send_and_forget
 *		Send a command that the server must not answer (moreToCome).
 *
 * Never waits and never raises, so it may be called while cleaning up.  A
 * connection that does not take the message at once is marked broken.
 */
extern void mongo_wire_send_and_forget(MongoConnection *connection,
									   const char *database,
									   const bson_t *command);

/*
 * mongo_wire_report_disconnect
 *		Raise 08006 for a connection lost.
 */
extern void mongo_wire_report_disconnect(MongoConnection *connection) pg_attribute_noreturn();

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
 * mongo_lease_note_cursor
 *		Remember the cursor that the server holds open for this lease, to be
 *		killed when the lease is given back; id 0: there is none any more.
 */
extern void mongo_lease_note_cursor(MongoLease *lease, int64 cursor_id,
									const char *database,
									const char *collection);

#endif							/* MONGO_FDW_WIRE_H */
