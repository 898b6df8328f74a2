/*-------------------------------------------------------------------------
 *
 * field_types.h
 *		Which BSON types have fields in a sample of documents; for src/catalog
 *		only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_FIELD_TYPES_H
#define MONGO_FDW_FIELD_TYPES_H

#include "bson_write.h"
#include "nodes/pg_list.h"

typedef struct FieldTypes FieldTypes;

/*
 * field_types_create
 *		Nothing seen yet, of the fields with these paths (const char *, UTF-8; a
 *		repeated one counts once).  Lives in the current memory context, with
 *		copies of the paths.
 */
extern FieldTypes *field_types_create(List *paths);

/*
 * field_types_observe
 *		Add one document.  Raises 08P01 for bytes that are not BSON.
 *
 * A part of a path that is an array counts as an array for the whole path, as a
 * column cannot read what is inside.
 */
extern void field_types_observe(FieldTypes *types, const uint8_t *data, uint32 length);

/*
 * field_types_describe
 *		As the value of "fields" in mongo_fdw_statistics, in the current memory
 *		context.
 */
extern BsonArray field_types_describe(const FieldTypes *types);

#endif							/* MONGO_FDW_FIELD_TYPES_H */
