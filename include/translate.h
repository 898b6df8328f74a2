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

/* mongo_columns_create: allocates the columns in 'context', before any of them is looked up. */
extern MongoColumns *mongo_columns_create(MemoryContext context, Oid relid,
										  Index varno, int natts);

/* mongo_columns_find: returns the list member of the table 'varno', or NULL if there is none. */
extern MongoColumns *mongo_columns_find(MongoColumns *columns, Index varno);

/* mongo_columns_under: returns a copy for this table alone, with another prefix. */
extern MongoColumns *mongo_columns_under(const MongoColumns *columns,
										 const char *prefix);

/* mongo_columns_of_element: returns such a copy that reads the elements of an array. */
extern MongoColumns *mongo_columns_of_element(const MongoColumns *columns, const char *array,
											  int element);

/* mongo_unused_field: returns 'name', or a longer name if a column without a prefix reads it. */
extern const char *mongo_unused_field(MongoColumns *columns, const char *name);

/* A field of the documents that an expression over the table reads. */
typedef struct MongoField
{
	MongoColumns *columns;		/* of its table; NULL in a plan */
	const char *path;			/* in the document, with the table's prefix */

	/* for local time of the field, see translate_internal.h */
	const char *zone;			/* time zone of the local time: a name, or ""
								 * for the session's; NULL: the field itself */
	const char *result_zone;	/* zone that makes it an instant again, or
								 * NULL */
	int			time_part;		/* part of the time: an enum of local_time.c */

	Oid			type;			/* a type of comparison.c's table, or a domain
								 * over one */
	int32		typmod;			/* of the domain's base type */
	Oid			operator_type;	/* the type whose operators compare it */
	bson_type_t bson_type;		/* declared one, or BSON_TYPE_EOD: convert.h */
	MongoTypeMismatch type_mismatch;	/* of the column, see
										 * mongo_column_mismatch() */
	int			element;		/* element of an array of 'type':
								 * MONGO_ANY_ELEMENT of translate.h, or its
								 * number, counted from 1; 0: the field itself */
	Oid			cast_type;		/* the type that json, or json's text, is cast
								 * to; InvalidOid: no cast */
	int			wrapper;		/* a MongoJsonWrapper of translate.h */
	int			index_uses;		/* MONGO_INDEX_*: of indexes that lead with it */
	bool		unindexed;		/* no index: by an option, or inside json */
} MongoField;

/* Returns the node below binary-compatible relabelling, as of varchar to text; NULL for NULL. */
extern Node *mongo_strip_relabelling(Node *node);

/*
 * Returns the column that 'node' is, below binary-compatible relabelling, and fills in its
 * field.  Returns NULL for anything else, and for the whole-document column.
 */
extern const Var *mongo_column_of_node(MongoColumns *columns, Node *node,
									   MongoField *field);

/*
 * Return the name, path or BSON type of a column of the first table.  The path within the
 * table's own documents is NULL for the whole document.  The BSON type is the one that the
 * option bson_type specifies.  Every function that looks up more of a column than its name
 * raises 42804 if the options do not suit the column's type.
 */
extern const char *mongo_column_name(MongoColumns *columns, AttrNumber attnum);
extern const char *mongo_column_path(MongoColumns *columns, AttrNumber attnum);
extern bson_type_t mongo_column_bson_type(MongoColumns *columns, AttrNumber attnum);

/*
 * How the query reads a field that does not fit this column: as its option type_mismatch says,
 * or as NULL if the query shows mismatches.
 */
extern MongoTypeMismatch mongo_column_mismatch(MongoColumns *columns, AttrNumber attnum);

/* mongo_append_paths: appends these addressable paths, char *, to a projection; _id if none. */
extern void mongo_append_paths(bson_t *projection, List *paths);

/*
 * Appends to 'document' as 'key' a projection of the fields of these attribute numbers and of
 * _id, which error messages name.  Appends nothing if the whole document is needed: for a column
 * __doc, or for a path that query predicates cannot name.
 */
extern void mongo_append_projection(bson_t *document, const char *key, MongoColumns *columns,
									List *attributes);

/*
 * Can query predicates name the path?  Not if a component is empty or begins with '$', unless
 * it is $id, $ref or $db below another, nor if it has more components than a stored document has
 * levels.  Unlike SQL, a query predicate looks into arrays on the path and at its end.
 */
extern bool mongo_path_is_addressable(const char *path);

/* mongo_path_has_index: is a component a number, like that of an array element? */
extern bool mongo_path_has_index(const char *path);

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

/* Append the conditions that no array is on the path; the first also tests the path's end. */
extern void mongo_append_no_arrays(BsonArray *conditions, const char *path);
extern void mongo_append_no_parent_arrays(BsonArray *conditions, const char *path);

/*
 * Appends to the branches of an $or the condition that the array contains a value that is
 * neither null nor of the class with the least value 'least', such as another array.
 */
extern void mongo_append_within_arrays(BsonArray *branches, const char *path,
									   bson_value_t least);

/*
 * Operators of a type's default B-tree operator family, whose order is the only one that
 * MongoDB can have, by their strategy there (access/stratnum.h).  "<>" is in no family, but is
 * the negator of "=".
 */
#define MONGO_STRATEGY_NOT_EQUAL	6

/*
 * Returns the type's default B-tree operator family: for varchar that of text, for an array
 * array_ops, for a domain that of its base type.  InvalidOid if there is none.
 */
extern Oid	mongo_default_opfamily(Oid type);

/* Returns the operator's strategy in the family of 'type', its left operand's type, or 0. */
extern int	mongo_default_strategy(Oid operator, Oid type);

/* Return the strategy of the operator's negator, and of its commutator. */
extern int	mongo_negated_strategy(int strategy);
extern int	mongo_commuted_strategy(int strategy);

/* mongo_is_upper_bound: is it "<" or "<=", which exclude NaN and everything above the bound? */
extern bool mongo_is_upper_bound(int strategy);

/* mongo_asks_for_order: is it an operator other than "=" and "<>"? */
extern bool mongo_asks_for_order(int strategy);

/*
 * mongo_collation_suits
 *		Does PostgreSQL compare text under the collation by bytes of UTF-8, as MongoDB does?
 *
 * For equality any deterministic collation does; for an order C, and the database has to be in
 * UTF-8.
 */
extern bool mongo_collation_suits(Oid collation, bool ordered);

/* find's comparison operators, by strategy. */
extern const char *const mongo_find_operators[];

/*
 * Query predicates for "column OP value", which indexes can serve.
 *
 * The same code renders them for a constant while planning and for a parameter while
 * executing.  They are exact because of the reading rules of docs/types.md and the type
 * bracketing of find's comparison operators:
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 */

/* How a translation relates to the condition it stands for. */
typedef enum MongoExactness
{
	MONGO_NOT_SHIPPABLE,
	MONGO_SUPERSET,				/* it also matches other documents, so
								 * PostgreSQL tests the condition again */
	MONGO_EXACT
} MongoExactness;

/* Whether a rendered predicate can match any document. */
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

typedef struct MongoPredicate
{
	MongoField	field;
	Oid			json_test;		/* jsonb's operator, such as @> or ?, before
								 * 'value'; InvalidOid: a comparison */
	Oid			collation;		/* of the comparison */
	int			strategy;		/* of the operator, see translate.h */
	MongoPredicateForm form;
	Oid			value_type;		/* of the value, or of the array's elements */
	Oid			relid;			/* of the table, for MONGO_PREDICATE_MATCH */
	bool		tests_fit;		/* it may be true only if the field fits */
	bool		without_nan;	/* another condition already excludes NaN */
} MongoPredicate;

/* mongo_predicate_exactness: returns the exactness of the rendered predicate, for any value. */
extern MongoExactness mongo_predicate_exactness(const MongoPredicate *predicate);

/* mongo_predicate_compares_text: must the command specify the simple collation? */
extern bool mongo_predicate_compares_text(const MongoPredicate *predicate);

/*
 * Appends to 'match', which is empty, a filter of where the predicate, which must be
 * shippable, is true.  'value' is a Datum of value_type, or of its array type for all forms
 * but SCALAR.  If 'match' becomes longer than MONGO_LARGEST_MATCH, the rest of an array may be
 * missing from it.
 */
extern MongoMatch mongo_predicate_render(const MongoPredicate *predicate,
										 Datum value, bool isnull,
										 bson_t *match);

/* Convert a predicate to nodes that a plan can contain, and back. */
extern List *mongo_predicate_to_list(const MongoPredicate *predicate);
extern MongoPredicate *mongo_predicate_from_list(List *list);

/*
 * Commands that a plan contains, and the values that execution binds.
 *
 * In the filters of a template, {$parameter: N} stands for a predicate whose value is known
 * when the scan starts.  {$verbatim: ...} stands for the stages of an array, for the members
 * of a document, or for such a predicate if it is a number.  These come from the user, so
 * binding does not search them for parameters, and they may fail.
 *
 * In stages with $values, {$param: name} stands for the value of a column with the option
 * parameter.  $values has, by name, the number of a predicate whose 'field' alone matters, or
 * the name of the column if no condition gives a value.  $table is the foreign table's name.
 * A value is written as the column's values are, is not searched for parameters, and MongoDB
 * never evaluates it: see the rules in template.c.
 */

#define MONGO_VERBATIM_KEY	"$verbatim"
#define MONGO_VALUES_KEY	"$values"
#define MONGO_TABLE_KEY		"$table"
#define MONGO_PARAM_KEY		"$param"

/* A template prepared for one execution of a plan. */
typedef struct MongoCommandTemplate
{
	bson_t	   *command;
	int			nparameters;
	MongoPredicate **predicates;	/* by parameter number */

	/* of a pipeline; used if greater than 0 */
	int64		skip;			/* $skip and $limit are appended as last
								 * stages */
	int64		limit;
	int			batch_size;		/* documents in the first batch */
} MongoCommandTemplate;

/* Convert a document to a node that a plan can contain, and back to a copy in 'context'. */
extern Const *mongo_command_to_const(const bson_t *command);
extern bson_t *mongo_command_from_const(MemoryContext context, const Const *node);

/*
 * Appends the template to 'command', with values[] and isnull[] for its parameters.  Returns
 * MONGO_MATCH_NONE if the filter cannot match any document, so that no request is needed;
 * 'command' is complete in this case too.
 *
 * A list of values that would make the command longer than MongoDB accepts is left out.  Then
 * more documents match, and *widened is set: PostgreSQL must test the documents.  Raises 54000
 * instead if 'widened' is NULL, or if the list is within a $nor, which would then match fewer
 * documents.
 *
 * A parameter of the user's stages that is NULL matches no document.  Raises 42P02 for one
 * without a value or without a column, 22023 for a value that MongoDB might evaluate, and the
 * errors of mongo_append_column_value().
 */
extern MongoMatch mongo_command_bind(const MongoCommandTemplate *template,
									 const Datum *values, const bool *isnull,
									 bool *widened, bson_t *command);

extern void mongo_mark_ors(bson_t *filter, bool alone);

/* mongo_command_describe: appends the template for EXPLAIN, with texts for the parameters. */
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

/* mongo_bind_variables: appends "let"; raises 22003, 22008 or 22021 for unsuitable values. */
extern void mongo_bind_variables(const MongoVariable *variables, int nvariables,
								 bson_t *command);

/* mongo_describe_variables: appends "let" for EXPLAIN, with the expressions' text as values. */
extern void mongo_describe_variables(const char *const *names, int nvariables,
									 bson_t *command);

/* ------ How values of each type class compare in query predicates -------- */

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

/* Appends {path: {$in: []}}, which MongoDB plans as EOF as it matches nothing; returns NONE. */
extern MongoMatch mongo_append_nothing(bson_t *match, const char *path);

/*
 * Returns the comparison of a base type (not a domain), or NULL if only PostgreSQL compares
 * its values.  A timestamp type that rounds the values it reads has a comparison of its own,
 * and so has text with a declared BSON type (BSON_TYPE_EOD: none is declared).
 */
extern const MongoComparison *mongo_comparison_lookup(Oid column_type, int32 column_typmod,
													  bson_type_t bson_type);

/* mongo_reading_changes: may reading a column of this base type change the stored value? */
extern bool mongo_reading_changes(Oid column_type, int32 column_typmod);

extern bool mongo_is_key(const char *path, Oid column_type, int32 column_typmod);

/*
 * Does the value's meaning depend on the session's time zone?  A plan may outlive that
 * setting, so execution renders even a constant.
 */
extern bool mongo_depends_on_time_zone(const MongoPredicate *predicate);

/*
 * Can a column of this type read every field that equals a value of 'value_type'?  False if
 * the type alone does not decide that.
 */
extern bool mongo_equality_fits(Oid column_type, int32 column_typmod,
								bson_type_t bson_type, Oid value_type);

/*
 * mongo_equivalent_condition
 *		Returns a condition that is true exactly where 'node' is true, or without 'wanted', where
 *		it is false, and that indexes serve better; NULL if there is none.
 *
 * Known are comparisons of rows, IS NOT DISTINCT FROM a value, and coalesce() of a value.
 */
extern Node *mongo_equivalent_condition(Node *node, bool wanted);

/* ------------------- The field that an expression reads ------------------- */

/*
 * Finds the field that 'node' reads: that of a column, as mongo_column_of_node() does, or of a
 * chain of accessors (->, ->>, #>, #>>, subscripts) with constant keys on a json or jsonb
 * column.  False for anything else, and for the whole-document column.
 */
extern bool mongo_field_of_node(MongoColumns *columns, Node *node,
								MongoField *field);

/*
 * Finds the array that 'node' reads, and describes any element of it as a field of the element
 * type; false if 'node' reads no array.
 */
extern bool mongo_any_element(MongoColumns *columns, Node *node, MongoField *field);

/*
 * Finds the field that 'node' reads.  In addition to mongo_field_of_node(), 'node' can be an
 * array element with a constant subscript, a value inside json that is cast to another type,
 * the text within an Extended JSON wrapper, or an ObjectId that is cast to text.
 */
extern bool mongo_operand_of_node(MongoColumns *columns, Node *node,
								  MongoField *field);

/*
 * Appends "." and one constant key of json or jsonb, a text or int4, to a path; false if a
 * path cannot contain the key, such as a key with a dot or an index that counts from the end.
 */
extern bool mongo_append_json_key(StringInfo path, Oid type, Datum value);

/* ---------------------- SQL conditions as query filters ------------------- */

/* A value that an earlier stage of the pipeline computes. */
typedef struct MongoComputed
{
	Expr	   *expression;		/* the expression, found by equal() */
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
typedef struct MongoTranslation
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
	List	   *predicates;		/* of mongo_predicate_to_list(), parallel */
	List	   *variables;		/* Expr *, of "let" */
	bool		compares_text;	/* the command needs the simple collation */
	bool		keeps_collation;	/* the command must not specify one */
	int			depth;			/* of the current node below the condition */
} MongoTranslation;

/* mongo_compare_text: false if the command, which would compare text, keeps its collation. */
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

/* mongo_seek_use: returns the MONGO_INDEX_* use that an index must have for the lookup. */
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

#define MONGO_PARAMETER_KEY	"$parameter"

/*
 * Writes to 'match', an empty document, a filter of where 'clause' is true.  With
 * MONGO_NOT_SHIPPABLE, the contents of 'match' are undefined and 'translation' is unchanged.
 * Evaluates nothing but constants.  Does not modify 'clause', but the parameters point into
 * it.
 */
extern MongoCondition mongo_translate_condition(MongoTranslation *translation,
												Expr *clause, bson_t *match);
extern void mongo_append_branches(bson_t *match, const List *conditions, bool conjunction);

/*
 * mongo_translate_for_element
 *		Translates the clause, in which the columns read the elements of the array at 'path', for
 *		one element.
 *
 * With 'element' 0, 'match' becomes a filter of what is inside the element, for $elemMatch.
 * With MONGO_ANY_ELEMENT or MONGO_UNWOUND_ELEMENT it becomes a filter of the document, for
 * clauses on the element itself.  It matches a superset.  Otherwise as
 * mongo_translate_condition(); not shippable, too, if the clause may be true without an
 * element.
 */
extern MongoCondition mongo_translate_for_element(MongoTranslation *translation,
												  const MongoColumns *columns, const char *path,
												  int element, Expr *clause, bson_t *match);

/*
 * Pipeline tables, whose rows are computed from the documents by stages: first those of the
 * option pipeline, and then, for each path of the option unwind, those that turn each array
 * element into a row.
 */

/*
 * mongo_deriving_option: returns the option that makes it a pipeline table, or NULL.
 * mongo_has_first_stages: do its pipelines begin with stages of the option pipeline, or with
 * $changeStream?
 */
extern const char *mongo_deriving_option(const MongoTableOptions *options);
extern bool mongo_has_first_stages(const MongoTableOptions *options);

static inline bool
mongo_is_pipeline_table(const MongoTableOptions *options)
{
	return mongo_deriving_option(options) != NULL;
}

/* What happens to a document without an array at a path that is unwound. */
typedef enum MongoNoArray
{
	MONGO_NO_ARRAY_RAISES,		/* MongoDB's error, as of MONGO_MISMATCH */
	MONGO_NO_ARRAY_IS_NULL,		/* it is read as NULL */
	MONGO_NO_ARRAY_IS_LEFT_OUT
} MongoNoArray;

/* Return the parts of the options, char * in UTF-8. */
extern List *mongo_unwound_paths(const MongoTableOptions *options);
extern List *mongo_ordinality_fields(const MongoTableOptions *options);

/*
 * Raises 42501, with 'what' first in the message, if the user's own array or document contains
 * operators that run JavaScript and the server option allow_javascript does not allow that.
 */
extern void mongo_check_javascript(const MongoTableOptions *options,
								   const bson_iter_t *value, const char *what);

/* Appends the stages of the option pipeline, if set; raises 42501 for JavaScript. */
extern void mongo_append_pipeline(BsonArray *stages, const MongoTableOptions *options);

/*
 * mongo_score_meta: returns what $meta calls the score of a document that $text, $search,
 * $vectorSearch or $geoNear has found; NULL if the first stage of the table's pipeline is none.
 */
extern const char *mongo_score_meta(const MongoTableOptions *options);

/* The paths of predicates that are a change stream's start: a text of __token or __cluster_time. */
#define MONGO_START_TOKEN	"$token"
#define MONGO_START_AT		"$at"
#define MONGO_START_AFTER	"$after"

extern bson_t *mongo_resume_through_matches(const bson_t *command);

/*
 * mongo_aggregate_command: starts a command {aggregate, pipeline} over the table's collection, or
 * over the database for a change stream of several collections.
 */
extern bson_t *mongo_aggregate_command(const MongoTableOptions *options, const bson_t *stages);

/*
 * Appends the stages that turn each array element into a row, for the path with this number.
 * Missing fields, nulls and empty arrays give no row, or one row with the option unwind_empty.
 */
extern void mongo_append_unwind(BsonArray *stages, const MongoTableOptions *options,
								int number, MongoNoArray no_array);

/* Appends, after all of these stages, one that makes the elements' numbers begin with 1. */
extern void mongo_append_ordinality(BsonArray *stages, const MongoTableOptions *options);

/* Appends all stages of a pipeline table; a value to unwind that is no array is read as NULL. */
extern void mongo_append_deriving_stages(BsonArray *stages, const MongoTableOptions *options);

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

/* mongo_digits_fit: can a Decimal128 represent every such number? */
extern bool mongo_digits_fit(MongoDigits digits);

/*
 * Translation of SQL expressions into MongoDB's aggregation expressions.
 *
 * For documents whose fields fit their columns (docs/types.md), the result is a value of any
 * BSON type that the expression's type reads as PostgreSQL's value.  NULL is null or a missing
 * value; a boolean is true, false or null.  docs/pushdown.md lists the exceptions: MongoDB's
 * arithmetic has a wider range, and a document that does not fit may go unnoticed or raise
 * MongoDB's error.
 *
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/
 */

/*
 * Returns the aggregation expression for 'node', a document with one element named "".
 * Returns NULL if the node is not shippable, and leaves 'translation' unchanged.  No node is
 * shippable without use_expressions.  Arithmetic on numeric is shippable only if its digits
 * provably fit into a Decimal128.
 */
extern bson_t *mongo_translate_expression(MongoTranslation *translation, Node *node);

/*
 * Returns an aggregation expression, a boolean that is never null: is the condition 'node'
 * TRUE (wanted) or FALSE (not wanted)?  NULL if it is not shippable.
 */
extern bson_t *mongo_translate_test(MongoTranslation *translation, Node *node,
									bool wanted);

/* Does the document have more levels than MongoDB accepts in a command?  No translation does. */
extern bool mongo_is_too_deep(const bson_t *document);

/*
 * Can PostgreSQL evaluate the node before the scan starts, with the same result as for each
 * row?
 */
extern bool mongo_is_local_value(const MongoTranslation *translation, Node *node);

/* mongo_variable_name: returns the name of a variable of "let": "p0" and so on. */
extern const char *mongo_variable_name(int number);

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

/* mongo_append_expression: appends a translated expression's value to 'document' under 'key'. */
extern void mongo_append_expression(bson_t *document, const char *key,
									const bson_t *expression);

/*
 * Builds an expression from a template, see common.h, whose arguments are @1, @2 and so on:
 * {$add: [@1, @2]}.  An argument that occurs more than once is evaluated once, by $let, unless
 * it is a field, variable or constant.
 */
extern bson_t *mongo_expand_template(const char *template,
									 const MongoValue *arguments, int narguments);

/* mongo_result: builds the same as a value in normal form, of a type without a typmod. */
extern MongoValue mongo_result(const char *template, const MongoValue *arguments,
							   int narguments, Oid type, bool nullable);

/* Build an expression from BSON values; and an argument of mongo_expand_template() from one. */
#define mongo_expression(template, ...) \
	mongo_expression_of_values(template, BSON_VALUES(__VA_ARGS__))
extern bson_t *mongo_expression_of_values(const char *template,
										  const BsonValue *values, int nvalues);
extern MongoValue mongo_argument(bson_value_t value);

/* mongo_value_of_node: translates any node; false if it is not shippable. */
extern bool mongo_value_of_node(const MongoScope *scope, Node *node,
								MongoValue *value);

/* mongo_normal_value_of_node: translates any node to a value in normal form. */
extern bool mongo_normal_value_of_node(const MongoScope *scope, Node *node,
									   MongoValue *value);

/* mongo_test_of_node: translates to a boolean, never null: is 'node' TRUE (wanted) or FALSE? */
extern bool mongo_test_of_node(const MongoScope *scope, Node *node, bool wanted,
							   MongoValue *value);

/*
 * Converts a value to normal form; false if its type has none, such as uuid and jsonb.  In
 * normal form, equal values are equal in MongoDB (NaN included), and its functions get the
 * value that PostgreSQL's would get: a text as the column reads it, a date as its midnight.
 * If the scope requires the scale, a numeric has as many decimals as in PostgreSQL.
 */
extern bool mongo_normalize(const MongoScope *scope, MongoValue *value);

/* mongo_decimal_value: returns a Decimal128 constant, such as "0.005", as a value. */
extern MongoValue mongo_decimal_value(const char *text);

/*
 * Converts a number of any BSON type to a Decimal128.  Faster than $toDecimal, and raises an
 * error for Strings, Booleans and Dates, which $toDecimal accepts.
 */
extern bson_t *mongo_decimal_of_number(const MongoValue *value);

/* -------- Type checks: can the column read the value of its field? -------- */

/*
 * Appends to 'conditions', from 'index' on, tests that the field at 'path' fits a column of
 * this type and declared BSON type (convert.h).  Returns the next index, or -1 if query
 * predicates cannot test that.
 *
 * NULL fits only if 'nullable'.  Without it, MongoDB merges a range into the bounds of an
 * index scan and has no second plan to try.  Integers need $expr, so the result is -1 without
 * 'use_expressions'.
 */
extern int	mongo_append_type_checks(bson_t *conditions, int index,
									 const char *path, Oid typid, int32 typmod,
									 bson_type_t bson_type, bool nullable,
									 bool use_expressions);

/* mongo_append_array_checks: the same for tests that no array is on the path or at its end. */
extern int	mongo_append_array_checks(bson_t *conditions, int index,
									  const char *path);

/*
 * Exact tests that a field fits its column, for the option type_mismatch 'null' and 'skip'.  They
 * need $expr.  Those of filters cannot fail; for a String with invalid UTF-8 the value as
 * an expression raises MongoDB's error.
 */

/* mongo_can_test_fit: are there such tests of the field?  mongo_fits_by_range: for an index? */
extern bool mongo_can_test_fit(const MongoField *field);
extern bool mongo_fits_by_range(const MongoField *field);

/* mongo_fitting_value: returns the aggregation expression of the field as read, or NULL. */
extern bson_t *mongo_fitting_value(const MongoField *field);

/* Append that a field, which can be tested, fits or is NULL; that it fits; that it reads as NULL. */
extern void mongo_append_fit(BsonArray *conditions, const MongoField *field);
extern void mongo_append_fitting(BsonArray *conditions, const MongoField *field);
extern void mongo_append_misfit(bson_t *match, const MongoField *field);

/* mongo_append_in_range: appends a range of an index in which the field fits and is not NULL. */
extern void mongo_append_in_range(bson_t *match, const MongoField *field);

/*
 * mongo_decides_fit: does the column decide whether a document fits?  Not if it reads every
 * BSON type: json, jsonb, __doc.  With 'only_skipped' also not if its type_mismatch is another.
 */
extern bool mongo_decides_fit(MongoColumns *columns, AttrNumber attnum, bool only_skipped);

/*
 * mongo_append_all_fit: appends that a document fits all of these columns, or with 'negated' not
 * all.  Returns false if some cannot be tested: then it has appended a superset, or nothing if
 * negated.
 */
extern bool mongo_append_all_fit(bson_t *match, MongoColumns *columns, bool only_skipped,
								 bool negated);

/* --------- Which conditions can MongoDB evaluate without errors? ---------- */

/*
 * Can MongoDB evaluate this query filter, or array of stages, without an error on any
 * document?  True only if all its operators have a result for every BSON type.  A placeholder
 * {$parameter: N} counts as one, since query predicates replace it.
 */
extern bool mongo_cannot_fail(const bson_t *document);

/* ---------------- mongo_match() and mongo_score() ----------------- */

/* Does it match the row of that table, an Index *, by mongo_match()?  An expression tree walker. */
extern bool mongo_names_match(Node *node, void *varno);

/* mongo_is_score: is the node mongo_score() of the whole row of that range table entry? */
extern bool mongo_is_score(const Node *node, Index varno);

/*
 * Differences between the old and the new value of a nested column, as update operators.
 *
 * If the column were written as a whole, every number in it would get the BSON type of the SQL
 * value, and a composite value would lose the fields that its type lacks.
 */

/* The documents of an update's operators, to be filled in; none is NULL. */
typedef struct MongoUpdateOperators
{
	bson_t	   *set;			/* {path: value} */
	bson_t	   *unset;			/* {path: true} */
	bson_t	   *push;			/* {path: {$each: [], $slice: length}} */
} MongoUpdateOperators;

/*
 * Do values of this type or domain have parts: jsonb, arrays, composites?  Not json: its text
 * keeps the order of its keys, which a change in place would not.
 */
extern bool mongo_is_nested_type(Oid typid);

/*
 * Appends the operators that change the field at 'path' from 'old' to 'new', both not NULL and
 * of this nested type.  Returns false and appends nothing if the field must be written as a
 * whole.
 *
 * If paths can express the change, parts that would be written as the same BSON are not
 * written.  Elements that move within an array are written, and so is an object in which a key
 * changes that a path cannot name ("a.b", "$a").  Raises the errors of encoding.
 */
extern bool mongo_append_changes(MongoUpdateOperators *operators, const char *path,
								 Datum old, Datum new, Oid typid, int32 typmod);

/* --------- From rows to the documents and updates that store them --------- */

/* The place of each column of a table in a document; opaque. */
typedef struct MongoRowLayout MongoRowLayout;

/*
 * Creates the layout of a foreign table's rows in 'context'.  With 'write_null', a NULL is
 * stored as null, otherwise left out.  With 'generates_id', the FDW generates the _id of a new
 * document, whatever the row contains.
 */
extern MongoRowLayout *mongo_row_layout_create(MemoryContext context, Oid relid,
											   TupleDesc tuple, bool write_null, bool generates_id);

extern bool mongo_row_keeps(const MongoRowLayout *layout, AttrNumber attnum);
extern bool mongo_row_may_generate(const MongoRowLayout *layout, AttrNumber attnum);

/* mongo_row_layout_overlaps: do columns share fields, as __doc does with all others? */
extern bool mongo_row_layout_overlaps(const MongoRowLayout *layout);

/*
 * Appends a row to 'document', which is empty: _id first, then the columns in their order,
 * those with dotted paths as nested documents.
 *
 * If no column gives _id, an ObjectId is generated, *generated is true, and 'oid' is set to
 * it.  A column __doc that is not NULL is the document, and then no other column may have a
 * value.  Raises 23502 if _id is missing but required, 42P10 for columns that overlap, and the
 * errors of encoding.
 */
extern void mongo_row_to_document(const MongoRowLayout *layout,
								  const Datum *values, const bool *isnull,
								  bson_t *document, bool *generated,
								  bson_oid_t *oid);

/*
 * Appends {path: {$eq: value}}, or the faster {_id: value} if it is equivalent: not for a
 * regular expression or a document with operators, which would be conditions themselves.
 */
extern void mongo_append_equal(bson_t *match, const char *path, const bson_value_t *value);

/*
 * Appends to 'filter' and 'update', which are empty: for a document that begins with its _id,
 * the filter {_id} and the update {$setOnInsert: {...}} that insert it unless that _id exists.
 * Raises 0A000 for field names that an update operator would interpret as a path.
 */
extern void mongo_document_to_upsert(const bson_t *document, bson_t *filter,
									 bson_t *update);

/*
 * Appends {$set, $unset, $push} to 'update' for these attribute numbers, which have passed
 * mongo_check_assignable(), or for the column __doc a pipeline that replaces the document.
 *
 * 'old_values' is the old row, or NULL.  If it has a value for a nested column, only the
 * changes to that value are written.  Columns that were not read count as NULL.
 */
extern void mongo_row_to_update(const MongoRowLayout *layout, List *attributes,
								const Datum *values, const bool *isnull,
								const Datum *old_values, const bool *old_isnull,
								bson_t *update);

extern bool mongo_row_replacement(const MongoRowLayout *layout, const List *assigned,
								  const Datum *values, const bson_t *filter, bson_t *document);
extern void mongo_mismatch_after_update(const MongoRowLayout *layout, const bson_t *update,
										Datum *values, bool *isnull);
extern void mongo_row_after_update(const MongoRowLayout *layout, AttrNumber attnum,
								   bool is_assigned, const Datum *values, const bool *isnull,
								   const bson_t *update, bson_t *document);
extern bool mongo_has_empty_timestamp(const bson_t *document);

/* mongo_check_assignable: raises an error if UPDATE cannot assign these columns (together). */
extern void mongo_check_assignable(Oid relid, List *attributes);

/*
 * mongo_overlapped_columns: returns the numbers of the other columns that read a field which an
 * assignment to these columns changes: the same field, a part of it or what contains it.
 */
extern List *mongo_overlapped_columns(Relation relation, const List *assigned);

/*
 * Appends the BSON that a column with this path and type stores for a value: of the declared
 * BSON type if there is one.  Without one (BSON_TYPE_EOD), appends as mongo_append_datum()
 * does, except that text of 24 hexadecimal digits is an ObjectId in _id and in columns of type
 * name, and so is a bytea of 12 bytes in _id.  Raises the errors of mongo_append_declared()
 * and mongo_append_datum().
 */
extern void mongo_append_column_value(bson_t *document, const char *key,
									  const char *path, Datum value,
									  Form_pg_attribute attribute,
									  bson_type_t bson_type);

/* ----------- From rows to the upserts of the option insert_mode ----------- */

/* How the rows of one statement find and change documents; opaque. */
typedef struct MongoUpsertLayout MongoUpsertLayout;

/*
 * Creates, in the current memory context, the layout for a foreign table with the option
 * insert_mode and a statement that gives these columns (numbered as in insertedCols).  With
 * 'has_trigger', other columns without a default may have got values too.
 *
 * Raises 42703 for a key column that the table lacks, 0A000 for one that cannot be a key and
 * for columns that cannot be updated together, and 22023 if _id is the key and always
 * generated.
 */
extern MongoUpsertLayout *mongo_upsert_layout_create(Oid relid, TupleDesc tuple,
													 const MongoTableOptions *options,
													 const Bitmapset *given, bool has_trigger);

/*
 * mongo_upsert_updatable: returns the numbers of the columns that the statement gives and that
 * are not keys.  They change if the document exists.
 */
extern List *mongo_upsert_updatable(const MongoUpsertLayout *layout);

/*
 * Appends to 'filter' the condition that finds the row's document by its key, and to 'update'
 * the change to it; both are empty.  'document' and 'generated' are the results of
 * mongo_row_to_document().  Raises 23502 for a key without a value, and 0A000 for field names
 * that an update operator would interpret as a path.
 */
extern void mongo_row_to_upsert(const MongoUpsertLayout *layout, const Datum *values,
								const bool *isnull, const bson_t *document, bool generated,
								bson_t *filter, bson_t *update);

/* mongo_describe_upsert: appends the same for EXPLAIN, with names of columns for their values. */
extern void mongo_describe_upsert(const MongoUpsertLayout *layout, bson_t *filter,
								  bson_t *update);

/*
 * Splitting a collection into ranges of one field, with each document in exactly one range.
 *
 * $expr tests the ranges: its comparisons order all BSON values of any type and treat an array
 * as one value.  So n points make n + 1 ranges that leave out nothing and do not overlap, if
 * all commands use the same collation.  MongoDB uses an index for them if it can.  That is
 * correct with one exception (seen on 6.0): for a range without a lower bound it also uses a
 * sparse index, which lacks the documents without the field.  Therefore a field other than _id
 * has a separate range for null and missing values, with a condition for which no sparse index
 * is used.
 *
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 */

/* Enough ranges that no participant works long on the last one alone. */
#define MONGO_RANGES_PER_PARTICIPANT	4

/*
 * Appends the "pipeline" that samples the field's values.  Its first document reports in
 * storageStats.capped whether the collection is capped, and so has no snapshots.  The stage that
 * returns it fails on a view, which must not be split.  The others are {_id: value}, ascending.
 */
extern void mongo_append_split_pipeline(bson_t *command, const char *collection,
										const char *field, int sample_size);

/*
 * Chooses the points of at most 'nranges' ranges from 'batch', an iterator over the array in
 * the reply.  *points becomes an array of ascending values of at most 'capacity' bytes, in the
 * current memory context.  Returns the number of ranges, 1 if there is no point.
 */
extern int	mongo_choose_split_points(const bson_iter_t *batch, const char *field,
									  int nranges, uint32 capacity,
									  bson_t **points);

/* Appends to 'match' the condition of a range, counted from 0; nothing if it is the only range. */
extern void mongo_append_split_range(const bson_t *points, const char *field,
									 int range, int nranges, bson_t *match);

#endif							/* MONGO_FDW_TRANSLATE_H */
