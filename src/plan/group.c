/*-------------------------------------------------------------------------
 *
 * group.c
 *		Builds the stages of GROUP BY, DISTINCT and aggregates.
 *
 * Decides which keys and aggregates $group computes exactly as PostgreSQL, and makes its stages.
 * Assumes that the caller (upper.c) has a pipeline that makes the rows to be grouped, and decides
 * by cost whether to group them.
 *
 * A group is made in one stage or in two.  DISTINCT in an aggregate needs two, of which the first
 * also groups by the distinct values.  Two are cheaper where keys that PostgreSQL considers equal
 * differ in MongoDB (a missing field and a null, a String and an ObjectId): the first stage takes
 * keys as stored, and the second merges its few groups.  That works because the accumulators of
 * the second stage are those of the first again: a sum of sums, a minimum of minima.  A $set after
 * them computes the aggregates from the accumulators.
 *
 * First come the vocabulary of recipes, type checks of accumulated values, and the stages; then
 * the translation of one aggregate; at the end the table of aggregate functions, which is the
 * place to add one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "options.h"
#include "convert.h"
#include "translate.h"
#include "remote.h"

#include "access/htup_details.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type_d.h"
#include "lib/stringinfo.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

/* ----- Aggregate functions: their accumulators, and results from these ------ */

#define MONGO_MAX_ACCUMULATORS	3
#define MONGO_MAX_FUNCTIONS		8

/* The form in which the argument is accumulated. */
typedef enum MongoArgumentForm
{
	MONGO_ARGUMENT_NONE,		/* count(*) has none */
	MONGO_ARGUMENT_RAW,			/* as stored */
	MONGO_ARGUMENT_DECIMAL,		/* as a Decimal128 */
	MONGO_ARGUMENT_ORDERED		/* so that MongoDB's order is PostgreSQL's */
} MongoArgumentForm;

/* Arguments of an operand's template: the value in that form, and as it is. */
#define MONGO_VALUE		"@1"
#define MONGO_RAW_VALUE	"@2"

/*
 * 1 for a value, 0 for null and for what is missing or undefined.  The former are
 * above the latter in BSON's order, but for MinKey, which some types read.
 */
#define MONGO_IS_VALUE	"{$cond: [{$gt: [" MONGO_RAW_VALUE ", null]}, 1, 0]}"
#define MONGO_IS_ANY_VALUE \
	"{$cond: [{$eq: [{$ifNull: [" MONGO_RAW_VALUE ", null]}, null]}, 0, 1]}"

typedef struct MongoAccumulatorRow
{
	const char *operator_name;
	const char *operand;		/* a template */
} MongoAccumulatorRow;

/* How a family of aggregate functions is computed. */
typedef struct MongoRecipe
{
	MongoArgumentForm form;
	MongoAccumulatorRow accumulators[MONGO_MAX_ACCUMULATORS];
	MongoAccumulatorRow guard;	/* only where digits may not suffice */

	/* Templates over the accumulators, @1 and so on; @4 is 2^53. */
	const char *result;			/* NULL: the first accumulator */
	const char *guarded;		/* instead, with the guard, which is @3 */
	const char *not_null;		/* instead of 'result' if no value is NULL;
								 * then the first accumulator is enough */
	Oid			sum_type;		/* of an average, whose count is the second */
	bool		distinct_is_same;	/* repeated values make no difference */
	bool		has_state;		/* it is PostgreSQL's own partial state */
	bool		zero_if_empty;
	bool		is_approximate; /* only with the option float_sums */
} MongoRecipe;

typedef struct MongoAggregateRow
{
	const MongoRecipe *recipe;
	const MongoRecipe *with_nan;	/* if it may be NaN; NULL: the same */
	Oid			functions[MONGO_MAX_FUNCTIONS]; /* ends with InvalidOid,
												 * unless full */
} MongoAggregateRow;

static const MongoAggregateRow *aggregate_row(Oid function);

/*-------------------------------------------------------------------------
 * Do the values that a $group has accumulated fit their column?
 *
 * MongoDB's accumulators skip values of other types: $sum ignores a String.  In BSON's order
 * every other type sorts above or below those that a column reads.  So the greatest and the
 * least value of a group, which are plain accumulators, reveal a value that does not fit.
 *
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 *-------------------------------------------------------------------------
 */

/*
 * Returns a template that tests whether a value is of a BSON type that the type reads.  For texts
 * it also accepts a missing field, because keys may be missing.
 */
static const char *
type_test(const MongoType *type, bson_type_t bson_type)
{
	StringInfoData test;
	ListCell   *cell;

	initStringInfo(&test);
	appendStringInfoString(&test, "{$in: [{$type: @1}, [");
	foreach(cell, mongo_bson_type_aliases(type->accepts & mongo_declared_set(bson_type)))
		appendStringInfo(&test, "'%s', ", (const char *) lfirst(cell));
	appendStringInfoString(&test, type->kind == MONGO_KIND_TEXT ?
						   "'null', 'undefined', 'missing']]}" : "'null']]}");
	return test.data;
}

/*
 * Returns a template that tests whether the greatest or least value of a field, which may be null,
 * is one that the type reads; NULL if that cannot be seen.  The field may be declared to have one
 * BSON type.
 *
 * Sets *has_lower if stored values of other types may sort below, so that the least value must be
 * tested too.  Below numbers is only MinKey, which nobody stores.  For numbers the BSON type is
 * not tested, because the greatest and the least do not reveal the types of those between them.  A
 * comparison shows that a value is a number, and of the right size: null is below, all other types
 * are above.
 */
static const char *
fit_test(Oid typid, bson_type_t bson_type, bool *has_lower)
{
	const MongoType *type = mongo_type_facts(typid);

	*has_lower = (type->accepts & MONGO_BSON_BIT(BSON_TYPE_DOUBLE)) == 0;
	return !mongo_has_normal_form(typid) ? NULL :
		*has_lower ? type_test(type, bson_type) :
		type->kind != MONGO_KIND_INTEGER ? "{$lte: [@1, inf]}" :
		psprintf("{$lte: [@1, " INT64_FORMAT "]}", type->limit);
}

/* Returns an expression for 'result' that fails if the value, which is atomic, does not fit 'column'. */
static bson_t *
raise_unless_fits(const char *test, const Var *column, const MongoField *field,
				  const MongoValue *value, bson_t *result)
{
	const char *path = field->path;
	MongoValue	arguments[3] = {*value, {.expression = result}};

	if (field->columns->prefix != NULL)
		path += strlen(field->columns->prefix) + 1;
	arguments[2].expression = mongo_mismatch_expression(mongo_table_options(field->columns->relid), path,
														format_type_be(column->vartype),
														mongo_first_value(value->expression));
	return mongo_expand_template(psprintf("{$cond: [%s, @2, @3]}", test), arguments,
								 lengthof(arguments));
}

/* ------------------------- The stages of a group -------------------------- */

/*
 * Tells whether this is a column that is declared NOT NULL.  A foreign table's declaration is
 * trusted, as by PostgreSQL; but rows of a table that is joined to the first one may be missing.
 */
static bool
is_never_null(const MongoTranslation *translation, Node *node)
{
	const Var  *var = (const Var *) node;
	MongoColumns *columns;

	if (!IsA(node, Var))
		return false;
	columns = mongo_columns_find(translation->columns, var->varno);
	return columns != NULL && columns->prefix == NULL &&
		mongo_is_declared_not_null(columns, var->varattno);
}

/* Like mongo_group_value(), but the value is in the form that documents have. */
static bool
value_as_stored(const MongoScope *scope, Node *node, bool ordered, MongoValue *value)
{
	Oid			type = mongo_base_type(exprType(node));

	if (!mongo_has_normal_form(type) ||
		(mongo_compares_text(type) &&
		 mongo_feature_is_disabled(scope->translation->disabled, MONGO_FEATURE_COLLATION)) ||
		!mongo_text_suits(scope, type, exprCollation(node), ordered) ||
		!mongo_value_of_node(scope, node, value))
		return false;
	value->nullable &= !is_never_null(scope->translation, node);
	return true;
}

/*
 * mongo_group_value
 *		Makes an expression whose values are equal in MongoDB if they are in PostgreSQL; returns
 *		false if there is none.
 *
 * If 'ordered', their order is the same too, but for null and NaN.
 */
bool
mongo_group_value(const MongoScope *scope, Node *node, bool ordered, MongoValue *value)
{
	return value_as_stored(scope, node, ordered, value) && mongo_make_comparable(scope, value);
}

/*
 * mongo_group_add_key
 *		Adds 'expression' to the keys of the group; returns false if it is not shippable.
 *
 * A text stays as it is in the documents, for two stages to merge.  Other types do not: Doubles
 * and Decimal128s that are equal need not read as equal numerics, and a few dates may come from as
 * many times as there are documents.
 */
bool
mongo_group_add_key(MongoGroup *group, Expr *expression)
{
	MongoGroupKey *key = palloc(sizeof(MongoGroupKey));
	MongoValue	normal;

	/*
	 * Not a value without columns: it would stand in fdw_exprs as well, and
	 * setrefs.c would take the one for the other.
	 */
	if (mongo_is_local_value(group->scope.translation, (Node *) expression) ||
		!value_as_stored(&group->scope, (Node *) expression, false, &key->value))
		return false;
	normal = key->value;
	if (!mongo_make_comparable(&group->scope, &normal))
		return false;
	if (!mongo_compares_text(normal.type))
		key->value = normal;
	key->expression = expression;
	group->keys = lappend(group->keys, key);
	return true;
}

/* Returns the path of a key in the documents that a stage returns. */
static const char *
key_path(const MongoGroup *group, int number, bool alone)
{
	return alone && list_length(group->keys) == 1 ? "_id" : psprintf("_id.k%d", number);
}

/* Returns a column's text as a String, or an error if it is none: MongoDB would convert numbers. */
static MongoValue
normal_text(const MongoGroup *group, Node *node, const MongoValue *raw)
{
	MongoValue	value = *raw;
	MongoField	field;
	const Var  *column;
	bool		has_lower;

	if (!mongo_normalize(&group->scope, &value))
		elog(ERROR, "text has no normal form");
	column = mongo_column_of_node(group->scope.translation->columns, node, &field);
	if (raw->raw && column != NULL && field.type_mismatch == MONGO_TYPE_MISMATCH_ERROR)
		value.expression = raise_unless_fits(fit_test(TEXTOID, field.bson_type, &has_lower), column,
											 &field, raw, value.expression);
	return value;
}

/* Appends a key to the specification's _id; if 'final', equal values of PostgreSQL become equal. */
static void
append_group_key(const MongoGroup *group, bson_t *id, const char *name, Node *node,
				 MongoValue value, bool final)
{
	bson_t	   *expression;

	if (final && mongo_compares_text(value.type))
		value = normal_text(group, node, &value);
	expression = value.expression;
	if (final && value.nullable)
		expression = mongo_expand_template("{$ifNull: [@1, null]}", &value, 1);
	mongo_append_expression(id, name, expression);
}

/* Returns the expression "$path", palloc'd. */
static bson_t *
field_expression(const char *path)
{
	return mongo_expression("@1", mongo_field_path(path));
}

/*
 * Appends the specification's _id, made of the values that the keys have now.  A null and a missing
 * field may stay two values of what DISTINCT is over, as aggregates skip both.
 */
static void
append_group_id(const MongoGroup *group, const List *values, bool final, bool distinct,
				bson_t *specification)
{
	bool		alone = list_length(values) + distinct == 1;
	bson_t	   *id = alone ? specification : mongo_bson_create();
	ListCell   *cell;

	if (values == NIL && !distinct)
	{
		mongo_append(specification, "_id", mongo_null());
		return;
	}
	foreach(cell, values)
	{
		int			number = foreach_current_index(cell);
		const MongoGroupKey *key = list_nth(group->keys, number);

		append_group_key(group, id, alone ? "_id" : psprintf("k%d", number),
						 (Node *) key->expression, *(MongoValue *) lfirst(cell), final);
	}
	if (distinct)
		append_group_key(group, id, alone ? "_id" : "d", group->distinct, group->distinct_value,
						 mongo_compares_text(group->distinct_value.type));
	if (!alone)
		mongo_append(specification, "_id", mongo_document(id));
}

/*
 * Tells whether MongoDB would leave out some accumulators over a time series.  If all are $min or
 * $max, and the keys metadata, MongoDB 6.0.5 takes the values from what each bucket has of its
 * fields, and leaves out expressions and what is metadata itself.
 */
static bool
loses_accumulators(const MongoGroup *group)
{
	const MongoValue *key = group->keys != NIL ? &((MongoGroupKey *) linitial(group->keys))->value :
		group->distinct != NULL ? &group->distinct_value : NULL;
	const char *metadata = key == NULL ? NULL : mongo_path_of_expression(key->expression);
	bool		loses = false;

	foreach_ptr(const MongoAccumulator, accumulator, metadata == NULL ? NIL : group->accumulators)
	{
		const char *path = mongo_path_of_expression(accumulator->operand);
		size_t		top = strcspn(metadata, ".");

		if (accumulator->distinct)
			continue;
		if (strcmp(accumulator->operator_name, "$min") != 0 &&
			strcmp(accumulator->operator_name, "$max") != 0)
			return false;
		loses |= path == NULL || (strcspn(path, ".") == top && strncmp(path, metadata, top) == 0);
	}
	return loses;
}

/*
 * Appends a $group over documents; distinct values wait for the second stage.  Then keys must be
 * made equal in this stage already, or values would be distinct in each of them.
 */
static void
append_first_stage(const MongoGroup *group, bool final, MongoPipeline *pipeline)
{
	bson_t	   *specification = mongo_bson_create();
	List	   *values = NIL;
	ListCell   *cell;

	foreach(cell, group->keys)
		values = lappend(values, &((MongoGroupKey *) lfirst(cell))->value);
	append_group_id(group, values, final, group->distinct != NULL, specification);
	foreach(cell, group->accumulators)
	{
		MongoAccumulator *accumulator = lfirst(cell);

		if (!accumulator->distinct)
			mongo_append_condition(specification, psprintf("a%d", foreach_current_index(cell)),
								   accumulator->operator_name, mongo_first_value(accumulator->operand));
	}
	/* a number of rows cannot be had from the buckets alone */
	if (loses_accumulators(group))
		mongo_append_condition(specification, "rows", "$sum", mongo_int32(1));
	mongo_pipeline_append(pipeline, "$group", specification);
}

/* Appends a $group over the groups of the first one. */
static void
append_second_stage(const MongoGroup *group, MongoPipeline *pipeline)
{
	bson_t	   *specification = mongo_bson_create();
	List	   *values = NIL;
	ListCell   *cell;

	foreach(cell, group->keys)
	{
		MongoValue *value = palloc(sizeof(MongoValue));

		*value = ((MongoGroupKey *) lfirst(cell))->value;
		value->expression = field_expression(key_path(group, foreach_current_index(cell),
													  group->distinct == NULL));
		values = lappend(values, value);
	}
	append_group_id(group, values, group->distinct == NULL, false, specification);
	foreach(cell, group->accumulators)
	{
		MongoAccumulator *accumulator = lfirst(cell);
		const char *name = psprintf("a%d", foreach_current_index(cell));
		const bson_t *operand = accumulator->distinct ? accumulator->operand :
			field_expression(name);

		mongo_append_condition(specification, name, accumulator->operator_name, mongo_first_value(operand));
	}
	mongo_pipeline_append(pipeline, "$group", specification);
}

/* Tells whether equal keys may come as different values. */
static bool
differs_in_documents(const MongoGroup *group)
{
	foreach_ptr(MongoGroupKey, key, group->keys)
	{
		if (key->value.nullable || (mongo_compares_text(key->value.type) && key->value.raw))
			return true;
	}
	return false;
}

/* Returns a column that reads a field of the documents that the stages return. */
static MongoColumn *
output_column(const char *path, Oid type, int32 typmod)
{
	MongoColumn *column = palloc0(sizeof(MongoColumn));

	column->path = path;
	column->typid = type;
	column->typmod = typmod;
	return column;
}

/* Makes the group's values the only ones that later stages can use. */
static void
begin_computed(MongoGroup *group, MongoPipeline *pipeline)
{
	List	   *computed = list_copy(group->computed);
	ListCell   *cell;

	foreach(cell, group->keys)
	{
		MongoComputed *key = palloc0(sizeof(MongoComputed));
		const MongoGroupKey *group_key = lfirst(cell);
		MongoOutput *output = palloc0(sizeof(MongoOutput));

		key->expression = group_key->expression;
		key->path = key_path(group, foreach_current_index(cell), true);
		key->normal = !group_key->value.raw || mongo_compares_text(group_key->value.type);
		key->not_null = !group_key->value.nullable;
		computed = lappend(computed, key);
		output->expression = group_key->expression;
		output->column = output_column(key->path, exprType((Node *) group_key->expression),
									   exprTypmod((Node *) group_key->expression));
		group->outputs = lappend(group->outputs, output);
	}
	pipeline->translation.columns = NULL;
	pipeline->translation.computed = computed;
}

/*
 * mongo_group_lone_key
 *		Returns the only key of a group without accumulators, or, of a group without keys, what all
 *		aggregates are over by DISTINCT; NULL for any other group.
 */
Node *
mongo_group_lone_key(const MongoGroup *group)
{
	ListCell   *cell;

	if (group->distinct == NULL)
		return list_length(group->keys) == 1 && group->accumulators == NIL ?
			(Node *) ((MongoGroupKey *) linitial(group->keys))->expression : NULL;
	foreach(cell, group->accumulators)
	{
		if (!((MongoAccumulator *) lfirst(cell))->distinct)
			return NULL;
	}
	return group->keys == NIL ? group->distinct : NULL;
}

/*
 * Keeps a $group by this field alone from losing groups; 'value' is its key's, and may be changed.
 *
 * MongoDB goes from key to key of an index (DISTINCT_SCAN): without conditions also of a sparse
 * one, which lacks the documents without the field, and if none of them compares the field with a
 * text also of one with a collation, to which 'a' and 'A' are one key.  No text is below '': that
 * is true of all documents, and to find it MongoDB takes neither.  It takes any other index on the
 * field, and prefers that to none; so if no index is known to serve the conditions as well, the
 * field is hidden instead.
 */
static void
keep_groups_whole(MongoValue *value, const char *field, bool walks, MongoPipeline *pipeline)
{
	bool		is_text = mongo_compares_text(value->type);

	if (bson_empty(pipeline->stages) || (is_text && walks))
		mongo_pipeline_append(pipeline, "$match",
							  mongo_from_template("{@1: {$not: {$lt: ''}}}", mongo_utf8(field)));
	else if (is_text || pipeline->translation.columns->derivation != NULL)
		value->expression = mongo_expand_template("{$ifNull: [@1, null]}", value, 1);
}

/*
 * mongo_group_append
 *		Appends the stages to the pipeline, which then contains only what they have computed.
 *
 * Keys become outputs too.  'walks' specifies that MongoDB takes them from an index's keys,
 * 'merge' that two stages are expected to be cheaper.  Called once, after all keys and aggregates
 * were added.
 */
void
mongo_group_append(MongoGroup *group, bool walks, bool merge, MongoPipeline *pipeline)
{
	pipeline->reads_all = true;
	/* several groups are stored until all documents have been read */
	pipeline->may_need_disk |= group->keys != NIL || group->distinct != NULL;
	/* texts of an index's keys, of which some are equal only in PostgreSQL */
	if (walks && group->distinct != NULL && mongo_compares_text(group->distinct_value.type))
	{
		const char *field = mongo_path_of_expression(group->distinct_value.expression);

		keep_groups_whole(&group->distinct_value, field, true, pipeline);
		mongo_pipeline_append(pipeline, "$group",
							  mongo_from_template("{_id: @1}", mongo_field_path(field)));
		group->distinct_value.expression = field_expression("_id");
	}
	merge = group->distinct != NULL || ((walks || merge) && differs_in_documents(group));
	if (merge && group->distinct == NULL && mongo_group_lone_key(group) != NULL &&
		pipeline->translation.columns != NULL)
	{
		MongoValue *value = &((MongoGroupKey *) linitial(group->keys))->value;
		const char *field = mongo_path_of_expression(value->expression);

		if (field != NULL)
			keep_groups_whole(value, field, walks, pipeline);
	}
	append_first_stage(group, !merge || group->distinct != NULL, pipeline);
	if (merge)
		append_second_stage(group, pipeline);
	if (group->nresults > 0)
		mongo_pipeline_append(pipeline, "$set", group->results);
	begin_computed(group, pipeline);
}

/* -- Aggregates as accumulators of $group, after the rows of the table below -- */

/* Digits that the sum of any number of rows has beyond those of one. */
#define COUNT_DIGITS	15

/* An aggregate being translated. */
typedef struct Translation
{
	MongoGroup *group;
	const Aggref *aggregate;
	const MongoRecipe *recipe;
	Node	   *argument;		/* NULL for count(*) */
	MongoValue	values[2];		/* MONGO_VALUE and MONGO_RAW_VALUE */
	bool		distinct;
	bool		needs_guard;
	bson_t	   *filter;			/* NULL: none */

	/* Whether the column that is the argument fits is asked for, unless NULL. */
	const char *fits;			/* see fit_test() */
	bool		has_lower;
	const Var  *column;
	MongoField	field;
	MongoValue	greatest;
	MongoValue	least;
} Translation;

/* Returns the value of a field that a $group returns. */
static MongoValue
field_value(const char *path)
{
	return (MongoValue) {field_expression(path), .nullable = true};
}

/* Converts integers and numerics to Decimal128. */
static bool
make_decimal(const MongoScope *scope, MongoValue *value)
{
	if (!mongo_normalize(scope, value))
		return false;
	if (value->type != NUMERICOID)
		value->expression = mongo_decimal_of_number(value);
	return true;
}

/* Tells whether adding up values of so many digits may exceed the digits of a Decimal128. */
static bool
needs_guard(const MongoRecipe *recipe, MongoDigits digits)
{
	digits.integral += COUNT_DIGITS;
	return recipe->guarded != NULL && !mongo_digits_fit(digits);
}

/* Makes what DISTINCT is over a key of the first stage; it must be the same for all aggregates. */
static bool
set_distinct(Translation *translation)
{
	MongoGroup *group = translation->group;
	MongoValue *value = &translation->values[1];
	MongoField	field;

	if (group->distinct == NULL)
	{
		/* a constant would not be a key, but mean that a field is included */
		if (mongo_is_local_value(group->scope.translation, translation->argument) ||
			!mongo_group_value(&group->scope, translation->argument, false,
							   &group->distinct_value))
			return false;
		group->distinct = translation->argument;

		/*
		 * a column's text stays as it is for now, so that its type can be
		 * seen
		 */
		if (mongo_compares_text(group->distinct_value.type) &&
			mongo_column_of_node(group->scope.translation->columns, group->distinct, &field) != NULL &&
			!mongo_value_of_node(&group->scope, group->distinct, &group->distinct_value))
			return false;
	}
	if (!equal(group->distinct, translation->argument))
		return false;
	*value = field_value(group->keys == NIL ? "_id" : "_id.d");
	value->nullable = group->distinct_value.nullable;
	value->type = group->distinct_value.type;
	value->typmod = group->distinct_value.typmod;
	value->raw = group->distinct_value.raw && !mongo_compares_text(value->type);
	translation->values[0] = *value;
	translation->needs_guard = needs_guard(translation->recipe, group->distinct_value.digits);
	return translation->recipe->form != MONGO_ARGUMENT_DECIMAL ||
		make_decimal(&group->scope, &translation->values[0]);
}

/*
 * The column that is NULL whenever an expression is NULL, so that counting need not compute this.
 */
typedef struct NullWitness
{
	const MongoTranslation *translation;
	Node	   *column;			/* NULL: the expression is never NULL */
} NullWitness;

/* Finds that column; returns true if there is none, or more than one.  A tree walker. */
static bool
find_witness(Node *node, NullWitness *witness)
{
	MongoTypeKind kind;

	if (node == NULL)
		return false;
	if (IsA(node, Var) && is_never_null(witness->translation, node))
		return false;
	if (IsA(node, Var) && (witness->column == NULL || equal(witness->column, node)))
	{
		witness->column = node;
		return false;
	}
	if (IsA(node, Const))
		return ((Const *) node)->constisnull;
	/* operators and casts that give numbers are NULL only where arguments are */
	kind = mongo_type_kind(mongo_base_type(exprType(node)));
	if (!IsA(node, OpExpr) &&
		(!IsA(node, FuncExpr) ||
		 (((FuncExpr *) node)->funcformat != COERCE_EXPLICIT_CAST &&
		  ((FuncExpr *) node)->funcformat != COERCE_IMPLICIT_CAST)))
		return true;
	if (kind != MONGO_KIND_INTEGER && kind != MONGO_KIND_NUMERIC && kind != MONGO_KIND_DOUBLE)
		return true;
	return expression_tree_walker(node, find_witness, witness);
}

/* Fills in the values; returns false if the argument is not shippable. */
static bool
translate_argument(Translation *translation)
{
	MongoScope	scope = translation->group->scope;
	MongoValue *values = translation->values;
	MongoArgumentForm form = translation->recipe->form;
	NullWitness witness = {.translation = scope.translation};
	bool		computed;
	bool		found;

	if (form == MONGO_ARGUMENT_NONE)
		return true;
	if (translation->distinct)
		return set_distinct(translation);

	scope.guarded = translation->recipe->guarded != NULL;
	scope.lazy = translation->filter != NULL;
	if (!mongo_value_of_node(&scope, translation->argument, &values[0]))
		return false;
	translation->needs_guard = needs_guard(translation->recipe, values[0].digits);
	/* count() is of values alone, but what computes them may fail */
	computed = strcmp(translation->recipe->accumulators[0].operand, MONGO_IS_VALUE) == 0 &&
		!IsA(translation->argument, Var) && !IsA(translation->argument, Const);
	found = !computed && !find_witness(translation->argument, &witness);
	values[1] = values[0];
	if (found && witness.column != NULL && !mongo_value_of_node(&scope, witness.column, &values[1]))
		return false;
	values[1].nullable = computed || (values[1].nullable && (!found || witness.column != NULL));
	/* a later time is no earlier date */
	if (form == MONGO_ARGUMENT_ORDERED && values[0].type != DATEOID)
		return mongo_group_value(&scope, translation->argument, true, &values[0]);
	return form != MONGO_ARGUMENT_DECIMAL || make_decimal(&scope, &values[0]);
}

/* Returns {$cond: [filter, operand, null]}; null adds nothing to any accumulator. */
static bson_t *
filtered(const Translation *translation, bson_t *operand)
{
	MongoValue	arguments[2] = {
		{.expression = translation->filter}, {.expression = operand}
	};

	if (translation->filter == NULL)
		return operand;
	return mongo_expand_template("{$cond: [@1, @2, null]}", arguments, 2);
}

/* Returns the number of this accumulator; adds it unless the group has it already. */
static int
add_accumulator(Translation *translation, const MongoAccumulatorRow *row)
{
	MongoGroup *group = translation->group;
	MongoAccumulator *accumulator = palloc(sizeof(MongoAccumulator));
	const char *operand = row->operand;
	ListCell   *cell;

	if (strcmp(operand, MONGO_IS_VALUE) == 0)
		operand = !translation->values[1].nullable ? "1" :
			mongo_has_normal_form(translation->values[1].type) ? operand : MONGO_IS_ANY_VALUE;
	accumulator->operator_name = row->operator_name;
	accumulator->operand = filtered(translation,
									mongo_expand_template(operand, translation->values,
														  lengthof(translation->values)));
	accumulator->distinct = translation->distinct;

	foreach(cell, group->accumulators)
	{
		MongoAccumulator *other = lfirst(cell);

		if (strcmp(other->operator_name, accumulator->operator_name) == 0 &&
			other->distinct == accumulator->distinct &&
			bson_equal(other->operand, accumulator->operand))
			return foreach_current_index(cell);
	}
	group->accumulators = lappend(group->accumulators, accumulator);
	return list_length(group->accumulators) - 1;
}

/*
 * Adds accumulators that reveal values of the argument, a column, that it does not read.  Those
 * under DISTINCT are revealed as long as they are as the documents have them.
 */
static void
begin_fit(Translation *translation)
{
	static const MongoAccumulatorRow greatest = {"$max", MONGO_RAW_VALUE};
	static const MongoAccumulatorRow least = {"$min", MONGO_RAW_VALUE};

	translation->column = mongo_column_of_node(translation->group->scope.translation->columns,
											   translation->argument, &translation->field);
	if (translation->column == NULL || !translation->values[1].raw ||
		translation->field.type_mismatch != MONGO_TYPE_MISMATCH_ERROR)
		return;
	translation->fits = fit_test(mongo_base_type(translation->column->vartype),
								 translation->field.bson_type, &translation->has_lower);
	if (translation->fits == NULL)
		return;
	translation->greatest = field_value(psprintf("a%d", add_accumulator(translation, &greatest)));
	if (translation->has_lower)
		translation->least = field_value(psprintf("a%d", add_accumulator(translation, &least)));
}

/*
 * Adds a field to the $set, and returns its path.  Without a template it is the first accumulator.
 */
static const char *
add_result(const Translation *translation, const char *template, const MongoValue *accumulators)
{
	MongoGroup *group = translation->group;
	const char *path = psprintf("r%d", group->nresults++);
	bson_t	   *result = template == NULL ? accumulators[0].expression :
		mongo_expand_template(template, accumulators, MONGO_MAX_ACCUMULATORS + 1);

	if (translation->fits != NULL)
		result = raise_unless_fits(translation->fits, translation->column, &translation->field,
								   &translation->greatest, result);
	if (translation->fits != NULL && translation->has_lower)
		result = raise_unless_fits(translation->fits, translation->column, &translation->field,
								   &translation->least, result);
	mongo_append_expression(group->results, path, result);
	return path;
}

/* Adds the aggregate's output; 'paths' are those of its accumulators. */
static void
add_output(Translation *translation, const char *const *paths)
{
	MongoGroup *group = translation->group;
	const MongoRecipe *recipe = translation->recipe;
	MongoOutput *output = palloc0(sizeof(MongoOutput));
	const char *template = recipe->result;
	const char *path = paths[0];
	MongoValue	arguments[MONGO_MAX_ACCUMULATORS + 1];

	for (int i = 0; i < MONGO_MAX_ACCUMULATORS; i++)
		arguments[i] = field_value(paths[i] != NULL ? paths[i] : "_id");
	arguments[MONGO_MAX_ACCUMULATORS] = mongo_decimal_value("9007199254740992");

	if (translation->needs_guard)
		template = recipe->guarded;
	else if (recipe->not_null != NULL && paths[1] == NULL)
		template = recipe->not_null;
	if (template != NULL || translation->fits != NULL)
		path = add_result(translation, template, arguments);

	output->expression = (Expr *) translation->aggregate;
	output->column = output_column(path, OidIsValid(recipe->sum_type) ? recipe->sum_type :
								   translation->aggregate->aggtype, -1);
	output->column->zero_if_empty = recipe->zero_if_empty;
	if (OidIsValid(recipe->sum_type))
		output->count = output_column(paths[1], INT8OID, -1);
	group->outputs = lappend(group->outputs, output);

	if (!OidIsValid(recipe->sum_type))
	{
		MongoComputed *computed = palloc0(sizeof(MongoComputed));

		computed->expression = output->expression;
		computed->path = path;
		computed->normal = recipe->form == MONGO_ARGUMENT_DECIMAL;
		computed->not_null = recipe->zero_if_empty;
		group->computed = lappend(group->computed, computed);
	}
}

/* Begins the translation of an aggregate; returns false if it has no row that suits. */
static bool
begin_translation(Translation *translation, MongoGroup *group, const Aggref *aggregate)
{
	const MongoAggregateRow *row = aggregate_row(aggregate->aggfnoid);
	MongoTypeKind kind;
	MongoField	field;

	memset(translation, 0, sizeof(*translation));
	if (row == NULL || aggregate->aggorder != NIL || aggregate->aggdirectargs != NIL ||
		aggregate->aggvariadic || aggregate->agglevelsup != 0 ||
		list_length(aggregate->args) > 1 || aggregate->aggkind != AGGKIND_NORMAL)
		return false;
	translation->group = group;
	translation->aggregate = aggregate;
	translation->recipe = row->recipe;
	translation->distinct = aggregate->aggdistinct != NIL && !row->recipe->distinct_is_same;
	if (row->recipe->is_approximate && (!group->float_sums || translation->distinct))
		return false;
	if (DO_AGGSPLIT_SKIPFINAL(aggregate->aggsplit) && !row->recipe->has_state)
		return false;
	if (aggregate->args != NIL)
		translation->argument = (Node *) linitial_node(TargetEntry, aggregate->args)->expr;

	if (aggregate->aggfilter != NULL)
	{
		MongoValue	filter;

		if (translation->distinct ||
			!mongo_test_of_node(&group->scope, (Node *) aggregate->aggfilter, true, &filter))
			return false;
		translation->filter = filter.expression;
	}
	if (!translate_argument(translation))
		return false;

	/*
	 * accumulators skip what is not a number, also where an expression passes
	 * it through
	 */
	kind = mongo_type_kind(translation->values[0].type);
	if (translation->values[0].raw && (kind == MONGO_KIND_INTEGER || kind == MONGO_KIND_DOUBLE) &&
		mongo_column_of_node(group->scope.translation->columns, translation->argument, &field) == NULL)
		translation->values[0].expression = mongo_expand_template("{$multiply: [@1, 1]}", translation->values, 1);
	if (translation->values[0].nan && row->with_nan != NULL)
		translation->recipe = row->with_nan;
	return true;
}

/*
 * mongo_group_add_aggregate
 *		Adds an aggregate to the outputs, after all keys were added; returns false if it has no
 *		exact translation.
 *
 * It may be partial, if its state is a value of SQL (aggsplit).  An aggregate that the group has
 * already is not computed again.
 */
bool
mongo_group_add_aggregate(MongoGroup *group, Aggref *aggregate)
{
	Translation translation;
	const MongoRecipe *recipe;
	const char *paths[MONGO_MAX_ACCUMULATORS] = {NULL};
	ListCell   *cell;

	foreach(cell, group->outputs)
	{
		if (equal(((MongoOutput *) lfirst(cell))->expression, aggregate))
			return true;
	}
	if (!begin_translation(&translation, group, aggregate))
		return false;

	recipe = translation.recipe;
	for (int i = 0; i < MONGO_MAX_ACCUMULATORS && recipe->accumulators[i].operator_name != NULL; i++)
	{
		if (i == 1 && recipe->not_null != NULL && !translation.values[1].nullable &&
			translation.filter == NULL)
			break;
		paths[i] = psprintf("a%d", add_accumulator(&translation, &recipe->accumulators[i]));
	}
	if (translation.needs_guard)
		paths[2] = psprintf("a%d", add_accumulator(&translation, &recipe->guard));
	begin_fit(&translation);
	add_output(&translation, paths);
	return true;
}

/*-------------------------------------------------------------------------
 * The table of aggregate functions.
 *
 * It contains those whose result is PostgreSQL's to the last digit.  PostgreSQL's sums of
 * float8 depend on the order of addition, and MongoDB compensates for that, so these need the
 * option float_sums.  Sums of float4 and variances are missing: the latter's squares fit into
 * a Decimal128 for short integers alone.
 *
 * An average has the scale of PostgreSQL's own division, so MongoDB adds up and
 * PostgreSQL divides (src/exec/finalize_agg.c).
 *
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/group/
 *-------------------------------------------------------------------------
 */

#define VALUE	MONGO_VALUE

/*
 * An error (22003).  It depends on a value, as MongoDB would evaluate a constant
 * before any document.
 */
#define RAISE(value) \
	"{$toInt: {$concat: ['" MONGO_INEXACT_SUM " ', {$toString: " value "}]}}"

/*
 * A sum of integers is one, however long; but where some are Doubles, it is a
 * Double, too, and exact up to 2^53, which the argument @4 is.
 */
#define EXACT_INTEGERS \
	"{$cond: [{$and: [{$eq: [{$type: @1}, 'double']}, {$gte: [{$abs: @1}, @4]}]}, " \
	RAISE("@1") ", @1]}"

/*
 * A Decimal128 that has been rounded has 34 digits, or the least exponent.
 * So if the sum of magnitudes has neither, no part of it has been rounded, nor
 * has any part of the sum of the values, which is nowhere larger.
 */
#define EXACT_DECIMALS(magnitude, sum) \
	"{$cond: [{$regexMatch: {input: {$toString: " magnitude "}, " \
	"regex: '^(?!.*E-61).{0,33}$'}}, " sum ", " \
	RAISE(magnitude) "]}"

/* of the accumulators: has there been any value at all? */
#define UNLESS_NULL(result) "{$cond: [{$gt: [@2, null]}, " result ", null]}"

#define SUMMED(operand)		{"$sum", operand}
#define ANY_VALUE			{"$max", MONGO_RAW_VALUE}
#define COUNTED				{"$sum", MONGO_IS_VALUE}

static const MongoRecipe count_all = {
	MONGO_ARGUMENT_NONE, {SUMMED("1")}, .has_state = true, .zero_if_empty = true
};

static const MongoRecipe count_values = {
	MONGO_ARGUMENT_RAW, {COUNTED}, .has_state = true, .zero_if_empty = true
};

static const MongoRecipe sum_of_integers = {
	MONGO_ARGUMENT_RAW, {SUMMED(VALUE), ANY_VALUE},
	.result = UNLESS_NULL(EXACT_INTEGERS), .not_null = EXACT_INTEGERS,
	.has_state = true
};

static const MongoRecipe sum_of_decimals = {
	MONGO_ARGUMENT_DECIMAL, {SUMMED(VALUE), ANY_VALUE},
	.guard = SUMMED("{$abs: " VALUE "}"),
	.result = UNLESS_NULL("@1"),
	.guarded = UNLESS_NULL(EXACT_DECIMALS("@3", "@1"))
};

static const MongoRecipe average_of_integers = {
	MONGO_ARGUMENT_RAW, {SUMMED(VALUE), COUNTED},
	.result = EXACT_INTEGERS,
	.sum_type = INT8OID
};

static const MongoRecipe average_of_decimals = {
	MONGO_ARGUMENT_DECIMAL, {SUMMED(VALUE), COUNTED},
	.guard = SUMMED("{$abs: " VALUE "}"),
	.guarded = EXACT_DECIMALS("@3", "@1"),
	.sum_type = NUMERICOID
};

static const MongoRecipe sum_of_doubles = {
	MONGO_ARGUMENT_RAW, {SUMMED(VALUE), ANY_VALUE},
	.result = UNLESS_NULL("{$toDouble: @1}"), .has_state = true, .is_approximate = true
};

static const MongoRecipe average_of_doubles = {
	MONGO_ARGUMENT_RAW, {SUMMED(VALUE), COUNTED},
	.result = "{$cond: [{$gt: [@2, 0]}, {$divide: [{$toDouble: @1}, @2]}, null]}", .is_approximate = true
};

static const MongoRecipe least = {
	MONGO_ARGUMENT_ORDERED, {{"$min", VALUE}}, .distinct_is_same = true, .has_state = true
};

static const MongoRecipe greatest = {
	MONGO_ARGUMENT_ORDERED, {{"$max", VALUE}}, .distinct_is_same = true, .has_state = true
};

/* NaN is above every number, and below it for MongoDB */
#define IS_NAN		"{$cond: [{$eq: [" VALUE ", NaN]}, 1, null]}"
#define NOT_NAN		"{$cond: [{$eq: [" VALUE ", NaN]}, null, " VALUE "]}"

static const MongoRecipe least_or_nan = {
	MONGO_ARGUMENT_ORDERED, {{"$min", NOT_NAN}, {"$max", IS_NAN}},
	.result = "{$ifNull: [@1, {$cond: [{$eq: [@2, 1]}, NaN, null]}]}",
	.distinct_is_same = true, .has_state = true
};

static const MongoRecipe greatest_or_nan = {
	MONGO_ARGUMENT_ORDERED, {{"$max", NOT_NAN}, {"$max", IS_NAN}},
	.result = "{$cond: [{$eq: [@2, 1]}, NaN, @1]}",
	.distinct_is_same = true, .has_state = true
};

/* false is below true */
static const MongoRecipe all_true = {
	MONGO_ARGUMENT_RAW, {{"$min", VALUE}}, .distinct_is_same = true, .has_state = true
};

static const MongoRecipe any_true = {
	MONGO_ARGUMENT_RAW, {{"$max", VALUE}}, .distinct_is_same = true, .has_state = true
};

static const MongoAggregateRow aggregate_rows[] =
{
	{&count_all, NULL, {F_COUNT_}},
	{&count_values, NULL, {F_COUNT_ANY}},
	{&sum_of_integers, NULL, {F_SUM_INT2, F_SUM_INT4}},
	{&sum_of_decimals, NULL, {F_SUM_INT8, F_SUM_NUMERIC}},
	{&average_of_integers, NULL, {F_AVG_INT2, F_AVG_INT4}},
	{&average_of_decimals, NULL, {F_AVG_INT8, F_AVG_NUMERIC}},
	{&sum_of_doubles, NULL, {F_SUM_FLOAT8}},
	{&average_of_doubles, NULL, {F_AVG_FLOAT8}},
	{&least, NULL, {F_MIN_INT2, F_MIN_INT4, F_MIN_INT8, F_MIN_DATE, F_MIN_TIMESTAMP,
	F_MIN_TIMESTAMPTZ, F_MIN_TEXT}},
	{&least, &least_or_nan, {F_MIN_FLOAT8, F_MIN_NUMERIC}},
	{&greatest, NULL, {F_MAX_INT2, F_MAX_INT4, F_MAX_INT8, F_MAX_DATE, F_MAX_TIMESTAMP,
	F_MAX_TIMESTAMPTZ, F_MAX_TEXT}},
	{&greatest, &greatest_or_nan, {F_MAX_FLOAT8, F_MAX_NUMERIC}},
	{&all_true, NULL, {F_BOOL_AND, F_EVERY}},
	{&any_true, NULL, {F_BOOL_OR}},
};

/* Returns the row of an aggregate function, or NULL. */
static const MongoAggregateRow *
aggregate_row(Oid function)
{
	for (size_t i = 0; i < lengthof(aggregate_rows); i++)
	{
		const Oid  *functions = aggregate_rows[i].functions;

		for (int j = 0; j < MONGO_MAX_FUNCTIONS && OidIsValid(functions[j]); j++)
		{
			if (functions[j] == function)
				return &aggregate_rows[i];
		}
	}
	return NULL;
}
