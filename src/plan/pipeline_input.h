/*-------------------------------------------------------------------------
 *
 * pipeline_input.h
 *		What a pipeline begins with: the stages of a foreign table or a join.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PIPELINE_INPUT_H
#define MONGO_FDW_PIPELINE_INPUT_H

#include "compat.h"

#include "pipeline.h"

/*
 * mongo_has_pseudoconstant
 *		Is there a clause without columns among these?
 *
 * It becomes a Result above the scan, which joins and upper relations that are made
 * by MongoDB would not have.
 */
extern bool mongo_has_pseudoconstant(const List *rinfos);

/*
 * mongo_is_pipeline_input
 *		Can the rows of this relation be had as the output of pipeline stages,
 *		with nothing left for PostgreSQL to test?
 *
 * True for a foreign table and a join whose restrictions all have exact
 * translations (MongoRelation), where nothing is lateral and type mismatches are errors.
 */
extern bool mongo_is_pipeline_input(PlannerInfo *root, RelOptInfo *rel);

/*
 * mongo_pipeline_begin
 *		Start a pipeline with the stages of such a relation.
 */
extern void mongo_pipeline_begin(RelOptInfo *rel, MongoPipeline *pipeline);

#endif							/* MONGO_FDW_PIPELINE_INPUT_H */
