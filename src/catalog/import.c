/*-------------------------------------------------------------------------
 *
 * import.c
 *		IMPORT FOREIGN SCHEMA: the collections of a database as foreign tables.
 *
 * A table's columns are the fields that a sample of the documents and the
 * collection's validator show.  Every column says by the option path where
 * its field is, so that names can be made fit for SQL.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "import.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "closest_name.h"
#include "columns.h"
#include "commands/defrem.h"
#include "foreign/fdwapi.h"
#include "import_foreign_schema.h"
#include "miscadmin.h"
#include "objectid_type.h"
#include "parser/scansup.h"
#include "user_mapping.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#define MAX_NESTING		100

/* ------------------------------ options ------------------------------------ */

static int
integer_option(DefElem *definition, int min, int max)
{
	char	   *value = defGetString(definition);
	int			number;

	if (!parse_int(value, &number, 0, NULL) || number < min || number > max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for integer option \"%s\": %s",
						definition->defname, value),
				 errhint("Valid values are integers from %d to %d.", min, max)));
	return number;
}

/* is_choice: is the option's text the second of two words?  Else it is the first. */
static bool
is_choice(DefElem *definition, const char *first, const char *second)
{
	char	   *value = defGetString(definition);

	if (strcmp(value, first) != 0 && strcmp(value, second) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": \"%s\"", definition->defname,
						value),
				 errhint("Valid values are \"%s\" and \"%s\".", first, second)));
	return strcmp(value, second) == 0;
}

/* What read_option() knows. */
static const char *const import_options[] = {
	"sample_size", "nesting", "import_views", "lower_case_names", "arrays",
	"if_exists", "objectid"
};

/* hint_of_valid_options: the one that was probably meant, or all. */
static int
hint_of_valid_options(const char *name)
{
	MongoClosestName search;
	StringInfoData all;

	mongo_closest_name_begin(&search, name);
	initStringInfo(&all);
	for (size_t i = 0; i < lengthof(import_options); i++)
	{
		mongo_closest_name_try(&search, import_options[i]);
		appendStringInfo(&all, "%s%s", i > 0 ? ", " : "", import_options[i]);
	}
	return search.closest != NULL ?
		errhint("Perhaps you meant the option \"%s\".", search.closest) :
		errhint("Valid options in this context are: %s", all.data);
}

/* read_option: false for a name that there is not. */
static bool
read_option(ImportSource *source, DefElem *definition)
{
	const char *name = definition->defname;

	if (strcmp(name, "sample_size") == 0)
		source->sample_size = integer_option(definition, 1, INT_MAX);
	else if (strcmp(name, "nesting") == 0)
		source->nesting = integer_option(definition, 0, MAX_NESTING);
	else if (strcmp(name, "import_views") == 0)
		source->import_views = defGetBoolean(definition);
	else if (strcmp(name, "lower_case_names") == 0)
		source->lower_case_names = defGetBoolean(definition);
	else if (strcmp(name, "arrays") == 0)
		source->array_tables = is_choice(definition, "columns", "tables");
	else if (strcmp(name, "if_exists") == 0)
		source->skip_existing = is_choice(definition, "error", "skip");
	else if (strcmp(name, "objectid") == 0)
	{
		if (is_choice(definition, "objectid", "text"))
			source->objectid_type = "text";
	}
	else
		return false;
	return true;
}

ImportSource
import_read_options(List *definitions)
{
	ImportSource source = {
		.sample_size = 1000, .nesting = 1, .import_views = true,
		.objectid_type = format_type_be_qualified(mongo_objectid_type_oid())
	};
	ListCell   *cell;

	foreach(cell, definitions)
	{
		DefElem    *definition = lfirst_node(DefElem, cell);

		if (!read_option(&source, definition))
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
					 errmsg("invalid option \"%s\"", definition->defname),
					 hint_of_valid_options(definition->defname)));
	}
	return source;
}

/* ------------------------------ commands ----------------------------------- */

void
import_append_column(StringInfo command, const ImportColumn *column)
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

static char *
create_command(const ImportSource *source, const ImportTable *table)
{
	StringInfoData command;
	ListCell   *cell;
	bool		first = true;

	initStringInfo(&command);
	appendStringInfo(&command, "CREATE FOREIGN TABLE %s%s (",
					 source->skip_existing ? "IF NOT EXISTS " : "",
					 quote_qualified_identifier(source->schema, table->name));
	foreach(cell, table->columns)
	{
		appendStringInfoString(&command, first ? "\n\t" : ",\n\t");
		import_append_column(&command, lfirst(cell));
		first = false;
	}
	if (table->whole_document)
		appendStringInfo(&command, "%s\n\t%s jsonb", first ? "" : ",",
						 quote_identifier(MONGO_DOCUMENT_COLUMN));
	appendStringInfo(&command, "\n) SERVER %s OPTIONS (database %s, collection %s",
					 quote_identifier(source->server_name),
					 quote_literal_cstr(source->database),
					 quote_literal_cstr(table->collection->name));
	if (table->unwound != NULL)
		appendStringInfo(&command, ", unwind %s, ordinality %s",
						 quote_literal_cstr(table->unwound),
						 quote_literal_cstr(table->ordinality));
	if (table->unreadable != NULL)
		appendStringInfoString(&command, ", type_mismatch 'null'");
	appendStringInfoString(&command, ");");
	return command.data;
}

/* warn_about tells what of the documents the table's columns do not show. */
static void
warn_about(const ImportTable *table)
{
	const ImportCollection *collection = table->collection;

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

/* add_default_columns: for a collection of which nothing is known. */
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

char *
import_create_command(const ImportSource *source, ImportTable *table)
{
	if (table->columns == NIL && !table->whole_document)
		add_default_columns(source, table);
	else
		warn_about(table);
	import_table_name_columns(table->columns, import_names_create());
	return create_command(source, table);
}

/* ------------------------------ tables ------------------------------------- */

/*
 * is_type_name
 *		Would a table of that name clash with a type (objectid, say)?
 *
 * Clashes with tables are left for the user to see.
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

/* table_name: the collection's, in lower case if that is asked for. */
static const char *
table_name(const ImportSource *source, const ImportCollection *collection)
{
	return source->lower_case_names ?
		downcase_identifier(collection->name, (int) strlen(collection->name), false, false) :
		collection->name;
}

HTAB *
import_name_tables(const ImportSource *source, List *collections, Oid namespace)
{
	HTAB	   *names = import_names_create();
	ListCell   *cell;

	foreach(cell, collections)
	{
		ImportCollection *collection = lfirst(cell);
		const char *wanted = table_name(source, collection);

		if (!is_type_name(wanted, namespace) && import_name_reserve(names, wanted))
			collection->table_name = wanted;
	}
	foreach(cell, collections)
	{
		ImportCollection *collection = lfirst(cell);
		const char *wanted = table_name(source, collection);

		if (collection->table_name == NULL && is_type_name(wanted, namespace))
			import_name_reserve(names, wanted);
		if (collection->table_name == NULL)
			collection->table_name = import_name_choose(names, wanted);
	}
	return names;
}

/* may_be_named: is this the table of the collection, or maybe of an array in it? */
static bool
may_be_named(const ImportSource *source, const ImportCollection *collection, const char *name)
{
	size_t		length = strlen(collection->table_name);

	return strncmp(collection->table_name, name, length) == 0 &&
		(name[length] == '\0' || (source->array_tables && name[length] == '_'));
}

/* note_missing: what LIMIT TO names and MongoDB has not. */
static void
note_missing(const ImportSource *source, const ImportForeignSchemaStmt *statement,
			 List *collections)
{
	ListCell   *cell;
	ListCell   *other;

	if (statement->list_type != FDW_IMPORT_SCHEMA_LIMIT_TO)
		return;
	foreach(cell, statement->table_list)
	{
		const char *name = lfirst_node(RangeVar, cell)->relname;
		bool		found = false;

		foreach(other, collections)
			found |= may_be_named(source, lfirst(other), name);
		if (!found)
			ereport(NOTICE,
					(errmsg("collection \"%s.%s\" does not exist",
							statement->remote_schema, name)));
	}
}

/* import_collection: the statements (char *) for it, made in a context for that. */
static List *
import_collection(const ImportSource *source, ImportForeignSchemaStmt *statement,
				  const ImportCollection *collection, HTAB *names, MemoryContext context)
{
	MemoryContext previous = MemoryContextSwitchTo(context);
	ImportTable *table = import_table_read(source, collection);
	List	   *made = NIL;
	List	   *commands = NIL;
	ListCell   *cell;

	if (table != NULL)
		made = list_make1(import_create_command(source, table));
	if (table != NULL && source->array_tables)
	{
		foreach(cell, import_array_tables(source, table, names))
		{
			ImportTable *array = lfirst(cell);

			if (IsImportableForeignTable(array->name, statement))
				made = lappend(made, import_create_command(source, array));
		}
	}
	MemoryContextSwitchTo(previous);
	foreach(cell, made)
		commands = lappend(commands, pstrdup(lfirst(cell)));
	MemoryContextReset(context);
	return commands;
}

List *
mongo_import_foreign_schema(ImportForeignSchemaStmt *statement, Oid serverid)
{
	ImportSource source = import_read_options(statement->options);
	List	   *collections;
	HTAB	   *names;
	MemoryContext context;
	List	   *commands = NIL;
	ListCell   *cell;

	source.user = mongo_user_mapping(GetUserId(), serverid);
	source.server_name = GetForeignServer(serverid)->servername;
	source.database = statement->remote_schema;
	collections = import_list_collections(&source);
	if (collections == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_SCHEMA_NOT_FOUND),
				 errmsg("database \"%s\" of server \"%s\" has no collections",
						source.database, source.server_name),
				 errhint("MongoDB's names are case-sensitive: write them in double quotes.")));
	names = import_name_tables(&source, collections,
							   get_namespace_oid(statement->local_schema, false));
	note_missing(&source, statement, collections);

	context = AllocSetContextCreate(CurrentMemoryContext, "mongo_fdw import",
									ALLOCSET_DEFAULT_SIZES);
	foreach(cell, collections)
	{
		const ImportCollection *collection = lfirst(cell);

		if ((collection->is_view && !source.import_views) ||
			!IsImportableForeignTable(collection->table_name, statement))
			continue;
		commands = list_concat(commands, import_collection(&source, statement, collection,
														   names, context));
	}
	MemoryContextDelete(context);

	return commands;
}
