/*-------------------------------------------------------------------------
 *
 * encode.c
 *		From Datums to BSON values, by the table of types.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "encode.h"

#include "encode_scalar.h"
#include "miscadmin.h"
#include "utils/builtins.h"

void
mongo_write_value(const MongoWriteTarget *target, Datum value, bool isnull,
				  Oid typid, int32 typmod)
{
	const MongoType *type;

	check_stack_depth();

	if (isnull)
	{
		MONGO_WRITE(target, null);
		return;
	}
	type = mongo_type_lookup(typid);
	if (type == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be written to MongoDB",
						format_type_be(typid))));
	type->write(target, value, typid, typmod);
}

void
mongo_append_datum(bson_t *document, const char *key, int key_length,
				   Datum value, bool isnull, Oid typid, int32 typmod)
{
	MongoWriteTarget target = {document, key, key_length};

	mongo_write_value(&target, value, isnull, typid, typmod);
}
