/*-------------------------------------------------------------------------
 *
 * resolve.c
 *		From a host's name to its addresses, without waiting for longer than one
 * likes.
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

#include "storage/fd.h"

/* Of the resolver's, which may be anybody's module (nsswitch.conf). */
#define STACK_SIZE		(1024 * 1024)

/* Look-ups of different names that were given up, and are under way still. */
#define MOST_GIVEN_UP	8

#define LARGEST_ANSWER	4096

typedef struct Lookup Lookup;

/*
 * One question and its answer.  Malloc'd, and freed by the backend's thread
 * alone, when 'done'; the other thread may write to it until then.
 */
struct Lookup
{
	dlist_node	node;			/* in given_up, or nowhere */
	void		(*ask) (Lookup *lookup);
	char		name[NI_MAXHOST];
	char		port[8];
	int			done_pipe[2];	/* closed for writing when done */
	bool		done;
	int			code;			/* as getaddrinfo() gives it */
	struct addrinfo *addresses;
};

static dlist_head given_up = DLIST_STATIC_INIT(given_up);

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
	__atomic_store_n(&lookup->done, true, __ATOMIC_RELEASE);
	/* from now on it may be gone */
	close(done_fd);
	return NULL;
}

/* --------------------------- the backend's thread -------------------------- */

static bool
is_done(const Lookup *lookup)
{
	return __atomic_load_n(&lookup->done, __ATOMIC_ACQUIRE);
}

static void
free_lookup(Lookup *lookup)
{
	if (lookup->addresses != NULL)
		freeaddrinfo(lookup->addresses);
	close(lookup->done_pipe[0]);
	ReleaseExternalFD();
	ReleaseExternalFD();
	free(lookup);
}

/*
 * find_given_up
 *		One that was given up, of the same question, and is under way still.
 *
 * Those that are done are freed: what they found is old.
 */
static Lookup *
find_given_up(void (*ask) (Lookup *), const char *name, const char *port, int *count)
{
	Lookup	   *found = NULL;
	dlist_mutable_iter iter;

	*count = 0;
	dlist_foreach_modify(iter, &given_up)
	{
		Lookup	   *lookup = dlist_container(Lookup, node, iter.cur);

		if (is_done(lookup))
		{
			dlist_delete(&lookup->node);
			free_lookup(lookup);
			continue;
		}
		(*count)++;
		if (lookup->ask == ask && strcmp(lookup->name, name) == 0 &&
			strcmp(lookup->port, port) == 0)
			found = lookup;
	}
	if (found != NULL)
		dlist_delete(&found->node);
	return found;
}

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
	started = pthread_create(&thread, &attributes, run_lookup, lookup) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return started;
}

/* Two descriptors that PostgreSQL knows of; false with errno set. */
static bool
open_pipe(int *ends)
{
	if (!AcquireExternalFD())
		return false;
	if (!AcquireExternalFD())
	{
		ReleaseExternalFD();
		return false;
	}
	if (pipe(ends) == 0)
	{
		(void) fcntl(ends[0], F_SETFD, FD_CLOEXEC);
		(void) fcntl(ends[1], F_SETFD, FD_CLOEXEC);
		return true;
	}
	ReleaseExternalFD();
	ReleaseExternalFD();
	return false;
}

/*
 * start_lookup
 *		NULL with *error set when that cannot be.
 */
static Lookup *
start_lookup(MongoTransport *transport, void (*ask) (Lookup *),
			 const char *name, const char *port, bson_error_t *error)
{
	Lookup	   *lookup = calloc(1, sizeof(Lookup));

	if (lookup == NULL)
	{
		mongo_transport_note_memory(transport, sizeof(Lookup));
		return NULL;
	}
	lookup->ask = ask;
	strlcpy(lookup->name, name, sizeof(lookup->name));
	strlcpy(lookup->port, port, sizeof(lookup->port));
	if (!open_pipe(lookup->done_pipe))
	{
		bson_set_error(error, MONGOC_ERROR_STREAM,
					   MONGOC_ERROR_STREAM_NAME_RESOLUTION,
					   "could not resolve host name \"%s\": %s", name,
					   strerror(errno));
		free(lookup);
		return NULL;
	}
	if (!start_thread(lookup))
	{
		mongo_transport_note_memory(transport, STACK_SIZE);
		close(lookup->done_pipe[1]);
		free_lookup(lookup);
		return NULL;
	}
	return lookup;
}

/* wait_for: true when the answer is there; else transport and errno tell why not. */
static bool
wait_for(MongoTransport *transport, const Lookup *lookup, long timeout_ms)
{
	MongoStream *stream;
	int			fd;
	bool		ready;
	int			failure;

	if (!AcquireExternalFD())
		return false;
	fd = fcntl(lookup->done_pipe[0], F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
	{
		failure = errno;
		ReleaseExternalFD();
		errno = failure;
		return false;
	}
	stream = mongo_stream_new(transport, fd, true, lookup->name);
	ready = mongo_stream_wait(stream, POLLIN, Max(timeout_ms, 0));
	failure = errno;
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
	int			count;
	Lookup	   *lookup = find_given_up(ask, name, port, &count);

	if (lookup == NULL && count >= MOST_GIVEN_UP)
	{
		bson_set_error(error, MONGOC_ERROR_STREAM,
					   MONGOC_ERROR_STREAM_NAME_RESOLUTION,
					   "could not resolve host name \"%s\": the resolver has not answered for %d others",
					   name, count);
		return NULL;
	}
	if (lookup == NULL)
		lookup = start_lookup(transport, ask, name, port, error);
	if (lookup == NULL)
		return NULL;

	if (!wait_for(transport, lookup, timeout_ms) || !is_done(lookup))
	{
		bson_set_error(error, MONGOC_ERROR_STREAM,
					   MONGOC_ERROR_STREAM_NAME_RESOLUTION,
					   "could not resolve host name \"%s\": %s", name,
					   errno == ETIMEDOUT ? "the resolver does not answer" :
					   errno == ECANCELED ? "interrupted" : strerror(errno));
		dlist_push_tail(&given_up, &lookup->node);
		/* exit() must not pull away what it uses */
		mongo_skip_destructors();
		return NULL;
	}

	if (lookup->code == EAI_MEMORY)
		mongo_transport_note_memory(transport, LARGEST_ANSWER);
	if (lookup->code != 0)
	{
		bson_set_error(error, MONGOC_ERROR_STREAM,
					   MONGOC_ERROR_STREAM_NAME_RESOLUTION,
					   "could not resolve host name \"%s\": %s", name,
					   gai_strerror(lookup->code));
		free_lookup(lookup);
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
	free_lookup(lookup);
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
	free_lookup(lookup);
	return true;
}
