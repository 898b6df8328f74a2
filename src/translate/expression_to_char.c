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

#include "expression_parts.h"

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

/* Characters between patterns that to_char() copies. */
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

/* find_token: the template pattern with which the text begins, or NULL. */
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

static bson_t *
date_to_string(const MongoValue *date, const char *format)
{
	return mongo_expression("{$dateToString: {date: @1, format: @2}}",
							bson_first(date->expression), bson_utf8(format));
}

/* end_part: what has been collected for $dateToString becomes a part of the result. */
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

static bson_t *
concatenated(const List *parts)
{
	BsonArray	operands = bson_array_create();
	ListCell   *cell;

	foreach(cell, parts)
		bson_array_append(&operands, bson_first(lfirst(cell)));
	return mongo_expression("{$concat: @1}", bson_array(operands.bson));
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
	if (!format->has_whole)
		return concatenated(format->parts);
	if (!format->has_year)
		return date_to_string(date, format->whole.data);
	return mongo_expression("{$cond: [{$and: [{$gte: [@1, @2]}, {$lt: [@1, @3]}]}, @4, @5]}",
							bson_first(date->expression),
							bson_date(FIRST_YEAR), bson_date(YEAR_10000),
							bson_first(date_to_string(date, format->whole.data)),
							bson_first(concatenated(format->parts)));
}

bool
mongo_to_char(const MongoCall *call, MongoValue *result)
{
	const Const *constant = lsecond(call->args);
	MongoValue	date;
	MongoValue	variable = mongo_atomic(bson_utf8("$$d"));
	Format		format;

	if (!IsA(constant, Const) || constant->constisnull ||
		!read_format(TextDatumGetCString(constant->constvalue), &variable, &format) ||
		!mongo_normal_value_of_node(call->scope, linitial(call->args), &date))
		return false;
	memset(result, 0, sizeof(*result));
	result->type = TEXTOID;
	result->typmod = -1;
	result->nullable = date.nullable;
	result->expression = mongo_expression("{$let: {vars: {d: @1}, in: @2}}",
										  bson_first(date.expression),
										  bson_first(format_date(&format, &variable)));
	return true;
}
