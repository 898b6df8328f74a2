/*-------------------------------------------------------------------------
 *
 * transaction_message.h
 *		Commands of a MongoDB transaction as messages of our own.
 *
 * libmongoc begins a transaction with the first command, which it sends itself, and
 * ends it; in between it need not know of what belongs to it, as a transaction is no
 * more than a session's id and a number.  The number is seen as the first command
 * leaves (guard.h).  Where it is not seen (mongos, where libmongoc has more to
 * observe; another connection than the one that reads use; compression) and where
 * the connection may be gone, everything goes through libmongoc.
 *
 * Private to src/remote.  Nothing here raises but what says so.
 *
 * https://github.com/mongodb/specifications (Transactions, Driver Sessions)
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TRANSACTION_MESSAGE_H
#define MONGO_FDW_TRANSACTION_MESSAGE_H

#include "compat.h"

#include "lease.h"

/*
 * mongo_transaction_takes_messages
 *		Can the next command of the transaction be a message of our own?
 *
 * 'used_at' is when the last one was sent: after a tenth of a second without any, the
 * connection is looked at, by one system call.
 */
extern bool mongo_transaction_takes_messages(MongoLease *lease, TimestampTz used_at);

/*
 * mongo_transaction_fields
 *		What such a message has beside the command: lsid, txnNumber, autocommit and
 *		$clusterTime, in the current memory context.  Raises 53200.
 */
extern bson_t *mongo_transaction_fields(MongoLease *lease,
										const mongoc_client_session_t *session);

/*
 * mongo_transaction_note_reply
 *		After mongo_exchange_receive(): libmongoc's session is to have the cluster time.
 *
 * 'reply' is NULL where none has come.  The connection is closed then, so that the
 * transaction's end goes over another one.
 */
extern void mongo_transaction_note_reply(MongoLease *lease,
										 mongoc_client_session_t *session,
										 const bson_t *reply);

/*
 * mongo_transaction_append_labels
 *		The "errorLabels" of a reply; or, for none (NULL), the label that drivers give to
 *		a network error in a transaction.
 */
extern void mongo_transaction_append_labels(bson_t *document, const bson_t *reply);

/*
 * mongo_transaction_run
 *		Send a command that reads, with the fields of mongo_transaction_fields(), and wait:
 *		true when it succeeded.
 *
 * The reply, in 'context', and *error are as libmongoc gives them.  Raises 53200 and
 * 54000 before anything is sent.
 */
extern bool mongo_transaction_run(MongoLease *lease, mongoc_client_session_t *session,
								  MemoryContext context, const char *database,
								  const bson_t *command, const bson_t *fields,
								  bson_t **reply, bson_error_t *error);

#endif							/* MONGO_FDW_TRANSACTION_MESSAGE_H */
