/*-------------------------------------------------------------------------
 *
 * group_aggregate.c
 *		Aggregates as accumulators of $group, after the rows of aggregate_rows.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aggregate_fits.h"
#include "aggregate_rows.h"
#include "digits.h"
#include "nan_bound.h"
#include "group.h"
#include "types.h"

#include "catalog/pg_aggregate.h"
#include "catalog/pg_type_d.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* Digits that the sum of any number of rows has beyond those of one. */
#define COUNT_DIGITS	15

/* The same of as many rows as there may well be; then there is a guard as well. */
#define LIKELY_COUNT_DIGITS	9

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
	const MongoAggregateFit *fit;
	const Var  *column;
	MongoField	field;
	MongoValue	greatest;
	MongoValue	least;
} Translation;

/* A field that a $group gives. */
static MongoValue
field_value(const char *path)
{
	return (MongoValue) {mongo_field_expression(path), .atomic = true, .nullable = true};
}

/* make_decimal: integers and numerics alike as Decimal128. */
static bool
make_decimal(const MongoScope *scope, MongoValue *value)
{
	if (!mongo_normalize(scope, value))
		return false;
	if (value->type != NUMERICOID)
		value->expression = mongo_decimal_of_number(value);
	value->atomic = false;
	return true;
}

/*
 * set_distinct: what DISTINCT is over is a key of the first stage.  All DISTINCT
 * aggregates must be over the same.
 */
static bool
set_distinct(Translation *translation)
{
	MongoGroup *group = translation->group;
	MongoValue *value = &translation->values[1];
	MongoField	field;

	if (group->distinct == NULL)
	{
		if (!mongo_group_value(&group->scope, translation->argument, false,
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
	*value = field_value("_id.d");
	value->type = group->distinct_value.type;
	value->typmod = group->distinct_value.typmod;
	value->raw = group->distinct_value.raw && !mongo_compares_text(value->type);
	translation->values[0] = *value;
	return translation->recipe->form != MONGO_ARGUMENT_DECIMAL ||
		make_decimal(&group->scope, &translation->values[0]);
}

/* guards_digits: may adding up exceed the digits of a Decimal128? */
static bool
guards_digits(const Translation *translation)
{
	MongoDigits digits = mongo_expression_digits(translation->argument);

	digits.integral += COUNT_DIGITS;
	return translation->recipe->guarded != NULL &&
		!(digits.known && mongo_digits_fit(digits));
}

/*
 * is_arithmetic: gives NULL where an argument is NULL, and only there.
 */
static bool
is_arithmetic(Node *node)
{
	static const Oid operators[] = {
		F_INT4PL, F_INT4MI, F_INT4MUL, F_INT4DIV, F_INT4MOD, F_INT4UM, F_INT24PL, F_INT42PL, F_INT24MI,
		F_INT42MI, F_INT24MUL, F_INT42MUL, F_INT8PL, F_INT8MI, F_INT8MUL, F_INT8DIV, F_INT8MOD, F_INT8UM,
		F_INT48PL, F_INT84PL, F_INT48MI, F_INT84MI, F_INT48MUL, F_INT84MUL, F_NUMERIC_ADD, F_NUMERIC_SUB,
		F_NUMERIC_MUL, F_NUMERIC_UMINUS
	};
	Oid			function;

	if (IsA(node, FuncExpr))
		return ((FuncExpr *) node)->funcformat == COERCE_IMPLICIT_CAST ||
			((FuncExpr *) node)->funcformat == COERCE_EXPLICIT_CAST;
	if (!IsA(node, OpExpr))
		return false;
	function = get_opcode(((OpExpr *) node)->opno);
	for (size_t i = 0; i < lengthof(operators); i++)
	{
		if (operators[i] == function)
			return true;
	}
	return false;
}

/*
 * null_witness: the column that is NULL where an expression is, so that the
 * expression need not be computed to know.  *never_null when none can be;
 * otherwise, without such a column, the result is the expression.
 */
static Node *
null_witness(const MongoGroup *group, Node *node, bool *never_null)
{
	List	   *arguments = IsA(node, OpExpr) ? ((OpExpr *) node)->args :
		IsA(node, FuncExpr) ? ((FuncExpr *) node)->args : NIL;
	Node	   *witness = NULL;
	ListCell   *cell;

	*never_null = IsA(node, Const) ? !((Const *) node)->constisnull :
		mongo_group_never_null(group, node);
	if (*never_null || !is_arithmetic(node))
		return node;
	foreach(cell, arguments)
	{
		bool		one_never_null;
		Node	   *one = null_witness(group, lfirst(cell), &one_never_null);

		if (one_never_null)
			continue;
		if (witness != NULL && !equal(witness, one))
			return node;
		witness = one;
	}
	*never_null = witness == NULL;
	return witness == NULL ? node : witness;
}

/* squares_are_likely_to_fit: is a variance worth trying? */
static bool
squares_are_likely_to_fit(Node *argument)
{
	MongoDigits digits = mongo_expression_digits(argument);

	digits.integral = 2 * digits.integral + LIKELY_COUNT_DIGITS;
	digits.scale *= 2;
	return digits.known && mongo_digits_fit(digits);
}

/* translate_argument fills in the values. */
static bool
translate_argument(Translation *translation)
{
	MongoScope	scope = translation->group->scope;
	MongoValue *values = translation->values;
	MongoArgumentForm form = translation->recipe->form;
	Node	   *witness;
	bool		never_null;

	if (form == MONGO_ARGUMENT_NONE)
		return true;
	if (translation->recipe->finish >= MONGO_FINISH_VAR_POP &&
		!squares_are_likely_to_fit(translation->argument))
		return false;
	translation->needs_guard = guards_digits(translation);
	if (translation->distinct)
		return set_distinct(translation);

	scope.guarded = translation->needs_guard;
	scope.lazy = translation->filter != NULL;
	if (!mongo_value_of_node(&scope, translation->argument, &values[0]))
		return false;
	witness = null_witness(translation->group, translation->argument, &never_null);
	values[1] = values[0];
	if (witness != translation->argument &&
		!mongo_value_of_node(&scope, witness, &values[1]))
		return false;
	if (never_null)
		values[1].nullable = false;
	/* a later time is no earlier date */
	if (form == MONGO_ARGUMENT_ORDERED && values[0].type != DATEOID)
		return mongo_group_value(&scope, translation->argument, true, &values[0]);
	return form != MONGO_ARGUMENT_DECIMAL || make_decimal(&scope, &values[0]);
}

/* filtered: {$cond: [filter, operand, null]}; null adds nothing to anything */
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

/* add_accumulator gives its number; one that is there already serves again. */
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
	accumulator->operator = row->operator;
	accumulator->operand = filtered(translation,
									mongo_expand_template(operand, translation->values,
														  lengthof(translation->values)));
	accumulator->distinct = translation->distinct;

	foreach(cell, group->accumulators)
	{
		MongoAccumulator *other = lfirst(cell);

		if (strcmp(other->operator, accumulator->operator) == 0 &&
			other->distinct == accumulator->distinct &&
			bson_equal(other->operand, accumulator->operand))
			return foreach_current_index(cell);
	}
	group->accumulators = lappend(group->accumulators, accumulator);
	return list_length(group->accumulators) - 1;
}

/*
 * begin_fit: make values noticed that the argument, a column, does not read.  Those
 * under DISTINCT are noticed as long as they are as the documents have them.
 */
static void
begin_fit(Translation *translation)
{
	static const MongoAccumulatorRow greatest = {"$max", MONGO_RAW_VALUE};
	static const MongoAccumulatorRow least = {"$min", MONGO_RAW_VALUE};

	translation->column = mongo_column_of_node(translation->group->scope.translation->columns,
											   translation->argument, &translation->field);
	if (translation->column == NULL || !translation->values[1].raw)
		return;
	translation->fit = mongo_aggregate_fit(getBaseType(translation->column->vartype),
										   translation->field.bson_type);
	if (translation->fit == NULL)
		return;
	translation->greatest = field_value(psprintf("a%d", add_accumulator(translation, &greatest)));
	if (translation->fit->has_lower)
		translation->least = field_value(psprintf("a%d", add_accumulator(translation, &least)));
}

/* with_fit: the result, or an error where a value does not fit. */
static bson_t *
with_fit(const Translation *translation, bson_t *result)
{
	const MongoAggregateFit *fit = translation->fit;
	MongoValue	value = {.expression = result};

	return mongo_fits_or_raise(fit, translation->column, &translation->field,
							   &translation->greatest,
							   fit->has_lower ? &translation->least : NULL, &value);
}

/*
 * add_result: a field of the $set, made of accumulators.  Without a template it
 * is the first of them.
 */
static const char *
add_result(const Translation *translation, const char *template,
		   const MongoValue *accumulators)
{
	MongoGroup *group = translation->group;
	const char *path = psprintf("r%d", group->nresults++);
	bson_t	   *result = template == NULL ? accumulators[0].expression :
		mongo_expand_template(template, accumulators, MONGO_MAX_ACCUMULATORS + 1);

	mongo_append_expression(group->results, path,
							translation->fit == NULL ? result : with_fit(translation, result));
	return path;
}

/* output_field: a field of the $set, or an accumulator as it is. */
static MongoOutputField *
output_field(const char *path, Oid type)
{
	MongoOutputField *field = palloc(sizeof(MongoOutputField));

	field->path = path;
	field->type = type;
	field->typmod = -1;
	return field;
}

/*
 * add_output: the accumulators' paths are known; @4 of a template is 2^53.
 */
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
	if (template != NULL || translation->fit != NULL)
		path = add_result(translation, template, arguments);

	output->expression = (Expr *) translation->aggregate;
	output->finish = recipe->finish;
	output->zero_if_empty = recipe->zero_if_empty;
	output->fields = list_make1(output_field(path, recipe->finish == MONGO_FINISH_NONE ?
											 translation->aggregate->aggtype :
											 recipe->result_type));
	if (recipe->finish != MONGO_FINISH_NONE)
		output->fields = lappend(output->fields, output_field(paths[1], INT8OID));
	if (recipe->finish > MONGO_FINISH_AVERAGE_OF_INTEGERS)
		output->fields = lappend(output->fields, output_field(paths[2], NUMERICOID));
	group->outputs = lappend(group->outputs, output);

	if (recipe->finish == MONGO_FINISH_NONE)
	{
		MongoComputed *computed = palloc0(sizeof(MongoComputed));

		computed->expression = output->expression;
		computed->path = path;
		computed->normal = recipe->form == MONGO_ARGUMENT_DECIMAL;
		computed->not_null = recipe->zero_if_empty;
		group->computed = lappend(group->computed, computed);
	}
}

/* is_plain: nothing about the call that no row knows. */
static bool
is_plain(const Aggref *aggregate)
{
	return aggregate->aggorder == NIL && aggregate->aggdirectargs == NIL &&
		!aggregate->aggvariadic && aggregate->agglevelsup == 0 &&
		list_length(aggregate->args) <= 1 &&
		aggregate->aggkind == AGGKIND_NORMAL;
}

/* begin_translation: false when the aggregate has no row that suits. */
static bool
begin_translation(Translation *translation, MongoGroup *group, const Aggref *aggregate)
{
	const MongoAggregateRow *row = mongo_aggregate_row(aggregate->aggfnoid);

	memset(translation, 0, sizeof(*translation));
	if (row == NULL || !is_plain(aggregate))
		return false;
	translation->group = group;
	translation->aggregate = aggregate;
	translation->recipe = row->recipe;
	translation->distinct = aggregate->aggdistinct != NIL && !row->recipe->distinct_is_same;
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
	if (translation->values[0].nan && row->with_nan != NULL &&
		!mongo_is_without_nan(group->scope.translation->without_nan, translation->argument))
		translation->recipe = row->with_nan;
	return true;
}

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
	for (int i = 0; i < MONGO_MAX_ACCUMULATORS && recipe->accumulators[i].operator != NULL; i++)
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
