/*-------------------------------------------------------------------------
 *
 * order.c
 *		Decides whether MongoDB's order is that of ORDER BY.
 *
 * MongoDB sorts null and missing fields below every value, and NaN below every number.  PostgreSQL
 * puts NaN above every number, and NULL where the query specifies, above every value by default.
 * So a descending key needs NULLS LAST and an ascending one NULLS FIRST, unless the field cannot
 * be NULL.
 *
 * This is about scans, whose sort an index may serve.  If the first key is out of place, the scan
 * is made of several commands, one after the other (MongoSortPart).  A $sort stage, in which a
 * computed rank goes before a key that is out of place, is made in upper.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "plan_internal.h"
#include "options.h"
#include "translate.h"

#include <math.h>

#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "utils/pg_locale.h"
#include "utils/selfuncs.h"

/* Returns the member of an equivalence class that is a field of this relation, or NULL. */
static Expr *
find_field_member(EquivalenceClass *class, RelOptInfo *baserel, MongoColumns *columns,
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
 * Tells whether a column is declared NOT NULL, or a strict restriction excludes NULL.  An _id may
 * be null, of one document of a collection and of any of a view.
 */
static bool
cannot_be_null(const RelOptInfo *baserel, const MongoRelation *relation, const Expr *expression)
{
	Var		   *var = castNode(Var, mongo_strip_relabelling((Node *) expression));

	if (mongo_is_declared_not_null(relation->columns, var->varattno))
		return true;
	foreach_node(RestrictInfo, rinfo, baserel->baserestrictinfo)
	{
		Node	   *equivalent = mongo_equivalent_condition((Node *) rinfo->clause, true);
		List	   *vars = find_nonnullable_vars(equivalent != NULL ? equivalent :
												 (Node *) rinfo->clause);

		if (mongo_is_nonnullable(var, vars))
			return true;
	}
	return false;
}

/* The parts of an order.  That of values is no range, which would skip type mismatches. */
static const MongoSortPart all_rows = {NULL, false};
static const MongoSortPart null_rows = {"{@1: {$eq: null}}", true};
static const MongoSortPart nan_rows = {"{@1: {$eq: NaN}}", true};
static const MongoSortPart value_rows = {"{@1: {$ne: null}}", false};
static const MongoSortPart number_rows = {"{@1: {$nin: [null, NaN]}}", false};

/*
 * Sets the parts by the first key.  Misfits that are NULL are below and above MongoDB's other
 * values.
 */
static void
set_parts(MongoOrder *order, const PathKey *pathkey, bool has_null, bool has_nan)
{
	bool		ascending = mongo_pathkey_is_ascending(pathkey);
	int			nparts = 0;

	if (!has_nan && (!has_null || (pathkey->pk_nulls_first == ascending &&
								   order->first.type_mismatch != MONGO_TYPE_MISMATCH_NULL)))
		return;
	if (has_null && pathkey->pk_nulls_first)
		order->parts[nparts++] = null_rows;
	if (has_nan && !ascending)
		order->parts[nparts++] = nan_rows;
	order->parts[nparts++] = has_nan ? number_rows : value_rows;
	if (has_nan && ascending)
		order->parts[nparts++] = nan_rows;
	if (has_null && !pathkey->pk_nulls_first)
		order->parts[nparts++] = null_rows;
	order->nparts = nparts;
}

/* Adds a key; returns false if MongoDB's order by the key is not PostgreSQL's. */
static bool
add_order_key(RelOptInfo *baserel, const PathKey *pathkey, bool is_last, MongoOrder *order)
{
	MongoRelation *relation = baserel->fdw_private;
	bool		is_first = order->nkeys == 0;
	bool		ascending = mongo_pathkey_is_ascending(pathkey);
	const MongoComparison *comparison;
	MongoSortability sortability;
	bool		has_null;
	MongoField	field;
	Expr	   *expression = find_field_member(pathkey->pk_eclass, baserel, relation->columns, &field);

	if (expression == NULL || !mongo_path_is_addressable(field.path) ||
		mongo_path_has_index(field.path))
		return false;
	comparison = mongo_comparison_lookup(mongo_base_type(field.type), field.typmod, field.bson_type);
	sortability = comparison == NULL ? MONGO_NOT_SORTABLE : comparison->sortability;
	if (sortability == MONGO_NOT_SORTABLE ||
	/* bytewise, as the order of ObjectIds is */
		(OidIsValid(pathkey->pk_eclass->ec_collation) &&
		 !mongo_collate_is_c(pathkey->pk_eclass->ec_collation)) ||
		(sortability == MONGO_SORTABLE_LAST && !is_last) ||
		(sortability == MONGO_SORTABLE_NAN_APART && !is_first) ||
		mongo_default_opfamily(field.operator_type) != pathkey->pk_opfamily)
		return false;
	has_null = !cannot_be_null(baserel, relation, expression);
	if (has_null && field.type_mismatch == MONGO_TYPE_MISMATCH_NULL &&
		!(is_first && mongo_fits_by_range(&field) &&
		  mongo_feature_enabled(relation->options, MONGO_FEATURE_EXPR)))
		return false;
	if (is_first)
	{
		order->first = field;
		order->expression = expression;
		set_parts(order, pathkey, has_null, sortability == MONGO_SORTABLE_NAN_APART);
	}
	else if (pathkey->pk_nulls_first != ascending && has_null)
		return false;

	order->unindexed |= field.unindexed;
	/* the same field adds nothing, unless the first key reads it as NULL */
	for (int i = 0; i < order->nkeys; i++)
	{
		if (strcmp(order->keys[i].path, field.path) == 0)
			return i > 0 || field.type == order->first.type ||
				order->first.type_mismatch != MONGO_TYPE_MISMATCH_NULL;
	}
	order->keys[order->nkeys++] = (MongoOrderKey)
	{
		field.path, ascending, (field.index_uses & MONGO_INDEX_ORDER) != 0,
			!is_first && (field.type_mismatch == MONGO_TYPE_MISMATCH_NULL ||
						  (field.type_mismatch == MONGO_TYPE_MISMATCH_SKIP && relation->skips_locally))
	};
	return true;
}

/*
 * mongo_find_order
 *		Sets *order to the order of these pathkeys; returns false if MongoDB has none that is
 *		PostgreSQL's.
 */
bool
mongo_find_order(RelOptInfo *baserel, List *pathkeys, MongoOrder *order)
{
	MongoRelation *relation = baserel->fdw_private;
	ListCell   *cell;

	order->nkeys = 0;
	order->unindexed = false;
	order->nparts = 1;
	order->parts[0] = all_rows;
	if (!mongo_enable_pushdown ||
		!mongo_feature_enabled(relation->options, MONGO_FEATURE_SORT) ||
		pathkeys == NIL || list_length(pathkeys) > MONGO_MAX_SORT_KEYS)
		return false;
	if (mongo_is_score_order(relation, pathkeys))
		return true;
	foreach(cell, pathkeys)
	{
		if (!add_order_key(baserel, lfirst_node(PathKey, cell), lnext(pathkeys, cell) == NULL,
						   order))
			return false;
	}
	/* MongoDB cannot sort a document by two arrays, which may be a hidden one */
	return order->nkeys <= 1 || !relation->has_barrier || relation->all_exact;
}

/*
 * mongo_needs_all_parts
 *		Tells whether the query is expected to need the rows of all parts of its order, and their
 *		cursors may be open at the same time.
 *
 * Without a LIMIT they may only if a batch has all rows of each, since MongoDB closes a cursor
 * that is not read for ten minutes.  Only the LIMIT of a query of one table becomes one of the
 * commands.
 */
bool
mongo_needs_all_parts(PlannerInfo *root, RelOptInfo *baserel, List *pathkeys)
{
	const MongoRelation *relation = baserel->fdw_private;
	double		wanted = root->limit_tuples;
	MongoOrder	order;
	MongoField	field;
	Node	   *key;

	if (root->parse->limitCount == NULL || bms_membership(root->all_baserels) == BMS_MULTIPLE)
		return root->tuple_fraction <= 0 && relation->remote_rows <= relation->options->fetch_size;
	/* a LIMIT that is not known is taken for a fraction */
	if (wanted < 0)
		wanted = root->tuple_fraction < 1 ? root->tuple_fraction * relation->remote_rows :
			root->tuple_fraction;
	if (!mongo_find_order(baserel, pathkeys, &order) || !order.parts[0].has_one_value)
		return false;
	key = (Node *) find_field_member(((PathKey *) linitial(pathkeys))->pk_eclass, baserel,
									 relation->columns, &field);
	return wanted >
		relation->remote_rows * nulltestsel(root, IS_NULL, key, baserel->relid, JOIN_INNER, NULL);
}

/*
 * mongo_append_order
 *		Appends the conditions of the command for a part to the empty 'match', and the keys by
 *		which it is sorted, if any, to 'sort'.
 */
void
mongo_append_order(const MongoRelation *relation, const MongoOrder *order, int part,
				   bson_t *match, bson_t *sort)
{
	const MongoSortPart *one = &order->parts[part];
	bool		reads_null = order->first.type_mismatch == MONGO_TYPE_MISMATCH_NULL;
	BsonArray	no_arrays = mongo_array_create();

	if (one->match == null_rows.match && reads_null)
		mongo_append_misfit(match, &order->first);
	else if (one->match == value_rows.match && reads_null)
		mongo_append_in_range(match, &order->first);
	else if (one->match != NULL)
		mongo_append_template(match, one->match, mongo_utf8(order->keys[0].path));
	if (order->nkeys == 0)
		mongo_append_score(sort, relation);
	for (int i = one->has_one_value ? 1 : 0; i < order->nkeys; i++)
	{
		mongo_append(sort, order->keys[i].path, mongo_int32(order->keys[i].ascending ? 1 : -1));
		if (order->keys[i].excludes_arrays)
			mongo_append_no_arrays(&no_arrays, order->keys[i].path);
	}
	if (no_arrays.count > 0)
		mongo_append(match, "$and", mongo_array(no_arrays.bson));
}
