/*-------------------------------------------------------------------------
 *
 * learn.c
 *		What ANALYZE keeps beside PostgreSQL's own statistics.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "learn.h"

#include "catalog/pg_type.h"
#include "index_keys.h"
#include "reader.h"
#include "statistics_table.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

bool
mongo_learns(Relation relation)
{
	/*
	 * the lock that ANALYZE takes, and that a parent's does not take of
	 * children
	 */
	return CheckRelationLockedByMe(relation, ShareUpdateExclusiveLock, true);
}

/* jsonb_of: an array of what can be read as jsonb. */
static Datum
jsonb_of(const BsonArray *array)
{
	const bson_t *holder = bson_from_template("{array: @1}", bson_array(array->bson));
	MongoReadContext context = {0};
	bson_iter_t iter;
	Datum		value;
	bool		isnull;

	if (!bson_iter_init_find(&iter, holder, "array") ||
		!mongo_read_value(mongo_reader_create(CurrentMemoryContext, JSONBOID, -1),
						  &context, &iter, &value, &isnull) || isnull)
		elog(ERROR, "what was learned does not make a jsonb");
	return value;
}

void
mongo_learn(Relation relation, UserMapping *user, const MongoTableOptions *options,
			const MongoFindings *findings)
{
	StatisticsRow row = {
		.relid = RelationGetRelid(relation),
		.collection = psprintf("%s.%s", options->database, options->collection),
		.learned_at = GetCurrentTimestamp(),
		.documents = findings->documents,
		.document_size = findings->document_size,
		.sampled = findings->sampled
	};
	BsonArray	fields = field_types_describe(findings->types);
	BsonArray	indexes;
	const char *refusal;
	IndexAnswer answer = index_list(user, options->database, options->collection,
									&indexes, &refusal);

	if (answer == INDEXES_OF_NOTHING)
		ereport(NOTICE,
				(errmsg("collection \"%s\" of foreign table \"%s\" does not exist",
						row.collection, RelationGetRelationName(relation))));
	else if (answer == INDEXES_REFUSED)
		ereport(NOTICE,
				(errmsg("could not list the indexes of collection \"%s\"", row.collection),
				 errdetail("MongoDB answered: %s", refusal),
				 errhint("Let the user mapping's user run listIndexes, or say which columns are indexed by the option indexed.")));

	row.indexes_known = answer != INDEXES_REFUSED;
	if (row.indexes_known)
	{
		indexes = index_describe(user, options->database, options->collection, &indexes);
		row.indexes = jsonb_of(&indexes);
	}
	row.fields = jsonb_of(&fields);
	statistics_row_write(&row);
}
