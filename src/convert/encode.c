/*-------------------------------------------------------------------------
 *
 * encode.c
 *		Writing single values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/datetime.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

/* ----------- From Datums to BSON values, by the table of types ------------ */

/*
 * mongo_write_value
 *		Append one value of any writable type; see mongo_append_datum().
 */
static void
mongo_write_value(const MongoWriteTarget *target, Datum value, bool isnull,
				  Oid typid, int32 typmod)
{
	const MongoType *type;

	check_stack_depth();

	if (isnull)
	{
		MONGO_WRITE(target, null);
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
				   Datum value, bool isnull, Oid typid, int32 typmod)
{
	MongoWriteTarget target = {document, key, key_length};

	mongo_write_value(&target, value, isnull, typid, typmod);
}

/* ------------------------- Scalars as BSON values ------------------------- */

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
mongo_write_integer(MONGO_WRITE_ARGS)
{
	int64		integer = mongo_integer_of_datum(typid, value);

	if (typid == INT8OID)
		MONGO_WRITE(target, int64, integer);
	else
		MONGO_WRITE(target, int32, (int32) integer);
}

void
mongo_write_float(MONGO_WRITE_ARGS)
{
	MONGO_WRITE(target, double, typid == FLOAT4OID ? DatumGetFloat4(value) : DatumGetFloat8(value));
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

/* ----------- Arrays, composite types and domains as BSON values ----------- */

/* Digits of an array position as a key. */
#define POSITION_TEXT_SIZE	16

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
} ArrayWriting;

/* write_dimension: the elements, or the arrays of the next dimension. */
static void
write_dimension(ArrayWriting *writing, int dimension, bson_t *array)
{
	MongoWriteTarget target = {.document = array};
	char		buffer[POSITION_TEXT_SIZE];

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

void
mongo_write_array(MONGO_WRITE_ARGS)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	ArrayWriting writing;
	Datum	   *values;
	bool	   *isnull;
	bson_t		appended;

	(void) mongo_array_elements(value, &values, &isnull);
	writing.element = ARR_ELEMTYPE(array);
	writing.typmod = typmod;
	writing.ndims = ARR_NDIM(array);
	writing.lengths = ARR_DIMS(array);
	writing.values = values;
	writing.isnull = isnull;
	writing.next = 0;

	MONGO_WRITE(target, array_begin, &appended);
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

	MONGO_WRITE(target, document_begin, &nested);
	for (int i = 0; i < tupdesc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tupdesc, i);
		MongoWriteTarget field = {&nested, NULL, -1};

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

/* ----- MongoDB's strings, which are UTF-8, in the database's encoding ----- */

/*
 * encoding_holds
 *		Has the database's encoding all of these characters?
 *
 * Tries the conversion and throws the result away: there is no cheaper way
 * that does not raise, and databases that are not UTF-8 are few.
 */
static bool
encoding_holds(const char *text, uint32 length)
{
	int			encoding = GetDatabaseEncoding();
	int			size = length * MAX_CONVERSION_GROWTH + 1;
	unsigned char *converted;
	Oid			function;
	int			done;

	if (encoding == PG_UTF8 || encoding == PG_SQL_ASCII || length == 0)
		return true;

	function = FindDefaultConversionProc(PG_UTF8, encoding);
	if (!OidIsValid(function))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("default conversion function for encoding \"%s\" to \"%s\" does not exist",
						"UTF8", GetDatabaseEncodingName())));
	converted = palloc(size);
	done = pg_do_encoding_conversion_buf(function, PG_UTF8, encoding,
										 (unsigned char *) unconstify(char *, text),
										 length, converted, size, true);
	pfree(converted);
	return (uint32) done == length;
}

bool
mongo_text_is_valid(const char *text, uint32 length)
{
	return mongo_is_plain_text(text, length) ||
		(pg_verify_mbstr(PG_UTF8, text, length, true) && encoding_holds(text, length));
}

const char *
mongo_text_remark(const char *text, uint32 length)
{
	if (memchr(text, '\0', length) != NULL)
		return "It contains U+0000, which text cannot hold.";
	if (!pg_verify_mbstr(PG_UTF8, text, length, true))
		return "It is not valid UTF-8.";
	return "It contains a character that the database's encoding does not have.";
}

const char *
mongo_text_to_server(const char *text, uint32 *length)
{
	const char *converted;

	if (GetDatabaseEncoding() == PG_UTF8)
		return text;
	converted = pg_any_to_server(text, *length, PG_UTF8);
	if (converted != text)
		*length = strlen(converted);
	return converted;
}

char *
mongo_cut_text(const char *text, int limit)
{
	int			length = strlen(text);

	return length <= limit ? pstrdup(text) :
		psprintf("%.*s...", pg_mbcliplen(text, length, limit), text);
}

/* --------------- Going through documents that a server sent --------------- */

void
mongo_report_bad_bson(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROTOCOL_VIOLATION),
			 errmsg("MongoDB sent a document that is not valid BSON")));
}

/*
 * libbson ends an iteration in one way for the end of a document and for
 * bytes it cannot make out; only where it stopped tells them apart.
 */
void
mongo_iter_check_end(const bson_iter_t *iter, uint32 length)
{
	if (iter->err_off != 0 || iter->off != length - 1)
		mongo_report_bad_bson();
}

uint32
mongo_iter_descend(const bson_iter_t *iter, bson_iter_t *child)
{
	const uint8_t *data;
	uint32_t	length;

	if (bson_iter_type(iter) == BSON_TYPE_ARRAY)
		bson_iter_array(iter, &length, &data);
	else
		bson_iter_document(iter, &length, &data);

	if (!bson_iter_init_from_data(child, data, length))
		mongo_report_bad_bson();
	return length;
}
