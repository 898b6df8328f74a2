/*-------------------------------------------------------------------------
 *
 * reply_check.c
 *		Is a reply's document one that libmongoc survives?
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "reply_check.h"

#include "frame.h"

/*
 * Of a password's hash, in which nothing can be interrupted: a third of a second.
 * MongoDB's own are 10,000 (SCRAM-SHA-1) and 15,000 (SCRAM-SHA-256), unless an
 * administrator raises them.
 */
#define MOST_ITERATIONS	100000
#define TOO_MANY_ITERATIONS \
	"It asks for more than " CppAsString2(MOST_ITERATIONS) " iterations of a password's hash."

#define IMPOSSIBLE_VALUE	"A field of the reply has a value that it cannot have."

/* The deepest that libmongoc goes: {writeErrors: [{field: document}]}. */
#define LEVELS	3

/* is_whole: down to the documents so many levels below, whose insides are not. */
static bool
is_whole(const uint8 *document, size_t length, int levels)
{
	bson_iter_t iter;

	if (length < SMALLEST_DOCUMENT || get_int32(document) != length ||
		document[length - 1] != '\0')
		return false;
	if (levels == 0)
		return true;
	if (!bson_iter_init_from_data(&iter, document, length))
		return false;
	while (bson_iter_next(&iter))
	{
		const uint8_t *nested = NULL;
		uint32_t	nested_length = 0;

		if (BSON_ITER_HOLDS_DOCUMENT(&iter))
			bson_iter_document(&iter, &nested_length, &nested);
		else if (BSON_ITER_HOLDS_ARRAY(&iter))
			bson_iter_array(&iter, &nested_length, &nested);
		else
			continue;
		if (!is_whole(nested, nested_length, levels - 1))
			return false;
	}
	return iter.err_off == 0;
}

/* is_document: or an array, which libmongoc enters in the same way. */
static bool
is_document(const bson_iter_t *field)
{
	return BSON_ITER_HOLDS_DOCUMENT(field) || BSON_ITER_HOLDS_ARRAY(field);
}

/* check_iterations: NULL unless the number at 'digits' is too large. */
static const char *
check_iterations(const uint8_t *digits, const uint8_t *end)
{
	int64		iterations = 0;

	for (; digits < end && *digits != ','; digits++)
	{
		iterations = iterations * 10 + (*digits >= '0' && *digits <= '9' ? *digits - '0' : 0);
		if (iterations > MOST_ITERATIONS)
			return TOO_MANY_ITERATIONS;
	}
	return NULL;
}

/*
 * check_scram_message: "r=...,s=...,i=4096" and the like (RFC 5802), as far as
 * libmongoc reads on; other mechanisms' are not like that.
 */
static const char *
check_scram_message(const bson_iter_t *field)
{
	bson_subtype_t subtype;
	uint32_t	length;
	const uint8_t *next;
	const uint8_t *end;

	if (!BSON_ITER_HOLDS_BINARY(field))
		return NULL;
	bson_iter_binary(field, &subtype, &length, &next);
	for (end = next + length; next < end; next++)
	{
		char		attribute = *next++;
		const char *violation;

		if (attribute == '\0' || strchr("rsive", attribute) == NULL)
			return NULL;
		if (next == end)
			return IMPOSSIBLE_VALUE;	/* can go with libmongoc before 2.4 */
		if (*next++ != '=')
			return NULL;
		violation = attribute == 'i' ? check_iterations(next, end) : NULL;
		if (violation != NULL)
			return violation;
		while (next < end && *next != ',')
			next++;
	}
	return NULL;
}

/* check_authentication: the answer to what "hello" asks ahead of time */
static const char *
check_authentication(const bson_iter_t *field)
{
	bson_iter_t nested;

	if (!BSON_ITER_HOLDS_DOCUMENT(field) || !bson_iter_recurse(field, &nested))
		return IMPOSSIBLE_VALUE;
	while (bson_iter_next(&nested))
	{
		const char *violation = strcmp(bson_iter_key(&nested), "payload") == 0 ?
			check_scram_message(&nested) : NULL;

		if (violation != NULL)
			return violation;
	}
	return NULL;
}

/* each_is: of an array's elements; libmongoc itself looks whether it is one. */
static bool
each_is(const bson_iter_t *field, bool (*is_good) (const bson_iter_t *element))
{
	bson_iter_t element;

	if (!BSON_ITER_HOLDS_ARRAY(field) || !bson_iter_recurse(field, &element))
		return true;
	while (bson_iter_next(&element))
	{
		if (!is_good(&element))
			return false;
	}
	return true;
}

static bool
is_string(const bson_iter_t *field)
{
	return BSON_ITER_HOLDS_UTF8(field);
}

static bool
has_strings_alone(const bson_iter_t *field)
{
	return each_is(field, is_string);
}

/* is_code: as libmongoc has it, in 32 bits */
static bool
is_code(const bson_iter_t *field)
{
	return !BSON_ITER_HOLDS_NUMBER(field) || (uint32) bson_iter_as_int64(field) != 0;
}

/* is_error: of a write or a write concern */
static bool
is_error(const bson_iter_t *field)
{
	bson_iter_t nested;

	if (!is_document(field) || !bson_iter_recurse(field, &nested))
		return false;
	while (bson_iter_next(&nested))
	{
		const char *name = bson_iter_key(&nested);

		if (strcmp(name, "code") == 0 && !is_code(&nested))
			return false;
		if (strcmp(name, "errmsg") == 0 && !BSON_ITER_HOLDS_UTF8(&nested))
			return false;
	}
	return true;
}

static bool
has_errors_alone(const bson_iter_t *field)
{
	return each_is(field, is_error);
}

/*
 * Fields that libmongoc trusts: for each a test, or a check that says itself what is
 * wrong.  By libmongoc's sources, 1.23.1 and 2.5.0 need all of them, but for one: an
 * attribute of a SCRAM message that ends before its "=" is noticed by libmongoc
 * itself from 2.4.0 on.
 */
static const struct
{
	const char *name;
	bool		(*is_good) (const bson_iter_t *field);
	const char *(*check) (const bson_iter_t *field);
}			trusted_fields[] =
{
	{"arbiters", .is_good = has_strings_alone},
	{"code", .is_good = is_code},
	{"compression", .is_good = has_strings_alone},
	{"errorLabels", .is_good = is_document},
	{"hosts", .is_good = has_strings_alone},
	{"passives", .is_good = has_strings_alone},
	{"payload", .check = check_scram_message},
	{"speculativeAuthenticate", .check = check_authentication},
	{"writeConcernError", .is_good = is_error},
	{"writeErrors", .is_good = has_errors_alone},
};

/* check_field: what is wrong with a field that libmongoc trusts, or NULL. */
static const char *
check_field(const bson_iter_t *field)
{
	const char *name = bson_iter_key(field);

	for (size_t i = 0; i < lengthof(trusted_fields); i++)
	{
		if (strcmp(trusted_fields[i].name, name) != 0)
			continue;
		if (trusted_fields[i].check != NULL)
			return trusted_fields[i].check(field);
		return trusted_fields[i].is_good(field) ? NULL : IMPOSSIBLE_VALUE;
	}
	return NULL;
}

const char *
mongo_reply_check(const uint8 *document, size_t length)
{
	bson_iter_t iter;

	if (!is_whole(document, length, LEVELS) ||
		!bson_iter_init_from_data(&iter, document, length))
		return "The reply is not valid BSON.";
	while (bson_iter_next(&iter))
	{
		const char *violation = check_field(&iter);

		if (violation != NULL)
			return violation;
	}
	return NULL;
}
