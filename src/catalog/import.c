/*-------------------------------------------------------------------------
 *
 * import.c
 *		IMPORT FOREIGN SCHEMA.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"
#include "translate.h"

#include "access/reloptions.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "common/keywords.h"
#include "commands/defrem.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/scansup.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

PG_FUNCTION_INFO_V1(mongo_fdw_import_preview);
PG_FUNCTION_INFO_V1(mongo_fdw_imported_name);

static List *import_array_tables(const ImportSource *source, const ImportTable *table,
								 HTAB *names);

/*-------------------------------------------------------------------------
 * IMPORT FOREIGN SCHEMA: the collections of a database as foreign tables.
 *
 * A table has a column for each field of a sample of the documents.  The column's option
 * path is the location of the field, so its name can be adapted to SQL.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_import_source
 *		Evaluates the options (DefElem *) of an import.
 *
 * Raises what mongo_import_options() and mongo_caller_mapping() raise.
 */
ImportSource
mongo_import_source(List *definitions, ForeignServer *server, const char *database)
{
	ImportSource source = {
		.user = mongo_caller_mapping(server),
		.server_name = server->servername,
		.database = database,
		.options = mongo_import_options(definitions)
	};

	source.objectid_type = source.options.objectid_as_text ? "text" :
		format_type_be_qualified(mongo_objectid_type_oid());
	return source;
}

/* ----------------- SQL names: not too long and not in use ----------------- */

typedef struct ImportName
{
	char		name[NAMEDATALEN];
	int			number;			/* the last one that was appended to it */
} ImportName;

/*
 * mongo_import_names_create
 *		Returns an empty set of names in use.
 */
HTAB *
mongo_import_names_create(void)
{
	HASHCTL		control = {
		.keysize = NAMEDATALEN,
		.entrysize = sizeof(ImportName),
		.hcxt = CurrentMemoryContext
	};

	return hash_create("mongo_fdw imported names", 64, &control,
					   HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
}

/*
 * mongo_import_reserve_name
 *		Adds a name to the names in use; false if it was there or is too long for an SQL name.
 */
bool
mongo_import_reserve_name(HTAB *names, const char *name)
{
	ImportName *entry;
	bool		found;

	if (strlen(name) >= NAMEDATALEN)
		return false;
	entry = hash_search(names, name, HASH_ENTER, &found);
	if (!found)
		entry->number = 0;
	return !found;
}

/* Cuts a name to 63 bytes between characters, and appends _1, _2, ... if in use. */
static char *
choose_name(HTAB *names, const char *wanted)
{
	int			length = (int) strlen(wanted);
	char	   *name = pnstrdup(wanted, pg_mbcliplen(wanted, length, NAMEDATALEN - 1));
	ImportName *first;

	if (mongo_import_reserve_name(names, name))
		return name;
	first = hash_search(names, name, HASH_FIND, NULL);
	do
	{
		char		suffix[16];
		int			kept;

		CHECK_FOR_INTERRUPTS();
		pfree(name);
		snprintf(suffix, sizeof(suffix), "_%d", ++first->number);
		kept = pg_mbcliplen(wanted, length, NAMEDATALEN - 1 - (int) strlen(suffix));
		name = psprintf("%.*s%s", kept, wanted, suffix);
	} while (!mongo_import_reserve_name(names, name));
	return name;
}

#define IS_LOWER(c)	((c) >= 'a' && (c) <= 'z')
#define IS_UPPER(c)	((c) >= 'A' && (c) <= 'Z')
#define IS_DIGIT(c)	((c) >= '0' && (c) <= '9')

/* Returns an SQL name without quotes: of fooBar, "Foo bar" and foo-bar it is foo_bar. */
static const char *
snake_case(const char *name)
{
	StringInfoData result;
	int			keyword;
	bool		gap = false;

	initStringInfo(&result);
	for (const char *c = name; *c != '\0'; c++)
	{
		bool		is_word = IS_HIGHBIT_SET(*c) || IS_LOWER(*c) || IS_UPPER(*c) || IS_DIGIT(*c);

		gap |= !is_word && *c != '_';
		if (gap && !is_word)
			continue;
		gap |= c > name && IS_UPPER(*c) && (IS_LOWER(c[-1]) || IS_DIGIT(c[-1]) ||
											(IS_UPPER(c[-1]) && IS_LOWER(c[1])));
		if (result.len == 0 ? IS_DIGIT(*c) : gap && result.data[result.len - 1] != '_')
			appendStringInfoChar(&result, '_');
		appendStringInfoChar(&result, *c);
		gap = false;
	}
	if (result.len == 0)
		appendStringInfoChar(&result, '_');
	name = downcase_identifier(result.data, result.len, false, false);
	keyword = ScanKeywordLookup(name, &ScanKeywords);
	return keyword >= 0 && (ScanKeywordCategories[keyword] == RESERVED_KEYWORD ||
							ScanKeywordCategories[keyword] == TYPE_FUNC_NAME_KEYWORD) ?
		psprintf("%s_", name) : name;
}

/* Returns the name that a collection or field has in SQL if that is free. */
static const char *
wanted_name(const MongoImportOptions *options, const char *name)
{
	return options->snake_case ? snake_case(name) :
		options->lower_case_names ? downcase_identifier(name, (int) strlen(name), false, false) : name;
}

/*
 * mongo_fdw_imported_name
 *		mongo_fdw_imported_name(collection text, options text[]): returns the name of the table to
 *		which an import with these options imports a collection, if it is free.
 */
Datum
mongo_fdw_imported_name(PG_FUNCTION_ARGS)
{
	MongoImportOptions options = mongo_import_options(untransformRelOptions(PG_GETARG_DATUM(1)));
	const char *name = wanted_name(&options, text_to_cstring(PG_GETARG_TEXT_PP(0)));

	return DirectFunctionCall1(namein, CStringGetDatum(name));
}

/* ------------------------------ commands ----------------------------------- */

/*
 * mongo_import_reads_null
 *		Tells whether the table's option type_mismatch is to be 'null'.
 */
bool
mongo_import_reads_null(const ImportSource *source, const ImportTable *table)
{
	return table->unreadable != NULL ||
		(source->options.mismatch_null && (table->has_misfits || !table->sample->is_complete));
}

/*
 * mongo_import_append_column
 *		Appends "name type OPTIONS (...)", for CREATE and ALTER.
 */
void
mongo_import_append_column(StringInfo command, const ImportColumn *column)
{
	bool		needs_path = strcmp(column->name, column->path) != 0;

	appendStringInfo(command, "%s %s", quote_identifier(column->name), column->type);
	if (!needs_path && !column->indexed)
		return;

	appendStringInfoString(command, " OPTIONS (");
	if (needs_path)
		appendStringInfo(command, "path %s", quote_literal_cstr(column->path));
	if (column->indexed)
		appendStringInfo(command, "%sindexed 'true'", needs_path ? ", " : "");
	appendStringInfoChar(command, ')');
}

/* Builds the CREATE FOREIGN TABLE command for a table. */
static char *
create_command(const ImportSource *source, const ImportTable *table)
{
	bool		reads_null = mongo_import_reads_null(source, table);
	StringInfoData command;
	bool		first = true;

	initStringInfo(&command);
	appendStringInfo(&command, "CREATE FOREIGN TABLE %s%s (",
					 source->options.skip_existing ? "IF NOT EXISTS " : "",
					 quote_qualified_identifier(source->schema, table->name));
	foreach_ptr(const ImportColumn, column, table->columns)
	{
		appendStringInfoString(&command, first ? "\n\t" : ",\n\t");
		mongo_import_append_column(&command, column);
		first = false;
	}
	if (table->whole_document)
		appendStringInfo(&command, "%s\n\t%s jsonb", first ? "" : ",",
						 quote_identifier(MONGO_DOCUMENT_COLUMN));
	if (source->options.mismatch_null && reads_null)
		appendStringInfo(&command, ",\n\t%s jsonb", MONGO_MISMATCH_COLUMN);
	appendStringInfo(&command, "\n) SERVER %s OPTIONS (database %s, collection %s",
					 quote_identifier(source->server_name),
					 quote_literal_cstr(source->database),
					 quote_literal_cstr(table->collection->name));
	if (table->unwound != NULL)
		appendStringInfo(&command, ", unwind %s, ordinality %s",
						 quote_literal_cstr(table->unwound),
						 quote_literal_cstr(table->ordinality));
	if (reads_null)
		appendStringInfoString(&command, ", type_mismatch 'null'");
	appendStringInfoString(&command, ");");
	return command.data;
}

/* Returns the names of the BSON types of these kinds, with commas. */
static const char *
names_of_kinds(uint32 kinds)
{
	StringInfoData names;

	initStringInfo(&names);
	for (int i = 0; i < IMPORT_KINDS; i++)
	{
		bson_type_t type = i < MONGO_TYPE_COUNT ? MONGO_TYPE_OF_BIT(i) :
			(1 << i) == IMPORT_UUID ? BSON_TYPE_BINARY : BSON_TYPE_DATE_TIME;

		if ((kinds & ((uint32) 1 << i)) != 0)
			appendStringInfo(&names, "%s%s", names.len > 0 ? " or " : "", mongo_bson_type_name(type));
	}
	return names.data;
}

/* More columns are not listed. */
#define LISTED_MISFITS	20

/* Reports the values of the sample that the table's columns cannot read. */
static void
note_misfits(const ImportSource *source, const ImportTable *table)
{
	const char *name = quote_qualified_identifier(source->schema, table->name);
	bool		reads_null = mongo_import_reads_null(source, table);
	StringInfoData found;
	int			count = 0;

	initStringInfo(&found);
	foreach_ptr(const ImportColumn, column, table->columns)
	{
		if (column->misfits.count > 0 && ++count <= LISTED_MISFITS)
			appendStringInfo(&found, "%s%s: %.0f of %.0f are %s", count > 1 ? "; " : "", column->name,
							 column->misfits.count, column->misfits.values,
							 names_of_kinds(column->misfits.kinds));
	}
	ereport(NOTICE,
			(errmsg("some values of collection \"%s\" do not fit their columns", table->collection->name),
			 errdetail("%s%s.", found.data, count > LISTED_MISFITS ? "; and others" : ""),
			 !reads_null ? errhint("Reading them is an error. ALTER FOREIGN TABLE %s OPTIONS (ADD type_mismatch 'null'), ADD COLUMN %s jsonb; makes them NULL.",
								   name, MONGO_MISMATCH_COLUMN) :
			 source->options.mismatch_null ? errhint("They are read as NULL, and the column %s shows them.", MONGO_MISMATCH_COLUMN) :
			 errhint("They are read as NULL. ALTER FOREIGN TABLE %s ADD COLUMN %s jsonb; shows them.", name, MONGO_MISMATCH_COLUMN)));
}

/* Warns of fields of the documents that the table's columns do not show. */
static void
warn_about(const ImportTable *table)
{
	const MongoCollection *collection = table->collection;

	if (table->whole_document)
		ereport(WARNING,
				(errmsg("some fields of collection \"%s\" have no column of their own",
						collection->name),
				 errdetail("There are more than %d of them, or their names are empty, hold a dot, or are not UTF-8.",
						   IMPORT_MAX_COLUMNS),
				 errhint("They are in the column %s.", MONGO_DOCUMENT_COLUMN)));
	if (table->unreadable != NULL)
		ereport(WARNING,
				(errmsg("field \"%s\" of collection \"%s\" has values that PostgreSQL cannot hold",
						table->unreadable, collection->name),
				 errdetail("They are strings with U+0000 or invalid UTF-8."),
				 errhint("The table has the option type_mismatch 'null', by which they read as NULL.")));
}

/* Adds _id and __doc for an empty collection. */
static void
add_default_columns(const ImportSource *source, ImportTable *table)
{
	ImportColumn *column = palloc0(sizeof(ImportColumn));

	column->path = column->wanted = "_id";
	column->top_level = true;
	column->type = source->objectid_type;
	table->columns = list_make1(column);
	table->whole_document = true;
	ereport(NOTICE,
			(errmsg("collection \"%s\" is empty", table->collection->name),
			 errdetail("Its table has the columns _id and %s.", MONGO_DOCUMENT_COLUMN)));
}

/* Builds CREATE FOREIGN TABLE, and issues the warnings about the table. */
static char *
table_command(const ImportSource *source, ImportTable *table)
{
	if (table->columns == NIL && !table->whole_document)
		add_default_columns(source, table);
	else
		warn_about(table);
	mongo_import_name_columns(table->columns, mongo_import_names_create());
	if (table->has_misfits)
		note_misfits(source, table);
	return create_command(source, table);
}

/* ------------------------------ tables ------------------------------------- */

/*
 * Would a table's row type of that name conflict with a type, such as objectid?
 *
 * Conflicts with other tables are reported by CREATE FOREIGN TABLE.
 */
static bool
is_type_name(const char *name, Oid namespace)
{
	HeapTuple	tuple;
	bool		result;

	tuple = SearchSysCache2(TYPENAMENSP, CStringGetDatum(name),
							ObjectIdGetDatum(namespace));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = !OidIsValid(((Form_pg_type) GETSTRUCT(tuple))->typrelid) &&
		!OidIsValid(((Form_pg_type) GETSTRUCT(tuple))->typelem);
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Choose names for the tables of all collections, also of excluded ones, so that a
 * name does not depend on what else is imported.  Returns the set of names.
 */
static HTAB *
name_tables(const ImportSource *source, List *collections, Oid namespace)
{
	HTAB	   *names = mongo_import_names_create();

	foreach_ptr(MongoCollection, collection, collections)
	{
		const char *wanted = wanted_name(&source->options, collection->name);

		if (!is_type_name(wanted, namespace) && mongo_import_reserve_name(names, wanted))
			collection->table_name = wanted;
	}
	foreach_ptr(MongoCollection, collection, collections)
	{
		const char *wanted = wanted_name(&source->options, collection->name);

		if (collection->table_name == NULL && is_type_name(wanted, namespace))
			mongo_import_reserve_name(names, wanted);
		if (collection->table_name == NULL)
			collection->table_name = choose_name(names, wanted);
	}
	return names;
}

/* Tells whether a table of that name may come from the collection, or an array in it. */
static bool
may_be_named(const ImportSource *source, const MongoCollection *collection, const char *name)
{
	size_t		length = strlen(collection->table_name);

	return strncmp(collection->table_name, name, length) == 0 &&
		(name[length] == '\0' || (source->options.array_tables && name[length] == '_'));
}

/*
 * Finds the collections that LIMIT TO and EXCEPT name.  PostgreSQL compares names of tables, so
 * those of the named collections are added.  A name in LIMIT TO of neither is a NOTICE.
 */
static void
find_listed(const ImportSource *source, ImportForeignSchemaStmt *statement, List *collections)
{
	List	   *names = NIL;
	List	   *tables = NIL;

	foreach_ptr(MongoCollection, collection, collections)
		names = lappend(names, unconstify(char *, collection->name));
	foreach_node(RangeVar, listed, statement->table_list)
	{
		const char *name = listed->relname;
		const char *meant;
		bool		found = false;

		CHECK_FOR_INTERRUPTS();
		foreach_ptr(MongoCollection, collection, collections)
			found |= may_be_named(source, collection, name);
		foreach_ptr(MongoCollection, collection, collections)
		{
			if (!found && strcmp(collection->name, name) == 0)
			{
				tables = lappend(tables, makeRangeVar(NULL, pstrdup(collection->table_name), -1));
				found = true;
				break;
			}
		}
		if (found || statement->list_type != FDW_IMPORT_SCHEMA_LIMIT_TO)
			continue;
		meant = mongo_nearest_name(names, name);
		ereport(NOTICE,
				(errmsg("collection \"%s.%s\" does not exist", statement->remote_schema, name),
				 meant == NULL ? 0 : errhint("Perhaps %s is meant.", quote_identifier(meant))));
	}
	statement->table_list = list_concat(statement->table_list, tables);
}

/*
 * Return a collection's statements (char *); 'context' is temporary, and *size the bytes of
 * all statements so far.
 */
static List *
import_collection(const ImportSource *source, ImportForeignSchemaStmt *statement,
				  const MongoCollection *collection, HTAB *names, MemoryContext context,
				  size_t *size)
{
	MemoryContext previous = MemoryContextSwitchTo(context);
	ImportTable *table = mongo_import_table_read(source, collection);
	List	   *made = NIL;
	List	   *commands = NIL;

	if (table != NULL)
		made = list_make1(table_command(source, table));
	if (table != NULL && source->options.array_tables)
	{
		foreach_ptr(ImportTable, array, import_array_tables(source, table, names))
		{
			if (IsImportableForeignTable(array->name, statement))
				made = lappend(made, table_command(source, array));
		}
	}
	MemoryContextSwitchTo(previous);
	foreach_ptr(const char, command, made)
	{
		*size += strlen(command);
		commands = lappend(commands, pstrdup(command));
	}
	MemoryContextReset(context);
	if (*size > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the foreign tables of database \"%s\" have too many columns", source->database),
				 errdetail("The statements that create them have more than 1 GB."),
				 errhint("Import some at a time, by LIMIT TO.")));
	return commands;
}

/*
 * mongo_import_foreign_schema
 *		ImportForeignSchema callback, see docs/import.md.
 *
 * Raises HV00D for an unknown option, 22023 for an invalid value, HV00Q for a database without
 * collections.
 */
List *
mongo_import_foreign_schema(ImportForeignSchemaStmt *statement, Oid serverid)
{
	ImportSource source = mongo_import_source(statement->options, GetForeignServer(serverid),
											  statement->remote_schema);
	Oid			schema = InvalidOid;
	List	   *collections;
	HTAB	   *names;
	MemoryContext context;
	size_t		size = 0;
	List	   *commands = NIL;

	collections = mongo_list_collections(source.user, source.database, NULL);
	if (collections == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_SCHEMA_NOT_FOUND),
				 errmsg("database \"%s\" of server \"%s\" has no collections",
						source.database, source.server_name),
				 errhint("MongoDB's names are case-sensitive: write them in double quotes.")));
	source.schema = statement->local_schema;
	if (source.schema != NULL)
		schema = get_namespace_oid(source.schema, false);
	names = name_tables(&source, collections, schema);
	find_listed(&source, statement, collections);

	context = AllocSetContextCreate(CurrentMemoryContext, "mongo_fdw import",
									ALLOCSET_DEFAULT_SIZES);
	foreach_ptr(const MongoCollection, collection, collections)
	{
		if ((collection->is_view && !source.options.import_views) ||
			!IsImportableForeignTable(collection->table_name, statement))
			continue;
		commands = list_concat(commands, import_collection(&source, statement, collection,
														   names, context, &size));
	}
	MemoryContextDelete(context);

	return commands;
}

/*
 * mongo_fdw_import_preview
 *		mongo_fdw_import_preview(server name, database text, schema name, collections text[],
 *		options text[]): returns the statements that IMPORT FOREIGN SCHEMA would run.
 *
 * Raises what that raises, also without a right to create tables in the schema.  Without a schema
 * the tables' names have none.
 */
Datum
mongo_fdw_import_preview(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	ImportForeignSchemaStmt *statement = makeNode(ImportForeignSchemaStmt);
	Datum	   *names;
	int			count;
	ListCell   *cell;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(4))
		return (Datum) 0;
	statement->remote_schema = text_to_cstring(PG_GETARG_TEXT_PP(1));
	statement->options = untransformRelOptions(PG_GETARG_DATUM(4));
	if (!PG_ARGISNULL(2))
	{
		statement->local_schema = pstrdup(NameStr(*PG_GETARG_NAME(2)));
		(void) LookupCreationNamespace(statement->local_schema);
	}
	if (!PG_ARGISNULL(3))
	{
		statement->list_type = FDW_IMPORT_SCHEMA_LIMIT_TO;
		deconstruct_array(PG_GETARG_ARRAYTYPE_P(3), TEXTOID, -1, false, TYPALIGN_INT, &names, NULL,
						  &count);
		for (int i = 0; i < count; i++)
			statement->table_list = lappend(statement->table_list,
											makeRangeVar(NULL, TextDatumGetCString(names[i]), -1));
	}
	foreach(cell, mongo_import_foreign_schema(statement, GetForeignServerByName(NameStr(*PG_GETARG_NAME(0)),
																				false)->serverid))
	{
		Datum		value = CStringGetTextDatum(lfirst(cell));
		bool		isnull = false;

		tuplestore_putvalues(result->setResult, result->setDesc, &value, &isnull);
	}
	return (Datum) 0;
}

/*-------------------------------------------------------------------------
 * Reading from MongoDB: some documents of a collection, and its indexes.
 *-------------------------------------------------------------------------
 */

/* ------------------------------ documents ---------------------------------- */

/*
 * A sample of a collection of so many documents is taken at regular distances, so that each import
 * sees the same documents.  To find those of a larger one would take long: MongoDB reads what it
 * skips.
 */
#define MOST_SKIPPED	100000

/* At so many places. */
#define PLACES	10

/* Collects the fields of a sample of a collection's documents. */
static FieldSample *
sample_collection(const ImportSource *source, const MongoCollection *collection)
{
	const MongoTableOptions options = {
		.database = source->database, .collection = collection->name
	};
	int			size = source->options.sample_size;
	double		documents = mongo_fetch_row_count(source->user, &options);
	FieldSample *sample = mongo_field_sample_create(true, source->options.nesting);
	bool		is_regular = documents > size && documents <= MOST_SKIPPED && collection->is_plain;
	int			each = is_regular ? Max(size / PLACES, 1) : size;

	sample->is_complete = documents <= size;
	for (int done = 0; done < size; done += each)
	{
		int64		from = is_regular ? (documents - each) * done / Max(size - each, 1) : SAMPLE_AT_RANDOM;
		MongoCursor *cursor;
		const uint8_t *data;
		uint32		length;

		cursor = mongo_sample_open(source->user, &options,
								   sample->is_complete ? 0 : Min(each, size - done), from, NULL,
								   SAMPLE_BATCH, NULL);
		while ((data = mongo_cursor_next(cursor, &length)) != NULL)
			mongo_field_sample_observe(sample, data, length);
		mongo_cursor_close(cursor);
	}
	return sample;
}

/* ------------------------------ indexes ------------------------------------ */

/* Reads the collection's indexes; a NOTICE if MongoDB refuses. */
static void
list_indexes(const ImportSource *source, ImportTable *table)
{
	const MongoCollection *collection = table->collection;
	const char *refusal;

	table->indexes_known = collection->is_view ||
		mongo_list_indexes(source->user, source->database, collection->name, &table->indexes,
						   &refusal) != INDEXES_REFUSED;
	if (!table->indexes_known)
		ereport(NOTICE,
				(errmsg("could not list the indexes of collection \"%s.%s\"",
						source->database, collection->name),
				 errdetail("MongoDB answered: %s", refusal)));
}

/*
 * mongo_import_leads_index
 *		Tells whether an index begins with this path (UTF-8).
 */
bool
mongo_import_leads_index(const ImportTable *table, const char *utf8_path)
{
	for (int i = 0; i < table->indexes.nindexes; i++)
	{
		const MongoIndex *index = &table->indexes.indexes[i];

		/* option indexed 'true' claims that it serves values and ranges */
		if ((index->uses & MONGO_INDEX_RANGE) != 0 && strcmp(index->keys[0].path, utf8_path) == 0)
			return true;
	}
	return false;
}

/* ----------------- The columns of a table and their names ----------------- */

/*
 * Add columns for the children of 'parent'; the prefixes are those of their paths and
 * names.
 */
static void
collect_columns(const ImportSource *source, ImportTable *table, const SampledField *parent,
				const char *path_prefix, const char *name_prefix)
{
	for (const SampledField *field = parent->first_child; field != NULL; field = field->next)
	{
		char	   *utf8_path = psprintf("%s%s", path_prefix, field->name);
		char	   *utf8_name = psprintf("%s%s", name_prefix, field->name);
		ImportMisfits misfits;
		const char *type = mongo_import_field_type(field, 0, source->objectid_type, &misfits);
		ImportColumn *column;

		if (type == NULL)
		{
			collect_columns(source, table, field, psprintf("%s.", utf8_path),
							psprintf("%s_", utf8_name));
			continue;
		}
		if (list_length(table->columns) >= IMPORT_MAX_COLUMNS - source->options.mismatch_null)
		{
			table->whole_document = true;
			return;
		}

		column = palloc0(sizeof(ImportColumn));
		column->path = mongo_from_utf8(utf8_path);
		column->wanted = wanted_name(&source->options, mongo_from_utf8(utf8_name));
		column->type = type;
		column->misfits = misfits;
		table->has_misfits |= misfits.count > 0;
		column->top_level = path_prefix[0] == '\0';
		column->indexed = mongo_import_leads_index(table, utf8_path);
		if ((field->kinds & IMPORT_UNREADABLE) != 0)
			table->unreadable = column->path;

		/* _id is the first column, wherever documents have it */
		if (strcmp(utf8_path, "_id") == 0)
			table->columns = lcons(column, table->columns);
		else
			table->columns = lappend(table->columns, column);
	}
}

static int
compare_columns(const ListCell *a, const ListCell *b)
{
	return strcmp(((ImportColumn *) lfirst(a))->path, ((ImportColumn *) lfirst(b))->path);
}

/*
 * mongo_import_name_columns
 *		Chooses names that are not in 'names' for columns without one.
 *
 * They do not depend on the order of the columns: a field at the top level keeps its name if it
 * can; of others the first one has it, by their paths.
 */
void
mongo_import_name_columns(List *columns, HTAB *names)
{
	static const char *const taken[] = {
		MONGO_DOCUMENT_COLUMN, MONGO_MISMATCH_COLUMN, "tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"
	};

	for (size_t i = 0; i < lengthof(taken); i++)
		mongo_import_reserve_name(names, taken[i]);

	columns = list_copy(columns);
	list_sort(columns, compare_columns);
	foreach_ptr(ImportColumn, column, columns)
	{
		if (column->top_level && strcmp(column->wanted, column->path) == 0 &&
			mongo_import_reserve_name(names, column->wanted))
			column->name = column->wanted;
	}
	foreach_ptr(ImportColumn, column, columns)
	{
		if (column->name == NULL && column->top_level && mongo_import_reserve_name(names, column->wanted))
			column->name = column->wanted;
	}
	foreach_ptr(ImportColumn, column, columns)
	{
		if (column->name == NULL)
			column->name = choose_name(names, column->wanted);
	}
}

/* ------------------------------ tables ------------------------------------- */

/* Derives a table from its collection; raises MongoDB's errors. */
static ImportTable *
read_table(const ImportSource *source, const MongoCollection *collection)
{
	ImportTable *table = palloc0(sizeof(ImportTable));

	table->collection = collection;
	table->name = collection->table_name;
	table->sample = sample_collection(source, collection);
	table->root = &table->sample->root;
	list_indexes(source, table);
	table->whole_document = table->root->unnameable || table->root->overflow;
	if ((table->root->kinds & IMPORT_UNREADABLE) != 0)
		table->unreadable = MONGO_DOCUMENT_COLUMN;
	collect_columns(source, table, table->root, "", "");
	return table;
}

/*
 * Tells whether the view's pipeline, or its privileges, may have caused this error.  False
 * for errors of the connection, lack of resources and cancellation.
 */
static bool
is_of_view(int sqlstate)
{
	switch (ERRCODE_TO_CATEGORY(sqlstate))
	{
		case ERRCODE_CONNECTION_EXCEPTION:
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_OPERATOR_INTERVENTION:
			return false;
		default:
			return true;
	}
}

typedef struct ViewToRead
{
	const ImportSource *source;
	const MongoCollection *view;
	ImportTable *table;
} ViewToRead;

static void
read_view(void *argument)
{
	ViewToRead *read = argument;

	read->table = read_table(read->source, read->view);
}

/*
 * mongo_import_table_read
 *		Derives a table from a sample of a collection's documents and from its indexes.
 *
 * NULL, with a WARNING, for a view that fails.
 */
ImportTable *
mongo_import_table_read(const ImportSource *source, const MongoCollection *collection)
{
	ViewToRead	view = {source, collection, NULL};
	ErrorData  *error;

	if (!collection->is_view)
		return read_table(source, collection);
	if (mongo_try(read_view, &view, is_of_view, &error))
		return view.table;
	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 errmsg("skipping view \"%s.%s\": %s", source->database, collection->name,
					error->message),
			 error->detail ? errdetail_internal("%s", error->detail) : 0));
	return NULL;
}

/* ------------------------------ arrays ------------------------------------- */

/* Adds one of the first columns of an array's table, whose names are free. */
static void
add_column(ImportTable *table, const char *path, const char *type)
{
	ImportColumn *column = palloc0(sizeof(ImportColumn));

	column->path = column->wanted = path;
	column->type = type;
	column->top_level = true;
	table->columns = lappend(table->columns, column);
}

/* Returns the SQL type of the documents' _id. */
static const char *
id_type(const ImportSource *source, const ImportTable *table)
{
	const SampledField *id = mongo_field_sample_find(table->sample, "_id", false);
	const char *type = id != NULL ?
		mongo_import_field_type(id, 0, source->objectid_type, NULL) : NULL;

	return type != NULL ? type : "jsonb";
}

/* Derives a table from the array at this path. */
static ImportTable *
array_table(const ImportSource *source, const ImportTable *parent, const SampledField *array,
			const char *utf8_path, const char *name)
{
	ImportTable *table = palloc0(sizeof(ImportTable));

	table->collection = parent->collection;
	table->name = name;
	table->unwound = mongo_from_utf8(utf8_path);
	table->ordinality = "ordinality";
	if (mongo_path_is_under(utf8_path, table->ordinality))
		table->ordinality = "ordinality_1";
	table->sample = parent->sample;
	table->root = array->elements;
	table->indexes = parent->indexes;
	add_column(table, "_id", id_type(source, parent));
	add_column(table, table->ordinality, "bigint");
	collect_columns(source, table, array->elements, psprintf("%s.", utf8_path), "");
	if ((array->kinds & IMPORT_UNREADABLE) != 0)
		table->unreadable = table->unwound;
	return table;
}

/* Returns tables for arrays in 'parent'; prefixes as in collect_columns(). */
static List *
collect_arrays(const ImportSource *source, const ImportTable *table, const SampledField *parent,
			   const char *path_prefix, const char *name_prefix, HTAB *names)
{
	List	   *tables = NIL;

	for (const SampledField *field = parent->first_child; field != NULL; field = field->next)
	{
		char	   *path = psprintf("%s%s", path_prefix, field->name);
		char	   *name = psprintf("%s%s", name_prefix,
									wanted_name(&source->options, mongo_from_utf8(field->name)));

		/* option unwind cannot express these paths; no _id is an array */
		if (strpbrk(path, ", $") != NULL || mongo_path_is_under(path, "_id"))
			continue;
		if (mongo_is_array_of_documents(field))
			tables = lappend(tables, array_table(source, table, field, path,
												 choose_name(names, name)));
		else if (mongo_import_field_type(field, 0, source->objectid_type, NULL) == NULL)
			tables = list_concat(tables,
								 collect_arrays(source, table, field, psprintf("%s.", path),
												psprintf("%s_", name), names));
	}
	return tables;
}

static List *
import_array_tables(const ImportSource *source, const ImportTable *table, HTAB *names)
{
	return collect_arrays(source, table, table->root, "", psprintf("%s_", table->name), names);
}
