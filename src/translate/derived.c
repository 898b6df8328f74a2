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
#include "encode.h"

#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "utils/builtins.h"

/* What runs JavaScript in MongoDB. */
static const char *const javascript_operators[] = {"$where", "$function", "$accumulator"};

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

static void
check_javascript(const MongoTableOptions *options, const bson_iter_t *pipeline)
{
	bson_iter_t stages;
	const char *found = NULL;

	if (!options->allow_javascript && bson_iter_recurse(pipeline, &stages))
		found = javascript_in(&stages);
	if (found != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("the option \"pipeline\" of a foreign table over collection \"%s.%s\" must not use %s",
						options->database, options->collection, found),
				 errdetail("It runs JavaScript in MongoDB."),
				 errhint("The owner of the foreign server may allow that by its option allow_javascript.")));
}

void
mongo_append_deriving_stages(BsonArray *stages, const MongoTableOptions *options)
{
	bson_t	   *holder;
	bson_iter_t pipeline;
	bson_iter_t stage;

	if (options->pipeline == NULL)
		return;
	holder = bson_create_in(CurrentMemoryContext);
	mongo_append_datum(holder, "pipeline", -1, CStringGetTextDatum(options->pipeline), false,
					   JSONOID, -1);
	if (!bson_iter_init_find(&pipeline, holder, "pipeline") ||
		!BSON_ITER_HOLDS_ARRAY(&pipeline))
		elog(ERROR, "option \"pipeline\" is not an array");
	check_javascript(options, &pipeline);
	bson_iter_recurse(&pipeline, &stage);
	while (bson_iter_next(&stage))
		bson_array_append(stages, *bson_iter_value(&stage));
}
