/*-------------------------------------------------------------------------
 *
 * modify.h
 *		INSERT, COPY, UPDATE, DELETE and TRUNCATE of foreign tables.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_MODIFY_H
#define MONGO_FDW_MODIFY_H

#include "compat.h"

#include "commands/explain.h"
#include "foreign/fdwapi.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "storage/itemptr.h"

/*
 * FDW callbacks; see PostgreSQL's "Foreign Data Wrapper Callback Routines".
 */

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
 * mongo_whole_row_is_junk
 *		Is the whole row wanted of this scan by nobody but the UPDATE or DELETE
 *		that core adds it for?
 *
 * Then what takes part in that is added to *attributes, as pull_varattnos()
 * counts them: the columns in RETURNING.  Others may read as NULL.
 */
extern bool mongo_whole_row_is_junk(PlannerInfo *root, RelOptInfo *baserel,
									Bitmapset **attributes);

/* src/exec/modify.c */
extern void mongo_begin_foreign_modify(ModifyTableState *mtstate,
									   ResultRelInfo *rinfo, List *fdw_private,
									   int subplan_index, int eflags);
extern void mongo_begin_foreign_insert(ModifyTableState *mtstate,
									   ResultRelInfo *rinfo);
extern TupleTableSlot *mongo_exec_foreign_insert(EState *estate, ResultRelInfo *rinfo,
												 TupleTableSlot *slot,
												 TupleTableSlot *planSlot);
extern TupleTableSlot **mongo_exec_foreign_batch_insert(EState *estate,
														ResultRelInfo *rinfo,
														TupleTableSlot **slots,
														TupleTableSlot **planSlots,
														int *numSlots);
extern int	mongo_get_foreign_modify_batch_size(ResultRelInfo *rinfo);
extern TupleTableSlot *mongo_exec_foreign_update(EState *estate, ResultRelInfo *rinfo,
												 TupleTableSlot *slot,
												 TupleTableSlot *planSlot);
extern TupleTableSlot *mongo_exec_foreign_delete(EState *estate, ResultRelInfo *rinfo,
												 TupleTableSlot *slot,
												 TupleTableSlot *planSlot);
extern void mongo_end_foreign_modify(EState *estate, ResultRelInfo *rinfo);
extern void mongo_explain_foreign_modify(ModifyTableState *mtstate,
										 ResultRelInfo *rinfo, List *fdw_private,
										 int subplan_index, ExplainState *es);

/* src/exec/truncate.c */
extern void mongo_exec_foreign_truncate(List *rels, DropBehavior behavior,
										bool restart_seqs);

#endif							/* MONGO_FDW_MODIFY_H */
