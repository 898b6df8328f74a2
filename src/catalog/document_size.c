/*-------------------------------------------------------------------------
 *
 * document_size.c
 *		How large the documents of a collection are.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "document_size.h"

#include "bson_memory.h"
#include "cursor.h"
#include "encoding.h"
#include "utils/memutils.h"

/* As many as tell the size of documents well enough to plan with. */
#define SAMPLED_DOCUMENTS	100

/* [{$sample: {size: 100}}, {$group: {_id: null, bytes: {$avg: {$bsonSize: "$$ROOT"}}}}] */
static void
append_pipeline(bson_t *command)
{
	bson_t		pipeline;
	bson_t		stage;
	bson_t		body;
	bson_t		average;
	bson_t		size;

	BSON_APPEND_ARRAY_BEGIN(command, "pipeline", &pipeline);

	BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "0", &stage);
	BSON_APPEND_DOCUMENT_BEGIN(&stage, "$sample", &body);
	BSON_APPEND_INT32(&body, "size", SAMPLED_DOCUMENTS);
	bson_append_document_end(&stage, &body);
	bson_append_document_end(&pipeline, &stage);

	BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "1", &stage);
	BSON_APPEND_DOCUMENT_BEGIN(&stage, "$group", &body);
	BSON_APPEND_NULL(&body, "_id");
	BSON_APPEND_DOCUMENT_BEGIN(&body, "bytes", &average);
	BSON_APPEND_DOCUMENT_BEGIN(&average, "$avg", &size);
	BSON_APPEND_UTF8(&size, "$bsonSize", "$$ROOT");
	bson_append_document_end(&average, &size);
	bson_append_document_end(&body, &average);
	bson_append_document_end(&stage, &body);
	bson_append_document_end(&pipeline, &stage);

	bson_append_array_end(command, &pipeline);
}

double
mongo_average_document_size(UserMapping *user, const char *database,
							const char *collection)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "mongo_fdw document size",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext previous = MemoryContextSwitchTo(context);
	bson_t	   *command = bson_create_in(context);
	bson_t		empty;
	MongoCursor *cursor;
	const uint8_t *document;
	uint32		length;
	bson_iter_t iter;
	double		bytes = 0;

	BSON_APPEND_UTF8(command, "aggregate", mongo_to_utf8(collection));
	append_pipeline(command);
	BSON_APPEND_DOCUMENT_BEGIN(command, "cursor", &empty);
	bson_append_document_end(command, &empty);

	cursor = mongo_cursor_open(context, user, mongo_to_utf8(database), collection,
							   command, 0);
	document = mongo_cursor_next(cursor, &length);
	if (document != NULL && bson_iter_init_from_data(&iter, document, length) &&
		bson_iter_find(&iter, "bytes"))
		bytes = Max(bson_iter_as_double(&iter), 0);
	mongo_cursor_close(cursor);

	MemoryContextSwitchTo(previous);
	MemoryContextDelete(context);
	return bytes;
}
