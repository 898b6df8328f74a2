/*-------------------------------------------------------------------------
 *
 * join_key.h
 *		The equality by which $lookup finds documents through an index.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_JOIN_KEY_H
#define MONGO_FDW_JOIN_KEY_H

#include "compat.h"

#include "nodes/pathnodes.h"

#include "columns.h"

typedef struct MongoJoinKey
{
	RestrictInfo *rinfo;
	MongoField	outer;
	MongoField	inner;
	bool		is_text;		/* Strings and ObjectIds may be equal in
								 * PostgreSQL */
	bool		unique;			/* finds one document at most */
	bool		needs_restrictions; /* the index has fields before the key
									 * that these set equal to values */
	bool		fits;			/* what it finds surely fits into an array */
} MongoJoinKey;

/*
 * mongo_find_join_key
 *		Among RestrictInfos, the equality that is best to find documents of
 *		'inner' by; false when no index serves any.
 *
 * 'outer' are the columns of the other side.
 */
extern bool mongo_find_join_key(PlannerInfo *root, MongoColumns *outer, RelOptInfo *inner,
								List *clauses, MongoJoinKey *key);

#endif							/* MONGO_FDW_JOIN_KEY_H */
