/*-------------------------------------------------------------------------
 *
 * join.h
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
#ifndef MONGO_FDW_JOIN_H
#define MONGO_FDW_JOIN_H

#include "compat.h"

#include "nodes/pathnodes.h"

#include "columns.h"
#include "join_key.h"

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
	MONGO_LOOKUP_PIPELINE,

	/*
	 * Not at all: each outer row is an element of the document, and what is
	 * read of that stands beside it.
	 */
	MONGO_LOOKUP_PARENT
} MongoLookupForm;

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
	MongoColumns *columns;		/* of the inner table, under its prefix, which
								 * MONGO_LOOKUP_PARENT has not */
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
 * mongo_join_type_is_known
 *		Is it one of those that MongoDB or a batched join can make: inner, left,
 *		semi and anti?
 */
extern bool mongo_join_type_is_known(JoinType type);

/*
 * mongo_split_join_clauses
 *		Of a join's RestrictInfos, those that decide what is joined, and those that
 *		are tested above an outer join.
 */
extern void mongo_split_join_clauses(const RelOptInfo *joinrel, JoinType type,
									 const List *restrictlist,
									 List **clauses, List **filters);

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

#endif							/* MONGO_FDW_JOIN_H */
