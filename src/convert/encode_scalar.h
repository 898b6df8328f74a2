/*-------------------------------------------------------------------------
 *
 * encode_scalar.h
 *		Scalars as BSON values, see encode.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ENCODE_SCALAR_H
#define MONGO_FDW_ENCODE_SCALAR_H

#include "encode.h"

/*
 * MONGO_WRITE
 *		Append with libbson's function for this BSON type; raise 54000 unless it could.
 */
#define MONGO_WRITE(target, type, ...) \
	mongo_write_check(bson_append_##type((target)->document, (target)->key, \
										 (target)->key_length, ##__VA_ARGS__))

/*
 * mongo_write_check
 *		Raise 54000 unless libbson could append.
 */
extern void mongo_write_check(bool appended);

extern MongoWriteFunction mongo_write_bool;
extern MongoWriteFunction mongo_write_int2;
extern MongoWriteFunction mongo_write_int4;
extern MongoWriteFunction mongo_write_int8;
extern MongoWriteFunction mongo_write_float4;
extern MongoWriteFunction mongo_write_float8;
extern MongoWriteFunction mongo_write_numeric;
extern MongoWriteFunction mongo_write_text;
extern MongoWriteFunction mongo_write_name;
extern MongoWriteFunction mongo_write_bytea;
extern MongoWriteFunction mongo_write_uuid;
extern MongoWriteFunction mongo_write_timestamp;
extern MongoWriteFunction mongo_write_date;
extern MongoWriteFunction mongo_write_interval;
extern MongoWriteFunction mongo_write_objectid;
extern MongoWriteFunction mongo_write_text_form;

#endif							/* MONGO_FDW_ENCODE_SCALAR_H */
