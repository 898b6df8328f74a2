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
/* More than any reply has that a driver asks for as it connects. */
#define LARGEST_REPLY		262144

/* OP_REPLY: responseFlags, cursorID, startingFrom, numberReturned, documents */
#define REPLY_COUNT_OFFSET	(HEADER_SIZE + 4 + 8 + 4)
#define REPLY_OFFSET		(REPLY_COUNT_OFFSET + 4)

typedef struct MongoGuard
{
	mongoc_stream_t vtable;		/* first: libmongoc sees only that */
	mongoc_stream_t *base;
	MongoStream *stream;		/* at the bottom of base */
	bool		violated;		/* a reply has come that cannot be taken: no
								 * more reading */

	/* the reply that is coming in, or has come and is being handed on */
	uint8	   *incoming;		/* malloc'd */
	size_t		capacity;
	size_t		received;
	size_t		expected;		/* HEADER_SIZE until the header is there */
	bool		complete;
	size_t		handed_on;		/* of incoming, once complete */

	/* the request that is going out */
	uint8		header[HEADER_SIZE];
	size_t		header_sent;
	size_t		left_to_send;	/* after the header */
	uint32		request_id;		/* of the last one */
} MongoGuard;

/*
 * reserve
 *		Space for 'size' bytes; false if there is not so much memory.
 *
 * Not by bson_realloc(), which ends the session then.
 */
static bool
reserve(MongoGuard *guard, size_t size)
{
	uint8	   *larger;

	if (size <= guard->capacity)
		return true;
	larger = realloc(guard->incoming, size);
	if (larger == NULL)
	{
		mongo_transport_note_memory(guard->stream->transport, size);
		return false;
	}
	guard->incoming = larger;
	guard->capacity = size;
	return true;
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

/*
 * check_complete
 *		What is wrong with a reply that has come whole, or NULL.
 *
 * None is compressed: no driver compresses what it connects and authenticates with.
 */
static const char *
check_complete(const uint8 *message, size_t length)
{
	const char *violation;

	switch (get_int32(message + 12))
	{
		case OP_REPLY:
			return check_reply(message, length);
		case OP_MSG:
			violation = mongo_frame_check_message(message, length);
			return violation != NULL ? violation :
				mongo_reply_check(message + BODY_OFFSET, length - BODY_OFFSET);
		default:
			return "The message is not an OP_MSG.";
	}
}

/* The connection is not read from any more. */
static ssize_t
refuse_reply(MongoGuard *guard, const char *violation)
{
	guard->violated = true;
	mongo_transport_note_violation(guard->stream, violation);
	errno = EPROTO;
	return -1;
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

		if (guard->base == NULL || !reserve(guard, guard->expected))
		{
			guard->violated = true;
			errno = ENOMEM;
			return -1;
		}
		count = mongoc_stream_read(guard->base, guard->incoming + guard->received,
								   missing, timeout_msec == 0 ? 0 : missing,
								   timeout_msec);
		if (count <= 0)
			return count;
		guard->received += count;
		if (guard->received < guard->expected)
			continue;

		if (guard->expected == HEADER_SIZE)
		{
			violation = mongo_frame_check_header(guard->incoming, guard->request_id);
			guard->expected = get_int32(guard->incoming);
			if (violation == NULL && guard->expected > LARGEST_REPLY)
				violation = "The message length is out of bounds.";
		}
		else
		{
			violation = check_complete(guard->incoming, guard->expected);
			guard->complete = true;
			if (violation == NULL)
				mongo_traffic_add(&guard->stream->transport->traffic,
								  MONGO_COUNT_ROUND_TRIPS, 1);
		}
		if (violation != NULL)
			return refuse_reply(guard, violation);
	}
	guard->stream->guarded = guard->expected - guard->handed_on;
	return 1;
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
			if (result <= 0)
				return total > 0 && min_bytes == 0 ? total : result;

			size = Min(iov[i].iov_len - filled, guard->stream->guarded);
			memcpy((char *) iov[i].iov_base + filled,
				   guard->incoming + guard->handed_on, size);
			guard->handed_on += size;
			guard->stream->guarded -= size;
			filled += size;
			total += size;
			if (guard->stream->guarded == 0)
			{
				guard->received = guard->handed_on = 0;
				guard->expected = HEADER_SIZE;
				guard->complete = false;
			}
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
				mongo_traffic_add(&guard->stream->transport->traffic, MONGO_COUNT_OTHER, 1);
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
	ssize_t		sent = -1;
	size_t		left;

	errno = ECANCELED;
	if (guard->base != NULL)
		sent = mongoc_stream_writev(guard->base, iov, iovcnt, timeout_msec);

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

	if (guard->base != NULL)
		mongoc_stream_destroy(guard->base);
	free(guard->incoming);
	bson_free(guard);
}

static int
guard_close(mongoc_stream_t *base)
{
	MongoGuard *guard = (MongoGuard *) base;

	return guard->base != NULL ? mongoc_stream_close(guard->base) : 0;
}

static int
guard_flush(mongoc_stream_t *base)
{
	return mongoc_stream_flush(((MongoGuard *) base)->base);
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

void
mongo_guard_release(MongoStream *stream)
{
	((MongoGuard *) stream->guard)->base = NULL;
	stream->guard = NULL;
	stream->guarded = 0;
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

/* The deepest that is read: {writeErrors: [{field: document}]}. */
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
