/*-------------------------------------------------------------------------
 *
 * row_identity.c
 *		The _ids of the rows that a scan returned to an UPDATE or DELETE.
 *
 * The executor passes a row identity of six bytes, a ctid, from the scan to the place where the
 * row is changed, through any join and sort in between.  An _id may be any BSON value and need not
 * be a column.  So the scan appends the _ids to a log, and the ctid of a row is the _id's offset
 * in the log.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#define INITIAL_CAPACITY	(64 * 1024)

struct MongoIdentityLog
{
	MemoryContext context;
	bson_t	   *scratch;
	char	   *data;
	Size		length;
	Size		capacity;
};

/*
 * mongo_identity_log_create
 *		Returns an empty log, in 'context'.
 */
MongoIdentityLog *
mongo_identity_log_create(MemoryContext context)
{
	MongoIdentityLog *log = MemoryContextAllocZero(context, sizeof(MongoIdentityLog));

	log->context = context;
	log->scratch = mongo_bson_create_in(context);
	log->capacity = INITIAL_CAPACITY;
	log->data = MemoryContextAlloc(context, log->capacity);
	return log;
}

/*
 * mongo_identity_note
 *		Appends the _id of a document to the log, and sets *ctid to its offset.
 *
 * Does not trust the document's bytes; raises 08P01 if it finds no _id.
 */
void
mongo_identity_note(MongoIdentityLog *log, const uint8_t *data, uint32 length, ItemPointer ctid)
{
	bson_iter_t iter;
	bson_t		document;
	Size		needed;

	bson_reinit(log->scratch);
	if (!mongo_bson_view(&document, data, length) ||
		!bson_iter_init_find(&iter, &document, "_id"))
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("MongoDB sent a document without _id"),
				 errhint("Rows of a view without _id cannot be updated or deleted.")));
	mongo_append_equal(log->scratch, "_id", bson_iter_value(&iter));

	needed = log->length + log->scratch->len;
	if (needed > log->capacity)
	{
		while (log->capacity < needed)
			log->capacity *= 2;
		log->data = repalloc_huge(log->data, log->capacity);
	}
	/* an offset has 48 bits: the block number, and the offset number in it */
	BlockIdSet(&ctid->ip_blkid, (BlockNumber) (log->length >> 16));
	ctid->ip_posid = (OffsetNumber) (log->length & 0xFFFF);
	memcpy(log->data + log->length, bson_get_data(log->scratch), log->scratch->len);
	log->length = needed;
}

/*
 * mongo_identity_find
 *		Sets *view to the filter by _id at the ctid's offset, valid until mongo_identity_note() is
 *		called.
 */
void
mongo_identity_find(const MongoIdentityLog *log, ItemPointer ctid, bson_t *view)
{
	Size		offset = ((Size) BlockIdGetBlockNumber(&ctid->ip_blkid) << 16) | ctid->ip_posid;
	uint32		length = 0;

	if (offset + sizeof(length) <= log->length)
	{
		memcpy(&length, log->data + offset, sizeof(length));
		length = BSON_UINT32_FROM_LE(length);
	}
	if (length < 5 || length > log->length - offset ||
		!mongo_bson_view(view, (const uint8_t *) log->data + offset, length))
		elog(ERROR, "row identity does not stand for an _id");
}
