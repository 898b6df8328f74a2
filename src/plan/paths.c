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
#include "order.h"
#include "parallel.h"
#include "relation.h"
#include "settings.h"

#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"

/* A way to parameterize a scan of the table. */
typedef struct Parameterization
{
	Relids		required_outer;
	bool		unique;			/* at most one document for each outer row */
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
									startup_cost, total_cost, NIL,
									baserel->lateral_relids, NULL, NIL));
}

/* A scan in the order that the query wants at its end. */
static void
add_sorted_path(PlannerInfo *root, RelOptInfo *baserel)
{
	MongoRelation *relation = baserel->fdw_private;
	bool		indexed;
	Cost		startup_cost;
	Cost		total_cost;
	Cost		sort_cost;

	if (!mongo_order_is_shippable(baserel, root->query_pathkeys, &indexed))
		return;
	mongo_estimate_scan(baserel, relation->remote_rows,
						relation->examined_rows, &startup_cost, &total_cost);
	sort_cost = mongo_sort_cost(baserel, root->query_pathkeys, indexed);
	/* sorting begins to give when all has been looked at */
	if (!indexed)
		startup_cost += sort_cost + mongo_examined_cost(baserel, relation->examined_rows);
	add_path(baserel, (Path *)
			 mongo_foreignscan_path(root, baserel, NULL, baserel->rows,
									startup_cost, total_cost + sort_cost,
									root->query_pathkeys,
									baserel->lateral_relids, NULL, NIL));
}

/*
 * try_parameterization: can this join clause be tested by MongoDB once the
 * outer row is known, and found through an index?  A scan of the whole
 * collection for each outer row is never worth it.
 */
static List *
try_parameterization(RelOptInfo *baserel, RestrictInfo *rinfo, List *found)
{
	MongoRelation *relation = baserel->fdw_private;
	MongoTranslation translation = {.columns = relation->columns};
	MongoCondition condition;
	Parameterization *parameterization;
	Relids		required_outer;
	ListCell   *cell;

	if (!join_clause_is_movable_to(rinfo, baserel))
		return found;
	condition = mongo_translate_restriction(&translation, baserel, rinfo,
											bson_create_in(CurrentMemoryContext));
	if (condition.grade == MONGO_NOT_SHIPPABLE || !condition.indexed)
		return found;

	required_outer = bms_union(rinfo->clause_relids, baserel->lateral_relids);
	required_outer = bms_del_member(required_outer, baserel->relid);
	if (bms_is_empty(required_outer))
		return found;

	foreach(cell, found)
	{
		parameterization = lfirst(cell);
		if (bms_equal(parameterization->required_outer, required_outer))
		{
			parameterization->unique |= condition.unique;
			return found;
		}
	}
	parameterization = palloc(sizeof(Parameterization));
	parameterization->required_outer = required_outer;
	parameterization->unique = condition.unique;
	return lappend(found, parameterization);
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
			found = try_parameterization(baserel, lfirst_node(RestrictInfo, cell),
										 found);
		search.done = lappend(search.done, search.current);
	}
}

/* add_parameterized_path: a scan for each outer row, by an index. */
static void
add_parameterized_path(PlannerInfo *root, RelOptInfo *baserel,
					   const Parameterization *parameterization)
{
	MongoRelation *relation = baserel->fdw_private;
	ParamPathInfo *info = get_baserel_parampathinfo(root, baserel,
													parameterization->required_outer);
	double		remote_rows;
	Cost		startup_cost;
	Cost		total_cost;

	if (parameterization->unique)
		info->ppi_rows = 1;
	remote_rows = Min(info->ppi_rows, relation->remote_rows);
	mongo_estimate_scan(baserel, remote_rows, remote_rows,
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
	add_sorted_path(root, baserel);

	foreach(cell, baserel->joininfo)
		parameterizations = try_parameterization(baserel,
												 lfirst_node(RestrictInfo, cell),
												 parameterizations);
	if (baserel->has_eclass_joins)
		parameterizations = find_equivalences(root, baserel, parameterizations);
	foreach(cell, parameterizations)
		add_parameterized_path(root, baserel, lfirst(cell));
	mongo_keep_out_of_workers(baserel);
	mongo_add_parallel_paths(root, baserel);
}
