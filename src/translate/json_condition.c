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
#include "json_path.h"
#include "json_scalar.h"
#include "path.h"

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"

/* append_exists: all that is known is that there is something. */
static void
append_exists(bson_t *match, const char *path)
{
	bson_append_condition(match, path, "$exists", bson_bool(true));
}

/* ends_with_index: may the path lead to an element, into which find does not look? */
static bool
ends_with_index(const char *path)
{
	const char *dot = strrchr(path, '.');
	const char *last = dot == NULL ? path : dot + 1;

	return last[strspn(last, "0123456789")] == '\0';
}

/* append_element: where a json field is a scalar, or is an array that holds it. */
static void
append_element(bson_t *match, const char *path, const JsonbValue *value)
{
	if (ends_with_index(path))
		append_exists(match, path);
	else
		mongo_append_json_scalar(match, path, value);
}

MongoMatch
mongo_jsonb_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	JsonbValue	scalar;

	if (predicate->strategy == BTEqualStrategyNumber && JB_ROOT_IS_SCALAR(jsonb) &&
		JsonbExtractScalar(&jsonb->root, &scalar))
		mongo_append_json_scalar(match, predicate->path, &scalar);
	else
		append_exists(match, predicate->path);
	return MONGO_MATCH_SOME;
}

/* What is in elements of more arrays is left to PostgreSQL; MongoDB takes 200 levels in all. */
#define MAX_ELEMENT_DEPTH	30

static void append_contained(BsonArray *conditions, const char *path, JsonbContainer *container,
							 int depth);

/* append_contained_object: an array's element that contains an object. */
static void
append_contained_object(BsonArray *conditions, const char *path, JsonbContainer *object,
						int depth)
{
	BsonArray	members = bson_array_create();

	if (depth < MAX_ELEMENT_DEPTH)
		append_contained(&members, "", object, depth + 1);
	if (members.count == 0 || ends_with_index(path))
		return;
	if (members.count == 1)
		bson_array_append_template(conditions, "{@1: {$elemMatch: @2}}", bson_utf8(path),
								   bson_first(members.bson));
	else
		bson_array_append_template(conditions, "{@1: {$elemMatch: {$and: @2}}}", bson_utf8(path),
								   bson_array(members.bson));
}

/* append_contained_value: one value of an object, or element of an array, that is contained. */
static void
append_contained_value(BsonArray *conditions, const char *path, JsonbIteratorToken token,
					   const JsonbValue *value, int depth)
{
	bson_t		condition;

	if (value->type == jbvNull)
		return;
	if (value->type == jbvBinary)
	{
		/* arrays within arrays are at no path */
		if (token == WJB_VALUE)
			append_contained(conditions, path, value->val.binary.data, depth);
		else if (JsonContainerIsObject(value->val.binary.data))
			append_contained_object(conditions, path, value->val.binary.data, depth);
		return;
	}
	bson_array_begin_document(conditions, &condition);
	if (token == WJB_ELEM)
		append_element(&condition, path, value);
	else
		mongo_append_json_scalar(&condition, path, value);
	bson_array_end_document(conditions, &condition);
}

/*
 * append_contained adds to an array of conditions what a document must hold
 * for "path @> container"; keys that no path can name are left out.  An empty path is
 * an element's, in 'depth' arrays.
 */
static void
append_contained(BsonArray *conditions, const char *path, JsonbContainer *container, int depth)
{
	JsonbIterator *iterator = JsonbIteratorInit(container);
	JsonbIteratorToken token;
	JsonbValue	value;
	StringInfoData field;
	int			root = path[0] == '\0' ? 1 : 0;

	check_stack_depth();
	initStringInfo(&field);
	appendStringInfoString(&field, path);

	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
		{
			resetStringInfo(&field);
			appendStringInfoString(&field, path);
			if (!mongo_append_json_key(&field, TEXTOID,
									   PointerGetDatum(cstring_to_text_with_len(value.val.string.val,
																				value.val.string.len))) ||
				!mongo_path_is_addressable(field.data + root))
				resetStringInfo(&field);
		}
		else if ((token == WJB_VALUE || token == WJB_ELEM) && field.len > 0)
			append_contained_value(conditions, field.data + root, token, &value, depth);
	}
}

static bool
render_contains(const char *path, Datum value, bson_t *match)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	BsonArray	conditions = bson_array_create();

	append_contained(&conditions, path, &jsonb->root, 0);
	if (conditions.count == 0)
		return false;
	BSON_APPEND_ARRAY(match, "$and", conditions.bson);
	return true;
}

/*
 * A key of an object, an element of an array, or the string itself.  That it is an
 * object is said for an index on the field.
 */
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
	bson_append_template(match, "{$or: [{@1: {$exists: true}, @2: {$type: 'object'}}, @3]}",
						 bson_utf8(field.data), bson_utf8(path), bson_document(element));
	return true;
}

/* render_exist: each of several keys, or any of them. */
static bool
render_exist(const char *path, Datum value, const char *operator, bson_t *match)
{
	BsonArray	conditions = bson_array_create();
	ArrayIterator iterator = array_create_iterator(DatumGetArrayTypeP(value), 0, NULL);
	bool		is_any = strcmp(operator, "$or") == 0;
	bool		complete = true;
	Datum		key;
	bool		isnull;

	while (array_iterate(iterator, &key, &isnull))
	{
		bson_t	   *condition = bson_create_in(CurrentMemoryContext);

		if (isnull)
			continue;
		if (render_exists(path, key, condition))
			bson_array_append(&conditions, bson_document(condition));
		else
			complete = false;
	}
	array_free_iterator(iterator);
	if (conditions.count == 0 || conditions.bson->len > MONGO_LARGEST_MATCH ||
		(is_any && !complete))
		return false;
	BSON_APPEND_ARRAY(match, operator, conditions.bson);
	return true;
}

static bool
render_exists_any(const char *path, Datum value, bson_t *match)
{
	return render_exist(path, value, "$or", match);
}

static bool
render_exists_all(const char *path, Datum value, bson_t *match)
{
	return render_exist(path, value, "$and", match);
}

/* What compares with strings by their order must do so byte by byte. */
static const struct
{
	Oid			function;
	bool		(*render) (const char *path, Datum value, bson_t *match);
	bool		compares_text;
}			tests[] =
{
	{F_JSONB_CONTAINS, render_contains, false},
	{F_JSONB_EXISTS, render_exists, false},
	{F_JSONB_EXISTS_ANY, render_exists_any, false},
	{F_JSONB_EXISTS_ALL, render_exists_all, false},
	{F_JSONB_PATH_EXISTS_OPR, mongo_render_json_path_exists, true},
	{F_JSONB_PATH_MATCH_OPR, mongo_render_json_path_match, true},
};

/* find_test: the number of an operator's row, or -1. */
static int
find_test(Oid operator)
{
	Oid			function = get_opcode(operator);

	for (size_t i = 0; i < lengthof(tests); i++)
	{
		if (tests[i].function == function)
			return i;
	}
	return -1;
}

bool
mongo_is_json_test(Oid operator)
{
	return find_test(operator) >= 0;
}

bool
mongo_json_test_compares_text(Oid operator)
{
	return tests[find_test(operator)].compares_text;
}

bool
mongo_render_json_test(const char *path, Oid operator, Datum value, bson_t *match)
{
	return tests[find_test(operator)].render(path, value, match);
}
