/*-------------------------------------------------------------------------
 *
 * key_batch.h
 *		The keys of a batch of outer rows: their hash values, and what is asked for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_KEY_BATCH_H
#define MONGO_FDW_KEY_BATCH_H

#include "compat.h"

#include "nodes/execnodes.h"
#include "plan_nodes.h"

/* Opaque. */
typedef struct MongoKeyBatch MongoKeyBatch;

/*
 * mongo_key_batch_create
 *		For a join whose keys are these expressions over a pair of its rows, which
 *		'parent' has as its scan tuple.  Lives in the current memory context.
 */
extern MongoKeyBatch *mongo_key_batch_create(const MongoBatchedJoin *join, List *outer,
											 List *inner, PlanState *parent);

/*
 * mongo_key_batch_begin
 *		Forget all keys, for a batch of so many rows at most, in 'context'; what was
 *		added before must be in no use any more.
 */
extern void mongo_key_batch_begin(MongoKeyBatch *batch, MemoryContext context, int rows);

/*
 * mongo_key_batch_evaluate
 *		The keys of one side of the pair, in the per-tuple memory, and the hash value of
 *		all; false when the row meets no other, since one of its keys is NULL or too
 *		large for a document.
 *
 * Equal keys have the same hash value, whatever side they are of.
 */
extern bool mongo_key_batch_evaluate(MongoKeyBatch *batch, ExprContext *econtext,
									 bool is_outer, uint32 *hash);

/*
 * mongo_key_batch_size_in_hand, mongo_key_batch_size
 *		The bytes of the outer keys that were evaluated last, and of all that have been
 *		added, as far as they are asked for; of each value once.
 */
extern Size mongo_key_batch_size_in_hand(const MongoKeyBatch *batch);
extern Size mongo_key_batch_size(const MongoKeyBatch *batch);

/* mongo_key_batch_add: ask also for the outer keys that were evaluated last. */
extern void mongo_key_batch_add(MongoKeyBatch *batch);

/*
 * mongo_key_batch_record
 *		A record of an array for each key that is asked for, of its distinct values:
 *		what the CaseTestExpr of the inner plan stands for.
 */
extern Datum mongo_key_batch_record(MongoKeyBatch *batch);

#endif							/* MONGO_FDW_KEY_BATCH_H */
