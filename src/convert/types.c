/*-------------------------------------------------------------------------
 *
 * types.c
 *		The table of types.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "types.h"

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "decode_nested.h"
#include "decode_number.h"
#include "decode_scalar.h"
#include "decode_text_form.h"
#include "encode_nested.h"
#include "encode_scalar.h"
#include "json_read.h"
#include "json_write.h"
#include "objectid_type.h"
#include "point.h"
#include "utils/lsyscache.h"

#define BIT(type)		MONGO_BSON_BIT(BSON_TYPE_##type)

#define NUMBERS			(BIT(INT32) | BIT(INT64) | BIT(DOUBLE) | BIT(DECIMAL128))
#define STRINGS			(BIT(UTF8) | BIT(SYMBOL))
#define TEXTS			(STRINGS | BIT(OID))

#define KIND(kind)		MONGO_KIND_##kind

/*
 * $convert knows no Symbols; $substrBytes does, and takes no ObjectIds.
 */
#define NORMAL_TEXT \
	"{$convert: {input: @1, to: 'string', onError: {$substrBytes: [@1, 0, -1]}}}"

/*
 * Equal numerics may be read from Doubles that MongoDB has for different, by their
 * 15 digits, a uuid from two subtypes of Binary, and behind a date is the time of
 * day.  The normal form of numeric is normalize_numeric() in expression_forms.c.
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
 * to fail, see read_text_form in decode_text_form.c.
 */
static const MongoType type_rows[] = {
	{INT4OID, "integer", KIND(INTEGER), NUMBERS, .read = mongo_read_int4, .write = mongo_write_int4, .limit = PG_INT32_MAX},
	{TEXTOID, "text", KIND(TEXT), TEXTS, .read = mongo_read_text, .write = mongo_write_text},
	{INT8OID, "bigint", KIND(INTEGER), NUMBERS, .read = mongo_read_int8, .write = mongo_write_int8, .limit = PG_INT64_MAX},
	{FLOAT8OID, "double precision", KIND(DOUBLE), NUMBERS, .read = mongo_read_float8, .write = mongo_write_float8},
	{NUMERICOID, "numeric", KIND(NUMERIC), NUMBERS, .read = mongo_read_numeric, .write = mongo_write_numeric, .prepare = mongo_prepare_numeric},
	{TIMESTAMPTZOID, "timestamp with time zone", KIND(TIMESTAMPTZ), BIT(DATE_TIME), .read = mongo_read_timestamp, .write = mongo_write_timestamp},
	{NAMEOID, "name", KIND(TEXT), TEXTS, .read = mongo_read_name, .write = mongo_write_name, .limit = NAMEDATALEN - 1},
	{VARCHAROID, "character varying", KIND(TEXT), TEXTS, .read = mongo_read_varchar, .write = mongo_write_text},
	{BPCHAROID, "character", KIND(OTHER), TEXTS, .read = mongo_read_bpchar, .write = mongo_write_text},
	{CHAROID, "\"char\"", KIND(OTHER), TEXTS, .read = mongo_read_char, .write = mongo_write_text_form, .limit = 1},
	{BOOLOID, "boolean", KIND(BOOLEAN), BIT(BOOL), .read = mongo_read_bool, .write = mongo_write_bool},
	{INT2OID, "smallint", KIND(INTEGER), NUMBERS, .read = mongo_read_int2, .write = mongo_write_int2, .limit = PG_INT16_MAX},
	{FLOAT4OID, "real", KIND(REAL), NUMBERS, .read = mongo_read_float4, .write = mongo_write_float4},
	{TIMESTAMPOID, "timestamp without time zone", KIND(TIMESTAMP), BIT(DATE_TIME), .read = mongo_read_timestamp, .write = mongo_write_timestamp},
	{DATEOID, "date", KIND(DATE), BIT(DATE_TIME), .read = mongo_read_date, .write = mongo_write_date},
	{JSONBOID, "jsonb", KIND(JSONB), MONGO_BSON_ANY, .read = mongo_read_jsonb, .write = mongo_write_json},
	{JSONOID, "json", KIND(JSON), MONGO_BSON_ANY, .read = mongo_read_json, .write = mongo_write_json},
	{UUIDOID, "uuid", KIND(UUID), BIT(BINARY), .read = mongo_read_uuid, .write = mongo_write_uuid},
	{BYTEAOID, "bytea", KIND(OTHER), BIT(BINARY) | BIT(OID), .read = mongo_read_bytea, .write = mongo_write_bytea},

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
	[CATEGORY_OBJECTID] = {InvalidOid, "objectid", KIND(OBJECTID), BIT(OID), .read = mongo_read_objectid, .write = mongo_write_objectid},
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

const MongoType *
mongo_nth_type(int number)
{
	const int	named = lengthof(type_rows);

	if (number < named)
		return &type_rows[number];
	return number - named < (int) lengthof(category_rows) ? &category_rows[number - named] : NULL;
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
