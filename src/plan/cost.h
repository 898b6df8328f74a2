/*-------------------------------------------------------------------------
 *
 * cost.h
 *		What MongoDB's work costs: the constants, and what is computed of them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COST_H
#define MONGO_FDW_COST_H

#include "compat.h"

#include "nodes/pathnodes.h"

#include "group.h"
#include "order.h"

/*
 * Every constant, in one of two units:
 *
 *	T	fdw_tuple_cost, which stands for sending and reading one small document
 *	L	fdw_lookup_cost, which stands for one $lookup inside MongoDB's query engine
 *
 * Measured with MongoDB 6.0 on documents of some 100 bytes.  "make bench ONLY=costs"
 * measures them on another machine, in the way that stands behind each, and prints
 * these lines with its own figures.  Those marked "-" are not measured, but chosen.
 */

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
#define MONGO_COST_PROJECTION_BYTES	150 /* bytes sent while a field is picked */
#define MONGO_COST_PUSHED_LIMIT		0.95	/* - share of the cost; enough
											 * less for add_path() */

/* $group: T for each document, but for NEXT_KEY */
#define MONGO_COST_GROUP			0.5 /* all in one group, less EXAMINED */
#define MONGO_COST_KEY				0.2 /* by a field of one value, less that */
#define MONGO_COST_TENFOLD_GROUPS	0.25	/* 1,000 groups less 100 */
#define MONGO_COST_ACCUMULATOR		0.1 /* {$sum: 1} */
#define MONGO_COST_OPERAND			0.4 /* {$sum: "$field"}, less that */
#define MONGO_COST_OPERATOR			0.7 /* {$add: ["$field", 1]} as the
										 * operand */
#define MONGO_COST_TEST				0.2 /* each of $cond and $gt as the
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
#define MONGO_COST_FOUND_DOCUMENT	0.5 /* T: found by it and copied */

/* batched joins */
#define MONGO_COST_BATCHED_KEY		9	/* T: one of 1,000 keys of a $in that
										 * finds nothing */
#define MONGO_COST_BATCHED_SEEK		6	/* T: each look for a second key
										 * behind a first one, in a compound
										 * index */
#define MONGO_COST_BATCHED_ROWS		1000	/* - rows that one find asks for */
#define MONGO_COST_BATCHED_FIND		0.98	/* - share of a find's startup;
											 * less than a nested loop's */

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
 * mongo_estimate_ordered_scan
 *		The costs of a scan of a table in an order that MongoDB has by sorting or by
 *		an index, which then looks at 'indexed_rows' documents; negative: it sorts.
 *
 * Each part of an order is a command, which finds its documents among all unless by
 * an index.
 */
extern void mongo_estimate_ordered_scan(RelOptInfo *baserel, List *pathkeys,
										double indexed_rows,
										Cost *startup_cost, Cost *total_cost);

/*
 * mongo_estimate_shared_scan
 *		The same of what one of several processes does that share a scan.
 *
 * 'shares' are the processes, the leader for less than one.  The rows' way through
 * PostgreSQL is shared among them.  MongoDB's work is not, unless the option
 * remote_parallelism says that it has processors to spare.
 */
extern void mongo_estimate_shared_scan(RelOptInfo *baserel, double shares,
									   Cost *startup_cost, Cost *total_cost);

/*
 * mongo_examined_cost
 *		What MongoDB takes to find that many documents of a table.
 */
extern Cost mongo_examined_cost(const RelOptInfo *baserel, double examined_rows);

/*
 * mongo_sort_stage_cost
 *		What sorting takes: as much as PostgreSQL thinks of its own, of which the
 *		first 'wanted' are kept only if that is not negative.
 */
extern Cost mongo_sort_stage_cost(double rows, double wanted);

/*
 * mongo_expression_cost
 *		What evaluating an expression takes MongoDB, in the unit T.
 */
extern double mongo_expression_cost(const bson_t *expression);

/*
 * mongo_group_cost
 *		What the stages of a group take MongoDB for each row that comes in, in the
 *		unit T, when so many groups come of the rows.
 */
extern double mongo_group_cost(const MongoGroup *group, double groups);

/*
 * mongo_batched_keys
 *		How many keys a batched join asks for: in each of so many batches of 'rows'
 *		outer rows, the distinct values of this expression over them.
 *
 * Where nothing is known of the expression, each row has its own.
 */
extern double mongo_batched_keys(PlannerInfo *root, Expr *outer_key, double rows,
								 double batches);

#endif							/* MONGO_FDW_COST_H */
