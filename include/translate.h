/*-------------------------------------------------------------------------
 *
 * translate.h
 *		Translates expressions and rows into MongoDB's filters, expressions and documents.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TRANSLATE_H
#define MONGO_FDW_TRANSLATE_H

#include "common.h"
#include "options.h"
#include "convert.h"
#include "catalog.h"

#include "access/stratnum.h"
#include "access/tupdesc.h"
#include "catalog/pg_attribute.h"
#include "datatype/timestamp.h"
#include "lib/stringinfo.h"
#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"
#include "nodes/primnodes.h"
#include "utils/palloc.h"

/* -------------------------------- field.c -------------------------------- */

/*
 * The columns of one foreign table in one query; each is looked up when it is first used.
 *
 * Names and options are allocated in 'context', because the current context may be that of one
 * join order.  Copies (mongo_columns_under) share them.  If a pipeline joins several tables,
 * their MongoColumns form a list, and each table's document has a prefix of its own.
 */
typedef struct MongoColumns
{
	Oid			relid;			/* the foreign table */
	Oid			userid;			/* set by planning: whose user mapping counts */
	Index		varno;			/* its range table index */
	int			natts;
	AttrNumber	mismatch_column;	/* number of __mismatch; 0: none */
	bool		shows_mismatches;	/* set by planning: the query reads
									 * __mismatch, so fields that do not fit
									 * are NULL */
	MemoryContext context;		/* of names, options and their members */
	const char **names;			/* by attribute number - 1; NULL: not looked
								 * up */
	const MongoColumnOptions **options;
	const MongoStatistics *statistics;	/* set by planning, or NULL */
	const MongoTableOptions *derivation;	/* set by planning for a pipeline
											 * table; otherwise NULL */
	const char *prefix;			/* NULL: the document itself */
	const char *array;			/* not NULL: columns read its elements */
	int			element;		/* MONGO_ANY_ELEMENT or MONGO_UNWOUND_ELEMENT:
								 * the element itself; 0: what is inside it */
	AttrNumber	element_column; /* stands for the element; 0: a column does if
								 * it has the array's path */
	struct MongoColumns *next;	/* another table of the join, or NULL */
} MongoColumns;

/* A field of the documents that an expression over the table reads. */
typedef struct MongoField
{
	MongoColumns *columns;		/* of its table; NULL in a plan */
	const char *path;			/* in the document, with the table's prefix */

	/* for local time of the field, see local_time.c */
	const char *zone;			/* time zone of the local time: a name, or ""
								 * for the session's; NULL: the field itself */
	const char *result_zone;	/* zone that makes it an instant again, or
								 * NULL */
	int			time_part;		/* part of the time: an enum of local_time.c */

	Oid			type;			/* a type of comparison.c's table, or a domain
								 * over one */
	int32		typmod;			/* of the domain's base type */
	Oid			operator_type;	/* the type whose operators compare it */
	bson_type_t bson_type;		/* declared one, or BSON_TYPE_EOD */
	MongoTypeMismatch type_mismatch;	/* of the column, see
										 * mongo_column_mismatch() */
	int			element;		/* element of an array of 'type':
								 * MONGO_ANY_ELEMENT, or its number, counted
								 * from 1; 0: the field itself */
	Oid			cast_type;		/* the type that json, or json's text, is cast
								 * to; InvalidOid: no cast */
	int			wrapper;		/* a MongoJsonWrapper */
	int			index_uses;		/* MONGO_INDEX_*: of indexes that lead with it */
	bool		unindexed;		/* no index: by an option, or inside json */
} MongoField;

/* The Extended JSON wrapper within a field whose text is read. */
typedef enum MongoJsonWrapper
{
	MONGO_WRAPPER_NONE,			/* the field itself */
	MONGO_WRAPPER_OID,
	MONGO_WRAPPER_DATE,
	MONGO_WRAPPER_DECIMAL
} MongoJsonWrapper;

/* Values of MongoField.element in place of an element's number. */
#define MONGO_ANY_ELEMENT	(-1)
#define MONGO_UNWOUND_ELEMENT	(-2)	/* any element that is not an array */

extern MongoColumns *mongo_columns_create(Oid relid, Index varno, int natts);
extern MongoColumns *mongo_columns_find(MongoColumns *columns, Index varno);
extern MongoColumns *mongo_columns_under(const MongoColumns *columns, const char *prefix);
extern MongoColumns *mongo_columns_of_element(const MongoColumns *columns, const char *array,
											  int element);
extern const char *mongo_column_name(MongoColumns *columns, AttrNumber attnum);
extern const char *mongo_column_path(MongoColumns *columns, AttrNumber attnum);
extern bson_type_t mongo_column_bson_type(MongoColumns *columns, AttrNumber attnum);
extern MongoColumn *mongo_table_column(Relation table, AttrNumber attnum);
extern bool mongo_decides_fit(MongoColumns *columns, AttrNumber attnum, bool only_skipped);
extern MongoTypeMismatch mongo_column_mismatch(MongoColumns *columns, AttrNumber attnum);
extern const char *mongo_unused_field(MongoColumns *columns, const char *name);
extern Node *mongo_strip_relabelling(Node *node);
extern const Var *mongo_column_of_node(MongoColumns *columns, Node *node, MongoField *field);
extern void mongo_append_paths(bson_t *projection, List *paths);
extern void mongo_append_projection(bson_t *document, const char *key, MongoColumns *columns,
									List *attributes);
extern bool mongo_append_json_key(StringInfo path, Oid type, Datum value);
extern bool mongo_field_of_node(MongoColumns *columns, Node *node, MongoField *field);
extern bool mongo_any_element(MongoColumns *columns, Node *node, MongoField *field);
extern bool mongo_operand_of_node(MongoColumns *columns, Node *node, MongoField *field);
extern bool mongo_path_is_addressable(const char *path);
extern bool mongo_path_has_index(const char *path);
extern void mongo_append_no_parent_arrays(BsonArray *conditions, const char *path);
extern void mongo_append_no_arrays(BsonArray *conditions, const char *path);
extern void mongo_append_within_arrays(BsonArray *branches, const char *path, bson_value_t least);

/*-------------------------------------------------------------------------
 * predicate.c
 *
 * Query predicates for "column OP value", which indexes can serve.
 *
 * The same code renders them for a constant while planning and for a parameter while
 * executing.  They are exact because of the reading rules of docs/types.md and the type
 * bracketing of find's comparison operators:
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 *-------------------------------------------------------------------------
 */

/* How a translation relates to the condition it stands for. */
typedef enum MongoExactness
{
	MONGO_NOT_SHIPPABLE,
	MONGO_SUPERSET,				/* it also matches other documents, so
								 * PostgreSQL tests the condition again */
	MONGO_EXACT
} MongoExactness;

/* What a filter with values can match.  An AND matches the least of its parts, an OR the greatest. */
typedef enum MongoMatch
{
	MONGO_MATCH_NONE,			/* no document, so nothing need be sent */
	MONGO_MATCH_SOME,
	MONGO_MATCH_ALL				/* every document, as far as is known */
} MongoMatch;

typedef struct MongoTranslation MongoTranslation;

typedef enum MongoPredicateForm
{
	MONGO_PREDICATE_SCALAR,		/* column OP value */
	MONGO_PREDICATE_ANY,		/* column = ANY (array) */
	MONGO_PREDICATE_ALL,		/* column <> ALL (array) */
	MONGO_PREDICATE_EVERY,		/* column @> array: each value equals some
								 * element */
	MONGO_PREDICATE_BETWEEN,	/* column OP the first of two values; the
								 * second is a bound on the other side that
								 * another condition tests */
	MONGO_PREDICATE_MATCH		/* mongo_match(row, value), or with "<>" where
								 * that is false */
} MongoPredicateForm;

/* The largest query filter in bytes that MongoDB accepts; rendering stops soon after. */
#define MONGO_LARGEST_MATCH	(16 * 1024 * 1024)

/*
 * Plans contain it, by its table mongo_predicate_type: in 'field' from 'time_part' to 'wrapper',
 * and here from 'json_test' to 'without_nan', there must be only numbers.
 */
typedef struct MongoPredicate
{
	MongoField	field;
	Oid			json_test;		/* jsonb's operator, such as @> or ?, before
								 * 'value'; InvalidOid: a comparison */
	Oid			collation;		/* of the comparison */
	int			strategy;		/* see mongo_default_strategy() */
	MongoPredicateForm form;
	Oid			value_type;		/* of the value, or of the array's elements */
	Oid			relid;			/* of the table, for MONGO_PREDICATE_MATCH */
	bool		tests_fit;		/* it may be true only if the field fits */
	bool		without_nan;	/* another condition already excludes NaN */
} MongoPredicate;

extern const MongoStructType mongo_predicate_type;

extern MongoExactness mongo_predicate_exactness(const MongoPredicate *predicate);
extern bool mongo_predicate_compares_text(const MongoPredicate *predicate);
extern MongoMatch mongo_predicate_render(const MongoPredicate *predicate, Datum value, bool isnull,
										 bson_t *match);
extern bool mongo_cannot_fail(const bson_t *document);
extern void mongo_append_placeholder(MongoTranslation *translation, const MongoPredicate *predicate,
									 Node *value, const char *key, bson_t *match);

/* ------------------------------ strategy.c ------------------------------- */

/*
 * Operators of a type's default B-tree operator family, whose order is the only one that
 * MongoDB can have, by their strategy there (access/stratnum.h).  "<>" is in no family, but is
 * the negator of "=".
 */
#define MONGO_STRATEGY_NOT_EQUAL	6

/* find's comparison operators, by strategy. */
extern const char *const mongo_find_operators[];

extern Oid	mongo_default_opfamily(Oid type);
extern int	mongo_default_strategy(Oid opno, Oid type);
extern int	mongo_negated_strategy(int strategy);
extern int	mongo_commuted_strategy(int strategy);
extern bool mongo_is_upper_bound(int strategy);
extern bool mongo_asks_for_order(int strategy);
extern bool mongo_collation_suits(Oid collation, bool ordered);
extern bool mongo_depends_on_time_zone(const MongoPredicate *predicate);
extern void mongo_append_equal(bson_t *match, const char *path, const bson_value_t *value);
extern MongoMatch mongo_append_nothing(bson_t *match, const char *path);

/* ----------------------------- comparison.c ------------------------------ */

/* How well MongoDB can sort a type, from least to most. */
typedef enum MongoSortability
{
	MONGO_NOT_SORTABLE,
	MONGO_SORTABLE_NAN_APART,	/* except for the place of NaN */
	MONGO_SORTABLE_LAST,		/* equal values may differ in MongoDB, so no
								 * key may follow */
	MONGO_SORTABLE
} MongoSortability;

typedef struct MongoComparison
{
	MongoExactness equality_exactness;	/* of "=" and "<>" */
	MongoExactness order_exactness; /* of "<", "<=", ">=", ">" */

	/* whether sorting in MongoDB gives PostgreSQL's order, except for NULLs */
	MongoSortability sortability;

	/*
	 * Appends to an array each BSON value that reads as 'value'.  NULL if
	 * there may be many.
	 */
	void		(*append_points) (const MongoPredicate *predicate, Datum value,
								  BsonArray *points);

	/*
	 * Appends to 'match' the condition for comparisons that append_points
	 * does not serve.  NULL when order_exactness is MONGO_NOT_SHIPPABLE and
	 * there are points.
	 */
	MongoMatch	(*render_range) (const MongoPredicate *predicate, Datum value,
								 bson_t *match);

	bool		is_text;		/* MongoDB's collations affect it */
} MongoComparison;

extern bool mongo_reading_changes(Oid column_type, int32 column_typmod);
extern bool mongo_is_key(const char *path, Oid column_type, int32 column_typmod);
extern const MongoComparison *mongo_comparison_lookup(Oid column_type, int32 column_typmod,
													  bson_type_t bson_type);
extern bool mongo_equality_fits(Oid column_type, int32 column_typmod, bson_type_t bson_type,
								Oid value_type);
extern int	mongo_append_array_checks(bson_t *conditions, int index, const char *path);
extern int	mongo_append_type_checks(bson_t *conditions, int index, const char *path, Oid typid,
									 int32 typmod, bson_type_t bson_type, bool nullable,
									 bool use_expressions);

/* --------------------------------- fit.c --------------------------------- */

extern bool mongo_can_test_fit(const MongoField *field);
extern bool mongo_fits_by_range(const MongoField *field);
extern bson_t *mongo_fitting_value(const MongoField *field);
extern void mongo_append_fit(BsonArray *conditions, const MongoField *field);
extern void mongo_append_fitting(BsonArray *conditions, const MongoField *field);
extern void mongo_append_in_range(bson_t *match, const MongoField *field);
extern void mongo_append_misfit(bson_t *match, const MongoField *field);
extern bool mongo_append_all_fit(bson_t *match, MongoColumns *columns, bool only_skipped,
								 bool negated);

/* ------------------------------ condition.c ------------------------------ */

/* A value that an earlier stage of the pipeline computes, or $let around the expression. */
typedef struct MongoComputed
{
	Expr	   *expression;		/* the expression, found by equal() */
	const struct MongoValue *bound; /* the variable of $let, or NULL */
	bool		bound_scale;	/* with the MongoScope's 'scale' */
	const char *path;			/* of the value in the document */
	bool		normal;			/* in the normal form of its type */
	bool		not_null;
} MongoComputed;

/*
 * The input and the results of a translation.  With {columns} alone, it translates to find's
 * query language only.
 *
 * PostgreSQL evaluates a value that is not a constant once per scan.  In a query filter the
 * value is a parameter, {$parameter: N}, and in an aggregation expression a variable of "let",
 * "$$p0" and so on.
 */
struct MongoTranslation
{
	MongoColumns *columns;		/* of the tables in the document, or NULL */
	bool		use_expressions;	/* may aggregation expressions be used? */
	bool		skips;			/* documents that type_mismatch 'skip' leaves
								 * out are left out by an earlier stage */
	uint32		disabled;		/* MongoTableOptions.pushdown_disable */
	bool		need_exact;		/* a superset is useless: translate exactly */
	List	   *known_conditions;	/* conditions, or RestrictInfos, that are
									 * true of all rows needed */
	const List *subplans;		/* Plan *, of SubPlans; NIL: none is known */
	List	   *computed;		/* MongoComputed *, searched first */
	List	   *parameters;		/* Expr *, one for each placeholder */
	List	   *predicates;		/* MongoPredicate *, parallel */
	List	   *variables;		/* Expr *, of "let" */
	bool		compares_text;	/* the command needs the simple collation */
	bool		keeps_collation;	/* the command must not specify one */
	int			depth;			/* of the current node below the condition */
	size_t		work;			/* what it has taken so far, about the bytes
								 * written */
};

/* Returns false if the command, which would compare text, keeps its collation. */
static inline bool
mongo_compare_text(MongoTranslation *translation)
{
	translation->compares_text |= !translation->keeps_collation;
	return !translation->keeps_collation;
}

/* The state of a translation, to return to if a part of it fails. */
typedef struct MongoMark
{
	int			nparameters;
	int			nvariables;
	bool		compares_text;
} MongoMark;

static inline MongoMark
mongo_mark(const MongoTranslation *translation)
{
	return (MongoMark)
	{
		list_length(translation->parameters), list_length(translation->variables),
			translation->compares_text
	};
}

/* Undoes what has been added to a translation since mongo_mark(). */
static inline void
mongo_return_to(MongoTranslation *translation, MongoMark mark)
{
	translation->parameters = list_truncate(translation->parameters, mark.nparameters);
	translation->predicates = list_truncate(translation->predicates, mark.nparameters);
	translation->variables = list_truncate(translation->variables, mark.nvariables);
	translation->compares_text = mark.compares_text;
}

/* What a condition looks up in an index, from the least to the most selective. */
typedef enum MongoSeek
{
	MONGO_SEEK_NOTHING,
	MONGO_SEEK_RANGE,			/* <, <=, > and >= */
	MONGO_SEEK_NARROW_RANGE,	/* equality, of a value that reading may round */
	MONGO_SEEK_VALUES,			/* one of a list */
	MONGO_SEEK_VALUE
} MongoSeek;

/* Returns the MONGO_INDEX_* use that an index must have for the lookup. */
static inline int
mongo_seek_use(MongoSeek seek)
{
	return seek >= MONGO_SEEK_VALUES ? MONGO_INDEX_EQUALITY : MONGO_INDEX_RANGE;
}

/* The result of translating one condition. */
typedef struct MongoCondition
{
	MongoExactness exactness;
	bool		strict;			/* it is not true if all columns are NULL */
	MongoSeek	seek;
	const char *path;			/* of the one field looked up; NULL with
								 * MONGO_SEEK_NOTHING */
	bool		indexed;		/* indexes that lead with the field, or with
								 * each of several, find the documents */
	bool		unique;			/* one document matches, or few more */
	bool		one_value;		/* ... because one BSON value is compared */
} MongoCondition;

extern void mongo_append_branches(bson_t *match, const List *conditions, bool conjunction);
extern MongoCondition mongo_translate_for_element(MongoTranslation *translation,
												  const MongoColumns *columns, const char *path,
												  int element, Expr *clause, bson_t *match);
extern MongoCondition mongo_translate_condition(MongoTranslation *translation, Expr *clause,
												bson_t *match);

/* ----------------------------- local_time.c ------------------------------ */

struct PlannerInfo;
extern List *mongo_local_time_range(struct PlannerInfo *root, MongoColumns *columns, const OpExpr *clause);

/* ----------------------------- equivalent.c ------------------------------ */

extern Node *mongo_equivalent_condition(Node *node, bool wanted);

/*-------------------------------------------------------------------------
 * expression.c
 *
 * Translation of SQL expressions into MongoDB's aggregation expressions.
 *
 * For documents whose fields fit their columns (docs/types.md), the result is a value of any BSON
 * type that the expression's type reads as PostgreSQL's value.  NULL is null or a missing value; a
 * boolean is true, false or null.  docs/pushdown.md lists the exceptions: MongoDB's arithmetic has
 * a wider range, and a document that does not fit may go unnoticed or raise MongoDB's error.
 *
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/
 *-------------------------------------------------------------------------
 */

/* MongoDB does not round numerics of a greater precision to their scale. */
#define MONGO_MAX_PRECISION	32

/* An upper bound of the number of digits that finite values can have. */
typedef struct MongoDigits
{
	bool		known;			/* from constants, column types, and exact
								 * functions of them */
	int			integral;		/* digits before the decimal point */
	int			scale;			/* and after it */
} MongoDigits;

/*
 * A translated expression, or a part of one.
 *
 * A raw value comes unchanged from a document or from MongoDB's arithmetic; it has any BSON
 * type that a column of the SQL type reads.  A value in normal form has the one BSON type that
 * the SQL type is written as.
 */
typedef struct MongoValue
{
	bson_t	   *expression;		/* one element, named "" */
	Oid			type;			/* a base type */
	int32		typmod;
	MongoDigits digits;			/* of a number */
	bool		raw;
	bool		nullable;		/* can it be null or missing? */
	bool		nan;			/* can it be NaN? */
} MongoValue;

/* Where an expression is translated. */
typedef struct MongoScope
{
	MongoTranslation *translation;
	bool		scale;			/* does the number of decimals of a numeric
								 * matter, in addition to its value? */
	bool		lazy;			/* may the value remain unused, so that it
								 * must not be evaluated early if it can fail? */
	bool		guarded;		/* does the caller detect a value that was
								 * rounded to the digits of a Decimal128? */
} MongoScope;

#define MONGO_MAX_ARGUMENTS	8

/* Builds an expression from BSON values. */
#define mongo_expression(text, ...) \
	mongo_expression_of_values(text, MONGO_VALUES(__VA_ARGS__))

extern bool mongo_digits_fit(MongoDigits digits);
extern bool mongo_is_local_value(const MongoTranslation *translation, Node *node);
extern bson_t *mongo_decimal_of_number(const MongoValue *value);
extern bool mongo_normalize(const MongoScope *scope, MongoValue *value);
extern bool mongo_is_too_deep(const bson_t *document);
extern bool mongo_value_of_node(const MongoScope *scope, Node *node, MongoValue *value);
extern bool mongo_test_of_node(const MongoScope *scope, Node *node, bool wanted, MongoValue *value);
extern bool mongo_normal_value_of_node(const MongoScope *scope, Node *node, MongoValue *value);
extern bson_t *mongo_translate_test(MongoTranslation *translation, Node *node, bool wanted);

/* -------------------------- expression_build.c --------------------------- */

extern void mongo_append_expression(bson_t *document, const char *key, const bson_t *expression);
extern bson_t *mongo_expression_of_values(const char *text, const BsonValue *values,
										  int nvalues);
extern MongoValue mongo_argument(bson_value_t value);
extern MongoValue mongo_decimal_value(const char *text);
extern const char *mongo_path_of_expression(const bson_t *expression);
extern bson_t *mongo_expand_template(const char *text, const MongoValue *arguments,
									 int narguments);
extern MongoValue mongo_result(const char *text, const MongoValue *arguments, int narguments,
							   Oid type, bool nullable);
extern const char *mongo_variable_name(int number);

/* ------------------------- expression_compare.c -------------------------- */

extern bool mongo_text_suits(const MongoScope *scope, Oid type, Oid collation, bool ordered);
extern bool mongo_make_comparable(const MongoScope *scope, MongoValue *value);

/* ----------------------------- user_stages.c ----------------------------- */

extern void mongo_check_javascript(const MongoTableOptions *options, const bson_iter_t *value,
								   const char *what);

/* -------------------------------- match.c -------------------------------- */

extern bool mongo_calls_match(Node *node, void *varno);
extern bool mongo_is_score(const Node *node, Index varno);

/* ------------------------------ template.c ------------------------------- */

/* Keys in the templates of commands; template.c explains them. */
#define MONGO_PARAMETER_KEY	"$parameter"
#define MONGO_VERBATIM_KEY	"$verbatim"
#define MONGO_VALUES_KEY	"$values"
#define MONGO_TABLE_KEY		"$table"
#define MONGO_PARAM_KEY		"$param"

/* The value of a variable of a command's "let". */
typedef struct MongoVariable
{
	Oid			type;
	int32		typmod;
	Datum		value;
	bool		isnull;
} MongoVariable;

/* A template prepared for one execution of a plan. */
typedef struct MongoCommandTemplate
{
	const bson_t *command;
	const List *predicates;		/* MongoPredicate *, one for each parameter */

	/* of a run: */
	int			nvariables;
	MongoVariable *variables;	/* not for EXPLAIN */
	int64		skip;
	int64		limit;			/* -1: none */
	int64		enough_rows;	/* takes the place of limit -1, unless the
								 * command is widened; -1: none */
	int			batch_size;		/* documents in the first batch */
} MongoCommandTemplate;

extern Const *mongo_command_to_const(const bson_t *command);
extern const bson_t *mongo_command_from_const(const Const *node);
extern MongoMatch mongo_command_bind(const MongoCommandTemplate *command_template, const Datum *values,
									 const bool *isnull, bool *widened, bson_t *command);
extern void mongo_command_describe(const MongoCommandTemplate *command_template, const char *const *names,
								   bson_t *command);

/* ---------------------------- change_stream.c ---------------------------- */

extern bool mongo_starts_stream(const char *parameter, int strategy);
extern void mongo_append_change_stream(BsonArray *stages, const MongoTableOptions *options,
									   MongoColumns *columns, const Bitmapset *read,
									   const char *start);
extern void mongo_set_start(MongoField *field, const char *parameter, bool after);
extern bson_t *mongo_resume_through_matches(const bson_t *command);

/* ----------------------------- row_changes.c ----------------------------- */

/* The documents of an update's operators, to be filled in; none is NULL. */
typedef struct MongoUpdateOperators
{
	bson_t	   *set;			/* {path: value} */
	bson_t	   *unset;			/* {path: true} */
	bson_t	   *push;			/* {path: {$each: [], $slice: length}} */
} MongoUpdateOperators;

extern bool mongo_is_nested_type(Oid typid);
extern bool mongo_append_changes(MongoUpdateOperators *operators, const char *path, Datum old_value,
								 Datum new_value, Oid typid, int32 typmod);

/* --------------------------------- row.c --------------------------------- */

/* The place of each column of a table in a document; opaque. */
typedef struct MongoRowLayout MongoRowLayout;

extern MongoRowLayout *mongo_row_layout_create(MemoryContext context, Oid relid, TupleDesc tuple,
											   bool write_null, bool generates_id);
extern bool mongo_row_layout_overlaps(const MongoRowLayout *layout);
extern bool mongo_row_keeps(const MongoRowLayout *layout, AttrNumber attnum);
extern bool mongo_row_may_generate(const MongoRowLayout *layout, AttrNumber attnum);
extern void mongo_append_column_value(bson_t *document, const char *key, const char *path,
									  Datum value, Form_pg_attribute attribute,
									  bson_type_t bson_type);
extern void mongo_row_to_document(const MongoRowLayout *layout, const Datum *values,
								  const bool *isnull, bson_t *document, bool *generated,
								  bson_oid_t *oid);
extern void mongo_row_to_update(const MongoRowLayout *layout, List *attributes, const Datum *values,
								const bool *isnull, const Datum *old_values, const bool *old_isnull,
								bson_t *update);
extern bool mongo_row_replacement(const MongoRowLayout *layout, const List *assigned,
								  const Datum *values, const bson_t *filter, bson_t *document);
extern void mongo_mismatch_after_update(const MongoRowLayout *layout, const bson_t *update,
										Datum *values, bool *isnull);
extern void mongo_row_after_update(const MongoRowLayout *layout, AttrNumber attnum,
								   bool is_assigned, const Datum *values, const bool *isnull,
								   const bson_t *update, bson_t *document);
extern bool mongo_has_empty_timestamp(const bson_t *document);
extern List *mongo_overlapped_columns(Relation relation, const List *assigned);
extern bool mongo_may_leave_partition(Relation relation, const List *attributes);
extern void mongo_check_assignable(Oid relid, List *attributes);

/* ------------------------------- upsert.c -------------------------------- */

/* How the rows of one statement with the option insert_mode find and change documents; opaque. */
typedef struct MongoUpsertLayout MongoUpsertLayout;

extern void mongo_document_to_upsert(const bson_t *document, bson_t *filter, bson_t *update);
extern MongoUpsertLayout *mongo_upsert_layout_create(Oid relid, TupleDesc tuple,
													 const MongoTableOptions *options,
													 const Bitmapset *given, bool has_trigger);
extern List *mongo_upsert_updatable(const MongoUpsertLayout *layout);
extern void mongo_row_to_upsert(const MongoUpsertLayout *layout, const Datum *values,
								const bool *isnull, const bson_t *document, bool generated,
								bson_t *filter, bson_t *update);
extern void mongo_describe_upsert(const MongoUpsertLayout *layout, bson_t *filter, bson_t *update);

/* ------------------------------- source.c -------------------------------- */

/* What happens to a document without an array at a path that is unwound. */
typedef enum MongoNoArray
{
	MONGO_NO_ARRAY_RAISES,		/* MongoDB's error, as of MONGO_MISMATCH */
	MONGO_NO_ARRAY_IS_NULL,		/* it is read as NULL */
	MONGO_NO_ARRAY_IS_LEFT_OUT
} MongoNoArray;

extern const char *mongo_deriving_option(const MongoTableOptions *options);
extern void mongo_append_pipeline(BsonArray *stages, const MongoTableOptions *options);
extern const char *mongo_score_meta(const MongoTableOptions *options);
extern bson_t *mongo_aggregate_command(const MongoTableOptions *options, const bson_t *stages);
extern List *mongo_unwound_paths(const MongoTableOptions *options);
extern List *mongo_ordinality_fields(const MongoTableOptions *options);
extern bson_t *mongo_mismatch_expression(const MongoTableOptions *options, const char *path,
										 const char *type, bson_value_t value);
extern void mongo_append_unwind(BsonArray *stages, const MongoTableOptions *options, int number,
								bool numbered, MongoNoArray no_array);
extern void mongo_append_ordinality(BsonArray *stages, const MongoTableOptions *options);
extern void mongo_append_deriving_stages(BsonArray *stages, const MongoTableOptions *options);

/* Tells whether the table's pipelines begin with stages of the option pipeline, or with $changeStream. */
static inline bool
mongo_has_first_stages(const MongoTableOptions *options)
{
	return options->pipeline != NULL || options->change_stream != NULL;
}

/* Tells whether the table's rows are computed by stages. */
static inline bool
mongo_is_pipeline_table(const MongoTableOptions *options)
{
	return mongo_deriving_option(options) != NULL;
}

#endif							/* MONGO_FDW_TRANSLATE_H */
