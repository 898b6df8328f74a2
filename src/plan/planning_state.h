/*-------------------------------------------------------------------------
 *
 * planning_state.h
 *		Where what planning remembers of a relation lives.
 *
 * PostgreSQL may call the planner's callbacks in a memory context that is deleted
 * before the relations that they were called for.  From geqo_threshold tables on,
 * each join order that is tried is planned in a context of its own (geqo_eval()
 * in geqo_eval.c): the join relations die with it, the tables below them are
 * those of all orders.  So
 *
 * - what hangs on a RelOptInfo is allocated in the RelOptInfo's own context, as
 *	 PostgreSQL's mark_dummy_rel() and create_unique_path() do it.  The context of
 *	 the whole planning (root->planner_cxt) would do as well, but would keep what
 *	 hangs on join relations that are long gone;
 * - it points to what lives as long or longer: a join's state to that of its
 *	 tables, never a table's to a join's;
 * - what is remembered of a table is true of it in every join order.
 *
 * A callback that makes such state runs in that context from its beginning
 * (mongo_enter_planning) and hangs it on the relation by
 * mongo_keep_planning_state().  What is looked up later about a table has its
 * own way into the table's context: see MongoColumns.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLANNING_STATE_H
#define MONGO_FDW_PLANNING_STATE_H

#include "compat.h"

#include "nodes/pathnodes.h"
#include "utils/palloc.h"

/*
 * mongo_enter_planning
 *		Switch to the memory context that 'rel' lives in; gives the one before.
 */
extern MemoryContext mongo_enter_planning(RelOptInfo *rel);

/*
 * mongo_keep_planning_state
 *		Hang 'state' on 'rel' as its fdw_private: a MongoRelation on a table or a
 *		join, a MongoUpperRelation on an upper relation.
 *
 * What hung there before stays allocated, as other relations may point to it.
 * Asserts that the state lives as long as 'rel'.
 */
extern void mongo_keep_planning_state(RelOptInfo *rel, void *state);

/*
 * mongo_check_planning_state
 *		Assert that what hangs on 'rel', and what has been looked up since, lives
 *		as long as 'rel'.  Called wherever it is about to be used by a callback.
 */
#ifdef USE_ASSERT_CHECKING
extern void mongo_check_planning_state(RelOptInfo *rel);
#else
#define mongo_check_planning_state(rel) ((void) (rel))
#endif

#endif							/* MONGO_FDW_PLANNING_STATE_H */
