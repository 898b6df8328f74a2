/*-------------------------------------------------------------------------
 *
 * convert_internal.h
 *		Declarations that the files of src/convert share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CONVERT_INTERNAL_H
#define MONGO_FDW_CONVERT_INTERNAL_H

#include "common.h"
#include "convert.h"

#include "lib/stringinfo.h"
#include "utils/jsonb.h"

/* --------------------------------- Texts --------------------------------- */

/*
 * Tells whether these bytes are ASCII without U+0000.
 *
 * Most text is, and all of PostgreSQL's server encodings represent it alike.  Tests eight
 * bytes at a time: subtracting 1 from each byte sets the high bit of a zero byte.
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

/* -------------------------------- Reading -------------------------------- */

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
	MONGO_MISMATCH_DOMAIN,		/* violates a domain's constraint: 23514 */
	MONGO_MISMATCH_BSON,		/* invalid bytes in the document: 08P01 */
	MONGO_UNREAD				/* no mismatch: reading it was deferred */
} MongoMismatch;

/* The state of reading one document. */
typedef struct MongoReadContext
{
	bool		canonical_json; /* json, jsonb, text: canonical Extended JSON */
	bool		defers_checks;	/* are constraints of domains not checked? */
	bool		defers_input;	/* are input functions that may raise errors
								 * not called? */

	/* set if something was deferred, never reset by readers */
	bool		deferred;		/* a constraint; the value is read */

	/* set by mongo_mismatch(); valid if reading has returned false */
	MongoMismatch mismatch;
	bson_iter_t value;			/* the value that does not fit, in the
								 * document that is being read; not to be read
								 * for MONGO_MISMATCH_BSON */
	const char *remark;			/* another sentence for DETAIL, or NULL */
} MongoReadContext;

/* How to read values of a type; built once per scan. */
typedef struct MongoReader
{
	MongoReadFunction *read;
	uint32		accepts;
	uint32		undeclared;		/* BSON types that option bson_type takes away
								 * from those that the type reads */
	Oid			typid;
	int32		typmod;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	const MongoType *type;
	void	   *extra;			/* private to the read function */
} MongoReader;

/*
 * The arguments of a MongoReadFunction, which converts the value at 'iter' into a Datum.  The value
 * has a BSON type that the reader accepts, so it is never null or undefined.  The Datum is palloc'd
 * in the current memory context and does not point into the document.  If the value does not fit,
 * the function calls mongo_mismatch() and returns false.
 */
#define MONGO_READ_ARGS \
	const MongoReader *reader pg_attribute_unused(), \
	MongoReadContext *context pg_attribute_unused(), \
	const bson_iter_t *iter, Datum *value

extern MongoReadFunction mongo_read_bool,
			mongo_read_integer,
			mongo_read_float4,
			mongo_read_float8,
			mongo_read_numeric,
			mongo_limit_text,
			mongo_read_text,
			mongo_read_bytea,
			mongo_read_uuid,
			mongo_read_timestamp,
			mongo_read_date,
			mongo_read_objectid,
			mongo_read_json,
			mongo_read_jsonb,
			mongo_read_text_form,
			mongo_read_array,
			mongo_read_vector,
			mongo_read_composite,
			mongo_read_domain,
			mongo_read_point;
extern MongoPrepareFunction mongo_prepare_text_form,
			mongo_prepare_array,
			mongo_prepare_vector,
			mongo_prepare_composite,
			mongo_prepare_domain;

/* -------------------------------- Writing -------------------------------- */

/* The place where a value is appended. */
typedef struct MongoWriteTarget
{
	bson_t	   *document;
	const char *key;
	int			key_length;
} MongoWriteTarget;

/* The arguments of a MongoWriteFunction: it appends a value that is not NULL, or raises. */
#define MONGO_WRITE_ARGS \
	const MongoWriteTarget *target, Datum value, \
	Oid typid pg_attribute_unused(), int32 typmod pg_attribute_unused()

/* Appends a value with libbson's function for this BSON type; or raises 54000. */
#define MONGO_WRITE(target, type, ...) \
	mongo_appended(bson_append_##type((target)->document, (target)->key, (target)->key_length, ##__VA_ARGS__))

extern MongoWriteFunction mongo_write_json;

/* -------------------------------- types.c -------------------------------- */

extern Oid	mongo_cast_function(Oid source, Oid target);
extern Datum mongo_call_cast(FmgrInfo *cast, Datum value, int32 typmod);
extern MongoReader *mongo_reader_create(Oid typid, int32 typmod);

/* ------------------------------- number.c -------------------------------- */

extern Datum mongo_numeric_of_text(const char *text);
extern void mongo_decimal128_to_text(const bson_decimal128_t *decimal, char *text);
extern bool mongo_integer_of_value(const bson_iter_t *iter, int64 *integer);

/* ------------------------------ objectid.c ------------------------------- */

#define MONGO_OBJECTID_SIZE			12

extern bool mongo_is_objectid_type(Oid typid);
extern PGDLLEXPORT Datum mongo_objectid_in(PG_FUNCTION_ARGS);

/* ---------------------------- decode_value.c ----------------------------- */

extern void mongo_prepare_token(MongoReader *reader, const char *column);

/* ------------------------------- reader.c -------------------------------- */

extern bool mongo_mismatch(MongoReadContext *context, MongoMismatch mismatch,
						   const bson_iter_t *iter, const char *remark);
extern bool mongo_call_softly(MongoReadContext *context, FmgrInfo *function, Datum first,
							  Datum second, Datum third, Datum *value);
extern const char *mongo_text_remark(const char *text, uint32 length);
extern const char *mongo_text_to_server(const char *text, uint32 *length);

/*
 * Reads the value at 'iter'; BSON null and undefined give NULL.
 *
 * Returns false if it does not fit; 'context' then has the reason, and *value and *isnull
 * are undefined.
 */
static inline bool
mongo_read_value(const MongoReader *reader, MongoReadContext *context,
				 const bson_iter_t *iter, Datum *value, bool *isnull)
{
	bson_type_t type = bson_iter_type_unsafe(iter);

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

#endif							/* MONGO_FDW_CONVERT_INTERNAL_H */
