/*-------------------------------------------------------------------------
 *
 * scan_plan.c
 *		From the chosen path to a ForeignScan with its command.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_memory.h"
#include "command_template.h"
#include "encoding.h"
#include "feature.h"
#include "modify.h"
#include "plan.h"
#include "plan_clauses.h"
#include "plan_join.h"
#include "plan_order.h"
#include "plan_security.h"
#include "plan_upper.h"
#include "planning_state.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* Bytes of a document that a projection must save, see projection_pays(). */
#define PROJECTION_WORTH_BYTES	150

/* combine_conjuncts: one stands for itself, several under $and. */
static void
combine_conjuncts(List *conjuncts, bson_t *filter)
{
	bson_t		branches;
	int			i = 0;
	ListCell   *cell;

	if (list_length(conjuncts) == 1)
	{
		bson_concat(filter, linitial(conjuncts));
		return;
	}
	BSON_APPEND_ARRAY_BEGIN(filter, "$and", &branches);
	foreach(cell, conjuncts)
	{
		char		key[16];

		snprintf(key, sizeof(key), "%d", i++);
		BSON_APPEND_DOCUMENT(&branches, key, (bson_t *) lfirst(cell));
	}
	bson_append_array_end(filter, &branches);
}

static const MongoKnownCondition *
find_known(List *known, const RestrictInfo *rinfo)
{
	ListCell   *cell;

	foreach(cell, known)
	{
		const MongoKnownCondition *one = lfirst(cell);

		if (one->rinfo == rinfo)
			return one;
	}
	return NULL;
}

/* translate: a restriction of a table, or a clause of a join. */
static MongoGrade
translate(MongoTranslation *translation, RelOptInfo *baserel, RestrictInfo *rinfo,
		  bson_t *match)
{
	if (!mongo_enable_pushdown)
		return MONGO_NOT_SHIPPABLE;
	return baserel != NULL ?
		mongo_translate_restriction(translation, baserel, rinfo, match).grade :
		mongo_translate_condition(translation, rinfo->clause, match).grade;
}

void
mongo_sort_scan_clauses(MongoTranslation *translation, RelOptInfo *baserel,
						List *known, List *scan_clauses, MongoScanClauses *clauses)
{
	List	   *conjuncts = NIL;
	ListCell   *cell;

	memset(clauses, 0, sizeof(*clauses));
	foreach(cell, scan_clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		const MongoKnownCondition *earlier = find_known(known, rinfo);
		bson_t	   *match;
		MongoGrade	grade;

		/* pseudoconstants become a gating Result node */
		if (rinfo->pseudoconstant)
			continue;
		if (earlier != NULL &&
			(earlier->grade == MONGO_EXACT || !translation->need_exact))
		{
			match = earlier->match;
			grade = earlier->grade;
		}
		else
		{
			match = bson_create_in(CurrentMemoryContext);
			grade = translate(translation, baserel, rinfo, match);
		}
		if (grade != MONGO_NOT_SHIPPABLE && !bson_empty(match))
			conjuncts = lappend(conjuncts, match);
		if (grade == MONGO_EXACT)
		{
			clauses->exact = lappend(clauses->exact, rinfo->clause);
			continue;
		}
		if (baserel != NULL && mongo_hides_rows(baserel, rinfo))
			clauses->hiding = lappend_int(clauses->hiding, list_length(clauses->local));
		clauses->local = lappend(clauses->local, rinfo->clause);
	}

	clauses->filter = bson_create_in(CurrentMemoryContext);
	if (conjuncts != NIL)
		combine_conjuncts(conjuncts, clauses->filter);
}

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
 * bring: what the query above reads and what is tested here.
 *
 * Where a type mismatch is an error, what MongoDB tested is read as well: find's
 * language also matches inside an array and "<>" lets other types through,
 * and such a document must be reported, not returned.  Otherwise only what may
 * have to be tested here after all.
 */
static List *
fetched_attributes(PlannerInfo *root, RelOptInfo *baserel,
				   const MongoRelation *relation, const MongoScanClauses *clauses)
{
	Bitmapset  *used = NULL;
	List	   *attributes = NIL;
	ListCell   *cell;
	Relation	table;
	bool		whole_row;

	pull_varattnos((Node *) baserel->reltarget->exprs, baserel->relid, &used);
	if (mongo_whole_row_is_junk(root, baserel, &used))
		used = bms_del_member(used, 0 - FirstLowInvalidHeapAttributeNumber);
	pull_varattnos((Node *) clauses->local, baserel->relid, &used);
	foreach(cell, clauses->exact)
	{
		if (relation->options->type_mismatch == MONGO_TYPE_MISMATCH_ERROR ||
			has_list(lfirst(cell), NULL))
			pull_varattnos(lfirst(cell), baserel->relid, &used);
	}

	whole_row = bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
	table = table_open(relation->relid, NoLock);
	for (AttrNumber attnum = 1; attnum <= baserel->max_attr; attnum++)
	{
		if (TupleDescAttr(RelationGetDescr(table), attnum - 1)->attisdropped)
			continue;
		if (whole_row ||
			bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, used))
			attributes = lappend_int(attributes, attnum);
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
		result = lappend(result, column);
	}
	return result;
}

void
mongo_append_collation(bson_t *command, const MongoTranslation *translation)
{
	bson_t		collation;

	if (!translation->compares_text ||
		mongo_feature_is_disabled(translation->disabled, MONGO_FEATURE_COLLATION))
		return;
	BSON_APPEND_DOCUMENT_BEGIN(command, "collation", &collation);
	BSON_APPEND_UTF8(&collation, "locale", "simple");
	bson_append_document_end(command, &collation);
}

void
mongo_scan_plan_init(MongoScanPlan *plan, const MongoRelation *relation)
{
	memset(plan, 0, sizeof(*plan));
	plan->enough_rows = -1;
	plan->database = relation->options->database;
	plan->collection = relation->options->collection;
	plan->joined = relation->join == NULL ? NULL : mongo_join_namespace(relation);
	plan->fetch_size = relation->options->fetch_size;
	plan->type_mismatch = relation->options->type_mismatch;
	plan->canonical_json = relation->options->canonical_json;
}

/*
 * projection_pays: is it worth MongoDB's time to pick the fields?
 *
 * Picking them from a document takes MongoDB as long as sending some hundred
 * bytes more, so where ANALYZE has seen that documents hold little else, they
 * are better sent as they are.  Not knowing, we ask for the fields.
 */
static bool
projection_pays(RelOptInfo *baserel, const MongoRelation *relation, List *attributes)
{
	double		document_width;
	double		fields_width = 0;
	ListCell   *cell;

	if (baserel->pages == 0 || relation->analyzed_rows <= 0)
		return true;
	document_width = (double) baserel->pages * BLCKSZ / relation->analyzed_rows;

	foreach(cell, attributes)
	{
		AttrNumber	attnum = lfirst_int(cell);
		const char *path = mongo_column_path(relation->columns, attnum);
		int32		width = get_attavgwidth(relation->relid, attnum);

		if (path == NULL || width <= 0)
			return true;
		fields_width += width + strlen(path);
	}
	return document_width - fields_width > PROJECTION_WORTH_BYTES;
}

/* find_command: all of it but limit, skip and batchSize. */
static Const *
find_command(RelOptInfo *baserel, const MongoTranslation *translation,
			 const MongoScanClauses *clauses, List *attributes, List *pathkeys,
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
	if (conjuncts != NIL)
		combine_conjuncts(conjuncts, filter);

	BSON_APPEND_UTF8(command, "find", mongo_to_utf8(relation->options->collection));
	if (!bson_empty(filter))
		BSON_APPEND_DOCUMENT(command, "filter", filter);
	if (projection_pays(baserel, relation, attributes))
		mongo_append_projection(command, relation->columns, attributes);
	if (pathkeys != NIL)
		mongo_append_sort(baserel, pathkeys, part, command);
	mongo_append_collation(command, translation);
	return mongo_command_to_const(command);
}

/*
 * find_commands: one, or several to be run in turn where the order wanted is
 * MongoDB's in parts only.
 */
static List *
find_commands(RelOptInfo *baserel, const MongoTranslation *translation,
			  const MongoScanClauses *clauses, List *attributes, List *pathkeys)
{
	MongoSortPart parts[MONGO_MAX_SORT_PARTS] = {MONGO_SORT_ALL};
	int			nparts = 1;
	List	   *commands = NIL;

	if (pathkeys != NIL)
		nparts = mongo_sort_parts(baserel, pathkeys, parts);
	for (int i = 0; i < nparts; i++)
		commands = lappend(commands, find_command(baserel, translation, clauses,
												  attributes, pathkeys, parts[i]));
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

/* forget_key: what a batched join tests itself, the last clause, if there is one. */
static void
forget_key(MongoScanClauses *clauses, const Expr *key)
{
	int			last = list_length(clauses->local) - 1;

	if (key == NULL || last < 0 || list_nth(clauses->local, last) != key)
		return;
	clauses->local = list_truncate(clauses->local, last);
	clauses->hiding = list_delete_int(clauses->hiding, last);
}

/* get_scan_plan: of a foreign table, perhaps sorted and limited. */
static ForeignScan *
get_scan_plan(PlannerInfo *root, RelOptInfo *baserel, ForeignPath *best_path,
			  List *tlist, List *scan_clauses, Plan *outer_plan)
{
	MongoRelation *relation = baserel->fdw_private;
	List	   *private = best_path->fdw_private;
	bool		has_bounds = private != NIL && IsA(private, IntList);
	Expr	   *key = private != NIL && IsA(private, List) ? linitial(private) : NULL;
	MongoTranslation translation = mongo_translation_of(relation);
	MongoScanClauses clauses;
	List	   *attributes;
	List	   *expressions;
	MongoScanPlan plan;

	/* of a batched join, which tests it as well */
	if (key != NULL)
		scan_clauses = lappend(list_copy(scan_clauses),
							   make_simple_restrictinfo(root, key));
	translation.need_exact = has_bounds;
	mongo_sort_scan_clauses(&translation, baserel, relation->known, scan_clauses, &clauses);
	attributes = fetched_attributes(root, baserel, relation, &clauses);
	forget_key(&clauses, key);

	mongo_scan_plan_init(&plan, relation);
	plan.commands = find_commands(baserel, &translation, &clauses, attributes,
								  best_path->path.pathkeys);
	plan.enough_rows = enough_rows(root, baserel, relation,
								   best_path->path.pathkeys);
	plan.predicates = translation.predicates;
	if (best_path->path.parallel_aware)
		plan.split_field = mongo_to_utf8(relation->options->parallel_field);
	plan.nvariables = list_length(translation.variables);
	plan.has_limit = has_bounds && root->parse->limitCount != NULL;
	plan.has_offset = has_bounds && root->parse->limitOffset != NULL;
	plan.all_rows = root->tuple_fraction <= 0;
	plan.columns = scan_columns(relation->columns, attributes);
	plan.hiding = clauses.hiding;
	plan.hiding_columns = hiding_columns(baserel, &clauses);

	expressions = list_concat(translation.parameters, translation.variables);
	if (plan.has_limit)
		expressions = lappend(expressions, root->parse->limitCount);
	if (plan.has_offset)
		expressions = lappend(expressions, root->parse->limitOffset);

	return make_foreignscan(tlist, clauses.local, baserel->relid, expressions,
							mongo_scan_plan_to_list(&plan), NIL, clauses.exact,
							outer_plan);
}

ForeignScan *
mongo_get_foreign_plan(PlannerInfo *root, RelOptInfo *foreignrel,
					   Oid foreigntableid pg_attribute_unused(),
					   ForeignPath *best_path, List *tlist,
					   List *scan_clauses, Plan *outer_plan)
{
	mongo_check_planning_state(foreignrel);
	if (IS_UPPER_REL(foreignrel))
		return mongo_get_upper_plan(root, foreignrel, tlist, outer_plan);
	if (IS_JOIN_REL(foreignrel))
		return mongo_get_join_plan(root, foreignrel, tlist, outer_plan);
	return get_scan_plan(root, foreignrel, best_path, tlist, scan_clauses, outer_plan);
}
