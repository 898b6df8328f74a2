/*-------------------------------------------------------------------------
 *
 * cost.c
 *		What MongoDB's work costs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cost.h"

#include "join.h"
#include "relation.h"
#include "split_range.h"

#include <math.h>

#include "optimizer/optimizer.h"
#include "utils/selfuncs.h"

Cost
mongo_examined_cost(const RelOptInfo *baserel, double examined_rows)
{
	const MongoRelation *relation = baserel->fdw_private;
	bool		scans_all = examined_rows >= baserel->tuples;

	return examined_rows * relation->options->fdw_tuple_cost *
		(scans_all ? MONGO_COST_EXAMINED : MONGO_COST_INDEXED);
}

/* estimate_scan: with what it takes to find the rows. */
static void
estimate_scan(RelOptInfo *baserel, double remote_rows, Cost examined_cost,
			  Cost *startup_cost, Cost *total_cost)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoTableOptions *options = relation->options;

	*startup_cost = options->fdw_startup_cost + baserel->baserestrictcost.startup +
		baserel->reltarget->cost.startup;
	if (relation->join != NULL)
		*startup_cost += relation->join->setup_cost;
	*total_cost = *startup_cost + examined_cost +
		remote_rows * (options->fdw_tuple_cost + cpu_tuple_cost) +
		(relation->all_exact ? 0 : remote_rows * baserel->baserestrictcost.per_tuple) +
		baserel->rows * baserel->reltarget->cost.per_tuple;
}

void
mongo_estimate_scan(RelOptInfo *baserel, double remote_rows,
					double examined_rows, Cost *startup_cost, Cost *total_cost)
{
	const MongoRelation *relation = baserel->fdw_private;

	estimate_scan(baserel, remote_rows,
				  relation->join != NULL ? relation->join->cost :
				  mongo_examined_cost(baserel, examined_rows),
				  startup_cost, total_cost);
}

/*
 * sort_cost: of sorting the rows, beyond what it takes to have them.  Each part of the
 * order looks at all that were examined, and tests them for null and NaN.
 */
static Cost
sort_cost(const RelOptInfo *baserel, int nparts)
{
	const MongoRelation *relation = baserel->fdw_private;
	Cost		cost = mongo_sort_stage_cost(relation->remote_rows, -1);

	if (nparts > 1)
		cost += nparts * relation->examined_rows * relation->options->fdw_tuple_cost *
			MONGO_COST_PART_TEST;
	return cost + (nparts - 1) * mongo_examined_cost(baserel, relation->examined_rows);
}

void
mongo_estimate_ordered_scan(RelOptInfo *baserel, List *pathkeys, double indexed_rows,
							Cost *startup_cost, Cost *total_cost)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoTableOptions *options = relation->options;
	MongoSortPart parts[MONGO_MAX_SORT_PARTS];
	int			nparts = mongo_sort_parts(baserel, pathkeys, parts);
	Cost		examined_cost = indexed_rows >= 0 ?
		indexed_rows * options->fdw_tuple_cost * MONGO_COST_INDEXED :
		mongo_examined_cost(baserel, relation->examined_rows);
	Cost		sorting_cost = indexed_rows >= 0 ? 0 : sort_cost(baserel, nparts);

	estimate_scan(baserel, relation->remote_rows, examined_cost, startup_cost, total_cost);
	*total_cost += sorting_cost + (nparts - 1) * options->fdw_startup_cost;
	/* sorting begins to give when all has been looked at */
	if (indexed_rows < 0)
		*startup_cost += sorting_cost + (nparts - 1) * options->fdw_startup_cost +
			examined_cost;
}

void
mongo_estimate_shared_scan(RelOptInfo *baserel, double shares,
						   Cost *startup_cost, Cost *total_cost)
{
	const MongoRelation *relation = baserel->fdw_private;
	const MongoTableOptions *options = relation->options;
	double		remote_shares = Max(Min(options->remote_parallelism, shares), 1);
	Cost		remote_cost = options->fdw_tuple_cost *
		(relation->examined_rows * (MONGO_COST_EXAMINED + MONGO_COST_RANGE) +
		 relation->remote_rows);
	Cost		local_cost = relation->remote_rows * cpu_tuple_cost +
		(relation->all_exact ? 0 : relation->remote_rows * baserel->baserestrictcost.per_tuple) +
		baserel->rows * baserel->reltarget->cost.per_tuple;

	*startup_cost = options->fdw_startup_cost +
		MONGO_COST_SPLIT * options->fdw_tuple_cost +
		baserel->baserestrictcost.startup + baserel->reltarget->cost.startup;
	*total_cost = *startup_cost +
		(MONGO_RANGES_PER_PARTICIPANT - 1) * options->fdw_startup_cost +
		remote_cost / remote_shares + local_cost / shares;
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
