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

#include "foreign/foreign.h"

/*
 * mongo_average_document_size
 *		Bytes of BSON that a document of the collection or view has on average,
 *		by a small sample; 0 when there are none.
 *
 * Asks MongoDB with one aggregate.  Names are in the database encoding.
 * Raises as mongo_cursor_next() does.
 */
extern double mongo_average_document_size(UserMapping *user, const char *database,
										  const char *collection);

#endif							/* MONGO_FDW_DOCUMENT_SIZE_H */
