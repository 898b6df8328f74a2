/*-------------------------------------------------------------------------
 *
 * session_cursors.c
 *		The cursors that a MongoDB transaction has open on the server.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "session_cursors.h"

#include "bson_write.h"

/*
 * So many are killed at a time: a scan that ends early costs a hundredth of a
 * command, and MongoDB holds at most so many in vain.
 */
#define MOST_ABANDONED		100

struct MongoSessionCursor
{
	dlist_node	node;			/* in one of the lists */
	MongoSessionCursor **handle;	/* the reader's, or NULL: abandoned */
	int64		id;
	char	   *database;
	char	   *collection;
};

void
mongo_session_cursors_init(MongoSessionCursors *cursors, MemoryContext context)
{
	cursors->context = context;
	dlist_init(&cursors->read);
	dlist_init(&cursors->abandoned);
	cursors->nabandoned = 0;
	cursors->due = MOST_ABANDONED;
}

void
mongo_session_cursors_add(MongoSessionCursors *cursors, const char *database,
						  const char *collection, int64 id,
						  MongoSessionCursor **handle)
{
	MongoSessionCursor *cursor = MemoryContextAlloc(cursors->context,
													sizeof(MongoSessionCursor));

	cursor->id = id;
	cursor->database = MemoryContextStrdup(cursors->context, database);
	cursor->collection = MemoryContextStrdup(cursors->context, collection);
	cursor->handle = handle;
	*handle = cursor;
	dlist_push_tail(&cursors->read, &cursor->node);
}

void
mongo_session_cursors_remove(MongoSessionCursor *cursor)
{
	if (cursor->handle != NULL)
		*cursor->handle = NULL;
	dlist_delete(&cursor->node);
	pfree(cursor->database);
	pfree(cursor->collection);
	pfree(cursor);
}

void
mongo_session_cursors_abandon(MongoSessionCursors *cursors,
							  MongoSessionCursor *cursor)
{
	*cursor->handle = NULL;
	cursor->handle = NULL;
	dlist_delete(&cursor->node);
	dlist_push_tail(&cursors->abandoned, &cursor->node);
	cursors->nabandoned++;
}

bool
mongo_session_cursors_are_due(const MongoSessionCursors *cursors)
{
	return cursors->nabandoned >= cursors->due;
}

static bool
same_collection(const MongoSessionCursor *one, const MongoSessionCursor *other)
{
	return strcmp(one->database, other->database) == 0 &&
		strcmp(one->collection, other->collection) == 0;
}

/* killCursors for all in the list that are of the first one's collection. */
static void
build_command(const dlist_head *list, const MongoSessionCursor *first,
			  bson_t *command)
{
	bson_t		list_of_ids;
	BsonArray	ids = {.bson = &list_of_ids};
	dlist_iter	iter;

	BSON_APPEND_UTF8(command, "killCursors", first->collection);
	BSON_APPEND_ARRAY_BEGIN(command, "cursors", &list_of_ids);
	dlist_foreach(iter, (dlist_head *) list)
	{
		MongoSessionCursor *cursor = dlist_container(MongoSessionCursor, node, iter.cur);

		if (same_collection(cursor, first))
			bson_array_append(&ids, bson_int64(cursor->id));
	}
	bson_append_array_end(command, &list_of_ids);
}

/* run_in_session: in the session, so in its transaction while there is one. */
static bool
run_in_session(mongoc_client_t *client, mongoc_client_session_t *session,
			   const char *database, const bson_t *command)
{
	bson_t		options = BSON_INITIALIZER;
	bson_error_t error;
	bool		succeeded;

	succeeded = mongoc_client_session_append(session, &options, &error) &&
		mongoc_client_command_with_opts(client, database, command, NULL,
										&options, NULL, &error);
	bson_destroy(&options);
	return succeeded;
}

/* kill_listed: false when the server cannot be told. */
static bool
kill_listed(dlist_head *list, mongoc_client_t *client,
			mongoc_client_session_t *session)
{
	while (!dlist_is_empty(list))
	{
		MongoSessionCursor *first = dlist_head_element(MongoSessionCursor, node, list);
		bson_t		command = BSON_INITIALIZER;
		dlist_mutable_iter iter;
		bool		succeeded;

		build_command(list, first, &command);
		succeeded = run_in_session(client, session, first->database, &command);
		bson_destroy(&command);
		if (!succeeded)
			return false;

		dlist_foreach_modify(iter, list)
		{
			MongoSessionCursor *cursor = dlist_container(MongoSessionCursor, node, iter.cur);

			if (cursor != first && same_collection(cursor, first))
				mongo_session_cursors_remove(cursor);
		}
		mongo_session_cursors_remove(first);
	}
	return true;
}

void
mongo_session_cursors_kill(MongoSessionCursors *cursors, bool all,
						   mongoc_client_t *client,
						   mongoc_client_session_t *session)
{
	/*
	 * at the end the connection may just have been lost: the next attempt
	 * makes one
	 */
	for (int attempt = all ? 0 : 1; attempt < 2; attempt++)
	{
		if (!kill_listed(&cursors->abandoned, client, session))
			continue;
		cursors->nabandoned = 0;
		if (!all || kill_listed(&cursors->read, client, session))
			break;
	}

	/* what cannot be killed now is not asked for again with each scan */
	cursors->due = cursors->nabandoned + MOST_ABANDONED;
}
