/*-------------------------------------------------------------------------
 *
 * parallel.h
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
#ifndef MONGO_FDW_PARALLEL_H
#define MONGO_FDW_PARALLEL_H

#include "compat.h"

#include "foreign/foreign.h"

#include "plan_nodes.h"

/* In shared memory; opaque. */
typedef struct MongoSharedScan MongoSharedScan;

/*
 * mongo_take_range
 *		'command', the next of the plan's, for the next range of the shared scan, in
 *		the current memory context; NULL when all have been taken.
 *
 * Sends a command and waits for its reply, or waits for another participant to
 * do so, when the collection has not been split yet.
 */
extern bson_t *mongo_take_range(MongoSharedScan *shared, const MongoScanPlan *plan,
								UserMapping *user, const bson_t *command);

#endif							/* MONGO_FDW_PARALLEL_H */
