/*-------------------------------------------------------------------------
 *
 * transaction_end.h
 *		What is to be done when a PostgreSQL transaction ends, in its order.
 *
 * PostgreSQL calls the callbacks of a transaction's end in the opposite of the
 * order in which they were registered, which depended on whether a session read
 * or wrote first.  So there is one callback for both.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TRANSACTION_END_H
#define MONGO_FDW_TRANSACTION_END_H

#include "compat.h"

#include "access/xact.h"

/* In their order. */
typedef enum MongoTransactionEndStep
{
	MONGO_END_SESSIONS,			/* the MongoDB transactions, which gives their
								 * clients back */
	MONGO_END_COMMANDS,			/* what of commands stays */
	MONGO_END_CLIENTS			/* those that are not to be kept */
} MongoTransactionEndStep;

#define MONGO_TRANSACTION_END_STEPS	(MONGO_END_CLIENTS + 1)

/*
 * mongo_at_transaction_end
 *		Have 'callback' called for the step at each XactEvent from now on.
 */
extern void mongo_at_transaction_end(MongoTransactionEndStep step,
									 void (*callback) (XactEvent event));

#endif							/* MONGO_FDW_TRANSACTION_END_H */
