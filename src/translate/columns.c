/*-------------------------------------------------------------------------
 *
 * columns.c
 *		From a foreign table's Vars to the fields of its documents.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "columns.h"
#include "declared_type.h"
#include "lifetime.h"
#include "path.h"

#include "utils/lsyscache.h"
#include "utils/memutils.h"

MongoColumns *
mongo_columns_create(MemoryContext context, Oid relid, Index varno, int natts,
					 MongoTypeMismatch type_mismatch)
{
	MongoColumns *columns = MemoryContextAlloc(context, sizeof(MongoColumns));

	columns->relid = relid;
	columns->varno = varno;
	columns->natts = natts;
	columns->type_mismatch = type_mismatch;
	columns->context = context;
	columns->names = MemoryContextAllocZero(context, sizeof(char *) * natts);
	columns->options = MemoryContextAllocZero(context,
											  sizeof(MongoColumnOptions *) * natts);
	columns->statistics = NULL;
	columns->derivation = NULL;
	columns->prefix = NULL;
	columns->next = NULL;
	return columns;
}

MongoColumns *
mongo_columns_find(MongoColumns *columns, Index varno)
{
	while (columns != NULL && columns->varno != varno)
		columns = columns->next;
	return columns;
}

MongoColumns *
mongo_columns_under(const MongoColumns *columns, const char *prefix)
{
	MongoColumns *copy = palloc(sizeof(MongoColumns));

	*copy = *columns;
	copy->prefix = prefix;
	copy->next = NULL;
	return copy;
}

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

/* check_declared: but for a column that is dropped, whose options may still be there. */
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

/* column_options: NULL for the whole document. */
static const MongoColumnOptions *
column_options(MongoColumns *columns, AttrNumber attnum)
{
	MongoColumnOptions **options = &columns->options[attnum - 1];

	if (strcmp(mongo_column_name(columns, attnum), MONGO_DOCUMENT_COLUMN) == 0)
		return NULL;
	if (*options == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(columns->context);

		*options = mongo_column_options(columns->relid, attnum);
		MemoryContextSwitchTo(old_context);
		check_declared(columns, attnum, *options);
	}
	return *options;
}

const char *
mongo_column_path(MongoColumns *columns, AttrNumber attnum)
{
	const MongoColumnOptions *options = column_options(columns, attnum);

	return options == NULL ? NULL : options->path;
}

bson_type_t
mongo_column_bson_type(MongoColumns *columns, AttrNumber attnum)
{
	const MongoColumnOptions *options = column_options(columns, attnum);

	return options == NULL ? BSON_TYPE_EOD : options->bson_type;
}

#ifdef USE_ASSERT_CHECKING

void
mongo_check_columns(const MongoColumns *columns, MemoryContext context)
{
	for (; columns != NULL; columns = columns->next)
	{
		Assert(mongo_outlives(columns, context));
		Assert(mongo_outlives(columns->names, context));
		Assert(mongo_outlives(columns->options, context));
		Assert(columns->prefix == NULL || mongo_outlives(columns->prefix, context));
		for (int i = 0; i < columns->natts; i++)
		{
			Assert(columns->names[i] == NULL ||
				   mongo_outlives(columns->names[i], columns->context));
			Assert(columns->options[i] == NULL ||
				   mongo_outlives(columns->options[i], columns->context));
		}
	}
}
#endif

/* reads_field: does a column of the table read this field at the top, or one inside it? */
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

const char *
mongo_unused_field(MongoColumns *columns, const char *name)
{
	MongoColumns *table = columns;

	while (table != NULL)
	{
		/* documents under a prefix are not where the name is to stand */
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

Node *
mongo_strip_relabelling(Node *node)
{
	while (node != NULL && IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return node;
}

/*
 * index_uses: what can indexes that lead with the column's field serve?  The
 * user's word is taken for it, and for an ordinary index.
 */
static int
index_uses(const MongoColumns *columns, const MongoColumnOptions *options)
{
	bool		is_learned = options->indexed == MONGO_INDEXED_LEARNED;
	int			uses;

	if (!is_learned)
		uses = options->indexed == MONGO_INDEXED_YES ? MONGO_INDEX_ANY_USE : 0;
	else if (strcmp(options->path, "_id") == 0)
		uses = MONGO_INDEX_ANY_USE;
	else
		uses = mongo_index_uses(columns->statistics, options->path);

	/* they find documents before their arrays are unwound, and no others */
	if (columns->derivation != NULL && columns->derivation->pipeline != NULL && is_learned)
		return 0;
	if (columns->derivation != NULL)
		return uses & ~MONGO_INDEX_ORDER;
	return uses;
}

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

	field->columns = columns;
	field->path = columns->prefix == NULL ? options->path :
		psprintf("%s.%s", columns->prefix, options->path);
	field->type = var->vartype;
	field->typmod = var->vartypmod;
	field->operator_type = getBaseTypeAndTypmod(var->vartype, &field->typmod);
	field->bson_type = options->bson_type;
	field->index_uses = index_uses(columns, options);
	field->unindexed = options->indexed == MONGO_INDEXED_NO;
	field->element = 0;
	field->cast_type = InvalidOid;
	field->wrapper = MONGO_WRAPPER_NONE;
	field->zone = NULL;
	field->result_zone = NULL;
	field->clock_unit = 0;
	return var;
}

/*
 * fetched_length gives how much of a path to ask for: all, or the part before
 * a component that may index an array, which a projection does not do.  A part
 * of an _id would not say which document it is, in an error or for an UPDATE.
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

/* covers: is 'path' the same field as 'parent', or one inside it? */
static bool
covers(const char *parent, int parent_length, const char *path, int path_length)
{
	return path_length >= parent_length &&
		memcmp(parent, path, parent_length) == 0 &&
		(path_length == parent_length || path[parent_length] == '.');
}

void
mongo_append_paths(bson_t *projection, List *paths)
{
	bool		empty = true;
	ListCell   *cell;
	ListCell   *other_cell;

	foreach(cell, paths)
	{
		const char *path = lfirst(cell);
		int			length = fetched_length(path);
		bool		covered = false;

		/* "a" and "a.b" together are a path collision: "a" alone will do */
		foreach(other_cell, paths)
		{
			const char *other = lfirst(other_cell);
			int			other_length = fetched_length(other);

			if (other_cell != cell && covers(other, other_length, path, length))
				covered |= other_length < length || other_cell < cell;
		}
		if (covered)
			continue;
		bson_append_int32(projection, path, length, 1);
		empty = false;
	}
	if (empty)
		BSON_APPEND_INT32(projection, "_id", 1);
}

void
mongo_append_projection(bson_t *command, MongoColumns *columns, List *attributes)
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

	BSON_APPEND_DOCUMENT_BEGIN(command, "projection", &projection);
	mongo_append_paths(&projection, paths);
	bson_append_document_end(command, &projection);
}
