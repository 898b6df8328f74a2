/*-------------------------------------------------------------------------
 *
 * inject_fault.h
 *		Points at which a test lets something fail.
 *
 * Included before each source of a build with FAULTS=1 (-include), so that the sources
 * know nothing of it: what they call and look at stands for what may fail.  A superuser's
 * SET mongo_fdw.fail_KIND = n then makes the n-th thing of that kind fail, once,
 * counted from there on; what has failed is written to the server's log.  SHOW tells
 * how many are left to count, 0 when it has failed.  SHOW mongo_fdw.live_allocations
 * tells how many chunks of memory libbson and libmongoc have.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_INJECT_FAULT_H
#define MONGO_FDW_INJECT_FAULT_H

#include "postgres.h"

#include "compat.h"

#include <sys/socket.h>

#include "miscadmin.h"
#include "storage/latch.h"

extern int	faulty_connect(int socket, const struct sockaddr *address, socklen_t length);
extern ssize_t faulty_send(int socket, const void *data, size_t size, int flags);
extern ssize_t faulty_sendmsg(int socket, const struct msghdr *message, int flags);
extern ssize_t faulty_recv(int socket, void *data, size_t size, int flags);
extern volatile sig_atomic_t *faulty_interrupt_pending(void);
extern const bson_mem_vtable_t *faulty_allocator(const bson_mem_vtable_t *allocator);

#define connect(...) faulty_connect(__VA_ARGS__)
#define send(...) faulty_send(__VA_ARGS__)
#define sendmsg(...) faulty_sendmsg(__VA_ARGS__)
#define recv(...) faulty_recv(__VA_ARGS__)
#define bson_mem_set_vtable(allocator) bson_mem_set_vtable(faulty_allocator(allocator))

/* What CHECK_FOR_INTERRUPTS() looks at, too. */
#define InterruptPending (*faulty_interrupt_pending())
#define WaitEventSetWait(...) \
	((void) faulty_interrupt_pending(), WaitEventSetWait(__VA_ARGS__))

#endif							/* MONGO_FDW_INJECT_FAULT_H */
