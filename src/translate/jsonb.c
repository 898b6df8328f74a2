/*-------------------------------------------------------------------------
 *
 * jsonb.c
 *		Conditions with jsonb's operators: @>, ?, @?, @@ and the like.
 *
 * A row of tests[] has the function that renders an operator.  Each condition is a superset, made
 * of parts that are necessary; a part that no query predicate can express is left out.  Scalars
 * come first, then containment, keys, and jsonpath.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "convert.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type_d.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/jsonpath.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"

/* -------------------- Fields that are a scalar of json -------------------- */

/* Below this a Double can represent every integer. */
#define LARGEST_EXACT	9007199254740992.0

/* Appends equality with a string in the database's encoding. */
static void
append_string(bson_t *match, const char *path, const char *string, int length)
{
	char	   *converted;

	if (!mongo_has_utf8(string, length))
	{
		mongo_append_existence(match, path);
		return;
	}
	converted = pg_server_to_any(string, length, PG_UTF8);
	mongo_append_condition(match, path, "$eq",
						   mongo_utf8_sized(converted, converted == string ? (size_t) length :
											strlen(converted)));
}

/*
 * Appends equality with the BSON numbers that have this JSON: an integer, or the Double whose
 * shortest form it is.  Not a range, because MongoDB uses only one bound of a range for an array.
 */
static void
append_number(bson_t *match, const char *path, Numeric number)
{
	Datum		datum = NumericGetDatum(number);
	double		middle = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, datum));
	bool		is_whole;

	if (isinf(middle) || isnan(middle) || fabs(middle) > 9e18)
	{
		mongo_append_existence(match, path);
		return;
	}
	is_whole = DatumGetBool(DirectFunctionCall2(numeric_eq, datum,
												DirectFunctionCall2(numeric_trunc, datum,
																	Int32GetDatum(0))));
	if (!is_whole)
		mongo_append_condition(match, path, "$eq", mongo_double(middle));
	else
	{
		bson_value_t whole = mongo_integer(DatumGetInt64(DirectFunctionCall1(numeric_int8, datum)));

		if (fabs(middle) < LARGEST_EXACT)
			mongo_append_condition(match, path, "$eq", whole);
		else
			mongo_append_template(match, "{@1: {$in: [@2, @3]}}", mongo_utf8(path), whole,
								  mongo_double(middle));
	}
}

/* Appends that the field is this scalar, or an array that contains it. */
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
			mongo_append_condition(match, path, "$eq", mongo_bool(value->val.boolean));
			break;
		default:
			mongo_append_existence(match, path);
			break;
	}
}

/* ---------------------------- Containment --------------------------------- */

/* Tells whether the path may lead to an array element.  find does not look into these. */
static bool
ends_with_index(const char *path)
{
	const char *dot = strrchr(path, '.');
	const char *last = dot == NULL ? path : dot + 1;

	return last[strspn(last, "0123456789")] == '\0';
}

/* Appends that a json field is a scalar, or an array that contains it. */
static void
append_element(bson_t *match, const char *path, const JsonbValue *value)
{
	if (ends_with_index(path))
		mongo_append_existence(match, path);
	else
		append_scalar(match, path, value);
}

/*
 * mongo_jsonb_range
 *		Renders a comparison of a field with a jsonb value; see render_range in translate.h.
 */
MongoMatch
mongo_jsonb_range(const MongoPredicate *predicate, Datum value, bson_t *match)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	JsonbValue	scalar;

	if (predicate->strategy == BTEqualStrategyNumber && JB_ROOT_IS_SCALAR(jsonb) &&
		JsonbExtractScalar(&jsonb->root, &scalar))
		append_scalar(match, predicate->field.path, &scalar);
	else
		mongo_append_existence(match, predicate->field.path);
	return MONGO_MATCH_SOME;
}

/* Elements at a greater depth are left to PostgreSQL; MongoDB accepts 200 levels in all. */
#define MAX_ELEMENT_DEPTH	30

static void append_contained(BsonArray *conditions, const char *path, JsonbContainer *container,
							 int depth);

/* Appends that an array element contains the object. */
static void
append_contained_object(BsonArray *conditions, const char *path, JsonbContainer *object, int depth)
{
	BsonArray	members = mongo_array_create();

	if (depth < MAX_ELEMENT_DEPTH)
		append_contained(&members, "", object, depth + 1);
	if (members.count == 0 || ends_with_index(path))
		return;
	if (members.count == 1)
		mongo_array_append_template(conditions, "{@1: {$elemMatch: @2}}", mongo_utf8(path),
									mongo_first_value(members.bson));
	else
		mongo_array_append_template(conditions, "{@1: {$elemMatch: {$and: @2}}}", mongo_utf8(path),
									mongo_array(members.bson));
}

/* Appends that one value of an object, or array element, is contained. */
static void
append_contained_value(BsonArray *conditions, const char *path, JsonbIteratorToken token,
					   const JsonbValue *value, int depth)
{
	bson_t		condition;

	if (value->type == jbvNull)
		return;
	if (value->type == jbvBinary)
	{
		/* no path leads to arrays within arrays */
		if (token == WJB_VALUE)
			append_contained(conditions, path, value->val.binary.data, depth);
		else if (JsonContainerIsObject(value->val.binary.data))
			append_contained_object(conditions, path, value->val.binary.data, depth);
		return;
	}
	mongo_array_begin_document(conditions, &condition);
	if (token == WJB_ELEM)
		append_element(&condition, path, value);
	else
		append_scalar(&condition, path, value);
	mongo_array_end_document(conditions, &condition);
}

/*
 * Appends to the conditions what a document must contain for "path @> container"; keys that no path
 * can name are left out.  An empty path stands for an array element, within 'depth' arrays.
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
render_contains(const char *path, Datum value, bool all pg_attribute_unused(), bson_t *match)
{
	Jsonb	   *jsonb = DatumGetJsonbP(value);
	BsonArray	conditions = mongo_array_create();

	append_contained(&conditions, path, &jsonb->root, 0);
	if (conditions.count == 0)
		return false;
	mongo_append(match, "$and", mongo_array(conditions.bson));
	return true;
}

/*
 * Renders a key of an object, an element of an array, or the string itself.  The test that the
 * field is an object allows an index on the field.
 */
static bool
render_exists(const char *path, Datum value, bool all pg_attribute_unused(), bson_t *match)
{
	text	   *packed = DatumGetTextPP(value);
	JsonbValue	string = {.type = jbvString};
	StringInfoData field;
	bson_t	   *element = mongo_bson_create();

	string.val.string.val = VARDATA_ANY(packed);
	string.val.string.len = VARSIZE_ANY_EXHDR(packed);
	initStringInfo(&field);
	appendStringInfoString(&field, path);
	if (!mongo_append_json_key(&field, TEXTOID, PointerGetDatum(packed)))
		return false;

	append_element(element, path, &string);
	mongo_append_template(match, "{$or: [{@1: {$not: {$exists: false}}, @2: {$gte: {}}}, @3]}",
						  mongo_utf8(field.data), mongo_utf8(path), mongo_document(element));
	return true;
}

/* Renders all of several keys, or any of them. */
static bool
render_exist(const char *path, Datum value, bool all, bson_t *match)
{
	BsonArray	conditions = mongo_array_create();
	bool		complete = true;
	Datum	   *keys;
	bool	   *isnull;
	int			count = mongo_array_elements(value, &keys, &isnull);

	for (int i = 0; i < count; i++)
	{
		bson_t	   *condition = mongo_bson_create();

		if (isnull[i])
			continue;
		if (render_exists(path, keys[i], all, condition))
			mongo_array_append(&conditions, mongo_document(condition));
		else
			complete = false;
	}
	if (conditions.count == 0 || conditions.bson->len > MONGO_LARGEST_MATCH ||
		(!all && !complete))
		return false;
	mongo_append(match, all ? "$and" : "$or", mongo_array(conditions.bson));
	return true;
}

/*-------------------------------------------------------------------------
 * jsonpath: @? and @@
 *
 * The conditions translated are paths "==" a literal, alone or joined by "&&", in @@ and in
 * filters.  Other conditions exclude nothing.  In lax mode a path unwraps arrays once before
 * each key, filter and comparison, and for each [*]; find does so once at each place.  Values
 * that may be in an array of arrays are found by a separate branch, in a form for which an
 * index of the field has bounds.  Strict mode finds no more than lax mode.
 *
 * https://www.postgresql.org/docs/current/functions-json.html#FUNCTIONS-SQLJSON-PATH
 *-------------------------------------------------------------------------
 */

/* Conditions that make a longer document are left to PostgreSQL. */
#define LARGEST_JSON_PATH	(256 * 1024)

/* The position that a path leads to. */
typedef struct PathPosition
{
	const char *path;
	int			levels;			/* of arrays that are unwrapped at its end */
	List	   *nested;			/* lengths of its parts at whose ends more
								 * than one level is unwrapped */
} PathPosition;

static void append_where(const PathPosition *position, JsonPathItem *item, JsonPathItemType base,
						 BsonArray *conditions);

/* Appends a key; returns false if no path names it, or if it may be an element's number. */
static bool
enter_key(PathPosition *position, JsonPathItem *item)
{
	StringInfoData path;
	int32		length;
	char	   *key = jspGetString(item, &length);

	initStringInfo(&path);
	appendStringInfoString(&path, position->path);
	if (strspn(key, "0123456789") == (size_t) length ||
		!mongo_append_json_key(&path, TEXTOID,
							   PointerGetDatum(cstring_to_text_with_len(key, length))) ||
		!mongo_path_is_addressable(path.data))
		return false;
	if (position->levels > 0)
		position->nested = lappend_int(list_copy(position->nested), strlen(position->path));
	position->levels = 0;
	position->path = path.data;
	return true;
}

/*
 * Follows the items after the first one, and appends the conditions of filters among them; returns
 * false if an item is not supported.
 */
static bool
follow_path(PathPosition *position, const JsonPathItem *first, BsonArray *conditions)
{
	JsonPathItem item = *first;
	JsonPathItem next;
	JsonPathItem filter;

	for (; jspGetNext(&item, &next); item = next)
	{
		switch (next.type)
		{
			case jpiKey:
				if (!enter_key(position, &next))
					return false;
				break;
			case jpiFilter:
				position->levels++;
				jspGetArg(&next, &filter);
				append_where(position, &filter, jpiCurrent, conditions);
				break;
			case jpiAnyArray:
			case jpiIndexArray:
				position->levels++;
				break;
			default:
				return false;
		}
	}
	return true;
}

/* Appends that the literal is at the position, or in an array there. */
static void
append_path_equal(const PathPosition *position, JsonPathItem *literal, BsonArray *conditions)
{
	JsonbValue	value = {.type = (enum jbvType) literal->type};
	bson_value_t least = mongo_bool(false);
	bson_t	   *match = mongo_bson_create();
	BsonArray	branches = mongo_array_create();
	ListCell   *cell;

	if (literal->type == jpiString)
	{
		value.val.string.val = jspGetString(literal, &value.val.string.len);
		least = mongo_utf8("");
	}
	else if (literal->type == jpiNumeric)
	{
		value.val.numeric = jspGetNumeric(literal);
		least = mongo_double(-INFINITY);
	}
	else
		value.val.boolean = jspGetBool(literal);
	append_scalar(match, position->path, &value);
	mongo_array_append(&branches, mongo_document(match));

	/* an array, seen as a document, has its elements' numbers as keys */
	foreach(cell, position->nested)
		mongo_array_append_template(&branches, "{@1: {$elemMatch: {@2: null, 0: {$exists: true}}}}",
									mongo_utf8_sized(position->path, lfirst_int(cell)),
									mongo_utf8(position->path + lfirst_int(cell) + 1));
	if (position->levels > 0)
		mongo_append_within_arrays(&branches, position->path, least);
	if (branches.count == 1)
		mongo_array_append(conditions, mongo_document(match));
	else
		mongo_array_append_template(conditions, "{$or: @1}", mongo_array(branches.bson));
}

/* Appends what is necessary for a predicate on paths from 'base', if supported. */
static void
append_where(const PathPosition *position, JsonPathItem *item, JsonPathItemType base,
			 BsonArray *conditions)
{
	PathPosition end = *position;
	JsonPathItem left;
	JsonPathItem right;

	check_stack_depth();
	if ((item->type != jpiAnd && item->type != jpiEqual) || jspHasNext(item) ||
		conditions->bson->len > LARGEST_JSON_PATH)
		return;
	jspGetLeftArg(item, &left);
	jspGetRightArg(item, &right);
	if (item->type == jpiAnd)
	{
		append_where(position, &left, base, conditions);
		append_where(position, &right, base, conditions);
		return;
	}
	if (left.type != base)
	{
		JsonPathItem swapped = left;

		left = right;
		right = swapped;
	}
	if (left.type == base && jspIsScalar(right.type) && right.type != jpiNull &&
		!jspHasNext(&right) && follow_path(&end, &left, conditions))
		append_path_equal(&end, &right, conditions);
}

/* Renders @@ (is_match) or @?, for which any result of a predicate is a match. */
static bool
render_path(const char *path, Datum value, bool is_match, bson_t *match)
{
	PathPosition position = {.path = path};
	BsonArray	conditions = mongo_array_create();
	JsonPathItem item;

	/* find does not look into an array that a number in the path leads to */
	if (mongo_path_has_index(path))
		return false;
	jspInit(&item, DatumGetJsonPathP(value));
	if (item.type == jpiRoot)
		follow_path(&position, &item, &conditions);
	else if (is_match)
		append_where(&position, &item, jpiRoot, &conditions);
	if (conditions.count == 0 || conditions.bson->len > LARGEST_JSON_PATH)
		return false;
	mongo_append(match, "$and", mongo_array(conditions.bson));
	return true;
}

static const struct
{
	Oid			function;
	bool		(*render) (const char *path, Datum value, bool variant, bson_t *match);
	bool		variant;		/* all keys; or a path's predicate is true */
}			tests[] =
{
	{F_JSONB_CONTAINS, render_contains, false},
	{F_JSONB_EXISTS, render_exists, false},
	{F_JSONB_EXISTS_ANY, render_exist, false},
	{F_JSONB_EXISTS_ALL, render_exist, true},
	{F_JSONB_PATH_EXISTS_OPR, render_path, false},
	{F_JSONB_PATH_MATCH_OPR, render_path, true},
};

/* Returns the number of an operator's row, or -1. */
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

/*
 * mongo_is_json_test
 *		Tells whether this operator is jsonb's @>, ?, ?|, ?&, @? or @@.
 */
bool
mongo_is_json_test(Oid opno)
{
	return find_test(opno) >= 0;
}

/*
 * mongo_render_json_test
 *		Appends to 'match' a superset of where "field OP value" is true; returns false if there is
 *		none that excludes any document.
 */
bool
mongo_render_json_test(const char *path, Oid opno, Datum value, bson_t *match)
{
	int			row = find_test(opno);

	return tests[row].render(path, value, tests[row].variant, match);
}
