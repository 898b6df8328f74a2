/*-------------------------------------------------------------------------
 *
 * bulk_write.h
 *		Many writes to one collection in one command.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_BULK_WRITE_H
#define MONGO_FDW_BULK_WRITE_H

#include "compat.h"

#include "nodes/bitmapset.h"

#include "transaction.h"

/* MongoDB's code for it. */
#define MONGO_DUPLICATE_KEY		11000

/*
 * How often an upsert is sent, at most, that fails with that code outside of
 * transactions: of two that insert the same key at the same time one does, and MongoDB's
 * documentation has the other repeated.
 */
#define MONGO_UPSERT_ATTEMPTS	3

/* What each operation of a batch does, and the documents it consists of. */
typedef enum MongoWriteKind
{
	MONGO_INSERT,				/* document */
	MONGO_INSERT_UNLESS_THERE,	/* filter, {$setOnInsert} */
	MONGO_UPSERT,				/* filter, update or pipeline {"0": stage} */
	MONGO_UPDATE_ONE,			/* likewise */
	MONGO_UPDATE_MANY,			/* likewise */
	MONGO_DELETE_ONE,			/* filter */
	MONGO_DELETE_MANY			/* filter */
} MongoWriteKind;

/*
 * Operations of one kind, one after the other: the bytes of their documents.
 */
typedef struct MongoWriteBatch
{
	MongoWriteKind kind;
	bool		ordered;		/* nothing is tried after one that failed */
	bool		simple_collation;	/* for filters that compare text */
	bool		by_key;			/* filters are not by _id for ON CONFLICT, but
								 * by the option key_columns */
	const char *comment;		/* a table's own; NULL: the server's */
	int			count;			/* operations */
	char	   *data;			/* palloc'd */
	Size		length;
	Size		capacity;
} MongoWriteBatch;

/* What a batch did. */
typedef struct MongoWriteResult
{
	int64		written;		/* inserted, matched by updates, or deleted */
	int			duplicates;		/* not written for a duplicate key, if allowed */
	Bitmapset  *refused;		/* their indexes; of MONGO_INSERT_UNLESS_THERE
								 * also those that were there already */
} MongoWriteResult;

/*
 * mongo_write_batch_add
 *		Append a document to the batch; the caller counts operations.
 *
 * 'context' is where batch->data lives.  Raises 54000 above 16 MB, which is
 * MongoDB's limit.
 */
extern void mongo_write_batch_add(MongoWriteBatch *batch, MemoryContext context,
								  const bson_t *document);

/*
 * mongo_write_batch_send
 *		Send the batch and wait; in one command up to MongoDB's 48 MB.
 *
 * Raises what MongoDB answers, 23505 for a duplicate key, with
 * 'context_message'; 'first_row' is the number of the batch's first row in the
 * statement (0: the batch has no rows) and 'rows_before' how many that statement had written.  With
 * 'allow_duplicates' duplicate keys are noted in *result instead.
 *
 * Writes are sent once more after a lost connection, or to another primary, where
 * MongoDB can recognize a repetition (Retryable Writes specification); upserts that
 * were not the first to insert a key are sent again, and go on from there.
 */
extern void mongo_write_batch_send(MongoSession *session, const char *database,
								   const char *collection,
								   const MongoWriteBatch *batch,
								   bool allow_duplicates, int64 first_row,
								   int64 rows_before,
								   const char *context_message,
								   MongoWriteResult *result);

/* A batch that has been sent, and whose reply has not been received.  Opaque. */
typedef struct MongoWriteFlight MongoWriteFlight;

/*
 * mongo_write_batch_begin
 *		Send the batch without waiting for its reply; NULL, with nothing sent, where
 *		that is not possible: in a MongoDB transaction, where libmongoc sends writes,
 *		or when it takes more than one message.
 *
 * One at a time in a session, whose other statements wait for its end.  *batch and
 * 'context_message' must stay until mongo_write_batch_finish().  It lives in
 * 'owner', whose reset gives it up: what is then not known to be written is noted
 * in the session.  Raises what interrupts bring, and 53200.
 */
extern MongoWriteFlight *mongo_write_batch_begin(MemoryContext owner,
												 MongoSession *session,
												 const char *database,
												 const char *collection,
												 const MongoWriteBatch *batch,
												 int64 first_row, int64 rows_before,
												 const char *context_message);

/*
 * mongo_write_batch_finish
 *		Wait for the reply; as mongo_write_batch_send() then.
 */
extern void mongo_write_batch_finish(MongoWriteFlight *flight, MongoWriteResult *result);

#endif							/* MONGO_FDW_BULK_WRITE_H */
