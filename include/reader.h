/*-------------------------------------------------------------------------
 *
 * reader.h
 *		How values of one type are read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_READER_H
#define MONGO_FDW_READER_H

#include "mismatch.h"
#include "types.h"

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

#endif							/* MONGO_FDW_READER_H */
