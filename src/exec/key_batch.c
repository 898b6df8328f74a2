/*-------------------------------------------------------------------------
 *
 * key_batch.c
 *		The keys of a batch of outer rows: their hash values, and what is asked for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "key_batch.h"

#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* Bytes of a key that no document can have, as these have 16 MB at most. */
#define IMPOSSIBLE_KEY		(16 * 1024 * 1024)

#define FEWEST_BUCKETS		1024	/* a power of two */

/* A value that is asked for. */
typedef struct KeyValue
{
	Datum		value;
	uint32		hash;
	struct KeyValue *next;		/* in the same bucket */
} KeyValue;

typedef struct KeyColumn
{
	const MongoBatchedColumn *plan;
	ExprState  *outer;
	ExprState  *inner;
	FmgrInfo	outer_hash;
	FmgrInfo	inner_hash;
	int16		length;
	bool		by_value;
	char		align;

	Datum		value;			/* in hand, of an outer row */
	uint32		hash;
	KeyValue  **buckets;		/* of a batch */
	Datum	   *values;
	int			nvalues;
} KeyColumn;

struct MongoKeyBatch
{
	KeyColumn  *columns;		/* those that are asked for come first */
	int			ncolumns;
	int			nasked;
	TupleDesc	record;			/* of the arrays */
	MemoryContext context;		/* of the batch */
	uint32		mask;
	Size		size;
	Size		size_in_hand;
};

/* describe_record: an array for each key that is asked for. */
static TupleDesc
describe_record(const MongoKeyBatch *batch)
{
	TupleDesc	record = CreateTemplateTupleDesc(batch->nasked);

	for (int i = 0; i < batch->nasked; i++)
		TupleDescInitEntry(record, i + 1, NULL, get_array_type(batch->columns[i].plan->type), -1, 0);
	return BlessTupleDesc(record);
}

MongoKeyBatch *
mongo_key_batch_create(const MongoBatchedJoin *join, List *outer, List *inner,
					   PlanState *parent)
{
	MongoKeyBatch *batch = palloc0(sizeof(MongoKeyBatch));

	batch->ncolumns = list_length(join->columns);
	batch->columns = palloc0(sizeof(KeyColumn) * batch->ncolumns);
	for (int i = 0; i < batch->ncolumns; i++)
	{
		KeyColumn  *column = &batch->columns[i];

		column->plan = list_nth(join->columns, i);
		column->outer = ExecInitExpr(list_nth(outer, i), parent);
		column->inner = ExecInitExpr(list_nth(inner, i), parent);
		fmgr_info(column->plan->outer_hash, &column->outer_hash);
		fmgr_info(column->plan->inner_hash, &column->inner_hash);
		get_typlenbyvalalign(column->plan->type, &column->length, &column->by_value,
							 &column->align);
		batch->nasked += column->plan->asked;
	}
	batch->record = describe_record(batch);
	return batch;
}

void
mongo_key_batch_begin(MongoKeyBatch *batch, MemoryContext context, int rows)
{
	uint32		nbuckets = FEWEST_BUCKETS;

	while (nbuckets < (uint32) rows)
		nbuckets *= 2;
	batch->mask = nbuckets - 1;
	batch->context = context;
	batch->size = 0;
	for (int i = 0; i < batch->nasked; i++)
	{
		KeyColumn  *column = &batch->columns[i];

		column->buckets = MemoryContextAllocZero(context, sizeof(KeyValue *) * nbuckets);
		column->values = MemoryContextAlloc(context, sizeof(Datum) * rows);
		column->nvalues = 0;
	}
}

/* evaluate_outer: the key of an outer row, whole; false for one that meets nothing. */
static bool
evaluate_outer(MongoKeyBatch *batch, KeyColumn *column, ExprContext *econtext)
{
	bool		isnull;
	Size		size;

	column->value = ExecEvalExpr(column->outer, econtext, &isnull);
	if (isnull)
		return false;
	if (column->length == -1)
		column->value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(column->value));
	size = datumGetSize(column->value, column->by_value, column->length);
	if (size >= IMPOSSIBLE_KEY)
		return false;
	if (column->plan->asked)
		batch->size_in_hand += size;
	column->hash = DatumGetUInt32(FunctionCall1Coll(&column->outer_hash,
													column->plan->collation, column->value));
	return true;
}

static bool
evaluate_inner(KeyColumn *column, ExprContext *econtext)
{
	bool		isnull;
	Datum		value = ExecEvalExpr(column->inner, econtext, &isnull);

	if (isnull)
		return false;
	column->hash = DatumGetUInt32(FunctionCall1Coll(&column->inner_hash,
													column->plan->collation, value));
	return true;
}

bool
mongo_key_batch_evaluate(MongoKeyBatch *batch, ExprContext *econtext, bool is_outer,
						 uint32 *hash)
{
	/* hash functions may detoast, too */
	MemoryContext old_context = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	bool		meets = true;

	*hash = 0;
	if (is_outer)
		batch->size_in_hand = 0;
	for (int i = 0; i < batch->ncolumns && meets; i++)
	{
		KeyColumn  *column = &batch->columns[i];

		meets = is_outer ? evaluate_outer(batch, column, econtext) :
			evaluate_inner(column, econtext);
		if (meets)
			*hash = hash_combine(*hash, column->hash);
	}
	MemoryContextSwitchTo(old_context);
	return meets;
}

Size
mongo_key_batch_size_in_hand(const MongoKeyBatch *batch)
{
	return batch->size_in_hand;
}

Size
mongo_key_batch_size(const MongoKeyBatch *batch)
{
	return batch->size;
}

/* ask_for_value: into the list, unless it is there. */
static void
ask_for_value(MongoKeyBatch *batch, KeyColumn *column)
{
	KeyValue  **bucket = &column->buckets[column->hash & batch->mask];
	KeyValue   *value;

	for (value = *bucket; value != NULL; value = value->next)
	{
		if (value->hash == column->hash &&
			datum_image_eq(value->value, column->value, column->by_value, column->length))
			return;
	}
	value = palloc(sizeof(KeyValue));
	value->value = datumCopy(column->value, column->by_value, column->length);
	value->hash = column->hash;
	value->next = *bucket;
	*bucket = value;
	column->values[column->nvalues++] = value->value;
	batch->size += datumGetSize(value->value, column->by_value, column->length);
}

void
mongo_key_batch_add(MongoKeyBatch *batch)
{
	MemoryContext old_context = MemoryContextSwitchTo(batch->context);

	for (int i = 0; i < batch->nasked; i++)
		ask_for_value(batch, &batch->columns[i]);
	MemoryContextSwitchTo(old_context);
}

Datum
mongo_key_batch_record(MongoKeyBatch *batch)
{
	MemoryContext old_context = MemoryContextSwitchTo(batch->context);
	Datum	   *arrays = palloc(sizeof(Datum) * batch->nasked);
	bool	   *nulls = palloc0(sizeof(bool) * batch->nasked);
	Datum		record;

	for (int i = 0; i < batch->nasked; i++)
	{
		const KeyColumn *column = &batch->columns[i];

		arrays[i] = PointerGetDatum(construct_array(column->values, column->nvalues,
													column->plan->type, column->length,
													column->by_value, column->align));
	}
	record = HeapTupleGetDatum(heap_form_tuple(batch->record, arrays, nulls));
	MemoryContextSwitchTo(old_context);
	return record;
}
