/*-------------------------------------------------------------------------
 *
 * upper_order.c
 *		ORDER BY as a $sort, above groups and joins, by expressions, and where
 *		an index could not give the order of a scan anyway.
 *
 * MongoDB puts null below every value and NaN below every number; PostgreSQL
 * puts NaN above every number and NULL where the query says.  Where that
 * differs, a rank that is computed goes before the key in the $sort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "upper.h"

#include "bson_memory.h"
#include "cost.h"
#include "feature.h"
#include "group.h"
#include "local_plan.h"
#include "order.h"
#include "planning_state.h"
#include "strategy.h"

#include <math.h>

#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"

/* The $sort in the making, and the $set before it. */
typedef struct SortStage
{
	bson_t	   *fields;			/* of the $set */
	bson_t	   *sort;
	const char *prefix;			/* of the fields' names */
	int			nkeys;			/* of the $sort */
	double		cost;			/* of the expressions, for each row */
} SortStage;

/*
 * field_prefix: of names for the computed fields, so many letters "s" that no
 * column's path begins with it.
 */
static const char *
field_prefix(const MongoUpperRelation *upper)
{
	size_t		longest = 0;
	char	   *prefix;

	for (MongoColumns *columns = upper->pipeline.translation.columns; columns;
		 columns = columns->next)
	{
		for (AttrNumber attnum = 1; attnum <= columns->natts; attnum++)
		{
			const char *path = columns->prefix != NULL ? columns->prefix :
				mongo_column_path(columns, attnum);

			if (path != NULL)
				longest = Max(longest, strspn(path, "s"));
		}
	}
	prefix = palloc0(longest + 2);
	memset(prefix, 's', longest + 1);
	return prefix;
}

static void
append_sort_key(SortStage *stage, const char *path, bool ascending)
{
	bson_iter_t earlier;

	/* the same field once more adds nothing to the order */
	if (bson_iter_init_find(&earlier, stage->sort, path))
		return;
	BSON_APPEND_INT32(stage->sort, path, ascending ? 1 : -1);
	stage->nkeys++;
}

/*
 * make_nulls_one: where other keys follow, an undefined, which MongoDB sorts
 * before a null, must not be told apart from it.
 */
static void
make_nulls_one(MongoValue *value)
{
	value->expression = mongo_expand_template("{$ifNull: [@1, null]}", value, 1);
	value->atomic = false;
}

/*
 * value_path: a field with the value, which the $set computes unless it is one.
 */
static const char *
value_path(SortStage *stage, const MongoValue *value, int number)
{
	bson_iter_t top;
	const char *path;

	if (bson_iter_init(&top, value->expression) && bson_iter_next(&top) &&
		BSON_ITER_HOLDS_UTF8(&top) && strncmp(bson_iter_utf8(&top, NULL), "$$", 2) != 0)
		return pstrdup(bson_iter_utf8(&top, NULL) + 1);

	path = psprintf("%s%d", stage->prefix, number);
	mongo_append_expression(stage->fields, path, value->expression);
	stage->cost += mongo_expression_cost(value->expression);
	return path;
}

/*
 * append_rank: where NULLs and NaNs go, if that is not where MongoDB has them.
 */
static void
append_rank(SortStage *stage, const PathKey *pathkey, const MongoValue *value, int number)
{
	/* by NaN, ascending and NULLS FIRST */
	static const char *const ranks[2][2][2] = {
		{{"{$lte: [@1, null]}", "{$gt: [@1, null]}"}, {"{$lte: [@1, null]}", "{$gt: [@1, null]}"}},
		{{"{$cond: [{$eq: [@1, NaN]}, 0, {$cond: [{$gt: [@1, null]}, 1, 2]}]}",
		"{$cond: [{$eq: [@1, NaN]}, 1, {$cond: [{$gt: [@1, null]}, 2, 0]}]}"},
		{"{$cond: [{$eq: [@1, NaN]}, 1, {$cond: [{$gt: [@1, null]}, 0, 2]}]}",
		"{$cond: [{$eq: [@1, NaN]}, 2, {$cond: [{$gt: [@1, null]}, 1, 0]}]}"}},
	};
	bool		ascending = mongo_pathkey_is_ascending(pathkey);
	bool		null_in_place = !value->nullable || pathkey->pk_nulls_first == ascending;
	bson_t	   *rank;
	const char *path;

	if (null_in_place && !value->nan)
		return;
	rank = mongo_expand_template(ranks[value->nan][ascending][pathkey->pk_nulls_first],
								 value, 1);
	path = psprintf("%sr%d", stage->prefix, number);
	mongo_append_expression(stage->fields, path, rank);
	stage->cost += mongo_expression_cost(rank);
	append_sort_key(stage, path, true);
}

/*
 * is_table_id: the _id of a collection's documents, which is never null; a
 * view's may be.
 */
static bool
is_table_id(const MongoUpperRelation *upper, const MongoValue *value)
{
	const MongoRelation *relation = upper->input->fdw_private;
	bson_iter_t top;

	return !upper->grouped && relation->options->pipeline == NULL && bson_iter_init(&top, value->expression) &&
		bson_iter_next(&top) && BSON_ITER_HOLDS_UTF8(&top) &&
		strcmp(bson_iter_utf8(&top, NULL), "$_id") == 0;
}

/* find_sort_value: of a member of the pathkey's class that MongoDB can compute. */
static bool
find_sort_value(MongoUpperRelation *upper, const PathKey *pathkey, MongoValue *value)
{
	EquivalenceClass *class = pathkey->pk_eclass;
	MongoScope	scope = {.translation = &upper->pipeline.translation};
	MongoMembers members;
	EquivalenceMember *member;

	if (class->ec_has_volatile)
		return false;
	mongo_members_begin(&members, class, upper->input->relids);
	while ((member = mongo_members_next(&members)) != NULL)
	{
		Node	   *node = (Node *) member->em_expr;

		if (member->em_is_const || member->em_is_child ||
			!bms_is_subset(member->em_relids, upper->input->relids) ||
			!mongo_upper_gives(upper, list_make1(node)))
			continue;
		if (mongo_default_opfamily(exprType(node)) == pathkey->pk_opfamily &&
			mongo_group_value(&scope, node, true, value))
			return true;
	}
	return false;
}

/* add_sort appends the stages; false when a key has no translation. */
static bool
add_sort(MongoUpperRelation *upper, List *pathkeys, double *cost)
{
	SortStage	stage = {
		.fields = bson_create_in(CurrentMemoryContext),
		.sort = bson_create_in(CurrentMemoryContext),
		.prefix = field_prefix(upper)
	};
	ListCell   *cell;

	foreach(cell, pathkeys)
	{
		PathKey    *pathkey = lfirst_node(PathKey, cell);
		int			number = foreach_current_index(cell);
		MongoValue	value;
		MongoValue	sorted;
		const char *path;

		if (!find_sort_value(upper, pathkey, &value))
			return false;
		if (is_table_id(upper, &value))
			value.nullable = false;
		sorted = value;
		if (value.nullable && value.raw && !upper->grouped && lnext(pathkeys, cell) != NULL)
			make_nulls_one(&sorted);
		path = value_path(&stage, &sorted, number);
		append_rank(&stage, pathkey, &value, number);
		append_sort_key(&stage, path, mongo_pathkey_is_ascending(pathkey));
	}
	if (stage.nkeys > MONGO_MAX_SORT_KEYS)
		return false;
	if (!bson_empty(stage.fields))
	{
		mongo_pipeline_append(&upper->pipeline, "$set", stage.fields);
		stage.cost += MONGO_COST_SET;
	}
	if (pathkeys != NIL)
		mongo_pipeline_append(&upper->pipeline, "$sort", stage.sort);
	*cost = stage.cost;
	return true;
}

/*
 * offers_find: may the scan's own sorted path be all that is needed?  *is_best:
 * it reads nothing twice, as an order in several parts does without an index.
 */
static bool
offers_find(PlannerInfo *root, RelOptInfo *input_rel, bool *is_best)
{
	MongoSortPart parts[MONGO_MAX_SORT_PARTS];
	double		examined_rows;

	*is_best = false;
	if (input_rel->reloptkind != RELOPT_BASEREL || input_rel->fdw_private == NULL ||
		!mongo_order_is_shippable(input_rel, root->sort_pathkeys))
		return false;
	*is_best = mongo_sort_parts(input_rel, root->sort_pathkeys, parts) == 1 ||
		mongo_order_is_indexed(root, input_rel, root->sort_pathkeys, &examined_rows);
	return true;
}

/* leave_to_find: let LIMIT above find the sorted path of the scan. */
static void
leave_to_find(RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	MongoUpperRelation *upper = palloc0(sizeof(MongoUpperRelation));

	upper->stage = UPPERREL_ORDERED;
	upper->input = input_rel;
	upper->by_find = true;
	mongo_keep_planning_state(ordered_rel, upper);
}

/* add_sort_path: a pipeline that ends with $sort; false when there is none. */
static bool
add_sort_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	Query	   *parse = root->parse;
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];
	MongoUpperRelation *upper;
	double		cost;

	if (parse->commandType != CMD_SELECT || parse->rowMarks != NIL || parse->hasTargetSRFs)
		return false;
	upper = mongo_upper_begin(root, input_rel);
	if (upper == NULL || upper->by_find || upper->one_row ||
		!mongo_feature_enabled(mongo_upper_options(upper), MONGO_FEATURE_SORT) ||
		!mongo_upper_gives(upper, target->exprs) ||
		!add_sort(upper, root->sort_pathkeys, &cost))
		return false;

	upper->stage = UPPERREL_ORDERED;
	upper->sorted_rows = upper->rows;
	upper->total_cost += upper->rows * mongo_upper_options(upper)->fdw_tuple_cost * cost +
		mongo_sort_stage_cost(upper->rows, -1);
	upper->startup_cost = upper->total_cost;
	upper->local = mongo_local_sort(root, ordered_rel, upper, target->exprs);
	mongo_upper_add_path(root, ordered_rel, upper, target, root->sort_pathkeys);
	return true;
}

void
mongo_add_ordered_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	bool		is_best;
	bool		has_find = offers_find(root, input_rel, &is_best);

	if (!is_best && add_sort_path(root, input_rel, ordered_rel))
		return;
	if (has_find)
		leave_to_find(input_rel, ordered_rel);
}
