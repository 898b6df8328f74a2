/*-------------------------------------------------------------------------
 *
 * command_name.h
 *		MongoDB's commands: the table of their names, and which member of a
 *		document is the name.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_COMMAND_NAME_H
#define MONGO_FDW_COMMAND_NAME_H

#include "compat.h"

/* What a command does to the server and its data. */
typedef enum MongoCommandEffect
{
	MONGO_COMMAND_UNKNOWN,		/* not in the table */
	MONGO_COMMAND_READS,		/* changes nothing, whatever its arguments */
	MONGO_COMMAND_DEPENDS,		/* on its arguments */
	MONGO_COMMAND_WRITES		/* may change something */
} MongoCommandEffect;

/*
 * mongo_command_effect
 *		The effect of the command of this name; the case of letters counts, as it
 *		does to MongoDB.
 */
extern MongoCommandEffect mongo_command_effect(const char *name);

/*
 * mongo_ordered_command
 *		A copy, in the current memory context, of 'command' with the member
 *		that is the command's name in front, as MongoDB wants it.
 *
 * For commands that were jsonb, which has an order of its own.  A member alone is
 * the name, whatever it is; else the name is found by a table of MongoDB's
 * commands.  Raises 22023 when no member or more than one can be it.
 */
extern const bson_t *mongo_ordered_command(const bson_t *command);

#endif							/* MONGO_FDW_COMMAND_NAME_H */
