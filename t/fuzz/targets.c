/*-------------------------------------------------------------------------
 *
 * targets.c
 *		What is fuzzed, and what must hold of it whatever the bytes are.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fuzz.h"

#include "common.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "../../src/convert/convert_internal.h"
#include "../../src/remote/remote_internal.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "../../src/options/options_internal.h"
#include "../../src/translate/translate_internal.h"
#include "remote.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

/* --- documents, as a table's scan reads them --------------------------- */

/* A column of each way of reading. */
static const struct
{
	const char *path;
	Oid			type;
	int32		typmod;
}			document_columns[] =
{
	{"_id", NAMEOID, -1},
	{"a", INT4OID, -1},
	{"a", INT8OID, -1},
	{"a", INT2OID, -1},
	{"a", FLOAT8OID, -1},
	{"a", NUMERICOID, -1},
	{"a", NUMERICOID, ((10 << 16) | 2) + VARHDRSZ},
	{"a", TEXTOID, -1},
	{"a", BPCHAROID, 5 + VARHDRSZ},
	{"a", VARCHAROID, 3 + VARHDRSZ},
	{"a", BYTEAOID, -1},
	{"a", UUIDOID, -1},
	{"a", BOOLOID, -1},
	{"a", DATEOID, -1},
	{"a", TIMESTAMPOID, -1},
	{"a", TIMESTAMPTZOID, -1},
	{"a", JSONOID, -1},
	{"a", JSONBOID, -1},
	{"a", INT4ARRAYOID, -1},
	{"a", TEXTARRAYOID, -1},
	{"a", NUMERICARRAYOID, -1},
	{"a", INETOID, -1},
	{"a.b", INT4OID, -1},
	{"a.b.c", TEXTOID, -1},
	{"a.0", JSONBOID, -1},
	{"a.0.b", NUMERICOID, -1},
	{"a.1.b.c", TEXTARRAYOID, -1},
};

#define DOCUMENT_COLUMNS	(lengthof(document_columns) + 3)

/* The one that is lenient; the strict ones read a column each. */
static MongoRowDecoder *lenient_decoder;
static MongoRowDecoder *strict_decoders[lengthof(document_columns)];

static MongoColumn
document_column(int index, const char *path, Oid type, int32 typmod)
{
	return (MongoColumn)
	{
		.index = index, .name = path ? path : "__doc", .path = path,
		.typid = type, .typmod = typmod
	};
}

static void
prepare_documents(void)
{
	MongoColumn columns[DOCUMENT_COLUMNS];
	int			count = lengthof(document_columns);
	List	   *all = NIL;

	for (int i = 0; i < count; i++)
	{
		columns[i] = document_column(i, document_columns[i].path,
									 document_columns[i].type,
									 document_columns[i].typmod);
		strict_decoders[i] =
			mongo_row_decoder_create(CurrentMemoryContext, "d", "c", list_make1(&columns[i]), true);
	}
	columns[count] = document_column(count, NULL, JSONOID, -1);
	columns[count + 1] = document_column(count + 1, NULL, JSONBOID, -1);
	columns[count + 2] = document_column(count + 2, NULL, JSONBOID, -1);
	columns[count + 2].name = MONGO_MISMATCH_COLUMN;
	for (int i = 0; i < count + 3; i++)
	{
		columns[i].type_mismatch = MONGO_TYPE_MISMATCH_NULL;
		all = lappend(all, &columns[i]);
	}
	lenient_decoder = mongo_row_decoder_create(CurrentMemoryContext, "d", "c", all, false);
}

/* The first byte chooses the decoder, the rest is a document. */
static void
fuzz_document(const uint8_t *data, size_t size)
{
	Datum		values[DOCUMENT_COLUMNS];
	bool		isnull[DOCUMENT_COLUMNS];
	MongoRowDecoder *decoder = lenient_decoder;

	if (size == 0)
		return;
	if (*data < lengthof(strict_decoders))
		decoder = strict_decoders[*data];
	memset(isnull, true, sizeof(isnull));
	mongo_row_decode(decoder, data + 1, size - 1, values, isnull);

	for (size_t i = 0; i < lengthof(document_columns); i++)
	{
		Oid			output;
		bool		varlena;

		if (isnull[i])
			continue;
		getTypeOutputInfo(document_columns[i].type, &output, &varlena);
		(void) OidOutputFunctionCall(output, values[i]);
	}
}

/* --- JSON, as users write it ------------------------------------------- */

static bool
is_text(const uint8_t *data, size_t size)
{
	return memchr(data, '\0', size) == NULL &&
		pg_verify_mbstr(PG_UTF8, (const char *) data, size, true);
}

static Datum
json_of_document(const bson_t *document, Oid type)
{
	MongoColumn column = document_column(0, NULL, type, -1);
	MongoRowDecoder *decoder;
	Datum		value;
	bool		isnull;

	column.type_mismatch = MONGO_TYPE_MISMATCH_NULL;
	decoder = mongo_row_decoder_create(CurrentMemoryContext, "d", "c", list_make1(&column), true);
	mongo_row_decode(decoder, bson_get_data(document), document->len, &value, &isnull);
	return value;
}

/*
 * What JSON becomes is BSON, and written as canonical Extended JSON and read
 * again it is the same BSON, without keys that are repeated.
 */
static void
fuzz_json(const uint8_t *data, size_t size)
{
	char	   *text;
	Datum		value;
	bson_t	   *document = mongo_bson_create();
	bson_t	   *again = mongo_bson_create();
	bson_t	   *third = mongo_bson_create();
	Oid			type;

	if (size < 1 || !is_text(data + 1, size - 1))
		return;
	text = pnstrdup((const char *) data + 1, size - 1);
	type = *data & 1 ? JSONBOID : JSONOID;
	value = DirectFunctionCall1(type == JSONBOID ? jsonb_in : json_in,
								CStringGetDatum(text));
	mongo_append_json_members(document, value, type);
	fuzz_check(bson_validate(document, BSON_VALIDATE_NONE, NULL), "JSON becomes BSON");

	value = json_of_document(document, JSONOID);
	if (value == (Datum) 0)
		return;
	mongo_append_json_members(again, value, JSONOID);
	fuzz_check(bson_equal(document, again) || again->len < document->len,
			   "BSON stays what it is through JSON");
	value = json_of_document(again, JSONOID);
	fuzz_check(value != (Datum) 0, "it is read again");
	mongo_append_json_members(third, value, JSONOID);
	fuzz_check(bson_equal(again, third), "BSON without repeated keys stays what it is");
	(void) json_of_document(document, JSONBOID);
}

/* --- messages, as a server sends them ---------------------------------- */

#define REQUEST_ID	7

/* A stream at the bottom of a guard, which has received 'data'. */
typedef struct FuzzStream
{
	mongoc_stream_t vtable;
	const uint8_t *data;
	size_t		size;
} FuzzStream;

static ssize_t
fuzz_stream_readv(mongoc_stream_t *base, mongoc_iovec_t *iov, size_t iovcnt,
				  size_t min_bytes, int32_t timeout_msec pg_attribute_unused())
{
	FuzzStream *stream = (FuzzStream *) base;
	ssize_t		total = 0;

	for (size_t i = 0; i < iovcnt; i++)
	{
		size_t		part = Min(iov[i].iov_len, stream->size);

		memcpy(iov[i].iov_base, stream->data, part);
		stream->data += part;
		stream->size -= part;
		total += part;
	}
	errno = ECONNRESET;
	return (size_t) total >= min_bytes ? total : -1;
}

static ssize_t
fuzz_stream_writev(mongoc_stream_t *base pg_attribute_unused(), mongoc_iovec_t *iov,
				   size_t iovcnt, int32_t timeout_msec pg_attribute_unused())
{
	ssize_t		total = 0;

	for (size_t i = 0; i < iovcnt; i++)
		total += iov[i].iov_len;
	return total;
}

static void
fuzz_stream_destroy(mongoc_stream_t *base pg_attribute_unused())
{
}

/* What a guard lets through is, message by message, what libmongoc survives. */
static void
fuzz_guard(const uint8_t *data, size_t size)
{
	MongoTransport *transport = palloc0(sizeof(MongoTransport));
	MongoStream *stream = palloc0(sizeof(MongoStream));
	FuzzStream	below = {.data = data, .size = size};
	mongoc_stream_t *guard;
	uint8		request[HEADER_SIZE] = {HEADER_SIZE, 0, 0, 0, REQUEST_ID};
	mongoc_iovec_t part = {.iov_base = request, .iov_len = sizeof(request)};
	uint8	   *received = palloc(size + 1);
	size_t		count = 0;

	below.vtable.readv = fuzz_stream_readv;
	below.vtable.writev = fuzz_stream_writev;
	below.vtable.destroy = fuzz_stream_destroy;
	stream->transport = transport;
	stream->top = &below.vtable;
	guard = mongo_guard_new(stream);

	(void) mongoc_stream_writev(guard, &part, 1, -1);
	for (;;)
	{
		uint8		header[HEADER_SIZE];
		uint8	   *message;
		size_t		length;

		part.iov_base = header;
		part.iov_len = sizeof(header);
		if (mongoc_stream_readv(guard, &part, 1, sizeof(header), -1) != sizeof(header))
			break;
		length = get_int32(header);
		message = palloc(length);
		part.iov_base = message;
		part.iov_len = length - HEADER_SIZE;
		fuzz_check(mongoc_stream_readv(guard, &part, 1, part.iov_len, -1) ==
				   (ssize_t) part.iov_len, "a message is handed on whole");
		pfree(message);
		fuzz_check(++count <= size, "there are no more messages than bytes");
	}
	mongoc_stream_destroy(guard);
	pfree(received);
}

/* The data plane's checks, which stand alone. */
static void
fuzz_frame(const uint8_t *data, size_t size)
{
	/* in the order of their ids */
	static const char *const names[] = {"snappy", "zlib", "zstd"};
	const MongoCompressor *compressor = NULL;
	uint8	   *message;
	size_t		expanded_size;

	if (size < BODY_OFFSET + SMALLEST_DOCUMENT)
		return;
	message = palloc(size);
	memcpy(message, data, size);
	put_int32(message, size);
	if (mongo_frame_check_header(message, get_int32(message + 8)) != NULL)
		return;
	if (get_int32(message + 12) != OP_COMPRESSED)
	{
		if (mongo_frame_check_message(message, size) == NULL)
			(void) mongo_reply_check(message + BODY_OFFSET, size - BODY_OFFSET);
		return;
	}
	if (message[HEADER_SIZE + 8] >= 1 && message[HEADER_SIZE + 8] <= lengthof(names))
		compressor = mongo_compressor_named(names[message[HEADER_SIZE + 8] - 1],
											strlen(names[message[HEADER_SIZE + 8] - 1]));
	if (compressor != NULL &&
		mongo_frame_check_compressed(message, compressor, &expanded_size) == NULL &&
		expanded_size < 1024 * 1024)
	{
		uint8	   *expanded = palloc(expanded_size);

		if (mongo_frame_expand(message, size, compressor, expanded, expanded_size) == NULL)
			(void) mongo_reply_check(expanded + BODY_OFFSET, expanded_size - BODY_OFFSET);
	}
}

static void
fuzz_message(const uint8_t *data, size_t size)
{
	fuzz_guard(data, size);
	fuzz_frame(data, size);
}

/* --- options: paths and URIs ------------------------------------------- */

/* The first byte chooses the option. */
static void
fuzz_option(const uint8_t *data, size_t size)
{
	MongoConnectionOptions options = {.server_name = "fuzz", .keep_connections = true};
	const MongoOption *option = mongo_find_option("path", ON_COLUMN);
	const char *path;
	static mongoc_uri_t *uri;	/* known after an error, too */
	MongoTransport transport = {0};

	if (size < 1 || !is_text(data + 1, size - 1))
		return;
	options.uri = pnstrdup((const char *) data + 1, size - 1);
	if (*data & 1)
	{
		option->parse(option, options.uri, &path);
		return;
	}
	option = mongo_find_option("uri", ON_SERVER);
	option->check(option, options.uri);
	uri = NULL;
	PG_TRY();
	{
		mongo_uri_create(&options, &transport, &uri);
		fuzz_check(mongoc_uri_get_username(uri) == NULL && mongoc_uri_get_password(uri) == NULL,
				   "a URI that is accepted has no credentials");
	}
	PG_FINALLY();
	{
		mongoc_uri_destroy(uri);
	}
	PG_END_TRY();
}

/* --- patterns of LIKE and "~" ------------------------------------------ */

static void
fuzz_pattern(const uint8_t *data, size_t size)
{
	static const Oid functions[] = {F_TEXTLIKE, F_STARTS_WITH, F_TEXTREGEXEQ, F_TEXTICREGEXEQ};
	MongoField	field = {
		.path = "t", .type = TEXTOID, .typmod = -1, .operator_type = TEXTOID,
		.bson_type = size > 0 && *data & 4 ? BSON_TYPE_UTF8 : BSON_TYPE_EOD
	};
	bson_t	   *match = mongo_bson_create();
	Node	   *pattern;

	if (size < 1 || !is_text(data + 1, size - 1))
		return;
	pattern = (Node *) makeConst(TEXTOID, -1, C_COLLATION_OID, -1,
								 CStringGetTextDatum(pnstrdup((const char *) data + 1, size - 1)),
								 false, false);
	(void) mongo_translate_pattern(&field, functions[*data & 3], pattern, C_COLLATION_OID,
								   (*data & 8) == 0, match);
	fuzz_check(bson_validate(match, BSON_VALIDATE_UTF8, NULL), "a regular expression is text");
}

const FuzzTarget fuzz_targets[] = {
	{"document", prepare_documents, fuzz_document},
	{"json", NULL, fuzz_json},
	{"message", NULL, fuzz_message},
	{"option", NULL, fuzz_option},
	{"pattern", NULL, fuzz_pattern},
	{.name = NULL}
};
