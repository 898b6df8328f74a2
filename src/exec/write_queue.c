/*-------------------------------------------------------------------------
 *
 * write_queue.c
 *		A statement's writes to one table, sent in batches.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "write_queue.h"

#include "miscadmin.h"
#include "options.h"
#include "privileges.h"
#include "settings.h"
#include "storage/buffile.h"
#include "utils/memutils.h"

/* A batch is full with this many bytes even when batch_size is not reached. */
#define BATCH_BYTES		(12 * 1024 * 1024)

struct MongoWriteQueue
{
	MemoryContext context;
	UserMapping *user;
	const char *database;
	const char *collection;
	const char *context_message;
	Oid			relid;			/* the foreign table */
	int			batch_size;
	bool		deferred;
	bool		allow_duplicates;
	bool		on_demand;		/* sends by mongo_write_queue_send() alone */
	MongoWriteBatch batch;		/* being filled */
	MongoWriteBatch flying;		/* on its way, while there is a flight */
	MongoWriteFlight *flight;
	int64		rows;			/* added */
	int64		sent;			/* rows sent, also those refused */
	int64		written;

	/* Deferred batches that were full: {count, length, data} each. */
	BufFile    *file;			/* NULL: none */
	int			filed;
};

/* The head of a batch in the file.  Without padding, which would be written too. */
typedef struct FiledBatch
{
	uint64		count;
	uint64		length;
} FiledBatch;

MongoWriteQueue *
mongo_write_queue_create(MemoryContext context, UserMapping *user,
						 const MongoTableOptions *options,
						 MongoWriteKind kind, int batch_size, bool deferred,
						 const char *context_message, Oid relid)
{
	MongoWriteQueue *queue = MemoryContextAllocZero(context,
													sizeof(MongoWriteQueue));

	queue->context = context;
	queue->user = user;
	queue->database = options->database;
	queue->collection = options->collection;
	queue->batch.comment = options->comment;
	queue->context_message = context_message;
	queue->batch_size = batch_size;
	queue->deferred = deferred;
	queue->relid = relid;
	queue->batch.kind = kind;
	queue->batch.ordered = true;
	return queue;
}

static void
log_remote_write(const MongoWriteQueue *queue, const MongoWriteBatch *batch)
{
	ereport(mongo_query_log_level(),
			(errmsg("remote query: %s.%s: %s, %d operations, %zu bytes",
					queue->database, queue->collection,
					batch->kind == MONGO_INSERT ? "insert" :
					batch->kind == MONGO_DELETE_ONE ? "delete" : "update",
					batch->count, batch->length),
			 errhidestmt(true)));
}

static void
clear_batch(MongoWriteBatch *batch)
{
	batch->count = 0;
	batch->length = 0;
}

/* count_batch: it has been written, or refused in part. */
static void
count_batch(MongoWriteQueue *queue, const MongoWriteBatch *batch,
			const MongoWriteResult *result)
{
	queue->sent += batch->count;
	queue->written += result->written;
}

/* land_batch: wait for the batch that is on its way, if one is. */
static void
land_batch(MongoWriteQueue *queue)
{
	MongoWriteFlight *flight = queue->flight;
	MongoWriteResult result;
	MongoAtWork work;

	if (flight == NULL)
		return;
	queue->flight = NULL;
	mongo_begin_work(&work, list_make1_oid(queue->relid));
	mongo_write_batch_finish(flight, &result);
	mongo_end_work(&work);
	count_batch(queue, &queue->flying, &result);
	clear_batch(&queue->flying);
}

/* send_batch returns the indexes of duplicates when those are allowed. */
static Bitmapset *
send_batch(MongoWriteQueue *queue, const MongoWriteBatch *batch)
{
	MongoWriteResult result;
	MongoAtWork work;

	CHECK_FOR_INTERRUPTS();
	land_batch(queue);
	if (mongo_log_remote_query)
		log_remote_write(queue, batch);
	mongo_begin_work(&work, list_make1_oid(queue->relid));
	mongo_write_batch_send(mongo_session_for_write(queue->user), queue->database,
						   queue->collection, batch, queue->allow_duplicates,
						   queue->sent + 1, queue->written,
						   queue->context_message, &result);
	mongo_end_work(&work);
	count_batch(queue, batch, &result);
	return result.refused;
}

/*
 * launch_batch
 *		Send a batch after which there are more, without waiting for the reply, and
 *		leave *batch empty, to be filled meanwhile.
 */
static void
launch_batch(MongoWriteQueue *queue, MongoWriteBatch *batch)
{
	MongoWriteBatch spare;
	MongoAtWork work;

	CHECK_FOR_INTERRUPTS();
	land_batch(queue);
	spare = queue->flying;
	queue->flying = *batch;
	mongo_begin_work(&work, list_make1_oid(queue->relid));
	queue->flight = mongo_write_batch_begin(queue->context,
											mongo_session_for_write(queue->user),
											queue->database, queue->collection,
											&queue->flying, queue->sent + 1,
											queue->written, queue->context_message);
	mongo_end_work(&work);
	if (queue->flight != NULL)
	{
		if (mongo_log_remote_query)
			log_remote_write(queue, &queue->flying);
		batch->data = spare.data;
		batch->capacity = spare.capacity;
		clear_batch(batch);
	}
	else
	{
		queue->flying = spare;
		send_batch(queue, batch);
		clear_batch(batch);
	}
}

/* file_batch: append the batch in hand to a temporary file. */
static void
file_batch(MongoWriteQueue *queue)
{
	FiledBatch	head = {queue->batch.count, queue->batch.length};

	if (queue->file == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(queue->context);

		queue->file = BufFileCreateTemp(false);
		MemoryContextSwitchTo(old_context);
	}
	BufFileWrite(queue->file, &head, sizeof(head));
	BufFileWrite(queue->file, queue->batch.data, queue->batch.length);
	queue->filed++;
}

/* pass_batch: the batch in hand is full. */
static void
pass_batch(MongoWriteQueue *queue)
{
	if (queue->deferred)
	{
		file_batch(queue);
		clear_batch(&queue->batch);
	}
	else if (queue->batch_size > 1)
		launch_batch(queue, &queue->batch);
	else
	{
		send_batch(queue, &queue->batch);
		clear_batch(&queue->batch);
	}
}

void
mongo_write_queue_add(MongoWriteQueue *queue, const bson_t *first,
					  const bson_t *second)
{
	MongoWriteBatch *batch = &queue->batch;
	Size		added = first->len + (second != NULL ? second->len : 0);

	if (batch->count > 0 && batch->length + added > BATCH_BYTES &&
		!queue->on_demand)
		pass_batch(queue);
	mongo_write_batch_add(batch, queue->context, first);
	if (second != NULL)
		mongo_write_batch_add(batch, queue->context, second);
	batch->count++;
	queue->rows++;

	if (batch->count < queue->batch_size || queue->on_demand)
		return;
	pass_batch(queue);
}

/* send_file sends what was filed, batch by batch, in its order. */
static void
send_file(MongoWriteQueue *queue)
{
	MongoWriteBatch batch = queue->batch;

	batch.data = NULL;
	batch.capacity = 0;
	if (BufFileSeek(queue->file, 0, 0L, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind a temporary file")));
	for (int i = 0; i < queue->filed; i++)
	{
		FiledBatch	head;

		if (BufFileRead(queue->file, &head, sizeof(head)) != sizeof(head))
			elog(ERROR, "could not read a temporary file");
		if (head.length > batch.capacity)
		{
			if (batch.data != NULL)
				pfree(batch.data);
			batch.data = MemoryContextAllocHuge(queue->context, head.length);
			batch.capacity = head.length;
		}
		if (BufFileRead(queue->file, batch.data, head.length) != head.length)
			elog(ERROR, "could not read a temporary file");
		batch.count = head.count;
		batch.length = head.length;
		launch_batch(queue, &batch);
	}
	if (batch.data != NULL)
		pfree(batch.data);
	BufFileClose(queue->file);
	queue->file = NULL;
	queue->filed = 0;
}

void
mongo_write_queue_finish(MongoWriteQueue *queue)
{
	if (queue->file != NULL)
		send_file(queue);
	if (queue->batch.count > 0)
		send_batch(queue, &queue->batch);
	clear_batch(&queue->batch);
	land_batch(queue);
}

void
mongo_write_queue_allow_duplicates(MongoWriteQueue *queue)
{
	queue->allow_duplicates = queue->on_demand = true;
	queue->batch.ordered = false;
}

void
mongo_write_queue_upsert(MongoWriteQueue *queue, bool on_demand)
{
	queue->on_demand = on_demand;
	queue->batch.by_key = true;
	queue->batch.simple_collation = true;
}

Bitmapset *
mongo_write_queue_send(MongoWriteQueue *queue)
{
	Bitmapset  *refused = send_batch(queue, &queue->batch);

	clear_batch(&queue->batch);
	return refused;
}

int64
mongo_write_queue_rows(const MongoWriteQueue *queue)
{
	return queue->rows;
}
