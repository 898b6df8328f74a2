/*-------------------------------------------------------------------------
 *
 * reply.c
 *		Room for replies, and the errors of those that do not come or are wrong.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wire.h"

#include "utils/memutils.h"

void
mongo_reply_reserve(MongoReply *reply, MongoBuffer *buffer, size_t size,
					size_t used)
{
	uint8	   *larger;

	if (size <= buffer->capacity)
		return;
	/* batches of one scan differ a little: leave some room */
	size += size / 8;
	larger = MemoryContextAllocHuge(reply->context, size);
	if (buffer->data != NULL)
	{
		memcpy(larger, buffer->data, used);
		pfree(buffer->data);
	}
	buffer->data = larger;
	buffer->capacity = size;
}

static void
free_buffer(MongoBuffer *buffer)
{
	if (buffer->data != NULL)
		pfree(buffer->data);
	buffer->data = NULL;
	buffer->capacity = 0;
}

void
mongo_reply_free(MongoReply *reply)
{
	free_buffer(&reply->message);
	free_buffer(&reply->compressed);
	reply->document = NULL;
}

void
mongo_wire_report_violation(MongoConnection *connection, const char *detail)
{
	connection->broken = true;
	ereport(ERROR,
			(errcode(ERRCODE_PROTOCOL_VIOLATION),
			 errmsg("server \"%s\" sent an invalid reply",
					connection->server_name),
			 errdetail("%s", detail)));
}

void
mongo_wire_report_disconnect(MongoConnection *connection)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("connection to server \"%s\" was lost",
					connection->server_name),
			 errdetail("MongoDB closed the connection, or the network failed, before the answer was complete.")));
}
