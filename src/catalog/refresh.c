/*-------------------------------------------------------------------------
 *
 * refresh.c
 *		mongo_fdw_refresh(): the statements that bring an imported schema up to
 * date.
 *
 * A collection is looked at as IMPORT FOREIGN SCHEMA does.  What it has and its
 * table has not is added, and types are widened; nothing is dropped.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"
#include "convert.h"
#include "translate.h"

#include "access/genam.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "foreign/fdwapi.h"
#include "funcapi.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"

/* A foreign table of ours that is in the schema. */
typedef struct PresentTable
{
	Oid			relid;
	Oid			serverid;
	const char *database;
	const char *collection;
	bool		found;			/* does the collection exist? */
	bool		done;			/* has its database been looked at? */
} PresentTable;

typedef struct Refresh
{
	Oid			namespace;
	const char *schema;
	bool		new_tables;		/* for collections that have none? */
	Datum		options;		/* text[], as in OPTIONS of an import */
	List	   *present;		/* PresentTable * */
	HTAB	   *relation_names; /* taken in the schema */
	List	   *statements;		/* char * */
	MemoryContext context;		/* of the statements */
} Refresh;

PG_FUNCTION_INFO_V1(mongo_fdw_refresh);

/* ------------------------------ the schema --------------------------------- */

/* read_schema: which foreign tables are there, and which names are taken? */
static void
read_schema(Refresh *refresh)
{
	Relation	classes = table_open(RelationRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	List	   *relids = NIL;
	ListCell   *cell;

	refresh->relation_names = import_names_create();
	ScanKeyInit(&key, Anum_pg_class_relnamespace, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(refresh->namespace));
	scan = systable_beginscan(classes, InvalidOid, false, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(tuple);

		import_name_reserve(refresh->relation_names, NameStr(class->relname));
		if (class->relkind == RELKIND_FOREIGN_TABLE)
			relids = lappend_oid(relids, class->oid);
	}
	systable_endscan(scan);
	table_close(classes, AccessShareLock);

	list_sort(relids, list_oid_cmp);
	foreach(cell, relids)
	{
		Oid			relid = lfirst_oid(cell);
		Oid			serverid = GetForeignServerIdByRelId(relid);
		const MongoTableOptions *options;
		PresentTable *table;

		if (!mongo_is_own_server(serverid))
			continue;
		options = mongo_table_options(relid);
		if (mongo_is_derived(options))
			continue;
		table = palloc0(sizeof(PresentTable));
		table->relid = relid;
		table->serverid = serverid;
		table->database = options->database;
		table->collection = options->collection;
		refresh->present = lappend(refresh->present, table);
	}
}

/* ------------------------------ types -------------------------------------- */

/*
 * wider_type
 *		The type, as SQL, for what a column may have held and what was seen now;
 *		NULL where the present one will do, or is one that somebody has chosen.
 */
static const char *
wider_type(const SampledField *seen, Oid present, const char *objectid_type)
{
	Oid			element_type = get_element_type(present);
	uint32		held = import_kinds_of_type(OidIsValid(element_type) ? element_type : present);
	SampledField field = *seen;
	SampledField elements = {0};
	const char *type;

	if (held == 0)
		return NULL;
	if (OidIsValid(element_type))
	{
		if (seen->elements != NULL)
			elements = *seen->elements;
		elements.kinds |= held;
		field.elements = &elements;
		field.kinds |= MONGO_BSON_BIT(BSON_TYPE_ARRAY);
	}
	else
		field.kinds |= held;
	type = import_field_type(&field, objectid_type);
	if (type == NULL || DatumGetObjectId(DirectFunctionCall1(regtypein,
															 CStringGetDatum(type))) == present)
		return NULL;
	return type;
}

/* ------------------------------ a table ------------------------------------ */

/* One ALTER FOREIGN TABLE in the making. */
typedef struct Alteration
{
	const ImportSource *source;
	const ImportTable *table;	/* what its collection has */
	Relation	relation;
	List	   *paths;			/* char *, UTF-8: what columns read */
	bool		has_document;	/* is there a column __doc? */
	HTAB	   *names;			/* of columns, taken */
	StringInfoData actions;		/* empty: nothing to be done */
} Alteration;

/* begin_action: what follows is one more action. */
static StringInfo
begin_action(Alteration *alteration)
{
	appendStringInfoString(&alteration->actions,
						   alteration->actions.len == 0 ? "\n\t" : ",\n\t");
	return &alteration->actions;
}

/* alter_indexed: the option follows what leads an index now, unless it is 'false'. */
static void
alter_indexed(Alteration *alteration, const char *name, const MongoColumnOptions *options)
{
	bool		indexed = import_leads_index(alteration->table, options->path);

	if (!alteration->table->indexes_known || strcmp(options->path, "_id") == 0)
		return;
	if (indexed && options->indexed == MONGO_INDEXED_LEARNED)
		appendStringInfo(begin_action(alteration), "ALTER COLUMN %s OPTIONS (ADD indexed 'true')",
						 quote_identifier(name));
	if (!indexed && options->indexed == MONGO_INDEXED_YES)
		appendStringInfo(begin_action(alteration), "ALTER COLUMN %s OPTIONS (DROP indexed)",
						 quote_identifier(name));
}

/* alter_columns: the table's present columns; notes their paths. */
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
		import_name_reserve(alteration->names, name);
		if (strcmp(name, MONGO_DOCUMENT_COLUMN) == 0)
		{
			alteration->has_document = true;
			continue;
		}
		options = mongo_column_options(RelationGetRelid(alteration->relation),
									   attribute->attnum);
		alteration->paths = lappend(alteration->paths, unconstify(char *, options->path));
		seen = field_sample_find(alteration->table->sample, options->path, false);
		if (seen != NULL && attribute->atttypmod < 0 && options->bson_type == BSON_TYPE_EOD)
			type = wider_type(seen, attribute->atttypid, alteration->source->objectid_type);
		if (type != NULL)
			appendStringInfo(begin_action(alteration), "ALTER COLUMN %s TYPE %s",
							 quote_identifier(name), type);
		alter_indexed(alteration, name, options);
	}
}

/* is_read: does a column read this field, or one that it is inside of? */
static bool
is_read(const Alteration *alteration, const char *path)
{
	ListCell   *cell;

	foreach(cell, alteration->paths)
	{
		if (mongo_path_is_under(path, lfirst(cell)))
			return true;
	}
	return false;
}

static void
add_missing_columns(Alteration *alteration)
{
	List	   *added = NIL;
	ListCell   *cell;

	foreach(cell, alteration->table->columns)
	{
		ImportColumn *column = lfirst(cell);

		if (!is_read(alteration, mongo_to_utf8(column->path)))
			added = lappend(added, column);
	}
	import_table_name_columns(added, alteration->names);
	foreach(cell, added)
	{
		StringInfo	actions = begin_action(alteration);

		appendStringInfoString(actions, "ADD COLUMN ");
		import_append_column(actions, lfirst(cell));
	}
	if (alteration->table->whole_document && !alteration->has_document)
		appendStringInfo(begin_action(alteration), "ADD COLUMN %s jsonb",
						 quote_identifier(MONGO_DOCUMENT_COLUMN));
}

/* alter_command: NULL where nothing is to be done. */
static char *
alter_command(const Refresh *refresh, const ImportSource *source,
			  const ImportTable *table, Oid relid)
{
	Alteration	alteration = {.source = source, .table = table};
	char	   *command = NULL;

	alteration.relation = table_open(relid, AccessShareLock);
	alteration.names = import_names_create();
	initStringInfo(&alteration.actions);
	alter_columns(&alteration);
	add_missing_columns(&alteration);
	if (alteration.actions.len > 0)
		command = psprintf("ALTER FOREIGN TABLE %s%s;",
						   quote_qualified_identifier(refresh->schema,
													  RelationGetRelationName(alteration.relation)),
						   alteration.actions.data);
	table_close(alteration.relation, AccessShareLock);
	return command;
}

/* ------------------------------ a database --------------------------------- */

static void
add_statement(Refresh *refresh, const char *statement)
{
	MemoryContext previous = MemoryContextSwitchTo(refresh->context);

	refresh->statements = lappend(refresh->statements, pstrdup(statement));
	MemoryContextSwitchTo(previous);
}

/* refresh_collection: alter its tables, or create one. */
static void
refresh_collection(Refresh *refresh, const ImportSource *source, Oid serverid,
				   ImportCollection *collection)
{
	ImportTable *table = NULL;
	bool		has_table = false;
	ListCell   *cell;

	foreach(cell, refresh->present)
	{
		PresentTable *present = lfirst(cell);
		char	   *command;

		if (present->serverid != serverid ||
			strcmp(present->database, source->database) != 0 ||
			strcmp(present->collection, collection->name) != 0)
			continue;
		has_table = present->found = true;
		if (table == NULL)
			table = import_table_read(source, collection);
		if (table == NULL)
			return;
		command = alter_command(refresh, source, table, present->relid);
		if (command != NULL)
			add_statement(refresh, command);
	}
	if (has_table || !refresh->new_tables || (collection->is_view && !source->options.import_views))
		return;

	table = import_table_read(source, collection);
	if (table == NULL)
		return;
	if (!import_name_reserve(refresh->relation_names, collection->table_name))
		collection->table_name = import_name_choose(refresh->relation_names,
													collection->table_name);
	table->name = collection->table_name;
	add_statement(refresh, import_create_command(source, table));
}

/* refresh_database: its collections that have a table in the schema, and others. */
static void
refresh_database(Refresh *refresh, Oid serverid, const char *database)
{
	ImportSource source = import_source(untransformRelOptions(refresh->options),
										GetForeignServer(serverid), database);
	List	   *collections;
	MemoryContext context;
	ListCell   *cell;

	source.schema = refresh->schema;
	collections = import_list_collections(&source);
	import_name_tables(&source, collections, refresh->namespace);

	context = AllocSetContextCreate(CurrentMemoryContext, "mongo_fdw refresh",
									ALLOCSET_DEFAULT_SIZES);
	foreach(cell, collections)
	{
		MemoryContext previous = MemoryContextSwitchTo(context);

		refresh_collection(refresh, &source, serverid, lfirst(cell));
		MemoryContextSwitchTo(previous);
		MemoryContextReset(context);
	}
	MemoryContextDelete(context);

	foreach(cell, refresh->present)
	{
		PresentTable *present = lfirst(cell);

		if (present->serverid != serverid || strcmp(present->database, database) != 0)
			continue;
		present->done = true;
		if (!present->found)
			ereport(NOTICE,
					(errmsg("collection \"%s.%s\" of foreign table \"%s\" does not exist",
							database, present->collection, get_rel_name(present->relid))));
	}
}

/* ------------------------------ the function ------------------------------- */

/*
 * mongo_fdw_refresh(schema regnamespace, execute boolean, server name,
 *					 database text, new_tables boolean, options text[])
 *		The statements, which have been run with 'execute'.
 *
 * Without server and database those of the schema's tables are meant.  Raises 22023
 * for one of the two alone, and what IMPORT FOREIGN SCHEMA raises.
 */
Datum
mongo_fdw_refresh(PG_FUNCTION_ARGS)
{
	Refresh		refresh = {.context = CurrentMemoryContext};
	ReturnSetInfo *result;
	ListCell   *cell;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	result = (ReturnSetInfo *) fcinfo->resultinfo;
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(4) || PG_ARGISNULL(5))
		return (Datum) 0;
	if (PG_ARGISNULL(2) != PG_ARGISNULL(3))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a server and a database must be given together")));

	refresh.namespace = PG_GETARG_OID(0);
	refresh.schema = get_namespace_name(refresh.namespace);
	if (refresh.schema == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_SCHEMA),
				 errmsg("schema with OID %u does not exist", refresh.namespace)));
	refresh.new_tables = PG_GETARG_BOOL(4);
	refresh.options = PG_GETARG_DATUM(5);
	read_schema(&refresh);
	if (!PG_ARGISNULL(2))
		refresh_database(&refresh,
						 GetForeignServerByName(NameStr(*PG_GETARG_NAME(2)), false)->serverid,
						 text_to_cstring(PG_GETARG_TEXT_PP(3)));
	foreach(cell, PG_ARGISNULL(2) ? refresh.present : NIL)
	{
		const PresentTable *present = lfirst(cell);

		if (!present->done)
			refresh_database(&refresh, present->serverid, present->database);
	}

	/* as the caller, who must be allowed to */
	SPI_connect();
	foreach(cell, refresh.statements)
	{
		int			done = PG_GETARG_BOOL(1) ? SPI_execute(lfirst(cell), false, 0) : 0;

		if (done < 0)
			elog(ERROR, "SPI_execute failed: %s", SPI_result_code_string(done));
	}
	SPI_finish();
	foreach(cell, refresh.statements)
	{
		Datum		value = CStringGetTextDatum(lfirst(cell));
		bool		isnull = false;

		tuplestore_putvalues(result->setResult, result->setDesc, &value, &isnull);
	}
	return (Datum) 0;
}
