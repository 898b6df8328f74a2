/*-------------------------------------------------------------------------
 *
 * analyze.c
 *		ANALYZE of foreign tables, and counting their rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"
#include "translate.h"

#include <math.h>

#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_statistic.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/attoptcache.h"
#include "utils/backend_progress.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/sampling.h"
#include "utils/syscache.h"

/*-------------------------------------------------------------------------
 * ANALYZE of a foreign table.
 *
 * MongoDB's $sample chooses the rows, so that only the sample crosses the network.  If
 * analyze_sampling is off, or if the sample has space for all documents, the whole
 * collection is read and reservoir sampling chooses rows from it.
 *-------------------------------------------------------------------------
 */

/* Documents between two reports of progress. */
#define PROGRESS_INTERVAL	1000

/* One run of ANALYZE. */
typedef struct Sample
{
	Relation	relation;
	const MongoTableOptions *options;
	UserMapping *user;
	double		total;			/* number of documents in the collection */
	bool		sampled_there;	/* does $sample choose the rows? */
	bool		in_order;		/* are these sorted by _id? */

	MongoRowDecoder *decoder;
	Datum	   *values;
	bool	   *isnull;
	Bitmapset  *unseen;			/* numbers of columns that were NULL so far */

	HeapTuple  *rows;			/* the sample: 'nrows' of at most 'target' */
	int			target;
	int			nrows;
	size_t		size;			/* bytes of the tuples in 'rows' */
	double		read;			/* documents that were received */
	double		rows_to_skip;	/* -1: not chosen yet */
	MongoUsage	usage;			/* what reading them has caused */
	ReservoirStateData reservoir;

	MemoryContext sample_context;	/* of the tuples in 'rows' */
	MemoryContext document_context; /* reset for each document */
} Sample;

/*
 * The number of documents and their average size, which mongo_analyze_foreign_table()
 * passes to the next call of acquire_sample_rows() if that is for the same table.
 */
static struct
{
	Oid			relid;
	double		documents;
	double		document_size;
	bool		sampled;		/* did the sample leave documents out? */
}			counted;

/* Returns the owner's user mapping, as ANALYZE acts as the owner. */
static UserMapping *
mapping_of_owner(Relation relation)
{
	ForeignTable *table = GetForeignTable(RelationGetRelid(relation));

	return mongo_user_mapping(relation->rd_rel->relowner, table->serverid);
}

/* ------------------------------ the rows ----------------------------------- */

/*
 * Return the position in the sample for the document just read; -1: discard it.
 *
 * Uses Vitter's algorithm as PostgreSQL's acquire_sample_rows() does.
 */
static int
sample_position(Sample *sample)
{
	int			position = -1;

	if (sample->nrows < sample->target)
		return sample->nrows++;

	if (sample->rows_to_skip < 0)
		sample->rows_to_skip = reservoir_get_next_S(&sample->reservoir,
													sample->read, sample->target);
	if (sample->rows_to_skip <= 0)
	{
		position = (int) (sample->target *
						  sampler_random_fract(&sample->reservoir.randstate));
		sample->size -= sample->rows[position]->t_len;
		heap_freetuple(sample->rows[position]);
	}
	sample->rows_to_skip -= 1;
	return position;
}

static void
keep_document(Sample *sample, int position, const uint8_t *data, uint32 length)
{
	TupleDesc	descriptor = RelationGetDescr(sample->relation);
	MemoryContext previous;

	MemoryContextReset(sample->document_context);
	previous = MemoryContextSwitchTo(sample->document_context);
	memset(sample->isnull, true, sizeof(bool) * descriptor->natts);
	mongo_row_decode(sample->decoder, data, length, sample->values, sample->isnull);

	for (int i = bms_next_member(sample->unseen, -1); i > 0; i = bms_next_member(sample->unseen, i))
	{
		if (!sample->isnull[i - 1])
			sample->unseen = bms_del_member(sample->unseen, i);
	}
	MemoryContextSwitchTo(sample->sample_context);
	sample->rows[position] = heap_form_tuple(descriptor, sample->values,
											 sample->isnull);
	sample->size += sample->rows[position]->t_len;
	MemoryContextSwitchTo(previous);
}

/*
 * Reduce the target to as many rows as maintenance_work_mem has space for.
 *
 * Documents may have 16 MB each.  The result is still a random sample: the first rows of
 * a reservoir are, and $sample returns documents in random order.
 */
static void
bound_memory(Sample *sample)
{
	if (sample->size < maintenance_work_mem * (size_t) 1024)
		return;
	/* where others have been replaced, by larger ones, some must go */
	while (sample->nrows == sample->target && sample->nrows > 1 &&
		   sample->size >= maintenance_work_mem * (size_t) 1024)
	{
		sample->size -= sample->rows[--sample->nrows]->t_len;
		heap_freetuple(sample->rows[sample->nrows]);
		sample->target--;
	}
	sample->target = sample->nrows;
	sample->rows_to_skip = -1;
	reservoir_init_selection_state(&sample->reservoir, sample->target);
}

/* Reads the cursor's documents, and keeps a sample of them. */
static void
read_sample(Sample *sample, MongoCursor *cursor)
{
	const uint8_t *data;
	uint32		length;

	while ((data = mongo_cursor_next(cursor, &length)) != NULL)
	{
		int			position;

		mongo_analyze_delay_point();

		if (sample->sampled_there && sample->nrows >= sample->target)
			break;

		sample->read += 1;
		position = sample_position(sample);
		if (position >= 0)
			keep_document(sample, position, data, length);
		bound_memory(sample);

		if (fmod(sample->read, PROGRESS_INTERVAL) == 0)
			pgstat_progress_update_param(PROGRESS_ANALYZE_BLOCKS_DONE,
										 (int64) sample->read);
	}
}

/*
 * Create the decoder, and open a cursor that returns the fields of the table's columns.
 */
static MongoCursor *
open_sample(Sample *sample)
{
	Relation	relation = sample->relation;
	const MongoTableOptions *options = sample->options;
	int			natts = RelationGetDescr(relation)->natts;
	List	   *wanted = mongo_sample_columns(relation, MONGO_TYPE_MISMATCH_NULL);
	MongoColumns *columns = mongo_columns_create(RelationGetRelid(relation), 1, natts);
	List	   *attributes = NIL;
	bson_t	   *find = mongo_bson_create();
	bson_iter_t projection;
	const bson_t *project = NULL;

	foreach_ptr(const MongoColumn, column, wanted)
	{
		attributes = lappend_int(attributes, column->index + 1);
		sample->unseen = bms_add_member(sample->unseen, column->index + 1);
	}
	sample->decoder = mongo_row_decoder_create(CurrentMemoryContext, options->database,
											   options->collection, wanted,
											   options->canonical_json);
	sample->values = palloc0(sizeof(Datum) * natts);
	sample->isnull = palloc0(sizeof(bool) * natts);
	sample->document_context = AllocSetContextCreate(CurrentMemoryContext,
													 "mongo_fdw sampled document",
													 ALLOCSET_DEFAULT_SIZES);
	mongo_append_projection(find, "projection", columns, attributes);
	if (bson_iter_init_find(&projection, find, "projection"))
		project = mongo_from_template("{$project: @1}", *bson_iter_value(&projection));
	return mongo_sample_open(sample->user, options, sample->sampled_there ? sample->target : 0,
							 sample->in_order ? SAMPLE_IN_ORDER : SAMPLE_AT_RANDOM,
							 project, options->fetch_size, &sample->usage);
}

/* Enough documents to estimate their average size, and to compare the names of their fields. */
#define SAMPLED_DOCUMENTS	100

/*
 * Raises a WARNING for each of these attribute numbers if no document of a small sample has
 * the column's field, but a similar one.
 */
static void
warn_of_missing_fields(Relation relation, UserMapping *user, const Bitmapset *attributes)
{
	const MongoTableOptions *options = mongo_table_options(RelationGetRelid(relation));
	FieldSample *sample = mongo_field_sample_create(false, 0);
	List	   *columns = mongo_sample_columns(relation, MONGO_TYPE_MISMATCH_NULL);
	MongoCursor *cursor;
	const uint8_t *data;
	uint32		length;

	foreach_ptr(const MongoColumn, column, columns)
	{
		if (column->path != NULL)
			(void) mongo_field_sample_find(sample, column->path, true);
	}
	cursor = mongo_sample_open(user, options, SAMPLED_DOCUMENTS, SAMPLE_AT_RANDOM, NULL, 0, NULL);
	while ((data = mongo_cursor_next(cursor, &length)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		mongo_field_sample_observe(sample, data, length);
	}
	mongo_cursor_close(cursor);

	foreach_ptr(const MongoColumn, column, columns)
	{
		const char *path = column->path;
		double		counts[MONGO_TYPE_COUNT];
		uint32		types;
		const char *meant;

		if (path == NULL || !bms_is_member(column->index + 1, attributes) ||
			mongo_sampled_field_counts(mongo_field_sample_find(sample, path, false), counts, &types) > 0)
			continue;
		meant = mongo_nearest_field(sample, path);
		if (meant != NULL)
			ereport(WARNING,
					(errmsg("no sampled document of collection \"%s.%s\" has the field \"%s\"",
							options->database, options->collection, mongo_from_utf8(path)),
					 errhint("Perhaps column \"%s\" should read the field \"%s\": set its option path.",
							 column->name, meant)));
	}
}

/*
 * Fill 'rows' with a random sample, in the current memory context.
 *
 * Fields that do not fit their columns are NULL even under type_mismatch 'error', as one
 * document must not keep a table from having statistics.
 */
static int
acquire_sample_rows(Relation relation, int elevel, HeapTuple *rows, int targrows,
					double *totalrows, double *totaldeadrows)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "mongo_fdw analyze",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext previous = MemoryContextSwitchTo(context);
	Sample		sample = {.relation = relation, .rows = rows, .target = targrows};

	sample.sample_context = previous;
	sample.options = mongo_table_options(RelationGetRelid(relation));
	sample.user = mapping_of_owner(relation);
	sample.total = counted.relid == RelationGetRelid(relation) ? counted.documents :
		mongo_fetch_row_count(sample.user, sample.options);
	sample.sampled_there = sample.options->analyze_sampling && sample.total > targrows;

	/*
	 * PostgreSQL computes the correlation of columns with the order of rows,
	 * so this is the collection's, as far as it is that of _id.  If only the
	 * first rows have space, they must be any.
	 */
	sample.in_order = sample.sampled_there && counted.relid == RelationGetRelid(relation) &&
		targrows * counted.document_size < maintenance_work_mem * 512.0;

	sample.rows_to_skip = -1;
	reservoir_init_selection_state(&sample.reservoir, targrows);

	/* the progress view counts a heap's blocks; here they are documents */
	pgstat_progress_update_param(PROGRESS_ANALYZE_BLOCKS_TOTAL,
								 (int64) (sample.sampled_there ? targrows : sample.total));
	read_sample(&sample, open_sample(&sample));
	if (sample.nrows > 0 && !bms_is_empty(sample.unseen))
		warn_of_missing_fields(relation, sample.user, sample.unseen);

	/* the count may be inexact; the number of documents read is exact */
	*totalrows = sample.sampled_there ? Max(sample.total, sample.nrows) : sample.read;
	*totaldeadrows = 0;

	ereport(elevel,
			(errmsg("\"%s\": collection \"%s.%s\" contains %.0f documents, %d rows in sample",
					RelationGetRelationName(relation), sample.options->database,
					sample.options->collection, *totalrows, sample.nrows)));

	/*
	 * Store statistics once, even if a table with children is sampled twice.
	 * Store none if the table is only sampled as part of its parent, under
	 * another lock: PostgreSQL stores none then either.
	 */
	if (counted.relid == RelationGetRelid(relation) &&
		CheckRelationLockedByMe(relation, ShareUpdateExclusiveLock, true))
		mongo_store_statistics(relation, sample.user, sample.options, *totalrows,
							   counted.document_size, &sample.usage);
	counted.relid = InvalidOid;
	counted.sampled = sample.nrows < *totalrows;
	MemoryContextSwitchTo(previous);
	MemoryContextDelete(context);
	return sample.nrows;
}

/*
 * Returns the average bytes of BSON in a small sample of documents, or of elements that the option
 * unwind makes rows of; 0 if it is empty.
 */
static double
average_document_size(UserMapping *user, const MongoTableOptions *options)
{
	List	   *unwound = mongo_unwound_paths(options);
	const bson_t *stage = unwound == NIL ?
		mongo_from_template("{$group: {_id: null, bytes: {$avg: {$bsonSize: '$$ROOT'}}}}") :
		mongo_from_template("{$group: {_id: null, bytes: {$avg: {$bsonSize: {e: @1}}}}}",
							mongo_field_path(llast(unwound)));
	MongoCursor *cursor = mongo_sample_open(user, options, SAMPLED_DOCUMENTS, SAMPLE_AT_RANDOM, stage, 0, NULL);
	const uint8_t *document;
	uint32		length;
	bson_iter_t iter;
	double		bytes = 0;

	document = mongo_cursor_next(cursor, &length);
	if (document != NULL && bson_iter_init_from_data(&iter, document, length) &&
		bson_iter_find(&iter, "bytes"))
		bytes = mongo_count_at(&iter, BSON_MAX_SIZE);
	mongo_cursor_close(cursor);
	return bytes;
}

/*
 * mongo_analyze_foreign_table
 *		AnalyzeForeignTable callback.
 *
 * Rows come from $sample, or from a scan of the whole collection if analyze_sampling is off.
 * Accesses MongoDB as the table's owner.  *totalpages is computed from the number of all documents
 * and the average size of a few; planning derives the size of a document from it.
 */
bool
mongo_analyze_foreign_table(Relation relation, AcquireSampleRowsFunc *func,
							BlockNumber *totalpages)
{
	const MongoTableOptions *options = mongo_table_options(RelationGetRelid(relation));
	UserMapping *user;
	double		rows;
	double		width;

	/*
	 * only a query has values for the pipeline's parameters; a change stream
	 * has no end
	 */
	if (mongo_column_facts(RelationGetRelid(relation))->parameters != NIL || options->change_stream != NULL)
		return false;
	user = mapping_of_owner(relation);
	rows = mongo_fetch_row_count(user, options);
	width = average_document_size(user, options);
	counted.relid = RelationGetRelid(relation);
	counted.documents = rows;
	counted.document_size = width;

	/* planning derives the size of documents, or of elements, from this */
	*totalpages = (BlockNumber) Min(ceil(rows * width / BLCKSZ) + 1, MaxBlockNumber);
	*func = acquire_sample_rows;
	return true;
}

/*-------------------------------------------------------------------------
 * The number of a column's distinct values.
 *
 * A sample tells it badly if few values are frequent and many are rare.  By an index MongoDB
 * goes from value to value (DISTINCT_SCAN) and looks at no document.  The other statistics need
 * all keys of the index, which takes longer than the sample and tells little more.
 *-------------------------------------------------------------------------
 */

/* More are not counted: so many take about 0.3 s. */
#define MOST_VALUES		100000

/* MongoDB's limit.  On a shard it looks at documents, as some may not belong there. */
#define COUNTING_MS		2000

/* Returns an index that has all values of a field in order; NULL: none. */
static const MongoIndex *
index_of_values(const MongoStatistics *statistics, const char *path)
{
	for (int i = 0; i < statistics->nindexes; i++)
	{
		const MongoIndex *index = &statistics->indexes[i];

		if ((index->uses & MONGO_INDEX_ORDER) != 0 && strcmp(index->keys[0].path, path) == 0)
			return index;
	}
	return NULL;
}

/*
 * Return how many of the first MOST_VALUES values of an index's first field have one of
 * these BSON types; 0 if MongoDB does not tell.  *complete: are there no more?
 */
static double
count_values(UserMapping *user, const MongoTableOptions *options, const MongoIndex *index,
			 uint32 types, bool *complete)
{
	BsonArray	aliases = mongo_array_create();
	BsonArray	stages = mongo_array_create();
	bson_t	   *command;
	const bson_t *reply;
	bson_iter_t iter;
	bson_iter_t all;
	bson_iter_t read;

	foreach_ptr(const char, alias, mongo_bson_type_aliases(types))
		mongo_array_append(&aliases, mongo_utf8(alias));
	mongo_array_append_template(&stages, "{$group: {_id: @1}}", mongo_field_path(index->keys[0].path));
	mongo_array_append_template(&stages, "{$limit: @1}", mongo_int32(MOST_VALUES));
	mongo_array_append_template(&stages,
								"{$group: {_id: null, all: {$sum: 1},"
								" read: {$sum: {$cond: [{$in: [{$type: '$_id'}, @1]}, 1, 0]}}}}",
								mongo_array(aliases.bson));
	command = mongo_aggregate_command(options, stages.bson);
	mongo_append_template(command, "{hint: @1, maxTimeMS: @2, cursor: {}}",
						  mongo_utf8(index->name), mongo_int32(COUNTING_MS));
	reply = mongo_run_command(CurrentMemoryContext, user, mongo_to_utf8(options->database),
							  command, NULL);
	if (!bson_iter_init(&iter, reply) ||
		!bson_iter_find_descendant(&iter, "cursor.firstBatch.0.all", &all) ||
		!bson_iter_init(&iter, reply) ||
		!bson_iter_find_descendant(&iter, "cursor.firstBatch.0.read", &read))
		return 0;
	*complete = mongo_count_at(&all, MOST_VALUES) < MOST_VALUES;
	return mongo_count_at(&read, MOST_VALUES);
}

/*
 * Replace the sample's estimate of a column's number of values by the number in an index,
 * unless these are many, or the user has set one (ALTER COLUMN ... SET (n_distinct)).
 */
static void
correct_distinct(Relation relation, UserMapping *user, const MongoStatistics *statistics,
				 Form_pg_attribute attribute)
{
	Oid			relid = RelationGetRelid(relation);
	const MongoColumnOptions *column = mongo_column_options(relid, attribute->attnum);
	const		AttributeOpts *set = get_attribute_options(relid, attribute->attnum);
	const MongoIndex *index = index_of_values(statistics, column->path);
	Form_pg_statistic statistic;
	HeapTuple	tuple;
	double		estimate;
	double		values;
	bool		complete;
	Relation	table;

	if (index == NULL || (set != NULL && set->n_distinct != 0) ||
		!mongo_is_key(column->path, attribute->atttypid, attribute->atttypmod))
		return;
	tuple = SearchSysCacheCopy3(STATRELATTINH, ObjectIdGetDatum(relid),
								Int16GetDatum(attribute->attnum), BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return;
	statistic = (Form_pg_statistic) GETSTRUCT(tuple);
	estimate = statistic->stadistinct >= 0 ? statistic->stadistinct :
		-statistic->stadistinct * statistics->documents;
	/* many values, or none that the sample has twice */
	if (estimate > MOST_VALUES || statistic->stadistinct < statistic->stanullfrac - 1 + 1e-6)
		return;
	values = count_values(user, mongo_table_options(relid), index,
						  mongo_type_facts(attribute->atttypid)->accepts &
						  mongo_declared_set(column->bson_type), &complete);
	if (values <= 0 || (!complete && values <= estimate))
		return;

	/* as compute_scalar_stats() has it */
	statistic->stadistinct = values > 0.1 * statistics->documents ?
		-values / statistics->documents : values;
	table = table_open(StatisticRelationId, RowExclusiveLock);
	CatalogTupleUpdate(table, &tuple->t_self, tuple);
	table_close(table, RowExclusiveLock);
}

/*
 * ImportForeignStatistics callback: has PostgreSQL analyze the table as usual, and corrects
 * the numbers of distinct values.
 */
static bool
import_foreign_statistics(Relation relation, List *va_cols, int elevel)
{
	static bool is_nested = false;
	Oid			relid = RelationGetRelid(relation);
	VacuumParams params = {.options = VACOPT_ANALYZE | (elevel == INFO ? VACOPT_VERBOSE : 0)};
	const MongoStatistics *statistics;
	UserMapping *user;

	/* PostgreSQL would sample the children of this table once more */
	if (is_nested || relation->rd_rel->relhassubclass ||
		mongo_is_pipeline_table(mongo_table_options(relid)) ||
		!mongo_feature_enabled(mongo_table_options(relid), MONGO_FEATURE_GROUP))
		return false;

	counted.sampled = false;
	is_nested = true;
	PG_TRY();
	{
		analyze_rel(relid, NULL, &params, va_cols, true, NULL);
	}
	PG_FINALLY();
	{
		is_nested = false;
	}
	PG_END_TRY();

	/* what it has written becomes visible */
	CommandCounterIncrement();
	statistics = mongo_statistics_of(relid);
	if (!counted.sampled || statistics == NULL)
		return true;
	user = mapping_of_owner(relation);
	for (int i = 0; i < RelationGetNumberOfAttributes(relation); i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(relation), i);

		if (!attribute->attisdropped &&
			(va_cols == NIL || list_member(va_cols, makeString(NameStr(attribute->attname)))))
			correct_distinct(relation, user, statistics, attribute);
	}
	return true;
}

/*
 * mongo_add_statistics_import
 *		Sets the callback, which PostgreSQL has since 19.
 */
void
mongo_add_statistics_import(FdwRoutine *routine)
{
	mongo_set_import_statistics(routine, import_foreign_statistics);
}
