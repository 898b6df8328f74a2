/*-------------------------------------------------------------------------
 *
 * translate_internal.h
 *		What the files of src/translate share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TRANSLATE_INTERNAL_H
#define MONGO_FDW_TRANSLATE_INTERNAL_H

#include "compat.h"
#include "common.h"
#include "translate.h"

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "utils/jsonb.h"

/*-------------------------------------------------------------------------
 * What the sources of expressions, src/translate/expression*.c, have of each other.
 *-------------------------------------------------------------------------
 */

/* ------ How each function and operator of PostgreSQL looks in MongoDB ------ */

/* One call of a function with a row. */
typedef struct MongoCall
{
	const MongoScope *scope;
	Node	   *node;			/* OpExpr or FuncExpr */
	List	   *args;
	Oid			collation;		/* that it uses */
	const struct MongoExpressionRow *row;
} MongoCall;

/* How the digits of a result follow from those of the arguments. */
typedef enum MongoDigitRule
{
	MONGO_DIGITS_UNKNOWN,		/* but for what the result's type tells */
	MONGO_DIGITS_SAME,			/* as the first argument */
	MONGO_DIGITS_INTEGER,		/* the first, rounded to an integer */
	MONGO_DIGITS_SUM,			/* this and the next two: of two arguments,
								 * and exact only if they fit into a
								 * Decimal128 */
	MONGO_DIGITS_PRODUCT,
	MONGO_DIGITS_REMAINDER
} MongoDigitRule;

/* What a row needs and gives, beside its template. */
#define MONGO_ROW_RAW_ARGUMENTS	0x01	/* takes raw values */
#define MONGO_ROW_RAW_RESULT	0x02	/* gives a raw value */
#define MONGO_ROW_NULL_GUARD	0x04	/* is null where an argument is null,
										 * which MongoDB's operator is not by
										 * itself */
#define MONGO_ROW_CHARACTERS	0x10	/* counts characters, which are
										 * MongoDB's if the database is in
										 * UTF-8 */
#define MONGO_ROW_BYTEWISE		0x20	/* its collation must be deterministic */
#define MONGO_ROW_C_COLLATION	0x40	/* its collation must be C */

typedef struct MongoExpressionRow
{
	Oid			functions[8];	/* ended by InvalidOid */
	const char *template;		/* of mongo_expand_template(); or NULL */
	int			flags;
	MongoDigitRule digits;

	/* What a template cannot say: translates the whole call.  Or NULL. */
	bool		(*translate) (const MongoCall *call, MongoValue *result);
} MongoExpressionRow;

/* The tables, each ended by a row without a function. */
extern const MongoExpressionRow mongo_number_rows[];
extern const MongoExpressionRow mongo_text_rows[];
extern const MongoExpressionRow mongo_time_rows[];
extern const MongoExpressionRow mongo_array_rows[];
extern const MongoExpressionRow mongo_pattern_rows[];

/*
 * Parts of mongo_value_of_node(), by kinds of nodes: CASE and its like; casts by way of
 * text; = ANY and <> ALL.
 */
extern bool mongo_choice_of_node(const MongoScope *scope, Node *node, MongoValue *value);
extern bool mongo_text_cast(const MongoScope *scope, CoerceViaIO *node, MongoValue *value);
extern bool mongo_array_comparison(const MongoScope *scope, ScalarArrayOpExpr *node,
								   MongoValue *value);

/*
 * mongo_collation_suits
 *		Does the call's collation mean to PostgreSQL what comparing bytes does?
 *
 * Only what the flags MONGO_ROW_BYTEWISE and MONGO_ROW_C_COLLATION ask for.
 */
extern bool mongo_collation_suits(Oid collation, int flags);

/* mongo_inner_scope: of a part whose decimals do not matter, as of what is compared. */
static inline MongoScope
mongo_inner_scope(const MongoScope *scope)
{
	return (MongoScope)
	{
		scope->translation, .lazy = scope->lazy
	};
}

/* mongo_find_row: of a function in one table; NULL if it has none. */
extern const MongoExpressionRow *mongo_find_row(const MongoExpressionRow *rows, Oid function);

/*
 * mongo_rescale
 *		A number to so many decimals, by a template that has those as @2.  Its @3 and @4 are
 *		half a unit of the last one, with either sign, and @5 is 1, all as Decimal128.
 */
extern bson_t *mongo_rescale(const char *template, const MongoValue *number, int scale);

/* Rounds half away from zero; exact if the sum has no more digits than a Decimal128. */
#define MONGO_ROUNDED(number) \
	"{$trunc: [{$add: [" number ", {$cond: [{$lt: [@1, 0]}, @4, @3]}]}, @2]}"

/* mongo_guard_template: null where an argument is that may be. */
extern const char *mongo_guard_template(const char *template, const MongoValue *arguments,
										int narguments);

/* mongo_text_value: a constant, in UTF-8. */
extern MongoValue mongo_text_value(const char *utf8);

extern bool mongo_array_element(const MongoScope *scope, SubscriptingRef *node,
								MongoValue *value);

/*
 * mongo_variable
 *		A value that is known when the scan starts, as a variable of "let".
 *
 * False where it might be needless to evaluate it, and fail.
 */
extern bool mongo_variable(const MongoScope *scope, Node *node, MongoValue *value);

/* mongo_literal: a constant; false when it has no BSON form that is the same value. */
extern bool mongo_literal(const Const *constant, MongoValue *value);

/* mongo_distinct_test: IS DISTINCT FROM, as mongo_test_of_node(). */
extern bool mongo_distinct_test(const MongoScope *scope, DistinctExpr *node, bool wanted,
								MongoValue *value);

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

/*
 * mongo_timestamp_value
 *		A timestamp, or a date's midnight; or the instant at which the session's clock shows it.
 *
 * mongo_number_value
 *		A number of any type as a double.
 */
extern Timestamp mongo_timestamp_value(bool as_instant, Oid type, Datum value);
extern double mongo_number_value(Oid type, Datum value);

/*
 * mongo_json_cast_exactness, mongo_render_json_cast
 *		Of a predicate on what the text of what is inside json is cast to, a superset: see
 *		mongo_predicate_exactness() and mongo_predicate_render().  What a cast would raise an
 *		error for may go unnoticed.
 */
extern MongoExactness mongo_json_cast_exactness(const MongoPredicate *predicate);
extern MongoMatch mongo_render_json_cast(const MongoPredicate *predicate, Datum value,
										 bson_t *match);

/*
 * Conditions on what is inside a json or jsonb column, or on its text, are supersets: jsonb
 * sees arrays, numbers and extended types otherwise than query predicates do.  What
 * matters is that an index can find the rows.
 */

/* mongo_is_json_test: is this operator jsonb's @>, ?, ?|, ?&, @? or @@ ? */
extern bool mongo_is_json_test(Oid operator);

/*
 * mongo_render_json_test
 *		Append to 'match' a superset of where "field OP value" is true; false
 *		when there is none that narrows anything.
 */
extern bool mongo_render_json_test(const char *path, Oid operator, Datum value,
								   bson_t *match);

/* See render_range in translate.h: values of type jsonb. */
extern MongoMatch mongo_jsonb_range(const MongoPredicate *predicate, Datum value,
									bson_t *match);

/* See render_range in translate.h: the field's text, and a value of type text. */
extern MongoMatch mongo_json_text_range(const MongoPredicate *predicate,
										Datum value, bson_t *match);

/*
 * mongo_append_other_json
 *		Append to the branches of an $or where the field is no String and may_begin()
 *		says that a text may begin as its text does.
 */
extern void mongo_append_other_json(BsonArray *branches, const char *path,
									bool (*may_begin) (const void *context, char first),
									const void *context);

/* ----------- A user's own JSON that becomes a part of a command ----------- */

/*
 * mongo_append_kept_json
 *		Append a json value under 'key', as mongo_append_datum() does, but for what
 *		depends on settings: a $date without a time zone is in UTC.
 *
 * A plan may outlive the settings under which it was made.
 */
extern void mongo_append_kept_json(bson_t *document, const char *key, Datum json);

/* ---- Conditions on what clocks show: ::date, date_trunc(), year of a time ---- */

/*
 * mongo_constant_word
 *		A constant text in lower case, such as the name of a unit or of a time zone;
 *		palloc'd.  NULL for any other node.
 */
extern const char *mongo_constant_word(Node *node);

/*
 * mongo_constant_zone
 *		The name of a time zone if the node is a constant that PostgreSQL knows and that
 *		is no abbreviation, whose meaning is a setting; palloc'd, or NULL.
 */
extern const char *mongo_constant_zone(Node *node);

/*
 * mongo_local_time_of_node
 *		The field whose local time 'node' is, or is a function of; false for anything
 *		else.  A plain date or timestamp is that when it is compared with an instant,
 *		of which 'value_type' tells.
 */
extern bool mongo_local_time_of_node(MongoColumns *columns, Node *node, Oid value_type,
									 MongoField *field);

/*
 * mongo_local_time_exactness, mongo_render_local_time
 *		Of a predicate with a clock: see mongo_predicate_exactness() and
 *		mongo_predicate_render(); 'value' is a scalar.
 *
 * A time zone that is not known raises 22023.
 */
extern MongoExactness mongo_local_time_exactness(const MongoPredicate *predicate);
extern MongoMatch mongo_render_local_time(const MongoPredicate *predicate, Datum value,
										  bson_t *match);

/* ------- LIKE, ILIKE, starts_with() and "~" as regular expressions -------- */

/*
 * mongo_translate_pattern
 *		Append to 'match' where "field OP pattern" is true, or with 'wanted'
 *		false, where it is false.
 *
 * 'function' is the one under the operator, 'node' its pattern.  MONGO_NOT_SHIPPABLE for
 * other functions, for patterns that are not constants, and where the two
 * engines do not provably agree.
 */
extern MongoExactness mongo_translate_pattern(const MongoField *field, Oid function, Node *node, Oid collation,
											  bool wanted, bson_t *match);

/*-------------------------------------------------------------------------
 * Comparing columns of the text family, which read Strings and ObjectIds.
 *-------------------------------------------------------------------------
 */

/* mongo_text_in_utf8: the text, of a type of the text family; not NUL-terminated. */
extern const char *mongo_text_in_utf8(Oid type, Datum value, int *length);

/*
 * mongo_may_be_cut
 *		Does a column of n characters compare the value, of n or more, with what it cuts?
 *
 * mongo_rounds_timestamp
 *		Is this a timestamp(2) or the like, which has fewer decimals than a Date?
 */
extern bool mongo_may_be_cut(const MongoPredicate *predicate, Datum value);
extern bool mongo_rounds_timestamp(Oid column_type, int32 column_typmod);

#endif							/* MONGO_FDW_TRANSLATE_INTERNAL_H */
