/*-------------------------------------------------------------------------
 *
 * encode.c
 *		From Datums to BSON values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "encode.h"

#include "access/htup_details.h"
#include "common/int.h"
#include "encoding.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "objectid.h"
#include "types.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

#define USECS_PER_MILLI		INT64CONST(1000)

/* Digits of an array position as a key. */
#define POSITION_TEXT_SIZE	16

void
mongo_write_check(bool appended)
{
	if (!appended)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("document is too large for BSON")));
}

/* column_text: " for column \"x\"", or nothing. */
static const char *
column_text(const MongoWriteTarget *target)
{
	return target->column_name ?
		psprintf(" for column \"%s\"", target->column_name) : "";
}

/*
 * Scalars
 */

void
mongo_write_bool(MONGO_WRITE_ARGS)
{
	mongo_write_check(bson_append_bool(target->document, target->key,
									   target->key_length, DatumGetBool(value)));
}

void
mongo_write_int2(MONGO_WRITE_ARGS)
{
	mongo_write_check(bson_append_int32(target->document, target->key,
										target->key_length, DatumGetInt16(value)));
}

void
mongo_write_int4(MONGO_WRITE_ARGS)
{
	mongo_write_check(bson_append_int32(target->document, target->key,
										target->key_length, DatumGetInt32(value)));
}

void
mongo_write_int8(MONGO_WRITE_ARGS)
{
	mongo_write_check(bson_append_int64(target->document, target->key,
										target->key_length, DatumGetInt64(value)));
}

void
mongo_write_float4(MONGO_WRITE_ARGS)
{
	mongo_write_check(bson_append_double(target->document, target->key,
										 target->key_length, DatumGetFloat4(value)));
}

void
mongo_write_float8(MONGO_WRITE_ARGS)
{
	mongo_write_check(bson_append_double(target->document, target->key,
										 target->key_length, DatumGetFloat8(value)));
}

void
mongo_write_numeric(MONGO_WRITE_ARGS)
{
	bson_decimal128_t decimal;

	if (!mongo_numeric_to_decimal128(DatumGetNumeric(value), &decimal))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("numeric value%s does not fit into a Decimal128",
						column_text(target)),
				 errdetail("Decimal128 holds 34 significant digits and exponents from -6176 to 6111.")));
	mongo_write_check(bson_append_decimal128(target->document, target->key,
											 target->key_length, &decimal));
}

/* write_string: bytes in the database's encoding as a String. */
static void
write_string(const MongoWriteTarget *target, const char *text, int length)
{
	const char *utf8 = pg_server_to_any(text, length, PG_UTF8);

	if (utf8 != text)
		length = strlen(utf8);
	mongo_write_check(bson_append_utf8(target->document, target->key,
									   target->key_length, utf8, length));
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

	mongo_write_check(bson_append_binary(target->document, target->key,
										 target->key_length, BSON_SUBTYPE_BINARY,
										 (const uint8_t *) VARDATA_ANY(bytes),
										 VARSIZE_ANY_EXHDR(bytes)));
}

void
mongo_write_uuid(MONGO_WRITE_ARGS)
{
	mongo_write_check(bson_append_binary(target->document, target->key,
										 target->key_length, BSON_SUBTYPE_UUID,
										 DatumGetUUIDP(value)->data, UUID_LEN));
}

void
mongo_write_objectid(MONGO_WRITE_ARGS)
{
	bson_oid_t	oid;

	/* the Datum has no alignment */
	memcpy(oid.bytes, DatumGetPointer(value), MONGO_OBJECTID_SIZE);
	mongo_write_check(bson_append_oid(target->document, target->key,
									  target->key_length, &oid));
}

int64
mongo_timestamp_to_millis(Timestamp value, bool *exact)
{
	int64		millis = value / USECS_PER_MILLI;
	int64		rest = value % USECS_PER_MILLI;

	if (rest < 0)
		millis--;
	if (exact != NULL)
		*exact = rest == 0;
	return millis + MONGO_EPOCH_DAYS * MONGO_MILLIS_PER_DAY;
}

int64
mongo_date_to_millis(DateADT value)
{
	return (value + MONGO_EPOCH_DAYS) * MONGO_MILLIS_PER_DAY;
}

/* report_infinite_date: infinity and -infinity have no BSON form. */
static void
report_infinite_date(const MongoWriteTarget *target)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
			 errmsg("an infinite date%s cannot be written to MongoDB",
					column_text(target))));
}

void
mongo_write_timestamp(MONGO_WRITE_ARGS)
{
	Timestamp	timestamp = DatumGetTimestamp(value);

	if (TIMESTAMP_NOT_FINITE(timestamp))
		report_infinite_date(target);
	mongo_write_check(bson_append_date_time(target->document, target->key,
											target->key_length,
											mongo_timestamp_to_millis(timestamp, NULL)));
}

void
mongo_write_date(MONGO_WRITE_ARGS)
{
	DateADT		date = DatumGetDateADT(value);

	if (DATE_NOT_FINITE(date))
		report_infinite_date(target);
	mongo_write_check(bson_append_date_time(target->document, target->key,
											target->key_length,
											mongo_date_to_millis(date)));
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

/*
 * Nested values
 */

/* The array being written, and where in it we are. */
typedef struct ArrayWriting
{
	Oid			element;
	int32		typmod;
	int			ndims;
	const int  *lengths;
	const Datum *values;
	const bool *isnull;
	int			next;
	const char *column_name;
} ArrayWriting;

static void
write_dimension(ArrayWriting *writing, int dimension, bson_t *array)
{
	MongoWriteTarget target = {.document = array};
	char		buffer[POSITION_TEXT_SIZE];

	target.column_name = writing->column_name;
	for (int i = 0; i < writing->lengths[dimension]; i++)
	{
		CHECK_FOR_INTERRUPTS();
		target.key_length = (int) bson_uint32_to_string(i, &target.key, buffer,
														sizeof(buffer));
		if (dimension < writing->ndims - 1)
		{
			bson_t		nested;

			mongo_write_check(bson_append_array_begin(array, target.key,
													  target.key_length, &nested));
			write_dimension(writing, dimension + 1, &nested);
			mongo_write_check(bson_append_array_end(array, &nested));
		}
		else
		{
			mongo_write_value(&target, writing->values[writing->next],
							  writing->isnull[writing->next],
							  writing->element, writing->typmod);
			writing->next++;
		}
	}
}

void
mongo_write_array(MONGO_WRITE_ARGS)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	ArrayWriting writing;
	Datum	   *values;
	bool	   *isnull;
	int			count;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	bson_t		appended;

	get_typlenbyvalalign(ARR_ELEMTYPE(array), &typlen, &typbyval, &typalign);
	deconstruct_array(array, ARR_ELEMTYPE(array), typlen, typbyval, typalign,
					  &values, &isnull, &count);

	writing.element = ARR_ELEMTYPE(array);
	writing.typmod = typmod;
	writing.ndims = ARR_NDIM(array);
	writing.lengths = ARR_DIMS(array);
	writing.values = values;
	writing.isnull = isnull;
	writing.next = 0;
	writing.column_name = target->column_name;

	mongo_write_check(bson_append_array_begin(target->document, target->key,
											  target->key_length, &appended));
	if (writing.ndims > 0)
		write_dimension(&writing, 0, &appended);
	mongo_write_check(bson_append_array_end(target->document, &appended));
}

/* A NULL attribute is left out, as reading takes a missing field for NULL. */
void
mongo_write_composite(MONGO_WRITE_ARGS)
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

	mongo_write_check(bson_append_document_begin(target->document, target->key,
												 target->key_length, &nested));
	for (int i = 0; i < tupdesc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tupdesc, i);
		MongoWriteTarget field = {&nested, NULL, -1, target->column_name};

		if (attribute->attisdropped || isnull[i])
			continue;
		field.key = mongo_to_utf8(NameStr(attribute->attname));
		mongo_write_value(&field, values[i], false, attribute->atttypid,
						  attribute->atttypmod);
	}
	mongo_write_check(bson_append_document_end(target->document, &nested));
}

void
mongo_write_domain(MONGO_WRITE_ARGS)
{
	Oid			base = getBaseTypeAndTypmod(typid, &typmod);

	mongo_write_value(target, value, false, base, typmod);
}

void
mongo_write_value(const MongoWriteTarget *target, Datum value, bool isnull,
				  Oid typid, int32 typmod)
{
	const MongoType *type;

	check_stack_depth();

	if (isnull)
	{
		mongo_write_check(bson_append_null(target->document, target->key,
										   target->key_length));
		return;
	}
	type = mongo_type_lookup(typid);
	if (type == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be written to MongoDB",
						format_type_be(typid))));
	type->write(target, value, typid, typmod);
}

void
mongo_append_datum(bson_t *document, const char *key, int key_length,
				   Datum value, bool isnull, Oid typid, int32 typmod,
				   const char *column_name)
{
	MongoWriteTarget target = {document, key, key_length, column_name};

	mongo_write_value(&target, value, isnull, typid, typmod);
}
