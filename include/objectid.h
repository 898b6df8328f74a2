/*-------------------------------------------------------------------------
 *
 * objectid.h
 *		The SQL type objectid: the twelve bytes of a BSON ObjectId, passed by
 *		reference, without alignment.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_OBJECTID_H
#define MONGO_FDW_OBJECTID_H

#include "compat.h"

#include "fmgr.h"

#define MONGO_OBJECTID_SIZE			12
#define MONGO_OBJECTID_TEXT_LENGTH	24

/*
 * mongo_objectid_to_text
 *		Write 24 lower-case hexadecimal digits and a NUL.
 */
extern void mongo_objectid_to_text(const uint8 *bytes, char *text);

/*
 * mongo_objectid_from_text
 *		Parse exactly 24 hexadecimal digits, lower case only when
 *		'canonical' is set; false when 'text' is not that.
 */
extern bool mongo_objectid_from_text(const char *text, size_t length,
									 bool canonical, bson_oid_t *oid);

/*
 * mongo_objectid_datum
 *		A palloc'd Datum of these twelve bytes.
 */
extern Datum mongo_objectid_datum(const uint8 *bytes);

/* The type's input function. */
extern PGDLLEXPORT Datum mongo_objectid_in(PG_FUNCTION_ARGS);

#endif							/* MONGO_FDW_OBJECTID_H */
