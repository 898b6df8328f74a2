/*-------------------------------------------------------------------------
 *
 * json.c
 *		Load documents from a file of JSON lines, and find some of them.
 *
 * json load URI DATABASE.COLLECTION FILE BATCH
 *		insert all of them with libmongoc, BATCH a command; 1 is one by one.
 *
 * json match URI DATABASE.COLLECTION FIELD STRING
 *		read all documents in which a field is a string.
 *
 * Prints one line of JSON; reading the file is not part of the time.
 *
 *-------------------------------------------------------------------------
 */
#include "common.h"

static bson_t **
read_documents(const char *path, size_t *count)
{
	bson_t	  **documents = NULL;
	bson_json_reader_t *reader;
	bson_error_t error;
	bson_t		document = BSON_INITIALIZER;

	reader = bson_json_reader_new_from_file(path, &error);
	if (reader == NULL)
		fail(error.message);
	*count = 0;
	for (;;)
	{
		int			found = bson_json_reader_read(reader, &document, &error);

		if (found < 0)
			fail(error.message);
		if (found == 0)
			break;
		documents = realloc(documents, (*count + 1) * sizeof(*documents));
		documents[(*count)++] = bson_copy(&document);
		bson_reinit(&document);
	}
	bson_json_reader_destroy(reader);
	bson_destroy(&document);
	return documents;
}

static void
report(size_t documents, double started, double cpu)
{
	printf("{\"documents\": %zu, \"seconds\": %.4f, \"cpu_seconds\": %.4f}\n",
		   documents, now() - started, cpu_seconds() - cpu);
}

static void
run_load(mongoc_collection_t *collection, const char *path, size_t batch)
{
	size_t		count;
	bson_t	  **documents = read_documents(path, &count);
	double		cpu = cpu_seconds();
	double		started = now();
	bson_error_t error;

	for (size_t i = 0; i < count; i += batch)
	{
		size_t		length = count - i < batch ? count - i : batch;

		if (!mongoc_collection_insert_many(collection, (const bson_t **) documents + i,
										   length, NULL, NULL, &error))
			fail(error.message);
	}
	report(count, started, cpu);
}

static void
run_match(mongoc_collection_t *collection, const char *field, const char *value)
{
	double		cpu = cpu_seconds();
	double		started = now();
	bson_t		filter = BSON_INITIALIZER;
	const bson_t *document;
	mongoc_cursor_t *cursor;
	bson_error_t error;
	size_t		count = 0;

	BSON_APPEND_UTF8(&filter, field, value);
	cursor = mongoc_collection_find_with_opts(collection, &filter, NULL, NULL);
	while (mongoc_cursor_next(cursor, &document))
		count++;
	if (mongoc_cursor_error(cursor, &error))
		fail(error.message);
	report(count, started, cpu);
	mongoc_cursor_destroy(cursor);
	bson_destroy(&filter);
}

int
main(int argc, char **argv)
{
	mongoc_client_t *client;
	mongoc_collection_t *collection;
	char	   *name;

	if (argc != 6)
		fail("usage: json load URI DB.COLLECTION FILE BATCH | json match URI DB.COLLECTION FIELD STRING");
	mongoc_init();
	client = connect_to(argv[2]);
	name = split_namespace(argv[3]);
	collection = mongoc_client_get_collection(client, argv[3], name);
	if (strcmp(argv[1], "load") == 0 && atoi(argv[5]) > 0)
		run_load(collection, argv[4], atoi(argv[5]));
	else if (strcmp(argv[1], "match") == 0)
		run_match(collection, argv[4], argv[5]);
	else
		fail("unknown workload, or a batch of less than 1");
	mongoc_collection_destroy(collection);
	mongoc_client_destroy(client);
	mongoc_cleanup();
	return 0;
}
