/*-------------------------------------------------------------------------
 *
 * analyze.h
 *		ANALYZE of foreign tables.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ANALYZE_H
#define MONGO_FDW_ANALYZE_H

#include "compat.h"

#include "foreign/fdwapi.h"

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

#endif							/* MONGO_FDW_ANALYZE_H */
