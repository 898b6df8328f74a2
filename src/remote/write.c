/*-------------------------------------------------------------------------
 *
 * write.c
 *		One write: its connection, repetition, uncertain outcome, and conflicts.
 *
 * Nothing raises while a write is in flight.  If its wait is interrupted, the wait fails, and
 * MongoDB is told to end the write.  The caller raises after it has recorded the outcome.  In a
 * MongoDB transaction a write is sent once and its outcome is never uncertain, as it ends with
 * the transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/wait_event.h"

/* --------------------------- reading replies -------------------------------- */

/*
 * mongo_append_update
 *		Appends update operators, or a pipeline {"0": stage} as an array.
 */
void
mongo_append_update(bson_t *document, const char *field, const bson_t *update)
{
	bson_iter_t iter;

	mongo_append(document, field, bson_iter_init(&iter, update) && bson_iter_next(&iter) &&
				 strcmp(bson_iter_key(&iter), "0") == 0 ? mongo_array(update) : mongo_document(update));
}

/* Finds the first of writeErrors; returns false if there is none. */
static bool
find_write_error(const MongoReply *reply, bson_iter_t *element)
{
	bson_iter_t iter;

	return mongo_reply_find(reply, "writeErrors", &iter) && BSON_ITER_HOLDS_ARRAY(&iter) &&
		bson_iter_recurse(&iter, element) && bson_iter_next(element);
}

/* Records whether the write has failed, and the first reason. */
static void
read_reply(MongoWrite *write)
{
	const MongoReply *reply = &write->reply;
	bson_iter_t iter;

	write->failed = mongo_reply_failure(write->lease->connection, reply, &write->failure);
	if (write->failed)
		return;
	write->failed = find_write_error(reply, &iter) ||
		mongo_reply_find(reply, "writeConcernError", &iter);
	if (write->failed)
	{
		mongo_read_failure(&iter, &write->failure);
		write->failure.transient = mongo_reply_has_label(reply, "TransientTransactionError");
	}
}

/*
 * Tells whether the command was refused because of its connection.  What mongos passes on may be
 * one shard's refusal.
 */
static bool
has_not_begun(const MongoWrite *write)
{
	return !mongo_reply_is_ok(&write->reply) && mongo_failure_is_of_connection(&write->failure) &&
		strcmp(write->lease->connection->server_type, "Mongos") != 0;
}

/*
 * Returns what is known of the outcome of a write outside of MongoDB's transactions.
 *
 * A command that was not sent completely does not run.  If an operation may write any number of
 * documents, its error does not report how many it wrote before, unless MongoDB refuses such an
 * operation.
 */
static MongoWriteEnd
classify_end(const MongoWrite *write)
{
	bson_iter_t element;

	if (write->in_transaction || !write->failed || !write->sent)
		return MONGO_WRITE_ANSWERED;
	if (write->failure.lost)
		return MONGO_WRITE_UNKNOWN;
	if (has_not_begun(write))
		return MONGO_WRITE_ANSWERED;
	if (find_write_error(&write->reply, &element) ?
		write->most < 0 && !mongo_failure_is_refusal(&write->failure) :
		mongo_error_is_interruption(write->failure.code))
		return MONGO_WRITE_STOPPED;
	return MONGO_WRITE_ANSWERED;
}

/*-------------------------------------------------------------------------
 * Writes outside of MongoDB transactions, which no rollback undoes.
 *
 * Invariant: between transactions the list is empty.  Within one it has at most one row for each
 * server and nesting level, and none deeper than the current level.
 *-------------------------------------------------------------------------
 */

/* In TopTransactionContext; NIL between transactions. */
static List *lasting_writes = NIL;

/* Returns the row of a server and level, or NULL. */
static MongoLasting *
find_lasting(const char *server_name, int level)
{
	foreach_ptr(MongoLasting, lasting, lasting_writes)
	{
		if (lasting->level == level && strcmp(lasting->server_name, server_name) == 0)
			return lasting;
	}
	return NULL;
}

/* Finds or creates the row of the current level.  Allocates: call before a write. */
static MongoLasting *
lasting_of(const char *server_name)
{
	int			level = mongo_writing_level();
	MongoLasting *lasting = find_lasting(server_name, level);

	if (lasting == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(TopTransactionContext);

		lasting = palloc0(sizeof(MongoLasting));
		lasting->server_name = pstrdup(server_name);
		lasting->level = level;
		lasting_writes = lappend(lasting_writes, lasting);
		MemoryContextSwitchTo(old_context);
	}
	return lasting;
}

/*
 * mongo_uncertainty_add
 *		Adds a command that wrote at most so many documents (-1: any number), unless its outcome
 *		is known.
 */
void
mongo_uncertainty_add(MongoUncertainty *uncertainty, MongoWriteEnd end, int64 documents)
{
	if (end == MONGO_WRITE_ANSWERED)
		return;
	uncertainty->commands++;
	uncertainty->documents = documents < 0 || uncertainty->documents < 0 ? -1 :
		uncertainty->documents + documents;
	if (end == MONGO_WRITE_UNKNOWN)
		uncertainty->running = true;
}

/*
 * mongo_uncertainty_text
 *		Returns the uncertainty as a sentence without its full stop, palloc'd; NULL: there is
 *		none.
 */
char *
mongo_uncertainty_text(const MongoUncertainty *uncertainty)
{
	const char *most;

	if (uncertainty->commands == 0)
		return NULL;
	most = uncertainty->documents < 0 ? _("any number of documents") :
		psprintf(ngettext("up to %lld document", "up to %lld documents", uncertainty->documents),
				 (long long) uncertainty->documents);
	return psprintf(uncertainty->running ?
					_("MongoDB may still be running a command that may have changed %s") :
					_("MongoDB has ended a command that may have changed %s"), most);
}

/* Warns of writes that the rollback of their level leaves. */
static void
warn_of_lasting(const MongoLasting *lasting)
{
	char	   *uncertain = mongo_uncertainty_text(&lasting->uncertainty);
	StringInfoData detail;

	if (lasting->documents == 0 && lasting->commands == 0 && uncertain == NULL)
		return;
	/* sentences, each with a space after it */
	initStringInfo(&detail);
	if (lasting->documents > 0)
		appendStringInfo(&detail, ngettext("%lld document had been written in this transaction. ",
										   "%lld documents had been written in this transaction. ",
										   lasting->documents),
						 (long long) lasting->documents);
	if (uncertain != NULL)
		appendStringInfo(&detail, "%s. ", uncertain);
	if (detail.len > 0)
		appendStringInfoString(&detail, _("Without a MongoDB transaction this cannot be undone. "));
	if (lasting->commands > 0)
		appendStringInfo(&detail, ngettext("%d command that may have changed something had been run in this transaction by mongo_command() or mongo_aggregate(), which take no part in MongoDB's transactions. ",
										   "%d commands that may have changed something had been run in this transaction by mongo_command() or mongo_aggregate(), which take no part in MongoDB's transactions. ",
										   lasting->commands),
						 lasting->commands);
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("changes on server \"%s\" were not rolled back", lasting->server_name),
			 errdetail_internal("%.*s", detail.len - 1, detail.data),
			 lasting->uncertainty.running ?
			 errhint("In MongoDB, currentOp shows what is running, and killOp ends it.") : 0));
}

/*
 * mongo_lasting_exist
 *		Tells whether there are, or may be, writes that no rollback undoes.
 */
bool
mongo_lasting_exist(void)
{
	return lasting_writes != NIL;
}

/*
 * mongo_lasting_at_end
 *		At the end of a transaction forgets its writes, and after an abort raises a WARNING
 *		(01000) about those that stay.  Called after transaction.c has ended its sessions.
 */
void
mongo_lasting_at_end(XactEvent event)
{
	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT &&
		event != XACT_EVENT_PREPARE)
		return;
	if (event == XACT_EVENT_ABORT && !mongo_driver_is_entered())
	{
		foreach_ptr(const MongoLasting, lasting, lasting_writes)
			warn_of_lasting(lasting);
	}
	lasting_writes = NIL;
}

/*
 * mongo_lasting_at_subtransaction_end
 *		At a commit, moves a level's writes to the level above; at an abort, raises a WARNING
 *		(01000) about them and drops them.
 */
void
mongo_lasting_at_subtransaction_end(SubXactEvent event)
{
	int			level = GetCurrentTransactionNestLevel();
	ListCell   *cell;

	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	foreach(cell, lasting_writes)
	{
		MongoLasting *lasting = lfirst(cell);
		MongoLasting *above;

		if (lasting->level < level)
			continue;
		above = find_lasting(lasting->server_name, level - 1);
		if (event == SUBXACT_EVENT_ABORT_SUB)
			warn_of_lasting(lasting);
		else if (above == NULL)
		{
			lasting->level = level - 1;
			continue;
		}
		else
		{
			above->documents += lasting->documents;
			above->commands += lasting->commands;
			above->uncertainty.running |= lasting->uncertainty.running;
			above->uncertainty.commands += lasting->uncertainty.commands;
			above->uncertainty.documents = above->uncertainty.documents < 0 || lasting->uncertainty.documents < 0 ?
				-1 : above->uncertainty.documents + lasting->uncertainty.documents;
		}
		lasting_writes = foreach_delete_current(lasting_writes, cell);
	}
}

/* ------------------------------- one attempt -------------------------------- */

/* Sends the command; finish_attempt() receives its reply. */
static void
start_attempt(MongoWrite *write)
{
	MongoConnection *connection = write->lease->connection;
	const MongoSequence *operations = write->command.sequence;

	mongo_memory_check(!connection->compresses || operations == NULL ? 0 :
					   2 * mongo_memory_grown(operations->size));
	write->reply = (MongoReply) {.context = CurrentMemoryContext};
	write->sent = mongo_send(connection, &write->command, &write->reply);
}

/*-------------------------------------------------------------------------
 * A write outside of MongoDB's transactions that waits for one of them.
 *
 * MongoDB tries such a write again and again, until the transaction ends; that may be one of this
 * session on another foreign server.  What it does is seen by its counters only: each attempt is
 * one more conflict, and it yields for nothing else.  A write that makes progress yields without.
 *-------------------------------------------------------------------------
 */

#define LOOK_MS				300 /* for one look at the counters, and between
								 * two */

typedef struct WriteCounters
{
	int64		conflicts;
	int64		yields;
} WriteCounters;

/* Asks for the counters of the session's write; 0 if MongoDB returns none. */
static WriteCounters
read_counters(const MongoWrite *write)
{
	WriteCounters counters = {0};
	MongoCommand command = {.database = "admin"};
	bson_t	   *match = mongo_bson_create();
	MongoReply	reply = {.context = CurrentMemoryContext};
	bson_iter_t iter;
	bson_iter_t documents;
	bson_iter_t member;

	mongo_append_member(match, "lsid.id", "@1", mongo_first_value(write->lsid));
	command.document = mongo_from_template("{aggregate: 1, pipeline: [{$currentOp: {}}, {$match: @1}], cursor: {}}",
										   mongo_document(match));
	if (!mongo_connection_run_separately(write->lease->connection, &command, LOOK_MS, &reply) ||
		reply.document == NULL ||
		!bson_iter_init_from_data(&iter, reply.document, reply.length) ||
		!bson_iter_find_descendant(&iter, "cursor.firstBatch", &documents) ||
		!bson_iter_recurse(&documents, &documents))
		return counters;
	while (bson_iter_next(&documents))
	{
		if (!bson_iter_recurse(&documents, &member))
			continue;
		while (bson_iter_next(&member))
		{
			if (strcmp(bson_iter_key(&member), "writeConflicts") == 0)
				counters.conflicts += bson_iter_as_int64(&member);
			else if (strcmp(bson_iter_key(&member), "numYields") == 0)
				counters.yields += bson_iter_as_int64(&member);
		}
	}
	return counters;
}

/*
 * Receives the write's reply, and returns how the wait has ended.  Sets *waits if the write has
 * waited for a document for lock_timeout, or else for ten seconds.
 *
 * After that time, and then after twice as long as before, the counters are looked at twice.
 */
static MongoOutcome
await_reply(MongoWrite *write, bool *waits)
{
	MongoConnection *connection = write->lease->connection;
	MongoTransport *transport = &connection->transport;
	int			limit = LockTimeout > 0 ? LockTimeout : MONGO_CONFLICT_MS;

	*waits = false;
	while (write->lsid != NULL && !transport->ending.active && !transport->interrupted &&
		   (transport->socket_timeout_ms == 0 || transport->socket_timeout_ms > limit))
	{
		WriteCounters counters[2];
		MongoOutcome outcome = MONGO_INTERRUPTED;

		for (int look = 0; look < 2; look++)
		{
			mongo_begin_ending(transport, look == 0 ? limit : LOOK_MS, 1);
			outcome = mongo_receive(connection, &write->reply, MONGO_DUE_INTERRUPT);
			mongo_finish_ending(transport);
			if (outcome != MONGO_INTERRUPTED || transport->timed_out ||
				transport->wait_error != NULL || mongo_interrupt_is_due(false))
				return outcome;
			transport->interrupted = false;
			counters[look] = read_counters(write);
			if (counters[look].conflicts == 0)
				break;
			*waits = look == 1 && counters[1].conflicts > counters[0].conflicts &&
				counters[1].yields - counters[0].yields <=
				counters[1].conflicts - counters[0].conflicts;
		}
		if (*waits)
			return MONGO_INTERRUPTED;
		if (mongo_interrupt_is_due(true))
			break;
		limit = Min(limit, PG_INT32_MAX / 2) * 2;
	}
	return mongo_receive(connection, &write->reply, MONGO_DUE_INTERRUPT);
}

/*
 * Receives the reply, and returns whether the command may be sent once more.
 *
 * If the wait is interrupted outside of MongoDB's transactions, MongoDB is told to end the write.
 */
static bool
finish_attempt(MongoWrite *write)
{
	MongoConnection *connection = write->lease->connection;
	MongoTransport *transport = &connection->transport;
	bool		interrupted = transport->interrupted;
	bool		waits = false;

	if (write->sent && await_reply(write, &waits) == MONGO_INTERRUPTED)
	{
		interrupted = true;
		if (write->lsid != NULL)
			(void) mongo_end_write(connection, write->lsid, &write->reply);
	}
	read_reply(write);

	/*
	 * also after a change of primary, or a shutdown of the server; but an
	 * abort can be sent behind a command that was interrupted
	 */
	if ((write->failure.lost && !write->in_transaction) ||
		mongo_reply_has_label(&write->reply, "RetryableWriteError") ||
		(!mongo_reply_is_ok(&write->reply) && mongo_failure_is_retryable(&write->failure)))
		connection->broken = true;
	write->end = classify_end(write);
	transport->lock_timed_out = waits && write->failed;
	if (write->in_transaction)
	{
		mongo_session_note_reply(write->session, &write->reply);
		return false;
	}
	if (!write->failed)
		transport->timed_out = false;	/* the reply came late, but it came */
	if (interrupted || !write->failed)
		return false;
	if (has_not_begun(write))
		return true;
	return write->may_repeat && (write->failure.lost ?
								 transport->violation == NULL && transport->memory_missing == 0 :
								 mongo_reply_has_label(&write->reply, "RetryableWriteError"));
}

/* --------------------------- the second attempt ----------------------------- */

/*
 * Gives the lease a connection over which the write may be sent again.  Returns false if there is
 * none; the caller then raises the first attempt's error.
 */
static bool
find_primary(const MongoWrite *write)
{
	MemoryContext caller_context = CurrentMemoryContext;
	const MongoConnection *connection;

	PG_TRY();
	{
		mongo_lease_renew(write->lease, write->user);
		mongo_lease_move_to_primary(write->lease, write->user);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller_context);
		mongo_catch_connection_error();
		return false;
	}
	PG_END_TRY();

	connection = write->lease->connection;
	return connection->takes_writes && (connection->retries_writes || !write->may_repeat);
}

/*
 * Returns the fields to add to a write outside of MongoDB's transactions: lsid, the write concern
 * and, if MongoDB is to recognize a repetition, txnNumber.
 *
 * write->lsid becomes a copy, since the session ends with the connection before a second attempt.
 */
static bson_t *
write_fields(MongoWrite *write)
{
	MongoConnection *connection = write->lease->connection;
	const bson_t *lsid = mongo_server_session_use(&connection->session, connection->context);
	bson_t	   *fields = mongo_bson_create();

	if (lsid != NULL)
	{
		write->lsid = mongo_bson_copy_in(CurrentMemoryContext, lsid);
		mongo_append(fields, "lsid", mongo_document(lsid));
		write->may_repeat = connection->retries_writes && write->most >= 0;
		if (write->may_repeat)
			mongo_append(fields, "txnNumber", mongo_int64(++connection->session.number));
	}
	if (write->session != NULL && connection->write_concern != NULL)
		mongo_concat(fields, connection->write_concern);
	/* a direct connection may be to a secondary */
	if (write->session == NULL && connection->read_preference != NULL &&
		mongo_uri_is_single(connection->uri) && strncmp(connection->server_type, "RS", 2) == 0 &&
		!bson_has_field(write->command.document, "$readPreference"))
		mongo_concat(fields, connection->read_preference);
	return fields;
}

/*
 * mongo_write_begin
 *		Sends the command, with lsid, txnNumber and writeConcern added.
 *
 * Its parts must exist until mongo_write_finish() or mongo_write_abandon(), one of which must
 * follow.  *write refers to memory in the current context.  'most' is that of MongoWrite.  Raises
 * only 53200 and, without random numbers, XX000, before sending.
 */
void
mongo_write_begin(MongoSession *session, UserMapping *user, MongoLease *lease,
				  const MongoCommand *command, int64 most, MongoWrite *write)
{
	*write = (MongoWrite) {
		.session = session,
		.user = user,
		.lease = lease,
		.command = *command,
		.most = most,
		.in_transaction = session != NULL && session->lease != NULL
	};
	if (!write->in_transaction)
		write->lasting = lasting_of(lease->connection->server_name);
	write->command.fields = write->in_transaction ? mongo_session_fields(session) :
		write_fields(write);
	start_attempt(write);
}

/*
 * Makes the second attempt, and combines the outcomes of both.
 *
 * If the first attempt had no reply, its outcome is known only if the second reply has no error
 * of the whole command.
 */
static void
repeat(MongoWrite *write)
{
	MongoWrite	first = *write;

	start_attempt(write);
	(void) finish_attempt(write);
	if (!mongo_reply_is_ok(&write->reply))
		write->end = Max(first.end, write->end);
	if (mongo_reply_has_label(&write->reply, "NoWritesPerformed"))
	{
		write->reply = first.reply;
		write->failed = first.failed;
		write->failure = first.failure;
	}
}

/*
 * mongo_write_finish
 *		Waits for the reply, and records an uncertain outcome.  Returns whether the write
 *		succeeded.
 *
 * After a lost connection or an error with the label RetryableWriteError, sends the write once
 * more, to the current primary, if MongoDB can recognize that.  Does so as well if the write has
 * not begun (mongo_failure_is_of_connection()).  The lease then has another connection, or none.
 * Raises what connecting for a second attempt raises, except errors of class 08.
 */
bool
mongo_write_finish(MongoWrite *write)
{
	bool		may_repeat = finish_attempt(write);
	MongoUncertainty before;

	if (write->lasting == NULL)
		return !write->failed;
	before = write->lasting->uncertainty;
	mongo_uncertainty_add(&write->lasting->uncertainty, write->end, write->most);
	if (may_repeat && find_primary(write))
	{
		repeat(write);
		write->lasting->uncertainty = before;
		mongo_uncertainty_add(&write->lasting->uncertainty, write->end, write->most);
	}
	return !write->failed;
}

/*
 * mongo_write_abandon
 *		Waits for so many milliseconds, then has MongoDB end the write, which is outside of
 *		MongoDB's transactions.  Called after the statement has failed.  Never raises.
 */
void
mongo_write_abandon(MongoWrite *write, int milliseconds)
{
	MongoTransport *transport = &write->lease->connection->transport;

	write->reply.context = CurrentMemoryContext;
	mongo_begin_ending(transport, milliseconds, 0);
	(void) finish_attempt(write);
	mongo_finish_ending(transport);
	mongo_uncertainty_add(&write->lasting->uncertainty, write->end, write->most);
}

/*
 * mongo_write_count
 *		Counts so many documents as written.
 */
void
mongo_write_count(MongoWrite *write, int64 documents)
{
	mongo_activity_count_current(MONGO_COUNT_DOCUMENTS_WRITTEN, documents);
	if (write->lasting != NULL)
		write->lasting->documents += documents;
}
