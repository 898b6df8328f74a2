/*-------------------------------------------------------------------------
 *
 * import.c
 *		IMPORT FOREIGN SCHEMA: the collections of a database as foreign tables.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog.h"

List *
mongo_import_foreign_schema(ImportForeignSchemaStmt *statement, Oid serverid)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("IMPORT FOREIGN SCHEMA is not supported yet")));
}
