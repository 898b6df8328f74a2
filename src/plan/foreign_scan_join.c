/*-------------------------------------------------------------------------
 *
 * foreign_scan_join.c
 *		From a join's path to a ForeignScan with its pipeline.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "foreign_scan.h"

#include "join.h"
#include "pipeline_input.h"

#include "optimizer/optimizer.h"
#include "optimizer/planmain.h"
#include "optimizer/tlist.h"

/* tested_vars: what decides which rows there are, and is in them. */
static List *
tested_vars(const RelOptInfo *rel)
{
	const MongoRelation *relation = rel->fdw_private;
	const MongoJoin *join = relation->join;
	List	   *clauses;
	List	   *vars = NIL;
	ListCell   *cell;

	clauses = list_copy(rel->baserestrictinfo);
	if (join != NULL)
	{
		vars = tested_vars(join->outer);
		clauses = list_concat_copy(join->clauses, join->filters);
		clauses = lappend(clauses, join->key.rinfo);
		clauses = list_concat(clauses, join->inner->baserestrictinfo);
	}
	foreach(cell, clauses)
		vars = list_concat(vars,
						   pull_var_clause((Node *) lfirst_node(RestrictInfo, cell)->clause,
										   PVC_RECURSE_PLACEHOLDERS));
	return vars;
}

/* has_documents_of: are those of this table kept, not only whether there are any? */
static bool
has_documents_of(const MongoRelation *relation, Index varno)
{
	for (; relation->join != NULL; relation = relation->join->outer->fdw_private)
	{
		const MongoJoin *join = relation->join;

		if (join->inner->relid == varno)
			return join->type == JOIN_INNER || join->type == JOIN_LEFT ||
				(join->type == JOIN_SEMI && join->reads_inner);
	}
	return true;
}

/*
 * scan_vars: what the rows are made of: what the query reads, and what MongoDB
 * has tested, so that a document that should not have passed is an error.
 */
static List *
scan_vars(RelOptInfo *joinrel)
{
	const MongoRelation *relation = joinrel->fdw_private;
	List	   *tlist;
	ListCell   *cell;

	/* by now the target may be the query's own, with expressions */
	tlist = add_to_flat_tlist(NIL, pull_var_clause((Node *) joinrel->reltarget->exprs,
												   PVC_RECURSE_PLACEHOLDERS));

	foreach(cell, tested_vars(joinrel))
	{
		Var		   *var = lfirst(cell);
		MongoField	field;

		if (has_documents_of(relation, var->varno) &&
			mongo_field_of_node(relation->columns, (Node *) var, &field))
			tlist = add_to_flat_tlist(tlist, list_make1(var));
	}
	return tlist;
}

/* joined_columns: where each of the Vars is found. */
static List *
joined_columns(MongoColumns *columns, List *scan_tlist)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, scan_tlist)
	{
		Var		   *var = (Var *) lfirst_node(TargetEntry, cell)->expr;
		MongoScanColumn *column = palloc0(sizeof(MongoScanColumn));
		MongoField	field;

		if (!mongo_field_of_node(columns, (Node *) var, &field))
			elog(ERROR, "output of a join is not a field");
		column->index = foreach_current_index(cell);
		column->name = mongo_column_name(field.columns, var->varattno);
		column->path = field.path;
		column->bson_type = field.bson_type;
		if (field.columns->prefix != NULL)
		{
			column->collection = mongo_table_options(field.columns->relid)->collection;
			column->prefix = field.columns->prefix;
		}
		result = lappend(result, column);
	}
	return result;
}

/* paths_wanted: of the columns, and the _ids of their documents, to name in errors. */
static List *
paths_wanted(List *columns)
{
	List	   *paths = NIL;
	ListCell   *cell;

	foreach(cell, columns)
	{
		const MongoScanColumn *column = lfirst(cell);

		paths = lappend(paths, (char *) column->path);
		if (column->prefix != NULL)
			paths = lappend(paths, psprintf("%s._id", column->prefix));
	}
	return paths;
}

ForeignScan *
mongo_get_join_plan(PlannerInfo *root, RelOptInfo *joinrel, List *tlist, Plan *outer_plan)
{
	MongoRelation *relation = joinrel->fdw_private;
	MongoScanNode node = {
		.tlist = tlist, .scan_tlist = scan_vars(joinrel), .outer_plan = outer_plan
	};
	MongoPipeline pipeline;
	MongoScanPlan plan;

	mongo_pipeline_begin(joinrel, &pipeline);
	mongo_scan_plan_init(&plan, root, relation);
	plan.is_pipeline = true;
	plan.columns = joined_columns(relation->columns, node.scan_tlist);
	mongo_pipeline_project(&pipeline, paths_wanted(plan.columns));
	plan.commands = list_make1(mongo_pipeline_command(relation, &pipeline));
	return mongo_make_foreign_scan(root, &plan, &pipeline.translation, false, &node);
}
