/*-------------------------------------------------------------------------
 *
 * driver_memory.h
 *		What becomes of libbson and libmongoc when memory runs out.
 *
 * libbson aborts the process when malloc() fails, and a backend that aborts
 * takes the whole server down.  So the allocator under it is ours
 * (bson_mem_set_vtable), on top of malloc() and free(), as libmongoc has
 * allocated before it can be told.  Where there is no memory it
 *
 * - gives from a reserve what is small, so that cleaning up succeeds;
 * - raises ERROR 53200 where our own code has called libbson;
 * - ends the session by FATAL 53200 where libmongoc's frames are below, as they
 *	 cannot be unwound.  What it was doing is left as it is then: nothing
 *	 enters libmongoc any more (mongo_driver_is_entered).
 * - does neither in mongo_protect(), for what cleans up and for the end of a
 *	 transaction, in which PostgreSQL bears neither ERROR nor FATAL.
 *
 * To end the session is for what nobody foresaw: who is about to hand libmongoc
 * something large asks first whether there is room for it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_DRIVER_MEMORY_H
#define MONGO_FDW_DRIVER_MEMORY_H

#include "compat.h"

/*
 * mongo_install_allocator
 *		To be called before libbson is used for anything; again does no harm.
 */
extern void mongo_install_allocator(void);

/*
 * mongo_driver_is_entered
 *		Are frames of libmongoc on the stack?
 *
 * When a transaction ends or the process exits they are only if the process is
 * exiting from within a call, or mongo_protect() has left one behind: libmongoc
 * must then be left alone, for it may hold its locks.
 */
static inline bool
mongo_driver_is_entered(void)
{
	return mongo_driver_depth > 0;
}

/*
 * mongo_driver_check
 *		Before libmongoc is entered: end the session by FATAL 53200 where
 *		mongo_protect() has left it behind.
 */
extern void mongo_driver_check(void);

/*
 * mongo_memory_is_available
 *		Could 'size' bytes be allocated now?  Never raises.
 */
extern bool mongo_memory_is_available(size_t size);

/*
 * mongo_memory_check
 *		Raise 53200 unless that is so and the reserve is full; refills it.
 *
 * For the beginning of what must not run out of memory later on.  Size 0 asks
 * for the reserve alone.  Does mongo_driver_check(), too.
 */
extern void mongo_memory_check(size_t size);

/*
 * mongo_memory_report
 *		Raise 53200 in the words of palloc().
 */
pg_noreturn extern void mongo_memory_report(size_t size);

/*
 * mongo_protect
 *		Call a function where lack of memory may neither be raised nor end the process
 *		at once; false when libbson or libmongoc had none.
 *
 * What the function was doing is left as it is then.  If that was in libmongoc, the
 * session is about to end, after a WARNING 53200: when the transaction that is being
 * ended has been.  Where libmongoc must not be entered any more, false and nothing is
 * called.  Fills the reserve first, if it can.  Other errors pass through.
 */
extern bool mongo_protect(void (*function) (void *), void *argument);

/*
 * mongo_memory_grown
 *		What libbson and libmongoc allocate to hold so many bytes.
 */
static inline size_t
mongo_memory_grown(size_t size)
{
	return bson_next_power_of_two(size);
}

/*
 * mongo_skip_destructors
 *		Let this process exit without the destructors of libraries, since
 *		something of theirs may be in use.
 */
extern void mongo_skip_destructors(void);

#endif							/* MONGO_FDW_DRIVER_MEMORY_H */
