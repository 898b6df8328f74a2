/*-------------------------------------------------------------------------
 *
 * rows.c
 *		Reads the rows of documents at the bound time, and makes a table equal to them.
 *
 * A document's rows are what the foreign table returns for its _id.  So conversion, arrays as
 * rows, pipelines and documents that do not fit need no rules of their own here.  Rows are read by
 * the value of the key: two documents with one key are noticed.
 *
 * The rows that differ are found first, and a statement that would change none is not run.  No key
 * is deleted and inserted in one step, since ON DELETE CASCADE of other tables would delete
 * theirs; and never ON CONFLICT, which calls triggers for rows that are not written.  Triggers and
 * deferrable constraints are called by the caller, when all tables have been written.
 *
 * All of it runs with the rights of the table's owner, within SPI.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync_internal.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/tstoreReceiver.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/plancache.h"
#include "utils/queryenvironment.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

struct SyncRows
{
	const SyncTable *table;
	MemoryContext context;
	Datum	   *keys;			/* values of the key's type */
	int			nkeys;
	int			keys_size;
	List	   *documents;		/* {_id: ...}, bytea *, to be found as they
								 * are */
	List	   *unfit_ids;		/* __mismatch of _ids that do not fit, a
								 * jsonb; NULL: of null */
	Tuplestorestate *fetched;	/* NULL: nothing fetched yet */
	TupleDesc	descriptor;
	uint64		nfetched;
};

/* -------------------------- Statements by SPI ----------------------------- */

/* Returns a plan, with a parameter if its type is valid. */
static SPIPlanPtr
prepare_plan(const char *sql, Oid parameter)
{
	SPIPlanPtr	plan = SPI_prepare(sql, OidIsValid(parameter) ? 1 : 0, &parameter);

	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
	return plan;
}

/* Runs a statement that writes, but fires no AFTER trigger; returns the number of rows. */
static uint64
run_write(const char *sql, Oid type, Datum parameter)
{
	SPIPlanPtr	plan = prepare_plan(sql, type);
	int			result = SPI_execute_snapshot(plan, &parameter, NULL, InvalidSnapshot, InvalidSnapshot,
											  false, false, 0);

	if (result < 0)
		elog(ERROR, "SPI_execute_snapshot failed: %s", SPI_result_code_string(result));
	SPI_freeplan(plan);
	return SPI_processed;
}

/* Runs a query; SPI_tuptable is its result. */
static uint64
query(const char *sql, Oid type, Datum parameter)
{
	int			result;

	SPI_freetuptable(SPI_tuptable);
	result = OidIsValid(type) ? SPI_execute_with_args(sql, 1, &type, &parameter, NULL, false, 0) :
		SPI_execute(sql, false, 0);

	if (result < 0)
		elog(ERROR, "SPI_execute failed: %s", SPI_result_code_string(result));
	return SPI_processed;
}

/* Appends a query's rows to a store, and sets *descriptor unless it is NULL. */
static uint64
query_into(Tuplestorestate *store, MemoryContext context, TupleDesc *descriptor,
		   const char *sql, Oid type, Datum parameter)
{
	SPIPlanPtr	plan = prepare_plan(sql, type);
	SPIExecuteOptions options = {0};
	ParamListInfo params = makeParamList(OidIsValid(type) ? 1 : 0);
	int			result;

	if (OidIsValid(type))
		params->params[0] = (ParamExternData) {.value = parameter,.ptype = type,.pflags = PARAM_FLAG_CONST};
	if (descriptor != NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(context);
		CachedPlanSource *source = linitial(SPI_plan_get_plan_sources(plan));

		*descriptor = CreateTupleDescCopy(source->resultDesc);
		MemoryContextSwitchTo(old_context);
	}
	options.params = params;
	options.dest = CreateDestReceiver(DestTuplestore);
	SetTuplestoreDestReceiverParams(options.dest, store, context, true, NULL, NULL);
	result = SPI_execute_plan_extended(plan, &options);
	if (result < 0)
		elog(ERROR, "SPI_execute_plan_extended failed: %s", SPI_result_code_string(result));
	options.dest->rDestroy(options.dest);
	SPI_freeplan(plan);
	return SPI_processed;
}

/* Lets statements read a store by a name, until forget_store(). */
static void
name_store(const char *name, Tuplestorestate *store, TupleDesc descriptor, uint64 rows)
{
	EphemeralNamedRelation relation = palloc0(sizeof(EphemeralNamedRelationData));

	relation->md.name = pstrdup(name);
	relation->md.tupdesc = descriptor;
	relation->md.enrtype = ENR_NAMED_TUPLESTORE;
	relation->md.enrtuples = rows;
	relation->reldata = store;
	if (SPI_register_relation(relation) != SPI_OK_REL_REGISTER)
		elog(ERROR, "could not name the rows of documents");
}

static void
forget_store(const char *name)
{
	(void) SPI_unregister_relation(name);
}

/* --------------------------- Keys of documents ---------------------------- */

/*
 * sync_rows_create
 *		Returns the rows of some documents, in the current memory context.
 */
SyncRows *
sync_rows_create(const SyncTable *table)
{
	SyncRows   *rows = palloc0(sizeof(SyncRows));

	rows->table = table;
	rows->context = CurrentMemoryContext;
	return rows;
}

/*
 * sync_rows_add
 *		Adds a document's key, {_id: ...}.  Has the type's input and the checks of domains called.
 */
void
sync_rows_add(SyncRows *rows, bytea *key)
{
	MemoryContext old_context = MemoryContextSwitchTo(rows->context);
	Datum		values[2];
	bool		isnull[2];
	MongoErrorSource source;

	/* so that __mismatch has the value */
	mongo_push_error_source(&source, list_make1_oid(rows->table->foreign));
	mongo_row_decode(rows->table->decoder, (uint8 *) VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key), values, isnull);
	mongo_pop_error_source(&source);
	if (isnull[0] || !rows->table->finds_by_value)
		rows->documents = lappend(rows->documents, key);
	if (isnull[0])
	{
		rows->unfit_ids = lappend(rows->unfit_ids, isnull[1] ? NULL : DatumGetPointer(values[1]));
	}
	else
	{
		if (rows->nkeys == rows->keys_size)
		{
			rows->keys_size = Max(64, rows->keys_size * 2);
			rows->keys = rows->keys == NULL ? MemoryContextAllocHuge(rows->context, rows->keys_size * sizeof(Datum)) :
				repalloc_huge(rows->keys, rows->keys_size * sizeof(Datum));
		}
		rows->keys[rows->nkeys++] = values[0];
	}
	MemoryContextSwitchTo(old_context);
}

typedef struct KeyOrder
{
	FmgrInfo   *compare;
	Oid			collation;
} KeyOrder;

static int
compare_keys(const void *one, const void *other, void *arg)
{
	const KeyOrder *order = arg;

	return DatumGetInt32(FunctionCall2Coll(order->compare, order->collation,
										   *(const Datum *) one, *(const Datum *) other));
}

/* Sorts the keys, and keeps one of those that are equal. */
static void
remove_duplicates(SyncRows *rows)
{
	TypeCacheEntry *type = lookup_type_cache(rows->table->key_type, TYPECACHE_CMP_PROC_FINFO);
	KeyOrder	order = {&type->cmp_proc_finfo, type->typcollation};
	int			kept = 0;

	if (rows->nkeys < 2 || !OidIsValid(type->cmp_proc_finfo.fn_oid))
		return;
	qsort_arg(rows->keys, rows->nkeys, sizeof(Datum), compare_keys, &order);
	for (int i = 1; i < rows->nkeys; i++)
	{
		if (compare_keys(&rows->keys[kept], &rows->keys[i], &order) != 0)
			rows->keys[++kept] = rows->keys[i];
	}
	rows->nkeys = kept + 1;
}

/* Returns some of the keys as an array. */
static Datum
key_array(const SyncRows *rows, int from, int count)
{
	int16		length;
	bool		by_value;
	char		alignment;

	get_typlenbyvalalign(rows->table->key_type, &length, &by_value, &alignment);
	return PointerGetDatum(construct_array(rows->keys + from, count, rows->table->key_type,
										   length, by_value, alignment));
}

/*
 * sync_match_json
 *		Returns a match document as JSON for mongo_match(), in the database's encoding.
 */
const char *
sync_match_json(const bson_t *match)
{
	size_t		length;
	char	   *json = bson_as_canonical_extended_json(match, &length);
	char	   *copy;

	if (json == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	copy = pnstrdup(json, length);
	bson_free(json);
	return mongo_from_utf8(copy);
}

/* Returns {"_id": {"$in": [...]}} for some of the documents, as JSON. */
static const char *
documents_match(const List *documents, int from, int count)
{
	BsonArray	ids = mongo_array_create();

	for (int i = from; i < from + count; i++)
	{
		bytea	   *key = list_nth(documents, i);
		bson_t		view;

		if (!mongo_bson_view(&view, (uint8 *) VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key)))
			mongo_report_bad_bson();
		mongo_array_append(&ids, mongo_first_value(&view));
	}
	return sync_match_json(mongo_from_template("{_id: {$in: @1}}", mongo_array(ids.bson)));
}

/* -------------------------------- Reading --------------------------------- */

/* Returns the columns of rows of this name, for SELECT. */
static const char *
columns_of(const SyncTable *table, const char *name)
{
	return sync_list(table, psprintf("%s.%%s", name), ", ", 0, table->ncolumns);
}

/* Returns the condition that MongoDB matches a row of the foreign table. */
static const char *
matches(const SyncTable *table, const char *match)
{
	return psprintf("%s(ROW(%s), %s::json)", table->match_function, table->row, quote_literal_cstr(match));
}

/* Appends the rows of the foreign table that a condition finds. */
static void
fetch(SyncRows *rows, const char *condition, Oid type, Datum parameter)
{
	const SyncTable *table = rows->table;
	bool		is_first = rows->fetched == NULL;

	if (is_first)
		rows->fetched = tuplestore_begin_heap(false, false, work_mem);
	rows->nfetched += query_into(rows->fetched, rows->context, is_first ? &rows->descriptor : NULL,
								 psprintf("SELECT %s%s FROM %s %s WHERE %s",
										  columns_of(table, table->row),
										  table->has_mismatch ? psprintf(", %s." MONGO_MISMATCH_COLUMN, table->row) : "",
										  table->foreign_name, table->row, condition),
								 type, parameter);
}

/*
 * sync_rows_fetch
 *		Reads the rows of all keys that were added.
 */
void
sync_rows_fetch(SyncRows *rows)
{
	const SyncTable *table = rows->table;
	MemoryContext old_context = MemoryContextSwitchTo(rows->context);
	Oid			array_type = get_array_type(table->key_type);
	int			ndocuments = list_length(rows->documents);

	remove_duplicates(rows);
	for (int from = 0; table->finds_by_value && from < rows->nkeys; from += SYNC_BATCH)
		fetch(rows, psprintf("%s.%s %s ANY ($1)", table->row, table->key, table->key_equals), array_type,
			  key_array(rows, from, Min(SYNC_BATCH, rows->nkeys - from)));
	for (int from = 0; from < ndocuments; from += SYNC_BATCH)
		sync_rows_fetch_range(rows, documents_match(rows->documents, from, Min(SYNC_BATCH, ndocuments - from)));
	MemoryContextSwitchTo(old_context);
}

/*
 * sync_rows_fetch_range
 *		Reads the rows of the documents that match, as of mongo_match(); NULL: all.
 */
void
sync_rows_fetch_range(SyncRows *rows, const char *match)
{
	MemoryContext old_context = MemoryContextSwitchTo(rows->context);

	fetch(rows, match == NULL ? "true" : matches(rows->table, match), InvalidOid, (Datum) 0);
	MemoryContextSwitchTo(old_context);
}

/* Returns the condition that a row of range variable 'name' can be written. */
static const char *
fitting(const SyncTable *table, const char *name)
{
	return psprintf("%s.%s IS NOT NULL%s%s", name, table->key,
					get_typlen(table->key_type) == -1 ?
					psprintf(" AND pg_column_size(%s.%s) <= %d", name, table->key, SYNC_LONGEST_KEY) : "",
					table->has_mismatch ? psprintf(" AND %s." MONGO_MISMATCH_COLUMN " IS NULL", name) : "");
}

/* -------------------------------- Writing --------------------------------- */

/* What is compared with a table. */
typedef struct Difference
{
	const SyncTable *table;
	const char *source;			/* as in FROM, with the alias n */
	const char *fits;			/* rows of it that are written */
	const char *gone;			/* rows t of the table that may have to be
								 * deleted; NULL: none */
	Oid			type;			/* of the parameter of 'gone' */
	Datum		parameter;
	const char *deleted_at;		/* quoted column, or NULL */
	uint64		time;
} Difference;

/* Raises 09000: a BEFORE trigger has returned NULL. */
pg_noreturn static void
report_suppressed(const SyncTable *table, const char *what, uint64 expected, uint64 processed)
{
	ereport(ERROR,
			(errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
			 errmsg("%s of %lld rows of table %s has changed only %lld",
					what, (long long) expected, table->target_name, (long long) processed),
			 errhint("A trigger of the table has returned NULL. All rows that MongoDB has must be written.")));
}

/* Returns the condition that the document of a row t is gone. */
static const char *
gone_rows(const Difference *difference)
{
	return psprintf("%s AND NOT EXISTS (SELECT FROM %s WHERE %s AND %s)%s",
					difference->gone, difference->source,
					sync_same_key(difference->table, "n", "t"), difference->fits,
					difference->deleted_at == NULL ? "" :
					psprintf(" AND t.%s IS NULL", difference->deleted_at));
}

/* Returns the query for rows n that the table lacks, where t is NULL, or has otherwise. */
static const char *
changed_rows(const Difference *difference, const char *columns)
{
	const SyncTable *table = difference->table;

	return psprintf("SELECT %s FROM %s LEFT JOIN %s t ON %s WHERE %s AND (t.%s IS NULL"
					" OR %s *<> %s%s)",
					columns, difference->source, table->target_name, sync_same_key(table, "t", "n"),
					difference->fits, table->key, sync_row_image(table, "t"), sync_row_image(table, "n"),
					difference->deleted_at == NULL ? "" :
					psprintf(" OR t.%s IS NOT NULL", difference->deleted_at));
}

/* Deletes the rows, or notes when, whose documents are gone. */
static uint64
delete_gone(const Difference *difference)
{
	const SyncTable *table = difference->table;
	const char *condition = gone_rows(difference);
	uint64		expected;
	uint64		processed;
	char	   *sql;

	(void) query(psprintf("SELECT count(*) FROM %s t WHERE %s", table->target_name, condition),
				 difference->type, difference->parameter);
	expected = (uint64) DatumGetInt64(sync_result(0, 1, NULL));
	if (expected == 0)
		return 0;
	if (difference->deleted_at == NULL)
		sql = psprintf("DELETE FROM %s t WHERE %s", table->target_name, condition);
	else
		sql = psprintf("UPDATE %s t SET %s = to_timestamp(%u) WHERE %s", table->target_name,
					   difference->deleted_at, (uint32) (difference->time >> 32), condition);
	processed = run_write(sql, difference->type, difference->parameter);
	if (processed != expected)
		report_suppressed(table, "DELETE", expected, processed);
	return processed;
}

/* Updates and inserts the rows that differ. */
static SyncCounts
write_changed(const Difference *difference)
{
	const SyncTable *table = difference->table;
	Tuplestorestate *changed = tuplestore_begin_heap(false, false, work_mem);
	TupleDesc	descriptor;
	SyncCounts	counts = {0};
	uint64		rows;
	uint64		missing = 0;
	const char *undelete = difference->deleted_at == NULL ? "" : psprintf(", %s = NULL", difference->deleted_at);

	rows = query_into(changed, CurrentMemoryContext, &descriptor,
					  changed_rows(difference, psprintf("%s, t.%s IS NULL AS %s", columns_of(table, "n"),
														table->key, table->is_missing)),
					  InvalidOid, (Datum) 0);
	if (rows > 0)
	{
		name_store("__changed", changed, descriptor, rows);
		(void) query(psprintf("SELECT count(*) FROM __changed WHERE %s", table->is_missing), InvalidOid, (Datum) 0);
		missing = (uint64) DatumGetInt64(sync_result(0, 1, NULL));
		if (rows > missing)
		{
			counts.updated = run_write(psprintf("UPDATE %s t SET %s%s FROM __changed n WHERE NOT n.%s AND %s",
												table->target_name,
												sync_list(table, "%s = n.%s", ", ", 0, table->ncolumns),
												undelete, table->is_missing, sync_same_key(table, "t", "n")),
									   InvalidOid, (Datum) 0);
			if (counts.updated != rows - missing)
				report_suppressed(table, "UPDATE", rows - missing, counts.updated);
		}
		if (missing > 0)
		{
			counts.inserted = run_write(psprintf("INSERT INTO %s (%s) SELECT %s FROM __changed n WHERE n.%s",
												 table->target_name,
												 sync_list(table, "%s", ", ", 0, table->ncolumns),
												 columns_of(table, "n"), table->is_missing),
										InvalidOid, (Datum) 0);
			if (counts.inserted != missing)
				report_suppressed(table, "INSERT", missing, counts.inserted);
		}
		forget_store("__changed");
	}
	tuplestore_end(changed);
	return counts;
}

/* Makes the table equal to the source: deletes first, as keys may be unique in other columns. */
static SyncCounts
make_equal(const Difference *difference)
{
	uint64		deleted = difference->gone == NULL ? 0 : delete_gone(difference);
	SyncCounts	counts = write_changed(difference);

	counts.deleted = deleted;
	return counts;
}

/* Returns what is compared with a member's table: the rows n of a source. */
static Difference
difference_of(const SyncTable *table, const SyncMember *member, const char *source, const char *fits, uint64 time)
{
	return (Difference) {
		.table = table,.source = source,.fits = fits,.gone = "true",.time = time,
		.deleted_at = member->deleted_at == NULL ? NULL : quote_identifier(member->deleted_at)
	};
}

/* Raises 23505 if two of the rows that were fetched have one key. */
static void
check_unique(const SyncRows *rows)
{
	const SyncTable *table = rows->table;
	const char *keys = sync_list(table, "n.%s", ", ", 0, table->nkeys);

	/* no fewer rows than keys say nothing: other documents may be gone */
	if (rows->nfetched < 2)
		return;
	if (query(psprintf("SELECT ROW(%s)::text FROM __fetched n WHERE %s GROUP BY %s HAVING count(*) > 1 LIMIT 1",
					   keys, fitting(table, "n"), keys), InvalidOid, (Datum) 0) > 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNIQUE_VIOLATION),
				 errmsg("two documents of foreign table %s have one key in PostgreSQL", table->foreign_name),
				 errdetail("Both have %s.", sync_result_text(0, 1)),
				 errhint("Give the column of _id a type that tells them apart, such as jsonb or text.")));
}

/*
 * sync_rows_apply
 *		Makes the table's rows of all keys that were added, or of the range, those that were
 *		fetched.
 *
 * 'time' is what member->deleted_at gets.  Raises 23505 for two documents with one key, and 09000
 * if a trigger has suppressed a row.
 */
SyncCounts
sync_rows_apply(SyncRows *rows, const SyncMember *member, uint64 time)
{
	const SyncTable *table = rows->table;
	MemoryContext old_context = MemoryContextSwitchTo(rows->context);
	SyncCounts	counts = {0};
	Difference	difference = difference_of(table, member, "__fetched n", fitting(table, "n"), time);

	if (rows->fetched != NULL)
	{
		name_store("__fetched", rows->fetched, rows->descriptor, rows->nfetched);
		check_unique(rows);
		difference.gone = NULL;
		if (rows->nkeys > 0)
		{
			difference.gone = psprintf("t.%s %s ANY ($1)", table->key, table->key_equals);
			difference.type = get_array_type(table->key_type);
			difference.parameter = key_array(rows, 0, rows->nkeys);
		}
		counts = make_equal(&difference);
		forget_store("__fetched");
	}
	MemoryContextSwitchTo(old_context);
	return counts;
}

/*
 * sync_rows_compare
 *		Appends how the table differs from all documents, which were fetched, to a store: rows of a
 *		key, as jsonb, and a text.  Returns how many.  With 'mend', makes the table equal.
 *
 * Raises what sync_rows_apply() does.
 */
uint64
sync_rows_compare(SyncRows *rows, SyncMember *member, bool mend, uint64 time, Tuplestorestate *store)
{
	const SyncTable *table = rows->table;
	const char *id = table->nkeys == 1 ? "to_jsonb(%s)" : "jsonb_build_array(%s)";
	uint64		count;
	Difference	difference = difference_of(table, member, "__fetched n", fitting(table, "n"), time);

	name_store("__fetched", rows->fetched, rows->descriptor, rows->nfetched);
	check_unique(rows);
	count = query_into(store, CurrentMemoryContext, NULL,
					   psprintf("%s UNION ALL SELECT %s, 'not in MongoDB' FROM %s t WHERE %s",
								changed_rows(&difference,
											 psprintf("%s, CASE WHEN t.%s IS NULL THEN 'missing' ELSE 'different' END",
													  psprintf(id, sync_list(table, "n.%s", ", ", 0, table->nkeys)), table->key)),
								psprintf(id, sync_list(table, "t.%s", ", ", 0, table->nkeys)),
								table->target_name, gone_rows(&difference)),
					   InvalidOid, (Datum) 0);
	if (mend && count > 0)
		member->counts = make_equal(&difference);
	forget_store("__fetched");
	return count;
}

/*
 * sync_rows_call_triggers
 *		Ends what AfterTriggerBeginQuery() has begun, when all is written.
 */
void
sync_rows_call_triggers(void)
{
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	AfterTriggerEndQuery(NULL);
	PopActiveSnapshot();
}

/*
 * sync_rows_swap
 *		Makes the local table equal to its new copy, in which all rows fit.
 */
SyncCounts
sync_rows_swap(const SyncMember *member, const SyncTable *table, const SyncTable *copy, uint64 time)
{
	Difference	difference = difference_of(table, member, psprintf("%s n", copy->target_name), "true", time);

	return make_equal(&difference);
}

/*
 * sync_rows_insert_range
 *		Inserts the rows of the documents that match into a table that has none of them, and
 *		returns how many.
 */
uint64
sync_rows_insert_range(const SyncTable *table, const char *match)
{
	return run_write(psprintf("INSERT INTO %s (%s) SELECT %s FROM %s %s WHERE %s%s",
							  table->target_name, sync_list(table, "%s", ", ", 0, table->ncolumns),
							  columns_of(table, table->row), table->foreign_name, table->row,
							  fitting(table, table->row),
							  match == NULL ? "" : psprintf(" AND %s", matches(table, match))),
					 InvalidOid, (Datum) 0);
}

/* ------------------- Documents that can have no row ----------------------- */

/* Returns SQL for what identifies such a document, of range variable n. */
static const char *
unfit_id(const SyncTable *table)
{
	return psprintf("COALESCE(to_jsonb(n.%s)%s, 'null')", table->key,
					table->has_mismatch ?
					", (SELECT e.value -> 'value' FROM jsonb_array_elements(n." MONGO_MISMATCH_COLUMN ") e"
					" WHERE e.value ->> 'field' = '_id' LIMIT 1)" : "");
}

/* Deletes what is noted of the documents that were fetched. */
static void
forget_unfit(const SyncRows *rows, const SyncMember *member)
{
	const SyncTable *table = rows->table;
	Datum	   *ids;
	int			count = 0;
	ListCell   *cell;

	ids = palloc(sizeof(Datum) * (rows->nkeys + list_length(rows->unfit_ids) + 1));
	if (rows->nkeys > 0)
	{
		uint64		found = query("SELECT to_jsonb(k) FROM unnest($1) k",
								  get_array_type(table->key_type), key_array(rows, 0, rows->nkeys));

		for (uint64 row = 0; row < found; row++)
			ids[count++] = datumCopy(sync_result(row, 1, NULL), false, -1);
	}
	foreach(cell, rows->unfit_ids)
	{
		Datum		mismatch = lfirst(cell) != NULL ? PointerGetDatum(lfirst(cell)) :
			DirectFunctionCall1(jsonb_in, CStringGetDatum("[]"));

		(void) query("SELECT COALESCE((SELECT e.value -> 'value' FROM jsonb_array_elements($1) e"
					 " WHERE e.value ->> 'field' = '_id' LIMIT 1), 'null')",
					 JSONBOID, mismatch);
		ids[count++] = datumCopy(sync_result(0, 1, NULL), false, -1);
	}
	(void) sync_run("DELETE FROM mongo_sync.unfit WHERE target = $1 AND id = ANY ($2)",
					SYNC_OID(member->target),
					SYNC_DATUM(JSONBARRAYOID, PointerGetDatum(construct_array(ids, count, JSONBOID, -1, false, TYPALIGN_INT))));
}

/*
 * sync_rows_note_unfit
 *		Notes the documents among those fetched that can have no row, and forgets those that have
 *		one now.  Raises HV004 if there is one and the foreign table has no column __mismatch.
 */
void
sync_rows_note_unfit(SyncRows *rows, SyncMember *member)
{
	const SyncTable *table = rows->table;
	MemoryContext old_context = MemoryContextSwitchTo(rows->context);
	uint64		count;
	Datum	   *ids;
	Datum	   *reasons;

	if (member->has_unfit)
		forget_unfit(rows, member);
	if (rows->fetched == NULL || rows->nfetched == 0)
	{
		MemoryContextSwitchTo(old_context);
		return;
	}
	name_store("__fetched", rows->fetched, rows->descriptor, rows->nfetched);
	count = query(psprintf("SELECT DISTINCT ON (1) %s, COALESCE(%sto_jsonb(CASE WHEN n.%s IS NULL THEN"
						   " '_id is null, or does not fit its column' ELSE '_id is too long for an index' END)) FROM __fetched n WHERE (%s) IS NOT TRUE",
						   unfit_id(table), table->has_mismatch ? "n." MONGO_MISMATCH_COLUMN ", " : "",
						   table->key, fitting(table, "n")), InvalidOid, (Datum) 0);
	forget_store("__fetched");
	if (count > 0 && !table->has_mismatch)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
				 errmsg("a document of foreign table %s can have no row: %s", table->foreign_name,
						JsonbToCString(NULL, &DatumGetJsonbP(sync_result(0, 2, NULL))->root, 0)),
				 errdetail("Its _id is %s.", JsonbToCString(NULL, &DatumGetJsonbP(sync_result(0, 1, NULL))->root, 0)),
				 errhint("ALTER FOREIGN TABLE %s ADD COLUMN __mismatch jsonb: such documents are then listed in mongo_sync.errors, and the others synchronized.",
						 table->foreign_name)));
	ids = palloc(sizeof(Datum) * (count + 1));
	reasons = palloc(sizeof(Datum) * (count + 1));
	for (uint64 row = 0; row < count; row++)
	{
		ids[row] = datumCopy(sync_result(row, 1, NULL), false, -1);
		reasons[row] = datumCopy(sync_result(row, 2, NULL), false, -1);
	}
	if (count > 0)
		(void) sync_run("INSERT INTO mongo_sync.unfit (target, id, reason) SELECT $1, i, r FROM ROWS FROM (unnest($2), unnest($3)) u (i, r)",
						SYNC_OID(member->target),
						SYNC_DATUM(JSONBARRAYOID, PointerGetDatum(construct_array(ids, (int) count, JSONBOID, -1, false, TYPALIGN_INT))),
						SYNC_DATUM(JSONBARRAYOID, PointerGetDatum(construct_array(reasons, (int) count, JSONBOID, -1, false, TYPALIGN_INT))));
	MemoryContextSwitchTo(old_context);
}
