/*-------------------------------------------------------------------------
 *
 * paths.c
 *		Paths over one foreign table, and what they cost.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_memory.h"
#include "plan.h"
#include "plan_clauses.h"
#include "plan_join.h"
#include "plan_order.h"
#include "plan_parallel.h"

#include <math.h>

#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"

/*
 * What MongoDB spends on a document that it looks at and does not send, in
 * the unit of fdw_tuple_cost: a collection scan takes about a fifth of what
 * sending and decoding do.
 */
#define EXAMINED_DOCUMENT_COST_SHARE	0.2

/* Finding documents through an index costs more for each than scanning does. */
#define INDEXED_DOCUMENT_COST_SHARE		0.5

/* Testing what part of an order a document belongs to. */
#define PART_TEST_COST_SHARE			0.2

/* A way to parameterize a scan of the table. */
typedef struct Parameterization
{
	Relids		required_outer;
	bool		unique;			/* at most one document for each outer row */
} Parameterization;

Cost
mongo_examined_cost(const RelOptInfo *baserel, double examined_rows)
{
	const MongoRelation *relation = baserel->fdw_private;
	bool		scans_all = examined_rows >= baserel->tuples;

	return examined_rows * relation->options->fdw_tuple_cost *
		(scans_all ? EXAMINED_DOCUMENT_COST_SHARE : INDEXED_DOCUMENT_COST_SHARE);
}

void
mongo_estimate_scan(RelOptInfo *baserel, double remote_rows,
					double examined_rows, Cost *startup_cost, Cost *total_cost)
{
	MongoRelation *relation = baserel->fdw_private;
	const MongoTableOptions *options = relation->options;
	Cost		examined_cost;

	*startup_cost = options->fdw_startup_cost + baserel->baserestrictcost.startup +
		baserel->reltarget->cost.startup;
	if (relation->join != NULL)
	{
		*startup_cost += relation->join->setup_cost;
		examined_cost = relation->join->cost;
	}
	else
		examined_cost = mongo_examined_cost(baserel, examined_rows);
	*total_cost = *startup_cost + examined_cost +
		remote_rows * (options->fdw_tuple_cost + cpu_tuple_cost) +
		(relation->all_exact ? 0 : remote_rows * baserel->baserestrictcost.per_tuple) +
		baserel->rows * baserel->reltarget->cost.per_tuple;
}

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

/*
 * mongo_sort_cost: what MongoDB needs to sort, or to follow an index instead of
 * the collection's own order.  Each part of an order is a command, which finds
 * its documents among all unless by an index.
 */
Cost
mongo_sort_cost(RelOptInfo *baserel, List *pathkeys, bool indexed)
{
	MongoRelation *relation = baserel->fdw_private;
	MongoSortPart parts[MONGO_MAX_SORT_PARTS];
	int			more_commands = mongo_sort_parts(baserel, pathkeys, parts) - 1;
	double		rows = relation->remote_rows;
	double		rows_sorted = Max(rows, 2);
	Cost		cost = more_commands * relation->options->fdw_startup_cost;

	if (!indexed && more_commands > 0)
		cost += (more_commands + 1) * relation->examined_rows *
			relation->options->fdw_tuple_cost * PART_TEST_COST_SHARE;
	if (indexed)
		return cost + rows * relation->options->fdw_tuple_cost * INDEXED_DOCUMENT_COST_SHARE;
	return cost + more_commands * mongo_examined_cost(baserel, relation->examined_rows) +
		2 * cpu_operator_cost * rows_sorted * log2(rows_sorted);
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
