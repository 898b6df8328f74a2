/*-------------------------------------------------------------------------
 *
 * translate.h
 *		PostgreSQL's expressions and rows as MongoDB's conditions, expressions and documents.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TRANSLATE_H
#define MONGO_FDW_TRANSLATE_H

#include "compat.h"
#include "common.h"
#include "options.h"
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

/* ------- From a foreign table's Vars to the fields of its documents ------- */

/* The name of the column that holds the whole document. */
#define MONGO_DOCUMENT_COLUMN	"__doc"

/*
 * The columns of one foreign table in one query, looked up when first used.
 *
 * Names and options are kept in 'context', as the current context may be that of one join
 * order; copies (mongo_columns_under) share them.  If a pipeline joins several tables, their
 * MongoColumns form a list, and each table's document has a prefix of its own.
 */
typedef struct MongoColumns
{
	Oid			relid;			/* the foreign table */
	Index		varno;			/* its range table index */
	int			natts;
	MongoTypeMismatch type_mismatch;
	MemoryContext context;		/* of the next two and what they point to */
	const char **names;			/* by attribute number - 1; NULL: not used yet */
	const MongoColumnOptions **options;
	const MongoStatistics *statistics;	/* set by planning, or NULL */
	const MongoTableOptions *derivation;	/* of a pipeline table; set by
											 * planning; else NULL */
	const char *prefix;			/* NULL: the document itself */
	const char *array;			/* not NULL: the columns are those of an
								 * element of this array: */
	bool		whole;			/* ... the element itself, or else its fields */
	struct MongoColumns *next;	/* another table of the join, or NULL */
} MongoColumns;

/* mongo_columns_create: nothing looked up yet; lives in 'context', with all that will be. */
extern MongoColumns *mongo_columns_create(MemoryContext context, Oid relid,
										  Index varno, int natts,
										  MongoTypeMismatch type_mismatch);

/* mongo_columns_find: the member of the list that is about 'varno'; NULL when there is none. */
extern MongoColumns *mongo_columns_find(MongoColumns *columns, Index varno);

/* mongo_columns_under: the same table alone, with another prefix. */
extern MongoColumns *mongo_columns_under(const MongoColumns *columns,
										 const char *prefix);

/* mongo_columns_of_element: the same table alone, of whose arrays one has to be unwound. */
extern MongoColumns *mongo_columns_of_element(const MongoColumns *columns, const char *array,
											  bool whole);

/* mongo_unused_field: 'name', or a longer one, that no column reads but those under a prefix. */
extern const char *mongo_unused_field(MongoColumns *columns, const char *name);

/* A field of the documents, as an expression over the table names it. */
typedef struct MongoField
{
	MongoColumns *columns;		/* of its table; NULL in a plan */
	const char *path;			/* in the document, with the table's prefix */

	/* for local time of the field, see translate_internal.h */
	const char *zone;			/* of the local time: a name, "" for the
								 * session's; NULL: the field itself */
	const char *result_zone;	/* in which that time is an instant again, or
								 * NULL */
	int			time_part;		/* the part of the time: an enum of
								 * local_time.c */

	Oid			type;			/* of its row in comparison.c, or a domain
								 * over it */
	int32		typmod;			/* of the type below the domain */
	Oid			operator_type;	/* whose operators compare it */
	bson_type_t bson_type;		/* the one it is declared to have, or
								 * BSON_TYPE_EOD, see convert.h */
	int			element;		/* of an array of 'type': MONGO_ANY_ELEMENT of
								 * translate.h, or which, counted from 1; 0:
								 * the field itself */
	Oid			cast_type;		/* of the text of json, or json: what it is
								 * cast to; InvalidOid: nothing */
	int			wrapper;		/* a MongoJsonWrapper of translate.h */
	int			index_uses;		/* MONGO_INDEX_*: of indexes that lead with it */
	bool		unindexed;		/* no index is to be thought of, says the user */
} MongoField;

/* What is below binary-compatible relabelling, as of a varchar read as text; NULL for NULL. */
extern Node *mongo_strip_relabelling(Node *node);

/*
 * The column that 'node' is, below binary-compatible relabelling, and its field; NULL for
 * anything else, and for the whole-document column.
 */
extern const Var *mongo_column_of_node(MongoColumns *columns, Node *node,
									   MongoField *field);

/*
 * Of an attribute number of the first table.  The path, in the table's own documents, is NULL
 * for the whole document; the BSON type is what its option bson_type says.  Whatever looks up
 * more of a column than its name raises 42804 where the type cannot have that.
 */
extern const char *mongo_column_name(MongoColumns *columns, AttrNumber attnum);
extern const char *mongo_column_path(MongoColumns *columns, AttrNumber attnum);
extern bson_type_t mongo_column_bson_type(MongoColumns *columns, AttrNumber attnum);

/* mongo_append_paths: append to a projection these addressable paths, char *; _id if none. */
extern void mongo_append_paths(bson_t *projection, List *paths);

/*
 * Append to 'command' a "projection" of these attribute numbers' fields, and of _id, which
 * errors name; nothing when only the whole document will do: for a column __doc, or a path
 * that query predicates cannot name.
 */
extern void mongo_append_projection(bson_t *command, MongoColumns *columns,
									List *attributes);

/*
 * Can query predicates name the path?  Not with components that are empty or begin with '$',
 * nor with more of them than a stored document has levels.  On the way and at the end it
 * looks into arrays, which SQL does not.
 */
extern bool mongo_path_is_addressable(const char *path);

/* mongo_path_has_index: does a component consist of digits, as the number of an element does? */
extern bool mongo_path_has_index(const char *path);

/* Of Extended JSON's wrappers, that whose text within a field is meant. */
typedef enum MongoJsonWrapper
{
	MONGO_WRAPPER_NONE,			/* the field itself */
	MONGO_WRAPPER_OID,
	MONGO_WRAPPER_DATE,
	MONGO_WRAPPER_DECIMAL
} MongoJsonWrapper;

/* In place of the number of an element of an array. */
#define MONGO_ANY_ELEMENT	(-1)
#define MONGO_UNWOUND_ELEMENT	(-2)	/* any of them, which is no array */

/* Append to the conditions that the path goes through no array, and with the first leads to none. */
extern void mongo_append_no_arrays(BsonArray *conditions, const char *path);
extern void mongo_append_no_parent_arrays(BsonArray *conditions, const char *path);

/*
 * Append to the branches of an $or that in the array is something neither null nor of the
 * class with the least value 'least': another array perhaps.
 */
extern void mongo_append_within_arrays(BsonArray *branches, const char *path,
									   bson_value_t least);

/*
 * Operators of the default B-tree family of a type, whose order alone is MongoDB's, by their
 * strategy there (access/stratnum.h).  "<>" is in no family, but the negator of one's "=".
 */
#define MONGO_STRATEGY_NOT_EQUAL	6

/*
 * Of a varchar that of text, of an array array_ops, of a domain that of its base type;
 * InvalidOid: there is none.
 */
extern Oid	mongo_default_opfamily(Oid type);

/* Of an operator in the family of 'type', its left operand's; 0 of any other. */
extern int	mongo_default_strategy(Oid operator, Oid type);

/* Of the operator that is TRUE where this one is FALSE; of the one with operands exchanged. */
extern int	mongo_negated_strategy(int strategy);
extern int	mongo_commuted_strategy(int strategy);

/* mongo_is_upper_bound: "<" and "<=", which leave NaN and what is above out. */
extern bool mongo_is_upper_bound(int strategy);

/* mongo_asks_for_order: anything but "=" and "<>". */
extern bool mongo_asks_for_order(int strategy);

/* find's comparison operators, by strategy. */
extern const char *const mongo_find_operators[];

/*
 * "column OP value" as query predicates, which indexes can serve.
 *
 * The same code renders it for a constant while planning and for a parameter while
 * executing.  What makes it exact are the reading rules of docs/types.md, the type
 * bracketing of find's comparison operators, and
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 */

/* How a translation relates to the condition it stands for. */
typedef enum MongoExactness
{
	MONGO_NOT_SHIPPABLE,
	MONGO_SUPERSET,				/* matches others as well, so PostgreSQL also
								 * tests the condition */
	MONGO_EXACT
} MongoExactness;

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

/* The most bytes of a query filter that MongoDB takes; rendering stops soon after. */
#define MONGO_LARGEST_MATCH	(16 * 1024 * 1024)

typedef struct MongoPredicate
{
	MongoField	field;
	Oid			json_test;		/* jsonb's operator @> or ?, that 'value' is
								 * to the right of; InvalidOid: a comparison */
	Oid			collation;		/* of the comparison */
	int			strategy;		/* of the operator, see translate.h */
	MongoPredicateForm form;
	Oid			value_type;		/* of the value, or of the array's elements */
	MongoTypeMismatch type_mismatch;
	bool		without_nan;	/* another condition keeps NaN out already */
} MongoPredicate;

/* mongo_predicate_exactness: the exactness of its rendering, for any value. */
extern MongoExactness mongo_predicate_exactness(const MongoPredicate *predicate);

/* mongo_predicate_compares_text: must the command ask for the simple collation? */
extern bool mongo_predicate_compares_text(const MongoPredicate *predicate);

/*
 * Append to 'match', which is empty, where the predicate, which is shippable, is true.  'value'
 * is a Datum of value_type, or of its array type for all forms but SCALAR.  If 'match' becomes
 * longer than MONGO_LARGEST_MATCH, the rest of an array may be missing in it.
 */
extern MongoMatch mongo_predicate_render(const MongoPredicate *predicate,
										 Datum value, bool isnull,
										 bson_t *match);

/* A predicate as nodes that a plan can hold, and back. */
extern List *mongo_predicate_to_list(const MongoPredicate *predicate);
extern MongoPredicate *mongo_predicate_from_list(List *list);

/*
 * Commands that a plan holds, and the values that execution binds.
 *
 * In the filters of a template {$parameter: N} stands for a predicate whose value is
 * known when the scan starts.  {$verbatim: ...} stands for the stages of an array, or for
 * the members of a document, in which nothing is looked for, as they are a user's own.
 */

#define MONGO_VERBATIM_KEY	"$verbatim"

/* A template made ready for one execution of a plan. */
typedef struct MongoCommandTemplate
{
	bson_t	   *command;
	int			nparameters;
	MongoPredicate **predicates;	/* one for each parameter */

	/* of a pipeline, if greater than 0 */
	int64		skip;			/* $skip and $limit become its last stages */
	int64		limit;
	int			batch_size;		/* documents in the first batch */
} MongoCommandTemplate;

/* A document as a node that a plan can hold, and back (a copy). */
extern Const *mongo_command_to_const(const bson_t *command);
extern bson_t *mongo_command_from_const(MemoryContext context, const Const *node);

/*
 * Append the template to 'command', with values[] and isnull[] for its parameters.  NONE when
 * the filter turns out to match no document, so that nothing need be sent; 'command' is
 * complete all the same.
 *
 * A list of values that makes the command longer than MongoDB takes is left out, and *widened
 * set: PostgreSQL is to test the documents, of which more are matched then.  Where 'widened'
 * is NULL, or more documents below would be fewer above, that raises 54000.
 */
extern MongoMatch mongo_command_bind(const MongoCommandTemplate *template,
									 const Datum *values, const bool *isnull,
									 bool *widened, bson_t *command);

/* mongo_command_describe: the template for EXPLAIN, with these texts for the parameters. */
extern void mongo_command_describe(const MongoCommandTemplate *template,
								   const char *const *names, bson_t *command);

/* The value of a variable of a command's "let". */
typedef struct MongoVariable
{
	Oid			type;
	int32		typmod;
	Datum		value;
	bool		isnull;
} MongoVariable;

/* mongo_bind_variables: append "let"; raises 22003, 22008, 22021 for what has no BSON form. */
extern void mongo_bind_variables(const MongoVariable *variables, int nvariables,
								 bson_t *command);

/* mongo_describe_variables: the same with the text of each value's expression, for EXPLAIN. */
extern void mongo_describe_variables(const char *const *names, int nvariables,
									 bson_t *command);

/* ------ How values of each type class compare in query predicates -------- */

/* From the least to the most. */
typedef enum MongoSortability
{
	MONGO_NOT_SORTABLE,
	MONGO_SORTABLE_NAN_APART,	/* but for where NaN stands */
	MONGO_SORTABLE_LAST,		/* ties are broken, so no key may follow */
	MONGO_SORTABLE
} MongoSortability;

typedef struct MongoComparison
{
	MongoExactness equality_exactness;	/* of "=" and "<>" */
	MongoExactness order_exactness; /* of "<", "<=", ">=", ">" */

	/* sorting in MongoDB gives PostgreSQL's order, but for NULLs */
	MongoSortability sortability;

	/*
	 * Append to an array each BSON value that reads as 'value'.  NULL when
	 * those are not a handful.
	 */
	void		(*append_points) (const MongoPredicate *predicate, Datum value,
								  BsonArray *points);

	/*
	 * Append to 'match' the condition for what is not made of points.  NULL
	 * when order_exactness is MONGO_NOT_SHIPPABLE and there are points.
	 */
	MongoMatch	(*render_range) (const MongoPredicate *predicate, Datum value,
								 bson_t *match);

	bool		is_text;		/* MongoDB's collations matter */
} MongoComparison;

/* Append {path: {$in: []}}, which matches nothing and MongoDB plans as EOF; gives NONE. */
extern MongoMatch mongo_append_nothing(bson_t *match, const char *path);

/*
 * The row of a base type (not a domain); NULL: only PostgreSQL compares its values.  A
 * timestamp that rounds what it reads has one of its own, and so has a text that is declared
 * to be a certain BSON type (BSON_TYPE_EOD: is not).
 */
extern const MongoComparison *mongo_comparison_lookup(Oid column_type, int32 column_typmod,
													  bson_type_t bson_type);

/* mongo_reading_changes: may a column of this base type read another value than is stored? */
extern bool mongo_reading_changes(Oid column_type, int32 column_typmod);

/*
 * Does the value's meaning depend on the session's time zone, which a plan may outlive?  Then
 * execution renders even a constant.
 */
extern bool mongo_depends_on_time_zone(const MongoPredicate *predicate);

/*
 * Can a column of this type read a field that equals a value of 'value_type'?  False for what
 * the type itself does not tell.
 */
extern bool mongo_equality_fits(Oid column_type, int32 column_typmod,
								bson_type_t bson_type, Oid value_type);

/* ------------------- The field that an expression reads ------------------- */

/*
 * The field that 'node' reads: a column, as mongo_column_of_node() has it, or a chain of
 * accessors (->, ->>, #>, #>>, subscripts) with constant keys on a json or jsonb column; false
 * for anything else, and for the whole-document column.
 */
extern bool mongo_field_of_node(MongoColumns *columns, Node *node,
								MongoField *field);

/*
 * Any element of the array that 'node' reads, as a field of the elements' type; false for what
 * is no array.
 */
extern bool mongo_any_element(MongoColumns *columns, Node *node, MongoField *field);

/*
 * The field that 'node' reads, the element of an array with a constant subscript, what is
 * inside json cast to another type, or the text within a wrapper of Extended JSON.
 */
extern bool mongo_operand_of_node(MongoColumns *columns, Node *node,
								  MongoField *field);

/*
 * Append "." and one constant key, text or int4, of json or jsonb to a path; false when it has
 * no place there, as a key with a dot or an index from the end.
 */
extern bool mongo_append_json_key(StringInfo path, Oid type, Datum value);

/* ---------------------- SQL conditions as query filters ------------------- */

/* A value that an earlier stage of the pipeline has computed. */
typedef struct MongoComputed
{
	Expr	   *expression;		/* whose value it is, found by equal() */
	const char *path;			/* where it stands in the document */
	bool		normal;			/* in the normal form of its type */
	bool		not_null;
} MongoComputed;

/*
 * What a translation reads and what it gathers.  {columns} alone translates to find's
 * language.
 *
 * A value that is not a constant is evaluated by PostgreSQL, once per scan: in a match
 * document it is a parameter, {$parameter: N}, and in an aggregation expression a variable
 * of "let", "$$p0" and so on.
 */
typedef struct MongoTranslation
{
	MongoColumns *columns;		/* of the tables in the document, or NULL */
	bool		use_expressions;	/* may aggregation expressions be used? */
	uint32		disabled;		/* MongoTableOptions.pushdown_disable */
	bool		need_exact;		/* a superset is of no use: make it exact */
	List	   *known_conditions;	/* conditions, or RestrictInfos, that hold
									 * for all rows that are of use */
	List	   *computed;		/* MongoComputed *, looked for first */
	List	   *parameters;		/* Expr *, one for each placeholder */
	List	   *predicates;		/* of mongo_predicate_to_list(), in step */
	List	   *variables;		/* Expr *, of "let" */
	bool		compares_text;	/* the command needs the simple collation */
	int			depth;			/* of the part in hand, below the condition */
} MongoTranslation;

/* What a translation has gathered, to go back to where a part of it fails. */
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

static inline void
mongo_return_to(MongoTranslation *translation, MongoMark mark)
{
	translation->parameters = list_truncate(translation->parameters, mark.nparameters);
	translation->predicates = list_truncate(translation->predicates, mark.nparameters);
	translation->variables = list_truncate(translation->variables, mark.nvariables);
	translation->compares_text = mark.compares_text;
}

/* What an index is asked for by a condition, the less the earlier. */
typedef enum MongoSeek
{
	MONGO_SEEK_NOTHING,
	MONGO_SEEK_RANGE,			/* <, <=, > and >= */
	MONGO_SEEK_NARROW_RANGE,	/* equality, of what reading may round */
	MONGO_SEEK_VALUES,			/* one of a list */
	MONGO_SEEK_VALUE
} MongoSeek;

/* mongo_seek_use: which of MONGO_INDEX_* an index must have for that. */
static inline int
mongo_seek_use(MongoSeek seek)
{
	return seek >= MONGO_SEEK_VALUES ? MONGO_INDEX_EQUALITY : MONGO_INDEX_RANGE;
}

/* What became of one condition. */
typedef struct MongoCondition
{
	MongoExactness exactness;
	bool		strict;			/* it is not true of rows whose columns are
								 * all NULL */
	MongoSeek	seek;
	const char *path;			/* of the one field that is sought by; NULL
								 * with MONGO_SEEK_NOTHING */
	bool		indexed;		/* an index that leads with the field, or with
								 * each of several, can find the documents */
	bool		unique;			/* one document matches, or hardly more */
	bool		one_value;		/* ... for only one BSON value is meant */
} MongoCondition;

#define MONGO_PARAMETER_KEY	"$parameter"

/*
 * Write to 'match', an empty document, when 'clause' is true.  With MONGO_NOT_SHIPPABLE, 'match'
 * is left in any state and 'translation' as it was.  Nothing is evaluated but constants;
 * 'clause' is not modified, but the parameters point into it.
 */
extern MongoCondition mongo_translate_condition(MongoTranslation *translation,
												Expr *clause, bson_t *match);

/*
 * Pipeline tables, whose rows stages make of the documents: those of the
 * option pipeline, and then, for each path of the option unwind, those that make a row of each
 * element.
 */

/*
 * mongo_deriving_option: the option that makes the rows of such a table; NULL: they are documents.
 * mongo_has_first_stages: do stages of mongo_append_pipeline() begin its pipelines?
 */
extern const char *mongo_deriving_option(const MongoTableOptions *options);
extern bool mongo_has_first_stages(const MongoTableOptions *options);

static inline bool
mongo_is_pipeline_table(const MongoTableOptions *options)
{
	return mongo_deriving_option(options) != NULL;
}

/* What becomes of a document that has no array where one is unwound. */
typedef enum MongoNoArray
{
	MONGO_NO_ARRAY_RAISES,		/* an error of MongoDB's, as of MONGO_MISMATCH */
	MONGO_NO_ARRAY_IS_NULL,		/* it is read as NULL */
	MONGO_NO_ARRAY_IS_LEFT_OUT
} MongoNoArray;

/* The parts of the options, in UTF-8, char *. */
extern List *mongo_unwound_paths(const MongoTableOptions *options);
extern List *mongo_ordinality_fields(const MongoTableOptions *options);

/*
 * Raise 42501, with 'what' first in the message, if the array or document, a user's own, has
 * operators that run JavaScript and the server's option allow_javascript does not allow that.
 */
extern void mongo_check_javascript(const MongoTableOptions *options,
								   const bson_iter_t *value, const char *what);

/* Append the stages of the option pipeline, if there is one; raises 42501 likewise. */
extern void mongo_append_pipeline(BsonArray *stages, const MongoTableOptions *options);

/* mongo_aggregate_command: {aggregate, pipeline} over the table's collection, to be completed. */
extern bson_t *mongo_aggregate_command(const MongoTableOptions *options, const bson_t *stages);

/*
 * Append what makes a row of each element, for the path with this number.  Missing fields,
 * nulls and empty arrays have no row, or one with unwind_empty.
 */
extern void mongo_append_unwind(BsonArray *stages, const MongoTableOptions *options,
								int number, MongoNoArray no_array);

/* Append, behind all of those, what makes the elements' numbers begin with 1. */
extern void mongo_append_ordinality(BsonArray *stages, const MongoTableOptions *options);

/* All of that, for those who look at the rows of all documents: what is no array is NULL. */
extern void mongo_append_deriving_stages(BsonArray *stages, const MongoTableOptions *options);

/* Columns of more digits are not rounded to their scale by MongoDB. */
#define MONGO_MAX_PRECISION	32

/* How many digits a number can have: an upper bound, of finite values. */
typedef struct MongoDigits
{
	bool		known;			/* by constants, types of columns, and exact
								 * functions of them */
	int			integral;		/* digits before the decimal point */
	int			scale;			/* and after it */
} MongoDigits;

/* mongo_digits_fit: does a Decimal128 hold every such number? */
extern bool mongo_digits_fit(MongoDigits digits);

/*
 * SQL expressions as aggregation expressions of MongoDB.
 *
 * For documents whose fields fit their columns (docs/types.md) they give what the reader of
 * the expression's type reads as PostgreSQL's value, of whatever BSON type; null, or
 * nothing at all, for NULL; true, false or null for a boolean.  docs/pushdown.md has the
 * exceptions: MongoDB's arithmetic is wider, and a document that does not fit may go
 * unnoticed or raise MongoDB's error.
 *
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/
 */

/*
 * The aggregation expression for 'node', a document with one element, named ""; NULL when it is
 * not shippable, with 'translation' as it was.  Nothing is without use_expressions, nor under
 * type_mismatch 'null'; arithmetic on numeric is if its digits provably fit into a Decimal128.
 */
extern bson_t *mongo_translate_expression(MongoTranslation *translation, Node *node);

/*
 * A boolean that is never null: is the condition 'node' TRUE (wanted), or FALSE (not wanted)?
 * NULL when it is not shippable.
 */
extern bson_t *mongo_translate_test(MongoTranslation *translation, Node *node,
									bool wanted);

/* Has the document more levels than MongoDB takes in a command?  No translation has. */
extern bool mongo_is_too_deep(const bson_t *document);

/*
 * Can PostgreSQL evaluate the node before the scan starts, with the same result as for each
 * row?
 */
extern bool mongo_is_local_value(const MongoTranslation *translation, Node *node);

/* mongo_variable_name: "p0" and so on: what "let" calls the variable. */
extern const char *mongo_variable_name(int number);

/*
 * A translated expression, or a part of one.
 *
 * It is raw when it is as a document or MongoDB's arithmetic has it, of any BSON type that
 * a column of the SQL type reads.  Otherwise it is in normal form: of the one BSON type
 * that the SQL type is written as.
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
								 * matter, not just its value? */
	bool		lazy;			/* may the value go unneeded, so that nothing
								 * that can fail may be evaluated beforehand? */
	bool		guarded;		/* will it be noticed if the value has been
								 * rounded to the digits of a Decimal128? */
} MongoScope;

#define MONGO_MAX_ARGUMENTS	8

/* mongo_append_expression: append a translated expression's value to 'document' under 'key'. */
extern void mongo_append_expression(bson_t *document, const char *key,
									const bson_t *expression);

/*
 * An expression from its template, as those of common.h, whose arguments are @1, @2 and so on:
 * {$add: [@1, @2]}.  An argument that stands in several places is evaluated once, by $let,
 * unless it is a field, variable or constant.
 */
extern bson_t *mongo_expand_template(const char *template,
									 const MongoValue *arguments, int narguments);

/* mongo_result: the same as a value in normal form, of a type without a typmod. */
extern MongoValue mongo_result(const char *template, const MongoValue *arguments,
							   int narguments, Oid type, bool nullable);

/* An expression from a template and BSON values; such a value as an argument of the former. */
#define mongo_expression(template, ...) \
	mongo_expression_of_values(template, BSON_VALUES(__VA_ARGS__))
extern bson_t *mongo_expression_of_values(const char *template,
										  const bson_value_t *values, int nvalues);
extern MongoValue mongo_argument(bson_value_t value);

/* mongo_value_of_node: translate any node; false when it is not shippable. */
extern bool mongo_value_of_node(const MongoScope *scope, Node *node,
								MongoValue *value);

/* The same, in normal form. */
extern bool mongo_normal_value_of_node(const MongoScope *scope, Node *node,
									   MongoValue *value);

/* mongo_test_of_node: a boolean that is never null: is the condition TRUE (wanted) or FALSE? */
extern bool mongo_test_of_node(const MongoScope *scope, Node *node, bool wanted,
							   MongoValue *value);

/*
 * Bring a value into normal form; false when its type has none, as uuid and jsonb.  Then equal
 * values are equal in MongoDB (NaN included) and its functions see what PostgreSQL's would: a
 * text is what the column reads, a date its midnight.  Where the scope asks for the scale, a
 * numeric has as many decimals as in PostgreSQL.
 */
extern bool mongo_normalize(const MongoScope *scope, MongoValue *value);

/* A Decimal128, such as "0.005", as a value. */
extern MongoValue mongo_decimal_value(const char *text);

/*
 * A number of any BSON type as a Decimal128.  Faster than $toDecimal, and an error for Strings,
 * Booleans and Dates, which that takes as well.
 */
extern bson_t *mongo_decimal_of_number(const MongoValue *value);

/* ---------- Type checks: can the column read what its field has? ---------- */

/*
 * Append to 'conditions', from 'index' on, that the field at 'path' fits a column of this type,
 * which may be declared to have one BSON type (convert.h); returns the next index, or -1 if
 * query predicates cannot test that.  NULL fits if 'nullable'; without it, MongoDB merges a
 * range into the bounds of an index scan, and has no second plan to try.  Integers need $expr,
 * so -1 without 'use_expressions'.
 */
extern int	mongo_append_type_checks(bson_t *conditions, int index,
									 const char *path, Oid typid, int32 typmod,
									 bson_type_t bson_type, bool nullable,
									 bool use_expressions);

/* mongo_append_array_checks: likewise, that the path goes through no array and leads to none. */
extern int	mongo_append_array_checks(bson_t *conditions, int index,
									  const char *path);

/* ----- Which translated conditions can MongoDB not fail to evaluate? ------ */

/*
 * Can MongoDB evaluate this query filter, or array of stages, without an error on any document?
 * True only if all operators are known to have a result for every BSON type.  A placeholder
 * {$parameter: N} counts as one, since query predicates replace it.
 */
extern bool mongo_cannot_fail(const bson_t *document);

/* ---------------- mongo_match() and mongo_score() ----------------- */

/* Is there a call of mongo_match() in the expression?  A walker without a context. */
extern bool mongo_names_match(Node *node, void *context);

/* mongo_is_score: is this mongo_score() of the whole row of that range table entry? */
extern bool mongo_is_score(const Node *node, Index varno);

/*
 * What differs between the old and the new value of a nested column.  Written whole every
 * number in it would get the type that SQL's value stands for, and a composite would lose
 * the fields that it does not have.
 */

/* The members of an update's operators, to be filled; none is NULL. */
typedef struct MongoUpdateOperators
{
	bson_t	   *set;			/* {path: value} */
	bson_t	   *unset;			/* {path: true} */
	bson_t	   *push;			/* {path: {$each: [], $slice: length}} */
} MongoUpdateOperators;

/*
 * Do values of this type, or domain, have parts: jsonb, arrays, composites?  Not json, whose text
 * keeps the order of its keys, which a change in place would not.
 */
extern bool mongo_is_nested_type(Oid typid);

/*
 * mongo_append_changes
 *		Append what turns the field at 'path' from 'old' to 'new', both not NULL
 *		and of this nested type; false when it must be written whole, and
 *		nothing has been appended.
 *
 * Where that can be said with paths, parts that would be written as the same BSON
 * are not.  Elements that move within an array are, and so is an object
 * with a key that a path cannot name ("a.b", "$a") where such a key changes.
 * Raises what encoding raises.
 */
extern bool mongo_append_changes(MongoUpdateOperators *operators, const char *path,
								 Datum old, Datum new, Oid typid, int32 typmod);

/* --------- From rows to the documents and updates that store them --------- */

/* Where each column of a table goes in a document; opaque. */
typedef struct MongoRowLayout MongoRowLayout;

/*
 * The layout of a foreign table's rows; lives in 'context'.  With 'write_null' a NULL is stored
 * as null, otherwise left out.  With 'generates_id' a new document has an _id of our own,
 * whatever the row says.
 */
extern MongoRowLayout *mongo_row_layout_create(MemoryContext context, Oid relid,
											   TupleDesc tuple, bool write_null, bool generates_id);

/*
 * Append a row to 'document', which is empty: _id first, then the columns in their order, those
 * with dotted paths as nested documents.  Where no column gives _id, an ObjectId is made,
 * *generated is true, and 'oid' holds it.  A column __doc that is not NULL is the document, and
 * no other column may have a value then.  Raises 23502 where _id must be given, 42P10 for
 * columns that overlap, and what encoding raises.
 */
extern void mongo_row_to_document(const MongoRowLayout *layout,
								  const Datum *values, const bool *isnull,
								  bson_t *document, bool *generated,
								  bson_oid_t *oid);

/*
 * {path: {$eq: value}}, or {_id: value} where that means the same and is faster: a document with
 * operators or a regular expression would be a condition of its own.
 */
extern void mongo_append_equal(bson_t *match, const char *path, const bson_value_t *value);

/*
 * Append to both, which are empty: of a document that begins with its _id, the filter {_id} and
 * the update {$setOnInsert: {...}} that insert it where that _id is not yet there.  Raises 0A000
 * for field names that an update operator would take for a path.
 */
extern void mongo_document_to_upsert(const bson_t *document, bson_t *filter,
									 bson_t *update);

/*
 * Append {$set, $unset, $push} to 'update' for these attribute numbers, which have passed
 * mongo_check_assignable(), or for the column __doc a pipeline that replaces the document.
 * 'old_values' is the row as it was, or NULL; where it has a value for a nested column, only
 * what changed of that is written.  Columns that were not read count as NULL.
 */
extern void mongo_row_to_update(const MongoRowLayout *layout, List *attributes,
								const Datum *values, const bool *isnull,
								const Datum *old_values, const bool *old_isnull,
								bson_t *update);

/* mongo_check_assignable: raise when UPDATE cannot assign these columns (together). */
extern void mongo_check_assignable(Oid relid, List *attributes);

/*
 * Append what a column with this path and type stores for a value: one of the declared BSON
 * type; without one (BSON_TYPE_EOD) what mongo_append_datum() appends, but text of 24
 * hexadecimal digits is an ObjectId in _id and in columns of type name, as is a bytea of 12
 * bytes in _id.  Raises what mongo_append_declared() and mongo_append_datum() raise.
 */
extern void mongo_append_column_value(bson_t *document, const char *key,
									  const char *path, Datum value,
									  Form_pg_attribute attribute,
									  bson_type_t bson_type);

/* ----------- From rows to the upserts of the option insert_mode ----------- */

/* How the rows of one statement find and change their documents; opaque. */
typedef struct MongoUpsertLayout MongoUpsertLayout;

/*
 * For a foreign table with the option insert_mode, and a statement that gives these columns
 * (numbered as in insertedCols); lives in the current memory context.  With 'has_trigger', other
 * columns without a default may have got values, too.  Raises 42703 for a key column that the
 * table has not, 0A000 for one that cannot be a key and for columns that cannot be updated
 * together, 22023 where _id is the key and always generated.
 */
extern MongoUpsertLayout *mongo_upsert_layout_create(Oid relid, TupleDesc tuple,
													 const MongoTableOptions *options,
													 const Bitmapset *given, bool has_trigger);

/* mongo_upsert_assigned: the columns that a document that is there gets, as attribute numbers. */
extern List *mongo_upsert_assigned(const MongoUpsertLayout *layout);

/*
 * Append to 'filter' what finds the row's document, by its key, and to 'update' what becomes of
 * it; both are empty.  'document' and 'generated' are what mongo_row_to_document() gave.  Raises
 * 23502 for a key without a value, 0A000 for field names that an update operator would take for
 * a path.
 */
extern void mongo_row_to_upsert(const MongoUpsertLayout *layout, const Datum *values,
								const bool *isnull, const bson_t *document, bool generated,
								bson_t *filter, bson_t *update);

/* mongo_describe_upsert: the same with the names of columns for their values, for EXPLAIN. */
extern void mongo_describe_upsert(const MongoUpsertLayout *layout, bson_t *filter,
								  bson_t *update);

/*
 * A collection in ranges of one field, each document in exactly one.
 *
 * Ranges are told apart by $expr, whose comparisons order all BSON values of
 * whatever type and take an array as one value: n points make n + 1 ranges
 * that leave nothing out and do not overlap, as long as the same collation goes
 * with all commands.  MongoDB serves them by an index where it can, soundly but
 * for one thing (seen on 6.0): a sparse index is also taken for what has no
 * lower bound, and lacks the documents without the field.  Fields other than
 * _id therefore have a range of their own for null and missing, asked for in
 * words that no sparse index is used for.
 *
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 */

/* So many that none of the participants is left with the last one for long. */
#define MONGO_RANGES_PER_PARTICIPANT	4

/*
 * Append the "pipeline" that samples the field's values.  Its first document is of something
 * else: the stage that gives it fails on a view, which is not to be split.  The others are
 * {_id: value}, ascending.
 */
extern void mongo_append_split_pipeline(bson_t *command, const char *collection,
										const char *field, int sample_size);

/*
 * From 'batch', an iterator over the array that came, the points that make up to 'nranges'
 * ranges.  *points becomes an array of ascending values of at most 'capacity' bytes, in the
 * current memory context; returns the number of ranges, 1 when there is no point.
 */
extern int	mongo_choose_split_points(const bson_iter_t *batch, const char *field,
									  int nranges, uint32 capacity,
									  bson_t **points);

/* Append to 'match' what restricts a command to the range, from 0; nothing if it is the only. */
extern void mongo_append_split_range(const bson_t *points, const char *field,
									 int range, int nranges, bson_t *match);

#endif							/* MONGO_FDW_TRANSLATE_H */
