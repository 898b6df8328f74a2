/*-------------------------------------------------------------------------
 *
 * wire.c
 *		OP_MSG on a stream that libmongoc connected and authenticated.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wire.h"

#include "port/pg_bswap.h"
#include "utils/memutils.h"

#define OP_MSG				2013
#define FLAG_CHECKSUM		0x1
#define FLAG_MORE_TO_COME	0x2
#define REQUIRED_FLAGS		0xffff	/* bits that a receiver must understand */

#define HEADER_SIZE			16	/* messageLength requestID responseTo opCode */
#define BODY_OFFSET			(HEADER_SIZE + 4 + 1)	/* flagBits, section kind */
#define SMALLEST_DOCUMENT	5

/* maxMessageSizeBytes and maxBsonObjectSize (and 16 kB for a command's own) */
#define LARGEST_MESSAGE		(48000000 + 16384)
#define LARGEST_COMMAND		(16 * 1024 * 1024 + 16384)

#define FIRST_REPLY_SIZE	16384

/* Which commands take what (Server Selection and Read Concern specifications). */
static const struct
{
	const char *name;
	bool		read_preference;
	bool		read_concern;
}			command_rules[] =
{
	{"find", true, true},
	{"aggregate", true, true},
	{"count", true, true},
	{"distinct", true, true},
	{"getMore", false, false},
	{"killCursors", false, false},
};

#if PG_BIGENDIAN
#define little_endian32(x)	pg_bswap32(x)
#else
#define little_endian32(x)	(x)
#endif

static inline void
put_int32(char *destination, uint32 value)
{
	value = little_endian32(value);
	memcpy(destination, &value, 4);
}

static inline uint32
get_int32(const uint8 *source)
{
	uint32		value;

	memcpy(&value, source, 4);
	return little_endian32(value);
}

/* The bytes of the elements in a document, without length word and NUL. */
static inline size_t
elements_size(const bson_t *document)
{
	return document == NULL ? 0 : document->len - SMALLEST_DOCUMENT;
}

static char *
put_elements(char *destination, const bson_t *document)
{
	size_t		size = elements_size(document);

	if (size > 0)
		memcpy(destination, bson_get_data(document) + 4, size);
	return destination + size;
}

/* The elements to append for this command, by its name (its first key). */
static void
choose_elements(MongoConnection *connection, const bson_t *command,
				const bson_t **read_preference, const bson_t **read_concern)
{
	const char *name = command->len <= SMALLEST_DOCUMENT ? "" :
		(const char *) bson_get_data(command) + 5;

	*read_preference = connection->read_preference;
	*read_concern = NULL;
	for (int i = 0; i < lengthof(command_rules); i++)
	{
		if (strcmp(name, command_rules[i].name) != 0)
			continue;
		if (!command_rules[i].read_preference)
			*read_preference = NULL;
		if (command_rules[i].read_concern &&
			connection->read_concern != NULL &&
			!bson_has_field(command, "readConcern"))
			*read_concern = connection->read_concern;
	}
}

/*
 * build_message
 *		The whole request in connection->message; returns its size.
 *
 * Does not raise (malloc'd; libbson aborts when out of memory).
 */
static size_t
build_message(MongoConnection *connection, const char *database,
			  const bson_t *command, uint32 flags)
{
	const bson_t *read_preference;
	const bson_t *read_concern;
	size_t		database_size = strlen(database) + 1;
	size_t		size;
	char	   *p;

	choose_elements(connection, command, &read_preference, &read_concern);
	size = BODY_OFFSET + SMALLEST_DOCUMENT + elements_size(command) +
		elements_size(read_preference) + elements_size(read_concern) +
		1 + sizeof("$db") + 4 + database_size;

	if (size > connection->message_capacity)
	{
		connection->message_capacity = Max(size, 1024);
		connection->message = bson_realloc(connection->message,
										   connection->message_capacity);
	}

	p = connection->message;
	put_int32(p, size);
	put_int32(p + 4, ++connection->last_request_id);
	put_int32(p + 8, 0);
	put_int32(p + 12, OP_MSG);
	put_int32(p + 16, flags);
	p[20] = 0;					/* a section of kind 0: one document */

	p += BODY_OFFSET;
	put_int32(p, size - BODY_OFFSET);
	p = put_elements(p + 4, command);
	*p++ = BSON_TYPE_UTF8;
	memcpy(p, "$db", sizeof("$db"));
	p += sizeof("$db");
	put_int32(p, database_size);
	memcpy(p + 4, database, database_size);
	p += 4 + database_size;
	p = put_elements(p, read_preference);
	p = put_elements(p, read_concern);
	*p++ = '\0';

	Assert(p == connection->message + size);
	return size;
}

bool
mongo_wire_send(MongoConnection *connection, const char *database,
				const bson_t *command, uint32 *request_id)
{
	mongoc_iovec_t iov;
	ssize_t		sent;

	if (command->len > LARGEST_COMMAND)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("command for MongoDB is too large"),
				 errdetail("It has %u bytes; MongoDB takes 16 MB.",
						   command->len)));
	if (connection->broken || connection->transport.data_stream == NULL)
		return false;

	iov.iov_len = build_message(connection, database, command, 0);
	iov.iov_base = connection->message;
	*request_id = connection->last_request_id;

	connection->in_flight++;
	sent = mongoc_stream_writev(connection->transport.data_stream->top, &iov, 1, -1);
	if (sent != (ssize_t) iov.iov_len)
	{
		connection->broken = true;
		mongo_transport_raise(&connection->transport);
		return false;
	}
	return true;
}

void
mongo_wire_send_and_forget(MongoConnection *connection, const char *database,
						   const bson_t *command)
{
	mongoc_iovec_t iov;

	if (connection->broken || connection->transport.data_stream == NULL)
		return;

	iov.iov_len = build_message(connection, database, command,
								FLAG_MORE_TO_COME);
	iov.iov_base = connection->message;
	if (mongoc_stream_writev(connection->transport.data_stream->top, &iov, 1, 0) !=
		(ssize_t) iov.iov_len)
		connection->broken = true;
}

/* Make room for 'size' bytes, keeping the first 'used'. */
static void
reserve(MongoReply *reply, size_t size, size_t used)
{
	uint8	   *larger;

	if (size <= reply->capacity)
		return;
	/* batches of one scan differ a little: leave some room */
	size += size / 8;
	larger = MemoryContextAllocHuge(reply->context, size);
	if (reply->data != NULL)
	{
		memcpy(larger, reply->data, used);
		pfree(reply->data);
	}
	reply->data = larger;
	reply->capacity = size;
}

static void
report_violation(MongoConnection *connection, const char *detail) pg_attribute_noreturn();

static void
report_violation(MongoConnection *connection, const char *detail)
{
	connection->broken = true;
	ereport(ERROR,
			(errcode(ERRCODE_PROTOCOL_VIOLATION),
			 errmsg("server \"%s\" sent an invalid reply",
					connection->server_name),
			 errdetail("%s", detail)));
}

/* The header is there: is it one, and for us?  Returns messageLength. */
static size_t
check_header(MongoConnection *connection, const MongoReply *reply,
			 uint32 request_id)
{
	uint32		length = get_int32(reply->data);

	if (length < BODY_OFFSET + SMALLEST_DOCUMENT || length > LARGEST_MESSAGE)
		report_violation(connection, "The message length is out of bounds.");
	if (get_int32(reply->data + 12) != OP_MSG)
		report_violation(connection, "The message is not an OP_MSG.");
	if (get_int32(reply->data + 8) != request_id)
		report_violation(connection, "The message answers another request.");
	return length;
}

/* The message is there: find the one document that a reply has. */
static void
check_body(MongoConnection *connection, MongoReply *reply, size_t length)
{
	uint32		flags = get_int32(reply->data + HEADER_SIZE);
	uint32		document_length;

	if (flags & FLAG_MORE_TO_COME)
		report_violation(connection, "The message announces another one that was not asked for.");
	if (flags & REQUIRED_FLAGS)
		report_violation(connection, "The message has flags that were not asked for.");
	if (reply->data[HEADER_SIZE + 4] != 0)
		report_violation(connection, "The message does not begin with a document.");

	document_length = get_int32(reply->data + BODY_OFFSET);
	if (document_length != length - BODY_OFFSET)
		report_violation(connection, "The document does not fill the message.");
	if (reply->data[length - 1] != '\0')
		report_violation(connection, "The document is not terminated.");

	reply->document = reply->data + BODY_OFFSET;
	reply->document_length = document_length;
}

MongoWireResult
mongo_wire_receive(MongoConnection *connection, uint32 request_id,
				   MongoReply *reply)
{
	size_t		received = 0;
	size_t		expected = 0;	/* 0: the header is not there yet */
	bool		wait_first = true;

	reply->document = NULL;
	reserve(reply, FIRST_REPLY_SIZE, 0);

	while (expected == 0 || received < expected)
	{
		ssize_t		count;

		if (connection->broken || connection->transport.data_stream == NULL)
			return MONGO_WIRE_DISCONNECTED;

		/*
		 * Just after a send nothing can be there yet.  Later, wait only when a
		 * read has found nothing: TLS may hold decrypted bytes that the socket
		 * knows nothing of.
		 */
		if (wait_first)
			mongo_stream_wait_readable(connection->transport.data_stream);
		wait_first = false;

		count = mongoc_stream_read(connection->transport.data_stream->top,
								   reply->data + received,
								   (expected ? expected : reply->capacity) - received,
								   0, 0);
		if (count <= 0)
		{
			mongo_transport_raise(&connection->transport);
			if (mongoc_stream_should_retry(connection->transport.data_stream->top))
			{
				wait_first = true;
				continue;
			}
			connection->broken = true;
			return MONGO_WIRE_DISCONNECTED;
		}

		received += count;
		if (expected == 0 && received >= HEADER_SIZE)
		{
			expected = check_header(connection, reply, request_id);
			reserve(reply, expected, received);
		}
	}
	if (received > expected)
		report_violation(connection, "The message is followed by another one that was not asked for.");

	check_body(connection, reply, expected);
	connection->in_flight--;
	return MONGO_WIRE_OK;
}

void
mongo_wire_report_disconnect(MongoConnection *connection)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("connection to server \"%s\" was lost",
					connection->server_name),
			 errdetail("MongoDB closed the connection, or the network failed, before the answer was complete.")));
}
