/*-------------------------------------------------------------------------
 *
 * hidden.h
 *		Documents whose rows a policy hides, so that no error may tell of them.
 *
 * Where PostgreSQL tests a policy, or the conditions of a view that is a security
 * barrier, hidden documents are read as well.  One that does not fit its
 * columns must not become an error then, as that would tell of it.  So such an
 * error waits until it is known that the row may be seen.  Where a column that the
 * policy reads does not fit, that cannot be known: the row is hidden.
 *
 * Nor may what raises errors of its own: a domain's CHECK, and the input function of
 * a type without a row in the table of types (types.h).  Both run for rows that may
 * be seen alone.  Exceptions are such types of columns that the policy reads, and
 * under type_mismatch 'null' a CHECK on one, which decides between the value and NULL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_HIDDEN_H
#define MONGO_FDW_HIDDEN_H

#include "compat.h"

#include "nodes/execnodes.h"

/*
 * mongo_hidden_begin
 *		Have the scan's decoder keep its errors back, if the plan has quals that
 *		hide rows.
 */
extern void mongo_hidden_begin(ForeignScanState *node);

/*
 * mongo_is_hidden
 *		Is the row in 'slot', read from the last document, one of those that do not
 *		fit and must not be told of?
 *
 * Raises what is wrong with 'document' if it may be told.  Its columns that do not
 * fit are NULL in 'slot'.
 */
extern bool mongo_is_hidden(ForeignScanState *node, TupleTableSlot *slot,
							const uint8_t *document, uint32 length);

#endif							/* MONGO_FDW_HIDDEN_H */
