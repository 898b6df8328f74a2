/*-------------------------------------------------------------------------
 *
 * driver_log.c
 *		What libmongoc has to say beside its results.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "compat.h"
#include "driver_log.h"
#include "printable.h"

/* The newest warning or error. */
static char driver_message[512];

/* Is nothing to be logged at the moment? */
static bool log_is_held;

/*
 * log_driver_message
 *		mongoc_log_func_t.
 *
 * libmongoc holds a mutex meanwhile, which an ERROR would leave locked.  Interrupts
 * wait: ereport() would look for them, and what it raised would be lost here.
 */
static void
log_driver_message(mongoc_log_level_t level, const char *domain,
				   const char *message, void *user_data pg_attribute_unused())
{
	MemoryContext caller_context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;
	volatile int elevel = level <= MONGOC_LOG_LEVEL_WARNING ? LOG :
		level <= MONGOC_LOG_LEVEL_INFO ? DEBUG1 : DEBUG2;

	if (level <= MONGOC_LOG_LEVEL_WARNING)
		strlcpy(driver_message, message, sizeof(driver_message));

	/*
	 * nor that a transaction cannot be aborted which MongoDB has aborted
	 * itself
	 */
	if (log_is_held || !message_level_is_interesting(elevel) ||
		strncmp(message, "Error in abortTransaction", 25) == 0)
		return;

	HOLD_INTERRUPTS();
	PG_TRY();
	{
		ereport(elevel,
				(errmsg_internal("libmongoc %s: %s", domain,
								 mongo_printable(message)),
				 errhidestmt(true)));
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller_context);
		FlushErrorState();
	}
	PG_END_TRY();

	/* an ERROR has set them to 0 */
	InterruptHoldoffCount = holdoff;
	QueryCancelHoldoffCount = cancel_holdoff;
}

void
mongo_install_log_handler(void)
{
	mongoc_log_set_handler(log_driver_message, NULL);
}

void
mongo_hold_driver_log(bool hold)
{
	log_is_held = hold;
}

const char *
mongo_last_driver_message(void)
{
	return driver_message;
}

void
mongo_forget_driver_message(void)
{
	driver_message[0] = '\0';
}
