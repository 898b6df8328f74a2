/*-------------------------------------------------------------------------
 *
 * lasting_command.h
 *		Commands that no rollback undoes, whatever the server.
 *
 * What mongo_command() and mongo_aggregate() change takes no part in MongoDB's
 * transactions.  Where PostgreSQL rolls back the transaction, or the savepoint, in
 * which they did so, a WARNING (01000) says that it stays.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_LASTING_COMMAND_H
#define MONGO_FDW_LASTING_COMMAND_H

#include "compat.h"

/*
 * mongo_lasting_commands
 *		How many commands the current subtransaction has run on a server, to be
 *		incremented when one more has succeeded.
 *
 * Valid until that subtransaction ends.  It is to be asked for before the command is
 * sent, as it takes memory.
 */
extern int *mongo_lasting_commands(const char *server_name);

#endif							/* MONGO_FDW_LASTING_COMMAND_H */
