/*-------------------------------------------------------------------------
 *
 * upper.c
 *		Plans what is done above a scan or a join in the same command.
 *
 * That is GROUP BY, DISTINCT, ORDER BY and LIMIT.  Each upper relation of PostgreSQL that MongoDB
 * can compute has a MongoUpperRelation, which is made from the one below by adding stages.
 * PostgreSQL calls mongo_get_foreign_upper_paths() for each step, from the lowest one; costs
 * decide whether MongoDB or PostgreSQL does it.  group.c makes the stages of a group.
 *
 * Groups come first, then sorts, then limits, then the callbacks, and last the planner hook, for
 * OFFSET $1 and for batched_subqueries.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cost.h"
#include "plan_internal.h"
#include "options.h"

#include "access/parallel.h"
#include "catalog/pg_class_d.h"
#include "catalog/pg_type_d.h"
#include "executor/executor.h"
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planner.h"
#include "tcop/pquery.h"
#include "utils/fmgroids.h"
#include "utils/selfuncs.h"

/* -------- What is done above a scan or a join in the same command --------- */

/* Returns the options of the relation at the bottom. */
static const MongoTableOptions *
upper_options(const MongoUpperRelation *upper)
{
	return ((MongoRelation *) upper->input->fdw_private)->options;
}

/*
 * Returns a MongoUpperRelation above 'rel', a foreign table, a join or an upper relation, to
 * which the caller may add stages; NULL if MongoDB alone does not compute 'rel'.
 *
 * The result is palloc'd in the current memory context, and is a copy.
 */
static MongoUpperRelation *
begin_upper(PlannerInfo *root, RelOptInfo *rel)
{
	const MongoUpperRelation *below = IS_UPPER_REL(rel) ? rel->fdw_private : NULL;
	const MongoPipeline *pipeline = below != NULL ? &below->pipeline :
		IS_UPPER_REL(rel) ? NULL : mongo_pipeline_of(root, rel);
	MongoUpperRelation *upper;

	/* execution may have to make the one row of an aggregate over nothing */
	if (pipeline == NULL || (below != NULL && below->one_row))
		return NULL;
	upper = palloc0(sizeof(MongoUpperRelation));
	if (below != NULL)
		*upper = *below;
	else
	{
		upper->input = rel;
		upper->estimate = mongo_estimate_pipeline(rel);
	}
	upper->pipeline = mongo_pipeline_copy(pipeline);
	return upper;
}

/*
 * Adds the foreign scan that 'upper' describes as a path of 'output_rel'.
 *
 * 'upper' becomes the fdw_private of 'output_rel'.  Its estimate does not include yet what is sent
 * and what PostgreSQL tests.
 */
static void
add_upper_path(PlannerInfo *root, RelOptInfo *output_rel,
			   MongoUpperRelation *upper, PathTarget *target, List *pathkeys)
{
	MongoEstimate estimate = upper->estimate;
	QualCost	qual_cost;

	estimate.startup_cost += target->cost.startup;
	estimate.total_cost += target->cost.startup +
		mongo_transfer_cost(upper->input->fdw_private, estimate.rows, target) +
		estimate.rows * cpu_tuple_cost;
	if (upper->local_quals != NIL)
	{
		cost_qual_eval(&qual_cost, upper->local_quals, root);
		estimate.startup_cost += qual_cost.startup;
		estimate.total_cost += qual_cost.startup + qual_cost.per_tuple * estimate.rows;
		estimate.rows = clamp_row_est(estimate.rows *
									  clauselist_selectivity(root, upper->local_quals, 0,
															 JOIN_INNER, NULL));
	}
	estimate.total_cost += target->cost.per_tuple * estimate.rows;

	output_rel->fdw_private = upper;
	add_path(output_rel, mongo_foreign_path(root, output_rel, target, estimate, pathkeys, NULL,
											upper->second, NULL));
}

/* Tells whether anything in the expression must come from MongoDB and does not; a tree walker. */
static bool
lacks_value(Node *node, MongoUpperRelation *upper)
{
	MongoColumns *columns = upper->pipeline.translation.columns;
	ListCell   *cell;
	MongoField	field;

	if (node == NULL)
		return false;
	foreach(cell, upper->outputs)
	{
		if (equal(((MongoOutput *) lfirst(cell))->expression, node))
			return false;
	}
	if (IsA(node, Var))
		return columns == NULL || !mongo_field_of_node(columns, node, &field);
	if (IsA(node, Aggref) || IsA(node, PlaceHolderVar) || IsA(node, GroupingFunc))
		return true;
	return expression_tree_walker(node, lacks_value, upper);
}

/*
 * Tells whether all of these expressions can be computed from the columns or outputs that
 * 'upper' has.
 */
static bool
has_values(const MongoUpperRelation *upper, List *expressions)
{
	return !lacks_value((Node *) expressions, unconstify(MongoUpperRelation *, upper));
}

/*-------------------------------------------------------------------------
 * GROUP BY, HAVING, aggregates and DISTINCT in MongoDB.
 *
 * $group is not always faster than sending the documents and having PostgreSQL
 * group them, so the costs decide.
 *-------------------------------------------------------------------------
 */

static MongoGroup *
begin_group(MongoUpperRelation *upper)
{
	MongoGroup *group = palloc0(sizeof(MongoGroup));

	group->scope.translation = &upper->pipeline.translation;
	group->scope.scale = true;
	group->float_sums = upper_options(upper)->float_sums_remote &&
		upper->input->reloptkind == RELOPT_BASEREL;
	group->results = mongo_bson_create();
	return group;
}

/* Adds the target's expressions in GROUP BY; returns false if one is not shippable. */
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

/* Adds all aggregates in the expressions; returns false if one is not shippable. */
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

/*
 * Tells whether the $group by a single field goes from key to key of an index, which begins with
 * the field and tests all conditions as well (DISTINCT_SCAN).
 *
 * https://www.mongodb.com/docs/manual/reference/operator/aggregation/group/
 */
static bool
walks_index(const MongoGroup *group, const MongoUpperRelation *upper)
{
	Node	   *key = mongo_group_lone_key(group);
	MongoField	field;

	/*
	 * equal values of numeric may be one key of the index only as MongoDB
	 * compares them
	 */
	if (key == NULL || upper->grouped ||
		(group->distinct != NULL && group->distinct_value.type == NUMERICOID) ||
		mongo_column_of_node(group->scope.translation->columns, key, &field) == NULL ||
		field.type_mismatch != MONGO_TYPE_MISMATCH_ERROR)
		return false;
	if (bson_empty(upper->pipeline.stages))
		return (field.index_uses & MONGO_INDEX_ORDER) != 0;
	return upper->input->reloptkind == RELOPT_BASEREL && !field.unindexed &&
		mongo_index_walks(upper->input, field.path);
}

/*
 * Tells whether the command count may do what the group does.  It has less to prepare: over a few
 * index keys it takes two thirds of the time.
 *
 * Without a condition the command counts by the collection's metadata, which need not be exact,
 * and so is used only under count_from_metadata.
 */
static bool
may_count(const MongoGroup *group, const MongoUpperRelation *upper)
{
	const MongoRelation *relation = upper->input->fdw_private;
	const MongoPipeline *pipeline = &upper->pipeline;
	const Aggref *aggregate;
	const char *level;

	if (group->keys != NIL || list_length(group->outputs) != 1)
		return false;
	aggregate = (const Aggref *) ((MongoOutput *) linitial(group->outputs))->expression;
	/* the command has no "let", and takes no read concern "snapshot" */
	if (aggregate->aggfnoid != F_COUNT_ || aggregate->aggfilter != NULL ||
		!mongo_feature_enabled(relation->options, MONGO_FEATURE_COUNT) ||
		pipeline->translation.variables != NIL ||
		(pipeline->only_match == NULL &&
		 (pipeline->nstages > 0 || !relation->options->count_from_metadata)))
		return false;
	level = mongo_read_concern(GetForeignServer(relation->serverid));
	return level == NULL || pg_strcasecmp(level, "snapshot") != 0;
}

/* Appends a $count, which returns the same as the command count. */
static void
append_count(const MongoGroup *group, MongoPipeline *pipeline)
{
	const MongoOutput *output = linitial(group->outputs);

	mongo_append_condition(pipeline->stages, psprintf("%d", pipeline->nstages++), "$count",
						   mongo_utf8(MONGO_COUNT_FIELD));
	output->column->path = MONGO_COUNT_FIELD;
	pipeline->reads_all = true;
	pipeline->translation.columns = NULL;
}

/* Appends the group's stages, all of which are translated, and sets the estimate. */
static void
add_stages(PlannerInfo *root, MongoGroup *group, MongoUpperRelation *upper)
{
	const MongoRelation *relation = upper->input->fdw_private;
	MongoEstimate *estimate = &upper->estimate;
	List	   *keys = NIL;
	double		groups;
	double		first_groups;
	bool		walks = walks_index(group, upper);
	ListCell   *cell;

	foreach(cell, group->keys)
		keys = lappend(keys, ((MongoGroupKey *) lfirst(cell))->expression);
	groups = keys == NIL ? 1 :
		estimate_num_groups(root, keys, estimate->rows, NULL, NULL);
	if (group->distinct != NULL)
		keys = lappend(keys, group->distinct);
	first_groups = keys == NIL ? 1 :
		estimate_num_groups(root, keys, estimate->rows, NULL, NULL);

	if (walks)
		estimate->total_cost = mongo_command_cost(relation) +
			first_groups * MONGO_COST_UNIT * MONGO_COST_NEXT_KEY;
	else
		estimate->total_cost += estimate->rows * MONGO_COST_UNIT *
			mongo_group_cost(group, first_groups);
	if (!walks && !upper->grouped && upper->input->reloptkind == RELOPT_BASEREL &&
		mongo_index_covers(upper->input))
		estimate->total_cost += relation->examined_rows * MONGO_COST_UNIT * MONGO_COST_COVERED -
			mongo_examined_cost(upper->input, relation->examined_rows);
	if (group->distinct != NULL)
		estimate->total_cost += first_groups * MONGO_COST_UNIT * mongo_group_cost(group, groups);
	if (!upper->counts && !upper->grouped && relation->join == NULL &&
		(relation->unwinds || !mongo_is_pipeline_table(relation->options)))
		estimate->total_cost += MONGO_COST_PIPELINE * relation->options->fdw_startup_cost;
	estimate->startup_cost = estimate->total_cost;

	if (upper->counts)
		append_count(group, &upper->pipeline);
	else
		mongo_group_append(group, walks, first_groups * MONGO_COST_MERGE_FACTOR < estimate->rows,
						   &upper->pipeline);
	upper->outputs = group->outputs;
	estimate->rows = groups;
	upper->grouped = true;
}

/*
 * Appends a $match for each exact condition; PostgreSQL tests the others.  It also tests all on
 * aggregates without GROUP BY, whose one row execution may have to make.
 */
static void
add_having(PlannerInfo *root, MongoUpperRelation *upper, List *having)
{
	List	   *shipped = NIL;
	ListCell   *cell;

	foreach(cell, having)
	{
		bson_t	   *match = mongo_bson_create();
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
	upper->estimate.rows = clamp_row_est(upper->estimate.rows *
										 clauselist_selectivity(root, shipped, 0, JOIN_INNER,
																NULL));
}

/* Tells whether a $group can follow the stages so far. */
static bool
may_group(const MongoUpperRelation *upper)
{
	return upper != NULL && upper->local_quals == NIL && !upper->limited &&
		mongo_feature_enabled(upper_options(upper), MONGO_FEATURE_GROUP);
}

static void
add_grouped_path(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
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
	upper = begin_upper(root, input_rel);
	if (!may_group(upper))
		return;

	group = begin_group(upper);
	if (!add_keys(group, parse, target) ||
		!add_aggregates(group, target->exprs) ||
		!add_aggregates(group, having))
		return;
	upper->one_row = group->keys == NIL;
	upper->counts = having == NIL && may_count(group, upper);
	add_stages(root, group, upper);
	if (upper->counts && upper->pipeline.only_match == NULL)
		upper->estimate.startup_cost = upper->estimate.total_cost =
			mongo_command_cost(upper->input->fdw_private);
	add_having(root, upper, having);
	if (!has_values(upper, target->exprs) ||
		!has_values(upper, upper->local_quals))
		return;
	if (stage == UPPERREL_GROUP_AGG)
		upper->second = mongo_second_aggregate(root, grouped_rel, upper, extra);
	add_upper_path(root, grouped_rel, upper, target, NIL);
}

/* Adds all that is selected as keys; returns false if one is not shippable. */
static bool
add_distinct_keys(MongoGroup *group, PlannerInfo *root)
{
	foreach_node(SortGroupClause, clause, root->parse->distinctClause)
	{
		Node	   *key = get_sortgroupclause_expr(clause, root->processed_tlist);

		if (!mongo_group_add_key(group, (Expr *) key))
			return false;
	}
	return true;
}

static void
add_distinct_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *distinct_rel)
{
	Query	   *parse = root->parse;
	PathTarget *target = root->upper_targets[UPPERREL_DISTINCT];
	MongoUpperRelation *upper;
	MongoGroup *group;

	if (parse->hasDistinctOn || parse->hasTargetSRFs)
		return;
	upper = begin_upper(root, input_rel);
	if (!may_group(upper))
		return;
	group = begin_group(upper);
	if (!add_distinct_keys(group, root))
		return;
	upper->second = NULL;
	add_stages(root, group, upper);
	if (!has_values(upper, target->exprs))
		return;
	add_upper_path(root, distinct_rel, upper, target, NIL);
}

/*-------------------------------------------------------------------------
 * ORDER BY as a $sort stage.
 *
 * It is used above groups and joins, for expressions, and if an index could not have the order of
 * a scan (order.c) anyway.
 *-------------------------------------------------------------------------
 */

/* The $sort in the making, and the $set before it. */
typedef struct SortStage
{
	bson_t	   *fields;			/* of the $set */
	bson_t	   *sort;
	MongoColumns *columns;		/* whose fields are named otherwise, or NULL */
	int			nkeys;			/* of the $sort */
	double		cost;			/* of the expressions, for each row */
} SortStage;

static void
append_sort_key(SortStage *stage, const char *path, bool ascending)
{
	bson_iter_t earlier;

	/* the same field once more adds nothing to the order */
	if (bson_iter_init_find(&earlier, stage->sort, path))
		return;
	mongo_append(stage->sort, path, mongo_int32(ascending ? 1 : -1));
	stage->nkeys++;
}

/* Returns the path of a field with the value, which the $set computes unless it is a field. */
static const char *
value_path(SortStage *stage, const MongoValue *value, int number)
{
	const char *path = mongo_path_of_expression(value->expression);

	if (path != NULL)
		return path;
	path = mongo_unused_field(stage->columns, psprintf("s%d", number));
	mongo_append_expression(stage->fields, path, value->expression);
	stage->cost += mongo_expression_cost(value->expression);
	return path;
}

/* Appends a rank for NULLs and NaNs that MongoDB has in another place. */
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
	path = mongo_unused_field(stage->columns, psprintf("sr%d", number));
	mongo_append_expression(stage->fields, path, rank);
	stage->cost += mongo_expression_cost(rank);
	append_sort_key(stage, path, true);
}

/* Finds a value of the pathkey's class that MongoDB can compute; returns false if there is none. */
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
			!has_values(upper, list_make1(node)))
			continue;
		if (mongo_default_opfamily(exprType(node)) == pathkey->pk_opfamily &&
			mongo_group_value(&scope, node, true, value))
			return true;
	}
	return false;
}

/* Appends the stages; returns false if a key has no translation. */
static bool
add_sort(MongoUpperRelation *upper, List *pathkeys, double *cost)
{
	SortStage	stage = {
		.fields = mongo_bson_create(),
		.sort = mongo_bson_create(),
		.columns = upper->pipeline.translation.columns
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
		sorted = value;

		/*
		 * where other keys follow, an undefined, which is sorted before a
		 * null, is made one
		 */
		if (value.nullable && value.raw && !upper->grouped && lnext(pathkeys, cell) != NULL)
			sorted.expression = mongo_expand_template("{$ifNull: [@1, null]}", &value, 1);
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

/* Tells whether a scan in this order reads nothing twice, as several parts without an index do. */
static bool
has_sorted_scan(PlannerInfo *root, RelOptInfo *input_rel)
{
	MongoOrder	order;
	double		examined_rows;

	return input_rel->reloptkind == RELOPT_BASEREL && input_rel->fdw_private != NULL &&
		mongo_find_order(input_rel, root->sort_pathkeys, &order) &&
		(order.nparts == 1 || mongo_order_is_indexed(root, input_rel, &order, &examined_rows));
}

/* Adds a path that sorts by a $sort, if that is shippable and not better left to a scan. */
static void
add_ordered_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	Query	   *parse = root->parse;
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];
	MongoUpperRelation *upper;
	MongoEstimate *estimate;
	double		cost;

	if (parse->commandType != CMD_SELECT || parse->rowMarks != NIL || parse->hasTargetSRFs ||
		has_sorted_scan(root, input_rel))
		return;
	upper = begin_upper(root, input_rel);
	if (upper == NULL ||
		!mongo_feature_enabled(upper_options(upper), MONGO_FEATURE_SORT) ||
		!has_values(upper, target->exprs) ||
		!add_sort(upper, root->sort_pathkeys, &cost))
		return;

	estimate = &upper->estimate;
	upper->sorted_rows = estimate->rows;
	estimate->total_cost += estimate->rows * MONGO_COST_UNIT * cost +
		mongo_sort_stage_cost(estimate->rows, -1);
	estimate->startup_cost = estimate->total_cost;
	upper->second = upper->grouped ?
		mongo_second_above(root, ordered_rel, upper->second, root->sort_pathkeys, false) :
		mongo_second_order(root, upper->input, target->exprs, root->sort_pathkeys, false);
	add_upper_path(root, ordered_rel, upper, target, root->sort_pathkeys);
}

/* ---- LIMIT and OFFSET in MongoDB, with or without ORDER BY below them ---- */

/* Tells whether a limit is the same for the whole scan, so that it can be evaluated before it. */
static bool
is_constant_in_scan(Node *expression)
{
	return !contain_volatile_functions(expression) && !contain_subplans(expression) &&
		!contain_var_clause(expression);
}

/* Tells whether there is a LIMIT or OFFSET that MongoDB can do. */
static bool
limits_are_shippable(PlannerInfo *root, const FinalPathExtraData *final)
{
	Query	   *parse = root->parse;

	if (parse->commandType != CMD_SELECT || parse->rowMarks != NIL ||
		parse->hasTargetSRFs || parse->limitOption == LIMIT_OPTION_WITH_TIES ||
		!final->limit_needed ||
		!is_constant_in_scan(parse->limitCount) ||
		!is_constant_in_scan(parse->limitOffset))
		return false;
	/* what has side effects is evaluated for the skipped rows, too */
	return parse->limitOffset == NULL ||
		!contain_volatile_functions((Node *) root->upper_targets[UPPERREL_FINAL]->exprs);
}

/*
 * Lowers the estimate to a limited one, never worse than a Limit node, which would cost the same.
 */
static void
limit_estimate(MongoEstimate *estimate, const FinalPathExtraData *final)
{
	adjust_limit_rows_costs(&estimate->rows, &estimate->startup_cost, &estimate->total_cost,
							final->offset_est, final->count_est);
	estimate->startup_cost *= MONGO_COST_PUSHED_LIMIT;
	estimate->total_cost *= MONGO_COST_PUSHED_LIMIT;
}

static void
add_limited_scan(PlannerInfo *root, RelOptInfo *baserel, RelOptInfo *output_rel,
				 MongoEstimate estimate, const FinalPathExtraData *final)
{
	PathTarget *target = root->upper_targets[UPPERREL_FINAL];

	limit_estimate(&estimate, final);
	add_path(output_rel, mongo_foreign_path(root, baserel, target, estimate, root->sort_pathkeys,
											NULL, mongo_second_order(root, baserel, target->exprs,
																	 root->sort_pathkeys, true),
											&(MongoPathDetails) {.limited = true}));
}

/* Adds scans with limit and skip, by either of the two indexes that MongoDB may choose. */
static void
add_limited_scans(PlannerInfo *root, RelOptInfo *baserel, RelOptInfo *output_rel,
				  const FinalPathExtraData *final)
{
	const MongoRelation *relation = baserel->fdw_private;
	List	   *pathkeys = root->sort_pathkeys;
	double		indexed_rows;
	bool		indexed;
	MongoOrder	order;

	if (!bms_is_empty(baserel->lateral_relids) ||
		(!relation->all_exact && mongo_exact_pipeline(baserel) == NULL))
		return;
	if (pathkeys == NIL)
		add_limited_scan(root, baserel, output_rel, mongo_estimate_plain_scan(baserel), final);
	/* each command for a part of the order would skip rows */
	if (!mongo_find_order(baserel, pathkeys, &order) ||
		(order.nparts > 1 && root->parse->limitOffset != NULL))
		return;
	indexed = mongo_order_is_indexed(root, baserel, &order, &indexed_rows);
	if (indexed)
		add_limited_scan(root, baserel, output_rel,
						 mongo_estimate_ordered_scan(root, baserel, &order, indexed_rows), final);
	if (!indexed || relation->examined_rows < indexed_rows)
		add_limited_scan(root, baserel, output_rel,
						 mongo_estimate_ordered_scan(root, baserel, &order, -1), final);
}

/* Returns the foreign table whose rows the relation returns one by one, in any order; or NULL. */
static RelOptInfo *
table_below(RelOptInfo *rel)
{
	foreach_ptr(const Path, path, rel->pathlist)
	{
		while (IsA(path, ProjectionPath) || IsA(path, SortPath) || IsA(path, IncrementalSortPath))
			path = IsA(path, ProjectionPath) ? ((const ProjectionPath *) path)->subpath :
				((const SortPath *) path)->subpath;
		if (IsA(path, ForeignPath) && path->parent->reloptkind == RELOPT_BASEREL)
			return path->parent;
	}
	return NULL;
}

static void
add_limited_pipeline(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *output_rel,
					 const FinalPathExtraData *final)
{
	MongoUpperRelation *upper = begin_upper(root, input_rel);
	PathTarget *target = root->upper_targets[UPPERREL_FINAL];

	if (upper == NULL || upper->local_quals != NIL ||
		!has_values(upper, target->exprs))
		return;
	if (upper->sorted_rows > 0)
	{
		/* only so many need be kept while sorting */
		upper->estimate.total_cost += mongo_sort_stage_cost(upper->sorted_rows, final->limit_tuples) -
			mongo_sort_stage_cost(upper->sorted_rows, -1);
		upper->estimate.startup_cost = upper->estimate.total_cost;
	}
	limit_estimate(&upper->estimate, final);
	upper->limited = true;
	upper->second = mongo_second_above(root, output_rel, upper->second, NIL, true);
	add_upper_path(root, output_rel, upper, target, root->sort_pathkeys);
}

static void
add_limited_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *output_rel,
				 FinalPathExtraData *final)
{
	RelOptInfo *baserel;

	/* without LIMIT, add_path() may have freed paths of input_rel */
	if (!limits_are_shippable(root, final))
		return;
	baserel = table_below(input_rel);
	if (input_rel->reloptkind != RELOPT_BASEREL)
		add_limited_pipeline(root, input_rel, output_rel, final);
	if (baserel != NULL)
		add_limited_scans(root, baserel, output_rel, final);
}

/* -------------------------- PostgreSQL's callbacks -------------------------- */

/*
 * mongo_get_foreign_upper_paths
 *		Adds a path that computes this step in MongoDB, if that is exact; a callback of PostgreSQL.
 */
void
mongo_get_foreign_upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input_rel,
							  RelOptInfo *output_rel, void *extra)
{
	MemoryContext old_context;

	if (!mongo_enable_pushdown || output_rel->fdw_private != NULL)
		return;
	old_context = mongo_enter_planning(output_rel);
	switch (stage)
	{
		case UPPERREL_GROUP_AGG:
		case UPPERREL_PARTIAL_GROUP_AGG:
			add_grouped_path(root, stage, input_rel, output_rel, extra);
			break;
		case UPPERREL_DISTINCT:
			add_distinct_path(root, input_rel, output_rel);
			break;
		case UPPERREL_ORDERED:
			add_ordered_path(root, input_rel, output_rel);
			break;
		case UPPERREL_FINAL:
			add_limited_path(root, input_rel, output_rel, extra);
			break;
		default:
			break;
	}
	mongo_keep_out_of_workers(output_rel);
	MemoryContextSwitchTo(old_context);
}

/*
 * mongo_is_foreign_path_async_capable
 *		Tells whether the path may run asynchronously, by the option async_capable; a callback of
 *		PostgreSQL.
 *
 * Scans of one table may, and groups above it, over which an Append of partial or partitionwise
 * aggregates is.
 */
bool
mongo_is_foreign_path_async_capable(ForeignPath *path)
{
	RelOptInfo *rel = path->path.parent;

	if (IS_UPPER_REL(rel))
		return upper_options(rel->fdw_private)->async_capable;
	return IS_SIMPLE_REL(rel) &&
		((MongoRelation *) rel->fdw_private)->options->async_capable;
}

/* ------------ Subqueries with OFFSET $1, and batched subqueries ----------- */

static planner_hook_type next_planner = NULL;
static ExecutorStart_hook_type next_start = NULL;
static const CustomScanMethods *batch_methods = NULL;

/* Whether the planner_hook has been called, or was too late once. */
static bool has_planned = false;

/* Tells whether it is computed of parameters, and 0 with their values. */
static bool
is_zero_parameter(Node *offset, ParamListInfo values)
{
	PlannerGlobal glob = {.type = T_PlannerGlobal, .boundParams = values};
	PlannerInfo root = {.type = T_PlannerInfo, .glob = &glob};
	const Const *value = (const Const *) eval_const_expressions(&root, offset);

	return !IsA(offset, Const) && IsA(value, Const) && !value->constisnull &&
		DatumGetInt64(value->constvalue) == 0;
}

/*
 * Removes OFFSET $1 of subqueries over our tables if the parameter is 0, and has the plan's
 * correlated subqueries batched; the planner_hook.
 *
 * PostgreSQL plans a subquery with OFFSET by itself, so that an aggregate above it could not run
 * in MongoDB.  A constant 0 stays, as that is how one asks for such a plan.
 */
static PlannedStmt *
plan_query(Query *query, const char *text, int options, ParamListInfo values
		   MONGO_EXPLAIN_PARAMETER)
{
	PlannedStmt *statement;
	ListCell   *cell;

	has_planned = true;
	foreach(cell, query->rtable)
	{
		Query	   *subquery = lfirst_node(RangeTblEntry, cell)->subquery;
		const RangeTblEntry *table = subquery == NULL || subquery->rtable == NIL ? NULL :
			linitial(subquery->rtable);

		if (table != NULL && subquery->limitOffset != NULL && subquery->limitCount == NULL &&
			mongo_enable_pushdown && values != NULL && table->relkind == RELKIND_FOREIGN_TABLE &&
			GetFdwRoutineByRelId(table->relid)->GetForeignRelSize == mongo_get_foreign_rel_size &&
			is_zero_parameter(subquery->limitOffset, values))
			subquery->limitOffset = NULL;
	}
	statement = next_planner != NULL ? next_planner(query, text, options, values MONGO_EXPLAIN_ARGUMENT) :
		standard_planner(query, text, options, values MONGO_EXPLAIN_ARGUMENT);
	mongo_batch_subqueries(statement, options, batch_methods);
	return statement;
}

/*
 * Has the correlated subqueries batched of the statement whose planning has loaded this library,
 * since that was too late for the planner_hook; the ExecutorStart_hook.
 *
 * Changes the plan where it is, as it may be kept.
 */
static void
start_execution(QueryDesc *query, int flags)
{
	PlannedStmt *statement = query->plannedstmt;

	if (!has_planned && !IsParallelWorker())
	{
		MemoryContext old_context = MemoryContextSwitchTo(GetMemoryChunkContext(statement));
		bool		is_cursor = ActivePortal != NULL && (ActivePortal->cursorOptions & CURSOR_OPT_FAST_PLAN) != 0;

		mongo_batch_subqueries(statement, (is_cursor ? CURSOR_OPT_FAST_PLAN : 0) |
							   ((flags & EXEC_FLAG_BACKWARD) != 0 ? CURSOR_OPT_SCROLL : 0), batch_methods);
		MemoryContextSwitchTo(old_context);
	}
	has_planned = true;
	if (next_start != NULL)
		next_start(query, flags);
	else
		standard_ExecutorStart(query, flags);
}

/*
 * mongo_install_planner
 *		Makes the planner treat subqueries with "OFFSET $1" as those without, if the parameter is
 *		0, and batch correlated subqueries, executed by these methods.
 *
 * Called once, by _PG_init().
 */
void
mongo_install_planner(const CustomScanMethods *methods)
{
	batch_methods = methods;
	RegisterCustomScanMethods(methods);
	next_planner = planner_hook;
	planner_hook = plan_query;
	if (process_shared_preload_libraries_in_progress)
		return;
	next_start = ExecutorStart_hook;
	ExecutorStart_hook = start_execution;
}
