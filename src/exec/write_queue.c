/*-------------------------------------------------------------------------
 *
 * write_queue.c
 *		Sends a statement's writes to one collection, in order and in batches.
 *
 * Each target of a statement (a table of a ModifyTable node) has a writer.  Writers of one
 * collection share a queue, which sends their writes in the order in which they were added.  The
 * queue either sends each batch when it is full, or defers all batches to the end of the
 * statement, since its scans might read what it wrote.  It keeps one deferred batch in memory, and
 * the others on disk.  Deferred writes are sent earlier if another command writes to the
 * collection, or reads it in a snapshot that shows them (src/remote/order.c).
 *
 * Queues and writers come first, then sending a batch, then what writers do with the queue.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "miscadmin.h"

/* A batch is full with so many bytes even if batch_size is not reached. */
#define BATCH_BYTES		(12 * 1024 * 1024)

/* A statement's writes to one collection, by all writers of the statement. */
typedef struct MongoWriteQueue
{
	MongoUnsent unsent;			/* for order.c; the first member */
	dlist_node	node;			/* in 'queues' */
	MemoryContext context;		/* of the statement */
	MemoryContextCallback callback;
	bool		deferred;
	MongoWriteBatch batch;		/* being filled */
	MongoWriter *writer;		/* the writer of 'batch' */
	MongoWriteBatch flying;		/* in flight, if 'flight' is not NULL */
	MongoWriter *flying_writer;
	MongoWriteFlight *flight;
	HTAB	   *changed;		/* _ids of changed rows; NULL: none yet */
	ErrorData  *failure;		/* an error that another statement's command
								 * raised when it sent the queue, or NULL */

	/* full deferred batches, each a FiledBatch and its data */
	BufFile    *file;			/* NULL: none */
	int			filed;
} MongoWriteQueue;

/* The header of a batch in the file.  It has no padding, which would be written, too. */
typedef struct FiledBatch
{
	uint64		writer;			/* a pointer */
	uint64		count;
	uint64		length;
} FiledBatch;

/* The queues of all statements that are being executed. */
static dlist_head queues = DLIST_STATIC_INIT(queues);

static void send_for_others(MongoUnsent *unsent);

/* Removes the queue of a statement that has ended or failed. */
static void
forget_queue(void *arg)
{
	MongoWriteQueue *queue = arg;

	mongo_list_remove(&queue->unsent.listed);
	dlist_delete(&queue->node);
}

/*
 * mongo_scope_written
 *		Returns the scope of writes to a foreign table with these options.
 */
MongoAccessScope
mongo_scope_written(Oid serverid, const MongoTableOptions *options)
{
	return (MongoAccessScope) {
		serverid, mongo_to_utf8(options->database), mongo_to_utf8(options->collection)
	};
}

/*
 * mongo_scope_read
 *		Returns the scope of reads of a foreign table, which has no collection if it reads
 *		several.
 */
MongoAccessScope
mongo_scope_read(Oid relid)
{
	MongoAccessScope scope = mongo_scope_written(GetForeignTable(relid)->serverid,
												 mongo_table_options(relid));

	if (!mongo_reads_one_collection(relid))
		scope.collection = NULL;
	return scope;
}

/* Finds or creates the queue of the statement that has this memory context. */
static MongoWriteQueue *
get_queue(MemoryContext context, const MongoAccessScope *scope)
{
	MongoWriteQueue *queue;

	foreach_dlist(MongoWriteQueue, node, other, &queues)
	{
		if (other->context == context && mongo_scopes_overlap(&other->unsent.scope, scope))
			return other;
	}
	queue = MemoryContextAllocZero(context, sizeof(MongoWriteQueue));
	queue->context = context;
	queue->unsent.scope = *scope;
	queue->unsent.send = send_for_others;
	queue->callback.func = forget_queue;
	queue->callback.arg = queue;
	dlist_push_tail(&queues, &queue->node);
	MemoryContextRegisterResetCallback(context, &queue->callback);
	return queue;
}

/*
 * mongo_writer_create
 *		Returns a writer to the table, with the table's batch_size, in 'context', which must be the
 *		statement's.
 *
 * 'message' is the message of an error, with "%s" for the table.  'command' is the statement's
 * CommandId.  The caller sets form.kind and other members before it adds an operation.
 */
MongoWriter *
mongo_writer_create(MemoryContext context, Relation relation, UserMapping *user,
					const char *message, CommandId command)
{
	MongoWriter *writer = MemoryContextAllocZero(context, sizeof(MongoWriter));
	MongoAccessScope scope;

	writer->relation = relation;
	writer->options = mongo_table_options(RelationGetRelid(relation));
	writer->user = user;
	writer->batch_size = writer->options->batch_size;
	writer->form.database = writer->options->database;
	writer->form.collection = writer->options->collection;
	writer->form.context_message =
		MemoryContextStrdup(context, psprintf(message,
											  RelationGetRelationName(relation)));
	writer->form.ordered = true;
	writer->form.comment = writer->options->comment;
	scope = mongo_scope_written(user->serverid, writer->options);
	writer->queue = get_queue(context, &scope);
	writer->queue->unsent.command = command;
	writer->queue->unsent.level = GetCurrentTransactionNestLevel();
	return writer;
}

/*
 * mongo_writer_defer
 *		Makes the queue defer its batches until mongo_writer_finish(), or until another command
 *		requires them to be sent.
 */
void
mongo_writer_defer(MongoWriter *writer)
{
	writer->queue->deferred = true;
}

static void
clear_batch(MongoWriteBatch *batch)
{
	batch->count = 0;
	batch->length = 0;
}

/* Starts an empty batch of the writer, in the memory of the last one. */
static void
begin_batch(MongoWriteQueue *queue, MongoWriter *writer)
{
	MongoWriteBatch last = queue->batch;

	queue->writer = writer;
	queue->batch = writer->form;
	queue->batch.data = last.data;
	queue->batch.capacity = last.capacity;
}

static void
count_batch(MongoWriter *writer, const MongoWriteBatch *batch, const MongoWriteResult *result)
{
	writer->sent += batch->count;
	writer->written += result->written;
}

/* Lets errors quote documents of the writer's table. */
static void
push_error_source(MongoErrorSource *source, const MongoWriter *writer)
{
	mongo_push_error_source(source, list_make1_oid(RelationGetRelid(writer->relation)));
}

/* Waits for the batch in flight, if there is one. */
static void
finish_flight(MongoWriteQueue *queue)
{
	MongoWriteFlight *flight = queue->flight;
	MongoWriteResult result;
	MongoErrorSource source;

	if (flight == NULL)
		return;
	queue->flight = NULL;
	push_error_source(&source, queue->flying_writer);
	mongo_write_batch_finish(flight, &result);
	mongo_pop_error_source(&source);
	count_batch(queue->flying_writer, &queue->flying, &result);
	clear_batch(&queue->flying);
}

/*
 * Does what must precede a write, to keep SQL's order in MongoDB.  The statement's own scans must
 * not see deferred writes, either.
 */
static MongoSession *
prepare_to_send(MongoWriteQueue *queue, const MongoWriter *writer, bool deferred)
{
	CHECK_FOR_INTERRUPTS();
	finish_flight(queue);
	return mongo_begin_write(writer->user, &queue->unsent.scope, queue->unsent.command,
							 queue->context, deferred);
}

/* Sends a batch, waits, and returns the indexes of refused rows. */
static Bitmapset *
send_batch(MongoWriteQueue *queue, MongoWriter *writer, MongoWriteBatch *batch)
{
	MongoSession *session = prepare_to_send(queue, writer, queue->deferred);
	MongoWriteResult result;
	MongoErrorSource source;

	if (!writer->is_command)
		mongo_log_write(batch);
	batch->first_row = writer->is_command ? 0 : writer->sent + 1;
	batch->rows_before = writer->written;
	push_error_source(&source, writer);
	mongo_write_batch_finish(mongo_write_batch_begin(CurrentMemoryContext, session, batch, true),
							 &result);
	mongo_pop_error_source(&source);
	count_batch(writer, batch, &result);
	return result.refused;
}

/* Sends a batch without waiting for the reply, and empties *batch, to be filled meanwhile. */
static void
launch_batch(MongoWriteQueue *queue, MongoWriter *writer, MongoWriteBatch *batch)
{
	MongoSession *session = prepare_to_send(queue, writer, queue->deferred);
	MongoWriteBatch spare = queue->flying;
	MongoErrorSource source;

	queue->flying = *batch;
	queue->flying.first_row = writer->sent + 1;
	queue->flying.rows_before = writer->written;
	queue->flying_writer = writer;
	push_error_source(&source, writer);
	queue->flight = mongo_write_batch_begin(queue->context, session, &queue->flying, false);
	mongo_pop_error_source(&source);
	mongo_log_write(&queue->flying);
	batch->data = spare.data;
	batch->capacity = spare.capacity;
	clear_batch(batch);
}

static void
file_batch(MongoWriteQueue *queue)
{
	FiledBatch	head = {(uintptr_t) queue->writer, queue->batch.count, queue->batch.length};

	if (queue->file == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(queue->context);

		queue->file = BufFileCreateTemp(false);
		MemoryContextSwitchTo(old_context);
	}
	BufFileWrite(queue->file, &head, sizeof(head));
	BufFileWrite(queue->file, queue->batch.data, queue->batch.length);
	queue->filed++;
	clear_batch(&queue->batch);
}

/* Sends or files the current batch, if it is full or another writer's begins. */
static void
pass_batch(MongoWriteQueue *queue)
{
	if (queue->deferred)
	{
		file_batch(queue);
		return;
	}
	mongo_list_remove(&queue->unsent.listed);
	if (queue->writer->batch_size > 1)
		launch_batch(queue, queue->writer, &queue->batch);
	else
	{
		send_batch(queue, queue->writer, &queue->batch);
		clear_batch(&queue->batch);
	}
}

/* Raises this statement's error again, if another statement has caught it. */
static void
check_failure(MongoWriteQueue *queue)
{
	if (queue->failure != NULL)
		ReThrowError(queue->failure);
}

/*
 * mongo_writer_add
 *		Adds an operation of one document, or of two if 'second' is not NULL.
 *
 * The documents are copied.  Sends or files the batch if that is full, so raises errors of earlier
 * operations.
 */
void
mongo_writer_add(MongoWriter *writer, const bson_t *first, const bson_t *second)
{
	MongoWriteQueue *queue = writer->queue;
	MongoWriteBatch *batch = &queue->batch;
	Size		added = first->len + (second != NULL ? second->len : 0);

	check_failure(queue);
	if (batch->count > 0 &&
		(queue->writer != writer ||
		 (batch->length + added > BATCH_BYTES && !writer->on_demand)))
		pass_batch(queue);
	if (batch->count == 0)
		begin_batch(queue, writer);
	mongo_write_batch_add(batch, queue->context, first);
	if (second != NULL)
		mongo_write_batch_add(batch, queue->context, second);
	batch->count++;
	writer->rows++;
	mongo_unsent_add(&queue->unsent);
	if (batch->count >= writer->batch_size && !writer->on_demand)
		pass_batch(queue);
}

static void
send_file(MongoWriteQueue *queue)
{
	char	   *data = NULL;
	Size		capacity = 0;

	if (BufFileSeek(queue->file, 0, 0L, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind a temporary file")));
	for (int i = 0; i < queue->filed; i++)
	{
		FiledBatch	head;
		MongoWriter *writer;
		MongoWriteBatch batch;

		mongo_read_temporary_file(queue->file, &head, sizeof(head));
		writer = (MongoWriter *) (uintptr_t) head.writer;
		if (head.length > capacity)
		{
			if (data != NULL)
				pfree(data);
			data = MemoryContextAllocHuge(queue->context, head.length);
			capacity = head.length;
		}
		mongo_read_temporary_file(queue->file, data, head.length);
		batch = writer->form;
		batch.data = data;
		batch.capacity = capacity;
		batch.count = head.count;
		batch.length = head.length;
		launch_batch(queue, writer, &batch);
		data = batch.data;
		capacity = batch.capacity;
	}
	if (data != NULL)
		pfree(data);
	BufFileClose(queue->file);
	queue->file = NULL;
	queue->filed = 0;
}

/* Sends all unsent writes, in the order in which they were added. */
static void
send_queue(MongoWriteQueue *queue)
{
	check_failure(queue);
	mongo_list_remove(&queue->unsent.listed);
	if (queue->file != NULL)
		send_file(queue);
	if (queue->batch.count > 0)
		send_batch(queue, queue->writer, &queue->batch);
	clear_batch(&queue->batch);
	finish_flight(queue);
}

/*
 * Sends the queue before another statement reads or writes the collection.  That statement may
 * catch an error, so a copy of the error is kept for check_failure().
 */
static void
send_for_others(MongoUnsent *unsent)
{
	MongoWriteQueue *queue = (MongoWriteQueue *) unsent;

	StaticAssertStmt(offsetof(MongoWriteQueue, unsent) == 0, "must be its first member");
	PG_TRY();
	{
		send_queue(queue);
	}
	PG_CATCH();
	{
		MemoryContext error_context = MemoryContextSwitchTo(queue->context);

		queue->failure = CopyErrorData();
		MemoryContextSwitchTo(error_context);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/*
 * mongo_writer_finish
 *		Sends all unsent writes of the queue, and waits.  The writer may be used again.
 *
 * Raises the errors of these writes.
 */
void
mongo_writer_finish(MongoWriter *writer)
{
	send_queue(writer->queue);
}

/*
 * mongo_writer_send
 *		Sends deferred batches, then the added operations, at once.
 *
 * Returns the indexes of refused rows (see MongoWriteResult), in the current memory context.
 */
Bitmapset *
mongo_writer_send(MongoWriter *writer)
{
	MongoWriteQueue *queue = writer->queue;
	Bitmapset  *refused;

	check_failure(queue);
	mongo_list_remove(&queue->unsent.listed);
	if (queue->file != NULL)
		send_file(queue);
	refused = send_batch(queue, writer, &queue->batch);
	clear_batch(&queue->batch);
	return refused;
}

/*
 * mongo_writer_find_and_modify
 *		Changes, upserts or deletes one document, at once, and decodes it; returns false if there
 *		is none.
 *
 * 'update' is NULL for DELETE, of which the old document is decoded.  'fields' is NULL to read the
 * whole document.
 */
bool
mongo_writer_find_and_modify(MongoWriter *writer, const bson_t *filter, const bson_t *update,
							 const bson_t *fields, MongoRowDecoder *decoder, Datum *values, bool *isnull)
{
	MongoFindAndModify command = {
		.database = writer->options->database, .collection = writer->options->collection,
		.filter = filter, .update = update, .fields = fields, .comment = writer->form.comment,
		.simple_collation = writer->form.simple_collation,
		.upsert = writer->form.kind == MONGO_UPSERT
	};
	MongoSession *session = prepare_to_send(writer->queue, writer, false);
	MongoErrorSource source;
	bson_t		document;
	bool		found;

	push_error_source(&source, writer);
	found = mongo_find_and_modify(session, CurrentMemoryContext, &command,
								  writer->form.context_message, &document);
	if (found)
		mongo_row_decode(decoder, bson_get_data(&document), document.len, values, isnull);
	mongo_pop_error_source(&source);
	return found;
}

/*
 * mongo_writer_changes_first
 *		Records a change of the document {_id: value}; tells whether it is the statement's first.
 */
bool
mongo_writer_changes_first(MongoWriter *writer, const bson_t *filter)
{
	MongoWriteQueue *queue = writer->queue;
	bool		found;

	if (queue->changed == NULL)
		queue->changed = mongo_document_table_create(queue->context, sizeof(MongoDocumentKey));
	(void) mongo_document_table_enter(queue->changed, queue->context, filter, &found);
	return !found;
}
