/*-------------------------------------------------------------------------
 *
 * batched_join.h
 *		Nested loops that ask for the inner documents of many rows at a time.
 *
 * A nested loop over 10,000 rows with a foreign table inside is 10,000 finds.
 * This join, a CustomScan, reads a batch of outer rows, asks for all documents
 * with any of their keys by one find ($in), and joins here.  Nothing rests on
 * what MongoDB takes for equal: all clauses are evaluated on each pair of rows
 * that the keys' hashes bring together.  What is kept in memory is the batch of
 * outer rows; the documents stream past it.
 *
 * Its plan has two children: the outer plan, and a foreign scan with the
 * additional condition "key = ANY (keys)".  The keys are no parameter that
 * PostgreSQL knows: a CaseTestExpr stands for them, whose value is in the scan's
 * expression context.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_BATCHED_JOIN_H
#define MONGO_FDW_BATCHED_JOIN_H

#include "compat.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* custom_private of the CustomScan, unpacked. */
typedef struct MongoBatchedJoin
{
	JoinType	type;			/* JOIN_INNER, _LEFT, _SEMI or _ANTI */
	bool		all_rows;		/* the query will likely read to the end */
	Oid			key_type;		/* of the outer key */
	Oid			outer_hash;		/* functions */
	Oid			inner_hash;
	Oid			collation;
} MongoBatchedJoin;

/* custom_exprs: what is evaluated over a pair of rows. */
enum
{
	MONGO_BATCHED_CLAUSES,		/* of the join, an implicit AND */
	MONGO_BATCHED_OUTER_KEY,
	MONGO_BATCHED_INNER_KEY
};

/*
 * mongo_batched_join_to_list, mongo_batched_join_from_list
 *		As nodes that a plan can hold, and back.
 */
extern List *mongo_batched_join_to_list(const MongoBatchedJoin *join);
extern MongoBatchedJoin mongo_batched_join_from_list(List *list);

/*
 * mongo_install_batched_joins
 *		Have the planner consider such joins from now on, to be executed by
 *		these methods.  Called once, by _PG_init().
 */
extern void mongo_install_batched_joins(const CustomScanMethods *methods);

/* src/exec/batched_join.c */
extern const CustomScanMethods mongo_batched_join_methods;

#endif							/* MONGO_FDW_BATCHED_JOIN_H */
