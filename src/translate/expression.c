/*-------------------------------------------------------------------------
 *
 * expression.c
 *		Translates SQL expressions into aggregation expressions.
 *
 * mongo_value_of_node() translates a node to a value with its properties: raw or normal form,
 * digits, NULL, NaN.  mongo_test_of_node() translates a condition to a boolean that is never null.
 * This file has what all nodes share, from the leaves up to the two entries at its end.
 * Comparisons, arrays and CASE are in expression_compare.c, rows of functions and operators in
 * expression_functions.c and pattern.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "options.h"
#include "convert.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/pg_locale.h"
#include "utils/timestamp.h"

/* ------------------- How many digits a number can have -------------------- */

static MongoDigits
known_digits(int integral, int scale)
{
	return (MongoDigits)
	{
		true, integral, scale
	};
}

/*
 * mongo_digits_fit
 *		Tells whether a Decimal128 can represent every such number.
 */
bool
mongo_digits_fit(MongoDigits digits)
{
	return digits.known && digits.integral + digits.scale <= MONGO_DECIMAL128_MAX_DIGITS;
}

/* Returns the digits that any value of a type can have. */
static MongoDigits
digits_of_type(Oid type, int32 typmod)
{
	const MongoType *facts = mongo_type_facts(type);
	int			precision;
	int			scale;

	if (facts->kind == MONGO_KIND_INTEGER)
		return known_digits(snprintf(NULL, 0, INT64_FORMAT, facts->limit), 0);
	if (facts->kind == MONGO_KIND_NUMERIC &&
		mongo_numeric_typmod(typmod, &precision, &scale) &&
		scale >= 0 && precision <= MONGO_MAX_PRECISION)
		return known_digits(Max(precision - scale, 0), scale);
	return (MongoDigits) {false};
}

/* Returns the digits in the constant's text. */
static MongoDigits
digits_of_constant(const Const *constant)
{
	MongoTypeKind kind = mongo_type_facts(constant->consttype)->kind;
	Oid			output;
	bool		varlena;
	const char *text;
	const char *point;

	if (constant->constisnull)
		return known_digits(0, 0);
	if (kind != MONGO_KIND_INTEGER && kind != MONGO_KIND_NUMERIC)
		return (MongoDigits) {false};
	getTypeOutputInfo(constant->consttype, &output, &varlena);
	text = OidOutputFunctionCall(output, constant->constvalue);
	text += *text == '-';
	point = strchr(text, '.');

	/* not NaN and infinities */
	return (MongoDigits)
	{
		*text >= '0' && *text <= '9', *text == '0' ? 0 : strspn(text, "0123456789"),
			point == NULL ? 0 : strlen(point + 1)
	};
}

/* Returns the digits of a function's result, if the arguments have a and b. */
static MongoDigits
digits_of_result(MongoDigitRule rule, MongoDigits a, MongoDigits b)
{
	if (!a.known || (rule >= MONGO_DIGITS_SUM && !b.known))
		rule = MONGO_DIGITS_UNKNOWN;
	switch (rule)
	{
		case MONGO_DIGITS_SAME:
			return a;
		case MONGO_DIGITS_INTEGER:
			return known_digits(a.integral + 1, 0);
		case MONGO_DIGITS_SUM:
			return known_digits(Max(a.integral, b.integral) + 1, Max(a.scale, b.scale));
		case MONGO_DIGITS_PRODUCT:
			return known_digits(a.integral + b.integral, a.scale + b.scale);
		case MONGO_DIGITS_REMAINDER:
			return known_digits(Min(a.integral, b.integral), Max(a.scale, b.scale));
		default:
			return (MongoDigits) {false};
	}
}

/*-------------------------------------------------------------------------
 * The leaves of aggregation expressions: fields, constants, variables, and values that earlier
 * stages compute.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_is_local_value
 *		Tells whether PostgreSQL can evaluate the node before the scan starts, with the same result
 *		as for each row.
 */
bool
mongo_is_local_value(const MongoTranslation *translation, Node *node)
{
	Bitmapset  *varnos;

	if (IsA(node, Const))
		return true;
	varnos = pull_varnos(NULL, node);
	/* above a $group stage, columns are values that it has computed */
	if (translation->columns == NULL && !bms_is_empty(varnos))
		return false;
	for (MongoColumns *columns = translation->columns; columns; columns = columns->next)
	{
		if (bms_is_member(columns->varno, varnos))
			return false;
	}
	return !contain_volatile_functions(node) &&
		!contain_subplans(node) &&
		!contain_agg_clause(node) &&
		!contain_window_function(node) &&
		!expression_returns_set(node);
}

/* Sets a reference to a field or a variable: a string with a dollar sign. */
static void
set_reference(MongoValue *value, const char *format, const char *name, Node *node)
{
	value->expression = mongo_expression("@1", mongo_utf8(psprintf(format, name)));
	value->type = exprType(node);
	value->typmod = exprTypmod(node);
	value->nullable = true;
	value->nan = mongo_kind_of_type(value->type)->has_nan;
}

/* Finds a value that an earlier stage computes, or a variable of $let. */
static bool
computed_value(const MongoScope *scope, Node *node, MongoValue *value)
{
	foreach_ptr(MongoComputed, computed, scope->translation->computed)
	{
		if ((computed->bound != NULL && scope->scale && !computed->bound_scale) ||
			!equal(computed->expression, node))
			continue;
		if (computed->bound != NULL)
		{
			*value = *computed->bound;
			return true;
		}
		set_reference(value, "$%s", computed->path, node);
		value->raw = !computed->normal;
		value->nullable = !computed->not_null;
		return true;
	}
	return false;
}

/* Tells whether the two types read the same value from a document. */
static bool
is_same_reading(Oid type, Oid relabelled)
{
	return type == relabelled ||
		((type == TEXTOID || type == VARCHAROID) &&
		 (relabelled == TEXTOID || relabelled == VARCHAROID));
}

static bool
value_of_field(MongoTranslation *translation, Node *node, MongoValue *value)
{
	MongoField	field;

	if (mongo_column_of_node(translation->columns, node, &field) == NULL ||
		field.type != field.operator_type ||
		!is_same_reading(field.type, exprType(node)) ||
		!mongo_path_is_addressable(field.path) || mongo_path_has_index(field.path))
		return false;
	set_reference(value, "$%s", field.path, node);
	value->typmod = field.typmod;
	value->raw = true;
	/* a document that is left out must not raise an error before */
	if (field.type_mismatch == MONGO_TYPE_MISMATCH_NULL ||
		(field.type_mismatch == MONGO_TYPE_MISMATCH_SKIP && !translation->skips))
		value->expression = mongo_fitting_value(&field);
	return value->expression != NULL;
}

/*
 * Tells whether PostgreSQL can evaluate the node without any error.  Not an executor parameter: it
 * may be a subquery, which runs when its value is needed.
 */
static bool
cannot_fail(Node *node)
{
	node = mongo_strip_relabelling(node);
	if (IsA(node, Param))
		return ((Param *) node)->paramkind == PARAM_EXTERN;
	return IsA(node, Var) || IsA(node, SQLValueFunction);
}

/*
 * Tells whether every value of the type has a BSON form that is the same value.  Not a timestamp,
 * which has microseconds, or a date: both may be infinite (comparisons handle them, see
 * date_bound()).  Nor an array, which may have several dimensions.
 */
static bool
is_variable_type(Oid type)
{
	return mongo_has_normal_form(type) &&
		type != TIMESTAMPOID && type != TIMESTAMPTZOID && type != DATEOID;
}

/*
 * mongo_variable
 *		Translates a value that is known when the scan starts to a variable of "let".  Returns false
 *		if the value may not be needed and evaluating it may fail.
 */
bool
mongo_variable(const MongoScope *scope, Node *node, MongoValue *value)
{
	MongoTranslation *translation = scope->translation;

	/* bytes of no known encoding may have no form in UTF-8 */
	if (mongo_compares_text(exprType(node)) && GetDatabaseEncoding() == PG_SQL_ASCII)
		return false;
	if ((scope->lazy && !cannot_fail(node)) ||
		mongo_feature_is_disabled(translation->disabled, MONGO_FEATURE_LET))
		return false;
	memset(value, 0, sizeof(*value));
	set_reference(value, "$$%s",
				  mongo_variable_name(list_length(translation->variables)), node);
	translation->variables = lappend(translation->variables, node);
	return true;
}

static bool
local_value(const MongoScope *scope, Node *node, MongoValue *value)
{
	if (IsA(node, Const))
		return mongo_type_lookup(exprType(node)) != NULL &&
			mongo_literal((Const *) node, value);
	return is_variable_type(exprType(node)) && mongo_variable(scope, node, value);
}

/*-------------------------------------------------------------------------
 * Values of each type in aggregation expressions: raw values and their normal form.
 *
 * A column reads several BSON types (docs/types.md).  MongoDB compares numbers of all BSON
 * types by value, but its functions do not treat them all alike: 5.0 as a string is "5", and
 * as a Decimal128 it has 15 digits.
 *-------------------------------------------------------------------------
 */

/* A number becomes a Decimal128 if it is multiplied by the Decimal128 1. */
#define DECIMAL_OF(number, one)	"{$multiply: [" number ", " one "]}"

/*
 * mongo_decimal_of_number
 *		Converts a number of any BSON type to a Decimal128.  Faster than $toDecimal, and raises an
 *		error for Strings, Booleans and Dates, which $toDecimal accepts.
 */
bson_t *
mongo_decimal_of_number(const MongoValue *value)
{
	MongoValue	arguments[2] = {*value, mongo_decimal_value("1")};

	return mongo_expand_template(DECIMAL_OF("@1", "@2"), arguments, lengthof(arguments));
}

/*
 * mongo_rescale
 *		Rescales a number to so many decimals by a template.  The template has the number of
 *		decimals as @2, half a unit of the last one, positive and negative, as @3 and @4, and 1 as
 *		@5; the last three are Decimal128.
 */
bson_t *
mongo_rescale(const char *text, const MongoValue *number, int scale)
{
	MongoValue	arguments[] = {
		*number,
		mongo_argument(mongo_int32(scale)),
		mongo_decimal_value(psprintf("5E-%d", scale + 1)),
		mongo_decimal_value(psprintf("-5E-%d", scale + 1)),
		mongo_decimal_value("1")
	};

	return mongo_expand_template(text, arguments, lengthof(arguments));
}

/*
 * MongoDB converts a Double to a Decimal128 of 15 digits, with trailing zeros that the numeric
 * does not have.  They are trimmed from the text of its mantissa.  Adding 0 makes 1000 of 1E+3,
 * as the numeric has no positive exponent.
 */
#define DOUBLE_SCALE_FORM \
	"{$add: [@3, {$cond: [{$eq: [{$type: @1}, 'double']}, " \
	"{$let: {vars: {s: {$split: [{$toString: {$toDecimal: @1}}, 'E']}}, in: " \
	"{$toDecimal: {$concat: [" \
	"{$cond: [{$regexMatch: {input: {$first: '$$s'}, regex: '[.]'}}, " \
	"{$rtrim: {input: {$rtrim: {input: {$first: '$$s'}, chars: '0'}}, chars: '.'}}, " \
	"{$first: '$$s'}]}, " \
	"{$cond: [{$eq: [{$size: '$$s'}, 1]}, '', {$concat: ['E', {$last: '$$s'}]}]}]}}}}, " \
	DECIMAL_OF("@1", "@2") "]}]}"

/* Converts to a Decimal128, rounded to the column's scale. */
static bool
normalize_numeric(const MongoScope *scope, MongoValue *value)
{
	MongoValue	arguments[3] = {*value, mongo_decimal_value("1"), mongo_decimal_value("0")};
	int			precision;
	int			scale;

	if (mongo_numeric_typmod(value->typmod, &precision, &scale))
	{
		if (scale < 0 || precision > MONGO_MAX_PRECISION)
			return false;
		value->expression = mongo_rescale(MONGO_ROUNDED(DECIMAL_OF("@1", "@5")), value, scale);
	}
	else if (scope->scale)
		value->expression = mongo_expand_template(DOUBLE_SCALE_FORM, arguments,
												  lengthof(arguments));
	else
		value->expression = mongo_decimal_of_number(value);
	return true;
}

/*
 * mongo_normalize
 *		Converts a value to normal form; returns false if its type has none, such as uuid and jsonb.
 *		In normal form, equal values are equal in MongoDB (NaN included), and its functions get the
 *		value that PostgreSQL's would get: a text as the column reads it, a date as its midnight.
 *		If the scope requires the scale, a numeric has as many decimals as in PostgreSQL.
 */
bool
mongo_normalize(const MongoScope *scope, MongoValue *value)
{
	const char *form = mongo_kind_of_type(value->type)->normal_form;

	if (!value->raw)
		return true;
	if (form == NULL || mongo_rounds_timestamp(value->type, value->typmod))
		return false;
	if (form[0] == '\0')
		return true;
	if (value->type == NUMERICOID)
	{
		if (!normalize_numeric(scope, value))
			return false;
	}
	else if (mongo_reading_changes(value->type, value->typmod))
	{
		/* MongoDB counts the same characters only in UTF-8 */
		if (GetDatabaseEncoding() != PG_UTF8)
			return false;
		form = psprintf("{$cond: [{$gt: [@1, null]}, {$substrCP: [%s, 0, %d]}, null]}", form,
						value->typmod - (int) VARHDRSZ);
		value->expression = mongo_expand_template(form, value, 1);
	}
	else
		value->expression = mongo_expand_template(form, value, 1);
	value->raw = false;
	return true;
}

/* Tells whether the constant's BSON form is the same value. */
static bool
has_exact_form(Oid type, Datum value)
{
	bson_decimal128_t decimal;
	bool		exact;

	switch (mongo_type_kind(type))
	{
		case MONGO_KIND_NUMERIC:
			return mongo_numeric_to_decimal128(DatumGetNumeric(value), &decimal);
		case MONGO_KIND_TEXT:
			/* bytes of no known encoding cannot be converted to UTF-8 */
			return GetDatabaseEncoding() != PG_SQL_ASCII;
		case MONGO_KIND_DATE:
			return !DATE_NOT_FINITE(DatumGetDateADT(value));
		case MONGO_KIND_TIMESTAMP:
		case MONGO_KIND_TIMESTAMPTZ:
			if (TIMESTAMP_NOT_FINITE(DatumGetTimestamp(value)))
				return false;
			mongo_timestamp_to_millis(DatumGetTimestamp(value), &exact);
			return exact;
		default:
			return true;
	}
}

/* Tells whether it is an array of such values with one dimension. */
static bool
array_has_exact_form(Oid element, Datum value)
{
	Datum	   *values;
	bool	   *isnull;
	int			count;

	if (ARR_NDIM(DatumGetArrayTypeP(value)) > 1 || !mongo_has_normal_form(element))
		return false;
	count = mongo_array_elements(value, &values, &isnull);
	for (int i = 0; i < count; i++)
	{
		if (!isnull[i] && !has_exact_form(element, values[i]))
			return false;
	}
	return true;
}

/*
 * mongo_literal
 *		Translates a constant; returns false if no BSON value is the same value.
 */
bool
mongo_literal(const Const *constant, MongoValue *value)
{
	Oid			type = constant->consttype;
	Oid			element = get_element_type(type);
	bson_t	   *written = mongo_bson_create();
	bson_value_t first;

	if (!constant->constisnull &&
		!(OidIsValid(element) ? array_has_exact_form(element, constant->constvalue) :
		  has_exact_form(type, constant->constvalue)))
		return false;
	mongo_append_datum(written, "", -1, constant->constvalue, constant->constisnull, type,
					   constant->consttypmod);
	first = mongo_first_value(written);
	*value = (MongoValue)
	{
		written, type, constant->consttypmod, digits_of_constant(constant),
			.nullable = constant->constisnull
	};

	/* Strings may begin with "$", and documents may look like expressions */
	if (first.value_type == BSON_TYPE_UTF8 || first.value_type == BSON_TYPE_DOCUMENT ||
		first.value_type == BSON_TYPE_ARRAY)
		value->expression = mongo_expression("{$literal: @1}", first);
	value->nan = first.value_type == BSON_TYPE_DOUBLE ? isnan(first.value.v_double) :
		type == NUMERICOID && !constant->constisnull &&
		numeric_is_nan(DatumGetNumeric(constant->constvalue));
	return true;
}

/*
 * mongo_bind
 *		Translates a node that others contain more than once.  Until mongo_let(), nodes that equal
 *		it are translated to a variable of $let, if that is shorter.
 *
 * Returns false if it is not shippable.  Does nothing for a value that PostgreSQL evaluates.
 */
bool
mongo_bind(const MongoScope *scope, Node *node, MongoLet *let)
{
	MongoTranslation *translation = scope->translation;
	MongoScope	unguarded = *scope;
	MongoComputed *computed = palloc0(sizeof(MongoComputed));
	MongoValue *value = palloc(sizeof(MongoValue));
	const char *name = psprintf("n%d", list_length(translation->computed));
	bson_value_t expression;

	*let = (MongoLet) {.outer = translation->computed};
	unguarded.guarded = false;
	if (mongo_is_local_value(translation, node))
		return true;
	if (!mongo_value_of_node(&unguarded, node, value))
		return false;
	expression = mongo_first_value(value->expression);
	if (mongo_is_atomic(&expression))
		return true;
	let->variables = mongo_expression("{@1: @2}", mongo_utf8(name), expression);
	value->expression = mongo_expression("@1", mongo_utf8(psprintf("$$%s", name)));
	*computed = (MongoComputed) {.expression = (Expr *) node, .bound = value, .bound_scale = scope->scale};
	translation->computed = lappend(list_copy(let->outer), computed);
	return true;
}

/*
 * mongo_let
 *		Returns the expression with $let around it, if mongo_bind() has made a variable.  NULL of a
 *		NULL expression, as the translation has failed.
 */
bson_t *
mongo_let(MongoTranslation *translation, const MongoLet *let, bson_t *expression)
{
	translation->computed = let->outer;
	return let->variables == NULL || expression == NULL ? expression :
		mongo_expression("{$let: {vars: @1, in: @2}}", mongo_first_value(let->variables),
						 mongo_first_value(expression));
}

/* ----------------- The tables of operators and functions ------------------ */

static const MongoExpressionRow *const families[] =
{
	mongo_number_rows,
	mongo_text_rows,
	mongo_time_rows,
	mongo_array_rows,
	mongo_pattern_rows,
};

/*
 * mongo_find_row
 *		Returns the row of a function in one table, or NULL.
 */
const MongoExpressionRow *
mongo_find_row(const MongoExpressionRow *rows, Oid function)
{
	for (const MongoExpressionRow *row = rows; OidIsValid(row->functions[0]); row++)
	{
		for (const Oid *each = row->functions; OidIsValid(*each); each++)
		{
			if (*each == function)
				return row;
		}
	}
	return NULL;
}

static const MongoExpressionRow *
expression_row(Oid function)
{
	const MongoExpressionRow *row = NULL;

	for (size_t i = 0; i < lengthof(families) && row == NULL; i++)
		row = mongo_find_row(families[i], function);
	return row;
}

/*-------------------------------------------------------------------------
 * Boolean logic in aggregation expressions.
 *
 * MongoDB's $and, $or and $not treat null as false.  So each function translates where a
 * condition is TRUE, or where it is FALSE.  The two are combined to three truth values only if
 * a value is required.
 *-------------------------------------------------------------------------
 */

/* Translating a part twice, for TRUE and for FALSE, counts as so many levels. */
#define DOUBLE_DEPTH	8

/* Joins the tests of the parts for TRUE (wanted) or for FALSE by AND (a conjunction) or OR. */
static bool
test_of_parts(const MongoScope *scope, List *nodes, bool conjunction, bool wanted,
			  MongoValue *value)
{
	BsonArray	tests = mongo_array_create();
	MongoScope	inner = *scope;
	ListCell   *cell;

	foreach(cell, nodes)
	{
		MongoValue	part;

		if (!mongo_test_of_node(&inner, lfirst(cell), wanted, &part))
			return false;
		mongo_array_append(&tests, mongo_first_value(part.expression));
		/* later parts may not be evaluated */
		inner.lazy = true;
	}
	*value = (MongoValue) {.type = BOOLOID,.typmod = -1};
	value->expression = mongo_expression(conjunction ? "{$and: @1}" : "{$or: @1}",
										 mongo_array(tests.bson));
	return true;
}

/* Translates where AND, OR or NOT is TRUE (wanted) or FALSE. */
static bool
test_of_boolean(const MongoScope *scope, BoolExpr *node, bool wanted, MongoValue *value)
{
	if (node->boolop == NOT_EXPR)
		return mongo_test_of_node(scope, linitial(node->args), !wanted, value);
	return test_of_parts(scope, node->args, (node->boolop == AND_EXPR) == wanted,
						 wanted, value);
}

/*
 * Returns a template that tests whether @1 of that type is null, or is not.  In BSON's order null
 * and missing are below all values except MinKey, which some types read.  These read objects, too,
 * for which $gt might use a wildcard index that lacks some.
 */
static const char *
null_template(Oid type_oid, bool is_null)
{
	const MongoType *type = mongo_type_lookup(type_oid);

	if (type != NULL && (type->accepts & MONGO_BSON_BIT(BSON_TYPE_MINKEY)) != 0)
		return is_null ? "{$and: [{$lte: [@1, null]}, {$ne: [@1, min]}]}" :
			"{$or: [{$not: [{$lte: [@1, null]}]}, {$eq: [@1, min]}]}";
	return is_null ? "{$lte: [@1, null]}" : "{$gt: [@1, null]}";
}

/* Translates IS [NOT] NULL, which is never NULL itself. */
static bool
test_of_null(const MongoScope *scope, NullTest *node, bool wanted, MongoValue *value)
{
	bool		is_null = (node->nulltesttype == IS_NULL) == wanted;
	MongoValue	argument;

	if (node->argisrow || !mongo_value_of_node(scope, (Node *) node->arg, &argument))
		return false;
	*value = mongo_result(null_template(argument.type, is_null), &argument, 1, BOOLOID, false);
	return true;
}

/* Translates IS [NOT] TRUE, FALSE or UNKNOWN, which are never NULL. */
static bool
test_of_truth(const MongoScope *scope, BooleanTest *node, bool wanted, MongoValue *value)
{
	BoolTestType test = node->booltesttype;
	bool		negated = test == IS_NOT_TRUE || test == IS_NOT_FALSE || test == IS_NOT_UNKNOWN;
	MongoValue	argument;
	const char *template;

	if (test == IS_UNKNOWN || test == IS_NOT_UNKNOWN)
	{
		if (!mongo_value_of_node(scope, (Node *) node->arg, &argument))
			return false;
		template = negated != wanted ? "{$lte: [@1, null]}" : "{$gt: [@1, null]}";
	}
	else
	{
		if (!mongo_test_of_node(scope, (Node *) node->arg,
								test == IS_TRUE || test == IS_NOT_TRUE, &argument))
			return false;
		template = negated != wanted ? "@1" : "{$not: [@1]}";
	}
	*value = mongo_result(template, &argument, 1, BOOLOID, false);
	return true;
}

/* Translates boolean logic for mongo_test_of_node(). */
static bool
logic_test(const MongoScope *scope, Node *node, bool wanted, MongoValue *value)
{
	MongoValue	truth;
	int			strategy;
	OpExpr	   *operator = (OpExpr *) node;

	switch (nodeTag(node))
	{
		case T_BoolExpr:
			return test_of_boolean(scope, (BoolExpr *) node, wanted, value);
		case T_NullTest:
			return test_of_null(scope, (NullTest *) node, wanted, value);
		case T_BooleanTest:
			return test_of_truth(scope, (BooleanTest *) node, wanted, value);
		case T_DistinctExpr:
			return mongo_distinct_test(scope, (DistinctExpr *) node, wanted, value);
		case T_OpExpr:
			strategy = mongo_comparison_strategy(operator->opno);
			if (strategy == 0)
				break;
			return mongo_compare_test(scope, wanted ? strategy : mongo_negated_strategy(strategy),
									  linitial(operator->args), lsecond(operator->args),
									  operator->inputcollid, value);
		default:
			break;
	}

	if (!mongo_value_of_node(scope, node, &truth))
		return false;
	*value = mongo_result(wanted ? "{$eq: [@1, true]}" : "{$eq: [@1, false]}", &truth, 1,
						  BOOLOID, false);
	return true;
}

/* Translates AND, OR and NOT with three truth values. */
static bool
value_of_boolean(const MongoScope *scope, BoolExpr *node, MongoValue *value)
{
	MongoValue	tests[2];
	bool		done;

	if (!mongo_enter_node(scope->translation, DOUBLE_DEPTH))
		return false;
	done = test_of_boolean(scope, node, true, &tests[0]) &&
		test_of_boolean(scope, node, false, &tests[1]);
	mongo_leave_node(scope->translation, DOUBLE_DEPTH, 0);
	if (!done)
		return false;
	*value = mongo_result("{$cond: [@1, true, {$cond: [@2, false, null]}]}", tests, 2, BOOLOID,
						  true);
	return true;
}

/* ---------- SQL expressions as aggregation expressions, by node ----------- */

/*
 * The deepest nesting of a condition or an expression.  MongoDB accepts 200 levels of documents
 * and arrays in a command, and 100 levels of logic in a filter.  AND and OR each add two levels of
 * documents and arrays.
 */
#define MAX_DEPTH	64

#define MAX_BSON_DEPTH	120

/*
 * How much may be written for one condition, on all levels together, where a node counts as so
 * many bytes at least.  Nodes that are repeated on each level are exponential without a limit.
 */
#define MAX_WORK	(4 * MONGO_LARGEST_MATCH)
#define NODE_WORK	256

/*
 * mongo_enter_node
 *		Begins the translation of a node, which counts as so many levels; mongo_leave_node() ends
 *		it.
 *
 * Returns false if the condition, or the expression, is too deep for MongoDB, or takes too much
 * time and memory.  Then PostgreSQL evaluates it.  Raises 57014 when cancelled.
 */
bool
mongo_enter_node(MongoTranslation *translation, int levels)
{
	CHECK_FOR_INTERRUPTS();
	if (translation->depth == 0)
		translation->work = 0;
	if (translation->depth >= MAX_DEPTH || translation->work > MAX_WORK)
		return false;
	translation->depth += levels;
	translation->work += NODE_WORK;
	return true;
}

/*
 * mongo_leave_node
 *		Ends the translation of a node.  'written' are the bytes of the result.
 */
void
mongo_leave_node(MongoTranslation *translation, int levels, size_t written)
{
	translation->depth -= levels;
	translation->work += written;
}

/* Translates the arguments to the form that the row requires. */
static bool
translate_arguments(const MongoCall *call, MongoValue *arguments)
{
	MongoScope	scope = *call->scope;
	ListCell   *cell;
	int			i = 0;

	scope.guarded = false;
	if (list_length(call->args) > MONGO_MAX_ARGUMENTS)
		return false;
	foreach(cell, call->args)
	{
		MongoValue *argument = &arguments[i++];

		if (!mongo_value_of_node(&scope, lfirst(cell), argument))
			return false;
		if (!(call->row->flags & MONGO_ROW_RAW_ARGUMENTS) &&
			!mongo_normalize(&scope, argument))
			return false;
	}
	return true;
}

/* Translates a call whose row has a template. */
static bool
value_of_template(const MongoCall *call, const char *template, MongoValue *value)
{
	const MongoExpressionRow *row = call->row;
	MongoValue	arguments[MONGO_MAX_ARGUMENTS] = {{0}};
	int			narguments = list_length(call->args);

	if (!translate_arguments(call, arguments))
		return false;
	if (row->flags & MONGO_ROW_NULL_GUARD)
		template = mongo_guard_template(template, arguments, narguments);
	*value = mongo_result(template, arguments, narguments, exprType(call->node), false);
	value->raw = (row->flags & MONGO_ROW_RAW_RESULT) != 0;
	value->digits = digits_of_result(row->digits, arguments[0].digits, arguments[1].digits);
	if (row->digits >= MONGO_DIGITS_SUM && !mongo_digits_fit(value->digits) &&
		!call->scope->guarded)
		return false;
	for (int i = 0; i < narguments; i++)
	{
		value->nullable |= arguments[i].nullable;
		value->nan |= arguments[i].nan;
		if (mongo_compares_text(arguments[i].type) && !mongo_compare_text(call->scope->translation))
			return false;
	}
	value->nan &= mongo_kind_of_type(value->type)->has_nan;

	/* floats have NaN as a result for some infinities and zeros */
	if (value->type == FLOAT8OID)
		value->nan = true;
	return true;
}

static bool
translate_call(const MongoScope *scope, Node *node, Oid function, List *args, MongoValue *value)
{
	MongoCall	call = {
		.scope = scope, .node = node, .args = args,
		.collation = exprInputCollation(node), .row = expression_row(function)
	};

	if (call.row == NULL ||
		((call.row->flags & MONGO_ROW_CHARACTERS) && GetDatabaseEncoding() != PG_UTF8) ||
		((call.row->flags & MONGO_ROW_BYTEWISE) && !mongo_collation_suits(call.collation, false)) ||
		((call.row->flags & MONGO_ROW_C_COLLATION) &&
		 (!OidIsValid(call.collation) || !mongo_ctype_is_c(call.collation))))
		return false;
	if (call.row->translate != NULL)
		return call.row->translate(&call, value);
	return value_of_template(&call, call.row->text, value);
}

static bool
translate_by_tag(const MongoScope *scope, Node *node, MongoValue *value)
{
	OpExpr	   *operator = (OpExpr *) node;
	int			strategy;

	switch (nodeTag(node))
	{
		case T_OpExpr:
			strategy = mongo_comparison_strategy(operator->opno);
			return strategy != 0 ?
				mongo_compare(scope, strategy, linitial(operator->args), lsecond(operator->args),
							  operator->inputcollid, value) :
				translate_call(scope, node, get_opcode(operator->opno), operator->args, value);
		case T_FuncExpr:
			return translate_call(scope, node, ((FuncExpr *) node)->funcid,
								  ((FuncExpr *) node)->args, value);
		case T_RelabelType:
			return is_same_reading(exprType((Node *) ((RelabelType *) node)->arg),
								   exprType(node)) &&
				mongo_value_of_node(scope, (Node *) ((RelabelType *) node)->arg, value);
		case T_BoolExpr:
			return value_of_boolean(scope, (BoolExpr *) node, value);
		case T_NullTest:
		case T_BooleanTest:
		case T_DistinctExpr:
			return mongo_test_of_node(scope, node, true, value);
		case T_CoerceViaIO:
			return mongo_text_cast(scope, (CoerceViaIO *) node, value);
		case T_ScalarArrayOpExpr:
			return mongo_array_comparison(scope, (ScalarArrayOpExpr *) node, value);
		case T_SubscriptingRef:
			return mongo_array_element(scope, (SubscriptingRef *) node, value);
		case T_CaseExpr:
		case T_CoalesceExpr:
		case T_NullIfExpr:
		case T_MinMaxExpr:
			return mongo_choice_of_node(scope, node, value);
		default:
			return false;
	}
}

static bool
translate_node(const MongoScope *scope, Node *node, MongoValue *value)
{
	memset(value, 0, sizeof(*value));
	if (computed_value(scope, node, value) ||
		value_of_field(scope->translation, node, value))
		return true;
	if (mongo_is_local_value(scope->translation, node))
		return local_value(scope, node, value);
	return translate_by_tag(scope, node, value);
}

/* Tells whether members have more levels below them than MongoDB's parser accepts. */
static bool
is_too_deep(bson_iter_t *members, int depth)
{
	bson_iter_t children;

	while (bson_iter_next(members))
	{
		if ((BSON_ITER_HOLDS_DOCUMENT(members) || BSON_ITER_HOLDS_ARRAY(members)) &&
			(depth > MAX_BSON_DEPTH ||
			 (bson_iter_recurse(members, &children) && is_too_deep(&children, depth + 1))))
			return true;
	}
	return false;
}

/*
 * mongo_is_too_deep
 *		Tells whether the document has more levels than MongoDB accepts in a command.  No
 *		translation has.
 */
bool
mongo_is_too_deep(const bson_t *document)
{
	bson_iter_t members;

	/* each level takes at least seven bytes */
	return document->len > 7 * MAX_BSON_DEPTH &&
		(!bson_iter_init(&members, document) || is_too_deep(&members, 0));
}

/*
 * mongo_value_of_node
 *		Translates any node; returns false if it is not shippable.
 */
bool
mongo_value_of_node(const MongoScope *scope, Node *node, MongoValue *value)
{
	bool		result;

	if (!scope->translation->use_expressions || !mongo_enter_node(scope->translation, 1))
		return false;
	result = translate_node(scope, node, value);
	mongo_leave_node(scope->translation, 1, result ? value->expression->len : 0);
	if (result && !value->digits.known)
		value->digits = digits_of_type(value->type, exprTypmod(node));
	return result && value->expression->len <= MONGO_LARGEST_MATCH &&
		(scope->translation->depth > 0 || !mongo_is_too_deep(value->expression));
}

/*
 * mongo_test_of_node
 *		Translates to a boolean, never null, whether 'node' is TRUE (wanted) or FALSE; returns false
 *		if that is not shippable.
 */
bool
mongo_test_of_node(const MongoScope *scope, Node *node, bool wanted, MongoValue *value)
{
	bool		result;

	if (!mongo_enter_node(scope->translation, 1))
		return false;
	result = logic_test(scope, node, wanted, value);
	mongo_leave_node(scope->translation, 1, result ? value->expression->len : 0);
	return result &&
		(scope->translation->depth > 0 || !mongo_is_too_deep(value->expression));
}

/*
 * mongo_normal_value_of_node
 *		Translates any node to a value in normal form; returns false if it is not shippable or has
 *		none.
 */
bool
mongo_normal_value_of_node(const MongoScope *scope, Node *node, MongoValue *value)
{
	return mongo_value_of_node(scope, node, value) && mongo_normalize(scope, value);
}

/*
 * mongo_translate_test
 *		Returns an aggregation expression, a boolean that is never null: whether the condition
 *		'node' is TRUE (wanted) or FALSE (not wanted).  NULL if it is not shippable.
 */
bson_t *
mongo_translate_test(MongoTranslation *translation, Node *node, bool wanted)
{
	MongoScope	scope = {.translation = translation};
	MongoMark	before = mongo_mark(translation);
	MongoValue	value;

	if (mongo_test_of_node(&scope, node, wanted, &value))
		return value.expression;
	mongo_return_to(translation, before);
	return NULL;
}
