/*-------------------------------------------------------------------------
 *
 * group.h
 *		A $group in the making: keys, accumulators and what follows from them.
 *		In group.c and group_aggregate.c.
 *
 * A group is made in one stage or in two.  Two are needed for DISTINCT inside
 * an aggregate, where the first groups by what is to be distinct as well; and
 * two are cheaper where keys that PostgreSQL holds equal differ in MongoDB
 * (a missing field and a null, a String and an ObjectId): the first stage takes
 * keys as they are, and the second merges its few groups.  That works because
 * the accumulators of the second stage are those of the first once more: a sum
 * of sums, a minimum of minima.
 *
 * A $set after them makes values of the accumulators that are aggregates.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_GROUP_H
#define MONGO_FDW_GROUP_H

#include "compat.h"

#include "expression.h"
#include "upper.h"

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
	List	   *keys;			/* MongoGroupKey * */
	List	   *accumulators;	/* MongoAccumulator * */
	Node	   *distinct;		/* what DISTINCT aggregates are over, or NULL */
	MongoValue	distinct_value; /* the same; its field is "_id.d" */
	bson_t	   *results;		/* specification of the $set; its fields are
								 * "r0" and so on */
	int			nresults;
	List	   *outputs;		/* MongoOutput *, as in MongoUpperRelation */
	List	   *computed;		/* MongoComputed *: those that MongoDB
								 * finishes */
} MongoGroup;

/*
 * mongo_group_add_key
 *		Group by 'expression'; false when it is not shippable.
 */
extern bool mongo_group_add_key(MongoGroup *group, Expr *expression);

/*
 * mongo_group_add_aggregate
 *		Compute an aggregate; false when it has no exact translation.
 *
 * All keys must have been added before.  The aggregate may be partial, if
 * its state is a value of SQL (aggsplit).
 */
extern bool mongo_group_add_aggregate(MongoGroup *group, Aggref *aggregate);

/*
 * mongo_group_value
 *		An expression whose values are equal in MongoDB where they are in
 *		PostgreSQL, and in order too if 'ordered', but for null and NaN.
 *
 * False when there is none.
 */
extern bool mongo_group_value(const MongoScope *scope, Node *node, bool ordered,
							  MongoValue *value);

/*
 * mongo_group_never_null
 *		Is the expression a column that is declared NOT NULL?
 */
extern bool mongo_group_never_null(const MongoGroup *group, Node *node);

/* mongo_field_expression: "$path", palloc'd. */
extern bson_t *mongo_field_expression(const char *path);

/*
 * mongo_group_append
 *		Append the stages to the pipeline, whose translation from then on is
 *		about what they have computed.
 *
 * 'merge' makes two stages of keys that one could take, too.
 */
extern void mongo_group_append(const MongoGroup *group, bool merge,
							   MongoPipeline *pipeline);

#endif							/* MONGO_FDW_GROUP_H */
