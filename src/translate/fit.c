/*-------------------------------------------------------------------------
 *
 * fit.c
 *		Conditions that a field fits its column, for the option type_mismatch.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "common.h"
#include "convert.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

/*
 * Which values does a column read?
 *
 * For some types these are a range in BSON's order, which $expr compares like one value: an
 * array is outside.  MongoDB finds such a range, and what is outside of it, by an index.  For
 * the other types the BSON type is tested, and then what the type requires beyond that.
 *
 * Under type_mismatch 'error' conditions do not contain these tests.  PostgreSQL reads the
 * fields that MongoDB has tested, and raises the error.
 *
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 */

/* PCRE's largest quantifier. */
#define LARGEST_QUANTIFIER	65535

typedef struct FitRule
{
	bool		by_range;		/* from 'low' to 'high' in BSON's order */
	bson_value_t low;
	bson_value_t high;
	const char *beyond;			/* template over the value, @1, with low @2
								 * and high @3; NULL: the BSON type decides */
	uint32		accepts;		/* set of MONGO_BSON_BIT */
} FitRule;

/* set_range: the range of BSON's order that the type reads. */
static void
set_range(FitRule *rule, bson_value_t low, bson_value_t high)
{
	rule->low = low;
	rule->high = high;
	rule->by_range = true;
}

/* Milliseconds since 1970 of a time in microseconds since 2000. */
static int64
millis_of_timestamp(Timestamp timestamp)
{
	return timestamp / 1000 + MONGO_EPOCH_DAYS * MONGO_MILLIS_PER_DAY;
}

/* set_numeric_rule: a numeric(p, s) is below 10^(p - s) after rounding; NaN has no precision. */
static bool
set_numeric_rule(FitRule *rule, int32 typmod)
{
	int			precision;
	int			scale;
	StringInfoData limit;
	bson_value_t decimal = {.value_type = BSON_TYPE_DECIMAL128};

	if (!mongo_numeric_typmod(typmod, &precision, &scale))
		return true;
	if (scale < 0 || precision >= MONGO_MAX_PRECISION)
		return false;

	/* half a unit of the last place below the power of ten */
	initStringInfo(&limit);
	for (int i = 0; i < precision; i++)
		appendStringInfoChar(&limit, '9');
	appendStringInfo(&limit, "5E-%d", scale + 1);
	if (!bson_decimal128_from_string(limit.data, &decimal.value.v_decimal128))
		elog(ERROR, "not a Decimal128: %s", limit.data);
	rule->high = decimal;
	bson_decimal128_from_string(psprintf("-%s", limit.data), &decimal.value.v_decimal128);
	rule->low = decimal;

	/* a Double is read with 15 digits, with which $toDecimal converts it */
	rule->beyond = "{$let: {vars: {d: {$toDecimal: @1}}, in: {$or: [{$eq: ['$$d', NaN]}, "
		"{$and: [{$gt: ['$$d', @2]}, {$lt: ['$$d', @3]}]}]}}}";
	return true;
}

/*
 * set_text_rule: a text is valid UTF-8 without U+0000, and of a varchar(n) has n characters
 * before blanks.  For invalid UTF-8 MongoDB raises an error.
 */
static bool
set_text_rule(FitRule *rule, const MongoType *type, int32 typmod)
{
	int			length = typmod >= (int32) VARHDRSZ ? typmod - (int32) VARHDRSZ : -1;

	if (rule->accepts == MONGO_BSON_BIT(BSON_TYPE_OID))
		return length < 0 || length >= MONGO_OBJECTID_TEXT_LENGTH;
	if (GetDatabaseEncoding() != PG_UTF8 || length > LARGEST_QUANTIFIER)
		return false;
	if (length >= 0 && length < MONGO_OBJECTID_TEXT_LENGTH)
		rule->accepts &= ~MONGO_BSON_BIT(BSON_TYPE_OID);
	rule->low = bson_utf8(length < 0 ? "^[^\\x00]*$" : psprintf("^[^\\x00]{0,%d} *$", length));
	rule->high = bson_int64(type->limit);
	rule->beyond = type->limit == 0 ?
		"{$or: [{$eq: [{$type: @1}, 'objectId']}, "
		"{$regexMatch: {input: {$substrBytes: [@1, 0, -1]}, regex: @2, options: 's'}}]}" :
		"{$or: [{$eq: [{$type: @1}, 'objectId']}, "
		"{$let: {vars: {s: {$substrBytes: [@1, 0, -1]}}, in: {$and: ["
		"{$regexMatch: {input: '$$s', regex: @2, options: 's'}}, "
		"{$lte: [{$strLenBytes: '$$s'}, @3]}]}}}]}";
	return true;
}

/* find_rule: false if MongoDB cannot test whether a value fits the type. */
static bool
find_rule(Oid typid, int32 typmod, bson_type_t bson_type, FitRule *rule)
{
	static const bson_oid_t least_oid = {{0}};
	static bson_oid_t greatest_oid;
	const MongoType *type = mongo_type_facts(typid);
	int64		days = MONGO_EPOCH_DAYS;

	memset(rule, 0, sizeof(*rule));
	rule->accepts = type->accepts & mongo_declared_set(bson_type);
	switch (type->kind)
	{
		case MONGO_KIND_BOOLEAN:
			set_range(rule, bson_bool(false), bson_bool(true));
			return true;
		case MONGO_KIND_OBJECTID:
			memset(&greatest_oid, 0xff, sizeof(greatest_oid));
			set_range(rule, bson_oid(&least_oid), bson_oid(&greatest_oid));
			return true;
		case MONGO_KIND_DATE:
			set_range(rule, bson_date((DATETIME_MIN_JULIAN - POSTGRES_EPOCH_JDATE + days) *
									  MONGO_MILLIS_PER_DAY),
					  bson_date((DATE_END_JULIAN - POSTGRES_EPOCH_JDATE + days) *
								MONGO_MILLIS_PER_DAY - 1));
			return true;
		case MONGO_KIND_TIMESTAMP:
		case MONGO_KIND_TIMESTAMPTZ:
			/* rounding may lead outside */
			if (mongo_rounds_timestamp(typid, typmod))
				return false;
			set_range(rule, bson_date(millis_of_timestamp(MIN_TIMESTAMP)),
					  bson_date(millis_of_timestamp(END_TIMESTAMP) - 1));
			return true;
		case MONGO_KIND_INTEGER:
			rule->low = bson_int64(-type->limit - 1);
			rule->high = bson_int64(type->limit);
			rule->beyond = "{$and: [{$gte: [@1, @2]}, {$lte: [@1, @3]}, {$eq: [@1, {$trunc: @1}]}]}";
			return true;
		case MONGO_KIND_DOUBLE:
			rule->beyond = "{$eq: [@1, {$convert: {input: @1, to: 'double', onError: null}}]}";
			return true;
		case MONGO_KIND_NUMERIC:
			return set_numeric_rule(rule, typmod);
		case MONGO_KIND_TEXT:
			return set_text_rule(rule, type, typmod);
		default:
			return false;
	}
}

/*
 * fit_expression: is the value, a field or variable, one that the column reads, and not NULL?
 * NULL: MongoDB cannot test that.
 */
static bson_t *
fit_expression(const MongoValue *value, bson_type_t bson_type)
{
	FitRule		rule;
	BsonArray	types = bson_array_create();
	MongoValue	arguments[4] = {*value};
	ListCell   *cell;

	if (!find_rule(value->type, value->typmod, bson_type, &rule))
		return NULL;
	arguments[1] = mongo_argument(rule.low.value_type == BSON_TYPE_EOD ? bson_null() : rule.low);
	arguments[2] = mongo_argument(rule.high.value_type == BSON_TYPE_EOD ? bson_null() : rule.high);
	if (rule.by_range)
		return mongo_expand_template("{$and: [{$gte: [@1, @2]}, {$lte: [@1, @3]}]}", arguments, 3);
	foreach(cell, mongo_bson_type_aliases(rule.accepts))
		bson_array_append(&types, bson_utf8(lfirst(cell)));
	arguments[3] = mongo_argument(bson_array(types.bson));
	return mongo_expand_template(rule.beyond == NULL ? "{$in: [{$type: @1}, @4]}" :
								 psprintf("{$cond: [{$in: [{$type: @1}, @4]}, %s, false]}", rule.beyond),
								 arguments, 4);
}

/* value_at: the field as a value of its column's base type. */
static MongoValue
value_at(const MongoField *field)
{
	MongoValue	value = mongo_argument(bson_field(field->path));

	value.type = field->type;
	value.typmod = field->typmod;
	return value;
}

bool
mongo_can_test_fit(const MongoField *field)
{
	FitRule		rule;

	return find_rule(field->type, field->typmod, field->bson_type, &rule) &&
		mongo_path_is_addressable(field->path) && !mongo_path_has_index(field->path);
}

bool
mongo_fits_by_range(const MongoField *field)
{
	FitRule		rule;

	return mongo_can_test_fit(field) &&
		find_rule(field->type, field->typmod, field->bson_type, &rule) && rule.by_range;
}

bson_t *
mongo_fitting_value(const MongoField *field)
{
	MongoValue	arguments[2] = {value_at(field)};

	arguments[1].expression = fit_expression(&arguments[0], field->bson_type);
	if (arguments[1].expression == NULL)
		return NULL;
	return mongo_expand_template("{$cond: [@2, @1, null]}", arguments, lengthof(arguments));
}

void
mongo_append_fit(BsonArray *conditions, const MongoField *field)
{
	MongoValue	value = value_at(field);

	bson_array_append_template(conditions, "{$expr: @1}",
							   bson_first(fit_expression(&value, field->bson_type)));
}

void
mongo_append_misfit(bson_t *match, const MongoField *field)
{
	MongoValue	value = value_at(field);
	FitRule		rule;

	if (!find_rule(field->type, field->typmod, field->bson_type, &rule))
		elog(ERROR, "no rule for type %u", field->type);

	/* sparse indexes, which MongoDB uses for comparisons, lack documents without the field */
	if (rule.by_range)
		bson_append_template(match, "{$or: [{@1: null}, {$expr: {$lt: [@2, @3]}}, "
							 "{$expr: {$gt: [@2, @4]}}]}",
							 bson_utf8(field->path), bson_first(value.expression), rule.low, rule.high);
	else
		bson_append_template(match, "{$expr: {$not: [@1]}}",
							 bson_first(fit_expression(&value, field->bson_type)));
}

/* ------------- Documents in which all columns fit, or some do not ---------- */

bool
mongo_decides_fit(MongoColumns *columns, AttrNumber attnum, bool only_skipped)
{
	Oid			type = get_atttype(columns->relid, attnum);

	return OidIsValid(type) && mongo_column_path(columns, attnum) != NULL &&
		mongo_type_facts(getBaseType(type))->accepts != MONGO_BSON_ANY &&
		(!only_skipped || mongo_column_mismatch(columns, attnum) == MONGO_TYPE_MISMATCH_SKIP);
}

bool
mongo_append_all_fit(bson_t *match, MongoColumns *columns, bool only_skipped, bool negated)
{
	BsonArray	tests = bson_array_create();
	bool		exact = true;

	for (AttrNumber attnum = 1; attnum <= columns->natts; attnum++)
	{
		MongoField	field;
		Oid			type;
		int32		typmod;
		Oid			collation;
		MongoValue	value;

		if (!mongo_decides_fit(columns, attnum, only_skipped))
			continue;
		get_atttypetypmodcoll(columns->relid, attnum, &type, &typmod, &collation);
		if (mongo_column_of_node(columns, (Node *) makeVar(columns->varno, attnum, type, typmod,
														   collation, 0), &field) == NULL ||
			!mongo_can_test_fit(&field))
		{
			exact = false;
			continue;
		}
		value = value_at(&field);
		bson_array_append_template(&tests, "{$or: [@1, {$in: [{$type: @2}, "
								   "['missing', 'null', 'undefined']]}]}",
								   bson_first(fit_expression(&value, field.bson_type)),
								   bson_first(value.expression));
	}
	if (tests.count > 0 && (exact || !negated))
		bson_append_template(match, negated ? "{$expr: {$not: [{$and: @1}]}}" :
							 "{$expr: {$and: @1}}", bson_array(tests.bson));
	else if (exact && negated)
		bson_append_template(match, "{$nor: [{}]}");
	return exact;
}
