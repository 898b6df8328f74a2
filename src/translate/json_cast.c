/*-------------------------------------------------------------------------
 *
 * json_cast.c
 *		Conditions on what the text of what is inside json is cast to.
 *
 * A number's text is the number, give or take what a type rounds.  What a String is
 * cast to only PostgreSQL knows; but a date that is written as in ISO 8601 is one of the
 * day that it begins with, or of one near it, wherever clocks showed it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "json_cast.h"

#include "bson_date.h"
#include "comparison.h"
#include "decimal128.h"
#include "path.h"
#include "types.h"

#include <float.h>
#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

void
mongo_append_each(const MongoPredicate *predicate, Datum value,
				  void (*append) (const MongoPredicate *predicate, Datum value,
								  BsonArray *branches),
				  BsonArray *branches)
{
	ArrayIterator iterator;
	Datum		element;
	bool		isnull;

	if (predicate->form == MONGO_PREDICATE_SCALAR)
	{
		append(predicate, value, branches);
		return;
	}
	iterator = array_create_iterator(DatumGetArrayTypeP(value), 0, NULL);
	while (branches->bson->len <= MONGO_LARGEST_MATCH &&
		   array_iterate(iterator, &element, &isnull))
	{
		if (!isnull)
			append(predicate, element, branches);
	}
	array_free_iterator(iterator);
}

static bool
is_date_class(Oid type)
{
	MongoTypeKind class = mongo_kind_of_type(type)->class;

	return class == MONGO_KIND_TIMESTAMP || class == MONGO_KIND_TIMESTAMPTZ;
}

/*
 * Numbers
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
 * if it has a fraction, but jsonb is rounded.  Decimal128s equal no Doubles.
 */
static bool
is_point(const MongoPredicate *predicate, double number)
{
	if (fabs(number) >= INT64CONST(1) << 53 || predicate->wrapper != MONGO_WRAPPER_NONE)
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

/* number_bounds: between which the numbers are that may be cast to the value. */
static void
number_bounds(const MongoPredicate *predicate, Datum value, double *low, double *high)
{
	double		number = number_value(predicate->value_type, value);
	double		slack;

	/* of numbers, nothing is NaN or infinite */
	if (isnan(number))
		number = INFINITY;
	slack = isinf(number) ? 0 : rounding(predicate, number);
	*low = Min(number - slack, DBL_MAX);
	*high = Max(number + slack, -DBL_MAX);
}

void
mongo_append_cast_number(const MongoPredicate *predicate, Datum value, BsonArray *branches)
{
	bson_value_t path = bson_utf8(predicate->path);
	double		number = number_value(predicate->value_type, value);
	double		low;
	double		high;

	number_bounds(predicate, value, &low, &high);
	if (!isnan(number) && is_point(predicate, number))
		bson_array_append_template(branches, "{@1: {$eq: @2}}", path, bson_double(number));
	else
		bson_array_append_template(branches, "{@1: {$gte: @2, $lte: @3}}", path,
								   bson_double(low), bson_double(high));
}

void
mongo_append_cast_bound(const MongoPredicate *predicate, Datum value, const char *type,
						const char *other_type, bson_t *match)
{
	bool		is_upper = mongo_is_upper_bound(predicate->strategy);
	bson_value_t path = bson_utf8(predicate->path);
	bson_value_t bound;

	if (is_date_class(predicate->cast_type))
	{
		int64		low;
		int64		high;

		mongo_cast_date_bounds(predicate, value, &low, &high);
		bound = bson_date(is_upper ? high : low);
	}
	else
	{
		double		low;
		double		high;

		number_bounds(predicate, value, &low, &high);
		bound = bson_double(is_upper ? high : low);
	}
	if (mongo_path_has_index(predicate->path))
		bson_append_template(match, "{$or: [{@1: {@2: @3}}, {@1: NaN}, {@1: {$type: @4}}]}", path,
							 bson_utf8(is_upper ? "$lte" : "$gte"), bound, bson_utf8(other_type));
	else
		bson_append_template(match, "{@1: {$not: {@2: @3}, $type: [@4, @5]}}", path,
							 bson_utf8(is_upper ? "$gt" : "$lt"), bound, bson_utf8(type),
							 bson_utf8(other_type));
}

static void
append_cast_bool(const MongoPredicate *predicate, Datum value, BsonArray *branches)
{
	bson_array_append_template(branches, "{@1: {$in: [@2, @3]}}", bson_utf8(predicate->path),
							   bson_bool(DatumGetBool(value)),
							   bson_int32(DatumGetBool(value)));
}

/*
 * Dates
 */

/* No zone is further from UTC than a week (POSIX); and a day may have 24:00. */
#define FARTHEST_ZONE	(8 * MONGO_MILLIS_PER_DAY)

void
mongo_cast_date_bounds(const MongoPredicate *predicate, Datum value, int64 *low, int64 *high)
{
	Timestamp	timestamp = mongo_timestamp_value(predicate, value);
	int64		slack = 1;

	if (TIMESTAMP_NOT_FINITE(timestamp))
	{
		*low = *high = TIMESTAMP_IS_NOEND(timestamp) ? PG_INT64_MAX : PG_INT64_MIN;
		return;
	}

	/* what has a zone is compared with what has none in the session's */
	if (predicate->cast_type != TIMESTAMPTZOID && predicate->value_type == TIMESTAMPTZOID)
		slack = FARTHEST_ZONE;
	if (predicate->cast_type == DATEOID)
		slack += MONGO_MILLIS_PER_DAY;
	*low = mongo_timestamp_to_millis(timestamp, NULL) - slack;
	*high = mongo_timestamp_to_millis(timestamp, NULL) + slack;
}

/* The days between which the dates are that are asked for; as in regular expressions. */
typedef struct Days
{
	int64		low;
	int64		high;
} Days;

/*
 * Only of a text that is wholly like this the first ten characters tell the day:
 * PostgreSQL also reads 2024-05-031, 2024-05-01 epoch and 2024-05-01 5000.
 */
#define ISO_DATE		"[0-9]{4}-[0-9]{2}-[0-9]{2}" \
						"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]+)?)?" \
						"(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
#define ISO_DAY_LENGTH	10

/* iso_day: the day of the time, or the first or last one that is written so. */
static const char *
iso_day(int64 millis)
{
	int64		day = millis / MONGO_MILLIS_PER_DAY + UNIX_EPOCH_JDATE;
	int			year;
	int			month;
	int			mday;

	if (day < date2j(1, 1, 1))
		return "0001-01-01";
	if (day > date2j(9999, 12, 31))
		return "9999-12-31";
	j2date((int) day, &year, &month, &mday);
	return psprintf("%04d-%02d-%02d", year, month, mday);
}

/* append_beside: a pattern for texts of a day that is not before it, or not after it. */
static void
append_beside(StringInfo pattern, const char *day, bool is_after)
{
	appendStringInfo(pattern, "(?:%s", day);
	for (int i = 0; i < ISO_DAY_LENGTH; i++)
	{
		if (day[i] == '-' || day[i] == (is_after ? '9' : '0'))
			continue;
		appendStringInfo(pattern, "|%.*s[%c-%c]", i, day,
						 is_after ? day[i] + 1 : '0', is_after ? '9' : day[i] - 1);
	}
	appendStringInfoChar(pattern, ')');
}

/*
 * append_days: Strings but those in ISO 8601 of a day that is not asked for.  Of numbers as
 * text, some are dates.
 */
static void
append_days(const char *path, int64 low, int64 high, BsonArray *branches)
{
	StringInfoData pattern;

	bson_array_append_template(branches, "{@1: {$type: 'number'}}", bson_utf8(path));
	if (low == PG_INT64_MIN && high == PG_INT64_MAX)
	{
		bson_array_append_template(branches, "{@1: {$type: 'string'}}", bson_utf8(path));
		return;
	}
	initStringInfo(&pattern);
	appendStringInfoString(&pattern, "^(?:(?!" ISO_DATE ")");
	if (low != PG_INT64_MIN)
	{
		appendStringInfoString(&pattern, high != PG_INT64_MAX ? "|(?=" : "|");
		append_beside(&pattern, iso_day(low), true);
		if (high != PG_INT64_MAX)
			appendStringInfoChar(&pattern, ')');
	}
	if (high != PG_INT64_MAX)
	{
		if (low == PG_INT64_MIN)
			appendStringInfoChar(&pattern, '|');
		append_beside(&pattern, iso_day(high), false);
	}
	appendStringInfoChar(&pattern, ')');
	bson_array_append_template(branches, "{@1: @2}", bson_utf8(path),
							   bson_regex(pattern.data, ""));
}

/* append_cast_dates: of all values together, for each regular expression reads all keys. */
static void
append_cast_dates(const MongoPredicate *predicate, Datum value, BsonArray *branches)
{
	bool		is_array = predicate->form != MONGO_PREDICATE_SCALAR;
	ArrayIterator iterator = NULL;
	int64		low = PG_INT64_MAX;
	int64		high = PG_INT64_MIN;
	Datum		element = value;
	bool		isnull = false;

	if (is_array)
		iterator = array_create_iterator(DatumGetArrayTypeP(value), 0, NULL);
	while (!is_array || array_iterate(iterator, &element, &isnull))
	{
		int64		first;
		int64		last;

		if (!isnull)
		{
			mongo_cast_date_bounds(predicate, element, &first, &last);
			low = Min(low, first);
			high = Max(high, last);
		}
		if (!is_array)
			break;
	}
	if (is_array)
		array_free_iterator(iterator);
	if (low != PG_INT64_MIN && low != PG_INT64_MAX)
		low -= FARTHEST_ZONE;
	if (high != PG_INT64_MIN && high != PG_INT64_MAX)
		high += FARTHEST_ZONE;
	if (predicate->form != MONGO_PREDICATE_BETWEEN && mongo_is_upper_bound(predicate->strategy))
		low = PG_INT64_MIN;
	else if (predicate->form != MONGO_PREDICATE_BETWEEN &&
			 predicate->strategy != BTEqualStrategyNumber)
		high = PG_INT64_MAX;
	append_days(predicate->path, low, high, branches);
}

/*
 * Predicates
 */

MongoGrade
mongo_json_cast_grade(const MongoPredicate *predicate)
{
	MongoTypeKind class = mongo_kind_of_type(predicate->cast_type)->class;
	MongoTypeKind value_class = mongo_kind_of_type(predicate->value_type)->class;

	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL ||
		predicate->form == MONGO_PREDICATE_ALL)
		return MONGO_NOT_SHIPPABLE;
	if (is_date_class(predicate->cast_type) && is_date_class(predicate->value_type))
		return MONGO_SUPERSET;
	if (class != value_class)
		return MONGO_NOT_SHIPPABLE;
	return class == MONGO_KIND_INTEGER || class == MONGO_KIND_DOUBLE || class == MONGO_KIND_NUMERIC ||
		(class == MONGO_KIND_BOOLEAN && predicate->strategy == BTEqualStrategyNumber) ?
		MONGO_SUPERSET : MONGO_NOT_SHIPPABLE;
}

MongoMatch
mongo_render_json_cast(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	BsonArray	branches = bson_array_create();
	bool		is_date = is_date_class(predicate->cast_type);

	if (!is_date && predicate->strategy != BTEqualStrategyNumber)
	{
		mongo_append_cast_bound(predicate, value, "number", "string", match);
		return MONGO_MATCH_SOME;
	}
	if (is_date)
		append_cast_dates(predicate, value, &branches);
	else
	{
		mongo_append_each(predicate, value, predicate->cast_type == BOOLOID ?
						  append_cast_bool : mongo_append_cast_number, &branches);
		bson_array_append_template(&branches, "{@1: {$type: 'string'}}",
								   bson_utf8(predicate->path));
	}
	BSON_APPEND_ARRAY(match, "$or", branches.bson);
	return MONGO_MATCH_SOME;
}
