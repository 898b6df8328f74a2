/*-------------------------------------------------------------------------
 *
 * floor.c
 *		The least that a client can do: OP_MSG framed by hand on a socket.
 *
 * libbson makes and reads documents; nothing else is between this program and
 * the server: no topology, no session, no retry, no TLS.
 *
 * floor point HOST PORT DATABASE.COLLECTION THREADS SECONDS DOCUMENTS
 *		find one document by a random id, in each thread on a socket of its own.
 *
 * floor scan HOST PORT DATABASE.COLLECTION [FIELD ...]
 *		read the whole collection; each getMore is sent before the batch in
 *		hand is read.
 *
 * Every field is read.  Prints one line of JSON.
 *
 *-------------------------------------------------------------------------
 */
#include "common.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* A message: length, request id, response to, opcode, flags, section kind. */
#define PREFIX_SIZE		21
#define OP_MSG			2013
#define SCAN_BATCH_SIZE 10000

typedef struct Connection
{
	int			socket;
	int32_t		request;
	uint8_t    *reply;
	size_t		capacity;
} Connection;

static const char *host;
static const char *port;
static const char *database;
static const char *collection;
static int	documents;			/* of "floor point" */

static void
open_connection(Connection *connection)
{
	struct sockaddr_in address = {.sin_family = AF_INET,.sin_port = htons(atoi(port))};
	int			on = 1;

	memset(connection, 0, sizeof(*connection));
	connection->socket = socket(AF_INET, SOCK_STREAM, 0);
	if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
		fail("the host must be an IPv4 address");
	if (connect(connection->socket, (struct sockaddr *) &address, sizeof(address)) != 0)
		fail("could not connect");
	setsockopt(connection->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	connection->capacity = 64 * 1024;
	connection->reply = malloc(connection->capacity);
}

static void
send_command(Connection *connection, const bson_t *command)
{
	uint8_t		message[4096];
	int32_t		header[5] = {(int32_t) (PREFIX_SIZE + command->len), ++connection->request, 0, OP_MSG, 0};

	if (PREFIX_SIZE + command->len > sizeof(message))
		fail("command too long");
	memcpy(message, header, sizeof(header));
	message[sizeof(header)] = 0;
	memcpy(message + PREFIX_SIZE, bson_get_data(command), command->len);
	if (send(connection->socket, message, header[0], MSG_NOSIGNAL) != header[0])
		fail("could not send");
}

/* The reply's document, valid until the next reply is received. */
static void
receive_reply(Connection *connection, bson_t *reply)
{
	size_t		have = 0;
	size_t		length = 4;

	while (have < length)
	{
		ssize_t		got = recv(connection->socket, connection->reply + have,
							   connection->capacity - have, 0);
		int32_t		announced;

		if (got <= 0)
			fail("connection lost");
		have += got;
		if (have < 4)
			continue;
		memcpy(&announced, connection->reply, 4);
		length = announced;
		if (length > connection->capacity)
		{
			connection->capacity = length;
			connection->reply = realloc(connection->reply, length);
		}
	}
	if (!bson_init_static(reply, connection->reply + PREFIX_SIZE, length - PREFIX_SIZE))
		fail("malformed reply");
}

/* Read every field of a document. */
static long
consume(const bson_iter_t *document)
{
	bson_iter_t field;
	long		total = 0;

	bson_iter_recurse(document, &field);
	while (bson_iter_next(&field))
	{
		uint32_t	length = 0;

		if (BSON_ITER_HOLDS_UTF8(&field))
		{
			bson_iter_utf8(&field, &length);
			total += length;
		}
		else if (BSON_ITER_HOLDS_DATE_TIME(&field))
			total += bson_iter_date_time(&field);
		else
			total += bson_iter_as_int64(&field);
	}
	return total;
}

/* The documents of a batch and the cursor that has more; 0 when none has. */
static int64_t
open_batch(const bson_t *reply, bson_iter_t *documents)
{
	bson_iter_t field;
	bson_iter_t cursor;
	int64_t		id = -1;
	bool		has_batch = false;

	if (!bson_iter_init_find(&field, reply, "cursor") || !bson_iter_recurse(&field, &cursor))
		fail(bson_as_relaxed_extended_json(reply, NULL));
	while (bson_iter_next(&cursor))
	{
		if (strcmp(bson_iter_key(&cursor), "id") == 0)
			id = bson_iter_int64(&cursor);
		else if (BSON_ITER_HOLDS_ARRAY(&cursor))
			has_batch = bson_iter_recurse(&cursor, documents);
	}
	if (id < 0 || !has_batch)
		fail("a reply has no cursor");
	return id;
}

/* A thread of "floor point". */
typedef struct PointReader
{
	Connection	connection;
	unsigned int seed;
} PointReader;

static void
find_one(Connection *connection, int id)
{
	bson_t		command = BSON_INITIALIZER;
	bson_t		filter;
	bson_t		reply;
	bson_iter_t batch;

	BSON_APPEND_UTF8(&command, "find", collection);
	BSON_APPEND_DOCUMENT_BEGIN(&command, "filter", &filter);
	BSON_APPEND_INT32(&filter, "id", id);
	bson_append_document_end(&command, &filter);
	BSON_APPEND_UTF8(&command, "$db", database);
	send_command(connection, &command);
	receive_reply(connection, &reply);
	open_batch(&reply, &batch);
	if (!bson_iter_next(&batch))
		fail("a document is missing");
	consume(&batch);
	bson_destroy(&command);
}

static void *
begin_point(unsigned int seed)
{
	PointReader *reader = malloc(sizeof(PointReader));

	open_connection(&reader->connection);
	reader->seed = seed;
	find_one(&reader->connection, 1);
	return reader;
}

static void
read_point(void *state)
{
	PointReader *reader = state;

	find_one(&reader->connection, 1 + rand_r(&reader->seed) % documents);
}

static void
end_point(void *state)
{
	PointReader *reader = state;

	close(reader->connection.socket);
	free(reader->connection.reply);
	free(reader);
}

static const Workload point = {.begin = begin_point, .operate = read_point, .end = end_point};

static void
send_get_more(Connection *connection, int64_t cursor)
{
	bson_t		command = BSON_INITIALIZER;

	BSON_APPEND_INT64(&command, "getMore", cursor);
	BSON_APPEND_UTF8(&command, "collection", collection);
	BSON_APPEND_INT32(&command, "batchSize", SCAN_BATCH_SIZE);
	BSON_APPEND_UTF8(&command, "$db", database);
	send_command(connection, &command);
	bson_destroy(&command);
}

static void
run_scan(char **fields, int nfields)
{
	bson_t		command = BSON_INITIALIZER;
	bson_t		projection;
	Connection	connection;
	double		started;
	long		count = 0;
	int64_t		cursor;

	open_connection(&connection);
	BSON_APPEND_UTF8(&command, "find", collection);
	if (nfields > 0)
	{
		BSON_APPEND_DOCUMENT_BEGIN(&command, "projection", &projection);
		for (int i = 0; i < nfields; i++)
			BSON_APPEND_INT32(&projection, fields[i], 1);
		bson_append_document_end(&command, &projection);
	}
	BSON_APPEND_INT32(&command, "batchSize", SCAN_BATCH_SIZE);
	BSON_APPEND_UTF8(&command, "$db", database);
	started = now();
	send_command(&connection, &command);
	do
	{
		bson_t		reply;
		bson_iter_t batch;

		receive_reply(&connection, &reply);
		cursor = open_batch(&reply, &batch);
		if (cursor != 0)
			send_get_more(&connection, cursor);
		while (bson_iter_next(&batch))
		{
			consume(&batch);
			count++;
		}
	} while (cursor != 0);
	printf("{\"documents\": %ld, \"seconds\": %.4f, \"cpu_seconds\": %.4f}\n",
		   count, now() - started, cpu_seconds());
	bson_destroy(&command);
}

int
main(int argc, char **argv)
{
	if (argc < 5)
		fail("usage: floor point HOST PORT DB.COLLECTION THREADS SECONDS DOCUMENTS | floor scan HOST PORT DB.COLLECTION [FIELD ...]");
	host = argv[2];
	port = argv[3];
	database = argv[4];
	collection = split_namespace(argv[4]);
	if (strcmp(argv[1], "point") == 0 && argc == 8)
	{
		documents = atoi(argv[7]);
		run_threads(&point, atoi(argv[5]), atof(argv[6]));
	}
	else if (strcmp(argv[1], "scan") == 0)
		run_scan(argv + 5, argc - 5);
	else
		fail("unknown workload or wrong number of arguments");
	return 0;
}
