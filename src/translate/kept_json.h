/*-------------------------------------------------------------------------
 *
 * kept_json.h
 *		A user's own JSON that becomes a part of a command.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_KEPT_JSON_H
#define MONGO_FDW_KEPT_JSON_H

#include "compat.h"

/*
 * mongo_append_kept_json
 *		Append a json value under 'key', as mongo_append_datum() does, but for what
 *		depends on settings: a $date without a time zone is in UTC.
 *
 * A plan may outlive the settings under which it was made.
 */
extern void mongo_append_kept_json(bson_t *document, const char *key, Datum json);

#endif							/* MONGO_FDW_KEPT_JSON_H */
