/*-------------------------------------------------------------------------
 *
 * write_command.c
 *		Run one command that may write, outside of transactions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "write_command.h"

#include "bson_memory.h"
#include "driver_memory.h"
#include "lasting_command.h"
#include "miscadmin.h"
#include "remote_cancel.h"
#include "remote_error.h"
#include "trace.h"
#include "write_outcome.h"

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
