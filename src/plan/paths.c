/*-------------------------------------------------------------------------
 *
 * paths.c
 *		Adds the paths of a foreign table.
 *
 * Considers a scan of the whole table, scans for each outer row by an index, and scans in an order
 * that MongoDB has.  relation.c has estimated the table before; index.c knows what indexes find,
 * order.c which orders MongoDB has, and cost.c what a scan costs.
 *
 * The callback mongo_get_foreign_paths() is at the end, below the parts that add these paths.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "options.h"
#include "convert.h"
#include "translate.h"

#include "access/xact.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/clauses.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"

/* ------------- A scan for each outer row, or value of a parameter ------------ */

/* A way to parameterize a scan of the table. */
typedef struct Parameterization
{
	Relids		required_outer;
	bool		served;			/* an index finds the documents for a row */
	bool		unique;			/* at most one */
	List	   *indexable;		/* MongoClause *, of these clauses */
	List	   *clauses;		/* RestrictInfo *, if the pipeline's
								 * parameters have no value without outer rows */
} Parameterization;

/* Returns the parameterization by these relations; appends it to *found if it is not there. */
static Parameterization *
find_parameterization(Relids required_outer, List **found)
{
	Parameterization *parameterization;
	ListCell   *cell;

	foreach(cell, *found)
	{
		parameterization = lfirst(cell);
		if (bms_equal(parameterization->required_outer, required_outer))
			return parameterization;
	}
	parameterization = palloc0(sizeof(Parameterization));
	parameterization->required_outer = required_outer;
	*found = lappend(*found, parameterization);
	return parameterization;
}

/*
 * Returns 'found' with the parameterization by this join clause, if it is of use: MongoDB can test
 * the clause once the outer row is known, or it may give a value to a parameter of the table's
 * pipeline.
 */
static List *
try_parameterization(PlannerInfo *root, RelOptInfo *baserel, RestrictInfo *rinfo, List *found)
{
	MongoRelation *relation = baserel->fdw_private;
	MongoTranslation translation = {.columns = relation->columns};
	MongoCondition condition;
	Parameterization *parameterization;
	Relids		required_outer;
	double		share;
	bool		unique = false;

	if (!join_clause_is_movable_to(rinfo, baserel))
		return found;
	required_outer = bms_union(rinfo->clause_relids, baserel->lateral_relids);
	required_outer = bms_del_member(required_outer, baserel->relid);
	if (bms_is_empty(required_outer))
		return found;
	if (relation->unbound)
	{
		parameterization = find_parameterization(required_outer, &found);
		parameterization->clauses = lappend(parameterization->clauses, rinfo);
		return found;
	}
	condition = mongo_translate_restriction(&translation, baserel, rinfo,
											mongo_bson_create());
	if (condition.exactness == MONGO_NOT_SHIPPABLE)
		return found;

	parameterization = find_parameterization(required_outer, &found);
	parameterization->served |= mongo_index_finds(root, baserel, list_make1(&condition),
												  &share, &unique) ||
		mongo_calls_match((Node *) rinfo->clause, &baserel->relid);
	parameterization->unique |= unique;
	parameterization->indexable = mongo_append_indexable(parameterization->indexable, rinfo,
														 &condition);
	return found;
}

/* What generate_implied_equalities_for_column() is asked for, one at a time. */
typedef struct EquivalenceSearch
{
	Expr	   *current;		/* the member being dealt with, or NULL */
	List	   *done;			/* members dealt with before */
} EquivalenceSearch;

/* Chooses one member that has not been processed; a callback. */
static bool
is_next_member(PlannerInfo *root pg_attribute_unused(), RelOptInfo *rel pg_attribute_unused(),
			   EquivalenceClass *ec pg_attribute_unused(), EquivalenceMember *em, void *arg)
{
	EquivalenceSearch *search = arg;

	if (search->current != NULL)
		return equal(em->em_expr, search->current);
	if (list_member(search->done, em->em_expr))
		return false;
	search->current = em->em_expr;
	return true;
}

/* Returns 'found' with parameterizations by join clauses that equivalence classes imply. */
static List *
find_equivalences(PlannerInfo *root, RelOptInfo *baserel, List *found)
{
	EquivalenceSearch search = {NULL, NIL};

	for (;;)
	{
		List	   *clauses;
		ListCell   *cell;

		search.current = NULL;
		clauses = generate_implied_equalities_for_column(root, baserel,
														 is_next_member, &search,
														 baserel->lateral_referencers);
		if (search.current == NULL)
			return found;
		foreach(cell, clauses)
			found = try_parameterization(root, baserel,
										 lfirst_node(RestrictInfo, cell), found);
		search.done = lappend(search.done, search.current);
	}
}

/*
 * Returns a copy of 'list', with the List at offset 'member' of each parameterization that needs
 * no relations but these.
 */
static List *
with_lists(const List *list, List *parameterizations, Relids required_outer, size_t member)
{
	List	   *result = list_copy(list);

	foreach_ptr(const Parameterization, one, parameterizations)
	{
		if (bms_is_subset(one->required_outer, required_outer))
			result = list_concat(result, *(List **) ((char *) one + member));
	}
	return result;
}

/* Adds a scan for each outer row, by an index; one of the whole collection is never worth it. */
static void
add_parameterized_path(PlannerInfo *root, RelOptInfo *baserel, List *parameterizations,
					   const Parameterization *parameterization)
{
	MongoRelation *relation = baserel->fdw_private;
	ParamPathInfo *info;
	double		examined_rows;
	double		remote_rows;
	double		share;
	MongoEstimate estimate;
	QualCost	clauses;
	List	   *sent = NIL;

	if (!parameterization->served)
		return;
	info = get_baserel_parampathinfo(root, baserel, parameterization->required_outer);
	share = mongo_range_share(baserel, info->ppi_clauses);
	info->ppi_rows = clamp_row_est(info->ppi_rows * share);
	if (parameterization->unique)
		info->ppi_rows = 1;
	else if (relation->unbound)
		info->ppi_rows = baserel->rows;
	examined_rows = parameterization->unique ? 1 :
		mongo_examined_rows(root, baserel,
							with_lists(relation->indexable, parameterizations,
									   parameterization->required_outer,
									   offsetof(Parameterization, indexable)), NULL);
	foreach_node(RestrictInfo, rinfo, info->ppi_clauses)
	{
		if (!contain_subplans((Node *) rinfo->clause))
			sent = lappend(sent, rinfo);
	}
	remote_rows = info->ppi_rows;
	/* with those that conditions leave out which PostgreSQL tests */
	if (relation->remote_rows > baserel->rows || list_length(sent) < list_length(info->ppi_clauses))
		remote_rows = clamp_row_est(relation->remote_rows * share *
									clauselist_selectivity(root, sent, baserel->relid, JOIN_INNER, NULL));
	remote_rows = Min(remote_rows, Min(relation->remote_rows, examined_rows));
	estimate = mongo_estimate_scan(baserel, remote_rows,
								   mongo_indexed_cost(relation, examined_rows, parameterization->unique));
	estimate.rows = info->ppi_rows;
	/* one of them may contain a subquery */
	cost_qual_eval(&clauses, info->ppi_clauses, root);
	estimate.startup_cost += clauses.startup;
	estimate.total_cost += clauses.startup + remote_rows * clauses.per_tuple;
	add_path(baserel, mongo_foreign_path(root, baserel, NULL, estimate, NIL, info->ppi_req_outer,
										 NULL, NULL));
}

/* So many combinations of outer relations are tried for a pipeline's parameters. */
#define MOST_COMBINATIONS	64

/* Adds the unions of parameterizations, since one alone may not give values to all parameters. */
static List *
combine(List *parameterizations)
{
	for (int i = 1; i < list_length(parameterizations); i++)
	{
		for (int j = 0; j < i && list_length(parameterizations) < MOST_COMBINATIONS; j++)
		{
			const Parameterization *one = list_nth(parameterizations, i);
			const Parameterization *other = list_nth(parameterizations, j);

			(void) find_parameterization(bms_union(one->required_outer, other->required_outer),
										 &parameterizations);
		}
	}
	return parameterizations;
}

/* Returns the parameterizations by all join clauses, including those that are only implied. */
static List *
find_parameterizations(PlannerInfo *root, RelOptInfo *baserel)
{
	List	   *found = NIL;
	ListCell   *cell;

	foreach(cell, baserel->joininfo)
		found = try_parameterization(root, baserel, lfirst_node(RestrictInfo, cell), found);
	return baserel->has_eclass_joins ? find_equivalences(root, baserel, found) : found;
}

/*
 * Adds paths in which outer rows give values to the parameters of the table's pipeline that
 * have none by the table's own restrictions.
 *
 * The path without these, which is an error when it is executed, must never be chosen before
 * them.  Nor must that of a change stream, which would start at the present.
 */
static void
add_bound_paths(PlannerInfo *root, RelOptInfo *baserel)
{
	const MongoRelation *relation = baserel->fdw_private;
	List	   *parameterizations = combine(find_parameterizations(root, baserel));
	bool		is_served = false;
	Path	   *path = mongo_foreign_path(root, baserel, NULL, mongo_estimate_plain_scan(baserel),
										  NIL, baserel->lateral_relids, NULL, NULL);

	foreach_ptr(Parameterization, parameterization, parameterizations)
	{
		List	   *clauses = with_lists(baserel->baserestrictinfo, parameterizations,
										 parameterization->required_outer,
										 offsetof(Parameterization, clauses));

		parameterization->served = mongo_binds_parameters(mongo_find_bindings(relation, clauses));
		is_served |= parameterization->served;
		add_parameterized_path(root, baserel, parameterizations, parameterization);
	}
	if (is_served || relation->options->change_stream == NULL)
		mongo_disable_path(path);
	add_path(baserel, path);
}

/* ------ Paths over one foreign table that give its rows in an order ------- */

/* Adds a path by an index, which examines so many documents, or one that is sorted (-1). */
static void
add_scan_in_order(PlannerInfo *root, RelOptInfo *baserel, List *pathkeys,
				  const MongoOrder *order, double indexed_rows)
{
	add_path(baserel, mongo_foreign_path(root, baserel, NULL,
										 mongo_estimate_ordered_scan(root, baserel, order, indexed_rows),
										 pathkeys, baserel->lateral_relids,
										 mongo_second_order(root, baserel,
															baserel->reltarget->exprs, pathkeys,
															false), NULL));
}

/* Adds a path in this order by an index; returns false if no index has it. */
static bool
add_indexed_order(PlannerInfo *root, RelOptInfo *baserel, List *pathkeys)
{
	MongoOrder	order;
	double		indexed_rows;

	if (!mongo_find_order(baserel, pathkeys, &order) ||
		!mongo_order_is_indexed(root, baserel, &order, &indexed_rows))
		return false;
	add_scan_in_order(root, baserel, pathkeys, &order, indexed_rows);
	return true;
}

/*
 * Adds paths in this order; returns false if no index has it.  MongoDB may find the rows by one
 * index and sort them, or go through another that has them in order.
 */
static bool
add_wanted_order(PlannerInfo *root, RelOptInfo *baserel, List *pathkeys)
{
	const MongoRelation *relation = baserel->fdw_private;
	MongoOrder	order;
	double		indexed_rows;
	bool		indexed;

	if (!mongo_find_order(baserel, pathkeys, &order))
		return false;
	indexed = mongo_order_is_indexed(root, baserel, &order, &indexed_rows);
	if (indexed)
		add_scan_in_order(root, baserel, pathkeys, &order, indexed_rows);
	if (!indexed || relation->examined_rows < indexed_rows)
		add_scan_in_order(root, baserel, pathkeys, &order, -1);
	return indexed;
}

/* Adds a path by as many of the first keys as an index has, to be sorted by the rest. */
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

/* Adds paths in the order of columns that are equal to those of other tables. */
static void
add_merge_orders(PlannerInfo *root, RelOptInfo *baserel)
{
	const MongoRelation *relation = baserel->fdw_private;

	/*
	 * an index that is gone would mean an error for what does not fit into
	 * memory
	 */
	if (!enable_mergejoin || !baserel->has_eclass_joins ||
		relation->columns->statistics == NULL ||
		!mongo_feature_enabled(relation->options, MONGO_FEATURE_DISK_USE))
		return;
	foreach_ptr(EquivalenceClass, class, root->eq_classes)
	{
		PathKey    *pathkey;

		if (!eclass_useful_for_merging(root, class, baserel))
			continue;
		pathkey = make_canonical_pathkey(root, class, linitial_oid(class->ec_opfamilies),
										 BTLessStrategyNumber, false);
		add_indexed_order(root, baserel, list_make1(pathkey));
	}
}

/* ------------------------ All paths of a foreign table --------------------- */

/*
 * mongo_get_foreign_paths
 *		Adds the table's paths; a callback of PostgreSQL.
 */
void
mongo_get_foreign_paths(PlannerInfo *root, RelOptInfo *baserel,
						Oid foreigntableid pg_attribute_unused())
{
	const MongoRelation *relation = baserel->fdw_private;
	MongoEstimate plain = mongo_estimate_plain_scan(baserel);
	List	   *parameterizations = NIL;
	Path	   *path;
	ListCell   *cell;

	if (relation->unbound)
	{
		add_bound_paths(root, baserel);
		return;
	}
	path = mongo_foreign_path(root, baserel, NULL, plain, NIL, baserel->lateral_relids,
							  mongo_enable_pushdown ?
							  mongo_second_order(root, baserel, baserel->reltarget->exprs,
												 NIL, false) : NULL, NULL);
	/* only the row of the other table lets MongoDB test mongo_match() */
	if (relation->matches_outer)
		mongo_disable_path(path);
	add_path(baserel, path);
	if (!mongo_enable_pushdown)
		return;
	if (!relation->matches_outer)
	{
		if (!add_wanted_order(root, baserel, root->query_pathkeys))
			add_begun_order(root, baserel, root->query_pathkeys);
		add_merge_orders(root, baserel);
	}
	parameterizations = find_parameterizations(root, baserel);
	foreach(cell, parameterizations)
		add_parameterized_path(root, baserel, parameterizations, lfirst(cell));
}
