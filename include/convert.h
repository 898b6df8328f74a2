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

#include "access/transam.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "nodes/bitmapset.h"
#include "nodes/pg_list.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

/* --------- BSON's Date: milliseconds since 1970-01-01 00:00:00 UTC -------- */

/* A typmod that no timestamp has: append the value rounded up to milliseconds, not down. */
#define MONGO_TYPMOD_ROUND_UP	999

/* PostgreSQL's dates count from 2000-01-01. */
#define MONGO_MILLIS_PER_DAY	INT64CONST(86400000)
#define MONGO_EPOCH_DAYS		((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE))

/*
 * Converts a finite timestamp or timestamptz, rounded down.  Sets *exact (may be NULL) to whether
 * rounding lost nothing.
 */
static inline int64
mongo_timestamp_to_millis(Timestamp value, bool *exact)
{
	int64		rest = value % 1000;

	if (exact != NULL)
		*exact = rest == 0;
	return value / 1000 - (rest < 0 ? 1 : 0) + MONGO_EPOCH_DAYS * MONGO_MILLIS_PER_DAY;
}

/* Converts the midnight in UTC of a finite date. */
static inline int64
mongo_date_to_millis(DateADT value)
{
	return (value + MONGO_EPOCH_DAYS) * MONGO_MILLIS_PER_DAY;
}

/* ----------- BSON types (https://bsonspec.org), and sets of them ---------- */

/* The bit of a type in a set.  The codes of MinKey and MaxKey are 0xff and 0x7f. */
#define MONGO_BSON_BIT(code) \
	((code) <= 0x13 ? (uint32) 1 << (code) : \
	 (code) == BSON_TYPE_MAXKEY ? (uint32) 1 << 0x14 : (uint32) 1 << 0x15)

#define MONGO_BSON_ANY			(~(uint32) 0)
#define MONGO_BSON_NUMBERS \
	(MONGO_BSON_BIT(BSON_TYPE_INT32) | MONGO_BSON_BIT(BSON_TYPE_INT64) | \
	 MONGO_BSON_BIT(BSON_TYPE_DOUBLE) | MONGO_BSON_BIT(BSON_TYPE_DECIMAL128))

/*
 * Returns the BSON types that a column reads whose option bson_type restricts it to one of those
 * that its PostgreSQL type reads.  BSON_TYPE_EOD: the option is not given.  Symbols count as
 * Strings.
 */
static inline uint32
mongo_declared_set(bson_type_t declared)
{
	return declared == BSON_TYPE_EOD ? MONGO_BSON_ANY : MONGO_BSON_BIT(declared) |
		(declared == BSON_TYPE_UTF8 ? MONGO_BSON_BIT(BSON_TYPE_SYMBOL) : 0);
}

/*-------------------------------------------------------------------------
 * types.c
 *
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
	MongoTypeKind compared_as;	/* kinds with the same one can be compared */

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
	bool		type_decides_fit;	/* its BSON type alone decides if a value
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

/* Returns the base type of a domain, or the type itself.  No type of pg_type.dat is a domain. */
static inline Oid
mongo_base_type(Oid type)
{
	return type < FirstGenbkiObjectId ? type : getBaseType(type);
}

extern void mongo_append_datum(bson_t *document, const char *key, int key_length, Datum value,
							   bool isnull, Oid typid, int32 typmod);
extern int	mongo_array_elements(Datum value, Datum **values, bool **isnull);
extern const MongoType *mongo_type_facts(Oid typid);
extern bool mongo_types_compare(Oid left, Oid right);
extern const MongoType *mongo_type_lookup(Oid typid);
extern const char *mongo_bson_type_name(bson_type_t type);
extern List *mongo_bson_type_aliases(uint32 set);
extern void mongo_check_declared_type(const char *column_name, Oid typid, bson_type_t declared);
extern bool mongo_append_objectid(bson_t *document, const char *key, Datum value, Oid typid);
extern void mongo_append_declared(bson_t *document, const char *key, Datum value, Oid typid,
								  int32 typmod, bson_type_t declared);

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

/* Converts a value of an integer type (MONGO_KIND_INTEGER) to an int64. */
static inline int64
mongo_integer_of_datum(Oid typid, Datum value)
{
	return typid == INT4OID ? DatumGetInt32(value) :
		typid == INT2OID ? DatumGetInt16(value) : DatumGetInt64(value);
}

/* Converts an int64 to a value of this integer type, which it must fit. */
static inline Datum
mongo_datum_of_integer(Oid typid, int64 number)
{
	return typid == INT4OID ? Int32GetDatum((int32) number) :
		typid == INT2OID ? Int16GetDatum((int16) number) : Int64GetDatum(number);
}

/* Tells whether comparisons of this type depend on collations. */
static inline bool
mongo_compares_text(Oid typid)
{
	return mongo_type_kind(typid) == MONGO_KIND_TEXT;
}

/* Tells whether functions and comparisons of MongoDB can take values of this type. */
static inline bool
mongo_has_normal_form(Oid typid)
{
	return mongo_kind_of_type(typid)->normal_form != NULL;
}

/* ------------------------------- number.c -------------------------------- */

#define MONGO_DECIMAL128_MAX_DIGITS		34

extern bool mongo_numeric_to_decimal128(Numeric value, bson_decimal128_t *decimal);
extern bool mongo_numeric_typmod(int32 typmod, int *precision, int *scale);

/* ------------------------------ objectid.c ------------------------------- */

#define MONGO_OBJECTID_TEXT_LENGTH	24

extern bool mongo_objectid_from_text(const char *text, size_t length, bool canonical,
									 bson_oid_t *oid);
extern Oid	mongo_objectid_type_oid(void);
extern Oid	mongo_objectid_opfamily(void);
extern bool mongo_objectid_of_text(const text *value, bson_oid_t *oid);

/* ---------------------------- decode_value.c ----------------------------- */

extern uint64 mongo_token_time(const char *data);
extern void mongo_append_token(bson_t *document, const char *key, const char *text);

/*
 * Returns the name in UTF-8: itself if no byte changes, else a palloc'd copy.  Raises 22P05 for a
 * character that the other encoding lacks, and 22021 for bytes that are not UTF-8, which a
 * database in SQL_ASCII may contain.
 */
static inline const char *
mongo_to_utf8(const char *name)
{
	return pg_server_to_any(name, (int) strlen(name), PG_UTF8);
}

/* Returns a name in UTF-8 in the database's encoding, with the same errors. */
static inline const char *
mongo_from_utf8(const char *name)
{
	return pg_any_to_server(name, (int) strlen(name), PG_UTF8);
}

/* Tells whether a text of this database has a form in UTF-8.  Not all bytes of SQL_ASCII have. */
static inline bool
mongo_has_utf8(const char *text, int length)
{
	return GetDatabaseEncoding() != PG_SQL_ASCII || pg_verify_mbstr(PG_UTF8, text, length, true);
}

/* ---------------------------- bson_to_json.c ----------------------------- */

extern char *mongo_json_show_value(const bson_iter_t *iter, bool spaced, int limit);
extern char *mongo_json_show_document(const bson_t *document);

/* ---------------------------- json_to_bson.c ----------------------------- */

extern void mongo_append_json_members(bson_t *document, Datum value, Oid typid);

/* ------------------------------- decode.c -------------------------------- */

/*
 * A column to fill, and the location of its field.
 *
 * Plans store it (src/plan/path.c): from 'index' to 'zero_if_empty' there must be only numbers.
 */
typedef struct MongoColumn
{
	const char *name;			/* the column's name, for messages */
	const char *path;			/* dotted path into the document, in UTF-8;
								 * "__doc" and "__mismatch": NULL */
	const char *collection;		/* collection of the document that contains
								 * the field; NULL: the decoder's */
	const char *prefix;			/* path of this document within the one that
								 * MongoDB returns; NULL: it is that one */
	const char *field;			/* a group's value: the field that messages
								 * name; NULL if the row is a document */
	int			index;			/* into values[] and isnull[], from 0 */
	Oid			typid;
	int32		typmod;
	int			count;			/* for an average, which is read as a sum:
								 * index of the count, after the tuple's
								 * attributes; else 0 */
	bson_type_t bson_type;		/* option bson_type */
	MongoTypeMismatch type_mismatch;
	bool		of_token;		/* a text made of a change stream's resume
								 * token; the column's name selects which */
	bool		zero_if_empty;	/* a group's: 0, not NULL, over no rows */
} MongoColumn;

/* Built once per scan, used for every document. */
typedef struct MongoRowDecoder MongoRowDecoder;

/* Errors that are deferred: the decoder reads NULL instead of raising them. */
typedef enum MongoDeferral
{
	MONGO_DEFER_NOTHING,
	MONGO_DEFER_MISMATCHES,		/* of fields that do not fit */
	MONGO_DEFER_ERRORS			/* also calls of input functions of types
								 * without a row in types.c, and checks of
								 * domains' constraints (the value is read) */
} MongoDeferral;

extern MongoRowDecoder *mongo_row_decoder_create(MemoryContext context, const char *database,
												 const char *collection, const List *columns,
												 bool canonical_json);
extern void mongo_row_decoder_defer_errors(MongoRowDecoder *decoder, MongoDeferral what,
										   const Bitmapset *needed);
extern bool mongo_row_decoder_deferred(const MongoRowDecoder *decoder);
extern bool mongo_row_decoder_skipped(const MongoRowDecoder *decoder);
extern const Bitmapset *mongo_row_decoder_mismatches(const MongoRowDecoder *decoder);
extern void mongo_row_decode(MongoRowDecoder *decoder, const uint8_t *data, uint32 length,
							 Datum *values, bool *isnull);

/* ------------------------------- reader.c -------------------------------- */

extern bool mongo_text_is_valid(const char *text, uint32 length);
extern char *mongo_cut_text(const char *text, int limit);
pg_noreturn extern void mongo_report_bad_bson(void);
extern bool mongo_iter_is_at_end(const bson_iter_t *iter, uint32 length);
extern uint32 mongo_iter_descend(const bson_iter_t *iter, bson_iter_t *child);

#endif							/* MONGO_FDW_CONVERT_H */
