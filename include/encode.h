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
 * arrays -> Array; ...  'isnull' appends a BSON null.
 *
 * key_length may be -1.  'column_name' is for messages and may be NULL.
 * Raises 22003 / 22008 / 22021 / 54000 when the value has no BSON form (40
 * digits, infinity as a date, ...), 0A000 for a type that has none at all.
 */
extern void mongo_append_datum(bson_t *document, const char *key, int key_length,
							   Datum value, bool isnull, Oid typid,
							   int32 typmod, const char *column_name);

/*
 * mongo_type_is_writable
 *		Does a value of this type have a BSON form to write?
 */
extern bool mongo_type_is_writable(Oid typid);

/*
 * mongo_numeric_to_decimal128
 *		Exact conversion; false when more than 34 digits or out of exponent
 *		range.  NaN and infinities convert.
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
