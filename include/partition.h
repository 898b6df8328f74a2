/*-------------------------------------------------------------------------
 *
 * partition.h
 *		Foreign tables that are partitions, and rows that would leave them.
 *
 * PostgreSQL moves a row that an UPDATE takes out of its partition's bounds, but not out
 * of a foreign partition: there it would stay, where no query looks for it.  So that is
 * an error.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PARTITION_H
#define MONGO_FDW_PARTITION_H

#include "compat.h"

#include "nodes/pg_list.h"
#include "utils/relcache.h"

/*
 * mongo_may_leave_partition
 *		Is the table a partition, and one of these columns (attribute numbers) in what
 *		its bounds ask for?
 */
extern bool mongo_may_leave_partition(Relation relation, const List *attributes);

#endif							/* MONGO_FDW_PARTITION_H */
