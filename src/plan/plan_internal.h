/*-------------------------------------------------------------------------
 *
 * plan_internal.h
 *		What the files of src/plan share.
 *
 * What hangs on a RelOptInfo lives in the RelOptInfo's own memory context.  From
 * geqo_threshold tables on, PostgreSQL plans each join order that it tries in a
 * context of its own (geqo_eval() in geqo_eval.c): the join relations die with it,
 * the tables below them are those of all orders.  So a join's state points to that of
 * its tables and never a table's to a join's, and what is remembered of a table is
 * true of it in every join order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PLAN_INTERNAL_H
#define MONGO_FDW_PLAN_INTERNAL_H

#include "common.h"
#include "options.h"
#include "translate.h"
#include "plan.h"

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "utils/memutils.h"

/* What a path gives and costs. */
typedef struct MongoEstimate
{
	double		rows;
	Cost		startup_cost;
	Cost		total_cost;
} MongoEstimate;

/*
 * paths.c: a path of 'rel' with this target; NULL: the relation's own.  'private' is
 * fdw_private: NIL; an IntList if LIMIT and OFFSET are pushed down; a List of Lists if the
 * rows are hashed (see rescan.c); or the conditions on a batched join's keys, Expr *.
 */
extern Path *mongo_foreign_path(PlannerInfo *root, RelOptInfo *rel, PathTarget *target,
								MongoEstimate estimate, List *pathkeys, Relids required_outer,
								Path *outer_path, List *private);

/*
 * paths.c: mark the relation's foreign paths that are not partial as not parallel safe.  An
 * Append is asynchronous only when it is not parallel safe, and each worker would run the
 * whole scan.  They compete as parallel safe before, so that they win where costs are equal.
 */
extern void mongo_keep_out_of_workers(RelOptInfo *rel);

/* ------------------ relation.c: what is known of a table ------------------ */

/* A clause and its translation. */
typedef struct MongoClause
{
	RestrictInfo *rinfo;		/* NULL: none, as for keys of a batched join */
	MongoCondition condition;
	bson_t	   *match;			/* its filter; NULL if not needed */
} MongoClause;

/*
 * fdw_private of a foreign table's RelOptInfo, and of that of a join that MongoDB can make.
 * For a join, fields about one table are about the outermost one, on whose collection the
 * command runs.
 */
typedef struct MongoRelation
{
	Oid			relid;
	Oid			serverid;
	Oid			userid;			/* whose user mapping counts */
	const MongoTableOptions *options;
	MongoColumns *columns;
	uint32		mismatches;		/* values of type_mismatch that apply to the
								 * columns, as bits 1 << MongoTypeMismatch */
	const bson_t *fit;			/* what documents must match that 'skip' does
								 * not leave out; NULL: nothing */
	bool		skips_locally;	/* PostgreSQL has to leave out some, too */
	const List *subplans;		/* Plan *, of the subqueries in restrictions */
	List	   *known;			/* MongoClause *, of restrictions without
								 * parameters, whose translation for the
								 * estimate the plan uses again */
	List	   *sought;			/* MongoClause *, of restrictions that an
								 * index may serve */
	List	   *restrictions;	/* RestrictInfo *, a copy of baserestrictinfo */
	bool		below_barrier;	/* the query is below a security barrier */
	bool		has_barrier;	/* restrictions hide rows from the query or
								 * from what is above it */
	Index		query_level;	/* PlannerInfo.qual_security_level */
	bool		all_exact;		/* PostgreSQL has no base restriction left to
								 * test */
	const struct MongoPipeline *pipeline;	/* gives the rows exactly; NULL:
											 * PostgreSQL has to test some */
	bool		asked_for_pipeline; /* 'pipeline' has been set */
	double		analyzed_rows;	/* documents that ANALYZE counted; 0: none yet */
	double		remote_rows;	/* documents received, before local checks */
	double		examined_rows;	/* documents that MongoDB examines */
	double		round_trip_time;	/* to the server, ms */
	double		bandwidth;		/* bytes a second */
	const struct MongoJoin *join;	/* NULL: a table */
	List	   *bindings;		/* MongoBinding *, by the restrictions */
	bool		unbound;		/* they leave a parameter without a value */
	bool		names_match;	/* mongo_match() is in a restriction, or in a
								 * join clause: */
	bool		matches_outer;	/* only a scan for each outer row can test it */
	Expr	   *score;			/* mongo_score() of it, or NULL */
	const char *score_field;	/* its field in the documents */
	const char *score_meta;		/* what $meta calls it */
} MongoRelation;

/* Is this the only value of type_mismatch that applies to the columns? */
static inline bool
mongo_mismatches_are(const MongoRelation *relation, MongoTypeMismatch value)
{
	return (relation->mismatches & ~(1 << value)) == 0;
}

/*
 * A parameter of a table's pipeline, and what the condition "column = value" gives to it.
 * Computing the value may raise the errors of a cast.
 */
typedef struct MongoBinding
{
	AttrNumber	attnum;			/* of the column with the option parameter */
	Node	   *value;			/* of the column's base type; NULL: none */
	RestrictInfo *rinfo;		/* the condition, if it is true of all rows
								 * with this value; else NULL */
} MongoBinding;

/* The clauses of a scan, by who tests them. */
typedef struct MongoScanClauses
{
	List	   *bindings;		/* MongoBinding * */
	Bitmapset  *read;			/* columns that are read but for the bindings,
								 * as pull_varattnos() counts them */
	List	   *bound;			/* clauses that bind parameters */
	List	   *local;			/* tested by PostgreSQL: not shippable, or a
								 * superset */
	List	   *hiding;			/* numbers, from 0, of those in 'local' that
								 * hide rows */
	List	   *exact;			/* tested by MongoDB alone */
	List	   *sent;			/* MongoClause *, of what MongoDB tests */
	bson_t	   *filter;			/* ... as one filter; empty: none */
} MongoScanClauses;

extern MongoClause *mongo_clause_create(RestrictInfo *rinfo, const MongoCondition *condition,
										bson_t *match);

/* The clause's entry in MongoRelation.known, or NULL. */
extern const MongoClause *mongo_known_clause(const RelOptInfo *baserel, const RestrictInfo *rinfo);

extern bool mongo_keeps_collation(const MongoRelation *relation);

/* An empty translation over this table, with what its options allow. */
extern MongoTranslation mongo_translation_of(const MongoRelation *relation);

/* Do these RestrictInfos give each parameter of the table's pipeline a value? */
extern bool mongo_binds_parameters(const MongoRelation *relation, const List *rinfos);

/*
 * mongo_translate_condition() of a restriction of the table, or of a clause that a scan is
 * parameterized by.  A clause that MongoDB must not test early is not shippable, too.
 */
extern MongoCondition mongo_translate_restriction(MongoTranslation *translation,
												  RelOptInfo *baserel,
												  RestrictInfo *rinfo, bson_t *match);

/*
 * Translate RestrictInfos: of 'baserel', or, if that is NULL, of a join that
 * mongo_join_is_secure() has been asked about.  Parameters are gathered in 'translation'.
 * Pseudoconstant clauses are left out: PostgreSQL tests them above the scan.
 */
extern void mongo_classify_clauses(MongoTranslation *translation, RelOptInfo *baserel,
								   List *scan_clauses, MongoScanClauses *clauses);

/*
 * Is the column declared NOT NULL, and does the query not read fields that do not fit it as NULL?
 * A foreign table's declaration is trusted, as by PostgreSQL.
 */
extern bool mongo_is_declared_not_null(MongoColumns *columns, AttrNumber attnum);

/*
 * Raise 0A000 for system columns of the table that an INSERT returns, but not for
 * tableoid; mongo_get_foreign_rel_size() does so for all that is scanned.
 */
extern void mongo_refuse_returned_system_columns(List *returning, Index target,
												 Oid foreigntableid);

/* Append to the empty 'filter' the conjunction of these filters, bson_t *. */
extern void mongo_append_conjuncts(bson_t *filter, const List *conjuncts);

/*-------------------------------------------------------------------------
 * Row-level security and security barriers: what may be tested early?
 *
 * A condition of the query must not see rows that a policy, or a security-barrier view, hides,
 * if it can reveal them: by an error or in any other way.  MongoDB tests a command's conditions
 * in an order of its own.  So every condition in a command is tested early, as an index's
 * conditions are in PostgreSQL, and PostgreSQL's rule applies: a condition that is pushed down
 * is leakproof, or of no higher security level than any condition on the same table
 * ("Security-level constraints on qual clauses" in src/backend/optimizer/README).  And MongoDB
 * must not fail where PostgreSQL's leakproof functions do not.
 *
 * Nor may an error reveal a document that does not fit its columns, if a restriction hides it
 * or cannot be tested.  Conditions that MongoDB tests have type checks, which exclude such
 * documents; for those that PostgreSQL tests, see "Deferred errors" in src/exec/scan.c.
 *-------------------------------------------------------------------------
 */

/* May MongoDB test this restriction, whose translation is 'match', early? */
extern bool mongo_is_securely_promotable(RelOptInfo *baserel, RestrictInfo *rinfo,
										 const bson_t *match);

/* Likewise a join's clauses, which 'stages' test in addition to its tables' restrictions. */
extern bool mongo_join_is_secure(PlannerInfo *root, RelOptInfo *joinrel,
								 List *clauses, const bson_t *stages);

/* Switch to the memory context that 'rel' lives in; returns the one before. */
static inline MemoryContext
mongo_enter_planning(RelOptInfo *rel)
{
	return MemoryContextSwitchTo(GetMemoryChunkContext(rel));
}

/* ------------------- pipeline.c: pipelines in the making ------------------- */

/*
 * The stages so far, and how an expression over what they give is translated:
 * translation.columns are the tables whose documents the last stage gives (NULL when a
 * $group has ended them), translation.computed what it computed.
 */
typedef struct MongoPipeline
{
	MongoTranslation translation;
	bson_t	   *stages;			/* an array's elements, "0" and so on */
	int			nstages;
	const bson_t *only_match;	/* the filter, if all is one $match; or NULL */
	bool		may_need_disk;	/* a stage may hold more than 100 MB */

	/* of join.c alone, and settled before anything else is appended */
	List	   *held;			/* stages to come after lookups in a row */
	List	   *arrays;			/* prefixes under which several documents are */
} MongoPipeline;

/* Is there a clause without columns, which becomes a Result above the scan? */
extern bool mongo_has_pseudoconstant(const List *rinfos);

/*
 * The stages that give the rows of a foreign table, with nothing left for PostgreSQL to test;
 * NULL where a restriction has no exact translation.  They are made once, in the relation's
 * memory context.
 */
extern const MongoPipeline *mongo_exact_pipeline(RelOptInfo *rel);

/*
 * Those of a foreign table or a join to which others may be appended, or NULL: nothing is
 * lateral, and type mismatches are errors.
 */
extern const MongoPipeline *mongo_pipeline_of(PlannerInfo *root, RelOptInfo *rel);

/* A copy that stages can be appended to, in the current memory context. */
extern MongoPipeline mongo_pipeline_copy(const MongoPipeline *source);

/*
 * mongo_pipeline_make_rows
 *		Append the stages that make the rows of the relation's table, if it is a
 *		pipeline table, and a $match of what 'clauses' has for MongoDB to test.
 *
 * Where arrays are unwound, each condition is tested as soon as its columns are
 * there.  Those on elements also narrow the documents before, as far as indexes may
 * serve that.  Raises what mongo_append_pipeline() does.
 */
extern void mongo_pipeline_make_rows(MongoPipeline *pipeline, const MongoRelation *relation,
									 const MongoScanClauses *clauses);

/*
 * How many of the arrays that the options unwind have to be unwound before 'expression' reads
 * of these columns' table what it means; 0: none.
 */
extern int	mongo_unwound_depth(const MongoTableOptions *options, MongoColumns *columns,
								Node *expression);

/* Append the stage {name: specification}. */
extern void mongo_pipeline_append(MongoPipeline *pipeline, const char *name,
								  const bson_t *specification);

/* Append a $project of these fields (char *), unless one cannot be named. */
extern void mongo_pipeline_project(MongoPipeline *pipeline, List *paths);

/*
 * mongo_score(): what $text has found a document to be worth.  MongoDB tells it beside the
 * document, where it is asked to by {$meta: "textScore"}.  So the scan's tuple has one
 * attribute more than the table, behind its columns.
 *
 * mongo_reads_score returns the first call in a query over this table alone, without aggregates,
 * that returns nothing else of the row but columns; else NULL.
 *
 * mongo_note_score fills in 'score' and 'score_field' of the MongoRelation for such a query, if it
 * tests nothing of the row but columns.  Elsewhere the function is called, and raises an error.
 */
extern Expr *mongo_reads_score(PlannerInfo *root, const RelOptInfo *baserel);
extern void mongo_note_score(PlannerInfo *root, RelOptInfo *baserel);
extern bool mongo_is_score_order(const MongoRelation *relation, const List *pathkeys);
extern void mongo_append_score(bson_t *document, const MongoRelation *relation);
extern void mongo_add_score_column(const RelOptInfo *baserel, MongoScanPlan *plan,
								   ForeignScan *scan);

/*-------------------------------------------------------------------------
 * upper.c: what is done above a scan or a join in the same command, which is
 * GROUP BY, DISTINCT, ORDER BY, LIMIT.
 *
 * Each upper relation of PostgreSQL that MongoDB can compute has a
 * MongoUpperRelation, which is made from the one below by adding stages.
 *-------------------------------------------------------------------------
 */

/* A value that the foreign scan gives: an entry of its fdw_scan_tlist. */
typedef struct MongoOutput
{
	Expr	   *expression;		/* a group's key or an aggregate */
	MongoScanColumn *column;	/* without name and index */
	MongoScanColumn *count;		/* of an average, whose sum is in 'column'; or
								 * NULL */
} MongoOutput;

/* fdw_private of an upper relation. */
typedef struct MongoUpperRelation
{
	RelOptInfo *input;			/* the foreign table or join at the bottom */
	MongoPipeline pipeline;		/* all stages */
	List	   *outputs;		/* MongoOutput *, once there is a $group;
								 * before that the columns of the tables are */
	List	   *local_quals;	/* of HAVING, tested by PostgreSQL */
	bool		grouped;
	bool		one_row;		/* aggregates without GROUP BY */
	bool		limited;		/* LIMIT and OFFSET are done in MongoDB */
	bool		counts;			/* the pipeline ends with $count, and the
								 * command count does the same */
	Path	   *local;			/* what PostgreSQL does in its place, see
								 * mongo_local_aggregate(); or NULL */
	double		sorted_rows;	/* that the $sort is about; 0: there is none */
	MongoEstimate estimate;
} MongoUpperRelation;

/*
 * What stages can be added to above 'rel', a foreign table, a join or an upper relation, the
 * caller's to change; NULL when 'rel' is not done in MongoDB alone.
 */
extern MongoUpperRelation *mongo_upper_begin(PlannerInfo *root, RelOptInfo *rel);

/* Offer the foreign scan that 'upper' describes as a path of 'output_rel'. */
extern void mongo_upper_add_path(PlannerInfo *root, RelOptInfo *output_rel,
								 MongoUpperRelation *upper, PathTarget *target,
								 List *pathkeys);

/* Can all in these expressions be computed from the columns or outputs that 'upper' has? */
extern bool mongo_upper_gives(const MongoUpperRelation *upper, List *expressions);

/* The options of the relation at the bottom. */
extern const MongoTableOptions *mongo_upper_options(const MongoUpperRelation *upper);

/*-------------------------------------------------------------------------
 * group.c: a $group in the making.
 *
 * A group is made in one stage or in two.  Two are needed for DISTINCT inside
 * an aggregate, where the first groups by what is to be distinct as well; and
 * two are cheaper where keys that PostgreSQL holds equal differ in MongoDB
 * (a missing field and a null, a String and an ObjectId): the first stage takes
 * keys as they are, and the second merges its few groups.  That works because
 * the accumulators of the second stage are those of the first once more: a sum
 * of sums, a minimum of minima.  A $set after them makes values of the
 * accumulators that are aggregates.
 *-------------------------------------------------------------------------
 */

/* One of $group's accumulators; its field is "a0" and so on. */
typedef struct MongoAccumulator
{
	const char *operator;		/* "$sum", "$min" or "$max" */
	bson_t	   *operand;
	bool		distinct;		/* over the distinct values, in the second
								 * stage */
} MongoAccumulator;

/* A key; its field is "_id.k0" and so on, or "_id" when it is the only one. */
typedef struct MongoGroupKey
{
	Expr	   *expression;
	MongoValue	value;
} MongoGroupKey;

typedef struct MongoGroup
{
	MongoScope	scope;			/* in which arguments are translated */
	bool		float_sums;		/* may sums of float8 differ in last digits? */
	List	   *keys;			/* MongoGroupKey * */
	List	   *accumulators;	/* MongoAccumulator * */
	Node	   *distinct;		/* what DISTINCT aggregates are over, or NULL */
	MongoValue	distinct_value; /* the same; its field is "_id.d" */
	bson_t	   *results;		/* specification of the $set; its fields are
								 * "r0" and so on */
	int			nresults;
	List	   *outputs;		/* MongoOutput *, as in MongoUpperRelation */
	List	   *computed;		/* MongoComputed *: those but averages */
} MongoGroup;

/* Group by 'expression'; false when it is not shippable. */
extern bool mongo_group_add_key(MongoGroup *group, Expr *expression);

/*
 * Compute an aggregate, after all keys have been added; false when it has no exact
 * translation.  It may be partial, if its state is a value of SQL (aggsplit).
 */
extern bool mongo_group_add_aggregate(MongoGroup *group, Aggref *aggregate);

/*
 * An expression whose values are equal in MongoDB where they are in PostgreSQL, and in
 * order too if 'ordered', but for null and NaN; false when there is none.
 */
extern bool mongo_group_value(const MongoScope *scope, Node *node, bool ordered,
							  MongoValue *value);

/*
 * The only key of a group without accumulators, or what all aggregates of a group without
 * keys are over by DISTINCT; NULL for any other group.
 */
extern Node *mongo_group_lone_key(const MongoGroup *group);

/*
 * Append the stages to the pipeline, whose translation from then on is about what they
 * have computed; keys are outputs, too.  'walks': MongoDB takes them from an index's keys;
 * 'merge': two stages pay.
 */
extern void mongo_group_append(MongoGroup *group, bool walks, bool merge,
							   MongoPipeline *pipeline);

/*-------------------------------------------------------------------------
 * order.c: ORDER BY in MongoDB, where its order is PostgreSQL's.
 *
 * MongoDB puts null below every value and NaN below every number; PostgreSQL
 * puts NaN above every number and NULL where the query says.  Where that
 * differs for the first key, a scan is made of several commands, one after
 * the other, each of which an index can serve.
 *-------------------------------------------------------------------------
 */

/* As many keys as a sort or a compound index may have. */
#define MONGO_MAX_SORT_KEYS		32

/* A key of an order: a field. */
typedef struct MongoOrderKey
{
	const char *path;			/* UTF-8 */
	bool		ascending;
	bool		indexed;		/* an index on it alone gives an order,
								 * whatever has been learned */
	bool		excludes_arrays;	/* they do not fit; MongoDB's sort would
									 * fail for those of two keys */
} MongoOrderKey;

/* What one of the commands gives. */
typedef struct MongoSortPart
{
	const char *match;			/* template over the first key; NULL: all rows */
	bool		has_one_value;	/* the first key; only the others count */
} MongoSortPart;

/* An order in which a scan can give its rows. */
typedef struct MongoOrder
{
	MongoOrderKey keys[MONGO_MAX_SORT_KEYS];	/* of different fields */
	int			nkeys;			/* 0: the order is that of mongo_score() */
	bool		unindexed;		/* no index is to be thought of */
	MongoSortPart parts[3];
	int			nparts;
	MongoField	first;			/* of the first key */
} MongoOrder;

/* The order of these pathkeys; false if MongoDB has none that is PostgreSQL's. */
extern bool mongo_find_order(RelOptInfo *baserel, List *pathkeys, MongoOrder *order);

/*
 * Does the query need the rows of all parts, as far as is known?  And may their cursors be open
 * at the same time: without a LIMIT only if a batch has all rows of each, since MongoDB closes a
 * cursor that is not read for ten minutes.
 */
extern bool mongo_needs_all_parts(PlannerInfo *root, RelOptInfo *baserel, List *pathkeys);

/* Append what restricts the command for a part, and the keys that it is sorted by, if any. */
extern void mongo_append_order(const MongoRelation *relation, const MongoOrder *order, int part,
							   bson_t *match, bson_t *sort);

/* Offer the query's ORDER BY as a $sort. */
extern void mongo_add_ordered_path(PlannerInfo *root, RelOptInfo *input_rel,
								   RelOptInfo *ordered_rel);

/* -------------------- index.c: what MongoDB's work costs -------------------- */

/*
 * A query's cost has three parts: commands (fdw_startup_cost and a round trip), what is
 * sent (fdw_tuple_cost for each document, and its bytes), and MongoDB's work.
 *
 * Every constant, in one of two units:
 *
 *	T	MONGO_COST_UNIT, which stands for 0.26 microseconds: sending and reading one small
 *		document within a machine.  It is the default of fdw_tuple_cost
 *	L	fdw_lookup_cost, which stands for one $lookup inside MongoDB's query engine
 *
 * Measured with MongoDB 6.0 on documents of some 100 bytes.  "make bench ONLY=costs"
 * measures them on another machine, in the way that stands behind each, and prints
 * these lines with its own figures.  Those marked "-" are not measured, but chosen.
 */

#define MONGO_COST_UNIT				0.1 /* - the default of fdw_tuple_cost */

/*
 * The network.  A round trip within a machine is part of fdw_startup_cost.  What is measured
 * of a network that is as fast counts as this, so that plans do not change with each ANALYZE.
 * The cast makes the constant a double on processors that compute with more bits (x87).
 */
#define MONGO_LOCAL_ROUND_TRIP		((double) 0.8)	/* - ms */
#define MONGO_LOCAL_BANDWIDTH		1e9 /* - bytes a second */
#define MONGO_GIGABIT_BANDWIDTH		1.2e8	/* - more than that, measured with
											 * such a round trip, is local: a
											 * busy machine shows less */
#define MONGO_COST_MILLISECOND		(MONGO_COST_UNIT / 0.00026)
#define MONGO_DOCUMENT_BYTES		28	/* of a document with its _id */
#define MONGO_FIELD_BYTES			10	/* of a field without its value */
#define MONGO_BATCH_BYTES			4e6 /* of a batch, see cursor.c */
#define MONGO_COMPRESSED_BANDWIDTH	4e7 /* - of slower networks, MongoDB
										 * compresses what it sends */
#define MONGO_COMPRESSION			2	/* times as fast that is */

/* scans: T for each document */
#define MONGO_COST_EXAMINED			0.2 /* looked at: a scan that finds
										 * nothing */
#define MONGO_COST_INDEXED			0.5 /* the same by an index */
#define MONGO_COST_PART_TEST		0.2 /* also tested for null and NaN */
#define MONGO_COST_RANGE			1.5 /* a range of _id as $expr, less
										 * EXAMINED */

/* scans: others */
#define MONGO_COST_SPLIT			30000	/* T: $sample, which finds the
											 * ranges */
#define MONGO_COST_PROJECTION_BYTES	150 /* bytes sent within a machine while a
										 * field is picked */
#define MONGO_COST_PUSHED_LIMIT		0.95	/* - share of the cost; enough
											 * less for add_path() */
#define MONGO_COST_PRECEDING		20	/* - commands: the most that a scan
										 * takes that begins before the query
										 * reads it, perhaps in vain */

/* $group: T for each document, but for NEXT_KEY */
#define MONGO_COST_GROUP			0.5 /* all in one group, less EXAMINED */
#define MONGO_COST_KEY				0.2 /* by a field of one value, less that */
#define MONGO_COST_TENFOLD_GROUPS	0.25	/* 1,000 groups less 100 */
#define MONGO_COST_ACCUMULATOR		0.1 /* {$sum: 1} */
#define MONGO_COST_OPERAND			0.4 /* {$sum: "$field"}, less that */
#define MONGO_COST_OPERATOR			0.7 /* {$add: ["$field", 1]} as the
										 * operand */
#define MONGO_COST_TEST				0.5 /* each of $cond and $gt as the
										 * operand */
#define MONGO_COST_NEXT_KEY			9	/* T a value: by an index on the key
										 * alone */
#define MONGO_COST_MERGE_FACTOR		3	/* - fewer groups by this before a
										 * second $group */

/* $sort: T for each document */
#define MONGO_COST_SET				1.0 /* a $set before it, which makes a new
										 * document */

/* $lookup */
#define MONGO_COST_CLASSIC_LOOKUP	7	/* L a document: outside of the engine */
#define MONGO_COST_LOOKUP_SETUP		8	/* L: planning it, less answering a
										 * find */
#define MONGO_COST_FOUND_DOCUMENT	10	/* T: each further one that it finds */

/* batched joins */
#define MONGO_COST_BATCHED_KEY		9	/* T: one of 1,000 keys of a $in that
										 * finds nothing */
#define MONGO_COST_BATCHED_SEEK		6	/* T: each look for a second key
										 * behind a first one, in a compound
										 * index */
#define MONGO_COST_BATCHED_ROWS		1000	/* - rows that one find asks for */
#define MONGO_COST_UNINDEXED_ROWS	20000	/* - the same without an index */
#define MONGO_COST_BATCHED_FIND		0.98	/* - share of a find's startup;
											 * less than a nested loop's */

/*
 * Of a scan of 'rel' whose remote conditions let 'remote_rows' of 'examined_rows' documents
 * through.  Of a join that is pushed down, its MongoJoin has what finding the rows costs.
 */
extern MongoEstimate mongo_estimate_scan(RelOptInfo *rel, double remote_rows,
										 double examined_rows);

/* The same with nothing but the relation's own restrictions. */
extern MongoEstimate mongo_estimate_plain_scan(RelOptInfo *rel);

/*
 * Of a scan of a table in an order that MongoDB has by an index, which then looks at
 * 'indexed_rows' documents, or by sorting (negative).
 */
extern MongoEstimate mongo_estimate_ordered_scan(RelOptInfo *baserel, const MongoOrder *order,
												 double indexed_rows);

/*
 * Of what one of several processes does that share a scan: 'shares' are these, the leader
 * for less than one.  The rows' way through PostgreSQL is shared; MongoDB's work is not,
 * unless the option remote_parallelism says that it has processors to spare.
 */
extern MongoEstimate mongo_estimate_shared_scan(RelOptInfo *baserel, double shares);

/* A command: fdw_startup_cost, and a round trip. */
extern Cost mongo_command_cost(const MongoRelation *relation);

/* Is what MongoDB sends compressed, if it can do that? */
extern bool mongo_is_compressed(const MongoRelation *relation);

/* Sending so many rows of these columns to PostgreSQL. */
extern Cost mongo_transfer_cost(const MongoRelation *relation, double rows,
								const PathTarget *target);

/* What MongoDB takes to find that many documents of a table. */
extern Cost mongo_examined_cost(const RelOptInfo *baserel, double examined_rows);

/*
 * What sorting takes: as much as PostgreSQL thinks of its own, of which the first 'wanted'
 * are kept only if that is not negative.
 */
extern Cost mongo_sort_stage_cost(double rows, double wanted);

/* In the unit T: an expression; a group's stages for each row, when so many groups come. */
extern double mongo_expression_cost(const bson_t *expression);
extern double mongo_group_cost(const MongoGroup *group, double groups);

/*
 * How many keys a batched join asks for: in each of so many batches of 'rows' outer rows,
 * the distinct values of this expression over them; of each row its own if nothing is known.
 */
extern double mongo_batched_keys(PlannerInfo *root, Expr *outer_key, double rows,
								 double batches);

/*-------------------------------------------------------------------------
 * index.c: which of the indexes that are known find a table's documents, and in
 * which order they give them.
 *
 * Of a compound index, equality on its first fields and a range on the next one
 * serve.  MongoDB chooses its plans itself, so that all this only decides what a
 * scan is thought to cost.
 *-------------------------------------------------------------------------
 */

/*
 * The list 'sought' of MongoClause * with this condition appended, if an index may be of
 * use for it; in the current memory context.
 */
extern List *mongo_note_sought(List *sought, RestrictInfo *rinfo,
							   const MongoCondition *condition);

/*
 * How many documents MongoDB looks at to find those of all these conditions, by the index
 * that serves best: baserel->tuples where none does.
 */
extern double mongo_examined_rows(PlannerInfo *root, RelOptInfo *baserel, List *sought);

/*
 * Can one index find the documents of these conditions (MongoCondition *, of different
 * fields), if not by itself then with equality in the table's restrictions on the fields
 * before theirs?  If so, *share is what these and others that the index tests leave of the
 * documents, and *unique whether at most one is found for a value of each.
 */
extern bool mongo_index_finds(PlannerInfo *root, RelOptInfo *baserel, List *conditions,
							  double *share, bool *unique);

/*
 * Does an index give the documents that the table's restrictions leave in this order,
 * forwards or backwards, by looking at *examined_rows?  Fields that a restriction sets equal
 * to a value may stand anywhere in the index.
 */
extern bool mongo_order_is_indexed(PlannerInfo *root, RelOptInfo *baserel,
								   const MongoOrder *order, double *examined_rows);

/* Has an index the values of this field in order, and tests all of the restrictions? */
extern bool mongo_index_walks(const RelOptInfo *baserel, const char *path);

/*-------------------------------------------------------------------------
 * join.c: joins as $lookup.
 *
 * A join is left-deep: the documents of the outer side, a table or a join of
 * its own, are those that flow through the pipeline, and $lookup puts the
 * document of the inner side, a table, under a prefix into them.
 *
 * https://www.mongodb.com/docs/v6.0/reference/operator/aggregation/lookup/
 *-------------------------------------------------------------------------
 */

/* The equality by which $lookup finds documents through an index. */
typedef struct MongoJoinKey
{
	RestrictInfo *rinfo;
	MongoField	outer;
	MongoField	inner;
	bool		is_text;		/* Strings and ObjectIds may be equal in
								 * PostgreSQL */
	bool		unique;			/* finds one document at most */
	bool		needs_restrictions; /* the index has fields before the key
									 * that these set equal to values */
	bool		fits;			/* what it finds surely fits into an array */
} MongoJoinKey;

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

	/* The same with $unwind right after it; MongoDB merges both stages. */
	MONGO_LOOKUP_UNWOUND,

	/* With a pipeline that tests what decides whether a document is found. */
	MONGO_LOOKUP_PIPELINE,

	/*
	 * Not at all: each outer row is an element of the document, and what is
	 * read of that stands beside it.
	 */
	MONGO_LOOKUP_PARENT
} MongoLookupForm;

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
	List	   *clauses;		/* RestrictInfo, of the join but for the key */
	List	   *filters;		/* RestrictInfo, tested above an outer join */
	MongoPipeline pipeline;		/* with that of the outer side; lookups are
								 * not settled */
	Cost		setup_cost;		/* before the first document comes */
	Cost		cost;			/* of making the joined documents in all */
} MongoJoin;

/* Is it inner, left, semi or anti, which MongoDB or a batched join can make? */
extern bool mongo_join_type_is_known(JoinType type);

/*
 * Of a join's RestrictInfos, those that decide what is joined, and those that are tested
 * above an outer join.
 */
extern void mongo_split_join_clauses(const RelOptInfo *joinrel, JoinType type,
									 const List *restrictlist,
									 List **clauses, List **filters);

/*
 * Are the rows of the query's joins never made again one by one, as an UPDATE or SELECT FOR
 * UPDATE does for rows that were locked?
 */
extern bool mongo_is_plain_query(const PlannerInfo *root);

/* What share of all pairs of an outer row and an inner document have equal keys. */
extern Selectivity mongo_join_key_selectivity(PlannerInfo *root, RelOptInfo *outer,
											  RelOptInfo *inner, RestrictInfo *key);

/*
 * Append what was kept back so that lookups stand in a row: before anything else is appended
 * to the pipeline of a join.
 */
extern void mongo_settle_lookups(MongoPipeline *pipeline);

/*-------------------------------------------------------------------------
 * rescan.c: scans of a correlated subquery that may switch to a hash table.
 *
 * Such a scan sends "column = value of the outer row" for each outer row, perhaps with an
 * aggregate, an ORDER BY or a LIMIT.  The plan does not know the number of outer rows.  So the
 * scan has a second plan below it, in which PostgreSQL does the same over a hashed scan.  After
 * many values, that reads the documents for all values once, into a hash table, and finds the
 * rows of a value there.
 *-------------------------------------------------------------------------
 */

/* "field = value", in either order, as a key of a hash table. */
typedef struct MongoEquality
{
	Expr	   *field;
	Expr	   *value;
	Oid			operator;		/* with the field on its left */
	MongoHashKey key;
} MongoEquality;

/* Is the clause one, of a field of the table and a value of these relations alone? */
extern bool mongo_split_equality(PlannerInfo *root, RelOptInfo *baserel,
								 const RestrictInfo *rinfo, const Bitmapset *outer_relids,
								 MongoEquality *equality);

/* The RestrictInfos that the path of a hashed scan does not send; NIL for any other path. */
extern List *mongo_hashed_keys(const Path *path);

/*
 * The RestrictInfos that such a path sends to MongoDB.  All are tested for each row that is
 * found in the hash table.
 */
extern List *mongo_hashed_conditions(RelOptInfo *baserel, List *clauses, const List *keys);

/* Set how the rows are hashed in 'plan', and the expressions for that in 'scan'. */
extern void mongo_hashed_describe(PlannerInfo *root, RelOptInfo *baserel, const List *keys,
								  ForeignScan *scan, MongoScanPlan *plan);

/*
 * A path that gives the outputs of 'upper', a group over a table; NULL if the table cannot be
 * hashed for the query.
 */
extern Path *mongo_local_aggregate(PlannerInfo *root, RelOptInfo *grouped_rel,
								   const MongoUpperRelation *upper,
								   const GroupPathExtraData *extra);

/*
 * A path that gives the table's columns in these expressions in an order, unless pathkeys is
 * NIL, and only as many rows as LIMIT and OFFSET say if 'limited'; or NULL.
 */
extern Path *mongo_local_order(PlannerInfo *root, RelOptInfo *baserel, List *expressions,
							   List *pathkeys, bool limited);

/* The same above a path of 'rel'; NULL for NULL. */
extern Path *mongo_local_above(PlannerInfo *root, RelOptInfo *rel, Path *path, List *pathkeys,
							   bool limited);

/*
 * Set in 'plan' when its scan, of this path, switches to 'local', and which of its columns are
 * those of 'scan'.
 */
extern void mongo_local_describe(const ForeignPath *path, const Plan *local,
								 const ForeignScan *scan, MongoScanPlan *plan);

/* ------------------------ modify.c: UPDATE and DELETE ------------------------ */

/*
 * Is the whole row wanted of this scan by nobody but the UPDATE or DELETE that core adds it
 * for?  Then what takes part in that is added to *attributes, as pull_varattnos() counts
 * them: the columns in RETURNING.  Others may read as NULL.
 */
extern bool mongo_whole_row_is_junk(PlannerInfo *root, RelOptInfo *baserel,
									Bitmapset **attributes);

/*
 * mongo_append_column_checks
 *		Append to 'conditions', from 'index' on, that the columns of 'quals', a list
 *		of clauses, fit; once for each column.
 *
 * A filter may match a document whose fields do not fit: an array that contains the value, a
 * number with a fraction.  Reading it raises an error.  But a document that is changed unread,
 * or that may be hidden, must not be matched at all.  Columns that are only compared by
 * equality need just a check against arrays.  Returns the next index; or -1 if query
 * predicates, and $expr if 'use_expressions', cannot test a column; 'conditions' is left in any
 * state then.
 */
extern int	mongo_append_column_checks(bson_t *conditions, int index, MongoColumns *columns,
									   List *quals, bool use_expressions);

#endif							/* MONGO_FDW_PLAN_INTERNAL_H */
