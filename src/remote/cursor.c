/*-------------------------------------------------------------------------
 *
 * cursor.c
 *		Cursors on the results of commands.
 *
 * A cursor is opened, and then read document by document (mongo_cursor_next(), at the end of the
 * file).  In between it sends its command and the getMores, takes over connections from other
 * cursors or lends them its own, by the callbacks of its lease (pool.c), and is read to its end
 * before a write that it must not see (order.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "convert.h"

#include "catalog/pg_type_d.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

static void forget_command(MongoCursor *cursor);
static MongoCommand next_request(MongoCursor *cursor, bson_t *view);
pg_noreturn static void report_disconnect(MongoCursor *cursor);
static void send_next(MongoCursor *cursor, bool again);
static bool send_request(MongoCursor *cursor, MongoWaitPolicy policy);
static void read_to_end(MongoOpenCursor *open, bool in_transaction);
static const MongoLeaseCallbacks cursor_callbacks;

/*-------------------------------------------------------------------------
 * Opening a cursor and reading its documents.
 *
 * Inside a MongoDB transaction each batch is one command of the transaction, and nothing is
 * in flight in between, so several cursors share its connection.  Otherwise a cursor has a
 * connection only from a request to its reply.  If another scan needs that connection, the
 * reply is received early and saved (save_reply()).
 *
 * From the first getMore on, the next batch is requested before the documents of the current
 * one are returned, so that the server works while rows are decoded.  At most one request is
 * in flight or one reply saved, and at most two batches are in memory.  The first getMore is
 * not sent ahead, since many scans end within the first batch, or soon after by a LIMIT.
 *
 * If all documents are wanted over a network, two getMores are in flight, and from the first batch
 * on: MongoDB prepares a batch while another one is on its way.  The last one then finds no cursor.
 *-------------------------------------------------------------------------
 */

/*
 * The size up to which batches grow.  With a network latency of 0.5 ms, narrow documents were
 * read in 0.20 s by batches of 1 MB, 0.18 s of 2 MB, 0.16 s of 4 MB and 8 MB, and 0.18 s of
 * 16 MB; without latency in 0.14 s up to 4 MB, then in 0.15 s and 0.16 s.
 */
#define LARGEST_GROWN_BATCH		(4 * 1024 * 1024)

/*
 * Batches that are more than so many milliseconds apart do not grow: a round trip is negligible
 * then.  With larger batches a slow reader might not send a getMore before MongoDB closes the
 * cursor, and MongoDB might not reply to a slow query within socket_timeout_ms.
 */
#define SLOW_BATCH_MS			1000

/* The largest command that is sent behind another one; see MOST_IN_FLIGHT. */
#define LARGEST_AHEAD			8192

/*
 * If the documents of a command sent ahead are not read for so long, it is sent again: MongoDB
 * closes a cursor after ten minutes without a getMore.
 */
#define LONGEST_AHEAD_MS		(5 * 60 * 1000)

/* How many getMores of a cursor are in flight over a network; elsewhere it is one. */
#define MOST_REQUESTED			2

struct MongoCursor
{
	MemoryContext context;
	MongoRead	read;			/* 'command' is not used; 'usage' is never
								 * NULL; 'comment' is prepared */
	MongoLease *lease;			/* NULL when closed; without a connection if
								 * there is a session */
	MongoSession *session;		/* of a MongoDB transaction, or NULL */
	MemoryContextCallback callback;
	MemoryContext scratch;		/* for building a request; NULL: none yet */
	uint8	   *command;		/* a copy for sending it; NULL: not needed any
								 * more */
	bool		opened;			/* the first batch has been received */
	uint32		command_length;
	TimestampTz batch_at;		/* when the last batch came, if they grow */

	/* of a read at a time */
	bool		at_time;		/* obeys mongo_fdw.cluster_time */
	uint64		at;				/* 0: none, or not chosen yet */
	List	   *names;			/* the collections that it reads, to be
								 * checked (read_time.c); NIL: only its own,
								 * by a find */

	/* of a change stream */
	uint64		present;		/* time of the first reply, a Timestamp */
	TimestampTz wait_until;		/* for the first event; 0: no longer */
	bson_t	   *event;			/* joined from fragments; NULL: none yet */
	bool		lacks_fragments;	/* 'event' does */

	bool		sent;			/* the command has been sent */
	TimestampTz ahead_at;		/* when it was sent ahead; 0: it was not, or
								 * documents have been returned */
	int			requested;		/* requests whose replies have not been taken */
	int			received;		/* of these, whose replies are saved */
	bool		lost;			/* the connection was lost before the others'
								 * replies came */
	int64		id;				/* the server's; 0: nothing is left there. The
								 * lease has its namespace */

	MongoUsage	own_usage;
	uint64		documents;		/* not yet counted for server and user */

	MongoReply	replies[1 + MOST_REQUESTED];	/* the current one and the
												 * next ones, in a ring */
	int			current;
	MongoBatch	batch;			/* the rest of the current one */
	const uint8 *whole_reply;	/* the next document, if reply_field is used */

	/* for reading to the end before a write */
	MongoOpenCursor open;
	Oid			userid;			/* who opened it */
	List	   *tables;
	Tuplestorestate *kept;		/* documents read ahead of a write, or NULL */
	TupleTableSlot *kept_slot;
	int64		nkept;			/* of them, not returned yet */
	bool		kept_incomplete;	/* an error, other than a cancel, kept the
									 * rest from being read */
	MongoReply	last_reply;		/* contains the last document returned */
};

/* Returns the reply that is taken after so many others. */
static MongoReply *
reply_ahead(MongoCursor *cursor, int ahead)
{
	return &cursor->replies[(cursor->current + 1 + ahead) % lengthof(cursor->replies)];
}

/* Tells whether a document can be returned without receiving more. */
static bool
has_document(const MongoCursor *cursor)
{
	return cursor->batch.position != cursor->batch.end || cursor->whole_reply != NULL ||
		cursor->nkept > 0;
}

/* Tells whether a request is in flight. */
static bool
is_pending(const MongoCursor *cursor)
{
	return cursor->requested > cursor->received && !cursor->lost;
}

/* Returns the connection of the last reply. */
static MongoConnection *
connection_of(const MongoCursor *cursor)
{
	return (cursor->session != NULL ? cursor->session->lease : cursor->lease)->connection;
}

/* Raises 08P01, and marks the connection broken. */
pg_noreturn static void
report_invalid_reply(MongoCursor *cursor, const char *detail)
{
	if (connection_of(cursor) != NULL)
		connection_of(cursor)->broken = true;
	mongo_report_violation(GetForeignServer(cursor->read.user->serverid)->servername, detail);
}

static const char *
read_failure_message(MongoCursor *cursor)
{
	return psprintf("could not read collection \"%s.%s\"", mongo_from_utf8(cursor->read.database),
					cursor->read.collection);
}

/* After a batch that is not the last, doubles the next one's size if it pays. */
static void
grow_batches(MongoCursor *cursor, bool is_next)
{
	TimestampTz now;

	if (!cursor->read.batches_grow)
		return;
	now = GetCurrentTimestamp();
	if (is_next && cursor->read.batch_size <= INT_MAX / 2 &&
		cursor->batch.end - cursor->batch.position <= LARGEST_GROWN_BATCH / 2 &&
		!TimestampDifferenceExceeds(cursor->batch_at, now, SLOW_BATCH_MS))
		cursor->read.batch_size *= 2;
	cursor->batch_at = now;
}

/* Reads {firstBatch | nextBatch, id, ns}, of the current reply. */
static void
take_cursor(MongoCursor *cursor, const bson_iter_t *field)
{
	MongoBatch *batch = &cursor->batch;
	const char *violation = mongo_batch_read(batch, field);
	RemoteCursor opened = {.id = 0};

	if (violation != NULL)
		report_invalid_reply(cursor, violation);
	if (batch->id != cursor->id && batch->id != 0 &&
		!mongo_reply_cursor(&cursor->replies[cursor->current], &opened))
		report_invalid_reply(cursor, "The cursor has no namespace.");
	if (batch->id != cursor->id)
		mongo_lease_note_cursor(cursor->lease, connection_of(cursor), batch->id, opened.database,
								opened.collection);
	cursor->id = batch->id;
	if (cursor->id != 0)
		grow_batches(cursor, batch->is_next);
}

/*
 * Reads cursor and batch from the current reply.
 *
 * With 'may_retry', returns false for an error after which the command may be sent again.
 */
static bool
take_cursor_reply(MongoCursor *cursor, bool may_retry)
{
	const MongoReply *reply = &cursor->replies[cursor->current];
	MongoFailure failure;
	bson_iter_t field;

	if (!bson_iter_init_from_data(&field, reply->document, reply->length))
		report_invalid_reply(cursor, "The reply is not a document.");
	while (bson_iter_next(&field))
		;						/* a malformed document sets err_off */
	if (field.err_off != 0 || !mongo_reply_find(reply, "ok", &field))
		report_invalid_reply(cursor, "The reply is not that of a command.");
	if (!bson_iter_as_bool(&field))
	{
		/* the server has closed the cursor of a getMore that failed */
		mongo_lease_note_cursor(cursor->lease, NULL, 0, NULL, NULL);
		mongo_read_reply_failure(reply, &failure);
		if (may_retry && (mongo_failure_is_retryable(&failure) ||
						  mongo_error_is_lost_cursor(failure.code)))
			return false;
		cursor->kept_incomplete = true; /* also for what MongoDB has cancelled */
		mongo_raise_failure(read_failure_message(cursor), &failure, NULL);
	}
	if (cursor->read.reply_field != NULL)
	{
		if (!mongo_reply_find(reply, cursor->read.reply_field, &field))
			report_invalid_reply(cursor, psprintf("The reply has no field \"%s\".",
												  cursor->read.reply_field));
		/* mongo_cursor_next() returns the reply itself */
		cursor->whole_reply = reply->document;
		return true;
	}
	if (!mongo_reply_find(reply, "cursor", &field))
		report_invalid_reply(cursor, "The reply has no cursor.");
	take_cursor(cursor, &field);
	return true;
}

/* Receives the next reply, unless it is saved; returns false if its connection is lost. */
static bool
receive_next(MongoCursor *cursor)
{
	bool		received = cursor->received > 0;

	if (received)
		cursor->received--;
	else if (!cursor->lost)
	{
		cursor->lease->state = LEASE_IN_FLIGHT;
		mongo_lease_receive_earlier(cursor->lease, reply_ahead(cursor, 0)->request_id, false);
		received = mongo_receive_or_raise(cursor->lease->connection, reply_ahead(cursor, 0), true);
		if (cursor->requested == 1 || !received)
			cursor->lease->state = LEASE_QUIET;
	}
	cursor->requested = received ? cursor->requested - 1 : 0;
	cursor->lost &= received;
	return received;
}

/* After a batch, requests the next one if that pays; otherwise returns the connection. */
static void
ask_ahead(MongoCursor *cursor, bool was_opened)
{
	MongoConnection *connection = cursor->lease->connection;
	int			wanted = cursor->read.is_far ? MOST_REQUESTED : 1;

	/* replies that were to follow a saved one are lost */
	if (cursor->lost)
		return;
	/* behind another scan's request it would depend on that */
	if (connection != NULL && connection->in_flight > cursor->requested)
		mongo_lease_put(cursor->lease);
	else if ((was_opened || cursor->read.is_far) && cursor->id != 0 && cursor->names == NIL)
	{
		if (connection == NULL && !send_request(cursor, MONGO_WAIT_SKIP))
			return;
		while (cursor->id != 0 && cursor->requested < wanted)
			send_next(cursor, false);
	}
	else
		mongo_lease_put(cursor->lease);
}

/* Returns the next document of a batch, NULL at its end. */
static const uint8 *
next_in_batch(MongoCursor *cursor, MongoBatch *batch, uint32 *length)
{
	const char *violation;
	const uint8 *document = mongo_batch_next(batch, length, &violation);

	if (violation != NULL)
		report_invalid_reply(cursor, violation);
	return document;
}

/*
 * Returns how many fragments follow this one of an event; -1 if it is none.  *view becomes a view
 * of the document.
 */
static int64
fragments_to_come(const uint8 *document, uint32 length, bson_t *view)
{
	bson_iter_t field;
	bson_iter_t number;
	bson_iter_t count;

	if (!mongo_bson_view(view, document, length) || !bson_iter_init_find(&field, view, "splitEvent") ||
		!bson_iter_recurse(&field, &number) || !bson_iter_find(&number, "fragment") ||
		!bson_iter_recurse(&field, &count) || !bson_iter_find(&count, "of"))
		return -1;
	return bson_iter_as_int64(&count) - bson_iter_as_int64(&number);
}

/* Tells whether a fragment follows the last document of the batch. */
static bool
ends_within_event(MongoCursor *cursor)
{
	MongoBatch	rest = cursor->batch;
	const uint8 *document = NULL;
	uint32		length;
	bson_t		view;

	while (rest.position != rest.end)
		document = next_in_batch(cursor, &rest, &length);
	return document == NULL ? cursor->lacks_fragments : fragments_to_come(document, length, &view) > 0;
}

/* More than two images of a document and what has changed between them. */
#define LARGEST_EVENT	(64 * 1024 * 1024)

/*
 * Returns an event that $changeStreamSplitLargeEvent has split, with its last fragment; NULL
 * after the others.  Any other document is returned as it is.
 */
static const uint8 *
join_fragments(MongoCursor *cursor, const uint8 *document, uint32 *length)
{
	bson_t		view;
	int64		to_come = fragments_to_come(document, *length, &view);
	bson_iter_t field;
	bool		is_valid = true;

	if (to_come < 0)
		return document;
	if (cursor->event == NULL)
		cursor->event = mongo_bson_create_in(cursor->context);
	else if (!cursor->lacks_fragments)
		bson_reinit(cursor->event);
	cursor->lacks_fragments = to_come > 0;
	/* the position behind the event is that of the last fragment */
	bson_iter_init(&field, &view);
	while (is_valid && bson_iter_next(&field))
		is_valid = strcmp(bson_iter_key(&field), "splitEvent") == 0 ||
			(to_come > 0 && strcmp(bson_iter_key(&field), "_id") == 0) ||
			bson_append_iter(cursor->event, NULL, 0, &field);
	if (!is_valid || field.err_off != 0)
		report_invalid_reply(cursor, "A fragment of an event is not valid BSON.");
	if (cursor->event->len > LARGEST_EVENT)
		report_invalid_reply(cursor, "The fragments of an event are too large.");
	*length = cursor->event->len;
	return to_come > 0 ? NULL : bson_get_data(cursor->event);
}

/*
 * After a batch, ends a change stream if it has reached its present, with a document of the
 * position there.
 *
 * An empty batch may only mean that MongoDB is still searching the oplog.  After events, others
 * of the same time may follow, from the same transaction.
 */
static void
follow_stream(MongoCursor *cursor)
{
	bool		is_empty = cursor->batch.position == cursor->batch.end;
	uint64		reached = PG_UINT64_MAX;
	bson_t		token;
	const bson_t *position;
	MemoryContext old_context;
	bson_iter_t field;

	(void) mongo_batch_time(&cursor->batch, &reached);
	if (!cursor->opened)
	{
		cursor->present = mongo_reply_find(&cursor->replies[cursor->current], "operationTime", &field) ?
			mongo_time_at(&field) : 0;
		cursor->wait_until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), cursor->read.max_wait);
	}
	if (!is_empty)
		cursor->wait_until = 0;
	if (cursor->id != 0 &&
		((is_empty ? reached < cursor->present || GetCurrentTimestamp() < cursor->wait_until :
		  reached <= cursor->present) || (cursor->read.split_events && ends_within_event(cursor))))
		return;

	/* the lease still knows the server's cursor, and has it closed */
	cursor->id = 0;
	if (cursor->batch.token == NULL || !mongo_bson_view(&token, cursor->batch.token, cursor->batch.token_length))
		return;
	old_context = MemoryContextSwitchTo(cursor->context);
	position = mongo_from_template("{_id: @1, operationType: 'position', clusterTime: @2}",
								   mongo_document(&token), mongo_date((int64) (reached >> 32) * 1000));
	cursor->whole_reply = bson_get_data(position);
	MemoryContextSwitchTo(old_context);
}

/* Returns the collection that the command names, in UTF-8; "" if it names none. */
static const char *
first_name(const MongoCursor *cursor)
{
	bson_iter_t iter;

	return cursor->command != NULL &&
		bson_iter_init_from_data(&iter, cursor->command, cursor->command_length) &&
		bson_iter_next(&iter) && BSON_ITER_HOLDS_UTF8(&iter) ? bson_iter_utf8(&iter, NULL) : "";
}

/* Resets the cursor to one whose command has not been sent. */
static void
begin_again(MongoCursor *cursor)
{
	cursor->id = 0;
	cursor->sent = cursor->opened = cursor->lost = false;
	cursor->requested = cursor->received = 0;
	cursor->batch.position = cursor->batch.end = NULL;
	cursor->ahead_at = 0;
}

/* Tells whether MongoDB may have closed a cursor that was opened ahead. */
static bool
is_too_old(MongoCursor *cursor)
{
	TimestampTz sent_at = cursor->ahead_at;

	cursor->ahead_at = 0;
	return sent_at != 0 && cursor->id != 0 && cursor->command != NULL &&
		TimestampDifferenceExceeds(sent_at, GetCurrentTimestamp(), LONGEST_AHEAD_MS);
}

/*
 * After a batch of a read at a time, makes sure that it is of the collections that there were.
 * Raises 55000 otherwise.
 *
 * A request that needs this check is never sent ahead, so no other scan takes over the
 * connection, and the same member is asked.
 */
static void
check_collections(MongoCursor *cursor)
{
	if (!cursor->opened && !cursor->batch.has_time && cursor->batch.position == cursor->batch.end)
		mongo_report_missing_at_time(mongo_from_utf8(cursor->read.database), cursor->read.collection);

	/*
	 * MongoDB holds on to the collection of an open cursor, but not to those
	 * of its stages
	 */
	if (list_length(cursor->names) <= cursor->opened)
		return;
	if (cursor->lease->connection == NULL ||
		!mongo_check_collections(cursor->lease->connection, cursor->read.database, cursor->names,
								 cursor->at))
		report_disconnect(cursor);
}

/*
 * Waits for the pending request's reply and makes its batch the current one.
 *
 * If the connection or the cursor is lost before a document has been returned, sends the command
 * once more.
 */
static void
receive_batch(MongoCursor *cursor)
{
	bool		was_opened;

	for (;;)
	{
		bool		may_retry = cursor->command != NULL;

		if (receive_next(cursor))
		{
			cursor->current = (cursor->current + 1) % lengthof(cursor->replies);
			if (take_cursor_reply(cursor, may_retry))
			{
				if (!is_too_old(cursor))
					break;
				mongo_lease_put(cursor->lease);
				mongo_lease_leave_cursor(cursor->lease);
				begin_again(cursor);
				(void) send_request(cursor, MONGO_WAIT_TAKE_OVER);
				continue;
			}
		}
		else if (!may_retry)
			report_disconnect(cursor);
		send_next(cursor, true);
	}

	if (cursor->at_time)
		check_collections(cursor);
	if (cursor->read.is_stream)
		follow_stream(cursor);
	/* getMores after the last one find no cursor */
	while (cursor->id == 0 && cursor->requested > 0)
		(void) receive_next(cursor);
	was_opened = cursor->opened;
	cursor->opened = true;
	if (cursor->batch.position != cursor->batch.end || cursor->id == 0)
		forget_command(cursor);
	ask_ahead(cursor, was_opened);
}

/* Returns an empty memory context for building a request. */
static MemoryContext
scratch_context(MongoCursor *cursor)
{
	if (cursor->scratch == NULL)
		cursor->scratch = AllocSetContextCreate(cursor->context, "mongo_fdw request",
												ALLOCSET_SMALL_SIZES);
	MemoryContextReset(cursor->scratch);
	return cursor->scratch;
}

/* Fetches the first or the next batch inside a transaction. */
static void
fetch_in_session(MongoCursor *cursor)
{
	MemoryContext old_context;
	bson_t		view;
	MongoCommand command = next_request(cursor, &view);

	old_context = MemoryContextSwitchTo(cursor->sent ? cursor->scratch : scratch_context(cursor));
	mongo_session_read(cursor->session, command.database, command.document,
					   reply_ahead(cursor, 0), read_failure_message(cursor));
	MemoryContextSwitchTo(old_context);
	cursor->sent = true;
	forget_command(cursor);
	cursor->current = (cursor->current + 1) % lengthof(cursor->replies);
	(void) take_cursor_reply(cursor, false);
}

/* Copies the command, and appends its comment. */
static void
copy_command(MongoCursor *cursor, const bson_t *command)
{
	if (cursor->read.comment != NULL)
	{
		bson_t	   *copy = mongo_bson_copy_in(CurrentMemoryContext, command);

		mongo_trace_append(cursor->read.comment, copy);
		command = copy;
	}
	cursor->command_length = command->len;
	cursor->command = MemoryContextAlloc(cursor->context, command->len);
	memcpy(cursor->command, bson_get_data(command), command->len);
}

/*
 * mongo_cursor_open
 *		Returns a cursor on the result of a command, which is sent when the first document is
 *		requested.
 *
 * The cursor and its lease live in 'context', whose reset closes them.  A connection is in use
 * only while a reply is outstanding, so any number of cursors may be open.  If a connection
 * breaks before the first document has been returned, the command is sent once more over a new
 * one (Retryable Reads specification).  Raises what mongo_session_for_read() does, and at a time
 * what mongo_collections_read() does.
 */
MongoCursor *
mongo_cursor_open(MemoryContext context, const MongoRead *read)
{
	MongoCursor *cursor = MemoryContextAllocZero(context, sizeof(MongoCursor));
	MemoryContext old_context = MemoryContextSwitchTo(context);

	cursor->context = context;
	cursor->read = *read;
	cursor->read.command = NULL;
	if (read->usage == NULL)
		cursor->read.usage = &cursor->own_usage;
	for (size_t i = 0; i < lengthof(cursor->replies); i++)
		cursor->replies[i] = (MongoReply) {.context = context,.usage = cursor->read.usage};
	if (read->comment != NULL)
		cursor->read.comment = mongo_trace_prepare(read->comment);
	copy_command(cursor, read->command);

	cursor->session = read->is_stream || read->of_catalog ? NULL :
		mongo_session_for_read(read->user);
	cursor->lease = mongo_lease_create(context, read->user, &cursor_callbacks, cursor);
	cursor->lease->read_mode = read->read_mode;
	Assert(cursor->session == NULL || read->reply_field == NULL);
	cursor->callback.func = mongo_list_remove;
	cursor->callback.arg = &cursor->open.listed;
	MemoryContextRegisterResetCallback(context, &cursor->callback);
	cursor->open.scope = (MongoAccessScope) {
		read->user->serverid, read->database, read->read_collection
	};
	cursor->open.read_to_end = read_to_end;
	cursor->userid = GetUserId();
	cursor->tables = list_copy(mongo_error_tables());
	cursor->at_time = read->at_time && mongo_reads_at_time(&cursor->at);
	if (cursor->at_time && (read->read_collection == NULL || bson_has_field(read->command, "pipeline")))
	{
		cursor->names = mongo_collections_read(read->user, read->database, read->command);
		cursor->read.is_far &= cursor->names == NIL;
	}
	mongo_list_add(&mongo_open_cursors, &cursor->open.listed);
	MemoryContextSwitchTo(old_context);
	return cursor;
}

/* Adds the documents returned since the last call to the statistics. */
static void
count_documents(MongoCursor *cursor)
{
	uint64		count = cursor->documents;

	if (count == 0)
		return;
	cursor->documents = 0;
	mongo_activity_count(cursor->lease->owner, MONGO_COUNT_DOCUMENTS_READ, count);
}

/* Tells whether nothing is left to be received. */
static bool
has_fetched_all(const MongoCursor *cursor)
{
	return cursor->requested == 0 && (cursor->lease == NULL || (cursor->sent && cursor->id == 0));
}

/* Returns the next document from MongoDB, NULL at the end. */
static const uint8_t *
fetch_next(MongoCursor *cursor, uint32 *length)
{
	const uint8_t *document = NULL;

	while (document == NULL)
	{
		if (cursor->batch.position != cursor->batch.end)
		{
			document = next_in_batch(cursor, &cursor->batch, length);
			if (cursor->read.split_events)
				document = join_fragments(cursor, document, length);
			continue;
		}
		if (cursor->whole_reply != NULL)
		{
			document = cursor->whole_reply;
			cursor->whole_reply = NULL;
			*length = get_int32(document);
			break;
		}

		/* a server may send any number of empty batches */
		CHECK_FOR_INTERRUPTS();
		count_documents(cursor);

		if (has_fetched_all(cursor))
			return NULL;
		if (cursor->session != NULL)
			fetch_in_session(cursor);
		else
		{
			if (cursor->requested == 0)
				(void) send_request(cursor, MONGO_WAIT_TAKE_OVER);
			receive_batch(cursor);
		}
	}
	cursor->documents++;
	cursor->read.usage->documents++;
	return document;
}

/*
 * mongo_cursor_is_exhausted
 *		Tells whether it is known that there are no more documents.
 */
bool
mongo_cursor_is_exhausted(const MongoCursor *cursor)
{
	return !has_document(cursor) && !cursor->kept_incomplete && has_fetched_all(cursor);
}

/*
 * mongo_cursor_has_others
 *		Tells whether the other commands of its MongoRead are still to be run.
 */
bool
mongo_cursor_has_others(const MongoCursor *cursor)
{
	return cursor->kept == NULL && cursor->read.others != NIL;
}

/*
 * mongo_cursor_close
 *		Releases the lease, and has the server close the cursor if it is still open there.
 *		Idempotent; accepts NULL.
 */
void
mongo_cursor_close(MongoCursor *cursor)
{
	if (cursor == NULL || cursor->lease == NULL)
		return;
	count_documents(cursor);
	mongo_lease_release(cursor->lease);
	cursor->lease = NULL;
	mongo_list_remove(&cursor->open.listed);
	cursor->session = NULL;
	forget_command(cursor);
	cursor->id = 0;
	cursor->requested = cursor->received = 0;
	cursor->lost = false;
	cursor->batch.position = cursor->batch.end = cursor->whole_reply = NULL;
	mongo_reply_free(&cursor->last_reply);
	if (cursor->kept != NULL)
	{
		ExecClearTuple(cursor->kept_slot);
		tuplestore_end(cursor->kept);
	}
	cursor->kept = NULL;
	cursor->nkept = 0;
	cursor->kept_incomplete = false;
	for (size_t i = 0; i < lengthof(cursor->replies); i++)
		mongo_reply_free(&cursor->replies[i]);
}

/* ---------- Requests of a cursor: its command, then getMore --------------- */

/* Raises 08006. */
static void
report_disconnect(MongoCursor *cursor)
{
	mongo_report_disconnect(GetForeignServer(cursor->read.user->serverid)->servername);
}

/* Returns the command, of which *view becomes a view, or else a getMore. */
static MongoCommand
next_request(MongoCursor *cursor, bson_t *view)
{
	bson_t	   *get_more;

	if (!cursor->sent)
	{
		if (!mongo_bson_view(view, cursor->command, cursor->command_length))
			elog(ERROR, "invalid command document");
		return (MongoCommand) {
			.database = cursor->read.database,.document = view,.at = cursor->at,
			.compress = cursor->read.compress
		};
	}
	get_more = mongo_bson_create_in(scratch_context(cursor));
	mongo_append(get_more, "getMore", mongo_int64(cursor->id));
	mongo_append(get_more, "collection", mongo_utf8(cursor->lease->cursor.collection));
	if (cursor->read.batch_size > 0)
		mongo_append(get_more, "batchSize", mongo_int32(cursor->read.batch_size));
	/* a longer wait might take socket_timeout_ms */
	if (cursor->read.is_stream)
		mongo_append(get_more, "maxTimeMS", mongo_int32(Max(1, Min(1000, (int) TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
																											   cursor->wait_until)))));
	mongo_trace_append(cursor->read.comment, get_more);
	return (MongoCommand) {
		.database = cursor->lease->cursor.database,.document = get_more,.compress = cursor->read.compress
	};
}

static void
forget_command(MongoCursor *cursor)
{
	if (cursor->command != NULL)
		pfree(cursor->command);
	cursor->command = NULL;
}

/* Has the server reach the time to read at; returns false if the connection is lost. */
static bool
reach_time(MongoCursor *cursor)
{
	MemoryContext old_context = MemoryContextSwitchTo(scratch_context(cursor));
	uint64		at = mongo_reach_time(cursor->lease->connection, cursor->read.database,
									  first_name(cursor), cursor->at);

	MemoryContextSwitchTo(old_context);
	if (at != 0)
		cursor->at = at;
	return at != 0;
}

/*
 * Sends the next request.  If 'again', or if the connection is lost before a document has been
 * returned, sends the command once more, over a new connection.
 */
static void
send_next(MongoCursor *cursor, bool again)
{
	for (;; again = true)
	{
		MongoCommand command;
		bson_t		view;
		bool		reached;

		if (again)
		{
			begin_again(cursor);
			mongo_lease_renew(cursor->lease, cursor->read.user);
		}
		reached = !cursor->at_time || cursor->sent || reach_time(cursor);
		command = next_request(cursor, &view);
		if (reached &&
			mongo_send_or_raise(cursor->lease->connection, &command,
								reply_ahead(cursor, cursor->requested)))
			break;
		if (again || cursor->command == NULL)
			report_disconnect(cursor);
	}
	cursor->sent = true;
	cursor->requested++;
	mongo_lease_note_sent(cursor->lease);
	if (again)
		forget_command(cursor);
}

/*
 * Takes a connection and sends the next request.
 *
 * Nothing may be in flight.  Returns false if there is no connection and 'policy' allows that.
 */
static bool
send_request(MongoCursor *cursor, MongoWaitPolicy policy)
{
	if (!mongo_lease_take(cursor->lease, cursor->read.user, policy))
		return false;
	send_next(cursor, false);
	return true;
}

/*
 * mongo_cursor_send_behind
 *		Sends the cursor's command ahead of its time: over an idle connection, or behind the
 *		command of 'first' if the reply to that is outstanding.
 *
 * If neither is possible, for large commands, and in MongoDB transactions, does nothing.  Raises
 * what sending raises.
 */
void
mongo_cursor_send_behind(MongoCursor *cursor, const MongoCursor *first)
{
	if (cursor->sent || cursor->session != NULL || cursor->at_time ||
		cursor->command_length > LARGEST_AHEAD || !mongo_lease_share(cursor->lease, first->lease))
		return;
	send_next(cursor, false);
	cursor->lease->state = LEASE_AHEAD;
	cursor->ahead_at = GetCurrentTimestamp();
}

/*-------------------------------------------------------------------------
 * Sharing connections with other cursors, and asynchronous scans below Append.
 *-------------------------------------------------------------------------
 */

/* Tells whether the next request is sent only when its reply is awaited. */
static bool
waits_itself(const MongoCursor *cursor)
{
	return cursor->at_time && (!cursor->sent || cursor->names != NIL);
}

/*
 * mongo_cursor_is_ready
 *		Tells whether mongo_cursor_next() would return without waiting.  It may still wait for the
 *		rest of a reply that has begun to arrive.
 *
 * If the result is false, there are two cases.  Either the next request is in flight, and
 * mongo_cursor_socket() becomes readable when its reply arrives.  Or all connections are in use,
 * and a later call sends the request when one is free.  With the option socket_timeout_ms, the
 * result is always true once the request is sent, since only a wait in mongo_cursor_next() has a
 * limit.
 */
bool
mongo_cursor_is_ready(MongoCursor *cursor)
{
	MongoConnection *connection;

	if (has_document(cursor) || cursor->session != NULL || waits_itself(cursor) ||
		cursor->received > 0 || cursor->lost || has_fetched_all(cursor))
		return true;
	if (cursor->requested == 0 && !send_request(cursor, MONGO_WAIT_LATER))
		return false;
	connection = cursor->lease->connection;
	return connection->transport.socket_timeout_ms > 0 || mongo_has_reply(connection);
}

/*
 * mongo_cursor_socket
 *		Returns the socket on which the reply will arrive, valid until the next call; or
 *		PGINVALID_SOCKET if nothing is in flight or mongo_cursor_next() has to wait.
 */
pgsocket
mongo_cursor_socket(MongoCursor *cursor)
{
	const MongoTransport *transport;

	if (!is_pending(cursor))
		return PGINVALID_SOCKET;
	transport = &cursor->lease->connection->transport;
	return transport->socket_timeout_ms > 0 || transport->data_stream == NULL ?
		PGINVALID_SOCKET : transport->data_stream->socket;
}

/*
 * mongo_cursor_ask_now
 *		Sends the next request at once, unless one is outstanding.  If necessary, first receives
 *		another scan's reply and takes over its connection.
 *
 * Only for a cursor that has returned no document, or is not ready and has no socket.  Does
 * nothing in MongoDB transactions.  Raises what sending raises.
 */
void
mongo_cursor_ask_now(MongoCursor *cursor)
{
	if (cursor->requested == 0 && cursor->session == NULL && !waits_itself(cursor))
		(void) send_request(cursor, MONGO_WAIT_TAKE_OVER);
}

/*
 * Records the server cursor that an unread reply names, so that it can be killed.  Never raises.
 */
static void
note_unread(MongoCursor *cursor, const MongoReply *reply)
{
	RemoteCursor opened;

	if (!mongo_reply_cursor(reply, &opened))
		/* after an error or the last batch no cursor is open any more */
		mongo_lease_note_cursor(cursor->lease, NULL, 0, NULL, NULL);
	else if (cursor->id == 0)
		/* it is the reply to the command itself */
		mongo_lease_note_cursor(cursor->lease, cursor->lease->connection, opened.id,
								opened.database, opened.collection);
}

/* Records that the next reply has been received, or that the others are lost. */
static void
note_saved(MongoCursor *cursor, bool received)
{
	cursor->lost = !received;
	if (received)
		note_unread(cursor, reply_ahead(cursor, cursor->received++));
	if (!is_pending(cursor))
		mongo_lease_put(cursor->lease);
}

/*
 * Receives and saves the replies in flight, since another scan needs the connection
 * (MongoLeaseCallbacks).
 *
 * If the wait is interrupted, this cursor continues it when it needs the reply.  After any other
 * error the connection is broken, and this cursor treats it as lost.
 */
static void
save_reply(void *arg)
{
	MongoCursor *cursor = arg;

	mongo_lease_receive_earlier(cursor->lease, reply_ahead(cursor, cursor->received)->request_id,
								false);
	while (is_pending(cursor))
		note_saved(cursor, mongo_receive_or_raise(cursor->lease->connection,
												  reply_ahead(cursor, cursor->received), true));
}

/*
 * Abandons the batch that was requested ahead (MongoLeaseCallbacks).
 *
 * Waits for it briefly, so that the connection can be used again, but not while a transaction is
 * aborted: on a standby the startup process repeats its signal until the abort is over, and the
 * last signal would end the session.
 */
static void
discard_reply(void *arg)
{
	MongoCursor *cursor = arg;
	MongoConnection *connection = cursor->lease->connection;
	int			wait_ms = IsTransactionState() ? mongo_discard_wait(connection) : 0;

	if (wait_ms > 0)
		mongo_lease_receive_earlier(cursor->lease, reply_ahead(cursor, cursor->received)->request_id,
									true);
	while (is_pending(cursor))
	{
		if (!mongo_receive_within(connection, reply_ahead(cursor, cursor->received), wait_ms))
			break;
		note_saved(cursor, true);
	}
}

static const MongoLeaseCallbacks cursor_callbacks = {
	.save_reply = save_reply,
	.discard_reply = discard_reply
};

/*-------------------------------------------------------------------------
 * Reading cursors to their end before a write that they might see (order.c).
 *-------------------------------------------------------------------------
 */

/* Creates the tuplestore; its file belongs to the statement's resource owner. */
static void
create_kept(MongoCursor *cursor)
{
	MemoryContext old_context = MemoryContextSwitchTo(cursor->context);
	ResourceOwner old_owner = CurrentResourceOwner;
	TupleDesc	description = CreateTemplateTupleDesc(1);

	TupleDescInitEntry(description, 1, "document", BYTEAOID, -1, 0);
	TupleDescFinalize(description);
	cursor->kept_slot = MakeSingleTupleTableSlot(description, &TTSOpsMinimalTuple);
	CurrentResourceOwner = cursor->open.listed.owner;
	cursor->kept = tuplestore_begin_heap(false, false, work_mem);
	CurrentResourceOwner = old_owner;
	MemoryContextSwitchTo(old_context);
}

/*
 * Moves the current reply to last_reply, since the last document returned must stay valid until
 * the next call of mongo_cursor_next().
 */
static void
set_aside_batch(MongoCursor *cursor)
{
	MongoReply *reply = &cursor->replies[cursor->current];

	/* an event that is whole may be the last document */
	if (!cursor->lacks_fragments)
		cursor->event = NULL;
	if (cursor->last_reply.message.data != NULL)
		return;
	cursor->last_reply = *reply;
	*reply = (MongoReply) {.context = cursor->context,.usage = cursor->read.usage};
}

/* Returns the next document of the command or of the others (MongoRead), or NULL. */
static const uint8_t *
fetch_any(MongoCursor *cursor, uint32 *length)
{
	const uint8_t *document;

	while ((document = fetch_next(cursor, length)) == NULL && cursor->read.others != NIL)
	{
		begin_again(cursor);
		mongo_log_command(cursor->read.database, linitial(cursor->read.others), cursor->at);
		copy_command(cursor, linitial(cursor->read.others));
		cursor->read.others = list_delete_first(cursor->read.others);
	}
	return document;
}

/*
 * Stores the cursor's remaining documents before a write (MongoOpenCursor), as the user who opened
 * it, whose privileges decide what an error may quote.
 */
static void
read_to_end(MongoOpenCursor *open, bool in_transaction)
{
	MongoCursor *cursor = (MongoCursor *) ((char *) open - offsetof(MongoCursor, open));
	const uint8_t *document;
	uint32		length;
	MongoErrorSource source;
	Oid			userid;
	int			security;

	/* other commands might be run later, in the transaction */
	if (((cursor->session != NULL) != in_transaction && cursor->read.others == NIL) ||
		cursor->kept_incomplete || (has_fetched_all(cursor) && cursor->read.others == NIL))
		return;
	if (cursor->kept == NULL)
		create_kept(cursor);
	set_aside_batch(cursor);
	GetUserIdAndSecContext(&userid, &security);
	SetUserIdAndSecContext(cursor->userid, security);
	mongo_push_error_source(&source, cursor->tables);
	PG_TRY();
	{
		while ((document = fetch_any(cursor, &length)) != NULL)
		{
			text	   *bytes = cstring_to_text_with_len((const char *) document, length);
			Datum		datum = PointerGetDatum(bytes);
			bool		isnull = false;

			tuplestore_putvalues(cursor->kept, cursor->kept_slot->tts_tupleDescriptor, &datum,
								 &isnull);
			cursor->nkept++;
			pfree(bytes);
		}
	}
	PG_CATCH();
	{
		cursor->kept_incomplete |= geterrcode() != ERRCODE_QUERY_CANCELED;
		/* a lost connection may be caught without a subtransaction */
		SetUserIdAndSecContext(userid, security);
		PG_RE_THROW();
	}
	PG_END_TRY();
	mongo_pop_error_source(&source);
	SetUserIdAndSecContext(userid, security);
}

/* Returns the next stored document, or NULL. */
static const uint8_t *
next_kept(MongoCursor *cursor, uint32 *length)
{
	MemoryContext old_context;
	bool		isnull;
	bytea	   *bytes;

	mongo_reply_free(&cursor->last_reply);
	if (cursor->kept_incomplete)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("could not keep the documents of collection \"%s.%s\"",
						mongo_from_utf8(cursor->read.database), cursor->read.collection),
				 errdetail("A write in the same session required reading them first, which failed.")));
	if (cursor->nkept == 0)
		return NULL;
	/* a tuple from the file is allocated in the current context */
	old_context = MemoryContextSwitchTo(cursor->context);
	if (!tuplestore_gettupleslot(cursor->kept, true, false, cursor->kept_slot))
		elog(ERROR, "too few documents were kept");
	MemoryContextSwitchTo(old_context);
	cursor->nkept--;
	bytes = (bytea *) DatumGetPointer(slot_getattr(cursor->kept_slot, 1, &isnull));
	*length = VARSIZE_ANY_EXHDR(bytes);
	return (const uint8_t *) VARDATA_ANY(bytes);
}

/*
 * mongo_cursor_next
 *		Returns the next document's bytes, or NULL if there are no more.
 *
 * The bytes stay valid until the next call.  *length is the document's own length, which is
 * within the buffer.  Nothing else about the bytes has been validated.  Raises 08006, 08P01,
 * 57014, or the server's error.
 *
 * A change stream is read outside of MongoDB transactions.  It ends with all events up to the
 * time of MongoDB's first reply, or up to one that invalidates it.  Its last document is not
 * MongoDB's: {_id: token, operationType: "position", clusterTime: Date}, the position behind the
 * events.
 */
const uint8_t *
mongo_cursor_next(MongoCursor *cursor, uint32 *length)
{
	const uint8_t *document = NULL;

	if (cursor->kept != NULL)
		document = next_kept(cursor, length);
	if (document != NULL)
		return document;
	return cursor->kept != NULL ? fetch_any(cursor, length) : fetch_next(cursor, length);
}
