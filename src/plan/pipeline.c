/*-------------------------------------------------------------------------
 *
 * pipeline.c
 *		Pipelines in the making.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "common.h"
#include "options.h"
#include "convert.h"
#include "translate.h"

#include "access/table.h"
#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* What documents are asked for before their arrays are unwound. */
typedef struct MongoElements
{
	MongoTranslation *translation;	/* gathers the parameters */
	List	   *paths;			/* char *, in the order of unwinding */
	List	  **within;			/* for each: conditions of one element, bson_t * */
	List	   *conditions;		/* of the document, bson_t * */
} MongoElements;

static void mongo_elements_add(MongoElements *elements, int number, const bson_t *match);
static List *mongo_elements_end(MongoElements *elements);

/* ------------------------ Pipelines in the making ------------------------- */

/* Is this a $group that makes one group of all? */
static bool
is_one_group(const bson_t *specification)
{
	bson_iter_t key;

	return bson_iter_init_find(&key, specification, "_id") &&
		BSON_ITER_HOLDS_NULL(&key);
}

void
mongo_pipeline_append(MongoPipeline *pipeline, const char *name,
					  const bson_t *specification)
{
	/* these keep rows or groups until they have seen all there are */
	if (strcmp(name, "$sort") == 0 ||
		(strcmp(name, "$group") == 0 && !is_one_group(specification)))
		pipeline->may_need_disk = true;

	pipeline->only_match = pipeline->nstages == 0 && strcmp(name, "$match") == 0 ?
		specification : NULL;
	bson_append_condition(pipeline->stages, psprintf("%d", pipeline->nstages++), name,
						  bson_document(specification));
}

void
mongo_pipeline_project(MongoPipeline *pipeline, List *paths)
{
	bson_t	   *projection = bson_create_in(CurrentMemoryContext);
	ListCell   *cell;

	foreach(cell, paths)
	{
		if (!mongo_path_is_addressable(lfirst(cell)))
			return;
	}
	mongo_append_paths(projection, paths);
	mongo_pipeline_append(pipeline, "$project", projection);
}

MongoPipeline
mongo_pipeline_copy(const MongoPipeline *source)
{
	MongoPipeline copy = *source;
	MongoTranslation *translation = &copy.translation;

	copy.stages = bson_copy_in(CurrentMemoryContext, source->stages);
	copy.held = list_copy(source->held);
	copy.arrays = list_copy(source->arrays);
	translation->computed = list_copy(translation->computed);
	translation->parameters = list_copy(translation->parameters);
	translation->predicates = list_copy(translation->predicates);
	translation->variables = list_copy(translation->variables);
	return copy;
}

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

const MongoPipeline *
mongo_pipeline_of(PlannerInfo *root, RelOptInfo *rel)
{
	MongoRelation *relation = rel->fdw_private;

	if (!mongo_enable_pushdown || relation == NULL)
		return NULL;
	if (rel->reloptkind == RELOPT_JOINREL)
		return relation->pipeline;
	if (!IS_SIMPLE_REL(rel) || !bms_is_empty(rel->lateral_relids) ||
		relation->options->type_mismatch != MONGO_TYPE_MISMATCH_ERROR ||
		(root->hasPseudoConstantQuals && mongo_has_pseudoconstant(rel->baserestrictinfo)))
		return NULL;
	return mongo_exact_pipeline(rel);
}

/*-------------------------------------------------------------------------
 * How pipelines over one table begin: what makes its rows, and what tests
 * them.
 *-------------------------------------------------------------------------
 */

/* append_verbatim: stages in which nothing stands for anything else. */
static void
append_verbatim(MongoPipeline *pipeline, const BsonArray *stages)
{
	pipeline->only_match = NULL;
	bson_append_member(pipeline->stages, psprintf("%d", pipeline->nstages++),
					   "{" MONGO_VERBATIM_KEY ": @1}", bson_array(stages->bson));
}

static void
append_matches(MongoPipeline *pipeline, const List *matches)
{
	bson_t	   *filter = bson_create_in(CurrentMemoryContext);

	mongo_append_conjuncts(filter, matches);
	if (!bson_empty(filter))
		mongo_pipeline_append(pipeline, "$match", filter);
}

/*
 * path_depth: how many of the arrays have to be unwound before the field at 'path' is
 * what the table's rows have there.
 */
static int
path_depth(const MongoTableOptions *options, const List *paths, const char *path)
{
	int			depth = 0;
	ListCell   *cell;

	if (path == NULL)
		return list_length(paths);
	foreach(cell, mongo_ordinality_fields(options))
	{
		if (mongo_path_is_under(path, lfirst(cell)))
			return list_length(paths);
	}
	foreach(cell, paths)
	{
		if (mongo_path_is_under(path, lfirst(cell)) || mongo_path_is_under(lfirst(cell), path))
			depth = foreach_current_index(cell) + 1;
	}
	return depth;
}

/* clause_depth: likewise, before a clause can be tested. */
static int
clause_depth(const MongoRelation *relation, const List *paths, Expr *clause)
{
	int			depth = 0;
	ListCell   *cell;

	foreach(cell, pull_var_clause((Node *) clause, PVC_RECURSE_PLACEHOLDERS))
	{
		Var		   *var = lfirst_node(Var, cell);

		if (var->varno != (int) relation->columns->varno)
			continue;
		depth = Max(depth, path_depth(relation->options, paths, var->varattno <= 0 ? NULL :
									  mongo_column_path(relation->columns, var->varattno)));
	}
	return depth;
}

/*
 * narrows: may documents be asked for by the fields of the element at 'path'?  Not where
 * the element may be an array for SQL too: MongoDB looks into an array that is a field's
 * value, and not into one that is an element.
 */
static bool
narrows(const MongoRelation *relation, const char *path, Expr *clause)
{
	ListCell   *cell;

	foreach(cell, pull_var_clause((Node *) clause, PVC_RECURSE_PLACEHOLDERS))
	{
		Var		   *var = lfirst_node(Var, cell);
		MongoTypeKind kind = mongo_type_kind(getBaseType(var->vartype));
		const char *field;

		if (var->varno != (int) relation->columns->varno)
			continue;
		field = var->varattno <= 0 ? NULL :
			mongo_column_path(relation->columns, var->varattno);
		if (field == NULL ||
			(strcmp(field, path) == 0 &&
			 (kind == MONGO_KIND_OTHER || kind == MONGO_KIND_JSON || kind == MONGO_KIND_JSONB)))
			return false;
	}
	return true;
}

void
mongo_pipeline_derive(MongoPipeline *pipeline, const MongoRelation *relation,
					  const MongoScanClauses *clauses)
{
	List	   *paths = mongo_unwound_paths(relation->options);
	List	  **at_depth = palloc0(sizeof(List *) * (list_length(paths) + 1));
	MongoElements elements = {.translation = &pipeline->translation, .paths = paths};

	/* what becomes of other things; nobody hears of documents that are hidden */
	MongoNoArray no_array = relation->options->type_mismatch == MONGO_TYPE_MISMATCH_NULL ?
		MONGO_NO_ARRAY_IS_NULL :
		relation->has_barrier ? MONGO_NO_ARRAY_IS_LEFT_OUT : MONGO_NO_ARRAY_RAISES;
	ListCell   *cell;

	if (relation->options->pipeline != NULL)
	{
		BsonArray	stages = bson_array_create();

		mongo_append_pipeline(&stages, relation->options);
		append_verbatim(pipeline, &stages);
		pipeline->may_need_disk = true;
	}

	elements.within = palloc0(sizeof(List *) * Max(list_length(paths), 1));
	foreach(cell, clauses->sent)
	{
		const MongoClause *sent = lfirst(cell);
		int			depth = clause_depth(relation, paths, sent->rinfo->clause);

		at_depth[depth] = lappend(at_depth[depth], sent->match);
		if (depth > 0 && narrows(relation, list_nth(paths, depth - 1), sent->rinfo->clause))
			mongo_elements_add(&elements, depth - 1, sent->match);
	}
	at_depth[0] = list_concat(at_depth[0], mongo_elements_end(&elements));

	append_matches(pipeline, at_depth[0]);
	for (int i = 0; i < list_length(paths); i++)
	{
		BsonArray	stages = bson_array_create();

		mongo_append_unwind(&stages, relation->options, i, no_array);
		/* the last is followed by the elements' numbers */
		if (i == list_length(paths) - 1)
			mongo_append_ordinality(&stages, relation->options);
		append_verbatim(pipeline, &stages);
		append_matches(pipeline, at_depth[i + 1]);
	}
}

/*-------------------------------------------------------------------------
 * Conditions on the elements of arrays, asked of the documents that hold them.
 *
 * {lines.product: 5} of a row is {lines: {$elemMatch: {product: 5}}} of its document.
 * All conditions on one element go into one $elemMatch, so that an index on several
 * of its fields, and both bounds of a range, serve.
 *-------------------------------------------------------------------------
 */

/* view_of: the document or array at the iterator; false for anything else. */
static bool
view_of(const bson_iter_t *iter, bson_t *view)
{
	const bson_value_t *value = bson_iter_value(unconstify(bson_iter_t *, iter));

	return (value->value_type == BSON_TYPE_DOCUMENT || value->value_type == BSON_TYPE_ARRAY) &&
		bson_view(view, value->value.v_doc.data, value->value.v_doc.data_len);
}

/* ------------------------ rows without the element -------------------------- */

static bool
is_null(const bson_iter_t *value)
{
	return BSON_ITER_HOLDS_NULL(value) || BSON_ITER_HOLDS_UNDEFINED(value);
}

static bool
holds_null(const bson_iter_t *list)
{
	bson_iter_t element;

	if (!BSON_ITER_HOLDS_ARRAY(list) || !bson_iter_recurse(list, &element))
		return true;
	while (bson_iter_next(&element))
	{
		if (is_null(&element))
			return true;
	}
	return false;
}

/* operator_rejects: is the condition {operator: value} false of what is missing? */
static bool
operator_rejects(const bson_iter_t *operator)
{
	static const char *const comparisons[] = {"$eq", "$gt", "$gte", "$lt", "$lte"};
	const char *name = bson_iter_key(operator);

	for (size_t i = 0; i < lengthof(comparisons); i++)
	{
		if (strcmp(name, comparisons[i]) == 0)
			return !is_null(operator) && bson_iter_type(operator) != BSON_TYPE_MINKEY &&
				bson_iter_type(operator) != BSON_TYPE_MAXKEY;
	}
	if (strcmp(name, "$in") == 0)
		return !holds_null(operator);
	if (strcmp(name, "$ne") == 0)
		return is_null(operator);
	if (strcmp(name, "$nin") == 0)
		return BSON_ITER_HOLDS_ARRAY(operator) && holds_null(operator);
	return strcmp(name, "$regex") == 0 || strcmp(name, "$type") == 0 ||
		strcmp(name, "$elemMatch") == 0;
}

/* field_rejects: is the condition on a field false where there is none? */
static bool
field_rejects(const bson_iter_t *field)
{
	bson_iter_t operator;
	bool		is_operators = false;

	if (BSON_ITER_HOLDS_DOCUMENT(field) && bson_iter_recurse(field, &operator))
	{
		while (bson_iter_next(&operator))
		{
			is_operators |= bson_iter_key(&operator)[0] == '$';
			if (operator_rejects(&operator))
				return true;
		}
	}
	return !is_operators && !is_null(field);
}

/* rejects_missing: is the match document false of what has none of its fields? */
static bool
rejects_missing(const bson_t *match)
{
	bson_iter_t field;

	check_stack_depth();
	if (!bson_iter_init(&field, match))
		return false;
	while (bson_iter_next(&field))
	{
		const char *key = bson_iter_key(&field);
		bool		any = false;
		bool		all = true;
		bson_iter_t branch;
		bson_t		view;

		/* what a parameter stands for is strict */
		if (key[0] != '$' ? field_rejects(&field) : strcmp(key, MONGO_PARAMETER_KEY) == 0)
			return true;
		if ((strcmp(key, "$and") != 0 && strcmp(key, "$or") != 0) ||
			!bson_iter_recurse(&field, &branch))
			continue;
		while (bson_iter_next(&branch))
		{
			bool		rejects = view_of(&branch, &view) && rejects_missing(&view);

			any |= rejects;
			all &= rejects;
		}
		if (strcmp(key, "$and") == 0 ? any : all)
			return true;
	}
	return false;
}

/* -------------------------- fields of the element --------------------------- */

/* repeat_parameter: its value in a predicate of its own. */
static void
repeat_parameter(MongoTranslation *translation, int number, const MongoPredicate *predicate,
				 bson_t *match)
{
	BSON_APPEND_INT32(match, MONGO_PARAMETER_KEY, list_length(translation->parameters));
	translation->parameters = lappend(translation->parameters,
									  list_nth(translation->parameters, number));
	translation->predicates = lappend(translation->predicates,
									  mongo_predicate_to_list(predicate));
}

/*
 * strip_parameter: the predicate once more, on the field as the element has it; false
 * if it is on another.
 */
static bool
strip_parameter(MongoTranslation *translation, int number, const char *path, bson_t *stripped)
{
	MongoPredicate *predicate = mongo_predicate_from_list(list_nth(translation->predicates,
																   number));

	if (!mongo_path_is_under(predicate->path, path) || predicate->path[strlen(path)] == '\0')
		return false;
	predicate->path += strlen(path) + 1;
	repeat_parameter(translation, number, predicate, stripped);
	return true;
}

static bool strip_match(MongoTranslation *translation, const bson_t *match, const char *path,
						bool negated, bson_t *stripped);

/*
 * strip_branches: of $and, $or and $nor.  What cannot be said may be left out of $and,
 * unless it is below a $nor.
 */
static bool
strip_branches(MongoTranslation *translation, const bson_iter_t *array, const char *path,
			   bool negated, bson_t *stripped)
{
	const char *operator = bson_iter_key(array);
	BsonArray	branches = bson_array_create();
	bson_iter_t branch;
	bson_t		view;

	negated |= strcmp(operator, "$nor") == 0;
	if (!BSON_ITER_HOLDS_ARRAY(array) || !bson_iter_recurse(array, &branch))
		return false;
	while (bson_iter_next(&branch))
	{
		bson_t	   *one = bson_create_in(CurrentMemoryContext);

		if (view_of(&branch, &view) && strip_match(translation, &view, path, negated, one))
			bson_array_append(&branches, bson_document(one));
		else if (negated || strcmp(operator, "$and") != 0)
			return false;
	}
	if (branches.count > 0)
		BSON_APPEND_ARRAY(stripped, operator, branches.bson);
	return branches.count > 0;
}

/*
 * strip_match: the conditions as the element at 'path' would have them, all of whose
 * fields are below that; false if that cannot be said.
 */
static bool
strip_match(MongoTranslation *translation, const bson_t *match, const char *path,
			bool negated, bson_t *stripped)
{
	bson_iter_t field;

	check_stack_depth();
	if (!bson_iter_init(&field, match))
		return false;
	while (bson_iter_next(&field))
	{
		const char *key = bson_iter_key(&field);
		bool		done = false;

		if (strcmp(key, MONGO_PARAMETER_KEY) == 0)
			done = strip_parameter(translation, bson_iter_int32(&field), path, stripped);
		else if (strcmp(key, "$and") == 0 || strcmp(key, "$or") == 0 ||
				 strcmp(key, "$nor") == 0)
			done = strip_branches(translation, &field, path, negated, stripped);
		else if (key[0] != '$' && mongo_path_is_under(key, path) && key[strlen(path)] == '.')
			done = bson_append_iter(stripped, key + strlen(path) + 1, -1, &field);
		if (!done)
			return false;
	}
	return !bson_empty(stripped);
}

/* --------------------------- the element itself ----------------------------- */

/*
 * whole_field: {path: {$elemMatch: {operator: value}}}, or false, as for what is true without
 * an element.
 */
static bool
whole_field(const bson_iter_t *field, bson_t *result)
{
	const bson_value_t *value = bson_iter_value(unconstify(bson_iter_t *, field));
	bson_iter_t operator;

	if (BSON_ITER_HOLDS_REGEX(field) || !field_rejects(field))
		return false;
	if (BSON_ITER_HOLDS_DOCUMENT(field) && bson_iter_recurse(field, &operator) &&
		bson_iter_next(&operator) && bson_iter_key(&operator)[0] == '$')
		bson_append_condition(result, bson_iter_key(field), "$elemMatch", *value);
	else
		bson_append_member(result, bson_iter_key(field), "{$elemMatch: {$eq: @1}}", *value);
	return true;
}

/*
 * whole_parameter: an equality with a parameter means any element there as it is, but
 * for the guards of type_mismatch 'null', which ask for no array.
 */
static bool
whole_parameter(MongoTranslation *translation, int number, const char *path, bson_t *result)
{
	MongoPredicate *predicate = mongo_predicate_from_list(list_nth(translation->predicates,
																   number));

	if (strcmp(predicate->path, path) != 0 || predicate->strategy != BTEqualStrategyNumber ||
		predicate->form == MONGO_PREDICATE_ALL)
		return false;
	predicate->type_mismatch = MONGO_TYPE_MISMATCH_ERROR;
	repeat_parameter(translation, number, predicate, result);
	return true;
}

/*
 * whole_match: conditions on the element at 'path' itself, such as a String, as
 * conditions on the document.
 */
static bool
whole_match(MongoTranslation *translation, const bson_t *match, const char *path,
			bson_t *result)
{
	bson_iter_t field;

	check_stack_depth();
	if (!bson_iter_init(&field, match) || !bson_iter_next(&field))
		return false;
	do
	{
		const char *key = bson_iter_key(&field);
		BsonArray	branches = bson_array_create();
		bson_iter_t branch;
		bson_t		view;

		if (strcmp(key, path) == 0)
		{
			if (!whole_field(&field, result))
				return false;
		}
		else if (strcmp(key, MONGO_PARAMETER_KEY) == 0)
		{
			if (!whole_parameter(translation, bson_iter_int32(&field), path, result))
				return false;
		}
		else if ((strcmp(key, "$and") == 0 || strcmp(key, "$or") == 0) &&
				 bson_iter_recurse(&field, &branch))
		{
			while (bson_iter_next(&branch))
			{
				bson_t	   *one = bson_create_in(CurrentMemoryContext);

				if (view_of(&branch, &view) && whole_match(translation, &view, path, one))
					bson_array_append(&branches, bson_document(one));
				else if (strcmp(key, "$or") == 0)
					return false;
			}
			if (branches.count == 0)
				return false;
			BSON_APPEND_ARRAY(result, key, branches.bson);
		}
		else
			return false;
	} while (bson_iter_next(&field));
	return true;
}

/* ------------------------------- all of them -------------------------------- */

/*
 * mongo_elements_add
 *		Ask for documents in which an element at path number 'number' may meet
 *		'match', which is a condition on the rows after it is unwound.
 *
 * What matches is a superset of the documents that have such rows.  Nothing is asked
 * for where that cannot be said in find's language, or where a row without the
 * element would do.
 */
static void
mongo_elements_add(MongoElements *elements, int number, const bson_t *match)
{
	const char *path = list_nth(elements->paths, number);
	MongoMark	before = mongo_mark(elements->translation);
	bson_t	   *result = bson_create_in(CurrentMemoryContext);
	ListCell   *cell;

	/* elements of elements, under one name */
	foreach(cell, elements->paths)
	{
		if (foreach_current_index(cell) != number && strcmp(lfirst(cell), path) == 0)
			return;
	}

	/*
	 * of the element's own conditions: another field may have rejected the
	 * row
	 */
	if (strip_match(elements->translation, match, path, false, result))
	{
		if (rejects_missing(result))
			elements->within[number] = lappend(elements->within[number], result);
		else
			mongo_return_to(elements->translation, before);
		return;
	}
	mongo_return_to(elements->translation, before);
	result = bson_create_in(CurrentMemoryContext);
	if (whole_match(elements->translation, match, path, result))
		elements->conditions = lappend(elements->conditions, result);
}

/* around: the number of the array whose elements hold the one with this number, or -1. */
static int
around(const List *paths, int number)
{
	int			outer = number - 1;

	while (outer >= 0 && !mongo_path_is_under(list_nth(paths, number), list_nth(paths, outer)))
		outer--;
	return outer;
}

/*
 * mongo_elements_end
 *		The conditions on documents, bson_t *, NIL for none.
 */
static List *
mongo_elements_end(MongoElements *elements)
{
	for (int i = list_length(elements->paths) - 1; i >= 0; i--)
	{
		const char *path = list_nth(elements->paths, i);
		int			outer = around(elements->paths, i);
		bson_t	   *match = bson_create_in(CurrentMemoryContext);
		bson_t	   *condition;

		if (elements->within[i] == NIL)
			continue;
		mongo_append_conjuncts(match, elements->within[i]);
		if (outer >= 0)
			path += strlen(list_nth(elements->paths, outer)) + 1;
		condition = bson_from_template("{" MONGO_ELEMENTS_KEY ": {path: @1, match: @2}}",
									   bson_utf8(path), bson_document(match));
		if (outer >= 0)
			elements->within[outer] = lappend(elements->within[outer], condition);
		else
			elements->conditions = lappend(elements->conditions, condition);
	}
	return elements->conditions;
}

/* ------- mongo_score(): what $text has found a document to be worth ------- */

/* What the walkers look for. */
typedef struct ScoreSearch
{
	Index		varno;
	Expr	   *score;			/* the first call found */
} ScoreSearch;

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

/* reads_row: is anything of the row needed, but columns and its score? */
static bool
reads_row(Node *node, ScoreSearch *search)
{
	if (node == NULL || mongo_is_score(node, search->varno))
		return false;
	if (IsA(node, Var))
		return ((Var *) node)->varno == (int) search->varno && ((Var *) node)->varattno <= 0;
	return expression_tree_walker(node, reads_row, search);
}

/* is_simple: does the scan give what the query does? */
static bool
is_simple(const PlannerInfo *root, const RelOptInfo *baserel)
{
	const Query *parse = root->parse;

	return parse->commandType == CMD_SELECT && parse->rowMarks == NIL && !parse->hasAggs &&
		parse->groupClause == NIL && parse->groupingSets == NIL &&
		!parse->hasWindowFuncs && !parse->hasTargetSRFs && parse->havingQual == NULL &&
		parse->setOperations == NULL && bms_equal(root->all_baserels, baserel->relids);
}

/* tests_row: does PostgreSQL test more than columns? */
static bool
tests_row(const RelOptInfo *baserel, ScoreSearch *search)
{
	ListCell   *cell;

	foreach(cell, baserel->baserestrictinfo)
	{
		const RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		const MongoClause *clause = mongo_known_clause(baserel, rinfo);

		if ((clause == NULL || clause->condition.grade != MONGO_EXACT) &&
			reads_row((Node *) rinfo->clause, search))
			return true;
	}
	return false;
}

void
mongo_note_score(PlannerInfo *root, RelOptInfo *baserel)
{
	MongoRelation *relation = baserel->fdw_private;
	ScoreSearch search = {baserel->relid, NULL};

	if (!mongo_enable_pushdown || baserel->reloptkind != RELOPT_BASEREL ||
		mongo_is_derived(relation->options) || !is_simple(root, baserel) ||
		!find_score((Node *) root->processed_tlist, &search) ||
		reads_row((Node *) root->processed_tlist, &search) || tests_row(baserel, &search))
		return;
	relation->score = search.score;
	relation->score_field = mongo_unused_field(relation->columns, "score");

	/* what a worker would have to send is the whole row */
	baserel->consider_parallel = false;
}

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

void
mongo_append_score(bson_t *document, const MongoRelation *relation)
{
	bson_append_condition(document, relation->score_field, "$meta", bson_utf8("textScore"));
}

void
mongo_add_score_column(const RelOptInfo *baserel, MongoScanPlan *plan, ForeignScan *scan)
{
	const MongoRelation *relation = baserel->fdw_private;
	MongoScanColumn *column = palloc0(sizeof(MongoScanColumn));
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
	column->type = FLOAT8OID;
	column->typmod = -1;
	plan->columns = lappend(plan->columns, column);
}
