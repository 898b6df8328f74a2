/*-------------------------------------------------------------------------
 *
 * scan.h
 *		A foreign scan in execution.
 *
 *-------------------------------------------------------------------------
 */
#ifndef MONGO_FDW_SCAN_H
#define MONGO_FDW_SCAN_H

#include "compat.h"

#include "datatype/timestamp.h"
#include "foreign/foreign.h"
#include "nodes/execnodes.h"

#include "answers.h"
#include "command_template.h"
#include "cursor.h"
#include "decode_row.h"
#include "hashed_scan.h"
#include "identity.h"
#include "plan_nodes.h"

/* What belongs to one run of a scan, from its first row on. */
typedef struct MongoScanRun
{
	MemoryContext context;		/* of the command and its cursor */
	int			turn;			/* which of the plan's commands, from 0 */
	bool		any_document;	/* has come */
	int64		rows;			/* that have come */
	bool		counts;			/* by the plan's count_command */
	bson_t	   *command;		/* as sent; NULL: none */
	MongoCursor *cursor;		/* NULL: nothing to read, or no more */
	bool		is_local;		/* rows come from the second plan */
	int64		rows_when_left; /* by ReScan, with the cursor open */
	TimestampTz left_at;		/* since when no more have come */
} MongoScanRun;

/* fdw_state of the ForeignScanState. */
typedef struct MongoScanState
{
	MongoScanPlan *plan;
	MongoCommandTemplate template;	/* of the command in turn */
	bson_t	  **commands;		/* the plan's, in their order */
	bson_t	   *count_command;	/* the plan's, or NULL */
	int			ncommands;
	List	   *expressions;	/* ExprStates of fdw_exprs */
	List	   *relids;			/* of its foreign tables */
	UserMapping *user;			/* NULL under EXPLAIN without ANALYZE */
	MongoRowDecoder *decoder;	/* likewise */
	struct MongoSharedScan *shared; /* with other processes; NULL: the scan is
									 * ours */
	ExprState  *hiding;			/* of hidden.c; NULL: not needed so far */
	Bitmapset  *hiding_columns; /* likewise: indexes of those that it reads */
	struct MongoFinisher *finisher; /* of aggregates; NULL: nothing to finish */
	MongoIdentityLog *identities;	/* NULL: no row is to be changed */
	int			nvalues;		/* that MongoDB was asked for so far */
	int			change_after;	/* so many of them, see change_over.h; 0:
								 * never */
	bool		changed_over;
	MongoHashedScan *hashed;	/* NULL: none so far, or given up */
	bool		keeps_answers;	/* as it may be begun again */
	MongoAnswers *answers;		/* NULL: none is kept so far */
	TupleTableSlot *kept_slot;	/* for their rows; NULL before any */

	bool		started;		/* a row was asked for since Begin or ReScan */
	bool		widened;		/* documents may come that PostgreSQL is to
								 * test */
	bool		must_wait;		/* why an asynchronous scan gave no row */
	MongoUsage	usage;			/* for EXPLAIN ANALYZE; since the scan began */
	MongoScanRun run;
	MongoScanRun earlier;		/* its context is spare; NULL before any
								 * ReScan */
} MongoScanState;

/*
 * mongo_append_bounds
 *		Append limit, skip and batchSize to a find command.
 *
 * limit is -1 for none.  With a limit the first batch holds one document more
 * than it, so that the server closes the cursor with its first answer.
 */
extern void mongo_append_bounds(const MongoScanPlan *plan, int64 limit,
								int64 offset, bson_t *command);

/*
 * mongo_set_pipeline_bounds
 *		The same for the pipeline that is to be bound to the template.
 */
extern void mongo_set_pipeline_bounds(const MongoScanPlan *plan, int64 limit,
									  int64 offset, MongoCommandTemplate *template);

/*
 * mongo_choose_command
 *		Have the template be that of the plan's command number 'turn', from 0; or of
 *		the count command, if there is one and 'counts'.
 */
extern void mongo_choose_command(MongoScanState *state, int turn, bool counts);

/*
 * mongo_bind_scan_command
 *		Evaluate the plan's expressions and append the chosen command to 'command'.
 *
 * 'rows' have come from the commands before it.  NONE when it is known without
 * asking that no row will come.
 */
extern MongoMatch mongo_bind_scan_command(ForeignScanState *node, int64 rows, bson_t *command);

/*
 * mongo_scan_user_mapping
 *		The user mapping that the scan reads with, palloc'd: of the current user, or
 *		of whom the relation is checked as (a view's owner).
 */
extern UserMapping *mongo_scan_user_mapping(ForeignScanState *node);

/*
 * mongo_scan_make_kept_slot
 *		Have state->kept_slot, for minimal tuples like those of the scan.
 */
extern void mongo_scan_make_kept_slot(ForeignScanState *node);

/*
 * mongo_scan_is_meant
 *		Does the row meet the conditions that MongoDB has been asked to test?
 */
extern bool mongo_scan_is_meant(ForeignScanState *node, TupleTableSlot *slot);

/*
 * mongo_scan_keep_answers
 *		Have a scan keep its rows, since it will be begun again for the same.
 */
extern void mongo_scan_keep_answers(ForeignScanState *scan);

/*
 * mongo_scan_keep_identities
 *		Have a scan note in 'log' the _id of each row it returns.
 */
extern void mongo_scan_keep_identities(ForeignScanState *scan, MongoIdentityLog *log);

#endif							/* MONGO_FDW_SCAN_H */
