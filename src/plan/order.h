/*-------------------------------------------------------------------------
 *
 * order.h
 *		ORDER BY in MongoDB, where its order is PostgreSQL's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ORDER_H
#define MONGO_FDW_ORDER_H

#include "compat.h"

#include "nodes/pathnodes.h"

/*
 * A part of the rows that MongoDB sorts as PostgreSQL does.
 *
 * MongoDB puts null below every value and NaN below every number; PostgreSQL
 * puts NaN above every number and NULL where the query says.  Where that
 * differs for the first key, the scan is made of several commands, one after
 * the other, each of which an index can serve.
 */
typedef enum MongoSortPart
{
	MONGO_SORT_ALL,
	MONGO_SORT_NULL,			/* the first key is NULL: only the others
								 * count */
	MONGO_SORT_NAN,				/* ... is NaN: likewise */
	MONGO_SORT_VALUES			/* ... is neither */
} MongoSortPart;

#define MONGO_MAX_SORT_PARTS	3

/* As many keys as a sort or a compound index may have. */
#define MONGO_MAX_SORT_KEYS		32

/*
 * mongo_sort_parts
 *		The parts in which shippable pathkeys are to be sorted, in their order;
 *		returns how many.
 */
extern int	mongo_sort_parts(RelOptInfo *baserel, List *pathkeys,
							 MongoSortPart parts[MONGO_MAX_SORT_PARTS]);

/*
 * mongo_append_sort_condition
 *		Append to 'match' what restricts a command to the part; nothing for
 *		MONGO_SORT_ALL.
 */
extern void mongo_append_sort_condition(RelOptInfo *baserel, List *pathkeys,
										MongoSortPart part, bson_t *match);

/*
 * mongo_order_is_shippable
 *		Can a scan of 'baserel' deliver rows in the order of 'pathkeys'?
 */
extern bool mongo_order_is_shippable(RelOptInfo *baserel, List *pathkeys);

/*
 * mongo_order_is_indexed
 *		Does an index give that order, of shippable pathkeys, so that nothing need be
 *		sorted?
 *
 * *examined_rows is then how many documents MongoDB looks at by it.
 */
extern bool mongo_order_is_indexed(PlannerInfo *root, RelOptInfo *baserel,
								   List *pathkeys, double *examined_rows);

/*
 * mongo_order_is_by
 *		Is the first of shippable pathkeys this field?
 */
extern bool mongo_order_is_by(RelOptInfo *baserel, List *pathkeys,
							  const char *path);

/*
 * mongo_append_sort
 *		Append the "sort" of a find command, if the part needs one.  The pathkeys
 *		must have been found shippable.
 */
extern void mongo_append_sort(RelOptInfo *baserel, List *pathkeys,
							  MongoSortPart part, bson_t *command);

#endif							/* MONGO_FDW_ORDER_H */
