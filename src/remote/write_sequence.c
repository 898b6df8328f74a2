/*-------------------------------------------------------------------------
 *
 * write_sequence.c
 *		A batch of writes as document sequences in messages of our own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "write_sequence.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "remote_error.h"
#include "trace.h"
#include "transaction_message.h"

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

void
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

bool
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

bool
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
bool
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

void
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

int64
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

bool
mongo_write_sequence_send(MongoSession *session, MongoLease *lease,
						  const char *database, const char *collection,
						  const MongoWriteBatch *batch, MongoWriteSequence *sequence,
						  bson_t *document, bson_error_t *error, MongoWriteEnd *end)
{
	return mongo_write_sequence_begin(session, lease, database, collection, batch, sequence) ?
		mongo_write_sequence_finish(sequence, document, error, end) :
		send_parts(sequence, session, lease, database, collection, document, error, end);
}
