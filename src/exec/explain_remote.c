/*-------------------------------------------------------------------------
 *
 * explain_remote.c
 *		MongoDB's own plan in EXPLAIN.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "explain_remote.h"

#include "bson_memory.h"
#include "catalog/pg_class.h"
#include "command.h"
#include "encoding.h"
#include "printable.h"
#include "privileges.h"

/* numbered: "label", "label 2" and so on. */
static const char *
numbered(const char *label, int number)
{
	return number == 1 ? label : psprintf("%s %d", label, number);
}

/* show_lines: under a heading of its own, or as a list. */
static void
show_lines(ExplainState *es, const char *label, List *lines)
{
	ListCell   *cell;

	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyList(label, lines, es);
		return;
	}
	appendStringInfoSpaces(es->str, es->indent * 2);
	appendStringInfo(es->str, "%s:\n", label);
	foreach(cell, lines)
	{
		appendStringInfoSpaces(es->str, (es->indent + 1) * 2);
		appendStringInfo(es->str, "%s\n", (char *) lfirst(cell));
	}
}

/* not_shown: what stands in place of a plan. */
static char *
not_shown(const char *reason)
{
	return psprintf("not shown: %s", reason);
}

void
mongo_explain_remote_unknown(ExplainState *es, int number, const char *reason)
{
	show_lines(es, numbered("Remote Plan", number), list_make1(not_shown(reason)));
}

bool
mongo_explain_may_show(const ExplainState *es)
{
	ListCell   *cell;

	foreach(cell, es->rtable)
	{
		const RangeTblEntry *entry = lfirst_node(RangeTblEntry, cell);

		if (entry->rtekind == RTE_RELATION && entry->relkind != RELKIND_VIEW &&
			!mongo_may_read(entry->relid, NULL))
			return false;
	}
	return true;
}

/* The reply's error as one line; NULL when it is none. */
static const char *
reply_error(const bson_t *reply)
{
	bson_iter_t iter;
	const char *message = "";
	const char *name = "";

	if (bson_iter_init_find(&iter, reply, "ok") && bson_iter_as_bool(&iter))
		return NULL;
	if (bson_iter_init_find(&iter, reply, "errmsg") && BSON_ITER_HOLDS_UTF8(&iter))
		message = bson_iter_utf8(&iter, NULL);
	if (bson_iter_init_find(&iter, reply, "codeName") && BSON_ITER_HOLDS_UTF8(&iter))
		name = bson_iter_utf8(&iter, NULL);
	return psprintf("MongoDB cannot explain this command: %s%s%s",
					mongo_printable(name), *name ? ": " : "",
					mongo_printable(message));
}

List *
mongo_ask_for_plan(UserMapping *user, const char *database, const bson_t *command,
				   const char *verbosity, int max_time_ms, MongoExamined *examined)
{
	bson_t	   *explain = bson_create_in(CurrentMemoryContext);
	const bson_t *reply;
	const char *error;
	List	   *lines;

	BSON_APPEND_DOCUMENT(explain, "explain", command);
	BSON_APPEND_UTF8(explain, "verbosity", verbosity);
	if (max_time_ms > 0)
		BSON_APPEND_INT32(explain, "maxTimeMS", max_time_ms);
	reply = mongo_run_command(CurrentMemoryContext, user, mongo_to_utf8(database),
							  explain, true, NULL);

	*examined = (MongoExamined)
	{
		-1, -1, -1
	};
	error = reply_error(reply);
	if (error != NULL)
		return list_make1((char *) error);
	lines = mongo_remote_plan_lines(reply, examined);
	if (lines != NIL)
		return lines;
	return list_make1(not_shown("MongoDB answered without a winning plan"));
}

void
mongo_explain_remote(ExplainState *es, UserMapping *user, const char *database,
					 const bson_t *command, int number)
{
	MongoExamined examined;
	List	   *lines;

	if (!mongo_explain_may_show(es))
	{
		mongo_explain_remote_unknown(es, number,
									 "it is about rows or columns that you may not see");
		return;
	}
	lines = mongo_ask_for_plan(user, database, command,
							   es->analyze ? "executionStats" : "queryPlanner", 0, &examined);
	show_lines(es, numbered("Remote Plan", number), lines);
	if (!es->analyze || examined.keys < 0)
		return;
	ExplainPropertyInteger(numbered("Remote Keys Examined", number), NULL,
						   examined.keys, es);
	ExplainPropertyInteger(numbered("Remote Documents Examined", number), NULL,
						   examined.documents, es);
	if (es->timing)
		ExplainPropertyInteger(numbered("Remote Time", number), "ms",
							   examined.milliseconds, es);
}
