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

/* ------------------------- what MongoDB answers ----------------------------- */

void
mongo_note_error(bson_error_t *error, uint32 domain, const bson_iter_t *field)
{
	bson_iter_t nested;
	MongoFailure failure;

	if ((!BSON_ITER_HOLDS_DOCUMENT(field) && !BSON_ITER_HOLDS_ARRAY(field)) ||
		!bson_iter_recurse(field, &nested))
		return;
	mongo_read_failure(&nested, &failure);
	bson_set_error(error, domain, failure.code, "%s", failure.text);
}

void
mongo_append_update(bson_t *document, const char *field, const bson_t *update)
{
	bson_iter_t iter;

	if (bson_iter_init(&iter, update) && bson_iter_next(&iter) &&
		strcmp(bson_iter_key(&iter), "0") == 0)
		BSON_APPEND_ARRAY(document, field, update);
	else
		BSON_APPEND_DOCUMENT(document, field, update);
}

/* find_write_error: the first of writeErrors; false if there is none. */
static bool
find_write_error(const bson_t *document, bson_iter_t *element)
{
	bson_iter_t iter;

	return bson_iter_init_find(&iter, document, "writeErrors") &&
		BSON_ITER_HOLDS_ARRAY(&iter) && bson_iter_recurse(&iter, element) &&
		bson_iter_next(element);
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
	if (mongo_reply_has_failed(connection, reply->answered, &reply->document, error))
		return false;
	if (find_write_error(&reply->document, &iter))
	{
		mongo_note_error(error, MONGOC_ERROR_SERVER, &iter);
		return false;
	}
	if (bson_iter_init_find(&iter, &reply->document, "writeConcernError"))
	{
		mongo_note_error(error, MONGOC_ERROR_WRITE_CONCERN, &iter);
		return false;
	}
	return true;
}

/*
 * note_lost_primary
 *		If an error of the server's, not of an operation, says that it is not what it
 *		was, the connection is not used any more.
 */
static void
note_lost_primary(MongoConnection *connection, const MongoWriteReply *reply)
{
	if (mongo_reply_has_label(&reply->document, "RetryableWriteError") ||
		(!mongo_reply_is_ok(&reply->document) &&
		 mongo_error_is_retryable(reply->error.code)))
		connection->broken = true;
}

/*
 * classify_end
 *		What is known of a write outside of MongoDB's transactions.
 *
 * A command that has not left whole is not run.  Where one of its operations may be over
 * any number of documents, an error in it does not say how many came before.
 */
static MongoWriteEnd
classify_end(const MongoWriteUnderWay *way, const MongoWriteReply *reply)
{
	bson_iter_t element;

	if (reply->succeeded || !way->sent)
		return MONGO_WRITE_ANSWERED;
	if (!reply->answered)
		return MONGO_WRITE_UNKNOWN;
	if (find_write_error(&reply->document, &element))
		return way->most < 0 ? MONGO_WRITE_STOPPED : MONGO_WRITE_ANSWERED;
	return mongo_error_is_interruption(reply->error.code) ?
		MONGO_WRITE_STOPPED : MONGO_WRITE_ANSWERED;
}

/* ------------------------------- one attempt -------------------------------- */

/* start_attempt: send the message; its reply is to be received. */
static void
start_attempt(MongoWriteUnderWay *way)
{
	MongoConnection *connection = way->lease->connection;
	const MongoSequence *operations = way->command.sequence;

	mongo_memory_check(connection->compressor == NULL || operations == NULL ? 0 :
					   2 * mongo_memory_grown(operations->size));
	way->sent = mongo_send(connection, &way->command, &way->reply);
}

/*
 * finish_attempt
 *		Receive the reply; true when the message may be sent once more.
 *
 * If the wait is given up outside of MongoDB's transactions, MongoDB is told to end the
 * write.
 */
static bool
finish_attempt(MongoWriteUnderWay *way, MongoWriteReply *reply)
{
	MongoConnection *connection = way->lease->connection;
	MongoTransport *transport = &connection->transport;
	MongoOutcome outcome = MONGO_BROKEN;
	bool		given_up = transport->interrupted;

	if (way->sent)
		outcome = mongo_receive_document(connection, &way->reply, MONGO_DUE_INTERRUPT,
										 &reply->document);
	if (outcome == MONGO_INTERRUPTED)
	{
		given_up = true;
		if (way->lsid != NULL)
			outcome = mongo_end_write(connection, way->lsid, &way->reply, &reply->document);
	}
	reply->answered = outcome == MONGO_REPLY;
	reply->succeeded = read_reply(connection, reply);
	if (!reply->answered)
		connection->broken = true;
	else
		note_lost_primary(connection, reply);
	if (way->in_transaction)
	{
		mongo_session_note_reply(way->session, reply->answered ? &reply->document : NULL);
		reply->end = MONGO_WRITE_ANSWERED;
		return false;
	}
	if (reply->succeeded)
		transport->timed_out = false;	/* late, but there */
	reply->end = classify_end(way, reply);
	return !given_up && (reply->answered ?
						 mongo_reply_has_label(&reply->document, "RetryableWriteError") :
						 transport->violation == NULL && transport->memory_missing == 0);
}

/* ------------------------------ the second one ------------------------------ */

/*
 * find_primary
 *		Have the lease hold a connection that may send the write again; false where there
 *		is none, so that the first attempt's error is the one to be raised.
 */
static bool
find_primary(MongoSession *session, MongoLease *lease)
{
	MemoryContext caller_context = CurrentMemoryContext;
	MongoConnection *connection;

	PG_TRY();
	{
		mongo_lease_renew_for_write(lease, session->user);
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

	connection = lease->connection;
	return connection->takes_writes && connection->retries_writes;
}

/*
 * write_fields
 *		What goes with a write outside of MongoDB's transactions: lsid, the write concern
 *		and, where MongoDB is to recognize a repetition, txnNumber.
 *
 * way->lsid becomes a copy: a second attempt outlives the connection, and its session with it.
 */
static bson_t *
write_fields(MongoWriteUnderWay *way)
{
	MongoConnection *connection = way->lease->connection;
	const bson_t *lsid = mongo_server_session_use(&connection->session, connection->context);
	bson_t	   *fields = bson_create_in(CurrentMemoryContext);

	if (lsid != NULL)
	{
		way->lsid = bson_copy_in(CurrentMemoryContext, lsid);
		BSON_APPEND_DOCUMENT(fields, "lsid", lsid);
		way->may_repeat = connection->retries_writes && way->most >= 0;
		if (way->may_repeat)
			BSON_APPEND_INT64(fields, "txnNumber", ++connection->session.number);
	}
	if (way->session != NULL && connection->write_concern != NULL)
		bson_concat(fields, connection->write_concern);
	/* a member that is connected to directly may be a secondary */
	if (way->session == NULL && connection->read_preference != NULL &&
		mongo_uri_is_single(connection->uri) && strncmp(connection->server_type, "RS", 2) == 0 &&
		!bson_has_field(way->command.document, "$readPreference"))
		bson_concat(fields, connection->read_preference);
	return fields;
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

	reply->end = conclusive ? second->end : Max(reply->end, second->end);
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
						  const MongoCommand *command, int64 most,
						  MongoWriteUnderWay *way)
{
	*way = (MongoWriteUnderWay) {
		.session = session,
		.lease = lease,
		.command = *command,
		.most = most,
		.in_transaction = session != NULL && session->lease != NULL,
		.reply.context = CurrentMemoryContext
	};
	way->command.fields = way->in_transaction ? mongo_session_fields(session) : write_fields(way);
	start_attempt(way);
}

void
mongo_write_message_finish(MongoWriteUnderWay *way, MongoWriteReply *reply)
{
	int64		most = way->most;
	bool		may_repeat = finish_attempt(way, reply) && way->may_repeat;
	MongoWriteDoubt *doubt;
	MongoWriteDoubt before;
	MongoWriteReply second;

	if (way->session == NULL)
		return;
	doubt = &way->session->doubt;
	before = *doubt;
	mongo_write_doubt_add(doubt, reply->end, most);
	if (!may_repeat || !find_primary(way->session, way->lease))
		return;

	/* the first one's reply is still looked at */
	way->reply = (MongoReply) {.context = CurrentMemoryContext};
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
	MongoTransport *transport = &way->lease->connection->transport;

	way->reply.context = CurrentMemoryContext;
	mongo_begin_ending(transport, milliseconds, 0);
	(void) finish_attempt(way, reply);
	mongo_finish_ending(transport);
	mongo_write_doubt_add(&way->session->doubt, reply->end,
						  way->most);
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
