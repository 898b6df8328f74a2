/*-------------------------------------------------------------------------
 *
 * two_bounds.h
 *		Two conditions that are bounds of one range.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TWO_BOUNDS_H
#define MONGO_FDW_TWO_BOUNDS_H

#include "compat.h"

#include "condition.h"
#include "predicate.h"

/*
 * mongo_join_bounds
 *		Where a condition beside this predicate, a bound on 'operand', has a bound on
 *		its other side, make it one of both, MONGO_PREDICATE_BETWEEN, and give the value
 *		for that form, an array of the predicate's own bound and the other one.
 *		Otherwise, and for what is no text in json or its cast to a date, gives 'value'.
 */
extern Node *mongo_join_bounds(const MongoTranslation *translation, const Node *operand,
							   Node *value, MongoPredicate *predicate);

#endif							/* MONGO_FDW_TWO_BOUNDS_H */
