/*-------------------------------------------------------------------------
 *
 * inject_fault.h
 *		Points at which a test lets something fail.
 *
 * They vanish unless compiled with -DMONGO_FDW_INJECT_FAULTS.  A superuser's
 * SET mongo_fdw.fail_KIND = n then makes the n-th thing of that kind fail, once,
 * counted from there on; what has failed is written to the server's log.  SHOW
 * tells how many are left to count, 0 when it has failed.
 * SHOW mongo_fdw.live_allocations tells how many chunks of memory libbson and
 * libmongoc have.  See t/faults.py.
 *
 * Included at the end of compat.h, and thereby everywhere.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_INJECT_FAULT_H
#define MONGO_FDW_INJECT_FAULT_H

/* The kinds of faults; the names of their settings are in inject_fault.c. */
typedef enum MongoFault
{
	MONGO_FAULT_ALLOCATION,		/* no memory for libbson or libmongoc */
	MONGO_FAULT_PALLOC,			/* nor for palloc(), where our frames are
								 * below */
	MONGO_FAULT_SEND,			/* a connection is not made, or lost before a
								 * send */
	MONGO_FAULT_RECEIVE,		/* a connection is lost with what has just
								 * come */
	MONGO_FAULT_INTERRUPT,		/* a cancel has come when interrupts are
								 * looked for */
	MONGO_FAULT_TERMINATION		/* the order to end the session has */
} MongoFault;

#ifdef MONGO_FDW_INJECT_FAULTS

#include "miscadmin.h"

/*
 * mongo_fault_is_due
 *		Count one of these; true when it is the one that is to fail.
 */
extern bool mongo_fault_is_due(MongoFault fault);

/*
 * mongo_break_socket
 *		The connection is lost, for the peer too; -1 with errno set.
 */
extern int	mongo_break_socket(int socket);

/*
 * mongo_inject_interrupt
 *		Count a look for interrupts; sets what a signal's handler would when due.
 */
extern void mongo_inject_interrupt(void);

/*
 * mongo_count_allocations
 *		The same allocator, which counts as well.
 */
extern const bson_mem_vtable_t *mongo_count_allocations(const bson_mem_vtable_t *allocator);

extern void mongo_define_faults(void);

#undef CHECK_FOR_INTERRUPTS
#define CHECK_FOR_INTERRUPTS() \
	do { \
		mongo_inject_interrupt(); \
		if (INTERRUPTS_PENDING_CONDITION()) \
			ProcessInterrupts(); \
	} while (0)
#else

#define mongo_fault_is_due(fault) false
#define mongo_break_socket(socket) (-1)
#define mongo_inject_interrupt() ((void) 0)
#define mongo_count_allocations(allocator) (allocator)
#define mongo_define_faults() ((void) 0)
#endif							/* MONGO_FDW_INJECT_FAULTS */

#endif							/* MONGO_FDW_INJECT_FAULT_H */
