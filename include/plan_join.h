/*-------------------------------------------------------------------------
 *
 * plan_join.h
 *		Joins as $lookup.
 *
 * A join is left-deep: the documents of the outer side, a table or a join of
 * its own, are those that flow through the pipeline, and $lookup puts the
 * document of the inner side, a table, under a prefix into them.
 *
 * https://www.mongodb.com/docs/v6.0/reference/operator/aggregation/lookup/
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLAN_JOIN_H
#define MONGO_FDW_PLAN_JOIN_H

#include "compat.h"

#include "foreign/fdwapi.h"
#include "nodes/pathnodes.h"

#include "columns.h"
#include "plan.h"
#include "plan_pipeline.h"

/* How the inner documents are asked for, from the cheapest on. */
typedef enum MongoLookupForm
{
	/*
	 * localField and foreignField alone.  MongoDB 6.0 runs that in its query
	 * engine, seven times faster than the others, as long as nothing but
	 * $match at the beginning and such lookups stands before it, and $unwind
	 * does not follow at once.  All documents found are in one array then.
	 */
	MONGO_LOOKUP_PLAIN,

	/* The same with $unwind right behind, which MongoDB makes one of both. */
	MONGO_LOOKUP_UNWOUND,

	/* With a pipeline that tests what decides whether a document is found. */
	MONGO_LOOKUP_PIPELINE
} MongoLookupForm;

/* The equality by which the inner documents are found in an index. */
typedef struct MongoJoinKey
{
	RestrictInfo *rinfo;
	MongoField	outer;
	MongoField	inner;
	bool		is_text;		/* Strings and ObjectIds may be equal here */
	bool		unique;			/* finds one document at most */
	bool		fits;			/* what it finds surely fits into an array */
} MongoJoinKey;

/*
 * A join that is pushed down.  It lives in its RelOptInfo's memory context, which
 * may be that of one join order, and so does all that it points to but the tables
 * themselves.
 */
typedef struct MongoJoin
{
	JoinType	type;			/* JOIN_INNER, _LEFT, _SEMI or _ANTI */
	RelOptInfo *outer;			/* a table or a join */
	RelOptInfo *inner;			/* a table */
	MongoColumns *columns;		/* of the inner table, under its prefix */
	MongoJoinKey key;
	MongoLookupForm form;
	bool		in_engine;		/* see MONGO_LOOKUP_PLAIN */
	bool		reads_inner;	/* are inner columns used above? */
	List	   *clauses;		/* RestrictInfo, of the join but for the key */
	List	   *filters;		/* RestrictInfo, tested above an outer join */
	Cost		setup_cost;		/* before the first document comes */
	Cost		cost;			/* of making the joined documents in all */
} MongoJoin;

/*
 * mongo_get_foreign_join_paths
 *		FDW callback: offer the join as one command, where it is exact.
 *
 * Of several ways to make the same join, the relation's fdw_private is about
 * the cheapest.
 */
extern void mongo_get_foreign_join_paths(PlannerInfo *root, RelOptInfo *joinrel,
										 RelOptInfo *outerrel, RelOptInfo *innerrel,
										 JoinType jointype, JoinPathExtraData *extra);

/*
 * mongo_join_type_is_known
 *		Of those that can be made here or there: inner, left, semi and anti.
 */
extern bool mongo_join_type_is_known(JoinType type);

/*
 * mongo_is_plain_query
 *		Are the rows of the query's joins never made again one by one, as an
 *		UPDATE or SELECT FOR UPDATE does for rows that were locked?
 */
extern bool mongo_is_plain_query(const PlannerInfo *root);

/*
 * mongo_join_key_selectivity
 *		What share of all pairs of an outer row and an inner document have equal
 *		keys, whatever kind of join it is for.
 */
extern Selectivity mongo_join_key_selectivity(PlannerInfo *root, RelOptInfo *outer,
											  RelOptInfo *inner, RestrictInfo *key);

/*
 * mongo_find_join_key
 *		Among RestrictInfos, the equality that is best to find documents of
 *		'inner' by; false when no index serves any.
 *
 * 'outer' are the columns of the other side.
 */
extern bool mongo_find_join_key(MongoColumns *outer, RelOptInfo *inner,
								List *clauses, MongoJoinKey *key);

/*
 * mongo_append_join
 *		Append the stages of one join to a pipeline that has those of its outer
 *		side; false when a clause turns out to have no exact translation.
 */
extern bool mongo_append_join(const MongoJoin *join, MongoPipeline *pipeline);

/*
 * mongo_settle_lookups
 *		Append the stages that were disabled so that lookups stand in a row.
 */
extern void mongo_settle_lookups(MongoPipeline *pipeline);

/*
 * mongo_get_join_plan
 *		The ForeignScan of a join's path.
 */
extern ForeignScan *mongo_get_join_plan(PlannerInfo *root, RelOptInfo *joinrel,
										List *tlist, Plan *outer_plan);

/*
 * mongo_join_namespace
 *		"(db.a) and (db.b)": the collections of a join, for EXPLAIN.
 */
extern const char *mongo_join_namespace(const MongoRelation *relation);

#endif							/* MONGO_FDW_PLAN_JOIN_H */
