/*-------------------------------------------------------------------------
 *
 * plan_order.h
 *		ORDER BY in MongoDB, where its order is PostgreSQL's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLAN_ORDER_H
#define MONGO_FDW_PLAN_ORDER_H

#include "compat.h"

#include "nodes/pathnodes.h"

/*
 * mongo_order_is_shippable
 *		Can a scan of 'baserel' deliver rows in the order of 'pathkeys'?
 *
 * *indexed tells whether an index can, so that nothing need be sorted.
 */
extern bool mongo_order_is_shippable(RelOptInfo *baserel, List *pathkeys,
									 bool *indexed);

/*
 * mongo_append_sort
 *		Append the "sort" of a find command.  The pathkeys must have been found
 *		shippable.
 */
extern void mongo_append_sort(RelOptInfo *baserel, List *pathkeys, bson_t *command);

#endif							/* MONGO_FDW_PLAN_ORDER_H */
