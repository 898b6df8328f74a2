/*-------------------------------------------------------------------------
 *
 * catalog_access.c
 *		Privileges to see values, and bounds of partitions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common.h"

#include "access/sysattr.h"
#include "catalog/partition.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/rls.h"

/* ---------- Privileges to see the values that a message quotes ------------ */

/* may_read_table: check the privileges on this table only. */
static bool
may_read_table(Oid relid, const char *column)
{
	Oid			user = GetUserId();
	AttrNumber	attnum;

	if (check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED)
		return false;
	if (pg_class_aclcheck(relid, user, ACL_SELECT) == ACLCHECK_OK)
		return true;
	if (column == NULL)
		return pg_attribute_aclcheck_all(relid, user, ACL_SELECT, ACLMASK_ALL) == ACLCHECK_OK;
	attnum = get_attnum(relid, column);
	return attnum != InvalidAttrNumber &&
		pg_attribute_aclcheck(relid, attnum, user, ACL_SELECT) == ACLCHECK_OK;
}

bool
mongo_may_read(Oid relid, const char *column)
{
	List	   *ancestors = NIL;
	ListCell   *cell;

	if (may_read_table(relid, column))
		return true;
	if (get_rel_relispartition(relid))
		ancestors = get_partition_ancestors(relid);
	foreach(cell, ancestors)
	{
		if (may_read_table(lfirst_oid(cell), column))
			return true;
	}
	return false;
}

/* at_work: a callback that adds nothing to an error; its address marks our entries. */
static void
at_work(void *arg pg_attribute_unused())
{
}

void
mongo_begin_work(MongoAtWork *work, List *relids)
{
	work->relids = relids;
	work->function = NULL;
	work->callback.callback = at_work;
	work->callback.arg = work;
	work->callback.previous = error_context_stack;
	error_context_stack = &work->callback;
}

void
mongo_end_work(MongoAtWork *work)
{
	error_context_stack = work->callback.previous;
}

/* innermost_work: return the innermost work that has not ended, or NULL. */
static const MongoAtWork *
innermost_work(void)
{
	for (ErrorContextCallback *one = error_context_stack; one; one = one->previous)
	{
		if (one->callback == at_work)
			return one->arg;
	}
	return NULL;
}

List *
mongo_tables_at_work(void)
{
	const MongoAtWork *work = innermost_work();

	return work != NULL ? work->relids : NIL;
}

const char *
mongo_function_at_work(void)
{
	const MongoAtWork *work = innermost_work();

	return work != NULL ? work->function : NULL;
}

bool
mongo_may_quote(const char *column)
{
	List	   *relids = mongo_tables_at_work();
	ListCell   *cell;

	foreach(cell, relids)
	{
		/* with several tables, it is unknown which of them has the column */
		if (!mongo_may_read(lfirst_oid(cell), list_length(relids) == 1 ? column : NULL))
			return false;
	}
	return true;
}

int
mongo_query_log_level(void)
{
	return superuser() ? LOG : LOG_SERVER_ONLY;
}

/*-------------------------------------------------------------------------
 * Partitions that are foreign tables, and rows that would have to leave them.
 *-------------------------------------------------------------------------
 */

bool
mongo_may_leave_partition(Relation relation, const List *attributes)
{
	Bitmapset  *bounds = NULL;
	ListCell   *cell;

	if (!relation->rd_rel->relispartition)
		return false;
	pull_varattnos((Node *) RelationGetPartitionQual(relation), 1, &bounds);
	foreach(cell, attributes)
	{
		if (bms_is_member(lfirst_int(cell) - FirstLowInvalidHeapAttributeNumber, bounds))
			return true;
	}
	return false;
}
