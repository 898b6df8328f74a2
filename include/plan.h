/*-------------------------------------------------------------------------
 *
 * plan.h
 *		Planning: what PostgreSQL calls, and what a plan holds.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLAN_H
#define MONGO_FDW_PLAN_H

#include "compat.h"
#include "common.h"
#include "options.h"

#include "foreign/fdwapi.h"
#include "nodes/extensible.h"
#include "nodes/nodes.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"

/*-------------------------------------------------------------------------
 * Planning: what PostgreSQL's planner calls.
 *
 * FDW callbacks; see PostgreSQL's "Foreign Data Wrapper Callback Routines".
 * Planning sends nothing to MongoDB, with one exception that a user asks for:
 * use_remote_estimate.
 *-------------------------------------------------------------------------
 */

/* src/plan/relation.c */
extern void mongo_get_foreign_rel_size(PlannerInfo *root, RelOptInfo *baserel,
									   Oid foreigntableid);

/* src/plan/paths.c */
extern void mongo_get_foreign_paths(PlannerInfo *root, RelOptInfo *baserel,
									Oid foreigntableid);

/*
 * src/plan/join.c: offers the join as one command, where it is exact.  Of several
 * ways to make the same join, the relation's fdw_private describes the cheapest.
 */
extern void mongo_get_foreign_join_paths(PlannerInfo *root, RelOptInfo *joinrel,
										 RelOptInfo *outerrel, RelOptInfo *innerrel,
										 JoinType jointype, JoinPathExtraData *extra);

/* src/plan/upper.c */
extern void mongo_get_foreign_upper_paths(PlannerInfo *root,
										  UpperRelationKind stage,
										  RelOptInfo *input_rel,
										  RelOptInfo *output_rel, void *extra);
extern bool mongo_is_foreign_path_async_capable(ForeignPath *path);

/* src/plan/scan_plan.c */
extern ForeignScan *mongo_get_foreign_plan(PlannerInfo *root, RelOptInfo *foreignrel,
										   Oid foreigntableid,
										   ForeignPath *best_path, List *tlist,
										   List *scan_clauses, Plan *outer_plan);

/*
 * src/plan/paths.c: may parallel workers read this table?
 *
 * Not where the isolation level asks for one snapshot: a worker's connection is
 * not in the MongoDB transaction.  Transactions that are there for another reason
 * when the scan is executed are dealt with by src/exec/shared.c.
 */
extern bool mongo_is_foreign_scan_parallel_safe(PlannerInfo *root, RelOptInfo *rel,
												RangeTblEntry *rte);

/*
 * src/plan/modify.c.  An UPDATE's plan holds in fdw_private the attributes that it
 * assigns; it is NIL for the others.
 */
extern void mongo_add_foreign_update_targets(PlannerInfo *root, Index rtindex,
											 RangeTblEntry *target_rte,
											 Relation target_relation);
extern List *mongo_plan_foreign_modify(PlannerInfo *root, ModifyTable *plan,
									   Index resultRelation, int subplan_index);
extern int	mongo_is_foreign_rel_updatable(Relation rel);

/*
 * src/plan/modify.c: UPDATE and DELETE as one command.
 *
 * Possible where MongoDB alone decides which documents are meant, and what
 * they become is known beforehand or is a sum with a column's own value.
 * A document whose tested fields do not fit their columns cannot be read, and
 * is not touched either: the filter goes with guards for that.
 *
 * With RETURNING it is findAndModify, which gives back one document, so the
 * filter must be one that cannot mean several.
 */
extern bool mongo_plan_direct_modify(PlannerInfo *root, ModifyTable *plan,
									 Index resultRelation, int subplan_index);

/*
 * mongo_install_batched_joins
 *		Have the planner consider batched joins from now on, to be executed by
 *		these methods.  Called once, by _PG_init().
 *
 * src/plan/batched_join.c.  A nested loop over 10,000 rows with a foreign table
 * inside is 10,000 finds.  This join, a CustomScan, reads a batch of outer rows, asks
 * for all documents with any of their keys by one find ($in), and joins them in
 * PostgreSQL.  Nothing rests on what MongoDB takes for equal: all clauses are
 * evaluated on each pair of rows that the keys' hashes bring together.
 *
 * Its plan has two children: the outer plan, and a foreign scan with the
 * additional condition "key = ANY (keys)".  The keys are no parameter that
 * PostgreSQL knows: a CaseTestExpr stands for them, whose value is in the scan's
 * expression context.
 */
extern void mongo_install_batched_joins(const CustomScanMethods *methods);

/*-------------------------------------------------------------------------
 * What plans hold for execution: scans, direct modifications, batched joins.
 *
 * Planning fills these structs, and execution gets them back, by the functions of
 * common.h.
 *-------------------------------------------------------------------------
 */

/* A column of the scan's tuple, and the path it is read from. */
typedef struct MongoScanColumn
{
	const char *name;
	const char *path;			/* NULL: the whole document */
	const char *collection;		/* NULL: the plan's */
	const char *prefix;			/* where its document stands; NULL: everywhere */
	int			index;			/* in the scan tuple, from 0 */
	Oid			type;			/* InvalidOid: that of the tuple's attribute */
	int32		typmod;
	int			count;			/* of the sum that an average is made of:
								 * index of the count, behind the tuple's
								 * attributes; 0: no average */
	bson_type_t bson_type;		/* as in MongoColumn */
	bool		zero_if_empty;	/* of aggregates over no rows: 0, not NULL */
} MongoScanColumn;

/* A key by which rows of an outer and an inner side are hashed. */
typedef struct MongoHashKey
{
	Oid			type;			/* of the outer side */
	Oid			outer_hash;		/* functions */
	Oid			inner_hash;
	Oid			collation;
	bool		asked;			/* a batched join asks MongoDB for its values */
} MongoHashKey;

/* The field with the number in what count commands and their pipelines give. */
#define MONGO_COUNT_FIELD	"n"

/*
 * fdw_private of a ForeignScan.
 *
 * Its fdw_exprs are one expression for each of 'predicates', then the values of
 * "let", then LIMIT and OFFSET, then those of 'hash_first'.
 */
typedef struct MongoScanPlan
{
	const char *database;
	const char *collection;
	List	   *commands;		/* Const *: templates, see translate.h, to be
								 * run one after the other */
	Const	   *count_command;	/* does what the only pipeline does, and is
								 * preferred where MongoDB takes it; NULL:
								 * there is none */
	List	   *predicates;		/* of mongo_predicate_to_list() */
	int			nvariables;		/* of "let" */
	int			limit;			/* numbers of these in fdw_exprs; -1: none */
	int			offset;
	bool		is_pipeline;	/* aggregate commands; otherwise finds */
	bool		is_grouped;		/* rows are groups, not documents */
	bool		one_row;		/* has a row even over no documents */
	bool		all_rows;		/* the query will likely read to the end */
	bool		is_inner;		/* within the inner side of a nested loop */
	bool		is_batched;		/* asks for the keys of a batched join */
	bool		reads_one;		/* nothing but the collection is read */
	int			hash_first;		/* in fdw_exprs: the values of hash_keys, then
								 * their columns */
	int			switch_after;	/* runs, which cost as much as fetching all
								 * documents; 0: there is no second plan */
	int			enough_rows;	/* no more are wanted of any command; -1: all */
	int			fetch_size;
	bool		batches_grow;	/* see MongoRead in remote.h */
	MongoTypeMismatch type_mismatch;
	mongoc_read_mode_t read_mode;	/* of the table's own option, or 0 */
	bool		canonical_json;
	const char *comment;		/* of the table's own option, or NULL */
	const char *joined;			/* "(db.a) and (db.b)", for EXPLAIN; NULL: no
								 * join */
	const char *split_field;	/* several processes share the scan and read
								 * ranges of it; NULL: one does */
	List	   *columns;		/* MongoScanColumn *, in order of index */
	List	   *hash_keys;		/* MongoHashKey *; NIL: it is no hashed scan,
								 * see src/exec/exec_internal.h */
	List	   *local_columns;	/* number of each column of the second plan in
								 * the scan's tuple, from 0, or -1 */
	List	   *hiding;			/* numbers, from 0, of the plan's quals that
								 * hide rows, of which nothing may be told;
								 * see exec_internal.h */
	List	   *hiding_columns; /* attribute numbers that these read; 0: all */
} MongoScanPlan;

extern const MongoStructType mongo_scan_plan_type;

/* What an assignment does with its expression's value. */
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
	Const	   *command;		/* {filter, projection}, see translate.h */
	List	   *predicates;		/* of mongo_predicate_to_list() */
	List	   *assignments;	/* MongoAssignment * */
	CmdType		operation;
	bool		simple_collation;
	bool		at_most_one;	/* document is meant */
	bool		counts;			/* its rows are the statement's */
	bool		returns;		/* RETURNING, of the only document */
	List	   *returned;		/* attributes in it, as numbers; then
								 * 'command' has their projection */
} MongoDirectPlan;

extern const MongoStructType mongo_direct_plan_type;

/*
 * custom_private of the CustomScan that is a batched join.
 *
 * Its custom_plans are the outer side and a foreign scan that asks for keys.
 */
typedef struct MongoBatchedJoin
{
	JoinType	type;			/* JOIN_INNER, _LEFT, _SEMI or _ANTI */
	bool		all_rows;		/* the query will likely read to the end */
	bool		indexed;		/* an index finds the keys that are asked for */
	List	   *keys;			/* MongoHashKey *; those that are asked for
								 * come first */
} MongoBatchedJoin;

/* Its custom_exprs: what is evaluated over a pair of rows. */
enum
{
	MONGO_BATCHED_CLAUSES,		/* of the join, an implicit AND */
	MONGO_BATCHED_KEYS			/* a List: of 'keys' the outer sides, then the
								 * inner ones */
};

extern const MongoStructType mongo_batched_join_type;

#endif							/* MONGO_FDW_PLAN_H */
