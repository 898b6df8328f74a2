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

/* Of Extended JSON's wrappers, that whose text within a field is meant. */
typedef enum MongoJsonWrapper
{
	MONGO_WRAPPER_NONE,			/* the field itself */
	MONGO_WRAPPER_OID,
	MONGO_WRAPPER_DATE,
	MONGO_WRAPPER_DECIMAL
} MongoJsonWrapper;

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

/*
 * mongo_append_within_arrays
 *		Append to the branches of an $or: the field is an array in which is something
 *		that is neither null nor of the class whose least value is 'least', so that it
 *		may be another array.
 */
extern void mongo_append_within_arrays(BsonArray *branches, const char *path,
									   bson_value_t least);

#endif							/* MONGO_FDW_PATH_H */
