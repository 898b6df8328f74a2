/*-------------------------------------------------------------------------
 *
 * in_force.c
 *		The options in force, remembered for tables and columns.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "options_internal.h"
#include "convert.h"

#include <float.h>

#include "commands/defrem.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* ----------- The options in force, as the structs of options.h ------------ */

/* documents a getMore asks for first, where fetch_size is not given */
#define FIRST_FETCH_SIZE	10000

/* read_defaults: what the rows of the table say that holds when nothing is given. */
static void
read_defaults(void *result, MongoOptionTarget target)
{
	for (int i = 0; i < mongo_option_count; i++)
	{
		const MongoOption *option = &mongo_option_table[i];
		MongoOption unbounded = *option;

		if (option->target != target || option->initial == NULL)
			continue;

		/* a default may say "not given" by a value nobody else may give */
		unbounded.min = -DBL_MAX;
		option->parse(&unbounded, option->initial, (char *) result + option->offset);
	}
}

/*
 * What holds when nothing is given, parsed once in a session: each transaction
 * that writes asks for a connection's options.  Strings are those of the table.
 */
static MongoConnectionOptions connection_defaults;
static MongoTableOptions table_defaults;

static void
learn_defaults(void)
{
	static bool learned = false;

	if (learned)
		return;
	read_defaults(&connection_defaults, TARGET_CONNECTION);
	read_defaults(&table_defaults, TARGET_TABLE);
	learned = true;
}

/* read_options: those of one object that belong to the struct; others are passed over. */
static void
read_options(void *result, MongoOptionTarget target, int object, List *definitions)
{
	ListCell   *cell;

	foreach(cell, definitions)
	{
		DefElem    *definition = lfirst_node(DefElem, cell);
		const MongoOption *option = mongo_find_option(definition->defname, object);

		if (option != NULL && option->target == target)
			option->parse(option, defGetString(definition),
						  (char *) result + option->offset);
	}
}

MongoConnectionOptions *
mongo_connection_options(ForeignServer *server, UserMapping *user)
{
	MongoConnectionOptions *result = palloc(sizeof(MongoConnectionOptions));

	learn_defaults();
	*result = connection_defaults;
	result->server_name = server->servername;
	read_options(result, TARGET_CONNECTION, ON_SERVER, server->options);
	read_options(result, TARGET_CONNECTION, ON_MAPPING, user->options);

	return result;
}

MongoImportOptions
mongo_import_options(List *definitions)
{
	MongoImportOptions result = {0};
	ListCell   *cell;

	foreach(cell, definitions)
		mongo_require_option(lfirst_node(DefElem, cell)->defname, ON_IMPORT);
	read_defaults(&result, TARGET_IMPORT);
	read_options(&result, TARGET_IMPORT, ON_IMPORT, definitions);
	return result;
}

/*
 * mongo_read_concern
 *
 * Planning asks for it, so the other options are not read.
 */
const char *
mongo_read_concern(ForeignServer *server)
{
	ListCell   *cell;

	foreach(cell, server->options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);
		const mongoc_uri_t *uri;
		bson_error_t error;

		if (strcmp(option->defname, "read_concern") == 0)
			return defGetString(option);
		if (strcmp(option->defname, "uri") != 0)
			continue;
		uri = mongo_uri_parse(defGetString(option), &error);
		if (uri != NULL)
			return mongoc_read_concern_get_level(mongoc_uri_get_read_concern(uri));
	}
	return NULL;
}

/*-------------------------------------------------------------------------
 * The options of tables and columns, remembered until they change.
 *
 * Reading them takes several catalog lookups and the parsing of texts, which
 * is a tenth of what this backend computes for a point query.
 *-------------------------------------------------------------------------
 */

/* What is known of a table, in a memory context of its own. */
typedef struct KnownTable
{
	MongoTableOptions *options; /* NULL: not read yet */
	int			ncolumns;		/* length of columns[] */
	MongoColumnOptions **columns;	/* by attribute number - 1; NULL: not read */
	MongoTableFacts kept;
} KnownTable;

typedef struct KnownTableEntry
{
	Oid			relid;			/* hash key */
	KnownTable *table;			/* NULL: there was no memory for it */
} KnownTableEntry;

static HTAB *known_tables = NULL;

/* forget_table: somebody may read what is known until the transaction is over. */
static void
forget_table(KnownTableEntry *entry)
{
	KnownTable *table = entry->table;

	hash_search(known_tables, &entry->relid, HASH_REMOVE, NULL);
	if (table == NULL)
		return;
	if (TopTransactionContext != NULL)
		MemoryContextSetParent(table->kept.context, TopTransactionContext);
	else
		MemoryContextDelete(table->kept.context);
}

/* Relcache callback: a table or its columns have changed, or it was analyzed; InvalidOid: any. */
static void
table_has_changed(Datum arg pg_attribute_unused(), Oid relid)
{
	HASH_SEQ_STATUS status;
	KnownTableEntry *entry;

	if (OidIsValid(relid))
	{
		entry = hash_search(known_tables, &relid, HASH_FIND, NULL);
		if (entry != NULL)
			forget_table(entry);
		return;
	}
	hash_seq_init(&status, known_tables);
	while ((entry = hash_seq_search(&status)) != NULL)
		forget_table(entry);
}

/* Syscache callback: options of some server, which hold for any of its tables, or of a table. */
static void
options_have_changed(Datum arg, int cacheid pg_attribute_unused(),
					 uint32 hashvalue pg_attribute_unused())
{
	table_has_changed(arg, InvalidOid);
}

/* known_table: it stays until the end of the transaction, whatever changes meanwhile. */
static KnownTable *
known_table(Oid relid)
{
	KnownTableEntry *entry;
	bool		found;

	if (known_tables == NULL)
	{
		HASHCTL		control = {
			.keysize = sizeof(Oid),
			.entrysize = sizeof(KnownTableEntry),
			.hcxt = CacheMemoryContext,
		};

		known_tables = hash_create("mongo_fdw tables", 16, &control,
								   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		CacheRegisterRelcacheCallback(table_has_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(FOREIGNTABLEREL, options_have_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(FOREIGNSERVEROID, options_have_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(USERMAPPINGOID, options_have_changed, (Datum) 0);
	}
	entry = hash_search(known_tables, &relid, HASH_ENTER, &found);
	if (!found)
		entry->table = NULL;
	if (entry->table == NULL)
	{
		/*
		 * the cache's only when it is complete, so that an ERROR leaves
		 * nothing
		 */
		MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "mongo_fdw table",
													  ALLOCSET_SMALL_SIZES);
		KnownTable *table = MemoryContextAllocZero(context, sizeof(KnownTable));

		table->kept.context = context;
		MemoryContextSetParent(context, CacheMemoryContext);
		entry->table = table;
	}
	return entry->table;
}

MongoTableFacts *
mongo_table_facts(Oid foreigntableid)
{
	return &known_table(foreigntableid)->kept;
}

static MongoTableOptions *
read_table_options(Oid relid)
{
	MongoTableOptions *result = palloc(sizeof(MongoTableOptions));
	ForeignTable *table = GetForeignTable(relid);
	ForeignServer *server = GetForeignServer(table->serverid);

	learn_defaults();
	*result = table_defaults;
	read_options(result, TARGET_TABLE, ON_SERVER, server->options);
	read_options(result, TARGET_TABLE, ON_TABLE, table->options);
	if (result->collection == NULL)
		result->collection = get_rel_name(relid);
	result->batches_grow = result->fetch_size == 0;
	if (result->batches_grow)
		result->fetch_size = FIRST_FETCH_SIZE;
	return result;
}

const MongoTableOptions *
mongo_table_options(Oid foreigntableid)
{
	KnownTable *table = known_table(foreigntableid);

	if (table->options == NULL)
	{
		MemoryContext previous = MemoryContextSwitchTo(table->kept.context);

		table->options = read_table_options(foreigntableid);
		MemoryContextSwitchTo(previous);
	}
	return table->options;
}

const MongoColumnOptions *
mongo_column_options(Oid foreigntableid, AttrNumber attnum)
{
	KnownTable *table = known_table(foreigntableid);
	MemoryContext previous;
	MongoColumnOptions *options;

	if (attnum <= table->ncolumns && table->columns[attnum - 1] != NULL)
		return table->columns[attnum - 1];

	previous = MemoryContextSwitchTo(table->kept.context);
	options = palloc0(sizeof(MongoColumnOptions));
	read_options(options, TARGET_COLUMN, ON_COLUMN,
				 GetForeignColumnOptions(foreigntableid, attnum));
	if (options->path == NULL)
		options->path = get_attname(foreigntableid, attnum, false);
	options->path = mongo_to_utf8(options->path);
	if (attnum > table->ncolumns)
	{
		MongoColumnOptions **columns = palloc0(sizeof(*columns) * (attnum + 8));

		if (table->ncolumns > 0)
			memcpy(columns, table->columns, sizeof(*columns) * table->ncolumns);
		table->columns = columns;
		table->ncolumns = attnum + 8;
	}
	table->columns[attnum - 1] = options;
	MemoryContextSwitchTo(previous);
	return options;
}
