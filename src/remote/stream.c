/*-------------------------------------------------------------------------
 *
 * stream.c
 *		The socket: waits, interrupts, bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "remote_internal.h"
#include "common.h"

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
#include "utils/memutils.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

static void mongo_interrupt_serve(void);

/*-------------------------------------------------------------------------
 * The socket under libmongoc: buffered reads, interruptible waits.
 *
 * The functions of the vtable follow mongoc-stream-socket.c in what they
 * return: bytes moved, 0 at end of file (readv with min_bytes 0 only), -1
 * with errno otherwise; timeout 0 does not wait, a negative one has no end.
 *-------------------------------------------------------------------------
 */

#define STREAM_TYPE			0x4d46	/* none of libmongoc's own */
#define STREAM_BUFFER_SIZE	16384

#define SOCKET_EVENT_POSITION	0	/* of the socket in a stream's wait set */

/* The time a wait may last; built once, asked for what is left of it. */
typedef struct Deadline
{
	bool		finite;
	TimestampTz end;
} Deadline;

static Deadline
deadline_after(long timeout_ms)
{
	Deadline	deadline = {.finite = timeout_ms >= 0};

	/* timeout 0 is asked for by each non-blocking call: needs no clock */
	if (timeout_ms > 0)
		deadline.end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												   timeout_ms);
	return deadline;
}

/* Milliseconds left, 0 when over, -1 for no end. */
static long
deadline_left(const Deadline *deadline)
{
	if (!deadline->finite)
		return -1;
	if (deadline->end == 0)
		return 0;
	return TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
										   deadline->end);
}

static long
shorter_wait(long timeout_ms, long limit_ms)
{
	return timeout_ms < 0 || timeout_ms > limit_ms ? limit_ms : timeout_ms;
}

/*
 * limited_wait
 *		What libmongoc asks for, and no longer than the transport allows just now.
 *
 * socketTimeoutMS is ours to observe, so libmongoc's is MONGO_NO_TIMEOUT.
 */
static long
limited_wait(const MongoTransport *transport, long timeout_ms)
{
	if (timeout_ms == MONGO_NO_TIMEOUT)
		timeout_ms = -1;
	if (transport->socket_timeout_ms > 0)
		timeout_ms = shorter_wait(timeout_ms, transport->socket_timeout_ms);
	if (transport->wait_limit_ms > 0)
		timeout_ms = shorter_wait(timeout_ms, transport->wait_limit_ms);
	return timeout_ms;
}

/*
 * note_wait_failure
 *		A read or write of libmongoc's, or our own, gives up after its wait.
 */
static void
note_wait_failure(MongoStream *stream)
{
	MongoTransport *transport = stream->transport;

	stream->last_errno = errno;
	transport->last_failed = true;
	if (errno == ETIMEDOUT && transport->socket_timeout_ms > 0 &&
		transport->wait_limit_ms == 0)
	{
		/* libmongoc's retry would wait as long once more */
		transport->timed_out = transport->interrupted = true;
	}
}

/*
 * note_interrupt
 *		Before waiting, and after the latch was set: must the operation under way
 *		be given up?
 *
 * Runs inside libmongoc's frames, where ProcessInterrupts() must not be
 * called.  May raise: see mongo_interrupt_serve().
 */
static void
note_interrupt(MongoTransport *transport)
{
	MongoEnding *ending = &transport->ending;

	mongo_interrupt_serve();
	if (!mongo_interrupt_is_due(ending->active))
		return;
	if (!ending->active)
		transport->interrupted = true;
	else if (ending->interrupt_ms > 0)
	{
		ending->deadline = Min(ending->deadline,
							   TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
														   ending->interrupt_ms));
		ending->interrupt_ms = 0;	/* once */
	}
}

/*
 * wait_left
 *		How long the next wait may last; notes when the ending's time is up.
 */
static long
wait_left(MongoTransport *transport, const Deadline *deadline)
{
	long		left = deadline_left(deadline);
	long		ending_left;

	if (!transport->ending.active)
		return left;
	ending_left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
												  transport->ending.deadline);
	if (ending_left == 0)
		transport->interrupted = true;
	return left < 0 ? ending_left : Min(left, ending_left);
}

/* Latch and postmaster, in every wait; a standalone backend has none to watch. */
static void
add_process_events(WaitEventSet *set)
{
	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	if (IsUnderPostmaster)
		AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL,
						  NULL);
}

/* The stream's own wait set: socket, latch, postmaster.  May raise. */
static WaitEventSet *
stream_wait_set(MongoStream *stream)
{
	if (stream->wait_set == NULL)
	{
		WaitEventSet *set = mongo_create_wait_event_set(TopMemoryContext, 3);

		PG_TRY();
		{
			AddWaitEventToSet(set, WL_SOCKET_READABLE, stream->socket, NULL,
							  stream);
			add_process_events(set);
		}
		PG_CATCH();
		{
			FreeWaitEventSet(set);
			PG_RE_THROW();
		}
		PG_END_TRY();
		stream->wait_set = set;
	}
	return stream->wait_set;
}

/*
 * keep_wait_error
 *		In PG_CATCH: keep the ERROR for mongo_transport_raise(), and hold interrupts as
 *		they were held before: an ERROR has set the counts to 0.
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
			/* there was no memory for it */
			mongo_transport_note_memory(transport, sizeof(ErrorData));
		}
		PG_END_TRY();
	}
	FlushErrorState();
	MemoryContextSwitchTo(caller_context);
	InterruptHoldoffCount = holdoff;
	QueryCancelHoldoffCount = cancel_holdoff;
}

/* wait_timed: WaitEventSetWait(), whose time is counted.  May raise. */
static int
wait_timed(MongoTransport *transport, WaitEventSet *set, long timeout_ms,
		   WaitEvent *occurred, int noccurred)
{
	instr_time	start;
	instr_time	end;
	int			count;

	INSTR_TIME_SET_CURRENT(start);
	count = WaitEventSetWait(set, timeout_ms, occurred, noccurred, PG_WAIT_EXTENSION);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	mongo_traffic_add(&transport->traffic, MONGO_COUNT_WAIT_US, INSTR_TIME_GET_MICROSEC(end));
	return count;
}

/* may_serve_interrupts: would CHECK_FOR_INTERRUPTS() do what is pending, if anything? */
static bool
may_serve_interrupts(void)
{
	return InterruptPending && INTERRUPTS_CAN_BE_PROCESSED();
}

/*
 * wait_on_stream
 *		mongo_stream_wait(); with MONGO_ANY_INTERRUPT, an interrupt that is pending only
 *		ends this wait (errno EINTR).
 */
static bool
wait_on_stream(MongoStream *stream, uint32 events, long timeout_ms, MongoInterrupts interrupts)
{
	MongoTransport *transport = stream->transport;
	MemoryContext caller_context = CurrentMemoryContext;
	Deadline	deadline = deadline_after(timeout_ms);
	bool		any = interrupts == MONGO_ANY_INTERRUPT;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;
	volatile bool ready = false;
	volatile bool timed_out = false;
	volatile bool woken = false;

	PG_TRY();
	{
		WaitEventSet *set = stream_wait_set(stream);

		ModifyWaitEvent(set, SOCKET_EVENT_POSITION, events, NULL);
		if (any)
			woken = may_serve_interrupts();
		else
			note_interrupt(transport);
		while (!ready && !timed_out && !woken && !transport->interrupted)
		{
			WaitEvent	occurred[2];
			int			count = wait_timed(transport, set, wait_left(transport, &deadline),
										   occurred, lengthof(occurred));

			/* at the ending's deadline, go round once more and see it passed */
			timed_out = (count == 0 && deadline_left(&deadline) == 0);
			for (int i = 0; i < count; i++)
			{
				if ((occurred[i].events & WL_LATCH_SET) == 0)
				{
					ready = true;
					continue;
				}
				ResetLatch(MyLatch);
				if (any)
					woken = may_serve_interrupts();
				else
					note_interrupt(transport);
			}
		}
	}
	PG_CATCH();
	{
		keep_wait_error(transport, caller_context, holdoff, cancel_holdoff);
	}
	PG_END_TRY();

	if (transport->interrupted)
		errno = ECANCELED;
	else if (!ready || woken)
		errno = timed_out ? ETIMEDOUT : EINTR;
	return ready && !woken && !transport->interrupted;
}

bool
mongo_stream_wait(MongoStream *stream, uint32 events, long timeout_ms)
{
	return wait_on_stream(stream, events, timeout_ms, MONGO_DUE_INTERRUPT);
}

bool
mongo_stream_wait_for_reply(MongoStream *stream, MongoInterrupts interrupts)
{
	if (stream->buffer_start < stream->buffer_end)
		return true;
	stream->reply_due = false;
	if (wait_on_stream(stream, WL_SOCKET_READABLE, limited_wait(stream->transport, -1), interrupts))
		return true;
	if (errno == ETIMEDOUT)
		stream->transport->timed_out = true;
	return false;
}

bool
mongo_stream_has_input(MongoStream *stream)
{
	char		byte;
	ssize_t		result;

	if (stream->buffer_start < stream->buffer_end)
		return true;

	do
		result = recv(stream->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	while (result < 0 && errno == EINTR);

	return result >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

/* --- the vtable ------------------------------------------------------- */

/* refuses_io: once interrupted, closing or closed, all calls fail at once. */
static bool
refuses_io(MongoStream *stream)
{
	if (!stream->transport->interrupted && !stream->transport->closing &&
		stream->socket != PGINVALID_SOCKET)
		return false;
	errno = stream->last_errno = ECANCELED;
	return true;
}

/* recv() that has met EINTR; 0 is end of file. */
static ssize_t
receive(MongoStream *stream, void *destination, size_t size)
{
	ssize_t		result;

	do
		result = recv(stream->socket, destination, size, 0);
	while (result < 0 && errno == EINTR);

	if (result > 0)
		mongo_traffic_add(&stream->transport->traffic, MONGO_COUNT_BYTES_RECEIVED, result);
	stream->last_errno = result < 0 ? errno : 0;
	stream->transport->last_failed = result == 0 ||
		(result < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
	return result;
}

/*
 * read_available
 *		What is buffered, else one recv(): into the buffer when little is asked
 *		for, so that length word and message cost one system call.
 *
 * An answer is never there when the question has just been sent, so that is
 * not tried: it would cost one more.
 */
static ssize_t
read_available(MongoStream *stream, char *destination, size_t size, bool may_wait)
{
	size_t		buffered = stream->buffer_end - stream->buffer_start;

	if (buffered == 0)
	{
		ssize_t		received;

		if (stream->reply_due && may_wait)
		{
			stream->reply_due = false;
			errno = stream->last_errno = EAGAIN;
			return -1;
		}
		if (size >= STREAM_BUFFER_SIZE)
			return receive(stream, destination, size);

		received = receive(stream, stream->buffer, STREAM_BUFFER_SIZE);
		if (received <= 0)
			return received;
		stream->buffer_start = 0;
		stream->buffer_end = buffered = received;
	}

	size = Min(size, buffered);
	memcpy(destination, stream->buffer + stream->buffer_start, size);
	stream->buffer_start += size;
	stream->last_errno = 0;
	return size;
}

/* libmongoc's readv(): fill the buffers until min_bytes are there; -1 with errno if not in time. */
static ssize_t
stream_readv(mongoc_stream_t *base, mongoc_iovec_t *iov, size_t iovcnt,
			 size_t min_bytes, int32_t timeout_msec)
{
	MongoStream *stream = (MongoStream *) base;
	Deadline	deadline = deadline_after(limited_wait(stream->transport, timeout_msec));
	ssize_t		total = 0;

	for (size_t i = 0; i < iovcnt; i++)
	{
		size_t		filled = 0;

		while (filled < iov[i].iov_len)
		{
			ssize_t		count;

			if (refuses_io(stream))
				return -1;
			count = read_available(stream, (char *) iov[i].iov_base + filled,
								   iov[i].iov_len - filled, timeout_msec != 0);
			if (count > 0)
			{
				filled += count;
				total += count;
				if ((size_t) total >= min_bytes)
					return total;
				continue;
			}
			if (count == 0)		/* end of file */
			{
				/* libmongoc would call an errno of 0 a timeout */
				errno = ECONNRESET;
				return min_bytes == 0 ? 0 : -1;
			}
			if ((errno != EAGAIN && errno != EWOULDBLOCK) || timeout_msec == 0)
				return -1;
			if (!mongo_stream_wait(stream, WL_SOCKET_READABLE,
								   deadline_left(&deadline)))
			{
				note_wait_failure(stream);
				return -1;
			}
		}
	}
	return total;
}

static ssize_t
stream_writev(mongoc_stream_t *base, mongoc_iovec_t *iov, size_t iovcnt,
			  int32_t timeout_msec)
{
	MongoStream *stream = (MongoStream *) base;
	Deadline	deadline = deadline_after(limited_wait(stream->transport, timeout_msec));
	ssize_t		total = 0;
	size_t		first = 0;
	size_t		offset = 0;		/* of what is unsent in iov[first] */

	while (first < iovcnt)
	{
		struct iovec chunks[16];
		struct msghdr message = {.msg_iov = chunks};
		ssize_t		sent;

		for (size_t i = first; i < iovcnt && message.msg_iovlen < lengthof(chunks); i++)
		{
			size_t		skip = i == first ? offset : 0;

			chunks[message.msg_iovlen].iov_base = (char *) iov[i].iov_base + skip;
			chunks[message.msg_iovlen++].iov_len = iov[i].iov_len - skip;
		}

		if (refuses_io(stream))
			return -1;
		sent = sendmsg(stream->socket, &message, MSG_NOSIGNAL);
		if (sent < 0)
		{
			stream->last_errno = errno;
			if (errno == EINTR)
				continue;
			if (errno != EAGAIN && errno != EWOULDBLOCK)
			{
				stream->transport->last_failed = true;
				return -1;
			}
			if (timeout_msec == 0)
				return total > 0 ? total : -1;
			if (!mongo_stream_wait(stream, WL_SOCKET_WRITEABLE,
								   deadline_left(&deadline)))
			{
				note_wait_failure(stream);
				return -1;
			}
			continue;
		}

		stream->last_errno = 0;
		stream->transport->last_failed = false;
		stream->reply_due = true;
		mongo_traffic_add(&stream->transport->traffic, MONGO_COUNT_BYTES_SENT, sent);
		total += sent;
		while (first < iovcnt && (size_t) sent >= iov[first].iov_len - offset)
		{
			sent -= iov[first++].iov_len - offset;
			offset = 0;
		}
		offset += sent;
	}
	return total;
}

/* Everything is ready, for bad: what libmongoc does next fails and unwinds. */
static ssize_t
poll_failed(mongoc_stream_poll_t *polled, size_t count)
{
	for (size_t i = 0; i < count; i++)
		polled[i].revents = POLLERR | POLLHUP;
	return count;
}

/*
 * poll_without_waiting
 *		Note which of 'polled' have bytes buffered or can only fail.
 */
static ssize_t
poll_without_waiting(mongoc_stream_poll_t *polled, size_t count)
{
	ssize_t		ready = 0;

	for (size_t i = 0; i < count; i++)
	{
		MongoStream *stream = (MongoStream *) polled[i].stream;

		polled[i].revents = 0;
		if (refuses_io(stream))
			polled[i].revents = POLLERR | POLLHUP;
		else if ((polled[i].events & POLLIN) &&
				 (stream->buffer_start < stream->buffer_end ||
				  stream->guarded > 0))
			polled[i].revents = POLLIN;
		if (polled[i].revents != 0)
			ready++;
	}
	return ready;
}

/* Fill a wait set for all of 'polled' and wait on it once.  May raise. */
static ssize_t
poll_once(MongoTransport *transport, size_t count, WaitEventSet *set, WaitEvent *occurred,
		  const Deadline *deadline, bool *timed_out)
{
	ssize_t		ready = 0;
	int			noccurred = WaitEventSetWait(set, wait_left(transport, deadline),
											 occurred, count + 2,
											 PG_WAIT_EXTENSION);

	*timed_out = (noccurred == 0 && deadline_left(deadline) == 0);
	for (int i = 0; i < noccurred; i++)
	{
		mongoc_stream_poll_t *entry = occurred[i].user_data;

		if (occurred[i].events & WL_LATCH_SET)
		{
			ResetLatch(MyLatch);
			note_interrupt(transport);
			continue;
		}
		if (occurred[i].events & WL_SOCKET_READABLE)
			entry->revents |= POLLIN;
		if (occurred[i].events & WL_SOCKET_WRITEABLE)
			entry->revents |= POLLOUT;
		ready++;
	}
	return ready;
}

static uint32
socket_events(int poll_events)
{
	return (poll_events & POLLIN ? WL_SOCKET_READABLE : 0) |
		(poll_events & POLLOUT ? WL_SOCKET_WRITEABLE : 0);
}

/*
 * poll_sockets: wait until one of several sockets is ready; a wait set is made for
 * that.
 */
static ssize_t
poll_sockets(MongoTransport *transport, mongoc_stream_poll_t *polled,
			 size_t count, long timeout_ms)
{
	WaitEventSet *set = mongo_create_wait_event_set(CurrentMemoryContext,
													count + 2);
	Deadline	deadline = deadline_after(timeout_ms);
	WaitEvent  *occurred = NULL;
	bool		timed_out = false;
	volatile ssize_t ready = 0;

	PG_TRY();
	{
		occurred = palloc(sizeof(WaitEvent) * (count + 2));
		for (size_t i = 0; i < count; i++)
		{
			MongoStream *stream = (MongoStream *) polled[i].stream;

			AddWaitEventToSet(set, socket_events(polled[i].events),
							  stream->socket, NULL, &polled[i]);
		}
		add_process_events(set);
		note_interrupt(transport);
		while (ready == 0 && !timed_out && !transport->interrupted)
			ready = poll_once(transport, count, set, occurred,
							  &deadline, &timed_out);
		pfree(occurred);
	}
	PG_FINALLY();
	{
		FreeWaitEventSet(set);
	}
	PG_END_TRY();

	return ready;
}

/* libmongoc's poll(): how many streams are ready; an error of PostgreSQL's is kept for later. */
static ssize_t
stream_poll(mongoc_stream_poll_t *polled, size_t count, int32_t timeout_msec)
{
	MongoTransport *transport = ((MongoStream *) polled[0].stream)->transport;
	MemoryContext caller_context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;
	volatile ssize_t ready;

	ready = poll_without_waiting(polled, count);
	if (ready > 0)
		return ready;

	/* the usual case, a single server, has its wait set ready */
	if (count == 1)
	{
		if (mongo_stream_wait((MongoStream *) polled[0].stream,
							  socket_events(polled[0].events), timeout_msec))
		{
			polled[0].revents = polled[0].events;
			return 1;
		}
		return transport->interrupted ? poll_failed(polled, count) : 0;
	}

	PG_TRY();
	{
		ready = poll_sockets(transport, polled, count, timeout_msec);
	}
	PG_CATCH();
	{
		keep_wait_error(transport, caller_context, holdoff, cancel_holdoff);
	}
	PG_END_TRY();

	return transport->interrupted ? poll_failed(polled, count) : ready;
}

static int
stream_close(mongoc_stream_t *base)
{
	MongoStream *stream = (MongoStream *) base;

	/* the wait set goes first: epoll must not hold a closed socket */
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
	bson_free(stream->buffer);
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
	MongoStream *stream = (MongoStream *) base;
	char		byte;

	if (refuses_io(stream))
		return true;
	if (stream->buffer_start < stream->buffer_end || stream->guarded > 0)
		return false;
	return recv(stream->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
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

MongoStream *
mongo_stream_new(MongoTransport *transport, pgsocket socket, bool external_fd,
				 const char *host_and_port)
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
	stream->external_fd = external_fd;
	stream->buffer = bson_malloc(STREAM_BUFFER_SIZE);
	strlcpy(stream->host_and_port, host_and_port,
			sizeof(stream->host_and_port));
	dlist_push_head(&transport->streams, &stream->node);
	return stream;
}

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
 * What the streams of one libmongoc client share: why they talk no more.
 *-------------------------------------------------------------------------
 */

void
mongo_transport_note_failure(MongoTransport *transport, const char *text)
{
	size_t		used = strlen(transport->failure);

	if (strstr(transport->failure, text) == NULL)
		snprintf(transport->failure + used, sizeof(transport->failure) - used,
				 "%s%s", used > 0 ? "; " : "", text);
}

void
mongo_transport_note_violation(MongoStream *stream, const char *violation)
{
	char		text[200];

	stream->transport->violation = violation;
	snprintf(text, sizeof(text), "%s sent an invalid reply: %s", stream->host_and_port,
			 violation);
	mongo_transport_note_failure(stream->transport, text);
}

void
mongo_transport_close(MongoTransport *transport)
{
	if (transport->data_stream != NULL)
		mongoc_stream_destroy(transport->data_stream->top);
	transport->data_stream = NULL;
}

void
mongo_begin_ending(MongoTransport *transport, int total_ms, int interrupt_ms)
{
	transport->ending = (MongoEnding) {
		.active = true,
		.deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), total_ms),
		.interrupt_ms = interrupt_ms
	};
}

void
mongo_transport_note_memory(MongoTransport *transport, size_t size)
{
	transport->interrupted = true;
	transport->memory_missing = size;
}

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
		return;					/* the caller says what has timed out */
	if (transport->wait_error == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("a connection to MongoDB has been given up"),
				 errdetail("PostgreSQL, or an earlier statement, interrupted what was under way on it.")));
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
 * What is pending for this backend, seen from inside libmongoc's frames.
 *-------------------------------------------------------------------------
 */

/* libpq/libpq.h, which has it, wants GSSAPI's headers, which need not be there. */
extern bool pq_check_connection(void);

static bool
are_held(void)
{
	return InterruptHoldoffCount != 0 || CritSectionCount != 0;
}

/* look_for_client: as ProcessInterrupts() does, which raises when it is lost. */
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
 * mongo_interrupt_serve
 *		Do what others or PostgreSQL wait for and what ends no statement: process
 *		signal barriers, and the look whether the client is still there.
 *
 * Nothing where interrupts are held.  May raise what a barrier raises, so only
 * within PG_TRY.
 */
static void
mongo_interrupt_serve(void)
{
	if (!InterruptPending || are_held())
		return;
	if (ProcSignalBarrierPending)
		ProcessProcSignalBarrier();
	if (CheckClientConnectionPending)
		look_for_client();
}

/*
 * hides_conflict
 *		May something be pending that PostgreSQL does not show: a conflict with
 *		recovery, on a standby since PostgreSQL 16?
 *
 * So it is when nothing that is shown explains why interrupts are pending.
 */
static bool
hides_conflict(void)
{
	return MONGO_RECOVERY_CONFLICT_IS_HIDDEN && RecoveryInProgress() &&
		!QueryCancelPending && !ParallelMessagePending &&
		!LogMemoryContextPending && !IdleStatsUpdateTimeoutPending &&
		!ProcSignalBarrierPending && !CheckClientConnectionPending;
}

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
