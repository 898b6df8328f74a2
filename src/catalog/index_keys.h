/*-------------------------------------------------------------------------
 *
 * index_keys.h
 *		The indexes of a collection, asked for; for src/catalog only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_INDEX_KEYS_H
#define MONGO_FDW_INDEX_KEYS_H

#include "bson_write.h"
#include "foreign/foreign.h"
#include "statistics.h"

/* What MongoDB answers when it is asked for a collection's indexes. */
typedef enum IndexAnswer
{
	INDEXES_LISTED,
	INDEXES_OF_A_VIEW,			/* there are none */
	INDEXES_OF_NOTHING,			/* there is no such collection */
	INDEXES_REFUSED				/* not allowed to know, or another error */
} IndexAnswer;

/*
 * index_key_kind_from_name
 *		Of a word of "kind" in mongo_fdw_statistics; "other" for what we do not know.
 */
extern MongoKeyKind index_key_kind_from_name(const char *name);

/*
 * index_uses
 *		What can this index find documents for, whatever else a query asks: a set
 *		of MONGO_INDEX_*.  All of *index but 'uses' must be filled in.
 */
extern int	index_uses(const MongoIndex *index);

/*
 * index_list
 *		Ask for a collection's indexes, as listIndexes describes them: documents in
 *		an array, in the current memory context.
 *
 * Names are in the database encoding.  Outside any transaction of MongoDB's.
 * *refusal is MongoDB's message with INDEXES_REFUSED, else NULL.  Raises only what
 * the connection does: 08001, 08006, 08P01, 57014.
 */
extern IndexAnswer index_list(UserMapping *user, const char *database,
							  const char *collection, BsonArray *indexes,
							  const char **refusal);

/*
 * index_next
 *		View the next index of such a list, which 'iter' was initialized with.
 */
extern bool index_next(bson_iter_t *iter, bson_t *listed);

/*
 * index_parse
 *		One of these, as planning knows it; false for what is no index.
 *
 * Strings belong to 'listed', which does not say whether the index is multikey.
 */
extern bool index_parse(const bson_t *listed, MongoIndex *index);

/*
 * index_describe
 *		The same indexes as elements of "indexes" in mongo_fdw_statistics.
 *
 * Asks MongoDB by explain whether each is multikey; where it will not say, that is
 * left out.  An index with a name or a path that the database's encoding lacks is
 * left out as a whole, as no column could have such a path.  Raises as
 * index_list() does.
 */
extern BsonArray index_describe(UserMapping *user, const char *database,
								const char *collection, const BsonArray *indexes);

#endif							/* MONGO_FDW_INDEX_KEYS_H */
