/*-------------------------------------------------------------------------
 *
 * upper_limit.c
 *		LIMIT and OFFSET in MongoDB, with or without ORDER BY below them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cost.h"
#include "local_plan.h"
#include "order.h"
#include "relation.h"
#include "upper.h"

#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"

/* A limit must be the same for the whole scan to be evaluated before it. */
static bool
is_pushable_bound(Node *bound)
{
	return !contain_volatile_functions(bound) && !contain_subplans(bound) &&
		!contain_var_clause(bound);
}

/* bounds_are_shippable: is there a LIMIT or OFFSET that MongoDB can do? */
static bool
bounds_are_shippable(PlannerInfo *root, const FinalPathExtraData *final)
{
	Query	   *parse = root->parse;

	if (parse->commandType != CMD_SELECT || parse->rowMarks != NIL ||
		parse->hasTargetSRFs || parse->limitOption == LIMIT_OPTION_WITH_TIES ||
		!final->limit_needed ||
		!is_pushable_bound(parse->limitCount) ||
		!is_pushable_bound(parse->limitOffset))
		return false;
	/* what has side effects is evaluated for the skipped rows, too */
	return parse->limitOffset == NULL ||
		!contain_volatile_functions((Node *) root->upper_targets[UPPERREL_FINAL]->exprs);
}

/*
 * add_limited_scan: with limit and skip, in the order of an index that looks at so many
 * documents, or sorted (-1); see mongo_estimate_ordered_scan().
 */
static void
add_limited_scan(PlannerInfo *root, RelOptInfo *baserel, RelOptInfo *output_rel,
				 const FinalPathExtraData *final, double indexed_rows)
{
	const MongoRelation *relation = baserel->fdw_private;
	double		rows = baserel->rows;
	Cost		startup_cost;
	Cost		total_cost;

	if (root->sort_pathkeys == NIL)
		mongo_estimate_scan(baserel, relation->remote_rows,
							relation->examined_rows, &startup_cost, &total_cost);
	else
		mongo_estimate_ordered_scan(baserel, root->sort_pathkeys, indexed_rows,
									&startup_cost, &total_cost);
	adjust_limit_rows_costs(&rows, &startup_cost, &total_cost,
							final->offset_est, final->count_est);

	/* never worse than a Limit node, which costs the same otherwise */
	startup_cost *= MONGO_COST_PUSHED_LIMIT;
	total_cost *= MONGO_COST_PUSHED_LIMIT;

	add_path(output_rel, (Path *)
			 mongo_foreign_upper_path(root, baserel,
									  root->upper_targets[UPPERREL_FINAL],
									  rows, startup_cost, total_cost,
									  root->sort_pathkeys,
									  mongo_local_order(root, baserel,
														root->upper_targets[UPPERREL_FINAL]->exprs,
														root->sort_pathkeys, true),
									  list_make1_int(true)));
}

/* add_limited_find: as MongoDB may find the rows, by either of two indexes. */
static void
add_limited_find(PlannerInfo *root, RelOptInfo *baserel, RelOptInfo *output_rel,
				 const FinalPathExtraData *final)
{
	const MongoRelation *relation = baserel->fdw_private;
	MongoSortPart parts[MONGO_MAX_SORT_PARTS];
	List	   *pathkeys = root->sort_pathkeys;
	double		indexed_rows = -1;
	bool		indexed;

	if (!mongo_can_be_exact(baserel) || !bms_is_empty(baserel->lateral_relids))
		return;
	if (pathkeys != NIL &&
		(!mongo_order_is_shippable(baserel, pathkeys) ||
		 (root->parse->limitOffset != NULL &&
		  mongo_sort_parts(baserel, pathkeys, parts) > 1)))
		return;

	indexed = pathkeys != NIL &&
		mongo_order_is_indexed(root, baserel, pathkeys, &indexed_rows);
	if (indexed)
		add_limited_scan(root, baserel, output_rel, final, indexed_rows);
	if (!indexed || relation->examined_rows < indexed_rows)
		add_limited_scan(root, baserel, output_rel, final, -1);
}

/* A pipeline that ends with $skip and $limit. */
static void
add_limited_pipeline(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *output_rel,
					 const FinalPathExtraData *final)
{
	MongoUpperRelation *upper = mongo_upper_begin(root, input_rel);
	PathTarget *target = root->upper_targets[UPPERREL_FINAL];
	double		rows;
	Cost		startup_cost;
	Cost		total_cost;

	if (upper == NULL || upper->one_row || upper->local_quals != NIL ||
		!mongo_upper_gives(upper, target->exprs))
		return;
	rows = upper->rows;
	startup_cost = upper->startup_cost;
	total_cost = upper->total_cost;
	if (upper->sorted_rows > 0)
	{
		/* only so many need be kept while sorting */
		total_cost += mongo_sort_stage_cost(upper->sorted_rows, final->limit_tuples) -
			mongo_sort_stage_cost(upper->sorted_rows, -1);
		startup_cost = total_cost;
	}
	adjust_limit_rows_costs(&rows, &startup_cost, &total_cost,
							final->offset_est, final->count_est);
	upper->stage = UPPERREL_FINAL;
	upper->limited = true;
	upper->local = mongo_local_limit(root, output_rel, upper);
	upper->rows = rows;
	upper->startup_cost = startup_cost * MONGO_COST_PUSHED_LIMIT;
	upper->total_cost = total_cost * MONGO_COST_PUSHED_LIMIT;
	mongo_upper_add_path(root, output_rel, upper, target, root->sort_pathkeys);
}

void
mongo_add_limited_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *output_rel,
					   FinalPathExtraData *final)
{
	MongoUpperRelation *upper = input_rel->fdw_private;

	if (!bounds_are_shippable(root, final))
		return;
	if (IS_UPPER_REL(input_rel) && upper != NULL && upper->by_find)
		add_limited_find(root, upper->input, output_rel, final);
	else if (input_rel->reloptkind == RELOPT_BASEREL && upper != NULL)
		add_limited_find(root, input_rel, output_rel, final);
	else
		add_limited_pipeline(root, input_rel, output_rel, final);
}
