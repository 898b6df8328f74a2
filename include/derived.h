/*-------------------------------------------------------------------------
 *
 * derived.h
 *		Derived tables: foreign tables whose rows are not the documents of their
 *		collection, but what stages of a pipeline make of these.
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
	return options->pipeline != NULL ? "pipeline" : NULL;
}

static inline bool
mongo_is_derived(const MongoTableOptions *options)
{
	return mongo_deriving_option(options) != NULL;
}

/*
 * mongo_append_deriving_stages
 *		Append the stages that make the table's rows; none for other tables.
 *
 * They are the user's own, so nothing in them may be taken for a placeholder of
 * command_template.h.  Raises 42501 for JavaScript that the server's option
 * allow_javascript does not allow.
 */
extern void mongo_append_deriving_stages(BsonArray *stages, const MongoTableOptions *options);

#endif							/* MONGO_FDW_DERIVED_H */
