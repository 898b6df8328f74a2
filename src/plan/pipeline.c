/*-------------------------------------------------------------------------
 *
 * pipeline.c
 *		Builds pipelines of stages.
 *
 * A MongoPipeline is a list of stages, and the columns and values that expressions after the last
 * stage can use.  This file appends single stages, makes the rows of a pipeline table from its
 * options, and tests conditions at the first stage where their columns are.  join.c and upper.c
 * append to the pipeline of a table or a join.
 *
 * Building stands first, then conditions on array elements, then the rows of one table.
 * mongo_score(), which needs a stage or a projection of its own, is at the end.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "options.h"
#include "convert.h"
#include "translate.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* --------------------------- Building pipelines --------------------------- */

/*
 * mongo_pipeline_append
 *		Appends the stage {name: specification}.
 *
 * The specification of a $match at the beginning is kept as only_match, and must not be freed.
 */
void
mongo_pipeline_append(MongoPipeline *pipeline, const char *name, const bson_t *specification)
{
	/* it stores all rows */
	pipeline->may_need_disk |= strcmp(name, "$sort") == 0;

	pipeline->only_match = pipeline->nstages == 0 && strcmp(name, "$match") == 0 ?
		specification : NULL;
	mongo_append_condition(pipeline->stages, psprintf("%d", pipeline->nstages++), name,
						   mongo_document(specification));
}

/*
 * mongo_pipeline_project
 *		Appends a $project of these fields (char *), unless one cannot be named.
 */
void
mongo_pipeline_project(MongoPipeline *pipeline, List *paths)
{
	bson_t	   *projection = mongo_bson_create();
	ListCell   *cell;

	foreach(cell, paths)
	{
		if (!mongo_path_is_addressable(lfirst(cell)))
			return;
	}
	mongo_append_paths(projection, paths);
	mongo_pipeline_append(pipeline, "$project", projection);
}

/*
 * mongo_pipeline_copy
 *		Returns a copy to which stages can be appended, in the current memory context.
 */
MongoPipeline
mongo_pipeline_copy(const MongoPipeline *source)
{
	MongoPipeline copy = *source;
	MongoTranslation *translation = &copy.translation;

	copy.stages = mongo_bson_copy_in(CurrentMemoryContext, source->stages);
	translation->computed = list_copy(translation->computed);
	translation->parameters = list_copy(translation->parameters);
	translation->predicates = list_copy(translation->predicates);
	translation->variables = list_copy(translation->variables);
	return copy;
}

/*
 * mongo_has_pseudoconstant
 *		Tells whether there is a clause without columns, which becomes a Result above the scan.
 */
bool
mongo_has_pseudoconstant(const List *rinfos)
{
	ListCell   *cell;

	foreach(cell, rinfos)
	{
		if (lfirst_node(RestrictInfo, cell)->pseudoconstant)
			return true;
	}
	return false;
}

/*-------------------------------------------------------------------------
 * Conditions on the elements of arrays, as conditions on the documents that contain them.
 *
 * {lines.product: 5} on a row is {lines: {$elemMatch: {product: 5}}} on its document.  All
 * conditions on one element are in one $elemMatch, so that MongoDB can use an index on several
 * of its fields, and both bounds of a range.
 *-------------------------------------------------------------------------
 */

/* Conditions on documents before their arrays are unwound. */
typedef struct MongoElements
{
	MongoTranslation *translation;	/* collects the parameters */
	List	   *paths;			/* char *, in the order of unwinding */
	List	  **within;			/* for each: conditions of one element, bson_t * */
	List	   *conditions;		/* of the document, bson_t * */
} MongoElements;

/*
 * Adds a condition on documents: an element at path number 'number' may satisfy 'clause', a
 * condition on the rows after unwinding it.  It matches a superset of the documents that have such
 * rows.
 */
static void
mongo_elements_add(MongoElements *elements, int number, const MongoRelation *relation,
				   Expr *clause)
{
	const char *path = list_nth(elements->paths, number);
	bson_t	   *match = mongo_bson_create();
	ListCell   *cell;

	/* elements of elements, at the same path */
	foreach(cell, elements->paths)
	{
		if (foreach_current_index(cell) != number && strcmp(lfirst(cell), path) == 0)
			return;
	}
	if (mongo_translate_for_element(elements->translation, relation->columns, path, 0, clause,
									match).exactness != MONGO_NOT_SHIPPABLE)
	{
		elements->within[number] = lappend(elements->within[number], match);
		return;
	}
	bson_reinit(match);
	if (mongo_translate_for_element(elements->translation, relation->columns, path,
									MONGO_UNWOUND_ELEMENT, clause,
									match).exactness != MONGO_NOT_SHIPPABLE)
		elements->conditions = lappend(elements->conditions, match);
}

/* Returns the number of the array whose elements contain this one, or -1. */
static int
enclosing_array(const List *paths, int number)
{
	int			outer = number - 1;

	while (outer >= 0 && !mongo_path_is_under(list_nth(paths, number), list_nth(paths, outer)))
		outer--;
	return outer;
}

/* Returns the conditions on documents, bson_t *, or NIL. */
static List *
mongo_elements_end(MongoElements *elements)
{
	for (int i = list_length(elements->paths) - 1; i >= 0; i--)
	{
		const char *path = list_nth(elements->paths, i);
		int			outer = enclosing_array(elements->paths, i);
		bson_t	   *condition;

		if (elements->within[i] == NIL)
			continue;
		if (outer >= 0)
			path += strlen(list_nth(elements->paths, outer)) + 1;
		condition = mongo_from_template("{@1: {$elemMatch: @2}}", mongo_utf8(path),
										mongo_document(mongo_conjunction(elements->within[i])));
		if (outer >= 0)
			elements->within[outer] = lappend(elements->within[outer], condition);
		else
			elements->conditions = lappend(elements->conditions, condition);
	}
	return elements->conditions;
}

/* -- The first stages of a pipeline over one table: they make its rows and test them -- */

/* Appends stages that contain no placeholders. */
static void
append_verbatim(MongoPipeline *pipeline, const BsonArray *stages)
{
	pipeline->only_match = NULL;
	mongo_append_member(pipeline->stages, psprintf("%d", pipeline->nstages++),
						"{" MONGO_VERBATIM_KEY ": @1}", mongo_array(stages->bson));
}

/* Tells whether the binding's condition is "column > value", not tested on the rows. */
static bool
is_after(const MongoBinding *binding)
{
	const OpExpr *operation = binding->rinfo != NULL ? (const OpExpr *) binding->rinfo->clause : NULL;
	Oid			operator;

	if (operation == NULL)
		return false;
	operator = IsA(mongo_strip_relabelling(linitial(operation->args)), Var) ? operation->opno :
		get_commutator(operation->opno);
	return mongo_default_strategy(operator, TEXTOID) == BTGreaterStrategyNumber;
}

/* Returns the parameter that has a value, with which a change stream starts; or NULL. */
static const char *
stream_start(const MongoRelation *relation, const List *bindings)
{
	foreach_ptr(const MongoBinding, binding, bindings)
	{
		if (binding->value != NULL)
			return mongo_column_options(relation->relid, binding->attnum)->parameter;
	}
	return NULL;
}

/*
 * Appends the stages of the option pipeline, with the numbers of its parameters' values.  A stage
 * after them makes the values fields, for the columns that the query reads.  Raises 22023 if two
 * columns have the same parameter.
 */
static void
append_bound(MongoPipeline *pipeline, const MongoRelation *relation,
			 const MongoScanClauses *clauses, BsonArray *stages)
{
	MongoTranslation *translation = &pipeline->translation;
	bson_t	   *values = mongo_bson_create();
	bson_t	   *fields = mongo_bson_create();
	bool		is_stream = relation->options->change_stream != NULL;

	foreach_ptr(const MongoBinding, binding, clauses->bindings)
	{
		const char *name = mongo_column_options(relation->relid, binding->attnum)->parameter;
		MongoPredicate predicate = {0};

		if (bson_has_field(values, name))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("two columns of foreign table \"%s\" have the parameter \"%s\"",
							get_rel_name(relation->relid), mongo_from_utf8(name))));
		if (binding->value == NULL)
		{
			if (!is_stream)
				mongo_append(values, name, mongo_utf8(mongo_to_utf8(mongo_column_name(relation->columns, binding->attnum))));
			continue;
		}
		predicate.field.path = mongo_column_path(relation->columns, binding->attnum);
		predicate.field.bson_type = mongo_column_bson_type(relation->columns, binding->attnum);
		predicate.field.type = exprType(binding->value);
		predicate.field.typmod = exprTypmod(binding->value);
		if (is_stream)
			mongo_set_start(&predicate.field, name, is_after(binding));
		mongo_append_placeholder(translation, &predicate, binding->value, name, values);
		if (!is_stream &&
			(bms_is_member(binding->attnum - FirstLowInvalidHeapAttributeNumber, clauses->read) ||
			 bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, clauses->read)))
			mongo_append_member(fields, predicate.field.path, "{$literal: {" MONGO_PARAM_KEY ": @1}}",
								mongo_utf8(name));
	}
	if (!bson_empty(fields))
		mongo_array_append_template(stages, "{$set: @1}", mongo_document(fields));
	pipeline->only_match = NULL;
	mongo_append_member(pipeline->stages, psprintf("%d", pipeline->nstages++),
						"{" MONGO_VERBATIM_KEY ": @1, " MONGO_TABLE_KEY ": @2, " MONGO_VALUES_KEY ": @3}",
						mongo_array(stages->bson),
						mongo_utf8(mongo_to_utf8(get_rel_name(relation->relid))), mongo_document(values));
}

static void
append_matches(MongoPipeline *pipeline, const List *matches)
{
	const bson_t *filter = mongo_conjunction(matches);

	if (!bson_empty(filter))
		mongo_pipeline_append(pipeline, "$match", filter);
}

/*
 * mongo_no_array
 *		Returns how a scan treats what is no array at a path that it unwinds.
 */
MongoNoArray
mongo_no_array(const MongoRelation *relation)
{
	/* no error may reveal hidden documents */
	return relation->options->type_mismatch == MONGO_TYPE_MISMATCH_NULL ||
		relation->columns->shows_mismatches ? MONGO_NO_ARRAY_IS_NULL :
		relation->options->type_mismatch == MONGO_TYPE_MISMATCH_SKIP || relation->has_barrier ?
		MONGO_NO_ARRAY_IS_LEFT_OUT : MONGO_NO_ARRAY_RAISES;
}

/*
 * Returns the filters (bson_t *) of the conditions that MongoDB tests, in a list for each number of
 * arrays that must be unwound before.  Those on elements also narrow the documents before, as far
 * as indexes may serve that.
 */
static List **
matches_by_depth(const MongoRelation *relation, MongoTranslation *translation,
				 const MongoScanClauses *clauses)
{
	List	   *paths = mongo_unwound_paths(relation->options);
	List	  **matches = palloc0(sizeof(List *) * (list_length(paths) + 1));
	MongoElements elements = {.translation = translation, .paths = paths};

	elements.within = palloc0(sizeof(List *) * Max(list_length(paths), 1));
	foreach_ptr(const MongoClause, sent, clauses->sent)
	{
		int			depth = mongo_unwound_depth(relation->options, relation->columns,
												(Node *) sent->rinfo->clause);

		matches[depth] = lappend(matches[depth], sent->match);
		if (depth > 0)
			mongo_elements_add(&elements, depth - 1, relation, sent->rinfo->clause);
	}
	matches[0] = list_concat(matches[0], mongo_elements_end(&elements));
	return matches;
}

/*
 * mongo_document_conditions
 *		Returns the filters (bson_t *) that a find tests whose documents the scan then unwinds.
 */
List *
mongo_document_conditions(const MongoRelation *relation, MongoTranslation *translation,
						  const MongoScanClauses *clauses)
{
	return matches_by_depth(relation, translation, clauses)[0];
}

/*
 * mongo_pipeline_make_rows
 *		Appends the stages that make the rows of the relation's table, if it is a pipeline table,
 *		and a $match of the conditions in 'clauses' that MongoDB tests.
 *
 * Where arrays are unwound, each condition is tested as soon as its columns are there.  Raises what
 * mongo_append_pipeline() raises, and 22023 if two columns have the same parameter.
 */
void
mongo_pipeline_make_rows(MongoPipeline *pipeline, const MongoRelation *relation,
						 const MongoScanClauses *clauses)
{
	int			npaths = list_length(mongo_unwound_paths(relation->options));
	List	  **at_depth;

	if (mongo_has_first_stages(relation->options))
	{
		BsonArray	stages = mongo_array_create();

		if (relation->options->change_stream != NULL)
			mongo_append_change_stream(&stages, relation->options, relation->columns, clauses->read,
									   stream_start(relation, clauses->bindings));
		mongo_append_pipeline(&stages, relation->options);
		if (relation->score != NULL)
			mongo_array_append_template(&stages, "{$set: {@1: {$meta: @2}}}",
										mongo_utf8(relation->score_field),
										mongo_utf8(relation->score_meta));
		if (clauses->bindings == NIL && (relation->options->pipeline == NULL ||
										 strstr(relation->options->pipeline, MONGO_PARAM_KEY) == NULL))
			append_verbatim(pipeline, &stages);
		else
			append_bound(pipeline, relation, clauses, &stages);
		pipeline->may_need_disk = true;
	}

	at_depth = matches_by_depth(relation, &pipeline->translation, clauses);
	if (relation->fit != NULL)
		at_depth[npaths] = lappend(at_depth[npaths], unconstify(bson_t *, relation->fit));
	append_matches(pipeline, at_depth[0]);
	for (int i = 0; i < npaths; i++)
	{
		BsonArray	stages = mongo_array_create();

		mongo_append_unwind(&stages, relation->options, i, relation->reads_ordinality,
							mongo_no_array(relation));
		/* the elements' numbers follow the last one */
		if (relation->reads_ordinality && i == npaths - 1)
			mongo_append_ordinality(&stages, relation->options);
		append_verbatim(pipeline, &stages);
		append_matches(pipeline, at_depth[i + 1]);
	}
}

/*
 * mongo_exact_pipeline
 *		Returns the stages that make the rows of a foreign table and test all restrictions; NULL if
 *		PostgreSQL has to test one, or if the rows are a change stream's.
 *
 * They are made once, in the relation's memory context, and are not to be changed.  Raises what
 * mongo_pipeline_make_rows() raises.
 */
const MongoPipeline *
mongo_exact_pipeline(RelOptInfo *rel)
{
	MongoRelation *relation = rel->fdw_private;
	MongoPipeline pipeline = {.translation = mongo_translation_of(relation)};
	MongoScanClauses clauses;
	MemoryContext old_context;

	if (!mongo_enable_pushdown || relation->asked_for_pipeline || relation->skips_locally ||
		relation->unbound || relation->options->change_stream != NULL)
		return relation->pipeline;
	relation->asked_for_pipeline = true;
	old_context = mongo_enter_planning(rel);
	pipeline.translation.need_exact = true;
	pipeline.stages = mongo_bson_create();
	mongo_classify_clauses(&pipeline.translation, rel, rel->baserestrictinfo, false, &clauses);
	if (clauses.local == NIL)
	{
		mongo_pipeline_make_rows(&pipeline, relation, &clauses);
		pipeline.translation.skips = true;
		relation->pipeline = memcpy(palloc(sizeof(pipeline)), &pipeline, sizeof(pipeline));
	}
	MemoryContextSwitchTo(old_context);
	return relation->pipeline;
}

/*-------------------------------------------------------------------------
 * mongo_score(): the text score of a document.
 *
 * MongoDB returns it in addition to the document, for {$meta: "textScore"}.  So the scan's tuple
 * has one attribute more than the table, after its columns.
 *-------------------------------------------------------------------------
 */

/* What the walkers search for. */
typedef struct ScoreSearch
{
	Index		varno;
	Expr	   *score;			/* the first call found */
} ScoreSearch;

/* Finds the first call of mongo_score(); a tree walker. */
static bool
find_score(Node *node, ScoreSearch *search)
{
	if (node == NULL)
		return false;
	if (mongo_is_score(node, search->varno))
	{
		search->score = (Expr *) node;
		return true;
	}
	return expression_tree_walker(node, find_score, search);
}

/* Tells whether the node needs anything of the row except columns and the score; a tree walker. */
static bool
reads_row(Node *node, ScoreSearch *search)
{
	if (node == NULL || mongo_is_score(node, search->varno))
		return false;
	if (IsA(node, Var))
		return ((Var *) node)->varno == (int) search->varno && ((Var *) node)->varattno <= 0;
	return expression_tree_walker(node, reads_row, search);
}

/* Tells whether the query returns the rows of the scan. */
static bool
is_simple(const PlannerInfo *root, const RelOptInfo *baserel)
{
	const Query *parse = root->parse;

	return parse->commandType == CMD_SELECT && parse->rowMarks == NIL && !parse->hasAggs &&
		parse->groupClause == NIL && parse->groupingSets == NIL &&
		!parse->hasWindowFuncs && !parse->hasTargetSRFs && parse->havingQual == NULL &&
		parse->setOperations == NULL && bms_equal(root->all_baserels, baserel->relids);
}

/* Tells whether PostgreSQL tests anything of the row except columns. */
static bool
tests_row(const RelOptInfo *baserel, ScoreSearch *search)
{
	foreach_node(RestrictInfo, rinfo, baserel->baserestrictinfo)
	{
		const MongoClause *clause = mongo_known_clause(baserel, rinfo);

		if ((clause == NULL || clause->condition.exactness != MONGO_EXACT) &&
			reads_row((Node *) rinfo->clause, search))
			return true;
	}
	return false;
}

/*
 * mongo_reads_score
 *		Returns the first call of mongo_score() in a query over this table alone, without
 *		aggregates, that returns nothing else of the row but columns; otherwise NULL.
 */
Expr *
mongo_reads_score(PlannerInfo *root, const RelOptInfo *baserel)
{
	ScoreSearch search = {baserel->relid, NULL};

	return is_simple(root, baserel) &&
		find_score((Node *) root->processed_tlist, &search) &&
		!reads_row((Node *) root->processed_tlist, &search) ? search.score : NULL;
}

/*
 * mongo_note_score
 *		Sets 'score', 'score_field' and 'score_meta' of the MongoRelation for such a query, if it
 *		tests nothing of the row but columns.
 *
 * Otherwise the function is called, and raises an error.
 */
void
mongo_note_score(PlannerInfo *root, RelOptInfo *baserel)
{
	MongoRelation *relation = baserel->fdw_private;
	ScoreSearch search = {baserel->relid, mongo_reads_score(root, baserel)};

	if (search.score == NULL || !mongo_enable_pushdown || baserel->reloptkind != RELOPT_BASEREL ||
		tests_row(baserel, &search))
		return;
	relation->score_meta = mongo_score_meta(relation->options);
	if (relation->score_meta == NULL)
		return;
	relation->score = search.score;
	relation->score_field = mongo_unused_field(relation->columns, "score");
}

/*
 * mongo_is_score_order
 *		Tells whether the pathkeys are mongo_score() alone, descending.
 */
bool
mongo_is_score_order(const MongoRelation *relation, const List *pathkeys)
{
	const PathKey *pathkey;
	ListCell   *cell;

	if (relation->score == NULL || list_length(pathkeys) != 1)
		return false;
	pathkey = linitial_node(PathKey, pathkeys);
	if (mongo_pathkey_is_ascending(pathkey))
		return false;
	foreach(cell, pathkey->pk_eclass->ec_members)
	{
		if (equal(((EquivalenceMember *) lfirst(cell))->em_expr, relation->score))
			return true;
	}
	return false;
}

/*
 * mongo_append_score
 *		Appends the score to a projection or a sort.
 */
void
mongo_append_score(bson_t *document, const MongoRelation *relation)
{
	/* make_rows() makes it a field; to $project, -1 is as good as 1 */
	if (mongo_is_pipeline_table(relation->options))
		mongo_append(document, relation->score_field, mongo_int32(-1));
	else
		mongo_append_condition(document, relation->score_field, "$meta",
							   mongo_utf8(relation->score_meta));
}

/*
 * mongo_add_score_column
 *		Adds the score as a column of the plan and of the scan's tuple.
 */
void
mongo_add_score_column(const RelOptInfo *baserel, MongoScanPlan *plan, ForeignScan *scan)
{
	const MongoRelation *relation = baserel->fdw_private;
	MongoColumn *column = palloc0(sizeof(MongoColumn));
	Relation	table = table_open(relation->relid, NoLock);
	List	   *tlist = NIL;

	for (AttrNumber attnum = 1; attnum <= baserel->max_attr; attnum++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(table), attnum - 1);
		Expr	   *expression = attribute->attisdropped ?
			(Expr *) makeNullConst(INT4OID, -1, InvalidOid) :
			(Expr *) makeVar(baserel->relid, attnum, attribute->atttypid,
							 attribute->atttypmod, attribute->attcollation, 0);

		tlist = lappend(tlist, makeTargetEntry(expression, attnum, NULL, false));
	}
	table_close(table, NoLock);
	scan->fdw_scan_tlist = lappend(tlist, makeTargetEntry(relation->score, baserel->max_attr + 1,
														  NULL, false));
	column->index = baserel->max_attr;
	column->name = "mongo_score";
	column->path = relation->score_field;
	column->typid = FLOAT8OID;
	column->typmod = -1;
	plan->columns = lappend(plan->columns, column);
}
