/*-------------------------------------------------------------------------
 *
 * bson_memory.h
 *		BSON documents whose life is that of a memory context.
 *
 * libbson allocates with malloc(), which an ERROR would leak.  A document
 * made here is destroyed when its memory context is reset or deleted, so no
 * caller ever has to free one.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_BSON_MEMORY_H
#define MONGO_FDW_BSON_MEMORY_H

#include "compat.h"

#include "lib/stringinfo.h"
#include "utils/palloc.h"

/* The alignment of a bson_t, see bson-types.h: more than palloc() promises. */
#define BSON_ALIGNMENT	128

/*
 * bson_palloc
 *		A chunk of 'size' bytes in 'context' that a struct with a bson_t may begin at.
 *
 * Not to be given to pfree(): it lives as long as the context.
 */
static inline void *
bson_palloc(MemoryContext context, Size size)
{
	return (void *) TYPEALIGN(BSON_ALIGNMENT,
							  MemoryContextAlloc(context, size + BSON_ALIGNMENT));
}

/*
 * bson_create_in
 *		A new, empty document that lives as long as 'context'.
 *
 * The result may be appended to with libbson as usual; it must not be passed
 * to bson_destroy() or bson_steal().  Raises 53200 when out of memory.
 */
extern bson_t *bson_create_in(MemoryContext context);

/*
 * bson_copy_in
 *		A copy of 'source' that lives as long as 'context'.
 */
extern bson_t *bson_copy_in(MemoryContext context, const bson_t *source);

/*
 * bson_view
 *		Read-only view of 'length' bytes at 'data', which must outlive it.
 *
 * Returns false, with *view undefined, when the bytes are not one complete
 * document (the length word disagrees with 'length', or no trailing NUL).
 */
extern bool bson_view(bson_t *view, const uint8_t *data, size_t length);

#endif							/* MONGO_FDW_BSON_MEMORY_H */
