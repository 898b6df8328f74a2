/*-------------------------------------------------------------------------
 *
 * events.c
 *		A group's change stream, which stays open between units of work.
 *
 * The stream says which documents have changed, and until which cluster time all changes are
 * known.  That time is the one before the mark of a reply (postBatchResumeToken): a batch may end
 * within the events of one time.  After an empty reply behind events it is at least the last
 * event's time, but not on mongos, which merges streams.  A reply's operationTime says nothing: it
 * is taken after the stream has been read.
 *
 * A position is bound to MongoDB's history by the last event before it, which has to be shown
 * again whenever the stream is opened, and by the replica set's id if it may be read.  Otherwise a
 * server that was restored or initiated anew would be taken for the same one.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync_internal.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

/* MongoDB's codes; the last one: the oplog does not reach back to a time */
#define UNAUTHORIZED		13
#define INVALID_NAMESPACE	73
#define HISTORY_LOST		286

/* In place of a code: the position is one of another server's. */
#define ANOTHER_HISTORY		(-1)

/* For a member that is further behind, nobody waits. */
#define MOST_LAG_SECONDS	10

/* ---------------------------- Single commands ----------------------------- */

/* Returns the Timestamp at a path of a reply; 0 if there is none. */
static uint64
time_at(const bson_t *reply, const char *path)
{
	bson_iter_t iter;
	bson_iter_t found;

	return bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, path, &found) ? mongo_time_at(&found) : 0;
}

/*
 * sync_present
 *		Returns MongoDB's present cluster time, of the member that 'user' is connected to.  Raises
 *		0A000 on a standalone server, which has none.
 */
uint64
sync_present(UserMapping *user)
{
	const bson_t *reply = mongo_run_command(CurrentMemoryContext, user, "admin",
											mongo_from_template("{ping: 1}", mongo_null()),
											"could not read the cluster time");
	uint64		time = time_at(reply, "operationTime");

	if (time == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("server \"%s\" is not a replica set", GetForeignServer(user->serverid)->servername),
				 errhint("Change streams need one: start mongod with --replSet, and run replSetInitiate. One member is enough.")));
	return time;
}

/*
 * sync_oplog_begin
 *		Returns the cluster time at which MongoDB's oplog begins; 0 if the user may not read it.
 */
uint64
sync_oplog_begin(UserMapping *user)
{
	return time_at(mongo_run_command(CurrentMemoryContext, user, "local",
									 mongo_from_template("{find: 'oplog.rs', sort: {$natural: 1}, limit: 1, singleBatch: true, projection: {ts: 1}}",
														 mongo_null()), NULL), "cursor.firstBatch.0.ts");
}

/*
 * sync_replica_set
 *		Returns the id of a replica set's configuration, in hexadecimal; NULL if it may not be
 *		read.
 */
char *
sync_replica_set(UserMapping *user)
{
	const bson_t *reply = mongo_run_command(CurrentMemoryContext, user, "admin",
											mongo_from_template("{replSetGetConfig: 1}", mongo_null()), NULL);
	bson_iter_t iter;
	bson_iter_t id;
	char		text[25];

	if (!bson_iter_init(&iter, reply) ||
		!bson_iter_find_descendant(&iter, "config.settings.replicaSetId", &id) ||
		!BSON_ITER_HOLDS_OID(&id))
		return NULL;
	bson_oid_to_string(bson_iter_oid(&id), text);
	return pstrdup(text);
}

/*
 * sync_snapshot_time
 *		Returns a cluster time that a majority of the members has, at which a collection is read.
 *		Raises 42P01 if there is no such collection.
 */
uint64
sync_snapshot_time(UserMapping *user, const char *database, const char *collection)
{
	const bson_t *reply = mongo_run_command(CurrentMemoryContext, user, database,
											mongo_from_template("{find: @1, limit: 1, singleBatch: true, projection: {_id: 1}, readConcern: {level: 'snapshot'}}",
																mongo_utf8(collection)),
											"could not read the collection at a cluster time");
	uint64		result = time_at(reply, "cursor.atClusterTime");

	if (result == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("there is no collection \"%s.%s\"", mongo_printable(database), mongo_printable(collection)),
				 errhint("Names of collections are case-sensitive. Insert a first document, or create the collection.")));
	return result;
}

/*
 * Returns a collection's UUID in hexadecimal, palloc'd; NULL if there is none that can
 * be synchronized, and then why in *kind: NULL, or what it is.
 */
static char *
collection_identity(UserMapping *user, const char *database, const char *collection, const char **kind)
{
	const bson_t *reply = mongo_run_command(CurrentMemoryContext, user, database,
											mongo_from_template("{listCollections: 1, filter: {name: @1}}", mongo_utf8(collection)),
											"could not list the collection");
	bson_iter_t iter;
	bson_iter_t found;
	bson_subtype_t subtype;
	uint32		length;
	const uint8 *bytes;
	char	   *result;

	*kind = NULL;
	if (!bson_iter_init(&iter, reply) || !bson_iter_find_descendant(&iter, "cursor.firstBatch.0", &found))
		return NULL;
	if (bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, "cursor.firstBatch.0.options.capped", &found) &&
		bson_iter_as_bool(&found))
		*kind = "capped collection";
	else if (!bson_iter_init(&iter, reply) || !bson_iter_find_descendant(&iter, "cursor.firstBatch.0.info.uuid", &found) ||
			 !BSON_ITER_HOLDS_BINARY(&found))
		*kind = "view or time series collection";
	if (*kind != NULL)
		return NULL;
	bson_iter_binary(&found, &subtype, &length, &bytes);
	result = palloc(2 * length + 1);
	hex_encode((const char *) bytes, length, result);
	result[2 * length] = '\0';
	return result;
}

/*
 * sync_collection_identity
 *		Returns a collection's UUID in hexadecimal, palloc'd; NULL if there is none of that name
 *		that can be synchronized.
 */
char *
sync_collection_identity(UserMapping *user, const char *database, const char *collection)
{
	const char *kind;

	return collection_identity(user, database, collection, &kind);
}

/*
 * sync_require_collection
 *		Returns the same.  Raises 42P01 if there is no such collection, and 42809 for views, time
 *		series and capped collections, which have no change stream or no snapshots.
 */
char *
sync_require_collection(UserMapping *user, const char *database, const char *collection)
{
	const char *kind;
	char	   *identity = collection_identity(user, database, collection, &kind);

	if (kind != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s.%s\" is a %s", mongo_printable(database), mongo_printable(collection), kind),
				 errhint("It has no change stream, or MongoDB cannot read it at a cluster time. Synchronize the collection that a view is made of, with the option pipeline.")));
	if (identity == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("there is no collection \"%s.%s\"", mongo_printable(database), mongo_printable(collection)),
				 errhint("Names of collections are case-sensitive. Insert a first document, or create the collection.")));
	return identity;
}

/* ------------------------------- The store -------------------------------- */

static void
end_run(void *run)
{
	sync_run_close(run);
}

/*
 * sync_run_create
 *		Returns what this process keeps of a group, in a child of a memory context.
 */
SyncRun *
sync_run_create(int group, MemoryContext parent)
{
	MemoryContext context = AllocSetContextCreate(parent, "mongo_sync group",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	SyncRun    *run = palloc0(sizeof(SyncRun));
	TupleDesc	descriptor = CreateTemplateTupleDesc(4);

	run->group = group;
	run->context = context;
	run->batch_size = SYNC_BATCH;
	TupleDescInitEntry(descriptor, 1, "time", INT8OID, -1, 0);
	TupleDescInitEntry(descriptor, 2, "collection", TEXTOID, -1, 0);
	TupleDescInitEntry(descriptor, 3, "operation", TEXTOID, -1, 0);
	TupleDescInitEntry(descriptor, 4, "key", BYTEAOID, -1, 0);
	TupleDescFinalize(descriptor);
	run->slot = MakeSingleTupleTableSlot(descriptor, &TTSOpsMinimalTuple);
	run->callback = (MemoryContextCallback) {.func = end_run,.arg = run};
	MemoryContextRegisterResetCallback(context, &run->callback);
	MemoryContextSwitchTo(old_context);
	return run;
}

/*
 * sync_run_close
 *		Closes the stream and forgets its events.  Does not raise; idempotent.
 */
void
sync_run_close(SyncRun *run)
{
	ExecClearTuple(run->slot);
	run->has_slot = false;
	if (run->events != NULL)
		tuplestore_end(run->events);
	run->events = NULL;
	if (run->stream_context != NULL)
		MemoryContextDelete(run->stream_context);
	run->stream_context = NULL;
	run->stream = NULL;
	run->collections = NULL;
	run->known_until = run->last_event = run->mark = 0;
	run->is_at_end = run->has_more = false;
}

/* A change event's fields. */
typedef struct Event
{
	uint64		time;
	const char *operation;
	const char *collection;		/* ns.coll; NULL: of a database */
	const char *to;				/* to.coll, or NULL */
	bson_iter_t key;			/* documentKey._id */
	bool		has_key;
} Event;

/* Reads the fields; raises 08P01 for what is no event. */
static void
read_event(const uint8 *data, uint32 length, Event *event)
{
	bson_t		document;
	bson_iter_t iter;
	bson_iter_t field;

	*event = (Event) {0};
	if (!mongo_bson_view(&document, data, length))
		mongo_report_bad_bson();
	if (bson_iter_init_find(&iter, &document, "clusterTime"))
		event->time = mongo_time_at(&iter);
	if (bson_iter_init_find(&iter, &document, "operationType") && BSON_ITER_HOLDS_UTF8(&iter))
		event->operation = bson_iter_utf8(&iter, NULL);
	if (bson_iter_init(&iter, &document) && bson_iter_find_descendant(&iter, "ns.coll", &field) &&
		BSON_ITER_HOLDS_UTF8(&field))
		event->collection = bson_iter_utf8(&field, NULL);
	if (bson_iter_init(&iter, &document) && bson_iter_find_descendant(&iter, "to.coll", &field) &&
		BSON_ITER_HOLDS_UTF8(&field))
		event->to = bson_iter_utf8(&field, NULL);
	event->has_key = bson_iter_init(&iter, &document) &&
		bson_iter_find_descendant(&iter, "documentKey._id", &event->key);
	if (event->time == 0 || event->operation == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION), errmsg("a change event has no clusterTime or operationType")));
}

/* Adds an event of a document, or of what has become of a collection. */
static void
store_event(SyncRun *run, const Event *event, const char *collection)
{
	bool		is_of_document = event->has_key &&
		(strcmp(event->operation, "insert") == 0 || strcmp(event->operation, "update") == 0 ||
		 strcmp(event->operation, "replace") == 0 || strcmp(event->operation, "delete") == 0);
	Datum		values[4] = {Int64GetDatum((int64) event->time)};
	bool		isnull[4] = {false, collection == NULL, is_of_document, !is_of_document};

	if (collection != NULL)
		values[1] = CStringGetTextDatum(collection);
	if (is_of_document)
	{
		bson_t	   *key = mongo_bson_create();

		mongo_append_iter(key, "_id", &event->key);
		values[3] = PointerGetDatum(cstring_to_text_with_len((const char *) bson_get_data(key), key->len));
	}
	else
		values[2] = CStringGetTextDatum(event->operation);
	tuplestore_putvalues(run->events, run->slot->tts_tupleDescriptor, values, isnull);
}

/* Stores the events of the last reply, and notes until when all are known. */
static void
take_batch(SyncRun *run)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "mongo_sync event",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(scratch);
	const uint8 *data;
	uint32		length;
	uint64		until;

	run->is_at_end = true;
	while ((data = mongo_event_stream_next(run->stream, &length)) != NULL)
	{
		Event		event;

		CHECK_FOR_INTERRUPTS();
		read_event(data, length, &event);
		if (event.time > run->position)
		{
			store_event(run, &event, event.collection);
			/* another collection gets, or had, the name of one of ours */
			if (event.to != NULL)
				store_event(run, &event, event.to);
		}
		run->last_event = event.time;
		run->is_at_end = false;
		MemoryContextReset(scratch);
	}
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(scratch);

	run->mark = mongo_event_stream_mark(run->stream);
	until = run->mark > 0 ? run->mark - 1 : 0;
	if ((run->is_at_end || mongo_event_stream_is_closed(run->stream)) && !mongo_event_stream_is_merged(run->stream))
		until = Max(until, run->last_event);
	run->known_until = Max(run->known_until, until);
}

/* ------------------------------- The stream ------------------------------- */

/* Returns the collections of all members that are not stopped, as an array; *names is a text. */
static bson_t *
listed_collections(const SyncGroup *group, int *count, char **names)
{
	BsonArray	array = mongo_array_create();
	StringInfoData text;
	List	   *seen = NIL;

	initStringInfo(&text);
	foreach_ptr(const SyncMember, member, group->members)
	{
		ListCell   *other;
		bool		is_new = member->state != SYNC_STOPPED;

		foreach(other, seen)
			is_new = is_new && strcmp(lfirst(other), member->collection) != 0;
		if (!is_new)
			continue;
		seen = lappend(seen, unconstify(char *, member->collection));
		mongo_array_append(&array, mongo_utf8(member->collection));
		appendStringInfo(&text, "%s\n", member->collection);
	}
	*count = list_length(seen);
	*names = text.data;
	return array.bson;
}

/*
 * sync_stream_command
 *		Returns the aggregate that opens a stream of these collections, an array, at a time.
 */
bson_t *
sync_stream_command(const bson_t *collections, int count, uint64 start, int batch_size)
{
	BsonArray	pipeline = mongo_array_create();

	mongo_array_append_template(&pipeline, "{$changeStream: {startAtOperationTime: @1}}", mongo_timestamp(start));

	/*
	 * "to": $out and convertToCapped rename a temporary collection to a
	 * member's name
	 */
	if (count != 1)
		mongo_array_append_template(&pipeline,
									"{$match: {$or: [{@2: {$in: @1}}, {@3: {$in: @1}},"
									" {operationType: {$in: ['dropDatabase', 'invalidate']}}]}}",
									mongo_array(collections), mongo_utf8("ns.coll"), mongo_utf8("to.coll"));
	mongo_array_append_template(&pipeline, "{$project: {operationType: 1, documentKey: 1, ns: 1, to: 1, clusterTime: 1}}",
								mongo_null());
	/* a stream of one collection needs privileges on that alone */
	return mongo_from_template("{aggregate: @1, pipeline: @2, cursor: {batchSize: @3}}",
							   count == 1 ? mongo_first_value(collections) : mongo_int32(1),
							   mongo_array(pipeline.bson), mongo_int32(batch_size));
}

/* Tells whether a change event is the group's last one. */
static bool
is_same_event(const bson_t *last, const Event *event)
{
	bson_iter_t iter;
	bool		same = bson_iter_init_find(&iter, last, "time") && mongo_time_at(&iter) == event->time;

	same = same && bson_iter_init_find(&iter, last, "collection") && event->collection != NULL &&
		strcmp(bson_iter_utf8(&iter, NULL), event->collection) == 0;
	if (same && bson_iter_init_find(&iter, last, "key"))
	{
		bson_t	   *one = mongo_bson_create();
		bson_t	   *other = mongo_bson_create();

		mongo_append_iter(one, "", &iter);
		if (event->has_key)
			mongo_append_iter(other, "", &event->key);
		same = bson_equal(one, other);
	}
	return same;
}

/*
 * Tells whether MongoDB shows the last event again; true also if its oplog does not reach back to
 * it, or it does not let the collection of the event be read.  Raises MongoDB's other errors.
 */
static bool
is_shown_again(const SyncGroup *group, UserMapping *user, const bson_iter_t *collection, uint64 time)
{
	BsonArray	collections = mongo_array_create();
	const bson_t *command;
	const bson_t *reply;
	bson_iter_t iter;
	const char *failed = psprintf("could not read the changes of database \"%s\"", mongo_printable(group->database));
	const char *batch = "cursor.firstBatch";
	int64		cursor = 0;
	bool		found = false;
	bool		is_past = false;

	mongo_array_append(&collections, *bson_iter_value(unconstify(bson_iter_t *, collection)));
	command = sync_stream_command(collections.bson, 1, time, 1000);
	reply = mongo_run_command(CurrentMemoryContext, user, group->database, command, NULL);
	if (bson_iter_init_find(&iter, reply, "code"))
	{
		int64		code = bson_iter_as_int64(&iter);

		if (code == HISTORY_LOST || code == UNAUTHORIZED || code == INVALID_NAMESPACE)
			return true;
		reply = mongo_run_command(CurrentMemoryContext, user, group->database, command, failed);
	}
	for (;;)
	{
		bson_iter_t field;
		bson_iter_t element;

		CHECK_FOR_INTERRUPTS();
		if (!bson_iter_init(&iter, reply) || !bson_iter_find_descendant(&iter, batch, &field) ||
			!bson_iter_recurse(&field, &element))
			mongo_report_bad_bson();
		while (!found && !is_past && bson_iter_next(&element))
		{
			const uint8 *data;
			uint32		length;
			Event		event;

			if (!BSON_ITER_HOLDS_DOCUMENT(&element))
				mongo_report_bad_bson();
			bson_iter_document(&element, &length, &data);
			read_event(data, length, &event);
			found = is_same_event(group->last_event, &event);
			is_past = event.time > time;
		}
		if (bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, "cursor.id", &field))
			cursor = bson_iter_as_int64(&field);
		if (!is_past && bson_iter_init(&iter, reply) &&
			bson_iter_find_descendant(&iter, "cursor.postBatchResumeToken._data", &field) && BSON_ITER_HOLDS_UTF8(&field))
		{
			char		digits[2 + 16 + 1];

			/* a token begins with 0x82 and the time, in hexadecimal */
			strlcpy(digits, bson_iter_utf8(&field, NULL), sizeof(digits));
			is_past = strncmp(digits, "82", 2) == 0 && strtou64(digits + 2, NULL, 16) > time;
		}
		if (found || is_past || cursor == 0)
			break;
		command = mongo_from_template("{getMore: @1, collection: @2, maxTimeMS: 100}",
									  mongo_int64(cursor), mongo_first_value(collections.bson));
		reply = mongo_run_command(CurrentMemoryContext, user, group->database, command, failed);
		batch = "cursor.nextBatch";
	}
	if (cursor != 0)
		(void) mongo_run_command(CurrentMemoryContext, user, group->database,
								 mongo_from_template("{killCursors: @1, cursors: [@2]}",
													 mongo_first_value(collections.bson), mongo_int64(cursor)), NULL);
	return found;
}

/*
 * Raises 55000 if the group's position is not one of this MongoDB's history.
 */
static void
check_history(SyncRun *run, const SyncGroup *group, UserMapping *user)
{
	bson_iter_t time;
	bson_iter_t collection;
	char	   *replica_set = sync_replica_set(user);

	/* a restored MongoDB has passed it as soon as it has elected a primary */
	if ((group->position >> 32) > (sync_present(user) >> 32) + MOST_LAG_SECONDS)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the tables of \"%s\" are at a later cluster time than MongoDB", group->name),
				 errdetail("A member that lags behind was asked, or clocks are wrong."),
				 errhint("It is tried again by itself. The option read_preference of the server says which members are asked.")));
	if ((replica_set != NULL && group->replica_set != NULL && strcmp(replica_set, group->replica_set) != 0) ||
		(group->last_event != NULL && bson_iter_init_find(&time, group->last_event, "time") &&
		 bson_iter_init_find(&collection, group->last_event, "collection") &&
		 !is_shown_again(group, user, &collection, mongo_time_at(&time))))
	{
		run->failure = ANOTHER_HISTORY;
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("MongoDB has another history than the tables of \"%s\" were copied from", group->name),
				 errdetail("It was restored, or its replica set was initiated anew."),
				 errhint("CALL mongo_sync.recopy() for each of the tables copies them again.")));
	}
}

/* Opens the stream at a time.  Its first batch is empty, since finding events may take long. */
static void
open_at(SyncRun *run, const SyncGroup *group, UserMapping *user, uint64 start)
{
	MemoryContext old_context;
	char	   *names;
	int			count;
	bson_t	   *collections = listed_collections(group, &count, &names);

	sync_run_close(run);
	/* no child: children are deleted before end_run() is called */
	run->stream_context = AllocSetContextCreate(TopMemoryContext, "mongo_sync stream", ALLOCSET_DEFAULT_SIZES);
	run->stream = mongo_event_stream_open(run->stream_context, user, group->database,
										  sync_stream_command(collections, count, start, 0), &run->failure);
	run->collections = MemoryContextStrdup(run->stream_context, names);
	run->position = group->position;
	run->known_until = group->position;

	old_context = MemoryContextSwitchTo(run->stream_context);
	run->events = tuplestore_begin_heap(false, true, work_mem);
	MemoryContextSwitchTo(old_context);
}

/*
 * sync_run_open
 *		Opens the stream at the group's position, and receives nothing yet.
 *
 * It begins with the events of that time, which are left out.  So a mark that is later than the
 * start tells that MongoDB has looked through the oplog up to it.  Raises 55000 for another
 * history, and MongoDB's errors, with their code in run->failure.
 */
void
sync_run_open(SyncRun *run, SyncGroup *group)
{
	UserMapping *user = sync_group_user(group);

	run->failure = 0;
	check_history(run, group, user);
	open_at(run, group, user, group->position);
}

/*
 * sync_run_is_lost
 *		Tells whether the last error says that the changes behind the position are gone.
 */
bool
sync_run_is_lost(const SyncRun *run)
{
	return run->failure == HISTORY_LOST || run->failure == ANOTHER_HISTORY;
}

/*
 * sync_run_is_current
 *		Tells whether the stream is open for this group as it is now.
 */
bool
sync_run_is_current(const SyncRun *run, const SyncGroup *group)
{
	char	   *names;
	int			count;

	(void) listed_collections(group, &count, &names);
	return run->stream != NULL && !mongo_event_stream_is_closed(run->stream) &&
		mongo_event_stream_socket(run->stream) != PGINVALID_SOCKET &&
		run->position <= group->position && strcmp(run->collections, names) == 0;
}

/*
 * sync_run_receive
 *		Receives the next batch, which may be outstanding already.  Otherwise MongoDB waits up to so
 *		many milliseconds for a first event.
 */
void
sync_run_receive(SyncRun *run, SyncGroup *group, int max_wait)
{
	run->failure = 0;
	mongo_event_stream_request(run->stream, max_wait, run->batch_size);
	mongo_event_stream_receive(run->stream, &run->failure);
	take_batch(run);

	/*
	 * a stream that begins with the end of its collection, or database, ends
	 * at once
	 */
	if (mongo_event_stream_is_closed(run->stream) && run->known_until <= group->position)
		open_at(run, group, sync_group_user(group), group->position + 1);
}

/*
 * sync_run_next
 *		Takes the next event up to a time; false if there is none.  The event is in the current
 *		memory context.
 */
bool
sync_run_next(SyncRun *run, uint64 until, SyncEvent *event)
{
	MemoryContext old_context;
	bool		found;
	bool		isnull;
	Datum		value;

	if (run->events == NULL)
		return false;
	/* the slot may keep its tuple for a later unit of work */
	old_context = MemoryContextSwitchTo(run->context);
	found = run->has_slot || tuplestore_gettupleslot(run->events, true, true, run->slot);
	MemoryContextSwitchTo(old_context);
	if (!found)
	{
		tuplestore_clear(run->events);
		return false;
	}
	run->has_slot = true;
	*event = (SyncEvent) {.time = (uint64) DatumGetInt64(slot_getattr(run->slot, 1, &isnull))};
	if (event->time > until)
		return false;
	value = slot_getattr(run->slot, 2, &isnull);
	event->collection = isnull ? NULL : TextDatumGetCString(value);
	value = slot_getattr(run->slot, 3, &isnull);
	event->operation = isnull ? NULL : TextDatumGetCString(value);
	value = slot_getattr(run->slot, 4, &isnull);
	event->key = isnull ? NULL : DatumGetByteaPCopy(value);
	run->has_slot = false;
	ExecClearTuple(run->slot);
	tuplestore_trim(run->events);
	return true;
}
