/*-------------------------------------------------------------------------
 *
 * slow_command.h
 *		The setting mongo_fdw.slow_command_ms.
 *
 * To be asked only where the setting is not -1.  The log is the superuser's: what is
 * sent may hold others' data.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SLOW_COMMAND_H
#define MONGO_FDW_SLOW_COMMAND_H

#include "compat.h"

#include "wire.h"

/*
 * mongo_log_slow_request
 *		The reply to the connection's request has come: log it if it took long.
 *
 * mongo_log_slow_driver_command
 *		The same of what libmongoc has done, since 'waited_before' (MONGO_COUNT_WAIT_US).
 */
extern void mongo_log_slow_request(MongoConnection *connection);
extern void mongo_log_slow_driver_command(MongoConnection *connection, uint64 waited_before);

#endif							/* MONGO_FDW_SLOW_COMMAND_H */
