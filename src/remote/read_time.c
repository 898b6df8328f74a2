/*-------------------------------------------------------------------------
 *
 * read_time.c
 *		Reads at a time of MongoDB's clock.
 *
 * Before the first read at a time (cluster_time.c) over a connection, mongo_reach_time() waits
 * until its server has the time.
 *
 * MongoDB finds a collection by its present name, whatever the time.  Where the collection has been
 * created, renamed or dropped since, it mostly raises SnapshotUnavailable.  But a name that is gone
 * reads as a collection without documents.  The reply to a find tells the difference: it has no
 * atClusterTime then.  The reply to an aggregate has, so mongo_check_collections() sends finds for
 * the collections that it has read.  They come after the read: if a name exists then, it has been
 * there, with the same documents at that time, ever since, or the find raises SnapshotUnavailable.
 * MongoDB 7.0 and newer find the collection of the time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "convert.h"

#include "miscadmin.h"
#include "nodes/value.h"
#include "utils/timestamp.h"

/* How long to wait until a server has a time, and between attempts. */
#define REACH_MS			10000
#define REACH_PAUSE_MS		20

#define INVALID_OPTIONS		72

/*
 * Sends a find at a time (0: MongoDB's choice), which finds no document, over the connection.
 * Returns false if that is lost.  Its buffers are in the current memory context.
 */
static bool
find_nothing(MongoConnection *connection, const char *database, const char *collection, uint64 at,
			 MongoReply *reply)
{
	bson_t	   *command = mongo_from_template("{find: @1, filter: {_id: {$in: []}}, limit: 1, singleBatch: true, maxTimeMS: @2}",
											  mongo_utf8(collection), mongo_int32(REACH_MS));

	mongo_append_time(command, at != 0 ? "atClusterTime" : "afterClusterTime",
					  at != 0 ? at : mongo_bound_time->after);
	*reply = (MongoReply) {.context = CurrentMemoryContext};
	return mongo_send_or_raise(connection, &(MongoCommand) {
		.database = database,.document = command
	}, reply) && mongo_receive_or_raise(connection, reply, false);
}

/* Returns the time at which a cursor's first reply was read; 0: unknown. */
static uint64
time_of_reply(const MongoReply *reply)
{
	bson_iter_t field;
	bson_iter_t time;

	return mongo_reply_find(reply, "cursor", &field) && bson_iter_recurse(&field, &time) &&
		bson_iter_find(&time, "atClusterTime") ? mongo_time_at(&time) : 0;
}

/*
 * mongo_report_missing_at_time
 *		Raises 55000 for a collection that there is not any more, so that nothing is known of its
 *		documents at the time.
 */
void
mongo_report_missing_at_time(const char *database, const char *collection)
{
	mongo_note_failure_at_time(MONGO_NAMESPACE_NOT_FOUND);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("could not read collection \"%s.%s\" as of an earlier time",
					database, collection),
			 errdetail("There is no such collection at present, and MongoDB then does not know what it held."),
			 errhint("It may have been dropped or renamed.")));
}

/* Raises a failure to read the collection, whose names are in UTF-8. */
pg_noreturn static void
raise_read_failure(const char *database, const char *collection, const MongoFailure *failure)
{
	mongo_raise_failure(psprintf("could not read collection \"%s.%s\"",
								 mongo_from_utf8(database), mongo_from_utf8(collection)),
						failure, NULL);
}

/* Raises 0A000. */
pg_noreturn static void
report_no_times(const char *server_name)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("server \"%s\" has no cluster times", server_name),
			 errdetail("It is a standalone MongoDB server."),
			 errhint("Make it a replica set, which may have one member.")));
}

/* Tells whether the time is not worth waiting for, by the reply's own time. */
static bool
is_far_ahead(const MongoReply *reply, uint64 at)
{
	bson_iter_t iter;
	bson_iter_t time;
	uint64		present = 0;

	if (bson_iter_init_from_data(&iter, reply->document, reply->length) &&
		bson_iter_find_descendant(&iter, "$clusterTime.clusterTime", &time))
		present = mongo_time_at(&time);
	return present != 0 && (at >> 32) > (present >> 32) + REACH_MS / 1000;
}

/*
 * mongo_reach_time
 *		Makes sure, before a command reads at a time, that the server has that; or (0) lets it
 *		choose the time that is bound.  Returns the time, and 0 if the connection is lost.
 *
 * Waits for a server that lags behind, up to ten seconds.  Raises 0A000 for a standalone server,
 * 55000 if the time has yet to come, and MongoDB's error.
 */
uint64
mongo_reach_time(MongoConnection *connection, const char *database, const char *collection,
				 uint64 at)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), REACH_MS);
	MongoReply	reply;

	if (connection->is_standalone)
		report_no_times(connection->server_name);
	if (at == 0 && mongo_bound_time == NULL)
		elog(ERROR, "the time of a read is not bound any more");
	if (at == 0)
		at = mongo_bound_time->at;
	if (at != 0 && at <= connection->reached)
		return at;
	for (;;)
	{
		MongoFailure failure;

		if (!find_nothing(connection, database, collection, at, &reply))
			return 0;
		if (!mongo_reply_failure(connection, &reply, &failure))
			break;
		/* a member learns of a later time from the others' messages */
		if (failure.code != INVALID_OPTIONS || strstr(failure.text, MONGO_TIME_TO_COME) == NULL ||
			is_far_ahead(&reply, at) || GetCurrentTimestamp() >= end)
			raise_read_failure(database, collection, &failure);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 REACH_PAUSE_MS, mongo_wait_event(MONGO_WAIT_REPLY));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	if (at == 0)
	{
		at = time_of_reply(&reply);
		if (at == 0)
			mongo_report_missing_at_time(database, collection);
		mongo_bound_time->at = at;
	}
	connection->reached = Max(connection->reached, at);
	return at;
}

/* ----------------- the collections that a command reads -------------------- */

/* Stages that read another collection, and their members that name it. */
static const struct
{
	const char *stage;
	const char *member;
}			foreign_names[] =
{
	{"$lookup", "from"},
	{"$graphLookup", "from"},
	{"$unionWith", "coll"},
};

static void
add_name(List **names, const char *name)
{

	CHECK_FOR_INTERRUPTS();
	foreach_ptr(Node, known, *names)
	{
		if (strcmp(strVal(known), name) == 0)
			return;
	}
	*names = lappend(*names, makeString(pstrdup(name)));
}

/* Adds the names in a document or array, at any depth. */
static void
add_foreign_names(bson_iter_t *iter, List **names)
{
	check_stack_depth();
	while (bson_iter_next(iter))
	{
		bson_iter_t child;
		bson_iter_t member;

		if (!(BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter)))
		{
			if (strcmp(bson_iter_key(iter), "$unionWith") == 0 && BSON_ITER_HOLDS_UTF8(iter))
				add_name(names, bson_iter_utf8(iter, NULL));
			continue;
		}
		for (size_t i = 0; i < lengthof(foreign_names); i++)
		{
			if (strcmp(bson_iter_key(iter), foreign_names[i].stage) == 0 &&
				bson_iter_recurse(iter, &member) &&
				bson_iter_find(&member, foreign_names[i].member) && BSON_ITER_HOLDS_UTF8(&member))
				add_name(names, bson_iter_utf8(&member, NULL));
		}
		if (bson_iter_recurse(iter, &child))
			add_foreign_names(&child, names);
	}
}

/*
 * Adds what the view of a listCollections entry reads, at present.  Returns false if it is no
 * view.
 */
static bool
add_view(const bson_iter_t *entry, List **names)
{
	bson_iter_t entries = *entry;
	bson_iter_t field;
	bson_iter_t member;

	if (!bson_iter_recurse(&entries, &field) ||
		!bson_iter_find_descendant(&field, "options.viewOn", &member) ||
		!BSON_ITER_HOLDS_UTF8(&member))
		return false;
	add_name(names, bson_iter_utf8(&member, NULL));
	if (bson_iter_recurse(&entries, &field) &&
		bson_iter_find_descendant(&field, "options.pipeline", &member) &&
		bson_iter_recurse(&member, &field))
		add_foreign_names(&field, names);
	return true;
}

/* Replaces a name by what it reads if it is that of a view.  Returns whether it is. */
static bool
resolve_view(UserMapping *user, const char *database, const char *name, List **names)
{
	const bson_t *command = mongo_from_template("{listCollections: 1, filter: {name: @1, type: {$ne: 'collection'}}}",
												mongo_utf8(name));
	const bson_t *reply = mongo_run_command(CurrentMemoryContext, user, database, command,
											psprintf("could not list collection \"%s\" of database \"%s\"",
													 mongo_from_utf8(name), mongo_from_utf8(database)));
	bson_iter_t iter;
	bson_iter_t entry;

	return bson_iter_init(&iter, reply) &&
		bson_iter_find_descendant(&iter, "cursor.firstBatch.0", &entry) && add_view(&entry, names);
}

/*
 * mongo_collections_read
 *		Returns the names of the collections that a find or an aggregate reads, views replaced by
 *		what they read at present: a list of String nodes in the current memory context.
 *
 * Asks MongoDB which names are views.  Raises its errors.
 */
List *
mongo_collections_read(UserMapping *user, const char *database, const bson_t *command)
{
	List	   *names = NIL;
	List	   *collections = NIL;
	bson_iter_t iter;
	bson_iter_t pipeline;

	/* a find reads its own collection only; aggregate: 1 reads none */
	if (bson_iter_init(&iter, command) && bson_iter_next(&iter) && BSON_ITER_HOLDS_UTF8(&iter))
		add_name(&names, bson_iter_utf8(&iter, NULL));
	if (bson_iter_init_find(&iter, command, "pipeline") && bson_iter_recurse(&iter, &pipeline))
		add_foreign_names(&pipeline, &names);

	/* the list grows; MongoDB limits the depth of views */
	for (int i = 0; i < list_length(names); i++)
	{
		const char *name = strVal(list_nth(names, i));

		CHECK_FOR_INTERRUPTS();
		if (!resolve_view(user, database, name, &names))
			collections = lappend(collections, list_nth(names, i));
	}
	return collections;
}

/*
 * mongo_check_collections
 *		Raises 55000 unless the names are those that a command has read by at this time, over this
 *		connection, and MongoDB's error.  Returns false if the connection is lost.
 */
bool
mongo_check_collections(MongoConnection *connection, const char *database, const List *names,
						uint64 at)
{
	ListCell   *cell;

	foreach(cell, names)
	{
		const char *name = strVal(lfirst(cell));
		MongoFailure failure;
		MongoReply	reply;

		if (!find_nothing(connection, database, name, at, &reply))
			return false;
		if (mongo_reply_failure(connection, &reply, &failure))
			raise_read_failure(database, name, &failure);
		if (time_of_reply(&reply) == 0)
			mongo_report_missing_at_time(database, mongo_from_utf8(name));
		mongo_reply_free(&reply);
	}
	return true;
}

/*
 * mongo_present_time
 *		Returns the present cluster time of the server of 'user', which a majority of its members
 *		has reached, as far as the member that is asked knows.
 *
 * Raises 0A000 if the server has none, as a standalone one, and MongoDB's error.
 */
uint64
mongo_present_time(UserMapping *user)
{
	const char *server_name = GetForeignServer(user->serverid)->servername;
	const bson_t *reply = mongo_run_command(CurrentMemoryContext, user, "admin",
											mongo_from_template("{hello: 1}"),
											psprintf("could not ask server \"%s\" for its time",
													 server_name));
	bson_iter_t iter;
	bson_iter_t found;
	uint64		time = 0;

	if (bson_iter_init(&iter, reply) &&
		bson_iter_find_descendant(&iter, "lastWrite.majorityOpTime.ts", &found))
		time = mongo_time_at(&found);
	/* mongos knows only the time of what it has done last */
	if (time == 0 && bson_iter_init_find(&iter, reply, "operationTime"))
		time = mongo_time_at(&iter);
	if (time == 0)
		report_no_times(server_name);
	return time;
}
