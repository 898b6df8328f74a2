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

#include <sys/resource.h>

typedef struct Worker
{
	pthread_t	thread;
	const char *uri;
	const char *database;
	const char *collection;
	unsigned int seed;
	int			documents;
	long		operations;
	double		seconds;		/* spent in operations, connecting excluded */
} Worker;

static double run_seconds;
static const char *key_field = "id";
static pthread_barrier_t start_line;

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
point_worker(void *argument)
{
	Worker	   *worker = argument;
	mongoc_client_t *client = connect_to(worker->uri);
	mongoc_collection_t *collection;
	bson_t	   *options;
	double		started;

	collection = mongoc_client_get_collection(client, worker->database,
											  worker->collection);
	options = BCON_NEW("limit", BCON_INT64(1));
	if (strcmp(key_field, "id") == 0)
		BCON_APPEND(options, "projection", "{", "_id", BCON_INT32(0),
					"id", BCON_INT32(1), "info", BCON_INT32(1),
					"crt_time", BCON_INT32(1), "}");
	find_one(collection, options, 1);	/* connects */

	pthread_barrier_wait(&start_line);
	started = now();
	do
	{
		int			id = 1 + rand_r(&worker->seed) % worker->documents;

		if (!find_one(collection, options, id))
			fail("a document is missing");
		worker->operations++;
		worker->seconds = now() - started;
	} while (worker->seconds < run_seconds);

	bson_destroy(options);
	mongoc_collection_destroy(collection);
	mongoc_client_destroy(client);
	return NULL;
}

static void
run_point(const char *uri, const char *database, const char *collection,
		  int threads, int documents)
{
	Worker	   *workers = calloc(threads, sizeof(Worker));
	long		operations = 0;
	double		tps = 0;

	pthread_barrier_init(&start_line, NULL, threads);
	for (int i = 0; i < threads; i++)
	{
		workers[i] = (Worker) {
			.uri = uri,.database = database,.collection = collection,
			.seed = 1 + i,.documents = documents
		};
		if (pthread_create(&workers[i].thread, NULL, point_worker, &workers[i]) != 0)
			fail("could not start a thread");
	}
	for (int i = 0; i < threads; i++)
	{
		pthread_join(workers[i].thread, NULL);
		operations += workers[i].operations;
		tps += workers[i].operations / workers[i].seconds;
	}
	printf("{\"transactions\": %ld, \"tps\": %.1f, \"latency_ms\": %.4f}\n",
		   operations, tps, 1000.0 * threads / tps);
	free(workers);
}

/* What this process has computed so far, in user and system mode. */
static double
cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6 +
		usage.ru_stime.tv_sec + usage.ru_stime.tv_usec / 1e6;
}

static void
run_scan(const char *uri, const char *database, const char *name,
		 char **fields, int nfields)
{
	mongoc_client_t *client = connect_to(uri);
	mongoc_collection_t *collection;
	bson_t		filter = BSON_INITIALIZER;
	bson_t		options = BSON_INITIALIZER;
	const bson_t *document;
	mongoc_cursor_t *cursor;
	bson_error_t error;
	double		started;
	long		documents = 0;

	collection = mongoc_client_get_collection(client, database, name);
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
		documents++;
	}
	if (mongoc_cursor_error(cursor, &error))
		fail(error.message);
	printf("{\"documents\": %ld, \"seconds\": %.4f, \"cpu_seconds\": %.4f}\n",
		   documents, now() - started, cpu_seconds());
	mongoc_cursor_destroy(cursor);
	bson_destroy(&options);
	bson_destroy(&filter);
	mongoc_collection_destroy(collection);
	mongoc_client_destroy(client);
}

int
main(int argc, char **argv)
{
	char	   *database;
	char	   *collection;

	if (argc < 4)
		fail("usage: native point URI DB.COLLECTION THREADS SECONDS DOCUMENTS [FIELD] | native scan URI DB.COLLECTION [FIELD ...]");
	database = argv[3];
	collection = split_namespace(database);

	mongoc_init();
	if (strcmp(argv[1], "point") == 0 && (argc == 7 || argc == 8))
	{
		if (argc == 8)
			key_field = argv[7];
		run_seconds = atof(argv[5]);
		run_point(argv[2], database, collection, atoi(argv[4]), atoi(argv[6]));
	}
	else if (strcmp(argv[1], "scan") == 0)
		run_scan(argv[2], database, collection, argv + 4, argc - 4);
	else
		fail("unknown workload or wrong number of arguments");
	mongoc_cleanup();
	return 0;
}
