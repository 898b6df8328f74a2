/*-------------------------------------------------------------------------
 *
 * decode_number.h
 *		Numbers and booleans from BSON, see reader.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DECODE_NUMBER_H
#define MONGO_FDW_DECODE_NUMBER_H

#include "reader.h"

extern MongoReadFunction mongo_read_bool;
extern MongoReadFunction mongo_read_int2;
extern MongoReadFunction mongo_read_int4;
extern MongoReadFunction mongo_read_int8;
extern MongoReadFunction mongo_read_float4;
extern MongoReadFunction mongo_read_float8;
extern MongoReadFunction mongo_read_numeric;
extern MongoPrepareFunction mongo_prepare_numeric;

#endif							/* MONGO_FDW_DECODE_NUMBER_H */
