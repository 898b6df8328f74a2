/*-------------------------------------------------------------------------
 *
 * encode_scalar.c
 *		Scalars as BSON values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "encode_scalar.h"

#include "bson_date.h"
#include "decimal128.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "objectid.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

void
mongo_write_check(bool appended)
{
	if (!appended)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("document is too large for BSON")));
}

void
mongo_write_bool(MONGO_WRITE_ARGS)
{
	MONGO_WRITE(target, bool, DatumGetBool(value));
}

void
mongo_write_int2(MONGO_WRITE_ARGS)
{
	MONGO_WRITE(target, int32, DatumGetInt16(value));
}

void
mongo_write_int4(MONGO_WRITE_ARGS)
{
	MONGO_WRITE(target, int32, DatumGetInt32(value));
}

void
mongo_write_int8(MONGO_WRITE_ARGS)
{
	MONGO_WRITE(target, int64, DatumGetInt64(value));
}

void
mongo_write_float4(MONGO_WRITE_ARGS)
{
	MONGO_WRITE(target, double, DatumGetFloat4(value));
}

void
mongo_write_float8(MONGO_WRITE_ARGS)
{
	MONGO_WRITE(target, double, DatumGetFloat8(value));
}

void
mongo_write_numeric(MONGO_WRITE_ARGS)
{
	bson_decimal128_t decimal;

	if (!mongo_numeric_to_decimal128(DatumGetNumeric(value), &decimal))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("numeric value does not fit into a Decimal128"),
				 errdetail("Decimal128 holds 34 significant digits and exponents from -6176 to 6111.")));
	MONGO_WRITE(target, decimal128, &decimal);
}

/* write_string: bytes in the database's encoding as a String. */
static void
write_string(const MongoWriteTarget *target, const char *text, int length)
{
	const char *utf8 = pg_server_to_any(text, length, PG_UTF8);

	if (utf8 != text)
		length = strlen(utf8);
	MONGO_WRITE(target, utf8, utf8, length);
}

/* text, varchar and char(n), whose blanks are part of what is written */
void
mongo_write_text(MONGO_WRITE_ARGS)
{
	text	   *string = DatumGetTextPP(value);

	write_string(target, VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string));
}

void
mongo_write_name(MONGO_WRITE_ARGS)
{
	const char *name = NameStr(*DatumGetName(value));

	write_string(target, name, strnlen(name, NAMEDATALEN));
}

void
mongo_write_bytea(MONGO_WRITE_ARGS)
{
	bytea	   *bytes = DatumGetByteaPP(value);

	MONGO_WRITE(target, binary, BSON_SUBTYPE_BINARY, (const uint8_t *) VARDATA_ANY(bytes),
				VARSIZE_ANY_EXHDR(bytes));
}

void
mongo_write_uuid(MONGO_WRITE_ARGS)
{
	MONGO_WRITE(target, binary, BSON_SUBTYPE_UUID, DatumGetUUIDP(value)->data, UUID_LEN);
}

void
mongo_write_objectid(MONGO_WRITE_ARGS)
{
	bson_oid_t	oid;

	/* the Datum has no alignment */
	memcpy(oid.bytes, DatumGetPointer(value), MONGO_OBJECTID_SIZE);
	MONGO_WRITE(target, oid, &oid);
}

/* report_infinite_date: infinity and -infinity have no BSON form. */
static void
report_infinite_date(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
			 errmsg("infinite date cannot be written to MongoDB")));
}

void
mongo_write_timestamp(MONGO_WRITE_ARGS)
{
	Timestamp	timestamp = DatumGetTimestamp(value);

	if (TIMESTAMP_NOT_FINITE(timestamp))
		report_infinite_date();
	MONGO_WRITE(target, date_time, mongo_timestamp_to_millis(timestamp, NULL));
}

void
mongo_write_date(MONGO_WRITE_ARGS)
{
	DateADT		date = DatumGetDateADT(value);

	if (DATE_NOT_FINITE(date))
		report_infinite_date();
	MONGO_WRITE(target, date_time, mongo_date_to_millis(date));
}

/* ISO 8601 whatever IntervalStyle is, so that every session reads it back. */
void
mongo_write_interval(MONGO_WRITE_ARGS)
{
	struct pg_itm parts;
	char		text[MAXDATELEN + 1];

	interval2itm(*DatumGetIntervalP(value), &parts);
	EncodeInterval(&parts, INTSTYLE_ISO_8601, text);
	write_string(target, text, strlen(text));
}

/* Everything else that has a text form of its own, enums too. */
void
mongo_write_text_form(MONGO_WRITE_ARGS)
{
	Oid			function;
	bool		varlena;
	char	   *text;

	getTypeOutputInfo(typid, &function, &varlena);
	text = OidOutputFunctionCall(function, value);
	write_string(target, text, strlen(text));
	pfree(text);
}
