/*-------------------------------------------------------------------------
 *
 * transaction.c
 *		MongoDB transactions within PostgreSQL's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"
#include "options.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

static bson_t *mongo_transaction_fields(MongoLease *lease,
										const mongoc_client_session_t *session);
static void mongo_transaction_note_reply(MongoLease *lease,
										 mongoc_client_session_t *session,
										 const bson_t *reply);
static bool mongo_transaction_run(MongoLease *lease, mongoc_client_session_t *session,
								  MemoryContext context, const char *database,
								  const bson_t *command, const bson_t *fields,
								  bson_t **reply, bson_error_t *error);
static bool mongo_transaction_takes_messages(MongoLease *lease, TimestampTz used_at);

/*-------------------------------------------------------------------------
 * MongoDB transactions that follow the PostgreSQL transaction.
 *
 * Invariant: 'sessions' holds an entry for each user mapping written to, or
 * read from in one snapshot, in the current PostgreSQL transaction, and is
 * empty between transactions.  A lease in an entry is pinned until then: the
 * MongoDB transaction belongs to its client.
 *
 * MongoDB commits just before PostgreSQL does (pre-commit), so an error of
 * MongoDB's still rolls PostgreSQL back.  What cannot be had without two-phase
 * commit, which MongoDB does not offer to clients: should PostgreSQL fail
 * between the two commits, MongoDB's stays.
 *-------------------------------------------------------------------------
 */

/* How long an abort may go on closing cursors. */
#define KILL_CURSORS_MS		500

struct MongoSession
{
	UserMapping *user;			/* a copy */
	char	   *server_name;
	MongoTransactions mode;
	bool		begun;			/* a MongoDB transaction is open, or was */
	MongoLease *lease;			/* pinned; NULL without a transaction */
	mongoc_client_session_t *driver_session;	/* likewise */
	bool		used;			/* a command has been sent in the transaction */
	TimestampTz used_at;		/* the last one */
	bool		wrote;			/* something was written, or may have been */
	bool		lost;			/* a command failed: MongoDB has ended the
								 * transaction, or will */
	int64		documents;		/* written */
	MongoWriteDoubt doubt;		/* what more may be, without a transaction */
	MongoWriteFlight *flight;	/* a batch under way, likewise; or NULL */
	const MongoFlightMethods *flight_methods;
	int			flight_level;	/* nesting level that it was sent at */
	int			written_level;	/* deepest nesting level that wrote; 0: none */
	bool		uncommittable;	/* a savepoint that wrote was rolled back */
	bool		maybe_open;		/* a commit failed; locks may be held for it */
	MongoSessionCursors cursors;	/* open on the server */
};

/* In TopTransactionContext; NIL between transactions. */
static List *sessions = NIL;

static bool callbacks_registered = false;

/* The nesting level of the statement that writes; 0: the current one. */
static int	writing_level = 0;

void
mongo_session_report_error(const char *context_message, const bson_error_t *error,
						   const bson_t *reply)
{
	if (mongo_reply_has_label(reply, "TransientTransactionError"))
		mongo_report_transient_error(context_message, error);
	mongo_report_bson_error(context_message, error, reply);
}

/* ------------------------------ beginning ---------------------------------- */

/*
 * start_driver_transaction
 *		libmongoc's part; nothing here raises between making and freeing.
 *		Sets session->driver_session, to NULL unless it succeeds.
 *
 * All reads of a transaction are from one snapshot of the storage engine.
 * Repeatable read also asks that it be one that a majority has; and what is
 * committed must have reached a majority, or an election could undo it.
 */
static bool
start_driver_transaction(MongoSession *session, mongoc_client_t *client,
						 bson_error_t *error)
{
	mongoc_transaction_opt_t *options = mongoc_transaction_opts_new();
	mongoc_read_concern_t *read_concern = mongoc_read_concern_new();
	mongoc_read_prefs_t *primary = mongoc_read_prefs_new(MONGOC_READ_PRIMARY);
	mongoc_write_concern_t *write_concern = NULL;
	bool		started = false;

	if (IsolationUsesXactSnapshot())
	{
		mongoc_read_concern_set_level(read_concern,
									  MONGOC_READ_CONCERN_LEVEL_SNAPSHOT);
		mongoc_transaction_opts_set_read_concern(options, read_concern);
	}
	mongoc_transaction_opts_set_read_prefs(options, primary);
	if (mongoc_write_concern_is_default(mongoc_client_get_write_concern(client)))
	{
		write_concern = mongoc_write_concern_new();
		mongoc_write_concern_set_w(write_concern, MONGOC_WRITE_CONCERN_W_MAJORITY);
		mongoc_transaction_opts_set_write_concern(options, write_concern);
	}

	if (session->driver_session == NULL)
		session->driver_session = mongoc_client_start_session(client, NULL, error);
	if (session->driver_session != NULL)
		started = mongoc_client_session_start_transaction(session->driver_session,
														  options, error);
	if (!started && session->driver_session != NULL)
	{
		/* nothing may go on in a session without its transaction */
		mongoc_client_session_destroy(session->driver_session);
		session->driver_session = NULL;
	}

	if (write_concern != NULL)
		mongoc_write_concern_destroy(write_concern);
	mongoc_read_prefs_destroy(primary);
	mongoc_read_concern_destroy(read_concern);
	mongoc_transaction_opts_destroy(options);
	return started;
}

/*
 * refuse_without_transactions
 *		The option "transactions" on a standalone server.
 */
static void
refuse_without_transactions(MongoSession *session)
{
	if (session->mode == MONGO_TRANSACTIONS_REQUIRED)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("server \"%s\" has no transactions", session->server_name),
				 errdetail("It is a standalone MongoDB server, and the option \"transactions\" is \"required\"."),
				 errhint("Make it a replica set, which may have one member, or set \"transactions\" to \"auto\" or \"off\".")));
	session->mode = MONGO_TRANSACTIONS_OFF;
}

/*
 * begin
 *		Open the MongoDB transaction where the server has them.
 *
 * An idle client may have lost sight of its servers or of the primary, and
 * libmongoc would not wait for an election.  Nothing has been done yet, so a
 * new one is made, which does.
 */
static void
begin(MongoSession *session)
{
	MongoLease *lease;
	bson_error_t error;
	bool		started;

	if (session->begun || session->mode == MONGO_TRANSACTIONS_OFF)
		return;

	lease = mongo_lease_acquire_live(TopTransactionContext, session->user);
	if (mongo_lease_deployment(lease) == MONGO_DEPLOYMENT_UNKNOWN)
		mongo_lease_renew(lease, session->user);
	if (mongo_lease_deployment(lease) == MONGO_DEPLOYMENT_STANDALONE)
	{
		mongo_lease_release(lease);
		refuse_without_transactions(session);
		return;
	}

	started = start_driver_transaction(session, mongo_lease_client(lease), &error);
	if (!started && error.domain == MONGOC_ERROR_SERVER_SELECTION)
	{
		mongo_lease_check_interrupts(lease);
		mongo_lease_renew(lease, session->user);
		started = start_driver_transaction(session, mongo_lease_client(lease), &error);
	}
	if (!started)
	{
		mongo_lease_check_interrupts(lease);
		mongo_lease_release(lease);
		mongo_session_report_error(psprintf("could not begin a transaction on server \"%s\"",
											session->server_name), &error, NULL);
	}
	session->begun = true;
	session->lease = lease;
	mongo_lease_note_transaction(lease);
}

bool
mongo_session_is_fresh(const MongoSession *session)
{
	return session->driver_session != NULL && !session->used &&
		!IsolationUsesXactSnapshot();
}

void
mongo_session_restart(MongoSession *session)
{
	bson_error_t error;

	mongoc_client_session_abort_transaction(session->driver_session, NULL);
	mongo_lease_check_interrupts(session->lease);
	session->used = false;
	mongo_lease_note_transaction(session->lease);
	if (start_driver_transaction(session, mongo_lease_client(session->lease), &error))
		return;
	mongo_lease_check_interrupts(session->lease);
	mongo_session_report_error(psprintf("could not begin a transaction on server \"%s\"",
										session->server_name), &error, NULL);
}

/* ------------------------------- the end ----------------------------------- */

/*
 * Between MongoDB's commit and PostgreSQL's no interrupt is to make the
 * transaction fail.  An ERROR, should there be one, releases what is held.
 */
static bool holding_interrupts = false;

/* hold_interrupts: until the end of the transaction. */
static void
hold_interrupts(void)
{
	if (!holding_interrupts)
		HOLD_INTERRUPTS();
	holding_interrupts = true;
}

/* release_interrupts: at the end, where PostgreSQL itself holds them as well. */
static void
release_interrupts(void)
{
	if (holding_interrupts && InterruptHoldoffCount > 1)
		RESUME_INTERRUPTS();
	holding_interrupts = false;
}

/*
 * kill_cursors
 *		Close what reading has left open; all at the end of the transaction.
 */
static void
kill_cursors(MongoSession *session, bool all)
{
	if (session->driver_session != NULL)
		mongo_session_cursors_kill(&session->cursors, all,
								   mongo_lease_client(session->lease),
								   session->driver_session);
}

/*
 * refuse_to_commit
 *		Raise where MongoDB has, or must have, less than was written.
 */
static void
refuse_to_commit(const MongoSession *session)
{
	if (!session->wrote)
		return;
	if (session->uncommittable)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot commit what was written to server \"%s\"",
						session->server_name),
				 errdetail("A savepoint, or an exception block, under which it was written to has been rolled back; MongoDB has no savepoints."),
				 errhint("Write to MongoDB outside of what may be rolled back separately.")));
	if (session->lost)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot commit what was written to server \"%s\"",
						session->server_name),
				 errdetail("A later command failed in a savepoint, or an exception block, that has been rolled back; MongoDB ends a transaction with the first command that fails."),
				 errhint("Read from MongoDB what may fail before the first write.")));
}

/* commit_session: what was only read needs no commit. */
static void
commit_session(MongoSession *session)
{
	bson_error_t error = {0};
	MongoCommitOutcome outcome;
	bool		transient;

	if (session->driver_session == NULL || !session->wrote)
		return;

	/* should this backend be killed now, the outcome is MongoDB's alone */
	outcome = mongo_commit_transaction(session->lease, session->driver_session,
									   &error, &transient);
	if (outcome == MONGO_COMMITTED)
	{
		/*
		 * an interrupt that came meanwhile is too late: MongoDB's commit
		 * stays
		 */
		QueryCancelPending = false;
		hold_interrupts();
		return;
	}
	session->maybe_open = true;
	mongo_report_failed_commit(session->server_name, outcome, &error, transient);
}

/* finish_reading: end a MongoDB transaction in which nothing was written. */
static void
finish_reading(MongoSession *session)
{
	if (session->driver_session != NULL && !session->wrote && !session->lost &&
		!mongo_lease_is_interrupted(session->lease))
		mongo_finish_reading(session->lease, session->driver_session);
}

/*
 * commit_sessions
 *		Commit on every server, unless a reason not to is known before.
 *
 * Whatever fails after the first of them has committed leaves that commit in
 * place.  So a cancel is served before, and PostgreSQL's own check at commit
 * for serialization failures, due a moment later, is made before; making it
 * twice does no harm, and an abort after it undoes it as after PREPARE.
 */
static void
commit_sessions(void)
{
	ListCell   *cell;

	foreach(cell, sessions)
		refuse_to_commit(lfirst(cell));
	foreach(cell, sessions)
	{
		kill_cursors(lfirst(cell), true);
		finish_reading(lfirst(cell));
	}
	CHECK_FOR_INTERRUPTS();
	mongo_memory_check(0);
	PreCommit_CheckForSerializationFailure();
	foreach(cell, sessions)
		commit_session(lfirst(cell));
}

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
			 errdetail("MongoDB does not answer. Unless it has committed the transaction, it aborts it, and lets go of its locks, after transactionLifetimeLimitSeconds.") :
			 errdetail("MongoDB does not answer. It aborts the transaction, and lets go of its locks, after transactionLifetimeLimitSeconds.")));
}

/*
 * tell_of_end
 *		Abort what is still open, and close cursors.
 *
 * A statement that was cancelled leaves its client refusing I/O; without an
 * abort, MongoDB would keep the transaction's locks for a minute.
 */
static void
tell_of_end(void *argument)
{
	MongoSession *session = argument;

	bool		told = true;

	if (session->maybe_open)
		told = mongo_kill_transaction(session->lease, session->driver_session);
	else if (session->used && mongoc_client_session_in_transaction(session->driver_session))
		told = mongo_abort_transaction(session->lease, session->driver_session);
	if (!told)
		warn_of_open_transaction(session);
	if (!mongo_lease_is_interrupted(session->lease))
	{
		mongo_lease_begin_ending(session->lease, KILL_CURSORS_MS, 0, 0);
		kill_cursors(session, true);
		mongo_lease_finish_ending(session->lease);
	}
}

/* free_driver_session: which aborts a transaction that is still open. */
static void
free_driver_session(void *argument)
{
	mongoc_client_session_destroy(((MongoSession *) argument)->driver_session);
}

/*
 * end_session
 *		Tell MongoDB and let the client go.
 *
 * An ERROR would make PostgreSQL end its transaction a second time, as would FATAL.
 * So nothing here raises, and a session whose memory runs out in libmongoc ends
 * later.
 */
static void
end_session(MongoSession *session)
{
	if (session->driver_session == NULL)
		return;
	(void) mongo_protect(tell_of_end, session);
	(void) mongo_protect(free_driver_session, session);
	session->driver_session = NULL;
	if (!mongo_driver_is_entered())
	{
		mongo_lease_finish_ending(session->lease);
		mongo_lease_release(session->lease);
	}
	session->lease = NULL;
}

static void
abandon_protected(void *argument)
{
	MongoSession *session = argument;

	session->flight_methods->abandon(session->flight);
}

/* abandon_flight: what was sent at this nesting level or below it. */
static void
abandon_flight(MongoSession *session, int level)
{
	if (session->flight != NULL && session->flight_level >= level)
		(void) mongo_protect(abandon_protected, session);
}

static void
warn_of_lasting_writes(const MongoSession *session)
{
	if (!session->begun)
		mongo_warn_of_lasting_writes(session->server_name, session->documents,
									 &session->doubt);
}

static void
at_transaction_event(XactEvent event)
{
	ListCell   *cell;

	/* on the way to exit from within libmongoc there is nothing to be done */
	if (sessions == NIL || mongo_driver_is_entered())
		return;

	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			commit_sessions();
			break;

		case XACT_EVENT_PRE_PREPARE:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot PREPARE a transaction that has operated on MongoDB foreign tables")));
			break;

		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			release_interrupts();
			foreach(cell, sessions)
			{
				abandon_flight(lfirst(cell), 1);
				end_session(lfirst(cell));
				if (event == XACT_EVENT_ABORT)
					warn_of_lasting_writes(lfirst(cell));
			}
			sessions = NIL;
			break;

		default:
			break;
	}
}

/*
 * at_subtransaction_event: what was written below it belongs to the level above, or
 * cannot be committed any more.
 */
static void
at_subtransaction_event(SubXactEvent event,
						SubTransactionId subtransaction pg_attribute_unused(),
						SubTransactionId parent pg_attribute_unused(),
						void *arg pg_attribute_unused())
{
	int			level = GetCurrentTransactionNestLevel();
	ListCell   *cell;

	if ((event != SUBXACT_EVENT_PRE_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB) ||
		mongo_driver_is_entered())
		return;
	foreach(cell, sessions)
	{
		MongoSession *session = lfirst(cell);

		abandon_flight(session, level);
		if (session->written_level < level)
			continue;
		session->written_level = level - 1;
		if (event == SUBXACT_EVENT_ABORT_SUB && session->begun)
			session->uncommittable = true;
		else if (event == SUBXACT_EVENT_ABORT_SUB)
			warn_of_lasting_writes(session);
	}
}

/* ----------------------------- for the others ------------------------------ */

static MongoSession *
find_session(const UserMapping *user)
{
	ListCell   *cell;

	foreach(cell, sessions)
	{
		MongoSession *session = lfirst(cell);

		if (session->user->umid == user->umid &&
			session->user->userid == user->userid &&
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

	if (!callbacks_registered)
	{
		mongo_commit_initialize();
		mongo_at_transaction_end(MONGO_END_SESSIONS, at_transaction_event);
		RegisterSubXactCallback(at_subtransaction_event, NULL);
		callbacks_registered = true;
	}

	old_context = MemoryContextSwitchTo(TopTransactionContext);
	server = GetForeignServer(user->serverid);
	session = palloc0(sizeof(MongoSession));
	session->user = mongo_user_mapping(user->userid, user->serverid);
	session->server_name = server->servername;
	session->mode = mongo_connection_options(server, session->user)->transactions;
	mongo_session_cursors_init(&session->cursors, TopTransactionContext);
	sessions = lappend(sessions, session);
	MemoryContextSwitchTo(old_context);
	return session;
}

static void
refuse_uncommittable(const MongoSession *session)
{
	if (session->uncommittable)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("server \"%s\" cannot be used for the rest of this transaction",
						session->server_name),
				 errdetail("A savepoint, or an exception block, under which it was written to has been rolled back; MongoDB has no savepoints.")));
	if (session->lost)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("server \"%s\" cannot be used for the rest of this transaction",
						session->server_name),
				 errdetail("A command failed in a savepoint, or an exception block, that has been rolled back; MongoDB ends a transaction, and its snapshot, with the first command that fails."),
				 errhint("In READ COMMITTED, what is read before the first write can fail without that.")));
}

/* settle_flight: and stop, where its failure is to be raised. */
static void
settle_flight(MongoSession *session, bool raise)
{
	MongoWriteFlight *flight = session->flight;

	if (flight == NULL)
		return;
	session->flight_methods->settle(flight);
	if (raise)
		session->flight_methods->check(flight);
}

void
mongo_session_settle(const UserMapping *user)
{
	MongoSession *session = find_session(user);

	if (session != NULL)
		settle_flight(session, false);
}

MongoSession *
mongo_session_for_write(UserMapping *user)
{
	MongoSession *session = find_session(user);

	if (session == NULL)
		session = create_session(user);
	refuse_uncommittable(session);
	settle_flight(session, true);
	begin(session);
	return session;
}

MongoSession *
mongo_session_for_read(UserMapping *user)
{
	MongoSession *session = find_session(user);

	if (session == NULL && IsolationUsesXactSnapshot())
		session = create_session(user);
	if (session == NULL)
		return NULL;
	refuse_uncommittable(session);
	settle_flight(session, false);
	if (IsolationUsesXactSnapshot())
		begin(session);
	return session->driver_session == NULL ? NULL : session;
}

MongoLease *
mongo_session_lease(MongoSession *session)
{
	return session->lease != NULL ? session->lease :
		mongo_lease_acquire_live(CurrentMemoryContext, session->user);
}

void
mongo_session_return_lease(MongoSession *session, MongoLease *lease)
{
	if (lease != session->lease)
		mongo_lease_release(lease);
}

void
mongo_session_append(MongoSession *session, bson_t *options)
{
	bson_error_t error;

	session->used = true;
	session->used_at = GetCurrentTimestamp();
	if (session->driver_session != NULL &&
		!mongoc_client_session_append(session->driver_session, options, &error))
		mongo_session_report_error("could not use a MongoDB session",
								   &error, NULL);
}

bool
mongo_session_takes_messages(const MongoSession *session)
{
	return session->driver_session != NULL && session->used &&
		mongo_transaction_takes_messages(session->lease, session->used_at);
}

bson_t *
mongo_session_fields(MongoSession *session)
{
	session->used_at = GetCurrentTimestamp();
	return mongo_transaction_fields(session->lease, session->driver_session);
}

void
mongo_session_note_reply(MongoSession *session, const bson_t *reply)
{
	mongo_transaction_note_reply(session->lease, session->driver_session, reply);
}

bool
mongo_session_in_transaction(const MongoSession *session)
{
	return session->driver_session != NULL;
}

/* get_writing_level: that of the statement whose rows are sent. */
static int
get_writing_level(void)
{
	return writing_level > 0 ? writing_level : GetCurrentTransactionNestLevel();
}

int
mongo_session_write_at(int level)
{
	int			previous = writing_level;

	writing_level = level;
	return previous;
}

void
mongo_session_note_write(MongoSession *session, int64 documents)
{
	mongo_activity_count_current(MONGO_COUNT_DOCUMENTS_WRITTEN, documents);
	session->wrote = true;
	session->documents += documents;
	session->written_level = Max(session->written_level, get_writing_level());
}

void
mongo_session_note_doubt(MongoSession *session, MongoWriteEnd end, int64 documents)
{
	mongo_write_doubt_add(&session->doubt, end, documents);
}

MongoLease *
mongo_session_lease_for(MongoSession *session, const MongoTurns *turns, void *reader)
{
	return mongo_lease_acquire_shared(CurrentMemoryContext, session->user, turns, reader);
}

void
mongo_session_note_flight(MongoSession *session, const MongoFlightMethods *methods,
						  MongoWriteFlight *flight)
{
	session->flight = flight;
	session->flight_methods = methods;
	session->flight_level = get_writing_level();
}

void
mongo_session_note_landed(MongoSession *session)
{
	session->flight = NULL;
}

MongoWriteDoubt *
mongo_session_doubt(MongoSession *session)
{
	return &session->doubt;
}

void
mongo_session_renew_lease(MongoSession *session, MongoLease *lease)
{
	mongo_lease_renew(lease, session->user);
}

const MongoTraffic *
mongo_session_traffic(const MongoSession *session)
{
	return &mongo_lease_connection(session->lease)->transport.traffic;
}

/* run_by_driver: a command that reads, by libmongoc; true when it succeeded. */
static bool
run_by_driver(MongoSession *session, MemoryContext context, const char *database,
			  const bson_t *command, bson_t **reply, bson_error_t *error)
{
	bson_t	   *options = bson_create_in(CurrentMemoryContext);

	/* libmongoc adds its own to a copy of the command */
	mongo_memory_check(2 * mongo_memory_grown(command->len));
	*reply = bson_create_in(context);
	mongo_session_append(session, options);
	if (!bson_has_field(command, "comment"))
		mongo_trace_append(mongo_lease_connection(session->lease)->comment, options);
	return mongoc_client_command_with_opts(mongo_lease_client(session->lease), database,
										   command, NULL, options, *reply, error);
}

const bson_t *
mongo_session_read_command(MongoSession *session, MemoryContext context,
						   const char *database, const bson_t *command,
						   const char *context_message)
{
	bson_t	   *reply;
	bson_error_t error = {0};
	bool		succeeded;

	if (mongo_session_takes_messages(session))
		succeeded = mongo_transaction_run(session->lease, session->driver_session, context,
										  database, command, mongo_session_fields(session),
										  &reply, &error);
	else
		succeeded = run_by_driver(session, context, database, command, &reply, &error);

	/*
	 * whatever failed in it, or was broken off, has ended MongoDB's
	 * transaction
	 */
	if (!succeeded)
		session->lost = true;
	mongo_lease_check_interrupts(session->lease);
	if (!succeeded)
		mongo_session_report_error(context_message, &error, reply);
	return reply;
}

void
mongo_session_cursor_opened(MongoSession *session, const char *database,
							const char *collection, int64 id,
							MongoSessionCursor **handle)
{
	mongo_session_cursors_add(&session->cursors, database, collection, id, handle);
	if (!mongo_session_cursors_are_due(&session->cursors))
		return;
	kill_cursors(session, false);
	mongo_lease_check_interrupts(session->lease);
}

void
mongo_session_cursor_abandoned(MongoSession *session, MongoSessionCursor *cursor)
{
	mongo_session_cursors_abandon(&session->cursors, cursor);
}

/* -------- Commands of a MongoDB transaction as messages of our own -------- */

/* A connection used so recently is not asked whether it is open. */
#define RECENTLY_USED_MS	100

/*
 * seems_open: as far as can be seen.  Where the server has closed it, a command that was
 * sent would be lost, and the transaction with it; libmongoc makes another connection.
 */
static bool
seems_open(MongoStream *stream, TimestampTz used_at)
{
	return stream->socket != PGINVALID_SOCKET &&
		(!TimestampDifferenceExceeds(used_at, GetCurrentTimestamp(), RECENTLY_USED_MS) ||
		 !mongo_stream_has_input(stream));
}

/*
 * mongo_transaction_takes_messages
 *		Can the next command of the transaction be a message of our own?
 *
 * 'used_at' is when the last one was sent: after a tenth of a second without any, the
 * connection is looked at, by one system call.
 */
static bool
mongo_transaction_takes_messages(MongoLease *lease, TimestampTz used_at)
{
	MongoClient *client = mongo_client_of(mongo_lease_connection(lease));
	const MongoTransport *transport = &client->connection.transport;

	return client->takes_transactions && transport->transaction_number > 0 &&
		mongo_client_is_clean(client) && seems_open(transport->data_stream, used_at);
}

/*
 * mongo_transaction_fields
 *		What such a message has beside the command: lsid, txnNumber, autocommit and
 *		$clusterTime, in the current memory context.  Raises 53200.
 */
static bson_t *
mongo_transaction_fields(MongoLease *lease, const mongoc_client_session_t *session)
{
	const MongoTransport *transport = &mongo_lease_connection(lease)->transport;
	const bson_t *cluster_time = mongoc_client_session_get_cluster_time(session);
	bson_t	   *fields = bson_create_in(CurrentMemoryContext);

	BSON_APPEND_DOCUMENT(fields, "lsid", mongoc_client_session_get_lsid(session));
	BSON_APPEND_INT64(fields, "txnNumber", transport->transaction_number);
	BSON_APPEND_BOOL(fields, "autocommit", false);
	if (cluster_time != NULL)
		BSON_APPEND_DOCUMENT(fields, "$clusterTime", cluster_time);
	return fields;
}

/*
 * mongo_transaction_note_reply
 *		After mongo_exchange_receive(): libmongoc's session is to have the cluster time.
 *
 * 'reply' is NULL where none has come.  The connection is closed then, so that the
 * transaction's end goes over another one.
 */
static void
mongo_transaction_note_reply(MongoLease *lease, mongoc_client_session_t *session,
							 const bson_t *reply)
{
	bson_iter_t iter;
	const uint8_t *data;
	uint32_t	length;
	bson_t		cluster_time;

	if (reply == NULL)
	{
		mongo_transport_close_data_stream(&mongo_lease_connection(lease)->transport);
		return;
	}
	if (!bson_iter_init_find(&iter, reply, "$clusterTime") ||
		!BSON_ITER_HOLDS_DOCUMENT(&iter))
		return;
	bson_iter_document(&iter, &length, &data);
	if (bson_view(&cluster_time, data, length))
		mongoc_client_session_advance_cluster_time(session, &cluster_time);
}

void
mongo_transaction_append_labels(bson_t *document, const bson_t *reply)
{
	bson_iter_t iter;

	if (reply == NULL)
		bson_append_template(document, "{errorLabels: ['TransientTransactionError']}");
	else if (bson_iter_init_find(&iter, reply, "errorLabels") &&
			 !bson_has_field(document, "errorLabels"))
		bson_append_iter(document, NULL, 0, &iter);
}

/*
 * mongo_transaction_run
 *		Send a command that reads, with the fields of mongo_transaction_fields(), and wait:
 *		true when it succeeded.
 *
 * The reply, in 'context', and *error are as libmongoc gives them.  Raises 53200 and
 * 54000 before anything is sent.
 */
static bool
mongo_transaction_run(MongoLease *lease, mongoc_client_session_t *session,
					  MemoryContext context, const char *database, const bson_t *command,
					  const bson_t *fields, bson_t **reply, bson_error_t *error)
{
	MemoryContext caller_context = MemoryContextSwitchTo(context);
	MongoConnection *connection = mongo_lease_connection(lease);
	bson_t	   *document = bson_palloc(context, sizeof(bson_t));
	mongoc_iovec_t iov[2];
	size_t		iovcnt;
	bool		sent;
	bool		answered;
	bool		failed;

	mongo_wire_check_size(command);
	mongo_memory_check(0);
	mongo_wire_prepare(connection, database, command, fields, NULL, iov, &iovcnt);
	sent = mongo_exchange_send(connection, iov, iovcnt);
	answered = mongo_exchange_receive(connection, sent, document);
	mongo_transaction_note_reply(lease, session, answered ? document : NULL);
	failed = mongo_exchange_has_failed(connection, answered, document, error);
	if (failed && answered && mongo_error_is_retryable(error->code))
		connection->broken = true;
	if (!answered)
	{
		document = bson_create_in(context);
		mongo_transaction_append_labels(document, NULL);
	}
	*reply = document;
	MemoryContextSwitchTo(caller_context);
	return !failed;
}

/*-------------------------------------------------------------------------
 * What is to be done when a PostgreSQL transaction ends, in its order.
 *-------------------------------------------------------------------------
 */

static void (*steps[MONGO_TRANSACTION_END_STEPS]) (XactEvent event);

static void
run_steps(XactEvent event, void *arg pg_attribute_unused())
{
	for (int i = 0; i < MONGO_TRANSACTION_END_STEPS; i++)
	{
		if (steps[i] != NULL)
			steps[i] (event);
	}
}

void
mongo_at_transaction_end(MongoTransactionEndStep step, void (*callback) (XactEvent event))
{
	static bool registered = false;

	if (!registered)
		RegisterXactCallback(run_steps, NULL);
	registered = true;
	steps[step] = callback;
}
