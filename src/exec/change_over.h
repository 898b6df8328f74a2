/*-------------------------------------------------------------------------
 *
 * change_over.h
 *		A scan in a correlated sub-select that goes over to its second plan.
 *
 * MongoDB is asked for the rows of one value after the other, as the sub-select is
 * begun with them.  After some of them all documents are fetched, once, into a hash
 * table: by the second plan itself, or, where MongoDB groups, sorts or limits the
 * rows, by a scan that is below it.  See src/plan/hashed_scan.h and local_plan.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CHANGE_OVER_H
#define MONGO_FDW_CHANGE_OVER_H

#include "compat.h"

#include "nodes/execnodes.h"

/*
 * mongo_change_over_init
 *		Have a scan that begins know after how many values it goes over, if ever.
 */
extern void mongo_change_over_init(ForeignScanState *node);

/*
 * mongo_change_over
 *		With other values of the parameters: do the rows come from the second plan?
 *
 * If so, it has been begun with these values.  Raises what scans do.  To fetch all is
 * tried once; in vain if mongo_hashed_scan_create() says so.
 */
extern bool mongo_change_over(ForeignScanState *node);

/*
 * mongo_changed_row
 *		The next row of the second plan; an empty slot at the end.
 */
extern TupleTableSlot *mongo_changed_row(ForeignScanState *node);

#endif							/* MONGO_FDW_CHANGE_OVER_H */
