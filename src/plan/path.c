/*-------------------------------------------------------------------------
 *
 * path.c
 *		Makes ForeignPaths, for whatever relation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "options.h"

#include "optimizer/pathnode.h"

/*
 * mongo_foreign_path
 *		Returns a ForeignPath of 'rel' with this target, or with the relation's own if that is
 *		NULL.
 *
 * 'private' is fdw_private, which is one of: NIL; an IntList if LIMIT and OFFSET are pushed down;
 * a List of one List, of the RestrictInfos by which rows are hashed (see second_plan.c); or the
 * conditions on a batched join's keys, Expr *.  'outer_path' is the second plan, or NULL.
 */
Path *
mongo_foreign_path(PlannerInfo *root, RelOptInfo *rel, PathTarget *target, MongoEstimate estimate,
				   List *pathkeys, Relids required_outer, Path *outer_path, List *fdw_private)
{
	return (Path *)
		(IS_SIMPLE_REL(rel) ?
		 create_foreignscan_path(root, rel, target, estimate.rows, MONGO_NO_DISABLED_NODES
								 estimate.startup_cost, estimate.total_cost, pathkeys,
								 required_outer, outer_path, MONGO_NO_RESTRICTINFO fdw_private) :
		 create_foreign_upper_path(root, rel, target, estimate.rows, MONGO_NO_DISABLED_NODES
								   estimate.startup_cost, estimate.total_cost, pathkeys,
								   outer_path, MONGO_NO_RESTRICTINFO fdw_private));
}

/*
 * mongo_keep_out_of_workers
 *		Marks the relation's foreign paths that are not partial as not parallel safe.
 *
 * An Append is asynchronous only if it is not parallel safe, and each worker would run the whole
 * scan.  Called after paths were added: they compete as parallel safe, so that they win where
 * costs are equal.
 */
void
mongo_keep_out_of_workers(RelOptInfo *rel)
{
	foreach_ptr(Path, path, rel->pathlist)
	{
		if (IsA(path, ForeignPath))
			path->parallel_safe = false;
	}
}
