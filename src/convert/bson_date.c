/*-------------------------------------------------------------------------
 *
 * bson_date.c
 *		BSON's Date, which counts milliseconds since 1970.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_date.h"

#define USECS_PER_MILLI		INT64CONST(1000)

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
