/*-------------------------------------------------------------------------
 *
 * scan_rows.c
 *		Rows of a scan that do not come from its cursor: where they are put, and what
 *		is tested of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "scan.h"

#include "executor/executor.h"

void
mongo_scan_make_kept_slot(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;
	EState	   *estate = node->ss.ps.state;
	MemoryContext old_context = MemoryContextSwitchTo(estate->es_query_cxt);

	if (state->kept_slot == NULL)
		state->kept_slot = ExecInitExtraTupleSlot(estate,
												  node->ss.ss_ScanTupleSlot->tts_tupleDescriptor,
												  &TTSOpsMinimalTuple);
	MemoryContextSwitchTo(old_context);
}

/* As in ForeignRecheck(). */
bool
mongo_scan_is_meant(ForeignScanState *node, TupleTableSlot *slot)
{
	ExprContext *econtext = node->ss.ps.ps_ExprContext;

	econtext->ecxt_scantuple = slot;
	return ExecQual(node->fdw_recheck_quals, econtext);
}
