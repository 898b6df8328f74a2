/*-------------------------------------------------------------------------
 *
 * bson_table.c
 *		Hash tables whose keys are documents.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"

#include "common/hashfn.h"

static uint32
hash_document(const void *key, Size keysize pg_attribute_unused())
{
	const MongoDocumentKey *document = key;

	return hash_bytes(document->data, document->length);
}

static int
compare_documents(const void *left, const void *right, Size keysize pg_attribute_unused())
{
	const MongoDocumentKey *one = left;
	const MongoDocumentKey *other = right;

	return one->length == other->length &&
		memcmp(one->data, other->data, one->length) == 0 ? 0 : 1;
}

/*
 * mongo_document_table_create
 *		Returns a hash table by documents, in 'context'.
 *
 * Its entries have this size, and begin with a MongoDocumentKey.
 */
HTAB *
mongo_document_table_create(MemoryContext context, Size entrysize)
{
	HASHCTL		control = {
		.keysize = sizeof(MongoDocumentKey),
		.entrysize = entrysize,
		.hash = hash_document,
		.match = compare_documents,
		.hcxt = context,
	};

	return hash_create("mongo_fdw documents", 16, &control,
					   HASH_ELEM | HASH_FUNCTION | HASH_COMPARE | HASH_CONTEXT);
}

/*
 * mongo_document_table_enter
 *		Returns the entry of 'document'; adds it if it is not there, and sets *found to whether it
 *		was.
 *
 * A new entry's key is a copy of the document in 'context'.  Its other bytes are not initialized.
 */
void *
mongo_document_table_enter(HTAB *table, MemoryContext context, const bson_t *document, bool *found)
{
	MongoDocumentKey key = {bson_get_data(document), document->len};
	MongoDocumentKey *entry = hash_search(table, &key, HASH_FIND, NULL);
	uint8	   *bytes;

	*found = entry != NULL;
	if (*found)
		return entry;
	/* the bytes are copied first: if that raises, there is no entry */
	bytes = MemoryContextAlloc(context, key.length);
	memcpy(bytes, key.data, key.length);
	key.data = bytes;
	return hash_search(table, &key, HASH_ENTER, NULL);
}
