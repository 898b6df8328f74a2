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

#include "foreign/foreign.h"

/*
 * mongo_remote_row_count
 *		How many documents a collection has, for the planner.
 *
 * Asked for with one count command and remembered in this backend for five
 * minutes, or until a server's or mapping's definition changes.  Names are in
 * the database encoding.  A view counts all that its pipeline returns, and 0 is
 * the answer for a collection that does not exist.  Raises as mongo_run_command()
 * does.
 */
extern double mongo_remote_row_count(UserMapping *user, const char *database,
									 const char *collection);

/*
 * mongo_refresh_row_count
 *		The same, asked for now whatever is remembered.
 */
extern double mongo_refresh_row_count(UserMapping *user, const char *database,
									  const char *collection);

#endif							/* MONGO_FDW_ROW_COUNT_H */
