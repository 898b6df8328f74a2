/*-------------------------------------------------------------------------
 *
 * sorted_paths.c
 *		Paths over one foreign table that give its rows in an order.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sorted_paths.h"

#include "cost.h"
#include "feature.h"
#include "local_plan.h"
#include "order.h"
#include "relation.h"

#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"

/* add_scan_in_order: by an index that looks at so many documents, or sorted (-1). */
static void
add_scan_in_order(PlannerInfo *root, RelOptInfo *baserel, List *pathkeys,
				  double indexed_rows)
{
	Cost		startup_cost;
	Cost		total_cost;

	mongo_estimate_ordered_scan(baserel, pathkeys, indexed_rows, &startup_cost,
								&total_cost);
	add_path(baserel, (Path *)
			 mongo_foreignscan_path(root, baserel, NULL, baserel->rows,
									startup_cost, total_cost, pathkeys,
									baserel->lateral_relids,
									mongo_local_order(root, baserel, baserel->reltarget->exprs,
													  pathkeys, false),
									NIL));
}

/*
 * add_wanted_order: MongoDB may find the rows by one index and sort them, or go through
 * another that has them in order.  False if no index has it.
 */
static bool
add_wanted_order(PlannerInfo *root, RelOptInfo *baserel, List *pathkeys)
{
	const MongoRelation *relation = baserel->fdw_private;
	double		indexed_rows;

	if (!mongo_order_is_shippable(baserel, pathkeys))
		return false;
	if (!mongo_order_is_indexed(root, baserel, pathkeys, &indexed_rows))
	{
		add_scan_in_order(root, baserel, pathkeys, -1);
		return false;
	}
	add_scan_in_order(root, baserel, pathkeys, indexed_rows);
	if (relation->examined_rows < indexed_rows)
		add_scan_in_order(root, baserel, pathkeys, -1);
	return true;
}

/* add_indexed_order: false if no index has it. */
static bool
add_indexed_order(PlannerInfo *root, RelOptInfo *baserel, List *pathkeys)
{
	double		indexed_rows;

	if (!mongo_order_is_shippable(baserel, pathkeys) ||
		!mongo_order_is_indexed(root, baserel, pathkeys, &indexed_rows))
		return false;
	add_scan_in_order(root, baserel, pathkeys, indexed_rows);
	return true;
}

/* add_begun_order: as many of the first keys as an index has, to be sorted by the rest. */
static void
add_begun_order(PlannerInfo *root, RelOptInfo *baserel, List *pathkeys)
{
	if (!enable_incremental_sort)
		return;
	for (int nkeys = list_length(pathkeys) - 1; nkeys > 0; nkeys--)
	{
		if (add_indexed_order(root, baserel, list_truncate(list_copy(pathkeys), nkeys)))
			return;
	}
}

/* add_merge_orders: by the columns that are equal to those of other tables. */
static void
add_merge_orders(PlannerInfo *root, RelOptInfo *baserel)
{
	const MongoRelation *relation = baserel->fdw_private;
	ListCell   *cell;

	/*
	 * an index that is gone would mean an error for what does not fit into
	 * memory
	 */
	if (!enable_mergejoin || !baserel->has_eclass_joins ||
		relation->columns->statistics == NULL ||
		!mongo_feature_enabled(relation->options, MONGO_FEATURE_DISK_USE))
		return;
	foreach(cell, root->eq_classes)
	{
		EquivalenceClass *class = lfirst(cell);
		PathKey    *pathkey;

		if (!eclass_useful_for_merging(root, class, baserel))
			continue;
		pathkey = make_canonical_pathkey(root, class, linitial_oid(class->ec_opfamilies),
										 BTLessStrategyNumber, false);
		add_indexed_order(root, baserel, list_make1(pathkey));
	}
}

void
mongo_add_sorted_paths(PlannerInfo *root, RelOptInfo *baserel)
{
	if (!add_wanted_order(root, baserel, root->query_pathkeys))
		add_begun_order(root, baserel, root->query_pathkeys);
	add_merge_orders(root, baserel);
}
