/*-------------------------------------------------------------------------
 *
 * leave_out.c
 *		Leaves out a rule of the engine that synchronizes tables.
 *
 * Not part of the extension: only built with MOMENT=1, see t/moment/moment.py.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#undef SYNC_BATCH
#include "sync_internal.h"
#include "remote_internal.h"

#include "utils/guc.h"

#include <execinfo.h>
#include <unistd.h>

#define DEEPEST_STACK	100

extern uint64 __real_mongo_event_stream_mark(const MongoEventStream *stream);
extern uint64 __wrap_mongo_event_stream_mark(const MongoEventStream *stream);
extern SyncGroup *__real_sync_group_load(int id);
extern SyncGroup *__wrap_sync_group_load(int id);
extern char *__real_sync_collection_identity(UserMapping *user, const char *database, const char *collection);
extern char *__wrap_sync_collection_identity(UserMapping *user, const char *database, const char *collection);
extern const char *__real_mongo_batch_read(MongoBatch *batch, const bson_iter_t *cursor);
extern const char *__wrap_mongo_batch_read(MongoBatch *batch, const bson_iter_t *cursor);
extern bool __real_mongo_check_collections(MongoConnection *connection, const char *database,
										   const List *names, uint64 at);
extern bool __wrap_mongo_check_collections(MongoConnection *connection, const char *database,
										   const List *names, uint64 at);

/* show_stack: writes the stack to the server's log, as there may be no core file. */
static void
show_stack(int signal_number)
{
	void	   *frames[DEEPEST_STACK];

	backtrace_symbols_fd(frames, backtrace(frames, lengthof(frames)), STDERR_FILENO);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void __attribute__((constructor))
watch_crashes(void)
{
	signal(SIGSEGV, show_stack);
	signal(SIGABRT, show_stack);
}

/* leaves_out: tells whether moment.without names this rule. */
static bool
leaves_out(const char *rule)
{
	const char *without = GetConfigOption("moment.without", true, false);

	return without != NULL && strcmp(without, rule) == 0;
}

/* moment_number: the number that a setting has. */
int
moment_number(const char *setting, int otherwise)
{
	const char *value = GetConfigOption(setting, true, false);

	return value != NULL && atoi(value) > 0 ? atoi(value) : otherwise;
}

/* "mark": all events up to a mark, and not before it, were taken to be known. */
uint64
__wrap_mongo_event_stream_mark(const MongoEventStream *stream)
{
	return __real_mongo_event_stream_mark(stream) + (leaves_out("mark") ? 1 : 0);
}

/* The collections of groups that were loaded, and what their members were copied from. */
static struct
{
	char		collection[64];
	char		identity[64];
}			known[16];
static int	nknown;

static void
remember(const char *collection, const char *identity)
{
	int			i;

	for (i = 0; i < nknown && strcmp(known[i].collection, collection) != 0; i++)
		;
	if (i == lengthof(known))
		i = nknown = 0;
	nknown = Max(nknown, i + 1);
	strlcpy(known[i].collection, collection, sizeof(known[i].collection));
	strlcpy(known[i].identity, identity, sizeof(known[i].identity));
}

/*
 * "latest": it is forgotten that rows were read later.
 * "history": a position is one of any server's.
 */
SyncGroup *
__wrap_sync_group_load(int id)
{
	SyncGroup  *group = __real_sync_group_load(id);
	ListCell   *cell;

	if (group != NULL && leaves_out("history"))
	{
		group->last_event = NULL;
		group->replica_set = NULL;
	}
	if (group != NULL && leaves_out("latest"))
	{
		foreach(cell, group->members)
			((SyncMember *) lfirst(cell))->read_until = 0;
	}
	foreach(cell, group != NULL ? group->members : NIL)
	{
		const SyncMember *member = lfirst(cell);

		if (member->state != SYNC_STOPPED && member->identity != NULL)
			remember(member->collection, member->identity);
	}
	return group;
}

/* "identity": what has the name is the collection, and no such collection has no documents. */
char *
__wrap_sync_collection_identity(UserMapping *user, const char *database, const char *collection)
{
	char	   *identity = __real_sync_collection_identity(user, database, collection);

	for (int i = 0; i < nknown && identity != NULL && leaves_out("identity"); i++)
	{
		if (strcmp(known[i].collection, collection) == 0)
			return pstrdup(known[i].identity);
	}
	return identity;
}

const char *
__wrap_mongo_batch_read(MongoBatch *batch, const bson_iter_t *cursor)
{
	const char *violation = __real_mongo_batch_read(batch, cursor);

	batch->has_time |= leaves_out("identity");
	return violation;
}

bool
__wrap_mongo_check_collections(MongoConnection *connection, const char *database, const List *names,
							   uint64 at)
{
	return leaves_out("identity") ||
		__real_mongo_check_collections(connection, database, names, at);
}
