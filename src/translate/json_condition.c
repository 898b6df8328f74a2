/*-------------------------------------------------------------------------
 *
 * json_condition.c
 *		Conditions on what is inside a json or jsonb column.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "field.h"
#include "json_condition.h"
#include "path.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"

/* A relative error that covers how a Double and a numeric of it may differ. */
#define NUMBER_ERROR	1e-14

/* append_exists: all that is known is that there is something. */
static void
append_exists(bson_t *match, const char *path)
{
	bson_append_condition(match, path, "$exists", bson_bool(true));
}

/* append_string: equal to one in the database's encoding. */
static void
append_string(bson_t *match, const char *path, const char *string, int length)
{
	char	   *converted = pg_server_to_any(string, length, PG_UTF8);

	bson_append_condition(match, path, "$eq",
						  bson_utf8_sized(converted, converted == string ? (size_t) length :
										  strlen(converted)));
}

/* append_number: give or take its last digits. */
static void
append_number(bson_t *match, const char *path, Numeric number)
{
	double		middle = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
															NumericGetDatum(number)));
	double		slack = fabs(middle) * NUMBER_ERROR + 1e-290;

	if (isinf(middle) || isnan(middle))
		append_exists(match, path);
	else
		bson_append_template(match, "{@1: {$gte: @2, $lte: @3}}", bson_utf8(path),
							 bson_double(middle - slack), bson_double(middle + slack));
}

/* append_scalar: where a json field is a scalar; it may match arrays, too. */
static void
append_scalar(bson_t *match, const char *path, const JsonbValue *value)
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
			append_exists(match, path);
			break;
	}
}

/*
 * append_element: where a json field is a scalar, or is an array that holds it.
 * Of what stands at an index, find does not look into an array.
 */
static void
append_element(bson_t *match, const char *path, const JsonbValue *value)
{
	const char *dot = strrchr(path, '.');
	const char *last = dot == NULL ? path : dot + 1;

	if (last[strspn(last, "0123456789")] == '\0')
		append_exists(match, path);
	else
		append_scalar(match, path, value);
}

/*
 * json text that is not a string's: what begins like a number, true, false, an
 * object or an array could come from a field of another type.
 */
static bool
may_be_other_json(const char *string, int length)
{
	return length > 0 && strchr("-0123456789tf{[NI", string[0]) != NULL;
}

MongoMatch
mongo_json_text_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	text	   *packed;

	if (predicate->strategy != BTEqualStrategyNumber || predicate->value_type == NAMEOID)
	{
		append_exists(match, predicate->path);
		return MONGO_MATCH_SOME;
	}

	packed = DatumGetTextPP(value);
	if (may_be_other_json(VARDATA_ANY(packed), VARSIZE_ANY_EXHDR(packed)))
		append_exists(match, predicate->path);
	else
		append_string(match, predicate->path, VARDATA_ANY(packed),
					  VARSIZE_ANY_EXHDR(packed));
	return MONGO_MATCH_SOME;
}

MongoMatch
mongo_jsonb_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	JsonbValue	scalar;

	if (predicate->strategy == BTEqualStrategyNumber && JB_ROOT_IS_SCALAR(jsonb) &&
		JsonbExtractScalar(&jsonb->root, &scalar))
		append_scalar(match, predicate->path, &scalar);
	else
		append_exists(match, predicate->path);
	return MONGO_MATCH_SOME;
}

/*
 * append_contained adds to an array of conditions what a document must hold
 * for "path @> container"; keys that no path can name are left out.
 */
static void
append_contained(BsonArray *conditions, const char *path, JsonbContainer *container)
{
	JsonbIterator *iterator = JsonbIteratorInit(container);
	JsonbIteratorToken token;
	JsonbValue	value;
	StringInfoData field;

	check_stack_depth();
	initStringInfo(&field);
	appendStringInfoString(&field, path);

	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		bson_t		condition;

		if (token == WJB_KEY)
		{
			resetStringInfo(&field);
			appendStringInfoString(&field, path);
			if (!mongo_append_json_key(&field, TEXTOID,
									   PointerGetDatum(cstring_to_text_with_len(value.val.string.val,
																				value.val.string.len))) ||
				!mongo_path_is_addressable(field.data))
				resetStringInfo(&field);
			continue;
		}
		if ((token != WJB_VALUE && token != WJB_ELEM) || field.len == 0)
			continue;
		if (value.type == jbvBinary)
		{
			/* an object among an array's elements is not at any one path */
			if (token == WJB_VALUE)
				append_contained(conditions, field.data, value.val.binary.data);
			continue;
		}
		if (value.type == jbvNull)
			continue;
		bson_array_begin_document(conditions, &condition);
		if (token == WJB_ELEM)
			append_element(&condition, field.data, &value);
		else
			append_scalar(&condition, field.data, &value);
		bson_array_end_document(conditions, &condition);
	}
}

/* render_contains: column @> value; false where that asks for nothing. */
static bool
render_contains(const char *path, Datum value, bson_t *match)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	BsonArray	conditions = bson_array_create();

	append_contained(&conditions, path, &jsonb->root);
	if (conditions.count == 0)
		return false;
	BSON_APPEND_ARRAY(match, "$and", conditions.bson);
	return true;
}

/* A key of an object, an element of an array, or the string itself. */
static bool
render_exists(const char *path, Datum value, bson_t *match)
{
	text	   *packed = DatumGetTextPP(value);
	JsonbValue	string = {.type = jbvString};
	StringInfoData field;
	bson_t	   *element = bson_create_in(CurrentMemoryContext);

	string.val.string.val = VARDATA_ANY(packed);
	string.val.string.len = VARSIZE_ANY_EXHDR(packed);
	initStringInfo(&field);
	appendStringInfoString(&field, path);
	if (!mongo_append_json_key(&field, TEXTOID, PointerGetDatum(packed)))
		return false;

	append_element(element, path, &string);
	bson_append_template(match, "{$or: [{@1: {$exists: true}}, @2]}",
						 bson_utf8(field.data), bson_document(element));
	return true;
}

static const struct
{
	Oid			function;
	bool		(*render) (const char *path, Datum value, bson_t *match);
}			tests[] =
{
	{F_JSONB_CONTAINS, render_contains},
	{F_JSONB_EXISTS, render_exists},
};

bool
mongo_is_json_test(Oid operator)
{
	Oid			function = get_opcode(operator);

	for (size_t i = 0; i < lengthof(tests); i++)
	{
		if (tests[i].function == function)
			return true;
	}
	return false;
}

bool
mongo_render_json_test(const char *path, Oid operator, Datum value, bson_t *match)
{
	Oid			function = get_opcode(operator);

	for (size_t i = 0; i < lengthof(tests); i++)
	{
		if (tests[i].function == function)
			return tests[i].render(path, value, match);
	}
	return false;
}
