/*-------------------------------------------------------------------------
 *
 * handshake.c
 *		Checks the replies that libmongoc reads while it connects and authenticates.
 *
 * libmongoc trusts some fields of these replies.  So a stream below it passes on only what has been
 * checked (reply.c).  It runs inside libmongoc's frames, so nothing here may raise.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#define GUARD_TYPE			0x4d47	/* not one of libmongoc's */
/* Larger than any reply that a driver receives while it connects. */
#define LARGEST_REPLY		262144

/* OP_REPLY: responseFlags, cursorID, startingFrom, numberReturned, documents */
#define REPLY_COUNT_OFFSET	(HEADER_SIZE + 4 + 8 + 4)
#define REPLY_OFFSET		(REPLY_COUNT_OFFSET + 4)

typedef struct MongoGuard
{
	mongoc_stream_t vtable;		/* first, as libmongoc uses the struct as a
								 * mongoc_stream_t */
	mongoc_stream_t *base;
	MongoStream *stream;		/* the socket below base */
	bool		closed;			/* for libmongoc: a reply was invalid, or
								 * mongo_guard_release() was called */
	bool		asked;			/* a request was sent at least in part, and
								 * its reply is not complete */
	uint32		request_id;		/* of that request */
	size_t		received;		/* bytes of the reply that is being read */
	size_t		expected;		/* HEADER_SIZE until the header is read */
	size_t		length;			/* of a complete reply; libmongoc has yet to
								 * read its last stream->guarded bytes */
	uint8		reply[FLEXIBLE_ARRAY_MEMBER];
} MongoGuard;

/* Checks an OP_REPLY, the reply to the first "hello", which has one document. */
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

/*
 * Returns what is wrong with the header, or with the complete reply; else NULL.
 *
 * No reply is compressed: drivers do not compress handshake and authentication.
 */
static const char *
check_incoming(const MongoGuard *guard)
{
	const uint8 *message = guard->reply;
	const char *violation;

	if (guard->expected == HEADER_SIZE)
	{
		violation = mongo_frame_check_header(message, guard->request_id);
		return violation == NULL && get_int32(message) > LARGEST_REPLY ?
			"The message length is out of bounds." : violation;
	}
	if (get_int32(message + 12) == OP_REPLY)
		return check_reply(message, guard->expected);
	if (get_int32(message + 12) != OP_MSG)
		return "The message is not an OP_MSG.";
	violation = mongo_frame_check_message(message, guard->expected);
	return violation != NULL ? violation :
		mongo_reply_check(message + BODY_OFFSET, guard->expected - BODY_OFFSET);
}

/* Notes that a server is not of the replica set that the options name, which libmongoc ignores. */
static void
check_replica_set(const MongoStream *stream, const MongoReply *hello)
{
	const char *wanted = stream->transport->replica_set;
	bson_iter_t iter;
	bool		is_hello = mongo_reply_find(hello, "maxWireVersion", &iter);
	bool		has_set = mongo_reply_find(hello, "setName", &iter) && BSON_ITER_HOLDS_UTF8(&iter);
	char		text[BSON_HOST_NAME_MAX + 200];

	if (!is_hello || wanted == NULL || (has_set && strcmp(bson_iter_utf8(&iter, NULL), wanted) == 0))
		return;
	snprintf(text, sizeof(text), has_set ? "%s belongs to replica set \"%.100s\"" :
			 "%s belongs to no replica set", stream->host_and_port,
			 has_set ? bson_iter_utf8(&iter, NULL) : "");
	mongo_transport_note_failure(stream->transport, text);
}

/* Reads until a reply is complete; returns 1 then, else the result of the failed read. */
static ssize_t
take_in(MongoGuard *guard, int32_t timeout_msec)
{
	while (!guard->closed)
	{
		size_t		missing = guard->expected - guard->received;
		ssize_t		count = mongoc_stream_read(guard->base, guard->reply + guard->received, missing,
											   timeout_msec == 0 ? 0 : missing, timeout_msec);
		const char *violation;

		if (count <= 0)
			return count;
		guard->received += count;
		if (guard->received < guard->expected)
			continue;

		violation = check_incoming(guard);
		if (violation != NULL)
		{
			guard->closed = true;
			mongo_transport_note_violation(guard->stream, violation);
		}
		else if (guard->expected == HEADER_SIZE)
			guard->expected = get_int32(guard->reply);
		else
		{
			size_t		offset = get_int32(guard->reply + 12) == OP_REPLY ? REPLY_OFFSET : BODY_OFFSET;
			MongoReply	reply = {
				.document = guard->reply + offset, .length = guard->expected - offset
			};
			bson_iter_t code;

			check_replica_set(guard->stream, &reply);
			guard->stream->transport->reply_code =
				mongo_reply_find(&reply, "code", &code) ? bson_iter_as_int64(&code) : 0;
			guard->stream->guarded = guard->length = guard->expected;
			guard->received = 0;
			guard->expected = HEADER_SIZE;
			guard->asked = false;
			mongo_traffic_add(&guard->stream->transport->traffic, MONGO_COUNT_ROUND_TRIPS, 1);
			return 1;
		}
	}
	errno = EPROTO;
	return -1;
}

/*
 * Passes on bytes of checked replies: at least min_bytes, and no more than fit into the buffers.
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
			size_t	   *left = &guard->stream->guarded;
			ssize_t		result = *left > 0 ? 1 : take_in(guard, timeout_msec);
			size_t		size;

			if (result <= 0)
				return total > 0 && min_bytes == 0 ? total : result;
			size = Min(iov[i].iov_len - filled, *left);
			memcpy((char *) iov[i].iov_base + filled, guard->reply + guard->length - *left, size);
			*left -= size;
			filled += size;
			total += size;
			if ((size_t) total >= min_bytes)
				return total;
		}
	}
	return total;
}

/* Records the id, from the header, of a request that is about to be sent. */
static void
note_request(MongoGuard *guard, const mongoc_iovec_t *iov, size_t iovcnt)
{
	uint8		header[HEADER_SIZE];
	size_t		filled = 0;

	for (size_t i = 0; i < iovcnt && filled < HEADER_SIZE; i++)
	{
		size_t		size = Min(iov[i].iov_len, HEADER_SIZE - filled);

		memcpy(header + filled, iov[i].iov_base, size);
		filled += size;
	}
	guard->asked = filled == HEADER_SIZE;
	if (!guard->asked)
		return;
	guard->request_id = get_int32(header + 4);
	mongo_traffic_add(&guard->stream->transport->traffic, MONGO_COUNT_OTHER, 1);
}

static ssize_t
guard_writev(mongoc_stream_t *base, mongoc_iovec_t *iov, size_t iovcnt,
			 int32_t timeout_msec)
{
	MongoGuard *guard = (MongoGuard *) base;

	if (guard->closed)
	{
		errno = ECANCELED;
		return -1;
	}
	if (!guard->asked)
		note_request(guard, iov, iovcnt);
	return mongoc_stream_writev(guard->base, iov, iovcnt, timeout_msec);
}

static void
guard_destroy(mongoc_stream_t *base)
{
	MongoGuard *guard = (MongoGuard *) base;

	if (guard->base != NULL)
		mongoc_stream_destroy(guard->base);
	free(guard);
}

static int
guard_close(mongoc_stream_t *base)
{
	MongoGuard *guard = (MongoGuard *) base;

	return guard->base != NULL ? mongoc_stream_close(guard->base) : 0;
}

/* Does nothing, as no output is buffered. */
static int
guard_flush(mongoc_stream_t *base pg_attribute_unused())
{
	return 0;
}

static mongoc_stream_t *
guard_get_base_stream(mongoc_stream_t *base)
{
	return ((MongoGuard *) base)->base;
}

static bool
guard_check_closed(mongoc_stream_t *base)
{
	return ((MongoGuard *) base)->closed;
}

static bool
guard_should_retry(mongoc_stream_t *base)
{
	MongoGuard *guard = (MongoGuard *) base;

	return !guard->closed && mongoc_stream_should_retry(guard->base);
}

/*
 * mongo_guard_new
 *		Returns a new stream on top of stream->top that passes only well-formed replies on to
 *		libmongoc.  It owns stream->top.
 *
 * It notes what is wrong with a reply in transport->violation and failure.  It is malloc'd;
 * returns NULL if there is no memory.  Never raises.
 */
mongoc_stream_t *
mongo_guard_new(MongoStream *stream)
{
	/* not bson_malloc(), which ends the session when memory runs out */
	MongoGuard *guard = malloc(offsetof(MongoGuard, reply) + LARGEST_REPLY);

	if (guard == NULL)
	{
		mongo_transport_note_memory(stream->transport, LARGEST_REPLY);
		return NULL;
	}
	memset(guard, 0, offsetof(MongoGuard, reply));
	guard->vtable.type = GUARD_TYPE;
	guard->vtable.destroy = guard_destroy;
	guard->vtable.failed = guard_destroy;
	guard->vtable.close = guard_close;
	guard->vtable.flush = guard_flush;
	guard->vtable.readv = guard_readv;
	guard->vtable.writev = guard_writev;
	guard->vtable.get_base_stream = guard_get_base_stream;
	guard->vtable.check_closed = guard_check_closed;
	guard->vtable.should_retry = guard_should_retry;
	guard->base = stream->top;
	guard->stream = stream;
	stream->guard = &guard->vtable;
	guard->expected = HEADER_SIZE;
	return &guard->vtable;
}

/*
 * mongo_guard_release
 *		Detaches the stream, which is then ours, from its guard.  libmongoc still destroys the
 *		guard.
 */
void
mongo_guard_release(MongoStream *stream)
{
	MongoGuard *guard = (MongoGuard *) stream->guard;

	guard->base = NULL;
	guard->closed = true;
	stream->guard = NULL;
	stream->guarded = 0;
}
