/*-------------------------------------------------------------------------
 *
 * xact.c
 *		What PostgreSQL calls at the end of transactions and subtransactions.
 *
 * MongoDB's transactions end first (transaction.c).  Then come warnings of writes that stay
 * (write.c), and the connections that are not needed any more (pool.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

static void
at_transaction_event(XactEvent event, void *arg pg_attribute_unused())
{
	if (event == XACT_EVENT_PRE_PREPARE && (mongo_sessions_exist() || mongo_lasting_exist()))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has operated on MongoDB foreign tables")));
	mongo_sessions_at_end(event);
	mongo_lasting_at_end(event);
	if (event == XACT_EVENT_ABORT)
		(void) mongo_bind_reads(NULL);
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT ||
		event == XACT_EVENT_PREPARE || event == XACT_EVENT_PARALLEL_COMMIT ||
		event == XACT_EVENT_PARALLEL_ABORT)
		mongo_pool_sweep(event == XACT_EVENT_ABORT);
}

static void
at_subtransaction_event(SubXactEvent event,
						SubTransactionId subtransaction pg_attribute_unused(),
						SubTransactionId parent pg_attribute_unused(),
						void *arg pg_attribute_unused())
{
	if (mongo_driver_is_entered())
		return;
	mongo_sessions_at_subtransaction_end(event);
	mongo_lasting_at_subtransaction_end(event);
}

/*
 * mongo_register_transaction_callbacks
 *		Registers callbacks for the end of transactions and subtransactions.
 *
 * Called once, when the library is loaded.  PostgreSQL calls the callback that was registered
 * last first, so MongoDB commits after the extensions that were loaded, or first used, later.
 */
void
mongo_register_transaction_callbacks(void)
{
	RegisterSubXactCallback(at_subtransaction_event, NULL);
	RegisterXactCallback(at_transaction_event, NULL);
}
