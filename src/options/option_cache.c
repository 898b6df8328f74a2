/*-------------------------------------------------------------------------
 *
 * option_cache.c
 *		The options of tables and columns, remembered until they change.
 *
 * Reading them takes several catalog lookups and the parsing of texts, which
 * is a tenth of what this backend computes for a point query.  Callers get
 * copies, so that an entry can be dropped whenever an invalidation comes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "option_table.h"

#include "option_readers.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

typedef struct CachedTable
{
	Oid			relid;			/* hash key */
	MemoryContext context;		/* of what is below; deleted with the entry */
	MongoTableOptions *options;
	int			ncolumns;		/* length of columns[] */
	MongoColumnOptions **columns;	/* by attribute number - 1; NULL: not read */
} CachedTable;

static HTAB *cached_tables = NULL;

/* Where the texts are in the structs that options are read into. */
static struct
{
	int			count;
	size_t		offsets[16];
}			text_fields[TARGET_COLUMN + 1];

/* Counts invalidations, so that what was read across one is not kept. */
static uint64 invalidations = 0;

static void
forget_table(CachedTable *entry)
{
	MemoryContext context = entry->context;

	hash_search(cached_tables, &entry->relid, HASH_REMOVE, NULL);
	MemoryContextDelete(context);
}

/* forget_all: what the server says holds for any of its tables. */
static void
forget_all(void)
{
	HASH_SEQ_STATUS status;
	CachedTable *entry;

	hash_seq_init(&status, cached_tables);
	while ((entry = hash_seq_search(&status)) != NULL)
		forget_table(entry);
}

/* Relcache callback: a table or its columns have changed; InvalidOid: any. */
static void
options_of_table_have_changed(Datum arg pg_attribute_unused(), Oid relid)
{
	CachedTable *entry;

	invalidations++;
	if (!OidIsValid(relid))
		forget_all();
	else if ((entry = hash_search(cached_tables, &relid, HASH_FIND, NULL)) != NULL)
		forget_table(entry);
}

/* Syscache callback: options of some server or foreign table have changed. */
static void
options_have_changed(Datum arg pg_attribute_unused(),
					 int cacheid pg_attribute_unused(),
					 uint32 hashvalue pg_attribute_unused())
{
	invalidations++;
	forget_all();
}

/* note_text_fields: two options can have one field, as an older name has. */
static void
note_text_fields(void)
{
	for (int i = 0; i < mongo_option_count; i++)
	{
		const MongoOption *option = &mongo_option_table[i];
		bool		noted = false;

		if (option->target == TARGET_CONNECTION || !mongo_option_is_text(option))
			continue;
		for (int j = 0; j < text_fields[option->target].count; j++)
			noted |= text_fields[option->target].offsets[j] == option->offset;
		if (noted)
			continue;
		if (text_fields[option->target].count == lengthof(text_fields[0].offsets))
			elog(ERROR, "too many options are texts");
		text_fields[option->target].offsets[text_fields[option->target].count++] =
			option->offset;
	}
}

static void
create_option_cache(void)
{
	HASHCTL		control = {
		.keysize = sizeof(Oid),
		.entrysize = sizeof(CachedTable),
		.hcxt = CacheMemoryContext,
	};

	note_text_fields();
	cached_tables = hash_create("mongo_fdw table options", 16, &control,
								HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	CacheRegisterRelcacheCallback(options_of_table_have_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(FOREIGNTABLEREL, options_have_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(FOREIGNSERVEROID, options_have_changed, (Datum) 0);
}

/* copy_options: with the texts that the options are made of. */
static void *
copy_options(const void *source, size_t size, MongoOptionTarget target)
{
	char	   *result = palloc(size);

	memcpy(result, source, size);
	for (int i = 0; i < text_fields[target].count; i++)
	{
		char	  **text = (char **) (result + text_fields[target].offsets[i]);

		if (*text != NULL)
			*text = pstrdup(*text);
	}
	return result;
}

/* find_table: the entry for a table, made if need be; NULL if not to be kept. */
static CachedTable *
find_table(Oid relid)
{
	CachedTable *entry;
	MemoryContext context;
	MemoryContext old_context;
	MongoTableOptions *options;
	uint64		before;

	if (cached_tables == NULL)
		create_option_cache();
	entry = hash_search(cached_tables, &relid, HASH_FIND, NULL);
	if (entry != NULL)
		return entry;

	before = invalidations;
	options = mongo_read_table_options(relid);
	if (invalidations != before)
		return NULL;

	/* the cache's only when it is complete, so that an ERROR leaves nothing */
	context = AllocSetContextCreate(CurrentMemoryContext, "mongo_fdw table options",
									ALLOCSET_SMALL_SIZES);
	old_context = MemoryContextSwitchTo(context);
	options = copy_options(options, sizeof(MongoTableOptions), TARGET_TABLE);
	MemoryContextSwitchTo(old_context);
	entry = hash_search(cached_tables, &relid, HASH_ENTER, NULL);
	entry->context = context;
	entry->options = options;
	entry->ncolumns = 0;
	entry->columns = NULL;
	MemoryContextSetParent(context, CacheMemoryContext);
	return entry;
}

MongoTableOptions *
mongo_table_options(Oid foreigntableid)
{
	CachedTable *entry = find_table(foreigntableid);

	if (entry == NULL)
		return mongo_read_table_options(foreigntableid);
	return copy_options(entry->options, sizeof(MongoTableOptions), TARGET_TABLE);
}

/* keep_column puts a copy of a column's options into its table's entry. */
static void
keep_column(CachedTable *entry, AttrNumber attnum, const MongoColumnOptions *options)
{
	MemoryContext old_context = MemoryContextSwitchTo(entry->context);

	if (attnum > entry->ncolumns)
	{
		MongoColumnOptions **columns = palloc0(sizeof(*columns) * (attnum + 8));

		if (entry->ncolumns > 0)
			memcpy(columns, entry->columns, sizeof(*columns) * entry->ncolumns);
		entry->columns = columns;
		entry->ncolumns = attnum + 8;
	}
	entry->columns[attnum - 1] = copy_options(options, sizeof(MongoColumnOptions),
											  TARGET_COLUMN);
	MemoryContextSwitchTo(old_context);
}

MongoColumnOptions *
mongo_column_options(Oid foreigntableid, AttrNumber attnum)
{
	CachedTable *entry = find_table(foreigntableid);
	MongoColumnOptions *options;
	uint64		before = invalidations;

	if (entry != NULL && attnum <= entry->ncolumns &&
		entry->columns[attnum - 1] != NULL)
		return copy_options(entry->columns[attnum - 1], sizeof(MongoColumnOptions),
							TARGET_COLUMN);

	options = mongo_read_column_options(foreigntableid, attnum);
	if (entry != NULL && invalidations == before)
		keep_column(entry, attnum, options);
	return options;
}
