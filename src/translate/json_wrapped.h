/*-------------------------------------------------------------------------
 *
 * json_wrapped.h
 *		Conditions on the text within a wrapper of Extended JSON: j -> 'a' ->> '$date'.
 *
 * A Date inside json is {"$date": "..."}, so that is how a query gets at it; ObjectIds
 * and Decimal128s likewise.  An index finds the values themselves.  A document that
 * has such a key of its own looks the same and is matched as well.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_WRAPPED_H
#define MONGO_FDW_JSON_WRAPPED_H

#include "compat.h"

#include "predicate.h"

/*
 * mongo_wrapped_grade, mongo_render_wrapped
 *		A predicate with a wrapper, on its text or what that is cast to: see
 *		mongo_predicate_grade() and mongo_predicate_render().  Supersets.
 */
extern MongoGrade mongo_wrapped_grade(const MongoPredicate *predicate);
extern MongoMatch mongo_render_wrapped(const MongoPredicate *predicate, Datum value,
									   bson_t *match);

#endif							/* MONGO_FDW_JSON_WRAPPED_H */
