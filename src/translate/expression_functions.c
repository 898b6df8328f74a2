/*-------------------------------------------------------------------------
 *
 * expression_functions.c
 *		Translates functions and operators into aggregation expressions.
 *
 * Each function or operator of PostgreSQL is a row of a table, by its OID, with a template or a
 * function of its own.  The tables are those of numbers, texts and times; functions that translate
 * a call stand before the table that names them.  expression.c looks the rows up and applies their
 * flags.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "convert.h"

#include "catalog/pg_type_d.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "nodes/nodeFuncs.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"

static bool translate_to_char(const MongoCall *call, MongoValue *result);

/*-------------------------------------------------------------------------
 * Rows of the functions and operators of numbers.
 *
 * Integers are added and multiplied in any BSON type: a result within the range of
 * PostgreSQL's type is exact, and outside that range PostgreSQL raises an error.  int8 needs
 * its normal form, because a Double has only 53 bits.
 *
 * MongoDB makes one operation of nested sums or products, and computes its constants first.  So
 * a sum or product of bigint, and a product of floats, is a raw result, which is normalized
 * before it becomes an operand, and others are sums in the order of SQL.
 *-------------------------------------------------------------------------
 */

#define ADD			"{$add: [@1, @2]}"
#define SUBTRACT	"{$subtract: [@1, @2]}"
#define MULTIPLY	"{$multiply: [@1, @2]}"
#define NEGATE		"{$multiply: [@1, -1]}"
#define REMAINDER	"{$mod: [@1, @2]}"
#define ABSOLUTE	"{$abs: @1}"

/* Without the two faults of $add: another order, and 0 for -0 + -0. */
#define ADD_IN_ORDER	"{$subtract: [@1, {$multiply: [@2, -1]}]}"

/*
 * Adding 0 turns -0 into 0, as numeric has no -0.  $convert refuses subnormal numbers, which are
 * multiples of 2^-1074, here 2^-537 twice.  Numbers nearer to 0 are errors in PostgreSQL, too.
 */
#define NUMERIC_TO_FLOAT \
	"{$add: [{$convert: {input: @1, to: 'double', onError: " \
	"{$cond: [{$and: [{$lt: [{$abs: @1}, 1]}, {$gt: [{$abs: @1}, {$toDecimal: '2.5E-324'}]}]}, " \
	"{$multiply: [{$toDouble: {$round: {$multiply: [@1, " \
	"{$toDecimal: '2.024022533073106183524953467189174E+323'}]}}}, " \
	"{$pow: [2, -537]}, {$pow: [2, -537]}]}, " \
	"{$toDouble: @1}]}}}, 0]}"

/* Truncates towards zero; the quotient of two int4 is exact enough in the 53 bits of a Double. */
#define DIVIDE_INT4 "{$toLong: {$divide: [@1, @2]}}"
#define DIVIDE_INT8 "{$toLong: {$divide: [{$toDecimal: @1}, {$toDecimal: @2}]}}"

/* in PostgreSQL, NaN divided by zero is NaN */
#define DIVIDE_FLOAT \
	"{$cond: [{$eq: [@1, NaN]}, {$add: [@1, @2]}, {$divide: [@1, @2]}]}"
#define REMAINDER_NUMERIC \
	"{$cond: [{$eq: [@1, NaN]}, {$add: [@1, @2]}, {$mod: [@1, @2]}]}"

/* MongoDB returns NaN for a Decimal128 of more than 34 digits, which is an integer */
#define UNLESS_LARGE(operator) \
	"{$cond: [{$lt: [{$abs: @1}, 5e33]}, {" operator ": @1}, @1]}"

#define SIGN_FLOAT \
	"{$toDouble: {$cond: [{$eq: [@1, NaN]}, 0, {$cmp: [@1, 0]}]}}"
#define SIGN_NUMERIC \
	"{$cond: [{$eq: [@1, NaN]}, @1, {$toDecimal: {$cmp: [@1, 0]}}]}"

/* Rounds halves to even, as rint() does. */
#define ROUND_FLOAT "{$cond: [{$lt: [{$abs: @1}, 4503599627370496]}, {$round: @1}, @1]}"
#define ROUND_TO_INTEGER "{$toLong: {$round: @1}}"

/* Rounds halves away from zero; exact for all values that $toLong accepts. */
#define NUMERIC_TO_INTEGER \
	"{$toLong: {$add: [@1, {$cond: [{$lt: [@1, 0]}, {$toDecimal: '-0.5'}, {$toDecimal: '0.5'}]}]}}"

#define RAW		MONGO_ROW_RAW_ARGUMENTS | MONGO_ROW_RAW_RESULT

/* Translates round() and trunc() to constant decimals, and casts to numeric(p, s). */
static bool
translate_rescale(const MongoCall *call, MongoValue *result)
{
	const Const *constant = lsecond(call->args);
	int32		typmod = exprTypmod(call->node);
	MongoScope	scope = *call->scope;
	MongoDigits needed;
	int			precision;
	int			scale;

	scope.guarded = false;
	if (!IsA(constant, Const) || constant->constisnull)
		return false;
	scale = DatumGetInt32(constant->constvalue);
	if (typmod >= 0 && (!mongo_numeric_typmod(typmod, &precision, &scale) ||
						precision > MONGO_MAX_PRECISION))
		return false;
	if (scale < 0 || scale > MONGO_DECIMAL128_MAX_DIGITS ||
		!mongo_normal_value_of_node(&scope, linitial(call->args), result))
		return false;

	/* digits for adding a half, and for a carry */
	needed = result->digits;
	needed.integral++;
	needed.scale = Max(needed.scale, scale + 1);
	if (!mongo_digits_fit(needed))
		return false;
	result->expression = mongo_rescale(call->row->text, result, scale);
	result->typmod = -1;

	/* the digits of a cast are those of its type */
	result->digits.known = typmod < 0;
	result->digits.integral++;
	result->digits.scale = scale;
	return true;
}

/* Translates the cast of a Double to numeric, as a numeric column reads it. */
static bool
translate_float_to_numeric(const MongoCall *call, MongoValue *result)
{
	if (!mongo_normal_value_of_node(call->scope, linitial(call->args), result))
		return false;
	result->type = NUMERICOID;
	result->typmod = -1;
	result->raw = true;
	return mongo_normalize(call->scope, result);
}

const MongoExpressionRow mongo_number_rows[] =
{
	/* int2 and int4 */
	{{F_INT2PL, F_INT4PL, F_INT24PL, F_INT42PL}, ADD, .flags = RAW},
	{{F_INT2MI, F_INT4MI, F_INT24MI, F_INT42MI}, SUBTRACT, .flags = RAW},
	{{F_INT2MUL, F_INT4MUL, F_INT24MUL, F_INT42MUL}, MULTIPLY, .flags = RAW},
	{{F_INT2DIV, F_INT4DIV, F_INT24DIV, F_INT42DIV}, DIVIDE_INT4, .flags = MONGO_ROW_RAW_ARGUMENTS},
	{{F_INT2MOD, F_INT4MOD, F_MOD_INT2_INT2, F_MOD_INT4_INT4}, REMAINDER, .flags = RAW},
	{{F_INT2UM, F_INT4UM}, NEGATE, .flags = RAW},
	{{F_INT2UP, F_INT4UP, F_INT8UP}, "@1", .flags = RAW},
	{{F_INT2ABS, F_INT4ABS, F_ABS_INT2, F_ABS_INT4}, ABSOLUTE, .flags = RAW},

	/* int8 */
	{{F_INT8PL, F_INT82PL, F_INT28PL, F_INT84PL, F_INT48PL}, ADD, .flags = MONGO_ROW_RAW_RESULT},
	{{F_INT8MI, F_INT82MI, F_INT28MI, F_INT84MI, F_INT48MI}, .text = SUBTRACT},
	{{F_INT8MUL, F_INT82MUL, F_INT28MUL, F_INT84MUL, F_INT48MUL}, MULTIPLY, .flags = MONGO_ROW_RAW_RESULT},
	{{F_INT8DIV, F_INT82DIV, F_INT28DIV, F_INT84DIV, F_INT48DIV}, .text = DIVIDE_INT8},
	{{F_INT8MOD, F_MOD_INT8_INT8}, .text = REMAINDER},
	{{F_INT8UM}, .text = NEGATE},
	{{F_INT8ABS, F_ABS_INT8}, .text = ABSOLUTE},

	/* float8 */
	{{F_FLOAT8PL}, .text = ADD_IN_ORDER},
	{{F_FLOAT8MI}, .text = SUBTRACT},
	{{F_FLOAT8MUL}, MULTIPLY, .flags = MONGO_ROW_RAW_RESULT},
	{{F_FLOAT8DIV}, .text = DIVIDE_FLOAT},
	{{F_FLOAT8UM}, NEGATE, .flags = MONGO_ROW_RAW_RESULT},
	{{F_FLOAT8UP}, "@1", .flags = RAW},
	{{F_FLOAT8ABS, F_ABS_FLOAT8}, .text = ABSOLUTE},
	{{F_DSQRT, F_SQRT_FLOAT8}, .text = "{$sqrt: @1}"},
	{{F_CEIL_FLOAT8, F_CEILING_FLOAT8}, .text = "{$ceil: @1}"},
	{{F_FLOOR_FLOAT8}, .text = "{$floor: @1}"},
	{{F_TRUNC_FLOAT8, F_DTRUNC}, .text = "{$trunc: @1}"},
	{{F_ROUND_FLOAT8, F_DROUND}, .text = ROUND_FLOAT},
	{{F_SIGN_FLOAT8}, SIGN_FLOAT, .flags = MONGO_ROW_NULL_GUARD},

	/* numeric */
	{{F_NUMERIC_ADD}, ADD_IN_ORDER, .digits = MONGO_DIGITS_SUM},
	{{F_NUMERIC_SUB}, SUBTRACT, .digits = MONGO_DIGITS_SUM},
	{{F_NUMERIC_MUL}, MULTIPLY, .digits = MONGO_DIGITS_PRODUCT},
	{{F_NUMERIC_MOD, F_MOD_NUMERIC_NUMERIC}, REMAINDER_NUMERIC, .digits = MONGO_DIGITS_REMAINDER},
	{{F_NUMERIC_UMINUS}, NEGATE, .digits = MONGO_DIGITS_SAME},
	{{F_NUMERIC_UPLUS}, "@1", .digits = MONGO_DIGITS_SAME},
	{{F_NUMERIC_ABS, F_ABS_NUMERIC}, ABSOLUTE, .digits = MONGO_DIGITS_SAME},
	{{F_CEIL_NUMERIC, F_CEILING_NUMERIC}, UNLESS_LARGE("$ceil"), .digits = MONGO_DIGITS_INTEGER},
	{{F_FLOOR_NUMERIC}, UNLESS_LARGE("$floor"), .digits = MONGO_DIGITS_INTEGER},
	{{F_SIGN_NUMERIC}, SIGN_NUMERIC, .flags = MONGO_ROW_NULL_GUARD, .digits = MONGO_DIGITS_INTEGER},
	{{F_ROUND_NUMERIC_INT4, F_NUMERIC_NUMERIC_INT4}, MONGO_ROUNDED("@1"),
	.translate = translate_rescale},
	{{F_TRUNC_NUMERIC_INT4}, "{$trunc: [@1, @2]}", .translate = translate_rescale},

	/* casts */
	{{F_INT4_INT2, F_INT8_INT2, F_INT2_INT4, F_INT8_INT4, F_INT2_INT8, F_INT4_INT8}, "@1",
	.flags = RAW},
	{{F_FLOAT8_INT2, F_FLOAT8_INT4, F_FLOAT8_INT8}, .text = "{$toDouble: @1}"},
	{{F_NUMERIC_INT2, F_NUMERIC_INT4, F_NUMERIC_INT8}, "{$toDecimal: @1}",
	.digits = MONGO_DIGITS_SAME},
	{{F_FLOAT8_NUMERIC}, .text = NUMERIC_TO_FLOAT},
	{{F_INT2_FLOAT8, F_INT4_FLOAT8, F_INT8_FLOAT8}, .text = ROUND_TO_INTEGER},
	{{F_INT2_NUMERIC, F_INT4_NUMERIC, F_INT8_NUMERIC}, .text = NUMERIC_TO_INTEGER},
	{{F_NUMERIC_FLOAT8}, .translate = translate_float_to_numeric},
	{{F_INT4_BOOL}, "{$cond: [@1, 1, 0]}", .flags = MONGO_ROW_NULL_GUARD},
	{{F_BOOL_INT4}, "{$ne: [@1, 0]}", .flags = MONGO_ROW_NULL_GUARD},

	{.functions = {InvalidOid}}
};

/* -------------- Rows of the functions and operators of texts -------------- */

#define GUARD		MONGO_ROW_NULL_GUARD
#define CHARACTERS	(MONGO_ROW_NULL_GUARD | MONGO_ROW_CHARACTERS)
#define BYTEWISE	(MONGO_ROW_NULL_GUARD | MONGO_ROW_BYTEWISE)
#define C_COLLATION	(MONGO_ROW_NULL_GUARD | MONGO_ROW_C_COLLATION)

/* From character @2 on, counted from 1; positions before the first character are empty. */
#define FROM		"{$substrCP: [@1, {$max: [{$subtract: [@2, 1]}, 0]}, 2147483647]}"

/* ... and @3 characters; a negative number raises an error in MongoDB too. */
#define FROM_FOR \
	"{$substrCP: [@1, {$max: [{$subtract: [@2, 1]}, 0]}, " \
	"{$cond: [{$lt: [@3, 0]}, @3, " \
	"{$max: [{$subtract: [{$add: [@2, @3]}, {$max: [@2, 1]}]}, 0]}]}]}"

/* MongoDB may compute the length of a constant NULL before it tests for NULL. */
#define LENGTH		"{$strLenCP: {$ifNull: [@1, '']}}"

/* A negative number counts the characters to omit at the other end. */
#define LEFT \
	"{$substrCP: [@1, 0, {$cond: [{$gte: [@2, 0]}, @2, " \
	"{$max: [{$add: [" LENGTH ", @2]}, 0]}]}]}"
#define RIGHT \
	"{$substrCP: [@1, {$cond: [{$gte: [@2, 0]}, " \
	"{$max: [{$subtract: [" LENGTH ", @2]}, 0]}, " \
	"{$min: [{$subtract: [0, @2]}, 2147483647]}]}, 2147483647]}"

#define POSITION	"{$add: [{$indexOfCP: [@1, @2]}, 1]}"
#define REPLACE \
	"{$cond: [{$eq: [@2, '']}, @1, {$replaceAll: {input: @1, find: @2, replacement: @3}}]}"

/*
 * A negative number counts the parts from the end.  The $range is empty, but fails for a step
 * of 0, as PostgreSQL does for part 0.  It depends on the text, so that MongoDB does not
 * compute it for a constant part before it reads documents.
 */
#define SPLIT_PART \
	"{$ifNull: [{$arrayElemAt: [{$cond: [{$eq: [@2, '']}, [@1], {$split: [@1, @2]}]}, " \
	"{$cond: [{$gt: [@3, 0]}, {$subtract: [@3, 1]}, " \
	"{$add: [@3, {$size: {$range: [0, {$multiply: [0, {$strLenBytes: @1}]}, @3]}}]}]}]}, '']}"

#define TRIM(operator)	"{" operator ": {input: @1, chars: ' '}}"
#define TRIM_OF(operator) \
	"{$cond: [{$eq: [@2, '']}, @1, {" operator ": {input: @1, chars: @2}}]}"

/*
 * mongo_text_value
 *		Returns a constant text, given in UTF-8, as a value.
 */
MongoValue
mongo_text_value(const char *utf8)
{
	return (MongoValue)
	{
		.expression = mongo_expression("{$literal: @1}", mongo_utf8(utf8)),
			.type = TEXTOID, .typmod = -1
	};
}

/* Converts a value in normal form to text; returns false if MongoDB's text differs. */
static bool
to_text(MongoValue *value)
{
	MongoTypeKind kind = mongo_type_kind(value->type);

	if (kind == MONGO_KIND_INTEGER)
		*value = mongo_result("{$toString: @1}", value, 1, TEXTOID, value->nullable);
	return kind == MONGO_KIND_INTEGER || kind == MONGO_KIND_TEXT;
}

/* Translates an argument of type "any", which may be an untyped literal. */
static bool
any_to_text(const MongoScope *scope, Node *node, MongoValue *value)
{
	const Const *constant = (Const *) node;
	const char *string;

	if (!IsA(node, Const) || constant->consttype != UNKNOWNOID || constant->constisnull)
		return mongo_normal_value_of_node(scope, node, value) && to_text(value);
	string = DatumGetCString(constant->constvalue);
	*value = mongo_text_value(pg_server_to_any(string, strlen(string), PG_UTF8));
	return true;
}

/* Translates concat(...), which ignores NULLs. */
static bool
translate_concat(const MongoCall *call, MongoValue *result)
{
	BsonArray	operands = mongo_array_create();
	ListCell   *cell;

	if (((FuncExpr *) call->node)->funcvariadic)
		return false;
	foreach(cell, call->args)
	{
		MongoValue	value;

		if (!any_to_text(call->scope, lfirst(cell), &value))
			return false;
		mongo_array_append_template(&operands, "{$ifNull: [@1, '']}",
									mongo_first_value(value.expression));
	}
	*result = (MongoValue) {.type = TEXTOID,.typmod = -1};
	result->expression = mongo_expression("{$concat: @1}", mongo_array(operands.bson));
	return true;
}

/*
 * mongo_text_cast
 *		Translates a cast through the text form, such as of an integer to text; a part of
 *		mongo_value_of_node().
 */
bool
mongo_text_cast(const MongoScope *scope, CoerceViaIO *node, MongoValue *value)
{
	return (node->resulttype == TEXTOID || node->resulttype == VARCHAROID) &&
		mongo_normal_value_of_node(scope, (Node *) node->arg, value) && to_text(value);
}

const MongoExpressionRow mongo_text_rows[] =
{
	{{F_TEXTCAT}, .text = "{$concat: [@1, @2]}"},
	{{F_CONCAT}, .translate = translate_concat},
	{{F_TEXTLEN, F_LENGTH_TEXT, F_CHAR_LENGTH_TEXT, F_CHARACTER_LENGTH_TEXT}, "{$strLenCP: @1}",
	.flags = CHARACTERS},
	{{F_OCTET_LENGTH_TEXT}, "{$strLenBytes: @1}", .flags = CHARACTERS},
	{{F_LOWER_TEXT}, "{$toLower: @1}", .flags = C_COLLATION},
	{{F_UPPER_TEXT}, "{$toUpper: @1}", .flags = C_COLLATION},
	{{F_SUBSTR_TEXT_INT4, F_SUBSTRING_TEXT_INT4}, FROM, .flags = CHARACTERS},
	{{F_SUBSTR_TEXT_INT4_INT4, F_SUBSTRING_TEXT_INT4_INT4}, FROM_FOR, .flags = CHARACTERS},
	{{F_LEFT}, LEFT, .flags = CHARACTERS},
	{{F_RIGHT}, RIGHT, .flags = CHARACTERS},
	{{F_STRPOS, F_POSITION_TEXT_TEXT}, POSITION, .flags = BYTEWISE | MONGO_ROW_CHARACTERS},
	{{F_REPLACE}, REPLACE, .flags = BYTEWISE},
	{{F_SPLIT_PART}, SPLIT_PART, .flags = BYTEWISE},
	{{F_STARTS_WITH}, "{$eq: [{$indexOfBytes: [@1, @2]}, 0]}", .flags = BYTEWISE},
	{{F_BTRIM_TEXT}, TRIM("$trim"), .flags = GUARD},
	{{F_LTRIM_TEXT}, TRIM("$ltrim"), .flags = GUARD},
	{{F_RTRIM_TEXT}, TRIM("$rtrim"), .flags = GUARD},
	{{F_BTRIM_TEXT_TEXT}, TRIM_OF("$trim"), .flags = CHARACTERS},
	{{F_LTRIM_TEXT_TEXT}, TRIM_OF("$ltrim"), .flags = CHARACTERS},
	{{F_RTRIM_TEXT_TEXT}, TRIM_OF("$rtrim"), .flags = CHARACTERS},
	{{F_TEXT_NAME}, "@1", .flags = RAW},
	{{F_TEXT_BOOL}, .text = "{$toString: @1}"},
	{.functions = {InvalidOid}}
};

/*-------------------------------------------------------------------------
 * Rows of the functions and operators of dates and timestamps.
 *
 * MongoDB computes in UTC, which suits timestamp and date.  An expression that depends on the
 * session's time zone is not shippable, because a plan may outlive the setting.
 *-------------------------------------------------------------------------
 */

/* Expands a template with the one argument that is a date. */
static bool
translate_date(const MongoCall *call, Node *date, const char *template, MongoValue *result)
{
	MongoValue	value;

	if (!mongo_normal_value_of_node(call->scope, date, &value))
		return false;
	*result = mongo_result(template, &value, 1, exprType(call->node), value.nullable);
	return true;
}

/*
 * Sets *offset to the offset of a time zone from UTC in milliseconds, if it is constant.  For other
 * zones, MongoDB has rules of its own.
 */
static bool
fixed_offset(Node *zone, int64 *offset)
{
	const char *name = mongo_constant_word(zone);
	pg_tz	   *rules;
	long int	seconds = 0;

	if (name == NULL)
		return false;
	if (strcmp(name, "gmt") != 0)
	{
		name = mongo_constant_zone(zone);
		rules = name == NULL ? NULL : pg_tzset(name);
		if (rules == NULL || !pg_get_timezone_offset(rules, &seconds))
			return false;
	}
	*offset = seconds * INT64CONST(1000);
	return true;
}

/* Sets *offset to a constant interval of whole seconds, in milliseconds. */
static bool
fixed_interval(Node *zone, int64 *offset)
{
	const Const *constant = (Const *) zone;
	const Interval *interval;

	if (!IsA(zone, Const) || constant->constisnull || constant->consttype != INTERVALOID)
		return false;
	interval = DatumGetIntervalP(constant->constvalue);
	if (interval->month != 0 || interval->day != 0 || interval->time % USECS_PER_SEC != 0)
		return false;
	*offset = interval->time / 1000;
	return true;
}

/* Returns a template for a date that is so many milliseconds later. */
static const char *
later(const char *template, int64 millis)
{
	return millis == 0 ? template :
		psprintf("{$add: [%s, " INT64_FORMAT "]}", template, millis);
}

/* Translates date_trunc(unit, timestamp) and date_trunc(unit, timestamptz, zone). */
static bool
translate_date_trunc(const MongoCall *call, MongoValue *result)
{
	/* MongoDB uses the same names */
	static const char *const units[] = {
		"second", "minute", "hour", "day", "week", "month", "quarter", "year"
	};
	const char *unit = mongo_constant_word(linitial(call->args));
	const char *template;
	int64		offset = 0;

	if (unit == NULL ||
		(list_length(call->args) > 2 && !fixed_offset(lthird(call->args), &offset)))
		return false;
	for (size_t i = 0; i < lengthof(units); i++)
	{
		if (strcmp(units[i], unit) != 0)
			continue;
		template = psprintf("{$dateTrunc: {date: %s, unit: '%s'%s}}", later("@1", offset), unit,
							strcmp(unit, "week") == 0 ? ", startOfWeek: 'monday'" : "");
		return translate_date(call, lsecond(call->args), later(template, -offset), result);
	}
	return false;
}

/* Translates timestamp or timestamptz AT TIME ZONE of a name or an interval. */
static bool
translate_time_zone(const MongoCall *call, MongoValue *result)
{
	bool		is_local = exprType(call->node) == TIMESTAMPTZOID;
	int64		offset;

	return (fixed_offset(linitial(call->args), &offset) ||
			fixed_interval(linitial(call->args), &offset)) &&
		translate_date(call, lsecond(call->args), later("@1", is_local ? -offset : offset),
					   result);
}

/* There is no year 0: the year before 1 is -1. */
#define WITHOUT_ZERO(operator) \
	"{$add: [{" operator ": @1}, {$cond: [{$lte: [{" operator ": @1}, 0]}, -1, 0]}]}"
#define QUARTER "{$toInt: {$divide: [{$add: [{$month: @1}, 2]}, 3]}}"
#define MILLIS_OF_MINUTE "{$add: [{$multiply: [{$second: @1}, 1000]}, {$millisecond: @1}]}"

/*
 * Fields of a date.  extract() returns a numeric, date_part() a double; both are computed from
 * integers, as PostgreSQL does.
 */
typedef struct DateField
{
	const char *name;
	const char *whole;			/* template of an integer, or NULL */
	const char *numeric;		/* otherwise: with the decimals of extract() */
	const char *floating;
	bool		of_time;		/* a date has none */
} DateField;

static const DateField date_fields[] =
{
	{"year", .whole = WITHOUT_ZERO("$year")},
	{"isoyear", .whole = WITHOUT_ZERO("$isoWeekYear")},
	{"quarter", .whole = QUARTER},
	{"month", .whole = "{$month: @1}"},
	{"week", .whole = "{$isoWeek: @1}"},
	{"day", .whole = "{$dayOfMonth: @1}"},
	{"doy", .whole = "{$dayOfYear: @1}"},
	{"dow", .whole = "{$subtract: [{$dayOfWeek: @1}, 1]}"},
	{"isodow", .whole = "{$isoDayOfWeek: @1}"},
	{"hour", "{$hour: @1}", .of_time = true},
	{"minute", "{$minute: @1}", .of_time = true},
	{"second",
		.numeric = "{$multiply: [" MILLIS_OF_MINUTE ", {$toDecimal: '0.001000'}]}",
		.floating = "{$add: [{$second: @1}, {$divide: [{$multiply: [{$millisecond: @1}, 1000]}, 1000000]}]}",
	.of_time = true},
	{"milliseconds",
		.numeric = "{$multiply: [" MILLIS_OF_MINUTE ", {$toDecimal: '1.000'}]}",
		.floating = "{$add: [{$multiply: [{$second: @1}, 1000]}, {$millisecond: @1}]}",
	.of_time = true},
	{"microseconds", "{$multiply: [" MILLIS_OF_MINUTE ", 1000]}", .of_time = true},
	{"epoch",
		.numeric = "{$multiply: [{$toLong: @1}, {$toDecimal: '0.001000'}]}",
	.floating = "{$divide: [{$toDouble: {$multiply: [{$toLong: @1}, 1000]}}, 1000000]}"},
};

/* Translates extract(field from ...) and date_part(field, ...). */
static bool
translate_field(const MongoCall *call, MongoValue *result)
{
	const char *name = mongo_constant_word(linitial(call->args));
	bool		is_numeric = exprType(call->node) == NUMERICOID;
	bool		is_date = exprType(lsecond(call->args)) == DATEOID;

	for (size_t i = 0; name != NULL && i < lengthof(date_fields); i++)
	{
		const DateField *field = &date_fields[i];
		const char *template = is_numeric ? field->numeric : field->floating;

		if (strcmp(field->name, name) != 0 || (is_date && field->of_time))
			continue;
		if (field->whole != NULL)
			template = field->whole;
		else if (is_date)
			template = "{$toLong: {$divide: [{$toLong: @1}, 1000]}}";
		return translate_date(call, lsecond(call->args),
							  psprintf(is_numeric ? "{$toDecimal: %s}" : "{$toDouble: %s}",
									   template), result);
	}
	return false;
}

/* Adds months to the midnight, because $dateAdd drops the milliseconds of dates before 1970. */
#define MONTHS \
	"{$add: [{$dateAdd: {startDate: {$dateTrunc: {date: @1, unit: 'day'}}, " \
	"unit: 'month', amount: " INT64_FORMAT "}}, " \
	"{$subtract: [@1, {$dateTrunc: {date: @1, unit: 'day'}}]}]}"

/* Returns @1 plus (sign 1) or minus (-1) a constant interval, or NULL. */
static const char *
interval_template(const Const *constant, int sign, bool in_session_zone)
{
	const Interval *interval;
	const char *moved = "@1";
	int64		millis;

	if (!IsA(constant, Const) || constant->constisnull)
		return NULL;
	interval = DatumGetIntervalP(constant->constvalue);
	if (interval->time % 1000 != 0 ||
		(in_session_zone && (interval->month != 0 || interval->day != 0)))
		return NULL;
	if (interval->month != 0)
		moved = psprintf(MONTHS, (int64) sign * interval->month);
	millis = sign * (interval->day * INT64CONST(86400000) + interval->time / 1000);
	return later(moved, millis);
}

/* Flag of a row: the interval is subtracted. */
#define SUBTRACTS	0x100

/* Translates timestamp or date + interval; timestamptz + interval without days and months. */
static bool
translate_interval(const MongoCall *call, MongoValue *result)
{
	const char *template = interval_template(lsecond(call->args),
											 call->row->flags & SUBTRACTS ? -1 : 1,
											 exprType(call->node) == TIMESTAMPTZOID);

	return template != NULL && translate_date(call, linitial(call->args), template, result);
}

const MongoExpressionRow mongo_time_rows[] =
{
	{{F_DATE_TRUNC_TEXT_TIMESTAMP, F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT},
	.translate = translate_date_trunc},
	{{F_TIMEZONE_TEXT_TIMESTAMP, F_TIMEZONE_TEXT_TIMESTAMPTZ, F_TIMEZONE_INTERVAL_TIMESTAMP,
	F_TIMEZONE_INTERVAL_TIMESTAMPTZ}, .translate = translate_time_zone},
	{{F_EXTRACT_TEXT_TIMESTAMP, F_EXTRACT_TEXT_DATE, F_DATE_PART_TEXT_TIMESTAMP},
	.translate = translate_field},
	{{F_TO_CHAR_TIMESTAMP_TEXT}, .translate = translate_to_char},
	{{F_TIMESTAMP_PL_INTERVAL, F_TIMESTAMPTZ_PL_INTERVAL, F_DATE_PL_INTERVAL},
	.translate = translate_interval},
	{{F_TIMESTAMP_MI_INTERVAL, F_TIMESTAMPTZ_MI_INTERVAL, F_DATE_MI_INTERVAL},
	.flags = SUBTRACTS, .translate = translate_interval},
	{{F_DATE_PLI}, .text = "{$add: [@1, {$multiply: [@2, 86400000]}]}"},
	{{F_DATE_MII}, .text = "{$subtract: [@1, {$multiply: [@2, 86400000]}]}"},
	{{F_DATE_MI}, .text = "{$toLong: {$divide: [{$subtract: [@1, @2]}, 86400000]}}"},
	{{F_TIMESTAMP_DATE}, .text = "@1"},
	{{F_DATE_TIMESTAMP}, "@1", .flags = MONGO_ROW_RAW_RESULT},
	{.functions = {InvalidOid}}
};

/*-------------------------------------------------------------------------
 * to_char(timestamp, format) as $dateToString.
 *
 * Only patterns with the same digits in both are supported, alone or with separators; a format with
 * anything else is not shippable.  $dateToString lacks quarters, and accepts only years from 0 to
 * 9999.  Outside that range PostgreSQL still counts: 44 BC is '0044', 12345 is '12345'.
 *
 * https://www.postgresql.org/docs/current/functions-formatting.html
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/dateToString/
 *-------------------------------------------------------------------------
 */

/* The year as PostgreSQL counts years, in four digits or more. */
#define YEAR_OF_ERA \
	"{$let: {vars: {y: {$cond: [{$lte: [{$year: @1}, 0]}, " \
	"{$subtract: [1, {$year: @1}]}, {$year: @1}]}}, in: " \
	"{$cond: [{$and: [{$gt: ['$$y', 0]}, {$lt: ['$$y', 1000]}]}, " \
	"{$substrBytes: [{$toString: {$add: [10000, '$$y']}}, 1, 4]}, {$toString: '$$y'}]}}}"

typedef struct Token
{
	const char *upper;
	const char *lower;
	const char *format;			/* of $dateToString, or a letter to be
								 * replaced */
	const char *longer;			/* characters that would make it another
								 * pattern */
} Token;

static const Token tokens[] =
{
	{"YYYY", "yyyy", "%Y", "Yy"},
	{"MM", "mm", "%m", ""},
	{"DD", "dd", "%d", "Dd"},
	{"HH24", "hh24", "%H", ""},
	{"MI", "mi", "%M", ""},
	{"SS", "ss", "%S", "Ss"},
	{"Q", "q", "Q", ""},
};

/* Characters between patterns that to_char() copies. */
#define SEPARATORS	"-/.:, _"

/* Returns the template pattern with which the text begins, or NULL. */
static const Token *
find_token(const char *text)
{
	for (size_t i = 0; i < lengthof(tokens); i++)
	{
		size_t		length = strlen(tokens[i].upper);

		if ((strncmp(text, tokens[i].upper, length) == 0 ||
			 strncmp(text, tokens[i].lower, length) == 0) &&
			(text[length] == '\0' || strchr(tokens[i].longer, text[length]) == NULL))
			return &tokens[i];
	}
	return NULL;
}

/* Converts to a format of $dateToString; returns false if it contains an unsupported pattern. */
static bool
read_format(const char *text, StringInfo format)
{
	initStringInfo(format);
	while (*text != '\0')
	{
		const Token *token = find_token(text);

		if (token != NULL)
		{
			appendStringInfoString(format, token->format);
			text += strlen(token->upper);
		}
		else if (strchr(SEPARATORS, *text) != NULL)
			appendStringInfoChar(format, *text++);
		else
			return false;
	}
	return format->len > 0;
}

/*
 * @1 is the date, @2 the format, and @3 the format with a letter in place of the year.  @4 and
 * @5 are the beginnings of the years 1 and 10000; dates outside are rare.
 */
#define FORMATTED		"{$dateToString: {date: @1, format: @2}}"
#define WITH_YEAR \
	"{$cond: [{$and: [{$gte: [@1, @4]}, {$lt: [@1, @5]}]}, " FORMATTED ", " \
	"{$replaceAll: {input: {$dateToString: {date: @1, format: @3}}, find: 'Y', " \
	"replacement: " YEAR_OF_ERA "}}]}"
#define WITH_QUARTER	"{$replaceAll: {input: %s, find: 'Q', replacement: {$toString: " QUARTER "}}}"

#define FIRST_YEAR		INT64CONST(-62135596800000)
#define YEAR_10000		INT64CONST(253402300800000)

/* Translates to_char(timestamp, format), the format constant numbers and separators. */
static bool
translate_to_char(const MongoCall *call, MongoValue *result)
{
	const Const *constant = lsecond(call->args);
	MongoValue	arguments[5];
	StringInfoData format;
	const char *template;
	char	   *year;

	if (!IsA(constant, Const) || constant->constisnull ||
		!read_format(TextDatumGetCString(constant->constvalue), &format) ||
		!mongo_normal_value_of_node(call->scope, linitial(call->args), &arguments[0]))
		return false;
	arguments[1] = mongo_argument(mongo_utf8(format.data));
	template = strstr(format.data, "%Y") != NULL ? WITH_YEAR : FORMATTED;
	while ((year = strstr(format.data, "%Y")) != NULL)
		memmove(year, year + 1, strlen(year));
	arguments[2] = mongo_argument(mongo_utf8(format.data));
	arguments[3] = mongo_argument(mongo_date(FIRST_YEAR));
	arguments[4] = mongo_argument(mongo_date(YEAR_10000));
	if (strchr(format.data, 'Q') != NULL)
		template = psprintf(WITH_QUARTER, template);
	*result = mongo_result(template, arguments, lengthof(arguments), TEXTOID,
						   arguments[0].nullable);
	return true;
}
