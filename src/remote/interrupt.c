/*-------------------------------------------------------------------------
 *
 * interrupt.c
 *		What is pending for this backend, seen from inside libmongoc's frames.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "interrupt.h"

#include "access/parallel.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "storage/procsignal.h"
#include "tcop/tcopprot.h"
#include "utils/timeout.h"

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

void
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
	mongo_inject_interrupt();
	if (!InterruptPending || (are_held() && !although_held))
		return false;
	return ProcDiePending || ClientConnectionLost ||
		(QueryCancelPending && (QueryCancelHoldoffCount == 0 || although_held)) ||
		(IdleInTransactionSessionTimeoutPending && IdleInTransactionSessionTimeout > 0) ||
		mongo_transaction_timeout_is_pending() ||
		(IdleSessionTimeoutPending && IdleSessionTimeout > 0) ||
		hides_conflict();
}
