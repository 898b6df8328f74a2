/*-------------------------------------------------------------------------
 *
 * plan_internal.h
 *		What the files of src/plan share: types and constants, by file.
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

/* The rows of a path, and its costs. */
typedef struct MongoEstimate
{
	double		rows;
	Cost		startup_cost;
	Cost		total_cost;
} MongoEstimate;

/* -------------------------------- relation.c -------------------------------- */

/*
 * fdw_private of a foreign table's RelOptInfo, and of that of a join that MongoDB can make.
 * For a join, fields about one table are about the outermost one, on whose collection the
 * command runs.
 */
typedef struct MongoRelation
{
	Oid			relid;
	Oid			serverid;
	const MongoTableOptions *options;
	MongoColumns *columns;
	uint32		mismatches;		/* values of type_mismatch that apply to the
								 * columns, as bits 1 << MongoTypeMismatch */
	const bson_t *fit;			/* of documents not skipped; or NULL */
	bool		skips_locally;	/* PostgreSQL has to leave out some, too */
	const List *subplans;		/* Plan *, of the subqueries in restrictions */
	List	   *known;			/* MongoClause *, of restrictions without
								 * parameters, whose translation for the
								 * estimate the plan uses again */
	List	   *indexable;		/* MongoClause *, that an index may serve */
	List	   *served;			/* RestrictInfo *, that the best index tests */
	double		order_share;	/* mongo_order_share() of that index */
	List	   *kept;			/* RestrictInfo *, which PostgreSQL tests
								 * because that costs less */
	bool		natural;		/* reading all documents costs less than the
								 * index that MongoDB would take */
	List	   *restrictions;	/* RestrictInfo *, a copy of baserestrictinfo */
	bool		below_barrier;	/* the query is below a security barrier */
	bool		has_barrier;	/* restrictions hide rows from conditions */
	Index		query_level;	/* PlannerInfo.qual_security_level */
	bool		all_exact;		/* PostgreSQL has no restriction to test */
	const struct MongoPipeline *pipeline;	/* makes the rows exactly; NULL:
											 * PostgreSQL has to test some, or
											 * it is not yet asked for */
	bool		asked_for_pipeline; /* 'pipeline' has been set */
	double		analyzed_rows;	/* documents that ANALYZE counted; 0: none yet */
	double		remote_rows;	/* documents received, before local checks */
	double		examined_rows;	/* documents that MongoDB examines */
	double		round_trip_time;	/* to the server, ms */
	double		bandwidth;		/* bytes a second */
	const struct MongoJoin *join;	/* NULL: a table */
	List	   *bindings;		/* MongoBinding *, by the restrictions */
	bool		unbound;		/* they leave a parameter without a value */
	bool		reads_ordinality;	/* the query may read numbers of elements */
	bool		unwinds;		/* a scan in no order, without LIMIT, finds
								 * documents and unwinds them itself; of a
								 * join: so does its scan, which needs no
								 * other documents */
	double		array_length;	/* rows that unwinding makes of a document */
	double		element_bytes;	/* of a document, for each of them */
	double		unwound_rows;	/* before conditions on elements */
	List	   *lookup_keys;	/* of batched_join.c: clauses tried so far */
	bool		calls_match;	/* mongo_match() is in a restriction, or in a
								 * join clause: */
	bool		matches_outer;	/* only a scan for each outer row can test it */
	Expr	   *score;			/* mongo_score() of it, or NULL */
	const char *score_field;	/* its field in the documents */
	const char *score_meta;		/* what $meta calls it */
} MongoRelation;

/* Switches to the memory context in which 'rel' lives; returns the previous one. */
static inline MemoryContext
mongo_enter_planning(RelOptInfo *rel)
{
	return MemoryContextSwitchTo(GetMemoryChunkContext(rel));
}

/* Tells whether this is the only value of type_mismatch that applies to the columns. */
static inline bool
mongo_mismatches_are(const MongoRelation *relation, MongoTypeMismatch value)
{
	return (relation->mismatches & ~(1 << value)) == 0;
}

extern void mongo_refuse_returned_system_columns(List *returning, Index target,
												 Oid foreigntableid);

/* -------------------------------- clauses.c --------------------------------- */

/* A clause and its translation. */
typedef struct MongoClause
{
	RestrictInfo *rinfo;		/* NULL: none, as for keys of a batched join */
	MongoCondition condition;
	bson_t	   *match;			/* its filter; NULL if not needed */
} MongoClause;

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
	List	   *local;			/* tested by PostgreSQL, perhaps again */
	List	   *hiding;			/* those of 'local' that hide rows, by index */
	List	   *exact;			/* tested by MongoDB alone */
	List	   *sent;			/* MongoClause *, of what MongoDB tests */
	const bson_t *filter;		/* ... as one filter; empty: none */
	bool		unwinds;		/* the scan unwinds, and so PostgreSQL tests
								 * conditions on elements */
} MongoScanClauses;

/* "field = value", in either order, as a key of a hash table. */
typedef struct MongoEquality
{
	Expr	   *field;
	Expr	   *value;
	Oid			opno;			/* with the field on its left */
	MongoHashKey key;
} MongoEquality;

extern bool mongo_is_securely_promotable(RelOptInfo *baserel, RestrictInfo *rinfo,
										 const bson_t *match);
extern bool mongo_join_is_secure(PlannerInfo *root, RelOptInfo *joinrel,
								 List *clauses, const bson_t *stages);
extern int	mongo_append_column_checks(bson_t *conditions, int index, MongoColumns *columns,
									   List *quals, bool use_expressions);
extern bool mongo_keeps_collation(const MongoRelation *relation);
extern MongoTranslation mongo_translation_of(const MongoRelation *relation);
extern bool mongo_is_declared_not_null(MongoColumns *columns, AttrNumber attnum);
extern MongoCondition mongo_translate_restriction(MongoTranslation *translation,
												  RelOptInfo *baserel,
												  RestrictInfo *rinfo, bson_t *match);
extern bool mongo_is_binding(const List *bindings, const RestrictInfo *rinfo);
extern List *mongo_find_bindings(const MongoRelation *relation, const List *rinfos);
extern bool mongo_binds_parameters(const List *bindings);
extern MongoClause *mongo_clause_create(RestrictInfo *rinfo, const MongoCondition *condition,
										bson_t *match);
extern const MongoClause *mongo_known_clause(const RelOptInfo *baserel, const RestrictInfo *rinfo);
extern int	mongo_unwound_depth(const MongoTableOptions *options, MongoColumns *columns,
								Node *expression);
extern void mongo_classify_clauses(MongoTranslation *translation, RelOptInfo *baserel,
								   List *scan_clauses, bool unwinds, MongoScanClauses *clauses);
extern const bson_t *mongo_conjunction(const List *filters);
extern bool mongo_split_equality(PlannerInfo *root, RelOptInfo *baserel, const RestrictInfo *rinfo,
								 const Bitmapset *outer_relids, MongoEquality *equality);

/* -------------------------------- pipeline.c -------------------------------- */

/*
 * The stages so far, and how an expression over their output is translated:
 * translation.columns are the tables whose documents the last stage returns (NULL after a
 * $group), translation.computed what it computed.
 */
typedef struct MongoPipeline
{
	MongoTranslation translation;
	bson_t	   *stages;			/* an array's elements, "0" and so on */
	int			nstages;
	const bson_t *only_match;	/* the filter, if all is one $match; or NULL */
	bool		may_need_disk;	/* a stage may hold more than 100 MB */
	bool		reads_all;		/* groups or counts all documents */
} MongoPipeline;

extern void mongo_pipeline_append(MongoPipeline *pipeline, const char *name,
								  const bson_t *specification);
extern void mongo_pipeline_project(MongoPipeline *pipeline, List *paths);
extern MongoPipeline mongo_pipeline_copy(const MongoPipeline *source);
extern bool mongo_has_pseudoconstant(const List *rinfos);
extern MongoNoArray mongo_no_array(const MongoRelation *relation);
extern List *mongo_document_conditions(const MongoRelation *relation, MongoTranslation *translation,
									   const MongoScanClauses *clauses);
extern void mongo_pipeline_make_rows(MongoPipeline *pipeline, const MongoRelation *relation,
									 const MongoScanClauses *clauses);
extern const MongoPipeline *mongo_exact_pipeline(RelOptInfo *rel);
extern Expr *mongo_reads_score(PlannerInfo *root, const RelOptInfo *baserel);
extern void mongo_note_score(PlannerInfo *root, RelOptInfo *baserel);
extern bool mongo_is_score_order(const MongoRelation *relation, const List *pathkeys);
extern void mongo_append_score(bson_t *document, const MongoRelation *relation);
extern void mongo_add_score_column(const RelOptInfo *baserel, MongoScanPlan *plan,
								   ForeignScan *scan);

/* --------------------------------- upper.c ---------------------------------- */

/* A value that the foreign scan returns: an entry of its fdw_scan_tlist. */
typedef struct MongoOutput
{
	Expr	   *expression;		/* a group's key or an aggregate */
	MongoColumn *column;		/* without name and index */
	MongoColumn *count;			/* of an average, with its sum; or NULL */
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
	Path	   *second;			/* what PostgreSQL does in its place, see
								 * mongo_second_aggregate(); or NULL */
	double		sorted_rows;	/* the input of the $sort; 0: there is none */
	MongoEstimate estimate;
} MongoUpperRelation;

/* --------------------------------- group.c ---------------------------------- */

/* One of $group's accumulators; its field is "a0" and so on. */
typedef struct MongoAccumulator
{
	const char *operator_name;	/* "$sum", "$min" or "$max" */
	bson_t	   *operand;
	bool		distinct;		/* over distinct values, in the second stage */
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
	MongoValue	distinct_value; /* its field is "_id.d", or "_id" */
	bson_t	   *results;		/* of the $set, with fields "r0", "r1" */
	int			nresults;
	List	   *outputs;		/* MongoOutput *, as in MongoUpperRelation */
	List	   *computed;		/* MongoComputed *: those but averages */
} MongoGroup;

extern bool mongo_group_value(const MongoScope *scope, Node *node, bool ordered,
							  MongoValue *value);
extern bool mongo_group_add_key(MongoGroup *group, Expr *expression);
extern Node *mongo_group_lone_key(const MongoGroup *group);
extern void mongo_group_append(MongoGroup *group, bool walks, bool merge, MongoPipeline *pipeline);
extern bool mongo_group_add_aggregate(MongoGroup *group, Aggref *aggregate);

/* --------------------------------- order.c ---------------------------------- */

/* As many keys as a sort or a compound index may have. */
#define MONGO_MAX_SORT_KEYS		32

/* A key of an order: a field. */
typedef struct MongoOrderKey
{
	const char *path;			/* UTF-8 */
	bool		ascending;
	bool		indexed;		/* an index on it alone has an order */
	bool		excludes_arrays;	/* they do not fit; MongoDB's sort would
									 * fail for those of two keys */
} MongoOrderKey;

/*
 * The rows that one of a scan's commands returns, if MongoDB's order differs from PostgreSQL's for
 * the first key.  Each command can use an index.
 */
typedef struct MongoSortPart
{
	const char *match;			/* template over the first key; NULL: all rows */
	bool		has_one_value;	/* the first key; only the others count */
} MongoSortPart;

/* An order in which a scan can return its rows. */
typedef struct MongoOrder
{
	MongoOrderKey keys[MONGO_MAX_SORT_KEYS];	/* of different fields */
	int			nkeys;			/* 0: the order is that of mongo_score() */
	bool		unindexed;		/* no index is considered */
	MongoSortPart parts[3];
	int			nparts;
	MongoField	first;			/* of the first key */
	Expr	   *expression;		/* its member of the pathkey's class */
} MongoOrder;

extern bool mongo_find_order(RelOptInfo *baserel, List *pathkeys, MongoOrder *order);
extern bool mongo_needs_all_parts(PlannerInfo *root, RelOptInfo *baserel, List *pathkeys);
extern void mongo_append_order(const MongoRelation *relation, const MongoOrder *order, int part,
							   bson_t *match, bson_t *sort);

/* --------------------------------- index.c ---------------------------------- */

extern List *mongo_append_indexable(List *indexable, RestrictInfo *rinfo,
									const MongoCondition *condition);
extern double mongo_examined_rows(PlannerInfo *root, RelOptInfo *baserel, List *indexable,
								  List **served);
extern bool mongo_index_finds(PlannerInfo *root, RelOptInfo *baserel, List *conditions,
							  double *share, bool *unique);
extern bool mongo_order_is_indexed(PlannerInfo *root, RelOptInfo *baserel,
								   const MongoOrder *order, double *examined_rows);
extern double mongo_range_share(const RelOptInfo *baserel, List *rinfos);
extern void mongo_choose_natural(PlannerInfo *root, RelOptInfo *baserel, double filter_cost);
extern bool mongo_index_covers(const RelOptInfo *baserel);
extern bool mongo_index_walks(const RelOptInfo *baserel, const char *path);

/* ---------------------------------- cost.c ---------------------------------- */

extern Cost mongo_command_cost(const MongoRelation *relation);
extern bool mongo_is_compressed(const MongoRelation *relation);
extern Cost mongo_transfer_cost(const MongoRelation *relation, double rows,
								const PathTarget *target);
extern double mongo_order_of_value(double share);
extern double mongo_order_share(PlannerInfo *root, const RelOptInfo *baserel, const char *path,
								Node *expression);
extern double mongo_fetching_cost(double order_share);
extern Cost mongo_indexed_cost(const MongoRelation *relation, double rows, double order_share);
extern Cost mongo_examined_cost(const RelOptInfo *baserel, double examined_rows);
extern MongoEstimate mongo_estimate_scan(RelOptInfo *rel, double remote_rows,
										 Cost examined_cost);
extern MongoEstimate mongo_estimate_plain_scan(RelOptInfo *rel);
extern MongoEstimate mongo_estimate_pipeline(RelOptInfo *rel);
extern MongoEstimate mongo_estimate_ordered_scan(PlannerInfo *root, RelOptInfo *baserel,
												 const MongoOrder *order, double indexed_rows);
extern Cost mongo_sort_stage_cost(double rows, double wanted);
extern double mongo_filter_cost(const MongoTranslation *translation, const bson_t *filter);
extern double mongo_expression_cost(const bson_t *expression);
extern double mongo_group_cost(const MongoGroup *group, double groups);
extern double mongo_batched_keys(PlannerInfo *root, Expr *outer_key, double rows, double batches);

/* ---------------------------------- join.c ---------------------------------- */

/* The equality by which $lookup finds documents through an index. */
typedef struct MongoJoinKey
{
	RestrictInfo *rinfo;
	MongoField	outer;
	MongoField	inner;
	bool		is_text;		/* may equal both a String and an ObjectId */
	bool		unique;			/* finds one document at most */
} MongoJoinKey;

typedef struct MongoJoin
{
	JoinType	type;			/* JOIN_INNER or JOIN_LEFT */
	RelOptInfo *outer;			/* a table or a join */
	RelOptInfo *inner;			/* a table */
	bool		with_parent;	/* nothing is looked up: each outer row is an
								 * element of the inner document */
	MongoColumns *columns;		/* of the inner table, under its prefix if it
								 * is looked up */
	MongoJoinKey key;
	List	   *restrictions;	/* RestrictInfo, all of the join: the key, ... */
	List	   *clauses;		/* ... those that decide what is joined, */
	List	   *filters;		/* and those tested above an outer join */
	Cost		setup_cost;		/* before the first document comes */
	Cost		cost;			/* of making the joined documents in all */
} MongoJoin;

extern const MongoPipeline *mongo_pipeline_of(PlannerInfo *root, RelOptInfo *rel);
extern void mongo_split_join_clauses(const RelOptInfo *joinrel, JoinType type,
									 const List *restrictlist, List **clauses, List **filters);
extern Selectivity mongo_join_key_selectivity(PlannerInfo *root, RelOptInfo *outer,
											  RelOptInfo *inner, RestrictInfo *key);

/* ------------------------------ batched_join.c ------------------------------ */

/* The keys that a hashed scan looks up for many outer rows at a time. */
typedef struct MongoLookup
{
	List	   *clauses;		/* RestrictInfo * */
	List	   *keys;			/* MongoEquality *, of these clauses */
	bool		indexed;		/* an index finds the documents */
	int			rows;			/* outer rows, for which ... */
	double		found;			/* so many documents are found */
	Cost		cost;			/* ... at this cost */
} MongoLookup;

extern List *mongo_batched_conditions(const List *keys);
extern bool mongo_choose_lookup(PlannerInfo *root, RelOptInfo *baserel, const List *clauses,
								List *conditions, double rows, MongoLookup *lookup);

/* ------------------------------ second_plan.c ------------------------------- */

/* What a ForeignPath has decided in addition to its relation: the member of its fdw_private. */
typedef struct MongoPathDetails
{
	bool		limited;		/* LIMIT and OFFSET are pushed down */
	List	   *hash_clauses;	/* RestrictInfo *, by which a hashed scan
								 * hashes rows, and which it does not send */
	const MongoLookup *lookup;	/* how a hashed scan finds the documents of
								 * many outer rows; or NULL */
	bool		only_looks_up;	/* all documents would be too many */
	List	   *batch_keys;		/* MongoEquality *, of the keys that a batched
								 * join looks up */
	bool		grouped;		/* the only key, a field, is all that is read,
								 * and MongoDB returns it once */
	bool		all_rows;		/* the scan is read to its end */
	Cost		total_cost;		/* of the scan alone, not in a batch */
	Cost		run_cost;		/* the same, of the rows that the query wants;
								 * of paths with a second plan */
} MongoPathDetails;

extern List *mongo_hashed_conditions(RelOptInfo *baserel, List *clauses, const List *keys);
extern void mongo_hashed_describe(PlannerInfo *root, RelOptInfo *baserel,
								  const MongoPathDetails *details, ForeignScan *scan,
								  MongoScanPlan *plan);
extern Path *mongo_second_aggregate(PlannerInfo *root, RelOptInfo *grouped_rel,
									const MongoUpperRelation *upper,
									const GroupPathExtraData *extra);
extern Path *mongo_second_above(PlannerInfo *root, RelOptInfo *rel, Path *path, List *pathkeys,
								bool limited);
extern Path *mongo_second_order(PlannerInfo *root, RelOptInfo *baserel, List *expressions,
								List *pathkeys, bool limited);
extern bool mongo_may_fail(Node *node, void *context);
extern bool mongo_second_describe(const ForeignPath *path, const Plan *second, const ForeignScan *scan,
								  MongoScanPlan *plan);

/* ---------------------------------- path.c ---------------------------------- */

extern Path *mongo_foreign_path(PlannerInfo *root, RelOptInfo *rel, PathTarget *target,
								MongoEstimate estimate, List *pathkeys, Relids required_outer,
								Path *outer_path, const MongoPathDetails *details);
extern MongoPathDetails mongo_path_details(const ForeignPath *path);
extern const ForeignPath *mongo_hashed_scan_below(const Path *path);
extern bool mongo_reads_all(const PlannerInfo *root, const List *pathkeys);
extern double mongo_wanted_share(const PlannerInfo *root, double rows);
extern bool mongo_path_may_pay(RelOptInfo *joinrel, const Path *path);
extern void mongo_keep_out_of_workers(RelOptInfo *rel);

/* --------------------------- batched_subqueries.c --------------------------- */

extern void mongo_batch_subqueries(PlannedStmt *statement, int options,
								   const CustomScanMethods *methods);

/* -------------------------------- command.c --------------------------------- */

extern Const *mongo_pipeline_command(const MongoRelation *relation, const MongoPipeline *pipeline);
extern Const *mongo_count_command(const MongoRelation *relation, const MongoPipeline *pipeline);
extern Const *mongo_find_command(const MongoRelation *relation, const MongoTranslation *translation,
								 List *conditions, const bson_t *projection, const bson_t *sort,
								 bool natural);
extern List *mongo_scan_commands(RelOptInfo *baserel, MongoTranslation *translation,
								 const MongoScanClauses *clauses, const bson_t *projection,
								 List *pathkeys, bool natural);
extern Const *mongo_direct_command(const Const *find_command, const MongoRelation *relation,
								   List *quals, const MongoDirectPlan *direct,
								   bool *simple_collation);

/* --------------------------------- modify.c --------------------------------- */

extern bool mongo_whole_row_is_junk(PlannerInfo *root, RelOptInfo *baserel,
									Bitmapset **attributes);

#endif							/* MONGO_FDW_PLAN_INTERNAL_H */
