/*-------------------------------------------------------------------------
 *
 * guards.h
 *		"What these conditions read fits its columns", as a part of a filter.
 *
 * A filter may match a document whose fields cannot be read: an array that holds
 * the value, a number with a fraction.  What is read becomes an error then.  Where
 * a document is to be changed unread, or may not be told of, it is not to be
 * matched at all.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_GUARDS_H
#define MONGO_FDW_GUARDS_H

#include "compat.h"

#include "columns.h"

/*
 * mongo_append_guards
 *		Append to 'conditions', from 'index' on, that the columns of 'quals', a list
 *		of clauses, fit; once for each column.
 *
 * For columns that are only compared by equality, what is appended is that no
 * array is matched.  Returns the next index, or -1 when find's language, with
 * $expr only where 'use_expressions', cannot say that of a column; 'conditions' is
 * left in any state then.
 */
extern int	mongo_append_guards(bson_t *conditions, int index, MongoColumns *columns,
								List *quals, bool use_expressions);

#endif							/* MONGO_FDW_GUARDS_H */
