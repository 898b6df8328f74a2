/*-------------------------------------------------------------------------
 *
 * json_to_bson.c
 *		Converts json, jsonb and text to BSON; Extended JSON's wrappers become their types.
 *
 * PostgreSQL's lexer or a JsonbIterator supplies tokens, and write_json_value() appends them.  This
 * file decides which BSON type a number gets, and which objects are wrappers.  An object that may
 * be one is first written to a document of its own, and write_wrapper() decides.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/base64.h"
#include "common/jsonapi.h"
#include "common/shortest_dec.h"
#include "miscadmin.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonfuncs.h"

/* ----------- The tokens of a json, jsonb or text, without commas ---------- */

typedef struct JsonInput
{
	text	   *json;			/* or text, which has been parsed; NULL: a
								 * jsonb */
	JsonLexContext *lexer;		/* PostgreSQL's, of it */

	/* for a jsonb */
	JsonbIterator *iterator;
	bool		scalar;

	/* of the last token: a string in UTF-8, or a number */
	const char *text;
	uint32		length;

	int			depth;
	bool		plain;			/* did the innermost object that may be a
								 * wrapper contain no wrapper? */
	bson_t	   *spare;			/* to be reused for the next such object */
} JsonInput;

/* Raises 22P02; PostgreSQL's parser reports where the error is. */
pg_noreturn static void
report_bad_json(JsonInput *input)
{
	if (input->json != NULL)
		pg_parse_json_or_ereport(mongo_json_lexer(input->json), &nullSemAction);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
			 errmsg("invalid input syntax for type %s", "json")));
}

/* Sets the last token to a string, which is not copied unless converted. */
static JsonTokenType
set_string(JsonInput *input, const char *text, uint32 length)
{
	input->text = text;
	input->length = length;
	if (GetDatabaseEncoding() != PG_UTF8 && !mongo_is_plain_text(text, length))
	{
		input->text = pg_server_to_any(text, (int) length, PG_UTF8);
		if (input->text != text)
			input->length = strlen(input->text);
	}
	return JSON_TOKEN_STRING;
}

/* Returns the next token of a json or text. */
static JsonTokenType
next_of_text(JsonInput *input)
{
	JsonLexContext *lexer = input->lexer;

	do
	{
		if (json_lex(lexer) != JSON_SUCCESS)
			report_bad_json(input);
	} while (lexer->token_type == JSON_TOKEN_COMMA || lexer->token_type == JSON_TOKEN_COLON);
	/* in the lexer's buffer, which its next string overwrites */
	if (lexer->token_type == JSON_TOKEN_STRING)
		return set_string(input, lexer->strval->data, lexer->strval->len);
	input->text = lexer->token_start;
	input->length = lexer->token_terminator - lexer->token_start;
	return lexer->token_type;
}

static JsonTokenType
next_of_jsonb(JsonInput *input)
{
	JsonbValue	value;
	JsonbIteratorToken token = JsonbIteratorNext(&input->iterator, &value, false);

	/* JsonbIterator returns a scalar as an array with one element */
	if (input->scalar && (token == WJB_BEGIN_ARRAY || token == WJB_END_ARRAY))
		token = JsonbIteratorNext(&input->iterator, &value, false);
	switch (token)
	{
		case WJB_BEGIN_OBJECT:
			return JSON_TOKEN_OBJECT_START;
		case WJB_END_OBJECT:
			return JSON_TOKEN_OBJECT_END;
		case WJB_BEGIN_ARRAY:
			return JSON_TOKEN_ARRAY_START;
		case WJB_END_ARRAY:
			return JSON_TOKEN_ARRAY_END;
		case WJB_DONE:
			return JSON_TOKEN_END;
		default:
			break;
	}
	switch (value.type)
	{
		case jbvString:
			return set_string(input, value.val.string.val, value.val.string.len);
		case jbvNumeric:
			input->text = DatumGetCString(DirectFunctionCall1(numeric_out,
															  NumericGetDatum(value.val.numeric)));
			input->length = strlen(input->text);
			return JSON_TOKEN_NUMBER;
		case jbvBool:
			return value.val.boolean ? JSON_TOKEN_TRUE : JSON_TOKEN_FALSE;
		default:
			return JSON_TOKEN_NULL;
	}
}

static JsonTokenType
next_token(JsonInput *input)
{
	return input->json != NULL ? next_of_text(input) : next_of_jsonb(input);
}

/* ----------- Numbers, in the narrowest BSON type that represents them --------- */

/* Numbers up to this size are parsed in a buffer on the stack. */
#define COMMON_NUMBER_SIZE	64

/* Tells whether a number's text equals a Double's shortest one, up to trailing zeros. */
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

/* Appends a value of another SQL type, as types.c specifies. */
static void
write_datum(const MongoWriteTarget *target, Datum value, Oid typid)
{
	mongo_append_datum(target->document, target->key, target->key_length, value, false, typid, -1);
}

/*
 * Appends an integer as Int32 or else as Int64.  A number with a point or an exponent, or a larger
 * one, becomes a Double if the Double's shortest text is the same number, else a Decimal128.
 */
static void
write_number(const MongoWriteTarget *target, const char *digits, uint32 length)
{
	char		buffer[COMMON_NUMBER_SIZE];
	char		shortest[DOUBLE_SHORTEST_DECIMAL_LEN];
	char	   *text = length < sizeof(buffer) ? buffer : palloc(length + 1);
	char	   *end;
	int64		integer;
	double		number;

	memcpy(text, digits, length);
	text[length] = '\0';

	errno = 0;
	integer = strtoll(text, &end, 10);
	if (errno == 0 && *end == '\0')
	{
		if (integer == (int32) integer)
			MONGO_WRITE(target, int32, (int32) integer);
		else
			MONGO_WRITE(target, int64, integer);
		return;
	}

	number = strtod(text, NULL);
	if (!isinf(number))
	{
		double_to_shortest_decimal_buf(number, shortest);
		if (is_shortest(shortest, text) ||
			DatumGetBool(DirectFunctionCall2(numeric_eq, mongo_numeric_of_text(shortest),
											 mongo_numeric_of_text(text))))
		{
			MONGO_WRITE(target, double, number);
			return;
		}
	}
	write_datum(target, mongo_numeric_of_text(text), NUMERICOID);
}

/* ------ Objects that stand for a value of another type: {"$oid": ...} ----- */

typedef struct Wrapper
{
	const char *key;
	bson_type_t type;
	bool		is_text;		/* must the value be a String? */
	const char *second_key;		/* of an optional second member, or NULL */
} Wrapper;

static const Wrapper wrappers[] = {
	{"$oid", BSON_TYPE_OID, true, NULL},
	{"$date", BSON_TYPE_DATE_TIME, false, NULL},
	{"$numberInt", BSON_TYPE_INT32, true, NULL},
	{"$numberLong", BSON_TYPE_INT64, true, NULL},
	{"$numberDouble", BSON_TYPE_DOUBLE, true, NULL},
	{"$numberDecimal", BSON_TYPE_DECIMAL128, true, NULL},
	{"$binary", BSON_TYPE_BINARY, false, "$type"},
	{"$uuid", BSON_TYPE_BINARY, true, NULL},
	{"$regularExpression", BSON_TYPE_REGEX, false, NULL},
	{"$timestamp", BSON_TYPE_TIMESTAMP, false, NULL},
	{"$code", BSON_TYPE_CODE, true, "$scope"},
	{"$symbol", BSON_TYPE_SYMBOL, true, NULL},
	{"$minKey", BSON_TYPE_MINKEY, false, NULL},
	{"$maxKey", BSON_TYPE_MAXKEY, false, NULL},
	{"$undefined", BSON_TYPE_UNDEFINED, false, NULL},
	{"$dbPointer", BSON_TYPE_DBPOINTER, false, NULL},
};

/* Returns a String's text; NULL if the value is not a String. */
static const char *
wrapped_text(const bson_iter_t *value)
{
	return BSON_ITER_HOLDS_UTF8(value) ? bson_iter_utf8(value, NULL) : NULL;
}

/* Finds a member of a document; returns false if there is none. */
static bool
wrapped_member(const bson_iter_t *value, const char *key, bson_iter_t *member)
{
	return BSON_ITER_HOLDS_DOCUMENT(value) && bson_iter_recurse(value, member) &&
		bson_iter_find(member, key);
}

/* Returns the text of a document's member; NULL if it is not a String. */
static const char *
member_text(const bson_iter_t *value, const char *key)
{
	bson_iter_t member;

	return wrapped_member(value, key, &member) ? wrapped_text(&member) : NULL;
}

/* Gets a document's member; returns false if it is not an integer in range. */
static bool
member_uint32(const bson_iter_t *value, const char *key, uint32 *number)
{
	bson_iter_t member;

	if (!wrapped_member(value, key, &member) || !BSON_ITER_HOLDS_INT(&member) ||
		bson_iter_as_int64(&member) < 0 || bson_iter_as_int64(&member) > PG_UINT32_MAX)
		return false;
	*number = (uint32) bson_iter_as_int64(&member);
	return true;
}

/* Appends $date's text or number.  A bad text raises as timestamptz does. */
static bool
write_wrapped_date(const MongoWriteTarget *target, const bson_iter_t *value, bool plain)
{
	const char *text = wrapped_text(value);

	if (text != NULL)
		write_datum(target, DirectFunctionCall3(timestamptz_in, CStringGetDatum(mongo_from_utf8(text)),
												ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)),
					TIMESTAMPTZOID);
	else if (BSON_ITER_HOLDS_INT64(value) || (BSON_ITER_HOLDS_INT32(value) && plain))
		MONGO_WRITE(target, date_time, bson_iter_as_int64(value));
	else
		return false;
	return true;
}

/* Appends base64 with a subtype in hexadecimal; returns false if either is malformed. */
static bool
write_binary(const MongoWriteTarget *target, const char *base64, const char *subtype)
{
	int			size;
	int			length;
	uint8_t    *bytes;

	if (base64 == NULL || subtype == NULL || strlen(subtype) > 2 || *subtype == '\0' ||
		strspn(subtype, "0123456789abcdefABCDEF") != strlen(subtype))
		return false;
	size = pg_b64_dec_len(strlen(base64));
	bytes = palloc(Max(size, 1));
	length = mongo_base64_decode(base64, strlen(base64), bytes, size);
	if (length < 0)
		return false;
	MONGO_WRITE(target, binary, (bson_subtype_t) strtoul(subtype, NULL, 16), bytes, length);
	return true;
}

/*
 * Appends a regular expression with sorted options, also those that libbson would drop as unknown.
 */
static void
write_regex(const MongoWriteTarget *target, const char *pattern, const char *options)
{
	StringInfoData bytes;
	uint32		length;
	bson_t		element;

	/* a document whose only element is the regular expression */
	initStringInfo(&bytes);
	appendStringInfo(&bytes, "size%c%.*s", BSON_TYPE_REGEX, target->key_length, target->key);
	appendStringInfoChar(&bytes, '\0');
	appendBinaryStringInfo(&bytes, pattern, strlen(pattern) + 1);
	for (int character = 1; character <= UCHAR_MAX; character++)
	{
		for (const char *option = options; *option != '\0'; option++)
		{
			if ((unsigned char) *option == character)
				appendStringInfoChar(&bytes, *option);
		}
	}
	appendBinaryStringInfo(&bytes, "\0", 2);
	length = BSON_UINT32_TO_LE((uint32) bytes.len);
	memcpy(bytes.data, &length, sizeof(length));

	if (!mongo_bson_view(&element, (const uint8_t *) bytes.data, bytes.len))
		elog(ERROR, "malformed regular expression");
	mongo_concat(target->document, &element);
}

/*
 * Appends $numberInt, $numberLong, $numberDouble or $numberDecimal; returns false if it is
 * malformed.
 */
static bool
write_number_text(const MongoWriteTarget *target, bson_type_t type, const char *text)
{
	bson_decimal128_t decimal;
	const char *digits = text + strspn(text, "+-0.");
	size_t		length = strcspn(digits, "eE");
	double		number = 0;
	int64		integer = 0;
	char	   *end;

	if (type == BSON_TYPE_DECIMAL128)
	{
		/* libbson would drop digits beyond 34 silently after leading zeros */
		while (length > 0 && strchr("0.", digits[length - 1]) != NULL)
			length--;
		if (length - (memchr(digits, '.', length) != NULL) > MONGO_DECIMAL128_MAX_DIGITS ||
			!bson_decimal128_from_string(text, &decimal))
			return false;
		MONGO_WRITE(target, decimal128, &decimal);
		return true;
	}
	errno = 0;
	if (type == BSON_TYPE_DOUBLE)
		number = strtod(text, &end);
	else
		integer = strtoll(text, &end, 10);
	/* strtoll() and strtod() also read blanks, plus signs and other forms */
	if (*text == '\0' || *end != '\0' ||
		(strcmp(text, "NaN") != 0 && strcmp(text, "Infinity") != 0 &&
		 strcmp(text, "-Infinity") != 0 &&
		 (*text == '+' || text[strspn(text, "+-.0123456789eE")] != '\0' || isinf(number))))
		return false;
	/* all NaNs become one, as JSON has no signs and payloads of NaNs */
	if (type == BSON_TYPE_DOUBLE)
		MONGO_WRITE(target, double, isnan(number) ? NAN : number);
	else if (errno != 0 || (type == BSON_TYPE_INT32 && integer != (int32) integer))
		return false;
	else if (type == BSON_TYPE_INT32)
		MONGO_WRITE(target, int32, (int32) integer);
	else
		MONGO_WRITE(target, int64, integer);
	return true;
}

/*
 * Appends the value that a wrapper represents, from the values of its key and of its second key (or
 * NULL); returns false if the specification does not allow them.  'plain' is false if the object
 * contained wrappers.  Then a number in it was written as {"$numberInt": ...}, which canonical
 * Extended JSON has only in a document that merely looks like a wrapper.
 */
static bool
write_wrapped(const MongoWriteTarget *target, const Wrapper *wrapper, const bson_iter_t *value,
			  const bson_iter_t *second, bool plain)
{
	const char *text = wrapped_text(value);
	const char *other;
	bson_iter_t member;
	bson_oid_t	oid;
	bson_t		members;
	bson_t		scope;
	uint32		seconds;
	uint32		increment;

	/* of the values that are documents, each has exactly two members */
	if ((wrapper->is_text && text == NULL) ||
		(BSON_ITER_HOLDS_DOCUMENT(value) &&
		 (second != NULL || !mongo_bson_view_at(&members, value) || bson_count_keys(&members) != 2)))
		return false;
	switch (wrapper->type)
	{
		case BSON_TYPE_OID:
			if (!mongo_objectid_from_text(text, strlen(text), false, &oid))
				return false;
			MONGO_WRITE(target, oid, &oid);
			return true;
		case BSON_TYPE_DATE_TIME:
			return write_wrapped_date(target, value, plain);
		case BSON_TYPE_BINARY:
			if (wrapper->is_text)
				write_datum(target, DirectFunctionCall1(uuid_in, CStringGetDatum(mongo_from_utf8(text))),
							UUIDOID);
			/* "$type" is from Extended JSON version 1 */
			return wrapper->is_text ||
				(text == NULL ?
				 write_binary(target, member_text(value, "base64"), member_text(value, "subType")) :
				 write_binary(target, text, second != NULL ? wrapped_text(second) : NULL));
		case BSON_TYPE_REGEX:
			text = member_text(value, "pattern");
			other = member_text(value, "options");
			if (text == NULL || other == NULL)
				return false;
			write_regex(target, text, other);
			return true;
		case BSON_TYPE_TIMESTAMP:
			if (!plain || !member_uint32(value, "t", &seconds) ||
				!member_uint32(value, "i", &increment))
				return false;
			MONGO_WRITE(target, timestamp, seconds, increment);
			return true;
		case BSON_TYPE_CODE:
			if (second == NULL)
				MONGO_WRITE(target, code, text);
			else if (mongo_bson_view_at(&scope, second))
				MONGO_WRITE(target, code_with_scope, text, &scope);
			else
				return false;
			return true;
		case BSON_TYPE_SYMBOL:
			MONGO_WRITE(target, symbol, text, strlen(text));
			return true;
		case BSON_TYPE_MINKEY:
		case BSON_TYPE_MAXKEY:
			if (!plain || !BSON_ITER_HOLDS_INT32(value) || bson_iter_int32(value) != 1)
				return false;
			if (wrapper->type == BSON_TYPE_MINKEY)
				MONGO_WRITE(target, minkey);
			else
				MONGO_WRITE(target, maxkey);
			return true;
		case BSON_TYPE_UNDEFINED:
			if (!BSON_ITER_HOLDS_BOOL(value) || !bson_iter_bool(value))
				return false;
			MONGO_WRITE(target, undefined);
			return true;
		case BSON_TYPE_DBPOINTER:
			text = member_text(value, "$ref");
			if (text == NULL || !wrapped_member(value, "$id", &member) ||
				!BSON_ITER_HOLDS_OID(&member))
				return false;
			MONGO_WRITE(target, dbpointer, text, bson_iter_oid(&member));
			return true;
		default:
			return write_number_text(target, wrapper->type, text);
	}
}

/* Returns the wrapper that an object with this first key may be, or NULL. */
static const Wrapper *
wrapper_with(const char *key, uint32 length)
{
	if (length == 0 || key[0] != '$')
		return NULL;
	for (size_t i = 0; i < lengthof(wrappers); i++)
	{
		const Wrapper *wrapper = &wrappers[i];
		const char *second_key = wrapper->second_key;

		if ((strlen(wrapper->key) == length && memcmp(wrapper->key, key, length) == 0) ||
			(second_key != NULL && strlen(second_key) == length &&
			 memcmp(second_key, key, length) == 0))
			return wrapper;
	}
	return NULL;
}

/*
 * Appends the value that an object represents; returns false if it is a document.  An object is a
 * wrapper if it has the wrapper's key and no key other than the optional one.  A malformed one
 * raises 22P02.  Other keys with a dollar sign are ordinary names of fields, as in commands and
 * pipelines.  Wrappers inside the object have already been converted; 'plain' if there were none.
 */
static bool
write_wrapper(const MongoWriteTarget *target, const Wrapper *wrapper, const bson_t *object,
			  bool plain)
{
	bson_iter_t value;
	bson_iter_t second;
	bool		has_second = wrapper->second_key != NULL &&
		bson_iter_init_find(&second, object, wrapper->second_key);

	if (!bson_iter_init_find(&value, object, wrapper->key) ||
		bson_count_keys(object) != (has_second ? 2 : 1))
		return false;
	if (!write_wrapped(target, wrapper, &value, has_second ? &second : NULL, plain))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("malformed Extended JSON for \"%s\"", wrapper->key)));
	return true;
}

/* ----------------------------- Values of JSON ----------------------------- */

/* The maximum of the server parameter maxBSONDepth. */
#define MAX_DEPTH	200

#define POSITION_SIZE	16		/* of an array's key */

static void write_json_value(JsonInput *input, JsonTokenType token, const MongoWriteTarget *target);

/* Appends an object's members, starting at the token after its brace. */
static void
write_members(JsonInput *input, JsonTokenType token, bson_t *document)
{
	for (; token == JSON_TOKEN_STRING; token = next_token(input))
	{
		char	   *key = pnstrdup(input->text, input->length);
		MongoWriteTarget member = {document, key, (int) input->length};

		write_json_value(input, next_token(input), &member);
		pfree(key);
	}
	if (token != JSON_TOKEN_OBJECT_END)
		report_bad_json(input);
}

/* Appends an object, or the value if it is a wrapper. */
static void
write_json_object(JsonInput *input, const MongoWriteTarget *target)
{
	JsonTokenType token = next_token(input);
	const Wrapper *wrapper = token != JSON_TOKEN_STRING ? NULL :
		wrapper_with(input->text, input->length);
	bool		plain = input->plain;
	bson_t		nested;
	bson_t	   *object;

	if (wrapper == NULL)
	{
		MONGO_WRITE(target, document_begin, &nested);
		write_members(input, token, &nested);
		mongo_append_document_end(target->document, &nested);
		return;
	}

	object = input->spare != NULL ? input->spare : mongo_bson_create();
	input->spare = NULL;
	input->plain = true;
	bson_reinit(object);
	write_members(input, token, object);
	if (write_wrapper(target, wrapper, object, input->plain))
		plain = false;
	else
		MONGO_WRITE(target, document, object);
	input->plain &= plain;
	input->spare = object;
}

static void
write_json_array(JsonInput *input, const MongoWriteTarget *target)
{
	bson_t		nested;
	MongoWriteTarget element = {.document = &nested};
	JsonTokenType token;
	char		position[POSITION_SIZE];

	MONGO_WRITE(target, array_unsafe_begin, &nested);
	for (uint32 i = 0; (token = next_token(input)) != JSON_TOKEN_ARRAY_END; i++)
	{
		element.key_length = (int) bson_uint32_to_string(i, &element.key, position,
														 sizeof(position));
		write_json_value(input, token, &element);
	}
	mongo_append_array_end(target->document, &nested);
}

/* Appends the value that begins with this token. */
static void
write_json_value(JsonInput *input, JsonTokenType token, const MongoWriteTarget *target)
{
	CHECK_FOR_INTERRUPTS();

	switch (token)
	{
		case JSON_TOKEN_OBJECT_START:
		case JSON_TOKEN_ARRAY_START:
			if (++input->depth > MAX_DEPTH)
				ereport(ERROR,
						(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
						 errmsg("JSON is nested too deeply for MongoDB"),
						 errdetail("The limit is %d levels.", MAX_DEPTH)));
			if (token == JSON_TOKEN_OBJECT_START)
				write_json_object(input, target);
			else
				write_json_array(input, target);
			input->depth--;
			break;
		case JSON_TOKEN_STRING:
			MONGO_WRITE(target, utf8, input->text, (int) input->length);
			break;
		case JSON_TOKEN_NUMBER:
			write_number(target, input->text, input->length);
			if (input->json == NULL)
				pfree(unconstify(char *, input->text));
			break;
		case JSON_TOKEN_TRUE:
		case JSON_TOKEN_FALSE:
			MONGO_WRITE(target, bool, token == JSON_TOKEN_TRUE);
			break;
		case JSON_TOKEN_NULL:
			MONGO_WRITE(target, null);
			break;
		default:
			report_bad_json(input);
	}
}

/* Appends a value, or an object's members; frees all memory that it needed. */
static void
write_json(const MongoWriteTarget *target, bson_t *members, Datum value, Oid typid)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext,
												  "mongo_fdw json",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(scratch);
	JsonInput	input = {.plain = true, .depth = members != NULL};
	JsonTokenType token;

	if (typid == JSONBOID)
	{
		Jsonb	   *jsonb = DatumGetJsonbP(value);

		input.iterator = JsonbIteratorInit(&jsonb->root);
		input.scalar = JB_ROOT_IS_SCALAR(jsonb);
	}
	else
	{
		input.json = DatumGetTextPP(value);
		input.lexer = mongo_json_lexer(input.json);
		if (typid != JSONOID)
			pg_parse_json_or_ereport(mongo_json_lexer(input.json), &nullSemAction);
	}

	token = next_token(&input);
	if (members == NULL)
		write_json_value(&input, token, target);
	else if (token == JSON_TOKEN_OBJECT_START)
		write_members(&input, next_token(&input), members);
	else
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("a document has to be a JSON object")));
	if (next_token(&input) != JSON_TOKEN_END)
		report_bad_json(&input);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(scratch);
}

/*
 * mongo_write_json
 *		Appends a json or jsonb value.  Raises the errors of mongo_append_json_members().
 */
void
mongo_write_json(MONGO_WRITE_ARGS)
{
	write_json(target, NULL, value, typid);
}

/*
 * mongo_append_json_members
 *		Appends the members of a JSON object, given as json, jsonb or text, in their order.
 *
 * Wrappers, such as {"$oid": ...}, become their BSON types.  Raises 22P02 for invalid JSON, JSON
 * that is not an object, and a malformed wrapper, 22P05 for \u0000 and for an escape that the
 * database's encoding cannot represent, 54001 for nesting that no MongoDB server accepts, and 22003
 * for a number out of Decimal128's range.
 */
void
mongo_append_json_members(bson_t *document, Datum value, Oid typid)
{
	write_json(NULL, document, value, typid);
}
