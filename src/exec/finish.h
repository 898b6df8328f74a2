/*-------------------------------------------------------------------------
 *
 * finish.h
 *		Aggregates that PostgreSQL finishes of what MongoDB has added up.
 *
 * avg, variance and stddev end in a division or a square root, whose digits
 * are PostgreSQL's own business.  So MongoDB gives count, sum and sum of
 * squares, and PostgreSQL's functions do the rest.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_FINISH_H
#define MONGO_FDW_FINISH_H

#include "compat.h"

#include "decode_row.h"
#include "plan_nodes.h"

/* Opaque: built once a scan. */
typedef struct MongoFinisher MongoFinisher;

/*
 * mongo_finisher_create
 *		What finishes the rows of a plan whose tuple has 'natts' attributes; NULL
 *		when there is nothing to finish.  Lives in the current memory context.
 */
extern MongoFinisher *mongo_finisher_create(const MongoScanPlan *plan, int natts);

/*
 * mongo_finish_row
 *		Like mongo_row_decode(), with the attributes that are finished.
 */
extern void mongo_finish_row(MongoFinisher *finisher, MongoRowDecoder *decoder,
							 const uint8_t *data, uint32 length,
							 Datum *values, bool *isnull);

#endif							/* MONGO_FDW_FINISH_H */
