/*-------------------------------------------------------------------------
 *
 * comparison.h
 *		How values of each column type compare in MongoDB's find language.
 *
 * One row a kind of types, in src/translate/comparison.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COMPARISON_H
#define MONGO_FDW_COMPARISON_H

#include "compat.h"

#include "datatype/timestamp.h"

#include "bson_write.h"
#include "predicate.h"

/* From the least to the most. */
typedef enum MongoSortability
{
	MONGO_NOT_SORTABLE,
	MONGO_SORTABLE_NAN_APART,	/* but for where NaN stands */
	MONGO_SORTABLE_LAST,		/* ties are broken, so no key may follow */
	MONGO_SORTABLE
} MongoSortability;

typedef struct MongoComparison
{
	MongoGrade	equality_grade; /* of "=" and "<>" */
	MongoGrade	order_grade;	/* of "<", "<=", ">=", ">" */

	/* sorting in MongoDB gives PostgreSQL's order, but for NULLs */
	MongoSortability sortability;

	/*
	 * Append to an array each BSON value that reads as 'value'.  NULL when
	 * those are not a handful.
	 */
	void		(*append_points) (const MongoPredicate *predicate, Datum value,
								  BsonArray *points);

	/*
	 * Append to 'match' the condition for what is not made of points.  NULL
	 * when order_grade is MONGO_NOT_SHIPPABLE and there are points.
	 */
	MongoMatch	(*render_range) (const MongoPredicate *predicate, Datum value,
								 bson_t *match);

	bool		is_text;		/* MongoDB's collations matter */
} MongoComparison;

/*
 * mongo_append_nothing
 *		Append {path: {$in: []}}, which no document matches and MongoDB plans as
 *		EOF; returns MONGO_MATCH_NONE.
 */
extern MongoMatch mongo_append_nothing(bson_t *match, const char *path);

/*
 * mongo_comparison_lookup
 *		The row of a base type (not a domain), or NULL when it has none: then only
 *		PostgreSQL compares its values.
 *
 * A timestamp that rounds what it reads has a row of its own, and so has a text that
 * is declared to be a certain BSON type (BSON_TYPE_EOD: is not).
 */
extern const MongoComparison *mongo_comparison_lookup(Oid column_type, int32 column_typmod,
													  bson_type_t bson_type);

/*
 * mongo_rounds_timestamp
 *		Is this a timestamp(2) or the like, which has fewer decimals than a Date?
 */
extern bool mongo_rounds_timestamp(Oid column_type, int32 column_typmod);

/*
 * mongo_depends_on_time_zone
 *		Does what the value means depend on the session's time zone?  A date or
 *		timestamp does that a timestamptz is compared with.
 *
 * A plan may outlive the setting, so that even a constant is to be rendered by
 * execution.
 */
extern bool mongo_depends_on_time_zone(const MongoPredicate *predicate);

/*
 * mongo_timestamp_value
 *		Of a value that is a timestamp, with or without a zone, or a date's midnight;
 *		for a timestamptz the instant at which the session's clock shows it.
 */
extern Timestamp mongo_timestamp_value(const MongoPredicate *predicate, Datum value);

/*
 * mongo_equality_fits
 *		Is a field that equals a value of 'value_type' one that a column of this
 *		type can read?  False for what the type itself does not tell.
 */
extern bool mongo_equality_fits(Oid column_type, int32 column_typmod,
								bson_type_t bson_type, Oid value_type);

#endif							/* MONGO_FDW_COMPARISON_H */
