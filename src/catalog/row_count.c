/*-------------------------------------------------------------------------
 *
 * row_count.c
 *		How many documents a collection has, asked once and remembered.
 *
 * The planner must not send a command for each query, and a plan is not
 * better for a count that is right to the last document.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "row_count.h"

#include "bson_memory.h"
#include "command.h"
#include "common/hashfn.h"
#include "derived.h"
#include "encoding.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#define REMEMBERED_FOR_MS	(5 * 60 * 1000)
#define REMEMBERED_MAX		1000	/* collections; more start anew */

/* MongoDB allows 255 bytes, the dot between the names included. */
#define NAMESPACE_SIZE		256

/* Compared as bytes: zeroed before it is filled. */
typedef struct RowCountKey
{
	Oid			umid;
	uint32		derivation;		/* what makes the rows, hashed; 0: documents */
	char		namespace[NAMESPACE_SIZE];
} RowCountKey;

/* A count is good while it is young and from the current generation. */
typedef struct RowCount
{
	RowCountKey key;
	double		rows;
	TimestampTz asked_at;
	uint64		generation;
} RowCount;

static HTAB *row_counts = NULL;

/* Raised when a server's or user mapping's definition changes. */
static uint64 current_generation = 0;

static void
forget_row_counts(Datum arg pg_attribute_unused(),
				  int cacheid pg_attribute_unused(),
				  uint32 hashvalue pg_attribute_unused())
{
	current_generation++;
}

static void
create_row_counts(void)
{
	static bool callbacks_registered = false;
	HASHCTL		control = {
		.keysize = sizeof(RowCountKey),
		.entrysize = sizeof(RowCount),
		.hcxt = TopMemoryContext
	};

	if (!callbacks_registered)
	{
		CacheRegisterSyscacheCallback(FOREIGNSERVEROID, forget_row_counts, (Datum) 0);
		CacheRegisterSyscacheCallback(USERMAPPINGOID, forget_row_counts, (Datum) 0);
		callbacks_registered = true;
	}

	if (row_counts != NULL && hash_get_num_entries(row_counts) >= REMEMBERED_MAX)
	{
		hash_destroy(row_counts);
		row_counts = NULL;
	}
	if (row_counts == NULL)
		row_counts = hash_create("mongo_fdw row counts", 64, &control,
								 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static uint32
hash_derivation(const MongoTableOptions *options)
{
	const char *text = psprintf("%s\n%s\n%d", options->pipeline ? options->pipeline : "",
								options->unwind ? options->unwind : "", options->unwind_empty);

	return hash_bytes((const unsigned char *) text, (int) strlen(text));
}

/* make_key is false for names that are too long to be a collection's. */
static bool
make_key(RowCountKey *key, UserMapping *user, const MongoTableOptions *options)
{
	memset(key, 0, sizeof(*key));
	key->umid = user->umid;
	if (mongo_is_derived(options))
		key->derivation = hash_derivation(options);
	return snprintf(key->namespace, NAMESPACE_SIZE, "%s.%s", options->database,
					options->collection) < NAMESPACE_SIZE;
}

/* counting_command: count works on views too, but not on what stages make. */
static const bson_t *
counting_command(const MongoTableOptions *options)
{
	BsonArray	stages = bson_array_create();
	bson_value_t collection = bson_utf8(mongo_to_utf8(options->collection));

	if (!mongo_is_derived(options))
		return bson_from_template("{count: @1}", collection);
	mongo_append_deriving_stages(&stages, options);
	bson_array_append_template(&stages, "{$count: 'n'}");
	return bson_from_template("{aggregate: @1, pipeline: @2, allowDiskUse: true, cursor: {}}",
							  collection, bson_array(stages.bson));
}

/* find_count: in the reply to either; false where an aggregate has counted nothing. */
static bool
find_count(const bson_t *reply, bson_iter_t *count)
{
	bson_iter_t iter;

	return bson_iter_init_find(count, reply, "n") ||
		(bson_iter_init(&iter, reply) &&
		 bson_iter_find_descendant(&iter, "cursor.firstBatch.0.n", count));
}

static double
ask_row_count(UserMapping *user, const MongoTableOptions *options)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "mongo_fdw row count",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext previous = MemoryContextSwitchTo(context);
	const bson_t *reply;
	bson_iter_t iter;
	double		rows = 0;

	reply = mongo_run_command(context, user, mongo_to_utf8(options->database),
							  counting_command(options), true,
							  psprintf("could not count collection \"%s.%s\"",
									   options->database, options->collection));
	if (find_count(reply, &iter))
		rows = Max(bson_iter_as_double(&iter), 0);

	MemoryContextSwitchTo(previous);
	MemoryContextDelete(context);
	return rows;
}

double
mongo_refresh_row_count(UserMapping *user, const MongoTableOptions *options)
{
	RowCountKey key;
	RowCount   *entry;
	double		rows;

	/* asked first: an invalidation that arrives meanwhile is respected */
	uint64		generation = current_generation;

	rows = ask_row_count(user, options);

	create_row_counts();
	if (make_key(&key, user, options))
	{
		entry = hash_search(row_counts, &key, HASH_ENTER, NULL);
		entry->rows = rows;
		entry->asked_at = GetCurrentTimestamp();
		entry->generation = generation;
	}
	return rows;
}

double
mongo_remote_row_count(UserMapping *user, const MongoTableOptions *options)
{
	RowCountKey key;
	RowCount   *entry = NULL;

	if (row_counts != NULL && make_key(&key, user, options))
		entry = hash_search(row_counts, &key, HASH_FIND, NULL);

	if (entry != NULL && entry->generation == current_generation &&
		!TimestampDifferenceExceeds(entry->asked_at, GetCurrentTimestamp(),
									REMEMBERED_FOR_MS))
		return entry->rows;

	return mongo_refresh_row_count(user, options);
}
