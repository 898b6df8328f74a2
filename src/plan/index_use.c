/*-------------------------------------------------------------------------
 *
 * index_use.c
 *		Which of the indexes that are known find a table's documents, and in
 *		which order they give them.
 *
 * https://www.mongodb.com/docs/manual/core/indexes/index-types/index-compound/
 * has which conditions a compound index serves, and
 * https://www.mongodb.com/docs/manual/tutorial/sort-results-with-indexes/
 * which orders.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index_use.h"

#include "optimizer/optimizer.h"

/* What an index makes of the conditions that there are. */
typedef struct IndexBounds
{
	List	   *rinfos;			/* those that it tests */
	bool		unique;			/* they leave at most one document */
} IndexBounds;

/* learned_of: the rows of a derived table are in no index. */
static const MongoStatistics *
learned_of(const MongoRelation *relation)
{
	return relation->columns->derivation == NULL ? relation->columns->statistics : NULL;
}

List *
mongo_note_sought(List *sought, RestrictInfo *rinfo, const MongoCondition *condition)
{
	MongoSought *one;

	if (condition->seek == MONGO_SEEK_NOTHING && !condition->indexed)
		return sought;
	one = palloc(sizeof(MongoSought));
	one->rinfo = rinfo;
	one->seek = condition->seek;
	one->path = condition->path;
	one->indexed = condition->indexed;
	return lappend(sought, one);
}

/* can_seek: a hash says nothing of what is less or more. */
static bool
can_seek(MongoKeyKind kind, MongoSeek seek)
{
	return kind == MONGO_KEY_HASHED ? seek >= MONGO_SEEK_VALUES :
		seek != MONGO_SEEK_NOTHING;
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
	const MongoSought *best = NULL;
	ListCell   *cell;

	foreach(cell, sought)
	{
		const MongoSought *one = lfirst(cell);

		if (one->path != NULL && mongo_key_covers(key, one->path) &&
			(best == NULL || one->seek > best->seek))
			best = one;
	}
	if (best == NULL)
		return MONGO_SEEK_NOTHING;
	if (best->seek != MONGO_SEEK_RANGE || index->multikey || key->kind == MONGO_KEY_WILDCARD)
	{
		*rinfos = lappend(*rinfos, best->rinfo);
		return best->seek;
	}
	foreach(cell, sought)
	{
		const MongoSought *one = lfirst(cell);

		if (one->path != NULL && mongo_key_covers(key, one->path))
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
		if (!can_seek(index->keys[i].kind, seek))
			break;
		bounds.rinfos = list_concat(bounds.rinfos, rinfos);
		if (seek == MONGO_SEEK_RANGE)
			break;
	}
	return bounds;
}

/* rows_within: of all documents, those that satisfy the conditions. */
static double
rows_within(PlannerInfo *root, RelOptInfo *baserel, List *rinfos)
{
	return clamp_row_est(baserel->tuples *
						 clauselist_selectivity(root, rinfos, baserel->relid,
												JOIN_INNER, NULL));
}

/*
 * consider_bounds: the fewer documents of 'best' and of these bounds.  *former are
 * the conditions of the bounds that were considered last.
 */
static double
consider_bounds(PlannerInfo *root, RelOptInfo *baserel, IndexBounds bounds,
				List **former, double best)
{
	if (bounds.rinfos == NIL)
		return best;
	if (bounds.unique)
		return Min(best, 1);
	if (equal(bounds.rinfos, *former))
		return best;
	*former = bounds.rinfos;
	return Min(best, rows_within(root, baserel, bounds.rinfos));
}

/* alone: the conditions that are indexed whatever else there is, like this one. */
static IndexBounds
alone(const MongoSought *sought, List *all)
{
	MongoIndexKey key = {sought->path, MONGO_KEY_ASCENDING};
	MongoIndex	index = {.keys = &key, .nkeys = 1};

	if (sought->path == NULL)
		return (IndexBounds) {list_make1(sought->rinfo), false};
	return bounds_of_index(&index, all);
}

/* is_learned: does an index lead with the field that is known by more than the user's word? */
static bool
is_learned(const MongoStatistics *statistics, const MongoSought *sought)
{
	return sought->path != NULL &&
		(mongo_index_uses(statistics, sought->path) & mongo_seek_use(sought->seek)) != 0;
}

double
mongo_examined_rows(PlannerInfo *root, RelOptInfo *baserel, List *sought)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoStatistics *statistics = learned_of(relation);
	double		best = baserel->tuples;
	List	   *former = NIL;
	ListCell   *cell;

	foreach(cell, sought)
	{
		const MongoSought *one = lfirst(cell);

		if (one->indexed && !is_learned(statistics, one))
			best = consider_bounds(root, baserel, alone(one, sought), &former, best);
	}
	for (int i = 0; statistics != NULL && sought != NIL && i < statistics->nindexes; i++)
	{
		const MongoIndex *index = &statistics->indexes[i];

		if (index->uses != 0)
			best = consider_bounds(root, baserel, bounds_of_index(index, sought),
								   &former, best);
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
	const MongoStatistics *statistics = learned_of(relation);
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
			   const MongoOrderKey *keys, int nkeys, double *examined_rows)
{
	const MongoRelation *relation = baserel->fdw_private;
	List	   *former = NIL;
	double		rows;

	if (!gives_order(index, relation->sought, keys, nkeys))
		return false;
	rows = consider_bounds(root, baserel, bounds_of_index(index, relation->sought),
						   &former, baserel->tuples);
	*examined_rows = Min(*examined_rows, rows);
	return true;
}

bool
mongo_index_gives_order(PlannerInfo *root, RelOptInfo *baserel,
						const MongoOrderKey *keys, int nkeys, double *examined_rows)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoStatistics *statistics = learned_of(relation);
	MongoIndexKey key = {keys[0].path, MONGO_KEY_ASCENDING};
	MongoIndex	said = {.keys = &key, .nkeys = 1, .uses = MONGO_INDEX_ANY_USE};
	bool		found = false;

	*examined_rows = baserel->tuples;
	if (keys[0].indexed)
		found = consider_order(root, baserel, &said, keys, nkeys, examined_rows);
	for (int i = 0; statistics != NULL && i < statistics->nindexes; i++)
		found |= consider_order(root, baserel, &statistics->indexes[i], keys, nkeys,
								examined_rows);
	return found;
}

bool
mongo_index_walks(const RelOptInfo *baserel, const char *path)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoStatistics *statistics = learned_of(relation);
	const MongoOrderKey key = {.path = path, .ascending = true};

	for (int i = 0; statistics != NULL && i < statistics->nindexes; i++)
	{
		const MongoIndex *index = &statistics->indexes[i];

		if (gives_order(index, relation->sought, &key, 1) &&
			list_length(bounds_of_index(index, relation->sought).rinfos) ==
			list_length(baserel->baserestrictinfo))
			return true;
	}
	return false;
}
