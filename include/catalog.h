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
 * *totalpages is estimated from the collection's size in bytes.
 */
extern bool mongo_analyze_foreign_table(Relation relation,
										AcquireSampleRowsFunc *func,
										BlockNumber *totalpages);

/*
 * mongo_import_foreign_schema
 *		ImportForeignSchema of the wrapper: CREATE FOREIGN TABLE commands for
 *		the collections and views of a database, from samples, validators and
 *		indexes.  Options: see docs/import.md.
 */
extern List *mongo_import_foreign_schema(ImportForeignSchemaStmt *statement,
										 Oid serverid);

/*
 * mongo_ordered_command
 *		A copy, in the current memory context, of 'command' with the member
 *		that is the command's name in front, as MongoDB wants it.
 *
 * For commands that were jsonb, which has an order of its own.  The name is
 * found by a table of MongoDB's commands; raises 22023 when no member or more
 * than one can be it.
 */
extern const bson_t *mongo_ordered_command(const bson_t *command);

#endif							/* MONGO_FDW_CATALOG_H */
