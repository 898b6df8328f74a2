/*-------------------------------------------------------------------------
 *
 * write_queue.h
 *		A statement's writes to one table, sent in batches.
 *
 * A queue either sends each batch as soon as it is full, or keeps all of them
 * (on disk beyond work_mem) until the statement has read what it reads.
 * Without that, a scan could meet the documents that its own statement wrote:
 * MongoDB's cursors are not snapshots.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_WRITE_QUEUE_H
#define MONGO_FDW_WRITE_QUEUE_H

#include "compat.h"

#include "bulk_write.h"
#include "options.h"

/* Opaque. */
typedef struct MongoWriteQueue MongoWriteQueue;

/*
 * mongo_write_queue_create
 *		An empty queue of writes of one kind; lives in 'context'.
 *
 * 'deferred': send nothing before mongo_write_queue_finish().  The options and
 * strings must live as long; 'context_message' names the statement in errors, which
 * quote documents of the foreign table 'relid' to who may read it.
 */
extern MongoWriteQueue *mongo_write_queue_create(MemoryContext context,
												 UserMapping *user,
												 const MongoTableOptions *options,
												 MongoWriteKind kind,
												 int batch_size, bool deferred,
												 const char *context_message,
												 Oid relid);

/*
 * mongo_write_queue_add
 *		Add an operation of one document, or two (second may be NULL).
 */
extern void mongo_write_queue_add(MongoWriteQueue *queue, const bson_t *first,
								  const bson_t *second);

/*
 * mongo_write_queue_finish
 *		Send what has not been sent.  The queue may be used again.
 */
extern void mongo_write_queue_finish(MongoWriteQueue *queue);

/*
 * mongo_write_queue_allow_duplicates
 *		Send nothing but by mongo_write_queue_send(), and there let pass rows
 *		that MongoDB refuses for a duplicate key.
 *
 * For an empty queue of MONGO_INSERT or MONGO_INSERT_UNLESS_THERE.
 *
 * mongo_write_queue_upsert
 *		The operations are upserts by the option key_columns.  With 'on_demand' send
 *		nothing but by mongo_write_queue_send().
 */
extern void mongo_write_queue_allow_duplicates(MongoWriteQueue *queue);
extern void mongo_write_queue_upsert(MongoWriteQueue *queue, bool on_demand);

/*
 * mongo_write_queue_send
 *		Send what was added, now; returns the indexes of the rows refused, also as
 *		they are there already.
 */
extern Bitmapset *mongo_write_queue_send(MongoWriteQueue *queue);

/* mongo_write_queue_rows: how many rows were added so far. */
extern int64 mongo_write_queue_rows(const MongoWriteQueue *queue);

#endif							/* MONGO_FDW_WRITE_QUEUE_H */
