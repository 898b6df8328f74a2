/*-------------------------------------------------------------------------
 *
 * effective.c
 *		The effective options of connections, tables and columns; cached for tables.
 *
 * All options have passed the validator (options.c), so reading them raises no error.  A table's
 * option overrides its server's; what neither gives has the default of the option table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "options_internal.h"
#include "convert.h"

#include <float.h>

#include "access/htup_details.h"
#include "catalog/pg_attribute.h"
#include "commands/defrem.h"
#include "utils/catcache.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* ------------ Effective options, as the structs of options.h -------------- */

/* documents of the first getMore if fetch_size is not given */
#define FIRST_FETCH_SIZE	10000

/* Sets a struct's fields to the defaults in the option table. */
static void
read_defaults(void *result, MongoOptionTarget target)
{
	for (int i = 0; i < mongo_option_count; i++)
	{
		const MongoOption *option = &mongo_option_table[i];
		MongoOption unbounded = *option;

		if (option->target != target || option->initial == NULL)
			continue;

		/* -1 as a default means "not given", although no user may give it */
		unbounded.min = -DBL_MAX;
		option->parse(&unbounded, option->initial, (char *) result + option->offset);
	}
}

/*
 * The defaults, parsed once per session because each transaction that writes needs a
 * connection's options.  Strings point into the option table.
 */
static MongoConnectionOptions connection_defaults;
static MongoTableOptions table_defaults;

static void
load_defaults(void)
{
	static bool loaded = false;

	if (loaded)
		return;
	read_defaults(&connection_defaults, TARGET_CONNECTION);
	read_defaults(&table_defaults, TARGET_TABLE);
	loaded = true;
}

/* Parses an object's options into the struct that is their target. */
static void
read_options(void *result, MongoOptionTarget target, int object, List *definitions)
{
	foreach_node(DefElem, definition, definitions)
	{
		const MongoOption *option = mongo_find_option(definition->defname, object);

		if (option != NULL && option->target == target)
			option->parse(option, defGetString(definition),
						  (char *) result + option->offset);
	}
}

/*
 * mongo_connection_options
 *		Returns the options of a connection, from its server and user mapping, palloc'd.  Strings
 *		point into the lists of options.
 */
MongoConnectionOptions *
mongo_connection_options(ForeignServer *server, UserMapping *user)
{
	MongoConnectionOptions *result = palloc(sizeof(MongoConnectionOptions));

	load_defaults();
	*result = connection_defaults;
	result->server_name = server->servername;
	read_options(result, TARGET_CONNECTION, ON_SERVER, server->options);
	read_options(result, TARGET_CONNECTION, ON_MAPPING, user->options);

	return result;
}

/*
 * mongo_import_options
 *		Returns the options of an IMPORT FOREIGN SCHEMA.  Raises HV00D for an unknown option,
 *		22023 for an invalid value.
 */
MongoImportOptions
mongo_import_options(List *definitions)
{
	MongoImportOptions result = {0};

	foreach_node(DefElem, definition, definitions)
		mongo_require_option(definition->defname, ON_IMPORT);
	read_defaults(&result, TARGET_IMPORT);
	read_options(&result, TARGET_IMPORT, ON_IMPORT, definitions);
	return result;
}

/*
 * mongo_read_concern
 *		Returns the read concern for reads outside of transactions, from the server's options or
 *		its URI, in the current memory context; NULL: none.
 *
 * Reads only two options, because planning calls it.
 */
const char *
mongo_read_concern(ForeignServer *server)
{
	foreach_node(DefElem, option, server->options)
	{
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
 * The cache of the options of tables and columns.
 *
 * Reading them takes several catalog look-ups and parsing, a tenth of this backend's work
 * for a point query.
 *-------------------------------------------------------------------------
 */

/* A table in the cache, with a memory context of its own. */
typedef struct CachedTable
{
	MongoTableOptions *options; /* NULL: not read yet */
	int			ncolumns;		/* length of columns[] */
	MongoColumnOptions **columns;	/* by attribute number - 1; NULL: not read */
	MongoColumnFacts *column_facts; /* NULL: not read yet */
	MongoTableFacts facts;
} CachedTable;

typedef struct CachedTableEntry
{
	Oid			relid;			/* hash key */
	CachedTable *table;			/* NULL: could not be allocated */
} CachedTableEntry;

static HTAB *cached_tables = NULL;

/* The entry that was found last, or NULL: planning asks for one table many times. */
static CachedTableEntry *found_last = NULL;

/* Removes a table from the cache.  Callers may use its data until the transaction ends. */
static void
forget_table(CachedTableEntry *entry)
{
	CachedTable *table = entry->table;

	found_last = NULL;
	hash_search(cached_tables, &entry->relid, HASH_REMOVE, NULL);
	if (table == NULL)
		return;
	if (TopTransactionContext != NULL)
		MemoryContextSetParent(table->facts.context, TopTransactionContext);
	else
		MemoryContextDelete(table->facts.context);
}

/* Relcache callback for DDL and ANALYZE; InvalidOid stands for all tables. */
static void
table_has_changed(Datum arg pg_attribute_unused(), Oid relid)
{
	HASH_SEQ_STATUS status;
	CachedTableEntry *entry;

	if (OidIsValid(relid))
	{
		entry = hash_search(cached_tables, &relid, HASH_FIND, NULL);
		if (entry != NULL)
			forget_table(entry);
		return;
	}
	hash_seq_init(&status, cached_tables);
	while ((entry = hash_seq_search(&status)) != NULL)
		forget_table(entry);
}

/* Syscache callback for options of a table, server or user mapping. */
static void
options_have_changed(Datum arg, int cacheid pg_attribute_unused(),
					 uint32 hashvalue pg_attribute_unused())
{
	table_has_changed(arg, InvalidOid);
}

/* Finds or adds a table.  The result is valid until the transaction ends, whatever changes. */
static CachedTable *
cached_table(Oid relid)
{
	CachedTableEntry *entry;
	bool		found;

	if (found_last != NULL && found_last->relid == relid)
		return found_last->table;
	if (cached_tables == NULL)
	{
		HASHCTL		control = {
			.keysize = sizeof(Oid),
			.entrysize = sizeof(CachedTableEntry),
			.hcxt = CacheMemoryContext,
		};

		cached_tables = hash_create("mongo_fdw tables", 16, &control,
									HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		CacheRegisterRelcacheCallback(table_has_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(FOREIGNTABLEREL, options_have_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(FOREIGNSERVEROID, options_have_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(USERMAPPINGOID, options_have_changed, (Datum) 0);
	}
	entry = hash_search(cached_tables, &relid, HASH_ENTER, &found);
	if (!found)
		entry->table = NULL;
	if (entry->table == NULL)
	{
		/* reparented when complete, so that an ERROR leaks nothing */
		MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "mongo_fdw table",
													  ALLOCSET_SMALL_SIZES);
		CachedTable *table = MemoryContextAllocZero(context, sizeof(CachedTable));

		table->facts.context = context;
		MemoryContextSetParent(context, CacheMemoryContext);
		entry->table = table;
	}
	found_last = entry;
	return entry->table;
}

/*
 * mongo_table_facts
 *		Returns the data that src/catalog caches for a table, valid as long as the table's
 *		options.
 */
MongoTableFacts *
mongo_table_facts(Oid foreigntableid)
{
	return &cached_table(foreigntableid)->facts;
}

/*
 * The columns of a change stream whose paths in its events are fixed.  The others read the
 * document that has changed.
 */
static const struct
{
	const char *name;
	const char *path;
	const char *parameter;
}			stream_columns[] = {
	{"__operation", "operationType", NULL},
	{MONGO_TOKEN_COLUMN, "_id", MONGO_STREAM_TOKEN},
	{MONGO_CLUSTER_TIME_COLUMN, "_id", MONGO_STREAM_CLUSTER_TIME},
	{"__time", "clusterTime", MONGO_STREAM_TIME},
	{"__key", "documentKey", NULL},
	{"__id", "documentKey._id", NULL},
	{"__before", "fullDocumentBeforeChange", NULL},
	{"__database", "ns.db", NULL},
	{"__collection", "ns.coll", NULL},
};

/* Sets path and parameter of a column, whose path in the document is given. */
static void
set_stream_column(MongoColumnOptions *options, const char *name)
{
	options->path = psprintf("%s.%s", MONGO_STREAM_DOCUMENT, options->path);
	options->parameter = NULL;
	for (size_t i = 0; i < lengthof(stream_columns); i++)
	{
		if (strcmp(name, stream_columns[i].name) != 0)
			continue;
		options->path = stream_columns[i].path;
		options->parameter = stream_columns[i].parameter;
	}
}

static MongoTableOptions *
read_table_options(Oid relid)
{
	MongoTableOptions *result = palloc(sizeof(MongoTableOptions));
	ForeignTable *table = GetForeignTable(relid);
	ForeignServer *server = GetForeignServer(table->serverid);

	load_defaults();
	*result = table_defaults;
	read_options(result, TARGET_TABLE, ON_SERVER, server->options);
	read_options(result, TARGET_TABLE, ON_TABLE, table->options);
	if (result->collection == NULL)
		result->collection = get_rel_name(relid);
	result->batches_grow = result->fetch_size == 0;
	if (result->batches_grow)
		result->fetch_size = FIRST_FETCH_SIZE;
	if (result->change_stream != NULL)
	{
		/* it has no end up to which MongoDB could sort */
		result->pushdown_disable |= 1u << MONGO_FEATURE_SORT;
		result->async_capable = false;
		if (strcmp(result->change_stream, "server") == 0)
			result->database = "admin";
	}
	return result;
}

/*
 * mongo_table_options
 *		Returns the options of a table, its server's included.  They are cached until an
 *		invalidation; a result stays valid until the end of the transaction.
 */
const MongoTableOptions *
mongo_table_options(Oid foreigntableid)
{
	CachedTable *table = cached_table(foreigntableid);

	if (table->options == NULL)
	{
		MemoryContext previous = MemoryContextSwitchTo(table->facts.context);

		table->options = read_table_options(foreigntableid);
		MemoryContextSwitchTo(previous);
	}
	return table->options;
}

/*
 * mongo_column_options
 *		Returns the options of a column, cached like those of the table.
 */
const MongoColumnOptions *
mongo_column_options(Oid foreigntableid, AttrNumber attnum)
{
	CachedTable *table = cached_table(foreigntableid);
	MemoryContext previous;
	MongoColumnOptions *options;
	const char *name;

	if (attnum <= table->ncolumns && table->columns[attnum - 1] != NULL)
		return table->columns[attnum - 1];

	(void) mongo_table_options(foreigntableid);
	previous = MemoryContextSwitchTo(table->facts.context);
	options = palloc0(sizeof(MongoColumnOptions));
	name = get_attname(foreigntableid, attnum, false);
	options->is_pseudo = mongo_is_pseudo_column(name);
	options->type_mismatch = table->options->type_mismatch;
	read_options(options, TARGET_COLUMN, ON_COLUMN,
				 GetForeignColumnOptions(foreigntableid, attnum));
	if (options->path == NULL)
		options->path = name;
	options->path = mongo_to_utf8(options->path);
	if (options->parameter != NULL)
		options->parameter = mongo_to_utf8(options->parameter);
	if (table->options->change_stream != NULL)
		set_stream_column(options, name);
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

/*
 * mongo_column_facts
 *		Returns what the columns of a table have in common, cached like the options.
 */
const MongoColumnFacts *
mongo_column_facts(Oid foreigntableid)
{
	CachedTable *table = cached_table(foreigntableid);
	MongoColumnFacts *result = table->column_facts;
	const MongoTableOptions *tables_own;
	bool		has_token = false;
	MemoryContext previous;
	CatCList   *columns;

	if (result != NULL)
		return result;
	tables_own = mongo_table_options(foreigntableid);
	columns = SearchSysCacheList1(ATTNUM, ObjectIdGetDatum(foreigntableid));
	previous = MemoryContextSwitchTo(table->facts.context);
	result = palloc0(sizeof(MongoColumnFacts));
	for (int i = 0; i < columns->n_members; i++)
	{
		HeapTuple	tuple = &columns->members[i]->tuple;
		Form_pg_attribute column = (Form_pg_attribute) GETSTRUCT(tuple);

		if (column->attnum <= 0 || column->attisdropped)
			continue;
		if (strcmp(NameStr(column->attname), MONGO_MISMATCH_COLUMN) == 0)
			result->shown_by = column->attnum;
		else if (heap_attisnull(tuple, Anum_pg_attribute_attfdwoptions, NULL) &&
				 tables_own->change_stream == NULL)
			result->mismatches |= 1 << tables_own->type_mismatch;
		else
		{
			const MongoColumnOptions *options = mongo_column_options(foreigntableid, column->attnum);

			result->mismatches |= 1 << options->type_mismatch;
			/* of several starts of a change stream the most exact one counts */
			if (options->parameter != NULL && tables_own->change_stream != NULL &&
				strcmp(options->parameter, MONGO_STREAM_TIME) != 0)
				result->parameters = list_insert_nth_int(result->parameters,
														 strcmp(options->parameter, MONGO_STREAM_TOKEN) != 0 && has_token,
														 column->attnum);
			else if (options->parameter != NULL)
				result->parameters = lappend_int(result->parameters, column->attnum);
			has_token |= options->parameter != NULL && strcmp(options->parameter, MONGO_STREAM_TOKEN) == 0;
		}
	}
	MemoryContextSwitchTo(previous);
	ReleaseCatCacheList(columns);
	table->column_facts = result;
	return result;
}
