/*-------------------------------------------------------------------------
 *
 * json.c
 *		Conditions on the text of values inside json and jsonb, and on casts of that text.
 *
 * Conditions on values inside a json or jsonb column, or on their text, are supersets: jsonb treats
 * arrays, numbers and extended types differently than query predicates do.  They are useful because
 * an index can find the rows.  Casts come first, by the type of the result, then texts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "convert.h"

#include <float.h>
#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

static void cast_date_bounds(const MongoPredicate *predicate, Datum value, int64 *low, int64 *high);

/*-------------------------------------------------------------------------
 * Conditions on casts of the text of values inside json.
 *
 * A number's text is the number, except for the rounding of a type.  Only PostgreSQL computes the
 * value to which a String is cast.  But a date in ISO 8601 format is on the day with which it
 * begins, or on one near it, in whatever time zone.
 *-------------------------------------------------------------------------
 */

/* Returns the value, or the array's values that are not NULL, and how many they are. */
static int
values_of(const MongoPredicate *predicate, Datum value, Datum **values)
{
	bool	   *isnull;
	int			count;
	int			kept = 0;

	if (predicate->form == MONGO_PREDICATE_SCALAR)
	{
		*values = palloc(sizeof(Datum));
		**values = value;
		return 1;
	}
	count = mongo_array_elements(value, values, &isnull);
	for (int i = 0; i < count; i++)
	{
		if (!isnull[i])
			(*values)[kept++] = (*values)[i];
	}
	return kept;
}

static bool
is_date_class(Oid type)
{
	MongoTypeKind class = mongo_kind_of_type(type)->compared_as;

	return class == MONGO_KIND_TIMESTAMP || class == MONGO_KIND_TIMESTAMPTZ;
}

/* ---- Numbers ---- */

/*
 * mongo_number_value
 *		Converts a number of any type to a double.
 */
double
mongo_number_value(Oid type, Datum value)
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
 * Tells whether only one number is cast to this one.  A text with a fraction is no integer, but
 * jsonb is rounded.  A wrapped Decimal128 such as 0.1 equals no Double.
 */
static bool
is_point(const MongoPredicate *predicate, double number)
{
	if (fabs(number) >= INT64CONST(1) << 53 || predicate->field.wrapper != MONGO_WRAPPER_NONE)
		return false;
	switch (predicate->field.cast_type)
	{
		case FLOAT8OID:
			return true;
		case NUMERICOID:
			return predicate->field.typmod < 0;
		case FLOAT4OID:
			return false;
		default:
			return predicate->field.type == JSONOID;
	}
}

/* Returns the most by which a cast may change a number of about this size. */
static double
rounding(const MongoPredicate *predicate, double number)
{
	double		slack = fabs(number) * (predicate->field.cast_type == FLOAT4OID ? 1e-6 : MONGO_READ_ERROR) + MONGO_READ_TINY;
	int			precision;
	int			scale;

	if (predicate->field.cast_type == FLOAT4OID)
		slack += FLT_MIN;
	else if (mongo_kind_of_type(predicate->field.cast_type)->compared_as == MONGO_KIND_INTEGER)
		slack += 1;
	else if (predicate->field.cast_type == NUMERICOID &&
			 mongo_numeric_typmod(predicate->field.typmod, &precision, &scale))
		slack += pow(10.0, -scale);
	return slack;
}

/* Computes the bounds of the numbers that may be cast to the value. */
static void
number_bounds(const MongoPredicate *predicate, Datum value, double *low, double *high)
{
	double		number = mongo_number_value(predicate->value_type, value);
	double		slack;

	/* numbers of json are never NaN or infinite */
	if (isnan(number))
		number = INFINITY;
	slack = isinf(number) ? 0 : rounding(predicate, number);
	*low = Min(number - slack, DBL_MAX);
	*high = Max(number + slack, -DBL_MAX);
}

/* Appends the numbers that may be cast to the value. */
static void
append_cast_number(const MongoPredicate *predicate, Datum value, BsonArray *branches)
{
	bson_value_t path = mongo_utf8(predicate->field.path);
	double		number = mongo_number_value(predicate->value_type, value);
	double		low;
	double		high;

	number_bounds(predicate, value, &low, &high);
	if (!isnan(number) && is_point(predicate, number))
		mongo_array_append_template(branches, "{@1: {$eq: @2}}", path, mongo_double(number));
	else
		mongo_array_append_template(branches, "{@1: {$gte: @2, $lte: @3}}", path,
									mongo_double(low), mongo_double(high));
}

/*
 * Appends the values of the first type whose cast may satisfy "OP value", and all values of the
 * other type; OP is an order of numbers or dates.  The condition excludes the values on the wrong
 * side, so that two bounds are one range of an index.  A path that may lead to several values needs
 * the right side instead, because one of them may be there.
 */
static void
append_cast_bound(const MongoPredicate *predicate, Datum value, const char *type,
				  const char *other_type, bson_t *match)
{
	bool		is_upper = mongo_is_upper_bound(predicate->strategy);
	bson_value_t path = mongo_utf8(predicate->field.path);
	bson_value_t bound;

	if (is_date_class(predicate->field.cast_type))
	{
		int64		low;
		int64		high;

		cast_date_bounds(predicate, value, &low, &high);
		bound = mongo_date(is_upper ? high : low);
	}
	else
	{
		double		low;
		double		high;

		number_bounds(predicate, value, &low, &high);
		bound = mongo_double(is_upper ? high : low);
	}
	if (mongo_path_has_index(predicate->field.path))
		mongo_append_template(match, "{$or: [{@1: {@2: @3}}, {@1: NaN}, {@1: {$type: @4}}]}", path,
							  mongo_utf8(is_upper ? "$lte" : "$gte"), bound, mongo_utf8(other_type));
	else
		mongo_append_template(match, "{@1: {$not: {@2: @3}, $type: [@4, @5]}}", path,
							  mongo_utf8(is_upper ? "$gt" : "$lt"), bound, mongo_utf8(type),
							  mongo_utf8(other_type));
}

/* ---- Dates ---- */

/* No time zone is further from UTC than a week (POSIX), and a day may have 24:00. */
#define FARTHEST_ZONE	(8 * MONGO_MILLIS_PER_DAY)

/*
 * Computes the first and the last millisecond in UTC that may be cast to the value, if the text has
 * no time zone or is in UTC.
 */
static void
cast_date_bounds(const MongoPredicate *predicate, Datum value, int64 *low, int64 *high)
{
	Timestamp	timestamp = mongo_timestamp_value(mongo_depends_on_time_zone(predicate),
												  predicate->value_type, value);
	int64		slack = 1;

	if (TIMESTAMP_NOT_FINITE(timestamp))
	{
		*low = *high = TIMESTAMP_IS_NOEND(timestamp) ? PG_INT64_MAX : PG_INT64_MIN;
		return;
	}

	/*
	 * times with and without a zone are compared in the session's
	 */
	if (predicate->field.cast_type != TIMESTAMPTZOID && predicate->value_type == TIMESTAMPTZOID)
		slack = FARTHEST_ZONE;
	if (predicate->field.cast_type == DATEOID)
		slack += MONGO_MILLIS_PER_DAY;
	*low = mongo_timestamp_to_millis(timestamp, NULL) - slack;
	*high = mongo_timestamp_to_millis(timestamp, NULL) + slack;
}

/* The range of the days looked for, for a regular expression. */
typedef struct Days
{
	int64		low;
	int64		high;
} Days;

/*
 * Only if the whole text matches this do its first ten characters give the day: PostgreSQL
 * also reads 2024-05-031, 2024-05-01 epoch and 2024-05-01 5000.
 */
#define ISO_DATE		"[0-9]{4}-[0-9]{2}-[0-9]{2}" \
						"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.][0-9]+)?)?" \
						"(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?$"
#define ISO_DAY_LENGTH	10

/* Returns the day of the time, or the first or last day in this format. */
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

/* Appends a pattern for days that are not before it, or not after it. */
static void
append_day_bound(StringInfo pattern, const char *day, bool is_after)
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
 * Appends all Strings except those in ISO 8601 format of other days, and numbers, because the text
 * of some numbers is a date.
 */
static void
append_days(const char *path, int64 low, int64 high, BsonArray *branches)
{
	StringInfoData pattern;

	mongo_array_append_template(branches, "{@1: {$type: 'number'}}", mongo_utf8(path));
	if (low == PG_INT64_MIN && high == PG_INT64_MAX)
	{
		mongo_array_append_template(branches, "{@1: {$type: 'string'}}", mongo_utf8(path));
		return;
	}
	initStringInfo(&pattern);
	appendStringInfoString(&pattern, "^(?:(?!" ISO_DATE ")");
	if (low != PG_INT64_MIN)
	{
		appendStringInfoString(&pattern, high != PG_INT64_MAX ? "|(?=" : "|");
		append_day_bound(&pattern, iso_day(low), true);
		if (high != PG_INT64_MAX)
			appendStringInfoChar(&pattern, ')');
	}
	if (high != PG_INT64_MAX)
	{
		if (low == PG_INT64_MIN)
			appendStringInfoChar(&pattern, '|');
		append_day_bound(&pattern, iso_day(high), false);
	}
	appendStringInfoChar(&pattern, ')');
	mongo_array_append_template(branches, "{@1: @2}", mongo_utf8(path),
								mongo_regex(pattern.data, ""));
}

/* Appends the dates of all values together, because a regular expression reads all keys. */
static void
append_cast_dates(const MongoPredicate *predicate, Datum value, BsonArray *branches)
{
	int64		low = PG_INT64_MAX;
	int64		high = PG_INT64_MIN;
	Datum	   *values;
	int			count = values_of(predicate, value, &values);

	for (int i = 0; i < count; i++)
	{
		int64		first;
		int64		last;

		cast_date_bounds(predicate, values[i], &first, &last);
		low = Min(low, first);
		high = Max(high, last);
	}
	if (low != PG_INT64_MIN && low != PG_INT64_MAX)
		low -= FARTHEST_ZONE;
	if (high != PG_INT64_MIN && high != PG_INT64_MAX)
		high += FARTHEST_ZONE;
	if (predicate->form != MONGO_PREDICATE_BETWEEN && mongo_is_upper_bound(predicate->strategy))
		low = PG_INT64_MIN;
	else if (predicate->form != MONGO_PREDICATE_BETWEEN &&
			 predicate->strategy != BTEqualStrategyNumber)
		high = PG_INT64_MAX;
	append_days(predicate->field.path, low, high, branches);
}

/*
 * Wrappers of Extended JSON
 *
 * A Date inside json is {"$date": "..."}, so j -> 'a' ->> '$date' is its text.  ObjectIds and
 * Decimal128s have wrappers too.  An index finds the values themselves.  A document that
 * contains such a key itself looks the same and is matched too.
 */

/* Appends the ObjectId with these digits, in lower case as in JSON. */
static void
append_wrapped_oid(const MongoPredicate *predicate, Datum value, BsonArray *branches)
{
	const text *packed = DatumGetTextPP(value);
	bson_oid_t	oid;

	if (mongo_objectid_from_text(VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed), true, &oid))
		mongo_array_append_template(branches, "{@1: {$eq: @2}}", mongo_utf8(predicate->field.path),
									mongo_oid(&oid));
}

static void
append_wrapped_date(const MongoPredicate *predicate, Datum value, BsonArray *branches)
{
	int64		low;
	int64		high;

	cast_date_bounds(predicate, value, &low, &high);
	mongo_array_append_template(branches, "{@1: {$gte: @2, $lte: @3}}", mongo_utf8(predicate->field.path),
								mongo_date(low), mongo_date(high));
}

/* Appends numbers, and NaN, which is a number here but in no range. */
static void
append_wrapped_decimal(const MongoPredicate *predicate, Datum value, BsonArray *branches)
{
	append_cast_number(predicate, value, branches);
	mongo_array_append_template(branches, "{@1: NaN}", mongo_utf8(predicate->field.path));
}

/* ---- Predicates ---- */

/* By wrapper: the values looked for, and the type of which all values match. */
static const struct
{
	const char *type;			/* of $type */
	const char *other_type;
	void		(*append) (const MongoPredicate *predicate, Datum value,
						   BsonArray *branches);
}			wrappers[] =
{
	[MONGO_WRAPPER_NONE] = {"number", "string", append_cast_number},
	[MONGO_WRAPPER_OID] = {"objectId", "object", append_wrapped_oid},
	[MONGO_WRAPPER_DATE] = {"date", "object", append_wrapped_date},
	[MONGO_WRAPPER_DECIMAL] = {"decimal", "object", append_wrapped_decimal},
};

static bool
is_number_class(Oid type)
{
	MongoTypeKind class = mongo_kind_of_type(type)->compared_as;

	return class == MONGO_KIND_INTEGER || class == MONGO_KIND_DOUBLE || class == MONGO_KIND_NUMERIC;
}

/* Tells whether it is compared as the type of the wrapped value. */
static bool
fits_wrapper(const MongoPredicate *predicate)
{
	switch (predicate->field.wrapper)
	{
		case MONGO_WRAPPER_OID:
			return !OidIsValid(predicate->field.cast_type) && predicate->value_type == TEXTOID &&
				predicate->strategy == BTEqualStrategyNumber &&
				get_collation_isdeterministic(predicate->collation);
		case MONGO_WRAPPER_DATE:
			return OidIsValid(predicate->field.cast_type) && is_date_class(predicate->field.cast_type);
		case MONGO_WRAPPER_DECIMAL:
			return OidIsValid(predicate->field.cast_type) && is_number_class(predicate->field.cast_type);
		default:
			return true;
	}
}

/*
 * mongo_json_cast_exactness
 *		Returns the exactness of a predicate on a value inside json that is cast to another type, as
 *		mongo_predicate_exactness() does.
 */
MongoExactness
mongo_json_cast_exactness(const MongoPredicate *predicate)
{
	MongoTypeKind class;

	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL ||
		predicate->form == MONGO_PREDICATE_ALL || !fits_wrapper(predicate))
		return MONGO_NOT_SHIPPABLE;
	if (predicate->field.wrapper == MONGO_WRAPPER_OID ||
		(is_date_class(predicate->field.cast_type) && is_date_class(predicate->value_type)))
		return MONGO_SUPERSET;
	class = mongo_kind_of_type(predicate->field.cast_type)->compared_as;
	if (class != mongo_kind_of_type(predicate->value_type)->compared_as)
		return MONGO_NOT_SHIPPABLE;
	return is_number_class(predicate->field.cast_type) ||
		(class == MONGO_KIND_BOOLEAN && predicate->strategy == BTEqualStrategyNumber) ?
		MONGO_SUPERSET : MONGO_NOT_SHIPPABLE;
}

/*
 * mongo_render_json_cast
 *		Renders such a predicate, as mongo_predicate_render() does.  The translation is a superset.
 *		A document for which the cast raises an error may go unnoticed.
 */
MongoMatch
mongo_render_json_cast(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	const char *other_type = wrappers[predicate->field.wrapper].other_type;
	BsonArray	branches = mongo_array_create();

	if (predicate->field.wrapper == MONGO_WRAPPER_NONE && is_date_class(predicate->field.cast_type))
		append_cast_dates(predicate, value, &branches);
	else if (predicate->strategy != BTEqualStrategyNumber)
	{
		append_cast_bound(predicate, value, wrappers[predicate->field.wrapper].type, other_type,
						  match);
		return MONGO_MATCH_SOME;
	}
	else
	{
		Datum	   *values;
		int			count = values_of(predicate, value, &values);

		for (int i = 0; i < count && branches.bson->len <= MONGO_LARGEST_MATCH; i++)
		{
			if (predicate->field.cast_type == BOOLOID)
				mongo_array_append_template(&branches, "{@1: {$in: [@2, @3]}}",
											mongo_utf8(predicate->field.path),
											mongo_bool(DatumGetBool(values[i])),
											mongo_int32(DatumGetBool(values[i])));
			else
				wrappers[predicate->field.wrapper].append(predicate, values[i], &branches);
		}
		mongo_array_append_template(&branches, "{@1: {$type: @2}}", mongo_utf8(predicate->field.path),
									mongo_utf8(other_type));
	}
	mongo_append(match, "$or", mongo_array(branches.bson));
	return MONGO_MATCH_SOME;
}

/*-------------------------------------------------------------------------
 * Conditions on the text of values inside json: ->> and #>>.
 *
 * A String's text is the String.  The text of other values is their JSON, whose first
 * character reveals their type, so that few types can match.
 *-------------------------------------------------------------------------
 */

/*
 * The types other than String, with the first characters of their texts.  MongoDB has no index
 * bounds for arrays, and uses those of Strings for Symbols, but would read all of that range;
 * $nor prevents this.
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
	{"{", "{@1: {$gte: {}}}"},
	{"{", "{@1: {$type: ['number', 'binData', 'objectId', 'date', 'regex', 'timestamp', "
	"'javascript', 'javascriptWithScope', 'dbPointer', 'undefined', 'minKey', 'maxKey']}}"},
	{"{", "{$nor: [{@1: {$not: {$type: 'symbol'}}}]}"},
};

/*
 * mongo_append_other_json
 *		Appends to the branches of an $or that the field is not a String and, according to
 *		may_begin(), its text may begin with the right character.
 */
void
mongo_append_other_json(BsonArray *branches, const char *path,
						bool (*may_begin) (const void *context, char first), const void *context)
{
	for (size_t i = 0; i < lengthof(classes); i++)
	{
		for (const char *first = classes[i].first; *first != '\0'; first++)
		{
			if (!may_begin(context, *first))
				continue;
			mongo_array_append_template(branches, classes[i].template, mongo_utf8(path));
			break;
		}
	}
}

/* A bound of texts in UTF-8, which are compared byte by byte. */
typedef struct TextBound
{
	const char *string;			/* NULL: no bound */
	int			length;
} TextBound;

/* A range of texts. */
typedef struct TextRange
{
	TextBound	lower;
	TextBound	upper;
} TextRange;

/* Tells whether a text in the range may begin with this character. */
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

/* Appends the number, if the whole text is one. */
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
		mongo_array_append(points, mongo_integer(integer));
	if (*end != '\0' || errno != 0 || (double) integer != number || fabs(number) >= INT64CONST(1) << 53)
		mongo_array_append(points, mongo_double(number));
}

/*
 * mongo_append_existence
 *		Appends that the field exists.  For {$exists: true}, and for the type of objects, MongoDB
 *		may use a wildcard index, which lacks objects all of whose keys contain a dot.
 */
void
mongo_append_existence(bson_t *match, const char *path)
{
	mongo_append_template(match, "{@1: {$not: {$exists: false}}}", mongo_utf8(path));
}

/* Appends the String, number or Boolean that has this text. */
static void
append_equal(const char *path, const char *string, int length, bson_t *match)
{
	char	   *text = pnstrdup(string, length);
	BsonArray	points = mongo_array_create();

	if (length > 0 && strchr("{[", text[0]) != NULL)
	{
		mongo_append_existence(match, path);
		return;
	}
	mongo_array_append(&points, mongo_utf8_sized(string, length));
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		mongo_array_append(&points, mongo_bool(text[0] == 't'));
	else if (length > 0)
		append_number_point(text, &points);
	if (points.count == 1)
		mongo_append_condition(match, path, "$eq", mongo_first_value(points.bson));
	else
		mongo_append_condition(match, path, "$in", mongo_array(points.bson));
}

/* A longer bound is not repeated as the other bound, because a command has at most 16 MB. */
#define LONGEST_OTHER_BOUND	(64 * 1024)

static void
append_strings(const MongoPredicate *predicate, const TextRange *range, BsonArray *branches)
{
	bool		is_upper = mongo_is_upper_bound(predicate->strategy);
	const TextBound *own = is_upper ? &range->upper : &range->lower;
	const TextBound *other = is_upper ? &range->lower : &range->upper;
	bool		one = other->string == NULL || other->length > LONGEST_OTHER_BOUND;

	mongo_array_append_template(branches, one ? "{@1: {@2: @3}}" : "{@1: {@2: @3, @4: @5}}",
								mongo_utf8(predicate->field.path),
								mongo_utf8(mongo_find_operators[predicate->strategy]),
								mongo_utf8_sized(own->string, own->length),
								mongo_utf8(is_upper ? "$gte" : "$lte"),
								mongo_utf8_sized(one ? "" : other->string, one ? 0 : other->length));
}

/*
 * mongo_json_text_range
 *		Renders a comparison of the field's text with a value of type text; see render_range in
 *		translate.h.
 */
MongoMatch
mongo_json_text_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	BsonArray	branches = mongo_array_create();
	bool		is_upper = mongo_is_upper_bound(predicate->strategy);
	TextRange	range = {{NULL, 0}, {NULL, 0}};
	TextBound  *own = is_upper ? &range.upper : &range.lower;
	TextBound  *other = is_upper ? &range.lower : &range.upper;
	Datum	   *values;

	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL)
	{
		mongo_append_existence(match, predicate->field.path);
		return MONGO_MATCH_SOME;
	}
	if (predicate->form == MONGO_PREDICATE_BETWEEN && values_of(predicate, value, &values) < 2)
		return mongo_append_nothing(match, predicate->field.path);
	if (predicate->form == MONGO_PREDICATE_BETWEEN)
	{
		value = values[0];
		other->string = mongo_text_in_utf8(predicate->value_type, values[1], &other->length);
	}
	own->string = mongo_text_in_utf8(predicate->value_type, value, &own->length);
	if (own->string == NULL)
		return mongo_append_nothing(match, predicate->field.path);
	if (predicate->strategy == BTEqualStrategyNumber)
	{
		append_equal(predicate->field.path, own->string, own->length, match);
		return MONGO_MATCH_SOME;
	}
	append_strings(predicate, &range, &branches);
	mongo_append_other_json(&branches, predicate->field.path, may_begin_in_range, &range);
	mongo_append(match, "$or", mongo_array(branches.bson));
	return MONGO_MATCH_SOME;
}
