/*-------------------------------------------------------------------------
 *
 * json_read.h
 *		BSON as json, jsonb and text: Extended JSON v2.
 *
 * https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_READ_H
#define MONGO_FDW_JSON_READ_H

#include "mismatch.h"
#include "types.h"

#include "lib/stringinfo.h"

/*
 * mongo_json_append_value
 *		Append the Extended JSON of the value at 'iter' to 'text', in UTF-8.
 *
 * With a 'limit' other than 0 it may end anywhere after so many bytes: enough
 * to show how a value begins, however deep or large it is.  Returns false,
 * noting a type mismatch in 'context', for strings that no text can hold; 'text' then
 * ends somewhere in the middle.  Raises as mongo_document_to_datum() does.
 */
extern bool mongo_json_append_value(MongoReadContext *context,
									const bson_iter_t *iter, StringInfo text,
									int limit);

/*
 * mongo_json_show_value, mongo_json_show_document
 *		Relaxed Extended JSON with blanks, as { "a" : [ 1, 2 ] }, for people to read:
 *		palloc'd, in the database's encoding.
 *
 * Of a value at most 'limit' bytes, with "..." where something was cut off; NULL for
 * strings that no text can hold.  A document is written whole; raises HV000 for such
 * strings.  Both raise as mongo_document_to_datum() does.
 */
extern char *mongo_json_show_value(const bson_iter_t *iter, int limit);
extern char *mongo_json_show_document(const bson_t *document);

/*
 * mongo_document_to_datum
 *		A whole document as json, jsonb or text (typid says which).
 *
 * varchar counts as text; the Datum is palloc'd.  Returns false, noting a type mismatch
 * in 'context', when a string in it fits no text.  Raises 08P01 for bytes that are
 * not BSON, 54001 for nesting beyond the stack's depth.
 */
extern bool mongo_document_to_datum(MongoReadContext *context,
									const uint8_t *data, uint32 length,
									Oid typid, Datum *value);

/* Read functions, see reader.h. */
extern MongoReadFunction mongo_read_json;
extern MongoReadFunction mongo_read_jsonb;

#endif							/* MONGO_FDW_JSON_READ_H */
