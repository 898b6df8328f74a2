/*-------------------------------------------------------------------------
 *
 * cursor_request.c
 *		What cursors send: their command, and requests for more.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cursor_state.h"

#include "bson_memory.h"
#include "trace.h"

void
mongo_cursor_report_disconnect(MongoCursor *cursor)
{
	mongo_wire_report_disconnect(GetForeignServer(cursor->user->serverid)->servername);
}

/*
 * note_request
 *		A request of the cursor is in flight.
 */
static void
note_request(MongoCursor *cursor)
{
	cursor->sent = cursor->pending = true;
	mongo_lease_note_sent(cursor->lease);
}

/* send_counted: on the lease's connection; false when it is broken. */
static bool
send_counted(MongoCursor *cursor, const char *database, const bson_t *command)
{
	MongoConnection *connection = mongo_lease_connection(cursor->lease);
	const uint64 *bytes = &connection->transport.traffic.counters[MONGO_COUNT_BYTES_SENT];
	uint64		before = *bytes;

	if (!mongo_wire_send(connection, database, command, &cursor->request_id))
		return false;
	cursor->usage->commands++;
	cursor->usage->bytes_sent += *bytes - before;
	return true;
}

void
mongo_cursor_begin_wait(MongoCursor *cursor, const MongoTraffic *traffic)
{
	cursor->usage->bytes_received -= traffic->counters[MONGO_COUNT_BYTES_RECEIVED];
	cursor->usage->wait_us -= traffic->counters[MONGO_COUNT_WAIT_US];
	if (cursor->session != NULL)
		cursor->usage->bytes_sent -= traffic->counters[MONGO_COUNT_BYTES_SENT];
}

void
mongo_cursor_end_wait(MongoCursor *cursor, const MongoTraffic *traffic)
{
	cursor->usage->bytes_received += traffic->counters[MONGO_COUNT_BYTES_RECEIVED];
	cursor->usage->wait_us += traffic->counters[MONGO_COUNT_WAIT_US];
	if (cursor->session != NULL)
		cursor->usage->bytes_sent += traffic->counters[MONGO_COUNT_BYTES_SENT];
}

/*
 * send_command
 *		Send the cursor's command, over a new connection if the old has broken.
 */
static void
send_command(MongoCursor *cursor)
{
	bson_t		command;

	if (!bson_view(&command, cursor->command, cursor->command_length))
		elog(ERROR, "invalid command document");

	/* a pooled connection may have been closed by the server since */
	if (!send_counted(cursor, cursor->database, &command))
	{
		mongo_lease_renew(cursor->lease, cursor->user);
		if (!send_counted(cursor, cursor->database, &command))
			mongo_cursor_report_disconnect(cursor);
	}
	note_request(cursor);
}

void
mongo_cursor_forget_command(MongoCursor *cursor)
{
	if (cursor->command != NULL)
		pfree(cursor->command);
	cursor->command = NULL;
}

void
mongo_cursor_begin_anew(MongoCursor *cursor)
{
	cursor->id = 0;
	cursor->sent = cursor->opened = false;
	cursor->position = cursor->end = NULL;
	mongo_lease_renew(cursor->lease, cursor->user);
	send_command(cursor);
	mongo_cursor_forget_command(cursor);
}

void
mongo_cursor_send_get_more(MongoCursor *cursor)
{
	bson_t		command = BSON_INITIALIZER;
	volatile bool sent = false;

	/* stays within the bson_t until there is somebody to free it */
	BSON_APPEND_INT64(&command, "getMore", cursor->id);
	BSON_APPEND_UTF8(&command, "collection", cursor->ns_collection);
	if (cursor->batch_size > 0)
		BSON_APPEND_INT32(&command, "batchSize", cursor->batch_size);

	PG_TRY();
	{
		mongo_trace_append(cursor->comment, &command);
		sent = send_counted(cursor, cursor->ns_database, &command);
	}
	PG_FINALLY();
	{
		bson_destroy(&command);
	}
	PG_END_TRY();

	if (sent)
		note_request(cursor);
	else if (cursor->command != NULL)
		mongo_cursor_begin_anew(cursor);
	else
		mongo_cursor_report_disconnect(cursor);
}

bool
mongo_cursor_send_request(MongoCursor *cursor, MongoTurn turn)
{
	if (!mongo_lease_take(cursor->lease, cursor->user, turn))
		return false;
	if (cursor->sent)
		mongo_cursor_send_get_more(cursor);
	else
		send_command(cursor);
	return true;
}

bool
mongo_cursor_is_at_end(const MongoCursor *cursor)
{
	return cursor->lease == NULL || (cursor->sent && cursor->id == 0);
}
