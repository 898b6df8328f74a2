/*-------------------------------------------------------------------------
 *
 * hashed_scan.h
 *		The documents for all values of a correlated sub-select, in a hash table.
 *
 * See src/plan/hashed_scan.h.  A value's rows are among those that have its hash
 * value; all conditions that MongoDB would have tested are the caller's to test.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_HASHED_SCAN_H
#define MONGO_FDW_HASHED_SCAN_H

#include "compat.h"

#include "nodes/execnodes.h"

/* Opaque. */
typedef struct MongoHashedScan MongoHashedScan;

/*
 * mongo_hashed_scan_create
 *		Read the scan below 'node' to its end, into a hash table that lives in
 *		the query's memory; NULL when that has been given up.
 *
 * That is so when the rows need more than hash_mem_multiplier times work_mem, and
 * for a document that does not fit its columns or whose value might raise an error:
 * it is one only if it is asked for.  Otherwise raises what a scan does.
 */
extern MongoHashedScan *mongo_hashed_scan_create(ForeignScanState *node);

/*
 * mongo_hashed_scan_begin, mongo_hashed_scan_next
 *		Begin with the rows for the present values of parameters; the next of them,
 *		into 'slot', of minimal tuples, where it stays good as long as the table;
 *		false when there are no more.
 */
extern void mongo_hashed_scan_begin(MongoHashedScan *hashed, ForeignScanState *node);
extern bool mongo_hashed_scan_next(MongoHashedScan *hashed, TupleTableSlot *slot);

#endif							/* MONGO_FDW_HASHED_SCAN_H */
