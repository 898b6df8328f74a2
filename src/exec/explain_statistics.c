/*-------------------------------------------------------------------------
 *
 * explain_statistics.c
 *		EXPLAIN: how old what planning knew of the collections is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "explain_statistics.h"

#include "statistics.h"

#include "parser/parsetree.h"
#include "utils/timestamp.h"

/* age_of: in the largest unit that fits, as "2 hours ago". */
static const char *
age_of(TimestampTz since)
{
	static const struct
	{
		int64		length;
		const char *name;
	}			units[] = {{USECS_PER_DAY, "day"}, {USECS_PER_HOUR, "hour"}, {USECS_PER_MINUTE, "minute"}};
	int64		age = GetCurrentTimestamp() - since;

	for (size_t i = 0; i < lengthof(units); i++)
	{
		int64		count = age / units[i].length;

		if (count > 0)
			return psprintf(INT64_FORMAT " %s%s ago", count, units[i].name,
							count == 1 ? "" : "s");
	}
	return "less than a minute ago";
}

/* describe: NULL when nothing has been learned. */
static const char *
describe(Oid relid)
{
	MongoStatisticsOrigin origin;

	if (!mongo_statistics_origin(relid, &origin))
		return NULL;
	if (!origin.is_current)
		return psprintf("learned of collection %s, not used", origin.collection);
	return psprintf("learned %s", age_of(origin.learned_at));
}

void
mongo_explain_statistics(const ForeignScan *plan, ExplainState *es)
{
	List	   *descriptions = NIL;
	bool		known = false;
	int			index = -1;
	StringInfoData text;
	ListCell   *cell;

	initStringInfo(&text);
	while ((index = bms_next_member(plan->fs_relids, index)) >= 0)
	{
		const RangeTblEntry *rte = rt_fetch(index, es->rtable);
		const char *description;

		/* outer joins have numbers as well */
		if (rte->rtekind != RTE_RELATION)
			continue;
		description = describe(rte->relid);
		known |= description != NULL;
		descriptions = lappend(descriptions,
							   list_make2(rte->eref->aliasname,
										  (char *) (description ? description : "none")));
	}
	if (!known)
		return;
	foreach(cell, descriptions)
	{
		List	   *description = lfirst(cell);

		if (list_length(descriptions) > 1)
			appendStringInfo(&text, "%s%s: ", text.len > 0 ? ", " : "",
							 (char *) linitial(description));
		appendStringInfoString(&text, lsecond(description));
	}
	ExplainPropertyText("Statistics", text.data, es);
}
