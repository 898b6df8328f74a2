/*-------------------------------------------------------------------------
 *
 * finalize_agg.c
 *		Aggregates that PostgreSQL finishes of what MongoDB has added up.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "libpq/pqformat.h"
#include "nodes/execnodes.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

struct MongoFinisher
{
	List	   *finishes;		/* MongoScanFinish * */
	int			natts;
	Datum	   *values;			/* of the tuple and, behind it, of the parts */
	bool	   *isnull;
	WindowAggState *context;	/* in which aggregates' functions think they
								 * are */
};

/* PostgreSQL's final functions over the state of numeric's variance. */
static const PGFunction final_functions[] = {
	[MONGO_FINISH_VAR_POP] = numeric_var_pop,
	[MONGO_FINISH_VAR_SAMP] = numeric_var_samp,
	[MONGO_FINISH_STDDEV_POP] = numeric_stddev_pop,
	[MONGO_FINISH_STDDEV_SAMP] = numeric_stddev_samp,
};

MongoFinisher *
mongo_finisher_create(const MongoScanPlan *plan, int natts)
{
	MongoFinisher *finisher;
	int			size = natts;
	ListCell   *cell;

	if (plan->finishes == NIL)
		return NULL;
	foreach(cell, plan->columns)
		size = Max(size, ((MongoScanColumn *) lfirst(cell))->index + 1);

	finisher = palloc(sizeof(MongoFinisher));
	finisher->finishes = plan->finishes;
	finisher->natts = natts;
	finisher->values = palloc0(sizeof(Datum) * size);
	finisher->isnull = palloc(sizeof(bool) * size);
	memset(finisher->isnull, true, size);
	finisher->context = makeNode(WindowAggState);
	return finisher;
}

/*
 * append_serialized_number: a numeric as numeric_serialize() writes it, which is what
 * numeric_send() does with fields of four bytes before the digits.
 */
static void
append_serialized_number(StringInfo state, Datum number)
{
	bytea	   *sent = DatumGetByteaPP(DirectFunctionCall1(numeric_send, number));
	StringInfoData fields;
	int			ndigits;

	initStringInfo(&fields);
	appendBinaryStringInfo(&fields, VARDATA_ANY(sent), VARSIZE_ANY_EXHDR(sent));

	ndigits = pq_getmsgint(&fields, 2);
	pq_sendint32(state, ndigits);
	pq_sendint32(state, (int16) pq_getmsgint(&fields, 2));	/* weight */
	pq_sendint32(state, pq_getmsgint(&fields, 2));	/* sign */
	pq_sendint32(state, pq_getmsgint(&fields, 2));	/* scale */
	for (int i = 0; i < ndigits; i++)
		pq_sendint16(state, pq_getmsgint(&fields, 2));
	pfree(fields.data);
}

/* serialized_state: of finite numbers, for numeric_deserialize(). */
static Datum
serialized_state(int64 count, Datum sum, Datum squares)
{
	StringInfoData state;

	pq_begintypsend(&state);
	pq_sendint64(&state, count);
	append_serialized_number(&state, sum);
	append_serialized_number(&state, squares);
	pq_sendint32(&state, 0);	/* maxScale, of moving aggregates only */
	pq_sendint64(&state, 0);	/* maxScaleCount */
	pq_sendint64(&state, 0);	/* NaNs */
	pq_sendint64(&state, 0);	/* infinities */
	pq_sendint64(&state, 0);
	return PointerGetDatum(pq_endtypsend(&state));
}

/* finish_average: as numeric_avg() and int8_avg() do. */
static Datum
finish_average(MongoFinish finish, const NullableDatum *parts, bool *isnull)
{
	Numeric		sum;

	*isnull = parts[1].isnull || DatumGetInt64(parts[1].value) == 0;
	if (*isnull)
		return (Datum) 0;
	sum = finish == MONGO_FINISH_AVERAGE_OF_INTEGERS ? int64_to_numeric(DatumGetInt64(parts[0].value)) :
		DatumGetNumeric(parts[0].value);
	return DirectFunctionCall2(numeric_div, NumericGetDatum(sum),
							   NumericGetDatum(int64_to_numeric(DatumGetInt64(parts[1].value))));
}

/* finish_variance: with PostgreSQL's final function over a state made for it. */
static Datum
finish_variance(MongoFinisher *finisher, MongoFinish finish, const NullableDatum *parts,
				bool *isnull)
{
	LOCAL_FCINFO(deserialize, 2);
	LOCAL_FCINFO(final, 1);
	int64		count = parts[1].isnull ? 0 : DatumGetInt64(parts[1].value);
	Numeric		sum = DatumGetNumeric(parts[0].value);
	Datum		result;

	*isnull = count == 0 ||
		(count == 1 && (finish == MONGO_FINISH_VAR_SAMP || finish == MONGO_FINISH_STDDEV_SAMP));
	if (*isnull)
		return (Datum) 0;
	if (numeric_is_nan(sum) || numeric_is_inf(sum))
		return DirectFunctionCall3(numeric_in, CStringGetDatum("NaN"),
								   ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));

	finisher->context->aggcontext = CurrentMemoryContext;
	InitFunctionCallInfoData(*deserialize, NULL, 2, InvalidOid,
							 (Node *) finisher->context, NULL);
	deserialize->args[0].value = serialized_state(count, parts[0].value, parts[2].value);
	deserialize->args[0].isnull = false;
	deserialize->args[1].value = (Datum) 0;
	deserialize->args[1].isnull = false;

	InitFunctionCallInfoData(*final, NULL, 1, InvalidOid,
							 (Node *) finisher->context, NULL);
	final->args[0].value = numeric_deserialize(deserialize);
	final->args[0].isnull = false;
	result = final_functions[finish] (final);
	*isnull = final->isnull;
	return result;
}

void
mongo_finish_row(MongoFinisher *finisher, MongoRowDecoder *decoder, const uint8_t *data,
				 uint32 length, Datum *values, bool *isnull)
{
	ListCell   *cell;

	mongo_row_decode(decoder, data, length, finisher->values, finisher->isnull);
	memcpy(values, finisher->values, sizeof(Datum) * finisher->natts);
	memcpy(isnull, finisher->isnull, sizeof(bool) * finisher->natts);

	foreach(cell, finisher->finishes)
	{
		const MongoScanFinish *finish = lfirst(cell);
		NullableDatum parts[3];
		int			nparts = finish->finish <= MONGO_FINISH_AVERAGE_OF_INTEGERS ? 2 : 3;

		for (int i = 0; i < nparts; i++)
		{
			parts[i].value = finisher->values[finish->first + i];
			parts[i].isnull = finisher->isnull[finish->first + i];
		}
		values[finish->index] = nparts == 2 ?
			finish_average(finish->finish, parts, &isnull[finish->index]) :
			finish_variance(finisher, finish->finish, parts, &isnull[finish->index]);
	}
}
