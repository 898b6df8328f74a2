/*-------------------------------------------------------------------------
 *
 * write_batch.c
 *		Writes in batches.
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

static void mongo_write_batch_append(MongoWriteBatch *batch, MemoryContext context,
									 const bson_t *document, uint32 limit);
static bool mongo_write_batch_next(const MongoWriteBatch *batch, Size *position,
								   bson_t *view);
static int64 mongo_write_sequence_abandon(MongoWriteSequence *sequence,
										  int milliseconds);
static void mongo_write_sequence_copy_errors(const MongoWriteSequence *sequence,
											 bson_t *document);
static bool mongo_write_sequence_finish(MongoWriteSequence *sequence, bson_t *document,
										bson_error_t *error, MongoWriteEnd *end);
static bool mongo_write_sequence_send(MongoSession *session, MongoLease *lease,
									  const char *database, const char *collection,
									  const MongoWriteBatch *batch,
									  MongoWriteSequence *sequence, bson_t *document,
									  bson_error_t *error, MongoWriteEnd *end);
static bool mongo_write_sequence_suits(const MongoSession *session, MongoLease *lease,
									   const MongoWriteBatch *batch);

/*-------------------------------------------------------------------------
 * Many writes to one collection in one command.
 *
 * They go out as messages of our own (remote_internal.h).  Of the first command of a
 * MongoDB transaction, and where another server than the one that reads ask takes
 * writes, libmongoc frames the documents, splits what is too much for one message and
 * retries where that is safe.  No function here raises between making and destroying
 * what libmongoc allocates.
 *-------------------------------------------------------------------------
 */

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

/* As others want the connection, or the lease ends (remote_internal.h). */
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

/* ----- A batch of writes as document sequences in messages of our own ----- */

/* By so much MongoDB lets an operation be larger. */
#define OPERATION_ALLOWANCE (16 * 1024)

#define INITIAL_CAPACITY	8192

/* What a message has beside its operations: names, comment, session, write concern. */
#define MESSAGE_HEAD		16384

/*
 * How the commands are called, and the field that has their operations.  Upserts outside
 * of transactions, which may have to be repeated in part, are libmongoc's to send.
 */
static const struct
{
	const char *command;
	const char *field;
	const char *count;			/* what the reply's "n" is in the bulk API */
	bool		many;			/* documents for one operation */
	bool		upserts;
}			kinds[] =
{
	[MONGO_INSERT] = {"insert", "documents", "nInserted", false, false},
	[MONGO_INSERT_UNLESS_THERE] = {"update", "updates", "nMatched", false, true},
	[MONGO_UPSERT] = {"update", "updates", "nMatched", false, true},
	[MONGO_UPDATE_ONE] = {"update", "updates", "nMatched", false, false},
	[MONGO_UPDATE_MANY] = {"update", "updates", "nMatched", true, false},
	[MONGO_DELETE_ONE] = {"delete", "deletes", "nRemoved", false, false},
	[MONGO_DELETE_MANY] = {"delete", "deletes", "nRemoved", true, false},
};

/*
 * mongo_write_batch_append
 *		mongo_write_batch_add() with a limit of its own.
 */
static void
mongo_write_batch_append(MongoWriteBatch *batch, MemoryContext context,
						 const bson_t *document, uint32 limit)
{
	Size		needed = batch->length + document->len;

	if (document->len > limit)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("document is too large for MongoDB"),
				 errdetail("It has %u bytes; the limit is %d.", document->len,
						   MONGO_LARGEST_DOCUMENT)));

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
 * mongo_write_batch_next
 *		A view of the batch's document at *position, which moves on; false when there
 *		is none.
 */
static bool
mongo_write_batch_next(const MongoWriteBatch *batch, Size *position, bson_t *view)
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

/*
 * mongo_write_sequence_suits
 *		Can the batch be sent so in the session, by the lease's client?  Else it is
 *		libmongoc's to send.
 */
static bool
mongo_write_sequence_suits(const MongoSession *session, MongoLease *lease,
						   const MongoWriteBatch *batch)
{
	return mongo_client_of(mongo_lease_connection(lease))->takes_writes &&
		(mongo_session_in_transaction(session) ? mongo_session_takes_messages(session) :
		 !kinds[batch->kind].upserts);
}

/* ------------------------------- operations -------------------------------- */

/* is_pipeline: an update {"0": stage}. */
static bool
is_pipeline(const bson_t *update)
{
	bson_iter_t iter;

	return bson_iter_init(&iter, update) && bson_iter_next(&iter) &&
		strcmp(bson_iter_key(&iter), "0") == 0;
}

/* make_operation: {q, u, ...} or {q, limit, ...}; false at the end of the batch. */
static bool
make_operation(const MongoWriteBatch *batch, Size *position, bson_t *operation)
{
	bool		deletes = kinds[batch->kind].field[0] == 'd';
	bson_t		filter;
	bson_t		update;

	if (!mongo_write_batch_next(batch, position, &filter))
		return false;
	BSON_APPEND_DOCUMENT(operation, "q", &filter);
	if (deletes)
		BSON_APPEND_INT32(operation, "limit", kinds[batch->kind].many ? 0 : 1);
	else
	{
		if (!mongo_write_batch_next(batch, position, &update))
			return false;
		if (is_pipeline(&update))
			BSON_APPEND_ARRAY(operation, "u", &update);
		else
			BSON_APPEND_DOCUMENT(operation, "u", &update);
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
 *		The operations of the batch as documents, one each; of inserts these are the
 *		batch's own.
 */
static void
make_operations(const MongoWriteBatch *batch, MongoWriteBatch *operations)
{
	bson_t	   *operation;
	Size		position = 0;

	*operations = *batch;
	if (batch->kind == MONGO_INSERT)
		return;
	operations->data = NULL;
	operations->length = operations->capacity = 0;
	operation = bson_create_in(CurrentMemoryContext);
	for (int i = 0; i < batch->count; i++)
	{
		bson_reinit(operation);
		if (!make_operation(batch, &position, operation))
			elog(ERROR, "batch has fewer operations than are said to be in it");
		mongo_write_batch_append(operations, CurrentMemoryContext, operation,
								 MONGO_LARGEST_DOCUMENT + OPERATION_ALLOWANCE);
	}
}

/*
 * take_operations
 *		How many of them fit into one message from *position on, which moves on.
 */
static int
take_operations(const MongoWriteBatch *operations, const MongoClient *client, int left,
				Size *position)
{
	Size		limit = Max(client->longest_message - MESSAGE_HEAD, 0);
	Size		start = *position;
	int			count = 0;
	bson_t		view;

	if (left <= client->most_writes && operations->length - start <= limit)
	{
		*position = operations->length;
		return left;
	}
	while (count < Min(left, client->most_writes))
	{
		Size		next = *position;

		if (!mongo_write_batch_next(operations, &next, &view) ||
			(count > 0 && next - start > limit))
			break;
		*position = next;
		count++;
	}
	return count;
}

/* -------------------------------- replies ---------------------------------- */

/* What the replies say together; arrays are made when there is something in them. */
typedef struct Replies
{
	int64		count;			/* "n" */
	BsonArray	upserted;
	BsonArray	write_errors;
	BsonArray	concern_errors;
} Replies;

/* merge_element: the document at 'element', its "index" counted from the batch's start. */
static void
merge_element(BsonArray *array, const bson_iter_t *element, int offset)
{
	bson_iter_t field;
	bson_t		copy;

	if (array->bson == NULL)
		*array = bson_array_create();
	if (!BSON_ITER_HOLDS_DOCUMENT(element) || !bson_iter_recurse(element, &field))
		return;
	bson_array_begin_document(array, &copy);
	while (bson_iter_next(&field))
	{
		if (strcmp(bson_iter_key(&field), "index") == 0 && BSON_ITER_HOLDS_NUMBER(&field))
			BSON_APPEND_INT64(&copy, "index", bson_iter_as_int64(&field) + offset);
		else
			bson_append_iter(&copy, NULL, 0, &field);
	}
	bson_array_end_document(array, &copy);
}

/* merge_elements: of an array in the reply. */
static void
merge_elements(BsonArray *array, const bson_t *reply, const char *key, int offset)
{
	bson_iter_t iter;
	bson_iter_t element;

	if (!bson_iter_init_find(&iter, reply, key) || !BSON_ITER_HOLDS_ARRAY(&iter) ||
		!bson_iter_recurse(&iter, &element))
		return;
	while (bson_iter_next(&element))
		merge_element(array, &element, offset);
}

static void
add_reply(Replies *replies, const bson_t *reply, int offset)
{
	bson_iter_t iter;

	if (bson_iter_init_find(&iter, reply, "n") && BSON_ITER_HOLDS_NUMBER(&iter))
		replies->count += bson_iter_as_int64(&iter);
	merge_elements(&replies->upserted, reply, "upserted", offset);
	merge_elements(&replies->write_errors, reply, "writeErrors", offset);
	if (bson_iter_init_find(&iter, reply, "writeConcernError"))
		merge_element(&replies->concern_errors, &iter, 0);
}

static void
append_array(bson_t *document, const char *key, const BsonArray *array)
{
	if (array->bson != NULL)
		BSON_APPEND_ARRAY(document, key, array->bson);
}

/* write_reply: as libmongoc's bulk API has it. */
static void
write_reply(const Replies *replies, MongoWriteKind kind, bson_t *document)
{
	BSON_APPEND_INT64(document, kinds[kind].count, replies->count - replies->upserted.count);
	if (kinds[kind].upserts)
		BSON_APPEND_INT64(document, "nUpserted", replies->upserted.count);
	append_array(document, "upserted", &replies->upserted);
	append_array(document, "writeErrors", &replies->write_errors);
	append_array(document, "writeConcernErrors", &replies->concern_errors);
}

/* -------------------------------- sending ---------------------------------- */

/* begin_message: some of the operations. */
static void
begin_message(MongoWriteSequence *sequence, MongoSession *session, MongoLease *lease,
			  const char *database, const char *collection, Size start, Size end, int count)
{
	const MongoWriteBatch *operations = &sequence->operations;
	MongoWriteKind kind = operations->kind;
	bson_t	   *command = bson_create_in(CurrentMemoryContext);

	BSON_APPEND_UTF8(command, kinds[kind].command, collection);
	BSON_APPEND_BOOL(command, "ordered", operations->ordered);
	if (operations->comment != NULL)
		mongo_trace_append(mongo_trace_prepare(operations->comment), command);
	sequence->message = (MongoWriteMessage) {
		.database = database,
		.command = command,
		.operations = {kinds[kind].field, operations->data + start, end - start},
		.most = kinds[kind].many ? -1 : count,
	};
	mongo_write_message_begin(session, lease, &sequence->message, &sequence->way);
}

/* append_labels: those that say what becomes of the transaction, if it is in one. */
static void
append_labels(const MongoWriteSequence *sequence, const MongoWriteReply *reply,
			  bson_t *document)
{
	if (sequence->way.fields != NULL)
		mongo_transaction_append_labels(document, reply->answered ? &reply->document : NULL);
}

/* client_of: that which the lease holds. */
static MongoClient *
client_of(MongoLease *lease)
{
	return mongo_client_of(mongo_lease_connection(lease));
}

bool
mongo_write_sequence_begin(MongoSession *session, MongoLease *lease,
						   const char *database, const char *collection,
						   const MongoWriteBatch *batch, MongoWriteSequence *sequence)
{
	Size		position = 0;

	sequence->reply = NULL;
	make_operations(batch, &sequence->operations);
	if (kinds[batch->kind].upserts ||
		take_operations(&sequence->operations, client_of(lease), batch->count,
						&position) < batch->count)
		return false;
	sequence->reply = bson_palloc(CurrentMemoryContext, sizeof(MongoWriteReply));
	begin_message(sequence, session, lease, database, collection, 0, position, batch->count);
	return true;
}

/*
 * mongo_write_sequence_finish
 *
 * What is written must be noted whatever comes, so no memory is asked for here.
 */
static bool
mongo_write_sequence_finish(MongoWriteSequence *sequence, bson_t *document,
							bson_error_t *error, MongoWriteEnd *end)
{
	MongoWriteReply *reply = sequence->reply;
	bson_iter_t iter;

	mongo_write_message_finish(&sequence->way, reply);
	if (reply->answered && bson_iter_init_find(&iter, &reply->document, "n") &&
		BSON_ITER_HOLDS_NUMBER(&iter))
		BSON_APPEND_INT64(document, kinds[sequence->operations.kind].count,
						  bson_iter_as_int64(&iter));
	*error = reply->error;
	*end = reply->end;
	return reply->succeeded;
}

/*
 * mongo_write_sequence_copy_errors
 *		Append "writeErrors", "writeConcernErrors" and in a transaction "errorLabels",
 *		which the above leaves out so that it needs no memory, unless they are there.
 */
static void
mongo_write_sequence_copy_errors(const MongoWriteSequence *sequence, bson_t *document)
{
	const MongoWriteReply *reply = sequence->reply;
	bson_iter_t iter;
	bson_t		errors;

	if (reply == NULL)
		return;
	append_labels(sequence, reply, document);
	if (!reply->answered)
		return;
	if (bson_iter_init_find(&iter, &reply->document, "writeErrors") &&
		BSON_ITER_HOLDS_ARRAY(&iter) && !bson_has_field(document, "writeErrors"))
		bson_append_iter(document, NULL, 0, &iter);
	if (bson_iter_init_find(&iter, &reply->document, "writeConcernError") &&
		!bson_has_field(document, "writeConcernErrors"))
	{
		BSON_APPEND_ARRAY_BEGIN(document, "writeConcernErrors", &errors);
		bson_append_iter(&errors, "0", 1, &iter);
		bson_append_array_end(document, &errors);
	}
}

/*
 * mongo_write_sequence_abandon
 *		In place of the second where the statement has ended by an error: the number
 *		of documents that are known to be written (remote_internal.h).
 */
static int64
mongo_write_sequence_abandon(MongoWriteSequence *sequence, int milliseconds)
{
	bson_iter_t iter;
	MongoWriteReply reply;

	mongo_write_message_abandon(&sequence->way, milliseconds, &reply);
	return reply.answered && bson_iter_init_find(&iter, &reply.document, "n") &&
		BSON_ITER_HOLDS_NUMBER(&iter) ? bson_iter_as_int64(&iter) : 0;
}

/* send_parts: more than fits into one message, or whose reply has more to tell. */
static bool
send_parts(MongoWriteSequence *sequence, MongoSession *session, MongoLease *lease,
		   const char *database, const char *collection, bson_t *document,
		   bson_error_t *error, MongoWriteEnd *end)
{
	const MongoWriteBatch *operations = &sequence->operations;
	Replies		replies = {0};
	Size		position = 0;
	bool		succeeded = true;
	bool		goes_on = true;
	int			sent = 0;

	while (sent < operations->count && goes_on)
	{
		Size		start = position;
		int			count = take_operations(operations, client_of(lease),
											operations->count - sent, &position);
		MongoWriteReply reply;

		begin_message(sequence, session, lease, database, collection, start, position,
					  count);
		mongo_write_message_finish(&sequence->way, &reply);
		if (reply.answered)
			add_reply(&replies, &reply.document, sent);
		if (!reply.succeeded && succeeded)
		{
			*error = reply.error;
			append_labels(sequence, &reply, document);
		}
		succeeded &= reply.succeeded;
		*end = reply.end;

		/*
		 * outside of transactions, after errors of single operations alone,
		 * and if their order does not count
		 */
		goes_on = reply.succeeded ||
			(!operations->ordered && sequence->way.fields == NULL && reply.answered && mongo_reply_is_ok(&reply.document) &&
			 mongo_client_is_clean(client_of(lease)));
		sent += count;
	}
	write_reply(&replies, operations->kind, document);
	return succeeded;
}

/*
 * mongo_write_sequence_send
 *		Send the batch and wait; true when every operation succeeded.
 *
 * *document, which must be empty, *error and *end become what libmongoc's bulk API
 * and mongo_write_finish() give.  Works in the current memory context.  Raises as
 * mongo_write_message_finish(), after which the lease may hold no client.
 */
static bool
mongo_write_sequence_send(MongoSession *session, MongoLease *lease,
						  const char *database, const char *collection,
						  const MongoWriteBatch *batch, MongoWriteSequence *sequence,
						  bson_t *document, bson_error_t *error, MongoWriteEnd *end)
{
	return mongo_write_sequence_begin(session, lease, database, collection, batch, sequence) ?
		mongo_write_sequence_finish(sequence, document, error, end) :
		send_parts(sequence, session, lease, database, collection, document, error, end);
}
