/*-------------------------------------------------------------------------
 *
 * decode.c
 *		Decodes documents into rows.
 *
 * This file decides which value belongs to which column, and what becomes of a value that does not
 * fit: an error, NULL, a row less, or a deferred error.  How a value is read is decided by the
 * MongoReader of its type.
 *
 * The paths of the columns form a tree, which is walked together with the document.  Documents of a
 * collection tend to have their fields in the same order.  So each node remembers which of its
 * siblings followed it in the last document, and a field that follows it again costs one
 * comparison.  Any other field is found by its name's hash value, if there are many columns.  The
 * walk of a level ends as soon as all of its nodes have been found.
 *
 * Read the tree first, then the reports of mismatches, the walk, mongo_row_decode(), and composite
 * types, which are read by the same walk.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/* Bytes of an _id, or of another value, that a message quotes. */
#define SHOWN_SIZE		100

/* A column of the decoder. */
typedef struct DecodedColumn
{
	MongoColumn column;
	MongoReader *reader;
	struct DecodedColumn *next; /* another column with the same path */
} DecodedColumn;

/* A component of a path, or an attribute of a composite type. */
typedef struct PathNode PathNode;
struct PathNode
{
	const char *name;
	uint32		name_length;
	bool		numeric;		/* all digits: may index an array */
	uint32		seen;			/* number of the walk that last found it */
	DecodedColumn *columns;		/* whose path ends here */
	PathNode   *sibling;
	PathNode   *follower;		/* sibling that came next in the last document */
	PathNode   *in_bucket;		/* the next one in its bucket */

	/* components below this one */
	PathNode   *first_child;
	PathNode   *last_child;
	int			nchildren;
	PathNode  **buckets;		/* a hash table by name; NULL: few children */
	PathNode   *first_found;	/* child that came first in the last document */
	uint32		walk;			/* number of the current walk below this node */
};

struct MongoRowDecoder
{
	MemoryContext context;
	const char *database;
	const char *collection;
	bool		canonical_json;
	MongoDeferral deferral;
	const Bitmapset *needed;	/* columns that are read despite deferral */
	Bitmapset  *mismatches;		/* deferred ones of the last document */
	bool		deferred;		/* did the last document defer anything else? */
	bool		skipped;		/* did the last document not fit a column
								 * under 'skip'? */
	int			ncolumns;
	int		   *indexes;		/* of all columns, which are NULL at first */
	PathNode   *root;
	DecodedColumn *documents;	/* whole-document columns */
	DecodedColumn *shown_by;	/* column __mismatch; NULL: none */
	BsonArray	shown;			/* its value for the current document */

	/* the current document, for messages */
	const uint8_t *data;
	uint32		length;
};

/* More children than these are found by a hash table, unless they come in the expected order. */
#define MOST_COMPARED	8
#define NAME_BUCKETS	512

static inline bool
has_name(const PathNode *node, const char *name, uint32 name_length)
{
	/* most names differ in length, or in their last character */
	uint32		last = Max(name_length, 1) - 1;

	return node->name_length == name_length && node->name[last] == name[last] &&
		memcmp(node->name, name, name_length) == 0;
}

static PathNode **
name_bucket(const PathNode *parent, const char *name, uint32 name_length)
{
	return &parent->buckets[hash_bytes((const unsigned char *) name, name_length) % NAME_BUCKETS];
}

/*
 * Returns the child with a name, searching from 'start' on and wrapping around; NULL if there is
 * none.
 */
static PathNode *
named_field(const PathNode *parent, PathNode *start, const char *name, uint32 name_length)
{
	PathNode   *node = start;

	for (int i = 0; i < parent->nchildren; i++)
	{
		if (node == NULL)
			node = parent->first_child;
		if (has_name(node, name, name_length))
			return node;
		if (parent->buckets != NULL)
		{
			node = *name_bucket(parent, name, name_length);
			while (node != NULL && !has_name(node, name, name_length))
				node = node->in_bucket;
			return node;
		}
		node = node->sibling;
	}
	return NULL;
}

/* Adds the node and its later siblings to the hash table. */
static void
add_to_buckets(PathNode *parent, PathNode *node)
{
	for (; node != NULL; node = node->sibling)
	{
		PathNode  **bucket = name_bucket(parent, node->name, node->name_length);

		node->in_bucket = *bucket;
		*bucket = node;
	}
}

/* Returns the child with a name, created in the current memory context. */
static PathNode *
find_or_add_child(PathNode *parent, const char *name, uint32 name_length)
{
	PathNode   *node = named_field(parent, NULL, name, name_length);

	if (node != NULL)
		return node;
	node = palloc0(sizeof(PathNode));
	node->name = pnstrdup(name, name_length);
	node->name_length = name_length;
	node->numeric = name_length > 0 && strspn(node->name, "0123456789") == name_length;
	*(parent->last_child != NULL ? &parent->last_child->sibling : &parent->first_child) = node;
	parent->last_child = node;
	if (++parent->nchildren == MOST_COMPARED + 1)
	{
		parent->buckets = palloc0(sizeof(PathNode *) * NAME_BUCKETS);
		node = parent->first_child;
	}
	if (parent->buckets != NULL)
		add_to_buckets(parent, node);
	return parent->last_child;
}

/* Returns the node at the end of a dotted path, creating nodes on the way. */
static PathNode *
add_path(PathNode *root, const char *path)
{
	PathNode   *node = root;

	for (;;)
	{
		uint32		length = strcspn(path, ".");

		node = find_or_add_child(node, path, length);
		if (path[length] == '\0')
			return node;
		path += length + 1;
	}
}

static void
add_decoded_column(MongoRowDecoder *decoder, const MongoColumn *column)
{
	DecodedColumn *decoded = palloc0(sizeof(DecodedColumn));
	DecodedColumn **list = &decoder->documents;
	Oid			typid = column->typid;
	uint32		declared = mongo_declared_set(column->bson_type);

	if (column->path != NULL)
	{
		mongo_check_declared_type(column->name, typid, column->bson_type);
		list = &add_path(decoder->root, column->path)->columns;
	}
	else if (strcmp(column->name, MONGO_MISMATCH_COLUMN) == 0)
	{
		list = &decoder->shown_by;
		if (typid != JSONBOID)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("column \"%s\" shows fields that do not fit and cannot be of type %s",
							column->name, format_type_be(typid)),
					 errhint("Declare it as jsonb.")));
	}
	else if (typid == TEXTOID || typid == VARCHAROID)
		typid = JSONOID;
	else if (typid != JSONOID && typid != JSONBOID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" holds whole documents and cannot be of type %s",
						column->name, format_type_be(typid)),
				 errhint("Declare it as jsonb, json, text or varchar.")));

	decoded->column = *column;
	if (column->collection == NULL)
		decoded->column.collection = decoder->collection;
	decoded->reader = mongo_reader_create(typid, column->typmod);
	if (column->of_token)
		mongo_prepare_token(decoded->reader, column->name);
	/* option bson_type restricts what is read */
	decoded->reader->undeclared = decoded->reader->accepts & ~declared;
	decoded->reader->accepts &= declared;
	decoded->next = *list;
	*list = decoded;
}

/*
 * mongo_row_decoder_create
 *		Returns a decoder that reads columns (MongoColumn *) from documents of a collection,
 *		allocated in 'context'.  All strings of the columns, and both names, must live as long.
 *
 * Two columns may share a path, and one path may contain another ("a" and "a.b").  Raises 0A000 for
 * a type that has no BSON form, for a "__doc" column that is not jsonb, json, text or varchar, for
 * a "__mismatch" column that is not jsonb, and for a resume token's column that cannot be a text.
 * Also raises what mongo_check_declared_type() does.
 */
MongoRowDecoder *
mongo_row_decoder_create(MemoryContext context, const char *database, const char *collection,
						 const List *columns, bool canonical_json)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	MongoRowDecoder *decoder = palloc0(sizeof(MongoRowDecoder));
	int			i = 0;

	decoder->context = context;
	decoder->database = database;
	decoder->collection = collection;
	decoder->canonical_json = canonical_json;
	decoder->ncolumns = list_length(columns);
	decoder->indexes = palloc(Max(decoder->ncolumns, 1) * sizeof(int));
	decoder->root = palloc0(sizeof(PathNode));
	foreach_ptr(const MongoColumn, column, columns)
	{
		decoder->indexes[i++] = column->index;
		add_decoded_column(decoder, column);
	}
	MemoryContextSwitchTo(caller);
	return decoder;
}

/* ---- Reporting mismatches ---- */

/* The SQLSTATE of a mismatch, and the type that reads the value; "": it depends on that. */
static const struct
{
	int			sqlstate;
	const char *type;
}			mismatch_reports[] = {

	[MONGO_MISMATCH_TYPE] = {ERRCODE_INVALID_TEXT_REPRESENTATION, ""},
	[MONGO_MISMATCH_RANGE] = {ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, ""},
	[MONGO_MISMATCH_DATETIME] = {ERRCODE_DATETIME_VALUE_OUT_OF_RANGE, "jsonb"},
	[MONGO_MISMATCH_CHARACTERS] = {ERRCODE_CHARACTER_NOT_IN_REPERTOIRE, NULL},
	[MONGO_MISMATCH_LENGTH] = {ERRCODE_STRING_DATA_RIGHT_TRUNCATION, "text"},
	[MONGO_MISMATCH_SYNTAX] = {ERRCODE_INVALID_TEXT_REPRESENTATION, "text"},
	[MONGO_MISMATCH_SHAPE] = {ERRCODE_ARRAY_SUBSCRIPT_ERROR, "jsonb"},
	[MONGO_MISMATCH_DOMAIN] = {ERRCODE_CHECK_VIOLATION, NULL},
	[MONGO_MISMATCH_BSON] = {ERRCODE_PROTOCOL_VIOLATION, NULL},
};

/*
 * Returns the type of a column that reads this value: for a number in a column of numbers the
 * narrowest type that holds those of the column, too.
 */
static const char *
fitting_type(Oid column, bson_type_t value)
{
	bool		is_small = column == INT2OID || column == INT4OID;
	bool		is_number = is_small || column == INT8OID || column == FLOAT4OID ||
		column == FLOAT8OID || column == NUMERICOID;
	Oid			objectid;

	switch (value)
	{
		case BSON_TYPE_INT32:
			return is_number && column != INT2OID ? "numeric" : "integer";
		case BSON_TYPE_INT64:
			return is_number && !is_small ? "numeric" : "bigint";
		case BSON_TYPE_DOUBLE:
			return is_number && !is_small ? "numeric" : "double precision";
		case BSON_TYPE_DECIMAL128:
			return "numeric";
		case BSON_TYPE_UTF8:
		case BSON_TYPE_SYMBOL:
			return "text";
		case BSON_TYPE_BOOL:
			return "boolean";
		case BSON_TYPE_DATE_TIME:
			return "timestamp with time zone";
		case BSON_TYPE_OID:
			objectid = mongo_objectid_type_oid();
			return OidIsValid(objectid) ? format_type_be_qualified(objectid) : "text";
		case BSON_TYPE_BINARY:
			return "bytea";
		default:
			return "jsonb";
	}
}

/*
 * Returns the HINT for a mismatch: the type that fits, and the statement that sets it if the column
 * is known to be that of one table.
 */
static const char *
mismatch_hint(const DecodedColumn *column, const MongoReadContext *context)
{
	const char *type = mismatch_reports[context->mismatch].type;
	List	   *relids = mongo_error_tables();
	Oid			relid = list_length(relids) == 1 ? linitial_oid(relids) : InvalidOid;
	const char *name = column->column.name;
	const char *hint;

	/* would the value fit without option bson_type? */
	if (context->mismatch == MONGO_MISMATCH_TYPE &&
		(column->reader->undeclared & MONGO_BSON_BIT(bson_iter_type(&context->value))) != 0)
		return "Drop option bson_type of the column, or set option type_mismatch to 'null'.";
	if (context->mismatch == MONGO_MISMATCH_DOMAIN)
		return "Declare the column with the domain's base type, or set option type_mismatch to 'null'.";
	if (type == NULL)
		return "Set option type_mismatch to 'null' to read such fields as NULL.";
	if (type[0] == '\0')
		type = OidIsValid(get_element_type(column->column.typid)) ? "jsonb" :
			fitting_type(column->column.typid, bson_iter_type(&context->value));
	hint = psprintf("Declare the column as %s%s", type,
					strcmp(type, "jsonb") == 0 ? "" : " (jsonb reads every BSON value)");
	if (!OidIsValid(relid) || get_attnum(relid, name) <= 0)
		return psprintf("%s, or set option type_mismatch to 'null'.", hint);
	return psprintf("%s: ALTER FOREIGN TABLE %s ALTER COLUMN %s TYPE %s; Or set option type_mismatch to 'null'.",
					hint, quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), get_rel_name(relid)),
					quote_identifier(name), type);
}

/*
 * Returns the beginning of the _id of the document, or of the one nested at 'prefix'; NULL if it
 * has none.
 */
static const char *
find_id(const MongoRowDecoder *decoder, const char *prefix)
{
	bson_iter_t outer;
	bson_iter_t id;

	if (!bson_iter_init_from_data(&outer, decoder->data, decoder->length) ||
		!bson_iter_find_descendant(&outer, prefix == NULL ? "_id" : psprintf("%s._id", prefix),
								   &id))
		return NULL;
	return mongo_json_show_value(&id, false, SHOWN_SIZE);
}

/* Returns the DETAIL for a mismatch of a column's field. */
static const char *
describe_mismatch(const MongoRowDecoder *decoder, const DecodedColumn *column,
				  const MongoReadContext *context)
{
	const char *value;
	const char *json;
	const char *id = NULL;
	const char *sentence;

	if (context->mismatch == MONGO_MISMATCH_BSON)
	{
		id = column->column.field == NULL && mongo_may_quote_field("_id") ?
			find_id(decoder, column->column.prefix) : NULL;
		return id == NULL ? "A document is not valid BSON." :
			psprintf("The document with _id %s is not valid BSON.", id);
	}

	/* the value's BSON type and beginning, such as String: "abc" */
	value = mongo_bson_type_name(bson_iter_type(&context->value));
	json = mongo_json_show_value(&context->value, false, SHOWN_SIZE);
	if (json != NULL)
		value = psprintf("%s: %s", value, json);
	if (column->column.field == NULL && mongo_may_quote_field("_id"))
		id = find_id(decoder, column->column.prefix);
	if (column->column.field != NULL)
		sentence = psprintf("A group of documents gives a value of BSON type %s.", value);
	else if (id == NULL)
		sentence = psprintf("A document holds a value of BSON type %s.", value);
	else
		sentence = psprintf("The document with _id %s holds a value of BSON type %s.", id, value);
	return context->remark == NULL ? sentence :
		psprintf("%s %s", sentence, context->remark);
}

static void
report_mismatch(const MongoRowDecoder *decoder, const DecodedColumn *column,
				const MongoReadContext *context)
{
	const char *type = format_type_with_typemod(column->column.typid, column->column.typmod);
	const char *path = column->column.path;
	const char *namespace = psprintf("%s.%s", decoder->database, column->column.collection);

	if (column->column.field != NULL)
		path = column->column.field;
	else if (column->column.prefix != NULL)
		path += strlen(column->column.prefix) + 1;

	ereport(ERROR,
			(errcode(mismatch_reports[context->mismatch].sqlstate),
			 column->column.path != NULL ?
			 errmsg("could not read field \"%s\" of collection \"%s\" as type %s",
					mongo_from_utf8(path), namespace, type) :
			 errmsg("could not read a document of collection \"%s\" as type %s",
					namespace, type),
			 mongo_may_quote(column->column.name) ?
			 errdetail_internal("%s", describe_mismatch(decoder, column, context)) : 0,
			 errhint("%s", mismatch_hint(column, context))));
}

/* ---- Reading columns ---- */

static void read_columns(MongoRowDecoder *decoder, const DecodedColumn *columns,
						 const bson_iter_t *iter, Datum *values, bool *isnull);

/*
 * Adds {field, type, value} to the value of column __mismatch.  The value is left out if jsonb
 * cannot store it, if the user may not read the column, and for ANALYZE, whose statistics are shown
 * to those who may read __mismatch alone.
 */
static void
show_mismatch(MongoRowDecoder *decoder, const DecodedColumn *column,
			  const MongoReadContext *context)
{
	MongoReadContext context_of_value = {.canonical_json = decoder->canonical_json};
	bson_value_t field;
	bson_value_t type;
	bson_iter_t value = context->value;
	Datum		ignored;
	bool		isnull;

	/* json columns read every BSON type */
	if (decoder->shown_by == NULL || column->reader->accepts == MONGO_BSON_ANY)
		return;
	field = mongo_utf8(column->column.path);
	type = mongo_utf8(context->mismatch == MONGO_MISMATCH_BSON ? "invalid" :
					  mongo_bson_type_name(bson_iter_type(&context->value)));
	if (decoder->shown.bson == NULL)
		decoder->shown = mongo_array_create();
	if (context->mismatch != MONGO_MISMATCH_BSON &&
		mongo_error_tables() != NIL && mongo_may_quote(column->column.name) &&
		mongo_read_value(decoder->shown_by->reader, &context_of_value, &value, &ignored, &isnull))
		mongo_array_append_template(&decoder->shown, "{field: @1, type: @2, value: @3}", field, type,
									*bson_iter_value(&value));
	else
		mongo_array_append_template(&decoder->shown, "{field: @1, type: @2}", field, type);
}

static void
read_mismatches(MongoRowDecoder *decoder, Datum *values, bool *isnull)
{
	const bson_t *document;
	bson_iter_t iter;

	if (decoder->shown.bson == NULL)
		return;
	document = mongo_from_template("{shown: @1}", mongo_array(decoder->shown.bson));
	if (bson_iter_init(&iter, document) && bson_iter_next(&iter))
		read_columns(decoder, decoder->shown_by, &iter, values, isnull);
}

/* Treats a mismatch as the column's type_mismatch specifies. */
static void
misfit(MongoRowDecoder *decoder, const DecodedColumn *column, const MongoReadContext *context)
{
	MemoryContext caller;

	switch (column->column.type_mismatch)
	{
		case MONGO_TYPE_MISMATCH_NULL:
			show_mismatch(decoder, column, context);
			return;
		case MONGO_TYPE_MISMATCH_SKIP:
			decoder->skipped = true;
			return;
		case MONGO_TYPE_MISMATCH_ERROR:
			break;
	}
	if (decoder->deferral == MONGO_DEFER_NOTHING)
		report_mismatch(decoder, column, context);
	caller = MemoryContextSwitchTo(decoder->context);
	decoder->mismatches = bms_add_member(decoder->mismatches, column->column.index);
	MemoryContextSwitchTo(caller);
}

/* Treats all columns whose path contains the node as mismatches. */
static void
misfit_below(MongoRowDecoder *decoder, const PathNode *node, const MongoReadContext *context)
{
	for (const DecodedColumn *column = node->columns; column; column = column->next)
		misfit(decoder, column, context);
	for (PathNode *child = node->first_child; child; child = child->sibling)
		misfit_below(decoder, child, context);
}

/*
 * Treats columns whose path leads through an array without an index as mismatches.  MongoDB would
 * collect the values of all elements, which a column cannot store.
 */
static void
misfit_of_array(MongoRowDecoder *decoder, const PathNode *node, const bson_iter_t *iter)
{
	MongoReadContext context = {0};

	mongo_mismatch(&context, MONGO_MISMATCH_SHAPE, iter,
				   "A path through an array has to say which element it means, as in \"lines.0.price\".");
	for (PathNode *child = node->first_child; child; child = child->sibling)
	{
		if (!child->numeric)
			misfit_below(decoder, child, &context);
	}
}

/* Reads the columns whose path ends at 'iter'. */
static pg_attribute_always_inline void
read_columns(MongoRowDecoder *decoder, const DecodedColumn *columns,
			 const bson_iter_t *iter, Datum *values, bool *isnull)
{
	MongoReadContext context;
	bool		defers = decoder->deferral == MONGO_DEFER_ERRORS;

	context.canonical_json = decoder->canonical_json;
	context.deferred = false;

	for (const DecodedColumn *column = columns; column; column = column->next)
	{
		int			index = column->column.index;

		context.defers_input = defers && !bms_is_member(index, decoder->needed);
		context.defers_checks = context.defers_input ||
			(defers && column->column.type_mismatch == MONGO_TYPE_MISMATCH_ERROR);
		if (mongo_read_value(column->reader, &context, iter, &values[index], &isnull[index]))
			continue;
		if (context.mismatch == MONGO_UNREAD)
			context.deferred = true;
		else
			misfit(decoder, column, &context);
		values[index] = (Datum) 0;
		isnull[index] = true;
	}
	decoder->deferred |= context.deferred;
}

/* Sizes of BSON types of fixed size; 0: libbson has to find out. */
static const uint8 fixed_sizes[] = {
	[BSON_TYPE_DOUBLE] = 8,
	[BSON_TYPE_OID] = 12,
	[BSON_TYPE_DATE_TIME] = 8,
	[BSON_TYPE_INT32] = 4,
	[BSON_TYPE_TIMESTAMP] = 8,
	[BSON_TYPE_INT64] = 8,
	[BSON_TYPE_DECIMAL128] = 16,
};

/*
 * Returns the size of the value of this type at 'value', where 'room' bytes are left in the
 * document; 0 if libbson has to find out.
 */
static inline uint32
value_size(uint8 type, const uint8_t *value, uint32 room)
{
	uint32		length;

	if (type < lengthof(fixed_sizes) && fixed_sizes[type] != 0)
		return fixed_sizes[type] < room ? fixed_sizes[type] : 0;

	if ((type != BSON_TYPE_UTF8 && type != BSON_TYPE_DOCUMENT &&
		 type != BSON_TYPE_ARRAY) || room <= sizeof(length))
		return 0;
	memcpy(&length, value, sizeof(length));
	length = BSON_UINT32_FROM_LE(length);
	if (type != BSON_TYPE_UTF8)
		return length >= 5 && length < room ? length : 0;
	if (length < 1 || length >= room - sizeof(length) ||
		value[sizeof(length) + length - 1] != '\0')
		return 0;
	return sizeof(length) + length;
}

/*
 * Does what bson_iter_next() does, but faster if the next key is the expected one.  libbson scans a
 * key byte by byte; here one comparison checks the key and its length, and sets *node to the
 * expected node.  Anything unusual, such as invalid BSON, is left to bson_iter_next().
 */
static inline bool
next_field(bson_iter_t *iter, PathNode *expected, PathNode **node)
{
	*node = NULL;
	if (expected != NULL)
	{
		uint32		key = iter->next_off + 1;
		uint32		value = key + expected->name_length + 1;

		if (value < iter->len &&
			memcmp(iter->raw + key, expected->name, expected->name_length + 1) == 0)
		{
			uint32		size = value_size(iter->raw[iter->next_off],
										  iter->raw + value, iter->len - value);

			if (size > 0)
			{
				iter->off = iter->next_off;
				iter->type = iter->off;
				iter->key = key;
				iter->d1 = value;
				iter->d2 = value + sizeof(uint32);	/* a String's bytes */
				iter->next_off = value + size;
				*node = expected;
				return true;
			}
		}
	}
	return bson_iter_next(iter);
}

/* A walk that finds the children of a node in one document or array. */
typedef struct FieldWalk
{
	PathNode   *parent;
	uint32		length;			/* of the document */
	PathNode  **expected;
	int			missing;
	bool		is_broken;		/* by bytes that are not valid BSON */
} FieldWalk;

static inline FieldWalk
begin_walk(PathNode *parent, uint32 length)
{
	parent->walk++;
	return (FieldWalk) {parent, length, &parent->first_found, parent->nchildren, false};
}

/* Moves 'iter' to the next field that is a child, and returns the child; NULL at the end. */
static pg_attribute_always_inline PathNode *
next_child(FieldWalk *walk, bson_iter_t *iter)
{
	while (walk->missing > 0)
	{
		PathNode   *node;

		if (!next_field(iter, *walk->expected, &node))
		{
			walk->is_broken = !mongo_iter_is_at_end(iter, walk->length);
			return NULL;
		}
		if (node == NULL)
			node = named_field(walk->parent, *walk->expected, bson_iter_key(iter),
							   bson_iter_key_len(iter));
		/* a field without a node does not change the order of nodes */
		if (node == NULL)
		{
			CHECK_FOR_INTERRUPTS();
			continue;
		}
		*walk->expected = node;
		walk->expected = &node->follower;
		if (node->seen == walk->parent->walk)
			continue;
		node->seen = walk->parent->walk;
		walk->missing--;
		return node;
	}
	return NULL;
}

/* Reads the fields of one document or array for which a node has children. */
static void
walk_level(MongoRowDecoder *decoder, PathNode *parent, bson_iter_t *iter,
		   uint32 length, Datum *values, bool *isnull)
{
	FieldWalk	walk = begin_walk(parent, length);
	PathNode   *node;

	while ((node = next_child(&walk, iter)) != NULL)
	{
		bson_type_t type;

		if (node->columns != NULL)
			read_columns(decoder, node->columns, iter, values, isnull);
		if (node->nchildren == 0)
			continue;

		type = bson_iter_type_unsafe(iter);
		if (type == BSON_TYPE_ARRAY)
			misfit_of_array(decoder, node, iter);
		if (type == BSON_TYPE_DOCUMENT || type == BSON_TYPE_ARRAY)
		{
			bson_iter_t child;
			uint32		child_length = mongo_iter_descend(iter, &child);

			walk_level(decoder, node, &child, child_length, values, isnull);
		}
	}
	/* the other fields may be behind what cannot be read */
	for (node = walk.is_broken ? parent->first_child : NULL; node != NULL; node = node->sibling)
	{
		MongoReadContext context = {.mismatch = MONGO_MISMATCH_BSON};

		if (node->seen != parent->walk)
			misfit_below(decoder, node, &context);
	}
}

/* Reads the "__doc" columns, from a document that nests this one. */
static void
read_documents(MongoRowDecoder *decoder, Datum *values, bool *isnull)
{
	uint32		length = sizeof(uint32) + 2 + decoder->length + 1;
	uint32		little_endian = BSON_UINT32_TO_LE(length);
	uint8	   *outer = palloc(length);
	bson_iter_t iter;

	memcpy(outer, &little_endian, sizeof(little_endian));
	outer[sizeof(uint32)] = BSON_TYPE_DOCUMENT;
	outer[sizeof(uint32) + 1] = '\0';
	memcpy(outer + sizeof(uint32) + 2, decoder->data, decoder->length);
	outer[length - 1] = '\0';
	if (!bson_iter_init_from_data(&iter, outer, length) || !bson_iter_next(&iter))
		mongo_report_bad_bson();
	read_columns(decoder, decoder->documents, &iter, values, isnull);
	pfree(outer);
}

/*
 * mongo_row_decoder_defer_errors
 *		Defers these errors in all documents that are decoded from now on.  Columns whose index is
 *		in 'needed', which must live as long as the decoder, are always read.  Under type_mismatch
 *		'null' their constraints are also checked, as a value that violates one reads as NULL.
 */
void
mongo_row_decoder_defer_errors(MongoRowDecoder *decoder, MongoDeferral what, const Bitmapset *needed)
{
	decoder->deferral = what;
	decoder->needed = needed;
}

/*
 * mongo_row_decoder_deferred
 *		Tells whether anything but mismatches was deferred in the last document.
 */
bool
mongo_row_decoder_deferred(const MongoRowDecoder *decoder)
{
	return decoder->deferred;
}

/*
 * mongo_row_decoder_skipped
 *		Tells whether the last document did not fit a column of type_mismatch 'skip'.
 */
bool
mongo_row_decoder_skipped(const MongoRowDecoder *decoder)
{
	return decoder->skipped;
}

/*
 * mongo_row_decoder_mismatches
 *		Returns the indexes of the columns of the last document whose mismatch was deferred; NULL if
 *		there are none.  The set belongs to the decoder, until the next document.
 */
const Bitmapset *
mongo_row_decoder_mismatches(const MongoRowDecoder *decoder)
{
	return decoder->mismatches;
}

/*
 * mongo_row_decode
 *		Reads one document into values[] and isnull[] at each column's index.
 *
 * 'data' need not be aligned, and no Datum points into it: by-reference values are palloc'd in the
 * current memory context.  A field that is missing, null or undefined gives NULL.  If a key is
 * repeated, its first value counts, as in MongoDB's filters.
 *
 * A field that does not fit its column raises the SQLSTATE of its MongoMismatch, or gives NULL
 * unless its type_mismatch is 'error'.  The column "__mismatch" shows those fields of type_mismatch
 * 'null'.  Nesting beyond the stack's depth raises 54001.  A type without a row of its own in
 * types.c raises the errors of its input function.
 */
void
mongo_row_decode(MongoRowDecoder *decoder, const uint8_t *data, uint32 length,
				 Datum *values, bool *isnull)
{
	bson_iter_t iter;

	decoder->data = data;
	decoder->length = length;
	bms_free(decoder->mismatches);
	decoder->mismatches = NULL;
	decoder->deferred = decoder->skipped = false;
	decoder->shown.bson = NULL;

	for (int i = 0; i < decoder->ncolumns; i++)
	{
		values[decoder->indexes[i]] = (Datum) 0;
		isnull[decoder->indexes[i]] = true;
	}

	if (!bson_iter_init_from_data(&iter, data, length))
		mongo_report_bad_bson();
	walk_level(decoder, decoder->root, &iter, length, values, isnull);
	if (decoder->documents != NULL)
		read_documents(decoder, values, isnull);
	if (decoder->shown_by != NULL)
		read_mismatches(decoder, values, isnull);
}

/* --------------------------- Composite types ------------------------------ */

typedef struct CompositeReader
{
	TupleDesc	tupdesc;
	PathNode	root;			/* its children are the attributes */
} CompositeReader;

/*
 * mongo_prepare_composite
 *		Prepares a reader for each attribute that is not dropped.
 */
void
mongo_prepare_composite(MongoReader *reader)
{
	CompositeReader *composite = palloc0(sizeof(CompositeReader));
	TupleDesc	tupdesc = lookup_rowtype_tupdesc_copy(reader->typid, reader->typmod);

	composite->tupdesc = tupdesc;
	for (int i = 0; i < tupdesc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(tupdesc, i);
		const char *name = mongo_to_utf8(NameStr(attribute->attname));
		DecodedColumn *column;

		if (attribute->attisdropped)
			continue;
		column = palloc0(sizeof(DecodedColumn));
		column->column.index = i;
		column->reader = mongo_reader_create(attribute->atttypid, attribute->atttypmod);
		find_or_add_child(&composite->root, name, strlen(name))->columns = column;
	}
	reader->extra = composite;
}

/*
 * mongo_read_composite
 *		Reads a Document, whose fields have the names of the attributes; one without a field is
 *		NULL.
 */
bool
mongo_read_composite(MONGO_READ_ARGS)
{
	CompositeReader *composite = reader->extra;
	int			natts = composite->tupdesc->natts;
	Datum	   *values = palloc0(Max(natts, 1) * sizeof(Datum));
	bool	   *isnull = palloc(Max(natts, 1) * sizeof(bool));
	bson_iter_t child;
	uint32		length = mongo_iter_descend(iter, &child);
	FieldWalk	walk = begin_walk(&composite->root, length);
	const PathNode *node;

	memset(isnull, true, Max(natts, 1) * sizeof(bool));
	while ((node = next_child(&walk, &child)) != NULL)
	{
		int			index = node->columns->column.index;

		CHECK_FOR_INTERRUPTS();
		if (!mongo_read_value(node->columns->reader, context, &child, &values[index],
							  &isnull[index]))
			return false;
	}
	if (walk.is_broken)
		return mongo_mismatch(context, MONGO_MISMATCH_BSON, iter, NULL);
	*value = HeapTupleGetDatum(heap_form_tuple(composite->tupdesc, values, isnull));
	return true;
}
