/*-------------------------------------------------------------------------
 *
 * upsert.c
 *		Converts rows to upserts: for the option insert_mode, and for ON CONFLICT DO NOTHING in a
 *		MongoDB transaction.
 *
 * The filter compares by $eq, so that a value that contains operators is still a value.  MongoDB
 * also takes the key fields of a new document from the filter.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "options.h"
#include "convert.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteHandler.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* Rejects names that an update operator interprets as paths. */
static void
check_field_names(const bson_t *document, bool by_insert_mode)
{
	bson_iter_t iter;

	bson_iter_init(&iter, document);
	while (bson_iter_next(&iter))
	{
		const char *key = bson_iter_key(&iter);

		if (key[0] == '$' || strchr(key, '.') != NULL || key[0] == '\0')
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 by_insert_mode ?
					 errmsg("field name \"%s\" cannot be used with insert_mode 'ignore'",
							mongo_from_utf8(key)) :
					 errmsg("field name \"%s\" cannot be used with ON CONFLICT in a MongoDB transaction",
							mongo_from_utf8(key))));
	}
}

/*
 * mongo_document_to_upsert
 *		Appends to 'filter' and 'update', which are empty, for a document that begins with its _id,
 *		the filter {_id} and the update {$setOnInsert: {...}} that insert it unless that _id exists.
 *		Raises 0A000 for field names that an update operator would interpret as a path.
 */
void
mongo_document_to_upsert(const bson_t *document, bson_t *filter, bson_t *update)
{
	bson_t		fields;
	bson_iter_t iter;

	/* the _id is the first element */
	if (!bson_iter_init(&iter, document) || !bson_iter_next(&iter))
		elog(ERROR, "document has no _id");
	mongo_append_equal(filter, "_id", bson_iter_value(&iter));
	check_field_names(document, false);
	mongo_append_document_begin(update, "$setOnInsert", &fields);
	if (bson_iter_next(&iter))
		mongo_append_part(&fields, document, bson_iter_offset(&iter), document->len - 1);
	mongo_append_document_end(update, &fields);
}

typedef struct UpsertKey
{
	const char *column;			/* for messages */
	const char *path;
	bool		may_be_array;
} UpsertKey;

struct MongoUpsertLayout
{
	MongoRowLayout *rows;
	bool		only_inserts;	/* insert_mode 'ignore' */
	bool		keyed_by_id;
	List	   *keys;			/* UpsertKey * */
	List	   *assigned;		/* attribute numbers: given by the statement */
	List	   *triggered;		/* those that a trigger may have set */
	List	   *others;			/* others, for new documents */
	List	   *updatable;		/* columns given by the statement, which the
								 * user must be allowed to update */
};

/* Adds a key; 'attnum' 0 is _id, even if columns read it or a part of it. */
static void
add_upsert_key(MongoUpsertLayout *layout, AttrNumber attnum)
{
	const MongoRowLayout *rows = layout->rows;
	UpsertKey  *key = palloc0(sizeof(UpsertKey));
	Oid			type;

	key->path = attnum == 0 ? "_id" : rows->paths[attnum - 1];
	key->column = attnum == 0 ? "_id" : NameStr(TupleDescAttr(rows->tuple, attnum - 1)->attname);
	if (key->path == NULL ||
		(mongo_path_is_under(key->path, "_id") && strcmp(key->path, "_id") != 0) ||
		!mongo_path_is_addressable(key->path))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" cannot be one of the option key_columns", key->column),
				 errdetail("A key is a field that MongoDB can name, and neither a part of _id nor the whole document.")));
	layout->keys = lappend(layout->keys, key);
	if (strcmp(key->path, "_id") == 0)
		layout->keyed_by_id = true;
	else
	{
		type = TupleDescAttr(rows->tuple, attnum - 1)->atttypid;
		key->may_be_array = mongo_is_nested_type(type) || mongo_base_type(type) == JSONOID;
	}
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

/* Tells whether a generated column depends only on columns that are given. */
static bool
is_computed(Relation relation, AttrNumber attnum, const Bitmapset *given)
{
	Bitmapset  *used = NULL;

	pull_varattnos(build_column_default(relation, attnum), 1, &used);
	return bms_is_subset(used, given);
}

/*
 * Decides how to write columns other than keys.  A value of a column that is not given is a
 * default, also of a domain, a view or a parent, unless a trigger may have set it.
 */
static void
find_columns(MongoUpsertLayout *layout, Oid relid, TupleDesc tuple, const Bitmapset *given,
			 bool has_trigger)
{
	Relation	relation = table_open(relid, NoLock);
	List	   *all = NIL;

	for (AttrNumber attnum = 1; attnum <= tuple->natts; attnum++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tuple, attnum - 1);
		const char *path = layout->rows->paths[attnum - 1];
		List	  **list = &layout->others;
		bool		is_given = bms_is_member(attnum - FirstLowInvalidHeapAttributeNumber, given);

		if (path != NULL && mongo_path_is_under(path, "_id"))
			continue;
		if (is_given && (path == NULL || !is_upsert_key(layout, path)))
			layout->updatable = lappend_int(layout->updatable, attnum);
		if (path == NULL)
			continue;
		if (is_given ||
			(attribute->attgenerated != '\0' && is_computed(relation, attnum, given)))
			list = &layout->assigned;
		else if (has_trigger && build_column_default(relation, attnum) == NULL)
			list = &layout->triggered;
		/* other defaults are rare, and NULL is not written */
		if (list != &layout->others || attribute->atthasdef)
			all = lappend_int(all, attnum);
		if (!is_upsert_key(layout, path))
			*list = lappend_int(*list, attnum);
	}
	if (!layout->keyed_by_id && layout->rows->id != NULL &&
		mongo_may_leave_partition(relation, layout->rows->id->attributes))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("in a partition by _id, _id must be the key of the option insert_mode"),
				 errhint("Drop the option key_columns.")));
	table_close(relation, NoLock);
	if (!layout->only_inserts)
		mongo_check_assignable(relid, all);
}

/*
 * mongo_upsert_layout_create
 *		Returns, in the current memory context, the layout for a foreign table with the option
 *		insert_mode and a statement that gives these columns (numbered as in insertedCols).
 *
 * With 'has_trigger', other columns without a default may have got values too.  Raises 42703 for a
 * key column that the table lacks, 0A000 for one that cannot be a key and for columns that cannot
 * be updated together, and 22023 if _id is the key and always generated, or if it is not the key in
 * a partition by _id.
 */
MongoUpsertLayout *
mongo_upsert_layout_create(Oid relid, TupleDesc tuple, const MongoTableOptions *options,
						   const Bitmapset *given, bool has_trigger)
{
	MongoUpsertLayout *layout = palloc0(sizeof(MongoUpsertLayout));

	layout->rows = mongo_row_layout_create(CurrentMemoryContext, relid, tuple,
										   options->write_null, options->generated_id);
	layout->only_inserts = options->insert_mode == MONGO_INSERT_MODE_IGNORE;
	find_keys(layout, relid, options->key_columns);
	if (layout->keyed_by_id && options->generated_id)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("with the option generated_id, _id cannot be a key of the option insert_mode"),
				 errhint("Name other columns in the option key_columns.")));
	find_columns(layout, relid, tuple, given, has_trigger);
	return layout;
}

/*
 * mongo_upsert_updatable
 *		Returns the numbers of the columns that the statement gives and that are not keys.  They
 *		change if the document exists.
 */
List *
mongo_upsert_updatable(const MongoUpsertLayout *layout)
{
	return layout->updatable;
}

/* Appends that the field is the value.  $eq alone also matches an array that contains the value. */
static void
append_key_condition(bson_t *filter, const UpsertKey *key, bson_value_t value)
{
	if (key->may_be_array)
		mongo_append_template(filter, "{@1: {$eq: @2, $not: {$elemMatch: {$eq: @2}}}}",
							  mongo_utf8(key->path), value);
	else
		mongo_append_condition(filter, key->path, "$eq", value);
}

static void
append_filter(const MongoUpsertLayout *layout, const bson_t *document, bool generated,
			  bson_t *filter)
{
	foreach_ptr(const UpsertKey, key, layout->keys)
	{
		bson_iter_t iter;
		bson_iter_t value;

		if ((generated && strcmp(key->path, "_id") == 0) ||
			!bson_iter_init(&iter, document) ||
			!bson_iter_find_descendant(&iter, key->path, &value) ||
			BSON_ITER_HOLDS_NULL(&value))
			ereport(ERROR,
					(errcode(ERRCODE_NOT_NULL_VIOLATION),
					 errmsg("null value in key column \"%s\"", key->column),
					 errdetail("With the table's option insert_mode, the columns of its option key_columns identify a row; by default _id.")));
		append_key_condition(filter, key, *bson_iter_value(&value));
	}
}

/* Appends {$setOnInsert: {...}} with _id and defaults. */
static void
append_others(const MongoUpsertLayout *layout, const Datum *values, const bool *isnull,
			  const bson_t *document, bson_t *update)
{
	const MongoRowLayout *rows = layout->rows;
	bson_t	   *fields = mongo_bson_create();
	bson_iter_t id;
	ListCell   *cell;

	if (!bson_iter_init_find(&id, document, "_id"))
		elog(ERROR, "document has no _id");
	mongo_append_iter(fields, "_id", &id);
	foreach(cell, layout->others)
	{
		AttrNumber	attnum = lfirst_int(cell);
		const char *path = rows->paths[attnum - 1];

		if (!isnull[attnum - 1])
			mongo_append_column_value(fields, path, path, values[attnum - 1],
									  TupleDescAttr(rows->tuple, attnum - 1),
									  rows->bson_types[attnum - 1]);
	}
	mongo_append(update, "$setOnInsert", mongo_document(fields));
}

/*
 * mongo_row_to_upsert
 *		Appends to 'filter' the condition that finds the row's document by its key, and to 'update'
 *		the change to it; both are empty.  'document' and 'generated' are the results of
 *		mongo_row_to_document().  Raises 23502 for a key without a value, and 0A000 for field names
 *		that an update operator would interpret as a path.
 */
void
mongo_row_to_upsert(const MongoUpsertLayout *layout, const Datum *values, const bool *isnull,
					const bson_t *document, bool generated, bson_t *filter, bson_t *update)
{
	AttrNumber	whole = layout->rows->document_attribute;
	List	   *assigned = layout->assigned;
	ListCell   *cell;

	append_filter(layout, document, generated, filter);
	if (layout->only_inserts)
	{
		check_field_names(document, true);
		mongo_append(update, "$setOnInsert", mongo_document(document));
		return;
	}
	if (whole != 0 && !isnull[whole - 1])
	{
		mongo_row_to_update(layout->rows, list_make1_int(whole), values, isnull, NULL, NULL,
							update);
		return;
	}
	foreach(cell, layout->triggered)
	{
		if (!isnull[lfirst_int(cell) - 1])
			assigned = list_concat_copy(assigned, list_make1_int(lfirst_int(cell)));
	}
	mongo_row_to_update(layout->rows, assigned, values, isnull, NULL, NULL, update);
	append_others(layout, values, isnull, document, update);
}

static bson_value_t
column_placeholder(const char *column)
{
	return mongo_utf8(mongo_to_utf8(psprintf("<%s>", column)));
}

/*
 * mongo_describe_upsert
 *		Appends filter and update for EXPLAIN, with names of columns for their values.
 */
void
mongo_describe_upsert(const MongoUpsertLayout *layout, bson_t *filter, bson_t *update)
{
	bson_t	   *set = mongo_bson_create();
	ListCell   *cell;

	foreach_ptr(const UpsertKey, key, layout->keys)
	{
		append_key_condition(filter, key, column_placeholder(key->column));
	}
	foreach(cell, layout->assigned)
		mongo_append_member(set, layout->rows->paths[lfirst_int(cell) - 1], "@1",
							column_placeholder(NameStr(TupleDescAttr(layout->rows->tuple, lfirst_int(cell) - 1)->attname)));
	if (!bson_empty(set))
		mongo_append(update, layout->only_inserts ? "$setOnInsert" : "$set", mongo_document(set));
}
