/*-------------------------------------------------------------------------
 *
 * remote_cancel.h
 *		Ending in MongoDB the write that a cancelled statement had begun there.
 *
 * MongoDB interrupts a read when its connection closes; a write runs on to its
 * end.  Inside a MongoDB transaction the abort undoes it.  Outside of one it is
 * sent in a driver session that we know, in place of the implicit one that
 * libmongoc would send with it, so the bytes are the same.  When the wait for
 * its reply is given up, a second, short-lived connection to the same server
 * says killSessions with the id of that session, which every user may do with
 * sessions of their own, and which mongos hands on to the shards:
 * https://www.mongodb.com/docs/manual/reference/command/killSessions/
 * The reply is then waited for a little longer: only it proves that nothing
 * runs on.
 *
 * Private to src/remote.  Nothing here raises.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_REMOTE_CANCEL_H
#define MONGO_FDW_REMOTE_CANCEL_H

#include "compat.h"

#include "client.h"

/*
 * mongo_remote_cancel_arm
 *		What is sent next on the connection has to be ended when it is given up.
 *
 * To be followed, without an ERROR in between, by the one call of libmongoc's
 * that sends it and by mongo_remote_cancel_disarm().  Where the server has no
 * sessions nothing is armed.  It is the session out of libmongoc's pool that the
 * call would take by itself, and sends nothing.
 */
extern void mongo_remote_cancel_arm(MongoConnection *connection);

/*
 * mongo_remote_cancel_arm_with
 *		The same for a message of our own that has this lsid, which must stay until
 *		mongo_remote_cancel_disarm().
 */
extern void mongo_remote_cancel_arm_with(MongoConnection *connection, const bson_t *lsid);

/*
 * mongo_remote_cancel_append
 *		Add the armed session, if any, to the options of a call of libmongoc's.
 */
extern void mongo_remote_cancel_append(MongoConnection *connection,
									   bson_t *options);

/*
 * mongo_remote_cancel_disarm
 *		True when the wait for the reply was given up in between.
 */
extern bool mongo_remote_cancel_disarm(MongoConnection *connection);

/*
 * mongo_append_kill_session
 *		killSessions, which ends what runs in the session, its transaction and its
 *		cursors.
 */
extern void mongo_append_kill_session(bson_t *command, const bson_t *lsid);

/*
 * mongo_remote_cancel_cursors
 *		Close those listed cursors, of RemoteCursor, that are on the server of
 *		'client', over another connection.  They are taken out and freed.
 *
 * For a client with a getMore under way, which MongoDB does not end when its
 * connection closes (seen in 6.0), so it would go on until its batch is full.  Takes
 * 300 ms at most, and less where the server is silent; some milliseconds usually.
 * As the process exits, all calls together take a second at most; what is left then
 * is closed by MongoDB when that getMore has ended.
 */
extern void mongo_remote_cancel_cursors(MongoClient *client, dlist_head *cursors);

#endif							/* MONGO_FDW_REMOTE_CANCEL_H */
