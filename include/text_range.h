/*-------------------------------------------------------------------------
 *
 * text_range.h
 *		Comparing columns of the text family, which read Strings and ObjectIds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TEXT_RANGE_H
#define MONGO_FDW_TEXT_RANGE_H

#include "compat.h"

#include "predicate.h"

/* See append_points and render_range in comparison.h; values of the text family. */
extern int	mongo_text_points(const MongoPredicate *predicate, Datum value,
							  bson_t *array, int index);
extern MongoMatch mongo_text_range(const MongoPredicate *predicate, Datum value,
								   bson_t *match);

#endif							/* MONGO_FDW_TEXT_RANGE_H */
