/*-------------------------------------------------------------------------
 *
 * json_scalar.c
 *		Where a field is a scalar of json.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "json_scalar.h"

#include "bson_write.h"

#include <math.h>

#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

/* append_string: equal to one in the database's encoding. */
static void
append_string(bson_t *match, const char *path, const char *string, int length)
{
	char	   *converted = pg_server_to_any(string, length, PG_UTF8);

	bson_append_condition(match, path, "$eq",
						  bson_utf8_sized(converted, converted == string ? (size_t) length :
										  strlen(converted)));
}

/*
 * append_number: each BSON number whose JSON this is: an integer, or the Double whose
 * shortest form it is.  Points, as of an array MongoDB takes but one bound of a range.
 */
static void
append_number(bson_t *match, const char *path, Numeric number)
{
	Datum		datum = NumericGetDatum(number);
	double		middle = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, datum));
	bool		is_whole;

	if (isinf(middle) || isnan(middle) || fabs(middle) > 9e18)
	{
		bson_append_condition(match, path, "$exists", bson_bool(true));
		return;
	}
	is_whole = DatumGetBool(DirectFunctionCall2(numeric_eq, datum,
												DirectFunctionCall2(numeric_trunc, datum,
																	Int32GetDatum(0))));
	if (!is_whole)
		bson_append_condition(match, path, "$eq", bson_double(middle));
	else
	{
		bson_value_t whole = bson_integer(DatumGetInt64(DirectFunctionCall1(numeric_int8, datum)));

		if (fabs(middle) < MONGO_LARGEST_EXACT)
			bson_append_condition(match, path, "$eq", whole);
		else
			bson_append_template(match, "{@1: {$in: [@2, @3]}}", bson_utf8(path), whole,
								 bson_double(middle));
	}
}

void
mongo_append_json_scalar(bson_t *match, const char *path, const JsonbValue *value)
{
	switch (value->type)
	{
		case jbvString:
			append_string(match, path, value->val.string.val, value->val.string.len);
			break;
		case jbvNumeric:
			append_number(match, path, value->val.numeric);
			break;
		case jbvBool:
			bson_append_condition(match, path, "$eq", bson_bool(value->val.boolean));
			break;
		default:
			bson_append_condition(match, path, "$exists", bson_bool(true));
			break;
	}
}
