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

#include "bson_memory.h"
#include "expression_rows.h"
#include "predicate.h"
#include "types.h"

/* has_rule: do BSON type and range tell whether a value fits the type? */
static bool
has_rule(const MongoType *type)
{
	return mongo_kinds[type->kind].is_told_by_type &&
		(type->kind == MONGO_KIND_INTEGER || type->limit == 0);
}

/* begin_condition: a document as an element of the array, to be ended as one. */
static void
begin_condition(bson_t *conditions, int index, bson_t *condition)
{
	char		key[16];

	snprintf(key, sizeof(key), "%d", index);
	BSON_APPEND_DOCUMENT_BEGIN(conditions, key, condition);
}

/* {path: {$not: {$type: "array"}}}; the path may be a part of a longer one */
static void
append_not_array(bson_t *conditions, int index, const char *path, int length)
{
	bson_t		condition;
	bson_t		test;
	bson_t		negated;

	begin_condition(conditions, index, &condition);
	bson_append_document_begin(&condition, path, length, &test);
	BSON_APPEND_DOCUMENT_BEGIN(&test, "$not", &negated);
	BSON_APPEND_UTF8(&negated, "$type", "array");
	bson_append_document_end(&test, &negated);
	bson_append_document_end(&condition, &test);
	bson_append_document_end(conditions, &condition);
}

/* {path: {$type: [...]}}, or within the range */
static void
append_type_test(bson_t *conditions, int index, const char *path,
				 const MongoType *type)
{
	bson_t		condition;
	bson_t		test;
	bson_t		types;
	ListCell   *cell;

	begin_condition(conditions, index, &condition);
	BSON_APPEND_DOCUMENT_BEGIN(&condition, path, &test);
	if (type->kind == MONGO_KIND_INTEGER)
	{
		BSON_APPEND_INT64(&test, "$gte", -type->limit - 1);
		BSON_APPEND_INT64(&test, "$lte", type->limit);
	}
	else
	{
		BSON_APPEND_ARRAY_BEGIN(&test, "$type", &types);
		foreach(cell, mongo_bson_type_aliases(type->accepts))
			BSON_APPEND_UTF8(&types, psprintf("%d", foreach_current_index(cell)),
							 lfirst(cell));
		bson_append_array_end(&test, &types);
	}
	bson_append_document_end(&condition, &test);
	bson_append_document_end(conditions, &condition);
}

/* {$or: [{path: null}, type test]} */
static void
append_null_or_type_test(bson_t *conditions, int index, const char *path,
						 const MongoType *type)
{
	bson_t		condition;
	bson_t		branches;
	bson_t		branch;

	begin_condition(conditions, index, &condition);
	BSON_APPEND_ARRAY_BEGIN(&condition, "$or", &branches);
	begin_condition(&branches, 0, &branch);
	BSON_APPEND_NULL(&branch, path);
	bson_append_document_end(&branches, &branch);
	append_type_test(&branches, 1, path, type);
	bson_append_array_end(&condition, &branches);
	bson_append_document_end(conditions, &condition);
}

/*
 * {$or: [{path: {$not: {$type: ["array", "double", "decimal"]}}},
 *		  {$expr: {$eq: [path, {$cond: [{$isNumber: path}, {$trunc: path}, null]}]}}]}
 *
 * No array, and no fraction.  What most documents hold, an Int32 or Int64, is
 * told by the first branch, for half of what an expression costs MongoDB.  No
 * array is equal to null.
 */
static void
append_integral_test(bson_t *conditions, int index, const char *path)
{
	static const char *const tested[] = {"array", "double", "decimal"};
	MongoValue	field = {.expression = bson_create_in(CurrentMemoryContext), .atomic = true};
	bson_t	   *integral;
	bson_t		condition;
	bson_t		branches;
	bson_t		branch;
	bson_t		test;
	bson_t		negated;
	bson_t		types;

	begin_condition(conditions, index, &condition);
	BSON_APPEND_ARRAY_BEGIN(&condition, "$or", &branches);

	begin_condition(&branches, 0, &branch);
	BSON_APPEND_DOCUMENT_BEGIN(&branch, path, &test);
	BSON_APPEND_DOCUMENT_BEGIN(&test, "$not", &negated);
	BSON_APPEND_ARRAY_BEGIN(&negated, "$type", &types);
	for (size_t i = 0; i < lengthof(tested); i++)
		BSON_APPEND_UTF8(&types, psprintf("%zu", i), tested[i]);
	bson_append_array_end(&negated, &types);
	bson_append_document_end(&test, &negated);
	bson_append_document_end(&branch, &test);
	bson_append_document_end(&branches, &branch);

	begin_condition(&branches, 1, &branch);
	BSON_APPEND_UTF8(field.expression, "", psprintf("$%s", path));
	integral = mongo_expand_template("{$eq: [@1, {$cond: [{$isNumber: @1}, {$trunc: @1}, null]}]}",
									 &field, 1);
	mongo_append_expression(&branch, "$expr", integral);
	bson_append_document_end(&branches, &branch);

	bson_append_array_end(&condition, &branches);
	bson_append_document_end(conditions, &condition);
}

/* The parents of a dotted path are no arrays. */
static int
append_parent_guards(bson_t *conditions, int index, const char *path)
{
	for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
		append_not_array(conditions, index++, path, dot - path);
	return index;
}

int
mongo_append_array_guards(bson_t *conditions, int index, const char *path)
{
	if (!mongo_path_is_addressable(path) || mongo_path_has_index(path))
		return -1;

	/* MongoDB refuses an _id that is an array */
	if (strcmp(path, "_id") == 0)
		return index;
	index = append_parent_guards(conditions, index, path);
	append_not_array(conditions, index++, path, strlen(path));
	return index;
}

int
mongo_append_fits_guards(bson_t *conditions, int index, const char *path,
						 Oid typid, int32 typmod, bool nullable)
{
	const MongoType *type = mongo_type_facts(typid);

	if (!has_rule(type) || typmod >= 0 ||
		!mongo_path_is_addressable(path) || mongo_path_has_index(path))
		return -1;
	if (type->kind == MONGO_KIND_INTEGER)
	{
		index = append_parent_guards(conditions, index, path);
		append_integral_test(conditions, index++, path);
	}
	else
		index = mongo_append_array_guards(conditions, index, path);
	if (nullable)
		append_null_or_type_test(conditions, index++, path, type);
	else
		append_type_test(conditions, index++, path, type);
	return index;
}
