/*-------------------------------------------------------------------------
 *
 * json_walk.h
 *		Going through a json, jsonb or text, into a sink.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JSON_WALK_H
#define MONGO_FDW_JSON_WALK_H

#include "json_sink.h"

/*
 * mongo_walk_json
 *		Give a value to the sink, in one pass.
 *
 * Strings and keys become UTF-8; they stay where they are as long as 'value' and the
 * current memory context do.  Numbers are as they were written, those of a jsonb as
 * numeric_out() has them; integers of up to 18 digits come as such.
 *
 * Raises what PostgreSQL says of a text that is not JSON (22P02), of \u0000 and of an
 * escape that its encoding has no character for (22P05), and what the sink raises.
 */
extern void mongo_walk_json(JsonSink *sink, Datum value, Oid typid);

#endif							/* MONGO_FDW_JSON_WALK_H */
