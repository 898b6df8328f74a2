/*-------------------------------------------------------------------------
 *
 * import_remote.c
 *		What IMPORT FOREIGN SCHEMA asks MongoDB: which collections there are,
 *		some of their documents, and their indexes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "import.h"

#include "bson_memory.h"
#include "bson_walk.h"
#include "bson_write.h"
#include "command.h"
#include "cursor.h"
#include "encoding.h"
#include "index_keys.h"
#include "miscadmin.h"
#include "row_count.h"

/* Documents per getMore of a sample: they may be large. */
#define SAMPLE_BATCH	100

/* MongoDB's code for what the user may not do. */
#define UNAUTHORIZED	13

/* next_entry views the cursor's next document; false at the end. */
static bool
next_entry(MongoCursor *cursor, bson_t *document)
{
	uint32		length;
	const uint8_t *data = mongo_cursor_next(cursor, &length);

	CHECK_FOR_INTERRUPTS();
	if (data == NULL)
		return false;
	if (!bson_view(document, data, length))
		mongo_report_bad_bson();
	return true;
}

static MongoCursor *
open_cursor(const ImportSource *source, const char *collection,
			const bson_t *command)
{
	return mongo_cursor_open(CurrentMemoryContext, source->user,
							 mongo_to_utf8(source->database), collection, command, 0);
}

/* ------------------------------ collections -------------------------------- */

static int
compare_collections(const ListCell *a, const ListCell *b)
{
	return strcmp(((ImportCollection *) lfirst(a))->name,
				  ((ImportCollection *) lfirst(b))->name);
}

/* collection_from_entry: NULL for one that is not for users. */
static ImportCollection *
collection_from_entry(const bson_t *entry)
{
	ImportCollection *collection = palloc0(sizeof(ImportCollection));
	bson_iter_t iter;
	bson_iter_t value;
	bson_t		validator;
	const uint8_t *data;
	uint32_t	length;

	if (!bson_iter_init_find(&iter, entry, "name") || !BSON_ITER_HOLDS_UTF8(&iter) ||
		strncmp(bson_iter_utf8(&iter, NULL), "system.", strlen("system.")) == 0)
		return NULL;
	collection->name = mongo_from_utf8(pstrdup(bson_iter_utf8(&iter, NULL)));

	if (bson_iter_init_find(&iter, entry, "type") && BSON_ITER_HOLDS_UTF8(&iter))
		collection->is_view = strcmp(bson_iter_utf8(&iter, NULL), "view") == 0;

	if (bson_iter_init(&iter, entry) &&
		bson_iter_find_descendant(&iter, "options.validator", &value) &&
		BSON_ITER_HOLDS_DOCUMENT(&value))
	{
		bson_iter_document(&value, &length, &data);
		if (bson_view(&validator, data, length))
			collection->validator = bson_copy_in(CurrentMemoryContext, &validator);
	}
	return collection;
}

/*
 * may_list_collections: is the MongoDB user allowed to see them all?  Who is not may
 * be told the names of those that he has a privilege for, and nothing more.
 */
static bool
may_list_collections(const ImportSource *source)
{
	const bson_t *command = bson_from_template("{listCollections: 1, nameOnly: true,"
											   " cursor: {batchSize: 0}}");
	const bson_t *reply = mongo_run_command(CurrentMemoryContext, source->user,
											mongo_to_utf8(source->database), command, true, NULL);
	bson_iter_t iter;

	return !bson_iter_init_find(&iter, reply, "code") || !BSON_ITER_HOLDS_NUMBER(&iter) ||
		bson_iter_as_int64(&iter) != UNAUTHORIZED;
}

List *
import_list_collections(const ImportSource *source)
{
	const char *template = may_list_collections(source) ? "{listCollections: 1}" :
		"{listCollections: 1, nameOnly: true, authorizedCollections: true}";
	const bson_t *command = bson_from_template(template);
	MongoCursor *cursor;
	bson_t		entry;
	List	   *result = NIL;

	cursor = open_cursor(source, "$cmd.listCollections", command);
	while (next_entry(cursor, &entry))
	{
		ImportCollection *collection = collection_from_entry(&entry);

		if (collection != NULL)
			result = lappend(result, collection);
	}
	mongo_cursor_close(cursor);

	list_sort(result, compare_collections);
	return result;
}

/* ------------------------------ documents ---------------------------------- */

/*
 * sample_command
 *		All documents in their order if they are few enough, else a random
 *		sample.
 */
static const bson_t *
sample_command(const ImportSource *source, const ImportCollection *collection)
{
	BsonArray	pipeline = bson_array_create();
	MongoTableOptions options = {
		.database = source->database, .collection = collection->name
	};

	if (mongo_refresh_row_count(source->user, &options) > source->sample_size)
		bson_array_append_template(&pipeline, "{$sample: {size: @1}}",
								   bson_int32(source->sample_size));
	return bson_from_template("{aggregate: @1, pipeline: @2, allowDiskUse: true,"
							  " cursor: {batchSize: @3}}",
							  bson_utf8(mongo_to_utf8(collection->name)),
							  bson_array(pipeline.bson), bson_int32(SAMPLE_BATCH));
}

ImportField *
import_sample(const ImportSource *source, const ImportCollection *collection)
{
	ImportField *root = import_root_create();
	MongoCursor *cursor;
	const uint8_t *data;
	uint32		length;
	bson_iter_t schema;

	if (collection->validator != NULL &&
		bson_iter_init_find(&schema, collection->validator, "$jsonSchema") &&
		BSON_ITER_HOLDS_DOCUMENT(&schema))
		import_observe_schema(root, &schema, source->nesting);

	cursor = mongo_cursor_open(CurrentMemoryContext, source->user,
							   mongo_to_utf8(source->database), collection->name,
							   sample_command(source, collection), SAMPLE_BATCH);
	while ((data = mongo_cursor_next(cursor, &length)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		import_observe_document(root, data, length, source->nesting);
	}
	mongo_cursor_close(cursor);

	return root;
}

/* ------------------------------ indexes ------------------------------------ */

List *
import_indexed_paths(const ImportSource *source, const ImportCollection *collection,
					 bool *known)
{
	BsonArray	indexes;
	const char *refusal;
	bson_iter_t iter;
	bson_t		listed;
	List	   *result = NIL;

	*known = true;
	if (collection->is_view)
		return NIL;

	*known = index_list(source->user, source->database, collection->name, &indexes,
						&refusal) != INDEXES_REFUSED;
	if (!*known)
		ereport(NOTICE,
				(errmsg("could not list the indexes of collection \"%s.%s\"",
						source->database, collection->name),
				 errdetail("MongoDB answered: %s", refusal)));
	if (!bson_iter_init(&iter, indexes.bson))
		elog(ERROR, "list of indexes is malformed");
	while (index_next(&iter, &listed))
	{
		MongoIndex	index;

		/* the option indexed is taken for both */
		if (index_parse(&listed, &index) && (index.uses & MONGO_INDEX_RANGE) != 0)
			result = lappend(result, pstrdup(index.keys[0].path));
	}
	return result;
}
