/*-------------------------------------------------------------------------
 *
 * cursor.c
 *		Cursors.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

static void mongo_cursor_end_wait(MongoCursor *cursor, const MongoTraffic *traffic);
static void mongo_cursor_forget_command(MongoCursor *cursor);
static bool mongo_cursor_is_at_end(const MongoCursor *cursor);
pg_noreturn static void mongo_cursor_report_disconnect(MongoCursor *cursor);
static void mongo_cursor_send_get_more(MongoCursor *cursor);
static bool mongo_cursor_send_request(MongoCursor *cursor, MongoTurn turn);
static void mongo_session_cursors_remove(MongoSessionCursor *cursor);

/*-------------------------------------------------------------------------
 * "Open this cursor, next document".
 *
 * Inside a MongoDB transaction each batch is one command through libmongoc's
 * session, which puts it into the transaction; nothing is in flight in
 * between, so several cursors take turns on the transaction's connection.
 * Otherwise a cursor holds a connection from a request to its answer, and others
 * who need one may have the answer taken off it before this one asks (remote_internal.h).
 *
 * From the first getMore on, the next batch is asked for before the current
 * one is handed out, so that the server works while the rows are decoded: at
 * most one request is in flight or one answer taken, and at most two batches are
 * in memory.  Not earlier, since many a scan ends within its first batch, or by a
 * LIMIT soon after.
 *
 * Replies are not trusted: each length is checked against what contains it
 * before it is used.
 *-------------------------------------------------------------------------
 */

/*
 * Bytes that a batch grows to by itself.  Narrow documents were read in 0.20 s by batches
 * of 1 MB, 0.18 s of 2 MB, 0.16 s of 4 MB and 8 MB and 0.18 s of 16 MB with a network of
 * 0.5 ms; without one, in 0.14 s up to 4 MB and 0.15 s, 0.16 s then.
 */
#define LARGEST_GROWN_BATCH		(4 * 1024 * 1024)

/*
 * Milliseconds from one batch to the next after which a round trip counts for nothing.  A
 * larger batch would keep who reads slowly from asking for more before MongoDB gives up
 * the cursor, and MongoDB, where it finds little, from answering within socket_timeout_ms.
 */
#define SLOW_BATCH_MS			1000

static uint32
get_length(const uint8 *bytes)
{
	uint32		value;

	memcpy(&value, bytes, 4);
	return BSON_UINT32_FROM_LE(value);
}

pg_noreturn static void report_invalid_reply(MongoCursor *cursor, const char *detail);

static void
report_invalid_reply(MongoCursor *cursor, const char *detail)
{
	if (cursor->session == NULL && mongo_lease_holds_client(cursor->lease))
		mongo_report_violation(mongo_lease_connection(cursor->lease),
							   detail);
	ereport(ERROR,
			(errcode(ERRCODE_PROTOCOL_VIOLATION),
			 errmsg("server \"%s\" sent an invalid reply",
					GetForeignServer(cursor->user->serverid)->servername),
			 errdetail("%s", detail)));
}

static const char *
read_failure_message(MongoCursor *cursor)
{
	return psprintf("could not read collection \"%s.%s\"", cursor->database,
					cursor->collection);
}

/* Split "database.collection"; a collection's name may have dots itself. */
static void
note_namespace(MongoCursor *cursor, const char *ns, size_t length)
{
	const char *dot = memchr(ns, '.', length);

	if (cursor->ns_collection != NULL)
		return;
	if (dot == NULL)
		report_invalid_reply(cursor, "The cursor's namespace has no dot.");
	cursor->ns_database = MemoryContextAlloc(cursor->context, dot - ns + 1);
	memcpy(cursor->ns_database, ns, dot - ns);
	cursor->ns_database[dot - ns] = '\0';
	length -= dot + 1 - ns;
	cursor->ns_collection = MemoryContextAlloc(cursor->context, length + 1);
	memcpy(cursor->ns_collection, dot + 1, length);
	cursor->ns_collection[length] = '\0';
}

/*
 * note_server_cursor
 *		The server has opened a cursor or, with id 0, closed it.
 */
static void
note_server_cursor(MongoCursor *cursor, int64 id)
{
	if (cursor->session == NULL)
	{
		if (!mongo_lease_note_cursor(cursor->lease, id, cursor->ns_database,
									 cursor->ns_collection))
			mongo_memory_report(strlen(cursor->ns_collection));
	}
	else if (id != 0 && cursor->open_in_session == NULL)
		mongo_session_cursor_opened(cursor->session, cursor->ns_database,
									cursor->ns_collection, id,
									&cursor->open_in_session);
	else if (id == 0 && cursor->open_in_session != NULL)
		mongo_session_cursors_remove(cursor->open_in_session);
}

/* grow_batches: the server has given the first batch or the next, and has more. */
static void
grow_batches(MongoCursor *cursor, bool is_next)
{
	TimestampTz now;

	if (!cursor->batches_grow)
		return;
	now = GetCurrentTimestamp();
	if (is_next && cursor->batch_size <= INT_MAX / 2 &&
		cursor->end - cursor->position <= LARGEST_GROWN_BATCH / 2 &&
		!TimestampDifferenceExceeds(cursor->batch_at, now, SLOW_BATCH_MS))
		cursor->batch_size *= 2;
	cursor->batch_at = now;
}

/*
 * take_cursor_document
 *		Read {firstBatch | nextBatch, id, ns}.
 */
static void
take_cursor_document(MongoCursor *cursor, const uint8 *data, uint32 length)
{
	bson_iter_t iter;
	bool		has_batch = false;
	bool		is_next = false;
	bool		has_id = false;
	int64		id = 0;

	if (!bson_iter_init_from_data(&iter, data, length))
		report_invalid_reply(cursor, "The cursor is not a document.");

	while (bson_iter_next(&iter))
	{
		const char *key = bson_iter_key(&iter);

		if ((strcmp(key, "firstBatch") == 0 || strcmp(key, "nextBatch") == 0) &&
			BSON_ITER_HOLDS_ARRAY(&iter))
		{
			uint32_t	batch_length;
			const uint8_t *batch;

			bson_iter_array(&iter, &batch_length, &batch);
			if (batch == NULL || batch_length < 5)
				report_invalid_reply(cursor, "The batch is too short.");
			cursor->position = batch + 4;
			cursor->end = batch + batch_length - 1; /* the array's NUL */
			has_batch = true;
			is_next = key[0] == 'n';
		}
		else if (strcmp(key, "id") == 0 && BSON_ITER_HOLDS_INT(&iter))
		{
			id = bson_iter_as_int64(&iter);
			has_id = true;
		}
		else if (strcmp(key, "ns") == 0 && BSON_ITER_HOLDS_UTF8(&iter))
		{
			uint32_t	ns_length;
			const char *ns = bson_iter_utf8(&iter, &ns_length);

			note_namespace(cursor, ns, ns_length);
		}
	}
	if (!has_batch || !has_id)
		report_invalid_reply(cursor, "The reply has no cursor with id and batch.");
	if (id != 0 && cursor->ns_collection == NULL)
		report_invalid_reply(cursor, "The cursor has no namespace.");

	if (id != cursor->id)
		note_server_cursor(cursor, id);
	cursor->id = id;
	if (id != 0)
		grow_batches(cursor, is_next);
}

/* take_whole_reply: the reply itself is what mongo_cursor_next() gives. */
static void
take_whole_reply(MongoCursor *cursor, const MongoReply *reply)
{
	bson_iter_t iter;

	if (!bson_iter_init_from_data(&iter, reply->document, reply->document_length) ||
		!bson_iter_find(&iter, cursor->reply_field))
		report_invalid_reply(cursor, psprintf("The reply has no field \"%s\".",
											  cursor->reply_field));
	cursor->reply_document = reply->document;
	cursor->reply_length = reply->document_length;
	cursor->has_document = true;
}

/*
 * is_lost
 *		Has the server lost or closed the cursor that a getMore asked for?
 */
static bool
is_lost(int code)
{
	static const int codes[] = {
		43,						/* CursorNotFound */
		136,					/* CappedPositionLost */
		175,					/* QueryPlanKilled */
		237						/* CursorKilled */
	};

	for (size_t i = 0; i < lengthof(codes); i++)
	{
		if (codes[i] == code)
			return true;
	}
	return false;
}

/*
 * take_cursor_reply
 *		Find cursor and batch in the reply that has come.
 *
 * False when the server refused with a code after which the scan may begin
 * anew, and the caller may do so.
 */
static bool
take_cursor_reply(MongoCursor *cursor, bool may_retry)
{
	const MongoReply *reply = &cursor->replies[cursor->current];
	const uint8 *cursor_document = NULL;
	uint32_t	cursor_length = 0;
	bool		has_ok = false;
	bool		ok = false;
	int			code = 0;
	bson_iter_t iter;
	bson_t		view;

	if (!bson_iter_init_from_data(&iter, reply->document,
								  reply->document_length) ||
		!bson_view(&view, reply->document, reply->document_length))
		report_invalid_reply(cursor, "The reply is not a document.");
	while (bson_iter_next(&iter))
	{
		const char *key = bson_iter_key(&iter);

		if (strcmp(key, "cursor") == 0 && BSON_ITER_HOLDS_DOCUMENT(&iter))
			bson_iter_document(&iter, &cursor_length, &cursor_document);
		else if (strcmp(key, "ok") == 0)
		{
			has_ok = true;
			ok = bson_iter_as_bool(&iter);
		}
		else if (strcmp(key, "code") == 0 && BSON_ITER_HOLDS_NUMBER(&iter))
			code = (int) bson_iter_as_int64(&iter);
	}
	if (iter.err_off != 0 || !has_ok)
		report_invalid_reply(cursor, "The reply is not that of a command.");

	if (!ok)
	{
		/* the server has closed the cursor of a getMore that failed */
		(void) mongo_lease_note_cursor(cursor->lease, 0, NULL, NULL);
		if (may_retry && (mongo_error_is_retryable(code) || is_lost(code)))
			return false;
		mongo_report_command_error(read_failure_message(cursor), &view);
	}
	if (cursor->reply_field != NULL)
		take_whole_reply(cursor, reply);
	else if (cursor_document == NULL)
		report_invalid_reply(cursor, "The reply has no cursor.");
	else
		take_cursor_document(cursor, cursor_document, cursor_length);
	return true;
}

/*
 * receive_answer
 *		Have the reply in the next one's room; false when its connection is lost.
 */
static bool
receive_answer(MongoCursor *cursor)
{
	MongoConnection *connection;
	bool		received;

	if (cursor->taken)
	{
		cursor->taken = false;
		return !cursor->lost;
	}
	connection = mongo_lease_connection(cursor->lease);
	mongo_cursor_begin_wait(cursor, &connection->transport.traffic);
	received = mongo_receive_or_raise(connection, &cursor->replies[1 - cursor->current]);
	mongo_cursor_end_wait(cursor, &connection->transport.traffic);
	cursor->pending = false;
	mongo_lease_note_answered(cursor->lease);
	return received;
}

/*
 * ask_ahead
 *		A batch has come.  Ask for the next one, if there is reason to, and let the
 *		connection go if not.
 */
static void
ask_ahead(MongoCursor *cursor, bool was_opened)
{
	bool		holds = mongo_lease_holds_client(cursor->lease);

	if (was_opened && cursor->id != 0)
	{
		if (holds)
			mongo_cursor_send_get_more(cursor);
		else
			(void) mongo_cursor_send_request(cursor, MONGO_TURN_IF_FREE);
	}
	else if (holds)
	{
		mongo_lease_put(cursor->lease);
		mongo_lease_serve_others(cursor->lease);
	}
}

/*
 * receive_batch
 *		Wait for the pending request's reply and make its batch the current one.
 *
 * Until a row has been handed out, what has been lost on the way there (the
 * connection, or the cursor) may be begun anew, once.
 */
static void
receive_batch(MongoCursor *cursor)
{
	bool		was_opened;

	for (;;)
	{
		bool		may_retry = cursor->command != NULL;

		if (receive_answer(cursor))
		{
			cursor->current = 1 - cursor->current;
			if (take_cursor_reply(cursor, may_retry))
				break;
		}
		else if (!may_retry)
			mongo_cursor_report_disconnect(cursor);
		mongo_cursor_begin_anew(cursor);
	}

	was_opened = cursor->opened;
	cursor->opened = true;
	if (cursor->position != cursor->end || cursor->id == 0)
		mongo_cursor_forget_command(cursor);
	ask_ahead(cursor, was_opened);
}

/*
 * fetch_in_session
 *		The first batch, or the next, inside a transaction.
 */
static void
fetch_in_session(MongoCursor *cursor)
{
	MemoryContext old_context;
	bson_t	   *get_more;
	bson_t		view;
	const bson_t *reply;
	bson_iter_t iter;
	const uint8 *document;
	uint32_t	length;
	const MongoTraffic *traffic = mongo_session_traffic(cursor->session);

	MemoryContextReset(cursor->batch_context);
	mongo_cursor_begin_wait(cursor, traffic);
	cursor->usage->commands++;
	old_context = MemoryContextSwitchTo(cursor->batch_context);
	if (cursor->command != NULL)
	{
		if (!bson_view(&view, cursor->command, cursor->command_length))
			elog(ERROR, "invalid command document");
		reply = mongo_session_read_command(cursor->session, cursor->batch_context,
										   cursor->database, &view,
										   read_failure_message(cursor));
		mongo_cursor_forget_command(cursor);
	}
	else
	{
		get_more = bson_create_in(cursor->batch_context);
		BSON_APPEND_INT64(get_more, "getMore", cursor->id);
		BSON_APPEND_UTF8(get_more, "collection", cursor->ns_collection);
		if (cursor->batch_size > 0)
			BSON_APPEND_INT32(get_more, "batchSize", cursor->batch_size);
		mongo_trace_append(cursor->comment, get_more);
		reply = mongo_session_read_command(cursor->session, cursor->batch_context,
										   cursor->ns_database, get_more,
										   read_failure_message(cursor));
	}
	mongo_cursor_end_wait(cursor, traffic);
	if (!bson_iter_init_find(&iter, reply, "cursor") ||
		!BSON_ITER_HOLDS_DOCUMENT(&iter))
		report_invalid_reply(cursor, "The reply has no cursor.");
	bson_iter_document(&iter, &length, &document);
	take_cursor_document(cursor, document, length);
	MemoryContextSwitchTo(old_context);
}

/*
 * abandon
 *		Also the memory context callback, for a scan that fails.
 */
static void
abandon(void *arg)
{
	MongoCursor *cursor = arg;

	mongo_order_note_closed(cursor);
	if (cursor->open_in_session != NULL)
		mongo_session_cursor_abandoned(cursor->session, cursor->open_in_session);
}

/* keep_command: a copy, in the cursor's context. */
static void
keep_command(MongoCursor *cursor, const bson_t *command)
{
	cursor->command_length = command->len;
	cursor->command = MemoryContextAlloc(cursor->context, command->len);
	memcpy(cursor->command, bson_get_data(command), command->len);
}

MongoCursor *
mongo_cursor_open(MemoryContext context, UserMapping *user,
				  const char *database, const char *collection,
				  const bson_t *command, int batch_size)
{
	MongoCursor *cursor = MemoryContextAllocZero(context, sizeof(MongoCursor));

	cursor->context = context;
	cursor->user = user;
	cursor->database = MemoryContextStrdup(context, database);
	cursor->collection = MemoryContextStrdup(context, collection);
	cursor->batch_size = batch_size;
	cursor->usage = &cursor->own_usage;
	cursor->replies[0].context = context;
	cursor->replies[1].context = context;

	keep_command(cursor, command);
	cursor->session = mongo_session_for_read(user);
	if (cursor->session == NULL)
		cursor->lease = mongo_lease_create(context, user, &mongo_cursor_turns, cursor);
	else
		cursor->batch_context = AllocSetContextCreate(context, "mongo_fdw batch",
													  ALLOCSET_SMALL_SIZES);
	cursor->callback.func = abandon;
	cursor->callback.arg = cursor;
	MemoryContextRegisterResetCallback(context, &cursor->callback);
	cursor->extent = (MongoExtent) {user->serverid, cursor->database, NULL};
	mongo_order_note_open(cursor);
	return cursor;
}

void
mongo_cursor_grow_batches(MongoCursor *cursor)
{
	cursor->batches_grow = true;
}

/* add_comment: to the command, with what is known now. */
static void
add_comment(MongoCursor *cursor, const char *comment)
{
	bson_t	   *command = bson_create_in(cursor->context);
	uint8	   *bytes = cursor->command;
	bson_t		view;

	if (!bson_view(&view, bytes, cursor->command_length))
		elog(ERROR, "invalid command document");
	cursor->comment = comment;
	bson_concat(command, &view);
	mongo_trace_append(comment, command);
	keep_command(cursor, command);
	pfree(bytes);
}

void
mongo_cursor_send_as(MongoCursor *cursor, mongoc_read_mode_t read_mode, const char *comment)
{
	Assert(!cursor->sent && cursor->command != NULL);
	if (cursor->lease != NULL)
		mongo_lease_prefer(cursor->lease, read_mode);
	if (comment != NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(cursor->context);

		add_comment(cursor, mongo_trace_prepare(comment));
		MemoryContextSwitchTo(old_context);
	}
}

void
mongo_cursor_count_in(MongoCursor *cursor, MongoUsage *usage)
{
	cursor->usage = usage;
}

/* count_documents: those handed out since the last time. */
static void
count_documents(MongoCursor *cursor)
{
	uint64		count = cursor->documents;

	if (count == 0)
		return;
	cursor->documents = 0;
	if (cursor->lease != NULL)
		mongo_lease_count(cursor->lease, MONGO_COUNT_DOCUMENTS_READ, count);
	else
		mongo_activity_count_current(MONGO_COUNT_DOCUMENTS_READ, count);
}

void
mongo_cursor_expect_document(MongoCursor *cursor, const char *field)
{
	Assert(cursor->session == NULL && !cursor->sent);
	cursor->reply_field = field;
}

/*
 * next_in_batch
 *		The document at cursor->position: type byte, key, document.
 */
static const uint8 *
next_in_batch(MongoCursor *cursor, uint32 *length)
{
	const uint8 *p = cursor->position;
	const uint8 *end = cursor->end;
	const uint8 *key_end;
	uint32		document_length;

	if (*p++ != BSON_TYPE_DOCUMENT)
		report_invalid_reply(cursor, "An element of the batch is not a document.");
	key_end = memchr(p, '\0', end - p);
	if (key_end == NULL || end - key_end - 1 < 5)
		report_invalid_reply(cursor, "An element of the batch is too short.");
	p = key_end + 1;
	document_length = get_length(p);
	if (document_length < 5 || document_length > end - p)
		report_invalid_reply(cursor, "A document does not end within its batch.");
	if (p[document_length - 1] != '\0')
		report_invalid_reply(cursor, "A document is not terminated.");

	cursor->position = p + document_length;
	cursor->documents++;
	cursor->usage->documents++;
	*length = document_length;
	return p;
}

/* is_open: does it hold a client, or belong to a session? */
static bool
is_open(const MongoCursor *cursor)
{
	return cursor->lease != NULL || cursor->session != NULL;
}

const uint8_t *
mongo_cursor_fetch(MongoCursor *cursor, uint32 *length)
{
	while (cursor->position == cursor->end)
	{
		if (cursor->has_document)
		{
			cursor->has_document = false;
			cursor->documents++;
			cursor->usage->documents++;
			*length = cursor->reply_length;
			return cursor->reply_document;
		}

		/* a server may send any number of empty batches */
		CHECK_FOR_INTERRUPTS();
		count_documents(cursor);

		if (cursor->session != NULL)
		{
			if (cursor->command == NULL && cursor->id == 0)
				return NULL;
			fetch_in_session(cursor);
			continue;
		}
		if (!cursor->pending && !cursor->taken)
		{
			if (mongo_cursor_is_at_end(cursor))
				return NULL;
			(void) mongo_cursor_send_request(cursor, MONGO_TURN_NOW);
		}
		receive_batch(cursor);
	}
	return next_in_batch(cursor, length);
}

bool
mongo_cursor_has_all(const MongoCursor *cursor)
{
	if (cursor->session != NULL)
		return cursor->command == NULL && cursor->id == 0;
	return !cursor->pending && !cursor->taken && mongo_cursor_is_at_end(cursor);
}

bool
mongo_cursor_is_exhausted(const MongoCursor *cursor)
{
	return cursor->position == cursor->end && !cursor->has_document && cursor->nkept == 0 &&
		mongo_cursor_has_all(cursor);
}

void
mongo_cursor_close(MongoCursor *cursor)
{
	if (cursor == NULL || !is_open(cursor))
		return;
	count_documents(cursor);
	if (cursor->lease != NULL)
		mongo_lease_release(cursor->lease);
	cursor->lease = NULL;
	abandon(cursor);
	cursor->session = NULL;
	mongo_cursor_forget_command(cursor);
	cursor->id = 0;
	cursor->pending = cursor->taken = false;
	cursor->position = cursor->end = cursor->reply_document = NULL;
	cursor->has_document = false;
	mongo_cursor_forget_kept(cursor);
	for (size_t i = 0; i < lengthof(cursor->replies); i++)
		mongo_reply_free(&cursor->replies[i]);
}

/* -------- What cursors send: their command, and requests for more --------- */

/*
 * mongo_cursor_report_disconnect
 *		Raise 08006.
 */
static void
mongo_cursor_report_disconnect(MongoCursor *cursor)
{
	mongo_report_disconnect(GetForeignServer(cursor->user->serverid)->servername);
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
	MongoCommand message = {.database = database,.document = command};
	const uint64 *bytes = &connection->transport.traffic.counters[MONGO_COUNT_BYTES_SENT];
	uint64		before = *bytes;

	if (!mongo_send_or_raise(connection, &message, &cursor->replies[1 - cursor->current]))
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

static void
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

static void
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

/*
 * mongo_cursor_send_get_more
 *		Likewise the next batch, on the connection that the lease holds.
 */
static void
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

/*
 * mongo_cursor_send_request
 *		Ask for what comes next: the command's answer, or the next batch.
 *
 * Nothing may be in flight.  False, only where 'turn' allows it, when there is no
 * connection to do so.
 */
static bool
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

/*
 * mongo_cursor_is_at_end
 *		With nothing in flight, is there nothing to ask for?
 */
static bool
mongo_cursor_is_at_end(const MongoCursor *cursor)
{
	return cursor->lease == NULL || (cursor->sent && cursor->id == 0);
}

/*-------------------------------------------------------------------------
 * Cursors that take turns on connections, with each other and under Append.
 *-------------------------------------------------------------------------
 */

/* How long the end of a cursor waits for an answer that nobody wants. */
#define DISCARD_WAIT_MS		20

/* MongoDB's limit is 255 bytes. */
#define LONGEST_NAMESPACE	512

bool
mongo_cursor_is_ready(MongoCursor *cursor)
{
	MongoConnection *connection;

	if (cursor->position != cursor->end || cursor->has_document || cursor->nkept > 0 ||
		cursor->session != NULL || cursor->taken ||
		(!cursor->pending && mongo_cursor_is_at_end(cursor)))
		return true;
	if (!cursor->pending && !mongo_cursor_send_request(cursor, MONGO_TURN_LATER))
		return false;
	connection = mongo_lease_connection(cursor->lease);
	return connection->transport.socket_timeout_ms > 0 || mongo_has_reply(connection);
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
	bool		received;
	bool		noted = true;

	mongo_cursor_begin_wait(cursor, &connection->transport.traffic);
	received = mongo_receive_or_raise(connection, reply);
	mongo_cursor_end_wait(cursor, &connection->transport.traffic);

	cursor->pending = false;
	cursor->taken = true;
	cursor->lost = !received;
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
	MongoReply *reply = &cursor->replies[1 - cursor->current];

	if (mongo_receive_within(mongo_lease_connection(cursor->lease), reply, DISCARD_WAIT_MS))
		(void) note_unread(cursor, reply->document, reply->document_length);
}

const MongoTurns mongo_cursor_turns = {
	.take_answer = take_answer,
	.serve = serve,
	.discard_answer = discard_answer
};

/* ----- The cursors that a MongoDB transaction has open on the server ------ */

/*
 * So many are killed at a time: a scan that ends early costs a hundredth of a
 * command, and MongoDB holds at most so many in vain.
 */
#define MOST_ABANDONED		100

struct MongoSessionCursor
{
	dlist_node	node;			/* in one of the lists */
	MongoSessionCursor **handle;	/* the reader's, or NULL: abandoned */
	int64		id;
	char	   *database;
	char	   *collection;
};

void
mongo_session_cursors_init(MongoSessionCursors *cursors, MemoryContext context)
{
	cursors->context = context;
	dlist_init(&cursors->read);
	dlist_init(&cursors->abandoned);
	cursors->nabandoned = 0;
	cursors->due = MOST_ABANDONED;
}

void
mongo_session_cursors_add(MongoSessionCursors *cursors, const char *database,
						  const char *collection, int64 id,
						  MongoSessionCursor **handle)
{
	MongoSessionCursor *cursor = MemoryContextAlloc(cursors->context,
													sizeof(MongoSessionCursor));

	cursor->id = id;
	cursor->database = MemoryContextStrdup(cursors->context, database);
	cursor->collection = MemoryContextStrdup(cursors->context, collection);
	cursor->handle = handle;
	*handle = cursor;
	dlist_push_tail(&cursors->read, &cursor->node);
}

/*
 * mongo_session_cursors_remove
 *		The server has closed it.
 */
static void
mongo_session_cursors_remove(MongoSessionCursor *cursor)
{
	if (cursor->handle != NULL)
		*cursor->handle = NULL;
	dlist_delete(&cursor->node);
	pfree(cursor->database);
	pfree(cursor->collection);
	pfree(cursor);
}

void
mongo_session_cursors_abandon(MongoSessionCursors *cursors,
							  MongoSessionCursor *cursor)
{
	*cursor->handle = NULL;
	cursor->handle = NULL;
	dlist_delete(&cursor->node);
	dlist_push_tail(&cursors->abandoned, &cursor->node);
	cursors->nabandoned++;
}

bool
mongo_session_cursors_are_due(const MongoSessionCursors *cursors)
{
	return cursors->nabandoned >= cursors->due;
}

static bool
same_collection(const MongoSessionCursor *one, const MongoSessionCursor *other)
{
	return strcmp(one->database, other->database) == 0 &&
		strcmp(one->collection, other->collection) == 0;
}

/* killCursors for all in the list that are of the first one's collection. */
static void
build_kill_command(const dlist_head *list, const MongoSessionCursor *first,
				   bson_t *command)
{
	bson_t		list_of_ids;
	BsonArray	ids = {.bson = &list_of_ids};
	dlist_iter	iter;

	BSON_APPEND_UTF8(command, "killCursors", first->collection);
	BSON_APPEND_ARRAY_BEGIN(command, "cursors", &list_of_ids);
	dlist_foreach(iter, (dlist_head *) list)
	{
		MongoSessionCursor *cursor = dlist_container(MongoSessionCursor, node, iter.cur);

		if (same_collection(cursor, first))
			bson_array_append(&ids, bson_int64(cursor->id));
	}
	bson_append_array_end(command, &list_of_ids);
}

/* kill_listed: false when the server cannot be told. */
static bool
kill_listed(dlist_head *list, MongoKillFunction run, void *argument)
{
	while (!dlist_is_empty(list))
	{
		MongoSessionCursor *first = dlist_head_element(MongoSessionCursor, node, list);
		bson_t		command = BSON_INITIALIZER;
		dlist_mutable_iter iter;
		bool		succeeded;

		build_kill_command(list, first, &command);
		succeeded = run(argument, first->database, &command);
		bson_destroy(&command);
		if (!succeeded)
			return false;

		dlist_foreach_modify(iter, list)
		{
			MongoSessionCursor *cursor = dlist_container(MongoSessionCursor, node, iter.cur);

			if (cursor != first && same_collection(cursor, first))
				mongo_session_cursors_remove(cursor);
		}
		mongo_session_cursors_remove(first);
	}
	return true;
}

void
mongo_session_cursors_kill(MongoSessionCursors *cursors, bool all, MongoKillFunction run,
						   void *argument)
{
	if (kill_listed(&cursors->abandoned, run, argument))
	{
		cursors->nabandoned = 0;
		if (all)
			(void) kill_listed(&cursors->read, run, argument);
	}

	/* what cannot be killed now is not asked for again with each scan */
	cursors->due = cursors->nabandoned + MOST_ABANDONED;
}
