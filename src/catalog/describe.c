/*-------------------------------------------------------------------------
 *
 * describe.c
 *		What the library's tables hold, for the tests that hold them against
 *		the documents and against their own cases.
 *
 * The extension has no such functions.  A test, as a superuser, creates them
 * with CREATE FUNCTION ... AS 'mongo_fdw', 'mongo_fdw_describe_...'; see
 * create_descriptions() of t/MongoFdwTest.pm.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_types.h"
#include "expression_rows.h"
#include "implied.h"
#include "option_table.h"
#include "types.h"

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(mongo_fdw_describe_options);
PG_FUNCTION_INFO_V1(mongo_fdw_describe_names);

/*
 * mongo_fdw_describe_options(OUT name text, OUT objects int, OUT initial text,
 *							  OUT lowest float8, OUT highest float8)
 *		The rows of the table of options; 'objects' are the bits of ON_SERVER
 *		and its like, and the bounds are NULL where any number goes.
 */
Datum
mongo_fdw_describe_options(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < mongo_option_count; i++)
	{
		const MongoOption *option = &mongo_option_table[i];
		bool		bounded = option->min != option->max;
		Datum		values[] = {
			CStringGetTextDatum(option->name),
			Int32GetDatum(option->objects),
			CStringGetTextDatum(option->initial != NULL ? option->initial : ""),
			Float8GetDatum(option->min),
			Float8GetDatum(option->max)
		};
		bool		nulls[] = {false, false, option->initial == NULL, !bounded, !bounded};

		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* The kinds of names that mongo_fdw_describe_names() knows: the n-th, or NULL. */

/* expression_name: the OID of a function that has an aggregation expression. */
static const char *
expression_name(int number)
{
	const MongoExpressionRow *row = mongo_nth_expression_row(number);

	return row != NULL ? psprintf("%u", row->function) : NULL;
}

/* implied_name: the OID of a function that implies conditions on its argument. */
static const char *
implied_name(int number)
{
	Oid			function = mongo_nth_implying_function(number);

	return OidIsValid(function) ? psprintf("%u", function) : NULL;
}

static const char *
type_name(int number)
{
	const MongoType *type = mongo_nth_type(number);

	return type != NULL ? type->name : NULL;
}

static const char *
bson_type_name(int number)
{
	const char *unknown = mongo_bson_type_name(BSON_TYPE_EOD);

	for (int code = BSON_TYPE_EOD; code <= PG_UINT8_MAX; code++)
	{
		const char *name = mongo_bson_type_name(code);

		if (name != unknown && number-- == 0)
			return name;
	}
	return NULL;
}

static const struct
{
	const char *kind;
	const char *(*nth) (int number);
}			kinds[] =
{
	{"expressions", expression_name},
	{"implied conditions", implied_name},
	{"types", type_name},
	{"BSON types", bson_type_name},
};

/*
 * mongo_fdw_describe_names(kind text) returns setof text
 *		The names of all rows of a table; of functions, their OIDs.
 */
Datum
mongo_fdw_describe_names(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	char	   *kind = text_to_cstring(PG_GETARG_TEXT_PP(0));

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	for (size_t i = 0; i < lengthof(kinds); i++)
	{
		const char *name;

		for (int n = 0; strcmp(kinds[i].kind, kind) == 0 && (name = kinds[i].nth(n)) != NULL; n++)
		{
			Datum		value = CStringGetTextDatum(name);
			bool		null = false;

			tuplestore_putvalues(result->setResult, result->setDesc, &value, &null);
		}
	}
	return (Datum) 0;
}
