/*-------------------------------------------------------------------------
 *
 * plan_pipeline.h
 *		Pipelines in the making: the stages below joins and upper relations.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLAN_PIPELINE_H
#define MONGO_FDW_PLAN_PIPELINE_H

#include "compat.h"

#include "nodes/pathnodes.h"

#include "condition.h"
#include "plan.h"

/*
 * The stages so far, and how an expression over what they give is translated.
 *
 * translation.columns are the tables whose documents the last stage gives
 * (NULL when a $group has ended them), translation.computed what it computed.
 */
typedef struct MongoPipeline
{
	MongoTranslation translation;
	bson_t	   *stages;			/* an array's elements, "0" and so on */
	int			nstages;
	bool		may_need_disk;	/* a stage may hold more than 100 MB */

	/* used by plan_join.h alone, and settled before anything else is appended */
	List	   *held;			/* stages to come after lookups in a row */
	List	   *arrays;			/* prefixes under which several documents are */
} MongoPipeline;

/*
 * mongo_is_pipeline_input
 *		Can the rows of this relation be had as the output of pipeline stages,
 *		with nothing left to check here?
 *
 * True for a foreign table and a join whose restrictions all have exact
 * translations (MongoRelation), where nothing is lateral and type mismatches are errors.
 */
extern bool mongo_is_pipeline_input(PlannerInfo *root, RelOptInfo *rel);

/*
 * mongo_pipeline_cost
 *		What the stages of such a relation take MongoDB, sending nothing.
 */
extern void mongo_pipeline_cost(RelOptInfo *rel,
								Cost *startup_cost, Cost *total_cost);

/*
 * mongo_pipeline_begin
 *		Start a pipeline with the stages of such a relation.
 */
extern void mongo_pipeline_begin(RelOptInfo *rel, MongoPipeline *pipeline);

/*
 * mongo_pipeline_append
 *		Append the stage {name: specification}.
 */
extern void mongo_pipeline_append(MongoPipeline *pipeline, const char *name,
								  const bson_t *specification);

/*
 * mongo_pipeline_project
 *		Append the $project that lets the fields at 'paths' (char *) through.
 *
 * Nothing where a path cannot be named: all fields come then.
 */
extern void mongo_pipeline_project(MongoPipeline *pipeline, List *paths);

/*
 * mongo_pipeline_command
 *		{aggregate: collection, pipeline: [...], cursor: {}} as a plan's command.
 */
extern Const *mongo_pipeline_command(const MongoRelation *relation,
									 const MongoPipeline *pipeline);

#endif							/* MONGO_FDW_PLAN_PIPELINE_H */
