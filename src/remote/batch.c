/*-------------------------------------------------------------------------
 *
 * batch.c
 *		The batches of documents in the replies of cursors.
 *
 * Replies are not trusted: each length is checked against what contains it before it is used.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "convert.h"

/*
 * mongo_batch_read
 *		Reads {firstBatch | nextBatch, id, ns}, the field "cursor" of a reply, which must exist as
 *		long as the batch is used.  Returns NULL, or what is wrong, as a static sentence.  Never
 *		raises.
 */
const char *
mongo_batch_read(MongoBatch *batch, const bson_iter_t *cursor)
{
	bson_iter_t iter;
	bool		has_id = false;

	*batch = (MongoBatch) {0};
	if (!BSON_ITER_HOLDS_DOCUMENT(cursor) || !bson_iter_recurse(cursor, &iter))
		return "The cursor is not a document.";
	while (bson_iter_next(&iter))
	{
		const char *key = bson_iter_key(&iter);

		if ((strcmp(key, "firstBatch") == 0 || strcmp(key, "nextBatch") == 0) &&
			BSON_ITER_HOLDS_ARRAY(&iter))
		{
			uint32_t	length;
			const uint8_t *elements;

			bson_iter_array(&iter, &length, &elements);
			if (elements == NULL || length < 5)
				return "The batch is too short.";
			batch->position = elements + 4;
			batch->end = elements + length - 1; /* the array's NUL */
			batch->is_next = key[0] == 'n';
		}
		else if (strcmp(key, "id") == 0 && BSON_ITER_HOLDS_INT(&iter))
		{
			batch->id = bson_iter_as_int64(&iter);
			has_id = true;
		}
		else if (strcmp(key, "ns") == 0 && BSON_ITER_HOLDS_UTF8(&iter))
			batch->ns = bson_iter_utf8(&iter, NULL);
		else if (strcmp(key, "postBatchResumeToken") == 0 && BSON_ITER_HOLDS_DOCUMENT(&iter))
			bson_iter_document(&iter, &batch->token_length, &batch->token);
		else if (strcmp(key, "atClusterTime") == 0)
			batch->has_time = true;
	}
	return batch->position != NULL && has_id ? NULL :
		"The reply has no cursor with id and batch.";
}

/*
 * mongo_batch_next
 *		Returns the next document, which is in the reply, and its length; NULL if there is none
 *		left, or if *violation then describes what is wrong.  Never raises.
 */
const uint8 *
mongo_batch_next(MongoBatch *batch, uint32 *length, const char **violation)
{
	const uint8 *p = batch->position;
	const uint8 *end = batch->end;
	const uint8 *key_end;

	*violation = NULL;
	if (p == end)
		return NULL;
	/* type byte, key, document */
	if (*p++ != BSON_TYPE_DOCUMENT)
	{
		*violation = "An element of the batch is not a document.";
		return NULL;
	}
	key_end = memchr(p, '\0', end - p);
	if (key_end == NULL || end - key_end - 1 < SMALLEST_DOCUMENT)
	{
		*violation = "An element of the batch is too short.";
		return NULL;
	}
	p = key_end + 1;
	*length = get_int32(p);
	if (*length < SMALLEST_DOCUMENT || *length > (size_t) (end - p))
		*violation = "A document does not end within its batch.";
	else if (p[*length - 1] != '\0')
		*violation = "A document is not terminated.";
	if (*violation != NULL)
		return NULL;
	batch->position = p + *length;
	return p;
}

/*
 * mongo_batch_time
 *		Sets *time to that of the batch's resume token.  Returns false if there is none.
 */
bool
mongo_batch_time(const MongoBatch *batch, uint64 *time)
{
	bson_iter_t data;

	if (batch->token == NULL ||
		!bson_iter_init_from_data(&data, batch->token, batch->token_length) ||
		!bson_iter_find(&data, "_data") || !BSON_ITER_HOLDS_UTF8(&data))
		return false;
	*time = mongo_token_time(bson_iter_utf8(&data, NULL));
	return *time != 0;
}
