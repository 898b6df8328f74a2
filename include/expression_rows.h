/*-------------------------------------------------------------------------
 *
 * expression_rows.h
 *		The tables of operators and functions behind expression.h.
 *
 * A row says how one function of PostgreSQL looks in MongoDB: a template in
 * which the translated arguments stand.  Each family of functions has its rows
 * in a file of its own, src/translate/expression_*.c.
 *
 * For the modules that translate expressions; others need expression.h only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_EXPRESSION_ROWS_H
#define MONGO_FDW_EXPRESSION_ROWS_H

#include "compat.h"

#include "bson_write.h"
#include "expression.h"

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
	bool		atomic;			/* a field, variable or constant: not worth
								 * a variable of $let */
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

/* One call of a function with a row. */
typedef struct MongoCall
{
	const MongoScope *scope;
	Node	   *node;			/* OpExpr or FuncExpr */
	List	   *args;
	Oid			collation;		/* that it uses */
	const struct MongoExpressionRow *row;
} MongoCall;

/* What a row needs and gives, beside its template. */
#define MONGO_ROW_RAW_ARGUMENTS	0x01	/* takes raw values */
#define MONGO_ROW_RAW_RESULT	0x02	/* gives a raw value */
#define MONGO_ROW_NULL_GUARD	0x04	/* is null where an argument is null, which
										 * MongoDB's operator is not by itself */
#define MONGO_ROW_DIGITS		0x08	/* exact if the result's digits are known to
										 * fit into a Decimal128 */
#define MONGO_ROW_CHARACTERS	0x10	/* counts characters, which are MongoDB's
										 * if the database is in UTF-8 */
#define MONGO_ROW_BYTEWISE		0x20	/* its collation must be deterministic */
#define MONGO_ROW_C_COLLATION	0x40	/* its collation must be C */

typedef struct MongoExpressionRow
{
	Oid			function;
	const char *template;		/* of mongo_expand_template(); or NULL */
	int			flags;

	/* What a template cannot say: translates the whole call.  Or NULL. */
	bool		(*translate) (const MongoCall *call, MongoValue *result);
} MongoExpressionRow;

#define MONGO_MAX_ARGUMENTS	8

/*
 * mongo_expression_row
 *		The row of a function, or NULL.
 */
extern const MongoExpressionRow *mongo_expression_row(Oid function);

/*
 * mongo_nth_expression_row
 *		A row by its number, counted from 0 through all tables; NULL behind the last.
 */
extern const MongoExpressionRow *mongo_nth_expression_row(int number);

/* The tables, each ended by a row without a function. */
extern const MongoExpressionRow mongo_number_rows[];
extern const MongoExpressionRow mongo_text_rows[];
extern const MongoExpressionRow mongo_time_rows[];
extern const MongoExpressionRow mongo_array_rows[];

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
 * Parts of mongo_test_of_node() and mongo_value_of_node(), by kinds of nodes:
 * boolean logic; CASE and its like; casts by way of text; = ANY and <> ALL.
 */
extern bool mongo_logic_test(const MongoScope *scope, Node *node, bool wanted,
							 MongoValue *value);
extern bool mongo_logic_of_node(const MongoScope *scope, Node *node, MongoValue *value);
extern bool mongo_choice_of_node(const MongoScope *scope, Node *node, MongoValue *value);
extern bool mongo_text_cast(const MongoScope *scope, CoerceViaIO *node, MongoValue *value);
extern bool mongo_array_comparison(const MongoScope *scope, ScalarArrayOpExpr *node,
								   MongoValue *value);

/*
 * mongo_collation_suits
 *		Does the call's collation mean here what comparing bytes does?
 *
 * Only what the flags MONGO_ROW_BYTEWISE and MONGO_ROW_C_COLLATION ask for.
 */
extern bool mongo_collation_suits(Oid collation, int flags);

/* to_char(timestamp, format) with a constant format of numbers and separators. */
extern bool mongo_to_char(const MongoCall *call, MongoValue *result);

extern bool mongo_array_element(const MongoScope *scope, SubscriptingRef *node,
								MongoValue *value);

/*
 * mongo_variable
 *		A value that is known when the scan starts, as a variable of "let".
 *
 * False where it might be needless to evaluate it, and fail.
 */
extern bool mongo_variable(const MongoScope *scope, Node *node, MongoValue *value);

/*
 * mongo_date_bound
 *		A date or timestamp known here, as what "x OP value" compares x with.
 */
extern bool mongo_date_bound(const MongoScope *scope, int strategy, Node *node,
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
 * scope asks for the scale, a numeric has as many decimals as here.  uuid and
 * jsonb have no such form.
 */
extern bool mongo_normalize(const MongoScope *scope, MongoValue *value);

/*
 * mongo_literal
 *		A constant; false when it has no BSON form that is the same value.
 */
extern bool mongo_literal(const Const *constant, MongoValue *value);

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

/*
 * mongo_same
 *		Not IS DISTINCT FROM, a boolean that is never null; 'operator' is "=".
 */
extern bool mongo_same(const MongoScope *scope, Oid operator, List *args,
					   Oid collation, MongoValue *value);

/*
 * mongo_compare
 *		"left OP right" in three values, OP as in mongo_find_operators, of two
 *		nodes whose types share a family of operators.
 */
extern bool mongo_compare(const MongoScope *scope, int strategy, Node *left,
						  Node *right, Oid collation, MongoValue *value);

/* The same as a test of mongo_test_of_node() for TRUE. */
extern bool mongo_compare_test(const MongoScope *scope, int strategy, Node *left,
							   Node *right, Oid collation, MongoValue *value);

/*
 * mongo_comparison_strategy
 *		Of an operator that compares values by the default order of types with
 *		a normal form; 0 for any other.
 */
extern int	mongo_comparison_strategy(Oid operator);

#endif							/* MONGO_FDW_EXPRESSION_ROWS_H */
