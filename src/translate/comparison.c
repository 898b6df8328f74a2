/*-------------------------------------------------------------------------
 *
 * comparison.c
 *		Compares fields with values in query predicates, by kinds of types.
 *
 * Each kind has a row of comparisons[]: how exact its comparisons are, whether MongoDB can sort it,
 * and two functions, one for the BSON values that equal a value, one for ranges.  predicate.c calls
 * them, and decides what comparisons have in common.  The type checks, which need the same facts,
 * follow.
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
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

static void text_points(const MongoPredicate *predicate, Datum value, BsonArray *points);
static MongoMatch text_range(const MongoPredicate *predicate, Datum value, bson_t *match);

/*-------------------------------------------------------------------------
 * How values of each column type compare in query predicates.
 *
 * find's $lt, $lte, $gt, $gte compare within one BSON type class only (type bracketing), and
 * numbers of all kinds by exact value.  NaN satisfies neither $lt nor $gt.  PostgreSQL treats
 * NaN as equal to itself and above every number.
 *-------------------------------------------------------------------------
 */

/*
 * Appends a lower bound of numbers, above all of which is NaN: they are not below the bound.
 * MongoDB finds these in one scan of an index, which it would not for $or.
 */
static MongoMatch
append_lower_bound(const MongoPredicate *predicate, bool strict, double bound, bson_t *match)
{
	const char *path = predicate->field.path;

	if (predicate->without_nan)
		mongo_append_condition(match, path, strict ? "$gt" : "$gte", mongo_double(bound));
	else
		mongo_append_template(match, "{@1: {$not: {@2: @3}, $type: 'number'}}", mongo_utf8(path),
							  mongo_utf8(strict ? "$lte" : "$lt"), mongo_double(bound));
	return MONGO_MATCH_SOME;
}

/* Appends a condition that matches every value but null. */
static MongoMatch
append_not_null(bson_t *match, const char *path)
{
	mongo_append_condition(match, path, "$ne", mongo_null());
	return MONGO_MATCH_SOME;
}

/* ---- Integers ---- */

static bson_value_t
integer_value(const MongoPredicate *predicate, Datum value)
{
	return mongo_integer(mongo_integer_of_datum(predicate->value_type, value));
}

static void
integer_points(const MongoPredicate *predicate, Datum value, BsonArray *points)
{
	mongo_array_append(points, integer_value(predicate, value));
}

static MongoMatch
integer_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	mongo_append_condition(match, predicate->field.path, mongo_find_operators[predicate->strategy],
						   integer_value(predicate, value));
	return MONGO_MATCH_SOME;
}

/* ---- Floats ---- */

static double
float_value(Oid type, Datum value)
{
	return type == FLOAT4OID ? DatumGetFloat4(value) : DatumGetFloat8(value);
}

static void
float_points(const MongoPredicate *predicate, Datum value, BsonArray *points)
{
	mongo_array_append(points, mongo_double(float_value(predicate->value_type, value)));
}

/*
 * Renders SQL's order of floats, in which NaN is above all numbers.  In MongoDB it is below all of
 * them, and ranges never include it.
 */
static MongoMatch
float_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	const char *path = predicate->field.path;
	double		bound = float_value(predicate->value_type, value);
	const char *operator = mongo_find_operators[predicate->strategy];

	if (!isnan(bound))
	{
		if (!mongo_is_upper_bound(predicate->strategy))
			return append_lower_bound(predicate, predicate->strategy == BTGreaterStrategyNumber,
									  bound, match);
		mongo_append_condition(match, path, operator, mongo_double(bound));
		return MONGO_MATCH_SOME;
	}
	switch (predicate->strategy)
	{
		case BTLessStrategyNumber:
			mongo_append_condition(match, path, "$gte", mongo_double(-INFINITY));
			break;
		case BTLessEqualStrategyNumber:
			mongo_append_condition(match, path, "$type", mongo_utf8("number"));
			break;
		case BTGreaterEqualStrategyNumber:
			mongo_append_condition(match, path, "$eq", mongo_double(NAN));
			break;
		default:
			return mongo_append_nothing(match, path);
	}
	return MONGO_MATCH_SOME;
}

/*
 * Numeric
 *
 * A numeric column reads 15 digits of a Double and rounds to its scale, so the values that
 * PostgreSQL and MongoDB compare differ slightly.  The bounds are widened by the largest
 * difference, and PostgreSQL tests the rows again.
 */

/* Computes bounds of the Doubles that read as the value. */
static void
numeric_bounds(const MongoPredicate *predicate, Numeric value, double *low, double *high)
{
	double		middle = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
															NumericGetDatum(value)));
	double		slack = fabs(middle) * MONGO_READ_ERROR + MONGO_READ_TINY;
	int			precision;
	int			scale;

	if (mongo_numeric_typmod(predicate->field.typmod, &precision, &scale))
		slack += pow(10.0, -scale) / 2;

	/* beyond double's range there may still be Decimal128 values */
	*low = Min(middle - slack, DBL_MAX);
	*high = Max(middle + slack, -DBL_MAX);
}

/* Appends a range of the values that may read as the value compared. */
static MongoMatch
append_widened(const MongoPredicate *predicate, bson_value_t low, bson_value_t high, bson_t *match)
{
	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL)
		return append_not_null(match, predicate->field.path);
	if (predicate->strategy == BTEqualStrategyNumber)
		mongo_append_template(match, "{@1: {$gte: @2, $lte: @3}}", mongo_utf8(predicate->field.path),
							  low, high);
	else if (mongo_is_upper_bound(predicate->strategy))
		mongo_append_condition(match, predicate->field.path, "$lte", high);
	else
		mongo_append_condition(match, predicate->field.path, "$gte", low);
	return MONGO_MATCH_SOME;
}

/* Renders a wider range than the condition's; any value for NaN and infinities. */
static MongoMatch
numeric_range(const MongoPredicate *predicate, Datum datum, bson_t *match)
{
	Numeric		value = DatumGetNumeric(datum);
	double		low;
	double		high;

	if (numeric_is_nan(value) || numeric_is_inf(value))
		return append_not_null(match, predicate->field.path);

	numeric_bounds(predicate, value, &low, &high);
	if (mongo_asks_for_order(predicate->strategy) && !mongo_is_upper_bound(predicate->strategy))
		return append_lower_bound(predicate, false, low, match);
	return append_widened(predicate, mongo_double(low), mongo_double(high), match);
}

/* ---- Booleans, UUIDs, ObjectIds ---- */

static void
boolean_points(const MongoPredicate *predicate pg_attribute_unused(), Datum value,
			   BsonArray *points)
{
	mongo_array_append(points, mongo_bool(DatumGetBool(value)));
}

/* Appends both the current and the legacy subtype, as a uuid column reads both. */
static void
uuid_points(const MongoPredicate *predicate pg_attribute_unused(), Datum value, BsonArray *points)
{
	const pg_uuid_t *uuid = DatumGetUUIDP(value);

	mongo_array_append(points, mongo_binary(BSON_SUBTYPE_UUID, uuid->data, UUID_LEN));
	mongo_array_append(points, mongo_binary(BSON_SUBTYPE_UUID_DEPRECATED, uuid->data, UUID_LEN));
}

/* Appends the ObjectId itself, or the one that has the digits of a text, if any has. */
static void
objectid_points(const MongoPredicate *predicate, Datum value, BsonArray *points)
{
	bson_oid_t	oid;

	if (predicate->value_type != TEXTOID)
		mongo_array_append(points, mongo_oid((const bson_oid_t *) DatumGetPointer(value)));
	else if (mongo_objectid_of_text(DatumGetTextPP(value), &oid))
		mongo_array_append(points, mongo_oid(&oid));
}

/* Renders a range of ObjectIds.  A text that is no ObjectId is above all of them. */
static MongoMatch
objectid_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	int			strategy = predicate->strategy;
	bson_oid_t	oid;

	if (predicate->value_type != TEXTOID)
		oid = *(const bson_oid_t *) DatumGetPointer(value);
	else if (!mongo_objectid_of_text(DatumGetTextPP(value), &oid))
	{
		memset(oid.bytes, 0xff, sizeof(oid.bytes));
		strategy = mongo_is_upper_bound(strategy) ? BTLessEqualStrategyNumber : BTGreaterStrategyNumber;
	}
	mongo_append_condition(match, predicate->field.path, mongo_find_operators[strategy],
						   mongo_oid(&oid));
	return MONGO_MATCH_SOME;
}

/*
 * Dates: BSON has milliseconds, PostgreSQL has microseconds and infinities.
 */

/* Compares with infinity, as every finite date does in the same way. */
static MongoMatch
append_infinite_date_range(const MongoPredicate *predicate, bool is_positive, bson_t *match)
{
	if (predicate->strategy == MONGO_STRATEGY_NOT_EQUAL)
		return append_not_null(match, predicate->field.path);
	if (predicate->strategy == BTEqualStrategyNumber ||
		mongo_is_upper_bound(predicate->strategy) != is_positive)
		return mongo_append_nothing(match, predicate->field.path);

	mongo_append_condition(match, predicate->field.path, "$type", mongo_utf8("date"));
	return MONGO_MATCH_SOME;
}

static Timestamp
timestamp_value(const MongoPredicate *predicate, Datum value)
{
	return mongo_timestamp_value(mongo_depends_on_time_zone(predicate), predicate->value_type,
								 value);
}

/* Appends the Date; a value between two milliseconds equals none. */
static void
timestamp_points(const MongoPredicate *predicate, Datum value, BsonArray *points)
{
	Timestamp	timestamp = timestamp_value(predicate, value);
	bool		exact;
	int64		millis;

	if (TIMESTAMP_NOT_FINITE(timestamp))
		return;
	millis = mongo_timestamp_to_millis(timestamp, &exact);
	if (exact)
		mongo_array_append(points, mongo_date(millis));
}

/* Renders a bound with microseconds as one between MongoDB's milliseconds. */
static MongoMatch
timestamp_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	Timestamp	timestamp = timestamp_value(predicate, value);
	int			strategy = predicate->strategy;
	bool		exact;
	int64		millis;

	if (TIMESTAMP_NOT_FINITE(timestamp))
		return append_infinite_date_range(predicate, TIMESTAMP_IS_NOEND(timestamp),
										  match);

	/* between two milliseconds, ">=" and "<" compare with the lower one */
	millis = mongo_timestamp_to_millis(timestamp, &exact);
	if (!exact && strategy == BTGreaterEqualStrategyNumber)
		strategy = BTGreaterStrategyNumber;
	else if (!exact && strategy == BTLessStrategyNumber)
		strategy = BTLessEqualStrategyNumber;
	mongo_append_condition(match, predicate->field.path, mongo_find_operators[strategy],
						   mongo_date(millis));
	return MONGO_MATCH_SOME;
}

/* The decimals of a Date's seconds; a timestamp(p) with fewer rounds. */
#define DATE_DECIMALS	3

/*
 * Renders a range for a column that rounds the values it reads.  The bounds are widened by the
 * rounding error, and PostgreSQL tests the rows again.
 */
static MongoMatch
rounded_timestamp_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	/*
	 * the largest rounding error by precision, in milliseconds
	 */
	static const int64 read_errors[DATE_DECIMALS] = {500, 50, 5};
	int64		slack = read_errors[predicate->field.typmod];
	Timestamp	timestamp = timestamp_value(predicate, value);
	int64		millis;

	if (TIMESTAMP_NOT_FINITE(timestamp))
		return append_infinite_date_range(predicate, TIMESTAMP_IS_NOEND(timestamp),
										  match);
	millis = mongo_timestamp_to_millis(timestamp, NULL);
	return append_widened(predicate, mongo_date(millis - slack), mongo_date(millis + 1 + slack),
						  match);
}

/* Compares a column that reads the UTC day with a day. */
static MongoMatch
append_day_range(const MongoPredicate *predicate, int strategy, DateADT date, bson_t *match)
{
	const char *path = predicate->field.path;
	bson_value_t start;
	bson_value_t end;

	if (DATE_NOT_FINITE(date))
		return append_infinite_date_range(predicate, DATE_IS_NOEND(date), match);

	start = mongo_date(mongo_date_to_millis(date));
	end = mongo_date(mongo_date_to_millis(date) + MONGO_MILLIS_PER_DAY);
	if (mongo_asks_for_order(strategy))
		mongo_append_condition(match, path, mongo_is_upper_bound(strategy) ? "$lt" : "$gte",
							   strategy == BTLessStrategyNumber ||
							   strategy == BTGreaterEqualStrategyNumber ? start : end);
	else
		mongo_append_template(match, strategy == BTEqualStrategyNumber ?
							  "{@1: {$gte: @2, $lt: @3}}" :
							  "{$or: [{@1: {$lt: @2}}, {@1: {$gte: @3}}]}",
							  mongo_utf8(path), start, end);
	return MONGO_MATCH_SOME;
}

/*
 * Compares a date column with a day or a timestamp.  A timestamp is later than its day, which
 * stands for midnight, unless it is that midnight.
 */
static MongoMatch
date_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	Timestamp	timestamp;
	Timestamp	midnight;
	DateADT		date;

	if (predicate->value_type == DATEOID)
		return append_day_range(predicate, predicate->strategy,
								DatumGetDateADT(value), match);

	timestamp = DatumGetTimestamp(value);
	if (TIMESTAMP_NOT_FINITE(timestamp))
		return append_infinite_date_range(predicate, TIMESTAMP_IS_NOEND(timestamp),
										  match);
	date = DatumGetDateADT(DirectFunctionCall1(timestamp_date, value));
	midnight = (Timestamp) date * USECS_PER_DAY;
	if (timestamp == midnight)
		return append_day_range(predicate, predicate->strategy, date, match);

	switch (predicate->strategy)
	{
		case BTEqualStrategyNumber:
			return mongo_append_nothing(match, predicate->field.path);
		case MONGO_STRATEGY_NOT_EQUAL:
			return append_not_null(match, predicate->field.path);
		case BTLessStrategyNumber:
		case BTLessEqualStrategyNumber:
			return append_day_range(predicate, BTLessEqualStrategyNumber, date, match);
		default:
			return append_day_range(predicate, BTGreaterStrategyNumber, date, match);
	}
}

/*
 * The comparison of each kind of type.
 *
 * MongoDB cannot sort numeric, whose Doubles are read with 15 digits; text, which may be an
 * ObjectId among Strings; and uuid, because of its two subtypes.  A date column reads values
 * that have a time of day too.
 *
 * Only PostgreSQL compares types without a row: float4, which rounds the values it reads;
 * bytea, whose equality ignores the subtype; char(n), which ignores trailing blanks.
 */
static const MongoComparison comparisons[] =
{
	[MONGO_KIND_INTEGER] = {MONGO_EXACT, MONGO_EXACT, MONGO_SORTABLE, integer_points, integer_range, false},
	[MONGO_KIND_DOUBLE] = {MONGO_EXACT, MONGO_EXACT, MONGO_SORTABLE_NAN_APART, float_points, float_range, false},
	[MONGO_KIND_NUMERIC] = {MONGO_SUPERSET, MONGO_SUPERSET, MONGO_NOT_SORTABLE, NULL, numeric_range, false},
	[MONGO_KIND_TEXT] = {MONGO_EXACT, MONGO_EXACT, MONGO_NOT_SORTABLE, text_points, text_range, true},
	[MONGO_KIND_BOOLEAN] = {MONGO_EXACT, MONGO_NOT_SHIPPABLE, MONGO_SORTABLE, boolean_points, NULL, false},
	[MONGO_KIND_UUID] = {MONGO_EXACT, MONGO_NOT_SHIPPABLE, MONGO_NOT_SORTABLE, uuid_points, NULL, false},
	[MONGO_KIND_TIMESTAMP] = {MONGO_EXACT, MONGO_EXACT, MONGO_SORTABLE, timestamp_points, timestamp_range, false},
	[MONGO_KIND_TIMESTAMPTZ] = {MONGO_EXACT, MONGO_EXACT, MONGO_SORTABLE, timestamp_points, timestamp_range, false},
	[MONGO_KIND_DATE] = {MONGO_EXACT, MONGO_EXACT, MONGO_SORTABLE_LAST, NULL, date_range, false},
	[MONGO_KIND_OBJECTID] = {MONGO_EXACT, MONGO_EXACT, MONGO_SORTABLE, objectid_points, objectid_range, false},
	[MONGO_KIND_JSONB] = {MONGO_SUPERSET, MONGO_NOT_SHIPPABLE, MONGO_NOT_SORTABLE, NULL, mongo_jsonb_range, true},
	[MONGO_KIND_JSON] = {MONGO_SUPERSET, MONGO_SUPERSET, MONGO_NOT_SORTABLE, NULL, mongo_json_text_range, true},
};

static const MongoComparison rounded_timestamp =
{MONGO_SUPERSET, MONGO_SUPERSET, MONGO_SORTABLE_LAST, NULL, rounded_timestamp_range, .is_text = false};

/* Text declared as ObjectIds, which collations do not affect, or as Strings. */
static const MongoComparison text_of_objectid =
{MONGO_EXACT, MONGO_EXACT, MONGO_SORTABLE, text_points, text_range, .is_text = false};
static const MongoComparison text_of_string =
{MONGO_EXACT, MONGO_EXACT, MONGO_NOT_SORTABLE, text_points, text_range, .is_text = true};

/*
 * mongo_reading_changes
 *		Tells whether reading a column of this base type may change the stored value.
 */
bool
mongo_reading_changes(Oid column_type, int32 column_typmod)
{
	MongoTypeKind kind = mongo_type_kind(column_type);

	return ((kind == MONGO_KIND_TEXT || kind == MONGO_KIND_NUMERIC) &&
			column_typmod >= (int32) VARHDRSZ) ||
		mongo_rounds_timestamp(column_type, column_typmod);
}

/*
 * mongo_is_key
 *		Tells whether two fields at this path (UTF-8) are equal in MongoDB if and only if a column
 *		of this type reads equal values from them.  A text may also be an ObjectId.
 */
bool
mongo_is_key(const char *path, Oid column_type, int32 column_typmod)
{
	return mongo_path_is_addressable(path) && !mongo_path_has_index(path) &&
		mongo_kind_of_type(column_type)->is_key &&
		!mongo_reading_changes(column_type, column_typmod);
}

/*
 * mongo_rounds_timestamp
 *		Tells whether a column of this type, such as timestamp(2), stores fewer decimals than a
 *		Date.
 */
bool
mongo_rounds_timestamp(Oid column_type, int32 column_typmod)
{
	return (column_type == TIMESTAMPOID || column_type == TIMESTAMPTZOID) &&
		column_typmod >= 0 && column_typmod < DATE_DECIMALS;
}

/*
 * mongo_comparison_lookup
 *		Returns the comparison of a base type (not a domain), or NULL if only PostgreSQL compares
 *		its values.  A timestamp type that rounds the values it reads has a comparison of its own,
 *		and so has text with a declared BSON type (BSON_TYPE_EOD: none is declared).
 */
const MongoComparison *
mongo_comparison_lookup(Oid column_type, int32 column_typmod, bson_type_t bson_type)
{
	MongoTypeKind kind = mongo_type_kind(column_type);

	if (kind == MONGO_KIND_TEXT && bson_type == BSON_TYPE_OID)
		return &text_of_objectid;
	if (kind == MONGO_KIND_TEXT && bson_type == BSON_TYPE_UTF8)
		return &text_of_string;
	if (mongo_rounds_timestamp(column_type, column_typmod))
		return &rounded_timestamp;
	return comparisons[kind].equality_exactness != MONGO_NOT_SHIPPABLE ? &comparisons[kind] : NULL;
}

/* Tells whether a column of the type can represent all values of its class. */
static bool
holds_its_class(const MongoType *type)
{
	return type->limit == 0 || type->limit == PG_INT64_MAX;
}

/*
 * mongo_equality_fits
 *		Tells whether a column of this type can read every field that equals a value of
 *		'value_type'.  False if the type alone does not decide that.
 */
bool
mongo_equality_fits(Oid column_type, int32 column_typmod, bson_type_t bson_type, Oid value_type)
{
	/* no row: a domain, whose constraints a value may violate */
	const MongoComparison *comparison = mongo_comparison_lookup(column_type, column_typmod,
																bson_type);

	return comparison != NULL && comparison->append_points != NULL &&
		column_typmod < 0 &&
	/* numbers are equal in every BSON type */
		(bson_type == BSON_TYPE_EOD || (MONGO_BSON_BIT(bson_type) & MONGO_BSON_NUMBERS) == 0) &&
		(column_type == value_type || bson_type == BSON_TYPE_OID ||
		 holds_its_class(mongo_type_facts(column_type)));
}

/*-------------------------------------------------------------------------
 * Type checks: can the column read the value of its field?
 *
 * Tests the BSON types that the column's type reads, and for integers their range.  Query
 * predicates cannot test more, such as whether a double equals a Decimal128 exactly.
 * docs/types.md has the rules.
 *-------------------------------------------------------------------------
 */

/*
 * Tells whether BSON type and range decide if a value fits the type.  For text with a limit, only
 * for an ObjectId's digits.
 */
static bool
has_rule(const MongoType *type, bson_type_t bson_type)
{
	return mongo_kinds[type->kind].type_decides_fit &&
		(type->kind == MONGO_KIND_INTEGER || type->limit == 0 || bson_type == BSON_TYPE_OID);
}

static void
append_type_test(BsonArray *conditions, const char *path, const MongoType *type,
				 bson_type_t bson_type)
{
	bson_value_t field = mongo_utf8(path);
	BsonArray	types;
	ListCell   *cell;

	if (type->kind == MONGO_KIND_INTEGER)
		mongo_array_append_template(conditions, "{@1: {$gte: @2, $lte: @3}}", field,
									mongo_int64(-type->limit - 1), mongo_int64(type->limit));
	if (type->kind == MONGO_KIND_INTEGER && bson_type == BSON_TYPE_EOD)
		return;
	types = mongo_array_create();
	foreach(cell, mongo_bson_type_aliases(type->accepts & mongo_declared_set(bson_type)))
		mongo_array_append(&types, mongo_utf8(lfirst(cell)));
	mongo_array_append_template(conditions, "{@1: {$type: @2}}", field, mongo_array(types.bson));
}

static void
append_null_or_type_test(BsonArray *conditions, const char *path, const MongoType *type,
						 bson_type_t bson_type)
{
	BsonArray	tests = mongo_array_create();

	append_type_test(&tests, path, type, bson_type);
	mongo_array_append_template(conditions, tests.count == 1 ? "{$or: [{@1: null}, @2]}" :
								"{$or: [{@1: null}, {$and: @3}]}", mongo_utf8(path),
								mongo_first_value(tests.bson), mongo_array(tests.bson));
}

/*
 * Appends the test that the value is no array and has no fraction.  The first branch matches most
 * values, Int32 or Int64, at half of what an expression costs MongoDB.  An array never equals null.
 */
static void
append_integral_test(BsonArray *conditions, const char *path)
{
	mongo_array_append_template(conditions,
								"{$or: ["
								"{@1: {$not: {$type: ['array', 'double', 'decimal']}}}, "
								"{$expr: {$eq: [@2, "
								"{$cond: [{$isNumber: @2}, {$trunc: @2}, null]}]}}]}",
								mongo_utf8(path), mongo_field_path(path));
}

/*
 * mongo_append_array_checks
 *		Appends to 'conditions', from 'index' on, tests that no array is on the path or at its end.
 *		Returns the next index, or -1 if query predicates cannot test that.
 */
int
mongo_append_array_checks(bson_t *conditions, int index, const char *path)
{
	BsonArray	array = {conditions, index};

	if (!mongo_path_is_addressable(path) || mongo_path_has_index(path))
		return -1;

	/* MongoDB rejects an _id that is an array */
	if (strcmp(path, "_id") != 0)
		mongo_append_no_arrays(&array, path);
	return array.count;
}

/*
 * mongo_append_type_checks
 *		Appends to 'conditions', from 'index' on, tests that the field at 'path' fits a column of
 *		this type and declared BSON type (convert.h).  Returns the next index, or -1 if query
 *		predicates cannot test that.
 *
 * NULL fits only if 'nullable'.  Without it, MongoDB merges a range into the bounds of an index
 * scan and has no second plan to try.  Integers need $expr unless their BSON type is declared, so
 * the result is -1 without 'use_expressions'.
 */
int
mongo_append_type_checks(bson_t *conditions, int index, const char *path, Oid typid, int32 typmod,
						 bson_type_t bson_type, bool nullable, bool use_expressions)
{
	const MongoType *type = mongo_type_facts(typid);
	BsonArray	array = {conditions, index};
	bool		has_fractions;

	if (!has_rule(type, bson_type) || typmod >= 0 ||
		!mongo_path_is_addressable(path) || mongo_path_has_index(path))
		return -1;
	has_fractions = type->kind == MONGO_KIND_INTEGER &&
		bson_type != BSON_TYPE_INT32 && bson_type != BSON_TYPE_INT64;
	if (has_fractions && !use_expressions)
		return -1;
	if (has_fractions)
	{
		mongo_append_no_parent_arrays(&array, path);
		append_integral_test(&array, path);
	}
	else
		array.count = mongo_append_array_checks(conditions, index, path);
	if (nullable)
		append_null_or_type_test(&array, path, type, bson_type);
	else
		append_type_test(&array, path, type, bson_type);
	return array.count;
}

/*-------------------------------------------------------------------------
 * Comparing columns of the text family, which read Strings and ObjectIds.
 *
 * An ObjectId reads as 24 lower-case hexadecimal digits, whose order is that of its bytes.  So
 * a text of such digits equals two BSON values, and a range of texts is a range of Strings and
 * a range of ObjectIds.
 *-------------------------------------------------------------------------
 */

static void
text_points(const MongoPredicate *predicate, Datum value, BsonArray *points)
{
	int			length;
	const char *string = mongo_text_in_utf8(predicate->value_type, value, &length);
	bson_oid_t	oid;

	if (string == NULL)
		return;
	if (predicate->field.bson_type != BSON_TYPE_OID)
		mongo_array_append(points, mongo_utf8_sized(string, length));
	if (predicate->field.bson_type != BSON_TYPE_UTF8 &&
		mongo_objectid_from_text(string, length, true, &oid))
		mongo_array_append(points, mongo_oid(&oid));
}

/*
 * Appends the ObjectIds whose texts are on that side of 'string'.  The text starts with 'common'
 * digits of an ObjectId.  If it continues with a character above a digit, the greatest ObjectId
 * with these digits and a lower one next is the last below it.  Otherwise, or if the text ends
 * there, the ObjectId filled with zeros is the first above it.
 */
static void
append_objectid_range(bson_t *match, const char *path, int strategy, const char *string, int length)
{
	char		digits[MONGO_OBJECTID_TEXT_LENGTH];
	bool		is_upper = mongo_is_upper_bound(strategy);
	bool		is_below;		/* the ObjectId is below the text */
	int			common = 0;
	bson_oid_t	oid;

	while (common < Min(length, MONGO_OBJECTID_TEXT_LENGTH) &&
		   memchr("0123456789abcdef", string[common], 16) != NULL)
		common++;
	is_below = common < length && (common == MONGO_OBJECTID_TEXT_LENGTH ||
								   (unsigned char) string[common] > '0');
	memset(digits, is_below ? 'f' : '0', MONGO_OBJECTID_TEXT_LENGTH);
	memcpy(digits, string, common);
	if (is_below && common < MONGO_OBJECTID_TEXT_LENGTH && (unsigned char) string[common] < 'a')
		digits[common] = '9';
	mongo_objectid_from_text(digits, MONGO_OBJECTID_TEXT_LENGTH, true, &oid);

	/* an ObjectId that differs from the text is either below or above it */
	if (length != MONGO_OBJECTID_TEXT_LENGTH || common < length)
		strategy = is_below ? (is_upper ? BTLessEqualStrategyNumber : BTGreaterStrategyNumber) :
			(is_upper ? BTLessStrategyNumber : BTGreaterEqualStrategyNumber);
	mongo_append_condition(match, path, mongo_find_operators[strategy], mongo_oid(&oid));
}

/* The least character above a blank. */
#define NEXT_AFTER_BLANK	"!"

/* Returns how many characters the text has above the column's limit; negative if it has fewer. */
static int
excess(const MongoPredicate *predicate, Datum value)
{
	const char *string;
	int			length;

	if (predicate->field.typmod < (int32) VARHDRSZ ||
		mongo_type_kind(mongo_base_type(predicate->field.type)) != MONGO_KIND_TEXT)
		return -1;
	string = predicate->value_type == NAMEOID ? NameStr(*DatumGetName(value)) :
		text_to_cstring(DatumGetTextPP(value));
	length = pg_mbstrlen(string);
	return length - (predicate->field.typmod - (int32) VARHDRSZ);
}

/*
 * mongo_may_be_cut
 *		Tells whether a column of n characters may compare the value, of n or more, with a text that
 *		it cuts.
 */
bool
mongo_may_be_cut(const MongoPredicate *predicate, Datum value)
{
	int			length;

	return predicate->field.bson_type != BSON_TYPE_OID && excess(predicate, value) >= 0 &&
		mongo_text_in_utf8(predicate->value_type, value, &length) != NULL;
}

/*
 * Compares a varchar(n) with a text of n characters or more.  The text equals stored values that
 * continue with any number of blanks.  All of these, and no other values that the column reads, are
 * below the text followed by "!".  A text longer than n characters equals nothing; its first n
 * characters, with any blanks after them, are below it.
 */
static MongoMatch
cut_text_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	int			longer = excess(predicate, value);
	int			strategy = predicate->strategy;
	MongoPredicate at = *predicate;
	text	   *full = DatumGetTextPP(predicate->value_type == NAMEOID ?
									  DirectFunctionCall1(name_text, value) : value);
	int			kept = pg_mbcharcliplen(VARDATA_ANY(full), VARSIZE_ANY_EXHDR(full),
										predicate->field.typmod - (int32) VARHDRSZ);
	Datum		end = CStringGetTextDatum(psprintf("%.*s" NEXT_AFTER_BLANK, kept,
												   VARDATA_ANY(full)));
	const char *start_text;
	const char *end_text;
	int			start_length;
	int			end_length;
	BsonArray	objectids = mongo_array_create();

	at.field.typmod = -1;
	at.value_type = TEXTOID;
	if (strategy == BTLessEqualStrategyNumber || strategy == BTGreaterStrategyNumber || longer > 0)
	{
		at.strategy = mongo_is_upper_bound(strategy) ? BTLessStrategyNumber :
			BTGreaterEqualStrategyNumber;
		value = end;
	}
	else
		value = PointerGetDatum(full);
	if (strategy != BTEqualStrategyNumber && strategy != MONGO_STRATEGY_NOT_EQUAL)
		return text_range(&at, value, match);
	if (longer > 0)
		return strategy == BTEqualStrategyNumber ? mongo_append_nothing(match, predicate->field.path) :
			append_not_null(match, predicate->field.path);

	start_text = mongo_text_in_utf8(TEXTOID, value, &start_length);
	end_text = mongo_text_in_utf8(TEXTOID, end, &end_length);
	if (strategy == MONGO_STRATEGY_NOT_EQUAL)
		mongo_array_append(&objectids, mongo_null());
	at.field.bson_type = BSON_TYPE_OID;
	if (predicate->field.bson_type != BSON_TYPE_UTF8)
		text_points(&at, value, &objectids);
	mongo_append_template(match, strategy == MONGO_STRATEGY_NOT_EQUAL ?
						  "{@1: {$not: {$gte: @2, $lt: @3}, $nin: @4}}" :
						  objectids.count == 0 ? "{@1: {$gte: @2, $lt: @3}}" :
						  "{$or: [{@1: {$gte: @2, $lt: @3}}, {@1: {$in: @4}}]}",
						  mongo_utf8(predicate->field.path), mongo_utf8_sized(start_text, start_length),
						  mongo_utf8_sized(end_text, end_length), mongo_array(objectids.bson));
	return MONGO_MATCH_SOME;
}

static MongoMatch
text_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	int			length;
	const char *string = mongo_text_in_utf8(predicate->value_type, value, &length);
	const char *path = predicate->field.path;
	bson_t	   *strings = mongo_bson_create();
	bson_t	   *objectids = mongo_bson_create();

	if (mongo_may_be_cut(predicate, value))
		return cut_text_range(predicate, value, match);
	mongo_append_condition(strings, path, mongo_find_operators[predicate->strategy],
						   mongo_utf8_sized(string, length));
	append_objectid_range(objectids, path, predicate->strategy, string, length);
	if (predicate->field.bson_type == BSON_TYPE_EOD)
		mongo_append_template(match, "{$or: [@1, @2]}", mongo_document(strings),
							  mongo_document(objectids));
	else
		mongo_concat(match, predicate->field.bson_type == BSON_TYPE_OID ? objectids : strings);
	return MONGO_MATCH_SOME;
}
