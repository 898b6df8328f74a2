/*-------------------------------------------------------------------------
 *
 * derived.h
 *		Derived tables: foreign tables whose rows are not the documents of their
 *		collection, but what stages of a pipeline make of these.
 *
 * First come the stages of the option pipeline, then, for each path of the option
 * unwind, those that make a row of each element.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DERIVED_H
#define MONGO_FDW_DERIVED_H

#include "compat.h"

#include "bson_write.h"
#include "options.h"

/* The option that makes the rows of such a table; NULL: they are documents. */
static inline const char *
mongo_deriving_option(const MongoTableOptions *options)
{
	return options->unwind != NULL ? "unwind" :
		options->pipeline != NULL ? "pipeline" : NULL;
}

static inline bool
mongo_is_derived(const MongoTableOptions *options)
{
	return mongo_deriving_option(options) != NULL;
}

/* What becomes of a document that has no array where one is unwound. */
typedef enum MongoNoArray
{
	MONGO_NO_ARRAY_RAISES,		/* an error of MongoDB's, as of MONGO_MISMATCH */
	MONGO_NO_ARRAY_IS_NULL,		/* it is read as NULL */
	MONGO_NO_ARRAY_IS_LEFT_OUT
} MongoNoArray;

/*
 * mongo_unwound_paths, mongo_ordinality_fields
 *		The parts of the options, in UTF-8, as char *.
 */
extern List *mongo_unwound_paths(const MongoTableOptions *options);
extern List *mongo_ordinality_fields(const MongoTableOptions *options);

/*
 * mongo_check_javascript
 *		Raise 42501 if the array or document, a user's own, has operators that run
 *		JavaScript and the server's option allow_javascript does not allow that.
 *		'what' begins the message.
 */
extern void mongo_check_javascript(const MongoTableOptions *options,
								   const bson_iter_t *value, const char *what);

/*
 * mongo_append_pipeline
 *		Append the stages of the option pipeline; none without it.
 *
 * They are the user's own, so nothing in them may be taken for a placeholder of
 * command_template.h.  Raises 42501 for JavaScript that the server's option
 * allow_javascript does not allow.
 */
extern void mongo_append_pipeline(BsonArray *stages, const MongoTableOptions *options);

/*
 * mongo_append_unwind
 *		Append what makes a row of each element, for the path with this number.
 *
 * Missing fields, nulls and empty arrays have no row, or one with unwind_empty.
 */
extern void mongo_append_unwind(BsonArray *stages, const MongoTableOptions *options,
								int number, MongoNoArray no_array);

/*
 * mongo_append_ordinality
 *		Append, behind all of those, what makes the elements' numbers begin with 1.
 */
extern void mongo_append_ordinality(BsonArray *stages, const MongoTableOptions *options);

/*
 * mongo_append_deriving_stages
 *		All of that, for those who look at the rows of all documents: what is no
 *		array is NULL.
 */
extern void mongo_append_deriving_stages(BsonArray *stages, const MongoTableOptions *options);

#endif							/* MONGO_FDW_DERIVED_H */
