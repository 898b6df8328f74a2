/*-------------------------------------------------------------------------
 *
 * path_plans.h
 *		From a chosen path to a ForeignScan with its command: table_plan.c,
 *		join_plan.c and upper_plan.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PATH_PLANS_H
#define MONGO_FDW_PATH_PLANS_H

#include "compat.h"

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* Of a foreign table, perhaps sorted and limited. */
extern ForeignScan *mongo_get_table_plan(PlannerInfo *root, RelOptInfo *baserel,
										 ForeignPath *best_path, List *tlist,
										 List *scan_clauses, Plan *outer_plan);

/* Of a join. */
extern ForeignScan *mongo_get_join_plan(PlannerInfo *root, RelOptInfo *joinrel,
										List *tlist, Plan *outer_plan);

/* Of an upper relation. */
extern ForeignScan *mongo_get_upper_plan(PlannerInfo *root, RelOptInfo *upper_rel,
										 List *tlist, Plan *outer_plan);

#endif							/* MONGO_FDW_PATH_PLANS_H */
