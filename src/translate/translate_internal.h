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

/* ------------------------------ strategy.c ------------------------------- */

extern Timestamp mongo_timestamp_value(bool as_instant, Oid type, Datum value);
extern const char *mongo_text_in_utf8(Oid type, Datum value, int *length);

/* ----------------------------- comparison.c ------------------------------ */

/* More than the half unit in the 15th digit by which reading a Double may change it. */
#define MONGO_READ_ERROR	1e-14

/* Below this a double has too few digits for a relative error to mean much. */
#define MONGO_READ_TINY		1e-290

extern bool mongo_rounds_timestamp(Oid column_type, int32 column_typmod);
extern bool mongo_may_be_cut(const MongoPredicate *predicate, Datum value);

/* -------------------------------- json.c --------------------------------- */

extern double mongo_number_value(Oid type, Datum value);
extern MongoExactness mongo_json_cast_exactness(const MongoPredicate *predicate);
extern MongoMatch mongo_render_json_cast(const MongoPredicate *predicate, Datum value,
										 bson_t *match);
extern void mongo_append_other_json(BsonArray *branches, const char *path,
									bool (*may_begin) (const void *context, char first),
									const void *context);
extern void mongo_append_existence(bson_t *match, const char *path);
extern MongoMatch mongo_json_text_range(const MongoPredicate *predicate, Datum value,
										bson_t *match);

/* -------------------------------- match.c -------------------------------- */

extern bool mongo_translate_match(MongoTranslation *translation, const FuncExpr *node, bool wanted,
								  bson_t *match);

/* ---------------------------- change_stream.c ---------------------------- */

extern void mongo_append_start(bson_t *values, const char *name, const MongoField *field, Datum value);

/* ----------------------------- user_stages.c ----------------------------- */

/* The values of the parameters, for one walk over the template. */
typedef struct MongoBindContext
{
	const MongoCommandTemplate *template;
	const Datum *values;
	const bool *isnull;
	const char *const *names;	/* for EXPLAIN instead of values */
	Size	   *size;			/* of the predicates so far */
	bool	   *widened;		/* NULL: the filter must not be widened */
	bool		only_filter;	/* the pipeline's only filter */
} MongoBindContext;

extern void mongo_add_to_size(Size *size, uint32 length);
extern void mongo_append_kept_json(bson_t *document, const char *key, Datum json);
extern bson_value_t mongo_match_document(Oid relid, Datum json);
extern MongoMatch mongo_append_user_filter(bson_t *match, bson_iter_t *members);
extern MongoMatch mongo_render_match(const MongoPredicate *predicate, Datum json, bson_t *match);
extern MongoMatch mongo_bind_stages(const MongoBindContext *binding, const bson_iter_t *placeholder,
									BsonArray *bound);

/* -------------------------------- jsonb.c -------------------------------- */

extern MongoMatch mongo_jsonb_range(const MongoPredicate *predicate, Datum value, bson_t *match);
extern bool mongo_is_json_test(Oid opno);
extern bool mongo_render_json_test(const char *path, Oid opno, Datum value, bson_t *match);

/* ----------------------------- local_time.c ------------------------------ */

extern const char *mongo_constant_word(Node *node);
extern const char *mongo_constant_zone(Node *node);
extern bool mongo_local_time_of_node(MongoColumns *columns, Node *node, Oid value_type,
									 MongoField *field);
extern bool mongo_local_time_has_bounds(const MongoField *field, Node *value);
extern MongoExactness mongo_local_time_exactness(const MongoPredicate *predicate);
extern MongoMatch mongo_render_local_time(const MongoPredicate *predicate, Datum value,
										  bson_t *match);

/* ----------------------------- equivalent.c ------------------------------ */

extern MongoCondition mongo_translate_exists(MongoTranslation *translation, const SubPlan *subquery,
											 bson_t *match);

/* ------------- expression.c, and the tables of functions ----------------- */

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

/* What a row requires and returns, in addition to its template. */
#define MONGO_ROW_RAW_ARGUMENTS	0x01	/* accepts raw values */
#define MONGO_ROW_RAW_RESULT	0x02	/* returns a raw value */
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
	const char *text;			/* of mongo_expand_template(); or NULL */
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

/* A value that others contain more than once. */
typedef struct MongoLet
{
	List	   *outer;			/* translation->computed around it */
	bson_t	   *variables;
} MongoLet;

/* Returns the scope of a part whose number of decimals does not matter. */
static inline MongoScope
mongo_inner_scope(const MongoScope *scope)
{
	return (MongoScope)
	{
		scope->translation, .lazy = scope->lazy
	};
}

/* Rounds half away from zero; exact if the sum fits into the digits of a Decimal128. */
#define MONGO_ROUNDED(number) \
	"{$trunc: [{$add: [" number ", {$cond: [{$lt: [@1, 0]}, @4, @3]}]}, @2]}"

extern bool mongo_enter_node(MongoTranslation *translation, int levels);
extern void mongo_leave_node(MongoTranslation *translation, int levels, size_t written);
extern bool mongo_bind(const MongoScope *scope, Node *node, MongoLet *let);
extern bson_t *mongo_let(MongoTranslation *translation, const MongoLet *let, bson_t *expression);
extern bool mongo_variable(const MongoScope *scope, Node *node, MongoValue *value);
extern bson_t *mongo_rescale(const char *text, const MongoValue *number, int scale);
extern bool mongo_literal(const Const *constant, MongoValue *value);
extern const MongoExpressionRow *mongo_find_row(const MongoExpressionRow *rows, Oid function);

/* -------------------------- expression_build.c --------------------------- */

extern bool mongo_is_atomic(const bson_value_t *expression);
extern const char *mongo_guard_template(const char *text, const MongoValue *arguments,
										int narguments);

/* ------------------------- expression_compare.c -------------------------- */

extern int	mongo_comparison_strategy(Oid opno);
extern bool mongo_compare(const MongoScope *scope, int strategy, Node *left, Node *right,
						  Oid collation, MongoValue *value);
extern bool mongo_compare_test(const MongoScope *scope, int strategy, Node *left, Node *right,
							   Oid collation, MongoValue *value);
extern bool mongo_distinct_test(const MongoScope *scope, DistinctExpr *node, bool wanted,
								MongoValue *value);
extern bool mongo_array_comparison(const MongoScope *scope, ScalarArrayOpExpr *node,
								   MongoValue *value);
extern bool mongo_array_element(const MongoScope *scope, SubscriptingRef *node, MongoValue *value);
extern bool mongo_choice_of_node(const MongoScope *scope, Node *node, MongoValue *value);

/* ------------------------ expression_functions.c ------------------------- */

extern MongoValue mongo_text_value(const char *utf8);
extern bool mongo_text_cast(const MongoScope *scope, CoerceViaIO *node, MongoValue *value);

/* ------------------------------- pattern.c ------------------------------- */

extern MongoExactness mongo_translate_pattern(const MongoField *field, Oid function, Node *node,
											  Oid collation, bool wanted, bson_t *match);

/* --------------------------------- row.c --------------------------------- */

/*
 * A field of the document.  It has a column or children, or both if the path of one column is
 * the parent of another's ("a" and "a.b").
 */
typedef struct LayoutField
{
	const char *key;
	const char *path;			/* from the top, with dots */
	List	   *attributes;		/* columns with this path, as numbers */
	List	   *children;		/* LayoutField *, in the order of columns */
} LayoutField;

struct MongoRowLayout
{
	Oid			relid;
	TupleDesc	tuple;
	const char **paths;			/* by attribute number - 1; NULL: none */
	bson_type_t *bson_types;	/* the same; BSON_TYPE_EOD: not declared */
	AttrNumber	document_attribute; /* the column __doc, or 0 */
	AttrNumber	mismatch_attribute; /* the column __mismatch, or 0 */
	bool		write_null;
	bool		generates_id;
	LayoutField *id;			/* NULL when no column reads it */
	List	   *fields;			/* the other top-level fields */
};

/* ----------------------------- row_changes.c ----------------------------- */

extern void mongo_append_part(bson_t *document, const bson_t *source, uint32 start, uint32 end);
extern bson_t *mongo_changed_fields(bson_t *fields, const bson_t *update, const char *path,
									bool *is_whole);

#endif							/* MONGO_FDW_TRANSLATE_INTERNAL_H */
