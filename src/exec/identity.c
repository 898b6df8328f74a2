/*-------------------------------------------------------------------------
 *
 * identity.c
 *		The _ids of the rows that a scan gave to an UPDATE or DELETE.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "identity.h"

#include "bson_memory.h"
#include "utils/memutils.h"

#define INITIAL_CAPACITY	(64 * 1024)

struct MongoIdentityLog
{
	MemoryContext context;
	bson_t	   *scratch;
	char	   *data;
	Size		length;
	Size		capacity;
};

MongoIdentityLog *
mongo_identity_log_create(MemoryContext context)
{
	MongoIdentityLog *log = MemoryContextAllocZero(context,
												   sizeof(MongoIdentityLog));

	log->context = context;
	log->scratch = bson_create_in(context);
	log->capacity = INITIAL_CAPACITY;
	log->data = MemoryContextAlloc(context, log->capacity);
	return log;
}

/* An offset has 48 bits: the block number, and the offset number in it. */
static void
offset_to_ctid(Size offset, ItemPointer ctid)
{
	BlockIdSet(&ctid->ip_blkid, (BlockNumber) (offset >> 16));
	ctid->ip_posid = (OffsetNumber) (offset & 0xFFFF);
}

static Size
ctid_to_offset(ItemPointer ctid)
{
	return ((Size) BlockIdGetBlockNumber(&ctid->ip_blkid) << 16) | ctid->ip_posid;
}

void
mongo_identity_note(MongoIdentityLog *log, const uint8_t *data, uint32 length,
					ItemPointer ctid)
{
	bson_iter_t iter;
	bson_t		document;
	Size		needed;

	bson_reinit(log->scratch);
	if (!bson_view(&document, data, length) ||
		!bson_iter_init_find(&iter, &document, "_id") ||
		!bson_append_iter(log->scratch, "_id", 3, &iter))
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("MongoDB sent a document without _id"),
				 errhint("Rows of a view without _id cannot be updated or deleted.")));

	needed = log->length + log->scratch->len;
	if (needed > log->capacity)
	{
		while (log->capacity < needed)
			log->capacity *= 2;
		log->data = repalloc_huge(log->data, log->capacity);
	}
	offset_to_ctid(log->length, ctid);
	memcpy(log->data + log->length, bson_get_data(log->scratch), log->scratch->len);
	log->length = needed;
}

void
mongo_identity_find(const MongoIdentityLog *log, ItemPointer ctid, bson_t *view)
{
	Size		offset = ctid_to_offset(ctid);
	uint32		length = 0;

	if (offset + sizeof(length) <= log->length)
	{
		memcpy(&length, log->data + offset, sizeof(length));
		length = BSON_UINT32_FROM_LE(length);
	}
	if (length < 5 || length > log->length - offset ||
		!bson_view(view, (const uint8_t *) log->data + offset, length))
		elog(ERROR, "row identity does not stand for an _id");
}
