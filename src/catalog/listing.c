/*-------------------------------------------------------------------------
 *
 * listing.c
 *		Lists the collections of a database and the indexes of a collection.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog_internal.h"

#include "common/string.h"
#include "miscadmin.h"

/* ------------------------------ collections -------------------------------- */

static int
compare_collections(const ListCell *a, const ListCell *b)
{
	return strcmp(((MongoCollection *) lfirst(a))->name,
				  ((MongoCollection *) lfirst(b))->name);
}

/* MongoDB's limit, and more than the servers that have been heard of have in one database. */
#define LONGEST_COLLECTION_NAME	255
#define MOST_COLLECTIONS		100000

/* Parses an entry of listCollections; NULL for system.* collections. */
static MongoCollection *
collection_from_entry(const bson_t *entry)
{
	MongoCollection *collection = palloc0(sizeof(MongoCollection));
	bson_iter_t iter;

	if (!bson_iter_init_find(&iter, entry, "name") || !BSON_ITER_HOLDS_UTF8(&iter) ||
		strlen(bson_iter_utf8(&iter, NULL)) > LONGEST_COLLECTION_NAME ||
		strncmp(bson_iter_utf8(&iter, NULL), "system.", strlen("system.")) == 0 ||
		!mongo_text_is_valid(bson_iter_utf8(&iter, NULL), strlen(bson_iter_utf8(&iter, NULL))))
		return NULL;
	collection->name = mongo_from_utf8(pstrdup(bson_iter_utf8(&iter, NULL)));

	if (bson_iter_init_find(&iter, entry, "type") && BSON_ITER_HOLDS_UTF8(&iter))
	{
		collection->is_view = strcmp(bson_iter_utf8(&iter, NULL), "view") == 0;
		collection->is_plain = strcmp(bson_iter_utf8(&iter, NULL), "collection") == 0;
	}

	return collection;
}

/*
 * mongo_list_collections
 *		Lists a database's collections and views (MongoCollection *) by name, without system.*.
 *
 * Only the one with this name unless that is NULL.  If the MongoDB user may not list collections,
 * MongoDB returns those on which the user has privileges.
 */
List *
mongo_list_collections(UserMapping *user, const char *database, const char *name)
{
	bson_t	   *command = mongo_from_template("{listCollections: 1, nameOnly: true, authorizedCollections: true}");
	MongoCursor *cursor;
	const uint8_t *data;
	uint32		length;
	List	   *result = NIL;

	if (name != NULL)
		mongo_append_template(command, "{filter: {name: @1}}", mongo_utf8(mongo_to_utf8(name)));
	cursor = mongo_cursor_open(CurrentMemoryContext, &(MongoRead) {
		.user = user,
		.database = mongo_to_utf8(database),
		.collection = "$cmd.listCollections",
		.command = command,
		.of_catalog = true
	});
	while ((data = mongo_cursor_next(cursor, &length)) != NULL)
	{
		MongoCollection *collection;
		bson_t		entry;

		CHECK_FOR_INTERRUPTS();
		if (!mongo_bson_view(&entry, data, length))
			mongo_report_bad_bson();
		collection = collection_from_entry(&entry);
		if (collection != NULL)
			result = lappend(result, collection);
		if (list_length(result) > MOST_COLLECTIONS)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("database \"%s\" has more than %d collections", database, MOST_COLLECTIONS)));
	}
	mongo_cursor_close(cursor);

	list_sort(result, compare_collections);
	return result;
}

/*
 * mongo_names_collection
 *		Asks MongoDB whether the table reads one collection: it has no pipeline, and its collection
 *		is no view.
 *
 * Returns false also if MongoDB does not list the collection.  Raises errors of listing it.
 */
bool
mongo_names_collection(UserMapping *user, Oid relid)
{
	const MongoTableOptions *options = mongo_table_options(relid);
	List	   *listed = options->pipeline != NULL ? NIL :
		mongo_list_collections(user, options->database, options->collection);

	return listed != NIL && !((MongoCollection *) linitial(listed))->is_view;
}

/*
 * mongo_nearest_collection
 *		Returns the collection of the database that was probably meant by another name.
 *
 * It is the same in other cases, or a few letters are changed.  NULL if there is none, or the user
 * may not list collections.  Palloc'd or static, in the database's encoding.
 */
const char *
mongo_nearest_collection(UserMapping *user, const char *database, const char *name)
{
	List	   *names = NIL;

	foreach_ptr(const MongoCollection, collection, mongo_list_collections(user, database, NULL))
		names = lappend(names, unconstify(char *, collection->name));
	return mongo_nearest_name(names, name);
}

/* ------------------------------ indexes ------------------------------------ */

/* More than the 64 indexes that a collection may have; and than the bytes of their descriptions. */
#define BATCH_SIZE		1000
#define LARGEST_INDEXES	(1024 * 1024)

/* MongoDB's error codes, src/mongo/base/error_codes.yml */
#define NAMESPACE_NOT_FOUND				26
#define COMMAND_NOT_SUPPORTED_ON_VIEW	166

static MongoKeyKind
key_kind(const bson_iter_t *key)
{
	if (strstr(bson_iter_key(key), "$**") != NULL)
		return MONGO_KEY_WILDCARD;
	if (BSON_ITER_HOLDS_NUMBER(key))
		return bson_iter_as_double(key) < 0 ? MONGO_KEY_DESCENDING : MONGO_KEY_ASCENDING;
	if (BSON_ITER_HOLDS_UTF8(key) && strcmp(bson_iter_utf8(key, NULL), "hashed") == 0)
		return MONGO_KEY_HASHED;
	return MONGO_KEY_OTHER;
}

/*
 * Return a set of MONGO_INDEX_*: what the index can be used for, whatever other
 * conditions a query has.  All of *index except 'uses' must be set.
 *
 * An index cannot be used if it covers only some documents, is hidden from MongoDB's
 * planner, or compares strings by a collation.  Nor can an index with a field of a special
 * kind at any position, because it leaves out documents without that field.
 */
static int
index_uses(const MongoIndex *index)
{
	const char *path = index->nkeys > 0 ? index->keys[0].path : "";

	if (index->nkeys == 0 || index->partial || index->hidden || index->collated)
		return 0;
	/* one field, which stands for many fields that are indexed separately */
	if (index->nkeys == 1 && index->keys[0].kind == MONGO_KEY_WILDCARD &&
		pg_str_endswith(path, "$**"))
		return MONGO_INDEX_EQUALITY | MONGO_INDEX_RANGE;
	for (int i = 0; i < index->nkeys; i++)
	{
		if (index->keys[i].kind > MONGO_KEY_HASHED)
			return 0;
	}
	if (index->keys[0].kind == MONGO_KEY_HASHED)
		return MONGO_INDEX_EQUALITY;

	/*
	 * An index gives no order if documents are missing from it or have
	 * several entries.
	 */
	return index->sparse || index->multikey ?
		MONGO_INDEX_EQUALITY | MONGO_INDEX_RANGE : MONGO_INDEX_ANY_USE;
}

/* More than the 32 fields of MongoDB's indexes. */
#define MOST_KEYS	100

/* Reads an index's fields; false if there are none. */
static bool
parse_keys(const bson_t *listed, MongoIndex *index)
{
	bson_iter_t iter;
	bson_iter_t key;
	bson_t		keys;

	if (!bson_iter_init_find(&iter, listed, "key") || !mongo_bson_view_at(&keys, &iter) ||
		!bson_iter_init(&key, &keys))
		return false;
	index->keys = palloc(sizeof(MongoIndexKey) * MOST_KEYS);
	while (bson_iter_next(&key) && index->nkeys < MOST_KEYS)
		index->keys[index->nkeys++] = (MongoIndexKey) {bson_iter_key(&key), key_kind(&key)};
	return index->nkeys > 0;
}

static bool
flag_of(const bson_t *listed, const char *name)
{
	bson_iter_t iter;

	return bson_iter_init_find(&iter, listed, name) && bson_iter_as_bool(&iter);
}

/* Parses an index; false for anything else.  Strings point into 'listed'. */
static bool
parse_index(const bson_t *listed, MongoIndex *index)
{
	bson_iter_t iter;

	if (!bson_iter_init_find(&iter, listed, "name") || !BSON_ITER_HOLDS_UTF8(&iter) ||
		!parse_keys(listed, index))
		return false;
	index->document = listed;
	index->name = bson_iter_utf8(&iter, NULL);

	/*
	 * MongoDB does not list the index of _id as unique.  By name, as a time
	 * series collection may have another index on _id.
	 */
	index->unique = flag_of(listed, "unique") || strcmp(index->name, "_id_") == 0;
	index->sparse = flag_of(listed, "sparse");
	index->hidden = flag_of(listed, "hidden");
	index->multikey = flag_of(listed, "multikey");
	index->partial = bson_has_field(listed, "partialFilterExpression") ||
		bson_has_field(listed, "wildcardProjection");
	index->collated = bson_has_field(listed, "collation");
	index->clustered = flag_of(listed, "clustered");
	index->uses = index_uses(index);
	return true;
}

/*
 * mongo_parse_indexes
 *		Reads an array of indexes, in the current memory context.  Ignores what is none.
 */
void
mongo_parse_indexes(const bson_iter_t *array, MongoStatistics *result)
{
	bson_iter_t each;
	bson_t		view;
	size_t		size = 0;

	if (!BSON_ITER_HOLDS_ARRAY(array) || !bson_iter_recurse(array, &each))
		return;
	result->indexes = palloc0(sizeof(MongoIndex));
	while (bson_iter_next(&each) && result->nindexes < BATCH_SIZE)
	{
		MongoIndex	index = {0};

		CHECK_FOR_INTERRUPTS();
		if (!mongo_bson_view_at(&view, &each) ||
			(size += view.len) > LARGEST_INDEXES || !parse_index(mongo_bson_copy_in(CurrentMemoryContext, &view), &index))
			continue;
		result->indexes = repalloc(result->indexes, sizeof(MongoIndex) * (result->nindexes + 1));
		result->indexes[result->nindexes++] = index;
	}
}

#define LONGEST_REFUSAL	2000

/* Classifies an error of listIndexes. */
static IndexListing
listing_of_error(const bson_t *reply, const char **refusal)
{
	bson_iter_t iter;
	int64		code = 0;

	if (bson_iter_init_find(&iter, reply, "code") && BSON_ITER_HOLDS_NUMBER(&iter))
		code = bson_iter_as_int64(&iter);
	if (code == NAMESPACE_NOT_FOUND)
		return INDEXES_OF_NOTHING;
	if (code == COMMAND_NOT_SUPPORTED_ON_VIEW)
		return INDEXES_OF_A_VIEW;
	*refusal = bson_iter_init_find(&iter, reply, "errmsg") && BSON_ITER_HOLDS_UTF8(&iter) &&
		mongo_text_is_valid(bson_iter_utf8(&iter, NULL), strlen(bson_iter_utf8(&iter, NULL))) ?
		mongo_cut_text(mongo_from_utf8(bson_iter_utf8(&iter, NULL)), LONGEST_REFUSAL) : "unknown error";
	return INDEXES_REFUSED;
}

/*
 * mongo_list_indexes
 *		Lists a collection's indexes, outside of any MongoDB transaction.
 *
 * Sets *refusal to MongoDB's message if the result is INDEXES_REFUSED, else to NULL.  Raises only
 * errors of the connection: 08001, 08006, 08P01, 57014.
 */
IndexListing
mongo_list_indexes(UserMapping *user, const char *database, const char *collection,
				   MongoStatistics *indexes, const char **refusal)
{
	const bson_t *command = mongo_from_template("{listIndexes: @1, cursor: {batchSize: @2}}",
												mongo_utf8(mongo_to_utf8(collection)),
												mongo_int32(BATCH_SIZE));
	const bson_t *reply = mongo_run_command(CurrentMemoryContext, user,
											mongo_to_utf8(database), command, NULL);
	bson_iter_t iter;
	bson_iter_t batch;

	*refusal = NULL;
	*indexes = (MongoStatistics) {0};
	if (!bson_iter_init_find(&iter, reply, "ok") || !bson_iter_as_bool(&iter))
		return listing_of_error(reply, refusal);
	if (bson_iter_init(&iter, reply) &&
		bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch))
		mongo_parse_indexes(&batch, indexes);
	return INDEXES_LISTED;
}
