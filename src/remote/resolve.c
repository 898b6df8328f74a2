/*-------------------------------------------------------------------------
 *
 * resolve.c
 *		Resolves host names in a separate thread, which can be abandoned.
 *
 * It runs inside libmongoc's frames, so nothing here may raise.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

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

/* For the resolver, which may load any module (nsswitch.conf). */
#define STACK_SIZE		(1024 * 1024)

/* The most threads: abandoned look-ups may still be running. */
#define MOST_RUNNING	8

#define LARGEST_ANSWER	4096

/*
 * One look-up and its result.  Malloc'd.  The backend's thread and the look-up's own it together,
 * and the last of them frees it.
 */
typedef struct Lookup
{
	int			owners;
	void		(*ask) (struct Lookup *lookup);
	char		name[NI_MAXHOST];
	char		port[8];
	int			done_pipe[2];	/* the writing end is closed when the look-up
								 * is done */
	int			code;			/* as getaddrinfo() returns it */
	struct addrinfo *addresses;
} Lookup;

/* The last abandoned look-up: the next one of the same name waits for it. */
static Lookup *abandoned = NULL;

static int	running = 0;		/* threads */

/* Ends one thread's ownership; the last owner frees the look-up. */
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

/* --------------------------- the look-up's thread -------------------------- */

static void
ask_for_host(Lookup *lookup)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};

	lookup->code = getaddrinfo(lookup->name, lookup->port, &hints,
							   &lookup->addresses);
}

/* Looks up the records of one type; sets EAI_AGAIN if the resolver fails. */
static void
ask_for_records(Lookup *lookup, const char *name, int type)
{
	unsigned char answer[LARGEST_ANSWER];

	if (lookup->code == 0 &&
		res_query(name, ns_c_in, type, answer, sizeof(answer)) < 0 &&
		h_errno == TRY_AGAIN)
		lookup->code = EAI_AGAIN;
}

/*
 * Looks up the SRV records of the service's name, "_mongodb._tcp.HOST", and the TXT records of
 * the host.
 */
static void
ask_for_service(Lookup *lookup)
{
	ask_for_records(lookup, lookup->name, ns_t_srv);
	ask_for_records(lookup, strstr(lookup->name, "._tcp.") + strlen("._tcp."),
					ns_t_txt);
}

/* The thread's function; at its end it closes the pipe, which wakes the backend. */
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
 * Starts the look-up's thread, with all signals blocked; returns false if it cannot be started.
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
	/* otherwise malloc() would reserve 64 MB of address space for the thread */
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

/* Starts a look-up; returns NULL on failure, with *error set or memory noted as missing. */
static Lookup *
start_lookup(MongoTransport *transport, void (*ask) (Lookup *),
			 const char *name, const char *port, bson_error_t *error)
{
	Lookup	   *lookup;

	if (__atomic_load_n(&running, __ATOMIC_RELAXED) >= MOST_RUNNING)
	{
		set_error(error, name, "too many earlier look-ups have not ended");
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

/* Waits for the result; on failure returns false, as mongo_stream_wait() does. */
static bool
wait_for(MongoTransport *transport, const Lookup *lookup, long timeout_ms)
{
	MongoStream *stream = mongo_stream_new(transport, lookup->done_pipe[0], lookup->name);
	bool		ready = mongo_stream_wait(stream, POLLIN, Max(timeout_ms, 0));
	int			failure = errno;

	/* the look-up owns the file */
	stream->socket = PGINVALID_SOCKET;
	mongoc_stream_destroy(&stream->vtable);
	errno = failure;
	return ready;
}

/* Returns a look-up with its result; NULL with *error set if it failed. */
static Lookup *
look_up(MongoTransport *transport, void (*ask) (Lookup *), const char *name,
		const char *port, long timeout_ms, bson_error_t *error)
{
	Lookup	   *lookup;

	if (abandoned != NULL && __atomic_load_n(&abandoned->owners, __ATOMIC_ACQUIRE) == 1)
	{
		/* it is done, but its result is out of date */
		release(abandoned);
		abandoned = NULL;
	}
	lookup = abandoned;
	if (lookup != NULL && lookup->ask == ask && strcmp(lookup->name, name) == 0 &&
		strcmp(lookup->port, port) == 0)
		abandoned = NULL;
	else
		lookup = start_lookup(transport, ask, name, port, error);
	if (lookup == NULL)
		return NULL;

	if (!wait_for(transport, lookup, timeout_ms))
	{
		set_error(error, name,
				  errno == ETIMEDOUT ? "the resolver does not answer" :
				  errno == ECANCELED ? "interrupted" : strerror(errno));
		if (abandoned != NULL)
			release(abandoned);
		abandoned = lookup;
		/* exit() must not destroy what the thread uses */
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

/*
 * mongo_resolve_host
 *		Returns the addresses of a host, for stream sockets; the caller calls freeaddrinfo().
 *
 * Returns NULL with *error set on failure, after timeout_ms, and when interrupted or out of
 * memory (mongo_transport_raise()).  Never raises.
 */
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

/*
 * mongo_resolve_service
 *		Looks up the SRV and TXT records that a "mongodb+srv" URI needs, and returns whether the
 *		resolver replies.  Returns true for other URIs.
 *
 * libmongoc's own look-up, which cannot be interrupted, mostly finds them in the resolver's cache
 * afterwards.  Fails as mongo_resolve_host() does; never raises.
 */
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
