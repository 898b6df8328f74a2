/*-------------------------------------------------------------------------
 *
 * path.h
 *		Paths to fields: what find's language makes of them.
 *
 * A path is in UTF-8, its components separated by dots.  find's language looks
 * into arrays on the way and at its end, which SQL does not.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PATH_H
#define MONGO_FDW_PATH_H

#include "compat.h"

#include "bson_write.h"

/*
 * mongo_path_is_addressable
 *		Can find's language name this path at all?
 *
 * False for empty components, for those that begin with '$', and for more
 * components than a stored document has levels.
 */
extern bool mongo_path_is_addressable(const char *path);

/*
 * mongo_path_has_index
 *		Does a component of the path consist of digits, so that it may reach
 *		into an array?
 */
extern bool mongo_path_has_index(const char *path);

/* In place of the number of an element of an array. */
#define MONGO_ANY_ELEMENT	(-1)

/*
 * mongo_append_no_arrays
 *		Append to the conditions that the path goes through no array and leads to
 *		none.
 *
 * mongo_append_no_parent_arrays
 *		That it goes through none.
 */
extern void mongo_append_no_arrays(BsonArray *conditions, const char *path);
extern void mongo_append_no_parent_arrays(BsonArray *conditions, const char *path);

#endif							/* MONGO_FDW_PATH_H */
