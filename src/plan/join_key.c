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

#include "comparison.h"
#include "objectid.h"
#include "plan_join.h"
#include "strategy.h"

#include "access/htup_details.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type_d.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* Bytes of found documents that are still far from the 16 MB of an array. */
#define MODEST_ARRAY_SIZE	(2.0 * 1024 * 1024)

/* How much more often than the average a key may well stand there. */
#define UNEVEN_KEYS			8

/* Which columns may be compared as the documents have them. */
typedef enum KeyClass
{
	KEY_NONE,
	KEY_INTEGER,
	KEY_FLOAT,
	KEY_BOOLEAN,
	KEY_TIMESTAMP,
	KEY_TIMESTAMPTZ,
	KEY_OBJECTID,
	KEY_TEXT
} KeyClass;

static const struct
{
	Oid			type;
	KeyClass	class;
	bool		any_typmod;		/* reading does not change the value */
}			key_types[] =
{
	{INT2OID, KEY_INTEGER, false},
	{INT4OID, KEY_INTEGER, false},
	{INT8OID, KEY_INTEGER, false},
	{FLOAT8OID, KEY_FLOAT, false},
	{BOOLOID, KEY_BOOLEAN, false},
	{TIMESTAMPOID, KEY_TIMESTAMP, false},
	{TIMESTAMPTZOID, KEY_TIMESTAMPTZ, false},
	{TEXTOID, KEY_TEXT, false},
	{VARCHAROID, KEY_TEXT, true},
	{NAMEOID, KEY_TEXT, false},
};

static KeyClass
class_of(const MongoField *field)
{
	if (field->type != field->operator_type || !mongo_path_is_addressable(field->path) ||
		mongo_path_has_index(field->path))
		return KEY_NONE;
	for (size_t i = 0; i < lengthof(key_types); i++)
	{
		if (key_types[i].type == field->type)
			return key_types[i].any_typmod || field->typmod < 0 ?
				key_types[i].class : KEY_NONE;
	}
	return field->type == mongo_objectid_type_oid() ? KEY_OBJECTID : KEY_NONE;
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

/* try_key: is the clause "outer field = indexed inner field"? */
static bool
try_key(MongoColumns *outer, RelOptInfo *inner, Node *left, Node *right,
		const OpExpr *clause, MongoJoinKey *key)
{
	const MongoRelation *relation = inner->fdw_private;
	KeyClass	class;

	if (!mongo_field_of_node(outer, left, &key->outer) ||
		!mongo_field_of_node(relation->columns, right, &key->inner) ||
		!key->inner.indexed ||
		mongo_default_strategy(clause->opno, key->inner.operator_type) != BTEqualStrategyNumber)
		return false;
	class = class_of(&key->inner);
	if (class == KEY_NONE || class != class_of(&key->outer))
		return false;
	if (class == KEY_TEXT &&
		(!OidIsValid(clause->inputcollid) ||
		 !get_collation_isdeterministic(clause->inputcollid)))
		return false;

	key->is_text = class == KEY_TEXT;
	key->unique = strcmp(key->inner.path, "_id") == 0;
	key->fits = key->unique ||
		found_documents_fit(inner, castNode(Var, mongo_strip_relabelling(right)));
	return true;
}

/* is_better: one document rather than several, numbers rather than text. */
static bool
is_better(const MongoJoinKey *one, const MongoJoinKey *other)
{
	if (one->unique != other->unique)
		return one->unique;
	return !one->is_text && other->is_text;
}

bool
mongo_find_join_key(MongoColumns *outer, RelOptInfo *inner, List *clauses,
					MongoJoinKey *key)
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
		if (!try_key(outer, inner, linitial(clause->args), lsecond(clause->args),
					 clause, &candidate) &&
			!try_key(outer, inner, lsecond(clause->args), linitial(clause->args),
					 clause, &candidate))
			continue;
		if (!found || is_better(&candidate, key))
			*key = candidate;
		found = true;
	}
	return found;
}
