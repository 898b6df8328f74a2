/*-------------------------------------------------------------------------
 *
 * transaction_end.h
 *		What is to be done when a PostgreSQL transaction ends, in its order.
 *
 * PostgreSQL calls the callbacks of a transaction's end in the opposite of the
 * order in which they were registered, which depended on whether a session read
 * or wrote first.  So there is one callback: it first ends the MongoDB
 * transactions (transaction.c), which gives their clients back, and then closes
 * the clients that are not to be kept (client_pool.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TRANSACTION_END_H
#define MONGO_FDW_TRANSACTION_END_H

#include "compat.h"

#include "access/xact.h"

/*
 * mongo_watch_transactions
 *		Have both called from now on; may be called again.
 */
extern void mongo_watch_transactions(void);

/* The parts, for transaction_end.c alone; as XactCallback. */
extern void mongo_sessions_at_transaction_event(XactEvent event);
extern void mongo_pool_at_transaction_event(XactEvent event);

#endif							/* MONGO_FDW_TRANSACTION_END_H */
