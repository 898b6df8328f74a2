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

/*
 * mongo_is_objectid_type
 *		Is this the type?  Told by its input function, which takes no scan of
 *		pg_extension in a new session.
 */
extern bool mongo_is_objectid_type(Oid typid);

/*
 * mongo_objectid_opfamily
 *		The default B-tree operator family of the type, whose OID this is; InvalidOid
 *		where it is to be looked up as those of other types are.
 */
extern Oid	mongo_objectid_opfamily(Oid typid);

#endif							/* MONGO_FDW_OBJECTID_TYPE_H */
