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

#include "bson_write.h"
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
 * mongo_is_local_value
 *		Can PostgreSQL evaluate the node before the scan starts, with the same
 *		result as for each row?
 */
extern bool mongo_is_local_value(const MongoTranslation *translation, Node *node);

/*
 * mongo_variable_name
 *		"p0" and so on: what "let" calls the variable.
 */
extern const char *mongo_variable_name(int number);

/*
 * Expressions of several parts: each is translated to a value, of which is known what
 * templates and functions must know of it.
 */

/*
 * A translated expression.
 *
 * A value is raw when it is as a document or MongoDB's arithmetic has it, so
 * that any BSON type may come that a column of the SQL type reads.  Otherwise
 * it is in normal form: the one BSON type that the SQL type is written as.
 */
typedef struct MongoValue
{
	bson_t	   *expression;		/* one element, named "" */
	Oid			type;			/* a base type */
	int32		typmod;
	const Const *constant;		/* the value itself, if known */
	bool		raw;
	bool		nullable;		/* can it be null or missing? */
	bool		nan;			/* can it be NaN? */
	bool		atomic;			/* a field, variable or constant: not worth a
								 * variable of $let */
} MongoValue;

/* Where an expression is translated. */
typedef struct MongoScope
{
	MongoTranslation *translation;
	bool		scale;			/* does the number of decimals of a numeric
								 * matter, not just its value? */
	bool		lazy;			/* may the value go unneeded, so that nothing
								 * that can fail may be evaluated beforehand? */
	bool		guarded;		/* will it be noticed if the value has been
								 * rounded to the digits of a Decimal128? */
} MongoScope;

#define MONGO_MAX_ARGUMENTS	8

/*
 * mongo_append_expression
 *		Append a translated expression's value to 'document' under 'key'.
 */
extern void mongo_append_expression(bson_t *document, const char *key,
									const bson_t *expression);

/*
 * mongo_expand_template
 *		An expression from its template, whose arguments are @1, @2 and so on.
 *
 * Templates are those of bson_write.h: {$add: [@1, @2]}.  An argument that stands in
 * several places and is not atomic is evaluated once, by $let.
 */
extern bson_t *mongo_expand_template(const char *template,
									 const MongoValue *arguments, int narguments);

/*
 * mongo_expression
 *		An expression from a template and BSON values, wherever these stand.
 *
 * mongo_atomic
 *		A BSON value as an argument of mongo_expand_template().
 */
#define mongo_expression(template, ...) \
	mongo_expression_of_values(template, BSON_VALUES(__VA_ARGS__))
extern bson_t *mongo_expression_of_values(const char *template,
										  const bson_value_t *values, int nvalues);
extern MongoValue mongo_atomic(bson_value_t value);

/*
 * mongo_value_of_node
 *		Translate any node; false when it is not shippable.
 */
extern bool mongo_value_of_node(const MongoScope *scope, Node *node,
								MongoValue *value);

/* The same, in normal form. */
extern bool mongo_normal_value_of_node(const MongoScope *scope, Node *node,
									   MongoValue *value);

/*
 * mongo_test_of_node
 *		A boolean that is never null: is the condition TRUE (wanted) or FALSE?
 */
extern bool mongo_test_of_node(const MongoScope *scope, Node *node, bool wanted,
							   MongoValue *value);

/*
 * mongo_normalize
 *		Bring a value into normal form; false when its type has none.
 *
 * Then equal values are equal in MongoDB (NaN included) and its functions see
 * what PostgreSQL's would: integers are Int32 or Int64, numeric is Decimal128,
 * text is a String of what the column reads, a date is its midnight.  Where the
 * scope asks for the scale, a numeric has as many decimals as
 * in PostgreSQL.  uuid and
 * jsonb have no such form.
 */
extern bool mongo_normalize(const MongoScope *scope, MongoValue *value);

/* A Decimal128, such as "0.005", as a value. */
extern MongoValue mongo_decimal_value(const char *text);

/*
 * mongo_decimal_of_number
 *		A number of any BSON type as the Decimal128 that $toDecimal gives.
 *
 * $toDecimal takes Strings, Booleans and Dates as well; this is an error for them,
 * and faster.
 */
extern bson_t *mongo_decimal_of_number(const MongoValue *value);

#endif							/* MONGO_FDW_EXPRESSION_H */
