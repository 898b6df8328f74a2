/*-------------------------------------------------------------------------
 *
 * transaction_end.c
 *		What is to be done when a PostgreSQL transaction ends, in its order.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "transaction_end.h"

static void (*steps[MONGO_TRANSACTION_END_STEPS]) (XactEvent event);

static void
run_steps(XactEvent event, void *arg pg_attribute_unused())
{
	for (int i = 0; i < MONGO_TRANSACTION_END_STEPS; i++)
	{
		if (steps[i] != NULL)
			steps[i] (event);
	}
}

void
mongo_at_transaction_end(MongoTransactionEndStep step, void (*callback) (XactEvent event))
{
	static bool registered = false;

	if (!registered)
		RegisterXactCallback(run_steps, NULL);
	registered = true;
	steps[step] = callback;
}
