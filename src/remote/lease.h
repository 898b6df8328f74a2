/*-------------------------------------------------------------------------
 *
 * lease.h
 *		Leases: the exclusive use of a client, pooled per backend and user mapping.
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
#ifndef MONGO_FDW_LEASE_H
#define MONGO_FDW_LEASE_H

#include "compat.h"

#include "client.h"
#include "foreign/foreign.h"

/* See pool.h. */
typedef struct MongoLease MongoLease;

/* What the pool asks of a scan, or of a batch under way (bulk_write.c). */
typedef struct MongoTurns
{
	/*
	 * Receive the answer in flight into memory of the scan's own and call
	 * mongo_lease_put().  May raise.
	 */
	void		(*take_answer) (void *reader);

	/*
	 * It is the scan's turn: ask with MONGO_TURN_LATER.  May raise.  NULL for
	 * what never waits for its turn.
	 */
	void		(*serve) (void *reader);

	/*
	 * The lease ends, with an answer in flight that nobody wants: note the
	 * cursor that it tells of, if it comes soon.  Must not raise.
	 */
	void		(*discard_answer) (void *reader);
} MongoTurns;

/*
 * mongo_lease_create
 *		A lease that holds no client yet, to be ended by mongo_lease_release() or
 *		by its owner's reset.
 */
extern MongoLease *mongo_lease_create(MemoryContext owner, UserMapping *user,
									  const MongoTurns *turns, void *reader);

/*
 * mongo_lease_prefer
 *		Have clients of this read preference, and not of the server's options.
 *
 * For a lease that holds no client yet.
 */
extern void mongo_lease_prefer(MongoLease *lease, mongoc_read_mode_t read_mode);

/*
 * mongo_lease_acquire
 *		Lease an idle client for 'user', or connect a new one.
 *
 * The lease is tied to 'owner': when that context is reset or deleted (at the
 * latest by transaction abort) it is given back by itself.  An idle client is
 * handed out without any traffic.  Raises 08001, 08P01, 28P01, 57014 (cancelled).
 */
extern MongoLease *mongo_lease_acquire(MemoryContext owner, UserMapping *user);

/*
 * mongo_lease_acquire_live
 *		The same for what must not be sent twice: an idle client of which can be
 *		seen that a server has closed a connection of it is replaced.
 *
 * That takes one system call a connection, unless the client was in use a
 * moment ago.
 */
extern MongoLease *mongo_lease_acquire_live(MemoryContext owner, UserMapping *user);

/*
 * mongo_lease_acquire_shared
 *		The same for one whose answer others may have taken while it is in flight.
 */
extern MongoLease *mongo_lease_acquire_shared(MemoryContext owner, UserMapping *user,
											  const MongoTurns *turns, void *reader);

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

/*
 * mongo_lease_deployment
 *		Are there transactions?  Sends nothing.
 */
extern MongoDeployment mongo_lease_deployment(MongoLease *lease);

/*
 * mongo_lease_check_interrupts
 *		After a libmongoc call came back: raise what its wait was broken by, or
 *		08006 where a wait took longer than the option socket_timeout_ms.
 */
extern void mongo_lease_check_interrupts(MongoLease *lease);

/*
 * mongo_lease_count
 *		Count for server and user what no connection counts.
 */
extern void mongo_lease_count(MongoLease *lease, MongoCounter counter, uint64 count);

/*
 * mongo_lease_note_transaction
 *		Until the lease ends, a transaction of MongoDB's is open on its client: one that
 *		libmongoc's next command begins.
 */
extern void mongo_lease_note_transaction(MongoLease *lease);

/*
 * mongo_lease_resume
 *		Let a client that refuses I/O after an interrupt talk again, over a new
 *		connection if need be.
 *
 * Only for ending what it had begun.
 */
extern void mongo_lease_resume(MongoLease *lease);

/*
 * mongo_lease_is_interrupted
 *		Does the client refuse I/O, after an interrupt or an ending given up?
 */
extern bool mongo_lease_is_interrupted(MongoLease *lease);

/*
 * mongo_lease_limit_waits
 *		Let no single wait inside libmongoc take longer; 0: as libmongoc has it.
 */
extern void mongo_lease_limit_waits(MongoLease *lease, int milliseconds);

/*
 * mongo_lease_is_connected
 *		Is there still a connection, as far as is known without asking?
 */
extern bool mongo_lease_is_connected(MongoLease *lease);

/*
 * mongo_lease_begin_ending
 *		From now on a transaction is being committed or aborted.
 *
 * All waits together take 'total_ms' at most.  Interrupts, also where they are
 * held, are not served, but leave 'interrupt_ms' more (0: they change nothing).
 * With 'reply_ms' (0: none) the answer is waited for that long only after the
 * command has left.  When time is up the client is as after an interrupt.
 */
extern void mongo_lease_begin_ending(MongoLease *lease, int total_ms,
									 int interrupt_ms, int reply_ms);

/* What became of it. */
typedef struct MongoEndingResult
{
	int			sent;			/* how often the command has left, or may have */
	bool		heard;			/* the server has said anything meanwhile */
	bool		answered;		/* the command itself was answered */
	bool		time_left;
} MongoEndingResult;

/*
 * mongo_lease_ending
 *		How far it has come.
 */
extern MongoEndingResult mongo_lease_ending(MongoLease *lease);

/*
 * mongo_lease_finish_ending
 *		Waits are as usual again.
 */
extern void mongo_lease_finish_ending(MongoLease *lease);

/*
 * mongo_lease_drop_closed
 *		Close our end of connections that the peer has closed, so that nothing is
 *		sent in vain.
 */
extern void mongo_lease_drop_closed(MongoLease *lease);

/*
 * mongo_lease_note_cursor
 *		Remember the cursor that the server of the lease's client holds open, to
 *		be killed when the lease ends; id 0: there is none any more.
 *
 * Never raises.  False where there is no memory for it: the cursor is closed.
 */
extern bool mongo_lease_note_cursor(MongoLease *lease, int64 cursor_id,
									const char *database,
									const char *collection);

/*
 * mongo_lease_connection
 *		The data plane's view of a lease.
 */
extern MongoConnection *mongo_lease_connection(MongoLease *lease);

/*
 * mongo_lease_renew
 *		Replace the connection under a lease, which has broken, by a new one.
 *
 * Raises as mongo_lease_acquire() does; the lease then holds nothing.
 */
extern void mongo_lease_renew(MongoLease *lease, UserMapping *user);

#endif							/* MONGO_FDW_LEASE_H */
