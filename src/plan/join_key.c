/*-------------------------------------------------------------------------
 *
 * join_key.c
 *		The equality by which $lookup finds documents through an index.
 *
 * localField and foreignField compare what the documents hold.  That is what
 * PostgreSQL compares for the types that read a value as it is; a text column
 * reads ObjectIds as well as Strings, and its keys are asked for as both.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "join_key.h"

#include "comparison.h"
#include "index_use.h"
#include "relation.h"
#include "strategy.h"
#include "types.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* Bytes of found documents that are still far from the 16 MB of an array. */
#define MODEST_ARRAY_SIZE	(2.0 * 1024 * 1024)

/* How much more often than the average a key may well occur. */
#define UNEVEN_KEYS			8

/*
 * join_key_kind: of a column that reads values without rounding them, so that MongoDB
 * may compare the fields as they are; else MONGO_KIND_OTHER.
 */
static MongoTypeKind
join_key_kind(const MongoField *field)
{
	MongoTypeKind kind = mongo_type_kind(field->type);

	if (field->type != field->operator_type || !mongo_path_is_addressable(field->path) ||
		mongo_path_has_index(field->path) ||
		!mongo_kinds[kind].is_key || (field->typmod >= 0 && kind != MONGO_KIND_TEXT))
		return MONGO_KIND_OTHER;
	return kind;
}

/* most_frequent: the share of documents that hold the commonest value or none. */
static double
most_frequent(Oid relid, AttrNumber attnum, double rows)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(relid),
										Int16GetDatum(attnum), BoolGetDatum(false));
	Form_pg_statistic statistic;
	AttStatsSlot slot;
	double		share;
	double		distinct;

	if (!HeapTupleIsValid(tuple))
		return 1;
	statistic = (Form_pg_statistic) GETSTRUCT(tuple);
	distinct = statistic->stadistinct < 0 ? -statistic->stadistinct * rows :
		statistic->stadistinct;
	share = distinct > 0 ? UNEVEN_KEYS / distinct : 1;
	if (get_attstatsslot(&slot, tuple, STATISTIC_KIND_MCV, InvalidOid,
						 ATTSTATSSLOT_NUMBERS))
	{
		if (slot.nnumbers > 0)
			share = Max(share, slot.numbers[0]);
		free_attstatsslot(&slot);
	}
	share = Max(share, statistic->stanullfrac);
	ReleaseSysCache(tuple);
	return Min(share, 1);
}

/*
 * found_documents_fit: is there no key for which $lookup would find more than an
 * array holds, as far as ANALYZE has seen?
 */
static bool
found_documents_fit(RelOptInfo *inner, const Var *var)
{
	const MongoRelation *relation = inner->fdw_private;

	if (inner->pages == 0 || relation->analyzed_rows <= 0)
		return false;
	return most_frequent(relation->relid, var->varattno, relation->analyzed_rows) *
		inner->pages * BLCKSZ < MODEST_ARRAY_SIZE;
}

/*
 * is_found: does an index find documents by the key, if not by itself then behind fields
 * that the table's restrictions set equal to values?
 */
static bool
is_found(PlannerInfo *root, RelOptInfo *inner, MongoJoinKey *key)
{
	MongoCondition condition = {.seek = MONGO_SEEK_VALUE, .path = key->inner.path};
	double		share;
	bool		unique;

	key->needs_restrictions = (key->inner.index_uses & MONGO_INDEX_EQUALITY) == 0;
	return !key->needs_restrictions ||
		(!key->inner.unindexed &&
		 mongo_index_finds(root, inner, list_make1(&condition), &share, &unique));
}

/* try_key: is the clause "outer field = indexed inner field"? */
static bool
try_key(PlannerInfo *root, MongoColumns *outer, RelOptInfo *inner,
		Node *left, Node *right, const OpExpr *clause, MongoJoinKey *key)
{
	const MongoRelation *relation = inner->fdw_private;
	MongoTypeKind kind;

	if (!mongo_field_of_node(outer, left, &key->outer) ||
		!mongo_field_of_node(relation->columns, right, &key->inner) ||
		mongo_default_strategy(clause->opno, key->inner.operator_type) != BTEqualStrategyNumber ||
		!is_found(root, inner, key))
		return false;
	kind = join_key_kind(&key->inner);
	if (kind == MONGO_KIND_OTHER || kind != join_key_kind(&key->outer))
		return false;
	if (kind == MONGO_KIND_TEXT &&
		(!OidIsValid(clause->inputcollid) ||
		 !get_collation_isdeterministic(clause->inputcollid)))
		return false;

	/* texts that are both declared to be ObjectIds are nothing else */
	key->is_text = kind == MONGO_KIND_TEXT &&
		(key->inner.bson_type != key->outer.bson_type || key->inner.bson_type != BSON_TYPE_OID);
	key->unique = strcmp(key->inner.path, "_id") == 0;
	key->fits = key->unique ||
		found_documents_fit(inner, castNode(Var, mongo_strip_relabelling(right)));
	return true;
}

/*
 * is_better: by an index that needs nothing else, one document rather than several,
 * numbers rather than text.
 */
static bool
is_better(const MongoJoinKey *one, const MongoJoinKey *other)
{
	if (one->needs_restrictions != other->needs_restrictions)
		return other->needs_restrictions;
	if (one->unique != other->unique)
		return one->unique;
	return !one->is_text && other->is_text;
}

bool
mongo_find_join_key(PlannerInfo *root, MongoColumns *outer, RelOptInfo *inner,
					List *clauses, MongoJoinKey *key)
{
	bool		found = false;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, cell);
		OpExpr	   *clause = (OpExpr *) rinfo->clause;
		MongoJoinKey candidate = {.rinfo = rinfo};

		if (!IsA(clause, OpExpr) || list_length(clause->args) != 2)
			continue;
		if (!try_key(root, outer, inner, linitial(clause->args), lsecond(clause->args),
					 clause, &candidate) &&
			!try_key(root, outer, inner, lsecond(clause->args), linitial(clause->args),
					 clause, &candidate))
			continue;
		if (!found || is_better(&candidate, key))
			*key = candidate;
		found = true;
	}
	return found;
}
