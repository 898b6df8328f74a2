/*-------------------------------------------------------------------------
 *
 * cost.h
 *		The constants of costs and estimates, in the order of what they are about.
 *
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
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COST_H
#define MONGO_FDW_COST_H

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
#define MONGO_COST_EXAMINED			0.6 /* looked at: a scan that finds
										 * nothing */
#define MONGO_COST_INDEXED			1.7 /* the same by an index that has the
										 * collection's order */
#define MONGO_COST_FETCHED			4.5 /* by one that has not: one document
										 * here and one there */
#define MONGO_COST_COVERED			0.4 /* a key of an index alone */
#define MONGO_COST_NEAR_VALUES		10	/* - of so many values, half of the
										 * documents of each are found as in
										 * order: 0.8, 0.7, 0.3 and 0 of those
										 * of 2, 5, 20 and 100 values */
#define MONGO_COST_PART_TEST		0.2 /* also tested for null and NaN */

/* arrays: T for each element */
#define MONGO_COST_UNWOUND			1.0 /* - $unwind, less EXAMINED */
#define MONGO_COST_UNWOUND_SENT		2.0 /* - projected and sent, less what a
										 * small document takes */
#define MONGO_COST_UNWOUND_HERE		0.4 /* - unwound and read by a scan */

/*
 * filters: T for each document.  By hand, as mongod's CPU time over 200,000 documents of 250 bytes
 * on a busy machine: 0.06 microseconds for one of 100 comparisons of an $or, 0.19 of Decimal128;
 * 0.005 for an element of $in in an expression.
 */
#define MONGO_COST_LEAF				0.25	/* - each comparison */
#define MONGO_COST_ELEMENT			0.02	/* - each element of an array in
											 * an expression */

/* scans: others */
#define MONGO_COST_PROJECTION_BYTES	150 /* bytes sent within a machine while a
										 * field is picked */
#define MONGO_COST_PUSHED_LIMIT		0.95	/* - share of the cost; enough
											 * less for add_path() */
#define MONGO_COST_KEPT				1.25	/* - times what PostgreSQL's test
											 * of a condition costs, and ... */
#define MONGO_COST_LEAST_KEPT		(4 * MONGO_COST_MILLISECOND)	/* - more than that:
																	 * MongoDB does not test
																	 * it */
#define MONGO_COST_PRECEDING		20	/* - commands: the most that a scan
										 * takes that begins before the query
										 * reads it, perhaps in vain */
#define MONGO_COST_HASHED			2.0 /* - T: put into a file and a hash
										 * table; 0.54 microseconds of CPU
										 * time on a busy machine */

#define MONGO_COST_PIPELINE			2	/* - fdw_startup_cost: for a pipeline
										 * instead of a find, of however few
										 * documents */

/*
 * $group: T for each document, but for NEXT_KEY.  One processor takes twice as much for the first
 * four, another next to nothing; fetching takes both about as long there, with more CPU time.
 */
#define MONGO_COST_GROUP			0.25	/* all in one group, less EXAMINED */
#define MONGO_COST_KEY				0.1 /* by a field of one value, less that */
#define MONGO_COST_TENFOLD_GROUPS	0.25	/* 1,000 groups less 100 */
#define MONGO_COST_ACCUMULATOR		0.06	/* {$sum: 1} */
#define MONGO_COST_OPERAND			0.2 /* {$sum: "$field"}, less that */
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
#define MONGO_COST_LOOKUP			7	/* L a document: with $unwind, outside
										 * of the engine */
#define MONGO_COST_LOOKUP_SETUP		8	/* L: planning it, less answering a
										 * find */
#define MONGO_COST_FOUND_DOCUMENT	10	/* T: each further one that it finds */

/* batched joins */
#define MONGO_COST_BATCHED_KEY		5	/* T: one of 1,000 keys of a $in,
										 * between values, that finds nothing */
#define MONGO_COST_BATCHED_SEEK		6	/* T: each look for a second key
										 * behind a first one, in a compound
										 * index */
#define MONGO_COST_BATCHED_ROWS		1000	/* - rows that one find asks for */
#define MONGO_COST_UNINDEXED_ROWS	20000	/* - the same without an index */
#define MONGO_COST_BATCHED_FIND		0.98	/* - share of a find's startup;
											 * less than a nested loop's */

#endif							/* MONGO_FDW_COST_H */
