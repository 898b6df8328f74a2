/*-------------------------------------------------------------------------
 *
 * delay.c
 *		A network between client and server: bytes arrive some time after they
 *		were sent.
 *
 * delay HOST PORT MICROSECONDS BYTES_A_SECOND
 *		forwards connections to HOST:PORT; what comes from either side is
 *		passed on so many microseconds after its last byte has gone into the
 *		link.  All connections share the link, which takes so many bytes a
 *		second each way; 0: any number.
 *
 * Prints the port that it listens on.  Asked by a line on its standard input, it
 * prints how many bytes have come from clients and from the server so far.  It
 * ends with its standard input.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST_CONNECTIONS	256
#define CHUNK				(256 * 1024)
#define CHUNK_OF_LINK		(16 * 1024) /* smaller, since a chunk arrives as a whole */
#define MOST_IN_FLIGHT		64	/* chunks one way */

typedef struct Chunk
{
	struct Chunk *next;
	long long	due;			/* nanoseconds */
	size_t		length;
	size_t		sent;
	char		data[];
} Chunk;

/* One way of a connection. */
typedef struct Way
{
	int			from;
	int			to;
	int			in_flight;
	int			ended;			/* nothing comes any more */
	int			full;			/* 'to' takes nothing now */
	Chunk	   *first;
	Chunk	   *last;
} Way;

/* One way of the link, for all connections. */
typedef struct Link
{
	long long	free;			/* when it has taken all that was sent so far */
	long long	bytes;
} Link;

static Way	ways[2 * MOST_CONNECTIONS]; /* to the server and from it by turns */
static int	way_count;
static Link links[2];
static long long delay;			/* nanoseconds */
static long long rate;			/* bytes a second; 0: any number */

static void
fail(const char *what)
{
	perror(what);
	exit(1);
}

static long long
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void
prepare_socket(int fd)
{
	int			on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void
accept_connection(int listener, const struct sockaddr_in *server)
{
	int			client = accept(listener, NULL, NULL);
	int			other = socket(AF_INET, SOCK_STREAM, 0);

	if (client < 0 || other < 0 || way_count == 2 * MOST_CONNECTIONS)
		fail("accept");
	if (connect(other, (const struct sockaddr *) server, sizeof(*server)) != 0)
		fail("connect");
	prepare_socket(client);
	prepare_socket(other);
	ways[way_count++] = (Way) {.from = client,.to = other};
	ways[way_count++] = (Way) {.from = other,.to = client};
}

static void
receive(Way *way)
{
	Link	   *link = &links[(way - ways) % 2];
	size_t		size = rate > 0 ? CHUNK_OF_LINK : CHUNK;
	Chunk	   *chunk = malloc(sizeof(Chunk) + size);
	ssize_t		got = recv(way->from, chunk->data, size, 0);
	long long	time = now();

	if (got <= 0)
	{
		way->ended = got == 0 || (errno != EAGAIN && errno != EINTR);
		free(chunk);
		return;
	}
	chunk = realloc(chunk, sizeof(Chunk) + got);
	chunk->next = NULL;
	chunk->length = got;
	chunk->sent = 0;
	link->bytes += got;
	link->free = (link->free > time ? link->free : time) + (rate > 0 ? got * 1000000000LL / rate : 0);
	chunk->due = link->free + delay;
	if (way->last != NULL)
		way->last->next = chunk;
	else
		way->first = chunk;
	way->last = chunk;
	way->in_flight++;
}

/* Pass on what is due. */
static void
deliver(Way *way)
{
	way->full = 0;
	while (way->first != NULL && way->first->due <= now())
	{
		Chunk	   *chunk = way->first;
		ssize_t		sent = send(way->to, chunk->data + chunk->sent,
								chunk->length - chunk->sent, MSG_NOSIGNAL);

		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		{
			way->full = 1;
			return;
		}
		if (sent > 0 && (chunk->sent += sent) < chunk->length)
			continue;
		way->first = chunk->next;
		if (way->first == NULL)
			way->last = NULL;
		way->in_flight--;
		free(chunk);
		if (sent <= 0)
			way->ended = 1;
	}
	if (way->ended && way->first == NULL)
		shutdown(way->to, SHUT_WR);
}

/* Forget a connection, both ways of which have ended. */
static void
close_ended(void)
{
	for (int i = 0; i < way_count; i += 2)
	{
		if (!ways[i].ended || !ways[i + 1].ended || ways[i].first != NULL || ways[i + 1].first != NULL)
			continue;
		close(ways[i].from);
		close(ways[i].to);
		way_count -= 2;
		ways[i] = ways[way_count];
		ways[i + 1] = ways[way_count + 1];
		i -= 2;
	}
}

/* Tell what has gone through the link, or end. */
static void
answer(void)
{
	char		line[16];

	if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
		exit(0);
	printf("%lld %lld\n", links[0].bytes, links[1].bytes);
	fflush(stdout);
}

/* Wait for bytes, for room, or until a chunk is due. */
static void
turn(int listener, const struct sockaddr_in *server)
{
	static struct pollfd polled[2 + 4 * MOST_CONNECTIONS];
	int			count = way_count;
	long long	wait = -1;
	struct timespec timeout;

	polled[0] = (struct pollfd) {.fd = STDIN_FILENO,.events = POLLIN};
	polled[1] = (struct pollfd) {.fd = listener,.events = POLLIN};
	for (int i = 0; i < count; i++)
	{
		Way		   *way = &ways[i];
		long long	left = way->first == NULL || way->full ? -1 : way->first->due - now();

		if (way->first != NULL && !way->full)
			wait = wait < 0 || left < wait ? (left < 0 ? 0 : left) : wait;
		polled[2 + 2 * i] = (struct pollfd) {
			.fd = way->ended || way->in_flight == MOST_IN_FLIGHT ? -1 : way->from,.events = POLLIN
		};
		polled[3 + 2 * i] = (struct pollfd) {.fd = way->full ? way->to : -1,.events = POLLOUT};
	}
	timeout = (struct timespec) {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
	if (ppoll(polled, 2 + 2 * count, wait < 0 ? NULL : &timeout, NULL) < 0 && errno != EINTR)
		fail("poll");
	if (polled[0].revents != 0)
		answer();
	for (int i = 0; i < count; i++)
	{
		if (polled[2 + 2 * i].revents != 0)
			receive(&ways[i]);
		if (!ways[i].full || polled[3 + 2 * i].revents != 0)
			deliver(&ways[i]);
	}
	close_ended();
	if (polled[1].revents != 0)
		accept_connection(listener, server);
}

int
main(int argc, char **argv)
{
	struct sockaddr_in server = {.sin_family = AF_INET};
	struct sockaddr_in own = {.sin_family = AF_INET,.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t	length = sizeof(own);
	int			listener = socket(AF_INET, SOCK_STREAM, 0);

	if (argc != 5 || inet_pton(AF_INET, argv[1], &server.sin_addr) != 1)
	{
		fprintf(stderr, "usage: delay HOST PORT MICROSECONDS BYTES_A_SECOND\n");
		return 1;
	}
	server.sin_port = htons(atoi(argv[2]));
	delay = atoll(argv[3]) * 1000;
	rate = atoll(argv[4]);
	/* timers are late by 50 microseconds otherwise */
	prctl(PR_SET_TIMERSLACK, 1);
	if (bind(listener, (struct sockaddr *) &own, sizeof(own)) != 0 || listen(listener, 128) != 0 ||
		getsockname(listener, (struct sockaddr *) &own, &length) != 0)
		fail("listen");
	printf("%d\n", ntohs(own.sin_port));
	fflush(stdout);
	for (;;)
		turn(listener, &server);
}
