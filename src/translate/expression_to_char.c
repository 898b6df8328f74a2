/*-------------------------------------------------------------------------
 *
 * expression_to_char.c
 *		to_char(timestamp, format) as $dateToString.
 *
 * Of the many patterns here are those that give the same digits in both, alone
 * or with separators; a format with anything else is not sent.  $dateToString
 * has no quarters, and knows years from 0 to 9999 only, where PostgreSQL counts on:
 * 44 BC is '0044', 12345 is '12345'.
 *
 * https://www.postgresql.org/docs/current/functions-formatting.html
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/dateToString/
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_memory.h"
#include "expression_rows.h"

#include "catalog/pg_type_d.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"

/* Its year, as PostgreSQL counts them, in four digits or more. */
#define YEAR_OF_ERA \
	"{$let: {vars: {y: {$cond: [{$lte: [{$year: @1}, 0]}, " \
	"{$subtract: [1, {$year: @1}]}, {$year: @1}]}}, in: " \
	"{$cond: [{$and: [{$gt: ['$$y', 0]}, {$lt: ['$$y', 1000]}]}, " \
	"{$substrBytes: [{$toString: {$add: [10000, '$$y']}}, 1, 4]}, {$toString: '$$y'}]}}}"

#define QUARTER		"{$toString: {$toInt: {$divide: [{$add: [{$month: @1}, 2]}, 3]}}}"

typedef struct Token
{
	const char *upper;
	const char *lower;
	const char *format;			/* of $dateToString; NULL: there is none */
	const char *template;		/* of a text, where that may not do */
	const char *longer;			/* after it, it would be another pattern */
} Token;

static const Token tokens[] =
{
	{"YYYY", "yyyy", "%Y", YEAR_OF_ERA, "Yy"},
	{"MM", "mm", "%m", NULL, ""},
	{"DD", "dd", "%d", NULL, "Dd"},
	{"HH24", "hh24", "%H", NULL, ""},
	{"MI", "mi", "%M", NULL, ""},
	{"SS", "ss", "%S", NULL, "Ss"},
	{"Q", "q", NULL, QUARTER, ""},
};

/* What stands between patterns and is given as it is. */
#define SEPARATORS	"-/.:, _"

/* A format as it is read: of $dateToString alone, and in parts that all years have. */
typedef struct Format
{
	StringInfoData whole;
	bool		has_whole;
	StringInfoData part;		/* of $dateToString, since the last of 'parts' */
	List	   *parts;			/* bson_t *, texts to be put together */
	bool		has_year;
} Format;

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

/* date_to_string: {$dateToString: {date: @1, format: format}} */
static bson_t *
date_to_string(const MongoValue *date, const char *format)
{
	MongoValue	arguments[2] = {*date, {.expression = bson_create_in(CurrentMemoryContext)}};

	BSON_APPEND_UTF8(arguments[1].expression, "", format);
	return mongo_expand_template("{$dateToString: {date: @1, format: @2}}", arguments,
								 lengthof(arguments));
}

static void
end_part(Format *format, const MongoValue *date)
{
	if (format->part.len > 0)
		format->parts = lappend(format->parts, date_to_string(date, format->part.data));
	resetStringInfo(&format->part);
}

/* read_format: false when there is something in it that is not known here. */
static bool
read_format(const char *text, const MongoValue *date, Format *format)
{
	initStringInfo(&format->whole);
	initStringInfo(&format->part);
	format->has_whole = true;
	format->has_year = false;
	format->parts = NIL;
	while (*text != '\0')
	{
		const Token *token = find_token(text);

		if (token == NULL && strchr(SEPARATORS, *text) == NULL)
			return false;
		if (token == NULL)
		{
			appendStringInfoChar(&format->whole, *text);
			appendStringInfoChar(&format->part, *text++);
			continue;
		}
		text += strlen(token->upper);
		if (token->format == NULL)
			format->has_whole = false;
		else
			appendStringInfoString(&format->whole, token->format);
		if (token->template == NULL)
		{
			appendStringInfoString(&format->part, token->format);
			continue;
		}
		end_part(format, date);
		format->parts = lappend(format->parts, mongo_expand_template(token->template, date, 1));
		format->has_year |= token->format != NULL;
	}
	end_part(format, date);
	return format->parts != NIL;
}

/* concatenated: {$concat: parts} */
static bson_t *
concatenated(const List *parts)
{
	bson_t	   *result = bson_create_in(CurrentMemoryContext);
	bson_t		operator;
	bson_t		operands;
	ListCell   *cell;

	BSON_APPEND_DOCUMENT_BEGIN(result, "", &operator);
	BSON_APPEND_ARRAY_BEGIN(&operator, "$concat", &operands);
	foreach(cell, parts)
		mongo_append_expression(&operands, psprintf("%d", foreach_current_index(cell)),
								lfirst(cell));
	bson_append_array_end(&operator, &operands);
	bson_append_document_end(result, &operator);
	return result;
}

/* A Date in milliseconds, as a value. */
static MongoValue
date_value(int64 millis)
{
	MongoValue	value = {.expression = bson_create_in(CurrentMemoryContext), .atomic = true};

	BSON_APPEND_DATE_TIME(value.expression, "", millis);
	return value;
}

/* The beginnings of the years 1 and 10000. */
#define FIRST_YEAR		INT64CONST(-62135596800000)
#define YEAR_10000		INT64CONST(253402300800000)

/*
 * format_date: 'date' is atomic.  Years out of MongoDB's range are rare, so that most
 * documents go through $dateToString alone.
 */
static bson_t *
format_date(const Format *format, const MongoValue *date)
{
	MongoValue	arguments[5];

	if (!format->has_whole)
		return concatenated(format->parts);
	if (!format->has_year)
		return date_to_string(date, format->whole.data);
	arguments[0] = *date;
	arguments[1] = date_value(FIRST_YEAR);
	arguments[2] = date_value(YEAR_10000);
	arguments[3] = (MongoValue)
	{
		.expression = date_to_string(date, format->whole.data)
	};
	arguments[4] = (MongoValue)
	{
		.expression = concatenated(format->parts)
	};
	return mongo_expand_template("{$cond: [{$and: [{$gte: [@1, @2]}, {$lt: [@1, @3]}]}, @4, @5]}",
								 arguments, lengthof(arguments));
}

bool
mongo_to_char(const MongoCall *call, MongoValue *result)
{
	const Const *constant = lsecond(call->args);
	MongoValue	date;
	MongoValue	variable = {.expression = bson_create_in(CurrentMemoryContext), .atomic = true};
	MongoValue	arguments[2];
	Format		format;

	BSON_APPEND_UTF8(variable.expression, "", "$$d");
	if (!IsA(constant, Const) || constant->constisnull ||
		!read_format(TextDatumGetCString(constant->constvalue), &variable, &format) ||
		!mongo_normal_value_of_node(call->scope, linitial(call->args), &date))
		return false;
	memset(result, 0, sizeof(*result));
	result->type = TEXTOID;
	result->typmod = -1;
	result->nullable = date.nullable;
	arguments[0] = date;
	arguments[1] = (MongoValue)
	{
		.expression = format_date(&format, &variable)
	};
	result->expression = mongo_expand_template("{$let: {vars: {d: @1}, in: @2}}", arguments,
											   lengthof(arguments));
	return true;
}
