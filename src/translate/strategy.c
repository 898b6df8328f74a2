/*-------------------------------------------------------------------------
 *
 * strategy.c
 *		What an operator asks of the default order of a type.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "objectid_type.h"
#include "strategy.h"
#include "types.h"

#include "catalog/pg_opfamily_d.h"
#include "catalog/pg_type_d.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

const char *const mongo_find_operators[] = {
	[BTLessStrategyNumber] = "$lt",
	[BTLessEqualStrategyNumber] = "$lte",
	[BTEqualStrategyNumber] = "$eq",
	[BTGreaterEqualStrategyNumber] = "$gte",
	[BTGreaterStrategyNumber] = "$gt",
	[MONGO_STRATEGY_NOT_EQUAL] = "$ne",
};

/* The same question of the same operands, by strategy. */
static const struct
{
	int			negated;
	int			commuted;
}			strategies[] =
{
	[BTLessStrategyNumber] = {BTGreaterEqualStrategyNumber, BTGreaterStrategyNumber},
	[BTLessEqualStrategyNumber] = {BTGreaterStrategyNumber, BTGreaterEqualStrategyNumber},
	[BTEqualStrategyNumber] = {MONGO_STRATEGY_NOT_EQUAL, BTEqualStrategyNumber},
	[BTGreaterEqualStrategyNumber] = {BTLessStrategyNumber, BTLessEqualStrategyNumber},
	[BTGreaterStrategyNumber] = {BTLessEqualStrategyNumber, BTLessStrategyNumber},
	[MONGO_STRATEGY_NOT_EQUAL] = {BTEqualStrategyNumber, MONGO_STRATEGY_NOT_EQUAL},
};

/*
 * Types of most keys.  No other default can be made for them, and to look it up
 * is a scan of pg_opclass in each new session.  (pg_opclass.dat)
 */
static const struct
{
	Oid			type;
	Oid			family;
}			known_families[] =
{
	{INT4OID, INTEGER_BTREE_FAM_OID},
	{INT8OID, INTEGER_BTREE_FAM_OID},
	{INT2OID, INTEGER_BTREE_FAM_OID},
	{TEXTOID, TEXT_BTREE_FAM_OID},
	{NAMEOID, TEXT_BTREE_FAM_OID},
	{BOOLOID, BOOL_BTREE_FAM_OID},
};

Oid
mongo_default_opfamily(Oid type)
{
	Oid			family = InvalidOid;

	for (size_t i = 0; i < lengthof(known_families); i++)
	{
		if (known_families[i].type == type)
			return known_families[i].family;
	}
	if (mongo_type_kind(type) == MONGO_KIND_OBJECTID)
		family = mongo_objectid_opfamily(type);
	if (OidIsValid(family))
		return family;
	return lookup_type_cache(type, TYPECACHE_BTREE_OPFAMILY)->btree_opf;
}

int
mongo_default_strategy(Oid operator, Oid type)
{
	Oid			family = mongo_default_opfamily(type);
	Oid			negator;
	int			strategy;

	if (!OidIsValid(family))
		return 0;
	strategy = get_op_opfamily_strategy(operator, family);
	if (strategy != 0)
		return strategy;
	negator = get_negator(operator);
	return OidIsValid(negator) &&
		get_op_opfamily_strategy(negator, family) == BTEqualStrategyNumber ?
		MONGO_STRATEGY_NOT_EQUAL : 0;
}

int
mongo_negated_strategy(int strategy)
{
	return strategies[strategy].negated;
}

int
mongo_commuted_strategy(int strategy)
{
	return strategies[strategy].commuted;
}

bool
mongo_is_upper_bound(int strategy)
{
	return strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber;
}

bool
mongo_asks_for_order(int strategy)
{
	return strategy != BTEqualStrategyNumber && strategy != MONGO_STRATEGY_NOT_EQUAL;
}
