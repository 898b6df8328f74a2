/*-------------------------------------------------------------------------
 *
 * encode_nested.h
 *		Arrays, composite types and domains as BSON values, see encode.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ENCODE_NESTED_H
#define MONGO_FDW_ENCODE_NESTED_H

#include "encode.h"

extern MongoWriteFunction mongo_write_array;
extern MongoWriteFunction mongo_write_composite;
extern MongoWriteFunction mongo_write_domain;

#endif							/* MONGO_FDW_ENCODE_NESTED_H */
