/*-------------------------------------------------------------------------
 *
 * stream.c
 *		Sockets for libmongoc and for us, with waits that interrupts can end.
 *
 * Most of this runs inside libmongoc's frames, so nothing but mongo_transport_raise() may raise.
 * The streams of a connection note in its MongoTransport why they fail; the caller raises that
 * when libmongoc has returned.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "access/parallel.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/fd.h"
#include "storage/proc.h"
#include "storage/procsignal.h"
#include "tcop/tcopprot.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

static void serve_interrupts(void);

/*-------------------------------------------------------------------------
 * The stream under libmongoc: a socket with interruptible waits.
 *
 * The vtable's functions return what those of mongoc-stream-socket.c do: the
 * number of bytes moved, 0 at end of file (only readv with min_bytes 0), or -1
 * with errno set.  A timeout of 0 does not wait; a negative one never ends.
 *-------------------------------------------------------------------------
 */

#define STREAM_TYPE			0x4d46	/* not one of libmongoc's */

/* Returns when a wait of timeout_ms ends; 0, without reading the clock, for no wait. */
static TimestampTz
end_after(long timeout_ms)
{
	if (timeout_ms <= 0)
		return timeout_ms < 0 ? DT_NOEND : 0;
	return TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);
}

/*
 * Returns when a read or a write ends.  The transport's limits may shorten timeout_ms.
 *
 * The streams apply socketTimeoutMS themselves; libmongoc's own is MONGO_NO_TIMEOUT.
 */
static TimestampTz
limited_end(const MongoTransport *transport, long timeout_ms)
{
	if (timeout_ms < 0)
		timeout_ms = MONGO_NO_TIMEOUT;
	if (transport->socket_timeout_ms > 0)
		timeout_ms = Min(timeout_ms, transport->socket_timeout_ms);
	if (transport->wait_limit_ms > 0)
		timeout_ms = Min(timeout_ms, transport->wait_limit_ms);
	return end_after(timeout_ms == MONGO_NO_TIMEOUT ? -1 : timeout_ms);
}

/*
 * Tells, before and after each wait, whether to abandon the current operation.  With
 * MONGO_ANY_INTERRUPT, tells whether CHECK_FOR_INTERRUPTS() would do anything.
 *
 * It runs inside libmongoc's frames, so it must not call ProcessInterrupts().  It may raise what
 * serve_interrupts() raises.
 */
static bool
must_stop(MongoTransport *transport, MongoInterrupts interrupts)
{
	MongoEnding *ending = &transport->ending;

	if (interrupts == MONGO_ANY_INTERRUPT)
		return InterruptPending && INTERRUPTS_CAN_BE_PROCESSED();
	serve_interrupts();
	if (mongo_interrupt_is_due(ending->active))
	{
		if (!ending->active)
			transport->interrupted = true;
		else if (ending->interrupt_ms > 0)
		{
			ending->deadline = Min(ending->deadline, end_after(ending->interrupt_ms));
			ending->interrupt_ms = 0;	/* once */
		}
	}
	return transport->interrupted;
}

/* Returns milliseconds, or -1; sets 'interrupted' after the deadline of an ending. */
static long
time_left(MongoTransport *transport, TimestampTz end)
{
	TimestampTz now;

	if (end == DT_NOEND && !transport->ending.active)
		return -1;
	now = GetCurrentTimestamp();
	if (transport->ending.active)
	{
		transport->interrupted |= now >= transport->ending.deadline;
		end = Min(end, transport->ending.deadline);
	}
	return TimestampDifferenceMilliseconds(now, end);
}

/* Returns a set of sockets, latch and postmaster; caches that of a single stream. */
static WaitEventSet *
find_wait_set(mongoc_stream_poll_t *polled, size_t count)
{
	MongoStream *stream = (MongoStream *) polled[0].stream;
	WaitEventSet *set;

	if (count == 1 && stream->wait_set != NULL)
		return stream->wait_set;
	set = mongo_create_wait_event_set(TopMemoryContext, count + 2);
	PG_TRY();
	{
		for (size_t i = 0; i < count; i++)
			AddWaitEventToSet(set, WL_SOCKET_READABLE,
							  ((MongoStream *) polled[i].stream)->socket, NULL, NULL);
		AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
		/* a standalone backend has no postmaster */
		if (IsUnderPostmaster)
			AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	}
	PG_CATCH();
	{
		FreeWaitEventSet(set);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (count == 1)
		stream->wait_set = set;
	return set;
}

/*
 * Waits for the requested events; sets revents and returns how many streams are ready.
 *
 * Returns 0 with errno set on timeout, and if must_stop() is true.  May raise.
 */
static ssize_t
wait_for_events(MongoTransport *transport, WaitEventSet *set, mongoc_stream_poll_t *polled,
				size_t count, TimestampTz end, MongoInterrupts interrupts)
{
	for (size_t i = 0; i < count; i++)
	{
		ModifyWaitEvent(set, i, (polled[i].events & POLLIN ? WL_SOCKET_READABLE : 0) |
						(polled[i].events & POLLOUT ? WL_SOCKET_WRITEABLE : 0), NULL);
		polled[i].revents = 0;
	}
	while (!must_stop(transport, interrupts))
	{
		WaitEvent	occurred[8];
		ssize_t		ready = 0;
		int			noccurred;
		instr_time	start;
		instr_time	stop;
		long		left = time_left(transport, end);

		INSTR_TIME_SET_CURRENT(start);
		noccurred = WaitEventSetWait(set, left, occurred, lengthof(occurred),
									 mongo_wait_event(transport->data_stream != NULL ?
													  MONGO_WAIT_REPLY : MONGO_WAIT_CONNECT));
		INSTR_TIME_SET_CURRENT(stop);
		INSTR_TIME_SUBTRACT(stop, start);
		mongo_traffic_add(&transport->traffic, MONGO_COUNT_WAIT_US,
						  INSTR_TIME_GET_MICROSEC(stop));
		for (int i = 0; i < noccurred; i++)
		{
			if (occurred[i].events & WL_LATCH_SET)
			{
				ResetLatch(MyLatch);
				continue;
			}
			polled[occurred[i].pos].revents =
				(occurred[i].events & WL_SOCKET_READABLE ? POLLIN : 0) |
				(occurred[i].events & WL_SOCKET_WRITEABLE ? POLLOUT : 0);
			ready++;
		}
		if (transport->interrupted)
			break;
		if (ready > 0 && !must_stop(transport, interrupts))
			return ready;
		if (noccurred == 0 && end != DT_NOEND && GetCurrentTimestamp() >= end)
		{
			errno = ETIMEDOUT;
			return 0;
		}
	}
	errno = transport->interrupted ? ECANCELED : EINTR;
	return 0;
}

/*
 * In PG_CATCH, keeps the ERROR for mongo_transport_raise().
 *
 * Restores the holdoff counts of interrupts, which an ERROR sets to 0.
 */
static void
keep_wait_error(MongoTransport *transport, MemoryContext caller_context, uint32 holdoff,
				uint32 cancel_holdoff)
{
	transport->interrupted = true;
	MemoryContextSwitchTo(TopMemoryContext);
	if (transport->wait_error == NULL)
	{
		PG_TRY();
		{
			transport->wait_error = CopyErrorData();
		}
		PG_CATCH();
		{
			/* the copy needed more memory than there was */
			mongo_transport_note_memory(transport, sizeof(ErrorData));
		}
		PG_END_TRY();
	}
	FlushErrorState();
	MemoryContextSwitchTo(caller_context);
	InterruptHoldoffCount = holdoff;
	QueryCancelHoldoffCount = cancel_holdoff;
}

/* Calls wait_for_events(), but never raises: an ERROR is kept in the transport. */
static ssize_t
wait_on(MongoTransport *transport, mongoc_stream_poll_t *polled, size_t count, TimestampTz end,
		MongoInterrupts interrupts)
{
	MemoryContext caller_context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;
	WaitEventSet *volatile set = NULL;
	volatile ssize_t ready = 0;

	PG_TRY();
	{
		set = find_wait_set(polled, count);
		ready = wait_for_events(transport, set, polled, count, end, interrupts);
	}
	PG_CATCH();
	{
		keep_wait_error(transport, caller_context, holdoff, cancel_holdoff);
		errno = ECANCELED;
	}
	PG_END_TRY();
	if (count > 1 && set != NULL)
	{
		int			saved = errno;

		FreeWaitEventSet(set);
		errno = saved;
	}
	return ready;
}

static bool
wait_on_stream(MongoStream *stream, int events, TimestampTz end, MongoInterrupts interrupts)
{
	mongoc_stream_poll_t polled = {.stream = &stream->vtable,.events = events};

	return wait_on(stream->transport, &polled, 1, end, interrupts) > 0;
}

/*
 * mongo_stream_wait
 *		Waits until the socket has one of 'events' (POLLIN, POLLOUT), without limit if timeout_ms
 *		is -1.
 *
 * Returns false on timeout (errno ETIMEDOUT), and on an interrupt or an error (errno ECANCELED,
 * with transport->interrupted set).  Never raises.
 */
bool
mongo_stream_wait(MongoStream *stream, int events, long timeout_ms)
{
	return wait_on_stream(stream, events, end_after(timeout_ms), MONGO_DUE_INTERRUPT);
}

/*
 * mongo_stream_wait_for_reply
 *		Waits as mongo_stream_wait() does, until something can be read.  After socket_timeout_ms
 *		it sets transport->timed_out.
 *
 * With MONGO_ANY_INTERRUPT an interrupt ends only this wait (errno EINTR).  Never raises.
 */
bool
mongo_stream_wait_for_reply(MongoStream *stream, MongoInterrupts interrupts)
{
	if (wait_on_stream(stream, POLLIN, limited_end(stream->transport, -1), interrupts))
		return true;
	if (errno == ETIMEDOUT)
		stream->transport->timed_out = true;
	return false;
}

/*
 * mongo_stream_has_input
 *		Tells whether there is input to read, or the peer has closed.  Never raises.
 */
bool
mongo_stream_has_input(MongoStream *stream)
{
	char		byte;
	ssize_t		result;

	do
		result = recv(stream->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	while (result < 0 && errno == EINTR);

	return result >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

/* --- the vtable ------------------------------------------------------- */

/* Tells, with errno set, whether the stream is interrupted or closed. */
static bool
refuses_io(MongoStream *stream)
{
	if (!stream->transport->interrupted && stream->socket != PGINVALID_SOCKET)
		return false;
	errno = stream->last_errno = ECANCELED;
	return true;
}

/* Notes that a read or write, libmongoc's or ours, fails because its wait did. */
static void
note_wait_failure(MongoStream *stream)
{
	MongoTransport *transport = stream->transport;

	stream->last_errno = errno;
	transport->last_failed = true;
	if (errno == ETIMEDOUT && transport->socket_timeout_ms > 0 &&
		transport->wait_limit_ms == 0)
	{
		/* so that libmongoc does not retry, and wait as long again */
		transport->timed_out = transport->interrupted = true;
	}
}

/*
 * mongo_set_connect_error
 *		Describes a failed connection attempt by errno and address.
 */
void
mongo_set_connect_error(bson_error_t *error, const char *host_and_port, int code)
{
	bson_set_error(error, MONGOC_ERROR_STREAM, MONGOC_ERROR_STREAM_CONNECT,
				   "could not connect to %s: %s", host_and_port,
				   code == ECANCELED ? "interrupted" : strerror(code));
}

/*
 * Notes that the first send or receive has ended a connection attempt, and with stream->last_errno
 * why it has failed.
 */
static void
note_connected(MongoStream *stream)
{
	bson_error_t failure = {0};

	stream->is_connecting = false;
	if (stream->last_errno == 0)
		return;
	mongo_set_connect_error(&failure, stream->host_and_port, stream->last_errno);
	mongo_transport_note_failure(stream->transport, failure.message);
}

/*
 * Sends or receives, waiting as needed, until 'wanted' bytes of the buffers are moved.  Returns
 * what a function of the vtable returns.
 */
static ssize_t
transfer(MongoStream *stream, bool sends, mongoc_iovec_t *iov, size_t iovcnt, size_t wanted,
		 int32_t timeout_msec)
{
	MongoTransport *transport = stream->transport;
	TimestampTz end = limited_end(transport, timeout_msec);
	size_t		total = 0;

	while (total < wanted)
	{
		struct iovec chunks[16];
		struct msghdr message = {.msg_iov = chunks};
		size_t		done = total;
		ssize_t		count;

		if (refuses_io(stream))
			return -1;
		for (size_t i = 0; i < iovcnt && message.msg_iovlen < lengthof(chunks); i++)
		{
			size_t		skipped = Min(done, iov[i].iov_len);

			done -= skipped;
			if (skipped == iov[i].iov_len)
				continue;
			chunks[message.msg_iovlen].iov_base = (char *) iov[i].iov_base + skipped;
			chunks[message.msg_iovlen++].iov_len = iov[i].iov_len - skipped;
		}
		do
			count = sends ? sendmsg(stream->socket, &message, MSG_NOSIGNAL) :
				recvmsg(stream->socket, &message, 0);
		while (count < 0 && errno == EINTR);

		stream->last_errno = count < 0 ? errno : 0;
		if (stream->is_connecting && stream->last_errno != EAGAIN)
			note_connected(stream);
		transport->last_failed = count < 0 ? errno != EAGAIN && errno != EWOULDBLOCK :
			count == 0 && !sends;
		if (count > 0)
		{
			mongo_traffic_add(&transport->traffic,
							  sends ? MONGO_COUNT_BYTES_SENT : MONGO_COUNT_BYTES_RECEIVED, count);
			total += count;
			continue;
		}
		if (count == 0)
		{
			/* end of file; libmongoc treats an errno of 0 as a timeout */
			errno = ECONNRESET;
			return -1;
		}
		if (errno != EAGAIN && errno != EWOULDBLOCK)
			return -1;
		if (timeout_msec == 0)
			return total > 0 ? (ssize_t) total : -1;
		if (!wait_on_stream(stream, sends ? POLLOUT : POLLIN, end, MONGO_DUE_INTERRUPT))
		{
			note_wait_failure(stream);
			return -1;
		}
	}
	return total;
}

static ssize_t
stream_readv(mongoc_stream_t *base, mongoc_iovec_t *iov, size_t iovcnt,
			 size_t min_bytes, int32_t timeout_msec)
{
	ssize_t		count = transfer((MongoStream *) base, false, iov, iovcnt, Max(min_bytes, 1),
								 timeout_msec);

	/* end of file is no error if the caller requests no minimum */
	return count < 0 && min_bytes == 0 && errno == ECONNRESET &&
		((MongoStream *) base)->last_errno == 0 ? 0 : count;
}

static ssize_t
stream_writev(mongoc_stream_t *base, mongoc_iovec_t *iov, size_t iovcnt,
			  int32_t timeout_msec)
{
	size_t		size = 0;

	for (size_t i = 0; i < iovcnt; i++)
		size += iov[i].iov_len;
	return transfer((MongoStream *) base, true, iov, iovcnt, size, timeout_msec);
}

/*
 * Returns how many streams are ready; an ERROR of PostgreSQL's is kept for later.
 *
 * If libmongoc's scan of a replica set or cluster is to end, the silent members' streams fail.
 */
static ssize_t
stream_poll(mongoc_stream_poll_t *polled, size_t count, int32_t timeout_msec)
{
	MongoTransport *transport = ((MongoStream *) polled[0].stream)->transport;
	ssize_t		ready = 0;
	bool		is_enough;

	for (size_t i = 0; i < count; i++)
	{
		MongoStream *stream = (MongoStream *) polled[i].stream;

		polled[i].revents = 0;
		if (refuses_io(stream))
			polled[i].revents = POLLERR | POLLHUP;
		else if ((polled[i].events & POLLIN) && stream->guarded > 0)
			polled[i].revents = POLLIN;
		ready += polled[i].revents != 0;
	}
	if (ready == 0)
		ready = wait_on(transport, polled, count,
						Min(end_after(timeout_msec), transport->enough_at), MONGO_DUE_INTERRUPT);
	is_enough = ready == 0 && transport->enough_at != DT_NOEND &&
		GetCurrentTimestamp() >= transport->enough_at;
	if (!transport->interrupted && !is_enough)
		return ready;

	/*
	 * report every stream as failed: libmongoc's next operation fails, and
	 * libmongoc unwinds
	 */
	for (size_t i = 0; i < count; i++)
		polled[i].revents = POLLERR | POLLHUP;
	return count;
}

static int
stream_close(mongoc_stream_t *base)
{
	MongoStream *stream = (MongoStream *) base;

	/* free the wait set first: its epoll must not contain a closed socket */
	if (stream->wait_set != NULL)
		FreeWaitEventSet(stream->wait_set);
	stream->wait_set = NULL;

	if (stream->socket != PGINVALID_SOCKET)
		close(stream->socket);
	stream->socket = PGINVALID_SOCKET;

	if (stream->external_fd)
		ReleaseExternalFD();
	stream->external_fd = false;
	return 0;
}

static void
stream_destroy(mongoc_stream_t *base)
{
	MongoStream *stream = (MongoStream *) base;

	stream_close(base);
	dlist_delete(&stream->node);
	if (stream->transport->data_stream == stream)
		stream->transport->data_stream = NULL;
	bson_free(stream);
}

static int
stream_flush(mongoc_stream_t *base pg_attribute_unused())
{
	return 0;
}

static bool
stream_check_closed(mongoc_stream_t *base)
{
	return refuses_io((MongoStream *) base);
}

static bool
stream_timed_out(mongoc_stream_t *base)
{
	return ((MongoStream *) base)->last_errno == ETIMEDOUT;
}

static bool
stream_should_retry(mongoc_stream_t *base)
{
	int			last_errno = ((MongoStream *) base)->last_errno;

	return last_errno == EAGAIN || last_errno == EWOULDBLOCK;
}

/*
 * mongo_stream_new
 *		Returns a new stream, which then owns the non-blocking socket.  With PGINVALID_SOCKET
 *		every operation fails.
 *
 * It is allocated by libbson; libmongoc, or mongoc_stream_destroy(), frees it.
 */
MongoStream *
mongo_stream_new(MongoTransport *transport, pgsocket socket, const char *host_and_port)
{
	MongoStream *stream = bson_malloc0(sizeof(MongoStream));

	stream->vtable.type = STREAM_TYPE;
	stream->vtable.destroy = stream_destroy;
	stream->vtable.failed = stream_destroy;
	stream->vtable.close = stream_close;
	stream->vtable.flush = stream_flush;
	stream->vtable.readv = stream_readv;
	stream->vtable.writev = stream_writev;
	stream->vtable.check_closed = stream_check_closed;
	stream->vtable.poll = stream_poll;
	stream->vtable.timed_out = stream_timed_out;
	stream->vtable.should_retry = stream_should_retry;

	stream->transport = transport;
	stream->top = &stream->vtable;
	stream->socket = socket;
	strlcpy(stream->host_and_port, host_and_port,
			sizeof(stream->host_and_port));
	dlist_push_head(&transport->streams, &stream->node);
	return stream;
}

/*
 * mongo_may_open_connection
 *		Tells whether PostgreSQL can reserve file descriptors for one more stream.
 *
 * A stream needs two, for the socket and its wait set.  A third must be free for a wait for
 * several sockets, as in an asynchronous Append.
 */
bool
mongo_may_open_connection(void)
{
	const int	wanted = 3;
	int			granted = 0;

	while (granted < wanted && AcquireExternalFD())
		granted++;
	for (int i = 0; i < granted; i++)
		ReleaseExternalFD();
	return granted == wanted;
}

/*-------------------------------------------------------------------------
 * The transport: why its streams have stopped, and how to raise that.
 *-------------------------------------------------------------------------
 */

/*
 * mongo_transport_note_failure
 *		Appends 'text' to transport->failure, unless it is there already.
 */
void
mongo_transport_note_failure(MongoTransport *transport, const char *text)
{
	size_t		used = strlen(transport->failure);

	if (strstr(transport->failure, text) == NULL)
		snprintf(transport->failure + used, sizeof(transport->failure) - used,
				 "%s%s", used > 0 ? "; " : "", text);
}

/*
 * mongo_transport_note_violation
 *		Notes why a reply is invalid: 'violation' is a sentence for DETAIL, and is never freed.
 */
void
mongo_transport_note_violation(MongoStream *stream, const char *violation)
{
	char		text[200];

	stream->transport->violation = violation;
	snprintf(text, sizeof(text), "%s sent an invalid reply: %s", stream->host_and_port,
			 violation);
	mongo_transport_note_failure(stream->transport, text);
}

/*
 * mongo_transport_reset
 *		Forgets why the last attempt to connect has failed.
 */
void
mongo_transport_reset(MongoTransport *transport)
{
	transport->interrupted = transport->timed_out = transport->out_of_files = false;
	transport->memory_missing = 0;
	if (transport->wait_error != NULL)
		FreeErrorData(transport->wait_error);
	transport->wait_error = NULL;
	transport->failure[0] = '\0';
	transport->violation = NULL;
	transport->reply_code = 0;
	transport->enough_at = DT_NOEND;
}

/*
 * mongo_transport_close
 *		Closes the connection, if there is one.
 */
void
mongo_transport_close(MongoTransport *transport)
{
	if (transport->data_stream != NULL)
		mongoc_stream_destroy(transport->data_stream->top);
	transport->data_stream = NULL;
}

/*
 * mongo_transport_shut_down
 *		Closes only our half of the connection.  MongoDB then ends the command as if the client
 *		had disconnected, but its reply still arrives.
 */
void
mongo_transport_shut_down(MongoTransport *transport)
{
	if (transport->data_stream != NULL)
		(void) shutdown(transport->data_stream->socket, SHUT_WR);
}

/*
 * mongo_begin_ending
 *		Sets one limit for all waits until mongo_finish_ending(); see MongoEnding.
 */
void
mongo_begin_ending(MongoTransport *transport, int total_ms, int interrupt_ms)
{
	transport->ending = (MongoEnding) {
		.active = true,
		.deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), total_ms),
		.interrupt_ms = interrupt_ms
	};
}

/*
 * mongo_transport_note_memory
 *		Notes that 'size' bytes could not be allocated.  From then on all I/O fails, and
 *		mongo_transport_raise() raises 53200.
 */
void
mongo_transport_note_memory(MongoTransport *transport, size_t size)
{
	transport->interrupted = true;
	transport->memory_missing = size;
}

/*
 * mongo_transport_raise
 *		Raises the error that broke a wait.  Returns if there is none, or if it was a timeout
 *		(timed_out), which the caller reports.
 *
 * Serves interrupts first.  Raises 53200 if memory is missing, the error that a wait has kept, or
 * 08006 if the connection has been abandoned.
 */
void
mongo_transport_raise(MongoTransport *transport)
{
	size_t		memory_missing = transport->memory_missing;

	if (!transport->interrupted)
		return;

	CHECK_FOR_INTERRUPTS();

	transport->memory_missing = 0;
	if (memory_missing > 0)
		mongo_memory_report(memory_missing);

	if (transport->timed_out)
		return;					/* the caller reports the timeout */
	if (transport->wait_error == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("a connection to MongoDB has been abandoned"),
				 errdetail("PostgreSQL, or an earlier statement, interrupted an operation on it.")));
	else
	{
		ErrorData  *kept = transport->wait_error;
		int			sqlstate = kept->sqlerrcode;
		char	   *message = pstrdup(kept->message);

		transport->wait_error = NULL;
		FreeErrorData(kept);
		ereport(ERROR,
				(errcode(sqlstate), errmsg_internal("%s", message)));
	}
}

/*-------------------------------------------------------------------------
 * Pending interrupts of this backend, handled inside libmongoc's frames.
 *-------------------------------------------------------------------------
 */

/* Declared in libpq/libpq.h, which includes GSSAPI headers that may not be installed. */
extern bool pq_check_connection(void);

/* Tells whether interrupts are held off. */
static bool
are_held(void)
{
	return InterruptHoldoffCount != 0 || CritSectionCount != 0;
}

/* Checks for a lost client as ProcessInterrupts() does, but only sets flags. */
static void
look_for_client(void)
{
	CheckClientConnectionPending = false;
	if (client_connection_check_interval <= 0)
		return;
	if (pq_check_connection())
		enable_timeout_after(CLIENT_CONNECTION_CHECK_TIMEOUT,
							 client_connection_check_interval);
	else
	{
		ClientConnectionLost = true;
		InterruptPending = true;
	}
}

/*
 * Serves the interrupts that end no statement: process signal barriers, and the check whether the
 * client is still connected.
 *
 * Does nothing while interrupts are held.  Call it only within PG_TRY, since a barrier may raise.
 */
static void
serve_interrupts(void)
{
	if (!InterruptPending || are_held())
		return;
	if (ProcSignalBarrierPending)
		ProcessProcSignalBarrier();
	if (CheckClientConnectionPending)
		look_for_client();
}

/*
 * Tells whether a recovery conflict may be pending on a standby.
 *
 * Since PostgreSQL 16 its flag is not exported.  It is assumed to be set when no exported flag
 * explains why an interrupt is pending.
 */
static bool
hides_conflict(void)
{
	return MONGO_RECOVERY_CONFLICT_IS_HIDDEN && RecoveryInProgress() &&
		!QueryCancelPending && !ParallelMessagePending &&
		!LogMemoryContextPending && !IdleStatsUpdateTimeoutPending &&
		!ProcSignalBarrierPending && !CheckClientConnectionPending;
}

/*
 * mongo_interrupt_is_due
 *		Tells whether ProcessInterrupts() would end the statement or the session.  With
 *		'although_held' it also counts interrupts that are held.  Never raises.
 */
bool
mongo_interrupt_is_due(bool although_held)
{
	if (!InterruptPending || (are_held() && !although_held))
		return false;
	return ProcDiePending || ClientConnectionLost ||
		(QueryCancelPending && (QueryCancelHoldoffCount == 0 || although_held)) ||
		(IdleInTransactionSessionTimeoutPending && IdleInTransactionSessionTimeout > 0) ||
		mongo_transaction_timeout_is_pending() ||
		(IdleSessionTimeoutPending && IdleSessionTimeout > 0) ||
		hides_conflict();
}
