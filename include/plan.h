/*-------------------------------------------------------------------------
 *
 * plan.h
 *		The callbacks of PostgreSQL's planner, and the private data of plans.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLAN_H
#define MONGO_FDW_PLAN_H

#include "common.h"
#include "options.h"

#include "foreign/fdwapi.h"
#include "nodes/extensible.h"
#include "nodes/nodes.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"

/*
 * The planner's callbacks: see "Foreign Data Wrapper Callback Routines" in PostgreSQL's
 * documentation.  Planning sends nothing to MongoDB, unless the user sets the option
 * use_remote_estimate.
 */

/* src/plan/relation.c */
extern void mongo_get_foreign_rel_size(PlannerInfo *root, RelOptInfo *baserel, Oid foreigntableid);

/* src/plan/join.c */
extern void mongo_get_foreign_join_paths(PlannerInfo *root, RelOptInfo *joinrel,
										 RelOptInfo *outerrel, RelOptInfo *innerrel,
										 JoinType jointype, JoinPathExtraData *extra);

/* src/plan/second_plan.c; no callback, but src/exec uses it, too */
extern bool mongo_has_exec_param(Node *node, void *except);

/* src/plan/paths.c */
extern void mongo_get_foreign_paths(PlannerInfo *root, RelOptInfo *baserel, Oid foreigntableid);

/* src/plan/batched_join.c */
extern void mongo_install_batched_joins(const CustomScanMethods *methods);

/* src/plan/batched_subqueries.c; no callback, but src/exec uses it, too */
extern int	mongo_batched_rows(const ForeignScan *scan, const List *params);

/* src/plan/upper.c */
extern void mongo_get_foreign_upper_paths(PlannerInfo *root, UpperRelationKind stage,
										  RelOptInfo *input_rel, RelOptInfo *output_rel,
										  void *extra);
extern bool mongo_is_foreign_path_async_capable(ForeignPath *path);
extern void mongo_install_planner(const CustomScanMethods *methods);

/* src/plan/scan_plan.c */
extern ForeignScan *mongo_get_foreign_plan(PlannerInfo *root, RelOptInfo *foreignrel,
										   Oid foreigntableid, ForeignPath *best_path, List *tlist,
										   List *scan_clauses, Plan *outer_plan);

/* src/plan/modify.c */
extern void mongo_add_foreign_update_targets(PlannerInfo *root, Index rtindex,
											 RangeTblEntry *target_rte, Relation target_relation);
extern List *mongo_plan_foreign_modify(PlannerInfo *root, ModifyTable *plan,
									   Index resultRelation, int subplan_index);
extern int	mongo_is_foreign_rel_updatable(Relation rel);
extern bool mongo_plan_direct_modify(PlannerInfo *root, ModifyTable *plan,
									 Index resultRelation, int subplan_index);

/*-------------------------------------------------------------------------
 * The private data of plans: scans, direct modifications, batched joins.
 *
 * The planner stores these structs as lists, from which the executor rebuilds them
 * (mongo_struct_to_list() and mongo_struct_from_list() of common.h), by the tables of their
 * members in src/plan/path.c.  Numbers stand together, because one row of a table copies them as
 * bytes: there must be no pointer and no padding between them.
 *-------------------------------------------------------------------------
 */

/* A key by which rows of an outer and an inner side are hashed. */
typedef struct MongoHashKey
{
	Oid			type;			/* of the outer side */
	Oid			outer_hash;		/* functions */
	Oid			inner_hash;
	Oid			collation;
	bool		asked;			/* values are requested from MongoDB */
} MongoHashKey;

/* The field that contains the number in the reply to a count, and in its pipeline's result. */
#define MONGO_COUNT_FIELD	"n"

/*
 * The file of a hashed scan may be so many times as large as its hash table, which may have
 * hash_mem_multiplier times work_mem.
 */
#define MONGO_HASHED_FILE_FACTOR	16

/*
 * fdw_private of a ForeignScan.
 *
 * Its fdw_exprs are one expression for each of 'predicates', then the values of "let", then LIMIT
 * and OFFSET, then the expressions from 'hash_first' on.
 */
typedef struct MongoScanPlan
{
	const char *database;
	const char *collection;
	List	   *commands;		/* Const *: templates, run one by one */
	Const	   *count_command;	/* a count equivalent to the only pipeline,
								 * and preferred if it may be sent; NULL: none */
	List	   *predicates;		/* MongoPredicate * */
	int			nvariables;		/* of "let" */
	int			limit;			/* indexes of these in fdw_exprs; -1: none */
	int			offset;
	bool		is_pipeline;	/* aggregate commands, not finds */
	bool		is_grouped;		/* rows are groups, not documents */
	bool		one_row;		/* returns a row even over no documents */
	bool		all_rows;		/* the query will probably read to the end */
	bool		is_inner;		/* within the inner side of a nested loop */
	bool		compresses;		/* what MongoDB sends, if it can */
	bool		sends_all;		/* all of 'commands' at once */
	bool		may_precede;	/* may be sent before the query reads it */
	bool		needs_no_row;	/* no value of its commands comes from rows */
	bool		is_batched;		/* the inner side of a batched join */
	bool		reads_one;		/* reads only 'collection' */
	int			hash_first;		/* index in fdw_exprs of the outer sides of
								 * hash_keys, followed by the inner ones */
	int			switch_after;	/* the number of runs that cost as much as
								 * fetching all documents; 0: it never does */
	int			batch_rows;		/* outer rows whose documents a second plan
								 * fetches at a time; 0: it does not */
	int			batch_runs;		/* how many runs cost as much as that */
	int			enough_rows;	/* rows needed from each command; -1: all */
	int			fetch_size;
	bool		batches_grow;	/* see MongoRead in remote.h */
	bool		skips;			/* documents that do not fit */
	int			no_array;		/* MongoNoArray, of 'unwind' */
	bool		unwind_empty;	/* the table's option */
	bool		is_stream;		/* see MongoRead in remote.h */
	int			max_wait;
	bool		split_events;
	mongoc_read_mode_t read_mode;	/* the table's own option, or 0 */
	bool		canonical_json;
	const char *unwind;			/* the table's option if the scan unwinds what
								 * finds return; else NULL */
	const char *ordinality;		/* the table's option; NULL: not read */
	const char *network;		/* for EXPLAIN; NULL: the same machine */
	const char *comment;		/* the table's own option, or NULL */
	const char *joined;			/* "(db.a) and (db.b)", for EXPLAIN; or NULL */
	List	   *columns;		/* MongoColumn *, in order of index */
	List	   *hash_keys;		/* MongoHashKey *, of a hashed scan, or NIL */
	List	   *second_columns; /* for each column of the second plan, its
								 * index in the scan's tuple, or -1 */
	List	   *hiding;			/* indexes of the plan's quals that hide rows,
								 * about which no error may reveal anything
								 * (scan_run.c) */
	List	   *hiding_columns; /* attributes that these read; 0: all */
} MongoScanPlan;

extern const MongoStructType mongo_scan_plan_type;

/* How an assignment uses its expression's value. */
typedef enum MongoAssignmentKind
{
	MONGO_ASSIGN_VALUE,			/* column = value */
	MONGO_ASSIGN_SUM,			/* column = column + value */
	MONGO_ASSIGN_DIFFERENCE		/* column = column - value */
} MongoAssignmentKind;

typedef struct MongoAssignment
{
	MongoAssignmentKind kind;
	AttrNumber	attnum;
} MongoAssignment;

/*
 * fdw_private of a ForeignScan that is an UPDATE or DELETE as one command.
 *
 * Its fdw_exprs are one expression for each of 'predicates', then one for each of
 * 'assignments'.
 */
typedef struct MongoDirectPlan
{
	const char *database;
	const char *collection;
	Const	   *command;		/* {filter, projection}, see template.c */
	List	   *predicates;		/* MongoPredicate * */
	List	   *assignments;	/* MongoAssignment * */
	CmdType		operation;
	bool		simple_collation;
	bool		at_most_one;	/* the filter matches one document at most */
	bool		counts;			/* the statement counts the rows */
	bool		returns;		/* has RETURNING */
	List	   *returned;		/* numbers of the attributes in RETURNING;
								 * 'command' has their projection */
} MongoDirectPlan;

extern const MongoStructType mongo_direct_plan_type;

/*
 * custom_private of the CustomScan that is a batched join.
 *
 * Its custom_plans are the outer side and the foreign scan that requests keys.
 */
typedef struct MongoBatchedJoin
{
	JoinType	type;			/* JOIN_INNER, _LEFT, _SEMI or _ANTI */
	int			first_batch;	/* outer rows; the next batches double.  0:
								 * the query will probably read to the end */
	bool		indexed;		/* an index serves the requested keys */
	bool		ordered;		/* sorts documents in the outer side's order */
	List	   *keys;			/* MongoHashKey *; the requested ones first */
} MongoBatchedJoin;

/* The entries of its custom_exprs, which are evaluated over a pair of rows. */
enum
{
	MONGO_BATCHED_CLAUSES,		/* the join clauses, an implicit AND */
	MONGO_BATCHED_KEYS			/* a List: the outer sides of 'keys', then the
								 * inner sides */
};

/* custom_private of a CustomScan that batches the values of subqueries. */
typedef struct MongoBatchedSubqueries
{
	List	   *subplans;		/* integers, the plan_ids of those of SubPlans */
	int			first_batch;	/* rows below it; 0 for as many as there may
								 * be */
	bool		is_exact;		/* no more than these are read */
	bool		is_for_parent;	/* it reads rows for the node above it, which
								 * has these SubPlans, or is a loop */
} MongoBatchedSubqueries;

extern const MongoStructType mongo_batched_join_type;
extern const MongoStructType mongo_batched_subqueries_type;

#endif							/* MONGO_FDW_PLAN_H */
