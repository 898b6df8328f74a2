/*-------------------------------------------------------------------------
 *
 * decode_scalar.h
 *		Texts, bytes and dates from BSON, see reader.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DECODE_SCALAR_H
#define MONGO_FDW_DECODE_SCALAR_H

#include "reader.h"

extern MongoReadFunction mongo_read_text;
extern MongoReadFunction mongo_read_varchar;
extern MongoReadFunction mongo_read_bpchar;
extern MongoReadFunction mongo_read_char;
extern MongoReadFunction mongo_read_name;
extern MongoReadFunction mongo_read_bytea;
extern MongoReadFunction mongo_read_uuid;
extern MongoReadFunction mongo_read_timestamp;
extern MongoReadFunction mongo_read_date;
extern MongoReadFunction mongo_read_objectid;

#endif							/* MONGO_FDW_DECODE_SCALAR_H */
