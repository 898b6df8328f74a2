/*-------------------------------------------------------------------------
 *
 * transaction.c
 *		MongoDB transactions within PostgreSQL transactions.
 *
 * Invariant: 'sessions' has an entry for each server and user that the current PostgreSQL
 * transaction has written to, or has read from in one snapshot; else it is empty.  A session
 * keeps its lease until the end: a transaction through mongos belongs to the mongos that it began
 * on, and a connection has one transaction at a time.
 *
 * The commit has a write concern.  Commit and abort through mongos have a token by which another
 * mongos finds the transaction.
 *
 * MongoDB commits just before PostgreSQL does (pre-commit), so an error of MongoDB's still rolls
 * PostgreSQL back.  If PostgreSQL fails between the two commits, MongoDB's stays: only two-phase
 * commit could avoid that, which MongoDB does not offer to clients.
 *
 * The beginning of a transaction and its commands are in session.c.  Here are commit and abort,
 * what is done at the end of PostgreSQL's transaction, and at last what finds a user's session.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/predicate.h"
#include "storage/proc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* How long a commit whose outcome is unknown is repeated. */
#define COMMIT_RETRY_MS		30000
#define COMMIT_PAUSE_MS		50

/* How long to wait for one reply before looking for another server. */
#define COMMIT_WAIT_MS		15000

/* How long to wait for the reply to a commit after an interrupt. */
#define COMMIT_GRACE_MS		50

/*
 * How long to wait for an abort.  A silent server must not block the backend.  A message that
 * has been sent still reaches it; otherwise MongoDB ends the transaction by itself, after
 * transactionLifetimeLimitSeconds.
 */
#define ABORT_MS			1000
#define HURRIED_ABORT_MS	100
#define HURRIED_KILL_MS		300 /* including the time to connect */
#define KILLED_WAIT_MS		200 /* for the reply to a command that was killed */

/* The wtimeout of a repeated commit, unless the user has set one (Transactions specification). */
#define REPEATED_WTIMEOUT_MS	10000

/* The outcome of commitTransaction. */
typedef enum MongoCommitOutcome
{
	MONGO_COMMITTED,
	MONGO_NOT_COMMITTED,		/* never sent, or refused for good */
	MONGO_COMMIT_UNCONFIRMED,	/* done, but the write concern is not met */
	MONGO_COMMIT_UNKNOWN
} MongoCommitOutcome;

/* In TopTransactionContext; NIL between transactions. */
static List *sessions = NIL;

/* ------------------------------- the end ----------------------------------- */

/*
 * Interrupts are held off between MongoDB's commit and PostgreSQL's, where they must not make
 * the transaction fail.  An ERROR in between, such as one of a second server, releases them.
 */
static bool holding_interrupts = false;

/* Holds off interrupts until the end of the transaction. */
static void
hold_interrupts(void)
{
	if (!holding_interrupts)
		HOLD_INTERRUPTS();
	holding_interrupts = true;
}

/* Undoes hold_interrupts(), at the transaction's end. */
static void
release_interrupts(bool aborted)
{
	/*
	 * an abort after it follows an ERROR, which has reset the count; at the
	 * end PostgreSQL holds interrupts off, too
	 */
	if (holding_interrupts && !aborted && InterruptHoldoffCount > 1)
		RESUME_INTERRUPTS();
	holding_interrupts = false;
}

/* ------------------------------- committing --------------------------------- */

/*
 * Returns the outcome of a commit that was sent 'sent' times without a successful reply.
 *
 * Once commitTransaction may have reached a server, only that server or its successor can exclude
 * a commit, by the label TransientTransactionError.  On the first attempt MongoDB sets it if it
 * aborts the transaction.  A repetition has write concern majority, so NoSuchTransaction then has
 * the label only if a majority confirms it (Transactions specification,
 * "UnknownTransactionCommitResult" and "Majority write concern is used when retrying
 * commitTransaction"; in MongoDB, isTransientTransactionError()).  Some errors without a label
 * precede any commit, so they are final on the first attempt.
 */
static MongoCommitOutcome
classify_failed_commit(const MongoReply *reply, const MongoFailure *failure, int sent)
{
	static const int refusals[] = {
		13,						/* Unauthorized */
		59,						/* CommandNotFound */
		257,					/* TransactionTooLarge */
		388						/* TransactionTooLargeForCache */
	};
	bson_iter_t iter;

	if (sent == 0)
		return MONGO_NOT_COMMITTED;
	if (mongo_reply_is_ok(reply))
		return MONGO_COMMIT_UNCONFIRMED;
	if (failure->code == 0 || mongo_reply_find(reply, "writeConcernError", &iter))
		return MONGO_COMMIT_UNKNOWN;
	if (failure->transient)
		return MONGO_NOT_COMMITTED;
	for (size_t i = 0; sent == 1 && i < lengthof(refusals); i++)
	{
		if (failure->code == refusals[i])
			return MONGO_NOT_COMMITTED;
	}
	return MONGO_COMMIT_UNKNOWN;
}

/*
 * Returns the other fields of commitTransaction, or with 'again' of its repetition.
 *
 * A repetition has write concern majority, regardless of the user's choice, since an election
 * could undo a commit that has not reached a majority (Transactions specification).
 */
static bson_t *
commit_fields(const MongoSession *session, bool again)
{
	const bson_t *chosen = session->lease->connection->write_concern;
	bson_t	   *fields = mongo_bson_create();
	bson_t		concern;
	bson_iter_t iter;
	bson_iter_t member;
	bool		has_timeout = false;

	mongo_append_session(session, fields);
	mongo_append_saved_field(fields, "recoveryToken", &session->recovery_token);
	mongo_append_saved_field(fields, "$clusterTime", &session->lease->connection->cluster_time);
	if (chosen != NULL && !again)
	{
		mongo_concat(fields, chosen);
		return fields;
	}
	mongo_append_document_begin(fields, "writeConcern", &concern);
	if (chosen != NULL && bson_iter_init_find(&iter, chosen, "writeConcern") &&
		bson_iter_recurse(&iter, &member))
	{
		while (bson_iter_next(&member))
		{
			if (strcmp(bson_iter_key(&member), "w") == 0)
				continue;
			has_timeout |= strcmp(bson_iter_key(&member), "wtimeout") == 0;
			mongo_append_iter(&concern, NULL, &member);
		}
	}
	mongo_append(&concern, "w", mongo_utf8("majority"));
	if (again && !has_timeout)
		mongo_append(&concern, "wtimeout", mongo_int32(REPEATED_WTIMEOUT_MS));
	mongo_append_document_end(fields, &concern);
	return fields;
}

/*
 * Tells whether a write concern is met if a majority has the commit.  One of more members, or of
 * members with a tag, need not be.
 */
static bool
is_met_by_majority(const bson_t *chosen)
{
	bson_iter_t iter;
	bson_iter_t w;

	if (chosen == NULL || !bson_iter_init(&iter, chosen) ||
		!bson_iter_find_descendant(&iter, "writeConcern.w", &w))
		return true;
	return BSON_ITER_HOLDS_UTF8(&w) ? strcmp(bson_iter_utf8(&w, NULL), "majority") == 0 :
		bson_iter_as_int64(&w) <= 1;
}

/*
 * Sends commitTransaction once, over a new connection if necessary, and waits.
 *
 * *sent counts how often it was sent completely.
 */
static MongoCommitOutcome
try_commit(MongoSession *session, MongoCommand *command, MongoReply *reply, int *sent,
		   MongoFailure *failure)
{
	MongoConnection *connection = session->lease->connection;
	bool		has_left = false;
	bson_iter_t iter;

	reply->document = NULL;
	/* if it was not sent completely, it may be sent again */
	for (int attempt = 0; attempt < 2 && !has_left; attempt++)
	{
		if (!mongo_connection_is_clean(connection) && !mongo_connection_reconnect(connection))
		{
			*failure = (MongoFailure) {.lost = true,.text = connection->transport.failure};
			return *sent == 0 ? MONGO_NOT_COMMITTED : MONGO_COMMIT_UNKNOWN;
		}
		has_left = mongo_send(connection, command, reply);
	}
	*sent += has_left;
	if (has_left &&
		mongo_receive(connection, reply, MONGO_DUE_INTERRUPT) == MONGO_REPLY)
		mongo_session_note_reply(session, reply);
	if (!mongo_reply_failure(connection, reply, failure))
	{
		/* the write concern may not be met */
		if (!mongo_reply_find(reply, "writeConcernError", &iter))
			return MONGO_COMMITTED;
		mongo_read_failure(&iter, failure);
	}
	if (failure->lost || mongo_failure_is_retryable(failure))
		connection->broken = true;
	failure->transient &= !failure->lost;
	return classify_failed_commit(reply, failure, *sent);
}

/*
 * Commits, and repeats the commit while its outcome is unknown: for half a minute, or for
 * statement_timeout if that is less.
 *
 * The success of a repetition confirms only its own write concern.  If the user's is another one,
 * the commit, which no election can undo any more, is sent once more with that.
 *
 * After an interrupt, waits for the reply for 50 ms more, and does not repeat the commit.
 */
static MongoCommitOutcome
commit_transaction(MongoSession *session, MongoFailure *failure)
{
	MongoConnection *connection = session->lease->connection;
	MongoTransport *transport = &connection->transport;
	bson_t	   *document = mongo_from_template("{commitTransaction: 1}");
	const bson_t *first = commit_fields(session, false);
	const bson_t *again = commit_fields(session, true);
	MongoCommand command = {.database = "admin",.document = document,.fields = first};
	MongoReply	reply = {.context = CurrentMemoryContext};
	MongoCommitOutcome outcome;
	int			sent = 0;

	/* nothing is raised from here on */
	mongo_memory_check(0);
	if (!connection->broken && mongo_has_reply(connection))
		connection->broken = true;
	transport->wait_limit_ms = COMMIT_WAIT_MS;
	/* PostgreSQL stops the timer of statement_timeout before it commits */
	mongo_begin_ending(transport, StatementTimeout > 0 ? Min(StatementTimeout, COMMIT_RETRY_MS) :
					   COMMIT_RETRY_MS, COMMIT_GRACE_MS);
	for (;;)
	{
		outcome = try_commit(session, &command, &reply, &sent, failure);
		if (outcome == MONGO_COMMITTED && command.fields == again &&
			!is_met_by_majority(connection->write_concern))
		{
			command.fields = first;
			outcome = try_commit(session, &command, &reply, &sent, failure);
			if (outcome != MONGO_COMMITTED)
				outcome = MONGO_COMMIT_UNCONFIRMED;
			break;
		}
		if (outcome == MONGO_COMMITTED || outcome == MONGO_NOT_COMMITTED ||
		/* UnsatisfiableWriteConcern, UnknownReplWriteConcern */
			(outcome == MONGO_COMMIT_UNCONFIRMED && (failure->code == 100 || failure->code == 79)) ||
			mongo_interrupt_is_due(true) ||
			GetCurrentTimestamp() >= transport->ending.deadline)
			break;
		if (sent > 0)
			command.fields = again;
		/* interrupts only end the pause */
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 COMMIT_PAUSE_MS, mongo_wait_event(MONGO_WAIT_COMMIT));
		ResetLatch(MyLatch);
	}
	mongo_finish_ending(transport);
	transport->wait_limit_ms = 0;
	transport->timed_out = false;
	return outcome;
}

/*
 * Raises 08007 if MongoDB may have committed, or has committed on another server; otherwise
 * raises the failure.
 */
pg_noreturn static void
report_failed_commit(const char *server_name, MongoCommitOutcome outcome,
					 const MongoFailure *failure)
{
	char	   *message = psprintf("could not commit on server \"%s\"", server_name);
	const char *text = mongo_printable(failure->text);
	const char *before = NULL;

	if (!failure->lost)
		text = psprintf(_("error %d: %s"), failure->code, text);
	foreach_ptr(const MongoSession, other, sessions)
	{
		if (other->written_level > 0 && other->over)
			before = other->server_name;
	}
	if (outcome == MONGO_NOT_COMMITTED && before == NULL)
		mongo_raise_failure(message, failure, NULL);
	ereport(ERROR,
			(errcode(ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN),
			 errmsg("%s", message),
			 outcome == MONGO_NOT_COMMITTED ?
			 errdetail("What was written to server \"%s\" has been committed before and stays. This one failed: %s",
					   before, text) :
			 outcome == MONGO_COMMIT_UNKNOWN ?
			 errdetail("It is not known whether MongoDB committed: %s", text) :
			 errdetail("MongoDB has applied the transaction, but not confirmed it as the write concern demands: %s",
					   text),
			 outcome == MONGO_COMMIT_UNCONFIRMED ?
			 errhint("PostgreSQL rolls back. Look in MongoDB for what the transaction wrote before repeating it, and check the write concern of the foreign server.") :
			 errhint("PostgreSQL rolls back. Look in MongoDB for what the transaction wrote before repeating it.")));
}

/*
 * Raises 0A000 if a savepoint that wrote was rolled back, or if a failed command has ended the
 * MongoDB transaction.
 */
static void
refuse_session(const MongoSession *session, bool at_commit)
{
	if (!session->uncommittable && !session->lost)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 at_commit ?
			 errmsg("cannot commit what was written to server \"%s\"", session->server_name) :
			 errmsg("server \"%s\" cannot be used for the rest of this transaction",
					session->server_name),
			 session->uncommittable ?
			 errdetail("A savepoint, or an exception block, under which it was written to has been rolled back; MongoDB has no savepoints.") :
			 errdetail("A command failed in a savepoint, or an exception block, that has been rolled back; MongoDB ends a transaction, and its snapshot, with the first command that fails."),
			 session->uncommittable ?
			 errhint("Write to MongoDB outside of what may be rolled back separately.") :
			 errhint("Read from MongoDB what may fail before the first write; in READ COMMITTED it can fail then without that.")));
}

/*
 * Sends the only command of a restarted transaction again; returns whether it succeeded.
 *
 * It is sent anew after each failure that allows that (mongo_session_try_again()).
 */
static bool
insert_again(MongoSession *session, TimestampTz since, int attempt, MongoFailure *failure)
{
	while (mongo_session_try_again(session, failure, since, attempt++))
	{
		MongoWrite	write;

		mongo_write_begin(session, session->user, session->lease, session->insert, 0, &write);
		(void) mongo_write_finish(&write);
		mongo_lease_check_interrupts(session->lease);
		if (!write.failed)
			return true;
		*failure = write.failure;
	}
	return false;
}

/*
 * Commits, if the session has written.
 *
 * MongoDB reports some conflicts at the commit only: of sessions that create a collection at
 * once, one commits.  A transaction that has sent nothing but an insert is then repeated.
 */
static void
commit_session(MongoSession *session)
{
	TimestampTz since = GetCurrentTimestamp();
	MongoFailure failure;
	MongoCommitOutcome outcome;
	int			attempt = 0;

	if (session->lease == NULL || session->written_level == 0 || !session->used)
		return;

	/* if this backend is killed now, only MongoDB has the outcome */
	do
		outcome = commit_transaction(session, &failure);
	while (outcome == MONGO_NOT_COMMITTED && session->insert != NULL &&
		   insert_again(session, since, attempt++, &failure));
	if (outcome == MONGO_COMMITTED)
	{
		/*
		 * an interrupt during the commit is too late: MongoDB's commit stays
		 */
		session->over = true;
		QueryCancelPending = false;
		hold_interrupts();
		return;
	}
	session->maybe_open = true;
	report_failed_commit(session->server_name, outcome, &failure);
}

/*
 * Ends a MongoDB transaction in which nothing was written, by a commit.
 *
 * The success of the commit means that a majority has what was read.  Nothing depends on that, so
 * a failure is not reported, and the wait is as short as for an abort.
 */
static void
finish_reading(MongoSession *session)
{
	MongoCommand command = {.database = "admin"};
	MongoReply	reply = {.context = CurrentMemoryContext};
	MongoTransport *transport;
	MongoFailure failure;

	if (session->lease == NULL || !session->used || session->written_level > 0 ||
		session->lost ||
		!mongo_connection_is_clean(session->lease->connection))
		return;
	command.document = mongo_from_template("{commitTransaction: 1}");
	command.fields = commit_fields(session, false);
	transport = &session->lease->connection->transport;
	mongo_begin_ending(transport, ABORT_MS, HURRIED_ABORT_MS);
	(void) mongo_session_run(session, &command, &reply, MONGO_DUE_INTERRUPT, &failure);
	mongo_finish_ending(transport);
	session->over = reply.document != NULL;
}

/*
 * Commits on every server, unless it is known beforehand that this cannot succeed.
 *
 * If anything fails after the first server has committed, that commit stays.  So interrupts are
 * served first, and PostgreSQL's own check for serialization failures at commit is called first.
 * Calling it twice does no harm.  An abort after it undoes it, as after PREPARE.
 */
static void
commit_sessions(void)
{
	foreach_ptr(const MongoSession, session, sessions)
	{
		if (session->written_level > 0)
			refuse_session(session, true);
	}
	foreach_ptr(MongoSession, session, sessions)
		finish_reading(session);
	CHECK_FOR_INTERRUPTS();
	mongo_memory_check(0);
	PreCommit_CheckForSerializationFailure();
	foreach_ptr(MongoSession, session, sessions)
		commit_session(session);
}

/* -------------------------------- aborting ---------------------------------- */

/* Warns that MongoDB has not confirmed the abort. */
static void
warn_of_open_transaction(const MongoSession *session)
{
	if (proc_exit_inprogress)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("could not tell server \"%s\" to abort the transaction",
					session->server_name),
			 session->maybe_open ?
			 errdetail("MongoDB does not answer. Unless it has committed the transaction, it aborts it, and releases its locks, after transactionLifetimeLimitSeconds.") :
			 errdetail("MongoDB does not answer. It aborts the transaction, and releases its locks, after transactionLifetimeLimitSeconds.")));
}

/*
 * Sends abortTransaction, and returns whether MongoDB has replied to everything in time.
 *
 * It may be sent while the reply to another command is outstanding.  MongoDB runs it after that
 * one.
 */
static bool
send_abort(MongoSession *session, int milliseconds)
{
	MongoConnection *connection = session->lease->connection;
	MongoTransport *transport = &connection->transport;

	/* these need no memory, unless there is a recovery token */
	bson_t		document = BSON_INITIALIZER;
	bson_t		fields = BSON_INITIALIZER;
	MongoCommand command = {.database = "admin",.document = &document,.fields = &fields};
	MongoReply	reply = {.context = CurrentMemoryContext};
	bool		sent;

	mongo_append_template(&document, "{abortTransaction: 1}");
	mongo_append_session(session, &fields);
	mongo_append_saved_field(&fields, "recoveryToken", &session->recovery_token);
	transport->interrupted = false;
	mongo_begin_ending(transport, milliseconds, HURRIED_ABORT_MS);
	sent = mongo_send(connection, &command, &reply);
	mongo_finish_ending(transport);
	bson_destroy(&document);
	bson_destroy(&fields);
	return sent && mongo_connection_drain(connection, 0, milliseconds);
}

/* Ends the session's command and transaction over another connection. */
static bool
kill_session(MongoSession *session, int milliseconds)
{
	bson_t		document = BSON_INITIALIZER;
	MongoCommand command = {.database = "admin",.document = &document};
	bool		sent;

	mongo_append_template(&document, "{killSessions: [@1]}", mongo_document(session->lsid));
	sent = mongo_connection_run_separately(session->lease->connection, &command, milliseconds,
										   NULL);
	/* the next transaction begins a new session, with new numbers */
	session->lease->connection->session.lsid = NULL;
	bson_destroy(&document);
	return sent;
}

/*
 * Has MongoDB abort the transaction; returns false if MongoDB has not confirmed that in time.
 *
 * The abort is sent after a command that was interrupted.  If the replies do not come soon, the
 * command still runs, and killSessions over another connection ends it.  That may overtake the
 * command, and is sent again then.  If the connection is lost, or a commit has been sent, only
 * killSessions is left, which has no effect on a committed transaction.  Interrupts are not
 * served, but shorten the wait.
 */
static bool
abort_transaction(MongoSession *session)
{
	MongoConnection *connection = session->lease->connection;
	MongoTransport *transport = &connection->transport;
	bool		hurried = proc_exit_inprogress || transport->interrupted ||
		mongo_interrupt_is_due(true);
	bool		is_behind = connection->in_flight > 0;
	int			kill_ms = hurried || is_behind ? HURRIED_KILL_MS : ABORT_MS;

	if (mongo_connection_is_clean(connection) && mongo_has_reply(connection))
		connection->broken = true;
	if (session->maybe_open || mongo_connection_is_lost(connection))
		return kill_session(session, kill_ms);
	if (send_abort(session, is_behind ? Min(mongo_discard_wait(connection), HURRIED_ABORT_MS) :
				   hurried ? HURRIED_ABORT_MS : ABORT_MS))
		return true;
	if (connection->broken && !transport->timed_out)
		return kill_session(session, kill_ms);
	for (int attempt = 0; attempt < 2 && is_behind && kill_session(session, kill_ms); attempt++)
	{
		if (mongo_connection_drain(connection, 0, KILLED_WAIT_MS))
			return true;
	}
	return false;
}

/*
 * Warns that PostgreSQL rolls back what MongoDB has committed.  That can be the work of another
 * extension, or PostgreSQL's own work, between the two commits.
 */
static void
warn_of_commit(const MongoSession *session)
{
	if (session->written_level == 0 || !session->over || proc_exit_inprogress)
		return;
	mongo_activity_count(session->lease->owner, MONGO_COUNT_ERRORS, 1);
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("changes on server \"%s\" were not rolled back", session->server_name),
			 errdetail("MongoDB had committed them before COMMIT failed."),
			 errhint("Look in MongoDB for what the transaction wrote before repeating it.")));
}

static void
abort_if_open(void *argument)
{
	MongoSession *session = argument;

	if (session->used && !session->over && !abort_transaction(session))
		warn_of_open_transaction(session);
	session->over = true;
}

/*
 * Ends the MongoDB transaction and returns the connection.
 *
 * Never raises: an ERROR or FATAL here would make PostgreSQL end its transaction a second time.
 */
static void
end_session(MongoSession *session)
{
	if (session->lease == NULL)
		return;
	(void) mongo_protect(abort_if_open, session);
	if (!mongo_driver_is_entered())
	{
		mongo_finish_ending(&session->lease->connection->transport);
		mongo_lease_release(session->lease);
	}
	session->lease = NULL;
}

/* Abandons a batch in flight; called by mongo_protect(). */
static void
abandon_protected(void *argument)
{
	MongoSession *session = argument;

	mongo_write_flight_abandon(session->flight);
}

/* Abandons a batch that was sent at this nesting level or a deeper one. */
static void
abandon_flight(MongoSession *session, int level)
{
	if (session->flight != NULL && session->flight_level >= level)
		(void) mongo_protect(abandon_protected, session);
}

/*
 * mongo_sessions_exist
 *		Tells whether the transaction has any.
 */
bool
mongo_sessions_exist(void)
{
	return sessions != NIL;
}

/*
 * mongo_sessions_at_end
 *		Commits sessions before PostgreSQL commits, and ends them after it has ended.
 */
void
mongo_sessions_at_end(XactEvent event)
{
	/* if the process exits from within libmongoc, nothing can be done */
	if (sessions == NIL || (mongo_driver_is_entered() && event != XACT_EVENT_PRE_COMMIT))
		return;

	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			mongo_driver_check();
			commit_sessions();
			break;

		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			release_interrupts(event == XACT_EVENT_ABORT);
			foreach_ptr(MongoSession, session, sessions)
			{
				abandon_flight(session, 1);
				if (event == XACT_EVENT_ABORT)
					warn_of_commit(session);
				end_session(session);
			}
			sessions = NIL;
			break;

		default:
			break;
	}
}

/*
 * mongo_sessions_at_subtransaction_end
 *		Moves writes of a committed level to the level above.  After the abort of a level that
 *		wrote, the MongoDB transaction cannot be committed any more.
 */
void
mongo_sessions_at_subtransaction_end(SubXactEvent event)
{
	int			level = GetCurrentTransactionNestLevel();

	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	foreach_ptr(MongoSession, session, sessions)
	{
		abandon_flight(session, level);
		if (session->written_level < level)
			continue;
		session->written_level = level - 1;
		if (event == SUBXACT_EVENT_ABORT_SUB && session->begun)
			session->uncommittable = true;
	}
}

/* -------------------------- finding sessions ------------------------------- */

static MongoSession *
find_session(const UserMapping *user)
{
	foreach_ptr(MongoSession, session, sessions)
	{
		/*
		 * Roles may share the mapping of PUBLIC.  A mapping may have been
		 * dropped and made again, with another OID.
		 */
		if ((session->user->userid == user->userid || session->user->umid == user->umid) &&
			session->user->serverid == user->serverid)
			return session;
	}
	return NULL;
}

static MongoSession *
create_session(const UserMapping *user)
{
	MemoryContext old_context;
	MongoSession *session;
	ForeignServer *server;

	old_context = MemoryContextSwitchTo(TopTransactionContext);
	server = GetForeignServer(user->serverid);
	session = palloc0(sizeof(MongoSession));
	session->user = mongo_user_mapping(user->userid, user->serverid);
	session->server_name = server->servername;
	session->mode = mongo_connection_options(server, session->user)->transactions;
	sessions = lappend(sessions, session);
	MemoryContextSwitchTo(old_context);
	return session;
}

/*
 * mongo_session_settle
 *		Receives the replies to all users' batches in flight, before a command is sent to the
 *		server of 'user'.  Raises as mongo_write_flight_settle() does.
 */
void
mongo_session_settle(const UserMapping *user)
{
	foreach_ptr(MongoSession, session, sessions)
	{
		if (session->flight != NULL && session->user->serverid == user->serverid)
			mongo_write_flight_settle(session->flight);
	}
}

/*
 * mongo_session_for_write
 *		Returns the session in which 'user' writes.  The first call creates it, and begins its
 *		MongoDB transaction.  It lives until the PostgreSQL transaction ends.
 *
 * An UPDATE or DELETE calls this before its scan, so that rows cannot change between being read
 * and being written.  First waits for a batch in flight, and raises its error.  Raises 08001 and
 * 28P01 if connecting fails, 25006 while reads are at a time, and 0A000 after a rolled-back
 * savepoint or if the option "transactions" requires transactions that the server lacks.
 */
MongoSession *
mongo_session_for_write(UserMapping *user)
{
	MongoSession *session = find_session(user);
	MongoWriteFlight *flight;

	mongo_refuse_write_at_time();
	if (session == NULL)
		session = create_session(user);
	refuse_session(session, false);
	flight = session->flight;
	mongo_session_settle(user);
	if (flight != NULL)
		mongo_write_flight_check(flight);
	mongo_session_begin(session);
	return session;
}

/*
 * mongo_begin_write
 *		Prepares a write to 'scope' by 'command', and returns the session for it, as
 *		mongo_session_for_write() does.
 *
 * Begins the scans, and reads to their end the open cursors, that may see the write and must not.
 * Sends other statements' unsent writes to 'scope'.  'statement' is the memory context of the
 * query that writes, 'deferred' whether it had deferred that.  Raises what these raise.
 */
MongoSession *
mongo_begin_write(UserMapping *user, const MongoAccessScope *scope, CommandId command,
				  MemoryContext statement, bool deferred)
{
	MongoSession *session;

	mongo_begin_readers(scope, command, statement, deferred);
	session = mongo_session_for_write(user);
	mongo_before_read(scope, InvalidCommandId);
	mongo_cursors_read_to_end(scope, session->lease != NULL);
	return session;
}

/*
 * mongo_session_for_read
 *		Returns the session in which 'user' must read, or NULL outside of a MongoDB transaction.
 *
 * A transaction begins by a write, or here if the isolation level requires one snapshot.  Raises
 * what mongo_session_for_write() does, but not the error of a batch in flight; and 25001 if reads
 * are at a time within a MongoDB transaction.
 */
MongoSession *
mongo_session_for_read(UserMapping *user)
{
	MongoSession *session = find_session(user);
	bool		at_time = mongo_reads_at_time(NULL);

	/* a time is a snapshot, too */
	if (session == NULL && IsolationUsesXactSnapshot() && !at_time)
		session = create_session(user);
	mongo_session_settle(user);
	if (session == NULL)
		return NULL;
	if (at_time && session->lease != NULL)
		mongo_refuse_transaction_at_time();
	if (at_time)
		return NULL;
	refuse_session(session, false);
	if (IsolationUsesXactSnapshot())
		mongo_session_begin(session);
	return session->lease == NULL ? NULL : session;
}
