/*-------------------------------------------------------------------------
 *
 * write_batch.c
 *		Writes batches of operations to one collection.
 *
 * A batch is sent as one command with a document sequence, or as several commands if it is too
 * large for one message.
 *
 * Outside of a MongoDB transaction, one batch of a session may be in flight while its statement
 * goes on (the last part of this file).  Any other read or write in the session settles it first,
 * so that commands reach MongoDB in SQL's order.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "convert.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

/* maxBsonObjectSize of all MongoDB servers since 1.8. */
#define LARGEST_DOCUMENT	(16 * 1024 * 1024)

/* An operation may exceed LARGEST_DOCUMENT by so much. */
#define OPERATION_ALLOWANCE (16 * 1024)

#define INITIAL_CAPACITY	8192

#define DUPLICATE_KEY		11000	/* MongoDB's code for it */

/* Space in a message for names, comment, session and write concern. */
#define MESSAGE_HEAD		16384

/* How long to wait for the reply of an abandoned batch before MongoDB is told to end it. */
#define ABANDONED_MS		300

/* The commands of each kind of write, and the fields for their operations. */
static const struct
{
	const char *command;
	const char *field;
	bool		many;			/* an operation may write several documents */
	bool		upserts;
}			kinds[] =
{
	[MONGO_INSERT] = {"insert", "documents", false, false},
	[MONGO_INSERT_UNLESS_THERE] = {"update", "updates", false, true},
	[MONGO_UPSERT] = {"update", "updates", false, true},
	[MONGO_UPDATE_ONE] = {"update", "updates", false, false},
	[MONGO_UPDATE_MANY] = {"update", "updates", true, false},
	[MONGO_DELETE_ONE] = {"delete", "deletes", false, false},
	[MONGO_DELETE_MANY] = {"delete", "deletes", true, false},
};

/* ------------------------------- operations -------------------------------- */

/* Appends a document to the batch; raises 54000 above 'limit'. */
static void
append_document(MongoWriteBatch *batch, MemoryContext context, const bson_t *document,
				uint32 limit)
{
	Size		needed = batch->length + document->len;

	if (document->len > limit)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("document is too large for MongoDB"),
				 errdetail("It has %u bytes; the limit is %d.", document->len,
						   LARGEST_DOCUMENT)));

	if (needed > batch->capacity)
	{
		Size		capacity = Max(batch->capacity, INITIAL_CAPACITY);

		while (capacity < needed)
			capacity *= 2;
		batch->data = batch->data == NULL ?
			MemoryContextAllocHuge(context, capacity) :
			repalloc_huge(batch->data, capacity);
		batch->capacity = capacity;
	}
	memcpy(batch->data + batch->length, bson_get_data(document), document->len);
	batch->length = needed;
}

/*
 * mongo_write_batch_add
 *		Appends a document to the batch, but does not change batch->count.
 *
 * batch->data is allocated in 'context'.  Raises 54000 above MongoDB's limit of 16 MB.
 */
void
mongo_write_batch_add(MongoWriteBatch *batch, MemoryContext context,
					  const bson_t *document)
{
	append_document(batch, context, document, LARGEST_DOCUMENT);
}

/* Views the batch's document at *position, and moves on; returns false at the end. */
static bool
next_of_batch(const MongoWriteBatch *batch, Size *position, bson_t *view)
{
	uint32		length;

	if (batch->length - *position < 5)
		return false;
	memcpy(&length, batch->data + *position, sizeof(length));
	length = BSON_UINT32_FROM_LE(length);
	if (length > batch->length - *position ||
		!mongo_bson_view(view, (const uint8_t *) batch->data + *position, length))
		return false;
	*position += length;
	return true;
}

/* Appends {q, u, ...}, or {q, limit, ...} without an update. */
static void
append_operation(bson_t *operation, MongoWriteKind kind, const bson_t *filter, const bson_t *update,
				 bool simple_collation)
{
	mongo_append(operation, "q", mongo_document(filter));
	if (update == NULL)
		mongo_append(operation, "limit", mongo_int32(kinds[kind].many ? 0 : 1));
	else
	{
		mongo_append_update(operation, "u", update);
		mongo_append(operation, "multi", mongo_bool(kinds[kind].many));
		if (kinds[kind].upserts)
			mongo_append(operation, "upsert", mongo_bool(true));
	}
	if (simple_collation)
		mongo_append_condition(operation, "collation", "locale", mongo_utf8("simple"));
}

/*
 * mongo_write_document
 *		Returns a command of one operation as the log and EXPLAIN show it, in the current memory
 *		context; 'update' is NULL for a delete.
 */
bson_t *
mongo_write_document(MongoWriteKind kind, const char *collection, const bson_t *filter,
					 const bson_t *update, bool simple_collation)
{
	bson_t	   *operation = mongo_bson_create();

	append_operation(operation, kind, filter, update, simple_collation);
	return mongo_from_template("{@1: @2, @3: [@4]}", mongo_utf8(kinds[kind].command),
							   mongo_utf8(mongo_to_utf8(collection)), mongo_utf8(kinds[kind].field),
							   mongo_document(operation));
}

/* Makes the next operation; returns false at the end of the batch. */
static bool
make_operation(const MongoWriteBatch *batch, Size *position, bson_t *operation)
{
	bool		deletes = kinds[batch->kind].field[0] == 'd';
	bson_t		filter;
	bson_t		update;

	if (!next_of_batch(batch, position, &filter) ||
		(!deletes && !next_of_batch(batch, position, &update)))
		return false;
	append_operation(operation, batch->kind, &filter, deletes ? NULL : &update,
					 batch->simple_collation);
	return true;
}

/*
 * Makes one document for each operation of the batch, except for the omitted rows.
 *
 * The documents to insert are the batch's own, and are not copied unless rows are omitted.
 */
static void
make_operations(const MongoWriteBatch *batch, const Bitmapset *omitted,
				MongoWriteBatch *operations)
{
	bson_t	   *operation;
	Size		position = 0;

	*operations = *batch;
	if (batch->kind == MONGO_INSERT && bms_is_empty(omitted))
		return;
	operations->data = NULL;
	operations->count = 0;
	operations->length = operations->capacity = 0;
	operation = mongo_bson_create();
	for (int i = 0; i < batch->count; i++)
	{
		bson_t		document;

		bson_reinit(operation);
		if (batch->kind == MONGO_INSERT ? !next_of_batch(batch, &position, &document) :
			!make_operation(batch, &position, operation))
			elog(ERROR, "batch has fewer operations than its count");
		if (bms_is_member(i, omitted))
			continue;
		append_document(operations, CurrentMemoryContext,
						batch->kind == MONGO_INSERT ? &document : operation,
						LARGEST_DOCUMENT + OPERATION_ALLOWANCE);
		operations->count++;
	}
}

/* Returns how many operations from *position fit into one message, and moves past them. */
static int
take_operations(const MongoWriteBatch *operations, const MongoConnection *connection, int left,
				Size *position)
{
	Size		limit = Max(connection->longest_message - MESSAGE_HEAD, 0);
	Size		start = *position;
	int			count = 0;
	bson_t		view;

	if (left <= connection->most_writes && operations->length - start <= limit)
	{
		*position = operations->length;
		return left;
	}
	while (count < Min(left, connection->most_writes))
	{
		Size		next = *position;

		if (!next_of_batch(operations, &next, &view) ||
			(count > 0 && next - start > limit))
			break;
		*position = next;
		count++;
	}
	return count;
}

/* ------------------------ a batch that is being written --------------------- */

/* The state of a batch while it is sent, in one message or in several successive ones. */
struct MongoWriteFlight
{
	MemoryContext context;		/* contains this struct and all its parts */
	MongoSession *session;
	MongoLease *lease;
	const MongoWriteBatch *batch;
	MongoWriteBatch operations; /* of the rows that are not omitted */

	/* the last message */
	MongoSequence sequence;
	MongoWrite	write;
	int			first;			/* index of its first operation */
	int			count;

	/* the batch so far */
	int64		written;
	Bitmapset  *omitted;		/* rows that are no longer sent */
	Bitmapset  *inserted;		/* rows that upserts have inserted */
	Bitmapset  *refused;		/* rows not written because of an allowed
								 * duplicate key */

	/* the last attempt to send it */
	bool		failed;
	bool		is_refused;		/* a command or its write concern failed */
	int			failed_row;		/* the first with another error; -1: none */
	MongoFailure failure;		/* of that row, or else of the command */

	/* a batch whose reply is not waited for */
	Oid			userid;			/* the user who sent it */
	List	   *tables;			/* mongo_error_tables() when it was sent */
	bool		detached;		/* detached from its session and lease */
	bool		answered;		/* its outcome is known */
};

/* Returns a new flight in a memory context of its own. */
static MongoWriteFlight *
create_flight(MemoryContext owner, MongoSession *session, const MongoWriteBatch *batch)
{
	MemoryContext context = AllocSetContextCreate(owner, "mongo_fdw bulk write",
												  ALLOCSET_SMALL_SIZES);
	MongoWriteFlight *flight = MemoryContextAllocZero(context, sizeof(MongoWriteFlight));

	flight->context = context;
	flight->session = session;
	flight->batch = batch;
	flight->failed_row = -1;
	return flight;
}

/* Returns how many documents a batch may write at most; -1: any number. */
static int64
most_documents(const MongoWriteFlight *flight)
{
	return kinds[flight->batch->kind].many ? -1 :
		flight->batch->count - bms_num_members(flight->omitted);
}

/*
 * Returns the row, as an index into the batch, of the operation that a reply names.
 *
 * Skips the omitted rows, which the server does not count.  The lease has no connection if the
 * write was to be repeated and no primary was found.
 */
static int
row_of_element(const MongoWriteFlight *flight, int index)
{
	int			operation = flight->first + index;
	int			row = -1;

	if (index < 0 || index >= flight->count)
	{
		if (flight->lease->connection != NULL)
			flight->lease->connection->broken = true;
		mongo_report_violation(flight->session->server_name,
							   "It names an operation that was not sent.");
	}
	while ((row = bms_next_member(flight->omitted, row)) >= 0 && row <= operation)
		operation++;
	return operation;
}

/*
 * Returns how many documents were written, as the reply reports.  Sets *upserted to the list of
 * documents that upserts inserted, if the reply has one.
 */
static int64
count_written(const MongoWriteFlight *flight, bson_iter_t *upserted, bool *has_upserted)
{
	const MongoReply *reply = &flight->write.reply;
	bson_iter_t iter;
	bson_iter_t element;
	int64		count = 0;

	*has_upserted = mongo_reply_find(reply, "upserted", upserted) &&
		BSON_ITER_HOLDS_ARRAY(upserted);
	if (flight->batch->kind != MONGO_INSERT_UNLESS_THERE)
		return mongo_reply_find(reply, "n", &iter) && BSON_ITER_HOLDS_NUMBER(&iter) ?
			bson_iter_as_int64(&iter) : 0;
	if (*has_upserted && bson_iter_recurse(upserted, &element))
	{
		while (bson_iter_next(&element))
			count++;
	}
	return count;
}

static void
note_inserted(MongoWriteFlight *flight, const bson_iter_t *upserted)
{
	bson_iter_t element;
	bson_iter_t index;

	if (!bson_iter_recurse(upserted, &element))
		return;
	while (bson_iter_next(&element))
	{
		if (bson_iter_recurse(&element, &index) && bson_iter_find(&index, "index"))
			flight->inserted =
				bms_add_member(flight->inserted,
							   row_of_element(flight, (int) bson_iter_as_int64(&index)));
	}
}

static void
note_errors(MongoWriteFlight *flight)
{
	bool		allowed = flight->batch->allow_duplicates && flight->session->lease == NULL;
	bson_iter_t iter;
	bson_iter_t element;

	if (!mongo_reply_find(&flight->write.reply, "writeErrors", &iter) ||
		!BSON_ITER_HOLDS_ARRAY(&iter) || !bson_iter_recurse(&iter, &element))
		return;
	while (bson_iter_next(&element))
	{
		MongoFailure failure;
		int			row;

		mongo_read_failure(&element, &failure);
		row = row_of_element(flight, failure.index);
		if (allowed && failure.code == DUPLICATE_KEY)
			flight->refused = bms_add_member(flight->refused, row);
		else if (flight->failed_row < 0)
		{
			failure.transient = flight->write.failure.transient;
			flight->failure = failure;
			flight->failed_row = row;
		}
	}
}

/* Counts the documents written, before anything allocates memory; then records errors. */
static void
take_reply(MongoWriteFlight *flight)
{
	MongoWrite *write = &flight->write;
	bson_iter_t iter;
	bool		has_upserted = false;

	/* a failed write has ended its MongoDB transaction */
	if (write->reply.document != NULL && (!write->failed || flight->session->lease == NULL))
	{
		int64		written = count_written(flight, &iter, &has_upserted);

		flight->written += written;
		mongo_write_count(write, written);
	}
	if (has_upserted && flight->batch->kind == MONGO_INSERT_UNLESS_THERE)
		note_inserted(flight, &iter);
	if (!write->failed)
		return;

	flight->failed = true;
	note_errors(flight);
	/* errors of single operations do not exclude one of the write concern */
	if (mongo_reply_is_ok(&write->reply))
	{
		if (!mongo_reply_find(&write->reply, "writeConcernError", &iter))
			return;
		mongo_read_failure(&iter, &write->failure);
	}
	if (flight->failed_row < 0 && !flight->is_refused)
		flight->failure = write->failure;
	flight->is_refused = true;
}

/* Sends the operations between the offsets 'start' and 'end'. */
static void
begin_message(MongoWriteFlight *flight, Size start, Size end)
{
	const MongoWriteBatch *batch = flight->batch;
	bson_t	   *command = mongo_bson_create();

	mongo_append(command, kinds[batch->kind].command, mongo_utf8(mongo_to_utf8(batch->collection)));
	mongo_append(command, "ordered", mongo_bool(batch->ordered));
	if (batch->comment != NULL)
		mongo_trace_append(mongo_trace_prepare(batch->comment), command);
	flight->sequence = (MongoSequence) {
		kinds[batch->kind].field, flight->operations.data + start, end - start
	};
	mongo_write_begin(flight->session, flight->session->user, flight->lease, &(MongoCommand) {
		.database = mongo_to_utf8(batch->database),
		.document = command,
		.sequence = &flight->sequence
	}, kinds[batch->kind].many ? -1 : flight->count, &flight->write);
}

/* ---------------------------- reporting failures ---------------------------- */

/* Adds to CONTEXT the writes of a failed statement that stay. */
static void
lasting_error_context(void *arg)
{
	const MongoWriteFlight *flight = arg;
	MongoUncertainty uncertainty = {0};
	char	   *uncertain;

	if (flight->session->lease != NULL)
		return;
	if (flight->batch->first_row > 0)
		errcontext("rows of this statement already written: %lld",
				   (long long) flight->batch->rows_before + flight->written);
	mongo_uncertainty_add(&uncertainty, flight->write.end, most_documents(flight));
	uncertain = mongo_uncertainty_text(&uncertainty);
	if (uncertain != NULL)
		errcontext("%s", uncertain);
}

/* Raises the batch's error, unless all errors are allowed duplicates. */
static void
raise_failure(MongoWriteFlight *flight)
{
	const MongoWriteBatch *batch = flight->batch;
	const MongoFailure *failure = &flight->failure;
	ErrorContextCallback callback = {error_context_stack, lasting_error_context, flight};
	const char *message = batch->context_message;
	const char *hint = NULL;

	/* an interrupt may have been put off until MongoDB had ended the write */
	CHECK_FOR_INTERRUPTS();
	if (flight->failed_row < 0 && !flight->is_refused)
		return;
	error_context_stack = &callback;
	if (flight->failed_row >= 0 && batch->first_row > 0 && !failure->transient)
		message = psprintf("%s, row %lld", message,
						   (long long) batch->first_row + flight->failed_row);
	if (flight->failed_row >= 0 && batch->kind == MONGO_INSERT_UNLESS_THERE && !batch->by_key &&
		failure->code == DUPLICATE_KEY)
		hint = "After the first command of a MongoDB transaction, ON CONFLICT DO NOTHING can only skip duplicates of _id.";
	mongo_raise_failure(message, failure, hint);
}

/* --------------------------------- sending ---------------------------------- */

/*
 * Makes one attempt to write all rows that are not omitted.
 *
 * Raises what mongo_write_finish() raises.  Afterwards the lease may have no connection.
 */
static void
send_operations(MongoWriteFlight *flight)
{
	MongoLease *lease = flight->lease;
	Size		position = 0;
	bool		goes_on = true;

	flight->failed = flight->is_refused = false;
	flight->failed_row = -1;
	make_operations(flight->batch, flight->omitted, &flight->operations);
	for (flight->first = 0; flight->first < flight->operations.count && goes_on;
		 flight->first += flight->count)
	{
		Size		start = position;

		flight->count = take_operations(&flight->operations, lease->connection,
										flight->operations.count - flight->first, &position);
		begin_message(flight, start, position);
		(void) mongo_write_finish(&flight->write);
		take_reply(flight);

		/*
		 * go on after errors of single operations only, if the batch is
		 * unordered and outside of transactions
		 */
		goes_on = !flight->write.failed ||
			(!flight->batch->ordered && flight->session->lease == NULL &&
			 !flight->is_refused && lease->connection != NULL &&
			 mongo_connection_is_clean(lease->connection));
	}
}

/*
 * Tells whether to send a failed batch again, in a restarted MongoDB transaction.
 *
 * Nothing is lost, as the batch was the transaction's first command.  After an allowed duplicate
 * key it is sent without that row.
 */
static bool
may_try_again(MongoWriteFlight *flight, TimestampTz since, int attempt)
{
	if (!flight->batch->allow_duplicates || flight->failed_row < 0 ||
		flight->failure.code != DUPLICATE_KEY || IsolationUsesXactSnapshot())
		return mongo_session_try_again(flight->session, &flight->failure, since, attempt);
	flight->omitted = bms_add_member(flight->omitted, flight->failed_row);
	mongo_session_restart(flight->session);
	return true;
}

/* Sends the batch; in a fresh transaction, repeats it while may_try_again() allows. */
static void
send_all(MongoWriteFlight *flight)
{
	MongoSession *session = flight->session;
	TimestampTz since = GetCurrentTimestamp();
	bool		fresh = mongo_session_is_fresh(session);

	for (int attempt = 0;; attempt++)
	{
		send_operations(flight);
		mongo_lease_check_interrupts(flight->lease);
		if (!flight->failed)
		{
			if (fresh && flight->batch->kind == MONGO_INSERT &&
				flight->sequence.size == flight->operations.length)
				mongo_session_note_insert(session, &flight->write.command);
			return;
		}
		if (!fresh || !may_try_again(flight, since, attempt))
			return;
		flight->lease = mongo_session_lease(session);
		flight->written = 0;
		flight->inserted = NULL;
		if (bms_num_members(flight->omitted) == flight->batch->count)
		{
			flight->failed = false;
			return;
		}
	}
}

/* --------------------------- one batch in flight ---------------------------- */

/*
 * Detaches the flight from its session and its lease.
 *
 * From both at once, since the end of a lease that is in flight would abandon the batch.
 */
static void
detach(MongoWriteFlight *flight)
{
	flight->detached = true;
	flight->session->flight = NULL;
	flight->lease->state = LEASE_QUIET;
}

/*
 * mongo_write_flight_settle
 *		Waits for the reply, if that has not been done.
 *
 * Raises what breaks the wait, but no error of the reply: another statement's exception block
 * must not catch that.
 */
void
mongo_write_flight_settle(MongoWriteFlight *flight)
{
	MemoryContext caller_context;

	if (flight->detached)
		return;
	detach(flight);
	caller_context = MemoryContextSwitchTo(flight->context);
	(void) mongo_write_finish(&flight->write);
	take_reply(flight);
	mongo_lease_check_interrupts(flight->lease);
	mongo_lease_put(flight->lease);
	flight->answered = true;
	MemoryContextSwitchTo(caller_context);
}

/*
 * mongo_write_flight_check
 *		Raises the error of the flight's reply, each time it is called.
 *
 * Another statement of the session may call this.  So the tables of the statement that sent the
 * batch, and the user who sent it, decide whether MongoDB's message may be quoted.
 */
void
mongo_write_flight_check(MongoWriteFlight *flight)
{
	MongoErrorSource source;

	/* the wait for the outcome may have ended by an error that was caught */
	if (!flight->answered || (flight->failed && flight->userid != GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("%s", flight->batch->context_message),
				 errdetail("An earlier batch of the statement has failed, or its outcome is not known.")));
	if (!flight->failed)
		return;
	mongo_push_error_source(&source, flight->tables);
	raise_failure(flight);
	mongo_pop_error_source(&source);
}

/*
 * mongo_write_flight_abandon
 *		After the statement has failed, ends the batch and notes what it may have written.  Takes
 *		0.8 s at most.  Never raises.
 */
void
mongo_write_flight_abandon(MongoWriteFlight *flight)
{
	MemoryContext caller_context;
	bson_iter_t upserted;
	bool		has_upserted;

	/* nothing can be done if the process exits from within libmongoc */
	if (flight->detached || mongo_driver_is_entered())
		return;
	detach(flight);
	caller_context = MemoryContextSwitchTo(TopTransactionContext);
	mongo_write_abandon(&flight->write, ABANDONED_MS);
	mongo_write_count(&flight->write, count_written(flight, &upserted, &has_upserted));
	MemoryContextSwitchTo(caller_context);
}

/* Callbacks of the lease (MongoLeaseCallbacks). */
static void
take_flight(void *reader)
{
	mongo_write_flight_settle(reader);
}

static void
discard_flight(void *reader)
{
	mongo_write_flight_abandon(reader);
}

static const MongoLeaseCallbacks flight_callbacks = {
	.save_reply = take_flight, .discard_reply = discard_flight
};

/*
 * Sends the batch without waiting for its reply.  Returns false, with nothing sent, if the batch
 * needs more than one message.
 */
static bool
begin_flight(MongoWriteFlight *flight)
{
	MongoSession *session = flight->session;
	Size		position = 0;

	flight->lease = mongo_lease_acquire_for_write(CurrentMemoryContext, session->user,
												  &flight_callbacks, flight);
	make_operations(flight->batch, NULL, &flight->operations);
	flight->count = take_operations(&flight->operations, flight->lease->connection,
									flight->batch->count, &position);
	if (flight->count < flight->batch->count)
	{
		mongo_lease_release(flight->lease);
		return false;
	}
	flight->userid = GetUserId();
	flight->tables = list_copy(mongo_error_tables());
	begin_message(flight, 0, position);
	session->flight = flight;
	session->flight_level = mongo_writing_level();
	mongo_lease_note_sent(flight->lease);
	return true;
}

/*
 * mongo_write_batch_begin
 *		Sends the batch, in one command if it fits into MongoDB's 48 MB, and returns its flight,
 *		in a child of 'owner'.
 *
 * Waits for the reply if 'wait' is set, in a MongoDB transaction, and if the batch takes more
 * than one message.  A batch left in flight is settled before the session's next read or write.
 * *batch must exist until mongo_write_batch_finish().  A reset of 'owner' abandons the flight,
 * and a rollback then warns of its uncertain writes.
 *
 * Raises MongoDB's error, such as 23505 for a duplicate key, 53200, and what interrupts raise.
 * After a lost connection or a change of primary, sends a command once more if MongoDB can
 * recognize the repetition (Retryable Writes specification).
 */
MongoWriteFlight *
mongo_write_batch_begin(MemoryContext owner, MongoSession *session,
						const MongoWriteBatch *batch, bool wait)
{
	MongoWriteFlight *flight = create_flight(owner, session, batch);
	MemoryContext caller_context = MemoryContextSwitchTo(flight->context);

	/* noted before sending, as a write that fails half-way may have written */
	int			written_level = mongo_session_note_write(session);

	if (wait || session->lease != NULL || !begin_flight(flight))
	{
		flight->lease = mongo_session_lease(session);
		send_all(flight);
		if (flight->failed)
			raise_failure(flight);
		if (flight->written == 0)
			session->written_level = written_level;
		mongo_session_return_lease(session, flight->lease);
		flight->failed = false;
		flight->detached = flight->answered = true;
	}
	else if (!flight->write.sent)
		mongo_write_flight_settle(flight);
	MemoryContextSwitchTo(caller_context);
	return flight;
}

/*
 * mongo_write_batch_finish
 *		Waits for the reply if necessary, sets *result, whose bitmapset is in the current memory
 *		context, and frees the flight.  Raises what mongo_write_batch_begin() does.
 */
void
mongo_write_batch_finish(MongoWriteFlight *flight, MongoWriteResult *result)
{
	const MongoWriteBatch *batch = flight->batch;

	mongo_write_flight_settle(flight);
	mongo_write_flight_check(flight);
	result->written = flight->written;
	result->refused = batch->kind == MONGO_INSERT_UNLESS_THERE ?
		bms_del_members(bms_add_range(NULL, 0, batch->count - 1), flight->inserted) :
		bms_copy(flight->refused);
	MemoryContextDelete(flight->context);
}
