/*-------------------------------------------------------------------------
 *
 * types.c
 *		The table of types, and writing values by it.
 *
 * type_rows and category_rows decide which BSON values each PostgreSQL type reads and writes, and
 * mongo_kinds what MongoDB can compute with them; code that depends on a type looks it up here.
 * The functions that write come first, then the tables, their look-up, the column option
 * bson_type, and readers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"

#include <math.h>

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_cast.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/float.h"
#include "utils/geo_decls.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

/* ----------- From Datums to BSON values, by the table of types ------------ */

/*
 * mongo_append_datum
 *		Appends a value as its type's row specifies, or a BSON null.
 *
 * key_length may be -1.  Raises 22003 for a number out of Decimal128's range, 22008 for an infinite
 * date, 22021 and 22P05 for text that is not UTF-8 or cannot be converted to it, what
 * mongo_append_json_members() raises for JSON, 54000 if the document becomes too large, and 0A000
 * for a type that has no BSON form.  After an error 'document' is unusable.
 */
void
mongo_append_datum(bson_t *document, const char *key, int key_length,
				   Datum value, bool isnull, Oid typid, int32 typmod)
{
	MongoWriteTarget target = {document, key, key_length};
	const MongoType *type;

	check_stack_depth();

	if (isnull)
	{
		MONGO_WRITE(&target, null);
		return;
	}
	type = mongo_type_lookup(typid);
	if (type == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be written to MongoDB",
						format_type_be(typid))));
	type->write(&target, value, typid, typmod);
}

/* ------------------------- Scalars as BSON values ------------------------- */

static void
write_bool(MONGO_WRITE_ARGS)
{
	MONGO_WRITE(target, bool, DatumGetBool(value));
}

static void
write_integer(MONGO_WRITE_ARGS)
{
	int64		integer = mongo_integer_of_datum(typid, value);

	if (typid == INT8OID)
		MONGO_WRITE(target, int64, integer);
	else
		MONGO_WRITE(target, int32, (int32) integer);
}

static void
write_float(MONGO_WRITE_ARGS)
{
	MONGO_WRITE(target, double, typid == FLOAT4OID ? DatumGetFloat4(value) : DatumGetFloat8(value));
}

static void
write_numeric(MONGO_WRITE_ARGS)
{
	bson_decimal128_t decimal;

	if (!mongo_numeric_to_decimal128(DatumGetNumeric(value), &decimal))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("numeric value does not fit into a Decimal128"),
				 errdetail("Decimal128 holds 34 significant digits and exponents from -6176 to 6111.")));
	MONGO_WRITE(target, decimal128, &decimal);
}

/* Appends bytes in the database's encoding as a String. */
static void
write_string(const MongoWriteTarget *target, const char *text, int length)
{
	const char *utf8 = pg_server_to_any(text, length, PG_UTF8);

	if (utf8 != text)
		length = strlen(utf8);
	MONGO_WRITE(target, utf8, utf8, length);
}

/* Writes text, varchar and char(n), which keeps its trailing blanks. */
static void
write_text(MONGO_WRITE_ARGS)
{
	text	   *string = DatumGetTextPP(value);

	write_string(target, VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string));
}

static void
write_name(MONGO_WRITE_ARGS)
{
	const char *name = NameStr(*DatumGetName(value));

	write_string(target, name, strnlen(name, NAMEDATALEN));
}

static void
write_bytea(MONGO_WRITE_ARGS)
{
	bytea	   *bytes = DatumGetByteaPP(value);

	MONGO_WRITE(target, binary, BSON_SUBTYPE_BINARY, (const uint8_t *) VARDATA_ANY(bytes),
				VARSIZE_ANY_EXHDR(bytes));
}

static void
write_uuid(MONGO_WRITE_ARGS)
{
	MONGO_WRITE(target, binary, BSON_SUBTYPE_UUID, DatumGetUUIDP(value)->data, UUID_LEN);
}

static void
write_objectid(MONGO_WRITE_ARGS)
{
	bson_oid_t	oid;

	/* copied, as the Datum is not aligned */
	memcpy(oid.bytes, DatumGetPointer(value), MONGO_OBJECTID_SIZE);
	MONGO_WRITE(target, oid, &oid);
}

/* Writes date, timestamp and timestamptz; an infinite one raises 22008. */
static void
write_date(MONGO_WRITE_ARGS)
{
	bool		is_date = typid == DATEOID;

	if (is_date ? DATE_NOT_FINITE(DatumGetDateADT(value)) :
		TIMESTAMP_NOT_FINITE(DatumGetTimestamp(value)))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("infinite date cannot be written to MongoDB")));
	MONGO_WRITE(target, date_time, is_date ? mongo_date_to_millis(DatumGetDateADT(value)) :
				mongo_timestamp_to_millis(DatumGetTimestamp(value) +
										  (typmod == MONGO_TYPMOD_ROUND_UP ? 999 : 0), NULL));
}

/*
 * Writes a String of the type's text form, under settings in which every session reads the same
 * from it; also for enums.
 */
static void
write_text_form(MONGO_WRITE_ARGS)
{
	static const char *const settings[][2] = {
		{"DateStyle", "ISO"}, {"IntervalStyle", "postgres"}, {"extra_float_digits", "3"},
		{"search_path", "pg_catalog"}
	};
	int			level = 0;
	Oid			function;
	bool		varlena;
	char	   *text;
	char		category;
	bool		preferred;

	/* a type of names, such as regclass, is numeric for PostgreSQL */
	get_type_category_preferred(typid, &category, &preferred);
	if (DateStyle != USE_ISO_DATES || IntervalStyle != INTSTYLE_POSTGRES || extra_float_digits < 1 ||
		category == TYPCATEGORY_NUMERIC)
	{
		level = NewGUCNestLevel();
		for (size_t i = 0; i < lengthof(settings); i++)
			(void) set_config_option(settings[i][0], settings[i][1], PGC_USERSET, PGC_S_SESSION,
									 GUC_ACTION_SAVE, true, 0, false);
	}
	getTypeOutputInfo(typid, &function, &varlena);
	text = OidOutputFunctionCall(function, value);
	if (level > 0)
		AtEOXact_GUC(true, level);
	write_string(target, text, strlen(text));
	pfree(text);
}

/* Writes ISO 8601, which every session reads, whatever its IntervalStyle. */
static void
write_interval(MONGO_WRITE_ARGS)
{
	struct pg_itm parts;
	char		text[MAXDATELEN + 1];

	if (INTERVAL_NOT_FINITE(DatumGetIntervalP(value)))
	{
		write_text_form(target, value, typid, typmod);
		return;
	}
	interval2itm(*DatumGetIntervalP(value), &parts);
	EncodeInterval(&parts, INTSTYLE_ISO_8601, text);
	write_string(target, text, strlen(text));
}

/* ----------- Arrays, composite types and domains as BSON values ----------- */

/* Size of a buffer for an array index as a key. */
#define POSITION_TEXT_SIZE	16

/* The state of writing an array. */
typedef struct ArrayWriting
{
	ArrayType  *array;
	int32		typmod;
	Datum	   *values;
	bool	   *isnull;
	int			next;
} ArrayWriting;

/* Appends the elements, or the arrays of the next dimension. */
static void
write_dimension(ArrayWriting *writing, int dimension, bson_t *array)
{
	MongoWriteTarget target = {.document = array};
	char		buffer[POSITION_TEXT_SIZE];
	bson_t		nested;

	for (int i = 0; i < ARR_DIMS(writing->array)[dimension]; i++)
	{
		CHECK_FOR_INTERRUPTS();
		target.key_length = (int) bson_uint32_to_string(i, &target.key, buffer,
														sizeof(buffer));
		if (dimension < ARR_NDIM(writing->array) - 1)
		{
			MONGO_WRITE(&target, array_unsafe_begin, &nested);
			write_dimension(writing, dimension + 1, &nested);
			mongo_append_array_end(array, &nested);
		}
		else
		{
			mongo_append_datum(array, target.key, target.key_length,
							   writing->values[writing->next], writing->isnull[writing->next],
							   ARR_ELEMTYPE(writing->array), writing->typmod);
			writing->next++;
		}
	}
}

/*
 * mongo_array_elements
 *		Sets *values and *isnull to the elements of an array of any number of dimensions, palloc'd;
 *		returns how many there are.
 */
int
mongo_array_elements(Datum value, Datum **values, bool **isnull)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	int16		length;
	bool		by_value;
	char		alignment;
	int			count;

	get_typlenbyvalalign(ARR_ELEMTYPE(array), &length, &by_value, &alignment);
	deconstruct_array(array, ARR_ELEMTYPE(array), length, by_value, alignment, values, isnull,
					  &count);
	return count;
}

static void
write_array(MONGO_WRITE_ARGS)
{
	ArrayWriting writing = {.array = DatumGetArrayTypeP(value), .typmod = typmod};
	bson_t		nested;

	(void) mongo_array_elements(PointerGetDatum(writing.array), &writing.values, &writing.isnull);
	MONGO_WRITE(target, array_unsafe_begin, &nested);
	if (ARR_NDIM(writing.array) > 0)
		write_dimension(&writing, 0, &nested);
	mongo_append_array_end(target->document, &nested);
}

/*
 * mongo_cast_function
 *		Returns the function of a cast from or to a type that is not built in; InvalidOid if there
 *		is none.
 */
Oid
mongo_cast_function(Oid source, Oid target)
{
	HeapTuple	tuple;
	Oid			function;

	/* no built-in type has such casts */
	if (Max(source, target) < FirstNormalObjectId)
		return InvalidOid;
	tuple = SearchSysCache2(CASTSOURCETARGET, ObjectIdGetDatum(source), ObjectIdGetDatum(target));
	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	function = ((Form_pg_cast) GETSTRUCT(tuple))->castfunc;
	ReleaseSysCache(tuple);
	return function;
}

/*
 * mongo_call_cast
 *		Calls the function of a cast; raises its errors, also for a value that does not fit the
 *		typmod.
 */
Datum
mongo_call_cast(FmgrInfo *cast, Datum value, int32 typmod)
{
	LOCAL_FCINFO(call, 3);
	Datum		result;

	InitFunctionCallInfoData(*call, cast, cast->fn_nargs, InvalidOid, NULL, NULL);
	call->args[0] = (NullableDatum) {value, false};
	call->args[1] = (NullableDatum) {Int32GetDatum(typmod), false};
	call->args[2] = (NullableDatum) {BoolGetDatum(false), false};
	result = FunctionCallInvoke(call);
	if (call->isnull)
		elog(ERROR, "function %u returned NULL", cast->fn_oid);
	return result;
}

/* Writes vector, for example, of the extension of that name. */
static void
write_vector(MONGO_WRITE_ARGS)
{
	FmgrInfo	cast;

	fmgr_info(mongo_cast_function(typid, FLOAT4ARRAYOID), &cast);
	write_array(target, mongo_call_cast(&cast, value, -1), FLOAT4ARRAYOID, -1);
}

/* Leaves out NULL attributes, as a missing field reads as NULL. */
static void
write_composite(MONGO_WRITE_ARGS)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(value);
	TupleDesc	tupdesc = lookup_rowtype_tupdesc_copy(HeapTupleHeaderGetTypeId(header),
													  HeapTupleHeaderGetTypMod(header));
	HeapTupleData tuple;
	Datum	   *values = palloc(Max(tupdesc->natts, 1) * sizeof(Datum));
	bool	   *isnull = palloc(Max(tupdesc->natts, 1) * sizeof(bool));
	bson_t		nested;

	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = header;
	heap_deform_tuple(&tuple, tupdesc, values, isnull);

	MONGO_WRITE(target, document_begin, &nested);
	for (int i = 0; i < tupdesc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tupdesc, i);

		if (!attribute->attisdropped && !isnull[i])
			mongo_append_datum(&nested, mongo_to_utf8(NameStr(attribute->attname)), -1,
							   values[i], false, attribute->atttypid, attribute->atttypmod);
	}
	mongo_append_document_end(target->document, &nested);
}

static void
write_domain(MONGO_WRITE_ARGS)
{
	Oid			base = getBaseTypeAndTypmod(typid, &typmod);

	mongo_append_datum(target->document, target->key, target->key_length, value, false, base,
					   typmod);
}

/* Writes a GeoJSON Point. */
static void
write_point(MONGO_WRITE_ARGS)
{
	const Point *point = DatumGetPointP(value);
	bson_t		geometry;
	bson_t		coordinates;

	MONGO_WRITE(target, document_begin, &geometry);
	mongo_append(&geometry, "type", mongo_utf8("Point"));
	mongo_append_array_begin(&geometry, "coordinates", &coordinates);
	mongo_append(&coordinates, "0", mongo_double(point->x));
	mongo_append(&coordinates, "1", mongo_double(point->y));
	mongo_append_array_end(&geometry, &coordinates);
	mongo_append_document_end(target->document, &geometry);
}

/* --------------------------- The table of types --------------------------- */

#define BIT(type)		MONGO_BSON_BIT(BSON_TYPE_##type)

#define NUMBERS			MONGO_BSON_NUMBERS
#define STRINGS			(BIT(UTF8) | BIT(SYMBOL))
#define TEXTS			(STRINGS | BIT(OID))

/* Values of option bson_type.  Few floats have an exact Decimal128, so it is missing. */
#define UTF8_OR_OID		(BIT(UTF8) | BIT(OID))
#define FLOATS			(BIT(INT32) | BIT(INT64) | BIT(DOUBLE))

#define KIND(kind)		MONGO_KIND_##kind

/*
 * $convert does not support Symbols; $substrBytes does, but not ObjectIds.
 */
#define NORMAL_TEXT \
	"{$convert: {input: @1, to: 'string', onError: {$substrBytes: [@1, 0, -1]}}}"

/* $convert does not support a signalling NaN of Decimal128, which $multiply makes quiet. */
#define NORMAL_DOUBLE \
	"{$convert: {input: @1, to: 'double', onError: {$toDouble: {$multiply: [@1, 1]}}}}"

/*
 * Some kinds are not keys: numerics that are equal may be read from Doubles that differ
 * after their 15 digits, a uuid from two subtypes of Binary, and a date from any time of
 * its day.  The normal form of numeric is normalize_numeric() in expression.c.
 */
const MongoKind mongo_kinds[] = {
	[KIND(OTHER)] = {.compared_as = KIND(OTHER)},
	[KIND(INTEGER)] = {.compared_as = KIND(INTEGER), .normal_form = "{$toLong: @1}", .compares_raw = true, .is_key = true, .type_decides_fit = true},
	[KIND(REAL)] = {.compared_as = KIND(DOUBLE)},
	[KIND(DOUBLE)] = {.compared_as = KIND(DOUBLE), .normal_form = NORMAL_DOUBLE, .has_nan = true, .compares_raw = true, .is_key = true},
	[KIND(NUMERIC)] = {.compared_as = KIND(NUMERIC), .normal_form = "{$toDecimal: @1}", .has_nan = true},
	[KIND(TEXT)] = {.compared_as = KIND(TEXT), .normal_form = NORMAL_TEXT, .is_key = true, .type_decides_fit = true},
	[KIND(BOOLEAN)] = {.compared_as = KIND(BOOLEAN), .normal_form = "", .is_key = true, .type_decides_fit = true},
	[KIND(UUID)] = {.compared_as = KIND(UUID)},
	[KIND(DATE)] = {.compared_as = KIND(TIMESTAMP), .normal_form = "{$dateTrunc: {date: @1, unit: 'day'}}", .type_decides_fit = true},
	[KIND(TIMESTAMP)] = {.compared_as = KIND(TIMESTAMP), .normal_form = "", .is_key = true, .type_decides_fit = true},
	[KIND(TIMESTAMPTZ)] = {.compared_as = KIND(TIMESTAMPTZ), .normal_form = "", .is_key = true, .type_decides_fit = true},
	[KIND(OBJECTID)] = {.compared_as = KIND(OBJECTID), .normal_form = "", .is_key = true, .type_decides_fit = true},
	[KIND(JSON)] = {.compared_as = KIND(TEXT)},
	[KIND(JSONB)] = {.compared_as = KIND(JSONB)},
};

/* A type that is stored as a String in its text form. */
#define TEXT_FORM(writer) \
	KIND(OTHER), STRINGS, .read = mongo_read_text_form, .write = (writer), \
	.prepare = mongo_prepare_text_form

#define NOT_STORED		KIND(OTHER), 0, .read = NULL

/*
 * One row per type, frequent types first.  A type that is stored in its text form has a row only if
 * errors of its input function can be caught, see mongo_call_softly() in decode_value.c.
 */
static const MongoType type_rows[] = {
	{INT4OID, "integer", KIND(INTEGER), NUMBERS, NUMBERS, .read = mongo_read_integer, .write = write_integer, .limit = PG_INT32_MAX, .is_kept = true},
	{TEXTOID, "text", KIND(TEXT), TEXTS, UTF8_OR_OID, .read = mongo_read_text, .write = write_text, .is_kept = true},
	{INT8OID, "bigint", KIND(INTEGER), NUMBERS, NUMBERS, .read = mongo_read_integer, .write = write_integer, .limit = PG_INT64_MAX, .is_kept = true},
	{FLOAT8OID, "double precision", KIND(DOUBLE), NUMBERS, FLOATS, .read = mongo_read_float8, .write = write_float, .is_kept = true},
	{NUMERICOID, "numeric", KIND(NUMERIC), NUMBERS, NUMBERS, .read = mongo_read_numeric, .write = write_numeric},
	{TIMESTAMPTZOID, "timestamp with time zone", KIND(TIMESTAMPTZ), BIT(DATE_TIME), BIT(DATE_TIME), .read = mongo_read_timestamp, .write = write_date},
	{NAMEOID, "name", KIND(TEXT), TEXTS, UTF8_OR_OID, .read = mongo_read_text, .write = write_name, .limit = NAMEDATALEN - 1, .is_kept = true},
	{VARCHAROID, "character varying", KIND(TEXT), TEXTS, UTF8_OR_OID, .read = mongo_read_text, .write = write_text, .is_kept = true},
	{BPCHAROID, "character", KIND(OTHER), TEXTS, UTF8_OR_OID, .read = mongo_read_text, .write = write_text, .is_kept = true},
	{BOOLOID, "boolean", KIND(BOOLEAN), BIT(BOOL), BIT(BOOL), .read = mongo_read_bool, .write = write_bool, .is_kept = true},
	{INT2OID, "smallint", KIND(INTEGER), NUMBERS, NUMBERS, .read = mongo_read_integer, .write = write_integer, .limit = PG_INT16_MAX, .is_kept = true},
	{FLOAT4OID, "real", KIND(REAL), NUMBERS, FLOATS, .read = mongo_read_float4, .write = write_float, .is_kept = true},
	{TIMESTAMPOID, "timestamp without time zone", KIND(TIMESTAMP), BIT(DATE_TIME), BIT(DATE_TIME), .read = mongo_read_timestamp, .write = write_date},
	{DATEOID, "date", KIND(DATE), BIT(DATE_TIME), BIT(DATE_TIME), .read = mongo_read_date, .write = write_date, .is_kept = true},
	{JSONBOID, "jsonb", KIND(JSONB), MONGO_BSON_ANY, .read = mongo_read_jsonb, .write = mongo_write_json},
	{JSONOID, "json", KIND(JSON), MONGO_BSON_ANY, .read = mongo_read_json, .write = mongo_write_json},
	{UUIDOID, "uuid", KIND(UUID), BIT(BINARY), BIT(BINARY), .read = mongo_read_uuid, .write = write_uuid, .is_kept = true},
	{BYTEAOID, "bytea", KIND(OTHER), BIT(BINARY) | BIT(OID), BIT(BINARY) | BIT(OID), .read = mongo_read_bytea, .write = write_bytea, .is_kept = true},

	{TIMEOID, "time without time zone", TEXT_FORM(write_text_form)},
	{TIMETZOID, "time with time zone", TEXT_FORM(write_text_form)},
	{INTERVALOID, "interval", TEXT_FORM(write_interval)},
	{INETOID, "inet", TEXT_FORM(write_text_form)},
	{CIDROID, "cidr", TEXT_FORM(write_text_form)},
	{MACADDROID, "macaddr", TEXT_FORM(write_text_form)},
	{MACADDR8OID, "macaddr8", TEXT_FORM(write_text_form)},
	{BITOID, "bit", TEXT_FORM(write_text_form)},
	{VARBITOID, "bit varying", TEXT_FORM(write_text_form)},
	{MONEYOID, "money", TEXT_FORM(write_text_form)},
	{POINTOID, "point", KIND(OTHER), STRINGS | BIT(DOCUMENT) | BIT(ARRAY), .read = mongo_read_point, .write = write_point, .prepare = mongo_prepare_text_form},

	/* stored like arrays, but with rules of their own */
	{INT2VECTOROID, "int2vector", NOT_STORED},
	{OIDVECTOROID, "oidvector", NOT_STORED},
	{XMLOID, "xml", NOT_STORED},
	{CHAROID, "\"char\"", NOT_STORED},
};

/* Types whose OID is not known at compile time. */
typedef enum TypeCategory
{
	CATEGORY_OBJECTID,
	CATEGORY_ARRAY,
	CATEGORY_COMPOSITE,
	CATEGORY_ENUM,
	CATEGORY_DOMAIN,
	CATEGORY_VECTOR,
	CATEGORY_OTHER
} TypeCategory;

static const MongoType category_rows[] = {
	[CATEGORY_OBJECTID] = {InvalidOid, "objectid", KIND(OBJECTID), BIT(OID), BIT(OID), .read = mongo_read_objectid, .write = write_objectid, .is_kept = true},
	[CATEGORY_ARRAY] = {InvalidOid, "arrays", KIND(OTHER), BIT(ARRAY), .read = mongo_read_array, .write = write_array, .prepare = mongo_prepare_array},
	[CATEGORY_COMPOSITE] = {InvalidOid, "composite types", KIND(OTHER), BIT(DOCUMENT), .read = mongo_read_composite, .write = write_composite, .prepare = mongo_prepare_composite},
	[CATEGORY_ENUM] = {InvalidOid, "enums", KIND(OTHER), STRINGS, .read = mongo_read_text_form, .write = write_text_form, .prepare = mongo_prepare_text_form},
	[CATEGORY_DOMAIN] = {InvalidOid, "domains", KIND(OTHER), 0, .read = mongo_read_domain, .write = write_domain, .prepare = mongo_prepare_domain},
	[CATEGORY_VECTOR] = {InvalidOid, "types with casts from and to real[]", KIND(OTHER), BIT(ARRAY), .read = mongo_read_vector, .write = write_vector, .prepare = mongo_prepare_vector},
	[CATEGORY_OTHER] = {InvalidOid, "other base types and ranges", TEXT_FORM(write_text_form)},
};

/* Returns the row of this type alone, or NULL. */
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

/* Returns the row of the category of a type in pg_type, or NULL. */
static const MongoType *
category_row(Oid typid)
{
	Oid			element;

	switch (get_typtype(typid))
	{
		case TYPTYPE_BASE:
			element = get_element_type(typid);
			if (!OidIsValid(element))
				return OidIsValid(mongo_cast_function(typid, FLOAT4ARRAYOID)) &&
					OidIsValid(mongo_cast_function(FLOAT4ARRAYOID, typid)) ?
					&category_rows[CATEGORY_VECTOR] : &category_rows[CATEGORY_OTHER];
			return mongo_type_lookup(element) != NULL ? &category_rows[CATEGORY_ARRAY] : NULL;
		case TYPTYPE_RANGE:
		case TYPTYPE_MULTIRANGE:
			return &category_rows[CATEGORY_OTHER];
		case TYPTYPE_COMPOSITE:
			return &category_rows[CATEGORY_COMPOSITE];
		case TYPTYPE_ENUM:
			return &category_rows[CATEGORY_ENUM];
		case TYPTYPE_DOMAIN:
			return mongo_type_lookup(getBaseType(typid)) != NULL ?
				&category_rows[CATEGORY_DOMAIN] : NULL;
		default:
			return NULL;		/* pseudo-types, types that were dropped */
	}
}

/*
 * mongo_type_facts
 *		Returns what MongoDB can compute with a type: the type's own row, or else one of kind
 *		MONGO_KIND_OTHER, also for domains.  Never NULL.  Needs no catalog look-up except for the
 *		type objectid.
 */
const MongoType *
mongo_type_facts(Oid typid)
{
	const MongoType *row = own_row(typid);

	return row != NULL ? row : &category_rows[CATEGORY_OTHER];
}

/*
 * mongo_types_compare
 *		Tells whether MongoDB can compare values of these types.  False for domains.
 */
bool
mongo_types_compare(Oid left, Oid right)
{
	MongoTypeKind class = mongo_kind_of_type(left)->compared_as;

	return class != MONGO_KIND_OTHER && class == mongo_kind_of_type(right)->compared_as;
}

/*
 * mongo_type_lookup
 *		Returns the row of a type, or else of its category, which takes catalog look-ups; NULL if
 *		the type can be neither read nor written.  An attribute of a composite type may still raise
 *		0A000 later.
 */
const MongoType *
mongo_type_lookup(Oid typid)
{
	const MongoType *row = own_row(typid);

	if (row == NULL)
		return category_row(typid);
	return row->read != NULL ? row : NULL;
}

/* ---------------- The names of BSON's types, one row each ----------------- */

static const struct
{
	bson_type_t type;
	const char *name;
	const char *alias;			/* for $type */
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

/*
 * mongo_bson_type_name
 *		Returns the specification's name, such as "Int32"; a static string.
 */
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

/*
 * mongo_bson_type_aliases
 *		Returns the names of a set's types for $type, such as "objectId"; static strings.
 */
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

/* ----------------------- The column option bson_type ---------------------- */

/* Returns the names of types as the option spells them. */
static char *
names_of_types(uint32 types)
{
	StringInfoData names;

	initStringInfo(&names);
	foreach_ptr(const char, alias, mongo_bson_type_aliases(types))
		appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", alias);
	return names.data;
}

/*
 * mongo_check_declared_type
 *		Raises 42804 if a column of this type, or of a domain over it, cannot have this BSON type as
 *		option bson_type.
 */
void
mongo_check_declared_type(const char *column_name, Oid typid, bson_type_t declared)
{
	uint32		types;

	if (declared == BSON_TYPE_EOD)
		return;
	types = mongo_type_facts(mongo_base_type(typid))->declares;
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

/*
 * mongo_append_objectid
 *		Appends a string or bytea as an ObjectId; returns false if it does not represent one: 24
 *		digits in lower case, or twelve bytes.
 */
bool
mongo_append_objectid(bson_t *document, const char *key, Datum value, Oid typid)
{
	MongoWriteTarget target = {document, key, -1};
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
	MONGO_WRITE(&target, oid, &oid);
	return true;
}

/*
 * Appends a number as the declared BSON type; returns false if it does not fit.  A numeric may also
 * become a Double that only reads as the same numeric.
 */
static bool
append_declared_number(const MongoWriteTarget *target, bson_type_t type, Datum value, Oid typid)
{
	MongoReadContext context = {0};
	bson_t		written;
	bson_iter_t iter;
	int64		integer;
	Datum		number;

	if (type == BSON_TYPE_DECIMAL128 && typid != NUMERICOID)
	{
		value = NumericGetDatum(int64_to_numeric(mongo_integer_of_datum(typid, value)));
		typid = NUMERICOID;
	}
	/* a number fits into bson_t itself, so no memory is to be freed */
	bson_init(&written);
	mongo_append_datum(&written, "", 0, value, false, typid, -1);
	if (!bson_iter_init(&iter, &written) || !bson_iter_next(&iter))
		return false;
	switch (type)
	{
		case BSON_TYPE_DOUBLE:
			if (typid == NUMERICOID)
			{
				number = DirectFunctionCall1(numeric_float8_no_overflow, value);
				if (!DatumGetBool(DirectFunctionCall2(numeric_eq, value,
													  DirectFunctionCall1(float8_numeric, number))))
					return false;
			}
			else if (!mongo_read_float8(NULL, &context, &iter, &number))
				return false;
			MONGO_WRITE(target, double, DatumGetFloat8(number));
			return true;
		case BSON_TYPE_DECIMAL128:
			MONGO_WRITE(target, iter, &iter);
			return true;
		default:
			if (!mongo_integer_of_value(&iter, &integer) ||
				(type == BSON_TYPE_INT32 && integer != (int32) integer))
				return false;
			if (type == BSON_TYPE_INT32)
				MONGO_WRITE(target, int32, (int32) integer);
			else
				MONGO_WRITE(target, int64, integer);
			return true;
	}
}

/* Hints for BSON types that cannot represent all values of a type that may declare them. */
static const struct
{
	bson_type_t type;
	const char *hint;
}			declared_hints[] =
{
	{BSON_TYPE_OID, "An ObjectId is 24 hexadecimal digits, in lower case, or 12 bytes of a bytea."},
	{BSON_TYPE_INT32, "An Int32 is an integer from -2147483648 to 2147483647."},
	{BSON_TYPE_INT64, "An Int64 is an integer from -9223372036854775808 to 9223372036854775807."},
	{BSON_TYPE_DOUBLE, "A Double holds integers up to 2^53 and numerics of up to 15 digits."},
	{BSON_TYPE_DECIMAL128, "A Decimal128 holds 34 significant digits and exponents from -6176 to 6111."},
};

/*
 * mongo_append_declared
 *		Appends a value that is not NULL as the BSON type that option bson_type names, such that the
 *		column reads the same value back.  Raises 22P02 for a text that is not an ObjectId, 22003
 *		for a number that does not fit the BSON type, and what mongo_append_datum() raises.
 */
void
mongo_append_declared(bson_t *document, const char *key, Datum value, Oid typid,
					  int32 typmod, bson_type_t declared)
{
	MongoWriteTarget target = {document, key, -1};
	Oid			base = mongo_base_type(typid);

	for (size_t i = 0; i < lengthof(declared_hints); i++)
	{
		if (declared_hints[i].type != declared || mongo_type_kind(base) == MONGO_KIND_OBJECTID)
			continue;
		if (declared == BSON_TYPE_OID ? !mongo_append_objectid(document, key, value, base) :
			!append_declared_number(&target, declared, value, base))
			ereport(ERROR,
					(errcode(declared == BSON_TYPE_OID ? ERRCODE_INVALID_TEXT_REPRESENTATION :
							 ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("value cannot be written as BSON type %s, which option bson_type asks for",
							mongo_bson_type_name(declared)),
					 errhint("%s", declared_hints[i].hint)));
		return;
	}
	mongo_append_datum(document, key, -1, value, false, typid, typmod);
}

/* ----------------- Readers, made from the table of types ------------------ */

/*
 * mongo_reader_create
 *		Returns a reader for a type, with all that it needs, in the current memory context.  Raises
 *		0A000 for a type that cannot be read, or that has an element or an attribute that cannot be
 *		read.
 */
MongoReader *
mongo_reader_create(Oid typid, int32 typmod)
{
	const MongoType *type = mongo_type_lookup(typid);
	MongoReader *reader;

	check_stack_depth();

	if (type == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be read from MongoDB",
						format_type_be(typid))));

	reader = palloc0(sizeof(MongoReader));
	reader->read = type->read;
	reader->accepts = type->accepts;
	reader->typid = typid;
	reader->typmod = typmod;
	reader->type = type;
	if (type->prepare)
		type->prepare(reader);
	return reader;
}
