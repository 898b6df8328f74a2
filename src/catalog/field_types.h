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
 *
 * With 'others' the fields beside them are noted, too: at the top, and in
 * documents of which the paths name a part; 1,600 at most.
 */
extern FieldTypes *field_types_create(List *paths, bool others);

/*
 * field_types_observe
 *		Add one document.  Raises 08P01 for bytes that are not BSON.
 *
 * A part of a path that is an array counts as an array for the whole path, as a
 * column cannot read what is inside.
 */
extern void field_types_observe(FieldTypes *types, const uint8_t *data, uint32 length);

/*
 * field_types_last
 *		The type that the field with this path, one of those given, had in the last
 *		document; BSON_TYPE_EOD when it had none.
 */
extern bson_type_t field_types_last(const FieldTypes *types, const char *path);

/* What was seen of a field. */
typedef struct FieldSeen
{
	const char *path;			/* UTF-8, as far as the document's names are */
	bool		given;			/* to field_types_create(), or beside these? */
	double		documents;		/* that have it, be it as a null */
	uint32		types;			/* set of MONGO_BSON_BIT, null and undefined
								 * left out */
} FieldSeen;

/*
 * field_types_seen
 *		All fields (FieldSeen *), those given in their order and then the others as
 *		they were met.
 */
extern List *field_types_seen(const FieldTypes *types);

/*
 * field_types_describe
 *		Of the given fields, as the value of "fields" in mongo_fdw_statistics, in
 *		the current memory context.
 */
extern BsonArray field_types_describe(const FieldTypes *types);

#endif							/* MONGO_FDW_FIELD_TYPES_H */
