/*-------------------------------------------------------------------------
 *
 * oltp.c
 *		The scripts in bench/oltp, as a C program with libmongoc has them.
 *
 * oltp point_select|read_only|read_write URI DATABASE.COLLECTION
 *		THREADS SECONDS DOCUMENTS [transaction]
 *
 * A client a thread.  With "transaction", the writes of read_write are one
 * MongoDB transaction, which is begun again after a conflict with another.
 * Prints one line of JSON.
 *
 *-------------------------------------------------------------------------
 */
#include "common.h"

#define RANGE_SIZE 100

typedef struct Worker Worker;

typedef void (*Script) (Worker *worker);

/* A thread's own. */
struct Worker
{
	unsigned int seed;
	mongoc_client_t *client;
	mongoc_collection_t *collection;
	bson_t	   *project_c;		/* options of find */
	bson_t	   *project_c_one;
	bson_t	   *project_c_sorted;
	long		retries;
	long		bytes;			/* read, so that reading is not optimized away */
};

/* What the program was asked for. */
static const char *uri;
static const char *database;
static const char *collection_name;
static Script script;
static bool in_transaction;
static int	documents;

static long all_retries;		/* of the threads that have ended */

static int
random_id(Worker *worker)
{
	return 1 + rand_r(&worker->seed) % documents;
}

/* Groups of 11 random digits with dashes between; needs 12 bytes a group. */
static void
random_string(Worker *worker, char *result, int groups)
{
	int			length = 12 * groups - 1;

	for (int i = 0; i < length; i++)
		result[i] = i % 12 == 11 ? '-' : '0' + rand_r(&worker->seed) % 10;
	result[length] = '\0';
}

/* Read what a cursor has, every field of it, and end it. */
static void
consume(Worker *worker, mongoc_cursor_t *cursor)
{
	const bson_t *document;
	bson_error_t error;

	while (mongoc_cursor_next(cursor, &document))
	{
		bson_iter_t iter;
		uint32_t	length;

		if (!bson_iter_init(&iter, document))
			fail("malformed document");
		while (bson_iter_next(&iter))
		{
			if (BSON_ITER_HOLDS_UTF8(&iter))
			{
				bson_iter_utf8(&iter, &length);
				worker->bytes += length;
			}
			else
				worker->bytes += bson_iter_as_int64(&iter) != 0;
		}
	}
	if (mongoc_cursor_error(cursor, &error))
		fail(error.message);
	mongoc_cursor_destroy(cursor);
}

static void
point_select(Worker *worker)
{
	bson_t		filter = BSON_INITIALIZER;

	BSON_APPEND_INT32(&filter, "_id", random_id(worker));
	consume(worker, mongoc_collection_find_with_opts(worker->collection, &filter,
													 worker->project_c_one, NULL));
	bson_destroy(&filter);
}

static bson_t *
random_range(Worker *worker)
{
	int			first = random_id(worker);

	return BCON_NEW("_id", "{", "$gte", BCON_INT32(first),
					"$lte", BCON_INT32(first + RANGE_SIZE), "}");
}

static void
range_select(Worker *worker, const bson_t *options)
{
	bson_t	   *filter = random_range(worker);

	consume(worker, mongoc_collection_find_with_opts(worker->collection, filter, options, NULL));
	bson_destroy(filter);
}

/* $match over a random range, then the $group. */
static void
range_group(Worker *worker, const bson_t *group)
{
	bson_t	   *filter = random_range(worker);
	bson_t	   *pipeline = BCON_NEW("pipeline", "[",
									"{", "$match", BCON_DOCUMENT(filter), "}",
									"{", "$group", BCON_DOCUMENT(group), "}", "]");

	consume(worker, mongoc_collection_aggregate(worker->collection, MONGOC_QUERY_NONE,
												pipeline, NULL, NULL));
	bson_destroy(pipeline);
	bson_destroy(filter);
}

static void
read_only(Worker *worker)
{
	bson_t	   *sum = BCON_NEW("_id", BCON_NULL, "sum", "{", "$sum", BCON_UTF8("$k"), "}");
	bson_t	   *distinct = BCON_NEW("_id", BCON_UTF8("$c"));

	for (int i = 0; i < 10; i++)
		point_select(worker);
	range_select(worker, worker->project_c);
	range_group(worker, sum);
	range_select(worker, worker->project_c_sorted);
	range_group(worker, distinct);
	bson_destroy(sum);
	bson_destroy(distinct);
}

static bool
update_one(Worker *worker, const bson_t *options, int id, const bson_t *update,
		   bson_t *reply, bson_error_t *error)
{
	bson_t		filter = BSON_INITIALIZER;
	bool		done;

	BSON_APPEND_INT32(&filter, "_id", id);
	if (update)
		done = mongoc_collection_update_one(worker->collection, &filter, update, options, reply, error);
	else
		done = mongoc_collection_delete_one(worker->collection, &filter, options, reply, error);
	bson_destroy(&filter);
	return done;
}

static bool
insert_one(Worker *worker, const bson_t *options, int id, bson_t *reply, bson_error_t *error)
{
	bson_t		document = BSON_INITIALIZER;
	char		c[12 * 10];
	char		pad[12 * 5];
	bool		done;

	random_string(worker, c, 10);
	random_string(worker, pad, 5);
	BSON_APPEND_INT32(&document, "_id", id);
	BSON_APPEND_INT32(&document, "k", random_id(worker));
	BSON_APPEND_UTF8(&document, "c", c);
	BSON_APPEND_UTF8(&document, "pad", pad);
	done = mongoc_collection_insert_one(worker->collection, &document, options, reply, error);
	bson_destroy(&document);

	/* ON CONFLICT DO NOTHING */
	return done || (!in_transaction && error->code == 11000);
}

/* The four writes, up to the first that fails; its reply and error. */
static bool
write_all(Worker *worker, const bson_t *options, bson_t *reply, bson_error_t *error)
{
	char		c[12 * 10];
	int			replaced = random_id(worker);
	bson_t	   *increment = BCON_NEW("$inc", "{", "k", BCON_INT32(1), "}");
	bson_t	   *set;
	bool		done;

	random_string(worker, c, 10);
	set = BCON_NEW("$set", "{", "c", BCON_UTF8(c), "}");

	done = update_one(worker, options, random_id(worker), increment, reply, error);
	if (done)
	{
		bson_destroy(reply);
		done = update_one(worker, options, random_id(worker), set, reply, error);
	}
	if (done)
	{
		bson_destroy(reply);
		done = update_one(worker, options, replaced, NULL, reply, error);
	}
	if (done)
	{
		bson_destroy(reply);
		done = insert_one(worker, options, replaced, reply, error);
	}
	bson_destroy(increment);
	bson_destroy(set);
	return done;
}

/* One attempt at the writes as a transaction. */
static bool
write_in_transaction(Worker *worker)
{
	bson_t		options = BSON_INITIALIZER;
	bson_t		reply;
	bson_error_t error;
	mongoc_client_session_t *session = begin_transaction(worker->client, &options);
	bool		done = write_all(worker, &options, &reply, &error);

	if (done)
	{
		bson_destroy(&reply);
		done = mongoc_client_session_commit_transaction(session, &reply, &error);
	}
	else
		mongoc_client_session_abort_transaction(session, NULL);

	/* 11000: the document came back while it was being replaced */
	if (!done && error.code != 11000 &&
		!mongoc_error_has_label(&reply, "TransientTransactionError"))
		fail(error.message);
	bson_destroy(&reply);
	bson_destroy(&options);
	mongoc_client_session_destroy(session);
	return done;
}

static void
read_write(Worker *worker)
{
	bson_t		reply;
	bson_error_t error;

	read_only(worker);
	if (in_transaction)
	{
		while (!write_in_transaction(worker))
			worker->retries++;
		return;
	}
	if (!write_all(worker, NULL, &reply, &error))
		fail(error.message);
	bson_destroy(&reply);
}

static void *
begin_work(unsigned int seed)
{
	Worker	   *worker = calloc(1, sizeof(Worker));

	worker->seed = seed;
	worker->client = connect_to(uri);
	worker->collection = mongoc_client_get_collection(worker->client, database, collection_name);
	worker->project_c = BCON_NEW("projection", "{", "c", BCON_INT32(1), "}");
	worker->project_c_one = BCON_NEW("projection", "{", "c", BCON_INT32(1), "}", "limit", BCON_INT64(1));
	worker->project_c_sorted = BCON_NEW("projection", "{", "c", BCON_INT32(1), "}",
										"sort", "{", "c", BCON_INT32(1), "}");
	return worker;
}

static void
work(void *state)
{
	script(state);
}

static void
end_work(void *state)
{
	Worker	   *worker = state;

	__atomic_fetch_add(&all_retries, worker->retries, __ATOMIC_RELAXED);
	bson_destroy(worker->project_c);
	bson_destroy(worker->project_c_one);
	bson_destroy(worker->project_c_sorted);
	mongoc_collection_destroy(worker->collection);
	mongoc_client_destroy(worker->client);
	free(worker);
}

static const struct
{
	const char *name;
	Script		script;
}			scripts[] = {
	{"point_select", point_select},
	{"read_only", read_only},
	{"read_write", read_write},
};

static Script
script_named(const char *name)
{
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
	{
		if (strcmp(scripts[i].name, name) == 0)
			return scripts[i].script;
	}
	fail("no such script");
	return NULL;
}

int
main(int argc, char **argv)
{
	const Workload workload = {
		.begin = begin_work, .operate = work, .end = end_work,
		.retries = &all_retries
	};

	if (argc < 7)
		fail("usage: oltp SCRIPT URI DB.COLLECTION THREADS SECONDS DOCUMENTS [transaction]");
	mongoc_init();
	script = script_named(argv[1]);
	uri = argv[2];
	database = argv[3];
	collection_name = split_namespace(argv[3]);
	documents = atoi(argv[6]);
	in_transaction = argc > 7;
	run_threads(&workload, atoi(argv[4]), atof(argv[5]));
	mongoc_cleanup();
	return 0;
}
