/*-------------------------------------------------------------------------
 *
 * security.h
 *		Row-level security and security barriers: what may be tested early?
 *
 * A condition of the query must not see rows that a policy, or the conditions of
 * a view that is a security barrier, keep from it, if it can tell of them: by
 * an error, or by anything else that is seen.  MongoDB tests the conditions of a
 * command in an order of its own, so all that goes along is tested early, as an
 * index's conditions are in PostgreSQL.
 *
 * PostgreSQL's rule for those holds: what goes along is leakproof, or of no
 * higher security level than any condition on the same table ("Security-level
 * constraints on qual clauses" in src/backend/optimizer/README).  And MongoDB
 * must not fail where PostgreSQL's leakproof functions do not.
 *
 * Nor may a document be told of that cannot be read, if a restriction would hide it
 * or cannot say.  What MongoDB tests goes with guards (guards.h) that do not
 * match such documents; what PostgreSQL tests: see hidden.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SECURITY_H
#define MONGO_FDW_SECURITY_H

#include "compat.h"

#include "nodes/pathnodes.h"

/*
 * mongo_note_barriers
 *		Fill in 'below_barrier' and 'has_barrier' of the foreign table's
 *		MongoRelation, which hangs on 'baserel'.
 *
 * Below a view that is a security barrier, conditions may have come down from
 * above it, unmarked; PostgreSQL lets only leakproof ones come.
 */
extern void mongo_note_barriers(PlannerInfo *root, RelOptInfo *baserel);

/*
 * mongo_hides_rows
 *		Does this restriction of the foreign table hide rows from conditions of the
 *		query, or of one above it?
 */
extern bool mongo_hides_rows(RelOptInfo *baserel, const RestrictInfo *rinfo);

/*
 * mongo_is_securely_promotable
 *		May MongoDB test this restriction of a foreign table, which 'match' is the
 *		translation of, on rows that other conditions hide?
 *
 * restriction_is_securely_promotable() with MongoDB's errors in mind, also of what
 * hides rows itself: documents that do not fit are hidden as well.
 */
extern bool mongo_is_securely_promotable(RelOptInfo *baserel, RestrictInfo *rinfo,
										 const bson_t *match);

/*
 * mongo_join_is_secure
 *		Likewise, of the clauses of a join, which 'stages' test beside the
 *		restrictions of its tables.
 */
extern bool mongo_join_is_secure(PlannerInfo *root, RelOptInfo *joinrel,
								 List *clauses, const bson_t *stages);

#endif							/* MONGO_FDW_SECURITY_H */
