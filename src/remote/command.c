/*-------------------------------------------------------------------------
 *
 * command.c
 *		Run one command.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "command.h"

#include "bson_memory.h"
#include "lease.h"
#include "remote_error.h"
#include "session.h"
#include "utils/memutils.h"

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
