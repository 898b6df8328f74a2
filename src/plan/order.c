/*-------------------------------------------------------------------------
 *
 * order.c
 *		ORDER BY in MongoDB, where its order is PostgreSQL's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "common.h"
#include "options.h"
#include "translate.h"

#include <math.h>

#include "access/table.h"
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"

/*-------------------------------------------------------------------------
 * ORDER BY in MongoDB, where its order is PostgreSQL's.
 *
 * MongoDB sorts null and missing below every value; PostgreSQL puts NULL where
 * the query says, above every value by default.  So a descending key takes
 * NULLS LAST and an ascending one NULLS FIRST, unless the field cannot be NULL.
 * The first key may be out of place: see MongoSortPart.
 *-------------------------------------------------------------------------
 */

/* The member of an equivalence class that is a field of this relation. */
static Expr *
find_member(EquivalenceClass *class, RelOptInfo *baserel, MongoColumns *columns,
			MongoField *field)
{
	MongoMembers members;
	EquivalenceMember *member;

	if (class->ec_has_volatile)
		return NULL;
	mongo_members_begin(&members, class, baserel->relids);
	while ((member = mongo_members_next(&members)) != NULL)
	{
		if (!member->em_is_const && bms_equal(member->em_relids, baserel->relids) &&
			mongo_field_of_node(columns, (Node *) member->em_expr, field))
			return member->em_expr;
	}
	return NULL;
}

/*
 * cannot_be_null: a column may be declared NOT NULL, and a strict restriction lets no
 * NULL through.  An _id may be null, of one document of a collection and of any of a view.
 */
static bool
cannot_be_null(const RelOptInfo *baserel, const MongoRelation *relation, const Expr *expression)
{
	Var		   *var;
	Relation	table;
	bool		not_null;
	ListCell   *cell;

	var = (Var *) mongo_strip_relabelling((Node *) expression);
	table = table_open(relation->relid, NoLock);
	not_null = TupleDescAttr(RelationGetDescr(table), var->varattno - 1)->attnotnull;
	table_close(table, NoLock);
	if (not_null)
		return true;

	foreach(cell, baserel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		List	   *vars = find_nonnullable_vars((Node *) rinfo->clause);

		if (mongo_is_nonnullable(var, vars))
			return true;
	}
	return false;
}

/* nulls_are_in_place: does PostgreSQL want NULLs where MongoDB has them? */
static bool
nulls_are_in_place(const PathKey *pathkey)
{
	return pathkey->pk_nulls_first == mongo_pathkey_is_ascending(pathkey);
}

static const MongoComparison *
comparison_of_field(const MongoField *field)
{
	return mongo_comparison_lookup(getBaseType(field->type), field->typmod, field->bson_type);
}

/* is_sortable: may this key stand at this place of the sort? */
static bool
is_sortable(RelOptInfo *baserel, MongoRelation *relation, const PathKey *pathkey,
			bool is_first, bool is_last, MongoField *field)
{
	const MongoComparison *comparison;
	Expr	   *expression = find_member(pathkey->pk_eclass, baserel,
										 relation->columns, field);

	if (expression == NULL || !mongo_path_is_addressable(field->path) ||
		mongo_path_has_index(field->path))
		return false;
	comparison = comparison_of_field(field);
	if (comparison == NULL || comparison->sortability == MONGO_NOT_SORTABLE ||
	/* bytewise, as the order of ObjectIds is */
		(OidIsValid(pathkey->pk_eclass->ec_collation) &&
		 !mongo_collate_is_c(pathkey->pk_eclass->ec_collation)) ||
		(comparison->sortability == MONGO_SORTABLE_LAST && !is_last) ||
		(comparison->sortability == MONGO_SORTABLE_NAN_APART && !is_first))
		return false;

	return mongo_default_opfamily(field->operator_type) == pathkey->pk_opfamily &&
		(is_first || nulls_are_in_place(pathkey) ||
		 cannot_be_null(baserel, relation, expression));
}

bool
mongo_order_is_shippable(RelOptInfo *baserel, List *pathkeys)
{
	MongoRelation *relation = baserel->fdw_private;
	MongoField	field;
	ListCell   *cell;

	if (!mongo_enable_pushdown ||
		!mongo_feature_enabled(relation->options, MONGO_FEATURE_SORT) ||
		relation->options->type_mismatch != MONGO_TYPE_MISMATCH_ERROR ||
		pathkeys == NIL || list_length(pathkeys) > MONGO_MAX_SORT_KEYS)
		return false;
	if (mongo_is_score_order(relation, pathkeys))
		return true;

	foreach(cell, pathkeys)
	{
		if (!is_sortable(baserel, relation, lfirst(cell),
						 foreach_current_index(cell) == 0,
						 lnext(pathkeys, cell) == NULL, &field))
			return false;
	}
	return true;
}

/* sort_field: of a pathkey that has been found shippable. */
static Expr *
sort_field(RelOptInfo *baserel, const PathKey *pathkey, MongoField *field)
{
	MongoRelation *relation = baserel->fdw_private;
	Expr	   *expression = find_member(pathkey->pk_eclass, baserel,
										 relation->columns, field);

	if (expression == NULL)
		elog(ERROR, "sort key is not a field");
	return expression;
}

/* order_keys: what the index must have; 0 for none that is to be thought of. */
static int
order_keys(RelOptInfo *baserel, List *pathkeys, MongoOrderKey *keys)
{
	int			nkeys = 0;
	ListCell   *cell;

	foreach(cell, pathkeys)
	{
		PathKey    *pathkey = lfirst_node(PathKey, cell);
		MongoField	field;
		bool		is_new = true;

		sort_field(baserel, pathkey, &field);
		if (field.unindexed)
			return 0;
		/* another column of the same field adds nothing to the order */
		for (int i = 0; i < nkeys; i++)
			is_new &= strcmp(keys[i].path, field.path) != 0;
		if (is_new)
			keys[nkeys++] = (MongoOrderKey)
		{
			field.path, mongo_pathkey_is_ascending(pathkey),
				(field.index_uses & MONGO_INDEX_ORDER) != 0
		};
	}
	return nkeys;
}

bool
mongo_order_is_indexed(PlannerInfo *root, RelOptInfo *baserel, List *pathkeys,
					   double *examined_rows)
{
	MongoOrderKey keys[MONGO_MAX_SORT_KEYS];
	int			nkeys = mongo_is_score_order(baserel->fdw_private, pathkeys) ? 0 :
		order_keys(baserel, pathkeys, keys);

	return nkeys > 0 &&
		mongo_index_gives_order(root, baserel, keys, nkeys, examined_rows);
}

bool
mongo_order_is_by(RelOptInfo *baserel, List *pathkeys, const char *path)
{
	MongoField	field;

	if (mongo_is_score_order(baserel->fdw_private, pathkeys))
		return false;
	sort_field(baserel, linitial(pathkeys), &field);
	return strcmp(field.path, path) == 0;
}

int
mongo_sort_parts(RelOptInfo *baserel, List *pathkeys,
				 MongoSortPart parts[MONGO_MAX_SORT_PARTS])
{
	PathKey    *first = linitial(pathkeys);
	bool		ascending = mongo_pathkey_is_ascending(first);
	MongoField	field;
	Expr	   *expression;
	bool		nan_apart;
	bool		has_null;
	int			nparts = 0;

	parts[0] = MONGO_SORT_ALL;
	if (mongo_is_score_order(baserel->fdw_private, pathkeys))
		return 1;
	expression = sort_field(baserel, first, &field);
	nan_apart = comparison_of_field(&field)->sortability == MONGO_SORTABLE_NAN_APART;
	has_null = !cannot_be_null(baserel, baserel->fdw_private, expression);
	if (!nan_apart && (!has_null || nulls_are_in_place(first)))
		return 1;

	if (has_null && first->pk_nulls_first)
		parts[nparts++] = MONGO_SORT_NULL;
	if (nan_apart && !ascending)
		parts[nparts++] = MONGO_SORT_NAN;
	parts[nparts++] = MONGO_SORT_VALUES;
	if (nan_apart && ascending)
		parts[nparts++] = MONGO_SORT_NAN;
	if (has_null && !first->pk_nulls_first)
		parts[nparts++] = MONGO_SORT_NULL;
	return nparts;
}

void
mongo_append_sort_condition(RelOptInfo *baserel, List *pathkeys, MongoSortPart part,
							bson_t *match)
{
	MongoField	field;
	bson_value_t path;

	if (part == MONGO_SORT_ALL)
		return;
	sort_field(baserel, linitial(pathkeys), &field);
	path = bson_utf8(field.path);
	if (part == MONGO_SORT_NULL)
		bson_append_template(match, "{@1: {$eq: null}}", path);
	else if (part == MONGO_SORT_NAN)
		bson_append_template(match, "{@1: {$eq: NaN}}", path);
	else if (field.operator_type != FLOAT8OID)
		bson_append_template(match, "{@1: {$ne: null}}", path);
	else
		/* not a range, which would pass over type mismatches without a word */
		bson_append_template(match, "{@1: {$nin: [null, NaN]}}", path);
}

void
mongo_append_sort(RelOptInfo *baserel, List *pathkeys, MongoSortPart part, bson_t *sort)
{
	const MongoRelation *relation = baserel->fdw_private;
	bool		without_first = part == MONGO_SORT_NULL || part == MONGO_SORT_NAN;
	ListCell   *cell;

	if (mongo_is_score_order(relation, pathkeys))
	{
		mongo_append_score(sort, relation);
		return;
	}
	foreach(cell, pathkeys)
	{
		PathKey    *pathkey = lfirst(cell);
		MongoField	field;
		bson_iter_t earlier;

		if (without_first && foreach_current_index(cell) == 0)
			continue;
		sort_field(baserel, pathkey, &field);
		/* another column of the same field adds nothing to the order */
		if (!bson_iter_init_find(&earlier, sort, field.path))
			BSON_APPEND_INT32(sort, field.path, mongo_pathkey_is_ascending(pathkey) ? 1 : -1);
	}
}

/*-------------------------------------------------------------------------
 * ORDER BY as a $sort, above groups and joins, by expressions, and where
 * an index could not give the order of a scan anyway.
 *
 * MongoDB puts null below every value and NaN below every number; PostgreSQL
 * puts NaN above every number and NULL where the query says.  Where that
 * differs, a rank that is computed goes before the key in the $sort.
 *-------------------------------------------------------------------------
 */

/* The $sort in the making, and the $set before it. */
typedef struct SortStage
{
	bson_t	   *fields;			/* of the $set */
	bson_t	   *sort;
	const char *prefix;			/* of the fields' names */
	int			nkeys;			/* of the $sort */
	double		cost;			/* of the expressions, for each row */
} SortStage;

/*
 * field_prefix: of names for the computed fields, so many letters "s" that no
 * column's path begins with it.
 */
static const char *
field_prefix(const MongoUpperRelation *upper)
{
	size_t		longest = 0;
	char	   *prefix;

	for (MongoColumns *columns = upper->pipeline.translation.columns; columns;
		 columns = columns->next)
	{
		for (AttrNumber attnum = 1; attnum <= columns->natts; attnum++)
		{
			const char *path = columns->prefix != NULL ? columns->prefix :
				mongo_column_path(columns, attnum);

			if (path != NULL)
				longest = Max(longest, strspn(path, "s"));
		}
	}
	prefix = palloc0(longest + 2);
	memset(prefix, 's', longest + 1);
	return prefix;
}

static void
append_sort_key(SortStage *stage, const char *path, bool ascending)
{
	bson_iter_t earlier;

	/* the same field once more adds nothing to the order */
	if (bson_iter_init_find(&earlier, stage->sort, path))
		return;
	BSON_APPEND_INT32(stage->sort, path, ascending ? 1 : -1);
	stage->nkeys++;
}

/*
 * value_path: a field with the value, which the $set computes unless it is one.
 */
static const char *
value_path(SortStage *stage, const MongoValue *value, int number)
{
	bson_iter_t top;
	const char *path;

	if (bson_iter_init(&top, value->expression) && bson_iter_next(&top) &&
		BSON_ITER_HOLDS_UTF8(&top) && strncmp(bson_iter_utf8(&top, NULL), "$$", 2) != 0)
		return pstrdup(bson_iter_utf8(&top, NULL) + 1);

	path = psprintf("%s%d", stage->prefix, number);
	mongo_append_expression(stage->fields, path, value->expression);
	stage->cost += mongo_expression_cost(value->expression);
	return path;
}

/*
 * append_rank: where NULLs and NaNs go, if that is not where MongoDB has them.
 */
static void
append_rank(SortStage *stage, const PathKey *pathkey, const MongoValue *value, int number)
{
	/* by NaN, ascending and NULLS FIRST */
	static const char *const ranks[2][2][2] = {
		{{"{$lte: [@1, null]}", "{$gt: [@1, null]}"}, {"{$lte: [@1, null]}", "{$gt: [@1, null]}"}},
		{{"{$cond: [{$eq: [@1, NaN]}, 0, {$cond: [{$gt: [@1, null]}, 1, 2]}]}",
		"{$cond: [{$eq: [@1, NaN]}, 1, {$cond: [{$gt: [@1, null]}, 2, 0]}]}"},
		{"{$cond: [{$eq: [@1, NaN]}, 1, {$cond: [{$gt: [@1, null]}, 0, 2]}]}",
		"{$cond: [{$eq: [@1, NaN]}, 2, {$cond: [{$gt: [@1, null]}, 1, 0]}]}"}},
	};
	bool		ascending = mongo_pathkey_is_ascending(pathkey);
	bool		null_in_place = !value->nullable || pathkey->pk_nulls_first == ascending;
	bson_t	   *rank;
	const char *path;

	if (null_in_place && !value->nan)
		return;
	rank = mongo_expand_template(ranks[value->nan][ascending][pathkey->pk_nulls_first],
								 value, 1);
	path = psprintf("%sr%d", stage->prefix, number);
	mongo_append_expression(stage->fields, path, rank);
	stage->cost += mongo_expression_cost(rank);
	append_sort_key(stage, path, true);
}

/* find_sort_value: of a member of the pathkey's class that MongoDB can compute. */
static bool
find_sort_value(MongoUpperRelation *upper, const PathKey *pathkey, MongoValue *value)
{
	EquivalenceClass *class = pathkey->pk_eclass;
	MongoScope	scope = {.translation = &upper->pipeline.translation};
	MongoMembers members;
	EquivalenceMember *member;

	if (class->ec_has_volatile)
		return false;
	mongo_members_begin(&members, class, upper->input->relids);
	while ((member = mongo_members_next(&members)) != NULL)
	{
		Node	   *node = (Node *) member->em_expr;

		if (member->em_is_const || member->em_is_child ||
			!bms_is_subset(member->em_relids, upper->input->relids) ||
			!mongo_upper_gives(upper, list_make1(node)))
			continue;
		if (mongo_default_opfamily(exprType(node)) == pathkey->pk_opfamily &&
			mongo_group_value(&scope, node, true, value))
			return true;
	}
	return false;
}

/* add_sort appends the stages; false when a key has no translation. */
static bool
add_sort(MongoUpperRelation *upper, List *pathkeys, double *cost)
{
	SortStage	stage = {
		.fields = bson_create_in(CurrentMemoryContext),
		.sort = bson_create_in(CurrentMemoryContext),
		.prefix = field_prefix(upper)
	};
	ListCell   *cell;

	foreach(cell, pathkeys)
	{
		PathKey    *pathkey = lfirst_node(PathKey, cell);
		int			number = foreach_current_index(cell);
		MongoValue	value;
		MongoValue	sorted;
		const char *path;

		if (!find_sort_value(upper, pathkey, &value))
			return false;
		sorted = value;

		/*
		 * where other keys follow, an undefined, which is sorted before a
		 * null, is made one
		 */
		if (value.nullable && value.raw && !upper->grouped && lnext(pathkeys, cell) != NULL)
		{
			sorted.expression = mongo_expand_template("{$ifNull: [@1, null]}", &value, 1);
			sorted.atomic = false;
		}
		path = value_path(&stage, &sorted, number);
		append_rank(&stage, pathkey, &value, number);
		append_sort_key(&stage, path, mongo_pathkey_is_ascending(pathkey));
	}
	if (stage.nkeys > MONGO_MAX_SORT_KEYS)
		return false;
	if (!bson_empty(stage.fields))
	{
		mongo_pipeline_append(&upper->pipeline, "$set", stage.fields);
		stage.cost += MONGO_COST_SET;
	}
	if (pathkeys != NIL)
		mongo_pipeline_append(&upper->pipeline, "$sort", stage.sort);
	*cost = stage.cost;
	return true;
}

/*
 * offers_find: may the scan's own sorted path be all that is needed?  *is_best:
 * it reads nothing twice, as an order in several parts does without an index.
 */
static bool
offers_find(PlannerInfo *root, RelOptInfo *input_rel, bool *is_best)
{
	MongoSortPart parts[MONGO_MAX_SORT_PARTS];
	double		examined_rows;

	*is_best = false;
	if (input_rel->reloptkind != RELOPT_BASEREL || input_rel->fdw_private == NULL ||
		!mongo_order_is_shippable(input_rel, root->sort_pathkeys))
		return false;
	*is_best = mongo_sort_parts(input_rel, root->sort_pathkeys, parts) == 1 ||
		mongo_order_is_indexed(root, input_rel, root->sort_pathkeys, &examined_rows);
	return true;
}

/* add_sort_path: a pipeline that ends with $sort; false when there is none. */
static bool
add_sort_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	Query	   *parse = root->parse;
	PathTarget *target = root->upper_targets[UPPERREL_ORDERED];
	MongoUpperRelation *upper;
	double		cost;

	if (parse->commandType != CMD_SELECT || parse->rowMarks != NIL || parse->hasTargetSRFs)
		return false;
	upper = mongo_upper_begin(root, input_rel);
	if (upper == NULL || upper->by_find || upper->one_row ||
		!mongo_feature_enabled(mongo_upper_options(upper), MONGO_FEATURE_SORT) ||
		!mongo_upper_gives(upper, target->exprs) ||
		!add_sort(upper, root->sort_pathkeys, &cost))
		return false;

	upper->stage = UPPERREL_ORDERED;
	upper->sorted_rows = upper->rows;
	upper->total_cost += upper->rows * mongo_upper_options(upper)->fdw_tuple_cost * cost +
		mongo_sort_stage_cost(upper->rows, -1);
	upper->startup_cost = upper->total_cost;
	upper->local = mongo_local_sort(root, ordered_rel, upper, target->exprs);
	mongo_upper_add_path(root, ordered_rel, upper, target, root->sort_pathkeys);
	return true;
}

void
mongo_add_ordered_path(PlannerInfo *root, RelOptInfo *input_rel, RelOptInfo *ordered_rel)
{
	bool		is_best;
	bool		has_find = offers_find(root, input_rel, &is_best);

	if (!is_best && add_sort_path(root, input_rel, ordered_rel))
		return;
	if (has_find)
	{
		MongoUpperRelation *upper = palloc0(sizeof(MongoUpperRelation));

		/* LIMIT above finds the sorted path of the scan */
		upper->stage = UPPERREL_ORDERED;
		upper->input = input_rel;
		upper->by_find = true;
		mongo_keep_planning_state(ordered_rel, upper);
	}
}
