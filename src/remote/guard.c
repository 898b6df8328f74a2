/*-------------------------------------------------------------------------
 *
 * guard.c
 *		The guard between libmongoc and the network.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"

#include "utils/timestamp.h"

/*-------------------------------------------------------------------------
 * A stream that lets only well-formed replies through to libmongoc.
 *
 * Runs inside libmongoc's frames: nothing here may raise.
 *-------------------------------------------------------------------------
 */

#define GUARD_TYPE			0x4d47	/* none of libmongoc's own */
/* In place of what is wrong with a reply: nothing is. */
static const char NO_MEMORY[] = "There is no memory for the message.";

#define KEPT_CAPACITY		65536	/* of a buffer between two replies */

/* OP_REPLY: responseFlags, cursorID, startingFrom, numberReturned, documents */
#define REPLY_COUNT_OFFSET	(HEADER_SIZE + 4 + 8 + 4)
#define REPLY_OFFSET		(REPLY_COUNT_OFFSET + 4)

typedef struct GuardBuffer
{
	uint8	   *data;			/* malloc'd */
	size_t		capacity;
} GuardBuffer;

typedef struct MongoGuard
{
	mongoc_stream_t vtable;		/* first: libmongoc sees only that */
	mongoc_stream_t *base;
	MongoStream *stream;		/* at the bottom of base */
	bool		violated;		/* a reply has come that cannot be taken: no
								 * more reading */

	/* the reply that is coming in, or has come and is being handed on */
	GuardBuffer incoming;
	size_t		received;
	size_t		expected;		/* HEADER_SIZE until the header is there */
	bool		complete;
	size_t		handed_on;		/* of incoming, once complete */
	GuardBuffer expanded;		/* room to uncompress in */

	/* the request that is going out */
	uint8		header[HEADER_SIZE];
	size_t		header_sent;
	size_t		left_to_send;	/* after the header */
	uint32		request_id;		/* of the last one */
	uint32		request_opcode;
	bool		request_ends;	/* a transaction: see MongoEnding */
} MongoGuard;

/*
 * reserve
 *		Room for 'size' bytes; false when there is not so much memory.
 *
 * Not by bson_realloc(), which ends the session then.  As much as libmongoc
 * takes for its copy, so that this fits in its place (fits_libmongoc).
 */
static bool
reserve(MongoGuard *guard, GuardBuffer *buffer, size_t size)
{
	uint8	   *larger;

	if (size <= buffer->capacity)
		return true;
	if (size > KEPT_CAPACITY)
		size = mongo_memory_grown(size) + KEPT_CAPACITY;
	larger = realloc(buffer->data, size);
	if (larger == NULL)
	{
		mongo_transport_note_memory(guard->stream->transport, size);
		return false;
	}
	buffer->data = larger;
	buffer->capacity = size;
	return true;
}

/*
 * fits_libmongoc
 *		Has libmongoc room for the reply?
 *
 * It reads it whole, and copies the document when our buffer has been freed.
 */
static bool
fits_libmongoc(MongoGuard *guard)
{
	size_t		needed = mongo_memory_grown(guard->expected) + KEPT_CAPACITY;

	if (guard->expected <= KEPT_CAPACITY || mongo_memory_is_available(needed))
		return true;
	mongo_transport_note_memory(guard->stream->transport, needed);
	return false;
}

/* The newest OP_REPLY that there is: one document, as an answer to "hello". */
static const char *
check_reply(const uint8 *message, size_t length)
{
	if (length < REPLY_OFFSET + SMALLEST_DOCUMENT)
		return "The message length is out of bounds.";
	if (get_int32(message + REPLY_COUNT_OFFSET) != 1)
		return "The message does not hold one document.";
	if (get_int32(message + REPLY_OFFSET) != length - REPLY_OFFSET)
		return "The document does not fill the message.";
	return mongo_reply_check(message + REPLY_OFFSET, length - REPLY_OFFSET);
}

/* check_message: what is wrong with a whole message, or NULL. */
static const char *
check_message(const uint8 *message, size_t length)
{
	const char *violation = mongo_frame_check_message(message, length);

	return violation != NULL ? violation :
		mongo_reply_check(message + BODY_OFFSET, length - BODY_OFFSET);
}

/*
 * check_complete
 *		The reply has come whole: is it a good one?  Uncompresses it.
 */
static const char *
check_complete(MongoGuard *guard)
{
	const uint8 *message = guard->incoming.data;
	const char *violation;
	size_t		size;
	GuardBuffer compressed;

	switch (get_int32(message + 12))
	{
		case OP_REPLY:
			return check_reply(message, guard->expected);
		case OP_MSG:
			return check_message(message, guard->expected);
		case OP_COMPRESSED:
			violation = mongo_frame_check_compressed(message, NULL, &size);
			if (violation != NULL)
				return violation;
			if (!reserve(guard, &guard->expanded, size))
				return NO_MEMORY;
			violation = mongo_frame_expand(message, guard->expected,
										   guard->expanded.data, size);
			compressed = guard->incoming;
			guard->incoming = guard->expanded;
			guard->expanded = compressed;
			guard->received = guard->expected = size;
			return violation != NULL ? violation :
				mongo_reply_check(guard->incoming.data + BODY_OFFSET, size - BODY_OFFSET);
		default:
			return "The message is not an OP_MSG.";
	}
}

/* The connection is not read from any more. */
static ssize_t
refuse_reply(MongoGuard *guard, const char *violation)
{
	MongoTransport *transport = guard->stream->transport;
	char		text[200];

	guard->violated = true;
	transport->violation = violation;
	snprintf(text, sizeof(text), "%s sent an invalid reply: %s",
			 guard->stream->host_and_port, violation);
	mongo_transport_note_failure(transport, text);
	errno = EPROTO;
	return -1;
}

/* Nor from this one; the transport knows why. */
static ssize_t
give_up(MongoGuard *guard)
{
	guard->violated = true;
	errno = ENOMEM;
	return -1;
}

/* Is there more behind the reply, which nobody has asked for? */
static bool
is_followed(const MongoGuard *guard)
{
	const MongoStream *stream = guard->stream;

	/* below TLS, which has records of its own, that would mean nothing */
	return guard->base == &stream->vtable &&
		stream->buffer_start < stream->buffer_end;
}

/*
 * note_heard: the server has answered, so it is there; and it has ended what it was
 * asked to end.
 */
static void
note_heard(const MongoGuard *guard)
{
	MongoEnding *ending = &guard->stream->transport->ending;

	mongo_traffic_add(&guard->stream->transport->traffic, MONGO_COUNT_ROUND_TRIPS, 1);
	ending->heard = true;
	if (guard->request_ends)
		ending->answered = true;
}

/* answers_instead: not where the server had its time, which is a lost connection. */
static bool
answers_instead(const MongoGuard *guard)
{
	const MongoTransport *transport = guard->stream->transport;

	return transport->interrupted && !transport->timed_out;
}

/*
 * answer_instead
 *		A reply of our own to the request whose wait an interrupt has broken.
 *
 * Its code is that of an operation killed in MongoDB, which no driver retries.
 * False where the request was a greeting of the old form.
 */
static bool
answer_instead(MongoGuard *guard)
{
	bson_t		reply = BSON_INITIALIZER;	/* stays within the bson_t */
	size_t		size;

	if (guard->request_opcode != OP_MSG && guard->request_opcode != OP_COMPRESSED)
		return false;
	BSON_APPEND_DOUBLE(&reply, "ok", 0);
	BSON_APPEND_UTF8(&reply, "errmsg", "interrupted by PostgreSQL");
	BSON_APPEND_INT32(&reply, "code", MONGO_INTERRUPTED);
	BSON_APPEND_UTF8(&reply, "codeName", "Interrupted");
	size = BODY_OFFSET + reply.len;

	if (!reserve(guard, &guard->incoming, size))
		return false;
	memset(guard->incoming.data, 0, BODY_OFFSET);
	put_int32(guard->incoming.data, size);
	put_int32(guard->incoming.data + 8, guard->request_id);
	put_int32(guard->incoming.data + 12, OP_MSG);
	memcpy(guard->incoming.data + BODY_OFFSET, bson_get_data(&reply), reply.len);

	guard->received = guard->expected = guard->stream->guarded = size;
	guard->complete = true;
	return true;
}

/*
 * take_in
 *		Read on until a reply has come whole; 1, or what a read returns else.
 */
static ssize_t
take_in(MongoGuard *guard, int32_t timeout_msec)
{
	while (!guard->complete)
	{
		size_t		missing = guard->expected - guard->received;
		ssize_t		count;
		const char *violation = NULL;

		if (!reserve(guard, &guard->incoming, guard->expected))
			return give_up(guard);
		count = mongoc_stream_read(guard->base,
								   guard->incoming.data + guard->received,
								   missing, timeout_msec == 0 ? 0 : missing,
								   timeout_msec);
		if (count <= 0)
			return count;
		guard->received += count;
		if (guard->received < guard->expected)
			continue;

		if (guard->expected == HEADER_SIZE)
		{
			violation = mongo_frame_check_header(guard->incoming.data,
												 guard->request_id);
			guard->expected = get_int32(guard->incoming.data);
		}
		else
		{
			violation = check_complete(guard);
			if (violation == NULL && is_followed(guard))
				violation = "The message is followed by another one that was not asked for.";
			guard->complete = true;
			if (violation == NULL)
				note_heard(guard);
		}
		if (violation == NO_MEMORY)
			return give_up(guard);
		if (violation != NULL)
			return refuse_reply(guard, violation);
		if (guard->complete && !fits_libmongoc(guard))
			return give_up(guard);
	}
	guard->stream->guarded = guard->expected - guard->handed_on;
	return 1;
}

/* All of it has been handed on: be ready for the next. */
static void
start_anew(MongoGuard *guard)
{
	GuardBuffer *buffers[] = {&guard->incoming, &guard->expanded};

	for (size_t i = 0; i < lengthof(buffers); i++)
	{
		if (buffers[i]->capacity <= KEPT_CAPACITY)
			continue;
		free(buffers[i]->data);
		buffers[i]->data = NULL;
		buffers[i]->capacity = 0;
	}
	guard->received = guard->handed_on = 0;
	guard->expected = HEADER_SIZE;
	guard->complete = false;
}

/*
 * guard_readv: as many bytes of checked messages as libmongoc wants, at least
 * min_bytes.
 */
static ssize_t
guard_readv(mongoc_stream_t *base, mongoc_iovec_t *iov, size_t iovcnt,
			size_t min_bytes, int32_t timeout_msec)
{
	MongoGuard *guard = (MongoGuard *) base;
	ssize_t		total = 0;

	for (size_t i = 0; i < iovcnt; i++)
	{
		size_t		filled = 0;

		while (filled < iov[i].iov_len)
		{
			size_t		size;
			ssize_t		result;

			if (guard->violated)
			{
				errno = EPROTO;
				return -1;
			}
			result = take_in(guard, timeout_msec);
			if (result <= 0 && answers_instead(guard) && answer_instead(guard))
				result = 1;
			if (result <= 0)
				return total > 0 && min_bytes == 0 ? total : result;

			size = Min(iov[i].iov_len - filled, guard->stream->guarded);
			memcpy((char *) iov[i].iov_base + filled,
				   guard->incoming.data + guard->handed_on, size);
			guard->handed_on += size;
			guard->stream->guarded -= size;
			filled += size;
			total += size;
			if (guard->stream->guarded == 0)
				start_anew(guard);
			if ((size_t) total >= min_bytes)
				return total;
		}
	}
	return total;
}

/* These bytes have been sent: note each request's id, which stands in its header. */
static void
note_bytes_sent(MongoGuard *guard, const uint8 *bytes, size_t size)
{
	while (size > 0)
	{
		size_t		part = guard->left_to_send > 0 ? guard->left_to_send :
			HEADER_SIZE - guard->header_sent;

		part = Min(part, size);
		if (guard->left_to_send > 0)
			guard->left_to_send -= part;
		else
		{
			memcpy(guard->header + guard->header_sent, bytes, part);
			guard->header_sent += part;
			if (guard->header_sent == HEADER_SIZE)
			{
				guard->header_sent = 0;
				guard->left_to_send = get_int32(guard->header) - HEADER_SIZE;
				guard->request_id = get_int32(guard->header + 4);
				guard->request_opcode = get_int32(guard->header + 12);
			}
		}
		bytes += part;
		size -= part;
	}
}

/* As much of a message as holds its command's name, with those that end transactions. */
#define MESSAGE_START	(BODY_OFFSET + 4 + 1 + sizeof("commitTransaction"))

/*
 * begins_message
 *		Is this the start of a message?  It is copied then.
 *
 * libmongoc hands over whole messages.
 */
static bool
begins_message(const MongoGuard *guard, const mongoc_iovec_t *iov, size_t iovcnt, char *start)
{
	size_t		size = 0;

	if (guard->header_sent > 0 || guard->left_to_send > 0)
		return false;
	for (size_t i = 0; i < iovcnt && size < MESSAGE_START; i++)
	{
		size_t		part = Min(iov[i].iov_len, MESSAGE_START - size);

		memcpy(start + size, iov[i].iov_base, part);
		size += part;
	}
	start[MESSAGE_START] = '\0';
	return size == MESSAGE_START;
}

/*
 * ends_transaction
 *		Is this the start of a message that ends a transaction?
 *
 * Of a compressed one it is assumed.
 */
static bool
ends_transaction(const char *start)
{
	static const char *const names[] = {
		"commitTransaction", "abortTransaction", "killSessions"
	};

	if (get_int32((const uint8 *) start + 12) == OP_COMPRESSED)
		return true;
	for (size_t i = 0; i < lengthof(names); i++)
	{
		if (strncmp(start + BODY_OFFSET + 4 + 1, names[i], strlen(names[i]) + 1) == 0)
			return true;
	}
	return false;
}

/*
 * count_request
 *		A message begins: count the command in it.
 */
static void
count_request(const MongoGuard *guard, const char *start)
{
	bool		is_plain = get_int32((const uint8 *) start + 12) == OP_MSG;
	MongoTransport *transport = guard->stream->transport;

	strlcpy(transport->last_command, is_plain ? start + BODY_OFFSET + 4 + 1 : "compressed",
			sizeof(transport->last_command));

	mongo_traffic_note_command(&transport->traffic,
							   is_plain ? start + BODY_OFFSET + 4 + 1 : "");
}

/*
 * view_body
 *		The command of a message that begins here; false where it is compressed or not
 *		in one piece.
 */
static bool
view_body(const mongoc_iovec_t *iov, size_t iovcnt, const char *start, bson_t *body)
{
	size_t		offset = BODY_OFFSET;

	if (get_int32((const uint8 *) start + 12) != OP_MSG)
		return false;
	for (size_t i = 0; i < iovcnt; i++)
	{
		if (offset < iov[i].iov_len)
		{
			const uint8 *data = (const uint8 *) iov[i].iov_base + offset;
			size_t		size = iov[i].iov_len - offset;

			return size >= SMALLEST_DOCUMENT && get_int32(data) <= size &&
				bson_view(body, data, get_int32(data));
		}
		offset -= iov[i].iov_len;
	}
	return false;
}

/*
 * note_transaction
 *		Does this message begin a transaction?  Then this is its number.
 */
static void
note_transaction(const MongoGuard *guard, const mongoc_iovec_t *iov, size_t iovcnt,
				 const char *start)
{
	MongoTransport *transport = guard->stream->transport;
	bson_t		body;
	bson_iter_t iter;
	bool		begins = false;
	int64		number = 0;

	if (transport->data_stream != guard->stream || !view_body(iov, iovcnt, start, &body) ||
		!bson_iter_init(&iter, &body))
		return;
	while (bson_iter_next(&iter))
	{
		const char *key = bson_iter_key(&iter);

		if (strcmp(key, "startTransaction") == 0)
			begins = bson_iter_as_bool(&iter);
		else if (strcmp(key, "txnNumber") == 0 && BSON_ITER_HOLDS_INT64(&iter))
			number = bson_iter_int64(&iter);
	}
	if (!begins)
		return;
	transport->begins = false;
	transport->transaction_number = number;
}

/* The command that ends a transaction has left, or may have. */
static void
note_ending(MongoEnding *ending)
{
	ending->sent++;
	if (ending->reply_ms > 0)
		ending->deadline = Min(ending->deadline,
							   TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
														   ending->reply_ms));
}

/* Once interrupted all is taken, none is sent, and answer_instead() answers. */
static ssize_t
guard_writev(mongoc_stream_t *base, mongoc_iovec_t *iov, size_t iovcnt,
			 int32_t timeout_msec)
{
	MongoGuard *guard = (MongoGuard *) base;
	MongoTransport *transport = guard->stream->transport;
	uint64		bytes_before = guard->stream->bytes_sent;
	char		start[MESSAGE_START + 1];
	bool		begins = begins_message(guard, iov, iovcnt, start);
	bool		ends = begins && transport->ending.active && ends_transaction(start);
	ssize_t		sent = -1;
	size_t		left;

	if (guard->header_sent == 0 && guard->left_to_send == 0)
		guard->request_ends = ends;
	errno = ECANCELED;
	if (!transport->interrupted)
		sent = mongoc_stream_writev(guard->base, iov, iovcnt, timeout_msec);
	if (begins && guard->stream->bytes_sent != bytes_before)
		count_request(guard, start);
	if (begins && transport->begins)
		note_transaction(guard, iov, iovcnt, start);
	if (ends && guard->stream->bytes_sent != bytes_before)
		note_ending(&transport->ending);
	if (sent < 0 && answers_instead(guard))
	{
		sent = 0;
		for (size_t i = 0; i < iovcnt; i++)
			sent += iov[i].iov_len;
	}

	left = Max(sent, 0);
	for (size_t i = 0; i < iovcnt && left > 0; i++)
	{
		size_t		part = Min(left, iov[i].iov_len);

		note_bytes_sent(guard, (const uint8 *) iov[i].iov_base, part);
		left -= part;
	}
	return sent;
}

static void
guard_destroy(mongoc_stream_t *base)
{
	MongoGuard *guard = (MongoGuard *) base;

	mongoc_stream_destroy(guard->base);
	free(guard->incoming.data);
	free(guard->expanded.data);
	bson_free(guard);
}

static int
guard_close(mongoc_stream_t *base)
{
	return mongoc_stream_close(((MongoGuard *) base)->base);
}

static int
guard_flush(mongoc_stream_t *base)
{
	return mongoc_stream_flush(((MongoGuard *) base)->base);
}

static int
guard_setsockopt(mongoc_stream_t *base, int level, int name, void *value,
				 mongoc_socklen_t length)
{
	return mongoc_stream_setsockopt(((MongoGuard *) base)->base, level, name,
									value, length);
}

static mongoc_stream_t *
guard_get_base_stream(mongoc_stream_t *base)
{
	return ((MongoGuard *) base)->base;
}

static bool
guard_check_closed(mongoc_stream_t *base)
{
	return mongoc_stream_check_closed(((MongoGuard *) base)->base);
}

static bool
guard_timed_out(mongoc_stream_t *base)
{
	return mongoc_stream_timed_out(((MongoGuard *) base)->base);
}

static bool
guard_should_retry(mongoc_stream_t *base)
{
	MongoGuard *guard = (MongoGuard *) base;

	return !guard->violated && mongoc_stream_should_retry(guard->base);
}

mongoc_stream_t *
mongo_guard_new(MongoStream *stream)
{
	MongoGuard *guard = bson_malloc0(sizeof(MongoGuard));

	guard->vtable.type = GUARD_TYPE;
	guard->vtable.destroy = guard_destroy;
	guard->vtable.failed = guard_destroy;
	guard->vtable.close = guard_close;
	guard->vtable.flush = guard_flush;
	guard->vtable.readv = guard_readv;
	guard->vtable.writev = guard_writev;
	guard->vtable.setsockopt = guard_setsockopt;
	guard->vtable.get_base_stream = guard_get_base_stream;
	guard->vtable.check_closed = guard_check_closed;
	guard->vtable.timed_out = guard_timed_out;
	guard->vtable.should_retry = guard_should_retry;
	guard->base = stream->top;
	guard->stream = stream;
	stream->guard = &guard->vtable;
	guard->expected = HEADER_SIZE;
	return &guard->vtable;
}

/* ----------- Is a reply's document one that libmongoc survives? ----------- */

/*
 * Of a password's hash, in which nothing can be interrupted: a third of a second.
 * MongoDB's own are 10,000 (SCRAM-SHA-1) and 15,000 (SCRAM-SHA-256), unless an
 * administrator raises them.
 */
#define MOST_ITERATIONS	100000
#define TOO_MANY_ITERATIONS \
	"It asks for more than " CppAsString2(MOST_ITERATIONS) " iterations of a password's hash."

#define IMPOSSIBLE_VALUE	"A field of the reply has a value that it cannot have."

/* The deepest that libmongoc goes: {writeErrors: [{field: document}]}. */
#define LEVELS	3

/* is_whole: down to the documents so many levels below, whose insides are not. */
static bool
is_whole(const uint8 *document, size_t length, int levels)
{
	bson_iter_t iter;

	if (length < SMALLEST_DOCUMENT || get_int32(document) != length ||
		document[length - 1] != '\0')
		return false;
	if (levels == 0)
		return true;
	if (!bson_iter_init_from_data(&iter, document, length))
		return false;
	while (bson_iter_next(&iter))
	{
		const uint8_t *nested = NULL;
		uint32_t	nested_length = 0;

		if (BSON_ITER_HOLDS_DOCUMENT(&iter))
			bson_iter_document(&iter, &nested_length, &nested);
		else if (BSON_ITER_HOLDS_ARRAY(&iter))
			bson_iter_array(&iter, &nested_length, &nested);
		else
			continue;
		if (!is_whole(nested, nested_length, levels - 1))
			return false;
	}
	return iter.err_off == 0;
}

/* is_document: or an array, which libmongoc enters in the same way. */
static bool
is_document(const bson_iter_t *field)
{
	return BSON_ITER_HOLDS_DOCUMENT(field) || BSON_ITER_HOLDS_ARRAY(field);
}

/* check_iterations: NULL unless the number at 'digits' is too large. */
static const char *
check_iterations(const uint8_t *digits, const uint8_t *end)
{
	int64		iterations = 0;

	for (; digits < end && *digits != ','; digits++)
	{
		iterations = iterations * 10 + (*digits >= '0' && *digits <= '9' ? *digits - '0' : 0);
		if (iterations > MOST_ITERATIONS)
			return TOO_MANY_ITERATIONS;
	}
	return NULL;
}

/*
 * check_scram_message: "r=...,s=...,i=4096" and the like (RFC 5802), as far as
 * libmongoc reads on; other mechanisms' are not like that.
 */
static const char *
check_scram_message(const bson_iter_t *field)
{
	bson_subtype_t subtype;
	uint32_t	length;
	const uint8_t *next;
	const uint8_t *end;

	if (!BSON_ITER_HOLDS_BINARY(field))
		return NULL;
	bson_iter_binary(field, &subtype, &length, &next);
	for (end = next + length; next < end; next++)
	{
		char		attribute = *next++;
		const char *violation;

		if (attribute == '\0' || strchr("rsive", attribute) == NULL)
			return NULL;
		if (next == end)
			return IMPOSSIBLE_VALUE;	/* can go with libmongoc before 2.4 */
		if (*next++ != '=')
			return NULL;
		violation = attribute == 'i' ? check_iterations(next, end) : NULL;
		if (violation != NULL)
			return violation;
		while (next < end && *next != ',')
			next++;
	}
	return NULL;
}

/* check_authentication: the answer to what "hello" asks ahead of time */
static const char *
check_authentication(const bson_iter_t *field)
{
	bson_iter_t nested;

	if (!BSON_ITER_HOLDS_DOCUMENT(field) || !bson_iter_recurse(field, &nested))
		return IMPOSSIBLE_VALUE;
	while (bson_iter_next(&nested))
	{
		const char *violation = strcmp(bson_iter_key(&nested), "payload") == 0 ?
			check_scram_message(&nested) : NULL;

		if (violation != NULL)
			return violation;
	}
	return NULL;
}

/* each_is: of an array's elements; libmongoc itself looks whether it is one. */
static bool
each_is(const bson_iter_t *field, bool (*is_good) (const bson_iter_t *element))
{
	bson_iter_t element;

	if (!BSON_ITER_HOLDS_ARRAY(field) || !bson_iter_recurse(field, &element))
		return true;
	while (bson_iter_next(&element))
	{
		if (!is_good(&element))
			return false;
	}
	return true;
}

static bool
is_string(const bson_iter_t *field)
{
	return BSON_ITER_HOLDS_UTF8(field);
}

static bool
has_strings_alone(const bson_iter_t *field)
{
	return each_is(field, is_string);
}

/* is_code: as libmongoc has it, in 32 bits */
static bool
is_code(const bson_iter_t *field)
{
	return !BSON_ITER_HOLDS_NUMBER(field) || (uint32) bson_iter_as_int64(field) != 0;
}

/* is_error: of a write or a write concern */
static bool
is_error(const bson_iter_t *field)
{
	bson_iter_t nested;

	if (!is_document(field) || !bson_iter_recurse(field, &nested))
		return false;
	while (bson_iter_next(&nested))
	{
		const char *name = bson_iter_key(&nested);

		if (strcmp(name, "code") == 0 && !is_code(&nested))
			return false;
		if (strcmp(name, "errmsg") == 0 && !BSON_ITER_HOLDS_UTF8(&nested))
			return false;
	}
	return true;
}

static bool
has_errors_alone(const bson_iter_t *field)
{
	return each_is(field, is_error);
}

/*
 * Fields that libmongoc trusts: for each a test, or a check that says itself what is
 * wrong.  By libmongoc's sources, 1.23.1 and 2.5.0 need all of them, but for one: an
 * attribute of a SCRAM message that ends before its "=" is noticed by libmongoc
 * itself from 2.4.0 on.
 */
static const struct
{
	const char *name;
	bool		(*is_good) (const bson_iter_t *field);
	const char *(*check) (const bson_iter_t *field);
}			trusted_fields[] =
{
	{"arbiters", .is_good = has_strings_alone},
	{"code", .is_good = is_code},
	{"compression", .is_good = has_strings_alone},
	{"errorLabels", .is_good = is_document},
	{"hosts", .is_good = has_strings_alone},
	{"passives", .is_good = has_strings_alone},
	{"payload", .check = check_scram_message},
	{"speculativeAuthenticate", .check = check_authentication},
	{"writeConcernError", .is_good = is_error},
	{"writeErrors", .is_good = has_errors_alone},
};

/* check_field: what is wrong with a field that libmongoc trusts, or NULL. */
static const char *
check_field(const bson_iter_t *field)
{
	const char *name = bson_iter_key(field);

	for (size_t i = 0; i < lengthof(trusted_fields); i++)
	{
		if (strcmp(trusted_fields[i].name, name) != 0)
			continue;
		if (trusted_fields[i].check != NULL)
			return trusted_fields[i].check(field);
		return trusted_fields[i].is_good(field) ? NULL : IMPOSSIBLE_VALUE;
	}
	return NULL;
}

const char *
mongo_reply_check(const uint8 *document, size_t length)
{
	bson_iter_t iter;

	if (!is_whole(document, length, LEVELS) ||
		!bson_iter_init_from_data(&iter, document, length))
		return "The reply is not valid BSON.";
	while (bson_iter_next(&iter))
	{
		const char *violation = check_field(&iter);

		if (violation != NULL)
			return violation;
	}
	return NULL;
}
