/*-------------------------------------------------------------------------
 *
 * strategy.c
 *		What an operator asks of the default order of a type.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "strategy.h"

#include "utils/lsyscache.h"
#include "utils/typcache.h"

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

Oid
mongo_default_opfamily(Oid type)
{
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
