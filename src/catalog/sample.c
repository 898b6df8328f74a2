/*-------------------------------------------------------------------------
 *
 * sample.c
 *		Reads a sample of a table's documents, and counts them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"
#include "translate.h"

#include "utils/rel.h"

/*
 * mongo_sample_open
 *		Opens a cursor over a table's documents, or over the rows that its stages produce.
 *
 * It returns 'size' of them, at random or else those from number 'from' by their _id; all if 'size'
 * is 0.  They pass through 'last_stage' unless that is NULL; those of SAMPLE_IN_ORDER are then
 * sorted by _id.  'usage' may be NULL.
 */
MongoCursor *
mongo_sample_open(UserMapping *user, const MongoTableOptions *options, int size, int64 from,
				  const bson_t *last_stage, int batch, MongoUsage *usage)
{
	BsonArray	pipeline = mongo_array_create();
	bson_t	   *command;

	mongo_append_deriving_stages(&pipeline, options);
	if (size > 0 && from < 0)
		mongo_array_append_template(&pipeline, "{$sample: {size: @1}}", mongo_int32(size));
	else if (size > 0)
	{
		mongo_array_append_template(&pipeline, "{$sort: {_id: 1}}");
		mongo_array_append_template(&pipeline, "{$skip: @1}", mongo_int64(from));
		mongo_array_append_template(&pipeline, "{$limit: @1}", mongo_int32(size));
	}
	if (last_stage != NULL)
		mongo_array_append(&pipeline, mongo_document(last_stage));
	if (from == SAMPLE_IN_ORDER)
		mongo_array_append_template(&pipeline, "{$sort: {_id: 1}}");

	/* $sample sorts if the sample is a large part of the collection */
	command = mongo_aggregate_command(options, pipeline.bson);
	mongo_append_template(command, batch > 0 ? "{allowDiskUse: true, cursor: {batchSize: @1}}" :
						  "{allowDiskUse: true, cursor: {}}", mongo_int32(batch));
	return mongo_cursor_open(CurrentMemoryContext, &(MongoRead) {
		.user = user,
		.database = mongo_to_utf8(options->database),
		.collection = options->collection,
		.command = command,
		.batch_size = batch,
		.read_mode = options->read_mode,
		.comment = options->comment,
		.usage = usage
	});
}

/*
 * mongo_sample_columns
 *		Returns a table's columns for a decoder that treats fields that do not fit in this way.
 *
 * Their indexes are attribute numbers - 1.
 */
List *
mongo_sample_columns(Relation relation, MongoTypeMismatch type_mismatch)
{
	List	   *columns = NIL;

	for (AttrNumber attnum = 1; attnum <= RelationGetDescr(relation)->natts; attnum++)
	{
		MongoColumn *column;

		if (TupleDescAttr(RelationGetDescr(relation), attnum - 1)->attisdropped)
			continue;
		column = mongo_table_column(relation, attnum);
		column->type_mismatch = type_mismatch;
		columns = lappend(columns, column);
	}
	return columns;
}

/*
 * mongo_count_at
 *		Returns a number of MongoDB's, from 0 to 'most'; 0 for NaN.
 */
double
mongo_count_at(const bson_iter_t *iter, double most)
{
	return Min(Max(bson_iter_as_double(iter), 0), most);
}

/*-------------------------------------------------------------------------
 * The number of a collection's documents, cached in this session.
 *
 * The planner must not send a command for each query, and an exact count would not
 * improve plans.
 *-------------------------------------------------------------------------
 */

#define REMEMBERED_FOR_MS	(5 * 60 * 1000)

/* As many as the option estimated_rows may have. */
#define MOST_DOCUMENTS	1e15

/*
 * mongo_fetch_row_count
 *		Returns what mongo_remote_row_count() does, but always sends a command.
 */
double
mongo_fetch_row_count(UserMapping *user, const MongoTableOptions *options)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "mongo_fdw row count",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext previous = MemoryContextSwitchTo(context);
	bson_t	   *command = mongo_from_template("{count: @1, readConcern: {level: 'local'}}",
											  mongo_utf8(mongo_to_utf8(options->collection)));
	const bson_t *reply;
	bson_iter_t iter;
	bson_iter_t count;
	double		rows = 0;

	/* count works on views, but not on the rows that stages produce */
	if (mongo_is_pipeline_table(options))
	{
		BsonArray	stages = mongo_array_create();

		mongo_append_deriving_stages(&stages, options);
		mongo_array_append_template(&stages, "{$count: 'n'}");
		command = mongo_aggregate_command(options, stages.bson);
		mongo_append_template(command, "{allowDiskUse: true, cursor: {}}");
	}
	reply = mongo_run_command(context, user, mongo_to_utf8(options->database), command,
							  psprintf("could not count collection \"%s.%s\"",
									   options->database, options->collection));
	/* $count returns no document if there are no rows */
	if (bson_iter_init_find(&count, reply, "n") ||
		(bson_iter_init(&iter, reply) &&
		 bson_iter_find_descendant(&iter, "cursor.firstBatch.0.n", &count)))
		rows = mongo_count_at(&count, MOST_DOCUMENTS);

	MemoryContextSwitchTo(previous);
	MemoryContextDelete(context);
	return rows;
}

/*
 * mongo_remote_row_count
 *		Returns the number of documents of a table's collection, or of rows of a pipeline table,
 *		for the planner.
 *
 * Sends one command and caches the number in this backend for five minutes, or until the definition
 * of the table, a server or a user mapping changes.  For a view it counts what the view's pipeline
 * returns.  A collection that does not exist has 0 documents.  Raises what mongo_run_command() and
 * mongo_append_deriving_stages() raise.
 */
double
mongo_remote_row_count(Oid relid, UserMapping *user)
{
	MongoTableFacts *kept = mongo_table_facts(relid);

	if (kept->counted_by != user->umid ||
		TimestampDifferenceExceeds(kept->counted_at, GetCurrentTimestamp(), REMEMBERED_FOR_MS))
	{
		kept->documents = mongo_fetch_row_count(user, mongo_table_options(relid));
		kept->counted_at = GetCurrentTimestamp();
		kept->counted_by = user->umid;
	}
	return kept->documents;
}
