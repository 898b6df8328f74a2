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

#include "foreign/foreign.h"

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
 * mongo_session_in_transaction
 *		Does it hold a MongoDB transaction?
 */
extern bool mongo_session_in_transaction(const MongoSession *session);

#endif							/* MONGO_FDW_TRANSACTION_H */
