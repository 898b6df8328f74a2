/*-------------------------------------------------------------------------
 *
 * bulk_write.c
 *		Many writes to one collection in one command.
 *
 * libmongoc frames the documents, splits what is too much for one message and
 * retries where that is safe.  No function here raises between making and
 * destroying what libmongoc allocates.
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
#include "remote_error.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "write_conflict.h"
#include "write_outcome.h"

/* maxBsonObjectSize of every MongoDB server there has been since 1.8. */
#define LARGEST_DOCUMENT	(16 * 1024 * 1024)

#define INITIAL_CAPACITY	8192

void
mongo_write_batch_add(MongoWriteBatch *batch, MemoryContext context,
					  const bson_t *document)
{
	Size		needed = batch->length + document->len;

	if (document->len > LARGEST_DOCUMENT)
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

/* next_operation: a view of the one at *position, which moves on. */
static bool
next_operation(const MongoWriteBatch *batch, Size *position, bson_t *view)
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

/* add_operation hands one operation to libmongoc, which copies it. */
static bool
add_operation(mongoc_bulk_operation_t *bulk, const MongoWriteBatch *batch,
			  Size *position, const bson_t *options, bson_error_t *error)
{
	bson_t		first;
	bson_t		second;

	if (!next_operation(batch, position, &first))
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
			return next_operation(batch, position, &second) &&
				mongoc_bulk_operation_update_one_with_opts(bulk, &first, &second,
														   options, error);
		case MONGO_UPDATE_MANY:
			return next_operation(batch, position, &second) &&
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

	return next_operation(batch, position, &document) &&
		(!is_upsert(batch) || next_operation(batch, position, &document));
}

/* operation_options: what goes with each operation. */
static bson_t *
operation_options(const MongoWriteBatch *batch)
{
	bson_t	   *options = bson_create_in(CurrentMemoryContext);

	/* what we built needs no check of ours; MongoDB makes its own */
	if (batch->kind == MONGO_INSERT)
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
} WriteError;

static void
read_write_error(const bson_iter_t *element, WriteError *write_error)
{
	bson_iter_t field;

	write_error->index = -1;
	write_error->code = 0;
	write_error->message = "";
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
	mongo_report_write_error(message, failure->code, mongo_printable(failure->message), hint);
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

void
mongo_write_batch_send(MongoSession *session, const char *database,
					   const char *collection, const MongoWriteBatch *batch,
					   bool allow_duplicates, int64 first_row, int64 rows_before,
					   const char *context_message, MongoWriteResult *result)
{
	MemoryContext caller_context = CurrentMemoryContext;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "mongo_fdw bulk write",
												  ALLOCSET_SMALL_SIZES);
	MongoLease *lease;
	Progress	progress = {.raced = -1};
	bson_t	   *reply = NULL;
	bson_error_t error = {0};
	MongoWriteEnd end = MONGO_WRITE_ANSWERED;
	WriteError	failure;
	Lasting		lasting;
	ErrorContextCallback callback = {error_context_stack, lasting_error_context, &lasting};
	bool		succeeded;

	MemoryContextSwitchTo(context);
	memset(result, 0, sizeof(*result));
	lease = mongo_session_lease(session);

	/* libmongoc copies the documents, and once more to compress them */
	mongo_memory_check(2 * mongo_memory_grown(batch->length));

	/* before it is known: who fails half-way may have written */
	mongo_session_note_write(session, 0);
	succeeded = execute_bulk_in_session(session, lease, mongo_to_utf8(database),
										mongo_to_utf8(collection), batch,
										allow_duplicates, &progress, &reply, &error, &end);
	note_written(session, lease, batch, reply, &progress);
	result->written = progress.written;
	mongo_lease_check_interrupts(lease);
	if (!succeeded)
	{
		/*
		 * an interrupt may have been put off until MongoDB had ended the
		 * write
		 */
		CHECK_FOR_INTERRUPTS();
		lasting = what_lasts(session, end, most_documents(batch, progress.omitted), first_row,
							 rows_before + result->written);
		error_context_stack = &callback;
		if (find_failure(lease, reply, batch->count, allow_duplicates &&
						 !mongo_session_in_transaction(session), result, &failure) &&
			!mongo_reply_has_label(reply, "TransientTransactionError"))
			report_write_error(batch, &failure,
							   row_of_operation(Max(failure.index, 0), progress.omitted), first_row,
							   context_message);
		if (result->duplicates == 0 || error.code != MONGO_DUPLICATE_KEY ||
			bson_has_field(reply, "writeConcernErrors"))
			mongo_session_report_error(context_message, &error, reply);
		error_context_stack = callback.previous;
	}

	MemoryContextSwitchTo(caller_context);
	if (batch->kind == MONGO_INSERT_UNLESS_THERE)
	{
		result->refused = bms_del_members(bms_add_range(NULL, 0, batch->count - 1),
										  progress.inserted);
		result->duplicates = bms_num_members(result->refused);
	}
	else
		result->refused = bms_copy(result->refused);
	mongo_session_return_lease(session, lease);
	MemoryContextDelete(context);
}
