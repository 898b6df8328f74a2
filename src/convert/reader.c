/*-------------------------------------------------------------------------
 *
 * reader.c
 *		Readers, made from the table of types.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "reader.h"

#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

MongoReader *
mongo_reader_create(MemoryContext context, Oid typid, int32 typmod)
{
	const MongoType *type = mongo_type_lookup(typid);
	MongoReader *reader;

	check_stack_depth();

	if (type == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be read from MongoDB",
						format_type_be(typid))));

	reader = MemoryContextAllocZero(context, sizeof(MongoReader));
	reader->read = type->read;
	reader->accepts = type->accepts;
	reader->typid = typid;
	reader->typmod = typmod;
	reader->type = type;
	reader->mcxt = context;
	get_typlenbyvalalign(typid, &reader->typlen, &reader->typbyval,
						 &reader->typalign);
	if (type->prepare)
		type->prepare(reader);
	return reader;
}
