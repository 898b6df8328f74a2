/*-------------------------------------------------------------------------
 *
 * write_command.h
 *		Run one command that may write, outside of transactions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_WRITE_COMMAND_H
#define MONGO_FDW_WRITE_COMMAND_H

#include "compat.h"

#include "foreign/foreign.h"

/*
 * mongo_run_write_command
 *		Run it once, through libmongoc, and return its reply, in 'context'.
 *
 * 'command' must not hold $db or lsid.  A reply with {ok: 0} raises as
 * mongo_report_bson_error() does, under 'context_message', as do a lost
 * connection (08006) and interrupts.  Given up by an interrupt or by
 * socket_timeout_ms it is ended in MongoDB as well (remote_cancel.h), and a
 * WARNING says that what it has changed stays.  So does one when PostgreSQL rolls
 * back (lasting_command.h).
 */
extern const bson_t *mongo_run_write_command(MemoryContext context, UserMapping *user,
											 const char *database,
											 const bson_t *command,
											 const char *context_message);

#endif							/* MONGO_FDW_WRITE_COMMAND_H */
