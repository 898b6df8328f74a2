/*-------------------------------------------------------------------------
 *
 * bson_walk.h
 *		Going through documents that a server sent, whose bytes may be anything.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_BSON_WALK_H
#define MONGO_FDW_BSON_WALK_H

#include "compat.h"

/*
 * mongo_iter_check_end
 *		bson_iter_next() gave false: was that the end of the document?
 *
 * Raises 08P01 when it was not but the bytes are not BSON.  'length' is that
 * of the document under the iterator.
 */
extern void mongo_iter_check_end(const bson_iter_t *iter, uint32 length);

/*
 * mongo_iter_descend
 *		An iterator over the document or array at 'iter'; returns its length.
 *		Raises 08P01 when the bytes are not a document.
 */
extern uint32 mongo_iter_descend(const bson_iter_t *iter, bson_iter_t *child);

/*
 * mongo_report_bad_bson
 *		Raise 08P01: the server sent bytes that are not BSON.
 */
pg_noreturn extern void mongo_report_bad_bson(void);

#endif							/* MONGO_FDW_BSON_WALK_H */
