/*-------------------------------------------------------------------------
 *
 * types.c
 *		The table of types, and what a value that does not fit is told as.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"

#include <math.h>

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "catalog/pg_type_d.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

/* --------------------------- The table of types --------------------------- */

#define BIT(type)		MONGO_BSON_BIT(BSON_TYPE_##type)

#define NUMBERS			(BIT(INT32) | BIT(INT64) | BIT(DOUBLE) | BIT(DECIMAL128))
#define STRINGS			(BIT(UTF8) | BIT(SYMBOL))
#define TEXTS			(STRINGS | BIT(OID))

/* What can be declared.  Floats can write few of their values as a Decimal128. */
#define UTF8_OR_OID		(BIT(UTF8) | BIT(OID))
#define FLOATS			(BIT(INT32) | BIT(INT64) | BIT(DOUBLE))

#define KIND(kind)		MONGO_KIND_##kind

/*
 * $convert knows no Symbols; $substrBytes does, and takes no ObjectIds.
 */
#define NORMAL_TEXT \
	"{$convert: {input: @1, to: 'string', onError: {$substrBytes: [@1, 0, -1]}}}"

/*
 * Equal numerics may be read from Doubles that MongoDB has for different, by their
 * 15 digits, a uuid from two subtypes of Binary, and behind a date is the time of
 * day.  The normal form of numeric is normalize_numeric() in expression.c.
 */
const MongoKind mongo_kinds[] = {
	[KIND(OTHER)] = {.class = KIND(OTHER)},
	[KIND(INTEGER)] = {.class = KIND(INTEGER), .normal_form = "{$toLong: @1}", .compares_raw = true, .is_key = true, .is_told_by_type = true},
	[KIND(REAL)] = {.class = KIND(DOUBLE)},
	[KIND(DOUBLE)] = {.class = KIND(DOUBLE), .normal_form = "{$toDouble: @1}", .has_nan = true, .compares_raw = true, .is_key = true},
	[KIND(NUMERIC)] = {.class = KIND(NUMERIC), .normal_form = "{$toDecimal: @1}", .has_nan = true},
	[KIND(TEXT)] = {.class = KIND(TEXT), .normal_form = NORMAL_TEXT, .is_key = true, .is_told_by_type = true},
	[KIND(BOOLEAN)] = {.class = KIND(BOOLEAN), .normal_form = "", .is_key = true, .is_told_by_type = true},
	[KIND(UUID)] = {.class = KIND(UUID)},
	[KIND(DATE)] = {.class = KIND(TIMESTAMP), .normal_form = "{$dateTrunc: {date: @1, unit: 'day'}}", .is_told_by_type = true},
	[KIND(TIMESTAMP)] = {.class = KIND(TIMESTAMP), .normal_form = "", .is_key = true, .is_told_by_type = true},
	[KIND(TIMESTAMPTZ)] = {.class = KIND(TIMESTAMPTZ), .normal_form = "", .is_key = true, .is_told_by_type = true},
	[KIND(OBJECTID)] = {.class = KIND(OBJECTID), .normal_form = "", .is_key = true, .is_told_by_type = true},
	[KIND(JSON)] = {.class = KIND(TEXT)},
	[KIND(JSONB)] = {.class = KIND(JSONB)},
};

/* Read and written as a String in the type's own text form. */
#define TEXT_FORM(writer) \
	KIND(OTHER), STRINGS, .read = mongo_read_text_form, .write = (writer), \
	.prepare = mongo_prepare_text_form

#define NOT_STORED		KIND(OTHER), 0, .read = NULL

/*
 * One row a type, the frequent ones first.  A type read and written in its
 * own text form stands here only when its input function is known to be safe
 * to fail, see read_text_form in decode_value.c.
 */
static const MongoType type_rows[] = {
	{INT4OID, "integer", KIND(INTEGER), NUMBERS, NUMBERS, .read = mongo_read_int4, .write = mongo_write_integer, .limit = PG_INT32_MAX},
	{TEXTOID, "text", KIND(TEXT), TEXTS, UTF8_OR_OID, .read = mongo_read_text, .write = mongo_write_text},
	{INT8OID, "bigint", KIND(INTEGER), NUMBERS, NUMBERS, .read = mongo_read_integer, .write = mongo_write_integer, .limit = PG_INT64_MAX},
	{FLOAT8OID, "double precision", KIND(DOUBLE), NUMBERS, FLOATS, .read = mongo_read_float8, .write = mongo_write_float},
	{NUMERICOID, "numeric", KIND(NUMERIC), NUMBERS, NUMBERS, .read = mongo_read_numeric, .write = mongo_write_numeric, .prepare = mongo_prepare_numeric},
	{TIMESTAMPTZOID, "timestamp with time zone", KIND(TIMESTAMPTZ), BIT(DATE_TIME), BIT(DATE_TIME), .read = mongo_read_timestamp, .write = mongo_write_timestamp},
	{NAMEOID, "name", KIND(TEXT), TEXTS, UTF8_OR_OID, .read = mongo_read_name, .write = mongo_write_name, .limit = NAMEDATALEN - 1},
	{VARCHAROID, "character varying", KIND(TEXT), TEXTS, UTF8_OR_OID, .read = mongo_read_text, .write = mongo_write_text},
	{BPCHAROID, "character", KIND(OTHER), TEXTS, UTF8_OR_OID, .read = mongo_read_bpchar, .write = mongo_write_text},
	{CHAROID, "\"char\"", KIND(OTHER), TEXTS, .read = mongo_read_char, .write = mongo_write_text_form, .limit = 1},
	{BOOLOID, "boolean", KIND(BOOLEAN), BIT(BOOL), BIT(BOOL), .read = mongo_read_bool, .write = mongo_write_bool},
	{INT2OID, "smallint", KIND(INTEGER), NUMBERS, NUMBERS, .read = mongo_read_integer, .write = mongo_write_integer, .limit = PG_INT16_MAX},
	{FLOAT4OID, "real", KIND(REAL), NUMBERS, FLOATS, .read = mongo_read_float4, .write = mongo_write_float},
	{TIMESTAMPOID, "timestamp without time zone", KIND(TIMESTAMP), BIT(DATE_TIME), BIT(DATE_TIME), .read = mongo_read_timestamp, .write = mongo_write_timestamp},
	{DATEOID, "date", KIND(DATE), BIT(DATE_TIME), BIT(DATE_TIME), .read = mongo_read_date, .write = mongo_write_date},
	{JSONBOID, "jsonb", KIND(JSONB), MONGO_BSON_ANY, .read = mongo_read_jsonb, .write = mongo_write_json},
	{JSONOID, "json", KIND(JSON), MONGO_BSON_ANY, .read = mongo_read_json, .write = mongo_write_json},
	{UUIDOID, "uuid", KIND(UUID), BIT(BINARY), BIT(BINARY), .read = mongo_read_uuid, .write = mongo_write_uuid},
	{BYTEAOID, "bytea", KIND(OTHER), BIT(BINARY) | BIT(OID), BIT(BINARY) | BIT(OID), .read = mongo_read_bytea, .write = mongo_write_bytea},

	{TIMEOID, "time without time zone", TEXT_FORM(mongo_write_text_form)},
	{TIMETZOID, "time with time zone", TEXT_FORM(mongo_write_text_form)},
	{INTERVALOID, "interval", TEXT_FORM(mongo_write_interval)},
	{INETOID, "inet", TEXT_FORM(mongo_write_text_form)},
	{CIDROID, "cidr", TEXT_FORM(mongo_write_text_form)},
	{MACADDROID, "macaddr", TEXT_FORM(mongo_write_text_form)},
	{MACADDR8OID, "macaddr8", TEXT_FORM(mongo_write_text_form)},
	{BITOID, "bit", TEXT_FORM(mongo_write_text_form)},
	{VARBITOID, "bit varying", TEXT_FORM(mongo_write_text_form)},
	{MONEYOID, "money", TEXT_FORM(mongo_write_text_form)},
	{POINTOID, "point", KIND(OTHER), STRINGS | BIT(DOCUMENT) | BIT(ARRAY), .read = mongo_read_point, .write = mongo_write_point, .prepare = mongo_prepare_text_form},

	/* array types by their look, but with rules of their own */
	{INT2VECTOROID, "int2vector", NOT_STORED},
	{OIDVECTOROID, "oidvector", NOT_STORED},
	{XMLOID, "xml", NOT_STORED},
};

/* Types without an OID known beforehand. */
typedef enum TypeCategory
{
	CATEGORY_OBJECTID,
	CATEGORY_ARRAY,
	CATEGORY_COMPOSITE,
	CATEGORY_ENUM,
	CATEGORY_DOMAIN,
	CATEGORY_OTHER
} TypeCategory;

static const MongoType category_rows[] = {
	[CATEGORY_OBJECTID] = {InvalidOid, "objectid", KIND(OBJECTID), BIT(OID), BIT(OID), .read = mongo_read_objectid, .write = mongo_write_objectid},
	[CATEGORY_ARRAY] = {InvalidOid, "arrays", KIND(OTHER), BIT(ARRAY), .read = mongo_read_array, .write = mongo_write_array, .prepare = mongo_prepare_array},
	[CATEGORY_COMPOSITE] = {InvalidOid, "composite types", KIND(OTHER), BIT(DOCUMENT), .read = mongo_read_composite, .write = mongo_write_composite, .prepare = mongo_prepare_composite},
	[CATEGORY_ENUM] = {InvalidOid, "enums", KIND(OTHER), STRINGS, .read = mongo_read_enum, .write = mongo_write_text_form},
	[CATEGORY_DOMAIN] = {InvalidOid, "domains", KIND(OTHER), 0, .read = mongo_read_domain, .write = mongo_write_domain, .prepare = mongo_prepare_domain},
	[CATEGORY_OTHER] = {InvalidOid, "other base types and ranges", TEXT_FORM(mongo_write_text_form)},
};

/* own_row: the row for this type alone, or NULL. */
static const MongoType *
own_row(Oid typid)
{
	if (typid >= FirstNormalObjectId)
		return mongo_is_objectid_type(typid) ? &category_rows[CATEGORY_OBJECTID] : NULL;
	for (size_t i = 0; i < lengthof(type_rows); i++)
	{
		if (type_rows[i].typid == typid)
			return &type_rows[i];
	}
	return NULL;
}

/* category_row: the row that a type's pg_type entry leads to, or NULL. */
static const MongoType *
category_row(Oid typid)
{
	switch (get_typtype(typid))
	{
		case TYPTYPE_BASE:
			if (OidIsValid(get_element_type(typid)))
				return &category_rows[CATEGORY_ARRAY];
			return &category_rows[CATEGORY_OTHER];
		case TYPTYPE_RANGE:
		case TYPTYPE_MULTIRANGE:
			return &category_rows[CATEGORY_OTHER];
		case TYPTYPE_COMPOSITE:
			return &category_rows[CATEGORY_COMPOSITE];
		case TYPTYPE_ENUM:
			return &category_rows[CATEGORY_ENUM];
		case TYPTYPE_DOMAIN:
			return &category_rows[CATEGORY_DOMAIN];
		default:
			return NULL;		/* pseudo-types, types that are gone */
	}
}

const MongoType *
mongo_type_facts(Oid typid)
{
	const MongoType *row = own_row(typid);

	return row != NULL ? row : &category_rows[CATEGORY_OTHER];
}

bool
mongo_types_compare(Oid left, Oid right)
{
	MongoTypeKind class = mongo_kind_of_type(left)->class;

	return class != MONGO_KIND_OTHER && class == mongo_kind_of_type(right)->class;
}

const MongoType *
mongo_type_lookup(Oid typid)
{
	const MongoType *row = own_row(typid);

	if (row == NULL)
		return category_row(typid);
	return row->read != NULL ? row : NULL;
}

/* Composite attributes are not looked into: they are refused when written. */
bool
mongo_type_is_writable(Oid typid)
{
	const MongoType *type = mongo_type_lookup(typid);

	if (type == &category_rows[CATEGORY_DOMAIN])
		return mongo_type_is_writable(getBaseType(typid));
	if (type == &category_rows[CATEGORY_ARRAY])
		return mongo_type_is_writable(get_element_type(typid));
	return type != NULL;
}

/* ---------------- The names of BSON's types, one row each ----------------- */

static const struct
{
	bson_type_t type;
	const char *name;
	const char *alias;			/* of $type */
}			bson_types[] =
{
	{BSON_TYPE_DOUBLE, "Double", "double"},
	{BSON_TYPE_UTF8, "String", "string"},
	{BSON_TYPE_SYMBOL, "Symbol", "symbol"},
	{BSON_TYPE_DOCUMENT, "Document", "object"},
	{BSON_TYPE_ARRAY, "Array", "array"},
	{BSON_TYPE_BINARY, "Binary", "binData"},
	{BSON_TYPE_UNDEFINED, "Undefined", "undefined"},
	{BSON_TYPE_OID, "ObjectId", "objectId"},
	{BSON_TYPE_BOOL, "Boolean", "bool"},
	{BSON_TYPE_DATE_TIME, "Date", "date"},
	{BSON_TYPE_NULL, "Null", "null"},
	{BSON_TYPE_REGEX, "Regex", "regex"},
	{BSON_TYPE_DBPOINTER, "DBPointer", "dbPointer"},
	{BSON_TYPE_CODE, "JavaScript", "javascript"},
	{BSON_TYPE_CODEWSCOPE, "JavaScript with scope", "javascriptWithScope"},
	{BSON_TYPE_INT32, "Int32", "int"},
	{BSON_TYPE_TIMESTAMP, "Timestamp", "timestamp"},
	{BSON_TYPE_INT64, "Int64", "long"},
	{BSON_TYPE_DECIMAL128, "Decimal128", "decimal"},
	{BSON_TYPE_MINKEY, "MinKey", "minKey"},
	{BSON_TYPE_MAXKEY, "MaxKey", "maxKey"},
};

const char *
mongo_bson_type_name(bson_type_t type)
{
	for (size_t i = 0; i < lengthof(bson_types); i++)
	{
		if (bson_types[i].type == type)
			return bson_types[i].name;
	}
	return "value of unknown type";
}

bson_type_t
mongo_bson_type_of_alias(const char *alias)
{
	for (size_t i = 0; i < lengthof(bson_types); i++)
	{
		if (strcmp(bson_types[i].alias, alias) == 0)
			return bson_types[i].type;
	}
	return BSON_TYPE_EOD;
}

List *
mongo_bson_type_aliases(uint32 set)
{
	List	   *aliases = NIL;

	for (size_t i = 0; i < lengthof(bson_types); i++)
	{
		if (set & MONGO_BSON_BIT(bson_types[i].type))
			aliases = lappend(aliases, unconstify(char *, bson_types[i].alias));
	}
	return aliases;
}

/* ----------------- What the column option bson_type says ------------------ */

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
	types = mongo_type_facts(getBaseType(typid))->declares;
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
	return (MONGO_BSON_BIT(declared) & NUMBERS) == 0;
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

	if (!integer_of(value, typid, &integer) || integer != (int32) integer)
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

/* ------------------------- Values that do not fit ------------------------- */

bool
mongo_mismatch(MongoReadContext *context, MongoMismatch mismatch,
			   const bson_iter_t *iter, const char *remark)
{
	context->mismatch = mismatch;
	context->value = *iter;
	context->remark = remark;
	return false;
}
