/*-------------------------------------------------------------------------
 *
 * long_list.h
 *		Lists of values that are longer than a command may be.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_LONG_LIST_H
#define MONGO_FDW_LONG_LIST_H

#include "predicate.h"

/*
 * mongo_predicate_render_span
 *		Append to 'match' a superset of an ANY or ALL predicate that is too long:
 *		from the least to the greatest of the array's values, or everything.
 *
 * The array, not NULL, has values that are not NULL.
 */
extern void mongo_predicate_render_span(const MongoPredicate *predicate, Datum value,
										bson_t *match);

#endif							/* MONGO_FDW_LONG_LIST_H */
