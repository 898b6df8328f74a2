/*-------------------------------------------------------------------------
 *
 * resolve.c
 *		From a host's name to its addresses, by a thread that can be left alone.
 *
 * Called with libmongoc's frames below: nothing here may raise.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"

#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* after netdb.h, and last: they define many short names */
#include <arpa/nameser.h>
#include <resolv.h>

/* Of the resolver's, which may be anybody's module (nsswitch.conf). */
#define STACK_SIZE		(1024 * 1024)

/* Look-ups that were given up, and are under way still. */
#define MOST_RUNNING	8

#define LARGEST_ANSWER	4096

/*
 * One question and its answer.  Malloc'd; the backend's thread and the other one own it
 * together, and the last of them frees it.
 */
typedef struct Lookup
{
	int			owners;
	void		(*ask) (struct Lookup *lookup);
	char		name[NI_MAXHOST];
	char		port[8];
	int			done_pipe[2];	/* closed for writing when done */
	int			code;			/* as getaddrinfo() gives it */
	struct addrinfo *addresses;
} Lookup;

/* The last that was given up: who asks the same again waits for it. */
static Lookup *given_up = NULL;

static int	running = 0;		/* threads */

static void
release(Lookup *lookup)
{
	if (__atomic_sub_fetch(&lookup->owners, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (lookup->addresses != NULL)
		freeaddrinfo(lookup->addresses);
	close(lookup->done_pipe[0]);
	free(lookup);
}

/* ----------------------------- the other thread ---------------------------- */

static void
ask_for_host(Lookup *lookup)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};

	lookup->code = getaddrinfo(lookup->name, lookup->port, &hints,
							   &lookup->addresses);
}

/* Of the service's name, "_mongodb._tcp.HOST", or of the host's. */
static void
ask_for_records(Lookup *lookup, const char *name, int type)
{
	unsigned char answer[LARGEST_ANSWER];

	if (lookup->code == 0 &&
		res_query(name, ns_c_in, type, answer, sizeof(answer)) < 0 &&
		h_errno == TRY_AGAIN)
		lookup->code = EAI_AGAIN;
}

/* ask_for_service: the SRV and TXT records of a mongodb+srv URI. */
static void
ask_for_service(Lookup *lookup)
{
	ask_for_records(lookup, lookup->name, ns_t_srv);
	ask_for_records(lookup, strstr(lookup->name, "._tcp.") + strlen("._tcp."),
					ns_t_txt);
}

/* run_lookup: the thread; its end closes the pipe, which the backend waits for. */
static void *
run_lookup(void *argument)
{
	Lookup	   *lookup = argument;
	int			done_fd = lookup->done_pipe[1];

	lookup->ask(lookup);
	release(lookup);
	__atomic_sub_fetch(&running, 1, __ATOMIC_RELAXED);
	close(done_fd);
	return NULL;
}

/* --------------------------- the backend's thread -------------------------- */

/*
 * start_thread
 *		False when there is none to be had.  No signal is its business.
 */
static bool
start_thread(Lookup *lookup)
{
	pthread_attr_t attributes;
	pthread_t	thread;
	sigset_t	all;
	sigset_t	before;
	bool		started;

#ifdef M_ARENA_MAX
	/* or malloc() would set 64 MB of address space apart for it */
	mallopt(M_ARENA_MAX, 1);
#endif
	if (pthread_attr_init(&attributes) != 0)
		return false;
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	__atomic_add_fetch(&running, 1, __ATOMIC_RELAXED);
	started = pthread_create(&thread, &attributes, run_lookup, lookup) == 0;
	if (!started)
		__atomic_sub_fetch(&running, 1, __ATOMIC_RELAXED);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return started;
}

static void
set_error(bson_error_t *error, const char *name, const char *reason)
{
	bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_NAME_RESOLUTION,
				   "could not resolve host name \"%s\": %s", name, reason);
}

/*
 * start_lookup
 *		NULL with *error set when that cannot be.
 */
static Lookup *
start_lookup(MongoTransport *transport, void (*ask) (Lookup *),
			 const char *name, const char *port, bson_error_t *error)
{
	Lookup	   *lookup;

	if (__atomic_load_n(&running, __ATOMIC_RELAXED) >= MOST_RUNNING)
	{
		set_error(error, name, "the resolver has not answered for others");
		return NULL;
	}
	lookup = calloc(1, sizeof(Lookup));
	if (lookup == NULL)
	{
		mongo_transport_note_memory(transport, sizeof(Lookup));
		return NULL;
	}
	lookup->owners = 2;
	lookup->ask = ask;
	strlcpy(lookup->name, name, sizeof(lookup->name));
	strlcpy(lookup->port, port, sizeof(lookup->port));
	errno = EMFILE;
	if (!mongo_may_open_connection() || pipe2(lookup->done_pipe, O_CLOEXEC) != 0)
	{
		set_error(error, name, strerror(errno));
		free(lookup);
		return NULL;
	}
	if (!start_thread(lookup))
	{
		mongo_transport_note_memory(transport, STACK_SIZE);
		close(lookup->done_pipe[1]);
		lookup->owners = 1;
		release(lookup);
		return NULL;
	}
	return lookup;
}

/* wait_for: true when the answer is there; else transport and errno tell why not. */
static bool
wait_for(MongoTransport *transport, const Lookup *lookup, long timeout_ms)
{
	MongoStream *stream = mongo_stream_new(transport, lookup->done_pipe[0], lookup->name);
	bool		ready = mongo_stream_wait(stream, POLLIN, Max(timeout_ms, 0));
	int			failure = errno;

	/* the file is the look-up's */
	stream->socket = PGINVALID_SOCKET;
	mongoc_stream_destroy(&stream->vtable);
	errno = failure;
	return ready;
}

/*
 * look_up
 *		The lookup with its answer; NULL, *error set, when there is none.
 */
static Lookup *
look_up(MongoTransport *transport, void (*ask) (Lookup *), const char *name,
		const char *port, long timeout_ms, bson_error_t *error)
{
	Lookup	   *lookup;

	if (given_up != NULL && __atomic_load_n(&given_up->owners, __ATOMIC_ACQUIRE) == 1)
	{
		/* done: what it has found is old */
		release(given_up);
		given_up = NULL;
	}
	lookup = given_up;
	if (lookup != NULL && lookup->ask == ask && strcmp(lookup->name, name) == 0 &&
		strcmp(lookup->port, port) == 0)
		given_up = NULL;
	else
		lookup = start_lookup(transport, ask, name, port, error);
	if (lookup == NULL)
		return NULL;

	if (!wait_for(transport, lookup, timeout_ms))
	{
		set_error(error, name,
				  errno == ETIMEDOUT ? "the resolver does not answer" :
				  errno == ECANCELED ? "interrupted" : strerror(errno));
		if (given_up != NULL)
			release(given_up);
		given_up = lookup;
		/* exit() must not pull away what it uses */
		mongo_skip_destructors();
		return NULL;
	}

	if (lookup->code == EAI_MEMORY)
		mongo_transport_note_memory(transport, LARGEST_ANSWER);
	if (lookup->code != 0)
	{
		set_error(error, name, gai_strerror(lookup->code));
		release(lookup);
		return NULL;
	}
	return lookup;
}

struct addrinfo *
mongo_resolve_host(MongoTransport *transport, const char *host, uint16 port,
				   long timeout_ms, bson_error_t *error)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *addresses = NULL;
	char		port_text[8];
	Lookup	   *lookup;

	snprintf(port_text, sizeof(port_text), "%u", (unsigned) port);
	if (getaddrinfo(host, port_text, &hints, &addresses) == 0)
		return addresses;

	lookup = look_up(transport, ask_for_host, host, port_text, timeout_ms, error);
	if (lookup == NULL)
		return NULL;
	addresses = lookup->addresses;
	lookup->addresses = NULL;
	release(lookup);
	return addresses;
}

bool
mongo_resolve_service(MongoTransport *transport, const mongoc_uri_t *uri,
					  long timeout_ms, bson_error_t *error)
{
	const char *host = mongoc_uri_get_srv_hostname(uri);
	char		name[NI_MAXHOST];
	Lookup	   *lookup;

	if (host == NULL)
		return true;
	snprintf(name, sizeof(name), "_%s._tcp.%s",
			 mongoc_uri_get_srv_service_name(uri), host);
	lookup = look_up(transport, ask_for_service, name, "", timeout_ms, error);
	if (lookup == NULL)
		return false;
	release(lookup);
	return true;
}
