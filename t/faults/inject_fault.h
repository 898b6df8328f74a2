/*-------------------------------------------------------------------------
 *
 * inject_fault.h
 *		Points at which a test makes something fail.
 *
 * Included before each source of a build with FAULTS=1 (-include), so that the sources do not
 * depend on it.  When they check for interrupts, also in CHECK_FOR_INTERRUPTS(), a function of
 * this library is called.  The linker wraps functions that may fail (--wrap, in the Makefile).
 *
 * A superuser's SET mongo_fdw.fail_KIND = n makes the n-th operation of that kind fail, once,
 * counted from then on; the failure is written to the server's log.  SHOW reports how many are
 * left to count, 0 after the failure.  SHOW mongo_fdw.live_allocations reports the number of
 * chunks of memory that libbson and libmongoc have.
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
