/*-------------------------------------------------------------------------
 *
 * dispatch.c
 *		PostgreSQL's callbacks whose answer depends on the kind of relation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan.h"

#include "parallel.h"
#include "foreign_scan.h"
#include "planning_state.h"
#include "relation.h"
#include "settings.h"
#include "upper.h"

void
mongo_get_foreign_upper_paths(PlannerInfo *root, UpperRelationKind stage,
							  RelOptInfo *input_rel, RelOptInfo *output_rel,
							  void *extra)
{
	MemoryContext old_context;

	if (!mongo_enable_pushdown || output_rel->fdw_private != NULL)
		return;
	old_context = mongo_enter_planning(output_rel);
	mongo_check_planning_state(input_rel);
	switch (stage)
	{
		case UPPERREL_GROUP_AGG:
		case UPPERREL_PARTIAL_GROUP_AGG:
			mongo_add_grouped_path(root, stage, input_rel, output_rel, extra);
			break;
		case UPPERREL_DISTINCT:
			mongo_add_distinct_path(root, input_rel, output_rel);
			break;
		case UPPERREL_ORDERED:
			mongo_add_ordered_path(root, input_rel, output_rel);
			break;
		case UPPERREL_FINAL:
			mongo_add_limited_path(root, input_rel, output_rel, extra);
			break;
		default:
			break;
	}
	mongo_keep_out_of_workers(output_rel);
	MemoryContextSwitchTo(old_context);
}

ForeignScan *
mongo_get_foreign_plan(PlannerInfo *root, RelOptInfo *foreignrel,
					   Oid foreigntableid pg_attribute_unused(),
					   ForeignPath *best_path, List *tlist,
					   List *scan_clauses, Plan *outer_plan)
{
	mongo_check_planning_state(foreignrel);
	if (IS_UPPER_REL(foreignrel))
		return mongo_get_upper_plan(root, foreignrel, best_path, tlist, outer_plan);
	if (IS_JOIN_REL(foreignrel))
		return mongo_get_join_plan(root, foreignrel, tlist, outer_plan);
	return mongo_get_table_plan(root, foreignrel, best_path, tlist, scan_clauses, outer_plan);
}

/*
 * Of one table, or of what is above it in the same command: the groups that an
 * Append of partial or partitionwise aggregates is over.
 */
bool
mongo_is_foreign_path_async_capable(ForeignPath *path)
{
	RelOptInfo *rel = path->path.parent;

	if (IS_UPPER_REL(rel))
		return mongo_upper_options(rel->fdw_private)->async_capable;
	return IS_SIMPLE_REL(rel) &&
		((MongoRelation *) rel->fdw_private)->options->async_capable;
}
