/*-------------------------------------------------------------------------
 *
 * join_stages.h
 *		The stages of a join: $lookup and what makes SQL's join of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JOIN_STAGES_H
#define MONGO_FDW_JOIN_STAGES_H

#include "compat.h"

#include "join.h"
#include "pipeline.h"

/*
 * mongo_append_join
 *		Append the stages of one join to a pipeline that has those of its outer
 *		side; false when a clause turns out to have no exact translation.
 */
extern bool mongo_append_join(const MongoJoin *join, MongoPipeline *pipeline);

/*
 * mongo_joined_columns
 *		Copies of the columns 'outer', and those of the join's inner table.
 */
extern MongoColumns *mongo_joined_columns(const MongoJoin *join, MongoColumns *outer);

/*
 * mongo_settle_lookups
 *		Append the stages that were kept back so that lookups stand in a row.
 */
extern void mongo_settle_lookups(MongoPipeline *pipeline);

#endif							/* MONGO_FDW_JOIN_STAGES_H */
