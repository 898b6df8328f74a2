/*-------------------------------------------------------------------------
 *
 * order.c
 *		ORDER BY in MongoDB, where its order is PostgreSQL's.
 *
 * MongoDB sorts null and missing below every value; PostgreSQL puts NULL where
 * the query says, above every value by default.  So a descending key takes
 * NULLS LAST and an ascending one NULLS FIRST, unless the field cannot be NULL.
 * The first key may be out of place: see MongoSortPart.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "order.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "comparison.h"
#include "feature.h"
#include "index_use.h"
#include "relation.h"
#include "score.h"
#include "settings.h"
#include "strategy.h"

#include "access/table.h"
#include "catalog/pg_type_d.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"

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
 * cannot_be_null: _id is always there, a column may be declared NOT NULL, and
 * a strict restriction lets no NULL through.
 *
 * One document of a collection may have a null _id.  To look for it would cost
 * every ORDER BY _id a second command, so its place is MongoDB's; the
 * documentation says so.
 */
static bool
cannot_be_null(RelOptInfo *baserel, MongoRelation *relation, Expr *expression,
			   const MongoField *field)
{
	Var		   *var;
	Relation	table;
	bool		not_null;
	ListCell   *cell;

	if (strcmp(field->path, "_id") == 0 && relation->options->pipeline == NULL)
		return true;

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

/* goes_by_bytes: is it none, or bytewise as the order of ObjectIds is? */
static bool
goes_by_bytes(Oid collation)
{
	return !OidIsValid(collation) || mongo_collate_is_c(collation);
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
		!goes_by_bytes(pathkey->pk_eclass->ec_collation) ||
		(comparison->sortability == MONGO_SORTABLE_LAST && !is_last) ||
		(comparison->sortability == MONGO_SORTABLE_NAN_APART && !is_first))
		return false;

	return mongo_default_opfamily(field->operator_type) == pathkey->pk_opfamily &&
		(is_first || nulls_are_in_place(pathkey) ||
		 cannot_be_null(baserel, relation, expression, field));
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
	has_null = !cannot_be_null(baserel, baserel->fdw_private, expression, &field);
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
mongo_append_sort(RelOptInfo *baserel, List *pathkeys, MongoSortPart part,
				  bson_t *command)
{
	const MongoRelation *relation = baserel->fdw_private;
	bool		without_first = part == MONGO_SORT_NULL || part == MONGO_SORT_NAN;
	bson_t	   *sort;
	ListCell   *cell;

	if (without_first && list_length(pathkeys) == 1)
		return;

	sort = bson_create_in(CurrentMemoryContext);
	if (mongo_is_score_order(relation, pathkeys))
	{
		mongo_append_score(sort, relation);
		pathkeys = NIL;
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
	BSON_APPEND_DOCUMENT(command, "sort", sort);
	if (mongo_feature_enabled(relation->options, MONGO_FEATURE_DISK_USE))
		BSON_APPEND_BOOL(command, "allowDiskUse", true);
}
