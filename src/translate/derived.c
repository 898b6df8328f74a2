/*-------------------------------------------------------------------------
 *
 * derived.c
 *		The stages that make the rows of a derived table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "derived.h"

#include "bson_memory.h"
#include "encoding.h"
#include "kept_json.h"
#include "path_list.h"
#include "remote_error.h"

#include "miscadmin.h"
#include "utils/builtins.h"

/*
 * What runs JavaScript in MongoDB.  The internal ones are what mongos rewrites mapReduce
 * to; MongoDB takes them from every client.
 */
static const char *const javascript_operators[] = {
	"$where", "$function", "$accumulator", "$_internalJsEmit", "$_internalJsReduce"
};

/* javascript_in: the first such operator in a document or array, however deep; or NULL. */
static const char *
javascript_in(bson_iter_t *iter)
{
	check_stack_depth();
	while (bson_iter_next(iter))
	{
		bson_iter_t child;
		const char *found = NULL;

		for (size_t i = 0; i < lengthof(javascript_operators); i++)
		{
			if (strcmp(bson_iter_key(iter), javascript_operators[i]) == 0)
				return javascript_operators[i];
		}
		if ((BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter)) &&
			bson_iter_recurse(iter, &child))
			found = javascript_in(&child);
		if (found != NULL)
			return found;
	}
	return NULL;
}

void
mongo_check_javascript(const MongoTableOptions *options, const bson_iter_t *value,
					   const char *what)
{
	bson_iter_t members;
	const char *found = NULL;

	if (!options->allow_javascript && bson_iter_recurse(value, &members))
		found = javascript_in(&members);
	if (found != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("%s over collection \"%s.%s\" must not use %s", what,
						options->database, options->collection, found),
				 errdetail("It runs JavaScript in MongoDB."),
				 errhint("The owner of the foreign server may allow that by its option allow_javascript.")));
}

void
mongo_append_pipeline(BsonArray *stages, const MongoTableOptions *options)
{
	bson_t	   *holder;
	bson_iter_t pipeline;
	bson_iter_t stage;

	if (options->pipeline == NULL)
		return;
	holder = bson_create_in(CurrentMemoryContext);
	mongo_append_kept_json(holder, "pipeline", CStringGetTextDatum(options->pipeline));
	if (!bson_iter_init_find(&pipeline, holder, "pipeline") ||
		!BSON_ITER_HOLDS_ARRAY(&pipeline))
		elog(ERROR, "option \"pipeline\" is not an array");
	mongo_check_javascript(options, &pipeline, "the option \"pipeline\" of a foreign table");
	bson_iter_recurse(&pipeline, &stage);
	while (bson_iter_next(&stage))
		bson_array_append(stages, *bson_iter_value(&stage));
}

/* ------------------------------- unwinding --------------------------------- */

/* names_to_utf8: of each of these. */
static List *
names_to_utf8(List *names)
{
	ListCell   *cell;

	foreach(cell, names)
		lfirst(cell) = (char *) mongo_to_utf8(lfirst(cell));
	return names;
}

List *
mongo_unwound_paths(const MongoTableOptions *options)
{
	return names_to_utf8(mongo_split_list(options->unwind));
}

List *
mongo_ordinality_fields(const MongoTableOptions *options)
{
	return names_to_utf8(mongo_split_list(options->ordinality));
}

/*
 * can_be_unwound: an expression that is true of an array and of nothing at all, and of a
 * path through an array as well, where $unwind finds nothing.
 */
static const bson_t *
can_be_unwound(const char *path)
{
	return bson_from_template("{$isArray: {$ifNull: [@1, []]}}", bson_field(path));
}

/* fits: likewise, but not of a path through an array. */
static const bson_t *
fits(const char *path)
{
	BsonArray	tests = bson_array_create();

	for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
		bson_array_append_template(&tests, "{$not: [{$isArray: @1}]}",
								   bson_field(pnstrdup(path, dot - path)));
	if (tests.count == 0)
		return can_be_unwound(path);
	bson_array_append(&tests, bson_document(can_be_unwound(path)));
	return bson_from_template("{$and: @1}", bson_array(tests.bson));
}

/*
 * raising: an expression that fails wherever it is evaluated, with what MONGO_MISMATCH
 * promises.
 */
static const bson_t *
raising(const char *path, const MongoTableOptions *options)
{
	const char *text = psprintf(MONGO_MISMATCH "%s" MONGO_MISMATCH_SEPARATOR "%s.%s"
								MONGO_MISMATCH_SEPARATOR "%s" MONGO_MISMATCH_SEPARATOR,
								path, mongo_to_utf8(options->database),
								mongo_to_utf8(options->collection), MONGO_MISMATCH_ARRAY);

	return bson_from_template("{$toInt: {$concat: [{$literal: @1}, {$type: @2}]}}",
							  bson_utf8(text), bson_field(path));
}

/*
 * with_null: what is at 'parent', with a null at the rest of the path.
 */
static bson_value_t
with_null(const char *parent, const char *rest)
{
	const char *dot;
	const char *name;

	check_stack_depth();
	if (rest == NULL)
		return bson_null();
	dot = strchr(rest, '.');
	name = dot == NULL ? rest : pnstrdup(rest, dot - rest);
	return bson_document(bson_from_template("{$mergeObjects: [@1, {@2: @3}]}",
											bson_field(parent), bson_utf8(name),
											with_null(psprintf("%s.%s", parent, name),
													  dot == NULL ? NULL : dot + 1)));
}

/*
 * append_replaced: {$set: {top: {$cond: [test, "$top", otherwise]}}}.  A $set of
 * the path itself would make documents on the way; and MongoDB might test a $match
 * before others that stand before it.
 */
static void
append_replaced(BsonArray *stages, const char *top, const bson_t *test,
				bson_value_t otherwise)
{
	bson_array_append_template(stages, "{$set: {@1: {$cond: [@2, @3, @4]}}}", bson_utf8(top),
							   bson_document(test), bson_field(top), otherwise);
}

/* append_array_test: what becomes of documents with something else than an array. */
static void
append_array_test(BsonArray *stages, const MongoTableOptions *options, const char *path,
				  MongoNoArray no_array)
{
	const char *dot = strchr(path, '.');
	const char *top = dot == NULL ? path : pnstrdup(path, dot - path);

	if (no_array == MONGO_NO_ARRAY_RAISES)
		append_replaced(stages, top, fits(path),
						bson_document(raising(path, options)));
	else if (!options->unwind_empty)
		bson_array_append_template(stages, "{$match: {@1: {$type: 'array'}}}", bson_utf8(path));
	else if (no_array == MONGO_NO_ARRAY_IS_NULL)
		append_replaced(stages, top, can_be_unwound(path),
						with_null(top, dot == NULL ? NULL : dot + 1));
	else
		bson_array_append_template(stages, "{$match: {$expr: @1}}",
								   bson_document(fits(path)));
}

void
mongo_append_unwind(BsonArray *stages, const MongoTableOptions *options, int number,
					MongoNoArray no_array)
{
	const char *path = list_nth(mongo_unwound_paths(options), number);
	List	   *fields = mongo_ordinality_fields(options);
	bson_t	   *unwind = bson_from_template("{path: @1}", bson_field(path));

	append_array_test(stages, options, path, no_array);
	if (number < list_length(fields))
		BSON_APPEND_UTF8(unwind, "includeArrayIndex", list_nth(fields, number));
	if (options->unwind_empty)
		BSON_APPEND_BOOL(unwind, "preserveNullAndEmptyArrays", true);
	bson_array_append_template(stages, "{$unwind: @1}", bson_document(unwind));
}

void
mongo_append_ordinality(BsonArray *stages, const MongoTableOptions *options)
{
	bson_t	   *numbers = bson_create_in(CurrentMemoryContext);
	ListCell   *cell;

	foreach(cell, mongo_ordinality_fields(options))
		bson_append_member(numbers, lfirst(cell), "{$add: [@1, 1]}", bson_field(lfirst(cell)));
	if (!bson_empty(numbers))
		bson_array_append_template(stages, "{$set: @1}", bson_document(numbers));
}

void
mongo_append_deriving_stages(BsonArray *stages, const MongoTableOptions *options)
{
	int			npaths = list_length(mongo_unwound_paths(options));

	mongo_append_pipeline(stages, options);
	for (int i = 0; i < npaths; i++)
		mongo_append_unwind(stages, options, i, MONGO_NO_ARRAY_IS_NULL);
	mongo_append_ordinality(stages, options);
}
