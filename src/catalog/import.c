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

#include "catalog.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "columns.h"
#include "commands/defrem.h"
#include "encoding.h"
#include "import.h"
#include "miscadmin.h"
#include "objectid.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* Beyond, PostgreSQL's tables have no room; one place is kept for __doc. */
#define MAX_COLUMNS		(MaxHeapAttributeNumber - 1)

#define MAX_NESTING		100

/* One column of a table to be. */
typedef struct ImportColumn
{
	const char *wanted;			/* the name it would have if it were free */
	const char *name;			/* the name it has; NULL: not chosen yet */
	const char *path;			/* database encoding */
	const char *type;
	bool		top_level;
	bool		indexed;
} ImportColumn;

/* One table to be. */
typedef struct ImportTable
{
	const ImportCollection *collection;
	List	   *columns;		/* ImportColumn * */
	List	   *indexed_paths;	/* char *, UTF-8 */
	const char *objectid_type;
	bool		whole_document; /* does it need a column __doc? */
	const char *unreadable;		/* path of a field no type can hold, or NULL */
} ImportTable;

/* ------------------------------ options ------------------------------------ */

/* What IMPORT FOREIGN SCHEMA ... OPTIONS may say. */
typedef struct ImportOptions
{
	int			sample_size;
	int			nesting;
	bool		import_views;
} ImportOptions;

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
				 errhint("Allowed are whole numbers from %d to %d.", min, max)));
	return number;
}

static ImportOptions
read_import_options(List *definitions)
{
	ImportOptions options = {.sample_size = 1000, .nesting = 1, .import_views = true};
	ListCell   *cell;

	foreach(cell, definitions)
	{
		DefElem    *definition = lfirst_node(DefElem, cell);

		if (strcmp(definition->defname, "sample_size") == 0)
			options.sample_size = integer_option(definition, 1, INT_MAX);
		else if (strcmp(definition->defname, "nesting") == 0)
			options.nesting = integer_option(definition, 0, MAX_NESTING);
		else if (strcmp(definition->defname, "import_views") == 0)
			options.import_views = defGetBoolean(definition);
		else
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
					 errmsg("invalid option \"%s\"", definition->defname),
					 errhint("Valid options in this context are: sample_size, nesting, import_views")));
	}
	return options;
}

/* ------------------------------ columns ------------------------------------ */

static bool
is_indexed(const ImportTable *table, const char *utf8_path)
{
	ListCell   *cell;

	foreach(cell, table->indexed_paths)
	{
		if (strcmp(lfirst(cell), utf8_path) == 0)
			return true;
	}
	return false;
}

/*
 * collect_columns
 *		Add columns for the children of 'parent', whose paths and names begin
 *		with these prefixes.
 */
static void
collect_columns(ImportTable *table, const ImportField *parent,
				const char *path_prefix, const char *name_prefix)
{
	for (const ImportField *field = parent->first_child; field != NULL; field = field->next)
	{
		char	   *utf8_path = psprintf("%s%s", path_prefix, field->name);
		char	   *utf8_name = psprintf("%s%s", name_prefix, field->name);
		const char *type = import_field_type(field, table->objectid_type);
		ImportColumn *column;

		if (type == NULL)
		{
			collect_columns(table, field, psprintf("%s.", utf8_path),
							psprintf("%s_", utf8_name));
			continue;
		}
		if (list_length(table->columns) >= MAX_COLUMNS)
		{
			table->whole_document = true;
			return;
		}

		column = palloc0(sizeof(ImportColumn));
		column->path = mongo_from_utf8(utf8_path);
		column->wanted = mongo_from_utf8(utf8_name);
		column->type = type;
		column->top_level = path_prefix[0] == '\0';
		column->indexed = is_indexed(table, utf8_path);
		if ((field->kinds & IMPORT_UNREADABLE) != 0)
			table->unreadable = column->path;

		/* _id leads, wherever documents have it */
		if (strcmp(utf8_path, "_id") == 0)
			table->columns = lcons(column, table->columns);
		else
			table->columns = lappend(table->columns, column);
	}
}

/*
 * name_columns
 *		Every column gets a name of its own; fields at the top keep theirs.
 */
static void
name_columns(List *columns)
{
	static const char *const taken[] = {
		MONGO_DOCUMENT_COLUMN, "tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"
	};
	HTAB	   *names = import_names_create();
	ListCell   *cell;

	for (size_t i = 0; i < lengthof(taken); i++)
		import_name_reserve(names, taken[i]);

	foreach(cell, columns)
	{
		ImportColumn *column = lfirst(cell);

		if (column->top_level && import_name_reserve(names, column->wanted))
			column->name = column->wanted;
	}
	foreach(cell, columns)
	{
		ImportColumn *column = lfirst(cell);

		if (column->name == NULL)
			column->name = import_name_choose(names, column->wanted);
	}
}

/* ------------------------------ commands ----------------------------------- */

static void
append_column(StringInfo command, const ImportColumn *column, bool first)
{
	bool		needs_path = strcmp(column->name, column->path) != 0;

	appendStringInfo(command, "%s\n\t%s %s", first ? "" : ",",
					 quote_identifier(column->name), column->type);
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
create_command(const ImportTable *table, const ImportSource *source,
			   const char *server_name)
{
	StringInfoData command;
	ListCell   *cell;
	bool		first = true;

	initStringInfo(&command);
	appendStringInfo(&command, "CREATE FOREIGN TABLE %s (",
					 quote_identifier(table->collection->table_name));
	foreach(cell, table->columns)
	{
		append_column(&command, lfirst(cell), first);
		first = false;
	}
	if (table->whole_document)
		appendStringInfo(&command, "%s\n\t%s jsonb", first ? "" : ",",
						 quote_identifier(MONGO_DOCUMENT_COLUMN));
	appendStringInfo(&command, "\n) SERVER %s OPTIONS (database %s, collection %s",
					 quote_identifier(server_name),
					 quote_literal_cstr(source->database),
					 quote_literal_cstr(table->collection->name));
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
						   MAX_COLUMNS),
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
add_default_columns(ImportTable *table)
{
	ImportColumn *column = palloc0(sizeof(ImportColumn));

	column->path = column->wanted = "_id";
	column->top_level = true;
	column->type = table->objectid_type;
	table->columns = list_make1(column);
	table->whole_document = true;
	ereport(NOTICE,
			(errmsg("collection \"%s\" is empty", table->collection->name),
			 errdetail("Its table has the columns _id and %s.", MONGO_DOCUMENT_COLUMN)));
}

/* import_collection gives the command that creates its table. */
static char *
import_collection(const ImportSource *source, const ImportCollection *collection,
				  const char *server_name)
{
	ImportField *root = import_sample(source, collection);
	ImportTable table = {.collection = collection};

	table.objectid_type = format_type_be_qualified(mongo_objectid_type_oid());
	table.indexed_paths = import_indexed_paths(source, collection);
	table.whole_document = root->unnameable || root->overflow;
	collect_columns(&table, root, "", "");

	if (table.columns == NIL && !table.whole_document)
		add_default_columns(&table);
	else
		warn_about(&table);
	name_columns(table.columns);
	return create_command(&table, source, server_name);
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

/*
 * name_tables
 *		Table names for all collections, the excluded ones too, so that a name
 *		does not depend on what else is imported.
 */
static void
name_tables(List *collections, Oid namespace)
{
	HTAB	   *names = import_names_create();
	ListCell   *cell;

	foreach(cell, collections)
	{
		ImportCollection *collection = lfirst(cell);

		if (!is_type_name(collection->name, namespace) &&
			import_name_reserve(names, collection->name))
			collection->table_name = collection->name;
	}
	foreach(cell, collections)
	{
		ImportCollection *collection = lfirst(cell);

		if (collection->table_name == NULL && is_type_name(collection->name, namespace))
			import_name_reserve(names, collection->name);
		if (collection->table_name == NULL)
			collection->table_name = import_name_choose(names, collection->name);
	}
}

List *
mongo_import_foreign_schema(ImportForeignSchemaStmt *statement, Oid serverid)
{
	ImportOptions options = read_import_options(statement->options);
	ImportSource source = {
		.user = GetUserMapping(GetUserId(), serverid),
		.database = statement->remote_schema,
		.sample_size = options.sample_size,
		.nesting = options.nesting
	};
	const char *server_name = GetForeignServer(serverid)->servername;
	List	   *collections = import_list_collections(&source);
	MemoryContext context;
	List	   *commands = NIL;
	ListCell   *cell;

	if (collections == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_SCHEMA_NOT_FOUND),
				 errmsg("database \"%s\" of server \"%s\" has no collections",
						source.database, server_name),
				 errhint("MongoDB's names are case-sensitive: write them in double quotes.")));
	name_tables(collections, get_namespace_oid(statement->local_schema, false));

	context = AllocSetContextCreate(CurrentMemoryContext, "mongo_fdw import",
									ALLOCSET_DEFAULT_SIZES);
	foreach(cell, collections)
	{
		const ImportCollection *collection = lfirst(cell);
		MemoryContext previous;
		char	   *command;

		if ((collection->is_view && !options.import_views) ||
			!IsImportableForeignTable(collection->table_name, statement))
			continue;

		previous = MemoryContextSwitchTo(context);
		command = import_collection(&source, collection, server_name);
		MemoryContextSwitchTo(previous);
		commands = lappend(commands, pstrdup(command));
		MemoryContextReset(context);
	}
	MemoryContextDelete(context);

	return commands;
}
