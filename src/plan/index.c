/*-------------------------------------------------------------------------
 *
 * index.c
 *		What an index is worth.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "translate.h"

#include <math.h>

#include "optimizer/optimizer.h"
#include "utils/selfuncs.h"

/*-------------------------------------------------------------------------
 * Which of the indexes that are known find a table's documents, and in
 * which order they give them.
 *
 * https://www.mongodb.com/docs/manual/core/indexes/index-types/index-compound/
 * has which conditions a compound index serves, and
 * https://www.mongodb.com/docs/manual/tutorial/sort-results-with-indexes/
 * which orders.
 *-------------------------------------------------------------------------
 */

/* What an index makes of the conditions that there are. */
typedef struct IndexBounds
{
	List	   *rinfos;			/* those that it tests */
	bool		unique;			/* they leave at most one document */
} IndexBounds;

/* known_indexes: what ANALYZE found; NULL for a pipeline table, whose rows are in no index. */
static const MongoStatistics *
known_indexes(const MongoRelation *relation)
{
	return relation->columns->derivation == NULL ? relation->columns->statistics : NULL;
}

List *
mongo_note_sought(List *sought, RestrictInfo *rinfo, const MongoCondition *condition)
{
	return condition->seek == MONGO_SEEK_NOTHING && !condition->indexed ? sought :
		lappend(sought, mongo_clause_create(rinfo, condition, NULL));
}

/*
 * bounds_of_key: what the conditions on one field of an index ask it for at best,
 * with those that it tests appended to *rinfos.
 *
 * All ranges are tested together, but not where the field may be an array: then one
 * element may be in one range and another in the next.  A wildcard has one field of
 * a query.
 */
static MongoSeek
bounds_of_key(const MongoIndex *index, const MongoIndexKey *key, List *sought,
			  List **rinfos)
{
	const MongoClause *best = NULL;

	foreach_ptr(const MongoClause, one, sought)
	{
		if (one->condition.path != NULL && mongo_key_covers(key, one->condition.path) &&
			(best == NULL || one->condition.seek > best->condition.seek))
			best = one;
	}
	if (best == NULL)
		return MONGO_SEEK_NOTHING;
	if (best->condition.seek != MONGO_SEEK_RANGE || index->multikey || key->kind == MONGO_KEY_WILDCARD)
	{
		*rinfos = lappend(*rinfos, best->rinfo);
		return best->condition.seek;
	}
	foreach_ptr(const MongoClause, one, sought)
	{
		if (one->condition.path != NULL && mongo_key_covers(key, one->condition.path))
			*rinfos = lappend(*rinfos, one->rinfo);
	}
	return MONGO_SEEK_RANGE;
}

/* bounds_of_index: equality on its first fields, and a range on the next. */
static IndexBounds
bounds_of_index(const MongoIndex *index, List *sought)
{
	IndexBounds bounds = {NIL, index->unique};

	for (int i = 0; i < index->nkeys; i++)
	{
		List	   *rinfos = NIL;
		MongoSeek	seek = bounds_of_key(index, &index->keys[i], sought, &rinfos);

		bounds.unique &= seek == MONGO_SEEK_VALUE;
		/* a hash says nothing of what is less or more */
		if (index->keys[i].kind == MONGO_KEY_HASHED ? seek < MONGO_SEEK_VALUES :
			seek == MONGO_SEEK_NOTHING)
			break;
		bounds.rinfos = list_concat(bounds.rinfos, rinfos);
		if (seek == MONGO_SEEK_RANGE)
			break;
	}
	return bounds;
}

/* rows_within: estimate the number of documents that satisfy the conditions. */
static double
rows_within(PlannerInfo *root, RelOptInfo *baserel, List *rinfos)
{
	return clamp_row_est(baserel->tuples *
						 clauselist_selectivity(root, rinfos, baserel->relid,
												JOIN_INNER, NULL));
}

/* consider_bounds: the minimum of 'best' and the number of documents within the bounds. */
static double
consider_bounds(PlannerInfo *root, RelOptInfo *baserel, IndexBounds bounds, double best)
{
	if (bounds.rinfos == NIL)
		return best;
	return Min(best, bounds.unique ? 1 : rows_within(root, baserel, bounds.rinfos));
}

/* alone: the conditions that are indexed whatever else there is, like this one. */
static IndexBounds
alone(const MongoClause *sought, List *all)
{
	MongoIndexKey key = {sought->condition.path, MONGO_KEY_ASCENDING};
	MongoIndex	index = {.keys = &key, .nkeys = 1};

	if (sought->condition.path == NULL)
		return (IndexBounds) {list_make1(sought->rinfo), false};
	return bounds_of_index(&index, all);
}

double
mongo_examined_rows(PlannerInfo *root, RelOptInfo *baserel, List *sought)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoStatistics *statistics = known_indexes(relation);
	double		best = baserel->tuples;

	foreach_ptr(const MongoClause, one, sought)
	{
		/* not by an index that is known by more than the user's word */
		if (one->condition.indexed &&
			(one->condition.path == NULL ||
			 (mongo_index_uses(statistics, one->condition.path) &
			  mongo_seek_use(one->condition.seek)) == 0))
			best = consider_bounds(root, baserel, alone(one, sought), best);
	}
	for (int i = 0; statistics != NULL && sought != NIL && i < statistics->nindexes; i++)
	{
		const MongoIndex *index = &statistics->indexes[i];

		if (index->uses != 0)
			best = consider_bounds(root, baserel, bounds_of_index(index, sought), best);
	}
	return best;
}

/*
 * index_finds: does the index test all of the conditions sought that have no RestrictInfo,
 * of which there are so many?  *bounds are then those that it tests with them.
 */
static bool
index_finds(const MongoIndex *index, List *sought, int nconditions, IndexBounds *bounds)
{
	List	   *others = NIL;
	ListCell   *cell;

	if (index->uses == 0)
		return false;
	*bounds = bounds_of_index(index, sought);
	foreach(cell, bounds->rinfos)
	{
		if (lfirst(cell) != NULL)
			others = lappend(others, lfirst(cell));
	}
	if (list_length(bounds->rinfos) - list_length(others) < nconditions)
		return false;
	bounds->rinfos = others;
	return true;
}

bool
mongo_index_finds(PlannerInfo *root, RelOptInfo *baserel, List *conditions,
				  double *share, bool *unique)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoStatistics *statistics = known_indexes(relation);
	const MongoCondition *first = linitial(conditions);
	List	   *sought = list_copy(relation->sought);
	bool		alone = list_length(conditions) == 1;
	bool		found = alone && first->indexed;
	double		rows = baserel->tuples;
	ListCell   *cell;

	foreach(cell, conditions)
		sought = mongo_note_sought(sought, NULL, lfirst(cell));
	*unique = alone && first->unique;
	for (int i = 0; first->path != NULL && statistics != NULL && i < statistics->nindexes; i++)
	{
		IndexBounds bounds;

		if (!index_finds(&statistics->indexes[i], sought, list_length(conditions), &bounds))
			continue;
		found = true;
		*unique |= bounds.unique;
		rows = Min(rows, rows_within(root, baserel, bounds.rinfos));
	}
	*share = rows / Max(baserel->tuples, 1);
	return found;
}

/*
 * gives_order: by its fields in turn, but for those that have one value.
 *
 * Where a document is missing from the index, or stands in several places, there is
 * no order; but a sparse index has all that a condition on its first field finds.
 */
static bool
gives_order(const MongoIndex *index, List *sought, const MongoOrderKey *keys, int nkeys)
{
	int			matched = 0;
	int			bound = 0;
	bool		backwards = false;

	if (index->uses == 0 || index->multikey)
		return false;
	for (int i = 0; i < index->nkeys && matched < nkeys; i++)
	{
		const MongoIndexKey *key = &index->keys[i];
		List	   *rinfos = NIL;

		if (strcmp(key->path, keys[matched].path) == 0 && key->kind <= MONGO_KEY_DESCENDING)
		{
			bool		against = (key->kind == MONGO_KEY_ASCENDING) != keys[matched].ascending;

			if (matched > 0 && against != backwards)
				return false;
			backwards = against;
			matched++;
			bound += i == 0 &&
				bounds_of_key(index, key, sought, &rinfos) != MONGO_SEEK_NOTHING;
		}
		else if (bounds_of_key(index, key, sought, &rinfos) == MONGO_SEEK_VALUE)
			bound++;
		else
			return false;
	}
	return matched == nkeys && (!index->sparse || bound > 0);
}

/* consider_order: the fewest documents that this index, or a better one, looks at. */
static bool
consider_order(PlannerInfo *root, RelOptInfo *baserel, const MongoIndex *index,
			   const MongoOrder *order, double *examined_rows)
{
	const MongoRelation *relation = baserel->fdw_private;
	double		rows;

	if (!gives_order(index, relation->sought, order->keys, order->nkeys))
		return false;
	rows = consider_bounds(root, baserel, bounds_of_index(index, relation->sought),
						   baserel->tuples);
	*examined_rows = Min(*examined_rows, rows);
	return true;
}

bool
mongo_order_is_indexed(PlannerInfo *root, RelOptInfo *baserel, const MongoOrder *order,
					   double *examined_rows)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoStatistics *statistics = known_indexes(relation);
	MongoIndexKey key = {order->keys[0].path, MONGO_KEY_ASCENDING};
	MongoIndex	said = {.keys = &key, .nkeys = 1, .uses = MONGO_INDEX_ANY_USE};
	bool		found = false;

	*examined_rows = baserel->tuples;
	if (order->nkeys == 0 || order->unindexed)
		return false;
	if (order->keys[0].indexed)
		found = consider_order(root, baserel, &said, order, examined_rows);
	for (int i = 0; statistics != NULL && i < statistics->nindexes; i++)
		found |= consider_order(root, baserel, &statistics->indexes[i], order, examined_rows);
	return found;
}

/* leaves_out_null: is this "field IS NOT NULL", which is a range of any index on the field? */
static bool
leaves_out_null(const RelOptInfo *baserel, const RestrictInfo *rinfo, const char *path)
{
	const MongoRelation *relation = baserel->fdw_private;
	const NullTest *test = (const NullTest *) rinfo->clause;
	MongoField	field;

	return IsA(test, NullTest) && test->nulltesttype == IS_NOT_NULL &&
		mongo_column_of_node(relation->columns, (Node *) test->arg, &field) != NULL &&
		strcmp(field.path, path) == 0;
}

bool
mongo_index_walks(const RelOptInfo *baserel, const char *path)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoStatistics *statistics = known_indexes(relation);
	const MongoOrderKey key = {.path = path, .ascending = true};
	int			nconditions = 0;
	ListCell   *cell;

	foreach(cell, baserel->baserestrictinfo)
		nconditions += !leaves_out_null(baserel, lfirst(cell), path);

	for (int i = 0; statistics != NULL && i < statistics->nindexes; i++)
	{
		const MongoIndex *index = &statistics->indexes[i];

		if (gives_order(index, relation->sought, &key, 1) &&
			list_length(bounds_of_index(index, relation->sought).rinfos) == nconditions)
			return true;
	}
	return false;
}

/* ----------------------- What MongoDB's work costs ------------------------ */

/* round_trip_cost: of waiting for a reply's first byte, as far as that is more than locally. */
static Cost
round_trip_cost(const MongoRelation *relation)
{
	return Max(relation->round_trip_time - MONGO_LOCAL_ROUND_TRIP, 0) * MONGO_COST_MILLISECOND;
}

Cost
mongo_command_cost(const MongoRelation *relation)
{
	return relation->options->fdw_startup_cost + round_trip_cost(relation);
}

bool
mongo_is_compressed(const MongoRelation *relation)
{
	return relation->bandwidth < MONGO_COMPRESSED_BANDWIDTH;
}

/* bytes_cost: of so many rows on the network, and of waiting for further batches of them. */
static Cost
bytes_cost(const MongoRelation *relation, double rows, const PathTarget *target)
{
	double		bytes = rows * (MONGO_DOCUMENT_BYTES + target->width +
								list_length(target->exprs) * MONGO_FIELD_BYTES);

	if (mongo_is_compressed(relation))
		bytes /= MONGO_COMPRESSION;
	return bytes * 1000 / relation->bandwidth * MONGO_COST_MILLISECOND +
		floor(bytes / MONGO_BATCH_BYTES) * round_trip_cost(relation);
}

Cost
mongo_transfer_cost(const MongoRelation *relation, double rows, const PathTarget *target)
{
	return rows * relation->options->fdw_tuple_cost + bytes_cost(relation, rows, target);
}

Cost
mongo_examined_cost(const RelOptInfo *baserel, double examined_rows)
{
	bool		scans_all = examined_rows >= baserel->tuples;

	return examined_rows * MONGO_COST_UNIT *
		(scans_all ? MONGO_COST_EXAMINED : MONGO_COST_INDEXED);
}

/* estimate_scan: with what it takes to find the rows. */
static MongoEstimate
estimate_scan(RelOptInfo *rel, double remote_rows, Cost examined_cost)
{
	const MongoRelation *relation = rel->fdw_private;
	MongoEstimate estimate = {.rows = rel->rows};

	estimate.startup_cost = mongo_command_cost(relation) + rel->baserestrictcost.startup +
		rel->reltarget->cost.startup;
	if (relation->join != NULL)
		estimate.startup_cost += relation->join->setup_cost;
	estimate.total_cost = estimate.startup_cost + examined_cost +
		mongo_transfer_cost(relation, remote_rows, rel->reltarget) + remote_rows * cpu_tuple_cost +
		(relation->all_exact ? 0 : remote_rows * rel->baserestrictcost.per_tuple) +
		rel->rows * rel->reltarget->cost.per_tuple;
	return estimate;
}

MongoEstimate
mongo_estimate_scan(RelOptInfo *rel, double remote_rows, double examined_rows)
{
	const MongoRelation *relation = rel->fdw_private;

	return estimate_scan(rel, remote_rows,
						 relation->join != NULL ? relation->join->cost :
						 mongo_examined_cost(rel, examined_rows));
}

MongoEstimate
mongo_estimate_ordered_scan(RelOptInfo *baserel, const MongoOrder *order, double indexed_rows)
{
	const MongoRelation *relation = baserel->fdw_private;
	bool		sorts = indexed_rows < 0;
	int			more_parts = order->nparts - 1;

	/* they are sent together, or not needed */
	Cost		parts_cost = more_parts * relation->options->fdw_startup_cost;
	Cost		examined_cost = sorts ? mongo_examined_cost(baserel, relation->examined_rows) :
		indexed_rows * MONGO_COST_UNIT * MONGO_COST_INDEXED;
	MongoEstimate estimate = estimate_scan(baserel, relation->remote_rows, examined_cost);

	/*
	 * each part looks at all that were examined, and tests them for null and
	 * NaN
	 */
	if (sorts)
		parts_cost += mongo_sort_stage_cost(relation->remote_rows, -1) +
			more_parts * examined_cost;
	if (sorts && more_parts > 0)
		parts_cost += order->nparts * relation->examined_rows * MONGO_COST_UNIT *
			MONGO_COST_PART_TEST;
	estimate.total_cost += parts_cost;
	/* sorting begins to give when all has been looked at */
	if (sorts)
		estimate.startup_cost += parts_cost + examined_cost;
	return estimate;
}

MongoEstimate
mongo_estimate_shared_scan(RelOptInfo *baserel, double shares)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoTableOptions *options = relation->options;
	double		remote_shares = Max(Min(options->remote_parallelism, shares), 1);
	Cost		remote_cost = relation->remote_rows * options->fdw_tuple_cost +
		MONGO_COST_UNIT * relation->examined_rows * (MONGO_COST_EXAMINED + MONGO_COST_RANGE);
	Cost		local_cost = relation->remote_rows * cpu_tuple_cost +
		(relation->all_exact ? 0 : relation->remote_rows * baserel->baserestrictcost.per_tuple) +
		baserel->rows * baserel->reltarget->cost.per_tuple;
	MongoEstimate estimate = {.rows = clamp_row_est(baserel->rows / shares)};

	estimate.startup_cost = mongo_command_cost(relation) + MONGO_COST_SPLIT * MONGO_COST_UNIT +
		baserel->baserestrictcost.startup + baserel->reltarget->cost.startup;
	estimate.total_cost = estimate.startup_cost +
		(MONGO_RANGES_PER_PARTICIPANT - 1) * mongo_command_cost(relation) +
		remote_cost / remote_shares + local_cost / shares +
		bytes_cost(relation, relation->remote_rows, baserel->reltarget);
	return estimate;
}

Cost
mongo_sort_stage_cost(double rows, double wanted)
{
	double		kept = wanted > 0 && wanted < rows ? Min(rows, 2 * wanted) : rows;

	return 2 * cpu_operator_cost * Max(rows, 2) * log2(Max(kept, 2));
}

/* operator_cost: of one operator of an expression, by its name. */
static double
operator_cost(const char *name)
{
	static const char *const tests[] = {
		"$and", "$cond", "$eq", "$gt", "$gte", "$ifNull", "$lt", "$lte", "$ne", "$not", "$or"
	};

	for (size_t i = 0; i < lengthof(tests); i++)
	{
		if (strcmp(tests[i], name) == 0)
			return MONGO_COST_TEST;
	}
	return MONGO_COST_OPERATOR;
}

/* operators_cost: of what begins with a dollar sign and has something to do. */
static double
operators_cost(const bson_iter_t *parent)
{
	bson_iter_t child;
	double		cost = 0;

	if ((!BSON_ITER_HOLDS_DOCUMENT(parent) && !BSON_ITER_HOLDS_ARRAY(parent)) ||
		!bson_iter_recurse(parent, &child))
		return 0;
	while (bson_iter_next(&child))
	{
		const char *key = bson_iter_key(&child);

		if (strcmp(key, "$literal") == 0)
			continue;
		if (key[0] == '$')
			cost += operator_cost(key);
		cost += operators_cost(&child);
	}
	return cost;
}

double
mongo_expression_cost(const bson_t *expression)
{
	bson_iter_t top;

	if (!bson_iter_init(&top, expression) || !bson_iter_next(&top))
		return 0;
	return operators_cost(&top);
}

/* is_constant: as the 1 of a count is. */
static bool
is_constant(const bson_t *expression)
{
	bson_iter_t top;

	return bson_iter_init(&top, expression) && bson_iter_next(&top) &&
		BSON_ITER_HOLDS_INT32(&top);
}

double
mongo_group_cost(const MongoGroup *group, double groups)
{
	double		cost = MONGO_COST_GROUP + MONGO_COST_TENFOLD_GROUPS * log10(Max(groups, 1));
	ListCell   *cell;

	foreach(cell, group->keys)
		cost += MONGO_COST_KEY +
		mongo_expression_cost(((MongoGroupKey *) lfirst(cell))->value.expression);
	foreach(cell, group->accumulators)
	{
		const bson_t *operand = ((MongoAccumulator *) lfirst(cell))->operand;

		cost += MONGO_COST_ACCUMULATOR + mongo_expression_cost(operand);
		if (!is_constant(operand))
			cost += MONGO_COST_OPERAND;
	}
	if (group->distinct != NULL)
		cost += MONGO_COST_KEY;
	return cost;
}

double
mongo_batched_keys(PlannerInfo *root, Expr *outer_key, double rows, double batches)
{
	VariableStatData variable;
	bool		is_default;
	double		distinct;

	examine_variable(root, (Node *) outer_key, 0, &variable);
	(void) get_variable_numdistinct(&variable, &is_default);
	ReleaseVariableStats(variable);
	if (is_default)
		return rows;

	/* those of some of the rows, as estimate_num_groups() has it */
	distinct = estimate_num_groups(root, list_make1(outer_key), rows, NULL, NULL);
	return batches * distinct * (1 - pow(1 - 1 / batches, rows / distinct));
}
