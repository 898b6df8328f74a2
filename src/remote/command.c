/*-------------------------------------------------------------------------
 *
 * command.c
 *		Runs single commands: reads, writes, and findAndModify.
 *
 * Except for findAndModify they are not part of the session's MongoDB transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "convert.h"

#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/timestamp.h"

/* -------------------------- Running one command --------------------------- */

/* Returns a view of the reply's document, in the reply's context. */
static const bson_t *
reply_view(const MongoReply *reply)
{
	bson_t	   *view = mongo_bson_palloc(reply->context, sizeof(bson_t));

	if (!mongo_bson_view(view, reply->document, reply->length))
		elog(ERROR, "invalid reply");
	return view;
}

/*
 * mongo_run_command
 *		Runs a command that reads, and returns its reply, in 'context'.  The command must not
 *		contain $db or lsid.  Sends it once more if the connection breaks.
 *
 * A reply with {ok: 0} raises MongoDB's error with 'context_message'; if that is NULL, it is
 * returned.  Raises 08006 for a lost connection, and what connecting and interrupts raise.
 */
const bson_t *
mongo_run_command(MemoryContext context, UserMapping *user,
				  const char *database, const bson_t *command,
				  const char *context_message)
{
	MongoLease *lease;
	MongoCommand message = {.database = database,.document = command};
	MongoReply	reply = {.context = context};
	instr_time	sent;
	instr_time	taken;
	uint64		round_trip_us;

	mongo_session_settle(user);
	lease = mongo_lease_create(CurrentMemoryContext, user, NULL, NULL);
	(void) mongo_lease_take(lease, user, MONGO_WAIT_TAKE_OVER);
	for (bool may_retry = true;; may_retry = false)
	{
		MongoConnection *connection = lease->connection;
		MongoFailure failure;

		INSTR_TIME_SET_CURRENT(sent);
		if (mongo_send_or_raise(connection, &message, &reply) &&
			mongo_receive_or_raise(connection, &reply, false))
		{
			if (!mongo_reply_failure(connection, &reply, &failure))
				break;
			if (!may_retry || !mongo_failure_is_retryable(&failure))
			{
				if (context_message == NULL)
					break;
				mongo_raise_failure(context_message, &failure, NULL);
			}
		}
		else if (!may_retry)
			mongo_report_disconnect(connection->server_name);
		mongo_lease_renew(lease, user);
	}

	/* the reply may have come before it is waited for */
	INSTR_TIME_SET_CURRENT(taken);
	INSTR_TIME_SUBTRACT(taken, sent);
	round_trip_us = Max(INSTR_TIME_GET_MICROSEC(taken), 1);
	if (lease->connection->round_trip_us == 0 || round_trip_us < lease->connection->round_trip_us)
		lease->connection->round_trip_us = round_trip_us;
	mongo_lease_release(lease);
	return reply_view(&reply);
}

/* ------ Running one command that may write, outside of transactions ------- */

/*
 * mongo_run_write_command
 *		Runs a command that may write, once, and returns its reply, in 'context'.
 *
 * If an interrupt or socket_timeout_ms ends the wait, MongoDB is told to end the command.  Its
 * changes stay if PostgreSQL rolls back, which then raises a WARNING.  Raises what
 * mongo_run_command() does.
 */
const bson_t *
mongo_run_write_command(MemoryContext context, UserMapping *user,
						const char *database, const bson_t *command,
						const char *context_message)
{
	MemoryContext old_context = MemoryContextSwitchTo(context);
	MongoCommand message = {.database = database,.document = command};
	MongoWrite	write;
	MongoLease *lease;

	mongo_session_settle(user);
	lease = mongo_lease_acquire_for_write(CurrentMemoryContext, user, NULL, NULL);
	mongo_check_command_size(command);

	mongo_write_begin(NULL, user, lease, &message, -1, &write);
	/* the caller reads the errors of single operations from the reply */
	if (mongo_write_finish(&write) || mongo_reply_is_ok(&write.reply))
		write.lasting->commands++;

	mongo_lease_check_interrupts(lease);
	if (!mongo_reply_is_ok(&write.reply))
	{
		/*
		 * an interrupt may have been put off until MongoDB had ended the
		 * command
		 */
		CHECK_FOR_INTERRUPTS();
		mongo_raise_failure(context_message, &write.failure, NULL);
	}
	mongo_lease_release(lease);
	MemoryContextSwitchTo(old_context);
	return reply_view(&write.reply);
}

/* ---------- Changing or deleting one document and returning it ------------ */

/*
 * mongo_find_and_modify_document
 *		Returns the command as a document, in the current memory context.
 */
bson_t *
mongo_find_and_modify_document(const MongoFindAndModify *command)
{
	bson_t	   *document = mongo_bson_create();

	mongo_append(document, "findAndModify", mongo_utf8(mongo_to_utf8(command->collection)));
	mongo_append(document, "query", mongo_document(command->filter));
	if (command->update == NULL)
		mongo_append(document, "remove", mongo_bool(true));
	else
	{
		mongo_append_update(document, "update", command->update);
		mongo_append(document, "new", mongo_bool(true));
		if (command->upsert)
			mongo_append(document, "upsert", mongo_bool(true));
	}
	if (command->fields != NULL)
		mongo_append(document, "fields", mongo_document(command->fields));
	if (command->simple_collation)
		mongo_append_condition(document, "collation", "locale", mongo_utf8("simple"));
	if (command->comment != NULL)
		mongo_trace_append(mongo_trace_prepare(command->comment), document);
	return document;
}

/*
 * mongo_find_and_modify
 *		Sets *document to the updated document, or to the deleted one.  Returns false if the
 *		filter matched none and none was inserted.
 *
 * *document is a view that lives as long as 'context'.  Raises and retries as
 * mongo_write_batch_begin() does.
 */
bool
mongo_find_and_modify(MongoSession *session, MemoryContext context,
					  const MongoFindAndModify *command,
					  const char *context_message, bson_t *document)
{
	MemoryContext old_context = MemoryContextSwitchTo(context);
	MongoLease *lease = mongo_session_lease(session);
	TimestampTz since = GetCurrentTimestamp();
	bool		fresh = mongo_session_is_fresh(session);
	MongoCommand message = {
		.database = mongo_to_utf8(command->database),
		.document = mongo_find_and_modify_document(command)
	};
	MongoWrite	write;
	bson_iter_t value;
	bool		found;

	/* noted before sending, as a write that fails half-way may have written */
	int			written_level = mongo_session_note_write(session);

	mongo_check_command_size(message.document);
	for (int attempt = 0;; attempt++)
	{
		mongo_write_begin(session, session->user, lease, &message, 1, &write);
		(void) mongo_write_finish(&write);
		mongo_lease_check_interrupts(lease);
		/* an unmet write concern does not undo the change */
		found = mongo_reply_is_ok(&write.reply) &&
			mongo_reply_find(&write.reply, "value", &value) && BSON_ITER_HOLDS_DOCUMENT(&value);
		if (found)
			mongo_write_count(&write, 1);
		if (!write.failed)
			break;

		/*
		 * an interrupt may have been put off until MongoDB had ended the
		 * write
		 */
		CHECK_FOR_INTERRUPTS();
		if (!fresh || !mongo_session_try_again(session, &write.failure, since, attempt))
			mongo_raise_failure(context_message, &write.failure, NULL);
		lease = mongo_session_lease(session);
	}
	if (!found)
		session->written_level = written_level;
	found = found && mongo_bson_view_at(document, &value);
	mongo_session_return_lease(session, lease);
	MemoryContextSwitchTo(old_context);
	return found;
}
