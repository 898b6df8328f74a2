/*-------------------------------------------------------------------------
 *
 * row_upsert.h
 *		From rows to the upserts of the option insert_mode.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ROW_UPSERT_H
#define MONGO_FDW_ROW_UPSERT_H

#include "compat.h"

#include "access/tupdesc.h"
#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"
#include "options.h"
#include "row_document.h"

/* How the rows of one statement find and change their documents; opaque. */
typedef struct MongoUpsertLayout MongoUpsertLayout;

/*
 * mongo_upsert_layout_create
 *		For a foreign table with the option insert_mode, and a statement that gives
 *		these columns (numbered as in insertedCols); lives in the current memory context.
 *
 * With 'has_trigger', other columns without a default may have got values, too.
 * Raises 42703 for a key column that the table has not, 0A000 for one that cannot be a
 * key and for columns that cannot be updated together, 22023 where _id is the key and
 * always generated.
 */
extern MongoUpsertLayout *mongo_upsert_layout_create(Oid relid, TupleDesc tuple,
													 const MongoTableOptions *options,
													 const Bitmapset *given, bool has_trigger);

/*
 * mongo_upsert_assigned
 *		The columns that a document that is there gets, as attribute numbers.
 */
extern List *mongo_upsert_assigned(const MongoUpsertLayout *layout);

/*
 * mongo_row_to_upsert
 *		Append to 'filter' what finds the row's document, by its key, and to 'update'
 *		what becomes of it; both are empty.
 *
 * 'document' and 'generated' are what mongo_row_to_document() gave for the row.  Raises
 * 23502 for a key without a value, 0A000 for field names that an update operator would
 * take for a path.
 */
extern void mongo_row_to_upsert(const MongoUpsertLayout *layout, const MongoRowLayout *rows,
								const Datum *values, const bool *isnull,
								const bson_t *document, bool generated, bson_t *filter,
								bson_t *update);

/*
 * mongo_describe_upsert
 *		The same with the names of columns for their values, for EXPLAIN.
 */
extern void mongo_describe_upsert(const MongoUpsertLayout *layout, bson_t *filter,
								  bson_t *update);

#endif							/* MONGO_FDW_ROW_UPSERT_H */
