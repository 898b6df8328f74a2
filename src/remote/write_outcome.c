/*-------------------------------------------------------------------------
 *
 * write_outcome.c
 *		Sending a write outside of MongoDB's transactions, and what is known of it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "write_outcome.h"

#include "remote_cancel.h"
#include "remote_error.h"
#include "trace.h"

/*
 * has_no_reply
 *		Did libmongoc come back without a reply of the server's?  After an
 *		interrupt the reply is the guard's.
 */
static bool
has_no_reply(const MongoTransport *transport, const bson_error_t *error)
{
	return transport->interrupted || error->domain == MONGOC_ERROR_STREAM ||
		error->domain == MONGOC_ERROR_PROTOCOL;
}

static bool
has_write_errors(const bson_t *reply)
{
	bson_iter_t iter;
	bson_iter_t element;

	return bson_iter_init_find(&iter, reply, "writeErrors") &&
		BSON_ITER_HOLDS_ARRAY(&iter) && bson_iter_recurse(&iter, &element) &&
		bson_iter_next(&element);
}

/*
 * classify_end
 *		'unsent': the command had not left whole when it was interrupted.
 *		'many': one of its operations may be over any number of documents, so
 *		that an error in it does not say how many came before.
 */
static MongoWriteEnd
classify_end(const MongoTransport *transport, bool succeeded, bool unsent, bool many,
			 const bson_t *reply, const bson_error_t *error)
{
	if (succeeded || unsent)
		return MONGO_WRITE_ANSWERED;
	if (has_no_reply(transport, error))
		return MONGO_WRITE_UNKNOWN;
	if (has_write_errors(reply))
		return many ? MONGO_WRITE_STOPPED : MONGO_WRITE_ANSWERED;
	return mongo_error_is_interruption(error->code) ?
		MONGO_WRITE_STOPPED : MONGO_WRITE_ANSWERED;
}

void
mongo_write_begin(MongoSession *session, MongoLease *lease, const char *comment,
				  bson_t *options)
{
	MongoConnection *connection = mongo_lease_connection(lease);

	mongo_session_append(session, options);
	mongo_trace_append(comment != NULL ? mongo_trace_prepare(comment) : connection->comment,
					   options);
	if (mongo_session_in_transaction(session))
		return;
	mongo_remote_cancel_arm(connection);
	mongo_remote_cancel_append(connection, options);
}

MongoWriteEnd
mongo_write_end(MongoLease *lease, bool succeeded, int64 most, const bson_t *reply,
				const bson_error_t *error)
{
	MongoConnection *connection = mongo_lease_connection(lease);
	MongoTransport *transport = &connection->transport;
	bool		armed = transport->cancel != NULL;
	bool		asked = mongo_remote_cancel_disarm(connection);
	bool		unsent = armed && !asked && transport->interrupted &&
		transport->memory_missing == 0;

	if (succeeded)
		transport->timed_out = false;	/* late, but there */
	return classify_end(transport, succeeded, unsent, most < 0, reply, error);
}

MongoWriteEnd
mongo_write_finish(MongoSession *session, MongoLease *lease, bool succeeded,
				   int64 most, const bson_t *reply, const bson_error_t *error)
{
	MongoWriteEnd end;

	if (mongo_session_in_transaction(session))
		return MONGO_WRITE_ANSWERED;
	end = mongo_write_end(lease, succeeded, most, reply, error);
	mongo_session_note_doubt(session, end, most);
	return end;
}
