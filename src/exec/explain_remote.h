/*-------------------------------------------------------------------------
 *
 * explain_remote.h
 *		MongoDB's own plan in EXPLAIN (setting mongo_fdw.explain_remote).
 *
 * This is the one thing for which EXPLAIN talks to MongoDB.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_EXPLAIN_REMOTE_H
#define MONGO_FDW_EXPLAIN_REMOTE_H

#include "compat.h"

#include "commands/explain.h"
#include "foreign/foreign.h"
#include "remote_plan.h"

/*
 * mongo_ask_for_plan
 *		The winning plan of 'command' by MongoDB's command explain, as the lines of
 *		mongo_remote_plan_lines(), or one line that says why there is none.
 *
 * 'max_time_ms', if not 0, bounds the time that MongoDB may take.  *examined is all
 * -1 where the verbosity does not tell.  That MongoDB cannot be reached is raised.
 */
extern List *mongo_ask_for_plan(UserMapping *user, const char *database,
								const bson_t *command, const char *verbosity,
								int max_time_ms, MongoExamined *examined);

/*
 * mongo_explain_remote
 *		Ask MongoDB how it runs 'command', and show the winning plan, a line for
 *		each stage; under ANALYZE also what it examined.
 *
 * Under ANALYZE MongoDB runs the command once more for that (but changes
 * nothing).  'number' counts the commands of a plan from 1, as in "Remote
 * Command 2".  An error that MongoDB answers with is shown in place of the plan;
 * that it cannot be reached is raised.
 */
extern void mongo_explain_remote(ExplainState *es, UserMapping *user,
								 const char *database, const bson_t *command,
								 int number);

/*
 * mongo_explain_remote_unknown
 *		Say instead of a plan why there is none.
 */
extern void mongo_explain_remote_unknown(ExplainState *es, int number,
										 const char *reason);

/*
 * mongo_explain_may_show
 *		May EXPLAIN show values of parameters, and what MongoDB says of a command?
 *
 * PostgreSQL's EXPLAIN shows neither.  They may come from rows, or from what policies
 * compute, of any table in the query; so its user must be able to read all of these.
 */
extern bool mongo_explain_may_show(const ExplainState *es);

#endif							/* MONGO_FDW_EXPLAIN_REMOTE_H */
