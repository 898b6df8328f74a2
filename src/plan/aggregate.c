/*-------------------------------------------------------------------------
 *
 * aggregate.c
 *		Aggregates without GROUP BY in MongoDB: one $group over the scan.
 *
 * Pushed are those whose answer is PostgreSQL's to the last digit: counts, and
 * the least and greatest of what MongoDB orders as PostgreSQL does.  $group is
 * slower than sending the documents and aggregating here unless it can count
 * index keys, so the costs decide (docs/performance.md).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_memory.h"
#include "command_template.h"
#include "comparison.h"
#include "encoding.h"
#include "feature.h"
#include "plan.h"
#include "plan_clauses.h"
#include "plan_count.h"
#include "plan_pipeline.h"
#include "plan_upper.h"

#include "access/transam.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planmain.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/*
 * What an accumulator takes for one document, in the unit of fdw_tuple_cost:
 * $group over a million documents takes two to three times what sending them
 * does, and counting index keys a third of it.
 */
#define ACCUMULATOR_COST_SHARE	1.5
#define COUNT_COST_SHARE		0.2

/* Append {$op: ...} for an aggregate over a field (NULL for count(*)). */
static void
append_count_all(bson_t *accumulator, const char *field)
{
	BSON_APPEND_INT32(accumulator, "$sum", 1);
}

/* {$sum: {$cond: [{$gt: ["$field", null]}, 1, 0]}}: null and missing are below */
static void
append_count(bson_t *accumulator, const char *field)
{
	bson_t		sum;
	bson_t		choice;
	bson_t		condition;
	bson_t		operands;

	BSON_APPEND_DOCUMENT_BEGIN(accumulator, "$sum", &sum);
	BSON_APPEND_ARRAY_BEGIN(&sum, "$cond", &choice);
	BSON_APPEND_DOCUMENT_BEGIN(&choice, "0", &condition);
	BSON_APPEND_ARRAY_BEGIN(&condition, "$gt", &operands);
	BSON_APPEND_UTF8(&operands, "0", field);
	BSON_APPEND_NULL(&operands, "1");
	bson_append_array_end(&condition, &operands);
	bson_append_document_end(&choice, &condition);
	BSON_APPEND_INT32(&choice, "1", 1);
	BSON_APPEND_INT32(&choice, "2", 0);
	bson_append_array_end(&sum, &choice);
	bson_append_document_end(accumulator, &sum);
}

static void
append_min(bson_t *accumulator, const char *field)
{
	BSON_APPEND_UTF8(accumulator, "$min", field);
}

static void
append_max(bson_t *accumulator, const char *field)
{
	BSON_APPEND_UTF8(accumulator, "$max", field);
}

typedef struct AggregateRow
{
	const char *name;			/* of the function in pg_catalog */
	bool		star;			/* takes no argument */
	bool		ordered;		/* argument must sort as PostgreSQL sorts it */
	double		cost_share;
	void		(*append) (bson_t *accumulator, const char *field);
} AggregateRow;

static const AggregateRow aggregate_rows[] =
{
	{"count", true, false, COUNT_COST_SHARE, append_count_all},
	{"count", false, false, ACCUMULATOR_COST_SHARE, append_count},
	{"min", false, true, ACCUMULATOR_COST_SHARE, append_min},
	{"max", false, true, ACCUMULATOR_COST_SHARE, append_max},
};

/* aggregate_field: the field under an aggregate's only argument. */
static bool
aggregate_field(const MongoRelation *relation, const Aggref *aggregate,
				MongoField *field)
{
	TargetEntry *argument = linitial(aggregate->args);

	return mongo_field_of_node(relation->columns, (Node *) argument->expr, field) &&
		mongo_path_is_addressable(field->path) &&
		!mongo_path_has_index(field->path) &&
		strchr(field->path, '.') == NULL &&
		field->type == field->operator_type;
}

static const AggregateRow *
find_row(const MongoRelation *relation, const Aggref *aggregate)
{
	char	   *name;
	MongoField	field;

	if (aggregate->aggfnoid >= FirstNormalObjectId || aggregate->aggfilter != NULL ||
		aggregate->aggdistinct != NIL || aggregate->aggorder != NIL ||
		aggregate->aggvariadic || aggregate->agglevelsup != 0 ||
		list_length(aggregate->args) > 1)
		return NULL;

	name = get_func_name(aggregate->aggfnoid);
	for (int i = 0; i < lengthof(aggregate_rows); i++)
	{
		const AggregateRow *row = &aggregate_rows[i];
		const MongoComparison *comparison;

		if (strcmp(row->name, name) != 0 || row->star != (aggregate->args == NIL))
			continue;
		if (row->star)
			return row;
		if (!aggregate_field(relation, aggregate, &field))
			return NULL;
		comparison = mongo_comparison_lookup(field.type);
		if (row->ordered &&
			(comparison == NULL || comparison->sortability < MONGO_SORTABLE_LAST))
			return NULL;
		return row;
	}
	return NULL;
}

/* collect_aggregates: false when one of them has no translation. */
static bool
collect_aggregates(const MongoRelation *relation, PathTarget *target,
				   List **aggregates, double *cost_share)
{
	ListCell   *cell;
	List	   *found;

	*aggregates = NIL;
	*cost_share = 0;
	found = pull_var_clause((Node *) target->exprs,
							PVC_INCLUDE_AGGREGATES | PVC_RECURSE_PLACEHOLDERS);
	foreach(cell, found)
	{
		Node	   *node = lfirst(cell);
		const AggregateRow *row;

		if (!IsA(node, Aggref))
			return false;
		row = find_row(relation, (Aggref *) node);
		if (row == NULL)
			return false;
		if (list_member(*aggregates, node))
			continue;
		*aggregates = lappend(*aggregates, node);
		*cost_share += row->cost_share;
	}
	return *aggregates != NIL;
}

/* Is count(*), without FILTER, all that is asked for? */
static bool
is_plain_count(List *aggregates)
{
	Aggref	   *aggregate = linitial_node(Aggref, aggregates);

	return list_length(aggregates) == 1 && aggregate->aggstar &&
		aggregate->aggfnoid == F_COUNT_ && aggregate->aggfilter == NULL;
}

void
mongo_add_aggregate_path(PlannerInfo *root, RelOptInfo *baserel,
						 RelOptInfo *grouped_rel)
{
	Query	   *parse = root->parse;
	MongoRelation *relation = baserel->fdw_private;
	MongoUpperRelation *upper;
	List	   *aggregates;
	double		cost_share;
	Cost		startup_cost;
	Cost		total_cost;

	if (!mongo_feature_enabled(relation->options, MONGO_FEATURE_GROUP) ||
		!mongo_is_pipeline_input(root, baserel))
		return;
	if (parse->groupClause != NIL || parse->groupingSets != NIL ||
		!parse->hasAggs || parse->havingQual != NULL || parse->hasTargetSRFs ||
		!collect_aggregates(relation, grouped_rel->reltarget, &aggregates, &cost_share))
		return;

	upper = palloc0(sizeof(MongoUpperRelation));
	upper->stage = UPPERREL_GROUP_AGG;
	upper->baserel = baserel;
	upper->aggregates = aggregates;
	grouped_rel->fdw_private = upper;

	mongo_estimate_scan(root, baserel, 0, relation->examined_rows,
						&startup_cost, &total_cost);
	total_cost += relation->remote_rows * relation->options->fdw_tuple_cost * cost_share;
	if (is_plain_count(aggregates) && mongo_counts_from_metadata(baserel))
		total_cost = startup_cost;
	add_path(grouped_rel, (Path *)
			 create_foreign_upper_path(root, grouped_rel, grouped_rel->reltarget,
									   1, total_cost, total_cost + cpu_tuple_cost,
									   NIL, NULL, NIL));
}

/* append_group: the stage {$group: {_id: null, a0: ..., a1: ...}} */
static void
append_group(MongoPipeline *pipeline, const MongoRelation *relation,
			 const MongoUpperRelation *upper)
{
	bson_t	   *group = bson_create_in(CurrentMemoryContext);
	ListCell   *cell;

	BSON_APPEND_NULL(group, "_id");
	foreach(cell, upper->aggregates)
	{
		Aggref	   *aggregate = lfirst_node(Aggref, cell);
		const AggregateRow *row = find_row(relation, aggregate);
		MongoField	field;
		bson_t		accumulator;
		const char *path = NULL;

		if (!row->star && aggregate_field(relation, aggregate, &field))
			path = psprintf("$%s", field.path);
		BSON_APPEND_DOCUMENT_BEGIN(group, psprintf("a%d", foreach_current_index(cell)),
								   &accumulator);
		row->append(&accumulator, path);
		bson_append_document_end(group, &accumulator);
	}
	mongo_pipeline_append(pipeline, "$group", group);
}

ForeignScan *
mongo_get_aggregate_plan(PlannerInfo *root, RelOptInfo *grouped_rel, List *tlist,
						 Plan *outer_plan)
{
	MongoUpperRelation *upper = grouped_rel->fdw_private;
	MongoRelation *relation = upper->baserel->fdw_private;
	MongoPipeline pipeline;
	List	   *scan_tlist = NIL;
	MongoScanPlan plan;
	Const	   *command = NULL;
	bool		is_count_command;
	ListCell   *cell;

	mongo_pipeline_begin(root, upper->baserel, &pipeline);
	if (is_plain_count(upper->aggregates))
		command = mongo_count_command(relation, &pipeline);
	is_count_command = command != NULL;
	if (!is_count_command)
	{
		append_group(&pipeline, relation, upper);
		command = mongo_pipeline_command(relation, &pipeline);
	}

	mongo_scan_plan_init(&plan, relation);
	plan.is_pipeline = true;
	plan.one_row = true;
	plan.commands = list_make1(command);
	plan.predicates = pipeline.translation.predicates;
	plan.nvariables = list_length(pipeline.translation.variables);
	foreach(cell, upper->aggregates)
	{
		MongoScanColumn *column = palloc(sizeof(MongoScanColumn));

		column->index = foreach_current_index(cell);
		column->name = get_func_name(lfirst_node(Aggref, cell)->aggfnoid);
		column->path = is_count_command ? MONGO_COUNT_FIELD :
			psprintf("a%d", column->index);
		plan.columns = lappend(plan.columns, column);
	}
	scan_tlist = add_to_flat_tlist(NIL, upper->aggregates);

	return make_foreignscan(tlist, NIL, 0,
							list_concat(pipeline.translation.parameters,
										pipeline.translation.variables),
							mongo_scan_plan_to_list(&plan), scan_tlist, NIL,
							outer_plan);
}
