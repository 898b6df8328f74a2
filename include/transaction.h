/*-------------------------------------------------------------------------
 *
 * transaction.h
 *		MongoDB transactions that follow the PostgreSQL transaction.
 *
 * A session is what this backend's writes to one user mapping run in, for the
 * rest of a PostgreSQL transaction.  On a replica set or mongos it holds a
 * MongoDB transaction, which commits before PostgreSQL does and is aborted
 * when PostgreSQL rolls back.  A standalone server has no transactions: a
 * session there is only a way to reach it, and a rollback warns.
 *
 * https://github.com/mongodb/specifications (Transactions, Driver Sessions)
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TRANSACTION_H
#define MONGO_FDW_TRANSACTION_H

#include "compat.h"

#include "client_pool.h"
#include "session_cursors.h"
#include "write_outcome.h"

/* Opaque; lives until the end of the PostgreSQL transaction. */
typedef struct MongoSession MongoSession;

/*
 * mongo_session_for_write
 *		The session in which 'user' writes; opened by the first call.
 *
 * To be called before the scan whose rows an UPDATE or DELETE changes, so that
 * what it reads cannot change before it is written.  Raises 08001 as
 * mongo_lease_acquire() does, 25006 in a read-only transaction, 0A000 where the
 * option "transactions" requires what the server does not have or after a
 * rolled-back savepoint.
 */
extern MongoSession *mongo_session_for_write(UserMapping *user);

/*
 * mongo_session_for_read
 *		The session in which 'user' must read, or NULL: outside any.
 *
 * Not NULL when the MongoDB transaction has been opened, by a write or because
 * the isolation level asks for one snapshot.  Raises as above.
 */
extern MongoSession *mongo_session_for_read(UserMapping *user);

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
 * What bulk_write.c needs: the client to send with, to be given back by
 * mongo_session_return_lease(), and what to add to the options of a write.
 * Outside a transaction each write leases a client of its own.
 */
extern MongoLease *mongo_session_lease(MongoSession *session);
extern void mongo_session_return_lease(MongoSession *session, MongoLease *lease);
extern void mongo_session_append(MongoSession *session, bson_t *options);
extern bool mongo_session_in_transaction(const MongoSession *session);

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
 * mongo_session_report_error
 *		Raise what a write or command in the session came back with.
 *
 * 'reply' may be NULL.  So may 'remark', our own words, with which DETAIL ends.  Must
 * be called after the lease has been asked for interrupts.
 */
pg_noreturn extern void mongo_session_report_error(const char *context_message,
									   const bson_error_t *error,
									   const bson_t *reply,
									   const char *remark);

/*
 * mongo_reply_has_label
 *		Does the reply carry this error label of the driver specifications?
 */
extern bool mongo_reply_has_label(const bson_t *reply, const char *label);

#endif							/* MONGO_FDW_TRANSACTION_H */
