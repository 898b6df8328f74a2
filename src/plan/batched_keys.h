/*-------------------------------------------------------------------------
 *
 * batched_keys.h
 *		By which keys a batched join finds documents, and what that costs.
 *
 * See mongo_install_batched_joins().  Of several columns that are equal, one field may
 * be asked for, or several: each by a list of its own, so that documents come whose
 * combination of values no outer row has.  The hashes of all keys tell these apart.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_BATCHED_KEYS_H
#define MONGO_FDW_BATCHED_KEYS_H

#include "compat.h"

#include "nodes/pathnodes.h"

typedef struct MongoBatchedKeys
{
	List	   *outer;			/* Expr *, one for each key; those that are
								 * asked for come first */
	List	   *inner;			/* Expr *, fields of the inner table */
	List	   *columns;		/* MongoBatchedColumn *, of each */
	List	   *conditions;		/* Expr *, what MongoDB is asked for */
	bool		indexed;		/* an index finds these documents */
	double		found;			/* documents that come, in all batches */
	Cost		cost;			/* of asking and of their coming */
} MongoBatchedKeys;

/*
 * mongo_find_batched_keys
 *		The keys among a join's clauses (RestrictInfo), and the cheapest way to ask for
 *		those of the outer path's rows; false when there is none.
 */
extern bool mongo_find_batched_keys(PlannerInfo *root, const Path *outer, RelOptInfo *innerrel,
									List *clauses, MongoBatchedKeys *keys);

/* mongo_batches: how many finds are sent for so many outer rows. */
extern double mongo_batches(double outer_rows);

#endif							/* MONGO_FDW_BATCHED_KEYS_H */
