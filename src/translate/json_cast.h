/*-------------------------------------------------------------------------
 *
 * json_cast.h
 *		Conditions on what the text of what is inside json is cast to.
 *
 * All of them are supersets, as those of json_condition.h are.  What a cast would
 * raise an error for may go unnoticed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_CAST_H
#define MONGO_FDW_JSON_CAST_H

#include "compat.h"

#include "bson_write.h"
#include "predicate.h"

/*
 * mongo_json_cast_grade, mongo_render_json_cast
 *		A predicate on what a field is cast to: see mongo_predicate_grade() and
 *		mongo_predicate_render().
 */
extern MongoGrade mongo_json_cast_grade(const MongoPredicate *predicate);
extern MongoMatch mongo_render_json_cast(const MongoPredicate *predicate, Datum value,
										 bson_t *match);

/*
 * mongo_append_each
 *		Call 'append' for the value, or for each one of the array that is not NULL,
 *		with the branches of an $or.
 */
extern void mongo_append_each(const MongoPredicate *predicate, Datum value,
							  void (*append) (const MongoPredicate *predicate, Datum value,
											  BsonArray *branches),
							  BsonArray *branches);

/*
 * mongo_append_cast_bound
 *		Append where a value of the first type may be cast to what "OP value" is true
 *		of, for an order OP of numbers or dates, and all values of the other type.
 *
 * It is said of what is on the wrong side, so that two bounds are one range of an index;
 * but not of a path that may lead to several values, one of which may be there.
 */
extern void mongo_append_cast_bound(const MongoPredicate *predicate, Datum value,
									const char *type, const char *other_type,
									bson_t *match);

/* mongo_append_cast_number: where a number may be cast to the value. */
extern void mongo_append_cast_number(const MongoPredicate *predicate, Datum value,
									 BsonArray *branches);

/*
 * mongo_cast_date_bounds
 *		The first and the last millisecond of a UTC clock that may be cast to the
 *		value, if a text without a time zone, or in UTC, has it.
 */
extern void mongo_cast_date_bounds(const MongoPredicate *predicate, Datum value,
								   int64 *low, int64 *high);

#endif							/* MONGO_FDW_JSON_CAST_H */
