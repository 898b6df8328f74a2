/*-------------------------------------------------------------------------
 *
 * hidden.c
 *		Documents of which nothing may be told, since a policy hides their rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "hidden.h"

#include "scan.h"

#include "executor/executor.h"

/* hiding_indexes: indexes of the columns that the quals that hide rows read. */
static Bitmapset *
hiding_indexes(ForeignScanState *node)
{
	const MongoScanState *state = node->fdw_state;
	int			natts = node->ss.ss_ScanTupleSlot->tts_tupleDescriptor->natts;
	Bitmapset  *columns = NULL;
	ListCell   *cell;

	foreach(cell, state->plan->hiding_columns)
	{
		AttrNumber	attnum = lfirst_int(cell);

		if (attnum == InvalidAttrNumber)
			columns = bms_add_range(columns, 0, natts - 1);
		else if (attnum > 0)
			columns = bms_add_member(columns, attnum - 1);
	}
	return columns;
}

/* hold_back: have the decoder raise nothing, or everything. */
static void
hold_back(MongoScanState *state, bool hold)
{
	mongo_row_decoder_note_mismatches(state->decoder, hold);
	mongo_row_decoder_defer(state->decoder, hold, state->hiding_columns);
}

void
mongo_hidden_begin(ForeignScanState *node)
{
	MongoScanState *state = node->fdw_state;

	if (state->plan->hiding == NIL)
		return;
	state->hiding_columns = hiding_indexes(node);
	hold_back(state, true);
}

/* is_visible: by those of the plan's quals that hide rows. */
static bool
is_visible(ForeignScanState *node, TupleTableSlot *slot)
{
	MongoScanState *state = node->fdw_state;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;

	if (state->hiding == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(node->ss.ps.state->es_query_cxt);
		List	   *quals = NIL;
		ListCell   *cell;

		foreach(cell, state->plan->hiding)
			quals = lappend(quals, list_nth(node->ss.ps.plan->qual, lfirst_int(cell)));
		state->hiding = ExecInitQual(quals, &node->ss.ps);
		MemoryContextSwitchTo(old_context);
	}
	econtext->ecxt_scantuple = slot;
	return ExecQual(state->hiding, econtext);
}

bool
mongo_is_hidden(ForeignScanState *node, TupleTableSlot *slot, const uint8_t *document,
				uint32 length)
{
	MongoScanState *state = node->fdw_state;
	const Bitmapset *mismatches = mongo_row_decoder_mismatches(state->decoder);
	bool		fits = mismatches == NULL;

	if (fits && !mongo_row_decoder_deferred(state->decoder))
		return false;
	if (bms_overlap(state->hiding_columns, mismatches) || !is_visible(node, slot))
	{
		/* as if the plan's quals had been asked */
		InstrCountFiltered1(node, 1);
		return true;
	}
	hold_back(state, false);
	mongo_row_decode(state->decoder, document, length, slot->tts_values, slot->tts_isnull);
	if (!fits)					/* freed by now */
		elog(ERROR, "a document of collection \"%s\" did not fit and does so now",
			 state->plan->collection);
	hold_back(state, true);
	return false;
}
