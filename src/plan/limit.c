/*-------------------------------------------------------------------------
 *
 * limit.c
 *		LIMIT and OFFSET in MongoDB.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

/* A limit must be the same for the whole scan to be evaluated before it. */
static bool
is_pushable_bound(Node *bound)
{
	return !contain_volatile_functions(bound) && !contain_subplans(bound) &&
		!contain_var_clause(bound);
}

/*
 * mongo_get_foreign_upper_paths
 *		Offer a scan that stops by itself, where nothing but LIMIT is above it.
 *
 * Only when every restriction is exact on the other side: a row that is
 * dropped here would otherwise be missing at the end.
 */
void
mongo_get_foreign_upper_paths(PlannerInfo *root, UpperRelationKind stage,
							  RelOptInfo *input_rel, RelOptInfo *output_rel,
							  void *extra)
{
	FinalPathExtraData *final = extra;
	Query	   *parse = root->parse;
	MongoRelation *relation = input_rel->fdw_private;
	double		rows;
	Cost		startup_cost;
	Cost		total_cost;
	double		share;

	if (stage != UPPERREL_FINAL || !mongo_enable_pushdown ||
		relation == NULL || !IS_SIMPLE_REL(input_rel) ||
		input_rel->reloptkind != RELOPT_BASEREL)
		return;
	if (parse->commandType != CMD_SELECT || parse->rowMarks != NIL ||
		parse->hasTargetSRFs || parse->limitOption == LIMIT_OPTION_WITH_TIES ||
		!final->limit_needed || root->sort_pathkeys != NIL)
		return;
	if (!relation->all_exact || !bms_is_empty(input_rel->lateral_relids) ||
		!is_pushable_bound(parse->limitCount) ||
		!is_pushable_bound(parse->limitOffset))
		return;

	/* only what LIMIT lets through is fetched, but OFFSET is skipped for us */
	mongo_estimate_scan(root, input_rel, relation->remote_rows,
						relation->examined_rows, &startup_cost, &total_cost);
	rows = input_rel->rows;
	adjust_limit_rows_costs(&rows, &startup_cost, &total_cost,
							final->offset_est, final->count_est);
	share = input_rel->rows > 0 ? rows / input_rel->rows : 1;
	total_cost = Min(total_cost,
					 startup_cost + share * (total_cost - startup_cost) + 1);

	add_path(output_rel, (Path *)
			 create_foreign_upper_path(root, input_rel,
									   root->upper_targets[UPPERREL_FINAL],
									   rows, startup_cost, total_cost, NIL,
									   NULL, list_make1_int(true)));
}
