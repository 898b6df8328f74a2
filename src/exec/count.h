/*-------------------------------------------------------------------------
 *
 * count.h
 *		Where MongoDB takes the command count.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_EXEC_COUNT_H
#define MONGO_FDW_EXEC_COUNT_H

#include "compat.h"

#include "foreign/foreign.h"

/*
 * mongo_takes_count
 *		May this count command, {count: collection, query: filter}, be sent now in
 *		place of the pipeline that counts as well?
 *
 * MongoDB refuses it in transactions.  Where the values have left no condition in its
 * query, it would count by the collection's metadata, which need not be exact.
 */
extern bool mongo_takes_count(UserMapping *user, const bson_t *command);

#endif							/* MONGO_FDW_EXEC_COUNT_H */
