/*-------------------------------------------------------------------------
 *
 * command.c
 *		Single commands.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"
#include "convert.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

static int *mongo_lasting_commands(const char *server_name);

/* ---------------------------- Run one command ----------------------------- */

/*
 * reply_document
 *		A bson_t over the reply's bytes, both in reply->context.
 *
 * Only its own level is looked at: bson_validate() recurses as deep as a
 * server likes to nest.  bson_iter_recurse() checks what it enters by itself.
 */
static const bson_t *
reply_document(MongoConnection *connection, MongoReply *reply)
{
	bson_t	   *view = bson_palloc(reply->context, sizeof(bson_t));
	bson_iter_t iter;
	bool		valid = bson_view(view, reply->document, reply->document_length) &&
		bson_iter_init(&iter, view);

	while (valid && bson_iter_next(&iter))
		;
	if (!valid || iter.err_off != 0)
		mongo_report_violation(connection, "The reply is not valid BSON.");
	return view;
}

const bson_t *
mongo_run_command(MemoryContext context, UserMapping *user,
				  const char *database, const bson_t *command, bool read_only,
				  const char *context_message)
{
	MongoLease *lease;
	MongoCommand message = {.database = database,.document = command};
	MongoReply	reply = {.context = context};
	const bson_t *document;

	mongo_session_settle(user);
	lease = mongo_lease_create(CurrentMemoryContext, user, NULL, NULL);
	(void) mongo_lease_take(lease, user, MONGO_TURN_NOW);
	if (!read_only)
		mongo_lease_replace_if_closed(lease, user);
	for (int attempt = 1;; attempt++)
	{
		MongoConnection *connection = lease->connection;
		bool		may_retry = read_only && attempt == 1;
		MongoFailure failure;

		if (!mongo_send_or_raise(connection, &message, &reply) ||
			!mongo_receive_or_raise(connection, &reply))
		{
			if (!may_retry)
				mongo_report_disconnect(connection->server_name);
		}
		else
		{
			document = reply_document(connection, &reply);
			if (mongo_reply_is_ok(document))
				break;
			mongo_read_reply_failure(document, &failure);
			if (!may_retry || !mongo_error_is_retryable(failure.code))
			{
				if (context_message == NULL)
					break;
				mongo_report_command_error(context_message, document);
			}
		}
		mongo_lease_renew(lease, user);
	}

	mongo_lease_release(lease);
	return document;
}

/* -------- Run one command that may write, outside of transactions --------- */

static void
warn_of_lasting_command(const char *server_name, MongoWriteEnd end)
{
	bool		running = end == MONGO_WRITE_UNKNOWN;

	if (end == MONGO_WRITE_ANSWERED)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("a command on server \"%s\" was broken off", server_name),
			 running ?
			 errdetail("What it has changed stays, and MongoDB may still be running it.") :
			 errdetail("What it has changed stays; MongoDB has ended it."),
			 running ? errhint(MONGO_RUNNING_HINT) : 0));
}

const bson_t *
mongo_run_write_command(MemoryContext context, UserMapping *user,
						const char *database, const bson_t *command,
						const char *context_message)
{
	MemoryContext old_context = MemoryContextSwitchTo(context);
	MongoCommand message = {.database = database, .document = command};
	MongoWriteUnderWay *way = palloc(sizeof(MongoWriteUnderWay));
	MongoWriteReply *reply = bson_palloc(context, sizeof(MongoWriteReply));
	MongoLease *lease;
	const char *server_name;
	int		   *lasting;
	bool		succeeded;

	mongo_session_settle(user);
	lease = mongo_lease_acquire_for_write(CurrentMemoryContext, user, NULL, NULL);
	server_name = lease->connection->server_name;
	lasting = mongo_lasting_commands(server_name);
	mongo_check_command_size(command);

	mongo_write_message_begin(NULL, lease, &message, -1, way);
	mongo_write_message_finish(way, reply);
	/* what it says of single operations is the caller's to read */
	succeeded = reply->answered && mongo_reply_is_ok(&reply->document);
	if (succeeded)
		(*lasting)++;
	else
		warn_of_lasting_command(server_name, reply->end);

	mongo_lease_check_interrupts(lease);
	if (!succeeded)
	{
		/*
		 * an interrupt may have been put off until MongoDB had ended the
		 * command
		 */
		CHECK_FOR_INTERRUPTS();
		mongo_report_bson_error(context_message, &reply->error,
								reply->answered ? &reply->document : NULL);
	}
	mongo_lease_release(lease);
	MemoryContextSwitchTo(old_context);
	return &reply->document;
}

/*-------------------------------------------------------------------------
 * Commands that no rollback undoes, whatever the server.
 *
 * Invariant: between transactions the list is empty; in one it has a row at most for
 * each server and nesting level, none deeper than the current one.
 *-------------------------------------------------------------------------
 */

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

void
mongo_commands_at_event(XactEvent event)
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
void
mongo_commands_at_subtransaction_event(SubXactEvent event)
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

/*
 * mongo_lasting_commands
 *		How many commands the current subtransaction has run on a server, to be
 *		incremented when one more has succeeded.
 *
 * Valid until that subtransaction ends.  It is to be asked for before the command is
 * sent, as it takes memory.
 */
static int *
mongo_lasting_commands(const char *server_name)
{
	int			level = GetCurrentTransactionNestLevel();
	LastingCommands *commands = find_lasting_commands(server_name, level);
	MemoryContext old_context;

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

/* ------- Change or delete one document and have it, in one command -------- */

/* build_command: as MongoDB's findAndModify has it. */
static bson_t *
build_command(const MongoFindAndModify *command)
{
	bson_t	   *document = bson_create_in(CurrentMemoryContext);

	BSON_APPEND_UTF8(document, "findAndModify", mongo_to_utf8(command->collection));
	BSON_APPEND_DOCUMENT(document, "query", command->filter);
	if (command->update == NULL)
		BSON_APPEND_BOOL(document, "remove", true);
	else
	{
		mongo_append_update(document, "update", command->update);
		BSON_APPEND_BOOL(document, "new", true);
		if (command->upsert)
			BSON_APPEND_BOOL(document, "upsert", true);
	}
	if (command->fields != NULL)
		BSON_APPEND_DOCUMENT(document, "fields", command->fields);
	if (command->simple_collation)
		bson_append_condition(document, "collation", "locale", bson_utf8("simple"));
	if (command->comment != NULL)
		mongo_trace_append(mongo_trace_prepare(command->comment), document);
	return document;
}

/*
 * is_lost_race: has another client inserted the document of an upsert meanwhile?  It is
 * found then.  In a transaction the error has ended that.
 */
static bool
is_lost_race(MongoSession *session, const MongoLease *lease, const MongoFindAndModify *command,
			 const bson_error_t *error, int attempt)
{
	return command->upsert && lease->connection != NULL &&
		error->code == MONGO_DUPLICATE_KEY &&
		attempt + 1 < MONGO_UPSERT_ATTEMPTS && session->lease == NULL;
}

/* execute_in_session: in a fresh transaction, as often as it takes. */
static const bson_t *
execute_in_session(MongoSession *session, MongoLease *lease,
				   const MongoFindAndModify *command, const char *context_message)
{
	TimestampTz since = GetCurrentTimestamp();
	bool		fresh = mongo_session_is_fresh(session);
	MongoCommand message = {
		.database = mongo_to_utf8(command->database),
		.document = build_command(command)
	};

	mongo_check_command_size(message.document);
	for (int attempt = 0;; attempt++)
	{
		MongoWriteUnderWay *way = palloc(sizeof(MongoWriteUnderWay));
		MongoWriteReply *reply = bson_palloc(CurrentMemoryContext, sizeof(MongoWriteReply));
		const bson_t *document;
		bson_iter_t value;

		mongo_write_message_begin(session, lease, &message, 1, way);
		mongo_write_message_finish(way, reply);
		if (lease->connection != NULL)
			mongo_lease_check_interrupts(lease);
		if (reply->succeeded)
			return &reply->document;

		/*
		 * an interrupt may have been put off until MongoDB had ended the
		 * write
		 */
		CHECK_FOR_INTERRUPTS();
		if (is_lost_race(session, lease, command, &reply->error, attempt))
			continue;
		document = reply->answered ? &reply->document : NULL;

		/* a write concern that was not met does not undo the change */
		if (document != NULL && mongo_reply_is_ok(document) &&
			bson_iter_init_find(&value, document, "value") &&
			BSON_ITER_HOLDS_DOCUMENT(&value))
			mongo_session_note_write(session, 1);
		if (!fresh || !mongo_reply_has_label(document, "TransientTransactionError") ||
			!mongo_wait_for_conflict(lease, &reply->error, since, attempt))
			mongo_session_report_error(session, context_message, &reply->error, document);
		mongo_session_restart(session);
	}
}

bool
mongo_find_and_modify(MongoSession *session, MemoryContext context,
					  const MongoFindAndModify *command,
					  const char *context_message, bson_t *document)
{
	MemoryContext old_context = MemoryContextSwitchTo(context);
	MongoLease *lease = mongo_session_lease(session);
	const bson_t *reply;
	bson_iter_t iter;
	const uint8_t *data;
	uint32_t	length;
	bool		found;

	/* before it is known: who fails half-way may have written */
	mongo_session_note_write(session, 0);
	reply = execute_in_session(session, lease, command, context_message);
	found = bson_iter_init_find(&iter, reply, "value") &&
		BSON_ITER_HOLDS_DOCUMENT(&iter);
	if (found)
	{
		bson_iter_document(&iter, &length, &data);
		found = bson_view(document, data, length);
	}
	mongo_session_note_write(session, found ? 1 : 0);
	mongo_session_return_lease(session, lease);
	MemoryContextSwitchTo(old_context);
	return found;
}
