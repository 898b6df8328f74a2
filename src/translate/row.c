/*-------------------------------------------------------------------------
 *
 * row.c
 *		Converts rows to documents and updates.
 *
 * A layout has the place of each column in a document.  By it this file decides what is stored for
 * a row: the _id, nested documents, NULLs, and the operators of an UPDATE.  Which BSON a value
 * becomes is decided by src/convert, and which parts of a nested value changed by row_changes.c.
 * upsert.c makes upserts of rows.  Documents come first, then updates and rows after them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "options.h"
#include "convert.h"

#include "access/sysattr.h"
#include "catalog/pg_type_d.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"

/* --------------- From rows to the documents that store them --------------- */

/* Adds the column's field, below the fields on its path. */
static void
add_to_layout(List **fields, const char *path, AttrNumber attnum)
{
	LayoutField *field;
	size_t		start = 0;
	size_t		end;

	do
	{
		field = NULL;
		end = start + strcspn(path + start, ".");
		foreach_ptr(LayoutField, each, *fields)
		{
			if (strlen(each->path) == end && strncmp(each->path, path, end) == 0)
				field = each;
		}
		if (field == NULL)
		{
			field = palloc0(sizeof(LayoutField));
			field->path = pnstrdup(path, end);
			field->key = field->path + start;
			*fields = lappend(*fields, field);
		}
		fields = &field->children;
		start = end + 1;
	} while (path[end] != '\0');
	field->attributes = lappend_int(field->attributes, attnum);
}

/*
 * mongo_row_layout_create
 *		Returns the layout of a foreign table's rows, allocated in 'context'.  With 'write_null', a
 *		NULL is stored as null, otherwise left out.  With 'generates_id', the FDW generates the _id
 *		of a new document, whatever the row contains.  Raises what mongo_check_declared_type() does.
 */
MongoRowLayout *
mongo_row_layout_create(MemoryContext context, Oid relid, TupleDesc tuple,
						bool write_null, bool generates_id)
{
	MemoryContext old_context = MemoryContextSwitchTo(context);
	MongoRowLayout *layout = palloc0(sizeof(MongoRowLayout));
	ListCell   *cell;

	layout->relid = relid;
	layout->tuple = CreateTupleDescCopy(tuple);
	layout->paths = palloc0(sizeof(char *) * Max(tuple->natts, 1));
	layout->bson_types = palloc0(sizeof(bson_type_t) * Max(tuple->natts, 1));
	layout->write_null = write_null;
	layout->generates_id = generates_id;
	for (AttrNumber attnum = 1; attnum <= tuple->natts; attnum++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tuple, attnum - 1);
		const MongoColumnOptions *options;

		if (attribute->attisdropped || attribute->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL)
			continue;
		if (strcmp(NameStr(attribute->attname), MONGO_DOCUMENT_COLUMN) == 0)
		{
			layout->document_attribute = attnum;
			continue;
		}
		if (strcmp(NameStr(attribute->attname), MONGO_MISMATCH_COLUMN) == 0)
		{
			layout->mismatch_attribute = attnum;
			continue;
		}
		options = mongo_column_options(relid, attnum);
		mongo_check_declared_type(NameStr(attribute->attname), attribute->atttypid,
								  options->bson_type);
		layout->paths[attnum - 1] = options->path;
		layout->bson_types[attnum - 1] = options->bson_type;
		add_to_layout(&layout->fields, layout->paths[attnum - 1], attnum);
	}
	foreach(cell, layout->fields)
	{
		LayoutField *field = lfirst(cell);

		if (strcmp(field->key, "_id") == 0)
		{
			layout->id = field;
			layout->fields = foreach_delete_current(layout->fields, cell);
		}
	}
	MemoryContextSwitchTo(old_context);
	return layout;
}

/* Tells whether two columns read one of the fields, or a field and a part of it. */
static bool
fields_overlap(const List *fields)
{
	foreach_ptr(const LayoutField, field, fields)
	{
		if (list_length(field->attributes) > 1 ||
			(field->attributes != NIL && field->children != NIL) ||
			fields_overlap(field->children))
			return true;
	}
	return false;
}

/*
 * mongo_row_layout_overlaps
 *		Tells whether columns share fields, as __doc does with all others.
 */
bool
mongo_row_layout_overlaps(const MongoRowLayout *layout)
{
	return layout->document_attribute != 0 || fields_overlap(layout->fields) ||
		(layout->id != NULL && fields_overlap(list_make1(layout->id)));
}

/*
 * mongo_row_keeps
 *		Tells whether a value of this column is always read as it was before it was written.  Not
 *		that of __doc and __mismatch.
 */
bool
mongo_row_keeps(const MongoRowLayout *layout, AttrNumber attnum)
{
	/* a declared type may have no negative zero */
	return layout->paths[attnum - 1] != NULL &&
		layout->bson_types[attnum - 1] == BSON_TYPE_EOD &&
		mongo_type_facts(TupleDescAttr(layout->tuple, attnum - 1)->atttypid)->is_kept;
}

/*
 * mongo_row_may_generate
 *		Tells whether the column reads the _id, which may be generated.
 */
bool
mongo_row_may_generate(const MongoRowLayout *layout, AttrNumber attnum)
{
	return layout->paths[attnum - 1] != NULL &&
		mongo_path_is_under(layout->paths[attnum - 1], "_id");
}

static const char *
attribute_name(const MongoRowLayout *layout, AttrNumber attnum)
{
	return NameStr(TupleDescAttr(layout->tuple, attnum - 1)->attname);
}

static void
column_error_context(void *arg)
{
	errcontext("column \"%s\"", (const char *) arg);
}

/* Tells whether a column stores a value of this type as an ObjectId if it is one. */
static bool
stores_objectids(const char *path, Oid base)
{
	return base == NAMEOID || (strcmp(path, "_id") == 0 &&
							   (base == TEXTOID || base == VARCHAROID || base == BPCHAROID ||
								base == BYTEAOID));
}

/*
 * mongo_append_column_value
 *		Appends the BSON that a column with this path and type stores for a value: of the declared
 *		BSON type if there is one.
 *
 * Without one (BSON_TYPE_EOD), appends as mongo_append_datum() does, except that text of 24
 * hexadecimal digits is an ObjectId in _id and in columns of type name, and so is a bytea of 12
 * bytes in _id.  Raises the errors of mongo_append_declared() and mongo_append_datum().
 */
void
mongo_append_column_value(bson_t *document, const char *key, const char *path,
						  Datum value, Form_pg_attribute attribute, bson_type_t bson_type)
{
	Oid			typid = attribute->atttypid;
	Oid			base = mongo_base_type(typid);
	ErrorContextCallback callback = {error_context_stack, column_error_context,
	NameStr(attribute->attname)};

	error_context_stack = &callback;
	if (bson_type != BSON_TYPE_EOD)
		mongo_append_declared(document, key, value, typid, attribute->atttypmod, bson_type);
	else if (!stores_objectids(path, base) || !mongo_append_objectid(document, key, value, base))
		mongo_append_datum(document, key, -1, value, false, typid, attribute->atttypmod);
	error_context_stack = callback.previous;
}

/*
 * Returns the column that gives this field its value, or 0.  Two columns may read one field, but
 * only one of them may give it a value.
 */
static AttrNumber
column_of_field(const MongoRowLayout *layout, const LayoutField *field, const bool *isnull)
{
	AttrNumber	found = 0;
	ListCell   *cell;

	foreach(cell, field->attributes)
	{
		AttrNumber	attnum = lfirst_int(cell);

		if (isnull[attnum - 1])
			continue;
		if (found != 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
					 errmsg("columns \"%s\" and \"%s\" cannot both be given",
							attribute_name(layout, found),
							attribute_name(layout, attnum)),
					 errdetail("Both are the field \"%s\" of the document.",
							   field->path)));
		found = attnum;
	}
	return found;
}

/*
 * Tells whether there is a value below this field, or, without 'below', in the field itself.  With
 * 'null', NULL is a value, but not inside the field of another column.
 */
static bool
has_value(const LayoutField *field, const bool *isnull, bool below, bool null)
{
	ListCell   *cell;

	foreach(cell, field->attributes)
	{
		if (!below && (null || !isnull[lfirst_int(cell) - 1]))
			return true;
	}
	null = null && field->attributes == NIL;
	foreach(cell, field->children)
	{
		if (has_value(lfirst(cell), isnull, false, null))
			return true;
	}
	return false;
}

static void
append_field(const MongoRowLayout *layout, const LayoutField *field,
			 const Datum *values, const bool *isnull, bson_t *document)
{
	AttrNumber	attnum;

	if (!has_value(field, isnull, false, layout->write_null))
		return;
	attnum = column_of_field(layout, field, isnull);
	if (has_value(field, isnull, true, layout->write_null))
	{
		bson_t		child;
		ListCell   *cell;

		if (attnum != 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
					 errmsg("column \"%s\" cannot be given together with a column inside it",
							attribute_name(layout, attnum)),
					 errdetail("The field \"%s\" would be written twice.", field->path)));
		mongo_append_document_begin(document, field->key, &child);
		foreach(cell, field->children)
			append_field(layout, lfirst(cell), values, isnull, &child);
		mongo_append_document_end(document, &child);
	}
	else if (attnum == 0)
		mongo_append(document, field->key, mongo_null());
	else
		mongo_append_column_value(document, field->key, field->path, values[attnum - 1],
								  TupleDescAttr(layout->tuple, attnum - 1),
								  layout->bson_types[attnum - 1]);
}

/* Tells whether a column of this type and declared type can read a generated ObjectId. */
static bool
reads_objectids(Oid typid, bson_type_t declared)
{
	const MongoType *type = mongo_type_facts(mongo_base_type(typid));

	return (type->accepts & mongo_declared_set(declared) & MONGO_BSON_BIT(BSON_TYPE_OID)) != 0 &&
		(type->limit == 0 || type->limit >= MONGO_OBJECTID_TEXT_LENGTH);
}

/* Appends the row's _id, or an ObjectId that PostgreSQL generates. */
static void
append_id(const MongoRowLayout *layout, const Datum *values, const bool *isnull,
		  bson_t *document, bool *generated, bson_oid_t *oid)
{
	const LayoutField *id = layout->id;
	ListCell   *cell;

	*generated = layout->generates_id || id == NULL ||
		(column_of_field(layout, id, isnull) == 0 && !has_value(id, isnull, true, false));
	if (!*generated)
	{
		append_field(layout, id, values, isnull, document);
		return;
	}
	if (id != NULL)
	{
		foreach(cell, id->attributes)
		{
			AttrNumber	attnum = lfirst_int(cell);
			Form_pg_attribute attribute = TupleDescAttr(layout->tuple, attnum - 1);
			bool		reads = reads_objectids(attribute->atttypid,
												layout->bson_types[attnum - 1]);

			if (!reads && layout->generates_id)
				ereport(ERROR,
						(errcode(ERRCODE_DATATYPE_MISMATCH),
						 errmsg("column \"%s\" of type %s cannot hold a generated _id",
								NameStr(attribute->attname),
								format_type_be(attribute->atttypid)),
						 errhint("Declare it as objectid, name or text, or drop the option generated_id.")));
			if (!reads)
				ereport(ERROR,
						(errcode(ERRCODE_NOT_NULL_VIOLATION),
						 errmsg("null value in column \"%s\" of type %s cannot be stored",
								NameStr(attribute->attname),
								format_type_be(attribute->atttypid)),
						 errdetail("Every document has an _id, and the ObjectId that MongoDB would give it is not of that type.")));
		}
	}
	bson_oid_init(oid, NULL);
	mongo_append(document, "_id", mongo_oid(oid));
}

static void
refuse_mismatch(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("column \"%s\" cannot be written", MONGO_MISMATCH_COLUMN),
			 errdetail("It shows which fields of a document do not fit their columns.")));
}

/* Returns the members of the column __doc, which is not NULL. */
static bson_t *
document_members(const MongoRowLayout *layout, const Datum *values)
{
	int			i = layout->document_attribute - 1;
	bson_t	   *members = mongo_bson_create();
	ErrorContextCallback callback = {error_context_stack, column_error_context,
	MONGO_DOCUMENT_COLUMN};

	error_context_stack = &callback;
	mongo_append_json_members(members, values[i],
							  mongo_base_type(TupleDescAttr(layout->tuple, i)->atttypid));
	error_context_stack = callback.previous;
	return members;
}

/* Appends the column __doc, with _id first, as MongoDB itself would store it. */
static void
append_whole_document(const MongoRowLayout *layout, const Datum *values, const bool *isnull,
					  bson_t *document, bool *generated, bson_oid_t *oid)
{
	bson_t	   *wrapped;
	bson_iter_t member;
	uint32		id_start;
	uint32		id_end;

	for (int i = 0; i < layout->tuple->natts; i++)
	{
		if (!isnull[i] && layout->paths[i] != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
					 errmsg("column \"%s\" cannot be given together with \"%s\"",
							attribute_name(layout, i + 1), MONGO_DOCUMENT_COLUMN),
					 errdetail("A row is written either from its columns or as a whole document.")));
	}
	wrapped = document_members(layout, values);
	*generated = !bson_iter_init_find(&member, wrapped, "_id");
	if (*generated)
	{
		bson_oid_init(oid, NULL);
		mongo_append(document, "_id", mongo_oid(oid));
		mongo_concat(document, wrapped);
		return;
	}
	id_start = bson_iter_offset(&member);
	id_end = bson_iter_next(&member) ? bson_iter_offset(&member) : wrapped->len - 1;
	mongo_append_part(document, wrapped, id_start, id_end);
	mongo_append_part(document, wrapped, sizeof(uint32), id_start);
	mongo_append_part(document, wrapped, id_end, wrapped->len - 1);
}

/*
 * mongo_row_to_document
 *		Appends a row to 'document', which is empty: _id first, then the columns in their order,
 *		those with dotted paths as nested documents.
 *
 * If no column gives _id, an ObjectId is generated, *generated is true, and 'oid' is set to it.  A
 * column __doc that is not NULL is the document, and then no other column may have a value.  Raises
 * 23502 if _id is missing but required, 42804 if no column of the _id can store a generated one,
 * 42P10 for columns that overlap, 0A000 for a value of __mismatch, and the errors of encoding.
 */
void
mongo_row_to_document(const MongoRowLayout *layout, const Datum *values, const bool *isnull,
					  bson_t *document, bool *generated, bson_oid_t *oid)
{
	ListCell   *cell;

	if (layout->mismatch_attribute != 0 && !isnull[layout->mismatch_attribute - 1])
		refuse_mismatch();
	if (layout->document_attribute != 0 && !isnull[layout->document_attribute - 1])
	{
		append_whole_document(layout, values, isnull, document, generated, oid);
		return;
	}
	append_id(layout, values, isnull, document, generated, oid);
	foreach(cell, layout->fields)
		append_field(layout, lfirst(cell), values, isnull, document);
}

/* ------------ From rows to updates of the documents that store them ------- */

static void
append_assignment(const MongoRowLayout *layout, AttrNumber attnum, Datum value,
				  bool isnull, MongoUpdateOperators *operators)
{
	const char *path = layout->paths[attnum - 1];

	if (isnull && layout->write_null)
		mongo_append(operators->set, path, mongo_null());
	else if (isnull)
		mongo_append(operators->unset, path, mongo_bool(true));
	else
		mongo_append_column_value(operators->set, path, path, value,
								  TupleDescAttr(layout->tuple, attnum - 1),
								  layout->bson_types[attnum - 1]);
}

/* Appends changes within a nested column; returns false to write it whole. */
static bool
append_column_changes(const MongoRowLayout *layout, AttrNumber attnum, Datum old,
					  Datum new, MongoUpdateOperators *operators)
{
	Form_pg_attribute attribute = TupleDescAttr(layout->tuple, attnum - 1);
	ErrorContextCallback callback = {error_context_stack, column_error_context,
	NameStr(attribute->attname)};
	bool		appended;

	error_context_stack = &callback;
	appended = mongo_append_changes(operators, layout->paths[attnum - 1], old, new,
									attribute->atttypid, attribute->atttypmod);
	error_context_stack = callback.previous;
	return appended;
}

/*
 * Appends a pipeline that replaces the document by the column __doc.  If __doc has no _id, the
 * document keeps its own.  MongoDB rejects another _id.
 */
static void
append_replacement(const MongoRowLayout *layout, const Datum *values,
				   const bool *isnull, bson_t *update)
{
	bson_t	   *members;

	if (isnull[layout->document_attribute - 1])
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("column \"%s\" cannot be set to NULL", MONGO_DOCUMENT_COLUMN),
				 errhint("DELETE removes the whole document.")));
	members = document_members(layout, values);
	mongo_append_template(update, bson_has_field(members, "_id") ?
						  "{0: {$replaceWith: {$literal: @1}}}" :
						  "{0: {$replaceWith: {$mergeObjects: [{_id: '$_id'}, {$literal: @1}]}}}",
						  mongo_document(members));
}

/*
 * mongo_row_to_update
 *		Appends {$set, $unset, $push} to 'update' for these attribute numbers, which have passed
 *		mongo_check_assignable(), or for the column __doc a pipeline that replaces the document.
 *
 * 'old_values' is the old row, or NULL.  If it has a value for a nested column, only the changes to
 * that value are written.  Columns that were not read count as NULL.  Raises 23502 if __doc is
 * NULL, and the errors of encoding.
 */
void
mongo_row_to_update(const MongoRowLayout *layout, List *attributes,
					const Datum *values, const bool *isnull,
					const Datum *old_values, const bool *old_isnull, bson_t *update)
{
	MongoUpdateOperators operators = {
		mongo_bson_create(),
		mongo_bson_create(),
		mongo_bson_create()
	};
	ListCell   *cell;

	if (layout->document_attribute != 0 &&
		list_member_int(attributes, layout->document_attribute))
	{
		append_replacement(layout, values, isnull, update);
		return;
	}
	foreach(cell, attributes)
	{
		AttrNumber	attnum = lfirst_int(cell);
		int			i = attnum - 1;

		if (old_values == NULL || isnull[i] || old_isnull[i] ||
			!mongo_is_nested_type(TupleDescAttr(layout->tuple, i)->atttypid) ||
			!append_column_changes(layout, attnum, old_values[i], values[i], &operators))
			append_assignment(layout, attnum, values[i], isnull[i], &operators);
	}
	if (!bson_empty(operators.set))
		mongo_append(update, "$set", mongo_document(operators.set));
	if (!bson_empty(operators.unset))
		mongo_append(update, "$unset", mongo_document(operators.unset));
	if (!bson_empty(operators.push))
		mongo_append(update, "$push", mongo_document(operators.push));
}

/* Tells whether the paths are the same, or one is inside the other. */
static bool
overlap(const char *first, const char *second)
{
	return mongo_path_is_under(first, second) || mongo_path_is_under(second, first);
}

/*-------------------------------------------------------------------------
 * What columns will read after an update.
 *
 * RETURNING, triggers, policies and the bounds of partitions see the row as MongoDB will store
 * it.  A column that is assigned is read from what is sent.  For another one the operators are
 * applied to its old value, as MongoDB applies them to the document.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_row_replacement
 *		Appends the document by which an UPDATE of __doc replaces the one of 'filter'; returns false
 *		if __doc is not among the assigned columns.
 */
bool
mongo_row_replacement(const MongoRowLayout *layout, const List *assigned, const Datum *values,
					  const bson_t *filter, bson_t *document)
{
	bson_t	   *members;
	bson_iter_t id;
	bson_iter_t value;

	if (!list_member_int(assigned, layout->document_attribute))
		return false;
	members = document_members(layout, values);
	if (!bson_has_field(members, "_id") && bson_iter_init_find(&id, filter, "_id"))
	{
		/* as mongo_append_equal() has written it */
		if (BSON_ITER_HOLDS_DOCUMENT(&id) && bson_iter_recurse(&id, &value) &&
			bson_iter_find(&value, "$eq"))
			id = value;
		mongo_append_iter(document, "_id", &id);
	}
	mongo_concat(document, members);
	return true;
}

/* Tells whether the column may be NULL for a value that does not fit, and that has parts. */
static bool
may_hide_part(const MongoRowLayout *layout, AttrNumber attnum)
{
	Oid			type = TupleDescAttr(layout->tuple, attnum - 1)->atttypid;

	return (layout->mismatch_attribute != 0 ||
			mongo_column_options(layout->relid, attnum)->type_mismatch == MONGO_TYPE_MISMATCH_NULL) &&
		(layout->paths[attnum - 1] == NULL || mongo_is_nested_type(type) ||
		 mongo_base_type(type) == JSONOID);
}

static void
refuse_unknown(const MongoRowLayout *layout, AttrNumber attnum)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot compute column \"%s\" after an UPDATE of another column of its field",
					attribute_name(layout, attnum)),
			 errdetail("RETURNING, a policy, a trigger or a partition's bounds use the column, which is NULL or shows a value that does not fit.")));
}

/*
 * mongo_mismatch_after_update
 *		Takes the fields out of the value of __mismatch that the update replaces by such as fit.
 *		Raises 0A000 if it changes a part of one.
 */
void
mongo_mismatch_after_update(const MongoRowLayout *layout, const bson_t *update,
							Datum *values, bool *isnull)
{
	int			i = layout->mismatch_attribute - 1;
	uint32		kept = 0;
	JsonbValue *entry;

	while (!isnull[i] &&
		   (entry = getIthJsonbValueFromContainer(&DatumGetJsonbP(values[i])->root, kept)) != NULL)
	{
		JsonbValue	name;
		const char *field;
		bool		is_replaced = false;
		bson_iter_t operator;
		bson_iter_t operand;

		if (entry->type != jbvBinary ||
			getKeyJsonValueFromContainer(entry->val.binary.data, "field", strlen("field"), &name) == NULL)
			elog(ERROR, "malformed value of column \"%s\"", MONGO_MISMATCH_COLUMN);
		field = mongo_to_utf8(pnstrdup(name.val.string.val, name.val.string.len));
		bson_iter_init(&operator, update);
		while (bson_iter_next(&operator) && bson_iter_recurse(&operator, &operand))
		{
			while (bson_iter_next(&operand))
			{
				if (mongo_path_is_under(field, bson_iter_key(&operand)))
					is_replaced = true;
				else if (mongo_path_is_under(bson_iter_key(&operand), field))
					refuse_unknown(layout, layout->mismatch_attribute);
			}
		}
		if (is_replaced)
			values[i] = DirectFunctionCall2(jsonb_delete_idx, values[i], Int32GetDatum(kept));
		else
			kept++;
	}
	isnull[i] = kept == 0;
}

/*
 * mongo_row_after_update
 *		Appends the fields from which the column, which is not __mismatch, is read after the update
 *		by these operators.  Raises the errors of encoding, and 0A000 if a part changes of a value
 *		that may not have been read because it does not fit.
 */
void
mongo_row_after_update(const MongoRowLayout *layout, AttrNumber attnum, bool is_assigned,
					   const Datum *values, const bool *isnull, const bson_t *update,
					   bson_t *document)
{
	const char *path = layout->paths[attnum - 1];
	bson_t	   *value = mongo_bson_create();
	bool		is_whole = true;

	if (attnum == layout->document_attribute)
		value = isnull[attnum - 1] ? value : document_members(layout, values);
	else if (path != NULL && !isnull[attnum - 1])
		mongo_append_column_value(value, path, path, values[attnum - 1],
								  TupleDescAttr(layout->tuple, attnum - 1),
								  layout->bson_types[attnum - 1]);
	if (path != NULL)
		value = mongo_changed_fields(mongo_bson_create(),
									 mongo_from_template("{$set: @1}", mongo_document(value)), path, &is_whole);
	if (!is_assigned)
		value = mongo_changed_fields(value, update, path, &is_whole);
	if (!is_whole && isnull[attnum - 1] && may_hide_part(layout, attnum))
		refuse_unknown(layout, attnum);
	mongo_concat(document, value);
}

/*
 * mongo_has_empty_timestamp
 *		Tells whether there is a Timestamp(0, 0) at the top level, which MongoDB replaces by the
 *		present time.
 */
bool
mongo_has_empty_timestamp(const bson_t *document)
{
	bson_iter_t iter;
	uint32		seconds;
	uint32		increment;

	bson_iter_init(&iter, document);
	while (bson_iter_next(&iter))
	{
		if (!BSON_ITER_HOLDS_TIMESTAMP(&iter))
			continue;
		bson_iter_timestamp(&iter, &seconds, &increment);
		if (seconds == 0 && increment == 0)
			return true;
	}
	return false;
}

/*
 * mongo_overlapped_columns
 *		Returns the numbers of the other columns that read a field which an assignment to these
 *		columns changes: the same field, a part of it or what contains it.
 */
List *
mongo_overlapped_columns(Relation relation, const List *assigned)
{
	TupleDesc	tuple = RelationGetDescr(relation);
	Oid			relid = RelationGetRelid(relation);
	List	   *overlapped = NIL;
	ListCell   *cell;

	for (AttrNumber attnum = 1; attnum <= tuple->natts; attnum++)
	{
		const char *name = NameStr(TupleDescAttr(tuple, attnum - 1)->attname);

		if (TupleDescAttr(tuple, attnum - 1)->attisdropped || list_member_int(assigned, attnum))
			continue;
		foreach(cell, assigned)
		{
			AttrNumber	other = lfirst_int(cell);

			if (mongo_is_pseudo_column(name) ||
				mongo_is_pseudo_column(NameStr(TupleDescAttr(tuple, other - 1)->attname)) ||
				overlap(mongo_column_options(relid, attnum)->path,
						mongo_column_options(relid, other)->path))
				overlapped = list_append_unique_int(overlapped, attnum);
		}
	}
	return overlapped;
}

/*
 * mongo_may_leave_partition
 *		Tells whether the table is a partition whose bounds depend on one of these columns
 *		(attribute numbers).
 *
 * PostgreSQL moves a row if an UPDATE makes it violate its partition's bounds, but not out of a
 * foreign partition.  It would stay there, where no query looks for it.
 */
bool
mongo_may_leave_partition(Relation relation, const List *attributes)
{
	Bitmapset  *bounds = NULL;
	ListCell   *cell;

	if (!relation->rd_rel->relispartition)
		return false;
	pull_varattnos((Node *) RelationGetPartitionQual(relation), 1, &bounds);
	foreach(cell, attributes)
	{
		if (bms_is_member(lfirst_int(cell) - FirstLowInvalidHeapAttributeNumber, bounds))
			return true;
	}
	return false;
}

/*
 * mongo_check_assignable
 *		Raises 0A000 if UPDATE cannot assign these columns (together).
 */
void
mongo_check_assignable(Oid relid, List *attributes)
{
	ListCell   *cell;
	List	   *seen = NIL;

	foreach(cell, attributes)
	{
		char	   *name = get_attname(relid, lfirst_int(cell), false);
		char	   *path;
		ListCell   *other;

		if (strcmp(name, MONGO_MISMATCH_COLUMN) == 0)
			refuse_mismatch();
		if (strcmp(name, MONGO_DOCUMENT_COLUMN) == 0)
		{
			if (list_length(attributes) == 1)
				return;
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot update column \"%s\" together with others", name),
					 errdetail("A row is written either from its columns or as a whole document.")));
		}
		path = (char *) mongo_column_options(relid, lfirst_int(cell))->path;
		if (overlap(path, "_id"))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot update column \"%s\"", name),
					 errdetail("MongoDB does not change the _id of a document."),
					 errhint("Delete the row and insert another.")));
		if (!mongo_path_is_addressable(path))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot update column \"%s\"", name),
					 errdetail("MongoDB's update operators cannot name the field \"%s\".",
							   path)));
		foreach(other, seen)
		{
			if (overlap(path, lfirst(other)))
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("cannot update the fields \"%s\" and \"%s\" together",
								path, (char *) lfirst(other))));
		}
		seen = lappend(seen, path);
	}
}
