/*-------------------------------------------------------------------------
 *
 * security.c
 *		Row-level security and security barriers: what may be tested early?
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "security.h"

#include "infallible.h"
#include "relation.h"

#include "optimizer/restrictinfo.h"

/* is_below_barrier: is a query around this one below a security barrier? */
static bool
is_below_barrier(const PlannerInfo *root)
{
	for (root = root->parent_root; root != NULL; root = root->parent_root)
	{
		ListCell   *cell;

		foreach(cell, root->parse->rtable)
		{
			const RangeTblEntry *entry = lfirst_node(RangeTblEntry, cell);

			if (entry->rtekind == RTE_SUBQUERY && entry->security_barrier)
				return true;
		}
	}
	return false;
}

void
mongo_note_barriers(PlannerInfo *root, RelOptInfo *baserel)
{
	MongoRelation *relation = baserel->fdw_private;

	relation->below_barrier = is_below_barrier(root);
	relation->has_barrier = relation->below_barrier ||
		baserel->baserestrict_min_security < root->qual_security_level;
	relation->query_level = root->qual_security_level;
}

bool
mongo_hides_rows(RelOptInfo *baserel, const RestrictInfo *rinfo)
{
	const MongoRelation *relation = baserel->fdw_private;

	return relation->has_barrier &&
		(relation->below_barrier || rinfo->security_level < relation->query_level) &&
		bms_is_subset(rinfo->clause_relids, baserel->relids);
}

bool
mongo_is_securely_promotable(RelOptInfo *baserel, RestrictInfo *rinfo,
							 const bson_t *match)
{
	const MongoRelation *relation = baserel->fdw_private;

	return !relation->has_barrier ||
		(restriction_is_securely_promotable(rinfo, baserel) && mongo_cannot_fail(match));
}

bool
mongo_join_is_secure(PlannerInfo *root, RelOptInfo *joinrel, List *clauses,
					 const bson_t *stages)
{
	bool		has_barrier = false;
	int			relid = -1;

	while ((relid = bms_next_member(joinrel->relids, relid)) >= 0)
	{
		RelOptInfo *baserel = root->simple_rel_array[relid];
		ListCell   *cell;

		/* an outer join's number stands for no table */
		if (baserel == NULL || !((MongoRelation *) baserel->fdw_private)->has_barrier)
			continue;
		has_barrier = true;
		foreach(cell, clauses)
		{
			if (!restriction_is_securely_promotable(lfirst_node(RestrictInfo, cell), baserel))
				return false;
		}
	}
	return !has_barrier || mongo_cannot_fail(stages);
}
