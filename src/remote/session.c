/*-------------------------------------------------------------------------
 *
 * session.c
 *		A MongoDB transaction from its beginning to its last command but one.
 *
 * A MongoDB transaction is identified by a session id and a number, which all of its commands
 * contain.  Its first command begins it, and is sent again if nothing is lost with it.
 * transaction.c ends it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* ------------------------------ beginning ---------------------------------- */

/*
 * mongo_session_begin
 *		Prepares a MongoDB transaction, which the next command begins, if the server supports
 *		transactions.
 */
void
mongo_session_begin(MongoSession *session)
{
	MongoLease *lease;
	MongoConnection *connection;
	const bson_t *lsid;

	if (session->begun || session->mode == MONGO_TRANSACTIONS_OFF)
		return;

	lease = mongo_lease_acquire_for_write(TopTransactionContext, session->user, NULL, NULL);
	connection = lease->connection;
	if (connection->is_standalone)
	{
		mongo_lease_release(lease);
		if (session->mode == MONGO_TRANSACTIONS_REQUIRED)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("server \"%s\" has no transactions", session->server_name),
					 errdetail("It is a standalone MongoDB server, and the option \"transactions\" is \"required\"."),
					 errhint("Make it a replica set, which may have one member, or set \"transactions\" to \"auto\" or \"off\".")));
		session->mode = MONGO_TRANSACTIONS_OFF;
		return;
	}
	lsid = mongo_server_session_use(&connection->session, connection->context);
	if (lsid == NULL)
	{
		mongo_lease_release(lease);
		mongo_raise_failure(psprintf("could not begin a transaction on server \"%s\"",
									 session->server_name),
							&(MongoFailure) {.lost = true,.text = "The server has no sessions."},
							MONGO_PRIMARY_HINT);
	}
	session->lsid = mongo_bson_copy_in(TopTransactionContext, lsid);
	session->number = ++connection->session.number;
	session->used_at = GetCurrentTimestamp();
	session->begun = true;
	session->lease = lease;
	connection->in_transaction = true;
	mongo_connection_show_state(connection);
}

/*
 * mongo_session_is_fresh
 *		Tells whether there is a MongoDB transaction in which nothing has been read or written.
 */
bool
mongo_session_is_fresh(const MongoSession *session)
{
	return session->lease != NULL && !session->used;
}

/*
 * mongo_session_restart
 *		Restarts a transaction whose first command failed, so that it is fresh again.
 *
 * If the connection is unusable or its member is no primary any more, that is over a new one.
 * Raises what connecting raises; the session then begins with its next command.
 */
void
mongo_session_restart(MongoSession *session)
{
	MongoServerSession *own = &session->lease->connection->session;

	session->recovery_token.length = 0;
	session->used = session->lost = false;
	if (mongo_connection_is_clean(session->lease->connection))
	{
		/*
		 * MongoDB ends a session's transaction when it receives a greater
		 * number
		 */
		session->number++;
		own->number = Max(own->number, session->number);
		return;
	}
	mongo_lease_release(session->lease);
	session->lease = NULL;
	session->begun = false;
	mongo_session_begin(session);
}

/*-------------------------------------------------------------------------
 * Waiting for another transaction that has changed the same document, or holds a lock.
 *
 * MongoDB does not queue writers, so a writer tries again.  The time for that is limited, since
 * MongoDB cannot detect a deadlock that includes a lock of PostgreSQL's.
 *-------------------------------------------------------------------------
 */

/* The pause doubles with each attempt. */
#define PAUSE_MS			5
#define LONGEST_PAUSE_MS	50

/*
 * Pauses before a transaction's first command is tried again.
 *
 * 'attempt' counts earlier attempts, the first of which began at 'since'.  Returns false after
 * ten seconds, or after lock_timeout, which raises 55P03 for a write conflict.  Raises 57014.
 */
static bool
wait_for_conflict(MongoLease *lease, const MongoFailure *failure, TimestampTz since, int attempt)
{
	int			limit = LockTimeout > 0 ? LockTimeout : MONGO_CONFLICT_MS;

	if (TimestampDifferenceExceeds(since, GetCurrentTimestamp(), limit))
	{
		if (LockTimeout > 0 && failure->code == WRITE_CONFLICT)
			mongo_raise_lock_timeout();
		return false;
	}
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 Min(PAUSE_MS << Min(attempt, 4), LONGEST_PAUSE_MS),
					 mongo_wait_event(MONGO_WAIT_CONFLICT));
	ResetLatch(MyLatch);
	mongo_lease_check_interrupts(lease);
	CHECK_FOR_INTERRUPTS();
	return true;
}

/*
 * mongo_session_try_again
 *		After a transaction's first command has failed, pauses and restarts it if the command is
 *		to be sent again; otherwise returns false.
 *
 * Nothing is lost with it.  That is so if MongoDB has aborted the transaction (after a write
 * conflict PostgreSQL would wait, too), or if the failure is the connection's.  'attempt' counts
 * earlier attempts, the first of which began at 'since'.  In one snapshot a conflict is final, as
 * in PostgreSQL.  Raises as wait_for_conflict() and mongo_session_restart() do.
 */
bool
mongo_session_try_again(MongoSession *session, const MongoFailure *failure, TimestampTz since,
						int attempt)
{
	bool		is_of_connection = mongo_failure_is_of_connection(failure);

	if (failure->lost || !(failure->transient || is_of_connection) ||
		(IsolationUsesXactSnapshot() && failure->code == WRITE_CONFLICT) ||

	/*
	 * without the label, or to a single server, a new connection may change
	 * nothing
	 */
		(is_of_connection && attempt > 0 &&
		 (!failure->transient || mongo_uri_is_single(session->lease->connection->uri))))
		return false;
	if (!wait_for_conflict(session->lease, failure, since, attempt))
		return false;
	mongo_session_restart(session);
	return session->lease != NULL;
}

/* --------------------------- commands within it ----------------------------- */

/*
 * mongo_append_session
 *		Appends the fields that every command of the transaction has.
 */
void
mongo_append_session(const MongoSession *session, bson_t *fields)
{
	mongo_append(fields, "lsid", mongo_document(session->lsid));
	mongo_append(fields, "txnNumber", mongo_int64(session->number));
	mongo_append(fields, "autocommit", mongo_bool(false));
}

/*
 * Reconnects if the server has closed the connection, since a lost command would end the
 * transaction.  Checks only if nothing has been sent for a while.
 */
static void
check_connection(MongoSession *session)
{
	MongoConnection *connection = session->lease->connection;
	TimestampTz now = GetCurrentTimestamp();

	if (!session->reply_lost && mongo_connection_is_clean(connection) &&
		TimestampDifferenceExceeds(session->used_at, now, RECENTLY_USED_MS) &&
		mongo_has_reply(connection))
		(void) mongo_connection_reconnect(connection);
	session->used_at = now;
}

/*
 * mongo_session_fields
 *		Returns the fields to add to the transaction's next command, in the current memory
 *		context.  Raises 53200.
 *
 * All reads of a transaction are from one snapshot of the storage engine.  Repeatable read also
 * requires a majority-committed snapshot.
 */
bson_t *
mongo_session_fields(MongoSession *session)
{
	MongoConnection *connection = session->lease->connection;
	bson_t	   *fields = mongo_bson_create();

	check_connection(session);
	mongo_append_session(session, fields);
	if (session->used)
		session->insert = NULL;
	else
	{
		mongo_append(fields, "startTransaction", mongo_bool(true));
		if (IsolationUsesXactSnapshot())
			mongo_append_condition(fields, "readConcern", "level", mongo_utf8("snapshot"));
		else if (connection->transaction_level != NULL)
			mongo_append_condition(fields, "readConcern", "level",
								   mongo_utf8(connection->transaction_level));
	}
	mongo_append_saved_field(fields, "$clusterTime", &connection->cluster_time);
	return fields;
}

/*
 * mongo_session_note_reply
 *		Records that the command's reply was received or lost.  Never raises.
 */
void
mongo_session_note_reply(MongoSession *session, const MongoReply *reply)
{
	MongoConnection *connection = session->lease->connection;

	/* not set earlier, since an error before sending begins no transaction */
	session->used = true;
	if (reply->document == NULL)
	{
		session->reply_lost = true;
		mongo_reply_abandon(connection, reply);
	}
	mongo_save_field(&connection->cluster_time, reply, "$clusterTime");
	mongo_save_field(&session->recovery_token, reply, "recoveryToken");
}

/*
 * mongo_session_run
 *		Sends a command, waits, and returns whether it succeeded.  With MONGO_ANY_INTERRUPT, raises
 *		what interrupts raise, and otherwise nothing once the command is sent.
 */
bool
mongo_session_run(MongoSession *session, const MongoCommand *command, MongoReply *reply,
				  MongoInterrupts interrupts, MongoFailure *failure)
{
	MongoConnection *connection = session->lease->connection;

	reply->document = NULL;
	if (mongo_send(connection, command, reply))
	{
		bool		lost = session->lost;
		bool		reply_lost = session->reply_lost;

		/* if serving an interrupt raises */
		session->used = session->lost = session->reply_lost = true;
		while (mongo_receive(connection, reply, interrupts) == MONGO_INTERRUPTED &&
			   interrupts == MONGO_ANY_INTERRUPT)
			mongo_serve_interrupt(connection, reply, false);
		session->lost = lost;
		session->reply_lost = reply_lost;
	}
	mongo_session_note_reply(session, reply);
	if (!mongo_reply_failure(connection, reply, failure))
		return true;
	if (mongo_failure_is_retryable(failure))
		connection->broken = true;
	return false;
}

/*
 * mongo_session_read
 *		Runs a command that reads, in the transaction, and receives *reply.  'message' names what
 *		is attempted.
 *
 * Raises a failure; 40001 for what MongoDB calls a transient transaction error.
 */
void
mongo_session_read(MongoSession *session, const char *database, const bson_t *command,
				   MongoReply *reply, const char *message)
{
	TimestampTz since = GetCurrentTimestamp();
	bool		fresh = mongo_session_is_fresh(session);
	MongoFailure failure;

	mongo_check_command_size(command);
	mongo_memory_check(0);
	for (int attempt = 0;; attempt++)
	{
		bool		succeeded = mongo_session_run(session, &(MongoCommand) {
			.database = database,
			.document = command,
			.fields = mongo_session_fields(session)
		}, reply, MONGO_ANY_INTERRUPT, &failure);

		/* a failed or interrupted command has ended MongoDB's transaction */
		session->lost |= !succeeded;
		mongo_lease_check_interrupts(session->lease);
		if (succeeded)
			return;
		if (!fresh || !mongo_session_try_again(session, &failure, since, attempt))
			mongo_raise_failure(message, &failure, NULL);
	}
}

/* The most bytes of an insert that is kept. */
#define KEPT_INSERT_BYTES	65536

/*
 * mongo_session_note_insert
 *		Keeps a copy of the transaction's first command, which has succeeded, unless it is large.
 *
 * If it stays the only one, a COMMIT that MongoDB refuses can send it again.
 */
void
mongo_session_note_insert(MongoSession *session, const MongoCommand *command)
{
	MemoryContext caller_context = MemoryContextSwitchTo(TopTransactionContext);
	MongoSequence *sequence = palloc(sizeof(MongoSequence));

	*sequence = *command->sequence;
	if (sequence->size <= KEPT_INSERT_BYTES)
	{
		sequence->data = memcpy(palloc(sequence->size), sequence->data, sequence->size);
		session->insert = palloc(sizeof(MongoCommand));
		*session->insert = (MongoCommand) {
			.database = pstrdup(command->database),
			.document = mongo_bson_copy_in(TopTransactionContext, command->document),
			.sequence = sequence
		};
	}
	MemoryContextSwitchTo(caller_context);
}

/* ---------------------------------- writes ---------------------------------- */

/*
 * mongo_session_lease
 *		Returns the lease of the connection for a write.  Within a transaction it is always the
 *		same one; otherwise it is acquired, in the current memory context.
 */
MongoLease *
mongo_session_lease(MongoSession *session)
{
	return session->lease != NULL ? session->lease :
		mongo_lease_acquire_for_write(CurrentMemoryContext, session->user, NULL, NULL);
}

/*
 * mongo_session_return_lease
 *		Ends the use of a lease that mongo_session_lease() has returned.
 */
void
mongo_session_return_lease(MongoSession *session, MongoLease *lease)
{
	if (lease != session->lease)
		mongo_lease_release(lease);
}

/*
 * mongo_session_in_transaction
 *		Tells whether the session has a MongoDB transaction.
 */
bool
mongo_session_in_transaction(const MongoSession *session)
{
	return session->lease != NULL;
}

/*
 * mongo_session_note_write
 *		Records that something is about to be written.  Returns what session->written_level was,
 *		to which the caller sets it back if the reply reports that nothing was written.
 */
int
mongo_session_note_write(MongoSession *session)
{
	int			before = session->written_level;

	session->written_level = Max(before, mongo_writing_level());
	return before;
}
