/*-------------------------------------------------------------------------
 *
 * statistics.c
 *		What has been learned of collections, as planning reads it.
 *
 * Each table's row is read once a session and kept until the table's relation
 * cache entry is invalidated, which ANALYZE does when it has written the row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "statistics.h"

#include "encoding.h"
#include "index_keys.h"
#include "options.h"
#include "statistics_table.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"

/* ------------------------------ reading jsonb ------------------------------ */

/* Whatever a row holds, these find something: nothing, zero, false, "". */

static JsonbValue *
member(JsonbContainer *object, const char *key)
{
	if (object == NULL || !JsonContainerIsObject(object))
		return NULL;
	return getKeyJsonValueFromContainer(object, key, (int) strlen(key), NULL);
}

/* container_of: an object or array; NULL for anything else. */
static JsonbContainer *
container_of(const JsonbValue *value)
{
	return value != NULL && value->type == jbvBinary ? value->val.binary.data : NULL;
}

static int
length_of(JsonbContainer *array)
{
	return array != NULL && JsonContainerIsArray(array) ? JsonContainerSize(array) : 0;
}

static JsonbContainer *
element(JsonbContainer *array, int i)
{
	return container_of(getIthJsonbValueFromContainer(array, i));
}

static bool
bool_member(JsonbContainer *object, const char *key)
{
	const JsonbValue *value = member(object, key);

	return value != NULL && value->type == jbvBool && value->val.boolean;
}

static double
number_of(const JsonbValue *value)
{
	if (value == NULL || value->type != jbvNumeric)
		return 0;
	return DatumGetFloat8(DirectFunctionCall1(numeric_float8,
											  NumericGetDatum(value->val.numeric)));
}

static char *
text_of(const JsonbValue *value)
{
	if (value == NULL || value->type != jbvString)
		return pstrdup("");
	return pnstrdup(value->val.string.val, value->val.string.len);
}

/* path_member: in UTF-8, as the paths of columns are. */
static const char *
path_member(JsonbContainer *object)
{
	return mongo_to_utf8(text_of(member(object, "path")));
}

/* ------------------------------ indexes ------------------------------------ */

static void
read_index(JsonbContainer *object, MongoIndex *index)
{
	JsonbContainer *keys = container_of(member(object, "fields"));

	index->name = text_of(member(object, "name"));
	index->nkeys = length_of(keys);
	index->keys = palloc0(sizeof(MongoIndexKey) * Max(index->nkeys, 1));
	for (int i = 0; i < index->nkeys; i++)
	{
		JsonbContainer *key = element(keys, i);

		index->keys[i].path = path_member(key);
		index->keys[i].kind = index_key_kind_from_name(text_of(member(key, "kind")));
	}
	index->unique = bool_member(object, "unique");
	index->sparse = bool_member(object, "sparse");
	index->hidden = bool_member(object, "hidden");
	index->partial = member(object, "partial") != NULL || member(object, "projection") != NULL;
	index->collated = member(object, "collation") != NULL;
	index->multikey_known = member(object, "multikey") != NULL;
	index->multikey = bool_member(object, "multikey");
	index->uses = index_uses(index);
}

static void
read_indexes(JsonbContainer *array, MongoStatistics *statistics)
{
	statistics->nindexes = length_of(array);
	statistics->indexes = palloc0(sizeof(MongoIndex) * Max(statistics->nindexes, 1));
	for (int i = 0; i < statistics->nindexes; i++)
		read_index(element(array, i), &statistics->indexes[i]);
}

/* ------------------------------ fields ------------------------------------- */

static void
read_types(JsonbContainer *object, MongoLearnedField *field)
{
	JsonbIterator *iterator;
	JsonbValue	value;
	JsonbIteratorToken token;

	if (object == NULL || !JsonContainerIsObject(object))
		return;
	field->types = palloc0(sizeof(MongoTypeShare) * Max(JsonContainerSize(object), 1));
	iterator = JsonbIteratorInit(object);
	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			field->types[field->ntypes].type = text_of(&value);
		else if (token == WJB_VALUE)
			field->types[field->ntypes++].share = number_of(&value);
	}
}

static void
read_fields(JsonbContainer *array, MongoStatistics *statistics)
{
	statistics->nfields = length_of(array);
	statistics->fields = palloc0(sizeof(MongoLearnedField) * Max(statistics->nfields, 1));
	for (int i = 0; i < statistics->nfields; i++)
	{
		JsonbContainer *object = element(array, i);
		MongoLearnedField *field = &statistics->fields[i];

		field->path = path_member(object);
		field->missing = number_of(member(object, "missing"));
		field->arrays = number_of(member(object, "arrays"));
		read_types(container_of(member(object, "types")), field);
	}
}

/* is_current: is the row about the collection that the table has now? */
static bool
is_current(const StatisticsRow *row)
{
	const MongoTableOptions *options = mongo_table_options(row->relid);

	return strcmp(row->collection, psprintf("%s.%s", options->database,
											options->collection)) == 0;
}

bool
mongo_statistics_origin(Oid relid, MongoStatisticsOrigin *origin)
{
	StatisticsRow row;

	if (!statistics_row_read(relid, &row))
		return false;
	origin->learned_at = row.learned_at;
	origin->collection = row.collection;
	origin->is_current = is_current(&row);
	return true;
}

/*
 * read_statistics
 *		In the current memory context; NULL when there is nothing, or when it is
 *		about a collection that the table had before.
 */
static MongoStatistics *
read_statistics(Oid relid)
{
	MongoStatistics *statistics;
	StatisticsRow row;

	if (!statistics_row_read(relid, &row) || !is_current(&row))
		return NULL;

	statistics = palloc0(sizeof(MongoStatistics));
	statistics->relid = relid;
	statistics->learned_at = row.learned_at;
	statistics->documents = row.documents;
	statistics->document_size = row.document_size;
	statistics->sampled = row.sampled;
	statistics->indexes_known = row.indexes_known;
	if (row.indexes_known)
		read_indexes(&DatumGetJsonbP(row.indexes)->root, statistics);
	read_fields(&DatumGetJsonbP(row.fields)->root, statistics);
	return statistics;
}

/* ------------------------------ the cache ---------------------------------- */

typedef struct CachedStatistics
{
	Oid			relid;			/* hash key */
	MemoryContext context;		/* of what is below */
	const MongoStatistics *statistics;	/* NULL: nothing is known */
} CachedStatistics;

static HTAB *cached_statistics = NULL;

/* Counts invalidations, so that what was read across one is not kept. */
static uint64 invalidations = 0;

/* forget_entry: somebody may read it until the transaction is over. */
static void
forget_entry(CachedStatistics *entry)
{
	MemoryContext context = entry->context;

	hash_search(cached_statistics, &entry->relid, HASH_REMOVE, NULL);
	if (TopTransactionContext != NULL)
		MemoryContextSetParent(context, TopTransactionContext);
	else
		MemoryContextDelete(context);
}

/* Relcache callback: a table has changed, or has been analyzed; InvalidOid: any. */
static void
table_has_changed(Datum arg pg_attribute_unused(), Oid relid)
{
	HASH_SEQ_STATUS status;
	CachedStatistics *entry;

	invalidations++;
	if (OidIsValid(relid))
	{
		entry = hash_search(cached_statistics, &relid, HASH_FIND, NULL);
		if (entry != NULL)
			forget_entry(entry);
		return;
	}
	hash_seq_init(&status, cached_statistics);
	while ((entry = hash_seq_search(&status)) != NULL)
		forget_entry(entry);
}

static void
create_cache(void)
{
	HASHCTL		control = {
		.keysize = sizeof(Oid),
		.entrysize = sizeof(CachedStatistics),
		.hcxt = CacheMemoryContext,
	};

	cached_statistics = hash_create("mongo_fdw statistics", 16, &control,
									HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	CacheRegisterRelcacheCallback(table_has_changed, (Datum) 0);
}

/* read_into_cache: for the caller alone where an invalidation came meanwhile. */
static const MongoStatistics *
read_into_cache(Oid relid)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "mongo_fdw statistics",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext previous = MemoryContextSwitchTo(context);
	uint64		before = invalidations;
	const MongoStatistics *statistics = read_statistics(relid);

	MemoryContextSwitchTo(previous);
	if (invalidations == before)
	{
		CachedStatistics *entry = hash_search(cached_statistics, &relid, HASH_ENTER, NULL);

		entry->context = context;
		entry->statistics = statistics;
		MemoryContextSetParent(context, CacheMemoryContext);
	}
	return statistics;
}

const MongoStatistics *
mongo_statistics_of(Oid relid)
{
	CachedStatistics *entry;

	if (cached_statistics == NULL)
		create_cache();
	entry = hash_search(cached_statistics, &relid, HASH_FIND, NULL);
	return entry != NULL ? entry->statistics : read_into_cache(relid);
}
