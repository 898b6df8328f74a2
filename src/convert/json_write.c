/*-------------------------------------------------------------------------
 *
 * json_write.c
 *		Writing Extended JSON.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "convert_internal.h"
#include "common.h"

#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

/*-------------------------------------------------------------------------
 * Where JSON goes while it is made from BSON: into a text or a jsonb.
 *-------------------------------------------------------------------------
 */

/*
 * The sink that writes text
 */

/* text_separate: the comma between members; values after a key have none. */
static inline void
text_separate(TextSink *sink)
{
	if (sink->need_comma)
	{
		appendStringInfoCharMacro(sink->text, ',');
		if (sink->spaced)
			appendStringInfoCharMacro(sink->text, ' ');
	}
	sink->need_comma = true;
	sink->sink.full = sink->limit > 0 && sink->text->len > sink->limit;
}

/*
 * escape_character: as escape_json() does it; the bytes of characters beyond
 * ASCII stay as they are.
 */
static void
escape_character(StringInfo text, unsigned char character)
{
	static const char *const escapes[] = {
		['\b'] = "\\b",['\f'] = "\\f",['\n'] = "\\n",['\r'] = "\\r",['\t'] = "\\t",
		['"'] = "\\\"",['\\'] = "\\\\"
	};

	if (character < lengthof(escapes) && escapes[character] != NULL)
		appendStringInfoString(text, escapes[character]);
	else
		appendStringInfo(text, "\\u%04x", character);
}

/* reserve_bytes: room for so many bytes and the closing zero, mostly there already. */
static inline void
reserve_bytes(StringInfo text, uint32 length)
{
	if (unlikely((uint32) (text->maxlen - text->len) <= length))
		enlargeStringInfo(text, length);
}

/* put_bytes: where there is room for them. */
static inline void
put_bytes(StringInfo text, const char *bytes, uint32 length)
{
	memcpy(text->data + text->len, bytes, length);
	text->len += length;
}

/* append_escaped: a string with its quotes. */
static void
append_escaped(StringInfo text, const char *string, uint32 length)
{
	uint32		span;

	reserve_bytes(text, length + 2);
	text->data[text->len++] = '"';
	while ((span = mongo_json_span(string, length)) < length)
	{
		put_bytes(text, string, span);
		escape_character(text, (unsigned char) string[span]);
		string += span + 1;
		length -= span + 1;
		reserve_bytes(text, length + 1);
	}
	put_bytes(text, string, length);
	text->data[text->len++] = '"';
	text->data[text->len] = '\0';
}

static void
text_put(JsonSink *base, JsonItem item, const char *string, uint32 length, int64 integer)
{
	TextSink   *sink = (TextSink *) base;
	StringInfo	text = sink->text;
	char		digits[MAXINT8LEN + 1];

	if (item == JSON_END_OBJECT || item == JSON_END_ARRAY)
	{
		/* without a comma to come nothing is in it */
		if (sink->spaced && sink->need_comma)
			appendStringInfoCharMacro(text, ' ');
		appendStringInfoCharMacro(text, item == JSON_END_ARRAY ? ']' : '}');
		sink->need_comma = true;
		return;
	}
	text_separate(sink);
	switch (item)
	{
		case JSON_BEGIN_OBJECT:
		case JSON_BEGIN_ARRAY:
			appendStringInfoCharMacro(text, item == JSON_BEGIN_ARRAY ? '[' : '{');
			if (sink->spaced)
				appendStringInfoCharMacro(text, ' ');
			sink->need_comma = false;
			break;
		case JSON_KEY:
			append_escaped(text, string, length);
			appendStringInfoString(text, sink->spaced ? " : " : ":");
			sink->need_comma = false;
			break;
		case JSON_STRING:
			append_escaped(text, string, length);
			break;
		case JSON_INTEGER:
			appendBinaryStringInfo(text, digits, pg_lltoa(integer, digits));
			break;
		case JSON_NUMBER:
			appendBinaryStringInfo(text, string, length);
			break;
		case JSON_BOOLEAN:
			appendStringInfoString(text, integer ? "true" : "false");
			break;
		default:
			appendStringInfoString(text, "null");
			break;
	}
}

/*
 * The sink that builds a jsonb
 */

static void
jsonb_put(JsonSink *base, JsonItem item, const char *text, uint32 length, int64 integer)
{
	static const JsonbIteratorToken tokens[] = {
		[JSON_BEGIN_OBJECT] = WJB_BEGIN_OBJECT, [JSON_BEGIN_ARRAY] = WJB_BEGIN_ARRAY,
		[JSON_END_OBJECT] = WJB_END_OBJECT, [JSON_END_ARRAY] = WJB_END_ARRAY
	};
	JsonbSink  *sink = (JsonbSink *) base;
	JsonbValue	value;

	switch (item)
	{
		case JSON_BEGIN_OBJECT:
		case JSON_BEGIN_ARRAY:
		case JSON_END_OBJECT:
		case JSON_END_ARRAY:
			sink->result = pushJsonbValue(&sink->state, tokens[item], NULL);
			return;
		case JSON_KEY:
		case JSON_STRING:

			/*
			 * the characters may stay where they are: they are copied when
			 * the jsonb is put together at the end, before the document goes
			 */
			value.type = jbvString;
			value.val.string.val = unconstify(char *, mongo_text_to_server(text, &length));
			value.val.string.len = length;
			if (length > JENTRY_OFFLENMASK)
				ereport(ERROR,
						(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						 errmsg("string too long to represent as jsonb string")));
			break;
		case JSON_NUMBER:
			value.type = jbvNumeric;
			value.val.numeric =
				DatumGetNumeric(DirectFunctionCall3(numeric_in, CStringGetDatum(text),
													ObjectIdGetDatum(InvalidOid),
													Int32GetDatum(-1)));
			break;
		case JSON_INTEGER:
			value.type = jbvNumeric;
			value.val.numeric = int64_to_numeric(integer);
			break;
		case JSON_BOOLEAN:
			value.type = jbvBool;
			value.val.boolean = integer != 0;
			break;
		default:
			value.type = jbvNull;
			break;
	}
	/* a key, the whole value, an element or a member */
	if (item == JSON_KEY)
		sink->result = pushJsonbValue(&sink->state, WJB_KEY, &value);
	else if (sink->state == NULL)
		sink->scalar = value;
	else
		sink->result = pushJsonbValue(&sink->state,
									  sink->state->contVal.type == jbvArray ? WJB_ELEM : WJB_VALUE,
									  &value);
}

void
mongo_init_text_sink(TextSink *sink, bool spaced, MongoReadContext *context,
					 StringInfo text, int limit)
{
	sink->sink = (JsonSink) {.put = text_put};
	sink->sink.canonical = context->canonical_json;
	sink->sink.context = context;
	sink->text = text;
	sink->limit = limit;
	sink->spaced = spaced;
	sink->need_comma = false;
}

void
mongo_init_jsonb_sink(JsonbSink *sink, MongoReadContext *context)
{
	memset(sink, 0, sizeof(JsonbSink));
	sink->sink.put = jsonb_put;
	sink->sink.keeps_strings = true;
	sink->sink.canonical = context->canonical_json;
	sink->sink.context = context;
}

/*-------------------------------------------------------------------------
 * json, jsonb and text to BSON; Extended JSON wrappers become their types.
 *
 * Written while the JSON is gone through.  Only an object whose first key is
 * one of a wrapper's becomes a document of its own first.
 *-------------------------------------------------------------------------
 */

/* The most that a server's parameter maxBSONDepth can be. */
#define MAX_DEPTH	200

#define POSITION_SIZE	16		/* of an array's key */

/* A document or array that is being written. */
typedef struct BsonFrame BsonFrame;
struct BsonFrame
{
	bson_t		nested;
	bson_t	   *document;		/* &nested, but of the members' object */
	bool		array;
	uint32		position;		/* of an array's next element */
	bson_t	   *scratch;		/* what may be a wrapper, or NULL */
	bool		may_be_wrapper; /* its end shows whether it is one */
	bool		plain;			/* no wrapper has been in it */
	const char *key;			/* then: under which it is appended */
	uint32		key_length;
	BsonFrame  *parent;
	BsonFrame  *child;			/* for the next one in it, when there was one */
};

/* A sink that appends to a BSON document. */
typedef struct BsonSink
{
	JsonSink	sink;
	const MongoWriteTarget *target; /* of a whole value */
	bson_t	   *members;		/* or where the members of the one object go */
	BsonFrame  *frame;			/* innermost; NULL before the value */
	BsonFrame  *outermost;
	int			depth;
	const char *key;			/* of what comes next in an object */
	uint32		key_length;
	bool		undecided;		/* an object has begun, and its first key
								 * decides */
	char		position[POSITION_SIZE];
} BsonSink;

/* next_target: where the next value is appended. */
static MongoWriteTarget
next_target(BsonSink *sink)
{
	BsonFrame  *frame = sink->frame;
	MongoWriteTarget target = {.key = sink->key, .key_length = (int) sink->key_length};

	if (frame == NULL)
	{
		if (sink->target == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("a document has to be a JSON object")));
		return *sink->target;
	}
	target.document = frame->document;
	if (frame->array)
		target.key_length = (int) bson_uint32_to_string(frame->position++, &target.key,
														sink->position, sizeof(sink->position));
	return target;
}

/* push_frame: for what is in the innermost document or array from now on. */
static BsonFrame *
push_frame(BsonSink *sink, bool array)
{
	BsonFrame **place = sink->frame != NULL ? &sink->frame->child : &sink->outermost;
	BsonFrame  *frame = *place;

	if (frame == NULL)
	{
		frame = *place = bson_palloc(CurrentMemoryContext, sizeof(BsonFrame));
		frame->child = NULL;
		frame->scratch = NULL;
	}
	frame->document = &frame->nested;
	frame->may_be_wrapper = false;
	frame->plain = true;
	frame->array = array;
	frame->position = 0;
	frame->parent = sink->frame;
	sink->frame = frame;
	return frame;
}

static void
open_container(BsonSink *sink, bool array)
{
	MongoWriteTarget target = next_target(sink);
	BsonFrame  *frame = push_frame(sink, array);

	if (array)
		MONGO_WRITE(&target, array_begin, frame->document);
	else
		MONGO_WRITE(&target, document_begin, frame->document);
}

static void
close_container(BsonSink *sink)
{
	BsonFrame  *frame = sink->frame;
	bson_t	   *document;

	sink->frame = frame->parent;
	if (frame->parent != NULL)
		frame->parent->plain &= frame->plain;
	else if (sink->target == NULL)
		return;
	document = frame->parent != NULL ? frame->parent->document : sink->target->document;
	mongo_write_check(frame->array ?
					  bson_append_array_end(document, frame->document) :
					  bson_append_document_end(document, frame->document));
}

/* open_candidate: an object whose first key is one of a wrapper's. */
static void
open_candidate(BsonSink *sink)
{
	BsonFrame  *frame = push_frame(sink, false);

	if (frame->scratch == NULL)
		frame->scratch = bson_create_in(CurrentMemoryContext);
	else
		bson_reinit(frame->scratch);
	frame->document = frame->scratch;
	frame->may_be_wrapper = true;
	frame->key = sink->key;
	frame->key_length = sink->key_length;
}

/* close_candidate: it is one, or a document like any other. */
static void
close_candidate(BsonSink *sink)
{
	BsonFrame  *frame = sink->frame;
	MongoWriteTarget target;
	bool		plain = frame->plain;

	sink->frame = frame->parent;
	/* the keys in it have taken the place of its own */
	sink->key = frame->key;
	sink->key_length = frame->key_length;
	target = next_target(sink);
	if (mongo_write_wrapper(&target, frame->scratch, plain))
		plain = false;
	else
		MONGO_WRITE(&target, document, frame->scratch);
	if (frame->parent != NULL)
		frame->parent->plain &= plain;
}

/* begin_container: what kind of object it is its first key decides. */
static void
begin_container(BsonSink *sink, bool array)
{
	if (++sink->depth > MAX_DEPTH)
		ereport(ERROR,
				(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
				 errmsg("JSON is nested too deeply for MongoDB"),
				 errdetail("The limit is %d levels.", MAX_DEPTH)));
	if (sink->frame == NULL && sink->members != NULL && !array)
		push_frame(sink, false)->document = sink->members;
	else if (array)
		open_container(sink, true);
	else
		sink->undecided = true;
}

static void
bson_put(JsonSink *base, JsonItem item, const char *text, uint32 length, int64 integer)
{
	BsonSink   *sink = (BsonSink *) base;
	MongoWriteTarget target;

	if (item == JSON_BEGIN_OBJECT || item == JSON_BEGIN_ARRAY)
	{
		begin_container(sink, item == JSON_BEGIN_ARRAY);
		return;
	}
	if (sink->undecided)
	{
		sink->undecided = false;
		if (item == JSON_KEY && mongo_may_be_wrapper(text, length))
			open_candidate(sink);
		else
			open_container(sink, false);
	}
	if (item == JSON_KEY)
	{
		sink->key = text;
		sink->key_length = length;
		return;
	}
	if (item == JSON_END_OBJECT || item == JSON_END_ARRAY)
	{
		sink->depth--;
		if (sink->frame->may_be_wrapper)
			close_candidate(sink);
		else
			close_container(sink);
		return;
	}

	target = next_target(sink);
	switch (item)
	{
		case JSON_STRING:
			MONGO_WRITE(&target, utf8, text, (int) length);
			break;
		case JSON_NUMBER:
			mongo_write_json_number(&target, text);
			break;
		case JSON_INTEGER:
			mongo_write_json_integer(&target, integer);
			break;
		case JSON_BOOLEAN:
			MONGO_WRITE(&target, bool, integer != 0);
			break;
		default:
			MONGO_WRITE(&target, null);
			break;
	}
}

/* walk_into: with all that it needs on the way in a memory context of its own. */
static void
walk_into(BsonSink *sink, Datum value, Oid typid)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext,
												  "mongo_fdw json",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(scratch);

	mongo_walk_json(&sink->sink, value, typid);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(scratch);
}

void
mongo_write_json(MONGO_WRITE_ARGS)
{
	BsonSink	sink = {.sink = {.put = bson_put, .keeps_strings = true}, .target = target};

	walk_into(&sink, value, typid);
}

void
mongo_append_json_members(bson_t *document, Datum value, Oid typid)
{
	BsonSink	sink = {.sink = {.put = bson_put, .keeps_strings = true}, .members = document};

	walk_into(&sink, value, typid);
}
