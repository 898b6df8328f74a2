/*-------------------------------------------------------------------------
 *
 * statistics_table.h
 *		The rows in which what ANALYZE has learned is kept; for src/catalog only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_STATISTICS_TABLE_H
#define MONGO_FDW_STATISTICS_TABLE_H

#include "compat.h"

#include "datatype/timestamp.h"

/* A row of mongo_fdw_statistics_data. */
typedef struct StatisticsRow
{
	Oid			relid;
	const char *collection;		/* "database.collection" that it is about */
	TimestampTz learned_at;
	double		documents;
	double		document_size;
	double		sampled;
	bool		indexes_known;
	Datum		indexes;		/* jsonb; without meaning unless known */
	Datum		fields;			/* jsonb */
} StatisticsRow;

/*
 * statistics_row_read
 *		The row of a foreign table, palloc'd; false when it has none, or when the
 *		extension's SQL objects are older than this library and have no table.
 */
extern bool statistics_row_read(Oid relid, StatisticsRow *row);

/*
 * statistics_row_write
 *		Put this row in the place of the table's former one, if any.
 *
 * Other sessions see it when the transaction has committed, which also sends the
 * invalidation that makes them read it.  Needs no privilege and writes in
 * read-only transactions, as ANALYZE itself does.  The caller must hold a lock on
 * the foreign table that no other writer can hold.  Rows of tables that are no
 * longer there are removed on the way.  Does nothing without the table.
 */
extern void statistics_row_write(const StatisticsRow *row);

#endif							/* MONGO_FDW_STATISTICS_TABLE_H */
