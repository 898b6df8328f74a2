/*-------------------------------------------------------------------------
 *
 * json_number.h
 *		JSON's numbers as BSON's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_NUMBER_H
#define MONGO_FDW_JSON_NUMBER_H

#include "encode.h"

/*
 * mongo_write_json_number
 *		The narrowest BSON number that is this number, a C string as JSON has it.
 *
 * Without point and exponent: Int32, else Int64.  Otherwise, or when too large:
 * Double when its shortest form is this number, else Decimal128; raises 22003 beyond
 * that.
 */
extern void mongo_write_json_number(const MongoWriteTarget *target, const char *text);

/* mongo_write_json_integer: likewise, when it is known as an integer. */
extern void mongo_write_json_integer(const MongoWriteTarget *target, int64 integer);

#endif							/* MONGO_FDW_JSON_NUMBER_H */
