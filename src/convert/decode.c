/*-------------------------------------------------------------------------
 *
 * decode.c
 *		Reading documents into rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"
#include "common.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/*-------------------------------------------------------------------------
 * One document into the values of a tuple slot.
 *
 * The columns' paths form a tree; a document is walked once along with it.
 * Documents of a collection tend to have their fields in one order, so each
 * level remembers which of its children it met at which position: a field
 * where it was last time costs one comparison, any other a hash lookup.  The
 * walk ends as soon as all that is wanted of a level has been found.
 *-------------------------------------------------------------------------
 */

/* Positions in a document for which a prediction is kept. */
#define MAX_PREDICTED		64

/* Bytes of an _id and of a value shown in a message. */
#define SHOWN_ID_SIZE		100
#define SHOWN_VALUE_SIZE	100

/* A column as the decoder holds it, with copies of the names. */
typedef struct DecodedColumn
{
	MongoColumn column;
	const char *namespace;		/* of the document it is in */
	MongoReader *reader;
	struct DecodedColumn *next; /* another column of the same path */
} DecodedColumn;

/* A component of a path. */
typedef struct PathNode PathNode;
struct PathNode
{
	const char *name;
	uint32		name_length;
	uint32		hash;
	bool		numeric;		/* all digits: may index an array */
	uint32		seen;			/* walk in which it was last found */
	DecodedColumn *columns;		/* that end here */

	/* components below this one */
	PathNode   *first_child;
	PathNode   *sibling;
	int			nchildren;
	PathNode  **buckets;		/* hash table over the children */
	uint32		bucket_mask;
	PathNode   *collision;		/* next node in the same bucket */
	uint32		walk;			/* number of the current walk below this node */
	PathNode   *predicted[MAX_PREDICTED];
};

struct MongoRowDecoder
{
	MemoryContext context;
	const char *database;
	const char *namespace;		/* "database.collection" */
	MongoTypeMismatch type_mismatch;
	bool		canonical_json;
	bool		notes_mismatches;	/* and raises none */
	Bitmapset  *mismatches;		/* of the last document, then */
	bool		defers;			/* what may raise errors of its own */
	bool		deferred;		/* of the last document, then */
	const Bitmapset *needed;	/* columns that are read meanwhile */
	int			ncolumns;
	int		   *indexes;		/* of all columns, to start from NULL */
	PathNode   *root;
	DecodedColumn *documents;	/* whole-document columns */

	/* of the document in hand, for messages */
	const uint8_t *data;
	uint32		length;
};

/*
 * Building the tree
 */

/* find_or_add_child: the node for one component below 'parent'. */
static PathNode *
find_or_add_child(MemoryContext context, PathNode *parent, const char *name,
				  uint32 name_length)
{
	PathNode   *node;
	char	   *copy;

	for (node = parent->first_child; node != NULL; node = node->sibling)
	{
		if (node->name_length == name_length &&
			memcmp(node->name, name, name_length) == 0)
			return node;
	}

	copy = MemoryContextAlloc(context, name_length + 1);
	memcpy(copy, name, name_length);
	copy[name_length] = '\0';

	node = MemoryContextAllocZero(context, sizeof(PathNode));
	node->name = copy;
	node->name_length = name_length;
	node->hash = hash_bytes((const unsigned char *) name, name_length);
	node->numeric = name_length > 0 &&
		strspn(copy, "0123456789") == name_length;
	node->sibling = parent->first_child;
	parent->first_child = node;
	parent->nchildren++;
	return node;
}

/* add_path: the node where a dotted path ends. */
static PathNode *
add_path(MemoryContext context, PathNode *root, const char *path)
{
	PathNode   *node = root;

	for (;;)
	{
		const char *dot = strchr(path, '.');
		uint32		length = dot ? (size_t) (dot - path) : strlen(path);

		node = find_or_add_child(context, node, path, length);
		if (dot == NULL)
			return node;
		path = dot + 1;
	}
}

/* finish_node: hash tables for a node and all below it. */
static void
finish_node(MemoryContext context, PathNode *node)
{
	uint32		size = 4;

	check_stack_depth();

	if (node->nchildren == 0)
		return;

	while (size < 2 * (uint32) node->nchildren)
		size *= 2;
	node->buckets = MemoryContextAllocZero(context, size * sizeof(PathNode *));
	node->bucket_mask = size - 1;
	for (PathNode *child = node->first_child; child; child = child->sibling)
	{
		PathNode  **bucket = &node->buckets[child->hash & node->bucket_mask];

		child->collision = *bucket;
		*bucket = child;
		finish_node(context, child);
	}
}

/* namespace_in: "database.collection", palloc'd there. */
static const char *
namespace_in(MemoryContext context, const char *database, const char *collection)
{
	char	   *namespace = psprintf("%s.%s", database, collection);
	char	   *result = MemoryContextStrdup(context, namespace);

	pfree(namespace);
	return result;
}

/* copy_in: palloc'd there; NULL for NULL. */
static const char *
copy_in(MemoryContext context, const char *text)
{
	return text != NULL ? MemoryContextStrdup(context, text) : NULL;
}

/* add_decoded_column: place one column in the tree. */
static void
add_decoded_column(MongoRowDecoder *decoder, const MongoColumn *column)
{
	MemoryContext context = decoder->context;
	DecodedColumn *decoded = MemoryContextAllocZero(context, sizeof(DecodedColumn));
	MongoReader *reader = mongo_reader_create(context, column->typid, column->typmod);
	DecodedColumn **list = &decoder->documents;

	decoded->column = *column;
	decoded->column.name = copy_in(context, column->name);
	decoded->column.path = copy_in(context, column->path);
	decoded->column.prefix = copy_in(context, column->prefix);
	decoded->column.field = copy_in(context, column->field);
	decoded->namespace = column->collection == NULL ? decoder->namespace :
		namespace_in(context, decoder->database, column->collection);
	decoded->reader = reader;
	if (column->path != NULL)
	{
		/* read nothing but what the column is declared to be */
		uint32		declared = mongo_declared_set(column->bson_type);

		mongo_check_declared_type(column->name, column->typid, column->bson_type);
		reader->undeclared = reader->accepts & ~declared;
		reader->accepts &= declared;
		list = &add_path(context, decoder->root, column->path)->columns;
	}
	else if (column->typid != JSONOID && column->typid != JSONBOID &&
			 column->typid != TEXTOID && column->typid != VARCHAROID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" holds whole documents and cannot be of type %s",
						column->name, format_type_be(column->typid)),
				 errhint("Declare it as jsonb, json or text.")));
	decoded->next = *list;
	*list = decoded;
}

MongoRowDecoder *
mongo_row_decoder_create(MemoryContext context, const char *database,
						 const char *collection, const MongoColumn *columns,
						 int ncolumns, MongoTypeMismatch type_mismatch,
						 bool canonical_json)
{
	MongoRowDecoder *decoder = MemoryContextAllocZero(context, sizeof(MongoRowDecoder));

	decoder->context = context;
	decoder->database = MemoryContextStrdup(context, database);
	decoder->namespace = namespace_in(context, database, collection);
	decoder->type_mismatch = type_mismatch;
	decoder->canonical_json = canonical_json;
	decoder->ncolumns = ncolumns;
	decoder->indexes = MemoryContextAlloc(context, Max(ncolumns, 1) * sizeof(int));
	decoder->root = MemoryContextAllocZero(context, sizeof(PathNode));

	for (int i = 0; i < ncolumns; i++)
	{
		decoder->indexes[i] = columns[i].index;
		add_decoded_column(decoder, &columns[i]);
	}
	finish_node(context, decoder->root);
	return decoder;
}

/*
 * Reporting
 */

static const struct
{
	int			sqlstate;
	const char *hint;
}			mismatch_reports[] = {

	[MONGO_MISMATCH_TYPE] = {ERRCODE_INVALID_TEXT_REPRESENTATION,
	"Declare the column as jsonb, which holds every BSON value, or set option type_mismatch to 'null'."},
	[MONGO_MISMATCH_RANGE] = {ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
	"Declare the column as numeric, or set option type_mismatch to 'null'."},
	[MONGO_MISMATCH_DATETIME] = {ERRCODE_DATETIME_VALUE_OUT_OF_RANGE,
	"Declare the column as jsonb, or set option type_mismatch to 'null'."},
	[MONGO_MISMATCH_CHARACTERS] = {ERRCODE_CHARACTER_NOT_IN_REPERTOIRE,
	"Set option type_mismatch to 'null' to read such fields as NULL."},
	[MONGO_MISMATCH_LENGTH] = {ERRCODE_STRING_DATA_RIGHT_TRUNCATION,
	"Declare the column as text, or set option type_mismatch to 'null'."},
	[MONGO_MISMATCH_SYNTAX] = {ERRCODE_INVALID_TEXT_REPRESENTATION,
	"Declare the column as text, or set option type_mismatch to 'null'."},
	[MONGO_MISMATCH_SHAPE] = {ERRCODE_ARRAY_SUBSCRIPT_ERROR,
	"Declare the column as jsonb, or set option type_mismatch to 'null'."},
	[MONGO_MISMATCH_DOMAIN] = {ERRCODE_CHECK_VIOLATION,
	"Declare the column with the domain's base type, or set option type_mismatch to 'null'."},
};

/*
 * find_id: how the _id begins of the document itself, or of one that stands within
 * it; NULL when it has none.
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
	return mongo_json_show_value(&id, false, SHOWN_ID_SIZE);
}

/* note_mismatch: for mongo_row_decoder_mismatches(). */
static void
note_mismatch(MongoRowDecoder *decoder, const DecodedColumn *column)
{
	MemoryContext old_context = MemoryContextSwitchTo(decoder->context);

	decoder->mismatches = bms_add_member(decoder->mismatches, column->column.index);
	MemoryContextSwitchTo(old_context);
}

/* describe_mismatch: DETAIL of what mongo_mismatch() noted about a column's field. */
static const char *
describe_mismatch(const MongoRowDecoder *decoder, const DecodedColumn *column,
				  const MongoReadContext *context)
{
	const char *value;
	const char *json;
	const char *id = NULL;
	const char *sentence;

	if (context->value.raw == NULL)
		return context->remark;
	/* its BSON type and how it begins, such as String: "abc" */
	value = mongo_bson_type_name(bson_iter_type(&context->value));
	json = mongo_json_show_value(&context->value, false, SHOWN_VALUE_SIZE);
	if (json != NULL)
		value = psprintf("%s: %s", value, json);
	if (column->column.field == NULL && mongo_may_quote(NULL))
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

static const char undeclared_hint[] =
"Drop option bson_type of the column, or set option type_mismatch to 'null'.";

/* report_mismatch: raise what mongo_mismatch() noted about a column's field. */
static void
report_mismatch(const MongoRowDecoder *decoder, const DecodedColumn *column,
				const MongoReadContext *context)
{
	const char *type = format_type_with_typemod(column->reader->typid,
												column->reader->typmod);
	const char *path = column->column.path;

	/* is it the option bson_type alone that the value does not fit? */
	bool		is_undeclared = context->mismatch == MONGO_MISMATCH_TYPE &&
		context->value.raw != NULL &&
		(column->reader->undeclared & MONGO_BSON_BIT(bson_iter_type(&context->value))) != 0;

	if (column->column.field != NULL)
		path = column->column.field;
	else if (column->column.prefix != NULL)
		path += strlen(column->column.prefix) + 1;

	ereport(ERROR,
			(errcode(mismatch_reports[context->mismatch].sqlstate),
			 column->column.path != NULL ?
			 errmsg("could not read field \"%s\" of collection \"%s\" as type %s",
					mongo_from_utf8(path), column->namespace, type) :
			 errmsg("could not read a document of collection \"%s\" as type %s",
					decoder->namespace, type),
			 mongo_may_quote(column->column.name) ?
			 errdetail_internal("%s", describe_mismatch(decoder, column, context)) : 0,
			 errhint("%s", is_undeclared ? undeclared_hint :
					 mismatch_reports[context->mismatch].hint)));
}

/*
 * Reading
 */

/* read_columns: the columns that end at the value under 'iter'. */
static void
read_columns(MongoRowDecoder *decoder, const DecodedColumn *columns,
			 const bson_iter_t *iter, Datum *values, bool *isnull)
{
	MongoReadContext context;
	bool		raises = decoder->type_mismatch == MONGO_TYPE_MISMATCH_ERROR;

	context.canonical_json = decoder->canonical_json;
	context.deferred = false;
	context.unread = false;

	for (const DecodedColumn *column = columns; column; column = column->next)
	{
		context.defers_input = decoder->defers &&
			!bms_is_member(column->column.index, decoder->needed);
		context.defers_checks = context.defers_input || (decoder->defers && raises);
		if (mongo_read_value(column->reader, &context, iter,
							 &values[column->column.index], &isnull[column->column.index]))
			continue;
		if (context.unread)
		{
			context.deferred = true;
			context.unread = false;
		}
		else if (decoder->notes_mismatches)
			note_mismatch(decoder, column);
		else if (raises)
			report_mismatch(decoder, column, &context);
		values[column->column.index] = (Datum) 0;
		isnull[column->column.index] = true;
	}
	decoder->deferred |= context.deferred;
}

/* note_mismatches_below: of all columns whose paths begin with the node's. */
static void
note_mismatches_below(MongoRowDecoder *decoder, const PathNode *node)
{
	for (const DecodedColumn *column = node->columns; column; column = column->next)
		note_mismatch(decoder, column);
	for (PathNode *child = node->first_child; child; child = child->sibling)
		note_mismatches_below(decoder, child);
}

/*
 * report_array_in_path
 *		A path leads through an array without saying which element.
 *
 * MongoDB would gather what all elements have; a column cannot.
 */
static void
report_array_in_path(MongoRowDecoder *decoder, const PathNode *node,
					 const bson_iter_t *iter)
{
	MongoReadContext context = {0};

	if (decoder->notes_mismatches)
	{
		note_mismatches_below(decoder, node);
		return;
	}
	while (node->columns == NULL)
		node = node->first_child;
	mongo_mismatch(&context, MONGO_MISMATCH_SHAPE, iter,
				   "A path through an array has to say which element it means, as in \"lines.0.price\".");
	report_mismatch(decoder, node->columns, &context);
}

/* Bytes of the BSON types whose values have one size; 0 stands for "ask libbson". */
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
 * value_size
 *		Size of the value of this type at 'value', of which 'room' bytes are
 *		there; 0 when libbson has to look at it.
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
 * next_field
 *		bson_iter_next() for a field whose key is the one that was expected.
 *
 * One comparison tells key and its length, where libbson goes through the key
 * byte by byte; *node is then the expected one.  Whatever is in any way out
 * of the ordinary is left to libbson, which also says what is not BSON.
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
				iter->d2 = value + sizeof(uint32);	/* of a String */
				iter->next_off = value + size;
				*node = expected;
				return true;
			}
		}
	}
	return bson_iter_next(iter);
}

/* find_path_child: the node below 'parent' for the field at 'iter', or NULL. */
static PathNode *
find_path_child(const PathNode *parent, const bson_iter_t *iter)
{
	const char *key = bson_iter_key(iter);
	uint32		length = bson_iter_key_len(iter);
	PathNode   *node = parent->buckets[hash_bytes((const unsigned char *) key, length) &
									   parent->bucket_mask];

	while (node != NULL && (node->name_length != length ||
							memcmp(node->name, key, length) != 0))
		node = node->collision;
	return node;
}

/* walk_level: the fields of one document (or array) against a node's children. */
static void
walk_level(MongoRowDecoder *decoder, PathNode *parent, bson_iter_t *iter,
		   uint32 length, Datum *values, bool *isnull)
{
	int			missing = parent->nchildren;
	int			position = 0;
	uint32		walk = ++parent->walk;

	while (missing > 0)
	{
		PathNode  **expected = &parent->predicted[Min(position, MAX_PREDICTED - 1)];
		PathNode   *node;
		bson_type_t type;

		position++;
		if (!next_field(iter, *expected, &node))
		{
			mongo_iter_check_end(iter, length);
			return;
		}
		if (node == NULL)
		{
			node = find_path_child(parent, iter);
			/* a field that nobody wants predicts nothing */
			if (node != NULL)
				*expected = node;
		}
		if (node == NULL || node->seen == walk)
			continue;
		node->seen = walk;
		missing--;

		if (node->columns != NULL)
			read_columns(decoder, node->columns, iter, values, isnull);
		if (node->nchildren == 0)
			continue;

		type = bson_iter_type(iter);
		if (type == BSON_TYPE_ARRAY &&
			decoder->type_mismatch == MONGO_TYPE_MISMATCH_ERROR)
		{
			for (PathNode *child = node->first_child; child; child = child->sibling)
			{
				if (!child->numeric)
					report_array_in_path(decoder, child, iter);
			}
		}
		if (type == BSON_TYPE_DOCUMENT || type == BSON_TYPE_ARRAY)
		{
			bson_iter_t child;
			uint32		child_length = mongo_iter_descend(iter, &child);

			walk_level(decoder, node, &child, child_length, values, isnull);
		}
	}
}

/*
 * document_fits
 *		Is a document's text within the length of a varchar(n) column?
 */
static bool
document_fits(const MongoReader *reader, MongoReadContext *context, Datum value)
{
	text	   *document;

	if (reader->typid != VARCHAROID || reader->typmod < (int32) VARHDRSZ)
		return true;
	document = DatumGetTextPP(value);
	if (pg_mbstrlen_with_len(VARDATA_ANY(document), VARSIZE_ANY_EXHDR(document)) <=
		reader->typmod - VARHDRSZ)
		return true;
	context->mismatch = MONGO_MISMATCH_LENGTH;
	context->remark = "The document's JSON is longer than that.";
	return false;
}

/* read_documents: the columns that hold the whole document. */
static void
read_documents(MongoRowDecoder *decoder, Datum *values, bool *isnull)
{
	MongoReadContext context = {0};

	context.canonical_json = decoder->canonical_json;
	for (DecodedColumn *column = decoder->documents; column; column = column->next)
	{
		if (mongo_document_to_datum(&context, decoder->data, decoder->length,
									column->reader->typid, &values[column->column.index]) &&
			document_fits(column->reader, &context, values[column->column.index]))
		{
			isnull[column->column.index] = false;
			continue;
		}
		if (decoder->notes_mismatches)
			note_mismatch(decoder, column);
		else if (decoder->type_mismatch == MONGO_TYPE_MISMATCH_ERROR)
			report_mismatch(decoder, column, &context);
		values[column->column.index] = (Datum) 0;
		isnull[column->column.index] = true;
	}
}

void
mongo_row_decoder_note_mismatches(MongoRowDecoder *decoder, bool note)
{
	decoder->notes_mismatches = note && decoder->type_mismatch == MONGO_TYPE_MISMATCH_ERROR;
}

void
mongo_row_decoder_defer(MongoRowDecoder *decoder, bool defer, const Bitmapset *needed)
{
	decoder->defers = defer;
	decoder->needed = needed;
}

bool
mongo_row_decoder_deferred(const MongoRowDecoder *decoder)
{
	return decoder->deferred;
}

const Bitmapset *
mongo_row_decoder_mismatches(const MongoRowDecoder *decoder)
{
	return decoder->mismatches;
}

void
mongo_row_decode(MongoRowDecoder *decoder, const uint8_t *data, uint32 length,
				 Datum *values, bool *isnull)
{
	bson_iter_t iter;

	decoder->data = data;
	decoder->length = length;
	if (decoder->mismatches != NULL)
	{
		bms_free(decoder->mismatches);
		decoder->mismatches = NULL;
	}
	decoder->deferred = false;

	for (int i = 0; i < decoder->ncolumns; i++)
	{
		values[decoder->indexes[i]] = (Datum) 0;
		isnull[decoder->indexes[i]] = true;
	}

	if (!bson_iter_init_from_data(&iter, data, length))
		mongo_report_bad_bson();
	if (decoder->root->nchildren > 0)
		walk_level(decoder, decoder->root, &iter, length, values, isnull);
	if (decoder->documents != NULL)
		read_documents(decoder, values, isnull);
}

/* ----------------- Readers, made from the table of types ------------------ */

MongoReader *
mongo_reader_create(MemoryContext context, Oid typid, int32 typmod)
{
	const MongoType *type = mongo_type_lookup(typid);
	MongoReader *reader;

	check_stack_depth();

	if (type == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be read from MongoDB",
						format_type_be(typid))));

	reader = MemoryContextAllocZero(context, sizeof(MongoReader));
	reader->read = type->read;
	reader->accepts = type->accepts;
	reader->typid = typid;
	reader->typmod = typmod;
	reader->type = type;
	reader->mcxt = context;
	get_typlenbyvalalign(typid, &reader->typlen, &reader->typbyval,
						 &reader->typalign);
	if (type->prepare)
		type->prepare(reader);
	return reader;
}
