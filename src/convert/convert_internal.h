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

/* ------ Arrays, composite types and domains from BSON, see convert.h ------- */

extern MongoReadFunction mongo_read_array;
extern MongoReadFunction mongo_read_composite;
extern MongoReadFunction mongo_read_domain;
extern MongoPrepareFunction mongo_prepare_array;
extern MongoPrepareFunction mongo_prepare_composite;
extern MongoPrepareFunction mongo_prepare_domain;

/* -------------- Numbers and booleans from BSON, see convert.h -------------- */

extern MongoReadFunction mongo_read_bool;
extern MongoReadFunction mongo_read_int2;
extern MongoReadFunction mongo_read_int4;
extern MongoReadFunction mongo_read_int8;
extern MongoReadFunction mongo_read_float4;
extern MongoReadFunction mongo_read_float8;
extern MongoReadFunction mongo_read_numeric;
extern MongoPrepareFunction mongo_prepare_numeric;

/* ------------- Texts, bytes and dates from BSON, see convert.h ------------- */

extern MongoReadFunction mongo_read_text;
extern MongoReadFunction mongo_read_varchar;
extern MongoReadFunction mongo_read_bpchar;
extern MongoReadFunction mongo_read_char;
extern MongoReadFunction mongo_read_name;
extern MongoReadFunction mongo_read_bytea;
extern MongoReadFunction mongo_read_uuid;
extern MongoReadFunction mongo_read_timestamp;
extern MongoReadFunction mongo_read_date;
extern MongoReadFunction mongo_read_objectid;

/* ---------- Types that BSON has no counterpart for, see convert.h ---------- */

extern MongoReadFunction mongo_read_enum;
extern MongoReadFunction mongo_read_text_form;
extern MongoPrepareFunction mongo_prepare_text_form;

/* ---- Arrays, composite types and domains as BSON values, see convert.h ---- */

extern MongoWriteFunction mongo_write_array;
extern MongoWriteFunction mongo_write_composite;
extern MongoWriteFunction mongo_write_domain;

/* ------------------ Scalars as BSON values, see convert.h ------------------ */

/*
 * MONGO_WRITE
 *		Append with libbson's function for this BSON type; raise 54000 unless it could.
 */
#define MONGO_WRITE(target, type, ...) \
	mongo_write_check(bson_append_##type((target)->document, (target)->key, \
										 (target)->key_length, ##__VA_ARGS__))

/*
 * mongo_write_check
 *		Raise 54000 unless libbson could append.
 */
extern void mongo_write_check(bool appended);

extern MongoWriteFunction mongo_write_bool;
extern MongoWriteFunction mongo_write_int2;
extern MongoWriteFunction mongo_write_int4;
extern MongoWriteFunction mongo_write_int8;
extern MongoWriteFunction mongo_write_float4;
extern MongoWriteFunction mongo_write_float8;
extern MongoWriteFunction mongo_write_numeric;
extern MongoWriteFunction mongo_write_text;
extern MongoWriteFunction mongo_write_name;
extern MongoWriteFunction mongo_write_bytea;
extern MongoWriteFunction mongo_write_uuid;
extern MongoWriteFunction mongo_write_timestamp;
extern MongoWriteFunction mongo_write_date;
extern MongoWriteFunction mongo_write_interval;
extern MongoWriteFunction mongo_write_objectid;
extern MongoWriteFunction mongo_write_text_form;

/* ------------------------ JSON's numbers as BSON's ------------------------ */

/*
 * mongo_write_json_number
 *		The narrowest BSON number that is this number, a C string as JSON has it.
 *
 * Without point and exponent: Int32, else Int64.  Otherwise, or when too large:
 * Double when its shortest form is this number, else Decimal128; raises 22003 beyond
 * that.
 */
extern void mongo_write_json_number(const MongoWriteTarget *target, const char *text);

/* mongo_write_json_integer: likewise, when it is known as an integer. */
extern void mongo_write_json_integer(const MongoWriteTarget *target, int64 integer);

/*-------------------------------------------------------------------------
 * Where JSON goes while it is made from BSON: into a text or a jsonb.
 *
 * Between json_read.c and json_write.c.
 *-------------------------------------------------------------------------
 */

/* Where JSON goes.  Strings are valid UTF-8 without U+0000. */
typedef struct JsonSink JsonSink;
struct JsonSink
{
	void		(*begin) (JsonSink *sink, bool array);
	void		(*end) (JsonSink *sink, bool array);
	void		(*key) (JsonSink *sink, const char *key, uint32 length);
	void		(*string) (JsonSink *sink, const char *text, uint32 length);
	void		(*number) (JsonSink *sink, const char *text);
	void		(*integer) (JsonSink *sink, int64 number);
	void		(*boolean) (JsonSink *sink, bool truth);
	void		(*null) (JsonSink *sink);

	bool		keeps_strings;	/* must a string outlive the call? */
	bool		full;			/* is the rest of no interest? */
	bool		canonical;
	MongoReadContext *context;	/* takes type mismatches */
};

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

/* ------------------ What in a string is the same in JSON ------------------ */

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

/* ------------ Going through a json, jsonb or text, into a sink ------------ */

/*
 * mongo_walk_json
 *		Give a value to the sink, in one pass.
 *
 * Strings and keys become UTF-8; they stay where they are as long as 'value' and the
 * current memory context do.  Numbers are as they were written, those of a jsonb as
 * numeric_out() has them; integers of up to 18 digits come as such.
 *
 * Raises what PostgreSQL says of a text that is not JSON (22P02), of \u0000 and of an
 * escape that its encoding has no character for (22P05), and what the sink raises.
 */
extern void mongo_walk_json(JsonSink *sink, Datum value, Oid typid);

/*-------------------------------------------------------------------------
 * Objects that stand for a value of another BSON type, such as {"$oid": ...}.
 *
 * A wrapper is told from a document by all of its keys, so what begins as one
 * is first written as a document of its own.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_may_be_wrapper
 *		Can an object whose first key this is be a wrapper?
 */
extern bool mongo_may_be_wrapper(const char *key, uint32 length);

/*
 * mongo_write_wrapper
 *		Append the value that an object stands for; false when it is a document.
 *
 * Wrappers inside it are values already; 'plain' when there was none.  Raises 22P02 for
 * a malformed wrapper, and what timestamptz and uuid say of a $date and a $uuid that are
 * none.
 */
extern bool mongo_write_wrapper(const MongoWriteTarget *target, const bson_t *object,
								bool plain);

/*-------------------------------------------------------------------------
 * The type point as a GeoJSON Point: https://www.rfc-editor.org/rfc/rfc7946
 *-------------------------------------------------------------------------
 */

/*
 * mongo_read_point
 *		From a GeoJSON Point, an array of two numbers, as older geospatial
 *		indexes take it, or a String in the type's text form.
 *
 * Its reader is prepared by mongo_prepare_text_form().
 */
extern MongoReadFunction mongo_read_point;

/*
 * mongo_write_point
 *		{type: "Point", coordinates: [x, y]}, of two Doubles.
 */
extern MongoWriteFunction mongo_write_point;

#endif							/* MONGO_FDW_CONVERT_INTERNAL_H */
