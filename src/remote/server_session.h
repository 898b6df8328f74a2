/*-------------------------------------------------------------------------
 *
 * server_session.h
 *		The session that a client's own messages write in.
 *
 * MongoDB ends a write by the id of its session (remote_cancel.h), and by id and
 * number it recognizes one that is repeated.  libmongoc does not tell the number
 * it has come to in a session of its own, and would refuse ours; so this one is
 * ours alone, with an id made here, as the Driver Sessions specification has it.
 * It dies with its client, and so does not outlive a lost connection.
 *
 * https://github.com/mongodb/specifications (Driver Sessions, Retryable Writes)
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SERVER_SESSION_H
#define MONGO_FDW_SERVER_SESSION_H

#include "compat.h"

#include "datatype/timestamp.h"

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

#endif							/* MONGO_FDW_SERVER_SESSION_H */
