/*-------------------------------------------------------------------------
 *
 * reply.c
 *		Checks the messages that servers send, and finds the fields of replies.
 *
 * The checks of a reply's document are those on which libmongoc relies while it connects
 * (handshake.c); wire.c applies them to the replies to our own commands, too.  Nothing here raises.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "convert.h"

/* -------------------------------- messages ---------------------------------- */

#define REQUIRED_FLAGS		0xffff	/* bits that a receiver must understand */

/*
 * mongo_frame_check_header
 *		Checks the first HEADER_SIZE bytes of a reply, except the opcode.  Returns NULL, or what
 *		is wrong, as mongo_reply_check() does.
 */
const char *
mongo_frame_check_header(const uint8 *header, uint32 request_id)
{
	uint32		length = get_int32(header);

	/* the smallest message is an OP_MSG with an empty document */
	if (length < BODY_OFFSET + SMALLEST_DOCUMENT || length > LARGEST_MESSAGE)
		return "The message length is out of bounds.";
	if (get_int32(header + 8) != request_id)
		return "The message answers another request.";
	return NULL;
}

/*
 * mongo_frame_check_message
 *		Checks a whole OP_MSG, which must contain exactly one document.  Returns NULL, or what is
 *		wrong.
 */
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

/*
 * mongo_frame_check_compressed
 *		Checks a whole OP_COMPRESSED, and sets its size as an OP_MSG.  Returns NULL, or what is
 *		wrong.
 */
const char *
mongo_frame_check_compressed(const uint8 *message, const MongoCompressor *compressor,
							 size_t *expanded_size)
{
	uint32		size = get_int32(message + HEADER_SIZE + 4);

	if (get_int32(message + HEADER_SIZE) != OP_MSG)
		return "The compressed message is not an OP_MSG.";
	if (message[HEADER_SIZE + 8] != compressor->id)
		return "The message is compressed in a way that was not agreed on.";
	if (size < BODY_OFFSET - HEADER_SIZE + SMALLEST_DOCUMENT ||
		size > LARGEST_MESSAGE - HEADER_SIZE)
		return "The uncompressed size is out of bounds.";
	*expanded_size = HEADER_SIZE + size;
	return NULL;
}

/*
 * mongo_frame_expand
 *		Uncompresses a checked OP_COMPRESSED into 'target', which has that size, and checks the
 *		OP_MSG.  Returns NULL, or what is wrong.
 */
const char *
mongo_frame_expand(const uint8 *message, size_t length, const MongoCompressor *compressor,
				   uint8 *target, size_t expanded_size)
{
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

/* ---------------------------- fields of a reply ---------------------------- */

/*
 * mongo_reply_find
 *		Sets *field to the field of that name.  Returns false if there is no such field, or no
 *		reply.
 */
bool
mongo_reply_find(const MongoReply *reply, const char *name, bson_iter_t *field)
{
	return reply->document != NULL &&
		bson_iter_init_from_data(field, reply->document, reply->length) &&
		bson_iter_find(field, name);
}

/*
 * mongo_reply_is_ok
 *		Tells whether the reply reports success of the command; false if there is no reply.
 */
bool
mongo_reply_is_ok(const MongoReply *reply)
{
	bson_iter_t ok;

	return mongo_reply_find(reply, "ok", &ok) && bson_iter_as_bool(&ok);
}

/*
 * mongo_reply_cursor
 *		Sets id, database and collection of *cursor.  Returns false if the reply names no cursor
 *		that is open, or its namespace is too long.
 */
bool
mongo_reply_cursor(const MongoReply *reply, RemoteCursor *cursor)
{
	bson_iter_t iter;
	bson_iter_t field;
	char		names[LONGEST_NAMESPACE];
	char	   *dot;

	if (!mongo_reply_find(reply, "cursor", &iter) || !bson_iter_recurse(&iter, &field) ||
		!bson_iter_find(&field, "id") || (cursor->id = bson_iter_as_int64(&field)) == 0 ||
		!bson_iter_recurse(&iter, &field) || !bson_iter_find(&field, "ns") ||
		!BSON_ITER_HOLDS_UTF8(&field) ||
		strlcpy(names, bson_iter_utf8(&field, NULL), sizeof(names)) >= sizeof(names))
		return false;
	dot = strchr(names, '.');
	if (dot == NULL)
		return false;
	*dot = '\0';
	strlcpy(cursor->database, names, sizeof(cursor->database));
	strlcpy(cursor->collection, dot + 1, sizeof(cursor->collection));
	return true;
}

/*
 * mongo_reply_has_label
 *		Tells whether the reply has this error label of the driver specifications.
 */
bool
mongo_reply_has_label(const MongoReply *reply, const char *label)
{
	bson_iter_t labels;
	bson_iter_t element;

	if (!mongo_reply_find(reply, "errorLabels", &labels) || !BSON_ITER_HOLDS_ARRAY(&labels) ||
		!bson_iter_recurse(&labels, &element))
		return false;
	while (bson_iter_next(&element))
	{
		if (BSON_ITER_HOLDS_UTF8(&element) && strcmp(bson_iter_utf8(&element, NULL), label) == 0)
			return true;
	}
	return false;
}

/* ------------------------ saved fields of replies -------------------------- */

/*
 * mongo_save_field
 *		Copies the document in a field of a reply; does nothing if there is none, or if it is too
 *		large.
 */
void
mongo_save_field(MongoSavedField *saved, const MongoReply *reply, const char *field)
{
	bson_iter_t iter;
	const uint8_t *data;
	uint32_t	length;

	if (!mongo_reply_find(reply, field, &iter) || !BSON_ITER_HOLDS_DOCUMENT(&iter))
		return;
	bson_iter_document(&iter, &length, &data);
	if (length < SMALLEST_DOCUMENT || length > sizeof(saved->bytes))
		return;
	memcpy(saved->bytes, data, length);
	saved->length = length;
}

/*
 * mongo_append_saved_field
 *		Appends the saved document as a field; does nothing if there is none.
 */
void
mongo_append_saved_field(bson_t *document, const char *field, const MongoSavedField *saved)
{
	bson_t		view;

	if (saved->length > 0 && mongo_bson_view(&view, saved->bytes, saved->length))
		mongo_append(document, field, mongo_document(&view));
}

/* ---------------------------- batches of cursors ---------------------------- */

/*
 * mongo_batch_read
 *		Reads {firstBatch | nextBatch, id}, the field "cursor" of a reply, which must exist as
 *		long as the batch is used.  Returns NULL, or what is wrong, as a static sentence.  Never
 *		raises.
 */
const char *
mongo_batch_read(MongoBatch *batch, const bson_iter_t *cursor)
{
	bson_iter_t iter;
	bool		has_id = false;

	*batch = (MongoBatch) {0};
	if (!BSON_ITER_HOLDS_DOCUMENT(cursor) || !bson_iter_recurse(cursor, &iter))
		return "The cursor is not a document.";
	while (bson_iter_next(&iter))
	{
		const char *key = bson_iter_key(&iter);

		if ((strcmp(key, "firstBatch") == 0 || strcmp(key, "nextBatch") == 0) &&
			BSON_ITER_HOLDS_ARRAY(&iter))
		{
			uint32_t	length;
			const uint8_t *elements;

			bson_iter_array(&iter, &length, &elements);
			if (elements == NULL || length < 5)
				return "The batch is too short.";
			batch->position = elements + 4;
			batch->end = elements + length - 1; /* the array's NUL */
			batch->is_next = key[0] == 'n';
		}
		else if (strcmp(key, "id") == 0 && BSON_ITER_HOLDS_INT(&iter))
		{
			batch->id = bson_iter_as_int64(&iter);
			has_id = true;
		}
		else if (strcmp(key, "postBatchResumeToken") == 0 && BSON_ITER_HOLDS_DOCUMENT(&iter))
			bson_iter_document(&iter, &batch->token_length, &batch->token);
		else if (strcmp(key, "atClusterTime") == 0)
			batch->has_time = true;
	}
	return batch->position != NULL && has_id ? NULL :
		"The reply has no cursor with id and batch.";
}

/*
 * mongo_batch_next
 *		Returns the next document, which is in the reply, and its length; NULL if there is none
 *		left, or if *violation then describes what is wrong.  Never raises.
 */
const uint8 *
mongo_batch_next(MongoBatch *batch, uint32 *length, const char **violation)
{
	const uint8 *p = batch->position;
	const uint8 *end = batch->end;
	const uint8 *key_end;

	*violation = NULL;
	if (p == end)
		return NULL;
	/* type byte, key, document */
	if (*p++ != BSON_TYPE_DOCUMENT)
	{
		*violation = "An element of the batch is not a document.";
		return NULL;
	}
	key_end = memchr(p, '\0', end - p);
	if (key_end == NULL || end - key_end - 1 < SMALLEST_DOCUMENT)
	{
		*violation = "An element of the batch is too short.";
		return NULL;
	}
	p = key_end + 1;
	*length = get_int32(p);
	if (*length < SMALLEST_DOCUMENT || *length > (size_t) (end - p))
		*violation = "A document does not end within its batch.";
	else if (p[*length - 1] != '\0')
		*violation = "A document is not terminated.";
	if (*violation != NULL)
		return NULL;
	batch->position = p + *length;
	return p;
}

/*
 * mongo_batch_time
 *		Sets *time to that of the batch's resume token.  Returns false if there is none.
 */
bool
mongo_batch_time(const MongoBatch *batch, uint64 *time)
{
	bson_iter_t data;

	if (batch->token == NULL ||
		!bson_iter_init_from_data(&data, batch->token, batch->token_length) ||
		!bson_iter_find(&data, "_data") || !BSON_ITER_HOLDS_UTF8(&data))
		return false;
	*time = mongo_token_time(bson_iter_utf8(&data, NULL));
	return *time != 0;
}
