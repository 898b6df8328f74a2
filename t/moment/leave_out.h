/*-------------------------------------------------------------------------
 *
 * leave_out.h
 *		Leaves out a rule of the engine that synchronizes tables, so that the test must fail.
 *
 * Included before each source of a build with MOMENT=1 (-include).  The linker wraps the functions
 * that have the rules (--wrap, in the Makefile).  Nothing changes unless these are set:
 *
 *	moment.batch	so many documents at most in a batch
 *	moment.without	a rule: "mark", "latest", "identity" or "history", see leave_out.c
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_SYNC_LEAVE_OUT_H
#define MONGO_SYNC_LEAVE_OUT_H

extern int	moment_batch(void);

#define SYNC_BATCH	moment_batch()

#endif							/* MONGO_SYNC_LEAVE_OUT_H */
