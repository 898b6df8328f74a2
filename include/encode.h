/*-------------------------------------------------------------------------
 *
 * encode.h
 *		From Datums to BSON values.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ENCODE_H
#define MONGO_FDW_ENCODE_H

#include "compat.h"

#include "utils/date.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

/* BSON's Date counts milliseconds since 1970, PostgreSQL's dates begin in 2000. */
#define MONGO_MILLIS_PER_DAY	INT64CONST(86400000)
#define MONGO_EPOCH_DAYS		((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE))

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
 * The key is UTF-8; key_length may be -1.  'column_name' is for messages and may
 * be NULL.  Raises 22003 for a number beyond Decimal128 (40 digits), 22008 for an
 * infinite date, 22021 and 22P05 for text that is not UTF-8 or does not become it,
 * what mongo_append_json_members() raises for JSON, 54000 when the document grows
 * too large, and 0A000 for a type that has no BSON form at all; 'document' is then
 * unfinished and good for nothing.
 */
extern void mongo_append_datum(bson_t *document, const char *key, int key_length,
							   Datum value, bool isnull, Oid typid,
							   int32 typmod, const char *column_name);

/*
 * mongo_type_is_writable
 *		Does a value of this type have a BSON form to write?
 *
 * A composite type always does; one of its attributes may raise 0A000 later.
 */
extern bool mongo_type_is_writable(Oid typid);

/*
 * mongo_numeric_to_decimal128
 *		The same number, with as much of its scale as there is room for; false
 *		when it has more than 34 digits or is out of the exponents' range.
 *
 * NaN and infinities convert.
 */
extern bool mongo_numeric_to_decimal128(Numeric value, bson_decimal128_t *decimal);

/*
 * mongo_timestamp_to_millis
 *		Milliseconds since 1970 of a timestamp or timestamptz, rounded down.
 *
 * *exact (may be NULL) tells whether nothing was cut.  The value must be
 * finite.
 */
extern int64 mongo_timestamp_to_millis(Timestamp value, bool *exact);

/*
 * mongo_date_to_millis
 *		Milliseconds since 1970 of a date's midnight in UTC.  Must be finite.
 */
extern int64 mongo_date_to_millis(DateADT value);

#endif							/* MONGO_FDW_ENCODE_H */
