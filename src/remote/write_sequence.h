/*-------------------------------------------------------------------------
 *
 * write_sequence.h
 *		A batch of writes as document sequences in messages of our own.
 *
 * What libmongoc's bulk API does: it frames the operations, makes several messages
 * of what is too much for one, and puts their replies together.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_WRITE_SEQUENCE_H
#define MONGO_FDW_WRITE_SEQUENCE_H

#include "compat.h"

#include "bulk_write.h"
#include "write_message.h"

/* maxBsonObjectSize of every MongoDB server there has been since 1.8. */
#define MONGO_LARGEST_DOCUMENT	(16 * 1024 * 1024)

/*
 * mongo_write_batch_append
 *		mongo_write_batch_add() with a limit of its own.
 */
extern void mongo_write_batch_append(MongoWriteBatch *batch, MemoryContext context,
									 const bson_t *document, uint32 limit);

/*
 * mongo_write_batch_next
 *		A view of the batch's document at *position, which moves on; false when there
 *		is none.
 */
extern bool mongo_write_batch_next(const MongoWriteBatch *batch, Size *position,
								   bson_t *view);

/*
 * mongo_write_sequence_suits
 *		Can the batch be sent so in the session, by the lease's client?  Else it is
 *		libmongoc's to send.
 */
extern bool mongo_write_sequence_suits(const MongoSession *session, MongoLease *lease,
									   const MongoWriteBatch *batch);

/* A batch being sent, in the memory context that is the current one then. */
typedef struct MongoWriteSequence
{
	MongoWriteBatch operations;
	MongoWriteMessage message;
	MongoWriteUnderWay way;
	MongoWriteReply *reply;		/* NULL: of several messages, or of upserts */
} MongoWriteSequence;

/*
 * mongo_write_sequence_send
 *		Send the batch and wait; true when every operation succeeded.
 *
 * *document, which must be empty, *error and *end become what libmongoc's bulk API
 * and mongo_write_finish() give.  Works in the current memory context.  Raises as
 * mongo_write_message_finish(), after which the lease may hold no client.
 */
extern bool mongo_write_sequence_send(MongoSession *session, MongoLease *lease,
									  const char *database, const char *collection,
									  const MongoWriteBatch *batch,
									  MongoWriteSequence *sequence, bson_t *document,
									  bson_error_t *error, MongoWriteEnd *end);

/*
 * mongo_write_sequence_copy_errors
 *		Append "writeErrors", "writeConcernErrors" and in a transaction "errorLabels",
 *		which the above leaves out so that it needs no memory, unless they are there.
 */
extern void mongo_write_sequence_copy_errors(const MongoWriteSequence *sequence,
											 bson_t *document);

/*
 * mongo_write_sequence_begin, mongo_write_sequence_finish
 *		The same in two steps; false, with nothing sent, where the batch takes more
 *		than one message.
 *
 * In between the batch, the names and *sequence must stay as they are, and so
 * must the memory context of the first step.
 */
extern bool mongo_write_sequence_begin(MongoSession *session, MongoLease *lease,
									   const char *database, const char *collection,
									   const MongoWriteBatch *batch,
									   MongoWriteSequence *sequence);
extern bool mongo_write_sequence_finish(MongoWriteSequence *sequence, bson_t *document,
										bson_error_t *error, MongoWriteEnd *end);

/*
 * mongo_write_sequence_abandon
 *		In place of the second where the statement has ended by an error: the number
 *		of documents that are known to be written (write_message.h).
 */
extern int64 mongo_write_sequence_abandon(MongoWriteSequence *sequence,
										  int milliseconds);

#endif							/* MONGO_FDW_WRITE_SEQUENCE_H */
