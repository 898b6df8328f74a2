/*-------------------------------------------------------------------------
 *
 * expression_number.c
 *		Rows of the functions and operators of numbers.
 *
 * Integers are added and multiplied in whatever BSON type they are in: a value
 * that PostgreSQL's type holds comes out exactly, and beyond that PostgreSQL
 * raises an error.  int8 needs its normal form, for a Double has 53 bits only.
 *
 * A product of floats is a raw result, so that another one around it does not
 * become one operation of three operands, in another order.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "decimal128.h"
#include "digits.h"
#include "expression_parts.h"

#include "catalog/pg_type_d.h"
#include "utils/fmgroids.h"

#define ADD			"{$add: [@1, @2]}"
#define SUBTRACT	"{$subtract: [@1, @2]}"
#define MULTIPLY	"{$multiply: [@1, @2]}"
#define NEGATE		"{$multiply: [@1, -1]}"
#define REMAINDER	"{$mod: [@1, @2]}"
#define ABSOLUTE	"{$abs: @1}"

/* $add makes 0 of -0 + -0 */
#define ADD_FLOAT	"{$subtract: [@1, {$multiply: [@2, -1]}]}"

/* A numeric has no -0. */
#define NUMERIC_TO_FLOAT "{$add: [{$toDouble: @1}, 0]}"

/* Cut off towards zero; a Double's quotient is good for 53 bits. */
#define DIVIDE_INT4 "{$toLong: {$divide: [@1, @2]}}"
#define DIVIDE_INT8 "{$toLong: {$divide: [{$toDecimal: @1}, {$toDecimal: @2}]}}"

/* PostgreSQL divides NaN by zero */
#define DIVIDE_FLOAT \
	"{$cond: [{$eq: [@1, NaN]}, {$add: [@1, @2]}, {$divide: [@1, @2]}]}"
#define REMAINDER_NUMERIC \
	"{$cond: [{$eq: [@1, NaN]}, {$add: [@1, @2]}, {$mod: [@1, @2]}]}"

/* MongoDB makes NaN of a Decimal128's infinities */
#define UNLESS_INFINITE(operator) \
	"{$cond: [{$lt: [{$abs: @1}, inf]}, {" operator ": @1}, @1]}"

#define SIGN_FLOAT \
	"{$toDouble: {$cond: [{$eq: [@1, NaN]}, 0, {$cmp: [@1, 0]}]}}"
#define SIGN_NUMERIC \
	"{$cond: [{$eq: [@1, NaN]}, @1, {$toDecimal: {$cmp: [@1, 0]}}]}"

/* Halves to the even number, as rint() does. */
#define ROUND_FLOAT "{$cond: [{$lt: [{$abs: @1}, 4503599627370496]}, {$round: @1}, @1]}"
#define ROUND_TO_INTEGER "{$toLong: {$round: @1}}"

/* Halves away from zero; exact for whatever $toLong takes. */
#define NUMERIC_TO_INTEGER \
	"{$toLong: {$add: [@1, {$cond: [{$lt: [@1, 0]}, {$toDecimal: '-0.5'}, {$toDecimal: '0.5'}]}]}}"

#define RAW		MONGO_ROW_RAW_ARGUMENTS | MONGO_ROW_RAW_RESULT
#define DIGITS	MONGO_ROW_DIGITS

/* constant_scale: an argument that is a constant number of decimals. */
static bool
constant_scale(Node *node, int32 *scale)
{
	const Const *constant = (Const *) node;

	if (!IsA(node, Const) || constant->constisnull || constant->consttype != INT4OID)
		return false;
	*scale = DatumGetInt32(constant->constvalue);
	return *scale >= 0 && *scale <= MONGO_DECIMAL128_MAX_DIGITS;
}

/* has_room: do the number's digits leave room for 'scale' decimals and a carry? */
static bool
has_room(Node *node, int scale)
{
	MongoDigits digits = mongo_expression_digits(node);

	digits.integral++;
	digits.scale = Max(digits.scale, scale);
	return mongo_digits_fit(digits);
}

/* The first argument with 'scale' decimals, by a template that has it as @2. */
static bool
rescale(const MongoCall *call, int scale, const char *template, MongoValue *result)
{
	MongoScope	scope = *call->scope;
	MongoValue	values[4];

	scope.guarded = false;
	if (!has_room(linitial(call->args), scale + 1) ||
		!mongo_normal_value_of_node(&scope, linitial(call->args), &values[0]))
		return false;
	values[1] = mongo_atomic(bson_int32(scale));
	values[2] = mongo_decimal_value(psprintf("5E-%d", scale + 1));
	values[3] = mongo_decimal_value(psprintf("-5E-%d", scale + 1));
	*result = values[0];
	result->typmod = -1;
	result->atomic = false;
	result->constant = NULL;
	result->expression = mongo_expand_template(template, values, lengthof(values));
	return true;
}

#define ROUND_NUMERIC "{$trunc: [{$add: [@1, {$cond: [{$lt: [@1, 0]}, @4, @3]}]}, @2]}"

/* round(numeric, scale) */
static bool
translate_round(const MongoCall *call, MongoValue *result)
{
	int32		scale;

	return constant_scale(lsecond(call->args), &scale) &&
		rescale(call, scale, ROUND_NUMERIC, result);
}

/* trunc(numeric, scale) */
static bool
translate_trunc(const MongoCall *call, MongoValue *result)
{
	int32		scale;

	return constant_scale(lsecond(call->args), &scale) &&
		rescale(call, scale, "{$trunc: [@1, @2]}", result);
}

/* a cast to numeric(precision, scale) */
static bool
translate_typmod(const MongoCall *call, MongoValue *result)
{
	const Const *typmod = lsecond(call->args);
	int			precision;
	int			scale;

	return IsA(typmod, Const) && !typmod->constisnull &&
		mongo_numeric_typmod(DatumGetInt32(typmod->constvalue), &precision, &scale) &&
		scale >= 0 && precision <= MONGO_MAX_PRECISION &&
		rescale(call, scale, ROUND_NUMERIC, result);
}

/* A Double becomes a numeric just as a numeric column reads it. */
static bool
translate_float_to_numeric(const MongoCall *call, MongoValue *result)
{
	if (!mongo_normal_value_of_node(call->scope, linitial(call->args), result))
		return false;
	result->type = NUMERICOID;
	result->typmod = -1;
	result->raw = true;
	result->constant = NULL;
	return mongo_normalize(call->scope, result);
}

const MongoExpressionRow mongo_number_rows[] =
{
	/* int2 and int4 */
	{F_INT2PL, ADD, .flags = RAW},
	{F_INT4PL, ADD, .flags = RAW},
	{F_INT24PL, ADD, .flags = RAW},
	{F_INT42PL, ADD, .flags = RAW},
	{F_INT2MI, SUBTRACT, .flags = RAW},
	{F_INT4MI, SUBTRACT, .flags = RAW},
	{F_INT24MI, SUBTRACT, .flags = RAW},
	{F_INT42MI, SUBTRACT, .flags = RAW},
	{F_INT2MUL, MULTIPLY, .flags = RAW},
	{F_INT4MUL, MULTIPLY, .flags = RAW},
	{F_INT24MUL, MULTIPLY, .flags = RAW},
	{F_INT42MUL, MULTIPLY, .flags = RAW},
	{F_INT2DIV, DIVIDE_INT4, .flags = MONGO_ROW_RAW_ARGUMENTS},
	{F_INT4DIV, DIVIDE_INT4, .flags = MONGO_ROW_RAW_ARGUMENTS},
	{F_INT24DIV, DIVIDE_INT4, .flags = MONGO_ROW_RAW_ARGUMENTS},
	{F_INT42DIV, DIVIDE_INT4, .flags = MONGO_ROW_RAW_ARGUMENTS},
	{F_INT2MOD, REMAINDER, .flags = RAW},
	{F_INT4MOD, REMAINDER, .flags = RAW},
	{F_MOD_INT2_INT2, REMAINDER, .flags = RAW},
	{F_MOD_INT4_INT4, REMAINDER, .flags = RAW},
	{F_INT2UM, NEGATE, .flags = RAW},
	{F_INT4UM, NEGATE, .flags = RAW},
	{F_INT2UP, "@1", .flags = RAW},
	{F_INT4UP, "@1", .flags = RAW},
	{F_INT2ABS, ABSOLUTE, .flags = RAW},
	{F_INT4ABS, ABSOLUTE, .flags = RAW},
	{F_ABS_INT2, ABSOLUTE, .flags = RAW},
	{F_ABS_INT4, ABSOLUTE, .flags = RAW},

	/* int8 */
	{F_INT8PL, .template = ADD},
	{F_INT82PL, .template = ADD},
	{F_INT28PL, .template = ADD},
	{F_INT84PL, .template = ADD},
	{F_INT48PL, .template = ADD},
	{F_INT8MI, .template = SUBTRACT},
	{F_INT82MI, .template = SUBTRACT},
	{F_INT28MI, .template = SUBTRACT},
	{F_INT84MI, .template = SUBTRACT},
	{F_INT48MI, .template = SUBTRACT},
	{F_INT8MUL, .template = MULTIPLY},
	{F_INT82MUL, .template = MULTIPLY},
	{F_INT28MUL, .template = MULTIPLY},
	{F_INT84MUL, .template = MULTIPLY},
	{F_INT48MUL, .template = MULTIPLY},
	{F_INT8DIV, .template = DIVIDE_INT8},
	{F_INT82DIV, .template = DIVIDE_INT8},
	{F_INT28DIV, .template = DIVIDE_INT8},
	{F_INT84DIV, .template = DIVIDE_INT8},
	{F_INT48DIV, .template = DIVIDE_INT8},
	{F_INT8MOD, .template = REMAINDER},
	{F_MOD_INT8_INT8, .template = REMAINDER},
	{F_INT8UM, .template = NEGATE},
	{F_INT8UP, "@1", .flags = RAW},
	{F_INT8ABS, .template = ABSOLUTE},
	{F_ABS_INT8, .template = ABSOLUTE},

	/* float8 */
	{F_FLOAT8PL, .template = ADD_FLOAT},
	{F_FLOAT8MI, .template = SUBTRACT},
	{F_FLOAT8MUL, MULTIPLY, .flags = MONGO_ROW_RAW_RESULT},
	{F_FLOAT8DIV, .template = DIVIDE_FLOAT},
	{F_FLOAT8UM, NEGATE, .flags = MONGO_ROW_RAW_RESULT},
	{F_FLOAT8UP, "@1", .flags = RAW},
	{F_FLOAT8ABS, .template = ABSOLUTE},
	{F_ABS_FLOAT8, .template = ABSOLUTE},
	{F_DSQRT, .template = "{$sqrt: @1}"},
	{F_SQRT_FLOAT8, .template = "{$sqrt: @1}"},
	{F_CEIL_FLOAT8, .template = "{$ceil: @1}"},
	{F_CEILING_FLOAT8, .template = "{$ceil: @1}"},
	{F_FLOOR_FLOAT8, .template = "{$floor: @1}"},
	{F_TRUNC_FLOAT8, .template = "{$trunc: @1}"},
	{F_DTRUNC, .template = "{$trunc: @1}"},
	{F_ROUND_FLOAT8, .template = ROUND_FLOAT},
	{F_DROUND, .template = ROUND_FLOAT},
	{F_SIGN_FLOAT8, SIGN_FLOAT, .flags = MONGO_ROW_NULL_GUARD},

	/* numeric */
	{F_NUMERIC_ADD, ADD, .flags = DIGITS},
	{F_NUMERIC_SUB, SUBTRACT, .flags = DIGITS},
	{F_NUMERIC_MUL, MULTIPLY, .flags = DIGITS},
	{F_NUMERIC_MOD, REMAINDER_NUMERIC, .flags = DIGITS},
	{F_MOD_NUMERIC_NUMERIC, REMAINDER_NUMERIC, .flags = DIGITS},
	{F_NUMERIC_UMINUS, .template = NEGATE},
	{F_NUMERIC_UPLUS, .template = "@1"},
	{F_NUMERIC_ABS, .template = ABSOLUTE},
	{F_ABS_NUMERIC, .template = ABSOLUTE},
	{F_CEIL_NUMERIC, .template = UNLESS_INFINITE("$ceil")},
	{F_CEILING_NUMERIC, .template = UNLESS_INFINITE("$ceil")},
	{F_FLOOR_NUMERIC, .template = UNLESS_INFINITE("$floor")},
	{F_SIGN_NUMERIC, SIGN_NUMERIC, .flags = MONGO_ROW_NULL_GUARD},
	{F_ROUND_NUMERIC_INT4, .translate = translate_round},
	{F_TRUNC_NUMERIC_INT4, .translate = translate_trunc},

	/* casts */
	{F_INT4_INT2, "@1", .flags = RAW},
	{F_INT8_INT2, "@1", .flags = RAW},
	{F_INT2_INT4, "@1", .flags = RAW},
	{F_INT8_INT4, "@1", .flags = RAW},
	{F_INT2_INT8, "@1", .flags = RAW},
	{F_INT4_INT8, "@1", .flags = RAW},
	{F_FLOAT8_INT2, .template = "{$toDouble: @1}"},
	{F_FLOAT8_INT4, .template = "{$toDouble: @1}"},
	{F_FLOAT8_INT8, .template = "{$toDouble: @1}"},
	{F_NUMERIC_INT2, .template = "{$toDecimal: @1}"},
	{F_NUMERIC_INT4, .template = "{$toDecimal: @1}"},
	{F_NUMERIC_INT8, .template = "{$toDecimal: @1}"},
	{F_FLOAT8_NUMERIC, .template = NUMERIC_TO_FLOAT},
	{F_INT2_FLOAT8, .template = ROUND_TO_INTEGER},
	{F_INT4_FLOAT8, .template = ROUND_TO_INTEGER},
	{F_INT8_FLOAT8, .template = ROUND_TO_INTEGER},
	{F_INT2_NUMERIC, .template = NUMERIC_TO_INTEGER},
	{F_INT4_NUMERIC, .template = NUMERIC_TO_INTEGER},
	{F_INT8_NUMERIC, .template = NUMERIC_TO_INTEGER},
	{F_NUMERIC_FLOAT8, .translate = translate_float_to_numeric},
	{F_NUMERIC_NUMERIC_INT4, .translate = translate_typmod},
	{F_INT4_BOOL, "{$cond: [@1, 1, 0]}", .flags = MONGO_ROW_NULL_GUARD},
	{F_BOOL_INT4, "{$ne: [@1, 0]}", .flags = MONGO_ROW_NULL_GUARD},

	{.function = InvalidOid}
};
