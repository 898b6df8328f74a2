/*-------------------------------------------------------------------------
 *
 * json_write.h
 *		json, jsonb and text to BSON: Extended JSON v2.
 *
 * https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_WRITE_H
#define MONGO_FDW_JSON_WRITE_H

#include "types.h"

/*
 * mongo_append_json_members
 *		Append the members of a json, jsonb or text value that is an object
 *		to 'document'; the order of the keys is kept (jsonb has its own).
 *
 * Extended JSON wrappers become their BSON types.  Raises 22P02 for a value that is
 * not an object, 54001 for nesting that no MongoDB server accepts, and what
 * mongo_walk_json() and mongo_write_json_tree() raise.
 */
extern void mongo_append_json_members(bson_t *document, Datum value, Oid typid);

/* A write function, see encode.h. */
extern MongoWriteFunction mongo_write_json;

#endif							/* MONGO_FDW_JSON_WRITE_H */
