/*-------------------------------------------------------------------------
 *
 * json_text.h
 *		Conditions on the text of what is inside json: ->> and #>>.
 *
 * All of them are supersets, as those of json_condition.h are.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_TEXT_H
#define MONGO_FDW_JSON_TEXT_H

#include "compat.h"

#include "bson_write.h"
#include "predicate.h"

/* See render_range in comparison.h: the field's text, and a value of type text. */
extern MongoMatch mongo_json_text_range(const MongoPredicate *predicate,
										Datum value, bson_t *match);

/* As mongo_json_text_range() for the form BETWEEN, see two_bounds.h: two values. */
extern MongoMatch mongo_json_text_between(const MongoPredicate *predicate,
										  const Datum values[2], bson_t *match);

/*
 * mongo_append_other_json
 *		Append to the branches of an $or where the field is no String and may_begin()
 *		says that a text may begin as its text does.
 */
extern void mongo_append_other_json(BsonArray *branches, const char *path,
									bool (*may_begin) (const void *context, char first),
									const void *context);

#endif							/* MONGO_FDW_JSON_TEXT_H */
