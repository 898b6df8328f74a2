/*-------------------------------------------------------------------------
 *
 * declared_type.h
 *		What the column option bson_type says: the one BSON type that a column reads
 *		and writes, of those that its PostgreSQL type reads.
 *
 * Which can be declared for which type is a table in src/convert/declared_type.c;
 * docs/types.md has it in prose.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DECLARED_TYPE_H
#define MONGO_FDW_DECLARED_TYPE_H

#include "compat.h"

/*
 * mongo_declared_set
 *		The BSON types, as bits of MONGO_BSON_BIT, that a column reads by its option;
 *		MONGO_BSON_ANY for BSON_TYPE_EOD, which is no option.
 *
 * A Symbol is a String: MongoDB holds the two for equal.
 */
extern uint32 mongo_declared_set(bson_type_t declared);

/*
 * mongo_check_declared_type
 *		Raise 42804 for what a column of this type cannot be declared as.
 *
 * Nothing can for types that have no row in the table, such as jsonb, which reads
 * everything.  A domain can be declared as its base type can.
 */
extern void mongo_check_declared_type(const char *column_name, Oid typid,
									  bson_type_t declared);

/*
 * mongo_declared_is_told
 *		Does a value of the declared type equal, for MongoDB, only values of that type?
 *		Not numbers, of which 5 and 5.0 are equal in every BSON type.
 */
extern bool mongo_declared_is_told(bson_type_t declared);

/*
 * mongo_append_declared
 *		Append 'value' of type 'typid', which is not NULL, to 'document' under 'key', in
 *		UTF-8, as a value of the declared type.
 *
 * The column would read the very value.  Raises 22P02 for a text that is no ObjectId,
 * 22003 for a number that the BSON type does not hold, and otherwise what
 * mongo_append_datum() raises.
 */
extern void mongo_append_declared(bson_t *document, const char *key, Datum value,
								  Oid typid, int32 typmod, bson_type_t declared);

#endif							/* MONGO_FDW_DECLARED_TYPE_H */
