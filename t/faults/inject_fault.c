/*-------------------------------------------------------------------------
 *
 * inject_fault.c
 *		Makes the n-th operation of a kind fail.
 *
 * Not part of the extension: only built with FAULTS=1, see t/faults/faults.py.  The settings
 * are defined when the library is loaded.
 *
 *-------------------------------------------------------------------------
 */
#include "inject_fault.h"

#undef InterruptPending

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"
#include "nodes/memnodes.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#if PG_VERSION_NUM >= 170000
#error "from PostgreSQL 17 on, memory contexts raise 53200 themselves"
#endif

#define DEEPEST_STACK	200

/* The kinds of faults. */
typedef enum Fault
{
	FAULT_ALLOCATION,
	FAULT_PALLOC,
	FAULT_SEND,
	FAULT_RECEIVE,
	FAULT_INTERRUPT,
	FAULT_TERMINATION,
	NFAULTS
} Fault;

static int	left_to_count[NFAULTS];
static bool shows_stack = false;

static const struct
{
	const char *setting;
	const char *description;
}			faults[] =
{
	[FAULT_ALLOCATION] = {"mongo_fdw.fail_allocation",
	"Makes the n-th allocation of libbson and libmongoc from now on fail."},
	[FAULT_PALLOC] = {"mongo_fdw.fail_palloc",
	"Makes PostgreSQL's n-th allocation below a frame of mongo_fdw fail."},
	[FAULT_SEND] = {"mongo_fdw.fail_send",
	"Makes the n-th attempt to connect or send to MongoDB fail."},
	[FAULT_RECEIVE] = {"mongo_fdw.fail_receive",
	"Makes the connection of the n-th receive from MongoDB fail."},
	[FAULT_INTERRUPT] = {"mongo_fdw.fail_interrupt",
	"Makes a cancel arrive at the n-th check for interrupts."},
	[FAULT_TERMINATION] = {"mongo_fdw.fail_termination",
	"Makes a termination arrive at the n-th check for interrupts."},
};

/* Writes to the server's log without allocating memory of PostgreSQL. */
static void
log_fault(Fault fault)
{
	void	   *frames[DEEPEST_STACK];

	dprintf(STDERR_FILENO, "injected fault: %s, process %d\n", faults[fault].setting, MyProcPid);
	if (shows_stack)
		backtrace_symbols_fd(frames, backtrace(frames, lengthof(frames)), STDERR_FILENO);
}

/* Panics if libmongoc was entered without being counted. */
static void
check_driver_is_entered(void)
{
	void	   *frames[DEEPEST_STACK];
	int			nframes = backtrace(frames, lengthof(frames));

	for (int i = 0; i < nframes; i++)
	{
		Dl_info		info;

		if (dladdr(frames[i], &info) && strstr(info.dli_fname, "libmongoc") != NULL &&
			!mongo_driver_is_entered())
			elog(PANIC, "libmongoc was entered without driver_calls.h");
	}
}

/* Counts one operation; true if it is the one that must fail. */
static bool
is_due(Fault fault)
{
	if (left_to_count[fault] == 0 || --left_to_count[fault] > 0)
		return false;
	log_fault(fault);
	if (fault == FAULT_ALLOCATION)
		check_driver_is_entered();
	return true;
}

/*
 * The linker's replacement for each function that the Makefile wraps: callers call
 * __wrap_NAME(), and __real_NAME() is the function itself.
 */
#define wrap(type, name, ...) \
extern type __real_##name(__VA_ARGS__); \
extern type __wrap_##name(__VA_ARGS__)

wrap(int, connect, int socket, const struct sockaddr *address, socklen_t length);
wrap(ssize_t, sendmsg, int socket, const struct msghdr *message, int flags);
wrap(ssize_t, recvmsg, int socket, struct msghdr *message, int flags);
wrap(int, WaitEventSetWait, WaitEventSet *set, long timeout, WaitEvent *occurred,
	 int noccurred, uint32 wait_event_info);
wrap(void, bson_mem_set_vtable, const bson_mem_vtable_t *allocator);

/* ------------------------------ the network ---------------------------------- */

static bool
breaks(int socket, Fault fault)
{
	if (!is_due(fault))
		return false;
	(void) shutdown(socket, SHUT_RDWR);
	errno = ECONNRESET;
	return true;
}

int
__wrap_connect(int socket, const struct sockaddr *address, socklen_t length)
{
	return breaks(socket, FAULT_SEND) ? -1 : __real_connect(socket, address, length);
}

ssize_t
__wrap_sendmsg(int socket, const struct msghdr *message, int flags)
{
	return breaks(socket, FAULT_SEND) ? -1 : __real_sendmsg(socket, message, flags);
}

/* Loses the connection together with the data that has just arrived. */
ssize_t
__wrap_recvmsg(int socket, struct msghdr *message, int flags)
{
	ssize_t		received = __real_recvmsg(socket, message, flags);

	return received > 0 && breaks(socket, FAULT_RECEIVE) ? -1 : received;
}

/* ------------------------------- interrupts ----------------------------------- */

/* Does what die() and StatementCancelHandler() do in tcop/postgres.c. */
volatile sig_atomic_t *
faulty_interrupt_pending(void)
{
	bool		cancel = is_due(FAULT_INTERRUPT);
	bool		terminate = is_due(FAULT_TERMINATION);

	if (cancel)
		QueryCancelPending = true;
	if (terminate)
		ProcDiePending = true;
	if (cancel || terminate)
	{
		InterruptPending = true;
		SetLatch(MyLatch);
	}
	return &InterruptPending;
}

int
__wrap_WaitEventSetWait(WaitEventSet *set, long timeout, WaitEvent *occurred, int noccurred,
						uint32 wait_event_info)
{
	(void) faulty_interrupt_pending();
	return __real_WaitEventSetWait(set, timeout, occurred, noccurred, wait_event_info);
}

/* ------------------------ libbson's and libmongoc's memory ------------------- */

static const bson_mem_vtable_t *counted;
static int	live_allocations = 0;

/* Returns the size to allocate: more than is ever available if it must fail. */
static size_t
faulty_size(size_t size)
{
	return is_due(FAULT_ALLOCATION) ? SIZE_MAX / 4 : size;
}

/* Counts an allocation; one that failed has raised an error. */
static void *
note_allocated(void *memory)
{
	live_allocations++;
	return memory;
}

static void *
counted_malloc(size_t size)
{
	return note_allocated(counted->malloc(faulty_size(size)));
}

static void *
counted_calloc(size_t count, size_t size)
{
	return note_allocated(counted->calloc(count, faulty_size(size)));
}

static void *
counted_realloc(void *memory, size_t size)
{
	return memory == NULL ? counted_malloc(size) : counted->realloc(memory, faulty_size(size));
}

static void
counted_free(void *memory)
{
	if (memory != NULL)
		live_allocations--;
	counted->free(memory);
}

static void *
counted_aligned_alloc(size_t alignment, size_t size)
{
	return note_allocated(counted->aligned_alloc(alignment, faulty_size(size)));
}

void
__wrap_bson_mem_set_vtable(const bson_mem_vtable_t *allocator)
{
	static const bson_mem_vtable_t counting = {
		.malloc = counted_malloc,
		.calloc = counted_calloc,
		.realloc = counted_realloc,
		.free = counted_free,
		.aligned_alloc = counted_aligned_alloc,
	};

	counted = allocator;
	__real_bson_mem_set_vtable(&counting);
}

static const char *
show_live_allocations(void)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d", live_allocations);
	return text;
}

/* ----------------------------- PostgreSQL's memory --------------------------- */

/* The addresses of this library's code. */
static uintptr_t code_start = 0;
static uintptr_t code_end = 0;

static int
find_code(struct dl_phdr_info *info, size_t size pg_attribute_unused(),
		  void *data pg_attribute_unused())
{
	for (int i = 0; i < info->dlpi_phnum; i++)
	{
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t	start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
			(uintptr_t) find_code < start || (uintptr_t) find_code >= start + segment->p_memsz)
			continue;
		code_start = start;
		code_end = start + segment->p_memsz;
		return 1;
	}
	return 0;
}

extern void *__libc_stack_end;

/*
 * we_are_below
 *		Is there a frame of this library on the stack?
 *
 * Searches the stack for a possible return address, because unwinding for each allocation
 * would take too long.  An old address on the stack counts too.
 */
#ifdef __SANITIZE_ADDRESS__
__attribute__((no_sanitize("address")))
#endif
static bool
we_are_below(void)
{
	/* skip the frames of this file */
	uintptr_t  *word = (uintptr_t *) __builtin_frame_address(0) + 64;

	for (; word < (uintptr_t *) __libc_stack_end; word++)
	{
		if (*word >= code_start && *word < code_end)
			return true;
	}
	return false;
}

/* Size of LockAcquireExtended()'s first allocation for a lock, in lock.c. */
#define FIRST_LOCK_OWNERS	8

/*
 * ends_postgresql_session
 *		Is it an allocation whose failure PostgreSQL does not survive?
 *
 * LockAcquireExtended() has already entered a LOCALLOCK, whose owners it is going to allocate.
 * If that fails, the entry remains without owners until the end of the transaction.  After a
 * subtransaction that caught the error, GrantLockLocal() writes to the owners for the next
 * lock of the same kind (PostgreSQL 15).
 *
 * pgstat_get_entry_ref() has already entered a key, whose value it is going to allocate.  If
 * that fails, the session's end finds a key without a value, and an assertion fails.
 */
static bool
ends_postgresql_session(MemoryContext context, Size size)
{
	void	   *frames[8];
	int			nframes;

	if (strcmp(context->name, "PgStat Shared Ref") == 0)
		return true;
	if (context != TopMemoryContext || size != FIRST_LOCK_OWNERS * sizeof(LOCALLOCKOWNER))
		return false;
	nframes = backtrace(frames, lengthof(frames));
	for (int i = 0; i < nframes; i++)
	{
		Dl_info		info;

		if (dladdr(frames[i], &info) && info.dli_sname != NULL &&
			strcmp(info.dli_sname, "LockAcquireExtended") == 0)
			return true;
	}
	return false;
}

static void *(*plain_alloc) (MemoryContext context, Size size);
static void *(*plain_realloc) (MemoryContext context, void *chunk, Size size);

static bool
palloc_is_failing(MemoryContext context, Size size)
{
	return left_to_count[FAULT_PALLOC] != 0 && CritSectionCount == 0 &&
		context != ErrorContext && we_are_below() && !ends_postgresql_session(context, size) &&
		is_due(FAULT_PALLOC);
}

/* Returns NULL to make the caller raise 53200. */
static void *
allocate_or_fail(MemoryContext context, Size size)
{
	return palloc_is_failing(context, size) ? NULL : plain_alloc(context, size);
}

static void *
reallocate_or_fail(MemoryContext context, void *chunk, Size size)
{
	return palloc_is_failing(context, size) ? NULL : plain_realloc(context, chunk, size);
}

/* All contexts of a type share one table of methods, which is declared constant. */
static void
watch_palloc(void)
{
	MemoryContextMethods *methods = unconstify(MemoryContextMethods *, TopMemoryContext->methods);
	uintptr_t	page_size = sysconf(_SC_PAGESIZE);
	uintptr_t	start = (uintptr_t) methods & ~(page_size - 1);

	if (methods->alloc == allocate_or_fail)
		return;
	dl_iterate_phdr(find_code, NULL);
	if (mprotect((void *) start, (uintptr_t) (methods + 1) - start, PROT_READ | PROT_WRITE) != 0)
		elog(ERROR, "could not make the methods of memory contexts writable: %m");
	plain_alloc = methods->alloc;
	plain_realloc = methods->realloc;
	methods->alloc = allocate_or_fail;
	methods->realloc = reallocate_or_fail;
}

/* --------------------------------- settings ---------------------------------- */

/* SET runs outside of libmongoc: has an error been thrown through libmongoc? */
static bool
check_depth(int *value pg_attribute_unused(), void **extra pg_attribute_unused(),
			GucSource source pg_attribute_unused())
{
	if (!mongo_driver_is_entered())
		return true;
	GUC_check_errdetail("An error has left frames of libmongoc behind.");
	return false;
}

static void __attribute__((constructor))
define_faults(void)
{
	for (int i = 0; i < (int) lengthof(faults); i++)
		DefineCustomIntVariable(faults[i].setting, faults[i].description,
								"0 makes none fail.", &left_to_count[i], 0, 0, INT_MAX,
								PGC_SUSET, 0, check_depth, NULL, NULL);
	DefineCustomIntVariable("mongo_fdw.live_allocations",
							"Shows how many chunks of memory libbson and libmongoc have.",
							NULL, &live_allocations, 0, INT_MIN, INT_MAX,
							PGC_INTERNAL, 0, NULL, NULL, show_live_allocations);
	DefineCustomBoolVariable("mongo_fdw.fault_stack",
							 "Writes the stack at each fault to the server's log.",
							 NULL, &shows_stack, false, PGC_SUSET, 0, NULL, NULL, NULL);
	watch_palloc();
}
