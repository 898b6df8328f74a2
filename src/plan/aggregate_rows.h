/*-------------------------------------------------------------------------
 *
 * aggregate_rows.h
 *		The table of aggregate functions: what $group accumulates for each, and
 *		what becomes of that.
 *
 * For group_aggregate.c; the templates are those of mongo_expand_template().
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_AGGREGATE_ROWS_H
#define MONGO_FDW_AGGREGATE_ROWS_H

#include "compat.h"

#include "plan_nodes.h"

#define MONGO_MAX_ACCUMULATORS	3
#define MONGO_MAX_FUNCTIONS		8

/* In which form the argument is accumulated. */
typedef enum MongoArgumentForm
{
	MONGO_ARGUMENT_NONE,		/* count(*) has none */
	MONGO_ARGUMENT_RAW,			/* as the document has it */
	MONGO_ARGUMENT_DECIMAL,		/* as a Decimal128 */
	MONGO_ARGUMENT_ORDERED		/* so that MongoDB's order is PostgreSQL's */
} MongoArgumentForm;

/* Arguments of an operand's template: the value in that form, and as it is. */
#define MONGO_VALUE		"@1"
#define MONGO_RAW_VALUE	"@2"

/*
 * 1 for a value, 0 for null and for what is missing or undefined.  The former are
 * above the latter in BSON's order, but for MinKey, which some types read.
 */
#define MONGO_IS_VALUE	"{$cond: [{$gt: [" MONGO_RAW_VALUE ", null]}, 1, 0]}"
#define MONGO_IS_ANY_VALUE \
	"{$cond: [{$eq: [{$ifNull: [" MONGO_RAW_VALUE ", null]}, null]}, 0, 1]}"

typedef struct MongoAccumulatorRow
{
	const char *operator;
	const char *operand;		/* a template */
} MongoAccumulatorRow;

/* How a family of aggregate functions is computed. */
typedef struct MongoRecipe
{
	MongoArgumentForm form;
	MongoAccumulatorRow accumulators[MONGO_MAX_ACCUMULATORS];
	MongoAccumulatorRow guard;	/* only where digits may not suffice */

	/* Templates over the accumulators, @1 and so on; @4 is 2^53. */
	const char *result;			/* NULL: the first accumulator */
	const char *guarded;		/* instead, with the guard, which is @3 */
	const char *not_null;		/* instead of 'result' if no value is NULL;
								 * then the first accumulator is enough */
	MongoFinish finish;
	Oid			result_type;	/* to be finished; else the aggregate's */
	bool		distinct_is_same;	/* repeated values make no difference */
	bool		has_state;		/* the result is PostgreSQL's own partial
								 * state */
	bool		zero_if_empty;
} MongoRecipe;

typedef struct MongoAggregateRow
{
	const MongoRecipe *recipe;
	const MongoRecipe *with_nan;	/* where the argument may be NaN; NULL:
									 * the same */
	Oid			functions[MONGO_MAX_FUNCTIONS]; /* ends with InvalidOid,
												 * unless full */
} MongoAggregateRow;

/*
 * mongo_aggregate_row
 *		The row of an aggregate function, or NULL.
 */
extern const MongoAggregateRow *mongo_aggregate_row(Oid function);

#endif							/* MONGO_FDW_AGGREGATE_ROWS_H */
