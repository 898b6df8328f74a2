/*-------------------------------------------------------------------------
 *
 * fit.c
 *		Exact tests that a field fits its column, for the option type_mismatch 'null' and 'skip'.
 *
 * fit_rule_of() has the rule of each type.  The filter of a rule is cheap, and most values pass its
 * first tests.  The expression gives NULL for a value that does not fit.  For some types the values
 * that fit are a range in BSON's order, which $expr compares like one value: an array is outside.
 * MongoDB finds such a range, and what is outside of it, by an index.
 *
 * The tests need $expr.  Those of filters cannot fail; for a String with invalid UTF-8 the value as
 * an expression raises MongoDB's error.  Under type_mismatch 'error' conditions lack these tests.
 * PostgreSQL reads the fields that MongoDB has tested, and raises the error.
 *
 * https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "convert.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"

/* PCRE's largest quantifier. */
#define LARGEST_QUANTIFIER	65535

/* Bytes of a document {a: String}, apart from the String's. */
#define STRING_DOCUMENT_SIZE	13

#define BIT(type)		MONGO_BSON_BIT(BSON_TYPE_##type)

typedef struct FitRule
{
	uint32		accepts;		/* BSON types that may fit: set of
								 * MONGO_BSON_BIT */
	uint32		sure;			/* those that fit between 'low' and 'high' */
	bool		has_range;
	bson_value_t low;
	bson_value_t high;
	bool		by_range;		/* no other value fits, and no other type of
								 * BSON is within the range */
	const char *pattern;		/* of Strings that fit; NULL: none */
	bson_value_t first_limit;	/* @2 of 'beyond'; i386 refuses an array */
	bson_value_t second_limit;	/* @3 of 'beyond' */
	const char *beyond;			/* template: does the value @1 of an accepted
								 * type fit?  NULL: all do */
} FitRule;

/* Sets the least and the greatest value of the types that surely fit. */
static void
set_range(FitRule *rule, bson_value_t low, bson_value_t high)
{
	rule->low = rule->first_limit = low;
	rule->high = rule->second_limit = high;
	rule->has_range = true;
}

/* Returns milliseconds since 1970 of a time in microseconds since 2000. */
static int64
millis_of_timestamp(Timestamp timestamp)
{
	return timestamp / 1000 + MONGO_EPOCH_DAYS * MONGO_MILLIS_PER_DAY;
}

static bson_value_t
decimal_of_text(const char *text)
{
	return mongo_first_value(mongo_decimal_value(text).expression);
}

/*
 * Sets the rule of numeric(p, s), which is below 10^(p - s) after rounding; NaN has no precision.
 * A Double is read with 15 digits, with which $toDecimal converts it.
 */
static bool
set_numeric_rule(FitRule *rule, int32 typmod)
{
	int			precision;
	int			scale;
	StringInfoData nines;
	const char *limit;

	if (!mongo_numeric_typmod(typmod, &precision, &scale))
		return true;
	if (scale < 0 || scale >= precision || precision >= MONGO_MAX_PRECISION)
		return false;

	initStringInfo(&nines);
	for (int i = 0; i < precision; i++)
		appendStringInfoChar(&nines, '9');
	/* half a unit of the last place below the power of ten */
	limit = psprintf("%s5E-%d", nines.data, scale + 1);
	nines.data[precision - scale] = '\0';
	set_range(rule, decimal_of_text(psprintf("-%s", nines.data)), decimal_of_text(nines.data));
	rule->first_limit = decimal_of_text(psprintf("-%s", limit));
	rule->second_limit = decimal_of_text(limit);
	rule->beyond = "{$let: {vars: {d: {$toDecimal: @1}}, in: {$or: [{$eq: ['$$d', NaN]}, {$and: "
		"[{$gt: ['$$d', @2]}, {$lt: ['$$d', @3]}]}]}}}";
	return true;
}

/*
 * Sets the rule of text: valid UTF-8 without U+0000, and of a varchar(n) n characters before blanks
 * ("$" would match before a line feed, too).  For invalid UTF-8 an expression raises an error, and
 * a filter does not match.
 */
static bool
set_text_rule(FitRule *rule, const MongoType *type, int32 typmod)
{
	int			length = typmod >= (int32) VARHDRSZ ? typmod - (int32) VARHDRSZ : -1;

	if (length >= 0 && length < MONGO_OBJECTID_TEXT_LENGTH)
		rule->accepts &= ~BIT(OID);
	rule->sure = rule->accepts & BIT(OID);
	if (rule->sure == rule->accepts)
		return rule->accepts != 0;
	if (GetDatabaseEncoding() != PG_UTF8 || length > LARGEST_QUANTIFIER)
		return false;
	rule->pattern = length < 0 ? "^[^\\x00]*$" : psprintf("^[^\\x00]{0,%d}+ *\\z", length);
	rule->first_limit = mongo_int64(type->limit != 0 ? type->limit : PG_INT32_MAX);
	rule->second_limit = mongo_utf8(rule->pattern);
	rule->beyond = "{$or: [{$eq: [{$type: @1}, 'objectId']}, "
		"{$let: {vars: {s: {$substrBytes: [@1, 0, -1]}}, in: {$and: ["
		"{$regexMatch: {input: '$$s', regex: @3, options: 's'}}, "
		"{$lte: [{$strLenBytes: '$$s'}, @2]}]}}}]}";
	return true;
}

/* Sets the rule of a field's type; returns false if MongoDB cannot test whether a value fits it. */
static bool
fit_rule_of(const MongoField *field, FitRule *rule)
{
	static const bson_oid_t least_oid = {{0}};
	static bson_oid_t greatest_oid;
	const MongoType *type = mongo_type_facts(field->type);
	int64		days = MONGO_EPOCH_DAYS;

	memset(rule, 0, sizeof(*rule));
	if (!mongo_path_is_addressable(field->path) || mongo_path_has_index(field->path))
		return false;
	rule->first_limit = rule->second_limit = mongo_null();
	rule->accepts = rule->sure = type->accepts & mongo_declared_set(field->bson_type);
	switch (type->kind)
	{
		case MONGO_KIND_BOOLEAN:
			set_range(rule, mongo_bool(false), mongo_bool(true));
			rule->by_range = true;
			return true;
		case MONGO_KIND_OBJECTID:
			memset(&greatest_oid, 0xff, sizeof(greatest_oid));
			set_range(rule, mongo_oid(&least_oid), mongo_oid(&greatest_oid));
			rule->by_range = true;
			return true;
		case MONGO_KIND_DATE:
			set_range(rule, mongo_date((DATETIME_MIN_JULIAN - POSTGRES_EPOCH_JDATE + days) *
									   MONGO_MILLIS_PER_DAY),
					  mongo_date((DATE_END_JULIAN - POSTGRES_EPOCH_JDATE + days) *
								 MONGO_MILLIS_PER_DAY - 1));
			rule->by_range = true;
			return true;
		case MONGO_KIND_TIMESTAMP:
		case MONGO_KIND_TIMESTAMPTZ:
			/* rounding may lead outside */
			if (mongo_rounds_timestamp(field->type, field->typmod))
				return false;
			set_range(rule, mongo_date(millis_of_timestamp(MIN_TIMESTAMP)),
					  mongo_date(millis_of_timestamp(END_TIMESTAMP) - 1));
			rule->by_range = true;
			return true;
		case MONGO_KIND_INTEGER:
			set_range(rule, mongo_int64(-type->limit - 1), mongo_int64(type->limit));
			rule->sure &= BIT(INT32) | BIT(INT64);
			rule->beyond = "{$and: [{$gte: [@1, @2]}, {$lte: [@1, @3]}, {$eq: [@1, {$trunc: @1}]}]}";
			return true;
		case MONGO_KIND_DOUBLE:
			rule->sure &= BIT(DOUBLE) | BIT(INT32);
			rule->beyond = "{$eq: [@1, {$convert: {input: @1, to: 'double', onError: null}}]}";
			return true;
		case MONGO_KIND_NUMERIC:
			return set_numeric_rule(rule, field->typmod);
		case MONGO_KIND_TEXT:
			return set_text_rule(rule, type, field->typmod);
		default:
			return false;
	}
}

/*
 * mongo_can_test_fit
 *		Tells whether MongoDB can test that the field fits.
 */
bool
mongo_can_test_fit(const MongoField *field)
{
	FitRule		rule;

	return fit_rule_of(field, &rule);
}

/*
 * mongo_fits_by_range
 *		Tells whether exactly the values in one range fit, which an index can find.
 */
bool
mongo_fits_by_range(const MongoField *field)
{
	FitRule		rule;

	return fit_rule_of(field, &rule) && rule.by_range;
}

/* Returns an expression: is the value one that the column reads, and not NULL? */
static bson_t *
fit_expression(const MongoField *field, const FitRule *rule)
{
	BsonArray	types = mongo_array_create();
	MongoValue	arguments[] = {
		mongo_argument(mongo_field_path(field->path)),
		mongo_argument(rule->first_limit),
		mongo_argument(rule->second_limit),
		{0}
	};
	ListCell   *cell;

	if (rule->by_range)
		return mongo_expand_template("{$and: [{$gte: [@1, @2]}, {$lte: [@1, @3]}]}", arguments, 3);
	foreach(cell, mongo_bson_type_aliases(rule->accepts))
		mongo_array_append(&types, mongo_utf8(lfirst(cell)));
	arguments[3] = mongo_argument(mongo_array(types.bson));
	return mongo_expand_template(rule->beyond == NULL ? "{$in: [{$type: @1}, @4]}" :
								 psprintf("{$cond: [{$in: [{$type: @1}, @4]}, %s, false]}",
										  rule->beyond),
								 arguments, lengthof(arguments));
}

/*
 * mongo_fitting_value
 *		Returns the aggregation expression of the field as read, null if it does not fit; NULL if
 *		MongoDB cannot test that.
 */
bson_t *
mongo_fitting_value(const MongoField *field)
{
	FitRule		rule;
	MongoValue	arguments[2] = {mongo_argument(mongo_field_path(field->path))};

	if (!fit_rule_of(field, &rule))
		return NULL;
	arguments[1].expression = fit_expression(field, &rule);
	return mongo_expand_template("{$cond: [@2, @1, null]}", arguments, lengthof(arguments));
}

/* Appends that the field is missing, null or of one of these types, so no array. */
static void
append_types(BsonArray *conditions, const MongoField *field, uint32 types)
{
	BsonArray	others = mongo_array_create();
	ListCell   *cell;

	types |= BIT(NULL) | BIT(UNDEFINED);
	foreach(cell, mongo_bson_type_aliases(MONGO_BSON_ANY & ~types))
		mongo_array_append(&others, mongo_utf8(lfirst(cell)));
	mongo_array_append_template(conditions, "{@1: {$not: {$type: @2}}}", mongo_utf8(field->path),
								mongo_array(others.bson));
}

/*
 * mongo_append_fit
 *		Appends that a field, which can be tested, fits or is NULL.
 */
void
mongo_append_fit(BsonArray *conditions, const MongoField *field)
{
	bson_value_t path = mongo_utf8(field->path);
	BsonArray	sure = mongo_array_create();
	BsonArray	other = mongo_array_create();
	FitRule		rule;
	int64		limit = mongo_type_facts(field->type)->limit;

	if (!fit_rule_of(field, &rule))
		elog(ERROR, "no rule for type %u", field->type);
	mongo_append_no_parent_arrays(conditions, field->path);
	append_types(&sure, field, rule.sure);
	if (rule.has_range)
		mongo_array_append_template(&sure, "{@1: {$not: {$lt: @2}}}", path, rule.low);
	if (rule.has_range)
		mongo_array_append_template(&sure, "{@1: {$not: {$gt: @2}}}", path, rule.high);
	if (rule.beyond == NULL)
	{
		mongo_array_append_template(conditions, "{$and: @1}", mongo_array(sure.bson));
		return;
	}
	if (rule.pattern != NULL)
	{
		append_types(&other, field, rule.accepts);
		mongo_array_append_template(&other, "{@1: {$regex: @2, $options: 's'}}", path,
									mongo_utf8(rule.pattern));
		/* of any value, as MongoDB may evaluate this first */
		if (limit != 0)
			mongo_array_append_template(&other, "{$expr: {$lte: [{$bsonSize: {a: @1}}, @2]}}",
										mongo_field_path(field->path), mongo_integer(limit + STRING_DOCUMENT_SIZE));
	}
	else
		mongo_array_append_template(&other, "{$expr: @1}", mongo_first_value(fit_expression(field, &rule)));
	mongo_array_append_template(conditions, "{$or: [{$and: @1}, {$and: @2}]}", mongo_array(sure.bson),
								mongo_array(other.bson));
}

/*
 * mongo_append_fitting
 *		Appends that a field, which can be tested, fits and is not NULL.
 */
void
mongo_append_fitting(BsonArray *conditions, const MongoField *field)
{
	mongo_array_append_template(conditions, "{@1: {$ne: null}}", mongo_utf8(field->path));
	mongo_append_fit(conditions, field);
}

/*
 * mongo_append_in_range
 *		Appends a range of an index in which the field, of mongo_fits_by_range(), fits and is not
 *		NULL.
 */
void
mongo_append_in_range(bson_t *match, const MongoField *field)
{
	FitRule		rule;

	if (!fit_rule_of(field, &rule) || !rule.by_range)
		elog(ERROR, "no range for type %u", field->type);
	mongo_append_template(match, "{$expr: @1}", mongo_first_value(fit_expression(field, &rule)));
}

/*
 * mongo_append_misfit
 *		Appends that a field, which can be tested, reads as NULL.
 */
void
mongo_append_misfit(bson_t *match, const MongoField *field)
{
	bson_value_t value = mongo_field_path(field->path);
	BsonArray	fits = mongo_array_create();
	FitRule		rule;

	if (!fit_rule_of(field, &rule))
		elog(ERROR, "no rule for type %u", field->type);

	/*
	 * sparse indexes, which MongoDB uses for comparisons, lack documents
	 * without the field
	 */
	if (rule.by_range)
		mongo_append_template(match, "{$or: [{@1: null}, {$expr: {$lt: [@2, @3]}}, "
							  "{$expr: {$gt: [@2, @4]}}]}",
							  mongo_utf8(field->path), value, rule.low, rule.high);
	else
	{
		mongo_append_fitting(&fits, field);
		mongo_append_template(match, "{$nor: [{$and: @1}]}", mongo_array(fits.bson));
	}
}

/* ------------- Documents in which all columns fit, or some do not ---------- */

/*
 * mongo_append_all_fit
 *		Appends that a document fits all of these columns, or with 'negated' not all.  Returns false
 *		if some cannot be tested: then it has appended a superset, or nothing if negated.
 */
bool
mongo_append_all_fit(bson_t *match, MongoColumns *columns, bool only_skipped, bool negated)
{
	BsonArray	tests = mongo_array_create();
	bool		exact = true;

	for (AttrNumber attnum = 1; attnum <= columns->natts; attnum++)
	{
		MongoField	field;
		Oid			type;
		int32		typmod;
		Oid			collation;

		if (!mongo_decides_fit(columns, attnum, only_skipped))
			continue;
		get_atttypetypmodcoll(columns->relid, attnum, &type, &typmod, &collation);
		if (mongo_column_of_node(columns, (Node *) makeVar(columns->varno, attnum, type, typmod,
														   collation, 0), &field) != NULL &&
			mongo_can_test_fit(&field))
			mongo_append_fit(&tests, &field);
		else
			exact = false;
	}
	if (tests.count > 0 && (exact || !negated))
		mongo_append_template(match, negated ? "{$nor: [{$and: @1}]}" : "{$and: @1}",
							  mongo_array(tests.bson));
	else if (exact && negated)
		mongo_append_template(match, "{$nor: [{}]}");
	return exact;
}
