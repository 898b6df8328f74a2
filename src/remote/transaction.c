/*-------------------------------------------------------------------------
 *
 * transaction.c
 *		MongoDB transactions that follow the PostgreSQL transaction.
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
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "transaction.h"

#include "access/xact.h"
#include "bson_memory.h"
#include "miscadmin.h"
#include "options.h"
#include "printable.h"
#include "remote_error.h"
#include "storage/ipc.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "wire.h"

/* How long a commit whose outcome is unknown is asked for again. */
#define COMMIT_RETRY_MS		30000
#define COMMIT_PAUSE_MS		50

/* Nothing interrupts waiting for a commit, so no single wait is for long. */
#define COMMIT_WAIT_MS		15000

/* An abort that the server does not answer must not keep the backend. */
#define ABORT_TIMEOUT_MS	5000

struct MongoSession
{
	UserMapping *user;			/* a copy */
	char	   *server_name;
	MongoTransactions mode;
	bool		begun;			/* a MongoDB transaction is open, or was */
	MongoLease *lease;			/* pinned; NULL without a transaction */
	mongoc_client_session_t *driver_session;	/* likewise */
	bool		used;			/* a command has been sent in the transaction */
	int64		documents;		/* written */
	int			written_level;	/* deepest nesting level that wrote; 0: none */
	bool		uncommittable;	/* a savepoint that wrote was rolled back */
	bool		maybe_open;		/* a commit failed; locks may be held for it */
};

/* In TopTransactionContext; NIL between transactions. */
static List *sessions = NIL;

static bool callbacks_registered = false;

bool
mongo_reply_has_label(const bson_t *reply, const char *label)
{
	bson_iter_t iter;
	bson_iter_t labels;

	if (reply == NULL || !bson_iter_init_find(&iter, reply, "errorLabels") ||
		!BSON_ITER_HOLDS_ARRAY(&iter) || !bson_iter_recurse(&iter, &labels))
		return false;
	while (bson_iter_next(&labels))
	{
		if (BSON_ITER_HOLDS_UTF8(&labels) &&
			strcmp(bson_iter_utf8(&labels, NULL), label) == 0)
			return true;
	}
	return false;
}

/* A message of the driver's, made safe to quote as remote_error.h does. */
static void
report_transient_error(const char *message, const bson_error_t *error)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("%s", message),
			 errdetail("MongoDB aborted the transaction, error %d: %s",
					   (int) error->code, mongo_printable(error->message)),
			 errhint("Retry the transaction.")));
}

void
mongo_session_report_error(const char *context_message, const bson_error_t *error,
						   const bson_t *reply)
{
	if (mongo_reply_has_label(reply, "TransientTransactionError"))
		report_transient_error(context_message, error);
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

	lease = mongo_lease_acquire(TopTransactionContext, session->user);
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
	if (start_driver_transaction(session, mongo_lease_client(session->lease), &error))
		return;
	mongo_lease_check_interrupts(session->lease);
	mongo_session_report_error(psprintf("could not begin a transaction on server \"%s\"",
										session->server_name), &error, NULL);
}

/* ------------------------------- the end ----------------------------------- */

/*
 * commit_driver_transaction
 *		commitTransaction, asked again while nobody knows what became of it.
 *
 * Interrupts wait meanwhile: a commit given up half-way is one of which nobody
 * knows.  libmongoc itself repeats it once, with write concern majority.
 */
static bool
commit_driver_transaction(MongoSession *session, bson_error_t *error,
						  bool *transient, bool *unknown)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													   COMMIT_RETRY_MS);
	bool		committed;

	mongo_lease_limit_waits(session->lease, COMMIT_WAIT_MS);
	for (;;)
	{
		bson_t		reply;

		HOLD_INTERRUPTS();
		committed = mongoc_client_session_commit_transaction(session->driver_session,
															 &reply, error);
		RESUME_INTERRUPTS();
		*transient = mongo_reply_has_label(&reply, "TransientTransactionError");
		*unknown = mongo_reply_has_label(&reply, "UnknownTransactionCommitResult");
		bson_destroy(&reply);

		if (committed || !*unknown || QueryCancelPending || ProcDiePending ||
			GetCurrentTimestamp() > deadline)
			break;
		pg_usleep(COMMIT_PAUSE_MS * 1000L);
	}
	mongo_lease_limit_waits(session->lease, 0);
	return committed;
}

static void
refuse_to_commit(const MongoSession *session)
{
	if (session->uncommittable)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot commit what was written to server \"%s\"",
						session->server_name),
				 errdetail("A savepoint, or an exception block, under which it was written to has been rolled back; MongoDB has no savepoints."),
				 errhint("Write to MongoDB outside of what may be rolled back separately.")));
}

static void
commit_session(MongoSession *session)
{
	bson_error_t error = {0};
	bool		transient;
	bool		unknown;
	char	   *message;

	if (session->driver_session == NULL)
		return;

	/* should this backend be killed now, the outcome is MongoDB's alone */
	if (commit_driver_transaction(session, &error, &transient, &unknown))
	{
		/* a cancel that came meanwhile is too late: MongoDB's commit stays */
		QueryCancelPending = false;
		return;
	}

	session->maybe_open = true;
	message = psprintf("could not commit on server \"%s\"", session->server_name);
	if (unknown)
		ereport(ERROR,
				(errcode(ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN),
				 errmsg("%s", message),
				 errdetail("It is not known whether MongoDB committed, error %d: %s",
						   (int) error.code, mongo_printable(error.message))));
	if (transient)
		report_transient_error(message, &error);
	mongo_report_bson_error(message, &error, NULL);
}

/*
 * commit_sessions
 *		Commit on every server, after what can be known to stand against it.
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
	CHECK_FOR_INTERRUPTS();
	PreCommit_CheckForSerializationFailure();
	foreach(cell, sessions)
		commit_session(lfirst(cell));
}

/*
 * kill_driver_session
 *		What aborts a transaction that libmongoc takes for ended.
 *
 * PostgreSQL is about to roll back, so one that MongoDB has not committed must
 * not be left to its time limit; on one that it has, this has no effect.
 */
static void
kill_driver_session(MongoSession *session)
{
	bson_t		command = BSON_INITIALIZER;
	bson_t		list;

	BSON_APPEND_ARRAY_BEGIN(&command, "killSessions", &list);
	BSON_APPEND_DOCUMENT(&list, "0",
						 mongoc_client_session_get_lsid(session->driver_session));
	bson_append_array_end(&command, &list);
	(void) mongoc_client_command_simple(mongo_lease_client(session->lease), "admin",
										&command, NULL, NULL, NULL);
	bson_destroy(&command);
}

/*
 * end_session
 *		Abort what is still open and let the client go.  Never raises.
 *
 * A statement that was cancelled leaves its client refusing I/O; without an
 * abort, MongoDB would keep the transaction's locks for a minute.
 */
static void
end_session(MongoSession *session)
{
	if (session->driver_session == NULL)
		return;
	if (mongoc_client_session_in_transaction(session->driver_session) ||
		session->maybe_open)
	{
		mongo_lease_resume(session->lease);
		mongo_lease_limit_waits(session->lease, ABORT_TIMEOUT_MS);
		HOLD_INTERRUPTS();
		if (session->maybe_open)
			kill_driver_session(session);
		else
			mongoc_client_session_abort_transaction(session->driver_session, NULL);
		RESUME_INTERRUPTS();
		mongo_lease_limit_waits(session->lease, 0);
	}
	mongoc_client_session_destroy(session->driver_session);
	session->driver_session = NULL;
	mongo_lease_release(session->lease);
	session->lease = NULL;
}

static void
warn_of_lasting_writes(const MongoSession *session)
{
	if (session->begun || session->documents == 0 || proc_exit_inprogress)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("changes on server \"%s\" were not rolled back",
					session->server_name),
			 errdetail_plural("%lld document had been written in this transaction; without a MongoDB transaction this cannot be undone.",
							  "%lld documents had been written in this transaction; without a MongoDB transaction this cannot be undone.",
							  session->documents,
							  (long long) session->documents)));
}

static void
at_transaction_event(XactEvent event, void *arg pg_attribute_unused())
{
	ListCell   *cell;

	if (sessions == NIL)
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
			foreach(cell, sessions)
			{
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

static void
at_subtransaction_event(SubXactEvent event,
						SubTransactionId subtransaction pg_attribute_unused(),
						SubTransactionId parent pg_attribute_unused(),
						void *arg pg_attribute_unused())
{
	int			level = GetCurrentTransactionNestLevel();
	ListCell   *cell;

	if (event != SUBXACT_EVENT_PRE_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	foreach(cell, sessions)
	{
		MongoSession *session = lfirst(cell);

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
		RegisterXactCallback(at_transaction_event, NULL);
		RegisterSubXactCallback(at_subtransaction_event, NULL);
		callbacks_registered = true;
	}

	old_context = MemoryContextSwitchTo(TopTransactionContext);
	server = GetForeignServer(user->serverid);
	session = palloc0(sizeof(MongoSession));
	session->user = GetUserMapping(user->userid, user->serverid);
	session->server_name = server->servername;
	session->mode = mongo_connection_options(server, session->user)->transactions;
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
}

MongoSession *
mongo_session_for_write(UserMapping *user)
{
	MongoSession *session = find_session(user);

	if (session == NULL)
		session = create_session(user);
	refuse_uncommittable(session);
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
	if (IsolationUsesXactSnapshot())
		begin(session);
	return session->driver_session == NULL ? NULL : session;
}

MongoLease *
mongo_session_lease(MongoSession *session)
{
	return session->lease != NULL ? session->lease :
		mongo_lease_acquire(CurrentMemoryContext, session->user);
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
	if (session->driver_session != NULL &&
		!mongoc_client_session_append(session->driver_session, options, &error))
		mongo_session_report_error("could not use a MongoDB session",
								   &error, NULL);
}

bool
mongo_session_in_transaction(const MongoSession *session)
{
	return session->driver_session != NULL;
}

void
mongo_session_note_write(MongoSession *session, int64 documents)
{
	session->documents += documents;
	session->written_level = Max(session->written_level,
								 GetCurrentTransactionNestLevel());
}

const bson_t *
mongo_session_read_command(MongoSession *session, MemoryContext context,
						   const char *database, const bson_t *command,
						   const char *context_message)
{
	mongoc_client_t *client = mongo_lease_client(session->lease);
	bson_t	   *options = bson_create_in(CurrentMemoryContext);
	bson_t	   *reply = bson_create_in(context);
	bson_error_t error;
	bool		succeeded;

	mongo_session_append(session, options);
	succeeded = mongoc_client_command_with_opts(client, database, command, NULL,
												options, reply, &error);

	/* whatever failed in it, or was broken off, has ended MongoDB's transaction */
	if (!succeeded)
		session->written_level = Max(session->written_level,
									 GetCurrentTransactionNestLevel());
	mongo_lease_check_interrupts(session->lease);
	if (!succeeded)
		mongo_session_report_error(context_message, &error, reply);
	return reply;
}
