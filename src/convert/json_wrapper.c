/*-------------------------------------------------------------------------
 *
 * json_wrapper.c
 *		Objects that stand for a value of another BSON type, such as {"$oid": ...}.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"
#include "common.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "common/base64.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/*
 * The tree
 */

JsonNode *
mongo_json_node(JsonNode *parent, const char *key, uint32 key_length, JsonKind kind)
{
	JsonNode   *node = palloc0(sizeof(JsonNode));

	node->kind = kind;
	node->parent = parent;
	if (key != NULL)
	{
		node->key = pnstrdup(key, key_length);
		node->key_length = key_length;
	}
	if (parent == NULL)
		return node;
	if (parent->last != NULL)
		parent->last->next = node;
	else
		parent->first = node;
	parent->last = node;
	parent->count++;
	return node;
}

void
mongo_json_node_set_text(JsonNode *node, const char *text, uint32 length)
{
	node->text = pnstrdup(text, length);
	node->text_length = length;
}

/*
 * Wrappers
 */

/* object_member: of an object, or NULL. */
static const JsonNode *
object_member(const JsonNode *object, const char *key)
{
	if (object->kind != JSON_OBJECT)
		return NULL;
	for (const JsonNode *node = object->first; node; node = node->next)
	{
		if (strcmp(node->key, key) == 0)
			return node;
	}
	return NULL;
}

/* string_member: the text of a string member, or NULL. */
static const char *
string_member(const JsonNode *object, const char *key)
{
	const JsonNode *node = object_member(object, key);

	return node != NULL && node->kind == JSON_STRING ? node->text : NULL;
}

/* parse_int64: a whole text as an integer within bounds. */
static bool
parse_int64(const char *text, int64 minimum, int64 maximum, int64 *result)
{
	char	   *end;

	if (text == NULL || *text == '\0')
		return false;
	errno = 0;
	*result = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0' && *result >= minimum && *result <= maximum;
}

/*
 * Each takes the wrapper's object and first member's value; false when it is
 * not what the specification says.
 */
#define WRAPPER_ARGS \
	const MongoWriteTarget *target, const JsonNode *object pg_attribute_unused(), \
	const JsonNode *value pg_attribute_unused()

typedef bool (*WrapperFunction) (WRAPPER_ARGS);

static bool
wrap_oid(WRAPPER_ARGS)
{
	bson_oid_t	oid;

	if (value->kind != JSON_STRING ||
		!mongo_objectid_from_text(value->text, value->text_length, false, &oid))
		return false;
	MONGO_WRITE(target, oid, &oid);
	return true;
}

static bool
wrap_int(WRAPPER_ARGS)
{
	int64		number;

	if (value->kind != JSON_STRING ||
		!parse_int64(value->text, PG_INT32_MIN, PG_INT32_MAX, &number))
		return false;
	MONGO_WRITE(target, int32, (int32) number);
	return true;
}

static bool
wrap_long(WRAPPER_ARGS)
{
	int64		number;

	if (value->kind != JSON_STRING ||
		!parse_int64(value->text, PG_INT64_MIN, PG_INT64_MAX, &number))
		return false;
	MONGO_WRITE(target, int64, number);
	return true;
}

static bool
wrap_double(WRAPPER_ARGS)
{
	double		number;
	char	   *end;

	if (value->kind != JSON_STRING || value->text_length == 0)
		return false;
	number = strtod(value->text, &end);
	if (*end != '\0')
		return false;
	/* BSON has many, with signs and payloads; JSON has one word for them */
	if (isnan(number))
		number = NAN;
	MONGO_WRITE(target, double, number);
	return true;
}

static bool
wrap_decimal(WRAPPER_ARGS)
{
	bson_decimal128_t decimal;

	if (value->kind != JSON_STRING ||
		!bson_decimal128_from_string(value->text, &decimal))
		return false;
	MONGO_WRITE(target, decimal128, &decimal);
	return true;
}

/* number_at: so many digits as a number. */
static int
number_at(const char *text, int length)
{
	int			number = 0;

	for (int i = 0; i < length; i++)
		number = number * 10 + (text[i] - '0');
	return number;
}

/*
 * iso_date_millis
 *		Read "2020-01-31T12:30:00.123Z", with or without the fraction, as dates are
 *		mostly written; false for any other form, and for no such date.
 */
static bool
iso_date_millis(const char *text, int length, int64 *millis)
{
	static const char form[] = "0000-00-00T00:00:00.000";
	int			year;
	int			month;
	int			day;
	int			seconds;

	if ((length != 20 && length != 24) || text[length - 1] != 'Z')
		return false;
	for (int i = 0; i < length - 1; i++)
	{
		if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
			return false;
	}

	year = number_at(text, 4);
	month = number_at(text + 5, 2);
	day = number_at(text + 8, 2);
	if (year < 1 || month < 1 || month > MONTHS_PER_YEAR ||
		day < 1 || day > day_tab[isleap(year)][month - 1] ||
		number_at(text + 11, 2) >= HOURS_PER_DAY ||
		number_at(text + 14, 2) >= MINS_PER_HOUR || number_at(text + 17, 2) >= SECS_PER_MINUTE)
		return false;

	seconds = number_at(text + 11, 2) * SECS_PER_HOUR +
		number_at(text + 14, 2) * SECS_PER_MINUTE + number_at(text + 17, 2);
	*millis = (date2j(year, month, day) - UNIX_EPOCH_JDATE) * MONGO_MILLIS_PER_DAY +
		seconds * INT64CONST(1000) + (length == 24 ? number_at(text + 20, 3) : 0);
	return true;
}

static bool
wrap_date(WRAPPER_ARGS)
{
	int64		millis;

	if (value->kind == JSON_STRING && iso_date_millis(value->text, value->text_length, &millis))
	{
		MONGO_WRITE(target, date_time, millis);
		return true;
	}
	if (value->kind == JSON_STRING)
	{
		/* raises what timestamptz says of a bad date */
		TimestampTz timestamp =
			DatumGetTimestampTz(DirectFunctionCall3(timestamptz_in,
													CStringGetDatum(mongo_from_utf8(value->text)),
													ObjectIdGetDatum(InvalidOid),
													Int32GetDatum(-1)));

		mongo_write_timestamp(target, TimestampTzGetDatum(timestamp), TIMESTAMPTZOID, -1);
		return true;
	}
	if (!(value->kind == JSON_NUMBER &&
		  parse_int64(value->text, PG_INT64_MIN, PG_INT64_MAX, &millis)) &&
		!parse_int64(string_member(value, "$numberLong"), PG_INT64_MIN,
					 PG_INT64_MAX, &millis))
		return false;
	MONGO_WRITE(target, date_time, millis);
	return true;
}

/* append_base64: base64 and a subtype in hexadecimal as a Binary. */
static bool
append_base64(const MongoWriteTarget *target, const char *base64, const char *subtype)
{
	int			size;
	int			length;
	uint8_t    *bytes;
	unsigned long number;

	if (base64 == NULL || subtype == NULL || strlen(subtype) > 2 || *subtype == '\0')
		return false;
	if (strspn(subtype, "0123456789abcdefABCDEF") != strlen(subtype))
		return false;
	number = strtoul(subtype, NULL, 16);
	size = pg_b64_dec_len(strlen(base64));
	bytes = palloc(Max(size, 1));
	length = mongo_base64_decode(base64, strlen(base64), bytes, size);
	if (length < 0)
		return false;
	MONGO_WRITE(target, binary, (bson_subtype_t) number, bytes, length);
	return true;
}

static bool
wrap_binary(WRAPPER_ARGS)
{
	/* the second is the form before version 2 */
	if (value->kind == JSON_OBJECT)
		return append_base64(target, string_member(value, "base64"),
							 string_member(value, "subType"));
	return append_base64(target, string_member(object, "$binary"),
						 string_member(object, "$type"));
}

static bool
wrap_uuid(WRAPPER_ARGS)
{
	if (value->kind != JSON_STRING)
		return false;
	mongo_write_uuid(target, DirectFunctionCall1(uuid_in, CStringGetDatum(mongo_from_utf8(value->text))),
					 UUIDOID, -1);
	return true;
}

static int
compare_characters(const void *left, const void *right)
{
	return *(const unsigned char *) left - *(const unsigned char *) right;
}

/*
 * write_regex
 *		A Regex with its options in the order that BSON wants, but all of them:
 *		libbson drops those that it does not know.
 */
static void
write_regex(const MongoWriteTarget *target, const char *pattern, const char *options)
{
	int			key_length = target->key_length < 0 ?
		(int) strlen(target->key) : target->key_length;
	int			options_length = strlen(options);
	char	   *sorted = pnstrdup(options, options_length);
	StringInfoData bytes;
	uint32		length;
	bson_t		element;

	qsort(sorted, options_length, 1, compare_characters);

	/* a document with this one element */
	initStringInfo(&bytes);
	appendStringInfoSpaces(&bytes, sizeof(length));
	appendStringInfoChar(&bytes, BSON_TYPE_REGEX);
	appendBinaryStringInfo(&bytes, target->key, key_length);
	appendStringInfoChar(&bytes, '\0');
	appendBinaryStringInfo(&bytes, pattern, strlen(pattern) + 1);
	appendBinaryStringInfo(&bytes, sorted, options_length + 1);
	appendStringInfoChar(&bytes, '\0');
	length = BSON_UINT32_TO_LE((uint32) bytes.len);
	memcpy(bytes.data, &length, sizeof(length));

	if (!bson_view(&element, (const uint8_t *) bytes.data, bytes.len))
		elog(ERROR, "malformed regular expression");
	mongo_write_check(bson_concat(target->document, &element));
}

static bool
wrap_regex(WRAPPER_ARGS)
{
	const char *pattern = string_member(value, "pattern");
	const char *options = string_member(value, "options");

	if (pattern == NULL || options == NULL)
		return false;
	write_regex(target, pattern, options);
	return true;
}

static bool
wrap_timestamp(WRAPPER_ARGS)
{
	const JsonNode *seconds = object_member(value, "t");
	const JsonNode *increment = object_member(value, "i");
	int64		t;
	int64		i;

	if (seconds == NULL || seconds->kind != JSON_NUMBER ||
		!parse_int64(seconds->text, 0, PG_UINT32_MAX, &t) ||
		increment == NULL || increment->kind != JSON_NUMBER ||
		!parse_int64(increment->text, 0, PG_UINT32_MAX, &i))
		return false;
	MONGO_WRITE(target, timestamp, (uint32) t, (uint32) i);
	return true;
}

static void write_members(bson_t *document, const JsonNode *object);

static bool
wrap_code(WRAPPER_ARGS)
{
	const JsonNode *scope = object_member(object, "$scope");
	const char *code = string_member(object, "$code");

	if (code == NULL || (object->count == 2 && (scope == NULL || scope->kind != JSON_OBJECT)))
		return false;
	if (scope == NULL)
		MONGO_WRITE(target, code, code);
	else
	{
		bson_t	   *scope_bson = bson_create_in(CurrentMemoryContext);

		write_members(scope_bson, scope);
		MONGO_WRITE(target, code_with_scope, code, scope_bson);
	}
	return true;
}

static bool
wrap_symbol(WRAPPER_ARGS)
{
	const char *symbol;

	if (value->kind != JSON_STRING)
		return false;
	symbol = value->text;
	MONGO_WRITE(target, symbol, symbol, strlen(symbol));
	return true;
}

static bool
wrap_min_key(WRAPPER_ARGS)
{
	if (value->kind != JSON_NUMBER || strcmp(value->text, "1") != 0)
		return false;
	MONGO_WRITE(target, minkey);
	return true;
}

static bool
wrap_max_key(WRAPPER_ARGS)
{
	if (value->kind != JSON_NUMBER || strcmp(value->text, "1") != 0)
		return false;
	MONGO_WRITE(target, maxkey);
	return true;
}

static bool
wrap_undefined(WRAPPER_ARGS)
{
	if (value->kind != JSON_BOOLEAN || !value->truth)
		return false;
	MONGO_WRITE(target, undefined);
	return true;
}

static bool
wrap_dbpointer(WRAPPER_ARGS)
{
	const char *collection = string_member(value, "$ref");
	const JsonNode *id = object_member(value, "$id");
	const char *hex = id != NULL ? string_member(id, "$oid") : NULL;
	bson_oid_t	oid;

	if (collection == NULL || hex == NULL ||
		!mongo_objectid_from_text(hex, strlen(hex), false, &oid))
		return false;
	MONGO_WRITE(target, dbpointer, collection, &oid);
	return true;
}

static const struct
{
	const char *key;
	const char *second_key;		/* a second member it may have, or NULL */
	WrapperFunction write;
}			wrappers[] = {
	{"$oid", NULL, wrap_oid},
	{"$date", NULL, wrap_date},
	{"$numberInt", NULL, wrap_int},
	{"$numberLong", NULL, wrap_long},
	{"$numberDouble", NULL, wrap_double},
	{"$numberDecimal", NULL, wrap_decimal},
	{"$binary", "$type", wrap_binary},
	{"$uuid", NULL, wrap_uuid},
	{"$regularExpression", NULL, wrap_regex},
	{"$timestamp", NULL, wrap_timestamp},
	{"$code", "$scope", wrap_code},
	{"$symbol", NULL, wrap_symbol},
	{"$minKey", NULL, wrap_min_key},
	{"$maxKey", NULL, wrap_max_key},
	{"$undefined", NULL, wrap_undefined},
	{"$dbPointer", NULL, wrap_dbpointer},
};

static bool
is_key(const char *name, const char *key, uint32 length)
{
	return strlen(name) == length && memcmp(name, key, length) == 0;
}

bool
mongo_may_be_wrapper(const char *key, uint32 length)
{
	if (length == 0 || key[0] != '$')
		return false;
	for (size_t i = 0; i < lengthof(wrappers); i++)
	{
		if (is_key(wrappers[i].key, key, length) ||
			(wrappers[i].second_key != NULL && is_key(wrappers[i].second_key, key, length)))
			return true;
	}
	return false;
}

/*
 * write_wrapper
 *		Write an object that is a wrapper; false when it is a document.
 *
 * An object with a wrapper's key and nothing it may not have is one, and then
 * has to be well-formed.  Any other key with a dollar sign is a field's name
 * like any other: commands and pipelines are full of them.
 */
static bool
write_wrapper(const MongoWriteTarget *target, const JsonNode *object)
{
	if (object->count < 1 || object->count > 2)
		return false;
	for (size_t i = 0; i < lengthof(wrappers); i++)
	{
		const JsonNode *value = object_member(object, wrappers[i].key);

		if (value == NULL)
			continue;
		if (object->count == 2 && (wrappers[i].second_key == NULL ||
								   object_member(object, wrappers[i].second_key) == NULL))
			return false;
		if (!wrappers[i].write(target, object, value))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("malformed Extended JSON for \"%s\"", wrappers[i].key)));
		return true;
	}
	return false;
}

/*
 * Documents
 */

static void
write_members(bson_t *document, const JsonNode *object)
{
	for (const JsonNode *node = object->first; node; node = node->next)
	{
		MongoWriteTarget target = {.document = document};

		CHECK_FOR_INTERRUPTS();
		target.key = node->key;
		target.key_length = node->key_length;
		mongo_write_json_tree(&target, node);
	}
}

static void
write_elements(bson_t *array, const JsonNode *node)
{
	char		buffer[16];
	uint32		position = 0;

	for (const JsonNode *element = node->first; element; element = element->next)
	{
		MongoWriteTarget target = {.document = array};

		CHECK_FOR_INTERRUPTS();
		target.key_length = (int) bson_uint32_to_string(position++, &target.key,
														buffer, sizeof(buffer));
		mongo_write_json_tree(&target, element);
	}
}

void
mongo_write_json_tree(const MongoWriteTarget *target, const JsonNode *node)
{
	bson_t		nested;

	check_stack_depth();

	switch (node->kind)
	{
		case JSON_OBJECT:
			if (write_wrapper(target, node))
				break;
			MONGO_WRITE(target, document_begin, &nested);
			write_members(&nested, node);
			mongo_write_check(bson_append_document_end(target->document, &nested));
			break;
		case JSON_ARRAY:
			MONGO_WRITE(target, array_begin, &nested);
			write_elements(&nested, node);
			mongo_write_check(bson_append_array_end(target->document, &nested));
			break;
		case JSON_STRING:
			MONGO_WRITE(target, utf8, node->text, node->text_length);
			break;
		case JSON_NUMBER:
			mongo_write_json_number(target, node->text);
			break;
		case JSON_BOOLEAN:
			MONGO_WRITE(target, bool, node->truth);
			break;
		case JSON_NULL:
			MONGO_WRITE(target, null);
			break;
	}
}
