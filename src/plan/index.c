/*-------------------------------------------------------------------------
 *
 * index.c
 *		Estimates which documents indexes find.
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
 * First come the bounds of one index, then the questions that plans ask about all of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "translate.h"

#include <math.h>

#include "optimizer/optimizer.h"

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
	MongoIndex	declared = {.keys = &key, .nkeys = 1, .uses = MONGO_INDEX_ANY_USE};
	bool		found = false;

	*examined_rows = baserel->tuples;
	if (order->nkeys == 0 || order->unindexed)
		return false;
	if (order->keys[0].indexed)
		found = consider_order(root, baserel, &declared, order, examined_rows);
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
