/*-------------------------------------------------------------------------
 *
 * lifetime.c
 *		Which of two things in memory contexts lives longer.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lifetime.h"

#include "utils/memutils.h"

bool
mongo_outlives(const void *chunk, MemoryContext context)
{
	MemoryContext own = GetMemoryChunkContext(unconstify(void *, chunk));

	while (context != NULL && context != own)
		context = MemoryContextGetParent(context);
	return context != NULL;
}
