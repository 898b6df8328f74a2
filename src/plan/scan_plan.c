/*-------------------------------------------------------------------------
 *
 * scan_plan.c
 *		Makes a ForeignScan with its commands from the chosen path.
 *
 * The path has decided what MongoDB does.  This file decides which fields are read, translates all
 * clauses again with their parameters, and describes the scan in a MongoScanPlan.  command.c writes
 * its commands.
 *
 * The fields that are read come first, then the plan of one table, and the plan of a join or upper
 * relation, whose command is a pipeline.  The callback mongo_get_foreign_plan() is at the end.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "cost.h"
#include "plan_internal.h"
#include "options.h"
#include "convert.h"
#include "translate.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* ------------- The parts of a table's columns that a query reads ---------- */

/* What expressions read of a table. */
typedef struct Reading
{
	MongoColumns *columns;
	Bitmapset  *whole;			/* attribute numbers of columns read whole */
	Bitmapset  *inside;			/* and of columns that accessors read */
	List	   *paths;			/* paths of these accessors, char * */
	bool		whole_row;
} Reading;

/* Collects the columns and paths that an expression reads; a tree walker. */
static bool
note_reading(Node *node, void *context)
{
	Reading    *reading = context;
	const Var  *var = (const Var *) node;
	MongoField	field;

	if (node == NULL)
		return false;
	if ((IsA(node, OpExpr) || IsA(node, FuncExpr) || IsA(node, SubscriptingRef)) &&
		mongo_field_of_node(reading->columns, node, &field))
	{
		reading->paths = lappend(reading->paths, unconstify(char *, field.path));
		reading->inside = bms_add_member(reading->inside,
										 linitial_node(Var, pull_var_clause(node, 0))->varattno);
		return false;
	}
	if (IsA(node, Var) && var->varlevelsup == 0 && var->varno == (int) reading->columns->varno)
	{
		if (var->varattno > 0)
			reading->whole = bms_add_member(reading->whole, var->varattno);
		else
			reading->whole_row = true;
		return false;
	}
	return expression_tree_walker(node, note_reading, context);
}

/*
 * Tells whether only the target list and the conditions read the table's columns.  Not in a join,
 * nor if rows are locked or changed.  With type_mismatch 'null', a String that text cannot
 * represent makes a whole json value NULL.
 */
static bool
is_all_there(PlannerInfo *root, RelOptInfo *baserel)
{
	const MongoRelation *relation = baserel->fdw_private;

	return root->parse->commandType == CMD_SELECT && root->parse->rowMarks == NIL &&
		baserel->reloptkind == RELOPT_BASEREL &&
		bms_equal(root->all_baserels, baserel->relids) &&
		mongo_mismatches_are(relation, MONGO_TYPE_MISMATCH_ERROR);
}

/*
 * Returns the paths, char *, to fetch for these columns (MongoColumn); NIL if the whole
 * document is needed.
 *
 * If a query reads only certain keys of a json column, as by j ->> 'a', their paths are enough:
 * accessors return the same without the other keys.  *narrowed is set to the attribute numbers of
 * such columns.
 */
static List *
read_paths(PlannerInfo *root, RelOptInfo *baserel, List *columns, Bitmapset **narrowed)
{
	MongoRelation *relation = baserel->fdw_private;
	Reading		reading = {.columns = relation->columns};
	List	   *paths = NIL;
	bool		knows_all = false;
	ListCell   *cell;

	*narrowed = NULL;
	foreach_ptr(const MongoColumn, column, columns)
		knows_all |= mongo_base_type(column->typid) == JSONOID || mongo_base_type(column->typid) == JSONBOID;
	knows_all = knows_all && is_all_there(root, baserel);
	if (knows_all)
	{
		note_reading((Node *) root->processed_tlist, &reading);
		note_reading(root->parse->havingQual, &reading);
		foreach(cell, baserel->baserestrictinfo)
			note_reading((Node *) lfirst_node(RestrictInfo, cell)->clause, &reading);
	}
	foreach_ptr(const MongoColumn, column, columns)
	{
		int			attribute = column->index + 1;

		if (column->path == NULL)
			return NIL;
		if (knows_all && !reading.whole_row && !bms_is_member(attribute, reading.whole) &&
			bms_is_member(attribute, reading.inside))
			*narrowed = bms_add_member(*narrowed, attribute);
		else
			paths = lappend(paths, unconstify(char *, column->path));
	}
	if (*narrowed != NULL)
		paths = list_concat(paths, reading.paths);
	foreach(cell, paths)
	{
		if (!mongo_path_is_addressable(lfirst(cell)))
			return NIL;
	}
	return paths;
}

/* ------ The ForeignScan node of a table, a join or an upper relation ------ */

/* Returns "(db.a) and (db.b)", the collections of a join, for EXPLAIN. */
static const char *
joined_namespaces(const MongoRelation *relation)
{
	const char *names = psprintf("(%s.%s)", relation->options->database,
								 relation->options->collection);
	const char *inner_names = "";

	for (; relation->join != NULL; relation = relation->join->outer->fdw_private)
	{
		const MongoTableOptions *inner = ((MongoRelation *) relation->join->inner->fdw_private)->options;

		inner_names = psprintf(" and (%s.%s)%s", inner->database, inner->collection,
							   inner_names);
	}
	return psprintf("%s%s", names, inner_names);
}

/* Tells whether the plan is being created in the inner side of a nested loop. */
static bool
is_inner(const PlannerInfo *root)
{
	for (; root != NULL; root = root->parent_root)
	{
		if (!bms_is_empty(root->curOuterRels))
			return true;
	}
	return false;
}

/* Returns "20 ms, 12 MB/s, compressed", for EXPLAIN; NULL within a machine. */
static const char *
network_of(const MongoRelation *relation)
{
	if (relation->round_trip_time <= MONGO_LOCAL_ROUND_TRIP && relation->bandwidth >= MONGO_LOCAL_BANDWIDTH)
		return NULL;
	return psprintf("%.3g ms, %s/s%s", relation->round_trip_time,
					TextDatumGetCString(DirectFunctionCall1(pg_size_pretty,
															Int64GetDatum((int64) relation->bandwidth))),
					mongo_is_compressed(relation) ? ", compressed" : "");
}

/* Fills in the members that are the same for all scans of the relation. */
static void
init_scan_plan(MongoScanPlan *plan, PlannerInfo *root, const MongoRelation *relation)
{
	const MongoTableOptions *options = relation->options;

	memset(plan, 0, sizeof(*plan));
	plan->limit = plan->offset = -1;
	plan->enough_rows = -1;
	plan->all_rows = root->tuple_fraction <= 0;
	plan->is_inner = is_inner(root);
	plan->reads_one = relation->join == NULL && mongo_reads_one_collection(relation->relid);
	plan->database = options->database;
	plan->collection = options->collection;
	plan->joined = relation->join == NULL ? NULL : joined_namespaces(relation);
	plan->network = network_of(relation);
	plan->compresses = mongo_is_compressed(relation);
	plan->fetch_size = options->fetch_size;
	plan->batches_grow = options->batches_grow;
	plan->skips = relation->skips_locally;
	plan->canonical_json = options->canonical_json;
	plan->read_mode = options->read_mode;
	plan->comment = options->comment;
	plan->is_stream = options->change_stream != NULL;
	plan->max_wait = options->max_wait;
	plan->split_events = options->split_events;
	/* MongoDB cannot limit a change stream, but its batches */
	if (plan->is_stream && root->limit_tuples >= 1 && root->sort_pathkeys == NIL)
	{
		plan->all_rows = true;
		plan->fetch_size = (int) Min(plan->fetch_size, root->limit_tuples);
	}
}

/* --------- From the chosen path of a foreign table to its commands ---------- */

/*
 * Tells whether there is an "= ANY" or "<> ALL", perhaps of too many values; a tree walker.  The
 * other lists that bind_long_list() leaves out, of @> and &&, are never exact.
 */
static bool
has_list(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return IsA(node, ScalarArrayOpExpr) || expression_tree_walker(node, has_list, context);
}

/*
 * Returns the columns that the query outputs and that PostgreSQL tests.
 *
 * If a type mismatch is an error, columns that MongoDB tested are read too.  Query predicates also
 * match inside an array, and "<>" matches other types; such a document must raise an error.
 * Otherwise they are only added if a long list may widen the command: PostgreSQL then tests all
 * conditions.
 */
static List *
fetched_columns(PlannerInfo *root, RelOptInfo *baserel, const MongoScanClauses *clauses)
{
	const MongoRelation *relation = baserel->fdw_private;
	Bitmapset  *used = NULL;
	Bitmapset  *tested = NULL;
	List	   *result = NIL;
	Relation	table;
	bool		whole_row;
	bool		shows;

	pull_varattnos((Node *) baserel->reltarget->exprs, baserel->relid, &used);
	if (relation->score != NULL || mongo_whole_row_is_junk(root, baserel, &used))
		used = bms_del_member(used, 0 - FirstLowInvalidHeapAttributeNumber);
	pull_varattnos((Node *) clauses->local, baserel->relid, &used);
	if (!mongo_mismatches_are(relation, MONGO_TYPE_MISMATCH_NULL) ||
		has_list((Node *) clauses->exact, NULL))
		pull_varattnos((Node *) clauses->exact, baserel->relid, &tested);

	/* the argument of mongo_match() is the row, but it reads no column */
	tested = bms_del_member(tested, 0 - FirstLowInvalidHeapAttributeNumber);
	used = bms_add_members(used, tested);

	whole_row = bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
	shows = bms_is_member(relation->columns->mismatch_column - FirstLowInvalidHeapAttributeNumber,
						  used);
	table = table_open(relation->relid, NoLock);
	for (AttrNumber attnum = 1; attnum <= baserel->max_attr; attnum++)
	{
		MongoColumn *column;

		if (TupleDescAttr(RelationGetDescr(table), attnum - 1)->attisdropped ||
			(!whole_row && !bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, used) &&
			 !((shows || relation->skips_locally) &&
			   mongo_decides_fit(relation->columns, attnum, !shows))))
			continue;
		column = mongo_table_column(table, attnum);
		/* checks that the options suit the type */
		column->path = mongo_column_path(relation->columns, attnum);
		column->type_mismatch = mongo_column_mismatch(relation->columns, attnum);
		column->of_token = relation->options->change_stream != NULL &&
			(strcmp(column->name, MONGO_TOKEN_COLUMN) == 0 ||
			 strcmp(column->name, MONGO_CLUSTER_TIME_COLUMN) == 0);
		result = lappend(result, column);
	}
	table_close(table, NoLock);
	return result;
}

/*
 * Tells whether it is faster if MongoDB selects the fields.
 *
 * Selecting them takes MongoDB as long as sending some hundred bytes more within a machine.  So
 * whole documents are faster if, according to ANALYZE, they contain little else.  Without ANALYZE,
 * the command has a projection.
 */
static bool
projection_pays(RelOptInfo *baserel, List *columns, const Bitmapset *narrowed)
{
	const MongoRelation *relation = baserel->fdw_private;
	double		document_width;
	double		fields_width = 0;

	if (baserel->pages == 0 || relation->analyzed_rows <= 0 || mongo_is_pipeline_table(relation->options))
		return true;
	document_width = (double) baserel->pages * BLCKSZ / relation->analyzed_rows;

	foreach_ptr(const MongoColumn, column, columns)
	{
		int32		width;

		/* the size of a part is unknown */
		if (bms_is_member(column->index + 1, narrowed))
			continue;
		width = get_attavgwidth(relation->relid, column->index + 1);
		if (column->path == NULL || width <= 0)
			return true;
		fields_width += width + strlen(column->path);
	}
	return document_width - fields_width >
		MONGO_COST_PROJECTION_BYTES * relation->bandwidth / MONGO_LOCAL_BANDWIDTH;
}

/* Returns the paths to fetch of documents that the scan unwinds: also the whole arrays. */
static List *
unwound_paths(const MongoTableOptions *options, List *paths)
{
	List	   *arrays = mongo_unwound_paths(options);
	List	   *result = list_concat_copy(arrays, paths);
	ListCell   *cell;

	/* to include a field of the elements would drop those without fields */
	arrays = list_concat(arrays, mongo_ordinality_fields(options));
	foreach(cell, paths)
	{
		ListCell   *array;

		foreach(array, arrays)
		{
			if (mongo_path_is_under(lfirst(cell), lfirst(array)))
				result = list_delete_ptr(result, lfirst(cell));
		}
	}
	return result;
}

/* Returns the projection for these columns; if empty, whole documents. */
static bson_t *
projection_of(PlannerInfo *root, RelOptInfo *baserel, List *columns, bool unwinds)
{
	const MongoRelation *relation = baserel->fdw_private;
	bson_t	   *projection = mongo_bson_create();
	Bitmapset  *narrowed;
	List	   *paths = read_paths(root, baserel, columns, &narrowed);

	if (unwinds)
	{
		/* some keys of a json column cannot be named, but all columns can */
		if (paths == NIL)
		{
			foreach_ptr(const MongoColumn, column, columns)
				paths = lappend(paths, unconstify(char *, column->path));
		}
		paths = unwound_paths(relation->options, paths);
	}
	if ((paths != NIL || columns == NIL) && projection_pays(baserel, columns, narrowed))
		mongo_append_paths(projection, paths);
	/* in a find, it comes with whole documents too */
	if (relation->score != NULL &&
		!(mongo_is_pipeline_table(relation->options) && bson_empty(projection)))
		mongo_append_score(projection, relation);
	return projection;
}

/*
 * Returns the number of sorted rows that a constant LIMIT needs, if nothing between it and this
 * scan can drop a row; -1 if all may be needed.  limit_tuples may be an estimate, from the current
 * result of a stable function.
 */
static int
enough_rows(PlannerInfo *root, RelOptInfo *baserel, const MongoRelation *relation, List *pathkeys)
{
	if (pathkeys == NIL || root->limit_tuples < 1 || root->limit_tuples >= PG_INT32_MAX ||
		root->parse->limitCount == NULL || !IsA(root->parse->limitCount, Const) ||
		(root->parse->limitOffset != NULL && !IsA(root->parse->limitOffset, Const)) ||
		!relation->all_exact || root->parse->rowMarks != NIL ||
		root->parse->hasTargetSRFs ||
		root->parse->limitOption == LIMIT_OPTION_WITH_TIES ||
		!bms_equal(root->all_baserels, baserel->relids) ||
		!pathkeys_contained_in(root->sort_pathkeys, pathkeys))
		return -1;
	return (int) root->limit_tuples;
}

/* Has the scan unwind the table's arrays. */
static void
describe_unwinding(const MongoRelation *relation, MongoScanPlan *plan)
{
	plan->unwind = relation->options->unwind;
	plan->ordinality = relation->reads_ordinality ? relation->options->ordinality : NULL;
	plan->unwind_empty = relation->options->unwind_empty;
	plan->no_array = mongo_no_array(relation);
}

static List *
hiding_columns(RelOptInfo *baserel, const MongoScanClauses *clauses)
{
	Bitmapset  *used = NULL;
	List	   *columns = NIL;
	ListCell   *cell;
	int			column = -1;

	foreach(cell, clauses->hiding)
		pull_varattnos(list_nth(clauses->local, lfirst_int(cell)), baserel->relid, &used);
	while ((column = bms_next_member(used, column)) >= 0)
		columns = lappend_int(columns, column + FirstLowInvalidHeapAttributeNumber);
	return columns;
}

/* Returns the command for each key of a batched join, once; 'key', the only column, reads it. */
static Const *
keys_command(const MongoRelation *relation, const MongoTranslation *translation,
			 const bson_t *filter, MongoColumn *key)
{
	MongoPipeline pipeline = {.translation = *translation,.stages = mongo_bson_create()};

	mongo_pipeline_append(&pipeline, "$match", filter);
	mongo_pipeline_append(&pipeline, "$group",
						  mongo_from_template("{_id: @1}", mongo_field_path(key->path)));
	key->field = key->path;
	key->path = "_id";
	return mongo_pipeline_command(relation, &pipeline);
}

/* Returns the command of a hashed scan that requests the documents for keys of many outer rows. */
static Const *
lookup_command(PlannerInfo *root, RelOptInfo *baserel, const MongoLookup *lookup, bool unwinds,
			   const bson_t *projection, MongoTranslation *translation)
{
	List	   *conditions = list_copy(translation->known_conditions);
	MongoScanClauses clauses;
	ListCell   *cell;

	foreach(cell, mongo_batched_conditions(lookup->keys))
		conditions = lappend(conditions, make_simple_restrictinfo(root, lfirst(cell)));
	mongo_classify_clauses(translation, baserel, conditions, unwinds, &clauses);
	return linitial(mongo_scan_commands(baserel, translation, &clauses, projection, NIL, false));
}

/* Fills in the plan and the node of a scan of one table. */
static void
plan_table(PlannerInfo *root, RelOptInfo *baserel, const ForeignPath *best_path,
		   const MongoPathDetails *details, List *scan_clauses, MongoScanPlan *plan,
		   MongoTranslation *translation, ForeignScan *scan)
{
	MongoRelation *relation = baserel->fdw_private;
	List	   *keys = mongo_batched_conditions(details->batch_keys);
	bool		unwinds = relation->unwinds && best_path->path.pathkeys == NIL &&
		!details->limited && relation->score == NULL;
	MongoScanClauses clauses;
	ListCell   *cell;

	/* a batched join's keys, which it tests again */
	scan_clauses = list_copy(scan_clauses);
	foreach(cell, keys)
		scan_clauses = lappend(scan_clauses, make_simple_restrictinfo(root, lfirst(cell)));
	*translation = mongo_translation_of(relation);
	translation->need_exact = details->limited;
	if (details->hash_clauses != NIL)
	{
		/*
		 * the rows are for all values, so conditions on one value are not
		 * sent
		 */
		translation->known_conditions = mongo_hashed_conditions(baserel, scan_clauses,
																details->hash_clauses);
		mongo_classify_clauses(translation, baserel, translation->known_conditions, unwinds,
							   &clauses);

		/* each lookup tests all clauses, so all of their columns are fetched */
		clauses.local = extract_actual_clauses(scan_clauses, false);
	}
	else
		mongo_classify_clauses(translation, baserel, scan_clauses, unwinds, &clauses);
	plan->columns = fetched_columns(root, baserel, &clauses);

	/* drop the keys, which come last: the batched join tests them */
	while (clauses.local != NIL && list_member_ptr(keys, llast(clauses.local)))
	{
		clauses.local = list_truncate(clauses.local, list_length(clauses.local) - 1);
		clauses.hiding = list_delete_int(clauses.hiding, list_length(clauses.local));
	}

	if (details->grouped)
		plan->commands = list_make1(keys_command(relation, translation, clauses.filter,
												 linitial(plan->columns)));
	else
		plan->commands = mongo_scan_commands(baserel, translation, &clauses,
											 projection_of(root, baserel, plan->columns, unwinds),
											 best_path->path.pathkeys,
											 relation->natural && !plan->is_inner && !details->limited &&
											 details->hash_clauses == NIL && keys == NIL &&
											 best_path->path.pathkeys == NIL &&
											 best_path->path.param_info == NULL);
	plan->is_batched = keys != NIL;
	plan->all_rows |= details->all_rows ||
		(bms_membership(root->all_baserels) == BMS_SINGLETON && mongo_reads_all(root, best_path->path.pathkeys));
	plan->sends_all = plan->network != NULL && list_length(plan->commands) > 1 &&
		mongo_needs_all_parts(root, baserel, best_path->path.pathkeys);
	if (details->lookup != NULL)
		plan->commands = lappend(details->only_looks_up ? NIL : plan->commands,
								 lookup_command(root, baserel, details->lookup, unwinds,
												projection_of(root, baserel, plan->columns, unwinds),
												translation));
	plan->enough_rows = enough_rows(root, baserel, relation, best_path->path.pathkeys);
	plan->is_pipeline = (mongo_is_pipeline_table(relation->options) && !unwinds) || details->grouped;
	if (unwinds)
		describe_unwinding(relation, plan);
	plan->hiding = clauses.hiding;
	plan->hiding_columns = hiding_columns(baserel, &clauses);
	scan->scan.plan.qual = clauses.local;

	/* to test again rows that are locked, or that a widened command returns */
	if (root->parse->commandType != CMD_SELECT || root->rowMarks != NIL ||
		(translation->predicates != NIL && has_list((Node *) clauses.exact, NULL)))
		scan->fdw_recheck_quals = list_concat(clauses.exact, clauses.bound);
	if (relation->score == NULL)
		return;
	mongo_add_score_column(baserel, plan, scan);
	/* only MongoDB can test mongo_match(), and there are no locked rows */
	foreach(cell, scan->fdw_recheck_quals)
	{
		if (mongo_calls_match(lfirst(cell), &baserel->relid))
			scan->fdw_recheck_quals = foreach_delete_current(scan->fdw_recheck_quals, cell);
	}
}

/* ---------- From a path whose command is a pipeline to a ForeignScan ------- */

/* Returns the Vars of all conditions that MongoDB tests in this relation. */
static List *
tested_vars(const RelOptInfo *rel)
{
	const MongoRelation *relation = rel->fdw_private;
	const MongoJoin *join = relation->join;
	List	   *clauses;
	List	   *vars = NIL;
	ListCell   *cell;

	clauses = list_copy(rel->baserestrictinfo);
	foreach(cell, relation->bindings)
		clauses = list_delete_ptr(clauses, ((MongoBinding *) lfirst(cell))->rinfo);
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

/*
 * Returns the target list of rows that are not grouped: the output, and Vars that MongoDB has
 * tested, so that a document that does not fit raises an error.  Columns of json are not added,
 * because they read any value.
 */
static List *
scan_vars(RelOptInfo *rel, MongoColumns *columns, List *expressions)
{
	List	   *tlist;

	tlist = add_to_flat_tlist(NIL, pull_var_clause((Node *) expressions,
												   PVC_RECURSE_PLACEHOLDERS));
	foreach_ptr(Var, var, tested_vars(rel))
	{
		MongoField	field;

		if (mongo_field_of_node(columns, (Node *) var, &field) &&
			mongo_type_facts(field.operator_type)->accepts != MONGO_BSON_ANY)
			tlist = add_to_flat_tlist(tlist, list_make1(var));
	}
	return tlist;
}

/* Returns the columns for these Vars, with their paths. */
static List *
field_columns(MongoColumns *columns, List *scan_tlist)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, scan_tlist)
	{
		Var		   *var = (Var *) lfirst_node(TargetEntry, cell)->expr;
		MongoColumn *column = palloc0(sizeof(MongoColumn));
		MongoField	field;

		if (!mongo_field_of_node(columns, (Node *) var, &field))
			elog(ERROR, "output of a pipeline is not a field");
		column->index = foreach_current_index(cell);
		column->name = mongo_column_name(field.columns, var->varattno);
		column->path = field.path;
		column->typid = var->vartype;
		column->typmod = var->vartypmod;
		column->bson_type = field.bson_type;
		column->type_mismatch = field.type_mismatch;
		if (field.columns->prefix != NULL)
		{
			column->collection = mongo_table_options(field.columns->relid)->collection;
			column->prefix = field.columns->prefix;
		}
		result = lappend(result, column);
	}
	return result;
}

/* Returns the paths of the columns, and of their documents' _ids for errors. */
static List *
paths_wanted(List *columns)
{
	List	   *paths = NIL;

	foreach_ptr(const MongoColumn, column, columns)
	{
		paths = lappend(paths, (char *) column->path);
		if (column->prefix != NULL)
			paths = lappend(paths, psprintf("%s._id", column->prefix));
	}
	return paths;
}

/* Names a key or an aggregate in messages after the one field that it is computed from. */
static void
name_column(PlannerInfo *root, const MongoOutput *output, MongoColumn *column)
{
	List	   *vars = pull_var_clause((Node *) output->expression, PVC_RECURSE_AGGREGATES);
	const Var  *var = vars == NIL ? NULL : linitial_node(Var, vars);
	Oid			relid;

	column->name = column->field = output->column->path;
	if (list_length(vars) != 1 || var->varattno <= 0)
		return;
	relid = planner_rt_fetch(var->varno, root)->relid;
	column->name = column->field = mongo_column_options(relid, var->varattno)->path;
	column->collection = mongo_table_options(relid)->collection;
}

/* Adds a group's outputs as columns and as the scan's target list; counts of averages come last. */
static void
add_outputs(PlannerInfo *root, List *outputs, MongoScanPlan *plan, ForeignScan *scan)
{
	int			next = list_length(outputs);
	ListCell   *cell;

	foreach(cell, outputs)
	{
		MongoOutput *output = lfirst(cell);
		MongoColumn *column = output->column;

		column->index = foreach_current_index(cell);
		name_column(root, output, column);
		plan->columns = lappend(plan->columns, column);
		if (output->count != NULL)
		{
			column->count = output->count->index = next++;
			name_column(root, output, output->count);
			plan->columns = lappend(plan->columns, output->count);
		}
		scan->fdw_scan_tlist = lappend(scan->fdw_scan_tlist,
									   makeTargetEntry(output->expression, column->index + 1,
													   NULL, false));
	}
}

/* Fills in the plan and the node of a join; or, with 'upper', of an upper relation over 'input'. */
static void
plan_pipeline(PlannerInfo *root, RelOptInfo *input, const MongoUpperRelation *upper,
			  List *expressions, MongoScanPlan *plan, MongoTranslation *translation,
			  ForeignScan *scan)
{
	const MongoRelation *relation = input->fdw_private;
	MongoPipeline pipeline = mongo_pipeline_copy(upper == NULL ? relation->pipeline :
												 &upper->pipeline);

	plan->is_pipeline = true;
	if (upper != NULL)
	{
		plan->is_grouped = upper->grouped;
		plan->one_row = upper->one_row;
		plan->all_rows |= upper->limited;
		if (upper->counts)
			plan->count_command = mongo_count_command(relation, &pipeline);
		scan->scan.plan.qual = upper->local_quals;
	}
	if (plan->is_grouped)
		add_outputs(root, upper->outputs, plan, scan);
	else
	{
		scan->fdw_scan_tlist = scan_vars(input, pipeline.translation.columns, expressions);
		plan->columns = field_columns(pipeline.translation.columns, scan->fdw_scan_tlist);
		mongo_pipeline_project(&pipeline, paths_wanted(plan->columns));
	}
	plan->commands = list_make1(mongo_pipeline_command(relation, &pipeline));
	*translation = pipeline.translation;
}

/* Returns "key IS NOT NULL" of the join's outer key. */
static Expr *
key_is_there(const MongoJoin *join)
{
	NullTest   *test = makeNode(NullTest);

	foreach_node(Var, var, pull_var_clause((Node *) join->key.rinfo->clause, 0))
	{
		if (var->varno == (int) join->outer->relid)
			test->arg = (Expr *) var;
	}
	test->nulltesttype = IS_NOT_NULL;
	test->location = -1;
	return (Expr *) test;
}

/* Returns these RestrictInfos in the order in which PostgreSQL would test them in a scan. */
static List *
cheapest_first(PlannerInfo *root, const List *rinfos)
{
	List	   *result = NIL;
	QualCost	cost;
	QualCost	other;

	foreach_node(RestrictInfo, rinfo, rinfos)
	{
		int			position = list_length(result);

		cost_qual_eval_node(&cost, (Node *) rinfo, root);
		for (; position > 0; position--)
		{
			cost_qual_eval_node(&other, list_nth(result, position - 1), root);
			if (other.per_tuple <= cost.per_tuple)
				break;
		}
		result = list_insert_nth(result, position, rinfo);
	}
	return result;
}

/*
 * Fills in the plan and the node of a join of array elements with their own documents, which one
 * find returns.  PostgreSQL tests what can be tested after unwinding alone.
 */
static void
plan_unwound_join(PlannerInfo *root, const RelOptInfo *joinrel, MongoScanPlan *plan,
				  MongoTranslation *translation, ForeignScan *scan)
{
	const MongoRelation *relation = joinrel->fdw_private;
	const MongoJoin *join = relation->join;
	const MongoRelation *outer = join->outer->fdw_private;
	bson_t	   *projection = mongo_bson_create();
	List	   *conditions;
	List	   *documents = NIL;
	List	   *expressions;
	MongoScanClauses clauses;
	MongoScanClauses parents;
	ListCell   *cell;

	*translation = mongo_translation_of(outer);
	mongo_classify_clauses(translation, join->outer,
						   cheapest_first(root, join->outer->baserestrictinfo), true, &clauses);
	conditions = mongo_document_conditions(outer, translation, &clauses);
	foreach(cell, list_concat_copy(join->inner->baserestrictinfo, join->clauses))
	{
		Expr	   *clause = lfirst_node(RestrictInfo, cell)->clause;

		if (mongo_unwound_depth(outer->options, outer->columns, (Node *) clause) > 0)
			clauses.local = lappend(clauses.local, clause);
		else
			documents = lappend(documents, lfirst(cell));
	}
	translation->columns = relation->columns;
	translation->compares_text |= ((MongoRelation *) join->inner->fdw_private)->calls_match;
	mongo_classify_clauses(translation, NULL, documents, false, &parents);
	if (!bson_empty(parents.filter))
		conditions = lappend(conditions, unconstify(bson_t *, parents.filter));

	scan->scan.plan.qual = list_concat(lappend(clauses.local, key_is_there(join)), parents.local);
	scan->fdw_recheck_quals = list_concat(clauses.exact, parents.exact);
	expressions = list_concat_copy(joinrel->reltarget->exprs, scan->scan.plan.qual);
	scan->fdw_scan_tlist = scan_vars(unconstify(RelOptInfo *, joinrel), relation->columns,
									 list_concat(expressions, scan->fdw_recheck_quals));
	plan->columns = field_columns(relation->columns, scan->fdw_scan_tlist);
	mongo_append_paths(projection, unwound_paths(outer->options, paths_wanted(plan->columns)));
	plan->commands = list_make1(mongo_find_command(relation, translation, conditions, projection,
												   NULL, false));
	describe_unwinding(outer, plan);
}

/* Adds LIMIT or OFFSET to fdw_exprs; returns its number there, or -1. */
static int
add_limit_or_offset(ForeignScan *scan, Node *expression)
{
	if (expression == NULL)
		return -1;
	scan->fdw_exprs = lappend(scan->fdw_exprs, expression);
	return list_length(scan->fdw_exprs) - 1;
}

/*
 * Tells whether a value comes from another row of the query; a tree walker.  A Param is set by an
 * InitPlan, once, or by each row of another plan.
 */
static bool
comes_from_rows(Node *node, void *context)
{
	ListCell   *cell;

	if (node == NULL)
		return false;
	if (IsA(node, Var) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan))
		return true;
	if (!IsA(node, Param) || ((Param *) node)->paramkind != PARAM_EXEC)
		return expression_tree_walker(node, comes_from_rows, context);
	for (PlannerInfo *root = context; root != NULL; root = root->parent_root)
	{
		foreach(cell, root->init_plans)
		{
			if (list_member_int(((SubPlan *) lfirst(cell))->setParam, ((Param *) node)->paramid))
				return false;
		}
	}
	return true;
}

/*
 * mongo_get_foreign_plan
 *		Returns the ForeignScan of the chosen path; a callback of PostgreSQL.
 *
 * Its fdw_private is a MongoScanPlan.  Raises what the translation of clauses and
 * mongo_pipeline_make_rows() raise.
 */
ForeignScan *
mongo_get_foreign_plan(PlannerInfo *root, RelOptInfo *foreignrel,
					   Oid foreigntableid pg_attribute_unused(), ForeignPath *best_path,
					   List *tlist, List *scan_clauses, Plan *outer_plan)
{
	const MongoUpperRelation *upper = IS_UPPER_REL(foreignrel) ? foreignrel->fdw_private : NULL;
	RelOptInfo *input = upper == NULL ? foreignrel : upper->input;
	MongoPathDetails details = mongo_path_details(best_path);
	ForeignScan *scan = make_foreignscan(tlist, NIL, foreignrel->relid, NIL, NIL, NIL, NIL,
										 outer_plan);
	MongoTranslation translation;
	MongoScanPlan plan;

	init_scan_plan(&plan, root, input->fdw_private);
	if (IS_SIMPLE_REL(foreignrel))
		plan_table(root, foreignrel, best_path, &details, scan_clauses, &plan, &translation, scan);
	else if (upper == NULL && ((MongoRelation *) input->fdw_private)->unwinds)
		plan_unwound_join(root, foreignrel, &plan, &translation, scan);
	else
		/* by now a join's target may be the query's own, with expressions */
		plan_pipeline(root, input, upper, upper == NULL ? foreignrel->reltarget->exprs : tlist,
					  &plan, &translation, scan);
	plan.predicates = translation.predicates;
	plan.nvariables = list_length(translation.variables);
	scan->fdw_exprs = list_concat_copy(translation.parameters, translation.variables);
	if (upper != NULL ? upper->limited : details.limited)
	{
		plan.limit = add_limit_or_offset(scan, root->parse->limitCount);
		plan.offset = add_limit_or_offset(scan, root->parse->limitOffset);
	}
	plan.may_precede = plan.network != NULL && details.total_cost <=
		MONGO_COST_PRECEDING * mongo_command_cost(input->fdw_private);
	plan.needs_no_row = !plan.is_stream && !plan.is_batched &&
		details.hash_clauses == NIL && !comes_from_rows((Node *) scan->fdw_exprs, root);
	if (outer_plan != NULL && !mongo_second_describe(best_path, outer_plan, scan, &plan))
		scan->scan.plan.lefttree = NULL;
	if (details.hash_clauses != NIL)
		mongo_hashed_describe(root, foreignrel, &details, scan, &plan);
	scan->fdw_private = mongo_struct_to_list(&mongo_scan_plan_type, &plan);
	return scan;
}
