/*-------------------------------------------------------------------------
 *
 * nan_bound.h
 *		Which columns are not NaN where a list of conditions holds?
 *
 * NaN is above all numbers in PostgreSQL, and no comparison with a number finds it in
 * MongoDB, so that "x > 5" has to ask for it by an $or.  Beside "x < 9" that is
 * needless: two plain bounds are tested faster, and are one range of an index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_NAN_BOUND_H
#define MONGO_FDW_NAN_BOUND_H

#include "compat.h"

#include "nodes/pg_list.h"

/*
 * mongo_columns_without_nan
 *		The columns, as Vars, that an upper bound among the conditions keeps from
 *		being NaN.
 *
 * 'conditions', expressions or RestrictInfos, must all hold.  The Vars are theirs.
 */
extern List *mongo_columns_without_nan(List *conditions);

/*
 * mongo_is_without_nan
 *		Is 'node' one of these columns?
 */
extern bool mongo_is_without_nan(List *columns, Node *node);

#endif							/* MONGO_FDW_NAN_BOUND_H */
