/*-------------------------------------------------------------------------
 *
 * json_walk.c
 *		Going through a json, jsonb or text, into a sink.
 *
 * A json has been found to be JSON when it became one, so its text is scanned
 * and not parsed: nothing is allocated but for strings with escapes.  Those are
 * left to PostgreSQL's lexer, as is whatever is not JSON after all.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "json_walk.h"

#include "catalog/pg_type.h"
#include "common/jsonapi.h"
#include "encoding.h"
#include "json_span.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonfuncs.h"

/* So many digits are an int64 for certain. */
#define INT64_DIGITS	18

/* Longer numbers are copied to be NUL-terminated. */
#define COMMON_NUMBER_SIZE	64

/* give_string: to the sink's key() or string(), in UTF-8. */
static inline void
give_string(JsonSink *sink, bool is_key, const char *text, uint32 length)
{
	const char *utf8 = text;

	if (GetDatabaseEncoding() != PG_UTF8 && !mongo_is_plain_text(text, length))
	{
		utf8 = pg_server_to_any(text, (int) length, PG_UTF8);
		if (utf8 != text)
			length = strlen(utf8);
	}
	if (is_key)
		sink->key(sink, utf8, length);
	else
		sink->string(sink, utf8, length);
}

/* give_number: a number's text; 'number' need not end with a NUL. */
static void
give_number(JsonSink *sink, const char *number, uint32 length)
{
	char		buffer[COMMON_NUMBER_SIZE];
	bool		negative = number[0] == '-';
	int64		integer = 0;
	uint32		i = negative ? 1 : 0;

	if (length - i <= INT64_DIGITS)
	{
		for (; i < length && number[i] >= '0' && number[i] <= '9'; i++)
			integer = integer * 10 + (number[i] - '0');
		if (i == length)
		{
			sink->integer(sink, negative ? -integer : integer);
			return;
		}
	}
	if (length < sizeof(buffer))
	{
		memcpy(buffer, number, length);
		buffer[length] = '\0';
		sink->number(sink, buffer);
	}
	else
		sink->number(sink, pnstrdup(number, length));
}

/*
 * The text of a json
 */

typedef struct JsonScan
{
	JsonSink   *sink;
	text	   *json;
	const char *next;
	const char *end;
	JsonLexContext *lexer;		/* NULL until there is an escape */
} JsonScan;

static void scan_value(JsonScan *scan);

/* report_bad_json: by PostgreSQL's parser, which says where and what. */
pg_noreturn static void
report_bad_json(JsonScan *scan)
{
	pg_parse_json_or_ereport(mongo_json_lexer(scan->json), &nullSemAction);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("invalid input syntax for type %s", "json")));
}

static inline void
skip_blanks(JsonScan *scan)
{
	while (scan->next < scan->end &&
		   (*scan->next == ' ' || *scan->next == '\n' || *scan->next == '\t' || *scan->next == '\r'))
		scan->next++;
}

/* next_is: the next character that is not blank is this one; goes past it. */
static inline bool
next_is(JsonScan *scan, char character)
{
	skip_blanks(scan);
	if (scan->next >= scan->end || *scan->next != character)
		return false;
	scan->next++;
	return true;
}

static inline void
need(JsonScan *scan, char character)
{
	if (!next_is(scan, character))
		report_bad_json(scan);
}

/* scan_escaped: a string with escapes, from its opening quote on. */
static void
scan_escaped(JsonScan *scan, bool is_key, const char *start)
{
	JsonLexContext *lexer = scan->lexer;

	if (lexer == NULL)
		lexer = scan->lexer = mongo_json_lexer(scan->json);
	lexer->token_terminator = lexer->input + (start - VARDATA_ANY(scan->json));
	if (json_lex(lexer) != JSON_SUCCESS || lexer->token_type != JSON_TOKEN_STRING)
		report_bad_json(scan);
	scan->next = VARDATA_ANY(scan->json) + (lexer->token_terminator - lexer->input);

	/* the lexer's next string takes the place of this one */
	give_string(scan->sink, is_key, pnstrdup(lexer->strval->data, lexer->strval->len),
				lexer->strval->len);
}

static void
scan_string(JsonScan *scan, bool is_key)
{
	const char *start = scan->next;
	uint32		length;

	need(scan, '"');
	start = scan->next;
	length = mongo_json_span(start, scan->end - start);
	if (start + length < scan->end && start[length] == '"')
	{
		scan->next = start + length + 1;
		give_string(scan->sink, is_key, start, length);
	}
	else
		scan_escaped(scan, is_key, start - 1);
}

static void
scan_object(JsonScan *scan)
{
	scan->sink->begin(scan->sink, false);
	if (!next_is(scan, '}'))
	{
		do
		{
			scan_string(scan, true);
			need(scan, ':');
			scan_value(scan);
		} while (next_is(scan, ','));
		need(scan, '}');
	}
	scan->sink->end(scan->sink, false);
}

static void
scan_array(JsonScan *scan)
{
	scan->sink->begin(scan->sink, true);
	if (!next_is(scan, ']'))
	{
		do
			scan_value(scan);
		while (next_is(scan, ','));
		need(scan, ']');
	}
	scan->sink->end(scan->sink, true);
}

/* scan_word: is this the word that comes next?  Goes past it. */
static bool
scan_word(JsonScan *scan, const char *word, uint32 length)
{
	if ((uint32) (scan->end - scan->next) < length || memcmp(scan->next, word, length) != 0)
		return false;
	scan->next += length;
	return true;
}

static void
scan_number(JsonScan *scan)
{
	const char *start = scan->next;

	while (scan->next < scan->end &&
		   ((*scan->next >= '0' && *scan->next <= '9') || *scan->next == '-' ||
			*scan->next == '.' || *scan->next == 'e' || *scan->next == 'E' || *scan->next == '+'))
		scan->next++;
	if (scan->next == start)
		report_bad_json(scan);
	give_number(scan->sink, start, scan->next - start);
}

static void
scan_value(JsonScan *scan)
{
	check_stack_depth();
	CHECK_FOR_INTERRUPTS();

	skip_blanks(scan);
	if (scan->next >= scan->end)
		report_bad_json(scan);
	switch (*scan->next)
	{
		case '{':
			scan->next++;
			scan_object(scan);
			break;
		case '[':
			scan->next++;
			scan_array(scan);
			break;
		case '"':
			scan_string(scan, false);
			break;
		case 't':
		case 'f':
			{
				bool		truth = scan_word(scan, "true", 4);

				if (!truth && !scan_word(scan, "false", 5))
					report_bad_json(scan);
				scan->sink->boolean(scan->sink, truth);
				break;
			}
		case 'n':
			if (!scan_word(scan, "null", 4))
				report_bad_json(scan);
			scan->sink->null(scan->sink);
			break;
		default:
			scan_number(scan);
			break;
	}
}

static void
walk_text(JsonSink *sink, text *json, bool checked)
{
	JsonScan	scan = {
		.sink = sink,
		.json = json,
		.next = VARDATA_ANY(json),
		.end = VARDATA_ANY(json) + VARSIZE_ANY_EXHDR(json)
	};

	if (!checked)
		pg_parse_json_or_ereport(mongo_json_lexer(json), &nullSemAction);
	scan_value(&scan);
	skip_blanks(&scan);
	if (scan.next != scan.end)
		report_bad_json(&scan);
}

/*
 * A jsonb
 */

static void
give_scalar(JsonSink *sink, const JsonbValue *value)
{
	switch (value->type)
	{
		case jbvString:
			give_string(sink, false, value->val.string.val, value->val.string.len);
			break;
		case jbvNumeric:
			{
				char	   *digits =
					DatumGetCString(DirectFunctionCall1(numeric_out,
														NumericGetDatum(value->val.numeric)));

				give_number(sink, digits, strlen(digits));
				pfree(digits);
				break;
			}
		case jbvBool:
			sink->boolean(sink, value->val.boolean);
			break;
		default:
			sink->null(sink);
			break;
	}
}

static void
walk_jsonb(JsonSink *sink, Jsonb *jsonb)
{
	JsonbIterator *iterator = JsonbIteratorInit(&jsonb->root);
	bool		scalar = JB_ROOT_IS_SCALAR(jsonb);
	JsonbValue	value;
	JsonbIteratorToken token;

	while ((token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE)
	{
		CHECK_FOR_INTERRUPTS();
		switch (token)
		{
			case WJB_KEY:
				give_string(sink, true, value.val.string.val, value.val.string.len);
				break;
			case WJB_BEGIN_ARRAY:
			case WJB_BEGIN_OBJECT:
				/* a scalar comes dressed as an array of one */
				if (!scalar)
					sink->begin(sink, token == WJB_BEGIN_ARRAY);
				break;
			case WJB_END_ARRAY:
			case WJB_END_OBJECT:
				if (!scalar)
					sink->end(sink, token == WJB_END_ARRAY);
				break;
			default:
				give_scalar(sink, &value);
				break;
		}
	}
}

void
mongo_walk_json(JsonSink *sink, Datum value, Oid typid)
{
	if (typid == JSONBOID)
		walk_jsonb(sink, DatumGetJsonbP(value));
	else
		walk_text(sink, DatumGetTextPP(value), typid == JSONOID);
}
