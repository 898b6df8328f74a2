/*-------------------------------------------------------------------------
 *
 * parallel_scan.h
 *		A foreign scan that several processes share.
 *
 * Whoever comes first asks MongoDB for the points that split the collection
 * and puts them into shared memory; each participant then takes one range
 * after the other, in the order of the scan, and reads it over a connection of
 * its own.  Where the server keeps snapshots, all ranges are read from the one
 * at which the points were found.
 *
 * What is not to be split (a view, an empty collection, a server that does not
 * know the stages) is one range, which one participant reads.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_PARALLEL_SCAN_H
#define MONGO_FDW_PARALLEL_SCAN_H

#include "compat.h"

#include "access/parallel.h"
#include "nodes/execnodes.h"

/* In shared memory; opaque outside src/exec/parallel.c. */
typedef struct MongoSharedScan MongoSharedScan;

/*
 * FDW callbacks; see "FDW Routines for Parallel Execution" there.
 *
 * In a MongoDB transaction the leader's connection alone sees what is to be
 * read: then no worker is launched, and the leader reads it all.
 */
extern Size mongo_estimate_dsm_foreign_scan(ForeignScanState *node,
											ParallelContext *pcxt);
extern void mongo_initialize_dsm_foreign_scan(ForeignScanState *node,
											  ParallelContext *pcxt,
											  void *coordinate);
extern void mongo_reinitialize_dsm_foreign_scan(ForeignScanState *node,
												ParallelContext *pcxt,
												void *coordinate);
extern void mongo_initialize_worker_foreign_scan(ForeignScanState *node,
												 shm_toc *toc, void *coordinate);
extern void mongo_shutdown_foreign_scan(ForeignScanState *node);

/*
 * mongo_take_range
 *		Restrict state->command of a shared scan to the next range; false when
 *		all have been taken.
 *
 * Sends a command and waits for its reply, or waits for another participant to
 * do so, when the collection has not been split yet.
 */
extern bool mongo_take_range(ForeignScanState *node);

#endif							/* MONGO_FDW_PARALLEL_SCAN_H */
