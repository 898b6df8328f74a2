/*-------------------------------------------------------------------------
 *
 * aggregate_fits.c
 *		Do the values that a $group has accumulated fit their column?
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "aggregate_fits.h"

#include "bson_memory.h"
#include "encoding.h"
#include "objectid.h"
#include "options.h"
#include "remote_error.h"

#include "catalog/pg_type_d.h"
#include "utils/builtins.h"

/*
 * Of texts, keys are asked for as well, which may be missing.  Below numbers is
 * MinKey alone, which nobody stores.  A comparison says of a number that it is
 * one, and of the right size: null is below, the rest above.
 */
static const MongoAggregateFit fits[] =
{
	{{INT2OID}, "{$lte: [@1, 32767]}", false},
	{{INT4OID}, "{$lte: [@1, 2147483647]}", false},
	{{INT8OID}, "{$lte: [@1, 9223372036854775807]}", false},
	{{FLOAT8OID, NUMERICOID}, "{$lte: [@1, inf]}", false},
	{{TEXTOID, VARCHAROID, NAMEOID},
	"{$in: [{$type: @1}, ['string', 'symbol', 'objectId', 'null', 'undefined', 'missing']]}", true},
	{{BOOLOID}, "{$in: [{$type: @1}, ['bool', 'null']]}", true},
	{{DATEOID, TIMESTAMPOID, TIMESTAMPTZOID}, "{$in: [{$type: @1}, ['date', 'null']]}", true},
};

const MongoAggregateFit *
mongo_aggregate_fit(Oid type)
{
	static const MongoAggregateFit objectid_fit =
	{{InvalidOid}, "{$in: [{$type: @1}, ['objectId', 'null']]}", true};

	for (size_t i = 0; i < lengthof(fits); i++)
	{
		for (size_t j = 0; j < lengthof(fits[i].types) && OidIsValid(fits[i].types[j]); j++)
		{
			if (fits[i].types[j] == type)
				return &fits[i];
		}
	}
	return type == mongo_objectid_type_oid() ? &objectid_fit : NULL;
}

/*
 * raise: an error that says what MONGO_MISMATCH promises.  Only where it is
 * evaluated, as the value's type is not a constant.
 */
static bson_t *
raise(const Var *column, const MongoField *field, const MongoValue *value)
{
	const MongoTableOptions *options = mongo_table_options(field->columns->relid);
	const char *path = field->path;
	MongoValue	arguments[2] = {*value, {.expression = bson_create_in(CurrentMemoryContext)}};

	if (field->columns->prefix != NULL)
		path += strlen(field->columns->prefix) + 1;
	BSON_APPEND_UTF8(arguments[1].expression, "",
					 psprintf(MONGO_MISMATCH "%s" MONGO_MISMATCH_SEPARATOR "%s.%s"
							  MONGO_MISMATCH_SEPARATOR "%s" MONGO_MISMATCH_SEPARATOR,
							  path, mongo_to_utf8(options->database),
							  mongo_to_utf8(options->collection),
							  mongo_to_utf8(format_type_be(column->vartype))));
	return mongo_expand_template("{$toInt: {$concat: [@2, {$type: @1}]}}", arguments,
								 lengthof(arguments));
}

/* unless_mismatch: {$cond: [fits, result, error]} */
static bson_t *
unless_mismatch(const MongoAggregateFit *fit, const Var *column, const MongoField *field,
			  const MongoValue *value, bson_t *result)
{
	MongoValue	arguments[3] = {
		{.expression = mongo_expand_template(fit->fits, value, 1)},
		{.expression = result},
		{.expression = raise(column, field, value)}
	};

	return mongo_expand_template("{$cond: [@1, @2, @3]}", arguments, lengthof(arguments));
}

bson_t *
mongo_fits_or_raise(const MongoAggregateFit *fit, const Var *column, const MongoField *field,
					const MongoValue *greatest, const MongoValue *least,
					const MongoValue *result)
{
	bson_t	   *expression = unless_mismatch(fit, column, field, greatest, result->expression);

	return least == NULL ? expression :
		unless_mismatch(fit, column, field, least, expression);
}
