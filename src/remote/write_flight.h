/*-------------------------------------------------------------------------
 *
 * write_flight.h
 *		A batch under way (bulk_write.h), as its session sees it.
 *
 * Whoever else writes or reads in the session first has it settled, so that
 * commands reach MongoDB in the order in which SQL has them, and who writes does
 * not do so after a failure.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_WRITE_FLIGHT_H
#define MONGO_FDW_WRITE_FLIGHT_H

#include "compat.h"

#include "bulk_write.h"

/* What a session asks of it. */
typedef struct MongoFlightMethods
{
	/*
	 * Wait for the reply, if that has not been done.  Raises what breaks the
	 * wait, but not what the reply says: that is the statement's own, which
	 * another one's exception block must not catch.
	 */
	void		(*settle) (MongoWriteFlight *flight);

	/* Raise what the reply says, as often as this is called. */
	void		(*check) (MongoWriteFlight *flight);

	/*
	 * The statement has ended by an error: note in the session what becomes
	 * of the batch.  Takes 0.8 s at most, and less where MongoDB is silent.
	 * Never raises.
	 */
	void		(*abandon) (MongoWriteFlight *flight);
} MongoFlightMethods;

#endif							/* MONGO_FDW_WRITE_FLIGHT_H */
