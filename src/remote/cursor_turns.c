/*-------------------------------------------------------------------------
 *
 * cursor_turns.c
 *		Cursors that take turns on connections, with each other and under Append.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cursor_state.h"

#include "driver_memory.h"

/* How long the end of a cursor waits for an answer that nobody wants. */
#define DISCARD_WAIT_MS		20

/* MongoDB's limit is 255 bytes. */
#define LONGEST_NAMESPACE	512

bool
mongo_cursor_is_ready(MongoCursor *cursor)
{
	MongoConnection *connection;

	if (cursor->position != cursor->end || cursor->has_document ||
		cursor->session != NULL || cursor->taken ||
		(!cursor->pending && mongo_cursor_is_at_end(cursor)))
		return true;
	if (!cursor->pending && !mongo_cursor_send_request(cursor, MONGO_TURN_LATER))
		return false;
	connection = mongo_lease_connection(cursor->lease);
	return connection->transport.socket_timeout_ms > 0 || mongo_wire_has_reply(connection);
}

pgsocket
mongo_cursor_socket(MongoCursor *cursor)
{
	const MongoTransport *transport;

	if (!cursor->pending)
		return PGINVALID_SOCKET;
	transport = &mongo_lease_connection(cursor->lease)->transport;
	return transport->socket_timeout_ms > 0 || transport->data_stream == NULL ?
		PGINVALID_SOCKET : transport->data_stream->socket;
}

void
mongo_cursor_ask_now(MongoCursor *cursor)
{
	Assert(!cursor->pending && !cursor->taken);
	(void) mongo_cursor_send_request(cursor, MONGO_TURN_NOW);
}

void
mongo_cursor_set_tag(MongoCursor *cursor, void *tag)
{
	cursor->tag = tag;
}

/* A condition on tags, for what the pool knows as readers. */
typedef struct TagCondition
{
	bool		(*condition) (const void *tag, const void *arg);
	const void *arg;
} TagCondition;

static bool
tag_meets(const void *reader, const void *arg)
{
	const void *tag = ((const MongoCursor *) reader)->tag;
	const TagCondition *condition = arg;

	return tag != NULL && condition->condition(tag, condition->arg);
}

bool
mongo_cursor_waits_for(MongoCursor *cursor,
					   bool (*condition) (const void *tag, const void *arg),
					   const void *arg)
{
	TagCondition tags = {condition, arg};

	return mongo_lease_find_in_flight(cursor->lease, tag_meets, &tags);
}

/*
 * note_unread
 *		Remember the cursor that an answer tells of which nobody has looked at.
 *
 * Never raises; false where there is no memory for it, and it is closed.
 */
static bool
note_unread(MongoCursor *cursor, const uint8 *document, uint32 length)
{
	bson_iter_t iter;
	bson_iter_t found;
	int64		id = 0;
	char		names[LONGEST_NAMESPACE];
	uint32_t	ns_length;
	char	   *dot;

	/* failed or at its end: there is no cursor to close any more */
	if (bson_iter_init_from_data(&iter, document, length) &&
		bson_iter_find_descendant(&iter, "cursor.id", &found))
		id = bson_iter_as_int64(&found);
	if (id == 0)
		return mongo_lease_note_cursor(cursor->lease, 0, NULL, NULL);
	if (cursor->id != 0 ||
		!bson_iter_init_from_data(&iter, document, length) ||
		!bson_iter_find_descendant(&iter, "cursor.ns", &found) ||
		!BSON_ITER_HOLDS_UTF8(&found))
		return true;

	/* the command's own answer */
	strlcpy(names, bson_iter_utf8(&found, &ns_length), sizeof(names));
	dot = strchr(names, '.');
	if (dot == NULL || ns_length >= sizeof(names))
		return true;
	*dot = '\0';
	return mongo_lease_note_cursor(cursor->lease, id, names, dot + 1);
}

/*
 * take_answer
 *		Somebody else needs the connection (MongoTurns).
 *
 * Should the wait be interrupted, this cursor goes on with it when it needs the
 * answer.  After any other error nobody knows how much has been read: the
 * connection is not used any more, and this cursor will find it lost.
 */
static void
take_answer(void *arg)
{
	MongoCursor *cursor = arg;
	MongoConnection *connection = mongo_lease_connection(cursor->lease);
	MongoReply *reply = &cursor->replies[1 - cursor->current];
	volatile MongoWireResult result = MONGO_WIRE_DISCONNECTED;
	bool		noted = true;

	PG_TRY();
	{
		mongo_cursor_begin_wait(cursor, &connection->transport.traffic);
		result = mongo_wire_receive(connection, cursor->request_id, reply);
		mongo_cursor_end_wait(cursor, &connection->transport.traffic);
	}
	PG_CATCH();
	{
		if (!connection->resumable)
			connection->broken = true;
		PG_RE_THROW();
	}
	PG_END_TRY();

	cursor->pending = false;
	cursor->taken = true;
	cursor->lost = result != MONGO_WIRE_OK;
	if (!cursor->lost)
		noted = note_unread(cursor, reply->document, reply->document_length);
	mongo_lease_put(cursor->lease);
	if (!noted)
	{
		/* as if the answer had not come: nobody can read on */
		cursor->lost = true;
		mongo_memory_report(reply->document_length);
	}
}

/*
 * serve
 *		A connection is free, and it is this cursor's turn (MongoTurns).
 */
static void
serve(void *arg)
{
	(void) mongo_cursor_send_request(arg, MONGO_TURN_LATER);
}

/*
 * discard_answer
 *		Take the batch that was asked for ahead off the connection (MongoTurns).
 *
 * It is on its way or about to be; one that takes longer is not worth waiting
 * for: the connection is then closed instead, and the cursor killed, which ends
 * the operation on the server.
 */
static void
discard_answer(void *arg)
{
	MongoCursor *cursor = arg;
	const uint8 *document;
	uint32		length;
	uint8	   *message = mongo_wire_receive_quietly(mongo_lease_connection(cursor->lease),
													 cursor->request_id, DISCARD_WAIT_MS,
													 &document, &length);

	if (message == NULL)
		return;
	(void) note_unread(cursor, document, length);
	free(message);
}

const MongoTurns mongo_cursor_turns = {
	.take_answer = take_answer,
	.serve = serve,
	.discard_answer = discard_answer
};
