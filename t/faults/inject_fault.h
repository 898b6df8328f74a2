/*-------------------------------------------------------------------------
 *
 * inject_fault.h
 *		Points at which a test lets something fail.
 *
 * Included before each source of a build with FAULTS=1 (-include), so that the sources
 * know nothing of it: where they look whether an interrupt is pending, CHECK_FOR_INTERRUPTS()
 * does, too, a function of ours looks.  Functions that may fail are wrapped by the linker
 * (--wrap, in the Makefile).
 *
 * A superuser's SET mongo_fdw.fail_KIND = n then makes the n-th thing of that kind fail,
 * once, counted from there on; what has failed is written to the server's log.  SHOW tells
 * how many are left to count, 0 when it has failed.  SHOW mongo_fdw.live_allocations
 * tells how many chunks of memory libbson and libmongoc have.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_INJECT_FAULT_H
#define MONGO_FDW_INJECT_FAULT_H

#include "postgres.h"

#include "compat.h"

#include "miscadmin.h"

extern volatile sig_atomic_t *faulty_interrupt_pending(void);

#define InterruptPending (*faulty_interrupt_pending())

#endif							/* MONGO_FDW_INJECT_FAULT_H */
