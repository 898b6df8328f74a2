/*-------------------------------------------------------------------------
 *
 * upsert.c
 *		INSERT and COPY into foreign tables with the option insert_mode.
 *
 * PostgreSQL has no upserts of foreign tables: ON CONFLICT DO UPDATE is refused before
 * anybody asks us.  To it these are inserts, so what it would ask for is asked for
 * here: the privilege to update, and that no policy hides the rows that are changed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "upsert.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "catalog/objectaddress.h"
#include "columns.h"
#include "commands/trigger.h"
#include "decode_row.h"
#include "encoding.h"
#include "executor/executor.h"
#include "find_and_modify.h"
#include "privileges.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"

struct MongoUpsert
{
	Relation	relation;
	const MongoTableOptions *options;
	MongoUpsertLayout *layout;
	bool		returns;		/* the row is wanted as MongoDB then has it */
	MongoRowDecoder *decoder;	/* of mongo_upsert_return(); made when needed */
};

/* --------------------------------- beginning ------------------------------- */

/* may_update: by column, too. */
static bool
may_update(Oid relid, Relation target, const MongoUpsertLayout *layout, Oid userid)
{
	ListCell   *cell;

	if (pg_class_aclcheck(relid, userid, ACL_UPDATE) == ACLCHECK_OK)
		return true;
	foreach(cell, mongo_upsert_assigned(layout))
	{
		/* a partition may number its columns otherwise */
		const char *name = NameStr(TupleDescAttr(RelationGetDescr(target),
												 lfirst_int(cell) - 1)->attname);

		if (pg_attribute_aclcheck(relid, get_attnum(relid, name), userid,
								  ACL_UPDATE) != ACLCHECK_OK)
			return false;
	}
	return mongo_upsert_assigned(layout) != NIL;
}

/* check_privileges: as for ON CONFLICT DO UPDATE, on what the statement names. */
static void
check_privileges(const ModifyTable *plan, ResultRelInfo *rinfo,
				 const MongoUpsertLayout *layout, Oid userid)
{
	const ResultRelInfo *named = rinfo->ri_RootResultRelInfo != NULL ?
		rinfo->ri_RootResultRelInfo : rinfo;
	Oid			relid = RelationGetRelid(named->ri_RelationDesc);

	if (!may_update(relid, rinfo->ri_RelationDesc, layout, userid))
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(get_rel_relkind(relid)),
					   get_rel_name(relid));
	if ((plan != NULL && plan->withCheckOptionLists != NIL) ||
		check_enable_rls(relid, userid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("insert_mode 'upsert' of foreign table \"%s\" cannot be used here",
						RelationGetRelationName(rinfo->ri_RelationDesc)),
				 errdetail("Row-level security or a view's CHECK OPTION cannot be tested on rows that an INSERT changes.")));
}

MongoUpsert *
mongo_upsert_begin(EState *estate, const ModifyTable *plan, ResultRelInfo *rinfo,
				   const MongoTableOptions *options, Oid userid)
{
	const TriggerDesc *triggers = rinfo->ri_TrigDesc;
	MongoUpsert *upsert;

	if (options->insert_mode == MONGO_INSERT_MODE_INSERT ||
		(plan != NULL && (plan->operation == CMD_UPDATE ||
						  plan->onConflictAction != ONCONFLICT_NONE)))
		return NULL;
	upsert = palloc0(sizeof(MongoUpsert));
	upsert->relation = rinfo->ri_RelationDesc;
	upsert->options = options;
	upsert->layout = mongo_upsert_layout_create(RelationGetRelid(upsert->relation),
												RelationGetDescr(upsert->relation), options,
												ExecGetInsertedCols(rinfo, estate),
												triggers != NULL && triggers->trig_insert_before_row);
	if (!mongo_upsert_passes_over(upsert))
	{
		check_privileges(plan, rinfo, upsert->layout, userid);
		upsert->returns = (plan != NULL && plan->returningLists != NIL) ||
			(triggers != NULL && triggers->trig_insert_after_row);
	}
	return upsert;
}

const MongoUpsertLayout *
mongo_upsert_layout(const MongoUpsert *upsert)
{
	return upsert->layout;
}

bool
mongo_upsert_passes_over(const MongoUpsert *upsert)
{
	return upsert->options->insert_mode == MONGO_INSERT_MODE_IGNORE;
}

bool
mongo_upsert_returns(const MongoUpsert *upsert)
{
	return upsert->returns;
}

/* ------------------------- RETURNING, AFTER ROW triggers ------------------- */

/* create_document_decoder: of all columns. */
static MongoRowDecoder *
create_document_decoder(const MongoUpsert *upsert, MemoryContext context)
{
	TupleDesc	tuple = RelationGetDescr(upsert->relation);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	MongoColumn *columns = palloc0(sizeof(MongoColumn) * Max(tuple->natts, 1));
	MongoRowDecoder *decoder;
	int			count = 0;

	for (AttrNumber attnum = 1; attnum <= tuple->natts; attnum++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tuple, attnum - 1);
		MongoColumn *column = &columns[count];

		if (attribute->attisdropped)
			continue;
		column->index = attnum - 1;
		column->name = NameStr(attribute->attname);
		if (strcmp(column->name, MONGO_DOCUMENT_COLUMN) != 0)
		{
			const MongoColumnOptions *options =
				mongo_column_options(RelationGetRelid(upsert->relation), attnum);

			column->path = options->path;
			column->bson_type = options->bson_type;
		}
		column->typid = attribute->atttypid;
		column->typmod = attribute->atttypmod;
		count++;
	}
	decoder = mongo_row_decoder_create(context, upsert->options->database,
									   upsert->options->collection, columns, count,
									   upsert->options->type_mismatch,
									   upsert->options->canonical_json);
	MemoryContextSwitchTo(old_context);
	return decoder;
}

void
mongo_upsert_return(MongoUpsert *upsert, EState *estate, UserMapping *user,
					const bson_t *filter, const bson_t *update, TupleTableSlot *slot)
{
	Oid			relid = RelationGetRelid(upsert->relation);
	MongoFindAndModify command = {
		.database = upsert->options->database, .collection = upsert->options->collection,
		.filter = filter, .update = update, .comment = upsert->options->comment,
		.simple_collation = true, .upsert = true
	};
	TupleDesc	tuple = slot->tts_tupleDescriptor;
	MemoryContext old_context = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
	Datum	   *values = palloc0(sizeof(Datum) * tuple->natts);
	bool	   *isnull = palloc(sizeof(bool) * tuple->natts);
	MongoAtWork work;
	bson_t		document;

	if (upsert->decoder == NULL)
		upsert->decoder = create_document_decoder(upsert, estate->es_query_cxt);
	mongo_begin_work(&work, list_make1_oid(relid));
	if (!mongo_find_and_modify(mongo_session_for_write(user), CurrentMemoryContext, &command,
							   psprintf("could not insert into foreign table \"%s\"",
										RelationGetRelationName(upsert->relation)),
							   &document))
		elog(ERROR, "an upsert gave no document");
	memset(isnull, true, tuple->natts);
	mongo_row_decode(upsert->decoder, bson_get_data(&document), document.len, values, isnull);
	mongo_end_work(&work);
	ExecForceStoreHeapTuple(heap_form_tuple(tuple, values, isnull), slot, false);
	MemoryContextSwitchTo(old_context);
}

/* ---------------------------------- EXPLAIN -------------------------------- */

bson_t *
mongo_upsert_command(const MongoUpsert *upsert)
{
	bson_t	   *filter = bson_create_in(CurrentMemoryContext);
	bson_t	   *update = bson_create_in(CurrentMemoryContext);

	mongo_describe_upsert(upsert->layout, filter, update);
	return bson_from_template(upsert->returns ?
							  "{findAndModify: @1, query: @2, update: @3, upsert: true, new: true}" :
							  "{update: @1, updates: [{q: @2, u: @3, upsert: true}]}",
							  bson_utf8(mongo_to_utf8(upsert->options->collection)),
							  bson_document(filter), bson_document(update));
}
