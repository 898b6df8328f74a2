/*-------------------------------------------------------------------------
 *
 * decode_nested.h
 *		Arrays, composite types and domains from BSON, see reader.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DECODE_NESTED_H
#define MONGO_FDW_DECODE_NESTED_H

#include "reader.h"

extern MongoReadFunction mongo_read_array;
extern MongoReadFunction mongo_read_composite;
extern MongoReadFunction mongo_read_domain;
extern MongoPrepareFunction mongo_prepare_array;
extern MongoPrepareFunction mongo_prepare_composite;
extern MongoPrepareFunction mongo_prepare_domain;

#endif							/* MONGO_FDW_DECODE_NESTED_H */
