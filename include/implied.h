/*-------------------------------------------------------------------------
 *
 * implied.h
 *		What a condition on a function of something says about that itself.
 *
 * date_trunc('day', ts) = X holds only where ts >= X AND ts < X + 1 day, which
 * an index on ts can serve.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_IMPLIED_H
#define MONGO_FDW_IMPLIED_H

#include "compat.h"

#include "condition.h"

/*
 * mongo_implied_conditions
 *		Conditions that hold wherever 'clause' is TRUE, each a comparison of an
 *		argument of its function with a value known when the scan starts; NIL
 *		when there are none.
 *
 * Evaluating those values raises no error.  The nodes are new, but contain
 * parts of 'clause'.
 */
extern List *mongo_implied_conditions(const MongoTranslation *translation,
									  OpExpr *clause);

/*
 * mongo_nth_implying_function
 *		A function that has such conditions, by its number from 0; InvalidOid
 *		behind the last.
 */
extern Oid	mongo_nth_implying_function(int number);

#endif							/* MONGO_FDW_IMPLIED_H */
