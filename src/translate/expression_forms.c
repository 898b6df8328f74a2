/*-------------------------------------------------------------------------
 *
 * expression_forms.c
 *		Values of each type in aggregation expressions: what of a column's may
 *		stand there, and their normal form.
 *
 * A column reads several BSON types (docs/types.md).  MongoDB compares numbers
 * of all BSON types by value, but its functions do not take all of them for
 * the same: 5.0 as a string is "5", as a Decimal128 it has 15 digits.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "bson_date.h"
#include "bson_memory.h"
#include "comparison.h"
#include "decimal128.h"
#include "digits.h"
#include "encode.h"
#include "expression_parts.h"
#include "types.h"

#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

MongoValue
mongo_decimal_value(const char *text)
{
	MongoValue	value = {bson_create_in(CurrentMemoryContext), NUMERICOID, -1, .atomic = true};
	bson_decimal128_t decimal;

	if (!bson_decimal128_from_string(text, &decimal))
		elog(ERROR, "not a Decimal128: %s", text);
	BSON_APPEND_DECIMAL128(value.expression, "", &decimal);
	return value;
}

/* A number becomes a Decimal128 when it is multiplied by a Decimal128 that is one. */
#define DECIMAL_OF(number, one)	"{$multiply: [" number ", " one "]}"

bson_t *
mongo_decimal_of_number(const MongoValue *value)
{
	MongoValue	arguments[2] = {*value, mongo_decimal_value("1")};

	return mongo_expand_template(DECIMAL_OF("@1", "@2"), arguments, lengthof(arguments));
}

/*
 * round_numeric: to the scale of the column, half away from zero, as reading
 * does.  One half in the last place is added, the rest cut off; both are exact
 * with up to MONGO_MAX_PRECISION digits, as the sum has no more digits before
 * the point than the result.
 */
static bool
round_numeric(MongoValue *value, int precision, int scale)
{
	MongoValue	arguments[5];

	if (scale < 0 || precision > MONGO_MAX_PRECISION)
		return false;
	arguments[0] = *value;
	arguments[1] = mongo_decimal_value(psprintf("5E-%d", scale + 1));
	arguments[2] = mongo_decimal_value(psprintf("-5E-%d", scale + 1));
	arguments[3] = mongo_atomic(bson_int32(scale));
	arguments[4] = mongo_decimal_value("1");
	value->expression =
		mongo_expand_template("{$trunc: [{$add: [" DECIMAL_OF("@1", "@5") ", "
							  "{$cond: [{$lt: [@1, 0]}, @3, @2]}]}, @4]}",
							  arguments, lengthof(arguments));
	return true;
}

/*
 * A Double becomes a Decimal128 of 15 digits, zeros included, which are no
 * decimals of the numeric: they are cut from the text of its mantissa.
 */
#define DOUBLE_SCALE_FORM \
	"{$cond: [{$eq: [{$type: @1}, 'double']}, " \
	"{$let: {vars: {s: {$split: [{$toString: {$toDecimal: @1}}, 'E']}}, in: " \
	"{$toDecimal: {$concat: [" \
	"{$cond: [{$regexMatch: {input: {$first: '$$s'}, regex: '[.]'}}, " \
	"{$rtrim: {input: {$rtrim: {input: {$first: '$$s'}, chars: '0'}}, chars: '.'}}, " \
	"{$first: '$$s'}]}, " \
	"{$cond: [{$eq: [{$size: '$$s'}, 1]}, '', {$concat: ['E', {$last: '$$s'}]}]}]}}}}, " \
	DECIMAL_OF("@1", "@2") "]}"

/* normalize_numeric: as a Decimal128, rounded as the column's precision and scale say. */
static bool
normalize_numeric(const MongoScope *scope, MongoValue *value)
{
	MongoValue	arguments[2] = {*value, mongo_decimal_value("1")};
	int			precision;
	int			scale;

	if (mongo_numeric_typmod(value->typmod, &precision, &scale))
		return round_numeric(value, precision, scale);
	if (scope->scale)
		value->expression = mongo_expand_template(DOUBLE_SCALE_FORM, arguments,
												  lengthof(arguments));
	else
		value->expression = mongo_decimal_of_number(value);
	return true;
}

bool
mongo_normalize(const MongoScope *scope, MongoValue *value)
{
	const char *form = mongo_kind_of_type(value->type)->normal_form;

	if (!value->raw)
		return true;
	if (form == NULL || mongo_rounds_timestamp(value->type, value->typmod))
		return false;
	if (form[0] == '\0')
		return true;
	if (value->type == NUMERICOID)
	{
		if (!normalize_numeric(scope, value))
			return false;
	}
	else
		value->expression = mongo_expand_template(form, value, 1);
	value->raw = false;
	value->atomic = false;
	return true;
}

/* has_exact_form: is the constant, when written, still the same value? */
static bool
has_exact_form(Oid type, Datum value)
{
	bson_decimal128_t decimal;
	bool		exact;

	switch (mongo_type_kind(type))
	{
		case MONGO_KIND_NUMERIC:
			return mongo_numeric_to_decimal128(DatumGetNumeric(value), &decimal);
		case MONGO_KIND_TEXT:
			/* bytes that are no characters have no form in UTF-8 */
			return GetDatabaseEncoding() != PG_SQL_ASCII;
		case MONGO_KIND_DATE:
			return !DATE_NOT_FINITE(DatumGetDateADT(value));
		case MONGO_KIND_TIMESTAMP:
		case MONGO_KIND_TIMESTAMPTZ:
			if (TIMESTAMP_NOT_FINITE(DatumGetTimestamp(value)))
				return false;
			mongo_timestamp_to_millis(DatumGetTimestamp(value), &exact);
			return exact;
		default:
			return true;
	}
}

/* array_has_exact_form: an array of one dimension of such values. */
static bool
array_has_exact_form(Oid element, Datum value)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	int16		length;
	bool		by_value;
	char		alignment;
	Datum	   *values;
	bool	   *isnull;
	int			count;

	if (ARR_NDIM(array) > 1 || !mongo_has_normal_form(element))
		return false;
	get_typlenbyvalalign(element, &length, &by_value, &alignment);
	deconstruct_array(array, element, length, by_value, alignment, &values, &isnull, &count);
	for (int i = 0; i < count; i++)
	{
		if (!isnull[i] && !has_exact_form(element, values[i]))
			return false;
	}
	return true;
}

/* Strings may begin with "$", and documents be expressions. */
static bool
needs_literal(const Const *constant)
{
	static const bool plain[] = {
		[MONGO_KIND_BOOLEAN] = true, [MONGO_KIND_INTEGER] = true,
		[MONGO_KIND_DOUBLE] = true, [MONGO_KIND_NUMERIC] = true,
		[MONGO_KIND_TIMESTAMP] = true, [MONGO_KIND_TIMESTAMPTZ] = true
	};
	MongoTypeKind class = mongo_kind_of_type(constant->consttype)->class;

	return !constant->constisnull && !(class < lengthof(plain) && plain[class]);
}

bool
mongo_literal(const Const *constant, MongoValue *value)
{
	Oid			type = constant->consttype;
	Oid			element = get_element_type(type);
	bson_t		literal;

	if (!constant->constisnull &&
		!(OidIsValid(element) ? array_has_exact_form(element, constant->constvalue) :
		  has_exact_form(type, constant->constvalue)))
		return false;

	memset(value, 0, sizeof(*value));
	value->expression = bson_create_in(CurrentMemoryContext);
	value->type = type;
	value->typmod = constant->consttypmod;
	value->constant = constant;
	value->nullable = constant->constisnull;
	value->nan = !constant->constisnull &&
		((type == FLOAT8OID && isnan(DatumGetFloat8(constant->constvalue))) ||
		 (type == NUMERICOID && numeric_is_nan(DatumGetNumeric(constant->constvalue))));
	value->atomic = true;

	if (!needs_literal(constant))
	{
		mongo_append_datum(value->expression, "", -1, constant->constvalue,
						   constant->constisnull, type, constant->consttypmod);
		return true;
	}
	BSON_APPEND_DOCUMENT_BEGIN(value->expression, "", &literal);
	mongo_append_datum(&literal, "$literal", -1, constant->constvalue,
					   constant->constisnull, type, constant->consttypmod);
	bson_append_document_end(value->expression, &literal);
	return true;
}
