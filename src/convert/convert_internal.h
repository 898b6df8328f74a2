/*-------------------------------------------------------------------------
 *
 * convert_internal.h
 *		What the files of src/convert share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CONVERT_INTERNAL_H
#define MONGO_FDW_CONVERT_INTERNAL_H

#include "compat.h"
#include "convert.h"

#include "lib/stringinfo.h"
#include "utils/jsonb.h"

/* --------------------------------- Decimals -------------------------------- */

#ifndef HAVE_INT128
#error "mongo_fdw needs a compiler with 128-bit integers"
#endif

typedef enum MongoDecimalKind
{
	MONGO_DECIMAL_FINITE,
	MONGO_DECIMAL_INFINITE,
	MONGO_DECIMAL_NAN
} MongoDecimalKind;

/* (-1)^negative * coefficient * 10^exponent */
typedef struct MongoDecimalParts
{
	MongoDecimalKind kind;
	bool		negative;
	int			exponent;
	uint128		coefficient;	/* less than 10^34; 0 for greater ones, which
								 * are not canonical */
} MongoDecimalParts;

/* mongo_decimal128_unpack: every bit pattern has a meaning. */
extern void mongo_decimal128_unpack(const bson_decimal128_t *decimal,
									MongoDecimalParts *parts);

/* mongo_decimal128_to_text: as Extended JSON has it, into BSON_DECIMAL128_STRING bytes. */
extern void mongo_decimal128_to_text(const bson_decimal128_t *decimal, char *text);

/* mongo_decimal128_to_int64: true when the number is integral and fits. */
extern bool mongo_decimal128_to_int64(const MongoDecimalParts *parts,
									  int64 *result);

/* ----------------------------------- Texts --------------------------------- */

/*
 * mongo_is_plain_text
 *		Are these bytes ASCII without U+0000?
 *
 * Such text is the same in each of PostgreSQL's server encodings, and most text is
 * such.  Eight bytes at a time: taking 1 from each sets the high bit of a zero byte.
 */
static inline bool
mongo_is_plain_text(const char *text, uint32 length)
{
	const uint64 ones = UINT64CONST(0x0101010101010101);
	const uint64 high_bits = UINT64CONST(0x8080808080808080);
	uint32		i = 0;
	unsigned char seen = 0;

	for (; i + sizeof(uint64) <= length; i += sizeof(uint64))
	{
		uint64		bytes;

		memcpy(&bytes, text + i, sizeof(bytes));
		if (((bytes | (bytes - ones)) & high_bits) != 0)
			return false;
	}
	for (; i < length; i++)
		seen |= (unsigned char) text[i] | ((unsigned char) text[i] - 1);
	return (seen & 0x80) == 0;
}

/* mongo_text_remark: why mongo_text_is_valid() is false, a sentence for DETAIL; static. */
extern const char *mongo_text_remark(const char *text, uint32 length);

/*
 * mongo_text_to_server
 *		Valid UTF-8 in the database's encoding: 'text' itself where that is UTF-8, else a
 *		palloc'd copy, to whose length *length is set.
 */
extern const char *mongo_text_to_server(const char *text, uint32 *length);

#define MONGO_OBJECTID_SIZE			12

/* mongo_objectid_to_text: 24 lower-case hexadecimal digits and a NUL. */
extern void mongo_objectid_to_text(const uint8 *bytes, char *text);

/* mongo_objectid_datum: a palloc'd Datum of these twelve bytes. */
extern Datum mongo_objectid_datum(const uint8 *bytes);

/*
 * mongo_is_objectid_type
 *		Is this the type?  Told by its input function, which takes no scan of pg_extension
 *		in a new session.
 */
extern bool mongo_is_objectid_type(Oid typid);

/* The type's input function. */
extern PGDLLEXPORT Datum mongo_objectid_in(PG_FUNCTION_ARGS);

/* --------------------------------- Reading --------------------------------- */

/* Why a BSON value does not fit a PostgreSQL type; decides the SQLSTATE. */
typedef enum MongoMismatch
{
	MONGO_MISMATCH_TYPE,		/* a BSON type the column does not read: 22P02 */
	MONGO_MISMATCH_RANGE,		/* a number out of range or inexact: 22003 */
	MONGO_MISMATCH_DATETIME,	/* a date out of range: 22008 */
	MONGO_MISMATCH_CHARACTERS,	/* U+0000 or invalid UTF-8: 22021 */
	MONGO_MISMATCH_LENGTH,		/* a string too long: 22001 */
	MONGO_MISMATCH_SYNTAX,		/* not the type's text form: 22P02 */
	MONGO_MISMATCH_SHAPE,		/* a ragged array, an array in a path: 2202E */
	MONGO_MISMATCH_DOMAIN		/* breaks a domain's constraint: 23514 */
} MongoMismatch;

/* What reading one document carries along. */
typedef struct MongoReadContext
{
	bool		canonical_json; /* Extended JSON flavour of json, jsonb, text */
	bool		defers_checks;	/* are constraints of domains left untested? */
	bool		defers_input;	/* are input functions that may raise not
								 * called? */

	/* set by what was deferred, never reset by readers */
	bool		deferred;		/* a constraint; the value is there */
	bool		unread;			/* a value: the reading was false for that
								 * alone */

	/* set by mongo_mismatch(); valid after a reading that was false */
	MongoMismatch mismatch;
	bson_iter_t value;			/* that does not fit, in the document that is
								 * read */
	const char *remark;			/* one more sentence for DETAIL, or NULL */
} MongoReadContext;

/*
 * mongo_mismatch
 *		Note that the value at 'iter' does not fit; always returns false.
 *
 * 'remark' must live until the error is raised or the next reading.
 */
extern bool mongo_mismatch(MongoReadContext *context, MongoMismatch mismatch,
						   const bson_iter_t *iter, const char *remark);

/* How values of one type are read; built once a scan. */
typedef struct MongoReader
{
	MongoReadFunction *read;
	uint32		accepts;
	uint32		undeclared;		/* what the type reads, but not the column,
								 * which is declared to be of one BSON type */
	Oid			typid;
	int32		typmod;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	const MongoType *type;
	MemoryContext mcxt;			/* where the reader lives */
	void	   *extra;			/* the read function's own */
} MongoReader;

/*
 * The arguments of a MongoReadFunction: it turns the value at 'iter', whose type is
 * one that the reader accepts, into a Datum palloc'd in the current memory context,
 * never one that points into the document.  Returns what mongo_mismatch() returned
 * when the value does not fit.  It is never called for null and undefined.
 */
#define MONGO_READ_ARGS \
	const MongoReader *reader pg_attribute_unused(), \
	MongoReadContext *context pg_attribute_unused(), \
	const bson_iter_t *iter, Datum *value

/*
 * mongo_reader_create
 *		A reader for a type, living in 'context' with all that it needs.
 *
 * Raises 0A000 for a type that cannot be read, or that has an element or an
 * attribute that cannot.
 */
extern MongoReader *mongo_reader_create(MemoryContext context, Oid typid,
										int32 typmod);

/*
 * mongo_read_value
 *		Read the value at 'iter'; BSON null and undefined give NULL.
 *
 * Returns false when it does not fit, and 'context' says why; *value and
 * *isnull are then without meaning.
 */
static inline bool
mongo_read_value(const MongoReader *reader, MongoReadContext *context,
				 const bson_iter_t *iter, Datum *value, bool *isnull)
{
	bson_type_t type = bson_iter_type(iter);

	if (type == BSON_TYPE_NULL || type == BSON_TYPE_UNDEFINED)
	{
		*value = (Datum) 0;
		*isnull = true;
		return true;
	}
	*isnull = false;
	if ((reader->accepts & MONGO_BSON_BIT(type)) == 0)
		return mongo_mismatch(context, MONGO_MISMATCH_TYPE, iter, NULL);
	return reader->read(reader, context, iter, value);
}

extern MongoReadFunction mongo_read_bool,
			mongo_read_integer,
			mongo_read_int4,
			mongo_read_float4,
			mongo_read_float8,
			mongo_read_numeric,
			mongo_read_text,
			mongo_read_bpchar,
			mongo_read_char,
			mongo_read_name,
			mongo_read_bytea,
			mongo_read_uuid,
			mongo_read_timestamp,
			mongo_read_date,
			mongo_read_objectid,
			mongo_read_json,
			mongo_read_jsonb,
			mongo_read_enum,
			mongo_read_text_form,
			mongo_read_array,
			mongo_read_composite,
			mongo_read_domain,
			mongo_read_point;
extern MongoPrepareFunction mongo_prepare_numeric,
			mongo_prepare_text_form,
			mongo_prepare_array,
			mongo_prepare_composite,
			mongo_prepare_domain;

/* --------------------------------- Writing --------------------------------- */

/* Where a value is appended. */
typedef struct MongoWriteTarget
{
	bson_t	   *document;
	const char *key;
	int			key_length;
} MongoWriteTarget;

/* The arguments of a MongoWriteFunction: it appends one non-null value, or raises. */
#define MONGO_WRITE_ARGS \
	const MongoWriteTarget *target, Datum value, \
	Oid typid pg_attribute_unused(), int32 typmod pg_attribute_unused()

/* MONGO_WRITE: append with libbson's function for this BSON type; or raise 54000. */
#define MONGO_WRITE(target, type, ...) \
	mongo_write_check(bson_append_##type((target)->document, (target)->key, \
										 (target)->key_length, ##__VA_ARGS__))

/* mongo_write_check: raise 54000 unless libbson could append. */
extern void mongo_write_check(bool appended);

extern MongoWriteFunction mongo_write_bool,
			mongo_write_integer,
			mongo_write_float,
			mongo_write_numeric,
			mongo_write_text,
			mongo_write_name,
			mongo_write_bytea,
			mongo_write_uuid,
			mongo_write_timestamp,
			mongo_write_date,
			mongo_write_interval,
			mongo_write_objectid,
			mongo_write_json,
			mongo_write_text_form,
			mongo_write_array,
			mongo_write_composite,
			mongo_write_domain,
			mongo_write_point;

/*
 * mongo_write_json_number, mongo_write_json_integer
 *		The narrowest BSON number that is this number of JSON's.
 *
 * Without point and exponent: Int32, else Int64.  Otherwise, or when too large:
 * Double when its shortest form is this number, else Decimal128; raises 22003 beyond
 * that.
 */
extern void mongo_write_json_number(const MongoWriteTarget *target, const char *text);
extern void mongo_write_json_integer(const MongoWriteTarget *target, int64 integer);

/* ----------------- JSON on its way to a text, a jsonb or BSON -------------- */

/* What JSON is made of.  Containers begin and end; numbers are texts as JSON has them. */
typedef enum JsonItem
{
	JSON_BEGIN_OBJECT,
	JSON_BEGIN_ARRAY,
	JSON_END_OBJECT,
	JSON_END_ARRAY,
	JSON_KEY,
	JSON_STRING,
	JSON_NUMBER,
	JSON_INTEGER,
	JSON_BOOLEAN,
	JSON_NULL
} JsonItem;

/* Where JSON goes. */
typedef struct JsonSink JsonSink;
struct JsonSink
{
	/*
	 * Strings, keys and numbers are texts: valid UTF-8 without U+0000, and a
	 * number ends with a NUL.  'integer' is also what a boolean is.
	 */
	void		(*put) (JsonSink *sink, JsonItem item, const char *text, uint32 length,
						int64 integer);
	bool		keeps_strings;	/* must a string outlive the call? */
	bool		full;			/* is the rest of no interest? */
	bool		canonical;
	MongoReadContext *context;	/* takes type mismatches */
};

/* json_put_text, json_put_integer, json_put: an item with what it needs. */
static inline void
json_put_text(JsonSink *sink, JsonItem item, const char *text, uint32 length)
{
	sink->put(sink, item, text, length, 0);
}

static inline void
json_put_integer(JsonSink *sink, JsonItem item, int64 integer)
{
	sink->put(sink, item, NULL, 0, integer);
}

static inline void
json_put(JsonSink *sink, JsonItem item)
{
	sink->put(sink, item, NULL, 0, 0);
}

/* A sink that writes JSON, in UTF-8. */
typedef struct TextSink
{
	JsonSink	sink;
	StringInfo	text;
	int			limit;			/* full beyond so many bytes; 0: never */
	bool		spaced;			/* with blanks, for people: { "a" : [ 1, 2 ] } */
	bool		need_comma;
} TextSink;

/* A sink that builds a jsonb; 'result' is NULL when the value is a scalar. */
typedef struct JsonbSink
{
	JsonSink	sink;
	JsonbParseState *state;
	JsonbValue *result;			/* of the outermost container */
	JsonbValue	scalar;			/* the whole value, when it is a scalar */
} JsonbSink;

/*
 * mongo_init_text_sink, mongo_init_jsonb_sink
 *		Make a sink ready for one value, which lives on the caller's stack.
 *
 * Strings that a jsonb sink got must stay where they are until the jsonb is
 * put together from ->result or ->scalar.
 */
extern void mongo_init_text_sink(TextSink *sink, bool spaced, MongoReadContext *context,
								 StringInfo text, int limit);
extern void mongo_init_jsonb_sink(JsonbSink *sink, MongoReadContext *context);

/*
 * mongo_document_to_datum
 *		A whole document as json, jsonb or text (typid says which; varchar counts as text).
 *
 * False, noting a type mismatch, when a string in it fits no text.  Raises 54001 for
 * nesting beyond the stack's depth.
 */
extern bool mongo_document_to_datum(MongoReadContext *context,
									const uint8_t *data, uint32 length,
									Oid typid, Datum *value);

/*
 * mongo_json_span
 *		How many bytes from here on are neither quotes, backslashes nor control
 *		characters.
 *
 * Eight at a time: taking from each byte as much as it must have at least sets
 * its high bit, if it was not set, and so does taking 1 from what is zero.
 */
static inline uint32
mongo_json_span(const char *text, uint32 length)
{
	const uint64 ones = UINT64CONST(0x0101010101010101);
	uint32		i = 0;

	for (; i + sizeof(uint64) <= length; i += sizeof(uint64))
	{
		uint64		bytes;
		uint64		quotes;
		uint64		backslashes;
		uint64		found;

		memcpy(&bytes, text + i, sizeof(bytes));
		quotes = bytes ^ (ones * '"');
		backslashes = bytes ^ (ones * '\\');
		found = ((bytes - ones * ' ') & ~bytes) |
			((quotes - ones) & ~quotes) | ((backslashes - ones) & ~backslashes);
		if ((found & (ones * 0x80)) != 0)
			break;
	}
	while (i < length && (unsigned char) text[i] >= ' ' && text[i] != '"' && text[i] != '\\')
		i++;
	return i;
}

/*
 * mongo_walk_json
 *		Give a json, jsonb or text to the sink, in one pass.
 *
 * Strings and keys become UTF-8; they stay where they are as long as 'value' and the
 * current memory context do.  Numbers are as they were written, those of a jsonb as
 * numeric_out() has them; integers of up to 18 digits come as such.  Raises as
 * mongo_append_json_members() does of what is no JSON, and what the sink raises.
 */
extern void mongo_walk_json(JsonSink *sink, Datum value, Oid typid);

/* mongo_may_be_wrapper: can an object whose first key this is be a wrapper? */
extern bool mongo_may_be_wrapper(const char *key, uint32 length);

/*
 * mongo_write_wrapper
 *		Append the value that an object stands for; false when it is a document, which all
 *		of its keys tell.
 *
 * Wrappers inside it are values already; 'plain' when there was none.  Raises 22P02 for
 * a malformed wrapper, and what timestamptz and uuid say of a $date and a $uuid that are
 * none.
 */
extern bool mongo_write_wrapper(const MongoWriteTarget *target, const bson_t *object,
								bool plain);

#endif							/* MONGO_FDW_CONVERT_INTERNAL_H */
