/*-------------------------------------------------------------------------
 *
 * query_log.h
 *		The setting mongo_fdw.log_remote_query.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_QUERY_LOG_H
#define MONGO_FDW_QUERY_LOG_H

#include "compat.h"

/*
 * mongo_log_command
 *		Log a command that is about to be sent, if the setting asks for that.
 */
extern void mongo_log_command(const char *database, const bson_t *command);

#endif							/* MONGO_FDW_QUERY_LOG_H */
