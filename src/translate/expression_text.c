/*-------------------------------------------------------------------------
 *
 * expression_text.c
 *		Rows of the functions and operators of texts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "expression_parts.h"
#include "pattern.h"
#include "types.h"

#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"

/* Longer paddings are made by PostgreSQL. */
#define MAX_PADDING	1000

#define GUARD		MONGO_ROW_NULL_GUARD
#define CHARACTERS	(MONGO_ROW_NULL_GUARD | MONGO_ROW_CHARACTERS)
#define BYTEWISE	(MONGO_ROW_NULL_GUARD | MONGO_ROW_BYTEWISE)
#define C_COLLATION	(MONGO_ROW_NULL_GUARD | MONGO_ROW_C_COLLATION)

#define LENGTH		"{$strLenCP: @1}"
#define BYTES		"{$strLenBytes: @1}"

/* From character @2 on, counted from 1; what is before the first is nothing. */
#define FROM		"{$substrCP: [@1, {$max: [{$subtract: [@2, 1]}, 0]}, 2147483647]}"

/* ... and @3 of them; MongoDB raises an error for a negative number as well. */
#define FROM_FOR \
	"{$substrCP: [@1, {$max: [{$subtract: [@2, 1]}, 0]}, " \
	"{$cond: [{$lt: [@3, 0]}, @3, " \
	"{$max: [{$subtract: [{$add: [@2, @3]}, {$max: [@2, 1]}]}, 0]}]}]}"

/* A negative number is one of characters to leave out at the other end. */
#define LEFT \
	"{$substrCP: [@1, 0, {$cond: [{$gte: [@2, 0]}, @2, " \
	"{$max: [{$add: [{$strLenCP: @1}, @2]}, 0]}]}]}"
#define RIGHT \
	"{$substrCP: [@1, {$cond: [{$gte: [@2, 0]}, " \
	"{$max: [{$subtract: [{$strLenCP: @1}, @2]}, 0]}, " \
	"{$min: [{$subtract: [0, @2]}, 2147483647]}]}, 2147483647]}"

#define POSITION	"{$add: [{$indexOfCP: [@1, @2]}, 1]}"
#define REPLACE \
	"{$cond: [{$eq: [@2, '']}, @1, {$replaceAll: {input: @1, find: @2, replacement: @3}}]}"

/*
 * A negative number counts the parts from the end.  $range has nothing in it, but
 * fails for a step of 0, as PostgreSQL does for part 0.
 */
#define SPLIT_PART \
	"{$ifNull: [{$arrayElemAt: [{$cond: [{$eq: [@2, '']}, [@1], {$split: [@1, @2]}]}, " \
	"{$cond: [{$gt: [@3, 0]}, {$subtract: [@3, 1]}, " \
	"{$add: [@3, {$size: {$range: [0, 0, @3]}}]}]}]}, '']}"

#define TRIM(operator)	"{" operator ": {input: @1, chars: ' '}}"
#define TRIM_OF(operator) \
	"{$cond: [{$eq: [@2, '']}, @1, {" operator ": {input: @1, chars: @2}}]}"

static MongoValue
text_value(const char *utf8)
{
	return (MongoValue)
	{
		.expression = mongo_expression("{$literal: @1}", bson_utf8(utf8)),
			.type = TEXTOID, .typmod = -1, .atomic = true
	};
}

/* A call that gives what 'template' says of the values. */
static bool
set_result(const MongoCall *call, const char *template, const MongoValue *values, int nvalues,
		   bool nullable, MongoValue *result)
{
	memset(result, 0, sizeof(*result));
	result->expression = mongo_expand_template(template, values, nvalues);
	result->type = exprType(call->node);
	result->typmod = -1;
	result->nullable = nullable;
	return true;
}

/* LIKE, "~" and their like with a constant pattern */
static bool
translate_pattern(const MongoCall *call, MongoValue *result)
{
	const MongoPatternFunction *function = mongo_pattern_function(call->row->function);
	const char *expression = mongo_pattern_expression(function, lsecond(call->args),
													  call->collation);
	MongoValue	values[2];

	if (expression == NULL ||
		!mongo_normal_value_of_node(call->scope, linitial(call->args), &values[0]))
		return false;
	values[1] = text_value(expression);
	return set_result(call, function->negated ?
					  "{$cond: [{$gt: [@1, null]}, "
					  "{$not: [{$regexMatch: {input: @1, regex: @2, options: 's'}}]}, null]}" :
					  "{$cond: [{$gt: [@1, null]}, "
					  "{$regexMatch: {input: @1, regex: @2, options: 's'}}, null]}",
					  values, 2, values[0].nullable, result);
}

/* padding: 'length' characters of 'fill' over and over, in UTF-8 */
static char *
padding(const char *fill, int length)
{
	StringInfoData result;
	const char *next = fill;

	initStringInfo(&result);
	while (*fill != '\0' && length-- > 0)
	{
		int			bytes;

		if (*next == '\0')
			next = fill;
		bytes = pg_mblen(next);
		appendBinaryStringInfo(&result, next, bytes);
		next += bytes;
	}
	return result.data;
}

/*
 * lpad() and rpad() to a constant length with a constant fill.  The row is for
 * databases in UTF-8, so that PostgreSQL's characters are those of MongoDB.
 */
static bool
translate_pad(const MongoCall *call, MongoValue *result)
{
	const Const *length = lsecond(call->args);
	const Const *fill = list_length(call->args) > 2 ? lthird(call->args) : NULL;
	bool		left = call->row->function == F_LPAD_TEXT_INT4 ||
		call->row->function == F_LPAD_TEXT_INT4_TEXT;
	int32		number;
	MongoValue	values[3];

	if (!IsA(length, Const) || length->constisnull ||
		(fill != NULL && (!IsA(fill, Const) || fill->constisnull)))
		return false;
	number = Max(DatumGetInt32(length->constvalue), 0);
	if (number > MAX_PADDING ||
		!mongo_normal_value_of_node(call->scope, linitial(call->args), &values[0]) ||
		!mongo_literal(length, &values[1]))
		return false;
	values[2] = text_value(padding(fill == NULL ? " " : TextDatumGetCString(fill->constvalue),
								   number));
	if (number == 0)
		return set_result(call, "{$cond: [{$gt: [@1, null]}, '', null]}", values, 3, true, result);
	return set_result(call, left ?
					  "{$cond: [{$gt: [@1, null]}, {$concat: ["
					  "{$substrCP: [@3, 0, {$max: [{$subtract: [@2, {$strLenCP: @1}]}, 0]}]}, "
					  "{$substrCP: [@1, 0, @2]}]}, null]}" :
					  "{$cond: [{$gt: [@1, null]}, {$concat: ["
					  "{$substrCP: [@1, 0, @2]}, "
					  "{$substrCP: [@3, 0, {$max: [{$subtract: [@2, {$strLenCP: @1}]}, 0]}]}]}, "
					  "null]}", values, 3, true, result);
}

/* to_text: the text form of a value in normal form; false when MongoDB's differs. */
static bool
to_text(MongoValue *value)
{
	switch (mongo_type_kind(value->type))
	{
		case MONGO_KIND_TEXT:
			return true;
		case MONGO_KIND_INTEGER:
			value->expression = mongo_expand_template("{$toString: @1}", value, 1);
			break;
		default:
			return false;
	}
	value->type = TEXTOID;
	value->atomic = false;
	value->constant = NULL;
	return true;
}

/* An argument of type "any", which a literal is without a type. */
static bool
any_to_text(const MongoScope *scope, Node *node, MongoValue *value)
{
	const Const *constant = (Const *) node;
	const char *string;

	if (!IsA(node, Const) || constant->consttype != UNKNOWNOID || constant->constisnull)
		return mongo_normal_value_of_node(scope, node, value) && to_text(value);
	string = DatumGetCString(constant->constvalue);
	*value = text_value(pg_server_to_any(string, strlen(string), PG_UTF8));
	return true;
}

/* concat(...), which takes NULL for nothing */
static bool
translate_concat(const MongoCall *call, MongoValue *result)
{
	BsonArray	operands = bson_array_create();
	ListCell   *cell;

	if (((FuncExpr *) call->node)->funcvariadic)
		return false;
	foreach(cell, call->args)
	{
		MongoValue	value;

		if (!any_to_text(call->scope, lfirst(cell), &value))
			return false;
		bson_array_append_template(&operands, "{$ifNull: [@1, '']}",
								   bson_first(value.expression));
	}
	memset(result, 0, sizeof(*result));
	result->type = TEXTOID;
	result->typmod = -1;
	result->expression = mongo_expression("{$concat: @1}", bson_array(operands.bson));
	return true;
}

/* White space that the input functions of integers skip. */
#define SPACE	" \t\n\v\f\r"

/* Casts that go by the text form: an integer to text, and back. */
bool
mongo_text_cast(const MongoScope *scope, CoerceViaIO *node, MongoValue *value)
{
	const MongoType *type = mongo_type_facts(node->resulttype);
	MongoValue	values[2];

	if (!mongo_normal_value_of_node(scope, (Node *) node->arg, &values[0]) || !to_text(&values[0]))
		return false;
	*value = values[0];
	if (node->resulttype == TEXTOID || node->resulttype == VARCHAROID)
		return true;
	if (type->kind != MONGO_KIND_INTEGER)
		return false;
	values[1] = text_value(SPACE);
	value->expression = mongo_expand_template(mongo_is_int64(type) ?
											  "{$toLong: {$trim: {input: @1, chars: @2}}}" :
											  "{$toInt: {$trim: {input: @1, chars: @2}}}",
											  values, 2);
	value->type = node->resulttype;
	value->atomic = false;
	value->constant = NULL;
	return true;
}

const MongoExpressionRow mongo_text_rows[] =
{
	{F_TEXTCAT, .template = "{$concat: [@1, @2]}"},
	{F_CONCAT, .translate = translate_concat},
	{F_TEXTLEN, LENGTH, .flags = CHARACTERS},
	{F_LENGTH_TEXT, LENGTH, .flags = CHARACTERS},
	{F_CHAR_LENGTH_TEXT, LENGTH, .flags = CHARACTERS},
	{F_CHARACTER_LENGTH_TEXT, LENGTH, .flags = CHARACTERS},
	{F_OCTET_LENGTH_TEXT, BYTES, .flags = CHARACTERS},
	{F_LOWER_TEXT, "{$toLower: @1}", .flags = C_COLLATION},
	{F_UPPER_TEXT, "{$toUpper: @1}", .flags = C_COLLATION},
	{F_SUBSTR_TEXT_INT4, FROM, .flags = CHARACTERS},
	{F_SUBSTR_TEXT_INT4_INT4, FROM_FOR, .flags = CHARACTERS},
	{F_SUBSTRING_TEXT_INT4, FROM, .flags = CHARACTERS},
	{F_SUBSTRING_TEXT_INT4_INT4, FROM_FOR, .flags = CHARACTERS},
	{F_LEFT, LEFT, .flags = CHARACTERS},
	{F_RIGHT, RIGHT, .flags = CHARACTERS},
	{F_STRPOS, POSITION, .flags = BYTEWISE | MONGO_ROW_CHARACTERS},
	{F_POSITION_TEXT_TEXT, POSITION, .flags = BYTEWISE | MONGO_ROW_CHARACTERS},
	{F_REPLACE, REPLACE, .flags = BYTEWISE},
	{F_SPLIT_PART, SPLIT_PART, .flags = BYTEWISE},
	{F_STARTS_WITH, "{$eq: [{$indexOfBytes: [@1, @2]}, 0]}", .flags = BYTEWISE},
	{F_BTRIM_TEXT, TRIM("$trim"), .flags = GUARD},
	{F_LTRIM_TEXT, TRIM("$ltrim"), .flags = GUARD},
	{F_RTRIM_TEXT, TRIM("$rtrim"), .flags = GUARD},
	{F_BTRIM_TEXT_TEXT, TRIM_OF("$trim"), .flags = CHARACTERS},
	{F_LTRIM_TEXT_TEXT, TRIM_OF("$ltrim"), .flags = CHARACTERS},
	{F_RTRIM_TEXT_TEXT, TRIM_OF("$rtrim"), .flags = CHARACTERS},
	{F_LPAD_TEXT_INT4, .flags = CHARACTERS, .translate = translate_pad},
	{F_LPAD_TEXT_INT4_TEXT, .flags = CHARACTERS, .translate = translate_pad},
	{F_RPAD_TEXT_INT4, .flags = CHARACTERS, .translate = translate_pad},
	{F_RPAD_TEXT_INT4_TEXT, .flags = CHARACTERS, .translate = translate_pad},
	{F_TEXTLIKE, .flags = BYTEWISE, .translate = translate_pattern},
	{F_TEXTNLIKE, .flags = BYTEWISE, .translate = translate_pattern},
	{F_NAMELIKE, .flags = BYTEWISE, .translate = translate_pattern},
	{F_NAMENLIKE, .flags = BYTEWISE, .translate = translate_pattern},
	{F_TEXTICLIKE, .flags = C_COLLATION, .translate = translate_pattern},
	{F_TEXTICNLIKE, .flags = C_COLLATION, .translate = translate_pattern},
	{F_NAMEICLIKE, .flags = C_COLLATION, .translate = translate_pattern},
	{F_NAMEICNLIKE, .flags = C_COLLATION, .translate = translate_pattern},
	{F_TEXTREGEXEQ, .flags = BYTEWISE, .translate = translate_pattern},
	{F_TEXTREGEXNE, .flags = BYTEWISE, .translate = translate_pattern},
	{F_NAMEREGEXEQ, .flags = BYTEWISE, .translate = translate_pattern},
	{F_NAMEREGEXNE, .flags = BYTEWISE, .translate = translate_pattern},
	{F_TEXTICREGEXEQ, .flags = C_COLLATION, .translate = translate_pattern},
	{F_TEXTICREGEXNE, .flags = C_COLLATION, .translate = translate_pattern},
	{F_NAMEICREGEXEQ, .flags = C_COLLATION, .translate = translate_pattern},
	{F_NAMEICREGEXNE, .flags = C_COLLATION, .translate = translate_pattern},
	{F_TEXT_NAME, "@1", .flags = MONGO_ROW_RAW_ARGUMENTS | MONGO_ROW_RAW_RESULT},
	{F_TEXT_BOOL, .template = "{$toString: @1}"},
	{.function = InvalidOid}
};
