/*-------------------------------------------------------------------------
 *
 * catalog.h
 *		What PostgreSQL's catalogs learn from MongoDB: statistics, tables,
 *		row counts; and the functions that SQL can call.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CATALOG_H
#define MONGO_FDW_CATALOG_H

#include "compat.h"

#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "row_count.h"

/*
 * mongo_analyze_foreign_table
 *		AnalyzeForeignTable of the wrapper: rows come from $sample, or from a
 *		scan of the whole collection with analyze_sampling off.
 *
 * Asks MongoDB, as the table's owner, for the number of documents and for the
 * average size of some; *totalpages is their product, in which planning finds the
 * size of a document again.  Fields that do not fit count as NULL in the sample.
 */
extern bool mongo_analyze_foreign_table(Relation relation,
										AcquireSampleRowsFunc *func,
										BlockNumber *totalpages);

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

#endif							/* MONGO_FDW_CATALOG_H */
