/*
 * slow_resolver.c
 *		For LD_PRELOAD: a resolver that is slow or fails for some names.
 *
 * A name that begins with "black-hole" fails with "try again" after 20 seconds, a name that
 * begins with "slow" is 127.0.0.1 after one second; other names are resolved as usual.  Names
 * of SRV and TXT records are compared from the host name on.  Each lookup of such a name is
 * written to the file SLOW_RESOLVER_LOG: the name, and whether the process's first thread made
 * it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void
note(const char *name)
{
	const char *path = getenv("SLOW_RESOLVER_LOG");
	FILE	   *file = path ? fopen(path, "a") : NULL;

	if (file == NULL)
		return;
	fprintf(file, "%s %s\n", name, syscall(SYS_gettid) == getpid() ? "first" : "other");
	fclose(file);
}

static int
is_black(const char *name)
{
	if (strncmp(name, "black-hole", 10) != 0)
		return 0;
	sleep(20);
	return 1;
}

int
getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
			struct addrinfo **result)
{
	int			(*real) (const char *, const char *, const struct addrinfo *,
						 struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");

	if (node == NULL || (hints != NULL && (hints->ai_flags & AI_NUMERICHOST)))
		return real(node, service, hints, result);
	note(node);
	if (is_black(node))
		return EAI_AGAIN;
	if (strncmp(node, "slow", 4) == 0)
	{
		sleep(1);
		node = "127.0.0.1";
	}
	return real(node, service, hints, result);
}

/* answer_records: fails, as this resolver has no SRV or TXT records. */
static int
answer_records(const char *name)
{
	const char *host = strstr(name, "._tcp.") ? strstr(name, "._tcp.") + 6 : name;

	note(name);
	h_errno = is_black(host) ? TRY_AGAIN : HOST_NOT_FOUND;
	return -1;
}

#define of_records(function) \
int \
function(const char *name, int class, int type, unsigned char *answer, int size) \
{ \
	(void) class, (void) type, (void) answer, (void) size; \
	return answer_records(name); \
}
#define of_records_with_state(function) \
int \
function(void *state, const char *name, int class, int type, unsigned char *answer, int size) \
{ \
	(void) state, (void) class, (void) type, (void) answer, (void) size; \
	return answer_records(name); \
}

of_records(res_query)
of_records(__res_query)
of_records_with_state(res_nquery)
of_records_with_state(__res_nquery)
of_records_with_state(res_nsearch)
of_records_with_state(__res_nsearch)
