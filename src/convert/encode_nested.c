/*-------------------------------------------------------------------------
 *
 * encode_nested.c
 *		Arrays, composite types and domains as BSON values.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "encode_nested.h"

#include "access/htup_details.h"
#include "encode_scalar.h"
#include "encoding.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

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
