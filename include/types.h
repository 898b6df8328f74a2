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

#include "catalog/pg_type_d.h"

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

/* How values are read and written is said in reader.h and encode.h. */
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
	MongoReadFunction *read;	/* reader.h; NULL, as is 'write': has no BSON
								 * form */
	MongoWriteFunction *write;	/* encode.h */
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

#endif							/* MONGO_FDW_TYPES_H */
