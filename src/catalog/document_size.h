/*-------------------------------------------------------------------------
 *
 * document_size.h
 *		How large the documents of a collection are.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DOCUMENT_SIZE_H
#define MONGO_FDW_DOCUMENT_SIZE_H

#include "compat.h"

#include "options.h"

/*
 * mongo_average_document_size
 *		Bytes of BSON that a document of the table's collection or view has on
 *		average, or a row of a derived table, by a small sample; 0 when there are
 *		none.
 *
 * Asks MongoDB with one aggregate.  Raises as mongo_cursor_next() and
 * mongo_append_deriving_stages() do.
 */
extern double mongo_average_document_size(UserMapping *user,
										  const MongoTableOptions *options);

#endif							/* MONGO_FDW_DOCUMENT_SIZE_H */
