/*-------------------------------------------------------------------------
 *
 * planning_state.c
 *		Where what planning remembers of a relation lives.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "planning_state.h"

#include "join.h"
#include "lifetime.h"
#include "relation.h"
#include "upper.h"

#include "utils/memutils.h"

MemoryContext
mongo_enter_planning(RelOptInfo *rel)
{
	return MemoryContextSwitchTo(GetMemoryChunkContext(rel));
}

#ifdef USE_ASSERT_CHECKING

static void
check_join(const MongoJoin *join, MemoryContext context)
{
	Assert(mongo_outlives(join, context));
	Assert(mongo_outlives(join->outer, context));
	Assert(mongo_outlives(join->inner, context));
	Assert(join->clauses == NIL || mongo_outlives(join->clauses, context));
	Assert(join->filters == NIL || mongo_outlives(join->filters, context));
	mongo_check_columns(join->columns, context);
}

static void
check_relation(const MongoRelation *relation, MemoryContext context)
{
	Assert(mongo_outlives(relation, context));
	Assert(mongo_outlives(relation->options, context));
	Assert(relation->known == NIL || mongo_outlives(relation->known, context));
	Assert(relation->without_nan == NIL || mongo_outlives(relation->without_nan, context));
	Assert(relation->restrictions == NIL || mongo_outlives(relation->restrictions, context));
	mongo_check_columns(relation->columns, context);
	if (relation->join != NULL)
		check_join(relation->join, context);
}

static void
check_upper(const MongoUpperRelation *upper, MemoryContext context)
{
	Assert(mongo_outlives(upper, context));
	Assert(mongo_outlives(upper->input, context));
	Assert(upper->outputs == NIL || mongo_outlives(upper->outputs, context));
	Assert(upper->local_quals == NIL || mongo_outlives(upper->local_quals, context));
	mongo_check_columns(upper->pipeline.translation.columns, context);
}

void
mongo_check_planning_state(RelOptInfo *rel)
{
	MemoryContext context = GetMemoryChunkContext(rel);

	if (rel->fdw_private == NULL)
		return;
	if (IS_UPPER_REL(rel))
		check_upper(rel->fdw_private, context);
	else
		check_relation(rel->fdw_private, context);
}
#endif

void
mongo_keep_planning_state(RelOptInfo *rel, void *state)
{
	rel->fdw_private = state;
	mongo_check_planning_state(rel);
}
