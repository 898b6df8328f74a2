/*-------------------------------------------------------------------------
 *
 * transaction_message.c
 *		Commands of a MongoDB transaction as messages of our own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "transaction_message.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "driver_memory.h"
#include "exchange.h"
#include "remote_error.h"
#include "utils/timestamp.h"

/* A connection used so recently is not asked whether it is open. */
#define RECENTLY_USED_MS	100

/*
 * seems_open: as far as can be seen.  Where the server has closed it, a command that was
 * sent would be lost, and the transaction with it; libmongoc makes another connection.
 */
static bool
seems_open(MongoStream *stream, TimestampTz used_at)
{
	return stream->socket != PGINVALID_SOCKET &&
		(!TimestampDifferenceExceeds(used_at, GetCurrentTimestamp(), RECENTLY_USED_MS) ||
		 !mongo_stream_has_input(stream));
}

bool
mongo_transaction_takes_messages(MongoLease *lease, TimestampTz used_at)
{
	MongoClient *client = mongo_client_of(mongo_lease_connection(lease));
	const MongoTransport *transport = &client->connection.transport;

	return client->takes_transactions && transport->transaction_number > 0 &&
		mongo_client_is_clean(client) && seems_open(transport->data_stream, used_at);
}

bson_t *
mongo_transaction_fields(MongoLease *lease, const mongoc_client_session_t *session)
{
	const MongoTransport *transport = &mongo_lease_connection(lease)->transport;
	const bson_t *cluster_time = mongoc_client_session_get_cluster_time(session);
	bson_t	   *fields = bson_create_in(CurrentMemoryContext);

	BSON_APPEND_DOCUMENT(fields, "lsid", mongoc_client_session_get_lsid(session));
	BSON_APPEND_INT64(fields, "txnNumber", transport->transaction_number);
	BSON_APPEND_BOOL(fields, "autocommit", false);
	if (cluster_time != NULL)
		BSON_APPEND_DOCUMENT(fields, "$clusterTime", cluster_time);
	return fields;
}

void
mongo_transaction_note_reply(MongoLease *lease, mongoc_client_session_t *session,
							 const bson_t *reply)
{
	bson_iter_t iter;
	const uint8_t *data;
	uint32_t	length;
	bson_t		cluster_time;

	if (reply == NULL)
	{
		mongo_transport_close_data_stream(&mongo_lease_connection(lease)->transport);
		return;
	}
	if (!bson_iter_init_find(&iter, reply, "$clusterTime") ||
		!BSON_ITER_HOLDS_DOCUMENT(&iter))
		return;
	bson_iter_document(&iter, &length, &data);
	if (bson_view(&cluster_time, data, length))
		mongoc_client_session_advance_cluster_time(session, &cluster_time);
}

void
mongo_transaction_append_labels(bson_t *document, const bson_t *reply)
{
	bson_iter_t iter;

	if (reply == NULL)
		bson_append_template(document, "{errorLabels: ['TransientTransactionError']}");
	else if (bson_iter_init_find(&iter, reply, "errorLabels") &&
			 !bson_has_field(document, "errorLabels"))
		bson_append_iter(document, NULL, 0, &iter);
}

bool
mongo_transaction_run(MongoLease *lease, mongoc_client_session_t *session,
					  MemoryContext context, const char *database, const bson_t *command,
					  const bson_t *fields, bson_t **reply, bson_error_t *error)
{
	MemoryContext caller_context = MemoryContextSwitchTo(context);
	MongoConnection *connection = mongo_lease_connection(lease);
	bson_t	   *document = bson_palloc(context, sizeof(bson_t));
	mongoc_iovec_t iov[2];
	size_t		iovcnt;
	bool		sent;
	bool		answered;
	bool		failed;

	mongo_wire_check_size(command);
	mongo_memory_check(0);
	mongo_wire_prepare(connection, database, command, fields, NULL, iov, &iovcnt);
	sent = mongo_exchange_send(connection, iov, iovcnt);
	answered = mongo_exchange_receive(connection, sent, document);
	mongo_transaction_note_reply(lease, session, answered ? document : NULL);
	failed = mongo_exchange_has_failed(connection, answered, document, error);
	if (failed && answered && mongo_error_is_retryable(error->code))
		connection->broken = true;
	if (!answered)
	{
		document = bson_create_in(context);
		mongo_transaction_append_labels(document, NULL);
	}
	*reply = document;
	MemoryContextSwitchTo(caller_context);
	return !failed;
}
