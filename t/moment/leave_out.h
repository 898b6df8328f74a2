/*-------------------------------------------------------------------------
 *
 * leave_out.h
 *		Leaves out a rule of the engine that synchronizes tables, so that the test must fail.
 *
 * Included before each source of a build with MOMENT=1 (-include).  The linker wraps the functions
 * that have the rules (--wrap, in the Makefile).  Nothing changes unless these are set:
 *
 *	moment.batch	so many documents at most in a batch
 *	moment.range	so many documents in a range of a first copy
 *	moment.without	a rule: "mark", "latest", "identity" or "history", see leave_out.c
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_SYNC_LEAVE_OUT_H
#define MONGO_SYNC_LEAVE_OUT_H

extern int	moment_number(const char *setting, int otherwise);

#define SYNC_BATCH			moment_number("moment.batch", 10000)
#define DOCUMENTS_IN_RANGE	moment_number("moment.range", 100000)

#endif							/* MONGO_SYNC_LEAVE_OUT_H */
