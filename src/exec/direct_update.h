/*-------------------------------------------------------------------------
 *
 * direct_update.h
 *		What an UPDATE that is one command does to each document.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DIRECT_UPDATE_H
#define MONGO_FDW_DIRECT_UPDATE_H

#include "compat.h"

#include "plan_nodes.h"

#include "utils/rel.h"

/* An assignment with the value of its expression, as the column's type. */
typedef struct MongoNewValue
{
	const char *path;
	const char *name;
	bson_type_t bson_type;		/* what its field is declared to be */
	Form_pg_attribute attribute;
	MongoAssignmentKind kind;
	List	   *keys;
	Datum		value;
	bool		isnull;
} MongoNewValue;

/*
 * mongo_describe_assignment
 *		Set what does not depend on the value.
 */
extern void mongo_describe_assignment(Relation relation,
									  const MongoAssignment *assignment,
									  MongoNewValue *new);

/*
 * mongo_build_update
 *		Update operators, or a pipeline {"0": stage} where a value is computed
 *		from the column's own, in the current memory context.
 *
 * Raises what encoding raises.
 */
extern bson_t *mongo_build_update(const MongoNewValue *values, int count,
								  bool write_null);

#endif							/* MONGO_FDW_DIRECT_UPDATE_H */
