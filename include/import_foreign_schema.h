/*-------------------------------------------------------------------------
 *
 * import_foreign_schema.h
 *		IMPORT FOREIGN SCHEMA.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_IMPORT_FOREIGN_SCHEMA_H
#define MONGO_FDW_IMPORT_FOREIGN_SCHEMA_H

#include "compat.h"

#include "nodes/parsenodes.h"

/*
 * mongo_import_foreign_schema
 *		ImportForeignSchema of the wrapper: CREATE FOREIGN TABLE commands for
 *		the collections and views of a database, from samples, validators and
 *		indexes.  Options: see docs/import.md.
 *
 * Raises HV00D for an unknown option, 22023 for a bad value, HV00Q for a database
 * without collections.
 */
extern List *mongo_import_foreign_schema(ImportForeignSchemaStmt *statement,
										 Oid serverid);

#endif							/* MONGO_FDW_IMPORT_FOREIGN_SCHEMA_H */
