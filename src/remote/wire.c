/*-------------------------------------------------------------------------
 *
 * wire.c
 *		Messages of our own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"
#include "options.h"
#include "convert.h"

#include "commands/dbcommands.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/backend_status.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* ----- OP_MSG on a stream that libmongoc connected and authenticated ------ */

#define FLAG_MORE_TO_COME	0x2

#define FIRST_REPLY_SIZE	16384

#define KEPT_CAPACITY		1048576 /* of a buffer between two writes */

/* maxBsonObjectSize, and 16 kB for what a command has of its own */
#define LARGEST_COMMAND		(16 * 1024 * 1024 + 16384)

/* Which commands take what (Server Selection and Read Concern specifications). */
static const struct
{
	const char *name;
	bool		read_preference;
	bool		read_concern;
	MongoCounter kind;
}			command_rules[] =
{
	{"find", true, true, MONGO_COUNT_FIND},
	{"aggregate", true, true, MONGO_COUNT_AGGREGATE},
	{"count", true, true, MONGO_COUNT_COUNT},
	{"distinct", true, true, MONGO_COUNT_OTHER},
	{"getMore", false, false, MONGO_COUNT_GET_MORE},
	{"killCursors", false, false, MONGO_COUNT_OTHER},
};

/* choose_elements: those to add to this command, or NULL; it is counted by its kind. */
static void
choose_elements(MongoConnection *connection, const bson_t *command,
				const bson_t **read_preference, const bson_t **read_concern)
{
	/* a command's name is its first key */
	const char *name = bson_empty(command) ? "" :
		(const char *) bson_get_data(command) + 5;
	MongoCounter kind = MONGO_COUNT_OTHER;

	*read_preference = connection->read_preference;
	*read_concern = NULL;
	for (size_t i = 0; i < lengthof(command_rules); i++)
	{
		if (strcmp(name, command_rules[i].name) != 0)
			continue;
		kind = command_rules[i].kind;
		if (!command_rules[i].read_preference)
			*read_preference = NULL;
		if (command_rules[i].read_concern &&
			connection->read_concern != NULL &&
			!bson_has_field(command, "readConcern"))
			*read_concern = connection->read_concern;
	}
	mongo_traffic_add(&connection->transport.traffic, kind, 1);
}

void
mongo_wire_check_size(const bson_t *command)
{
	if (command->len > LARGEST_COMMAND)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("command for MongoDB is too large"),
				 errdetail("It has %u bytes; MongoDB takes 16 MB.",
						   command->len),
				 errhint("Where values of a query make it so large, turn off mongo_fdw.enable_pushdown, so that PostgreSQL compares them.")));
}

/* The bytes of the elements in a document, without length word and NUL. */
static inline size_t
elements_size(const bson_t *document)
{
	return document == NULL ? 0 : document->len - SMALLEST_DOCUMENT;
}

/* put_elements: the document without its length and final zero. */
static uint8 *
put_elements(uint8 *destination, const bson_t *document)
{
	size_t		size = elements_size(document);

	if (size > 0)
		memcpy(destination, bson_get_data(document) + 4, size);
	return destination + size;
}

/* The bytes of an element that is a text; 'length' without the NUL. */
static inline size_t
utf8_size(size_t name_size, size_t length)
{
	return 1 + name_size + 4 + length + 1;
}

static uint8 *
put_utf8(uint8 *p, const char *name, size_t name_size, const char *text, size_t length)
{
	*p++ = BSON_TYPE_UTF8;
	memcpy(p, name, name_size);
	p += name_size;
	put_int32(p, length + 1);
	memcpy(p + 4, text, length + 1);
	return p + 4 + length + 1;
}

/*
 * fill_comment
 *		What is to go along with this command; its length, 0: nothing.
 *
 * A comment of the user's own stays alone.
 */
static size_t
fill_comment(const MongoConnection *connection, const bson_t *command, char *comment)
{
	if (connection->comment == NULL || bson_has_field(command, "comment"))
		return 0;
	return mongo_trace_fill(connection->comment, comment, MONGO_COMMENT_SIZE);
}

/* Room for 'size' bytes, of which none are kept; malloc'd. */
static uint8 *
make_room(MongoBuffer *buffer, size_t size)
{
	if (size > buffer->capacity)
	{
		/* should the memory not be there, so is no buffer any more */
		bson_free(buffer->data);
		buffer->data = NULL;
		buffer->capacity = 0;
		size = Max(size, 1024);
		buffer->data = bson_malloc(size);
		buffer->capacity = size;
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
 * Raises 53200 alone, and never for what is small (common.h).
 */
static size_t
build_message(MongoConnection *connection, const char *database,
			  const bson_t *command, uint32 flags)
{
	const bson_t *read_preference;
	const bson_t *read_concern;
	size_t		database_length = strlen(database);
	char		comment[MONGO_COMMENT_SIZE];
	size_t		comment_length = fill_comment(connection, command, comment);
	size_t		size;
	uint8	   *message;
	uint8	   *p;

	choose_elements(connection, command, &read_preference, &read_concern);
	size = BODY_OFFSET + SMALLEST_DOCUMENT + elements_size(command) +
		elements_size(read_preference) + elements_size(read_concern) +
		utf8_size(sizeof("$db"), database_length);
	if (comment_length > 0)
		size += utf8_size(sizeof("comment"), comment_length);

	p = message = make_room(&connection->request, size);
	put_header(p, size, ++connection->last_request_id, OP_MSG);
	put_int32(p + HEADER_SIZE, flags);
	p[HEADER_SIZE + 4] = 0;		/* a section of kind 0: one document */

	p += BODY_OFFSET;
	put_int32(p, size - BODY_OFFSET);
	p = put_elements(p + 4, command);
	p = put_utf8(p, "$db", sizeof("$db"), database, database_length);
	if (comment_length > 0)
		p = put_utf8(p, "comment", sizeof("comment"), comment, comment_length);
	p = put_elements(p, read_preference);
	p = put_elements(p, read_concern);
	*p++ = '\0';

	Assert(p == message + size);
	return size;
}

/*
 * compress_message
 *		The message of so many bytes in connection->request as OP_COMPRESSED; false
 *		when it is sent as it is.
 *
 * A server compresses its answer to a compressed request, and to no other.
 */
static bool
compress_message(MongoConnection *connection, size_t size, mongoc_iovec_t *iov)
{
	const MongoCompressor *compressor = connection->compressor;
	const uint8 *message = connection->request.data;
	size_t		packed;
	uint8	   *p;

	if (compressor == NULL)
		return false;
	packed = compressor->bound(size - HEADER_SIZE);
	p = make_room(&connection->compressed, COMPRESSED_OFFSET + packed);
	if (!compressor->compress(message + HEADER_SIZE, size - HEADER_SIZE,
							  connection->compression_level,
							  p + COMPRESSED_OFFSET, &packed))
		return false;
	put_header(p, COMPRESSED_OFFSET + packed, connection->last_request_id,
			   OP_COMPRESSED);
	put_int32(p + HEADER_SIZE, OP_MSG);
	put_int32(p + HEADER_SIZE + 4, size - HEADER_SIZE);
	p[HEADER_SIZE + 8] = compressor->id;
	iov->iov_base = (void *) p;
	iov->iov_len = COMPRESSED_OFFSET + packed;
	return true;
}

/* build_request: the request as it is sent. */
static void
build_request(MongoConnection *connection, const char *database,
			  const bson_t *command, uint32 flags, mongoc_iovec_t *iov)
{
	size_t		size = build_message(connection, database, command, flags);

	if (compress_message(connection, size, iov))
		return;
	iov->iov_base = connection->request.data;
	iov->iov_len = size;
}

void
mongo_wire_shrink(MongoConnection *connection)
{
	MongoBuffer *buffers[] = {&connection->request, &connection->compressed};

	for (size_t i = 0; i < lengthof(buffers); i++)
	{
		if (buffers[i]->capacity <= KEPT_CAPACITY)
			continue;
		bson_free(buffers[i]->data);
		buffers[i]->data = NULL;
		buffers[i]->capacity = 0;
	}
}

/* put_sequence: the start of a section of kind 1; its documents follow. */
static uint8 *
put_sequence(uint8 *p, const MongoSequence *sequence, size_t name_size)
{
	*p++ = 1;
	put_int32(p, 4 + name_size + sequence->size);
	memcpy(p + 4, sequence->name, name_size);
	return p + 4 + name_size;
}

void
mongo_wire_prepare(MongoConnection *connection, const char *database,
				   const bson_t *command, const bson_t *fields,
				   const MongoSequence *sequence, mongoc_iovec_t iov[2], size_t *iovcnt)
{
	size_t		database_length = strlen(database);
	size_t		name_size = sequence != NULL ? strlen(sequence->name) + 1 : 0;
	size_t		sequence_size = sequence != NULL ? sequence->size : 0;
	char		comment[MONGO_COMMENT_SIZE];
	size_t		comment_length = fill_comment(connection, command, comment);
	size_t		body = SMALLEST_DOCUMENT + elements_size(command) + elements_size(fields) +
		utf8_size(sizeof("$db"), database_length);
	size_t		head;
	uint8	   *p;

	if (comment_length > 0)
		body += utf8_size(sizeof("comment"), comment_length);
	head = BODY_OFFSET + body + (sequence != NULL ? 1 + 4 + name_size : 0);

	/* a compressor wants all of it in one piece */
	p = make_room(&connection->request,
				  head + (connection->compressor != NULL ? sequence_size : 0));
	put_header(p, head + sequence_size, ++connection->last_request_id, OP_MSG);
	put_int32(p + HEADER_SIZE, 0);
	p[HEADER_SIZE + 4] = 0;		/* a section of kind 0: one document */

	p += BODY_OFFSET;
	put_int32(p, body);
	p = put_elements(p + 4, command);
	p = put_elements(p, fields);
	p = put_utf8(p, "$db", sizeof("$db"), database, database_length);
	if (comment_length > 0)
		p = put_utf8(p, "comment", sizeof("comment"), comment, comment_length);
	*p++ = '\0';
	if (sequence != NULL)
		p = put_sequence(p, sequence, name_size);
	Assert(p == connection->request.data + head);

	*iovcnt = 1;
	if (connection->compressor != NULL && sequence != NULL)
		memcpy(p, sequence->data, sequence->size);
	if (compress_message(connection, head + sequence_size, iov))
		return;
	iov[0].iov_base = (void *) connection->request.data;
	iov[0].iov_len = head + (connection->compressor != NULL ? sequence_size : 0);
	if (connection->compressor != NULL || sequence == NULL)
		return;
	iov[(*iovcnt)++] = (mongoc_iovec_t) {
		.iov_base = unconstify(char *, sequence->data), .iov_len = sequence->size
	};
}

bool
mongo_wire_send(MongoConnection *connection, const char *database,
				const bson_t *command, uint32 *request_id)
{
	mongoc_iovec_t iov;
	ssize_t		sent;

	mongo_wire_check_size(command);
	mongo_driver_check();
	if (connection->broken || connection->transport.data_stream == NULL)
		return false;

	build_request(connection, database, command, 0, &iov);
	*request_id = connection->last_request_id;

	connection->resumable = false;
	connection->in_flight++;
	connection->waited_before = connection->transport.traffic.counters[MONGO_COUNT_WAIT_US];
	sent = mongoc_stream_writev(connection->transport.data_stream->top, &iov, 1,
								MONGO_NO_TIMEOUT);
	if (sent != (ssize_t) iov.iov_len)
	{
		connection->broken = true;
		mongo_wire_raise_wait(connection);
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

/* ---------------------- replies and what may go wrong ----------------------- */

/*
 * reserve_reply: room for 'size' bytes in one of the reply's buffers, keeping the first
 * 'used'.
 */
static void
reserve_reply(MongoReply *reply, MongoBuffer *buffer, size_t size, size_t used)
{
	uint8	   *larger;

	if (size <= buffer->capacity)
		return;
	/* batches of one scan differ a little: leave some room */
	size += size / 8;
	larger = MemoryContextAllocHuge(reply->context, size);
	if (buffer->data != NULL)
	{
		memcpy(larger, buffer->data, used);
		pfree(buffer->data);
	}
	buffer->data = larger;
	buffer->capacity = size;
}

static void
free_buffer(MongoBuffer *buffer)
{
	if (buffer->data != NULL)
		pfree(buffer->data);
	buffer->data = NULL;
	buffer->capacity = 0;
}

void
mongo_reply_free(MongoReply *reply)
{
	free_buffer(&reply->message);
	free_buffer(&reply->compressed);
	reply->document = NULL;
}

void
mongo_wire_report_violation(MongoConnection *connection, const char *detail)
{
	connection->broken = true;
	mongo_activity_count_current(MONGO_COUNT_ERRORS, 1);
	ereport(ERROR,
			(errcode(ERRCODE_PROTOCOL_VIOLATION),
			 errmsg("server \"%s\" sent an invalid reply",
					connection->server_name),
			 errdetail("%s", detail)));
}

void
mongo_wire_raise_wait(MongoConnection *connection)
{
	MongoTransport *transport = &connection->transport;

	mongo_transport_raise(transport);
	if (!transport->timed_out)
		return;
	transport->timed_out = false;
	mongo_activity_count_current(MONGO_COUNT_ERRORS, 1);
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("server \"%s\" did not answer in time", connection->server_name),
			 errdetail("Nothing was received for %d milliseconds.",
					   transport->socket_timeout_ms),
			 errhint("The limit is the option \"socket_timeout_ms\" of the server, or socketTimeoutMS in its \"uri\".")));
}

void
mongo_wire_report_disconnect(const char *server_name)
{
	mongo_activity_count_current(MONGO_COUNT_ERRORS, 1);
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("connection to server \"%s\" was lost", server_name),
			 errdetail("MongoDB closed the connection, or the network failed, before the answer was complete."),
			 errhint("MongoDB also does so when a document of the answer would have more than 16 MB.")));
}

/* ------------------------------- receiving --------------------------------- */

/* Raise for what is wrong with a frame, if anything. */
static void
check(MongoConnection *connection, const char *violation)
{
	if (violation != NULL)
		mongo_wire_report_violation(connection, violation);
}

/* The header is there: is it one, and for us?  Returns messageLength. */
static size_t
check_header(MongoConnection *connection, const uint8 *header,
			 uint32 request_id, bool *compressed)
{
	uint32		opcode = get_int32(header + 12);

	check(connection, mongo_frame_check_header(header, request_id));
	*compressed = opcode == OP_COMPRESSED && connection->compressor != NULL;
	if (opcode != OP_MSG && !*compressed)
		mongo_wire_report_violation(connection, "The message is not an OP_MSG.");
	return get_int32(header);
}

/*
 * take_document
 *		All has come, 'length' bytes: find the one document that a reply has.
 */
static void
take_document(MongoConnection *connection, MongoReply *reply, size_t length,
			  bool compressed)
{
	if (compressed)
	{
		const uint8 *source = reply->compressed.data;
		size_t		size;

		check(connection, mongo_frame_check_compressed(source, connection->compressor,
													   &size));
		reserve_reply(reply, &reply->message, size, 0);
		check(connection, mongo_frame_expand(source, length,
											 reply->message.data, size));
		length = size;
	}
	else
		check(connection, mongo_frame_check_message(reply->message.data, length));

	reply->document = reply->message.data + BODY_OFFSET;
	reply->document_length = length - BODY_OFFSET;
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
		{
			connection->resumable = true;
			if (!mongo_stream_wait_readable(stream))
			{
				connection->broken = true;
				mongo_wire_raise_wait(connection);
			}
			connection->resumable = false;
		}

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

	if (connection->resumable && connection->receiving)
	{
		received = reply->received;
		expected = reply->expected;
		compressed = reply->is_compressed;
		if (compressed)
			buffer = &reply->compressed;
	}
	connection->resumable = false;
	reply->document = NULL;
	reserve_reply(reply, buffer, FIRST_REPLY_SIZE, received);

	while (expected == 0 || received < expected)
	{
		size_t		count;

		reply->received = received;
		reply->expected = expected;
		reply->is_compressed = compressed;

		/*
		 * Just after a send nothing can be there yet.  Later, wait only when
		 * a read has found nothing: TLS may hold decrypted bytes that the
		 * socket knows nothing of.
		 */
		count = receive_some(connection, buffer->data + received,
							 (expected ? expected : buffer->capacity) - received,
							 received == 0);
		if (count == 0)
			return MONGO_WIRE_DISCONNECTED;
		received += count;
		connection->receiving = true;
		if (expected > 0 || received < HEADER_SIZE)
			continue;

		expected = check_header(connection, buffer->data, request_id,
								&compressed);
		if (compressed)
		{
			buffer = &reply->compressed;
			reserve_reply(reply, buffer, Max(expected, received), 0);
			memcpy(buffer->data, reply->message.data, received);
		}
		reserve_reply(reply, buffer, expected, received);
	}
	if (received > expected)
		mongo_wire_report_violation(connection, "The message is followed by another one that was not asked for.");

	take_document(connection, reply, expected, compressed);
	connection->receiving = false;
	connection->in_flight--;
	mongo_traffic_add(&connection->transport.traffic, MONGO_COUNT_ROUND_TRIPS, 1);
	if (mongo_slow_command_ms >= 0)
		mongo_log_slow_request(connection);
	return MONGO_WIRE_OK;
}

bool
mongo_wire_has_reply(MongoConnection *connection)
{
	return connection->broken || connection->transport.data_stream == NULL ||
		mongo_stream_has_input(connection->transport.data_stream);
}

/*
 * read_quietly
 *		Read so many bytes before the time is over; never raises.
 */
static bool
read_quietly(MongoConnection *connection, uint8 *target, size_t size,
			 TimestampTz end)
{
	while (size > 0)
	{
		MongoStream *stream = connection->transport.data_stream;
		ssize_t		count;
		long		left;

		if (stream == NULL)
			return false;
		count = mongoc_stream_read(stream->top, target, size, 0, 0);
		if (count > 0)
		{
			target += count;
			size -= count;
			continue;
		}
		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);
		if (!mongoc_stream_should_retry(stream->top) || left == 0 ||
			!mongo_stream_wait(stream, WL_SOCKET_READABLE, left))
			return false;
	}
	return true;
}

/* expand_quietly: a compressed message in place of which the result is. */
static uint8 *
expand_quietly(MongoConnection *connection, uint8 *packed, size_t *length)
{
	uint8	   *message = NULL;
	size_t		size = 0;

	if (connection->compressor != NULL &&
		mongo_frame_check_compressed(packed, connection->compressor, &size) == NULL)
		message = malloc(size);
	if (message != NULL && mongo_frame_expand(packed, *length, message, size) != NULL)
	{
		free(message);
		message = NULL;
	}
	free(packed);
	*length = size;
	return message;
}

/* receive_message: NULL where there is none, or no memory for it. */
static uint8 *
receive_message(MongoConnection *connection, uint32 request_id, TimestampTz end,
				size_t *length)
{
	uint8		header[HEADER_SIZE];
	uint8	   *message;

	if (!read_quietly(connection, header, HEADER_SIZE, end) ||
		mongo_frame_check_header(header, request_id) != NULL)
		return NULL;
	*length = get_int32(header);
	message = malloc(*length);
	if (message == NULL)
		return NULL;
	memcpy(message, header, HEADER_SIZE);
	if (!read_quietly(connection, message + HEADER_SIZE, *length - HEADER_SIZE, end))
	{
		free(message);
		return NULL;
	}
	if (get_int32(header + 12) == OP_COMPRESSED)
		return expand_quietly(connection, message, length);
	if (mongo_frame_check_message(message, *length) == NULL)
		return message;
	free(message);
	return NULL;
}

uint8 *
mongo_wire_receive_quietly(MongoConnection *connection, uint32 request_id,
						   long timeout_ms, const uint8 **document, uint32 *length)
{
	uint8	   *message = NULL;
	size_t		size;

	if (!connection->broken && !connection->receiving)
		message = receive_message(connection, request_id,
								  TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms),
								  &size);
	if (message == NULL)
	{
		connection->broken = true;
		return NULL;
	}
	connection->in_flight--;
	*document = message + BODY_OFFSET;
	*length = size - BODY_OFFSET;
	return message;
}

/* -------------- Is this a message that a server may send us? -------------- */

#define FLAG_MORE_TO_COME	0x2
#define REQUIRED_FLAGS		0xffff	/* bits that a receiver must understand */

const char *
mongo_frame_check_header(const uint8 *header, uint32 request_id)
{
	uint32		length = get_int32(header);

	/* the smallest is an OP_MSG with an empty document */
	if (length < BODY_OFFSET + SMALLEST_DOCUMENT || length > LARGEST_MESSAGE)
		return "The message length is out of bounds.";
	if (get_int32(header + 8) != request_id)
		return "The message answers another request.";
	return NULL;
}

const char *
mongo_frame_check_message(const uint8 *message, size_t length)
{
	uint32		flags = get_int32(message + HEADER_SIZE);

	if (flags & FLAG_MORE_TO_COME)
		return "The message announces another one that was not asked for.";
	if (flags & REQUIRED_FLAGS)
		return "The message has flags that were not asked for.";
	if (message[HEADER_SIZE + 4] != 0)
		return "The message does not begin with a document.";
	if (get_int32(message + BODY_OFFSET) != length - BODY_OFFSET)
		return "The document does not fill the message.";
	if (message[length - 1] != '\0')
		return "The document is not terminated.";
	return NULL;
}

const char *
mongo_frame_check_compressed(const uint8 *message, const MongoCompressor *compressor,
							 size_t *expanded_size)
{
	uint32		size = get_int32(message + HEADER_SIZE + 4);
	const MongoCompressor *used = mongo_compressor_with_id(message[HEADER_SIZE + 8]);

	if (get_int32(message + HEADER_SIZE) != OP_MSG)
		return "The compressed message is not an OP_MSG.";
	if (used == NULL || (compressor != NULL && compressor != used))
		return "The message is compressed in a way that was not agreed on.";
	if (size < BODY_OFFSET - HEADER_SIZE + SMALLEST_DOCUMENT ||
		size > LARGEST_MESSAGE - HEADER_SIZE)
		return "The uncompressed size is out of bounds.";
	*expanded_size = HEADER_SIZE + size;
	return NULL;
}

const char *
mongo_frame_expand(const uint8 *message, size_t length, uint8 *target,
				   size_t expanded_size)
{
	const MongoCompressor *compressor = mongo_compressor_with_id(message[HEADER_SIZE + 8]);

	memcpy(target, message, HEADER_SIZE);
	put_int32(target, expanded_size);
	put_int32(target + 12, get_int32(message + HEADER_SIZE));
	if (!compressor->uncompress(message + COMPRESSED_OFFSET,
								length - COMPRESSED_OFFSET,
								target + HEADER_SIZE,
								expanded_size - HEADER_SIZE))
		return "The message cannot be uncompressed to the size it announces.";
	return mongo_frame_check_message(target, expanded_size);
}

/* ------- Who is asking: escapes in the options comment and appname -------- */

/* append_fixed: the escape's value, in which a % is none. */
static void
append_fixed(StringInfo result, const char *value)
{
	for (const char *c = value != NULL ? mongo_to_utf8(value) : ""; *c != '\0'; c++)
	{
		if (*c == '%')
			appendStringInfoChar(result, '%');
		appendStringInfoChar(result, *c);
	}
}

char *
mongo_trace_prepare(const char *text)
{
	StringInfoData result;

	initStringInfo(&result);
	for (const char *c = mongo_to_utf8(text); *c != '\0'; c++)
	{
		if (*c != '%')
		{
			appendStringInfoChar(&result, *c);
			continue;
		}
		switch (*++c)
		{
			case 'a':
			case 'Q':
			case '%':
				appendStringInfo(&result, "%%%c", *c);
				break;
			case 'c':
				appendStringInfo(&result, "%lx.%x", (long) MyStartTime, MyProcPid);
				break;
			case 'C':
				append_fixed(&result, cluster_name);
				break;
			case 'd':
				append_fixed(&result, get_database_name(MyDatabaseId));
				break;
			case 'p':
				appendStringInfo(&result, "%d", MyProcPid);
				break;
			case 'u':
				append_fixed(&result, GetUserNameFromId(GetAuthenticatedUserId(), true));
				break;
			case '\0':
				return result.data;
			default:
				break;
		}
	}
	return result.data;
}

/* put: as much as there is room for, NUL not included. */
static size_t
put(char *buffer, size_t size, size_t used, const char *text, size_t length)
{
	length = Min(length, size - 1 - used);
	memcpy(buffer + used, text, length);
	return used + length;
}

size_t
mongo_trace_fill(const char *prepared, char *buffer, size_t size)
{
	size_t		used = 0;
	const char *c;
	char		number[24];

	for (c = prepared; *c != '\0' && used < size - 1; c++)
	{
		if (*c != '%')
			buffer[used++] = *c;
		else if (*++c == 'a')
		{
			const char *name = application_name != NULL ? application_name : "";

			used = put(buffer, size, used, name, strlen(name));
		}
		else if (*c == 'Q')
		{
			/* signed, as the views show it */
			int			length = snprintf(number, sizeof(number), INT64_FORMAT,
										  (int64) pgstat_get_my_query_id());

			used = put(buffer, size, used, number, length);
		}
		else
			buffer[used++] = '%';
	}
	/* not within a character */
	if (*c != '\0' && (*c & 0xc0) == 0x80)
	{
		while (used > 0 && (buffer[used - 1] & 0xc0) == 0x80)
			used--;
		used -= used > 0;
	}
	buffer[used] = '\0';
	return used;
}

void
mongo_trace_append(const char *prepared, bson_t *document)
{
	char		comment[MONGO_COMMENT_SIZE];

	if (prepared == NULL)
		return;
	bson_append_utf8(document, "comment", -1, comment,
					 (int) mongo_trace_fill(prepared, comment, sizeof(comment)));
}

/* ----------------- The setting mongo_fdw.slow_command_ms ------------------ */

/* More of a command is not logged; of one that is longer, a list of values say, only its name. */
#define LONGEST_SHOWN		8192
#define LONGEST_COMMAND		1000000

/* took_long: how many milliseconds; false where it was not long. */
static bool
took_long(const MongoConnection *connection, uint64 waited_before, double *waited_ms)
{
	uint64		waited = connection->transport.traffic.counters[MONGO_COUNT_WAIT_US] - waited_before;

	*waited_ms = waited / 1000.0;
	return *waited_ms >= mongo_slow_command_ms;
}

static void
log_command(const MongoConnection *connection, double waited_ms, const char *command)
{
	ereport(mongo_query_log_level(),
			(errmsg("slow command: %.3f ms on server \"%s\": %s", waited_ms,
					connection->server_name, command)));
}

void
mongo_log_slow_request(MongoConnection *connection)
{
	const uint8 *document = connection->request.data + BODY_OFFSET;
	uint32		length = get_int32(document);
	double		waited_ms;
	bson_t		view;
	char	   *text;

	if (!took_long(connection, connection->waited_before, &waited_ms))
		return;
	if (length > LONGEST_COMMAND || !bson_view(&view, document, length))
		text = psprintf("%s (%u bytes)", (const char *) document + 5, length);
	else
	{
		text = mongo_json_show_document(&view);
		text[pg_mbcliplen(text, strlen(text), LONGEST_SHOWN)] = '\0';
	}
	log_command(connection, waited_ms, text);
	pfree(text);
}

void
mongo_log_slow_driver_command(MongoConnection *connection, uint64 waited_before)
{
	double		waited_ms;

	if (took_long(connection, waited_before, &waited_ms))
		log_command(connection, waited_ms, connection->transport.last_command);
}
