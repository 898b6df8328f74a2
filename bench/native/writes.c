/*-------------------------------------------------------------------------
 *
 * writes.c
 *		What an ordinary C program with libmongoc does to write.
 *
 * writes insert URI DATABASE.COLLECTION FILE BATCH [transaction]
 *		bulk inserts of BATCH documents each of the rows in FILE, which is in
 *		COPY's text format: id, k, c, pad.  Reading the file is not counted,
 *		building the documents is.
 *
 * writes update URI DATABASE.COLLECTION FIRST LAST [transaction]
 *		update_many over a range of k that sets pad.
 *
 * writes increment URI DATABASE.COLLECTION FIRST LAST [transaction]
 *		update_many over a range of _id that increments k.
 *
 * writes delete URI DATABASE.COLLECTION FIRST LAST [transaction]
 *		delete_many over a range of k.
 *
 * Prints one line of JSON.
 *
 *-------------------------------------------------------------------------
 */
#include "common.h"

typedef struct Row
{
	int			id;
	int			k;
	char	   *c;
	char	   *pad;
} Row;

/* Cut the field that begins at *position off at its delimiter. */
static char *
next_field(char **position, char delimiter)
{
	char	   *field = *position;
	char	   *end = strchr(field, delimiter);

	if (end == NULL)
		fail("malformed row");
	*end = '\0';
	*position = end + 1;
	return field;
}

/* All rows of the file; they live until the program ends. */
static Row *
read_rows(const char *name, long *count)
{
	FILE	   *file = fopen(name, "r");
	Row		   *rows = NULL;
	char	   *line = NULL;
	size_t		size = 0;
	long		capacity = 0;

	if (file == NULL)
		fail("could not open the file of rows");
	for (*count = 0; getline(&line, &size, file) > 0; (*count)++)
	{
		char	   *position = line;
		Row		   *row;

		if (*count == capacity)
		{
			capacity = capacity ? 2 * capacity : 1024;
			rows = realloc(rows, capacity * sizeof(Row));
		}
		row = &rows[*count];
		row->id = atoi(next_field(&position, '\t'));
		row->k = atoi(next_field(&position, '\t'));
		row->c = strdup(next_field(&position, '\t'));
		row->pad = strdup(next_field(&position, '\n'));
	}
	free(line);
	fclose(file);
	return rows;
}

static void
insert_rows(mongoc_collection_t *collection, const bson_t *options,
			const Row *rows, long count, long batch)
{
	for (long first = 0; first < count; first += batch)
	{
		mongoc_bulk_operation_t *bulk =
			mongoc_collection_create_bulk_operation_with_opts(collection, options);
		bson_error_t error;

		for (long i = first; i < count && i < first + batch; i++)
		{
			bson_t		document = BSON_INITIALIZER;

			BSON_APPEND_INT32(&document, "_id", rows[i].id);
			BSON_APPEND_INT32(&document, "k", rows[i].k);
			BSON_APPEND_UTF8(&document, "c", rows[i].c);
			BSON_APPEND_UTF8(&document, "pad", rows[i].pad);
			if (!mongoc_bulk_operation_insert_with_opts(bulk, &document, NULL, &error))
				fail(error.message);
			bson_destroy(&document);
		}
		if (mongoc_bulk_operation_execute(bulk, NULL, &error) == 0)
			fail(error.message);
		mongoc_bulk_operation_destroy(bulk);
	}
}

/* One update_many or delete_many; the number of documents that it met. */
static long
write_range(mongoc_collection_t *collection, const bson_t *options,
			const char *what, int first, int last)
{
	const char *field = strcmp(what, "increment") == 0 ? "_id" : "k";
	bson_t	   *filter = BCON_NEW(field, "{", "$gte", BCON_INT32(first),
								  "$lte", BCON_INT32(last), "}");
	bson_t		reply;
	bson_t	   *update = NULL;
	bson_iter_t iter;
	bson_error_t error;
	bool		done;
	long		count = 0;

	if (strcmp(what, "update") == 0)
		update = BCON_NEW("$set", "{", "pad", BCON_UTF8("changed"), "}");
	else if (strcmp(what, "increment") == 0)
		update = BCON_NEW("$inc", "{", "k", BCON_INT32(1), "}");

	done = update ?
		mongoc_collection_update_many(collection, filter, update, options, &reply, &error) :
		mongoc_collection_delete_many(collection, filter, options, &reply, &error);
	if (!done)
		fail(error.message);
	if (bson_iter_init_find(&iter, &reply, update ? "modifiedCount" : "deletedCount"))
		count = bson_iter_as_int64(&iter);

	bson_destroy(&reply);
	bson_destroy(filter);
	if (update)
		bson_destroy(update);
	return count;
}

int
main(int argc, char **argv)
{
	bson_t		options = BSON_INITIALIZER;
	mongoc_client_session_t *session = NULL;
	mongoc_client_t *client;
	mongoc_collection_t *collection;
	char	   *name;
	Row		   *rows = NULL;
	long		count = 0;
	double		started;

	if (argc < 6)
		fail("usage: writes insert URI DB.COLLECTION FILE BATCH [transaction] | "
			 "writes update|increment|delete URI DB.COLLECTION FIRST LAST [transaction]");
	mongoc_init();
	client = connect_to(argv[2]);
	name = split_namespace(argv[3]);
	collection = mongoc_client_get_collection(client, argv[3], name);
	if (strcmp(argv[1], "insert") == 0)
		rows = read_rows(argv[4], &count);

	started = now();
	if (argc > 6 && strcmp(argv[6], "transaction") == 0)
		session = begin_transaction(client, &options);
	if (rows)
		insert_rows(collection, &options, rows, count, atol(argv[5]));
	else
		count = write_range(collection, &options, argv[1], atoi(argv[4]), atoi(argv[5]));
	if (session)
		commit_transaction(session);
	printf("{\"documents\": %ld, \"seconds\": %.5f}\n", count, now() - started);

	bson_destroy(&options);
	mongoc_collection_destroy(collection);
	mongoc_client_destroy(client);
	mongoc_cleanup();
	return 0;
}
