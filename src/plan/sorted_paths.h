/*-------------------------------------------------------------------------
 *
 * sorted_paths.h
 *		Paths over one foreign table that give its rows in an order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SORTED_PATHS_H
#define MONGO_FDW_SORTED_PATHS_H

#include "compat.h"

#include "nodes/pathnodes.h"

/*
 * mongo_add_sorted_paths
 *		Add scans in the order that the query wants at its end, and in orders that an
 *		index has: the first columns of that one, and those by which the table may be
 *		merged with another.
 */
extern void mongo_add_sorted_paths(PlannerInfo *root, RelOptInfo *baserel);

#endif							/* MONGO_FDW_SORTED_PATHS_H */
