/*-------------------------------------------------------------------------
 *
 * text_range.c
 *		Comparing columns of the text family, which read Strings and ObjectIds.
 *
 * An ObjectId reads as 24 lower-case hexadecimal digits, whose order is that
 * of its bytes.  So a text that is such a number equals two BSON values, and
 * a range of texts is a range of Strings and one of ObjectIds.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_memory.h"
#include "comparison.h"
#include "objectid.h"
#include "text_range.h"

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

/* Where the ObjectIds' texts begin that are not below a given text. */
typedef struct ObjectIdBound
{
	bool		none;			/* all of them are below it */
	bool		equal;			/* the first is the text itself */
	bson_oid_t	first;
} ObjectIdBound;

/* text_value gives a text-family Datum as UTF-8; not NUL-terminated. */
static const char *
text_value(Oid type, Datum value, int *length)
{
	const char *string;
	char	   *converted;

	if (type == NAMEOID)
	{
		string = NameStr(*DatumGetName(value));
		*length = strlen(string);
	}
	else
	{
		text	   *packed = DatumGetTextPP(value);

		string = VARDATA_ANY(packed);
		*length = VARSIZE_ANY_EXHDR(packed);
	}

	converted = pg_server_to_any(string, *length, PG_UTF8);
	if (converted != string)
		*length = strlen(converted);
	return converted;
}

int
mongo_text_points(const MongoPredicate *predicate, Datum value, bson_t *array,
				  int index)
{
	int			length;
	const char *string = text_value(predicate->value_type, value, &length);
	char		key[16];
	bson_oid_t	oid;

	snprintf(key, sizeof(key), "%d", index);
	bson_append_utf8(array, key, -1, string, length);
	if (!mongo_objectid_from_text(string, length, true, &oid))
		return 1;

	snprintf(key, sizeof(key), "%d", index + 1);
	BSON_APPEND_OID(array, key, &oid);
	return 2;
}

/*
 * least_digit_above gives the least hexadecimal digit that sorts after 'c',
 * or NUL when there is none.
 */
static char
least_digit_above(char c)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < lengthof(digits) - 1; i++)
	{
		if ((unsigned char) digits[i] > (unsigned char) c)
			return digits[i];
	}
	return '\0';
}

/*
 * find_objectid_bound finds the least 24-digit text that does not sort before
 * 'string'.
 */
static void
find_objectid_bound(const char *string, int length, ObjectIdBound *bound)
{
	char		digits[MONGO_OBJECTID_TEXT_LENGTH + 1];
	int			common = 0;

	memset(bound, 0, sizeof(*bound));
	memset(digits, '0', MONGO_OBJECTID_TEXT_LENGTH);
	digits[MONGO_OBJECTID_TEXT_LENGTH] = '\0';

	while (common < length && common < MONGO_OBJECTID_TEXT_LENGTH &&
		   memchr("0123456789abcdef", string[common], 16) != NULL)
	{
		digits[common] = string[common];
		common++;
	}

	if (common == MONGO_OBJECTID_TEXT_LENGTH && length == MONGO_OBJECTID_TEXT_LENGTH)
		bound->equal = true;
	else if (common < length)
	{
		/*
		 * Nothing with this prefix and the string's next byte is there: raise
		 * the digit at that place, or the last one before that can be raised.
		 */
		int			place = common;
		char		digit = place < MONGO_OBJECTID_TEXT_LENGTH ?
			least_digit_above(string[place]) : '\0';

		while (digit == '\0')
		{
			if (place == 0)
			{
				bound->none = true;
				return;
			}
			place--;
			digit = least_digit_above(digits[place]);
		}
		digits[place] = digit;
		memset(digits + place + 1, '0', MONGO_OBJECTID_TEXT_LENGTH - place - 1);
	}

	mongo_objectid_from_text(digits, MONGO_OBJECTID_TEXT_LENGTH, true, &bound->first);
}

/* append_objectid_range: false when no ObjectId is in the range. */
static bool
append_objectid_range(const MongoPredicate *predicate, const ObjectIdBound *bound,
					  bson_t *match)
{
	bool		upper = mongo_is_upper_bound(predicate->strategy);
	const char *operator;
	bson_t		operators;

	if (bound->none && !upper)
		return false;

	BSON_APPEND_DOCUMENT_BEGIN(match, predicate->path, &operators);
	if (bound->none)
		BSON_APPEND_UTF8(&operators, "$type", "objectId");
	else
	{
		if (predicate->strategy == BTLessEqualStrategyNumber && bound->equal)
			operator = "$lte";
		else if (upper)
			operator = "$lt";
		else if (predicate->strategy == BTGreaterStrategyNumber && bound->equal)
			operator = "$gt";
		else
			operator = "$gte";
		BSON_APPEND_OID(&operators, operator, &bound->first);
	}
	bson_append_document_end(match, &operators);
	return true;
}

/* append_string_range: {path: {$op: "string"}} */
static void
append_string_range(const MongoPredicate *predicate, const char *string, int length,
					bson_t *match)
{
	bson_t		operators;

	BSON_APPEND_DOCUMENT_BEGIN(match, predicate->path, &operators);
	bson_append_utf8(&operators, mongo_find_operators[predicate->strategy], -1,
					 string, length);
	bson_append_document_end(match, &operators);
}

MongoMatch
mongo_text_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	int			length;
	const char *string = text_value(predicate->value_type, value, &length);
	ObjectIdBound bound;
	bson_t		branches;
	bson_t		branch;
	bson_t	   *of_objectids = bson_create_in(CurrentMemoryContext);

	find_objectid_bound(string, length, &bound);

	BSON_APPEND_ARRAY_BEGIN(match, "$or", &branches);
	BSON_APPEND_DOCUMENT_BEGIN(&branches, "0", &branch);
	append_string_range(predicate, string, length, &branch);
	bson_append_document_end(&branches, &branch);

	if (append_objectid_range(predicate, &bound, of_objectids))
		BSON_APPEND_DOCUMENT(&branches, "1", of_objectids);

	bson_append_array_end(match, &branches);
	return MONGO_MATCH_SOME;
}
