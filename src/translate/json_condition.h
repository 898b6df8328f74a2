/*-------------------------------------------------------------------------
 *
 * json_condition.h
 *		Conditions on what is inside a json or jsonb column.
 *
 * All of them are supersets: jsonb sees arrays, numbers and extended types
 * otherwise than find's language does, so the rows that come are checked
 * again.  What matters is that an index can find them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_CONDITION_H
#define MONGO_FDW_JSON_CONDITION_H

#include "compat.h"

#include "predicate.h"

/*
 * mongo_is_json_test
 *		Is this operator jsonb's @>, ?, ?|, ?&, @? or @@ ?
 */
extern bool mongo_is_json_test(Oid operator);

/*
 * mongo_json_test_compares_text
 *		Must the command ask for the simple collation for such an operator?
 */
extern bool mongo_json_test_compares_text(Oid operator);

/*
 * mongo_render_json_test
 *		Append to 'match' a superset of where "field OP value" is true; false
 *		when there is none that narrows anything.
 */
extern bool mongo_render_json_test(const char *path, Oid operator, Datum value,
								   bson_t *match);

/* See render_range in comparison.h: values of type jsonb. */
extern MongoMatch mongo_jsonb_range(const MongoPredicate *predicate, Datum value,
									bson_t *match);

#endif							/* MONGO_FDW_JSON_CONDITION_H */
