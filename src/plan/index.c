/*-------------------------------------------------------------------------
 *
 * index.c
 *		Estimates which documents indexes find.
 *
 * Knows the indexes that ANALYZE has seen, and those of columns that the option "indexed" names.
 * Decides how many documents MongoDB examines for conditions, and whether an index has a sort
 * order.  MongoDB chooses its plans itself, so all of this only decides what a scan is expected to
 * cost, and whether a command should use no index (mongo_choose_natural()).
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

#include "cost.h"
#include "plan_internal.h"
#include "translate.h"

#include <math.h>

#include "access/sysattr.h"
#include "optimizer/optimizer.h"
#include "utils/float.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

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

/*
 * Returns the table's expression that the clause compares with another table's, if by < or > and
 * the like; otherwise NULL.  *is_upper tells whether that is its upper bound.
 */
static Node *
bounded_by_outer(const RelOptInfo *baserel, const RestrictInfo *rinfo, bool *is_upper)
{
	const OpExpr *operation = rinfo == NULL ? NULL : (const OpExpr *) rinfo->clause;
	Oid			estimator;
	bool		is_less;
	bool		is_left;

	if (rinfo == NULL || !IsA(operation, OpExpr) || list_length(operation->args) != 2 ||
		bms_is_subset(rinfo->clause_relids, baserel->relids))
		return NULL;
	estimator = get_oprrest(operation->opno);
	is_less = estimator == F_SCALARLTSEL || estimator == F_SCALARLESEL;
	if (!is_less && estimator != F_SCALARGTSEL && estimator != F_SCALARGESEL)
		return NULL;
	is_left = bms_is_subset(rinfo->left_relids, baserel->relids);
	*is_upper = is_less == is_left;
	return list_nth(operation->args, is_left ? 0 : 1);
}

/*
 * mongo_range_share
 *		Returns the factor by which fewer rows than clauselist_selectivity() expects are within
 *		ranges, of which another table's row gives both bounds by these RestrictInfos.
 *
 * PostgreSQL recognizes only ranges of constants, and takes one bound for independent of the other.
 */
double
mongo_range_share(const RelOptInfo *baserel, List *rinfos)
{
	double		share = 1;

	foreach_node(RestrictInfo, one, rinfos)
	{
		bool		is_upper;
		Node	   *bounded = bounded_by_outer(baserel, one, &is_upper);

		if (bounded == NULL || !is_upper)
			continue;
		foreach_node(RestrictInfo, other, rinfos)
		{
			if (!equal(bounded_by_outer(baserel, other, &is_upper), bounded) || is_upper)
				continue;
			share *= DEFAULT_RANGE_INEQ_SEL / (DEFAULT_INEQ_SEL * DEFAULT_INEQ_SEL);
			break;
		}
	}
	return share;
}

static double
rows_within(PlannerInfo *root, RelOptInfo *baserel, List *rinfos)
{
	return clamp_row_est(baserel->tuples * mongo_range_share(baserel, rinfos) *
						 clauselist_selectivity(root, rinfos, baserel->relid,
												JOIN_INNER, NULL));
}

/*
 * Returns the minimum of 'best' and the number of documents within the bounds.  If that is less,
 * *served, unless NULL, becomes the bounds' conditions.
 */
static double
consider_bounds(PlannerInfo *root, RelOptInfo *baserel, IndexBounds bounds, double best,
				List **served)
{
	double		rows;

	if (bounds.rinfos == NIL)
		return best;
	rows = bounds.unique ? 1 : rows_within(root, baserel, bounds.rinfos);
	if (rows < best && served != NULL)
		*served = bounds.rinfos;
	return Min(best, rows);
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
 * 'indexable' is a list of MongoClause *, made by mongo_append_indexable().  *served, which is NIL,
 * becomes the list of RestrictInfo * that this index tests; 'served' may be NULL.
 */
double
mongo_examined_rows(PlannerInfo *root, RelOptInfo *baserel, List *indexable, List **served)
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
			best = consider_bounds(root, baserel, bounds_of_option(one, indexable), best,
								   served);
	}
	for (int i = 0; statistics != NULL && indexable != NIL && i < statistics->nindexes; i++)
	{
		const MongoIndex *index = &statistics->indexes[i];

		if (index->uses != 0)
			best = consider_bounds(root, baserel, bounds_of_index(index, indexable), best, served);
	}
	return best;
}

/* Tells whether ANALYZE knows how many documents have the condition, of columns and constants. */
static bool
is_known_share(PlannerInfo *root, const RelOptInfo *baserel, Node *node)
{
	if (IsA(node, RestrictInfo))
		node = (Node *) ((RestrictInfo *) node)->clause;
	if (IsA(node, OpExpr) && (IsA(linitial(((OpExpr *) node)->args), Const) || IsA(llast(((OpExpr *) node)->args), Const)))
	{
		List	   *range = mongo_local_time_range(root, ((MongoRelation *) baserel->fdw_private)->columns,
												   (OpExpr *) node);

		if (range != NIL)
			node = linitial(range);
	}
	if (IsA(node, Const))
		return true;
	if (IsA(node, Var) || IsA(node, RelabelType))
	{
		VariableStatData variable;
		bool		result;

		examine_variable(root, node, 0, &variable);
		result = HeapTupleIsValid(variable.statsTuple);
		ReleaseVariableStats(variable);
		return result;
	}
	if (IsA(node, BoolExpr) || IsA(node, OpExpr) || IsA(node, ScalarArrayOpExpr))
	{
		ListCell   *cell;

		foreach(cell, IsA(node, BoolExpr) ? ((BoolExpr *) node)->args :
				IsA(node, OpExpr) ? ((OpExpr *) node)->args : ((ScalarArrayOpExpr *) node)->args)
		{
			/* nothing is known of an operator's result */
			if (!is_known_share(root, baserel, lfirst(cell)) ||
				(!IsA(node, BoolExpr) && IsA(lfirst(cell), OpExpr)))
				return false;
		}
		return true;
	}
	return IsA(node, NullTest) && is_known_share(root, baserel, (Node *) ((NullTest *) node)->arg);
}

/* Returns the paths of columns in the documents; NULL for one that is no field. */
static List *
paths_of_columns(const RelOptInfo *baserel, const Bitmapset *columns)
{
	const MongoRelation *relation = baserel->fdw_private;
	List	   *paths = NIL;
	int			column = -1;

	while ((column = bms_next_member(columns, column)) >= 0)
	{
		AttrNumber	attnum = column + FirstLowInvalidHeapAttributeNumber;

		paths = lappend(paths, attnum <= 0 ? NULL : unconstify(char *, mongo_column_path(relation->columns, attnum)));
	}
	return paths;
}

/* Tells whether one index contains all fields that a query reads. */
static bool
has_all_fields(const RelOptInfo *baserel, const MongoIndex *index)
{
	Bitmapset  *read = NULL;
	ListCell   *cell;

	if (index->uses == 0)
		return false;
	pull_varattnos((Node *) baserel->reltarget->exprs, baserel->relid, &read);
	foreach_node(RestrictInfo, rinfo, baserel->baserestrictinfo)
		pull_varattnos((Node *) rinfo->clause, baserel->relid, &read);
	foreach(cell, paths_of_columns(baserel, read))
	{
		bool		found = false;

		for (int i = 0; lfirst(cell) != NULL && i < index->nkeys; i++)
			found |= mongo_key_covers(&index->keys[i], lfirst(cell));
		if (!found)
			return false;
	}
	return true;
}

/* Tells whether an index of this cost, for each document that there is, is worse than reading all. */
static bool
is_costly(double index_cost, double filter_cost)
{
	return index_cost >= MONGO_COST_EXAMINED + filter_cost;
}

/* Tells whether an index begins with one of these columns. */
static bool
begins_index(const RelOptInfo *baserel, const MongoStatistics *statistics, const Bitmapset *columns)
{
	ListCell   *cell;

	foreach(cell, paths_of_columns(baserel, columns))
	{
		for (int i = 0; lfirst(cell) != NULL && i < statistics->nindexes; i++)
		{
			const MongoIndex *index = &statistics->indexes[i];

			if (index->nkeys > 0 && mongo_key_covers(&index->keys[0], lfirst(cell)))
				return true;
		}
	}
	return false;
}

/*
 * Returns the least cost, for each document that there is, of an index that MongoDB may take for a
 * condition that is not indexable for us, such as LIKE with a prefix, <> or IS NULL; infinity if
 * there is no such condition.  A large cost counts only if ANALYZE knows the share.
 */
static double
cost_found_otherwise(PlannerInfo *root, const RelOptInfo *baserel, const MongoStatistics *statistics,
					 double filter_cost)
{
	const MongoRelation *relation = baserel->fdw_private;
	double		least = get_float8_infinity();

	foreach_node(RestrictInfo, rinfo, baserel->baserestrictinfo)
	{
		bool		is_other = !list_member_ptr(relation->kept, rinfo);
		Bitmapset  *tested = NULL;
		double		share;
		double		cost;

		foreach_ptr(const MongoClause, clause, relation->indexable)
			is_other &= clause->rinfo != rinfo;
		pull_varattnos((Node *) rinfo->clause, baserel->relid, &tested);
		if (!is_other || !begins_index(baserel, statistics, tested))
			continue;
		share = clause_selectivity(root, (Node *) rinfo, baserel->relid, JOIN_INNER, NULL);
		cost = share * mongo_fetching_cost(IsA(rinfo->clause, NullTest) ? mongo_order_of_value(share) :
										   mongo_order_share(root, baserel, NULL, (Node *) rinfo->clause));
		if (!is_costly(cost, filter_cost) || is_known_share(root, baserel, (Node *) rinfo))
			least = Min(least, cost);
	}
	return least;
}

/*
 * mongo_choose_natural
 *		Chooses the hint {$natural: 1} for scans of the relation if that is faster: the best index
 *		would fetch so many documents that reading all of them in their order takes less.
 *
 * MongoDB takes an index wherever one fits.  'filter_cost' is what testing the filter costs for
 * each document.  Only shares that ANALYZE knows of constants count, because a plan for any
 * parameters, or for a value that is guessed, would read the whole collection for a few documents.
 * If another condition may find fewer documents by an index, lowers the relation's examined_rows
 * instead.  Nor does it pay if only the first rows may be wanted, or if an index contains all that
 * the query reads.
 *
 * A clustered collection or one without indexes, as a view, gets no hint, nor does a command with
 * mongo_match(), since $text and $near need their index.
 */
void
mongo_choose_natural(PlannerInfo *root, RelOptInfo *baserel, double filter_cost)
{
	MongoRelation *relation = baserel->fdw_private;
	const MongoStatistics *statistics = known_indexes(relation);
	const MongoIndex *id = mongo_id_index(statistics);
	double		share = relation->examined_rows / Max(baserel->tuples, 1);
	double		other_cost;

	if (!is_costly(share * mongo_fetching_cost(relation->order_share), filter_cost) || id == NULL || id->clustered ||
		relation->analyzed_rows <= 0 || relation->calls_match ||
		relation->options->hint != NULL || mongo_hint[0] != '\0' ||
		!mongo_feature_enabled(relation->options, MONGO_FEATURE_NATURAL) ||
		(root->tuple_fraction > 0 && !root->parse->hasAggs && root->parse->groupClause == NIL))
		return;
	foreach_ptr(const MongoClause, clause, relation->indexable)
	{
		if (!is_known_share(root, baserel, (Node *) clause->rinfo))
			return;
	}
	other_cost = cost_found_otherwise(root, baserel, statistics, filter_cost);
	if (!is_costly(other_cost, filter_cost))
	{
		if (share < 1)
			relation->examined_rows = Min(relation->examined_rows,
										  other_cost / mongo_fetching_cost(relation->order_share) * baserel->tuples);
		return;
	}
	if (share >= 1 && isinf(other_cost))
		return;
	for (int i = 0; i < statistics->nindexes; i++)
	{
		if (has_all_fields(baserel, &statistics->indexes[i]))
			return;
	}
	relation->natural = true;
}

/*
 * mongo_index_covers
 *		Tells whether an index tests all restrictions of a table, and has all fields that the query
 *		reads, so that a $group fetches no document.
 */
bool
mongo_index_covers(const RelOptInfo *baserel)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoStatistics *statistics = known_indexes(relation);
	int			nconditions = list_length(baserel->baserestrictinfo);

	if (nconditions == 0 || relation->fit != NULL || mongo_is_pipeline_table(relation->options))
		return false;
	for (int i = 0; statistics != NULL && i < statistics->nindexes; i++)
	{
		const MongoIndex *index = &statistics->indexes[i];

		if (!index->multikey && has_all_fields(baserel, index) &&
			list_length(bounds_of_index(index, relation->indexable).rinfos) == nconditions)
			return true;
	}
	return false;
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
						   baserel->tuples, NULL);
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
