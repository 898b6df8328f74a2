/*-------------------------------------------------------------------------
 *
 * parallel.c
 *		Scans that several processes share, each reading ranges of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "parallel.h"

#include "cost.h"
#include "derived.h"
#include "encoding.h"
#include "feature.h"
#include "order.h"
#include "plan.h"
#include "relation.h"
#include "settings.h"

#include "access/xact.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

bool
mongo_is_foreign_scan_parallel_safe(PlannerInfo *root pg_attribute_unused(),
									RelOptInfo *rel pg_attribute_unused(),
									RangeTblEntry *rte pg_attribute_unused())
{
	return !IsolationUsesXactSnapshot();
}

void
mongo_keep_out_of_workers(RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->pathlist)
	{
		Path	   *path = lfirst(cell);

		if (IsA(path, ForeignPath) && path->parent == rel)
			path->parallel_safe = false;
	}
}

/* estimated_pages: as large as what it holds, in blocks. */
static double
estimated_pages(const RelOptInfo *baserel)
{
	return baserel->pages > 0 ? baserel->pages :
		baserel->tuples * baserel->reltarget->width / BLCKSZ;
}

/* participants: as get_parallel_divisor() of costsize.c has it. */
static double
participants(int workers)
{
	return workers + (parallel_leader_participation ? Max(0, 1 - 0.3 * workers) : 0);
}

static void
add_path_with_order(PlannerInfo *root, RelOptInfo *baserel, int workers,
					List *pathkeys)
{
	ForeignPath *path;
	Cost		startup_cost;
	Cost		total_cost;

	mongo_estimate_shared_scan(baserel, participants(workers), &startup_cost, &total_cost);
	path = mongo_foreignscan_path(root, baserel, NULL,
								  clamp_row_est(baserel->rows / participants(workers)),
								  startup_cost, total_cost, pathkeys,
								  NULL, NULL, NIL);
	path->path.parallel_aware = true;
	path->path.parallel_workers = workers;
	add_partial_path(baserel, (Path *) path);
}

/*
 * order_follows_ranges: who reads ranges of the sort key, in its order and each
 * in order, reads everything in order.
 */
static bool
order_follows_ranges(RelOptInfo *baserel, List *pathkeys)
{
	MongoRelation *relation = baserel->fdw_private;
	MongoSortPart parts[MONGO_MAX_SORT_PARTS];

	return list_length(pathkeys) == 1 &&
		mongo_order_is_shippable(baserel, pathkeys) &&
		mongo_sort_parts(baserel, pathkeys, parts) == 1 &&
		parts[0] == MONGO_SORT_ALL &&
		mongo_order_is_by(baserel, pathkeys,
						  mongo_to_utf8(relation->options->parallel_field));
}

void
mongo_add_parallel_paths(PlannerInfo *root, RelOptInfo *baserel)
{
	MongoRelation *relation = baserel->fdw_private;
	int			workers;

	/* what an index finds is not worth several connections */
	if (!baserel->consider_parallel || !mongo_enable_pushdown ||
		baserel->lateral_relids != NULL || relation->options->remote_parallelism <= 0 ||
		mongo_is_derived(relation->options) ||
		!mongo_feature_enabled(relation->options, MONGO_FEATURE_EXPR) ||
		relation->examined_rows < baserel->tuples)
		return;
	workers = compute_parallel_worker(baserel, estimated_pages(baserel), -1,
									  max_parallel_workers_per_gather);
	if (workers <= 0)
		return;

	add_path_with_order(root, baserel, workers, NIL);
	if (order_follows_ranges(baserel, root->query_pathkeys))
		add_path_with_order(root, baserel, workers, root->query_pathkeys);
}
