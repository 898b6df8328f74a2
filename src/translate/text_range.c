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

#include "bson_write.h"
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

/* text_in_utf8 gives a text-family Datum as UTF-8; not NUL-terminated. */
static const char *
text_in_utf8(Oid type, Datum value, int *length)
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

void
mongo_string_points(const MongoPredicate *predicate, Datum value, BsonArray *points)
{
	int			length;
	const char *string = text_in_utf8(predicate->value_type, value, &length);

	bson_array_append(points, bson_utf8_sized(string, length));
}

void
mongo_objectid_text_points(const MongoPredicate *predicate, Datum value, BsonArray *points)
{
	int			length;
	const char *string = text_in_utf8(predicate->value_type, value, &length);
	bson_oid_t	oid;

	if (mongo_objectid_from_text(string, length, true, &oid))
		bson_array_append(points, bson_oid(&oid));
}

void
mongo_text_points(const MongoPredicate *predicate, Datum value, BsonArray *points)
{
	mongo_string_points(predicate, value, points);
	mongo_objectid_text_points(predicate, value, points);
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

/* objectid_operator: of the range's bound that the first ObjectId is. */
static const char *
objectid_operator(int strategy, const ObjectIdBound *bound)
{
	if (mongo_is_upper_bound(strategy))
		return strategy == BTLessEqualStrategyNumber && bound->equal ? "$lte" : "$lt";
	return strategy == BTGreaterStrategyNumber && bound->equal ? "$gt" : "$gte";
}

MongoMatch
mongo_string_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	int			length;
	const char *string = text_in_utf8(predicate->value_type, value, &length);

	bson_append_condition(match, predicate->path, mongo_find_operators[predicate->strategy],
						  bson_utf8_sized(string, length));
	return MONGO_MATCH_SOME;
}

MongoMatch
mongo_objectid_text_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	int			length;
	const char *string = text_in_utf8(predicate->value_type, value, &length);
	ObjectIdBound bound;

	find_objectid_bound(string, length, &bound);
	if (!bound.none)
		bson_append_condition(match, predicate->path,
							  objectid_operator(predicate->strategy, &bound),
							  bson_oid(&bound.first));
	else if (mongo_is_upper_bound(predicate->strategy))
		bson_append_condition(match, predicate->path, "$type", bson_utf8("objectId"));
	else
	{
		bson_append_template(match, "{@1: {$in: []}}", bson_utf8(predicate->path));
		return MONGO_MATCH_NONE;
	}
	return MONGO_MATCH_SOME;
}

MongoMatch
mongo_text_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	int			length;
	const char *string = text_in_utf8(predicate->value_type, value, &length);
	bson_value_t path = bson_utf8(predicate->path);
	bson_value_t operator = bson_utf8(mongo_find_operators[predicate->strategy]);
	bson_value_t text = bson_utf8_sized(string, length);
	ObjectIdBound bound;

	find_objectid_bound(string, length, &bound);
	if (!bound.none)
		bson_append_template(match, "{$or: [{@1: {@2: @3}}, {@1: {@4: @5}}]}",
							 path, operator, text,
							 bson_utf8(objectid_operator(predicate->strategy, &bound)),
							 bson_oid(&bound.first));
	else if (mongo_is_upper_bound(predicate->strategy))
		bson_append_template(match, "{$or: [{@1: {@2: @3}}, {@1: {$type: 'objectId'}}]}",
							 path, operator, text);
	else
		bson_append_template(match, "{$or: [{@1: {@2: @3}}]}", path, operator, text);
	return MONGO_MATCH_SOME;
}
