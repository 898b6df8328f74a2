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

/* Of a password's hash; ten seconds in which nothing can be interrupted. */
#define MOST_ITERATIONS	10000000

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

/* is_document: it may be an array, which libmongoc enters just so. */
static bool
is_document(const bson_iter_t *field)
{
	return BSON_ITER_HOLDS_DOCUMENT(field) || BSON_ITER_HOLDS_ARRAY(field);
}

/*
 * is_scram_message: "r=...,s=...,i=4096" and the like (RFC 5802), as far as
 * libmongoc reads on; other mechanisms' are not like that.
 */
static bool
is_scram_message(const bson_iter_t *field)
{
	bson_subtype_t subtype;
	uint32_t	length;
	const uint8_t *next;
	const uint8_t *end;

	if (!BSON_ITER_HOLDS_BINARY(field))
		return true;
	bson_iter_binary(field, &subtype, &length, &next);
	for (end = next + length; next < end; next++)
	{
		char		attribute = *next++;
		int64		iterations = 0;

		if (attribute == '\0' || strchr("rsive", attribute) == NULL)
			return true;
		if (next == end)
			return false;
		if (*next++ != '=')
			return true;
		for (; next < end && *next != ','; next++)
		{
			if (attribute != 'i')
				continue;
			iterations = iterations * 10 + (*next >= '0' && *next <= '9' ? *next - '0' : 0);
			if (iterations > MOST_ITERATIONS)
				return false;
		}
	}
	return true;
}

/* is_authentication: the answer to what "hello" asks ahead of time */
static bool
is_authentication(const bson_iter_t *field)
{
	bson_iter_t nested;

	if (!BSON_ITER_HOLDS_DOCUMENT(field) || !bson_iter_recurse(field, &nested))
		return false;
	while (bson_iter_next(&nested))
	{
		if (strcmp(bson_iter_key(&nested), "payload") == 0 && !is_scram_message(&nested))
			return false;
	}
	return true;
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

/* What libmongoc does not look at before it takes it. */
static const struct
{
	const char *name;
	bool		(*is_good) (const bson_iter_t *field);
}			trusted_fields[] =
{
	{"arbiters", has_strings_alone},
	{"code", is_code},
	{"compression", has_strings_alone},
	{"errorLabels", is_document},
	{"hosts", has_strings_alone},
	{"passives", has_strings_alone},
	{"payload", is_scram_message},
	{"speculativeAuthenticate", is_authentication},
	{"writeConcernError", is_error},
	{"writeErrors", has_errors_alone},
};

static bool
is_good(const bson_iter_t *field)
{
	const char *name = bson_iter_key(field);

	for (size_t i = 0; i < lengthof(trusted_fields); i++)
	{
		if (strcmp(trusted_fields[i].name, name) == 0)
			return trusted_fields[i].is_good(field);
	}
	return true;
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
		if (!is_good(&iter))
			return "A field of the reply has a value that it cannot have.";
	}
	return NULL;
}
