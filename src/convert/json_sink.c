/*-------------------------------------------------------------------------
 *
 * json_sink.c
 *		Where JSON goes while it is made from BSON: into a text or a jsonb.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "json_sink.h"

#include "encoding.h"
#include "json_span.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

/*
 * The sink that writes text
 */

/* text_separate: the comma between members; values after a key have none. */
static inline void
text_separate(TextSink *sink)
{
	if (sink->need_comma)
	{
		appendStringInfoCharMacro(sink->text, ',');
		if (sink->spaced)
			appendStringInfoCharMacro(sink->text, ' ');
	}
	sink->need_comma = true;
	sink->sink.full = sink->limit > 0 && sink->text->len > sink->limit;
}

/*
 * escape_character: as escape_json() does it; the bytes of characters beyond
 * ASCII stay as they are.
 */
static void
escape_character(StringInfo text, unsigned char character)
{
	static const char *const escapes[] = {
		['\b'] = "\\b",['\f'] = "\\f",['\n'] = "\\n",['\r'] = "\\r",['\t'] = "\\t",
		['"'] = "\\\"",['\\'] = "\\\\"
	};

	if (character < lengthof(escapes) && escapes[character] != NULL)
		appendStringInfoString(text, escapes[character]);
	else
		appendStringInfo(text, "\\u%04x", character);
}

/* reserve_bytes: room for so many bytes and the closing zero, mostly there already. */
static inline void
reserve_bytes(StringInfo text, uint32 length)
{
	if (unlikely((uint32) (text->maxlen - text->len) <= length))
		enlargeStringInfo(text, length);
}

/* put_bytes: where there is room for them. */
static inline void
put_bytes(StringInfo text, const char *bytes, uint32 length)
{
	memcpy(text->data + text->len, bytes, length);
	text->len += length;
}

/* append_escaped: a string with its quotes. */
static void
append_escaped(StringInfo text, const char *string, uint32 length)
{
	uint32		span;

	reserve_bytes(text, length + 2);
	text->data[text->len++] = '"';
	while ((span = mongo_json_span(string, length)) < length)
	{
		put_bytes(text, string, span);
		escape_character(text, (unsigned char) string[span]);
		string += span + 1;
		length -= span + 1;
		reserve_bytes(text, length + 1);
	}
	put_bytes(text, string, length);
	text->data[text->len++] = '"';
	text->data[text->len] = '\0';
}

static void
text_begin(JsonSink *base, bool array)
{
	TextSink   *sink = (TextSink *) base;

	text_separate(sink);
	appendStringInfoCharMacro(sink->text, array ? '[' : '{');
	if (sink->spaced)
		appendStringInfoCharMacro(sink->text, ' ');
	sink->need_comma = false;
}

static void
text_end(JsonSink *base, bool array)
{
	TextSink   *sink = (TextSink *) base;

	/* without a comma to come nothing is in it */
	if (sink->spaced && sink->need_comma)
		appendStringInfoCharMacro(sink->text, ' ');
	appendStringInfoCharMacro(sink->text, array ? ']' : '}');
	sink->need_comma = true;
}

static void
text_key(JsonSink *base, const char *key, uint32 length)
{
	TextSink   *sink = (TextSink *) base;

	text_separate(sink);
	append_escaped(sink->text, key, length);
	appendStringInfoString(sink->text, sink->spaced ? " : " : ":");
	sink->need_comma = false;
}

static void
text_string(JsonSink *base, const char *text, uint32 length)
{
	TextSink   *sink = (TextSink *) base;

	text_separate(sink);
	append_escaped(sink->text, text, length);
}

static void
text_token(TextSink *sink, const char *token, int length)
{
	text_separate(sink);
	appendBinaryStringInfo(sink->text, token, length);
}

static void
text_number(JsonSink *base, const char *number)
{
	text_token((TextSink *) base, number, strlen(number));
}

static void
text_integer(JsonSink *base, int64 number)
{
	char		text[MAXINT8LEN + 1];

	text_token((TextSink *) base, text, pg_lltoa(number, text));
}

static void
text_boolean(JsonSink *base, bool truth)
{
	TextSink   *sink = (TextSink *) base;

	if (truth)
		text_token(sink, "true", 4);
	else
		text_token(sink, "false", 5);
}

static void
text_null(JsonSink *base)
{
	text_token((TextSink *) base, "null", 4);
}

static const JsonSink text_sink = {
	text_begin, text_end, text_key, text_string, text_number, text_integer,
	text_boolean, text_null, .keeps_strings = false
};

/*
 * The sink that builds a jsonb
 */

/* jsonb_push: a scalar, as a member, an element or the whole value. */
static void
jsonb_push(JsonbSink *sink, JsonbValue *value)
{
	if (sink->state == NULL)
		sink->scalar = *value;
	else
		sink->result = pushJsonbValue(&sink->state,
									  sink->state->contVal.type == jbvArray ? WJB_ELEM : WJB_VALUE,
									  value);
}

static void
jsonb_begin(JsonSink *base, bool array)
{
	JsonbSink  *sink = (JsonbSink *) base;

	sink->result = pushJsonbValue(&sink->state,
								  array ? WJB_BEGIN_ARRAY : WJB_BEGIN_OBJECT, NULL);
}

static void
jsonb_end(JsonSink *base, bool array)
{
	JsonbSink  *sink = (JsonbSink *) base;

	sink->result = pushJsonbValue(&sink->state,
								  array ? WJB_END_ARRAY : WJB_END_OBJECT, NULL);
}

/*
 * jsonb_set_string: a string or key in the database's encoding.
 *
 * The characters may stay where they are: they are copied when the jsonb is
 * put together at the end, before the document goes.
 */
static void
jsonb_set_string(JsonbValue *value, const char *text, uint32 length)
{
	value->type = jbvString;
	value->val.string.val = unconstify(char *, mongo_text_to_server(text, &length));
	value->val.string.len = length;
	if (length > JENTRY_OFFLENMASK)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("string too long to represent as jsonb string")));
}

static void
jsonb_key(JsonSink *base, const char *key, uint32 length)
{
	JsonbSink  *sink = (JsonbSink *) base;
	JsonbValue	value;

	jsonb_set_string(&value, key, length);
	sink->result = pushJsonbValue(&sink->state, WJB_KEY, &value);
}

static void
jsonb_string(JsonSink *base, const char *text, uint32 length)
{
	JsonbValue	value;

	jsonb_set_string(&value, text, length);
	jsonb_push((JsonbSink *) base, &value);
}

static void
jsonb_number(JsonSink *base, const char *text)
{
	JsonbValue	value;

	value.type = jbvNumeric;
	value.val.numeric =
		DatumGetNumeric(DirectFunctionCall3(numeric_in, CStringGetDatum(text),
											ObjectIdGetDatum(InvalidOid),
											Int32GetDatum(-1)));
	jsonb_push((JsonbSink *) base, &value);
}

static void
jsonb_integer(JsonSink *base, int64 number)
{
	JsonbValue	value;

	value.type = jbvNumeric;
	value.val.numeric = int64_to_numeric(number);
	jsonb_push((JsonbSink *) base, &value);
}

static void
jsonb_boolean(JsonSink *base, bool truth)
{
	JsonbValue	value;

	value.type = jbvBool;
	value.val.boolean = truth;
	jsonb_push((JsonbSink *) base, &value);
}

static void
jsonb_null(JsonSink *base)
{
	JsonbValue	value;

	value.type = jbvNull;
	jsonb_push((JsonbSink *) base, &value);
}

static const JsonSink jsonb_sink = {
	jsonb_begin, jsonb_end, jsonb_key, jsonb_string, jsonb_number,
	jsonb_integer, jsonb_boolean, jsonb_null, .keeps_strings = true
};

void
mongo_init_text_sink(TextSink *sink, bool spaced, MongoReadContext *context,
					 StringInfo text, int limit)
{
	sink->sink = text_sink;
	sink->sink.canonical = context->canonical_json;
	sink->sink.context = context;
	sink->text = text;
	sink->limit = limit;
	sink->spaced = spaced;
	sink->need_comma = false;
}

void
mongo_init_jsonb_sink(JsonbSink *sink, MongoReadContext *context)
{
	memset(sink, 0, sizeof(JsonbSink));
	sink->sink = jsonb_sink;
	sink->sink.canonical = context->canonical_json;
	sink->sink.context = context;
}
