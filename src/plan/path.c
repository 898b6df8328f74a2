/*-------------------------------------------------------------------------
 *
 * path.c
 *		Makes ForeignPaths of tables, joins and upper relations; and has the tables of the structs
 *		that plans contain, by which these become nodes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "options.h"

#include "optimizer/pathnode.h"

#define COLUMN(kind, field)		MONGO_STRUCT_FIELD(MongoColumn, kind, field)
#define SCAN(kind, field)		MONGO_STRUCT_FIELD(MongoScanPlan, kind, field)
#define DIRECT(kind, field)		MONGO_STRUCT_FIELD(MongoDirectPlan, kind, field)

static const MongoStructField column_fields[] = {
	COLUMN(STRING, name),
	COLUMN(STRING, path),
	COLUMN(STRING, collection),
	COLUMN(STRING, prefix),
	COLUMN(STRING, field),
	MONGO_STRUCT_NUMBERS(MongoColumn, index, zero_if_empty),
};
static const MongoStructType column_type = MONGO_STRUCT_TYPE(MongoColumn, column_fields);

static const MongoStructField key_fields[] = {
	MONGO_STRUCT_NUMBERS(MongoHashKey, type, asked),
};
static const MongoStructType key_type = MONGO_STRUCT_TYPE(MongoHashKey, key_fields);

static const MongoStructField scan_fields[] = {
	SCAN(STRING, database),
	SCAN(STRING, collection),
	SCAN(NODE, commands),
	SCAN(NODE, count_command),
	MONGO_STRUCT_LIST(MongoScanPlan, predicates, &mongo_predicate_type),
	MONGO_STRUCT_NUMBERS(MongoScanPlan, nvariables, canonical_json),
	SCAN(STRING, unwind),
	SCAN(STRING, ordinality),
	SCAN(STRING, comment),
	SCAN(STRING, joined),
	SCAN(STRING, network),
	MONGO_STRUCT_LIST(MongoScanPlan, columns, &column_type),
	MONGO_STRUCT_LIST(MongoScanPlan, hash_keys, &key_type),
	SCAN(NODE, second_columns),
	SCAN(NODE, hiding),
	SCAN(NODE, hiding_columns),
};
const MongoStructType mongo_scan_plan_type = MONGO_STRUCT_TYPE(MongoScanPlan, scan_fields);

static const MongoStructField assignment_fields[] = {
	MONGO_STRUCT_NUMBERS(MongoAssignment, kind, attnum),
};
static const MongoStructType assignment_type = MONGO_STRUCT_TYPE(MongoAssignment, assignment_fields);

static const MongoStructField direct_fields[] = {
	DIRECT(STRING, database),
	DIRECT(STRING, collection),
	DIRECT(NODE, command),
	MONGO_STRUCT_LIST(MongoDirectPlan, predicates, &mongo_predicate_type),
	MONGO_STRUCT_LIST(MongoDirectPlan, assignments, &assignment_type),
	MONGO_STRUCT_NUMBERS(MongoDirectPlan, operation, returns),
	DIRECT(NODE, returned),
};
const MongoStructType mongo_direct_plan_type = MONGO_STRUCT_TYPE(MongoDirectPlan, direct_fields);

static const MongoStructField join_fields[] = {
	MONGO_STRUCT_NUMBERS(MongoBatchedJoin, type, ordered),
	MONGO_STRUCT_LIST(MongoBatchedJoin, keys, &key_type),
};
const MongoStructType mongo_batched_join_type = MONGO_STRUCT_TYPE(MongoBatchedJoin, join_fields);

static const MongoStructField subqueries_fields[] = {
	MONGO_STRUCT_FIELD(MongoBatchedSubqueries, NODE, subplans),
	MONGO_STRUCT_NUMBERS(MongoBatchedSubqueries, first_batch, is_for_parent),
};
const MongoStructType mongo_batched_subqueries_type = MONGO_STRUCT_TYPE(MongoBatchedSubqueries, subqueries_fields);

/*
 * mongo_path_details
 *		Returns the path's details, in which lists are shared with it.
 */
MongoPathDetails
mongo_path_details(const ForeignPath *path)
{
	return *(const MongoPathDetails *) linitial(path->fdw_private);
}

/*
 * mongo_reads_all
 *		Tells whether the query reads a path in this order to its end: it wants all rows, or sorts
 *		or aggregates them first.  'pathkeys' is NIL for a path without an order.
 */
bool
mongo_reads_all(const PlannerInfo *root, const List *pathkeys)
{
	return root->tuple_fraction <= 0 ||
		(pathkeys == NIL && (root->query_pathkeys != NIL || root->parse->hasAggs));
}

/*
 * mongo_wanted_share
 *		Returns the share of so many rows that the query wants, at most 1.
 */
double
mongo_wanted_share(const PlannerInfo *root, double rows)
{
	return root->tuple_fraction <= 0 ? 1 :
		root->tuple_fraction < 1 ? root->tuple_fraction :
		Min(1, root->tuple_fraction / Max(rows, 1));
}

/*
 * mongo_hashed_scan_below
 *		Returns the path of the hashed scan in a second plan's path.
 */
const ForeignPath *
mongo_hashed_scan_below(const Path *path)
{
	while (!IsA(path, ForeignPath))
	{
		if (IsA(path, LimitPath))
			path = ((const LimitPath *) path)->subpath;
		else if (IsA(path, SortPath))
			path = ((const SortPath *) path)->subpath;
		else
			path = castNode(AggPath, (Path *) path)->subpath;
	}
	return (const ForeignPath *) path;
}

/*
 * Sets in 'details' what a run of a correlated subquery's scan costs, and lowers its estimate to
 * what it costs in a batch if that is less.
 *
 * Where the subquery then is not batched, its scan may still switch to all documents.
 */
static void
estimate_batched(const PlannerInfo *root, const Path *second, MongoEstimate *estimate,
				 MongoPathDetails *details)
{
	const ForeignPath *hashed = mongo_hashed_scan_below(second);
	const MongoLookup *lookup = mongo_path_details(hashed).lookup;
	double		saved;

	details->run_cost = Max(estimate->startup_cost + (estimate->total_cost - estimate->startup_cost) *
							mongo_wanted_share(root, estimate->rows), 1);
	/* those of EXISTS may be hashed instead, also where nothing is batched */
	if (lookup == NULL || root->parse->targetList == NIL)
		return;
	/* what PostgreSQL does above, unless that is LIMIT, takes time as well */
	saved = details->run_cost /
		(lookup->cost / lookup->rows + Max(second->total_cost - hashed->path.total_cost, 0));
	if (saved <= 1)
		return;
	estimate->startup_cost /= saved;
	estimate->total_cost /= saved;
}

/*
 * mongo_foreign_path
 *		Returns a ForeignPath of 'rel' with this target, or with the relation's own if that is
 *		NULL.
 *
 * 'outer_path' is the second plan, or NULL.  'details' may be NULL, and is copied.
 */
Path *
mongo_foreign_path(PlannerInfo *root, RelOptInfo *rel, PathTarget *target, MongoEstimate estimate,
				   List *pathkeys, Relids required_outer, Path *outer_path,
				   const MongoPathDetails *details)
{
	MongoPathDetails *copy = palloc0(sizeof(MongoPathDetails));
	List	   *fdw_private = list_make1(copy);
	ForeignPath *path;

	if (details != NULL)
		*copy = *details;
	copy->total_cost = estimate.total_cost;
	if (outer_path != NULL)
		estimate_batched(root, outer_path, &estimate, copy);
	if (IS_SIMPLE_REL(rel))
		return (Path *)
			create_foreignscan_path(root, rel, target, estimate.rows, MONGO_NO_DISABLED_NODES
									estimate.startup_cost, estimate.total_cost, pathkeys,
									required_outer, outer_path, MONGO_NO_RESTRICTINFO fdw_private);
	path = create_foreign_upper_path(root, rel, target, estimate.rows, MONGO_NO_DISABLED_NODES
									 estimate.startup_cost, estimate.total_cost, pathkeys,
									 outer_path, MONGO_NO_RESTRICTINFO fdw_private);
	/* until mongo_keep_out_of_workers() */
	path->path.parallel_safe = true;
	return (Path *) path;
}

/*
 * mongo_path_may_pay
 *		Tells whether add_path() may keep this path of a join, which has no parameters.
 */
bool
mongo_path_may_pay(RelOptInfo *joinrel, const Path *path)
{
	return add_path_precheck(joinrel, mongo_disabled_nodes(path) path->startup_cost,
							 path->total_cost, path->pathkeys, NULL);
}

/*
 * mongo_keep_out_of_workers
 *		Marks the foreign paths of a join or an upper relation as not parallel safe.
 *
 * No scan is.  Called after paths were added: add_path() prefers one that is parallel safe where
 * costs are equal, so that MongoDB does what it can.
 */
void
mongo_keep_out_of_workers(RelOptInfo *rel)
{
	foreach_ptr(Path, path, rel->pathlist)
	{
		if (IsA(path, ForeignPath))
			path->parallel_safe = false;
	}
}
