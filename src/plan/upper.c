/*-------------------------------------------------------------------------
 *
 * upper.c
 *		What can be done above a scan in the same command, by stage.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan.h"
#include "plan_parallel.h"
#include "plan_upper.h"

/*
 * scan_below gives the foreign table's scan that the final relation is on:
 * directly, or under an ORDER BY that the scan can do as well.
 */
static RelOptInfo *
scan_below(RelOptInfo *input_rel)
{
	if (input_rel->reloptkind == RELOPT_UPPER_REL)
	{
		MongoUpperRelation *upper = input_rel->fdw_private;

		return upper != NULL && upper->stage == UPPERREL_ORDERED ?
			upper->baserel : NULL;
	}
	if (input_rel->reloptkind == RELOPT_BASEREL && input_rel->fdw_private != NULL)
		return input_rel;
	return NULL;
}

/*
 * mongo_get_foreign_upper_paths
 *		Offer to do what is above a foreign table's scan in the same command.
 */
void
mongo_get_foreign_upper_paths(PlannerInfo *root, UpperRelationKind stage,
							  RelOptInfo *input_rel, RelOptInfo *output_rel,
							  void *extra)
{
	RelOptInfo *baserel = scan_below(input_rel);

	if (!mongo_enable_pushdown || baserel == NULL)
		return;
	if (stage == UPPERREL_GROUP_AGG)
		mongo_add_aggregate_path(root, baserel, output_rel);
	else if (stage == UPPERREL_ORDERED && input_rel == baserel)
	{
		/* the scan's own sorted path is there already; note what is below */
		MongoUpperRelation *upper = palloc0(sizeof(MongoUpperRelation));

		upper->stage = UPPERREL_ORDERED;
		upper->baserel = baserel;
		output_rel->fdw_private = upper;
	}
	else if (stage == UPPERREL_FINAL)
		mongo_add_limited_path(root, baserel, output_rel, extra);
	mongo_keep_out_of_workers(output_rel);
}
