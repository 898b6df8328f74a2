/*-------------------------------------------------------------------------
 *
 * pipeline.c
 *		Pipelines in the making: what is below joins and upper relations.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_memory.h"
#include "command_template.h"
#include "encoding.h"
#include "feature.h"
#include "plan_clauses.h"
#include "plan_join.h"
#include "plan_pipeline.h"

#include "miscadmin.h"

/*
 * has_pseudoconstant: a clause without columns becomes a Result above the scan,
 * which an upper relation's plan would not have.
 */
static bool
has_pseudoconstant(RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->baserestrictinfo)
	{
		if (lfirst_node(RestrictInfo, cell)->pseudoconstant)
			return true;
	}
	return false;
}

bool
mongo_is_pipeline_input(PlannerInfo *root, RelOptInfo *rel)
{
	MongoRelation *relation = rel->fdw_private;

	if (!mongo_enable_pushdown || relation == NULL)
		return false;
	if (rel->reloptkind == RELOPT_JOINREL)
		return relation->join != NULL;
	return IS_SIMPLE_REL(rel) &&
		bms_is_empty(rel->lateral_relids) &&
		relation->options->type_mismatch == MONGO_TYPE_MISMATCH_ERROR &&
		!(root->hasPseudoConstantQuals && has_pseudoconstant(rel)) &&
		mongo_can_be_exact(rel);
}

void
mongo_pipeline_cost(RelOptInfo *rel, Cost *startup_cost,
					Cost *total_cost)
{
	MongoRelation *relation = rel->fdw_private;

	mongo_estimate_scan(rel, 0, relation->examined_rows, startup_cost, total_cost);
}

/* append_table: the stages of a foreign table, those of its restrictions. */
static void
append_table(RelOptInfo *rel, MongoPipeline *pipeline)
{
	MongoRelation *relation = rel->fdw_private;
	MongoScanClauses clauses;

	pipeline->translation = mongo_translation_of(relation);
	pipeline->translation.need_exact = true;
	mongo_sort_scan_clauses(&pipeline->translation, rel, relation->known,
							rel->baserestrictinfo, &clauses);
	if (clauses.local != NIL)
		elog(ERROR, "restriction of a pipeline is not shippable");
	if (!bson_empty(clauses.filter))
		mongo_pipeline_append(pipeline, "$match", clauses.filter);
}

/* append_relation: the stages of a table, or of a join from its outer side on. */
static void
append_relation(RelOptInfo *rel, MongoPipeline *pipeline)
{
	const MongoRelation *relation = rel->fdw_private;

	check_stack_depth();
	if (relation->join == NULL)
	{
		append_table(rel, pipeline);
		return;
	}
	append_relation(relation->join->outer, pipeline);
	if (!mongo_append_join(relation->join, pipeline))
		elog(ERROR, "clause of a join is not shippable");
}

void
mongo_pipeline_begin(RelOptInfo *rel, MongoPipeline *pipeline)
{
	memset(pipeline, 0, sizeof(*pipeline));
	pipeline->stages = bson_create_in(CurrentMemoryContext);
	append_relation(rel, pipeline);
	mongo_settle_lookups(pipeline);
}

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
	char		key[16];
	bson_t		stage;

	/* these keep rows or groups until they have seen all there are */
	if (strcmp(name, "$sort") == 0 ||
		(strcmp(name, "$group") == 0 && !is_one_group(specification)))
		pipeline->may_need_disk = true;

	snprintf(key, sizeof(key), "%d", pipeline->nstages++);
	BSON_APPEND_DOCUMENT_BEGIN(pipeline->stages, key, &stage);
	BSON_APPEND_DOCUMENT(&stage, name, specification);
	bson_append_document_end(pipeline->stages, &stage);
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
	bson_t		cursor;

	BSON_APPEND_UTF8(command, "aggregate", mongo_to_utf8(relation->options->collection));
	BSON_APPEND_ARRAY(command, "pipeline", pipeline->stages);
	BSON_APPEND_DOCUMENT_BEGIN(command, "cursor", &cursor);
	bson_append_document_end(command, &cursor);
	if (pipeline->may_need_disk &&
		mongo_feature_enabled(relation->options, MONGO_FEATURE_DISK_USE))
		BSON_APPEND_BOOL(command, "allowDiskUse", true);
	mongo_append_collation(command, &pipeline->translation);
	return mongo_command_to_const(command);
}
