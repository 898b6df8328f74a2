/*-------------------------------------------------------------------------
 *
 * json_read.c
 *		Reading Extended JSON.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"
#include "common.h"

#include <ctype.h>
#include <math.h>

#include "catalog/pg_type.h"
#include "common/base64.h"
#include "common/jsonapi.h"
#include "common/shortest_dec.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonfuncs.h"

/*-------------------------------------------------------------------------
 * Going through a json, jsonb or text, into a sink.
 *
 * A json has been found to be JSON when it became one, so its text is scanned
 * and not parsed: nothing is allocated but for strings with escapes.  Those are
 * left to PostgreSQL's lexer, as is whatever is not JSON after all.
 *-------------------------------------------------------------------------
 */

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
	json_put_text(sink, is_key ? JSON_KEY : JSON_STRING, utf8, length);
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
			json_put_integer(sink, JSON_INTEGER, negative ? -integer : integer);
			return;
		}
	}
	if (length < sizeof(buffer))
	{
		memcpy(buffer, number, length);
		buffer[length] = '\0';
		json_put_text(sink, JSON_NUMBER, buffer, length);
	}
	else
		json_put_text(sink, JSON_NUMBER, pnstrdup(number, length), length);
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
	json_put(scan->sink, JSON_BEGIN_OBJECT);
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
	json_put(scan->sink, JSON_END_OBJECT);
}

static void
scan_array(JsonScan *scan)
{
	json_put(scan->sink, JSON_BEGIN_ARRAY);
	if (!next_is(scan, ']'))
	{
		do
			scan_value(scan);
		while (next_is(scan, ','));
		need(scan, ']');
	}
	json_put(scan->sink, JSON_END_ARRAY);
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
				json_put_integer(scan->sink, JSON_BOOLEAN, truth);
				break;
			}
		case 'n':
			if (!scan_word(scan, "null", 4))
				report_bad_json(scan);
			json_put(scan->sink, JSON_NULL);
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
			json_put_integer(sink, JSON_BOOLEAN, value->val.boolean);
			break;
		default:
			json_put(sink, JSON_NULL);
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
					json_put(sink, token == WJB_BEGIN_ARRAY ? JSON_BEGIN_ARRAY : JSON_BEGIN_OBJECT);
				break;
			case WJB_END_ARRAY:
			case WJB_END_OBJECT:
				if (!scalar)
					json_put(sink, token == WJB_END_ARRAY ? JSON_END_ARRAY : JSON_END_OBJECT);
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

/*-------------------------------------------------------------------------
 * BSON as json, jsonb and text: Extended JSON v2.
 *
 * One walk over a value says what its JSON is; a sink makes that a text or a
 * jsonb.  Relaxed by default: numbers that JSON can hold are plain, the other
 * BSON types are wrappers ({"$oid": ...}).
 *-------------------------------------------------------------------------
 */

#define SUBTYPE_TEXT_SIZE		3
#define MILLIS_PER_SECOND		1000
#define INT64_LIMIT				9223372036854775808.0	/* 2^63 */
#define YEAR_10000_MILLIS		INT64CONST(253402300800000)

static bool walk_value(JsonSink *sink, const bson_iter_t *iter);

/* put_key: a key that is known to be plain ASCII. */
static inline void
put_key(JsonSink *sink, const char *key)
{
	json_put_text(sink, JSON_KEY, key, strlen(key));
}

/* put_text: likewise a string, which may be in a buffer of the caller's. */
static inline void
put_text(JsonSink *sink, const char *text)
{
	json_put_text(sink, JSON_STRING, sink->keeps_strings ? pstrdup(text) : text, strlen(text));
}

/* open_wrapper: {key: */
static inline void
open_wrapper(JsonSink *sink, const char *key)
{
	json_put(sink, JSON_BEGIN_OBJECT);
	put_key(sink, key);
}

/* put_wrapper: {key: text} of plain ASCII. */
static void
put_wrapper(JsonSink *sink, const char *key, const char *text)
{
	open_wrapper(sink, key);
	put_text(sink, text);
	json_put(sink, JSON_END_OBJECT);
}

/* put_string: a string from the document, which is checked. */
static bool
put_string(JsonSink *sink, const bson_iter_t *iter, const char *text,
		   uint32 length)
{
	if (!mongo_text_is_valid(text, length))
		return mongo_mismatch(sink->context, MONGO_MISMATCH_CHARACTERS, iter,
							  mongo_text_remark(text, length));
	json_put_text(sink, JSON_STRING, text, length);
	return true;
}

/* walk_container: a document or array from an iterator at its start. */
static bool
walk_container(JsonSink *sink, bson_iter_t *iter, uint32 length, bool array)
{
	check_stack_depth();

	json_put(sink, array ? JSON_BEGIN_ARRAY : JSON_BEGIN_OBJECT);
	while (bson_iter_next(iter))
	{
		CHECK_FOR_INTERRUPTS();
		if (sink->full)
			return true;

		if (!array)
		{
			const char *key = bson_iter_key(iter);
			uint32		key_length = bson_iter_key_len(iter);

			if (!mongo_text_is_valid(key, key_length))
				return mongo_mismatch(sink->context, MONGO_MISMATCH_CHARACTERS,
									  iter, mongo_text_remark(key, key_length));
			json_put_text(sink, JSON_KEY, key, key_length);
		}
		if (!walk_value(sink, iter))
			return false;
	}
	mongo_iter_check_end(iter, length);
	json_put(sink, array ? JSON_END_ARRAY : JSON_END_OBJECT);
	return true;
}

/* integer_text: an integer's digits in a static buffer. */
static const char *
integer_text(int64 number)
{
	static char text[MAXINT8LEN + 1];

	pg_lltoa(number, text);
	return text;
}

static Datum
numeric_of_text(const char *text)
{
	return DirectFunctionCall3(numeric_in, CStringGetDatum(text),
							   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
}

/*
 * double_text
 *		The shortest digits that give this finite double back.
 *
 * With a point or an exponent, by which a double can be told from an integer when
 * it is written back; "1.25e+18" as "1250000000000000000.0", as jsonb forgets how a
 * number was written but for its decimal places.
 */
static const char *
double_text(double number)
{
	static char text[DOUBLE_SHORTEST_DECIMAL_LEN + 2];

	double_to_shortest_decimal_buf(number, text);
	if (fabs(number) < INT64_LIMIT && rint(number) == number)
	{
		if (strchr(text, 'e') != NULL)
			strcpy(text, DatumGetCString(DirectFunctionCall1(numeric_out, numeric_of_text(text))));
		strcat(text, ".0");
	}
	return text;
}

static void
put_double(JsonSink *sink, double number)
{
	const char *text;

	if (isnan(number) || isinf(number))
		put_wrapper(sink, "$numberDouble", isnan(number) ? "NaN" :
					number > 0 ? "Infinity" : "-Infinity");
	else
	{
		text = double_text(number);
		if (sink->canonical)
			put_wrapper(sink, "$numberDouble", text);
		else
			json_put_text(sink, JSON_NUMBER, text, strlen(text));
	}
}

/* put_integer: 'key' is that of its wrapper in canonical JSON. */
static void
put_integer(JsonSink *sink, const char *key, int64 number)
{
	if (sink->canonical)
		put_wrapper(sink, key, integer_text(number));
	else
		json_put_integer(sink, JSON_INTEGER, number);
}

/* put_digits: a number of at least so many digits, and what follows it. */
static inline char *
put_digits(char *text, uint32 number, int width, char after)
{
	text = pg_ultostr_zeropad(text, number, width);
	*text = after;
	return text + 1;
}

/* iso_date_text: "2020-01-31T12:30:00.123Z" for years 1970 to 9999. */
static const char *
iso_date_text(int64 millis, char *text)
{
	int			year,
				month,
				day;
	int			rest = (int) (millis % MONGO_MILLIS_PER_DAY);
	int			seconds = rest / MILLIS_PER_SECOND;
	char	   *end = text;

	j2date((int) (millis / MONGO_MILLIS_PER_DAY) + UNIX_EPOCH_JDATE,
		   &year, &month, &day);
	end = put_digits(end, year, 4, '-');
	end = put_digits(end, month, 2, '-');
	end = put_digits(end, day, 2, 'T');
	end = put_digits(end, seconds / SECS_PER_HOUR, 2, ':');
	end = put_digits(end, seconds / SECS_PER_MINUTE % MINS_PER_HOUR, 2, ':');
	if (rest % MILLIS_PER_SECOND == 0)
		end = put_digits(end, seconds % SECS_PER_MINUTE, 2, 'Z');
	else
	{
		end = put_digits(end, seconds % SECS_PER_MINUTE, 2, '.');
		end = put_digits(end, rest % MILLIS_PER_SECOND, 3, 'Z');
	}
	*end = '\0';
	return text;
}

static void
put_date(JsonSink *sink, int64 millis)
{
	char		text[64];

	if (!sink->canonical && millis >= 0 && millis < YEAR_10000_MILLIS)
	{
		put_wrapper(sink, "$date", iso_date_text(millis, text));
		return;
	}
	open_wrapper(sink, "$date");
	put_wrapper(sink, "$numberLong", integer_text(millis));
	json_put(sink, JSON_END_OBJECT);
}

static void
put_binary(JsonSink *sink, const bson_iter_t *iter)
{
	const uint8_t *bytes;
	uint32_t	length;
	bson_subtype_t subtype;
	char		subtype_text[SUBTYPE_TEXT_SIZE];
	char	   *base64;
	int			base64_size;
	int			base64_length;

	bson_iter_binary(iter, &subtype, &length, &bytes);
	base64_size = pg_b64_enc_len(length) + 1;
	base64 = palloc(base64_size);
	base64_length = mongo_base64_encode(bytes, length, base64, base64_size - 1);
	base64[base64_length] = '\0';
	snprintf(subtype_text, sizeof(subtype_text), "%02x", (unsigned int) subtype & 0xff);

	open_wrapper(sink, "$binary");
	open_wrapper(sink, "base64");
	json_put_text(sink, JSON_STRING, base64, base64_length);
	put_key(sink, "subType");
	put_text(sink, subtype_text);
	json_put(sink, JSON_END_OBJECT);
	json_put(sink, JSON_END_OBJECT);
}

static bool
walk_code_with_scope(JsonSink *sink, const bson_iter_t *iter)
{
	uint32_t	length;
	uint32_t	scope_length;
	const uint8_t *scope;
	const char *code = bson_iter_codewscope(iter, &length, &scope_length, &scope);
	bson_iter_t scope_iter;

	/* libbson does not look at these two */
	if (code[length] != '\0' ||
		!bson_iter_init_from_data(&scope_iter, scope, scope_length))
		mongo_report_bad_bson();

	open_wrapper(sink, "$code");
	if (!put_string(sink, iter, code, length))
		return false;
	put_key(sink, "$scope");
	if (!walk_container(sink, &scope_iter, scope_length, false))
		return false;
	json_put(sink, JSON_END_OBJECT);
	return true;
}

/* walk_rare: a value of another type, as the document that its wrapper is. */
static bool
walk_rare(JsonSink *sink, const bson_iter_t *iter)
{
	bool		canonical = sink->canonical;
	const bson_t *wrapper;
	bson_iter_t members;
	const char *text;
	const char *options;
	const bson_oid_t *oid;
	uint32_t	length;
	uint32_t	seconds;
	uint32_t	increment;
	bool		fits;

	switch (bson_iter_type(iter))
	{
		case BSON_TYPE_REGEX:
			text = bson_iter_regex(iter, &options);
			wrapper = bson_from_template("{$regularExpression: {pattern: @1, options: @2}}",
										 bson_utf8(text), bson_utf8(options));
			break;
		case BSON_TYPE_DBPOINTER:
			bson_iter_dbpointer(iter, &length, &text, &oid);
			wrapper = bson_from_template("{$dbPointer: {$ref: @1, $id: @2}}",
										 bson_utf8(text), bson_oid(oid));
			break;
		case BSON_TYPE_CODE:
			text = bson_iter_code(iter, &length);
			wrapper = bson_from_template("{$code: @1}", bson_utf8_sized(text, length));
			break;
		case BSON_TYPE_SYMBOL:
			text = bson_iter_symbol(iter, &length);
			wrapper = bson_from_template("{$symbol: @1}", bson_utf8_sized(text, length));
			break;
		case BSON_TYPE_TIMESTAMP:
			bson_iter_timestamp(iter, &seconds, &increment);
			wrapper = bson_from_template("{$timestamp: {t: @1, i: @2}}",
										 bson_int64(seconds), bson_int64(increment));
			break;
		case BSON_TYPE_UNDEFINED:
			wrapper = bson_from_template("{$undefined: true}");
			break;
		case BSON_TYPE_MINKEY:
			wrapper = bson_from_template("{$minKey: 1}");
			break;
		default:
			wrapper = bson_from_template("{$maxKey: 1}");
			break;
	}
	if (!bson_iter_init(&members, wrapper))
		mongo_report_bad_bson();

	/* its numbers are plain ones, and it is this value that may not fit */
	sink->canonical = false;
	fits = walk_container(sink, &members, wrapper->len, false);
	sink->canonical = canonical;
	if (!fits)
		sink->context->value = *iter;
	return fits;
}

static bool
walk_value(JsonSink *sink, const bson_iter_t *iter)
{
	bson_iter_t child;
	bson_decimal128_t decimal;
	char		digits[BSON_DECIMAL128_STRING];
	const char *text;
	uint32_t	length;

	switch (bson_iter_type(iter))
	{
		case BSON_TYPE_DOUBLE:
			put_double(sink, bson_iter_double(iter));
			return true;
		case BSON_TYPE_UTF8:
			text = bson_iter_utf8(iter, &length);
			return put_string(sink, iter, text, length);
		case BSON_TYPE_DOCUMENT:
		case BSON_TYPE_ARRAY:
			length = mongo_iter_descend(iter, &child);
			return walk_container(sink, &child, length, BSON_ITER_HOLDS_ARRAY(iter));
		case BSON_TYPE_BINARY:
			put_binary(sink, iter);
			return true;
		case BSON_TYPE_OID:
			mongo_objectid_to_text(bson_iter_oid(iter)->bytes, digits);
			put_wrapper(sink, "$oid", digits);
			return true;
		case BSON_TYPE_BOOL:
			json_put_integer(sink, JSON_BOOLEAN, bson_iter_bool(iter));
			return true;
		case BSON_TYPE_DATE_TIME:
			put_date(sink, bson_iter_date_time(iter));
			return true;
		case BSON_TYPE_NULL:
			json_put(sink, JSON_NULL);
			return true;
		case BSON_TYPE_CODEWSCOPE:
			return walk_code_with_scope(sink, iter);
		case BSON_TYPE_INT32:
			put_integer(sink, "$numberInt", bson_iter_int32(iter));
			return true;
		case BSON_TYPE_INT64:
			put_integer(sink, "$numberLong", bson_iter_int64(iter));
			return true;
		case BSON_TYPE_DECIMAL128:
			bson_iter_decimal128(iter, &decimal);
			mongo_decimal128_to_text(&decimal, digits);
			put_wrapper(sink, "$numberDecimal", digits);
			return true;
		default:
			return walk_rare(sink, iter);
	}
}

/*
 * What the rest of the extension calls
 */

/* text_datum: the collected UTF-8 as a json or text in the database's encoding. */
static Datum
text_datum(StringInfo json)
{
	uint32		length = json->len - VARHDRSZ;
	const char *utf8 = json->data + VARHDRSZ;
	const char *converted = mongo_text_to_server(utf8, &length);
	text	   *value;

	if (converted == utf8)
	{
		SET_VARSIZE(json->data, json->len);
		return PointerGetDatum(json->data);
	}
	value = cstring_to_text_with_len(converted, length);
	pfree(json->data);
	return PointerGetDatum(value);
}

/* walk: a value, or the whole document under the iterator where its length is given. */
static bool
walk(JsonSink *sink, const bson_iter_t *iter, uint32 document_length)
{
	bson_iter_t members = *iter;

	return document_length > 0 ? walk_container(sink, &members, document_length, false) :
		walk_value(sink, iter);
}

/* make_text: as a json or text. */
static bool
make_text(MongoReadContext *context, const bson_iter_t *iter, uint32 document_length,
		  Datum *value)
{
	uint32		length = document_length > 0 ? document_length : iter->next_off - iter->off;
	StringInfoData text;
	TextSink	sink;

	/*
	 * a buffer that becomes a Datum by itself; JSON is longer than the BSON
	 * that it is made from, but seldom by more than a half
	 */
	initStringInfo(&text);
	enlargeStringInfo(&text, VARHDRSZ + length + length / 2);
	text.len = VARHDRSZ;
	mongo_init_text_sink(&sink, false, context, &text, 0);
	if (!walk(&sink.sink, iter, document_length))
		return false;
	*value = text_datum(&text);
	return true;
}

static bool
make_jsonb(MongoReadContext *context, const bson_iter_t *iter, uint32 document_length,
		   Datum *value)
{
	JsonbSink	sink;

	mongo_init_jsonb_sink(&sink, context);
	if (!walk(&sink.sink, iter, document_length))
		return false;
	*value = JsonbPGetDatum(JsonbValueToJsonb(sink.result ? sink.result : &sink.scalar));
	return true;
}

bool
mongo_read_json(MONGO_READ_ARGS)
{
	return make_text(context, iter, 0, value);
}

bool
mongo_read_jsonb(MONGO_READ_ARGS)
{
	return make_jsonb(context, iter, 0, value);
}

bool
mongo_document_to_datum(MongoReadContext *context, const uint8_t *data,
						uint32 length, Oid typid, Datum *value)
{
	bson_iter_t iter;

	if (!bson_iter_init_from_data(&iter, data, length))
		mongo_report_bad_bson();
	return typid == JSONBOID ? make_jsonb(context, &iter, length, value) :
		make_text(context, &iter, length, value);
}

/* show: in the database's encoding, palloc'd; or NULL. */
static char *
show(const bson_iter_t *iter, uint32 document_length, bool spaced, int limit)
{
	MongoReadContext context = {0};
	StringInfoData text;
	TextSink	sink;
	uint32		length;

	initStringInfo(&text);
	mongo_init_text_sink(&sink, spaced, &context, &text, limit);
	if (!walk(&sink.sink, iter, document_length))
		return NULL;
	length = text.len;
	return unconstify(char *, mongo_text_to_server(text.data, &length));
}

char *
mongo_json_show_value(const bson_iter_t *iter, bool spaced, int limit)
{
	char	   *text = show(iter, 0, spaced, limit);

	return text != NULL && limit > 0 ? mongo_cut_text(text, limit) : text;
}

char *
mongo_json_show_document(const bson_t *document)
{
	bson_iter_t iter;
	char	   *text = NULL;

	if (bson_iter_init(&iter, document))
		text = show(&iter, document->len, true, 0);
	if (text == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("could not write a BSON document as JSON"),
				 errdetail("It holds text that the database's encoding does not have.")));
	return text;
}

/* ------------------------ JSON's numbers as BSON's ------------------------ */

/*
 * is_shortest
 *		Is a number text the Double's shortest one, but for zeros at its end?
 */
static bool
is_shortest(const char *shortest, const char *text)
{
	size_t		length = strlen(text);

	if (strchr(text, '.') != NULL && strpbrk(text, "eE") == NULL)
	{
		while (text[length - 1] == '0')
			length--;
		if (text[length - 1] == '.')
			length--;
	}
	return strlen(shortest) == length && memcmp(shortest, text, length) == 0;
}

void
mongo_write_json_integer(const MongoWriteTarget *target, int64 integer)
{
	if (integer >= PG_INT32_MIN && integer <= PG_INT32_MAX)
		MONGO_WRITE(target, int32, (int32) integer);
	else
		MONGO_WRITE(target, int64, integer);
}

void
mongo_write_json_number(const MongoWriteTarget *target, const char *text)
{
	char		shortest[DOUBLE_SHORTEST_DECIMAL_LEN];
	double		number;

	if (strpbrk(text, ".eE") == NULL)
	{
		int64		integer;

		errno = 0;
		integer = strtoll(text, NULL, 10);
		if (errno == 0)
		{
			mongo_write_json_integer(target, integer);
			return;
		}
	}

	number = strtod(text, NULL);
	if (!isinf(number))
	{
		double_to_shortest_decimal_buf(number, shortest);
		if (is_shortest(shortest, text) ||
			DatumGetBool(DirectFunctionCall2(numeric_eq, numeric_of_text(shortest),
											 numeric_of_text(text))))
		{
			MONGO_WRITE(target, double, number);
			return;
		}
	}
	mongo_write_numeric(target, numeric_of_text(text), NUMERICOID, -1);
}
