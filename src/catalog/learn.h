/*-------------------------------------------------------------------------
 *
 * learn.h
 *		What ANALYZE keeps beside PostgreSQL's own statistics; for src/catalog
 *		only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_LEARN_H
#define MONGO_FDW_LEARN_H

#include "compat.h"

#include "field_types.h"
#include "foreign/foreign.h"
#include "options.h"
#include "utils/relcache.h"

/* What ANALYZE has found itself. */
typedef struct MongoFindings
{
	double		documents;		/* in the collection */
	double		document_size;	/* average, in bytes */
	double		sampled;		/* documents that 'types' has seen */
	const FieldTypes *types;
} MongoFindings;

/*
 * mongo_learns
 *		Is this table being analyzed for itself?
 *
 * Its share in the sample of a parent is not learned from, as PostgreSQL has no
 * statistics of the table from it either.
 */
extern bool mongo_learns(Relation relation);

/*
 * mongo_learn
 *		Ask for the collection's indexes, and keep them with the findings.
 *
 * Says NOTICE for a collection that does not exist, or whose indexes MongoDB does
 * not tell.  What was known before stays where this raises, or where the
 * transaction is rolled back.  Raises as index_list() in index_keys.h does.
 */
extern void mongo_learn(Relation relation, UserMapping *user,
						const MongoTableOptions *options,
						const MongoFindings *findings);

#endif							/* MONGO_FDW_LEARN_H */
