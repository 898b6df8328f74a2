/*-------------------------------------------------------------------------
 *
 * transport.c
 *		What the streams of one libmongoc client share: why they talk no more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "transport.h"

#include <sys/socket.h>

#include "driver_memory.h"
#include "miscadmin.h"
#include "stream.h"

void
mongo_transport_note_failure(MongoTransport *transport, const char *text)
{
	size_t		used = strlen(transport->failure);

	if (strstr(transport->failure, text) == NULL)
		snprintf(transport->failure + used, sizeof(transport->failure) - used,
				 "%s%s", used > 0 ? "; " : "", text);
}

/* Without waiting: end of file, or an error, and nothing to read before it. */
static bool
peer_has_closed(const MongoStream *stream)
{
	char		byte;
	ssize_t		result;

	do
		result = recv(stream->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	while (result < 0 && errno == EINTR);
	return result == 0 || (result < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

void
mongo_transport_drop_closed(MongoTransport *transport)
{
	dlist_iter	iter;

	dlist_foreach(iter, &transport->streams)
	{
		MongoStream *stream = dlist_container(MongoStream, node, iter.cur);

		if (stream->socket != PGINVALID_SOCKET && peer_has_closed(stream))
			mongoc_stream_close(&stream->vtable);
	}
}

void
mongo_transport_close_data_stream(MongoTransport *transport)
{
	if (transport->data_stream == NULL)
		return;
	mongoc_stream_close(&transport->data_stream->vtable);
	transport->data_stream = NULL;
}

void
mongo_transport_resume(MongoTransport *transport)
{
	dlist_iter	iter;

	transport->interrupted = false;
	transport->timed_out = false;
	transport->memory_missing = 0;
	dlist_foreach(iter, &transport->streams)
	{
		MongoStream *stream = dlist_container(MongoStream, node, iter.cur);

		if (!stream->abandoned)
			continue;
		mongoc_stream_close(&stream->vtable);
		if (transport->data_stream == stream)
			transport->data_stream = NULL;
	}
}

void
mongo_transport_note_memory(MongoTransport *transport, size_t size)
{
	transport->interrupted = true;
	transport->memory_missing = size;
}

void
mongo_transport_raise(MongoTransport *transport)
{
	size_t		memory_missing = transport->memory_missing;

	if (!transport->interrupted)
		return;

	CHECK_FOR_INTERRUPTS();

	transport->memory_missing = 0;
	if (memory_missing > 0)
		mongo_memory_report(memory_missing);

	if (transport->timed_out)
		return;					/* the caller says what has timed out */
	if (transport->wait_error == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("a connection to MongoDB has been given up"),
				 errdetail("PostgreSQL, or an earlier statement, interrupted what was under way on it.")));
	else
	{
		ErrorData  *kept = transport->wait_error;
		int			sqlstate = kept->sqlerrcode;
		char	   *message = pstrdup(kept->message);

		transport->wait_error = NULL;
		FreeErrorData(kept);
		ereport(ERROR,
				(errcode(sqlstate), errmsg_internal("%s", message)));
	}
}
