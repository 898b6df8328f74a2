/*-------------------------------------------------------------------------
 *
 * remote_plan.h
 *		What the reply to MongoDB's command explain says, as lines of text.
 *
 * https://www.mongodb.com/docs/manual/reference/explain-results/
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_REMOTE_PLAN_H
#define MONGO_FDW_REMOTE_PLAN_H

#include "compat.h"

#include "nodes/pg_list.h"

/* What a command looked at; all -1 without execution statistics. */
typedef struct MongoExamined
{
	int64		keys;			/* of indexes */
	int64		documents;
	int64		milliseconds;
} MongoExamined;

/*
 * mongo_remote_plan_lines
 *		A list of strings, in the database's encoding: each stage of the winning
 *		plan, with what it reads below it, further in.
 *
 * Takes the replies to explain of find, count, aggregate, update and delete,
 * whether MongoDB's classic engine or the slot-based one runs them.  NIL when
 * there is no plan in the reply.  Everything is palloc'd.
 */
extern List *mongo_remote_plan_lines(const bson_t *reply, MongoExamined *examined);

#endif							/* MONGO_FDW_REMOTE_PLAN_H */
