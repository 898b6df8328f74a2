/*-------------------------------------------------------------------------
 *
 * hashed_scan.h
 *		Planning scans of a correlated sub-select that may go over to a hash table.
 *
 * "column = value of the outer row" is asked for with each outer row.  A plan does
 * not know how many these are; so the scan has a second one below it, of the
 * documents for all values, which is read once when many have been asked for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_HASHED_SCAN_PLAN_H
#define MONGO_FDW_HASHED_SCAN_PLAN_H

#include "compat.h"

#include "nodes/pathnodes.h"

#include "plan_nodes.h"

/*
 * mongo_hashed_path
 *		A path of the documents for all values of the outer rows; NULL where none is
 *		compared by equality, and where these documents are said not to fit into
 *		hash_mem_multiplier times work_mem.
 */
extern Path *mongo_hashed_path(PlannerInfo *root, RelOptInfo *baserel);

/*
 * mongo_hashed_plain_path
 *		A scan with the table's restrictions that has such a path below it, and gives
 *		'target', or what the relation does if that is NULL; or NULL.
 */
extern Path *mongo_hashed_plain_path(PlannerInfo *root, RelOptInfo *baserel,
									 PathTarget *target);

/*
 * mongo_change_after
 *		How many runs of 'one' cost as much as to fetch all documents, by 'all'.
 */
extern int	mongo_change_after(const Path *all, const Path *one);

/*
 * mongo_hashed_keys
 *		The RestrictInfos that a path of mongo_hashed_path() does without; NIL for any
 *		other path.
 */
extern List *mongo_hashed_keys(const Path *path);

/*
 * mongo_hashed_conditions
 *		Of 'clauses', RestrictInfos, those that such a path is to ask MongoDB for.
 *
 * The others are tested for each row that is found in the hash table.
 */
extern List *mongo_hashed_conditions(RelOptInfo *baserel, List *clauses, const List *keys);

/*
 * mongo_hashed_describe
 *		Have 'plan' tell how the rows are hashed; returns what is to be appended to
 *		the fdw_exprs of the scan above, of which there are 'nexpressions' so far.
 */
extern List *mongo_hashed_describe(PlannerInfo *root, RelOptInfo *baserel,
								   const ForeignPath *path, int nexpressions,
								   MongoScanPlan *plan);

#endif							/* MONGO_FDW_HASHED_SCAN_PLAN_H */
