/*-------------------------------------------------------------------------
 *
 * upper.h
 *		What is done above a scan or a join in the same command: GROUP BY,
 *		DISTINCT, ORDER BY, LIMIT.
 *
 * Each upper relation of PostgreSQL that MongoDB can compute has a
 * MongoUpperRelation, which is made from the one below by adding stages.
 * Everything in it lives in the upper relation's memory context, or in those of
 * the relations below it; see planning_state.h.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_UPPER_H
#define MONGO_FDW_UPPER_H

#include "compat.h"

#include "nodes/pathnodes.h"

#include "pipeline.h"
#include "plan_nodes.h"

/* A field of the documents at the end of a pipeline, and what it is read as. */
typedef struct MongoOutputField
{
	const char *path;
	Oid			type;
	int32		typmod;
} MongoOutputField;

/* A value that the foreign scan gives: an entry of its fdw_scan_tlist. */
typedef struct MongoOutput
{
	Expr	   *expression;		/* a group's key or an aggregate */
	MongoFinish finish;			/* how it is made from the fields */
	List	   *fields;			/* MongoOutputField *, one unless PostgreSQL
								 * finishes them */
	bool		zero_if_empty;	/* of aggregates over no rows at all; or NULL */
} MongoOutput;

/* What is above a scan in one foreign scan: fdw_private of an upper relation. */
typedef struct MongoUpperRelation
{
	UpperRelationKind stage;
	RelOptInfo *input;			/* the foreign table or join at the bottom */
	bool		by_find;		/* no pipeline: the input's own path will do */
	MongoPipeline pipeline;		/* all stages */
	List	   *outputs;		/* MongoOutput *, once there is a $group;
								 * before that the columns of the tables are */
	List	   *local_quals;	/* of HAVING, tested by PostgreSQL */
	bool		grouped;
	bool		one_row;		/* aggregates without GROUP BY */
	bool		limited;		/* LIMIT and OFFSET are done in MongoDB */
	const struct MongoCount *count; /* does the same as the pipeline, or NULL */
	Path	   *local;			/* what PostgreSQL does in its place, see
								 * local_plan.h; or NULL */
	double		sorted_rows;	/* that the $sort is about; 0: there is none */
	double		rows;			/* that come */
	Cost		startup_cost;
	Cost		total_cost;
} MongoUpperRelation;

/*
 * mongo_upper_begin
 *		What stages can be added to above 'rel', a foreign table, a join or an
 *		upper relation; NULL when 'rel' is not done in MongoDB alone.
 *
 * The result is the caller's to change.
 */
extern MongoUpperRelation *mongo_upper_begin(PlannerInfo *root, RelOptInfo *rel);

/*
 * mongo_upper_add_path
 *		Offer the foreign scan that 'upper' describes as a path of 'output_rel'.
 */
extern void mongo_upper_add_path(PlannerInfo *root, RelOptInfo *output_rel,
								 MongoUpperRelation *upper, PathTarget *target,
								 List *pathkeys);

/*
 * mongo_upper_gives
 *		Can everything in these expressions be computed from the columns or
 *		outputs that 'upper' has?
 */
extern bool mongo_upper_gives(const MongoUpperRelation *upper, List *expressions);

/* The options of the relation at the bottom. */
extern const MongoTableOptions *mongo_upper_options(const MongoUpperRelation *upper);

/*
 * Paths of upper relations, in the files upper_*.c.
 */

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

#endif							/* MONGO_FDW_UPPER_H */
