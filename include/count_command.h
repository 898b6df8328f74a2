/*-------------------------------------------------------------------------
 *
 * count_command.h
 *		The command count, and the pipeline for where it is refused.
 *
 * https://www.mongodb.com/docs/manual/reference/command/count/
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COUNT_COMMAND_H
#define MONGO_FDW_COUNT_COMMAND_H

#include "compat.h"

/*
 * mongo_is_count
 *		Is this {count: ...}?
 */
extern bool mongo_is_count(const bson_t *command);

/*
 * mongo_count_is_inexact
 *		Does the command have a query that is met by every document?
 *
 * MongoDB would then count by the collection's metadata.  One that has no query
 * at all was meant so.
 */
extern bool mongo_count_is_inexact(const bson_t *command);

/*
 * mongo_reads_snapshot
 *		Is {readConcern: {level: ...}} (or NULL) one that "count" does not take?
 */
extern bool mongo_reads_snapshot(const bson_t *read_concern);

/*
 * mongo_count_as_pipeline
 *		{aggregate: collection, pipeline: [{$match}, {$count: "n"}]} for a count
 *		command, in 'context'.
 */
extern bson_t *mongo_count_as_pipeline(MemoryContext context, const bson_t *command);

#endif							/* MONGO_FDW_COUNT_COMMAND_H */
