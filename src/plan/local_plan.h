/*-------------------------------------------------------------------------
 *
 * local_plan.h
 *		What PostgreSQL does in MongoDB's place in a correlated sub-select that has
 *		been asked for many values.
 *
 * An aggregate, an ORDER BY or a LIMIT over one table is a command for each value of the
 * outer row.  So its scan has a second plan below it: the same over a scan of the
 * table that finds the rows of a value in a hash table (hashed_scan.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_LOCAL_PLAN_PATH_H
#define MONGO_FDW_LOCAL_PLAN_PATH_H

#include "compat.h"

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "foreign_scan.h"
#include "upper.h"

/*
 * mongo_local_aggregate
 *		A path that gives the outputs of 'upper', a group over a table; NULL where the
 *		table has no hash table for the query.
 */
extern Path *mongo_local_aggregate(PlannerInfo *root, RelOptInfo *grouped_rel,
								   const MongoUpperRelation *upper,
								   const GroupPathExtraData *extra);

/*
 * mongo_local_order
 *		A path that gives the table's columns in these expressions in an order, unless
 *		pathkeys is NIL, and only as many rows as LIMIT and OFFSET say if 'limited';
 *		or NULL.
 */
extern Path *mongo_local_order(PlannerInfo *root, RelOptInfo *baserel, List *expressions,
							   List *pathkeys, bool limited);

/*
 * mongo_local_sort, mongo_local_limit
 *		What the query's ORDER BY, or LIMIT and OFFSET, make of upper->local, if there
 *		is one.  Before there is a group, that is a path that gives these expressions'
 *		columns.
 */
extern Path *mongo_local_sort(PlannerInfo *root, RelOptInfo *ordered_rel,
							  const MongoUpperRelation *upper, List *expressions);
extern Path *mongo_local_limit(PlannerInfo *root, RelOptInfo *output_rel,
							   const MongoUpperRelation *upper);

/*
 * mongo_local_describe
 *		Have 'plan' tell when its scan, of this path, goes over to 'local', and which
 *		of its columns are those of 'node'.
 */
extern void mongo_local_describe(const ForeignPath *path, const Plan *local,
								 const MongoScanNode *node, MongoScanPlan *plan);

#endif							/* MONGO_FDW_LOCAL_PLAN_PATH_H */
