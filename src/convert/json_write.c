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
text_begin(JsonSink *base, bool array)
{
	TextSink   *sink = (TextSink *) base;

	text_separate(sink);
	appendStringInfoCharMacro(sink->text, array ? '[' : '{');
	if (sink->spaced)
		appendStringInfoCharMacro(sink->text, ' ');
	sink->need_comma = false;
}

static void
text_end(JsonSink *base, bool array)
{
	TextSink   *sink = (TextSink *) base;

	/* without a comma to come nothing is in it */
	if (sink->spaced && sink->need_comma)
		appendStringInfoCharMacro(sink->text, ' ');
	appendStringInfoCharMacro(sink->text, array ? ']' : '}');
	sink->need_comma = true;
}

static void
text_key(JsonSink *base, const char *key, uint32 length)
{
	TextSink   *sink = (TextSink *) base;

	text_separate(sink);
	append_escaped(sink->text, key, length);
	appendStringInfoString(sink->text, sink->spaced ? " : " : ":");
	sink->need_comma = false;
}

static void
text_string(JsonSink *base, const char *text, uint32 length)
{
	TextSink   *sink = (TextSink *) base;

	text_separate(sink);
	append_escaped(sink->text, text, length);
}

static void
text_token(TextSink *sink, const char *token, int length)
{
	text_separate(sink);
	appendBinaryStringInfo(sink->text, token, length);
}

static void
text_number(JsonSink *base, const char *number)
{
	text_token((TextSink *) base, number, strlen(number));
}

static void
text_integer(JsonSink *base, int64 number)
{
	char		text[MAXINT8LEN + 1];

	text_token((TextSink *) base, text, pg_lltoa(number, text));
}

static void
text_boolean(JsonSink *base, bool truth)
{
	TextSink   *sink = (TextSink *) base;

	if (truth)
		text_token(sink, "true", 4);
	else
		text_token(sink, "false", 5);
}

static void
text_null(JsonSink *base)
{
	text_token((TextSink *) base, "null", 4);
}

static const JsonSink text_sink = {
	text_begin, text_end, text_key, text_string, text_number, text_integer,
	text_boolean, text_null, .keeps_strings = false
};

/*
 * The sink that builds a jsonb
 */

/* jsonb_push: a scalar, as a member, an element or the whole value. */
static void
jsonb_push(JsonbSink *sink, JsonbValue *value)
{
	if (sink->state == NULL)
		sink->scalar = *value;
	else
		sink->result = pushJsonbValue(&sink->state,
									  sink->state->contVal.type == jbvArray ? WJB_ELEM : WJB_VALUE,
									  value);
}

static void
jsonb_begin(JsonSink *base, bool array)
{
	JsonbSink  *sink = (JsonbSink *) base;

	sink->result = pushJsonbValue(&sink->state,
								  array ? WJB_BEGIN_ARRAY : WJB_BEGIN_OBJECT, NULL);
}

static void
jsonb_end(JsonSink *base, bool array)
{
	JsonbSink  *sink = (JsonbSink *) base;

	sink->result = pushJsonbValue(&sink->state,
								  array ? WJB_END_ARRAY : WJB_END_OBJECT, NULL);
}

/*
 * jsonb_set_string: a string or key in the database's encoding.
 *
 * The characters may stay where they are: they are copied when the jsonb is
 * put together at the end, before the document goes.
 */
static void
jsonb_set_string(JsonbValue *value, const char *text, uint32 length)
{
	value->type = jbvString;
	value->val.string.val = unconstify(char *, mongo_text_to_server(text, &length));
	value->val.string.len = length;
	if (length > JENTRY_OFFLENMASK)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("string too long to represent as jsonb string")));
}

static void
jsonb_key(JsonSink *base, const char *key, uint32 length)
{
	JsonbSink  *sink = (JsonbSink *) base;
	JsonbValue	value;

	jsonb_set_string(&value, key, length);
	sink->result = pushJsonbValue(&sink->state, WJB_KEY, &value);
}

static void
jsonb_string(JsonSink *base, const char *text, uint32 length)
{
	JsonbValue	value;

	jsonb_set_string(&value, text, length);
	jsonb_push((JsonbSink *) base, &value);
}

static void
jsonb_number(JsonSink *base, const char *text)
{
	JsonbValue	value;

	value.type = jbvNumeric;
	value.val.numeric =
		DatumGetNumeric(DirectFunctionCall3(numeric_in, CStringGetDatum(text),
											ObjectIdGetDatum(InvalidOid),
											Int32GetDatum(-1)));
	jsonb_push((JsonbSink *) base, &value);
}

static void
jsonb_integer(JsonSink *base, int64 number)
{
	JsonbValue	value;

	value.type = jbvNumeric;
	value.val.numeric = int64_to_numeric(number);
	jsonb_push((JsonbSink *) base, &value);
}

static void
jsonb_boolean(JsonSink *base, bool truth)
{
	JsonbValue	value;

	value.type = jbvBool;
	value.val.boolean = truth;
	jsonb_push((JsonbSink *) base, &value);
}

static void
jsonb_null(JsonSink *base)
{
	JsonbValue	value;

	value.type = jbvNull;
	jsonb_push((JsonbSink *) base, &value);
}

static const JsonSink jsonb_sink = {
	jsonb_begin, jsonb_end, jsonb_key, jsonb_string, jsonb_number,
	jsonb_integer, jsonb_boolean, jsonb_null, .keeps_strings = true
};

void
mongo_init_text_sink(TextSink *sink, bool spaced, MongoReadContext *context,
					 StringInfo text, int limit)
{
	sink->sink = text_sink;
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
	sink->sink = jsonb_sink;
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

static void
sink_begin(JsonSink *base, bool array)
{
	BsonSink   *sink = (BsonSink *) base;

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
sink_end(JsonSink *base, bool array pg_attribute_unused())
{
	BsonSink   *sink = (BsonSink *) base;

	sink->depth--;
	if (sink->undecided)
	{
		sink->undecided = false;
		open_container(sink, false);
	}
	if (sink->frame->may_be_wrapper)
		close_candidate(sink);
	else
		close_container(sink);
}

static void
sink_key(JsonSink *base, const char *key, uint32 length)
{
	BsonSink   *sink = (BsonSink *) base;

	if (sink->undecided)
	{
		sink->undecided = false;
		if (mongo_may_be_wrapper(key, length))
			open_candidate(sink);
		else
			open_container(sink, false);
	}
	sink->key = key;
	sink->key_length = length;
}

static void
sink_string(JsonSink *base, const char *text, uint32 length)
{
	BsonSink   *sink = (BsonSink *) base;
	MongoWriteTarget target = next_target(sink);

	MONGO_WRITE(&target, utf8, text, (int) length);
}

static void
sink_number(JsonSink *base, const char *text)
{
	BsonSink   *sink = (BsonSink *) base;
	MongoWriteTarget target = next_target(sink);

	mongo_write_json_number(&target, text);
}

static void
sink_integer(JsonSink *base, int64 number)
{
	BsonSink   *sink = (BsonSink *) base;
	MongoWriteTarget target = next_target(sink);

	mongo_write_json_integer(&target, number);
}

static void
sink_boolean(JsonSink *base, bool truth)
{
	BsonSink   *sink = (BsonSink *) base;
	MongoWriteTarget target = next_target(sink);

	MONGO_WRITE(&target, bool, truth);
}

static void
sink_null(JsonSink *base)
{
	BsonSink   *sink = (BsonSink *) base;
	MongoWriteTarget target = next_target(sink);

	MONGO_WRITE(&target, null);
}

static const JsonSink bson_sink = {
	sink_begin, sink_end, sink_key, sink_string, sink_number, sink_integer,
	sink_boolean, sink_null, .keeps_strings = true
};

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
	BsonSink	sink = {.sink = bson_sink, .target = target};

	walk_into(&sink, value, typid);
}

void
mongo_append_json_members(bson_t *document, Datum value, Oid typid)
{
	BsonSink	sink = {.sink = bson_sink, .members = document};

	walk_into(&sink, value, typid);
}
