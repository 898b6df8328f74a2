/*-------------------------------------------------------------------------
 *
 * limit.c
 *		LIMIT and OFFSET in MongoDB, with or without ORDER BY below them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan.h"
#include "plan_order.h"
#include "plan_upper.h"

#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"

/* Enough less for add_path() to see a difference. */
#define PUSHED_LIMIT_COST_SHARE	0.95

/* A limit must be the same for the whole scan to be evaluated before it. */
static bool
is_pushable_bound(Node *bound)
{
	return !contain_volatile_functions(bound) && !contain_subplans(bound) &&
		!contain_var_clause(bound);
}

void
mongo_add_limited_path(PlannerInfo *root, RelOptInfo *baserel,
					   RelOptInfo *output_rel, FinalPathExtraData *final)
{
	Query	   *parse = root->parse;
	MongoRelation *relation = baserel->fdw_private;
	MongoSortPart parts[MONGO_MAX_SORT_PARTS];
	bool		indexed = false;
	double		rows = baserel->rows;
	Cost		startup_cost;
	Cost		total_cost;

	if (parse->commandType != CMD_SELECT || parse->rowMarks != NIL ||
		parse->hasTargetSRFs || parse->limitOption == LIMIT_OPTION_WITH_TIES ||
		!final->limit_needed)
		return;
	if (!mongo_can_be_exact(baserel) || !bms_is_empty(baserel->lateral_relids) ||
		!is_pushable_bound(parse->limitCount) ||
		!is_pushable_bound(parse->limitOffset))
		return;
	/* what has side effects is evaluated for the skipped rows, too */
	if (parse->limitOffset != NULL &&
		contain_volatile_functions((Node *) root->upper_targets[UPPERREL_FINAL]->exprs))
		return;
	if (root->sort_pathkeys != NIL &&
		(!mongo_order_is_shippable(baserel, root->sort_pathkeys, &indexed) ||
		 (parse->limitOffset != NULL &&
		  mongo_sort_parts(baserel, root->sort_pathkeys, parts) > 1)))
		return;

	mongo_estimate_scan(root, baserel, relation->remote_rows,
						relation->examined_rows, &startup_cost, &total_cost);
	if (root->sort_pathkeys != NIL && !indexed)
	{
		Cost		sort_cost = mongo_sort_cost(baserel, relation->remote_rows, false);

		startup_cost += sort_cost;
		total_cost += sort_cost;
	}
	adjust_limit_rows_costs(&rows, &startup_cost, &total_cost,
							final->offset_est, final->count_est);

	/* never worse than a Limit node here, which costs the same otherwise */
	startup_cost *= PUSHED_LIMIT_COST_SHARE;
	total_cost *= PUSHED_LIMIT_COST_SHARE;

	add_path(output_rel, (Path *)
			 create_foreign_upper_path(root, baserel,
									   root->upper_targets[UPPERREL_FINAL],
									   rows, startup_cost, total_cost,
									   root->sort_pathkeys, NULL,
									   list_make1_int(true)));
}
