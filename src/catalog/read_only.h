/*-------------------------------------------------------------------------
 *
 * read_only.h
 *		What may run in a read-only transaction and on a hot standby: commands
 *		and pipelines that are known to only read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_READ_ONLY_H
#define MONGO_FDW_READ_ONLY_H

#include "compat.h"

/*
 * mongo_command_only_reads
 *		Is this command, whose first member is its name, known to change nothing?
 *
 * False is also the answer for what is not known.  Of a member that is given
 * twice each is looked at, as MongoDB may take either.
 */
extern bool mongo_command_only_reads(const bson_t *command);

/*
 * mongo_stage_that_may_write
 *		The name of the first stage of a pipeline that is not known to only read,
 *		NULL if there is none; "a pipeline that is not an array of stages" for
 *		anything else.
 *
 * The result belongs to the pipeline or is constant.  Pipelines within stages are
 * not looked at: MongoDB lets none of them write.
 */
extern const char *mongo_stage_that_may_write(const bson_iter_t *pipeline);

/*
 * mongo_prevent_write
 *		Raise 25006 in a read-only transaction, on a hot standby that is, too, and
 *		25000 in a parallel operation; 'what' is what cannot be executed.
 */
extern void mongo_prevent_write(const char *what);

#endif							/* MONGO_FDW_READ_ONLY_H */
