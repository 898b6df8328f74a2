/*-------------------------------------------------------------------------
 *
 * document_size.c
 *		How large the documents of a collection are.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "document_size.h"

#include "bson_write.h"
#include "cursor.h"
#include "derived.h"
#include "encoding.h"
#include "utils/memutils.h"

/* As many as tell the size of documents well enough to plan with. */
#define SAMPLED_DOCUMENTS	100

static const bson_t *
size_command(const MongoTableOptions *options)
{
	BsonArray	stages = bson_array_create();

	mongo_append_deriving_stages(&stages, options);
	bson_array_append_template(&stages, "{$sample: {size: @1}}",
							   bson_int32(SAMPLED_DOCUMENTS));
	bson_array_append_template(&stages,
							   "{$group: {_id: null, bytes: {$avg: {$bsonSize: '$$ROOT'}}}}");
	return bson_from_template("{aggregate: @1, pipeline: @2, cursor: {}}",
							  bson_utf8(mongo_to_utf8(options->collection)),
							  bson_array(stages.bson));
}

double
mongo_average_document_size(UserMapping *user, const MongoTableOptions *options)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "mongo_fdw document size",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext previous = MemoryContextSwitchTo(context);
	MongoCursor *cursor;
	const uint8_t *document;
	uint32		length;
	bson_iter_t iter;
	double		bytes = 0;

	cursor = mongo_cursor_open(context, user, mongo_to_utf8(options->database),
							   options->collection, size_command(options), 0);
	mongo_cursor_send_as(cursor, options->read_mode, options->comment);
	document = mongo_cursor_next(cursor, &length);
	if (document != NULL && bson_iter_init_from_data(&iter, document, length) &&
		bson_iter_find(&iter, "bytes"))
		bytes = Max(bson_iter_as_double(&iter), 0);
	mongo_cursor_close(cursor);

	MemoryContextSwitchTo(previous);
	MemoryContextDelete(context);
	return bytes;
}
