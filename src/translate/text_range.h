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

#include "bson_write.h"
#include "predicate.h"

/*
 * See append_points and render_range in comparison.h; values of the text family.  Those
 * of mongo_string_ and mongo_objectid_text_ are for columns that are declared to be
 * either.
 */
extern void mongo_text_points(const MongoPredicate *predicate, Datum value,
							  BsonArray *points);
extern void mongo_string_points(const MongoPredicate *predicate, Datum value,
								BsonArray *points);
extern void mongo_objectid_text_points(const MongoPredicate *predicate, Datum value,
									   BsonArray *points);
extern MongoMatch mongo_text_range(const MongoPredicate *predicate, Datum value,
								   bson_t *match);
extern MongoMatch mongo_string_range(const MongoPredicate *predicate, Datum value,
									 bson_t *match);
extern MongoMatch mongo_objectid_text_range(const MongoPredicate *predicate, Datum value,
											bson_t *match);

#endif							/* MONGO_FDW_TEXT_RANGE_H */
