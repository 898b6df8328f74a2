/*-------------------------------------------------------------------------
 *
 * write.c
 *		One write: repetition, uncertain outcomes, conflicts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"

#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* --------------------- Writes as messages of our own ---------------------- */

/* ------------------------------ what it says ------------------------------- */

/* note_error: of the domain, as far as the document at 'field' tells. */
static void
note_error(bson_error_t *error, uint32 domain, const bson_iter_t *field)
{
	bson_iter_t nested;
	const char *text = "";
	int			code = 0;

	if ((!BSON_ITER_HOLDS_DOCUMENT(field) && !BSON_ITER_HOLDS_ARRAY(field)) ||
		!bson_iter_recurse(field, &nested))
		return;
	while (bson_iter_next(&nested))
	{
		const char *key = bson_iter_key(&nested);

		if (strcmp(key, "code") == 0 && BSON_ITER_HOLDS_NUMBER(&nested))
			code = (int) bson_iter_as_int64(&nested);
		else if (strcmp(key, "errmsg") == 0 && BSON_ITER_HOLDS_UTF8(&nested))
			text = bson_iter_utf8(&nested, NULL);
	}
	bson_set_error(error, domain, code, "%s", text);
}

/* note_write_error: the first of writeErrors; false when there is none. */
static bool
note_write_error(bson_error_t *error, const bson_t *document)
{
	bson_iter_t iter;
	bson_iter_t element;

	if (!bson_iter_init_find(&iter, document, "writeErrors") ||
		!BSON_ITER_HOLDS_ARRAY(&iter) || !bson_iter_recurse(&iter, &element) ||
		!bson_iter_next(&element))
		return false;
	note_error(error, MONGOC_ERROR_SERVER, &element);
	return true;
}

/*
 * read_reply
 *		Has the write succeeded?  If not, *error has the first reason.
 */
static bool
read_reply(const MongoConnection *connection, MongoWriteReply *reply)
{
	bson_error_t *error = &reply->error;
	bson_iter_t iter;

	memset(error, 0, sizeof(*error));
	if (mongo_exchange_has_failed(connection, reply->answered, &reply->document, error))
		return false;
	if (note_write_error(error, &reply->document))
		return false;
	if (bson_iter_init_find(&iter, &reply->document, "writeConcernError"))
	{
		note_error(error, MONGOC_ERROR_WRITE_CONCERN, &iter);
		return false;
	}
	return true;
}

/*
 * note_lost_primary
 *		An error of the server's, not of an operation, that says that it is not what
 *		it was: the connection is not used any more.
 */
static void
note_lost_primary(MongoConnection *connection, const MongoWriteReply *reply)
{
	if (mongo_reply_has_label(&reply->document, "RetryableWriteError") ||
		(!mongo_reply_is_ok(&reply->document) &&
		 mongo_error_is_retryable(reply->error.code)))
		connection->broken = true;
}

/* start_attempt: send the message; its reply is to be received. */
static void
start_attempt(MongoWriteUnderWay *way)
{
	MongoConnection *connection = mongo_lease_connection(way->lease);
	const MongoWriteMessage *message = way->message;
	mongoc_iovec_t iov[2];
	size_t		iovcnt;

	mongo_memory_check(connection->compressor == NULL ? 0 :
					   2 * mongo_memory_grown(message->operations.size));
	mongo_wire_prepare(connection, message->database, message->command,
					   way->fields != NULL ? way->fields : connection->write_concern,
					   &message->operations, iov, &iovcnt);
	if (way->lsid != NULL)
		mongo_remote_cancel_arm_with(connection, way->lsid);
	way->sent = mongo_exchange_send(connection, iov, iovcnt);
}

/* finish_attempt: receive the reply; true when the message may be sent once more. */
static bool
finish_attempt(MongoWriteUnderWay *way, MongoWriteReply *reply)
{
	MongoConnection *connection = mongo_lease_connection(way->lease);
	MongoTransport *transport = &connection->transport;
	bool		given_up;

	reply->answered = mongo_exchange_receive(connection, way->sent, &reply->document);
	reply->succeeded = read_reply(connection, reply);
	if (way->fields != NULL)
	{
		mongo_session_note_reply(way->session, reply->answered ? &reply->document : NULL);
		reply->end = MONGO_WRITE_ANSWERED;
		if (reply->answered)
			note_lost_primary(connection, reply);
		return false;
	}
	given_up = transport->interrupted ||
		(transport->cancel != NULL && transport->cancel->asked);
	reply->end = mongo_write_end(way->lease, reply->succeeded, way->message->most,
								 reply->answered ? &reply->document : NULL,
								 &reply->error);
	if (reply->answered)
		note_lost_primary(connection, reply);
	return !given_up && (reply->answered ?
						 mongo_reply_has_label(&reply->document, "RetryableWriteError") :
						 transport->violation == NULL);
}

/* ------------------------------ the second one ------------------------------ */

/*
 * find_primary
 *		Have the lease hold a client that may send the write again; false where there
 *		is none, so that the first attempt's error is the one to be raised.
 */
static bool
find_primary(MongoSession *session, MongoLease *lease)
{
	MemoryContext caller_context = CurrentMemoryContext;
	MongoClient *client;

	PG_TRY();
	{
		mongo_session_renew_lease(session, lease);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller_context);
		if (ERRCODE_TO_CATEGORY(geterrcode()) !=
			ERRCODE_TO_CATEGORY(ERRCODE_CONNECTION_EXCEPTION))
			PG_RE_THROW();
		FlushErrorState();
		return false;
	}
	PG_END_TRY();

	client = mongo_client_of(mongo_lease_connection(lease));
	return client->takes_writes && client->retries_writes;
}

/*
 * add_session
 *		lsid and, where MongoDB is to recognize a repetition, txnNumber.  Gives a copy
 *		of the first: a second attempt outlives the client, and its session with it.
 */
static bson_t *
add_session(MongoClient *client, const MongoWriteMessage *message)
{
	const bson_t *lsid = mongo_server_session_use(&client->session, client->context);

	if (lsid == NULL)
		return NULL;
	BSON_APPEND_DOCUMENT(message->command, "lsid", lsid);
	if (client->retries_writes && message->most >= 0)
		BSON_APPEND_INT64(message->command, "txnNumber", ++client->session.number);
	return bson_copy_in(CurrentMemoryContext, lsid);
}

/*
 * take_second
 *		What both attempts together say, in *reply.
 *
 * Only a reply without an error of the whole command says what has become of a
 * first attempt that was not answered.
 */
static void
take_second(MongoWriteReply *reply, const MongoWriteReply *second)
{
	bool		conclusive = second->answered && mongo_reply_is_ok(&second->document);

	if (!conclusive && second->end != MONGO_WRITE_ANSWERED)
		reply->end = second->end == MONGO_WRITE_UNKNOWN ? second->end : reply->end;
	else if (conclusive)
		reply->end = second->end;
	if (second->answered && mongo_reply_has_label(&second->document, "NoWritesPerformed"))
		return;

	reply->answered = second->answered;
	reply->succeeded = second->succeeded;
	reply->error = second->error;
	if (second->answered)
		(void) bson_view(&reply->document, bson_get_data(&second->document),
						 second->document.len);
}

void
mongo_write_message_begin(MongoSession *session, MongoLease *lease,
						  const MongoWriteMessage *message, MongoWriteUnderWay *way)
{
	MongoClient *client = mongo_client_of(mongo_lease_connection(lease));

	way->session = session;
	way->lease = lease;
	way->message = message;
	way->fields = mongo_session_in_transaction(session) ? mongo_session_fields(session) : NULL;
	way->lsid = way->fields == NULL ? add_session(client, message) : NULL;
	way->may_repeat = way->lsid != NULL && client->retries_writes && message->most >= 0;
	start_attempt(way);
}

void
mongo_write_message_finish(MongoWriteUnderWay *way, MongoWriteReply *reply)
{
	MongoWriteDoubt *doubt = mongo_session_doubt(way->session);
	MongoWriteDoubt before = *doubt;
	int64		most = way->message->most;
	MongoWriteReply second;
	bool		may_repeat = finish_attempt(way, reply) && way->may_repeat;

	mongo_write_doubt_add(doubt, reply->end, most);
	if (!may_repeat || !find_primary(way->session, way->lease))
		return;

	start_attempt(way);
	(void) finish_attempt(way, &second);
	take_second(reply, &second);
	*doubt = before;
	mongo_write_doubt_add(doubt, reply->end, most);
}

void
mongo_write_message_abandon(MongoWriteUnderWay *way, int milliseconds,
							MongoWriteReply *reply)
{
	mongo_lease_begin_ending(way->lease, milliseconds, 0, 0);
	(void) finish_attempt(way, reply);
	mongo_lease_finish_ending(way->lease);
	mongo_write_doubt_add(mongo_session_doubt(way->session), reply->end,
						  way->message->most);
}

/*-------------------------------------------------------------------------
 * Sending a write outside of MongoDB's transactions, and what is known of it.
 *-------------------------------------------------------------------------
 */

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

/*-------------------------------------------------------------------------
 * What writes may have done that no MongoDB transaction holds together.
 *-------------------------------------------------------------------------
 */

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
mongo_write_doubt_text(const MongoWriteDoubt *doubt)
{
	if (doubt->commands == 0)
		return NULL;
	if (doubt->documents < 0)
		return pstrdup(doubt->running ?
					   _("MongoDB may still be running a command that may have changed any number of documents") :
					   _("MongoDB has ended a command that may have changed any number of documents"));
	return psprintf(doubt->running ?
					ngettext("MongoDB may still be running a command that may have changed up to %lld document",
							 "MongoDB may still be running a command that may have changed up to %lld documents",
							 doubt->documents) :
					ngettext("MongoDB has ended a command that may have changed up to %lld document",
							 "MongoDB has ended a command that may have changed up to %lld documents",
							 doubt->documents),
					(long long) doubt->documents);
}

void
mongo_warn_of_lasting_writes(const char *server_name, int64 documents,
							 const MongoWriteDoubt *doubt)
{
	char	   *doubtful = mongo_write_doubt_text(doubt);

	if (documents == 0 && doubtful == NULL)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("changes on server \"%s\" were not rolled back", server_name),
			 documents == 0 ?
			 errdetail("%s. Without a MongoDB transaction this cannot be undone.", doubtful) :
			 doubtful == NULL ?
			 errdetail_plural("%lld document had been written in this transaction. Without a MongoDB transaction this cannot be undone.",
							  "%lld documents had been written in this transaction. Without a MongoDB transaction this cannot be undone.",
							  documents, (long long) documents) :
			 errdetail_plural("%lld document had been written in this transaction. %s. Without a MongoDB transaction this cannot be undone.",
							  "%lld documents had been written in this transaction. %s. Without a MongoDB transaction this cannot be undone.",
							  documents, (long long) documents, doubtful),
			 doubt->running ? errhint(MONGO_RUNNING_HINT) : 0));
}

/*-------------------------------------------------------------------------
 * Waiting for another transaction that has changed the same document.
 *
 * MongoDB does not queue writers, so they ask again.  Nor does it see that two
 * wait for each other through a lock of PostgreSQL's, hence the limit.
 *-------------------------------------------------------------------------
 */

#define WRITE_CONFLICT		112

/* The pause doubles with each attempt. */
#define PAUSE_MS			5
#define LONGEST_PAUSE_MS	50

/* For how long to go on, unless lock_timeout says so. */
#define LONGEST_WAIT_MS		10000

bool
mongo_wait_for_conflict(MongoLease *lease, const bson_error_t *error,
						TimestampTz since, int attempt)
{
	int			limit = LockTimeout > 0 ? LockTimeout : LONGEST_WAIT_MS;

	if (error->code != WRITE_CONFLICT)
		return false;
	if (TimestampDifferenceExceeds(since, GetCurrentTimestamp(), limit))
	{
		if (LockTimeout > 0)
			ereport(ERROR,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("canceling statement due to lock timeout"),
					 errdetail("Another transaction has changed a document in MongoDB and has not ended.")));
		return false;
	}
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 Min(PAUSE_MS << Min(attempt, 4), LONGEST_PAUSE_MS),
					 PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	mongo_lease_check_interrupts(lease);
	CHECK_FOR_INTERRUPTS();
	return true;
}
