/*-------------------------------------------------------------------------
 *
 * statistics.c
 *		What ANALYZE learns of a collection: asked for, kept in a table, and read by
 *		planning.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "common/string.h"
#include "commands/extension.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* ------------------------------ indexes, asked for -------------------------- */

/* More than the 64 that a collection may have. */
#define BATCH_SIZE	1000

/* MongoDB's error codes, src/mongo/base/error_codes.yml */
#define NAMESPACE_NOT_FOUND				26
#define COMMAND_NOT_SUPPORTED_ON_VIEW	166

static MongoKeyKind
key_kind(const bson_iter_t *key)
{
	if (strstr(bson_iter_key(key), "$**") != NULL)
		return MONGO_KEY_WILDCARD;
	if (BSON_ITER_HOLDS_NUMBER(key))
		return bson_iter_as_double(key) < 0 ? MONGO_KEY_DESCENDING : MONGO_KEY_ASCENDING;
	if (BSON_ITER_HOLDS_UTF8(key) && strcmp(bson_iter_utf8(key, NULL), "hashed") == 0)
		return MONGO_KEY_HASHED;
	return MONGO_KEY_OTHER;
}

/*
 * index_uses
 *		What can this index find documents for, whatever else a query asks: a set
 *		of MONGO_INDEX_*.  All of *index but 'uses' must be filled in.
 *
 * One over some documents only, one that MongoDB's planner does not see and one
 * that compares strings in another way serve nothing; nor do those with a field of
 * a special kind anywhere, which leave out documents without that field.
 */
static int
index_uses(const MongoIndex *index)
{
	const char *path = index->nkeys > 0 ? index->keys[0].path : "";

	if (index->nkeys == 0 || index->partial || index->hidden || index->collated)
		return 0;
	/* over each of many fields by itself */
	if (index->nkeys == 1 && index->keys[0].kind == MONGO_KEY_WILDCARD &&
		pg_str_endswith(path, "$**"))
		return MONGO_INDEX_EQUALITY | MONGO_INDEX_RANGE;
	for (int i = 0; i < index->nkeys; i++)
	{
		if (index->keys[i].kind > MONGO_KEY_HASHED)
			return 0;
	}
	if (index->keys[0].kind == MONGO_KEY_HASHED)
		return MONGO_INDEX_EQUALITY;

	/*
	 * where documents are missing, or stand in several places, there is no
	 * order
	 */
	return index->sparse || index->multikey ?
		MONGO_INDEX_EQUALITY | MONGO_INDEX_RANGE : MONGO_INDEX_ANY_USE;
}

/* parse_keys: false when there are none. */
static bool
parse_keys(const bson_t *listed, MongoIndex *index)
{
	bson_iter_t iter;
	bson_iter_t key;
	bson_t		keys;

	if (!bson_iter_init_find(&iter, listed, "key") || !bson_view_at(&keys, &iter) ||
		!bson_iter_init(&key, &keys))
		return false;
	index->keys = palloc(sizeof(MongoIndexKey) * Max(bson_count_keys(&keys), 1));
	while (bson_iter_next(&key))
		index->keys[index->nkeys++] = (MongoIndexKey) {bson_iter_key(&key), key_kind(&key)};
	return index->nkeys > 0;
}

static bool
flag_of(const bson_t *listed, const char *name)
{
	bson_iter_t iter;

	return bson_iter_init_find(&iter, listed, name) && bson_iter_as_bool(&iter);
}

/* parse_index: false for what is no index.  Strings belong to 'listed'. */
static bool
parse_index(const bson_t *listed, MongoIndex *index)
{
	bson_iter_t iter;

	if (!bson_iter_init_find(&iter, listed, "name") || !BSON_ITER_HOLDS_UTF8(&iter) ||
		!parse_keys(listed, index))
		return false;
	index->document = listed;
	index->name = bson_iter_utf8(&iter, NULL);

	/* MongoDB does not say it of its own; another one may be a time series' */
	index->unique = flag_of(listed, "unique") || strcmp(index->name, "_id_") == 0;
	index->sparse = flag_of(listed, "sparse");
	index->hidden = flag_of(listed, "hidden");
	index->multikey = flag_of(listed, "multikey");
	index->partial = bson_has_field(listed, "partialFilterExpression") ||
		bson_has_field(listed, "wildcardProjection");
	index->collated = bson_has_field(listed, "collation");
	index->uses = index_uses(index);
	return true;
}

/* parse_indexes: of an array, in the current memory context. */
static void
parse_indexes(const bson_iter_t *array, MongoStatistics *result)
{
	bson_iter_t each;
	bson_t		view;

	if (!BSON_ITER_HOLDS_ARRAY(array) || !bson_iter_recurse(array, &each))
		return;
	result->indexes = palloc0(sizeof(MongoIndex));
	while (bson_iter_next(&each))
	{
		MongoIndex	index = {0};

		if (!bson_view_at(&view, &each) ||
			!parse_index(bson_copy_in(CurrentMemoryContext, &view), &index))
			continue;
		result->indexes = repalloc(result->indexes, sizeof(MongoIndex) * (result->nindexes + 1));
		result->indexes[result->nindexes++] = index;
	}
}

/* answer_of: what an error of listIndexes means. */
static IndexAnswer
answer_of(const bson_t *reply, const char **refusal)
{
	bson_iter_t iter;
	int64		code = 0;

	if (bson_iter_init_find(&iter, reply, "code") && BSON_ITER_HOLDS_NUMBER(&iter))
		code = bson_iter_as_int64(&iter);
	if (code == NAMESPACE_NOT_FOUND)
		return INDEXES_OF_NOTHING;
	if (code == COMMAND_NOT_SUPPORTED_ON_VIEW)
		return INDEXES_OF_A_VIEW;
	*refusal = bson_iter_init_find(&iter, reply, "errmsg") && BSON_ITER_HOLDS_UTF8(&iter) &&
		mongo_text_is_valid(bson_iter_utf8(&iter, NULL), strlen(bson_iter_utf8(&iter, NULL))) ?
		mongo_from_utf8(pstrdup(bson_iter_utf8(&iter, NULL))) : "unknown error";
	return INDEXES_REFUSED;
}

IndexAnswer
index_list(UserMapping *user, const char *database, const char *collection,
		   MongoStatistics *indexes, const char **refusal)
{
	const bson_t *command = bson_from_template("{listIndexes: @1, cursor: {batchSize: @2}}",
											   bson_utf8(mongo_to_utf8(collection)),
											   bson_int32(BATCH_SIZE));
	const bson_t *reply = mongo_run_command(CurrentMemoryContext, user,
											mongo_to_utf8(database), command, NULL);
	bson_iter_t iter;
	bson_iter_t batch;

	*refusal = NULL;
	*indexes = (MongoStatistics) {0};
	if (!bson_iter_init_find(&iter, reply, "ok") || !bson_iter_as_bool(&iter))
		return answer_of(reply, refusal);
	if (bson_iter_init(&iter, reply) &&
		bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch))
		parse_indexes(&batch, indexes);
	return INDEXES_LISTED;
}

/* ------------------------------ multikey ----------------------------------- */

/*
 * find_is_multikey
 *		Look for isMultiKey in an explained plan: its stages are nested, and in
 *		other places in each version of MongoDB.
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
 * ask_multikey
 *		Has a document had an array in a field of this index?  False when MongoDB
 *		does not say.
 *
 * Only explain tells.  It plans a scan of the index, and runs nothing.
 */
static bool
ask_multikey(UserMapping *user, const char *database, const char *collection,
			 const char *utf8_name, bool *multikey)
{
	const bson_t *command =
		bson_from_template("{explain: {find: @1, filter: {}, hint: @2}, verbosity: 'queryPlanner'}",
						   bson_utf8(mongo_to_utf8(collection)), bson_utf8(utf8_name));
	const bson_t *reply = mongo_run_command(CurrentMemoryContext, user,
											mongo_to_utf8(database), command, NULL);
	bson_iter_t iter;

	return bson_iter_init(&iter, reply) && find_is_multikey(&iter, multikey);
}

/* ------------------------------ describing --------------------------------- */

/*
 * describe_index
 *		As JSON, as MongoDB lists it, and with "multikey" where MongoDB tells that; NULL for
 *		one with a text that the database's encoding lacks.
 */
static char *
describe_index(UserMapping *user, const MongoTableOptions *options, const MongoIndex *index)
{
	bson_t	   *document = bson_copy_in(CurrentMemoryContext, index->document);
	const bson_t *holder;
	bson_iter_t iter;
	bool		ordinary = true;
	bool		multikey;

	for (int i = 0; i < index->nkeys; i++)
		ordinary &= index->keys[i].kind <= MONGO_KEY_DESCENDING;
	if (ordinary && ask_multikey(user, options->database, options->collection,
								 index->name, &multikey))
		BSON_APPEND_BOOL(document, "multikey", multikey);
	holder = bson_from_template("{index: @1}", bson_document(document));
	return bson_iter_init_find(&iter, holder, "index") ?
		mongo_json_show_value(&iter, false, 0) : NULL;
}

bool
mongo_reads_one_collection(Oid relid)
{
	const MongoStatistics *statistics = mongo_statistics_of(relid);

	return statistics != NULL && statistics->nindexes > 0 &&
		mongo_table_options(relid)->pipeline == NULL;
}

/*-------------------------------------------------------------------------
 * The rows in which what ANALYZE has learned is kept.
 *
 * The table is read and written as PostgreSQL does with its catalogs: directly,
 * with the newest snapshot.  So no privilege is needed that a user could misuse,
 * and no code of a user runs.
 *
 * A row belongs to its foreign table by OID.  Nothing can make it vanish with
 * that table but an event trigger, which every DROP in the database would have to
 * pass; instead the view shows only rows of tables that are there, and whoever
 * writes removes the others.
 *-------------------------------------------------------------------------
 */

#define TABLE_NAME	"mongo_fdw_statistics_data"

/* Its columns. */
enum
{
	COLUMN_RELID = 1,
	COLUMN_COLLECTION,
	COLUMN_LEARNED_AT,
	COLUMN_DOCUMENTS,
	COLUMN_DOCUMENT_SIZE,
	COLUMN_INDEXES,
	COLUMN_COUNT = COLUMN_INDEXES
};

static const Oid column_types[COLUMN_COUNT] = {
	OIDOID, TEXTOID, TIMESTAMPTZOID, FLOAT8OID, FLOAT8OID, JSONOID
};

/* A table of no more blocks is read whole, which costs less than to open its index. */
#define FEW_BLOCKS	16

/* Where the extension has no such table, somebody may have made one. */
static bool
has_our_columns(Relation table)
{
	TupleDesc	tuple = RelationGetDescr(table);

	if (table->rd_rel->relkind != RELKIND_RELATION || tuple->natts != COLUMN_COUNT)
		return false;
	for (int i = 0; i < COLUMN_COUNT; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tuple, i);
		bool		nullable = i == COLUMN_INDEXES - 1;

		if (attribute->attisdropped || attribute->atttypid != column_types[i] ||
			attribute->attnotnull == nullable)
			return false;
	}
	return true;
}

/* belongs_to_extension: or has somebody else made it? */
static bool
belongs_to_extension(Relation table)
{
	Oid			extension = get_extension_oid("mongo_fdw", true);

	return OidIsValid(extension) &&
		getExtensionOfObject(RelationRelationId, RelationGetRelid(table)) == extension;
}

/*
 * open_table
 *		For the row of a foreign table; NULL when there is no table that we know, or may
 *		write to.
 */
static Relation
open_table(Oid relid, LOCKMODE lock)
{
	ForeignServer *server = GetForeignServer(GetForeignTable(relid)->serverid);
	Oid			handler = GetForeignDataWrapper(server->fdwid)->fdwhandler;
	Oid			oid = InvalidOid;
	Relation	table;

	/*
	 * It is beside the wrapper's handler function.  To follow the extension's
	 * dependencies would be as sure of an extension whose objects are in
	 * several schemas, but takes a third of what a new session does for its
	 * first query; these catalog rows are in its caches already.
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

/* begin_scan: for the row of one table. */
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

/*
 * read_statistics
 *		In the current memory context; NULL when there is no row, or one about a collection
 *		that the table had before, or when the extension's SQL objects are older than this
 *		library and have no table.
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
		bson_t	   *holder = bson_create_in(CurrentMemoryContext);
		bson_iter_t iter;

		statistics = palloc0(sizeof(MongoStatistics));
		statistics->documents = DatumGetFloat8(values[COLUMN_DOCUMENTS - 1]);
		/* NULL: MongoDB would not tell */
		mongo_append_datum(holder, "indexes", -1, values[COLUMN_INDEXES - 1],
						   isnull[COLUMN_INDEXES - 1], JSONOID, -1);
		if (bson_iter_init_find(&iter, holder, "indexes"))
			parse_indexes(&iter, statistics);
	}
	systable_endscan(scan);
	table_close(table, AccessShareLock);
	return statistics;
}

/*
 * remove_orphans
 *		Delete rows of foreign tables that have been dropped.
 *
 * Whoever else does so at the same time may win: nothing is waited for.
 */
static void
remove_orphans(Relation table)
{
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		relid = heap_getattr(tuple, COLUMN_RELID, RelationGetDescr(table),
										 &isnull);
		TM_FailureData failure;

		if (!SearchSysCacheExists1(FOREIGNTABLEREL, relid))
			table_tuple_delete(table, &tuple->t_self, GetCurrentCommandId(true),
							   InvalidSnapshot, InvalidSnapshot, false, &failure,
							   false);
	}
	systable_endscan(scan);
}

/*
 * write_row
 *		Put this row in the place of the table's former one, if any.
 *
 * Other sessions see it when the transaction has committed, which also sends the
 * invalidation that makes them read it.  Needs no privilege and writes in
 * read-only transactions, as ANALYZE itself does.  The caller must hold a lock on
 * the foreign table that no other writer can hold.  Rows of tables that are no
 * longer there are removed on the way.  Does nothing without the table.
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
	tuple = heap_form_tuple(RelationGetDescr(table), values, isnull);

	/* one statement may write a row twice, as for a table with children */
	CommandCounterIncrement();
	scan = begin_scan(table, relid, &key);
	former = systable_getnext(scan);
	if (HeapTupleIsValid(former))
		CatalogTupleUpdate(table, &former->t_self, tuple);
	else
		CatalogTupleInsert(table, tuple);
	systable_endscan(scan);
	remove_orphans(table);

	/* the lock is kept, as for any table that was written */
	table_close(table, NoLock);
	CacheInvalidateRelcacheByRelid(relid);
}

/* ------------------------------ learning ------------------------------------ */

void
mongo_learn(Relation relation, UserMapping *user, const MongoTableOptions *options,
			double documents, double document_size)
{
	char	   *collection = psprintf("%s.%s", options->database, options->collection);
	Datum		values[COLUMN_COUNT];
	bool		isnull[COLUMN_COUNT] = {false};
	MongoStatistics indexes;
	const char *refusal;
	IndexAnswer answer = index_list(user, options->database, options->collection,
									&indexes, &refusal);

	if (answer == INDEXES_OF_NOTHING)
		ereport(NOTICE,
				(errmsg("collection \"%s\" of foreign table \"%s\" does not exist",
						collection, RelationGetRelationName(relation))));
	else if (answer == INDEXES_REFUSED)
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
	isnull[COLUMN_INDEXES - 1] = answer == INDEXES_REFUSED;
	if (answer != INDEXES_REFUSED)
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
	write_row(RelationGetRelid(relation), values, isnull);
}

/*-------------------------------------------------------------------------
 * What has been learned of collections, as planning reads it.
 *
 * Each table's row is read once a session and kept with its options until the
 * table's relation cache entry is invalidated, which ANALYZE does when it has written
 * the row.
 *-------------------------------------------------------------------------
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
