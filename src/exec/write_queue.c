/*-------------------------------------------------------------------------
 *
 * write_queue.c
 *		A statement's writes to one table, sent in batches; upserts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec_internal.h"
#include "common.h"
#include "options.h"
#include "convert.h"
#include "translate.h"
#include "remote.h"

#include "catalog/objectaddress.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/buffile.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"

/* ----------- A statement's writes to one table, sent in batches ----------- */

/* A batch is full with this many bytes even when batch_size is not reached. */
#define BATCH_BYTES		(12 * 1024 * 1024)

struct MongoWriteQueue
{
	MemoryContext context;
	UserMapping *user;
	const char *database;
	const char *collection;
	const char *context_message;
	Oid			relid;			/* the foreign table */
	int			batch_size;
	bool		deferred;
	bool		allow_duplicates;
	bool		on_demand;		/* sends by mongo_write_queue_send() alone */
	MongoWriteBatch batch;		/* being filled */
	MongoWriteBatch flying;		/* on its way, while there is a flight */
	MongoWriteFlight *flight;
	int64		rows;			/* added */
	int64		sent;			/* rows sent, also those refused */
	int64		written;

	/* Deferred batches that were full: {count, length, data} each. */
	BufFile    *file;			/* NULL: none */
	int			filed;
};

/* The head of a batch in the file.  Without padding, which would be written too. */
typedef struct FiledBatch
{
	uint64		count;
	uint64		length;
} FiledBatch;

MongoWriteQueue *
mongo_write_queue_create(MemoryContext context, UserMapping *user,
						 const MongoTableOptions *options,
						 MongoWriteKind kind, int batch_size, bool deferred,
						 const char *context_message, Oid relid)
{
	MongoWriteQueue *queue = MemoryContextAllocZero(context,
													sizeof(MongoWriteQueue));

	queue->context = context;
	queue->user = user;
	queue->database = options->database;
	queue->collection = options->collection;
	queue->batch.comment = options->comment;
	queue->context_message = context_message;
	queue->batch_size = batch_size;
	queue->deferred = deferred;
	queue->relid = relid;
	queue->batch.kind = kind;
	queue->batch.ordered = true;
	return queue;
}

static void
log_remote_write(const MongoWriteQueue *queue, const MongoWriteBatch *batch)
{
	ereport(mongo_query_log_level(),
			(errmsg("remote query: %s.%s: %s, %d operations, %zu bytes",
					queue->database, queue->collection,
					batch->kind == MONGO_INSERT ? "insert" :
					batch->kind == MONGO_DELETE_ONE ? "delete" : "update",
					batch->count, batch->length),
			 errhidestmt(true)));
}

static void
clear_batch(MongoWriteBatch *batch)
{
	batch->count = 0;
	batch->length = 0;
}

/* count_batch: it has been written, or refused in part. */
static void
count_batch(MongoWriteQueue *queue, const MongoWriteBatch *batch,
			const MongoWriteResult *result)
{
	queue->sent += batch->count;
	queue->written += result->written;
}

/* land_batch: wait for the batch that is on its way, if one is. */
static void
land_batch(MongoWriteQueue *queue)
{
	MongoWriteFlight *flight = queue->flight;
	MongoWriteResult result;
	MongoAtWork work;

	if (flight == NULL)
		return;
	queue->flight = NULL;
	mongo_begin_work(&work, list_make1_oid(queue->relid));
	mongo_write_batch_finish(flight, &result);
	mongo_end_work(&work);
	count_batch(queue, &queue->flying, &result);
	clear_batch(&queue->flying);
}

/* send_batch returns the indexes of duplicates when those are allowed. */
static Bitmapset *
send_batch(MongoWriteQueue *queue, const MongoWriteBatch *batch)
{
	MongoWriteResult result;
	MongoAtWork work;

	CHECK_FOR_INTERRUPTS();
	land_batch(queue);
	if (mongo_log_remote_query)
		log_remote_write(queue, batch);
	mongo_begin_work(&work, list_make1_oid(queue->relid));
	mongo_write_batch_send(mongo_session_for_write(queue->user), queue->database,
						   queue->collection, batch, queue->allow_duplicates,
						   queue->sent + 1, queue->written,
						   queue->context_message, &result);
	mongo_end_work(&work);
	count_batch(queue, batch, &result);
	return result.refused;
}

/*
 * launch_batch
 *		Send a batch after which there are more, without waiting for the reply, and
 *		leave *batch empty, to be filled meanwhile.
 */
static void
launch_batch(MongoWriteQueue *queue, MongoWriteBatch *batch)
{
	MongoWriteBatch spare;
	MongoAtWork work;

	CHECK_FOR_INTERRUPTS();
	land_batch(queue);
	spare = queue->flying;
	queue->flying = *batch;
	mongo_begin_work(&work, list_make1_oid(queue->relid));
	queue->flight = mongo_write_batch_begin(queue->context,
											mongo_session_for_write(queue->user),
											queue->database, queue->collection,
											&queue->flying, queue->sent + 1,
											queue->written, queue->context_message);
	mongo_end_work(&work);
	if (queue->flight != NULL)
	{
		if (mongo_log_remote_query)
			log_remote_write(queue, &queue->flying);
		batch->data = spare.data;
		batch->capacity = spare.capacity;
		clear_batch(batch);
	}
	else
	{
		queue->flying = spare;
		send_batch(queue, batch);
		clear_batch(batch);
	}
}

/* file_batch: append the batch in hand to a temporary file. */
static void
file_batch(MongoWriteQueue *queue)
{
	FiledBatch	head = {queue->batch.count, queue->batch.length};

	if (queue->file == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(queue->context);

		queue->file = BufFileCreateTemp(false);
		MemoryContextSwitchTo(old_context);
	}
	BufFileWrite(queue->file, &head, sizeof(head));
	BufFileWrite(queue->file, queue->batch.data, queue->batch.length);
	queue->filed++;
}

/* pass_batch: the batch in hand is full. */
static void
pass_batch(MongoWriteQueue *queue)
{
	if (queue->deferred)
	{
		file_batch(queue);
		clear_batch(&queue->batch);
	}
	else if (queue->batch_size > 1)
		launch_batch(queue, &queue->batch);
	else
	{
		send_batch(queue, &queue->batch);
		clear_batch(&queue->batch);
	}
}

void
mongo_write_queue_add(MongoWriteQueue *queue, const bson_t *first,
					  const bson_t *second)
{
	MongoWriteBatch *batch = &queue->batch;
	Size		added = first->len + (second != NULL ? second->len : 0);

	if (batch->count > 0 && batch->length + added > BATCH_BYTES &&
		!queue->on_demand)
		pass_batch(queue);
	mongo_write_batch_add(batch, queue->context, first);
	if (second != NULL)
		mongo_write_batch_add(batch, queue->context, second);
	batch->count++;
	queue->rows++;

	if (batch->count < queue->batch_size || queue->on_demand)
		return;
	pass_batch(queue);
}

/* send_file sends what was filed, batch by batch, in its order. */
static void
send_file(MongoWriteQueue *queue)
{
	MongoWriteBatch batch = queue->batch;

	batch.data = NULL;
	batch.capacity = 0;
	if (BufFileSeek(queue->file, 0, 0L, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind a temporary file")));
	for (int i = 0; i < queue->filed; i++)
	{
		FiledBatch	head;

		if (BufFileRead(queue->file, &head, sizeof(head)) != sizeof(head))
			elog(ERROR, "could not read a temporary file");
		if (head.length > batch.capacity)
		{
			if (batch.data != NULL)
				pfree(batch.data);
			batch.data = MemoryContextAllocHuge(queue->context, head.length);
			batch.capacity = head.length;
		}
		if (BufFileRead(queue->file, batch.data, head.length) != head.length)
			elog(ERROR, "could not read a temporary file");
		batch.count = head.count;
		batch.length = head.length;
		launch_batch(queue, &batch);
	}
	if (batch.data != NULL)
		pfree(batch.data);
	BufFileClose(queue->file);
	queue->file = NULL;
	queue->filed = 0;
}

void
mongo_write_queue_finish(MongoWriteQueue *queue)
{
	if (queue->file != NULL)
		send_file(queue);
	if (queue->batch.count > 0)
		send_batch(queue, &queue->batch);
	clear_batch(&queue->batch);
	land_batch(queue);
}

void
mongo_write_queue_allow_duplicates(MongoWriteQueue *queue)
{
	queue->allow_duplicates = queue->on_demand = true;
	queue->batch.ordered = false;
}

void
mongo_write_queue_upsert(MongoWriteQueue *queue, bool on_demand)
{
	queue->on_demand = on_demand;
	queue->batch.by_key = true;
	queue->batch.simple_collation = true;
}

Bitmapset *
mongo_write_queue_send(MongoWriteQueue *queue)
{
	Bitmapset  *refused = send_batch(queue, &queue->batch);

	clear_batch(&queue->batch);
	return refused;
}

int64
mongo_write_queue_rows(const MongoWriteQueue *queue)
{
	return queue->rows;
}

/*-------------------------------------------------------------------------
 * INSERT and COPY into foreign tables with the option insert_mode.
 *
 * PostgreSQL has no upserts of foreign tables: ON CONFLICT DO UPDATE is refused before
 * anybody asks us.  To it these are inserts, so what it would ask for is asked for
 * here: the privilege to update, and that no policy hides the rows that are changed.
 *-------------------------------------------------------------------------
 */

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
