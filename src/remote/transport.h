/*-------------------------------------------------------------------------
 *
 * transport.h
 *		What the streams of one libmongoc client share: why they talk no more.
 *
 * Once 'interrupted' every operation on each of them fails.  Private to
 * src/remote.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_TRANSPORT_H
#define MONGO_FDW_TRANSPORT_H

#include "compat.h"

#include <sys/socket.h>

#include "datatype/timestamp.h"
#include "lib/ilist.h"
#include "activity.h"
#include "options.h"

struct MongoStream;

/*
 * The commit or abort of a transaction that is under way, or the end of a write
 * that has been given up (remote_cancel.h): its waits are bounded together, and
 * an interrupt, held or not, is not served but shortens them.
 */
typedef struct MongoEnding
{
	bool		active;
	TimestampTz deadline;		/* of all its waits */
	int			interrupt_ms;	/* to go on for after an interrupt was noticed */
	int			reply_ms;		/* to wait after the command has left; 0:
								 * until the deadline */
	int			sent;			/* how often the command has left, or may have */
	bool		heard;			/* the server has said anything since the
								 * start */
	bool		answered;		/* and so to the command */
} MongoEnding;

/*
 * A write that is to be ended in MongoDB when the wait for its reply is given up
 * (remote_cancel.h).
 */
typedef struct MongoRemoteCancel
{
	mongoc_client_session_t *session;	/* libmongoc's, while armed with one;
										 * or NULL */
	const bson_t *lsid;			/* while armed: the session's id */
	bool		asked;			/* since arming: was the wait given up? */

	/* Shall the wait be taken up again?  See take_up_wait(). */
	bool		(*wait) (struct MongoStream *stream);
} MongoRemoteCancel;

/* What all the streams of one libmongoc client share. */
typedef struct MongoTransport
{
	bool		interrupted;	/* a wait was broken by an interrupt, or given
								 * up */
	bool		closing;		/* no more I/O: the client is being destroyed */
	ErrorData  *wait_error;		/* an ERROR that waiting itself raised, or
								 * NULL */
	size_t		memory_missing; /* this much was needed and not there; 0 */
	bool		use_tls;
	mongoc_ssl_opt_t ssl_options;	/* strings owned by whoever filled it in */
	int			connect_timeout_ms;
	MongoTcpOptions tcp;
	bool		out_of_files;	/* one of them for want of a file descriptor */
	char		failure[400];	/* why connections could not be made; "" */
	const char *violation;		/* what was wrong with a reply to libmongoc,
								 * or NULL */
	int			wait_limit_ms;	/* of any wait inside libmongoc; 0: none */
	int			socket_timeout_ms;	/* of any wait for the server; 0: none */
	bool		timed_out;		/* the last wait took longer than that */
	bool		last_failed;	/* the last send or receive: connection lost,
								 * or nothing came in time */
	MongoEnding ending;
	struct sockaddr_storage peer;	/* connect there whatever a host's name */
	socklen_t	peer_length;	/* says; 0: do as the name says */
	MongoRemoteCancel *cancel;	/* while armed, or NULL */
	bool		begins;			/* a command of libmongoc's that begins a
								 * transaction is to come: note its txnNumber */
	int64		transaction_number; /* of that one, if it has left over
									 * data_stream; 0: not known */
	char		last_command[24];	/* the name of libmongoc's, perhaps cut;
									 * "" */
	MongoTraffic traffic;		/* of all connections since the client is
								 * there */
	dlist_head	streams;		/* of MongoStream, the newest first */
	struct MongoStream *data_stream;	/* the data plane's; NULL once
										 * libmongoc has destroyed it */
} MongoTransport;

/*
 * mongo_transport_note_failure
 *		Append to transport->failure, unless it is said there already.
 */
extern void mongo_transport_note_failure(MongoTransport *transport,
										 const char *text);

/*
 * mongo_transport_note_memory
 *		So much memory is needed, and not there: no more I/O, and 53200 when
 *		libmongoc has unwound.
 */
extern void mongo_transport_note_memory(MongoTransport *transport, size_t size);

/*
 * mongo_transport_resume
 *		After an interrupt: let the client talk again, over new connections where
 *		old ones have a reply to come that nobody waits for any more.
 *
 * The data plane loses its stream then.
 */
extern void mongo_transport_resume(MongoTransport *transport);

/*
 * mongo_transport_close_data_stream
 *		What comes over it next would be a reply that nobody waits for.  libmongoc finds
 *		it closed, and makes another.
 */
extern void mongo_transport_close_data_stream(MongoTransport *transport);

/*
 * mongo_transport_drop_closed
 *		Close the streams whose peer has closed; their next use fails.
 */
extern void mongo_transport_drop_closed(MongoTransport *transport);

/*
 * mongo_transport_raise
 *		Raise what broke a wait inside libmongoc; return when nothing did, or the
 *		server has let its time pass (timed_out).
 */
extern void mongo_transport_raise(MongoTransport *transport);

#endif							/* MONGO_FDW_TRANSPORT_H */
