/*-------------------------------------------------------------------------
 *
 * transaction_end.c
 *		What is to be done when a PostgreSQL transaction ends, in its order.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "transaction_end.h"

static void
at_transaction_event(XactEvent event, void *arg pg_attribute_unused())
{
	mongo_sessions_at_transaction_event(event);
	mongo_pool_at_transaction_event(event);
}

void
mongo_watch_transactions(void)
{
	static bool registered = false;

	if (registered)
		return;
	RegisterXactCallback(at_transaction_event, NULL);
	registered = true;
}
