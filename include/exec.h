/*-------------------------------------------------------------------------
 *
 * exec.h
 *		The callbacks of PostgreSQL's executor.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_EXEC_H
#define MONGO_FDW_EXEC_H

#include "common.h"

#include "commands/explain.h"
#include "foreign/fdwapi.h"
#include "nodes/execnodes.h"
#include "nodes/extensible.h"

/* See PostgreSQL's "Foreign Data Wrapper Callback Routines". */

/* src/exec/foreign_scan.c */
extern void mongo_begin_foreign_scan(ForeignScanState *node, int eflags);
extern TupleTableSlot *mongo_iterate_foreign_scan(ForeignScanState *node);
extern void mongo_rescan_foreign_scan(ForeignScanState *node);
extern void mongo_end_foreign_scan(ForeignScanState *node);

/* src/exec/explain.c */
extern void mongo_explain_foreign_scan(ForeignScanState *node, ExplainState *es);
extern void mongo_explain_foreign_modify(ModifyTableState *mtstate, ResultRelInfo *rinfo,
										 List *fdw_private, int subplan_index, ExplainState *es);

/* src/exec/async.c */
extern void mongo_foreign_async_request(AsyncRequest *request);
extern void mongo_foreign_async_configure_wait(AsyncRequest *request);
extern void mongo_foreign_async_notify(AsyncRequest *request);

/* src/exec/modify.c */
extern void mongo_begin_foreign_modify(ModifyTableState *mtstate, ResultRelInfo *rinfo,
									   List *fdw_private, int subplan_index, int eflags);
extern void mongo_begin_foreign_insert(ModifyTableState *mtstate, ResultRelInfo *rinfo);
extern TupleTableSlot *mongo_exec_foreign_insert(EState *estate, ResultRelInfo *rinfo,
												 TupleTableSlot *slot, TupleTableSlot *planSlot);
extern TupleTableSlot **mongo_exec_foreign_batch_insert(EState *estate, ResultRelInfo *rinfo,
														TupleTableSlot **slots,
														TupleTableSlot **planSlots, int *numSlots);
extern int	mongo_get_foreign_modify_batch_size(ResultRelInfo *rinfo);
extern TupleTableSlot *mongo_exec_foreign_update(EState *estate, ResultRelInfo *rinfo,
												 TupleTableSlot *slot, TupleTableSlot *planSlot);
extern TupleTableSlot *mongo_exec_foreign_delete(EState *estate, ResultRelInfo *rinfo,
												 TupleTableSlot *slot, TupleTableSlot *planSlot);
extern void mongo_end_foreign_modify(EState *estate, ResultRelInfo *rinfo);

/* src/exec/direct_modify.c */
extern void mongo_begin_direct_modify(ForeignScanState *node, int eflags);
extern TupleTableSlot *mongo_iterate_direct_modify(ForeignScanState *node);
extern void mongo_end_direct_modify(ForeignScanState *node);
extern void mongo_explain_direct_modify(ForeignScanState *node, ExplainState *es);
extern void mongo_exec_foreign_truncate(List *rels, DropBehavior behavior, bool restart_seqs);

/* src/exec/batched_join.c */
extern const CustomScanMethods mongo_batched_join_methods;

/* src/exec/batched_subqueries.c */
extern const CustomScanMethods mongo_batched_subqueries_methods;

#endif							/* MONGO_FDW_EXEC_H */
