/*-------------------------------------------------------------------------
 *
 * pipeline_input.c
 *		What a pipeline begins with: the stages of a foreign table or a join.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "pipeline_input.h"

#include "bson_memory.h"
#include "clauses.h"
#include "derive.h"
#include "join_stages.h"
#include "relation.h"
#include "settings.h"

#include "miscadmin.h"

bool
mongo_has_pseudoconstant(const List *rinfos)
{
	ListCell   *cell;

	foreach(cell, rinfos)
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
		!(root->hasPseudoConstantQuals && mongo_has_pseudoconstant(rel->baserestrictinfo)) &&
		mongo_can_be_exact(rel);
}

/* append_table: the stages of a foreign table, those of its restrictions. */
static void
append_table(RelOptInfo *rel, MongoPipeline *pipeline)
{
	MongoRelation *relation = rel->fdw_private;
	MongoScanClauses clauses;

	pipeline->translation = mongo_translation_of(relation);
	pipeline->translation.need_exact = true;
	mongo_classify_clauses(&pipeline->translation, rel, relation->known,
						   rel->baserestrictinfo, &clauses);
	if (clauses.local != NIL)
		elog(ERROR, "restriction of a pipeline is not shippable");
	mongo_pipeline_derive(pipeline, relation, &clauses);
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
