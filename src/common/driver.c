/*-------------------------------------------------------------------------
 *
 * driver.c
 *		Memory and log of libmongoc and libbson in our process.
 *
 * libbson aborts the process if malloc() fails, and then PostgreSQL restarts all backends.  So
 * bson_mem_set_vtable() installs an allocator of ours.  It calls malloc() and free(), because
 * libmongoc has already allocated memory before.  If malloc() fails, it
 *
 * - takes small allocations from a reserve, so that cleaning up succeeds;
 * - raises ERROR 53200 if our own code has called libbson;
 * - ends the session by FATAL 53200 if libmongoc's frames are on the stack, as they cannot be
 *   unwound.  Their data is left as it is, so nothing may call libmongoc again
 *   (mongo_driver_is_entered());
 * - does neither in mongo_protect(), which is for cleaning up and for the end of a transaction,
 *   where PostgreSQL can handle neither ERROR nor FATAL.
 *
 * Ending the session is the last resort: before a caller passes something large to libmongoc, it
 * calls mongo_memory_check().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common.h"

#include <pthread.h>
#include <unistd.h>

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/ipc.h"

/* ---- Memory of libbson and libmongoc, and what happens when it runs out -- */

/* Takes only address space until it is used. */
#define RESERVE_SIZE		(1024 * 1024)

/* The reserve is for small allocations, not for documents. */
#define LARGEST_RESERVED	(64 * 1024)

int			mongo_driver_depth = 0;

static void *reserve = NULL;

/* Jump target in mongo_protect() if memory runs out. */
static sigjmp_buf *escape = NULL;

/* PostgreSQL's thread, the only one that may raise errors. */
static pthread_t backend_thread;

static int	prepared_pid = 0;	/* process whose exit is watched */
static bool skip_destructors = false;
static int	exit_code = 0;

/* --------------------------------- exit ------------------------------------ */

static void
note_exit_code(int code, Datum arg pg_attribute_unused())
{
	exit_code = code;
}

/*
 * Exit function: skips the destructors of libmongoc and its libraries if a call of libmongoc is
 * in progress, as it may hold locks that they would take.
 *
 * PostgreSQL has finished its own exit callbacks by now.
 */
static void
leave_without_destructors(void)
{
	if (proc_exit_inprogress && (mongo_driver_is_entered() || skip_destructors))
		_exit(exit_code);
}

/* Registers exit callbacks in each process; a fork inherits those of atexit(). */
static void
watch_exit(void)
{
	if (prepared_pid == MyProcPid)
		return;
	on_proc_exit(note_exit_code, (Datum) 0);
	if (prepared_pid == 0 && atexit(leave_without_destructors) != 0)
		elog(ERROR, "could not register an exit function");
	prepared_pid = MyProcPid;
}

/*
 * mongo_skip_destructors
 *		Has the exit skip the destructors of libraries, as their data may be in use.
 */
void
mongo_skip_destructors(void)
{
	watch_exit();
	skip_destructors = true;
}

/* ------------------------------- allocation -------------------------------- */

/*
 * mongo_memory_report
 *		Raises 53200 with the message of palloc().
 */
void
mongo_memory_report(size_t size)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("Failed on request of size %zu for a BSON document.", size)));
}

/* Ends the session by FATAL 53200, as libmongoc cannot continue. */
pg_noreturn static void report_end(size_t size);

static void
report_end(size_t size)
{
	free(reserve);
	reserve = NULL;
	ereport(FATAL,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("Failed on request of size %zu in libmongoc, which cannot continue.",
					   size)));
}

/*
 * mongo_driver_check
 *		Ends the session by FATAL 53200 if mongo_protect() has abandoned a call of libmongoc.  To
 *		be called before libmongoc is.
 */
void
mongo_driver_check(void)
{
	if (mongo_driver_is_entered())
		report_end(0);
}

/*
 * Handles a failed allocation, as the beginning of this file describes.  If it returns NULL,
 * libbson aborts.
 */
static void *
fail(size_t size)
{
	if (!pthread_equal(pthread_self(), backend_thread))
		return NULL;
	if (escape != NULL)
		siglongjmp(*escape, 1);
	if (!mongo_driver_is_entered())
		mongo_memory_report(size);

	report_end(size);
}

/* Frees the reserve; returns whether the failed allocation may be tried again. */
static bool
give_reserve(size_t size)
{
	if (reserve == NULL || size > LARGEST_RESERVED ||
		!pthread_equal(pthread_self(), backend_thread))
		return false;
	free(reserve);
	reserve = NULL;
	return true;
}

/* Returns what realloc() does, which is malloc() for NULL. */
static void *
reallocate(void *memory, size_t size)
{
	void	   *result = realloc(memory, size);

	if (result == NULL && give_reserve(size))
		result = realloc(memory, size);
	return result != NULL ? result : fail(size);
}

static void *
allocate(size_t size)
{
	return reallocate(NULL, size);
}

static void *
allocate_zeroed(size_t count, size_t size)
{
	void	   *result = calloc(count, size);

	if (result == NULL && give_reserve(count * size))
		result = calloc(count, size);
	return result != NULL ? result : fail(count * size);
}

static void *
allocate_aligned(size_t alignment, size_t size)
{
	void	   *result = NULL;

	if (posix_memalign(&result, alignment, size) != 0 &&
		(!give_reserve(size) || posix_memalign(&result, alignment, size) != 0))
		return fail(size);
	return result;
}

/*
 * mongo_install_allocator
 *		Installs our allocator.  To be called before libbson is used; may be called again.
 */
void
mongo_install_allocator(void)
{
	static const bson_mem_vtable_t allocator = {
		.malloc = allocate,
		.calloc = allocate_zeroed,
		.realloc = reallocate,
		.free = free,
		.aligned_alloc = allocate_aligned,
	};

	backend_thread = pthread_self();
	bson_mem_set_vtable(&allocator);
}

/* ---------------------- checking memory in advance ------------------------- */

/* Tells whether 'size' bytes could be allocated now.  Never raises. */
static bool
is_available(size_t size)
{
	/* volatile, as the compiler would otherwise optimize the call away */
	void	   *volatile probe = malloc(Max(size, 1));

	/* nothing was written to it, so it took only address space */
	free(probe);
	return probe != NULL;
}

/* Fills the reserve; returns false if there is not enough memory. */
static bool
fill_reserve(void)
{
	if (reserve == NULL)
		reserve = malloc(RESERVE_SIZE);
	return reserve != NULL;
}

/*
 * mongo_memory_check
 *		Refills the reserve.  Raises 53200 if that fails, or if so many bytes are not available.
 *
 * To be called before work that must not run out of memory.  Includes mongo_driver_check().
 */
void
mongo_memory_check(size_t size)
{
	watch_exit();
	mongo_driver_check();
	if (!fill_reserve())
		mongo_memory_report(RESERVE_SIZE);
	if (!is_available(size))
		mongo_memory_report(size);
}

/* -------------------------------- mongo_protect ---------------------------- */

/*
 * Has the session end soon: frames of libmongoc were abandoned, so it must not be called.
 *
 * PostgreSQL ends the session when it next checks for interrupts.  It does not do that before a
 * transaction that is being ended has ended.
 */
static void
end_session_soon(void)
{
	if (proc_exit_inprogress)
		return;
	InterruptPending = true;
	ProcDiePending = true;
	ereport(WARNING,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory"),
			 errdetail("It ran out in libmongoc, which cannot continue: the session ends.")));
}

/* Calls the function; returns false if memory has run out.  Errors are not caught. */
static bool
call_protected(void (*function) (void *), void *argument)
{
	sigjmp_buf *outer = escape;
	sigjmp_buf	here;
	volatile bool succeeded = false;

	PG_TRY();
	{
		if (sigsetjmp(here, 0) == 0)
		{
			escape = &here;
			function(argument);
			succeeded = true;
		}
	}
	PG_FINALLY();
	{
		escape = outer;
	}
	PG_END_TRY();
	return succeeded;
}

/*
 * mongo_protect
 *		Calls a function in which lack of memory must neither raise an error nor end the process
 *		at once.  Returns false if libbson or libmongoc ran out of memory; the function is then
 *		abandoned.
 *
 * If libmongoc was abandoned, a WARNING 53200 is raised, and the session ends after the
 * transaction that is being ended.  If libmongoc must not be called any more, returns false
 * without calling the function.  Tries to fill the reserve first.  Other errors are not caught.
 */
bool
mongo_protect(void (*function) (void *), void *argument)
{
	MemoryContext context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;

	if (mongo_driver_is_entered())
		return false;
	(void) fill_reserve();
	if (call_protected(function, argument))
		return true;

	MemoryContextSwitchTo(context);
	InterruptHoldoffCount = holdoff;
	if (mongo_driver_is_entered())
		end_session_soon();
	return false;
}

/* --------------------------- Texts for messages ---------------------------- */

/* Bytes of a text that a message shows: MongoDB's errors quote documents of up to 16 MB. */
#define LONGEST_PRINTABLE	10000

/*
 * mongo_printable
 *		Returns a palloc'd copy in the database's encoding, with '?' for what cannot be shown,
 *		cut after 10,000 bytes.  Raises nothing but lack of memory.
 *
 * MongoDB's messages quote documents and may be cut within a character, so they may contain
 * invalid UTF-8 and control characters.
 */
char *
mongo_printable(const char *text)
{
	char	   *copy = strnlen(text, LONGEST_PRINTABLE + 1) <= LONGEST_PRINTABLE ? pstrdup(text) :
		psprintf("%.*s...", LONGEST_PRINTABLE, text);

	for (char *c = copy; *c != '\0';)
	{
		size_t		size = pg_utf_mblen((unsigned char *) c);

		if (strnlen(c, size) < size || !pg_utf8_islegal((unsigned char *) c, size) ||
			(unsigned char) *c < ' ')
		{
			if (*c != '\n' && *c != '\t')
				*c = '?';
			size = 1;
		}
		else if (size > 1 && GetDatabaseEncoding() != PG_UTF8)
		{
			/* a conversion could raise an error, so only ASCII is shown */
			memset(c, '?', size);
		}
		c += size;
	}
	return copy;
}

/* --------------------------- libmongoc's log ------------------------------- */

char		mongo_driver_message[MONGO_DRIVER_MESSAGE_SIZE];
bool		mongo_driver_log_is_held;

/*
 * Logs a line of libmongoc (a mongoc_log_func_t).
 *
 * libmongoc holds a mutex meanwhile, which an ERROR would leave locked.  Interrupts are held off:
 * ereport() would process them, and an error that they raise would be lost here.
 */
static void
log_driver_message(mongoc_log_level_t level, const char *domain,
				   const char *message, void *user_data pg_attribute_unused())
{
	MemoryContext caller_context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;
	volatile int elevel = level <= MONGOC_LOG_LEVEL_WARNING ? LOG :
		level <= MONGOC_LOG_LEVEL_INFO ? DEBUG1 : DEBUG2;

	if (level <= MONGOC_LOG_LEVEL_WARNING)
		strlcpy(mongo_driver_message, message, sizeof(mongo_driver_message));

	/*
	 * Do not log that libmongoc could not abort a transaction that MongoDB
	 * has aborted itself.
	 */
	if (mongo_driver_log_is_held || !message_level_is_interesting(elevel) ||
		strncmp(message, "Error in abortTransaction", 25) == 0)
		return;

	HOLD_INTERRUPTS();
	PG_TRY();
	{
		ereport(elevel,
				(errmsg_internal("libmongoc %s: %s", domain,
								 mongo_printable(message)),
				 errhidestmt(true)));
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller_context);
		FlushErrorState();
	}
	PG_END_TRY();

	/* an ERROR has set them to 0 */
	InterruptHoldoffCount = holdoff;
	QueryCancelHoldoffCount = cancel_holdoff;
}

/*
 * mongo_install_log_handler
 *		Sends libmongoc's log lines to elog.  To be called before libmongoc is used; may be called
 *		again.
 */
void
mongo_install_log_handler(void)
{
	mongoc_log_set_handler(log_driver_message, NULL);
}
