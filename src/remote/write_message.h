/*-------------------------------------------------------------------------
 *
 * write_message.h
 *		Writes as messages of our own.
 *
 * A command with its operations as a document sequence goes out on the connection
 * that reads use (exchange.h).  Nothing raises while it is under way: a wait that is
 * broken off fails, what MongoDB does is ended (remote_cancel.h), and the caller
 * raises when all that is known has been noted.
 *
 * In a MongoDB transaction it belongs to that, is sent once and in nobody's doubt:
 * all of it ends with the transaction.
 *
 * https://github.com/mongodb/specifications (OP_MSG, Retryable Writes)
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_WRITE_MESSAGE_H
#define MONGO_FDW_WRITE_MESSAGE_H

#include "compat.h"

#include "session.h"
#include "wire.h"

/* One command: {insert: ...} and the like. */
typedef struct MongoWriteMessage
{
	const char *database;		/* in UTF-8 */
	bson_t	   *command;		/* without lsid, txnNumber, writeConcern and
								 * the like, which are appended */
	MongoSequence operations;
	int64		most;			/* documents that it can write; -1: any
								 * number, so that it is not repeated */
} MongoWriteMessage;

/* What became of it. */
typedef struct MongoWriteReply
{
	bool		answered;		/* 'document' is MongoDB's reply */
	bool		succeeded;		/* ... in which there is no error */
	bson_t		document;		/* a view of memory in the caller's context */
	bson_error_t error;			/* as libmongoc's bulk API has it */
	MongoWriteEnd end;			/* noted in the session */
} MongoWriteReply;

/* One that has been sent, and whose reply has not been received. */
typedef struct MongoWriteUnderWay
{
	MongoSession *session;
	MongoLease *lease;
	const MongoWriteMessage *message;
	bson_t	   *fields;			/* of its transaction; NULL: it is in none */
	bson_t	   *lsid;			/* of no transaction; NULL also where the
								 * server has no sessions */
	bool		may_repeat;
	bool		sent;			/* whole; false: only what failed is to be
								 * learnt */
} MongoWriteUnderWay;

/*
 * mongo_write_message_begin
 *		Send the message; to be followed by one of the two below.
 *
 * The lease's client must take writes (client.h), in a transaction the session
 * messages (session.h); message and operations must stay.  *way refers to memory in the
 * current context.  Raises 53200 before anything is sent.
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

#endif							/* MONGO_FDW_WRITE_MESSAGE_H */
