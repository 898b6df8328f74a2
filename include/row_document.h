/*-------------------------------------------------------------------------
 *
 * row_document.h
 *		From rows to the documents and updates that store them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ROW_DOCUMENT_H
#define MONGO_FDW_ROW_DOCUMENT_H

#include "compat.h"

#include "access/tupdesc.h"
#include "catalog/pg_attribute.h"
#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"

/* Where each column of a table goes in a document; opaque. */
typedef struct MongoRowLayout MongoRowLayout;

/*
 * mongo_row_layout_create
 *		The layout of a foreign table's rows; lives in 'context'.
 *
 * With 'write_null' a NULL is stored as null, otherwise it is left out.  With
 * 'generates_id' a new document has an _id of our own, whatever the row says.
 */
extern MongoRowLayout *mongo_row_layout_create(MemoryContext context, Oid relid,
											   TupleDesc tuple, bool write_null, bool generates_id);

/*
 * mongo_row_to_document
 *		Append a row to 'document', which is empty: _id first, then the columns
 *		in their order, those with dotted paths as nested documents.
 *
 * Where no column gives _id, an ObjectId is made and *generated is true; 'oid'
 * then holds it.  A column __doc that is not NULL is the document, and
 * no other column may have a value then.  Raises 23502 where _id must
 * be given, 42P10 for columns that overlap, and what encoding raises.
 */
extern void mongo_row_to_document(const MongoRowLayout *layout,
								  const Datum *values, const bool *isnull,
								  bson_t *document, bool *generated,
								  bson_oid_t *oid);

/*
 * mongo_document_to_upsert
 *		A document that begins with its _id, as the filter {_id} and the update
 *		{$setOnInsert: {...}} that insert it where that _id is not yet there.
 *
 * Appends to both, which are empty.  Raises 0A000 for field names that an
 * update operator would take for a path.
 */
extern void mongo_document_to_upsert(const bson_t *document, bson_t *filter,
									 bson_t *update);

/*
 * mongo_row_to_update
 *		Append {$set, $unset, $push} to 'update' for these attributes (a List of
 *		int), or for the column __doc a pipeline that replaces the document.
 *
 * The list has passed mongo_check_assignable().  'old_values' is the row as it
 * was, or NULL; where it has a value for a nested column, only what changed of
 * that is written (row_changes.h).  Columns that were not read count as NULL.
 */
extern void mongo_row_to_update(const MongoRowLayout *layout, List *attributes,
								const Datum *values, const bool *isnull,
								const Datum *old_values, const bool *old_isnull,
								bson_t *update);

/*
 * mongo_check_assignable
 *		Raise when UPDATE cannot assign these columns (together).
 */
extern void mongo_check_assignable(Oid relid, List *attributes);

/*
 * mongo_append_column_value
 *		Append what a column with this path and type stores for a value.
 *
 * A value of the declared BSON type; without one (BSON_TYPE_EOD) what
 * mongo_append_datum() appends, but text of 24 hexadecimal digits is an ObjectId in
 * _id and in columns of type name, as is a bytea of 12 bytes in _id.  Raises
 * what mongo_append_declared() and mongo_append_datum() raise.
 */
extern void mongo_append_column_value(bson_t *document, const char *key,
									  const char *path, Datum value,
									  Form_pg_attribute attribute,
									  bson_type_t bson_type);

/*
 * mongo_row_bson_type
 *		What the attribute's field is declared to be.
 */
extern bson_type_t mongo_row_bson_type(const MongoRowLayout *layout, AttrNumber attnum);

#endif							/* MONGO_FDW_ROW_DOCUMENT_H */
