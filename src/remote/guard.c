/*-------------------------------------------------------------------------
 *
 * guard.c
 *		A stream that lets only well-formed replies through to libmongoc.
 *
 * Runs inside libmongoc's frames: nothing here may raise.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "guard.h"

#include "frame.h"
#include "reply_check.h"

#define GUARD_TYPE			0x4d47	/* none of libmongoc's own */
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
	bool		violated;		/* an invalid reply has come: no more reading */

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
} MongoGuard;

static void
reserve(GuardBuffer *buffer, size_t size)
{
	if (size > buffer->capacity)
	{
		buffer->data = bson_realloc(buffer->data, size);
		buffer->capacity = size;
	}
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
			reserve(&guard->expanded, size);
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
refuse(MongoGuard *guard, const char *violation)
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

		reserve(&guard->incoming, guard->expected);
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
		}
		if (violation != NULL)
			return refuse(guard, violation);
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
		bson_free(buffers[i]->data);
		buffers[i]->data = NULL;
		buffers[i]->capacity = 0;
	}
	guard->received = guard->handed_on = 0;
	guard->expected = HEADER_SIZE;
	guard->complete = false;
}

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
note_sent(MongoGuard *guard, const uint8 *bytes, size_t size)
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
			}
		}
		bytes += part;
		size -= part;
	}
}

static ssize_t
guard_writev(mongoc_stream_t *base, mongoc_iovec_t *iov, size_t iovcnt,
			 int32_t timeout_msec)
{
	MongoGuard *guard = (MongoGuard *) base;
	ssize_t		sent = mongoc_stream_writev(guard->base, iov, iovcnt, timeout_msec);
	size_t		left = Max(sent, 0);

	for (size_t i = 0; i < iovcnt && left > 0; i++)
	{
		size_t		part = Min(left, iov[i].iov_len);

		note_sent(guard, (const uint8 *) iov[i].iov_base, part);
		left -= part;
	}
	return sent;
}

static void
guard_destroy(mongoc_stream_t *base)
{
	MongoGuard *guard = (MongoGuard *) base;

	mongoc_stream_destroy(guard->base);
	bson_free(guard->incoming.data);
	bson_free(guard->expanded.data);
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
	guard->expected = HEADER_SIZE;
	return &guard->vtable;
}
