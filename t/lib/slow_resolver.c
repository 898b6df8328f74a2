/*
 * slow_resolver.c
 *		For LD_PRELOAD: a resolver that is slow or fails for some names.
 *
 * A name that begins with "black-hole" fails with "try again" after 20 seconds, a name that
 * begins with "slow" is 127.0.0.1 after one second, one that begins with "node" at once; other
 * names are resolved as usual.  Names of SRV and TXT records are compared from the host name on.
 * Each lookup of such a name is written to the file SLOW_RESOLVER_LOG: the name, and whether the
 * process's first thread made it.
 *
 * The only service is "cluster.service.test", as MongoDB Atlas defines one: its SRV record has
 * node.service.test and the port SERVICE_PORT, and its TXT record "authSource=admin".
 */
#define _GNU_SOURCE
#include <arpa/nameser.h>
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
	else if (strncmp(node, "node", 4) == 0)
		node = "127.0.0.1";
	return real(node, service, hints, result);
}

/* put_number: appends a number of 16 bits. */
static unsigned char *
put_number(unsigned char *end, int number)
{
	*end++ = number >> 8;
	*end++ = number & 0xff;
	return end;
}

/* put_name: appends a domain name, each label after its length. */
static unsigned char *
put_name(unsigned char *end, const char *name)
{
	while (*name != '\0')
	{
		size_t		length = strcspn(name, ".");

		*end++ = (unsigned char) length;
		memcpy(end, name, length);
		end += length;
		name += length + (name[length] == '.');
	}
	*end++ = 0;
	return end;
}

/*
 * answer_records
 *		Answers with the record of the only service; fails for other names.
 */
static int
answer_records(const char *name, int type, unsigned char *answer, int size)
{
	static const char text[] = "authSource=admin";
	const char *host = strstr(name, "._tcp.") ? strstr(name, "._tcp.") + 6 : name;
	unsigned char *end = answer;
	unsigned char *data;

	note(name);
	if (strcmp(host, "cluster.service.test") != 0 || size < 512)
	{
		h_errno = is_black(host) ? TRY_AGAIN : HOST_NOT_FOUND;
		return -1;
	}
	/* the header: a response, with one question and one answer */
	for (int i = 0; i < 6; i++)
		end = put_number(end, i == 1 ? 0x8180 : i == 2 || i == 3);
	end = put_number(put_number(put_name(end, name), type), ns_c_in);
	end = put_number(put_number(put_name(end, name), type), ns_c_in);
	end = put_number(put_number(end, 0), 60);	/* time to live */
	data = end + 2;
	if (type == ns_t_srv)
		data = put_name(put_number(put_number(put_number(data, 0), 0), atoi(getenv("SERVICE_PORT"))),
						"node.service.test");
	else
	{
		*data++ = sizeof(text) - 1;
		memcpy(data, text, sizeof(text) - 1);
		data += sizeof(text) - 1;
	}
	(void) put_number(end, (int) (data - end - 2));
	return (int) (data - answer);
}

#define of_records(function) \
int \
function(const char *name, int class, int type, unsigned char *answer, int size) \
{ \
	(void) class; \
	return answer_records(name, type, answer, size); \
}
#define of_records_with_state(function) \
int \
function(void *state, const char *name, int class, int type, unsigned char *answer, int size) \
{ \
	(void) state, (void) class; \
	return answer_records(name, type, answer, size); \
}

of_records(res_query)
of_records(__res_query)
of_records_with_state(res_nquery)
of_records_with_state(__res_nquery)
of_records_with_state(res_nsearch)
of_records_with_state(__res_nsearch)
