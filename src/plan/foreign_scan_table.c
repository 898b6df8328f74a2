/*-------------------------------------------------------------------------
 *
 * foreign_scan_table.c
 *		From the chosen path of a foreign table to a ForeignScan with its command.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "foreign_scan.h"

#include "bson_memory.h"
#include "clauses.h"
#include "command_template.h"
#include "cost.h"
#include "derive.h"
#include "derived.h"
#include "encoding.h"
#include "hashed_scan.h"
#include "local_plan.h"
#include "modify.h"
#include "order.h"
#include "read_paths.h"
#include "score.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* What documents are to bring. */
typedef struct Fetched
{
	List	   *attributes;		/* numbers */
	bool		has_json;		/* is one of type json or jsonb? */
	List	   *paths;			/* char *; NIL: whole documents */
	Bitmapset  *narrowed;		/* attributes of which parts will do */
} Fetched;

/* has_list: "= ANY" or "<> ALL", whose values may turn out to be too many to send. */
static bool
has_list(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return IsA(node, ScalarArrayOpExpr) || expression_tree_walker(node, has_list, context);
}

/*
 * fetched_attributes gives the attribute numbers that the documents must
 * bring: what the query above reads and what PostgreSQL tests.
 *
 * Where a type mismatch is an error, what MongoDB tested is read as well: find's
 * language also matches inside an array and "<>" lets other types through,
 * and such a document must be reported, not returned.  Otherwise only what may
 * have to be tested by PostgreSQL after all.
 */
static List *
fetched_attributes(PlannerInfo *root, RelOptInfo *baserel, const MongoRelation *relation,
				   const MongoScanClauses *clauses, bool *has_json)
{
	Bitmapset  *used = NULL;
	Bitmapset  *tested = NULL;
	List	   *attributes = NIL;
	ListCell   *cell;
	Relation	table;
	bool		whole_row;

	pull_varattnos((Node *) baserel->reltarget->exprs, baserel->relid, &used);
	if (relation->score != NULL || mongo_whole_row_is_junk(root, baserel, &used))
		used = bms_del_member(used, 0 - FirstLowInvalidHeapAttributeNumber);
	pull_varattnos((Node *) clauses->local, baserel->relid, &used);
	foreach(cell, clauses->exact)
	{
		if (relation->options->type_mismatch == MONGO_TYPE_MISMATCH_ERROR ||
			has_list(lfirst(cell), NULL))
			pull_varattnos(lfirst(cell), baserel->relid, &tested);
	}

	/* mongo_match() names the row, and reads no column */
	tested = bms_del_member(tested, 0 - FirstLowInvalidHeapAttributeNumber);
	used = bms_add_members(used, tested);

	whole_row = bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
	*has_json = false;
	table = table_open(relation->relid, NoLock);
	for (AttrNumber attnum = 1; attnum <= baserel->max_attr; attnum++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(table), attnum - 1);

		if (attribute->attisdropped ||
			(!whole_row && !bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, used)))
			continue;
		attributes = lappend_int(attributes, attnum);
		*has_json |= attribute->atttypid == JSONBOID || attribute->atttypid == JSONOID;
	}
	table_close(table, NoLock);
	return attributes;
}

static List *
scan_columns(MongoColumns *columns, List *attributes)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, attributes)
	{
		AttrNumber	attnum = lfirst_int(cell);
		MongoScanColumn *column = palloc0(sizeof(MongoScanColumn));

		column->index = attnum - 1;
		column->name = mongo_column_name(columns, attnum);
		column->path = mongo_column_path(columns, attnum);
		column->bson_type = mongo_column_bson_type(columns, attnum);
		result = lappend(result, column);
	}
	return result;
}

/*
 * projection_pays: is it worth MongoDB's time to pick the fields?
 *
 * Picking them from a document takes MongoDB as long as sending some hundred
 * bytes more, so where ANALYZE has seen that documents hold little else, they
 * are better sent as they are.  Not knowing, we ask for the fields.
 */
static bool
projection_pays(RelOptInfo *baserel, const MongoRelation *relation, const Fetched *fetched)
{
	double		document_width;
	double		fields_width = 0;
	ListCell   *cell;

	if (baserel->pages == 0 || relation->analyzed_rows <= 0)
		return true;
	document_width = (double) baserel->pages * BLCKSZ / relation->analyzed_rows;

	foreach(cell, fetched->attributes)
	{
		AttrNumber	attnum = lfirst_int(cell);
		const char *path = mongo_column_path(relation->columns, attnum);
		int32		width;

		/* how large a part is nobody has counted */
		if (bms_is_member(attnum, fetched->narrowed))
			continue;
		width = get_attavgwidth(relation->relid, attnum);
		if (path == NULL || width <= 0)
			return true;
		fields_width += width + strlen(path);
	}
	return document_width - fields_width > MONGO_COST_PROJECTION_BYTES;
}

/* append_stage: with what stands at 'key' of a find command, if anything does. */
static void
append_stage(MongoPipeline *pipeline, const char *name, const bson_t *find, const char *key)
{
	bson_iter_t member;
	bson_t		specification;

	if (bson_iter_init_find(&member, find, key) &&
		bson_view(&specification, bson_iter_value(&member)->value.v_doc.data,
				  bson_iter_value(&member)->value.v_doc.data_len))
		mongo_pipeline_append(pipeline, name,
							  bson_copy_in(CurrentMemoryContext, &specification));
}

/*
 * derived_command: what find_command() gives, after the stages that make the rows of
 * a derived table; more parameters, too.
 */
static Const *
derived_command(RelOptInfo *baserel, MongoTranslation *translation,
				const MongoScanClauses *clauses, const Fetched *fetched, List *pathkeys,
				MongoSortPart part)
{
	const MongoRelation *relation = baserel->fdw_private;
	MongoPipeline pipeline = {.translation = *translation};
	bson_t	   *find = bson_create_in(CurrentMemoryContext);
	bson_t	   *projection = bson_create_in(CurrentMemoryContext);
	bson_t	   *condition = bson_create_in(CurrentMemoryContext);

	pipeline.stages = bson_create_in(CurrentMemoryContext);
	mongo_append_sort_condition(baserel, pathkeys, part, condition);
	if (fetched->paths != NIL || fetched->attributes == NIL)
		mongo_append_paths(projection, fetched->paths);
	if (pathkeys != NIL)
		mongo_append_sort(baserel, pathkeys, part, find);

	mongo_pipeline_derive(&pipeline, relation, clauses);
	if (!bson_empty(condition))
		mongo_pipeline_append(&pipeline, "$match", condition);
	append_stage(&pipeline, "$sort", find, "sort");
	if (!bson_empty(projection))
		mongo_pipeline_append(&pipeline, "$project", projection);
	*translation = pipeline.translation;
	return mongo_pipeline_command(relation, &pipeline);
}

/* append_fields: the projection, of the columns where it pays, and the score. */
static void
append_fields(bson_t *command, const MongoRelation *relation, const Fetched *fetched, bool pays)
{
	bson_t	   *projection = bson_create_in(CurrentMemoryContext);

	if (pays && (fetched->paths != NIL || fetched->attributes == NIL))
		mongo_append_paths(projection, fetched->paths);
	if (relation->score != NULL)
		mongo_append_score(projection, relation);
	if (!bson_empty(projection))
		BSON_APPEND_DOCUMENT(command, "projection", projection);
}

/* find_command: all of it but limit, skip and batchSize. */
static Const *
find_command(RelOptInfo *baserel, MongoTranslation *translation,
			 const MongoScanClauses *clauses, const Fetched *fetched, List *pathkeys,
			 MongoSortPart part)
{
	const MongoRelation *relation = baserel->fdw_private;
	bson_t	   *command = bson_create_in(CurrentMemoryContext);
	bson_t	   *filter = bson_create_in(CurrentMemoryContext);
	bson_t	   *condition = bson_create_in(CurrentMemoryContext);
	List	   *conjuncts = NIL;

	mongo_append_sort_condition(baserel, pathkeys, part, condition);
	if (!bson_empty(clauses->filter))
		conjuncts = lappend(conjuncts, clauses->filter);
	if (!bson_empty(condition))
		conjuncts = lappend(conjuncts, condition);
	mongo_append_conjuncts(filter, conjuncts);

	BSON_APPEND_UTF8(command, "find", mongo_to_utf8(relation->options->collection));
	if (!bson_empty(filter))
		BSON_APPEND_DOCUMENT(command, "filter", filter);
	append_fields(command, relation, fetched, projection_pays(baserel, relation, fetched));
	if (pathkeys != NIL)
		mongo_append_sort(baserel, pathkeys, part, command);
	mongo_append_collation(command, translation);
	mongo_append_hint(command, relation->options);
	mongo_append_max_time(command, relation->options);
	return mongo_command_to_const(command);
}

/*
 * find_commands: one, or several to be run in turn where the order wanted is
 * MongoDB's in parts only.
 */
static List *
find_commands(RelOptInfo *baserel, MongoTranslation *translation,
			  const MongoScanClauses *clauses, const Fetched *fetched, List *pathkeys)
{
	bool		is_derived = mongo_is_derived(((MongoRelation *) baserel->fdw_private)->options);
	MongoSortPart parts[MONGO_MAX_SORT_PARTS] = {MONGO_SORT_ALL};
	int			nparts = 1;
	List	   *commands = NIL;

	if (pathkeys != NIL)
		nparts = mongo_sort_parts(baserel, pathkeys, parts);
	for (int i = 0; i < nparts; i++)
		commands = lappend(commands,
						   (is_derived ? derived_command : find_command)
						   (baserel, translation, clauses, fetched, pathkeys, parts[i]));
	return commands;
}

/*
 * enough_rows: how many sorted rows a constant LIMIT above wants at most, when
 * nothing between it and this scan can drop one; -1 when all may be wanted.
 *
 * limit_tuples may be an estimate, from what a stable function gives now.
 */
static int
enough_rows(PlannerInfo *root, RelOptInfo *baserel, const MongoRelation *relation,
			List *pathkeys)
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

/* hiding_columns: what the conditions read that hide rows. */
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

/* forget_keys: what a batched join tests itself, the last clauses, as far as they are there. */
static void
forget_keys(MongoScanClauses *clauses, const List *keys)
{
	while (clauses->local != NIL && list_member_ptr(keys, llast(clauses->local)))
	{
		clauses->local = list_truncate(clauses->local, list_length(clauses->local) - 1);
		clauses->hiding = list_delete_int(clauses->hiding, list_length(clauses->local));
	}
}

/*
 * classify_hashed: of the rows of a hash table, whose clauses are all tested when
 * they are looked at; so all columns that these read come.
 */
static void
classify_hashed(MongoTranslation *translation, RelOptInfo *baserel, List *scan_clauses,
				const List *keys, MongoScanClauses *clauses)
{
	const MongoRelation *relation = baserel->fdw_private;

	/* the rows are of use to other values as well */
	translation->beside = mongo_hashed_conditions(baserel, scan_clauses, keys);
	mongo_classify_clauses(translation, baserel, relation->known, translation->beside, clauses);
	clauses->local = extract_actual_clauses(scan_clauses, false);
}

ForeignScan *
mongo_get_table_plan(PlannerInfo *root, RelOptInfo *baserel, ForeignPath *best_path,
					 List *tlist, List *scan_clauses, Plan *outer_plan)
{
	MongoRelation *relation = baserel->fdw_private;
	List	   *private = best_path->fdw_private;
	List	   *hashed_keys = mongo_hashed_keys(&best_path->path);
	bool		limited = private != NIL && IsA(private, IntList);
	List	   *keys = private != NIL && IsA(private, List) && hashed_keys == NIL ?
		private : NIL;
	MongoTranslation translation = mongo_translation_of(relation);
	MongoScanNode node = {
		.scanrelid = baserel->relid, .tlist = tlist, .outer_plan = outer_plan
	};
	MongoScanClauses clauses;
	Fetched		fetched;
	List	   *hash_expressions = NIL;
	MongoScanPlan plan;
	ForeignScan *scan;
	ListCell   *cell;

	/* those of a batched join, which tests them again */
	scan_clauses = list_copy(scan_clauses);
	foreach(cell, keys)
		scan_clauses = lappend(scan_clauses, make_simple_restrictinfo(root, lfirst(cell)));
	translation.need_exact = limited;
	if (hashed_keys != NIL)
		classify_hashed(&translation, baserel, scan_clauses, hashed_keys, &clauses);
	else
		mongo_classify_clauses(&translation, baserel, relation->known, scan_clauses, &clauses);
	fetched.attributes = fetched_attributes(root, baserel, relation, &clauses, &fetched.has_json);
	fetched.paths = mongo_read_paths(root, baserel, fetched.attributes, fetched.has_json,
									 &fetched.narrowed);
	forget_keys(&clauses, keys);

	mongo_scan_plan_init(&plan, root, relation);
	plan.commands = find_commands(baserel, &translation, &clauses, &fetched,
								  best_path->path.pathkeys);
	plan.is_batched = keys != NIL;
	plan.enough_rows = enough_rows(root, baserel, relation,
								   best_path->path.pathkeys);
	if (best_path->path.parallel_aware)
		plan.split_field = mongo_to_utf8(relation->options->parallel_field);
	plan.is_pipeline = mongo_is_derived(relation->options);
	plan.columns = scan_columns(relation->columns, fetched.attributes);
	plan.hiding = clauses.hiding;
	plan.hiding_columns = hiding_columns(baserel, &clauses);
	node.local = hashed_keys != NIL ? NIL : clauses.local;
	node.exact = clauses.exact;
	if (relation->score != NULL)
	{
		plan.columns = lappend(plan.columns, mongo_score_column(baserel));
		node.scan_tlist = mongo_score_tlist(baserel);
		/* no row is locked, so nothing is tested again */
		node.exact = NIL;
	}
	if (outer_plan != NULL && mongo_hashed_keys(best_path->fdw_outerpath) == NIL)
		mongo_local_describe(best_path, outer_plan, &node, &plan);
	else if (outer_plan != NULL)
		hash_expressions = mongo_hashed_describe(root, baserel, best_path,
												 list_length(translation.parameters) +
												 list_length(translation.variables), &plan);
	scan = mongo_make_foreign_scan(root, &plan, &translation, limited, &node);
	scan->fdw_exprs = list_concat(scan->fdw_exprs, hash_expressions);
	return scan;
}
