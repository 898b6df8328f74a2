/*-------------------------------------------------------------------------
 *
 * objectid_type.h
 *		The OID of the SQL type objectid, which the extension's script creates, so
 *		that it differs from database to database.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_OBJECTID_TYPE_H
#define MONGO_FDW_OBJECTID_TYPE_H

#include "compat.h"

/*
 * mongo_objectid_type_oid
 *		The type's OID in this database; InvalidOid without the extension.
 *
 * The answer is remembered until pg_type changes.
 */
extern Oid	mongo_objectid_type_oid(void);

#endif							/* MONGO_FDW_OBJECTID_TYPE_H */
