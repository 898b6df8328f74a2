/*-------------------------------------------------------------------------
 *
 * row_upsert.c
 *		From rows to the upserts of the option insert_mode.
 *
 * The filter compares by $eq, so that a value with operators in it is none; MongoDB
 * takes the fields of a new document from there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "row_upsert.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_type_d.h"
#include "bson_memory.h"
#include "bson_write.h"
#include "columns.h"
#include "encoding.h"
#include "optimizer/optimizer.h"
#include "path.h"
#include "path_list.h"
#include "row_changes.h"
#include "rewrite/rewriteHandler.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#define ID_KEY	"_id"

typedef struct UpsertKey
{
	const char *column;			/* for messages */
	const char *path;
	bool		may_be_array;
} UpsertKey;

struct MongoUpsertLayout
{
	TupleDesc	tuple;
	const char **paths;			/* by attribute number - 1; NULL: none */
	bool		only_inserts;	/* insert_mode 'ignore' */
	bool		keyed_by_id;
	List	   *keys;			/* UpsertKey * */
	List	   *assigned;		/* attribute numbers: what the statement gives */
	List	   *triggered;		/* likewise: what a trigger may have given */
	List	   *others;			/* likewise, of new documents: what may have a
								 * default */
	AttrNumber	document_attribute; /* the column __doc, or 0 */
};

static const char *
name_of_column(const MongoUpsertLayout *layout, AttrNumber attnum)
{
	return NameStr(TupleDescAttr(layout->tuple, attnum - 1)->attname);
}

/* ------------------------------- the layout -------------------------------- */

/* may_be_array: what the column reads. */
static bool
may_be_array(const MongoUpsertLayout *layout, AttrNumber attnum)
{
	Oid			type = TupleDescAttr(layout->tuple, attnum - 1)->atttypid;

	return mongo_is_nested_type(type) || getBaseType(type) == JSONOID;
}

/* add_upsert_key: 'attnum' 0 is _id, whatever columns read it or a part of it. */
static void
add_upsert_key(MongoUpsertLayout *layout, AttrNumber attnum)
{
	UpsertKey  *key = palloc0(sizeof(UpsertKey));

	key->path = attnum == 0 ? ID_KEY : layout->paths[attnum - 1];
	key->column = attnum == 0 ? ID_KEY : name_of_column(layout, attnum);
	if (key->path == NULL ||
		(mongo_path_is_under(key->path, ID_KEY) && strcmp(key->path, ID_KEY) != 0) ||
		!mongo_path_is_addressable(key->path))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" cannot be one of the option key_columns", key->column),
				 errdetail("A key is a field that MongoDB can name, and neither a part of _id nor the whole document.")));
	layout->keys = lappend(layout->keys, key);
	if (strcmp(key->path, ID_KEY) == 0)
		layout->keyed_by_id = true;
	else
		key->may_be_array = may_be_array(layout, attnum);
}

static void
find_keys(MongoUpsertLayout *layout, Oid relid, const char *key_columns)
{
	ListCell   *cell;

	if (key_columns == NULL)
		add_upsert_key(layout, 0);
	foreach(cell, mongo_split_list(key_columns))
	{
		AttrNumber	attnum = get_attnum(relid, lfirst(cell));

		if (attnum <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of the option key_columns does not exist",
							(char *) lfirst(cell)),
					 errdetail("Foreign table \"%s\" has no such column.", get_rel_name(relid))));
		add_upsert_key(layout, attnum);
	}
}

/* is_upsert_key: is this path, or what is around it, one of the keys? */
static bool
is_upsert_key(const MongoUpsertLayout *layout, const char *path)
{
	ListCell   *cell;

	foreach(cell, layout->keys)
	{
		if (strcmp(((UpsertKey *) lfirst(cell))->path, path) == 0)
			return true;
	}
	return false;
}

/* is_computed: a generated column, of nothing but columns that are given? */
static bool
is_computed(Oid relid, AttrNumber attnum, const Bitmapset *given)
{
	Relation	relation = table_open(relid, NoLock);
	Bitmapset  *used = NULL;

	pull_varattnos(build_column_default(relation, attnum), 1, &used);
	table_close(relation, NoLock);
	return bms_is_subset(used, given);
}

/* find_columns: what becomes of each that is no key. */
static void
find_columns(MongoUpsertLayout *layout, Oid relid, const Bitmapset *given, bool has_trigger)
{
	List	   *all = NIL;

	for (AttrNumber attnum = 1; attnum <= layout->tuple->natts; attnum++)
	{
		Form_pg_attribute attribute = TupleDescAttr(layout->tuple, attnum - 1);
		const char *path = layout->paths[attnum - 1];

		List	  **list = NULL;

		if (path == NULL || mongo_path_is_under(path, ID_KEY))
			continue;
		if (attribute->attgenerated != '\0' ? is_computed(relid, attnum, given) :
			bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, given))
			list = &layout->assigned;
		else if (attribute->atthasdef)
			list = &layout->others;
		else if (has_trigger)
			list = &layout->triggered;
		if (list == NULL)
			continue;
		all = lappend_int(all, attnum);
		if (!is_upsert_key(layout, path))
			*list = lappend_int(*list, attnum);
	}
	if (!layout->only_inserts)
		mongo_check_assignable(relid, all);
}

MongoUpsertLayout *
mongo_upsert_layout_create(Oid relid, TupleDesc tuple, const MongoTableOptions *options,
						   const Bitmapset *given, bool has_trigger)
{
	MongoUpsertLayout *layout = palloc0(sizeof(MongoUpsertLayout));

	layout->tuple = tuple;
	layout->only_inserts = options->insert_mode == MONGO_INSERT_MODE_IGNORE;
	layout->paths = palloc0(sizeof(char *) * Max(tuple->natts, 1));
	for (AttrNumber attnum = 1; attnum <= tuple->natts; attnum++)
	{
		if (TupleDescAttr(tuple, attnum - 1)->attisdropped)
			continue;
		if (strcmp(name_of_column(layout, attnum), MONGO_DOCUMENT_COLUMN) == 0)
			layout->document_attribute = attnum;
		else
			layout->paths[attnum - 1] = mongo_column_options(relid, attnum)->path;
	}
	find_keys(layout, relid, options->key_columns);
	if (layout->keyed_by_id && options->generated_id)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("with the option generated_id, _id cannot be a key of the option insert_mode"),
				 errhint("Name other columns in the option key_columns.")));
	find_columns(layout, relid, given, has_trigger);
	return layout;
}

List *
mongo_upsert_assigned(const MongoUpsertLayout *layout)
{
	return layout->assigned;
}

/* --------------------------------- a row ----------------------------------- */

pg_noreturn static void
report_no_key(const UpsertKey *key)
{
	ereport(ERROR,
			(errcode(ERRCODE_NOT_NULL_VIOLATION),
			 errmsg("null value in key column \"%s\"", key->column),
			 errdetail("By the table's option insert_mode, a row is looked for by the columns of its option key_columns, _id by default.")));
}

/*
 * append_key_condition: the field is the value; by $eq it may also be an array that has it for an
 * element.
 */
static void
append_key_condition(bson_t *filter, const UpsertKey *key, bson_value_t value)
{
	if (key->may_be_array)
		bson_append_template(filter, "{@1: {$eq: @2, $not: {$elemMatch: {$eq: @2}}}}",
							 bson_utf8(key->path), value);
	else
		bson_append_condition(filter, key->path, "$eq", value);
}

/* append_filter: {path: {$eq: value}, ...} */
static void
append_filter(const MongoUpsertLayout *layout, const bson_t *document, bool generated,
			  bson_t *filter)
{
	ListCell   *cell;

	foreach(cell, layout->keys)
	{
		const UpsertKey *key = lfirst(cell);
		bson_iter_t iter;
		bson_iter_t value;

		if ((generated && strcmp(key->path, ID_KEY) == 0) ||
			!bson_iter_init(&iter, document) ||
			!bson_iter_find_descendant(&iter, key->path, &value) ||
			BSON_ITER_HOLDS_NULL(&value))
			report_no_key(key);
		append_key_condition(filter, key, *bson_iter_value(&value));
	}
}

/* append_on_insert: {$setOnInsert: {all fields}} */
static void
append_on_insert(const bson_t *document, bson_t *update)
{
	bson_iter_t iter;

	bson_iter_init(&iter, document);
	while (bson_iter_next(&iter))
	{
		const char *key = bson_iter_key(&iter);

		if (key[0] == '$' || strchr(key, '.') != NULL || key[0] == '\0')
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("field name \"%s\" cannot be used with insert_mode 'ignore'",
							mongo_from_utf8(key))));
	}
	BSON_APPEND_DOCUMENT(update, "$setOnInsert", document);
}

/* append_others: {$setOnInsert: {_id, and defaults}} */
static void
append_others(const MongoUpsertLayout *layout, const MongoRowLayout *rows,
			  const Datum *values, const bool *isnull, const bson_t *document, bson_t *update)
{
	bson_t	   *fields = bson_create_in(CurrentMemoryContext);
	bson_iter_t id;
	ListCell   *cell;

	if (!bson_iter_init_find(&id, document, ID_KEY))
		elog(ERROR, "document has no _id");
	bson_append_iter(fields, ID_KEY, -1, &id);
	foreach(cell, layout->others)
	{
		AttrNumber	attnum = lfirst_int(cell);
		const char *path = layout->paths[attnum - 1];

		if (!isnull[attnum - 1])
			mongo_append_column_value(fields, path, path, values[attnum - 1],
									  TupleDescAttr(layout->tuple, attnum - 1),
									  mongo_row_bson_type(rows, attnum));
	}
	BSON_APPEND_DOCUMENT(update, "$setOnInsert", fields);
}

void
mongo_row_to_upsert(const MongoUpsertLayout *layout, const MongoRowLayout *rows,
					const Datum *values, const bool *isnull, const bson_t *document,
					bool generated, bson_t *filter, bson_t *update)
{
	append_filter(layout, document, generated, filter);
	if (layout->only_inserts)
		append_on_insert(document, update);
	else if (layout->document_attribute != 0 && !isnull[layout->document_attribute - 1])
		mongo_row_to_update(rows, list_make1_int(layout->document_attribute), values, isnull,
							NULL, NULL, update);
	else
	{
		List	   *assigned = list_copy(layout->assigned);
		ListCell   *cell;

		foreach(cell, layout->triggered)
		{
			if (!isnull[lfirst_int(cell) - 1])
				assigned = lappend_int(assigned, lfirst_int(cell));
		}
		mongo_row_to_update(rows, assigned, values, isnull, NULL, NULL, update);
		append_others(layout, rows, values, isnull, document, update);
	}
}

/* -------------------------------- EXPLAIN ---------------------------------- */

static bson_value_t
column_placeholder(const char *column)
{
	return bson_utf8(mongo_to_utf8(psprintf("<%s>", column)));
}

void
mongo_describe_upsert(const MongoUpsertLayout *layout, bson_t *filter, bson_t *update)
{
	bson_t	   *set = bson_create_in(CurrentMemoryContext);
	ListCell   *cell;

	foreach(cell, layout->keys)
	{
		const UpsertKey *key = lfirst(cell);

		append_key_condition(filter, key, column_placeholder(key->column));
	}
	foreach(cell, layout->assigned)
		bson_append_member(set, layout->paths[lfirst_int(cell) - 1], "@1",
						   column_placeholder(name_of_column(layout, lfirst_int(cell))));
	if (!bson_empty(set))
		BSON_APPEND_DOCUMENT(update, layout->only_inserts ? "$setOnInsert" : "$set", set);
}
