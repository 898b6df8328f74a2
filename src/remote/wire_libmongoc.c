/*-------------------------------------------------------------------------
 *
 * wire_libmongoc.c
 *		The transport of a build with TRANSPORT=libmongoc: commands through
 *		libmongoc's API, as an ordinary program would run them.
 *
 * A request is kept until its reply is asked for, and is run then.  libmongoc
 * adds its implicit sessions and does its own reading and writing, on our
 * streams as always: what interrupts a wait does so here, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wire.h"

#include "bson_memory.h"
#include "client.h"

/* How long a command whose answer nobody wants may take. */
#define FORGET_WAIT_MS		1000

const bool	mongo_wire_sends_at_once = false;
const bool	mongo_wire_cursors_move = false;

static bool
is_usable(const MongoConnection *connection)
{
	return !connection->broken && connection->transport.data_stream != NULL;
}

/*
 * run
 *		The command on the server that was selected; 'reply' is to be destroyed.
 *
 * Not through the variants of the API that retry, as our callers do that.
 */
static bool
run(MongoConnection *connection, const char *database, const bson_t *command,
	bson_t *reply, bson_error_t *error)
{
	MongoClient *client = mongo_client_of(connection);
	const bson_t *read_preference;
	const bson_t *read_concern;
	bson_t		options = BSON_INITIALIZER;
	bool		succeeded;

	client->has_session = true;
	mongo_wire_choose_elements(connection, command, &read_preference,
							   &read_concern);
	BSON_APPEND_INT32(&options, "serverId", client->server_id);
	if (read_concern != NULL)
		bson_concat(&options, read_concern);

	succeeded = mongoc_client_command_with_opts(client->client, database,
												command,
												read_preference == NULL ? NULL :
												mongoc_client_get_read_prefs(client->client),
												&options, reply, error);
	bson_destroy(&options);
	return succeeded;
}

bool
mongo_wire_send(MongoConnection *connection, const char *database,
				const bson_t *command, uint32 *request_id)
{
	MongoBuffer *request = &connection->request;
	size_t		database_size = strlen(database) + 1;
	size_t		size = database_size + command->len;

	mongo_wire_check_size(command);
	if (!is_usable(connection))
		return false;

	if (size > request->capacity)
	{
		request->data = bson_realloc(request->data, size);
		request->capacity = size;
	}
	memcpy(request->data, database, database_size);
	memcpy(request->data + database_size, bson_get_data(command), command->len);
	connection->request_size = size;
	*request_id = ++connection->last_request_id;
	return true;
}

/* Keep the reply's bytes where the caller wants them. */
static void
keep_reply(MongoReply *kept, const bson_t *reply)
{
	mongo_reply_reserve(kept, &kept->message, reply->len, 0);
	memcpy(kept->message.data, bson_get_data(reply), reply->len);
	kept->document = kept->message.data;
	kept->document_length = reply->len;
}

MongoWireResult
mongo_wire_receive(MongoConnection *connection, uint32 request_id pg_attribute_unused(),
				   MongoReply *reply)
{
	const char *database = (const char *) connection->request.data;
	volatile MongoWireResult result = MONGO_WIRE_DISCONNECTED;
	bson_t		command;
	bson_t		answer;
	bson_error_t error = {0};
	char	   *volatile violation = NULL;
	size_t		database_size;

	reply->document = NULL;
	if (!is_usable(connection))
		return MONGO_WIRE_DISCONNECTED;
	database_size = strlen(database) + 1;
	if (!bson_view(&command, connection->request.data + database_size,
				   connection->request_size - database_size))
		elog(ERROR, "invalid command document");

	connection->transport.violation = NULL;
	run(connection, database, &command, &answer, &error);
	PG_TRY();
	{
		mongo_wire_raise_wait(connection);

		if (connection->transport.violation != NULL)
			mongo_wire_report_violation(connection,
										connection->transport.violation);

		/* what the server says of the command is the caller's business */
		if (bson_has_field(&answer, "ok"))
		{
			keep_reply(reply, &answer);
			result = MONGO_WIRE_OK;
		}
		else if (error.domain != MONGOC_ERROR_STREAM &&
				 error.domain != MONGOC_ERROR_SERVER_SELECTION)
			violation = pstrdup(error.message);
	}
	PG_FINALLY();
	{
		bson_destroy(&answer);
	}
	PG_END_TRY();

	if (violation != NULL)
		mongo_wire_report_violation(connection, violation);
	if (result == MONGO_WIRE_DISCONNECTED)
		connection->broken = true;
	return result;
}

bool
mongo_wire_has_reply(MongoConnection *connection pg_attribute_unused())
{
	return true;				/* there is nothing to wait for beforehand */
}

uint8 *
mongo_wire_receive_quietly(MongoConnection *connection pg_attribute_unused(),
						   uint32 request_id pg_attribute_unused(),
						   long timeout_ms pg_attribute_unused(),
						   const uint8 **document pg_attribute_unused(),
						   uint32 *length pg_attribute_unused())
{
	return NULL;				/* nothing has been sent */
}

void
mongo_wire_send_and_forget(MongoConnection *connection, const char *database,
						   const bson_t *command)
{
	int			limit_before = connection->transport.wait_limit_ms;
	bson_t		answer;
	bson_error_t error;

	if (!is_usable(connection))
		return;
	connection->transport.wait_limit_ms = FORGET_WAIT_MS;
	if (!run(connection, database, command, &answer, &error) &&
		error.domain != MONGOC_ERROR_SERVER)
		connection->broken = true;
	connection->transport.wait_limit_ms = limit_before;
	bson_destroy(&answer);
}
