/*-------------------------------------------------------------------------
 *
 * subtransaction.c
 *		Calls functions whose errors do not end the statement.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common.h"

#include "access/xact.h"
#include "utils/resowner.h"

/*
 * mongo_try
 *		Calls a function in a subtransaction.
 *
 * If it raises an expected error, rolls back, sets *error, in the current memory context, and
 * returns false.  Other errors are raised again, after the rollback.  Without 'is_expected' (NULL)
 * all are expected.
 */
bool
mongo_try(void (*function) (void *), void *argument, bool (*is_expected) (int sqlstate),
		  ErrorData **error)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool succeeded = true;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		function(argument);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		*error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		succeeded = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (!succeeded && is_expected != NULL && !is_expected((*error)->sqlerrcode))
		ReThrowError(*error);
	return succeeded;
}
