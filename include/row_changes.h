/*-------------------------------------------------------------------------
 *
 * row_changes.h
 *		What differs between the old and the new value of a nested column, as
 *		update operators that leave the rest of it alone.
 *
 * An expression such as jsonb_set(j, '{a}', '1') gives a whole new value.
 * Written whole it would give every number in it the type that SQL's value
 * stands for, and a composite would lose the fields that it does not have.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ROW_CHANGES_H
#define MONGO_FDW_ROW_CHANGES_H

#include "compat.h"

/* The members of an update's operators, to be filled; none is NULL. */
typedef struct MongoUpdateOperators
{
	bson_t	   *set;			/* {path: value} */
	bson_t	   *unset;			/* {path: true} */
	bson_t	   *push;			/* {path: {$each: [], $slice: length}} */
} MongoUpdateOperators;

/*
 * mongo_is_nested_type
 *		Do values of this type, or domain, have parts: jsonb, arrays, composites?
 *
 * json is not among them: its text keeps the order of its keys, which a change
 * in place would not.
 */
extern bool mongo_is_nested_type(Oid typid);

/*
 * mongo_append_changes
 *		Append what turns the field at 'path' from 'old' to 'new', both not NULL
 *		and of this nested type; false when it must be written whole, and
 *		nothing has been appended.
 *
 * Where that can be said with paths, parts that are equal to the byte in SQL
 * are not written.  Elements that move within an array are, and so is an object
 * with a key that a path cannot name ("a.b", "$a") where such a key changes, as
 * well as Extended JSON's wrappers ({"$date": ...}), which are one value.
 * Raises what encoding raises.
 */
extern bool mongo_append_changes(MongoUpdateOperators *operators, const char *path,
								 Datum old, Datum new, Oid typid, int32 typmod);

#endif							/* MONGO_FDW_ROW_CHANGES_H */
