/*-------------------------------------------------------------------------
 *
 * count.h
 *		count(*) as the command count.
 *
 * The command has less to prepare than a pipeline: over a few index keys it
 * takes MongoDB two thirds of the time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COUNT_H
#define MONGO_FDW_COUNT_H

#include "compat.h"

#include "pipeline.h"

/* count(*) in two ways, each of which gives MONGO_COUNT_FIELD. */
typedef struct MongoCount
{
	Const	   *command;		/* {count: collection, query: filter} */
	Const	   *pipeline;		/* the same as an aggregate command */
} MongoCount;

/*
 * mongo_plan_count
 *		Both for count(*) over the output of 'pipeline'; NULL when MongoDB's $group has
 *		to do that.
 *
 * Without a condition the command gives what the collection's metadata says,
 * which need not be exact, and so is used only under count_from_metadata.
 */
extern const MongoCount *mongo_plan_count(const MongoRelation *relation,
										  const MongoPipeline *pipeline);

/*
 * mongo_counts_from_metadata
 *		Will count(*) over this relation be one look at the metadata?
 */
extern bool mongo_counts_from_metadata(const RelOptInfo *baserel);

#endif							/* MONGO_FDW_COUNT_H */
