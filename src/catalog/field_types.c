/*-------------------------------------------------------------------------
 *
 * field_types.c
 *		Which BSON types have fields in a sample of documents.
 *
 * The paths are a tree, through which each document is led once.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "field_types.h"

#include "bson_types.h"
#include "bson_walk.h"
#include "types.h"

/* BSON's types as numbers of MONGO_BSON_BIT. */
#define TYPE_COUNT	0x16

/* Beyond so many different ones, names are data. */
#define MAX_OTHERS	1600

/* Significant digits of a share. */
#define SHARE_DIGITS	4

typedef struct FieldNode
{
	const char *name;
	const char *prefix;			/* "a.b.", before the names of members */
	const char *path;			/* NULL: not a field to be looked at, only
								 * above one */
	struct FieldNode *first_child;
	struct FieldNode *next;		/* sibling */
	double		counts[TYPE_COUNT]; /* documents, by type */
	bool		other;			/* beside those that were given */
	uint64		seen_in;		/* number of the last document that had it */
	bson_type_t last_type;		/* in that one */
} FieldNode;

struct FieldTypes
{
	FieldNode	root;
	List	   *fields;			/* FieldNode *, those given in order */
	List	   *others;			/* FieldNode *, beside them */
	bool		note_others;
	uint64		documents;
	MemoryContext context;
};

/* node_named: new if need be. */
static FieldNode *
node_named(FieldNode *parent, const char *name, size_t length)
{
	FieldNode **place = &parent->first_child;

	for (; *place != NULL; place = &(*place)->next)
	{
		if (strncmp((*place)->name, name, length) == 0 && (*place)->name[length] == '\0')
			return *place;
	}
	*place = palloc0(sizeof(FieldNode));
	(*place)->name = pnstrdup(name, length);
	(*place)->prefix = psprintf("%s%s.", parent->prefix, (*place)->name);
	return *place;
}

FieldTypes *
field_types_create(List *paths, bool others)
{
	FieldTypes *types = palloc0(sizeof(FieldTypes));
	ListCell   *cell;

	types->root.prefix = "";
	types->note_others = others;
	types->context = CurrentMemoryContext;
	foreach(cell, paths)
	{
		const char *path = lfirst(cell);
		const char *component = path;
		FieldNode  *node = &types->root;

		while (component != NULL)
		{
			const char *dot = strchr(component, '.');

			node = node_named(node, component,
							  dot != NULL ? (size_t) (dot - component) : strlen(component));
			component = dot != NULL ? dot + 1 : NULL;
		}
		if (node->path == NULL)
		{
			node->path = pstrdup(path);
			types->fields = lappend(types->fields, node);
		}
	}
	return types;
}

static int
type_number(bson_type_t type)
{
	return type == BSON_TYPE_MAXKEY ? 0x14 : type > 0x13 ? 0x15 : (int) type;
}

/* count_value: of a repeated key only the first counts. */
static bool
count_value(FieldNode *node, bson_type_t type, uint64 document)
{
	if (node->seen_in == document)
		return false;
	node->seen_in = document;
	node->last_type = type;
	node->counts[type_number(type)]++;
	return true;
}

/* count_arrays: all fields given below are inside an array. */
static void
count_arrays(FieldNode *parent, uint64 document)
{
	for (FieldNode *node = parent->first_child; node != NULL; node = node->next)
	{
		if (!node->other)
			count_value(node, BSON_TYPE_ARRAY, document);
		count_arrays(node, document);
	}
}

/* find_child: documents mostly have their fields in one order; begin behind 'last'. */
static FieldNode *
find_child(const FieldNode *parent, FieldNode *last, const char *name)
{
	FieldNode  *begin = last != NULL && last->next != NULL ? last->next : parent->first_child;

	for (FieldNode *node = begin; node != NULL; node = node->next)
	{
		if (strcmp(node->name, name) == 0)
			return node;
	}
	for (FieldNode *node = parent->first_child; node != begin; node = node->next)
	{
		if (strcmp(node->name, name) == 0)
			return node;
	}
	return NULL;
}

/* add_other: a member of 'parent' that nobody has asked for; NULL if not to be noted. */
static FieldNode *
add_other(FieldTypes *types, FieldNode *parent, const char *name)
{
	MemoryContext previous;
	FieldNode  *node;

	if (!types->note_others || parent->path != NULL ||
		list_length(types->others) >= MAX_OTHERS)
		return NULL;
	previous = MemoryContextSwitchTo(types->context);
	node = node_named(parent, name, strlen(name));
	node->path = psprintf("%s%s", parent->prefix, name);
	node->other = true;
	types->others = lappend(types->others, node);
	MemoryContextSwitchTo(previous);
	return node;
}

/* learn_members: no deeper than the paths are. */
static void
learn_members(FieldTypes *types, FieldNode *parent, bson_iter_t *iter,
			  uint32 length)
{
	uint64		document = types->documents;
	FieldNode  *last = NULL;

	while (bson_iter_next(iter))
	{
		FieldNode  *node = find_child(parent, last, bson_iter_key(iter));

		if (node == NULL)
			node = add_other(types, parent, bson_iter_key(iter));
		if (node == NULL || !count_value(node, bson_iter_type(iter), document))
			continue;
		last = node;
		if (node->first_child == NULL)
			continue;
		if (BSON_ITER_HOLDS_ARRAY(iter))
			count_arrays(node, document);
		else if (BSON_ITER_HOLDS_DOCUMENT(iter))
		{
			bson_iter_t members;
			uint32		members_length = mongo_iter_descend(iter, &members);

			learn_members(types, node, &members, members_length);
		}
	}
	mongo_iter_check_end(iter, length);
}

void
field_types_observe(FieldTypes *types, const uint8_t *data, uint32 length)
{
	bson_iter_t iter;

	if (!bson_iter_init_from_data(&iter, data, length))
		mongo_report_bad_bson();
	types->documents++;
	learn_members(types, &types->root, &iter, length);
}

bson_type_t
field_types_last(const FieldTypes *types, const char *path)
{
	ListCell   *cell;

	foreach(cell, types->fields)
	{
		const FieldNode *node = lfirst(cell);

		if (strcmp(node->path, path) == 0)
			return node->seen_in == types->documents ? node->last_type : BSON_TYPE_EOD;
	}
	return BSON_TYPE_EOD;
}

/* seen_of: what was seen of one field. */
static FieldSeen *
seen_of(const FieldNode *node, bool given)
{
	FieldSeen  *seen = palloc0(sizeof(FieldSeen));

	seen->path = node->path;
	seen->given = given;
	for (int i = 0; i < TYPE_COUNT; i++)
	{
		seen->documents += node->counts[i];
		if (node->counts[i] > 0 && i != BSON_TYPE_NULL && i != BSON_TYPE_UNDEFINED)
			seen->types |= (uint32) 1 << i;
	}
	return seen;
}

List *
field_types_seen(const FieldTypes *types)
{
	List	   *result = NIL;
	ListCell   *cell;

	foreach(cell, types->fields)
		result = lappend(result, seen_of(lfirst(cell), true));
	foreach(cell, types->others)
		result = lappend(result, seen_of(lfirst(cell), false));
	return result;
}

/* append_share: few digits, so that it can be read; never 0 for something. */
static void
append_share(bson_t *document, const char *key, double count, uint64 documents)
{
	char		text[32];

	if (count == 0 || count == documents)
	{
		BSON_APPEND_INT32(document, key, count > 0);
		return;
	}
	snprintf(text, sizeof(text), "%.*g", SHARE_DIGITS, count / documents);
	BSON_APPEND_DOUBLE(document, key, strtod(text, NULL));
}

BsonArray
field_types_describe(const FieldTypes *types)
{
	BsonArray	result = bson_array_create();
	ListCell   *cell;

	foreach(cell, types->fields)
	{
		const FieldNode *node = lfirst(cell);
		bson_t		entry;
		bson_t		shares;
		double		found = 0;

		bson_array_begin_document(&result, &entry);
		BSON_APPEND_UTF8(&entry, "path", node->path);
		BSON_APPEND_DOCUMENT_BEGIN(&entry, "types", &shares);
		for (int i = 0; i < TYPE_COUNT; i++)
		{
			bson_type_t type = i == 0x14 ? BSON_TYPE_MAXKEY :
				i == 0x15 ? BSON_TYPE_MINKEY : (bson_type_t) i;

			if (node->counts[i] > 0)
				append_share(&shares, mongo_bson_type_name(type), node->counts[i],
							 types->documents);
			found += node->counts[i];
		}
		bson_append_document_end(&entry, &shares);
		append_share(&entry, "missing", types->documents - found, types->documents);
		append_share(&entry, "arrays", node->counts[BSON_TYPE_ARRAY], types->documents);
		bson_array_end_document(&result, &entry);
	}
	return result;
}
