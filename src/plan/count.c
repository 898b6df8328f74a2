/*-------------------------------------------------------------------------
 *
 * count.c
 *		count(*) as the command count.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_memory.h"
#include "command_template.h"
#include "encoding.h"
#include "feature.h"
#include "plan_clauses.h"
#include "plan_count.h"

/* only_match: the filter of a pipeline that is one $match, into 'filter'. */
static bool
only_match(const MongoPipeline *pipeline, bson_t *filter)
{
	bson_iter_t stages;
	bson_iter_t stage;
	const uint8_t *bytes;
	uint32_t	length;

	if (pipeline->nstages != 1 ||
		!bson_iter_init(&stages, pipeline->stages) || !bson_iter_next(&stages) ||
		!bson_iter_recurse(&stages, &stage) || !bson_iter_next(&stage) ||
		strcmp(bson_iter_key(&stage), "$match") != 0)
		return false;
	bson_iter_document(&stage, &length, &bytes);
	return bson_init_static(filter, bytes, length) && !bson_empty(filter);
}

Const *
mongo_count_command(const MongoRelation *relation, const MongoPipeline *pipeline)
{
	bson_t	   *command;
	bson_t		filter;
	bool		has_filter = only_match(pipeline, &filter);

	/* the command has no "let" */
	if (!mongo_feature_enabled(relation->options, MONGO_FEATURE_COUNT) ||
		pipeline->translation.variables != NIL)
		return NULL;
	if (!has_filter &&
		(pipeline->nstages > 0 || !relation->options->count_from_metadata))
		return NULL;

	command = bson_create_in(CurrentMemoryContext);
	BSON_APPEND_UTF8(command, "count", mongo_to_utf8(relation->options->collection));
	if (has_filter)
		BSON_APPEND_DOCUMENT(command, "query", &filter);
	mongo_append_collation(command, &pipeline->translation);
	return mongo_command_to_const(command);
}

bool
mongo_counts_from_metadata(const RelOptInfo *baserel)
{
	const MongoRelation *relation = baserel->fdw_private;

	return baserel->reloptkind == RELOPT_BASEREL &&
		baserel->baserestrictinfo == NIL &&
		relation->options->count_from_metadata &&
		mongo_feature_enabled(relation->options, MONGO_FEATURE_COUNT);
}
