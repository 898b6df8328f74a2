/*-------------------------------------------------------------------------
 *
 * plan.h
 *		Planning foreign scans, and what a plan tells execution.
 *
 * Planning sends nothing to MongoDB, with one exception that a user asks for:
 * use_remote_estimate.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLAN_H
#define MONGO_FDW_PLAN_H

#include "compat.h"

#include "foreign/fdwapi.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "columns.h"
#include "condition.h"
#include "options.h"

/*
 * What planning knows of a foreign table, or of a join that can be pushed down:
 * fdw_private of its RelOptInfo.  What is about one table is about the outermost
 * one of a join, on whose collection the command is.
 *
 * It lives as long as its RelOptInfo, and so does all that it points to, at
 * whatever time and in whatever memory context that is filled in: see
 * planning_state.h.
 */
typedef struct MongoRelation
{
	Oid			relid;
	Oid			serverid;
	Oid			userid;			/* whose user mapping counts */
	MongoTableOptions *options;
	MongoColumns *columns;
	List	   *known;			/* MongoKnownCondition *, of plan_clauses.h */
	List	   *without_nan;	/* columns that no base restriction lets be NaN; see
								 * nan_bound.h */
	bool		below_barrier;	/* of mongo_is_below_barrier() */
	bool		has_barrier;	/* restrictions hide rows from the query or from what
								 * is above it; see plan_security.h */
	Index		query_level;	/* PlannerInfo.qual_security_level */
	bool		all_exact;		/* no base restriction is left to check here */
	int			can_be_exact;	/* of mongo_can_be_exact(); -1: not asked yet.  A
								 * number, as joins ask */
	double		analyzed_rows;	/* documents that ANALYZE counted; 0: none yet */
	double		remote_rows;	/* documents that come, before local checks */
	double		examined_rows;	/* documents that MongoDB looks at */
	const struct MongoJoin *join;	/* see plan_join.h; NULL: a table */
} MongoRelation;

/* A column of the scan's tuple, and the path it is read from. */
typedef struct MongoScanColumn
{
	int			index;			/* in the scan tuple, from 0 */
	const char *name;
	const char *path;			/* NULL: the whole document */
	const char *collection;		/* NULL: the plan's */
	const char *prefix;			/* where its document stands; NULL: everywhere */
	Oid			type;			/* InvalidOid: that of the tuple's attribute */
	int32		typmod;
	bool		zero_if_empty;	/* of aggregates over no rows: 0, not NULL */
} MongoScanColumn;

/* How an aggregate is made here of what MongoDB has added up; see finish.h. */
typedef enum MongoFinish
{
	MONGO_FINISH_NONE,
	MONGO_FINISH_AVERAGE,		/* of a sum that is numeric, and count */
	MONGO_FINISH_AVERAGE_OF_INTEGERS,	/* ... that is int8 */
	MONGO_FINISH_VAR_POP,		/* of sum, count and sum of squares */
	MONGO_FINISH_VAR_SAMP,
	MONGO_FINISH_STDDEV_POP,
	MONGO_FINISH_STDDEV_SAMP
} MongoFinish;

/* An attribute of the scan's tuple that is finished here. */
typedef struct MongoScanFinish
{
	MongoFinish finish;
	int			index;			/* in the scan tuple, from 0 */
	int			first;			/* MongoScanColumn.index of its first part; these
								 * count on behind the tuple's attributes */
} MongoScanFinish;

/* fdw_private of a ForeignScan, unpacked. */
typedef struct MongoScanPlan
{
	const char *database;
	const char *collection;
	List	   *commands;		/* Const *: templates, see command_template.h, to
								 * be run one after the other */
	List	   *predicates;		/* for the first of fdw_exprs, in step */
	int			nvariables;		/* of "let": fdw_exprs goes on with these */
	bool		is_pipeline;	/* aggregate commands; otherwise finds */
	const char *joined;			/* of mongo_join_namespace(); NULL: no join */
	bool		is_grouped;		/* rows are groups, not documents */
	bool		one_row;		/* has a row even over no documents */
	bool		has_limit;		/* then fdw_exprs goes on with it */
	bool		has_offset;		/* and with this */
	int			enough_rows;	/* no more are wanted of any command; -1: all */
	bool		all_rows;		/* the query will likely read to the end */
	int			fetch_size;
	MongoTypeMismatch type_mismatch;
	bool		canonical_json;
	const char *split_field;	/* several processes share the scan and read
								 * ranges of it; NULL: one does */
	List	   *columns;		/* MongoScanColumn *, in order of index */
	List	   *finishes;		/* MongoScanFinish * */
	List	   *hiding;			/* numbers, from 0, of the plan's quals that hide rows,
								 * of which nothing may be told; see hidden.h */
	List	   *hiding_columns; /* attribute numbers that these read; 0: all */
} MongoScanPlan;

/*
 * mongo_scan_plan_to_list, mongo_scan_plan_from_list
 *		The plan's private part as nodes that copyObject() and the like know, and
 *		back, palloc'd in the current memory context; strings are the list's.
 */
extern List *mongo_scan_plan_to_list(const MongoScanPlan *plan);
extern MongoScanPlan *mongo_scan_plan_from_list(List *list);

/* FDW callbacks; see PostgreSQL's "Foreign Data Wrapper Callback Routines". */
extern void mongo_get_foreign_rel_size(PlannerInfo *root, RelOptInfo *baserel,
									   Oid foreigntableid);
extern void mongo_get_foreign_paths(PlannerInfo *root, RelOptInfo *baserel,
									Oid foreigntableid);
extern void mongo_get_foreign_upper_paths(PlannerInfo *root,
										  UpperRelationKind stage,
										  RelOptInfo *input_rel,
										  RelOptInfo *output_rel, void *extra);
extern ForeignScan *mongo_get_foreign_plan(PlannerInfo *root, RelOptInfo *foreignrel,
										   Oid foreigntableid,
										   ForeignPath *best_path, List *tlist,
										   List *scan_clauses, Plan *outer_plan);

/*
 * mongo_estimate_scan
 *		Set the costs of a scan of 'baserel' whose remote conditions let
 *		'remote_rows' of 'examined_rows' documents through.
 *
 * Of a join that is pushed down, 'examined_rows' is of no account: its
 * MongoJoin has what finding the rows costs.  In the planner's units.
 */
extern void mongo_estimate_scan(RelOptInfo *baserel,
								double remote_rows, double examined_rows,
								Cost *startup_cost, Cost *total_cost);

/*
 * mongo_examined_cost
 *		What MongoDB takes to find that many documents of a table.
 */
extern Cost mongo_examined_cost(const RelOptInfo *baserel, double examined_rows);

/*
 * mongo_can_be_exact
 *		Can MongoDB test all restrictions of 'baserel' exactly, if that is worth
 *		a $expr where find's language would leave something to be checked here?
 */
extern bool mongo_can_be_exact(RelOptInfo *baserel);

/*
 * mongo_sort_cost
 *		What it costs MongoDB to have the rows of 'baserel' in order, by an index or
 *		by sorting, beyond what it takes to have them.
 */
extern Cost mongo_sort_cost(RelOptInfo *baserel, List *pathkeys, bool indexed);

#endif							/* MONGO_FDW_PLAN_H */
