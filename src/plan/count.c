/*-------------------------------------------------------------------------
 *
 * count.c
 *		count(*) as the command count.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "count.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "clauses.h"
#include "command_template.h"
#include "derived.h"
#include "encoding.h"
#include "feature.h"
#include "plan_nodes.h"

/* count_command: {count: collection, query: filter}, the query only if there is one. */
static Const *
count_command(const MongoRelation *relation, const MongoPipeline *pipeline)
{
	bson_t	   *command = bson_create_in(CurrentMemoryContext);

	BSON_APPEND_UTF8(command, "count", mongo_to_utf8(relation->options->collection));
	if (pipeline->only_match != NULL)
	{
		BSON_APPEND_DOCUMENT(command, "query", pipeline->only_match);
		mongo_append_hint(command, relation->options);
	}
	mongo_append_collation(command, &pipeline->translation);
	mongo_append_max_time(command, relation->options);
	return mongo_command_to_const(command);
}

/* count_pipeline: {aggregate: collection, pipeline: [..., {$count: "n"}], ...} */
static Const *
count_pipeline(const MongoRelation *relation, MongoPipeline pipeline)
{
	pipeline.stages = bson_copy_in(CurrentMemoryContext, pipeline.stages);
	bson_append_condition(pipeline.stages, psprintf("%d", pipeline.nstages), "$count",
						  bson_utf8(MONGO_COUNT_FIELD));
	return mongo_pipeline_command(relation, &pipeline);
}

/* reads_snapshot: is the read concern one that the command does not take? */
static bool
reads_snapshot(const MongoRelation *relation)
{
	const char *level = mongo_read_concern(GetForeignServer(relation->serverid));

	return level != NULL && strcmp(level, "snapshot") == 0;
}

const MongoCount *
mongo_plan_count(const MongoRelation *relation, const MongoPipeline *pipeline)
{
	MongoCount *count;

	/* the command has no "let" */
	if (!mongo_feature_enabled(relation->options, MONGO_FEATURE_COUNT) ||
		pipeline->translation.variables != NIL)
		return NULL;
	if (pipeline->only_match == NULL &&
		(pipeline->nstages > 0 || !relation->options->count_from_metadata))
		return NULL;
	if (reads_snapshot(relation))
		return NULL;

	count = palloc(sizeof(MongoCount));
	count->command = count_command(relation, pipeline);
	count->pipeline = count_pipeline(relation, *pipeline);
	return count;
}

bool
mongo_counts_from_metadata(const RelOptInfo *baserel)
{
	const MongoRelation *relation = baserel->fdw_private;

	return baserel->reloptkind == RELOPT_BASEREL &&
		baserel->baserestrictinfo == NIL &&
		!mongo_is_derived(relation->options) &&
		relation->options->count_from_metadata &&
		mongo_feature_enabled(relation->options, MONGO_FEATURE_COUNT);
}
