/*-------------------------------------------------------------------------
 *
 * path_list.h
 *		Options that are lists: "lines, lines.parts".
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PATH_LIST_H
#define MONGO_FDW_PATH_LIST_H

#include "compat.h"

#include "nodes/pg_list.h"

/*
 * mongo_split_list
 *		The parts between the commas, without the blanks around them, as char *; NIL
 *		for NULL.  Parts may be empty.  Palloc'd in the current memory context.
 */
extern List *mongo_split_list(const char *value);

/*
 * mongo_path_is_under
 *		Is 'path' the same field as 'parent', or one inside it?
 */
extern bool mongo_path_is_under(const char *path, const char *parent);

#endif							/* MONGO_FDW_PATH_LIST_H */
