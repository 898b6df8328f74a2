/*-------------------------------------------------------------------------
 *
 * import_table.c
 *		A collection as a table to be: its columns and their names.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "import.h"

#include "access/xact.h"
#include "columns.h"
#include "encoding.h"
#include "parser/scansup.h"
#include "path_list.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

/* ------------------------------ columns ------------------------------------ */

static bool
leads_index(const ImportTable *table, const char *utf8_path)
{
	ListCell   *cell;

	foreach(cell, table->indexed_paths)
	{
		if (strcmp(lfirst(cell), utf8_path) == 0)
			return true;
	}
	return false;
}

/* wanted_name: in lower case if that is asked for, as SQL folds it. */
static const char *
wanted_name(const ImportSource *source, const char *name)
{
	return source->lower_case_names ?
		downcase_identifier(name, (int) strlen(name), false, false) : name;
}

/*
 * collect_columns
 *		Add columns for the children of 'parent', whose paths and names begin
 *		with these prefixes.
 */
static void
collect_columns(const ImportSource *source, ImportTable *table, const ImportField *parent,
				const char *path_prefix, const char *name_prefix)
{
	for (const ImportField *field = parent->first_child; field != NULL; field = field->next)
	{
		char	   *utf8_path = psprintf("%s%s", path_prefix, field->name);
		char	   *utf8_name = psprintf("%s%s", name_prefix, field->name);
		const char *type = import_field_type(field, source->objectid_type);
		ImportColumn *column;

		if (type == NULL)
		{
			collect_columns(source, table, field, psprintf("%s.", utf8_path),
							psprintf("%s_", utf8_name));
			continue;
		}
		if (list_length(table->columns) >= IMPORT_MAX_COLUMNS)
		{
			table->whole_document = true;
			return;
		}

		column = palloc0(sizeof(ImportColumn));
		column->path = mongo_from_utf8(utf8_path);
		column->wanted = wanted_name(source, mongo_from_utf8(utf8_name));
		column->type = type;
		column->field = field;
		column->top_level = path_prefix[0] == '\0';
		column->indexed = leads_index(table, utf8_path);
		if ((field->kinds & IMPORT_UNREADABLE) != 0)
			table->unreadable = column->path;

		/* _id leads, wherever documents have it */
		if (strcmp(utf8_path, "_id") == 0)
			table->columns = lcons(column, table->columns);
		else
			table->columns = lappend(table->columns, column);
	}
}

void
import_table_name_columns(List *columns, HTAB *names)
{
	static const char *const taken[] = {
		MONGO_DOCUMENT_COLUMN, "tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"
	};
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

/* ------------------------------ tables ------------------------------------- */

/* read_table: raises what MongoDB answers. */
static ImportTable *
read_table(const ImportSource *source, const ImportCollection *collection)
{
	ImportTable *table = palloc0(sizeof(ImportTable));

	table->collection = collection;
	table->name = collection->table_name;
	table->root = import_sample(source, collection);
	table->indexed_paths = import_indexed_paths(source, collection, &table->indexes_known);
	table->whole_document = table->root->unnameable || table->root->overflow;
	collect_columns(source, table, table->root, "", "");
	return table;
}

/*
 * is_of_view: could the view's pipeline, or its rights, be at fault?  Not where
 * the connection is, or where somebody wants us to stop.
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

/* read_view: NULL, with a WARNING, where it fails; in a subtransaction for that. */
static ImportTable *
read_view(const ImportSource *source, const ImportCollection *collection)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ImportTable *volatile table = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		table = read_table(source, collection);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (!is_of_view(error->sqlerrcode))
			PG_RE_THROW();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		table = NULL;
		ereport(WARNING,
				(errcode(error->sqlerrcode),
				 errmsg("skipping view \"%s.%s\": %s", source->database, collection->name,
						error->message),
				 error->detail ? errdetail_internal("%s", error->detail) : 0));
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return table;
}

ImportTable *
import_table_read(const ImportSource *source, const ImportCollection *collection)
{
	return collection->is_view ? read_view(source, collection) :
		read_table(source, collection);
}

/* ------------------------------ arrays ------------------------------------- */

/* add_column: the first ones of an array's table, whose names nothing takes. */
static void
add_column(ImportTable *table, const char *path, const char *type)
{
	ImportColumn *column = palloc0(sizeof(ImportColumn));

	column->path = column->wanted = path;
	column->type = type;
	column->top_level = true;
	table->columns = lappend(table->columns, column);
}

/* id_type: of the documents' _id. */
static const char *
id_type(const ImportSource *source, const ImportTable *table)
{
	for (const ImportField *field = table->root->first_child; field; field = field->next)
	{
		const char *type;

		if (strcmp(field->name, "_id") != 0)
			continue;
		type = import_field_type(field, source->objectid_type);
		return type != NULL ? type : "jsonb";
	}
	return "jsonb";
}

/* array_table: one for the array at this path. */
static ImportTable *
array_table(const ImportSource *source, const ImportTable *parent, const ImportField *array,
			const char *utf8_path, const char *name)
{
	ImportTable *table = palloc0(sizeof(ImportTable));

	table->collection = parent->collection;
	table->name = name;
	table->unwound = mongo_from_utf8(utf8_path);
	table->ordinality = "ordinality";
	if (mongo_path_is_under(utf8_path, table->ordinality))
		table->ordinality = "ordinality_1";
	table->root = array->elements;
	table->indexed_paths = parent->indexed_paths;
	add_column(table, "_id", id_type(source, parent));
	add_column(table, table->ordinality, "bigint");
	collect_columns(source, table, array->elements, psprintf("%s.", utf8_path), "");
	if ((array->kinds & IMPORT_UNREADABLE) != 0)
		table->unreadable = table->unwound;
	return table;
}

/* collect_arrays: of the children of 'parent', as collect_columns() does columns. */
static List *
collect_arrays(const ImportSource *source, const ImportTable *table, const ImportField *parent,
			   const char *path_prefix, const char *name_prefix, HTAB *names)
{
	List	   *tables = NIL;

	for (const ImportField *field = parent->first_child; field != NULL; field = field->next)
	{
		char	   *path = psprintf("%s%s", path_prefix, field->name);
		char	   *name = psprintf("%s%s", name_prefix,
									wanted_name(source, mongo_from_utf8(field->name)));

		/* what the option unwind cannot say; no _id holds an array */
		if (strpbrk(path, ", $") != NULL || mongo_path_is_under(path, "_id"))
			continue;
		if (import_is_array_of_documents(field))
			tables = lappend(tables, array_table(source, table, field, path,
												 import_name_choose(names, name)));
		else if (import_field_type(field, source->objectid_type) == NULL)
			tables = list_concat(tables,
								 collect_arrays(source, table, field, psprintf("%s.", path),
												psprintf("%s_", name), names));
	}
	return tables;
}

List *
import_array_tables(const ImportSource *source, const ImportTable *table, HTAB *names)
{
	return collect_arrays(source, table, table->root, "", psprintf("%s_", table->name), names);
}
