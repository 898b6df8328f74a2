/*-------------------------------------------------------------------------
 *
 * command.h
 *		Run one command.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COMMAND_H
#define MONGO_FDW_COMMAND_H

#include "compat.h"

#include "foreign/foreign.h"

/*
 * mongo_run_command
 *		Run one command and return its reply, which lives in 'context'.
 *
 * 'command' must not hold $db or lsid, which the function adds.  A reply with
 * {ok: 0} raises as mongo_report_command_error does, under 'context_message';
 * without one (NULL) it is returned like any other.
 * With 'read_only' true the command is retried once on a broken connection.
 */
extern const bson_t *mongo_run_command(MemoryContext context, UserMapping *user,
									   const char *database,
									   const bson_t *command, bool read_only,
									   const char *context_message);

#endif							/* MONGO_FDW_COMMAND_H */
