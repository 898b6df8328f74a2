/*-------------------------------------------------------------------------
 *
 * json_path.c
 *		jsonpath's conditions, @? and @@, in find's language.
 *
 * In lax mode a path takes arrays apart wherever it meets one: once before each key,
 * filter and comparison, and for each [*].  find does so once at each place.  What
 * may be in an array of arrays is therefore sought by a branch of its own, in words
 * that an index of the field has bounds for.  Strict mode finds no more than lax mode.
 *
 * https://www.postgresql.org/docs/current/functions-json.html#FUNCTIONS-SQLJSON-PATH
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "common.h"

#include <float.h>
#include <math.h>

#include "catalog/pg_type_d.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonpath.h"
#include "utils/numeric.h"

/* What is deeper, or makes a longer document, is left to PostgreSQL. */
#define MAX_DEPTH		20
#define LARGEST_RESULT	(256 * 1024)

/* Where a path has led to. */
typedef struct Position
{
	const char *root;			/* of the jsonb field, for $ */
	const char *path;
	int			depth;			/* of conditions in conditions */
	int			levels;			/* of arrays that are taken apart at the
								 * path's end */
	List	   *nested;			/* lengths of the parts of the path at whose
								 * ends more than one is */
	bool		complete;		/* false: the rest of the way is unknown */
	bool		filtered;		/* a filter's conditions say that something is
								 * there */
} Position;

/* append_nested: an array in an array there, which find does not look into. */
static void
append_nested(const Position *position, int length, BsonArray *branches)
{
	/* an array as a document has its elements' numbers for keys */
	bson_array_append_template(branches, "{@1: {$elemMatch: {@2: null, 0: {$exists: true}}}}",
							   bson_utf8_sized(position->path, length),
							   bson_utf8(position->path + length + 1));
}

/*
 * append_there: the condition on what is at the position; 'least' is below all values
 * of the class that is looked for, or NULL if it is any class.
 */
static void
append_there(const Position *position, const bson_t *condition, const bson_value_t *least,
			 BsonArray *conditions)
{
	bool		is_nested = least != NULL && position->levels > 1;
	BsonArray	branches = bson_array_create();
	ListCell   *cell;

	if (!is_nested && position->nested == NIL)
	{
		bson_array_append(conditions, bson_document(condition));
		return;
	}
	bson_array_append(&branches, bson_document(condition));
	foreach(cell, position->nested)
		append_nested(position, lfirst_int(cell), &branches);
	if (is_nested)
		mongo_append_within_arrays(&branches, position->path, *least);
	bson_array_append_template(conditions, "{$or: @1}", bson_array(branches.bson));
}

/* append_found: something is there, or on the way; that the column is not null helps nobody. */
static void
append_found(const Position *position, BsonArray *conditions)
{
	if (!position->filtered && strcmp(position->path, position->root) != 0)
		append_there(position, bson_from_template("{@1: {$exists: true}}",
												  bson_utf8(position->path)), NULL, conditions);
}

static void append_where(const Position *position, JsonPathItem *item, BsonArray *conditions);

/* append_key: false for what no path names, and for numbers, which are also of elements. */
static bool
append_key(Position *position, JsonPathItem *item)
{
	StringInfoData path;
	int32		length;
	char	   *key = jspGetString(item, &length);
	int			before = strlen(position->path);

	initStringInfo(&path);
	appendStringInfoString(&path, position->path);
	if (strspn(key, "0123456789") == (size_t) length ||
		!mongo_append_json_key(&path, TEXTOID,
							   PointerGetDatum(cstring_to_text_with_len(key, length))) ||
		!mongo_path_is_addressable(path.data))
		return false;
	if (position->levels > 0)
		position->nested = lappend_int(list_copy(position->nested), before);
	position->levels = 0;
	position->filtered = false;
	position->path = path.data;
	return true;
}

/*
 * follow: go where the items behind this one lead, as far as that is known.  The
 * conditions of filters on the way are appended.
 */
static void
follow(Position *position, const JsonPathItem *first, BsonArray *conditions)
{
	JsonPathItem item = *first;
	JsonPathItem next;
	JsonPathItem filter;
	uint32		count;

	position->complete = true;
	while (position->complete && jspGetNext(&item, &next))
	{
		item = next;
		switch (item.type)
		{
			case jpiKey:
				position->complete = append_key(position, &item);
				break;
			case jpiAnyArray:
			case jpiIndexArray:
				position->levels++;
				break;
			case jpiFilter:
				position->levels++;
				jspGetArg(&item, &filter);
				count = conditions->count;
				append_where(position, &filter, conditions);
				position->filtered |= conditions->count > count;
				break;
			default:
				position->complete = false;
				break;
		}
	}
}

/*
 * follow_path: from $ or @ on; false if the item is no path.  Whatever comes of it,
 * the conditions on the way must hold.
 */
static bool
follow_path(const Position *position, const JsonPathItem *item, Position *end,
			BsonArray *conditions)
{
	*end = *position;
	end->filtered = false;
	if (item->type == jpiRoot)
	{
		end->path = position->root;
		end->levels = 0;
		end->nested = NIL;
	}
	else if (item->type != jpiCurrent)
		return false;
	follow(end, item, conditions);
	return true;
}

/* append_path_found: the path finds something. */
static void
append_path_found(const Position *position, const JsonPathItem *item, BsonArray *conditions)
{
	Position	end;

	if (follow_path(position, item, &end, conditions))
		append_found(&end, conditions);
}

static bool
is_literal(const JsonPathItem *item)
{
	return jspIsScalar(item->type) && !jspHasNext(item);
}

static JsonbValue
literal_value(JsonPathItem *item)
{
	JsonbValue	value = {.type = (enum jbvType) item->type};

	if (item->type == jpiString)
		value.val.string.val = jspGetString(item, &value.val.string.len);
	else if (item->type == jpiNumeric)
		value.val.numeric = jspGetNumeric(item);
	else if (item->type == jpiBool)
		value.val.boolean = jspGetBool(item);
	return value;
}

/*
 * append_number_bound: of numbers, whose JSON is rounded where it has a fraction or
 * many digits.
 */
static void
append_number_bound(bson_t *match, const char *path, int strategy, Numeric number)
{
	double		bound = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
														   NumericGetDatum(number)));
	double		slack = fabs(bound) * 1e-14 + 1e-290;

	if (bound == floor(bound) && fabs(bound) < MONGO_LARGEST_EXACT &&
		DatumGetBool(DirectFunctionCall2(numeric_eq, NumericGetDatum(number),
										 DirectFunctionCall1(float8_numeric,
															 Float8GetDatum(bound)))))
		bson_append_condition(match, path, mongo_find_operators[strategy], bson_double(bound));
	else if (mongo_is_upper_bound(strategy))
		bson_append_condition(match, path, "$lte",
							  bson_double(Max(isinf(bound) ? bound : bound + slack, -DBL_MAX)));
	else
		bson_append_condition(match, path, "$gte",
							  bson_double(Min(isinf(bound) ? bound : bound - slack, DBL_MAX)));
}

static bson_value_t
utf8_value(const JsonbValue *value)
{
	char	   *string = pnstrdup(value->val.string.val, value->val.string.len);

	return bson_utf8(pg_server_to_any(string, value->val.string.len, PG_UTF8));
}

/*
 * append_compared: a path compared with a literal, whose order is that of code points
 * for strings.  What differs from a value, and what is null, may be anything.
 */
static void
append_compared(const Position *position, const JsonPathItem *path, int strategy,
				JsonPathItem *literal, BsonArray *conditions)
{
	bson_t	   *match = bson_create_in(CurrentMemoryContext);
	JsonbValue	value = literal_value(literal);
	bson_value_t least = bson_null();
	Position	end;

	if (!follow_path(position, path, &end, conditions))
		return;
	end.levels++;
	if (value.type == jbvNumeric)
		least = bson_double(-INFINITY);
	else if (value.type == jbvString)
		least = bson_utf8("");
	else if (value.type == jbvBool)
		least = bson_bool(false);

	if (!end.complete || value.type == jbvNull || strategy == MONGO_STRATEGY_NOT_EQUAL ||
		(value.type == jbvBool && strategy != BTEqualStrategyNumber))
	{
		append_found(&end, conditions);
		return;
	}
	if (strategy == BTEqualStrategyNumber)
		mongo_append_json_scalar(match, end.path, &value);
	else if (value.type == jbvNumeric)
		append_number_bound(match, end.path, strategy, value.val.numeric);
	else
		bson_append_condition(match, end.path, mongo_find_operators[strategy], utf8_value(&value));
	append_there(&end, match, &least, conditions);
}

static const struct
{
	JsonPathItemType type;
	int			strategy;
}			comparisons[] =
{
	{jpiEqual, BTEqualStrategyNumber},
	{jpiNotEqual, MONGO_STRATEGY_NOT_EQUAL},
	{jpiLess, BTLessStrategyNumber},
	{jpiGreater, BTGreaterStrategyNumber},
	{jpiLessOrEqual, BTLessEqualStrategyNumber},
	{jpiGreaterOrEqual, BTGreaterEqualStrategyNumber},
};

/* comparison_strategy: 0 for what is no comparison. */
static int
comparison_strategy(JsonPathItemType type)
{
	for (size_t i = 0; i < lengthof(comparisons); i++)
	{
		if (comparisons[i].type == type)
			return comparisons[i].strategy;
	}
	return 0;
}

static void
append_comparison(const Position *position, JsonPathItem *item, int strategy,
				  BsonArray *conditions)
{
	JsonPathItem left;
	JsonPathItem right;

	jspGetLeftArg(item, &left);
	jspGetRightArg(item, &right);
	if (is_literal(&right))
		append_compared(position, &left, strategy, &right, conditions);
	else if (is_literal(&left))
		append_compared(position, &right, mongo_commuted_strategy(strategy), &left, conditions);
	else
	{
		append_path_found(position, &left, conditions);
		append_path_found(position, &right, conditions);
	}
}

/* append_string_test: a path that leads to a String, which begins with 'prefix' if there is one. */
static void
append_string_test(const Position *position, const JsonPathItem *path, JsonPathItem *prefix,
				   BsonArray *conditions)
{
	bson_value_t least = bson_utf8("");
	StringInfoData pattern;
	JsonbValue	value;
	Position	end;

	if (!follow_path(position, path, &end, conditions))
		return;
	end.levels++;
	if (!end.complete)
	{
		append_found(&end, conditions);
		return;
	}
	if (prefix == NULL || !is_literal(prefix) || prefix->type != jpiString)
	{
		append_there(&end, bson_from_template("{@1: {$type: 'string'}}", bson_utf8(end.path)),
					 &least, conditions);
		return;
	}
	initStringInfo(&pattern);
	appendStringInfoChar(&pattern, '^');
	value = literal_value(prefix);
	for (const char *c = utf8_value(&value).value.v_utf8.str; *c != '\0'; c++)
	{
		if (!IS_HIGHBIT_SET(*c) && !isalnum((unsigned char) *c))
			appendStringInfoChar(&pattern, '\\');
		appendStringInfoChar(&pattern, *c);
	}
	append_there(&end, bson_from_template("{@1: @2}", bson_utf8(end.path),
										  bson_regex(pattern.data, "")), &least, conditions);
}

/* append_either: nothing, unless something is known of both. */
static void
append_either(const Position *position, JsonPathItem *item, BsonArray *conditions)
{
	BsonArray	branches = bson_array_create();

	for (int i = 0; i < 2; i++)
	{
		BsonArray	side = bson_array_create();
		JsonPathItem argument;

		if (i == 0)
			jspGetLeftArg(item, &argument);
		else
			jspGetRightArg(item, &argument);
		append_where(position, &argument, &side);
		if (side.count == 0)
			return;
		bson_array_append_template(&branches, "{$and: @1}", bson_array(side.bson));
	}
	bson_array_append_template(conditions, "{$or: @1}", bson_array(branches.bson));
}

/* append_where: what must hold where a predicate is true, as far as that is known. */
static void
append_where(const Position *position, JsonPathItem *item, BsonArray *conditions)
{
	Position	inner = *position;
	int			strategy = comparison_strategy(item->type);
	JsonPathItem argument;
	JsonPathItem prefix;

	if (inner.depth++ >= MAX_DEPTH || conditions->bson->len > LARGEST_RESULT ||
		jspHasNext(item))
		return;
	if (strategy != 0)
	{
		append_comparison(&inner, item, strategy, conditions);
		return;
	}
	switch (item->type)
	{
		case jpiAnd:
			jspGetLeftArg(item, &argument);
			append_where(&inner, &argument, conditions);
			jspGetRightArg(item, &argument);
			append_where(&inner, &argument, conditions);
			break;
		case jpiOr:
			append_either(&inner, item, conditions);
			break;
		case jpiExists:
			jspGetArg(item, &argument);
			append_path_found(&inner, &argument, conditions);
			break;
		case jpiStartsWith:
			jspGetLeftArg(item, &argument);
			jspGetRightArg(item, &prefix);
			append_string_test(&inner, &argument, &prefix, conditions);
			break;
		case jpiLikeRegex:
			jspInitByBuffer(&argument, item->base, item->content.like_regex.expr);
			append_string_test(&inner, &argument, NULL, conditions);
			break;
		default:
			break;
	}
}

/*
 * append_result: of a path that is no predicate, something is found; for @@, and it is
 * true.  A predicate always finds something, be it null.
 */
static void
append_result(const Position *position, JsonPathItem *item, bool is_match, BsonArray *conditions)
{
	bson_value_t least = bson_bool(false);
	Position	end;

	if (item->type != jpiRoot)
	{
		if (is_match)
			append_where(position, item, conditions);
		return;
	}
	if (!follow_path(position, item, &end, conditions))
		return;
	if (is_match && end.complete)
		append_there(&end, bson_from_template("{@1: {$eq: true}}", bson_utf8(end.path)),
					 &least, conditions);
	else
		append_found(&end, conditions);
}

static bool
render(const char *path, Datum value, bool is_match, bson_t *match)
{
	Position	position = {.root = path, .path = path};
	BsonArray	conditions = bson_array_create();
	JsonPathItem item;

	/* find does not look into an array that it has found by its number */
	if (mongo_path_has_index(path))
		return false;
	jspInit(&item, DatumGetJsonPathP(value));
	append_result(&position, &item, is_match, &conditions);
	if (conditions.count == 0 || conditions.bson->len > LARGEST_RESULT)
		return false;
	BSON_APPEND_ARRAY(match, "$and", conditions.bson);
	return true;
}

bool
mongo_render_json_path_exists(const char *path, Datum value, bson_t *match)
{
	return render(path, value, false, match);
}

bool
mongo_render_json_path_match(const char *path, Datum value, bson_t *match)
{
	return render(path, value, true, match);
}
