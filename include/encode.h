/*-------------------------------------------------------------------------
 *
 * encode.h
 *		From Datums to BSON values.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ENCODE_H
#define MONGO_FDW_ENCODE_H

#include "types.h"

/*
 * mongo_append_datum
 *		Append 'value' of type 'typid' to 'document' under 'key'.
 *
 * int2, int4 -> Int32; int8 -> Int64; float4, float8 -> Double; numeric ->
 * Decimal128; text family -> String; bytea -> Binary subtype 0; uuid ->
 * Binary subtype 4; date, timestamp, timestamptz -> Date; json, jsonb ->
 * Document, Array or scalar (Extended JSON wrappers become their types);
 * arrays -> Array; composite types -> Document; the rest -> String in the type's
 * text form.  'isnull' appends a BSON null.
 *
 * The key is UTF-8; key_length may be -1.  Raises 22003 for a number beyond
 * Decimal128 (40 digits), 22008 for an infinite date, 22021 and 22P05 for text that
 * is not UTF-8 or does not become it, what mongo_append_json_members() raises for
 * JSON, 54000 when the document grows too large, and 0A000 for a type that has no
 * BSON form at all; 'document' is then unfinished and good for nothing.
 */
extern void mongo_append_datum(bson_t *document, const char *key, int key_length,
							   Datum value, bool isnull, Oid typid,
							   int32 typmod);

/*
 * What follows is for those who write values of one kind, in src/convert.
 */

/* Where a value is appended. */
typedef struct MongoWriteTarget
{
	bson_t	   *document;
	const char *key;
	int			key_length;
} MongoWriteTarget;

/*
 * The arguments of a MongoWriteFunction: it appends one non-null value.  Raises, as
 * mongo_append_datum() in encode.h has it, when the value has no BSON form.
 */
#define MONGO_WRITE_ARGS \
	const MongoWriteTarget *target, Datum value, \
	Oid typid pg_attribute_unused(), int32 typmod pg_attribute_unused()

/*
 * mongo_write_value
 *		Append one value of any writable type; see mongo_append_datum().
 */
extern void mongo_write_value(const MongoWriteTarget *target, Datum value,
							  bool isnull, Oid typid, int32 typmod);

#endif							/* MONGO_FDW_ENCODE_H */
