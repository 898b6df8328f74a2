/*-------------------------------------------------------------------------
 *
 * explain_modify.c
 *		EXPLAIN of INSERT, UPDATE and DELETE that go row by row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec.h"

#include "bson_memory.h"
#include "encoding.h"
#include "options.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* What stands for a value that comes with each row. */
static const char *
placeholder(Oid relid, AttrNumber attnum)
{
	return mongo_to_utf8(psprintf("<%s>", get_attname(relid, attnum, false)));
}

static void
describe_update(Oid relid, List *attributes, bson_t *operation)
{
	bson_t		update;
	bson_t		set;
	ListCell   *cell;

	BSON_APPEND_DOCUMENT_BEGIN(operation, "u", &update);
	BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
	foreach(cell, attributes)
	{
		AttrNumber	attnum = lfirst_int(cell);

		BSON_APPEND_UTF8(&set, mongo_column_options(relid, attnum)->path,
						 placeholder(relid, attnum));
	}
	bson_append_document_end(&update, &set);
	bson_append_document_end(operation, &update);
}

static const char *
describe_command(Oid relid, const char *collection, CmdType operation,
				 List *attributes)
{
	bson_t	   *command = bson_create_in(CurrentMemoryContext);
	bson_t	   *one = bson_create_in(CurrentMemoryContext);
	bson_t	   *filter = bson_create_in(CurrentMemoryContext);
	bson_t		operations;

	collection = mongo_to_utf8(collection);
	BSON_APPEND_UTF8(filter, "_id", "<_id>");
	switch (operation)
	{
		case CMD_INSERT:
			BSON_APPEND_UTF8(command, "insert", collection);
			break;
		case CMD_UPDATE:
			BSON_APPEND_DOCUMENT(one, "q", filter);
			describe_update(relid, attributes, one);
			BSON_APPEND_UTF8(command, "update", collection);
			BSON_APPEND_ARRAY_BEGIN(command, "updates", &operations);
			BSON_APPEND_DOCUMENT(&operations, "0", one);
			bson_append_array_end(command, &operations);
			break;
		default:
			BSON_APPEND_DOCUMENT(one, "q", filter);
			BSON_APPEND_INT32(one, "limit", 1);
			BSON_APPEND_UTF8(command, "delete", collection);
			BSON_APPEND_ARRAY_BEGIN(command, "deletes", &operations);
			BSON_APPEND_DOCUMENT(&operations, "0", one);
			bson_append_array_end(command, &operations);
			break;
	}
	return bson_to_relaxed_json(command);
}

void
mongo_explain_foreign_modify(ModifyTableState *mtstate, ResultRelInfo *rinfo,
							 List *fdw_private, int subplan_index pg_attribute_unused(),
							 ExplainState *es)
{
	Oid			relid = RelationGetRelid(rinfo->ri_RelationDesc);
	MongoTableOptions *options = mongo_table_options(relid);

	ExplainPropertyText("Foreign Namespace",
						psprintf("%s.%s", options->database, options->collection),
						es);
	if (!es->verbose)
		return;
	ExplainPropertyText("Remote Command",
						describe_command(relid, options->collection,
										 mtstate->operation,
										 fdw_private != NIL ? linitial(fdw_private) : NIL),
						es);
	ExplainPropertyInteger("Batch Size", NULL, options->batch_size, es);
}
