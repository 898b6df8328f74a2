/*-------------------------------------------------------------------------
 *
 * plan_upper.h
 *		What is done above a scan in the same command.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLAN_UPPER_H
#define MONGO_FDW_PLAN_UPPER_H

#include "compat.h"

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* What is above a scan in one foreign scan: fdw_private of an upper relation. */
typedef struct MongoUpperRelation
{
	UpperRelationKind stage;
	RelOptInfo *baserel;		/* the foreign table's scan below */
	List	   *aggregates;		/* Aggref *, of UPPERREL_GROUP_AGG */
} MongoUpperRelation;

/*
 * mongo_add_aggregate_path
 *		Offer to compute the query's aggregates in MongoDB, when each of them
 *		has an exact translation and every restriction is exact as well.
 */
extern void mongo_add_aggregate_path(PlannerInfo *root, RelOptInfo *baserel,
									 RelOptInfo *grouped_rel);

/*
 * mongo_get_aggregate_plan
 *		The ForeignScan of such a path.
 */
extern ForeignScan *mongo_get_aggregate_plan(PlannerInfo *root,
											 RelOptInfo *grouped_rel,
											 List *tlist, Plan *outer_plan);

/*
 * mongo_add_limited_path
 *		Offer a scan that stops by itself, with ORDER BY below it if there is one.
 *
 * Only when every restriction is exact on the other side: a row that is
 * dropped here would otherwise be missing at the end.
 */
extern void mongo_add_limited_path(PlannerInfo *root, RelOptInfo *baserel,
								   RelOptInfo *output_rel,
								   FinalPathExtraData *final);

#endif							/* MONGO_FDW_PLAN_UPPER_H */
