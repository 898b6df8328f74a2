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
		mongo_wire_report_violation(connection, "The reply is not valid BSON.");
	return view;
}

/* command_succeeded: false with MongoDB's code, 0 if there is none. */
static bool
command_succeeded(const bson_t *reply, int *code)
{
	bson_iter_t iter;

	*code = 0;
	if (bson_iter_init_find(&iter, reply, "code") &&
		BSON_ITER_HOLDS_NUMBER(&iter))
		*code = (int) bson_iter_as_int64(&iter);
	return mongo_reply_is_ok(reply);
}

const bson_t *
mongo_run_command(MemoryContext context, UserMapping *user,
				  const char *database, const bson_t *command, bool read_only,
				  const char *context_message)
{
	MongoLease *lease;
	MongoReply	reply = {.context = context};
	const bson_t *document;

	mongo_session_settle(user);
	lease = read_only ? mongo_lease_acquire(CurrentMemoryContext, user) :
		mongo_lease_acquire_live(CurrentMemoryContext, user);
	for (int attempt = 1;; attempt++)
	{
		MongoConnection *connection = mongo_lease_connection(lease);
		bool		may_retry = read_only && attempt == 1;
		uint32		request_id;
		int			code;

		if (!mongo_wire_send(connection, database, command, &request_id) ||
			mongo_wire_receive(connection, request_id, &reply) != MONGO_WIRE_OK)
		{
			if (!may_retry)
				mongo_wire_report_disconnect(connection->server_name);
		}
		else
		{
			document = reply_document(connection, &reply);
			if (command_succeeded(document, &code) ||
				(context_message == NULL &&
				 !(may_retry && mongo_error_is_retryable(code))))
				break;
			if (!may_retry || !mongo_error_is_retryable(code))
				mongo_report_command_error(context_message, document);
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
	MongoLease *lease;
	MongoConnection *connection;
	bson_t	   *options = bson_create_in(CurrentMemoryContext);
	bson_t	   *reply = bson_create_in(context);
	bson_error_t error = {0};
	bool		succeeded;
	MongoWriteEnd end;
	int		   *lasting;

	mongo_session_settle(user);
	lease = mongo_lease_acquire_live(CurrentMemoryContext, user);
	connection = mongo_lease_connection(lease);
	lasting = mongo_lasting_commands(connection->server_name);

	/* libmongoc adds its own to a copy of the command */
	mongo_wire_check_size(command);
	mongo_memory_check(2 * mongo_memory_grown(command->len));

	mongo_remote_cancel_arm(connection);
	mongo_remote_cancel_append(connection, options);
	if (!bson_has_field(command, "comment"))
		mongo_trace_append(connection->comment, options);
	succeeded = mongoc_client_command_with_opts(mongo_lease_client(lease), database,
												command, NULL, options, reply, &error);
	if (succeeded)
		(*lasting)++;
	end = mongo_write_end(lease, succeeded, -1, reply, &error);
	warn_of_lasting_command(connection->server_name, end);

	mongo_lease_check_interrupts(lease);
	if (!succeeded)
	{
		/*
		 * an interrupt may have been put off until MongoDB had ended the
		 * command
		 */
		CHECK_FOR_INTERRUPTS();
		mongo_report_bson_error(context_message, &error, reply);
	}
	mongo_lease_release(lease);
	return reply;
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

/* ------- Change or delete one document and have it, in one command -------- */

/* execute_find_and_modify: nothing here raises; *reply is always made. */
static bool
execute_find_and_modify(mongoc_client_t *client, const char *database, const char *collection,
						const MongoFindAndModify *command, const bson_t *extra, bson_t *reply,
						bson_error_t *error)
{
	mongoc_collection_t *target = mongoc_client_get_collection(client, database,
															   collection);
	mongoc_find_and_modify_opts_t *options = mongoc_find_and_modify_opts_new();
	bool		succeeded;

	if (command->update != NULL)
		mongoc_find_and_modify_opts_set_update(options, command->update);
	mongoc_find_and_modify_opts_set_flags(options, command->update == NULL ?
										  MONGOC_FIND_AND_MODIFY_REMOVE :
										  MONGOC_FIND_AND_MODIFY_RETURN_NEW |
										  (command->upsert ? MONGOC_FIND_AND_MODIFY_UPSERT : 0));
	if (command->fields != NULL)
		mongoc_find_and_modify_opts_set_fields(options, command->fields);
	succeeded = mongoc_find_and_modify_opts_append(options, extra) &&
		mongoc_collection_find_and_modify_with_opts(target, command->filter, options,
													reply, error);
	mongoc_find_and_modify_opts_destroy(options);
	mongoc_collection_destroy(target);
	return succeeded;
}

/* extra_options: what has no function of its own. */
static bson_t *
extra_options(const MongoFindAndModify *command)
{
	bson_t	   *extra = bson_create_in(CurrentMemoryContext);

	if (command->simple_collation)
		bson_append_condition(extra, "collation", "locale", bson_utf8("simple"));
	return extra;
}

/*
 * is_lost_race: has another client inserted the document of an upsert meanwhile?  It is
 * found then.  In a transaction the error has ended that.
 */
static bool
is_lost_race(MongoSession *session, const MongoFindAndModify *command,
			 const bson_error_t *error, int attempt)
{
	return command->upsert && error->code == MONGO_DUPLICATE_KEY &&
		attempt + 1 < MONGO_UPSERT_ATTEMPTS && !mongo_session_in_transaction(session);
}

/* execute_in_session: in a fresh transaction, as often as it takes. */
static bson_t *
execute_in_session(MongoSession *session, MongoLease *lease,
				   const MongoFindAndModify *command, const char *context_message)
{
	const char *database = mongo_to_utf8(command->database);
	const char *collection = mongo_to_utf8(command->collection);
	TimestampTz since = GetCurrentTimestamp();
	bool		fresh = mongo_session_is_fresh(session);

	for (int attempt = 0;; attempt++)
	{
		bson_t	   *extra = extra_options(command);
		bson_t	   *reply = bson_create_in(CurrentMemoryContext);
		bson_error_t error = {0};
		bool		succeeded;

		mongo_write_begin(session, lease, command->comment, extra);
		succeeded = execute_find_and_modify(mongo_lease_client(lease), database, collection,
											command, extra, reply, &error);
		(void) mongo_write_finish(session, lease, succeeded, 1, reply, &error);
		mongo_lease_check_interrupts(lease);
		if (succeeded)
			return reply;

		/*
		 * an interrupt may have been put off until MongoDB had ended the
		 * write
		 */
		CHECK_FOR_INTERRUPTS();
		if (is_lost_race(session, command, &error, attempt))
			continue;
		if (!fresh || !mongo_reply_has_label(reply, "TransientTransactionError") ||
			!mongo_wait_for_conflict(lease, &error, since, attempt))
			mongo_session_report_error(context_message, &error, reply);
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

	/* libmongoc copies it into options, command, and command with options */
	mongo_memory_check(4 * mongo_memory_grown(command->filter->len +
											  (command->update ? command->update->len : 0)));

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
