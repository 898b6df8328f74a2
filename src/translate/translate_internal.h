/*-------------------------------------------------------------------------
 *
 * translate_internal.h
 *		What the files of src/translate share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TRANSLATE_INTERNAL_H
#define MONGO_FDW_TRANSLATE_INTERNAL_H

#include "common.h"
#include "translate.h"

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"
#include "utils/jsonb.h"

/*-------------------------------------------------------------------------
 * Shared by the translation of expressions, src/translate/expression*.c.
 *-------------------------------------------------------------------------
 */

/* ----- Functions and operators of PostgreSQL as MongoDB's expressions ----- */

/* One call of a function that has a MongoExpressionRow. */
typedef struct MongoCall
{
	const MongoScope *scope;
	Node	   *node;			/* OpExpr or FuncExpr */
	List	   *args;
	Oid			collation;		/* the input collation */
	const struct MongoExpressionRow *row;
} MongoCall;

/* How the digits of a result depend on those of the arguments. */
typedef enum MongoDigitRule
{
	MONGO_DIGITS_UNKNOWN,		/* unless the result's type limits them */
	MONGO_DIGITS_SAME,			/* those of the first argument */
	MONGO_DIGITS_INTEGER,		/* the first argument, rounded to an integer */
	MONGO_DIGITS_SUM,			/* this and the next two depend on two
								 * arguments; the result is exact only if it
								 * fits into a Decimal128 */
	MONGO_DIGITS_PRODUCT,
	MONGO_DIGITS_REMAINDER
} MongoDigitRule;

/* What a row requires and gives, in addition to its template. */
#define MONGO_ROW_RAW_ARGUMENTS	0x01	/* accepts raw values */
#define MONGO_ROW_RAW_RESULT	0x02	/* gives a raw value */
#define MONGO_ROW_NULL_GUARD	0x04	/* is null if an argument is null,
										 * which MongoDB's operator is not by
										 * itself */
#define MONGO_ROW_CHARACTERS	0x10	/* counts characters, as MongoDB does
										 * only if the database encoding is
										 * UTF-8 */
#define MONGO_ROW_BYTEWISE		0x20	/* its collation must be deterministic */
#define MONGO_ROW_C_COLLATION	0x40	/* its letters must be those of C */

typedef struct MongoExpressionRow
{
	Oid			functions[8];	/* terminated by InvalidOid */
	const char *template;		/* of mongo_expand_template(); or NULL */
	int			flags;
	MongoDigitRule digits;

	/* Translates the whole call if a template cannot express it; or NULL. */
	bool		(*translate) (const MongoCall *call, MongoValue *result);
} MongoExpressionRow;

/* The tables, each terminated by a row without a function. */
extern const MongoExpressionRow mongo_number_rows[];
extern const MongoExpressionRow mongo_text_rows[];
extern const MongoExpressionRow mongo_time_rows[];
extern const MongoExpressionRow mongo_array_rows[];
extern const MongoExpressionRow mongo_pattern_rows[];

/*
 * Parts of mongo_value_of_node() for some kinds of nodes: CASE and the like; casts through
 * text; = ANY and <> ALL.
 */
extern bool mongo_choice_of_node(const MongoScope *scope, Node *node, MongoValue *value);
extern bool mongo_text_cast(const MongoScope *scope, CoerceViaIO *node, MongoValue *value);
extern bool mongo_array_comparison(const MongoScope *scope, ScalarArrayOpExpr *node,
								   MongoValue *value);

/* mongo_inner_scope: the scope of a part whose number of decimals does not matter. */
static inline MongoScope
mongo_inner_scope(const MongoScope *scope)
{
	return (MongoScope)
	{
		scope->translation, .lazy = scope->lazy
	};
}

/* mongo_find_row: returns the row of a function in one table, or NULL. */
extern const MongoExpressionRow *mongo_find_row(const MongoExpressionRow *rows, Oid function);

/*
 * mongo_rescale
 *		Rescales a number to so many decimals by a template.
 *
 * The template has the number of decimals as @2, half a unit of the last one, positive and
 * negative, as @3 and @4, and 1 as @5; the last three are Decimal128.
 */
extern bson_t *mongo_rescale(const char *template, const MongoValue *number, int scale);

/* Rounds half away from zero; exact if the sum fits into the digits of a Decimal128. */
#define MONGO_ROUNDED(number) \
	"{$trunc: [{$add: [" number ", {$cond: [{$lt: [@1, 0]}, @4, @3]}]}, @2]}"

/* mongo_guard_template: makes a template null if an argument that can be null is null. */
extern const char *mongo_guard_template(const char *template, const MongoValue *arguments,
										int narguments);

/* mongo_text_value: returns a constant text, in UTF-8. */
extern MongoValue mongo_text_value(const char *utf8);

extern bool mongo_array_element(const MongoScope *scope, SubscriptingRef *node,
								MongoValue *value);

/*
 * mongo_variable
 *		Translates a value that is known when the scan starts to a variable of "let".
 *
 * Returns false if the value may not be needed and evaluating it may fail.
 */
extern bool mongo_variable(const MongoScope *scope, Node *node, MongoValue *value);

/* mongo_literal: translates a constant; false if no BSON value is the same value. */
extern bool mongo_literal(const Const *constant, MongoValue *value);

/* mongo_distinct_test: translates IS DISTINCT FROM, as mongo_test_of_node() does. */
extern bool mongo_distinct_test(const MongoScope *scope, DistinctExpr *node, bool wanted,
								MongoValue *value);

/*
 * mongo_compare
 *		Translates "left OP right" with three truth values.
 *
 * OP is a strategy of mongo_find_operators; the types of the two nodes share an operator
 * family.
 */
extern bool mongo_compare(const MongoScope *scope, int strategy, Node *left,
						  Node *right, Oid collation, MongoValue *value);

/* mongo_compare_test: the same as a test for TRUE, see mongo_test_of_node(). */
extern bool mongo_compare_test(const MongoScope *scope, int strategy, Node *left,
							   Node *right, Oid collation, MongoValue *value);

/*
 * mongo_comparison_strategy
 *		Returns the strategy of an operator that compares values by the default order of types
 *		with a normal form; 0 for any other operator.
 */
extern int	mongo_comparison_strategy(Oid operator);

/*
 * mongo_timestamp_value
 *		Converts a timestamp, or a date's midnight, to a timestamp; with 'as_instant', to the
 *		instant at which the session's clock shows it.
 *
 * mongo_number_value
 *		Converts a number of any type to a double.
 */
extern Timestamp mongo_timestamp_value(bool as_instant, Oid type, Datum value);
extern double mongo_number_value(Oid type, Datum value);

/*
 * mongo_json_cast_exactness, mongo_render_json_cast
 *		Translate a predicate on a value inside json that is cast to another type, as
 *		mongo_predicate_exactness() and mongo_predicate_render() do.
 *
 * The translation is a superset.  A document for which the cast raises an error may go
 * unnoticed.
 */
extern MongoExactness mongo_json_cast_exactness(const MongoPredicate *predicate);
extern MongoMatch mongo_render_json_cast(const MongoPredicate *predicate, Datum value,
										 bson_t *match);

/*
 * Conditions on values inside a json or jsonb column, or on their text, are supersets: jsonb
 * treats arrays, numbers and extended types differently than query predicates do.  They are
 * useful because an index can find the rows.
 */

/* mongo_is_json_test: is this operator jsonb's @>, ?, ?|, ?&, @? or @@ ? */
extern bool mongo_is_json_test(Oid operator);

/*
 * mongo_render_json_test
 *		Appends to 'match' a superset of where "field OP value" is true; false if there is none
 *		that excludes any document.
 */
extern bool mongo_render_json_test(const char *path, Oid operator, Datum value,
								   bson_t *match);

extern void mongo_append_existence(bson_t *match, const char *path);

/* See render_range in translate.h: values of type jsonb. */
extern MongoMatch mongo_jsonb_range(const MongoPredicate *predicate, Datum value,
									bson_t *match);

/* See render_range in translate.h: the field's text, and a value of type text. */
extern MongoMatch mongo_json_text_range(const MongoPredicate *predicate,
										Datum value, bson_t *match);

/*
 * mongo_append_other_json
 *		Appends to the branches of an $or: the field is not a String and, according to
 *		may_begin(), its text may begin with the right character.
 */
extern void mongo_append_other_json(BsonArray *branches, const char *path,
									bool (*may_begin) (const void *context, char first),
									const void *context);

/*
 * mongo_translate_exists
 *		Translates EXISTS over the elements of an array, as mongo_translate_condition() does: a
 *		superset.  'subquery' is its node in the plan.
 */
extern MongoCondition mongo_translate_exists(MongoTranslation *translation,
											 const SubPlan *subquery, bson_t *match);

/* ---------- JSON of the user's that becomes a part of a command ----------- */

/*
 * mongo_append_kept_json
 *		Appends a json value under 'key', as mongo_append_datum() does, but independently of
 *		settings, which a plan may outlive: a $date without a time zone is in UTC.
 */
extern void mongo_append_kept_json(bson_t *document, const char *key, Datum json);

/*
 * mongo_translate_match
 *		If this is mongo_match(table, value) over the only table of the translation, writes to
 *		'match' where it is true (wanted) or false.
 *
 * mongo_render_match
 *		Renders the predicate for a value that is not NULL, as mongo_predicate_render() does.
 *
 * Raise 22023 if the value is not a document, and 42501 for JavaScript as
 * mongo_append_pipeline() does; the first also without USAGE on the server.
 */
extern bool mongo_translate_match(MongoTranslation *translation, const FuncExpr *node,
								  bool wanted, bson_t *match);
extern MongoMatch mongo_render_match(const MongoPredicate *predicate, Datum json, bson_t *match);

/*
 * mongo_append_placeholder
 *		Appends a parameter of the command that stands for the predicate on 'value'.
 *
 * 'key' is MONGO_PARAMETER_KEY, or MONGO_VERBATIM_KEY for what the user writes.
 */
extern void mongo_append_placeholder(MongoTranslation *translation,
									 const MongoPredicate *predicate, Node *value,
									 const char *key, bson_t *match);

/* ----- Conditions on local time: ::date, date_trunc(), year of a time ----- */

/*
 * mongo_constant_word
 *		Returns a constant text in lower case, such as the name of a unit or of a time zone;
 *		palloc'd.  NULL for any other node.
 */
extern const char *mongo_constant_word(Node *node);

/*
 * mongo_constant_zone
 *		Returns the name of a time zone if the node is a constant that PostgreSQL knows as one,
 *		and not an abbreviation, whose meaning is a setting; palloc'd.  Otherwise NULL.
 */
extern const char *mongo_constant_zone(Node *node);

/*
 * mongo_local_time_of_node
 *		Finds the field whose local time 'node' is, or is a function of; false for anything
 *		else.  A plain date or timestamp is treated so if it is compared with an instant,
 *		according to 'value_type'.
 */
extern bool mongo_local_time_of_node(MongoColumns *columns, Node *node, Oid value_type,
									 MongoField *field);

/*
 * mongo_local_time_has_bounds
 *		Is each local time that equals the value between two timestamps?  Dates may be after
 *		all timestamps, so the year of a date must be a constant before the last of these.
 */
extern bool mongo_local_time_has_bounds(const MongoField *field, Node *value);

/*
 * mongo_local_time_exactness, mongo_render_local_time
 *		Translate a predicate on local time, as mongo_predicate_exactness() and
 *		mongo_predicate_render() do; 'value' is a scalar.
 *
 * An unknown time zone raises 22023.
 */
extern MongoExactness mongo_local_time_exactness(const MongoPredicate *predicate);
extern MongoMatch mongo_render_local_time(const MongoPredicate *predicate, Datum value,
										  bson_t *match);

/* ------- LIKE, ILIKE, starts_with() and "~" as regular expressions -------- */

/*
 * mongo_translate_pattern
 *		Appends to 'match' a filter of where "field OP pattern" is true, or without 'wanted',
 *		where it is false.
 *
 * 'function' is the operator's function, 'node' the pattern.  MONGO_NOT_SHIPPABLE for other
 * functions, for patterns that are not constants, and if the two engines do not provably
 * agree.
 */
extern MongoExactness mongo_translate_pattern(const MongoField *field, Oid function, Node *node, Oid collation,
											  bool wanted, bson_t *match);

/*-------------------------------------------------------------------------
 * Comparing columns of the text family, which read Strings and ObjectIds.
 *-------------------------------------------------------------------------
 */

extern const char *mongo_text_in_utf8(Oid type, Datum value, int *length);

/*
 * mongo_may_be_cut
 *		May a column of n characters compare the value, of n or more, with a text that it cuts?
 *
 * mongo_rounds_timestamp
 *		Does a column of this type, such as timestamp(2), store fewer decimals than a Date?
 */
extern bool mongo_may_be_cut(const MongoPredicate *predicate, Datum value);
extern bool mongo_rounds_timestamp(Oid column_type, int32 column_typmod);

/* -------- Shared by row.c and row_changes.c: parts of documents --------- */

extern void mongo_append_part(bson_t *document, const bson_t *source, uint32 start, uint32 end);
extern bson_t *mongo_changed_fields(bson_t *fields, const bson_t *update, const char *path,
									bool *is_whole);

#endif							/* MONGO_FDW_TRANSLATE_INTERNAL_H */
