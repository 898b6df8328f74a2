/*-------------------------------------------------------------------------
 *
 * write_doubt.h
 *		What writes may have done that no MongoDB transaction holds together.
 *
 * They stay when PostgreSQL rolls back.  How many documents MongoDB has
 * confirmed is known; what a command did that was broken off is not, as the
 * reply of one that MongoDB has interrupted does not say how far it came.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_WRITE_DOUBT_H
#define MONGO_FDW_WRITE_DOUBT_H

#include "compat.h"

/* What to do about a command that may be running still. */
#define MONGO_RUNNING_HINT \
	"In MongoDB, currentOp shows what is running, and killOp ends it."

/* What is known of one command. */
typedef enum MongoWriteEnd
{
	MONGO_WRITE_ANSWERED,		/* the reply says what it did; or it was not
								 * sent */
	MONGO_WRITE_STOPPED,		/* it runs no more, and has done a part */
	MONGO_WRITE_UNKNOWN			/* no reply has come: it may be running */
} MongoWriteEnd;

/* What commands that were broken off may have done, together. */
typedef struct MongoWriteDoubt
{
	int			commands;
	int64		documents;		/* written by them at most; -1: any number */
	bool		running;		/* one of them may be running still */
} MongoWriteDoubt;

/*
 * mongo_write_doubt_add
 *		Another command, of at most so many documents (-1: any number).
 */
extern void mongo_write_doubt_add(MongoWriteDoubt *doubt, MongoWriteEnd end,
								  int64 documents);

/*
 * mongo_write_doubt_text
 *		The same as a sentence without its full stop, palloc'd; NULL: there is no
 *		doubt.
 */
extern char *mongo_write_doubt_text(const MongoWriteDoubt *doubt);

/*
 * mongo_warn_of_lasting_writes
 *		WARNING (01000) that so many documents written stay, and perhaps more.
 *
 * Nothing when neither is the case.
 */
extern void mongo_warn_of_lasting_writes(const char *server_name, int64 documents,
										 const MongoWriteDoubt *doubt);

#endif							/* MONGO_FDW_WRITE_DOUBT_H */
