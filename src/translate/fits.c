/*-------------------------------------------------------------------------
 *
 * fits.c
 *		"This field can be read by its column", in find's language.
 *
 * By which BSON types the column's type reads, and for integers the range.  Of
 * other types find's language cannot say it (whether a double holds a Decimal128
 * exactly, say).  The rules are those of docs/types.md.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fits.h"

#include "bson_write.h"
#include "declared_type.h"
#include "path.h"
#include "types.h"

/*
 * has_rule: do BSON type and range tell whether a value fits the type?  Of texts with a
 * limit, only an ObjectId's digits are known to be within it.
 */
static bool
has_rule(const MongoType *type, bson_type_t bson_type)
{
	return mongo_kinds[type->kind].is_told_by_type &&
		(type->kind == MONGO_KIND_INTEGER || type->limit == 0 || bson_type == BSON_TYPE_OID);
}

/* append_type_test: of one of the types, and within the range. */
static void
append_type_test(BsonArray *conditions, const char *path, const MongoType *type,
				 bson_type_t bson_type)
{
	bson_value_t field = bson_utf8(path);
	BsonArray	types;
	ListCell   *cell;

	if (type->kind == MONGO_KIND_INTEGER)
		bson_array_append_template(conditions, "{@1: {$gte: @2, $lte: @3}}", field,
								   bson_int64(-type->limit - 1), bson_int64(type->limit));
	if (type->kind == MONGO_KIND_INTEGER && bson_type == BSON_TYPE_EOD)
		return;
	types = bson_array_create();
	foreach(cell, mongo_bson_type_aliases(type->accepts & mongo_declared_set(bson_type)))
		bson_array_append(&types, bson_utf8(lfirst(cell)));
	bson_array_append_template(conditions, "{@1: {$type: @2}}", field, bson_array(types.bson));
}

static void
append_null_or_type_test(BsonArray *conditions, const char *path, const MongoType *type,
						 bson_type_t bson_type)
{
	BsonArray	tests = bson_array_create();

	append_type_test(&tests, path, type, bson_type);
	bson_array_append_template(conditions, tests.count == 1 ? "{$or: [{@1: null}, @2]}" :
							   "{$or: [{@1: null}, {$and: @3}]}", bson_utf8(path),
							   bson_first(tests.bson), bson_array(tests.bson));
}

/*
 * append_integral_test: no array, and no fraction.  What most documents hold, an
 * Int32 or Int64, is told by the first branch, for half of what an expression
 * costs MongoDB.  No array is equal to null.
 */
static void
append_integral_test(BsonArray *conditions, const char *path)
{
	bson_array_append_template(conditions,
							   "{$or: ["
							   "{@1: {$not: {$type: ['array', 'double', 'decimal']}}}, "
							   "{$expr: {$eq: [@2, "
							   "{$cond: [{$isNumber: @2}, {$trunc: @2}, null]}]}}]}",
							   bson_utf8(path), bson_field(path));
}

int
mongo_append_array_guards(bson_t *conditions, int index, const char *path)
{
	BsonArray	array = {conditions, index};

	if (!mongo_path_is_addressable(path) || mongo_path_has_index(path))
		return -1;

	/* MongoDB refuses an _id that is an array */
	if (strcmp(path, "_id") != 0)
		mongo_append_no_arrays(&array, path);
	return array.count;
}

int
mongo_append_fits_guards(bson_t *conditions, int index, const char *path,
						 Oid typid, int32 typmod, bson_type_t bson_type,
						 bool nullable, bool use_expressions)
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
		array.count = mongo_append_array_guards(conditions, index, path);
	if (nullable)
		append_null_or_type_test(&array, path, type, bson_type);
	else
		append_type_test(&array, path, type, bson_type);
	return array.count;
}
