/*-------------------------------------------------------------------------
 *
 * lasting_command.c
 *		Commands that no rollback undoes, whatever the server.
 *
 * Invariant: between transactions the list is empty; in one it has a row at most for
 * each server and nesting level, none deeper than the current one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lasting_command.h"

#include "access/xact.h"
#include "driver_memory.h"
#include "nodes/pg_list.h"
#include "transaction_end.h"
#include "utils/memutils.h"

typedef struct LastingCommands
{
	char	   *server_name;
	int			level;			/* of nested transactions */
	int			count;
} LastingCommands;

/* In TopTransactionContext; NIL between transactions. */
static List *lasting_commands = NIL;

static void
warn_of_lasting_commands(const LastingCommands *commands)
{
	if (commands->count == 0)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("commands on server \"%s\" were not rolled back",
					commands->server_name),
			 errdetail_plural("%d command that may have changed something had been run in this transaction by mongo_command() or mongo_aggregate(), which take no part in MongoDB's transactions.",
							  "%d commands that may have changed something had been run in this transaction by mongo_command() or mongo_aggregate(), which take no part in MongoDB's transactions.",
							  commands->count, commands->count)));
}

/* find_lasting_commands: NULL where there is no such row. */
static LastingCommands *
find_lasting_commands(const char *server_name, int level)
{
	ListCell   *cell;

	foreach(cell, lasting_commands)
	{
		LastingCommands *commands = lfirst(cell);

		if (commands->level == level &&
			strcmp(commands->server_name, server_name) == 0)
			return commands;
	}
	return NULL;
}

static void
at_transaction_end(XactEvent event)
{
	ListCell   *cell;

	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT &&
		event != XACT_EVENT_PREPARE)
		return;
	if (event == XACT_EVENT_ABORT && !mongo_driver_is_entered())
	{
		foreach(cell, lasting_commands)
			warn_of_lasting_commands(lfirst(cell));
	}
	lasting_commands = NIL;
}

/* What was run below it belongs to the level above, or is over. */
static void
at_subtransaction_end(SubXactEvent event,
					  SubTransactionId subtransaction pg_attribute_unused(),
					  SubTransactionId parent pg_attribute_unused(),
					  void *arg pg_attribute_unused())
{
	int			level = GetCurrentTransactionNestLevel();
	ListCell   *cell;

	if ((event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB) ||
		mongo_driver_is_entered())
		return;
	foreach(cell, lasting_commands)
	{
		LastingCommands *commands = lfirst(cell);
		LastingCommands *above;

		if (commands->level < level)
			continue;
		if (event == SUBXACT_EVENT_ABORT_SUB)
			warn_of_lasting_commands(commands);
		else if ((above = find_lasting_commands(commands->server_name, level - 1)) != NULL)
			above->count += commands->count;
		else
		{
			commands->level = level - 1;
			continue;
		}
		lasting_commands = foreach_delete_current(lasting_commands, cell);
	}
}

int *
mongo_lasting_commands(const char *server_name)
{
	static bool registered = false;
	int			level = GetCurrentTransactionNestLevel();
	LastingCommands *commands = find_lasting_commands(server_name, level);
	MemoryContext old_context;

	if (!registered)
	{
		mongo_at_transaction_end(MONGO_END_COMMANDS, at_transaction_end);
		RegisterSubXactCallback(at_subtransaction_end, NULL);
		registered = true;
	}
	if (commands != NULL)
		return &commands->count;

	old_context = MemoryContextSwitchTo(TopTransactionContext);
	commands = palloc0(sizeof(LastingCommands));
	commands->server_name = pstrdup(server_name);
	commands->level = level;
	lasting_commands = lappend(lasting_commands, commands);
	MemoryContextSwitchTo(old_context);
	return &commands->count;
}
