/*-------------------------------------------------------------------------
 *
 * derive.h
 *		How pipelines over one table begin: what makes its rows, and what tests
 *		them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DERIVE_H
#define MONGO_FDW_DERIVE_H

#include "compat.h"

#include "clauses.h"
#include "pipeline.h"

/*
 * mongo_pipeline_derive
 *		Append the stages that make the rows of the relation's table, if it is a
 *		derived one, and a $match of what 'clauses' has for MongoDB to test.
 *
 * Where arrays are unwound, each condition is tested as soon as its columns are
 * there.  Those on elements also narrow the documents before, as far as indexes may
 * serve that.  Raises what mongo_append_pipeline() does.
 */
extern void mongo_pipeline_derive(MongoPipeline *pipeline, const MongoRelation *relation,
								  const MongoScanClauses *clauses);

#endif							/* MONGO_FDW_DERIVE_H */
