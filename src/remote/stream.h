/*-------------------------------------------------------------------------
 *
 * stream.h
 *		The socket under libmongoc: buffered reads, interruptible waits.
 *
 * libmongoc lets its user supply the stream at the bottom of a client
 * (mongoc_client_set_stream_initiator).  Ours waits with PostgreSQL's
 * WaitEventSet on socket, latch and postmaster, so that a cancel ends any
 * wait at once.  It never raises: a longjmp must not cross libmongoc's
 * frames.  It fails the read or write instead, notes in the MongoTransport
 * why, and refuses every further operation on that client; the guard makes
 * that a failed command for libmongoc (guard.h), which unwinds, and our code
 * then calls mongo_transport_raise().
 *
 * Everything here is malloc'd, since libmongoc decides when a stream dies.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_STREAM_H
#define MONGO_FDW_STREAM_H

#include "compat.h"

#include "lib/ilist.h"
#include "storage/latch.h"
#include "transport.h"

/* A timeout for libmongoc's functions that is none; see limited_wait(). */
#define MONGO_NO_TIMEOUT	INT32_MAX

/* One socket.  vtable comes first: libmongoc sees only that. */
typedef struct MongoStream
{
	mongoc_stream_t vtable;
	dlist_node	node;			/* in transport->streams */
	MongoTransport *transport;
	mongoc_stream_t *top;		/* what carries messages: this one, or TLS on
								 * it */
	mongoc_stream_t *guard;		/* on top of that (guard.h), or NULL */
	size_t		guarded;		/* bytes that it has ready */
	char		host_and_port[BSON_HOST_NAME_MAX + 32];
	pgsocket	socket;
	bool		external_fd;	/* AcquireExternalFD() was granted */
	int			last_errno;		/* of the last operation; 0 at end of file */
	bool		reply_due;		/* sent, and not waited since: no use to
								 * receive */
	uint64		bytes_sent;
	bool		abandoned;		/* a reply may come that nobody waits for: see
								 * guard.h */
	WaitEventSet *wait_set;		/* made at the first wait */
	char	   *buffer;			/* received and not yet asked for: */
	size_t		buffer_start;
	size_t		buffer_end;
} MongoStream;

/*
 * mongo_stream_new
 *		A stream over 'socket' (non-blocking), which it owns from now on.
 *
 * PGINVALID_SOCKET gives a stream whose every operation fails.
 */
extern MongoStream *mongo_stream_new(MongoTransport *transport,
									 pgsocket socket, bool external_fd,
									 const char *host_and_port);

/*
 * mongo_may_open_connection
 *		Will PostgreSQL account for the descriptors of one more stream?
 *
 * Beside the socket and its wait set one is asked for that stays free: for what
 * waits for several sockets, as an asynchronous Append does.
 */
extern bool mongo_may_open_connection(void);

/*
 * mongo_stream_wait
 *		Wait until the socket has one of 'events' (WL_SOCKET_*), never raising.
 *
 * True when it has.  False on timeout (errno ETIMEDOUT), on an interrupt or an
 * error (errno ECANCELED; transport->interrupted is set).  timeout_ms -1 waits
 * for ever.
 */
extern bool mongo_stream_wait(MongoStream *stream, uint32 events,
							  long timeout_ms);

/*
 * mongo_stream_wait_readable
 *		Wait in a frame of our own, without libmongoc below: may raise.
 *
 * Returns at once when received bytes are buffered.  False after
 * socket_timeout_ms; transport->timed_out is set.
 */
extern bool mongo_stream_wait_readable(MongoStream *stream);

/*
 * mongo_stream_has_input
 *		Without waiting: is something to be read, or has the peer closed?
 */
extern bool mongo_stream_has_input(MongoStream *stream);

#endif							/* MONGO_FDW_STREAM_H */
