/*-------------------------------------------------------------------------
 *
 * predicate.h
 *		"column OP value": the smallest condition that MongoDB is asked to test.
 *
 * A predicate is written in MongoDB's find language, which indexes can serve.
 * The same code renders it for a constant while planning and for a parameter
 * while executing, so both mean the same.
 *
 * What makes a predicate exact are the reading rules of docs/types.md (which
 * BSON values a column accepts, and as what) together with
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 * and the type bracketing of find's comparison operators.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PREDICATE_H
#define MONGO_FDW_PREDICATE_H

#include "compat.h"

#include "nodes/pg_list.h"

#include "options.h"
#include "path.h"
#include "strategy.h"

/*
 * How a translation relates to the condition it stands for.
 *
 * SUPERSET: every row that satisfies the condition is matched, and possibly
 * others, so PostgreSQL must also check the condition.
 */
typedef enum MongoGrade
{
	MONGO_NOT_SHIPPABLE,
	MONGO_SUPERSET,
	MONGO_EXACT
} MongoGrade;

/* What a rendered predicate can match at all. */
typedef enum MongoMatch
{
	MONGO_MATCH_NONE,			/* no document, so nothing need be sent */
	MONGO_MATCH_SOME
} MongoMatch;

typedef enum MongoPredicateForm
{
	MONGO_PREDICATE_SCALAR,		/* column OP value */
	MONGO_PREDICATE_ANY,		/* column = ANY (array) */
	MONGO_PREDICATE_ALL,		/* column <> ALL (array) */
	MONGO_PREDICATE_EVERY,		/* column @> array: any element, for each
								 * value */
	MONGO_PREDICATE_BETWEEN		/* column OP the first of two, the second of
								 * which is a bound on its other side that
								 * another condition tests */
} MongoPredicateForm;

/* Bytes of a match document that MongoDB takes; rendering goes not far beyond. */
#define MONGO_LARGEST_MATCH	(16 * 1024 * 1024)

typedef struct MongoPredicate
{
	const char *path;			/* of the field, never NULL */
	const char *zone;			/* this, 'result_zone' and 'clock_unit' as in
								 * MongoField */
	const char *result_zone;
	int			clock_unit;
	int			element;		/* as in MongoField */
	int			wrapper;		/* as in MongoField */
	Oid			column_type;	/* as declared, or of the elements; domains
								 * included */
	int32		column_typmod;	/* or of cast_type */
	bson_type_t bson_type;		/* as in MongoField */
	Oid			cast_type;		/* as in MongoField */
	Oid			json_test;		/* jsonb's operator @> or ?, that 'value' is
								 * to the right of; InvalidOid: a comparison */
	Oid			collation;		/* of the comparison */
	int			strategy;		/* of the operator, see strategy.h */
	MongoPredicateForm form;
	Oid			value_type;		/* of the value, or of the array's elements */
	MongoTypeMismatch type_mismatch;
	bool		without_nan;	/* another condition keeps NaN out already */
} MongoPredicate;

/*
 * mongo_predicate_grade
 *		What rendering this predicate gives, whatever its value will be.
 *
 * Needs everything but a value.  Reads system catalogs, so it is for
 * planning.
 */
extern MongoGrade mongo_predicate_grade(const MongoPredicate *predicate);

/*
 * mongo_predicate_compares_text
 *		Must the command ask for the simple collation, so that a collection's
 *		own default collation does not change the answer?
 */
extern bool mongo_predicate_compares_text(const MongoPredicate *predicate);

/*
 * mongo_predicate_render
 *		Append to 'match' (an empty document) the documents where the
 *		predicate is true.
 *
 * 'value' is a Datum of value_type, or of its array type for all forms but SCALAR.
 * A NULL value matches nothing, as in SQL.  The predicate's grade must not be
 * MONGO_NOT_SHIPPABLE.
 *
 * When 'match' becomes longer than MONGO_LARGEST_MATCH, it is of no use: the
 * rest of an array may be missing in it.
 */
extern MongoMatch mongo_predicate_render(const MongoPredicate *predicate,
										 Datum value, bool isnull,
										 bson_t *match);

/*
 * mongo_predicate_to_list, mongo_predicate_from_list
 *		A predicate as nodes that a plan can hold, and back.
 */
extern List *mongo_predicate_to_list(const MongoPredicate *predicate);
extern MongoPredicate *mongo_predicate_from_list(List *list);

#endif							/* MONGO_FDW_PREDICATE_H */
