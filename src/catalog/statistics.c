/*-------------------------------------------------------------------------
 *
 * statistics.c
 *		Statistics about collections: ANALYZE collects them and stores them in a table, and
 *		planning reads them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* ------------------------------ multikey ----------------------------------- */

/*
 * Search a plan from explain for isMultiKey.  Its stages are nested, and the nesting
 * differs between versions of MongoDB.
 */
static bool
find_is_multikey(bson_iter_t *iter, bool *multikey)
{
	check_stack_depth();

	while (bson_iter_next(iter))
	{
		bson_iter_t inner;

		if (strcmp(bson_iter_key(iter), "isMultiKey") == 0 && BSON_ITER_HOLDS_BOOL(iter))
		{
			*multikey = bson_iter_bool(iter);
			return true;
		}
		if ((BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter)) &&
			bson_iter_recurse(iter, &inner) && find_is_multikey(&inner, multikey))
			return true;
	}
	return false;
}

/*
 * Set *multikey to whether some document has an array in a field of this index.
 * Returns false if MongoDB does not report that.
 *
 * Only explain reports it.  It plans a scan of the index without running it.
 */
static bool
fetch_multikey(UserMapping *user, const char *database, const char *collection,
			   const char *utf8_name, bool *multikey)
{
	const bson_t *command =
		mongo_from_template("{explain: {find: @1, filter: {}, hint: @2}, verbosity: 'queryPlanner'}",
							mongo_utf8(mongo_to_utf8(collection)), mongo_utf8(utf8_name));
	const bson_t *reply = mongo_run_command(CurrentMemoryContext, user,
											mongo_to_utf8(database), command, NULL);
	bson_iter_t iter;

	return bson_iter_init(&iter, reply) && find_is_multikey(&iter, multikey);
}

/* -------------------------- describing indexes ------------------------------ */

/*
 * Return an index as JSON: what listIndexes returned, and "multikey" if MongoDB reports
 * that.  NULL if the database's encoding cannot represent a text in it.
 */
static char *
describe_index(UserMapping *user, const MongoTableOptions *options, const MongoIndex *index)
{
	bson_t	   *document = mongo_bson_create();
	const bson_t *holder;
	bson_iter_t iter;
	bool		ordinary = true;
	bool		multikey;

	bson_iter_init(&iter, index->document);
	while (bson_iter_next(&iter))
	{
		/* the filter as text, which may look like malformed Extended JSON */
		bool		is_filter = strcmp(bson_iter_key(&iter), "partialFilterExpression") == 0;
		const char *filter = is_filter ? mongo_json_show_value(&iter, false, 0) : NULL;

		if (is_filter ? filter == NULL : !bson_append_iter(document, NULL, 0, &iter))
			return NULL;
		if (is_filter)
			mongo_append(document, bson_iter_key(&iter), mongo_utf8(mongo_to_utf8(filter)));
	}
	for (int i = 0; i < index->nkeys; i++)
		ordinary &= index->keys[i].kind <= MONGO_KEY_DESCENDING;
	if (ordinary && fetch_multikey(user, options->database, options->collection,
								   index->name, &multikey))
		mongo_append(document, "multikey", mongo_bool(multikey));
	holder = mongo_from_template("{index: @1}", mongo_document(document));
	return bson_iter_init_find(&iter, holder, "index") ?
		mongo_json_show_value(&iter, false, 0) : NULL;
}

/*
 * mongo_reads_one_collection
 *		Tells whether statistics prove that the table reads no other collection.
 *
 * They do if it has no pipeline and its collection has indexes, which a view lacks.
 */
bool
mongo_reads_one_collection(Oid relid)
{
	const MongoStatistics *statistics = mongo_statistics_of(relid);

	return statistics != NULL && statistics->nindexes > 0 &&
		mongo_table_options(relid)->pipeline == NULL;
}

/*-------------------------------------------------------------------------
 * The table that stores statistics.
 *
 * It is read and written as PostgreSQL does with its catalogs: directly, with the newest
 * snapshot.  So it needs no privilege that a user could misuse, and runs no code of a
 * user.
 *
 * A row belongs to its foreign table by OID.  Only an event trigger, which would slow down
 * every DROP in the database, could remove the row with that table.  Instead the view hides
 * rows of dropped tables, and the next write deletes them.
 *-------------------------------------------------------------------------
 */

#define TABLE_NAME	"mongo_fdw_statistics_data"

/* The table's columns. */
enum
{
	COLUMN_RELID = 1,
	COLUMN_COLLECTION,
	COLUMN_LEARNED_AT,
	COLUMN_DOCUMENTS,
	COLUMN_DOCUMENT_SIZE,
	COLUMN_INDEXES,
	COLUMN_ROUND_TRIP_TIME,
	COLUMN_BANDWIDTH,
	COLUMN_COUNT = COLUMN_BANDWIDTH
};

static const Oid column_types[COLUMN_COUNT] = {
	OIDOID, TEXTOID, TIMESTAMPTZOID, FLOAT8OID, FLOAT8OID, JSONOID, FLOAT8OID, FLOAT8OID
};

/* Up to so many blocks are scanned sequentially, which costs less than opening the index. */
#define FEW_BLOCKS	16

/* Tells whether the table has our columns: a user may have created one of this name. */
static bool
has_our_columns(Relation table)
{
	TupleDesc	tuple = RelationGetDescr(table);

	if (table->rd_rel->relkind != RELKIND_RELATION || tuple->natts != COLUMN_COUNT)
		return false;
	for (int i = 0; i < COLUMN_COUNT; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tuple, i);
		bool		nullable = i >= COLUMN_INDEXES - 1;

		if (attribute->attisdropped || attribute->atttypid != column_types[i] ||
			attribute->attnotnull == nullable)
			return false;
	}
	return true;
}

/* Tells whether CREATE EXTENSION created the table. */
static bool
belongs_to_extension(Relation table)
{
	Oid			extension = get_extension_oid("mongo_fdw", true);

	return OidIsValid(extension) &&
		getExtensionOfObject(RelationRelationId, RelationGetRelid(table)) == extension;
}

/*
 * Open the table for the row of a foreign table; NULL if it does not exist, does not
 * have our columns, or is to be written but is not the extension's.
 */
static Relation
open_table(Oid relid, LOCKMODE lock)
{
	ForeignServer *server = GetForeignServer(GetForeignTable(relid)->serverid);
	Oid			handler = GetForeignDataWrapper(server->fdwid)->fdwhandler;
	Oid			oid = InvalidOid;
	Relation	table;

	/*
	 * The table is in the schema of the wrapper's handler function. Following
	 * the extension's dependencies would also find it in another schema, but
	 * takes a third of the work of a new session's first query; the catalog
	 * rows used here are already cached then.
	 */
	if (OidIsValid(handler))
		oid = get_relname_relid(TABLE_NAME, get_func_namespace(handler));
	table = OidIsValid(oid) ? try_table_open(oid, lock) : NULL;

	if (table != NULL && (!has_our_columns(table) ||
						  (lock != AccessShareLock && !belongs_to_extension(table))))
	{
		table_close(table, lock);
		return NULL;
	}
	return table;
}

/* Scans the table for the row of one foreign table. */
static SysScanDesc
begin_scan(Relation table, Oid relid, ScanKey key)
{
	Oid			index = InvalidOid;

	if (RelationGetNumberOfBlocks(table) > FEW_BLOCKS)
	{
		list_free(RelationGetIndexList(table));
		index = table->rd_pkindex;
	}
	ScanKeyInit(key, COLUMN_RELID, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	return systable_beginscan(table, index, OidIsValid(index), NULL, 1, key);
}

/* Returns a column's value; -1 if it is NULL. */
static double
measured(const Datum *values, const bool *isnull, int column)
{
	return isnull[column - 1] ? -1 : DatumGetFloat8(values[column - 1]);
}

/*
 * Read a foreign table's row, in the current memory context.  NULL if there is no row,
 * if it is about another collection that the table had before, or if the extension's
 * SQL objects are older than this library and lack the table.
 */
static MongoStatistics *
read_statistics(Oid relid)
{
	const MongoTableOptions *options = mongo_table_options(relid);
	Relation	table = open_table(relid, AccessShareLock);
	MongoStatistics *statistics = NULL;
	Datum		values[COLUMN_COUNT];
	bool		isnull[COLUMN_COUNT];
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (table == NULL)
		return NULL;
	scan = begin_scan(table, relid, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		heap_deform_tuple(tuple, RelationGetDescr(table), values, isnull);
	if (HeapTupleIsValid(tuple) &&
		strcmp(TextDatumGetCString(values[COLUMN_COLLECTION - 1]),
			   psprintf("%s.%s", options->database, options->collection)) == 0)
	{
		bson_t	   *holder = mongo_bson_create();
		bson_iter_t iter;

		statistics = palloc0(sizeof(MongoStatistics));
		statistics->documents = DatumGetFloat8(values[COLUMN_DOCUMENTS - 1]);
		statistics->round_trip_time = measured(values, isnull, COLUMN_ROUND_TRIP_TIME);
		statistics->bandwidth = measured(values, isnull, COLUMN_BANDWIDTH);
		/* NULL: MongoDB did not list the indexes */
		mongo_append_datum(holder, "indexes", -1, values[COLUMN_INDEXES - 1],
						   isnull[COLUMN_INDEXES - 1], JSONOID, -1);
		if (bson_iter_init_find(&iter, holder, "indexes"))
			mongo_parse_indexes(&iter, statistics);
	}
	systable_endscan(scan);
	table_close(table, AccessShareLock);
	return statistics;
}

/*
 * Deletes the rows of foreign tables that have been dropped, and sets the new row's bandwidth to
 * that in another row of the same server, if it is NULL: a small sample shows none.
 *
 * Does not wait for a concurrent session that deletes the same rows.
 */
static void
visit_other_rows(Relation table, Oid relid, Datum *values, bool *isnull)
{
	Oid			serverid = GetForeignTable(relid)->serverid;
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Datum		others[COLUMN_COUNT];
		bool		others_null[COLUMN_COUNT];
		Oid			other;
		TM_FailureData failure;

		heap_deform_tuple(tuple, RelationGetDescr(table), others, others_null);
		other = DatumGetObjectId(others[COLUMN_RELID - 1]);
		if (!SearchSysCacheExists1(FOREIGNTABLEREL, ObjectIdGetDatum(other)))
			mongo_table_tuple_delete(table, &tuple->t_self, GetCurrentCommandId(true), &failure);
		else if (isnull[COLUMN_BANDWIDTH - 1] && !others_null[COLUMN_BANDWIDTH - 1] &&
				 other != relid && GetForeignTable(other)->serverid == serverid)
		{
			values[COLUMN_BANDWIDTH - 1] = Float8GetDatum(DatumGetFloat8(others[COLUMN_BANDWIDTH - 1]));
			isnull[COLUMN_BANDWIDTH - 1] = false;
		}
	}
	systable_endscan(scan);
}

/*
 * Insert a foreign table's row, or replace the former one.
 *
 * Other sessions see it when the transaction has committed and sent the invalidation that
 * makes them read it.  Needs no privilege and writes in read-only transactions, as ANALYZE
 * itself does.  The caller must hold a lock on the foreign table that no other writer can
 * hold.  Also deletes rows of dropped tables.  Does nothing if the table is missing.
 */
static void
write_row(Oid relid, Datum *values, bool *isnull)
{
	Relation	table = open_table(relid, RowExclusiveLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	former;
	HeapTuple	tuple;

	if (table == NULL)
		return;
	/* one statement may write a row twice, as for a table with children */
	CommandCounterIncrement();
	visit_other_rows(table, relid, values, isnull);
	tuple = heap_form_tuple(RelationGetDescr(table), values, isnull);
	scan = begin_scan(table, relid, &key);
	former = systable_getnext(scan);
	if (HeapTupleIsValid(former))
		CatalogTupleUpdate(table, &former->t_self, tuple);
	else
		CatalogTupleInsert(table, tuple);
	systable_endscan(scan);

	/* the lock is kept, as for any table that was written */
	table_close(table, NoLock);
	CacheInvalidateRelcacheByRelid(relid);
}

/* ------------------- collections that do not exist -------------------------- */

/* Raises a WARNING that a table's collection does not exist. */
static void
warn_of_missing(Oid relid, UserMapping *user)
{
	const MongoTableOptions *options = mongo_table_options(relid);
	const char *meant = mongo_nearest_collection(user, options->database, options->collection);
	bool		has_database = false;

	foreach_node(DefElem, option, GetForeignTable(relid)->options)
		has_database |= strcmp(option->defname, "database") == 0;
	ereport(WARNING,
			(errmsg("collection \"%s.%s\" of foreign table \"%s\" does not exist",
					options->database, options->collection, get_rel_name(relid)),
			 has_database ? 0 :
			 errdetail("The table has no option database, so that the database is \"%s\".", options->database),
			 meant == NULL ? 0 :
			 errhint("Perhaps the collection \"%s\" is meant: set the table's option collection.", meant)));
}

/*
 * mongo_note_scan
 *		Notes that a scan of a foreign table has ended, with or without rows.
 *
 * Raises a WARNING if the first one of a session has none because the collection does not exist.
 * To know that takes a command, which is only sent if neither ANALYZE nor a count has seen it.
 */
void
mongo_note_scan(Oid relid, UserMapping *user, bool has_rows)
{
	MongoTableFacts *facts = mongo_table_facts(relid);
	const MongoTableOptions *options;
	const MongoStatistics *statistics;
	MongoStatistics indexes;
	const char *refusal;

	if (facts->scanned)
		return;
	facts->scanned = true;
	if (has_rows || facts->documents > 0)
		return;
	options = mongo_table_options(relid);
	statistics = mongo_statistics_of(relid);
	if (options->pipeline != NULL || options->change_stream != NULL ||
		(statistics != NULL && (statistics->documents > 0 || statistics->nindexes > 0)))
		return;
	if (mongo_list_indexes(user, options->database, options->collection, &indexes,
						   &refusal) == INDEXES_OF_NOTHING)
		warn_of_missing(relid, user);
}

/* --------------------------- storing statistics ----------------------------- */

/* Bytes of a sample that show a bandwidth: the first ones of a reply come with its header. */
#define LEAST_SAMPLE_BYTES	200000

/* So many more commands measure the round trip, if they take no longer than this. */
#define MOST_PINGS	10
#define PINGING_MS	50

/*
 * Returns the shortest round trip, in ms; -1 if none was measured.  What was sent before may have
 * taken MongoDB long, and a busy machine lets any single command wait.
 */
static double
measure_round_trip(UserMapping *user)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), PINGING_MS);

	for (int i = 0; i < MOST_PINGS && GetCurrentTimestamp() < end; i++)
		(void) mongo_run_command(CurrentMemoryContext, user, "admin", mongo_from_template("{ping: 1}"), NULL);
	return mongo_round_trip_time(user);
}

/*
 * mongo_store_statistics
 *		Lists the collection's indexes, and stores them and what ANALYZE has measured.
 *
 * That is the number of its documents, their average size in bytes, and the network's round trip
 * time and bandwidth.  'sample' is what reading the sample has caused.
 *
 * Raises a WARNING for a collection that does not exist, and a NOTICE for one whose indexes MongoDB
 * does not list.  The former statistics remain if this raises an error, or if the transaction is
 * rolled back.  Raises what mongo_list_indexes() raises.
 */
void
mongo_store_statistics(Relation relation, UserMapping *user, const MongoTableOptions *options,
					   double documents, double document_size, const MongoUsage *sample)
{
	double		bandwidth = sample->bytes_received < LEAST_SAMPLE_BYTES ? -1 :
		sample->bytes_received * 1e6 / Max(sample->transfer_us, 1);
	double		round_trip_time;
	char	   *collection = psprintf("%s.%s", options->database, options->collection);
	Datum		values[COLUMN_COUNT];
	bool		isnull[COLUMN_COUNT] = {false};
	MongoStatistics indexes;
	const char *refusal;
	IndexListing listing = mongo_list_indexes(user, options->database, options->collection,
											  &indexes, &refusal);

	if (listing == INDEXES_OF_NOTHING)
		warn_of_missing(RelationGetRelid(relation), user);
	else if (listing == INDEXES_REFUSED)
		ereport(NOTICE,
				(errmsg("could not list the indexes of collection \"%s\"", collection),
				 errdetail("MongoDB answered: %s", refusal),
				 errhint("Let the user mapping's user run listIndexes, or say which columns are indexed by the option indexed.")));

	values[COLUMN_RELID - 1] = ObjectIdGetDatum(RelationGetRelid(relation));
	values[COLUMN_COLLECTION - 1] = CStringGetTextDatum(collection);
	values[COLUMN_LEARNED_AT - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
	values[COLUMN_DOCUMENTS - 1] = Float8GetDatum(documents);
	values[COLUMN_DOCUMENT_SIZE - 1] = Float8GetDatum(document_size);
	values[COLUMN_INDEXES - 1] = (Datum) 0;
	isnull[COLUMN_INDEXES - 1] = listing == INDEXES_REFUSED;
	if (listing != INDEXES_REFUSED)
	{
		StringInfoData json;

		initStringInfo(&json);
		for (int i = 0; i < indexes.nindexes; i++)
		{
			const char *described = describe_index(user, options, &indexes.indexes[i]);

			if (described != NULL)
				appendStringInfo(&json, "%s%s", json.len > 0 ? ", " : "", described);
		}
		values[COLUMN_INDEXES - 1] = CStringGetTextDatum(psprintf("[%s]", json.data));
	}
	round_trip_time = measure_round_trip(user);
	values[COLUMN_ROUND_TRIP_TIME - 1] = Float8GetDatum(round_trip_time);
	isnull[COLUMN_ROUND_TRIP_TIME - 1] = round_trip_time < 0;
	values[COLUMN_BANDWIDTH - 1] = Float8GetDatum(bandwidth);
	isnull[COLUMN_BANDWIDTH - 1] = bandwidth < 0;
	write_row(RelationGetRelid(relation), values, isnull);
}

/*-------------------------------------------------------------------------
 * The statistics, as planning reads them.
 *
 * A foreign table's row is read once per session and cached with the table's options until
 * the relation cache entry is invalidated, which ANALYZE does after writing the row.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_statistics_of
 *		Returns the statistics of a foreign table's collection.
 *
 * NULL if there are none, or if they are those of another collection that the table had before.
 *
 * Must be called within a transaction, with a lock on the table.  The result is valid until the end
 * of the transaction, even if newer statistics are stored meanwhile.  The first call reads a table
 * and raises what that raises; later ones cost a hash look-up.
 */
const MongoStatistics *
mongo_statistics_of(Oid relid)
{
	MongoTableFacts *kept = mongo_table_facts(relid);

	if (!kept->statistics_read)
	{
		MemoryContext previous = MemoryContextSwitchTo(kept->context);

		kept->statistics = read_statistics(relid);
		kept->statistics_read = true;
		MemoryContextSwitchTo(previous);
	}
	return kept->statistics;
}
