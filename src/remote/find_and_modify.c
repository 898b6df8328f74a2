/*-------------------------------------------------------------------------
 *
 * find_and_modify.c
 *		Change or delete one document and have it, in one command.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "find_and_modify.h"

#include "bson_memory.h"
#include "bson_write.h"
#include "bulk_write.h"
#include "driver_memory.h"
#include "encoding.h"
#include "miscadmin.h"
#include "remote_error.h"
#include "utils/timestamp.h"
#include "write_conflict.h"
#include "write_outcome.h"

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
