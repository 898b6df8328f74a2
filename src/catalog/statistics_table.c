/*-------------------------------------------------------------------------
 *
 * statistics_table.c
 *		The rows in which what ANALYZE has learned is kept.
 *
 * The table is read and written as PostgreSQL does with its catalogs: directly,
 * with the newest snapshot.  So no privilege is needed that a user could misuse,
 * and no code of a user runs.
 *
 * A row belongs to its foreign table by OID.  Nothing can make it vanish with
 * that table but an event trigger, which every DROP in the database would have to
 * pass; instead the view shows only rows of tables that are there, and whoever
 * writes removes the others.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "statistics_table.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "foreign/foreign.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#define TABLE_NAME	"mongo_fdw_statistics_data"

/* Its columns. */
enum
{
	COLUMN_RELID = 1,
	COLUMN_COLLECTION,
	COLUMN_LEARNED_AT,
	COLUMN_DOCUMENTS,
	COLUMN_DOCUMENT_SIZE,
	COLUMN_SAMPLED,
	COLUMN_INDEXES,
	COLUMN_FIELDS,
	COLUMN_COUNT = COLUMN_FIELDS
};

static const Oid column_types[COLUMN_COUNT] = {
	OIDOID, TEXTOID, TIMESTAMPTZOID, FLOAT8OID, FLOAT8OID, FLOAT8OID, JSONBOID, JSONBOID
};

/* A table of no more blocks is read whole, which costs less than to open its index. */
#define FEW_BLOCKS	16

/*
 * table_oid
 *		Of the name, beside the handler function of the foreign table's wrapper.
 *
 * To follow the extension's dependencies would be as sure of an extension whose
 * objects are in several schemas, but takes a third of what a new session does
 * for its first query; these catalog rows are in its caches already.
 */
static Oid
table_oid(Oid relid)
{
	ForeignServer *server = GetForeignServer(GetForeignTable(relid)->serverid);
	Oid			handler = GetForeignDataWrapper(server->fdwid)->fdwhandler;

	return OidIsValid(handler) ?
		get_relname_relid(TABLE_NAME, get_func_namespace(handler)) : InvalidOid;
}

/* Where the extension has no such table, somebody may have made one. */
static bool
has_our_columns(Relation table)
{
	TupleDesc	tuple = RelationGetDescr(table);

	if (table->rd_rel->relkind != RELKIND_RELATION || tuple->natts != COLUMN_COUNT)
		return false;
	for (int i = 0; i < COLUMN_COUNT; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tuple, i);
		bool		nullable = i == COLUMN_INDEXES - 1;

		if (attribute->attisdropped || attribute->atttypid != column_types[i] ||
			attribute->attnotnull == nullable)
			return false;
	}
	return true;
}

/* open_table: for the row of a foreign table; NULL when there is no table that we know. */
static Relation
open_table(Oid relid, LOCKMODE lock)
{
	Oid			oid = table_oid(relid);
	Relation	table = OidIsValid(oid) ? try_table_open(oid, lock) : NULL;

	if (table != NULL && !has_our_columns(table))
	{
		table_close(table, lock);
		return NULL;
	}
	return table;
}

/* open_own_table: NULL also for a table that does not belong to the extension. */
static Relation
open_own_table(Oid relid, LOCKMODE lock)
{
	Relation	table = open_table(relid, lock);
	Oid			extension = get_extension_oid("mongo_fdw", true);

	if (table == NULL)
		return NULL;
	if (OidIsValid(extension) &&
		getExtensionOfObject(RelationRelationId, RelationGetRelid(table)) == extension)
		return table;
	table_close(table, lock);
	return NULL;
}

/* primary_key: the index over relid. */
static Oid
primary_key(Relation table)
{
	list_free(RelationGetIndexList(table));
	return table->rd_pkindex;
}

/* begin_scan: for the row of one table. */
static SysScanDesc
begin_scan(Relation table, Oid relid, ScanKey key)
{
	Oid			index = InvalidOid;

	if (RelationGetNumberOfBlocks(table) > FEW_BLOCKS)
		index = primary_key(table);
	ScanKeyInit(key, COLUMN_RELID, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	return systable_beginscan(table, index, OidIsValid(index), NULL, 1, key);
}

bool
statistics_row_read(Oid relid, StatisticsRow *row)
{
	Relation	table = open_table(relid, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (table == NULL)
		return false;
	scan = begin_scan(table, relid, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		Datum		values[COLUMN_COUNT];
		bool		isnull[COLUMN_COUNT];

		heap_deform_tuple(tuple, RelationGetDescr(table), values, isnull);
		row->relid = relid;
		row->collection = TextDatumGetCString(values[COLUMN_COLLECTION - 1]);
		row->learned_at = DatumGetTimestampTz(values[COLUMN_LEARNED_AT - 1]);
		row->documents = DatumGetFloat8(values[COLUMN_DOCUMENTS - 1]);
		row->document_size = DatumGetFloat8(values[COLUMN_DOCUMENT_SIZE - 1]);
		row->sampled = DatumGetFloat8(values[COLUMN_SAMPLED - 1]);
		row->indexes_known = !isnull[COLUMN_INDEXES - 1];
		if (row->indexes_known)
			row->indexes = PointerGetDatum(PG_DETOAST_DATUM_COPY(values[COLUMN_INDEXES - 1]));
		row->fields = PointerGetDatum(PG_DETOAST_DATUM_COPY(values[COLUMN_FIELDS - 1]));
	}
	systable_endscan(scan);
	table_close(table, AccessShareLock);
	return HeapTupleIsValid(tuple);
}

/*
 * remove_orphans
 *		Delete rows of foreign tables that have been dropped.
 *
 * Whoever else does so at the same time may win: nothing is waited for.
 */
static void
remove_orphans(Relation table)
{
	SysScanDesc scan = systable_beginscan(table, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		Datum		relid = heap_getattr(tuple, COLUMN_RELID, RelationGetDescr(table),
										 &isnull);
		TM_FailureData failure;

		if (!SearchSysCacheExists1(FOREIGNTABLEREL, relid))
			table_tuple_delete(table, &tuple->t_self, GetCurrentCommandId(true),
							   InvalidSnapshot, InvalidSnapshot, false, &failure,
							   false);
	}
	systable_endscan(scan);
}

void
statistics_row_write(const StatisticsRow *row)
{
	Relation	table = open_own_table(row->relid, RowExclusiveLock);
	Datum		values[COLUMN_COUNT] = {0};
	bool		isnull[COLUMN_COUNT] = {false};
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	former;
	HeapTuple	tuple;

	if (table == NULL)
		return;

	values[COLUMN_RELID - 1] = ObjectIdGetDatum(row->relid);
	values[COLUMN_COLLECTION - 1] = CStringGetTextDatum(row->collection);
	values[COLUMN_LEARNED_AT - 1] = TimestampTzGetDatum(row->learned_at);
	values[COLUMN_DOCUMENTS - 1] = Float8GetDatum(row->documents);
	values[COLUMN_DOCUMENT_SIZE - 1] = Float8GetDatum(row->document_size);
	values[COLUMN_SAMPLED - 1] = Float8GetDatum(row->sampled);
	values[COLUMN_INDEXES - 1] = row->indexes_known ? row->indexes : (Datum) 0;
	isnull[COLUMN_INDEXES - 1] = !row->indexes_known;
	values[COLUMN_FIELDS - 1] = row->fields;
	tuple = heap_form_tuple(RelationGetDescr(table), values, isnull);

	/* one statement may write a row twice, as for a table with children */
	CommandCounterIncrement();
	scan = begin_scan(table, row->relid, &key);
	former = systable_getnext(scan);
	if (HeapTupleIsValid(former))
		CatalogTupleUpdate(table, &former->t_self, tuple);
	else
		CatalogTupleInsert(table, tuple);
	systable_endscan(scan);
	remove_orphans(table);

	/* the lock is kept, as for any table that was written */
	table_close(table, NoLock);
	CacheInvalidateRelcacheByRelid(row->relid);
}
