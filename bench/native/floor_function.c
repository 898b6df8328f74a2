/*-------------------------------------------------------------------------
 *
 * floor_function.c
 *		The least that a wrapper can do inside PostgreSQL: a function that
 *		sends a find framed by hand and waits for its reply.
 *
 * floor_find(host text, port integer, namespace text, id integer) RETURNS text
 *		the field "info" of the document with this "id".  A backend keeps one
 *		socket, to the host and port of its first call.
 *
 * libbson makes and reads documents.  Nothing is planned, no type is checked,
 * and a wait cannot be cancelled.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <arpa/inet.h>
#include <bson/bson.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fmgr.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

/* A message: length, request id, response to, opcode, flags, section kind. */
#define PREFIX_SIZE		21
#define OP_MSG			2013
#define MOST_BYTES		(64 * 1024)

static int	server = -1;		/* the socket */
static int32 requests;
static uint8 message[MOST_BYTES];	/* a request, then its reply */

/* The next call connects anew. */
static void
lose(const char *what)
{
	close(server);
	server = -1;
	ereport(ERROR, (errcode(ERRCODE_CONNECTION_FAILURE), errmsg("floor_find: %s", what)));
}

static void
open_socket(const char *host, int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,.sin_port = htons(port)};
	int			on = 1;

	server = socket(AF_INET, SOCK_STREAM, 0);
	if (inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
		connect(server, (struct sockaddr *) &address, sizeof(address)) != 0)
		lose("could not connect");
	setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void
send_find(const char *database, const char *collection, int id)
{
	bson_t		command = BSON_INITIALIZER;
	bson_t		filter;
	int32		header[5] = {0, ++requests, 0, OP_MSG, 0};

	BSON_APPEND_UTF8(&command, "find", collection);
	BSON_APPEND_DOCUMENT_BEGIN(&command, "filter", &filter);
	BSON_APPEND_INT32(&filter, "id", id);
	bson_append_document_end(&command, &filter);
	BSON_APPEND_INT32(&command, "limit", 1);
	BSON_APPEND_BOOL(&command, "singleBatch", true);
	BSON_APPEND_UTF8(&command, "$db", database);
	if (PREFIX_SIZE + command.len > MOST_BYTES)
		lose("the namespace is too long");
	header[0] = PREFIX_SIZE + command.len;
	memcpy(message, header, sizeof(header));
	message[sizeof(header)] = 0;
	memcpy(message + PREFIX_SIZE, bson_get_data(&command), command.len);
	bson_destroy(&command);
	if (send(server, message, header[0], MSG_NOSIGNAL) != header[0])
		lose("could not send");
}

static void
receive_reply(bson_t *reply)
{
	int32		length = PREFIX_SIZE;

	for (int32 have = 0; have < length;)
	{
		ssize_t		got = recv(server, message + have, MOST_BYTES - have, 0);

		if (got <= 0)
			lose("the reply is short");
		have += got;
		if (have >= (int32) sizeof(length))
			memcpy(&length, message, sizeof(length));
	}
	if (!bson_init_static(reply, message + PREFIX_SIZE, length - PREFIX_SIZE))
		lose("the reply is malformed");
}

PG_FUNCTION_INFO_V1(floor_find);

Datum
floor_find(PG_FUNCTION_ARGS)
{
	char	   *database = text_to_cstring(PG_GETARG_TEXT_PP(2));
	char	   *dot = strchr(database, '.');
	bson_t		reply;
	bson_iter_t top;
	bson_iter_t info;
	const char *value;
	uint32		length;

	if (dot == NULL)
		ereport(ERROR, (errmsg("floor_find: a namespace is DATABASE.COLLECTION")));
	*dot = '\0';
	if (server < 0)
		open_socket(text_to_cstring(PG_GETARG_TEXT_PP(0)), PG_GETARG_INT32(1));
	send_find(database, dot + 1, PG_GETARG_INT32(3));
	receive_reply(&reply);
	if (!bson_iter_init(&top, &reply) ||
		!bson_iter_find_descendant(&top, "cursor.firstBatch.0.info", &info) ||
		!BSON_ITER_HOLDS_UTF8(&info))
		lose("there is no such document, or it has no string \"info\"");
	value = bson_iter_utf8(&info, &length);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(value, length));
}
