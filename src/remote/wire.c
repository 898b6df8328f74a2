/*-------------------------------------------------------------------------
 *
 * wire.c
 *		OP_MSG on a stream that libmongoc connected and authenticated.
 *
 * The transport of an ordinary build; wire_libmongoc.c is the other one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "wire.h"

#include "port/pg_bswap.h"

#define OP_COMPRESSED		2012
#define OP_MSG				2013
#define FLAG_CHECKSUM		0x1
#define FLAG_MORE_TO_COME	0x2
#define REQUIRED_FLAGS		0xffff	/* bits that a receiver must understand */

#define HEADER_SIZE			16	/* messageLength requestID responseTo opCode */
#define BODY_OFFSET			(HEADER_SIZE + 4 + 1)	/* flagBits, section kind */
#define SMALLEST_DOCUMENT	5

/* OP_COMPRESSED: originalOpcode, uncompressedSize, compressorId, then the rest */
#define COMPRESSED_OFFSET	(HEADER_SIZE + 4 + 4 + 1)

/* maxMessageSizeBytes, and 16 kB for what a command has of its own */
#define LARGEST_MESSAGE		(48000000 + 16384)

#define FIRST_REPLY_SIZE	16384

#if PG_BIGENDIAN
#define little_endian32(x)	pg_bswap32(x)
#else
#define little_endian32(x)	(x)
#endif

static inline void
put_int32(uint8 *destination, uint32 value)
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

static uint8 *
put_elements(uint8 *destination, const bson_t *document)
{
	size_t		size = elements_size(document);

	if (size > 0)
		memcpy(destination, bson_get_data(document) + 4, size);
	return destination + size;
}

/* Room for 'size' bytes, of which none are kept; malloc'd. */
static uint8 *
make_room(MongoBuffer *buffer, size_t size)
{
	if (size > buffer->capacity)
	{
		buffer->capacity = Max(size, 1024);
		bson_free(buffer->data);
		buffer->data = bson_malloc(buffer->capacity);
	}
	return buffer->data;
}

static void
put_header(uint8 *p, size_t size, uint32 request_id, uint32 opcode)
{
	put_int32(p, size);
	put_int32(p + 4, request_id);
	put_int32(p + 8, 0);
	put_int32(p + 12, opcode);
}

/*
 * build_message
 *		The whole request in connection->request; returns its size.
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
	uint8	   *message;
	uint8	   *p;

	mongo_wire_choose_elements(connection, command, &read_preference,
							   &read_concern);
	size = BODY_OFFSET + SMALLEST_DOCUMENT + elements_size(command) +
		elements_size(read_preference) + elements_size(read_concern) +
		1 + sizeof("$db") + 4 + database_size;

	p = message = make_room(&connection->request, size);
	put_header(p, size, ++connection->last_request_id, OP_MSG);
	put_int32(p + HEADER_SIZE, flags);
	p[HEADER_SIZE + 4] = 0;		/* a section of kind 0: one document */

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

	Assert(p == message + size);
	return size;
}

/*
 * build_request
 *		The request as it is sent: compressed, where that was negotiated.
 *
 * A server compresses its answer to a compressed request, and to no other.
 */
static void
build_request(MongoConnection *connection, const char *database,
			  const bson_t *command, uint32 flags, mongoc_iovec_t *iov)
{
	const MongoCompressor *compressor = connection->compressor;
	size_t		size = build_message(connection, database, command, flags);
	const uint8 *message = connection->request.data;
	size_t		packed;
	uint8	   *p;

	iov->iov_base = connection->request.data;
	iov->iov_len = size;
	if (compressor == NULL)
		return;

	packed = compressor->bound(size - HEADER_SIZE);
	p = make_room(&connection->compressed, COMPRESSED_OFFSET + packed);
	if (!compressor->compress(message + HEADER_SIZE, size - HEADER_SIZE,
							  connection->compression_level,
							  p + COMPRESSED_OFFSET, &packed))
		return;
	put_header(p, COMPRESSED_OFFSET + packed, connection->last_request_id,
			   OP_COMPRESSED);
	put_int32(p + HEADER_SIZE, OP_MSG);
	put_int32(p + HEADER_SIZE + 4, size - HEADER_SIZE);
	p[HEADER_SIZE + 8] = compressor->id;
	iov->iov_base = (void *) p;
	iov->iov_len = COMPRESSED_OFFSET + packed;
}

bool
mongo_wire_send(MongoConnection *connection, const char *database,
				const bson_t *command, uint32 *request_id)
{
	mongoc_iovec_t iov;
	ssize_t		sent;

	mongo_wire_check_size(command);
	if (connection->broken || connection->transport.data_stream == NULL)
		return false;

	build_request(connection, database, command, 0, &iov);
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

	build_request(connection, database, command, FLAG_MORE_TO_COME, &iov);
	if (mongoc_stream_writev(connection->transport.data_stream->top, &iov, 1, 0) !=
		(ssize_t) iov.iov_len)
		connection->broken = true;
}

/* The header is there: is it one, and for us?  Returns messageLength. */
static size_t
check_header(MongoConnection *connection, const uint8 *header,
			 uint32 request_id, bool *compressed)
{
	uint32		length = get_int32(header);
	uint32		opcode = get_int32(header + 12);

	if (length < BODY_OFFSET + SMALLEST_DOCUMENT || length > LARGEST_MESSAGE)
		mongo_wire_report_violation(connection, "The message length is out of bounds.");
	*compressed = opcode == OP_COMPRESSED && connection->compressor != NULL;
	if (opcode != OP_MSG && !*compressed)
		mongo_wire_report_violation(connection, "The message is not an OP_MSG.");
	if (get_int32(header + 8) != request_id)
		mongo_wire_report_violation(connection, "The message answers another request.");
	return length;
}

/*
 * expand
 *		From reply->compressed, of 'length' bytes, to reply->message.
 *
 * Returns the message's length.  The server says beforehand how much there
 * will be, and is held to that and to what a message may have.
 */
static size_t
expand(MongoConnection *connection, MongoReply *reply, size_t length)
{
	const uint8 *source = reply->compressed.data;
	const MongoCompressor *compressor = connection->compressor;
	uint32		size = get_int32(source + HEADER_SIZE + 4);

	if (get_int32(source + HEADER_SIZE) != OP_MSG)
		mongo_wire_report_violation(connection, "The compressed message is not an OP_MSG.");
	if (source[HEADER_SIZE + 8] != compressor->id)
		mongo_wire_report_violation(connection, "The message is compressed in a way that was not agreed on.");
	if (size < BODY_OFFSET - HEADER_SIZE + SMALLEST_DOCUMENT ||
		size > LARGEST_MESSAGE - HEADER_SIZE)
		mongo_wire_report_violation(connection, "The uncompressed size is out of bounds.");

	mongo_reply_reserve(reply, &reply->message, HEADER_SIZE + size, 0);
	if (!compressor->uncompress(source + COMPRESSED_OFFSET,
								length - COMPRESSED_OFFSET,
								reply->message.data + HEADER_SIZE, size))
		mongo_wire_report_violation(connection, "The message cannot be uncompressed to the size it announces.");
	return HEADER_SIZE + size;
}

/* The message is there: find the one document that a reply has. */
static void
check_body(MongoConnection *connection, MongoReply *reply, size_t length)
{
	const uint8 *data = reply->message.data;
	uint32		flags = get_int32(data + HEADER_SIZE);
	uint32		document_length;

	if (flags & FLAG_MORE_TO_COME)
		mongo_wire_report_violation(connection, "The message announces another one that was not asked for.");
	if (flags & REQUIRED_FLAGS)
		mongo_wire_report_violation(connection, "The message has flags that were not asked for.");
	if (data[HEADER_SIZE + 4] != 0)
		mongo_wire_report_violation(connection, "The message does not begin with a document.");

	document_length = get_int32(data + BODY_OFFSET);
	if (document_length != length - BODY_OFFSET)
		mongo_wire_report_violation(connection, "The document does not fill the message.");
	if (data[length - 1] != '\0')
		mongo_wire_report_violation(connection, "The document is not terminated.");

	reply->document = data + BODY_OFFSET;
	reply->document_length = document_length;
}

/*
 * receive_some
 *		Read what is there, at most 'size' bytes; waits if 'wait' or need be.
 *
 * Returns 0 when the connection is lost.
 */
static size_t
receive_some(MongoConnection *connection, uint8 *target, size_t size, bool wait)
{
	for (;;)
	{
		MongoStream *stream = connection->transport.data_stream;
		ssize_t		count;

		if (connection->broken || stream == NULL)
			return 0;
		if (wait)
			mongo_stream_wait_readable(stream);

		count = mongoc_stream_read(stream->top, target, size, 0, 0);
		if (count > 0)
			return count;
		mongo_transport_raise(&connection->transport);
		if (!mongoc_stream_should_retry(stream->top))
		{
			connection->broken = true;
			return 0;
		}
		wait = true;
	}
}

MongoWireResult
mongo_wire_receive(MongoConnection *connection, uint32 request_id,
				   MongoReply *reply)
{
	MongoBuffer *buffer = &reply->message;
	size_t		received = 0;
	size_t		expected = 0;	/* 0: the header is not there yet */
	bool		compressed = false;

	reply->document = NULL;
	mongo_reply_reserve(reply, buffer, FIRST_REPLY_SIZE, 0);

	while (expected == 0 || received < expected)
	{
		/*
		 * Just after a send nothing can be there yet.  Later, wait only when a
		 * read has found nothing: TLS may hold decrypted bytes that the socket
		 * knows nothing of.
		 */
		size_t		count = receive_some(connection, buffer->data + received,
										 (expected ? expected : buffer->capacity) - received,
										 received == 0);

		if (count == 0)
			return MONGO_WIRE_DISCONNECTED;
		received += count;
		if (expected > 0 || received < HEADER_SIZE)
			continue;

		expected = check_header(connection, buffer->data, request_id,
								&compressed);
		if (compressed)
		{
			buffer = &reply->compressed;
			mongo_reply_reserve(reply, buffer, Max(expected, received), 0);
			memcpy(buffer->data, reply->message.data, received);
		}
		mongo_reply_reserve(reply, buffer, expected, received);
	}
	if (received > expected)
		mongo_wire_report_violation(connection, "The message is followed by another one that was not asked for.");

	check_body(connection, reply,
			   compressed ? expand(connection, reply, expected) : expected);
	connection->in_flight--;
	return MONGO_WIRE_OK;
}

bool
mongo_wire_has_reply(MongoConnection *connection)
{
	return connection->broken || connection->transport.data_stream == NULL ||
		mongo_stream_has_input(connection->transport.data_stream);
}

bool
mongo_wire_await_reply(MongoConnection *connection, long timeout_ms)
{
	return !connection->broken && connection->transport.data_stream != NULL &&
		mongo_stream_wait(connection->transport.data_stream,
						  WL_SOCKET_READABLE, timeout_ms);
}
