/*-------------------------------------------------------------------------
 *
 * find_and_modify.h
 *		Change or delete one document and have it, in one command.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_FIND_AND_MODIFY_H
#define MONGO_FDW_FIND_AND_MODIFY_H

#include "compat.h"

#include "transaction.h"

/* What to do; see MongoDB's findAndModify. */
typedef struct MongoFindAndModify
{
	const char *database;
	const char *collection;		/* in the database's encoding, as is the
								 * former */
	const bson_t *filter;
	const bson_t *update;		/* operators, a pipeline {"0": stage}, or
								 * NULL: delete */
	const bson_t *fields;		/* projection; NULL: all */
	const char *comment;		/* a table's own; NULL: the server's */
	bool		simple_collation;
	bool		upsert;			/* insert what 'update' makes, if none is
								 * found */
} MongoFindAndModify;

/*
 * mongo_find_and_modify
 *		The document after its update, or as it was before it was deleted; false
 *		when the filter matched none and none was inserted.
 *
 * *document is a view that lives as long as 'context'.  Raises and retries as
 * mongo_write_batch_send() does.
 */
extern bool mongo_find_and_modify(MongoSession *session, MemoryContext context,
								  const MongoFindAndModify *command,
								  const char *context_message, bson_t *document);

#endif							/* MONGO_FDW_FIND_AND_MODIFY_H */
