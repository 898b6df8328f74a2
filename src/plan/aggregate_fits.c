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
#include "declared_type.h"
#include "encoding.h"
#include "options.h"
#include "remote_error.h"
#include "types.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"

/*
 * type_test: is this one of the BSON types that the type reads?  Of texts, keys are
 * asked for as well, which may be missing.
 */
static const char *
type_test(const MongoType *type, bson_type_t bson_type)
{
	StringInfoData test;
	ListCell   *cell;

	initStringInfo(&test);
	appendStringInfoString(&test, "{$in: [{$type: @1}, [");
	foreach(cell, mongo_bson_type_aliases(type->accepts & mongo_declared_set(bson_type)))
		appendStringInfo(&test, "'%s', ", (const char *) lfirst(cell));
	appendStringInfoString(&test, type->kind == MONGO_KIND_TEXT ?
						   "'null', 'undefined', 'missing']]}" : "'null']]}");
	return test.data;
}

/*
 * mongo_aggregate_fit
 *
 * Below numbers is MinKey alone, which nobody stores.  A comparison says of a
 * number that it is one, and of the right size: null is below, the rest above.
 */
const MongoAggregateFit *
mongo_aggregate_fit(Oid typid, bson_type_t bson_type)
{
	const MongoType *type = mongo_type_facts(typid);
	MongoAggregateFit *fit;

	if (!mongo_has_normal_form(typid))
		return NULL;
	fit = palloc(sizeof(MongoAggregateFit));
	fit->has_lower = (type->accepts & MONGO_BSON_BIT(BSON_TYPE_DOUBLE)) == 0;
	fit->fits = fit->has_lower ? type_test(type, bson_type) :
		type->kind != MONGO_KIND_INTEGER ? "{$lte: [@1, inf]}" :
		psprintf("{$lte: [@1, " INT64_FORMAT "]}", type->limit);
	return fit;
}

/*
 * raise: an error that says what MONGO_MISMATCH promises.  Only where it is
 * evaluated, as the value's type is not a constant.
 */
static bson_t *
mismatch_expression(const Var *column, const MongoField *field, const MongoValue *value)
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
		{.expression = mismatch_expression(column, field, value)}
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
