/*-------------------------------------------------------------------------
 *
 * paths.c
 *		Paths over one foreign table, and what they cost.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan.h"

#include "bson_memory.h"
#include "cost.h"
#include "hashed_scan.h"
#include "index_use.h"
#include "parallel.h"
#include "relation.h"
#include "settings.h"
#include "sorted_paths.h"

#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"

/* A way to parameterize a scan of the table. */
typedef struct Parameterization
{
	Relids		required_outer;
	bool		served;			/* an index finds the documents for a row */
	bool		unique;			/* at most one */
	List	   *sought;			/* MongoSought *, of these clauses */
} Parameterization;

/* add_plain_path: a scan with the restrictions of the table alone. */
static void
add_plain_path(PlannerInfo *root, RelOptInfo *baserel)
{
	MongoRelation *relation = baserel->fdw_private;
	Cost		startup_cost;
	Cost		total_cost;

	mongo_estimate_scan(baserel, relation->remote_rows,
						relation->examined_rows, &startup_cost, &total_cost);
	add_path(baserel, (Path *)
			 mongo_foreignscan_path(root, baserel, NULL, baserel->rows,
									startup_cost, total_cost, NIL, baserel->lateral_relids,
									mongo_enable_pushdown ? mongo_hashed_path(root, baserel) : NULL,
									NIL));
}

/*
 * find_parameterization: that by these relations, which is appended to *found if it is
 * not there.
 */
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
 * try_parameterization: can this join clause be tested by MongoDB once the
 * outer row is known, and found through an index?
 */
static List *
try_parameterization(PlannerInfo *root, RelOptInfo *baserel, RestrictInfo *rinfo,
					 List *found)
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
	condition = mongo_translate_restriction(&translation, baserel, rinfo,
											bson_create_in(CurrentMemoryContext));
	if (condition.grade == MONGO_NOT_SHIPPABLE)
		return found;

	required_outer = bms_union(rinfo->clause_relids, baserel->lateral_relids);
	required_outer = bms_del_member(required_outer, baserel->relid);
	if (bms_is_empty(required_outer))
		return found;

	parameterization = find_parameterization(required_outer, &found);
	parameterization->served |= mongo_index_finds(root, baserel, list_make1(&condition),
												  &share, &unique);
	parameterization->unique |= unique;
	parameterization->sought = mongo_note_sought(parameterization->sought, rinfo, &condition);
	return found;
}

/* What generate_implied_equalities_for_column() is asked for, one at a time. */
typedef struct EquivalenceSearch
{
	Expr	   *current;		/* the member being dealt with, or NULL */
	List	   *done;			/* members dealt with before */
} EquivalenceSearch;

/* is_next_member: a callback: choose one member that has not been dealt with. */
static bool
is_next_member(PlannerInfo *root pg_attribute_unused(),
			   RelOptInfo *rel pg_attribute_unused(),
			   EquivalenceClass *ec pg_attribute_unused(),
			   EquivalenceMember *em, void *arg)
{
	EquivalenceSearch *search = arg;

	if (search->current != NULL)
		return equal(em->em_expr, search->current);
	if (list_member(search->done, em->em_expr))
		return false;
	search->current = em->em_expr;
	return true;
}

/* Join clauses that are only implied: members of equivalence classes. */
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

/* sought_with: by the restrictions, and by clauses over no other outer relations. */
static List *
sought_with(const MongoRelation *relation, List *parameterizations, Relids required_outer)
{
	List	   *sought = list_copy(relation->sought);
	ListCell   *cell;

	foreach(cell, parameterizations)
	{
		const Parameterization *one = lfirst(cell);

		if (bms_is_subset(one->required_outer, required_outer))
			sought = list_concat(sought, one->sought);
	}
	return sought;
}

/*
 * add_parameterized_path: a scan for each outer row, by an index.  One of the whole
 * collection for each is never worth it.
 */
static void
add_parameterized_path(PlannerInfo *root, RelOptInfo *baserel, List *parameterizations,
					   const Parameterization *parameterization)
{
	MongoRelation *relation = baserel->fdw_private;
	ParamPathInfo *info;
	double		examined_rows;
	double		remote_rows;
	Cost		startup_cost;
	Cost		total_cost;

	if (!parameterization->served)
		return;
	info = get_baserel_parampathinfo(root, baserel, parameterization->required_outer);
	if (parameterization->unique)
		info->ppi_rows = 1;
	examined_rows = parameterization->unique ? 1 :
		mongo_examined_rows(root, baserel,
							sought_with(relation, parameterizations,
										parameterization->required_outer));
	remote_rows = info->ppi_rows;
	/* with those that conditions leave out which PostgreSQL tests */
	if (relation->remote_rows > baserel->rows)
		remote_rows = clamp_row_est(relation->remote_rows *
									clauselist_selectivity(root, info->ppi_clauses,
														   baserel->relid, JOIN_INNER, NULL));
	remote_rows = Min(remote_rows, Min(relation->remote_rows, examined_rows));
	mongo_estimate_scan(baserel, remote_rows, examined_rows,
						&startup_cost, &total_cost);
	add_path(baserel, (Path *)
			 mongo_foreignscan_path(root, baserel, NULL, info->ppi_rows,
									startup_cost, total_cost, NIL,
									info->ppi_req_outer, NULL, NIL));
}

void
mongo_get_foreign_paths(PlannerInfo *root, RelOptInfo *baserel,
						Oid foreigntableid pg_attribute_unused())
{
	List	   *parameterizations = NIL;
	ListCell   *cell;

	add_plain_path(root, baserel);
	if (!mongo_enable_pushdown)
	{
		mongo_keep_out_of_workers(baserel);
		return;
	}
	mongo_add_sorted_paths(root, baserel);

	foreach(cell, baserel->joininfo)
		parameterizations = try_parameterization(root, baserel,
												 lfirst_node(RestrictInfo, cell),
												 parameterizations);
	if (baserel->has_eclass_joins)
		parameterizations = find_equivalences(root, baserel, parameterizations);
	foreach(cell, parameterizations)
		add_parameterized_path(root, baserel, parameterizations, lfirst(cell));
	mongo_keep_out_of_workers(baserel);
	mongo_add_parallel_paths(root, baserel);
}
