/*-------------------------------------------------------------------------
 *
 * write_conflict.c
 *		Waiting for another transaction that has changed the same document.
 *
 * MongoDB does not queue writers, so they ask again.  Nor does it see that two
 * wait for each other through a lock of PostgreSQL's, hence the limit.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "write_conflict.h"

#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#define WRITE_CONFLICT		112

/* The pause doubles with each attempt. */
#define PAUSE_MS			5
#define LONGEST_PAUSE_MS	50

/* For how long to go on, unless lock_timeout says so. */
#define LONGEST_WAIT_MS		10000

bool
mongo_wait_for_conflict(MongoLease *lease, const bson_error_t *error,
						TimestampTz since, int attempt)
{
	int			limit = LockTimeout > 0 ? LockTimeout : LONGEST_WAIT_MS;

	if (error->code != WRITE_CONFLICT)
		return false;
	if (TimestampDifferenceExceeds(since, GetCurrentTimestamp(), limit))
	{
		if (LockTimeout > 0)
			ereport(ERROR,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("canceling statement due to lock timeout"),
					 errdetail("Another transaction has changed a document in MongoDB and has not ended.")));
		return false;
	}
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 Min(PAUSE_MS << Min(attempt, 4), LONGEST_PAUSE_MS),
					 PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	mongo_lease_check_interrupts(lease);
	CHECK_FOR_INTERRUPTS();
	return true;
}
