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
#include "bson_write.h"
#include "encoding.h"
#include "executor/executor.h"
#include "json_read.h"
#include "miscadmin.h"
#include "options.h"
#include "upsert.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* placeholder: what stands for a value that comes with each row. */
static bson_value_t
placeholder(Oid relid, AttrNumber attnum)
{
	return bson_utf8(mongo_to_utf8(psprintf("<%s>", get_attname(relid, attnum, false))));
}

/* describe_assignments: {path: "<column>", ...} */
static bson_t *
describe_assignments(Oid relid, const List *attributes)
{
	bson_t	   *set = bson_create_in(CurrentMemoryContext);
	ListCell   *cell;

	foreach(cell, attributes)
		bson_append_member(set, mongo_column_options(relid, lfirst_int(cell))->path, "@1",
						   placeholder(relid, lfirst_int(cell)));
	return set;
}

/* describe_row_command: the command for one row. */
static bson_t *
describe_row_command(Oid relid, const char *collection, CmdType operation,
					 const List *attributes)
{
	bson_value_t name = bson_utf8(mongo_to_utf8(collection));

	switch (operation)
	{
		case CMD_INSERT:
			return bson_from_template("{insert: @1}", name);
		case CMD_UPDATE:
			return bson_from_template("{update: @1, updates: [{q: {_id: '<_id>'}, u: {$set: @2}}]}",
									  name, bson_document(describe_assignments(relid, attributes)));
		default:
			return bson_from_template("{delete: @1, deletes: [{q: {_id: '<_id>'}, limit: 1}]}",
									  name);
	}
}

void
mongo_explain_foreign_modify(ModifyTableState *mtstate, ResultRelInfo *rinfo,
							 List *fdw_private, int subplan_index pg_attribute_unused(),
							 ExplainState *es)
{
	Oid			relid = RelationGetRelid(rinfo->ri_RelationDesc);
	MongoTableOptions *options = mongo_table_options(relid);
	MongoUpsert *upsert = NULL;

	ExplainPropertyText("Foreign Namespace",
						psprintf("%s.%s", options->database, options->collection),
						es);
	if (!es->verbose)
		return;
	if (mtstate->operation == CMD_INSERT)
	{
		Oid			user = mongo_result_check_as_user(rinfo, mtstate->ps.state);

		upsert = mongo_upsert_begin(mtstate->ps.state, (ModifyTable *) mtstate->ps.plan, rinfo,
									options, user ? user : GetUserId());
	}
	ExplainPropertyText("Remote Command",
						mongo_json_show_document(upsert != NULL ? mongo_upsert_command(upsert) :
												 describe_row_command(relid, options->collection,
																	  mtstate->operation,
																	  fdw_private != NIL ? linitial(fdw_private) : NIL)),
						es);
	ExplainPropertyInteger("Batch Size", NULL,
						   upsert != NULL && mongo_upsert_returns(upsert) ? 1 : options->batch_size, es);
}
