/*-------------------------------------------------------------------------
 *
 * truncate.c
 *		TRUNCATE of foreign tables: deletes every document.
 *
 * Dropping the collection would be faster, but would take its indexes along
 * and is not part of MongoDB's transactions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "exec.h"

#include "bson_memory.h"
#include "derived.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "options.h"
#include "user_mapping.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "write_queue.h"

static void
check_truncatable(Relation relation)
{
	const MongoTableOptions *options = mongo_table_options(RelationGetRelid(relation));

	if (!options->truncatable || mongo_is_derived(options))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("foreign table \"%s\" does not allow truncates",
						RelationGetRelationName(relation))));
}

static void
truncate_one(Relation relation)
{
	Oid			relid = RelationGetRelid(relation);
	MongoTableOptions *options = mongo_table_options(relid);
	UserMapping *user = mongo_user_mapping(GetUserId(), GetForeignTable(relid)->serverid);
	MongoWriteQueue *queue;

	queue = mongo_write_queue_create(CurrentMemoryContext, user, options,
									 MONGO_DELETE_MANY, 1, true,
									 psprintf("could not truncate foreign table \"%s\"",
											  RelationGetRelationName(relation)),
									 relid);
	mongo_write_queue_add(queue, bson_create_in(CurrentMemoryContext), NULL);
	mongo_write_queue_finish(queue);
}

void
mongo_exec_foreign_truncate(List *rels, DropBehavior behavior pg_attribute_unused(),
							bool restart_seqs pg_attribute_unused())
{
	ListCell   *cell;

	/* nothing is deleted when one of them must not be */
	foreach(cell, rels)
		check_truncatable(lfirst(cell));
	foreach(cell, rels)
		truncate_one(lfirst(cell));
}
