/*-------------------------------------------------------------------------
 *
 * plan_count.h
 *		count(*) as the command count.
 *
 * The command has less to prepare than a pipeline: over a few index keys it
 * takes MongoDB two thirds of the time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLAN_COUNT_H
#define MONGO_FDW_PLAN_COUNT_H

#include "compat.h"

#include "plan_pipeline.h"

/* The field of the command's reply that has the number. */
#define MONGO_COUNT_FIELD	"n"

/*
 * mongo_count_command
 *		{count: collection, query: filter} as a plan's command, for count(*) over
 *		the output of 'pipeline'; NULL when only a pipeline can do that.
 *
 * Without a condition the command gives what the collection's metadata says,
 * which need not be exact, and so is used only under count_from_metadata.
 */
extern Const *mongo_count_command(const MongoRelation *relation,
								  const MongoPipeline *pipeline);

/*
 * mongo_counts_from_metadata
 *		Will count(*) over this relation be one look at the metadata?
 */
extern bool mongo_counts_from_metadata(const RelOptInfo *baserel);

#endif							/* MONGO_FDW_PLAN_COUNT_H */
