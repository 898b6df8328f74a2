/*-------------------------------------------------------------------------
 *
 * bulk_write.c
 *		Many writes to one collection in one command.
 *
 * They go out as messages of our own (write_sequence.h).  Of the first command of a
 * MongoDB transaction, and where another server than the one that reads ask takes
 * writes, libmongoc frames the documents, splits what is too much for one message and
 * retries where that is safe.  No function here raises between making and destroying
 * what libmongoc allocates.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bulk_write.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "driver_memory.h"
#include "encoding.h"
#include "miscadmin.h"
#include "printable.h"
#include "privileges.h"
#include "remote_error.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "turns.h"
#include "write_conflict.h"
#include "write_flight.h"
#include "write_outcome.h"
#include "write_sequence.h"

/*
 * For how long to wait for the reply to a batch whose statement has failed, before
 * MongoDB is told to end it.
 */
#define ABANDONED_MS		300

void
mongo_write_batch_add(MongoWriteBatch *batch, MemoryContext context,
					  const bson_t *document)
{
	mongo_write_batch_append(batch, context, document, MONGO_LARGEST_DOCUMENT);
}

/* add_operation hands one operation to libmongoc, which copies it. */
static bool
add_operation(mongoc_bulk_operation_t *bulk, const MongoWriteBatch *batch,
			  Size *position, const bson_t *options, bson_error_t *error)
{
	bson_t		first;
	bson_t		second;

	if (!mongo_write_batch_next(batch, position, &first))
		return false;
	switch (batch->kind)
	{
		case MONGO_INSERT:
			return mongoc_bulk_operation_insert_with_opts(bulk, &first, options,
														  error);
		case MONGO_DELETE_ONE:
			return mongoc_bulk_operation_remove_one_with_opts(bulk, &first,
															  options, error);
		case MONGO_DELETE_MANY:
			return mongoc_bulk_operation_remove_many_with_opts(bulk, &first,
															   options, error);
		case MONGO_INSERT_UNLESS_THERE:
		case MONGO_UPSERT:
		case MONGO_UPDATE_ONE:
			return mongo_write_batch_next(batch, position, &second) &&
				mongoc_bulk_operation_update_one_with_opts(bulk, &first, &second,
														   options, error);
		case MONGO_UPDATE_MANY:
			return mongo_write_batch_next(batch, position, &second) &&
				mongoc_bulk_operation_update_many_with_opts(bulk, &first, &second,
															options, error);
	}
	return false;
}

/* is_upsert: does an operation insert where its filter finds nothing? */
static bool
is_upsert(const MongoWriteBatch *batch)
{
	return batch->kind == MONGO_INSERT_UNLESS_THERE || batch->kind == MONGO_UPSERT;
}

/* skip_operation: of those kinds that rows may be omitted from. */
static bool
skip_operation(const MongoWriteBatch *batch, Size *position)
{
	bson_t		document;

	return mongo_write_batch_next(batch, position, &document) &&
		(!is_upsert(batch) || mongo_write_batch_next(batch, position, &document));
}

/* operation_options: what goes with each operation. */
static bson_t *
operation_options(const MongoWriteBatch *batch)
{
	bson_t	   *options = bson_create_in(CurrentMemoryContext);

	/* what we built needs no check of ours; MongoDB makes its own */
	if (batch->kind != MONGO_DELETE_ONE && batch->kind != MONGO_DELETE_MANY)
		BSON_APPEND_BOOL(options, "validate", false);
	if (is_upsert(batch))
		BSON_APPEND_BOOL(options, "upsert", true);
	if (batch->kind != MONGO_INSERT && batch->simple_collation)
		bson_append_condition(options, "collation", "locale", bson_utf8("simple"));
	return options;
}

/* most_documents: that a batch may write; -1: any number. */
static int64
most_documents(const MongoWriteBatch *batch, const Bitmapset *omitted)
{
	return batch->kind == MONGO_UPDATE_MANY || batch->kind == MONGO_DELETE_MANY ? -1 :
		batch->count - bms_num_members(omitted);
}

/* execute_bulk: true when every operation succeeded; *reply is always made. */
static bool
execute_bulk(mongoc_client_t *client, const char *database, const char *collection,
			 const MongoWriteBatch *batch, const Bitmapset *omitted,
			 const bson_t *bulk_options, const bson_t *options, bson_t *reply,
			 bson_error_t *error)
{
	mongoc_collection_t *target = mongoc_client_get_collection(client, database,
															   collection);
	mongoc_bulk_operation_t *bulk =
		mongoc_collection_create_bulk_operation_with_opts(target, bulk_options);
	Size		position = 0;
	bool		added = true;
	bool		succeeded = false;

	for (int i = 0; i < batch->count && added; i++)
		added = bms_is_member(i, omitted) ?
			skip_operation(batch, &position) :
			add_operation(bulk, batch, &position, options, error);
	if (added)
		succeeded = mongoc_bulk_operation_execute(bulk, reply, error) != 0;
	else
		bson_init(reply);

	mongoc_bulk_operation_destroy(bulk);
	mongoc_collection_destroy(target);
	return succeeded;
}

/* reply_number: a number in the reply, 0 if it is missing. */
static int64
reply_number(const bson_t *reply, const char *key)
{
	bson_iter_t iter;

	return bson_iter_init_find(&iter, reply, key) && BSON_ITER_HOLDS_NUMBER(&iter) ?
		bson_iter_as_int64(&iter) : 0;
}

/* check_index: of an operation among those that were sent. */
static void
check_index(MongoLease *lease, int index, int count)
{
	if (index < 0 || index >= count)
		mongo_wire_report_violation(mongo_lease_connection(lease),
									"It names an operation that was not sent.");
}

/* What the reply says of one operation that failed. */
typedef struct WriteError
{
	int			index;
	int			code;
	const char *message;
	bson_iter_t info;			/* its errInfo, if has_info */
	bool		has_info;
} WriteError;

static void
read_write_error(const bson_iter_t *element, WriteError *write_error)
{
	bson_iter_t field;

	write_error->index = -1;
	write_error->code = 0;
	write_error->message = "";
	write_error->has_info = false;
	if (!BSON_ITER_HOLDS_DOCUMENT(element) || !bson_iter_recurse(element, &field))
		return;
	while (bson_iter_next(&field))
	{
		const char *key = bson_iter_key(&field);

		if (strcmp(key, "index") == 0 && BSON_ITER_HOLDS_NUMBER(&field))
			write_error->index = (int) bson_iter_as_int64(&field);
		else if (strcmp(key, "code") == 0 && BSON_ITER_HOLDS_NUMBER(&field))
			write_error->code = (int) bson_iter_as_int64(&field);
		else if (strcmp(key, "errmsg") == 0 && BSON_ITER_HOLDS_UTF8(&field))
			write_error->message = bson_iter_utf8(&field, NULL);
		else if (strcmp(key, "errInfo") == 0)
		{
			write_error->info = field;
			write_error->has_info = true;
		}
	}
}

/*
 * find_failure
 *		The first failed one of 'count' operations that is not a duplicate allowed.
 */
static bool
find_failure(MongoLease *lease, const bson_t *reply, int count, bool allow_duplicates,
			 MongoWriteResult *result, WriteError *failure)
{
	bson_iter_t iter;
	bson_iter_t element;

	if (!bson_iter_init_find(&iter, reply, "writeErrors") ||
		!BSON_ITER_HOLDS_ARRAY(&iter) || !bson_iter_recurse(&iter, &element))
		return false;
	while (bson_iter_next(&element))
	{
		read_write_error(&element, failure);
		if (!allow_duplicates || failure->code != MONGO_DUPLICATE_KEY)
			return true;
		check_index(lease, failure->index, count);
		result->duplicates++;
		result->refused = bms_add_member(result->refused, failure->index);
	}
	return false;
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

/* What is known of a batch before its last reply. */
typedef struct Progress
{
	Bitmapset  *omitted;		/* rows that are not sent any more */
	Bitmapset  *inserted;		/* rows that upserts have inserted */
	int64		written;
	int			raced;			/* the row that has lost a race last, or -1 */
	int			attempts;		/* of it */
} Progress;

/* note_inserted: the rows that upserts did not find. */
static void
note_inserted(MongoLease *lease, const bson_t *reply, int count, Progress *progress)
{
	int			sent = count - bms_num_members(progress->omitted);
	bson_iter_t iter;
	bson_iter_t element;

	if (bson_iter_init_find(&iter, reply, "upserted") &&
		BSON_ITER_HOLDS_ARRAY(&iter) && bson_iter_recurse(&iter, &element))
	{
		while (bson_iter_next(&element))
		{
			bson_iter_t field;
			int			operation;

			if (!bson_iter_recurse(&element, &field) || !bson_iter_find(&field, "index"))
				continue;
			operation = (int) bson_iter_as_int64(&field);
			check_index(lease, operation, sent);
			progress->inserted = bms_add_member(progress->inserted,
												row_of_operation(operation, progress->omitted));
		}
	}
}

/* note_written: of what a reply tells as done, and lasting if there is no transaction. */
static void
note_written(MongoSession *session, MongoLease *lease, const MongoWriteBatch *batch,
			 const bson_t *reply, Progress *progress)
{
	int64		written = reply_number(reply, "nInserted") +
		reply_number(reply, "nUpserted") + reply_number(reply, "nRemoved") +
		(batch->kind == MONGO_INSERT_UNLESS_THERE ? 0 : reply_number(reply, "nMatched"));

	progress->written += written;
	mongo_session_note_write(session, written);
	if (batch->kind == MONGO_INSERT_UNLESS_THERE)
		note_inserted(lease, reply, batch->count, progress);
}

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

	if (mongo_session_in_transaction(session))
		return (Lasting) {-1, NULL};
	mongo_write_doubt_add(&doubt, end, most);
	return (Lasting) {first_row == 0 ? -1 : rows, mongo_write_doubt_text(&doubt)};
}

/* report_write_error names the row. */
static void
report_write_error(const MongoWriteBatch *batch, const WriteError *failure, int row,
				   int64 first_row, const char *context_message)
{
	const char *message = context_message;
	const char *hint = NULL;

	if (first_row > 0)
		message = psprintf("%s, row %lld", context_message, (long long) first_row + row);
	if (batch->kind == MONGO_INSERT_UNLESS_THERE && !batch->by_key &&
		failure->code == MONGO_DUPLICATE_KEY)
		hint = "After the first command of a MongoDB transaction, ON CONFLICT DO NOTHING can only pass over duplicates of _id.";
	mongo_report_write_error(message, failure->code,
							 mongo_error_text(failure->code, failure->message,
											  failure->has_info ? &failure->info : NULL), hint);
}

/* ------------------------ a transaction's first write ---------------------- */

/*
 * may_try_again
 *		Can a failed batch be sent again, in a transaction begun anew?
 *
 * It was the first command in the MongoDB transaction, so nothing is lost.
 * After a write conflict it is, as PostgreSQL would wait and then look again;
 * and where duplicate keys are allowed, without the row that has one.
 */
static bool
may_try_again(const bson_t *reply, const bson_error_t *error, int count,
			  bool allow_duplicates, Bitmapset **omitted, MongoLease *lease,
			  TimestampTz since, int attempt)
{
	int			sent = count - bms_num_members(*omitted);
	MongoWriteResult ignored = {0};
	WriteError	failure;

	if (mongo_reply_has_label(reply, "TransientTransactionError"))
		return mongo_wait_for_conflict(lease, error, since, attempt);
	if (!allow_duplicates || !find_failure(lease, reply, sent, false, &ignored, &failure) ||
		failure.code != MONGO_DUPLICATE_KEY)
		return false;
	check_index(lease, failure.index, sent);
	*omitted = bms_add_member(*omitted, row_of_operation(failure.index, *omitted));
	return true;
}

/*
 * may_upsert_again
 *		Has an upsert outside of transactions failed as another client has inserted its
 *		key meanwhile?  Then it is sent again, with those after it.
 */
static bool
may_upsert_again(MongoSession *session, MongoLease *lease, const MongoWriteBatch *batch,
				 const bson_t *reply, Progress *progress)
{
	int			sent = batch->count - bms_num_members(progress->omitted);
	MongoWriteResult ignored = {0};
	WriteError	failure;
	int			row;

	if (!is_upsert(batch) || mongo_session_in_transaction(session) ||
		!find_failure(lease, reply, sent, false, &ignored, &failure) ||
		failure.code != MONGO_DUPLICATE_KEY)
		return false;
	check_index(lease, failure.index, sent);
	row = row_of_operation(failure.index, progress->omitted);
	progress->attempts = row == progress->raced ? progress->attempts + 1 : 1;
	progress->raced = row;
	if (progress->attempts == MONGO_UPSERT_ATTEMPTS)
		return false;
	note_written(session, lease, batch, reply, progress);
	if (row > 0)
		progress->omitted = bms_add_range(progress->omitted, 0, row - 1);
	return true;
}

/*
 * execute_bulk_in_session
 *		Send the batch, in a fresh transaction as often as it takes.
 *
 * *reply is made in the current context.
 */
static bool
execute_bulk_in_session(MongoSession *session, MongoLease *lease, const char *database,
						const char *collection, const MongoWriteBatch *batch,
						bool allow_duplicates, Progress *progress, bson_t **reply,
						bson_error_t *error, MongoWriteEnd *end)
{
	const bson_t *options = operation_options(batch);
	TimestampTz since = GetCurrentTimestamp();
	bool		fresh = mongo_session_is_fresh(session);

	for (int attempt = 0;; attempt++)
	{
		bson_t	   *bulk_options = bson_create_in(CurrentMemoryContext);
		bool		succeeded;

		*reply = bson_create_in(CurrentMemoryContext);
		BSON_APPEND_BOOL(bulk_options, "ordered", batch->ordered);
		mongo_write_begin(session, lease, batch->comment, bulk_options);
		succeeded = execute_bulk(mongo_lease_client(lease), database, collection, batch,
								 progress->omitted, bulk_options, options, *reply, error);
		*end = mongo_write_finish(session, lease, succeeded,
								  most_documents(batch, progress->omitted), *reply, error);
		if (succeeded)
			return true;
		if (may_upsert_again(session, lease, batch, *reply, progress))
		{
			mongo_lease_check_interrupts(lease);
			continue;
		}
		if (!fresh)
			return false;
		mongo_lease_check_interrupts(lease);
		if (!may_try_again(*reply, error, batch->count, allow_duplicates,
						   &progress->omitted, lease, since, attempt))
			return false;
		mongo_session_restart(session);
		if (bms_num_members(progress->omitted) == batch->count)
			return true;
	}
}

/* -------------------------- sending, and the result ------------------------- */

/* A batch, and how it is called in messages. */
typedef struct Sending
{
	MongoSession *session;
	const MongoWriteBatch *batch;
	bool		allow_duplicates;
	int64		first_row;
	int64		rows_before;
	const char *context_message;
} Sending;

/* What has become of it. */
typedef struct Outcome
{
	bool		succeeded;
	bson_t	   *reply;			/* as libmongoc's bulk API has it */
	bson_error_t error;
	MongoWriteEnd end;
	Progress	progress;
	MongoWriteSequence sequence;	/* if it is one */
	bool		is_sequence;
} Outcome;

/* execute: by a message of our own or by libmongoc. */
static void
execute(MongoLease *lease, const char *database, const char *collection,
		const Sending *sending, Outcome *outcome)
{
	MongoSession *session = sending->session;
	const MongoWriteBatch *batch = sending->batch;

	/* before it is known: who fails half-way may have written */
	mongo_session_note_write(session, 0);
	if (mongo_write_sequence_suits(session, lease, batch))
	{
		outcome->reply = bson_create_in(CurrentMemoryContext);
		outcome->is_sequence = true;
		outcome->succeeded = mongo_write_sequence_send(session, lease, database, collection,
													   batch, &outcome->sequence,
													   outcome->reply, &outcome->error,
													   &outcome->end);
		return;
	}

	/* libmongoc copies the documents, and once more to compress them */
	mongo_memory_check(2 * mongo_memory_grown(batch->length));
	outcome->succeeded = execute_bulk_in_session(session, lease, database, collection, batch,
												 sending->allow_duplicates, &outcome->progress,
												 &outcome->reply, &outcome->error,
												 &outcome->end);
}

/*
 * raise_failure
 *		Unless all that has failed are duplicates that are allowed, which *result
 *		gets.
 */
static void
raise_failure(MongoLease *lease, const Sending *sending, const Outcome *outcome,
			  MongoWriteResult *result)
{
	MongoSession *session = sending->session;
	const MongoWriteBatch *batch = sending->batch;
	const bson_t *reply = outcome->reply;
	WriteError	failure;
	Lasting		lasting;
	ErrorContextCallback callback = {error_context_stack, lasting_error_context, &lasting};

	/* an interrupt may have been put off until MongoDB had ended the write */
	CHECK_FOR_INTERRUPTS();
	if (outcome->is_sequence)
		mongo_write_sequence_copy_errors(&outcome->sequence, outcome->reply);
	lasting = what_lasts(session, outcome->end, most_documents(batch, outcome->progress.omitted),
						 sending->first_row, sending->rows_before + result->written);
	error_context_stack = &callback;
	if (find_failure(lease, reply, batch->count, sending->allow_duplicates &&
					 !mongo_session_in_transaction(session), result, &failure) &&
		!mongo_reply_has_label(reply, "TransientTransactionError"))
		report_write_error(batch, &failure,
						   row_of_operation(Max(failure.index, 0), outcome->progress.omitted),
						   sending->first_row, sending->context_message);
	if (result->duplicates == 0 || outcome->error.code != MONGO_DUPLICATE_KEY ||
		bson_has_field(reply, "writeConcernErrors"))
		mongo_session_report_error(sending->context_message, &outcome->error, reply);
	error_context_stack = callback.previous;
}

/* account: note what is written, then raise what has broken a wait. */
static void
account(MongoLease *lease, const Sending *sending, Outcome *outcome,
		MongoWriteResult *result)
{
	memset(result, 0, sizeof(*result));
	note_written(sending->session, lease, sending->batch, outcome->reply,
				 &outcome->progress);
	result->written = outcome->progress.written;
	if (mongo_lease_holds_client(lease))
		mongo_lease_check_interrupts(lease);
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
	MemoryContext caller_context = CurrentMemoryContext;
	MemoryContext context = create_context(CurrentMemoryContext);
	Sending		sending = {
		session, batch, allow_duplicates, first_row, rows_before, context_message
	};
	Outcome		outcome = {.progress.raced = -1};
	MongoLease *lease;

	MemoryContextSwitchTo(context);
	lease = mongo_session_lease(session);
	execute(lease, mongo_to_utf8(database), mongo_to_utf8(collection), &sending, &outcome);
	account(lease, &sending, &outcome, result);
	if (!outcome.succeeded)
		raise_failure(lease, &sending, &outcome, result);
	MemoryContextSwitchTo(caller_context);
	if (batch->kind == MONGO_INSERT_UNLESS_THERE)
	{
		result->refused = bms_del_members(bms_add_range(NULL, 0, batch->count - 1),
										  outcome.progress.inserted);
		result->duplicates = bms_num_members(result->refused);
	}
	else
		result->refused = bms_copy(result->refused);
	mongo_session_return_lease(session, lease);
	MemoryContextDelete(context);
}

/* --------------------------- one batch in flight ---------------------------- */

struct MongoWriteFlight
{
	MemoryContext context;		/* of this and all that belongs to it */
	MongoLease *lease;
	Sending		sending;
	Oid			userid;			/* who has sent it */
	List	   *tables;			/* mongo_tables_at_work() then */
	bool		landed;			/* nothing is under way any more */
	bool		answered;		/* and the outcome is there */
	Outcome		outcome;
	MongoWriteResult result;
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
	mongo_session_note_landed(flight->sending.session);
	mongo_lease_note_answered(flight->lease);
}

static void
settle_batch(MongoWriteFlight *flight)
{
	MemoryContext caller_context;
	Outcome    *outcome = &flight->outcome;

	if (flight->landed)
		return;
	land(flight);
	caller_context = MemoryContextSwitchTo(flight->context);
	outcome->succeeded = mongo_write_sequence_finish(&flight->outcome.sequence, outcome->reply,
													 &outcome->error, &outcome->end);
	account(flight->lease, &flight->sending, outcome, &flight->result);
	mongo_lease_put(flight->lease);
	flight->answered = true;
	MemoryContextSwitchTo(caller_context);
}

/*
 * check_batch
 *
 * Another statement of the session may be the one that asks: what may be quoted is
 * judged by the tables of this one, and for the user who has sent it.
 */
static void
check_batch(MongoWriteFlight *flight)
{
	MongoAtWork work;

	/* an interrupt that was caught may have kept the outcome from us */
	if (!flight->answered ||
		(!flight->outcome.succeeded && flight->userid != GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("%s", flight->sending.context_message),
				 errdetail("An earlier batch of the statement has failed, or it is not known what has become of it.")));
	if (flight->outcome.succeeded)
		return;
	mongo_begin_work(&work, flight->tables);
	raise_failure(flight->lease, &flight->sending, &flight->outcome, &flight->result);
	mongo_end_work(&work);
}

static void
abandon_batch(MongoWriteFlight *flight)
{
	MemoryContext caller_context;

	/* on the way to exit from within libmongoc there is nothing to be done */
	if (flight->landed || mongo_driver_is_entered())
		return;
	land(flight);
	caller_context = MemoryContextSwitchTo(TopTransactionContext);
	mongo_session_note_write(flight->sending.session,
							 mongo_write_sequence_abandon(&flight->outcome.sequence, ABANDONED_MS));
	MemoryContextSwitchTo(caller_context);
}

/* As others want the connection, or the lease ends (lease.h). */
static void
take_flight(void *reader)
{
	settle_batch(reader);
}

static void
discard_flight(void *reader)
{
	abandon_batch(reader);
}

static const MongoTurns flight_turns = {
	.take_answer = take_flight, .discard_answer = discard_flight
};

static const MongoFlightMethods methods = {settle_batch, check_batch, abandon_batch};

MongoWriteFlight *
mongo_write_batch_begin(MemoryContext owner, MongoSession *session, const char *database,
						const char *collection, const MongoWriteBatch *batch,
						int64 first_row, int64 rows_before, const char *context_message)
{
	MemoryContext context;
	MemoryContext caller_context;
	MongoWriteFlight *flight;
	bool		begun = false;

	if (mongo_session_in_transaction(session))
		return NULL;
	context = create_context(owner);
	caller_context = MemoryContextSwitchTo(context);
	flight = palloc0(sizeof(MongoWriteFlight));
	flight->context = context;
	flight->userid = GetUserId();
	flight->tables = list_copy(mongo_tables_at_work());
	flight->outcome.reply = bson_create_in(context);
	flight->outcome.is_sequence = true;
	flight->sending = (Sending) {
		session, batch, false, first_row, rows_before, context_message
	};
	flight->lease = mongo_session_lease_for(session, &flight_turns, flight);
	if (mongo_write_sequence_suits(session, flight->lease, batch))
	{
		mongo_session_note_write(session, 0);
		begun = mongo_write_sequence_begin(session, flight->lease, mongo_to_utf8(database),
										   mongo_to_utf8(collection), batch,
										   &flight->outcome.sequence);
	}
	MemoryContextSwitchTo(caller_context);
	if (!begun)
	{
		MemoryContextDelete(context);
		return NULL;
	}
	mongo_session_note_flight(session, &methods, flight);
	mongo_lease_note_sent(flight->lease);
	if (!flight->outcome.sequence.way.sent)
		settle_batch(flight);
	return flight;
}

void
mongo_write_batch_finish(MongoWriteFlight *flight, MongoWriteResult *result)
{
	settle_batch(flight);
	check_batch(flight);
	*result = flight->result;
	MemoryContextDelete(flight->context);
}
