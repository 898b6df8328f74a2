/*-------------------------------------------------------------------------
 *
 * types.c
 *		The table of types, and readers made from it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "types.h"

#include "catalog/pg_type.h"
#include "decode.h"
#include "encode.h"
#include "miscadmin.h"
#include "objectid.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#define BIT(type)		MONGO_BSON_BIT(BSON_TYPE_##type)

#define NUMBERS			(BIT(INT32) | BIT(INT64) | BIT(DOUBLE) | BIT(DECIMAL128))
#define STRINGS			(BIT(UTF8) | BIT(SYMBOL))
#define TEXTS			(STRINGS | BIT(OID))

/*
 * One row a type, the frequent ones first.  A type read and written in its
 * own text form stands here only when its input function is known to be safe
 * to fail, see read_text_form in decode_text_form.c.
 */
static const MongoType type_rows[] = {
	{INT4OID, "integer", NUMBERS, mongo_read_int4, mongo_write_int4, NULL},
	{TEXTOID, "text", TEXTS, mongo_read_text, mongo_write_text, NULL},
	{INT8OID, "bigint", NUMBERS, mongo_read_int8, mongo_write_int8, NULL},
	{FLOAT8OID, "double precision", NUMBERS, mongo_read_float8, mongo_write_float8, NULL},
	{NUMERICOID, "numeric", NUMBERS, mongo_read_numeric, mongo_write_numeric, mongo_prepare_numeric},
	{TIMESTAMPTZOID, "timestamp with time zone", BIT(DATE_TIME), mongo_read_timestamp, mongo_write_timestamp, NULL},
	{NAMEOID, "name", TEXTS, mongo_read_name, mongo_write_name, NULL},
	{VARCHAROID, "character varying", TEXTS, mongo_read_varchar, mongo_write_text, NULL},
	{BPCHAROID, "character", TEXTS, mongo_read_bpchar, mongo_write_text, NULL},
	{CHAROID, "\"char\"", TEXTS, mongo_read_char, mongo_write_text_form, NULL},
	{BOOLOID, "boolean", BIT(BOOL), mongo_read_bool, mongo_write_bool, NULL},
	{INT2OID, "smallint", NUMBERS, mongo_read_int2, mongo_write_int2, NULL},
	{FLOAT4OID, "real", NUMBERS, mongo_read_float4, mongo_write_float4, NULL},
	{TIMESTAMPOID, "timestamp without time zone", BIT(DATE_TIME), mongo_read_timestamp, mongo_write_timestamp, NULL},
	{DATEOID, "date", BIT(DATE_TIME), mongo_read_date, mongo_write_date, NULL},
	{JSONBOID, "jsonb", MONGO_BSON_ANY, mongo_read_jsonb, mongo_write_json, NULL},
	{JSONOID, "json", MONGO_BSON_ANY, mongo_read_json, mongo_write_json, NULL},
	{UUIDOID, "uuid", BIT(BINARY), mongo_read_uuid, mongo_write_uuid, NULL},
	{BYTEAOID, "bytea", BIT(BINARY) | BIT(OID), mongo_read_bytea, mongo_write_bytea, NULL},

	{TIMEOID, "time without time zone", STRINGS, mongo_read_text_form, mongo_write_text_form, mongo_prepare_text_form},
	{TIMETZOID, "time with time zone", STRINGS, mongo_read_text_form, mongo_write_text_form, mongo_prepare_text_form},
	{INTERVALOID, "interval", STRINGS, mongo_read_text_form, mongo_write_interval, mongo_prepare_text_form},
	{INETOID, "inet", STRINGS, mongo_read_text_form, mongo_write_text_form, mongo_prepare_text_form},
	{CIDROID, "cidr", STRINGS, mongo_read_text_form, mongo_write_text_form, mongo_prepare_text_form},
	{MACADDROID, "macaddr", STRINGS, mongo_read_text_form, mongo_write_text_form, mongo_prepare_text_form},
	{MACADDR8OID, "macaddr8", STRINGS, mongo_read_text_form, mongo_write_text_form, mongo_prepare_text_form},
	{BITOID, "bit", STRINGS, mongo_read_text_form, mongo_write_text_form, mongo_prepare_text_form},
	{VARBITOID, "bit varying", STRINGS, mongo_read_text_form, mongo_write_text_form, mongo_prepare_text_form},
	{MONEYOID, "money", STRINGS, mongo_read_text_form, mongo_write_text_form, mongo_prepare_text_form},

	/* array types by their look, but with rules of their own */
	{INT2VECTOROID, "int2vector", 0, NULL, NULL, NULL},
	{OIDVECTOROID, "oidvector", 0, NULL, NULL, NULL},
	{XMLOID, "xml", 0, NULL, NULL, NULL},
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
	[CATEGORY_OBJECTID] = {InvalidOid, "objectid", BIT(OID), mongo_read_objectid, mongo_write_objectid, NULL},
	[CATEGORY_ARRAY] = {InvalidOid, "arrays", BIT(ARRAY), mongo_read_array, mongo_write_array, mongo_prepare_array},
	[CATEGORY_COMPOSITE] = {InvalidOid, "composite types", BIT(DOCUMENT), mongo_read_composite, mongo_write_composite, mongo_prepare_composite},
	[CATEGORY_ENUM] = {InvalidOid, "enums", STRINGS, mongo_read_enum, mongo_write_text_form, NULL},
	[CATEGORY_DOMAIN] = {InvalidOid, "domains", 0, mongo_read_domain, mongo_write_domain, mongo_prepare_domain},
	[CATEGORY_OTHER] = {InvalidOid, "other base types and ranges", STRINGS, mongo_read_text_form, mongo_write_text_form, mongo_prepare_text_form},
};

/* category_row: the row that a type's pg_type entry leads to, or NULL. */
static const MongoType *
category_row(Oid typid)
{
	if (typid == mongo_objectid_type_oid())
		return &category_rows[CATEGORY_OBJECTID];

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
mongo_type_lookup(Oid typid)
{
	for (size_t i = 0; i < lengthof(type_rows); i++)
	{
		if (type_rows[i].typid == typid)
			return type_rows[i].read ? &type_rows[i] : NULL;
	}
	return category_row(typid);
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

MongoReader *
mongo_reader_create(MemoryContext context, Oid typid, int32 typmod)
{
	const MongoType *type = mongo_type_lookup(typid);
	MongoReader *reader;

	check_stack_depth();

	if (type == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be read from MongoDB",
						format_type_be(typid))));

	reader = MemoryContextAllocZero(context, sizeof(MongoReader));
	reader->read = type->read;
	reader->accepts = type->accepts;
	reader->typid = typid;
	reader->typmod = typmod;
	reader->type = type;
	reader->mcxt = context;
	get_typlenbyvalalign(typid, &reader->typlen, &reader->typbyval,
						 &reader->typalign);
	if (type->prepare)
		type->prepare(reader);
	return reader;
}
