/*-------------------------------------------------------------------------
 *
 * commit.c
 *		Committing and aborting a MongoDB transaction, within bounds of time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* How long a commit whose outcome is unknown is asked for again. */
#define COMMIT_RETRY_MS		30000
#define COMMIT_PAUSE_MS		50

/* How long to wait for one answer, before looking for another server. */
#define COMMIT_WAIT_MS		15000

/* After an interrupt: for a commit that is about to be answered. */
#define COMMIT_GRACE_MS		50

/*
 * A server that does not answer must not keep the backend.  What has left by
 * then reaches it all the same; else MongoDB ends the transaction by itself,
 * after transactionLifetimeLimitSeconds.
 */
#define ABORT_MS			1000
#define HURRIED_ABORT_MS	100

/* How often to end libmongoc's sleep. */
#define WAKE_MS				20

/*
 * judge_failed_commit
 *		What a commit that was not answered with success has come to.
 *
 * Once commitTransaction may have reached a server, only that server's word, or
 * its successor's, that there is no such commit makes it none.  The label
 * TransientTransactionError is that word: without a commit sent before, for what
 * MongoDB aborts; after one, as a repetition asks for a majority, NoSuchTransaction
 * has it only when a majority confirms it (Transactions specification,
 * "UnknownTransactionCommitResult" and "Majority write concern is used when
 * retrying commitTransaction"; in MongoDB, isTransientTransactionError()).  Some
 * errors without a label come before anything is committed, so they are final
 * where nothing was sent before.  libmongoc's own labels are not looked at: they
 * leave out what its repetition hides.
 */
static MongoCommitOutcome
judge_failed_commit(const bson_t *reply, const bson_error_t *error, int sent)
{
	static const int refusals[] = {
		13,						/* Unauthorized */
		59,						/* CommandNotFound */
		257,					/* TransactionTooLarge */
		388						/* TransactionTooLargeForCache */
	};

	if (sent == 0)
		return MONGO_NOT_COMMITTED;
	if (mongo_reply_is_ok(reply))
		return MONGO_COMMIT_UNCONFIRMED;
	if (!bson_has_field(reply, "code") || bson_has_field(reply, "writeConcernError"))
		return MONGO_COMMIT_UNKNOWN;
	if (mongo_reply_has_label(reply, "TransientTransactionError"))
		return MONGO_NOT_COMMITTED;
	for (size_t i = 0; sent == 1 && i < lengthof(refusals); i++)
	{
		if (error->code == (uint32) refusals[i])
			return MONGO_NOT_COMMITTED;
	}
	return MONGO_COMMIT_UNKNOWN;
}

/* cannot_be_confirmed: asking again would bring the same answer. */
static bool
cannot_be_confirmed(const bson_error_t *error)
{
	return error->code == 100 || error->code == 79; /* UnsatisfiableWriteConcern,
													 * UnknownReplWriteConcern */
}

/* pause_commit: before it is asked for again; interrupts only end the pause. */
static void
pause_commit(void)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 COMMIT_PAUSE_MS, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
}

/*
 * longest_commit
 *		How long to ask, in ms.
 *
 * PostgreSQL itself stops the clock of statement_timeout before it commits.
 */
static int
longest_commit(void)
{
	return StatementTimeout > 0 ? Min(StatementTimeout, COMMIT_RETRY_MS) :
		COMMIT_RETRY_MS;
}

MongoCommitOutcome
mongo_commit_transaction(MongoLease *lease, mongoc_client_session_t *session,
						 bson_error_t *error, bool *transient)
{
	MongoCommitOutcome outcome;

	mongo_lease_drop_closed(lease);
	mongo_lease_limit_waits(lease, COMMIT_WAIT_MS);
	mongo_lease_begin_ending(lease, longest_commit(), COMMIT_GRACE_MS, 0);
	for (;;)
	{
		bson_t		reply;

		*transient = false;
		if (mongoc_client_session_commit_transaction(session, &reply, error))
			outcome = MONGO_COMMITTED;
		else
		{
			outcome = judge_failed_commit(&reply, error, mongo_lease_ending(lease).sent);
			*transient = mongo_reply_has_label(&reply, "TransientTransactionError");
		}
		bson_destroy(&reply);

		if (outcome == MONGO_COMMITTED || outcome == MONGO_NOT_COMMITTED ||
			(outcome == MONGO_COMMIT_UNCONFIRMED && cannot_be_confirmed(error)) ||
			mongo_lease_is_interrupted(lease) || mongo_interrupt_is_due(true) ||
			!mongo_lease_ending(lease).time_left)
			break;
		pause_commit();
	}
	mongo_lease_finish_ending(lease);
	mongo_lease_limit_waits(lease, 0);
	return outcome;
}

void
mongo_report_failed_commit(const char *server_name, MongoCommitOutcome outcome,
						   const bson_error_t *error, bool transient)
{
	char	   *message = psprintf("could not commit on server \"%s\"", server_name);
	const char *text = mongo_printable(error->message);

	if (outcome == MONGO_COMMIT_UNKNOWN)
		ereport(ERROR,
				(errcode(ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN),
				 errmsg("%s", message),
				 errdetail("It is not known whether MongoDB committed, error %d: %s",
						   (int) error->code, text),
				 errhint("PostgreSQL rolls back. Look in MongoDB for what the transaction wrote before repeating it.")));
	if (outcome == MONGO_COMMIT_UNCONFIRMED)
		ereport(ERROR,
				(errcode(ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN),
				 errmsg("%s", message),
				 errdetail("MongoDB has applied the transaction, but not confirmed it as the write concern demands, error %d: %s",
						   (int) error->code, text),
				 errhint("PostgreSQL rolls back. Look in MongoDB for what the transaction wrote before repeating it, and check the write concern of the foreign server.")));
	if (transient)
		mongo_report_transient_error(message, error);
	mongo_report_bson_error(message, error, NULL);
}

/* ------------------------------- aborting ---------------------------------- */

/*
 * libmongoc sleeps between two looks at the servers, for up to half a second.  A
 * signal ends that; PostgreSQL's timer sends one.
 */
static TimeoutId waker = MAX_TIMEOUTS;

static void
wake(void)
{
	/* the signal is all */
}

void
mongo_commit_initialize(void)
{
	if (waker == MAX_TIMEOUTS)
		waker = RegisterTimeout(USER_TIMEOUT, wake);
}

/*
 * keep_awake: a signal now and then, as a wait in libmongoc looks for interrupts only
 * when it is woken.
 */
static void
keep_awake(bool on)
{
	if (on)
		enable_timeout_every(waker, TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
																WAKE_MS), WAKE_MS);
	else
		disable_timeout(waker, false);
}

/*
 * is_hurried
 *		Has an interrupt led to the abort, or is one pending?
 */
static bool
is_hurried(MongoLease *lease)
{
	return proc_exit_inprogress || mongo_lease_is_interrupted(lease) ||
		mongo_interrupt_is_due(true);
}

bool
mongo_kill_transaction(MongoLease *lease, mongoc_client_session_t *session)
{
	return mongo_remote_cancel_session(mongo_client_of(mongo_lease_connection(lease)),
									   mongoc_client_session_get_lsid(session), ABORT_MS,
									   HURRIED_ABORT_MS,
									   is_hurried(lease) ? HURRIED_ABORT_MS : 0);
}

/* abort_by_driver: abortTransaction; false when that has been given up. */
static bool
abort_by_driver(MongoLease *lease, mongoc_client_session_t *session)
{
	bool		hurried = is_hurried(lease);
	MongoEndingResult result;

	mongo_lease_begin_ending(lease, ABORT_MS, HURRIED_ABORT_MS,
							 hurried ? HURRIED_ABORT_MS : 0);
	keep_awake(hurried);
	mongoc_client_session_abort_transaction(session, NULL);
	keep_awake(false);
	result = mongo_lease_ending(lease);
	mongo_lease_finish_ending(lease);

	/* a server that has just answered to something else will get it */
	return !mongo_lease_is_interrupted(lease) || (result.sent > 0 && result.heard);
}

bool
mongo_abort_transaction(MongoLease *lease, mongoc_client_session_t *session)
{
	bool		told;

	if (!mongo_lease_is_interrupted(lease) && mongo_lease_is_connected(lease))
		return abort_by_driver(lease, session);

	/*
	 * A command that was broken off, or lost with the connection, may run on,
	 * or have opened a cursor that nobody knows of.  libmongoc has to be told
	 * of the end, too; on a connection that was given up, that fails at once.
	 */
	told = mongo_kill_transaction(lease, session);
	(void) abort_by_driver(lease, session);
	return told;
}

void
mongo_finish_reading(MongoLease *lease, mongoc_client_session_t *session)
{
	mongo_lease_begin_ending(lease, ABORT_MS, HURRIED_ABORT_MS, 0);
	(void) mongoc_client_session_commit_transaction(session, NULL, NULL);
	mongo_lease_finish_ending(lease);
}
