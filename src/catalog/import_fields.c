/*-------------------------------------------------------------------------
 *
 * import_fields.c
 *		The columns that sampled documents call for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"
#include "convert.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

/* ---- Which fields have documents of a collection, and of which types? ---- */

/* More keys than this in a nested document: it is a map, not a record. */
#define MAP_CHILDREN	200

/* Integers up to here are doubles too. */
#define DOUBLE_INTEGER_MAX	(INT64CONST(1) << 53)

#define BIT(type)		MONGO_BSON_BIT(BSON_TYPE_##type)

#define ANY_NUMBER \
	(BIT(INT32) | BIT(INT64) | IMPORT_WIDE | BIT(DOUBLE) | BIT(DECIMAL128))
#define ANY_STRING		(BIT(UTF8) | BIT(SYMBOL))

/* What has no texts within, or has been looked at. */
#define PLAIN_KINDS \
	(ANY_NUMBER | ANY_STRING | BIT(BOOL) | BIT(OID) | BIT(DATE_TIME) | IMPORT_UUID | \
	 BIT(BINARY) | IMPORT_UNREADABLE)

/* Narrowest first: the first row that holds all kinds seen is the type. */
static const struct
{
	uint32		holds;
	const char *type;			/* NULL: objectid, wherever that is */
	Oid			oid;
}			type_rows[] =
{
	{BIT(BOOL), "boolean", BOOLOID},
	{BIT(INT32), "integer", INT4OID},
	{BIT(INT32) | BIT(INT64) | IMPORT_WIDE, "bigint", INT8OID},
	{BIT(INT32) | BIT(INT64) | BIT(DOUBLE), "double precision", FLOAT8OID},
	{ANY_NUMBER, "numeric", NUMERICOID},
	{BIT(OID), NULL, InvalidOid},
	{ANY_STRING | BIT(OID), "text", TEXTOID},
	{BIT(DATE_TIME), "timestamp with time zone", TIMESTAMPTZOID},
	{IMPORT_UUID, "uuid", UUIDOID},
	{IMPORT_UUID | BIT(BINARY), "bytea", BYTEAOID},
};

#define ANYTHING	"jsonb"

/* ------------------------------ the tree ----------------------------------- */

/*
 * child_named
 *		The child of that name, new if need be, just behind 'previous' (NULL:
 *		in front), where the document has it.
 *
 * NULL when it cannot be a column of its own; the parent then says why.
 */
static ImportField *
child_named(ImportField *parent, ImportField *previous, const char *name, int most)
{
	ImportField **place = previous != NULL ? &previous->next : &parent->first_child;
	ImportField *child = *place;
	int			length = (int) strlen(name);

	/* documents of one collection mostly have their fields in one order */
	if (child != NULL && child->name_length == length &&
		memcmp(child->name, name, length) == 0)
		return child;

	for (child = parent->first_child; child != NULL; child = child->next)
	{
		if (child->name_length == length && memcmp(child->name, name, length) == 0)
			return child;
	}

	/* could a path name it? */
	if (length == 0 || strchr(name, '.') != NULL || !bson_utf8_validate(name, length, false))
	{
		parent->unnameable = true;
		return NULL;
	}
	if (parent->nchildren >= most)
	{
		parent->overflow = true;
		return NULL;
	}

	child = palloc0(sizeof(ImportField));
	child->name = pnstrdup(name, length);
	child->name_length = length;
	child->next = *place;
	*place = child;
	parent->nchildren++;
	return child;
}

static ImportField *
elements_of(ImportField *field)
{
	if (field->elements == NULL)
		field->elements = palloc0(sizeof(ImportField));
	return field->elements;
}

/* ------------------------------ values ------------------------------------- */

/*
 * has_unreadable
 *		Is there a string or key inside that no text, nor jsonb, can hold?
 */
static bool
has_unreadable(const bson_iter_t *value)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext,
												  "mongo_fdw imported value",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext previous = MemoryContextSwitchTo(scratch);
	bool		readable = mongo_json_show_value(value, false, 0) != NULL;

	MemoryContextSwitchTo(previous);
	MemoryContextDelete(scratch);
	return !readable;
}

static uint32
kinds_of_value(const bson_iter_t *iter)
{
	const int64 epoch = MONGO_EPOCH_DAYS * MONGO_MILLIS_PER_DAY;
	uint32		kinds = MONGO_BSON_BIT(bson_iter_type(iter));
	uint32_t	length;
	const char *text;
	const uint8_t *data;
	bson_subtype_t subtype;
	int64		number;

	switch (bson_iter_type(iter))
	{
		case BSON_TYPE_NULL:
		case BSON_TYPE_UNDEFINED:
			return 0;
		case BSON_TYPE_INT64:
			number = bson_iter_int64(iter);
			return number > DOUBLE_INTEGER_MAX || number < -DOUBLE_INTEGER_MAX ?
				kinds | IMPORT_WIDE : kinds;
		case BSON_TYPE_UTF8:
		case BSON_TYPE_SYMBOL:
			text = BSON_ITER_HOLDS_UTF8(iter) ? bson_iter_utf8(iter, &length) :
				bson_iter_symbol(iter, &length);
			return mongo_text_is_valid(text, length) ? kinds : kinds | IMPORT_UNREADABLE;
		case BSON_TYPE_DATE_TIME:
			number = bson_iter_date_time(iter);
			return number >= MIN_TIMESTAMP / 1000 + epoch &&
				number < END_TIMESTAMP / 1000 + epoch ? kinds : IMPORT_OTHER;
		case BSON_TYPE_BINARY:
			bson_iter_binary(iter, &subtype, &length, &data);
			return length == 16 && (subtype == BSON_SUBTYPE_UUID ||
									subtype == BSON_SUBTYPE_UUID_DEPRECATED) ? IMPORT_UUID : kinds;
		default:
			return kinds;
	}
}

/* is_geometry: {type: "Point", coordinates: [...]} and the like (RFC 7946). */
static bool
is_geometry(const bson_iter_t *document)
{
	static const char *const types[] = {
		"Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon",
		"GeometryCollection"
	};
	bson_iter_t type;
	bson_iter_t content;

	if (!bson_iter_recurse(document, &type) || !bson_iter_find(&type, "type") ||
		!BSON_ITER_HOLDS_UTF8(&type))
		return false;
	for (size_t i = 0; i < lengthof(types); i++)
	{
		if (strcmp(bson_iter_utf8(&type, NULL), types[i]) == 0)
			return bson_iter_recurse(document, &content) &&
				bson_iter_find(&content, i == lengthof(types) - 1 ? "geometries" : "coordinates") &&
				BSON_ITER_HOLDS_ARRAY(&content);
	}
	return false;
}

static void observe_members(ImportField *parent, bson_iter_t *iter, uint32 length,
							int nesting, int most);

/* observe_elements adds an array's elements, and the members of those that are documents. */
static void
observe_elements(ImportField *field, const bson_iter_t *array, int nesting)
{
	ImportField *elements = elements_of(field);
	bson_iter_t iter;
	uint32		length = mongo_iter_descend(array, &iter);

	while (bson_iter_next(&iter))
	{
		uint32		kinds = kinds_of_value(&iter);

		CHECK_FOR_INTERRUPTS();

		if ((kinds & ~PLAIN_KINDS) != 0 && has_unreadable(&iter))
			kinds |= IMPORT_UNREADABLE;
		elements->kinds |= kinds;
		field->kinds |= kinds & IMPORT_UNREADABLE;
		if ((kinds & BIT(DOCUMENT)) != 0 && nesting > 0)
		{
			bson_iter_t members;
			uint32		members_length = mongo_iter_descend(&iter, &members);

			observe_members(elements, &members, members_length, nesting - 1, MAP_CHILDREN);
		}
	}
	mongo_iter_check_end(&iter, length);
}

/* observe_members adds the members of the document under 'iter'. */
static void
observe_members(ImportField *parent, bson_iter_t *iter, uint32 length, int nesting,
				int most)
{
	ImportField *previous = NULL;

	check_stack_depth();

	while (bson_iter_next(iter))
	{
		ImportField *child = child_named(parent, previous, bson_iter_key(iter), most);
		uint32		kinds;

		CHECK_FOR_INTERRUPTS();

		if (child == NULL)
			continue;
		kinds = kinds_of_value(iter);
		child->kinds |= kinds;
		previous = child;

		if (kinds == BIT(ARRAY))
			observe_elements(child, iter, nesting);
		else if ((kinds & ~PLAIN_KINDS) != 0 && has_unreadable(iter))
			child->kinds |= IMPORT_UNREADABLE;
		if (kinds == BIT(DOCUMENT) && nesting > 0)
		{
			bson_iter_t members;
			uint32		members_length = mongo_iter_descend(iter, &members);

			child->is_geometry |= is_geometry(iter);
			observe_members(child, &members, members_length, nesting - 1, MAP_CHILDREN);
		}
	}
	mongo_iter_check_end(iter, length);
}

void
import_observe_document(ImportField *root, const uint8_t *data, uint32 length,
						int nesting)
{
	bson_iter_t iter;

	if (!bson_iter_init_from_data(&iter, data, length))
		mongo_report_bad_bson();
	root->kinds |= BIT(DOCUMENT);
	observe_members(root, &iter, length, nesting, MaxHeapAttributeNumber);
}

/* ------------------------------ schemas ------------------------------------ */

/* kinds_of_schema_type: what a schema's bsonType or type says. */
static uint32
kinds_of_schema_type(const bson_iter_t *iter)
{
	const char *name;
	bson_type_t type;

	if (!BSON_ITER_HOLDS_UTF8(iter))
		return 0;
	name = bson_iter_utf8(iter, NULL);
	if (strcmp(name, "number") == 0)
		return IMPORT_NUMBER;
	if (strcmp(name, "boolean") == 0)
		return BIT(BOOL);
	type = mongo_bson_type_of_alias(name);
	return type == BSON_TYPE_NULL || type == BSON_TYPE_UNDEFINED ? 0 :
		type == BSON_TYPE_EOD ? IMPORT_OTHER :
		type == BSON_TYPE_BINARY ? IMPORT_BINARY_DATA : MONGO_BSON_BIT(type);
}

/* kinds_of_schema: of the types that a schema lists, or the one it names. */
static uint32
kinds_of_schema(const bson_iter_t *schema)
{
	static const char *const keywords[] = {"bsonType", "type"};
	uint32		kinds = 0;

	for (size_t i = 0; i < lengthof(keywords); i++)
	{
		bson_iter_t iter;
		bson_iter_t names;

		if (!bson_iter_recurse(schema, &iter) || !bson_iter_find(&iter, keywords[i]))
			continue;
		if (!BSON_ITER_HOLDS_ARRAY(&iter))
			kinds |= kinds_of_schema_type(&iter);
		else if (bson_iter_recurse(&iter, &names))
		{
			while (bson_iter_next(&names))
				kinds |= kinds_of_schema_type(&names);
		}
	}
	return kinds;
}

/* observe_items adds what a schema says of an array's elements. */
static void
observe_items(ImportField *field, const bson_iter_t *schema)
{
	bson_iter_t items;
	bson_iter_t each;

	if (!bson_iter_recurse(schema, &items) || !bson_iter_find(&items, "items"))
		return;
	if (BSON_ITER_HOLDS_DOCUMENT(&items))
		elements_of(field)->kinds |= kinds_of_schema(&items);
	else if (BSON_ITER_HOLDS_ARRAY(&items) && bson_iter_recurse(&items, &each))
	{
		while (bson_iter_next(&each))
		{
			if (BSON_ITER_HOLDS_DOCUMENT(&each))
				elements_of(field)->kinds |= kinds_of_schema(&each);
		}
	}
}

static void
observe_properties(ImportField *parent, const bson_iter_t *schema, int nesting, int most)
{
	ImportField *previous = NULL;
	bson_iter_t properties;
	bson_iter_t iter;

	check_stack_depth();

	if (!bson_iter_recurse(schema, &properties) ||
		!bson_iter_find(&properties, "properties") ||
		!BSON_ITER_HOLDS_DOCUMENT(&properties) ||
		!bson_iter_recurse(&properties, &iter))
		return;

	while (bson_iter_next(&iter))
	{
		ImportField *child;

		if (!BSON_ITER_HOLDS_DOCUMENT(&iter))
			continue;
		child = child_named(parent, previous, bson_iter_key(&iter), most);
		if (child == NULL)
			continue;
		previous = child;
		child->kinds |= kinds_of_schema(&iter);
		if ((child->kinds & BIT(ARRAY)) != 0)
			observe_items(child, &iter);
		if ((child->kinds & BIT(DOCUMENT)) != 0 && nesting > 0)
			observe_properties(child, &iter, nesting - 1, MAP_CHILDREN);
	}
}

void
import_observe_schema(ImportField *root, const bson_iter_t *schema, int nesting)
{
	observe_properties(root, schema, nesting, MaxHeapAttributeNumber);
}

/* ------------------------------ types -------------------------------------- */

/*
 * settled_kinds
 *		What a schema left open is settled by what was seen.
 */
static uint32
settled_kinds(uint32 kinds)
{
	kinds &= ~IMPORT_UNREADABLE;
	if (kinds & IMPORT_NUMBER)
		kinds = (kinds & ANY_NUMBER) ? kinds & ~IMPORT_NUMBER :
			(kinds & ~IMPORT_NUMBER) | BIT(DECIMAL128);
	if (kinds & IMPORT_BINARY_DATA)
		kinds = (kinds & (IMPORT_UUID | BIT(BINARY))) ? kinds & ~IMPORT_BINARY_DATA :
			(kinds & ~IMPORT_BINARY_DATA) | BIT(BINARY);
	return kinds;
}

/* scalar_type: NULL when no type but jsonb holds all these kinds. */
static const char *
scalar_type(uint32 kinds, const char *objectid_type)
{
	for (size_t i = 0; kinds != 0 && i < lengthof(type_rows); i++)
	{
		if ((kinds & ~type_rows[i].holds) == 0)
			return type_rows[i].type != NULL ? type_rows[i].type : objectid_type;
	}
	return NULL;
}

uint32
import_kinds_of_type(Oid type)
{
	for (size_t i = 0; i < lengthof(type_rows); i++)
	{
		if (type == (OidIsValid(type_rows[i].oid) ? type_rows[i].oid : mongo_objectid_type_oid()))
			return type_rows[i].holds;
	}
	return 0;
}

bool
import_is_array_of_documents(const ImportField *field)
{
	const ImportField *elements = field->elements;

	return settled_kinds(field->kinds) == BIT(ARRAY) && elements != NULL &&
		settled_kinds(elements->kinds) == BIT(DOCUMENT) && elements->first_child != NULL &&
		!elements->overflow && !elements->unnameable;
}

const char *
import_field_type(const ImportField *field, const char *objectid_type)
{
	uint32		kinds = settled_kinds(field->kinds);
	const char *type;

	if (kinds == BIT(DOCUMENT) && field->first_child != NULL &&
		!field->overflow && !field->unnameable && !field->is_geometry)
		return NULL;

	if (kinds == BIT(ARRAY) && field->elements != NULL)
	{
		type = scalar_type(settled_kinds(field->elements->kinds), objectid_type);
		return type != NULL ? psprintf("%s[]", type) : ANYTHING;
	}

	type = scalar_type(kinds, objectid_type);
	return type != NULL ? type : ANYTHING;
}

/*-------------------------------------------------------------------------
 * Which BSON types have fields in a sample of documents.
 *
 * The paths are a tree, through which each document is led once.
 *-------------------------------------------------------------------------
 */

/* Beyond so many different ones, names are data. */
#define MAX_OTHERS	1600

/* Significant digits of a share. */
#define SHARE_DIGITS	4

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
field_types_create(bool others)
{
	FieldTypes *types = palloc0(sizeof(FieldTypes));

	types->root.prefix = "";
	types->note_others = others;
	types->context = CurrentMemoryContext;
	return types;
}

FieldNode *
field_types_add(FieldTypes *types, const char *path)
{
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
	return node;
}

/* count_value: of a repeated key only the first counts. */
static bool
count_value(FieldNode *node, bson_type_t type, uint64 document)
{
	if (node->seen_in == document)
		return false;
	node->seen_in = document;
	node->last_type = type;
	node->counts[pg_rightmost_one_pos32(MONGO_BSON_BIT(type))]++;
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

double
field_types_seen(const FieldNode *node, uint32 *types)
{
	double		documents = 0;

	*types = 0;
	for (int i = 0; i < BSON_TYPE_COUNT; i++)
	{
		documents += node->counts[i];
		if (node->counts[i] > 0 && i != BSON_TYPE_NULL && i != BSON_TYPE_UNDEFINED)
			*types |= (uint32) 1 << i;
	}
	return documents;
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
		for (int i = 0; i < BSON_TYPE_COUNT; i++)
		{
			if (node->counts[i] > 0)
				append_share(&shares, mongo_bson_type_name(BSON_TYPE_OF_BIT(i)),
							 node->counts[i], types->documents);
			found += node->counts[i];
		}
		bson_append_document_end(&entry, &shares);
		append_share(&entry, "missing", types->documents - found, types->documents);
		append_share(&entry, "arrays", node->counts[BSON_TYPE_ARRAY], types->documents);
		bson_array_end_document(&result, &entry);
	}
	return result;
}
