/*-------------------------------------------------------------------------
 *
 * read_paths.h
 *		What of a table's columns a query reads.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_READ_PATHS_H
#define MONGO_FDW_READ_PATHS_H

#include "compat.h"

#include "nodes/pathnodes.h"

/*
 * mongo_read_paths
 *		The paths, char *, of what is read of the columns with these attribute numbers;
 *		NIL if only the whole document will do.  'has_json': is one json or jsonb?
 *
 * Where a query asks for nothing of a json column but what stands under certain keys, as
 * by j ->> 'a', these are enough: without what stands beside them, the accessors give
 * the same.  *narrowed has the numbers of such columns.
 */
extern List *mongo_read_paths(PlannerInfo *root, RelOptInfo *baserel, List *attributes,
							  bool has_json, Bitmapset **narrowed);

#endif							/* MONGO_FDW_READ_PATHS_H */
