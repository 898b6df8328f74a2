/*-------------------------------------------------------------------------
 *
 * finalize_agg.c
 *		Averages, which PostgreSQL divides of what MongoDB has added up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "catalog/pg_type_d.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

struct MongoFinisher
{
	List	   *columns;		/* MongoScanColumn * */
	int			natts;
	Datum	   *values;			/* of the tuple and, behind it, of the counts */
	bool	   *isnull;
};

MongoFinisher *
mongo_finisher_create(const MongoScanPlan *plan, int natts)
{
	MongoFinisher *finisher;
	int			size = natts;
	ListCell   *cell;

	foreach(cell, plan->columns)
		size = Max(size, ((MongoScanColumn *) lfirst(cell))->count + 1);
	if (size == natts)
		return NULL;

	finisher = palloc(sizeof(MongoFinisher));
	finisher->columns = plan->columns;
	finisher->natts = natts;
	finisher->values = palloc0(sizeof(Datum) * size);
	finisher->isnull = palloc(sizeof(bool) * size);
	memset(finisher->isnull, true, size);
	return finisher;
}

void
mongo_finish_row(MongoFinisher *finisher, MongoRowDecoder *decoder, const uint8_t *data,
				 uint32 length, Datum *values, bool *isnull)
{
	ListCell   *cell;

	mongo_row_decode(decoder, data, length, finisher->values, finisher->isnull);
	memcpy(values, finisher->values, sizeof(Datum) * finisher->natts);
	memcpy(isnull, finisher->isnull, sizeof(bool) * finisher->natts);

	foreach(cell, finisher->columns)
	{
		const MongoScanColumn *column = lfirst(cell);
		Datum		sum;
		int64		count;

		if (column->count == 0)
			continue;
		sum = finisher->values[column->index];
		count = DatumGetInt64(finisher->values[column->count]);
		/* as numeric_avg() and int8_avg() do */
		isnull[column->index] = finisher->isnull[column->count] || count == 0;
		if (isnull[column->index])
			continue;
		if (column->type == INT8OID)
			sum = NumericGetDatum(int64_to_numeric(DatumGetInt64(sum)));
		values[column->index] = DirectFunctionCall2(numeric_div, sum,
													NumericGetDatum(int64_to_numeric(count)));
	}
}
