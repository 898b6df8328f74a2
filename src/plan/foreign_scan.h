/*-------------------------------------------------------------------------
 *
 * foreign_scan.h
 *		The ForeignScan node of a table, a join or an upper relation.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_FOREIGN_SCAN_H
#define MONGO_FDW_FOREIGN_SCAN_H

#include "compat.h"

#include "nodes/plannodes.h"

#include "plan_nodes.h"
#include "relation.h"

/* What a ForeignScan has beside its MongoScanPlan. */
typedef struct MongoScanNode
{
	Index		scanrelid;		/* 0: of a join or an upper relation */
	List	   *tlist;
	List	   *scan_tlist;		/* what the rows consist of; NIL: the table's
								 * columns */
	List	   *local;			/* clauses that PostgreSQL tests */
	List	   *exact;			/* clauses that MongoDB alone tests */
	Plan	   *outer_plan;
} MongoScanNode;

/*
 * mongo_scan_plan_init
 *		Fill in what every scan of the relation has, and nothing else.
 */
extern void mongo_scan_plan_init(MongoScanPlan *plan, PlannerInfo *root,
								 const MongoRelation *relation);

/*
 * mongo_make_foreign_scan
 *		The node, with the expressions that 'translation' has gathered, and the
 *		query's LIMIT and OFFSET where 'limited'.
 *
 * Fills in what 'plan' has to tell of these.
 */
extern ForeignScan *mongo_make_foreign_scan(PlannerInfo *root, MongoScanPlan *plan,
											const MongoTranslation *translation,
											bool limited, const MongoScanNode *node);

/*
 * From a chosen path to the node with its command: of a foreign table, perhaps sorted
 * and limited; of a join; of an upper relation.  In the files foreign_scan_*.c.
 */
extern ForeignScan *mongo_get_table_plan(PlannerInfo *root, RelOptInfo *baserel,
										 ForeignPath *best_path, List *tlist,
										 List *scan_clauses, Plan *outer_plan);
extern ForeignScan *mongo_get_join_plan(PlannerInfo *root, RelOptInfo *joinrel,
										List *tlist, Plan *outer_plan);
extern ForeignScan *mongo_get_upper_plan(PlannerInfo *root, RelOptInfo *upper_rel,
										 ForeignPath *best_path, List *tlist,
										 Plan *outer_plan);

#endif							/* MONGO_FDW_FOREIGN_SCAN_H */
