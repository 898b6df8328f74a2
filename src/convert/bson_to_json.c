/*-------------------------------------------------------------------------
 *
 * bson_to_json.c
 *		Converts BSON to json, jsonb and text, as Extended JSON v2.
 *
 * put_value() decides how each BSON type looks.  The walk over a value emits tokens, which
 * put_item() appends either to a text or to a jsonb, so that both have the same members.  Nothing
 * is assumed of the bytes: keys, strings and the end of each document are checked on the way.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"

#include <math.h>

#include "common/base64.h"
#include "common/hashfn.h"
#include "common/shortest_dec.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"

/* ----------------- Output of JSON tokens as a text or jsonb --------------- */

typedef enum JsonItem
{
	JSON_BEGIN_OBJECT,
	JSON_BEGIN_ARRAY,
	JSON_END_OBJECT,
	JSON_END_ARRAY,
	JSON_KEY,
	JSON_STRING,
	JSON_NUMBER,
	JSON_INTEGER,
	JSON_BOOLEAN,
	JSON_NULL
} JsonItem;

typedef struct MongoJsonOutput
{
	MongoReadContext *context;	/* receives type mismatches */
	bool		canonical;
	bool		every_key;		/* also keys that repeat another one */

	/* for a text, in UTF-8; NULL for a jsonb */
	StringInfo	text;
	int			limit;			/* bytes after which it is full; 0: none */
	bool		full;			/* is further output ignored? */
	bool		spaced;			/* with blanks for readers: { "a" : [ 1, 2 ] } */
	bool		need_comma;

	/* for a jsonb */
	MongoJsonbState jsonb;
	JsonbValue	scalar;			/* the whole value, if it is a scalar */
} MongoJsonOutput;

/* Appends the comma before a key or an element that is not the first. */
static inline void
text_separate(MongoJsonOutput *output)
{
	if (output->need_comma)
	{
		appendStringInfoCharMacro(output->text, ',');
		if (output->spaced)
			appendStringInfoCharMacro(output->text, ' ');
	}
	output->need_comma = true;
	output->full = output->limit > 0 && output->text->len > output->limit;
}

static void
put_into_text(MongoJsonOutput *output, JsonItem item, const char *string, uint32 length, int64 integer)
{
	StringInfo	text = output->text;
	char		digits[MAXINT8LEN + 1];

	if (item == JSON_END_OBJECT || item == JSON_END_ARRAY)
	{
		/* need_comma is false if the container is empty */
		if (output->spaced && output->need_comma)
			appendStringInfoCharMacro(text, ' ');
		appendStringInfoCharMacro(text, item == JSON_END_ARRAY ? ']' : '}');
		output->need_comma = true;
		return;
	}
	text_separate(output);
	switch (item)
	{
		case JSON_BEGIN_OBJECT:
		case JSON_BEGIN_ARRAY:
			appendStringInfoCharMacro(text, item == JSON_BEGIN_ARRAY ? '[' : '{');
			if (output->spaced)
				appendStringInfoCharMacro(text, ' ');
			output->need_comma = false;
			break;
		case JSON_KEY:
			escape_json(text, string);
			appendStringInfoString(text, output->spaced ? " : " : ":");
			output->need_comma = false;
			break;
		case JSON_STRING:
			escape_json(text, string);
			break;
		case JSON_INTEGER:
			appendBinaryStringInfo(text, digits, pg_lltoa(integer, digits));
			break;
		case JSON_NUMBER:
			appendBinaryStringInfo(text, string, length);
			break;
		case JSON_BOOLEAN:
			appendStringInfoString(text, integer ? "true" : "false");
			break;
		default:
			appendStringInfoString(text, "null");
			break;
	}
}

static void
put_into_jsonb(MongoJsonOutput *output, JsonItem item, const char *text, uint32 length, int64 integer)
{
	static const JsonbIteratorToken tokens[] = {
		[JSON_BEGIN_OBJECT] = WJB_BEGIN_OBJECT, [JSON_BEGIN_ARRAY] = WJB_BEGIN_ARRAY,
		[JSON_END_OBJECT] = WJB_END_OBJECT, [JSON_END_ARRAY] = WJB_END_ARRAY
	};
	JsonbValue	value;

	switch (item)
	{
		case JSON_BEGIN_OBJECT:
		case JSON_BEGIN_ARRAY:
		case JSON_END_OBJECT:
		case JSON_END_ARRAY:
			mongo_push_jsonb(&output->jsonb, tokens[item], NULL);
			return;
		case JSON_KEY:
		case JSON_STRING:

			/*
			 * No copy is needed: the value points into the document, and
			 * JsonbValueToJsonb() copies it before the document is freed.
			 */
			value.type = jbvString;
			value.val.string.val = unconstify(char *, mongo_text_to_server(text, &length));
			value.val.string.len = length;
			if (length > JENTRY_OFFLENMASK)
				ereport(ERROR,
						(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						 errmsg("string too long to represent as jsonb string")));
			break;
		case JSON_NUMBER:
			value.type = jbvNumeric;
			value.val.numeric = DatumGetNumeric(mongo_numeric_of_text(text));
			break;
		case JSON_INTEGER:
			value.type = jbvNumeric;
			value.val.numeric = int64_to_numeric(integer);
			break;
		case JSON_BOOLEAN:
			value.type = jbvBool;
			value.val.boolean = integer != 0;
			break;
		default:
			value.type = jbvNull;
			break;
	}
	/* a key, the whole value, an array's element or an object's member */
	if (item == JSON_KEY)
		mongo_push_jsonb(&output->jsonb, WJB_KEY, &value);
	else if (output->jsonb.parseState == NULL)
		output->scalar = value;
	else
		mongo_push_jsonb(&output->jsonb, output->jsonb.parseState->contVal.type == jbvArray ?
						 WJB_ELEM : WJB_VALUE, &value);
}

/*
 * Outputs a token, as the next three functions do.  Strings and numbers pass a text of valid UTF-8
 * that ends with a NUL, which is not copied.  Integers and booleans pass 'integer'.
 */
static inline void
put_item(MongoJsonOutput *output, JsonItem item, const char *text, uint32 length, int64 integer)
{
	if (output->text != NULL)
		put_into_text(output, item, text, length, integer);
	else
		put_into_jsonb(output, item, text, length, integer);
}

static inline void
put_text(MongoJsonOutput *output, JsonItem item, const char *text, uint32 length)
{
	put_item(output, item, text, length, 0);
}

static inline void
put_integer(MongoJsonOutput *output, JsonItem item, int64 integer)
{
	put_item(output, item, NULL, 0, integer);
}

static inline void
put_mark(MongoJsonOutput *output, JsonItem item)
{
	put_item(output, item, NULL, 0, 0);
}

/*-------------------------------------------------------------------------
 * Values as JSON.
 *
 * The format is relaxed by default: numbers that JSON can represent are plain, the other
 * BSON types are wrappers ({"$oid": ...}).
 *-------------------------------------------------------------------------
 */

#define SUBTYPE_TEXT_SIZE		3
#define MILLIS_PER_SECOND		1000
#define INT64_LIMIT				9223372036854775808.0	/* 2^63 */
#define YEAR_10000_MILLIS		INT64CONST(253402300800000)

static bool put_value(MongoJsonOutput *output, const bson_iter_t *iter);

/* Outputs "{key:". */
static inline void
open_wrapper(MongoJsonOutput *output, const char *key)
{
	put_mark(output, JSON_BEGIN_OBJECT);
	put_text(output, JSON_KEY, key, strlen(key));
}

/* Outputs a string that is in the caller's buffer, so that a jsonb needs a copy. */
static inline void
put_buffer(MongoJsonOutput *output, const char *text)
{
	put_text(output, JSON_STRING, output->text == NULL ? pstrdup(text) : text, strlen(text));
}

/* Outputs {key: text}, where both are ASCII. */
static void
put_wrapper(MongoJsonOutput *output, const char *key, const char *text)
{
	open_wrapper(output, key);
	put_buffer(output, text);
	put_mark(output, JSON_END_OBJECT);
}

/* Outputs a key or string of the document.  Records a mismatch if it is invalid. */
static pg_attribute_always_inline bool
put_checked(MongoJsonOutput *output, JsonItem item, const bson_iter_t *iter, const char *text,
			uint32 length)
{
	if (!mongo_text_is_valid(text, length))
		return mongo_mismatch(output->context, MONGO_MISMATCH_CHARACTERS, iter,
							  mongo_text_remark(text, length));
	put_text(output, item, text, length);
	return true;
}

/* The keys of a document so far: a hash table of their offsets in the document; 0: empty. */
typedef struct KeySet
{
	uint32	   *offsets;
	uint32		size;			/* a power of two */
	uint32		count;
	uint32		first[32];
} KeySet;

/* Returns the slot of the key at this offset in the document. */
static uint32 *
key_slot(const KeySet *set, const uint8_t *document, uint32 key, uint32 length)
{
	uint32		i = hash_bytes(document + key, length) & (set->size - 1);

	while (set->offsets[i] != 0 &&
		   strcmp((const char *) document + set->offsets[i], (const char *) document + key) != 0)
		i = (i + 1) & (set->size - 1);
	return &set->offsets[i];
}

/* Tells whether there was such a key before.  The first one counts, as in MongoDB's filters. */
static bool
is_repeated(KeySet *set, const bson_iter_t *iter)
{
	uint32	   *slot = key_slot(set, iter->raw, iter->key, bson_iter_key_len(iter));
	const uint32 *offsets = set->offsets;
	uint32		size = set->size;

	if (*slot != 0)
		return true;
	*slot = iter->key;
	if (++set->count * 2 < set->size)
		return false;
	set->size *= 4;
	set->offsets = palloc0(set->size * sizeof(uint32));
	for (uint32 i = 0; i < size; i++)
	{
		uint32		key = offsets[i];

		if (key != 0)
			*key_slot(set, iter->raw, key, strlen((const char *) iter->raw + key)) = key;
	}
	return false;
}

/* Outputs a document or array, from an iterator at its start. */
static bool
put_container(MongoJsonOutput *output, bson_iter_t *iter, uint32 length, bool array)
{
	KeySet		keys = {.size = lengthof(keys.first)};

	check_stack_depth();

	keys.offsets = keys.first;
	put_mark(output, array ? JSON_BEGIN_ARRAY : JSON_BEGIN_OBJECT);
	while (bson_iter_next(iter))
	{
		CHECK_FOR_INTERRUPTS();
		if (output->full)
			return true;
		if (!array && !output->every_key && is_repeated(&keys, iter))
			continue;
		if (!array && !put_checked(output, JSON_KEY, iter, bson_iter_key(iter),
								   bson_iter_key_len(iter)))
			return false;
		if (!put_value(output, iter))
			return false;
	}
	if (!mongo_iter_is_at_end(iter, length))
		return mongo_mismatch(output->context, MONGO_MISMATCH_BSON, iter, NULL);
	put_mark(output, array ? JSON_END_ARRAY : JSON_END_OBJECT);
	return true;
}

/*
 * Returns the shortest text that parses to this finite double, in a static buffer.  The text has a
 * decimal point or an exponent, so that it is written back as a double and not as an integer.
 * 1.25e+18 becomes "1250000000000000000.0", because jsonb keeps the number of decimal places but no
 * exponent.
 */
static const char *
double_text(double number)
{
	static char text[DOUBLE_SHORTEST_DECIMAL_LEN + 2];

	double_to_shortest_decimal_buf(number, text);
	if (fabs(number) < INT64_LIMIT && rint(number) == number)
	{
		if (strchr(text, 'e') != NULL)
			strcpy(text, DatumGetCString(DirectFunctionCall1(numeric_out,
															 mongo_numeric_of_text(text))));
		strcat(text, ".0");
	}
	return text;
}

/* Outputs an integer, plain or as a wrapper with this key. */
static void
put_number(MongoJsonOutput *output, const char *key, bool wrapped, int64 number)
{
	char		text[MAXINT8LEN + 1];

	if (!wrapped)
	{
		put_integer(output, JSON_INTEGER, number);
		return;
	}
	pg_lltoa(number, text);
	put_wrapper(output, key, text);
}

/* Appends a number with leading zeros, then a character; returns the end. */
static inline char *
put_digits(char *text, uint32 number, int width, char after)
{
	text = pg_ultostr_zeropad(text, number, width);
	*text = after;
	return text + 1;
}

/* Formats a time as "2020-01-31T12:30:00.123Z" into 'text'; for years 1970 to 9999. */
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
put_date(MongoJsonOutput *output, int64 millis)
{
	char		text[64];

	if (!output->canonical && millis >= 0 && millis < YEAR_10000_MILLIS)
	{
		put_wrapper(output, "$date", iso_date_text(millis, text));
		return;
	}
	open_wrapper(output, "$date");
	put_number(output, "$numberLong", true, millis);
	put_mark(output, JSON_END_OBJECT);
}

/* Outputs {$binary: {base64: ..., subType: ...}}. */
static void
put_binary(MongoJsonOutput *output, const bson_iter_t *iter)
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
	base64[Max(base64_length, 0)] = '\0';
	snprintf(subtype_text, sizeof(subtype_text), "%02x", (unsigned int) subtype & 0xff);

	open_wrapper(output, "$binary");
	open_wrapper(output, "base64");
	put_text(output, JSON_STRING, base64, base64_length);
	put_text(output, JSON_KEY, "subType", strlen("subType"));
	put_buffer(output, subtype_text);
	put_mark(output, JSON_END_OBJECT);
	put_mark(output, JSON_END_OBJECT);
}

static bool
put_code_with_scope(MongoJsonOutput *output, const bson_iter_t *iter)
{
	uint32_t	length;
	uint32_t	scope_length;
	const uint8_t *scope;
	const char *code = bson_iter_codewscope(iter, &length, &scope_length, &scope);
	bson_iter_t scope_iter;

	/* libbson checks neither of these */
	if (code[length] != '\0' ||
		!bson_iter_init_from_data(&scope_iter, scope, scope_length))
		mongo_report_bad_bson();

	open_wrapper(output, "$code");
	if (!put_checked(output, JSON_STRING, iter, code, length))
		return false;
	put_text(output, JSON_KEY, "$scope", strlen("$scope"));
	if (!put_container(output, &scope_iter, scope_length, false))
		return false;
	put_mark(output, JSON_END_OBJECT);
	return true;
}

/* Outputs a value of a rare type, by way of a document that is its wrapper. */
static bool
put_rare(MongoJsonOutput *output, const bson_iter_t *iter)
{
	bool		canonical = output->canonical;
	const bson_t *wrapper;
	bson_iter_t members;
	const char *text;
	const char *options;
	const bson_oid_t *oid;
	uint32_t	length;
	uint32_t	seconds;
	uint32_t	increment;
	bool		fits;

	switch (bson_iter_type_unsafe(iter))
	{
		case BSON_TYPE_REGEX:
			text = bson_iter_regex(iter, &options);
			wrapper = mongo_from_template("{$regularExpression: {pattern: @1, options: @2}}",
										  mongo_utf8(text), mongo_utf8(options));
			break;
		case BSON_TYPE_DBPOINTER:
			bson_iter_dbpointer(iter, &length, &text, &oid);
			wrapper = mongo_from_template("{$dbPointer: {$ref: @1, $id: @2}}",
										  mongo_utf8(text), mongo_oid(oid));
			break;
		case BSON_TYPE_CODE:
			text = bson_iter_code(iter, &length);
			wrapper = mongo_from_template("{$code: @1}", mongo_utf8_sized(text, length));
			break;
		case BSON_TYPE_SYMBOL:
			text = bson_iter_symbol(iter, &length);
			wrapper = mongo_from_template("{$symbol: @1}", mongo_utf8_sized(text, length));
			break;
		case BSON_TYPE_TIMESTAMP:
			bson_iter_timestamp(iter, &seconds, &increment);
			wrapper = mongo_from_template("{$timestamp: {t: @1, i: @2}}",
										  mongo_int64(seconds), mongo_int64(increment));
			break;
		case BSON_TYPE_UNDEFINED:
			wrapper = mongo_from_template("{$undefined: true}");
			break;
		case BSON_TYPE_MINKEY:
			wrapper = mongo_from_template("{$minKey: 1}");
			break;
		default:
			wrapper = mongo_from_template("{$maxKey: 1}");
			break;
	}
	if (!bson_iter_init(&members, wrapper))
		mongo_report_bad_bson();

	/* the wrapper's numbers are plain; a mismatch is of the value itself */
	output->canonical = false;
	fits = put_container(output, &members, wrapper->len, false);
	output->canonical = canonical;
	if (!fits)
		output->context->value = *iter;
	return fits;
}

/* Outputs the value at 'iter'; returns false if it contains a mismatch. */
static bool
put_value(MongoJsonOutput *output, const bson_iter_t *iter)
{
	bson_iter_t child;
	bson_decimal128_t decimal;
	char		digits[BSON_DECIMAL128_STRING];
	const char *text;
	uint32_t	length;
	double		number;

	switch (bson_iter_type_unsafe(iter))
	{
		case BSON_TYPE_DOUBLE:
			number = bson_iter_double(iter);
			text = isnan(number) ? "NaN" : !isinf(number) ? double_text(number) :
				number > 0 ? "Infinity" : "-Infinity";
			if (output->canonical || isnan(number) || isinf(number))
				put_wrapper(output, "$numberDouble", text);
			else
				put_text(output, JSON_NUMBER, text, strlen(text));
			return true;
		case BSON_TYPE_UTF8:
			text = bson_iter_utf8(iter, &length);
			return put_checked(output, JSON_STRING, iter, text, length);
		case BSON_TYPE_DOCUMENT:
		case BSON_TYPE_ARRAY:
			length = mongo_iter_descend(iter, &child);
			return put_container(output, &child, length, BSON_ITER_HOLDS_ARRAY(iter));
		case BSON_TYPE_BINARY:
			put_binary(output, iter);
			return true;
		case BSON_TYPE_OID:
			bson_oid_to_string(bson_iter_oid(iter), digits);
			put_wrapper(output, "$oid", digits);
			return true;
		case BSON_TYPE_BOOL:
			put_integer(output, JSON_BOOLEAN, bson_iter_bool(iter));
			return true;
		case BSON_TYPE_DATE_TIME:
			put_date(output, bson_iter_date_time(iter));
			return true;
		case BSON_TYPE_NULL:
			put_mark(output, JSON_NULL);
			return true;
		case BSON_TYPE_CODEWSCOPE:
			return put_code_with_scope(output, iter);
		case BSON_TYPE_INT32:
			put_number(output, "$numberInt", output->canonical, bson_iter_int32(iter));
			return true;
		case BSON_TYPE_INT64:
			put_number(output, "$numberLong", output->canonical, bson_iter_int64(iter));
			return true;
		case BSON_TYPE_DECIMAL128:
			bson_iter_decimal128(iter, &decimal);
			mongo_decimal128_to_text(&decimal, digits);
			put_wrapper(output, "$numberDecimal", digits);
			return true;
		default:
			return put_rare(output, iter);
	}
}

/* ---- Functions for other files ---- */

/*
 * mongo_read_json
 *		Reads any value as json, text or varchar, with its JSON in the database's encoding.
 */
bool
mongo_read_json(MONGO_READ_ARGS)
{
	uint32		length = iter->next_off - iter->off;
	StringInfoData json;
	MongoJsonOutput output = {.context = context, .canonical = context->canonical_json, .text = &json};
	const char *converted;

	/*
	 * The buffer itself becomes the Datum.  JSON is longer than BSON, but
	 * rarely by more than half.
	 */
	initStringInfo(&json);
	enlargeStringInfo(&json, VARHDRSZ + length + length / 2);
	json.len = VARHDRSZ;
	if (!put_value(&output, iter))
		return false;

	length = json.len - VARHDRSZ;
	converted = mongo_text_to_server(json.data + VARHDRSZ, &length);
	SET_VARSIZE(json.data, json.len);
	*value = PointerGetDatum(json.data);
	if (converted != json.data + VARHDRSZ)
	{
		*value = PointerGetDatum(cstring_to_text_with_len(converted, length));
		pfree(json.data);
	}
	/* varchar(n): a whole document may be too long */
	return reader->typmod < 0 || mongo_limit_text(reader, context, iter, value);
}

/*
 * mongo_read_jsonb
 *		Reads any value as jsonb.  Raises 54000 for a string that is too long for it.
 */
bool
mongo_read_jsonb(MONGO_READ_ARGS)
{
	MongoJsonOutput output = {.context = context, .canonical = context->canonical_json};

	if (!put_value(&output, iter))
		return false;
	*value = JsonbPGetDatum(JsonbValueToJsonb(output.jsonb.result ? output.jsonb.result : &output.scalar));
	return true;
}

/*
 * mongo_json_show_value
 *		Returns a value as relaxed Extended JSON, palloc'd, in the database's encoding; NULL if it
 *		contains a string that a text cannot store, or invalid BSON.  With 'spaced' it has blanks
 *		for human readers: { "a" : [ 1, 2 ] }.  A 'limit' other than 0 truncates it as
 *		mongo_cut_text() does.  Raises 54001 for nesting beyond the stack's depth.
 */
char *
mongo_json_show_value(const bson_iter_t *iter, bool spaced, int limit)
{
	MongoReadContext context = {0};
	StringInfoData json;
	MongoJsonOutput output = {
		.context = &context, .every_key = true, .text = &json, .spaced = spaced, .limit = limit
	};
	const char *text;
	uint32		length;

	initStringInfo(&json);
	if (!put_value(&output, iter))
		return NULL;
	length = json.len;
	text = mongo_text_to_server(json.data, &length);
	return limit > 0 ? mongo_cut_text(text, limit) : unconstify(char *, text);
}

/*
 * mongo_json_show_document
 *		Returns a whole document as mongo_json_show_value() does, spaced; raises HV000 instead of
 *		NULL.
 */
char *
mongo_json_show_document(const bson_t *document)
{
	bson_t	   *member = mongo_bson_create();
	bson_iter_t iter;
	char	   *text = NULL;

	mongo_append(member, "", mongo_document(document));
	if (bson_iter_init(&iter, member) && bson_iter_next(&iter))
		text = mongo_json_show_value(&iter, true, 0);
	if (text == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("could not write a BSON document as JSON"),
				 errdetail("It holds text that the database's encoding does not have.")));
	return text;
}
