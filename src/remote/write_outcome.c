/*-------------------------------------------------------------------------
 *
 * write_outcome.c
 *		What is known of writes that no MongoDB transaction holds together.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "write_outcome.h"

#include "remote_cancel.h"
#include "remote_error.h"
#include "transaction.h"
#include "wire.h"

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
 * classify
 *		'unsent': the command had not left whole when it was interrupted.
 *		'many': one of its operations may be over any number of documents, so
 *		that an error in it does not say how many came before.
 */
static MongoWriteEnd
classify(const MongoTransport *transport, bool succeeded, bool unsent, bool many,
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
mongo_write_begin(MongoSession *session, MongoLease *lease, bson_t *options)
{
	MongoConnection *connection = mongo_lease_connection(lease);

	mongo_session_append(session, options);
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
	return classify(transport, succeeded, unsent, most < 0, reply, error);
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

void
mongo_write_doubt_add(MongoWriteDoubt *doubt, MongoWriteEnd end, int64 documents)
{
	if (end == MONGO_WRITE_ANSWERED)
		return;
	doubt->commands++;
	doubt->documents = documents < 0 || doubt->documents < 0 ? -1 :
		doubt->documents + documents;
	if (end == MONGO_WRITE_UNKNOWN)
		doubt->running = true;
}

char *
mongo_write_doubt_text(const MongoWriteDoubt *doubt, bool more)
{
	const char *changed;

	if (doubt->commands == 0)
		return NULL;
	if (doubt->documents < 0)
		changed = more ?
			"A command that was broken off may have changed any number of other documents." :
			"A command that was broken off may have changed any number of documents.";
	else
		changed = psprintf(more ?
						   ngettext("A command that was broken off may have changed up to %lld more document.",
									"A command that was broken off may have changed up to %lld more documents.",
									doubt->documents) :
						   ngettext("A command that was broken off may have changed up to %lld document.",
									"A command that was broken off may have changed up to %lld documents.",
									doubt->documents),
						   (long long) doubt->documents);
	return psprintf("%s %s", changed,
					doubt->running ? "MongoDB may still be running it." :
					"MongoDB has ended it.");
}

void
mongo_warn_of_lasting_writes(const char *server_name, int64 documents,
							 const MongoWriteDoubt *doubt)
{
	char	   *doubtful = mongo_write_doubt_text(doubt, documents > 0);
	char	   *certain = psprintf(ngettext("%lld document had been written in this transaction; without a MongoDB transaction this cannot be undone.",
											"%lld documents had been written in this transaction; without a MongoDB transaction this cannot be undone.",
											documents), (long long) documents);

	if (documents == 0 && doubtful == NULL)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("changes on server \"%s\" were not rolled back", server_name),
			 doubtful == NULL ? errdetail_internal("%s", certain) :
			 documents == 0 ? errdetail("%s Without a MongoDB transaction this cannot be undone.",
										doubtful) :
			 errdetail_internal("%s\n%s", certain, doubtful),
			 doubt->running ?
			 errhint(MONGO_RUNNING_HINT) : 0));
}
