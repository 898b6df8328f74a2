/*-------------------------------------------------------------------------
 *
 * bson_memory.c
 *		BSON documents whose life is that of a memory context.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "bson_memory.h"

#include "driver_memory.h"
#include "utils/memutils.h"

/* A document and the callback that destroys it, in one palloc chunk. */
typedef struct OwnedBson
{
	MemoryContextCallback callback;
	bson_t		bson;
} OwnedBson;

static void
destroy_owned_bson(void *arg)
{
	/* on the way to exit from within libmongoc, which may be writing to it */
	if (!mongo_driver_is_entered())
		bson_destroy((bson_t *) arg);
}

/* Nothing is registered yet: the caller fills ->bson, then calls adopt(). */
static OwnedBson *
allocate_owned_bson(MemoryContext context)
{
	return bson_palloc(context, sizeof(OwnedBson));
}

/* adopt: the document is destroyed with the context. */
static bson_t *
adopt(MemoryContext context, OwnedBson *owned)
{
	owned->callback.func = destroy_owned_bson;
	owned->callback.arg = &owned->bson;
	MemoryContextRegisterResetCallback(context, &owned->callback);
	return &owned->bson;
}

bson_t *
bson_create_in(MemoryContext context)
{
	OwnedBson  *owned = allocate_owned_bson(context);

	bson_init(&owned->bson);
	return adopt(context, owned);
}

bson_t *
bson_copy_in(MemoryContext context, const bson_t *source)
{
	OwnedBson  *owned = allocate_owned_bson(context);

	bson_copy_to(source, &owned->bson);
	return adopt(context, owned);
}

bool
bson_view(bson_t *view, const uint8_t *data, size_t length)
{
	return bson_init_static(view, data, length);
}
