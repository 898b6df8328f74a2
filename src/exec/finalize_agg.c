/*-------------------------------------------------------------------------
 *
 * finalize_agg.c
 *		Computes averages from the sums and counts that MongoDB returns.
 *
 * MongoDB's own average would have another scale than PostgreSQL's division.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "utils/fmgrprotos.h"

struct MongoFinalizer
{
	List	   *columns;		/* MongoColumn * */
	int			natts;
	Datum	   *values;			/* of the tuple, then of the counts */
	bool	   *isnull;
};

/*
 * mongo_finalizer_create
 *		Returns a finalizer for a plan whose tuple has 'natts' attributes, in the current memory
 *		context; NULL if the plan has no average.
 */
MongoFinalizer *
mongo_finalizer_create(const MongoScanPlan *plan, int natts)
{
	MongoFinalizer *finalizer;
	int			size = natts;

	foreach_ptr(const MongoColumn, column, plan->columns)
		size = Max(size, column->count + 1);
	if (size == natts)
		return NULL;

	finalizer = palloc(sizeof(MongoFinalizer));
	finalizer->columns = plan->columns;
	finalizer->natts = natts;
	finalizer->values = palloc0(sizeof(Datum) * size);
	finalizer->isnull = palloc(sizeof(bool) * size);
	memset(finalizer->isnull, true, size);
	return finalizer;
}

/*
 * mongo_finalize_row
 *		Decodes a document like mongo_row_decode(), and replaces sums by averages.
 */
void
mongo_finalize_row(MongoFinalizer *finalizer, MongoRowDecoder *decoder, const uint8_t *data,
				   uint32 length, Datum *values, bool *isnull)
{
	mongo_row_decode(decoder, data, length, finalizer->values, finalizer->isnull);
	memcpy(values, finalizer->values, sizeof(Datum) * finalizer->natts);
	memcpy(isnull, finalizer->isnull, sizeof(bool) * finalizer->natts);

	foreach_ptr(const MongoColumn, column, finalizer->columns)
	{
		Datum		sum;
		int64		count;

		if (column->count == 0)
			continue;
		sum = finalizer->values[column->index];
		count = finalizer->isnull[column->count] ? 0 : DatumGetInt64(finalizer->values[column->count]);
		/* as numeric_avg() and int8_avg() do */
		isnull[column->index] = count == 0;
		if (isnull[column->index])
			continue;
		if (column->typid == INT8OID)
			sum = NumericGetDatum(int64_to_numeric(DatumGetInt64(sum)));
		values[column->index] = DirectFunctionCall2(numeric_div, sum,
													NumericGetDatum(int64_to_numeric(count)));
	}
}
