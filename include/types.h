/*-------------------------------------------------------------------------
 *
 * types.h
 *		The table of types: which BSON values a PostgreSQL type reads, how its
 *		values are written, and what MongoDB may be asked about them.
 *
 * Whatever else depends on the type of a column or value asks this table, or has
 * a table of its own by MongoTypeKind.  docs/types.md says the same in prose.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TYPES_H
#define MONGO_FDW_TYPES_H

#include "compat.h"

#include "bson_types.h"

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
	 * (expression_forms.c); "" where every value that is read is in it, NULL
	 * where there is none.
	 */
	const char *normal_form;
	bool		has_nan;
	bool		compares_raw;	/* MongoDB compares values as PostgreSQL does in
								 * every BSON type that is read */
	bool		is_key;			/* two fields are equal in MongoDB if and only if
								 * what is read is; but a text may be an ObjectId */
	bool		is_told_by_type;	/* whether a value fits, its BSON type says, and
									 * its size where the type has a limit */
} MongoKind;

extern const MongoKind mongo_kinds[];

/* Why a BSON value does not fit a PostgreSQL type; decides the SQLSTATE. */
typedef enum MongoMismatch
{
	MONGO_MISMATCH_TYPE,			/* a BSON type the column does not read: 22P02 */
	MONGO_MISMATCH_RANGE,			/* a number out of range or inexact: 22003 */
	MONGO_MISMATCH_DATETIME,		/* a date out of range: 22008 */
	MONGO_MISMATCH_CHARACTERS,	/* U+0000 or invalid UTF-8: 22021 */
	MONGO_MISMATCH_LENGTH,		/* a string too long: 22001 */
	MONGO_MISMATCH_SYNTAX,		/* not the type's text form: 22P02 */
	MONGO_MISMATCH_SHAPE,			/* a ragged array, an array in a path: 2202E */
	MONGO_MISMATCH_DOMAIN			/* breaks a domain's constraint: 23514 */
} MongoMismatch;

/* What reading one document carries along. */
typedef struct MongoReadContext
{
	bool		canonical_json; /* Extended JSON flavour of json, jsonb, text */
	bool		explain;		/* should a type mismatch be described for a message? */
	bool		defers_checks;	/* are constraints of domains left untested? */
	bool		defers_input;	/* are input functions that may raise not called? */

	/* set by what was deferred, never reset by readers */
	bool		deferred;		/* a constraint; the value is there */
	bool		unread;			/* a value: the reading was false for that alone */

	/* set by mongo_mismatch(); valid after a reading that was false */
	MongoMismatch mismatch;
	const char *holds;			/* "a String, \"abc\"", palloc'd; NULL unless
								 * 'explain' */
	const char *remark;			/* one more sentence, or NULL */
} MongoReadContext;

typedef struct MongoReader MongoReader;
typedef struct MongoType MongoType;

/*
 * A function that turns the value at 'iter', whose type is one the reader
 * accepts, into a Datum palloc'd in the current memory context, never one that
 * points into the document.  Returns what mongo_mismatch() returned when the value
 * does not fit.  Null and undefined never come here.
 */
#define MONGO_READ_ARGS \
	const MongoReader *reader pg_attribute_unused(), \
	MongoReadContext *context pg_attribute_unused(), \
	const bson_iter_t *iter, Datum *value

typedef bool (*MongoReadFunction) (MONGO_READ_ARGS);

/* Where a value is appended. */
typedef struct MongoWriteTarget
{
	bson_t	   *document;
	const char *key;
	int			key_length;
	const char *column_name;	/* for messages; NULL if unknown */
} MongoWriteTarget;

/*
 * A function that appends one non-null value.  Raises, as mongo_append_datum() in
 * encode.h has it, when the value has no BSON form.
 */
#define MONGO_WRITE_ARGS \
	const MongoWriteTarget *target, Datum value, \
	Oid typid pg_attribute_unused(), int32 typmod pg_attribute_unused()

typedef void (*MongoWriteFunction) (MONGO_WRITE_ARGS);

/* A type's row in the table. */
struct MongoType
{
	Oid			typid;			/* InvalidOid for a category of types */
	const char *name;			/* as in docs/types.md */
	MongoTypeKind kind;
	uint32		accepts;		/* set of MONGO_BSON_BIT */
	MongoReadFunction read;		/* NULL, as is 'write': has no BSON form */
	MongoWriteFunction write;
	void		(*prepare) (MongoReader *reader);	/* fills reader->extra;
													 * may be NULL */
	int64		limit;			/* the greatest integer, or most bytes of a text;
								 * 0: those of its class */
};

/* How values of one type are read; built once a scan. */
struct MongoReader
{
	MongoReadFunction read;
	uint32		accepts;
	Oid			typid;
	int32		typmod;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	const MongoType *type;
	MemoryContext mcxt;			/* where the reader lives */
	void	   *extra;			/* the read function's own */
};

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
static inline bool mongo_read_value(const MongoReader *reader,
									MongoReadContext *context,
									const bson_iter_t *iter,
									Datum *value, bool *isnull);

/*
 * mongo_mismatch
 *		Note that the value at 'iter' does not fit; always returns false.
 *
 * 'remark' is a sentence for DETAIL, or NULL; it must live as long as what is
 * noted is of use.
 */
extern bool mongo_mismatch(MongoReadContext *context, MongoMismatch mismatch,
						 const bson_iter_t *iter, const char *remark);

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

/* Read functions; the table in types.c says which type has which. */
extern bool mongo_read_bool(MONGO_READ_ARGS);
extern bool mongo_read_int2(MONGO_READ_ARGS);
extern bool mongo_read_int4(MONGO_READ_ARGS);
extern bool mongo_read_int8(MONGO_READ_ARGS);
extern bool mongo_read_float4(MONGO_READ_ARGS);
extern bool mongo_read_float8(MONGO_READ_ARGS);
extern bool mongo_read_numeric(MONGO_READ_ARGS);
extern bool mongo_read_text(MONGO_READ_ARGS);
extern bool mongo_read_varchar(MONGO_READ_ARGS);
extern bool mongo_read_bpchar(MONGO_READ_ARGS);
extern bool mongo_read_char(MONGO_READ_ARGS);
extern bool mongo_read_name(MONGO_READ_ARGS);
extern bool mongo_read_bytea(MONGO_READ_ARGS);
extern bool mongo_read_uuid(MONGO_READ_ARGS);
extern bool mongo_read_timestamp(MONGO_READ_ARGS);
extern bool mongo_read_date(MONGO_READ_ARGS);
extern bool mongo_read_json(MONGO_READ_ARGS);
extern bool mongo_read_jsonb(MONGO_READ_ARGS);
extern bool mongo_read_objectid(MONGO_READ_ARGS);
extern bool mongo_read_array(MONGO_READ_ARGS);
extern bool mongo_read_composite(MONGO_READ_ARGS);
extern bool mongo_read_domain(MONGO_READ_ARGS);
extern bool mongo_read_enum(MONGO_READ_ARGS);
extern bool mongo_read_text_form(MONGO_READ_ARGS);

extern void mongo_prepare_numeric(MongoReader *reader);
extern void mongo_prepare_array(MongoReader *reader);
extern void mongo_prepare_composite(MongoReader *reader);
extern void mongo_prepare_domain(MongoReader *reader);
extern void mongo_prepare_text_form(MongoReader *reader);

/* Write functions. */
extern void mongo_write_bool(MONGO_WRITE_ARGS);
extern void mongo_write_int2(MONGO_WRITE_ARGS);
extern void mongo_write_int4(MONGO_WRITE_ARGS);
extern void mongo_write_int8(MONGO_WRITE_ARGS);
extern void mongo_write_float4(MONGO_WRITE_ARGS);
extern void mongo_write_float8(MONGO_WRITE_ARGS);
extern void mongo_write_numeric(MONGO_WRITE_ARGS);
extern void mongo_write_text(MONGO_WRITE_ARGS);
extern void mongo_write_name(MONGO_WRITE_ARGS);
extern void mongo_write_bytea(MONGO_WRITE_ARGS);
extern void mongo_write_uuid(MONGO_WRITE_ARGS);
extern void mongo_write_timestamp(MONGO_WRITE_ARGS);
extern void mongo_write_date(MONGO_WRITE_ARGS);
extern void mongo_write_interval(MONGO_WRITE_ARGS);
extern void mongo_write_json(MONGO_WRITE_ARGS);
extern void mongo_write_objectid(MONGO_WRITE_ARGS);
extern void mongo_write_array(MONGO_WRITE_ARGS);
extern void mongo_write_composite(MONGO_WRITE_ARGS);
extern void mongo_write_domain(MONGO_WRITE_ARGS);
extern void mongo_write_text_form(MONGO_WRITE_ARGS);

/*
 * mongo_write_value
 *		Append one value of any writable type; see mongo_append_datum().
 */
extern void mongo_write_value(const MongoWriteTarget *target, Datum value,
							  bool isnull, Oid typid, int32 typmod);

/*
 * mongo_write_check
 *		Raise 54000 unless libbson could append.
 */
extern void mongo_write_check(bool appended);

/*
 * mongo_cut_text
 *		A palloc'd C string of at most 'limit' bytes of 'text', cut between
 *		characters, with "..." where something was cut off.
 */
extern char *mongo_cut_text(const char *text, int limit);

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

#endif							/* MONGO_FDW_TYPES_H */
