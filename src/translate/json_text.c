/*-------------------------------------------------------------------------
 *
 * json_text.c
 *		Conditions on the text of what is inside json: ->> and #>>, and casts of it.
 *
 * A String's text is the String.  Other values have their JSON for text, whose first
 * character tells what they are, so that few of them come into question.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "json_text.h"

#include "comparison.h"
#include "decimal128.h"
#include "types.h"

#include <float.h>
#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

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

/* A text that others are compared with, byte by byte. */
typedef struct TextBound
{
	int			strategy;
	const char *string;
	int			length;
} TextBound;

/* may_compare: may a text that begins so be where the bound has it? */
static bool
may_compare(const void *context, char first)
{
	const TextBound *bound = context;

	if (mongo_is_upper_bound(bound->strategy))
		return bound->length > 0 && (unsigned char) first <= (unsigned char) bound->string[0];
	return bound->length == 0 || (unsigned char) first >= (unsigned char) bound->string[0];
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

MongoMatch
mongo_json_text_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	BsonArray	branches = bson_array_create();
	TextBound	bound = {.strategy = predicate->strategy};
	text	   *packed;

	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL || predicate->value_type == NAMEOID)
	{
		bson_append_condition(match, predicate->path, "$exists", bson_bool(true));
		return MONGO_MATCH_SOME;
	}
	packed = DatumGetTextPP(value);
	bound.string = pg_server_to_any(VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed), PG_UTF8);
	bound.length = bound.string == VARDATA_ANY(packed) ? (int) VARSIZE_ANY_EXHDR(packed) :
		(int) strlen(bound.string);
	if (predicate->strategy == BTEqualStrategyNumber)
	{
		append_equal(predicate->path, bound.string, bound.length, match);
		return MONGO_MATCH_SOME;
	}
	bson_array_append_template(&branches, "{@1: {@2: @3}}", bson_utf8(predicate->path),
							   bson_utf8(mongo_find_operators[predicate->strategy]),
							   bson_utf8_sized(bound.string, bound.length));
	mongo_append_other_json(&branches, predicate->path, may_compare, &bound);
	BSON_APPEND_ARRAY(match, "$or", branches.bson);
	return MONGO_MATCH_SOME;
}

/*
 * Casts
 *
 * A number's text is the number, give or take what a type rounds.  What a String is
 * cast to only PostgreSQL knows.
 */

static double
number_value(Oid type, Datum value)
{
	switch (type)
	{
		case INT2OID:
			return DatumGetInt16(value);
		case INT4OID:
			return DatumGetInt32(value);
		case INT8OID:
			return (double) DatumGetInt64(value);
		case FLOAT4OID:
			return DatumGetFloat4(value);
		case FLOAT8OID:
			return DatumGetFloat8(value);
		default:
			return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value));
	}
}

/*
 * is_point: is there but one number that is cast to this one?  A text is no integer
 * if it has a fraction, but jsonb is rounded.
 */
static bool
is_point(const MongoPredicate *predicate, double number)
{
	if (fabs(number) >= INT64CONST(1) << 53)
		return false;
	switch (predicate->cast_type)
	{
		case FLOAT8OID:
			return true;
		case NUMERICOID:
			return predicate->column_typmod < 0;
		case FLOAT4OID:
			return false;
		default:
			return predicate->column_type == JSONOID;
	}
}

/* rounding: how far casting may move a number of about this size. */
static double
rounding(const MongoPredicate *predicate, double number)
{
	double		slack = fabs(number) * (predicate->cast_type == FLOAT4OID ? 1e-6 : 1e-14) + 1e-290;
	int			precision;
	int			scale;

	if (predicate->cast_type == FLOAT4OID)
		slack += FLT_MIN;
	else if (mongo_kind_of_type(predicate->cast_type)->class == MONGO_KIND_INTEGER)
		slack += 1;
	else if (predicate->cast_type == NUMERICOID &&
			 mongo_numeric_typmod(predicate->column_typmod, &precision, &scale))
		slack += pow(10.0, -scale);
	return slack;
}

/* Numbers whose text, cast as SQL casts it, can meet the predicate: those within its rounding. */
static void
append_cast_number(const MongoPredicate *predicate, Datum value, BsonArray *branches)
{
	bson_value_t path = bson_utf8(predicate->path);
	double		number = number_value(predicate->value_type, value);
	double		slack;
	double		low;
	double		high;

	/* of numbers, nothing is NaN or infinite */
	if (isnan(number))
		number = INFINITY;
	slack = isinf(number) ? 0 : rounding(predicate, number);
	low = Min(number - slack, DBL_MAX);
	high = Max(number + slack, -DBL_MAX);
	if (predicate->strategy == BTEqualStrategyNumber && is_point(predicate, number))
		bson_array_append_template(branches, "{@1: {$eq: @2}}", path, bson_double(number));
	else if (predicate->strategy == BTEqualStrategyNumber)
		bson_array_append_template(branches, "{@1: {$gte: @2, $lte: @3}}", path,
								   bson_double(low), bson_double(high));
	else if (mongo_is_upper_bound(predicate->strategy))
		bson_array_append_template(branches, "{@1: {$lte: @2}}", path, bson_double(high));
	else
		bson_array_append_template(branches, "{@1: {$gte: @2}}", path, bson_double(low));
}

static void
append_cast(const MongoPredicate *predicate, Datum value, BsonArray *branches)
{
	if (predicate->cast_type == BOOLOID)
		bson_array_append_template(branches, "{@1: {$in: [@2, @3]}}", bson_utf8(predicate->path),
								   bson_bool(DatumGetBool(value)),
								   bson_int32(DatumGetBool(value)));
	else
		append_cast_number(predicate, value, branches);
}

MongoGrade
mongo_json_cast_grade(const MongoPredicate *predicate)
{
	MongoTypeKind class = mongo_kind_of_type(predicate->cast_type)->class;
	MongoTypeKind value_class = mongo_kind_of_type(predicate->value_type)->class;

	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL ||
		predicate->form == MONGO_PREDICATE_ALL || class != value_class)
		return MONGO_NOT_SHIPPABLE;
	return class == MONGO_KIND_INTEGER || class == MONGO_KIND_DOUBLE || class == MONGO_KIND_NUMERIC ||
		(class == MONGO_KIND_BOOLEAN && predicate->strategy == BTEqualStrategyNumber) ?
		MONGO_SUPERSET : MONGO_NOT_SHIPPABLE;
}

MongoMatch
mongo_render_json_cast(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	BsonArray	branches = bson_array_create();

	if (predicate->form == MONGO_PREDICATE_SCALAR)
		append_cast(predicate, value, &branches);
	else
	{
		ArrayIterator iterator = array_create_iterator(DatumGetArrayTypeP(value), 0, NULL);
		Datum		element;
		bool		isnull;

		while (branches.bson->len <= MONGO_LARGEST_MATCH &&
			   array_iterate(iterator, &element, &isnull))
		{
			if (!isnull)
				append_cast(predicate, element, &branches);
		}
		array_free_iterator(iterator);
	}
	bson_array_append_template(&branches, "{@1: {$type: 'string'}}", bson_utf8(predicate->path));
	BSON_APPEND_ARRAY(match, "$or", branches.bson);
	return MONGO_MATCH_SOME;
}
