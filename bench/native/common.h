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
#include <time.h>

/* Seconds since some point in the past. */
static inline double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
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

#endif							/* BENCH_NATIVE_COMMON_H */
