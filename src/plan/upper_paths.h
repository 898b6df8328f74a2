/*-------------------------------------------------------------------------
 *
 * upper_paths.h
 *		Paths of upper relations: grouping.c, upper_order.c and limit.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_UPPER_PATHS_H
#define MONGO_FDW_UPPER_PATHS_H

#include "compat.h"

#include "nodes/pathnodes.h"

/*
 * mongo_add_grouped_path
 *		Offer GROUP BY, HAVING and aggregates; UPPERREL_GROUP_AGG, and
 *		UPPERREL_PARTIAL_GROUP_AGG for states that PostgreSQL combines.
 *
 * Nothing is offered unless every key and every aggregate has an exact
 * translation.  Conditions of HAVING that have none are tested by PostgreSQL.
 */
extern void mongo_add_grouped_path(PlannerInfo *root, UpperRelationKind stage,
								   RelOptInfo *input_rel, RelOptInfo *grouped_rel,
								   GroupPathExtraData *extra);

/*
 * mongo_add_distinct_path
 *		Offer SELECT DISTINCT, which is a $group by everything.
 */
extern void mongo_add_distinct_path(PlannerInfo *root, RelOptInfo *input_rel,
									RelOptInfo *distinct_rel);

/*
 * mongo_add_ordered_path
 *		Offer the query's ORDER BY as a $sort.
 */
extern void mongo_add_ordered_path(PlannerInfo *root, RelOptInfo *input_rel,
								   RelOptInfo *ordered_rel);

/*
 * mongo_add_limited_path
 *		Offer a scan that stops by itself, with ORDER BY below it if there is one.
 *
 * Only where MongoDB tests every restriction exactly: a row that PostgreSQL
 * dropped would otherwise be missing at the end.
 */
extern void mongo_add_limited_path(PlannerInfo *root, RelOptInfo *input_rel,
								   RelOptInfo *output_rel,
								   FinalPathExtraData *final);

#endif							/* MONGO_FDW_UPPER_PATHS_H */
