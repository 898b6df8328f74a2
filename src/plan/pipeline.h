/*-------------------------------------------------------------------------
 *
 * pipeline.h
 *		Pipelines in the making.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PIPELINE_H
#define MONGO_FDW_PIPELINE_H

#include "compat.h"

#include "condition.h"
#include "relation.h"

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
	const bson_t *only_match;	/* the filter, if all is one $match; or NULL */
	bool		may_need_disk;	/* a stage may hold more than 100 MB */

	/*
	 * used by join_stages.c alone, and settled before anything else is
	 * appended
	 */
	List	   *held;			/* stages to come after lookups in a row */
	List	   *arrays;			/* prefixes under which several documents are */
} MongoPipeline;

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

#endif							/* MONGO_FDW_PIPELINE_H */
