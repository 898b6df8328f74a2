/*-------------------------------------------------------------------------
 *
 * cost.c
 *		What commands, their results and MongoDB's work cost.
 *
 * The constants are in cost.h.  Assumes that index.c, or an estimate of PostgreSQL's, has
 * found how many documents MongoDB examines and returns.
 *
 * Commands and transfer come first, then scans, then the stages of pipelines, then the keys of
 * batched joins.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cost.h"
#include "plan_internal.h"
#include "translate.h"

#include <math.h>

#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

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

/* Returns the bytes of a document with these columns. */
static double
document_bytes(const PathTarget *target)
{
	return MONGO_DOCUMENT_BYTES + target->width + list_length(target->exprs) * MONGO_FIELD_BYTES;
}

/* Returns the cost of sending so many bytes, and of waiting for further batches of them. */
static Cost
bytes_cost(const MongoRelation *relation, double bytes)
{
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
	return rows * relation->options->fdw_tuple_cost +
		bytes_cost(relation, rows * document_bytes(target));
}

/*
 * mongo_order_of_value
 *		Returns the mongo_order_share() of an index for one value, which this share of all documents
 *		has.
 *
 * They are in the collection's order, but the fewer they are, the further from each other.
 */
double
mongo_order_of_value(double share)
{
	return MONGO_COST_NEAR_VALUES / (MONGO_COST_NEAR_VALUES + 1 / share);
}

/*
 * mongo_order_share
 *		Returns the share of documents that an index on the field at 'path', which the expression
 *		reads, finds in the collection's order; 0 if ANALYZE has not seen it.
 *
 * ANALYZE has taken the documents by their _id, which is expected to have that order.  The square
 * of the correlation counts, as in PostgreSQL.
 */
double
mongo_order_share(PlannerInfo *root, const RelOptInfo *baserel, const char *path, Node *expression)
{
	double		share = path != NULL && strcmp(path, "_id") == 0;

	foreach_node(Var, var, pull_var_clause(expression, PVC_RECURSE_PLACEHOLDERS))
	{
		VariableStatData variable;
		AttStatsSlot slot;
		bool		is_default;
		double		values;

		if (share > 0 || var->varno != (int) baserel->relid)
			continue;
		examine_variable(root, (Node *) var, 0, &variable);
		values = get_variable_numdistinct(&variable, &is_default);
		if (!is_default)
			share = mongo_order_of_value(1 / Max(values, 1));
		if (HeapTupleIsValid(variable.statsTuple) &&
			get_attstatsslot(&slot, variable.statsTuple, STATISTIC_KIND_CORRELATION, InvalidOid,
							 ATTSTATSSLOT_NUMBERS))
		{
			share = Max(share, slot.numbers[0] * slot.numbers[0]);
			free_attstatsslot(&slot);
		}
		ReleaseVariableStats(variable);
	}
	return share;
}

/*
 * mongo_fetching_cost
 *		Returns the cost of a document by an index of this mongo_order_share(), in the unit T.
 */
double
mongo_fetching_cost(double order_share)
{
	return MONGO_COST_FETCHED + order_share * (MONGO_COST_INDEXED - MONGO_COST_FETCHED);
}

/*
 * mongo_indexed_cost
 *		Returns MongoDB's cost of finding so many rows of a table by an index of this
 *		mongo_order_share().
 */
Cost
mongo_indexed_cost(const MongoRelation *relation, double rows, double order_share)
{
	return rows / Max(relation->array_length, 1) * MONGO_COST_UNIT *
		mongo_fetching_cost(order_share);
}

/*
 * mongo_examined_cost
 *		Returns MongoDB's cost of finding that many documents of a table by its restrictions.
 */
Cost
mongo_examined_cost(const RelOptInfo *baserel, double examined_rows)
{
	const MongoRelation *relation = baserel->fdw_private;

	if (examined_rows < baserel->tuples && !relation->natural)
		return mongo_indexed_cost(relation, examined_rows, relation->order_share);
	return baserel->tuples / Max(relation->array_length, 1) * MONGO_COST_UNIT * MONGO_COST_EXAMINED;
}

/*
 * Returns the cost of fetching documents with arrays, and of unwinding them and testing all
 * conditions, for so many rows that meet those.
 */
static Cost
unwinding_cost(const RelOptInfo *baserel, double remote_rows)
{
	const MongoRelation *relation = baserel->fdw_private;
	double		rows = relation->unwound_rows * remote_rows / relation->remote_rows;
	double		documents = ceil(rows / relation->array_length);

	return documents * relation->options->fdw_tuple_cost +
		bytes_cost(relation, documents * document_bytes(baserel->reltarget) +
				   rows * relation->element_bytes) +
		rows * (MONGO_COST_UNIT * MONGO_COST_UNWOUND_HERE + baserel->baserestrictcost.per_tuple);
}

/*
 * Returns the estimate of a scan in which finding the rows costs 'examined_cost'.  'unwinds'
 * specifies that it unwinds arrays itself.
 */
static MongoEstimate
estimate_scan(RelOptInfo *rel, double remote_rows, Cost examined_cost, bool unwinds)
{
	const MongoRelation *relation = rel->fdw_private;
	MongoEstimate estimate = {.rows = rel->rows};
	Cost		rows_cost = unwinds ? unwinding_cost(rel, remote_rows) :
		mongo_transfer_cost(relation, remote_rows, rel->reltarget) +
		(relation->unwound_rows == 0 ? 0 :
		 MONGO_COST_UNIT * (relation->unwound_rows * MONGO_COST_UNWOUND +
							remote_rows * MONGO_COST_UNWOUND_SENT)) +
		(relation->all_exact ? 0 : remote_rows * rel->baserestrictcost.per_tuple);

	estimate.startup_cost = mongo_command_cost(relation) + rel->baserestrictcost.startup +
		rel->reltarget->cost.startup;
	if (relation->join != NULL)
		estimate.startup_cost += relation->join->setup_cost;
	estimate.total_cost = estimate.startup_cost + examined_cost + rows_cost +
		remote_rows * cpu_tuple_cost + rel->rows * rel->reltarget->cost.per_tuple;
	return estimate;
}

/*
 * mongo_estimate_scan
 *		Returns the estimate of a scan of 'rel' in which MongoDB sends 'remote_rows', and finding
 *		these costs 'examined_cost'.
 */
MongoEstimate
mongo_estimate_scan(RelOptInfo *rel, double remote_rows, Cost examined_cost)
{
	return estimate_scan(rel, remote_rows, examined_cost, ((MongoRelation *) rel->fdw_private)->unwinds);
}

/* Returns the cost of finding the rows of a table or of a join that is pushed down. */
static Cost
finding_cost(const RelOptInfo *rel)
{
	const MongoRelation *relation = rel->fdw_private;

	return relation->join != NULL ? relation->join->cost :
		mongo_examined_cost(rel, relation->examined_rows);
}

/*
 * mongo_estimate_pipeline
 *		Returns the estimate of finding, in MongoDB, the rows that further stages compute with.
 */
MongoEstimate
mongo_estimate_pipeline(RelOptInfo *rel)
{
	return estimate_scan(rel, 0, finding_cost(rel), false);
}

/*
 * mongo_estimate_plain_scan
 *		Returns the estimate of a scan with nothing but the relation's own restrictions.
 */
MongoEstimate
mongo_estimate_plain_scan(RelOptInfo *baserel)
{
	const MongoRelation *relation = baserel->fdw_private;

	return mongo_estimate_scan(baserel, relation->remote_rows, finding_cost(baserel));
}

/*
 * mongo_estimate_ordered_scan
 *		Returns the estimate of a scan of a table in an order.
 *
 * It comes from an index, by which MongoDB examines 'indexed_rows' documents, or, if that is
 * negative, from sorting.
 */
MongoEstimate
mongo_estimate_ordered_scan(PlannerInfo *root, RelOptInfo *baserel, const MongoOrder *order,
							double indexed_rows)
{
	const MongoRelation *relation = baserel->fdw_private;
	bool		sorts = indexed_rows < 0;
	int			more_parts = order->nparts - 1;

	/* they are sent together, or not needed */
	Cost		parts_cost = more_parts * relation->options->fdw_startup_cost;
	Cost		examined_cost = sorts ? mongo_examined_cost(baserel, relation->examined_rows) :
		mongo_indexed_cost(relation, indexed_rows,
						   mongo_order_share(root, baserel, order->keys[0].path,
											 (Node *) order->expression));
	MongoEstimate estimate = estimate_scan(baserel, relation->remote_rows, examined_cost, false);

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

/* Returns the cost of all operators within, and of the elements of their arrays. */
static double
operators_cost(const bson_iter_t *parent)
{
	bson_iter_t child;
	bson_iter_t element;
	double		cost = 0;

	if ((!BSON_ITER_HOLDS_DOCUMENT(parent) && !BSON_ITER_HOLDS_ARRAY(parent)) ||
		!bson_iter_recurse(parent, &child))
		return 0;
	while (bson_iter_next(&child))
	{
		const char *key = bson_iter_key(&child);

		if (BSON_ITER_HOLDS_ARRAY(parent))
			cost += MONGO_COST_ELEMENT;
		if (strcmp(key, "$literal") == 0)
		{
			if (BSON_ITER_HOLDS_ARRAY(&child) && bson_iter_recurse(&child, &element))
			{
				while (bson_iter_next(&element))
					cost += MONGO_COST_ELEMENT;
			}
			continue;
		}
		if (key[0] == '$')
			cost += operator_cost(key);
		cost += operators_cost(&child);
	}
	return cost;
}

/* An array of unknown length is expected to have so many elements, as in PostgreSQL. */
#define EXPECTED_ELEMENTS	10

/* Returns the cost of a placeholder in a filter; a list of ranges is an $or of them. */
static double
placeholder_cost(const MongoTranslation *translation, int number)
{
	const MongoPredicate *predicate = list_nth(translation->predicates, number);
	const MongoField *field = &predicate->field;
	const MongoComparison *comparison = mongo_comparison_lookup(mongo_base_type(field->type), field->typmod,
																field->bson_type);
	bool		is_list = predicate->form == MONGO_PREDICATE_ANY || predicate->form == MONGO_PREDICATE_ALL;
	bool		has_points = comparison != NULL && comparison->append_points != NULL && field->zone == NULL;

	return MONGO_COST_LEAF * (is_list && !has_points ? 2 * EXPECTED_ELEMENTS : 1);
}

/* Tells whether the first branch of these is anything but an $expr. */
static bool
begins_with_predicate(const bson_iter_t *branches)
{
	bson_iter_t branch = *branches;
	bson_iter_t member;

	return bson_iter_next(&branch) && bson_iter_recurse(&branch, &member) &&
		bson_iter_next(&member) && strcmp(bson_iter_key(&member), "$expr") != 0;
}

/*
 * Returns the cost of these members of a query filter: of logic, fields, or a field's operators.
 *
 * An $expr is 'rare' in an $or that begins with predicates: those are true of most documents, since
 * it tests whether a field fits.
 */
static double
members_cost(const MongoTranslation *translation, bson_iter_t *members, bool rare)
{
	double		cost = 0;

	check_stack_depth();
	while (bson_iter_next(members))
	{
		const char *key = bson_iter_key(members);
		bool		is_branches = key[0] == '$' &&
			(strcmp(key, "$and") == 0 || strcmp(key, "$or") == 0 || strcmp(key, "$nor") == 0);
		bson_iter_t child;

		if (strcmp(key, "$expr") == 0)
		{
			if (!rare)
				cost += operators_cost(members);
		}
		else if (strcmp(key, MONGO_PARAMETER_KEY) == 0 && BSON_ITER_HOLDS_INT32(members))
			cost += placeholder_cost(translation, bson_iter_int32(members));
		else if ((is_branches || BSON_ITER_HOLDS_DOCUMENT(members)) &&
				 bson_iter_recurse(members, &child))
			cost += members_cost(translation, &child,
								 rare || (strcmp(key, "$or") == 0 && begins_with_predicate(&child)));
		else
			cost += MONGO_COST_LEAF;
	}
	return cost;
}

/*
 * mongo_filter_cost
 *		Returns the cost of testing a query filter, for each document that is examined, in the unit
 *		T.
 *
 * find's $in finds a value in a sorted list, so that its length does not count; but $expr's does.
 */
double
mongo_filter_cost(const MongoTranslation *translation, const bson_t *filter)
{
	bson_iter_t members;

	return bson_iter_init(&members, filter) ? members_cost(translation, &members, false) : 0;
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
	return mongo_first_value(expression).value_type == BSON_TYPE_INT32;
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
