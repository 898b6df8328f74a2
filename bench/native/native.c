/*-------------------------------------------------------------------------
 *
 * native.c
 *		What an ordinary C program with libmongoc does with the same MongoDB.
 *
 * native point URI DATABASE.COLLECTION THREADS SECONDS DOCUMENTS [FIELD]
 *		find one document by a random id, again and again, in each thread
 *		with a client of its own; every field is read.  FIELD instead of "id"
 *		is what is looked up, and then all fields come.
 *
 * native scan URI DATABASE.COLLECTION [FIELD ...]
 *		read the whole collection with one cursor, all fields or just these.
 *
 * Prints one line of JSON.
 *
 *-------------------------------------------------------------------------
 */
#include "common.h"

/* What "native point" was asked for. */
static const char *uri;
static const char *database;
static const char *collection_name;
static const char *key_field = "id";
static int	documents;

/* A thread of it. */
typedef struct PointReader
{
	mongoc_client_t *client;
	mongoc_collection_t *collection;
	bson_t	   *options;
	unsigned int seed;
} PointReader;

/* Read every field, as a program that wants the document does. */
static long
consume(const bson_t *document)
{
	bson_iter_t iter;
	long		total = 0;

	if (!bson_iter_init(&iter, document))
		fail("malformed document");
	while (bson_iter_next(&iter))
	{
		uint32_t	length;

		switch (bson_iter_type(&iter))
		{
			case BSON_TYPE_UTF8:
				bson_iter_utf8(&iter, &length);
				total += length;
				break;
			case BSON_TYPE_DATE_TIME:
				total += bson_iter_date_time(&iter);
				break;
			default:
				total += bson_iter_as_int64(&iter);
				break;
		}
	}
	return total;
}

/* Find one document by id; true when there was one. */
static bool
find_one(mongoc_collection_t *collection, const bson_t *options, int id)
{
	bson_t		filter = BSON_INITIALIZER;
	mongoc_cursor_t *cursor;
	const bson_t *document;
	bson_error_t error;
	bool		found = false;

	BSON_APPEND_INT32(&filter, key_field, id);
	cursor = mongoc_collection_find_with_opts(collection, &filter, options, NULL);
	while (mongoc_cursor_next(cursor, &document))
	{
		consume(document);
		found = true;
	}
	if (mongoc_cursor_error(cursor, &error))
		fail(error.message);
	mongoc_cursor_destroy(cursor);
	bson_destroy(&filter);
	return found;
}

static void *
begin_point(unsigned int seed)
{
	PointReader *reader = malloc(sizeof(PointReader));

	reader->client = connect_to(uri);
	reader->collection = mongoc_client_get_collection(reader->client, database,
													  collection_name);
	reader->seed = seed;
	reader->options = BCON_NEW("limit", BCON_INT64(1));
	if (strcmp(key_field, "id") == 0)
		BCON_APPEND(reader->options, "projection", "{", "_id", BCON_INT32(0),
					"id", BCON_INT32(1), "info", BCON_INT32(1),
					"crt_time", BCON_INT32(1), "}");
	find_one(reader->collection, reader->options, 1);	/* connects */
	return reader;
}

static void
read_point(void *state)
{
	PointReader *reader = state;
	int			id = 1 + rand_r(&reader->seed) % documents;

	if (!find_one(reader->collection, reader->options, id))
		fail("a document is missing");
}

static void
end_point(void *state)
{
	PointReader *reader = state;

	bson_destroy(reader->options);
	mongoc_collection_destroy(reader->collection);
	mongoc_client_destroy(reader->client);
	free(reader);
}

static const Workload point = {.begin = begin_point, .operate = read_point, .end = end_point};

static void
run_scan(char **fields, int nfields)
{
	mongoc_client_t *client = connect_to(uri);
	mongoc_collection_t *collection;
	bson_t		filter = BSON_INITIALIZER;
	bson_t		options = BSON_INITIALIZER;
	const bson_t *document;
	mongoc_cursor_t *cursor;
	bson_error_t error;
	double		started;
	long		count = 0;

	collection = mongoc_client_get_collection(client, database, collection_name);
	started = now();
	if (nfields > 0)
	{
		bson_t		projection;

		BSON_APPEND_DOCUMENT_BEGIN(&options, "projection", &projection);
		for (int i = 0; i < nfields; i++)
			BSON_APPEND_INT32(&projection, fields[i], 1);
		bson_append_document_end(&options, &projection);
	}
	cursor = mongoc_collection_find_with_opts(collection, &filter, &options, NULL);
	while (mongoc_cursor_next(cursor, &document))
	{
		consume(document);
		count++;
	}
	if (mongoc_cursor_error(cursor, &error))
		fail(error.message);
	printf("{\"documents\": %ld, \"seconds\": %.4f, \"cpu_seconds\": %.4f}\n",
		   count, now() - started, cpu_seconds());
	mongoc_cursor_destroy(cursor);
	bson_destroy(&options);
	bson_destroy(&filter);
	mongoc_collection_destroy(collection);
	mongoc_client_destroy(client);
}

int
main(int argc, char **argv)
{
	if (argc < 4)
		fail("usage: native point URI DB.COLLECTION THREADS SECONDS DOCUMENTS [FIELD] | native scan URI DB.COLLECTION [FIELD ...]");
	uri = argv[2];
	database = argv[3];
	collection_name = split_namespace(argv[3]);

	mongoc_init();
	if (strcmp(argv[1], "point") == 0 && (argc == 7 || argc == 8))
	{
		if (argc == 8)
			key_field = argv[7];
		documents = atoi(argv[6]);
		run_threads(&point, atoi(argv[4]), atof(argv[5]));
	}
	else if (strcmp(argv[1], "scan") == 0)
		run_scan(argv + 4, argc - 4);
	else
		fail("unknown workload or wrong number of arguments");
	mongoc_cleanup();
	return 0;
}
