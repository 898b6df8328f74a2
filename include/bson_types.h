/*-------------------------------------------------------------------------
 *
 * bson_types.h
 *		BSON's types: sets of them, and their names.
 *
 * https://bsonspec.org
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_BSON_TYPES_H
#define MONGO_FDW_BSON_TYPES_H

#include "compat.h"

#include "nodes/pg_list.h"

/*
 * BSON types as bits of a set.  MinKey and MaxKey have codes of their own at the
 * ends of a byte.
 */
#define MONGO_BSON_BIT(code) \
	((code) <= 0x13 ? (uint32) 1 << (code) : \
	 (code) == BSON_TYPE_MAXKEY ? (uint32) 1 << 0x14 : (uint32) 1 << 0x15)

#define MONGO_BSON_ANY			(~(uint32) 0)

/*
 * mongo_bson_type_name
 *		"Int32", "ObjectId", as the BSON specification has it; static.
 */
extern const char *mongo_bson_type_name(bson_type_t type);

/*
 * mongo_bson_type_aliases
 *		Of a set of types, what MongoDB's $type calls them: a List of static C
 *		strings, such as "objectId".
 */
extern List *mongo_bson_type_aliases(uint32 set);

#endif							/* MONGO_FDW_BSON_TYPES_H */
