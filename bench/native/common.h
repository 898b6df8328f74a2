/*-------------------------------------------------------------------------
 *
 * common.h
 *		What the native comparison programs share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BENCH_NATIVE_COMMON_H
#define BENCH_NATIVE_COMMON_H

#include <mongoc/mongoc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* Seconds since some point in the past. */
static inline double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* What this process has computed so far, in user and system mode. */
static inline double
cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6 +
		usage.ru_stime.tv_sec + usage.ru_stime.tv_usec / 1e6;
}

static inline void
fail(const char *message)
{
	fprintf(stderr, "native program: %s\n", message);
	exit(1);
}

static inline mongoc_client_t *
connect_to(const char *uri)
{
	mongoc_client_t *client = mongoc_client_new(uri);
	bson_t		ping = BSON_INITIALIZER;
	bson_error_t error;

	if (client == NULL)
		fail("malformed URI");
	BSON_APPEND_INT32(&ping, "ping", 1);
	if (!mongoc_client_command_simple(client, "admin", &ping, NULL, NULL, &error))
		fail(error.message);
	bson_destroy(&ping);
	return client;
}

/* Cuts "database.collection" at the dot; returns what follows it. */
static inline char *
split_namespace(char *name)
{
	char	   *dot = strchr(name, '.');

	if (dot == NULL)
		fail("a namespace is DATABASE.COLLECTION");
	*dot = '\0';
	return dot + 1;
}

/* Begin a transaction; the session and options that make a command part of it. */
static inline mongoc_client_session_t *
begin_transaction(mongoc_client_t *client, bson_t *options)
{
	bson_error_t error;
	mongoc_client_session_t *session = mongoc_client_start_session(client, NULL, &error);

	if (session == NULL ||
		!mongoc_client_session_start_transaction(session, NULL, &error) ||
		!mongoc_client_session_append(session, options, &error))
		fail(error.message);
	return session;
}

static inline void
commit_transaction(mongoc_client_session_t *session)
{
	bson_error_t error;

	if (!mongoc_client_session_commit_transaction(session, NULL, &error))
		fail(error.message);
	mongoc_client_session_destroy(session);
}

/* What each of several threads does, with a state of its own. */
typedef struct Workload
{
	void	   *(*begin) (unsigned int seed);	/* connects; gives the state */
	void		(*operate) (void *state);	/* one operation */
	void		(*end) (void *state);	/* frees the state */
	const long *retries;		/* parts of operations that were begun again, once
								 * the threads have ended; NULL: none ever is */
} Workload;

typedef struct WorkloadThread
{
	pthread_t	thread;
	const Workload *workload;
	pthread_barrier_t *start_line;
	unsigned int seed;
	double		limit;
	long		operations;
	double		seconds;		/* spent in operations, connecting excluded */
} WorkloadThread;

static inline void *
run_thread(void *argument)
{
	WorkloadThread *self = argument;
	void	   *state = self->workload->begin(self->seed);
	double		started;

	pthread_barrier_wait(self->start_line);
	started = now();
	do
	{
		self->workload->operate(state);
		self->operations++;
		self->seconds = now() - started;
	} while (self->seconds < self->limit);
	self->workload->end(state);
	return NULL;
}

/*
 * Operate in so many threads, which start together, for so many seconds; print
 * the throughput and the mean latency of an operation in its thread.
 */
static inline void
run_threads(const Workload *workload, int count, double seconds)
{
	WorkloadThread *threads = calloc(count, sizeof(WorkloadThread));
	long		operations = 0;
	double		tps = 0;
	pthread_barrier_t start_line;

	pthread_barrier_init(&start_line, NULL, count);
	for (int i = 0; i < count; i++)
	{
		threads[i] = (WorkloadThread) {
			.workload = workload,.start_line = &start_line,
			.seed = 1 + i,.limit = seconds
		};
		if (pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]) != 0)
			fail("could not start a thread");
	}
	for (int i = 0; i < count; i++)
	{
		pthread_join(threads[i].thread, NULL);
		operations += threads[i].operations;
		tps += threads[i].operations / threads[i].seconds;
	}
	pthread_barrier_destroy(&start_line);
	free(threads);

	printf("{\"transactions\": %ld, ", operations);
	if (workload->retries != NULL)
		printf("\"retries\": %ld, ", *workload->retries);
	printf("\"tps\": %.1f, \"latency_ms\": %.4f}\n", tps, 1000.0 * count / tps);
}

#endif							/* BENCH_NATIVE_COMMON_H */
