/*-------------------------------------------------------------------------
 *
 * commit.h
 *		Committing and aborting a MongoDB transaction, within bounds of time.
 *
 * Nothing here but mongo_report_failed_commit() raises.  Interrupts are not
 * served, but shorten the waits; the caller, or PostgreSQL soon after, serves
 * them.  A client on which something was given up is as after an interrupt, and
 * is closed when its lease ends.
 *
 * Private to transaction.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COMMIT_H
#define MONGO_FDW_COMMIT_H

#include "compat.h"

#include "lease.h"

/* What became of commitTransaction. */
typedef enum MongoCommitOutcome
{
	MONGO_COMMITTED,
	MONGO_NOT_COMMITTED,		/* never sent, or refused for good */
	MONGO_COMMIT_UNCONFIRMED,	/* done, but not as the write concern has it */
	MONGO_COMMIT_UNKNOWN
} MongoCommitOutcome;

/*
 * mongo_commit_initialize
 *		Once a process, before anything below.
 */
extern void mongo_commit_initialize(void);

/*
 * mongo_commit_transaction
 *		commitTransaction, asked again while nobody knows what became of it: for
 *		half a minute, or statement_timeout if that is less.
 *
 * An interrupt leaves 50 ms to a commit that is about to be answered, and then
 * ends the asking.  On failure *error is set, and *transient tells whether
 * MongoDB calls it a transient transaction error.
 */
extern MongoCommitOutcome mongo_commit_transaction(MongoLease *lease,
												   mongoc_client_session_t *session,
												   bson_error_t *error,
												   bool *transient);

/*
 * mongo_report_failed_commit
 *		Raise for any outcome but MONGO_COMMITTED.
 *
 * 08007 where MongoDB may have committed, 40001 for a transient error, else as
 * mongo_report_bson_error() has it.
 */
pg_noreturn extern void mongo_report_failed_commit(const char *server_name,
												   MongoCommitOutcome outcome,
												   const bson_error_t *error,
												   bool transient);

/*
 * mongo_finish_reading
 *		End a transaction that only read.
 *
 * By a commit: only when it succeeds has a majority what was read.  Nothing depends
 * on that, so a failure is not reported, and it takes no longer than an abort.
 */
extern void mongo_finish_reading(MongoLease *lease,
								 mongoc_client_session_t *session);

/*
 * mongo_abort_transaction
 *		Tell MongoDB, within a second; false when that has been given up.
 *
 * After an interrupt, or when the connection was lost, over a new connection, and
 * by killSessions: what was broken off ends with the transaction, and so do cursors
 * whose names never came.  After an interrupt no answer is waited for beyond a tenth
 * of a second once the command has left.
 */
extern bool mongo_abort_transaction(MongoLease *lease,
									mongoc_client_session_t *session);

/*
 * mongo_kill_transaction
 *		The same where a commit has been sent, so that libmongoc takes the
 *		transaction for ended: killSessions.
 *
 * PostgreSQL is about to roll back, so one that MongoDB has not committed should
 * not be left to its time limit; on one that it has, this has no effect.
 */
extern void mongo_kill_transaction(MongoLease *lease,
								   mongoc_client_session_t *session);

#endif							/* MONGO_FDW_COMMIT_H */
