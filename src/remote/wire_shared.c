/*-------------------------------------------------------------------------
 *
 * wire_shared.c
 *		What both transports do in the same way: which commands take what, room
 *		for replies, the errors of those that do not come or are wrong.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wire.h"

#include "utils/memutils.h"

/* maxBsonObjectSize, and 16 kB for what a command has of its own */
#define LARGEST_COMMAND		(16 * 1024 * 1024 + 16384)

/* Which commands take what (Server Selection and Read Concern specifications). */
static const struct
{
	const char *name;
	bool		read_preference;
	bool		read_concern;
}			command_rules[] =
{
	{"find", true, true},
	{"aggregate", true, true},
	{"count", true, true},
	{"distinct", true, true},
	{"getMore", false, false},
	{"killCursors", false, false},
};

void
mongo_wire_choose_elements(const MongoConnection *connection,
						   const bson_t *command,
						   const bson_t **read_preference,
						   const bson_t **read_concern)
{
	/* a command's name is its first key */
	const char *name = bson_empty(command) ? "" :
		(const char *) bson_get_data(command) + 5;

	*read_preference = connection->read_preference;
	*read_concern = NULL;
	for (size_t i = 0; i < lengthof(command_rules); i++)
	{
		if (strcmp(name, command_rules[i].name) != 0)
			continue;
		if (!command_rules[i].read_preference)
			*read_preference = NULL;
		if (command_rules[i].read_concern &&
			connection->read_concern != NULL &&
			!bson_has_field(command, "readConcern"))
			*read_concern = connection->read_concern;
	}
}

void
mongo_wire_check_size(const bson_t *command)
{
	if (command->len > LARGEST_COMMAND)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("command for MongoDB is too large"),
				 errdetail("It has %u bytes; MongoDB takes 16 MB.",
						   command->len)));
}

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
mongo_wire_raise_wait(MongoConnection *connection)
{
	MongoTransport *transport = &connection->transport;

	mongo_transport_raise(transport);
	if (!transport->timed_out)
		return;
	transport->timed_out = false;
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("server \"%s\" did not answer in time", connection->server_name),
			 errdetail("Nothing was received for %d milliseconds.",
					   transport->socket_timeout_ms),
			 errhint("The limit is the option \"socket_timeout_ms\" of the server, or socketTimeoutMS in its \"uri\".")));
}

void
mongo_wire_report_disconnect(const char *server_name)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("connection to server \"%s\" was lost", server_name),
			 errdetail("MongoDB closed the connection, or the network failed, before the answer was complete."),
			 errhint("MongoDB also does so when a document of the answer would have more than 16 MB.")));
}
