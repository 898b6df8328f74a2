/*-------------------------------------------------------------------------
 *
 * lifetime.h
 *		Which of two things in memory contexts lives longer.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_LIFETIME_H
#define MONGO_FDW_LIFETIME_H

#include "compat.h"

#include "utils/memutils.h"

/*
 * mongo_outlives
 *		Is 'chunk' there as long as 'context' is?  For assertions.
 *
 * It is if it was allocated in that context, or in one above, which cannot be
 * reset or deleted without it.  'chunk' must be what palloc() gave, no pointer
 * into it; of a bson_t of bson_memory.h that is not so.
 */
static inline bool
mongo_outlives(const void *chunk, MemoryContext context)
{
	MemoryContext own = GetMemoryChunkContext(unconstify(void *, chunk));

	while (context != NULL && context != own)
		context = MemoryContextGetParent(context);
	return context != NULL;
}

#endif							/* MONGO_FDW_LIFETIME_H */
