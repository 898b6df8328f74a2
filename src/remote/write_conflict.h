/*-------------------------------------------------------------------------
 *
 * write_conflict.h
 *		Waiting for another transaction that has changed the same document.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_WRITE_CONFLICT_H
#define MONGO_FDW_WRITE_CONFLICT_H

#include "compat.h"

#include "lease.h"
#include "datatype/timestamp.h"

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

#endif							/* MONGO_FDW_WRITE_CONFLICT_H */
