/*-------------------------------------------------------------------------
 *
 * pattern.h
 *		LIKE, ILIKE, starts_with() and "~" as regular expressions.
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
	MONGO_PATTERN_PREFIX,		/* no wildcards: what it begins with */
	MONGO_PATTERN_POSIX
} MongoPatternKind;

/* A function that tests a text by a pattern. */
typedef struct MongoPatternFunction
{
	Oid			function;
	MongoPatternKind kind;
	bool		folds;			/* case does not matter */
	bool		negated;		/* true where the pattern does not match */
} MongoPatternFunction;

/*
 * mongo_pattern_function
 *		What is known of a function; NULL if it is another.
 */
extern const MongoPatternFunction *mongo_pattern_function(Oid function);

/*
 * mongo_translate_pattern
 *		Append to 'match' where "field OP pattern" is true, or with 'wanted'
 *		false, where it is false.
 *
 * 'function_oid' is the function under the operator, 'node' its pattern.  MONGO_NOT_SHIPPABLE for
 * other functions, for patterns that are not constants, and where the two
 * engines do not provably agree.
 */
extern MongoGrade mongo_translate_pattern(const MongoField *field, Oid function_oid,
										  Node *node, Oid collation,
										  bool wanted, bson_t *match);

/*
 * mongo_pattern_expression
 *		A regular expression, with option "s" and in UTF-8, for what the pattern,
 *		'node', matches; NULL when there is none that does it alike.
 *
 * In texts of more than about 200,000 characters it may be an error there.
 */
extern const char *mongo_pattern_expression(const MongoPatternFunction *function,
											Node *node, Oid collation);

#endif							/* MONGO_FDW_PATTERN_H */
