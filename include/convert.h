/*-------------------------------------------------------------------------
 *
 * convert.h
 *		Values and documents: BSON to Datum, Datum to BSON, JSON.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CONVERT_H
#define MONGO_FDW_CONVERT_H

#include "compat.h"
#include "options.h"

#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"
#include "utils/date.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

/* ----------- BSON's Date, which counts milliseconds since 1970 ------------ */

/* PostgreSQL's dates begin in 2000. */
#define MONGO_MILLIS_PER_DAY	INT64CONST(86400000)
#define MONGO_EPOCH_DAYS		((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE))

/*
 * mongo_timestamp_to_millis
 *		Milliseconds since 1970 of a timestamp or timestamptz, rounded down.
 *
 * *exact (may be NULL) tells whether nothing was cut.  The value must be
 * finite.
 */
extern int64 mongo_timestamp_to_millis(Timestamp value, bool *exact);

/*
 * mongo_date_to_millis
 *		Milliseconds since 1970 of a date's midnight in UTC.  Must be finite.
 */
extern int64 mongo_date_to_millis(DateADT value);

/*-------------------------------------------------------------------------
 * BSON's types: sets of them, and their names.
 *
 * https://bsonspec.org
 *-------------------------------------------------------------------------
 */

/*
 * BSON types as bits of a set.  MinKey and MaxKey have codes of their own at the
 * ends of a byte.
 */
#define MONGO_BSON_BIT(code) \
	((code) <= 0x13 ? (uint32) 1 << (code) : \
	 (code) == BSON_TYPE_MAXKEY ? (uint32) 1 << 0x14 : (uint32) 1 << 0x15)

#define MONGO_BSON_ANY			(~(uint32) 0)

/*
 * mongo_bson_type_name
 *		"Int32", "ObjectId", as the BSON specification has it; static.
 */
extern const char *mongo_bson_type_name(bson_type_t type);

/*
 * mongo_bson_type_aliases
 *		Of a set of types, what MongoDB's $type calls them: a List of static C
 *		strings, such as "objectId".
 */
extern List *mongo_bson_type_aliases(uint32 set);

/*-------------------------------------------------------------------------
 * Going through documents that a server sent, whose bytes may be anything.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_iter_check_end
 *		bson_iter_next() gave false: was that the end of the document?
 *
 * Raises 08P01 when it was not but the bytes are not BSON.  'length' is that
 * of the document under the iterator.
 */
extern void mongo_iter_check_end(const bson_iter_t *iter, uint32 length);

/*
 * mongo_iter_descend
 *		An iterator over the document or array at 'iter'; returns its length.
 *		Raises 08P01 when the bytes are not a document.
 */
extern uint32 mongo_iter_descend(const bson_iter_t *iter, bson_iter_t *child);

/*
 * mongo_report_bad_bson
 *		Raise 08P01: the server sent bytes that are not BSON.
 */
pg_noreturn extern void mongo_report_bad_bson(void);

/*-------------------------------------------------------------------------
 * Decimal128 in parts, and as PostgreSQL's numbers.
 *
 * IEEE 754-2008 decimal128 in its binary integer encoding, as BSON holds it:
 * https://github.com/mongodb/specifications/blob/master/source/bson-decimal128/decimal128.md
 *-------------------------------------------------------------------------
 */

#ifndef HAVE_INT128
#error "mongo_fdw needs a compiler with 128-bit integers"
#endif

#define MONGO_DECIMAL128_MAX_DIGITS		34
#define MONGO_DECIMAL128_MIN_EXPONENT	(-6176)
#define MONGO_DECIMAL128_MAX_EXPONENT	6111

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

/*
 * mongo_decimal128_unpack
 *		Take a Decimal128 apart; every bit pattern has a meaning.
 */
extern void mongo_decimal128_unpack(const bson_decimal128_t *decimal,
									MongoDecimalParts *parts);

/*
 * mongo_decimal128_to_text
 *		Its text in Extended JSON, into BSON_DECIMAL128_STRING bytes.
 */
extern void mongo_decimal128_to_text(const bson_decimal128_t *decimal, char *text);

/*
 * mongo_decimal128_to_int64
 *		True when the number is integral and fits.
 */
extern bool mongo_decimal128_to_int64(const MongoDecimalParts *parts,
									  int64 *result);

/*
 * mongo_numeric_to_decimal128
 *		The same number, with as much of its scale as there is room for; false
 *		when it has more than 34 digits or is out of the exponents' range.
 *
 * NaN and infinities convert.
 */
extern bool mongo_numeric_to_decimal128(Numeric value, bson_decimal128_t *decimal);

/*
 * mongo_numeric_typmod
 *		The precision and the scale of numeric(precision, scale); false for a
 *		numeric without them.
 */
extern bool mongo_numeric_typmod(int32 typmod, int *precision, int *scale);

/*-------------------------------------------------------------------------
 * What the column option bson_type says: the one BSON type that a column reads
 * and writes, of those that its PostgreSQL type reads.
 *
 * Which can be declared for which type is a table in src/convert/types.c;
 * docs/types.md has it in prose.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_declared_set
 *		The BSON types, as bits of MONGO_BSON_BIT, that a column reads by its option;
 *		MONGO_BSON_ANY for BSON_TYPE_EOD, which is no option.
 *
 * A Symbol is a String: MongoDB holds the two for equal.
 */
extern uint32 mongo_declared_set(bson_type_t declared);

/*
 * mongo_check_declared_type
 *		Raise 42804 for what a column of this type cannot be declared as.
 *
 * Nothing can for types that have no row in the table, such as jsonb, which reads
 * everything.  A domain can be declared as its base type can.
 */
extern void mongo_check_declared_type(const char *column_name, Oid typid,
									  bson_type_t declared);

/*
 * mongo_declared_is_told
 *		Does a value of the declared type equal, for MongoDB, only values of that type?
 *		Not numbers, of which 5 and 5.0 are equal in every BSON type.
 */
extern bool mongo_declared_is_told(bson_type_t declared);

/*
 * mongo_append_declared
 *		Append 'value' of type 'typid', which is not NULL, to 'document' under 'key', in
 *		UTF-8, as a value of the declared type.
 *
 * The column would read the very value.  Raises 22P02 for a text that is no ObjectId,
 * 22003 for a number that the BSON type does not hold, and otherwise what
 * mongo_append_datum() raises.
 */
extern void mongo_append_declared(bson_t *document, const char *key, Datum value,
								  Oid typid, int32 typmod, bson_type_t declared);

/* --------------- From BSON bytes to Datums in a tuple slot ---------------- */

/* One column to fill, and where its field is. */
typedef struct MongoColumn
{
	int			index;			/* into values[] and isnull[], from 0 */
	const char *name;			/* the column's name, for messages */
	const char *path;			/* dotted path into the document, in UTF-8;
								 * "__doc" column: NULL */
	const char *collection;		/* whose document it is in; NULL: the
								 * decoder's */
	const char *prefix;			/* the part of the path at which that document
								 * stands within another; NULL: it is all */
	const char *field;			/* whose value it is, for messages, where the
								 * row is a group's and no document's; else
								 * NULL */
	Oid			typid;
	int32		typmod;
	bson_type_t bson_type;		/* the only one that is read, of those that
								 * the type reads; BSON_TYPE_EOD: all of them */
} MongoColumn;

/* Opaque: built once a scan, used for every document. */
typedef struct MongoRowDecoder MongoRowDecoder;

/*
 * mongo_row_decoder_create
 *		Prepare to read 'columns' from documents of 'database'.'collection'.
 *
 * Names are copied into 'context', where the decoder lives; those of database,
 * collections and columns are in the database encoding.  Two columns may share a
 * path, and a column may be the parent of another ("a" and "a.b").  Raises 0A000
 * for a column type that has no BSON form, and for a "__doc" column that is not
 * jsonb, json, text or varchar, and 42804 for a BSON type that the column cannot have.
 */
extern MongoRowDecoder *mongo_row_decoder_create(MemoryContext context,
												 const char *database,
												 const char *collection,
												 const MongoColumn *columns,
												 int ncolumns,
												 MongoTypeMismatch type_mismatch,
												 bool canonical_json);

/*
 * mongo_row_decode
 *		Read one document into values[] and isnull[] at each column's index.
 *
 * 'data' need not be aligned or trusted: nothing outside data[0..length) is
 * read, and bytes that are not BSON raise 08P01.  By-reference Datums are
 * palloc'd in the current memory context (never point into 'data').  A field
 * that is missing, null or undefined gives NULL.  Of a repeated key the first
 * counts, as it does for MongoDB's own matching.
 *
 * A field that does not fit its column raises under
 * MONGO_TYPE_MISMATCH_ERROR, with the SQLSTATE of the MongoMismatch in convert.h (the
 * message names collection, _id, field, BSON type and column type), and gives NULL
 * under MONGO_TYPE_MISMATCH_NULL.  Under both, nesting beyond the stack's depth
 * raises 54001, and a type without a row of its own in types.c what its input
 * function says of a String.
 */
extern void mongo_row_decode(MongoRowDecoder *decoder, const uint8_t *data,
							 uint32 length, Datum *values, bool *isnull);

/*
 * mongo_row_decoder_note_mismatches
 *		From now on, let a field that does not fit be NULL for the moment.
 *
 * mongo_row_decoder_mismatches() gives then the indexes of the columns of the last
 * document that did not fit; NULL when all did.  It is the decoder's.
 */
extern void mongo_row_decoder_note_mismatches(MongoRowDecoder *decoder, bool note);
extern const Bitmapset *mongo_row_decoder_mismatches(const MongoRowDecoder *decoder);

/*
 * mongo_row_decoder_defer
 *		From now on, or not any more, put off what may raise errors of its own.
 *
 * That is CHECK constraints of domains, and input functions of types that have no
 * row in the table of types; a column that waits for its input function is NULL.
 * mongo_row_decoder_deferred() tells whether there was any for the last document.
 * The columns (indexes) in 'needed', which must live as long as the decoder, are
 * read nevertheless; under type_mismatch 'null' their constraints are tested too,
 * since what breaks one is NULL.
 */
extern void mongo_row_decoder_defer(MongoRowDecoder *decoder, bool defer,
									const Bitmapset *needed);
extern bool mongo_row_decoder_deferred(const MongoRowDecoder *decoder);

/*-------------------------------------------------------------------------
 * The table of types: which BSON values a PostgreSQL type reads, how its
 * values are written, and what MongoDB may be asked about them.
 *
 * Whatever else depends on the type of a column or value asks this table, or has
 * a table of its own by MongoTypeKind.  docs/types.md says the same in prose.
 *-------------------------------------------------------------------------
 */

/* Types of one kind are alike to MongoDB; what they have in common is a row. */
typedef enum MongoTypeKind
{
	MONGO_KIND_OTHER,			/* what only PostgreSQL compares */
	MONGO_KIND_INTEGER,
	MONGO_KIND_REAL,
	MONGO_KIND_DOUBLE,
	MONGO_KIND_NUMERIC,
	MONGO_KIND_TEXT,			/* but for char(n), whose blanks do not count */
	MONGO_KIND_BOOLEAN,
	MONGO_KIND_UUID,
	MONGO_KIND_DATE,
	MONGO_KIND_TIMESTAMP,
	MONGO_KIND_TIMESTAMPTZ,
	MONGO_KIND_OBJECTID,
	MONGO_KIND_JSON,			/* compared as the text that ->> gives */
	MONGO_KIND_JSONB
} MongoTypeKind;

typedef struct MongoKind
{
	MongoTypeKind class;		/* kinds of one class compare with each other */

	/*
	 * Template of the one form in which aggregation expressions take a value
	 * (expression.c); "" where every value that is read is in it, NULL where
	 * there is none.
	 */
	const char *normal_form;
	bool		has_nan;
	bool		compares_raw;	/* MongoDB compares values as PostgreSQL does
								 * in every BSON type that is read */
	bool		is_key;			/* two fields are equal in MongoDB if and only
								 * if what is read is; but a text may be an
								 * ObjectId */
	bool		is_told_by_type;	/* whether a value fits, its BSON type
									 * says, and its size where the type has a
									 * limit */
} MongoKind;

extern const MongoKind mongo_kinds[];

/* How values are read and written is said in convert.h and convert.h. */
struct MongoReader;
struct MongoReadContext;
struct MongoWriteTarget;

typedef bool MongoReadFunction (const struct MongoReader *reader,
								struct MongoReadContext *context,
								const bson_iter_t *iter, Datum *value);
typedef void MongoPrepareFunction (struct MongoReader *reader);
typedef void MongoWriteFunction (const struct MongoWriteTarget *target, Datum value,
								 Oid typid, int32 typmod);

/* A type's row in the table. */
typedef struct MongoType
{
	Oid			typid;			/* InvalidOid for a category of types */
	const char *name;			/* as in docs/types.md */
	MongoTypeKind kind;
	uint32		accepts;		/* set of MONGO_BSON_BIT */
	MongoReadFunction *read;	/* convert.h; NULL, as is 'write': has no BSON
								 * form */
	MongoWriteFunction *write;	/* convert.h */
	MongoPrepareFunction *prepare;	/* for reading; may be NULL */
	int64		limit;			/* the greatest integer, or most bytes of a
								 * text; 0: those of its class */
} MongoType;

/*
 * mongo_type_lookup
 *		The row for a type: its own, or that of its category; static.
 *
 * NULL when the type has neither a reading nor a writing; a row has both.  Looks
 * in the catalogs for types that have no row of their own.
 */
extern const MongoType *mongo_type_lookup(Oid typid);

/*
 * mongo_nth_type
 *		A row by its number, counted from 0; NULL behind the last.
 */
extern const MongoType *mongo_nth_type(int number);

/*
 * mongo_type_facts
 *		What MongoDB may be asked about a type: its own row, or one of kind
 *		MONGO_KIND_OTHER, which domains have, too.  Static, never NULL.
 *
 * Looks in no catalogs but for the extension's own type.
 */
extern const MongoType *mongo_type_facts(Oid typid);

static inline MongoTypeKind
mongo_type_kind(Oid typid)
{
	return mongo_type_facts(typid)->kind;
}

static inline const MongoKind *
mongo_kind_of_type(Oid typid)
{
	return &mongo_kinds[mongo_type_kind(typid)];
}

/*
 * mongo_integer_of_datum, mongo_datum_of_integer
 *		A value of an integer type (MONGO_KIND_INTEGER) as an int64, and back.
 *
 * mongo_is_int64
 *		Is the integer type written as Int64, not as Int32?
 */
static inline int64
mongo_integer_of_datum(Oid typid, Datum value)
{
	return typid == INT4OID ? DatumGetInt32(value) :
		typid == INT2OID ? DatumGetInt16(value) : DatumGetInt64(value);
}

static inline Datum
mongo_datum_of_integer(Oid typid, int64 number)
{
	return typid == INT4OID ? Int32GetDatum((int32) number) :
		typid == INT2OID ? Int16GetDatum((int16) number) : Int64GetDatum(number);
}

static inline bool
mongo_is_int64(const MongoType *type)
{
	return type->limit == PG_INT64_MAX;
}

/*
 * mongo_types_compare
 *		Do values of the two types stand in one order?  Not those of domains.
 */
extern bool mongo_types_compare(Oid left, Oid right);

/* mongo_compares_text: does comparing values of the type depend on collations? */
static inline bool
mongo_compares_text(Oid typid)
{
	return mongo_type_kind(typid) == MONGO_KIND_TEXT;
}

/* mongo_has_normal_form: can functions and comparisons take values of the type? */
static inline bool
mongo_has_normal_form(Oid typid)
{
	return mongo_kind_of_type(typid)->normal_form != NULL;
}

/*
 * mongo_type_is_writable
 *		Does a value of this type have a BSON form to write?
 *
 * A composite type always does; one of its attributes may raise 0A000 later.
 */
extern bool mongo_type_is_writable(Oid typid);

/* ----------------------- From Datums to BSON values ----------------------- */

/*
 * mongo_append_datum
 *		Append 'value' of type 'typid' to 'document' under 'key'.
 *
 * int2, int4 -> Int32; int8 -> Int64; float4, float8 -> Double; numeric ->
 * Decimal128; text family -> String; bytea -> Binary subtype 0; uuid ->
 * Binary subtype 4; date, timestamp, timestamptz -> Date; json, jsonb ->
 * Document, Array or scalar (Extended JSON wrappers become their types);
 * arrays -> Array; composite types -> Document; the rest -> String in the type's
 * text form.  'isnull' appends a BSON null.
 *
 * The key is UTF-8; key_length may be -1.  Raises 22003 for a number beyond
 * Decimal128 (40 digits), 22008 for an infinite date, 22021 and 22P05 for text that
 * is not UTF-8 or does not become it, what mongo_append_json_members() raises for
 * JSON, 54000 when the document grows too large, and 0A000 for a type that has no
 * BSON form at all; 'document' is then unfinished and good for nothing.
 */
extern void mongo_append_datum(bson_t *document, const char *key, int key_length,
							   Datum value, bool isnull, Oid typid,
							   int32 typmod);

/*
 * What follows is for those who write values of one kind, in src/convert.
 */

/* Where a value is appended. */
typedef struct MongoWriteTarget
{
	bson_t	   *document;
	const char *key;
	int			key_length;
} MongoWriteTarget;

/*
 * The arguments of a MongoWriteFunction: it appends one non-null value.  Raises, as
 * mongo_append_datum() in convert.h has it, when the value has no BSON form.
 */
#define MONGO_WRITE_ARGS \
	const MongoWriteTarget *target, Datum value, \
	Oid typid pg_attribute_unused(), int32 typmod pg_attribute_unused()

/*-------------------------------------------------------------------------
 * Strings between the database's encoding and BSON's, which is UTF-8.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_to_utf8, mongo_from_utf8
 *		The name itself where nothing has to be changed, else a palloc'd copy.
 *		Raise 22P05 for a character that the other encoding lacks, and 22021 for
 *		bytes that are not UTF-8, which a database in SQL_ASCII may hold.
 */
static inline const char *
mongo_to_utf8(const char *name)
{
	return pg_server_to_any(name, (int) strlen(name), PG_UTF8);
}

static inline const char *
mongo_from_utf8(const char *name)
{
	return pg_any_to_server(name, (int) strlen(name), PG_UTF8);
}

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

/*
 * mongo_text_is_valid
 *		Are these bytes UTF-8 without U+0000, of characters that the
 *		database's encoding has, so that a text may hold them?
 *
 * Raises 42883 where PostgreSQL has no conversion from UTF-8 to that encoding.
 */
extern bool mongo_text_is_valid(const char *text, uint32 length);

/*
 * mongo_text_remark
 *		Why mongo_text_is_valid() is false: a sentence for DETAIL, static.
 */
extern const char *mongo_text_remark(const char *text, uint32 length);

/*
 * mongo_text_to_server
 *		Valid UTF-8 in the database's encoding.
 *
 * Gives 'text' itself where that is UTF-8, else a palloc'd copy; *length is
 * adjusted.  Only for what mongo_text_is_valid() has passed.
 */
extern const char *mongo_text_to_server(const char *text, uint32 *length);

/*
 * mongo_cut_text
 *		A palloc'd C string of at most 'limit' bytes of 'text', cut between
 *		characters, with "..." where something was cut off.
 */
extern char *mongo_cut_text(const char *text, int limit);

/*-------------------------------------------------------------------------
 * What reading a document carries along, and how a reader says that a value
 * does not fit.
 *-------------------------------------------------------------------------
 */

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

/*-------------------------------------------------------------------------
 * BSON as json, jsonb and text: Extended JSON v2.
 *
 * https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md
 *-------------------------------------------------------------------------
 */

/*
 * mongo_json_append_value
 *		Append the Extended JSON of the value at 'iter' to 'text', in UTF-8.
 *
 * With a 'limit' other than 0 it may end anywhere after so many bytes: enough
 * to show how a value begins, however deep or large it is.  Returns false,
 * noting a type mismatch in 'context', for strings that no text can hold; 'text' then
 * ends somewhere in the middle.  Raises as mongo_document_to_datum() does.
 */
extern bool mongo_json_append_value(MongoReadContext *context,
									const bson_iter_t *iter, StringInfo text,
									int limit);

/*
 * mongo_json_show_value, mongo_json_show_document
 *		Relaxed Extended JSON with blanks, as { "a" : [ 1, 2 ] }, for people to read:
 *		palloc'd, in the database's encoding.
 *
 * Of a value at most 'limit' bytes, with "..." where something was cut off; NULL for
 * strings that no text can hold.  A document is written whole; raises HV000 for such
 * strings.  Both raise as mongo_document_to_datum() does.
 */
extern char *mongo_json_show_value(const bson_iter_t *iter, int limit);
extern char *mongo_json_show_document(const bson_t *document);

/*
 * mongo_document_to_datum
 *		A whole document as json, jsonb or text (typid says which).
 *
 * varchar counts as text; the Datum is palloc'd.  Returns false, noting a type mismatch
 * in 'context', when a string in it fits no text.  Raises 08P01 for bytes that are
 * not BSON, 54001 for nesting beyond the stack's depth.
 */
extern bool mongo_document_to_datum(MongoReadContext *context,
									const uint8_t *data, uint32 length,
									Oid typid, Datum *value);

/* Read functions, see convert.h. */
extern MongoReadFunction mongo_read_json;
extern MongoReadFunction mongo_read_jsonb;

/*-------------------------------------------------------------------------
 * json, jsonb and text to BSON: Extended JSON v2.
 *
 * https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md
 *-------------------------------------------------------------------------
 */

/*
 * mongo_append_json_members
 *		Append the members of a json, jsonb or text value that is an object
 *		to 'document'; the order of the keys is kept (jsonb has its own).
 *
 * Extended JSON wrappers become their BSON types.  Raises 22P02 for a value that is
 * not an object, 54001 for nesting that no MongoDB server accepts, 22003 for a number
 * beyond Decimal128, and what mongo_walk_json() and mongo_write_wrapper() raise.
 */
extern void mongo_append_json_members(bson_t *document, Datum value, Oid typid);

/* A write function, see convert.h. */
extern MongoWriteFunction mongo_write_json;

/*-------------------------------------------------------------------------
 * The SQL type objectid: the twelve bytes of a BSON ObjectId, passed by
 * reference, without alignment.
 *-------------------------------------------------------------------------
 */

#define MONGO_OBJECTID_SIZE			12
#define MONGO_OBJECTID_TEXT_LENGTH	24

/*
 * mongo_objectid_to_text
 *		Write 24 lower-case hexadecimal digits and a NUL.
 */
extern void mongo_objectid_to_text(const uint8 *bytes, char *text);

/*
 * mongo_objectid_from_text
 *		Parse exactly 24 hexadecimal digits, lower case only when
 *		'canonical' is set; false when 'text' is not that.
 */
extern bool mongo_objectid_from_text(const char *text, size_t length,
									 bool canonical, bson_oid_t *oid);

/*
 * mongo_objectid_datum
 *		A palloc'd Datum of these twelve bytes.
 */
extern Datum mongo_objectid_datum(const uint8 *bytes);

/* The type's input function. */
extern PGDLLEXPORT Datum mongo_objectid_in(PG_FUNCTION_ARGS);

/*-------------------------------------------------------------------------
 * The OID of the SQL type objectid, which the extension's script creates, so
 * that it differs from database to database.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_objectid_type_oid
 *		The type's OID in this database; InvalidOid without the extension.
 *
 * The answer is remembered until pg_type changes.
 */
extern Oid	mongo_objectid_type_oid(void);

/*
 * mongo_is_objectid_type
 *		Is this the type?  Told by its input function, which takes no scan of
 *		pg_extension in a new session.
 */
extern bool mongo_is_objectid_type(Oid typid);

/*
 * mongo_objectid_opfamily
 *		The default B-tree operator family of the type, whose OID this is; InvalidOid
 *		where it is to be looked up as those of other types are.
 */
extern Oid	mongo_objectid_opfamily(Oid typid);

/* -------------------- How values of one type are read --------------------- */

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

#endif							/* MONGO_FDW_CONVERT_H */
