/*-------------------------------------------------------------------------
 *
 * index_keys.c
 *		The indexes of a collection, asked for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "index_keys.h"

#include "bson_memory.h"
#include "catalog/pg_type.h"
#include "command.h"
#include "encoding.h"
#include "miscadmin.h"
#include "reader.h"

/* More than the 64 that a collection may have. */
#define BATCH_SIZE	1000

/* MongoDB's error codes, src/mongo/base/error_codes.yml */
#define NAMESPACE_NOT_FOUND				26
#define COMMAND_NOT_SUPPORTED_ON_VIEW	166

/* Kinds of keys: our name for it, and MongoDB's if it has one. */
static const struct
{
	const char *name;
	const char *key;
}			kinds[] =
{
	[MONGO_KEY_ASCENDING] = {"ascending", NULL},
	[MONGO_KEY_DESCENDING] = {"descending", NULL},
	[MONGO_KEY_HASHED] = {"hashed", "hashed"},
	[MONGO_KEY_TEXT] = {"text", "text"},
	[MONGO_KEY_2D] = {"2d", "2d"},
	[MONGO_KEY_2DSPHERE] = {"2dsphere", "2dsphere"},
	[MONGO_KEY_WILDCARD] = {"wildcard", NULL},
	[MONGO_KEY_OTHER] = {"other", NULL},
};

static MongoKeyKind
key_kind(const bson_iter_t *key)
{
	if (strstr(bson_iter_key(key), "$**") != NULL)
		return MONGO_KEY_WILDCARD;
	if (BSON_ITER_HOLDS_NUMBER(key))
		return bson_iter_as_double(key) < 0 ? MONGO_KEY_DESCENDING : MONGO_KEY_ASCENDING;
	for (size_t i = 0; BSON_ITER_HOLDS_UTF8(key) && i < lengthof(kinds); i++)
	{
		if (kinds[i].key != NULL && strcmp(kinds[i].key, bson_iter_utf8(key, NULL)) == 0)
			return (MongoKeyKind) i;
	}
	return MONGO_KEY_OTHER;
}

MongoKeyKind
index_key_kind_from_name(const char *name)
{
	for (size_t i = 0; i < lengthof(kinds); i++)
	{
		if (strcmp(kinds[i].name, name) == 0)
			return (MongoKeyKind) i;
	}
	return MONGO_KEY_OTHER;
}

/* is_wildcard: over each of many fields by itself. */
static bool
is_wildcard(const MongoIndex *index)
{
	const char *path = index->keys[0].path;

	return index->nkeys == 1 && index->keys[0].kind == MONGO_KEY_WILDCARD &&
		strlen(path) >= strlen("$**") &&
		strcmp(path + strlen(path) - strlen("$**"), "$**") == 0;
}

/*
 * One over some documents only, one that MongoDB's planner does not see and one
 * that compares strings in another way serve nothing; nor do those with a field of
 * a special kind anywhere, which leave out documents without that field.
 */
int
index_uses(const MongoIndex *index)
{
	if (index->nkeys == 0 || index->partial || index->hidden || index->collated)
		return 0;
	if (is_wildcard(index))
		return MONGO_INDEX_EQUALITY | MONGO_INDEX_RANGE;
	for (int i = 0; i < index->nkeys; i++)
	{
		if (index->keys[i].kind > MONGO_KEY_HASHED)
			return 0;
	}
	if (index->keys[0].kind == MONGO_KEY_HASHED)
		return MONGO_INDEX_EQUALITY;

	/*
	 * where documents are missing, or stand in several places, there is no
	 * order
	 */
	return index->sparse || index->multikey ?
		MONGO_INDEX_EQUALITY | MONGO_INDEX_RANGE : MONGO_INDEX_ANY_USE;
}

/* ------------------------------ asking ------------------------------------- */

/* answer_of: what an error of listIndexes means. */
static IndexAnswer
answer_of(const bson_t *reply, const char **refusal)
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
		mongo_from_utf8(pstrdup(bson_iter_utf8(&iter, NULL))) : "unknown error";
	return INDEXES_REFUSED;
}

IndexAnswer
index_list(UserMapping *user, const char *database, const char *collection,
		   BsonArray *indexes, const char **refusal)
{
	const bson_t *command = bson_from_template("{listIndexes: @1, cursor: {batchSize: @2}}",
											   bson_utf8(mongo_to_utf8(collection)),
											   bson_int32(BATCH_SIZE));
	const bson_t *reply = mongo_run_command(CurrentMemoryContext, user,
											mongo_to_utf8(database), command, true, NULL);
	bson_iter_t iter;
	bson_iter_t batch;
	bson_iter_t index;

	*refusal = NULL;
	*indexes = bson_array_create();
	if (!bson_iter_init_find(&iter, reply, "ok") || !bson_iter_as_bool(&iter))
		return answer_of(reply, refusal);

	if (bson_iter_init(&iter, reply) &&
		bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch) &&
		BSON_ITER_HOLDS_ARRAY(&batch) && bson_iter_recurse(&batch, &index))
	{
		while (bson_iter_next(&index))
		{
			if (BSON_ITER_HOLDS_DOCUMENT(&index))
				bson_array_append(indexes, *bson_iter_value(&index));
		}
	}
	return INDEXES_LISTED;
}

/* ------------------------------ multikey ----------------------------------- */

/*
 * find_is_multikey
 *		Look for isMultiKey in an explained plan: its stages are nested, and in
 *		other places in each version of MongoDB.
 */
static bool
find_is_multikey(bson_iter_t *iter, bool *multikey)
{
	check_stack_depth();

	while (bson_iter_next(iter))
	{
		bson_iter_t inner;

		if (strcmp(bson_iter_key(iter), "isMultiKey") == 0 && BSON_ITER_HOLDS_BOOL(iter))
		{
			*multikey = bson_iter_bool(iter);
			return true;
		}
		if ((BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter)) &&
			bson_iter_recurse(iter, &inner) && find_is_multikey(&inner, multikey))
			return true;
	}
	return false;
}

/*
 * ask_multikey
 *		Has a document had an array in a field of this index?  False when MongoDB
 *		does not say.
 *
 * Only explain tells.  It plans a scan of the index, and runs nothing.
 */
static bool
ask_multikey(UserMapping *user, const char *database, const char *collection,
			 const char *utf8_name, bool *multikey)
{
	const bson_t *command =
		bson_from_template("{explain: {find: @1, filter: {}, hint: @2}, verbosity: 'queryPlanner'}",
						   bson_utf8(mongo_to_utf8(collection)), bson_utf8(utf8_name));
	const bson_t *reply = mongo_run_command(CurrentMemoryContext, user,
											mongo_to_utf8(database), command, true, NULL);
	bson_iter_t iter;

	return bson_iter_init(&iter, reply) && find_is_multikey(&iter, multikey);
}

/* ------------------------------ parsing ------------------------------------ */

/* parse_keys: false when there are none. */
static bool
parse_keys(const bson_t *listed, MongoIndex *index)
{
	bson_iter_t iter;
	bson_iter_t key;
	bson_t		keys;
	const uint8_t *data;
	uint32_t	length;

	if (!bson_iter_init_find(&iter, listed, "key") || !BSON_ITER_HOLDS_DOCUMENT(&iter))
		return false;
	bson_iter_document(&iter, &length, &data);
	if (data == NULL || !bson_view(&keys, data, length) || !bson_iter_init(&key, &keys))
		return false;
	index->keys = palloc(sizeof(MongoIndexKey) * Max(bson_count_keys(&keys), 1));
	while (bson_iter_next(&key))
		index->keys[index->nkeys++] = (MongoIndexKey) {bson_iter_key(&key), key_kind(&key)};
	return index->nkeys > 0;
}

static bool
flag_of(const bson_t *listed, const char *name)
{
	bson_iter_t iter;

	return bson_iter_init_find(&iter, listed, name) && bson_iter_as_bool(&iter);
}

bool
index_parse(const bson_t *listed, MongoIndex *index)
{
	bson_iter_t iter;

	*index = (MongoIndex) {0};
	if (!bson_iter_init_find(&iter, listed, "name") || !BSON_ITER_HOLDS_UTF8(&iter) ||
		!parse_keys(listed, index))
		return false;
	index->name = bson_iter_utf8(&iter, NULL);

	/* of the index on _id MongoDB does not say it */
	index->unique = flag_of(listed, "unique") ||
		(index->nkeys == 1 && strcmp(index->keys[0].path, "_id") == 0);
	index->sparse = flag_of(listed, "sparse");
	index->hidden = flag_of(listed, "hidden");
	index->partial = bson_has_field(listed, "partialFilterExpression") ||
		bson_has_field(listed, "wildcardProjection");
	index->collated = bson_has_field(listed, "collation");
	index->uses = index_uses(index);
	return true;
}

/* ------------------------------ describing --------------------------------- */

static bool
is_readable(const char *utf8_text)
{
	return mongo_text_is_valid(utf8_text, strlen(utf8_text));
}

/* describe_keys: false when a path is not readable. */
static bool
describe_keys(const MongoIndex *index, BsonArray *fields, bool *ordinary)
{
	*ordinary = true;
	for (int i = 0; i < index->nkeys; i++)
	{
		const MongoIndexKey *key = &index->keys[i];

		if (!is_readable(key->path))
			return false;
		*ordinary &= key->kind <= MONGO_KEY_DESCENDING;
		bson_array_append_template(fields, "{path: @1, kind: @2}", bson_utf8(key->path),
								   bson_utf8(kinds[key->kind].name));
	}
	return true;
}

/* describe_document: a member of an index as one of its description. */
static void
describe_document(const bson_t *listed, const char *member, bson_t *entry, const char *name)
{
	MongoReadContext context = {0};
	bson_iter_t iter;
	Datum		value;
	bool		isnull;

	if (!bson_iter_init_find(&iter, listed, member))
		return;
	/* what no jsonb holds is there all the same */
	if (mongo_read_value(mongo_reader_create(CurrentMemoryContext, JSONBOID, -1),
						 &context, &iter, &value, &isnull))
		bson_append_iter(entry, name, -1, &iter);
	else
		BSON_APPEND_BOOL(entry, name, true);
}

/* describe_limits: a filter, a choice of fields, a collation. */
static void
describe_limits(const bson_t *listed, bson_t *entry)
{
	bson_iter_t iter;
	bson_iter_t locale;

	describe_document(listed, "partialFilterExpression", entry, "partial");
	describe_document(listed, "wildcardProjection", entry, "projection");
	if (bson_iter_init_find(&iter, listed, "collation"))
	{
		bool		named = BSON_ITER_HOLDS_DOCUMENT(&iter) &&
			bson_iter_recurse(&iter, &locale) && bson_iter_find(&locale, "locale") &&
			BSON_ITER_HOLDS_UTF8(&locale) && is_readable(bson_iter_utf8(&locale, NULL));

		BSON_APPEND_UTF8(entry, "collation", named ? bson_iter_utf8(&locale, NULL) : "");
	}
}

/* What an index is of, while it is described. */
typedef struct IndexOwner
{
	UserMapping *user;
	const char *database;
	const char *collection;
} IndexOwner;

/* describe_index: nothing for one that is not readable. */
static void
describe_index(const IndexOwner *owner, const bson_t *listed, BsonArray *result)
{
	BsonArray	fields = bson_array_create();
	bson_t	   *entry = bson_create_in(CurrentMemoryContext);
	MongoIndex	index;
	bool		ordinary;
	bool		multikey;

	if (!index_parse(listed, &index) || !is_readable(index.name) ||
		!describe_keys(&index, &fields, &ordinary))
		return;
	bson_append_template(entry, "{name: @1, fields: @2, unique: @3, sparse: @4, hidden: @5}",
						 bson_utf8(index.name), bson_array(fields.bson),
						 bson_bool(index.unique), bson_bool(index.sparse),
						 bson_bool(index.hidden));
	describe_limits(listed, entry);
	if (ordinary && ask_multikey(owner->user, owner->database, owner->collection,
								 index.name, &multikey))
		BSON_APPEND_BOOL(entry, "multikey", multikey);
	bson_array_append(result, bson_document(entry));
}

bool
index_next(bson_iter_t *iter, bson_t *listed)
{
	while (bson_iter_next(iter))
	{
		const uint8_t *data;
		uint32_t	length;

		bson_iter_document(iter, &length, &data);
		if (data != NULL && bson_view(listed, data, length))
			return true;
	}
	return false;
}

BsonArray
index_describe(UserMapping *user, const char *database, const char *collection,
			   const BsonArray *indexes)
{
	IndexOwner	owner = {user, database, collection};
	BsonArray	result = bson_array_create();
	bson_iter_t iter;
	bson_t		listed;

	if (!bson_iter_init(&iter, indexes->bson))
		elog(ERROR, "list of indexes is malformed");
	while (index_next(&iter, &listed))
		describe_index(&owner, &listed, &result);
	return result;
}
