/*-------------------------------------------------------------------------
 *
 * field.c
 *		Finds the document fields that columns and expressions read.
 *
 * A MongoColumns looks up the names and options of one table's columns; a MongoField is the result
 * for an expression.  This file decides which expressions are a field: a column, a chain of json
 * accessors, an array's element, or a cast of one of them.  What can be compared with it is decided
 * elsewhere.  Columns come first, then expressions, then what query predicates can test of a
 * path.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "translate_internal.h"
#include "convert.h"

#include "catalog/pg_type_d.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* ------- From a foreign table's Vars to the fields of its documents ------- */

/*
 * mongo_columns_create
 *		Returns the columns of a table before any of them is looked up, in the current memory
 *		context, which becomes their 'context'.
 */
MongoColumns *
mongo_columns_create(Oid relid, Index varno, int natts)
{
	MongoColumns *columns = palloc0(sizeof(MongoColumns));

	columns->relid = relid;
	columns->varno = varno;
	columns->natts = natts;
	columns->mismatch_column = mongo_column_facts(relid)->shown_by;
	columns->context = CurrentMemoryContext;
	columns->names = palloc0(sizeof(char *) * natts);
	columns->options = palloc0(sizeof(MongoColumnOptions *) * natts);
	return columns;
}

/*
 * mongo_columns_find
 *		Returns the list member of the table 'varno', or NULL if there is none.
 */
MongoColumns *
mongo_columns_find(MongoColumns *columns, Index varno)
{
	while (columns != NULL && columns->varno != varno)
		columns = columns->next;
	return columns;
}

/*
 * mongo_columns_under
 *		Returns a copy for this table alone, with another prefix, in the current memory context.
 */
MongoColumns *
mongo_columns_under(const MongoColumns *columns, const char *prefix)
{
	MongoColumns *copy = palloc(sizeof(MongoColumns));

	*copy = *columns;
	copy->prefix = prefix;
	copy->next = NULL;
	return copy;
}

/*
 * mongo_columns_of_element
 *		Returns a copy for this table alone that reads the elements of an array, in the current
 *		memory context.
 */
MongoColumns *
mongo_columns_of_element(const MongoColumns *columns, const char *array, int element)
{
	MongoColumns *copy = mongo_columns_under(columns, NULL);

	copy->array = array;
	copy->element = element;
	return copy;
}

/*
 * mongo_column_name
 *		Returns the name of a column of the first table, allocated in the context of 'columns'.
 */
const char *
mongo_column_name(MongoColumns *columns, AttrNumber attnum)
{
	const char **name = &columns->names[attnum - 1];

	if (*name == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(columns->context);

		*name = get_attname(columns->relid, attnum, false);
		MemoryContextSwitchTo(old_context);
	}
	return *name;
}

/* Checks the declared type, unless the column is dropped but still has options. */
static void
check_declared(MongoColumns *columns, AttrNumber attnum, const MongoColumnOptions *options)
{
	Oid			type;

	if (options->bson_type == BSON_TYPE_EOD)
		return;
	type = get_atttype(columns->relid, attnum);
	if (OidIsValid(type))
		mongo_check_declared_type(mongo_column_name(columns, attnum), type, options->bson_type);
}

/* Returns the options of a column; NULL for __doc and __mismatch. */
static const MongoColumnOptions *
column_options(MongoColumns *columns, AttrNumber attnum)
{
	const MongoColumnOptions **options = &columns->options[attnum - 1];

	if (*options == NULL)
	{
		*options = mongo_column_options(columns->relid, attnum);
		if (!(*options)->is_pseudo)
			check_declared(columns, attnum, *options);
	}
	return (*options)->is_pseudo ? NULL : *options;
}

/*
 * mongo_column_path
 *		Returns the path of a column of the first table within the table's own documents; NULL for
 *		the whole document.  Raises 42804 if the options do not suit the column's type, as every
 *		function does that looks up more of a column than its name.
 */
const char *
mongo_column_path(MongoColumns *columns, AttrNumber attnum)
{
	const MongoColumnOptions *options = column_options(columns, attnum);

	return options == NULL ? NULL : options->path;
}

/*
 * mongo_column_bson_type
 *		Returns the BSON type that the option bson_type of a column specifies, or BSON_TYPE_EOD.
 */
bson_type_t
mongo_column_bson_type(MongoColumns *columns, AttrNumber attnum)
{
	const MongoColumnOptions *options = column_options(columns, attnum);

	return options == NULL ? BSON_TYPE_EOD : options->bson_type;
}

/*
 * mongo_table_column
 *		Returns how a column of a foreign table is read, by its options, palloc'd; its index is that
 *		of the attribute.
 */
MongoColumn *
mongo_table_column(Relation table, AttrNumber attnum)
{
	Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(table), attnum - 1);
	const MongoColumnOptions *options = mongo_column_options(RelationGetRelid(table), attnum);
	MongoColumn *column = palloc0(sizeof(MongoColumn));

	column->name = pstrdup(NameStr(attribute->attname));
	column->index = attnum - 1;
	column->typid = attribute->atttypid;
	column->typmod = attribute->atttypmod;
	if (!options->is_pseudo)
	{
		column->path = options->path;
		column->bson_type = options->bson_type;
		column->type_mismatch = options->type_mismatch;
	}
	return column;
}

/*
 * mongo_decides_fit
 *		Tells whether the column decides if a document fits.  It does not if it reads every BSON
 *		type: json, jsonb, __doc.  With 'only_skipped' also not if its type_mismatch is another.
 */
bool
mongo_decides_fit(MongoColumns *columns, AttrNumber attnum, bool only_skipped)
{
	Oid			type = get_atttype(columns->relid, attnum);

	return OidIsValid(type) && mongo_column_path(columns, attnum) != NULL &&
		mongo_column_options(columns->relid, attnum)->parameter == NULL &&
		mongo_type_facts(mongo_base_type(type))->accepts != MONGO_BSON_ANY &&
		(!only_skipped || mongo_column_mismatch(columns, attnum) == MONGO_TYPE_MISMATCH_SKIP);
}

/*
 * mongo_column_mismatch
 *		Returns how the query reads a field that does not fit this column: as its option
 *		type_mismatch specifies, or as NULL if the query shows mismatches.
 */
MongoTypeMismatch
mongo_column_mismatch(MongoColumns *columns, AttrNumber attnum)
{
	MongoTypeMismatch value = columns->shows_mismatches ? MONGO_TYPE_MISMATCH_NULL :
		mongo_column_options(columns->relid, attnum)->type_mismatch;

	return value == MONGO_TYPE_MISMATCH_SKIP && !mongo_decides_fit(columns, attnum, false) ?
		MONGO_TYPE_MISMATCH_NULL : value;
}

/* Tells whether a column of the table reads this field at the top, or one inside it. */
static bool
reads_field(MongoColumns *columns, const char *name)
{
	size_t		length = strlen(name);

	for (AttrNumber attnum = 1; attnum <= columns->natts; attnum++)
	{
		const char *path = mongo_column_path(columns, attnum);

		if (path != NULL && strncmp(path, name, length) == 0 &&
			(path[length] == '.' || path[length] == '\0'))
			return true;
	}
	return false;
}

/*
 * mongo_unused_field
 *		Returns 'name', or a longer name, palloc'd, if a column without a prefix reads it.
 */
const char *
mongo_unused_field(MongoColumns *columns, const char *name)
{
	MongoColumns *table = columns;

	while (table != NULL)
	{
		/* the new field is not inside documents under a prefix */
		if (table->prefix == NULL && reads_field(table, name))
		{
			name = psprintf("%s_", name);
			table = columns;
		}
		else
			table = table->next;
	}
	return name;
}

/*
 * mongo_strip_relabelling
 *		Returns the node below binary-compatible relabelling, as of varchar to text; NULL for NULL.
 */
Node *
mongo_strip_relabelling(Node *node)
{
	while (node != NULL && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

/*
 * Returns what indexes that lead with the column's field can do.  The user's option "indexed" takes
 * precedence; it stands for an ordinary index.
 */
static int
column_index_uses(const MongoColumns *columns, const MongoColumnOptions *options)
{
	bool		is_given = options->indexed != MONGO_NOT_GIVEN;
	int			uses;

	if (is_given)
		uses = options->indexed == MONGO_YES ? MONGO_INDEX_ANY_USE : 0;
	else if (strcmp(options->path, "_id") == 0)
		uses = MONGO_INDEX_ANY_USE;
	else
		uses = mongo_index_uses(columns->statistics, options->path);

	/* indexes find stored documents, before arrays are unwound */
	if (columns->derivation != NULL && mongo_has_first_stages(columns->derivation) && !is_given)
		return 0;
	if (columns->derivation != NULL)
		return uses & ~MONGO_INDEX_ORDER;
	return uses;
}

/*
 * Changes the field from one of the document to one of the array element that the columns read.
 * MongoDB looks into an array that is a field's value, but not into one that is an element.  An
 * empty path, which no predicate has, is that of a json element whose members are read.
 */
static bool
enter_element(MongoField *field, AttrNumber attnum)
{
	const MongoColumns *columns = field->columns;
	const char *array = columns->array;
	MongoTypeKind kind = mongo_type_kind(field->operator_type);
	bool		is_whole;

	if (array == NULL)
		return true;
	if (columns->element_column != 0 ? attnum != columns->element_column :
		!mongo_path_is_under(field->path, array))
		return false;
	is_whole = columns->element_column != 0 || field->path[strlen(array)] == '\0';
	if (strcmp(field->path, array) != 0 && is_whole)
		field->index_uses = 0;
	field->element = columns->element;
	if (field->element != 0)
	{
		field->path = array;
		return is_whole && kind != MONGO_KIND_OTHER;
	}
	field->path = is_whole ? "" : field->path + strlen(array) + 1;
	return !is_whole || kind == MONGO_KIND_JSON || kind == MONGO_KIND_JSONB;
}

/*
 * mongo_column_of_node
 *		Returns the column that 'node' is, below binary-compatible relabelling, and fills in its
 *		field.  Returns NULL for anything else, and for the whole-document column.
 */
const Var  *
mongo_column_of_node(MongoColumns *columns, Node *node, MongoField *field)
{
	const MongoColumnOptions *options;
	const Var  *var = (const Var *) mongo_strip_relabelling(node);

	if (var == NULL || !IsA(var, Var) || var->varlevelsup != 0 || var->varattno <= 0)
		return NULL;
	columns = mongo_columns_find(columns, var->varno);
	if (columns == NULL)
		return NULL;
	options = column_options(columns, var->varattno);
	if (options == NULL)
		return NULL;

	*field = (MongoField) {.columns = columns, .type = var->vartype, .typmod = var->vartypmod};
	field->path = columns->prefix == NULL ? options->path :
		psprintf("%s.%s", columns->prefix, options->path);
	field->operator_type = mongo_base_type(var->vartype);
	if (field->operator_type != var->vartype)
		(void) getBaseTypeAndTypmod(var->vartype, &field->typmod);
	field->bson_type = options->bson_type;
	field->type_mismatch = mongo_column_mismatch(columns, var->varattno);
	field->index_uses = column_index_uses(columns, options);
	field->unindexed = options->indexed == MONGO_NO;
	return enter_element(field, var->varattno) ? var : NULL;
}

/*
 * Returns the length of the part of a path to fetch: all, or the part before a component that may
 * index an array, which a projection cannot do.  Of an _id all is fetched, because a part of it
 * would not identify the document in an error or for an UPDATE.
 */
static int
fetched_length(const char *path)
{
	const char *component = path;

	if (strncmp(path, "_id.", 4) == 0)
		return 3;
	while (component != NULL)
	{
		const char *end = strchr(component, '.');
		size_t		digits = strspn(component, "0123456789");

		if (component != path && digits > 0 &&
			(component[digits] == '.' || component[digits] == '\0'))
			return component - path - 1;
		component = end == NULL ? NULL : end + 1;
	}
	return strlen(path);
}

/* Tells whether 'path' is the same field as 'parent', or one inside it. */
static bool
covers(const char *parent, int parent_length, const char *path, int path_length)
{
	return path_length >= parent_length &&
		memcmp(parent, path, parent_length) == 0 &&
		(path_length == parent_length || path[parent_length] == '.');
}

/* A path of a projection. */
typedef struct FetchedPath
{
	const char *path;
	int			length;			/* of what is fetched */
	int			place;			/* in the list */
} FetchedPath;

/* Compares by path, so that a field stands right before those inside it; a qsort comparator. */
static int
compare_fetched(const void *left, const void *right)
{
	const FetchedPath *one = left;
	const FetchedPath *other = right;
	int			i = 0;

	while (i < one->length && i < other->length && one->path[i] == other->path[i])
		i++;
	if (i == one->length || i == other->length)
		return one->length != other->length ? one->length - other->length :
			one->place - other->place;
	/* the least of all characters is the dot */
	return one->path[i] == '.' ? -1 : other->path[i] == '.' ? 1 :
		(unsigned char) one->path[i] - (unsigned char) other->path[i];
}

/*
 * mongo_append_paths
 *		Appends these addressable paths, char *, to a projection; _id if there are none.
 */
void
mongo_append_paths(bson_t *projection, List *paths)
{
	int			count = list_length(paths);
	FetchedPath *fetched = palloc(Max(count, 1) * sizeof(FetchedPath));
	const FetchedPath *parent = NULL;
	int		   *lengths = palloc(Max(count, 1) * sizeof(int));

	for (int i = 0; i < count; i++)
	{
		const char *path = list_nth(paths, i);

		fetched[i] = (FetchedPath) {path, fetched_length(path), i};
	}
	/* "a" and "a.b" together are a path collision: "a" alone suffices */
	qsort(fetched, count, sizeof(FetchedPath), compare_fetched);
	for (int i = 0; i < count; i++)
	{
		if (parent == NULL || !covers(parent->path, parent->length, fetched[i].path, fetched[i].length))
			parent = &fetched[i];
		lengths[fetched[i].place] = parent == &fetched[i] ? parent->length : 0;
	}
	for (int i = 0; i < count; i++)
	{
		if (lengths[i] > 0)
			mongo_appended(bson_append_int32(projection, list_nth(paths, i), lengths[i], 1));
	}
	if (count == 0)
		mongo_append(projection, "_id", mongo_int32(1));
}

/*
 * mongo_append_projection
 *		Appends to 'document' as 'key' a projection of the fields of these attribute numbers and of
 *		_id, which error messages name.  Appends nothing if the whole document is needed: for a
 *		column __doc, or for a path that query predicates cannot name.
 */
void
mongo_append_projection(bson_t *document, const char *key, MongoColumns *columns, List *attributes)
{
	List	   *paths = NIL;
	ListCell   *cell;
	bson_t		projection;

	foreach(cell, attributes)
	{
		const char *path = mongo_column_path(columns, lfirst_int(cell));

		if (path == NULL || !mongo_path_is_addressable(path))
			return;
		paths = lappend(paths, (char *) path);
	}

	mongo_append_document_begin(document, key, &projection);
	mongo_append_paths(&projection, paths);
	mongo_append_document_end(document, &projection);
}

/*-------------------------------------------------------------------------
 * The field that an expression reads.
 *
 * A chain of json accessors is a longer path.  MongoDB also looks into arrays on the path,
 * where jsonb's accessors by key give NULL; that only matches more documents.
 *-------------------------------------------------------------------------
 */

/*
 * The accessors, by their functions, which can also be called.
 *
 * jsonb's -> with an index is not among them: index 0 of a scalar, which jsonb stores as an
 * array of one element, gives the scalar itself, and no path expresses that.  #> and
 * subscripts do not do this.
 */
static const struct
{
	Oid			function;
	bool		to_text;
}			accessors[] =
{
	{F_JSONB_OBJECT_FIELD, false},
	{F_JSONB_OBJECT_FIELD_TEXT, true},
	{F_JSONB_EXTRACT_PATH, false},
	{F_JSONB_EXTRACT_PATH_TEXT, true},
	{F_JSON_OBJECT_FIELD, false},
	{F_JSON_OBJECT_FIELD_TEXT, true},
	{F_JSON_ARRAY_ELEMENT, false},
	{F_JSON_ARRAY_ELEMENT_TEXT, true},
	{F_JSON_EXTRACT_PATH, false},
	{F_JSON_EXTRACT_PATH_TEXT, true},
};

/*
 * mongo_append_json_key
 *		Appends "." and one constant key of json or jsonb, a text or int4, to a path.  Returns false
 *		if a path cannot contain the key, such as a key with a dot or an index that counts from the
 *		end.
 */
bool
mongo_append_json_key(StringInfo path, Oid type, Datum value)
{
	const char *key;

	if (type == INT4OID)
	{
		if (DatumGetInt32(value) < 0)
			return false;
		appendStringInfo(path, ".%d", DatumGetInt32(value));
		return true;
	}
	if (type != TEXTOID)
		return false;
	key = TextDatumGetCString(value);
	if (!mongo_has_utf8(key, strlen(key)))
		return false;
	key = mongo_to_utf8(key);

	/* jsonb also accepts "-1" and "+1" as an index of an array */
	if (key[0] == '\0' || key[0] == '$' || key[0] == '-' || key[0] == '+' ||
		strchr(key, '.') != NULL || isspace((unsigned char) key[0]))
		return false;
	if (key[0] == '0' && key[1] != '\0')
		return false;
	appendStringInfo(path, ".%s", key);
	return true;
}

static const char *const wrapper_keys[] = {
	[MONGO_WRAPPER_OID] = "$oid",
	[MONGO_WRAPPER_DATE] = "$date",
	[MONGO_WRAPPER_DECIMAL] = "$numberDecimal",
};

/* Tells whether the last key is an Extended JSON wrapper, and which. */
static bool
is_wrapper(Oid type, Datum key, int *wrapper)
{
	if (wrapper == NULL || type != TEXTOID)
		return false;
	for (size_t i = MONGO_WRAPPER_NONE + 1; i < lengthof(wrapper_keys); i++)
	{
		if (strcmp(wrapper_keys[i], TextDatumGetCString(key)) == 0)
			*wrapper = i;
	}
	return *wrapper != MONGO_WRAPPER_NONE;
}

/*
 * Appends the constant argument of any accessor to the path.  The key of a wrapper at the end is
 * returned in *wrapper instead, unless that is NULL.
 */
static bool
append_keys(StringInfo path, Node *argument, int *wrapper)
{
	Const	   *constant = (Const *) argument;
	Datum	   *keys;
	bool	   *isnull;
	int			nkeys;

	if (!IsA(argument, Const) || constant->constisnull)
		return false;
	if (constant->consttype != TEXTARRAYOID)
		return is_wrapper(constant->consttype, constant->constvalue, wrapper) ||
			mongo_append_json_key(path, constant->consttype, constant->constvalue);

	nkeys = mongo_array_elements(constant->constvalue, &keys, &isnull);
	for (int i = 0; i < nkeys; i++)
	{
		if (isnull[i] ||
			(!(i == nkeys - 1 && is_wrapper(TEXTOID, keys[i], wrapper)) &&
			 !mongo_append_json_key(path, TEXTOID, keys[i])))
			return false;
	}
	return true;
}

/* Returns the path inside an array's element, which begins at the element, whose path is empty. */
static const char *
without_dot(const char *path)
{
	return path[0] == '.' ? path + 1 : path;
}

/* Finds the field of subscripts, column['a'][0]. */
static bool
subscripted_field(MongoColumns *columns, SubscriptingRef *node, MongoField *field)
{
	StringInfoData path;
	ListCell   *cell;

	if (node->refassgnexpr != NULL || node->reflowerindexpr != NIL ||
		!mongo_field_of_node(columns, (Node *) node->refexpr, field) ||
		field->operator_type != JSONBOID)
		return false;

	initStringInfo(&path);
	appendStringInfoString(&path, field->path);
	foreach(cell, node->refupperindexpr)
	{
		if (!append_keys(&path, lfirst(cell), NULL))
			return false;
	}
	if (field->element != 0)
		return false;
	field->path = without_dot(path.data);
	field->index_uses = 0;
	field->unindexed = true;
	return true;
}

/*
 * Finds the field that one of the accessors reads.  With 'wrapped' it must be the text within a
 * wrapper, which only callers that handle wrappers request.
 */
static bool
accessed_field(MongoColumns *columns, Node *node, bool wrapped, MongoField *field)
{
	int			wrapper = MONGO_WRAPPER_NONE;
	List	   *args = IsA(node, OpExpr) ? ((OpExpr *) node)->args :
		IsA(node, FuncExpr) ? ((FuncExpr *) node)->args : NIL;
	StringInfoData path;
	size_t		i = 0;
	Oid			function;

	if (list_length(args) != 2)
		return false;
	function = IsA(node, OpExpr) ? get_opcode(((OpExpr *) node)->opno) : ((FuncExpr *) node)->funcid;
	while (i < lengthof(accessors) && accessors[i].function != function)
		i++;
	if (i == lengthof(accessors) || !mongo_field_of_node(columns, linitial(args), field) ||
		(field->operator_type != JSONBOID && field->operator_type != JSONOID))
		return false;

	initStringInfo(&path);
	appendStringInfoString(&path, field->path);
	if (!append_keys(&path, lsecond(args), wrapped && accessors[i].to_text ? &wrapper : NULL) ||
		wrapped != (wrapper != MONGO_WRAPPER_NONE) ||
		(field->element != 0 && strcmp(path.data, field->path) != 0))
		return false;

	field->path = without_dot(path.data);
	field->wrapper = wrapper;
	field->typmod = -1;
	field->index_uses = 0;
	field->unindexed = true;
	if (accessors[i].to_text)
	{
		field->type = JSONOID;
		field->operator_type = TEXTOID;
	}
	else
		field->type = field->operator_type;
	return true;
}

/*
 * mongo_field_of_node
 *		Finds the field that 'node' reads: that of a column, as mongo_column_of_node() does, or of a
 *		chain of accessors (->, ->>, #>, #>>, subscripts) with constant keys on a json or jsonb
 *		column.  Returns false for anything else, and for the whole-document column.
 */
bool
mongo_field_of_node(MongoColumns *columns, Node *node, MongoField *field)
{
	check_stack_depth();

	node = mongo_strip_relabelling(node);
	if (node == NULL)
		return false;
	if (IsA(node, Var))
		return mongo_column_of_node(columns, node, field) != NULL;
	if (IsA(node, SubscriptingRef))
		return subscripted_field(columns, (SubscriptingRef *) node, field);
	return accessed_field(columns, node, false, field);
}

/*
 * mongo_any_element
 *		Finds the array that 'node' reads, and describes any element of it as a field of the element
 *		type; returns false if 'node' reads no array.
 */
bool
mongo_any_element(MongoColumns *columns, Node *node, MongoField *field)
{
	Oid			element;

	if (!mongo_field_of_node(columns, node, field) || field->element != 0)
		return false;
	element = get_base_element_type(field->type);
	if (!OidIsValid(element))
		return false;
	field->type = element;
	field->operator_type = getBaseTypeAndTypmod(element, &field->typmod);
	field->element = MONGO_ANY_ELEMENT;
	return true;
}

/* Returns the constant subscript of an element, counted from 1; otherwise 0. */
static int
subscript(const SubscriptingRef *node)
{
	const Const *constant;

	if (node->refassgnexpr != NULL || node->reflowerindexpr != NIL ||
		list_length(node->refupperindexpr) != 1)
		return 0;
	constant = linitial(node->refupperindexpr);
	if (!IsA(constant, Const) || constant->constisnull || constant->consttype != INT4OID)
		return 0;
	return Max(DatumGetInt32(constant->constvalue), 0);
}

/* Tells whether it is a cast of a jsonb that raises an error for a value of another JSON type. */
static bool
is_json_cast(Oid function)
{
	switch (function)
	{
		case F_BOOL_JSONB:
		case F_NUMERIC_JSONB:
		case F_INT2_JSONB:
		case F_INT4_JSONB:
		case F_INT8_JSONB:
		case F_FLOAT4_JSONB:
		case F_FLOAT8_JSONB:
			return true;
		default:
			return false;
	}
}

/* Finds the field of j ->> 'a', and of j -> 'a' ->> '$date'. */
static bool
text_field(MongoColumns *columns, Node *node, MongoField *field)
{
	node = mongo_strip_relabelling(node);
	if (node == NULL)
		return false;
	if (mongo_field_of_node(columns, node, field))
		return field->type == JSONOID && field->operator_type == TEXTOID;
	return accessed_field(columns, node, true, field);
}

/* Finds the field of (j ->> 'a')::type, of text, and of (j -> 'a')::type, of jsonb. */
static bool
cast_field(MongoColumns *columns, Node *node, MongoField *field)
{
	int32		typmod = exprTypmod(node);

	if (IsA(node, FuncExpr) && ((FuncExpr *) node)->funcid == F_NUMERIC_NUMERIC_INT4)
		node = linitial(((FuncExpr *) node)->args);
	if (IsA(node, CoerceViaIO))
	{
		if (!text_field(columns, (Node *) ((CoerceViaIO *) node)->arg, field))
			return false;
	}
	else if (!IsA(node, FuncExpr) || !is_json_cast(((FuncExpr *) node)->funcid) ||
			 !mongo_field_of_node(columns, linitial(((FuncExpr *) node)->args), field) ||
			 field->type != JSONBOID)
		return false;
	field->typmod = typmod;
	field->operator_type = field->cast_type = exprType(node);
	return true;
}

/*
 * Finds the field of id::text, of an ObjectId.  A text column that is declared to read ObjectIds
 * reads the same.
 */
static bool
objectid_text(MongoColumns *columns, Node *node, MongoField *field)
{
	const CoerceViaIO *cast = (CoerceViaIO *) mongo_strip_relabelling(node);

	if (cast == NULL || !IsA(cast, CoerceViaIO) ||
		(cast->resulttype != TEXTOID && cast->resulttype != VARCHAROID) ||
		!mongo_field_of_node(columns, (Node *) cast->arg, field) ||
		mongo_type_kind(field->type) != MONGO_KIND_OBJECTID)
		return false;
	field->type = TEXTOID;
	field->operator_type = TEXTOID;
	field->bson_type = BSON_TYPE_OID;
	return true;
}

/*
 * mongo_operand_of_node
 *		Finds the field that 'node' reads.  In addition to mongo_field_of_node(), 'node' can be an
 *		array element with a constant subscript, a value inside json that is cast to another type,
 *		the text within an Extended JSON wrapper, or an ObjectId that is cast to text.
 */
bool
mongo_operand_of_node(MongoColumns *columns, Node *node, MongoField *field)
{
	SubscriptingRef *reference;

	if (mongo_field_of_node(columns, node, field) || text_field(columns, node, field) ||
		objectid_text(columns, node, field) || cast_field(columns, node, field))
		return true;
	reference = (SubscriptingRef *) mongo_strip_relabelling(node);
	if (reference == NULL || !IsA(reference, SubscriptingRef) || subscript(reference) == 0 ||
		!mongo_any_element(columns, (Node *) reference->refexpr, field))
		return false;
	field->element = subscript(reference);
	return true;
}

/* ---------------- Paths to fields in query predicates --------------------- */

/* MongoDB stores documents of 100 levels, see its "Limits and Thresholds". */
#define MAX_COMPONENTS	100

/* Tells whether it is one of the names with a '$' that MongoDB allows, those of a DBRef. */
static bool
is_of_dbref(const char *component)
{
	size_t		length = strcspn(component, ".");

	return (length == 3 && (strncmp(component, "$id", 3) == 0 || strncmp(component, "$db", 3) == 0)) ||
		(length == 4 && strncmp(component, "$ref", 4) == 0);
}

/*
 * mongo_path_is_addressable
 *		Tells whether query predicates can name the path.  They cannot if a component is empty or
 *		begins with '$', unless it is $id, $ref or $db below another, nor if it has more components
 *		than a stored document has levels.  Unlike SQL, a query predicate looks into arrays on the
 *		path and at its end.
 */
bool
mongo_path_is_addressable(const char *path)
{
	const char *component = path;

	for (int i = 0; i < MAX_COMPONENTS; i++)
	{
		if (*component == '\0' || *component == '.' ||
			(*component == '$' && (i == 0 || !is_of_dbref(component))))
			return false;
		component = strchr(component, '.');
		if (component == NULL)
			return true;
		component++;
	}
	return false;
}

/*
 * mongo_path_has_index
 *		Tells whether a component is a number, like that of an array element.
 */
bool
mongo_path_has_index(const char *path)
{
	const char *component = path;

	while (component != NULL)
	{
		size_t		digits = strspn(component, "0123456789");

		if (digits > 0 && (component[digits] == '.' || component[digits] == '\0'))
			return true;
		component = strchr(component, '.');
		if (component != NULL)
			component++;
	}
	return false;
}

/* Appends that neither the field nor an element of it is an array. */
static void
append_no_array(BsonArray *conditions, const char *path, size_t length)
{
	mongo_array_append_template(conditions, "{@1: {$not: {$type: 'array'}}}",
								mongo_utf8_sized(path, length));
}

/*
 * mongo_append_no_parent_arrays
 *		Appends the conditions that no array is on the path before its end.
 */
void
mongo_append_no_parent_arrays(BsonArray *conditions, const char *path)
{
	for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
		append_no_array(conditions, path, dot - path);
}

/*
 * mongo_append_no_arrays
 *		Appends the conditions that no array is on the path or at its end.
 */
void
mongo_append_no_arrays(BsonArray *conditions, const char *path)
{
	mongo_append_no_parent_arrays(conditions, path);
	append_no_array(conditions, path, strlen(path));
}

/*
 * mongo_append_within_arrays
 *		Appends to the branches of an $or the condition that the array contains a value that is
 *		neither null nor of the class with the least value 'least', such as another array.  Unlike
 *		$type, this gives bounds of an index in MongoDB, with few keys between them.
 */
void
mongo_append_within_arrays(BsonArray *branches, const char *path, bson_value_t least)
{
	mongo_array_append_template(branches, "{@1: {$elemMatch: {$not: {$gte: @2}, $ne: null}}}",
								mongo_utf8(path), least);
}
