/*-------------------------------------------------------------------------
 *
 * decode_row.h
 *		From BSON bytes to Datums in a tuple slot.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DECODE_ROW_H
#define MONGO_FDW_DECODE_ROW_H

#include "compat.h"

#include "nodes/bitmapset.h"

#include "options.h"

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
 * MONGO_TYPE_MISMATCH_ERROR, with the SQLSTATE of the MongoMismatch in mismatch.h (the
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

#endif							/* MONGO_FDW_DECODE_ROW_H */
