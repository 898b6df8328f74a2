/*-------------------------------------------------------------------------
 *
 * bson_date.h
 *		BSON's Date, which counts milliseconds since 1970.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_BSON_DATE_H
#define MONGO_FDW_BSON_DATE_H

#include "compat.h"

#include "utils/date.h"
#include "utils/timestamp.h"

/* PostgreSQL's dates begin in 2000. */
#define MONGO_MILLIS_PER_DAY	INT64CONST(86400000)
#define MONGO_EPOCH_DAYS		((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE))

/*
 * mongo_timestamp_to_millis
 *		Milliseconds since 1970 of a timestamp or timestamptz, rounded down.
 *
 * *exact (may be NULL) tells whether nothing was cut.  The value must be
 * finite.
 */
extern int64 mongo_timestamp_to_millis(Timestamp value, bool *exact);

/*
 * mongo_date_to_millis
 *		Milliseconds since 1970 of a date's midnight in UTC.  Must be finite.
 */
extern int64 mongo_date_to_millis(DateADT value);

#endif							/* MONGO_FDW_BSON_DATE_H */
