/*-------------------------------------------------------------------------
 *
 * refresh.c
 *		mongo_fdw_alteration(): builds the statement that brings an imported table up to
 *		date, for mongo_fdw_refresh().
 *
 * Samples the collection as IMPORT FOREIGN SCHEMA does.  Adds missing columns and widens
 * types; drops nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"
#include "translate.h"

#include "access/reloptions.h"
#include "access/table.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(mongo_fdw_alteration);

/* ------------------------------ types -------------------------------------- */

/*
 * Return a type, as SQL, for all values that the column's type can store and those
 * seen now.  NULL if the column's type suffices, or if no import chooses that type.
 */
static const char *
wider_type(const SampledField *seen, Oid present, const char *objectid_type)
{
	Oid			element_type = get_element_type(present);
	uint32		held = mongo_import_kinds_of_type(OidIsValid(element_type) ? element_type : present);
	const char *type;

	if (held == 0)
		return NULL;
	if (OidIsValid(element_type))
		held |= MONGO_BSON_BIT(BSON_TYPE_ARRAY);
	type = mongo_import_field_type(seen, held, objectid_type, NULL);
	if (DatumGetObjectId(DirectFunctionCall1(regtypein,
											 CStringGetDatum(type))) == present)
		return NULL;
	return type;
}

/* ------------------------------ a table ------------------------------------ */

/* The ALTER FOREIGN TABLE command being built. */
typedef struct Alteration
{
	const ImportSource *source;
	const ImportTable *table;	/* derived from the collection now */
	Relation	relation;
	List	   *paths;			/* char *, UTF-8: that columns read */
	bool		has_document;	/* is there a column __doc? */
	bool		shows_mismatch; /* or __mismatch? */
	int			room;			/* for so many columns; dropped ones count */
	HTAB	   *names;			/* of columns, in use */
	StringInfoData actions;		/* empty: the table is up to date */
} Alteration;

/* Appends a separator and returns the buffer for one more action. */
static StringInfo
begin_action(Alteration *alteration)
{
	appendStringInfoString(&alteration->actions,
						   alteration->actions.len == 0 ? "\n\t" : ",\n\t");
	return &alteration->actions;
}

/* Adapts a column's option indexed to the indexes, unless it is 'false'. */
static void
alter_indexed(Alteration *alteration, const char *name, const MongoColumnOptions *options)
{
	bool		indexed = mongo_import_leads_index(alteration->table, options->path);

	if (!alteration->table->indexes_known || strcmp(options->path, "_id") == 0)
		return;
	if (indexed && options->indexed == MONGO_NOT_GIVEN)
		appendStringInfo(begin_action(alteration), "ALTER COLUMN %s OPTIONS (ADD indexed 'true')",
						 quote_identifier(name));
	if (!indexed && options->indexed == MONGO_YES)
		appendStringInfo(begin_action(alteration), "ALTER COLUMN %s OPTIONS (DROP indexed)",
						 quote_identifier(name));
}

/* Adapts the table's existing columns, and collects their paths and names. */
static void
alter_columns(Alteration *alteration)
{
	TupleDesc	descriptor = RelationGetDescr(alteration->relation);

	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);
		const char *name = NameStr(attribute->attname);
		const MongoColumnOptions *options;
		const SampledField *seen;
		const char *type = NULL;

		if (attribute->attisdropped)
			continue;
		mongo_import_reserve_name(alteration->names, name);
		if (strcmp(name, MONGO_DOCUMENT_COLUMN) == 0)
		{
			alteration->has_document = true;
			continue;
		}
		if (strcmp(name, MONGO_MISMATCH_COLUMN) == 0)
		{
			alteration->shows_mismatch = true;
			continue;
		}
		options = mongo_column_options(RelationGetRelid(alteration->relation),
									   attribute->attnum);
		alteration->paths = lappend(alteration->paths, unconstify(char *, options->path));
		seen = mongo_field_sample_find(alteration->table->sample, options->path, false);
		if (seen != NULL && attribute->atttypmod < 0 && options->bson_type == BSON_TYPE_EOD)
			type = wider_type(seen, attribute->atttypid, alteration->source->objectid_type);
		if (type != NULL)
			appendStringInfo(begin_action(alteration), "ALTER COLUMN %s TYPE %s",
							 quote_identifier(name), type);
		alter_indexed(alteration, name, options);
	}
}

/* Tells whether a column reads this field, or a field that contains it. */
static bool
is_read(const Alteration *alteration, const char *path)
{
	foreach_ptr(const char, known, alteration->paths)
	{
		if (mongo_path_is_under(path, known))
			return true;
	}
	return false;
}

/* Adds the option type_mismatch and the column __mismatch, if the import's options say so. */
static void
add_mismatch(Alteration *alteration)
{
	bool		is_given = false;

	if (!alteration->source->options.mismatch_null ||
		!mongo_import_reads_null(alteration->source, alteration->table))
		return;
	foreach_node(DefElem, option, GetForeignTable(RelationGetRelid(alteration->relation))->options)
		is_given |= strcmp(option->defname, "type_mismatch") == 0;
	if (!is_given)
		appendStringInfoString(begin_action(alteration), "OPTIONS (ADD type_mismatch 'null')");
	if (!alteration->shows_mismatch && alteration->room-- > 0)
		appendStringInfo(begin_action(alteration), "ADD COLUMN %s jsonb", MONGO_MISMATCH_COLUMN);
}

/* Adds columns for fields that no column reads, as far as there is room. */
static void
add_missing_columns(Alteration *alteration)
{
	List	   *added = NIL;
	bool		whole_document = alteration->table->whole_document;

	foreach_ptr(ImportColumn, column, alteration->table->columns)
	{
		if (!is_read(alteration, mongo_to_utf8(column->path)))
			added = lappend(added, column);
	}
	if (list_length(added) + (whole_document && !alteration->has_document) > alteration->room)
	{
		whole_document = true;
		added = list_truncate(added, Max(alteration->room - !alteration->has_document, 0));
		ereport(WARNING,
				(errmsg("foreign table \"%s\" has no space for columns of all fields",
						RelationGetRelationName(alteration->relation)),
				 errdetail("A table has at most %d columns, with those that were dropped.", MaxHeapAttributeNumber),
				 errhint("Import the collection again, or read the fields from a column %s.", MONGO_DOCUMENT_COLUMN)));
	}
	mongo_import_name_columns(added, alteration->names);
	foreach_ptr(const ImportColumn, column, added)
	{
		StringInfo	actions = begin_action(alteration);

		appendStringInfoString(actions, "ADD COLUMN ");
		mongo_import_append_column(actions, column);
	}
	if (whole_document && !alteration->has_document && list_length(added) < alteration->room)
		appendStringInfo(begin_action(alteration), "ADD COLUMN %s jsonb",
						 quote_identifier(MONGO_DOCUMENT_COLUMN));
}

/*
 * mongo_fdw_alteration
 *		mongo_fdw_alteration(table regclass, options text[]): returns ALTER FOREIGN TABLE.
 *
 * NULL if the table is up to date or has the option pipeline or unwind, whose columns an import
 * cannot derive; also, with a NOTICE or WARNING, if the collection does not exist or is a view that
 * fails.  'options' are options of an import.  Raises what IMPORT FOREIGN SCHEMA raises.
 */
Datum
mongo_fdw_alteration(PG_FUNCTION_ARGS)
{
	Relation	relation = table_open(PG_GETARG_OID(0), AccessShareLock);
	Oid			relid = RelationGetRelid(relation);
	ForeignServer *server = GetForeignServer(mongo_require_own_table(relation));
	const MongoTableOptions *options = mongo_table_options(relid);
	ImportSource source = mongo_import_source(untransformRelOptions(PG_GETARG_DATUM(1)), server,
											  options->database);
	List	   *collections = mongo_list_collections(source.user, options->database, options->collection);
	Alteration	alteration = {.source = &source, .relation = relation};
	char	   *statement = NULL;

	if (collections == NIL)
		ereport(NOTICE,
				(errmsg("collection \"%s.%s\" of foreign table \"%s\" does not exist",
						options->database, options->collection, RelationGetRelationName(relation))));
	else if (!mongo_is_pipeline_table(options))
		alteration.table = mongo_import_table_read(&source, linitial(collections));
	initStringInfo(&alteration.actions);
	if (alteration.table != NULL)
	{
		alteration.names = mongo_import_names_create();
		alteration.room = MaxHeapAttributeNumber - RelationGetNumberOfAttributes(relation);
		alter_columns(&alteration);
		add_mismatch(&alteration);
		add_missing_columns(&alteration);
	}
	if (alteration.actions.len > 0)
		statement = psprintf("ALTER FOREIGN TABLE %s%s;",
							 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(relation)),
														RelationGetRelationName(relation)),
							 alteration.actions.data);
	table_close(relation, AccessShareLock);
	if (statement == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(statement));
}
