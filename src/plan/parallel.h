/*-------------------------------------------------------------------------
 *
 * parallel.h
 *		Scans that several processes share, each reading ranges of its own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLAN_PARALLEL_H
#define MONGO_FDW_PLAN_PARALLEL_H

#include "compat.h"

#include "nodes/pathnodes.h"

/*
 * mongo_add_parallel_paths
 *		Add partial paths where the table is large enough.
 */
extern void mongo_add_parallel_paths(PlannerInfo *root, RelOptInfo *baserel);

/*
 * mongo_keep_out_of_workers
 *		Mark the relation's foreign paths that are not partial as not parallel
 *		safe.
 *
 * An Append is asynchronous only when it is not parallel safe, and each worker
 * would run the whole scan over a connection of its own.
 */
extern void mongo_keep_out_of_workers(RelOptInfo *rel);

#endif							/* MONGO_FDW_PLAN_PARALLEL_H */
