/*-------------------------------------------------------------------------
 *
 * client_pool.h
 *		Clients to MongoDB, pooled per backend and user mapping.
 *
 * libmongoc does what a driver is for (URI, topology, server selection, TLS,
 * authentication); a client whose server has been selected and authenticated
 * is then leased to one user at a time.  A lease is exclusive: nobody else
 * writes to its socket.  Clients live across statements and transactions
 * until ALTER/DROP SERVER or USER MAPPING retires them, the connection
 * breaks, or keep_connections is off.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_CLIENT_POOL_H
#define MONGO_FDW_CLIENT_POOL_H

#include "compat.h"

#include "foreign/foreign.h"

/* Exclusive use of one pooled client; opaque outside src/remote. */
typedef struct MongoLease MongoLease;

/*
 * mongo_lease_acquire
 *		Lease an idle client for 'user', or connect a new one.
 *
 * The lease is tied to 'owner': when that context is reset or deleted (at the
 * latest by transaction abort) it is given back by itself.  An idle client is
 * handed out without any traffic.  Raises 08001, 28P01, 57014 (cancelled).
 */
extern MongoLease *mongo_lease_acquire(MemoryContext owner, UserMapping *user);

/*
 * mongo_lease_release
 *		Give a lease back to the pool; the pointer is dead afterwards.
 */
extern void mongo_lease_release(MongoLease *lease);

/*
 * mongo_lease_client
 *		libmongoc's client under the lease, for its bulk, session and admin API.
 *
 * Never destroy it.  Calls through it must not be interrupted by ERROR: check
 * mongo_lease_check_interrupts() after each.
 */
extern mongoc_client_t *mongo_lease_client(MongoLease *lease);

/* What libmongoc knows of the servers that a client talks to. */
typedef enum MongoDeployment
{
	MONGO_DEPLOYMENT_UNKNOWN,	/* no longer: it forgets after an error */
	MONGO_DEPLOYMENT_STANDALONE,
	MONGO_DEPLOYMENT_WITH_TRANSACTIONS
} MongoDeployment;

/*
 * mongo_lease_deployment
 *		Are there transactions?  Sends nothing.
 */
extern MongoDeployment mongo_lease_deployment(MongoLease *lease);

/*
 * mongo_lease_check_interrupts
 *		After a libmongoc call came back: raise what its wait was broken by.
 */
extern void mongo_lease_check_interrupts(MongoLease *lease);

/*
 * mongo_lease_resume
 *		Let a client that refuses I/O after an interrupt talk again.
 *
 * Only for ending what it had begun, with interrupts held.
 */
extern void mongo_lease_resume(MongoLease *lease);

/*
 * mongo_lease_limit_waits
 *		Let no single wait inside libmongoc take longer; 0: as libmongoc has it.
 */
extern void mongo_lease_limit_waits(MongoLease *lease, int milliseconds);

/*
 * mongo_run_command
 *		Run one command and return its reply, which lives in 'context'.
 *
 * 'command' must not hold $db or lsid, which are added here.  A reply with
 * {ok: 0} raises as mongo_report_command_error does, under 'context_message';
 * without one (NULL) it is returned like any other.
 * With 'read_only' true the command is retried once on a broken connection.
 */
extern const bson_t *mongo_run_command(MemoryContext context, UserMapping *user,
									   const char *database,
									   const bson_t *command, bool read_only,
									   const char *context_message);

#endif							/* MONGO_FDW_CLIENT_POOL_H */
