/*-------------------------------------------------------------------------
 *
 * handshake.c
 *		Checks the replies that libmongoc reads while it connects and authenticates.
 *
 * libmongoc trusts some fields of these replies.  First comes the stream that passes on only what
 * has been checked, then the checks of a reply's document, which wire.c applies to our own
 * commands, too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

/*-------------------------------------------------------------------------
 * A stream that passes only well-formed replies on to libmongoc.
 *
 * It runs inside libmongoc's frames, so nothing here may raise.
 *-------------------------------------------------------------------------
 */

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

/* --------- checks of the fields that libmongoc does not check itself ------ */

/*
 * The most iterations of a password's hash.  They cannot be interrupted, and 100,000 take a third
 * of a second.  MongoDB's defaults are 10,000 (SCRAM-SHA-1) and 15,000 (SCRAM-SHA-256); an
 * administrator can raise them.
 */
#define MOST_ITERATIONS	100000
#define TOO_MANY_ITERATIONS \
	"It asks for more than " CppAsString2(MOST_ITERATIONS) " iterations of a password's hash."

/* MongoDB's limit of a replica set */
#define MOST_MEMBERS	50

#define IMPOSSIBLE_VALUE	"A field of the reply has a value that it cannot have."

/* How deep libmongoc reads a reply: {writeErrors: [{field: document}]}. */
#define LEVELS	3

/* Tells whether a document is valid BSON, down to 'levels' levels of nesting. */
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

/* How to check a field; 'check' returns what is wrong, or NULL. */
typedef struct FieldRule
{
	const char *name;			/* NULL: the end of the list */
	const char *(*check) (const bson_iter_t *field);
} FieldRule;

static const char *
check_fields(bson_iter_t *document, const FieldRule *rules)
{
	const char *violation = NULL;

	while (violation == NULL && bson_iter_next(document))
	{
		for (const FieldRule *rule = rules; rule->name != NULL && violation == NULL; rule++)
		{
			if (strcmp(bson_iter_key(document), rule->name) == 0)
				violation = rule->check(document);
		}
	}
	return violation;
}

/* Checks an array's elements; libmongoc itself checks that it is an array. */
static const char *
check_each(const bson_iter_t *field, const char *(*check) (const bson_iter_t *element))
{
	const char *violation = NULL;
	bson_iter_t element;

	if (!BSON_ITER_HOLDS_ARRAY(field) || !bson_iter_recurse(field, &element))
		return NULL;
	while (violation == NULL && bson_iter_next(&element))
		violation = check(&element);
	return violation;
}

static const char *
check_string(const bson_iter_t *field)
{
	return BSON_ITER_HOLDS_UTF8(field) ? NULL : IMPOSSIBLE_VALUE;
}

static const char *
check_strings(const bson_iter_t *field)
{
	return check_each(field, check_string);
}

/*
 * Checks "host:port" or "[address]:port" of a replica set's members.  libmongoc crashes if it
 * cannot parse one, and compares each with all others.
 */
static const char *
check_hosts(const bson_iter_t *field)
{
	bson_iter_t element;

	if (!BSON_ITER_HOLDS_ARRAY(field) || !bson_iter_recurse(field, &element))
		return NULL;
	for (int count = 0; bson_iter_next(&element); count++)
	{
		uint32_t	length = 0;
		const char *host = BSON_ITER_HOLDS_UTF8(&element) ? bson_iter_utf8(&element, &length) : "";
		const char *bracket = strchr(host, ']');
		const char *colon = bracket != NULL ? bracket + 1 : strchr(host, ':');
		size_t		digits = colon != NULL && *colon == ':' ? strspn(colon + 1, "0123456789") : 0;

		if (count >= MOST_MEMBERS || length > BSON_HOST_NAME_MAX || digits == 0 || digits > 5 ||
			colon == host || colon + 1 + digits != host + length ||
			(bracket != NULL && (host[0] != '[' || bracket == host + 1)) ||
			atoi(colon + 1) < 1 || atoi(colon + 1) > 65535)
			return IMPOSSIBLE_VALUE;
	}
	return NULL;
}

/* Accepts a document, or an array, which libmongoc reads in the same way. */
static const char *
check_nested(const bson_iter_t *field)
{
	return BSON_ITER_HOLDS_DOCUMENT(field) || BSON_ITER_HOLDS_ARRAY(field) ? NULL : IMPOSSIBLE_VALUE;
}

/* Rejects an error code of 0 in the 32 bits that libmongoc reads. */
static const char *
check_code(const bson_iter_t *field)
{
	return BSON_ITER_HOLDS_NUMBER(field) && (uint32) bson_iter_as_int64(field) == 0 ?
		IMPOSSIBLE_VALUE : NULL;
}

/* Checks the error of a write or of a write concern. */
static const char *
check_error(const bson_iter_t *field)
{
	static const FieldRule rules[] = {{"code", check_code}, {"errmsg", check_string}, {0}};
	const char *violation = check_nested(field);
	bson_iter_t nested;

	return violation != NULL || !bson_iter_recurse(field, &nested) ? violation :
		check_fields(&nested, rules);
}

static const char *
check_errors(const bson_iter_t *field)
{
	return check_each(field, check_error);
}

/* Checks that the number at 'digits' is not too large. */
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
 * Checks a message such as "r=...,s=...,i=4096" (RFC 5802), as far as libmongoc reads it.
 * Accepts payloads of other mechanisms.
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
			return IMPOSSIBLE_VALUE;	/* libmongoc checks this since 2.4 */
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

/* Checks the reply to the authentication begun within "hello". */
static const char *
check_authentication(const bson_iter_t *field)
{
	static const FieldRule rules[] = {{"payload", check_scram_message}, {0}};
	bson_iter_t nested;

	if (!BSON_ITER_HOLDS_DOCUMENT(field) || !bson_iter_recurse(field, &nested))
		return IMPOSSIBLE_VALUE;
	return check_fields(&nested, rules);
}

/*
 * mongo_reply_check
 *		Checks the document of a reply, which has 'length' bytes by its frame.  Returns NULL, or
 *		what is wrong: a sentence for DETAIL that is never freed.
 *
 * Checks only the levels of nesting that libmongoc reads.  Neither raises nor allocates.
 */
const char *
mongo_reply_check(const uint8 *document, size_t length)
{
	/*
	 * Fields that libmongoc uses without checking them.  According to their
	 * sources, 1.23.1 and 2.5.0 need all of these checks except one: since
	 * 2.4.0 libmongoc itself rejects a SCRAM attribute that ends before its
	 * "=".
	 */
	static const FieldRule rules[] = {
		{"arbiters", check_hosts},
		{"code", check_code},
		{"compression", check_strings},
		{"errorLabels", check_nested},
		{"hosts", check_hosts},
		{"passives", check_hosts},
		{"payload", check_scram_message},
		{"speculativeAuthenticate", check_authentication},
		{"writeConcernError", check_error},
		{"writeErrors", check_errors},
		{0}
	};
	bson_iter_t iter;

	if (!is_whole(document, length, LEVELS) ||
		!bson_iter_init_from_data(&iter, document, length))
		return "The reply is not valid BSON.";
	return check_fields(&iter, rules);
}
