/*-------------------------------------------------------------------------
 *
 * settings.c
 *		The mongo_fdw.* settings.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "settings.h"

#include "utils/guc.h"

bool		mongo_enable_pushdown = true;
bool		mongo_enable_join_pushdown = true;
bool		mongo_enable_batched_joins = true;
bool		mongo_enable_aggregate_pushdown = true;
bool		mongo_enable_order_by_pushdown = true;
bool		mongo_log_remote_query = false;
bool		mongo_explain_remote_plans = false;
bool		mongo_is_preloaded = false;
int			mongo_slow_command_ms = -1;
bool		mongo_slow_command_plan = false;
char	   *mongo_hint = "";

static const struct
{
	const char *name;
	const char *description;
	const char *details;
	bool	   *variable;
	GucContext	context;
}			settings[] =
{
	{"mongo_fdw.enable_pushdown",
		"Enables sending filters, limits, sorts, joins and aggregates to MongoDB.",
		"Off, MongoDB is asked for whole collections and PostgreSQL does the rest.",
	&mongo_enable_pushdown, PGC_USERSET},
	{"mongo_fdw.enable_join_pushdown",
		"Enables sending joins to MongoDB.",
		"Off wins over the option enable_join_pushdown of servers and tables.",
	&mongo_enable_join_pushdown, PGC_USERSET},
	{"mongo_fdw.enable_batched_joins",
		"Enables nested loops that ask MongoDB for the keys of many rows at a time.",
		NULL,
	&mongo_enable_batched_joins, PGC_USERSET},
	{"mongo_fdw.enable_aggregate_pushdown",
		"Enables sending aggregates to MongoDB.",
		"Off wins over the option enable_aggregate_pushdown of servers and tables.",
	&mongo_enable_aggregate_pushdown, PGC_USERSET},
	{"mongo_fdw.enable_order_by_pushdown",
		"Enables sending ORDER BY to MongoDB.",
		"Off wins over the option enable_order_by_pushdown of servers and tables.",
	&mongo_enable_order_by_pushdown, PGC_USERSET},
	{"mongo_fdw.explain_remote",
		"Shows MongoDB's own plans in EXPLAIN.",
		"Off, EXPLAIN without ANALYZE talks to MongoDB only for the option use_remote_estimate.",
	&mongo_explain_remote_plans, PGC_USERSET},
	/* the log is the superuser's, and what is sent may hold others' data */
	{"mongo_fdw.log_remote_query",
		"Logs each command that is sent to MongoDB.",
		NULL,
	&mongo_log_remote_query, PGC_SUSET},
	{"mongo_fdw.slow_command_plan",
		"Logs MongoDB's plan for foreign scans that have waited for mongo_fdw.slow_command_ms.",
		"It is asked for by another command.",
	&mongo_slow_command_plan, PGC_SUSET},
};

/*
 * mongo_define_settings
 *		Define the mongo_fdw.* settings.  Called once, by _PG_init().
 */
void
mongo_define_settings(void)
{
	for (size_t i = 0; i < lengthof(settings); i++)
		DefineCustomBoolVariable(settings[i].name, settings[i].description,
								 settings[i].details, settings[i].variable,
								 *settings[i].variable, settings[i].context, 0,
								 NULL, NULL, NULL);

	DefineCustomIntVariable("mongo_fdw.slow_command_ms",
							"Sets the time of waiting for MongoDB above which a command is logged.",
							"Zero logs all, -1 none.",
							&mongo_slow_command_ms, mongo_slow_command_ms, -1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);

	DefineCustomStringVariable("mongo_fdw.hint",
							   "Names the index that MongoDB has to use for reading.",
							   "An index's name, or its keys as JSON; wins over the option hint of tables.",
							   &mongo_hint, mongo_hint, PGC_USERSET, 0, NULL, NULL, NULL);

	mongo_define_faults();
	MarkGUCPrefixReserved("mongo_fdw");
}
