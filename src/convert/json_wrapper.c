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
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

/* wrapped_text: a String's text, or NULL. */
static const char *
wrapped_text(const bson_iter_t *value)
{
	return BSON_ITER_HOLDS_UTF8(value) ? bson_iter_utf8(value, NULL) : NULL;
}

/* wrapped_member: of a document. */
static bool
wrapped_member(const bson_iter_t *value, const char *key, bson_iter_t *member)
{
	return BSON_ITER_HOLDS_DOCUMENT(value) && bson_iter_recurse(value, member) &&
		bson_iter_find(member, key);
}

/* member_text: of a document's member that is a String, or NULL. */
static const char *
member_text(const bson_iter_t *value, const char *key)
{
	bson_iter_t member;

	return wrapped_member(value, key, &member) ? wrapped_text(&member) : NULL;
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
 * Each takes the value of the wrapper's key, and that of its second key or NULL; false
 * when it is not what the specification says.  A number that was a wrapper itself is not
 * 'plain': canonical JSON has a document like that for what only looks like a wrapper.
 */
#define WRAPPER_ARGS \
	const MongoWriteTarget *target, const bson_iter_t *value, \
	const bson_iter_t *second pg_attribute_unused(), bool plain pg_attribute_unused()

typedef bool (*WrapperFunction) (WRAPPER_ARGS);

static bool
wrap_oid(WRAPPER_ARGS)
{
	const char *text = wrapped_text(value);
	bson_oid_t	oid;

	if (text == NULL || !mongo_objectid_from_text(text, strlen(text), false, &oid))
		return false;
	MONGO_WRITE(target, oid, &oid);
	return true;
}

static bool
wrap_int(WRAPPER_ARGS)
{
	int64		number;

	if (!parse_int64(wrapped_text(value), PG_INT32_MIN, PG_INT32_MAX, &number))
		return false;
	MONGO_WRITE(target, int32, (int32) number);
	return true;
}

static bool
wrap_long(WRAPPER_ARGS)
{
	int64		number;

	if (!parse_int64(wrapped_text(value), PG_INT64_MIN, PG_INT64_MAX, &number))
		return false;
	MONGO_WRITE(target, int64, number);
	return true;
}

static bool
wrap_double(WRAPPER_ARGS)
{
	const char *text = wrapped_text(value);
	double		number;
	char	   *end;

	if (text == NULL || *text == '\0')
		return false;
	number = strtod(text, &end);
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
	const char *text = wrapped_text(value);
	bson_decimal128_t decimal;

	if (text == NULL || !bson_decimal128_from_string(text, &decimal))
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
	const char *text = wrapped_text(value);
	int64		millis;

	if (text != NULL && !iso_date_millis(text, strlen(text), &millis))
	{
		/* raises what timestamptz says of a bad date */
		TimestampTz timestamp =
			DatumGetTimestampTz(DirectFunctionCall3(timestamptz_in,
													CStringGetDatum(mongo_from_utf8(text)),
													ObjectIdGetDatum(InvalidOid),
													Int32GetDatum(-1)));

		mongo_write_timestamp(target, TimestampTzGetDatum(timestamp), TIMESTAMPTZOID, -1);
		return true;
	}
	if (text == NULL && !BSON_ITER_HOLDS_INT64(value) &&
		!(BSON_ITER_HOLDS_INT32(value) && plain))
		return false;
	if (text == NULL)
		millis = bson_iter_as_int64(value);
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
	if (BSON_ITER_HOLDS_DOCUMENT(value))
		return append_base64(target, member_text(value, "base64"),
							 member_text(value, "subType"));
	return append_base64(target, wrapped_text(value), second != NULL ? wrapped_text(second) : NULL);
}

static bool
wrap_uuid(WRAPPER_ARGS)
{
	const char *text = wrapped_text(value);

	if (text == NULL)
		return false;
	mongo_write_uuid(target, DirectFunctionCall1(uuid_in, CStringGetDatum(mongo_from_utf8(text))),
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
	const char *pattern = member_text(value, "pattern");
	const char *options = member_text(value, "options");

	if (pattern == NULL || options == NULL)
		return false;
	write_regex(target, pattern, options);
	return true;
}

/* member_uint32: of a document's member that is such an integer. */
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

static bool
wrap_timestamp(WRAPPER_ARGS)
{
	uint32		seconds;
	uint32		increment;

	if (!plain || !member_uint32(value, "t", &seconds) || !member_uint32(value, "i", &increment))
		return false;
	MONGO_WRITE(target, timestamp, seconds, increment);
	return true;
}

static bool
wrap_code(WRAPPER_ARGS)
{
	const char *code = wrapped_text(value);
	bson_t		scope;

	if (code == NULL || (second != NULL &&
						 !(BSON_ITER_HOLDS_DOCUMENT(second) && bson_view_at(&scope, second))))
		return false;
	if (second == NULL)
		MONGO_WRITE(target, code, code);
	else
		MONGO_WRITE(target, code_with_scope, code, &scope);
	return true;
}

static bool
wrap_symbol(WRAPPER_ARGS)
{
	const char *symbol = wrapped_text(value);

	if (symbol == NULL)
		return false;
	MONGO_WRITE(target, symbol, symbol, strlen(symbol));
	return true;
}

static bool
wrap_extreme_key(WRAPPER_ARGS)
{
	if (!plain || !BSON_ITER_HOLDS_INT32(value) || bson_iter_int32(value) != 1)
		return false;
	if (strcmp(bson_iter_key(value), "$minKey") == 0)
		MONGO_WRITE(target, minkey);
	else
		MONGO_WRITE(target, maxkey);
	return true;
}

static bool
wrap_undefined(WRAPPER_ARGS)
{
	if (!BSON_ITER_HOLDS_BOOL(value) || !bson_iter_bool(value))
		return false;
	MONGO_WRITE(target, undefined);
	return true;
}

static bool
wrap_dbpointer(WRAPPER_ARGS)
{
	const char *collection = member_text(value, "$ref");
	bson_iter_t id;

	if (collection == NULL || !wrapped_member(value, "$id", &id) || !BSON_ITER_HOLDS_OID(&id))
		return false;
	MONGO_WRITE(target, dbpointer, collection, bson_iter_oid(&id));
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
	{"$minKey", NULL, wrap_extreme_key},
	{"$maxKey", NULL, wrap_extreme_key},
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
 * mongo_write_wrapper
 *
 * An object with a wrapper's key and nothing it may not have is one, and then
 * has to be well-formed.  Any other key with a dollar sign is a field's name
 * like any other: commands and pipelines are full of them.
 */
bool
mongo_write_wrapper(const MongoWriteTarget *target, const bson_t *object, bool plain)
{
	bson_iter_t one;
	bson_iter_t two;
	bool		has_two;

	if (!bson_iter_init(&one, object) || !bson_iter_next(&one))
		return false;
	two = one;
	has_two = bson_iter_next(&two);
	if (has_two)
	{
		bson_iter_t three = two;

		if (bson_iter_next(&three))
			return false;
	}
	for (size_t i = 0; i < lengthof(wrappers); i++)
	{
		const bson_iter_t *value = &one;
		const bson_iter_t *second = has_two ? &two : NULL;

		if (strcmp(bson_iter_key(value), wrappers[i].key) != 0)
		{
			if (!has_two || strcmp(bson_iter_key(second), wrappers[i].key) != 0)
				continue;
			value = &two;
			second = &one;
		}
		if (has_two && (wrappers[i].second_key == NULL ||
						strcmp(bson_iter_key(second), wrappers[i].second_key) != 0))
			return false;
		if (!wrappers[i].write(target, value, second, plain))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("malformed Extended JSON for \"%s\"", wrappers[i].key)));
		return true;
	}
	return false;
}
