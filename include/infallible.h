/*-------------------------------------------------------------------------
 *
 * infallible.h
 *		Which translated conditions can MongoDB not fail to evaluate?
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_INFALLIBLE_H
#define MONGO_FDW_INFALLIBLE_H

#include "compat.h"

/*
 * mongo_cannot_fail
 *		Is this a match document, or an array of stages, whose evaluation raises no
 *		error, whatever the documents hold?
 *
 * True only of what is made of operators that are known to take every BSON type
 * and to give a result for it.  A placeholder {$parameter: N} is one: what stands
 * for it is find's language.
 */
extern bool mongo_cannot_fail(const bson_t *document);

#endif							/* MONGO_FDW_INFALLIBLE_H */
