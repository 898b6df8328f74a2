/*-------------------------------------------------------------------------
 *
 * counts.c
 *		Count documents with MongoDB's count command, from a C program.
 *
 * counts URI DATABASE.COLLECTION SECONDS WIDTH KEYS [BOUND]
 *		again and again, counts documents with "a" in a random range of WIDTH
 *		keys among KEYS, and "x" of at least BOUND if there is one.  With
 *		WIDTH 0 counts all, which MongoDB answers from the collection's
 *		metadata; with WIDTH "aggregate" does so exactly, as the driver's
 *		count_documents does.
 *
 * counts URI DATABASE.COLLECTION SECONDS ping
 *		pings instead, for the cost of a round trip.
 *
 * Prints one line of JSON.
 *
 *-------------------------------------------------------------------------
 */
#include "common.h"

/* Run a command; the field "n" of its reply, or of the first document in that. */
static long
run_command(mongoc_client_t *client, const char *database, const bson_t *command)
{
	bson_t		reply;
	bson_iter_t iter;
	bson_iter_t n;
	bson_error_t error;
	long		result = 0;

	if (!mongoc_client_read_command_with_opts(client, database, command, NULL, NULL,
											  &reply, &error))
		fail(error.message);
	if (bson_iter_init_find(&iter, &reply, "n"))
		result = bson_iter_as_int64(&iter);
	else if (bson_iter_init(&iter, &reply) &&
			 bson_iter_find_descendant(&iter, "cursor.firstBatch.0.n", &n))
		result = bson_iter_as_int64(&n);
	bson_destroy(&reply);
	return result;
}

static bson_t *
count_command(const char *collection, int first, int width, const char *bound)
{
	bson_t	   *command = BCON_NEW("count", BCON_UTF8(collection));
	bson_t	   *query;

	if (width == 0)
		return command;
	query = BCON_NEW("a", "{", "$gte", BCON_INT32(first),
					 "$lt", BCON_INT32(first + width), "}");
	if (bound)
		BCON_APPEND(query, "x", "{", "$gte", BCON_INT32(atoi(bound)), "}");
	BSON_APPEND_DOCUMENT(command, "query", query);
	bson_destroy(query);
	return command;
}

int
main(int argc, char **argv)
{
	mongoc_client_t *client;
	char	   *collection;
	unsigned int seed = 1;
	long		operations = 0;
	long		documents = 0;
	double		seconds;
	double		started;
	bool		ping;

	if (argc < 5)
		fail("usage: counts URI DB.COLLECTION SECONDS WIDTH KEYS [BOUND] | ... SECONDS ping");
	ping = strcmp(argv[4], "ping") == 0;
	if (!ping && argc < 6)
		fail("the number of keys is missing");
	mongoc_init();
	client = connect_to(argv[1]);
	collection = split_namespace(argv[2]);

	started = now();
	do
	{
		int			width = atoi(argv[4]);
		bson_t	   *command;

		if (ping)
			command = BCON_NEW("ping", BCON_INT32(1));
		else if (strcmp(argv[4], "aggregate") == 0)
			command = BCON_NEW("aggregate", BCON_UTF8(collection),
							   "pipeline", "[", "{", "$group", "{", "_id", BCON_INT32(1),
							   "n", "{", "$sum", BCON_INT32(1), "}", "}", "}", "]",
							   "cursor", "{", "}");
		else
			command = count_command(collection, rand_r(&seed) % (atoi(argv[5]) - width),
									width, argc > 6 ? argv[6] : NULL);
		documents += run_command(client, argv[2], command);
		bson_destroy(command);
		operations++;
		seconds = now() - started;
	} while (seconds < atof(argv[3]));

	printf("{\"transactions\": %ld, \"latency_ms\": %.4f, \"documents\": %.1f}\n",
		   operations, 1000 * seconds / operations, (double) documents / operations);
	mongoc_client_destroy(client);
	mongoc_cleanup();
	return 0;
}
