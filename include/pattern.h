/*-------------------------------------------------------------------------
 *
 * pattern.h
 *		LIKE, ILIKE and starts_with() as regular expressions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PATTERN_H
#define MONGO_FDW_PATTERN_H

#include "compat.h"

#include "columns.h"
#include "predicate.h"

typedef enum MongoPatternKind
{
	MONGO_PATTERN_LIKE,
	MONGO_PATTERN_ILIKE,		/* of a C collation */
	MONGO_PATTERN_PREFIX		/* no wildcards: what it begins with */
} MongoPatternKind;

/*
 * mongo_translate_pattern
 *		Append to 'match' where "field OP pattern" is true, or with 'wanted'
 *		false, where it is false.
 *
 * 'function' is the function under the operator.  MONGO_NOT_SHIPPABLE for
 * other functions, for patterns that are not constants, and where the two
 * engines do not provably agree.
 */
extern MongoGrade mongo_translate_pattern(const MongoField *field, Oid function,
										  Node *pattern, Oid collation,
										  bool wanted, bson_t *match);

/*
 * mongo_like_expression
 *		A regular expression, with option "s" and in UTF-8, for what LIKE or ILIKE
 *		matches; NULL when there is none.
 */
extern const char *mongo_like_expression(const Const *pattern, MongoPatternKind kind);

#endif							/* MONGO_FDW_PATTERN_H */
