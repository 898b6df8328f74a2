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
#include "client_pool.h"
#include "encoding.h"
#include "miscadmin.h"
#include "types.h"

/* More than the 64 that a collection may have. */
#define BATCH_SIZE	1000

/* MongoDB's error codes, src/mongo/base/error_codes.yml */
#define NAMESPACE_NOT_FOUND				26
#define COMMAND_NOT_SUPPORTED_ON_VIEW	166

/* Kinds of keys: a word of ours, and MongoDB's where it writes one. */
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

MongoKeyKind
index_key_kind(const bson_iter_t *key)
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

const char *
index_key_kind_name(MongoKeyKind kind)
{
	return kinds[kind].name;
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

/* ------------------------------ describing --------------------------------- */

static bool
is_readable(const char *utf8_text)
{
	return mongo_text_is_valid(utf8_text, strlen(utf8_text));
}

/* describe_keys: false when a path is not readable. */
static bool
describe_keys(bson_iter_t *keys, BsonArray *fields, bool *ordinary)
{
	*ordinary = true;
	while (bson_iter_next(keys))
	{
		MongoKeyKind kind = index_key_kind(keys);

		if (!is_readable(bson_iter_key(keys)))
			return false;
		*ordinary &= kind <= MONGO_KEY_DESCENDING;
		bson_array_append_template(fields, "{path: @1, kind: @2}",
								   bson_utf8(bson_iter_key(keys)),
								   bson_utf8(index_key_kind_name(kind)));
	}
	return fields->count > 0;
}

static bool
flag_of(const bson_t *index, const char *name)
{
	bson_iter_t iter;

	return bson_iter_init_find(&iter, index, name) && bson_iter_as_bool(&iter);
}

/* describe_limits: what keeps an index from serving every query. */
static void
describe_limits(const bson_t *index, bson_t *result)
{
	bson_iter_t iter;
	bson_iter_t locale;
	Datum		value;
	bool		isnull;
	MongoReadContext context = {0};

	if (bson_iter_init_find(&iter, index, "partialFilterExpression"))
	{
		/* a filter that no jsonb holds is one all the same */
		if (mongo_read_value(mongo_reader_create(CurrentMemoryContext, JSONBOID, -1),
							 &context, &iter, &value, &isnull))
			bson_append_iter(result, "partial", -1, &iter);
		else
			BSON_APPEND_BOOL(result, "partial", true);
	}
	if (bson_iter_init_find(&iter, index, "collation"))
	{
		bool		named = BSON_ITER_HOLDS_DOCUMENT(&iter) &&
			bson_iter_recurse(&iter, &locale) && bson_iter_find(&locale, "locale") &&
			BSON_ITER_HOLDS_UTF8(&locale) && is_readable(bson_iter_utf8(&locale, NULL));

		BSON_APPEND_UTF8(result, "collation",
						 named ? bson_iter_utf8(&locale, NULL) : "");
	}
}

/* is_id: MongoDB does not say of this index that it is unique. */
static bool
is_id(const bson_iter_t *key)
{
	bson_iter_t keys;

	return bson_iter_recurse(key, &keys) && bson_iter_next(&keys) &&
		strcmp(bson_iter_key(&keys), "_id") == 0 && !bson_iter_next(&keys);
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
describe_index(const IndexOwner *owner, const bson_t *index, BsonArray *result)
{
	BsonArray	fields = bson_array_create();
	bson_t	   *entry = bson_create_in(CurrentMemoryContext);
	bson_iter_t iter;
	bson_iter_t key;
	bson_iter_t keys;
	const char *name;
	bool		ordinary;
	bool		multikey;

	if (!bson_iter_init_find(&iter, index, "name") || !BSON_ITER_HOLDS_UTF8(&iter) ||
		!bson_iter_init_find(&key, index, "key") || !BSON_ITER_HOLDS_DOCUMENT(&key) ||
		!bson_iter_recurse(&key, &keys))
		return;
	name = bson_iter_utf8(&iter, NULL);
	if (!is_readable(name) || !describe_keys(&keys, &fields, &ordinary))
		return;

	bson_append_template(entry, "{name: @1, fields: @2, unique: @3, sparse: @4, hidden: @5}",
						 bson_utf8(name), bson_array(fields.bson),
						 bson_bool(is_id(&key) || flag_of(index, "unique")),
						 bson_bool(flag_of(index, "sparse")),
						 bson_bool(flag_of(index, "hidden")));
	describe_limits(index, entry);
	if (ordinary && ask_multikey(owner->user, owner->database, owner->collection, name,
								 &multikey))
		BSON_APPEND_BOOL(entry, "multikey", multikey);
	bson_array_append(result, bson_document(entry));
}

BsonArray
index_describe(UserMapping *user, const char *database, const char *collection,
			   const BsonArray *indexes)
{
	IndexOwner	owner = {user, database, collection};
	BsonArray	result = bson_array_create();
	bson_iter_t iter;

	if (!bson_iter_init(&iter, indexes->bson))
		elog(ERROR, "list of indexes is malformed");
	while (bson_iter_next(&iter))
	{
		bson_t		index;
		const uint8_t *data;
		uint32_t	length;

		bson_iter_document(&iter, &length, &data);
		if (bson_view(&index, data, length))
			describe_index(&owner, &index, &result);
	}
	return result;
}
