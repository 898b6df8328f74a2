/*-------------------------------------------------------------------------
 *
 * slow_plan.c
 *		The setting mongo_fdw.slow_command_plan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "slow_plan.h"

#include "explain_remote.h"
#include "privileges.h"
#include "settings.h"

/* How long MongoDB may choose between plans. */
#define LONGEST_EXPLAIN_MS	1000

void
mongo_log_slow_plan(const MongoScanState *state)
{
	double		waited_ms = state->usage.wait_us / 1000.0;
	MongoExamined examined;
	StringInfoData plan;
	ListCell   *cell;

	if (mongo_slow_command_ms < 0 || waited_ms < mongo_slow_command_ms ||
		state->run.command == NULL)
		return;

	initStringInfo(&plan);
	foreach(cell, mongo_ask_for_plan(state->user, state->plan->database, state->run.command,
									 "queryPlanner", LONGEST_EXPLAIN_MS, &examined))
		appendStringInfo(&plan, "\n%s", (char *) lfirst(cell));
	ereport(mongo_query_log_level(),
			(errmsg("slow scan: %.3f ms on \"%s.%s\"", waited_ms,
					state->plan->database, state->plan->collection),
			 errdetail("Plan of its last command:%s", plan.data)));
}
