/*-------------------------------------------------------------------------
 *
 * explain_statistics.h
 *		EXPLAIN: how old what planning knew of the collections is.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_EXPLAIN_STATISTICS_H
#define MONGO_FDW_EXPLAIN_STATISTICS_H

#include "compat.h"

#include "commands/explain.h"
#include "nodes/plannodes.h"

/*
 * mongo_explain_statistics
 *		Show when ANALYZE learned of the collections of this scan, or that what it
 *		learned is of others; nothing if it has learned nothing.
 */
extern void mongo_explain_statistics(const ForeignScan *plan, ExplainState *es);

#endif							/* MONGO_FDW_EXPLAIN_STATISTICS_H */
