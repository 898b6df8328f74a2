/*-------------------------------------------------------------------------
 *
 * json_sink.h
 *		Where JSON goes while it is made from BSON: into a text or a jsonb.
 *
 * Between json_read.c and json_sink.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_SINK_H
#define MONGO_FDW_JSON_SINK_H

#include "mismatch.h"

#include "lib/stringinfo.h"
#include "utils/jsonb.h"

/* Where JSON goes.  Strings are valid UTF-8 without U+0000. */
typedef struct JsonSink JsonSink;
struct JsonSink
{
	void		(*begin) (JsonSink *sink, bool array);
	void		(*end) (JsonSink *sink, bool array);
	void		(*key) (JsonSink *sink, const char *key, uint32 length);
	void		(*string) (JsonSink *sink, const char *text, uint32 length);
	void		(*number) (JsonSink *sink, const char *text);
	void		(*integer) (JsonSink *sink, int64 number);
	void		(*boolean) (JsonSink *sink, bool truth);
	void		(*null) (JsonSink *sink);

	bool		keeps_strings;	/* must a string outlive the call? */
	bool		full;			/* is the rest of no interest? */
	bool		canonical;
	MongoReadContext *context;	/* takes type mismatches */
};

/* A sink that writes JSON, in UTF-8. */
typedef struct TextSink
{
	JsonSink	sink;
	StringInfo	text;
	int			limit;			/* full beyond so many bytes; 0: never */
	bool		spaced;			/* with blanks, for people: { "a" : [ 1, 2 ] } */
	bool		need_comma;
} TextSink;

/* A sink that builds a jsonb; 'result' is NULL when the value is a scalar. */
typedef struct JsonbSink
{
	JsonSink	sink;
	JsonbParseState *state;
	JsonbValue *result;			/* of the outermost container */
	JsonbValue	scalar;			/* the whole value, when it is a scalar */
} JsonbSink;

/*
 * mongo_init_text_sink, mongo_init_jsonb_sink
 *		Make a sink ready for one value, which lives on the caller's stack.
 *
 * Strings that a jsonb sink got must stay where they are until the jsonb is
 * put together from ->result or ->scalar.
 */
extern void mongo_init_text_sink(TextSink *sink, bool spaced, MongoReadContext *context,
								 StringInfo text, int limit);
extern void mongo_init_jsonb_sink(JsonbSink *sink, MongoReadContext *context);

#endif							/* MONGO_FDW_JSON_SINK_H */
