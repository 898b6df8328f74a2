/*-------------------------------------------------------------------------
 *
 * source.c
 *		The stages that make the rows of pipeline tables.
 *
 * First those of the option pipeline, and then, for each path of the option unwind, those that
 * turn each array element into a row.  The stages are checked for JavaScript here, wherever they
 * end up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "options.h"
#include "convert.h"
#include "remote.h"

#include <math.h>

#include "miscadmin.h"
#include "utils/builtins.h"

/* ----------- The stages that make the rows of a pipeline table ------------ */

/*
 * mongo_deriving_option
 *		Returns the option that makes it a pipeline table, or NULL.
 */
const char *
mongo_deriving_option(const MongoTableOptions *options)
{
	return options->unwind != NULL ? "unwind" :
		options->change_stream != NULL ? "change_stream" :
		mongo_has_first_stages(options) ? "pipeline" : NULL;
}

/*
 * mongo_append_pipeline
 *		Appends the stages of the option pipeline, if set; raises 42501 for JavaScript.
 */
void
mongo_append_pipeline(BsonArray *stages, const MongoTableOptions *options)
{
	bson_t	   *holder;
	bson_iter_t pipeline;
	bson_iter_t stage;

	if (options->pipeline == NULL)
		return;
	holder = mongo_bson_create();
	mongo_append_kept_json(holder, "pipeline", CStringGetTextDatum(options->pipeline));
	if (!bson_iter_init_find(&pipeline, holder, "pipeline") ||
		!BSON_ITER_HOLDS_ARRAY(&pipeline))
		elog(ERROR, "option \"pipeline\" is not an array");
	mongo_check_javascript(options, &pipeline, "the option \"pipeline\" of a foreign table");
	bson_iter_recurse(&pipeline, &stage);
	while (bson_iter_next(&stage))
		mongo_array_append(stages, *bson_iter_value(&stage));
}

/*
 * mongo_score_meta
 *		Returns what $meta calls the score of a document that $text, $search, $vectorSearch or
 *		$geoNear has found; NULL if the first stage of the table's pipeline is none.
 */
const char *
mongo_score_meta(const MongoTableOptions *options)
{
	static const struct
	{
		const char *stage;
		const char *meta;
	}			scores[] = {
		{"$match", "textScore"},
		{"$search", "searchScore"},
		{"$vectorSearch", "vectorSearchScore"},
		{"$geoNear", "geoNearDistance"},
	};
	BsonArray	stages = mongo_array_create();
	bson_iter_t first;
	bson_iter_t stage;

	if (!mongo_is_pipeline_table(options))
		return "textScore";
	mongo_append_pipeline(&stages, options);
	if (!bson_iter_init(&first, stages.bson) || !bson_iter_next(&first))
		return NULL;
	for (size_t i = 0; i < lengthof(scores); i++)
	{
		if (bson_iter_recurse(&first, &stage) && bson_iter_find(&stage, scores[i].stage))
			return scores[i].meta;
	}
	return NULL;
}

/*
 * mongo_aggregate_command
 *		Returns a command {aggregate, pipeline} over the table's collection, or over the database
 *		for a change stream of several collections.
 */
bson_t *
mongo_aggregate_command(const MongoTableOptions *options, const bson_t *stages)
{
	bool		is_wide = options->change_stream != NULL &&
		strcmp(options->change_stream, "collection") != 0;

	return mongo_from_template("{aggregate: @1, pipeline: @2}", is_wide ? mongo_int32(1) :
							   mongo_utf8(mongo_to_utf8(options->collection)), mongo_array(stages));
}

/* ------------------------------- unwinding --------------------------------- */

static List *
names_to_utf8(List *names)
{
	ListCell   *cell;

	foreach(cell, names)
		lfirst(cell) = (char *) mongo_to_utf8(lfirst(cell));
	return names;
}

/*
 * mongo_unwound_paths
 *		Returns the paths of the option unwind, char * in UTF-8.
 */
List *
mongo_unwound_paths(const MongoTableOptions *options)
{
	return names_to_utf8(mongo_split_list(options->unwind));
}

/*
 * mongo_ordinality_fields
 *		Returns the fields of the option ordinality, char * in UTF-8.
 */
List *
mongo_ordinality_fields(const MongoTableOptions *options)
{
	return names_to_utf8(mongo_split_list(options->ordinality));
}

/*
 * Returns an expression that is true for an array and for a missing field.  It is also true if the
 * path goes through an array; $unwind finds nothing there.
 */
static const bson_t *
can_be_unwound(const char *path)
{
	return mongo_from_template("{$isArray: {$ifNull: [@1, []]}}", mongo_field_path(path));
}

/* Returns the same as can_be_unwound(), but false if the path goes through an array. */
static const bson_t *
fits(const char *path)
{
	BsonArray	tests = mongo_array_create();

	for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
		mongo_array_append_template(&tests, "{$not: [{$isArray: @1}]}",
									mongo_field_path(pnstrdup(path, dot - path)));
	if (tests.count == 0)
		return can_be_unwound(path);
	mongo_array_append(&tests, mongo_document(can_be_unwound(path)));
	return mongo_from_template("{$and: @1}", mongo_array(tests.bson));
}

/*
 * mongo_mismatch_expression
 *		Returns an expression that fails, with the message that MONGO_MISMATCH specifies (HV004, see
 *		remote.h), for 'value' at the path, which a column of this type cannot read.  MongoDB does
 *		not evaluate it early unless the value is a constant.
 */
bson_t *
mongo_mismatch_expression(const MongoTableOptions *options, const char *path, const char *type,
						  bson_value_t value)
{
	const char *text = psprintf(MONGO_MISMATCH "%s" MONGO_MISMATCH_SEPARATOR "%s.%s"
								MONGO_MISMATCH_SEPARATOR "%s" MONGO_MISMATCH_SEPARATOR,
								path, mongo_to_utf8(options->database),
								mongo_to_utf8(options->collection), mongo_to_utf8(type));

	return mongo_expression("{$toInt: {$concat: [@1, {$type: @2}]}}",
							mongo_utf8(text), value);
}

/* Returns the value at 'parent', with a null at the rest of the path. */
static bson_value_t
with_null(const char *parent, const char *rest)
{
	const char *dot;
	const char *name;

	check_stack_depth();
	if (rest == NULL)
		return mongo_null();
	dot = strchr(rest, '.');
	name = dot == NULL ? rest : pnstrdup(rest, dot - rest);
	return mongo_document(mongo_from_template("{$mergeObjects: [@1, {@2: @3}]}",
											  mongo_field_path(parent), mongo_utf8(name),
											  with_null(psprintf("%s.%s", parent, name),
														dot == NULL ? NULL : dot + 1)));
}

/*
 * Appends {$set: {top: {$cond: [test, "$top", otherwise]}}}.  A $set of the path itself would
 * create documents on the path, and MongoDB might evaluate a $match before stages that precede it.
 */
static void
append_replaced(BsonArray *stages, const char *top, const bson_t *test, bson_value_t otherwise)
{
	mongo_array_append_template(stages, "{$set: {@1: {$cond: [@2, @3, @4]}}}", mongo_utf8(top),
								mongo_document(test), mongo_field_path(top), otherwise);
}

/* Appends the stage for documents with anything but an array at the path. */
static void
append_array_test(BsonArray *stages, const MongoTableOptions *options, const char *path,
				  MongoNoArray no_array)
{
	const char *dot = strchr(path, '.');
	const char *top = dot == NULL ? path : pnstrdup(path, dot - path);

	if (no_array == MONGO_NO_ARRAY_RAISES)
		append_replaced(stages, top, fits(path),
						mongo_first_value(mongo_mismatch_expression(options, path,
																	MONGO_MISMATCH_ARRAY,
																	mongo_field_path(path))));
	else if (!options->unwind_empty)
		mongo_array_append_template(stages, "{$match: {@1: {$type: 'array'}}}", mongo_utf8(path));
	else if (no_array == MONGO_NO_ARRAY_IS_NULL)
		append_replaced(stages, top, can_be_unwound(path),
						with_null(top, dot == NULL ? NULL : dot + 1));
	else
		mongo_array_append_template(stages, "{$match: {$expr: @1}}",
									mongo_document(fits(path)));
}

/*
 * mongo_append_unwind
 *		Appends the stages that turn each array element into a row, for the path with this number.
 *		Missing fields, nulls and empty arrays give no row, or one row with the option unwind_empty.
 *		If 'numbered', the field that the option ordinality names is the element's number, from 0.
 */
void
mongo_append_unwind(BsonArray *stages, const MongoTableOptions *options, int number,
					bool numbered, MongoNoArray no_array)
{
	const char *path = list_nth(mongo_unwound_paths(options), number);
	List	   *fields = mongo_ordinality_fields(options);
	bson_t	   *unwind = mongo_from_template("{path: @1}", mongo_field_path(path));

	append_array_test(stages, options, path, no_array);
	if (numbered && number < list_length(fields))
		mongo_append(unwind, "includeArrayIndex", mongo_utf8(list_nth(fields, number)));
	if (options->unwind_empty)
		mongo_append(unwind, "preserveNullAndEmptyArrays", mongo_bool(true));
	mongo_array_append_template(stages, "{$unwind: @1}", mongo_document(unwind));
}

/*
 * mongo_append_ordinality
 *		Appends, after all stages of mongo_append_unwind(), one that makes the elements' numbers
 *		begin with 1.
 */
void
mongo_append_ordinality(BsonArray *stages, const MongoTableOptions *options)
{
	bson_t	   *numbers = mongo_bson_create();
	ListCell   *cell;

	foreach(cell, mongo_ordinality_fields(options))
		mongo_append_member(numbers, lfirst(cell), "{$add: [@1, 1]}", mongo_field_path(lfirst(cell)));
	if (!bson_empty(numbers))
		mongo_array_append_template(stages, "{$set: @1}", mongo_document(numbers));
}

/*
 * mongo_append_deriving_stages
 *		Appends all stages of a pipeline table; a value to unwind that is no array is read as NULL.
 */
void
mongo_append_deriving_stages(BsonArray *stages, const MongoTableOptions *options)
{
	int			npaths = list_length(mongo_unwound_paths(options));

	mongo_append_pipeline(stages, options);
	for (int i = 0; i < npaths; i++)
		mongo_append_unwind(stages, options, i, true, MONGO_NO_ARRAY_IS_NULL);
	mongo_append_ordinality(stages, options);
}
