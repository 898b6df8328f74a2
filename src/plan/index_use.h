/*-------------------------------------------------------------------------
 *
 * index_use.h
 *		Which of the indexes that are known find a table's documents, and in
 *		which order they give them.
 *
 * Of a compound index, equality on its first fields and a range on the next one
 * serve.  MongoDB chooses its plans itself, so that all this only decides what a
 * scan is thought to cost.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_INDEX_USE_H
#define MONGO_FDW_INDEX_USE_H

#include "compat.h"

#include "nodes/pathnodes.h"

#include "condition.h"
#include "relation.h"

/* A condition that MongoDB tests and that is sought by one field, or indexed. */
typedef struct MongoSought
{
	RestrictInfo *rinfo;
	MongoSeek	seek;
	const char *path;			/* see MongoCondition */
	bool		indexed;
} MongoSought;

/*
 * mongo_note_sought
 *		The list 'sought' of MongoSought * with this condition appended, if an index
 *		may be of use for it; in the current memory context.
 */
extern List *mongo_note_sought(List *sought, RestrictInfo *rinfo,
							   const MongoCondition *condition);

/*
 * mongo_examined_rows
 *		How many documents MongoDB looks at to find those of all these conditions, by
 *		the index that serves best: baserel->tuples where none does.
 */
extern double mongo_examined_rows(PlannerInfo *root, RelOptInfo *baserel, List *sought);

/*
 * mongo_index_finds
 *		Can one index find the documents of these conditions (MongoCondition *, of
 *		different fields), if not by itself then with equality in the table's
 *		restrictions on the fields before theirs?
 *
 * *share is what these and others that the index tests leave of the documents, and
 * *unique whether at most one is found for a value of each.  Neither is of any account
 * where the result is false.
 */
extern bool mongo_index_finds(PlannerInfo *root, RelOptInfo *baserel, List *conditions,
							  double *share, bool *unique);

/* A key of a wanted order. */
typedef struct MongoOrderKey
{
	const char *path;			/* UTF-8 */
	bool		ascending;
	bool		indexed;		/* an index on it alone gives an order,
								 * whatever has been learned */
} MongoOrderKey;

/*
 * mongo_index_gives_order
 *		Does an index give the documents that the table's restrictions leave in this
 *		order, forwards or backwards?
 *
 * Fields that a restriction sets equal to a value may stand anywhere in the index.
 * *examined_rows is how many documents it looks at for that.  There is at least one
 * key.
 */
extern bool mongo_index_gives_order(PlannerInfo *root, RelOptInfo *baserel,
									const MongoOrderKey *keys, int nkeys,
									double *examined_rows);

/*
 * mongo_index_walks
 *		Has an index the values of this field in order, and tests all of the table's
 *		restrictions?
 */
extern bool mongo_index_walks(const RelOptInfo *baserel, const char *path);

#endif							/* MONGO_FDW_INDEX_USE_H */
