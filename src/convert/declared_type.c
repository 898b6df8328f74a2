/*-------------------------------------------------------------------------
 *
 * declared_type.c
 *		What the column option bson_type says.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "declared_type.h"

#include <math.h>

#include "bson_types.h"
#include "catalog/pg_type_d.h"
#include "decimal128.h"
#include "encode_scalar.h"
#include "lib/stringinfo.h"
#include "objectid.h"
#include "objectid_type.h"
#include "types.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

#define BIT(type)		MONGO_BSON_BIT(BSON_TYPE_##type)

#define TEXTS			(BIT(UTF8) | BIT(OID))
#define INTEGERS		(BIT(INT32) | BIT(INT64))

/*
 * What can be declared for a type.  Not Decimal128 for floats, which can write few of
 * their values as one.
 */
static const struct
{
	Oid			typid;			/* InvalidOid: objectid */
	uint32		types;
}			declarable[] =
{
	{NAMEOID, TEXTS},
	{TEXTOID, TEXTS},
	{VARCHAROID, TEXTS},
	{BPCHAROID, TEXTS},
	{BYTEAOID, BIT(BINARY) | BIT(OID)},
	{InvalidOid, BIT(OID)},
	{UUIDOID, BIT(BINARY)},
	{BOOLOID, BIT(BOOL)},
	{INT2OID, INTEGERS | BIT(DOUBLE) | BIT(DECIMAL128)},
	{INT4OID, INTEGERS | BIT(DOUBLE) | BIT(DECIMAL128)},
	{INT8OID, INTEGERS | BIT(DOUBLE) | BIT(DECIMAL128)},
	{NUMERICOID, INTEGERS | BIT(DOUBLE) | BIT(DECIMAL128)},
	{FLOAT4OID, INTEGERS | BIT(DOUBLE)},
	{FLOAT8OID, INTEGERS | BIT(DOUBLE)},
	{DATEOID, BIT(DATE_TIME)},
	{TIMESTAMPOID, BIT(DATE_TIME)},
	{TIMESTAMPTZOID, BIT(DATE_TIME)},
};

/* declarable_types: 0 for a type that has no row. */
static uint32
declarable_types(Oid typid)
{
	Oid			base = getBaseType(typid);

	for (size_t i = 0; i < lengthof(declarable); i++)
	{
		if (OidIsValid(declarable[i].typid) ? base == declarable[i].typid :
			mongo_is_objectid_type(base))
			return declarable[i].types;
	}
	return 0;
}

uint32
mongo_declared_set(bson_type_t declared)
{
	if (declared == BSON_TYPE_EOD)
		return MONGO_BSON_ANY;
	return MONGO_BSON_BIT(declared) | (declared == BSON_TYPE_UTF8 ? BIT(SYMBOL) : 0);
}

/* names_of_types: as the option spells them. */
static char *
names_of_types(uint32 types)
{
	StringInfoData names;
	ListCell   *cell;

	initStringInfo(&names);
	foreach(cell, mongo_bson_type_aliases(types))
		appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", (char *) lfirst(cell));
	return names.data;
}

void
mongo_check_declared_type(const char *column_name, Oid typid, bson_type_t declared)
{
	uint32		types;

	if (declared == BSON_TYPE_EOD)
		return;
	types = declarable_types(typid);
	if ((types & MONGO_BSON_BIT(declared)) != 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("option \"bson_type\" of column \"%s\" cannot be \"%s\"", column_name,
					names_of_types(MONGO_BSON_BIT(declared))),
			 types == 0 ?
			 errhint("A column of type %s does not take the option.", format_type_be(typid)) :
			 errhint("Valid values for a column of type %s are: %s.", format_type_be(typid),
					 names_of_types(types))));
}

bool
mongo_declared_is_told(bson_type_t declared)
{
	return (MONGO_BSON_BIT(declared) & (INTEGERS | BIT(DOUBLE) | BIT(DECIMAL128))) == 0;
}

/*
 * Writing: each function appends the value, or is false when the type does not hold it.
 */

typedef bool AppendFunction (const MongoWriteTarget *target, Datum value, Oid typid);

static bool
append_objectid(const MongoWriteTarget *target, Datum value, Oid typid)
{
	bson_oid_t	oid;
	const char *text;
	int			length;

	if (typid == NAMEOID)
	{
		text = NameStr(*DatumGetName(value));
		length = strlen(text);
	}
	else
	{
		struct varlena *packed = PG_DETOAST_DATUM_PACKED(value);

		text = VARDATA_ANY(packed);
		length = VARSIZE_ANY_EXHDR(packed);
	}
	if (typid == BYTEAOID && length == MONGO_OBJECTID_SIZE)
		memcpy(oid.bytes, text, MONGO_OBJECTID_SIZE);
	else if (typid == BYTEAOID ||
			 !mongo_objectid_from_text(text, typid == BPCHAROID ?
									   bpchartruelen(unconstify(char *, text), length) : length,
									   true, &oid))
		return false;
	MONGO_WRITE(target, oid, &oid);
	return true;
}

/* integer_of: the value as an integer that is the same number. */
static bool
integer_of(Datum value, Oid typid, int64 *integer)
{
	bson_decimal128_t decimal;
	MongoDecimalParts parts;
	double		number;

	switch (mongo_type_kind(typid))
	{
		case MONGO_KIND_INTEGER:
			*integer = mongo_integer_of_datum(typid, value);
			return true;
		case MONGO_KIND_NUMERIC:
			if (!mongo_numeric_to_decimal128(DatumGetNumeric(value), &decimal))
				return false;
			mongo_decimal128_unpack(&decimal, &parts);
			return mongo_decimal128_to_int64(&parts, integer);
		default:
			number = typid == FLOAT4OID ? DatumGetFloat4(value) : DatumGetFloat8(value);
			if (isnan(number) || number != rint(number) || !FLOAT8_FITS_IN_INT64(number))
				return false;
			*integer = (int64) number;
			return true;
	}
}

static bool
append_int32(const MongoWriteTarget *target, Datum value, Oid typid)
{
	int64		integer;

	if (!integer_of(value, typid, &integer) || integer < PG_INT32_MIN || integer > PG_INT32_MAX)
		return false;
	MONGO_WRITE(target, int32, (int32) integer);
	return true;
}

static bool
append_int64(const MongoWriteTarget *target, Datum value, Oid typid)
{
	int64		integer;

	if (!integer_of(value, typid, &integer))
		return false;
	MONGO_WRITE(target, int64, integer);
	return true;
}

/* append_double: of a numeric, what reads as the same one. */
static bool
append_double(const MongoWriteTarget *target, Datum value, Oid typid)
{
	double		number;

	if (typid == FLOAT4OID)
		number = DatumGetFloat4(value);
	else if (typid == FLOAT8OID)
		number = DatumGetFloat8(value);
	else if (typid == NUMERICOID)
	{
		number = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value));
		if (!DatumGetBool(DirectFunctionCall2(numeric_eq, value,
											  DirectFunctionCall1(float8_numeric,
																  Float8GetDatum(number)))))
			return false;
	}
	else
	{
		int64		integer = mongo_integer_of_datum(typid, value);

		number = (double) integer;
		if (!FLOAT8_FITS_IN_INT64(number) || (int64) number != integer)
			return false;
	}
	MONGO_WRITE(target, double, number);
	return true;
}

static bool
append_decimal128(const MongoWriteTarget *target, Datum value, Oid typid)
{
	bson_decimal128_t decimal;

	if (typid != NUMERICOID)
		value = NumericGetDatum(int64_to_numeric(mongo_integer_of_datum(typid, value)));
	if (!mongo_numeric_to_decimal128(DatumGetNumeric(value), &decimal))
		return false;
	MONGO_WRITE(target, decimal128, &decimal);
	return true;
}

/* What is not a matter of course for the PostgreSQL types that can be declared so. */
static const struct
{
	bson_type_t type;
	AppendFunction *append;
	int			sqlstate;
	const char *hint;
}			writers[] =
{
	{BSON_TYPE_OID, append_objectid, ERRCODE_INVALID_TEXT_REPRESENTATION,
	"An ObjectId is 24 hexadecimal digits, in lower case, or 12 bytes of a bytea."},
	{BSON_TYPE_INT32, append_int32, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
	"An Int32 is an integer from -2147483648 to 2147483647."},
	{BSON_TYPE_INT64, append_int64, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
	"An Int64 is an integer from -9223372036854775808 to 9223372036854775807."},
	{BSON_TYPE_DOUBLE, append_double, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
	"A Double holds integers up to 2^53 and numerics of up to 15 digits."},
	{BSON_TYPE_DECIMAL128, append_decimal128, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
	"A Decimal128 holds 34 significant digits and exponents from -6176 to 6111."},
};

void
mongo_append_declared(bson_t *document, const char *key, Datum value, Oid typid,
					  int32 typmod, bson_type_t declared)
{
	MongoWriteTarget target = {document, key, -1};
	Oid			base = getBaseType(typid);

	for (size_t i = 0; i < lengthof(writers); i++)
	{
		if (writers[i].type != declared || mongo_type_kind(base) == MONGO_KIND_OBJECTID)
			continue;
		if (!writers[i].append(&target, value, base))
			ereport(ERROR,
					(errcode(writers[i].sqlstate),
					 errmsg("value cannot be written as BSON type %s, which option bson_type asks for",
							mongo_bson_type_name(declared)),
					 errhint("%s", writers[i].hint)));
		return;
	}
	mongo_append_datum(document, key, -1, value, false, typid, typmod);
}
