/*-------------------------------------------------------------------------
 *
 * event_stream.c
 *		Change streams that stay open, each with a connection of its own.
 *
 * A stream outlives statements and transactions.  Its getMores wait for events in MongoDB, while
 * the session waits for several streams, or does other things.  Nothing is retried: after an error
 * the caller opens another stream.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

static void close_stream(MongoEventStream *stream);

struct MongoEventStream
{
	UserMapping *user;			/* a copy */
	const char *database;
	MongoLease *lease;			/* NULL: closed */
	MemoryContext scratch;		/* for building a request */
	MemoryContextCallback callback;
	MongoReply	reply;
	MongoBatch	batch;			/* of the last reply */
	bool		is_requested;
	int			max_wait;		/* of the getMore in flight */
	TimestampTz overdue_at;		/* when to ask whether its server is alive */
};

/*
 * If a reply is so late, its server is asked whether it is alive.  MongoDB may look through much of
 * its oplog before it replies to a getMore, so a late reply alone says nothing.
 */
#define OVERDUE_MS			10000
#define ALIVE_MS			500

#define LONGEST_WAIT_MS		60000

/* Returns the connection; NULL: it is lost, or its server has changed. */
static MongoConnection *
stream_connection(const MongoEventStream *stream)
{
	MongoConnection *connection = stream->lease != NULL ? stream->lease->connection : NULL;

	return connection == NULL || connection->broken || connection->retired ||
		connection->transport.data_stream == NULL ? NULL : connection;
}

pg_noreturn static void
report_lost(MongoEventStream *stream)
{
	const ForeignServer *server = GetForeignServerExtended(stream->user->serverid, FSV_MISSING_OK);

	close_stream(stream);
	mongo_report_disconnect(server != NULL ? server->servername : "");
}

/* Closes the stream, and raises 08P01. */
pg_noreturn static void
report_invalid(MongoEventStream *stream, const char *detail)
{
	const char *name = pstrdup(stream->lease->connection->server_name);

	stream->lease->connection->broken = true;
	close_stream(stream);
	mongo_report_violation(name, detail);
}

/* Sends a command for which MongoDB may wait so many milliseconds. */
static void
send_command(MongoEventStream *stream, const char *database, const bson_t *command,
			 int milliseconds)
{
	MongoConnection *connection = stream_connection(stream);

	if (connection == NULL || !mongo_send_or_raise(connection, &(MongoCommand) {
		.database = database,.document = command
	}, &stream->reply))
		report_lost(stream);
	stream->is_requested = true;
	stream->overdue_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													 milliseconds + OVERDUE_MS);
}

static void
close_at_reset(void *arg)
{
	close_stream(arg);
}

/*
 * mongo_event_stream_open
 *		Sends an aggregate whose first stage is $changeStream, and receives its first batch.
 *
 * The stream lives in 'context', whose reset closes it, and has the server's cursor killed.  Names
 * are in UTF-8.  Sends read concern "majority", unless the command has one.  Raises what connecting
 * raises, and what mongo_event_stream_receive() does.
 */
MongoEventStream *
mongo_event_stream_open(MemoryContext context, UserMapping *user, const char *database,
						const bson_t *command, int *failure)
{
	MemoryContext old_context = MemoryContextSwitchTo(context);
	MongoEventStream *stream = palloc0(sizeof(MongoEventStream));
	bson_t	   *copy;

	stream->user = palloc(sizeof(UserMapping));
	*stream->user = *user;
	stream->user->options = NIL;
	stream->database = pstrdup(database);
	stream->reply.context = context;
	stream->scratch = AllocSetContextCreate(context, "mongo_fdw event stream",
											ALLOCSET_SMALL_SIZES);
	stream->lease = mongo_lease_create(context, stream->user, NULL, NULL);
	stream->callback.func = close_at_reset;
	stream->callback.arg = stream;
	MemoryContextRegisterResetCallback(context, &stream->callback);
	PG_TRY();
	{
		(void) mongo_lease_take(stream->lease, stream->user, MONGO_WAIT_TAKE_OVER);
		stream->lease->connection->is_dedicated = true;
		MemoryContextSwitchTo(stream->scratch);
		copy = mongo_bson_copy_in(stream->scratch, command);
		if (!bson_has_field(copy, "readConcern"))
			mongo_append_condition(copy, "readConcern", "level", mongo_utf8("majority"));
		send_command(stream, stream->database, copy, 0);
		mongo_event_stream_receive(stream, failure);
	}
	PG_CATCH();
	{
		close_stream(stream);
		PG_RE_THROW();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old_context);
	return stream;
}

/*
 * mongo_event_stream_request
 *		Requests the next batch, and does not wait for it.  MongoDB waits for events, for so many
 *		milliseconds at most.  Does nothing if a request is outstanding.
 *
 * The events of the last batch that have not been returned yet are lost.  Raises 08006 for a lost
 * connection, also if the server or the user mapping has changed.  The stream must not be closed.
 */
void
mongo_event_stream_request(MongoEventStream *stream, int max_wait, int batch_size)
{
	MongoConnection *connection = stream_connection(stream);
	MemoryContext old_context;
	bson_t	   *command;

	if (stream->is_requested)
		return;
	if (connection == NULL)
		report_lost(stream);
	if (stream->batch.id == 0)
		elog(ERROR, "the change stream of server \"%s\" has ended", connection->server_name);
	if (connection->transport.socket_timeout_ms > 0)
		max_wait = Min(max_wait, connection->transport.socket_timeout_ms / 2);
	max_wait = Max(1, Min(max_wait, LONGEST_WAIT_MS));

	MemoryContextReset(stream->scratch);
	old_context = MemoryContextSwitchTo(stream->scratch);
	command = mongo_from_template("{getMore: @1, collection: @2, maxTimeMS: @3}",
								  mongo_int64(stream->batch.id), mongo_utf8(stream->lease->cursor.collection),
								  mongo_int32(max_wait));
	if (batch_size > 0)
		mongo_append(command, "batchSize", mongo_int32(batch_size));
	send_command(stream, stream->lease->cursor.database, command, max_wait);
	MemoryContextSwitchTo(old_context);
}

/*
 * mongo_event_stream_is_requested
 *		Tells whether a request is outstanding.
 */
bool
mongo_event_stream_is_requested(const MongoEventStream *stream)
{
	return stream->is_requested;
}

/*
 * mongo_event_stream_is_ready
 *		Tells whether the outstanding reply has begun to arrive, or the connection is lost.
 *
 * Does not wait, unless the reply is overdue: then it asks over another connection whether the
 * server is alive, for half a second at most.  Raises only 53200.
 */
bool
mongo_event_stream_is_ready(MongoEventStream *stream)
{
	MongoConnection *connection = stream_connection(stream);
	bson_t	   *ping;
	MongoReply	reply = {.context = CurrentMemoryContext};

	if (connection == NULL || stream->reply.received > 0 || mongo_has_reply(connection))
		return true;
	if (!stream->is_requested || GetCurrentTimestamp() < stream->overdue_at)
		return false;
	ping = mongo_from_template("{ping: 1}");
	connection->broken = !mongo_connection_run_separately(connection, &(MongoCommand) {
		.database = "admin",.document = ping
	}, ALIVE_MS, &reply) || reply.document == NULL;
	mongo_reply_free(&reply);
	stream->overdue_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), OVERDUE_MS);
	return connection->broken;
}

/*
 * mongo_event_stream_socket
 *		Returns the socket to wait on for the reply, valid until the next call; PGINVALID_SOCKET if
 *		the connection is lost.  Call mongo_event_stream_is_ready() before each wait, and every few
 *		seconds.
 */
pgsocket
mongo_event_stream_socket(MongoEventStream *stream)
{
	MongoConnection *connection = stream_connection(stream);

	return connection == NULL ? PGINVALID_SOCKET : connection->transport.data_stream->socket;
}

/* Reads the batch of the reply that has been received. */
static void
take_events(MongoEventStream *stream, int *failure)
{
	MongoLease *lease = stream->lease;
	bson_iter_t field;
	const char *violation;
	MongoBatch	rest;
	uint32		length;
	uint64		mark;
	RemoteCursor cursor = lease->cursor;

	if (!mongo_reply_is_ok(&stream->reply))
	{
		MongoFailure read;

		/* MongoDB has closed the cursor */
		mongo_lease_note_cursor(lease, NULL, 0, NULL, NULL);
		stream->batch.id = 0;
		mongo_read_reply_failure(&stream->reply, &read);
		if (failure != NULL)
			*failure = read.code;
		mongo_raise_failure(psprintf("could not read the changes of database \"%s\"",
									 stream->database), &read, NULL);
	}
	if (!mongo_reply_find(&stream->reply, "cursor", &field))
		report_invalid(stream, "The reply has no cursor.");
	violation = mongo_batch_read(&stream->batch, &field);
	rest = stream->batch;
	while (violation == NULL && mongo_batch_next(&rest, &length, &violation) != NULL)
		;
	if (violation == NULL && stream->batch.token != NULL && !mongo_batch_time(&stream->batch, &mark))
		violation = "The change stream's position has no time.";
	if (violation == NULL && stream->batch.id != 0 && cursor.id != stream->batch.id &&
		!mongo_reply_cursor(&stream->reply, &cursor))
		violation = "The cursor has no namespace.";
	if (violation != NULL)
		report_invalid(stream, violation);
	mongo_lease_note_cursor(lease, lease->connection, stream->batch.id, cursor.database,
							cursor.collection);
}

/*
 * mongo_event_stream_receive
 *		Waits for the outstanding reply.
 *
 * An interrupt leaves it outstanding; a later call continues.  After any other error the stream is
 * of no use.  Raises 08006 for a lost connection or a silent server, 08P01 for an invalid reply,
 * and MongoDB's error, whose code it first stores in *failure if that is not NULL.
 */
void
mongo_event_stream_receive(MongoEventStream *stream, int *failure)
{
	MongoConnection *connection;

	if (!stream->is_requested)
		elog(ERROR, "nothing was requested of a change stream");
	while (!mongo_event_stream_is_ready(stream))
	{
		(void) WaitLatchOrSocket(MyLatch, WL_LATCH_SET | WL_SOCKET_READABLE | WL_TIMEOUT |
								 WL_EXIT_ON_PM_DEATH, mongo_event_stream_socket(stream), 1000,
								 mongo_wait_event(MONGO_WAIT_REPLY));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	connection = stream_connection(stream);
	if (connection == NULL || !mongo_receive_or_raise(connection, &stream->reply, true))
		report_lost(stream);
	stream->is_requested = false;
	mongo_activity_flush(stream->lease->owner, &connection->transport.traffic,
						 &connection->flushed);
	take_events(stream, failure);
}

/*
 * mongo_event_stream_next
 *		Returns the next event of the batch, a document, and its length; NULL if there is none left.
 *		It is valid until the next request.
 */
const uint8 *
mongo_event_stream_next(MongoEventStream *stream, uint32 *length)
{
	const char *violation;

	return mongo_batch_next(&stream->batch, length, &violation);
}

/*
 * mongo_event_stream_mark
 *		Returns the time in the position that the last reply gave, which is not before that of any
 *		event so far; 0: it gave none.
 */
uint64
mongo_event_stream_mark(const MongoEventStream *stream)
{
	uint64		mark;

	return stream->batch.token != NULL && mongo_batch_time(&stream->batch, &mark) ? mark : 0;
}

/*
 * mongo_event_stream_is_closed
 *		Tells whether MongoDB has closed the stream, after "invalidate".
 */
bool
mongo_event_stream_is_closed(const MongoEventStream *stream)
{
	return stream->batch.id == 0;
}

/*
 * Closes the stream, and has the server's cursor killed.  The stream may only be closed again
 * then.  Idempotent; accepts NULL.
 */
static void
close_stream(MongoEventStream *stream)
{
	MongoLease *lease = stream != NULL ? stream->lease : NULL;

	if (lease == NULL)
		return;
	stream->lease = NULL;
	stream->is_requested = false;
	stream->batch = (MongoBatch) {0};
	if (lease->connection != NULL)
		mongo_reply_abandon(lease->connection, &stream->reply);
	mongo_lease_release(lease);
	mongo_reply_free(&stream->reply);
}

/*
 * mongo_event_stream_is_merged
 *		Tells whether the stream is merged from several shards, so that an empty reply says nothing
 *		about the events of a time.
 */
bool
mongo_event_stream_is_merged(const MongoEventStream *stream)
{
	const MongoConnection *connection = stream_connection(stream);

	return connection == NULL || strcmp(connection->server_type, "Mongos") == 0;
}
