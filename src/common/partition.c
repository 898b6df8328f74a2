/*-------------------------------------------------------------------------
 *
 * partition.c
 *		Foreign tables that are partitions, and rows that would leave them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "partition.h"

#include "access/sysattr.h"
#include "optimizer/optimizer.h"
#include "utils/partcache.h"
#include "utils/rel.h"

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
