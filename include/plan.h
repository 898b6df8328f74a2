/*-------------------------------------------------------------------------
 *
 * plan.h
 *		Planning: what PostgreSQL's planner calls.
 *
 * FDW callbacks; see PostgreSQL's "Foreign Data Wrapper Callback Routines".
 * Planning sends nothing to MongoDB, with one exception that a user asks for:
 * use_remote_estimate.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLAN_H
#define MONGO_FDW_PLAN_H

#include "compat.h"

#include "foreign/fdwapi.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* src/plan/relation.c */
extern void mongo_get_foreign_rel_size(PlannerInfo *root, RelOptInfo *baserel,
									   Oid foreigntableid);

/* src/plan/paths.c */
extern void mongo_get_foreign_paths(PlannerInfo *root, RelOptInfo *baserel,
									Oid foreigntableid);

/*
 * src/plan/join.c: offers the join as one command, where it is exact.  Of several
 * ways to make the same join, the relation's fdw_private describes the cheapest.
 */
extern void mongo_get_foreign_join_paths(PlannerInfo *root, RelOptInfo *joinrel,
										 RelOptInfo *outerrel, RelOptInfo *innerrel,
										 JoinType jointype, JoinPathExtraData *extra);

/* src/plan/dispatch.c */
extern void mongo_get_foreign_upper_paths(PlannerInfo *root,
										  UpperRelationKind stage,
										  RelOptInfo *input_rel,
										  RelOptInfo *output_rel, void *extra);
extern ForeignScan *mongo_get_foreign_plan(PlannerInfo *root, RelOptInfo *foreignrel,
										   Oid foreigntableid,
										   ForeignPath *best_path, List *tlist,
										   List *scan_clauses, Plan *outer_plan);
extern bool mongo_is_foreign_path_async_capable(ForeignPath *path);

/*
 * src/plan/parallel.c: may parallel workers read this table?
 *
 * Not where the isolation level asks for one snapshot: a worker's connection is
 * not in the MongoDB transaction.  Transactions that are there for another reason
 * when the scan is executed are dealt with by src/exec/parallel.c.
 */
extern bool mongo_is_foreign_scan_parallel_safe(PlannerInfo *root, RelOptInfo *rel,
												RangeTblEntry *rte);

/*
 * src/plan/modify.c.  An UPDATE's plan holds in fdw_private the attributes that it
 * assigns; it is NIL for the others.
 */
extern void mongo_add_foreign_update_targets(PlannerInfo *root, Index rtindex,
											 RangeTblEntry *target_rte,
											 Relation target_relation);
extern List *mongo_plan_foreign_modify(PlannerInfo *root, ModifyTable *plan,
									   Index resultRelation, int subplan_index);
extern int	mongo_is_foreign_rel_updatable(Relation rel);

/*
 * src/plan/direct_modify.c: UPDATE and DELETE as one command.
 *
 * Possible where MongoDB alone decides which documents are meant, and what
 * they become is known beforehand or is a sum with a column's own value.
 * A document whose tested fields do not fit their columns cannot be read, and
 * is not touched either: the filter goes with guards for that.
 *
 * With RETURNING it is findAndModify, which gives back one document, so the
 * filter must be one that cannot mean several.
 */
extern bool mongo_plan_direct_modify(PlannerInfo *root, ModifyTable *plan,
									 Index resultRelation, int subplan_index);

/*
 * mongo_install_batched_joins
 *		Have the planner consider batched joins from now on, to be executed by
 *		these methods.  Called once, by _PG_init().
 *
 * src/plan/batched_join.c.  A nested loop over 10,000 rows with a foreign table
 * inside is 10,000 finds.  This join, a CustomScan, reads a batch of outer rows, asks
 * for all documents with any of their keys by one find ($in), and joins them in
 * PostgreSQL.  Nothing rests on what MongoDB takes for equal: all clauses are
 * evaluated on each pair of rows that the keys' hashes bring together.
 *
 * Its plan has two children: the outer plan, and a foreign scan with the
 * additional condition "key = ANY (keys)".  The keys are no parameter that
 * PostgreSQL knows: a CaseTestExpr stands for them, whose value is in the scan's
 * expression context.
 */
extern void mongo_install_batched_joins(const CustomScanMethods *methods);

#endif							/* MONGO_FDW_PLAN_H */
