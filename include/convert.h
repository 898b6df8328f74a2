/*-------------------------------------------------------------------------
 *
 * convert.h
 *		Values and documents: BSON to Datum, Datum to BSON, JSON.
 *
 * Texts of BSON are UTF-8.  Bytes that a server sent may be anything: where they
 * are not BSON, each function that goes through them raises 08P01.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CONVERT_H
#define MONGO_FDW_CONVERT_H

#include "compat.h"
#include "options.h"

#include "catalog/pg_type_d.h"
#include "fmgr.h"
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
 * mongo_timestamp_to_millis, mongo_date_to_millis
 *		Of a finite timestamp or timestamptz, rounded down, or of a date's midnight in
 *		UTC.  *exact (may be NULL): was nothing cut?
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

/* ------- BSON's types (https://bsonspec.org): sets of them, and names ------ */

/* A type as a bit of a set.  MinKey and MaxKey have codes at the ends of a byte. */
#define MONGO_BSON_BIT(code) \
	((code) <= 0x13 ? (uint32) 1 << (code) : \
	 (code) == BSON_TYPE_MAXKEY ? (uint32) 1 << 0x14 : (uint32) 1 << 0x15)

#define MONGO_BSON_ANY			(~(uint32) 0)
#define MONGO_BSON_NUMBERS \
	(MONGO_BSON_BIT(BSON_TYPE_INT32) | MONGO_BSON_BIT(BSON_TYPE_INT64) | \
	 MONGO_BSON_BIT(BSON_TYPE_DOUBLE) | MONGO_BSON_BIT(BSON_TYPE_DECIMAL128))

/* mongo_bson_type_name: "Int32", "ObjectId", as the specification has it; static. */
extern const char *mongo_bson_type_name(bson_type_t type);

/* mongo_bson_type_aliases: what $type calls the types of a set, "objectId"; static C strings. */
extern List *mongo_bson_type_aliases(uint32 set);

/* ----------- Going through documents, whose bytes may be anything ---------- */

/*
 * mongo_iter_check_end
 *		bson_iter_next() gave false: raise unless that was the end of the document, which
 *		has this length.
 */
extern void mongo_iter_check_end(const bson_iter_t *iter, uint32 length);

/* mongo_iter_descend: into the document or array at 'iter', whose length is returned. */
extern uint32 mongo_iter_descend(const bson_iter_t *iter, bson_iter_t *child);

/* mongo_report_bad_bson: raise 08P01. */
pg_noreturn extern void mongo_report_bad_bson(void);

/* --------------------------------- Decimals -------------------------------- */

#define MONGO_DECIMAL128_MAX_DIGITS		34

/*
 * mongo_numeric_to_decimal128
 *		The same number, with as much of its scale as there is room for; NaN and infinities
 *		too.  False for more than 34 digits, or beyond the exponents' range.
 */
extern bool mongo_numeric_to_decimal128(Numeric value, bson_decimal128_t *decimal);

/* mongo_numeric_typmod: of numeric(precision, scale); false for one without them. */
extern bool mongo_numeric_typmod(int32 typmod, int *precision, int *scale);

/*-------------------------------------------------------------------------
 * The column option bson_type: the one BSON type that a column reads and writes,
 * of those that its PostgreSQL type reads.  BSON_TYPE_EOD: it is not given.
 *-------------------------------------------------------------------------
 */

/* mongo_declared_set: what a column so declared reads; MongoDB takes Symbols for Strings. */
static inline uint32
mongo_declared_set(bson_type_t declared)
{
	return declared == BSON_TYPE_EOD ? MONGO_BSON_ANY : MONGO_BSON_BIT(declared) |
		(declared == BSON_TYPE_UTF8 ? MONGO_BSON_BIT(BSON_TYPE_SYMBOL) : 0);
}

/*
 * mongo_check_declared_type
 *		Raise 42804 for what a column of this type, or of a domain over it, cannot be
 *		declared as.
 */
extern void mongo_check_declared_type(const char *column_name, Oid typid,
									  bson_type_t declared);

/*
 * mongo_append_declared
 *		Append a value that is not NULL as one of the declared type, from which the
 *		column would read this very value.
 *
 * Raises 22P02 for a text that is no ObjectId, 22003 for a number that the BSON type
 * does not hold, and what mongo_append_datum() raises.
 */
extern void mongo_append_declared(bson_t *document, const char *key, Datum value,
								  Oid typid, int32 typmod, bson_type_t declared);

/*
 * mongo_append_objectid
 *		Append an ObjectId if that is what a value of a type of texts, or a bytea, is.
 */
extern bool mongo_append_objectid(bson_t *document, const char *key, Datum value, Oid typid);

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
	bson_type_t bson_type;		/* option bson_type */
} MongoColumn;

/* Built once a scan, used for every document. */
typedef struct MongoRowDecoder MongoRowDecoder;

/*
 * mongo_row_decoder_create
 *		Prepare to read columns from documents of a collection.
 *
 * The decoder lives in 'context', with copies of the names.  Two columns may share a
 * path, and one may be the parent of another ("a" and "a.b").  Raises 0A000 for a type
 * that has no BSON form and for a "__doc" column that is not jsonb, json or text, and
 * what mongo_check_declared_type() raises.
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
 * 'data' need not be aligned, and no Datum points into it: by-reference ones are
 * palloc'd in the current memory context.  A field that is missing, null or undefined
 * gives NULL.  Of a repeated key the first counts, as for MongoDB's own matching.
 *
 * A field that does not fit its column raises, with the SQLSTATE of its MongoMismatch,
 * or gives NULL under MONGO_TYPE_MISMATCH_NULL.  Nesting beyond the stack's depth raises
 * 54001, and a type without a row of its own in types.c what its input function says.
 */
extern void mongo_row_decode(MongoRowDecoder *decoder, const uint8_t *data,
							 uint32 length, Datum *values, bool *isnull);

/* What is not raised for the moment: fields are NULL instead. */
typedef enum MongoDeferral
{
	MONGO_DEFER_NOTHING,
	MONGO_DEFER_MISMATCHES,		/* of fields that do not fit */
	MONGO_DEFER_ERRORS			/* also what may raise errors of its own:
								 * CHECK constraints of domains (the value is
								 * there), and input functions of types
								 * without a row in types.c */
} MongoDeferral;

/*
 * mongo_row_decoder_defer_errors
 *		Do so from now on.
 *
 * mongo_row_decoder_mismatches() gives then the indexes of the columns of the last
 * document that did not fit, NULL when all did; it is the decoder's.
 * mongo_row_decoder_deferred() tells whether there was anything else.  The columns
 * (indexes) in 'needed', which must live as long as the decoder, are read nevertheless;
 * under type_mismatch 'null' their constraints are tested too, since what breaks one is
 * NULL.
 */
extern void mongo_row_decoder_defer_errors(MongoRowDecoder *decoder, MongoDeferral what,
										   const Bitmapset *needed);
extern const Bitmapset *mongo_row_decoder_mismatches(const MongoRowDecoder *decoder);
extern bool mongo_row_decoder_deferred(const MongoRowDecoder *decoder);

/*-------------------------------------------------------------------------
 * The table of types: which BSON values a PostgreSQL type reads, how its
 * values are written, and what MongoDB may be asked about them.
 *
 * Whatever else depends on a type asks this table, or has a table of its own by
 * MongoTypeKind.  docs/types.md says the same in prose.
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

/* A type's row in the table. */
typedef struct MongoType
{
	Oid			typid;			/* InvalidOid for a category of types */
	const char *name;			/* as in docs/types.md */
	MongoTypeKind kind;
	uint32		accepts;		/* set of MONGO_BSON_BIT */
	uint32		declares;		/* those of it that option bson_type may name */
	MongoReadFunction *read;	/* NULL, as is 'write': has no BSON form */
	MongoWriteFunction *write;
	MongoPrepareFunction *prepare;	/* for reading; may be NULL */
	int64		limit;			/* the greatest integer, or most bytes of a
								 * text; 0: those of its class */
} MongoType;

/*
 * mongo_type_lookup
 *		The row for a type: its own, or that of its category, for which it looks in the
 *		catalogs; NULL when it can be neither read nor written.  An attribute of a
 *		composite type may still raise 0A000 later.
 */
extern const MongoType *mongo_type_lookup(Oid typid);

/*
 * mongo_type_facts
 *		What MongoDB may be asked about a type: its own row, or one of kind
 *		MONGO_KIND_OTHER, which domains have, too.  Never NULL.
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

/* mongo_types_compare: do values of the two stand in one order?  Not those of domains. */
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

/* ----------------------- From Datums to BSON values ----------------------- */

/*
 * mongo_array_elements
 *		The elements of an array, through all its dimensions; returns their number.
 */
extern int	mongo_array_elements(Datum value, Datum **values, bool **isnull);

/*
 * mongo_append_datum
 *		Append a value, or a BSON null, as its type's row in types.c has it.
 *
 * key_length may be -1.  Raises 22003 for a number beyond Decimal128, 22008 for an
 * infinite date, 22021 and 22P05 for text that is not UTF-8 or does not become it, what
 * mongo_append_json_members() raises for JSON, 54000 when the document grows too large,
 * and 0A000 for a type that has no BSON form; 'document' is then good for nothing.
 */
extern void mongo_append_datum(bson_t *document, const char *key, int key_length,
							   Datum value, bool isnull, Oid typid,
							   int32 typmod);

/* ----- Strings between the database's encoding and BSON's, which is UTF-8 -- */

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
 * mongo_text_is_valid
 *		Are these bytes UTF-8 without U+0000, of characters that the database's encoding
 *		has, so that a text may hold them?
 */
extern bool mongo_text_is_valid(const char *text, uint32 length);

/*
 * mongo_cut_text
 *		At most 'limit' bytes, cut between characters, with "..." where something was cut
 *		off; palloc'd.
 */
extern char *mongo_cut_text(const char *text, int limit);

/* ---- JSON, in the form of MongoDB's specification Extended JSON v2 -------- */

/*
 * mongo_json_show_value
 *		Relaxed Extended JSON, palloc'd, in the database's encoding; NULL for strings that
 *		no text can hold.
 *
 * With 'spaced' as people read it: { "a" : [ 1, 2 ] }.  With a 'limit' other than 0 at
 * most so many bytes, and "..." where something was cut off.  Raises 54001 for nesting
 * beyond the stack's depth.
 */
extern char *mongo_json_show_value(const bson_iter_t *iter, bool spaced, int limit);

/* mongo_json_show_document: a whole one, spaced; raises HV000 for such strings. */
extern char *mongo_json_show_document(const bson_t *document);

/*
 * mongo_append_json_members
 *		Append the members of a json, jsonb or text value that is an object, in the order
 *		that it has them.
 *
 * Wrappers, such as {"$oid": ...}, become their BSON types.  Raises 22P02 for what is no
 * JSON or no object and for a malformed wrapper, 22P05 for \u0000 and for an escape that
 * its encoding has no character for, 54001 for nesting that no MongoDB server accepts,
 * and 22003 for a number beyond Decimal128.
 */
extern void mongo_append_json_members(bson_t *document, Datum value, Oid typid);

/* ---- The SQL type objectid: twelve bytes, by reference, without alignment -- */

#define MONGO_OBJECTID_TEXT_LENGTH	24

/*
 * mongo_objectid_from_text
 *		Parse exactly 24 hexadecimal digits, lower case only when 'canonical' is set;
 *		false when 'text' is not that.
 */
extern bool mongo_objectid_from_text(const char *text, size_t length,
									 bool canonical, bson_oid_t *oid);

/* mongo_objectid_type_oid: in this database; InvalidOid without the extension. */
extern Oid	mongo_objectid_type_oid(void);

/*
 * mongo_objectid_opfamily
 *		Its default B-tree operator family, without a scan of pg_opclass, after
 *		mongo_type_kind() has told the type.
 */
extern Oid	mongo_objectid_opfamily(void);

#endif							/* MONGO_FDW_CONVERT_H */
