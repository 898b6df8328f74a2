/*-------------------------------------------------------------------------
 *
 * json_path.h
 *		jsonpath's conditions, @? and @@, in find's language.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_PATH_H
#define MONGO_FDW_JSON_PATH_H

#include "compat.h"

/*
 * mongo_render_json_path_exists, mongo_render_json_path_match
 *		Append to 'match' a superset of where "field @? value" and "field @@ value"
 *		are true; false when there is none that narrows anything.
 *
 * 'path' leads to a jsonb field, 'value' is of type jsonpath.
 */
extern bool mongo_render_json_path_exists(const char *path, Datum value, bson_t *match);
extern bool mongo_render_json_path_match(const char *path, Datum value, bson_t *match);

#endif							/* MONGO_FDW_JSON_PATH_H */
