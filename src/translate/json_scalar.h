/*-------------------------------------------------------------------------
 *
 * json_scalar.h
 *		Where a field is a scalar of json.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_SCALAR_H
#define MONGO_FDW_JSON_SCALAR_H

#include "compat.h"

#include "utils/jsonb.h"

/* Below this a Double has each integer. */
#define MONGO_LARGEST_EXACT	9007199254740992.0

/*
 * mongo_append_json_scalar
 *		Append to 'match' where the field is this scalar, or an array that holds it;
 *		where there is anything if no less can be said.
 */
extern void mongo_append_json_scalar(bson_t *match, const char *path, const JsonbValue *value);

#endif							/* MONGO_FDW_JSON_SCALAR_H */
