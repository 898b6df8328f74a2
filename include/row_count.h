/*-------------------------------------------------------------------------
 *
 * row_count.h
 *		How many documents a collection has, asked once and remembered.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_ROW_COUNT_H
#define MONGO_FDW_ROW_COUNT_H

#include "compat.h"

#include "options.h"

/*
 * mongo_remote_row_count
 *		How many documents the collection of a table with these options has, or how
 *		many rows a derived table, for the planner.
 *
 * Asked for with one command and remembered in this backend for five minutes, or
 * until a server's or mapping's definition changes.  A view counts all that its
 * pipeline returns, and 0 is the answer for a collection that does not exist.
 * Raises as mongo_run_command() and mongo_append_deriving_stages() do.
 */
extern double mongo_remote_row_count(UserMapping *user, const MongoTableOptions *options);

/*
 * mongo_refresh_row_count
 *		The same, asked for now whatever is remembered.
 */
extern double mongo_refresh_row_count(UserMapping *user, const MongoTableOptions *options);

#endif							/* MONGO_FDW_ROW_COUNT_H */
