/*-------------------------------------------------------------------------
 *
 * index.c
 *		Estimates which documents indexes find, and what MongoDB's work costs.
 *
 * Knows the indexes that ANALYZE has seen, and those of columns that the option "indexed" names.
 * Decides how many documents MongoDB examines for conditions, and whether an index has a sort
 * order.  MongoDB chooses its plans itself, so all of this only decides what a scan is expected to
 * cost.
 *
 * Of a compound index, equality on its first fields and a range on the next one serve, and its
 * order is that of its fields:
 * https://www.mongodb.com/docs/manual/core/indexes/index-types/index-compound/
 * https://www.mongodb.com/docs/manual/tutorial/sort-results-with-indexes/
 *
 * First come the bounds of one index, then the questions that plans ask about all of them, then
 * the costs, whose constants are in plan_internal.h.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "translate.h"

#include <math.h>

#include "optimizer/optimizer.h"
#include "utils/selfuncs.h"

/* ------------------ The conditions that an index tests ------------------- */

/* The conditions that an index can test. */
typedef struct IndexBounds
{
	List	   *rinfos;
	bool		unique;			/* they leave at most one document */
} IndexBounds;

/* Returns what ANALYZE found; NULL for a pipeline table, whose rows are in no index. */
static const MongoStatistics *
known_indexes(const MongoRelation *relation)
{
	return relation->columns->derivation == NULL ? relation->columns->statistics : NULL;
}

/*
 * mongo_append_indexable
 *		Returns the list 'indexable' of MongoClause *, with this condition appended if an index may
 *		serve it.
 *
 * The entry is in the current memory context, and has no filter.  'rinfo' may be NULL.
 */
List *
mongo_append_indexable(List *indexable, RestrictInfo *rinfo, const MongoCondition *condition)
{
	return condition->seek == MONGO_SEEK_NOTHING && !condition->indexed ? indexable :
		lappend(indexable, mongo_clause_create(rinfo, condition, NULL));
}

/*
 * Returns the tightest seek that conditions allow on one field of an index, and appends the
 * conditions that it tests to *rinfos.
 *
 * All ranges are tested together, but not where the field may be an array: then one element may be
 * in one range and another in the next.  A wildcard index has one field of a query.
 */
static MongoSeek
bounds_of_key(const MongoIndex *index, const MongoIndexKey *key, List *indexable, List **rinfos)
{
	const MongoClause *best = NULL;

	foreach_ptr(const MongoClause, one, indexable)
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
	foreach_ptr(const MongoClause, one, indexable)
	{
		if (one->condition.path != NULL && mongo_key_covers(key, one->condition.path))
			*rinfos = lappend(*rinfos, one->rinfo);
	}
	return MONGO_SEEK_RANGE;
}

/* Returns the conditions that an index tests: equality on the first fields, a range on the next. */
static IndexBounds
bounds_of_index(const MongoIndex *index, List *indexable)
{
	IndexBounds bounds = {NIL, index->unique};

	for (int i = 0; i < index->nkeys; i++)
	{
		List	   *rinfos = NIL;
		MongoSeek	seek = bounds_of_key(index, &index->keys[i], indexable, &rinfos);

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

static double
rows_within(PlannerInfo *root, RelOptInfo *baserel, List *rinfos)
{
	return clamp_row_est(baserel->tuples *
						 clauselist_selectivity(root, rinfos, baserel->relid,
												JOIN_INNER, NULL));
}

/* Returns the minimum of 'best' and the number of documents within the bounds. */
static double
consider_bounds(PlannerInfo *root, RelOptInfo *baserel, IndexBounds bounds, double best)
{
	if (bounds.rinfos == NIL)
		return best;
	return Min(best, bounds.unique ? 1 : rows_within(root, baserel, bounds.rinfos));
}

/* Returns the conditions on the field of 'clause', which the user has declared as indexed. */
static IndexBounds
bounds_of_option(const MongoClause *clause, List *all)
{
	MongoIndexKey key = {clause->condition.path, MONGO_KEY_ASCENDING};
	MongoIndex	index = {.keys = &key, .nkeys = 1};

	if (clause->condition.path == NULL)
		return (IndexBounds) {list_make1(clause->rinfo), false};
	return bounds_of_index(&index, all);
}

/*
 * mongo_examined_rows
 *		Returns how many documents MongoDB examines to find those of all these conditions, by the
 *		index that serves best; baserel->tuples if none does.
 *
 * 'indexable' is a list of MongoClause *, made by mongo_append_indexable().
 */
double
mongo_examined_rows(PlannerInfo *root, RelOptInfo *baserel, List *indexable)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoStatistics *statistics = known_indexes(relation);
	double		best = baserel->tuples;

	foreach_ptr(const MongoClause, one, indexable)
	{
		/* ANALYZE has seen no index for it, so that the option counts */
		if (one->condition.indexed &&
			(one->condition.path == NULL ||
			 (mongo_index_uses(statistics, one->condition.path) &
			  mongo_seek_use(one->condition.seek)) == 0))
			best = consider_bounds(root, baserel, bounds_of_option(one, indexable), best);
	}
	for (int i = 0; statistics != NULL && indexable != NIL && i < statistics->nindexes; i++)
	{
		const MongoIndex *index = &statistics->indexes[i];

		if (index->uses != 0)
			best = consider_bounds(root, baserel, bounds_of_index(index, indexable), best);
	}
	return best;
}

/*
 * Tells whether the index tests all of the indexable conditions that have no RestrictInfo, of
 * which there are 'nconditions'.  If so, *bounds are those that it tests in addition to them.
 */
static bool
index_finds(const MongoIndex *index, List *indexable, int nconditions, IndexBounds *bounds)
{
	List	   *others = NIL;
	ListCell   *cell;

	if (index->uses == 0)
		return false;
	*bounds = bounds_of_index(index, indexable);
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

/*
 * mongo_index_finds
 *		Tells whether one index can find the documents of these conditions (MongoCondition *, of
 *		different fields), perhaps with equality in the table's restrictions on the fields before
 *		theirs.
 *
 * If so, *share is the share of documents that these restrictions and others that the index tests
 * leave, and *unique whether at most one is found for a value of each condition.
 */
bool
mongo_index_finds(PlannerInfo *root, RelOptInfo *baserel, List *conditions,
				  double *share, bool *unique)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoStatistics *statistics = known_indexes(relation);
	const MongoCondition *first = linitial(conditions);
	List	   *indexable = list_copy(relation->indexable);
	bool		is_single = list_length(conditions) == 1;
	bool		found = is_single && first->indexed;
	double		rows = baserel->tuples;
	ListCell   *cell;

	foreach(cell, conditions)
		indexable = mongo_append_indexable(indexable, NULL, lfirst(cell));
	*unique = is_single && first->unique;
	for (int i = 0; first->path != NULL && statistics != NULL && i < statistics->nindexes; i++)
	{
		IndexBounds bounds;

		if (!index_finds(&statistics->indexes[i], indexable, list_length(conditions), &bounds))
			continue;
		found = true;
		*unique |= bounds.unique;
		rows = Min(rows, rows_within(root, baserel, bounds.rinfos));
	}
	*share = rows / Max(baserel->tuples, 1);
	return found;
}

/*
 * Tells whether the index has documents in the order of these keys, apart from fields with one
 * value.
 *
 * Where a document is missing from the index, or stands in several places, there is no order; but
 * a sparse index has all that a condition on its first field finds.
 */
static bool
index_has_order(const MongoIndex *index, List *indexable, const MongoOrderKey *keys, int nkeys)
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
				bounds_of_key(index, key, indexable, &rinfos) != MONGO_SEEK_NOTHING;
		}
		else if (bounds_of_key(index, key, indexable, &rinfos) == MONGO_SEEK_VALUE)
			bound++;
		else
			return false;
	}
	return matched == nkeys && (!index->sparse || bound > 0);
}

/* Tells whether the index has the order; lowers *examined_rows to what it then examines. */
static bool
consider_order(PlannerInfo *root, RelOptInfo *baserel, const MongoIndex *index,
			   const MongoOrder *order, double *examined_rows)
{
	const MongoRelation *relation = baserel->fdw_private;
	double		rows;

	if (!index_has_order(index, relation->indexable, order->keys, order->nkeys))
		return false;
	rows = consider_bounds(root, baserel, bounds_of_index(index, relation->indexable),
						   baserel->tuples);
	*examined_rows = Min(*examined_rows, rows);
	return true;
}

/*
 * mongo_order_is_indexed
 *		Tells whether an index has the documents that the table's restrictions leave in this order,
 *		forwards or backwards.
 *
 * Sets *examined_rows to the number of documents that it examines.  Fields that a restriction sets
 * equal to a value may stand anywhere in the index.
 */
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

/* Tells whether this is "field IS NOT NULL", which is a range of any index on the field. */
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

/*
 * mongo_index_walks
 *		Tells whether an index has the values of this field in order, and tests all of the
 *		restrictions.
 */
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

		if (index_has_order(index, relation->indexable, &key, 1) &&
			list_length(bounds_of_index(index, relation->indexable).rinfos) == nconditions)
			return true;
	}
	return false;
}

/* ----------------------- What MongoDB's work costs ------------------------ */

/* Returns the cost of waiting for a reply's first byte, as far as that is more than locally. */
static Cost
round_trip_cost(const MongoRelation *relation)
{
	return Max(relation->round_trip_time - MONGO_LOCAL_ROUND_TRIP, 0) * MONGO_COST_MILLISECOND;
}

/*
 * mongo_command_cost
 *		Returns the cost of a command: fdw_startup_cost, and a round trip.
 */
Cost
mongo_command_cost(const MongoRelation *relation)
{
	return relation->options->fdw_startup_cost + round_trip_cost(relation);
}

/*
 * mongo_is_compressed
 *		Tells whether MongoDB compresses what it sends, if it can: the network is slow.
 */
bool
mongo_is_compressed(const MongoRelation *relation)
{
	return relation->bandwidth < MONGO_COMPRESSED_BANDWIDTH;
}

/* Returns the cost of sending so many rows, and of waiting for further batches of them. */
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

/*
 * mongo_transfer_cost
 *		Returns the cost of sending so many rows of these columns to PostgreSQL.
 */
Cost
mongo_transfer_cost(const MongoRelation *relation, double rows, const PathTarget *target)
{
	return rows * relation->options->fdw_tuple_cost + bytes_cost(relation, rows, target);
}

/*
 * mongo_examined_cost
 *		Returns MongoDB's cost of finding that many documents of a table.
 */
Cost
mongo_examined_cost(const RelOptInfo *baserel, double examined_rows)
{
	bool		scans_all = examined_rows >= baserel->tuples;

	return examined_rows * MONGO_COST_UNIT *
		(scans_all ? MONGO_COST_EXAMINED : MONGO_COST_INDEXED);
}

/* Returns the estimate of a scan in which finding the rows costs 'examined_cost'. */
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

/*
 * mongo_estimate_scan
 *		Returns the estimate of a scan of 'rel' in which MongoDB examines 'examined_rows' documents
 *		and sends 'remote_rows' of them.
 *
 * For a join that is pushed down, its MongoJoin has the cost of finding the rows, and
 * 'examined_rows' is not used.
 */
MongoEstimate
mongo_estimate_scan(RelOptInfo *rel, double remote_rows, double examined_rows)
{
	const MongoRelation *relation = rel->fdw_private;

	return estimate_scan(rel, remote_rows,
						 relation->join != NULL ? relation->join->cost :
						 mongo_examined_cost(rel, examined_rows));
}

/*
 * mongo_estimate_ordered_scan
 *		Returns the estimate of a scan of a table in an order.
 *
 * It comes from an index, by which MongoDB examines 'indexed_rows' documents, or, if that is
 * negative, from sorting.
 */
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
	/* sorting returns nothing before all has been examined */
	if (sorts)
		estimate.startup_cost += parts_cost + examined_cost;
	return estimate;
}

/*
 * mongo_estimate_shared_scan
 *		Returns the estimate of what one of several processes does that share a scan.
 *
 * 'shares' is their number, in which the leader counts less than one.  The work on rows in
 * PostgreSQL is shared; MongoDB's work is not, unless the option remote_parallelism specifies that
 * it has CPUs to spare.
 */
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

/*
 * mongo_sort_stage_cost
 *		Returns the cost of a $sort, which is what PostgreSQL charges for a sort of its own.
 *
 * Only the first 'wanted' rows are kept, unless that is negative.
 */
Cost
mongo_sort_stage_cost(double rows, double wanted)
{
	double		kept = wanted > 0 && wanted < rows ? Min(rows, 2 * wanted) : rows;

	return 2 * cpu_operator_cost * Max(rows, 2) * log2(Max(kept, 2));
}

/* Returns the cost of one operator of an expression, by its name, in the unit T. */
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

/* Returns the cost of all operators within: of the keys that begin with a dollar sign. */
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

/*
 * mongo_expression_cost
 *		Returns the cost of an expression for each document, in the unit T.
 */
double
mongo_expression_cost(const bson_t *expression)
{
	bson_iter_t top;

	if (!bson_iter_init(&top, expression) || !bson_iter_next(&top))
		return 0;
	return operators_cost(&top);
}

/* Tells whether this is a number, as the 1 of a count is. */
static bool
is_constant(const bson_t *expression)
{
	bson_iter_t top;

	return bson_iter_init(&top, expression) && bson_iter_next(&top) &&
		BSON_ITER_HOLDS_INT32(&top);
}

/*
 * mongo_group_cost
 *		Returns the cost of a group's stages for each row, in the unit T, if so many groups come.
 */
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

/*
 * mongo_batched_keys
 *		Returns the number of keys that a batched join requests for so many outer rows, in all
 *		batches.
 *
 * Each batch has the distinct values of the expression over its rows; if nothing is known of
 * these, each row has a key of its own.
 */
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
