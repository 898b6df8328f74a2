/*-------------------------------------------------------------------------
 *
 * infallible.c
 *		Which translated conditions can MongoDB not fail to evaluate?
 *
 * https://www.mongodb.com/docs/v6.0/reference/operator/
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "infallible.h"

#include "condition.h"

#include "miscadmin.h"

/* Operators that take any argument, and where each may stand. */
static const struct
{
	const char *name;
	bool		in_find;
	bool		in_expression;
}			operators[] =
{
	{"$and", true, true},
	{"$or", true, true},
	{"$not", true, true},
	{"$nor", true, false},
	{"$eq", true, true},
	{"$ne", true, true},
	{"$gt", true, true},
	{"$gte", true, true},
	{"$lt", true, true},
	{"$lte", true, true},
	{"$type", true, true},
	{"$in", true, false},		/* an expression's must be given an array */
	{"$nin", true, false},
	{"$all", true, false},
	{"$size", true, false},
	{"$exists", true, false},
	{"$elemMatch", true, false},
	{"$regex", true, false},
	{"$options", true, false},
	{"$expr", true, false},
	{MONGO_PARAMETER_KEY, true, false},
	{"$cmp", false, true},
	{"$cond", false, true},
	{"$ifNull", false, true},
	{"$isArray", false, true},
	{"$isNumber", false, true},
	{"$let", false, true},
	{"$literal", false, true},

	/* stages, in which conditions and expressions are */
	{"$match", true, false},
	{"$lookup", true, false},
	{"$unwind", true, false},
	{"$project", true, false},
	{"$set", true, false},
	{"$limit", true, false},
};

/* Those whose arguments are expressions. */
static const char *const begin_expressions[] = {"$expr", "$project", "$set"};

static bool
is_infallible(const char *name, bool in_expression)
{
	for (size_t i = 0; i < lengthof(operators); i++)
	{
		if (strcmp(operators[i].name, name) == 0)
			return in_expression ? operators[i].in_expression : operators[i].in_find;
	}
	return false;
}

/* begins_expression: is what stands below this operator an aggregation expression? */
static bool
begins_expression(const char *name)
{
	for (size_t i = 0; i < lengthof(begin_expressions); i++)
	{
		if (strcmp(begin_expressions[i], name) == 0)
			return true;
	}
	return false;
}

/*
 * only_infallible: all keys that begin with "$", however deep.  A value that is
 * a document with such keys is taken for operators as well.
 */
static bool
only_infallible(bson_iter_t *iter, bool in_expression)
{
	check_stack_depth();
	while (bson_iter_next(iter))
	{
		const char *key = bson_iter_key(iter);
		bool		is_operator = key[0] == '$';
		bson_iter_t child;

		if (is_operator && !is_infallible(key, in_expression))
			return false;
		if (strcmp(key, "$literal") == 0)
			continue;
		if ((BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter)) &&
			(!bson_iter_recurse(iter, &child) ||
			 !only_infallible(&child, in_expression ||
							  (is_operator && begins_expression(key)))))
			return false;
	}
	return true;
}

bool
mongo_cannot_fail(const bson_t *document)
{
	bson_iter_t iter;

	return bson_iter_init(&iter, document) && only_infallible(&iter, false);
}
