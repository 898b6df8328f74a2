/*-------------------------------------------------------------------------
 *
 * json_text.c
 *		Conditions on the text of what is inside json: ->> and #>>.
 *
 * A String's text is the String.  Other values have their JSON for text, whose first
 * character tells what they are, so that few of them come into question.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "json_text.h"

#include "strategy.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

/*
 * What is no String, with the characters that its text begins with.  For arrays
 * MongoDB has no bounds of an index, and for Symbols those of Strings, but would read
 * all of that: $nor keeps it from it.
 */
static const struct
{
	const char *first;
	const char *template;
}			classes[] =
{
	{"-0123456789", "{@1: {$type: 'number'}}"},
	{"tf", "{@1: {$type: 'bool'}}"},
	{"[", "{$nor: [{@1: {$not: {$type: 'array'}}}]}"},
	{"{", "{@1: {$type: ['object', 'number', 'binData', 'objectId', 'date', 'regex', 'timestamp', "
	"'javascript', 'javascriptWithScope', 'dbPointer', 'undefined', 'minKey', 'maxKey']}}"},
	{"{", "{$nor: [{@1: {$not: {$type: 'symbol'}}}]}"},
};

void
mongo_append_other_json(BsonArray *branches, const char *path,
						bool (*may_begin) (const void *context, char first),
						const void *context)
{
	for (size_t i = 0; i < lengthof(classes); i++)
	{
		for (const char *first = classes[i].first; *first != '\0'; first++)
		{
			if (!may_begin(context, *first))
				continue;
			bson_array_append_template(branches, classes[i].template, bson_utf8(path));
			break;
		}
	}
}

/* A text in UTF-8 that others are compared with, byte by byte. */
typedef struct TextBound
{
	const char *string;			/* NULL: there is none */
	int			length;
} TextBound;

/* Between which texts are. */
typedef struct TextRange
{
	TextBound	lower;
	TextBound	upper;
} TextRange;

static TextBound
text_bound(Datum value)
{
	text	   *packed = DatumGetTextPP(value);
	TextBound	bound = {.length = (int) VARSIZE_ANY_EXHDR(packed)};

	bound.string = pg_server_to_any(VARDATA_ANY(packed), bound.length, PG_UTF8);
	if (bound.string != VARDATA_ANY(packed))
		bound.length = (int) strlen(bound.string);
	return bound;
}

/* may_begin_in_range: may a text within the range begin so? */
static bool
may_begin_in_range(const void *context, char first)
{
	const TextRange *range = context;
	const TextBound *lower = &range->lower;
	const TextBound *upper = &range->upper;

	return (lower->string == NULL || lower->length == 0 ||
			(unsigned char) first >= (unsigned char) lower->string[0]) &&
		(upper->string == NULL ||
		 (upper->length > 0 && (unsigned char) first <= (unsigned char) upper->string[0]));
}

/* append_number_point: the number, if the whole text is one. */
static void
append_number_point(const char *text, BsonArray *points)
{
	char	   *end;
	double		number;
	int64		integer;

	if (strchr("-0123456789", text[0]) == NULL || strpbrk(text, "xXnN") != NULL)
		return;
	number = strtod(text, &end);
	if (end == text || *end != '\0' || !isfinite(number))
		return;
	errno = 0;
	integer = strtoll(text, &end, 10);
	if (*end == '\0' && errno == 0)
		bson_array_append(points, bson_integer(integer));
	if (*end != '\0' || errno != 0 || (double) integer != number || fabs(number) >= INT64CONST(1) << 53)
		bson_array_append(points, bson_double(number));
}

/* append_equal: a String, or a number or Boolean with this text. */
static void
append_equal(const char *path, const char *string, int length, bson_t *match)
{
	char	   *text = pnstrdup(string, length);
	BsonArray	points = bson_array_create();

	if (length > 0 && strchr("{[", text[0]) != NULL)
	{
		bson_append_condition(match, path, "$exists", bson_bool(true));
		return;
	}
	bson_array_append(&points, bson_utf8_sized(string, length));
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		bson_array_append(&points, bson_bool(text[0] == 't'));
	else if (length > 0)
		append_number_point(text, &points);
	if (points.count == 1)
		bson_append_condition(match, path, "$eq", bson_first(points.bson));
	else
		bson_append_condition(match, path, "$in", bson_array(points.bson));
}

/* A longer bound is said once, for a command has 16 MB. */
#define LONGEST_OTHER_BOUND	(64 * 1024)

/* append_strings: of the field that are within the range. */
static void
append_strings(const MongoPredicate *predicate, const TextRange *range, BsonArray *branches)
{
	bool		is_upper = mongo_is_upper_bound(predicate->strategy);
	const TextBound *own = is_upper ? &range->upper : &range->lower;
	const TextBound *other = is_upper ? &range->lower : &range->upper;
	bson_value_t path = bson_utf8(predicate->path);
	bson_value_t operator = bson_utf8(mongo_find_operators[predicate->strategy]);
	bson_value_t value = bson_utf8_sized(own->string, own->length);

	if (other->string == NULL || other->length > LONGEST_OTHER_BOUND)
		bson_array_append_template(branches, "{@1: {@2: @3}}", path, operator, value);
	else
		bson_array_append_template(branches, "{@1: {@2: @3, @4: @5}}", path, operator, value,
								   bson_utf8(is_upper ? "$gte" : "$lte"),
								   bson_utf8_sized(other->string, other->length));
}

/* append_text_range: texts that are within the range. */
static void
append_text_range(const MongoPredicate *predicate, const TextRange *range, bson_t *match)
{
	BsonArray	branches = bson_array_create();

	append_strings(predicate, range, &branches);
	mongo_append_other_json(&branches, predicate->path, may_begin_in_range, range);
	BSON_APPEND_ARRAY(match, "$or", branches.bson);
}

MongoMatch
mongo_json_text_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	TextRange	range = {{NULL, 0}, {NULL, 0}};
	TextBound	bound;

	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL || predicate->value_type == NAMEOID)
	{
		bson_append_condition(match, predicate->path, "$exists", bson_bool(true));
		return MONGO_MATCH_SOME;
	}
	bound = text_bound(value);
	if (predicate->strategy == BTEqualStrategyNumber)
		append_equal(predicate->path, bound.string, bound.length, match);
	else
	{
		if (mongo_is_upper_bound(predicate->strategy))
			range.upper = bound;
		else
			range.lower = bound;
		append_text_range(predicate, &range, match);
	}
	return MONGO_MATCH_SOME;
}

MongoMatch
mongo_json_text_between(const MongoPredicate *predicate, const Datum values[2], bson_t *match)
{
	bool		is_upper = mongo_is_upper_bound(predicate->strategy);
	TextRange	range;

	range.lower = text_bound(values[is_upper ? 1 : 0]);
	range.upper = text_bound(values[is_upper ? 0 : 1]);
	append_text_range(predicate, &range, match);
	return MONGO_MATCH_SOME;
}
