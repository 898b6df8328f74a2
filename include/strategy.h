/*-------------------------------------------------------------------------
 *
 * strategy.h
 *		What an operator asks of the default order of a type.
 *
 * PostgreSQL compares two values by the default B-tree operator family of their
 * type unless told otherwise, and only that order is MongoDB's.  An operator is
 * known here by its strategy there (access/stratnum.h), with 6 for "<>".
 *
 * The functions look into the system catalogs by way of the type cache and the
 * system caches; they allocate nothing and raise nothing of their own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_STRATEGY_H
#define MONGO_FDW_STRATEGY_H

#include "compat.h"

#include "access/stratnum.h"

/* As ROWCOMPARE_NE: in no operator family, but the negator of one's "=". */
#define MONGO_STRATEGY_NOT_EQUAL	6

/*
 * mongo_default_opfamily
 *		The default B-tree operator family of a type, or InvalidOid.
 *
 * That of a varchar is text's, that of an array array_ops; domains have that of
 * their base type.
 */
extern Oid	mongo_default_opfamily(Oid type);

/*
 * mongo_default_strategy
 *		The strategy of an operator in the default family of 'type', of which its
 *		left operand is: 1 to 5, or MONGO_STRATEGY_NOT_EQUAL; 0 of any other.
 */
extern int	mongo_default_strategy(Oid operator, Oid type);

/*
 * mongo_negated_strategy
 *		Of the operator that is TRUE where this one is FALSE.
 *
 * mongo_commuted_strategy: of the one that takes the operands the other way round.
 */
extern int	mongo_negated_strategy(int strategy);
extern int	mongo_commuted_strategy(int strategy);

/* mongo_is_upper_bound: "<" and "<=", which leave NaN and what is above out. */
extern bool mongo_is_upper_bound(int strategy);

/* mongo_asks_for_order: anything but "=" and "<>". */
extern bool mongo_asks_for_order(int strategy);

/* find's comparison operators, by strategy. */
extern const char *const mongo_find_operators[];

#endif							/* MONGO_FDW_STRATEGY_H */
