/*-------------------------------------------------------------------------
 *
 * write_batch.c
 *		Many writes to one collection in one command.
 *
 * A batch leaves as a command with a document sequence, or as several where it is too
 * much for one message.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"
#include "convert.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* maxBsonObjectSize of every MongoDB server there has been since 1.8. */
#define LARGEST_DOCUMENT	(16 * 1024 * 1024)

/* By so much MongoDB lets an operation be larger. */
#define OPERATION_ALLOWANCE (16 * 1024)

#define INITIAL_CAPACITY	8192

/* What a message has beside its operations: names, comment, session, write concern. */
#define MESSAGE_HEAD		16384

/*
 * For how long to wait for the reply to a batch whose statement has failed, before
 * MongoDB is told to end it.
 */
#define ABANDONED_MS		300

/* How the commands are called, and the field that has their operations. */
static const struct
{
	const char *command;
	const char *field;
	bool		many;			/* documents for one operation */
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

/* append_document: to the batch's bytes. */
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

void
mongo_write_batch_add(MongoWriteBatch *batch, MemoryContext context,
					  const bson_t *document)
{
	append_document(batch, context, document, LARGEST_DOCUMENT);
}

/*
 * next_of_batch
 *		A view of the batch's document at *position, which moves on; false at its end.
 */
static bool
next_of_batch(const MongoWriteBatch *batch, Size *position, bson_t *view)
{
	uint32		length;

	if (batch->length - *position < 5)
		return false;
	memcpy(&length, batch->data + *position, sizeof(length));
	length = BSON_UINT32_FROM_LE(length);
	if (length > batch->length - *position ||
		!bson_view(view, (const uint8_t *) batch->data + *position, length))
		return false;
	*position += length;
	return true;
}

/* make_operation: {q, u, ...} or {q, limit, ...}; false at the end of the batch. */
static bool
make_operation(const MongoWriteBatch *batch, Size *position, bson_t *operation)
{
	bool		deletes = kinds[batch->kind].field[0] == 'd';
	bson_t		filter;
	bson_t		update;

	if (!next_of_batch(batch, position, &filter))
		return false;
	BSON_APPEND_DOCUMENT(operation, "q", &filter);
	if (deletes)
		BSON_APPEND_INT32(operation, "limit", kinds[batch->kind].many ? 0 : 1);
	else
	{
		if (!next_of_batch(batch, position, &update))
			return false;
		mongo_append_update(operation, "u", &update);
		BSON_APPEND_BOOL(operation, "multi", kinds[batch->kind].many);
		if (kinds[batch->kind].upserts)
			BSON_APPEND_BOOL(operation, "upsert", true);
	}
	if (batch->simple_collation)
		bson_append_condition(operation, "collation", "locale", bson_utf8("simple"));
	return true;
}

/*
 * make_operations
 *		The operations of the batch as documents, one each, but for the rows omitted; of
 *		inserts these are the batch's own.
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
	operation = bson_create_in(CurrentMemoryContext);
	for (int i = 0; i < batch->count; i++)
	{
		bson_t		document;

		bson_reinit(operation);
		if (batch->kind == MONGO_INSERT ? !next_of_batch(batch, &position, &document) :
			!make_operation(batch, &position, operation))
			elog(ERROR, "batch has fewer operations than are said to be in it");
		if (bms_is_member(i, omitted))
			continue;
		append_document(operations, CurrentMemoryContext,
						batch->kind == MONGO_INSERT ? &document : operation,
						LARGEST_DOCUMENT + OPERATION_ALLOWANCE);
		operations->count++;
	}
}

/*
 * take_operations
 *		How many of them fit into one message from *position on, which moves on.
 */
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

/* ------------------------- one batch, and its outcome ----------------------- */

/* A batch, and how it is called in messages. */
typedef struct Sending
{
	MongoSession *session;
	const char *database;		/* in UTF-8 */
	const char *collection;		/* likewise */
	const MongoWriteBatch *batch;
	bool		allow_duplicates;
	int64		first_row;
	int64		rows_before;
	const char *context_message;
} Sending;

/* What has become of a batch. */
typedef struct Outcome
{
	int64		written;
	Bitmapset  *omitted;		/* rows that are not sent any more */
	Bitmapset  *inserted;		/* rows that upserts have inserted */
	int			raced;			/* the row that has lost a race last, or -1 */
	int			attempts;		/* of it */

	/* of the last attempt */
	bool		failed;
	int			duplicates;		/* not written for a duplicate key, if allowed */
	Bitmapset  *refused;		/* their rows */
	bool		has_failure;	/* 'failure' of an operation is another one: */
	MongoFailure failure;
	int			failed_row;
	bool		is_refused;		/* 'error' is of the command or its write
								 * concern */
	bool		is_transient;	/* it has ended MongoDB's transaction */
	bson_error_t error;
	MongoWriteEnd end;
} Outcome;

/* One message of a batch. */
typedef struct Part
{
	MongoSequence operations;
	MongoWriteUnderWay way;
	int			first;			/* of its operations, among those that are
								 * sent */
	int			count;
} Part;

static bool
is_upsert(const MongoWriteBatch *batch)
{
	return kinds[batch->kind].upserts;
}

/* most_documents: that a batch may write; -1: any number. */
static int64
most_documents(const MongoWriteBatch *batch, const Bitmapset *omitted)
{
	return kinds[batch->kind].many ? -1 :
		batch->count - bms_num_members(omitted);
}

/*
 * check_index: of an operation among those that were sent.  The lease may hold no connection, if
 * the write was to be repeated and no primary was found.
 */
static void
check_index(const MongoWriteUnderWay *way, int index, int count)
{
	if (index >= 0 && index < count)
		return;
	if (way->lease->connection != NULL)
		mongo_report_violation(way->lease->connection,
							   "It names an operation that was not sent.");
	ereport(ERROR,
			(errcode(ERRCODE_PROTOCOL_VIOLATION),
			 errmsg("server \"%s\" sent an invalid reply",
					way->session->server_name),
			 errdetail("It names an operation that was not sent.")));
}

/* row_of_operation: its index in the batch, of which some were omitted. */
static int
row_of_operation(int operation, const Bitmapset *omitted)
{
	int			row = -1;

	while ((row = bms_next_member(omitted, row)) >= 0 && row <= operation)
		operation++;
	return operation;
}

/* note_inserted: the rows that upserts did not find. */
static void
note_inserted(const Part *part, const bson_iter_t *upserted, Outcome *outcome)
{
	bson_iter_t element;

	if (!bson_iter_recurse(upserted, &element))
		return;
	while (bson_iter_next(&element))
	{
		bson_iter_t field;
		int			index;

		if (!bson_iter_recurse(&element, &field) || !bson_iter_find(&field, "index"))
			continue;
		index = (int) bson_iter_as_int64(&field);
		check_index(&part->way, index, part->count);
		outcome->inserted = bms_add_member(outcome->inserted,
										   row_of_operation(part->first + index,
															outcome->omitted));
	}
}

/*
 * count_written
 *		How many documents a reply says that are written; *upserted is the list of those
 *		inserted by upserts, where it has one.
 */
static int64
count_written(const MongoWriteBatch *batch, const bson_t *document, bson_iter_t *upserted,
			  bool *has_upserted)
{
	bson_iter_t iter;
	bson_iter_t element;
	int64		count = 0;

	*has_upserted = bson_iter_init_find(upserted, document, "upserted") &&
		BSON_ITER_HOLDS_ARRAY(upserted);
	if (batch->kind != MONGO_INSERT_UNLESS_THERE)
		return bson_iter_init_find(&iter, document, "n") && BSON_ITER_HOLDS_NUMBER(&iter) ?
			bson_iter_as_int64(&iter) : 0;
	if (*has_upserted && bson_iter_recurse(upserted, &element))
	{
		while (bson_iter_next(&element))
			count++;
	}
	return count;
}

/* note_errors: those of single operations. */
static void
note_errors(const Sending *sending, const Part *part, const bson_t *document,
			Outcome *outcome)
{
	bool		allowed = sending->allow_duplicates &&
		sending->session->lease == NULL;
	bson_iter_t iter;
	bson_iter_t element;
	bson_iter_t fields;
	MongoFailure failure;

	if (!bson_iter_init_find(&iter, document, "writeErrors") ||
		!BSON_ITER_HOLDS_ARRAY(&iter) || !bson_iter_recurse(&iter, &element))
		return;
	while (bson_iter_next(&element))
	{
		int			row;

		failure = (MongoFailure) {.index = -1};
		if (BSON_ITER_HOLDS_DOCUMENT(&element) && bson_iter_recurse(&element, &fields))
			mongo_read_failure(&fields, &failure);
		check_index(&part->way, failure.index, part->count);
		row = row_of_operation(part->first + failure.index, outcome->omitted);
		if (allowed && failure.code == MONGO_DUPLICATE_KEY)
		{
			outcome->duplicates++;
			outcome->refused = bms_add_member(outcome->refused, row);
		}
		else if (!outcome->has_failure)
		{
			outcome->has_failure = true;
			outcome->failure = failure;
			outcome->failed_row = row;
		}
	}
}

/*
 * take_write_reply
 *		Note what is written, before anything asks for memory; then what has failed.
 */
static void
take_write_reply(const Sending *sending, const Part *part, const MongoWriteReply *reply,
				 Outcome *outcome)
{
	MongoSession *session = sending->session;
	const bson_t *document = reply->answered ? &reply->document : NULL;
	bson_iter_t upserted;
	bool		has_upserted = false;

	outcome->end = reply->end;
	/* what fails in a MongoDB transaction has ended that */
	if (reply->answered && (reply->succeeded || session->lease == NULL))
	{
		int64		written = count_written(sending->batch, document, &upserted,
											&has_upserted);

		outcome->written += written;
		mongo_session_note_write(session, written);
	}
	if (has_upserted && sending->batch->kind == MONGO_INSERT_UNLESS_THERE)
		note_inserted(part, &upserted, outcome);
	if (reply->succeeded)
		return;

	if (!outcome->failed)
		outcome->error = reply->error;
	outcome->failed = true;
	outcome->is_transient |= mongo_session_is_lost_by(session, &reply->error, document);
	if (document != NULL)
		note_errors(sending, part, document, outcome);
	if (document == NULL || !mongo_reply_is_ok(document) ||
		bson_has_field(document, "writeConcernError"))
		outcome->is_refused = true;
}

/* begin_part: send some of the operations, from 'start' to 'end' of their bytes. */
static void
begin_part(const Sending *sending, MongoLease *lease, const MongoWriteBatch *operations,
		   Size start, Size end, Part *part)
{
	MongoWriteKind kind = operations->kind;
	bson_t	   *command = bson_create_in(CurrentMemoryContext);

	BSON_APPEND_UTF8(command, kinds[kind].command, sending->collection);
	BSON_APPEND_BOOL(command, "ordered", operations->ordered);
	if (operations->comment != NULL)
		mongo_trace_append(mongo_trace_prepare(operations->comment), command);
	part->operations = (MongoSequence) {
		kinds[kind].field, operations->data + start, end - start
	};
	mongo_write_message_begin(sending->session, lease, &(MongoCommand) {
		.database = sending->database,
		.document = command,
		.sequence = &part->operations
	}, kinds[kind].many ? -1 : part->count, &part->way);
}

/* -------------------------- what lasts of a failure ------------------------- */

/* What lasts of a failed statement. */
typedef struct Lasting
{
	int64		rows;			/* that are written; -1: none are counted */
	char	   *doubtful;		/* mongo_write_doubt_text() */
} Lasting;

static void
lasting_error_context(void *arg)
{
	const Lasting *lasting = arg;

	if (lasting->rows >= 0)
		errcontext("rows of this statement already written: %lld", (long long) lasting->rows);
	if (lasting->doubtful != NULL)
		errcontext("%s", lasting->doubtful);
}

/* what_lasts: nothing does in a MongoDB transaction. */
static Lasting
what_lasts(MongoSession *session, MongoWriteEnd end, int64 most, int64 first_row,
		   int64 rows)
{
	MongoWriteDoubt doubt = {0};

	if (session->lease != NULL)
		return (Lasting) {-1, NULL};
	mongo_write_doubt_add(&doubt, end, most);
	return (Lasting) {first_row == 0 ? -1 : rows, mongo_write_doubt_text(&doubt)};
}

/* report_write_error names the row. */
static void
report_write_error(const MongoWriteBatch *batch, const MongoFailure *failure, int row,
				   int64 first_row, const char *context_message)
{
	const char *message = context_message;
	const char *hint = NULL;

	if (first_row > 0)
		message = psprintf("%s, row %lld", context_message, (long long) first_row + row);
	if (batch->kind == MONGO_INSERT_UNLESS_THERE && !batch->by_key &&
		failure->code == MONGO_DUPLICATE_KEY)
		hint = "After the first command of a MongoDB transaction, ON CONFLICT DO NOTHING can only pass over duplicates of _id.";
	mongo_report_write_error(message, failure, hint);
}

/*
 * raise_failure
 *		Unless all that has failed are duplicates that are allowed.
 */
static void
raise_failure(const Sending *sending, const Outcome *outcome)
{
	Lasting		lasting;
	ErrorContextCallback callback = {error_context_stack, lasting_error_context, &lasting};

	/* an interrupt may have been put off until MongoDB had ended the write */
	CHECK_FOR_INTERRUPTS();
	lasting = what_lasts(sending->session, outcome->end,
						 most_documents(sending->batch, outcome->omitted),
						 sending->first_row, sending->rows_before + outcome->written);
	error_context_stack = &callback;
	if (outcome->is_transient)
		mongo_report_transient_error(sending->context_message, &outcome->error);
	if (outcome->has_failure)
		report_write_error(sending->batch, &outcome->failure, outcome->failed_row,
						   sending->first_row, sending->context_message);
	if (outcome->is_refused)
		mongo_report_bson_error(sending->context_message, &outcome->error, NULL);
	error_context_stack = callback.previous;
}

/* --------------------------------- sending ---------------------------------- */

/*
 * send_operations
 *		One attempt at all that is not omitted.
 *
 * Raises what mongo_write_message_finish() does, after which the lease may hold no connection.
 */
static void
send_operations(const Sending *sending, MongoLease *lease, Outcome *outcome)
{
	MongoWriteBatch operations;
	Size		position = 0;
	int			sent = 0;
	bool		goes_on = true;

	outcome->failed = outcome->has_failure = false;
	outcome->is_refused = outcome->is_transient = false;
	make_operations(sending->batch, outcome->omitted, &operations);
	while (sent < operations.count && goes_on)
	{
		Size		start = position;
		Part	   *part = palloc(sizeof(Part));
		MongoWriteReply *reply = bson_palloc(CurrentMemoryContext, sizeof(MongoWriteReply));

		part->first = sent;
		part->count = take_operations(&operations,
									  lease->connection,
									  operations.count - sent, &position);
		begin_part(sending, lease, &operations, start, position, part);
		mongo_write_message_finish(&part->way, reply);
		take_write_reply(sending, part, reply, outcome);
		sent += part->count;

		/*
		 * outside of transactions, after errors of single operations alone,
		 * and if their order does not count
		 */
		goes_on = reply->succeeded ||
			(!operations.ordered && sending->session->lease == NULL &&
			 !outcome->is_refused && lease->connection != NULL &&
			 mongo_connection_is_clean(lease->connection));
	}
}

/*
 * may_try_again
 *		Can a failed batch be sent again, in a transaction begun again?
 *
 * It was the first command in the MongoDB transaction, so nothing is lost.
 * After a write conflict it is, as PostgreSQL would wait and then look again;
 * and where duplicate keys are allowed, without the row that has one.
 */
static bool
may_try_again(const Sending *sending, MongoLease *lease, Outcome *outcome,
			  TimestampTz since, int attempt)
{
	if (outcome->is_transient)
		return mongo_wait_for_conflict(lease, &outcome->error, since, attempt);
	if (!sending->allow_duplicates || !outcome->has_failure ||
		outcome->failure.code != MONGO_DUPLICATE_KEY)
		return false;
	outcome->omitted = bms_add_member(outcome->omitted, outcome->failed_row);
	return true;
}

/*
 * may_upsert_again
 *		Has an upsert outside of transactions failed as another client has inserted its
 *		key meanwhile?  Then it is sent again, with those after it.
 *
 * The lease holds no connection if the repetition of a write has found no primary.
 */
static bool
may_upsert_again(const Sending *sending, const MongoLease *lease, Outcome *outcome)
{
	int			row = outcome->failed_row;

	if (!is_upsert(sending->batch) || lease->connection == NULL ||
		sending->session->lease != NULL ||
		!outcome->has_failure || outcome->failure.code != MONGO_DUPLICATE_KEY)
		return false;
	outcome->attempts = row == outcome->raced ? outcome->attempts + 1 : 1;
	outcome->raced = row;
	if (outcome->attempts == MONGO_UPSERT_ATTEMPTS)
		return false;
	if (row > 0)
		outcome->omitted = bms_add_range(outcome->omitted, 0, row - 1);
	return true;
}

/* send_all: in a fresh transaction as often as it takes. */
static void
send_all(const Sending *sending, MongoLease *lease, Outcome *outcome)
{
	MongoSession *session = sending->session;
	TimestampTz since = GetCurrentTimestamp();
	bool		fresh = mongo_session_is_fresh(session);

	for (int attempt = 0;; attempt++)
	{
		send_operations(sending, lease, outcome);
		if (lease->connection != NULL)
			mongo_lease_check_interrupts(lease);
		if (!outcome->failed)
			return;
		if (may_upsert_again(sending, lease, outcome))
			continue;
		if (!fresh || !may_try_again(sending, lease, outcome, since, attempt))
			return;
		mongo_session_restart(session);
		outcome->written = 0;
		outcome->inserted = NULL;
		if (bms_num_members(outcome->omitted) == sending->batch->count)
		{
			outcome->failed = false;
			return;
		}
	}
}

static MemoryContext
create_context(MemoryContext parent)
{
	return AllocSetContextCreate(parent, "mongo_fdw bulk write", ALLOCSET_SMALL_SIZES);
}

void
mongo_write_batch_send(MongoSession *session, const char *database,
					   const char *collection, const MongoWriteBatch *batch,
					   bool allow_duplicates, int64 first_row, int64 rows_before,
					   const char *context_message, MongoWriteResult *result)
{
	MemoryContext context = create_context(CurrentMemoryContext);
	MemoryContext caller_context = MemoryContextSwitchTo(context);
	Sending		sending = {
		session, mongo_to_utf8(database), mongo_to_utf8(collection), batch,
		allow_duplicates, first_row, rows_before, context_message
	};
	Outcome		outcome = {.raced = -1};
	MongoLease *lease;

	/* before it is known: who fails half-way may have written */
	mongo_session_note_write(session, 0);
	lease = mongo_session_lease(session);
	send_all(&sending, lease, &outcome);
	if (outcome.failed)
		raise_failure(&sending, &outcome);
	MemoryContextSwitchTo(caller_context);
	result->written = outcome.written;
	if (batch->kind == MONGO_INSERT_UNLESS_THERE)
	{
		result->refused = bms_del_members(bms_add_range(NULL, 0, batch->count - 1),
										  outcome.inserted);
		result->duplicates = bms_num_members(result->refused);
	}
	else
	{
		result->refused = bms_copy(outcome.refused);
		result->duplicates = outcome.duplicates;
	}
	mongo_session_return_lease(session, lease);
	MemoryContextDelete(context);
}

/* --------------------------- one batch in flight ---------------------------- */

struct MongoWriteFlight
{
	MemoryContext context;		/* of this and all that belongs to it */
	MongoLease *lease;
	Sending		sending;
	MongoWriteBatch operations;
	Part		part;
	MongoWriteReply *reply;
	Oid			userid;			/* who has sent it */
	List	   *tables;			/* mongo_tables_at_work() then */
	bool		landed;			/* nothing is under way any more */
	bool		answered;		/* and the outcome is there */
	Outcome		outcome;
};

/*
 * land: from now on nobody else is to look after it.
 *
 * So it is known to the session only as long as its lease is in flight, whose end
 * would abandon it.
 */
static void
land(MongoWriteFlight *flight)
{
	flight->landed = true;
	flight->sending.session->flight = NULL;
	mongo_lease_leave_list(flight->lease);
}

void
mongo_write_flight_settle(MongoWriteFlight *flight)
{
	MemoryContext caller_context;

	if (flight->landed)
		return;
	land(flight);
	caller_context = MemoryContextSwitchTo(flight->context);
	mongo_write_message_finish(&flight->part.way, flight->reply);
	take_write_reply(&flight->sending, &flight->part, flight->reply, &flight->outcome);
	if (flight->lease->connection != NULL)
		mongo_lease_check_interrupts(flight->lease);
	mongo_lease_put(flight->lease);
	flight->answered = true;
	MemoryContextSwitchTo(caller_context);
}

/*
 * mongo_write_flight_check
 *
 * Another statement of the session may be the one that asks: what may be quoted is
 * judged by the tables of this one, and for the user who has sent it.
 */
void
mongo_write_flight_check(MongoWriteFlight *flight)
{
	MongoAtWork work;

	/* an interrupt that was caught may have kept the outcome from us */
	if (!flight->answered ||
		(flight->outcome.failed && flight->userid != GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("%s", flight->sending.context_message),
				 errdetail("An earlier batch of the statement has failed, or it is not known what has become of it.")));
	if (!flight->outcome.failed)
		return;
	mongo_begin_work(&work, flight->tables);
	raise_failure(&flight->sending, &flight->outcome);
	mongo_end_work(&work);
}

void
mongo_write_flight_abandon(MongoWriteFlight *flight)
{
	MemoryContext caller_context;
	MongoWriteReply reply;
	bson_iter_t upserted;
	bool		has_upserted;

	/* on the way to exit from within libmongoc there is nothing to be done */
	if (flight->landed || mongo_driver_is_entered())
		return;
	land(flight);
	caller_context = MemoryContextSwitchTo(TopTransactionContext);
	mongo_write_message_abandon(&flight->part.way, ABANDONED_MS, &reply);
	mongo_session_note_write(flight->sending.session, reply.answered ?
							 count_written(flight->sending.batch, &reply.document,
										   &upserted, &has_upserted) : 0);
	MemoryContextSwitchTo(caller_context);
}

/* As others want the connection, or the lease ends (pool.c). */
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

static const MongoTurns flight_turns = {
	.take_answer = take_flight, .discard_answer = discard_flight
};

MongoWriteFlight *
mongo_write_batch_begin(MemoryContext owner, MongoSession *session, const char *database,
						const char *collection, const MongoWriteBatch *batch,
						int64 first_row, int64 rows_before, const char *context_message)
{
	MemoryContext context;
	MemoryContext caller_context;
	MongoWriteFlight *flight;
	Size		position = 0;

	/* upserts may have to be repeated in part */
	if (session->lease != NULL || is_upsert(batch))
		return NULL;
	context = create_context(owner);
	caller_context = MemoryContextSwitchTo(context);
	flight = bson_palloc(context, sizeof(MongoWriteFlight));
	memset(flight, 0, sizeof(MongoWriteFlight));
	flight->context = context;
	flight->userid = GetUserId();
	flight->tables = list_copy(mongo_tables_at_work());
	flight->reply = bson_palloc(context, sizeof(MongoWriteReply));
	flight->sending = (Sending) {
		session, mongo_to_utf8(database), mongo_to_utf8(collection), batch, false,
		first_row, rows_before, context_message
	};
	flight->lease = mongo_lease_acquire_for_write(CurrentMemoryContext, session->user,
												  &flight_turns, flight);
	make_operations(batch, NULL, &flight->operations);
	flight->part.count = take_operations(&flight->operations,
										 flight->lease->connection,
										 batch->count, &position);
	if (flight->part.count < batch->count)
	{
		MemoryContextSwitchTo(caller_context);
		MemoryContextDelete(context);
		return NULL;
	}
	mongo_session_note_write(session, 0);
	begin_part(&flight->sending, flight->lease, &flight->operations, 0, position,
			   &flight->part);
	MemoryContextSwitchTo(caller_context);
	session->flight = flight;
	session->flight_level = mongo_writing_level();
	mongo_lease_note_sent(flight->lease);
	if (!flight->part.way.sent)
		mongo_write_flight_settle(flight);
	return flight;
}

void
mongo_write_batch_finish(MongoWriteFlight *flight, MongoWriteResult *result)
{
	mongo_write_flight_settle(flight);
	mongo_write_flight_check(flight);
	*result = (MongoWriteResult) {.written = flight->outcome.written};
	MemoryContextDelete(flight->context);
}
