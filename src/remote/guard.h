/*-------------------------------------------------------------------------
 *
 * guard.h
 *		A stream that lets only well-formed replies through to libmongoc.
 *
 * libmongoc trusts the lengths that a server sends: 1.23.1 reads and writes out
 * of bounds, or aborts the process, for some that are wrong.  From 1.25 on it
 * checks those of messages itself (mcd-rpc.c), so that frame.h's checks can go
 * from here with older versions; those of documents it trusts still.  Between it and
 * the connection (TLS and all) stands a guard, which takes in each reply whole,
 * checks it as frame.h and reply_check.h have it, uncompresses it, and then hands
 * it on.  A reply that fails ends the connection with a read error.
 *
 * When an interrupt breaks the wait for a reply, the guard answers in place of
 * the server, that the command was interrupted.  From a read that fails
 * libmongoc would take the server for lost, look for another (sleeping up to
 * half a second, which nothing interrupts) and send retryable commands again.
 * The stream is "abandoned" then: the server's own answer is still to come.
 *
 * It also tells whether the command that ends a transaction has left, and
 * whether it was answered (MongoEnding).
 *
 * And it tells the number of a transaction that libmongoc begins, which is nowhere to
 * be asked for: it stands in the message.
 *
 * What we read outside of transactions goes on below the guard; what we write, and all
 * commands of ours in a transaction, through it (exchange.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_GUARD_H
#define MONGO_FDW_GUARD_H

#include "compat.h"

#include "stream.h"

/*
 * mongo_guard_new
 *		A guard over stream->top, which belongs to it from then on; malloc'd.
 *
 * What is wrong with a reply goes to transport->violation, and with the name
 * of the host to transport->failure.
 */
extern mongoc_stream_t *mongo_guard_new(MongoStream *stream);

#endif							/* MONGO_FDW_GUARD_H */
