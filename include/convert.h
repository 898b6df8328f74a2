/*-------------------------------------------------------------------------
 *
 * convert.h
 *		Conversions between BSON, Datums and JSON.
 *
 * Strings in BSON are UTF-8.  Bytes that a server sent are not trusted: each function
 * that reads them raises 08P01 if they are not valid BSON.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CONVERT_H
#define MONGO_FDW_CONVERT_H

#include "common.h"
#include "options.h"

#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"
#include "utils/date.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

/* --------- BSON's Date: milliseconds since 1970-01-01 00:00:00 UTC -------- */

/* A typmod that no timestamp has: append the value rounded up to milliseconds, not down. */
#define MONGO_TYPMOD_ROUND_UP	999

/* PostgreSQL's dates count from 2000-01-01. */
#define MONGO_MILLIS_PER_DAY	INT64CONST(86400000)
#define MONGO_EPOCH_DAYS		((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE))

/*
 * mongo_timestamp_to_millis, mongo_date_to_millis
 *		Convert a finite timestamp or timestamptz, rounded down, or the midnight in UTC
 *		of a date.  Sets *exact (may be NULL) to whether rounding lost nothing.
 */
static inline int64
mongo_timestamp_to_millis(Timestamp value, bool *exact)
{
	int64		rest = value % 1000;

	if (exact != NULL)
		*exact = rest == 0;
	return value / 1000 - (rest < 0 ? 1 : 0) + MONGO_EPOCH_DAYS * MONGO_MILLIS_PER_DAY;
}

static inline int64
mongo_date_to_millis(DateADT value)
{
	return (value + MONGO_EPOCH_DAYS) * MONGO_MILLIS_PER_DAY;
}

/* ------- BSON types (https://bsonspec.org): sets of types, and names ------- */

/* The bit of a type in a set.  The codes of MinKey and MaxKey are 0xff and 0x7f. */
#define MONGO_BSON_BIT(code) \
	((code) <= 0x13 ? (uint32) 1 << (code) : \
	 (code) == BSON_TYPE_MAXKEY ? (uint32) 1 << 0x14 : (uint32) 1 << 0x15)

#define MONGO_BSON_ANY			(~(uint32) 0)
#define MONGO_BSON_NUMBERS \
	(MONGO_BSON_BIT(BSON_TYPE_INT32) | MONGO_BSON_BIT(BSON_TYPE_INT64) | \
	 MONGO_BSON_BIT(BSON_TYPE_DOUBLE) | MONGO_BSON_BIT(BSON_TYPE_DECIMAL128))

/* mongo_bson_type_name: the specification's name, such as "Int32"; a static string. */
extern const char *mongo_bson_type_name(bson_type_t type);

/* mongo_bson_type_aliases: the names of a set's types for $type, "objectId"; static strings. */
extern List *mongo_bson_type_aliases(uint32 set);

/* --------- Iterating over documents, which may not be valid BSON ----------- */

extern bool mongo_iter_is_at_end(const bson_iter_t *iter, uint32 length);

/* mongo_iter_descend: set 'child' to enter the document or array at 'iter'; its length. */
extern uint32 mongo_iter_descend(const bson_iter_t *iter, bson_iter_t *child);

/* mongo_report_bad_bson: raise 08P01, "not valid BSON". */
pg_noreturn extern void mongo_report_bad_bson(void);

/* --------------------------------- Decimals -------------------------------- */

#define MONGO_DECIMAL128_MAX_DIGITS		34

/*
 * mongo_numeric_to_decimal128
 *		Convert a numeric, also NaN and infinities, to the same number.  Keeps as much of
 *		its scale as fits into 34 digits.  Returns false for more significant digits, or
 *		an exponent out of range.
 */
extern bool mongo_numeric_to_decimal128(Numeric value, bson_decimal128_t *decimal);

/* mongo_numeric_typmod: precision and scale of a typmod; false if it has none. */
extern bool mongo_numeric_typmod(int32 typmod, int *precision, int *scale);

/*-------------------------------------------------------------------------
 * The column option bson_type restricts a column to reading and writing one of the
 * BSON types that its PostgreSQL type reads.  BSON_TYPE_EOD: the option is not given.
 *-------------------------------------------------------------------------
 */

/* mongo_declared_set: BSON types that a column with this option reads: Symbols as Strings. */
static inline uint32
mongo_declared_set(bson_type_t declared)
{
	return declared == BSON_TYPE_EOD ? MONGO_BSON_ANY : MONGO_BSON_BIT(declared) |
		(declared == BSON_TYPE_UTF8 ? MONGO_BSON_BIT(BSON_TYPE_SYMBOL) : 0);
}

/*
 * mongo_check_declared_type
 *		Raise 42804 if a column of this type, or of a domain over it, cannot have this
 *		BSON type as option bson_type.
 */
extern void mongo_check_declared_type(const char *column_name, Oid typid,
									  bson_type_t declared);

/*
 * mongo_append_declared
 *		Append a value that is not NULL as the BSON type that option bson_type names, such
 *		that the column reads the same value back.
 *
 * Raises 22P02 for a text that is not an ObjectId, 22003 for a number that does not fit
 * the BSON type, and what mongo_append_datum() raises.
 */
extern void mongo_append_declared(bson_t *document, const char *key, Datum value,
								  Oid typid, int32 typmod, bson_type_t declared);

/*
 * mongo_append_objectid
 *		Append a string or bytea as an ObjectId; return false if it does not represent one.
 */
extern bool mongo_append_objectid(bson_t *document, const char *key, Datum value, Oid typid);

/* --------------- From BSON bytes to Datums in a tuple slot ---------------- */

/* A column to fill, and the location of its field. */
typedef struct MongoColumn
{
	int			index;			/* into values[] and isnull[], from 0 */
	const char *name;			/* the column's name, for messages */
	const char *path;			/* dotted path into the document, in UTF-8;
								 * "__doc" and "__mismatch": NULL */
	const char *collection;		/* collection of the document that contains
								 * the field; NULL: the decoder's */
	const char *prefix;			/* path of this document within the one that
								 * MongoDB returns; NULL: it is that one */
	const char *field;			/* a group's value: the field that messages
								 * name; NULL if the row is a document */
	Oid			typid;
	int32		typmod;
	bson_type_t bson_type;		/* option bson_type */
	MongoTypeMismatch type_mismatch;
	bool		of_token;		/* a text made of a change stream's resume
								 * token; the column's name says which */
} MongoColumn;

/* Built once per scan, used for every document. */
typedef struct MongoRowDecoder MongoRowDecoder;

/*
 * mongo_row_decoder_create
 *		Prepare to read columns from documents of a collection.
 *
 * Allocates the decoder, and copies of the names, in 'context'.  Two columns may share a
 * path, and one path may contain another ("a" and "a.b").  Raises 0A000 for a type that
 * has no BSON form, for a "__doc" column that is not jsonb, json, text or varchar, and for a
 * "__mismatch" column that is not jsonb.  Also raises what mongo_check_declared_type() does.
 */
extern MongoRowDecoder *mongo_row_decoder_create(MemoryContext context,
												 const char *database,
												 const char *collection,
												 const MongoColumn *columns,
												 int ncolumns,
												 bool canonical_json);

/*
 * mongo_row_decode
 *		Read one document into values[] and isnull[] at each column's index.
 *
 * 'data' need not be aligned, and no Datum points into it: by-reference values are
 * palloc'd in the current memory context.  A field that is missing, null or undefined
 * gives NULL.  If a key is repeated, its first value counts, as in MongoDB's filters.
 *
 * A field that does not fit its column raises the SQLSTATE of its MongoMismatch, or gives
 * NULL unless its type_mismatch is 'error'.  The column "__mismatch" shows those fields of
 * type_mismatch 'null'.  Nesting beyond the stack's depth raises 54001.  A type without a row
 * of its own in types.c raises the errors of its input function.
 */
extern void mongo_row_decode(MongoRowDecoder *decoder, const uint8_t *data,
							 uint32 length, Datum *values, bool *isnull);

/* Errors that are deferred: the decoder reads NULL instead of raising them. */
typedef enum MongoDeferral
{
	MONGO_DEFER_NOTHING,
	MONGO_DEFER_MISMATCHES,		/* of fields that do not fit */
	MONGO_DEFER_ERRORS			/* also calls of input functions of types
								 * without a row in types.c, and checks of
								 * domains' constraints (the value is read) */
} MongoDeferral;

/*
 * mongo_row_decoder_defer_errors
 *		Defer these errors in all documents that are decoded from now on.
 *
 * Columns whose index is in 'needed', which must live as long as the decoder, are always read.
 * Under type_mismatch 'null' their constraints are also checked, as a value that violates one
 * reads as NULL.
 *
 * mongo_row_decoder_mismatches() returns the indexes of the columns of the last document
 * that did not fit, NULL if all did; the set belongs to the decoder.
 * mongo_row_decoder_deferred() returns whether anything else was deferred.
 * mongo_row_decoder_skipped() returns whether the last document did not fit a column of
 * type_mismatch 'skip'.
 */
extern void mongo_row_decoder_defer_errors(MongoRowDecoder *decoder, MongoDeferral what,
										   const Bitmapset *needed);
extern const Bitmapset *mongo_row_decoder_mismatches(const MongoRowDecoder *decoder);
extern bool mongo_row_decoder_deferred(const MongoRowDecoder *decoder);
extern bool mongo_row_decoder_skipped(const MongoRowDecoder *decoder);

/*-------------------------------------------------------------------------
 * The table of types specifies which BSON values a PostgreSQL type reads, how its
 * values are written, and what MongoDB can compute with them.
 *
 * Code that depends on a type looks it up here, or has a table of its own by
 * MongoTypeKind.  docs/types.md describes the table.
 *-------------------------------------------------------------------------
 */

/* A group of types that MongoDB treats alike; its properties are a row of mongo_kinds. */
typedef enum MongoTypeKind
{
	MONGO_KIND_OTHER,			/* types that only PostgreSQL compares */
	MONGO_KIND_INTEGER,
	MONGO_KIND_REAL,
	MONGO_KIND_DOUBLE,
	MONGO_KIND_NUMERIC,
	MONGO_KIND_TEXT,			/* not char(n), which ignores trailing blanks */
	MONGO_KIND_BOOLEAN,
	MONGO_KIND_UUID,
	MONGO_KIND_DATE,
	MONGO_KIND_TIMESTAMP,
	MONGO_KIND_TIMESTAMPTZ,
	MONGO_KIND_OBJECTID,
	MONGO_KIND_JSON,			/* compared as the text that ->> returns */
	MONGO_KIND_JSONB
} MongoTypeKind;

typedef struct MongoKind
{
	MongoTypeKind class;		/* kinds of one class can be compared */

	/*
	 * Template that converts a field to the one form in which aggregation
	 * expressions take it (expression.c).  "" if all values that are read
	 * have that form, NULL if there is no such form.
	 */
	const char *normal_form;
	bool		has_nan;
	bool		compares_raw;	/* MongoDB compares values of all BSON types
								 * that are read as PostgreSQL does */
	bool		is_key;			/* two fields are equal in MongoDB if and only
								 * if the values read are equal; a text may
								 * also be an ObjectId */
	bool		is_told_by_type;	/* its BSON type alone decides if a value
									 * fits, and its size if the type has a
									 * limit */
} MongoKind;

extern const MongoKind mongo_kinds[];

/* See convert_internal.h. */
struct MongoReader;
struct MongoReadContext;
struct MongoWriteTarget;

typedef bool MongoReadFunction (const struct MongoReader *reader,
								struct MongoReadContext *context,
								const bson_iter_t *iter, Datum *value);
typedef void MongoPrepareFunction (struct MongoReader *reader);
typedef void MongoWriteFunction (const struct MongoWriteTarget *target, Datum value,
								 Oid typid, int32 typmod);

/* A row of the table: a type, or a category of types. */
typedef struct MongoType
{
	Oid			typid;			/* InvalidOid for a category of types */
	const char *name;			/* as in docs/types.md */
	MongoTypeKind kind;
	uint32		accepts;		/* set of MONGO_BSON_BIT */
	uint32		declares;		/* subset that option bson_type may name */
	MongoReadFunction *read;	/* NULL, as is 'write': no BSON form */
	MongoWriteFunction *write;
	MongoPrepareFunction *prepare;	/* for reading; may be NULL */
	int64		limit;			/* greatest integer, or most bytes of a text;
								 * 0: no limit of its own */
	bool		is_kept;		/* each value is read as it was before it was
								 * written */
} MongoType;

/*
 * mongo_type_lookup
 *		Return the row of a type, or else of its category, which takes catalog look-ups;
 *		NULL if the type can be neither read nor written.  An attribute of a composite
 *		type may still raise 0A000 later.
 */
extern const MongoType *mongo_type_lookup(Oid typid);

/*
 * mongo_type_facts
 *		Return what MongoDB can compute with a type: the type's own row, or else one of
 *		kind MONGO_KIND_OTHER, also for domains.  Never NULL.
 *
 * Needs no catalog look-up except for the type objectid.
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
 *		Convert a value of an integer type (MONGO_KIND_INTEGER) to an int64, and back.
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

/* mongo_types_compare: can MongoDB compare values of these types?  False for domains. */
extern bool mongo_types_compare(Oid left, Oid right);

/* mongo_compares_text: do comparisons of this type depend on collations? */
static inline bool
mongo_compares_text(Oid typid)
{
	return mongo_type_kind(typid) == MONGO_KIND_TEXT;
}

/* mongo_has_normal_form: can functions and comparisons take values of this type? */
static inline bool
mongo_has_normal_form(Oid typid)
{
	return mongo_kind_of_type(typid)->normal_form != NULL;
}

/* ----------------------- From Datums to BSON values ----------------------- */

/*
 * mongo_array_elements
 *		Set *values and *isnull to the elements of an array of any number of dimensions,
 *		palloc'd; return how many there are.
 */
extern int	mongo_array_elements(Datum value, Datum **values, bool **isnull);

/*
 * mongo_append_datum
 *		Append a value as its type's row in types.c specifies, or a BSON null.
 *
 * key_length may be -1.  Raises 22003 for a number out of Decimal128's range, 22008 for
 * an infinite date, 22021 and 22P05 for text that is not UTF-8 or cannot be converted to
 * it, what mongo_append_json_members() raises for JSON, 54000 if the document becomes too
 * large, and 0A000 for a type that has no BSON form.  After an error 'document' is
 * unusable.
 */
extern void mongo_append_datum(bson_t *document, const char *key, int key_length,
							   Datum value, bool isnull, Oid typid,
							   int32 typmod);


/* ------ Conversions of strings between the database's encoding and UTF-8 --- */

/*
 * mongo_to_utf8, mongo_from_utf8
 *		Return the name itself if no byte changes, else a palloc'd copy.  Raise 22P05 for a
 *		character that the other encoding lacks, and 22021 for bytes that are not UTF-8,
 *		which a database in SQL_ASCII may contain.
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

/* mongo_has_utf8: has a text of this database a form in UTF-8?  Not all bytes of SQL_ASCII have. */
static inline bool
mongo_has_utf8(const char *text, int length)
{
	return GetDatabaseEncoding() != PG_SQL_ASCII || pg_verify_mbstr(PG_UTF8, text, length, true);
}

/*
 * mongo_text_is_valid
 *		Can a text store these bytes: UTF-8 without U+0000, whose characters the database's
 *		encoding can represent?
 */
extern bool mongo_text_is_valid(const char *text, uint32 length);

/*
 * mongo_cut_text
 *		Return a palloc'd copy, truncated after at most 'limit' bytes and a whole character;
 *		"..." follows if it was truncated.
 */
extern char *mongo_cut_text(const char *text, int limit);

/* -------- JSON in the format of MongoDB's Extended JSON v2 specification --- */

/*
 * mongo_json_show_value
 *		Return a value as relaxed Extended JSON, palloc'd, in the database's encoding; NULL
 *		if it contains a string that a text cannot store.
 *
 * With 'spaced' it has blanks for human readers: { "a" : [ 1, 2 ] }.  A 'limit' other than
 * 0 truncates it as mongo_cut_text() does.  Raises 54001 for nesting beyond the stack's
 * depth.
 */
extern char *mongo_json_show_value(const bson_iter_t *iter, bool spaced, int limit);

/* mongo_json_show_document: a whole document, spaced; raises HV000 instead of NULL. */
extern char *mongo_json_show_document(const bson_t *document);

/*
 * mongo_append_json_members
 *		Append the members of a JSON object, given as json, jsonb or text, in their order.
 *
 * Wrappers, such as {"$oid": ...}, become their BSON types.  Raises 22P02 for invalid JSON,
 * JSON that is not an object, and a malformed wrapper, 22P05 for \u0000 and for an escape
 * that the database's encoding cannot represent, 54001 for nesting that no MongoDB server
 * accepts, and 22003 for a number out of Decimal128's range.
 */
extern void mongo_append_json_members(bson_t *document, Datum value, Oid typid);

/* ---- The SQL type objectid: twelve bytes, by reference, without alignment -- */

#define MONGO_OBJECTID_TEXT_LENGTH	24

/*
 * mongo_objectid_from_text
 *		Parse exactly 24 hexadecimal digits, only in lower case if 'canonical' is set;
 *		return false for any other text.
 */
extern bool mongo_objectid_from_text(const char *text, size_t length,
									 bool canonical, bson_oid_t *oid);

/* mongo_objectid_of_text: the same of a detoasted text, in either case. */
extern bool mongo_objectid_of_text(const text *value, bson_oid_t *oid);

/* mongo_objectid_type_oid: in this database; InvalidOid if the extension is missing. */
extern Oid	mongo_objectid_type_oid(void);

/*
 * mongo_objectid_opfamily
 *		Return the default B-tree operator family of objectid, without a scan of
 *		pg_opclass.  To be called after mongo_type_kind() has recognized the type.
 */
extern Oid	mongo_objectid_opfamily(void);

/* -------------------- Resume tokens of change streams --------------------- */

/*
 * mongo_token_time
 *		Returns the time in the text _data of a resume token, seconds << 32 | number within the
 *		second: it follows the byte 0x82.  0: there is none.
 *
 * mongo_append_token
 *		Appends the token of a text that a column __token has returned.
 */
extern uint64 mongo_token_time(const char *data);
extern void mongo_append_token(bson_t *document, const char *key, const char *text);

#endif							/* MONGO_FDW_CONVERT_H */
