/*-------------------------------------------------------------------------
 *
 * turns.h
 *		How the scans of a user mapping take turns on its few connections.
 *
 * A scan needs a connection for as long as it has asked for something and the
 * answer has not come: MongoDB's cursors belong to the server, not to the
 * connection.  So its lease holds a client only meanwhile.  There is one client
 * of each read preference that tables ask for, and up to async_connections when
 * several have asked for something; beyond
 * that a scan that cannot go on takes the answer that was asked for first off
 * its connection, for its owner, and has the connection then.  A scan that
 * need not go on at once waits until a client is free.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TURNS_H
#define MONGO_FDW_TURNS_H

#include "compat.h"

#include "client.h"
#include "lease.h"

/* How much a scan wants a connection. */
typedef enum MongoTurn
{
	MONGO_TURN_NOW,				/* whatever it takes */
	MONGO_TURN_LATER,			/* if there is one, or there may be one more;
								 * else it is called when there is */
	MONGO_TURN_IF_FREE			/* if there is one that nobody waits for */
} MongoTurn;

/*
 * mongo_lease_take
 *		Hold a client that is connected to the server of the lease's cursor, if it
 *		has one, and has nothing in flight.
 *
 * False, only where 'turn' allows it, when there is none.  Raises as
 * mongo_lease_acquire() does, and 08006 when that server cannot be reached any
 * more.
 */
extern bool mongo_lease_take(MongoLease *lease, UserMapping *user, MongoTurn turn);

/*
 * mongo_lease_note_sent
 *		A request is in flight: others may now have its answer taken.
 */
extern void mongo_lease_note_sent(MongoLease *lease);

/*
 * mongo_lease_note_answered
 *		Its answer has been received.
 */
extern void mongo_lease_note_answered(MongoLease *lease);

/*
 * mongo_lease_put
 *		Give the client back; it is closed unless it is clean.  Never raises.
 */
extern void mongo_lease_put(MongoLease *lease);

/*
 * mongo_lease_serve_others
 *		Let those who wait have the clients that are free.
 */
extern void mongo_lease_serve_others(MongoLease *lease);

/*
 * mongo_lease_holds_client
 *		Does it?  All but the functions above need one.
 */
extern bool mongo_lease_holds_client(const MongoLease *lease);

/*
 * mongo_lease_find_in_flight
 *		Is there a request in flight of the lease's user mapping, read preference
 *		and kind ('turns') whose reader meets the condition?
 */
extern bool mongo_lease_find_in_flight(MongoLease *lease,
									   bool (*condition) (const void *reader, const void *arg),
									   const void *arg);

/*
 * mongo_lease_find_idle
 *		A client that is free and suits the lease, still in its list; NULL when
 *		there is none.  Those that have broken are closed.
 */
extern MongoClient *mongo_lease_find_idle(MongoLease *lease);

/*
 * mongo_lease_connect
 *		Hold a new client; idle ones make room where files are short.
 */
extern void mongo_lease_connect(MongoLease *lease, UserMapping *user);

#endif							/* MONGO_FDW_TURNS_H */
