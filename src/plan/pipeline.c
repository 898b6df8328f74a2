/*-------------------------------------------------------------------------
 *
 * pipeline.c
 *		Pipelines in the making.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pipeline.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "clauses.h"
#include "command_template.h"
#include "encoding.h"
#include "feature.h"
#include "relation.h"

/* Is this a $group that makes one group of all? */
static bool
is_one_group(const bson_t *specification)
{
	bson_iter_t key;

	return bson_iter_init_find(&key, specification, "_id") &&
		BSON_ITER_HOLDS_NULL(&key);
}

void
mongo_pipeline_append(MongoPipeline *pipeline, const char *name,
					  const bson_t *specification)
{
	/* these keep rows or groups until they have seen all there are */
	if (strcmp(name, "$sort") == 0 ||
		(strcmp(name, "$group") == 0 && !is_one_group(specification)))
		pipeline->may_need_disk = true;

	pipeline->only_match = pipeline->nstages == 0 && strcmp(name, "$match") == 0 ?
		specification : NULL;
	bson_append_condition(pipeline->stages, psprintf("%d", pipeline->nstages++), name,
						  bson_document(specification));
}

void
mongo_pipeline_project(MongoPipeline *pipeline, List *paths)
{
	bson_t	   *projection = bson_create_in(CurrentMemoryContext);
	ListCell   *cell;

	foreach(cell, paths)
	{
		if (!mongo_path_is_addressable(lfirst(cell)))
			return;
	}
	mongo_append_paths(projection, paths);
	mongo_pipeline_append(pipeline, "$project", projection);
}

Const *
mongo_pipeline_command(const MongoRelation *relation, const MongoPipeline *pipeline)
{
	bson_t	   *command = bson_create_in(CurrentMemoryContext);

	bson_append_template(command, "{aggregate: @1, pipeline: @2, cursor: {}}",
						 bson_utf8(mongo_to_utf8(relation->options->collection)),
						 bson_array(pipeline->stages));
	if (pipeline->may_need_disk &&
		mongo_feature_enabled(relation->options, MONGO_FEATURE_DISK_USE))
		BSON_APPEND_BOOL(command, "allowDiskUse", true);
	mongo_append_collation(command, &pipeline->translation);
	mongo_append_hint(command, relation->options);
	mongo_append_max_time(command, relation->options);
	return mongo_command_to_const(command);
}
