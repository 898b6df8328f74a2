/*-------------------------------------------------------------------------
 *
 * exchange.c
 *		One message of our own through the guard, and its reply.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exchange.h"

#include "bson_memory.h"
#include "client.h"
#include "frame.h"
#include "remote_error.h"
#include "utils/memutils.h"

bool
mongo_exchange_send(MongoConnection *connection, mongoc_iovec_t *iov, size_t iovcnt)
{
	MongoTransport *transport = &connection->transport;
	MongoStream *stream = transport->data_stream;
	ssize_t		size = 0;
	bool		sent;

	transport->violation = NULL;
	transport->failure[0] = '\0';
	mongo_client_of(connection)->waited_before =
		transport->traffic.counters[MONGO_COUNT_WAIT_US];
	if (connection->broken || stream == NULL)
		return false;
	for (size_t i = 0; i < iovcnt; i++)
		size += iov[i].iov_len;
	connection->in_flight++;
	sent = mongoc_stream_writev(stream->guard, iov, iovcnt, MONGO_NO_TIMEOUT) == size;
	mongo_wire_shrink(connection);
	return sent;
}

/*
 * collect_reply
 *		The document of the reply, in the current memory context.
 *
 * The guard has taken it in whole, and checked it.
 */
static bool
collect_reply(MongoConnection *connection, mongoc_stream_t *stream, bson_t *document)
{
	uint8		head[BODY_OFFSET];
	size_t		length;
	uint8	   *bytes;

	if (mongoc_stream_read(stream, head, BODY_OFFSET, BODY_OFFSET,
						   MONGO_NO_TIMEOUT) != BODY_OFFSET ||
		get_int32(head + 12) != OP_MSG)
		return false;
	length = get_int32(head) - BODY_OFFSET;
	bytes = MemoryContextAllocExtended(CurrentMemoryContext, length,
									   MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (bytes == NULL)
	{
		mongo_transport_note_memory(&connection->transport, length);
		return false;
	}
	return mongoc_stream_read(stream, bytes, length, length,
							  MONGO_NO_TIMEOUT) == (ssize_t) length &&
		bson_view(document, bytes, length);
}

bool
mongo_exchange_receive(MongoConnection *connection, bool sent, bson_t *document)
{
	MongoStream *stream = connection->transport.data_stream;

	if (sent && stream != NULL && collect_reply(connection, stream->guard, document))
	{
		connection->in_flight--;
		return true;
	}
	connection->broken = true;
	return false;
}

/* note_refusal: the reply is {ok: 0}. */
static void
note_refusal(const bson_t *document, bson_error_t *error)
{
	bson_iter_t iter;
	const char *text = "no message was given";
	int			code = 0;

	if (bson_iter_init_find(&iter, document, "code") && BSON_ITER_HOLDS_NUMBER(&iter))
		code = (int) bson_iter_as_int64(&iter);
	if (bson_iter_init_find(&iter, document, "errmsg") && BSON_ITER_HOLDS_UTF8(&iter))
		text = bson_iter_utf8(&iter, NULL);
	bson_set_error(error, MONGOC_ERROR_SERVER, code, "%s", text);
}

bool
mongo_exchange_has_failed(const MongoConnection *connection, bool answered,
						  const bson_t *document, bson_error_t *error)
{
	const MongoTransport *transport = &connection->transport;

	if (!answered)
		bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_SOCKET, "%s",
					   transport->violation != NULL ? transport->failure :
					   "The connection was lost before MongoDB had answered.");
	else if (!mongo_reply_is_ok(document))
		note_refusal(document, error);
	else
		return false;
	return true;
}
