/*-------------------------------------------------------------------------
 *
 * upper_group.c
 *		GROUP BY, HAVING, aggregates and DISTINCT in MongoDB.
 *
 * $group is not always faster than sending the documents and having PostgreSQL
 * group them, so the costs decide.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "upper.h"

#include "bson_memory.h"
#include "cost.h"
#include "count.h"
#include "feature.h"
#include "group.h"
#include "index_use.h"
#include "local_plan.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/selfuncs.h"

static MongoGroup *
begin_group(MongoUpperRelation *upper)
{
	MongoGroup *group = palloc0(sizeof(MongoGroup));

	group->scope.translation = &upper->pipeline.translation;
	group->scope.scale = true;
	group->results = bson_create_in(CurrentMemoryContext);
	return group;
}

/* add_keys: those of the target that GROUP BY names. */
static bool
add_keys(MongoGroup *group, const Query *parse, PathTarget *target)
{
	int			i = 0;
	ListCell   *cell;

	foreach(cell, target->exprs)
	{
		Index		reference = get_pathtarget_sortgroupref(target, i++);

		if (reference != 0 &&
			get_sortgroupref_clause_noerr(reference, parse->groupClause) != NULL &&
			!mongo_group_add_key(group, lfirst(cell)))
			return false;
	}
	return true;
}

/* add_aggregates: all that are in the expressions; false when one is not shippable. */
static bool
add_aggregates(MongoGroup *group, List *expressions)
{
	List	   *found = pull_var_clause((Node *) expressions,
										PVC_INCLUDE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
										PVC_INCLUDE_PLACEHOLDERS);
	ListCell   *cell;

	foreach(cell, found)
	{
		if (IsA(lfirst(cell), Aggref) &&
			!mongo_group_add_aggregate(group, lfirst(cell)))
			return false;
	}
	return true;
}

/* Keys are outputs as well. */
static void
add_key_outputs(const MongoGroup *group, MongoUpperRelation *upper)
{
	ListCell   *cell;
	int			nkeys = list_length(group->keys);

	upper->outputs = list_copy(group->outputs);
	foreach(cell, group->keys)
	{
		MongoGroupKey *key = lfirst(cell);
		MongoOutput *output = palloc0(sizeof(MongoOutput));
		MongoOutputField *field = palloc(sizeof(MongoOutputField));

		field->path = nkeys == 1 ? "_id" : psprintf("_id.k%d", foreach_current_index(cell));
		field->type = exprType((Node *) key->expression);
		field->typmod = exprTypmod((Node *) key->expression);
		output->expression = key->expression;
		output->fields = list_make1(field);
		upper->outputs = lappend(upper->outputs, output);
	}
}

/*
 * walks_index: a $group by a field alone goes from key to key of an index that leads
 * with it, if that tests all conditions as well (DISTINCT_SCAN).
 *
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/group/
 */
static bool
walks_index(const MongoGroup *group, const MongoUpperRelation *upper)
{
	const MongoGroupKey *key;
	MongoField	field;

	if (list_length(group->keys) != 1 || group->accumulators != NIL ||
		group->distinct != NULL || upper->grouped)
		return false;
	key = linitial(group->keys);
	if (mongo_column_of_node(group->scope.translation->columns, (Node *) key->expression,
							 &field) == NULL)
		return false;
	if (bson_empty(upper->pipeline.stages))
		return (field.index_uses & MONGO_INDEX_ORDER) != 0;
	return upper->input->reloptkind == RELOPT_BASEREL && !field.unindexed &&
		mongo_index_walks(upper->input, field.path);
}

/* add_stages: everything is translated; what does it cost, what comes of it? */
static void
add_stages(PlannerInfo *root, MongoGroup *group, MongoUpperRelation *upper)
{
	double		tuple_cost = mongo_upper_options(upper)->fdw_tuple_cost;
	List	   *keys = NIL;
	double		groups;
	double		first_groups;
	bool		walks = walks_index(group, upper);
	ListCell   *cell;

	foreach(cell, group->keys)
		keys = lappend(keys, ((MongoGroupKey *) lfirst(cell))->expression);
	groups = keys == NIL ? 1 :
		estimate_num_groups(root, keys, upper->rows, NULL, NULL);
	if (group->distinct != NULL)
		keys = lappend(keys, group->distinct);
	first_groups = keys == NIL ? 1 :
		estimate_num_groups(root, keys, upper->rows, NULL, NULL);

	if (walks)
		upper->total_cost = mongo_upper_options(upper)->fdw_startup_cost +
			first_groups * tuple_cost * MONGO_COST_NEXT_KEY;
	else
		upper->total_cost += upper->rows * tuple_cost *
			mongo_group_cost(group, first_groups);
	if (group->distinct != NULL)
		upper->total_cost += first_groups * tuple_cost * mongo_group_cost(group, groups);
	upper->startup_cost = upper->total_cost;

	mongo_group_append(group, walks || first_groups * MONGO_COST_MERGE_FACTOR < upper->rows,
					   &upper->pipeline);
	add_key_outputs(group, upper);
	upper->rows = groups;
	upper->grouped = true;
}

/*
 * add_having: exact conditions as a $match, others are tested by PostgreSQL.  So are
 * those on the one row of aggregates without GROUP BY, which execution may have to make.
 */
static void
add_having(PlannerInfo *root, MongoUpperRelation *upper, List *having)
{
	List	   *shipped = NIL;
	ListCell   *cell;

	foreach(cell, having)
	{
		bson_t	   *match = bson_create_in(CurrentMemoryContext);
		bson_t	   *test = NULL;

		if (!upper->one_row)
			test = mongo_translate_test(&upper->pipeline.translation, lfirst(cell), true);
		if (test == NULL)
		{
			upper->local_quals = lappend(upper->local_quals, lfirst(cell));
			continue;
		}
		mongo_append_expression(match, "$expr", test);
		mongo_pipeline_append(&upper->pipeline, "$match", match);
		shipped = lappend(shipped, lfirst(cell));
	}
	upper->rows = clamp_row_est(upper->rows *
								clauselist_selectivity(root, shipped, 0, JOIN_INNER, NULL));
}

/* is_plain_count: is count(*) all that is asked for? */
static bool
is_plain_count(const MongoGroup *group)
{
	MongoOutput *output;

	if (group->keys != NIL || list_length(group->outputs) != 1)
		return false;
	output = linitial(group->outputs);
	return ((Aggref *) output->expression)->aggfnoid == F_COUNT_ &&
		((Aggref *) output->expression)->aggfilter == NULL;
}

/* may_group: can a $group follow what there is? */
static bool
may_group(const MongoUpperRelation *upper)
{
	return upper != NULL && !upper->by_find && upper->local_quals == NIL &&
		!upper->limited &&
		mongo_feature_enabled(mongo_upper_options(upper), MONGO_FEATURE_GROUP);
}

void
mongo_add_grouped_path(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
					   RelOptInfo *grouped_rel, GroupPathExtraData *extra)
{
	Query	   *parse = root->parse;
	PathTarget *target = grouped_rel->reltarget;
	List	   *having = stage == UPPERREL_GROUP_AGG ? (List *) extra->havingQual : NIL;
	MongoUpperRelation *upper;
	MongoGroup *group;

	if (parse->groupingSets != NIL || parse->hasTargetSRFs ||
		(parse->groupClause == NIL && !parse->hasAggs))
		return;
	upper = mongo_upper_begin(root, input_rel);
	if (!may_group(upper))
		return;

	group = begin_group(upper);
	if (!add_keys(group, parse, target) ||
		!add_aggregates(group, target->exprs) ||
		!add_aggregates(group, having))
		return;
	upper->stage = stage;
	upper->one_row = group->keys == NIL;
	if (is_plain_count(group) && having == NIL)
		upper->count = mongo_plan_count(upper->input->fdw_private, &upper->pipeline);
	add_stages(root, group, upper);
	if (upper->count != NULL && mongo_counts_from_metadata(upper->input))
		upper->startup_cost = upper->total_cost =
			mongo_upper_options(upper)->fdw_startup_cost;
	add_having(root, upper, having);
	if (!mongo_upper_gives(upper, target->exprs) ||
		!mongo_upper_gives(upper, upper->local_quals))
		return;
	upper->local = mongo_local_aggregate(root, grouped_rel, upper, extra);
	mongo_upper_add_path(root, grouped_rel, upper, target, NIL);
}

/* add_distinct_keys: everything that is selected. */
static bool
add_distinct_keys(MongoGroup *group, PlannerInfo *root)
{
	ListCell   *cell;

	foreach(cell, root->parse->distinctClause)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, cell);
		Node	   *key = get_sortgroupclause_expr(clause, root->processed_tlist);

		if (!mongo_group_add_key(group, (Expr *) key))
			return false;
	}
	return true;
}

void
mongo_add_distinct_path(PlannerInfo *root, RelOptInfo *input_rel,
						RelOptInfo *distinct_rel)
{
	Query	   *parse = root->parse;
	PathTarget *target = root->upper_targets[UPPERREL_DISTINCT];
	MongoUpperRelation *upper;
	MongoGroup *group;

	if (parse->hasDistinctOn || parse->hasTargetSRFs)
		return;
	upper = mongo_upper_begin(root, input_rel);
	if (!may_group(upper))
		return;
	group = begin_group(upper);
	if (!add_distinct_keys(group, root))
		return;
	upper->stage = UPPERREL_DISTINCT;
	upper->local = NULL;
	upper->one_row = false;
	add_stages(root, group, upper);
	if (!mongo_upper_gives(upper, target->exprs))
		return;
	mongo_upper_add_path(root, distinct_rel, upper, target, NIL);
}
