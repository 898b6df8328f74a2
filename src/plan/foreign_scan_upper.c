/*-------------------------------------------------------------------------
 *
 * foreign_scan_upper.c
 *		The foreign scan of an upper relation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "foreign_scan.h"

#include "bson_memory.h"
#include "count.h"
#include "local_plan.h"
#include "upper.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planmain.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"

/* column_outputs: without a $group, the columns that are used. */
static List *
column_outputs(const MongoUpperRelation *upper, List *tlist)
{
	MongoColumns *columns = upper->pipeline.translation.columns;
	List	   *vars = pull_var_clause((Node *) tlist, PVC_RECURSE_PLACEHOLDERS);
	List	   *distinct = NIL;
	List	   *outputs = NIL;
	ListCell   *cell;

	foreach(cell, vars)
		distinct = list_append_unique(distinct, lfirst(cell));
	foreach(cell, distinct)
	{
		Var		   *var = lfirst(cell);
		MongoOutput *output = palloc0(sizeof(MongoOutput));
		MongoOutputField *found = palloc(sizeof(MongoOutputField));
		MongoField	field;

		if (!mongo_field_of_node(columns, (Node *) var, &field))
			elog(ERROR, "column is not a field");
		found->path = field.path;
		found->type = var->vartype;
		found->typmod = var->vartypmod;
		output->expression = (Expr *) var;
		output->fields = list_make1(found);
		outputs = lappend(outputs, output);
	}
	return outputs;
}

/* paths_of: of outputs that are columns. */
static List *
paths_of(List *outputs)
{
	List	   *paths = NIL;
	ListCell   *cell;

	foreach(cell, outputs)
	{
		MongoOutputField *field = linitial(((MongoOutput *) lfirst(cell))->fields);

		paths = lappend(paths, (char *) field->path);
	}
	return paths;
}

/*
 * name_column: for messages, after the field that a key or an aggregate is of, if
 * it is of one.
 */
static void
name_column(PlannerInfo *root, const MongoOutput *output, MongoScanColumn *column)
{
	List	   *vars = pull_var_clause((Node *) output->expression, PVC_RECURSE_AGGREGATES);
	const Var  *var = vars == NIL ? NULL : linitial_node(Var, vars);
	Oid			relid;

	column->name = ((MongoOutputField *) linitial(output->fields))->path;
	if (list_length(vars) != 1 || var->varattno <= 0)
		return;
	relid = planner_rt_fetch(var->varno, root)->relid;
	column->name = mongo_column_options(relid, var->varattno)->path;
	column->collection = mongo_table_options(relid)->collection;
}

/* scan_column: one field of an output. */
static MongoScanColumn *
scan_column(PlannerInfo *root, const MongoOutput *output, const MongoOutputField *field,
			int index)
{
	MongoScanColumn *column = palloc0(sizeof(MongoScanColumn));

	column->index = index;
	name_column(root, output, column);
	column->path = field->path;
	column->type = field->type;
	column->typmod = field->typmod;
	column->zero_if_empty = output->zero_if_empty;
	return column;
}

/*
 * add_columns: what comes as it is has the index of its output; what is to be
 * finished comes behind all outputs.
 */
static void
add_columns(PlannerInfo *root, MongoScanPlan *plan, List *outputs)
{
	int			next = list_length(outputs);
	ListCell   *cell;

	foreach(cell, outputs)
	{
		MongoOutput *output = lfirst(cell);
		int			index = foreach_current_index(cell);
		MongoScanFinish *finish;
		ListCell   *field;

		if (output->finish == MONGO_FINISH_NONE)
		{
			plan->columns = lappend(plan->columns,
									scan_column(root, output, linitial(output->fields), index));
			continue;
		}
		finish = palloc(sizeof(MongoScanFinish));
		finish->finish = output->finish;
		finish->index = index;
		finish->first = next;
		plan->finishes = lappend(plan->finishes, finish);
		foreach(field, output->fields)
			plan->columns = lappend(plan->columns,
									scan_column(root, output, lfirst(field), next++));
	}
}

/* set_commands: what gives the outputs, which 'plan' has as columns. */
static void
set_commands(MongoScanPlan *plan, const MongoUpperRelation *upper, List *outputs)
{
	const MongoRelation *relation = upper->input->fdw_private;
	MongoPipeline pipeline = upper->pipeline;

	if (upper->count != NULL)
	{
		plan->count_command = upper->count->command;
		plan->commands = list_make1(upper->count->pipeline);
		((MongoScanColumn *) linitial(plan->columns))->path = MONGO_COUNT_FIELD;
		return;
	}
	if (!upper->grouped)
	{
		pipeline.stages = bson_copy_in(CurrentMemoryContext, pipeline.stages);
		mongo_pipeline_project(&pipeline, paths_of(outputs));
	}
	plan->commands = list_make1(mongo_pipeline_command(relation, &pipeline));
}

ForeignScan *
mongo_get_upper_plan(PlannerInfo *root, RelOptInfo *upper_rel, ForeignPath *best_path,
					 List *tlist, Plan *outer_plan)
{
	MongoUpperRelation *upper = upper_rel->fdw_private;
	List	   *outputs = upper->grouped ? upper->outputs : column_outputs(upper, tlist);
	MongoScanNode node = {
		.tlist = tlist, .local = upper->local_quals, .outer_plan = outer_plan
	};
	MongoScanPlan plan;
	ListCell   *cell;

	mongo_scan_plan_init(&plan, root, upper->input->fdw_private);
	plan.is_pipeline = true;
	plan.is_grouped = upper->grouped;
	plan.one_row = upper->one_row;
	plan.all_rows |= upper->limited;
	add_columns(root, &plan, outputs);
	set_commands(&plan, upper, outputs);
	foreach(cell, outputs)
		node.scan_tlist = lappend(node.scan_tlist,
								  makeTargetEntry(((MongoOutput *) lfirst(cell))->expression,
												  foreach_current_index(cell) + 1, NULL, false));
	if (outer_plan != NULL)
		mongo_local_describe(best_path, outer_plan, &node, &plan);
	return mongo_make_foreign_scan(root, &plan, &upper->pipeline.translation, upper->limited,
								   &node);
}
