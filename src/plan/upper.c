/*-------------------------------------------------------------------------
 *
 * upper.c
 *		What is done above a scan or a join in the same command.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "upper.h"

#include "bson_memory.h"
#include "cost.h"
#include "pipeline_input.h"
#include "planning_state.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"

const MongoTableOptions *
mongo_upper_options(const MongoUpperRelation *upper)
{
	return ((MongoRelation *) upper->input->fdw_private)->options;
}

/* A copy that stages can be added to. */
static MongoUpperRelation *
copy_upper(const MongoUpperRelation *source)
{
	MongoUpperRelation *upper = palloc(sizeof(MongoUpperRelation));
	MongoTranslation *translation = &upper->pipeline.translation;

	*upper = *source;
	upper->count = NULL;
	if (upper->by_find)
		return upper;
	upper->pipeline.stages = bson_copy_in(CurrentMemoryContext, source->pipeline.stages);
	translation->computed = list_copy(translation->computed);
	translation->parameters = list_copy(translation->parameters);
	translation->predicates = list_copy(translation->predicates);
	translation->variables = list_copy(translation->variables);
	return upper;
}

MongoUpperRelation *
mongo_upper_begin(PlannerInfo *root, RelOptInfo *rel)
{
	MongoUpperRelation *upper;

	if (IS_UPPER_REL(rel))
		return rel->fdw_private == NULL ? NULL : copy_upper(rel->fdw_private);
	if (!mongo_is_pipeline_input(root, rel))
		return NULL;

	upper = palloc0(sizeof(MongoUpperRelation));
	upper->input = rel;
	upper->rows = rel->rows;
	mongo_pipeline_begin(rel, &upper->pipeline);
	mongo_estimate_scan(rel, 0, ((MongoRelation *) rel->fdw_private)->examined_rows,
						&upper->startup_cost, &upper->total_cost);
	return upper;
}

void
mongo_upper_add_path(PlannerInfo *root, RelOptInfo *output_rel,
					 MongoUpperRelation *upper, PathTarget *target, List *pathkeys)
{
	const MongoTableOptions *options = mongo_upper_options(upper);
	double		rows = upper->rows;
	Cost		startup_cost = upper->startup_cost + target->cost.startup;
	Cost		total_cost = upper->total_cost + target->cost.startup;
	QualCost	qual_cost;

	total_cost += rows * (options->fdw_tuple_cost + cpu_tuple_cost);
	if (upper->local_quals != NIL)
	{
		cost_qual_eval(&qual_cost, upper->local_quals, root);
		startup_cost += qual_cost.startup;
		total_cost += qual_cost.startup + qual_cost.per_tuple * rows;
		rows = clamp_row_est(rows * clauselist_selectivity(root, upper->local_quals, 0,
														   JOIN_INNER, NULL));
	}
	total_cost += target->cost.per_tuple * rows;

	mongo_keep_planning_state(output_rel, upper);
	add_path(output_rel, (Path *)
			 mongo_foreign_upper_path(root, output_rel, target, rows, startup_cost,
									  total_cost, pathkeys, upper->local, NIL));
}

/* What is_not_given() looks at. */
typedef struct GivenContext
{
	const MongoUpperRelation *upper;
	MongoColumns *columns;
} GivenContext;

/* is_not_given: is there anything that must come from MongoDB and does not? */
static bool
is_not_given(Node *node, GivenContext *context)
{
	ListCell   *cell;
	MongoField	field;

	if (node == NULL)
		return false;
	foreach(cell, context->upper->outputs)
	{
		if (equal(((MongoOutput *) lfirst(cell))->expression, node))
			return false;
	}
	if (IsA(node, Var))
		return context->columns == NULL ||
			!mongo_field_of_node(context->columns, node, &field);
	if (IsA(node, Aggref) || IsA(node, PlaceHolderVar) || IsA(node, GroupingFunc))
		return true;
	return expression_tree_walker(node, is_not_given, context);
}

bool
mongo_upper_gives(const MongoUpperRelation *upper, List *expressions)
{
	GivenContext context = {upper, upper->pipeline.translation.columns};

	return !is_not_given((Node *) expressions, &context);
}
