/*-------------------------------------------------------------------------
 *
 * write_outcome.h
 *		Sending a write outside of MongoDB's transactions, and what is known of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_WRITE_OUTCOME_H
#define MONGO_FDW_WRITE_OUTCOME_H

#include "compat.h"

#include "session.h"

/*
 * mongo_write_begin
 *		Before a call of libmongoc's that sends one command that writes: what
 *		belongs into its options.
 *
 * The session's transaction or, without one, what lets MongoDB be told to end
 * the command when it is given up (remote_cancel.h); and the comment, a table's
 * own or that of the server (NULL).  No ERROR may come between this and
 * mongo_write_finish().
 */
extern void mongo_write_begin(MongoSession *session, MongoLease *lease,
							  const char *comment, bson_t *options);

/*
 * mongo_write_finish
 *		After it, before anything is raised: note what is known of the command.
 *
 * 'most' is how many documents it could write (-1: any number).  The caller
 * notes those that the reply tells of.
 */
extern MongoWriteEnd mongo_write_finish(MongoSession *session, MongoLease *lease,
										bool succeeded, int64 most,
										const bson_t *reply,
										const bson_error_t *error);

/*
 * mongo_write_end
 *		The same for a write that is in no session's account: disarms the
 *		connection (remote_cancel.h), and says what is known.
 */
extern MongoWriteEnd mongo_write_end(MongoLease *lease, bool succeeded, int64 most,
									 const bson_t *reply,
									 const bson_error_t *error);

#endif							/* MONGO_FDW_WRITE_OUTCOME_H */
