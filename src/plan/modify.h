/*-------------------------------------------------------------------------
 *
 * modify.h
 *		What scans below an UPDATE or DELETE must read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLAN_MODIFY_H
#define MONGO_FDW_PLAN_MODIFY_H

#include "compat.h"

#include "nodes/pathnodes.h"

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

/*
 * mongo_update_may_leave_partition
 *		Does the UPDATE assign to a column that the bounds of this partition ask for?
 */
extern bool mongo_update_may_leave_partition(PlannerInfo *root, Index rtindex);

#endif							/* MONGO_FDW_PLAN_MODIFY_H */
