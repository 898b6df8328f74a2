/*-------------------------------------------------------------------------
 *
 * session.h
 *		What src/remote does in the sessions of transaction.h.
 *
 * The functions are those of transaction.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SESSION_H
#define MONGO_FDW_SESSION_H

#include "compat.h"

#include "lease.h"
#include "session_cursors.h"
#include "transaction.h"
#include "write_doubt.h"
#include "write_flight.h"

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
 * As in session_cursors.h: *handle becomes NULL when the cursor is not open any
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
 * The client to send with, to be given back by
 * mongo_session_return_lease(), and what to add to the options of a write.
 * Outside a transaction each write leases a client of its own.
 */
extern MongoLease *mongo_session_lease(MongoSession *session);
extern void mongo_session_return_lease(MongoSession *session, MongoLease *lease);
extern void mongo_session_append(MongoSession *session, bson_t *options);

/*
 * mongo_session_takes_messages
 *		Is it in a MongoDB transaction whose next command can be a message of our own
 *		(transaction_message.h)?
 */
extern bool mongo_session_takes_messages(const MongoSession *session);

/*
 * mongo_session_fields, mongo_session_note_reply
 *		What such a message has beside the command, in the current memory context; its
 *		reply has come, or none has (NULL).
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
 *		Begin a MongoDB transaction anew whose first command has failed.
 *
 * What was fresh before that command is fresh again.  Raises what beginning
 * comes back with.
 */
extern void mongo_session_restart(MongoSession *session);

/*
 * mongo_session_note_write
 *		Something has been, or may have been, written: so many documents.
 */
extern void mongo_session_note_write(MongoSession *session, int64 documents);

/*
 * mongo_session_note_doubt
 *		A command without a MongoDB transaction has ended like this; it may have
 *		written so many documents at most (-1: any number).
 */
extern void mongo_session_note_doubt(MongoSession *session, MongoWriteEnd end,
									 int64 documents);

/*
 * mongo_session_lease_for
 *		A client to send with outside of transactions, whose answer others may have
 *		taken (lease.h).
 */
extern MongoLease *mongo_session_lease_for(MongoSession *session, const MongoTurns *turns,
										   void *reader);

/*
 * mongo_session_settle
 *		What runs outside of sessions is about to be sent for 'user': have the reply to
 *		a batch under way received first (write_flight.h).
 */
extern void mongo_session_settle(const UserMapping *user);

/*
 * mongo_session_note_flight, mongo_session_note_landed
 *		A batch is under way from now on; it is not any more.  One at a time.
 */
extern void mongo_session_note_flight(MongoSession *session,
									  const MongoFlightMethods *methods,
									  MongoWriteFlight *flight);
extern void mongo_session_note_landed(MongoSession *session);

/*
 * mongo_session_doubt
 *		What mongo_session_note_doubt() has gathered.
 */
extern MongoWriteDoubt *mongo_session_doubt(MongoSession *session);

/*
 * mongo_session_renew_lease
 *		mongo_lease_renew() for the session's user, outside of transactions.
 */
extern void mongo_session_renew_lease(MongoSession *session, MongoLease *lease);

/*
 * mongo_session_report_error
 *		Raise what a write or command in the session came back with.
 *
 * 'reply' may be NULL.  Must be called after the lease has been asked for interrupts.
 */
pg_noreturn extern void mongo_session_report_error(const char *context_message,
												   const bson_error_t *error,
												   const bson_t *reply);

#endif							/* MONGO_FDW_SESSION_H */
