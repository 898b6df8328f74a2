/*-------------------------------------------------------------------------
 *
 * expression_number.c
 *		Rows of the functions and operators of numbers.
 *
 * Integers are added and multiplied in whatever BSON type they are in: a value
 * that PostgreSQL's type holds comes out exactly, and beyond that PostgreSQL
 * raises an error.  int8 needs its normal form, for a Double has 53 bits only.
 *
 * A sum or product of floats is a raw result, so that another one around it
 * does not become one operation of three operands, which rounds once.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "expression_rows.h"

#include "utils/fmgroids.h"

#define ADD			"{$add: [@1, @2]}"
#define SUBTRACT	"{$subtract: [@1, @2]}"
#define MULTIPLY	"{$multiply: [@1, @2]}"
#define NEGATE		"{$multiply: [@1, -1]}"
#define REMAINDER	"{$mod: [@1, @2]}"
#define ABSOLUTE	"{$abs: @1}"

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

#define RAW		MONGO_ROW_RAW_ARGUMENTS | MONGO_ROW_RAW_RESULT
#define DIGITS	MONGO_ROW_DIGITS

const MongoExpressionRow mongo_number_rows[] =
{
	/* int2 and int4 */
	{F_INT2PL, ADD, RAW},
	{F_INT4PL, ADD, RAW},
	{F_INT24PL, ADD, RAW},
	{F_INT42PL, ADD, RAW},
	{F_INT2MI, SUBTRACT, RAW},
	{F_INT4MI, SUBTRACT, RAW},
	{F_INT24MI, SUBTRACT, RAW},
	{F_INT42MI, SUBTRACT, RAW},
	{F_INT2MUL, MULTIPLY, RAW},
	{F_INT4MUL, MULTIPLY, RAW},
	{F_INT24MUL, MULTIPLY, RAW},
	{F_INT42MUL, MULTIPLY, RAW},
	{F_INT2DIV, DIVIDE_INT4, MONGO_ROW_RAW_ARGUMENTS},
	{F_INT4DIV, DIVIDE_INT4, MONGO_ROW_RAW_ARGUMENTS},
	{F_INT24DIV, DIVIDE_INT4, MONGO_ROW_RAW_ARGUMENTS},
	{F_INT42DIV, DIVIDE_INT4, MONGO_ROW_RAW_ARGUMENTS},
	{F_INT2MOD, REMAINDER, RAW},
	{F_INT4MOD, REMAINDER, RAW},
	{F_MOD_INT2_INT2, REMAINDER, RAW},
	{F_MOD_INT4_INT4, REMAINDER, RAW},
	{F_INT2UM, NEGATE, RAW},
	{F_INT4UM, NEGATE, RAW},
	{F_INT2UP, "@1", RAW},
	{F_INT4UP, "@1", RAW},
	{F_INT2ABS, ABSOLUTE, RAW},
	{F_INT4ABS, ABSOLUTE, RAW},
	{F_ABS_INT2, ABSOLUTE, RAW},
	{F_ABS_INT4, ABSOLUTE, RAW},

	/* int8 */
	{F_INT8PL, ADD, 0},
	{F_INT82PL, ADD, 0},
	{F_INT28PL, ADD, 0},
	{F_INT84PL, ADD, 0},
	{F_INT48PL, ADD, 0},
	{F_INT8MI, SUBTRACT, 0},
	{F_INT82MI, SUBTRACT, 0},
	{F_INT28MI, SUBTRACT, 0},
	{F_INT84MI, SUBTRACT, 0},
	{F_INT48MI, SUBTRACT, 0},
	{F_INT8MUL, MULTIPLY, 0},
	{F_INT82MUL, MULTIPLY, 0},
	{F_INT28MUL, MULTIPLY, 0},
	{F_INT84MUL, MULTIPLY, 0},
	{F_INT48MUL, MULTIPLY, 0},
	{F_INT8DIV, DIVIDE_INT8, 0},
	{F_INT82DIV, DIVIDE_INT8, 0},
	{F_INT28DIV, DIVIDE_INT8, 0},
	{F_INT84DIV, DIVIDE_INT8, 0},
	{F_INT48DIV, DIVIDE_INT8, 0},
	{F_INT8MOD, REMAINDER, 0},
	{F_MOD_INT8_INT8, REMAINDER, 0},
	{F_INT8UM, NEGATE, 0},
	{F_INT8UP, "@1", RAW},
	{F_INT8ABS, ABSOLUTE, 0},
	{F_ABS_INT8, ABSOLUTE, 0},

	/* float8 */
	{F_FLOAT8PL, ADD, MONGO_ROW_RAW_RESULT},
	{F_FLOAT8MI, SUBTRACT, 0},
	{F_FLOAT8MUL, MULTIPLY, MONGO_ROW_RAW_RESULT},
	{F_FLOAT8DIV, DIVIDE_FLOAT, 0},
	{F_FLOAT8UM, NEGATE, MONGO_ROW_RAW_RESULT},
	{F_FLOAT8UP, "@1", RAW},
	{F_FLOAT8ABS, ABSOLUTE, 0},
	{F_ABS_FLOAT8, ABSOLUTE, 0},
	{F_DSQRT, "{$sqrt: @1}", 0},
	{F_SQRT_FLOAT8, "{$sqrt: @1}", 0},
	{F_CEIL_FLOAT8, "{$ceil: @1}", 0},
	{F_CEILING_FLOAT8, "{$ceil: @1}", 0},
	{F_FLOOR_FLOAT8, "{$floor: @1}", 0},
	{F_TRUNC_FLOAT8, "{$trunc: @1}", 0},

	/* numeric */
	{F_NUMERIC_ADD, ADD, DIGITS},
	{F_NUMERIC_SUB, SUBTRACT, DIGITS},
	{F_NUMERIC_MUL, MULTIPLY, DIGITS},
	{F_NUMERIC_MOD, REMAINDER_NUMERIC, DIGITS},
	{F_MOD_NUMERIC_NUMERIC, REMAINDER_NUMERIC, DIGITS},
	{F_NUMERIC_UMINUS, NEGATE, 0},
	{F_NUMERIC_UPLUS, "@1", 0},
	{F_NUMERIC_ABS, ABSOLUTE, 0},
	{F_ABS_NUMERIC, ABSOLUTE, 0},
	{F_CEIL_NUMERIC, UNLESS_INFINITE("$ceil"), 0},
	{F_CEILING_NUMERIC, UNLESS_INFINITE("$ceil"), 0},
	{F_FLOOR_NUMERIC, UNLESS_INFINITE("$floor"), 0},

	/* casts */
	{F_INT4_INT2, "@1", RAW},
	{F_INT8_INT2, "@1", RAW},
	{F_INT2_INT4, "@1", RAW},
	{F_INT8_INT4, "@1", RAW},
	{F_INT2_INT8, "@1", RAW},
	{F_INT4_INT8, "@1", RAW},
	{F_FLOAT8_INT2, "{$toDouble: @1}", 0},
	{F_FLOAT8_INT4, "{$toDouble: @1}", 0},
	{F_FLOAT8_INT8, "{$toDouble: @1}", 0},
	{F_NUMERIC_INT2, "{$toDecimal: @1}", 0},
	{F_NUMERIC_INT4, "{$toDecimal: @1}", 0},
	{F_NUMERIC_INT8, "{$toDecimal: @1}", 0},
	{F_FLOAT8_NUMERIC, "{$toDouble: @1}", 0},

	{InvalidOid}
};
