/*-------------------------------------------------------------------------
 *
 * wire.c
 *		Sends commands as OP_MSG messages, and receives and checks the replies.
 *
 * It works on a stream that libmongoc has connected and authenticated (connect.c).  Of the
 * functions that send and receive, only those whose names end in "or_raise", and
 * mongo_serve_interrupt(), raise; except for lack of memory before anything is sent.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include "miscadmin.h"

static void raise_wait(MongoConnection *connection);

/* ----- OP_MSG on a stream that libmongoc connected and authenticated ------ */

#define FIRST_REPLY_SIZE	16384

#define KEPT_CAPACITY		1048576 /* bytes that a buffer keeps after a send */

/* maxBsonObjectSize, and 16 kB for the command's other fields */
#define LARGEST_COMMAND		(16 * 1024 * 1024 + 16384)

/* ------------------------------- building ---------------------------------- */

/*
 * How a command is counted, and whether it takes $readPreference and readConcern outside of
 * sessions (Server Selection and Read Concern specifications).  A command that is not listed
 * takes $readPreference only.
 */
typedef struct CommandRule
{
	const char *name;
	MongoCounter kind;
	bool		read_preference;
	bool		read_concern;
} CommandRule;

static const CommandRule command_rules[] =
{
	{"find", MONGO_COUNT_FIND, true, true},
	{"getMore", MONGO_COUNT_GET_MORE, false, false},
	{"aggregate", MONGO_COUNT_AGGREGATE, true, true},
	{"count", MONGO_COUNT_COUNT, true, true},
	{"insert", MONGO_COUNT_INSERT, true, false},
	{"update", MONGO_COUNT_UPDATE, true, false},
	{"delete", MONGO_COUNT_DELETE, true, false},
	{"findAndModify", MONGO_COUNT_FIND_AND_MODIFY, true, false},
	{"distinct", MONGO_COUNT_OTHER, true, true},
	{"killCursors", MONGO_COUNT_OTHER, false, false},
};

static const CommandRule *
find_command_rule(const char *name)
{
	static const CommandRule other = {"", MONGO_COUNT_OTHER, true, false};

	for (size_t i = 0; i < lengthof(command_rules); i++)
	{
		if (strcmp(name, command_rules[i].name) == 0)
			return &command_rules[i];
	}
	return &other;
}

/*
 * mongo_check_command_size
 *		Raises 54000 for a command that is too large for MongoDB.
 */
void
mongo_check_command_size(const bson_t *command)
{
	if (command->len > LARGEST_COMMAND)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("command for MongoDB is too large"),
				 errdetail("It has %u bytes; MongoDB takes 16 MB.",
						   command->len),
				 errhint("If values in a query make it so large, turn off mongo_fdw.enable_pushdown, so that PostgreSQL compares them.")));
}

/* Returns the size of a document without its length word and final NUL. */
static inline size_t
elements_size(const bson_t *document)
{
	return document == NULL ? 0 : document->len - SMALLEST_DOCUMENT;
}

/* Copies a document without its length word and final NUL. */
static uint8 *
put_elements(uint8 *destination, const bson_t *document)
{
	size_t		size = elements_size(document);

	if (size > 0)
		memcpy(destination, bson_get_data(document) + 4, size);
	return destination + size;
}

/* Returns the size of a string element; 'length' does not count the NUL. */
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

static void
put_header(uint8 *p, size_t size, uint32 request_id, uint32 opcode)
{
	put_int32(p, size);
	put_int32(p + 4, request_id);
	put_int32(p + 8, 0);
	put_int32(p + 12, opcode);
}

static void
free_request(MongoBuffer *buffer)
{
	bson_free(buffer->data);
	buffer->data = NULL;
	buffer->capacity = 0;
}

/* Returns malloc'd space for 'size' bytes; earlier contents are lost. */
static uint8 *
make_space(MongoBuffer *buffer, size_t size)
{
	if (size > buffer->capacity)
	{
		/* freed first: if the allocation raises, the buffer is empty */
		free_request(buffer);
		size = Max(size, 1024);
		buffer->data = bson_malloc(size);
		buffer->capacity = size;
	}
	return buffer->data;
}

/*
 * Wraps the message of 'size' bytes in connection->request in an OP_COMPRESSED, and points *iov
 * at it.  Returns false if the message is to be sent uncompressed.
 *
 * A server compresses its reply only if the request was compressed.
 */
static bool
compress_message(MongoConnection *connection, size_t size, mongoc_iovec_t *iov)
{
	const MongoCompressor *compressor = connection->compressor;
	const uint8 *message = connection->request.data;
	size_t		packed = compressor->bound(size - HEADER_SIZE);
	uint8	   *p = make_space(&connection->compressed, COMPRESSED_OFFSET + packed);

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

/*
 * Builds the message of a command, and returns how many parts it has in iov[].
 *
 * The parts point to the connection's buffers and to the sequence.  Counts the command by its
 * kind.  Raises only 53200, and never for small messages (driver.c).
 */
static int
build_message(MongoConnection *connection, const MongoCommand *command, uint32 flags,
			  mongoc_iovec_t iov[2])
{
	const bson_t *document = command->document;

	/* a command's name is its first key */
	const CommandRule *rule = find_command_rule(bson_empty(document) ? "" :
												(const char *) bson_get_data(document) + 5);
	const bson_t *added[2] = {command->fields, NULL};
	bson_t		time = BSON_INITIALIZER;	/* small, so nothing is allocated */
	const MongoSequence *sequence = command->sequence;
	size_t		name_size = sequence != NULL ? strlen(sequence->name) + 1 : 0;
	size_t		sequence_size = sequence != NULL ? sequence->size : 0;
	bool		compresses = connection->compressor != NULL &&
		(connection->compresses || command->compress);
	size_t		copied_size = compresses ? sequence_size : 0;
	size_t		database_length = strlen(command->database);
	char		comment[MONGO_COMMENT_SIZE];
	size_t		comment_length = 0;
	size_t		body;
	size_t		head;
	uint8	   *p;

	if (command->fields == NULL)
	{
		added[0] = rule->read_preference ? connection->read_preference : NULL;
		if (command->at != 0)
		{
			mongo_append_time(&time, "atClusterTime", command->at);
			added[1] = &time;
		}
		else if (rule->read_concern && connection->read_concern != NULL &&
				 !bson_has_field(document, "readConcern"))
			added[1] = connection->read_concern;
	}
	/* the user's own comment is not replaced */
	if (connection->comment != NULL && !bson_has_field(document, "comment"))
		comment_length = mongo_trace_fill(connection->comment, comment, sizeof(comment));
	mongo_traffic_add(&connection->transport.traffic, rule->kind, 1);

	body = SMALLEST_DOCUMENT + elements_size(document) + elements_size(added[0]) +
		elements_size(added[1]) + utf8_size(sizeof("$db"), database_length);
	if (comment_length > 0)
		body += utf8_size(sizeof("comment"), comment_length);
	head = BODY_OFFSET + body + (sequence != NULL ? 1 + 4 + name_size : 0);

	/* a compressor needs the message in one piece */
	p = make_space(&connection->request, head + copied_size);
	put_header(p, head + sequence_size, ++connection->last_request_id, OP_MSG);
	put_int32(p + HEADER_SIZE, flags);
	p[HEADER_SIZE + 4] = 0;		/* a section of kind 0: one document */

	p += BODY_OFFSET;
	put_int32(p, body);
	p = put_elements(p + 4, document);
	p = put_utf8(p, "$db", sizeof("$db"), command->database, database_length);
	if (comment_length > 0)
		p = put_utf8(p, "comment", sizeof("comment"), comment, comment_length);
	p = put_elements(p, added[0]);
	p = put_elements(p, added[1]);
	*p++ = '\0';
	if (sequence != NULL)
	{
		*p++ = 1;				/* a section of kind 1: a document sequence */
		put_int32(p, 4 + name_size + sequence_size);
		memcpy(p + 4, sequence->name, name_size);
		p += 4 + name_size;
	}
	Assert(p == connection->request.data + head);
	if (copied_size > 0)
		memcpy(p, sequence->data, sequence_size);

	connection->has_compressed |= compresses;
	if (compresses &&
		compress_message(connection, head + sequence_size, iov))
		return 1;
	iov[0].iov_base = (void *) connection->request.data;
	iov[0].iov_len = head + copied_size;
	if (sequence_size == copied_size)
		return 1;
	iov[1].iov_base = unconstify(char *, sequence->data);
	iov[1].iov_len = sequence_size;
	return 2;
}

/* -------------------------------- sending ---------------------------------- */

/*
 * mongo_send
 *		Sends a command whose reply is to be received.  Returns whether all of it was sent;
 *		otherwise MongoDB does not run it.  Raises only 53200, before sending anything.
 *
 * If 'reply' is NULL, tells the server to send none (moreToCome), and does not wait: a connection
 * that cannot take the command at once is marked broken.
 */
bool
mongo_send(MongoConnection *connection, const MongoCommand *command, MongoReply *reply)
{
	MongoTransport *transport = &connection->transport;
	mongoc_iovec_t iov[2];
	uint64	   *bytes = &transport->traffic.counters[MONGO_COUNT_BYTES_SENT];
	uint64		before = *bytes;
	ssize_t		size;
	int			iovcnt;

	/* an exiting session sends its last commands in any state of libmongoc */
	if (reply != NULL)
		mongo_driver_check();
	transport->violation = NULL;
	transport->failure[0] = '\0';
	if (connection->broken || transport->data_stream == NULL)
		return false;
	iovcnt = build_message(connection, command, reply == NULL ? FLAG_MORE_TO_COME : 0, iov);
	size = iov[0].iov_len + (iovcnt > 1 ? iov[1].iov_len : 0);
	if (reply != NULL)
	{
		reply->request_id = connection->last_request_id;
		reply->received = reply->expected = 0;
		reply->is_compressed = false;
		reply->document = NULL;
		connection->has_queue = connection->in_flight > 0;
		connection->in_flight++;
		connection->waited_before = transport->traffic.counters[MONGO_COUNT_WAIT_US];
	}
	else
		connection->unanswered++;
	if (mongoc_stream_writev(transport->data_stream->top, iov, iovcnt,
							 reply == NULL ? 0 : MONGO_NO_TIMEOUT) != size)
		connection->broken = true;
	if (connection->request.capacity > KEPT_CAPACITY)
		free_request(&connection->request);
	if (connection->compressed.capacity > KEPT_CAPACITY)
		free_request(&connection->compressed);
	if (reply != NULL && reply->usage != NULL && !connection->broken)
	{
		reply->usage->commands++;
		reply->usage->bytes_sent += *bytes - before;
	}
	return !connection->broken;
}

/*
 * mongo_send_or_raise
 *		Sends a read.  Returns false if the connection is lost.  Raises what interrupts raise,
 *		08006 after socket_timeout_ms, and 54000 for a command too large for MongoDB.
 */
bool
mongo_send_or_raise(MongoConnection *connection, const MongoCommand *command,
					MongoReply *reply)
{
	mongo_check_command_size(command->document);
	if (mongo_send(connection, command, reply))
		return true;
	raise_wait(connection);
	return false;
}

/* ------------------------------- receiving --------------------------------- */

/* Marks the connection broken, and notes the violation unless it is NULL. */
static MongoOutcome
break_off(MongoConnection *connection, const char *violation)
{
	connection->broken = true;
	if (violation != NULL)
		mongo_transport_note_violation(connection->transport.data_stream, violation);
	return MONGO_BROKEN;
}

/*
 * Enlarges one of the reply's buffers to at least 'size' bytes, and keeps its first 'used' bytes.
 * Returns false, with the connection broken, if memory is missing.
 */
static bool
reserve_reply(MongoConnection *connection, MongoReply *reply, MongoBuffer *buffer,
			  size_t size, size_t used)
{
	uint8	   *larger;

	if (size <= buffer->capacity)
		return true;
	/* later batches of the scan may be a little larger */
	size += size / 8;
	larger = MemoryContextAllocExtended(reply->context, size,
										MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (larger == NULL)
	{
		connection->broken = true;
		mongo_transport_note_memory(&connection->transport, size);
		return false;
	}
	if (buffer->data != NULL)
	{
		memcpy(larger, buffer->data, used);
		pfree(buffer->data);
	}
	buffer->data = larger;
	buffer->capacity = size;
	return true;
}

static void
free_buffer(MongoBuffer *buffer)
{
	if (buffer->data != NULL)
		pfree(buffer->data);
	buffer->data = NULL;
	buffer->capacity = 0;
}

/*
 * mongo_reply_free
 *		Frees a reply's buffers.  The reply may be used again.
 */
void
mongo_reply_free(MongoReply *reply)
{
	free_buffer(&reply->message);
	free_buffer(&reply->compressed);
	reply->document = NULL;
}

/*
 * Returns the length of a short message that replies to an earlier request, which asked for no
 * reply: FerretDB replies all the same.  0: it is no such message, or not known yet.
 */
static size_t
unasked_length(const MongoConnection *connection, const MongoReply *reply)
{
	const uint8 *header = reply->message.data;

	if (connection->unanswered == 0 || reply->expected > 0 || reply->received < HEADER_SIZE ||
		(int32) (reply->request_id - get_int32(header + 8)) <= 0 ||
		get_int32(header) < HEADER_SIZE || get_int32(header) > FIRST_REPLY_SIZE)
		return 0;
	return get_int32(header);
}

/* Removes such messages, as far as they have arrived. */
static void
skip_unasked(MongoConnection *connection, MongoReply *reply)
{
	size_t		length;

	while ((length = unasked_length(connection, reply)) > 0 && length <= reply->received)
	{
		connection->unanswered--;
		reply->received -= length;
		memmove(reply->message.data, reply->message.data + length, reply->received);
	}
}

/* Checks the header of a reply, notes the message's length and makes space for it. */
static MongoOutcome
take_header(MongoConnection *connection, MongoReply *reply)
{
	const uint8 *header = reply->message.data;
	uint32		opcode = get_int32(header + 12);
	const char *violation = mongo_frame_check_header(header, reply->request_id);
	bool		is_compressed = opcode == OP_COMPRESSED && connection->compressor != NULL;

	if (violation == NULL && opcode != OP_MSG && !is_compressed)
		violation = "The message is not an OP_MSG.";
	if (violation != NULL)
		return break_off(connection, violation);

	reply->expected = get_int32(header);
	if (!is_compressed)
		return reserve_reply(connection, reply, &reply->message, reply->expected,
							 reply->received) ? MONGO_REPLY : MONGO_BROKEN;
	if (!reserve_reply(connection, reply, &reply->compressed,
					   Max(reply->expected, reply->received), 0))
		return MONGO_BROKEN;
	memcpy(reply->compressed.data, header, reply->received);
	reply->is_compressed = true;
	return MONGO_REPLY;
}

/* Uncompresses and checks a complete message, and finds the reply's document. */
static MongoOutcome
take_document(MongoConnection *connection, MongoReply *reply)
{
	size_t		length = reply->expected;
	const char *violation = NULL;

	if (reply->received > length)
		violation = "The message is followed by another one that was not asked for.";
	else if (!reply->is_compressed)
		violation = mongo_frame_check_message(reply->message.data, length);
	else
	{
		const uint8 *source = reply->compressed.data;
		size_t		size = 0;

		violation = mongo_frame_check_compressed(source, connection->compressor, &size);
		if (violation == NULL)
		{
			if (!reserve_reply(connection, reply, &reply->message, size, 0))
				return MONGO_BROKEN;
			violation = mongo_frame_expand(source, length, connection->compressor,
										   reply->message.data, size);
		}
		length = size;
	}
	if (violation != NULL)
		return break_off(connection, violation);
	reply->document = reply->message.data + BODY_OFFSET;
	reply->length = length - BODY_OFFSET;
	return MONGO_REPLY;
}

/*
 * Waits for the reply to a request, and reads it.  Never raises.
 *
 * After MONGO_INTERRUPTED a later call continues with the same reply.
 */
static MongoOutcome
receive_whole(MongoConnection *connection, MongoReply *reply, MongoInterrupts interrupts)
{
	MongoTransport *transport = &connection->transport;

	/*
	 * Just after a send nothing can have arrived.  Otherwise, wait only when
	 * a read has found nothing: TLS may hold decrypted bytes that no wait on
	 * the socket would report.
	 */
	bool		wait = reply->received == 0 && !connection->has_queue;

	if (!reserve_reply(connection, reply, &reply->message, FIRST_REPLY_SIZE, 0))
		return MONGO_BROKEN;
	while (reply->expected == 0 || reply->received < reply->expected)
	{
		MongoBuffer *buffer = reply->is_compressed ? &reply->compressed : &reply->message;

		/* no byte of the next reply, if that may have arrived, too */
		size_t		unasked = unasked_length(connection, reply);
		size_t		size = reply->expected > 0 ? reply->expected : unasked > 0 ? unasked :
			connection->in_flight > 1 ? HEADER_SIZE : buffer->capacity;
		MongoStream *stream = transport->data_stream;
		ssize_t		count;

		if (connection->broken || stream == NULL)
			return break_off(connection, NULL);
		if (wait && !mongo_stream_wait_for_reply(stream, interrupts))
			return transport->memory_missing > 0 || transport->wait_error != NULL ?
				break_off(connection, NULL) : MONGO_INTERRUPTED;
		if (reply->received == 0)
			reply->first_wait = transport->traffic.counters[MONGO_COUNT_WAIT_US];
		count = mongoc_stream_read(stream->top, buffer->data + reply->received,
								   size - reply->received, 0, 0);
		wait = count <= 0;
		if (wait && !mongoc_stream_should_retry(stream->top))
			return break_off(connection, NULL);
		reply->received += Max(count, 0);
		skip_unasked(connection, reply);
		if (reply->expected == 0 && reply->received >= HEADER_SIZE &&
			unasked_length(connection, reply) == 0 &&
			take_header(connection, reply) != MONGO_REPLY)
			return MONGO_BROKEN;
	}
	if (take_document(connection, reply) != MONGO_REPLY)
		return MONGO_BROKEN;
	connection->in_flight--;
	connection->has_queue = connection->in_flight > 0;
	mongo_traffic_add(&transport->traffic, MONGO_COUNT_ROUND_TRIPS, 1);
	return MONGO_REPLY;
}

/* Calls receive_whole(), and adds bytes and waiting time to reply->usage. */
static MongoOutcome
receive_reply(MongoConnection *connection, MongoReply *reply, MongoInterrupts interrupts)
{
	const uint64 *counters = connection->transport.traffic.counters;
	uint64		bytes = counters[MONGO_COUNT_BYTES_RECEIVED];
	uint64		wait_us = counters[MONGO_COUNT_WAIT_US];
	MongoOutcome outcome = receive_whole(connection, reply, interrupts);

	if (reply->usage != NULL)
	{
		reply->usage->bytes_received += counters[MONGO_COUNT_BYTES_RECEIVED] - bytes;
		reply->usage->wait_us += counters[MONGO_COUNT_WAIT_US] - wait_us;
		if (reply->received > 0)
			reply->usage->transfer_us += counters[MONGO_COUNT_WAIT_US] -
				Max(reply->first_wait, wait_us);
	}
	return outcome;
}

/* Returns what is wrong with a complete reply, or NULL. */
static const char *
check_command_reply(const MongoReply *reply)
{
	const char *violation = mongo_reply_check(reply->document, reply->length);
	bson_iter_t ok;

	return violation != NULL || mongo_reply_find(reply, "ok", &ok) ? violation :
		"The reply is not that of a command.";
}

/*
 * mongo_receive
 *		Waits for the reply to a command without a cursor, and checks it.  Returns MONGO_BROKEN
 *		also for an invalid reply.  Never raises.
 */
MongoOutcome
mongo_receive(MongoConnection *connection, MongoReply *reply, MongoInterrupts interrupts)
{
	MongoOutcome outcome = receive_reply(connection, reply, interrupts);
	const char *violation = outcome == MONGO_REPLY ? check_command_reply(reply) : NULL;

	if (violation == NULL)
		return outcome;
	/* the outcome of the command is unknown */
	reply->document = NULL;
	return break_off(connection, violation);
}

/*
 * mongo_serve_interrupt
 *		Serves the interrupt that has ended a wait, and raises what it raises.  Returns if the
 *		wait may go on.  Unless 'is_cursor', nobody waits for the reply after an error.
 *
 * Raises 08006 after socket_timeout_ms.
 */
void
mongo_serve_interrupt(MongoConnection *connection, MongoReply *reply, bool is_cursor)
{
	PG_TRY();
	{
		CHECK_FOR_INTERRUPTS();
	}
	PG_CATCH();
	{
		/* a cursor may continue later */
		if (!is_cursor)
			mongo_reply_abandon(connection, reply);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (connection->transport.timed_out)
		connection->broken = true;
	raise_wait(connection);
}

/*
 * mongo_receive_or_raise
 *		Receives the reply to a read.  Returns false if the connection is lost.  If 'is_cursor',
 *		the caller checks the document.
 *
 * Raises 08P01 for an invalid reply, 08006 after socket_timeout_ms, 53200, and what interrupts
 * raise.  A later call continues with the same reply.
 */
bool
mongo_receive_or_raise(MongoConnection *connection, MongoReply *reply, bool is_cursor)
{
	MongoTransport *transport = &connection->transport;
	MongoOutcome outcome;
	const char *violation;

	while ((outcome = receive_reply(connection, reply, MONGO_ANY_INTERRUPT)) == MONGO_INTERRUPTED)
		mongo_serve_interrupt(connection, reply, is_cursor);
	if (outcome != MONGO_REPLY)
		raise_wait(connection);
	else
		mongo_log_slow_command(connection);
	violation = outcome == MONGO_REPLY && !is_cursor ? check_command_reply(reply) :
		transport->violation;
	if (violation != NULL)
	{
		connection->broken = true;
		transport->violation = NULL;
		mongo_report_violation(connection->server_name, violation);
	}
	return outcome == MONGO_REPLY;
}

/*
 * mongo_has_reply
 *		Tells whether a reply has begun to arrive, or the connection is lost.  Does not wait.
 */
bool
mongo_has_reply(MongoConnection *connection)
{
	return connection->broken || connection->transport.data_stream == NULL ||
		mongo_stream_has_input(connection->transport.data_stream);
}

/*
 * mongo_reply_abandon
 *		Has the connection receive the rest of a reply that nobody will wait for.  Without memory
 *		for what has been received, marks the connection broken.  Never raises.
 */
void
mongo_reply_abandon(MongoConnection *connection, const MongoReply *reply)
{
	MongoReply *rest = &connection->abandoned;
	const MongoBuffer *from = reply->is_compressed ? &reply->compressed : &reply->message;
	MongoBuffer *to = reply->is_compressed ? &rest->compressed : &rest->message;

	if (connection->broken || reply->received == 0 || reply->document != NULL)
		return;
	rest->context = connection->context;
	if (!reserve_reply(connection, rest, to, Max(from->capacity, FIRST_REPLY_SIZE), 0))
		return;
	memcpy(to->data, from->data, reply->received);
	rest->document = NULL;
	rest->request_id = reply->request_id;
	rest->received = reply->received;
	rest->expected = reply->expected;
	rest->is_compressed = reply->is_compressed;
}

/* Receives a reply before the limit, if there is one that soon.  Never raises. */
static bool
receive_by(MongoConnection *connection, MongoReply *reply, int milliseconds)
{
	MongoTransport *transport = &connection->transport;
	MongoOutcome outcome;

	if (mongo_connection_is_lost(connection))
		return false;
	transport->interrupted = false;
	connection->has_queue = true;	/* it reads before it waits */
	mongo_begin_ending(transport, milliseconds, 0);
	outcome = receive_reply(connection, reply, MONGO_DUE_INTERRUPT);
	mongo_finish_ending(transport);
	connection->broken |= outcome == MONGO_BROKEN || transport->timed_out;
	if (!connection->broken)
		transport->interrupted = false;
	return outcome == MONGO_REPLY;
}

/*
 * mongo_receive_within
 *		Receives an unwanted reply.  If it does not come in so many milliseconds, returns false,
 *		and the connection receives it later.  Never raises.
 */
bool
mongo_receive_within(MongoConnection *connection, MongoReply *reply, int milliseconds)
{
	/* an earlier reply may be outstanding */
	if (mongo_next_request(connection) != reply->request_id)
		return false;
	if (receive_by(connection, reply, milliseconds))
		return true;
	mongo_reply_abandon(connection, reply);
	return false;
}

/*
 * mongo_receive_abandoned
 *		Receives the next reply if nobody waits for it: if it is that to a request before 'next',
 *		which is 0 if nobody waits for any.
 *
 * Returns NULL without one, and if it does not come within so many milliseconds.  The reply is
 * the connection's.  Never raises.
 */
MongoReply *
mongo_receive_abandoned(MongoConnection *connection, uint32 next, int milliseconds)
{
	MongoReply *reply = &connection->abandoned;
	uint32		oldest = mongo_next_request(connection);

	if (connection->in_flight == 0 || (next != 0 && (int32) (next - oldest) <= 0))
		return NULL;
	if (reply->document != NULL || reply->received == 0)
	{
		reply->context = connection->context;
		reply->request_id = oldest;
		reply->received = reply->expected = 0;
		reply->is_compressed = false;
		reply->document = NULL;
	}
	return receive_by(connection, reply, milliseconds) ? reply : NULL;
}

/* ---------------------------- reporting failures --------------------------- */

/*
 * mongo_report_violation
 *		Raises 08P01 for an invalid reply; its connection must not be reused.
 */
void
mongo_report_violation(const char *server_name, const char *detail)
{
	mongo_activity_count_current(MONGO_COUNT_ERRORS, 1);
	ereport(ERROR,
			(errcode(ERRCODE_PROTOCOL_VIOLATION),
			 errmsg("server \"%s\" sent an invalid reply", server_name),
			 errdetail("%s", detail)));
}

/*
 * mongo_raise_lock_timeout
 *		Raises 55P03 for a document that another transaction holds.
 */
void
mongo_raise_lock_timeout(void)
{
	mongo_activity_count_current(MONGO_COUNT_ERRORS, 1);
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("canceling statement due to lock timeout"),
			 errdetail("Another transaction has changed a document in MongoDB and has not ended.")));
}

/*
 * Raises the error that broke a wait, or 08006 if the wait exceeded socket_timeout_ms.  Returns
 * if it was neither.
 */
static void
raise_wait(MongoConnection *connection)
{
	MongoTransport *transport = &connection->transport;

	mongo_transport_raise(transport);
	if (transport->lock_timed_out)
	{
		transport->lock_timed_out = false;
		mongo_raise_lock_timeout();
	}
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

/*
 * mongo_lease_check_interrupts
 *		Logs the last command if it was slow, and raises the error that broke its wait, unless the
 *		lease has no connection any more.  Called after the command's outcome has been recorded.
 */
void
mongo_lease_check_interrupts(MongoLease *lease)
{
	MongoConnection *connection = lease->connection;

	/* looking for the primary may have failed */
	if (connection == NULL)
		return;
	mongo_log_slow_command(connection);
	raise_wait(connection);
}

/*
 * mongo_report_disconnect
 *		Raises 08006 for a lost connection.
 */
void
mongo_report_disconnect(const char *server_name)
{
	mongo_activity_count_current(MONGO_COUNT_ERRORS, 1);
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("connection to server \"%s\" was lost", server_name),
			 errdetail("MongoDB closed the connection, or the network failed, before the answer was complete."),
			 errhint("MongoDB also does so when a document of the answer would have more than 16 MB.")));
}
