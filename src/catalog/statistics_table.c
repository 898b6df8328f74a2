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
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
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

/* table_oid: the extension's own; nobody else's table of that name will do. */
static Oid
table_oid(void)
{
	Oid			extension = get_extension_oid("mongo_fdw", true);
	Oid			found = InvalidOid;
	Relation	depend;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!OidIsValid(extension))
		return InvalidOid;
	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(ExtensionRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(extension));
	depend = table_open(DependRelationId, AccessShareLock);
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 2, keys);
	while (!OidIsValid(found) && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend dependency = (Form_pg_depend) GETSTRUCT(tuple);
		char	   *name;

		if (dependency->classid != RelationRelationId ||
			dependency->deptype != DEPENDENCY_EXTENSION)
			continue;
		name = get_rel_name(dependency->objid);
		if (name != NULL && strcmp(name, TABLE_NAME) == 0)
			found = dependency->objid;
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return found;
}

/* open_table: NULL when there is no table that we know. */
static Relation
open_table(LOCKMODE lock)
{
	Oid			oid = table_oid();
	Relation	table = OidIsValid(oid) ? try_table_open(oid, lock) : NULL;

	if (table != NULL && RelationGetNumberOfAttributes(table) != COLUMN_COUNT)
	{
		table_close(table, lock);
		return NULL;
	}
	return table;
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
	Oid			index = primary_key(table);

	ScanKeyInit(key, COLUMN_RELID, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	return systable_beginscan(table, index, OidIsValid(index), NULL, 1, key);
}

bool
statistics_row_read(Oid relid, StatisticsRow *row)
{
	Relation	table = open_table(AccessShareLock);
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
	Relation	table = open_table(RowExclusiveLock);
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
