/*-------------------------------------------------------------------------
 *
 * order.c
 *		ORDER BY in MongoDB, where its order is PostgreSQL's.
 *
 * MongoDB sorts null and missing below every value; PostgreSQL puts NULL where
 * the query says, above every value by default.  So a descending key takes
 * NULLS LAST and an ascending one NULLS FIRST, unless the field cannot be NULL.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "comparison.h"
#include "plan.h"
#include "plan_order.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

/* As many as a compound index or a sort may have. */
#define MAX_SORT_KEYS	32

/* The member of an equivalence class that is a field of this relation. */
static Expr *
find_member(EquivalenceClass *class, RelOptInfo *baserel, MongoColumns *columns,
			MongoField *field)
{
	ListCell   *cell;

	if (class->ec_has_volatile)
		return NULL;
	foreach(cell, class->ec_members)
	{
		EquivalenceMember *member = lfirst(cell);

		if (!member->em_is_const && bms_equal(member->em_relids, baserel->relids) &&
			mongo_field_of_node(columns, (Node *) member->em_expr, field))
			return member->em_expr;
	}
	return NULL;
}

/*
 * cannot_be_null: _id is always there, a column may be declared NOT NULL, and
 * a strict restriction lets no NULL through.
 */
static bool
cannot_be_null(RelOptInfo *baserel, MongoRelation *relation, Expr *expression,
			   const MongoField *field)
{
	Var		   *var;
	Relation	table;
	bool		not_null;
	ListCell   *cell;

	if (strcmp(field->path, "_id") == 0)
		return true;

	while (IsA(expression, RelabelType))
		expression = ((RelabelType *) expression)->arg;
	var = (Var *) expression;
	table = table_open(relation->relid, NoLock);
	not_null = TupleDescAttr(RelationGetDescr(table), var->varattno - 1)->attnotnull;
	table_close(table, NoLock);
	if (not_null)
		return true;

	foreach(cell, baserel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		List	   *vars = find_nonnullable_vars((Node *) rinfo->clause);

		if (list_member(vars, var))
			return true;
	}
	return false;
}

static bool
nulls_are_in_place(const PathKey *pathkey)
{
	return pathkey->pk_nulls_first == (pathkey->pk_strategy == BTLessStrategyNumber);
}

/* is_sortable: may this key stand at this place of the sort? */
static bool
is_sortable(RelOptInfo *baserel, MongoRelation *relation, const PathKey *pathkey,
			bool is_last, MongoField *field)
{
	const MongoComparison *comparison;
	TypeCacheEntry *type;
	Expr	   *expression = find_member(pathkey->pk_eclass, baserel,
										 relation->columns, field);

	if (expression == NULL || !mongo_path_is_addressable(field->path) ||
		mongo_path_has_index(field->path))
		return false;
	comparison = mongo_comparison_lookup(getBaseType(field->type));
	if (comparison == NULL || comparison->sortability == MONGO_NOT_SORTABLE ||
		(comparison->sortability == MONGO_SORTABLE_LAST && !is_last))
		return false;

	type = lookup_type_cache(field->operator_type, TYPECACHE_BTREE_OPFAMILY);
	return type->btree_opf == pathkey->pk_opfamily &&
		(nulls_are_in_place(pathkey) ||
		 cannot_be_null(baserel, relation, expression, field));
}

bool
mongo_order_is_shippable(RelOptInfo *baserel, List *pathkeys, bool *indexed)
{
	MongoRelation *relation = baserel->fdw_private;
	MongoField	field;
	ListCell   *cell;

	*indexed = false;
	if (!mongo_enable_pushdown || !mongo_enable_order_by_pushdown ||
		!relation->options->enable_order_by_pushdown ||
		relation->options->type_mismatch != MONGO_TYPE_MISMATCH_ERROR ||
		pathkeys == NIL || list_length(pathkeys) > MAX_SORT_KEYS)
		return false;

	foreach(cell, pathkeys)
	{
		if (!is_sortable(baserel, relation, lfirst(cell),
						 lnext(pathkeys, cell) == NULL, &field))
			return false;
		if (foreach_current_index(cell) == 0)
			*indexed = field.indexed && list_length(pathkeys) == 1;
	}
	return true;
}

void
mongo_append_sort(RelOptInfo *baserel, List *pathkeys, bson_t *command)
{
	MongoRelation *relation = baserel->fdw_private;
	bson_t		sort;
	ListCell   *cell;

	BSON_APPEND_DOCUMENT_BEGIN(command, "sort", &sort);
	foreach(cell, pathkeys)
	{
		PathKey    *pathkey = lfirst(cell);
		MongoField	field;
		bson_iter_t earlier;

		if (find_member(pathkey->pk_eclass, baserel, relation->columns, &field) == NULL)
			elog(ERROR, "sort key is not a field");
		/* another column of the same field adds nothing to the order */
		if (!bson_iter_init_find(&earlier, &sort, field.path))
			BSON_APPEND_INT32(&sort, field.path,
							  pathkey->pk_strategy == BTLessStrategyNumber ? 1 : -1);
	}
	bson_append_document_end(command, &sort);
	BSON_APPEND_BOOL(command, "allowDiskUse", true);
}
