/*-------------------------------------------------------------------------
 *
 * bson_write.c
 *		BSON documents that belong to memory contexts, and the writing of documents by templates;
 *		texts for messages and of cluster times.
 *
 * libbson allocates with malloc(), so an ERROR would leak documents.  Documents made here are
 * destroyed when their memory context is reset or deleted, so they must not be passed to
 * bson_destroy() or bson_steal().
 *
 * A template (common.h) is read by recursive descent: append_any() appends one value, and calls
 * itself for the members of objects and the elements of arrays.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common.h"

#include <math.h>

#include "mb/pg_wchar.h"

/* ----------- BSON documents that are freed with a memory context ---------- */

/* A document and the callback that destroys it, in one palloc chunk. */
typedef struct OwnedBson
{
	MemoryContextCallback callback;
	bson_t		bson;
} OwnedBson;

static void
destroy_owned_bson(void *arg)
{
	/* not at exit from within libmongoc, which may be writing to it */
	if (!mongo_driver_is_entered())
		bson_destroy((bson_t *) arg);
}

/*
 * mongo_appended
 *		Raises 54000 unless its argument, which a function of libbson has returned, is true.
 *
 * libbson's functions that append return false where a document would exceed 1 GB, and then leave
 * a nested document uninitialized.  Therefore each of their calls is the argument of this one.
 */
void
mongo_appended(bool appended)
{
	if (!appended)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("document is too large for BSON")));
}

/* Returns a document to be initialized by the caller, which then calls adopt(). */
static OwnedBson *
allocate_owned_bson(MemoryContext context)
{
	return mongo_bson_palloc(context, sizeof(OwnedBson));
}

/* Has the context destroy the document, and returns it. */
static bson_t *
adopt(MemoryContext context, OwnedBson *owned)
{
	owned->callback.func = destroy_owned_bson;
	owned->callback.arg = &owned->bson;
	MemoryContextRegisterResetCallback(context, &owned->callback);
	return &owned->bson;
}

/*
 * mongo_bson_create_in
 *		Returns an empty document, which lives in 'context'.  Raises 53200.
 */
bson_t *
mongo_bson_create_in(MemoryContext context)
{
	OwnedBson  *owned = allocate_owned_bson(context);

	bson_init(&owned->bson);
	return adopt(context, owned);
}

/*
 * mongo_bson_copy_in
 *		Returns a copy of a document, which lives in 'context'.  Raises 53200.
 */
bson_t *
mongo_bson_copy_in(MemoryContext context, const bson_t *source)
{
	OwnedBson  *owned = allocate_owned_bson(context);

	bson_copy_to(source, &owned->bson);
	return adopt(context, owned);
}

/*
 * mongo_bson_view
 *		Sets *view to a read-only document at these bytes, which must outlive it.  Returns false
 *		unless they have a document's length and end.  Never raises.
 */
bool
mongo_bson_view(bson_t *view, const uint8_t *data, size_t length)
{
	return bson_init_static(view, data, length);
}

/*
 * mongo_bson_view_at
 *		Does what mongo_bson_view() does, with the document at an iterator.  Returns false for any
 *		other type.
 */
bool
mongo_bson_view_at(bson_t *view, const bson_iter_t *iter)
{
	const uint8_t *data = NULL;
	uint32_t	length;

	if (BSON_ITER_HOLDS_DOCUMENT(iter))
		bson_iter_document(iter, &length, &data);
	return data != NULL && mongo_bson_view(view, data, length);
}

/* ---------- Writing BSON documents: templates, conditions, arrays --------- */

/* A template, the position of the reader, and the values for it. */
typedef struct Reader
{
	const char *text;
	const char *position;
	const BsonValue *values;
	int			nvalues;
} Reader;

/* A key, an integer, or the name of a constant. */
typedef struct Word
{
	const char *start;
	int			length;
} Word;

static void append_any(Reader *reader, bson_t *document, Word key);

static void
report_fault(const Reader *reader)
{
	elog(ERROR, "bad template at \"%s\": %s", reader->position, reader->text);
}

static char
next_character(Reader *reader)
{
	while (*reader->position == ' ')
		reader->position++;
	return *reader->position;
}

/* Skips the next character and returns true, if it is this one. */
static bool
take(Reader *reader, char c)
{
	if (next_character(reader) != c)
		return false;
	reader->position++;
	return true;
}

static void
expect(Reader *reader, char c)
{
	if (!take(reader, c))
		report_fault(reader);
}

static Word
read_word(Reader *reader)
{
	Word		word;

	next_character(reader);
	word.start = reader->position;
	word.length = strspn(word.start, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789$-_");
	reader->position += word.length;
	if (word.length == 0)
		report_fault(reader);
	return word;
}

/* Reads "@1" and the like, and returns the value that it stands for. */
static const bson_value_t *
read_value(Reader *reader)
{
	int			number;

	expect(reader, '@');
	number = *reader->position - '1';
	if (number < 0 || number >= reader->nvalues)
		report_fault(reader);
	reader->position++;
	return &reader->values[number];
}

static Word
read_key(Reader *reader)
{
	const bson_value_t *value;

	if (next_character(reader) != '@')
		return read_word(reader);
	value = read_value(reader);
	if (value->value_type != BSON_TYPE_UTF8)
		report_fault(reader);
	return (Word)
	{
		value->value.v_utf8.str, (int) value->value.v_utf8.len
	};
}

static void
append_members(Reader *reader, bson_t *document)
{
	expect(reader, '{');
	while (!take(reader, '}'))
	{
		Word		key = read_key(reader);

		expect(reader, ':');
		append_any(reader, document, key);
		take(reader, ',');
	}
}

#define ARRAY_KEY_SIZE	16

/* Returns the key of an element, which is in the buffer or a constant of libbson. */
static Word
array_key(uint32 index, char *buffer)
{
	Word		key;

	key.length = bson_uint32_to_string(index, &key.start, buffer, ARRAY_KEY_SIZE);
	return key;
}

static void
append_elements(Reader *reader, bson_t *array)
{
	char		buffer[ARRAY_KEY_SIZE];
	uint32		index = 0;

	expect(reader, '[');
	while (!take(reader, ']'))
	{
		append_any(reader, array, array_key(index++, buffer));
		take(reader, ',');
	}
}

static const struct
{
	const char *name;
	bson_value_t value;
}			constants[] =
{
	{"null", {.value_type = BSON_TYPE_NULL}},
	{"true", {.value_type = BSON_TYPE_BOOL, .value.v_bool = true}},
	{"false", {.value_type = BSON_TYPE_BOOL, .value.v_bool = false}},
	{"NaN", {.value_type = BSON_TYPE_DOUBLE, .value.v_double = NAN}},
	{"inf", {.value_type = BSON_TYPE_DOUBLE, .value.v_double = INFINITY}},
	{"5e33", {.value_type = BSON_TYPE_DOUBLE, .value.v_double = 5e33}},
	{"-inf", {.value_type = BSON_TYPE_DOUBLE, .value.v_double = -INFINITY}},
	{"min", {.value_type = BSON_TYPE_MINKEY}},
	{"max", {.value_type = BSON_TYPE_MAXKEY}},
};

/* Appends an integer or a named constant. */
static void
append_word(Reader *reader, bson_t *document, Word key)
{
	Word		word = read_word(reader);
	char	   *end;
	int64		number = strtoi64(word.start, &end, 10);
	bson_value_t value;

	if (end == reader->position)
	{
		value = mongo_integer(number);
		mongo_appended(bson_append_value(document, key.start, key.length, &value));
		return;
	}
	for (size_t i = 0; i < lengthof(constants); i++)
	{
		if ((int) strlen(constants[i].name) == word.length &&
			memcmp(constants[i].name, word.start, word.length) == 0)
		{
			mongo_appended(bson_append_value(document, key.start, key.length, &constants[i].value));
			return;
		}
	}
	report_fault(reader);
}

/* Appends the next value of the template with a key. */
static void
append_any(Reader *reader, bson_t *document, Word key)
{
	bson_t		child;
	bson_t		array;
	const bson_value_t *value;
	const char *start;

	switch (next_character(reader))
	{
		case '{':
			mongo_appended(bson_append_document_begin(document, key.start, key.length, &child));
			append_members(reader, &child);
			mongo_appended(bson_append_document_end(document, &child));
			break;
		case '[':
			mongo_appended(bson_append_array_unsafe_begin(document, key.start, key.length, &child));
			append_elements(reader, &child);
			mongo_appended(bson_append_array_end(document, &child));
			break;
		case '\'':
			start = ++reader->position;
			while (*reader->position != '\'' && *reader->position != '\0')
				reader->position++;
			mongo_appended(bson_append_utf8(document, key.start, key.length, start, reader->position - start));
			expect(reader, '\'');
			break;
		case '@':
			value = read_value(reader);
			if (value->value_type != BSON_TYPE_ARRAY ||
				!mongo_bson_view(&array, value->value.v_doc.data, value->value.v_doc.data_len))
			{
				mongo_appended(bson_append_value(document, key.start, key.length, value));
				break;
			}

			/*
			 * libbson prints a message if the keys of a document's array are
			 * not numbers
			 */
			mongo_appended(bson_append_array_unsafe_begin(document, key.start, key.length, &child));
			mongo_concat(&child, &array);
			mongo_appended(bson_append_array_end(document, &child));
			break;
		default:
			append_word(reader, document, key);
			break;
	}
}

/* Raises XX000 unless the template has ended. */
static void
expect_end(Reader *reader)
{
	if (next_character(reader) != '\0')
		report_fault(reader);
}

/*
 * mongo_append_template_values
 *		Appends the members of a template, which is an object.  See mongo_append_template().
 */
void
mongo_append_template_values(bson_t *document, const char *text,
							 const BsonValue *values, int nvalues)
{
	Reader		reader = {text, text, values, nvalues};

	append_members(&reader, document);
	expect_end(&reader);
}

/*
 * mongo_append_member_values
 *		Appends a template of any kind as one member.  See mongo_append_template().
 */
void
mongo_append_member_values(bson_t *document, const char *key, const char *text,
						   const BsonValue *values, int nvalues)
{
	Reader		reader = {text, text, values, nvalues};

	append_any(&reader, document, (Word) {key, (int) strlen(key)});
	expect_end(&reader);
}

/*
 * mongo_from_template_values
 *		Returns a document or an array made of a template, in the current memory context.  See
 *		mongo_append_template().
 */
bson_t *
mongo_from_template_values(const char *text, const BsonValue *values, int nvalues)
{
	Reader		reader = {text, text, values, nvalues};
	bson_t	   *document = mongo_bson_create();

	if (next_character(&reader) == '[')
		append_elements(&reader, document);
	else
		append_members(&reader, document);
	expect_end(&reader);
	return document;
}

/*
 * mongo_append_condition
 *		Appends {path: {operator: value}}.
 */
void
mongo_append_condition(bson_t *document, const char *path, const char *operator_name,
					   bson_value_t value)
{
	bson_t		condition;

	mongo_append_document_begin(document, path, &condition);
	mongo_append(&condition, operator_name, value);
	mongo_appended(bson_append_document_end(document, &condition));
}

/*
 * mongo_field_path
 *		Returns "$path", which is the field's value in an expression; palloc'd.
 */
bson_value_t
mongo_field_path(const char *path)
{
	return mongo_utf8(psprintf("$%s", path));
}

/*
 * mongo_first_value
 *		Returns the value of the document's first element, which must exist.  It refers to the
 *		document.
 */
bson_value_t
mongo_first_value(const bson_t *document)
{
	bson_iter_t iter;

	if (!bson_iter_init(&iter, document) || !bson_iter_next(&iter))
		elog(ERROR, "document has no element");
	return *bson_iter_value(&iter);
}

/*
 * mongo_array_create
 *		Returns an empty array in the current memory context.
 */
BsonArray
mongo_array_create(void)
{
	return (BsonArray)
	{
		.bson = mongo_bson_create()
	};
}

/*
 * mongo_array_append
 *		Appends a value as an element.
 */
void
mongo_array_append(BsonArray *array, bson_value_t value)
{
	char		buffer[ARRAY_KEY_SIZE];
	Word		key = array_key(array->count++, buffer);

	mongo_appended(bson_append_value(array->bson, key.start, key.length, &value));
}

/*
 * mongo_array_append_template_values
 *		Appends a template of any kind as an element.  See mongo_append_template().
 */
void
mongo_array_append_template_values(BsonArray *array, const char *text,
								   const BsonValue *values, int nvalues)
{
	char		buffer[ARRAY_KEY_SIZE];
	Word		key = array_key(array->count++, buffer);
	Reader		reader = {text, text, values, nvalues};

	append_any(&reader, array->bson, key);
	expect_end(&reader);
}

/*
 * mongo_array_begin_document
 *		Begins an element that is a document.  Until mongo_array_end_document() only 'document' may
 *		be appended to.
 */
void
mongo_array_begin_document(BsonArray *array, bson_t *document)
{
	char		buffer[ARRAY_KEY_SIZE];
	Word		key = array_key(array->count++, buffer);

	mongo_appended(bson_append_document_begin(array->bson, key.start, key.length, document));
}

/*
 * mongo_array_end_document
 *		Ends the element that mongo_array_begin_document() has begun.
 */
void
mongo_array_end_document(BsonArray *array, bson_t *document)
{
	mongo_appended(bson_append_document_end(array->bson, document));
}

/* ------------------------- Texts of cluster times ------------------------- */

/*
 * mongo_format_cluster_time
 *		Returns a time of MongoDB's clock, palloc'd: ten digits of seconds since 1970, a colon,
 *		and ten digits of a number within the second.  Such texts sort as the times do.
 */
char *
mongo_format_cluster_time(uint64 time)
{
	return psprintf("%010u:%010u", (uint32) (time >> 32), (uint32) time);
}

/*
 * mongo_parse_cluster_time
 *		Returns the time of such a text, seconds << 32 | number; 0 if it is none.  Accepts fewer
 *		digits, as in "1764381605:3", too.  Never raises.
 */
uint64
mongo_parse_cluster_time(const char *text)
{
	uint64		parts[2] = {0, 0};

	for (int i = 0; i < 2; i++)
	{
		int			digits = 0;

		for (; *text >= '0' && *text <= '9' && digits < 10; digits++)
			parts[i] = parts[i] * 10 + (*text++ - '0');
		if (digits == 0 || parts[i] > PG_UINT32_MAX || *text != (i == 0 ? ':' : '\0'))
			return 0;
		text++;
	}
	return parts[0] << 32 | parts[1];
}
