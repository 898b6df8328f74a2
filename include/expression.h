/*-------------------------------------------------------------------------
 *
 * expression.h
 *		SQL expressions as aggregation expressions of MongoDB.
 *
 * For every document whose fields fit their columns (docs/types.md), the
 * aggregation expression gives what PostgreSQL's expression gives:
 *
 * - a value that the reader of the expression's type reads as PostgreSQL's
 *	 value, be it of another BSON type: an integer may come as a Double;
 * - null, or nothing at all, where PostgreSQL gives NULL;
 * - true, false or null for a boolean.
 *
 * Two exceptions, which docs/pushdown.md tells: MongoDB's arithmetic is wider,
 * so that a value may come where PostgreSQL raises overflow, and a document
 * that does not fit may go unnoticed or raise MongoDB's error.
 *
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_EXPRESSION_H
#define MONGO_FDW_EXPRESSION_H

#include "compat.h"

#include "condition.h"

/*
 * mongo_translate_expression
 *		The aggregation expression for 'node', or NULL when it is not shippable.
 *
 * The result is a document with one element, named "", whose value is the
 * expression; it lives in the current memory context.  What is not a constant
 * and needs no document is made a variable of 'translation'.  When NULL is
 * returned, 'translation' is as it was.
 *
 * Nothing is shippable unless translation->use_expressions is set, nor under
 * type_mismatch 'null', where a type mismatch would have to read as NULL.
 *
 * Arithmetic on numeric is shipped if its digits provably fit into a Decimal128
 * (digits.h).  With translation->guards_digits, the last operation may go
 * beyond, and is then rounded to 34 digits: for callers that notice.
 */
extern bson_t *mongo_translate_expression(MongoTranslation *translation, Node *node);

/*
 * mongo_translate_test
 *		A boolean that is never null: is the condition 'node' TRUE (wanted), or
 *		FALSE (not wanted)?  NULL when it is not shippable.
 */
extern bson_t *mongo_translate_test(MongoTranslation *translation, Node *node,
									bool wanted);

/*
 * mongo_is_too_deep
 *		Has the document more levels than MongoDB takes as a part of a command?
 *
 * No translation of an expression or a condition has.
 */
extern bool mongo_is_too_deep(const bson_t *document);

/*
 * mongo_append_expression
 *		Append a translated expression's value to 'document' under 'key'.
 */
extern void mongo_append_expression(bson_t *document, const char *key,
									const bson_t *expression);

/*
 * mongo_is_local_value
 *		Can the node be evaluated here before the scan starts, with the same
 *		result as for each row?
 */
extern bool mongo_is_local_value(const MongoTranslation *translation, Node *node);

/*
 * mongo_variable_name
 *		"p0" and so on: what "let" calls the variable.
 */
extern const char *mongo_variable_name(int number);

#endif							/* MONGO_FDW_EXPRESSION_H */
